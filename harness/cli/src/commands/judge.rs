//! `judge`: a recorded run in, a report out. `check` records and then goes the same way; there is no other.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::digest::Digest;
use sidecert_proto::judge::{Judge, Judged, Outcome, RecordingFault};
use sidecert_proto::machine::Exited;
use sidecert_proto::reasonix;
use sidecert_proto::run::{self, Run};
use sidecert_proto::script::Setting;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::End;
use sidecert_proto::verdict::{At, Verdict, Why};
use sidecert_reports::terminal::Detail;
use sidecert_reports::{Report, json, junit, markdown, terminal};

use crate::args::{JudgeArgs, Judging, ReportFormat};
use crate::excerpts::Excerpts;
use crate::exit::{self, Fault};
use crate::{contract, environment, output, report, select};

/// How much of a recording is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Judges the run in a folder.
pub(crate) fn run(args: &JudgeArgs) -> Result<u8, Fault> {
    let mut run = read_run(&args.run)?;
    if let Some(file) = &args.contract {
        run.contract = Some(contract::read(file)?.document().to_string());
    }
    let suite = sidecert_cases::suite(&run.suite).ok_or_else(|| {
        Fault::usage(format!("{}: this version has no suite {:?}", args.run.display(), run.suite))
    })?;
    // What was not played cannot be judged: the selection can only become smaller.
    let selected = select::selected(suite, Side::Guest, &args.judging)?;
    let selected: BTreeSet<String> = selected.intersection(&run.selected).cloned().collect();
    if selected.is_empty() {
        return Err(Fault::usage("--only names nothing that was selected when this run was recorded"));
    }
    report(&args.run, &run, suite, &args.judging, &selected, None, &[])
}

/// Reads `run.json` of the run in a folder.
fn read_run(folder: &Path) -> Result<Run, Fault> {
    let path = folder.join(run::FILE);
    let fault = |says: String| Fault::usage(format!("{}: {says}", path.display()));
    let text = regular(&path).and_then(|_| output::read_file(&path)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Fault::usage(format!("{}: no recorded run; `check … --record DIR` makes one", folder.display()))
        }
        _ => fault(error.to_string()),
    })?;
    Run::read(&text).map_err(|error| fault(error.to_string()))
}

/// Opens a file of a recording. A device or a pipe may never end, so it is none.
fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(path)
}

/// Judges the run in `folder` and writes every report. `forced` is an exit code that the recording of it came to.
pub(crate) fn report(
    folder: &Path,
    run: &Run,
    suite: &'static Suite,
    judging: &Judging,
    selected: &BTreeSet<String>,
    forced: Option<Fault>,
    given: &[std::ffi::OsString],
) -> Result<u8, Fault> {
    let required = select::required(suite, Side::Guest, judging)?;
    let contract = contract(run, suite)?;
    let none = BTreeSet::new();
    let setting = Setting {
        contract: &contract,
        manifest: run.manifest.as_deref(),
        declared: &none,
        provocations: &run.provocations,
        exercised: &run.exercised,
        seed: run.seed,
        workspace: &run.workspace,
    };
    let judged = judged(folder, run, suite, judging, setting, selected)?;
    let (code, says) = conclude(&judged, judging, &required, forced);
    let excerpts = excerpts(folder, run, &judged)?;
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
    write(&report, judging)?;
    Ok(code)
}

fn contract(run: &Run, suite: &Suite) -> Result<Contract, Fault> {
    let contract = match &run.contract {
        Some(text) => reasonix::contract::read(text.as_bytes()).map_err(|fault| {
            Fault::usage(format!("the contract of the run: {}: {}", fault.pointer, fault.says))
        })?,
        None => (suite.contract)().clone(),
    };
    if contract.hash() != run.contract_sha256 {
        return Err(Fault::usage(format!(
            "the run was recorded against another contract of {} than {}",
            suite.name,
            match run.contract {
                Some(_) => "the one given",
                None => "the one of this version: give it with --contract FILE",
            }
        )));
    }
    Ok(contract)
}

/// Judges the recordings that are what was recorded. One that was changed is no evidence, for or against anybody; one
/// that is cut off is, as far as it goes.
fn judged(
    folder: &Path,
    run: &Run,
    suite: &'static Suite,
    judging: &Judging,
    setting: Setting<'_>,
    selected: &BTreeSet<String>,
) -> Result<Judged, Fault> {
    let judge = |changed: &BTreeSet<usize>| -> Result<(Judged, BTreeSet<usize>), Fault> {
        let mut judge = Judge::new(suite, Side::Guest, judging.profile.into(), setting, selected);
        let mut differ = BTreeSet::new();
        for (process, recording) in counting(run).enumerate() {
            judge.begin(&recording.name);
            if !changed.contains(&process) && read(folder, recording, &mut judge)? != recording.sha256 {
                differ.insert(process);
            }
        }
        Ok((judge.finish(), differ))
    };
    let (judged, differ) = judge(&BTreeSet::new())?;
    let changed =
        |process: &usize| judged.processes.get(*process).is_some_and(|process| process.end.is_some());
    let changed: BTreeSet<usize> = differ.iter().copied().filter(changed).collect();
    let mut judged = if changed.is_empty() { judged } else { judge(&changed)?.0 };
    judged.faults.retain(|fault| !changed.contains(&fault.process));
    for process in differ {
        let says = if changed.contains(&process) {
            "it is not what was recorded (its SHA-256 is another), so nothing in it counts"
        } else {
            "it is not what was recorded: its SHA-256 is another"
        };
        judged.faults.push(RecordingFault { process, line: 0, says: says.to_owned() });
    }
    Ok(judged)
}

/// Reads one recording; its SHA-256.
fn read(folder: &Path, recording: &run::Recording, judge: &mut Judge<'_>) -> Result<String, Fault> {
    let path = folder.join(recording.file());
    let fault = |error: io::Error| Fault::usage(format!("{}: {error}", path.display()));
    let mut file = regular(&path).map_err(fault)?;
    let mut digest = Digest::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk).map_err(fault)? {
            0 => return Ok(digest.finish()),
            read => {
                digest.update(&chunk[..read]);
                judge.read(&chunk[..read]);
            }
        }
    }
}

/// The recordings that count.
fn counting(run: &Run) -> impl Iterator<Item = &run::Recording> {
    run.processes.iter().filter(|recording| recording.set_aside.is_none())
}

/// The exit code, and the line that says why.
fn conclude(
    judged: &Judged,
    judging: &Judging,
    required: &BTreeSet<String>,
    forced: Option<Fault>,
) -> (u8, String) {
    if let Some(fault) = forced {
        return (fault.code, fault.says);
    }
    if judged.processes.iter().any(|process| process.end == Some(End::Interrupted)) {
        return (exit::INTERRUPTED, "interrupted: what is told here is partial".to_owned());
    }
    if let Some((_, says)) = judged.ours.first() {
        return (exit::OURS, format!("sidecert itself sent a wrong frame: {says}"));
    }
    let (code, says) = match judged.outcome(judging.strict) {
        Outcome::Conforms => (exit::OK, "nothing that is demanded failed".to_owned()),
        Outcome::Failed(1) => (exit::FAILED, "one demanded requirement failed".to_owned()),
        Outcome::Failed(count) => (exit::FAILED, format!("{count} demanded requirements failed")),
        Outcome::CutShort(demanded) => (exit::UNDECIDED, undecided(judged, demanded)),
        Outcome::Incomplete => {
            (exit::UNDECIDED, "nothing failed, but the recording is incomplete".to_owned())
        }
    };
    let missing = judged
        .verdicts
        .iter()
        .find(|(row, verdict)| required.contains(row.id) && !matches!(verdict, Verdict::Pass { .. }));
    match missing {
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

/// What stands around every place that a verdict names, and where scripts were cut short.
fn excerpts(folder: &Path, run: &Run, judged: &Judged) -> Result<Excerpts, Fault> {
    let mut wanted: BTreeSet<At> = BTreeSet::new();
    for (_, verdict) in &judged.verdicts {
        if let Verdict::Fail(broken) | Verdict::Warn(broken) = verdict {
            wanted.insert(broken.at.clone());
        }
    }
    let mut excerpts = Excerpts::default();
    for (number, recording) in counting(run).enumerate() {
        let places: BTreeSet<u64> =
            wanted.iter().filter(|at| at.process == number).map(|at| at.event).collect();
        let in_order = judged.processes.get(number).is_some_and(|process| {
            process.end == Some(End::Done) && !matches!(process.exited, Some(Exited::Signal(_)))
        });
        if places.is_empty() && in_order {
            continue;
        }
        let path = folder.join(recording.file());
        let fault = |error: io::Error| Fault::usage(format!("{}: {error}", path.display()));
        let mut file = regular(&path).map_err(fault)?;
        excerpts.read(number, places, &mut file).map_err(fault)?;
    }
    Ok(excerpts)
}

/// Writes every report that was asked for, and the one for people.
fn write(report: &Report, judging: &Judging) -> Result<(), Fault> {
    let detail = match (judging.quiet, judging.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    let stdout_taken = judging.report.iter().any(|to| to.path.is_none());
    let (color, width) = output::style(judging.color, stdout_taken);
    let people = terminal::render(report, terminal::Style { color, width, detail });
    // The report for people first: if a file cannot be written, they have seen what there is to see.
    let mut failed =
        if stdout_taken { output::print_to_stderr(&people).err() } else { output::print(&people).err() };
    for to in &judging.report {
        let text = match to.format {
            ReportFormat::Json => json::render(report),
            ReportFormat::Junit => junit::render(report),
            ReportFormat::Markdown => markdown::render(report),
            ReportFormat::Terminal => {
                terminal::render(report, terminal::Style { color: false, width, detail })
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
