//! What a report tells somebody who has to act on it, whatever went wrong, and the same in every format.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use support::{check, mock, program, sidecert};
use tempfile::TempDir;

const SUITE: &str = "reasonix-v1";

fn shell(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

/// The frames of an excerpt as `>`, if marked, and the label or what happened.
fn excerpt(shown: &Value) -> Vec<String> {
    let frames = shown["frames"].as_array().unwrap().iter();
    frames
        .map(|frame| {
            let says = frame["label"].as_str().unwrap_or(text(frame, "text"));
            format!("{}{says}", if frame["marked"] == true { "> " } else { "" })
        })
        .collect()
}

#[test]
fn a_handshake_that_fails_is_one_cause_with_its_frames() {
    let ours = "request 1, extension/initialize".to_owned();
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#;
    for (script, actual, hint, marked, fault) in [
        (
            "exit 7".to_owned(),
            "the guest exited with code 7 before it answered extension/initialize",
            "it ended before it said anything",
            "> the process ended (code 7)".to_owned(),
            "target",
        ),
        (
            "read line; sleep 100".to_owned(),
            "no answer to extension/initialize in 200 ms",
            "not one byte came",
            format!("> waited 200 ms in vain for the answer to {ours}"),
            "",
        ),
        (
            format!("read line; echo '{refusal}'; read line"),
            "the guest answered extension/initialize with the error -32000 (no)",
            "the message of that error",
            "> error -32000 for 1".to_owned(),
            "target",
        ),
        (
            "echo Welcome; exit 1".to_owned(),
            "the guest exited with code 1 before it answered extension/initialize; it wrote \"Welcome\" to \
             standard output, which is no frame",
            "logs and banners belong on standard error",
            "> the process ended (code 1)".to_owned(),
            "target",
        ),
    ] {
        let (report, _) = check(SUITE, &["--start-timeout", "200ms"], &shell(&script));
        let causes = report["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 1, "{script}");
        let cause = &causes[0];
        assert_eq!(text(cause, "actual"), actual, "{script}");
        assert_eq!(text(cause, "script"), "handshake", "{script}");
        assert!(text(cause, "expected").ends_with("extension/initialize"), "{script}");
        assert!(text(cause, "hint").contains(hint), "{script}: {}", cause["hint"]);
        assert_eq!(text(cause, "fault"), fault, "{script}");
        assert!(text(cause, "again").contains(" --only reasonix/"), "{script}");
        assert_eq!(cause["cites"][0]["english"], "Lifecycle", "{script}");
        let shown = excerpt(cause);
        assert!(shown.contains(&ours) && shown.contains(&marked), "{script}: {shown:?}");
        let cut = report["requirements"].as_array().unwrap().iter().filter(|row| row["why"] == "cut_short");
        assert_eq!(cut.count(), cause["cuts"].as_array().unwrap().len(), "{script}");
    }
}

#[test]
fn an_excerpt_shows_the_frame_of_ours_that_matters() {
    for (flaw, id, also, ours) in [
        (
            "serves-oversized-frames",
            "reasonix/transport/oversized-frame-fatal",
            "reasonix/transport/oversized-frame-fatal",
            "request 9000002, extension/provider/stream/cancel; wrong on purpose: its body is longer than the limit",
        ),
        (
            "misspells-its-decision",
            "reasonix/members/members-fit",
            "reasonix/content/read-as-given",
            "request 2, extension/intercept",
        ),
        (
            "answers-shutdown-late",
            "reasonix/lifecycle/shutdown-answered-in-time",
            "reasonix/lifecycle/shutdown-answered-in-time",
            "request 2, extension/shutdown",
        ),
    ] {
        let (report, _) = check(SUITE, &["--only", id, "--only", also], &mock(SUITE, Some(flaw)));
        let rows = report["requirements"].as_array().unwrap();
        let failed = rows.iter().find(|row| row["id"] == id).unwrap();
        assert_eq!(failed["verdict"], "fail", "{flaw}");
        let shown = excerpt(failed);
        assert!(shown.contains(&ours.to_owned()), "{flaw}: {shown:?}");
        assert_eq!(shown.iter().filter(|frame| frame.starts_with("> ")).count(), 1, "{flaw}: {shown:?}");
        assert!(!shown.iter().any(|frame| frame.starts_with("all of")), "{flaw}: {shown:?}");
    }
}

#[test]
fn a_faulty_recording_is_one_cause() {
    let folder = TempDir::new().unwrap();
    let run = folder.path().join("run").display().to_string();
    let (_, code) = check(SUITE, &["--record", &run], &mock(SUITE, None));
    assert_eq!(code, 0);
    let tour = format!("{run}/001-cut-requests.ndjson");
    let whole = fs::read(&tour).unwrap();
    fs::write(&tour, &whole[..whole.len() / 2]).unwrap();
    let output = sidecert(["judge", "--report", "json=-", &run]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let causes = report["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{causes:?}");
    for says in ["the recording 001-cut-requests is faulty in line", "its SHA-256 is another"] {
        assert!(text(&causes[0], "actual").contains(says), "{causes:?}");
    }
    let rows = report["requirements"].as_array().unwrap().iter();
    let cut: Vec<&Value> = rows.filter(|row| row["why"] == "cut_short").map(|row| &row["id"]).collect();
    assert!(!cut.is_empty());
    assert_eq!(causes[0]["cuts"].as_array().unwrap().iter().collect::<Vec<_>>(), cut);
}

/// What is broken in a script that is not the requirement's own shows again only where that is played, too.
#[test]
fn the_command_shows_the_failure_again() {
    for flaw in ["misspells-its-decision", "speaks-too-soon", "forgets-its-catalog"] {
        let (report, _) = check(SUITE, &[], &mock(SUITE, Some(flaw)));
        let rows = report["requirements"].as_array().unwrap();
        let failed = rows.iter().find(|row| row["verdict"] == "fail").unwrap();
        let words = shlex::split(text(failed, "again")).unwrap();
        let end = words.iter().position(|word| word == "--").unwrap();
        let options = [&words[1..end], &["--report".to_owned(), "json=-".into()]].concat();
        let output = sidecert([&options, &words[end..]].concat());
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = again["requirements"].as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == failed["id"]).unwrap();
        assert_eq!((&row["verdict"], &row["actual"]), (&failed["verdict"], &failed["actual"]), "{flaw}");
        let played =
            rows.iter().filter(|row| row["why"] != "not_selected" && row["verdict"] != "not_applicable");
        assert!(played.count() <= 2, "{flaw}: just this is repeated");
    }
}

#[test]
fn what_is_not_provoked_names_the_option() {
    let (report, _) = check(SUITE, &[], &mock(SUITE, None));
    let rows = report["requirements"].as_array().unwrap();
    let open = rows.iter().find(|row| row["id"] == "reasonix/transport/frames-within-limit").unwrap();
    assert_eq!((text(open, "why"), text(open, "option")), ("not_provoked", "--provoke FILE"));
    assert!(text(open, "says").starts_with("where the file says of `large`: "), "{open}");
}

#[test]
fn every_format_is_written_in_one_run_and_masks_secrets() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let formats = ["json", "junit", "markdown", "terminal"];
    let mut words = vec!["check".to_owned(), "guest".into(), "--suite".into(), SUITE.into()];
    for format in formats {
        words.extend(["--report".to_owned(), format!("{format}={}", path(format))]);
    }
    words.extend(["--env", "APP_TOKEN=hunter2hunter2", "--"].map(str::to_owned));
    words.extend(shell("echo \"$APP_TOKEN\"; echo \"$APP_TOKEN\" >&2; exit 1"));
    let output = sidecert(&words);
    assert_eq!(output.status.code(), Some(1));
    let mut shown = vec![String::from_utf8_lossy(&output.stdout).into_owned()];
    shown.extend(formats.map(|format| fs::read_to_string(path(format)).unwrap()));
    for text in shown {
        assert!(text.contains("****") || text.contains("&#42;&#42;"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("silent-before-initialized"), "{text}");
    }
    assert!(fs::read_to_string(path("junit")).unwrap().starts_with("<?xml"));
    assert!(fs::read_to_string(path("markdown")).unwrap().starts_with("## sidecert"));
}

#[test]
fn a_trace_goes_to_standard_error_and_leaves_the_report_alone() {
    let target = mock(SUITE, None);
    let words = |trace: Option<&'static str>| {
        let mut words = vec!["check", "guest", "--suite", SUITE, "--only", "reasonix/members/members-fit"];
        words.extend(["--seed", "1", "--report", "json=-"]);
        words.extend(trace);
        words.push("--");
        words.iter().map(|word| (*word).to_owned()).chain(target.iter().cloned()).collect::<Vec<_>>()
    };
    let traced = sidecert(words(Some("--trace")));
    assert_eq!(traced.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&traced.stdout).unwrap();
    assert_eq!(report["outcome"]["exit_code"], 0);
    let told = String::from_utf8(traced.stderr).unwrap();
    for line in [
        "001-handshake handshake      0.",
        " → request 1, extension/initialize, ",
        " ← result for 1, ",
        "001-handshake shutdown ",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let untraced = sidecert(words(None));
    assert!(!String::from_utf8(untraced.stderr).unwrap().contains("extension/initialize"));
}

/// What a check writes to standard error, a terminal, and to standard output, a pipe.
fn on_a_terminal(options: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let reader = thread::spawn(move || {
        let (mut master, mut text, mut chunk) = (File::from(master), Vec::new(), [0; 4096]);
        // The end of a terminal whose other end was closed is an error.
        while let Ok(read @ 1..) = master.read(&mut chunk) {
            text.extend_from_slice(&chunk[..read]);
        }
        String::from_utf8(text).unwrap()
    });
    let mut command = Command::new(program());
    command.args(["check", "guest", "--suite", SUITE, "--only", "reasonix/members/members-fit"]);
    command.args(options).arg("--").args(mock(SUITE, None));
    command.env_remove("CI").env("TERM", "xterm").envs(variables.iter().copied());
    let output = command.stderr(slave).stdout(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    drop(command);
    assert_eq!(output.status.code(), Some(0));
    (reader.join().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn progress_is_shown_on_a_terminal_and_vanishes_before_the_report() {
    let (shown, report) = on_a_terminal(&[], &[]);
    assert!(shown.contains(" scripts, "), "{shown:?}");
    assert!(shown.ends_with("\r\u{1b}[2K"), "the line is cleared: {shown:?}");
    assert!(report.contains("1 pass") && !report.contains(['\r', '\u{1b}']), "{report:?}");
    // What people read goes to standard error here: it begins where the line was.
    let (shown, report) = on_a_terminal(&["--report", "json=-", "--color", "never"], &[]);
    let (before, after) = shown.rsplit_once("\r\u{1b}[2K").unwrap();
    assert!(before.contains(" scripts, ") && after.trim_start().starts_with("target │ "), "{shown:?}");
    assert!(report.starts_with('{'), "{report}");
    for (option, variable) in [
        ("--quiet", ("A", "")),
        ("--trace", ("A", "")),
        ("--color=auto", ("CI", "true")),
        ("--color=auto", ("TERM", "dumb")),
    ] {
        let (shown, _) = on_a_terminal(&[option], &[variable]);
        assert!(!shown.contains(" scripts, "), "{option} {variable:?}: {shown:?}");
    }
}
