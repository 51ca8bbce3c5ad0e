//! "Errors": codes, reasons, and what the guest makes of those of the host.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, must};

use super::content::{self, TAMPERED_CONTENT};
use super::envelope::{ODD_ENVELOPES, WRONG_METHODS};
use super::sights::{EXPIRED, INTERNAL, sdk};
use super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};

const ERRORS: Cite = Cite::Seed("错误", "Errors");
const TABLE: Cite = Cite::Schema("/errors");

const EXPIRED_OBSERVED: &[Accepts] = &[sdk(EXPIRED)];
const INTERNAL_OBSERVED: &[Accepts] = &[sdk(INTERNAL)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/errors/codes-fit-reasons", Guest)
        .says("The code of an error is the one that the table has for its reason.", &[ERRORS, TABLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CODES_FIT.guest, &WRONG_METHODS)),
    must("reasonix/errors/reasons-known", Guest)
        .says("The reason of an error is one of the table.", &[ERRORS, TABLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::REASONS_KNOWN.guest, &WRONG_METHODS)),
    must("reasonix/errors/retryable-fits-reasons", Guest)
        .says("Whether an error is retryable is what the table has for its reason.", &[ERRORS, TABLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::RETRYABLE_FITS.guest, &WRONG_METHODS)),
    must("reasonix/errors/action-is-text", Guest)
        .says("The data of an error may have an action, which is a text; the schema has none.", &[ERRORS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ACTION_IS_TEXT.guest, &WRONG_METHODS)),
    must("reasonix/errors/domain-errors-structured", Guest)
        .says("An error with the code -32000 gives its reason, and whether it is retryable.", &[ERRORS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::DOMAIN_STRUCTURED.guest, &TAMPERED_CONTENT)),
    must("reasonix/errors/frame-errors-plain", Guest)
        .says("An error about a frame that could not be read has no data.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::FRAME_ERRORS_PLAIN.guest, &ODD_ENVELOPES)),
    must("reasonix/errors/more-data-tolerated", Guest)
        .says("An error of the host with more in its data than a reason is taken for its reason.", &[])
        .accepts(EXPIRED_OBSERVED)
        .checked(After(&TAMPERED_CONTENT, |x| content::became(x, "action"))),
    must("reasonix/errors/misdescribed-reason-distrusted", Guest)
        .says(
            "An error of the host whose retryable is not what its reason has is an error like any other.",
            &[],
        )
        .accepts(INTERNAL_OBSERVED)
        .checked(After(&TAMPERED_CONTENT, |x| content::became(x, "misdescribed"))),
];
