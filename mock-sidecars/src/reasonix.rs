//! The flaws of the Reasonix mock guest.

pub mod host;
pub mod host_flaws;

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::reasonix::contract::{self, reason};
use sidecert_proto::reasonix::guest::Phase;
use sidecert_proto::requirement::{Editions, Id};

use crate::{Flaw, Misdeed, Reach, Trigger};

const V1: Editions = 1;
const V2: Editions = 2;
const BOTH: Editions = V1 | V2;

/// A flaw that shows in frames, in both editions.
const fn flaw(name: &'static str, breaks: &'static [Id], at: Trigger, does: Misdeed) -> Flaw {
    Flaw { name, side: Guest, editions: BOTH, breaks, reach: Reach::Frame, at, does }
}

const fn reaching(reach: Reach, flaw: Flaw) -> Flaw {
    Flaw { reach, ..flaw }
}

const fn only(editions: Editions, flaw: Flaw) -> Flaw {
    Flaw { editions, ..flaw }
}

/// A result of nothing in particular, under the id that was captured.
const CANCELLED: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"cancelled":false}}"#;
/// The same under null.
const CANCELLED_NULL: &str = r#"{"jsonrpc":"2.0","id":null,"result":{"cancelled":false}}"#;
/// A ruling.
const RULED: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"continue"}}"#;
/// A plain internal error.
const OOPS: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32603,"message":"oops","data":{"reason":"internal","retryable":true}}}"#;
/// An acceptance.
const ACCEPTED: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#;

/// Every flaw, in the order of the requirements that they break.
pub static FLAWS: &[Flaw] = &[
    // ---- transport ----
    flaw(
        "logs-to-standard-output",
        &["reasonix/transport/only-frames"],
        Trigger::Receives(r#"{"method":"extension/event"}"#),
        Misdeed::Also("guest: an event came"),
    ),
    flaw(
        "greets-on-standard-output",
        &["reasonix/transport/only-frames", "reasonix/lifecycle/silent-before-initialized"],
        Trigger::Starts,
        Misdeed::Also("sidecert mock guest, ready"),
    ),
    flaw(
        "indents-its-rulings",
        &["reasonix/transport/only-frames", "reasonix/ui/declared-action-accepted"],
        Trigger::Receives(ACTION),
        Misdeed::Reply(
            "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": {\"$capture\":\"id\"},\n  \"result\": {\"accepted\": true}\n}",
        ),
    ),
    flaw(
        "reads-by-chunk",
        &["reasonix/transport/frames-end-at-line-feed", "reasonix/envelope/notifications-unanswered"],
        Trigger::Always,
        Misdeed::ByReads,
    ),
    flaw(
        "ends-lines-at-separators",
        &["reasonix/transport/line-separators-no-line-ends"],
        Trigger::Always,
        Misdeed::EndsLinesAt("\u{2028}"),
    ),
    flaw(
        "refuses-carriage-returns",
        &["reasonix/transport/white-space-around-ignored"],
        Trigger::Reads("}\r"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#),
    ),
    flaw(
        "refuses-blank-lines",
        &["reasonix/transport/blank-lines-ignored"],
        Trigger::Blank,
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#),
    ),
    flaw(
        "refuses-large-frames",
        &["reasonix/transport/largest-frame-served"],
        Trigger::LongLine,
        Misdeed::Limit(50),
    ),
    flaw(
        "serves-oversized-frames",
        &[
            "reasonix/transport/oversized-frame-fatal",
            "reasonix/transport/oversized-frame-unanswered",
            "reasonix/transport/limit-counts-line-feed",
            "reasonix/transport/limit-counts-white-space",
            "reasonix/transport/limit-needs-no-line-feed",
        ],
        Trigger::LongLine,
        Misdeed::Limit(200),
    ),
    flaw(
        "refuses-oversized-frames-as-no-json",
        &["reasonix/transport/oversized-frame-unanswered"],
        Trigger::LongLine,
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"too long"}}"#),
    ),
    flaw(
        "does-not-count-line-feeds",
        &["reasonix/transport/limit-counts-line-feed"],
        Trigger::LongLine,
        Misdeed::TakesOneMore,
    ),
    flaw(
        "does-not-count-white-space",
        &["reasonix/transport/limit-counts-white-space"],
        Trigger::LongLine,
        Misdeed::CountsTrimmed,
    ),
    flaw(
        "waits-for-the-line-feed",
        &["reasonix/transport/limit-needs-no-line-feed"],
        Trigger::LongLine,
        Misdeed::Patient,
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "writes-beyond-the-limit",
            &["reasonix/transport/frames-within-limit"],
            Trigger::Receives(LARGE),
            Misdeed::Overfill,
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "gives-up-for-a-large-answer",
            &["reasonix/transport/oversized-answer-refused"],
            Trigger::Receives(LARGE),
            Misdeed::Instead(RULED),
        ),
    ),
    flaw(
        "drops-the-last-line",
        &["reasonix/transport/last-line-served"],
        Trigger::LineUnended,
        Misdeed::Silence,
    ),
    flaw(
        "completes-what-is-cut-off",
        &["reasonix/transport/cut-off-line-not-served"],
        Trigger::Reads("700001"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700001,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "takes-byte-order-marks",
        &["reasonix/transport/byte-order-mark-refused"],
        Trigger::Reads("\u{feff}"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700003,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "keeps-silent-at-text",
        &["reasonix/transport/text-refused", "reasonix/transport/bad-lines-refused-once"],
        Trigger::Reads("sidecert says hello"),
        Misdeed::Silence,
    ),
    flaw(
        "ends-at-text",
        &["reasonix/transport/text-refused"],
        Trigger::Reads("sidecert says hello"),
        Misdeed::Exit(1),
    ),
    flaw(
        "takes-control-characters",
        &["reasonix/transport/control-characters-refused"],
        Trigger::Reads("side\0cert"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700003,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "refuses-lines-twice",
        &["reasonix/transport/bad-lines-refused-once"],
        Trigger::Reads("sidecert says hello"),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#),
    ),
    flaw(
        "executes-two-documents",
        &["reasonix/transport/two-documents-not-executed"],
        Trigger::Reads("700004"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700004,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "puts-lines-together",
        &["reasonix/transport/indented-frame-not-executed"],
        Trigger::Reads("700006"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700006,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "ends-at-invalid-utf8",
        &["reasonix/transport/invalid-utf8-survived"],
        Trigger::Reads("700007"),
        Misdeed::Exit(1),
    ),
    flaw(
        "refuses-deep-frames",
        &["reasonix/transport/deep-nesting-served"],
        Trigger::Reads("[[[[]]]]"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"too deep"}}"#),
    ),
    flaw(
        "overflows-its-stack",
        &["reasonix/transport/deep-nesting-served"],
        Trigger::Reads("[[[[]]]]"),
        Misdeed::Exit(134),
    ),
    flaw(
        "keeps-silent-at-deeper-frames",
        &["reasonix/transport/deeper-nesting-refused"],
        Trigger::Reads("\"deeper\""),
        Misdeed::Silence,
    ),
    flaw(
        "writes-answers-into-each-other",
        &["reasonix/transport/only-frames", "reasonix/transport/many-answers-whole"],
        Trigger::Receives(r#"{"params":{"payload":{"text":"one of many"}}}"#),
        Misdeed::Interleave,
    ),
    flaw(
        "ends-at-damaged-frames",
        &["reasonix/transport/damaged-frames-survived"],
        Trigger::Reads("80000"),
        Misdeed::Exit(1),
    ),
    // ---- envelope ----
    flaw(
        "answers-with-result-and-error",
        &[
            "reasonix/envelope/frames-well-formed",
            "reasonix/ui/declared-action-accepted",
            "reasonix/ui/unknown-action-refused",
        ],
        Trigger::Answers(contract::UI_ACTION),
        Misdeed::Edit("\"result\"", "\"error\":null,\"result\""),
    ),
    flaw(
        "errs-without-a-message",
        &["reasonix/envelope/frames-well-formed", "reasonix/content/oversized-content-refused"],
        Trigger::Says(r#"{"error":{"data":{"reason":"frame_too_large"}}}"#),
        Misdeed::Edit("\"message\"", "\"massage\""),
    ),
    flaw(
        "answers-twice",
        &["reasonix/envelope/answered-once"],
        Trigger::Answers(contract::INTERCEPT),
        Misdeed::Twice,
    ),
    flaw(
        "answers-what-was-never-asked",
        &["reasonix/envelope/answers-what-was-asked"],
        Trigger::Answers(contract::INTERCEPT),
        Misdeed::First(r#"{"jsonrpc":"2.0","id":99424242,"result":{"decision":"continue"}}"#),
    ),
    flaw(
        "swaps-answers",
        &["reasonix/members/members-fit", "reasonix/streams/unknown-cancel-answered"],
        Trigger::Says(r#"{"result":{"cancelled":{"$any":true}}}"#),
        Misdeed::Edit("\"result\":{\"cancelled\":false}", "\"result\":{\"decision\":\"continue\"}"),
    ),
    flaw(
        "answers-notifications",
        &["reasonix/envelope/notifications-unanswered"],
        Trigger::Receives(
            r#"{"id":{"$absent":true},"method":"extension/event","params":{"event":"session.save"}}"#,
        ),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}"#),
    ),
    flaw(
        "answers-notifications-with-results",
        &["reasonix/envelope/notifications-unanswered", "reasonix/envelope/answers-what-was-asked"],
        Trigger::Receives(
            r#"{"id":{"$absent":true},"method":"extension/event","params":{"event":"session.save"}}"#,
        ),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
    ),
    flaw(
        "asks-under-text-ids",
        &["reasonix/envelope/own-ids-integers"],
        Trigger::Asks(contract::UI_PUBLISH),
        Misdeed::Edit("\"id\":", "\"id\":\"one\",\"was\":"),
    ),
    flaw(
        "sends-params-as-a-list",
        &["reasonix/envelope/own-params-objects"],
        Trigger::Asks(contract::UI_PUBLISH),
        Misdeed::First(r#"{"jsonrpc":"2.0","method":"host/sidecert","params":[1]}"#),
    ),
    flaw(
        "echoes-illegal-ids",
        &["reasonix/envelope/legal-ids-echoed"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id","of":{"$type":"string"}},"method":"extension/provider/stream/cancel"}"#,
        ),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32600,"message":"invalid request"}}"#,
        ),
    ),
    flaw(
        "serves-without-version",
        &["reasonix/envelope/version-demanded"],
        Trigger::Receives(r#"{"jsonrpc":{"$absent":true},"id":{"$capture":"id"},"method":{"$any":true}}"#),
        Misdeed::Instead(CANCELLED),
    ),
    flaw(
        "keeps-silent-at-invalid-requests",
        &["reasonix/envelope/version-demanded"],
        Trigger::Receives(r#"{"jsonrpc":"1.0"}"#),
        Misdeed::Silence,
    ),
    flaw(
        "refuses-more-members",
        &["reasonix/envelope/unknown-members-ignored"],
        Trigger::Receives(r#"{"x":{"$any":true},"id":{"$capture":"id"},"method":{"$any":true}}"#),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32600,"message":"what is x?"}}"#,
        ),
    ),
    flaw(
        "ignores-answers-with-more-members",
        &["reasonix/envelope/unknown-members-in-answers-ignored"],
        Trigger::Receives(r#"{"x":1,"result":{"$any":true}}"#),
        Misdeed::Silence,
    ),
    flaw(
        "serves-string-ids",
        &["reasonix/envelope/string-id-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id","of":{"$type":"string"}},"method":"extension/provider/stream/cancel"}"#,
        ),
        Misdeed::Instead(CANCELLED),
    ),
    flaw(
        "turns-string-ids-into-zero",
        &["reasonix/envelope/string-id-refused"],
        Trigger::Receives(r#"{"id":{"$type":"string"},"method":"extension/provider/stream/cancel"}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":0,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "serves-truth-values-as-ids",
        &["reasonix/envelope/odd-ids-refused"],
        Trigger::Receives(r#"{"id":true}"#),
        Misdeed::Instead(CANCELLED_NULL),
    ),
    flaw(
        "serves-written-fractions",
        &["reasonix/envelope/written-fractions-refused"],
        Trigger::Reads("\"id\":700010.0"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700010,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "keeps-silent-at-null-ids",
        &["reasonix/envelope/null-id-answered"],
        Trigger::Receives(r#"{"id":null,"method":{"$any":true}}"#),
        Misdeed::Silence,
    ),
    flaw(
        "rounds-ids",
        &["reasonix/envelope/ids-echoed"],
        Trigger::Says(r#"{"id":9007199254740993}"#),
        Misdeed::Edit("9007199254740993", "9007199254740992"),
    ),
    flaw(
        "rounds-huge-ids",
        &["reasonix/envelope/huge-ids-echoed"],
        Trigger::Reads("123456789012345678901234567890"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":1.2345678901234568e29,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "serves-params-as-a-list",
        &["reasonix/envelope/params-objects-demanded"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"$type":"array"}}"#),
        Misdeed::Instead(CANCELLED),
    ),
    flaw(
        "demands-params",
        &["reasonix/envelope/absent-params-empty"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/provider/stream/cancel","params":{"$absent":true}}"#,
        ),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32600,"message":"no params"}}"#,
        ),
    ),
    flaw(
        "executes-batches",
        &["reasonix/envelope/batches-refused", "reasonix/transport/only-frames"],
        Trigger::Reads("[{\"jsonrpc\":\"2.0\",\"id\":700020"),
        Misdeed::Instead(r#"[{"jsonrpc":"2.0","id":700020,"result":{"cancelled":false}}]"#),
    ),
    flaw(
        "ignores-what-is-no-object",
        &["reasonix/envelope/no-objects-refused"],
        Trigger::Receives("42"),
        Misdeed::Silence,
    ),
    flaw(
        "serves-requests-with-results",
        &["reasonix/envelope/requests-with-outcome-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":{"$any":true},"result":{"$any":true}}"#),
        Misdeed::Instead(CANCELLED),
    ),
    flaw(
        "serves-the-empty-method",
        &["reasonix/envelope/method-demanded"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":""}"#),
        Misdeed::Instead(CANCELLED),
    ),
    flaw(
        "ends-at-bad-responses",
        &["reasonix/envelope/bad-responses-survived"],
        Trigger::Receives(r#"{"id":{"$absent":true},"result":{"$any":true}}"#),
        Misdeed::Exit(1),
    ),
    flaw(
        "refuses-stray-responses",
        &["reasonix/envelope/stray-responses-ignored"],
        Trigger::Receives(r#"{"id":700032,"result":{"$any":true}}"#),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what is that?"}}"#),
    ),
    flaw(
        "takes-the-second-response",
        &[
            "reasonix/envelope/second-responses-ignored",
            "reasonix/envelope/unknown-members-in-answers-ignored",
        ],
        Trigger::Receives(r#"{"result":{"contentRef":"content_twice"}}"#),
        Misdeed::Exit(1),
    ),
    reaching(
        Reach::Time,
        flaw(
            "ends-at-late-responses",
            &["reasonix/envelope/late-responses-ignored"],
            Trigger::Receives(r#"{"result":{"contentRef":"content_late"}}"#),
            Misdeed::Exit(1),
        ),
    ),
    flaw(
        "matches-responses-by-text",
        &["reasonix/envelope/responses-matched-by-integer"],
        Trigger::Receives(r#"{"id":{"$type":"string"},"result":{"contentRef":"content_text-id"}}"#),
        Misdeed::Also(
            r#"{"jsonrpc":"2.0","id":710001,"error":{"code":-32603,"message":"oops","data":{"reason":"internal","retryable":true}}}"#,
        ),
    ),
    flaw(
        "gives-up-at-malformed-responses",
        &["reasonix/envelope/malformed-responses-leave-it-open"],
        Trigger::Receives(r#"{"result":{"contentRef":"content_both"},"error":{"$absent":true}}"#),
        Misdeed::Silence,
    ),
    flaw(
        "serves-any-method",
        &["reasonix/envelope/unknown-method-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/sidecert/none","params":{"$exact":{}}}"#,
        ),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{}}"#),
    ),
    flaw(
        "answers-events",
        &["reasonix/envelope/notifications-not-requested"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":"extension/event"}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{}}"#),
    ),
    flaw(
        "serves-its-own-methods",
        &["reasonix/envelope/own-methods-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":"host/ui/publish"}"#),
        Misdeed::Instead(ACCEPTED),
    ),
    flaw(
        "refuses-unknown-notifications",
        &["reasonix/envelope/unknown-notifications-ignored"],
        Trigger::Receives(r#"{"id":{"$absent":true},"method":"extension/sidecert/none"}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}"#),
    ),
    flaw(
        "serves-requests-without-ids",
        &["reasonix/envelope/requests-not-notified"],
        Trigger::Receives(r#"{"id":{"$absent":true},"method":"extension/provider/stream/cancel"}"#),
        Misdeed::Instead(CANCELLED_NULL),
    ),
    flaw(
        "takes-the-first-id",
        &["reasonix/envelope/last-of-repeated-members-counts"],
        Trigger::Reads("\"id\":700040,\"id\""),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700040,"result":{"cancelled":false}}"#),
    ),
    flaw(
        "drops-what-is-too-much",
        &["reasonix/envelope/overload-answered"],
        Trigger::Says(r#"{"error":{"code":-32099}}"#),
        Misdeed::Silence,
    ),
    // ---- members ----
    flaw(
        "decides-what-is-no-decision",
        &["reasonix/members/members-fit", "reasonix/interception/unwatched-points-continue"],
        Trigger::Answers(contract::INTERCEPT),
        Misdeed::Edit("\"continue\"", "\"Continue\""),
    ),
    only(
        V1,
        flaw(
            "provides-before-its-time",
            &["reasonix/members/members-fit"],
            Trigger::Answers(contract::INITIALIZE),
            Misdeed::Edit("\"replaces\":[]", "\"replaces\":[],\"provides\":[]"),
        ),
    ),
    flaw(
        "misspells-its-decision",
        &[
            "reasonix/members/names-exact",
            "reasonix/members/members-fit",
            "reasonix/interception/every-point-ruled",
            "reasonix/interception/unwatched-points-continue",
            "reasonix/interception/replaces-when-it-should",
        ],
        Trigger::Answers(contract::INTERCEPT),
        Misdeed::Edit("\"decision\"", "\"Decision\""),
    ),
    flaw(
        "writes-integers-as-fractions",
        &["reasonix/members/integers-written-plainly"],
        Trigger::Answers(contract::INITIALIZE),
        Misdeed::Edit("\"stateSchemaVersion\":1", "\"stateSchemaVersion\":1.0"),
    ),
    flaw(
        "takes-unknown-members",
        &["reasonix/members/unknown-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"x":1}}"#),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "takes-unknown-members-further-down",
        &["reasonix/members/unknown-deep-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"externalized":[{"x":1}]}}"#),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "fails-at-missing-members",
        &["reasonix/members/missing-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"timeoutMillis":{"$absent":true}}}"#,
        ),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "fails-at-null",
        &["reasonix/members/null-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"timeoutMillis":null}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "refuses-null-payloads",
        &["reasonix/members/null-payload-accepted"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"params":{"payload":null,"externalized":{"$absent":true}}}"#,
        ),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32602,"message":"no payload","data":{"reason":"invalid_params","retryable":false}}}"#,
        ),
    ),
    flaw(
        "fails-at-empty-names",
        &["reasonix/members/empty-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"streamId":""}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "takes-blank-names",
        &["reasonix/members/blank-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"streamId":"  "}}"#),
        Misdeed::Instead(CANCELLED),
    ),
    flaw(
        "takes-any-event",
        &["reasonix/members/enums-closed"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"event":"session.started"}}"#),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "takes-any-number",
        &["reasonix/members/minimums-kept"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"seq":0}}"#),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "takes-any-argument",
        &["reasonix/members/types-kept"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"args":{"a":1}}}"#),
        Misdeed::Instead(ACCEPTED),
    ),
    flaw(
        "refuses-bad-observations",
        &["reasonix/members/bad-observations-ignored"],
        Trigger::Receives(
            r#"{"id":{"$absent":true},"method":"extension/event","params":{"payload":{"$absent":true}}}"#,
        ),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no payload"}}"#),
    ),
    flaw(
        "refuses-bad-paths",
        &["reasonix/members/changed-resources-listed"],
        Trigger::Receives(r#"{"method":"extension/resources/changed","params":{"paths":null}}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no paths"}}"#),
    ),
    // ---- lifecycle ----
    flaw(
        "has-no-name",
        &["reasonix/lifecycle/initialize-complete", "reasonix/members/members-fit"],
        Trigger::Answers(contract::INITIALIZE),
        Misdeed::Edit("\"version\":\"0.1.0\"", "\"version\":\"\""),
    ),
    flaw(
        "speaks-another-version",
        &["reasonix/lifecycle/version-matches"],
        Trigger::Says(r#"{"result":{"protocolVersion":{"$any":true}}}"#),
        Misdeed::Edit("\"protocolVersion\":\"", "\"protocolVersion\":\"9"),
    ),
    flaw(
        "subscribes-to-what-is-not-allowed",
        &["reasonix/lifecycle/declares-within-manifest"],
        Trigger::Says(r#"{"result":{"subscriptions":{"$any":true},"providers":{"$any":true}}}"#),
        Misdeed::Edit("\"subscriptions\":[", "\"subscriptions\":[\"session.started\","),
    ),
    flaw(
        "replaces-what-is-not-allowed",
        &["reasonix/lifecycle/declares-within-manifest", "reasonix/lifecycle/declares-within-empty-manifest"],
        Trigger::Answers(contract::INITIALIZE),
        Misdeed::Edit("\"replaces\":[]", "\"replaces\":[\"tool:another\"]"),
    ),
    flaw(
        "does-not-heed-its-manifest",
        &["reasonix/lifecycle/declares-within-empty-manifest"],
        Trigger::Says(r#"{"result":{"subscriptions":[]}}"#),
        Misdeed::Edit("\"subscriptions\":[]", "\"subscriptions\":[\"input.receive\"]"),
    ),
    flaw(
        "speaks-too-soon",
        &["reasonix/lifecycle/silent-before-initialized"],
        Trigger::Answers(contract::INITIALIZE),
        Misdeed::Also(
            r#"{"jsonrpc":"2.0","method":"extension/provider/stream/end","params":{"streamId":"none","lastSeq":0}}"#,
        ),
    ),
    only(
        V2,
        flaw(
            "provides-nothing-by-name",
            &["reasonix/lifecycle/provides-fit", "reasonix/members/members-fit"],
            Trigger::Answers(contract::INITIALIZE),
            Misdeed::Edit("\"kind\":\"tool\"", "\"kind\":\"\""),
        ),
    ),
    flaw(
        "serves-before-initialize",
        &["reasonix/lifecycle/early-requests-refused"],
        Trigger::When(Phase::Started, contract::PROVIDER_CATALOG),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"providers":[]}}"#),
    ),
    flaw(
        "answers-early-notifications",
        &["reasonix/lifecycle/early-notifications-ignored"],
        Trigger::When(Phase::Started, contract::EVENT),
        Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too early"}}"#),
    ),
    flaw(
        "serves-before-initialized",
        &["reasonix/lifecycle/requests-before-initialized-refused"],
        Trigger::When(Phase::Answered, contract::INTERCEPT),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "initializes-twice",
        &["reasonix/lifecycle/second-initialize-refused"],
        Trigger::When(Phase::Answered, contract::INITIALIZE),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"protocolVersion":"1","name":"x","version":"1","stateSchemaVersion":1}}"#,
        ),
    ),
    flaw(
        "never-opens-again",
        &["reasonix/lifecycle/opens-with-initialized"],
        Trigger::When(Phase::Answered, contract::INITIALIZE),
        Misdeed::Then(contract::INTERCEPT, OOPS),
    ),
    flaw(
        "keeps-silent-at-a-late-initialize",
        &["reasonix/lifecycle/late-initialize-answered"],
        Trigger::When(Phase::Open, contract::INITIALIZE),
        Misdeed::Silence,
    ),
    flaw(
        "speaks-any-protocol",
        &["reasonix/lifecycle/other-protocol-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"protocolId":"sidecert.another.v1"}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "speaks-any-version",
        &["reasonix/lifecycle/other-major-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"protocolVersion":{"$like":"9*"}}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "ends-silently-at-another-version",
        &["reasonix/lifecycle/other-major-refused"],
        Trigger::Receives(r#"{"params":{"protocolVersion":{"$like":"9*"}}}"#),
        Misdeed::Exit(1),
    ),
    flaw(
        "takes-words-for-versions",
        &["reasonix/lifecycle/version-no-number-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"protocolVersion":"one"}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "takes-unknown-members-of-initialize",
        &["reasonix/lifecycle/unknown-member-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"method":"extension/initialize","params":{"x":1}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "takes-unknown-members-of-manifests",
        &["reasonix/lifecycle/unknown-manifest-member-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"manifest":{"x":1}}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "takes-unknown-members-of-sessions",
        &["reasonix/lifecycle/unknown-session-member-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"session":{"x":1}}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "fails-without-a-manifest",
        &["reasonix/lifecycle/manifest-demanded"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/initialize","params":{"manifest":{"$absent":true}}}"#,
        ),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "fails-without-params",
        &["reasonix/lifecycle/params-demanded"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/initialize","params":{"$absent":true}}"#,
        ),
        Misdeed::Instead(OOPS),
    ),
    reaching(
        Reach::Time,
        flaw(
            "answers-shutdown-late",
            &["reasonix/lifecycle/shutdown-answered-in-time"],
            Trigger::Receives(r#"{"method":"extension/shutdown","params":{"timeoutMillis":1000}}"#),
            Misdeed::Delay(60_000),
        ),
    ),
    flaw(
        "declines-to-end",
        &["reasonix/lifecycle/shutdown-accepted"],
        Trigger::Answers(contract::SHUTDOWN),
        Misdeed::Edit("true", "false"),
    ),
    flaw(
        "takes-negative-times",
        &["reasonix/lifecycle/negative-timeout-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"params":{"timeoutMillis":-1},"method":"extension/shutdown"}"#,
        ),
        Misdeed::Instead(ACCEPTED),
    ),
    flaw(
        "refuses-an-early-shutdown",
        &["reasonix/lifecycle/early-shutdown-served"],
        Trigger::When(Phase::Started, contract::SHUTDOWN),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32600,"message":"too early","data":{"reason":"protocol_error","retryable":false}}}"#,
        ),
    ),
    reaching(
        Reach::Process,
        flaw(
            "outlives-shutdown",
            &["reasonix/lifecycle/exits-after-shutdown"],
            Trigger::InputEnds { after_shutdown: true },
            Misdeed::Hang,
        ),
    ),
    reaching(
        Reach::Process,
        flaw(
            "outlives-its-input",
            &["reasonix/lifecycle/exits-at-end-of-input"],
            Trigger::InputEnds { after_shutdown: false },
            Misdeed::Hang,
        ),
    ),
    reaching(
        Reach::Process,
        flaw(
            "ends-with-a-failure",
            &["reasonix/lifecycle/ends-cleanly"],
            Trigger::InputEnds { after_shutdown: false },
            Misdeed::Exit(1),
        ),
    ),
    flaw(
        "lists-undeclared-providers",
        &["reasonix/lifecycle/no-catalog-without-providers"],
        Trigger::Refuses(contract::PROVIDER_CATALOG, reason::UNKNOWN_METHOD),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"providers":[]}}"#),
    ),
    flaw(
        "takes-undeclared-actions",
        &["reasonix/lifecycle/no-actions-without-ui"],
        Trigger::Refuses(contract::UI_ACTION, reason::UNKNOWN_METHOD),
        Misdeed::Instead(ACCEPTED),
    ),
    // ---- content ----
    flaw(
        "reads-past-the-end",
        &["reasonix/content/read-as-given"],
        Trigger::Says(
            r#"{"method":"host/content/read","params":{"contentRef":{"$like":"content_*0*"},"offset":0}}"#,
        ),
        Misdeed::Edit("\"offset\":0", "\"offset\":99999999"),
    ),
    flaw(
        "reads-before-its-time",
        &[
            "reasonix/content/read-when-open",
            "reasonix/lifecycle/silent-before-initialized",
            "reasonix/content/read-as-given",
        ],
        Trigger::Answers(contract::INITIALIZE),
        Misdeed::Also(
            r#"{"jsonrpc":"2.0","id":1000,"method":"host/content/read","params":{"contentRef":"none","offset":0}}"#,
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "loses-a-piece-of-content",
            &["reasonix/content/resolved-before-ruling"],
            Trigger::Says(r#"{"result":{"replacement":{"text":{"$like":"*😀"}}}}"#),
            Misdeed::Edit("😀", ""),
        ),
    ),
    flaw(
        "trusts-any-bytes",
        &["reasonix/content/tampered-content-refused"],
        Trigger::Receives(r#"{"result":{"contentRef":"content_wrong-bytes"}}"#),
        Misdeed::Reply(RULED),
    ),
    flaw(
        "takes-content-of-any-length",
        &["reasonix/content/oversized-content-refused"],
        Trigger::Says(r#"{"error":{"data":{"reason":"frame_too_large"}}}"#),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "takes-odd-descriptors",
        &["reasonix/content/odd-descriptors-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"externalized":[{"jsonPointer":"/event"}]}}"#),
        Misdeed::Instead(RULED),
    ),
    flaw(
        "reads-in-circles",
        &["reasonix/content/odd-pages-refused"],
        Trigger::Receives(r#"{"result":{"contentRef":"content_stuck"}}"#),
        Misdeed::Silence,
    ),
    flaw(
        "hides-that-content-is-gone",
        &["reasonix/content/expired-passed-on", "reasonix/errors/more-data-tolerated"],
        Trigger::Says(r#"{"error":{"data":{"reason":"content_ref_expired"}}}"#),
        Misdeed::Instead(OOPS),
    ),
    // ---- interception ----
    flaw(
        "fails-at-one-point",
        &["reasonix/interception/every-point-ruled"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"event":"compaction.prepare"}}"#,
        ),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "blocks-where-it-does-not-step-in",
        &["reasonix/interception/unwatched-points-continue"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"event":"frontend.event"}}"#,
        ),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"block","reason":"no"}}"#,
        ),
    ),
    flaw(
        "allows-everywhere",
        &["reasonix/interception/permissions-in-place"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"event":"tool.before"}}"#,
        ),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"allow"}}"#),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "replaces-by-something-else",
            &["reasonix/interception/replacements-fit"],
            Trigger::Says(REPLACING),
            Misdeed::Edit("\"text\"", "\"prompt\""),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "forgets-its-replacement",
            &["reasonix/interception/replaces-when-it-should"],
            Trigger::Says(REPLACING),
            Misdeed::Edit(",\"replacement\":{\"text\":\"sidecert was here\"}", ""),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "changes-what-it-passes-on",
            &["reasonix/interception/payload-unchanged"],
            Trigger::Says(r#"{"result":{"replacement":{"text":{"$like":"*end"}}}}"#),
            Misdeed::Edit("\u{2028}", "?"),
        ),
    ),
    flaw(
        "serves-one-at-a-time",
        &["reasonix/interception/intercepts-overlap"],
        Trigger::Always,
        Misdeed::Serial,
    ),
    reaching(
        Reach::Time,
        flaw(
            "rules-late",
            &["reasonix/interception/ruled-in-time"],
            Trigger::Receives(SLOW),
            Misdeed::Silence,
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "ends-at-a-fault",
            &["reasonix/interception/faults-contained"],
            Trigger::Receives(PANIC),
            Misdeed::Exit(101),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "rules-in-spite-of-a-fault",
            &["reasonix/interception/faults-contained"],
            Trigger::Receives(PANIC),
            Misdeed::Instead(RULED),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "shows-its-insides",
            &["reasonix/interception/faults-hidden"],
            Trigger::Receives(PANIC),
            Misdeed::Instead(
                r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32603,"message":"Traceback: ValueError in guest.py","data":{"reason":"internal","retryable":true}}}"#,
            ),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "never-recovers-from-a-fault",
            &["reasonix/interception/serves-after-fault"],
            Trigger::Receives(PANIC),
            Misdeed::Then(contract::INTERCEPT, OOPS),
        ),
    ),
    // ---- providers and streams ----
    flaw(
        "forgets-its-catalog",
        &["reasonix/providers/catalog-answered"],
        Trigger::Says(r#"{"result":{"protocolVersion":{"$absent":true},"providers":{"$any":true}}}"#),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32601,"message":"no such method","data":{"reason":"unknown_method","retryable":false}}}"#,
        ),
    ),
    flaw(
        "lists-its-key",
        &["reasonix/providers/credentials-absent"],
        Trigger::Answers(contract::PROVIDER_CATALOG),
        Misdeed::Edit("\"model\":\"echo\"", "\"model\":\"echo sk-abcdefghij1234567890\""),
    ),
    flaw(
        "skips-a-chunk",
        &["reasonix/streams/chunks-contiguous", "reasonix/streams/streams-apart"],
        Trigger::Says(
            r#"{"method":"extension/provider/stream/chunk","params":{"streamId":"sidecert-one","seq":2}}"#,
        ),
        Misdeed::Silence,
    ),
    flaw(
        "numbers-from-zero",
        &[
            "reasonix/streams/numbered-from-one",
            "reasonix/streams/chunks-contiguous",
            "reasonix/members/members-fit",
        ],
        Trigger::Says(
            r#"{"method":"extension/provider/stream/chunk","params":{"streamId":"sidecert-ten","seq":1}}"#,
        ),
        Misdeed::Edit("\"seq\":1", "\"seq\":0"),
    ),
    flaw(
        "ends-streams-twice",
        &["reasonix/streams/ended-once"],
        Trigger::Asks(contract::STREAM_END),
        Misdeed::Twice,
    ),
    flaw(
        "miscounts-its-chunks",
        &["reasonix/streams/ended-once"],
        Trigger::Says(r#"{"method":"extension/provider/stream/end","params":{"lastSeq":6}}"#),
        Misdeed::Edit("\"lastSeq\":6", "\"lastSeq\":7"),
    ),
    flaw(
        "sends-usage-without-usage",
        &["reasonix/streams/chunks-complete"],
        Trigger::Says(r#"{"params":{"chunk":{"type":"usage"}}}"#),
        Misdeed::Edit(
            r#","usage":{"promptTokens":3,"completionTokens":2,"totalTokens":5,"cacheHitTokens":1,"cacheMissTokens":2,"reasoningTokens":1}"#,
            "",
        ),
    ),
    flaw(
        "signs-its-text",
        &["reasonix/streams/signatures-with-reasoning"],
        Trigger::Says(r#"{"params":{"chunk":{"type":"text"}}}"#),
        Misdeed::Edit("\"type\":\"text\"", "\"type\":\"text\",\"signature\":\"x\""),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "ends-empty-streams-at-one",
            &["reasonix/streams/empty-stream-ends-at-zero", "reasonix/streams/ended-once"],
            Trigger::Says(r#"{"params":{"lastSeq":0}}"#),
            Misdeed::Edit("\"lastSeq\":0", "\"lastSeq\":1"),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "hides-its-failure",
            &["reasonix/streams/failure-told"],
            Trigger::Says(r#"{"params":{"chunk":{"type":"error"}}}"#),
            Misdeed::Edit(
                r#""type":"error","error":{"code":"provider_failed","message":"the model refused the key"}"#,
                r#""type":"done""#,
            ),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "tells-its-key",
            &["reasonix/streams/errors-redacted"],
            Trigger::Says(r#"{"params":{"chunk":{"type":"error"}}}"#),
            Misdeed::Edit("the key", "the key sk-abcdefghij1234567890"),
        ),
    ),
    flaw(
        "opens-any-provider",
        &["reasonix/streams/unknown-provider-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"providerRef":"sidecert-none"}}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":false}}"#),
    ),
    flaw(
        "takes-unknown-members-of-streams",
        &["reasonix/streams/unknown-member-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/provider/stream/open","params":{"x":1}}"#,
        ),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "takes-null-for-lists",
        &["reasonix/streams/lists-demanded"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"request":{"messages":null}}}"#),
        Misdeed::Instead(OOPS),
    ),
    flaw(
        "begins-below-zero",
        &["reasonix/streams/negative-base-refused"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"seqBase":-1}}"#),
        Misdeed::Instead(OOPS),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "opens-streams-twice",
            &["reasonix/streams/live-id-refused"],
            Trigger::Refuses(contract::STREAM_OPEN, reason::PROTOCOL_ERROR),
            Misdeed::Instead(ACCEPTED),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "goes-on-after-a-cancel",
            &[
                "reasonix/streams/silent-after-cancel",
                "reasonix/streams/chunks-contiguous",
                "reasonix/streams/ended-once",
            ],
            Trigger::Says(r#"{"result":{"cancelled":true}}"#),
            Misdeed::Also(
                r#"{"jsonrpc":"2.0","method":"extension/provider/stream/chunk","params":{"streamId":"sidecert-long","seq":99999,"chunk":{"type":"text","text":"x"}}}"#,
            ),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "denies-its-cancel",
            &["reasonix/streams/cancel-answered"],
            Trigger::Says(r#"{"result":{"cancelled":true}}"#),
            Misdeed::Edit("true", "false"),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "never-ends-what-is-cancelled",
            &["reasonix/streams/cancelled-stream-ends"],
            Trigger::Says(r#"{"params":{"interrupted":true}}"#),
            Misdeed::Silence,
        ),
    ),
    flaw(
        "cancels-anything",
        &["reasonix/streams/unknown-cancel-answered"],
        Trigger::Says(r#"{"result":{"cancelled":false}}"#),
        Misdeed::Edit("false", "true"),
    ),
    // ---- structured UI ----
    reaching(
        Reach::Provoked,
        flaw(
            "shows-nothing",
            &["reasonix/ui/shows-when-it-should"],
            Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"payload":{"text":"sidecert:publish"}}}"#),
            Misdeed::Instead(RULED),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "shows-in-another-session",
            &["reasonix/ui/bound-to-session"],
            Trigger::Asks(contract::UI_PUBLISH),
            Misdeed::Edit("\"generation\":1", "\"generation\":2"),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "shows-markup",
            &["reasonix/ui/structured-data-only"],
            Trigger::Asks(contract::UI_PUBLISH),
            Misdeed::Edit("\"label\":\"sidecert\"", "\"label\":\"<script>alert(1)</script>\""),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "loads-pictures",
            &["reasonix/ui/markdown-tame"],
            Trigger::Asks(contract::UI_PUBLISH),
            Misdeed::Edit("*hello*", "![x](https://example.invalid/x.png)"),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "shows-what-is-no-status",
            &["reasonix/ui/payloads-fit"],
            Trigger::Asks(contract::UI_PUBLISH),
            Misdeed::Edit("\"severity\":\"info\"", "\"severity\":\"fine\""),
        ),
    ),
    flaw(
        "refuses-its-own-action",
        &["reasonix/ui/declared-action-accepted"],
        Trigger::Receives(ACTION),
        Misdeed::Reply(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":false}}"#),
    ),
    flaw(
        "takes-any-action",
        &["reasonix/ui/unknown-action-refused"],
        Trigger::Says(r#"{"result":{"accepted":false}}"#),
        Misdeed::Edit("false", "true"),
    ),
    flaw(
        "takes-forms-without-values",
        &["reasonix/ui/values-demanded"],
        Trigger::Receives(r#"{"id":{"$capture":"id"},"params":{"values":null,"surfaceId":"sidecert-none"}}"#),
        Misdeed::Instead(ACCEPTED),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "fails-when-it-is-dismissed",
            &["reasonix/ui/dismissal-handled"],
            Trigger::Receives(r#"{"result":{"cancelled":true}}"#),
            Misdeed::Exit(1),
        ),
    ),
    reaching(
        Reach::Provoked,
        flaw(
            "shows-without-leave",
            &["reasonix/ui/nothing-without-ui"],
            Trigger::Receives(r#"{"params":{"manifest":{"capabilities":[]}}}"#),
            Misdeed::Also(
                r#"{"jsonrpc":"2.0","id":1001,"method":"host/ui/publish","params":{"surfaceId":"x","kind":"status","payload":{"label":"x"},"sessionId":"sidecert-0000000000000000","generation":1}}"#,
            ),
        ),
    ),
    // ---- errors ----
    flaw(
        "errs-with-another-code",
        &["reasonix/errors/codes-fit-reasons"],
        Trigger::Says(r#"{"error":{"data":{"reason":"content_ref_expired"}}}"#),
        Misdeed::Edit("-32000", "-32001"),
    ),
    flaw(
        "errs-for-a-reason-of-its-own",
        &["reasonix/errors/reasons-known"],
        Trigger::Says(r#"{"error":{"code":-32601,"data":{"reason":"unknown_method"}}}"#),
        Misdeed::Edit("\"reason\":\"unknown_method\"", "\"reason\":\"no_such_method\""),
    ),
    flaw(
        "says-that-it-is-retryable",
        &["reasonix/errors/retryable-fits-reasons"],
        Trigger::Says(r#"{"error":{"data":{"reason":"unknown_method"}}}"#),
        Misdeed::Edit("\"retryable\":false", "\"retryable\":true"),
    ),
    flaw(
        "acts-by-number",
        &["reasonix/errors/action-is-text"],
        Trigger::Says(r#"{"error":{"data":{"reason":"unknown_method"}}}"#),
        Misdeed::Edit("\"retryable\":false", "\"retryable\":false,\"action\":1"),
    ),
    flaw(
        "errs-without-data",
        &["reasonix/errors/domain-errors-structured"],
        Trigger::Says(r#"{"error":{"code":-32000,"data":{"reason":"frame_too_large"}}}"#),
        Misdeed::Edit("\"retryable\"", "\"retry\""),
    ),
    flaw(
        "explains-frame-errors",
        &["reasonix/errors/frame-errors-plain"],
        Trigger::Says(r#"{"id":null,"error":{"code":-32600}}"#),
        Misdeed::Edit(
            "\"message\"",
            "\"data\":{\"reason\":\"protocol_error\",\"retryable\":false},\"message\"",
        ),
    ),
    flaw(
        "trusts-misdescribed-reasons",
        &["reasonix/errors/misdescribed-reason-distrusted"],
        Trigger::Receives(r#"{"error":{"data":{"reason":"content_ref_expired","retryable":false}}}"#),
        Misdeed::Reply(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32000,"message":"gone","data":{"reason":"content_ref_expired","retryable":true}}}"#,
        ),
    ),
    // ---- what breaks nothing but the run ----
    reaching(Reach::Time, flaw("holds-its-answers-back", &[], Trigger::Always, Misdeed::HoldsBack)),
    reaching(Reach::Time, flaw("never-answers", &[], Trigger::Always, Misdeed::Deaf)),
    reaching(
        Reach::Time,
        flaw(
            "waits-at-another-version",
            &[],
            Trigger::Receives(r#"{"params":{"protocolVersion":{"$like":"9*"}}}"#),
            Misdeed::Silence,
        ),
    ),
    reaching(Reach::Process, flaw("explains-its-usage", &[], Trigger::Starts, Misdeed::Exit(0))),
];

/// The intercept that asks a mock to say more than a frame can hold.
const LARGE: &str = r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"payload":{"text":"sidecert:large"}}}"#;
/// The intercept that asks a mock to fail.
const PANIC: &str = r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"payload":{"text":"sidecert:panic"}}}"#;
/// The call of the action that a mock declares.
const ACTION: &str =
    r#"{"id":{"$capture":"id"},"method":"extension/ui/action","params":{"actionId":"demo"}}"#;
/// The mock's replacement.
const REPLACING: &str = r#"{"result":{"replacement":{"text":"sidecert was here"}}}"#;
/// The intercept that asks a mock to take its time.
const SLOW: &str = r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"payload":{"text":"sidecert:slow"}}}"#;
