//! Plays the guests of a host under test, and asks its driver for what makes it act: a machine like [`Play`].
//!
//! Link 0 is the shim in front of the host; every other link is a guest of ours that the host has launched. Within a
//! link order is exact. Between links there is none but this: an ask is before all that it causes. After its outcome
//! every process of a guest reads what its input holds; then every guest that may asks something harmless. Once all
//! have their answers, everything that the host wrote because of the ask is here, and the record says `settled`.
//!
//! ```text
//!  stepping --ask--> stepping --outcome--> hearing --all read--> fencing --all answered--> stepping
//! ```

mod ahead;
mod ending;
mod guests;
mod shim;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;

use super::progress::Playing;
use super::{Peer, Play};
use crate::budget::Budget;
use crate::contract::Side;
use crate::machine::{Action, Input, LinkId, Machine, Micros, Order};
use crate::script::{self, Outgoing, Pattern, ScriptDef, Setting, Step, Within};
use crate::suite::Suite;
use crate::transcript::{End, Event, Frame, Kind, Payload, Told, Wait, Writer};

use guests::Link;
use shim::Shim;

/// What a family says of hosts under test.
#[derive(Debug)]
pub struct Casting {
    /// What is played first in a process: the shim is greeted.
    pub opening: &'static ScriptDef,
    /// What is played last.
    pub closing: &'static ScriptDef,
    /// The smallest conforming guest, under this name.
    pub part: for<'c> fn(&Setting<'c>, &str) -> Box<dyn Peer + 'c>,
}

/// What makes the guest that the host launches under a name.
pub type Part = for<'c> fn(&Setting<'c>, &str) -> Box<dyn Peer + 'c>;

/// One process of a host, and the scripts to play on it.
pub struct Cast<'a> {
    suite: &'static str,
    part: Part,
    setting: Setting<'a>,
    budget: Budget,
    plan: VecDeque<&'static ScriptDef>,
    line_bytes_max: usize,
    record: Writer,
    actions: VecDeque<Action>,
    script: Option<Playing>,
    waiting: Option<Waiting>,
    shim: Shim,
    /// The guests, by link; that of link 1 comes first.
    links: Vec<Link<'a>>,
    /// Which of them the steps are about.
    current: Option<LinkId>,
    /// How many links there were when the script began.
    known: usize,
    /// The guests that have not yet heard all that the host had written to them when something was over.
    hearing: Option<BTreeSet<LinkId>>,
    /// The fences that are not answered.
    fencing: Option<BTreeMap<LinkId, i64>>,
    /// What the host asks because of a turn that the script has not come to, by link.
    held_back: Vec<(LinkId, Vec<u8>)>,
    /// How many processes guests of ours were told to start that have not come yet.
    spawning: usize,
    next_id: i64,
    end: Option<End>,
    cut_in: Option<String>,
    played: usize,
    recorded: u64,
    /// How long the shim took to greet.
    start: Option<Micros>,
    done: bool,
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

enum What {
    /// The first line of the shim.
    Greeting,
    /// The outcome of the ask of this label, and the fences behind it.
    Outcome(String),
    /// A launch: of this guest, for the nth time in this script.
    Launch(String, u32),
    /// A frame on a link.
    Frame {
        link: LinkId,
        pattern: Pattern,
        /// Whether the script goes on without it.
        optional: bool,
    },
    /// Fences on all links.
    Fences,
    /// The end of a guest.
    Gone(LinkId),
    /// A sign of life of a guest, or its end.
    Alive(LinkId),
    /// Nothing for a while.
    Silence { until: Micros },
    /// The end of the process on link 0.
    Exit,
    /// The end of a process that can only end, and why its script was cut.
    End { cut: Option<String> },
}

impl<'a> Cast<'a> {
    /// Plays `plan`, in order, on one process. `line_bytes_max` is the longest line of the host that is read.
    pub fn new(
        process: &str,
        suite: &Suite,
        casting: &Casting,
        plan: impl IntoIterator<Item = &'static ScriptDef>,
        setting: Setting<'a>,
        budget: Budget,
    ) -> Self {
        Self {
            suite: suite.name,
            part: casting.part,
            setting,
            budget,
            plan: plan.into_iter().collect(),
            line_bytes_max: (suite.line_bytes_max)(setting.contract),
            record: Writer::new(process),
            actions: VecDeque::new(),
            script: None,
            waiting: None,
            shim: Shim::default(),
            links: Vec::new(),
            current: None,
            known: 0,
            hearing: None,
            fencing: None,
            held_back: Vec::new(),
            spawning: 0,
            next_id: 1,
            end: None,
            cut_in: None,
            played: 0,
            recorded: 0,
            start: None,
            done: false,
        }
    }

    fn note(&mut self, link: LinkId, now: Micros, kind: Kind<'_>) {
        self.record.event(&Event { t: now, link, kind });
    }

    fn told(&mut self, link: LinkId, what: Told, json: &str, now: Micros) {
        self.note(link, now, Kind::Told { what, label: None, json: Cow::Borrowed(json) });
    }

    // ---- stepping ----

    fn advance(&mut self, now: Micros) {
        let Some(script) = &mut self.script else { return self.begin(now) };
        if let Some((steps, place)) = script.next_step() {
            return self.step(&steps, place, now);
        }
        if self.shim.in_session {
            // A script that was left in the middle, or forgot it: the next one finds a host without a session.
            return self.stop_session();
        }
        let name = std::mem::take(&mut script.name);
        self.script = None;
        self.played += 1;
        self.note(0, now, Kind::Ended { script: Cow::Owned(name), cut: None });
    }

    fn begin(&mut self, now: Micros) {
        let Some(def) = self.plan.pop_front() else {
            self.end = self.end.or(Some(End::Done));
            return self.finish(None, now);
        };
        let declared = self.shim.declared.clone();
        let setting = Setting { declared: &declared, ..self.setting };
        if setting.unmet(def).is_some() {
            return;
        }
        let script = def.script(&setting);
        self.note(0, now, Kind::Begin { script: Cow::Borrowed(def.name) });
        (self.current, self.known, self.spawning) = (None, self.links.len(), 0);
        self.shim.begin();
        self.held_back.clear();
        let mut playing = Playing::new(def.name, script);
        playing.captures = script::given(&self.setting);
        self.script = Some(playing);
    }

    fn step(&mut self, steps: &[Step], place: usize, now: Micros) {
        match &steps[place] {
            Step::Greet => self.greet(now),
            Step::Ask { label, what } => self.ask(label, what, now),
            Step::Outcome { of, within, is } => self.await_outcome(of, *within, is.as_ref(), now),
            Step::Guest { name, time } => self.await_launch(name, *time, now),
            Step::Send { label, frame } => self.send(label.as_deref(), None, false, frame, now),
            Step::Raw { label, departs, frame } => {
                self.send(label.as_deref(), Some(departs), false, frame, now);
            }
            Step::Tail { label, departs, frame } => {
                self.send(label.as_deref(), Some(departs), true, frame, now);
            }
            Step::Await { frame, within } => self.await_frame(frame, *within, now),
            Step::Fence { .. } | Step::Settle => {
                self.wait(Wait::Fence, None, self.budget.answer_most, What::Fences, now);
                self.fence(now);
            }
            Step::Quiet => {
                let until = now + self.budget.quiet_total;
                self.wait(Wait::Quiet, None, self.budget.silence_least, What::Silence { until }, now);
            }
            Step::Do(order) => self.order(order.clone(), now),
            Step::Linger => self.with_link(|link| link.lingers = true),
            Step::Gone => self.await_gone(now),
            Step::Alive => self.await_alive(now),
            Step::Hold => self.reading(false),
            Step::Release => self.reading(true),
            Step::Close => self.close(now),
            Step::Kill => self.order(Order::Abort, now),
            Step::Exit => {
                if self.shim.exited.is_none() {
                    self.wait(Wait::Exit, None, self.budget.exit_after_close, What::Exit, now);
                }
            }
            Step::Cut { at } => {
                if let Some(script) = &mut self.script {
                    script.cut_at.clone_from(at);
                }
            }
            Step::Repeat { times, steps } => {
                let (steps, times) = (Rc::from(steps.as_slice()), *times);
                if let Some(script) = &mut self.script {
                    script.enter(steps, times, None);
                }
            }
            Step::Each { of, name, steps } => {
                let (steps, name) = (Rc::from(steps.as_slice()), name.clone());
                if let Some(script) = &mut self.script {
                    script.enter_each(of, steps, name);
                }
            }
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
        let Some(id) = self.current else { return self.aimless(now) };
        if let Some(state) = self.link(id).and_then(Link::cannot_write) {
            let what = label.unwrap_or("the next frame of the guest").to_owned();
            return self.lack(format!("{state} before {what:?} could be sent"), now);
        }
        let Some(script) = &mut self.script else { return };
        let (bytes, payload) = match frame {
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
                if let (Some(label), Some(id)) = (label, payload.id()) {
                    script.ids.insert(label.to_owned(), id);
                }
                (payload.bytes().into_owned(), Some(payload.clone()))
            }
        };
        let cut_at = std::mem::take(&mut script.cut_at);
        self.offer(id, bytes, payload, (label, departs, open), &cut_at, now);
    }

    /// Records a frame of a guest of ours and hands it on.
    fn offer(
        &mut self,
        link: LinkId,
        mut bytes: Vec<u8>,
        payload: Option<Payload<'_>>,
        (label, departs, open): (Option<&str>, Option<&str>, bool),
        cut_at: &[usize],
        now: Micros,
    ) {
        let payload = payload.unwrap_or_else(|| Payload::of(&bytes));
        let frame = Frame {
            from: Side::Guest,
            label: label.map(Cow::Borrowed),
            departs: departs.map(Cow::Borrowed),
            open,
            payload,
        };
        self.record.event(&Event { t: now, link, kind: Kind::Frame(frame) });
        if !open {
            bytes.push(b'\n');
        }
        let parts = super::parts(&Bytes::from(bytes), cut_at);
        let after_drain = parts.len() > 1;
        self.actions.extend(parts.into_iter().map(|bytes| Action::Write { link, bytes, after_drain }));
    }

    fn await_frame(&mut self, pattern: &Pattern, within: Within, now: Micros) {
        let Some(link) = self.current else { return self.aimless(now) };
        if self.claim(link, pattern) {
            return;
        }
        let speaks = self.link(link).is_some_and(|link| link.cannot_speak().is_none());
        let link = if speaks { link } else { self.successor(link).unwrap_or(link) };
        self.current = Some(link);
        if self.claim(link, pattern) {
            return;
        }
        let label = match pattern {
            Pattern::Members(members) => members.iter().find_map(|(_, member)| match member {
                Pattern::Id(label) => Some(label.clone()),
                _ => None,
            }),
            _ => None,
        };
        let optional = within == Within::Silence;
        let what = What::Frame { link, pattern: pattern.clone(), optional };
        let (wait, within) = match within {
            Within::Start => (Wait::Start, self.budget.start),
            Within::Answer => (Wait::Answer, self.budget.answer_most),
            Within::Silence => (Wait::Quiet, self.budget.silence_most),
            Within::Millis(millis) => (Wait::Answer, millis.saturating_mul(1_000)),
        };
        if let Some(state) = self.link(link).and_then(Link::cannot_speak)
            && (optional || !self.shim.is_busy())
        {
            if !optional {
                self.lack(format!("{state} before what was awaited came"), now);
            }
            return;
        }
        self.wait(wait, label, within, what, now);
        self.give_up_waiting(now);
    }

    /// Takes a frame that came before it was awaited.
    fn claim(&mut self, link: LinkId, pattern: &Pattern) -> bool {
        self.script.as_mut().is_some_and(|script| script.claim(link, pattern))
    }

    fn aimless(&mut self, now: Micros) {
        self.cut("the script does not say which guest of ours it means".to_owned(), now);
    }

    fn wait(&mut self, wait: Wait, label: Option<String>, within: Micros, what: What, now: Micros) {
        let deadline = match what {
            What::Silence { .. } | What::Exit | What::End { .. } => Some(now.saturating_add(within)),
            _ => self.budget.deadline(now, within),
        };
        self.waiting = Some(Waiting { wait, label, since: now, within, deadline, what, starved: 0 });
    }

    /// The wait is over, and what it was for came.
    fn came(&mut self, now: Micros) {
        let Some(waiting) = self.waiting.take() else { return };
        // Fences that are still out were for this wait, and must not end the next one.
        self.fencing = None;
        let took = now.saturating_sub(waiting.since);
        let label = waiting.label.map(Cow::Owned);
        self.note(0, now, Kind::Waited { wait: waiting.wait, label, took, within: waiting.within });
    }
}

impl Machine for Cast<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        if self.done {
            return;
        }
        let before = self.record.text.len();
        match (link, input) {
            (_, Input::Tick) => self.tick(now),
            (_, Input::Interrupted) => self.interrupted(now),
            (0, input) => self.of_shim(input, now),
            (link, input) => {
                self.shim.stir();
                match input {
                    Input::Launched(launched) => self.launched(link, launched, now),
                    input => self.of_guest(link, &input, now),
                }
            }
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

/// A machine that plays and records: what a recorder needs to know of it.
pub trait Player: Machine {
    /// The recording so far, in which what was drained is missing.
    fn record(&mut self) -> &mut Vec<u8>;
    /// How much was recorded, in bytes, whatever became of it.
    fn recorded(&self) -> u64;
    /// How the recording ended; `None` while it has not.
    fn end(&self) -> Option<End>;
    /// The script that could not be played to its end.
    fn cut_in(&self) -> Option<&str>;
    /// Whether a script has been played to its end, the opening as a rule.
    fn is_open(&self) -> bool;
    /// Whether the target has written anything.
    fn has_spoken(&self) -> bool;
    /// How long the first answer took, in microseconds.
    fn start(&self) -> Option<Micros>;
    /// Whether what is waited for now is believed not to come.
    fn is_in_doubt(&self) -> bool;
    /// The first answer that never came.
    fn missed(&self) -> Option<&super::Missed>;
    /// To which requests it answered.
    fn heard(&self) -> BTreeSet<String>;
}

impl Player for Play<'_> {
    fn record(&mut self) -> &mut Vec<u8> {
        Play::record(self)
    }
    fn recorded(&self) -> u64 {
        Play::recorded(self)
    }
    fn end(&self) -> Option<End> {
        Play::end(self)
    }
    fn cut_in(&self) -> Option<&str> {
        Play::cut_in(self)
    }
    fn is_open(&self) -> bool {
        Play::is_open(self)
    }
    fn has_spoken(&self) -> bool {
        Play::has_spoken(self)
    }
    fn start(&self) -> Option<Micros> {
        Play::start(self)
    }
    fn is_in_doubt(&self) -> bool {
        Play::is_in_doubt(self)
    }
    fn missed(&self) -> Option<&super::Missed> {
        Play::missed(self)
    }
    fn heard(&self) -> BTreeSet<String> {
        Play::heard(self).clone()
    }
}

impl Player for Cast<'_> {
    fn record(&mut self) -> &mut Vec<u8> {
        &mut self.record.text
    }
    fn recorded(&self) -> u64 {
        self.recorded
    }
    fn end(&self) -> Option<End> {
        self.end.filter(|_| self.done)
    }
    fn cut_in(&self) -> Option<&str> {
        self.cut_in.as_deref()
    }
    fn is_open(&self) -> bool {
        self.played > 0
    }
    fn has_spoken(&self) -> bool {
        self.shim.has_spoken
    }
    fn start(&self) -> Option<Micros> {
        self.start
    }
    fn is_in_doubt(&self) -> bool {
        false
    }
    // A host is not tried again as a guest is: whatever it leaves out shows in an outcome.
    fn missed(&self) -> Option<&super::Missed> {
        None
    }
    fn heard(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
}
