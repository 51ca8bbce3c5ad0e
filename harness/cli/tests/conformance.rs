//! A suite as tests of a project: this program is such tests if it is told to be, and else runs itself as a user does.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "conformance/example.rs"]
mod example;
mod support;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;
use support::{breaks, mock, requirements, selected, sidecert, stderr, stdout, workspace};

/// Makes this program the tests of a guest: the words of its command, a line each. Without any, it tests itself.
const COMMAND: &str = "CONFORMANCE_COMMAND";
/// The options of the check, a line each. Without any, it is the example of the page.
const OPTIONS: &str = "CONFORMANCE_OPTIONS";
/// The configuration file, if there is one.
const CONFIG: &str = "CONFORMANCE_CONFIG";

const SUITE: &str = "reasonix-v2";
const ONE: &str = "reasonix/envelope/string-id-refused";

fn main() -> ExitCode {
    match (env::var(COMMAND), env::var(OPTIONS)) {
        (Err(_), _) => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
        (Ok(_), Err(_)) => example::main(),
        (Ok(_), Ok(options)) => {
            let guest = sidecert::conformance::guest(SUITE, command());
            let guest = options.lines().fold(guest, |guest, option| guest.option(option));
            if let Ok(file) = env::var(CONFIG) { guest.config(file).main() } else { guest.main() }
        }
    }
}

fn command() -> Vec<String> {
    env::var(COMMAND).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 11] = [
        ("the_page_shows_the_example", the_page_shows_the_example),
        ("a_conforming_guest_is_green", a_conforming_guest_is_green),
        ("a_flaw_is_the_failed_test_that_it_breaks", a_flaw_is_the_failed_test_that_it_breaks),
        ("what_was_only_observed_is_told", what_was_only_observed_is_told),
        (
            "a_guest_that_says_nothing_fails_what_it_cuts_short",
            a_guest_that_says_nothing_fails_what_it_cuts_short,
        ),
        ("a_list_starts_nothing", a_list_starts_nothing),
        ("only_what_is_selected_is_played", only_what_is_selected_is_played),
        ("what_is_ignored_can_be_asked_for", what_is_ignored_can_be_asked_for),
        ("without_a_check_there_is_one_line", without_a_check_there_is_one_line),
        ("the_guest_sees_what_it_sees_in_a_check", the_guest_sees_what_it_sees_in_a_check),
        (
            "a_configuration_and_reports_are_those_of_a_check",
            a_configuration_and_reports_are_those_of_a_check,
        ),
    ];
    tests
        .into_iter()
        .map(|(name, test)| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        })
        .collect()
}

/// Runs this program as the tests of a guest.
fn run(guest: &[String], options: Option<&[&str]>, words: &[&str]) -> Output {
    let scratch = tempfile::tempdir().unwrap();
    let mut tests = Command::new(env::current_exe().unwrap());
    tests.args(words).env("TMPDIR", scratch.path()).env(COMMAND, guest.join("\n"));
    // There a manifest is, as beside a guest.
    tests.current_dir(workspace().join("harness/cli/starter/python"));
    if let Some(options) = options {
        tests.env(OPTIONS, options.join("\n"));
    }
    tests.output().unwrap()
}

/// The tests of a run that ended with a word: their names, in order.
fn ended(output: &Output, word: &str) -> Vec<String> {
    let text = stdout(output);
    let lines = text.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
    lines
        .filter(|(_, told)| told.split(' ').next() == Some(word))
        .map(|(name, _)| name.trim().to_owned())
        .collect()
}

/// The block of what stands below `---- NAME ----`.
fn told(output: &Output, name: &str) -> String {
    let text = stdout(output);
    let (_, rest) = text.split_once(&format!("---- {name} ----\n")).unwrap_or_else(|| panic!("{text}"));
    rest.split("\n---- ")
        .next()
        .unwrap_or_default()
        .split("\nfailures:")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn the_page_shows_the_example() {
    let page = fs::read_to_string(workspace().join("docs/in-your-tests.md")).unwrap();
    let example = include_str!("conformance/example.rs");
    let (_, example) = example.split_once("\n\npub(crate) ").unwrap();
    let example = example.replace("crate::command()", r#"[env!("CARGO_BIN_EXE_my-guest")]"#);
    assert!(page.contains(&format!("```rust\n{example}```\n")), "{example}");
}

fn a_conforming_guest_is_green() {
    let output = run(&mock(SUITE, None), None, &["--test-threads=1"]);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(stderr(&output), "");
    let (passed, ignored) = (ended(&output, "ok"), ended(&output, "ignored"));
    assert!(passed.len() > 100 && ended(&output, "FAILED").is_empty(), "{}", stdout(&output));
    assert_eq!(passed.len() + ignored.len(), requirements(SUITE).len());
    let text = stdout(&output);
    let ignored = text.lines().filter(|line| line.contains("... ignored"));
    for line in ignored {
        let reasons = ["not provoked: ", "not exercised: ", "unobservable: ", "not applicable: "];
        assert!(reasons.iter().any(|reason| line.contains(&format!("ignored ({reason}"))), "{line}");
    }
}

fn a_flaw_is_the_failed_test_that_it_breaks() {
    for flaw in ["speaks-too-soon", "has-no-name"] {
        let output = run(&mock(SUITE, Some(flaw)), Some(&["--seed=1"]), &[]);
        assert_eq!(output.status.code(), Some(101), "{}", stderr(&output));
        let failed: BTreeSet<String> = ended(&output, "FAILED").into_iter().collect();
        assert_eq!(failed, breaks(SUITE, flaw), "{flaw}");
        for id in &failed {
            let told = told(&output, id);
            assert!(told.starts_with(&format!("FAIL  {id}\n")), "{told}");
            for label in [
                "must │ ",
                "source │ the ",
                "actual │ ",
                "seen in │ process ",
                "  > event ",
                "at fault │ the target",
            ] {
                assert!(told.contains(label), "{label}: {told}");
            }
            assert!(told.contains(&format!("repeat with │ sidecert check guest --suite reasonix-v2 --seed 0000000000000001 --only {id}")), "{told}");
        }
    }
}

fn what_was_only_observed_is_told() {
    let flaw = "refuses-blank-lines";
    let broken: Vec<String> = breaks(SUITE, flaw).into_iter().collect();
    let guest = mock(SUITE, Some(flaw));
    let output = run(&guest, Some(&[]), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(ended(&output, "ok").contains(&broken[0]));
    assert!(stderr(&output).contains(&format!("\nWARN  {}\n", broken[0])), "{}", stderr(&output));
    let required = format!("--require={}", broken[0]);
    for option in ["--profile=reference", &required] {
        let output = run(&guest, Some(&[option]), &[]);
        assert_eq!(output.status.code(), Some(101), "{option}: {}", stdout(&output));
        assert_eq!(ended(&output, "FAILED"), broken, "{option}");
        assert!(told(&output, &broken[0]).contains("seen in │ "), "{option}");
    }
}

fn a_guest_that_says_nothing_fails_what_it_cuts_short() {
    let guest = ["sh", "-c", "echo the reason >&2; exit 3"].map(str::to_owned);
    let output = run(&guest, Some(&[]), &["--test-threads=1"]);
    assert_eq!(output.status.code(), Some(101), "{}", stderr(&output));
    assert!(ended(&output, "ok").is_empty());
    let failed = ended(&output, "FAILED");
    assert!(failed.len() > 100, "{failed:?}");
    let causes: Vec<_> =
        failed.iter().map(|id| told(&output, id)).filter(|it| it.starts_with("CUT SHORT  ")).collect();
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(causes[0].contains("look at │ its standard error"), "{}", causes[0]);
    assert!(told(&output, &failed[failed.len() - 1]).starts_with("cut short: "), "{}", stdout(&output));
}

fn a_list_starts_nothing() {
    let nobody = ["/no/such/guest".to_owned()];
    let output = run(&nobody, Some(&[]), &["--list"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let listed: Vec<String> =
        stdout(&output).lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect();
    assert_eq!(listed, requirements(SUITE));
    // Nor does a filter that leaves none.
    let output = run(&nobody, Some(&[]), &["no such requirement"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert!(stdout(&output).contains("running 0 tests"), "{}", stdout(&output));
}

fn only_what_is_selected_is_played() {
    let guest = mock(SUITE, None);
    let expected: Vec<String> =
        requirements(SUITE).into_iter().filter(|id| id.contains("/envelope/")).collect();
    let others: Vec<String> = expected.iter().filter(|id| *id != ONE).cloned().collect();
    for (options, words, expected) in [
        (&[][..], &[ONE, "--exact"][..], vec![ONE.to_owned()]),
        (&[][..], &["/envelope/"][..], expected.clone()),
        (&[][..], &["/envelope/", "--skip", "/string-id-refused"][..], others.clone()),
        (&["--only=*/envelope/*", "--skip", ONE][..], &[][..], others.clone()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let record = format!("--record={}", folder.path().join("run").display());
        let output =
            run(&guest, Some(&[options, &[&record]].concat()), &[words, &["--test-threads=1"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        let named: BTreeSet<String> =
            ["ok", "ignored"].iter().flat_map(|word| ended(&output, word)).collect();
        assert_eq!(named, expected.iter().cloned().collect());
        assert_eq!(selected(&folder.path().join("run")), expected.into_iter().collect());
    }
}

fn what_is_ignored_can_be_asked_for() {
    let guest = mock(SUITE, None);
    let usual = ended(&run(&guest, Some(&[]), &[]), "ignored");
    let output = run(&guest, Some(&[]), &["--ignored"]);
    assert_eq!(output.status.code(), Some(101), "{}", stderr(&output));
    let failed: BTreeSet<String> = ended(&output, "FAILED").into_iter().collect();
    assert_eq!(failed, usual.into_iter().collect());
    assert!(ended(&output, "ok").is_empty());
    let unobservable = failed.iter().find(|id| told(&output, id).starts_with("unobservable: "));
    assert!(unobservable.is_some(), "{}", stdout(&output));
    let output = run(&guest, Some(&[&format!("--require={}", unobservable.unwrap())]), &[]);
    assert_eq!(ended(&output, "FAILED"), [unobservable.unwrap().clone()]);
}

fn without_a_check_there_is_one_line() {
    let mock = mock(SUITE, None);
    let nobody = ["/no/such/guest".to_owned()];
    for (guest, option, code, says) in [
        (&nobody[..], "--seed=1", 4, "/no/such/guest"),
        (&mock, "--no-such-option", 2, "--no-such-option"),
        (&mock, "--suite=reasonix-v3", 2, "--suite"),
        (&mock, "--exercise=everything", 2, "--exercise everything"),
        (&mock, "--only=reasonix/nothing/*", 2, "--only"),
        (&mock, "--manifest=no-such-file.json", 2, "--manifest no-such-file.json"),
        (&mock, "--report=json=-", 2, "--report: standard output"),
        (&[], "--seed=1", 2, "no command"),
    ] {
        let output = run(guest, Some(&[option]), &[]);
        let told = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(code), ""), "{option}: {told}");
        assert!(told.starts_with("sidecert: ") && told.contains(says), "{option}: {told}");
        assert_eq!(told.lines().count(), 1, "{option}: {told}");
    }
}

fn the_guest_sees_what_it_sees_in_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let seen = |name: &str| {
        let path = folder.path().join(name);
        // What tells this program what to be is no part of it, nor is what a run has of its own.
        let ours = format!("unset {COMMAND} {OPTIONS} TMPDIR REASONIX_PLUGIN_ROOT PWD _");
        let script = format!("{ours}; env > '{}'; exec \"$@\"", path.display());
        let guest = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
        (guest.into_iter().chain(mock(SUITE, None)).collect::<Vec<_>>(), path)
    };
    let (guest, by_tests) = seen("tests");
    let only = format!("--only={ONE}");
    let output = run(&guest, Some(&[&only]), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (guest, by_check) = seen("check");
    let output = sidecert(
        ["check", "guest", "--suite=reasonix-v2", "--no-config", &only, "--"]
            .into_iter()
            .chain(guest.iter().map(String::as_str)),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = |path: &Path| {
        let seen = fs::read_to_string(path).unwrap();
        seen.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (by_tests, by_check) = (read(&by_tests), read(&by_check));
    let differ: Vec<_> = by_tests.symmetric_difference(&by_check).collect();
    assert!(differ.is_empty() && by_tests.len() > 1, "{differ:?}");
}

fn a_configuration_and_reports_are_those_of_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sidecert.toml");
    let target = serde_json::to_string(&mock(SUITE, Some("speaks-too-soon"))).unwrap();
    fs::write(&config, format!("target = {target}\nonly = {ONE:?}\nreport = \"json=report.json\"\n"))
        .unwrap();
    // What the code says wins: the command, too.
    let tests = Command::new(env::current_exe().unwrap())
        .env(COMMAND, mock(SUITE, None).join("\n"))
        .env(OPTIONS, "")
        .env(CONFIG, &config)
        .output()
        .unwrap();
    assert_eq!(tests.status.code(), Some(0), "{}", stderr(&tests));
    assert_eq!(ended(&tests, "ok"), [ONE]);
    let report: Value =
        serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["counts"]["pass"], 1);
}
