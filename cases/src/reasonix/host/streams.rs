//! "Streaming providers", as a host must take streams: in order, whole, or told to be neither.
//!
//! A guest here offers a model for each thing that a stream can do, and a turn names the model; so a stream that the
//! host opens again is answered as what it is. Only the first stream of a model is odd: later ones fail, and a host that
//! tries again is soon done.

use std::borrow::Cow;

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Entry, Exchange, short};
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::machine::Order;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::plugin::{Plugin, START};
use sidecert_proto::reasonix::session;
use sidecert_proto::reasonix::sidecar::{self, text_chunk};
use sidecert_proto::requirement::Check::{After, Always, Unobservable};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::script::{
    Need, Outgoing, Pattern, Process, Reaction, Reply, SLOW, Script, ScriptDef, Step, Template,
};
use sidecert_proto::transcript::{Kind, Told, Wait};
use sidecert_proto::verdict::{Sight, Why};

use super::super::KEPT_AS_OBSERVED;
use super::providers::{reference, session_of};
use super::{DONE, FAILED, ONE, ask, awaits, came_of, observed, outcome, specified, stop};

pub(super) const PROVIDERS: Cite = Cite::Seed("流式 Provider", "Streaming providers");

const CARRIED: Seen = Seen("it carried what it has to");
const FROM_ONE: Seen = Seen("1");
pub(super) const IN_ORDER: Seen = Seen("each piece was shown once, in the order of the numbers");
const LAST_COPY: Seen = Seen("of two that waited under one number, the later was shown");
const UP_TO_END: Seen = Seen("what is numbered up to the end was shown, and no more");
const SHOWN: Seen = Seen("it was shown");
const NOT_SHOWN: Seen = Seen("it was not shown");
const NAMED: Seen = Seen("the user was told which chunk is missing");
const STAYED_OPEN: Seen = Seen("the stream stayed open");
const TOLD: Seen = Seen("the guest was told, with the id of its stream");
const ALL_OR_FAILED: Seen = Seen("all of it was shown, or it failed");
const ALL_THERE: Seen = Seen("the answer had all of it");
const GIVEN: Seen = Seen("the model was given the result of its call, once");

const FAILS: &[Accepts] = &[specified(FAILED)];
const FAILS_OBSERVED: &[Accepts] = &[observed(FAILED)];
const ORDERED: &[Accepts] = &[specified(IN_ORDER)];
const ORDERED_OBSERVED: &[Accepts] = &[observed(IN_ORDER)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-streams/open-complete", Host)
        .says(
            "To open a stream, the host names it and its model, and gives what it asks with the tools.",
            &[PROVIDERS, Cite::Schema("/$defs/StreamOpenParams")],
        )
        .accepts(&[specified(CARRIED)])
        .checked(After(&IN_TURN, open_complete)),
    must("reasonix/host-streams/counted-from-one", Host)
        .says("The host asks for chunks that are counted from 1.", &[])
        .accepts(&[observed(FROM_ONE)])
        .checked(After(&IN_TURN, counted_from_one)),
    must("reasonix/host-streams/ids-fresh", Host)
        .says("No two streams of a connection have the same id.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::STREAM_IDS_FRESH, &IN_TURN)),
    must("reasonix/host-streams/reordered", Host)
        .says("Chunks that come out of their order are put in order.", &[PROVIDERS])
        .accepts(ORDERED)
        .checked(After(&IN_TURN, |x| shows(x, "order", "one-two-three-"))),
    must("reasonix/host-streams/duplicates-dropped", Host)
        .says("A chunk whose number was delivered already is dropped.", &[PROVIDERS])
        .accepts(ORDERED)
        .checked(After(&IN_TURN, |x| shows(x, "double", "one-two-"))),
    must("reasonix/host-streams/waiting-duplicates-dropped", Host)
        .says("A chunk whose number waits to be delivered is dropped.", &[PROVIDERS])
        .accepts(&[specified(IN_ORDER), observed(LAST_COPY)])
        .checked(After(&IN_TURN, waiting_duplicates_dropped)),
    must("reasonix/host-streams/late-chunk-fills", Host)
        .says("A chunk that is missing at the end may still come just behind it.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, |x| shows(x, "filled", "one-two-three-"))),
    must("reasonix/host-streams/early-chunks-count", Host)
        .says("Chunks that come before the answer to the opening count.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, |x| shows(x, "early", "one-two-"))),
    must("reasonix/host-streams/unknown-streams-ignored", Host)
        .says("What comes of a stream that nobody opened is passed over.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, |x| shows(x, "stray", "one-two-"))),
    must("reasonix/host-streams/malformed-chunks-dropped", Host)
        .says("A chunk that makes no sense is dropped, and the right one may follow.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, malformed_dropped)),
    must("reasonix/host-streams/done-ends-nothing", Host)
        .says("A stream goes on behind a chunk of the type done.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, |x| shows(x, "done", "one-two-"))),
    must("reasonix/host-streams/same-end-again", Host)
        .says("The same end a second time changes nothing.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, |x| shows(x, "end-twice", "one-two-three-"))),
    must("reasonix/host-streams/window-wide", Host)
        .says("A chunk that is up to 255 numbers ahead of the next one is kept for later.", &[])
        .accepts(ORDERED_OBSERVED)
        .checked(After(&IN_TURN, |x| shows(x, "ahead", &format!("one-{}last-", ".".repeat(255))))),
    must("reasonix/host-streams/nothing-beyond-end", Host)
        .says("What is numbered beyond the end of a stream, or comes behind it, is not shown.", &[PROVIDERS])
        .accepts(&[specified(NOT_SHOWN)])
        .checked(After(&BROKEN, nothing_beyond)),
    must("reasonix/host-streams/end-below-chunks", Host)
        .says("A stream whose end is below what came before does not end well beyond it.", &[PROVIDERS])
        .accepts(&[specified(FAILED), specified(UP_TO_END), observed(IN_ORDER)])
        .checked(After(&BROKEN, end_below)),
    must("reasonix/host-streams/beyond-end-fails", Host)
        .says("A chunk beyond the end of a stream that is not complete interrupts it.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&BROKEN, |x| all_failed(x, &["beyond-missing", "beyond-waiting"]))),
    must("reasonix/host-streams/missing-chunk-fails", Host)
        .says("A stream that ends while a chunk is missing is interrupted.", &[PROVIDERS])
        .accepts(FAILS)
        .checked(After(&BROKEN, |x| came(x, "missing"))),
    must("reasonix/host-streams/missing-chunk-named", Host)
        .says("The user is told which chunk of a stream is missing.", &[PROVIDERS])
        .accepts(&[specified(NAMED)])
        .checked(After(&GAPS, missing_named)),
    must("reasonix/host-streams/gap-interrupts", Host)
        .says(
            "A stream in which a chunk is missing is interrupted, though its end has not come.",
            &[PROVIDERS],
        )
        .accepts(&[specified(FAILED), observed(STAYED_OPEN)])
        .checked(After(&GAPS, gap_interrupts)),
    must("reasonix/host-streams/ends-agree", Host)
        .says("Two ends of a stream that differ interrupt it.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&BROKEN, |x| came(x, "ends-differ"))),
    must("reasonix/host-streams/window-kept", Host)
        .says("A chunk that is 256 numbers or more ahead of the next one interrupts its stream.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&BEYOND_WINDOW, |x| came(x, "far-ahead"))),
    must("reasonix/host-streams/ends-tell-failure", Host)
        .says("A stream whose end names an error or says that it was interrupted fails.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&BROKEN, |x| all_failed(x, &["end-error", "end-interrupted"]))),
    must("reasonix/host-streams/error-chunk-fails", Host)
        .says(
            "A chunk that tells an error fails its stream.",
            &[PROVIDERS, Cite::Schema("/$defs/ProviderChunk")],
        )
        .accepts(FAILS)
        .checked(After(&BROKEN, |x| came(x, "error-chunk"))),
    must("reasonix/host-streams/declined-fails", Host)
        .says("A stream that its guest does not accept fails, whatever comes of it.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&BROKEN, |x| came(x, "declined"))),
    must("reasonix/host-streams/declined-cancelled", Host)
        .says("A stream that its guest does not accept is cancelled.", &[])
        .accepts(&[observed(TOLD)])
        .checked(After(&BROKEN, |x| cancelled(x, "declined"))),
    must("reasonix/host-streams/cancel-told", Host)
        .says("The guest is told when the user stops a turn in which its stream runs.", &[PROVIDERS])
        .accepts(&[specified(TOLD)])
        .checked(After(&CANCEL, |x| cancelled(x, "endless"))),
    must("reasonix/host-streams/late-chunks-ignored", Host)
        .says("What still comes of a stream that was cancelled is not shown.", &[PROVIDERS])
        .accepts(&[specified(NOT_SHOWN)])
        .checked(After(&CANCEL, late_ignored)),
    must("reasonix/host-streams/crash-interrupts", Host)
        .says("A stream whose guest dies is interrupted.", &[PROVIDERS, Cite::Seed("生命周期", "Lifecycle")])
        .accepts(FAILS)
        .checked(After(&CRASH, |x| came(x, "crash"))),
    must("reasonix/host-streams/crash-shows-what-came", Host)
        .says("What had come of a stream before its guest died is shown.", &[])
        .accepts(&[observed(SHOWN)])
        .checked(After(&CRASH, shown_before_crash)),
    must("reasonix/host-streams/slow-reader-interrupts", Host)
        .says(
            "A stream that is taken more slowly than it comes is interrupted, and not cut short in silence.",
            &[],
        )
        .accepts(FAILS_OBSERVED)
        .checked(Unobservable("how fast a host takes what it has read is its own affair")),
    must("reasonix/host-streams/floods-whole", Host)
        .says("Of many chunks at once, either all are shown, or the stream fails.", &[])
        .accepts(&[observed(ALL_OR_FAILED)])
        .checked(After(&FLOOD, floods_whole)),
    must("reasonix/host-streams/every-type-taken", Host)
        .says(
            "Text, reasoning, its signature, calls of tools and usage all count for the answer.",
            &[PROVIDERS, Cite::Schema("/$defs/ProviderChunk/properties/type")],
        )
        .accepts(&[specified(ALL_THERE)])
        .checked(After(&KINDS, every_type_taken)),
    must("reasonix/host-streams/calls-run-once", Host)
        .says(
            "A tool that the model calls is run once, and the model is given what came of it.",
            &[PROVIDERS],
        )
        .accepts(&[specified(GIVEN)])
        .checked(After(&KINDS, call_answered)),
];

// ---- what our guest does ----

/// The answer to an opening that was taken.
const ACCEPTED: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#;
const DECLINED: &str = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":false}}"#;
/// What is taken for the stream that was opened last.
pub(super) const STREAM: &str = r#"{"$capture":"stream"}"#;
/// How long a turn may take in a host that opens a stream again and again.
const TRIED_AGAIN_MILLIS: u64 = 60_000;

/// The opening of a stream of this model, as a pattern that captures its id.
pub(super) fn opening(model: &str) -> String {
    let (method, reference) = (contract::STREAM_OPEN, reference(model));
    format!(
        r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"streamId":{STREAM},"providerRef":"{reference}"}}}}"#
    )
}

/// A stream of this model, so often, has these frames.
pub(super) fn streams(mut script: Script, model: &str, times: Option<u32>, frames: Vec<String>) -> Script {
    let when = Pattern::of(&opening(model)).unwrap_or(Pattern::Absent);
    let reply = if frames.is_empty() {
        Reply::Never
    } else {
        Reply::Several(frames.into_iter().map(Template::new).collect())
    };
    script.reactions.push(Reaction { when, reply, times, guest: None });
    script
}

/// The first stream of this model has these frames, and later ones fail.
pub(super) fn first_stream(script: Script, model: &str, frames: Vec<String>) -> Script {
    let error =
        r#"{"code":-32000,"message":"only once","data":{"reason":"provider_failed","retryable":true}}"#;
    let refusal = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"error":{error}}}"#);
    streams(streams(script, model, Some(1), frames), model, None, vec![refusal])
}

pub(super) fn chunk_of(stream: &str, seq: u64, chunk: &str) -> String {
    let method = contract::STREAM_CHUNK;
    format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"streamId":{stream},"seq":{seq},"chunk":{chunk}}}}}"#
    )
}

/// A chunk of the stream that was opened last.
pub(super) fn chunk(seq: u64, chunk: &str) -> String {
    chunk_of(STREAM, seq, chunk)
}

pub(super) fn text(seq: u64, says: &str) -> String {
    chunk(seq, &text_chunk(says))
}

pub(super) fn end_of(stream: &str, last: u64, more: &str) -> String {
    let method = contract::STREAM_END;
    format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"streamId":{stream},"lastSeq":{last}{more}}}}}"#
    )
}

/// The end of the stream that was opened last.
pub(super) fn end(last: u64) -> String {
    end_of(STREAM, last, "")
}

/// A stream that was accepted, with these frames.
pub(super) fn accepted(frames: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(ACCEPTED.to_owned()).chain(frames).collect()
}

/// Dots under these numbers.
fn dots(numbers: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = String> {
    numbers.map(|seq| text(seq, "."))
}

/// Lets the user ask this model, and does not wait for what comes of it. The ask is called as the model.
pub(super) fn asks(script: Script, model: &str) -> Script {
    let what =
        format!(r#"{{"do":"turn","text":{},"model":"{}"}}"#, quoted(&question(model)), reference(model));
    script.step(ask(model, &what))
}

/// What the user asks a model.
fn question(model: &str) -> String {
    format!("What does {model} mean?")
}

/// Lets the user ask this model.
pub(super) fn asked(script: Script, model: &str) -> Script {
    asks(script, model).step(outcome(model))
}

pub(super) fn patient(of: &str, millis: u64) -> Step {
    Step::Outcome { of: of.to_owned(), within: Some(millis), is: None }
}

pub(super) fn conforming(frame: &str) -> Step {
    Step::Send { label: None, frame: Outgoing::Template(Template::new(frame)) }
}

// ---- scripts ----

/// Streams that are odd, and come out right all the same.
const RIGHT: [&str; 14] = [
    "plain",
    "order",
    "double",
    "copies",
    "filled",
    "early",
    "stray",
    "done",
    "end-twice",
    "ahead",
    "kind",
    "error",
    "usage",
    "count",
];
/// Chunks that make no sense, and why, by the models that say them.
const MALFORMED: [(&str, &str, &str); 4] = [
    ("kind", "no chunk has this type", r#"{"type":"sidecert","text":"odd-"}"#),
    ("error", "an error chunk without its error", r#"{"type":"error","text":"odd-"}"#),
    ("usage", "a usage chunk without its usage", r#"{"type":"usage","text":"odd-"}"#),
    ("count", "a count below zero", r#"{"type":"text","text":"odd-","argChars":-1}"#),
];

static IN_TURN: ScriptDef = ScriptDef {
    name: "streams-out-of-order",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE);
        let mut it = session_of("streams-out-of-order", setting, plugin, &RIGHT, &[]);
        let (one, two, three) = (text(1, "one-"), text(2, "two-"), text(3, "three-"));
        let stray = r#""sidecert-none""#;
        let frames = [
            ("plain", accepted([one.clone(), end(1)])),
            ("order", accepted([two.clone(), one.clone(), three.clone(), end(3)])),
            ("double", accepted([one.clone(), one.clone(), two.clone(), end(2)])),
            ("copies", accepted([one.clone(), three.clone(), text(3, "again-"), two.clone(), end(3)])),
            ("filled", accepted([one.clone(), three.clone(), end(3), two.clone()])),
            ("early", vec![one.clone(), ACCEPTED.to_owned(), two.clone(), end(2)]),
            ("stray", {
                let astray = [chunk_of(stray, 2, &text_chunk("astray-")), end_of(stray, 1, "")];
                accepted([one.clone()].into_iter().chain(astray).chain([two.clone(), end(2)]))
            }),
            ("done", accepted([one.clone(), chunk(2, r#"{"type":"done"}"#), text(3, "two-"), end(3)])),
            ("end-twice", accepted([one.clone(), three, end(3), end(3), two.clone()])),
        ];
        for (model, frames) in frames {
            it = asked(first_stream(it, model, frames), model);
        }
        it = last_first(it, &one);
        for (model, departs, odd) in MALFORMED {
            it = asks(first_stream(it, model, Vec::new()), model);
            it = it.step(awaits(&opening(model))).step(conforming(ACCEPTED)).step(conforming(&one));
            it = it.raw(&format!("{model}-chunk"), departs, chunk(2, odd));
            it = it.step(conforming(&two)).step(conforming(&end(2))).step(outcome(model));
        }
        stop(it)
    },
};

/// A stream whose last chunk comes right behind its first. The others come a few at a time: a host may have room for
/// no more notifications than that, which is another matter.
fn last_first(script: Script, one: &str) -> Script {
    let model = "ahead";
    let it = asks(first_stream(script, model, Vec::new()), model).step(awaits(&opening(model)));
    let it = it.step(conforming(ACCEPTED)).step(conforming(one)).step(conforming(&text(257, "last-")));
    let portions = [2..=65, 66..=129, 130..=193, 194..=256];
    let it = portions
        .into_iter()
        .fold(it, |it, some| dots(some).fold(it, |it, dot| it.step(conforming(&dot))).fence());
    it.step(conforming(&end(257))).step(outcome(model))
}

/// Hosts that ask a model again, and again, when a stream has broken take their time for it here.
static BEYOND_WINDOW: ScriptDef = ScriptDef {
    name: "stream-beyond-window",
    process: Process::Tour,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let model = "far-ahead";
        let far = [text(1, "one-"), text(258, "last-")].into_iter().chain(dots(2..=257)).chain([end(258)]);
        let it = session_of("stream-beyond-window", setting, Plugin::new(setting, ONE), &[model], &[]);
        stop(asked(first_stream(it, model, accepted(far)), model))
    },
};

static BROKEN: ScriptDef = ScriptDef {
    name: "streams-that-break",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let (one, two, three) = (text(1, "one-"), text(2, "two-"), text(3, "three-"));
        let error = r#"{"type":"error","error":{"code":"provider_failed","message":"the model gave up"}}"#;
        let frames = [
            ("missing", accepted([one.clone(), three.clone(), end(3)])),
            ("beyond-missing", accepted([end(1), text(2, "behind-"), one.clone()])),
            ("beyond-waiting", accepted([one.clone(), text(3, "behind-"), end(2), two.clone()])),
            ("beyond-complete", accepted([one.clone(), end(1), text(2, "behind-")])),
            ("end-below", accepted([one.clone(), two.clone(), end(1)])),
            ("ends-differ", accepted([one.clone(), three.clone(), end(3), end(4), two, text(4, "four-")])),
            ("end-error", accepted([one.clone(), end_of(STREAM, 1, r#","error":"the model gave up""#)])),
            ("end-interrupted", accepted([one.clone(), end_of(STREAM, 1, r#","interrupted":true"#)])),
            ("error-chunk", accepted([one.clone(), chunk(2, error), end(2)])),
        ];
        let declined = "declined";
        let names: Vec<&str> = frames.iter().map(|(name, _)| *name).chain([declined]).collect();
        let mut it = session_of("streams-that-break", setting, Plugin::new(setting, ONE), &names, &[]);
        for (model, frames) in frames {
            it = asked(first_stream(it, model, frames), model);
        }
        // It goes on all the same, for hosts that wait for the end, but not before the host has heard of it.
        it = asks(first_stream(it, declined, Vec::new()), declined).step(awaits(&opening(declined)));
        it = it.step(conforming(DECLINED)).fence().step(conforming(&one)).step(conforming(&end(1)));
        stop(it.step(outcome(declined)))
    },
};

static GAPS: ScriptDef = ScriptDef {
    name: "streams-with-gaps",
    process: Process::Own,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let models = ["gap-at-end", "gap"];
        let it = session_of("streams-with-gaps", setting, Plugin::new(setting, ONE), &models, &[]);
        let frames = dots(1..=MISSING - 1).chain([text(MISSING + 1, "last-"), end(MISSING + 1)]);
        let it = streams(it, "gap-at-end", None, accepted(frames));
        let it = asks(it, "gap-at-end").step(patient("gap-at-end", TRIED_AGAIN_MILLIS));
        let it = first_stream(it, "gap", accepted([text(1, "one-"), text(3, "three-")]));
        stop(asks(it, "gap").step(patient("gap", 15_000)))
    },
};

/// The number of a chunk that never comes.
const MISSING: u64 = 77;

static CANCEL: ScriptDef = ScriptDef {
    name: "stream-cancelled",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE);
        let it = session_of("stream-cancelled", setting, plugin, &["endless", "next"], &[]);
        let it = first_stream(it, "endless", accepted([text(1, "one-")]));
        let old = r#"{"$capture":"old"}"#;
        let late = [chunk_of(old, 2, &text_chunk("late-")), end_of(old, 2, "")];
        let it = first_stream(it, "next", accepted(late.into_iter().chain([text(1, "next-"), end(1)])));
        let it = asks(it, "endless").step(awaits(&opening("endless").replace(STREAM, old)));
        let it =
            it.step(ask("cancel", r#"{"do":"cancel"}"#)).step(outcome("endless")).step(outcome("cancel"));
        stop(asked(it, "next"))
    },
};

static CRASH: ScriptDef = ScriptDef {
    name: "crash-in-stream",
    process: Process::Tour,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let it = session_of("crash-in-stream", setting, Plugin::new(setting, ONE), &["crash"], &[]);
        let it = first_stream(it, "crash", accepted([text(1, "one-")]));
        let it = asks(it, "crash").step(awaits(&opening("crash"))).step(Step::Do(Order::Exit(3)));
        stop(it.step(patient("crash", TRIED_AGAIN_MILLIS)))
    },
};

/// How many chunks come at once.
const MANY: u64 = 600;

static FLOOD: ScriptDef = ScriptDef {
    name: "flood-of-chunks",
    process: Process::Own,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let it = session_of("flood-of-chunks", setting, Plugin::new(setting, ONE), &["flood"], &[]);
        let it = first_stream(
            it,
            "flood",
            accepted(dots(1..=MANY).chain([text(MANY + 1, "last-"), end(MANY + 1)])),
        );
        stop(asks(it, "flood").step(patient("flood", TRIED_AGAIN_MILLIS)))
    },
};

/// The id of a call of the model.
const CALL: &str = "sidecert-call";

static KINDS: ScriptDef = ScriptDef {
    name: "types-of-chunks",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let tools: Vec<&str> = setting.declared.iter().filter_map(|it| it.strip_prefix("tool/")).collect();
        let tool = if tools.contains(&"ls") { "ls" } else { tools.first().copied().unwrap_or("ls") };
        let call = |arguments: &str| {
            format!(r#"{{"id":"{CALL}","name":{},"arguments":{}}}"#, quoted(tool), quoted(arguments))
        };
        let chunks = [
            r#"{"type":"reasoning","text":"sidecert-reasons","signature":"sidecert-signs"}"#.to_owned(),
            text_chunk("sidecert-says"),
            format!(r#"{{"type":"tool_call_start","toolCall":{}}}"#, call("")),
            r#"{"type":"tool_call_args_delta","argChars":12}"#.to_owned(),
            format!(r#"{{"type":"tool_call","toolCall":{}}}"#, call(r#"{"path":"."}"#)),
            r#"{"type":"usage","usage":{"promptTokens":18,"completionTokens":3,"totalTokens":21,"cacheHitTokens":7,"cacheMissTokens":11,"reasoningTokens":1}}"#.to_owned(),
            r#"{"type":"done"}"#.to_owned(),
        ];
        let one = Plugin::new(setting, ONE).intercepts(&[point::PROVIDER_RESPONSE]);
        let it = session_of("types-of-chunks", setting, one, &["kinds"], &[]);
        let it = streams(it, "kinds", Some(1), accepted(sidecar::stream(STREAM, &chunks)));
        let it = streams(it, "kinds", None, accepted([text(1, "one-"), end(1)]));
        stop(asked(it, "kinds"))
    },
};

// ---- sights ----

/// What came of an ask in a session that began.
pub(super) fn came(x: &Exchange<'_>, label: &str) -> Sight {
    begun(x).map_or_else(|sight| sight, |()| came_of(x, label))
}

/// Nobody is judged on what was asked of a session that did not begin.
fn begun(x: &Exchange<'_>) -> Result<(), Sight> {
    match came_of(x, START) {
        Sight::Saw(DONE, _) => Ok(()),
        Sight::Saw(..) | Sight::SawOther { .. } => {
            Err(Sight::Undecided(Why::CutShort("the session did not begin".to_owned())))
        }
        undecided @ Sight::Undecided(_) => Err(undecided),
    }
}

/// Where an ask was made, where it was over, and what came of it.
pub(super) fn span<'x>(x: &'x Exchange<'_>, label: &str) -> Result<(u64, u64, Node<'x>), Sight> {
    begun(x)?;
    let Some((over, outcome)) = x.outcome(label) else { return Err(super::never_came(x, label)) };
    let its =
        |entry: &Entry<'_>| matches!(&entry.event.kind, Kind::Told { label: Some(it), .. } if it == label);
    let asked = x.told(Told::Ask).filter(|(entry, _)| its(entry)).last().map_or(0, |(entry, _)| entry.at);
    Ok((asked, over, outcome))
}

/// Every text that the user was shown from event `from` on, up to event `to`.
fn texts<'x>(x: &'x Exchange<'_>, from: u64, to: u64) -> impl Iterator<Item = Cow<'x, str>> {
    let shown = x.told(Told::Shown).filter(move |(entry, _)| (from..=to).contains(&entry.at));
    shown.filter_map(|(_, node)| node.get("text")?.as_str())
}

/// What the user was shown of an answer, in one piece.
pub(super) fn answer_of(x: &Exchange<'_>, label: &str) -> Result<(String, u64), Sight> {
    let (from, at, outcome) = span(x, label)?;
    let told = outcome.get("text").and_then(|it| it.as_str()).filter(|it| !it.is_empty());
    let pieces = || texts(x, from, at).collect::<String>();
    match outcome.get("done") {
        Some(_) => Ok((told.map_or_else(pieces, Cow::into_owned), at)),
        None => Err(Sight::SawOther { at, actual: format!("{label}: the outcome {}", short(outcome.raw())) }),
    }
}

pub(super) fn sight(judged: Result<Sight, Sight>) -> Sight {
    judged.unwrap_or_else(|sight| sight)
}

/// Everything that a stream of ours can have in it, but dots.
const PIECES: [&str; 9] = ["one-", "two-", "three-", "four-", "again-", "astray-", "odd-", "late-", "last-"];

fn count(text: &str, piece: &str) -> usize {
    text.matches(piece).count()
}

/// Whether the answer was this.
fn shows(x: &Exchange<'_>, label: &str, expected: &str) -> Sight {
    shows_as(x, label, &[(expected, IN_ORDER)])
}

pub(super) fn shows_as(x: &Exchange<'_>, label: &str, expected: &[(&str, Seen)]) -> Sight {
    sight(answer_of(x, label).map(|(answer, at)| {
        // Whatever a host has around an answer is its own, but each piece stands in it as often as it should.
        let alike = |one: &str| PIECES.iter().all(|piece| count(&answer, piece) == count(one, piece));
        let found = expected.iter().find(|(pieces, _)| answer.contains(pieces) && alike(pieces));
        match found {
            Some((_, seen)) => Sight::Saw(*seen, at),
            None => Sight::SawOther { at, actual: format!("{label}: the answer {:?}", short(&answer)) },
        }
    }))
}

fn waiting_duplicates_dropped(x: &Exchange<'_>) -> Sight {
    shows_as(x, "copies", &[("one-two-three-", IN_ORDER), ("one-two-again-", LAST_COPY)])
}

fn malformed_dropped(x: &Exchange<'_>) -> Sight {
    all(MALFORMED.iter().map(|(model, _, _)| shows(x, model, "one-two-")), IN_ORDER)
}

fn all_failed(x: &Exchange<'_>, labels: &[&str]) -> Sight {
    all(labels.iter().map(|label| came(x, label)), FAILED)
}

/// The first sight that is not this one, or else the last.
pub(super) fn all(sights: impl Iterator<Item = Sight>, seen: Seen) -> Sight {
    let mut last = Sight::Undecided(Why::NotProvoked("this script had nothing to ask".into()));
    for sight in sights {
        match sight {
            Sight::Saw(it, _) if it == seen => last = sight,
            other => return other,
        }
    }
    last
}

/// Whether nothing that the user was shown behind an ask has this text in it.
fn unseen(x: &Exchange<'_>, label: &str, text: &str) -> Sight {
    sight(span(x, label).map(|(from, at, outcome)| {
        let shown = texts(x, from, x.last()).find(|it| it.contains(text)).map(Cow::into_owned);
        let told = super::says(outcome).filter(|it| it.contains(text)).map(Cow::into_owned);
        match shown.or(told) {
            Some(shown) => Sight::SawOther { at, actual: format!("{label}: {:?} was shown", short(&shown)) },
            None => Sight::Saw(NOT_SHOWN, at),
        }
    }))
}

fn nothing_beyond(x: &Exchange<'_>) -> Sight {
    let labels = ["beyond-missing", "beyond-waiting", "beyond-complete"];
    all(labels.into_iter().map(|label| unseen(x, label, "behind-")), NOT_SHOWN)
}

fn end_below(x: &Exchange<'_>) -> Sight {
    match came(x, "end-below") {
        Sight::Saw(DONE, _) => shows_as(x, "end-below", &[("one-two-", IN_ORDER), ("one-", UP_TO_END)]),
        other => other,
    }
}

fn shown_before_crash(x: &Exchange<'_>) -> Sight {
    match came(x, "crash") {
        Sight::Saw(FAILED, _) => {}
        Sight::Saw(..) => return Sight::Undecided(Why::NotProvoked("the stream did not fail".into())),
        other => return other,
    }
    sight(span(x, "crash").map(|(from, at, outcome)| {
        let told = super::says(outcome).is_some_and(|it| it.contains("one-"));
        if told || texts(x, from, at).any(|it| it.contains("one-")) {
            return Sight::Saw(SHOWN, at);
        }
        Sight::SawOther { at, actual: "it was not shown".to_owned() }
    }))
}

fn late_ignored(x: &Exchange<'_>) -> Sight {
    match shows(x, "next", "next-") {
        Sight::Saw(..) => unseen(x, "next", "late-"),
        other => other,
    }
}

/// The openings of streams of a model.
pub(super) fn openings<'x>(
    x: &'x Exchange<'_>,
    model: &str,
) -> impl Iterator<Item = (&'x Entry<'x>, Node<'x>)> {
    let reference = reference(model);
    let of = x.asked(contract::STREAM_OPEN).filter_map(|(entry, params)| Some((entry, params?)));
    of.filter(move |(_, params)| member(*params, "providerRef") == reference)
}

pub(super) fn member<'x>(node: Node<'x>, name: &str) -> Cow<'x, str> {
    node.get(name).and_then(|it| it.as_str()).unwrap_or_default()
}

fn cancelled(x: &Exchange<'_>, model: &str) -> Sight {
    let Some((opened, params)) = openings(x, model).next() else { return super::never_came(x, model) };
    let id = member(params, "streamId");
    let mut cancels = x.asked(contract::STREAM_CANCEL).filter(|(entry, _)| entry.at > opened.at);
    let told = cancels.find(|(entry, params)| {
        entry.event.link == opened.event.link && params.is_some_and(|params| member(params, "streamId") == id)
    });
    sight(span(x, model).map(|(_, at, _)| match told {
        Some((entry, _)) => Sight::Saw(TOLD, entry.at),
        None => Sight::SawOther { at, actual: "the guest was not told".to_owned() },
    }))
}

fn open_complete(x: &Exchange<'_>) -> Sight {
    let Some((entry, params)) = openings(x, "plain").next() else { return not_opened(x, "plain") };
    let request = params.get("request");
    let messages = request.and_then(|it| it.get("messages")).into_iter().flat_map(Node::elements);
    let heard = messages.filter(|it| member(*it, "role") == "user").any(|it| {
        let content = member(it, "content");
        content.contains(&question("plain"))
    });
    let tools = request.and_then(|it| it.get("tools")).is_some_and(|it| it.raw().starts_with('['));
    let actual = match (member(params, "streamId").is_empty(), heard, tools) {
        (true, _, _) => "it has no id",
        (_, false, _) => "what the user said is not in it",
        (_, _, false) => "it has no list of tools",
        _ => return Sight::Saw(CARRIED, entry.at),
    };
    Sight::SawOther { at: entry.at, actual: actual.to_owned() }
}

/// What a judge says where a model should have been opened, and was not.
pub(super) fn not_opened(x: &Exchange<'_>, label: &str) -> Sight {
    sight(span(x, label).map(|(_, at, outcome)| Sight::SawOther {
        at,
        actual: format!("no stream was opened, and {}", short(outcome.raw())),
    }))
}

fn counted_from_one(x: &Exchange<'_>) -> Sight {
    let Some((entry, params)) = openings(x, "plain").next() else { return not_opened(x, "plain") };
    match params.get("seqBase").and_then(|it| it.as_u64()) {
        Some(1) => Sight::Saw(FROM_ONE, entry.at),
        base => {
            Sight::SawOther { at: entry.at, actual: base.map_or("no number".into(), |it| it.to_string()) }
        }
    }
}

fn missing_named(x: &Exchange<'_>) -> Sight {
    sight(span(x, "gap-at-end").map(|(from, at, outcome)| {
        let said = super::says(outcome).into_iter().chain(texts(x, from, at));
        let number = MISSING.to_string();
        let words = |says: &str| says.split(|it: char| !it.is_alphanumeric()).any(|word| word == number);
        if said.into_iter().any(|says| words(&says)) {
            return Sight::Saw(NAMED, at);
        }
        Sight::SawOther { at, actual: format!("{:?}", short(outcome.raw())) }
    }))
}

fn gap_interrupts(x: &Exchange<'_>) -> Sight {
    match x.timed_out(Wait::Outcome, Some("gap")) {
        Some((at, _)) => Sight::Saw(STAYED_OPEN, at),
        None => came(x, "gap"),
    }
}

fn floods_whole(x: &Exchange<'_>) -> Sight {
    let whole = format!("{}last-", ".".repeat(usize::try_from(MANY).unwrap_or_default()));
    match came(x, "flood") {
        Sight::Saw(FAILED, at) => Sight::Saw(ALL_OR_FAILED, at),
        _ => shows_as(x, "flood", &[(&whole, ALL_OR_FAILED)]),
    }
}

fn every_type_taken(x: &Exchange<'_>) -> Sight {
    let at_point = |params: Node<'_>| member(params, "event") == point::PROVIDER_RESPONSE;
    let mut responses = x.asked(contract::INTERCEPT).filter_map(|(entry, params)| Some((entry, params?)));
    let Some((entry, params)) = responses.find(|(_, params)| at_point(*params)) else {
        return not_opened(x, "kinds");
    };
    let payload = params.get("payload");
    let at = |pointer: &str| payload.and_then(|it| it.pointer(pointer));
    let has = |pointer: &str, text: &str| {
        at(pointer).and_then(|it| it.as_str()).is_some_and(|it| it.contains(text))
    };
    let counts = |pointer: &str, number: u64| at(pointer).and_then(|it| it.as_u64()) == Some(number);
    let parts = [
        ("the text", has("/text", "sidecert-says")),
        ("the reasoning", has("/reasoning", "sidecert-reasons")),
        ("the signature", has("/signature", "sidecert-signs")),
        ("the call", has("/calls/0/id", CALL) && at("/calls/1").is_none()),
        ("the tokens from a cache", counts("/usage/cacheHitTokens", 7)),
        ("the tokens from no cache", counts("/usage/cacheMissTokens", 11)),
    ];
    match parts.iter().find(|(_, there)| !there) {
        None => Sight::Saw(ALL_THERE, entry.at),
        Some((part, _)) => {
            Sight::SawOther { at: entry.at, actual: format!("{part} is not as the model gave it") }
        }
    }
}

fn call_answered(x: &Exchange<'_>) -> Sight {
    let Some((entry, params)) = openings(x, "kinds").nth(1) else {
        return not_opened(x, "kinds");
    };
    let messages = params.pointer("/request/messages").into_iter().flat_map(Node::elements);
    let results = messages.filter(|it| member(*it, "role") == "tool" && member(*it, "tool_call_id") == CALL);
    match results.count() {
        1 => Sight::Saw(GIVEN, entry.at),
        many => Sight::SawOther { at: entry.at, actual: format!("{many} results of its call") },
    }
}
