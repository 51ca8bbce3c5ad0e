//! What only a host does on a connection: it opens and closes it, asks for rulings, gives out content and serves it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::GUEST_CONFORMS;
use crate::contract::{Contract, Side::Host};
use crate::exchange::short;
use crate::json::Node;
use crate::judge::{Framed, Notes};
use crate::reasonix::contract::{self, Limits, point};
use crate::requirement::Rule;
use crate::rpc::{Envelope, Id, Outcome};

/// The host's first frame is `initialize`, and nothing follows it before the guest's answer.
pub static OPENS_WITH_INITIALIZE: Rule =
    Rule { name: "opens-with-initialize", binds: Host, assumes: &[&GUEST_CONFORMS] };
/// Between the answer to `initialize` and `initialized` the host sends nothing, and `initialized` only once.
pub static ASKS_IN_TURN: Rule = Rule { name: "asks-in-turn", binds: Host, assumes: &[&GUEST_CONFORMS] };
/// No line of the host is longer than a frame may be.
pub static FRAMES_WITHIN_LIMIT: Rule = Rule { name: "frames-within-limit", binds: Host, assumes: &[] };
/// The numbers of intercepts rise from 1 on each connection. One that is missing is that of an intercept which was too
/// large to be sent.
pub static SEQUENCE_COUNTED: Rule = Rule { name: "sequence-counted", binds: Host, assumes: &[] };
/// No intercept allows more than the ceiling.
pub static TIMES_WITHIN_CEILING: Rule = Rule { name: "times-within-ceiling", binds: Host, assumes: &[] };
/// A guest is asked where its manifest says that it steps in or owns a slot, and nowhere else.
pub static ASKED_AS_INSTALLED: Rule =
    Rule { name: "asked-as-installed", binds: Host, assumes: &[&GUEST_CONFORMS] };
/// A payload moves out exactly when it is longer than the limit for what stands inline.
pub static LARGE_MOVED_OUT: Rule = Rule { name: "large-moved-out", binds: Host, assumes: &[] };
/// Where a payload moved out, `null` and one descriptor stand in its place.
pub static DESCRIPTORS_TRUE: Rule = Rule { name: "descriptors-true", binds: Host, assumes: &[] };
/// A page repeats what was asked, holds what it says, and is within the limit.
pub static PAGES_TRUE: Rule = Rule { name: "pages-true", binds: Host, assumes: &[&GUEST_CONFORMS] };
/// The id of a stream is no other's on the connection.
pub static STREAM_IDS_FRESH: Rule = Rule { name: "stream-ids-fresh", binds: Host, assumes: &[] };
/// Actions and submitted forms carry the session and the generation that the guest was told.
pub static SESSION_CARRIED: Rule = Rule { name: "session-carried", binds: Host, assumes: &[] };
/// Behind its shutdown the host asks and tells nothing more.
pub static QUIET_AFTER_SHUTDOWN: Rule = Rule { name: "quiet-after-shutdown", binds: Host, assumes: &[] };

/// How long an intercept may take at most, in milliseconds.
const CEILING_MILLIS: u64 = 60_000;
/// How many reads, stream ids and contents of a connection are remembered.
const REMEMBERED_MOST: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Silent,
    Asked,
    Answered,
    Open,
    Closing,
}

/// A read of the guest that waits for its page.
#[derive(Debug)]
struct Read {
    reference: String,
    offset: u64,
}

/// What the host said of a content.
#[derive(Debug)]
struct Content {
    total: u64,
    sha256: String,
}

/// One connection, as far as the host has a part in it that the guest has not.
#[derive(Debug)]
pub(super) struct Hosting {
    limits: Limits,
    phase: Phase,
    initialize: Option<i64>,
    /// Where the manifest lets the guest step in, and the slots that it owns.
    intercepts: BTreeSet<String>,
    owns: BTreeSet<String>,
    session: Option<(String, String)>,
    seq: u64,
    reads: BTreeMap<i64, Read>,
    contents: BTreeMap<String, Content>,
    streams: BTreeSet<String>,
}

impl Hosting {
    pub(super) fn new(contract: &Contract) -> Self {
        Self {
            limits: Limits::of(contract),
            phase: Phase::Silent,
            initialize: None,
            intercepts: BTreeSet::new(),
            owns: BTreeSet::new(),
            session: None,
            seq: 0,
            reads: BTreeMap::new(),
            contents: BTreeMap::new(),
            streams: BTreeSet::new(),
        }
    }

    /// The guest answers, or asks for a page.
    pub(super) fn guest_frame(&mut self, frame: &Framed<'_, '_>) {
        match &frame.envelope {
            Ok(Envelope::Response { id: Id::Integer(id), outcome: Outcome::Result(_) })
                if self.initialize == Some(*id) && self.phase == Phase::Asked =>
            {
                self.phase = Phase::Answered;
            }
            Ok(Envelope::Request { id: Id::Integer(id), method, params: Some(params) })
                if method == contract::CONTENT_READ =>
            {
                let reference = params.get("contentRef").and_then(|it| it.as_str());
                let offset = params.get("offset").and_then(|it| it.as_u64());
                if let (Some(reference), Some(offset)) = (reference, offset)
                    && self.reads.len() < REMEMBERED_MOST
                {
                    self.reads.insert(*id, Read { reference: reference.into_owned(), offset });
                }
            }
            _ => {}
        }
    }

    pub(super) fn host_frame(&mut self, frame: &Framed<'_, '_>, notes: &mut Notes<'_>) {
        notes.kept(&FRAMES_WITHIN_LIMIT);
        let Ok(envelope) = &frame.envelope else { return };
        self.in_turn(envelope, notes);
        match envelope {
            Envelope::Request { method, params: Some(params), .. }
            | Envelope::Notification { method, params: Some(params) } => self.asks(method, *params, notes),
            Envelope::Response { id: Id::Integer(id), outcome } => {
                if let (Some(read), Outcome::Result(page)) = (self.reads.remove(id), outcome) {
                    self.page(&read, *page, notes);
                }
            }
            _ => {}
        }
    }

    /// The host's output has ended.
    pub(super) fn over(&self, notes: &mut Notes<'_>) {
        if self.phase == Phase::Closing {
            notes.kept(&QUIET_AFTER_SHUTDOWN);
        }
    }

    fn in_turn(&mut self, envelope: &Envelope<'_>, notes: &mut Notes<'_>) {
        // What the guest asked is answered whenever that is.
        let Some(method) = envelope.method() else { return };
        let told = || format!("{}, {}", short(method), self.phase.says());
        match (self.phase, method) {
            (Phase::Silent, contract::INITIALIZE) => {
                notes.kept(&OPENS_WITH_INITIALIZE);
                self.phase = Phase::Asked;
                if let Envelope::Request { id: Id::Integer(id), .. } = envelope {
                    self.initialize = Some(*id);
                }
            }
            (Phase::Silent | Phase::Asked, _) => notes.broken(&OPENS_WITH_INITIALIZE, told),
            (Phase::Answered, contract::INITIALIZED) => {
                notes.kept(&OPENS_WITH_INITIALIZE);
                notes.kept(&ASKS_IN_TURN);
                self.phase = Phase::Open;
            }
            (Phase::Answered, _) | (Phase::Open, contract::INITIALIZE | contract::INITIALIZED) => {
                notes.broken(&ASKS_IN_TURN, told);
            }
            (Phase::Open, contract::SHUTDOWN) => self.phase = Phase::Closing,
            (Phase::Open, _) => {}
            (Phase::Closing, _) => notes.broken(&QUIET_AFTER_SHUTDOWN, told),
        }
    }

    fn asks(&mut self, method: &str, params: Node<'_>, notes: &mut Notes<'_>) {
        match method {
            contract::INITIALIZE => self.installed(params),
            contract::INTERCEPT => {
                self.numbered(params, notes);
                self.placed(params, notes);
                self.payload(params, notes);
            }
            contract::EVENT => self.payload(params, notes),
            contract::STREAM_OPEN => {
                if let Some(id) = params.get("streamId").and_then(|it| it.as_str())
                    && self.streams.len() < REMEMBERED_MOST
                {
                    let fresh = self.streams.insert(id.clone().into_owned());
                    notes.note(&STREAM_IDS_FRESH, fresh, || format!("the stream id {:?} again", short(&id)));
                }
            }
            contract::UI_ACTION | contract::UI_SUBMIT => {
                let carried = raw(params, "sessionId").zip(raw(params, "generation"));
                let same = carried.is_some() && carried == self.session;
                notes.note(&SESSION_CARRIED, same, || {
                    let (session, generation) = carried.unwrap_or_default();
                    format!("session {} and generation {}", short(&session), short(&generation))
                });
            }
            _ => {}
        }
    }

    fn installed(&mut self, params: Node<'_>) {
        let texts = |pointer: &str| {
            let list = params.pointer(pointer).into_iter().flat_map(Node::elements);
            list.filter_map(|it| it.as_str().map(std::borrow::Cow::into_owned)).collect()
        };
        self.intercepts = texts("/manifest/intercepts");
        self.owns = texts("/manifest/replaces");
        let session = params.get("session");
        self.session = session.and_then(|session| raw(session, "sessionId").zip(raw(session, "generation")));
    }

    fn numbered(&mut self, params: Node<'_>, notes: &mut Notes<'_>) {
        if let Some(seq) = params.get("seq").and_then(|it| it.as_u64()) {
            let before = std::mem::replace(&mut self.seq, seq);
            notes.note(&SEQUENCE_COUNTED, seq > before, || format!("seq {seq} behind seq {before}"));
        }
        if let Some(millis) = params.get("timeoutMillis").and_then(|it| it.as_u64()) {
            notes.note(&TIMES_WITHIN_CEILING, millis <= CEILING_MILLIS, || format!("timeoutMillis {millis}"));
        }
    }

    fn placed(&self, params: Node<'_>, notes: &mut Notes<'_>) {
        let Some(event) = params.get("event").and_then(|it| it.as_str()) else { return };
        let owner = self.owns.iter().any(|slot| is_asked_at(slot, &event));
        notes.note(&ASKED_AS_INSTALLED, owner || self.intercepts.contains(&*event), || {
            format!("{} is neither in intercepts nor that of a slot in replaces", short(&event))
        });
    }

    fn payload(&mut self, params: Node<'_>, notes: &mut Notes<'_>) {
        let Some(payload) = params.get("payload") else { return };
        let limit = self.limits.externalize_field_bytes;
        let Some(list) = params.get("externalized") else {
            let bytes = payload.raw().len();
            return notes.note(&LARGE_MOVED_OUT, bytes <= limit, || {
                format!("a payload of {bytes} bytes inline, where {limit} is the most")
            });
        };
        let mut descriptors = list.elements();
        let (first, more) = (descriptors.next(), descriptors.next());
        let (Some(first), None) = (first, more) else {
            return notes.broken(&DESCRIPTORS_TRUE, || format!("{} descriptors", list.elements().count()));
        };
        let total = first.get("totalBytes").and_then(|it| it.as_u64()).unwrap_or_default();
        let pointer = first.get("jsonPointer").and_then(|it| it.as_str()).unwrap_or_default();
        let sha256 = first.get("sha256").and_then(|it| it.as_str()).unwrap_or_default();
        let hex = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        notes.note(&DESCRIPTORS_TRUE, payload.is_null() && &*pointer == "/payload" && hex, || {
            format!("payload {} with the descriptor {}", short(payload.raw()), short(first.raw()))
        });
        let moved = total > limit as u64;
        notes.note(&LARGE_MOVED_OUT, moved, || format!("a payload of {total} bytes was moved out"));
        if let Some(reference) = first.get("contentRef").and_then(|it| it.as_str()) {
            if self.contents.len() == REMEMBERED_MOST {
                self.contents.pop_first();
            }
            let content = Content { total, sha256: sha256.into_owned() };
            self.contents.insert(reference.into_owned(), content);
        }
    }

    fn page(&self, read: &Read, page: Node<'_>, notes: &mut Notes<'_>) {
        let fault = self.fault_of(read, page);
        notes.note(&PAGES_TRUE, fault.is_none(), || fault.unwrap_or_default());
    }

    fn fault_of(&self, read: &Read, page: Node<'_>) -> Option<String> {
        let text = |name: &str| page.get(name).and_then(|it| it.as_str());
        let number = |name: &str| page.get(name).and_then(|it| it.as_u64());
        let data = BASE64.decode(text("dataBase64")?.as_bytes());
        let Ok(data) = data else { return Some("dataBase64 is not base64".to_owned()) };
        let most = self.limits.content_ref_chunk_bytes;
        let end = read.offset + data.len() as u64;
        if text("contentRef").as_deref() != Some(&read.reference) || number("offset") != Some(read.offset) {
            return Some(format!("it is not the page at {} that was asked for", read.offset));
        }
        if data.len() > most {
            return Some(format!("{} bytes, where {most} is the most", data.len()));
        }
        let known = self.contents.get(&read.reference)?;
        if number("totalBytes") != Some(known.total) || text("sha256").as_deref() != Some(&known.sha256) {
            return Some("totalBytes or sha256 is not that of the content".to_owned());
        }
        match page.get("nextOffset").map(|next| next.as_u64()) {
            Some(Some(next)) if next == end && end < known.total => None,
            None if end == known.total => None,
            next => Some(format!(
                "nextOffset is {} behind {end} of {} bytes",
                next.map_or_else(
                    || "absent".to_owned(),
                    |next| next.map_or("no number".into(), |it| it.to_string())
                ),
                known.total
            )),
        }
    }
}

impl Phase {
    fn says(self) -> &'static str {
        match self {
            Self::Silent => "as the first frame",
            Self::Asked => "before the answer to initialize",
            Self::Answered => "before initialized",
            Self::Open => "once more",
            Self::Closing => "behind shutdown",
        }
    }
}

fn raw(of: Node<'_>, name: &str) -> Option<String> {
    of.get(name).map(|it| it.raw().to_owned())
}

/// Whether the owner of `slot` is asked at `point`. Nobody is asked for what a tool or a provider does: these slots are
/// consulted at points of their own, if at all.
fn is_asked_at(slot: &str, at: &str) -> bool {
    let points: &[&str] = match slot {
        "system_prompt" => &[point::SYSTEM_PROMPT_BUILD],
        "context" => &[point::CONTEXT_PREPARE],
        "provider_request" => &[point::PROVIDER_REQUEST],
        "provider_response" => &[point::PROVIDER_RESPONSE],
        "compaction" => &[point::COMPACTION_PREPARE, point::COMPACTION_COMPLETE],
        "session_policy" => &[
            point::SESSION_START,
            point::SESSION_END,
            point::SESSION_LOAD,
            point::SESSION_SAVE,
            point::SESSION_ROTATE,
        ],
        "permission" => &[point::PERMISSION_DECISION],
        "frontend_events" => &[point::FRONTEND_EVENT],
        _ if slot.starts_with("tool:") => {
            &[point::TOOL_BEFORE, point::TOOL_AFTER, point::PERMISSION_DECISION]
        }
        _ => &[],
    };
    points.contains(&at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_asked_at_their_points() {
        for (slot, point, asked) in [
            ("context", "context.prepare", true),
            ("context", "provider.request", false),
            ("compaction", "compaction.complete", true),
            ("session_policy", "session.rotate", true),
            ("tool:ls", "tool.before", true),
            ("provider:a/b", "provider.request", false),
        ] {
            assert_eq!(is_asked_at(slot, point), asked, "{slot} at {point}");
        }
    }
}
