//! "Transport", as a host must keep it: lines, and what becomes of those that are no frames.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::quoted;
use sidecert_proto::reasonix::contract::{self, Limits, point, reason};
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Id;
use sidecert_proto::script::{
    Need, Outgoing, Process, Reply, SLOW, Script, ScriptDef, Setting, Step, Template,
};
use sidecert_proto::transcript::{Kind, Payload, Told};
use sidecert_proto::verdict::Sight;

use super::super::sights::{
    self, BAD_PARAMS, ENDED, EXPIRED, IGNORED, INTERNAL, INVALID, NO_JSON, UNKNOWN, VIOLATION, all_became,
    became, became_of_too_long, named, oddities,
};
use super::super::{KEPT, KEPT_AS_SPECIFIED};
use super::lifecycle::{a_model, answers, declaration, meets_initialize};
use super::rulings::does;
use super::{
    BLOCKED, DONE, FAILED, ONE, PLAIN_TURN, TURN, came_of, intercept, observed, outcome, reacts, say,
    session as begin, specified, stop,
};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const FRAME_BYTES: Cite = Cite::Schema("/limits/frameBytes");
const ERROR: Cite = Cite::JsonRpc("5.1 Error object");

const SAID_NOTHING: Seen = Seen("nothing was said to it");
const SAID_TOO_LARGE: Seen = Seen("an error frame_too_large before the end");
const UNHEARD: Seen = Seen("nothing answered what stood on standard error");

/// What was read was answered: what it asks for was never given out. A host that refuses it for another reason has read it,
/// too.
const READ: &[Accepts] = &[
    specified(EXPIRED),
    specified(UNKNOWN),
    specified(BAD_PARAMS),
    specified(VIOLATION),
    specified(INTERNAL),
];
const READ_OBSERVED: &[Accepts] =
    &[observed(EXPIRED), observed(UNKNOWN), observed(BAD_PARAMS), observed(VIOLATION), observed(INTERNAL)];
const NO_JSON_HERE: &[Accepts] = &[specified(NO_JSON), specified(INVALID)];
const NOT_EXECUTED: &[Accepts] = &[specified(NO_JSON), specified(INVALID), specified(IGNORED)];
const LENIENT_TEXT: &[Accepts] = &[observed(EXPIRED), specified(NO_JSON), specified(INVALID)];
const NOT_SERVED: &[Accepts] = &[specified(ENDED)];
const FATAL: &[Accepts] = &[observed(ENDED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-transport/only-frames", Host)
        .says("Every line that the host writes is one JSON object.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ONLY_FRAMES.host, &PLAIN_TURN)),
    must("reasonix/host-transport/frames-within-limit", Host)
        .says(
            "No line that the host writes is longer than a frame may be, however much it has to say.",
            &[TRANSPORT, FRAME_BYTES],
        )
        .accepts(&[specified(KEPT)])
        .checked(After(&HUGE_TURN, frames_within_limit)),
    must("reasonix/host-transport/frames-end-at-line-feed", Host)
        .says("A frame of the guest ends at its line feed, in however many parts it comes.", &[TRANSPORT])
        .accepts(READ)
        .checked(After(&GUEST_LINES, |x| all_became(x, ["cut", "first", "second"], READ))),
    must("reasonix/host-transport/line-separators-no-line-ends", Host)
        .says(
            "Only a line feed ends a frame: U+2028, U+2029 and U+0085 are characters like others.",
            &[TRANSPORT],
        )
        .accepts(READ)
        .checked(After(&GUEST_LINES, |x| became(x, "separators"))),
    must("reasonix/host-transport/white-space-around-ignored", Host)
        .says("A carriage return before the line feed and white space around a frame are passed over.", &[])
        .accepts(READ_OBSERVED)
        .checked(After(&GUEST_LINES, |x| all_became(x, ["carriage-return", "spaces-before"], READ_OBSERVED))),
    must("reasonix/host-transport/blank-lines-ignored", Host)
        .says("Blank lines are passed over.", &[])
        .accepts(&[observed(IGNORED)])
        .checked(After(&GUEST_LINES, |x| all_became(x, ["empty", "blank"], &[observed(IGNORED)]))),
    must("reasonix/host-transport/text-refused", Host)
        .says("A line that is no JSON is refused as a parse error, and the connection goes on.", &[ERROR])
        .accepts(NO_JSON_HERE)
        .checked(After(&GUEST_TEXTS, |x| became(x, "text"))),
    must("reasonix/host-transport/control-characters-refused", Host)
        .says("A control character in a string makes a line no JSON.", &[ERROR])
        .accepts(NO_JSON_HERE)
        .checked(After(&GUEST_TEXTS, |x| became(x, "control-character"))),
    must("reasonix/host-transport/two-documents-refused", Host)
        .says("Of two JSON texts on one line neither is executed.", &[TRANSPORT])
        .accepts(NOT_EXECUTED)
        .checked(After(&GUEST_TEXTS, |x| not_executed(x, "two-documents", 700_001))),
    must("reasonix/host-transport/indented-refused", Host)
        .says("A request that is spread over several lines is not executed.", &[TRANSPORT])
        .accepts(NOT_EXECUTED)
        .checked(After(&GUEST_TEXTS, |x| not_executed(x, "indented", 700_003))),
    must("reasonix/host-transport/byte-order-mark-refused", Host)
        .says("A byte order mark before a frame makes it no JSON.", &[])
        .accepts(&[observed(NO_JSON)])
        .checked(After(&GUEST_TEXTS, |x| became(x, "byte-order-mark"))),
    must("reasonix/host-transport/odd-text-survived", Host)
        .says("Bytes that are no UTF-8 and lone surrogates in a string do no harm.", &[])
        .accepts(LENIENT_TEXT)
        .checked(After(&GUEST_TEXTS, odd_text)),
    must("reasonix/host-transport/deep-nesting-survived", Host)
        .says(
            "A frame may nest 10,000 levels deep; what nests deeper is refused, and the connection goes on.",
            &[],
        )
        .accepts(&[observed(UNKNOWN)])
        .checked(After(&GUEST_TEXTS, deep_nesting)),
    must("reasonix/host-transport/noise-loses-no-answer", Host)
        .says("A line of text before an answer does not lose the answer.", &[])
        .accepts(&[observed(BLOCKED)])
        .checked(After(&NOISY_GUEST, |x| came_of(x, TURN))),
    must("reasonix/host-transport/standard-error-no-protocol", Host)
        .says("What a guest writes to standard error is no frame, whatever it looks like.", &[TRANSPORT])
        .accepts(&[specified(UNHEARD)])
        .checked(After(&NOISY_GUEST, standard_error)),
    must("reasonix/host-transport/standard-error-before-handshake", Host)
        .says("Nor does what it writes there before the handshake is over disturb that.", &[TRANSPORT])
        .accepts(&[specified(DONE)])
        .checked(After(&EARLY_NOISE, |x| came_of(x, START))),
    must("reasonix/host-transport/unended-answer-counts", Host)
        .says("A last line without a line feed is a frame where the output of the guest ends.", &[])
        .accepts(&[observed(BLOCKED)])
        .checked(After(&UNENDED, |x| came_of(x, TURN))),
    must("reasonix/host-transport/standard-error-drained", Host)
        .says(
            "A guest may write to standard error as much as it likes: the host reads on, and its answers count.",
            &[TRANSPORT],
        )
        .accepts(&[specified(DONE)])
        .checked(After(&TALKATIVE, |x| came_of(x, TURN))),
    must("reasonix/host-transport/largest-frame-read", Host)
        .says("A frame that is as long as the limit, line feed and all, is read.", &[TRANSPORT, FRAME_BYTES])
        .accepts(READ)
        .checked(After(&LARGEST, |x| became(x, "largest"))),
    must("reasonix/host-transport/oversized-frame-ends-connection", Host)
        .says(
            "A frame whose body alone is longer than the limit ends the connection.",
            &[TRANSPORT, FRAME_BYTES],
        )
        .accepts(NOT_SERVED)
        .checked(After(&OVERSIZED, |x| became_of_too_long(x, "oversized"))),
    must("reasonix/host-transport/oversized-frame-unanswered", Host)
        .says("To a frame that is too long nothing is said; an error frame_too_large before the end is allowed.", &[])
        .accepts(&[observed(SAID_NOTHING), specified(SAID_TOO_LARGE)])
        .checked(After(&OVERSIZED, oversized_frame_unanswered)),
    must("reasonix/host-transport/oversized-answer-fails-its-call", Host)
        .says(
            "What waits for an answer that is longer than a frame may be fails, and so does what is asked later.",
            &[TRANSPORT, FRAME_BYTES],
        )
        .accepts(&[specified(FAILED)])
        .checked(After(&OVERSIZED, oversized_answer)),
    must("reasonix/host-transport/line-feed-counts", Host)
        .says("A frame that is longer than the limit only with its line feed ends the connection, too.", &[])
        .accepts(FATAL)
        .checked(After(&ONE_MORE, |x| became_of_too_long(x, "one-more"))),
    must("reasonix/host-transport/limit-needs-no-line-feed", Host)
        .says("More than the limit without a line feed ends the connection, while the guest goes on.", &[])
        .accepts(FATAL)
        .checked(After(&ENDLESS, |x| became_of_too_long(x, "endless"))),
];

fn oversized_frame_unanswered(x: &Exchange<'_>) -> Sight {
    let Some(sent) = x.sent("oversized") else { return x.nothing_came("oversized", "") };
    let its = |at: u64| x.entries().iter().any(|it| it.at == at && it.event.link == sent.event.link);
    let mut answers = x.responses().map(|(answer, _)| answer);
    let said = answers.find(|answer| answer.at > sent.at && its(answer.at));
    match (said, became_of_too_long(x, "oversized")) {
        (None, Sight::Saw(ENDED, at)) => Sight::Saw(SAID_NOTHING, at),
        (Some(answer), Sight::Saw(ENDED, _))
            if answer.reason().as_deref() == Some(reason::FRAME_TOO_LARGE) =>
        {
            Sight::Saw(SAID_TOO_LARGE, answer.at)
        }
        (Some(answer), _) => Sight::SawOther { at: answer.at, actual: answer.summary() },
        (None, Sight::Saw(seen, at)) => Sight::SawOther { at, actual: seen.0.to_owned() },
        (None, other) => other,
    }
}

/// A request for content that the host never gave out: it does nothing, and is always refused.
pub(super) fn read_nothing(label: &str) -> String {
    sights::request(label, contract::CONTENT_READ, r#"{"contentRef":"sidecert-none","offset":0}"#)
}

/// The same, as a step that is in order.
fn reads(script: Script, label: &str) -> Script {
    script.request(label, contract::CONTENT_READ, r#"{"contentRef":"sidecert-none","offset":0}"#)
}

fn one(name: &str, setting: &Setting<'_>) -> Script {
    begin(name, setting, &[Plugin::new(setting, ONE)])
}

static GUEST_LINES: ScriptDef = ScriptDef {
    name: "guest-lines",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let places = [setting.seed % 30, setting.seed / 30 % 30, setting.seed / 900 % 30];
        let at = (1..).zip(places).map(|(part, place)| usize::try_from(part * 30 - place).unwrap_or(1));
        let script = one("guest-lines", setting).step(Step::Cut { at: at.collect() });
        let script = reads(reads(reads(script, "cut").fence(), "first"), "second").fence();
        let separators = "{\"contentRef\":\"sidecert\u{2028}\u{2029}\u{85}none\",\"offset\":0}";
        let script = script.request("separators", contract::CONTENT_READ, separators).fence();
        stop(script.then(oddities(
            "guest-lines",
            [
                (
                    "carriage-return",
                    "a carriage return stands before its line feed",
                    read_nothing("carriage-return") + "\r",
                ),
                ("empty", "it is empty", String::new()),
                (
                    "spaces-before",
                    "white space stands before it",
                    format!(" \t {}", read_nothing("spaces-before")),
                ),
                ("blank", "it is white space", "  \t ".to_owned()),
            ],
        )))
    },
};

const NO_UTF_8: i64 = 700_005;

/// The levels that a frame may have for sure, and the one that is too many.
const DEEP: usize = 9_900;
const TOO_DEEP: usize = 10_100;

fn nested(label: &str, levels: usize) -> String {
    let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    sights::request(label, "host/sidecert/none", &format!(r#"{{"value":{value}}}"#))
}

static GUEST_TEXTS: ScriptDef = ScriptDef {
    name: "guest-texts",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let in_ref = |label: &str, text: &str| read_nothing(label).replace("sidecert-none", text);
        let raw = |script: Script, label: &str, departs: &str, bytes: Vec<u8>| {
            script
                .step(Step::Raw {
                    label: Some(label.to_owned()),
                    departs: departs.to_owned(),
                    frame: Outgoing::Payload(Payload::Bytes(bytes.into())),
                })
                .fence()
        };
        let indented = "{\n\"jsonrpc\":\"2.0\",\n\"id\":700003,\n\"method\":\"host/content/read\"\n}";
        let script = one("guest-texts", setting).then(oddities(
            "guest-texts",
            [
                ("text", "text that is no JSON", "hello".to_owned()),
                (
                    "control-character",
                    "a control character stands in a string",
                    "{\"jsonrpc\":\"2.0\",\"id\":700002,\"method\":\"a\u{1}b\"}".to_owned(),
                ),
                (
                    "two-documents",
                    "two texts stand on one line",
                    r#"{"jsonrpc":"2.0","id":700001,"method":"host/content/read","params":{"contentRef":"a","offset":0}} {}"#
                        .to_owned(),
                ),
                ("indented", "it is spread over several lines", indented.to_owned()),
                ("lone-surrogate", "half of a surrogate pair", in_ref("lone-surrogate", r"sidecert-\ud800")),
                ("deep", "it nests deep", nested("deep", DEEP)),
                ("too-deep", "it nests too deep", nested("too-deep", TOO_DEEP)),
            ],
        ));
        let plain = |id: i64, text: &[u8]| {
            let head = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"host/content/read","params":{{"contentRef":"a"#
            );
            [head.as_bytes(), text, br#"","offset":0}}"#].concat()
        };
        let bom = [&b"\xef\xbb\xbf"[..], &plain(700_004, b"")].concat();
        let script = raw(script, "byte-order-mark", "a byte order mark stands before it", bom);
        stop(raw(script, "no-utf-8", "a string has bytes that are no UTF-8", plain(NO_UTF_8, b"\xff\xfe")))
    },
};

/// What became of a line that is none, unless what stands on it was executed.
fn not_executed(exchange: &Exchange<'_>, label: &str, id: i64) -> Sight {
    match exchange.responses().find(|(_, its)| *its == Id::Integer(id)) {
        Some((answer, _)) => {
            let actual = format!("the request on it was answered with {}", answer.summary());
            Sight::SawOther { at: answer.at, actual }
        }
        None => became(exchange, label),
    }
}

fn odd_text(exchange: &Exchange<'_>) -> Sight {
    let sight = became(exchange, "lone-surrogate");
    if !matches!(&sight, Sight::Saw(seen, _) if LENIENT_TEXT.iter().any(|accepts| accepts.seen == *seen)) {
        return sight;
    }
    // What has bytes that are no UTF-8 is no JSON to us, so its id is looked for by itself.
    match exchange.responses().find(|(_, its)| *its == Id::Integer(NO_UTF_8)) {
        Some((answer, _)) => named(&answer, true),
        None => became(exchange, "no-utf-8"),
    }
}

fn deep_nesting(exchange: &Exchange<'_>) -> Sight {
    match became(exchange, "too-deep") {
        Sight::Saw(NO_JSON | INVALID, _) => became(exchange, "deep"),
        Sight::Saw(seen, at) => Sight::SawOther { at, actual: format!("{TOO_DEEP} levels: {}", seen.0) },
        other => other,
    }
}

/// An answer, which our guest blocks with.
fn blocks() -> Template {
    Template::new(
        r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"block","reason":"sidecert blocks"}}"#,
    )
}

/// An id that only standard error has.
const ON_STDERR: i64 = 777_001;

static NOISY_GUEST: ScriptDef = ScriptDef {
    name: "noisy-guest",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let line = sidecert_proto::script::request(
            &ON_STDERR.to_string(),
            contract::CONTENT_READ,
            r#"{"contentRef":"sidecert-none","offset":0}"#,
        );
        let script = begin("noisy-guest", setting, &[plugin])
            .step(Step::Do(sidecert_proto::machine::Order::Stderr(format!("{line}\n").into())))
            .fence();
        let script = reacts(script, &intercept(point::INPUT_RECEIVE), Reply::Never);
        let script = say(script, TURN, "Hello").step(super::awaits(&intercept(point::INPUT_RECEIVE)));
        let answered = script
            .raw("noise", "text that is no JSON", "a log line")
            .step(Step::Send { label: Some("ruling".to_owned()), frame: Outgoing::Template(blocks()) });
        stop(answered.step(outcome(TURN)))
    },
};

static EARLY_NOISE: ScriptDef = ScriptDef {
    name: "standard-error-before-handshake",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let script = Script::new("standard-error-before-handshake");
        let script = script.step(plugin::start(setting, &[Plugin::new(setting, ONE)], ""));
        let request = sidecert_proto::script::request("777002", "host/sidecert/none", "{}");
        let told = format!(
            r#"{{"jsonrpc":"2.0","method":"{}","params":{{"streamId":"x","lastSeq":0}}}}"#,
            contract::STREAM_END
        );
        let order = sidecert_proto::machine::Order::Stderr(format!("{request}\n{told}\n").into());
        let answer = answers(&declaration(setting, &[("providers", &a_model(ONE))]));
        let frame = Outgoing::Template(Template::new(answer));
        let script = meets_initialize(script, ONE).step(Step::Do(order));
        stop(script.step(Step::Send { label: Some("declaration".to_owned()), frame }).step(outcome(START)))
    },
};

static UNENDED: ScriptDef = ScriptDef {
    name: "answer-without-line-feed",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let script = begin("answer-without-line-feed", setting, &[plugin]).step(Step::Linger);
        let script = reacts(script, &intercept(point::INPUT_RECEIVE), Reply::Never);
        let script = say(script, TURN, "Hello").step(super::awaits(&intercept(point::INPUT_RECEIVE)));
        let tail = Step::Tail {
            label: Some("unended".to_owned()),
            departs: "it has no line feed".to_owned(),
            frame: Outgoing::Template(blocks()),
        };
        stop(script.step(tail).step(Step::Close).step(outcome(TURN)).step(Step::Gone))
    },
};

/// How much a guest writes to standard error, in bytes: far more than a pipe holds.
const TALK_BYTES: usize = 1 << 20;

static TALKATIVE: ScriptDef = ScriptDef {
    name: "talkative-guest",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let script = begin("talkative-guest", setting, &[plugin]);
        let script = reacts(script, &intercept(point::INPUT_RECEIVE), Reply::Never);
        let script = say(script, TURN, "Hello").step(super::awaits(&intercept(point::INPUT_RECEIVE)));
        let line = "sidecert has something to tell\n";
        let lines = line.repeat(TALK_BYTES / line.len() + 1);
        let order = sidecert_proto::machine::Order::Stderr(lines.into());
        let answer = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"continue"}}"#;
        // A guest that still writes there writes nothing else.
        let ruling = Step::Send { label: None, frame: Outgoing::Template(Template::new(answer)) };
        stop(script.step(Step::Do(order)).step(ruling).step(outcome(TURN)))
    },
};

fn standard_error(exchange: &Exchange<'_>) -> Sight {
    let answered = exchange.responses().find(|(_, id)| id.to_string() == ON_STDERR.to_string());
    let did = exchange.told(Told::Did).next();
    match (answered, did, exchange.cut) {
        (Some((answer, _)), ..) => Sight::SawOther { at: answer.at, actual: answer.summary() },
        (None, Some((entry, _)), None) => Sight::Saw(UNHEARD, entry.at),
        _ => super::never_came(exchange, TURN),
    }
}

/// A request under an id that only it has, padded to so many bytes without its line feed.
fn padded(label: &str, bytes: usize) -> Step {
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":700010,"method":"{}","params":{{"contentRef":"sidecert-none","offset":0}},"padding":""#,
        contract::CONTENT_READ
    );
    let tail = "\"}";
    let count = bytes.saturating_sub(head.len() + tail.len()) as u64;
    let frame = Outgoing::Payload(Payload::Fill { head: head.into(), byte: b'x', count, tail: tail.into() });
    Step::Raw {
        label: Some(label.to_owned()),
        departs: "it is as long as can be, or longer".to_owned(),
        frame,
    }
}

static LARGEST: ScriptDef = ScriptDef {
    name: "largest-guest-frame",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let body = Limits::of(setting.contract).frame_bytes - 1;
        stop(one("largest-guest-frame", setting).step(padded("largest", body)).fence())
    },
};

static OVERSIZED: ScriptDef = ScriptDef {
    name: "oversized-guest-frame",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let script = begin("oversized-guest-frame", setting, &[plugin]);
        let script = does(script, ONE, Some(1), &intercept(point::INPUT_RECEIVE), Reply::Never);
        let script = say(script, TURN, "Hello").step(super::awaits(&intercept(point::INPUT_RECEIVE)));
        // Its body is longer than the limit by whatever stands around the padding.
        let padding = "x".repeat(Limits::of(setting.contract).frame_bytes);
        let ruling = format!(
            r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{{"decision":"continue"}},"padding":"{padding}"}}"#
        );
        let script = script.raw("oversized", "its body is longer than the limit", ruling);
        stop(super::turn(script.step(outcome(TURN)).step(Step::Gone), AGAIN, "Hello again"))
    },
};

/// The turn behind one whose answer was too long.
const AGAIN: &str = "again";

/// Whether that turn failed, and the next one: its guest is gone.
fn oversized_answer(x: &Exchange<'_>) -> Sight {
    match (came_of(x, TURN), came_of(x, AGAIN)) {
        (failed @ Sight::Saw(FAILED, _), Sight::Saw(FAILED | super::REFUSED, _)) => failed,
        (Sight::Saw(FAILED, _), Sight::Saw(seen, at)) => {
            Sight::SawOther { at, actual: format!("the next turn: {}", seen.0) }
        }
        (Sight::Saw(FAILED, _), other) | (other, _) => other,
    }
}

fn alone(name: &str, setting: &Setting<'_>, step: Step) -> Script {
    stop(one(name, setting).step(step).step(Step::Gone))
}

static ONE_MORE: ScriptDef = ScriptDef {
    name: "guest-frame-beyond-limit",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let body = Limits::of(setting.contract).frame_bytes;
        alone("guest-frame-beyond-limit", setting, padded("one-more", body))
    },
};

static ENDLESS: ScriptDef = ScriptDef {
    name: "endless-guest-line",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let limit = Limits::of(setting.contract).frame_bytes;
        let count = (limit + limit / 8) as u64;
        let frame = Payload::Fill { head: "{\"padding\":\"".into(), byte: b'x', count, tail: "".into() };
        let endless = Step::Tail {
            label: Some("endless".to_owned()),
            departs: "it is longer than the limit, and has no line feed".to_owned(),
            frame: Outgoing::Payload(frame),
        };
        alone("endless-guest-line", setting, endless)
    },
};

/// How long a host may take for more than a frame can hold, in milliseconds: much of it is handled many times.
const HUGE_MILLIS: u64 = 300_000;

static HUGE_TURN: ScriptDef = ScriptDef {
    name: "huge-turn",
    process: Process::Own,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let limit = Limits::of(setting.contract).frame_bytes;
        let text = "x".repeat(limit + limit / 8);
        let script = one("huge-turn", setting);
        let said = script.step(super::ask(TURN, &format!(r#"{{"do":"turn","text":{}}}"#, quoted(&text))));
        stop(said.step(Step::Outcome { of: TURN.to_owned(), within: Some(HUGE_MILLIS), is: None }))
    },
};

fn frames_within_limit(exchange: &Exchange<'_>) -> Sight {
    let oversize = exchange.entries().iter().find_map(|entry| match &entry.event.kind {
        Kind::Oversize { from: Host, seen, .. } => Some((entry.at, *seen)),
        _ => None,
    });
    if let Some((at, seen)) = oversize {
        return Sight::SawOther { at, actual: format!("a line of {seen} bytes and more") };
    }
    match came_of(exchange, TURN) {
        // However it is solved, the host was there behind it.
        Sight::Saw(_, at) => Sight::Saw(KEPT, at),
        other => other,
    }
}
