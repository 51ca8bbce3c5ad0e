//! `judge`: a recorded run in, a report out. `check` records and then goes the same way; there is no other.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::digest::Digest;
use sidecert_proto::judge::{Judge, Judged, Outcome, RecordingFault};
use sidecert_proto::reasonix;
use sidecert_proto::run::{self, Run};
use sidecert_proto::script::Setting;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{End, LINE_BYTES_MAX, Record};
use sidecert_proto::verdict::{At, Verdict};
use sidecert_proto::wire::{Deframer, Line};
use sidecert_reports::terminal::Detail;
use sidecert_reports::{Report, json, terminal};

use crate::args::{JudgeArgs, Judging, ReportFormat};
use crate::exit::{self, Fault};
use crate::report::{self, Excerpts};
use crate::{contract, environment, output, select};

/// How much of a recording is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// How many events before and after a place an excerpt shows.
const BEFORE: usize = 4;
const AFTER: u64 = 2;

/// Judges the run in a folder.
pub(crate) fn run(args: &JudgeArgs) -> Result<u8, Fault> {
    let mut run = read(&args.run)?;
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
fn read(folder: &Path) -> Result<Run, Fault> {
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

fn judged(
    folder: &Path,
    run: &Run,
    suite: &'static Suite,
    judging: &Judging,
    setting: Setting<'_>,
    selected: &BTreeSet<String>,
) -> Result<Judged, Fault> {
    let mut judge = Judge::new(suite, Side::Guest, judging.profile.into(), setting, selected);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut changed = Vec::new();
    for (process, recording) in counting(run).enumerate() {
        judge.begin(&recording.name);
        let mut digest = Digest::default();
        let path = folder.join(recording.file());
        let fault = |error: io::Error| Fault::usage(format!("{}: {error}", path.display()));
        let mut file = regular(&path).map_err(fault)?;
        loop {
            match file.read(&mut chunk).map_err(fault)? {
                0 => break,
                read => {
                    digest.update(&chunk[..read]);
                    judge.read(&chunk[..read]);
                }
            }
        }
        if digest.finish() != recording.sha256 {
            let says = "it is not what was recorded: its SHA-256 is another".to_owned();
            changed.push(RecordingFault { process, line: 0, says });
        }
    }
    let mut judged = judge.finish();
    judged.faults.extend(changed);
    Ok(judged)
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
        Outcome::CutShort(count) => {
            (exit::UNDECIDED, format!("nothing failed, but {count} of what is demanded could not be decided"))
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
        Some((row, _)) if code == exit::OK => {
            (exit::UNDECIDED, format!("{} is required, and did not pass", row.id))
        }
        _ => (code, says),
    }
}

/// What stands around every place that a verdict names.
fn excerpts(folder: &Path, run: &Run, judged: &Judged) -> Result<Excerpts, Fault> {
    let mut wanted: BTreeSet<At> = BTreeSet::new();
    for (_, verdict) in &judged.verdicts {
        if let Verdict::Fail(broken) | Verdict::Warn(broken) = verdict {
            wanted.insert(broken.at.clone());
        }
    }
    let mut excerpts = Excerpts::new();
    for (number, recording) in counting(run).enumerate() {
        let places: Vec<u64> = wanted.iter().filter(|at| at.process == number).map(|at| at.event).collect();
        if places.is_empty() {
            continue;
        }
        let path = folder.join(recording.file());
        let fault = |error: io::Error| Fault::usage(format!("{}: {error}", path.display()));
        let mut file = regular(&path).map_err(fault)?;
        let mut around =
            Around { number, places: &places, event: 0, before: VecDeque::new(), excerpts: &mut excerpts };
        let mut deframer = Deframer::new(LINE_BYTES_MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        let last = places.last().copied().unwrap_or_default() + AFTER;
        loop {
            let read = file.read(&mut chunk).map_err(fault)?;
            if read == 0 || around.event > last {
                break;
            }
            let mut lines = deframer.push(&chunk[..read]);
            while let Some(line) = lines.next() {
                if let Line::Whole(line) = line {
                    around.line(line);
                }
            }
        }
    }
    Ok(excerpts)
}

/// Gathers what stands around places of one recording.
struct Around<'a> {
    number: usize,
    places: &'a [u64],
    event: u64,
    before: VecDeque<sidecert_reports::Frame>,
    excerpts: &'a mut Excerpts,
}

impl Around<'_> {
    fn line(&mut self, line: &[u8]) {
        let Ok(Record::Event(event)) = sidecert_proto::transcript::read(line) else { return };
        let frame = report::frame(self.event, &event, Side::Guest);
        for place in self.places {
            let at = At { process: self.number, event: *place };
            if *place == self.event {
                let mut frames: Vec<_> = self.before.iter().cloned().collect();
                frames.push(sidecert_reports::Frame { marked: true, ..frame.clone() });
                self.excerpts.insert(at, frames);
            } else if (*place + 1..=*place + AFTER).contains(&self.event)
                && let Some(frames) = self.excerpts.get_mut(&at)
            {
                frames.push(frame.clone());
            }
        }
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before.push_back(frame);
        self.event += 1;
    }
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
