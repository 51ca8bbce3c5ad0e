//! The suite can fail: each flaw fails exactly what it names, and a flawless mock fails nothing.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test may")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sidecert_cases::SUITES;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_mocks::{Flaw, Mock, MockHost, flaws, webcodex};
use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::judge::{Judge, Judged};
use sidecert_proto::machine::{Action, Input, Launch, LinkId, Machine, Micros};
use sidecert_proto::reasonix::contract::Limits;
use sidecert_proto::reasonix::guest::Features;
use sidecert_proto::requirement::{Basis, Check, Level};
use sidecert_proto::script::{Need, Process, SLOW, Script, ScriptDef, Setting};
use sidecert_proto::sim;
use sidecert_proto::suite::Suite;
use sidecert_proto::verdict::{AS_THE_REFERENCE, Profile, Verdict, Why};
use sidecert_proto::webcodex::calls;

/// A mock that says when its flaw has shown.
struct Watched<M> {
    mock: M,
    fired: Rc<Cell<bool>>,
}

/// A mock that may have a flaw.
trait Flawed: Machine {
    fn fired(&self) -> bool;
}

impl Flawed for Mock<'_> {
    fn fired(&self) -> bool {
        Mock::fired(self)
    }
}

impl Flawed for MockHost<'_> {
    fn fired(&self) -> bool {
        MockHost::fired(self)
    }
}

impl<M: Flawed> Machine for Watched<M> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        self.mock.handle(link, input, now);
        self.fired.set(self.fired.get() || self.mock.fired());
    }

    fn poll(&mut self, now: Micros) -> Option<Action> {
        let action = self.mock.poll(now);
        self.fired.set(self.fired.get() || self.mock.fired());
        action
    }

    fn deadline(&self) -> Option<Micros> {
        self.mock.deadline()
    }
}

/// How a rehearsal is done.
#[derive(Clone, Copy)]
struct How {
    side: Side,
    flaw: Option<&'static Flaw>,
    provoked: bool,
    isolate: bool,
    profile: Profile,
    lenient: bool,
}

const PLAIN: How = How {
    side: Side::Guest,
    flaw: None,
    provoked: true,
    isolate: false,
    profile: Profile::Specified,
    lenient: false,
};

/// The contract of a suite with limits that make a rehearsal fast.
fn small(suite: &Suite) -> Contract {
    let limits = Limits {
        frame_bytes: 64 << 10,
        externalize_field_bytes: 512,
        content_ref_chunk_bytes: 1 << 10,
        content_ref_object_bytes: 8 << 10,
    };
    limits.applied_to((suite.contract)())
}

/// Every provocation of the suite, as the mocks honour it.
fn provocations(suite: &Suite) -> BTreeMap<String, String> {
    let json = |name: &str| {
        let mark = format!("sidecert:{name}");
        if name.ends_with("-stream") {
            format!(r#"{{"message":"{mark}"}}"#)
        } else {
            format!(r#"{{"event":"input.receive","payload":{{"text":"{mark}"}}}}"#)
        }
    };
    let all = suite.provocations.iter().map(|it| (it.name.to_owned(), json(it.name)));
    let calls = suite.calls.map(|_| (calls::GIVEN.to_owned(), webcodex::CALLS.to_owned()));
    all.chain(calls).collect()
}

/// Rehearses the whole suite in memory, and judges it; also says whether the flaw has shown.
fn run(suite: &'static Suite, how: How) -> (Judged, bool) {
    let ([judged], fired) = run_judged_by(suite, how, [how.profile]);
    (judged, fired)
}

/// The same, judged once by each of these profiles.
fn run_judged_by<const N: usize>(
    suite: &'static Suite,
    how: How,
    profiles: [Profile; N],
) -> ([Judged; N], bool) {
    let contract = small(suite);
    let selected = suite.rows(how.side).map(|row| row.id.to_owned()).collect();
    let provocations = if how.provoked { provocations(suite) } else { BTreeMap::new() };
    let everything = ["all", SLOW].map(str::to_owned);
    let exercised = if how.provoked { BTreeSet::from(everything) } else { BTreeSet::new() };
    let probe = Launch { command: "/probe".to_owned(), ..Launch::default() };
    let setting = Setting {
        provocations: &provocations,
        exercised: &exercised,
        probe: &probe,
        workspace: "/workspace",
        ..Setting::plain(&contract)
    };
    let fired = Rc::new(Cell::new(false));
    let scripts = suite.scripts(suite.rows(how.side));
    let features = Features { lenient: how.lenient, ..Features::default() };
    let manners = if how.lenient { Manners::released() } else { Manners::default() };
    let recordings =
        sim::rehearse(suite, how.side, setting, &scripts, how.isolate, &mut || -> Box<dyn Machine> {
            let fired = Rc::clone(&fired);
            match how.side {
                Side::Guest => {
                    let mock = Mock::guest(suite, &contract, features.clone(), how.flaw);
                    Box::new(Watched { mock, fired })
                }
                Side::Host => {
                    let mock = MockHost::new(&contract, manners.clone(), how.flaw);
                    Box::new(Watched { mock, fired })
                }
            }
        })
        .unwrap();
    if std::env::var("SIDECERT_SHOW").is_ok_and(|flaw| how.flaw.map_or("none", |it| it.name) == flaw) {
        for recording in &recordings {
            eprintln!("{}", String::from_utf8_lossy(recording));
        }
    }
    let judged = profiles.map(|profile| {
        let mut judge = Judge::new(suite, how.side, profile, setting, &selected);
        for (place, recording) in recordings.iter().enumerate() {
            judge.begin(&format!("{place:03}"));
            judge.read(recording);
        }
        judge.finish()
    });
    (judged, fired.get())
}

fn failing(judged: &Judged) -> BTreeSet<&'static str> {
    judged
        .verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Fail(_)))
        .map(|(row, _)| row.id)
        .collect()
}

/// The suites that have rows for `side`.
fn suites(side: Side) -> impl Iterator<Item = &'static Suite> {
    SUITES.iter().copied().filter(move |suite| suite.rows(side).next().is_some())
}

fn everywhere(side: Side) -> impl Iterator<Item = (&'static Suite, bool)> {
    suites(side).flat_map(|suite| [(suite, false), (suite, true)])
}

/// Fails with everything that is wrong, so that one run shows all of it.
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_flawless_guest_passes_everything_that_can_be_seen() {
    a_flawless_mock_passes_everything_that_can_be_seen(Side::Guest);
}

#[test]
fn the_reference_host_passes_everything_that_can_be_seen() {
    a_flawless_mock_passes_everything_that_can_be_seen(Side::Host);
}

fn a_flawless_mock_passes_everything_that_can_be_seen(side: Side) {
    let mut wrong = Vec::new();
    for (suite, isolate) in everywhere(side) {
        let (judged, _) = run(suite, How { side, isolate, ..PLAIN });
        assert!(judged.ours.is_empty(), "{:?}", judged.ours);
        assert!(judged.late.is_empty(), "{:?}", judged.late);
        assert!(judged.faults.is_empty(), "{:?}", judged.faults);
        for (row, verdict) in &judged.verdicts {
            let ok =
                matches!(verdict, Verdict::Pass { remark: None } | Verdict::Undecided(Why::Unobservable(_)))
                    || (matches!(verdict, Verdict::NotApplicable(_))
                        && row.holds.editions & suite.edition == 0);
            if !ok {
                wrong.push(format!("{} {}: {verdict:?} ({:?})", suite.name, row.id, judged.cause));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn without_provocations_nothing_else_changes_of_guests() {
    without_provocations_nothing_else_changes(Side::Guest);
}

#[test]
fn without_provocations_nothing_else_changes_of_hosts() {
    without_provocations_nothing_else_changes(Side::Host);
}

fn without_provocations_nothing_else_changes(side: Side) {
    let mut wrong = Vec::new();
    for suite in suites(side) {
        let with = run(suite, How { side, ..PLAIN }).0;
        let without = run(suite, How { side, provoked: false, ..PLAIN }).0;
        for ((row, with), (_, without)) in with.verdicts.iter().zip(&without.verdicts) {
            // What another row's script can bring up as well may be decided all the same.
            let asked = matches!(without, Verdict::Undecided(Why::NotProvoked(_) | Why::NotExercised(_)));
            if with != without && !asked {
                wrong.push(format!("{}: {with:?}, and without {without:?}", row.id));
            }
            let needs = row.script().map_or(&[][..], |script| script.needs);
            let free = needs.iter().all(|need| matches!(need, Need::Declared(_)));
            if asked && free && row.id != "reasonix/ui/nothing-without-ui" {
                wrong.push(format!("{}: {without:?}, and its script needs nothing", row.id));
            }
        }
    }
    assert_none(&wrong);
}

/// What `check` says of each flaw of `suite`, in their order, on every processor.
fn of_every_flaw<T: Send>(
    suite: &'static Suite,
    side: Side,
    check: impl Fn(&'static Flaw) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let all: Vec<_> = flaws(suite, side).collect();
    let work = || {
        let mut said = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(flaw) = all.get(place) else { return said };
            said.push((place, check(flaw)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut said: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    said.sort_by_key(|(place, _)| *place);
    said.into_iter().map(|(_, said)| said).collect()
}

/// One line of the matrix: what a flaw fails, what it fails only by what was observed, and how much it cuts short.
fn line(flaw: &Flaw, judged: &Judged) -> String {
    let mut line = format!("{}:", flaw.name);
    for (row, _) in judged.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Fail(_))) {
        let how = if row.basis() == Basis::Specified { "fails" } else { "observed" };
        line += &format!("\n    {how} {}", row.id);
    }
    let cut = |verdict: &Verdict| matches!(verdict, Verdict::Undecided(Why::CutShort(_)));
    let cut = judged.verdicts.iter().filter(|(_, verdict)| cut(verdict)).count();
    if cut > 0 {
        line += &format!("\n    cuts short {cut}");
    }
    line + "\n"
}

/// Holds the matrix of `suite` against the golden one, or writes that when it is asked to.
fn compare_with_golden(suite: &Suite, side: Side, lines: &[String], wrong: &mut Vec<String>) {
    let name = match side {
        Side::Guest => suite.name.to_owned(),
        Side::Host => format!("{}-host", suite.name),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../golden/matrices/{name}.txt"));
    let text = lines.concat();
    if std::env::var_os("SIDECERT_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        return std::fs::write(&path, text).unwrap();
    }
    if std::fs::read_to_string(&path).unwrap_or_default() != text {
        wrong.push(format!("golden/matrices/{name}.txt is another: `cargo xtask golden` writes it"));
    }
}

/// What is wrong with a flaw under the reference profile, given what a flawless mock comes to; and by default, where
/// what is only observed warns and what is specified fails.
fn mismatches(
    suite: &'static Suite,
    isolate: bool,
    flawless: &Judged,
    flaw: &'static Flaw,
) -> (Vec<String>, String) {
    let mut wrong = Vec::new();
    let how = How { side: flaw.side, flaw: Some(flaw), isolate, ..PLAIN };
    let ([judged, by_default], fired) = run_judged_by(suite, how, [Profile::Reference, Profile::Specified]);
    let mut tell = |says: String| {
        wrong.push(format!("{} ({}{}): {says}", flaw.name, suite.name, if isolate { ", alone" } else { "" }));
    };
    if !fired {
        tell("its trigger never came".to_owned());
    }
    // Tours that share their process with one that was cut are played again alone, so it is alone that counts.
    let expected: BTreeSet<&str> = flaw.breaks.iter().copied().collect();
    let found = failing(&judged);
    if isolate && found != expected {
        tell(format!("it fails {found:?} instead of {expected:?}"));
    }
    if let Some(more) = found.iter().find(|id| !expected.contains(**id)) {
        tell(format!("it fails {more}"));
    }
    let cut = |verdict: &Verdict| matches!(verdict, Verdict::Undecided(Why::CutShort(_)));
    if expected.is_empty() && !judged.verdicts.iter().any(|(_, verdict)| cut(verdict)) {
        tell("it breaks nothing, and cuts nothing short".to_owned());
    }
    for ((row, verdict), (_, before)) in judged.verdicts.iter().zip(&flawless.verdicts) {
        // What a flaw keeps a guest from doing cannot be judged any more.
        let lost = matches!(verdict, Verdict::Undecided(Why::NotProvoked(_))) || cut(verdict);
        let passes = |verdict: &Verdict| matches!(verdict, Verdict::Pass { .. });
        let same = verdict == before || (passes(verdict) && passes(before));
        if !flaw.breaks.contains(&row.id) && !lost && !same {
            tell(format!("it changes {} to {verdict:?}", row.id));
        }
    }
    for (row, verdict) in by_default.verdicts.iter().filter(|(row, _)| isolate && found.contains(row.id)) {
        if !matches!(
            (row.basis(), verdict),
            (Basis::Observed(_), Verdict::Warn(_)) | (Basis::Specified, Verdict::Fail(_))
        ) {
            tell(format!("by default {} is {verdict:?}", row.id));
        }
    }
    (wrong, line(flaw, &judged))
}

#[test]
fn each_flaw_of_a_guest_fails_exactly_what_it_names() {
    each_flaw_fails_exactly_what_it_names(Side::Guest);
}

#[test]
fn each_flaw_of_a_host_fails_exactly_what_it_names() {
    each_flaw_fails_exactly_what_it_names(Side::Host);
}

fn each_flaw_fails_exactly_what_it_names(side: Side) {
    let mut wrong = Vec::new();
    // The editions of a family share their processes alike.
    for (suite, isolate) in
        everywhere(side).filter(|(suite, isolate)| *isolate || suite.name != SUITES[0].name)
    {
        let flawless = run(suite, How { side, isolate, profile: Profile::Reference, ..PLAIN }).0;
        let said = of_every_flaw(suite, side, |flaw| mismatches(suite, isolate, &flawless, flaw));
        let (faults, lines): (Vec<_>, Vec<_>) = said.into_iter().unzip();
        wrong.extend(faults.into_iter().flatten());
        if isolate {
            compare_with_golden(suite, side, &lines, &mut wrong);
        }
    }
    assert_none(&wrong);
}

#[test]
fn each_requirement_of_guests_that_can_be_seen_has_a_flaw_that_breaks_it() {
    each_requirement_that_can_be_seen_has_a_flaw_that_breaks_it(Side::Guest);
}

#[test]
fn each_requirement_of_hosts_that_can_be_seen_has_a_flaw_that_breaks_it() {
    each_requirement_that_can_be_seen_has_a_flaw_that_breaks_it(Side::Host);
}

fn each_requirement_that_can_be_seen_has_a_flaw_that_breaks_it(side: Side) {
    let mut wrong = Vec::new();
    for &suite in SUITES {
        for row in suite.rows(side).filter(|row| row.holds.editions & suite.edition != 0) {
            let broken = flaws(suite, side).any(|flaw| flaw.breaks.contains(&row.id));
            let exempt = matches!(row.check, Check::Unobservable(_));
            if broken == exempt {
                wrong.push(format!("{} {}: nothing shows that it can fail", suite.name, row.id));
            }
        }
        for flaw in flaws(suite, side) {
            let known = |id: &str| suite.rows(side).any(|row| row.id == id);
            wrong.extend(
                flaw.breaks.iter().filter(|id| !known(id)).map(|id| format!("{}: no row {id}", flaw.name)),
            );
        }
    }
    assert_none(&wrong);
}

/// A script of ours that is wrong and does not say so.
static CARELESS: ScriptDef = ScriptDef {
    name: "careless",
    process: Process::Own,
    needs: &[],
    build: |_| {
        Script::new("careless")
            .request("careless", "extension/intercept", r#"{"event":"no.such.event"}"#)
            .fence()
    },
};

#[test]
fn a_wrong_frame_of_our_own_is_told_as_ours_and_fails_nobody() {
    for suite in SUITES {
        let contract = small(suite);
        let selected = suite.rows(Side::Guest).map(|row| row.id.to_owned()).collect();
        let setting = Setting::plain(&contract);
        let recordings = sim::rehearse(suite, Side::Guest, setting, &[&CARELESS], false, &mut || {
            Box::new(Mock::guest(suite, &contract, Features::default(), None))
        })
        .unwrap();
        let mut judge = Judge::new(suite, Side::Guest, Profile::Reference, setting, &selected);
        judge.begin("careless");
        judge.read(&recordings[0]);
        let judged = judge.finish();
        assert!(
            matches!(&*judged.ours, [(_, says)] if says.contains("extension/intercept")),
            "{:?}",
            judged.ours
        );
        assert!(failing(&judged).is_empty());
    }
}

#[test]
fn what_a_host_writes_when_all_is_over_is_told_as_late() {
    let suite = &sidecert_cases::reasonix::V2;
    let contract = small(suite);
    let row = suite.rows(Side::Host).find(|row| row.id == "reasonix/host-envelope/answered-once").unwrap();
    let selected = BTreeSet::from([row.id.to_owned()]);
    let probe = Launch { command: "/probe".to_owned(), ..Launch::default() };
    let setting = Setting { probe: &probe, workspace: "/workspace", ..Setting::plain(&contract) };
    let recordings = sim::rehearse(suite, Side::Host, setting, &suite.scripts([row]), false, &mut || {
        Box::new(MockHost::new(&contract, Manners::default(), None))
    });
    let [recording] = <[_; 1]>::try_from(recordings.unwrap()).unwrap();
    // The turn is over, and so is all that it caused; then there is one event more.
    let text = String::from_utf8(recording).unwrap();
    let settled = text.lines().filter(|line| line.contains("\"settled\":true")).nth(1).unwrap();
    let t = settled.split(',').next().unwrap();
    let event = r#""method":"extension/event","params":{"event":"session.start","payload":{}}"#;
    let late = format!("{t},\"l\":1,\"from\":\"host\",\"json\":{{\"jsonrpc\":\"2.0\",{event}}}}}");
    let count = text.lines().count() - 2;
    let footer = |events| format!("\"events\":{events}}}");
    let edited =
        text.replace(settled, &format!("{settled}\n{late}")).replace(&footer(count), &footer(count + 1));
    let told = [&text, &edited].map(|text| {
        let mut judge = Judge::new(suite, Side::Host, Profile::Specified, setting, &selected);
        judge.begin("001");
        judge.read(text.as_bytes());
        let judged = judge.finish();
        assert!(judged.faults.is_empty(), "{:?}", judged.faults);
        judged.late.into_iter().map(|(_, method)| method).collect::<Vec<_>>()
    });
    assert_eq!(told, [vec![], vec!["extension/event".to_owned()]]);
}

#[test]
fn the_way_of_the_reference_passes_with_a_remark() {
    let remarked = [
        "reasonix/members/missing-refused",
        "reasonix/members/null-refused",
        "reasonix/lifecycle/manifest-demanded",
        "reasonix/lifecycle/params-demanded",
        "reasonix/streams/numbered-from-one",
    ];
    let mut wrong = Vec::new();
    for suite in SUITES {
        let judged = run(suite, How { lenient: true, ..PLAIN }).0;
        for (row, verdict) in &judged.verdicts {
            let expected = remarked.contains(&row.id);
            match verdict {
                Verdict::Pass { remark: Some(AS_THE_REFERENCE) } if expected => {}
                Verdict::Pass { remark: None } | Verdict::Undecided(Why::Unobservable(_)) if !expected => {}
                Verdict::NotApplicable(_) => {}
                _ => wrong.push(format!("{} {}: {verdict:?}", suite.name, row.id)),
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_row_says_what_it_asks_and_where_it_is_written() {
    let mut ids = BTreeSet::new();
    for (suite, row) in
        [SUITES[0], SUITES[2]].iter().flat_map(|suite| suite.requirements.iter().map(move |it| (suite, it)))
    {
        assert!(ids.insert(row.id), "{} is declared twice", row.id);
        let (family, rest) = row.id.split_once('/').unwrap();
        assert!(family == suite.family && rest.matches('/').count() == 1, "{}", row.id);
        assert!(row.text.ends_with('.') && !row.accepts.is_empty(), "{}", row.id);
        let observed = matches!(row.basis(), Basis::Observed(_));
        assert_eq!(
            row.cites.is_empty(),
            observed,
            "{}: what is specified is cited, what is observed is not",
            row.id
        );
        assert!(row.level <= Level::May);
    }
}
