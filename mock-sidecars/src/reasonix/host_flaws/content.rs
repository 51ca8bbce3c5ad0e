//! What a host can do wrong with what moves out of its frames.

use sidecert_proto::reasonix::contract;

use super::{frame, manner, misreads};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    manner("host-moves-small-payloads", &["reasonix/host-content/large-moved-out"], |it| {
        it.content.externalize_above = Some(300);
    }),
    manner(
        "host-keeps-large-events-inline",
        &["reasonix/host-content/large-moved-out", "reasonix/host-content/events-move-out"],
        |it| it.content.externalizes_events = false,
    ),
    frame(
        "host-points-elsewhere",
        &["reasonix/host-content/descriptors-true"],
        Trigger::Asks(contract::INTERCEPT),
        Misdeed::Edit(r#""jsonPointer":"/payload""#, r#""jsonPointer":"/params/payload""#),
    ),
    manner("host-gives-large-pages", &["reasonix/host-content/pages-true"], |it| {
        it.content.page_bytes = Some(1 << 20);
    }),
    manner(
        "host-gives-false-digests",
        &[
            "reasonix/host-content/pages-true",
            "reasonix/host-content/whole",
            "reasonix/host-content/own-reference-taken",
        ],
        |it| it.content.true_digests = false,
    ),
    manner(
        "host-rounds-offsets",
        &[
            "reasonix/host-content/pages-true",
            "reasonix/host-content/offsets-exact",
            "reasonix/host-content/end-is-empty",
        ],
        |it| it.content.exact_offsets = false,
    ),
    manner("host-has-no-last-page", &["reasonix/host-content/end-is-empty"], |it| {
        it.content.empty_last_page = false;
    }),
    manner(
        "host-takes-lost-contents-for-wrong-params",
        &[
            "reasonix/host-content/beyond-end-refused",
            "reasonix/host-content/unknown-refused",
            "reasonix/host-content/others-not-served",
            "reasonix/host-content/expired-refused",
            "reasonix/host-envelope/unknown-members-ignored",
            "reasonix/host-envelope/last-member-counts",
            "reasonix/host-transport/odd-text-survived",
        ],
        |it| it.content.names_expired = false,
    ),
    frame(
        "host-takes-negative-offsets-for-lost",
        &["reasonix/host-content/negative-offset-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":"host/content/read","params":{"offset":-1}}"#),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32000,"message":"it is gone","data":{"reason":"content_ref_expired","retryable":true}}}"#,
        ),
    ),
    manner("host-gives-contents-to-all", &["reasonix/host-content/others-not-served"], |it| {
        it.content.own_objects = false;
    }),
    frame(
        "host-cuts-long-messages",
        &["reasonix/host-content/messages-whole"],
        Trigger::Asks(contract::STREAM_OPEN),
        Misdeed::Edit(r#""content":"sidecert-moved-"#, r#""content":"cut","reasoning_content":""#),
    ),
    frame(
        "host-gives-no-content-before-the-ruling",
        &["reasonix/host-content/read-while-asked"],
        Trigger::Receives(r#"{"method":"host/content/read","params":{"offset":7}}"#),
        Misdeed::Silence,
    ),
    manner("host-gives-out-what-is-too-large", &["reasonix/host-content/too-large-not-sent"], |it| {
        it.content.object_bytes = Some(usize::MAX);
    }),
    manner("host-keeps-few-contents", &["reasonix/host-content/newest-kept"], |it| {
        it.content.objects_kept = 32;
    }),
    manner("host-takes-no-references", &["reasonix/host-content/own-reference-taken"], |it| {
        it.content.takes_references = false;
    }),
    manner(
        "host-believes-references",
        &["reasonix/host-content/odd-references-refused", "reasonix/host-content/large-reference-refused"],
        |it| it.content.checks_replacements = false,
    ),
    misreads(
        "host-passes-over-prefixes",
        &["reasonix/host-content/digests-written-exactly"],
        r#""sha256":"sha256:"#,
        ("sha256:", ""),
    ),
    manner("host-takes-unknown-references", &["reasonix/host-content/unknown-reference-refused"], |it| {
        it.content.takes_unknown_references = true;
    }),
];
