//! The flaws of the Reasonix mock guest, and the provocations that it honours.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::json::Tape;
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::guest::Said;
use sidecert_proto::requirement::Editions;
use sidecert_proto::rpc::{self, Envelope};

use crate::{Flaw, Misdeed, Reach, Trigger};

const V1: Editions = 1;
const V2: Editions = 2;
const BOTH: Editions = V1 | V2;

/// Every flaw, in the order of the requirements that they break.
pub static FLAWS: &[Flaw] = &[
    Flaw {
        name: "answers-notifications",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/notifications-unanswered"],
        reach: Reach::Frame,
        at: Trigger::Receives(r#"{"id":{"$absent":true},"method":"extension/event"}"#),
        does: Misdeed::Also(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}"#,
        ),
    },
    Flaw {
        name: "answers-notifications-with-results",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/notifications-unanswered"],
        reach: Reach::Frame,
        at: Trigger::Receives(r#"{"id":{"$absent":true},"method":"extension/event"}"#),
        does: Misdeed::Also(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
    },
    Flaw {
        name: "refuses-large-frames",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/largest-frame-served"],
        reach: Reach::Frame,
        at: Trigger::LongLine,
        does: Misdeed::Limit(50),
    },
    Flaw {
        name: "serves-oversized-frames",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/oversized-frame-fatal"],
        reach: Reach::Frame,
        at: Trigger::LongLine,
        does: Misdeed::Limit(200),
    },
    Flaw {
        name: "writes-beyond-the-limit",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/frames-within-limit"],
        reach: Reach::Provoked,
        at: Trigger::Receives(LARGE),
        does: Misdeed::Overfill,
    },
    Flaw {
        name: "serves-string-ids",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/string-id-refused"],
        reach: Reach::Frame,
        at: Trigger::Receives(
            r#"{"id":{"$capture":"id","of":{"$type":"string"}},"method":"extension/provider/stream/cancel"}"#,
        ),
        does: Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"cancelled":false}}"#),
    },
    Flaw {
        name: "misspells-its-decision",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/members-fit"],
        reach: Reach::Frame,
        at: Trigger::Answers(contract::INTERCEPT),
        does: Misdeed::Edit("\"continue\"", "\"Continue\""),
    },
    Flaw {
        name: "provides-before-its-time",
        side: Guest,
        editions: V1,
        breaks: &["reasonix/transport/members-fit"],
        reach: Reach::Frame,
        at: Trigger::Answers(contract::INITIALIZE),
        does: Misdeed::Edit("\"replaces\":[]", "\"replaces\":[],\"provides\":[]"),
    },
    Flaw {
        name: "writes-integers-as-fractions",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/transport/integers-written-plainly"],
        reach: Reach::Frame,
        at: Trigger::Answers(contract::INITIALIZE),
        does: Misdeed::Edit("\"stateSchemaVersion\":1", "\"stateSchemaVersion\":1.0"),
    },
    Flaw {
        name: "speaks-too-soon",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/lifecycle/silent-before-initialized"],
        reach: Reach::Frame,
        at: Trigger::Answers(contract::INITIALIZE),
        does: Misdeed::Also(
            r#"{"jsonrpc":"2.0","id":1000,"method":"host/ui/publish","params":{"surfaceId":"hello","kind":"status","payload":{"label":"here I am"},"sessionId":"unknown","generation":1}}"#,
        ),
    },
    Flaw {
        name: "provides-nothing-by-name",
        side: Guest,
        editions: V2,
        breaks: &["reasonix/lifecycle/provides-fit", "reasonix/transport/members-fit"],
        reach: Reach::Frame,
        at: Trigger::Answers(contract::INITIALIZE),
        does: Misdeed::Edit("\"kind\":\"tool\"", "\"kind\":\"\""),
    },
    Flaw {
        name: "answers-shutdown-late",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/lifecycle/shutdown-answered-in-time"],
        reach: Reach::Time,
        at: Trigger::Answers(contract::SHUTDOWN),
        does: Misdeed::Delay(60_000),
    },
    Flaw {
        name: "outlives-shutdown",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/lifecycle/exits-after-shutdown"],
        reach: Reach::Process,
        at: Trigger::InputEnds { after_shutdown: true },
        does: Misdeed::Hang,
    },
    Flaw {
        name: "outlives-its-input",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/lifecycle/exits-at-end-of-input"],
        reach: Reach::Process,
        at: Trigger::InputEnds { after_shutdown: false },
        does: Misdeed::Hang,
    },
    Flaw {
        name: "reads-past-the-end",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/content/read-as-given"],
        reach: Reach::Frame,
        at: Trigger::Asks(contract::CONTENT_READ),
        does: Misdeed::Edit("\"offset\":0", "\"offset\":99999999"),
    },
    Flaw {
        name: "refuses-with-an-internal-error",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/interception/incomplete-intercept-refused"],
        reach: Reach::Frame,
        at: Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"timeoutMillis":{"$absent":true}}}"#,
        ),
        does: Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32603,"message":"oops","data":{"reason":"internal","retryable":true}}}"#,
        ),
    },
    Flaw {
        name: "forgets-its-catalog",
        side: Guest,
        editions: BOTH,
        breaks: &["reasonix/providers/catalog-answered"],
        reach: Reach::Frame,
        at: Trigger::Answers(contract::PROVIDER_CATALOG),
        does: Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32601,"message":"no such method","data":{"reason":"unknown_method","retryable":false}}}"#,
        ),
    },
];

/// The intercept that asks a mock to say more than a frame can hold.
const LARGE: &str = r#"{"id":{"$capture":"id"},"method":"extension/intercept","params":{"payload":{"text":"sidecert:large"}}}"#;

/// Honours a provocation: whether `line` is one, and what the mock says to it.
pub fn provoked(line: &[u8], said: &mut Vec<Said>) -> bool {
    // What is longer is none, and not worth a scan.
    const PROVOCATION_BYTES_MAX: usize = 4096;
    if line.len() > PROVOCATION_BYTES_MAX || !has_mark(line) {
        return false;
    }
    let Ok(tape) = Tape::scan(line) else { return false };
    let Ok(Envelope::Request { id, params: Some(params), .. }) = rpc::classify(tape.root()) else {
        return false;
    };
    let text = params.pointer("/payload/text").and_then(|text| text.as_str());
    if text.as_deref() != Some("sidecert:large") {
        return false;
    }
    // The answer would not fit, so that call fails, and only that call.
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"the response exceeds the frame limit"}}}}"#
    );
    said.push(Said { method: contract::INTERCEPT.to_owned(), answer: true, line: line.into_bytes() });
    true
}

/// Whether the line may be a provocation at all: they all have the mark.
fn has_mark(line: &[u8]) -> bool {
    const MARK: &[u8] = b"sidecert:";
    line.windows(MARK.len()).any(|window| window == MARK)
}
