//! `sidecert probe` as a host starts it: who it says it is, how it ends, and what it says when it cannot go on.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use support::{program, sidecert};
use tempfile::TempDir;

/// What a probe may take for anything that it does, on a machine that has much else to do.
const WITHIN: Duration = Duration::from_mins(1);

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
        await_readable(&self.listener, "it connects");
        let (mut stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let mut header = [0; 5];
        stream.read_exact(&mut header).unwrap();
        let [kind, length @ ..] = header;
        assert_eq!(kind, 128);
        let mut hello = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut hello).unwrap();
        (serde_json::from_slice(&hello).unwrap(), stream)
    }
}

/// A probe that runs, and does so no longer than the test.
struct Running(Child);

impl Running {
    fn start(options: &[&str], env: &[(&str, &str)], stderr: impl Into<Stdio>) -> Self {
        let mut command = Command::new(program());
        command.args(["probe", "--as", "one"]).args(options).envs(env.iter().copied());
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap())
    }

    fn wait(&mut self) -> ExitStatus {
        await_readable(&pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()).unwrap(), "it ends");
        self.0.wait().unwrap()
    }

    /// The code that it ends with, and what it says.
    fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.wait().code();
        let mut says = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut says).unwrap();
        (code, says)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn await_readable(what: &impl AsFd, then: &str) {
    let within = Timespec::try_from(WITHIN).unwrap();
    assert_eq!(poll(&mut [PollFd::new(what, PollFlags::IN)], Some(&within)), Ok(1), "{then}");
}

#[test]
fn it_says_who_it_is_and_ends_as_it_is_told() {
    let harness = Harness::new();
    let env = [
        ("SIDECERT_PROBE", "unix:/nowhere"),
        ("SIDECERT_PROBE_TOKEN", "a-token-of-old"),
        ("REASONIX_PLUGIN_NAME", "plugin"),
        ("MY_SECRET", "a-secret"),
        ("SHOWN", "a-value"),
    ];
    let options = ["--at", &harness.at(), "--token", "a-token", "--show", "SHOWN"];
    let mut probe = Running::start(&options, &env, Stdio::piped());
    let (hello, mut stream) = harness.hello();
    assert_eq!(
        (&hello["probe"], &hello["name"], &hello["token"]),
        (&1.into(), &"one".into(), &"a-token".into())
    );
    assert_eq!(hello["pid"], probe.0.id());
    let shown = ["REASONIX_PLUGIN_NAME", "MY_SECRET", "SHOWN"].map(|name| hello["env"][name].clone());
    assert_eq!(shown, [Value::from("plugin"), Value::Null, Value::from("a-value")]);
    assert!(!hello.to_string().contains("a-secret") && !hello.to_string().contains("of-old"), "{hello}");
    stream.write_all(&[7, 1, 0, 0, 0, 9]).unwrap();
    assert_eq!(probe.ended(), (Some(9), String::new()));

    let env = [("SIDECERT_PROBE", &*harness.at()), ("SIDECERT_PROBE_TOKEN", "a-token")];
    let mut probe = Running::start(&[], &env, Stdio::piped());
    let (hello, mut stream) = harness.hello();
    assert_eq!(hello["token"], "a-token");
    stream.write_all(&[8, 0, 0, 0, 0]).unwrap();
    assert_eq!(probe.wait().signal(), Some(6));
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
        let (code, told) = Running::start(options, &[], Stdio::piped()).ended();
        assert!(told.starts_with(says) && told.lines().count() == 1, "{told}");
        assert_eq!(code, Some(70), "{told}");
    }
    let mut probe = Running::start(&["--at", &harness.at(), "--token", "t"], &[], Stdio::piped());
    drop(harness.hello());
    assert_eq!(
        probe.ended(),
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
    let mut probe = Running::start(&["--at", &harness.at(), "--token", "t"], &[], full);
    drop(harness.hello());
    assert_eq!(probe.wait().code(), Some(70));
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
