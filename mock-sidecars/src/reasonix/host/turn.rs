//! What a session does: turns of the user, tools, compaction and other conversations, each through its points.

use serde_json::{Value, json};
use sidecert_proto::reasonix::contract::{point, reason};

use super::core::{Failure, Shared, text};
use super::hooks::{Stop, pass};
use super::providers::{self, Model};
use super::session::sparse;
use super::streams::{self, Said};
use super::ui;

/// How often a model is asked in one turn.
const ROUNDS_MOST: usize = 8;
/// How long an answer of a model may be, in tokens.
const TOKENS_MOST: u64 = 4_096;
/// How much of each message goes into a summary, in characters.
const SUMMARY_CHARACTERS: usize = 120;
/// What models are told, unless a guest has something to say to that.
const PROMPT: &str = "You are the model of a reference host. Use the tools that you have.";

/// A tool of the host. It touches nothing outside of it.
struct Tool {
    name: &'static str,
    read_only: bool,
    description: &'static str,
    /// Its parameters, each with a value that works.
    parameters: &'static [(&'static str, &'static str)],
}

const TOOLS: [Tool; 3] = [
    Tool { name: "ls", read_only: true, description: "Lists a folder.", parameters: &[("path", ".")] },
    Tool {
        name: "read_file",
        read_only: true,
        description: "Reads a file.",
        parameters: &[("path", "README.md")],
    },
    Tool {
        name: "write_file",
        read_only: false,
        description: "Writes a file.",
        parameters: &[("path", "note.txt"), ("content", "a note")],
    },
];

/// The tools, as the shim tells them.
pub(super) fn tools() -> Value {
    let one = |tool: &Tool| {
        let arguments = tool.parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        let arguments = Value::Object(arguments.collect());
        json!({"name": tool.name, "readOnly": tool.read_only, "arguments": arguments})
    };
    TOOLS.iter().map(one).collect()
}

/// The tools, as models know them.
fn tool_schemas() -> Value {
    let one = |tool: &Tool| {
        let parameters = tool.parameters.iter();
        let properties = parameters.map(|(name, _)| ((*name).to_owned(), json!({"type": "string"})));
        let properties = Value::Object(properties.collect());
        json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": {"type": "object", "properties": properties},
        })
    };
    TOOLS.iter().map(one).collect()
}

/// The session begins.
pub(super) async fn begun(core: &Shared<'_>) -> Result<(), Stop> {
    let workspace = core.session(|session| session.workspace.clone()).unwrap_or_default();
    let payload = json!({"prompt": PROMPT, "workspaceRoot": workspace});
    if !core.manners.hooks.builds_prompt_once {
        pass(core, point::SYSTEM_PROMPT_BUILD, payload.clone(), None).await?;
    }
    let passage = pass(core, point::SYSTEM_PROMPT_BUILD, payload, None).await?;
    core.session(|session| text(&passage.payload, "prompt").clone_into(&mut session.prompt));
    session_point(core, point::SESSION_START).await
}

/// The session passes one of its points.
pub(super) async fn session_point(core: &Shared<'_>, point: &'static str) -> Result<(), Stop> {
    let seen =
        core.manners.hooks.session_points || !matches!(point, point::SESSION_LOAD | point::SESSION_SAVE);
    if !seen {
        return Ok(());
    }
    let path = core.session(|session| session.path()).unwrap_or_default();
    let phase = point.rsplit('.').next().unwrap_or_default();
    pass(core, point, json!({"sessionPath": path, "phase": phase}), None).await.map(drop)
}

/// The user says something. Gives what was shown of the answer.
pub(super) async fn turn(core: &Shared<'_>, ask: &Value) -> Result<String, Stop> {
    core.session(|session| session.shown_text.clear());
    let input = pass(core, point::INPUT_RECEIVE, json!({"text": text(ask, "text")}), None).await?;
    let model = providers::chosen(core, ask["model"].as_str()).await.map_err(Stop::Failed)?;
    let message = json!({"role": "user", "content": text(&input.payload, "text")});
    let session = core.session(|session| {
        session.history.push(message);
        session.id.clone()
    });
    let name = model.name.as_deref().unwrap_or(&model.reference);
    let payload = json!({"model": name, "toolCount": TOOLS.len(), "sessionId": session});
    pass(core, point::AGENT_BEFORE_START, payload, None).await?;
    for rounds in 1.. {
        let calls = round(core, &model, ask["effort"].as_str()).await?;
        if calls.is_empty() {
            break;
        }
        if rounds == ROUNDS_MOST {
            core.tell("notice", "the model asks for tools again and again: it is not asked any more", None);
            break;
        }
        for call in &calls {
            run(core, call).await;
        }
    }
    session_point(core, point::SESSION_SAVE).await?;
    Ok(core.session(|session| session.shown_text.clone()).unwrap_or_default())
}

/// Asks the model once. Gives the tools that it wants to be run.
async fn round(core: &Shared<'_>, model: &Model, effort: Option<&str>) -> Result<Vec<Value>, Stop> {
    let messages = core.session(|session| session.messages()).unwrap_or_default();
    // What guests make of the messages is for this request only.
    let context = pass(core, point::CONTEXT_PREPARE, json!({ "messages": messages }), None).await?;
    let messages = context.payload.get("messages").cloned().unwrap_or_else(|| json!([]));
    if !core.manners.hooks.context_is_ephemeral {
        core.session(|session| session.history = messages.as_array().cloned().unwrap_or_default());
    }
    let request = json!({"messages": messages, "tools": tool_schemas(), "maxTokens": TOKENS_MOST});
    let request = pass(core, point::PROVIDER_REQUEST, json!({ "request": request }), None).await?;
    let request = &request.payload["request"];
    if !core.manners.hooks.request_is_ephemeral {
        core.session(|session| session.history = request["messages"].as_array().cloned().unwrap_or_default());
    }
    let (mut said, mut outcome) = streams::answer(core, model, request, effort).await;
    if outcome.is_err()
        && core.manners.streams.falls_back
        && let Some(other) = providers::another(core, model).await
    {
        (said, outcome) = streams::answer(core, &other, request, effort).await;
    }
    if let Err(failure) = outcome {
        if core.manners.streams.shows_interrupted {
            show(core, &said.text).await?;
        }
        return Err(Stop::Failed(failure));
    }
    let came = response(&said);
    let response = pass(core, point::PROVIDER_RESPONSE, came.clone(), None).await?.payload;
    let kept = if core.manners.hooks.response_is_kept { &response } else { &came };
    let calls = response["calls"].as_array().cloned().unwrap_or_default();
    let message = sparse(json!({
        "role": "assistant",
        "content": kept["text"],
        "reasoning_content": kept["reasoning"],
        "reasoning_signature": kept["signature"],
        "tool_calls": calls,
    }));
    core.session(|session| session.history.push(message));
    show(core, text(&response, "text")).await?;
    Ok(calls)
}

fn response(said: &Said) -> Value {
    sparse(json!({
        "text": said.text,
        "reasoning": said.reasoning,
        "signature": said.signature,
        "calls": said.calls,
        "usage": said.usage,
    }))
}

/// Shows a piece of an answer.
async fn show(core: &Shared<'_>, answer: &str) -> Result<(), Stop> {
    if answer.is_empty() {
        return Ok(());
    }
    let place = ui::piece(core, json!({"kind": "text", "text": answer}), json!({"as": "text"}));
    ui::settled(core, place).await.map_err(Stop::Failed)
}

/// Runs a tool that the model wants, or says why not: either is what the model is told.
async fn run(core: &Shared<'_>, call: &Value) {
    let asked = json!({"name": text(call, "name"), "arguments": text(call, "arguments")});
    let (ran, result, is_error) = match allowed(core, asked.clone()).await {
        Ok(ran) => {
            let (result, is_error) = perform(core, text(&ran, "name"), text(&ran, "arguments"));
            (ran, result, is_error)
        }
        Err(says) => (asked, says, true),
    };
    let mut after = ran.clone();
    (after["result"], after["isError"]) = (result.as_str().into(), is_error.into());
    let told = match pass(core, point::TOOL_AFTER, sparse(after), None).await {
        Ok(passage) => text(&passage.payload, "result").to_owned(),
        Err(Stop::Blocked(says)) => says,
        Err(Stop::Failed(failure)) => {
            core.tell("error", &failure.text, None);
            failure.text
        }
    };
    let message = json!({
        "role": "tool", "name": text(&ran, "name"), "tool_call_id": text(call, "id"), "content": told,
    });
    core.session(|session| session.history.push(sparse(message)));
}

/// What is to be run after everybody was asked, or why nothing is.
async fn allowed(core: &Shared<'_>, asked: Value) -> Result<Value, String> {
    let stopped = |stop: Stop| {
        let says = match stop {
            Stop::Blocked(says) => says,
            Stop::Failed(failure) => failure.text,
        };
        core.tell("error", &says, None);
        says
    };
    let name = text(&asked, "name").to_owned();
    let before = pass(core, point::TOOL_BEFORE, sparse(asked), Some(&name)).await.map_err(stopped)?;
    let mut ran = before.payload;
    let arguments = text(&ran, "arguments").to_owned();
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == text(&ran, "name")) else {
        return Err(format!("there is no tool {}", text(&ran, "name")));
    };
    let checks = core.manners.hooks.checks_arguments;
    if checks && !serde_json::from_str::<Value>(&arguments).is_ok_and(|it| it.is_object()) {
        return Err("the arguments are not the text of an object".to_owned());
    }
    let allows = tool.read_only || core.session(|session| session.allows_writes).unwrap_or(false);
    let mut payload = ran.clone();
    payload["readOnly"] = tool.read_only.into();
    payload["hostDecision"] = if allows { "allow" } else { "deny" }.into();
    let decision = pass(core, point::PERMISSION_DECISION, sparse(payload), None).await.map_err(stopped)?;
    let hooks = &core.manners.hooks;
    let replaced = text(&decision.payload, "hostDecision") == "allow";
    let allows = if hooks.permission_replaces { replaced } else { allows };
    match decision.allowed {
        Some((true, plugin)) if !allows && hooks.allow_prevails => {
            let says = format!("plugin {plugin} allowed the tool {}, which the host denies", tool.name);
            core.tell("notice", &says, Some(&plugin));
        }
        Some((false, plugin)) if hooks.deny_prevails => {
            return Err(stopped(Stop::Blocked(format!("plugin {plugin} denied the tool {}", tool.name))));
        }
        _ if !allows => return Err(format!("the host denies the tool {}", tool.name)),
        _ => {}
    }
    ran["arguments"] = arguments.into();
    Ok(ran)
}

/// What a tool gives, and whether that is an error.
fn perform(core: &Shared<'_>, name: &str, arguments: &str) -> (String, bool) {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let (path, content) = (text(&arguments, "path"), text(&arguments, "content"));
    let files = |change: Option<(String, String)>| {
        core.session(|session| {
            session.files.extend(change);
            session.files.clone()
        })
        .unwrap_or_default()
    };
    match name {
        "ls" => {
            let written = files(None);
            let names = std::iter::once("README.md").chain(written.keys().map(String::as_str));
            (names.collect::<Vec<_>>().join("\n"), false)
        }
        "read_file" => match files(None).get(path) {
            Some(content) => (content.clone(), false),
            None if path == "README.md" => ("A file of the reference host.".to_owned(), false),
            None => (format!("there is no file {path}"), true),
        },
        _ => {
            files(Some((path.to_owned(), content.to_owned())));
            (format!("{} bytes were written", content.len()), false)
        }
    }
}

/// The conversation is compacted.
pub(super) async fn compact(core: &Shared<'_>, guidance: &str) -> Result<(), Stop> {
    let messages = core.session(|session| session.messages()).unwrap_or_default();
    let mut payload = json!({ "messages": messages });
    if !guidance.is_empty() {
        payload["guidance"] = guidance.into();
    }
    let prepared = pass(core, point::COMPACTION_PREPARE, payload, None).await?.payload;
    let messages = prepared["messages"].as_array().into_iter().flatten();
    let cut = |message: &Value| text(message, "content").chars().take(SUMMARY_CHARACTERS).collect::<String>();
    let parts: Vec<String> = messages.map(cut).filter(|part| !part.is_empty()).collect();
    let summary = json!({"summary": format!("Summary: {}", parts.join(" / "))});
    let complete = pass(core, point::COMPACTION_COMPLETE, summary, None).await?.payload;
    let message = json!({"role": "user", "content": text(&complete, "summary")});
    core.session(|session| session.history = vec![message]);
    Ok(())
}

/// Another conversation begins.
pub(super) async fn rotate(core: &Shared<'_>) -> Result<(), Stop> {
    session_point(core, point::SESSION_SAVE).await?;
    session_point(core, point::SESSION_ROTATE).await?;
    core.session(|session| {
        session.history.clear();
        session.conversations += 1;
    });
    Ok(())
}

/// What the user is told of a turn that was cancelled; its stream is cancelled too.
pub(super) fn cancelled(core: &Shared<'_>) -> Failure {
    if let Some((link, stream)) = core.session(|session| session.stream.take()).flatten() {
        streams::cancel(core, link, &stream);
    }
    Failure::of(reason::STREAM_CANCELLED, "the turn was cancelled")
}
