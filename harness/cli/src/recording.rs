//! Where recordings are read from: the folder of a run, transcripts without one, and logs that somebody else kept.
//!
//! All of them are read as transcripts, in pieces: what is held of one does not grow with it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use sidecert_cases::SUITES;
use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::json::Tape;
use sidecert_proto::log::{Guest, Log, LogFault, Merge};
use sidecert_proto::run::{self, Recording, Run, Target};
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{self, Event, LINE_BYTES_MAX, Record};
use sidecert_proto::wire::{Deframer, Line};

use sidecert_reports::safe;

use crate::args::RecordingArgs;
use crate::exit::Fault;
use crate::select::did_you_mean;
use crate::{contract, output};

/// How much is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// How much of a file tells which form it has, in bytes. A shim introduces itself in there, with all the tools of its host.
const HEAD_BYTES: u64 = 64 << 10;

/// The recordings of a run.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A run: what `run.json` counts, in its folder.
    Run(PathBuf),
    /// What no check recorded, or what is left of one.
    Foreign(Vec<Foreign>),
}

/// One recording without a run.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    name: String,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// A transcript, and the end that was checked when it was made.
    Transcript(PathBuf, Side),
    Log(PathBuf),
    /// The two directions, host's first.
    Two(PathBuf, PathBuf),
}

/// One recording to be read.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: PathBuf,
    /// The hash that it must have, if that is known.
    pub(crate) sha256: Option<&'a str>,
    form: Option<&'a Form>,
}

impl Source {
    /// What these paths hold: the folder of one run, or any transcripts, logs, and folders of them.
    pub(crate) fn of(paths: &[PathBuf]) -> Result<Self, Fault> {
        if let [folder] = paths
            && folder.join(run::FILE).exists()
        {
            return Ok(Self::Run(folder.clone()));
        }
        let mut found = Vec::new();
        for path in paths {
            let fault = |error: &io::Error| Fault::usage(format!("{}: {error}", path.display()));
            let told = |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    let says = "there is no such recording; `check … --record DIR` makes one";
                    Fault::usage(format!("{}: {says}", path.display()))
                }
                _ => fault(&error),
            };
            if !fs::metadata(path).map_err(told)?.is_dir() {
                found.push(Foreign::of(path)?);
                continue;
            }
            if path.join(run::FILE).exists() {
                let says = "is a run; a run is judged for itself, without others";
                return Err(Fault::usage(format!("{}: {says}", path.display())));
            }
            let files = transcripts(path).map_err(|error| fault(&error))?;
            if files.is_empty() {
                let says = format!(
                    "{}: no recorded run and no *.ndjson or *.jsonl in it; `check … --record DIR` makes a run",
                    path.display()
                );
                return Err(Fault::usage(says));
            }
            for file in files {
                found.push(Foreign::of(&file)?);
            }
        }
        Ok(Self::Foreign(found))
    }

    /// What two files hold, one of each direction.
    pub(crate) fn of_two(host: &Path, guest: &Path) -> Result<Self, Fault> {
        for path in [host, guest] {
            head(path)?;
        }
        let name = guest.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self::Foreign(vec![Foreign { name, form: Form::Two(host.to_owned(), guest.to_owned()) }]))
    }

    /// Whether no check made them, as far as can be told.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign(_))
    }

    /// Whether the order between the two directions is unknown.
    pub(crate) fn is_unordered(&self) -> bool {
        matches!(self, Self::Foreign(all) if all.iter().any(|one| matches!(one.form, Form::Two(..))))
    }

    /// The suite of the run in whose folder all of them lie.
    fn suite_beside(&self) -> Option<&'static Suite> {
        let Self::Foreign(all) = self else { return None };
        let mut folders: BTreeSet<&Path> = BTreeSet::new();
        for one in all {
            let (Form::Transcript(path, _) | Form::Log(path) | Form::Two(_, path)) = &one.form;
            folders.insert(path.parent()?);
        }
        let [folder] = *folders.into_iter().collect::<Vec<_>>() else { return None };
        sidecert_cases::suite(&run(folder).ok()?.suite)
    }

    /// Which end is to be judged, where no run says it.
    fn target(&self) -> Result<Side, Fault> {
        let Self::Foreign(all) = self else { return Ok(Side::Guest) };
        let side = |one: &Foreign| if let Form::Transcript(_, side) = one.form { side } else { Side::Guest };
        let first = all.first().map_or(Side::Guest, side);
        if all.iter().any(|one| side(one) != first) {
            let says = "some of these are recordings of guests, and some of hosts: judge them apart";
            return Err(Fault::usage(says));
        }
        Ok(first)
    }

    /// The recordings, in order.
    pub(crate) fn recordings<'a>(&'a self, run: &'a Run) -> Vec<Recorded<'a>> {
        match self {
            Self::Run(folder) => {
                let counting = run.processes.iter().filter(|recording| recording.set_aside.is_none());
                counting
                    .map(|recording| Recorded {
                        name: &recording.name,
                        path: folder.join(recording.file()),
                        sha256: Some(recording.sha256.as_str()).filter(|sha256| !sha256.is_empty()),
                        form: None,
                    })
                    .collect()
            }
            Self::Foreign(all) => all
                .iter()
                .map(|one| {
                    let (Form::Transcript(path, _) | Form::Log(path) | Form::Two(_, path)) = &one.form;
                    Recorded { name: &one.name, path: path.clone(), sha256: None, form: Some(&one.form) }
                })
                .collect(),
        }
    }
}

impl Foreign {
    fn of(path: &Path) -> Result<Self, Fault> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let head = head(path)?;
        let is_transcript = head.trim_ascii_start().starts_with(b"{\"transcript\"");
        let path = path.to_owned();
        let form = if is_transcript { Form::Transcript(path, target(&head)) } else { Form::Log(path) };
        Ok(Self { name, form })
    }
}

/// Which end a transcript that begins so is a check of: only a host has a shim.
fn target(head: &[u8]) -> Side {
    let mut lines = head.split(|byte| *byte == b'\n');
    let has_shim = |line: &[u8]| Tape::scan(line).is_ok_and(|tape| tape.root().get("shim").is_some());
    if lines.any(has_shim) { Side::Host } else { Side::Guest }
}

/// The first bytes of a file.
fn head(path: &Path) -> Result<Vec<u8>, Fault> {
    let mut head = Vec::new();
    let read = regular(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.map_err(|error| Fault::usage(format!("{}: {error}", path.display())))?;
    Ok(head)
}

/// Opens a file of a recording. A device or a pipe may never end, so it is none.
pub(crate) fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(path)
}

impl Recorded<'_> {
    /// Whether it is a log, which becomes a transcript only when it is read.
    pub(crate) fn is_log(&self) -> bool {
        matches!(self.form, Some(Form::Log(_) | Form::Two(..)))
    }

    /// Opens it as a transcript. What is wrong with a log is an error of reading that holds a [`LogFault`].
    pub(crate) fn open<'c>(
        &self,
        suite: &Suite,
        contract: &'c Contract,
        guest: Guest,
    ) -> io::Result<Box<dyn Read + 'c>> {
        let file = regular(&self.path)?;
        Ok(match self.form {
            None | Some(Form::Transcript(..)) => Box::new(file),
            Some(Form::Log(_)) => Box::new(Made {
                from: LogFile { log: Log::new(self.name, suite, contract), file },
                then: Then::Reading,
            }),
            Some(Form::Two(host, _)) => {
                let merge = Merge::new(self.name, suite, contract, guest);
                let (host, guest) = (BufReader::new(regular(host)?), BufReader::new(file));
                Box::new(Made {
                    from: TwoFiles { merge, host, guest, line: Vec::new() },
                    then: Then::Reading,
                })
            }
        })
    }
}

/// What is wrong with the log that could not be read on, if that is why.
pub(crate) fn log_fault(error: &io::Error) -> Option<&LogFault> {
    error.get_ref()?.downcast_ref()
}

/// Something that becomes a transcript piece by piece.
trait Making {
    /// Reads some more; `false` when there is no more.
    fn more(&mut self) -> io::Result<bool>;
    fn made(&mut self) -> &mut Vec<u8>;
}

/// Reads what is made.
struct Made<M> {
    from: M,
    then: Then,
}

/// What follows what is made already.
enum Then {
    Reading,
    End,
    Fault(io::Error),
}

impl<M: Making> Read for Made<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let made = self.from.made();
            if !made.is_empty() {
                let count = made.len().min(buffer.len());
                buffer[..count].copy_from_slice(&made[..count]);
                made.drain(..count);
                return Ok(count);
            }
            match std::mem::replace(&mut self.then, Then::End) {
                Then::End => return Ok(0),
                Then::Fault(error) => return Err(error),
                Then::Reading => {
                    self.then = match self.from.more() {
                        Ok(true) => Then::Reading,
                        Ok(false) => Then::End,
                        Err(error) => Then::Fault(error),
                    };
                }
            }
        }
    }
}

struct LogFile<'c> {
    log: Log<'c>,
    file: File,
}

impl Making for LogFile<'_> {
    fn more(&mut self) -> io::Result<bool> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let count = self.file.read(&mut chunk)?;
        let read = if count == 0 { self.log.finish() } else { self.log.read(&chunk[..count]) };
        read.map_err(io::Error::other)?;
        Ok(count > 0)
    }

    fn made(&mut self) -> &mut Vec<u8> {
        self.log.transcript()
    }
}

struct TwoFiles<'c> {
    merge: Merge<'c>,
    host: BufReader<File>,
    guest: BufReader<File>,
    line: Vec<u8>,
}

impl Making for TwoFiles<'_> {
    fn more(&mut self) -> io::Result<bool> {
        let Some(side) = self.merge.wants() else { return Ok(false) };
        let file = match side {
            Side::Host => &mut self.host,
            Side::Guest => &mut self.guest,
        };
        self.line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let count = file.take(limit).read_until(b'\n', &mut self.line)?;
        if count as u64 == limit {
            let line = self.merge.taken(side) + 1;
            return Err(io::Error::other(format!(
                "line {line} of the file of the {side} is longer than {LINE_BYTES_MAX} bytes"
            )));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        self.merge.take(side, (count > 0).then_some(line)).map_err(io::Error::other)?;
        Ok(true)
    }

    fn made(&mut self) -> &mut Vec<u8> {
        self.merge.transcript()
    }
}

/// Recordings with all that is needed to read them.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) run: Run,
    pub(crate) suite: &'static Suite,
    pub(crate) contract: Contract,
    /// The processes that are asked for; none are all.
    pub(crate) only: Vec<String>,
}

impl Opened {
    /// What these arguments name.
    pub(crate) fn of(args: &RecordingArgs) -> Result<Self, Fault> {
        let source = Source::of(std::slice::from_ref(&args.recording))?;
        let (run, suite) = read(&source, args.suite, args.contract.file.as_deref())?;
        let contract = contract_of(&run, suite)?;
        Ok(Self { source, run, suite, contract, only: args.process.clone() })
    }

    /// The recordings that are asked for, in order.
    pub(crate) fn recordings(&self) -> Result<Vec<Recorded<'_>>, Fault> {
        let mut recordings = self.source.recordings(&self.run);
        for name in &self.only {
            if !recordings.iter().any(|recorded| recorded.name == name) {
                let names = recordings.iter().map(|recorded| recorded.name);
                let hint = did_you_mean(name, names);
                return Err(Fault::usage(format!("--process {name}: there is none in this recording{hint}")));
            }
        }
        recordings
            .retain(|recorded| self.only.is_empty() || self.only.iter().any(|name| name == recorded.name));
        Ok(recordings)
    }
}

impl Recorded<'_> {
    /// Reads all of it, event by event. What is wrong with it ends that with an error.
    pub(crate) fn events(
        &self,
        suite: &Suite,
        contract: &Contract,
        guest: Guest,
        take: &mut dyn FnMut(&Event<'_>),
    ) -> Result<(), Fault> {
        let fault = |error: &dyn std::fmt::Display| Fault::usage(format!("{}: {error}", self.path.display()));
        let mut file = self.open(suite, contract, guest).map_err(|error| fault(&error))?;
        let mut deframer = Deframer::new(LINE_BYTES_MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        let (mut number, mut ended) = (0, false);
        loop {
            let count = file.read(&mut chunk).map_err(|error| fault(&error))?;
            if count == 0 {
                if !ended {
                    let says = "it is cut off: it has no footer, and is read as far as it goes";
                    output::complain(&safe::escape(&format!("{}: {says}", self.path.display())));
                }
                return Ok(());
            }
            let mut lines = deframer.push(&chunk[..count]);
            while let Some(line) = lines.next() {
                number += 1;
                let read = match line {
                    Line::Whole(line) => transcript::read(line).map_err(|wrong| wrong.to_string()),
                    Line::Oversize { .. } => Err(format!("longer than {LINE_BYTES_MAX} bytes")),
                };
                match read.map_err(|says| fault(&format!("line {number}: {says}")))? {
                    Record::Event(event) => take(&event),
                    Record::Footer { .. } => ended = true,
                    Record::Header { .. } => {}
                }
            }
        }
    }
}

/// The run in a source, or the one that it is taken for, and the suite.
pub(crate) fn read(
    source: &Source,
    asked: Option<&'static Suite>,
    contract: Option<&Path>,
) -> Result<(Run, &'static Suite), Fault> {
    let Source::Run(folder) = source else {
        let suite = asked.or_else(|| source.suite_beside()).ok_or_else(|| {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            Fault::usage(format!(
                "no run says what this is a recording of: --suite is {}",
                names.join(" or ")
            ))
        })?;
        let contract = contract::of(suite, contract)?;
        let recorded = contract::recorded(suite, &contract);
        let run = Run { target: Target(source.target()?), ..foreign_run(suite, &contract, recorded) };
        return Ok((run, suite));
    };
    let mut run = self::run(folder)?;
    let fault = |says: String| Fault::usage(format!("{}: {says}", folder.display()));
    let suite = sidecert_cases::suite(&run.suite)
        .ok_or_else(|| fault(format!("this version has no suite {:?}", run.suite)))?;
    if let Some(file) = contract {
        run.contract = Some(contract::read(suite, file)?.document().to_string());
    }
    match asked {
        Some(asked) if asked.name != suite.name => {
            Err(fault(format!("it was recorded against {}, and is read as nothing else", suite.name)))
        }
        _ => Ok((run, suite)),
    }
}

/// The contract that a run was recorded against.
pub(crate) fn contract_of(run: &Run, suite: &Suite) -> Result<Contract, Fault> {
    let contract = match &run.contract {
        Some(text) => (suite.read)(text.as_bytes()).map_err(|fault| {
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

/// The run that a recording without one is judged as.
fn foreign_run(suite: &Suite, contract: &Contract, recorded: Option<String>) -> Run {
    Run {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        suite: suite.name.to_owned(),
        contract_sha256: contract.hash(),
        contract: recorded,
        selected: suite.requirements.iter().map(|row| row.id.to_owned()).collect(),
        platform: "unknown".to_owned(),
        ..Run::default()
    }
}

/// Reads `run.json` of the run in a folder. Where a check was killed, that counts no process yet; then all that lie
/// beside it do, without a hash that they must have.
fn run(folder: &Path) -> Result<Run, Fault> {
    let path = folder.join(run::FILE);
    let fault = |says: String| Fault::usage(format!("{}: {says}", path.display()));
    let text =
        regular(&path).and_then(|_| output::read_file(&path)).map_err(|error| fault(error.to_string()))?;
    let mut run = Run::read(&text).map_err(|error| fault(error.to_string()))?;
    if run.processes.is_empty() {
        let names = transcripts(folder).map_err(|error| fault(error.to_string()))?;
        let left = |path: &PathBuf| {
            let name = path.file_name()?.to_string_lossy().strip_suffix(".ndjson")?.to_owned();
            Some(Recording { name, ..Recording::default() })
        };
        run.processes = names.iter().filter_map(left).collect();
    }
    Ok(run)
}

/// Whether a check was killed before it could say what it had recorded.
pub(crate) fn is_unended(run: &Run) -> bool {
    run.processes.iter().any(|recording| recording.sha256.is_empty())
}

/// The files in a folder that may be recordings, in the order of their names.
fn transcripts(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let lines = |path: &PathBuf| path.extension().is_some_and(|it| it == "ndjson" || it == "jsonl");
    Ok(entries.into_iter().map(|entry| entry.path()).filter(lines).collect())
}
