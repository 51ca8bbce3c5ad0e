//! `check`: plays a suite against a program, records what happens, and judges the recording.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::digest::Digest;
use sidecert_proto::json::{Kind, Tape};
use sidecert_proto::run::{self, Run, Target};
use sidecert_proto::script::{Need, SLOW, ScriptDef, Setting};
use sidecert_proto::suite::Suite;
use sidecert_proto::webcodex::calls::GIVEN;
use sidecert_reports::Report;
use sidecert_runner::budget::IDLE_MOST;
use sidecert_runner::record::{Order, RecordFault, Watch, record};
use sidecert_runner::{Spawn, Stop};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::args::CheckArgs;
use crate::commands::judge;
use crate::driving::{self, Driving};
use crate::exit::{self, Fault};
use crate::progress::Progress;
use crate::recording::Source;
use crate::trace::Trace;
use crate::{compare, config, contract, environment, output, provoke, scripts, select};

/// Checks a program on `side`, and tells what was found; `listening` hears the user's wish to stop.
pub(crate) fn run(args: &CheckArgs, side: Side, listening: &watch::Receiver<Stop>) -> Result<u8, Fault> {
    let checked = checked(args, side, listening)?;
    judge::write(&checked.report, &args.judging)?;
    Ok(checked.settle())
}

/// A check that took place.
pub(crate) struct Checked {
    pub(crate) report: Report,
    folder: Folder,
}

impl Checked {
    /// Keeps the recording if it is worth it, and gives the exit code.
    pub(crate) fn settle(self) -> u8 {
        let code = self.report.outcome.exit_code;
        self.folder.keep_if(code != exit::OK);
        code
    }

    /// The same, and says why.
    pub(crate) fn settle_aloud(self) -> u8 {
        output::complain(&sidecert_reports::safe::escape(&self.report.outcome.says));
        self.settle()
    }
}

/// The suite that the arguments name.
pub(crate) fn suite(args: &CheckArgs) -> Result<&'static Suite, Fault> {
    args.suite.ok_or_else(|| {
        let names: Vec<&str> = sidecert_cases::SUITES.iter().map(|suite| suite.name).collect();
        Fault::usage(format!("no suite to check against: --suite is {}", names.join(" or ")))
    })
}

/// The user's command; a driver that is a person needs none.
fn command(args: &CheckArgs, suite: &Suite, driving: Option<&Driving>) -> Result<Vec<OsString>, Fault> {
    if driving.is_some_and(|driving| driving.driver.is_by_hand()) {
        return Ok(args.target.command.clone());
    }
    args.target.command(|| match driving {
        None => format!("check guest --suite {}", suite.name),
        Some(driving) => format!("check host --suite {} --driver {}", suite.name, driving.driver.name()),
    })
}

/// Checks a program on `side`, and tells nothing of it yet.
pub(crate) fn checked(
    args: &CheckArgs,
    side: Side,
    listening: &watch::Receiver<Stop>,
) -> Result<Checked, Fault> {
    let suite = suite(args)?;
    let driving = Driving::of(args, side)?;
    let selected = select::selected(suite, side, &args.judging)?;
    select::required(suite, side, &args.judging)?;
    let command = command(args, suite, driving.as_ref())?;
    let manifest = args.manifest.as_deref().map(manifest).transpose()?;
    let mut provocations = match (&args.provoke, &args.provocations) {
        (Some(path), _) => provoke::read(path, suite)?,
        (None, given) => given.clone().unwrap_or_default(),
    };
    provocations.extend(args.calls.given(suite)?.map(|calls| (GIVEN.to_owned(), calls)));
    let exercised = exercised(suite, args)?;
    let seed = args.seed.map_or_else(drawn, Ok)?;
    args.judging.report.iter().filter_map(|to| to.path.as_deref()).try_for_each(output::has_a_place)?;
    let given = scripts::read(&args.script, suite, side)?;
    let scratch = scratch()?;
    let workspace = scratch.path().join("workspace");
    fs::create_dir(&workspace).map_err(|error| Fault::not_written("a temporary folder", &error))?;
    let folder = Folder::of(args.target.record.as_deref())?;
    let none = BTreeSet::new();
    let contract = contract::of(suite, args.contract.file.as_deref())?;
    let contract = args.calls.bounded(suite, contract)?;
    provocable(&provocations, &contract, args.provoke.as_deref())?;
    let workspace_text = workspace.to_string_lossy().into_owned();
    let setting = Setting {
        manifest: manifest.as_deref(),
        declared: &none,
        provocations: &provocations,
        exercised: &exercised,
        seed,
        workspace: &workspace_text,
        given: &given,
        ..Setting::plain(&contract)
    };
    // What a person did is not asked of them again because another script was not green.
    let isolate = args.isolate || driving.as_ref().is_some_and(Driving::is_a_person);
    let environment = environment::of(&args.target, (suite.environment)(&setting), scratch.path())?;
    let mut run = Run {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        suite: suite.name.to_owned(),
        target: Target(side),
        driver: driving.as_ref().map(|driving| driving.driver.name().to_owned()).unwrap_or_default(),
        contract_sha256: contract.hash(),
        contract: contract::recorded(suite, &contract),
        manifest: manifest.clone(),
        provocations: provocations.clone(),
        exercised: exercised.clone(),
        selected: selected.clone(),
        given: given.iter().map(|script| script.name.clone()).collect(),
        seed,
        workspace: workspace_text.clone(),
        argv: argv(&command, driving.as_ref()),
        options: options(args),
        executable_sha256: None,
        withheld: environment.withheld,
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        redacted: false,
        isolate,
        processes: Vec::new(),
    };
    let probe = probe(side)?;
    let scripts = driving.as_ref().and_then(|driving| driving.instead(suite));
    let scripts = scripts.unwrap_or_else(|| planned(suite, side, &selected, &setting));
    let shim = match driving.as_ref().zip(probe.as_deref()) {
        Some((driving, probe)) => driving.words(probe, scratch.path(), driving::asks(&scripts, &setting)),
        None => Vec::new(),
    };
    let spawn = spawn(args, driving.as_ref(), shim, &command, environment.variables)?;
    folder.write(&run)?;
    // Nobody else writes where a person is asked.
    let alone = driving.as_ref().is_some_and(Driving::has_the_terminal);
    let planned = suite.processes(side, &scripts, isolate).iter().map(Vec::len).sum();
    let watch = watch(args, side, planned).filter(|_| args.trace || !alone);
    let order = Order {
        suite,
        side,
        probe: probe.as_deref().map(|probe| (probe, scratch.path())),
        setting,
        scripts: &scripts,
        selected: &selected,
        isolate,
        jobs: if alone { NonZeroUsize::MIN } else { args.target.jobs() },
        idle: if args.target.jobs.is_some() || alone { 0 } else { IDLE_MOST },
        budget: args.target.budget(),
        spawn: &spawn,
        folder: folder.path(),
        stop: listening.clone(),
        watch: watch.as_deref(),
    };
    let recorded = recorded(&order, args, &command, &mut run);
    // The report follows on the same terminal.
    drop(watch);
    folder.write(&run)?;
    let forced = forced(recorded, listening)?;
    let source = Source::Run(folder.path().to_owned());
    let compares = args.compare && forced.is_none();
    let mut report = judge::report(&source, &run, suite, &args.judging, &selected, forced, &args.target.env)?;
    if compares {
        let facts = compare::Facts { source: &source, run: &run, suite, setting, scripts: &scripts };
        compare::tell(&mut report, &facts, &environment::secrets(&args.target.env))?;
    }
    Ok(Checked { report, folder })
}

/// What decides the exit code before any verdict does; `Err` where there is nothing to report.
pub(crate) fn forced(
    recorded: Result<(), RecordFault>,
    listening: &watch::Receiver<Stop>,
) -> Result<Option<Fault>, Fault> {
    let forced = match recorded {
        Ok(()) => None,
        Err(RecordFault::Spawn(fault)) => {
            return Err(Fault { code: exit::NOT_STARTED, says: fault.to_string() });
        }
        Err(fault @ RecordFault::Disk { .. }) => {
            Some(Fault { code: exit::NOT_WRITTEN, says: fault.to_string() })
        }
        Err(fault @ RecordFault::Links(_)) => Some(Fault { code: exit::OURS, says: fault.to_string() }),
    };
    Ok(forced.or_else(|| {
        let says = "interrupted: what is told here is partial".to_owned();
        (*listening.borrow() != Stop::No).then_some(Fault { code: exit::INTERRUPTED, says })
    }))
}

/// The program that each of our guests is, where a host is checked: started by somebody else, it cannot be named as our
/// own process is.
fn probe(side: Side) -> Result<Option<PathBuf>, Fault> {
    let ours = |error: io::Error| Fault {
        code: exit::OURS,
        says: format!("where sidecert itself is, nobody says: {error}"),
    };
    (side == Side::Host).then(|| std::env::current_exe().map_err(ours)).transpose()
}

/// What is started: the command, or a shim of ours before it.
fn spawn(
    args: &CheckArgs,
    driving: Option<&Driving>,
    shim: Vec<OsString>,
    command: &[OsString],
    env: Vec<(OsString, OsString)>,
) -> Result<Spawn, Fault> {
    let launcher = PathBuf::from("/proc/self/exe");
    let mut spawn = Spawn { argv: command.to_vec(), env, cwd: args.target.cwd.clone(), launcher };
    if let Some(driving) = driving {
        driving.can_start(&spawn)?;
    }
    spawn.argv.splice(..0, shim);
    spawn.argv = args.target.wrapped(&spawn.argv)?;
    Ok(spawn)
}

/// What the run calls its target: its command, or its driver where there is none.
fn argv(command: &[OsString], driving: Option<&Driving>) -> Vec<String> {
    let by_hand = driving.filter(|_| command.is_empty()).map(|driving| driving.driver.name().to_owned());
    by_hand.into_iter().chain(command.iter().map(|word| word.to_string_lossy().into_owned())).collect()
}

/// What is played for these requirements, and what the user gave.
fn planned(
    suite: &Suite,
    side: Side,
    selected: &BTreeSet<String>,
    setting: &Setting<'_>,
) -> Vec<&'static ScriptDef> {
    let rows = suite.rows(side).filter(|row| {
        selected.contains(row.id)
            && row.holds.editions & suite.edition != 0
            && row.holds.facts.iter().all(|fact| setting.contract.has(*fact))
    });
    // What the target will declare is not known yet; what the user gave is, and nothing is started for the rest.
    let met = |need: &Need| matches!(need, Need::Declared(_)) || setting.meets(*need);
    let mut scripts = suite.scripts(rows);
    scripts.retain(|script| script.needs.iter().all(met));
    scripts.extend(scripts::planned(setting.given));
    scripts
}

/// Records, and hashes the program beside that: a big one takes a while to read.
fn recorded(
    order: &Order<'_>,
    args: &CheckArgs,
    command: &[OsString],
    run: &mut Run,
) -> Result<(), RecordFault> {
    thread::scope(|scope| {
        let hashing =
            scope.spawn(|| command.first().and_then(|program| sha256(program, args.target.cwd.as_deref())));
        let (recordings, recorded) = record(order);
        run.processes = recordings;
        run.executable_sha256 = hashing.join().unwrap_or(None);
        recorded
    })
}

/// What people are shown while so many scripts are played.
fn watch(args: &CheckArgs, side: Side, scripts: usize) -> Option<Box<dyn Watch>> {
    if args.trace {
        return Some(Box::new(Trace::new(side, &environment::secrets(&args.target.env))));
    }
    let progress = if args.judging.quiet { None } else { Progress::on_terminal(scripts) };
    progress.map(|progress| Box::new(progress) as Box<dyn Watch>)
}

/// Whether every provocation names a point that the contract has: our own frames are held to it.
fn provocable(
    provocations: &BTreeMap<String, String>,
    contract: &Contract,
    file: Option<&Path>,
) -> Result<(), Fault> {
    for (name, frame) in provocations {
        let tape = Tape::scan(frame.as_bytes()).ok();
        let event = tape.as_ref().and_then(|tape| tape.root().get("event")).and_then(|event| event.as_str());
        if let Some(event) = event
            && !contract.events.iter().any(|known| *known == event)
        {
            let hint = select::did_you_mean(&event, contract.events.iter().map(String::as_str));
            let file = file.map(|file| format!(" {}", file.display())).unwrap_or_default();
            let says = format!("{name}: {event:?} is no event of this protocol{hint}");
            return Err(Fault::usage(format!("--provoke{file}: {says}")));
        }
    }
    Ok(())
}

/// The manifest as text, if it is one JSON object.
fn manifest(path: &Path) -> Result<String, Fault> {
    let fault = |says: String| Fault::usage(format!("--manifest {}: {says}", path.display()));
    let text = output::read_file(path).map_err(|error| fault(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| fault("it is not UTF-8".to_owned()))?;
    let object = match Tape::scan(text.as_bytes()) {
        Ok(tape) => (tape.root().kind() == Kind::Object).then(|| tape.root().raw().to_owned()),
        Err(bad) => return Err(fault(format!("no JSON: {bad}"))),
    };
    object.ok_or_else(|| fault("it is no JSON object".to_owned()))
}

fn exercised(suite: &Suite, args: &CheckArgs) -> Result<BTreeSet<String>, Fault> {
    for group in &args.exercise {
        if !suite.exercises.iter().any(|known| known.name == group) {
            let names: Vec<&str> = suite.exercises.iter().map(|known| known.name).collect();
            let hint = select::did_you_mean(group, names.iter().copied());
            let groups = if names.is_empty() { "none in this suite".to_owned() } else { names.join(", ") };
            let says = format!("--exercise {group}: the groups are {groups}{hint}");
            return Err(Fault::usage(says));
        }
    }
    let slow = args.slow.then(|| SLOW.to_owned());
    Ok(args.exercise.iter().cloned().chain(slow).chain(args.calls.groups()).collect())
}

/// The words of the command line that make the run what it is, and that a run does not tell otherwise.
fn options(args: &CheckArgs) -> Vec<String> {
    let config = || args.configured.config.clone().unwrap_or_else(|| PathBuf::from(config::FILE));
    let provoke = args.provocations.is_some() && args.provoke.is_none();
    let files = [
        ("--config", provoke.then(config).as_deref()),
        ("--contract", args.contract.file.as_deref()),
        ("--manifest", args.manifest.as_deref()),
        ("--provoke", args.provoke.as_deref()),
        ("--cwd", args.target.cwd.as_deref()),
    ]
    .map(|(option, path)| (option, path.map(|path| path.display().to_string())));
    let scripts = args.script.iter().map(|path| ("--script", Some(path.display().to_string())));
    let millis = |time: Option<Duration>| time.map(|time| format!("{}ms", time.as_millis()));
    let texts = [
        ("--wrap", args.target.wrap.clone()),
        ("--start-timeout", millis(args.target.start_timeout)),
        ("--answer-timeout", millis(args.target.answer_timeout)),
    ];
    let given = files
        .into_iter()
        .chain(scripts)
        .chain(texts)
        .filter_map(|(option, value)| Some([option.to_owned(), value?]));
    // Values of the environment may be secrets, and have no place in a recording.
    let named = args.target.env.iter().map(|variable| {
        let variable = variable.to_string_lossy();
        variable.split_once('=').map_or(variable.to_string(), |(name, _)| format!("{name}=…"))
    });
    let environment = named.map(|variable| ["--env".to_owned(), variable]);
    let switches = [
        ("--env-all", args.target.env_all),
        ("--env-clear", args.target.env_clear),
        ("--isolate", args.isolate),
        ("--no-deadline", args.target.no_deadline),
        ("--slow", args.slow),
    ];
    let switches = switches.into_iter().filter(|(_, on)| *on).map(|(switch, _)| switch.to_owned());
    given.chain(environment).flatten().chain(switches).chain(args.calls.words()).collect()
}

fn drawn() -> Result<u64, Fault> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Fault::usage(format!("no seed can be drawn ({error}): give one with --seed")))?;
    Ok(u64::from_le_bytes(bytes))
}

pub(crate) fn scratch() -> Result<TempDir, Fault> {
    let made = tempfile::Builder::new().prefix("sidecert-").tempdir();
    made.map_err(|error| Fault::not_written("a temporary folder", &error))
}

/// The hash of the file that a program name stands for, if it can be found and read.
fn sha256(program: &OsStr, cwd: Option<&Path>) -> Option<String> {
    let path = Path::new(program);
    let found = if path.components().count() > 1 {
        Some(cwd.map_or_else(|| path.to_owned(), |folder| folder.join(path)))
    } else {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file())
    };
    let mut file = File::open(found?).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let mut digest = Digest::default();
    io::copy(&mut file, &mut DigestWriter(&mut digest)).ok()?;
    Some(digest.finish())
}

struct DigestWriter<'a>(&'a mut Digest);

impl io::Write for DigestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a run is recorded: in the user's folder, or in one that goes away unless something failed.
pub(crate) enum Folder {
    Theirs(PathBuf),
    Ours(TempDir),
}

impl Folder {
    pub(crate) fn of(asked: Option<&Path>) -> Result<Self, Fault> {
        let Some(path) = asked else { return Ok(Self::Ours(scratch()?)) };
        let fault = |error: io::Error| Fault::not_written(&format!("--record {}", path.display()), &error);
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    let says = format!(
                        "--record {}: the folder is not empty; a run needs one of its own",
                        path.display()
                    );
                    return Err(Fault::usage(says));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fault)?;
            }
            Err(error) => return Err(Fault::usage(format!("--record {}: {error}", path.display()))),
        }
        Ok(Self::Theirs(path.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Theirs(path) => path,
            Self::Ours(folder) => folder.path(),
        }
    }

    pub(crate) fn write(&self, run: &Run) -> Result<(), Fault> {
        output::write_private_file(&self.path().join(run::FILE), &run.write())
    }

    /// Keeps a folder of ours, and says where it is, or removes it.
    pub(crate) fn keep_if(self, keep: bool) {
        if let Self::Ours(folder) = self
            && keep
        {
            let path = folder.keep();
            output::complain(&format!("the recording is kept in {}", path.display()));
        }
    }
}
