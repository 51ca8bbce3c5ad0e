//! A turn as every mode has it: what is gathered of its answer, and what comes of it in the end. And the events that
//! `run` and `serve` tell alike.

use serde_json::{Value, json};

use super::home::Home;
use crate::shims::budget::TEXT_BYTES_MAX;
use crate::shims::{Desk, Outcome, cut};

/// What the CLI tells of an input that a plugin blocked. It calls such a turn a completed one.
const INPUT_BLOCKED: &str = "Turn blocked by an extension.";

/// A turn at work.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The ask that is answered when it is over.
    pub(crate) ask: u64,
    /// What was shown of the answer.
    text: String,
    /// What the user was told of a block.
    blocked: Option<String>,
    /// The asks that wait for its end besides.
    pub(crate) awaited_by: Vec<u64>,
}

impl Turn {
    pub(crate) fn new(ask: u64) -> Self {
        Self { ask, ..Self::default() }
    }

    /// A part of the answer was shown.
    pub(crate) fn text(&mut self, text: &str, desk: &mut Desk) {
        let left = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(cut(text, left));
        desk.shown("text", text, json!({}));
    }

    /// The user was told something that is no part of the answer.
    pub(crate) fn notice(&mut self, text: &str, detail: &str) {
        if text == INPUT_BLOCKED {
            self.blocked = Some(if detail.is_empty() { text.into() } else { format!("{text} {detail}") });
        }
    }

    /// It ended well, as the CLI has it.
    pub(crate) fn done(self, desk: &mut Desk) {
        let outcome = match self.blocked {
            Some(says) => Outcome::Blocked(says),
            None => Outcome::Done(json!({ "text": self.text })),
        };
        settle(self.ask, &self.awaited_by, outcome, desk);
    }

    /// It failed, and this is what the user is told.
    pub(crate) fn failed(self, says: &str, desk: &mut Desk) {
        let outcome =
            if is_block(says) { Outcome::Blocked(says.into()) } else { Outcome::Failed(says.into()) };
        settle(self.ask, &self.awaited_by, outcome, desk);
    }

    /// It did not begin.
    pub(crate) fn refused(self, says: &str, desk: &mut Desk) {
        desk.settle(self.ask, Outcome::Refused(says.into()));
    }
}

fn settle(ask: u64, awaited_by: &[u64], outcome: Outcome, desk: &mut Desk) {
    desk.settle_rested(ask, outcome);
    for &ask in awaited_by {
        desk.settle_rested(ask, Outcome::done());
    }
}

/// `extension blocked POINT: …` and `extension NAME blocked POINT: …`.
fn is_block(says: &str) -> bool {
    let is_it = |rest: &str| rest.starts_with("blocked ");
    says.strip_prefix("extension ")
        .is_some_and(|rest| is_it(rest) || rest.split_once(' ').is_some_and(|(_, rest)| is_it(rest)))
}

/// How a turn ended, as `run` and `serve` tell it.
#[derive(Debug)]
pub(crate) struct End {
    is_done: bool,
    says: String,
}

impl End {
    /// The outcome of the turn.
    pub(crate) fn settle(&self, turn: Turn, desk: &mut Desk) {
        if self.is_done { turn.done(desk) } else { turn.failed(&self.says, desk) }
    }
}

/// Takes in one of the events that `run --output-format stream-json` and the stream of `serve` have in common; gives
/// the end of the turn where it is that.
pub(crate) fn event(event: &Value, turn: Option<&mut Turn>, home: &Home, desk: &mut Desk) -> Option<End> {
    let text = event["text"].as_str().unwrap_or_default();
    match event["kind"].as_str()? {
        "text" => match turn {
            Some(turn) => turn.text(text, desk),
            None => desk.shown("text", text, json!({})),
        },
        "notice" => {
            let detail = event["detail"].as_str().unwrap_or_default();
            if let Some(turn) = turn {
                turn.notice(text, detail);
            }
            let kind = match event["level"].as_str() {
                Some("warn") => "warning",
                Some("error") => "error",
                _ => "notice",
            };
            let says = if detail.is_empty() { text.to_owned() } else { format!("{text} {detail}") };
            notice(kind, &says, home, desk);
        }
        "tool_result" => {
            let tool = &event["tool"];
            let kind = if tool["err"].is_string() { "error" } else { "notice" };
            let output = tool["output"].as_str().unwrap_or_default();
            desk.shown(kind, output, json!({ "tool": tool["name"] }));
        }
        "extension_status" | "extension_surface" => surface(&event["extension"], desk),
        "turn_done" => {
            let status = event["status"].as_str().unwrap_or_default();
            let says = event["err"].as_str().unwrap_or(status).to_owned();
            return Some(End { is_done: status == "completed", says });
        }
        _ => {}
    }
    None
}

/// Something is told to the user that is no part of an answer.
pub(crate) fn notice(kind: &str, text: &str, home: &Home, desk: &mut Desk) {
    let with = home.named_in(text).map_or_else(|| json!({}), |plugin| json!({ "plugin": plugin }));
    desk.shown(kind, text, with);
}

/// A surface of a plugin is shown: `{"pluginId", "surfaceId", "kind", KIND: {…}}`.
pub(crate) fn surface(surface: &Value, desk: &mut Desk) {
    let kind = surface["kind"].as_str().unwrap_or_default();
    let mut all = Vec::new();
    texts(&surface[kind], &mut all);
    let with = json!({ "plugin": surface["pluginId"], "surface": surface["surfaceId"], "kind": kind });
    desk.shown("surface", &all.join("\n"), with);
}

/// Every text of a payload that a person reads: what stands above the rest first, then by the names of the members.
fn texts(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, all)),
        Value::Object(members) => {
            let (above, below): (Vec<_>, Vec<_>) = members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "key" | "kind" | "actionId"))
                .partition(|(name, _)| matches!(name.as_str(), "label" | "message" | "title"));
            above.into_iter().chain(below).for_each(|(_, value)| texts(value, all));
        }
        _ => {}
    }
}
