//! The flaws of the mock plugin, in the order of the requirements that they break.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::requirement::Id;
use sidecert_proto::webcodex::contract::{INITIALIZE, TOOLS_CALL, TOOLS_LIST};

use crate::{Flaw, Misdeed, Reach, Trigger};

const fn flaw(name: &'static str, breaks: &'static [Id], at: Trigger, does: Misdeed) -> Flaw {
    Flaw { name, side: Guest, editions: 1, breaks, reach: Reach::Frame, at, does }
}

/// What is written in a list of tools.
const fn lists(
    name: &'static str,
    breaks: &'static [Id],
    written: &'static str,
    instead: &'static str,
) -> Flaw {
    flaw(name, breaks, Trigger::Answers(TOOLS_LIST), Misdeed::Edit(written, instead))
}

/// What is written in a result of a call.
const fn gives(
    name: &'static str,
    breaks: &'static [Id],
    written: &'static str,
    instead: &'static str,
) -> Flaw {
    flaw(name, breaks, Trigger::Answers(TOOLS_CALL), Misdeed::Edit(written, instead))
}

const NOTHING: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{}}"#;
const NOTHING_UNDER_NULL: &str = r#"{"jsonrpc":"2.0","id":null,"result":{}}"#;
const CALLED: &str =
    r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"content":[{"type":"text","text":"done"}]}}"#;
const NO_TOOLS: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"tools":[]}}"#;
const AGAIN: &str =
    r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32600,"message":"it was said before"}}"#;
const OTHER: &str =
    r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"protocolVersion":"webcodex-plugin-v0"}}"#;
const NO_JSON: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#;
const HANDSHAKE: &str = r#"{"method":"initialize","params":{"protocolVersion":"webcodex-plugin-v1"}}"#;
/// 33 items where one should be.
const MANY_ITEMS: &str = r#""content":[{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},{"type":"text","text":""},"#;

/// Every flaw.
pub static FLAWS: &[Flaw] = &[
    // ---- wire ----
    flaw(
        "logs-to-standard-output",
        &["webcodex/wire/only-frames"],
        Trigger::Receives(HANDSHAKE),
        Misdeed::Also("plugin: ready"),
    ),
    gives(
        "gives-an-error-as-well",
        &["webcodex/wire/responses-well-formed"],
        "\"result\"",
        "\"error\":null,\"result\"",
    ),
    flaw(
        "answers-what-was-never-asked",
        &["webcodex/wire/ids-echoed"],
        Trigger::Answers(TOOLS_CALL),
        Misdeed::First(r#"{"jsonrpc":"2.0","id":99424242,"result":{}}"#),
    ),
    flaw("answers-twice", &["webcodex/wire/answered-once"], Trigger::Answers(TOOLS_CALL), Misdeed::Twice),
    flaw(
        "refuses-without-a-word",
        &["webcodex/wire/messages-bounded"],
        Trigger::Says(r#"{"error":{"code":-32601}}"#),
        Misdeed::Edit("no such method", ""),
    ),
    flaw(
        "reads-by-chunk",
        &["webcodex/wire/pieces-put-together", "webcodex/wire/ids-echoed"],
        Trigger::Always,
        Misdeed::ByReads,
    ),
    flaw(
        "answers-in-any-order",
        &["webcodex/wire/answered-in-order"],
        Trigger::Receives(HANDSHAKE),
        Misdeed::Delay(200),
    ),
    flaw(
        "refuses-carriage-returns",
        &["webcodex/wire/carriage-return-served"],
        Trigger::Reads("}\r"),
        Misdeed::Instead(NO_JSON),
    ),
    flaw(
        "ends-at-text",
        &["webcodex/wire/text-not-served"],
        Trigger::Reads("sidecert says hello"),
        Misdeed::Exit(1),
    ),
    flaw(
        "serves-blank-lines",
        &["webcodex/wire/blank-line-not-served"],
        Trigger::Blank,
        Misdeed::Instead(NOTHING_UNDER_NULL),
    ),
    flaw(
        "executes-batches",
        &["webcodex/wire/batch-not-executed"],
        Trigger::Reads("[{"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":700001,"result":{"tools":[]}}"#),
    ),
    flaw("ends-at-null", &["webcodex/wire/null-survived"], Trigger::Receives("null"), Misdeed::Exit(1)),
    flaw(
        "rounds-ids",
        &["webcodex/wire/large-ids-echoed"],
        Trigger::Receives(r#"{"id":9007199254740991}"#),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":9007199254740992,"result":{"tools":[]}}"#),
    ),
    // ---- lifecycle ----
    flaw(
        "says-another-version",
        &["webcodex/lifecycle/version-said"],
        Trigger::Answers(INITIALIZE),
        Misdeed::Edit("webcodex-plugin-v1", "webcodex-plugin-v2"),
    ),
    flaw(
        "speaks-every-version",
        &["webcodex/lifecycle/other-version-refused"],
        Trigger::Receives(r#"{"method":"initialize","params":{"protocolVersion":"webcodex-plugin-v0"}}"#),
        Misdeed::Instead(OTHER),
    ),
    flaw(
        "shakes-hands-once",
        &["webcodex/lifecycle/initialize-again-served"],
        Trigger::Receives(HANDSHAKE),
        Misdeed::Then(INITIALIZE, AGAIN),
    ),
    flaw(
        "serves-every-method",
        &["webcodex/lifecycle/unknown-method-refused"],
        Trigger::Receives(r#"{"method":"resources/list"}"#),
        Misdeed::Instead(NOTHING),
    ),
    flaw(
        "ends-at-null-params",
        &["webcodex/lifecycle/odd-params-survived"],
        Trigger::Receives(r#"{"params":null}"#),
        Misdeed::Exit(1),
    ),
    Flaw {
        reach: Reach::Process,
        ..flaw(
            "outlives-its-input",
            &["webcodex/lifecycle/ends-with-its-input"],
            Trigger::InputEnds { after_shutdown: false },
            Misdeed::Hang,
        )
    },
    // ---- tools ----
    lists(
        "lists-in-pages",
        &["webcodex/tools/listed", "webcodex/tools/no-more-members"],
        r#"{"tools":"#,
        r#"{"nextCursor":"1","tools":"#,
    ),
    lists("lists-icons", &["webcodex/tools/no-more-members"], r#""title":"#, r#""icons":[],"title":"#),
    lists("lists-a-name-twice", &["webcodex/tools/names-unique"], r#""name":"add""#, r#""name":"echo""#),
    lists(
        "lists-names-with-spaces",
        &["webcodex/tools/names-plain"],
        r#""name":"add""#,
        r#""name":"add it""#,
    ),
    lists("lists-an-empty-title", &["webcodex/tools/list-bounded"], r#""title":"Echo""#, r#""title":"""#),
    lists(
        "lists-a-pattern",
        &["webcodex/tools/schemas-in-profile"],
        r#""maxLength":4096"#,
        r#""maxLength":4096,"pattern":".""#,
    ),
    lists(
        "lists-too-much",
        &["webcodex/tools/schemas-bounded"],
        r#""maxLength":4096"#,
        r#""maxLength":65537"#,
    ),
    flaw(
        "forgets-its-tools",
        &["webcodex/tools/list-stays"],
        Trigger::Receives(r#"{"method":"tools/call","params":{"name":"sidecert-none"}}"#),
        Misdeed::Then(TOOLS_LIST, NO_TOOLS),
    ),
    // ---- calls ----
    flaw(
        "calls-what-it-inherits",
        &["webcodex/calls/unknown-tool-refused"],
        Trigger::Receives(r#"{"method":"tools/call","params":{"name":"toString"}}"#),
        Misdeed::Instead(CALLED),
    ),
    gives("gives-images", &["webcodex/calls/content-is-text"], r#""type":"text""#, r#""type":"image""#),
    gives(
        "gives-a-list",
        &["webcodex/calls/structured-content-is-object", "webcodex/calls/output-matches"],
        r#""structuredContent":{"sum":3}"#,
        r#""structuredContent":[3]"#,
    ),
    gives("gives-no-sum", &["webcodex/calls/output-matches"], r#""structuredContent":{"sum":3},"#, ""),
    gives("gives-fractions", &["webcodex/calls/integers-written"], r#"{"sum":3}"#, r#"{"sum":3.0}"#),
    gives(
        "gives-numbers-for-booleans",
        &["webcodex/calls/is-error-boolean"],
        r#""isError":false"#,
        r#""isError":0"#,
    ),
    gives("gives-more", &["webcodex/calls/no-more-members"], r#""isError":"#, r#""_meta":{},"isError":"#),
    gives("gives-escapes", &["webcodex/calls/texts-plain"], r#""text":"3""#, r#""text":"\u001b[1m3""#),
    gives("gives-many-texts", &["webcodex/calls/results-bounded"], r#""content":["#, MANY_ITEMS),
];
