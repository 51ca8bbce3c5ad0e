//! `check host --compare`: where a host does something else than the reference host, script by script and guest by guest.
//!
//! The reference host plays each script in memory. On each link the frames of the two are aligned: first those that are
//! the same, then, between these, those of the same method and interception point, which are taken apart. What the
//! specification leaves open may differ, so a difference is no fault, and no verdict depends on it.
//!
//! When a host hears of what, and how much of it at once, is nobody's choice. So the reference host plays each script
//! three times: hearing all as it comes, its guests late, and its driver late. What depends on that is not compared there.

use std::collections::{BTreeMap, BTreeSet};

use sidecert_mocks::MockHost;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::course::{Course, Courses, Deed, Strand};
use sidecert_proto::json::{Kind as Form, Node, Tape};
use sidecert_proto::log::Guest;
use sidecert_proto::machine::{Action, Exited, Input, Launch, LinkId, Machine, Micros};
use sidecert_proto::run::Run;
use sidecert_proto::script::{ScriptDef, Setting};
use sidecert_proto::sim;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{self, Record};
use sidecert_reports::{Compared, Difference, LeftOut, Location, Report, Seen};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::exit::Fault;
use crate::output::cut_around;
use crate::recording::Source;

/// How many differences a report lists, and in how many places each; those beyond are counted.
const DIFFERENCES_MAX: usize = 500;
const SEEN_MAX: usize = 500;
/// How much of a value is shown, in bytes: from a little before where it differs from the other.
const VALUE_BYTES_MAX: usize = 300;

/// What a host was played, and by what.
pub(crate) struct Facts<'a> {
    pub(crate) source: &'a Source,
    pub(crate) run: &'a Run,
    pub(crate) suite: &'static Suite,
    pub(crate) setting: Setting<'a>,
    pub(crate) scripts: &'a [&'static ScriptDef],
}

/// Adds to a report where the host parts from the reference host, without `secrets`.
pub(crate) fn tell(report: &mut Report, facts: &Facts<'_>, secrets: &[String]) -> Result<(), Fault> {
    report.compared = Some(with_reference(facts)?);
    report.mask(secrets);
    Ok(())
}

/// Plays to the reference host what the host under test was played, and says where the two part.
fn with_reference(facts: &Facts<'_>) -> Result<Compared, Fault> {
    let Facts { source, run, suite, setting, scripts } = facts;
    let mut found = Found::default();
    let (mut compared, mut alike, mut left_out) = (0, 0, Vec::new());
    for recording in source.recordings(run) {
        let mut courses = Courses::new(setting.contract, (suite.contract)());
        recording.events(suite, setting.contract, Guest::Late, &mut |event| courses.event(event))?;
        recording.name.clone_into(&mut found.process);
        for course in courses.finish() {
            let Some(script) = scripts.iter().find(|script| script.name == course.script) else { continue };
            let reference = rehearsed(suite, *setting, script);
            let why = match (&course.cut, &reference) {
                (Some(cut), _) => format!("the host was not played to its end: {cut}"),
                (_, None) => "the reference host did not come to its end".to_owned(),
                (None, Some((reference, late))) => {
                    let mut wavering = Found::default();
                    for late in late {
                        wavering.course(late, reference);
                    }
                    found.wavering =
                        wavering.by_place.into_keys().map(|place| (place.what, place.point)).collect();
                    let before = found.count;
                    found.course(&course, reference);
                    compared += 1;
                    alike += u32::from(found.count == before);
                    continue;
                }
            };
            left_out.push(LeftOut { script: course.script, why });
        }
    }
    let (differences, more) = found.finish();
    let with = format!("the reference host of sidecert {}", env!("CARGO_PKG_VERSION"));
    Ok(Compared { with, scripts: compared, alike, left_out, differences, more })
}

/// How the reference host goes through a script if it comes to its end: hearing all as it comes, and some of it late.
fn rehearsed(
    suite: &'static Suite,
    setting: Setting<'_>,
    script: &'static ScriptDef,
) -> Option<(Course, Vec<Course>)> {
    let contract: &Contract = setting.contract;
    let host = || MockHost::new(contract, Manners::default(), None);
    let at_once = course(suite, setting, script, &mut || Box::new(host()))?;
    let late = [false, true].into_iter().filter_map(|driver| {
        let mut late = || -> Box<dyn Machine + '_> {
            Box::new(Late { host: host(), driver, unheard: Vec::new(), due: None })
        };
        course(suite, setting, script, &mut late)
    });
    Some((at_once, late.collect()))
}

/// How one host goes through a script in memory.
fn course<'c>(
    suite: &'static Suite,
    setting: Setting<'_>,
    script: &'static ScriptDef,
    host: &mut dyn FnMut() -> Box<dyn Machine + 'c>,
) -> Option<Course> {
    let probe = Launch { command: "/sidecert".to_owned(), args: vec!["probe".to_owned()], env: Vec::new() };
    let setting = Setting { probe: &probe, folder: "/host", ..setting };
    let recordings = sim::rehearse(suite, Side::Host, setting, &[script], true, host).ok()?;
    let mut courses = Courses::new(setting.contract, (suite.contract)());
    for line in recordings.iter().flat_map(|recording| recording.split(|byte| *byte == b'\n')) {
        if let Ok(Record::Event(event)) = transcript::read(line) {
            courses.event(&event);
        }
    }
    courses.finish().into_iter().find(|course| course.script == script.name && course.cut.is_none())
}

/// How long a host that hears late waits for more, in microseconds: longer than a byte takes in memory.
const LATE_BY: Micros = 1_000;

/// A host that hears of its guests, or of its driver, only when nothing more comes, and then of all at once.
struct Late<'c> {
    host: MockHost<'c>,
    /// Whether it is the driver that it hears late.
    driver: bool,
    unheard: Vec<(LinkId, Unheard)>,
    due: Option<Micros>,
}

enum Unheard {
    Bytes(Vec<u8>),
    Stderr(Vec<u8>),
    Eof,
    Exited(Exited),
}

impl Late<'_> {
    fn hear(&mut self, now: Micros) {
        self.due = None;
        for (link, unheard) in std::mem::take(&mut self.unheard) {
            let input = match &unheard {
                Unheard::Bytes(bytes) => Input::Bytes(bytes),
                Unheard::Stderr(bytes) => Input::Stderr(bytes),
                Unheard::Eof => Input::Eof,
                Unheard::Exited(exited) => Input::Exited(*exited),
            };
            self.host.handle(link, input, now);
        }
    }
}

impl Machine for Late<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        let is_late = (link == 0) == self.driver;
        let unheard = match input {
            Input::Tick => {
                if self.due.is_some_and(|due| due <= now) {
                    self.hear(now);
                }
                if self.host.deadline().is_some_and(|due| due <= now) {
                    self.host.handle(link, Input::Tick, now);
                }
                return;
            }
            Input::Bytes(bytes) if is_late => Unheard::Bytes(bytes.to_vec()),
            Input::Stderr(bytes) if is_late => Unheard::Stderr(bytes.to_vec()),
            Input::Eof if is_late => Unheard::Eof,
            Input::Exited(exited) if is_late => Unheard::Exited(exited),
            input => return self.host.handle(link, input, now),
        };
        self.due = Some(now + LATE_BY);
        match (self.unheard.last_mut(), unheard) {
            (Some((last, Unheard::Bytes(before))), Unheard::Bytes(bytes)) if *last == link => {
                before.extend(bytes);
            }
            (_, unheard) => self.unheard.push((link, unheard)),
        }
    }

    fn poll(&mut self, now: Micros) -> Option<Action> {
        self.host.poll(now)
    }

    fn deadline(&self) -> Option<Micros> {
        self.host.deadline().into_iter().chain(self.due).min()
    }
}

/// A place in which two hosts may differ: differences in one such place are told once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    what: String,
    point: Option<String>,
    /// The pointer into the frame, any index of a list as `*`.
    pattern: String,
    by_target: bool,
    by_reference: bool,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    process: String,
    /// What depends on when a host hears of things, in the script that is compared.
    wavering: BTreeSet<(String, Option<String>)>,
    by_place: BTreeMap<Place, (usize, Difference)>,
    /// How many differences there are in all.
    count: u64,
}

/// Where a difference is.
struct At<'a> {
    script: &'a str,
    guest: Option<&'a (String, usize)>,
}

impl At<'_> {
    fn guest(&self) -> Option<String> {
        let (name, launch) = self.guest?;
        Some(if *launch == 1 { name.clone() } else { format!("{name}, launch {launch}") })
    }
}

impl Found {
    fn course(&mut self, target: &Course, reference: &Course) {
        for strand in &target.strands {
            let at = At { script: &target.script, guest: strand.guest.as_ref() };
            match reference.strands.iter().find(|other| other.guest == strand.guest) {
                Some(other) => self.strand(&at, strand, other),
                None => self.launch(&at, strand, true),
            }
        }
        for strand in &reference.strands {
            if !target.strands.iter().any(|other| other.guest == strand.guest) {
                let at = At { script: &target.script, guest: strand.guest.as_ref() };
                self.launch(&at, strand, false);
            }
        }
    }

    /// A guest that only one of the two has launched, or has launched this often.
    fn launch(&mut self, at: &At<'_>, strand: &Strand, by_target: bool) {
        let frames = Some(format!("with {} frames", strand.deeds.len() + strand.beyond));
        let deed = Deed { what: "launch of a guest".to_owned(), point: None, json: String::new(), event: 0 };
        let (target, reference) = if by_target { (frames, None) } else { (None, frames) };
        self.differs(at, &deed, "", target, reference);
    }

    fn strand(&mut self, at: &At<'_>, target: &Strand, reference: &Strand) {
        let whole = |strand: &Strand| {
            let keys =
                strand.deeds.iter().map(|deed| (deed.what.clone(), deed.point.clone(), deed.json.clone()));
            keys.collect::<Vec<_>>()
        };
        for op in capture_diff_slices(Algorithm::Myers, &whole(target), &whole(reference)) {
            if !matches!(op, DiffOp::Equal { .. }) {
                self.between(at, &target.deeds[op.old_range()], &reference.deeds[op.new_range()]);
            }
        }
        if target.beyond != reference.beyond {
            let deed = Deed { what: "more frames".to_owned(), point: None, json: String::new(), event: 0 };
            let count = |strand: &Strand| Some(strand.beyond.to_string());
            self.differs(at, &deed, "", count(target), count(reference));
        }
    }

    /// Deeds that are not the same, between others that are.
    fn between(&mut self, at: &At<'_>, target: &[Deed], reference: &[Deed]) {
        let names = |deeds: &[Deed]| {
            deeds.iter().map(|deed| (deed.what.clone(), deed.point.clone())).collect::<Vec<_>>()
        };
        for op in capture_diff_slices(Algorithm::Myers, &names(target), &names(reference)) {
            let (ours, theirs) = (&reference[op.new_range()], &target[op.old_range()]);
            if matches!(op, DiffOp::Equal { .. }) {
                theirs.iter().zip(ours).for_each(|(theirs, ours)| self.taken_apart(at, theirs, ours));
                continue;
            }
            for deed in theirs {
                self.differs(at, deed, "", Some(cut_around(&deed.json, VALUE_BYTES_MAX, 0)), None);
            }
            for deed in ours {
                self.differs(at, deed, "", None, Some(cut_around(&deed.json, VALUE_BYTES_MAX, 0)));
            }
        }
    }

    /// Two deeds of the same name.
    fn taken_apart(&mut self, at: &At<'_>, target: &Deed, reference: &Deed) {
        let (Ok(theirs), Ok(ours)) =
            (Tape::scan(target.json.as_bytes()), Tape::scan(reference.json.as_bytes()))
        else {
            return;
        };
        let mut parts = Vec::new();
        compare(Some(theirs.root()), Some(ours.root()), &mut String::new(), &mut parts);
        for (place, theirs, ours) in parts {
            let (one, other) = (theirs.map(Node::canonical), ours.map(Node::canonical));
            let from = match (&one, &other) {
                (Some(one), Some(other)) => {
                    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
                }
                _ => 0,
            };
            let shown = |text: Option<String>| text.map(|text| cut_around(&text, VALUE_BYTES_MAX, from));
            self.differs(at, target, &place, shown(one), shown(other));
        }
    }

    fn differs(
        &mut self,
        at: &At<'_>,
        deed: &Deed,
        pointer: &str,
        target: Option<String>,
        reference: Option<String>,
    ) {
        if self.wavering.contains(&(deed.what.clone(), deed.point.clone())) {
            return;
        }
        self.count += 1;
        let index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let pattern: Vec<&str> =
            pointer.split('/').map(|part| if index(part) { "*" } else { part }).collect();
        let place = Place {
            what: deed.what.clone(),
            point: deed.point.clone(),
            pattern: pattern.join("/"),
            by_target: target.is_some(),
            by_reference: reference.is_some(),
        };
        // What only the reference host did is in no recording.
        let event = (target.is_some() && at.guest.is_some() && deed.event > 0).then_some(deed.event);
        let seen = Seen {
            script: at.script.to_owned(),
            guest: at.guest(),
            at: event.map(|event| Location { process: self.process.clone(), event }),
        };
        let order = self.by_place.len();
        let (_, known) = self.by_place.entry(place).or_insert_with(|| {
            let difference = Difference {
                what: deed.what.clone(),
                point: deed.point.clone(),
                place: pointer.to_owned(),
                target,
                reference,
                times: 0,
                seen: Vec::new(),
            };
            (order, difference)
        });
        known.times += 1;
        let again = known.seen.iter().any(|it| it.script == seen.script && it.guest == seen.guest);
        if !again && known.seen.len() < SEEN_MAX {
            known.seen.push(seen);
        }
    }

    /// What differs in most scripts comes first, and how many differences are not listed.
    fn finish(self) -> (Vec<Difference>, u32) {
        let mut found: Vec<(usize, Difference)> = self.by_place.into_values().collect();
        found.sort_by_key(|(order, difference)| (std::cmp::Reverse(difference.seen.len()), *order));
        let more = found.len().saturating_sub(DIFFERENCES_MAX);
        let listed = found.into_iter().take(DIFFERENCES_MAX).map(|(_, difference)| difference);
        (listed.collect(), u32::try_from(more).unwrap_or(u32::MAX))
    }
}

/// A place in two documents, and what each has there.
type Part<'n> = (String, Option<Node<'n>>, Option<Node<'n>>);

/// The places in which two documents differ, as deep as they can be told apart.
fn compare<'n>(
    one: Option<Node<'n>>,
    other: Option<Node<'n>>,
    place: &mut String,
    parts: &mut Vec<Part<'n>>,
) {
    let (Some(left), Some(right)) = (one, other) else { return parts.push((place.clone(), one, other)) };
    if left.equals(right) {
        return;
    }
    let length = place.len();
    match (left.kind(), right.kind()) {
        (Form::Object, Form::Object) => {
            for (name, value) in left.members() {
                place.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
                compare(Some(value), right.get(&name), place, parts);
                place.truncate(length);
            }
            for (name, value) in right.members().filter(|(name, _)| left.get(name).is_none()) {
                place.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
                compare(None, Some(value), place, parts);
                place.truncate(length);
            }
        }
        (Form::Array, Form::Array) if left.elements().count() == right.elements().count() => {
            for (at, (left, right)) in left.elements().zip(right.elements()).enumerate() {
                place.push_str(&format!("/{at}"));
                compare(Some(left), Some(right), place, parts);
                place.truncate(length);
            }
        }
        _ => parts.push((place.clone(), one, other)),
    }
}
