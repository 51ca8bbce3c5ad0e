//! The adapters for the test runners of other languages, in those runners.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::{
    breaks, has, mock, program, requirements, selected, sidecert, skipped, stderr, stdout, workspace,
};
use tempfile::TempDir;

const SUITE: &str = "reasonix-v2";
const ONE: &str = "reasonix/envelope/string-id-refused";
/// What the tests need of the registry, as the registry calls it.
const PYTEST: &str = "pytest==8.4.2";
/// How long one answer of the registry may take, in seconds.
const REGISTRY_SECONDS: &str = "20";

#[derive(Clone, Copy, Debug)]
enum Runner {
    Pytest,
    Node,
}

/// What a runner was told to check, in a folder of its own.
struct Project {
    runner: Runner,
    folder: TempDir,
    program: PathBuf,
}

/// What a runner said.
#[derive(Debug, Default)]
struct Told {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    skipped: BTreeSet<String>,
    code: i32,
    text: String,
}

/// Those that there are here. What is missing is said aloud.
fn runners() -> Vec<Runner> {
    let mut runners = Vec::new();
    if python().is_some() {
        runners.push(Runner::Pytest);
    }
    if has("node") {
        runners.push(Runner::Node);
    } else {
        skipped("there is no `node`, so the adapter for node:test is not tested");
    }
    runners
}

/// A Python that has pytest: made once, and kept beside what cargo builds.
fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    PYTHON.get_or_init(installed).as_deref()
}

fn installed() -> Option<PathBuf> {
    if !has("python3") {
        skipped("there is no `python3`, so the adapter for pytest is not tested");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PYTEST.replace("==", "-"));
    let python = folder.join("bin/python");
    let works = |python: &Path| {
        let tried = Command::new(python).args(["-m", "pytest", "--version"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    if works(&python) {
        return Some(python);
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).output().unwrap();
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", REGISTRY_SECONDS, PYTEST])
        .output();
    if works(&python) {
        return Some(python);
    }
    let why = installed.map_or_else(|error| format!("{error}: {}", stdout(&made)), |output| stderr(&output));
    skipped(&format!("pytest could not be installed, so its adapter is not tested: {why}"));
    None
}

impl Project {
    /// A copy of the adapter that checks this guest.
    fn new(runner: Runner, command: &[String], options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Self { runner, folder, program: program() };
        // The notation of lists of texts is the same everywhere.
        let list = |words: &[&str]| serde_json::to_string(words).unwrap();
        let command = list(&command.iter().map(String::as_str).collect::<Vec<_>>());
        project.with(&match runner {
            Runner::Pytest => {
                format!("SUITE = {SUITE:?}\nCOMMAND = {command}\nOPTIONS = {}\n", list(options))
            }
            Runner::Node => format!(
                "import {{ certify }} from './sidecert.mjs';\n\
                 certify({{ suite: {SUITE:?}, command: {command}, options: {} }});\n",
                list(options)
            ),
        });
        project
    }

    /// Writes the adapter, with what is the user's in it.
    fn with(&self, yours: &str) {
        let write = |name: &str, text: &str| fs::write(self.folder.path().join(name), text).unwrap();
        match self.runner {
            Runner::Pytest => {
                let adapter =
                    fs::read_to_string(workspace().join("adapters/pytest/test_sidecert.py")).unwrap();
                let names: Vec<&str> =
                    yours.lines().filter_map(|line| line.split_once(" = ")).map(|it| it.0).collect();
                let is_replaced =
                    |line: &str| names.iter().any(|name| line.starts_with(&format!("{name} = ")));
                let mut lines: Vec<&str> = adapter.lines().filter(|line| !is_replaced(line)).collect();
                assert_eq!(lines.len() + names.len(), adapter.lines().count(), "{names:?}");
                let at = lines.iter().position(|line| line.starts_with("# ---- yours")).unwrap();
                lines.splice(at + 1..=at, yours.lines());
                write("test_sidecert.py", &(lines.join("\n") + "\n"));
            }
            Runner::Node => {
                let adapter = workspace().join("adapters/node/sidecert.mjs");
                fs::copy(adapter, self.folder.path().join("sidecert.mjs")).unwrap();
                write("conformance.test.mjs", yours);
            }
        }
    }

    /// Runs the tests.
    fn run(&self, words: &[&str]) -> Told {
        let mut command = match self.runner {
            Runner::Pytest => {
                let mut command = Command::new(python().unwrap());
                command.args(["-m", "pytest", "-v", "-p", "no:cacheprovider"]);
                // Else long names and reasons are cut where a terminal would end.
                command.env("COLUMNS", "2000");
                command
            }
            Runner::Node => {
                let mut command = Command::new("node");
                command.args(["--test", "--test-reporter=tap"]);
                command
            }
        };
        let scratch = tempfile::tempdir().unwrap();
        command.args(words).current_dir(self.folder.path()).env("SIDECERT", &self.program);
        command.env("TMPDIR", scratch.path()).env_remove("CI").env_remove("PYTEST_ADDOPTS");
        let output = command.output().unwrap();
        let mut told = Told { code: output.status.code().unwrap(), ..Told::default() };
        told.text = stdout(&output) + &stderr(&output);
        for line in stdout(&output).lines() {
            match self.runner {
                Runner::Pytest => told.pytest(line),
                Runner::Node => told.tap(line),
            }
        }
        told
    }

    /// What only the runner knows how to call.
    fn whole(&self) -> String {
        match self.runner {
            Runner::Pytest => "test_check_as_a_whole".to_owned(),
            Runner::Node => format!("{SUITE} as a whole"),
        }
    }
}

impl Told {
    /// `test_sidecert.py::test_requirement[NAME] PASSED`
    fn pytest(&mut self, line: &str) {
        let Some((name, verdict)) = line.strip_prefix("test_sidecert.py::").and_then(|it| it.split_once(' '))
        else {
            return;
        };
        let name = name.strip_prefix("test_requirement[").and_then(|it| it.strip_suffix(']')).unwrap_or(name);
        let tests = match verdict.split([' ', '(']).next() {
            Some("PASSED") => &mut self.passed,
            Some("FAILED") => &mut self.failed,
            Some("SKIPPED") => &mut self.skipped,
            _ => panic!("{line}"),
        };
        assert!(tests.insert(name.to_owned()), "twice: {line}");
    }

    /// `ok 1 - NAME # SKIP why`
    fn tap(&mut self, line: &str) {
        let (fails, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return,
        };
        let (_, rest) = rest.split_once(" - ").unwrap();
        let (name, remark) = rest.split_once(" # ").unwrap_or((rest, ""));
        let tests = match (fails, remark.starts_with("SKIP")) {
            (true, _) => &mut self.failed,
            (false, true) => &mut self.skipped,
            (false, false) => &mut self.passed,
        };
        assert!(tests.insert(name.to_owned()), "twice: {line}");
    }

    fn all(&self) -> BTreeSet<String> {
        [&self.passed, &self.failed, &self.skipped].into_iter().flatten().cloned().collect()
    }

    /// Whether some line says this, whatever the runner puts before it.
    fn says(&self, line: &str) -> bool {
        self.text.lines().any(|told| told.trim_start_matches(['#', 'E', ' ']) == line.trim_start())
    }

    /// No test is anything but what it should be, and nothing of ours is shown as the place of a failure.
    #[track_caller]
    fn fails(&self, failed: &BTreeSet<String>) {
        assert_eq!(&self.failed, failed, "{}", self.text);
        assert_eq!(self.code, i32::from(!failed.is_empty()), "{}", self.text);
        let traces = ["Traceback", "at file:", "at async ", "node:internal", "Captured std"];
        assert!(!traces.iter().any(|trace| self.text.contains(trace)), "{}", self.text);
    }
}

/// The guests that share no code with us, for the runner of their language.
fn guest(runner: Runner) -> Vec<String> {
    match runner {
        Runner::Pytest => support::python_guest("reasonix-v2"),
        Runner::Node => support::node_guest("reasonix-v2").unwrap(),
    }
}

fn set<S: Into<String>>(names: impl IntoIterator<Item = S>) -> BTreeSet<String> {
    names.into_iter().map(Into::into).collect()
}

#[test]
fn a_conforming_guest_is_green() {
    for runner in runners() {
        let project = Project::new(runner, &guest(runner), &["--exercise", "all"]);
        let told = project.run(&[]);
        told.fails(&BTreeSet::new());
        let mut expected = set(requirements(SUITE));
        expected.insert(project.whole());
        assert_eq!(told.all(), expected, "{runner:?}");
        assert!(told.passed.len() > 120 && told.passed.contains(&project.whole()), "{}", told.text);
        assert!(told.text.contains("unobservable: "), "{}", told.text);
    }
}

#[test]
fn a_flaw_is_the_failed_test_that_it_breaks() {
    for runner in runners() {
        let guest = mock(SUITE, Some("has-no-name"));
        let told = Project::new(runner, &guest, &["--seed", "1"]).run(&[]);
        told.fails(&breaks(SUITE, "has-no-name"));
        let words = ["check", "guest", "--suite", SUITE, "--seed", "1", "--"];
        let people = stdout(&sidecert(words.into_iter().chain(guest.iter().map(String::as_str))));
        // Times differ, and so may what a runner puts before a line; a frame that a busy machine took late has an
        // event more, so places differ too.
        let blocks = people.split("\n\n").filter(|block| block.starts_with("FAIL  "));
        let place = |line: &&str| line.contains(" ms ") || line.contains("seen in │ ");
        let lines = blocks.flat_map(str::lines).filter(|line| !place(line));
        let missing: Vec<&str> = lines.filter(|line| !told.says(line)).collect();
        assert!(missing.is_empty(), "{runner:?} {missing:#?}\n{}", told.text);
        assert!(told.text.contains("the recording is kept in "), "{}", told.text);
    }
}

#[test]
fn what_was_only_observed_is_a_warning() {
    let flaw = "refuses-blank-lines";
    let broken = breaks(SUITE, flaw);
    let heading = format!("WARN  {}", broken.first().unwrap());
    for runner in runners() {
        let options = ["--only", "reasonix/transport/*", "--profile"];
        let check = |profile: &str| {
            Project::new(runner, &mock(SUITE, Some(flaw)), &[&options[..], &[profile]].concat()).run(&[])
        };
        let told = check("specified");
        told.fails(&BTreeSet::new());
        assert!(told.passed.is_superset(&broken), "{}", told.text);
        assert!(
            told.text.contains(&heading) && told.text.contains("actual │ empty: refused"),
            "{}",
            told.text
        );
        check("reference").fails(&broken);
    }
}

#[test]
fn what_a_guest_cuts_short_fails_with_its_cause() {
    let guest = ["sh", "-c", "echo the reason >&2; exit 3"].map(str::to_owned);
    for runner in runners() {
        let told = Project::new(runner, &guest, &[]).run(&[]);
        assert!(told.failed.len() > 100, "{}", told.text);
        let whole = Project::new(runner, &guest, &[]).whole();
        assert_eq!(told.passed, set([whole]), "{}", told.text);
        let causes = told.text.lines().filter(|line| line.trim_start().starts_with("CUT SHORT  "));
        assert_eq!(causes.count(), 1, "{}", told.text);
        assert!(told.text.contains("look at │ its standard error"), "{}", told.text);
        assert!(told.text.contains("see reasonix/transport/only-frames"), "{}", told.text);
    }
}

#[test]
fn pytest_selects_and_plays_only_that() {
    let Some(_) = python() else { return };
    let envelope: Vec<String> =
        requirements(SUITE).into_iter().filter(|id| id.contains("/envelope/")).collect();
    let node = format!("test_sidecert.py::test_requirement[{ONE}]");
    for (words, expected) in [(&["-k", "envelope"][..], set(envelope)), (&[&node], set([ONE]))] {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let record = run.display().to_string();
        let told = Project::new(Runner::Pytest, &mock(SUITE, None), &["--record", &record]).run(words);
        told.fails(&BTreeSet::new());
        assert_eq!(told.all(), expected);
        // A second check would have failed: the folder is not empty.
        assert_eq!(selected(&run), expected);
    }
}

#[test]
fn pytest_collects_without_a_guest() {
    let Some(_) = python() else { return };
    let nobody = ["/no/such/guest".to_owned()];
    let told = Project::new(Runner::Pytest, &nobody, &[]).run(&["--collect-only", "-q", "-q"]);
    let tests = told.text.lines().filter_map(|line| line.strip_prefix("test_sidecert.py::test_requirement["));
    assert_eq!(set(tests.map(|line| line.trim_end_matches(']'))), set(requirements(SUITE)), "{}", told.text);
    assert_eq!(told.code, 0);
}

#[test]
fn node_runs_what_a_pattern_names() {
    if !has("node") {
        return skipped("there is no `node`, so the adapter for node:test is not tested");
    }
    let told = Project::new(Runner::Node, &mock(SUITE, None), &[])
        .run(&["--test-name-pattern", "/string-id-refused/"]);
    told.fails(&BTreeSet::new());
    assert_eq!(told.passed, set([ONE]), "{}", told.text);
}

#[test]
fn without_a_check_one_test_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    // Programs that do something else, where they are asked for a list and where they are for a check.
    let paths = "for word; do case $word in \
        --report=json=*) json=${word#--report=json=};; \
        --report=terminal=*) text=${word#--report=terminal=};; esac; done";
    let instead = |name: &str, lists: &str, checks: &str| {
        let path = scratch.path().join(name);
        let text = format!("#!/bin/sh\nif [ $1 = list ]; then {lists}; fi\n{paths}\n{checks}\n");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let lists = format!("exec '{}' \"$@\"", program().display());
    let fault = "echo 'sidecert: a fault of ours' >&2; exit 70";
    let faulty = instead("faulty", &lists, fault);
    let faulty_list = instead("faulty-list", fault, "");
    let no_list = instead("no-list", "echo '['; exit", "");
    let no_report = instead("no-report", &lists, "echo '{' > $json; : > $text");
    let fault = "exit code 70\nsidecert: a fault of ours";
    let nobody = vec!["/no/such/guest".to_owned()];
    let there = mock(SUITE, None);
    for runner in runners() {
        for (program, guest, options, says) in [
            ("/no/such/sidecert".into(), &there, &[][..], "/no/such/sidecert cannot be run"),
            (program(), &nobody, &[], "exit code 4\nsidecert: \"/no/such/guest\" does not exist"),
            (
                program(),
                &there,
                &["--exercise", "everything"],
                "exit code 2\nsidecert: --exercise everything",
            ),
            (program(), &there, &["--contract", "/no/such/file"], "exit code 2\nsidecert: --contract"),
            (faulty.clone(), &there, &[], fault),
            (faulty_list.clone(), &there, &[], fault),
            (no_list.clone(), &there, &[], "the list of sidecert is no JSON"),
            (no_report.clone(), &there, &[], "the report of sidecert is no JSON"),
        ] {
            let project = Project { program, ..Project::new(runner, guest, options) };
            let told = project.run(&[]);
            assert_eq!((told.failed.len(), told.passed.len()), (1, 0), "{says}: {}", told.text);
            told.fails(&told.failed);
            let text: Vec<&str> = told.text.lines().map(str::trim).collect();
            assert!(text.join("\n").contains(says), "{says}: {}", told.text);
        }
    }
}

#[test]
fn what_no_requirement_shows_fails_the_check_as_a_whole() {
    let unobservable = "reasonix/transport/memory-bounded";
    for runner in runners() {
        let project = Project::new(
            runner,
            &mock(SUITE, None),
            &["--only", unobservable, "--only", ONE, "--require", unobservable],
        );
        let told = project.run(&[]);
        told.fails(&set([project.whole()]));
        assert!(told.text.contains("exit code 3: ") && told.text.contains(unobservable), "{}", told.text);
    }
}

#[test]
fn the_runner_is_no_part_of_what_a_guest_sees() {
    for runner in runners() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let script = format!("env > '{}'; exec \"$@\"", seen.display());
        let guest = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
        let guest: Vec<String> = guest.into_iter().chain(mock(SUITE, None)).collect();
        Project::new(runner, &guest, &["--only", ONE]).run(&[]).fails(&BTreeSet::new());
        let seen = fs::read_to_string(seen).unwrap();
        for name in ["PYTEST_CURRENT_TEST=", "NODE_TEST_CONTEXT="] {
            assert!(!seen.lines().any(|line| line.starts_with(name)), "{name}");
        }
    }
}

#[test]
fn the_page_shows_what_works() {
    let page = fs::read_to_string(workspace().join("docs/in-your-tests.md")).unwrap();
    for runner in runners() {
        let (language, fence) = match runner {
            Runner::Pytest => ("python", "```python\n"),
            Runner::Node => ("node", "```js\n"),
        };
        let (_, rest) = page.split_once(fence).unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let project = Project::new(runner, &[], &[]);
        project.with(example);
        let folder = project.folder.path().display().to_string();
        let written = sidecert(["init", "guest", "--language", language, &folder]);
        assert!(written.status.success(), "{}", stderr(&written));
        let told = project.run(&[]);
        told.fails(&BTreeSet::new());
        assert!(told.passed.len() > 80, "{}", told.text);
    }
}
