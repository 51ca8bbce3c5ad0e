//! Streams of chunks: their numbers, their ends, and what a chunk of each type carries.

use std::collections::BTreeMap;

use super::{HOST_CONFORMS, keys};
use crate::contract::Side::Guest;
use crate::exchange::short;
use crate::json::Node;
use crate::judge::Notes;
use crate::reasonix::contract;
use crate::requirement::Rule;

/// The chunks of a stream are numbered without a gap.
pub static CHUNKS_CONTIGUOUS: Rule =
    Rule { name: "chunks-contiguous", binds: Guest, assumes: &[&HOST_CONFORMS] };
/// A stream ends once, with the number of its last chunk, and nothing comes after that.
pub static ENDED_ONCE: Rule = Rule { name: "ended-once", binds: Guest, assumes: &[&HOST_CONFORMS] };
/// After the answer to a cancel no chunk of its stream comes.
pub static NOTHING_AFTER_CANCEL: Rule =
    Rule { name: "nothing-after-cancel", binds: Guest, assumes: &[&HOST_CONFORMS] };
/// A chunk has the member that its type names.
pub static CHUNKS_COMPLETE: Rule = Rule { name: "chunks-complete", binds: Guest, assumes: &[] };
/// Only a chunk of reasoning has a signature.
pub static SIGNATURES_WITH_REASONING: Rule =
    Rule { name: "signatures-with-reasoning", binds: Guest, assumes: &[] };
/// What a stream says of a failure has no key in it.
pub static ERRORS_REDACTED: Rule = Rule { name: "errors-redacted", binds: Guest, assumes: &[] };

/// How many streams of one connection are remembered; of older ones nothing is said.
const STREAMS_MOST: usize = 4096;

/// The streams that were opened.
#[derive(Debug, Default)]
pub(super) struct Streams {
    opened: BTreeMap<String, Stream>,
    /// Cancels that wait for their answers, and which streams they are of.
    cancels: BTreeMap<i64, String>,
    /// Opens that wait for their answers.
    opens: BTreeMap<i64, String>,
}

#[derive(Debug, Default)]
struct Stream {
    /// The number that the first chunk may have besides 1.
    base: u64,
    last: u64,
    ended: bool,
    cancelled: bool,
    refused: bool,
}

impl Streams {
    /// The host asks something.
    pub(super) fn asked(&mut self, id: i64, method: &str, params: Node<'_>, odd: bool) {
        let stream = params.get("streamId").and_then(|it| it.as_str());
        let Some(stream) = stream.map(|stream| stream.into_owned()) else { return };
        match method {
            contract::STREAM_OPEN if !odd && self.opened.len() < STREAMS_MOST => {
                let base = params.get("seqBase").and_then(|it| it.as_u64()).unwrap_or_default().max(1);
                self.opened.insert(stream.clone(), Stream { base, ..Stream::default() });
                self.opens.insert(id, stream);
            }
            contract::STREAM_CANCEL if self.opened.contains_key(&stream) => {
                self.cancels.insert(id, stream);
            }
            _ => {}
        }
    }

    /// The guest answers a request.
    pub(super) fn answered(&mut self, id: i64, result: Option<Node<'_>>) {
        if let Some(stream) = self.cancels.remove(&id).and_then(|stream| self.opened.get_mut(&stream)) {
            stream.cancelled = true;
        }
        if let Some(stream) = self.opens.remove(&id).and_then(|stream| self.opened.get_mut(&stream)) {
            let accepted = result.and_then(|result| result.get("accepted")).and_then(|it| it.as_bool());
            stream.refused = accepted != Some(true);
        }
    }

    /// The guest sends a chunk.
    pub(super) fn chunk(&mut self, params: Node<'_>, notes: &mut Notes<'_>) {
        if let Some(chunk) = params.get("chunk") {
            complete(chunk, notes);
        }
        let name = params.get("streamId").and_then(|it| it.as_str()).unwrap_or_default();
        let Some(stream) = self.opened.get_mut(&*name) else { return };
        let seq = params.get("seq").and_then(|it| it.as_u64()).unwrap_or_default();
        let expected = stream.last + 1;
        let first = stream.last == 0 && (seq == 1 || seq == stream.base);
        notes.note(&CHUNKS_CONTIGUOUS, first || (stream.last > 0 && seq == expected), || {
            format!("the chunk {seq} where {expected} was due")
        });
        if stream.ended {
            notes.broken(&ENDED_ONCE, || format!("the chunk {seq} after the end"));
        }
        if stream.cancelled {
            notes.broken(&NOTHING_AFTER_CANCEL, || format!("the chunk {seq} after the answer to the cancel"));
        }
        stream.last = stream.last.max(seq);
    }

    /// The guest ends a stream.
    pub(super) fn end(&mut self, params: Node<'_>, notes: &mut Notes<'_>) {
        if let Some(error) = params.get("error").and_then(|it| it.as_str()) {
            redacted(&error, notes);
        }
        let name = params.get("streamId").and_then(|it| it.as_str()).unwrap_or_default();
        let Some(stream) = self.opened.get_mut(&*name) else { return };
        let last = params.get("lastSeq").and_then(|it| it.as_u64()).unwrap_or_default();
        if std::mem::replace(&mut stream.ended, true) {
            return notes.broken(&ENDED_ONCE, || "a second end".to_owned());
        }
        notes.note(&ENDED_ONCE, last == stream.last, || {
            format!("the end names {last}, and the last chunk was {}", stream.last)
        });
        if stream.cancelled {
            notes.kept(&NOTHING_AFTER_CANCEL);
        }
    }

    /// The guest's output has ended: what was cancelled and is silent has kept silent.
    pub(super) fn over(&self, notes: &mut Notes<'_>) {
        if self.opened.values().any(|stream| stream.cancelled && !stream.refused) {
            notes.kept(&NOTHING_AFTER_CANCEL);
        }
    }
}

fn complete(chunk: Node<'_>, notes: &mut Notes<'_>) {
    let kind = chunk.get("type").and_then(|it| it.as_str()).unwrap_or_default();
    let needed = match &*kind {
        "usage" => Some("usage"),
        "error" => Some("error"),
        _ => None,
    };
    let fits = needed.is_none_or(|name| chunk.get(name).is_some());
    notes.note(&CHUNKS_COMPLETE, fits, || format!("a chunk of type {} without that member", short(&kind)));
    if chunk.get("signature").is_some() {
        notes.note(&SIGNATURES_WITH_REASONING, kind == "reasoning", || {
            format!("a signature in a chunk of type {}", short(&kind))
        });
    }
    if let Some(message) = chunk.pointer("/error/message").and_then(|it| it.as_str()) {
        redacted(&message, notes);
    }
}

fn redacted(text: &str, notes: &mut Notes<'_>) {
    let key = keys::key_in(text).map(|key| key.chars().take(6).collect::<String>());
    notes.note(&ERRORS_REDACTED, key.is_none(), || {
        format!("something that looks like a key, which begins with {:?}", key.unwrap_or_default())
    });
}
