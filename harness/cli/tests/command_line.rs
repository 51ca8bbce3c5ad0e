//! What can go wrong around a check: each gives one line that names the thing and what to do, and a documented code.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::{check, mock, program, sidecert, verdicts};
use tempfile::TempDir;

const SUITE: &str = "reasonix-v1";

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks `target` and expects this code, one line on standard error, and this in it.
fn complains(options: &[&str], target: &[&str], code: i32, says: &str) {
    let mut words = vec!["check", "guest", "--suite", SUITE];
    words.extend(options);
    words.push("--");
    words.extend(target);
    let output = sidecert(&words);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
    assert!(told.contains(says), "{words:?}: {told}");
    assert_eq!(told.lines().count(), 1, "{words:?}: {told}");
}

fn executable(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_command_that_cannot_be_started() {
    let folder = TempDir::new().unwrap();
    let folder_path = folder.path().display().to_string();
    let plain = folder.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let no_interpreter = executable(folder.path(), "script", "#!/no/such/interpreter\n");
    for (target, says) in [
        ("/no/such/guest", "/no/such/guest"),
        ("no-such-guest-in-any-folder", "no-such-guest-in-any-folder"),
        (&*folder_path, "folder"),
        (&plain.display().to_string(), "plain"),
        (&no_interpreter, "/no/such/interpreter"),
    ] {
        complains(&[], &[target], 4, says);
    }
    complains(&["--cwd", "/no/such/folder"], &["true"], 4, "/no/such/folder");
    complains(&["--wrap", "/no/such/sandbox --flag"], &["true"], 4, "/no/such/sandbox");
}

#[test]
fn a_command_line_that_is_wrong() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let full = folder.path().display().to_string();
    let at = |path: &str| format!("@{path}");
    complains(&[], &[], 2, "-- COMMAND");
    for (options, says) in [
        (vec!["--only", "reasonix/members/member-fit"], "did you mean reasonix/members/members-fit?"),
        (vec!["--only", "reasonix/x/*"], "no requirement matches \"reasonix/x/*\""),
        (vec!["--only", "reasonix/["], "--only: \"reasonix/[\" is no pattern: "),
        (vec!["--skip", "*"], "nothing would be checked"),
        (vec!["--require", "nothing"], "--require: no requirement matches"),
        (vec!["--only", "@/no/such/file"], "/no/such/file"),
        (vec!["--only", &at(&file("empty", "# nothing\n\n"))], "it names nothing"),
        (vec!["--only", &at(&file("typo", "\nreasonix/nope\n"))], "line 2: no requirement matches"),
        (vec!["--manifest", "/no/such/manifest"], "/no/such/manifest"),
        (vec!["--manifest", &file("broken", "{\"a\":")], "byte 5"),
        (vec!["--manifest", &file("list", "[]")], "no JSON object"),
        (
            vec!["--provoke", &file("nowhere", "[provoke]\nslow = {event = \"input.recieve\", payload = 1}")],
            "did you mean \"input.receive\"?",
        ),
        (vec!["--env", ""], "there is no name"),
        (vec!["--provoke", "/no/such/file"], "/no/such/file"),
        (vec!["--provoke", &file("broken.toml", "[provoke]\nlarge = {\n")], "line"),
        (
            vec!["--provoke", &file("unknown.toml", "[provoke]\nlarg = { event = \"x\", payload = 1 }\n")],
            "but \"large\"",
        ),
        (vec!["--provoke", &file("other.toml", "[provoked]\n")], "\"provoked\" is unknown"),
        (
            vec!["--provoke", &file("half.toml", "[provoke]\nlarge = { event = \"x\" }\n")],
            "it has an event and a payload",
        ),
        (vec!["--exercise", "everything"], "the groups are"),
        (vec!["--env", "NO_SUCH_VARIABLE_HERE"], "there is no such variable"),
        (vec!["--env", "=x"], "--env =x: there is no name"),
        (vec!["--wrap", "'unclosed"], "a quote is not closed"),
        (vec!["--record", &full], "not empty"),
    ] {
        complains(&options, &["true"], 2, says);
    }
    for words in [
        vec!["check", "guest"],
        vec!["check", "guest", "--suite", "reasonix-v9", "--", "x"],
        vec!["nonsense"],
    ] {
        assert_eq!(sidecert(&words).status.code(), Some(2), "{words:?}");
    }
    let output = sidecert(["check", "guest", "--suite", SUITE, "--jobs", "0", "--", "true"]);
    assert_eq!(
        (output.status.code(), stderr(&output).contains("at least one process must run")),
        (Some(2), true)
    );
    let output = sidecert(["mock", "guest", "--suite", SUITE, "--flaw", "speaks-to-soon"]);
    assert_eq!((output.status.code(), stderr(&output).contains("but speaks-too-soon")), (Some(2), true));
    let output = sidecert(["judge", "/no/such/run"]);
    assert_eq!((output.status.code(), stderr(&output).contains("no such recording")), (Some(2), true));
}

/// What is told as the root cause when `script` is checked, and with which code; nothing is tried twice.
fn root_cause(script: &str, options: &[&str]) -> (String, i32) {
    let target = ["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()];
    let (report, code) = check(SUITE, options, &target);
    assert_eq!(report["processes"].as_array().unwrap().len(), 1, "{script}");
    for (id, verdict) in verdicts(&report) {
        assert_ne!(verdict, "pass", "{id}: nothing can pass that needs an answer");
    }
    (report["outcome"]["cause"].as_str().unwrap().to_owned(), code)
}

#[test]
fn a_program_that_is_no_guest_has_one_root_cause() {
    for (script, expected, code) in [
        (
            "echo 'usage: guest [--help]'",
            // The banner itself is a fault: nothing but the answer may come before initialized.
            "the guest exited with code 0 before it answered \"initialize\"; it wrote \"usage: guest [--help]\" to standard output, which is no frame",
            1,
        ),
        ("exit 7", "the guest exited with code 7 before it answered \"initialize\"", 3),
        ("kill -SEGV $$", "the guest was ended by signal 11 before it answered \"initialize\"", 3),
    ] {
        assert_eq!(root_cause(script, &[]), (expected.to_owned(), code), "{script}");
    }
    let silent = root_cause("read line; read line", &["--start-timeout", "100ms"]);
    assert_eq!(silent, ("no answer to initialize in 100 ms".to_owned(), 3));
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{"reason":"unsupported_version","retryable":false}}}"#;
    let refused = root_cause(&format!("read line; echo '{refusal}'; read line"), &[]);
    let expected = "the guest answered initialize with the error -32000 (unsupported_version)";
    assert_eq!(refused, (expected.to_owned(), 3));
}

#[test]
fn a_banner_before_the_handshake_is_found_and_does_not_hide_the_rest() {
    let mock = mock(SUITE, None).join(" ");
    let target = ["/bin/sh".to_owned(), "-c".to_owned(), format!("echo Welcome; exec {mock}")];
    let (report, code) = check(SUITE, &[], &target);
    let failing: Vec<String> =
        verdicts(&report).into_iter().filter(|(_, verdict)| verdict == "fail").map(|(id, _)| id).collect();
    let expected = ["reasonix/transport/only-frames", "reasonix/lifecycle/silent-before-initialized"];
    assert_eq!((failing, code), (expected.map(str::to_owned).to_vec(), 1));
}

#[test]
fn lines_that_end_in_cr_lf_are_lines() {
    let script = format!("{} | sed -u 's/$/\\r/'", mock(SUITE, None).join(" "));
    let (report, code) = check(SUITE, &[], &["/bin/sh".to_owned(), "-c".to_owned(), script]);
    assert_eq!(code, 0, "{report:#}");
}

#[test]
fn a_file_that_never_ends_is_refused() {
    for option in ["--manifest", "--provoke"] {
        complains(&[option, "/dev/zero"], &["true"], 2, "it is larger than");
    }
    complains(&["--only", "@/dev/zero"], &["true"], 2, "it is larger than");
}

#[test]
fn a_required_requirement_must_pass() {
    let (_, code) =
        check(SUITE, &["--require", "reasonix/transport/frames-within-limit"], &mock(SUITE, None));
    assert_eq!(code, 3);
    let (_, code) = check(SUITE, &["--require", "reasonix/members/members-fit"], &mock(SUITE, None));
    assert_eq!(code, 0);
}

#[test]
fn any_number_of_jobs_is_as_many_as_there_are_processes() {
    let (_, code) = check(SUITE, &["--jobs", "99999999999"], &mock(SUITE, None));
    assert_eq!(code, 0);
}

#[test]
fn only_and_skip_play_and_judge_what_they_leave() {
    let options = ["--only", "reasonix/transport/*", "--skip", "*frame*"];
    let (report, code) = check(SUITE, &options, &mock(SUITE, None));
    assert_eq!(code, 0);
    for (id, verdict) in verdicts(&report) {
        let selected = id.starts_with("reasonix/transport/") && !id.contains("frame");
        assert_eq!(verdict == "not_selected", !selected, "{id}: {verdict}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_told_after_the_others_were() {
    let mock = mock(SUITE, None);
    let run = |path: &str| {
        let mut words =
            vec!["check", "guest", "--suite", SUITE, "--only", "reasonix/members/members-fit", "--report"];
        words.extend([path, "--"]);
        words.extend(mock.iter().map(String::as_str));
        sidecert(words)
    };
    // Where there is no place for one, nothing is even started.
    for (path, is_late) in
        [("json=/no/such/folder/report.json", false), ("json=/tmp", false), ("json=/dev/full", true)]
    {
        let output = run(path);
        assert_eq!(output.status.code(), Some(5), "{path}");
        assert!(stderr(&output).contains("could not be written"), "{path}: {}", stderr(&output));
        let people_see_it = String::from_utf8_lossy(&output.stdout).contains("1 pass");
        assert_eq!(people_see_it, is_late, "{path}");
    }
}

#[test]
fn a_full_disk_and_a_closed_pipe() {
    let words = |command: &mut Command| {
        command.args(["check", "guest", "--suite", SUITE, "--only", "reasonix/members/members-fit", "--"]);
        command.args(mock(SUITE, None));
    };
    let mut command = Command::new(program());
    words(&mut command);
    let output = command.stdout(File::options().write(true).open("/dev/full").unwrap()).output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output).contains("standard output could not be written")),
        (Some(5), true)
    );
    // Nobody reads: silent, and the verdict keeps its code.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(program());
    words(&mut command);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn an_interruption_leaves_a_partial_report_and_nothing_running() {
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
        let folder = TempDir::new().unwrap();
        let pids = folder.path().join("pids");
        let report = folder.path().join("report.json");
        // A guest that says who it is, starts a grandchild in a session of its own, and never answers.
        rustix::fs::mkfifoat(rustix::fs::CWD, &pids, rustix::fs::Mode::RWXU).unwrap();
        let script = format!("setsid sleep 600 & echo $$ $! > {}; exec sleep 600", pids.display());
        let mut child = Command::new(program())
            .args(["check", "guest", "--suite", SUITE, "--no-deadline", "--report"])
            .arg(format!("json={}", report.display()))
            .args(["--", "/bin/sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(File::open(&pids).unwrap()).read_line(&mut line).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{name}");
        for pid in line.split_whitespace() {
            let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
            assert!(rustix::process::test_kill_process(pid).is_err(), "{name}: {pid:?} still runs");
        }
        let mut told = String::new();
        child.stdout.unwrap().read_to_string(&mut told).unwrap();
        assert!(told.contains("interrupted"), "{name}: {told}");
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        assert_eq!(report["outcome"]["interrupted"], true);
    }
}

#[test]
fn an_interruption_before_anything_has_started_is_one_as_well() {
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("manifest");
    rustix::fs::mkfifoat(rustix::fs::CWD, &manifest, rustix::fs::Mode::RWXU).unwrap();
    let child = Command::new(program())
        .args(["check", "guest", "--suite", SUITE, "--manifest"])
        .arg(&manifest)
        .arg("--")
        .args(mock(SUITE, None))
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads its manifest now, and gets it when it has been told to stop.
    let mut written = File::options().write(true).open(&manifest).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    written.write_all(b"{}").unwrap();
    drop(written);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("interrupted"));
}

#[test]
fn the_help_says_enough_for_who_is_new() {
    let help = String::from_utf8(sidecert(["check", "guest", "--help"]).stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "streams: ",
        "all: ",
        "where something only should hold",
        "this changes no verdict, only how often it is started",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn the_report_of_a_run_and_of_its_recording_are_the_same() {
    let folder = TempDir::new().unwrap();
    for (name, flaw) in
        [("flawless", None), ("flawed", Some("speaks-too-soon")), ("cut", Some("answers-shutdown-late"))]
    {
        let run = folder.path().join(name);
        let live = folder.path().join(format!("{name}-live.json"));
        let judged = folder.path().join(format!("{name}-judged.json"));
        let live_to = format!("json={}", live.display());
        let mut words = vec!["check", "guest", "--suite", SUITE, "--report", &live_to, "--record"];
        let run_text = run.display().to_string();
        words.extend([&*run_text, "--"]);
        let target = mock(SUITE, flaw);
        words.extend(target.iter().map(String::as_str));
        let live_output = sidecert(&words);
        let judged_output = sidecert(["judge", "--report", &format!("json={}", judged.display()), &run_text]);
        assert_eq!(live_output.status.code(), judged_output.status.code(), "{name}");
        assert_eq!(live_output.stdout, judged_output.stdout, "{name}");
        assert_eq!(fs::read(live).unwrap(), fs::read(judged).unwrap(), "{name}");
        let mode = fs::metadata(run.join("001-cut-requests.ndjson")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "a recording is for its owner only");
    }
}

#[test]
fn a_recording_that_is_cut_off_is_judged_as_far_as_it_goes() {
    let folder = TempDir::new().unwrap();
    let run = folder.path().join("run");
    let run_text = run.display().to_string();
    let mut words = vec!["check", "guest", "--suite", SUITE, "--record", &run_text, "--"];
    let target = mock(SUITE, None);
    words.extend(target.iter().map(String::as_str));
    assert_eq!(sidecert(&words).status.code(), Some(0));
    let tour = run.join("001-cut-requests.ndjson");
    let text = fs::read(&tour).unwrap();
    fs::write(&tour, &text[..text.len() / 2]).unwrap();
    let output = sidecert(["judge", &run_text]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stdout));
    // What was changed is no evidence: nobody is blamed for what stands there.
    let text = String::from_utf8(text).unwrap();
    let without_an_event =
        text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| format!("{line}\n"));
    for changed in [without_an_event.collect(), text.replacen("\"id\":1,", "\"id\":\"1\",", 1)] {
        fs::write(&tour, changed).unwrap();
        let output = sidecert(["judge", &run_text]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("so nothing in it counts") && said.contains(" 0 fail, 0 warn"), "{said}");
    }
    fs::write(&tour, &text).unwrap();
    fs::write(run.join("run.json"), "{}").unwrap();
    assert_eq!(sidecert(["judge", &run_text]).status.code(), Some(2));
}

#[test]
fn what_a_guest_leaves_running_is_killed_and_named() {
    let mock = mock(SUITE, None).join(" ");
    let script = format!("setsid sleep 600 </dev/null >/dev/null 2>&1 & exec {mock}");
    let target = ["/bin/sh".to_owned(), "-c".to_owned(), script];
    let (report, code) = check(SUITE, &["--only", "reasonix/members/members-fit"], &target);
    assert_eq!(code, 0);
    let left = report["processes"][0]["left"].as_array().unwrap();
    assert!(left.len() == 1 && left[0].as_str().unwrap().starts_with("sleep"), "{left:?}");
    let pid =
        left[0].as_str().unwrap().split(|letter: char| !letter.is_ascii_digit()).find(|it| !it.is_empty());
    let pid = Pid::from_raw(pid.unwrap().parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err());
}

#[test]
fn a_write_is_cut_where_the_seed_says_and_read_part_by_part() {
    let folder = TempDir::new().unwrap();
    let run = folder.path().join("run").display().to_string();
    let options = ["--seed", "7", "--only", "reasonix/envelope/notifications-unanswered", "--record", &run];
    let (report, code) = check(SUITE, &options, &mock(SUITE, None));
    assert_eq!((code, report["seed"].as_str()), (0, Some("0000000000000007")));
    let transcript = fs::read_to_string(Path::new(&run).join("001-observations.ndjson")).unwrap();
    assert!(transcript.contains(r#""wrote":{"as":"started","parts":[8,43,"#), "{transcript}");
}

#[test]
fn secrets_are_withheld_and_masked() {
    let folder = TempDir::new().unwrap();
    let seen = folder.path().join("seen");
    let secret = "hunter2-hunter2-hunter2";
    let script = format!("env > {}; echo $API_TOKEN $PLAIN", seen.display());
    let run = |options: &[&str]| {
        let mut command = Command::new(program());
        command.args(["check", "guest", "--suite", SUITE, "--report", "json=-"]).args(options);
        command.args(["--", "/bin/sh", "-c", &script]).env("API_TOKEN", secret).env("PLAIN", "plain-value");
        let output = command.output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (report, fs::read_to_string(&seen).unwrap())
    };
    let (report, environment) = run(&[]);
    assert!(!environment.contains(secret) && environment.contains("plain-value"));
    assert!(report.contains("API_TOKEN") && report.contains("plain-value") && !report.contains(secret));
    for options in [&["--env", "API_TOKEN"][..], &["--env-all"]] {
        let (report, environment) = run(options);
        assert!(environment.contains(secret), "{options:?}");
        assert!(!report.contains(secret), "{options:?}: a secret that is passed on is still masked");
    }
    let (_, environment) = run(&["--env-clear", "--env", "X=1"]);
    assert!(!environment.contains("plain-value") && environment.contains("X=1"));
    assert!(environment.contains("REASONIX_PLUGIN_NAME=sidecert-guest"));
}

#[test]
fn a_manifest_is_sent_as_the_expectation() {
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("reasonix-plugin.json");
    let text = r#"{"name":"mine","version":"1.2.3","runtime":{"command":"x","intercepts":["tool.before"],"capabilities":["interceptors"]}}"#;
    fs::write(&manifest, text).unwrap();
    let run = folder.path().join("run").display().to_string();
    let (report, code) =
        check(SUITE, &["--manifest", &manifest.display().to_string(), "--record", &run], &mock(SUITE, None));
    assert_eq!(code, 0);
    let catalog =
        verdicts(&report).into_iter().find(|(id, _)| id == "reasonix/providers/catalog-answered").unwrap();
    assert_eq!(catalog.1, "not_applicable", "without the capability the mock declares no providers");
    let transcript = fs::read_to_string(Path::new(&run).join("001-cut-requests.ndjson")).unwrap();
    let expectation =
        r#""manifest":{"intercepts":["tool.before"],"replaces":[],"capabilities":["interceptors"]}"#;
    assert!(transcript.contains(expectation));
}

#[test]
fn lists_are_tables_for_people_and_json_for_programs() {
    for what in ["requirements", "flaws", "scripts", "provocations"] {
        let table = sidecert(["list", what]);
        assert_eq!(table.status.code(), Some(0));
        let json = sidecert(["list", what, "--format", "json", "--suite", SUITE]);
        let entries: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        assert!(!entries.as_array().unwrap().is_empty(), "{what}");
        if what == "flaws" {
            for name in ["name", "side", "breaks", "reach"] {
                assert!(entries[0].get(name).is_some(), "{name}");
            }
        }
    }
}

#[test]
fn the_three_names_of_a_guest_are_one_command() {
    for name in ["guest", "sidecar", "plugin"] {
        let output = sidecert(["check", name, "--help"]);
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{name}");
        for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "70 ", "130 "] {
            assert!(help.lines().any(|line| line.trim_start().starts_with(code)), "{name}: {code}");
        }
    }
}
