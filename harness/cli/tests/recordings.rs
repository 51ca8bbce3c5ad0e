//! What can be done with a recording: judged where no check made it, played again, and made a script of.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{mock, program, python_guest, sidecert, stderr, stdout};
use tempfile::TempDir;

const SUITE: &str = "reasonix-v2";

/// Records a run of the mock in `folder`/run; where it is.
fn record(folder: &Path, flaw: Option<&str>, only: &[&str]) -> String {
    let run = folder.join("run").display().to_string();
    let mut words = vec!["check", "guest", "--suite", SUITE, "--seed", "1", "--record", &run, "-q"];
    words.extend(only.iter().flat_map(|id| ["--only", id]));
    let target = mock(SUITE, flaw);
    words.push("--");
    words.extend(target.iter().map(String::as_str));
    assert!(matches!(sidecert(&words).status.code(), Some(0 | 1)));
    run
}

/// The frames of a transcript: who wrote each, and its text.
fn frames(transcript: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(transcript).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter_map(|event| Some((event["from"].as_str()?.to_owned(), event.get("json")?.to_string())))
        .collect()
}

/// The first recording of a run.
fn transcript(run: &str) -> PathBuf {
    let files = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "ndjson")).min().unwrap()
}

/// The handshake and the shutdown as a log with both directions, and as one file for each.
fn logs(folder: &Path, flaw: Option<&str>, id: &str) -> (String, String, String) {
    fs::create_dir_all(folder).unwrap();
    let run = record(folder, flaw, &[id]);
    let transcript = transcript(&run);
    let mut whole = String::new();
    let (mut host, mut guest) = (String::new(), String::new());
    for (from, frame) in frames(&transcript) {
        let (dir, side) =
            if from == "host" { ("host->guest", &mut host) } else { ("guest->host", &mut guest) };
        whole.push_str(&format!("{{\"at\":1,\"dir\":\"{dir}\",\"frame\":{frame}}}\n"));
        side.push_str(&format!("{frame}\n"));
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    (write("log.jsonl", &whole), write("host.ndjson", &host), write("guest.ndjson", &guest))
}

fn judged(words: &[&str]) -> (Option<i32>, Value, String) {
    let output = sidecert([&["judge", "--suite", SUITE, "--report", "json=-"], words].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, stderr(&output))
}

fn verdict(report: &Value, id: &str) -> String {
    let rows = report["requirements"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == id).unwrap();
    row["why"].as_str().or(row["verdict"].as_str()).unwrap().to_owned()
}

#[test]
fn a_log_is_judged_by_what_holds_always() {
    for (flaw, code, expected) in [(None, 0, "pass"), (Some("speaks-too-soon"), 1, "fail")] {
        let folder = TempDir::new().unwrap();
        let (log, ..) = logs(folder.path(), flaw, "reasonix/lifecycle/silent-before-initialized");
        let (exit, report, says) = judged(&[&log]);
        assert_eq!(exit, Some(code), "{says}");
        assert_eq!(verdict(&report, "reasonix/lifecycle/silent-before-initialized"), expected);
        assert_eq!(verdict(&report, "reasonix/envelope/unknown-method-refused"), "not_provoked");
        assert_eq!(report["ours"].as_array().unwrap().len(), 0);
        // Event N is line N + 1.
        let row = report["requirements"].as_array().unwrap().iter().find(|row| row["verdict"] == "fail");
        if let Some(row) = row {
            let line = usize::try_from(row["at"]["event"].as_u64().unwrap()).unwrap();
            let text = fs::read_to_string(&log).unwrap();
            assert!(text.lines().nth(line).unwrap().contains("guest->host"), "{row}");
        }
    }
}

#[test]
fn two_files_say_what_does_not_depend_on_the_order_between_them() {
    let folder = TempDir::new().unwrap();
    let (_, host, guest) = logs(folder.path(), None, "reasonix/members/members-fit");
    let (exit, report, says) = judged(&["--from-host", &host, "--from-guest", &guest]);
    assert_eq!(exit, Some(0), "{says}");
    assert_eq!(verdict(&report, "reasonix/members/members-fit"), "pass");
}

#[test]
fn a_bad_log_says_the_line() {
    let folder = TempDir::new().unwrap();
    let (log, ..) = logs(folder.path(), None, "reasonix/members/members-fit");
    let text = fs::read_to_string(&log).unwrap();
    let first = text.lines().next().unwrap();
    let swapped = text
        .replace("host->guest", "x")
        .replace("guest->host", "host->guest")
        .replace("\"x\"", "\"guest->host\"");
    for (name, text, code, expected) in [
        ("cut", text[..text.len() - 9].to_owned(), 3, "cut off: not JSON"),
        ("twice", format!("{text}{first}\n"), 3, "another conversation begins"),
        ("odd", format!("{text}{{\"dir\":\"up\",\"frame\":{{}}}}\n"), 3, "dir is \\\"up\\\""),
        ("empty", format!("{text}{{\"dir\":\"host->guest\"}}\n"), 3, "neither \\\"frame\\\""),
        ("swapped", swapped, 2, "the directions are swapped"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let (exit, report, says) = judged(&[&path.display().to_string()]);
        assert_eq!(exit, Some(code), "{name}: {says} {}", report["outcome"]);
        assert!(says.contains("line ") || code == 3, "{says}");
        assert!(says.contains(expected) || report.to_string().contains(expected), "{name}: {says} {report}");
    }
    let output = sidecert(["judge", &log]);
    assert_eq!((output.status.code(), stderr(&output).contains("--suite is")), (Some(2), true));
    let output = sidecert(["judge", "--suite", SUITE, &folder.path().join("nothing").display().to_string()]);
    assert_eq!((output.status.code(), stderr(&output).contains("no such recording")), (Some(2), true));
}

#[test]
fn a_bad_transcript_says_the_line_and_is_judged_up_to_it() {
    let folder = TempDir::new().unwrap();
    let run = record(folder.path(), None, &["reasonix/members/members-fit"]);
    let text = fs::read_to_string(transcript(&run)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let count = lines.len();
    let joined = |lines: &[&str]| lines.join("\n") + "\n";
    // The end of the conversation before its beginning.
    let mut reordered = lines.clone();
    reordered.swap(2, count - 3);
    for (name, text, line, expected) in [
        ("cut", joined(&lines[..count - 1]), count, "it has no footer"),
        ("torn", text[..text.len() - 9].to_owned(), count, "it has no footer"),
        ("twice", text.repeat(2), count + 1, "something follows the footer"),
        ("reordered", joined(&reordered), 4, "the recording is out of order"),
        ("future", text.replacen("{\"transcript\":1", "{\"transcript\":2", 1), 1, "format 2 of a transcript"),
        ("garbage", joined(&[lines[0], lines[1], "garbage"]), 3, "not JSON"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let (exit, report, says) = judged(&[&path.display().to_string()]);
        assert_eq!(exit, Some(3), "{name}: {says} {}", report["outcome"]);
        let told = report["outcome"]["cause"].as_str().unwrap_or_default();
        assert!(told.contains(&format!("line {line}")), "{name}: {told}");
        assert!(told.contains(expected), "{name}: {told}");
    }
}

#[test]
fn a_line_without_end_and_many_tiny_frames_are_held_in_bounds() {
    use wait4::Wait4 as _;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("endless");
    // A hole takes no room, here or on the disk; what a child is said to use begins with what its parent does.
    File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let (exit, report, _) = judged(&[&path.display().to_string()]);
    assert_eq!(exit, Some(3));
    assert!(report["outcome"]["cause"].as_str().unwrap().contains("longer than"), "{}", report["outcome"]);
    let bounded = |words: &[&str]| {
        let mut judge = Command::new(program());
        judge
            .args(["judge", "--suite", SUITE, "--quiet"])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let used = judge.spawn().unwrap().wait4().unwrap();
        // A recording may have lines of 24 MiB; what is held does not grow with it.
        assert!(used.rusage.maxrss < 128 << 20, "{}", used.rusage.maxrss);
    };
    bounded(&[&path.display().to_string()]);
    let frame = "{\"dir\":\"guest->host\",\"frame\":{\"jsonrpc\":\"2.0\",\"method\":\"x\"}}\n";
    fs::write(&path, frame.repeat(1 << 17)).unwrap();
    let (exit, ..) = judged(&[&path.display().to_string()]);
    assert!(matches!(exit, Some(0 | 1)), "{exit:?}");
    bounded(&[&path.display().to_string()]);
}

#[test]
fn a_recording_is_replayed_against_the_same_guest_and_tells_it_from_another() {
    let folder = TempDir::new().unwrap();
    let run = record(
        folder.path(),
        None,
        &["reasonix/envelope/*", "reasonix/lifecycle/*", "reasonix/interception/*"],
    );
    let replay = |flaw: Option<&str>| {
        let target = mock(SUITE, flaw);
        sidecert(["replay", &run, "--"].into_iter().chain(target.iter().map(String::as_str)))
    };
    let same = replay(None);
    assert_eq!(same.status.code(), Some(0), "{}{}", stdout(&same), stderr(&same));
    assert!(stdout(&same).contains("the target says the same"));
    let other = replay(Some("serves-any-method"));
    assert_eq!(other.status.code(), Some(1), "{}{}", stdout(&other), stderr(&other));
    assert!(stdout(&other).contains("\n- ←") || stdout(&other).contains("\n-← "), "{}", stdout(&other));
}

#[test]
fn a_transcript_is_replayed_by_itself_and_what_cannot_be_is_no_difference() {
    let folder = TempDir::new().unwrap();
    let run = record(
        folder.path(),
        None,
        &["reasonix/transport/oversized-frame-fatal", "reasonix/members/members-fit"],
    );
    let target = mock(SUITE, None);
    let replay = |recording: &str, more: &[&str], target: &[String]| {
        let words = ["replay", recording, "--suite", SUITE].into_iter().chain(more.iter().copied());
        sidecert(words.chain(["--"]).chain(target.iter().map(String::as_str)))
    };
    let alone = transcript(&run).display().to_string();
    let name = transcript(&run).file_stem().unwrap().to_string_lossy().into_owned();
    let (log, ..) = logs(&folder.path().join("log"), None, "reasonix/members/members-fit");
    for (recording, more) in [(&alone, vec![]), (&log, vec![]), (&run, vec!["--process", name.as_str()])] {
        let output = replay(recording, &more, &target);
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains("1 process replayed"), "{}", stdout(&output));
    }
    // A guest that is ended by what is sent is ended again, and not by us.
    assert_eq!(replay(&run, &[], &target).status.code(), Some(0));
    for silent in [&["false"][..], &["sleep", "600"]] {
        let silent: Vec<String> = silent.iter().map(|&word| word.to_owned()).collect();
        let output = replay(&alone, &["--start-timeout", "1s"], &silent);
        assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
        assert!(stdout(&output).contains("1 process not replayed: "), "{}", stdout(&output));
    }
    let empty = folder.path().join("empty.jsonl").display().to_string();
    fs::write(&empty, "").unwrap();
    assert_eq!(replay(&empty, &[], &target).status.code(), Some(2));
    let (exit, ..) = judged(&[&empty]);
    assert_eq!(exit, Some(2));
}

#[test]
fn two_files_of_which_one_is_none_are_refused() {
    let folder = TempDir::new().unwrap();
    let (_, host, guest) = logs(folder.path(), None, "reasonix/members/members-fit");
    let garbage = folder.path().join("garbage").display().to_string();
    fs::write(&garbage, "what is this\n").unwrap();
    for (host, guest, side) in [(&garbage, &guest, "host"), (&host, &garbage, "guest")] {
        let (exit, _, says) = judged(&["--from-host", host, "--from-guest", guest]);
        assert_eq!(exit, Some(2), "{says}");
        assert!(says.contains(&format!("nothing in the file of the {side} is")), "{says}");
    }
}

#[test]
fn a_script_of_a_recording_plays_beside_the_suite() {
    let folder = TempDir::new().unwrap();
    let run = record(folder.path(), None, &["reasonix/members/members-fit"]);
    let script = folder.path().join("mine.script").display().to_string();
    let output = sidecert(["script", "from", &run, "--name", "mine", "--output", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let check = |script: &str, target: &[String]| {
        let mut words = vec!["check", "guest", "--suite", SUITE, "--script", script];
        words.extend(["--only", "reasonix/lifecycle/shutdown-accepted", "--"]);
        words.extend(target.iter().map(String::as_str));
        sidecert(words)
    };
    let green = check(&script, &mock(SUITE, None));
    assert_eq!(green.status.code(), Some(0), "{}", stdout(&green));
    assert_eq!(check(&script, &python_guest("reasonix-v2")).status.code(), Some(0));
    let text = fs::read_to_string(&script).unwrap();
    // An answer that never comes.
    let unmet = format!("{text}{{\"await\":{{\"method\":\"no/such\"}},\"within\":\"answer\"}}\n");
    fs::write(&script, unmet).unwrap();
    let output = check(&script, &mock(SUITE, None));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("the script mine was not played to its end"), "{}", stdout(&output));
    // A frame of its own that is wrong, and does not say so.
    let wrong = "{\"send\":{\"json\":{\"jsonrpc\":\"1.0\"}}}\n{\"close\"";
    assert!(text.contains("{\"close\""), "{text}");
    fs::write(&script, text.replacen("{\"close\"", wrong, 1)).unwrap();
    let output = check(&script, &mock(SUITE, None));
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stdout(&output).contains("sends a wrong frame and does not say so"), "{}", stdout(&output));
    // One that can never be sent.
    let lacking = "{\"send\":{\"json\":{\"x\":{\"$capture\":\"nope\"}}},\"as\":\"odd\"}\n{\"close\"";
    fs::write(&script, text.replacen("{\"close\"", lacking, 1)).unwrap();
    let output = check(&script, &mock(SUITE, None));
    assert!(stderr(&output).contains("\"odd\" has a $capture that no"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
    // What is no script says where.
    let reaction = r#"{"when":{"method":"x"},"answer":{},"departs":"why","twice":true}"#;
    for (bad, says) in
        [("{\"sned\":{}}", "\"sned\" is no step"), (reaction, "departs goes with answer alone")]
    {
        fs::write(&script, format!("{text}{bad}\n")).unwrap();
        let output = check(&script, &mock(SUITE, None));
        let line = format!("line {}: {says}", text.lines().count() + 1);
        assert!(stderr(&output).contains(&line), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn what_a_killed_check_had_recorded_is_judged_and_a_transcript_finds_its_suite() {
    let folder = TempDir::new().unwrap();
    let run = record(folder.path(), None, &["reasonix/lifecycle/shutdown-answered-in-time"]);
    let json = Path::new(&run).join("run.json");
    let whole: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let one = transcript(&run).display().to_string();
    let output = sidecert(["judge", "--report", "json=-", &one]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["suite"], output.status.code()), (&whole["suite"], Some(0)), "{}", stderr(&output));
    // A check writes this first, and says at its end which processes there were.
    let text = fs::read_to_string(&json).unwrap();
    let begun = format!("{}\"processes\": []\n}}\n", text.split_once("\"processes\"").unwrap().0);
    fs::write(&json, begun).unwrap();
    let output = sidecert(["judge", "--report", "json=-", &run]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(verdict(&report, "reasonix/lifecycle/shutdown-answered-in-time"), "pass");
    assert!(stderr(&output).contains("the check that recorded it was killed"), "{}", stderr(&output));
}
