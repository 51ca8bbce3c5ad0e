//! A session of the program: its plugins, its conversation, and what is going on in it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};
use sidecert_proto::machine::LinkId;

use super::connection::Stage;
use super::core::{Core, Failure};
use super::manifest::Plugin;

/// A session.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "what goes on in it: each can be so by itself")]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) generation: u64,
    pub(super) workspace: String,
    pub(super) ui_host: String,
    /// What the host itself says of tools that write.
    pub(super) allows_writes: bool,
    pub(super) plugins: Vec<Rc<Plugin>>,
    /// The links of the plugins that were started, crashed ones included.
    pub(super) running: BTreeMap<String, LinkId>,
    /// The conversation, as messages of the protocol.
    pub(super) history: Vec<Value>,
    pub(super) conversations: u64,
    pub(super) prompt: String,
    /// Plugins that the user was warned of.
    pub(super) warned: BTreeSet<String>,
    /// What tools wrote, by path.
    pub(super) files: BTreeMap<String, String>,
    /// What was shown of the answer in this turn.
    pub(super) shown_text: String,
    /// Whether a turn runs, and whether nobody wants it any more.
    pub(super) turning: bool,
    pub(super) cancelled: bool,
    /// Whether plugins are being started or ended.
    pub(super) moving: bool,
    /// The stream that is open.
    pub(super) stream: Option<(LinkId, String)>,
}

impl Session {
    /// The name of what the conversation is stored as.
    pub(super) fn path(&self) -> String {
        format!("{}/conversation-{}", self.id, self.conversations)
    }

    /// What tells this generation from others, in contracts that have it.
    pub(super) fn epoch(&self) -> String {
        format!("{}-{}", self.id, self.generation)
    }

    /// The conversation with the system prompt before it.
    pub(super) fn messages(&self) -> Vec<Value> {
        let system = json!({"role": "system", "content": self.prompt});
        let system = (!self.prompt.is_empty()).then_some(system);
        system.into_iter().chain(self.history.iter().cloned()).collect()
    }
}

impl Core<'_> {
    /// The link of a plugin that is open.
    pub(super) fn open_link(&self, plugin: &str) -> Option<LinkId> {
        let link = self.session(|session| session.running.get(plugin).copied()).flatten()?;
        self.on(link, |connection| connection.stage == Stage::Ready)?.then_some(link)
    }

    /// Warns the user of a plugin, of each once.
    pub(super) fn warn(&self, plugin: &str, failure: &Failure) {
        let first = self.session(|session| session.warned.insert(plugin.to_owned())).unwrap_or(true);
        if first || !self.manners.hooks.warns_once {
            self.tell("warning", &failure.text, Some(plugin));
        } else {
            self.note(&failure.text);
        }
    }
}

/// A payload without what says nothing: empty texts and lists, zero and false.
pub(super) fn sparse(mut payload: Value) -> Value {
    if let Some(members) = payload.as_object_mut() {
        members.retain(|_, value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Number(number) => number.as_u64() != Some(0),
            _ => true,
        });
    }
    payload
}
