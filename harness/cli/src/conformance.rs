//! A suite as tests of your project: each requirement is one that `cargo test` lists, selects and reports.
//!
//! In `Cargo.toml`, `[[test]] name = "conformance"` and `harness = false`; in `tests/conformance.rs`:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     sidecert::conformance::guest("reasonix-v2", ["./my-guest"])
//!         .manifest("reasonix-plugin.json")
//!         .exercise("all")
//!         .main()
//! }
//! ```
//!
//! The check is that of `sidecert check guest`, and each option means what it means there. It is made once, before the
//! tests are reported, and plays only what is needed for those that are selected; `--list` starts nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use sidecert_proto::contract::Side;
use sidecert_reports::{Level, Report, Requirement, Verdict, Why, safe, terminal};
use sidecert_runner::{Stop, launch, stop};

use crate::args::{CheckArgs, CheckTarget, Command};
use crate::commands::{check, judge};
use crate::config::Settled;
use crate::exit::{self, Fault};
use crate::{heard, output, parsed, select, settled};

/// How wide a report for people is that goes to a file, in columns.
const WIDTH: usize = 100;
/// The exit code of test programs in which a test failed.
const TESTS_FAILED: u8 = 101;

/// The tests of a guest: a sidecar, a plugin, an app. `suite` is what it is checked against, `command` its program and
/// arguments, as they are: no shell reads them.
pub fn guest<W: Into<OsString>>(suite: &str, command: impl IntoIterator<Item = W>) -> Guest {
    let tests = Guest {
        options: Vec::new(),
        config: "--no-config".into(),
        command: command.into_iter().map(Into::into).collect(),
    };
    tests.with("suite", suite)
}

/// The tests of a guest, and how its check is made. Paths start where the tests run: at the package's folder.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until `main` is called"]
pub struct Guest {
    options: Vec<OsString>,
    config: OsString,
    command: Vec<OsString>,
}

impl Guest {
    /// The schema in force, instead of the suite's.
    pub fn contract(self, file: impl AsRef<Path>) -> Self {
        self.with("contract", file.as_ref())
    }

    /// The guest's manifest: it is offered exactly what that declares.
    pub fn manifest(self, file: impl AsRef<Path>) -> Self {
        self.with("manifest", file.as_ref())
    }

    /// A TOML file that says which frames make this guest do what no frame can order.
    pub fn provoke(self, file: impl AsRef<Path>) -> Self {
        self.with("provoke", file.as_ref())
    }

    /// Allows a group of what may have effects or cost money; `all` allows every one.
    pub fn exercise(self, group: &str) -> Self {
        self.with("exercise", group)
    }

    /// `specified`, or `reference`: what only the reference implementation does is demanded then, too.
    pub fn profile(self, profile: &str) -> Self {
        self.with("profile", profile)
    }

    /// What should hold and does not fails its test. Without it, it is told on standard error.
    pub fn strict(self) -> Self {
        self.option("--strict")
    }

    /// Only these requirements are tests: an id, or a pattern such as `reasonix/transport/*`.
    pub fn only(self, pattern: &str) -> Self {
        self.with("only", pattern)
    }

    /// These requirements are no tests.
    pub fn skip(self, pattern: &str) -> Self {
        self.with("skip", pattern)
    }

    /// These must pass: their tests fail where they would be ignored.
    pub fn require(self, pattern: &str) -> Self {
        self.with("require", pattern)
    }

    /// Plays a script of yours as well, which must come to its end.
    pub fn script(self, file: impl AsRef<Path>) -> Self {
        self.with("script", file.as_ref())
    }

    /// Where all randomness comes from.
    pub fn seed(self, seed: u64) -> Self {
        self.with("seed", format!("{seed:x}"))
    }

    /// Passes a variable on although it looks like a secret (`NAME`), or sets it (`NAME=VALUE`).
    pub fn env(self, variable: impl AsRef<OsStr>) -> Self {
        self.with("env", variable)
    }

    /// Where the guest runs.
    pub fn cwd(self, folder: impl AsRef<Path>) -> Self {
        self.with("cwd", folder.as_ref())
    }

    /// How long the guest may take for its first answer.
    pub fn start_timeout(self, time: Duration) -> Self {
        self.with("start-timeout", format!("{}ms", time.as_millis()))
    }

    /// How long it may take for any other.
    pub fn answer_timeout(self, time: Duration) -> Self {
        self.with("answer-timeout", format!("{}ms", time.as_millis()))
    }

    /// Keeps the recording in this folder, which must be new or empty.
    pub fn record(self, folder: impl AsRef<Path>) -> Self {
        self.with("record", folder.as_ref())
    }

    /// Writes a report as well: `json=PATH`, `junit=PATH`, `markdown=PATH` or `terminal=PATH`.
    pub fn report(self, format_and_path: &str) -> Self {
        self.with("report", format_and_path)
    }

    /// What is left open here, this `sidecert.toml` says. Without it, none is read.
    pub fn config(self, file: impl AsRef<Path>) -> Self {
        Self { config: word("config", file.as_ref().as_os_str()), ..self }
    }

    /// Any other option of `sidecert check guest`, as one word: `--wrap=CMD`, `--isolate`.
    pub fn option(mut self, option: impl Into<OsString>) -> Self {
        self.options.push(option.into());
        self
    }

    fn with(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.option(word(name, value.as_ref()))
    }

    /// Is the test program: call it in `main` before anything else, and end with what it returns.
    ///
    /// It reads the words that `cargo test` passes on. The code is 0 if nothing failed, 101 if a test did; if there was
    /// no check, it is one of those of `sidecert check`, and one line on standard error says why. A guest is started by
    /// way of this same executable, which is why `main` must come first.
    pub fn main(self) -> ExitCode {
        let mut words = std::env::args_os().skip(1);
        if words.next().is_some_and(|word| word == launch::WORD) {
            return launch::main(words);
        }
        let code = self.tested(&Arguments::from_args()).unwrap_or_else(|fault| {
            output::complain(&fault.to_string());
            fault.code
        });
        code.into()
    }

    fn tested(self, arguments: &Arguments) -> Result<u8, Fault> {
        let mut settled = self.settled()?;
        Tests::of(arguments, &settled.args)
            .and_then(|tests| tests.run(&mut settled.args))
            .map_err(|fault| settled.attribute(fault))
    }

    fn settled(self) -> Result<Settled, Fault> {
        let mut words: Vec<OsString> = ["sidecert", "check", "guest"].map(OsString::from).into();
        words.push(self.config);
        words.extend(self.options);
        words.push("--".into());
        words.extend(self.command);
        let (cli, matches) = parsed(&words).map_err(|error| {
            let says = error.to_string();
            let first = says.lines().next().unwrap_or_default();
            Fault::usage(first.strip_prefix("error: ").unwrap_or(first))
        })?;
        match cli.command {
            Command::Check { target: CheckTarget::Guest(args) } => settled(args, &words, &matches),
            _ => Err(Fault { code: exit::OURS, says: "a check is no check".to_owned() }),
        }
    }
}

fn word(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value);
    word
}

/// The tests: one for each requirement that the options leave, in the order of the suite.
struct Tests<'a> {
    arguments: &'a Arguments,
    ids: Vec<&'static str>,
    required: BTreeSet<String>,
}

impl<'a> Tests<'a> {
    fn of(arguments: &'a Arguments, args: &CheckArgs) -> Result<Self, Fault> {
        let suite = check::suite(args)?;
        let selected = select::selected(suite, Side::Guest, &args.judging)?;
        let required = select::required(suite, Side::Guest, &args.judging)?;
        let ids = suite.rows(Side::Guest).map(|row| row.id).filter(|id| selected.contains(*id));
        Ok(Self { arguments, ids: ids.collect(), required })
    }

    fn run(&self, args: &mut CheckArgs) -> Result<u8, Fault> {
        // Which will be ignored is not known yet: only names count here.
        let is_wanted = |id: &&str| !self.arguments.is_filtered_out(&unplayed(id).with_ignored_flag(true));
        let wanted: Vec<String> = self.ids.iter().copied().filter(is_wanted).map(str::to_owned).collect();
        if self.arguments.list || self.arguments.bench || wanted.is_empty() {
            let trials = self.ids.iter().map(|id| unplayed(id)).collect();
            let conclusion = libtest_mimic::run(self.arguments, trials);
            return Ok(if conclusion.has_failed() { TESTS_FAILED } else { exit::OK });
        }
        if args.judging.report.iter().any(|to| to.path.is_none()) {
            return Err(Fault::usage("--report: standard output is the tests' own; name a file"));
        }
        (args.judging.only, args.judging.skip) = (wanted, Vec::new());
        // That is a matter of each test, as far as it is run.
        args.judging.require.clear();
        let listening = heard(stop::listen())?;
        let checked = check::checked(args, Side::Guest, &listening)?;
        judge::write_asked(&checked.report, &args.judging, WIDTH)?;
        if *listening.borrow() != Stop::No {
            return Ok(checked.settle_aloud());
        }
        let report = &checked.report;
        let trials = self.ids.iter().map(|id| match report.requirements.iter().find(|row| row.id == *id) {
            Some(row) => self.trial(report, row),
            None => unplayed(id),
        });
        let failed = libtest_mimic::run(self.arguments, trials.collect()).has_failed();
        for row in report.requirements.iter().filter(|row| self.is_told(report, row)) {
            output::print_to_stderr(&format!("\n{}", terminal::requirement_text("WARN", row)))?;
        }
        Ok(match report.outcome.exit_code {
            exit::OK => {
                checked.settle();
                if failed { TESTS_FAILED } else { exit::OK }
            }
            exit::FAILED | exit::UNDECIDED if failed => {
                checked.settle();
                TESTS_FAILED
            }
            // More than any requirement says: a script that did not come to its end, a recording that is cut off.
            _ => checked.settle_aloud(),
        })
    }

    /// The test that tells what was found.
    fn trial(&self, report: &Report, row: &Requirement) -> Trial {
        let asked_for = self.arguments.ignored || self.arguments.include_ignored;
        let remark = safe::escape(&row.remark()).into_owned();
        let required = self.required.contains(&row.id);
        let found: Result<Completion, Failed> = match row.verdict {
            Verdict::Fail if is_demanded(report, row) => Err(terminal::requirement_text("FAIL", row).into()),
            Verdict::Fail | Verdict::Warn if required => Err(terminal::requirement_text("WARN", row).into()),
            Verdict::Pass | Verdict::Fail | Verdict::Warn => Ok(Completion::Completed),
            Verdict::Undecided if row.why == Some(Why::CutShort) => {
                Err(cut_short(report, row, &remark).into())
            }
            Verdict::NotApplicable | Verdict::Undecided if required => {
                Err(format!("it is required, and did not pass: {remark}").into())
            }
            Verdict::NotApplicable => Ok(Completion::ignored_with(format!("not applicable: {remark}"))),
            // Who runs what is ignored wants it decided.
            Verdict::Undecided if asked_for => Err(remark.into()),
            Verdict::Undecided => Ok(Completion::ignored_with(remark)),
        };
        // Only `--ignored` needs the flag, which has no room for a reason.
        let is_ignored = matches!(row.verdict, Verdict::NotApplicable | Verdict::Undecided)
            && row.why != Some(Why::CutShort);
        Trial::ignorable_test(&row.id, move || found).with_ignored_flag(is_ignored && self.arguments.ignored)
    }

    /// Whether a requirement did not hold, and its test is green.
    fn is_told(&self, report: &Report, row: &Requirement) -> bool {
        let green = match row.verdict {
            Verdict::Fail => !is_demanded(report, row),
            verdict => verdict == Verdict::Warn,
        };
        green && !self.required.contains(&row.id)
    }
}

/// A test that is listed or filtered out.
fn unplayed(id: &str) -> Trial {
    Trial::test(id, || Ok(()))
}

/// Whether a failure makes the check fail.
fn is_demanded(report: &Report, row: &Requirement) -> bool {
    match row.level {
        Level::Must => true,
        Level::Should => report.strict,
        Level::May => false,
    }
}

/// All that there is to say with the first of those that a cause cut short, and where that is with the others.
fn cut_short(report: &Report, row: &Requirement, remark: &str) -> String {
    let cause = report.causes.iter().find(|cause| cause.cuts.contains(&row.id));
    match cause.map(|cause| (cause, cause.cuts.first())) {
        Some((cause, Some(first))) if *first == row.id => terminal::cause_text(cause),
        Some((_, Some(first))) => format!("{remark}\nsee {first}"),
        _ => remark.to_owned(),
    }
}
