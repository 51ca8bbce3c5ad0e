//! "Transport": bytes and lines.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{self, Limits};
use sidecert_proto::reasonix::host::{self, padded_request};
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::{self, Id};
use sidecert_proto::script::{Need, Outgoing, Process, Script, ScriptDef, Setting, Step, Template};
use sidecert_proto::transcript::{Kind, Payload};
use sidecert_proto::verdict::Sight;

use super::sights::{
    ENDED, IGNORED, NO_JSON, SERVED, UNKNOWN, all_became, became, named, oddities, refusals, request, sdk,
    specified,
};
use super::{HANDSHAKE, KEPT, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, NOTHING_PARAMS};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const FRAME_BYTES: Cite = Cite::Schema("/limits/frameBytes");
const PARSE: Cite = Cite::JsonRpc("5.1 Error object");

const SAID_TOO_LARGE: Seen = Seen("the connection ended after a frame_too_large error");
const ENDED_QUIETLY: Seen = Seen("the connection ended, and nothing was said to it");
const NOT_WRITTEN: Seen = Seen("refused as an internal error (-32603) without data");
const ALL_ANSWERED: Seen = Seen("each is answered, in a frame of its own");
const ONE_EACH: Seen = Seen("each is refused once");

const SERVED_BY_SPECIFICATION: &[Accepts] = &[specified(SERVED)];
const SERVED_BY_SDK: &[Accepts] = &[sdk(SERVED)];
const NO_JSON_BY_SPECIFICATION: &[Accepts] = &[specified(NO_JSON)];
const NO_JSON_BY_SDK: &[Accepts] = &[sdk(NO_JSON)];
const NOT_EXECUTED: &[Accepts] = &[specified(NO_JSON), specified(IGNORED)];
const LENIENT_TEXT: &[Accepts] = &[sdk(SERVED), specified(NO_JSON)];
const FATAL: &[Accepts] = &[sdk(ENDED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/transport/only-frames", Guest)
        .says("Standard output carries one JSON object a line, and nothing else: no banner, no log.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ONLY_FRAMES.guest, &HANDSHAKE)),
    must("reasonix/transport/frames-end-at-line-feed", Guest)
        .says(
            "A frame ends at its line feed, whether it comes in several reads or together with others.",
            &[TRANSPORT],
        )
        .accepts(SERVED_BY_SPECIFICATION)
        .checked(After(&CUT_REQUESTS, |x| all_became(x, ["cut", "first", "second"], SERVED_BY_SPECIFICATION))),
    must("reasonix/transport/line-separators-no-line-ends", Guest)
        .says(
            "Only a line feed ends a frame: U+2028, U+2029 and U+0085 in a text are characters like others.",
            &[TRANSPORT],
        )
        .accepts(SERVED_BY_SPECIFICATION)
        .checked(After(&SEPARATORS, |x| became(x, "separators"))),
    must("reasonix/transport/white-space-around-ignored", Guest)
        .says("A carriage return before the line feed and white space around a frame are passed over.", &[])
        .accepts(SERVED_BY_SDK)
        .checked(After(&ODD_SPACE, |x| all_became(x, ["carriage-return", "spaces-before"], SERVED_BY_SDK))),
    must("reasonix/transport/blank-lines-ignored", Guest)
        .says("A line of nothing but white space is passed over.", &[])
        .accepts(&[sdk(IGNORED)])
        .checked(After(&ODD_SPACE, |x| all_became(x, ["empty", "blank", "return-only"], &[sdk(IGNORED)]))),
    must("reasonix/transport/largest-frame-served", Guest)
        .says("A frame of exactly the limit, its line feed counted, is served.", &[TRANSPORT, FRAME_BYTES])
        .accepts(SERVED_BY_SPECIFICATION)
        .checked(After(&LARGEST_FRAME, largest_frame_served)),
    must("reasonix/transport/oversized-frame-fatal", Guest)
        .says(
            "A frame whose body alone is longer than the limit ends the connection, and is not served.",
            &[TRANSPORT, FRAME_BYTES],
        )
        .accepts(&[specified(ENDED)])
        .checked(After(&OVERSIZED_FRAME, |x| fatal(x, "oversized"))),
    must("reasonix/transport/oversized-frame-unanswered", Guest)
        .says("To a frame that is too long nothing is said; an error frame_too_large before the end is allowed.", &[])
        .accepts(&[sdk(ENDED_QUIETLY), specified(SAID_TOO_LARGE)])
        .checked(After(&OVERSIZED_FRAME, oversized_frame_unanswered)),
    must("reasonix/transport/limit-counts-line-feed", Guest)
        .says("The line feed counts: a body of exactly the limit, and a line feed, ends the connection.", &[])
        .accepts(FATAL)
        .checked(After(&LIMIT_WITH_LINE_FEED, |x| fatal(x, "one-more"))),
    must("reasonix/transport/limit-counts-white-space", Guest)
        .says("White space around a frame counts towards the limit.", &[])
        .accepts(FATAL)
        .checked(After(&LIMIT_WITH_WHITE_SPACE, |x| fatal(x, "padded"))),
    must("reasonix/transport/limit-needs-no-line-feed", Guest)
        .says("A line that goes on beyond the limit ends the connection before its line feed comes.", &[])
        .accepts(FATAL)
        .checked(After(&ENDLESS_LINE, |x| fatal(x, "endless"))),
    must("reasonix/transport/frames-within-limit", Guest)
        .says("No frame is longer than the limit, however much there is to say.", &[TRANSPORT, FRAME_BYTES])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(After(&LARGE_ANSWER, frames_within_limit)),
    must("reasonix/transport/oversized-answer-refused", Guest)
        .says("Where the answer would not fit into a frame, the request fails, and only that one.", &[])
        .accepts(&[sdk(NOT_WRITTEN)])
        .checked(After(&LARGE_ANSWER, oversized_answer_refused)),
    must("reasonix/transport/last-line-served", Guest)
        .says("A last line without a line feed is a frame all the same when the input ends.", &[])
        .accepts(SERVED_BY_SDK)
        .checked(After(&LAST_LINE, |x| became(x, "last-line"))),
    must("reasonix/transport/cut-off-line-not-served", Guest)
        .says(
            "What the end of the input cuts off is no JSON: it is refused, or at least not served.",
            &[TRANSPORT, PARSE],
        )
        .accepts(NOT_EXECUTED)
        .checked(After(&CUT_OFF_LINE, |x| not_executed(x, "cut-off", &[CUT_OFF]))),
    must("reasonix/transport/byte-order-mark-refused", Guest)
        .says("A byte order mark before a frame makes it no JSON.", &[])
        .accepts(NO_JSON_BY_SDK)
        .checked(After(&ODD_LINES, |x| became(x, "byte-order-mark"))),
    must("reasonix/transport/text-refused", Guest)
        .says("A line that is no JSON is refused as a parse error, and the connection goes on.", &[TRANSPORT, PARSE])
        .accepts(NO_JSON_BY_SPECIFICATION)
        .checked(After(&ODD_LINES, |x| became(x, "text"))),
    must("reasonix/transport/control-characters-refused", Guest)
        .says("A string with a raw control character is no JSON.", &[TRANSPORT, PARSE])
        .accepts(NO_JSON_BY_SPECIFICATION)
        .checked(After(&ODD_LINES, |x| became(x, "control-character"))),
    must("reasonix/transport/bad-lines-refused-once", Guest)
        .says("Each line that is no JSON is refused exactly once.", &[PARSE])
        .accepts(&[specified(ONE_EACH)])
        .checked(After(&ODD_LINES, bad_lines_refused_once)),
    must("reasonix/transport/two-documents-not-executed", Guest)
        .says("Two JSON texts on one line are no frame; neither is executed.", &[TRANSPORT])
        .accepts(NOT_EXECUTED)
        .checked(After(&TWO_DOCUMENTS, |x| not_executed(x, "two-documents", &[TWO, TWO + 1]))),
    must("reasonix/transport/indented-frame-not-executed", Guest)
        .says("A JSON text over several lines is no frame; it is not executed.", &[TRANSPORT])
        .accepts(NOT_EXECUTED)
        .checked(After(&INDENTED, |x| not_executed(x, "indented", &[INDENTED_ID]))),
    must("reasonix/transport/invalid-utf8-survived", Guest)
        .says("Bytes that are no UTF-8, and lone surrogates, are replaced in texts; the frame is served.", &[])
        .accepts(LENIENT_TEXT)
        .checked(After(&ODD_TEXT, invalid_text_survived)),
    must("reasonix/transport/deep-nesting-served", Guest)
        .says("A frame that nests 10,000 levels deep is read.", &[])
        .accepts(&[sdk(UNKNOWN)])
        .checked(After(&DEEP, |x| became(x, "deep"))),
    must("reasonix/transport/deeper-nesting-refused", Guest)
        .says("A frame that nests 10,001 levels deep is refused as no JSON, and the connection goes on.", &[])
        .accepts(NO_JSON_BY_SDK)
        .checked(After(&DEEP, |x| became(x, "deeper"))),
    must("reasonix/transport/many-answers-whole", Guest)
        .says("The answers to many requests at once do not run into each other.", &[])
        .accepts(&[sdk(ALL_ANSWERED)])
        .checked(After(&MANY_REQUESTS, many_answers_whole)),
    must("reasonix/transport/damaged-frames-survived", Guest)
        .says("No damaged frame below the limit ends the connection.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(After(&DAMAGED_FRAMES, damaged_frames_survived)),
    must("reasonix/transport/memory-bounded", Guest)
        .says("Endless lines, deep nesting and repeated members cost no more memory than about a frame.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(sidecert_proto::requirement::Check::Unobservable(
            "how much memory a process takes does not show on its link; where it dies of it, the rows of its script say so",
        )),
];

/// Sends a request in four parts, and two requests together.
static CUT_REQUESTS: ScriptDef = ScriptDef {
    name: "cut-requests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        // Anywhere in the first hundred bytes, so that the parts end in names, values and numbers.
        let places = [setting.seed % 30, setting.seed / 30 % 30, setting.seed / 900 % 30];
        let at = (1..).zip(places).map(|(part, place)| usize::try_from(part * 30 - place).unwrap_or(1));
        Script::new("cut-requests")
            .step(Step::Cut { at: at.collect() })
            .request("cut", contract::STREAM_CANCEL, NOTHING_PARAMS)
            .fence()
            .request("first", contract::STREAM_CANCEL, NOTHING_PARAMS)
            .request("second", contract::STREAM_CANCEL, NOTHING_PARAMS)
            .fence()
            .settle()
    },
};

/// Sends a text with the characters that some readers take for the end of a line.
static SEPARATORS: ScriptDef = ScriptDef {
    name: "separators",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let params = "{\"streamId\":\"sidecert\u{2028}\u{2029}\u{85}none\"}";
        Script::new("separators").request("separators", contract::STREAM_CANCEL, params).fence().settle()
    },
};

/// Sends frames with white space around them, and lines of nothing else.
static ODD_SPACE: ScriptDef = ScriptDef {
    name: "odd-space",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let plain = |label| request(label, contract::STREAM_CANCEL, NOTHING_PARAMS);
        oddities(
            "odd-space",
            [
                (
                    "carriage-return",
                    "a carriage return stands before its line feed",
                    plain("carriage-return") + "\r",
                ),
                ("empty", "it is empty", String::new()),
                ("spaces-before", "white space stands before it", format!(" \t {}", plain("spaces-before"))),
                ("blank", "it is white space", "  \t ".to_owned()),
                ("return-only", "it is a carriage return", "\r".to_owned()),
            ],
        )
        .quiet()
    },
};

const LARGEST: i64 = 9_000_001;
const OVERSIZED: i64 = 9_000_002;

/// Sends the largest frame that there may be.
static LARGEST_FRAME: ScriptDef = ScriptDef {
    name: "largest-frame",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let body = Limits::of(setting.contract).frame_bytes - 1;
        Script::new("largest-frame")
            .step(Step::Send { label: Some("largest".to_owned()), frame: padded_request(LARGEST, body) })
            .answer("largest")
    },
};

fn largest_frame_served(exchange: &Exchange<'_>) -> Sight {
    match exchange.answer_to("largest") {
        // Whatever the method says to it, it was read; only the frame layer's own refusals mean that it was not.
        Some(answer) => match answer.code() {
            Some(code @ (rpc::PARSE_ERROR | rpc::INVALID_REQUEST)) => {
                Sight::SawOther { at: answer.at, actual: format!("refused with {code}") }
            }
            _ => Sight::Saw(SERVED, answer.at),
        },
        None => match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest })) {
            Some(end) => {
                Sight::SawOther { at: end.at, actual: "the connection ended without an answer".to_owned() }
            }
            None => exchange.nothing_came("largest", "no answer"),
        },
    }
}

/// Opens a connection and sends a line that ends it.
fn last_frame(setting: &Setting<'_>, label: &str, departs: &str, frame: Outgoing) -> Script {
    host::opening(setting)
        .step(Step::Raw { label: Some(label.to_owned()), departs: departs.to_owned(), frame })
        .step(Step::Fence { or_end: true })
}

/// Sends a frame that is too long under every reading of the limit.
static OVERSIZED_FRAME: ScriptDef = ScriptDef {
    name: "oversized-frame",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let body = Limits::of(setting.contract).frame_bytes + 1;
        let frame = padded_request(OVERSIZED, body);
        last_frame(setting, "oversized", "its body is longer than the limit", frame)
    },
};

/// Sends a frame that is too long when its line feed counts.
static LIMIT_WITH_LINE_FEED: ScriptDef = ScriptDef {
    name: "limit-with-line-feed",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let frame = padded_request(OVERSIZED, Limits::of(setting.contract).frame_bytes);
        let departs = "with its line feed it is longer than the limit";
        last_frame(setting, "one-more", departs, frame)
    },
};

/// Sends a frame that is too long when the white space around it counts.
static LIMIT_WITH_WHITE_SPACE: ScriptDef = ScriptDef {
    name: "limit-with-white-space",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let plain = request("padded", contract::STREAM_CANCEL, r#"{"streamId":"sidecert-fence"}"#)
            .replace(r#"{"$id":"padded"}"#, &OVERSIZED.to_string());
        // More than a line feed too long, so that nothing but the white space counts.
        let count = (Limits::of(setting.contract).frame_bytes + 32 - plain.len()) as u64;
        let (head, tail) = ("".into(), plain.into());
        let frame = Outgoing::Payload(Payload::Fill { head, byte: b' ', count, tail });
        let departs = "with the white space before it, it is longer than the limit";
        last_frame(setting, "padded", departs, frame)
    },
};

/// Sends more than the limit without a line feed, and goes no further.
static ENDLESS_LINE: ScriptDef = ScriptDef {
    name: "endless-line",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let limit = Limits::of(setting.contract).frame_bytes;
        let count = (limit + limit / 8) as u64;
        let (head, tail) = ("{\"padding\":\"".into(), "".into());
        host::opening(setting)
            .step(Step::Tail {
                label: Some("endless".to_owned()),
                departs: "it is longer than the limit, and has no line feed".to_owned(),
                frame: Outgoing::Payload(Payload::Fill { head, byte: b'x', count, tail }),
            })
            .step(Step::Exit)
    },
};

/// What is fatal ends the connection, and is not served.
fn fatal(exchange: &Exchange<'_>, label: &str) -> Sight {
    if let Some(answer) = exchange.answer_to(label).filter(|answer| answer.code().is_none()) {
        return Sight::SawOther { at: answer.at, actual: "the request was served".to_owned() };
    }
    if let Some((at, within)) = exchange.timed_out(sidecert_proto::transcript::Wait::Exit, None) {
        let seconds = within / 1_000_000;
        return Sight::SawOther { at, actual: format!("the connection went on for {seconds} s") };
    }
    match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest } | Kind::Exited(_))) {
        Some(end) => Sight::Saw(ENDED, end.at),
        None => exchange.nothing_came(label, "the connection went on: a later request was answered"),
    }
}

fn oversized_frame_unanswered(exchange: &Exchange<'_>) -> Sight {
    let Some(sent) = exchange.sent("oversized") else { return exchange.nothing_came("oversized", "") };
    let said = exchange.responses().map(|(answer, _)| answer).find(|answer| answer.at > sent.at);
    let end = exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest } | Kind::Exited(_)));
    match (said, end) {
        (None, Some(end)) => Sight::Saw(ENDED_QUIETLY, end.at),
        (Some(answer), Some(_)) if answer.reason().as_deref() == Some(contract::reason::FRAME_TOO_LARGE) => {
            Sight::Saw(SAID_TOO_LARGE, answer.at)
        }
        (Some(answer), _) => Sight::SawOther { at: answer.at, actual: answer.summary() },
        (None, None) => exchange.nothing_came("oversized", "the connection went on"),
    }
}

/// Makes the guest want to say more than a frame can hold.
static LARGE_ANSWER: ScriptDef = ScriptDef {
    name: "large-answer",
    process: Process::Own,
    needs: &[Need::Provocation("large")],
    build: |setting| {
        let params = super::provoked_intercept(setting, "large", 5_000);
        Script::new("large-answer").request("large", contract::INTERCEPT, &params).answer("large").fence()
    },
};

fn frames_within_limit(exchange: &Exchange<'_>) -> Sight {
    let oversize = exchange.entries().iter().find_map(|entry| match &entry.event.kind {
        Kind::Oversize { seen, .. } => Some((entry.at, *seen)),
        _ => None,
    });
    if let Some((at, seen)) = oversize {
        return Sight::SawOther { at, actual: format!("a frame of at least {seen} bytes") };
    }
    match exchange.answer_to("large") {
        Some(answer) => Sight::Saw(KEPT, answer.at),
        None => exchange.nothing_came("large", "no answer"),
    }
}

fn oversized_answer_refused(exchange: &Exchange<'_>) -> Sight {
    match exchange.answer_to("large") {
        Some(answer) => match answer.outcome {
            rpc::Outcome::Error { code: rpc::INTERNAL_ERROR, body } if body.get("data").is_none() => {
                Sight::Saw(NOT_WRITTEN, answer.at)
            }
            _ => Sight::SawOther { at: answer.at, actual: answer.summary() },
        },
        None => exchange.nothing_came("large", "no answer"),
    }
}

/// Ends the input behind a request without its line feed.
static LAST_LINE: ScriptDef = ScriptDef {
    name: "last-line",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let frame = request("last-line", contract::STREAM_CANCEL, NOTHING_PARAMS);
        ended_input(setting, "last-line", "it has no line feed, and the input ends", frame)
    },
};

const CUT_OFF: i64 = 700_001;

/// Ends the input in the middle of a request.
static CUT_OFF_LINE: ScriptDef = ScriptDef {
    name: "cut-off-line",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{CUT_OFF},"method":"extension/provider/stre"#);
        ended_input(setting, "cut-off", "the input ends in the middle of it", frame)
    },
};

fn ended_input(setting: &Setting<'_>, label: &str, departs: &str, frame: String) -> Script {
    host::opening(setting)
        .fence()
        .step(Step::Tail {
            label: Some(label.to_owned()),
            departs: departs.to_owned(),
            frame: Outgoing::Template(Template::new(frame)),
        })
        .step(Step::Close)
        .step(Step::Exit)
}

/// Sends lines that are no JSON.
static ODD_LINES: ScriptDef = ScriptDef {
    name: "odd-lines",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let plain = r#"{"jsonrpc":"2.0","id":700003,"method":"extension/provider/stream/cancel","params":{"streamId":"sidecert"}}"#;
        oddities(
            "odd-lines",
            [
                ("text", "it is no JSON", "sidecert says hello".to_owned()),
                ("byte-order-mark", "a byte order mark stands before it", format!("\u{feff}{plain}")),
                (
                    "control-character",
                    "a string has a raw control character",
                    plain.replace("sidecert", "side\0cert"),
                ),
            ],
        )
    },
};

fn bad_lines_refused_once(exchange: &Exchange<'_>) -> Sight {
    let own = refusals(exchange);
    if let Some((more, _)) = exchange
        .responses()
        .filter(|(_, id)| *id == Id::Null)
        .find(|(answer, _)| !own.values().any(|known| known.at == answer.at))
    {
        return Sight::SawOther { at: more.at, actual: format!("one more refusal: {}", more.summary()) };
    }
    match (exchange.cut, own.get("text")) {
        (Some(_), _) | (None, None) => exchange.nothing_came("text", "one of them was not refused"),
        (None, Some(answer)) => Sight::Saw(ONE_EACH, answer.at),
    }
}

const TWO: i64 = 700_004;
const INDENTED_ID: i64 = 700_006;

/// Sends two requests on one line.
static TWO_DOCUMENTS: ScriptDef = ScriptDef {
    name: "two-documents",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let one = |id: i64| {
            sidecert_proto::script::request(&id.to_string(), contract::STREAM_CANCEL, NOTHING_PARAMS)
        };
        let frame = format!("{} {}", one(TWO), one(TWO + 1));
        oddities("two-documents", [("two-documents", "two requests stand on one line", frame)])
    },
};

/// Sends a request over several lines.
static INDENTED: ScriptDef = ScriptDef {
    name: "indented",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let frame = format!(
            "{{\n  \"jsonrpc\": \"2.0\",\n  \"id\": {INDENTED_ID},\n  \"method\": \"{}\",\n  \"params\": {NOTHING_PARAMS}\n}}",
            contract::STREAM_CANCEL
        );
        oddities("indented", [("indented", "it stands over several lines", frame)])
    },
};

/// A frame that holds requests which none of them may answer.
fn not_executed(exchange: &Exchange<'_>, label: &str, ids: &[i64]) -> Sight {
    let answered = exchange.responses().find(|(_, id)| matches!(id, Id::Integer(id) if ids.contains(id)));
    match answered {
        Some((answer, _)) => {
            Sight::SawOther { at: answer.at, actual: format!("answered with {}", answer.summary()) }
        }
        None => became(exchange, label),
    }
}

const INVALID_UTF8: i64 = 700_007;

/// Sends texts that are no Unicode.
static ODD_TEXT: ScriptDef = ScriptDef {
    name: "odd-text",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let mut bytes = sidecert_proto::script::request(
            &INVALID_UTF8.to_string(),
            contract::STREAM_CANCEL,
            r#"{"streamId":"sidecert-none"}"#,
        )
        .into_bytes();
        let at = bytes.len() - 8;
        bytes.splice(at..at, [0xff, 0xfe]);
        let surrogate = request("lone-surrogate", contract::STREAM_CANCEL, r#"{"streamId":"\ud800"}"#);
        Script::new("odd-text")
            .step(Step::Raw {
                label: Some("invalid-utf8".to_owned()),
                departs: "a string is no UTF-8".to_owned(),
                frame: Outgoing::Payload(Payload::Bytes(bytes.into())),
            })
            .fence()
            .raw("lone-surrogate", "a string has half of a surrogate pair", surrogate)
            .fence()
            .settle()
    },
};

fn invalid_text_survived(exchange: &Exchange<'_>) -> Sight {
    let under_id = exchange.responses().find(|(_, id)| *id == Id::Integer(INVALID_UTF8));
    let invalid = match under_id {
        Some((answer, _)) => named(&answer, true),
        None => became(exchange, "invalid-utf8"),
    };
    match invalid {
        Sight::Saw(SERVED, _) => became(exchange, "lone-surrogate"),
        other => other,
    }
}

/// How deep a frame may nest.
const LEVELS: usize = 10_000;

/// Sends frames that nest as deep as is read, and one level deeper.
static DEEP: ScriptDef = ScriptDef {
    name: "deep-nesting",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let nested = |label: &str, levels: usize| {
            let arrays = levels - 2;
            let params = format!(r#"{{"{label}":{}{}}}"#, "[".repeat(arrays), "]".repeat(arrays));
            request(label, super::NO_METHOD, &params)
        };
        oddities(
            "deep-nesting",
            [
                ("deep", "there is no such method", nested("deep", LEVELS)),
                ("deeper", "it nests deeper than is read", nested("deeper", LEVELS + 1)),
            ],
        )
    },
};

/// How many requests are sent at once.
const MANY: usize = 20;

/// Sends many requests before it looks at an answer.
static MANY_REQUESTS: ScriptDef = ScriptDef {
    name: "many-requests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut params = sidecert_proto::reasonix::sample::params(setting, contract::INTERCEPT);
        params["payload"]["text"] = "one of many".into();
        let params = params.to_string();
        let ask = |script: Script, number: usize| {
            script.request(&format!("request-{number}"), contract::INTERCEPT, &params)
        };
        (1..=MANY).fold(Script::new("many-requests"), ask).fence().settle()
    },
};

fn many_answers_whole(exchange: &Exchange<'_>) -> Sight {
    let mut last = exchange.last();
    for number in 1..=MANY {
        let label = format!("request-{number}");
        match exchange.answer_to(&label) {
            Some(answer) => last = answer.at,
            None => return exchange.nothing_came(&label, "not every request was answered"),
        }
    }
    Sight::Saw(ALL_ANSWERED, last)
}

/// How many damaged frames are sent.
const DAMAGED: u64 = 40;

/// Sends frames with a few bytes changed; the seed says which.
static DAMAGED_FRAMES: ScriptDef = ScriptDef {
    name: "damaged-frames",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut state = setting.seed | 1;
        let damage = |script: Script, number: u64| {
            let frame = sidecert_proto::script::request(
                &(800_000 + number).to_string(),
                contract::STREAM_CANCEL,
                NOTHING_PARAMS,
            );
            let frame = damaged(frame.into_bytes(), &mut state);
            script.step(Step::Raw {
                label: Some(format!("damaged-{number}")),
                departs: "some of its bytes are changed".to_owned(),
                frame: match String::from_utf8(frame) {
                    Ok(text) => Outgoing::Template(Template::new(text)),
                    Err(bytes) => Outgoing::Payload(Payload::Bytes(bytes.into_bytes().into())),
                },
            })
        };
        (1..=DAMAGED).fold(Script::new("damaged-frames"), damage).step(Step::Fence { or_end: true }).quiet()
    },
};

/// A frame with one to three bytes changed, so that it is still one line and no request of another method.
fn damaged(frame: Vec<u8>, state: &mut u64) -> Vec<u8> {
    let mut draw = |below: usize| {
        // Marsaglia's xorshift: every seed gives a sequence of its own.
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state % below as u64).unwrap_or_default()
    };
    let mut bytes = frame;
    for _ in 0..=draw(3) {
        let at = draw(bytes.len());
        match (draw(3), u8::try_from(draw(256)).unwrap_or_default()) {
            (_, b'\n') => {}
            (0, byte) => bytes[at] = byte,
            (1, byte) => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}

fn damaged_frames_survived(exchange: &Exchange<'_>) -> Sight {
    match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest })) {
        Some(end) => Sight::SawOther { at: end.at, actual: "the connection ended".to_owned() },
        None if exchange.cut.is_some() => exchange.nothing_came("damaged-1", ""),
        None => Sight::Saw(KEPT, exchange.last()),
    }
}
