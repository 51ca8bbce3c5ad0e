//! One process and the frames to it: calls and their answers, what waits to be read, and how it is given up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use serde_json::Value;
use sidecert_proto::json::{Tape, quoted};
use sidecert_proto::machine::{Action, LinkId, Micros};
use sidecert_proto::reasonix::content::Object;
use sidecert_proto::reasonix::contract::{self, reason};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::wire::Deframer;

use super::core::{Core, Failure, Shared};
use super::manifest::Plugin;
use super::streams::Stream;
use super::strict;

/// How long the end of a process is waited for when it was killed, in microseconds.
pub(super) const REAPED_WITHIN: Micros = 5_000_000;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The handshake is not over.
    Starting,
    /// It is.
    Ready,
    /// The guest was asked to end.
    Closing,
    /// Nothing is read from it or written to it any more.
    Gone,
}

/// What a guest answered.
#[derive(Debug)]
enum Answer {
    /// A result, as it was written.
    Result(String),
    Error(Failure),
}

/// What a guest offers to choose from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Catalog {
    #[default]
    Unknown,
    Asked,
    Known(Vec<Value>),
}

/// A frame that the guest has not read yet.
#[derive(Debug)]
struct Unread {
    bytes: usize,
    event: bool,
}

/// One process.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) plugin: Rc<Plugin>,
    pub(super) generation: u64,
    pub(super) stage: Stage,
    /// Why it is gone.
    pub(super) fate: Option<Failure>,
    /// Whether it will say nothing more.
    pub(super) ended: bool,
    pub(super) exited: bool,
    pub(super) deframer: Option<Deframer>,
    last_id: i64,
    /// What it was asked and has not answered.
    pending: BTreeMap<i64, &'static str>,
    answers: BTreeMap<i64, Answer>,
    unread: VecDeque<Unread>,
    /// When it last read something, or had read all before.
    moved_at: Micros,
    pub(super) overflow_told: bool,
    /// The end of what it wrote to standard error.
    pub(super) stderr: VecDeque<u8>,
    pub(super) objects: VecDeque<Object>,
    pub(super) minted: u64,
    pub(super) last_seq: u64,
    pub(super) streams: BTreeMap<String, Stream>,
    /// The references of the models that it declared.
    pub(super) providers: Vec<String>,
    /// The points that it subscribed to.
    pub(super) subscriptions: Vec<String>,
    pub(super) actions: Vec<String>,
    pub(super) catalog: Catalog,
    /// The forms that it has published.
    pub(super) forms: BTreeSet<String>,
}

impl Connection {
    pub(super) fn new(plugin: Rc<Plugin>, generation: u64, line_bytes: usize) -> Self {
        Self {
            plugin,
            generation,
            stage: Stage::Starting,
            fate: None,
            ended: false,
            exited: false,
            deframer: Some(Deframer::new(line_bytes)),
            last_id: 0,
            pending: BTreeMap::new(),
            answers: BTreeMap::new(),
            unread: VecDeque::new(),
            moved_at: 0,
            overflow_told: false,
            stderr: VecDeque::new(),
            objects: VecDeque::new(),
            minted: 0,
            last_seq: 0,
            streams: BTreeMap::new(),
            providers: Vec::new(),
            subscriptions: Vec::new(),
            actions: Vec::new(),
            catalog: Catalog::Unknown,
            forms: BTreeSet::new(),
        }
    }

    /// How many events it has not read yet.
    pub(super) fn events_unread(&self) -> usize {
        self.unread.iter().filter(|frame| frame.event).count()
    }

    pub(super) fn wrote(&mut self, mut bytes: usize, now: Micros) {
        self.moved_at = now;
        while let Some(first) = self.unread.front_mut() {
            if first.bytes > bytes {
                first.bytes -= bytes;
                return;
            }
            bytes -= first.bytes;
            self.unread.pop_front();
        }
    }

    /// When it is given up if it reads nothing until then.
    pub(super) fn stalls_at(&self, within: Micros) -> Option<Micros> {
        self.unread.front().map(|_| self.moved_at + within)
    }

    /// Keeps what it wrote to standard error, as much of it as is kept.
    pub(super) fn complained(&mut self, bytes: &[u8], most: usize, keeps_end: bool) {
        self.stderr.extend(bytes);
        let surplus = self.stderr.len().saturating_sub(most);
        if keeps_end {
            self.stderr.drain(..surplus);
        } else {
            self.stderr.truncate(most);
        }
    }

    /// Whether an answer under this id is waited for.
    pub(super) fn waits_for(&self, id: i64) -> bool {
        self.pending.contains_key(&id)
    }

    /// Whether anything that it was asked is not answered.
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    fn usable_for(&self, method: &str) -> bool {
        match self.stage {
            Stage::Starting => method == contract::INITIALIZE || method == contract::SHUTDOWN,
            Stage::Ready => true,
            Stage::Closing => method == contract::SHUTDOWN && !self.ended,
            Stage::Gone => false,
        }
    }

    /// Why nothing more comes of a call, if nothing does.
    fn lost(&self, method: &str) -> Option<Failure> {
        if self.usable_for(method) {
            return None;
        }
        let mut fate = self.fate.clone().unwrap_or_else(|| self.not_running());
        fate.reason.get_or_insert_with(|| reason::PROVIDER_INTERRUPTED.to_owned());
        Some(fate)
    }

    fn not_running(&self) -> Failure {
        Failure::of(reason::PROVIDER_INTERRUPTED, format!("plugin {} is not running", self.plugin.name))
    }
}

impl Core<'_> {
    /// Writes a frame, unless nobody would read it.
    pub(super) fn write(&self, link: LinkId, frame: &str, event: bool) {
        let now = self.now.get();
        let written = self.on(link, |connection| {
            if connection.stage == Stage::Gone {
                return false;
            }
            if connection.unread.is_empty() {
                connection.moved_at = now;
            }
            connection.unread.push_back(Unread { bytes: frame.len() + 1, event });
            true
        });
        if written == Some(true) {
            self.act(Action::Write { link, bytes: Bytes::from(format!("{frame}\n")), after_drain: false });
        }
    }

    pub(super) fn notify(&self, link: LinkId, method: &str, params: &str, event: bool) {
        self.write(link, &format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#), event);
    }

    /// Asks the guest, and waits for the result as it was written.
    pub(super) async fn call(
        &self,
        link: LinkId,
        method: &'static str,
        params: &str,
        deadline: Option<Micros>,
    ) -> Result<String, Failure> {
        let lost = self
            .on(link, |connection| connection.lost(method))
            .unwrap_or_else(|| Some(Failure::of(reason::PROVIDER_INTERRUPTED, "the plugin is not running")));
        if let Some(failure) = lost {
            if !self.manners.ends.fails_fast {
                // Nobody answers; only the time can end this.
                self.until_so(deadline, |_| false).await;
            }
            return Err(failure);
        }
        let id = self.begin(link, method, params)?;
        let deadline = deadline.filter(|_| self.manners.hooks.keeps_time || method != contract::INTERCEPT);
        let answer = self
            .until(deadline, |core| {
                let found = core.on(link, |connection| {
                    let answer = connection.answers.remove(&id);
                    answer.or_else(|| {
                        let lost = connection.lost(method).filter(|_| core.manners.ends.crash_fails_calls);
                        lost.map(Answer::Error)
                    })
                });
                found.unwrap_or_else(|| Some(Answer::Error(Failure::new("the plugin is gone"))))
            })
            .await;
        self.on(link, |connection| connection.pending.remove(&id));
        match answer {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::Error(failure)) => Err(failure),
            Err(_) => Err(Failure { elapsed: true, ..Failure::new("it did not answer in time") }),
        }
    }

    /// Writes a request, and gives its id.
    fn begin(&self, link: LinkId, method: &'static str, params: &str) -> Result<i64, Failure> {
        let step = self.manners.frames.id_step;
        let last = self.on(link, |connection| connection.last_id).unwrap_or_default();
        let id = if last == 0 { 1 } else { last + step };
        let written = if self.manners.frames.ids_as_text { format!(r#""{id}""#) } else { id.to_string() };
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{written},"method":"{method}","params":{params}}}"#);
        if frame.len() >= self.limits.frame_bytes && !self.manners.frames.writes_too_large {
            let limit = self.limits.frame_bytes;
            let text = format!("a frame of {} bytes is longer than {limit}", frame.len() + 1);
            return Err(Failure::of(reason::FRAME_TOO_LARGE, text));
        }
        self.on(link, |connection| {
            connection.last_id = id;
            connection.pending.insert(id, method);
        });
        self.write(link, &frame, false);
        Ok(id)
    }

    /// Takes in an answer. One that nobody waits for changes nothing.
    pub(super) fn answered(&self, link: LinkId, id: i64, outcome: &Outcome<'_>) {
        let answer = match outcome {
            Outcome::Result(result) => Answer::Result(result.raw().to_owned()),
            Outcome::Error { body, .. } => Answer::Error(self.error(*body)),
        };
        let (frames, starts) = (&self.manners.frames, &self.manners.starts);
        self.on(link, |connection| {
            let oldest = connection.pending.keys().next().copied();
            let known = connection.waits_for(id).then_some(id);
            let early = connection.stage == Stage::Starting && starts.early_responses_count;
            let Some(id) = known.or(oldest.filter(|_| frames.unknown_ids_resolve || early)) else { return };
            if frames.last_answer_counts || !connection.answers.contains_key(&id) {
                connection.answers.insert(id, answer);
            }
        });
    }

    /// What an error of a guest says. Its reason counts if it is one, and is as retryable as it says.
    fn error(&self, body: sidecert_proto::json::Node<'_>) -> Failure {
        let text = body.get("message").and_then(|it| it.as_str()).unwrap_or_default();
        let data = body.get("data");
        let reason = data.and_then(|data| data.get("reason")).and_then(|it| it.as_str());
        let retryable = data.and_then(|data| data.get("retryable")).and_then(|it| it.as_bool());
        let known = reason.and_then(|name| self.contract.reason(&name));
        let known =
            known.filter(|known| Some(known.retryable) == retryable || !self.manners.frames.checks_retryable);
        Failure {
            text: self.masked(self.manners.redacts.errors, &text),
            reason: known.map(|known| known.name.clone()),
            elapsed: false,
        }
    }

    /// The result of a method as a value, if it is what the contract says.
    pub(super) fn decoded(&self, method: &str, result: &str) -> Result<Value, Failure> {
        let wrong =
            |says: String| Failure::of(reason::PROTOCOL_ERROR, format!("its answer to {method}: {says}"));
        let tape = Tape::scan(result.as_bytes()).map_err(|_| wrong("it is no JSON".to_owned()))?;
        let definition = self.contract.method(method).and_then(|it| it.result.as_deref());
        if let Some(definition) = definition.filter(|_| !self.manners.frames.takes_bad_results) {
            let validator = self.contract.definition_validator(definition);
            let beyond = || {
                let fault = strict::fault(self.contract, definition, tape.root());
                fault.filter(|_| self.manners.frames.beyond_schema)
            };
            let broken = validator.and_then(|it| it.check(tape.root())).map(|it| it.to_string());
            if let Some(says) = broken.or_else(beyond) {
                return Err(wrong(self.masked(self.manners.redacts.errors, &says)));
            }
        }
        tape.root().to_value().ok_or_else(|| wrong("it is nested too deeply".to_owned()))
    }

    /// An error for a reason of the contract, as one JSON text.
    pub(super) fn reasoned(&self, name: &str, message: &str) -> String {
        let known = self.contract.reason(name);
        let code = known.map_or(sidecert_proto::rpc::INTERNAL_ERROR, |it| it.code);
        let retryable = known.is_some_and(|it| it.retryable);
        let action = match (self.manners.frames.error_action, retryable) {
            (true, true) => r#","action":"try again""#,
            (true, false) => r#","action":"correct the request""#,
            (false, _) => "",
        };
        let data = format!(r#"{{"reason":"{name}","retryable":{retryable}{action}}}"#);
        format!(r#"{{"code":{code},"message":{},"data":{data}}}"#, quoted(message))
    }

    /// What the process wrote last to its standard error, as it may be shown.
    fn complaint(&self, link: LinkId, mask: bool) -> String {
        let bytes: Vec<u8> =
            self.on(link, |connection| connection.stderr.iter().copied().collect()).unwrap_or_default();
        let text = self.masked(mask, String::from_utf8_lossy(&bytes).trim_end());
        if text.is_empty() { text } else { format!("; stderr: {text}") }
    }
}

/// Gives a connection up: nothing is read from it or written to it any more, and what waits for it fails. One that was
/// open is killed, and the user is told.
pub(super) fn give_up(core: &Shared<'_>, link: LinkId, failure: &Failure) {
    let stage = core.on(link, |connection| {
        let stage = std::mem::replace(&mut connection.stage, Stage::Gone);
        if stage != Stage::Gone {
            connection.fate = Some(failure.clone());
        }
        for stream in connection.streams.values_mut() {
            stream.broke_off(&core.manners.streams, failure);
        }
        stage
    });
    if stage == Some(Stage::Ready) {
        let core = Rc::clone(core);
        let text = failure.text.clone();
        core.clone().spawn(async move { crashed(core, link, text).await });
    }
}

/// Kills what crashed, and tells the user once.
async fn crashed(core: Shared<'_>, link: LinkId, text: String) {
    let Some((name, exited)) = core.on(link, |it| (it.plugin.name.clone(), it.exited)) else { return };
    super::ui::drop_prompts(&core, link);
    if !exited && core.manners.ends.kills_crashed {
        core.act(Action::Kill { link });
    }
    let says = format!("plugin {name} crashed: {text}");
    core.tell("warning", &says, Some(&name));
    if !core.manners.ends.reports_crash_once {
        core.tell("warning", &says, Some(&name));
    }
    reaped(&core, link).await;
    diagnosed(&core, link, &says);
    if core.manners.ends.restarts {
        super::start::revive(&core, link).await;
    }
}

/// Waits until the process has ended, but not for ever.
pub(super) async fn reaped(core: &Core<'_>, link: LinkId) {
    let deadline = core.now.get() + REAPED_WITHIN;
    // It may never be told; what is known by then is what there is.
    core.until_so(Some(deadline), |core| core.on(link, |it| it.exited) != Some(false)).await;
}

/// Tells what is known of a plugin that failed.
pub(super) fn diagnosed(core: &Core<'_>, link: LinkId, says: &str) {
    let redacts = &core.manners.redacts;
    core.found("diagnostics", &format!("{says}{}", core.complaint(link, redacts.stderr)));
    core.note(&format!("{says}{}", core.complaint(link, redacts.log)));
}

/// Gives a guest up that reads nothing for too long.
pub(super) async fn watched(core: Shared<'_>, link: LinkId) {
    let stalled = core.until(None, |core| {
        let within = core.manners.ends.write_stall;
        let stalls = core.on(link, |it| (it.stage == Stage::Gone, it.stalls_at(within)));
        match stalls {
            None | Some((true, _)) => Some(false),
            Some((false, Some(when))) if when <= core.now.get() => Some(true),
            Some((false, when)) => {
                if let Some(when) = when {
                    core.wake_at(when);
                }
                None
            }
        }
    });
    if matches!(stalled.await, Ok(true)) {
        let failure = Failure::of(reason::PROVIDER_INTERRUPTED, "it reads nothing any more");
        give_up(&core, link, &failure);
    }
}
