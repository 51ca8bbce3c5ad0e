//! Plays scripts against one process without touching it: a machine that writes, waits, answers and records.
//!
//! ```text
//!  begin --script built--> stepping --a step that waits--> waiting --it came--> stepping
//!  stepping --no step left--> begin (the next script)      waiting --it did not--> ending (cut)
//!  begin --no script left--> ending --the process is gone--> done
//! ```
//!
//! What a script does not claim, the [`Peer`] answers. A tick that comes late means that we were not running: the wait
//! is re-armed for as much, and says so in the record.

mod cast;
mod ending;
mod process;
mod progress;
mod reading;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;

use crate::budget::Budget;
use crate::contract::Side;
use crate::json::{Node, Slots};
use crate::machine::{Action, Input, LinkId, Machine, Micros};
use crate::rpc::Envelope;
use crate::script::{Outgoing, Pattern, ScriptDef, Setting, Step, Within};
use crate::transcript::{End, Event, Frame, Kind, Payload, WROTE_SILENT_MICROS, Wait, Writer};
use crate::wire::Deframer;

pub use cast::{Cast, Casting, Part, Player};
use process::{Clock, Link, Unwritten};
use progress::Playing;

/// The label of every fence in a recording, and what [`Missed`] calls the answer to one.
pub const FENCE: &str = "fence";

/// How much standard error is recorded, in bytes; what is more is counted.
const STDERR_BYTES_MOST: usize = 64 << 10;
/// The longest frame of ours that an echo of is known as one, in bytes.
const ECHO_BYTES_MOST: usize = 64 << 10;
/// How many frames of ours may be waiting for an answer that is timed.
const PENDING_MOST: usize = 1 << 16;

/// The smallest conforming end of a protocol, on which a script stands.
pub trait Peer {
    /// A harmless request with this id whose answer, any answer, is a fence.
    fn fence(&mut self, id: i64) -> Vec<u8>;

    /// Takes in a frame of the target. Unless a reaction has claimed it, what is to be answered is appended to `out`.
    fn meet(&mut self, frame: &Envelope<'_>, claimed: bool, out: &mut Vec<Vec<u8>>);

    /// What the target has declared so far.
    fn declared(&self) -> &BTreeSet<String>;

    /// Whether the target asks this because the user took a turn.
    fn is_of_turn(&self, _frame: Node<'_>) -> bool {
        false
    }

    /// Whether it may send anything yet: whether a fence is legal.
    fn is_open(&self) -> bool {
        true
    }
}

/// An answer that never came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// To which method, or to [`FENCE`].
    pub what: String,
    /// In which script.
    pub script: String,
    /// How long it was waited for.
    pub within: Micros,
}

/// One process and the scripts to play on it.
pub struct Play<'a> {
    setting: Setting<'a>,
    budget: Budget,
    plan: VecDeque<&'static ScriptDef>,
    peer: Box<dyn Peer + 'a>,
    deframer: Option<Deframer>,
    spare: Slots,
    record: Writer,
    actions: VecDeque<Action>,
    script: Option<Playing>,
    waiting: Option<Waiting>,
    link: Link,
    clock: Clock,
    next_id: i64,
    pending: BTreeMap<i64, Micros>,
    end: Option<End>,
    /// The script that could not go on.
    cut_in: Option<String>,
    /// How many scripts were played to their end.
    played: usize,
    /// The first answer that was waited for in vain.
    missed: Option<Missed>,
    /// To what the target is known, or believed, to give no answer.
    doubted: BTreeSet<String>,
    /// What it has answered.
    heard: BTreeSet<String>,
    /// How much was recorded, in bytes.
    recorded: u64,
    done: bool,
}

/// What is known of a frame of ours besides its bytes.
#[derive(Clone, Copy, Default)]
struct Offered<'a> {
    label: Option<&'a str>,
    departs: Option<&'a str>,
    /// Its line feed is left out.
    open: bool,
    cut_at: &'a [usize],
}

struct Waiting {
    wait: Wait,
    label: Option<String>,
    since: Micros,
    within: Micros,
    deadline: Option<Micros>,
    what: What,
    /// The bound stands in a frame of ours: that it passed says something of the target.
    is_the_bound: bool,
    /// What the target is believed not to answer, which made the wait a short one.
    in_doubt: Option<String>,
    starved: u8,
}

enum What {
    Frame(Pattern),
    Fence {
        id: i64,
        or_end: bool,
    },
    Silence {
        until: Micros,
        /// Whether it is over as soon as nothing is due any more.
        settles: bool,
        /// What it is over with.
        frame: Option<Pattern>,
    },
    Exit,
    /// The end of a process that can only end, and why its script was cut.
    Gone {
        cut: Option<String>,
    },
}

impl<'a> Play<'a> {
    /// A play of `plan`, in order, on one process. `line_bytes_max` is the longest line that is read, LF not counted.
    pub fn new(
        process: &str,
        plan: impl IntoIterator<Item = &'static ScriptDef>,
        peer: Box<dyn Peer + 'a>,
        setting: Setting<'a>,
        budget: Budget,
        line_bytes_max: usize,
    ) -> Self {
        Self {
            setting,
            budget,
            plan: plan.into_iter().collect(),
            peer,
            deframer: Some(Deframer::new(line_bytes_max)),
            spare: Slots::default(),
            record: Writer::new(process),
            actions: VecDeque::new(),
            script: None,
            waiting: None,
            link: Link::default(),
            clock: Clock::default(),
            next_id: 1,
            pending: BTreeMap::new(),
            end: None,
            cut_in: None,
            played: 0,
            missed: None,
            doubted: BTreeSet::new(),
            heard: BTreeSet::new(),
            recorded: 0,
            done: false,
        }
    }

    /// No answer to any of `what` (a method, or [`FENCE`]) is waited for in full: it is missed elsewhere already.
    #[must_use]
    pub fn doubt(mut self, what: BTreeSet<String>) -> Self {
        self.doubted = what;
        self
    }

    /// The recording so far, in which what was drained is missing.
    pub fn record(&mut self) -> &mut Vec<u8> {
        &mut self.record.text
    }

    /// How much was recorded, in bytes, whatever became of it.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// How the recording ended; `None` while it has not.
    pub fn end(&self) -> Option<End> {
        self.end.filter(|_| self.done)
    }

    /// The script that could not be played to its end.
    pub fn cut_in(&self) -> Option<&str> {
        self.cut_in.as_deref()
    }

    /// Whether a script has been played to its end, the opening as a rule.
    pub fn is_open(&self) -> bool {
        self.played > 0
    }

    /// The first answer that never came: a second try may tell whether the machine was to blame.
    pub fn missed(&self) -> Option<&Missed> {
        self.missed.as_ref()
    }

    /// The methods to which it answered a request that was in order, and [`FENCE`] if it answered one.
    pub fn heard(&self) -> &BTreeSet<String> {
        &self.heard
    }

    /// Whether the target has written anything.
    pub fn has_spoken(&self) -> bool {
        self.link.any_byte
    }

    /// How long the first answer took, in microseconds.
    pub fn start(&self) -> Option<Micros> {
        self.clock.start
    }

    /// Whether what is waited for now is believed not to come.
    pub fn is_in_doubt(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.in_doubt.is_some())
    }

    /// What the target has declared so far.
    pub fn declared(&self) -> &BTreeSet<String> {
        self.peer.declared()
    }

    fn note(&mut self, now: Micros, kind: Kind<'_>) {
        self.record.event(&Event { t: now, link: 0, kind });
    }

    // ---- stepping ----

    fn advance(&mut self, now: Micros) {
        let Some(script) = &mut self.script else { return self.begin(now) };
        let Some((steps, place)) = script.next_step() else {
            let name = std::mem::take(&mut script.name);
            self.script = None;
            self.played += 1;
            return self.note(now, Kind::Ended { script: Cow::Owned(name), cut: None });
        };
        self.step(&steps, place, now);
    }

    fn begin(&mut self, now: Micros) {
        let Some(def) = self.plan.pop_front() else {
            self.end = self.end.or(Some(End::Done));
            return self.finish(None, now);
        };
        let declared = self.peer.declared().clone();
        let setting = Setting { declared: &declared, ..self.setting };
        if setting.unmet(def).is_some() {
            return;
        }
        let script = def.script(&setting);
        self.note(now, Kind::Begin { script: Cow::Borrowed(def.name) });
        self.script = Some(Playing::new(def.name, script));
    }

    fn step(&mut self, steps: &[Step], place: usize, now: Micros) {
        match &steps[place] {
            Step::Send { label, frame } => self.send(label.as_deref(), None, false, frame, now),
            Step::Raw { label, departs, frame } => {
                self.send(label.as_deref(), Some(departs), false, frame, now);
            }
            Step::Tail { label, departs, frame } => {
                self.send(label.as_deref(), Some(departs), true, frame, now);
            }
            Step::Cut { at } => self.with_script(|script| script.cut_at.clone_from(at)),
            Step::Await { frame, within } => self.await_frame(frame, *within, now),
            Step::Fence { or_end } => self.fence(*or_end, now),
            Step::Settle if self.script.as_ref().is_none_or(|script| script.due.is_empty()) => {}
            Step::Settle => self.settle(now),
            Step::Quiet => {
                let within = self.quiet();
                let until = now + self.budget.quiet_total;
                self.wait(
                    Wait::Quiet,
                    None,
                    within,
                    What::Silence { until, settles: false, frame: None },
                    now,
                );
            }
            Step::Hold => self.actions.push_back(Action::Reading { link: 0, on: false }),
            Step::Release => self.actions.push_back(Action::Reading { link: 0, on: true }),
            Step::Close => {
                if !std::mem::replace(&mut self.link.closed, true) {
                    self.note(now, Kind::Closed { from: Side::Host });
                    self.actions.push_back(Action::Close { link: 0 });
                }
            }
            Step::Exit => {
                if self.link.exited.is_none() {
                    self.wait(Wait::Exit, None, self.budget.exit_after_close, What::Exit, now);
                }
            }
            Step::Kill => self.kill(now),
            Step::Greet
            | Step::Ask { .. }
            | Step::Outcome { .. }
            | Step::Guest { .. }
            | Step::Do(_)
            | Step::Linger
            | Step::Gone
            | Step::Alive => {
                self.cut("the script is one for a host, and here a guest is under test".to_owned(), now);
            }
            Step::Repeat { times, steps } => {
                let (steps, times) = (Rc::from(steps.as_slice()), *times);
                self.with_script(|script| script.enter(steps, times, None));
            }
            Step::Each { of, name, steps } => {
                let (steps, name) = (Rc::from(steps.as_slice()), name.clone());
                self.with_script(|script| script.enter_each(of, steps, name));
            }
        }
    }

    fn with_script(&mut self, change: impl FnOnce(&mut Playing)) {
        if let Some(script) = &mut self.script {
            change(script);
        }
    }

    fn send(
        &mut self,
        label: Option<&str>,
        departs: Option<&str>,
        open: bool,
        frame: &Outgoing,
        now: Micros,
    ) {
        if self.link.broken || self.link.closed || self.link.exited.is_some() {
            let what = label.unwrap_or("its next frame").to_owned();
            return self.cut(format!("{} before it could be sent {what:?}", self.state()), now);
        }
        let Some(script) = &mut self.script else { return };
        let (bytes, payload) = match frame {
            // What answers nothing is not said.
            Outgoing::Template(template) if template.lacks(&script.captures) => return,
            Outgoing::Template(template) => {
                if let Some(label) = label {
                    script.ids.remove(label);
                }
                let text = template.render(&mut script.ids, &mut self.next_id, &script.captures);
                let known = template.renders_json().then(|| Payload::Json(Cow::Owned(text.clone())));
                (text.into_bytes(), known)
            }
            Outgoing::Payload(payload) => {
                // So that its answer can be awaited by its label, like any other's.
                if let (Some(label), Some(id)) = (label, payload.id()) {
                    script.ids.insert(label.to_owned(), id);
                }
                (payload.bytes().into_owned(), Some(payload.clone()))
            }
        };
        let cut_at = std::mem::take(&mut script.cut_at);
        if script.settles || label.is_some() {
            script.due.sent(&bytes, departs.is_some());
        }
        if let Some(id) = label.and_then(|label| script.ids.get(label))
            && self.pending.len() < PENDING_MOST
        {
            self.pending.insert(*id, now);
        }
        self.remember(label, departs, &bytes);
        let known = Offered { label, departs, open, cut_at: &cut_at };
        self.offer(bytes, payload, known, now);
    }

    /// What a frame of ours may bring about besides its answer: a refusal under no id, or an echo.
    fn remember(&mut self, label: Option<&str>, departs: Option<&str>, bytes: &[u8]) {
        let id = label.and_then(|label| self.script.as_ref()?.ids.get(label));
        self.link.loose |= departs.is_some() || id.is_none();
        let name = label.filter(|_| id.is_some() && bytes.len() <= ECHO_BYTES_MOST);
        self.link.asked = name.map(|name| (name.to_owned(), bytes.to_vec()));
    }

    /// Records a frame of ours and hands it on.
    fn offer(&mut self, mut bytes: Vec<u8>, payload: Option<Payload<'_>>, known: Offered<'_>, now: Micros) {
        let Offered { label, departs, open, cut_at } = known;
        let payload = payload.unwrap_or_else(|| Payload::of(&bytes));
        let frame = Frame {
            from: Side::Host,
            label: label.map(Cow::Borrowed),
            departs: departs.map(Cow::Borrowed),
            open,
            payload,
        };
        self.record.event(&Event { t: now, link: 0, kind: Kind::Frame(frame) });
        if !open {
            bytes.push(b'\n');
        }
        self.link.offered += bytes.len() as u64;
        let bytes = Bytes::from(bytes);
        let parts = parts(&bytes, cut_at);
        if label.is_some() || parts.len() > 1 {
            let lengths = if parts.len() > 1 {
                parts.iter().map(|part| part.len() as u64).collect()
            } else {
                Vec::new()
            };
            let (ends, label) = (self.link.offered, label.map(str::to_owned));
            self.link.unwritten.push_back(Unwritten { ends, offered: now, label, parts: lengths });
        }
        let after_drain = parts.len() > 1;
        self.actions.extend(parts.into_iter().map(|bytes| Action::Write { link: 0, bytes, after_drain }));
    }

    fn fence(&mut self, or_end: bool, now: Micros) {
        if self.link.over || self.link.broken || self.link.exited.is_some() {
            if !or_end {
                self.cut(format!("{} before it answered a fence", self.state()), now);
            }
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let frame = self.peer.fence(id);
        self.pending.insert(id, now);
        self.link.asked = Some((FENCE.to_owned(), frame.clone()));
        self.offer(frame, None, Offered { label: Some(FENCE), ..Offered::default() }, now);
        let (within, in_doubt) = self.patience(Some(FENCE));
        self.wait(Wait::Fence, None, within, What::Fence { id, or_end }, now);
        self.doubting(in_doubt);
    }

    /// Waits until nothing is due any more, or nothing comes any more.
    fn settle(&mut self, now: Micros) {
        let Some(due) = self.script.as_ref().map(|script| &script.due) else { return };
        let allowed = due.allowed();
        let in_all = due.allowed_in_all().min(self.budget.settled_most).max(allowed);
        let in_doubt = self.doubted_of(None);
        let within = if in_doubt.is_some() { self.budget.silence_least } else { self.silence().max(allowed) };
        let within = within.min(self.budget.wait_most);
        let until = now + self.budget.quiet_total.max(in_all);
        self.wait(Wait::Quiet, None, within, What::Silence { until, settles: true, frame: None }, now);
        self.doubting(in_doubt);
    }

    /// How long is waited for `what` or, without, for one of the answers that are due; and the doubt that makes it
    /// short. It may stand behind others that our frames themselves give more time.
    fn patience(&self, what: Option<&str>) -> (Micros, Option<String>) {
        let in_doubt = self.doubted_of(what);
        let within = if in_doubt.is_some() {
            self.budget.silence_least
        } else {
            let allowed = self.script.as_ref().map_or(0, |script| script.due.allowed());
            let allowed = if allowed == 0 { 0 } else { allowed.saturating_add(self.silence()) };
            self.answer_budget().max(allowed)
        };
        (within.min(self.budget.wait_most), in_doubt)
    }

    /// What is doubted of all that a wait for `what` waits for.
    fn doubted_of(&self, what: Option<&str>) -> Option<String> {
        if self.doubted.is_empty() {
            return None;
        }
        let mut due = self.script.iter().flat_map(|script| script.due.methods()).chain(what);
        due.find(|method| self.doubted.contains(*method)).map(str::to_owned)
    }

    fn doubting(&mut self, in_doubt: Option<String>) {
        if let Some(waiting) = &mut self.waiting {
            waiting.in_doubt = in_doubt;
        }
    }

    fn quiet(&self) -> Micros {
        self.budget.quiet(self.clock.median(), self.clock.start.unwrap_or_default())
    }

    fn silence(&self) -> Micros {
        self.budget.silence(self.clock.start.unwrap_or_default())
    }

    fn await_frame(&mut self, pattern: &Pattern, within: Within, now: Micros) {
        let Some(script) = &mut self.script else { return };
        if script.claim(0, pattern) {
            return;
        }
        let label = match pattern {
            Pattern::Members(members) => members.iter().find_map(|(_, member)| match member {
                Pattern::Id(label) => Some(label.clone()),
                _ => None,
            }),
            _ => None,
        };
        if within == Within::Silence {
            // What it would begin with is not even taken up by a target that does not answer.
            let in_doubt = self.doubted_of(None);
            let within = if in_doubt.is_some() { self.quiet() } else { self.silence() };
            let until = now + self.budget.quiet_total;
            let what = What::Silence { until, settles: false, frame: Some(pattern.clone()) };
            self.wait(Wait::Quiet, label, within, what, now);
            return self.doubting(in_doubt);
        }
        if self.link.over {
            let what =
                label.map_or_else(|| "a frame that was awaited".to_owned(), |label| format!("{label:?}"));
            return self.cut_when_gone(format!("before it answered {what}"), now);
        }
        let bound = match within {
            Within::Millis(millis) => Some(millis.saturating_mul(1_000)),
            _ => None,
        };
        let (wait, within, in_doubt) = match within {
            Within::Start => {
                let start = if self.link.any_byte { self.budget.start } else { self.budget.first_byte };
                (Wait::Start, start, None)
            }
            Within::Answer | Within::Millis(_) | Within::Silence => {
                let (patience, in_doubt) = self.patience(None);
                let within = match bound.map(|bound| bound.min(self.budget.wait_most)) {
                    Some(bound) if in_doubt.is_some() => patience.min(bound),
                    Some(bound) => bound,
                    None => patience,
                };
                (Wait::Answer, within, in_doubt)
            }
        };
        self.wait(wait, label, within, What::Frame(pattern.clone()), now);
        if let Some(waiting) = &mut self.waiting {
            waiting.is_the_bound = bound.is_some_and(|bound| bound <= waiting.within);
            waiting.in_doubt = in_doubt;
        }
    }

    fn answer_budget(&self) -> Micros {
        self.budget.answer(self.clock.start.unwrap_or(self.budget.answer_most))
    }

    fn wait(&mut self, wait: Wait, label: Option<String>, within: Micros, what: What, now: Micros) {
        (self.link.bytes_since_wait, self.link.lines_since_wait) = (0, 0);
        let deadline = match what {
            // These end a process or a silence: they are bounded whatever the user lifts.
            What::Silence { .. } | What::Exit | What::Gone { .. } => Some(now.saturating_add(within)),
            What::Frame(_) | What::Fence { .. } => self.budget.deadline(now, within),
        };
        self.waiting = Some(Waiting {
            wait,
            label,
            since: now,
            within,
            deadline,
            what,
            is_the_bound: false,
            in_doubt: None,
            starved: 0,
        });
    }

    /// The wait is over, and what it was for came.
    fn came(&mut self, now: Micros) {
        let Some(waiting) = self.waiting.take() else { return };
        let took = now.saturating_sub(waiting.since);
        match waiting.wait {
            Wait::Start => self.clock.start = Some(took),
            // After a silence nobody is still about to refuse what came before it.
            Wait::Quiet => self.link.loose = false,
            _ => {}
        }
        let label = waiting.label.map(Cow::Owned);
        self.note(now, Kind::Waited { wait: waiting.wait, label, took, within: waiting.within });
    }

    /// Writes an answer of ours, if anybody still reads.
    fn answer(&mut self, frame: Vec<u8>, departs: Option<&str>, now: Micros) {
        if !self.link.broken && !self.link.closed && self.link.exited.is_none() {
            self.link.loose = true;
            self.offer(frame, None, Offered { departs, ..Offered::default() }, now);
        }
    }

    fn wrote(&mut self, count: usize, now: Micros) {
        self.link.accepted += count as u64;
        if count > 0 && !self.link.unwritten.is_empty() {
            // It reads, however slowly: it cannot answer what it has not read.
            self.wait_on(now);
        }
        while let Some(first) = self.link.unwritten.front()
            && first.ends <= self.link.accepted
        {
            let Some(Unwritten { offered, label, parts, .. }) = self.link.unwritten.pop_front() else {
                return;
            };
            if now.saturating_sub(offered) <= WROTE_SILENT_MICROS && parts.is_empty() {
                continue;
            }
            if let Some(waiting) = &mut self.waiting
                && (waiting.label.is_some() && waiting.label == label
                    || matches!(waiting.what, What::Fence { .. }) && label.as_deref() == Some(FENCE))
            {
                // A bound counts from when the target could have read the frame.
                waiting.since = now;
                waiting.deadline = self.budget.deadline(now, waiting.within);
            }
            self.note(now, Kind::Wrote { label: label.map(Cow::Owned), parts });
        }
    }
}

impl Machine for Play<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        if link != 0 || self.done {
            return;
        }
        // Whoever owns the file takes the text away between two inputs, never during one.
        let before = self.record.text.len();
        match input {
            Input::Bytes(chunk) => self.read(chunk, now),
            Input::Eof => {
                let tail = self.deframer.take().map(|deframer| deframer.tail().to_vec()).unwrap_or_default();
                if !tail.is_empty() {
                    self.noise(&tail);
                    self.note(now, Kind::Tail { from: Side::Guest, payload: Payload::of(&tail) });
                }
                self.note(now, Kind::Closed { from: Side::Guest });
                self.over(now);
            }
            Input::Wrote(count) => self.wrote(count, now),
            Input::Broken => {
                if !std::mem::replace(&mut self.link.broken, true) {
                    self.note(now, Kind::Broken);
                }
            }
            Input::Stderr(chunk) => self.stderr(chunk, now),
            Input::Exited(exited) => self.exited(exited, now),
            Input::Left(left) => self.note(now, Kind::Left(left)),
            Input::Interrupted => self.interrupted(now),
            Input::Tick => self.tick(now),
            // Its one link is there from the start, and what is on it is not remote-controlled.
            Input::Launched(_) | Input::NotLaunched(_) | Input::Signal(_) | Input::Pong => {}
        }
        self.recorded += (self.record.text.len() - before) as u64;
        self.fit(now);
    }

    fn poll(&mut self, now: Micros) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if self.done || self.waiting.is_some() {
                return None;
            }
            self.advance(now);
        }
    }

    fn deadline(&self) -> Option<Micros> {
        self.waiting.as_ref().and_then(|waiting| waiting.deadline)
    }
}

fn parts(bytes: &Bytes, cut_at: &[usize]) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(cut_at.len() + 1);
    let mut from = 0;
    for &at in cut_at {
        if at > from && at < bytes.len() {
            parts.push(bytes.slice(from..at));
            from = at;
        }
    }
    parts.push(bytes.slice(from..));
    parts
}
