//! What `sidecert tap` promises: neither end notices it, whatever becomes of the recording.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use serde_json::Value;
use sidecert_cases::reasonix::V2;
use sidecert_proto::reasonix::host::initialize_params;
use sidecert_proto::script::Setting;
use support::{mock, program};
use tempfile::TempDir;

/// What nothing here may take.
const WITHIN: Duration = Duration::from_mins(1);
/// What is done where a recording is to be.
type Prepare = fn(&Path);
/// What a pipe holds, and what a relay does.
const PIPE_BYTES: usize = 64 << 10;

/// A guest with a tap before it, as its host holds it. It is killed, with its group, when a test ends early.
struct Tapped {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    folder: TempDir,
}

/// The Python guest that does this.
fn guest(words: &[&str]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tap/guest.py").display().to_string();
    let python = ["python3", "-I", "-S", &script];
    python.iter().chain(words).map(|&word| word.to_owned()).collect()
}

impl Tapped {
    fn start(words: &[&str]) -> Self {
        Self::with(&[], &guest(words), |_| ())
    }

    /// Starts a tap that records in the file `record` of a new folder, which `prepare` may have touched.
    fn with(options: &[&str], guest: &[String], prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(&folder.path().join("record"));
        let mut command = Command::new(program());
        command
            .arg("tap")
            .arg("--record")
            .arg(folder.path().join("record"))
            .args(options)
            .arg("--")
            .args(guest);
        command.current_dir(folder.path()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(folder.path().join("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output, folder }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// The next line that the guest says.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What is left of what it says, to the end.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.output.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        rest
    }

    fn wait(&mut self) -> ExitStatus {
        let ended = pidfd_open(self.pid(), PidfdFlags::empty()).unwrap();
        let mut polled = [PollFd::new(&ended, PollFlags::IN)];
        assert_eq!(poll(&mut polled, Some(&timespec(WITHIN))), Ok(1), "it ends");
        self.child.wait().unwrap()
    }

    fn code(&mut self) -> i32 {
        self.wait().code().unwrap()
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    /// The lines of the recording.
    fn record(&self) -> Vec<Value> {
        lines(&self.path())
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        // The group's id is not given away before its leader was waited for.
        let running = matches!(self.child.try_wait(), Ok(None));
        if running {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// All frames of one side, joined with the line feeds that ended them, and what had none.
fn said(record: &[Value], from: &str) -> Vec<u8> {
    let mut all = Vec::new();
    for line in record {
        let (of, ended) = if line["from"] == from { (line, true) } else { (&line["tail"], false) };
        if of["from"] != from {
            continue;
        }
        if let Some(text) = of["text"].as_str() {
            all.extend_from_slice(text.as_bytes());
        } else if let Some(text) = of["base64"].as_str() {
            all.extend(decode(text));
        } else {
            all.extend_from_slice(of["json"].to_string().as_bytes());
        }
        if ended {
            all.push(b'\n');
        }
    }
    all
}

/// Base64, for a test that is to share nothing with what it tests.
fn decode(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> =
        text.bytes().filter(|byte| *byte != b'=').map(|byte| u32::from(value(byte))).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let word = four.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Bytes without a pattern, the same every time.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..count).map(next).collect()
}

// ---- what passes ----

#[test]
fn bytes_pass_unchanged_both_ways_and_are_recorded() {
    for size in [0, 1, 2, 63, 4095, 4096, 4097, PIPE_BYTES - 1, PIPE_BYTES, PIPE_BYTES + 1, 1_000_001] {
        let mut tapped = Tapped::start(&["echo"]);
        let sent = noise(size);
        let (mut input, bytes) = (tapped.input.take().unwrap(), sent.clone());
        let writer = thread::spawn(move || input.write_all(&bytes).unwrap());
        assert!(tapped.rest() == sent, "{size}");
        writer.join().unwrap();
        assert_eq!(tapped.code(), 0);
        let record = tapped.record();
        assert_eq!(tapped.stderr(), "");
        assert!(said(&record, "host") == sent && said(&record, "guest") == sent, "{size}");
        assert_eq!(record[0], serde_json::json!({"transcript": 1, "process": "tap"}));
        assert_eq!(record.last().unwrap()["end"], "done");
        assert_eq!(record.last().unwrap()["events"], record.len() - 2);
        let mode = fs::metadata(tapped.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_frame_stands_before_what_it_causes() {
    let mut tapped = Tapped::start(&["echo"]);
    for id in 0..200 {
        let frame = format!("{{\"id\":{id}}}");
        tapped.write(format!("{frame}\n").as_bytes());
        assert_eq!(tapped.line(), frame);
    }
    tapped.input = None;
    assert_eq!(tapped.code(), 0);
    let record = tapped.record();
    for (at, line) in record[1..401].iter().enumerate() {
        let from = if at % 2 == 0 { "host" } else { "guest" };
        assert_eq!((line["from"].as_str(), line["json"]["id"].as_u64()), (Some(from), Some(at as u64 / 2)));
    }
    let kinds: Vec<&str> = record[401..]
        .iter()
        .map(|line| line.as_object().unwrap().keys().find(|key| *key != "t").unwrap().as_str())
        .collect();
    assert_eq!(kinds, ["closed", "closed", "exited", "end"]);
}

#[test]
fn each_end_of_file_is_passed_on_by_itself() {
    // The host's first: the guest answers after it.
    let mut tapped = Tapped::start(&["count"]);
    tapped.write(b"12345");
    tapped.input = None;
    assert_eq!((tapped.rest(), tapped.code()), (b"5\n".to_vec(), 0));
    // The guest's first: it still reads.
    let mut tapped = Tapped::start(&["say-and-stay"]);
    assert_eq!(tapped.rest(), b"all\n");
    tapped.write(b"1234567");
    tapped.input = None;
    assert_eq!(tapped.code(), 7);
}

#[test]
fn standard_error_and_the_group_are_ours() {
    let mut tapped = Tapped::start(&["ids"]);
    let ids = tapped.line();
    let [own, group, parent] = ids.split(' ').map(|id| id.parse().unwrap()).collect::<Vec<i32>>()[..] else {
        panic!("{ids}");
    };
    let tap = tapped.pid().as_raw_nonzero().get();
    assert!(own != tap && group == tap && parent == tap, "{ids}, tap is {tap}");
    assert_eq!((tapped.code(), tapped.stderr().as_str()), (0, "on standard error\n"));
}

#[test]
fn the_end_is_the_guests() {
    for code in [0, 1, 7, 255] {
        assert_eq!(Tapped::start(&["leave", &code.to_string()]).code(), code);
    }
    for signal in [2, 6, 9, 11, 13, 15] {
        let mut tapped = Tapped::start(&["die", &signal.to_string()]);
        let status = tapped.wait();
        assert_eq!((status.signal(), status.core_dumped()), (Some(signal), false));
        assert_eq!(tapped.record().iter().rev().nth(1).unwrap()["exited"]["signal"], signal);
    }
}

#[test]
fn a_child_that_holds_the_output_does_not_hold_up_the_end() {
    let mut tapped = Tapped::start(&["leave-one"]);
    assert_eq!(tapped.code(), 3);
    assert_eq!(tapped.line(), "done");
    // It is in the group, where the host finds it.
    let _ = kill_process_group(tapped.pid(), Signal::KILL);
}

// ---- signals ----

#[test]
fn each_signal_is_handed_on_and_what_follows_is_relayed() {
    let mut tapped = Tapped::start(&["tell-signals"]);
    assert_eq!(tapped.line(), "ready");
    let signals =
        [Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::WINCH];
    for signal in signals {
        tapped.signal(signal);
        assert_eq!(tapped.line(), signal.as_raw().to_string());
    }
    tapped.signal(Signal::TERM);
    assert_eq!((tapped.rest(), tapped.code()), (Vec::new(), 0));
}

#[test]
fn a_signal_that_ends_the_guest_ends_the_tap_by_the_same() {
    let mut tapped = Tapped::start(&["deaf"]);
    assert_eq!(tapped.line(), "ready");
    tapped.signal(Signal::TERM);
    assert_eq!(tapped.wait().signal(), Some(15));
    // A guest that ends in order makes the tap end in order.
    let mut tapped = Tapped::start(&["end-at-term"]);
    assert_eq!(tapped.line(), "ready");
    tapped.signal(Signal::TERM);
    assert_eq!(tapped.code(), 9);
}

#[test]
fn what_the_host_does_to_the_group_reaches_both() {
    let mut tapped = Tapped::start(&["deaf"]);
    assert_eq!(tapped.line(), "ready");
    kill_process_group(tapped.pid(), Signal::TERM).unwrap();
    assert_eq!(tapped.wait().signal(), Some(15));
    let mut tapped = Tapped::start(&["deaf"]);
    assert_eq!(tapped.line(), "ready");
    kill_process_group(tapped.pid(), Signal::KILL).unwrap();
    assert_eq!(tapped.wait().signal(), Some(9));
    // Nobody holds the output any more.
    assert_eq!(tapped.rest(), b"");
}

#[test]
fn the_terminals_signal_reaches_the_guest_once() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // A session on that terminal, in whose foreground a host has a tap; the guest's output is a pipe to us.
    let host = "import os, sys\nos.setsid()\nos.dup2(os.open(sys.argv[1], os.O_RDWR), 0)\n\
                os.execv(sys.argv[2], sys.argv[2:])";
    let mut command = Command::new("python3");
    command.args(["-I", "-S", "-c", host, &theirs]).arg(program());
    command
        .args(["tap", "--record"])
        .arg(folder.path().join("record"))
        .arg("--")
        .args(guest(&["tell-signals"]));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(), "ready\n");
    // Ctrl-C, and then one that only the tap gets: had there been a second INT, it would stand between.
    rustix::io::write(&ours, b"\x03").unwrap();
    assert_eq!(line(), "2\n");
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    assert_eq!(line(), "10\n");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(line(), "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

// ---- who does not read, and who goes away ----

/// How much is taken before a write would block, when nobody reads.
fn accepted(input: &ChildStdin) -> usize {
    rustix::fs::fcntl_setfl(input, rustix::fs::OFlags::NONBLOCK).unwrap();
    let (mut total, bytes) = (0, vec![b'x'; 4096]);
    loop {
        // The relay takes a moment to fill what is behind it.
        let mut polled = [PollFd::new(input, PollFlags::OUT)];
        if poll(&mut polled, Some(&timespec(Duration::from_millis(500)))) == Ok(0) {
            return total;
        }
        total += rustix::io::write(input, &bytes).unwrap_or(0);
    }
}

#[test]
fn a_guest_that_does_not_read_is_felt_by_the_host() {
    let mut tapped = Tapped::start(&["deaf"]);
    assert_eq!(tapped.line(), "ready");
    let took = accepted(tapped.input.as_ref().unwrap());
    // Its own pipe, the guest's, and what is between them.
    assert!((2 * PIPE_BYTES..=3 * PIPE_BYTES).contains(&took), "{took}");
    tapped.signal(Signal::TERM);
    tapped.wait();
}

#[test]
fn a_host_that_goes_away_is_felt_by_the_guest() {
    let mut tapped = Tapped::start(&["write-until-broken"]);
    assert_eq!(tapped.line(), "ready");
    tapped.output = None;
    tapped.write(b"g");
    assert_eq!((tapped.code(), tapped.stderr().as_str()), (0, "broken\n"));
}

#[test]
fn a_guest_that_closes_its_input_is_felt_by_the_host() {
    let mut tapped = Tapped::start(&["stop-reading"]);
    assert_eq!(tapped.line(), "ready");
    let input = tapped.input.as_ref().unwrap();
    let mut polled = [PollFd::new(input, PollFlags::empty())];
    assert_eq!(poll(&mut polled, Some(&timespec(WITHIN))), Ok(1));
    assert!(polled[0].revents().contains(PollFlags::ERR));
    assert!(tapped.input.as_mut().unwrap().write_all(b"x").is_err());
    tapped.signal(Signal::TERM);
    tapped.wait();
    assert!(tapped.record().iter().any(|line| line.get("broken").is_some()));
}

// ---- what becomes of the recording ----

#[test]
fn a_recording_that_cannot_be_written_is_told_once_and_costs_nothing_else() {
    let folder = |path: &Path| fs::create_dir(path).unwrap();
    let there = |path: &Path| fs::write(path, "mine").unwrap();
    let nowhere = |path: &Path| std::os::unix::fs::symlink("nowhere/at/all", path).unwrap();
    let full = |path: &Path| std::os::unix::fs::symlink("/dev/full", path).unwrap();
    let cases: [(Prepare, &str); 4] =
        [(folder, "exists"), (there, "exists"), (nowhere, "exists"), (full, "No space left")];
    for (prepare, says) in cases {
        let mut tapped = Tapped::with(&[], &guest(&["echo"]), prepare);
        for _ in 0..20 {
            tapped.write(b"1\n");
            assert_eq!(tapped.line(), "1");
        }
        tapped.input = None;
        assert_eq!((tapped.rest(), tapped.code()), (Vec::new(), 0));
        let told = tapped.stderr();
        assert!(told.contains(says) && told.lines().count() == 1, "{told}");
    }
    // What was there is there.
    let mut tapped = Tapped::with(&[], &guest(&["leave", "5"]), there);
    assert_eq!((tapped.code(), fs::read_to_string(tapped.path()).unwrap().as_str()), (5, "mine"));
}

#[test]
fn a_file_that_may_not_grow_kills_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let shell = "ulimit -f 64; exec \"$@\"";
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", shell, "sh"])
        .arg(program())
        .args(["tap", "--record"])
        .arg(folder.path().join("record"));
    command.arg("--").args(guest(&["flood", "4", "100"]));
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 4 << 20));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("not recorded") && told.lines().count() == 1, "{told}");
}

#[test]
fn a_pipe_that_nobody_reads_holds_nobody_up() {
    let fifo = |path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    let mut tapped = Tapped::with(&[], &guest(&["flood", "64", "1000"]), fifo);
    assert_eq!((tapped.rest().len(), tapped.code()), (64 << 20, 0));
}

#[test]
fn what_came_too_fast_is_marked_and_nothing_else_is_lost() {
    let fifo = |path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    // Nobody reads until everything has passed, and then everything is read.
    let mut tapped = Tapped::with(&[], &guest(&["flood", "64", "1024"]), fifo);
    assert_eq!(tapped.rest().len(), 64 << 20);
    let record = lines(&tapped.path());
    assert_eq!(tapped.code(), 0);
    let lost: u64 = record.iter().filter_map(|line| line["lost"]["bytes"].as_u64()).sum();
    let frames = record.iter().filter(|line| line["from"] == "guest").count() as u64;
    assert!(lost > 0 && frames > 0);
    assert_eq!(lost + frames * 1024, 64 << 20);
    assert_eq!(record.last().unwrap()["end"], "done");
    assert!(tapped.stderr().contains("marked there as lost"), "{}", tapped.stderr());
}

#[test]
fn a_line_without_an_end_costs_bounded_memory() {
    use wait4::Wait4 as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let mut command = Command::new(program());
    command.args(["tap", "--record"]).arg(&path).arg("--").args(guest(&["flood", "1024", "0"]));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (mut chunk, mut total) = (vec![0; 1 << 20], 0);
    loop {
        match output.read(&mut chunk).unwrap() {
            0 => break,
            read => total += read,
        }
    }
    let used = child.wait4().unwrap();
    assert_eq!((total, used.status.code()), (1 << 30, Some(0)));
    assert!(used.rusage.maxrss < 128 << 20, "{}", used.rusage.maxrss);
    let record = lines(&path);
    // On a machine that has much else to do the record may lag so far behind that all of the line is lost there.
    let told = |line: &Value| ["oversize", "lost"].iter().any(|it| line[*it]["from"] == "guest");
    assert!(record.iter().any(told), "{record:?}");
}

// ---- judging ----

/// A host that goes through one session with a guest and ends in order.
fn host(options: &[&str], flaw: Option<&str>) -> (ExitStatus, String, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tap/host.py");
    let mut command = Command::new("python3");
    command.args(["-I", "-S"]).arg(script).arg(program()).args(["tap", "--record", "record"]).args(options);
    command.arg("--").args(mock("reasonix-v2", flaw)).current_dir(folder.path());
    let initialize = initialize_params(&Setting::plain((V2.contract)()));
    let output = command.env("INITIALIZE", initialize).output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap(), folder)
}

#[test]
fn what_was_recorded_is_judged_when_asked() {
    let judge = ["--suite", "reasonix-v2", "--judge"];
    let (status, told, folder) = host(&judge, None);
    assert_eq!((status.code(), told.as_str()), (Some(0), ""));
    let record = lines(&folder.path().join("record"));
    assert!(record.iter().filter(|line| line["from"] == "guest").count() >= 3, "{record:?}");
    let (status, told, _) = host(&judge, Some("speaks-too-soon"));
    assert_eq!(status.code(), Some(0));
    assert!(told.contains("guest FAIL reasonix/lifecycle/silent-before-initialized (event "), "{told}");
    assert!(!told.contains("host FAIL"), "{told}");
    let (_, told, folder) = host(&[&judge[..], &["--findings", "found"]].concat(), Some("speaks-too-soon"));
    assert_eq!(told, "");
    assert!(fs::read_to_string(folder.path().join("found")).unwrap().contains("silent-before-initialized"));
}

#[test]
fn the_host_is_judged_as_well() {
    let judge = ["--suite", "reasonix-v2", "--judge"];
    let mut tapped = Tapped::with(&judge, &mock("reasonix-v2", None), |_| ());
    tapped.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"no/such\"}\n");
    tapped.input = None;
    tapped.wait();
    assert!(tapped.stderr().contains("host FAIL frame (event 0): "), "{}", tapped.stderr());
}

// ---- the command line ----

#[test]
fn what_cannot_be_started_is_told_in_a_line() {
    for (words, code) in [
        (&["--", "./nowhere"][..], 4),
        (&["--", ""], 4),
        (&[], 2),
        (&["--"], 2),
        (&["--judge", "--", "true"], 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        let output =
            command.args(["tap", "--record", "record"]).args(words).current_dir(folder.path()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    }
}

#[test]
fn a_tap_in_a_tap_is_a_tap() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("{pid}");
    let mut words = vec![
        program().display().to_string(),
        "tap".into(),
        "--record".into(),
        inner.display().to_string(),
        "--".into(),
    ];
    words.extend(guest(&["echo"]));
    let mut tapped = Tapped::with(&[], &words, |_| ());
    tapped.write(b"{\"a\":1}\n");
    assert_eq!(tapped.line(), "{\"a\":1}");
    tapped.input = None;
    assert_eq!(tapped.code(), 0);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [inner] = &names[..] else { panic!("{names:?}") };
    for record in [tapped.record(), lines(inner)] {
        assert_eq!(said(&record, "guest"), b"{\"a\":1}\n");
        assert_eq!(record.last().unwrap()["end"], "done");
    }
}
