//! Running the program as a user does.
#![expect(clippy::unwrap_used, reason = "a test may")]
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The program under test.
pub(crate) fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("sidecert").to_owned()
}

/// The mock guest of a suite, as a command.
pub(crate) fn mock(suite: &str, flaw: Option<&str>) -> Vec<String> {
    let mut command =
        vec![program().display().to_string(), "mock".into(), "guest".into(), "--suite".into(), suite.into()];
    command.extend(flaw.into_iter().flat_map(|flaw| ["--flaw".to_owned(), flaw.to_owned()]));
    command
}

/// The reference host of a suite, as a command.
pub(crate) fn mock_host(suite: &str, more: &[&str]) -> Vec<String> {
    let program = program().display().to_string();
    let words = ["mock", "host", "--suite", suite].into_iter().chain(more.iter().copied()).map(str::to_owned);
    std::iter::once(program).chain(words).collect()
}

/// The host that shares no code with us, as a command.
pub(crate) fn python_host(suite: &str) -> Vec<String> {
    let host = workspace().join("mock-sidecars/python/host.py").display().to_string();
    ["python3", "-I", "-S", &host, "--suite", suite].map(str::to_owned).to_vec()
}

/// The guest of a suite that shares no code with us, as a command.
pub(crate) fn python_guest(suite: &str) -> Vec<String> {
    let file = if suite.starts_with("webcodex") { "webcodex.py" } else { "guest.py" };
    let guest = workspace().join("mock-sidecars/python").join(file);
    ["python3", "-I", "-S"].iter().map(|&word| word.to_owned()).chain([guest.display().to_string()]).collect()
}

/// The one in JavaScript; `None`, said aloud, where there is no Node to run it.
pub(crate) fn node_guest(suite: &str) -> Option<Vec<String>> {
    if !has("node") {
        skipped("there is no `node`, so the guest in JavaScript is not checked");
        return None;
    }
    let file = if suite.starts_with("webcodex") { "webcodex.mjs" } else { "guest.mjs" };
    Some(vec!["node".to_owned(), workspace().join("mock-sidecars/node").join(file).display().to_string()])
}

/// What ends with this could not reach something on the network.
pub(crate) const UNREACHABLE: i32 = 75;

/// Where the released Reasonix CLI is installed for tests.
pub(crate) fn reasonix_cli_cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("reasonix-cli")
}

/// The released Reasonix CLI, installed when it is first asked for; `None`, said aloud, where it cannot be had.
pub(crate) fn reasonix_cli() -> Option<PathBuf> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("it is not released for this platform".into());
        }
        let script =
            "import sys, pathlib, record_reasonix_cli as it; print(it.install(pathlib.Path(sys.argv[1])))";
        let mut command = Command::new("python3");
        command.args(["-B", "-c", script]).arg(reasonix_cli_cache()).current_dir(workspace().join("golden"));
        let output = command.output().unwrap();
        if output.status.code() == Some(UNREACHABLE) {
            return Err(stderr(&output).trim().to_owned());
        }
        assert!(output.status.success(), "{}", stderr(&output));
        Ok(stdout(&output).trim().into())
    });
    let installed = installed.as_ref().map_err(|why| skipped(&format!("the released Reasonix CLI: {why}")));
    installed.ok().cloned()
}

/// Whether there is such an interpreter.
pub(crate) fn has(interpreter: &str) -> bool {
    Command::new(interpreter).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Says aloud that something is not tested, and why.
#[expect(clippy::print_stderr, reason = "a skip must not read green")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The provocation file for our mocks.
pub(crate) fn provocations() -> PathBuf {
    workspace().join("mock-sidecars/provocations.toml")
}

/// Runs the program with these words.
pub(crate) fn sidecert<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Output {
    // A run that fails keeps its recording: here it goes with the folder.
    let scratch = tempfile::tempdir().unwrap();
    Command::new(program()).args(words).env("TMPDIR", scratch.path()).output().unwrap()
}

/// Runs with these words and this standard input.
pub(crate) fn fed(words: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(program())
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// What a run wrote to its standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a run wrote to its standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks `target` with these options; gives the report, and the exit code.
pub(crate) fn check(suite: &str, options: &[&str], target: &[String]) -> (Value, i32) {
    let mut words = vec!["check", "guest", "--suite", suite, "--report", "json=-"];
    words.extend(options);
    words.push("--");
    words.extend(target.iter().map(String::as_str));
    let output = sidecert(words);
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code().unwrap())
}

/// The verdict of every requirement, in order; for an undecided one, why.
pub(crate) fn verdicts(report: &Value) -> Vec<(String, String)> {
    let rows = report["requirements"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let verdict = row["why"].as_str().or(row["verdict"].as_str()).unwrap();
            (row["id"].as_str().unwrap().to_owned(), verdict.to_owned())
        })
        .collect()
}

/// What there is of this kind in a suite.
pub(crate) fn list(what: &str, suite: &str) -> Vec<Value> {
    let listed = sidecert(["list", what, "--suite", suite, "--format", "json"]);
    serde_json::from_slice(&listed.stdout).unwrap()
}

/// The requirements of a suite that bind a guest, in its order.
pub(crate) fn of_guests(suite: &str) -> Vec<Value> {
    list("requirements", suite).into_iter().filter(|row| row["side"] == "guest").collect()
}

/// The ids of these.
pub(crate) fn requirements(suite: &str) -> Vec<String> {
    of_guests(suite).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// The requirements that a flaw breaks.
pub(crate) fn breaks(suite: &str, flaw: &str) -> BTreeSet<String> {
    let flaws = list("flaws", suite);
    let flaw = flaws.iter().find(|it| it["name"] == flaw).unwrap();
    flaw["breaks"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// The requirements that a recorded run was asked for.
pub(crate) fn selected(run: &Path) -> BTreeSet<String> {
    let run: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
    run["selected"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}
