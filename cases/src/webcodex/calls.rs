//! Calls. A tool is called only where the user says so.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::{Answer, Exchange};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Requirement, Seen, must};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{CALLS, Need, Process, Script, ScriptDef};
use sidecert_proto::verdict::Sight;
use sidecert_proto::webcodex::contract::TOOLS_CALL;
use sidecert_proto::webcodex::{calls, session};

use super::sights::{REFUSED, SERVED, UNKNOWN, became, oddities, plugins, request};
use super::{CALLING, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, PROTOCOL};

const NO_RESULT: Seen = Seen("refused with an error, or with a result that says `isError`");

pub(super) const ROWS: &[Requirement] = &[
    must("webcodex/calls/unknown-tool-refused", Guest)
        .says("A call of a tool that is not listed is refused, whatever its name means to the language.", &[])
        .accepts(&[plugins(NO_RESULT)])
        .checked(After(&UNKNOWN_TOOLS, unknown_tools_refused)),
    must("webcodex/calls/content-is-text", Guest)
        .says("The content of a result is an array of texts.", &[PROTOCOL])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CONTENT_IS_TEXT, &TOOL_CALLS)),
    must("webcodex/calls/structured-content-is-object", Guest)
        .says("Structured content, where there is some, is an object.", &[PROTOCOL])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::STRUCTURED_IS_OBJECT, &TOOL_CALLS)),
    must("webcodex/calls/output-matches", Guest)
        .says(
            "A tool with an output schema gives structured content that matches it, also where it failed.",
            &[CALLING],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::OUTPUT_MATCHES, &TOOL_CALLS)),
    must("webcodex/calls/integers-written", Guest)
        .says("An integer that an output schema asks for is written as one: `7`, and not `7.0`.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::INTEGERS_WRITTEN, &TOOL_CALLS)),
    must("webcodex/calls/is-error-boolean", Guest)
        .says("`isError`, where it is there, is a boolean.", &[PROTOCOL])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::IS_ERROR_BOOLEAN, &TOOL_CALLS)),
    must("webcodex/calls/no-more-members", Guest)
        .says("A result and its texts have no members but those of the protocol.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::RESULTS_CLOSED, &TOOL_CALLS)),
    must("webcodex/calls/texts-plain", Guest)
        .says("A text has no control characters but tab, line feed and carriage return.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::TEXTS_PLAIN, &TOOL_CALLS)),
    must("webcodex/calls/results-bounded", Guest)
        .says("A result keeps the bounds of the generation in force.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::RESULTS_BOUNDED, &TOOL_CALLS)),
];

/// Calls what the user named, and what only reads if the user lets us, one after the other.
static TOOL_CALLS: ScriptDef = ScriptDef {
    name: "tool-calls",
    process: Process::Own,
    needs: &[Need::Exercise(CALLS)],
    build: |setting| {
        let calls = calls::planned(setting).calls;
        let call = |script: Script, (place, params): (usize, &String)| {
            let label = format!("call-{}", place + 1);
            script.request(&label, TOOLS_CALL, params).answer(&label)
        };
        calls.iter().enumerate().fold(Script::new("tool-calls"), call).fence()
    },
};

const UNKNOWN_NAMES: [(&str, &str); 3] =
    [("unknown-tool", "sidecert-none"), ("prototype", "__proto__"), ("inherited", "toString")];

/// Calls tools that there are not.
static UNKNOWN_TOOLS: ScriptDef = ScriptDef {
    name: "unknown-tools",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let frames = UNKNOWN_NAMES.map(|(label, name)| {
            let params = format!(r#"{{"name":"{name}","arguments":{{}}}}"#);
            (label, "there is no such tool", request(label, TOOLS_CALL, &params))
        });
        oddities("unknown-tools", frames)
    },
};

fn unknown_tools_refused(exchange: &Exchange<'_>) -> Sight {
    let mut last = exchange.nothing_came(UNKNOWN_NAMES[0].0, "");
    for (label, name) in UNKNOWN_NAMES {
        last = match became(exchange, label) {
            Sight::Saw(REFUSED | UNKNOWN, at) => Sight::Saw(NO_RESULT, at),
            Sight::Saw(SERVED, at) => match exchange.answer_to(label) {
                Some(Answer { outcome: Outcome::Result(result), .. })
                    if result.get("isError").and_then(|it| it.as_bool()) == Some(true) =>
                {
                    Sight::Saw(NO_RESULT, at)
                }
                _ => return Sight::SawOther { at, actual: format!("a result for the tool {name}") },
            },
            Sight::Saw(other, at) => return Sight::SawOther { at, actual: format!("{name}: {}", other.0) },
            Sight::SawOther { at, actual } => {
                return Sight::SawOther { at, actual: format!("{name}: {actual}") };
            }
            undecided @ Sight::Undecided(_) => return undecided,
        };
    }
    last
}
