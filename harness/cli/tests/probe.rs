//! `sidecert probe` as a host starts it: who it says it is, how it ends, and what it says when it cannot go on.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde_json::Value;
use support::{program, sidecert};
use tempfile::TempDir;

/// What a probe may take to find out that it cannot go on.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

struct Harness {
    listener: UnixListener,
    folder: TempDir,
}

impl Harness {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self { listener: UnixListener::bind(folder.path().join("socket")).unwrap(), folder }
    }

    fn at(&self) -> String {
        format!("unix:{}", self.folder.path().join("socket").display())
    }

    /// The hello of the next probe, and the connection to it.
    fn hello(&self) -> (Value, UnixStream) {
        let (mut stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(ENDS_WITHIN)).unwrap();
        let mut header = [0; 5];
        stream.read_exact(&mut header).unwrap();
        let [kind, length @ ..] = header;
        assert_eq!(kind, 128);
        let mut hello = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut hello).unwrap();
        (serde_json::from_slice(&hello).unwrap(), stream)
    }
}

fn probe(options: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program());
    command.args(["probe", "--as", "one"]).args(options).envs(env.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The code that it ends with, and what it says.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn it_says_who_it_is_and_ends_as_it_is_told() {
    let harness = Harness::new();
    let env = [
        ("SIDECERT_PROBE", "unix:/nowhere"),
        ("SIDECERT_PROBE_TOKEN", "t1"),
        ("REASONIX_PLUGIN_NAME", "plugin"),
        ("MY_SECRET", "s1"),
        ("SHOWN", "s2"),
    ];
    let child = probe(&["--at", &harness.at(), "--token", "t2", "--show", "SHOWN"], &env).spawn().unwrap();
    let (hello, mut stream) = harness.hello();
    assert_eq!((&hello["probe"], &hello["name"], &hello["token"]), (&1.into(), &"one".into(), &"t2".into()));
    assert_eq!(hello["pid"], child.id());
    let shown = ["REASONIX_PLUGIN_NAME", "MY_SECRET", "SHOWN"].map(|name| hello["env"][name].clone());
    assert_eq!(shown, [Value::from("plugin"), Value::Null, Value::from("s2")]);
    assert!(!hello.to_string().contains("s1") && !hello.to_string().contains("t1"), "{hello}");
    stream.write_all(&[7, 1, 0, 0, 0, 9]).unwrap();
    assert_eq!(ended(child), (Some(9), String::new()));

    let env = [("SIDECERT_PROBE", &*harness.at()), ("SIDECERT_PROBE_TOKEN", "t1")];
    let mut child = probe(&[], &env).spawn().unwrap();
    let (hello, mut stream) = harness.hello();
    assert_eq!(hello["token"], "t1");
    stream.write_all(&[8, 0, 0, 0, 0]).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(6));
}

#[test]
fn one_that_cannot_go_on_says_why_and_ends() {
    let harness = Harness::new();
    for (options, says) in [
        (&[][..], "sidecert: probe one: SIDECERT_PROBE is not set"),
        (&["--at", "unix:/nowhere"], "sidecert: probe one: SIDECERT_PROBE_TOKEN is not set"),
        (
            &["--at", "unix:/nowhere", "--token", "t"],
            "sidecert: probe one: nobody listens at \"unix:/nowhere\"",
        ),
    ] {
        let (code, told) = ended(probe(options, &[]).spawn().unwrap());
        assert!(told.starts_with(says) && told.lines().count() == 1, "{told}");
        assert_eq!(code, Some(70), "{told}");
    }
    let child = probe(&["--at", &harness.at(), "--token", "t"], &[]).spawn().unwrap();
    drop(harness.hello());
    assert_eq!(
        ended(child),
        (Some(70), "sidecert: probe one: the harness has closed the connection\n".into())
    );
}

#[test]
fn a_standard_error_that_nobody_reads_holds_no_end_up() {
    let harness = Harness::new();
    let (stderr, full) = std::io::pipe().unwrap();
    let mut filling = File::from(std::os::fd::OwnedFd::from(full.try_clone().unwrap()));
    let flags = rustix::fs::fcntl_getfl(&filling).unwrap();
    rustix::fs::fcntl_setfl(&filling, flags | OFlags::NONBLOCK).unwrap();
    while filling.write(&[b'x'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&filling, flags).unwrap();
    let mut child = probe(&["--at", &harness.at(), "--token", "t"], &[]).stderr(full).spawn().unwrap();
    drop(harness.hello());
    let gone = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(70));
    assert!(gone.elapsed() < ENDS_WITHIN, "{:?}", gone.elapsed());
    drop(stderr);
}

#[test]
fn it_is_no_word_for_people() {
    let help = String::from_utf8(sidecert(["--help"]).stdout).unwrap();
    assert!(help.contains("\n  tap ") && !help.contains("\n  probe"), "{help}");
    let help = String::from_utf8(sidecert(["probe", "--help"]).stdout).unwrap();
    assert!(help.contains("--as <NAME>") && help.contains("docs/probe.md"), "{help}");
    assert_eq!(sidecert(["probe"]).status.code(), Some(2));
}
