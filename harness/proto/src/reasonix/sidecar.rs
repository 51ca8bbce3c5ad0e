//! The smallest conforming guest: what our end answers when a host is under test.
//!
//! It declares all that the manifest allows, lets every operation go on, and its one model says "Hello". It judges
//! nothing: what the host sends is looked at in the recording. The mocks stand on another guest, which shares none of
//! this.

use std::collections::BTreeSet;

use super::contract;
use super::host::written;
use crate::contract::Contract;
use crate::json::{Node, quoted};
use crate::play::Peer;
use crate::rpc::Envelope;
use crate::script::Setting;

/// What its model says to every prompt.
pub const REPLY: &str = "Hello from sidecert";
/// The action that it declares where the manifest allows it one.
pub const ACTION: &str = "demo";
/// The points that a host comes to only in a turn, and that nothing else passes before.
const OF_TURN: [&str; 4] = ["input.receive", "agent.before_start", "context.prepare", "provider.request"];

/// The smallest conforming guest.
#[derive(Debug)]
pub struct Sidecar<'c> {
    contract: &'c Contract,
    name: String,
    open: bool,
    declared: BTreeSet<String>,
}

/// The reference of the model that the guest called `name` offers.
pub fn model(name: &str) -> String {
    format!("plugin/{name}/sample/echo")
}

impl<'c> Sidecar<'c> {
    /// The guest that the host launched as `name`.
    pub fn new(setting: &Setting<'c>, name: &str) -> Self {
        Self { contract: setting.contract, name: name.to_owned(), open: false, declared: BTreeSet::new() }
    }

    /// What it answers `initialize` with.
    fn declaration(&self, params: Option<Node<'_>>) -> String {
        let manifest = params.and_then(|params| params.get("manifest"));
        let list = |name: &str| manifest.and_then(|it| it.get(name)).map_or("[]", Node::raw);
        let allows = |name: &str| {
            let all = manifest.and_then(|it| it.get("capabilities")).into_iter().flat_map(Node::elements);
            all.filter_map(|it| it.as_str()).any(|it| it == name)
        };
        let mut text = format!(
            r#"{{"protocolVersion":"{}","name":{},"version":"1.0.0","stateSchemaVersion":1,"subscriptions":{},"replaces":{}"#,
            self.contract.major,
            quoted(&self.name),
            list("intercepts"),
            list("replaces"),
        );
        if allows("providers") {
            text.push_str(&format!(r#","providers":[{}]"#, self.descriptor()));
        }
        if allows("ui") {
            text.push_str(&format!(r#","uiActions":[{{"actionId":"{ACTION}","label":"Demo"}}]"#));
        }
        text.push('}');
        text
    }

    fn descriptor(&self) -> String {
        format!(r#"{{"ref":{},"model":"echo"}}"#, quoted(&model(&self.name)))
    }

    fn result(&self, method: &str, params: Option<Node<'_>>) -> Option<String> {
        Some(match method {
            contract::INITIALIZE => self.declaration(params),
            contract::INTERCEPT => r#"{"decision":"continue"}"#.to_owned(),
            contract::PROVIDER_CATALOG => format!(r#"{{"providers":[{}]}}"#, self.descriptor()),
            contract::STREAM_OPEN | contract::UI_ACTION | contract::UI_SUBMIT | contract::SHUTDOWN => {
                r#"{"accepted":true}"#.to_owned()
            }
            contract::STREAM_CANCEL => r#"{"cancelled":false}"#.to_owned(),
            _ => return None,
        })
    }
}

/// The frames of a stream behind its answer: these chunks in order, and its end.
pub fn stream(id: &str, chunks: &[String]) -> Vec<String> {
    let told = |method: &str, params: String| {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
    };
    let mut frames: Vec<String> = chunks
        .iter()
        .zip(1..)
        .map(|(chunk, seq)| {
            told(contract::STREAM_CHUNK, format!(r#"{{"streamId":{id},"seq":{seq},"chunk":{chunk}}}"#))
        })
        .collect();
    frames.push(told(contract::STREAM_END, format!(r#"{{"streamId":{id},"lastSeq":{}}}"#, chunks.len())));
    frames
}

/// A chunk of text.
pub fn text_chunk(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

impl Peer for Sidecar<'_> {
    fn fence(&mut self, id: i64) -> Vec<u8> {
        // Content that never was is always refused.
        let params = r#"{"contentRef":"sidecert-fence","offset":0}"#;
        crate::script::request(&id.to_string(), contract::CONTENT_READ, params).into_bytes()
    }

    fn meet(&mut self, frame: &Envelope<'_>, claimed: bool, out: &mut Vec<Vec<u8>>) {
        match frame {
            Envelope::Notification { method, .. } if method == contract::INITIALIZED => self.open = true,
            Envelope::Request { method, .. } if method == contract::SHUTDOWN && claimed => self.open = false,
            Envelope::Request { id, method, params } if !claimed => {
                let id = written(id);
                let Some(result) = self.result(method, *params) else {
                    let error = super::host::error(self.contract, super::contract::reason::UNKNOWN_METHOD);
                    return out
                        .push(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes());
                };
                out.push(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes());
                match &**method {
                    contract::STREAM_OPEN => {
                        let stream_id =
                            params.and_then(|params| params.get("streamId")).map_or("\"\"", Node::raw);
                        let frames = stream(stream_id, &[text_chunk(REPLY)]);
                        out.extend(frames.into_iter().map(String::into_bytes));
                    }
                    // What would come after it is refused, a fence too.
                    contract::SHUTDOWN => self.open = false,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn declared(&self) -> &BTreeSet<String> {
        &self.declared
    }

    fn is_of_turn(&self, frame: Node<'_>) -> bool {
        let at = frame.pointer("/params/event").and_then(|at| at.as_str()).unwrap_or_default();
        match frame.get("method").and_then(|method| method.as_str()).unwrap_or_default().as_ref() {
            contract::STREAM_OPEN => true,
            contract::INTERCEPT => frame.get("id").is_some() && OF_TURN.contains(&&*at),
            _ => false,
        }
    }

    fn is_open(&self) -> bool {
        self.open
    }
}
