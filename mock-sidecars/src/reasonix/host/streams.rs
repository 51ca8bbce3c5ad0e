//! Answers of models as they come: chunks are put in order, and what is missing, double or too late is dealt with.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use serde_json::{Value, json};
use sidecert_proto::digest;
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::machine::{LinkId, Micros};
use sidecert_proto::reasonix::contract::{self, reason, since_v2};

use super::core::{Core, Failure, Shared, text};
use super::frames::member;
use super::manners::Streams;
use super::providers::Model;

/// How long an answer to a cancellation is waited for, in microseconds.
const CANCELLED_WITHIN: Micros = 2_000_000;

/// How a stream was said to end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    last: u64,
    error: String,
    interrupted: bool,
}

/// One answer of a model.
#[derive(Debug)]
pub(super) struct Stream {
    next: u64,
    waiting: BTreeMap<u64, Value>,
    delivered: VecDeque<Value>,
    end: Option<End>,
    /// Whether nothing of it counts, though it was complete.
    forgotten: bool,
    over: Option<Result<(), Failure>>,
    /// Since when a chunk is missing.
    gap_since: Option<Micros>,
    active_at: Micros,
}

/// What a model said.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) signature: String,
    pub(super) calls: Vec<Value>,
    pub(super) usage: Option<Value>,
}

fn interrupted(text: impl Into<String>) -> Result<(), Failure> {
    Err(Failure::of(reason::PROVIDER_INTERRUPTED, text))
}

impl Stream {
    fn new(manners: &Streams, now: Micros) -> Self {
        Self {
            next: manners.seq_base.max(1),
            waiting: BTreeMap::new(),
            delivered: VecDeque::new(),
            end: None,
            forgotten: false,
            over: None,
            gap_since: None,
            active_at: now,
        }
    }

    fn chunk(&mut self, manners: &Streams, seq: u64, chunk: Value, now: Micros) {
        self.active_at = now;
        let beyond = self.end.as_ref().is_some_and(|end| seq > end.last) && manners.end_freezes;
        if self.over.is_some() {
            return;
        }
        if seq < self.next || (!manners.drops_duplicates && self.waiting.contains_key(&seq)) {
            if !manners.drops_duplicates {
                self.delivered.push_back(chunk);
            }
        } else if beyond {
            self.over = Some(interrupted(format!("chunk {seq} came after the end of the stream")));
        } else if seq >= self.next.saturating_add(manners.window) {
            self.over = Some(interrupted(format!("chunk {seq} came long before chunk {}", self.next)));
        } else if seq > manners.chunks_most {
            // It is lost, and nobody is told.
            self.next = seq + 1;
        } else if !manners.reorders {
            self.delivered.push_back(chunk);
            self.next = seq + 1;
        } else if manners.first_copy_wins {
            self.waiting.entry(seq).or_insert(chunk);
        } else {
            self.waiting.insert(seq, chunk);
        }
        self.advance(manners, now);
    }

    fn end(&mut self, manners: &Streams, end: End, now: Micros) {
        self.active_at = now;
        if self.over.is_some() {
            return;
        }
        if let Some(known) = &self.end {
            if (*known != end && manners.ends_must_agree) || manners.same_end_fails {
                self.over = Some(interrupted("the stream ended twice, and not alike"));
            }
            return;
        }
        let beyond = self.waiting.keys().next_back().copied().filter(|last| *last > end.last);
        let delivered = self.next - 1;
        if let Some(seq) = beyond.filter(|_| manners.end_freezes) {
            self.over = Some(interrupted(format!("chunk {seq} is beyond the end of the stream")));
        } else if end.last < delivered && manners.end_below_forgets {
            self.forgotten = true;
        } else if end.last < delivered && manners.end_below_delivered_fails {
            self.over = Some(interrupted(format!("chunk {delivered} is beyond the end of the stream")));
        } else if !end.error.is_empty() && manners.end_errors_count {
            self.over = Some(Err(Failure::of(reason::PROVIDER_FAILED, end.error.clone())));
        } else if end.interrupted && manners.end_errors_count {
            self.over = Some(interrupted("the model broke off"));
        }
        self.end = Some(end);
        self.gap_since = None;
        self.advance(manners, now);
    }

    /// Delivers what is in order, and looks whether that was all.
    fn advance(&mut self, manners: &Streams, now: Micros) {
        let before = self.next;
        while let Some(chunk) = self.waiting.remove(&self.next) {
            self.delivered.push_back(chunk);
            self.next += 1;
        }
        if self.next != before {
            self.gap_since = None;
        }
        let complete = self.end.as_ref().is_some_and(|end| self.next > end.last);
        if complete && self.over.is_none() {
            self.over = Some(Ok(()));
        }
        let missing = !self.waiting.is_empty() && !manners.gap_needs_end || self.end.is_some() && !complete;
        self.gap_since = if missing { self.gap_since.or(Some(now)) } else { None };
    }

    /// What is there to take; else when to look again.
    fn take(&mut self, manners: &Streams, now: Micros) -> Result<Taken, Micros> {
        if !self.delivered.is_empty() {
            return Ok(Taken::Chunks(std::mem::take(&mut self.delivered).into()));
        }
        if let Some(over) = &self.over {
            return Ok(Taken::Over(over.clone()));
        }
        let stalls_at = self.active_at + manners.stall;
        let gap_at = self.gap_since.map(|since| since + manners.gap);
        if gap_at.is_some_and(|when| when <= now) {
            if manners.gap_completes {
                return Ok(Taken::Over(Ok(())));
            }
            if !manners.gap_fails {
                self.next = self.waiting.keys().next().copied().unwrap_or(self.next + 1);
                self.advance(manners, now);
                return self.take(manners, now);
            }
            let last =
                self.end.as_ref().map_or(self.waiting.keys().next_back().copied(), |end| Some(end.last));
            let gap = format!(": chunk {} of {} is missing", self.next, last.unwrap_or(self.next));
            let text = format!("interrupted{}", if manners.names_gap { &gap } else { "" });
            return Ok(Taken::Over(interrupted(text)));
        }
        if stalls_at <= now {
            return Ok(Taken::Over(interrupted("the model says nothing any more")));
        }
        Err(gap_at.map_or(stalls_at, |when| when.min(stalls_at)))
    }

    /// Nothing more comes of it.
    pub(super) fn broke_off(&mut self, manners: &Streams, failure: &Failure) {
        let failure = Failure::of(reason::PROVIDER_INTERRUPTED, failure.text.clone());
        self.over.get_or_insert(if manners.crash_completes { Ok(()) } else { Err(failure) });
    }
}

/// What was taken from a stream.
enum Taken {
    Chunks(Vec<Value>),
    Over(Result<(), Failure>),
}

/// Takes in a chunk. One of no stream, or of another generation, is passed over, and so is one that makes no sense.
pub(super) fn chunk(core: &Core<'_>, link: LinkId, params: Node<'_>) {
    let manners = &core.manners.streams;
    let (Some(seq), Some(chunk)) =
        (params.get("seq").and_then(Node::as_u64), params.get("chunk").and_then(Node::to_value))
    else {
        return;
    };
    let kind = text(&chunk, "type");
    let sound =
        (kind == "error") == chunk["error"].is_object() && (kind != "usage" || chunk["usage"].is_object());
    if manners.checks_chunks && !sound || superseded(core, params) {
        return;
    }
    let now = core.now.get();
    let id = member(params, "streamId");
    core.on(link, |connection| {
        let known = connection.streams.contains_key(&*id);
        let other = connection.streams.keys().next().filter(|_| !known && manners.strays_count).cloned();
        if let Some(stream) = connection.streams.get_mut(other.as_deref().unwrap_or(&*id)) {
            stream.chunk(manners, seq, chunk.clone(), now);
        }
    });
}

/// Whether a chunk says that it belongs to another generation, where the contract lets it say so.
fn superseded(core: &Core<'_>, params: Node<'_>) -> bool {
    let current = core.session(|session| (session.generation, session.epoch()));
    let Some((generation, epoch)) = current.filter(|_| core.manners.streams.checks_generation) else {
        return false;
    };
    [Some(params), params.get("chunk")].into_iter().flatten().any(|it| {
        let other = it.get("generation").is_some_and(|it| it.as_u64() != Some(generation));
        other || it.get("epoch").and_then(|it| it.as_str()).is_some_and(|it| it != epoch)
    })
}

/// Takes in the end of a stream.
pub(super) fn end(core: &Core<'_>, link: LinkId, params: Node<'_>) {
    let manners = &core.manners.streams;
    let Some(last) = params.get("lastSeq").and_then(Node::as_u64) else { return };
    let end = End {
        last,
        error: core.masked(core.manners.redacts.provider_errors, &member(params, "error")),
        interrupted: params.get("interrupted").and_then(Node::as_bool).unwrap_or(false),
    };
    let (now, id) = (core.now.get(), member(params, "streamId"));
    core.on(link, |connection| {
        connection.streams.get_mut(&*id).into_iter().for_each(|it| it.end(manners, end.clone(), now));
    });
}

/// Lets a model answer. What it said before it failed is given as well.
pub(super) async fn answer(
    core: &Shared<'_>,
    model: &Model,
    request: &Value,
    effort: Option<&str>,
) -> (Said, Result<(), Failure>) {
    let (link, now) = (model.link, core.now.get());
    let manners = &core.manners.streams;
    let count = core.with(|state| {
        state.streams += u64::from(manners.fresh_ids || state.streams == 0);
        state.streams
    });
    let id = format!("es_{}", &digest::sha256(format!("stream {count}").as_bytes())[..24]);
    core.on(link, |it| it.streams.insert(id.clone(), Stream::new(manners, now)));
    core.session(|session| session.stream = Some((link, id.clone())));
    let params = open_params(core, model, &id, request, effort);
    let opened = core.call(link, contract::STREAM_OPEN, &params, Some(now + manners.stall)).await;
    let opened = opened.and_then(|result| {
        let result = core.decoded(contract::STREAM_OPEN, &result)?;
        match result["accepted"].as_bool() {
            Some(true) => Ok(()),
            _ if !manners.needs_acceptance => Ok(()),
            _ => Err(Failure::of(reason::PROVIDER_FAILED, "it declined")),
        }
    });
    if !manners.early_chunks_count {
        core.on(link, |it| it.streams.insert(id.clone(), Stream::new(manners, core.now.get())));
    }
    let (said, outcome) = match opened {
        // A process that died has said what it has said.
        Err(failure) if core.open_link(&model.plugin).is_some() => (Said::default(), Err(failure)),
        _ => collect(core, link, &id).await,
    };
    let ended = core.on(link, |it| it.streams.remove(&id).is_some_and(|stream| stream.end.is_some()));
    core.session(|session| session.stream = None);
    if outcome.is_err() && ended == Some(false) {
        cancel(core, link, &id);
    }
    let failed = |failure: Failure| Failure {
        text: format!("the model {}: {}", model.reference, failure.text),
        ..failure
    };
    match outcome {
        Err(failure)
            if !manners.interruption_fails
                && failure.reason.as_deref() == Some(reason::PROVIDER_INTERRUPTED) =>
        {
            (said, Ok(()))
        }
        outcome => (said, outcome.map_err(failed)),
    }
}

fn open_params(core: &Core<'_>, model: &Model, id: &str, request: &Value, effort: Option<&str>) -> String {
    let manners = &core.manners.streams;
    let mut params = json!({
        "streamId": id, "providerRef": model.reference, "request": request, "seqBase": manners.seq_base,
    });
    if let Some(name) = &model.name {
        params["model"] = name.as_str().into();
    }
    if let Some(effort) = effort.filter(|_| manners.hands_on_effort) {
        params["effort"] = effort.into();
    }
    let (generation, epoch) =
        core.session(|session| (session.generation, session.epoch())).unwrap_or_default();
    if core.contract.has(since_v2::STREAM_OPEN_PARAMS_GENERATION) {
        params["generation"] = generation.into();
    }
    if core.contract.has(since_v2::STREAM_OPEN_PARAMS_EPOCH) {
        params["epoch"] = epoch.into();
    }
    params.to_string()
}

/// Takes a stream until it is over.
async fn collect(core: &Shared<'_>, link: LinkId, id: &str) -> (Said, Result<(), Failure>) {
    let mut said = Said::default();
    loop {
        let taken = core.until(None, |core| {
            let now = core.now.get();
            let manners = &core.manners.streams;
            let taken = core.on(link, |it| it.streams.get_mut(id).map(|stream| stream.take(manners, now)));
            match taken.flatten() {
                Some(Ok(taken)) => Some(taken),
                Some(Err(when)) => {
                    core.wake_at(when);
                    None
                }
                None => Some(Taken::Over(interrupted("its stream is gone"))),
            }
        });
        match taken.await {
            Ok(Taken::Chunks(chunks)) => {
                for chunk in &chunks {
                    if let Err(failure) = said.take(core, chunk) {
                        return (said, Err(failure));
                    }
                    if text(chunk, "type") == "done" && core.manners.streams.done_ends {
                        return (said, Ok(()));
                    }
                }
            }
            Ok(Taken::Over(outcome)) => {
                let forgotten = core.on(link, |it| it.streams.get(id).is_some_and(|it| it.forgotten));
                let said = if forgotten == Some(true) { Said::default() } else { said };
                return (said, outcome);
            }
            Err(_) => return (said, interrupted("its stream is gone")),
        }
    }
}

impl Said {
    fn take(&mut self, core: &Core<'_>, chunk: &Value) -> Result<(), Failure> {
        match text(chunk, "type") {
            "text" => self.text.push_str(&core.masked(core.manners.redacts.content, text(chunk, "text"))),
            "reasoning" => {
                self.reasoning.push_str(text(chunk, "text"));
                self.signature.push_str(text(chunk, "signature"));
            }
            "tool_call" if chunk["toolCall"].is_object() => self.calls.push(chunk["toolCall"].clone()),
            "usage" => self.usage = Some(chunk["usage"].clone()),
            "error" if core.manners.streams.error_chunks_fail => {
                let says = text(&chunk["error"], "message");
                let says = core.masked(core.manners.redacts.provider_errors, says);
                return Err(Failure::of(text(&chunk["error"], "code"), says));
            }
            // `done` ends nothing, and what a call looks like on the way is for those who draw it.
            _ => {}
        }
        Ok(())
    }
}

/// Tells a guest that its stream is not wanted any more.
pub(super) fn cancel(core: &Shared<'_>, link: LinkId, id: &str) {
    core.on(link, |it| it.streams.remove(id));
    if !core.manners.streams.cancels || core.on(link, |it| it.plugin.name.clone()).is_none() {
        return;
    }
    let params = format!(r#"{{"streamId":{}}}"#, quoted(id));
    let core = Rc::clone(core);
    core.clone().spawn(async move {
        let deadline = core.now.get() + CANCELLED_WITHIN;
        // Whatever it answers, the stream is over.
        drop(core.call(link, contract::STREAM_CANCEL, &params, Some(deadline)).await);
    });
}
