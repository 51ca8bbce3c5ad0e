//! The command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use sidecert_cases::SUITES;
use sidecert_proto::suite::Suite;
use sidecert_proto::verdict::Profile;

use crate::calls::CallArgs;
use crate::commands::document::DocumentArgs;
use crate::contract::Source;
use crate::exit;
use crate::select::did_you_mean;
use crate::shims::reasonix_cli::Mode;

/// Says whether a guest or a host of a plugin protocol does what its specification asks: which requirements hold, which
/// do not, where they are written, and which frames show it.
#[derive(Debug, Parser)]
#[command(name = "sidecert", version, max_term_width = 100, after_help = exit::TABLE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a program against a suite.
    Check {
        #[command(subcommand)]
        target: CheckTarget,
    },
    /// Write a conforming program to start from, and what checks it.
    Init {
        #[command(subcommand)]
        side: InitSide,
    },
    /// Judge a recorded run again, or what somebody else recorded.
    Judge(JudgeArgs),
    /// Send what was sent in a recording to a guest again, and compare what it says: 1 where that differs.
    Replay(Box<ReplayArgs>),
    /// Make a script, which `check --script` plays.
    Script {
        #[command(subcommand)]
        what: ScriptCommand,
    },
    /// Write a recording again without what was written in it: prompts, messages, contents, paths.
    Redact(RedactArgs),
    /// Stand where a guest stands, relay between its host and it, and record what passes.
    Tap(TapArgs),
    /// Be a conforming program, or a flawed one.
    Mock {
        #[command(subcommand)]
        side: MockSide,
    },
    /// Be the guest of a host that is checked, remote-controlled. The host starts it, and nobody else.
    #[command(hide = true)]
    Probe(ProbeArgs),
    /// Be what makes a host that is known do what `check host` says.
    Shim {
        #[command(subcommand)]
        host: ShimSide,
    },
    /// Look at a protocol's contract, check one, or say what changed between two: for the CI of a protocol.
    Contract {
        #[command(subcommand)]
        what: ContractCommand,
    },
    /// Explain one requirement: what it asks and why, how it is checked, what keeps it and what breaks it.
    Explain(ExplainArgs),
    /// List what there is.
    List(ListArgs),
    /// Print a script with which a shell completes all this: `source <(sidecert completions bash)`.
    Completions {
        /// For which.
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckTarget {
    /// Check a guest: a sidecar, a plugin, an app.
    #[command(visible_alias = "sidecar", visible_alias = "plugin", after_help = exit::TABLE)]
    Guest(Box<CheckArgs>),
    /// Check a host, which a driver makes act and which launches guests of ours.
    #[command(after_help = exit::TABLE)]
    Host(Box<CheckArgs>),
    /// Check a document on its own: a schema of a tool, or the tools that a plugin lists. Nothing is started.
    #[command(after_help = exit::DOCUMENT_TABLE)]
    Document(DocumentArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShimSide {
    /// Of the released Reasonix CLI, in homes that are thrown away.
    ReasonixCli(ReasonixCliArgs),
    /// Of any host: a person at the terminal does what is asked for.
    Manual(ManualArgs),
    /// Of any host: it is asked for nothing, and a command of its own, or a person, lets it run.
    None(VisitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ManualArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// How much there will be to do in the whole run.
    #[arg(long, value_name = "N")]
    pub(crate) asks: Option<u64>,
    /// The process to interrupt when the person wants no more.
    #[arg(long, value_name = "PID")]
    pub(crate) stops: Option<i32>,
    /// The host, as it is started: it is shown.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct VisitArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// What lets the host run, to its end. In its words {plugins} stands for the folder with our plugins. Without it, a
    /// person at the terminal does it.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Where a shim asks a person, and puts what is for them.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The terminal. By default the one that this is started on.
    #[arg(long, value_name = "PATH")]
    pub(crate) terminal: Option<PathBuf>,
    /// The folder for our plugins. By default the one that sidecert gives a shim.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReasonixCliArgs {
    /// In which way the CLI is told what to do. Each can do other things: acp most of the user's, serve also forms,
    /// compaction and another conversation, run only turns.
    #[arg(long, value_enum, default_value_t = Mode::Acp)]
    pub(crate) mode: Mode,
    /// The CLI, by its path.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: PathBuf,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct CheckArgs {
    /// What to check against; `sidecert list suites` names all. Needed unless the file for --config says it.
    #[arg(long, value_parser = suite)]
    pub(crate) suite: Option<&'static Suite>,
    #[command(flatten)]
    pub(crate) configured: Configured,
    #[command(flatten)]
    pub(crate) judging: Judging,
    #[command(flatten)]
    pub(crate) contract: ContractArg,
    /// The manifest of the guest that is checked: it is offered exactly what that declares. Without it, it is offered
    /// everything.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// A TOML file whose `provoke` table says which frames make the guest that is checked do what no frame can order.
    #[arg(long, value_name = "FILE")]
    pub(crate) provoke: Option<PathBuf>,
    #[arg(long, value_name = "GROUP", value_delimiter = ',', help = exercises())]
    pub(crate) exercise: Vec<String>,
    #[command(flatten)]
    pub(crate) calls: CallArgs,
    /// Play this script as well, and fail if it cannot be played to its end: a text as `script from` writes it. Given
    /// several times, several.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Vec<PathBuf>,
    /// Start the target anew for every script. By default those that leave a connection whole share a process, and are
    /// played again alone where anything but green shows: so this changes no verdict, only how often it is started.
    #[arg(long)]
    pub(crate) isolate: bool,
    /// Where all randomness comes from: up to 16 hexadecimal digits. Drawn and printed if absent.
    #[arg(long, value_name = "HEX", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// What makes a host under test act; docs/drivers.md says more. shim: COMMAND speaks the protocol of docs/host-shim.md
    /// itself. reasonix-cli: COMMAND is the released Reasonix CLI, told by `acp`; reasonix-cli:serve tells it by `serve`,
    /// reasonix-cli:run by `run`, a turn at a time.
    /// manual: you do what the terminal says; COMMAND may be left out. none: COMMAND, an end-to-end test of the host's own,
    /// lets it run with the plugins in {plugins}, and what happens is judged; without COMMAND you do it.
    #[arg(long, value_name = "DRIVER", value_parser = driver)]
    pub(crate) driver: Option<Driver>,
    /// Play the same to the reference host as well, and show where a host under test does something else: no fault by
    /// itself, and no verdict depends on it.
    #[arg(long)]
    pub(crate) compare: bool,
    /// Play also what takes as long as a time limit of the protocol.
    #[arg(long)]
    pub(crate) slow: bool,
    /// Show every event on standard error while the check runs: process, script, time, direction, frame.
    #[arg(long)]
    pub(crate) trace: bool,
    /// The provocations that a file for --config holds itself.
    #[arg(skip)]
    pub(crate) provocations: Option<BTreeMap<String, String>>,
}

/// What makes a host under test act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The command itself speaks the protocol.
    Shim,
    /// A shim of ours, before the released CLI.
    ReasonixCli(Mode),
    /// A person.
    Manual,
    /// Nobody: the command lets the host run, or a person does.
    None,
}

/// Every driver, and its name on the command line.
pub(crate) const DRIVERS: [(&str, Driver); 7] = [
    ("shim", Driver::Shim),
    ("reasonix-cli", Driver::ReasonixCli(Mode::Acp)),
    ("reasonix-cli:acp", Driver::ReasonixCli(Mode::Acp)),
    ("reasonix-cli:run", Driver::ReasonixCli(Mode::Run)),
    ("reasonix-cli:serve", Driver::ReasonixCli(Mode::Serve)),
    ("manual", Driver::Manual),
    ("none", Driver::None),
];

impl Driver {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        DRIVERS.iter().find(|(_, driver)| *driver == self).map_or("", |(name, _)| name)
    }

    /// Whether it needs no command.
    pub(crate) fn is_by_hand(self) -> bool {
        matches!(self, Self::Manual | Self::None)
    }

    /// The words of our own command line that make it, those of the user's command aside; none where the user's command
    /// is the driver.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Shim => &[],
            Self::ReasonixCli(Mode::Acp) => &["shim", "reasonix-cli", "--mode", "acp"],
            Self::ReasonixCli(Mode::Run) => &["shim", "reasonix-cli", "--mode", "run"],
            Self::ReasonixCli(Mode::Serve) => &["shim", "reasonix-cli", "--mode", "serve"],
            Self::Manual => &["shim", "manual"],
            Self::None => &["shim", "none"],
        }
    }
}

fn driver(name: &str) -> Result<Driver, String> {
    let found = DRIVERS.iter().find(|(known, _)| *known == name).map(|(_, driver)| *driver);
    found.ok_or_else(|| {
        let names = DRIVERS.map(|(name, _)| name);
        format!("the drivers are {}{}", names.join(", "), did_you_mean(name, names.into_iter()))
    })
}

/// The program that is started, and how.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Pass this variable on although it looks like a secret, or set it: NAME or NAME=VALUE.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,
    /// Pass every variable on, those that look like secrets too.
    #[arg(long, conflicts_with = "env_clear")]
    pub(crate) env_all: bool,
    /// Pass no variable on, but those that --env names.
    #[arg(long)]
    pub(crate) env_clear: bool,
    /// Where the target runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// A command to put in front of the target's, a sandbox for example.
    #[arg(long, value_name = "CMD")]
    pub(crate) wrap: Option<String>,
    /// How many processes run at once.
    #[arg(long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// How long the target may take for its first answer, 30s for example. By default 5 s without a single byte end it.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) start_timeout: Option<Duration>,
    /// How long any other answer may take. By default 20 times what the first one took, at least 1 s, at most 5 s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) answer_timeout: Option<Duration>,
    /// Wait for answers as long as they take: for a target in a debugger.
    #[arg(long)]
    pub(crate) no_deadline: bool,
    /// Keep the recording in this folder, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// The target and its arguments, as they are: no shell reads them.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Where the options come from that the command line leaves open.
#[derive(Debug, Args)]
pub(crate) struct Configured {
    /// A file whose keys are the long options, and `target`, the command. By default sidecert.toml, if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Read no such file.
    #[arg(long, conflicts_with_all = ["config", "use_table"])]
    pub(crate) no_config: bool,
    /// What [use.NAME] says in that file overrides the rest of it. By default ci where CI is set, and else local.
    #[arg(long = "use", value_name = "NAME")]
    pub(crate) use_table: Option<String>,
}

/// The help of `--exercise`: the groups of all suites, and what is done for each.
fn exercises() -> String {
    let mut groups: Vec<String> = Vec::new();
    for exercise in SUITES.iter().flat_map(|suite| suite.exercises) {
        let group = format!("{}: {}", exercise.name, exercise.says);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    format!(
        "Let us do what may have effects outside of the run or cost money, one group or several with commas between \
         them. Without it, what needs that is undecided, and the report says so. {}",
        groups.join("; ")
    )
}

/// What stands in the place of a contract that is built in.
#[derive(Debug, Args)]
pub(crate) struct ContractArg {
    /// The schema in force, instead of the suite's: a JSON document of the published form, a fork's for example.
    #[arg(long = "contract", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// What decides a verdict, and where it is reported.
#[derive(Debug, Args)]
pub(crate) struct Judging {
    /// Only these requirements: an id, a pattern such as 'reasonix/transport/*', or @FILE with one a line.
    #[arg(long, value_name = "GLOB")]
    pub(crate) only: Vec<String>,
    /// Not these requirements.
    #[arg(long, value_name = "GLOB")]
    pub(crate) skip: Vec<String>,
    /// Exit with 3 unless these pass.
    #[arg(long, value_name = "GLOB")]
    pub(crate) require: Vec<String>,
    /// specified: only the specification fails a target. reference: what the reference implementation does, too.
    #[arg(long, value_enum, default_value_t = ProfileArg::Specified)]
    pub(crate) profile: ProfileArg,
    /// Exit with 1 also where something only should hold, and does not. By default that is reported, and decides
    /// nothing.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write a report: json=PATH, junit=PATH, markdown=PATH or terminal=PATH; - is standard output, and what people read
    /// then goes to standard error.
    #[arg(long, value_name = "FORMAT=PATH", value_parser = report)]
    pub(crate) report: Vec<ReportTo>,
    /// Only the headline, and what failed.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Show what passed as well.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Debug, Args)]
#[command(after_help = exit::TABLE)]
pub(crate) struct JudgeArgs {
    /// What to judge against, where no run says it: for transcripts and logs.
    #[arg(long, value_parser = suite)]
    pub(crate) suite: Option<&'static Suite>,
    #[command(flatten)]
    pub(crate) judging: Judging,
    /// The schema that the run was recorded against, where neither this version nor the recording has it.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
    /// What the host wrote, a frame a line, where a log has a file for each direction.
    #[arg(long, value_name = "FILE", requires = "from_guest", conflicts_with = "run")]
    pub(crate) from_host: Option<PathBuf>,
    /// What the guest wrote.
    #[arg(long, value_name = "FILE", requires = "from_host", conflicts_with = "run")]
    pub(crate) from_guest: Option<PathBuf>,
    /// The folder of a recorded run; or transcripts, logs ({"dir":"host->guest","frame":…} a line) and folders of them.
    #[arg(value_name = "RECORDING", required_unless_present = "from_host")]
    pub(crate) run: Vec<PathBuf>,
}

/// A recording, and what is needed to read it.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    /// What it is a recording of, where no run says it: for transcripts and logs.
    #[arg(long, value_parser = suite)]
    pub(crate) suite: Option<&'static Suite>,
    #[command(flatten)]
    pub(crate) contract: ContractArg,
    /// Only this process of the run; by default all, or the only one. Given several times, several.
    #[arg(long, value_name = "NAME")]
    pub(crate) process: Vec<String>,
    /// The folder of a recorded run, a transcript, or a log ({"dir":"host->guest","frame":…} a line).
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = exit::TABLE)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) from: RecordingArgs,
    /// How many lines that are the same to show around those that differ.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) context: usize,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, Args)]
#[command(after_help = exit::TABLE)]
pub(crate) struct RedactArgs {
    #[command(flatten)]
    pub(crate) from: RecordingArgs,
    /// Where to write it, a folder for a run and a file for anything else. It must be new.
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: PathBuf,
    /// Keep the texts below this JSON pointer into a frame; `*` stands for any one name or index.
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    pub(crate) keep: Vec<String>,
    /// Whose texts to replace; of the other only those that this side wrote before.
    #[arg(long, value_enum, default_value_t = RedactSide::Both)]
    pub(crate) side: RedactSide,
}

/// Whose texts are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RedactSide {
    Host,
    Guest,
    Both,
}

fn pointer(text: &str) -> Result<String, String> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err("a JSON pointer begins with `/`".to_owned()) }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptCommand {
    /// From a recording: what the host's side did, and what it waited for.
    From(ScriptFromArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ScriptFromArgs {
    #[command(flatten)]
    pub(crate) from: RecordingArgs,
    /// What to call it; by default as the recording.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where to write it; by default to standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is the guest's; what ends it by a signal ends this by the same. 2: the command line is
wrong. 4: the guest could not be started.")]
pub(crate) struct TapArgs {
    /// Record in this file, which must be new: one that is there is never overwritten. `{pid}` in its name stands for the
    /// process id, for a host that starts its guests more than once. If it cannot be written, all is relayed as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: PathBuf,
    /// Which suite says how long a frame may be, and what --judge judges by; `sidecert list suites` names all.
    #[arg(long, value_parser = suite)]
    pub(crate) suite: Option<&'static Suite>,
    #[command(flatten)]
    pub(crate) contract: ContractArg,
    /// When the guest is gone, judge what it and its host did, and say what was wrong, a line each, on standard error.
    #[arg(long, requires = "suite")]
    pub(crate) judge: bool,
    /// Write these lines to a new file instead, even if there are none; {pid} in its name is as for --record.
    #[arg(long, value_name = "FILE", requires = "judge")]
    pub(crate) findings: Option<PathBuf>,
    /// The guest and its arguments, as they are: no shell reads them.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The exit code is what sidecert tells it. 2: the command line is wrong. 70: sidecert cannot be reached,
or is gone. docs/probe.md says more.")]
pub(crate) struct ProbeArgs {
    /// Which guest it is.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: String,
    /// Where sidecert listens, unix:PATH or tcp:127.0.0.1:PORT. By default the variable `SIDECERT_PROBE` says.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) at: Option<String>,
    /// The word that sidecert knows it by. By default the variable `SIDECERT_PROBE_TOKEN` has it.
    #[arg(long)]
    pub(crate) token: Option<String>,
    /// Tell the value of this variable as well. Given several times, several.
    #[arg(long, value_name = "NAME")]
    pub(crate) show: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InitSide {
    /// Write a guest: a sidecar, a plugin, an app. Files that are there already are never overwritten.
    #[command(visible_alias = "sidecar", visible_alias = "plugin")]
    Guest(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// In which language.
    #[arg(long, value_enum)]
    pub(crate) language: Language,
    /// Where.
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Python,
    Node,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MockSide {
    /// Be a guest on standard input and output.
    #[command(visible_alias = "sidecar", visible_alias = "plugin")]
    Guest {
        /// Of which suite.
        #[arg(long, value_parser = suite)]
        suite: &'static Suite,
        #[command(flatten)]
        contract: ContractArg,
        /// With this flaw; `sidecert list flaws` names them.
        #[arg(long, value_name = "NAME")]
        flaw: Option<String>,
    },
    /// Be a host: the reference host, behind the shim of docs/host-shim.md on standard input and output.
    Host {
        /// Of which suite.
        #[arg(long, value_parser = suite)]
        suite: &'static Suite,
        #[command(flatten)]
        contract: ContractArg,
        /// With this flaw; `sidecert list flaws` names them.
        #[arg(long, value_name = "NAME")]
        flaw: Option<String>,
        /// Do as the released implementation does wherever it and the specification part.
        #[arg(long)]
        released: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// Print a contract in canonical form, or for people.
    #[command(after_help = exit::CONTRACT_TABLE)]
    Show {
        /// Which: a suite, a file of the published form, or - for standard input.
        #[arg(value_name = "WHAT")]
        what: Source,
        /// How to write it.
        #[arg(long, value_enum, default_value_t = ShowFormat::Canonical)]
        format: ShowFormat,
        /// When to use colours.
        #[arg(long, value_enum, default_value_t = Color::Auto)]
        color: Color,
    },
    /// Print the SHA-256 of a JSON file's canonical form: compact, names sorted, UTF-8, no final line feed.
    #[command(after_help = exit::CONTRACT_TABLE)]
    Hash {
        /// Of which: any JSON file, a suite, or - for standard input.
        #[arg(value_name = "FILE")]
        what: Source,
    },
    /// Say everything that is wrong with a contract file, one line each.
    #[command(after_help = exit::CONTRACT_TABLE)]
    Check {
        /// Which: a file, or - for standard input.
        #[arg(value_name = "FILE")]
        what: Source,
    },
    /// Say what changed between two contracts, and what breaks peers that know only one of them.
    #[command(after_help = exit::CONTRACT_TABLE)]
    Diff(ContractDiffArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ContractDiffArgs {
    /// The older one: a suite, a file, or - for standard input.
    #[arg(value_name = "OLD")]
    pub(crate) old: Source,
    /// The newer one.
    #[arg(value_name = "NEW")]
    pub(crate) new: Source,
    /// Exit with 1 for what breaks even if the two are of different major versions, between which it may.
    #[arg(long)]
    pub(crate) same_major: bool,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub(crate) format: ListFormat,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// JSON, compact, names sorted: what the hash is of.
    Canonical,
    /// What is in it, for people.
    Table,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Which: an id, the end of one, or a pattern that only one matches.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// As this suite has it. By default the first suite that has it.
    #[arg(long, value_parser = suite)]
    pub(crate) suite: Option<&'static Suite>,
    #[command(flatten)]
    pub(crate) contract: ContractArg,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list.
    #[arg(value_enum)]
    pub(crate) what: What,
    /// Of this suite only.
    #[arg(long, value_parser = suite)]
    pub(crate) suite: Option<&'static Suite>,
    #[command(flatten)]
    pub(crate) contract: ContractArg,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = ListFormat::Table)]
    pub(crate) format: ListFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// What a target can be checked against.
    Suites,
    /// What is checked.
    Requirements,
    /// What mocks can do wrong.
    Flaws,
    /// What our side does.
    Scripts,
    /// What a provocation file can say.
    Provocations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArg {
    Specified,
    Reference,
}

impl From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Specified => Self::Specified,
            ProfileArg::Reference => Self::Reference,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// Where a report goes.
#[derive(Clone, Debug)]
pub(crate) struct ReportTo {
    pub(crate) format: ReportFormat,
    /// `None` is standard output.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Json,
    Junit,
    Markdown,
    Terminal,
}

fn suite(name: &str) -> Result<&'static Suite, String> {
    sidecert_cases::suite(name).ok_or_else(|| {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        format!("the suites are {}{}", names.join(", "), did_you_mean(name, names.iter().copied()))
    })
}

fn report(text: &str) -> Result<ReportTo, String> {
    let (format, path) = text.split_once('=').ok_or("it is FORMAT=PATH, json=report.json for example")?;
    let format = match format {
        "json" => ReportFormat::Json,
        "junit" => ReportFormat::Junit,
        "markdown" => ReportFormat::Markdown,
        "terminal" => ReportFormat::Terminal,
        _ => return Err("the formats are json, junit, markdown and terminal".to_owned()),
    };
    if path.is_empty() {
        return Err("the path is missing; - is standard output".to_owned());
    }
    Ok(ReportTo { format, path: (path != "-").then(|| path.into()) })
}

fn seed(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| "a seed is up to 16 hexadecimal digits".to_owned())
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs: usize = text.parse().map_err(|_| "it is a whole number".to_owned())?;
    NonZeroUsize::new(jobs).ok_or_else(|| "at least one process must run".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let time = parsed.ok().and_then(|time| Duration::try_from(time).ok()).filter(|time| !time.is_zero());
    time.ok_or_else(|| "a time is 500ms, 2s or 1m for example, and more than nothing".to_owned())
}
