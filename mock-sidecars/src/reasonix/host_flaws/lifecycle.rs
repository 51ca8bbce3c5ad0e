//! What a host can do wrong while a guest begins.

use sidecert_proto::reasonix::contract;
use sidecert_proto::requirement::Editions;

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

/// The first edition, and the second.
pub(super) const FIRST: Editions = 1;
const SECOND: Editions = 2;

/// A flaw in these editions only.
pub(super) const fn only(editions: Editions, flaw: Flaw) -> Flaw {
    Flaw { editions, ..flaw }
}

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-speaks-before-the-answer",
        &["reasonix/host-lifecycle/initialize-alone-first", "reasonix/host-lifecycle/initialized-once-next"],
        Trigger::Asks(contract::INITIALIZE),
        Misdeed::Also(r#"{"jsonrpc":"2.0","method":"extension/resources/changed","params":{"paths":["."]}}"#),
    ),
    frame(
        "host-names-another-protocol",
        &["reasonix/host-lifecycle/protocol-named"],
        Trigger::Asks(contract::INITIALIZE),
        Misdeed::Edit(r#""protocolId":"reasonix"#, r#""protocolId":"reason"#),
    ),
    frame(
        "host-names-another-major",
        &["reasonix/host-lifecycle/protocol-named"],
        Trigger::Asks(contract::INITIALIZE),
        Misdeed::Edit(r#""protocolVersion":""#, r#""protocolVersion":"9"#),
    ),
    frame(
        "host-forgets-a-capability",
        &["reasonix/host-lifecycle/manifest-told"],
        Trigger::Asks(contract::INITIALIZE),
        Misdeed::Edit(r#""interceptors""#, r#""interruptors""#),
    ),
    frame(
        "host-says-initialized-twice",
        &["reasonix/host-lifecycle/initialized-once-next"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Twice,
    ),
    manner(
        "host-takes-early-frames",
        &["reasonix/host-lifecycle/early-request-fails", "reasonix/host-lifecycle/early-notification-fails"],
        |it| it.starts.traffic_poisons = false,
    ),
    manner("host-passes-over-early-garbage", &["reasonix/host-lifecycle/early-garbage-fails"], |it| {
        it.starts.garbage_poisons = false;
        it.starts.answers_garbage = false;
    }),
    manner(
        "host-takes-any-answer-for-its-own",
        &["reasonix/host-lifecycle/early-response-opens-nothing"],
        |it| {
            it.starts.responses_poison = false;
            it.starts.early_responses_count = true;
        },
    ),
    manner(
        "host-takes-every-version",
        &["reasonix/host-lifecycle/other-major-fails", "reasonix/host-lifecycle/version-is-a-number"],
        |it| it.starts.checks_version = false,
    ),
    manner("host-takes-more-subscriptions", &["reasonix/host-lifecycle/subscriptions-in-manifest"], |it| {
        it.starts.checks_subscriptions = false;
    }),
    manner("host-takes-more-slots", &["reasonix/host-lifecycle/slots-in-manifest"], |it| {
        it.starts.checks_replaces = false;
    }),
    manner(
        "host-refuses-repeated-subscriptions",
        &["reasonix/host-lifecycle/repeated-subscription-taken"],
        |it| {
            it.starts.takes_duplicates = false;
        },
    ),
    manner(
        "host-forgets-what-capabilities-are-for",
        &[
            "reasonix/host-lifecycle/providers-need-capability",
            "reasonix/host-lifecycle/actions-need-capability",
        ],
        |it| it.starts.checks_capabilities = false,
    ),
    manner("host-takes-foreign-models", &["reasonix/host-lifecycle/providers-in-own-namespace"], |it| {
        it.starts.checks_namespace = false;
    }),
    only(
        SECOND,
        frame(
            "host-tells-other-lists",
            &["reasonix/host-lifecycle/provided-lists-told"],
            Trigger::Asks(contract::INITIALIZE),
            Misdeed::Edit(r#""providers":["plugin/"#, r#""providers":["plugin/x"#),
        ),
    ),
    manner("host-invokes-odd-actions", &["reasonix/host-lifecycle/odd-action-passed-over"], |it| {
        it.starts.takes_any_action = true;
    }),
    manner(
        "host-takes-an-error-for-an-answer",
        &["reasonix/host-lifecycle/initialize-alone-first", "reasonix/host-lifecycle/error-answer-fails"],
        |it| {
            it.starts.errors_fail = false;
        },
    ),
    only(
        FIRST,
        manner(
            "host-opens-before-it-looks",
            &[
                "reasonix/host-lifecycle/version-written-exactly",
                "reasonix/host-lifecycle/no-initialized-after-failure",
                "reasonix/host-members/declared-blank-refused",
                "reasonix/host-members/declared-empty-refused",
                "reasonix/host-members/declared-missing-refused",
                "reasonix/host-members/declared-null-refused",
                "reasonix/host-members/declared-types-kept",
                "reasonix/host-members/declared-unknown-refused",
            ],
            |it| it.starts.initialized_unchecked = true,
        ),
    ),
    only(
        SECOND,
        manner(
            "host-opens-before-it-looks-at-lists",
            &[
                "reasonix/host-lifecycle/version-written-exactly",
                "reasonix/host-lifecycle/providers-in-manifest",
                "reasonix/host-lifecycle/actions-in-manifest",
                "reasonix/host-lifecycle/no-initialized-after-failure",
                "reasonix/host-members/declared-blank-refused",
                "reasonix/host-members/declared-empty-refused",
                "reasonix/host-members/declared-missing-refused",
                "reasonix/host-members/declared-null-refused",
                "reasonix/host-members/declared-types-kept",
                "reasonix/host-members/declared-unknown-refused",
            ],
            |it| it.starts.initialized_unchecked = true,
        ),
    ),
    manner(
        "host-shuts-down-what-failed",
        &[
            "reasonix/host-lifecycle/initialize-alone-first",
            "reasonix/host-lifecycle/no-shutdown-after-failure",
        ],
        |it| {
            it.starts.shuts_down_failed = true;
        },
    ),
    manner("host-leaves-what-failed", &["reasonix/host-lifecycle/failed-process-ended"], |it| {
        it.starts.kills_failed = false;
    }),
    manner("host-leaves-the-others", &["reasonix/host-lifecycle/others-end-when-start-fails"], |it| {
        it.starts.ends_others = false;
    }),
    manner("host-needs-what-is-optional", &["reasonix/host-lifecycle/optional-may-fail"], |it| {
        it.starts.optional_fails = true;
    }),
    manner("host-waits-for-a-silent-guest", &["reasonix/host-lifecycle/handshake-bounded"], |it| {
        it.starts.budget = 300_000_000;
    }),
    manner("host-initializes-all-at-once", &["reasonix/host-lifecycle/four-at-once"], |it| {
        it.starts.parallel = 6;
    }),
];
