//! What a host can do wrong with what nobody should be shown.

use super::manner;
use crate::Flaw;

pub(super) const FLAWS: &[Flaw] = &[
    manner("host-shows-keys-of-stderr", &["reasonix/host-security/stderr-masked"], |it| {
        it.redacts.stderr = false;
    }),
    manner("host-keeps-the-beginning-of-stderr", &["reasonix/host-security/stderr-bounded"], |it| {
        it.redacts.keeps_end = false;
    }),
    manner("host-keeps-all-of-stderr", &["reasonix/host-security/stderr-bounded"], |it| {
        it.redacts.tail_bytes = 64 << 20;
    }),
    manner(
        "host-shows-keys-of-blocks",
        &["reasonix/host-security/block-reasons-masked", "reasonix/host-security/known-shapes-masked"],
        |it| it.redacts.reasons = false,
    ),
    manner("host-knows-few-shapes", &["reasonix/host-security/known-shapes-masked"], |it| {
        it.redacts.rules = 5;
    }),
    manner(
        "host-shows-keys-on-surfaces",
        &[
            "reasonix/host-security/surfaces-masked",
            "reasonix/host-security/prompts-masked",
            "reasonix/host-security/action-results-masked",
        ],
        |it| it.redacts.ui = false,
    ),
    manner("host-shows-keys-of-models", &["reasonix/host-security/provider-errors-masked"], |it| {
        it.redacts.provider_errors = false;
    }),
    manner(
        "host-shows-keys-of-errors",
        &["reasonix/host-security/provider-refusals-masked", "reasonix/host-security/errors-masked"],
        |it| it.redacts.errors = false,
    ),
    manner("host-masks-what-models-say", &["reasonix/host-security/content-untouched"], |it| {
        it.redacts.content = true;
    }),
    manner("host-logs-keys", &["reasonix/host-security/log-masked"], |it| it.redacts.log = false),
];
