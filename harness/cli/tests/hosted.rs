//! `sidecert::host`: real sidecars under the reference host, as the tests of somebody's project have it. The program is
//! its own launcher, so it has a `main` of its own.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;
use sidecert::host;
use sidecert::hosted::{Host, NotHosted};

const SUITE: &str = "reasonix-v2";
const PROGRAM: &str = env!("CARGO_BIN_EXE_sidecert");

/// Answers everything politely, and blocks what has "secret" in it.
const BLOCKS: &str = r#"
import json, sys
for line in sys.stdin:
    frame = json.loads(line)
    method, params = frame.get("method"), frame.get("params", {})
    if "id" not in frame or method is None:
        continue
    result = {"accepted": True}
    if method == "extension/initialize":
        result = {"protocolVersion": params["protocolVersion"], "name": "sidecar", "version": "1", "stateSchemaVersion": 1,
                  "providers": [{"ref": "plugin/sidecar/sample/echo", "model": "echo"}]}
    elif method == "extension/intercept":
        blocks = "secret" in json.dumps(params.get("payload"))
        result = {"decision": "block", "reason": "no secrets"} if blocks else {"decision": "continue"}
    print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)
"#;

fn main() -> ExitCode {
    sidecert::hosted::tests([
        ("a_turn_an_action_a_reload_and_a_stop", a_turn_an_action_a_reload_and_a_stop as fn()),
        ("a_guest_in_python", a_guest_in_python),
        ("what_it_blocks_is_told", what_it_blocks_is_told),
        ("its_own_manifest_is_what_it_is_offered", its_own_manifest_is_what_it_is_offered),
        ("a_command_that_does_not_exist", a_command_that_does_not_exist),
        ("one_that_hangs_and_leaves_nothing_behind", one_that_hangs_and_leaves_nothing_behind),
        ("a_turn_is_cancelled_beside_it", a_turn_is_cancelled_beside_it),
        ("what_a_test_says_wrong_is_told", what_a_test_says_wrong_is_told),
        ("another_program_may_be_the_launcher", another_program_may_be_the_launcher),
    ])
}

fn mock() -> Vec<String> {
    [PROGRAM, "mock", "guest", "--suite", SUITE].map(str::to_owned).to_vec()
}

fn methods(host: &mut Host) -> Vec<String> {
    host.frames().iter().filter(|frame| !frame.of_sidecar).filter_map(|frame| frame.method()).collect()
}

fn a_turn_an_action_a_reload_and_a_stop() {
    let mut host = host(SUITE, mock()).start().unwrap();
    let turn = host.turn("Hello").unwrap();
    assert!(turn.is_done() && turn.text().is_some_and(|text| !text.is_empty()), "{turn:?}");
    let texts = host.shown().iter().filter(|shown| shown["as"] == "text");
    let shown: String = texts.filter_map(|shown| shown["text"].as_str()).collect();
    assert_eq!(Some(shown.as_str()), turn.text());
    let action = host.action("sidecar", "demo", &[("what", "this")]).unwrap();
    assert!(action.is_done() || action.refused().is_some(), "{action:?}");
    assert!(host.reload().unwrap().is_done());
    assert!(host.turn("Again").unwrap().is_done());
    let launches = host.frames().iter().map(|frame| frame.launch).max();
    assert_eq!(launches, Some(2));
    assert!(host.stop().unwrap().is_done());
    let methods = methods(&mut host);
    assert_eq!(methods.first().map(String::as_str), Some("extension/initialize"));
    assert_eq!(methods.iter().filter(|method| *method == "extension/shutdown").count(), 2);
    // The session is over, and the host is there.
    assert!(host.turn("Hello").unwrap().refused().is_some());
}

fn python(script: &str) -> Vec<String> {
    ["python3", "-I", "-S", "-c", script].map(str::to_owned).to_vec()
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn a_guest_in_python() {
    let guest = workspace().join("mock-sidecars/python/guest.py").display().to_string();
    let mut host = host(SUITE, ["python3", "-I", "-S", &guest]).start().unwrap();
    let turn = host.turn("Hello").unwrap();
    assert!(turn.is_done(), "{turn:?}");
    assert!(methods(&mut host).iter().any(|method| method == "extension/intercept"));
    assert!(host.frames().iter().all(|frame| frame.json().is_object()));
    assert!(host.stop().unwrap().is_done());
}

fn what_it_blocks_is_told() {
    let mut host = host(SUITE, python(BLOCKS)).start().unwrap();
    let turn = host.turn("this is a secret").unwrap();
    assert!(turn.blocked().is_some_and(|says| says.contains("no secrets")), "{turn:?}");
    assert_eq!(turn.text(), None);
    assert!(host.stop().unwrap().is_done());
}

fn its_own_manifest_is_what_it_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("reasonix-plugin.json");
    let runtime = json!({ "command": "./never-run", "required": true, "capabilities": ["interceptors", "providers"],
        "intercepts": ["compaction.prepare"] });
    let document = json!({ "apiVersion": "reasonix.io/plugin/v2", "name": "mine", "version": "1.0.0",
        "description": "It is mine", "contributes": {}, "runtime": runtime });
    fs::write(&manifest, document.to_string()).unwrap();
    let mut host = host(SUITE, mock()).manifest(&manifest).env("MINE", "1").start().unwrap();
    let first = host.frames()[0].json();
    assert_eq!(first["params"]["manifest"]["intercepts"], json!(["compaction.prepare"]), "{first}");
    assert!(host.turn("Hello").unwrap().is_done());
    assert!(!methods(&mut host).iter().any(|method| method == "extension/intercept"));
}

fn a_command_that_does_not_exist() {
    let fault = host(SUITE, ["./no-such-sidecar"]).start().unwrap_err();
    let NotHosted::NotStarted(outcome, frames) = &fault else { panic!("{fault:?}") };
    assert!(outcome.failed().is_some_and(|says| says.contains("does not exist")), "{fault:?}");
    assert!(frames.iter().all(|frame| !frame.of_sidecar), "{fault:?}");
    assert!(fault.to_string().starts_with("the session did not begin: "), "{fault}");
}

/// It answers nothing, starts a process that outlives it, and says which.
fn one_that_hangs_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!(
        "import os, subprocess, time\nchild = subprocess.Popen(['sleep', '1000'])\n\
         with open({:?}, 'w') as file: file.write(f'{{child.pid}} {{os.getpid()}}')\ntime.sleep(1000)",
        pid.display().to_string()
    );
    let before = Instant::now();
    let fault = host(SUITE, python(&script)).within(Duration::from_secs(1)).start().unwrap_err();
    assert_eq!(fault, NotHosted::Overdue { word: "start".to_owned(), within: Duration::from_secs(1) });
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    let pids = fs::read_to_string(&pid).unwrap();
    assert_eq!(pids.split_whitespace().count(), 2, "{pids}");
    for pid in pids.split_whitespace() {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid}");
    }
}

fn a_turn_is_cancelled_beside_it() {
    let never = BLOCKS.replace(
        "    result = {\"accepted\"",
        "    if params.get(\"event\") == \"input.receive\":\n        continue\n    result = {\"accepted\"",
    );
    assert_ne!(never, BLOCKS);
    let mut host = host(SUITE, python(&never)).start().unwrap();
    let turn = host.begin("turn", json!({ "text": "Hello" })).unwrap();
    let cancel = host.ask("cancel", json!({})).unwrap();
    assert!(cancel.is_done(), "{cancel:?}");
    let turn = host.outcome(turn).unwrap();
    assert!(turn.failed().is_some(), "{turn:?}");
}

fn what_a_test_says_wrong_is_told() {
    let says = |fault: NotHosted| match fault {
        NotHosted::Wrong(says) => says,
        other => panic!("{other:?}"),
    };
    assert!(says(host("reasonix-v9", mock()).start().unwrap_err()).contains("no suite"));
    assert!(says(host(SUITE, [""; 0]).start().unwrap_err()).contains("no command"));
    assert!(
        says(host(SUITE, mock()).manifest("./no-such.json").start().unwrap_err()).contains("no-such.json")
    );
}

fn another_program_may_be_the_launcher() {
    let mut host = host(SUITE, mock()).launcher(PROGRAM).start().unwrap();
    assert!(host.turn("Hello").unwrap().is_done());
}
