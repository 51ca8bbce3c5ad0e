//! How guests are started, what they find, and why some cannot be.

use std::{fs, os::unix::fs::PermissionsExt as _};

use sidecert_proto::machine::Exited;
use sidecert_runner::{Process, Spawn};
use tempfile::TempDir;

use crate::{
    Test, guest,
    player::{Player, assert_gone, spawn},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_guest_finds_what_it_was_given_and_no_more", a_guest_finds_what_it_was_given_and_no_more),
    ("faults_say_what_to_do", faults_say_what_to_do),
    ("a_dropped_process_is_gone", a_dropped_process_is_gone),
    ("a_signal_reaches_the_guest", a_signal_reaches_the_guest),
];

fn a_guest_finds_what_it_was_given_and_no_more() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut spawn = spawn(&["surroundings"]);
    spawn.env = vec![("ONE".into(), "1".into()), ("SPACED".into(), "a b".into())];
    spawn.cwd = Some(folder.clone());
    let told = Player::new(|_, _| Vec::new()).play_on(Process::spawn(&spawn).unwrap());
    // What whoever started this test left open for everyone is not ours to close.
    let inherited = guest::descriptors();
    let lines: Vec<&str> =
        told.lines().into_iter().filter(|line| !inherited.iter().any(|it| it == line)).collect();
    assert_eq!(lines.iter().filter(|line| line.contains(" -> pipe:")).count(), 3, "{lines:?}");
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.contains(" -> pipe:")).collect();
    let expected = [
        folder.to_str().unwrap(),
        "ONE=1",
        "SPACED=a b",
        "group of its own: true",
        "session of its launcher: true",
        "terminal: false",
    ];
    assert_eq!(lines, expected);
}

fn faults_say_what_to_do() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    file("plain", "#!/bin/sh\n", 0o644);
    file("no-interpreter", "#! /nowhere/to/be-found -x\n", 0o755);
    file("windows", "#!/bin/sh\r\n", 0o755);
    file("interpreter-is-plain", &format!("#!{}\n", folder.path().join("plain").display()), 0o755);
    file("no-line", "echo hello\n", 0o755);
    file("empty", "", 0o755);
    let here = folder.path().to_str().unwrap();
    let table = [
        (vec![], "there is no command to run"),
        (vec!["no-such-program"], "\"no-such-program\" is not in PATH; install it, or give its path"),
        (vec!["./no-such-file"], "\"./no-such-file\" does not exist; build it, or correct the path"),
        (vec![""], "there is no command to run"),
        (vec!["./plain/x"], "\"./plain/x\" could not be started: Not a directory (os error 20)"),
        (
            vec!["./plain"],
            "\"./plain\" may not be executed; `chmod +x` it, or write its interpreter before it",
        ),
        (vec!["no-line"], "\"no-line\" is not in PATH, but here: write \"./\" before it"),
        (vec!["."], "\".\" is a folder; name the program in it"),
        (vec!["./"], "\"./\" is a folder; name the program in it"),
        (
            vec!["./no-interpreter"],
            "\"./no-interpreter\" exists, but its interpreter \"/nowhere/to/be-found\" does not; install it, or correct the `#!` line",
        ),
        (
            vec!["./windows"],
            "\"./windows\" has Windows line ends, so it asks for \"/bin/sh\\r\"; save it with LF",
        ),
        (
            vec!["./interpreter-is-plain"],
            "\"HERE/plain\" may not be executed; `chmod +x` it, or write its interpreter before it",
        ),
        (
            vec!["./no-line"],
            "\"./no-line\" is neither a program for this machine nor a script with a `#!` line",
        ),
        (vec!["./empty"], "\"./empty\" is neither a program for this machine nor a script with a `#!` line"),
        (vec!["cat", "a\0b"], "\"cat\" could not be started: nul byte found in provided data"),
    ];
    for (argv, expected) in table {
        let spawn = Spawn {
            argv: argv.iter().map(Into::into).collect(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: Some(folder.path().into()),
            ..spawn(&[])
        };
        let fault = Process::spawn(&spawn).map(|process| process.pid()).unwrap_err();
        assert_eq!(fault.to_string().replace(here, "HERE"), expected, "{argv:?}: {fault:?}");
    }
    let nowhere = Spawn { cwd: Some("/no/such/folder".into()), ..spawn(&["cat"]) };
    let fault = Process::spawn(&nowhere).map(|process| process.pid()).unwrap_err();
    assert_eq!(fault.to_string(), "\"/no/such/folder\" is no folder to run in; create it or name another");
    let no_launcher = Spawn { launcher: "/no/such/launcher".into(), ..spawn(&["cat"]) };
    let fault = Process::spawn(&no_launcher).map(|process| process.pid()).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the launcher could not do its work: No such file or directory (os error 2)"
    );
    let no_answer = Spawn { launcher: "/bin/true".into(), ..spawn(&["cat"]) };
    let fault = Process::spawn(&no_answer).map(|process| process.pid()).unwrap_err();
    assert_eq!(fault.to_string(), "the launcher could not do its work: it ended without an answer");
}

fn a_dropped_process_is_gone() {
    let process = Process::spawn(&spawn(&["stays"])).unwrap();
    let (pid, launcher) = (process.pid(), process.launcher_pid());
    drop(process);
    assert_gone(pid);
    assert_gone(launcher);
}

fn a_signal_reaches_the_guest() {
    let process = Process::spawn(&spawn(&["cat"])).unwrap();
    process.signal(15);
    let told = Player::new(|_, _| Vec::new()).play_on(process);
    assert_eq!(told.exited, Some(Exited::Signal(15)));
}
