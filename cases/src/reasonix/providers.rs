//! "Streaming providers": the catalog and the streams.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::{Kind as JsonKind, Node, quoted};
use sidecert_proto::reasonix::{contract, host, sample, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Envelope;
use sidecert_proto::script::{Need, Pattern, Process, Script, ScriptDef, Setting, Step, Within};
use sidecert_proto::verdict::{Sight, Why};

use serde_json::{Value, json};

use super::sights::{
    BAD_PARAMS, INVALID_BY_ID, PROVIDER_FAILED, VIOLATION, all_became, became, request, result_of, sdk,
    specified,
};
use super::{HANDSHAKE, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, NOTHING_PARAMS};

const PROVIDERS: Cite = Cite::Seed("流式 Provider", "Streaming providers");
const CHUNK: Cite = Cite::Schema("/$defs/ProviderChunk");

const LISTED: Seen = Seen("answered with a list of descriptors");
const NOT_CANCELLED: Seen = Seen("answered that nothing was cancelled");
const CANCELLED: Seen = Seen("answered that it was cancelled");
const INTERRUPTED: Seen = Seen("the stream ends, interrupted");
const FROM_ONE: Seen = Seen("the first chunk has the number 1");
const FROM_BASE: Seen = Seen("the first chunk has the number that the request names");
const APART: Seen = Seen("each has numbers and an end of its own");
const EMPTY: Seen = Seen("the stream ends with lastSeq 0");
const TOLD: Seen = Seen("the failure is told in the stream");

const STREAMS: &[Need] = &[Need::Declared("providers"), Need::Exercise("streams")];
const STRICT: &[Accepts] = &[specified(BAD_PARAMS)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/providers/catalog-answered", Guest)
        .says(
            "A guest that declares providers answers the catalog request with their descriptors.",
            &[PROVIDERS, Cite::Schema("/$defs/ProviderCatalogResult")],
        )
        .when("providers")
        .accepts(&[specified(LISTED)])
        .checked(After(&CATALOG, catalog_answered)),
    must("reasonix/providers/credentials-absent", Guest)
        .says("Nothing in the catalog, or in the answer to initialize, is a key.", &[PROVIDERS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CREDENTIALS_ABSENT, &HANDSHAKE)),
    must("reasonix/streams/chunks-contiguous", Guest)
        .says("The chunks of a stream are numbered without a gap.", &[PROVIDERS])
        .when("providers")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CHUNKS_CONTIGUOUS, &STREAM)),
    must("reasonix/streams/numbered-from-one", Guest)
        .says("The first chunk of a stream has the number 1.", &[PROVIDERS])
        .when("providers")
        .accepts(&[specified(FROM_ONE), sdk(FROM_BASE)])
        .checked(After(&STREAM_FROM_TEN, numbered_from_one)),
    must("reasonix/streams/ended-once", Guest)
        .says("A stream ends once, with the number of its last chunk; after its end comes nothing.", &[PROVIDERS])
        .when("providers")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ENDED_ONCE, &STREAM)),
    must("reasonix/streams/chunks-complete", Guest)
        .says("A chunk of usage has its usage, and a chunk of an error its error.", &[PROVIDERS, CHUNK])
        .when("providers")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CHUNKS_COMPLETE, &STREAM)),
    must("reasonix/streams/signatures-with-reasoning", Guest)
        .says("Only a chunk of reasoning has a signature.", &[])
        .when("providers")
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::SIGNATURES_WITH_REASONING, &STREAM)),
    must("reasonix/streams/streams-apart", Guest)
        .says("Two streams at once have numbers and ends of their own.", &[])
        .when("providers")
        .accepts(&[sdk(APART)])
        .checked(After(&TWO_STREAMS, streams_apart)),
    must("reasonix/streams/empty-stream-ends-at-zero", Guest)
        .says("A stream without a chunk ends with lastSeq 0.", &[])
        .when("providers")
        .accepts(&[sdk(EMPTY)])
        .checked(After(&EMPTY_STREAM, empty_stream)),
    must("reasonix/streams/failure-told", Guest)
        .says("A provider that fails says so: in an error chunk, in the error of the end, or by refusing to open.", &[PROVIDERS])
        .when("providers")
        .accepts(&[specified(TOLD)])
        .checked(After(&FAILING_STREAM, failure_told)),
    must("reasonix/streams/errors-redacted", Guest)
        .says("What a guest says of a failed provider has no key in it.", &[PROVIDERS])
        .when("providers")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ERRORS_REDACTED, &FAILING_STREAM)),
    must("reasonix/streams/unknown-provider-refused", Guest)
        .says("A stream of a provider that there is not fails as provider_failed.", &[])
        .when("providers")
        .accepts(&[sdk(PROVIDER_FAILED)])
        .checked(After(&UNKNOWN_PROVIDER, |x| became(x, "unknown-provider"))),
    must("reasonix/streams/unknown-member-refused", Guest)
        .says("A request to open a stream with a member too many, at any depth, is refused.", &[Cite::Seed("传输", "Transport"), Cite::Schema("/$defs/StreamOpenParams")])
        .when("providers")
        .accepts(STRICT)
        .checked(After(&BAD_OPENS, |x| all_became(x, ["member", "message-member", "tool-member"], STRICT))),
    must("reasonix/streams/lists-demanded", Guest)
        .says("The messages and the tools of such a request are lists, and not null.", &[Cite::Schema("/$defs/ProviderRequest")])
        .when("providers")
        .accepts(STRICT)
        .checked(After(&BAD_OPENS, |x| all_became(x, ["null-messages", "null-tools"], STRICT))),
    must("reasonix/streams/negative-base-refused", Guest)
        .says("A stream whose numbers would begin below 0 is refused.", &[Cite::Schema("/$defs/StreamOpenParams/properties/seqBase")])
        .when("providers")
        .accepts(STRICT)
        .checked(After(&BAD_OPENS, |x| became(x, "negative-base"))),
    must("reasonix/streams/live-id-refused", Guest)
        .says("A second stream under the id of one that runs is refused.", &[])
        .when("providers")
        .accepts(&[sdk(VIOLATION), specified(INVALID_BY_ID)])
        .checked(After(&LONG_STREAM, |x| became(x, "again"))),
    must("reasonix/streams/silent-after-cancel", Guest)
        .says("When a cancel was answered, no chunk of its stream comes any more.", &[PROVIDERS])
        .when("providers")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NOTHING_AFTER_CANCEL, &LONG_STREAM)),
    must("reasonix/streams/cancel-answered", Guest)
        .says("The cancel of a stream that runs is answered with cancelled.", &[])
        .when("providers")
        .accepts(&[sdk(CANCELLED)])
        .checked(After(&LONG_STREAM, |x| cancelled(x, true))),
    must("reasonix/streams/cancelled-stream-ends", Guest)
        .says("A stream that was cancelled ends, and says that it was interrupted.", &[])
        .when("providers")
        .accepts(&[sdk(INTERRUPTED)])
        .checked(After(&LONG_STREAM, cancelled_stream_ends)),
    must("reasonix/streams/unknown-cancel-answered", Guest)
        .says("The cancel of a stream that there is not is answered, and nothing was cancelled.", &[])
        .accepts(&[sdk(NOT_CANCELLED)])
        .checked(After(&UNKNOWN_CANCEL, |x| cancelled(x, false))),
];

/// Asks for the catalog.
static CATALOG: ScriptDef = ScriptDef {
    name: "catalog",
    process: Process::Tour,
    needs: &[Need::Declared("providers")],
    build: |_| Script::new("catalog").request("catalog", contract::PROVIDER_CATALOG, "{}").fence().settle(),
};

fn catalog_answered(exchange: &Exchange<'_>) -> Sight {
    match result_of(exchange, "catalog") {
        Ok((result, at)) if result.get("providers").is_some_and(|list| list.kind() == JsonKind::Array) => {
            Sight::Saw(LISTED, at)
        }
        Ok((result, at)) => Sight::SawOther {
            at,
            actual: format!("the result {}", sidecert_proto::exchange::short(result.raw())),
        },
        Err(sight) => sight,
    }
}

/// The params that open a stream on the guest's first provider with this prompt.
fn open(setting: &Setting<'_>, stream: &str, prompt: &str, base: i64) -> Value {
    let mut params = sample::params(setting, contract::STREAM_OPEN);
    let provider = host::offered(setting, "providers").unwrap_or(sample::NOTHING);
    params["streamId"] = stream.into();
    params["providerRef"] = provider.into();
    params["seqBase"] = base.into();
    params["request"] =
        json!({"messages": [{"role": "user", "content": prompt}], "tools": [], "maxTokens": 64});
    params
}

/// The same for a provocation, which names the prompt and may name the provider.
fn provoked_open(setting: &Setting<'_>, name: &str, stream: &str) -> String {
    let text = setting.provocations.get(name).map_or("{}", String::as_str);
    let given: Value = serde_json::from_str(text).unwrap_or_default();
    let mut params = open(setting, stream, given["message"].as_str().unwrap_or_default(), 1);
    if let Some(provider) = given["providerRef"].as_str() {
        params["providerRef"] = provider.into();
    }
    params.to_string()
}

/// Waits for what the guest tells of a stream.
fn told(method: &str, stream: &str) -> Step {
    let pattern = format!(r#"{{"method":"{method}","params":{{"streamId":{}}}}}"#, quoted(stream));
    Step::Await { frame: Pattern::of(&pattern).unwrap_or(Pattern::Any), within: Within::Answer }
}

fn ended(stream: &str) -> Step {
    told(contract::STREAM_END, stream)
}

const PROMPT: &str = "Say hello in one word.";

/// Opens a stream and hears it out.
static STREAM: ScriptDef = ScriptDef {
    name: "stream",
    process: Process::Tour,
    needs: STREAMS,
    build: |setting| {
        Script::new("stream")
            .request("open", contract::STREAM_OPEN, &open(setting, "sidecert-stream", PROMPT, 1).to_string())
            .answer("open")
            .step(ended("sidecert-stream"))
            .fence()
            .settle()
    },
};

/// Opens a stream whose numbers are to begin at ten.
static STREAM_FROM_TEN: ScriptDef = ScriptDef {
    name: "stream-from-ten",
    process: Process::Tour,
    needs: STREAMS,
    build: |setting| {
        Script::new("stream-from-ten")
            .request("open", contract::STREAM_OPEN, &open(setting, "sidecert-ten", PROMPT, 10).to_string())
            .answer("open")
            .step(ended("sidecert-ten"))
    },
};

/// What the guest tells of a stream: the params of chunks or of ends, in order.
fn tellings<'x>(
    exchange: &'x Exchange<'_>,
    method: &'x str,
    stream: &'x str,
) -> impl Iterator<Item = (u64, Node<'x>)> {
    exchange.from_target().filter_map(move |(entry, said)| match &said.envelope {
        Ok(Envelope::Notification { method: its, params: Some(params) })
            if its == method
                && params.get("streamId").and_then(|it| it.as_str()).as_deref() == Some(stream) =>
        {
            Some((entry.at, *params))
        }
        _ => None,
    })
}

fn numbered_from_one(exchange: &Exchange<'_>) -> Sight {
    match tellings(exchange, contract::STREAM_CHUNK, "sidecert-ten").next() {
        Some((at, chunk)) => match chunk.get("seq").and_then(|it| it.as_u64()) {
            Some(1) => Sight::Saw(FROM_ONE, at),
            Some(10) => Sight::Saw(FROM_BASE, at),
            other => Sight::SawOther { at, actual: format!("the number {}", other.unwrap_or_default()) },
        },
        None if exchange.cut.is_some() => exchange.nothing_came("open", ""),
        None => Sight::Undecided(Why::NotProvoked("the stream had no chunk".into())),
    }
}

/// Opens two streams at once.
static TWO_STREAMS: ScriptDef = ScriptDef {
    name: "two-streams",
    process: Process::Tour,
    needs: STREAMS,
    build: |setting| {
        Script::new("two-streams")
            .request("one", contract::STREAM_OPEN, &open(setting, "sidecert-one", PROMPT, 1).to_string())
            .request("two", contract::STREAM_OPEN, &open(setting, "sidecert-two", PROMPT, 1).to_string())
            .step(ended("sidecert-one"))
            .step(ended("sidecert-two"))
            .fence()
    },
};

fn streams_apart(exchange: &Exchange<'_>) -> Sight {
    let mut last = 0;
    for stream in ["sidecert-one", "sidecert-two"] {
        let numbers: Vec<u64> = tellings(exchange, contract::STREAM_CHUNK, stream)
            .filter_map(|(_, chunk)| chunk.get("seq").and_then(|it| it.as_u64()))
            .collect();
        let Some((at, _)) = tellings(exchange, contract::STREAM_END, stream).next() else {
            return exchange.nothing_came("one", &format!("{stream} did not end"));
        };
        if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
            return Sight::SawOther {
                at,
                actual: format!("the chunks of {stream} have the numbers {numbers:?}"),
            };
        }
        last = at;
    }
    Sight::Saw(APART, last)
}

/// Opens a stream that has nothing to say.
static EMPTY_STREAM: ScriptDef = ScriptDef {
    name: "empty-stream",
    process: Process::Tour,
    needs: &[Need::Declared("providers"), Need::Exercise("streams"), Need::Provocation("empty-stream")],
    build: |setting| {
        Script::new("empty-stream")
            .request("open", contract::STREAM_OPEN, &provoked_open(setting, "empty-stream", "sidecert-empty"))
            .step(ended("sidecert-empty"))
            .fence()
    },
};

fn empty_stream(exchange: &Exchange<'_>) -> Sight {
    match tellings(exchange, contract::STREAM_END, "sidecert-empty").next() {
        Some((at, end)) => match end.get("lastSeq").and_then(|it| it.as_u64()) {
            Some(0) => Sight::Saw(EMPTY, at),
            other => Sight::SawOther { at, actual: format!("lastSeq {}", other.unwrap_or_default()) },
        },
        None => exchange.nothing_came("open", "the stream did not end"),
    }
}

/// Opens a stream whose provider fails.
static FAILING_STREAM: ScriptDef = ScriptDef {
    name: "failing-stream",
    process: Process::Tour,
    needs: &[Need::Declared("providers"), Need::Exercise("streams"), Need::Provocation("failing-stream")],
    build: |setting| {
        Script::new("failing-stream")
            .request(
                "open",
                contract::STREAM_OPEN,
                &provoked_open(setting, "failing-stream", "sidecert-failing"),
            )
            .answer("open")
            .step(ended("sidecert-failing"))
            .fence()
    },
};

fn failure_told(exchange: &Exchange<'_>) -> Sight {
    if let Some(answer) = exchange.answer_to("open").filter(|answer| answer.code().is_some()) {
        return Sight::Saw(TOLD, answer.at);
    }
    let in_chunk = tellings(exchange, contract::STREAM_CHUNK, "sidecert-failing")
        .find(|(_, chunk)| chunk.pointer("/chunk/error").is_some());
    let end = tellings(exchange, contract::STREAM_END, "sidecert-failing").next();
    match (in_chunk, end) {
        (Some((at, _)), _) => Sight::Saw(TOLD, at),
        (None, Some((at, end))) if end.get("error").is_some() => Sight::Saw(TOLD, at),
        (None, Some((at, _))) => {
            Sight::SawOther { at, actual: "the stream ended as if nothing was".to_owned() }
        }
        (None, None) => exchange.nothing_came("open", "the stream did not end"),
    }
}

/// Asks for a stream of a provider that there is not.
static UNKNOWN_PROVIDER: ScriptDef = ScriptDef {
    name: "unknown-provider",
    process: Process::Tour,
    needs: &[Need::Declared("providers")],
    build: |setting| {
        let mut params = open(setting, "sidecert-unknown", PROMPT, 1);
        params["providerRef"] = sample::NOTHING.into();
        Script::new("unknown-provider")
            .request("unknown-provider", contract::STREAM_OPEN, &params.to_string())
            .fence()
            .settle()
    },
};

/// Asks for streams with params that are wrong.
static BAD_OPENS: ScriptDef = ScriptDef {
    name: "bad-opens",
    process: Process::Tour,
    needs: STREAMS,
    build: |setting| {
        let edited = |label: &str, departs: &str, pointer: &str, name: &str, value: Value| {
            let mut params = open(setting, &format!("sidecert-{label}"), PROMPT, 1);
            params["request"]["tools"] = json!([{"name": "sidecert", "parameters": {}}]);
            if let Some(place) = params.pointer_mut(pointer) {
                place[name] = value;
            }
            (label.to_owned(), departs.to_owned(), contract::STREAM_OPEN.to_owned(), params)
        };
        super::members::sent(
            "bad-opens",
            [
                edited("member", "it has a member x", "", "x", 1.into()),
                edited("message-member", "its message has a member x", "/request/messages/0", "x", 1.into()),
                edited("tool-member", "its tool has a member x", "/request/tools/0", "x", 1.into()),
                edited("null-messages", "its messages are null", "/request", "messages", Value::Null),
                edited("null-tools", "its tools are null", "/request", "tools", Value::Null),
                edited("negative-base", "its seqBase is negative", "", "seqBase", (-1).into()),
            ],
        )
    },
};

const LONG: &str = "sidecert-long";

/// Opens a stream that goes on, asks for other things meanwhile, and cancels it.
static LONG_STREAM: ScriptDef = ScriptDef {
    name: "long-stream",
    process: Process::Tour,
    needs: &[Need::Declared("providers"), Need::Exercise("streams"), Need::Provocation("long-stream")],
    build: |setting| {
        let params = provoked_open(setting, "long-stream", LONG);
        Script::new("long-stream")
            .request("open", contract::STREAM_OPEN, &params)
            .step(told(contract::STREAM_CHUNK, LONG))
            .raw("again", "a stream of this id is running", request("again", contract::STREAM_OPEN, &params))
            .fence()
            .request("cancel", contract::STREAM_CANCEL, &format!(r#"{{"streamId":"{LONG}"}}"#))
            .answer("cancel")
            .fence()
            .settle()
    },
};

fn cancelled(exchange: &Exchange<'_>, expected: bool) -> Sight {
    match result_of(exchange, "cancel") {
        Ok((result, at)) => {
            let said = result.get("cancelled").and_then(|it| it.as_bool());
            let before =
                tellings(exchange, contract::STREAM_END, LONG).next().is_some_and(|(end, _)| end < at);
            match said {
                // A stream that had ended by itself could not be cancelled any more.
                Some(false) if expected && before => {
                    Sight::Undecided(Why::NotProvoked("the stream was over before it was cancelled".into()))
                }
                Some(true) if expected => Sight::Saw(CANCELLED, at),
                Some(false) if !expected => Sight::Saw(NOT_CANCELLED, at),
                _ => Sight::SawOther {
                    at,
                    actual: format!("the result {}", sidecert_proto::exchange::short(result.raw())),
                },
            }
        }
        Err(sight) => sight,
    }
}

fn cancelled_stream_ends(exchange: &Exchange<'_>) -> Sight {
    let Some(cancel) = exchange.answer_to("cancel") else {
        return exchange.nothing_came("cancel", "no answer");
    };
    match tellings(exchange, contract::STREAM_END, LONG).next() {
        Some((at, end)) if end.get("interrupted").and_then(|it| it.as_bool()) == Some(true) => {
            Sight::Saw(INTERRUPTED, at)
        }
        Some((at, _)) if at < cancel.at => {
            Sight::Undecided(Why::NotProvoked("the stream was over before it was cancelled".into()))
        }
        Some((at, _)) => Sight::SawOther { at, actual: "it ended, and was not interrupted".to_owned() },
        None => exchange.nothing_came("cancel", "it did not end"),
    }
}

/// Cancels a stream that there is not.
static UNKNOWN_CANCEL: ScriptDef = ScriptDef {
    name: "unknown-cancel",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        Script::new("unknown-cancel")
            .request("cancel", contract::STREAM_CANCEL, NOTHING_PARAMS)
            .fence()
            .settle()
    },
};
