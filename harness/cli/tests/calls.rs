//! A tool is called only where the user says so, and what the user says wrongly is told on one line.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs;

use support::{check, mock, sidecert, stderr, verdicts};

const SUITE: &str = "webcodex-v1";

/// The calls of tools that are listed, in what was recorded of a check with these options; and what it complained of.
fn called(options: &[&str]) -> (Vec<String>, String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let record = run.display().to_string();
    let target = mock(SUITE, None);
    let mut words = vec!["check", "guest", "--suite", SUITE, "--quiet", "--record", &record];
    words.extend(options);
    words.push("--");
    words.extend(target.iter().map(String::as_str));
    let output = sidecert(words);
    let mut calls = Vec::new();
    for entry in fs::read_dir(&run).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "ndjson") {
            let text = fs::read_to_string(path).unwrap();
            let frames = text.lines().filter(|line| line.contains(r#""method":"tools/call""#));
            let to_a_tool = |line: &&str| {
                ["add", "echo", "fail"].iter().any(|it| line.contains(&format!(r#""name":"{it}""#)))
            };
            calls.extend(frames.filter(to_a_tool).map(str::to_owned));
        }
    }
    (calls, stderr(&output), output.status.code())
}

#[test]
fn nothing_is_called_that_nobody_named_and_the_report_says_so() {
    let (calls, told, code) = called(&[]);
    assert_eq!((calls.as_slice(), told.as_str(), code), (&[][..], "", Some(0)));
    let (report, code) = check(SUITE, &[], &mock(SUITE, None));
    assert_eq!(code, 0);
    let undecided: Vec<_> = verdicts(&report).into_iter().filter(|(_, verdict)| verdict != "pass").collect();
    assert_eq!(undecided.len(), 8);
    assert!(undecided.iter().all(|(id, why)| id.starts_with("webcodex/calls/") && why == "not_exercised"));
    assert!(report.to_string().contains("--call NAME=JSON"));
}

#[test]
fn what_is_named_is_called_as_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arguments.json");
    fs::write(&file, "{\n  \"text\": \"from a file\"\n}\n").unwrap();
    let from_file = format!("echo=@{}", file.display());
    let (calls, told, code) = called(&["--call", r#"add={"a":4,"b":5}"#, "--call", &from_file]);
    assert_eq!((told.as_str(), code), ("", Some(0)));
    let [add, echo] = calls.as_slice() else { panic!("{calls:?}") };
    assert!(add.contains(r#"{"a":4,"b":5}"#) && echo.contains("from a file"), "{calls:?}");
}

#[test]
fn what_only_reads_is_called_with_what_fits_it() {
    let (calls, told, code) = called(&["--call-read-only"]);
    assert_eq!((told.as_str(), code), ("", Some(0)));
    let [add, echo] = calls.as_slice() else { panic!("{calls:?}") };
    assert!(add.contains(r#""name":"add""#) && echo.contains(r#""name":"echo""#), "{calls:?}");
}

#[test]
fn what_cannot_be_called_is_told_when_that_is_known() {
    for (call, says) in [
        (r#"delete={"path":"x"}"#, "--call delete: the plugin lists no such tool; it lists add, echo, fail"),
        (r#"add={"a":1}"#, r#"--call add: the arguments: "b" is required, and not there"#),
    ] {
        let (calls, told, code) = called(&["--call", call]);
        assert!(calls.is_empty() && code == Some(0), "{calls:?} {code:?}");
        assert!(told.lines().any(|line| line.ends_with(says)), "{told}");
    }
}

#[test]
fn wrong_use_is_one_line() {
    for (suite, options, says) in [
        (SUITE, &["--call", "echo"][..], "it is NAME=JSON or NAME=@FILE"),
        (SUITE, &["--call", "echo={"], "--call echo: its arguments are no JSON"),
        (SUITE, &["--call", "echo=[]"], "--call echo: its arguments are of the kind array"),
        (SUITE, &["--call", "echo=@/nowhere"], "--call echo: /nowhere: "),
        (SUITE, &["--exercise", "all"], "--exercise all: the groups are none in this suite"),
        ("reasonix-v2", &["--call", "echo={}"], "--call: reasonix-v2 has no tools to call"),
        ("reasonix-v2", &["--call-read-only"], "--call-read-only: reasonix-v2 has no tools to call"),
        ("reasonix-v2", &["--bounds", "older"], "--bounds: reasonix-v2 has only one set of bounds"),
    ] {
        let words = ["check", "guest", "--suite", suite].into_iter().chain(options.iter().copied());
        let output = sidecert(words.chain(["--", "true"]));
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(says) && told.lines().count() == 1, "{told}");
    }
    let output = sidecert(["check", "host", "--suite", SUITE, "--driver", "shim", "--", "true"]);
    assert!(
        stderr(&output).contains("webcodex-v1 has no requirements for a host yet"),
        "{}",
        stderr(&output)
    );
}
