//! `judge`: recordings in, a report out. `check` records and then goes the same way; there is no other.

use std::collections::BTreeSet;
use std::io::{self, Read};

use sidecert_proto::contract::Contract;
use sidecert_proto::digest::Digest;
use sidecert_proto::judge::{Judge, Judged, Outcome, RecordingFault};
use sidecert_proto::log::{Guest, LogFault};
use sidecert_proto::machine::Exited;
use sidecert_proto::run::Run;
use sidecert_proto::script::Setting;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::End;
use sidecert_proto::verdict::{At, Profile, Verdict, Why};
use sidecert_reports::terminal::Detail;
use sidecert_reports::{Report, json, junit, markdown, terminal};

use crate::args::{Driver, JudgeArgs, Judging, ReportFormat};
use crate::excerpts::Excerpts;
use crate::exit::{self, Fault};
use crate::recording::{self, Opened, Recorded, Source};
use crate::{environment, output, report, scripts, select};

/// How much of a recording is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Judges what was recorded.
pub(crate) fn run(args: &JudgeArgs) -> Result<u8, Fault> {
    let source = match (&args.from_host, &args.from_guest) {
        (Some(host), Some(guest)) => Source::of_two(host, guest)?,
        _ => Source::of(&args.run)?,
    };
    let (run, suite) = recording::read(&source, args.suite, args.contract.as_deref())?;
    // What was not played cannot be judged: the selection can only become smaller.
    let selected = select::selected(suite, run.target.0, &args.judging)?;
    let selected: BTreeSet<String> = selected.intersection(&run.selected).cloned().collect();
    if selected.is_empty() {
        return Err(Fault::usage("--only names nothing that was selected when this run was recorded"));
    }
    if run.redacted {
        output::complain("this recording is redacted: a verdict may rest on a text that was replaced");
    }
    let report = report(&source, &run, suite, &args.judging, &selected, None, &[])?;
    write(&report, &args.judging)?;
    Ok(report.outcome.exit_code)
}

/// What recordings say of each requirement, in a word.
pub(crate) fn verdicts(opened: &Opened) -> Result<Vec<(&'static str, &'static str)>, Fault> {
    let Opened { source, run, suite, contract, .. } = opened;
    let none = BTreeSet::new();
    let setting = setting(run, contract, &none);
    let reading = Reading { source, run, suite, setting, selected: &run.selected };
    let judged = reading.judged(Profile::Specified, Guest::Late)?;
    let word = |verdict: &Verdict| match verdict {
        Verdict::Pass { .. } => "pass",
        Verdict::Fail(_) => "fail",
        Verdict::Warn(_) => "warn",
        Verdict::NotApplicable(_) => "not applicable",
        Verdict::Undecided(_) => "undecided",
    };
    Ok(judged.verdicts.iter().map(|(row, verdict)| (row.id, word(verdict))).collect())
}

/// What recordings of `run` are judged by.
fn setting<'a>(run: &'a Run, contract: &'a Contract, declared: &'a BTreeSet<String>) -> Setting<'a> {
    Setting {
        manifest: run.manifest.as_deref(),
        declared,
        provocations: &run.provocations,
        exercised: &run.exercised,
        seed: run.seed,
        workspace: &run.workspace,
        ..Setting::plain(contract)
    }
}

/// Judges the recordings of a run. `forced` is an exit code that the recording of it came to.
pub(crate) fn report(
    source: &Source,
    run: &Run,
    suite: &'static Suite,
    judging: &Judging,
    selected: &BTreeSet<String>,
    forced: Option<Fault>,
    given: &[std::ffi::OsString],
) -> Result<Report, Fault> {
    let required = select::required(suite, run.target.0, judging)?;
    let contract = recording::contract_of(run, suite)?;
    let none = BTreeSet::new();
    let setting = setting(run, &contract, &none);
    let reading = Reading { source, run, suite, setting, selected };
    let mut judged = reading.judged(judging.profile.into(), Guest::Late)?;
    if source.is_unordered() {
        let other = reading.judged(judging.profile.into(), Guest::Early)?;
        agreed(&mut judged, &other);
    }
    // Which tools there are is known only now.
    let declared = Setting { declared: &judged.declared, ..setting };
    for line in suite.calls.into_iter().flat_map(|not_made| not_made(&declared)) {
        output::complain(&sidecert_reports::safe::escape(&line));
    }
    let facts =
        Facts { judged: &judged, required: &required, given: &run.given, is_foreign: source.is_foreign() };
    let (code, says) = conclude(&facts, judging, forced);
    let excerpts = reading.excerpts(&judged)?;
    let mut report = report::build(&report::Facts {
        run,
        suite,
        contract: &contract,
        judging,
        judged: &judged,
        excerpts: &excerpts,
        code,
        says: &says,
    });
    report.mask(&environment::secrets(given));
    Ok(report)
}

/// The recordings, and what they are judged by.
struct Reading<'a> {
    source: &'a Source,
    run: &'a Run,
    suite: &'static Suite,
    setting: Setting<'a>,
    selected: &'a BTreeSet<String>,
}

impl Reading<'_> {
    /// Judges the recordings that are what was recorded. One that was changed is no evidence, for or against anybody;
    /// one that is cut off is, as far as it goes.
    fn judged(&self, profile: Profile, guest: Guest) -> Result<Judged, Fault> {
        let (judged, differ) = self.judged_without(&BTreeSet::new(), profile, guest)?;
        let has_an_end = |process: &usize| judged.processes.get(*process).is_some_and(|it| it.end.is_some());
        let changed: BTreeSet<usize> = differ.iter().copied().filter(has_an_end).collect();
        let mut judged =
            if changed.is_empty() { judged } else { self.judged_without(&changed, profile, guest)?.0 };
        judged.faults.retain(|fault| !changed.contains(&fault.process));
        for process in differ {
            let says = if changed.contains(&process) {
                "it is not what was recorded (its SHA-256 is another), so nothing in it counts"
            } else {
                "it is not what was recorded: its SHA-256 is another"
            };
            judged.faults.push(RecordingFault { process, line: 0, says: says.to_owned() });
        }
        if recording::is_unended(self.run) {
            let says = "the check that recorded it was killed: others may be missing".to_owned();
            judged.faults.push(RecordingFault { process: 0, line: 0, says });
        }
        Ok(judged)
    }

    /// Judges all recordings but some; and which of them are not what was recorded.
    fn judged_without(
        &self,
        changed: &BTreeSet<usize>,
        profile: Profile,
        guest: Guest,
    ) -> Result<(Judged, BTreeSet<usize>), Fault> {
        let judge = Judge::new(self.suite, self.run.target.0, profile, self.setting, self.selected);
        let mut judge = match self.source.is_foreign() {
            true => judge.foreign(),
            false if self.run.driver == Driver::None.name() => judge.unasked(),
            false => judge,
        };
        let (mut differ, mut faults) = (BTreeSet::new(), Vec::new());
        for (process, recording) in self.source.recordings(self.run).into_iter().enumerate() {
            judge.begin(recording.name);
            if changed.contains(&process) {
                continue;
            }
            let (sha256, fault) = self.read(&recording, &mut judge, guest)?;
            if recording.sha256.is_some_and(|known| known != sha256) {
                differ.insert(process);
            }
            let fault = fault.map(|LogFault { line, says, .. }| RecordingFault { process, line, says });
            faults.extend(fault);
        }
        let mut judged = judge.finish();
        judged.faults.extend(faults);
        Ok((judged, differ))
    }

    /// Reads one recording: its SHA-256, and why a log could not be read on.
    fn read(
        &self,
        recording: &Recorded<'_>,
        judge: &mut Judge<'_>,
        guest: Guest,
    ) -> Result<(String, Option<LogFault>), Fault> {
        let mut file = self.open(recording, guest)?;
        let mut digest = Digest::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok((digest.finish(), None)),
                Ok(read) => {
                    digest.update(&chunk[..read]);
                    judge.read(&chunk[..read]);
                }
                Err(error) => match recording::log_fault(&error) {
                    Some(fault) if !fault.all => return Ok((digest.finish(), Some(fault.clone()))),
                    _ => return Err(unreadable(recording, &error)),
                },
            }
        }
    }

    fn open(&self, recording: &Recorded<'_>, guest: Guest) -> Result<Box<dyn Read + '_>, Fault> {
        let opened = recording.open(self.suite, self.setting.contract, guest);
        opened.map_err(|error| unreadable(recording, &error))
    }

    /// What stands around every place that a verdict names, and where scripts were cut short.
    fn excerpts(&self, judged: &Judged) -> Result<Excerpts, Fault> {
        let mut wanted: BTreeSet<At> = BTreeSet::new();
        for (_, verdict) in &judged.verdicts {
            if let Verdict::Fail(broken) | Verdict::Warn(broken) = verdict {
                wanted.insert(broken.at.clone());
            }
        }
        let mut excerpts = Excerpts::of(self.run.target.0);
        for (number, recording) in self.source.recordings(self.run).iter().enumerate() {
            let places: BTreeSet<u64> =
                wanted.iter().filter(|at| at.process == number).map(|at| at.event).collect();
            let in_order = judged.processes.get(number).is_some_and(|process| {
                process.end == Some(End::Done) && !matches!(process.exited, Some(Exited::Signal(_)))
            });
            if places.is_empty() && in_order {
                continue;
            }
            let mut file = self.open(recording, Guest::Late)?;
            match excerpts.read(number, places, &mut file) {
                // That was told when it was judged.
                Err(error) if recording::log_fault(&error).is_some() => {}
                read => read.map_err(|error| unreadable(recording, &error))?,
            }
        }
        Ok(excerpts)
    }
}

fn unreadable(recording: &Recorded<'_>, error: &io::Error) -> Fault {
    Fault::usage(format!("{}: {error}", recording.path.display()))
}

/// What came out the same, whatever came before what.
fn agreed(judged: &mut Judged, other: &Judged) {
    for ((_, verdict), (_, other)) in judged.verdicts.iter_mut().zip(&other.verdicts) {
        if std::mem::discriminant(verdict) != std::mem::discriminant(other) {
            let why = "two files do not tell what came before what, and that decides it";
            *verdict = Verdict::Undecided(Why::NotMeasured(why));
        }
    }
    judged.ours.retain(|(_, says)| other.ours.iter().any(|(_, others)| others == says));
}

/// What an exit code depends on.
struct Facts<'a> {
    judged: &'a Judged,
    required: &'a BTreeSet<String>,
    /// The scripts of the user's.
    given: &'a [String],
    is_foreign: bool,
}

/// The exit code, and the line that says why.
fn conclude(facts: &Facts<'_>, judging: &Judging, forced: Option<Fault>) -> (u8, String) {
    let Facts { judged, required, given, is_foreign } = *facts;
    if let Some(fault) = forced {
        return (fault.code, fault.says);
    }
    if judged.processes.iter().any(|process| process.end == Some(End::Interrupted)) {
        return (exit::INTERRUPTED, "interrupted: what is told here is partial".to_owned());
    }
    if let Some((script, says)) = scripts::wrong(judged, given) {
        let says =
            format!("the script {script} sends a wrong frame and does not say so (`raw`, `departs`): {says}");
        return (exit::USAGE, says);
    }
    if let Some((_, says)) = judged.ours.first().filter(|_| !is_foreign) {
        return (exit::OURS, format!("sidecert itself sent a wrong frame: {says}"));
    }
    let (code, says) = match judged.outcome(judging.strict) {
        Outcome::Conforms => (exit::OK, "nothing that is demanded failed".to_owned()),
        Outcome::Failed(1) => (exit::FAILED, "one demanded requirement failed".to_owned()),
        Outcome::Failed(count) => (exit::FAILED, format!("{count} demanded requirements failed")),
        Outcome::CutShort(demanded) => (exit::UNDECIDED, undecided(judged, demanded)),
        Outcome::OutOfReach => {
            (exit::UNDECIDED, "nothing failed, and nothing was decided: all of it is out of reach".to_owned())
        }
        Outcome::Incomplete => {
            (exit::UNDECIDED, "nothing failed, but the recording is incomplete".to_owned())
        }
    };
    let missing = judged
        .verdicts
        .iter()
        .find(|(row, verdict)| required.contains(row.id) && !matches!(verdict, Verdict::Pass { .. }));
    match missing {
        _ if code != exit::FAILED
            && let Some((script, cause)) = scripts::unmet(judged, given) =>
        {
            (exit::FAILED, format!("the script {script} was not played to its end: {cause}"))
        }
        Some((row, _)) if code == exit::OK => {
            (exit::UNDECIDED, format!("{} is required, and did not pass", row.id))
        }
        _ => (code, says),
    }
}

/// How many were cut short, and for how many of them that decides the exit code.
fn undecided(judged: &Judged, demanded: usize) -> String {
    let cut = |verdict: &Verdict| matches!(verdict, Verdict::Undecided(Why::CutShort(_)));
    let all = judged.verdicts.iter().filter(|(_, verdict)| cut(verdict)).count();
    let were = if all == 1 { "1 requirement was" } else { &format!("{all} requirements were") };
    if all == demanded {
        format!("nothing failed, but {were} cut short that the specification demands")
    } else {
        format!("nothing failed, but {were} cut short, and the specification demands {demanded} of them")
    }
}

/// Writes every report that was asked for, and the one for people.
pub(crate) fn write(report: &Report, judging: &Judging) -> Result<(), Fault> {
    let detail = detail(judging);
    let stdout_taken = judging.report.iter().any(|to| to.path.is_none());
    let (color, width) = output::style(judging.color, stdout_taken);
    let people = terminal::render(report, terminal::Style { color, width, detail });
    // The report for people first: if a file cannot be written, they have seen what there is to see.
    let told = if stdout_taken { output::print_to_stderr(&people) } else { output::print(&people) };
    let written = write_asked(report, judging, width);
    told.and(written)
}

/// How much is told.
fn detail(judging: &Judging) -> Detail {
    match (judging.quiet, judging.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    }
}

/// Writes every report that was asked for; `width` is that of one for people, in columns.
pub(crate) fn write_asked(report: &Report, judging: &Judging, width: usize) -> Result<(), Fault> {
    let mut failed = None;
    for to in &judging.report {
        let text = match to.format {
            ReportFormat::Json => json::render(report),
            ReportFormat::Junit => junit::render(report),
            ReportFormat::Markdown => markdown::render(report),
            ReportFormat::Terminal => {
                terminal::render(report, terminal::Style { color: false, width, detail: detail(judging) })
            }
        };
        let written = match &to.path {
            Some(path) => output::write_file(path, &text),
            None => output::print(&text),
        };
        failed = failed.or(written.err());
    }
    failed.map_or(Ok(()), Err)
}
