//! What a host can do wrong with errors: its own, and those of its guests.

use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::contract::reason;

use super::{frame, misreads};
use crate::{Flaw, Misdeed, Trigger};

/// When it says that a content is gone.
const EXPIRED: Trigger = Trigger::Refuses(contract::CONTENT_READ, reason::CONTENT_REF_EXPIRED);

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-has-other-codes",
        &["reasonix/host-errors/codes-fit-reasons"],
        EXPIRED,
        Misdeed::Edit("-32000", "-32001"),
    ),
    frame(
        "host-has-other-reasons",
        &["reasonix/host-errors/reasons-known"],
        Trigger::Refuses(contract::CONTENT_READ, reason::INVALID_PARAMS),
        Misdeed::Edit(r#""invalid_params""#, r#""wrong_params""#),
    ),
    frame(
        "host-gives-up-early",
        &["reasonix/host-errors/retryable-fits-reasons"],
        EXPIRED,
        Misdeed::Edit(r#""retryable":true"#, r#""retryable":false"#),
    ),
    frame(
        "host-numbers-actions",
        &["reasonix/host-errors/action-is-text"],
        EXPIRED,
        Misdeed::Edit(r#""action":"try again""#, r#""action":7"#),
    ),
    frame(
        "host-gives-no-structure",
        &["reasonix/host-errors/domain-errors-structured"],
        EXPIRED,
        Misdeed::Edit(r#""retryable":true,"#, ""),
    ),
    misreads(
        "host-goes-on-after-plain-errors",
        &["reasonix/host-errors/plain-errors-taken"],
        "sidecert-plain",
        (r#""error":{"code":-32603,"message":"sidecert-plain"}"#, r#""result":{"decision":"continue"}"#),
    ),
    misreads(
        "host-minds-more-data",
        &["reasonix/host-errors/more-data-tolerated"],
        r#""action":"sidecert""#,
        (r#""reason""#, r#""cause""#),
    ),
    misreads(
        "host-trusts-every-reason",
        &["reasonix/host-errors/misdescribed-reason-distrusted"],
        "sidecert-misdescribed",
        (r#""retryable":false"#, r#""retryable":true"#),
    ),
];
