//! `check host`: hosts behind a shim, as real processes that launch real guests.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use serde_json::Value;
use support::{mock_host, python_host, reasonix_cli, sidecert, stderr, stdout, workspace};
use tempfile::TempDir;

const SUITES: [&str; 2] = ["reasonix-v1", "reasonix-v2"];

fn check(suite: &str, options: &[&str], command: &[String]) -> Output {
    let words = ["check", "host", "--suite", suite, "--seed", "1"].into_iter().chain(options.iter().copied());
    let command = command.iter().map(String::as_str);
    sidecert(words.chain(["--"]).chain(command))
}

fn shim(suite: &str, options: &[&str], command: &[String]) -> Output {
    check(suite, &[&["--driver", "shim"], options].concat(), command)
}

/// The requirements that failed.
fn failed(output: &Output) -> BTreeSet<String> {
    let text = stdout(output);
    let failed = text.lines().filter_map(|line| line.strip_prefix("FAIL  "));
    failed.map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

fn is_green(output: &Output) {
    let text = stdout(output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(output));
    let last = text.lines().rev().find(|line| line.contains(" pass, ")).unwrap_or_default();
    assert!(last.contains(" host: ") && last.contains(" 0 fail, 0 warn"), "{text}");
    assert!(!last.contains("cut short"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("LATE")), "{text}");
}

#[test]
fn a_conforming_host_is_green() {
    for suite in SUITES {
        let output = shim(suite, &["--compare"], &mock_host(suite, &[]));
        is_green(&output);
        assert!(stdout(&output).contains(" compared: nothing differs in any script"), "{}", stdout(&output));
    }
    is_green(&shim(SUITES[1], &["--isolate"], &mock_host(SUITES[1], &[])));
}

#[test]
fn a_host_that_shares_no_code_with_us_is_green() {
    for suite in SUITES {
        is_green(&shim(suite, &[], &python_host(suite)));
    }
}

#[test]
fn the_ways_of_the_released_host_fail_nothing() {
    let output = shim("reasonix-v2", &[], &mock_host("reasonix-v2", &["--released"]));
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains(" 0 fail, 0 warn"), "{}", stdout(&output));
}

#[test]
fn a_flaw_fails_what_it_names_also_as_a_process() {
    let flaws = [
        ("host-writes-text", &["reasonix/host-transport/only-frames"][..]),
        ("host-passes-over-text", &["reasonix/host-transport/text-refused"]),
        ("host-serves-batches", &["reasonix/host-envelope/batches-refused"]),
        ("host-answers-twice", &["reasonix/host-envelope/answered-once"]),
        ("host-has-a-smaller-limit", &["reasonix/host-transport/largest-frame-read"]),
    ];
    for (flaw, breaks) in flaws {
        let output = shim("reasonix-v2", &[], &mock_host("reasonix-v2", &["--flaw", flaw]));
        assert_eq!(output.status.code(), Some(1), "{flaw}: {}", stdout(&output));
        let expected: BTreeSet<String> = breaks.iter().map(|&id| id.to_owned()).collect();
        assert_eq!(failed(&output), expected, "{flaw}: {}", stdout(&output));
        assert!(stdout(&output).contains("check host --suite reasonix-v2 --driver shim"), "{flaw}");
    }
}

/// What differs from the reference host: the method or what it is, the point, and the scripts in which it does.
fn compared(output: &Output) -> Vec<(String, String, Vec<String>)> {
    let report: Value = serde_json::from_str(&stdout(output)).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let differences = report["compared"]["differences"].as_array().unwrap().iter();
    differences
        .map(|it| {
            let seen = it["seen"].as_array().unwrap().iter();
            (text(&it["what"]), text(&it["point"]), seen.map(|seen| text(&seen["script"])).collect())
        })
        .collect()
}

#[test]
fn a_comparison_shows_the_place_of_a_flaw() {
    let flaws = [
        (
            "host-asks-on-behind-a-block",
            "host-interception/block-ends-chain",
            "extension/intercept",
            "input.receive",
        ),
        ("host-answers-twice", "host-envelope/answered-once", "an answer to nothing", ""),
        ("host-has-a-smaller-limit", "host-transport/largest-frame-read", "answer to host/content/read", ""),
    ];
    for (flaw, row, what, point) in flaws {
        let only = format!("reasonix/{row}");
        let mock = mock_host("reasonix-v2", &["--flaw", flaw]);
        let output = shim("reasonix-v2", &["--only", &only, "--compare", "--report", "json=-"], &mock);
        let found = compared(&output);
        let scripts = found.iter().find(|it| it.0 == what && it.1 == point).map(|it| &it.2);
        assert!(scripts.is_some_and(|scripts| !scripts.is_empty()), "{flaw}: {found:?}");
        // A difference is none of the verdicts'.
        let without = shim("reasonix-v2", &["--only", &only, "--report", "json=-"], &mock);
        assert_eq!(output.status.code(), without.status.code(), "{flaw}");
        assert!(!stdout(&without).contains("\"compared\""), "{flaw}");
        let text = stdout(&shim("reasonix-v2", &["--only", &only, "--compare"], &mock));
        assert!(
            text.contains("COMPARED  with the reference host") && text.contains("and no fault"),
            "{text}"
        );
        assert!(text.contains(&format!("differs │ {}", format!("{what} {point}").trim_end())), "{text}");
    }
}

#[test]
fn a_script_of_ones_own_is_played_to_its_end() {
    let page = fs::read_to_string(workspace().join("docs/scripts.md")).unwrap();
    let blocks = page.split("```json\n").skip(1).filter_map(|block| block.split_once("```"));
    let asks = blocks.map(|(script, _)| script).find(|script| script.contains("{\"ask\":")).unwrap();
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("mine.script");
    let play = |text: &str| {
        fs::write(&script, text).unwrap();
        let only = ["--only", "reasonix/host-envelope/answered-once", "--script", script.to_str().unwrap()];
        shim("reasonix-v2", &only, &mock_host("reasonix-v2", &[]))
    };
    let output = play(asks);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    // It waits for an intercept that nobody asked for.
    let output = play(&asks.replace("[\"input.receive\"]", "[]"));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("the script blocks-the-user was not played to its end"), "{output:?}");
    // It is blocked, and not done.
    let output = play(&asks.replace("\"is\":{\"blocked\":{\"$type\":\"string\"}}", "\"is\":{\"done\":true}"));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let says = "root cause │ what came of \"turn\" is not what the script says, but {\"blocked\":";
    assert!(stdout(&output).contains(says), "{}", stdout(&output));
    // What can never come is seen before anything is played.
    for (from, to, says) in [
        ("{\"outcome\":\"turn\"", "{\"outcome\":\"trun\"", "no ask before it is called so"),
        ("\"do\":\"turn\"", "\"do\":\"trun\"", "the ask \"turn\" is for \"trun\", and there are start, stop"),
    ] {
        let output = play(&asks.replace(from, to));
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    // What nothing of a host's script captures.
    let output = play(&asks.replace("{\"$capture\":\"command\"}", "{\"$capture\":\"nope\"}"));
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("\"start\" has a $capture that no"), "{}", stderr(&output));
}

#[test]
fn guests_are_not_compared() {
    let output = sidecert(["check", "guest", "--suite", "reasonix-v2", "--compare", "--", "true"]);
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(2), 1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--compare: it compares hosts"), "{}", stderr(&output));
}

#[test]
fn a_recording_of_a_host_is_judged_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let command = mock_host("reasonix-v1", &["--flaw", "host-passes-over-text"]);
    let report = |output: Output| {
        let text = stdout(&output);
        let lines = text.lines().filter(|line| !line.contains(" ms ")).map(str::to_owned);
        lines.collect::<Vec<_>>().join("\n")
    };
    let checked = report(shim("reasonix-v1", &["--record", &run], &command));
    assert_eq!(report(sidecert(["judge", &run])), checked);
}

#[test]
fn what_is_no_host_is_told_apart_in_one_line() {
    let hello = r#"{"shim":1,"name":"x","version":"1","does":["start","stop","turn"]}"#;
    let nothing =
        format!("echo '{hello}'; read a; read b; echo '{{\"outcome\":1,\"done\":true}}'; cat >/dev/null");
    let told = |lines: &str| format!("echo '{hello}'; read a; read b; printf '{lines}'; cat >/dev/null");
    let (twice, unclear) = (told(r#"{"outcome":7,"done":true}\n"#), told(r#"{"outcome":1,"doen":true}\n"#));
    let cases = [
        ("exit 0", "the host exited with code 0 before it had greeted"),
        ("echo the reason >&2; exit 3", "the host exited with code 3 before it had greeted"),
        ("cat >/dev/null", "the shim did not greet in 1 s"),
        ("echo '{\"shim\":7}'; cat >/dev/null", "the shim speaks version 7 of its protocol, and not 1"),
        (
            "echo '{\"shim\":1,\"name\":\"x\",\"version\":\"1\"}'; cat >/dev/null",
            "the first line of the shim has no list of words \"does\"",
        ),
        (
            "echo '{\"shim\":1,\"name\":\"x\",\"does\":[\"start\"]}'; cat >/dev/null",
            "the first line of the shim has no text \"version\"",
        ),
        (
            "echo '{\"shim\":1,\"name\":\"x\",\"version\":\"1\",\"does\":[\"Start\"]}'; cat >/dev/null",
            "nothing was decided: all of it is out of reach",
        ),
        ("echo hello; exit 0", "the host exited with code 0 before it had greeted"),
        (&twice, "the shim told what came of ask 7, and none such is open"),
        (&unclear, "what the shim told of \"start\" is no outcome: {\"outcome\":1,\"doen\":true}"),
        (&nothing, "what was asked is over, and guest \"one\" was not launched"),
    ];
    for (script, cause) in cases {
        let command = ["sh", "-c", script].map(str::to_owned);
        let output = shim(
            "reasonix-v2",
            &["--start-timeout", "1s", "--only", "reasonix/host-envelope/answered-once"],
            &command,
        );
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(3), "{script}: {text}");
        assert!(text.contains(cause), "{script}: {text}");
    }
}

#[test]
fn a_wrong_command_line_is_one_line() {
    let mock = mock_host("reasonix-v2", &[]);
    for (options, says) in [
        (&[][..], "no driver to make the host act: --driver is one of shim, reasonix-cli"),
        (&["--driver", "shin"], "the drivers are shim, reasonix-cli"),
        (&["--driver", "shim", "--only", "reasonix/envelope/*"], "no requirement matches"),
    ] {
        let output = check("reasonix-v2", options, &mock);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{options:?}: {}", stderr(&output));
    }
    let missing = shim("reasonix-v2", &[], &["./no-such-shim".to_owned()]);
    assert_eq!(missing.status.code(), Some(4), "{}", stderr(&missing));
    let output = sidecert(["check", "guest", "--suite", "reasonix-v2", "--driver", "shim", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--driver: it makes a host act"), "{}", stderr(&output));
}

#[test]
fn the_released_cli_keeps_what_is_specified_of_frames() {
    let Some(program) = reasonix_cli() else { return };
    let command = [program.display().to_string()];
    let frames = ["--only", "reasonix/host-transport/*", "--only", "reasonix/host-envelope/*"];
    for driver in ["reasonix-cli", "reasonix-cli:serve", "reasonix-cli:run"] {
        let output = check("reasonix-v2", &[&["--driver", driver], &frames[..]].concat(), &command);
        assert_eq!(output.status.code(), Some(0), "{driver}: {}{}", stdout(&output), stderr(&output));
        assert_eq!(failed(&output), BTreeSet::new(), "{driver}");
    }
}

/// A fence of a guest, the answer to it, and what follows.
const FENCE: &str = concat!(
    r#"{"t":30,"l":1,"from":"guest","as":"fence","json":{"jsonrpc":"2.0","id":7,"method":"host/content/read","#,
    r#""params":{"contentRef":"sidecert-fence","offset":0}}}"#
);
const ANSWERED: &str = r#"{"t":40,"l":1,"from":"host","json":{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"none"}}}"#;
const SETTLED: &str = r#"{"t":40,"settled":true}"#;

/// What is said of a host that was recorded so with one guest.
fn judged(events: &[&str]) -> serde_json::Value {
    let begin = [
        r#"{"transcript":1,"process":"001-turn"}"#,
        r#"{"t":0,"shim":{"shim":1,"name":"a host"}}"#,
        r#"{"t":0,"script":{"name":"turn","phase":"begin"}}"#,
        r#"{"t":10,"l":1,"launched":{"as":"one","spawned":true,"pid":4711,"parent":4710,"session":4710}}"#,
    ];
    let end = r#"{"t":60,"script":{"name":"turn","phase":"end"}}"#;
    let lines = begin.iter().chain(events).chain([&end]).copied();
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let end = format!("{{\"end\":\"done\",\"events\":{}}}", lines.len() - 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turn.ndjson");
    std::fs::write(&path, lines.join("\n") + "\n" + &end + "\n").unwrap();
    let path = path.display().to_string();
    let output = sidecert(["judge", "--suite", "reasonix-v2", "--report", "json=-", &path]);
    let report: serde_json::Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(report["role"], "host");
    report
}

/// How much is late where a turn is over, a fence stands behind that or before it, and the host asks something more.
fn late(fence_first: bool, between: &str) -> usize {
    let ask = r#"{"t":20,"as":"turn","ask":{"ask":1,"do":"turn","text":"x"}}"#;
    let outcome = r#"{"t":30,"as":"turn","outcome":{"outcome":1,"done":true}}"#;
    let more = r#"{"t":50,"l":1,"from":"host","json":{"jsonrpc":"2.0","id":9,"method":"extension/provider/stream/cancel"}}"#;
    let (first, second) = if fence_first { (FENCE, outcome) } else { (outcome, FENCE) };
    let report = judged(&[ask, first, second, ANSWERED, SETTLED, between, more]);
    report["late"].as_array().map_or(0, Vec::len)
}

#[test]
fn what_comes_behind_a_fence_behind_all_outcomes_is_late() {
    assert_eq!(late(false, ""), 1);
    // The fence was on its way already: what the outcome stands behind may come after its answer.
    assert_eq!(late(true, ""), 0);
    for of_ours in [
        r#"{"t":45,"l":1,"did":{"wrote-errors":9}}"#,
        r#"{"t":45,"l":1,"from":"guest","json":{"jsonrpc":"2.0","method":"x"}}"#,
        r#"{"t":45,"as":"stop","ask":{"ask":2,"do":"stop"}}"#,
    ] {
        assert_eq!(late(false, of_ours), 0, "{of_ours}");
    }
}

#[test]
fn a_line_that_is_no_json_may_be_answered_behind_a_later_request() {
    let text = support::workspace().join("golden/recordings/reference-host-v2/001-plain-turn.ndjson");
    let text = std::fs::read_to_string(text).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    // Its string has bytes that are no UTF-8; a host that reads on all the same finds this id.
    let is_answer = |line: &&str| line.contains(r#""from":"host""#) && line.contains(r#""id":700005,"#);
    let at = lines.iter().position(is_answer).unwrap();
    let answer = lines.remove(at);
    let settled = at + lines[at..].iter().position(|line| line.contains(r#""settled":true"#)).unwrap();
    let time = lines[settled].split_once(',').unwrap().0;
    let answer = format!("{time},{}", answer.split_once(',').unwrap().1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.ndjson").display().to_string();
    let fails = |lines: &[&str]| {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let only = "reasonix/host-envelope/answers-what-was-asked";
        failed(&sidecert(["judge", "--suite", "reasonix-v2", "--only", only, &path])).len()
    };
    lines.insert(settled + 1, &answer);
    assert_eq!(fails(&lines), 0);
    lines.insert(settled + 1, &answer);
    assert_eq!(fails(&lines), 1, "one line has one answer");
}
