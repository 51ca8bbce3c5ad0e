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

mod process;
mod progress;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;

use crate::budget::{Budget, LATE_TICK, STARVED_MOST};
use crate::contract::Side;
use crate::json::{Slots, Tape};
use crate::machine::{Action, Exited, Input, LinkId, Machine, Micros};
use crate::rpc::{self, Envelope, Id};
use crate::script::{Outgoing, Pattern, ScriptDef, Setting, Step, Within};
use crate::transcript::{End, Event, Frame, Kind, Payload, WROTE_SILENT_MICROS, Wait, Writer};
use crate::wire::{Deframer, Line};

use process::{Clock, Link, Unwritten};
use progress::Playing;

/// The label of every fence in a recording.
pub const FENCE: &str = "fence";

/// How much standard error is recorded, in bytes; what is more is counted.
const STDERR_BYTES_MOST: usize = 64 << 10;
/// How much a target may write while a frame is awaited, in bytes: what is more would fill the disk.
const FLOOD_BYTES_MOST: u64 = 64 << 20;
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
    /// Whether a wait for a frame ended without.
    missed: bool,
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
    starved: u8,
}

impl Waiting {
    fn is_for_a_frame(&self) -> bool {
        matches!(self.what, What::Frame(_) | What::Fence { .. })
    }
}

enum What {
    Frame(Pattern),
    Fence {
        id: i64,
        or_end: bool,
    },
    Silence {
        until: Micros,
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
            missed: false,
            done: false,
        }
    }

    /// The recording so far, in which what was drained is missing.
    pub fn record(&mut self) -> &mut Vec<u8> {
        &mut self.record.text
    }

    /// How the recording ended; `None` while it has not.
    pub fn end(&self) -> Option<End> {
        self.end.filter(|_| self.done)
    }

    /// The script that could not be played to its end.
    pub fn cut_in(&self) -> Option<&str> {
        self.cut_in.as_deref()
    }

    /// Whether an answer never came that was waited for: a second try may tell whether the machine was to blame.
    pub fn missed_an_answer(&self) -> bool {
        self.missed
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
        let script = (def.build)(&setting);
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
            Step::Quiet => {
                let within = self.budget.quiet(self.clock.median());
                self.wait(
                    Wait::Quiet,
                    None,
                    within,
                    What::Silence { until: now + self.budget.quiet_total },
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
        if let Some(id) = label.and_then(|label| script.ids.get(label))
            && self.pending.len() < PENDING_MOST
        {
            self.pending.insert(*id, now);
        }
        let known = Offered { label, departs, open, cut_at: &cut_at };
        self.offer(bytes, payload, known, now);
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
        self.offer(frame, None, Offered { label: Some(FENCE), ..Offered::default() }, now);
        let within = self.answer_budget();
        self.wait(Wait::Fence, None, within, What::Fence { id, or_end }, now);
    }

    fn await_frame(&mut self, pattern: &Pattern, within: Within, now: Micros) {
        let Some(script) = &mut self.script else { return };
        if script.claim(pattern) {
            return;
        }
        let label = match pattern {
            Pattern::Members(members) => members.iter().find_map(|(_, member)| match member {
                Pattern::Id(label) => Some(label.clone()),
                _ => None,
            }),
            _ => None,
        };
        if self.link.over {
            let what =
                label.map_or_else(|| "a frame that was awaited".to_owned(), |label| format!("{label:?}"));
            return self.cut_when_gone(format!("before it answered {what}"), now);
        }
        let (wait, within) = match within {
            Within::Start if self.link.any_byte => (Wait::Start, self.budget.start),
            Within::Start => (Wait::Start, self.budget.first_byte),
            Within::Answer => (Wait::Answer, self.answer_budget()),
            Within::Millis(millis) => (Wait::Answer, millis.saturating_mul(1_000)),
        };
        self.wait(wait, label, within, What::Frame(pattern.clone()), now);
    }

    fn answer_budget(&self) -> Micros {
        self.budget.answer(self.clock.start.unwrap_or(self.budget.answer_most))
    }

    fn wait(&mut self, wait: Wait, label: Option<String>, within: Micros, what: What, now: Micros) {
        self.link.since_wait = 0;
        let deadline = match what {
            // These end a process or a silence: they are bounded whatever the user lifts.
            What::Silence { .. } | What::Exit | What::Gone { .. } => Some(now.saturating_add(within)),
            What::Frame(_) | What::Fence { .. } => self.budget.deadline(now, within),
        };
        self.waiting = Some(Waiting { wait, label, since: now, within, deadline, what, starved: 0 });
    }

    /// The wait is over, and what it was for came.
    fn came(&mut self, now: Micros) {
        let Some(waiting) = self.waiting.take() else { return };
        let took = now.saturating_sub(waiting.since);
        if waiting.wait == Wait::Start {
            self.clock.start = Some(took);
        }
        let label = waiting.label.map(Cow::Owned);
        self.note(now, Kind::Waited { wait: waiting.wait, label, took, within: waiting.within });
    }

    // ---- reading ----

    fn read(&mut self, chunk: &[u8], now: Micros) {
        self.link.any_byte |= !chunk.is_empty();
        self.link.since_wait += chunk.len() as u64;
        if self.link.since_wait > FLOOD_BYTES_MOST
            && self.waiting.as_ref().is_some_and(Waiting::is_for_a_frame)
        {
            let cause = format!("the guest wrote {} MiB, and not what was awaited", FLOOD_BYTES_MOST >> 20);
            return self.cut(cause, now);
        }
        self.extend_start();
        let Some(mut deframer) = self.deframer.take() else { return };
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) => self.line(line, now),
                Line::Oversize { head, seen } => {
                    self.note(now, Kind::Oversize { from: Side::Guest, head: Cow::Borrowed(head), seen });
                    self.link.noise.get_or_insert_with(|| "a line that is longer than the limit".to_owned());
                    self.kill(now);
                    self.over(now);
                }
            }
        }
        self.deframer = Some(deframer);
    }

    /// A target that has written something gets the time that the protocol allows for the first answer.
    fn extend_start(&mut self) {
        if let Some(waiting) = &mut self.waiting
            && waiting.wait == Wait::Start
            && waiting.within < self.budget.start
        {
            waiting.within = self.budget.start;
            waiting.deadline = self.budget.deadline(waiting.since, waiting.within);
        }
    }

    fn line(&mut self, line: &[u8], now: Micros) {
        let tape = match Tape::scan_in(line, std::mem::take(&mut self.spare)) {
            Ok(tape) => tape,
            Err((_, spare)) => {
                self.spare = spare;
                let preview: String = String::from_utf8_lossy(line).chars().take(120).collect();
                self.link.noise.get_or_insert_with(|| format!("{preview:?}"));
                return self.note_frame(Payload::of(line), now);
            }
        };
        let root = tape.root();
        let text = tape.text();
        let whole = root.raw().len() == text.len();
        let payload =
            if whole { Payload::Json(Cow::Borrowed(text)) } else { Payload::Text(Cow::Borrowed(text)) };
        self.note_frame(payload, now);
        if let Ok(envelope) = rpc::classify(root) {
            self.meet(&envelope, root, now);
        }
        self.spare = tape.into_spare();
    }

    fn note_frame(&mut self, payload: Payload<'_>, now: Micros) {
        let frame = Frame { from: Side::Guest, label: None, departs: None, open: false, payload };
        self.note(now, Kind::Frame(frame));
        if let Some(Waiting { what: What::Silence { until }, deadline, within, .. }) = &mut self.waiting {
            *deadline = Some((now + *within).min(*until));
        }
    }

    fn meet(&mut self, envelope: &Envelope<'_>, root: crate::json::Node<'_>, now: Micros) {
        let mut answered = None;
        if let Envelope::Response { id: Id::Integer(id), .. } = envelope
            && let Some(since) = self.pending.remove(id)
        {
            self.clock.took(now.saturating_sub(since));
            answered = Some(*id);
        }
        let mut out = Vec::new();
        let claimed = match &mut self.script {
            Some(script) => script.react(root, &mut self.next_id, &mut out),
            None => false,
        };
        self.peer.meet(envelope, claimed, &mut out);
        for frame in out {
            self.answer(frame, now);
        }
        match &self.waiting {
            Some(Waiting { what: What::Fence { id, .. }, .. }) if answered == Some(*id) => {
                self.came(now);
                self.fence_answered(now);
            }
            Some(Waiting { what: What::Frame(pattern), .. }) => {
                let Some(script) = &mut self.script else { return };
                if pattern.matches(root, &script.ids, &mut script.captures) {
                    self.came(now);
                } else if let Some(label) = answered.and_then(|id| script.label_of(id))
                    && self.waiting.as_ref().is_some_and(|waiting| waiting.label.as_deref() == Some(&label))
                {
                    // The only answer that there will be is not the one that the script needs.
                    let said = crate::exchange::summary(envelope);
                    self.cut(format!("the guest answered {label} with {said}"), now);
                } else {
                    script.keep(root.raw());
                }
            }
            _ => self.with_script(|script| script.keep(root.raw())),
        }
    }

    fn fence_answered(&mut self, now: Micros) {
        let Some(script) = &mut self.script else { return };
        for (fences, _) in &mut script.deferred {
            *fences = fences.saturating_sub(1);
        }
        let (due, later) =
            std::mem::take(&mut script.deferred).into_iter().partition(|(fences, _)| *fences == 0);
        script.deferred = later;
        let due: Vec<(u32, Vec<u8>)> = due;
        for (_, frame) in due {
            self.answer(frame, now);
        }
    }

    /// Writes an answer of ours, if anybody still reads.
    fn answer(&mut self, frame: Vec<u8>, now: Micros) {
        if !self.link.broken && !self.link.closed && self.link.exited.is_none() {
            self.offer(frame, None, Offered::default(), now);
        }
    }

    fn wrote(&mut self, count: usize, now: Micros) {
        self.link.accepted += count as u64;
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
                && waiting.label.is_some()
                && waiting.label == label
            {
                // A bound counts from when the target could have read the frame.
                waiting.since = now;
                waiting.deadline = self.budget.deadline(now, waiting.within);
            }
            self.note(now, Kind::Wrote { label: label.map(Cow::Owned), parts });
        }
    }

    // ---- ending ----

    /// The target writes no more.
    fn over(&mut self, now: Micros) {
        if std::mem::replace(&mut self.link.over, true) {
            return;
        }
        match self.waiting.take() {
            Some(Waiting { what: What::Fence { or_end: false, .. }, .. }) => {
                self.cut_when_gone("before it answered a fence".to_owned(), now);
            }
            Some(Waiting { what: What::Frame(_), label, .. }) => {
                let what =
                    label.map_or_else(|| "a frame that was awaited".to_owned(), |label| format!("{label:?}"));
                self.cut_when_gone(format!("before it answered {what}"), now);
            }
            Some(Waiting { what: What::Fence { .. } | What::Silence { .. }, .. }) | None => {}
            other => self.waiting = other,
        }
    }

    fn exited(&mut self, exited: Exited, now: Micros) {
        if self.link.exited.is_some() {
            return;
        }
        self.stderr_rest(now);
        self.note(now, Kind::Exited(exited));
        self.link.exited = Some(exited);
        self.over(now);
        match self.waiting.take() {
            Some(waiting @ Waiting { what: What::Exit, .. }) => {
                self.waiting = Some(waiting);
                self.came(now);
            }
            Some(Waiting { what: What::Gone { cut }, .. }) => self.gone(cut, now),
            other => self.waiting = other,
        }
    }

    /// The script cannot go on, for a reason that is complete once it is known how the process ended.
    fn cut_when_gone(&mut self, before: String, now: Micros) {
        if self.link.exited.is_some() {
            return self.cut(format!("{} {before}", self.state()), now);
        }
        self.wait(Wait::Exit, None, self.budget.exit_after_end, What::Gone { cut: Some(before) }, now);
    }

    /// The process is gone, or will never be.
    fn gone(&mut self, cut: Option<String>, now: Micros) {
        match cut {
            Some(before) => self.cut(format!("{} {before}", self.state()), now),
            None => self.close_record(),
        }
    }

    /// The script cannot go on.
    fn cut(&mut self, cause: String, now: Micros) {
        self.waiting = None;
        if let Some(script) = self.script.take() {
            let cause = match &self.link.noise {
                Some(noise) => format!("{cause}; it wrote {noise} to standard output, which is no frame"),
                None => cause,
            };
            self.cut_in = Some(script.name.clone());
            self.note(now, Kind::Ended { script: Cow::Owned(script.name), cut: Some(Cow::Owned(cause)) });
        }
        self.plan.clear();
        self.end = self.end.or(Some(End::Cut));
        self.finish(None, now);
    }

    /// Ends the process if it has not ended, and the recording with it.
    fn finish(&mut self, cut: Option<String>, now: Micros) {
        if self.link.exited.is_some() {
            return self.close_record();
        }
        self.kill(now);
        self.wait(Wait::Exit, None, self.budget.exit_after_kill, What::Gone { cut }, now);
    }

    fn close_record(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.waiting = None;
            self.record.footer(self.end.unwrap_or(End::Cut));
            self.actions.push_back(Action::Done);
        }
    }

    fn kill(&mut self, now: Micros) {
        if self.link.exited.is_none() && !std::mem::replace(&mut self.link.killed, true) {
            self.note(now, Kind::Killed);
            self.actions.push_back(Action::Kill { link: 0 });
        }
    }

    fn state(&self) -> String {
        match self.link.exited {
            Some(_) if self.link.killed => "the guest closed its output and had to be killed".to_owned(),
            Some(Exited::Code(code)) => format!("the guest exited with code {code}"),
            Some(Exited::Signal(signal)) => format!("the guest was ended by signal {signal}"),
            Some(Exited::Unknown) => "the guest ended".to_owned(),
            None if self.link.over => "the guest closed its output".to_owned(),
            None => "the guest stopped reading".to_owned(),
        }
    }

    fn stderr(&mut self, chunk: &[u8], now: Micros) {
        let room = STDERR_BYTES_MOST - self.link.stderr_kept;
        let (kept, rest) = chunk.split_at(chunk.len().min(room));
        self.link.stderr_kept += kept.len();
        self.link.stderr_dropped += rest.len() as u64;
        if !kept.is_empty() {
            let text = String::from_utf8_lossy(kept);
            self.note(now, Kind::Stderr { text, dropped: 0 });
        }
    }

    fn stderr_rest(&mut self, now: Micros) {
        let dropped = std::mem::take(&mut self.link.stderr_dropped);
        if dropped > 0 {
            self.note(now, Kind::Stderr { text: Cow::Borrowed(""), dropped });
        }
    }

    // ---- time ----

    fn tick(&mut self, now: Micros) {
        let Some(waiting) = &mut self.waiting else { return };
        let Some(deadline) = waiting.deadline.filter(|deadline| *deadline <= now) else { return };
        let late = now - deadline;
        if late > LATE_TICK && waiting.starved < STARVED_MOST {
            waiting.starved += 1;
            waiting.deadline = Some(now.saturating_add(late.min(waiting.within)));
            return self.note(now, Kind::Starved { late });
        }
        match &waiting.what {
            What::Silence { .. } => {
                self.came(now);
                self.fence_answered(now);
            }
            What::Gone { cut } if self.link.killed => {
                let cut = cut.clone();
                self.gone(cut, now);
            }
            What::Gone { cut } => {
                let cut = cut.clone();
                self.finish(cut, now);
            }
            What::Exit => {
                self.timed_out(now);
                self.kill(now);
                self.wait(Wait::Exit, None, self.budget.exit_after_kill, What::Exit, now);
                if let Some(waiting) = &mut self.waiting {
                    // The process had its time; what is awaited now is only our own cleaning up.
                    waiting.what = What::Gone { cut: Some("had to be killed".to_owned()) };
                }
            }
            What::Frame(_) | What::Fence { .. } => {
                let cause = self.timeout_cause();
                self.missed = true;
                self.timed_out(now);
                self.cut(cause, now);
            }
        }
    }

    fn timeout_cause(&self) -> String {
        let Some(waiting) = &self.waiting else { return String::new() };
        let what = waiting.label.as_deref().unwrap_or("a fence");
        let seconds = waiting.within / 1_000_000;
        let within = if waiting.within % 1_000_000 == 0 {
            format!("{seconds} s")
        } else {
            format!("{} ms", waiting.within / 1_000)
        };
        match waiting.wait {
            Wait::Start if waiting.within < self.budget.start => {
                let start = self.budget.start / 1_000_000;
                format!(
                    "no answer to {what} in {within}; the protocol allows {start} s: `--start-timeout {start}s` waits"
                )
            }
            _ => format!("no answer to {what} in {within}"),
        }
    }

    fn timed_out(&mut self, now: Micros) {
        if let Some(waiting) = self.waiting.take() {
            let label = waiting.label.map(Cow::Owned);
            self.note(now, Kind::TimedOut { wait: waiting.wait, label, within: waiting.within });
        }
    }

    fn interrupted(&mut self, now: Micros) {
        if self.end.is_none() {
            self.end = Some(End::Interrupted);
            self.cut("the user interrupted the run".to_owned(), now);
        }
    }
}

impl Machine for Play<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        if link != 0 || self.done {
            return;
        }
        match input {
            Input::Bytes(chunk) => self.read(chunk, now),
            Input::Eof => {
                let tail = self.deframer.take().map(|deframer| deframer.tail().to_vec()).unwrap_or_default();
                if !tail.is_empty() {
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
        }
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
