//! The streams of the mock's provider: short ones at once, long ones chunk by chunk, as time passes.

use std::collections::BTreeMap;

use super::{Guest, Said};
use crate::json::{Node, quoted};
use crate::machine::Micros;
use crate::reasonix::contract::{self, reason};

/// How many chunks a long stream has.
const LONG_CHUNKS: u64 = 20_000;
/// How long a long stream rests between two chunks, in microseconds.
const REST: Micros = 1_000;

/// What a provider says to a prompt without a mark.
const USUAL: [&str; 6] = [
    r#"{"type":"reasoning","text":"Somebody greets.","signature":"sidecert-signature"}"#,
    r#"{"type":"text","text":"Hello"}"#,
    r#"{"type":"tool_call_start","toolCall":{"id":"call-1","name":"sample","arguments":""}}"#,
    r#"{"type":"tool_call","toolCall":{"id":"call-1","name":"sample","arguments":"{}"}}"#,
    r#"{"type":"usage","usage":{"promptTokens":3,"completionTokens":2,"totalTokens":5,"cacheHitTokens":1,"cacheMissTokens":2,"reasoningTokens":1}}"#,
    r#"{"type":"done"}"#,
];
/// What it says when it fails: what happened, without what was in the error of its own provider.
const FAILING: [&str; 2] = [
    r#"{"type":"text","text":"Hel"}"#,
    r#"{"type":"error","error":{"code":"provider_failed","message":"the model refused the key"}}"#,
];

/// The long streams that are running: when the next chunk of each is due, and its number.
#[derive(Debug, Default)]
pub(super) struct Streams {
    long: BTreeMap<String, (Micros, u64)>,
}

impl Streams {
    /// When the next chunk is due.
    pub(super) fn deadline(&self) -> Option<Micros> {
        self.long.values().map(|(due, _)| *due).min()
    }

    /// Sends every chunk that is due, one of each stream.
    pub(super) fn tick(&mut self, now: Micros, out: &mut Vec<Said>) {
        let mut over = Vec::new();
        for (id, (due, seq)) in self.long.iter_mut().filter(|(_, (due, _))| *due <= now) {
            out.push(chunk(id, *seq, r#"{"type":"text","text":"and so on "}"#));
            (*due, *seq) = (now + REST, *seq + 1);
            if *seq > LONG_CHUNKS {
                over.push(id.clone());
            }
        }
        for id in over {
            self.long.remove(&id);
            out.push(end(&id, LONG_CHUNKS, ""));
        }
    }
}

impl Guest<'_> {
    /// Opens a stream: its answer, or `None` when that was said before its chunks.
    pub(super) fn open(
        &mut self,
        id: &str,
        params: Option<Node<'_>>,
        now: Micros,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        let text =
            |pointer: &str| params.and_then(|params| params.pointer(pointer)).and_then(|it| it.as_str());
        let stream = text("/streamId").unwrap_or_default().into_owned();
        if !self.has_provider || text("/providerRef").as_deref() != Some(&self.provider_ref()) {
            return Some(Err(self.error(reason::PROVIDER_FAILED)));
        }
        if self.streams.long.contains_key(&stream) {
            return Some(Err(self.error(reason::PROTOCOL_ERROR)));
        }
        let base = params.and_then(|params| params.get("seqBase")).and_then(|it| it.as_u64());
        let first = if self.features.lenient { base.unwrap_or_default().max(1) } else { 1 };
        out.push(super::answered(contract::STREAM_OPEN, id, &Ok(r#"{"accepted":true}"#.to_owned())));
        let prompt = text("/request/messages/0/content").unwrap_or_default();
        let chunks: &[&str] = match prompt.split_whitespace().next().unwrap_or_default() {
            "sidecert:long-stream" => {
                self.streams.long.insert(stream, (now, first));
                return None;
            }
            "sidecert:empty-stream" => &[],
            "sidecert:failing-stream" => &FAILING,
            _ => &USUAL,
        };
        out.extend(chunks.iter().zip(first..).map(|(text, seq)| chunk(&stream, seq, text)));
        out.push(end(&stream, first - 1 + chunks.len() as u64, ""));
        None
    }

    /// Ends a stream: its answer, or `None` when that was said before its end.
    pub(super) fn cancel(
        &mut self,
        id: &str,
        params: Option<Node<'_>>,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        let stream = params.and_then(|params| params.get("streamId")).and_then(|it| it.as_str());
        let stream = stream.unwrap_or_default().into_owned();
        let Some((_, next)) = self.streams.long.remove(&stream) else {
            return Some(Ok(r#"{"cancelled":false}"#.to_owned()));
        };
        out.push(super::answered(contract::STREAM_CANCEL, id, &Ok(r#"{"cancelled":true}"#.to_owned())));
        out.push(end(&stream, next - 1, r#","interrupted":true"#));
        None
    }
}

fn chunk(stream: &str, seq: u64, chunk: &str) -> Said {
    let stream = quoted(stream);
    told(contract::STREAM_CHUNK, &format!(r#"{{"streamId":{stream},"seq":{seq},"chunk":{chunk}}}"#))
}

fn end(stream: &str, last: u64, more: &str) -> Said {
    let stream = quoted(stream);
    told(contract::STREAM_END, &format!(r#"{{"streamId":{stream},"lastSeq":{last}{more}}}"#))
}

fn told(method: &str, params: &str) -> Said {
    let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
    Said { method: method.to_owned(), answer: false, line: line.into_bytes() }
}
