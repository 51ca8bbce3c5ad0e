//! `explain`: all there is to know of one requirement, with an exchange that keeps it and those that break it.
//!
//! The exchanges are no stored examples: the mocks play them in memory, on a virtual clock, whenever they are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use globset::Glob;
use sidecert_cases::SUITES;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_mocks::webcodex;
use sidecert_mocks::{Flaw, Mock, MockHost, flaws};
use sidecert_proto::contract::{Contract, Fact, Side};
use sidecert_proto::judge::Judge;
use sidecert_proto::machine::{Launch, Machine};
use sidecert_proto::reasonix::guest::Features;
use sidecert_proto::requirement::{Accepts, Basis, Check, Cite, Level, Requirement};
use sidecert_proto::script::{CALLS, Need, Process, SLOW, Script, ScriptDef, Setting, Step};
use sidecert_proto::sim;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{self, Kind, Record};
use sidecert_proto::verdict::{Broken, Profile, Verdict};
use sidecert_proto::webcodex::calls;
use sidecert_reports::terminal::{Detail, Sheet, Style};
use sidecert_reports::{Frame, Origin};
use toml::de::DeTable;

use crate::args::{DRIVERS, Driver, ExplainArgs};
use crate::exit::{self, Fault};
use crate::words::Reading;
use crate::{contract, output, provoke, select, steps};

/// How many events before and after the one that breaks a requirement are shown.
const BEFORE: usize = 4;
const AFTER: usize = 2;
/// How much of a frame is shown, in bytes.
const FRAME_BYTES: usize = 400;
/// How many events of an example are shown at its beginning, and at its end.
const SHOWN: usize = 16;

/// Explains.
pub(crate) fn run(args: &ExplainArgs) -> Result<u8, Fault> {
    let suites: Vec<&'static Suite> = args.suite.map_or_else(|| SUITES.to_vec(), |suite| vec![suite]);
    let row = find(&suites, &args.id)?;
    let holding = suites.iter().find(|suite| row.holds.editions & suite.edition != 0);
    let Some(suite) = holding.or(suites.first()).copied() else { return Ok(exit::OK) };
    let contract = contract::of(suite, args.contract.file.as_deref())?;
    let (color, width) = output::style(args.color, false);
    let stage = Stage::new(suite, row.binds, &contract, args.contract.file.as_deref())?;
    let mut sheet = Sheet::new(Style { color, width, detail: Detail::Normal });
    declaration(&mut sheet, row);
    let excluded = excluded(row, suite, &contract);
    if let Some(why) = &excluded {
        sheet.row("but", why);
    }
    checking(&mut sheet, row, &stage);
    if excluded.is_none() && row.script().is_some() {
        example(&mut sheet, row, &stage)?;
        for flaw in flaws(suite, row.binds).filter(|flaw| flaw.breaks.contains(&row.id)) {
            broken(&mut sheet, row, &stage, flaw)?;
        }
    }
    output::print(&sheet.finish())?;
    Ok(exit::OK)
}

/// The requirement that an id, the end of one, a pattern, or a part that no other id has names.
fn find(suites: &[&'static Suite], word: &str) -> Result<&'static Requirement, Fault> {
    let mut rows: Vec<&'static Requirement> = Vec::new();
    for row in suites.iter().flat_map(|suite| suite.requirements) {
        if !rows.iter().any(|known| known.id == row.id) {
            rows.push(row);
        }
    }
    if let Some(row) = rows.iter().find(|row| row.id == word) {
        return Ok(row);
    }
    if word.is_empty() {
        return Err(Fault::usage(
            "an empty word names no requirement; `sidecert list requirements` shows all",
        ));
    }
    let end = format!("/{word}");
    let mut found: Vec<_> = rows.iter().copied().filter(|row| row.id.ends_with(&end)).collect();
    if found.is_empty() {
        let glob = Glob::new(word)
            .map_err(|error| Fault::usage(format!("{word:?} is no pattern: {}", error.kind())))?
            .compile_matcher();
        found.extend(rows.iter().filter(|row| glob.is_match(row.id)));
    }
    if found.is_empty() {
        found.extend(rows.iter().filter(|row| row.id.contains(word)));
    }
    match found.as_slice() {
        [row] => Ok(row),
        [] => {
            let last = |id: &'static str| id.rsplit('/').next().unwrap_or_default();
            let near = select::closest(word, rows.iter().map(|row| row.id)).or_else(|| {
                let near = select::closest(word, rows.iter().map(|row| last(row.id)))?;
                rows.iter().map(|row| row.id).find(|id| last(id) == near)
            });
            let hint = near.map_or_else(
                || "`sidecert list requirements` shows all".to_owned(),
                |id| format!("did you mean {id}?"),
            );
            Err(Fault::usage(format!("no requirement is called {word:?}; {hint}")))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|row| row.id).collect();
            Err(Fault::usage(format!("{word:?} names {} requirements: {}", ids.len(), ids.join(", "))))
        }
    }
}

// ---- what the row says ----

fn declaration(sheet: &mut Sheet, row: &Requirement) {
    sheet.heading(row.id, "");
    let level = match row.level {
        Level::Must => "must",
        Level::Should => "should",
        Level::May => "may",
    };
    sheet.row(level, row.text);
    match row.basis() {
        Basis::Specified => sheet.row("asked by", "the specification"),
        Basis::Observed(program) => {
            let says = format!(
                "nobody: {program} was seen to do it so. A target that does otherwise gets a warning, and fails \
                 only with --profile reference"
            );
            sheet.row("asked by", &says);
        }
    }
    for (at, cite) in row.cites.iter().enumerate() {
        sheet.row(if at == 0 { "source" } else { "" }, &cited(cite));
    }
    for (at, accepts) in row.accepts.iter().enumerate() {
        sheet.row(if at == 0 { "accepted" } else { "" }, &accepted(at, accepts));
    }
    sheet.row("binds", &format!("a {}, {}", row.binds, holds(row)));
    sheet.row("since", &format!("sidecert {}", row.since));
}

fn cited(cite: &Cite) -> String {
    match cite {
        Cite::Seed(heading, english) => format!("the specification, “{heading}” ({english})"),
        Cite::Schema(pointer) => format!("the schema, {pointer}"),
        Cite::JsonRpc(section) => format!("JSON-RPC 2.0, “{section}”"),
    }
}

fn accepted(at: usize, accepts: &Accepts) -> String {
    let by = match (at, accepts.by) {
        (0, Basis::Specified) => "as the specification asks".to_owned(),
        (_, Basis::Specified) => "another reading of the specification".to_owned(),
        (_, Basis::Observed(program)) => format!("as {program} does it"),
    };
    format!("{} ({by})", accepts.seen.0)
}

/// When it holds.
fn holds(row: &Requirement) -> String {
    let editions = SUITES.iter().filter(|suite| row.holds.editions & suite.edition != 0);
    let editions: Vec<&str> = editions.map(|suite| suite.name).collect();
    let mut text = format!("in {}", editions.join(" and "));
    if let Some(capability) = row.holds.declares {
        text += &format!(", that declares {capability}");
    }
    if !row.holds.facts.is_empty() {
        let facts: Vec<&str> = row.holds.facts.iter().map(fact).collect();
        text += &format!(", where the contract has {}", facts.join(" and "));
    }
    text
}

fn fact(fact: &Fact) -> &'static str {
    match fact {
        Fact::Method(name) | Fact::Member(name) | Fact::Reason(name) | Fact::Definition(name) => name,
    }
}

/// Why the row is not asked here.
fn excluded(row: &Requirement, suite: &Suite, contract: &Contract) -> Option<String> {
    if row.holds.editions & suite.edition == 0 {
        return Some(format!("it is not asked in {}", suite.name));
    }
    let missing = row.holds.facts.iter().find(|fact| !contract.has(**fact))?;
    Some(format!("it is not asked under {}: that has no {}", contract.id, fact(missing)))
}

/// How it is brought up.
fn checking(sheet: &mut Sheet, row: &Requirement, stage: &Stage<'_>) {
    let (how, script) = match row.check {
        Check::Unobservable(why) => {
            return sheet.row("checked", &format!("never, for no peer can see it: {why}"));
        }
        Check::Always(_, script) => ("whatever is played; what is sure to bring it up is".to_owned(), script),
        Check::After(script, _) => ("when this was played:".to_owned(), script),
    };
    let place = match script.process {
        Process::Tour => "after the handshake, in a process that it shares",
        Process::Own => "after the handshake, in a process of its own",
        Process::Bare => "in a process of its own, with no handshake before it",
    };
    let place = if *script == *stage.suite.opening || *script == *stage.suite.closing {
        "in every process that others need it in"
    } else {
        place
    };
    sheet.row("checked", &format!("{how} the script {:?}, {place}", script.name));
    for need in script.needs {
        sheet.row("needs", &needed(*need, stage));
        if let Some(example) = example_of(*need, stage.suite) {
            sheet.text(1, &example);
        }
    }
    let script = script.script(&stage.setting());
    if stage.side == Side::Host {
        driving(sheet, &script);
    }
    steps::write(sheet, &script);
}

/// What the driver must make the host do for a script, and which of ours cannot.
fn driving(sheet: &mut Sheet, script: &Script) {
    let mut words = BTreeSet::new();
    asked(&script.steps, &mut words);
    if words.is_empty() {
        return;
    }
    let list = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    sheet.row("driver", &format!("it must make the host {}", list(&all)));
    for driver in DRIVERS.iter().filter(|(name, driver)| *name == driver.name()) {
        let (name, Driver::ReasonixCli(mode)) = driver else { continue };
        let missing: Vec<&str> = all.iter().copied().filter(|word| !mode.does().contains(word)).collect();
        if !missing.is_empty() {
            sheet.row("", &format!("out of reach of {name}, which cannot {}", list(&missing)));
        } else if mode.is_per_turn() && has_second_turn(&script.steps, &mut 0) {
            sheet.row("", &format!("out of reach of {name} from the second turn of a session on"));
        }
    }
}

/// Whether a script asks for more than one turn in a session, of which there have been so many.
fn has_second_turn(steps: &[Step], turns: &mut usize) -> bool {
    steps.iter().any(|step| match step {
        Step::Ask { what, .. } => {
            let ask: serde_json::Value = serde_json::from_str(what.text()).unwrap_or_default();
            match ask["do"].as_str() {
                Some("start") => *turns = 0,
                Some("turn") => *turns += 1,
                _ => {}
            }
            *turns > 1
        }
        Step::Repeat { times, steps } => (0..*times).take(2).any(|_| has_second_turn(steps, turns)),
        Step::Each { steps, .. } => has_second_turn(steps, turns),
        _ => false,
    })
}

/// The words that a script asks its driver for.
fn asked(steps: &[Step], words: &mut BTreeSet<String>) {
    for step in steps {
        match step {
            Step::Ask { what, .. } => {
                let ask: serde_json::Value = serde_json::from_str(what.text()).unwrap_or_default();
                words.extend(ask["do"].as_str().map(str::to_owned));
            }
            Step::Repeat { steps, .. } | Step::Each { steps, .. } => asked(steps, words),
            _ => {}
        }
    }
}

fn needed(need: Need, stage: &Stage<'_>) -> String {
    let suite = stage.suite;
    match need {
        Need::Exercise(SLOW) => "--slow: it takes as long as a time limit of the protocol".to_owned(),
        Need::Exercise(group) => format!("--exercise {group}: it may have effects outside of the run"),
        Need::Declared(capability) if stage.side == Side::Host => match capability.split_once('/') {
            Some(("tool", name)) => {
                format!("a host with a tool {name:?}, which its driver names in its first line")
            }
            _ => format!("a driver whose first line says {capability:?}"),
        },
        Need::Declared(capability) => format!("a guest that declares {capability}"),
        Need::Provocation(name) => {
            let known = suite.provocations.iter().find(|known| known.name == name);
            let says = known.map(|known| format!("at which {}", known.says)).unwrap_or_default();
            format!("--provoke FILE, which says of {name:?} a frame {says}; for our mocks:")
        }
    }
}

/// The line of a provocation file that the mocks honour.
fn example_of(need: Need, suite: &Suite) -> Option<String> {
    let Need::Provocation(name) = need else { return None };
    let known = suite.provocations.iter().find(|known| known.name == name)?;
    Some(format!("{name} = {}", known.example))
}

// ---- what is played ----

fn example(sheet: &mut Sheet, row: &'static Requirement, stage: &Stage<'_>) -> Result<(), Fault> {
    let recordings = stage.play(&stage.suite.scripts([row]), None)?;
    let script = row.script().map(|script| script.name).unwrap_or_default();
    let frames = recordings
        .iter()
        .map(|recording| slice(recording, stage.side, script))
        .find(|frames| !frames.is_empty());
    let (who, guest) = (stage.who(), stage.side == Side::Guest);
    let conforms = if guest {
        "how the mock that conforms goes through it"
    } else {
        "how the reference host goes through it"
    };
    sheet.heading("EXAMPLE", conforms);
    let Some(frames) = frames else {
        sheet.row("", &format!("{who} does not come to it"));
        return Ok(());
    };
    let side = stage.side;
    let legend = format!(
        "→ to the {side}, ← from the {side}, · no frame; a fence is a harmless request of ours, whose answer shows \
         that the {side} has come so far"
    );
    sheet.row("", &legend);
    sheet.frames(&shortened(frames));
    Ok(())
}

fn broken(
    sheet: &mut Sheet,
    row: &'static Requirement,
    stage: &Stage<'_>,
    flaw: &'static Flaw,
) -> Result<(), Fault> {
    let mut shown = stage.fails(row, &stage.suite.scripts([row]), flaw)?;
    // Its own script is sure to bring the rule up, and not sure to bring up each way to break it. Those for guests take
    // less together than one by one, since they share processes; those for hosts take too long together.
    let all = stage.suite.scripts(stage.suite.rows(stage.side));
    let at_once = if stage.side == Side::Guest { all.len() } else { 1 };
    let mut others = all.chunks(at_once.max(1));
    while shown.is_none()
        && let Some(others) = others.next()
    {
        shown = stage.fails(row, others, flaw)?;
    }
    sheet.heading("BROKEN", &format!("by {} with the flaw {}", stage.who(), flaw.name));
    let Some((broken, frames)) = shown else {
        let fault = format!("{} does not show in memory: please report this", flaw.name);
        return Err(Fault { code: exit::OURS, says: fault });
    };
    sheet.row("expected", broken.expected.0);
    sheet.row("actual", &broken.actual);
    sheet.frames(&frames);
    sheet.command("see it with", &command(row, stage, flaw));
    Ok(())
}

/// The command that shows a flaw in a process.
fn command(row: &Requirement, stage: &Stage<'_>, flaw: &Flaw) -> String {
    let contract = stage.file.map(|file| format!(" --contract {}", file.display())).unwrap_or_default();
    let side = stage.side;
    let mut options = format!("--suite {}{contract}", stage.suite.name);
    let target = format!("sidecert mock {side} {options} --flaw {}", flaw.name);
    if side == Side::Host {
        options += " --driver shim";
    }
    for need in row.script().map_or(&[][..], |script| script.needs) {
        match need {
            Need::Provocation(_) => options += " --provoke FILE",
            Need::Exercise(SLOW) => options += " --slow",
            Need::Exercise(CALLS) => options += " --call-read-only",
            Need::Exercise(group) => options += &format!(" --exercise {group}"),
            Need::Declared(_) => {}
        }
    }
    if row.basis() != Basis::Specified {
        options += " --profile reference";
    }
    format!("sidecert check {side} {options} --only {} -- {target}", row.id)
}

/// What a rehearsal takes: everything is allowed, and every provocation is given as the mocks honour it.
struct Stage<'c> {
    suite: &'static Suite,
    /// Who is under test.
    side: Side,
    contract: &'c Contract,
    /// Where the contract comes from, if it is the user's.
    file: Option<&'c Path>,
    provocations: BTreeMap<String, String>,
    exercised: BTreeSet<String>,
    /// What a host launches.
    probe: Launch,
}

impl<'c> Stage<'c> {
    fn new(
        suite: &'static Suite,
        side: Side,
        contract: &'c Contract,
        file: Option<&'c Path>,
    ) -> Result<Self, Fault> {
        let ours = |says: String| Fault { code: exit::OURS, says };
        let mut provocations = BTreeMap::new();
        for provocation in suite.provocations {
            let text = format!("example = {}", provocation.example);
            let table = DeTable::parse(&text).map_err(|error| ours(error.message().to_owned()))?;
            let example = table.get_ref().get("example").map(|value| provoke::json(value.get_ref()));
            let example = example.transpose().map_err(ours)?.unwrap_or_default();
            provocations.insert(provocation.name.to_owned(), example.to_string());
        }
        if suite.calls.is_some() {
            provocations.insert(calls::GIVEN.to_owned(), webcodex::CALLS.to_owned());
        }
        let exercised = BTreeSet::from(["all", SLOW].map(str::to_owned));
        let probe =
            Launch { command: "/sidecert".to_owned(), args: vec!["probe".to_owned()], env: Vec::new() };
        Ok(Self { suite, side, contract, file, provocations, exercised, probe })
    }

    /// Who plays the target.
    fn who(&self) -> &'static str {
        match self.side {
            Side::Guest => "the mock",
            Side::Host => "the reference host",
        }
    }

    fn setting(&self) -> Setting<'_> {
        Setting {
            provocations: &self.provocations,
            exercised: &self.exercised,
            probe: &self.probe,
            workspace: if self.side == Side::Host { "/workspace" } else { "/" },
            ..Setting::plain(self.contract)
        }
    }

    /// Plays scripts against the mock with this flaw or none; gives the recordings.
    fn play(
        &self,
        scripts: &[&'static ScriptDef],
        flaw: Option<&'static Flaw>,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let mut target = || -> Box<dyn Machine + '_> {
            match self.side {
                Side::Guest => Box::new(Mock::guest(self.suite, self.contract, Features::default(), flaw)),
                Side::Host => Box::new(MockHost::new(self.contract, Manners::default(), flaw)),
            }
        };
        sim::rehearse(self.suite, self.side, self.setting(), scripts, true, &mut target)
            .map_err(|stuck| Fault { code: exit::OURS, says: format!("the rehearsal is stuck: {stuck:?}") })
    }

    /// How `row` fails against the mock with `flaw`, with the frames around, if it does.
    fn fails(
        &self,
        row: &'static Requirement,
        scripts: &[&'static ScriptDef],
        flaw: &'static Flaw,
    ) -> Result<Option<(Broken, Vec<Frame>)>, Fault> {
        let recordings = self.play(scripts, Some(flaw))?;
        let selected = BTreeSet::from([row.id.to_owned()]);
        let mut judge = Judge::new(self.suite, self.side, Profile::Reference, self.setting(), &selected);
        for recording in &recordings {
            judge.begin("rehearsal");
            judge.read(recording);
        }
        let verdicts = judge.finish().verdicts;
        let failed = verdicts.into_iter().find_map(|(known, verdict)| match verdict {
            Verdict::Fail(broken) if known.id == row.id => Some(broken),
            _ => None,
        });
        Ok(failed.map(|broken| {
            let at = usize::try_from(broken.at.event).unwrap_or(usize::MAX);
            let mut frames: Vec<Frame> = events(&recordings[broken.at.process], self.side)
                .map(|(_, frame)| frame)
                .take(at.saturating_add(AFTER + 1))
                .skip(at.saturating_sub(BEFORE))
                .collect();
            if let Some(guilty) = frames.iter_mut().find(|frame| frame.event == broken.at.event) {
                guilty.marked = true;
            }
            (broken, frames)
        }))
    }
}

/// The script that an event begins (`true`) or ends, if it does, and the event as a report shows it.
type Shown = (Option<(String, bool)>, Frame);

fn events(recording: &[u8], target: Side) -> impl Iterator<Item = Shown> {
    let lines = recording.split(|byte| *byte == b'\n');
    let events = lines.filter_map(|line| match transcript::read(line) {
        Ok(Record::Event(event)) => Some(event),
        _ => None,
    });
    let mut reading = Reading::new(target);
    events.map(move |event| {
        let turn = match &event.kind {
            Kind::Begin { script } => Some((script.to_string(), true)),
            Kind::Ended { script, .. } => Some((script.to_string(), false)),
            _ => None,
        };
        (turn, reading.read(&event, FRAME_BYTES).frame)
    })
}

/// The events of one script.
fn slice(recording: &[u8], target: Side, script: &str) -> Vec<Frame> {
    let is = |turn: &Option<(String, bool)>, begins: bool| {
        turn.as_ref().is_some_and(|(name, kind)| name == script && *kind == begins)
    };
    let mut ended = false;
    let inside = events(recording, target).skip_while(|(turn, _)| !is(turn, true)).take_while(|(turn, _)| {
        let before = ended;
        ended |= is(turn, false);
        !before
    });
    inside.map(|(_, frame)| frame).collect()
}

/// The beginning and the end, where there is more than anybody reads.
fn shortened(mut frames: Vec<Frame>) -> Vec<Frame> {
    if frames.len() > 2 * SHOWN + 1 {
        let left_out = frames.len() - 2 * SHOWN;
        frames.drain(SHOWN + 1..SHOWN + left_out);
        let gap = &mut frames[SHOWN];
        gap.from = Origin::Event;
        gap.label = None;
        gap.text = format!("and {left_out} more events");
    }
    frames
}
