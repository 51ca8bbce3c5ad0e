//! A recording in, verdicts out: streaming, in memory that does not grow with the recording.
//!
//! Observers run once over each process and note every rule that comes up; judges read the part of the script that
//! their row names, when it ends. What the target did is data: the only faults here are the recording's own.

mod deciding;
mod judged;
mod settled;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{Contract, Method, Side};
use crate::exchange::{self, Pairs, Pending};
use crate::json::{self, Node, Slots, Tape};
use crate::machine::{LinkId, Micros};
use crate::play::FENCE;
use crate::requirement::{Basis, Check, Level, Requirement, Rule};
use crate::rpc::{self, Envelope, Id, Malformed};
use crate::script::Setting;
use crate::suite::Suite;
use crate::transcript::{self, End, Event, Kind, LINE_BYTES_MAX, Record, Told};
use crate::verdict::{self, At, Profile, Sight, Verdict, Why};
use crate::wire::{Deframer, Line};

pub use judged::{Judged, ProcessEnd, RecordingFault, WaitTaken};
use settled::Settled;

/// The longest part of a script that is shown to judges, in bytes.
const SLICE_BYTES_MAX: usize = 64 << 20;
/// How many wrong frames of our own are told.
pub const OURS_MOST: usize = 32;
/// How many frames of a host that came too late are told.
const LATE_MOST: usize = 32;
/// How many waits are listed.
const WAITS_MOST: usize = 10_000;
/// How much of the end of standard error is kept, in bytes.
const STDERR_TAIL_BYTES: usize = 2_048;

/// Watches one process, and notes each rule when it comes up.
pub trait Observer<'c> {
    /// Takes in what happened.
    fn observe(&mut self, moment: &Moment<'_, 'c>, notes: &mut Notes<'_>);
}

/// Something that happened, as observers see it.
#[derive(Debug)]
pub struct Moment<'a, 'c> {
    /// Its place in the transcript.
    pub at: u64,
    /// When.
    pub t: Micros,
    /// What.
    pub what: Happened<'a, 'c>,
}

/// What happened.
#[derive(Debug)]
pub enum Happened<'a, 'c> {
    /// A line that is JSON.
    Frame(&'a Framed<'a, 'c>),
    /// A line that is no JSON, or has white space around it.
    Line {
        /// Whose.
        from: Side,
        /// Why it is no JSON; `None` if only white space is too much.
        fault: Option<json::Fault>,
        /// The id that a lenient reader finds in it, where it is wrong on purpose.
        id: Option<i64>,
    },
    /// Anything else.
    Event(&'a Kind<'a>),
}

/// A frame, with everything looked up.
#[derive(Debug)]
pub struct Framed<'a, 'c> {
    /// Who wrote it.
    pub from: Side,
    /// What our script calls it.
    pub label: Option<&'a str>,
    /// The whole JSON text.
    pub root: Node<'a>,
    /// The envelope, or why it is none.
    pub envelope: Result<Envelope<'a>, Malformed>,
    /// The method of a request or notification, if the contract knows it.
    pub method: Option<&'c Method>,
    /// The request that a response answers.
    pub answers: Option<Pending<'c>>,
    /// Whether a request reuses the id of one that still waits.
    pub id_in_use: bool,
    /// Whether it is wrong on purpose; only ever a frame of ours.
    pub departs: bool,
}

/// Takes down what observers see of the rules.
#[derive(Debug)]
pub struct Notes<'n> {
    rules: &'n [&'static Rule],
    marks: &'n mut [Mark],
    suspended: &'n BTreeSet<&'static str>,
    fresh: &'n mut Vec<Fresh>,
    at: u64,
}

/// A rule that was just broken: which one, where, and by what.
#[derive(Debug)]
struct Fresh {
    rule: usize,
    at: u64,
    actual: String,
}

impl Notes<'_> {
    /// The rule came up and was kept.
    pub fn kept(&mut self, rule: &'static Rule) {
        if let Some(at) = self.place(rule) {
            self.marks[at].came_up = true;
        }
    }

    /// The rule came up and was broken, by this.
    pub fn broken(&mut self, rule: &'static Rule, actual: impl FnOnce() -> String) {
        self.broken_at(self.at, rule, actual);
    }

    /// The rule was broken at an earlier event, as only now is certain.
    pub fn broken_at(&mut self, at: u64, rule: &'static Rule, actual: impl FnOnce() -> String) {
        if let Some(rule) = self.place(rule) {
            self.marks[rule].came_up = true;
            self.fresh.push(Fresh { rule, at, actual: actual() });
        }
    }

    /// The rule came up, and was kept if `kept`.
    pub fn note(&mut self, rule: &'static Rule, kept: bool, actual: impl FnOnce() -> String) {
        if kept { self.kept(rule) } else { self.broken(rule, actual) }
    }

    fn place(&self, rule: &'static Rule) -> Option<usize> {
        if rule.assumes.iter().any(|assumed| self.suspended.contains(assumed.name)) {
            return None;
        }
        self.rules.iter().position(|known| known.name == rule.name)
    }
}

/// What is known of a rule in the script that is running.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    came_up: bool,
}

/// What is known of a rule over the whole run.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// It came up, and was kept, in a script that ran to its end.
    kept: bool,
    /// Where it was first broken.
    broken: Option<(At, String)>,
}

/// Judges one run.
pub struct Judge<'c> {
    suite: &'static Suite,
    target: Side,
    profile: Profile,
    contract: &'c Contract,
    setting: Setting<'c>,
    selected: &'c BTreeSet<String>,
    /// Who brought about what is recorded.
    origin: Origin,
    /// Whether what the host was asked for took as long as it took, its driver says.
    unhurried: bool,
    declared: Option<BTreeSet<String>>,
    tallies: Vec<Tally>,
    /// Verdicts of rows that a judge decides, so far.
    decided: BTreeMap<&'static str, Verdict>,
    /// Why scripts could not be played to their end.
    cut: BTreeMap<String, Option<String>>,
    /// Why the driver cannot bring about what scripts need.
    beyond: BTreeMap<String, String>,
    judged: Judged,
    current: Option<Process<'c>>,
}

/// Who brought about what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A check, with its scripts.
    Check,
    /// A check that asked the host for nothing.
    Unasked,
    /// No check.
    Foreign,
}

/// The process that is being read.
struct Process<'c> {
    deframer: Deframer,
    spare: Slots,
    lines: u64,
    events: u64,
    /// When the last event was.
    t: Micros,
    /// The connections, by link: one where a guest is the target, and as many as it launches where a host is.
    connections: BTreeMap<LinkId, Connection<'c>>,
    settled: Settled,
    marks: Vec<Mark>,
    fresh: Vec<Fresh>,
    script: Option<Slice>,
    ended: ProcessEnd,
    over: bool,
}

/// One connection of a process.
struct Connection<'c> {
    observer: Box<dyn Observer<'c> + 'c>,
    pairs: Pairs<'c>,
    suspended: BTreeSet<&'static str>,
}

/// The part of the script that is running.
struct Slice {
    name: String,
    /// Why the driver cannot bring about what it needs.
    beyond: Option<String>,
    first: u64,
    /// Its lines; `None` when nobody asks for them, or when they were too many.
    lines: Option<Vec<u8>>,
}

impl<'c> Judge<'c> {
    /// A judge of a run of `suite` against a target on side `target`. Of the rows only `selected` are judged.
    pub fn new(
        suite: &'static Suite,
        target: Side,
        profile: Profile,
        setting: Setting<'c>,
        selected: &'c BTreeSet<String>,
    ) -> Self {
        let judged = Judged {
            verdicts: Vec::new(),
            declared: BTreeSet::new(),
            ours: Vec::new(),
            late: Vec::new(),
            waits: Vec::new(),
            processes: Vec::new(),
            cause: None,
            scripts: BTreeMap::new(),
            faults: Vec::new(),
        };
        Self {
            suite,
            target,
            profile,
            contract: setting.contract,
            setting,
            selected,
            origin: Origin::Check,
            unhurried: false,
            declared: None,
            tallies: vec![Tally::default(); suite.rules.len()],
            decided: BTreeMap::new(),
            cut: BTreeMap::new(),
            beyond: BTreeMap::new(),
            judged,
            current: None,
        }
    }

    /// The same for recordings that no check made: what only its scripts bring up was not provoked there.
    #[must_use]
    pub fn foreign(self) -> Self {
        Self { origin: Origin::Foreign, ..self }
    }

    /// The same for a check that asked a host for nothing, and watched what it does.
    #[must_use]
    pub fn unasked(self) -> Self {
        Self { origin: Origin::Unasked, ..self }
    }

    /// Begins the recording of the next process, called `name`.
    pub fn begin(&mut self, name: &str) {
        self.end();
        self.current = Some(Process {
            deframer: Deframer::new(LINE_BYTES_MAX),
            spare: Slots::default(),
            lines: 0,
            events: 0,
            t: 0,
            connections: BTreeMap::new(),
            settled: Settled::default(),
            marks: vec![Mark::default(); self.suite.rules.len()],
            fresh: Vec::new(),
            script: None,
            ended: ProcessEnd { name: name.to_owned(), ..ProcessEnd::default() },
            over: false,
        });
    }

    /// Reads on. Any cut of the recording into chunks will do.
    pub fn read(&mut self, chunk: &[u8]) {
        let Some(mut process) = self.current.take() else { return };
        let mut deframer = std::mem::replace(&mut process.deframer, Deframer::new(0));
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            process.lines += 1;
            if process.over {
                continue;
            }
            let read = match line {
                Line::Whole(line) => self.line(&mut process, line),
                Line::Oversize { .. } => Err(format!("longer than {LINE_BYTES_MAX} bytes")),
            };
            if let Err(says) = read {
                self.fault(&mut process, says);
            }
        }
        process.deframer = deframer;
        self.current = Some(process);
    }

    /// Ends the recording of the current process.
    pub fn end(&mut self) {
        let Some(mut process) = self.current.take() else { return };
        if process.ended.end.is_none() {
            if !process.over {
                process.lines += 1;
                self.fault(&mut process, "the recording is cut off: it has no footer".to_owned());
            }
            if let Some(slice) = process.script.take() {
                let fault =
                    self.judged.faults.last().filter(|fault| fault.process == self.judged.processes.len());
                let fault = fault.map(|fault| format!(" (line {}: {})", fault.line, fault.says));
                let says = format!("its recording ends in the middle{}", fault.unwrap_or_default());
                self.script_ended(&mut process, slice, Some(says));
            }
        }
        self.judged.processes.push(process.ended);
    }

    /// What the run says.
    pub fn finish(mut self) -> Judged {
        self.end();
        let rows: Vec<&'static Requirement> = self.suite.rows(self.target).collect();
        self.judged.declared = self.declared.clone().unwrap_or_default();
        self.judged.scripts = self.cut.clone();
        self.judged.verdicts = rows.into_iter().map(|row| (row, self.verdict(row))).collect();
        self.judged
    }

    // ---- reading ----

    fn fault(&mut self, process: &mut Process<'c>, says: String) {
        process.over = true;
        let fault = RecordingFault { process: self.judged.processes.len(), line: process.lines, says };
        self.judged.faults.push(fault);
    }

    fn line(&mut self, process: &mut Process<'c>, line: &[u8]) -> Result<(), String> {
        if process.ended.end.is_some() {
            return Err("something follows the footer".to_owned());
        }
        if let Some(plain) = transcript::read_plain(line) {
            match Tape::scan_in(plain.text, std::mem::take(&mut process.spare)) {
                Ok(tape) if tape.root().raw().len() == plain.text.len() => {
                    process.advance(plain.t)?;
                    process.keep(line);
                    self.frame(process, (0, plain.t), plain.from, None, false, &tape);
                    process.spare = tape.into_spare();
                    process.events += 1;
                    return Ok(());
                }
                Ok(tape) => process.spare = tape.into_spare(),
                Err((_, spare)) => process.spare = spare,
            }
        }
        match transcript::read(line).map_err(|fault| fault.to_string())? {
            Record::Header { .. } if process.lines == 1 => Ok(()),
            Record::Header { .. } => Err("a second header".to_owned()),
            Record::Event(_) | Record::Footer { .. } if process.lines == 1 => {
                Err("it has no header".to_owned())
            }
            Record::Event(event) => {
                process.advance(event.t)?;
                self.event(process, line, &event);
                process.events += 1;
                Ok(())
            }
            Record::Footer { end, events } => self.footer(process, end, events),
        }
    }

    fn footer(&mut self, process: &mut Process<'c>, end: End, events: u64) -> Result<(), String> {
        process.ended.end = Some(end);
        if events != process.events {
            return Err(format!("the footer counts {events} events, and there are {}", process.events));
        }
        if let Some(slice) = process.script.take() {
            self.script_ended(process, slice, Some("its recording ends in the middle".to_owned()));
        }
        // What came up outside of every script, the end of the links above all, counts if the process ended in order.
        self.settle(process, end == End::Done);
        Ok(())
    }

    fn event(&mut self, process: &mut Process<'c>, line: &[u8], event: &Event<'_>) {
        let at = process.events;
        match &event.kind {
            Kind::Begin { script } => {
                if let Some(slice) = process.script.take() {
                    let cut = format!("{script} began before it had ended");
                    self.script_ended(process, slice, Some(cut));
                }
                self.settle(process, true);
                let wanted = self.wants_lines(script);
                let lines = wanted.then(Vec::new);
                process.script = Some(Slice { name: script.to_string(), beyond: None, first: at, lines });
                process.ended.scripts.push(script.to_string());
                process.keep(line);
                self.observe_all(process, event);
            }
            Kind::Ended { cut, .. } => {
                process.keep(line);
                if let Some(slice) = process.script.take() {
                    self.script_ended(process, slice, cut.as_deref().map(str::to_owned));
                }
            }
            Kind::Frame(frame) => {
                process.keep(line);
                let bytes = frame.payload.bytes();
                match Tape::scan_in(&bytes, std::mem::take(&mut process.spare)) {
                    Ok(tape) => {
                        let (label, departs) = (frame.label.as_deref(), frame.departs.is_some());
                        let padded = tape.root().raw().len() != bytes.len();
                        self.frame(process, (event.link, event.t), frame.from, label, departs, &tape);
                        if padded {
                            self.observe(
                                process,
                                (event.link, event.t),
                                Happened::Line { from: frame.from, fault: None, id: None },
                                departs,
                            );
                        }
                        process.spare = tape.into_spare();
                    }
                    Err((fault, spare)) => {
                        process.spare = spare;
                        let (from, departs) = (frame.from, frame.departs.is_some());
                        let id = departs.then(|| id_within(&bytes)).flatten();
                        self.depart(process, event.link, departs);
                        let line = Happened::Line { from, fault: Some(fault), id };
                        self.observe(process, (event.link, event.t), line, departs);
                    }
                }
            }
            kind => {
                process.keep(line);
                process.settled.event(kind);
                self.told(process, kind);
                self.observe_all(process, event);
            }
        }
    }

    fn told(&mut self, process: &mut Process<'c>, kind: &Kind<'_>) {
        let script = process.script.as_ref().map(|slice| slice.name.clone()).unwrap_or_default();
        let number = self.judged.processes.len();
        match kind {
            Kind::Waited { wait, label, took, within } if self.judged.waits.len() < WAITS_MOST => {
                let label = label.as_deref().map(str::to_owned);
                let (wait, took, within) = (*wait, *took, *within);
                self.judged.waits.push(WaitTaken { process: number, script, wait, label, took, within });
            }
            Kind::TimedOut { wait, label, within } => {
                let label = label.as_deref().map(str::to_owned);
                let wait =
                    WaitTaken { process: number, script, wait: *wait, label, took: *within, within: *within };
                self.judged.waits.push(wait);
            }
            Kind::Exited(exited) => process.ended.exited = Some(*exited),
            Kind::Told { what: Told::Shim, json, .. } if self.declared.is_none() => {
                self.declared = Some(shim_declares(json));
                self.unhurried = Tape::scan(json.as_bytes()).is_ok_and(|tape| {
                    tape.root().get("unhurried").and_then(|it| it.as_bool()).unwrap_or_default()
                });
            }
            Kind::Told { what: Told::Beyond, json, .. } => {
                let why = Tape::scan(json.as_bytes())
                    .ok()
                    .and_then(|tape| Some(tape.root().as_str()?.into_owned()));
                if let Some(slice) = &mut process.script {
                    slice.beyond = why;
                }
            }
            Kind::Left(left) => process.ended.left.push(left.clone()),
            Kind::Stderr { text, .. } => {
                let tail = &mut process.ended.stderr;
                tail.push_str(text);
                let over = tail.len().saturating_sub(STDERR_TAIL_BYTES);
                let from = (over..=tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or_default();
                tail.drain(..from);
            }
            _ => {}
        }
    }

    fn frame(
        &mut self,
        process: &mut Process<'c>,
        (link, t): (LinkId, Micros),
        from: Side,
        label: Option<&str>,
        departs: bool,
        tape: &Tape<'_>,
    ) {
        let root = tape.root();
        let envelope = rpc::classify(root);
        let mut framed =
            Framed { from, label, root, envelope, method: None, answers: None, id_in_use: false, departs };
        let (events, contract) = (process.events, self.contract);
        let connection = self.connection(process, link);
        match &framed.envelope {
            Ok(Envelope::Request { id, method, .. }) => {
                framed.method = contract.method(method);
                let fence = label == Some(FENCE);
                let pending = Pending { at: events, t, method: framed.method, fence };
                if !departs {
                    framed.id_in_use = !connection.pairs.asked(from, id, pending);
                }
            }
            Ok(Envelope::Notification { method, .. }) => framed.method = contract.method(method),
            Ok(Envelope::Response { id, .. }) => framed.answers = connection.pairs.answered(from, id),
            Err(_) => {}
        }
        if process.settled.frame(link, &framed) && self.judged.late.len() < LATE_MOST {
            let at = At { process: self.judged.processes.len(), event: events };
            let method = framed.root.get("method").and_then(|method| method.as_str());
            self.judged.late.push((at, method.unwrap_or_default().into_owned()));
        }
        self.declares(&framed);
        self.depart(process, link, departs);
        self.observe(process, (link, t), Happened::Frame(&framed), departs);
        if from == self.target && framed.answers.as_ref().is_some_and(|asked| asked.fence) {
            self.connection(process, link).suspended.clear();
        }
    }

    fn connection<'p>(&self, process: &'p mut Process<'c>, link: LinkId) -> &'p mut Connection<'c> {
        process.connections.entry(link).or_insert_with(|| Connection {
            observer: (self.suite.observer)(self.contract, self.target),
            pairs: Pairs::default(),
            suspended: BTreeSet::new(),
        })
    }

    /// The first result of the declaring method says what the target declares.
    fn declares(&mut self, framed: &Framed<'_, 'c>) {
        if self.declared.is_none()
            && framed.from == self.target
            && let Ok(Envelope::Response { outcome: rpc::Outcome::Result(result), .. }) = &framed.envelope
            && let Some(method) = framed.answers.as_ref().and_then(|asked| asked.method)
            && method.name == self.suite.declared_by
        {
            self.declared = Some((self.suite.declared)(*result));
        }
    }

    /// A frame of ours that is wrong on purpose breaks whatever the target's rules may assume of us.
    fn depart(&self, process: &mut Process<'c>, link: LinkId, departs: bool) {
        if departs {
            let ours = self.suite.rules.iter().filter(|rule| rule.binds != self.target);
            self.connection(process, link).suspended.extend(ours.map(|rule| rule.name));
        }
    }

    /// Shows an event that is no frame to whom it concerns: its connection, or all, where it is of the whole process.
    fn observe_all(&mut self, process: &mut Process<'c>, event: &Event<'_>) {
        let of_all = self.target == Side::Host && event.link == 0;
        let links: Vec<LinkId> =
            if of_all { process.connections.keys().copied().collect() } else { vec![event.link] };
        for link in links {
            self.observe(process, (link, event.t), Happened::Event(&event.kind), false);
        }
    }

    fn observe(
        &mut self,
        process: &mut Process<'c>,
        (link, t): (LinkId, Micros),
        what: Happened<'_, 'c>,
        departs: bool,
    ) {
        self.connection(process, link);
        let Process { connections, marks, fresh, events, .. } = process;
        let Some(Connection { observer, suspended, .. }) = connections.get_mut(&link) else { return };
        let mut notes = Notes { rules: self.suite.rules, marks, suspended, fresh, at: *events };
        observer.observe(&Moment { at: *events, t, what }, &mut notes);
        if fresh.is_empty() {
            return;
        }
        let process = self.judged.processes.len();
        for Fresh { rule, at, actual } in fresh.drain(..) {
            let at = At { process, event: at };
            if self.suite.rules[rule].binds == self.target {
                self.tallies[rule].broken.get_or_insert((at, actual));
            } else {
                suspended.insert(self.suite.rules[rule].name);
                if !departs && self.judged.ours.len() < OURS_MOST {
                    self.judged.ours.push((at, actual));
                }
            }
        }
    }

    /// What came up since the last time is kept for good if the script ran to its end.
    fn settle(&mut self, process: &mut Process<'c>, ran_to_its_end: bool) {
        for (mark, tally) in process.marks.iter_mut().zip(&mut self.tallies) {
            tally.kept |= std::mem::take(&mut mark.came_up) && ran_to_its_end;
        }
    }

    // ---- deciding ----

    fn wants_lines(&self, script: &str) -> bool {
        self.rows_after(script).next().is_some()
    }

    fn rows_after(&self, script: &str) -> impl Iterator<Item = (&'static Requirement, Judging)> {
        let (target, selected, script) = (self.target, self.selected, script.to_owned());
        self.suite.rows(target).filter(|row| selected.contains(row.id)).filter_map(move |row| {
            match row.check {
                Check::After(def, judge) if def.name == script && self.origin != Origin::Foreign => {
                    Some((row, judge))
                }
                _ => None,
            }
        })
    }

    fn script_ended(&mut self, process: &mut Process<'c>, slice: Slice, cut: Option<String>) {
        self.settle(process, cut.is_none());
        if let Some(cut) = &cut {
            self.judged.cause.get_or_insert_with(|| cut.clone());
        }
        let rows: Vec<_> = self.rows_after(&slice.name).collect();
        if let Some(why) = slice.beyond {
            self.beyond.insert(slice.name, why.clone());
            for (row, _) in rows {
                self.decide(row, Sight::Undecided(Why::OutOfReach(Cow::Owned(why.clone()))));
            }
            return;
        }
        self.cut.insert(slice.name, cut);
        let Some(lines) = slice.lines else {
            for (row, _) in rows {
                let why =
                    Why::CutShort("what was recorded of its script is too long to be judged".to_owned());
                self.decide(row, Sight::Undecided(why));
            }
            return;
        };
        let declared = self.declared.clone().unwrap_or_default();
        let sights: Vec<Sight> =
            exchange::read(&lines, slice.first, self.contract, self.target, &declared, |exchange| {
                rows.iter().map(|(_, judge)| judge(exchange)).collect()
            });
        for ((row, _), sight) in rows.into_iter().zip(sights) {
            self.decide(row, sight);
        }
    }

    fn decide(&mut self, row: &'static Requirement, sight: Sight) {
        let process = self.judged.processes.len();
        let verdict = verdict::verdict(row, self.profile, process, sight);
        let joined = verdict::join(self.decided.remove(row.id), verdict);
        self.decided.insert(row.id, joined);
    }
}

/// What a shim says that it does and has.
fn shim_declares(line: &str) -> BTreeSet<String> {
    let Ok(tape) = Tape::scan(line.as_bytes()) else { return BTreeSet::new() };
    let texts = |name: &str, of: fn(Node<'_>) -> Option<Cow<'_, str>>| -> Vec<String> {
        let list = tape.root().get(name).into_iter().flat_map(Node::elements);
        list.filter_map(|it| of(it).map(Cow::into_owned)).collect()
    };
    let does = texts("does", |it| it.as_str()).into_iter().map(|word| format!("does/{word}"));
    let tools = texts("tools", |it| it.get("name")?.as_str()).into_iter().map(|name| format!("tool/{name}"));
    does.chain(tools).collect()
}

type Judging = fn(&exchange::Exchange<'_>) -> Sight;

impl Process<'_> {
    /// Goes on to the time of the next event.
    fn advance(&mut self, t: Micros) -> Result<(), String> {
        let before = std::mem::replace(&mut self.t, t);
        if t < before {
            return Err(format!(
                "its time is {t}, after an event at {before}: the recording is out of order"
            ));
        }
        Ok(())
    }

    /// Keeps a line for the judges of the script that is running.
    fn keep(&mut self, line: &[u8]) {
        let Some(slice) = &mut self.script else { return };
        let Some(lines) = &mut slice.lines else { return };
        if lines.len() + line.len() > SLICE_BYTES_MAX {
            slice.lines = None;
            return;
        }
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
}

/// What the verdicts of a run come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that is demanded failed, and nothing that the specification demands was cut short.
    Conforms,
    /// So many of what is demanded failed.
    Failed(usize),
    /// Nothing failed, but so many of what the specification demands could not be decided.
    CutShort(usize),
    /// Nothing failed as far as the recording goes.
    Incomplete,
    /// Nothing was decided at all: the driver reaches none of it.
    OutOfReach,
}

impl Judged {
    /// What the verdicts come to. Under `strict`, what should hold is demanded as well.
    pub fn outcome(&self, strict: bool) -> Outcome {
        let demanded = |row: &Requirement| row.level == Level::Must || (strict && row.level == Level::Should);
        let demands = || self.verdicts.iter().filter(|(row, _)| demanded(row));
        let failed = demands().filter(|(_, verdict)| matches!(verdict, Verdict::Fail(_))).count();
        let cut = demands()
            .filter(|(row, _)| row.basis() == Basis::Specified)
            .filter(|(_, verdict)| matches!(verdict, Verdict::Undecided(Why::CutShort(_))))
            .count();
        match (failed, cut) {
            (0, 0) if self.reaches_nothing() => Outcome::OutOfReach,
            (0, 0) if self.faults.is_empty() => Outcome::Conforms,
            (0, 0) => Outcome::Incomplete,
            (0, cut) => Outcome::CutShort(cut),
            (failed, _) => Outcome::Failed(failed),
        }
    }

    /// Whether nothing was decided, and the driver is why.
    fn reaches_nothing(&self) -> bool {
        let of_driver =
            |(_, verdict): &(_, Verdict)| matches!(verdict, Verdict::Undecided(Why::OutOfReach(_)));
        let is_decided = |(_, verdict): &(_, Verdict)| {
            matches!(verdict, Verdict::Pass { .. } | Verdict::Fail(_) | Verdict::Warn(_))
        };
        !self.verdicts.iter().any(is_decided) && self.verdicts.iter().any(of_driver)
    }
}

/// The id that a reader finds in what is no JSON, if it replaces bytes that are no UTF-8, and passes over a byte order
/// mark and control characters.
fn id_within(bytes: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(bytes).replace(|c: char| c.is_control() || c == '\u{feff}', " ");
    match rpc::id_of(Tape::scan(text.as_bytes()).ok()?.root())? {
        Id::Integer(id) => Some(id),
        _ => None,
    }
}
