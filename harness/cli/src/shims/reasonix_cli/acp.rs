//! `reasonix acp`: the CLI as an agent of an editor, over JSON-RPC on its standard input and output. We are the editor.

use std::collections::BTreeMap;
use std::mem;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::home::Home;
use super::turn::{self, Turn};
use super::{Ended, News, Session, Tell};
use crate::shims::budget::{ASK_WITHIN, TURN_WITHIN};
use crate::shims::program::{Heard, Last, Program, Sent};
use crate::shims::{Ask, Desk, Outcome};

/// What can be asked for in this mode.
pub(crate) const DOES: &[&str] = &[
    "start", "stop", "turn", "cancel", "reload", "action", "answer", "models", "admit", "describe", "signal",
];

/// What the CLI says of a second prompt beside the first.
const IS_BUSY: &str = "already has an active prompt";

/// What was asked of the CLI, and waits for its answer.
#[derive(Debug)]
enum Asked {
    Initialize,
    NewSession,
    Permission,
    /// Then comes the turn.
    Model {
        ask: u64,
        model: String,
        text: String,
    },
    Prompt(u64),
    Reload(u64),
    /// Only so that what was sent before is at work.
    Fence(u64),
}

/// A question of a plugin, as it came.
#[derive(Debug)]
struct Prompt {
    id: Value,
    /// The id and the name of each option.
    options: Vec<(String, String)>,
    is_input: bool,
}

/// A session of the CLI as an agent.
#[derive(Debug)]
pub(crate) struct Acp {
    cli: Program,
    home: Home,
    /// The ask that it began with, until that is settled.
    starting: Option<u64>,
    /// Why it did not begin.
    failure: Option<String>,
    asked: BTreeMap<u64, Asked>,
    number: u64,
    session: String,
    model: String,
    models: Vec<String>,
    turns: Vec<Turn>,
    /// By the id of its tool call.
    prompts: BTreeMap<String, Prompt>,
    /// The last thing that came was a surface; the CLI repeats it as text.
    repeats_surface: bool,
    last: Last,
    is_over: bool,
}

impl Acp {
    pub(crate) fn start(home: Home, ask: u64, tell: Tell) -> std::io::Result<Self> {
        let command = home.command_with_model(&["acp"], None);
        let cli = Program::start(command, move |heard| tell.say(News::Cli(heard)))?;
        let mut acp = Self {
            cli,
            home,
            starting: Some(ask),
            failure: None,
            asked: BTreeMap::new(),
            number: 0,
            session: String::new(),
            model: String::new(),
            models: Vec::new(),
            turns: Vec::new(),
            prompts: BTreeMap::new(),
            repeats_surface: false,
            last: Last::default(),
            is_over: false,
        };
        let surfaces = json!({ "_meta": { "reasonix.io": { "extensionSurface": { "supported": true } } } });
        let us = json!({ "protocolVersion": 1, "clientCapabilities": surfaces });
        acp.request("initialize", &us, Asked::Initialize);
        Ok(acp)
    }

    fn send(&self, frame: &Value) {
        self.cli.write(format!("{frame}\n"));
    }

    fn request(&mut self, method: &str, params: &Value, asked: Asked) {
        self.number += 1;
        self.asked.insert(self.number, asked);
        self.send(&json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params }));
    }

    /// A request about our session.
    fn ask_session(&mut self, method: &str, mut params: Value, asked: Asked) {
        params["sessionId"] = self.session.clone().into();
        self.request(method, &params, asked);
    }

    fn prompt(&mut self, ask: u64, text: &str) {
        self.turns.push(Turn::new(ask));
        let prompt = json!({ "prompt": [{ "type": "text", "text": text }] });
        self.ask_session("session/prompt", prompt, Asked::Prompt(ask));
    }

    fn line(&mut self, line: &str, desk: &mut Desk) {
        let frame: Value = serde_json::from_str(line).unwrap_or_default();
        let is_answer = frame.get("method").is_none();
        match (frame["method"].as_str().unwrap_or_default(), frame["id"].as_u64()) {
            ("session/update", _) => self.update(&frame["params"]["update"], desk),
            ("session/request_permission", _) => self.permission(&frame, desk),
            (_, Some(id)) if is_answer => {
                if let Some(asked) = self.asked.remove(&id) {
                    let error = frame["error"]["message"].as_str();
                    self.answered(asked, error.map_or(Ok(&frame["result"]), Err), desk);
                }
            }
            (method, _) if !is_answer && frame.get("id").is_some() => {
                let error = json!({ "code": -32601, "message": format!("this editor has no {method}") });
                self.send(&json!({ "jsonrpc": "2.0", "id": frame["id"], "error": error }));
            }
            // The status, many times in a turn; its end is what counts, and that is an answer.
            _ if frame.is_object() => {}
            _ => desk.log(line),
        }
    }

    fn answered(&mut self, asked: Asked, answer: Result<&Value, &str>, desk: &mut Desk) {
        match (asked, answer) {
            (Asked::Initialize, Ok(_)) => {
                let session = json!({ "cwd": self.home.workspace, "mcpServers": [] });
                self.request("session/new", &session, Asked::NewSession);
            }
            (Asked::NewSession, Ok(session)) => {
                self.session = session["sessionId"].as_str().unwrap_or_default().to_owned();
                self.model = session["models"]["currentModelId"].as_str().unwrap_or_default().to_owned();
                let models = session["models"]["availableModels"].as_array().into_iter().flatten();
                let names = models.filter_map(|model| model["modelId"].as_str().map(str::to_owned));
                self.models = names.collect();
                if self.home.denies {
                    let asks = json!({ "configId": "tool_approval", "value": "read-only" });
                    self.ask_session("session/set_config_option", asks, Asked::Permission);
                } else {
                    self.begun(desk);
                }
            }
            (Asked::Permission, Ok(_)) => self.begun(desk),
            (Asked::Initialize | Asked::NewSession | Asked::Permission, Err(says)) => {
                self.failure = Some(without_method(says).to_owned());
                self.cli.close();
            }
            (Asked::Model { ask, model, text }, Ok(_)) => {
                self.model = model;
                self.prompt(ask, &text);
            }
            (Asked::Prompt(ask), answer) => self.turn_over(ask, answer, desk),
            // It comes when the turn is over, before the answer to that.
            (Asked::Reload(ask), Ok(answer)) if answer["queued"] == true => match self.turns.first_mut() {
                Some(turn) => turn.awaited_by.push(ask),
                None => desk.settle_rested(ask, Outcome::done()),
            },
            (Asked::Reload(ask), Ok(_)) | (Asked::Fence(ask), _) => desk.settle_rested(ask, Outcome::done()),
            (Asked::Reload(ask) | Asked::Model { ask, .. }, Err(says)) => {
                desk.settle_rested(ask, Outcome::Failed(without_method(says).into()));
            }
        }
    }

    fn begun(&mut self, desk: &mut Desk) {
        if let Some(ask) = self.starting.take() {
            desk.settle_rested(ask, Outcome::done());
        }
    }

    fn turn_over(&mut self, ask: u64, answer: Result<&Value, &str>, desk: &mut Desk) {
        let Some(at) = self.turns.iter().position(|turn| turn.ask == ask) else { return };
        let turn = self.turns.remove(at);
        // Questions of a turn that is over wait for nothing.
        self.prompts.clear();
        match answer {
            Ok(answer) => match answer["stopReason"].as_str() {
                Some("end_turn") => turn.done(desk),
                other => turn.failed(other.unwrap_or("no stop reason"), desk),
            },
            Err(says) if says.contains(IS_BUSY) => turn.refused(without_method(says), desk),
            Err(says) => turn.failed(without_method(says), desk),
        }
    }

    fn update(&mut self, update: &Value, desk: &mut Desk) {
        let repeats = mem::take(&mut self.repeats_surface);
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                if repeats && text.starts_with("\n\n") {
                    return;
                }
                if let Some((kind, says)) = told(text) {
                    if let Some(turn) = self.turns.first_mut() {
                        turn.notice(says, "");
                    }
                    turn::notice(kind, says, &self.home, desk);
                } else if let Some(turn) = self.turns.first_mut() {
                    turn.text(text, desk);
                } else {
                    desk.shown("text", text, json!({}));
                }
            }
            "tool_call_update" => {
                let kind = match update["status"].as_str() {
                    Some("failed") => "error",
                    Some("completed") => "notice",
                    _ => return,
                };
                let contents = update["content"].as_array().into_iter().flatten();
                let texts: Vec<&str> = contents.filter_map(|it| it["content"]["text"].as_str()).collect();
                desk.shown(kind, &texts.join("\n"), json!({}));
            }
            "_reasonix.io/extension_surface" => {
                turn::surface(&update["_meta"]["reasonix.io"]["extensionSurface"], desk);
                self.repeats_surface = true;
            }
            _ => {}
        }
    }

    /// The agent asks for permission: on behalf of a plugin, which is a prompt, or for a tool, which we decide.
    fn permission(&mut self, frame: &Value, desk: &mut Desk) {
        let (call, options) = (&frame["params"]["toolCall"], &frame["params"]["options"]);
        let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
        let question = &call["rawInput"];
        let Some(key) = question["id"].as_str().filter(|_| question["question"].is_string()) else {
            let wanted = if self.home.denies { "reject_once" } else { "allow_once" };
            let choice = options.iter().find(|option| option["kind"] == wanted);
            let outcome = choice.map_or_else(cancelled, |option| selected(&option["optionId"]));
            return self.send(&json!({ "jsonrpc": "2.0", "id": frame["id"], "result": outcome }));
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let prompt = Prompt {
            id: frame["id"].clone(),
            options: options.iter().map(|it| (text(&it["optionId"]), text(&it["name"]))).collect(),
            is_input: question["options"].as_array().is_none_or(Vec::is_empty),
        };
        let labels =
            question["options"].as_array().into_iter().flatten().filter_map(|it| it["Label"].as_str());
        let labels: Vec<&str> = labels.collect();
        let kind = kind_of(&labels, question["multi"] == true);
        let name = text(&call["toolCallId"]);
        let fields = json!([{ "key": key, "kind": kind, "options": labels }]);
        let with = json!({ "kind": kind, "prompt": name, "fields": fields });
        self.prompts.insert(name, prompt);
        desk.shown("prompt", question["question"].as_str().unwrap_or_default(), with);
    }

    fn answer(&mut self, ask: &Ask, desk: &mut Desk) {
        let (name, values) = (ask.words("prompt"), ask.member("values"));
        let Some(prompt) = self.prompts.get(name) else {
            return desk.settle(ask.number, Outcome::Refused(format!("no prompt {name:?} is open")));
        };
        let value = values.as_object().and_then(|values| values.values().next()).unwrap_or(&Value::Null);
        let wanted = match value {
            _ if ask.member("cancelled") == true => "Cancel",
            Value::Bool(true) => "Yes",
            Value::Bool(false) => "No",
            Value::Array(many) if many.len() != 1 => {
                let says =
                    "an editor can choose one option of those that the CLI offers, not several or none";
                return desk.settle(ask.number, Outcome::Cannot(says.into()));
            }
            Value::Array(one) => one[0].as_str().unwrap_or_default(),
            other => other.as_str().unwrap_or_default(),
        };
        let Some((option, _)) = prompt.options.iter().find(|(_, name)| name == wanted) else {
            let says = if prompt.is_input {
                "the CLI offers an editor no way to type an answer, only to cancel".into()
            } else {
                format!("the CLI offers no option {wanted:?}")
            };
            return desk.settle(ask.number, Outcome::Cannot(says));
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": prompt.id, "result": selected(&json!(option)) }));
        self.prompts.remove(name);
        // The CLI does not answer an answer.
        self.ask_session("_reasonix.io/session/status", json!({}), Asked::Fence(ask.number));
    }

    fn cancel(&mut self, ask: &Ask, desk: &mut Desk) {
        let Some(turn) = self.turns.first_mut() else {
            return desk.settle(ask.number, Outcome::Refused("no turn is running".into()));
        };
        turn.awaited_by.push(ask.number);
        let params = json!({ "sessionId": self.session });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
        for (_, prompt) in mem::take(&mut self.prompts) {
            self.send(&json!({ "jsonrpc": "2.0", "id": prompt.id, "result": cancelled() }));
        }
    }

    fn turn(&mut self, ask: &Ask, desk: &mut Desk) {
        if ask.text("effort").is_some() {
            let says = "the CLI lets an editor choose no effort";
            return desk.settle(ask.number, Outcome::Cannot(says.into()));
        }
        match ask.text("model").filter(|model| *model != self.model) {
            Some(model) => {
                let (model, text) = (model.to_owned(), ask.words("text").to_owned());
                let params = json!({ "modelId": model });
                let asked = Asked::Model { ask: ask.number, model, text };
                self.ask_session("session/set_model", params, asked);
            }
            None => self.prompt(ask.number, ask.words("text")),
        }
    }

    fn action(&mut self, ask: &Ask, desk: &mut Desk) {
        let mut text = format!("/{}:{}", ask.words("plugin"), ask.words("action"));
        for (name, value) in ask.member("args").as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if name.contains(char::is_whitespace) || value.contains(char::is_whitespace) {
                let says = "an argument with white space in it cannot be written in a command of the CLI";
                return desk.settle(ask.number, Outcome::Cannot(says.into()));
            }
            text += &format!(" {name}={value}");
        }
        self.prompt(ask.number, &text);
    }

    fn ended(&mut self, ended: &Ended, desk: &mut Desk) {
        self.is_over = true;
        let says = self.failure.take().unwrap_or_else(|| ended.says(&self.last));
        if let Some(ask) = self.starting.take() {
            desk.found("diagnostics", &says);
            desk.settle(ask, Outcome::Failed(says.clone()));
        }
        for turn in mem::take(&mut self.turns) {
            turn.failed(&says, desk);
        }
        for asked in mem::take(&mut self.asked).into_values() {
            if let Asked::Reload(ask) | Asked::Fence(ask) | Asked::Model { ask, .. } = asked {
                desk.settle(ask, Outcome::Failed(says.clone()));
            }
        }
    }
}

impl Session for Acp {
    fn ask(&mut self, ask: &Ask, desk: &mut Desk) {
        let within =
            if matches!(ask.what.as_str(), "turn" | "action" | "cancel") { TURN_WITHIN } else { ASK_WITHIN };
        desk.expect(ask.number, within);
        match ask.what.as_str() {
            "turn" => self.turn(ask, desk),
            "action" => self.action(ask, desk),
            "cancel" => self.cancel(ask, desk),
            "answer" => self.answer(ask, desk),
            "reload" => {
                let asked = Asked::Reload(ask.number);
                self.ask_session("_reasonix.io/session/reloadExtensions", json!({}), asked);
            }
            "models" => desk.settle(ask.number, Outcome::Done(json!({ "models": self.models }))),
            _ => desk.settle(ask.number, super::not_in(&ask.what, "acp")),
        }
    }

    fn heard(&mut self, news: News, desk: &mut Desk) {
        match news {
            News::Cli(Heard::Line(line)) => self.line(&line, desk),
            News::Cli(Heard::Log(line)) => {
                self.last.push(&line);
                desk.log(&line);
            }
            News::Cli(Heard::Ended(status)) => self.ended(&Ended(status), desk),
            _ => {}
        }
    }

    fn stop(&mut self) {
        self.cli.close();
    }

    fn signal(&mut self, sent: Sent) -> bool {
        self.cli.sent(sent);
        true
    }

    fn kill(&mut self) {
        self.cli.signal(Signal::KILL);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn home(&self) -> &Home {
        &self.home
    }
}

/// What the CLI puts before what failed: the method that was called.
fn without_method(says: &str) -> &str {
    [
        "initialize: ",
        "session/new: ",
        "session/prompt: ",
        "session/set_model: ",
        "_reasonix.io/session/reloadExtensions: ",
    ]
    .iter()
    .find_map(|method| says.strip_prefix(method))
    .unwrap_or(says)
}

/// What the CLI tells an editor as if it were a part of the answer: with its level in brackets before it, or all of it in
/// brackets.
fn told(text: &str) -> Option<(&'static str, &str)> {
    let text = text.strip_prefix("\n\n[")?;
    if let Some(says) = text.strip_suffix(']').filter(|says| says.starts_with("compacted ")) {
        return Some(("notice", says));
    }
    [("warning] ", "warning"), ("error] ", "error"), ("notice] ", "notice"), ("info] ", "notice")]
        .iter()
        .find_map(|(level, kind)| text.strip_prefix(level).map(|says| (*kind, says)))
}

/// The kind of a question, which the CLI does not tell.
pub(crate) fn kind_of(labels: &[&str], is_multiple: bool) -> &'static str {
    match labels {
        [] => "input",
        _ if is_multiple => "multiselect",
        ["Yes", "No"] => "confirm",
        _ => "select",
    }
}

fn selected(option: &Value) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}
