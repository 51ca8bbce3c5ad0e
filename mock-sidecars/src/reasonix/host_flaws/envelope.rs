//! What a host can do wrong with envelopes, ids and answers.

use sidecert_proto::reasonix::contract;
use sidecert_proto::requirement::Id;

use super::{frame, manner, misreads, silent};
use crate::{Flaw, Misdeed, Trigger};

/// What is said of a content that is gone.
const EXPIRED: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32000,"message":"gone","data":{"reason":"content_ref_expired","retryable":true}}}"#;

/// Answers what matches as if it were in order.
pub(super) const fn serves(name: &'static str, breaks: &'static [Id], pattern: &'static str) -> Flaw {
    frame(name, breaks, Trigger::Receives(pattern), Misdeed::Instead(EXPIRED))
}

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-forgets-the-version",
        &["reasonix/host-envelope/frames-well-formed"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Also(r#"{"jsonrpc":"2","method":"extension/event"}"#),
    ),
    frame(
        "host-answers-twice",
        &["reasonix/host-envelope/answered-once"],
        Trigger::Answers(contract::CONTENT_READ),
        Misdeed::Twice,
    ),
    frame(
        "host-answers-what-nobody-asked",
        &["reasonix/host-envelope/answers-what-was-asked"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":987654321,"result":{}}"#),
    ),
    frame(
        "host-answers-chunks",
        &[
            "reasonix/host-envelope/notifications-unanswered",
            "reasonix/host-envelope/bad-notifications-ignored",
        ],
        Trigger::Receives(r#"{"method":"extension/provider/stream/chunk"}"#),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no request"}}"#),
    ),
    frame(
        "host-asks-under-text",
        &["reasonix/host-envelope/own-ids-integers", "reasonix/host-providers/catalog-asked-once"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":"x","method":"extension/provider/catalog","params":{}}"#),
    ),
    frame(
        "host-sends-params-in-a-list",
        &["reasonix/host-envelope/params-objects", "reasonix/host-members/members-fit"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Edit(r#""params":{}"#, r#""params":[]"#),
    ),
    frame(
        "host-explains-parse-errors",
        &["reasonix/host-envelope/frame-errors-plain"],
        Trigger::Says(r#"{"id":null,"error":{"code":-32700}}"#),
        Misdeed::Edit(r#""message":"#, r#""data":{},"message":"#),
    ),
    serves("host-takes-any-version", &["reasonix/host-envelope/version-demanded"], r#"{"jsonrpc":"1.0"}"#),
    frame(
        "host-minds-unknown-members",
        &["reasonix/host-envelope/unknown-members-ignored"],
        Trigger::Receives(r#"{"x":{"$any":true},"method":"host/content/read"}"#),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32600,"message":"unknown member"}}"#,
        ),
    ),
    silent("host-drops-string-ids", &["reasonix/host-envelope/string-id-refused"], r#""id":"odd""#),
    silent("host-drops-null-ids", &["reasonix/host-envelope/null-id-refused"], r#""id":null,"method""#),
    silent("host-drops-odd-ids", &["reasonix/host-envelope/no-number-id-refused"], r#""id":true"#),
    silent("host-drops-ids-with-points", &["reasonix/host-envelope/written-integers-only"], r#""id":1.0"#),
    frame(
        "host-shortens-ids",
        &["reasonix/host-envelope/ids-echoed"],
        Trigger::Says(r#"{"id":123456789012345678901234567890}"#),
        Misdeed::Edit("123456789012345678901234567890", "123456789012345680000000000000"),
    ),
    serves("host-serves-arrays", &["reasonix/host-envelope/array-params-refused"], r#"{"params":[]}"#),
    serves("host-serves-text", &["reasonix/host-envelope/no-object-params-refused"], r#"{"params":"x"}"#),
    serves(
        "host-serves-without-params",
        &["reasonix/host-envelope/absent-params-empty"],
        r#"{"method":"host/content/read","params":{"$absent":true}}"#,
    ),
    manner("host-serves-batches", &["reasonix/host-envelope/batches-refused"], |it| {
        it.frames.serves_batches = true;
    }),
    frame(
        "host-drops-numbers",
        &["reasonix/host-envelope/no-objects-refused"],
        Trigger::Receives("42"),
        Misdeed::Silence,
    ),
    serves(
        "host-serves-requests-with-results",
        &["reasonix/host-envelope/outcome-in-request-refused"],
        r#"{"method":"host/content/read","result":{}}"#,
    ),
    serves("host-serves-no-method", &["reasonix/host-envelope/empty-method-refused"], r#"{"method":""}"#),
    frame(
        "host-answers-bad-responses-well",
        &["reasonix/host-envelope/bad-responses-harmless"],
        Trigger::Receives(r#"{"id":700031}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700031,"result":{}}"#),
    ),
    frame(
        "host-answers-stray-answers",
        &["reasonix/host-envelope/stray-answers-ignored"],
        Trigger::Receives(r#"{"id":700032}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"nobody asked"}}"#),
    ),
    silent(
        "host-takes-the-last-answer",
        &["reasonix/host-envelope/first-answer-counts"],
        r#""reason":"first""#,
    ),
    manner("host-minds-errors-under-null", &["reasonix/host-envelope/bad-responses-harmless"], |it| {
        it.frames.null_errors_end = true;
    }),
    misreads(
        "host-takes-the-result-of-both",
        &["reasonix/host-envelope/one-outcome-answers"],
        r#""reason":"not on a sunday"},"error":{"#,
        (r#","error":{"code":-32603,"message":"x"}"#, ""),
    ),
    misreads(
        "host-passes-over-null-errors",
        &["reasonix/host-envelope/null-error-answers-nothing"],
        r#""reason":"not on a sunday"},"error":null"#,
        (r#","error":null"#, ""),
    ),
    manner("host-takes-text-for-ids", &["reasonix/host-envelope/text-id-answers-nothing"], |it| {
        it.frames.text_ids_match = true;
    }),
    manner(
        "host-serves-unknown-methods",
        &[
            "reasonix/host-envelope/unknown-method-refused",
            "reasonix/host-envelope/notification-as-request-refused",
            "reasonix/host-envelope/other-direction-refused",
            "reasonix/host-transport/deep-nesting-survived",
        ],
        |it| it.frames.serves_unknown = true,
    ),
    silent(
        "host-answers-some-of-many",
        &["reasonix/host-envelope/many-requests-answered"],
        "sidecert-at-once-60",
    ),
    manner("host-serves-any-number", &["reasonix/host-envelope/surplus-refused"], |it| {
        it.frames.served_at_once = usize::MAX;
    }),
    frame(
        "host-serves-nothing-behind-a-prompt",
        &["reasonix/host-envelope/waiting-blocks-nothing"],
        Trigger::Reads("sidecert-behind"),
        Misdeed::Silence,
    ),
    frame(
        "host-drops-prompts",
        &["reasonix/host-envelope/prompts-not-dropped"],
        Trigger::Receives(r#"{"method":"host/ui/request","params":{"surfaceId":"left-open"}}"#),
        Misdeed::Silence,
    ),
    frame(
        "host-takes-chunks-as-requests",
        &["reasonix/host-envelope/notification-as-request-refused"],
        Trigger::Receives(r#"{"method":"extension/provider/stream/chunk","id":{"$any":true}}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{}}"#),
    ),
    frame(
        "host-rules-itself",
        &["reasonix/host-envelope/other-direction-refused"],
        Trigger::Receives(r#"{"method":"extension/intercept"}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"continue"}}"#),
    ),
    frame(
        "host-answers-unknown-notifications",
        &["reasonix/host-envelope/unknown-notification-ignored"],
        Trigger::Receives(r#"{"method":"host/sidecert/none","id":{"$absent":true}}"#),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown"}}"#),
    ),
    frame(
        "host-answers-bad-notifications",
        &["reasonix/host-envelope/bad-notifications-ignored"],
        Trigger::Receives(r#"{"method":"extension/provider/stream/end","params":{"streamId":7}}"#),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"wrong"}}"#),
    ),
    misreads(
        "host-minds-unknown-members-of-declarations",
        &["reasonix/host-envelope/unknown-members-ignored"],
        r#""y":[1]},"jsonrpc":"2.0","id":1,"result":{"protocolVersion""#,
        (r#""result""#, r#""unknown""#),
    ),
    frame(
        "host-answers-requests-without-id",
        &["reasonix/host-envelope/request-as-notification-ignored"],
        Trigger::Receives(r#"{"method":"host/content/read","id":{"$absent":true}}"#),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no id"}}"#),
    ),
    silent(
        "host-drops-repeated-members",
        &["reasonix/host-envelope/last-member-counts"],
        r#""id":700040,"id""#,
    ),
];
