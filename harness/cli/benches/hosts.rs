//! How long a whole check of a host takes: in memory, and as processes against the least that it could.
//!
//! `cargo bench -p sidecert --bench hosts`. The floor is (all starts of the host and of the guests that it launches + all
//! bytes at the rate at which the host answers + the time that passes in memory, where only time limits take any) ÷
//! processors, each measured in the same run.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_lossless,
    reason = "a benchmark tells what it finds, roughly, or stops"
)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use sidecert_cases::reasonix::{V1, V2};
use sidecert_mocks::MockHost;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::contract::Side;
use sidecert_proto::judge::Judge;
use sidecert_proto::machine::Launch;
use sidecert_proto::script::Setting;
use sidecert_proto::sim;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{Record, read};
use sidecert_proto::verdict::{Profile, Verdict};

const TRIES: usize = 5;
/// How much is asked to find the rate.
const ASKED_BYTES: usize = 32 << 20;

fn main() {
    let program = env!("CARGO_BIN_EXE_sidecert");
    for suite in [&V1, &V2] {
        let (seconds, limits) = least(|| in_memory(suite));
        println!("{}: in memory {seconds:.2} s, in which {limits:.1} s of time limits pass", suite.name);
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mock-sidecars/python/host.py");
        let python = python.display().to_string();
        for (name, argv) in [
            ("native", [program, "mock", "host", "--suite", suite.name].as_slice()),
            ("python", ["/usr/bin/python3", "-I", &python, "--suite", suite.name].as_slice()),
        ] {
            as_processes(suite, name, argv, limits);
        }
    }
}

/// The try that took the least time, and what it gave.
fn least<T>(one: impl Fn() -> (f64, T)) -> (f64, T) {
    let tries = (0..TRIES).map(|_| one());
    tries.min_by(|one, other| one.0.total_cmp(&other.0)).expect("a try")
}

/// Seconds in which the reference host is played and judged in memory, and seconds of the virtual clock.
fn in_memory(suite: &'static Suite) -> (f64, f64) {
    let contract = (suite.contract)();
    let selected: BTreeSet<String> = suite.rows(Side::Host).map(|row| row.id.to_owned()).collect();
    let probe = Launch { command: "/probe".to_owned(), ..Launch::default() };
    let setting = Setting { probe: &probe, workspace: "/workspace", ..Setting::plain(contract) };
    let start = Instant::now();
    let recordings =
        sim::rehearse(suite, Side::Host, setting, &suite.scripts(suite.rows(Side::Host)), false, &mut || {
            Box::new(MockHost::new(contract, Manners::default(), None))
        })
        .expect("it comes to an end");
    let mut judge = Judge::new(suite, Side::Host, Profile::Reference, setting, &selected);
    for (place, recording) in recordings.iter().enumerate() {
        judge.begin(&format!("{place:03}"));
        judge.read(recording);
    }
    let judged = judge.finish();
    let seconds = start.elapsed().as_secs_f64();
    let wrong = judged.verdicts.iter().find(|(_, verdict)| matches!(verdict, Verdict::Fail(_)));
    assert!(wrong.is_none() && judged.faults.is_empty(), "{wrong:?}");
    let limits = recordings.iter().map(|recording| last(recording)).sum::<u64>();
    (seconds, limits as f64 / 1e6)
}

/// When the last event of a recording happened.
fn last(recording: &[u8]) -> u64 {
    let events = recording.split(|byte| *byte == b'\n').rev().filter_map(|line| match read(line) {
        Ok(Record::Event(event)) => Some(event.t),
        _ => None,
    });
    events.take(1).next().unwrap_or_default()
}

fn as_processes(suite: &Suite, name: &str, argv: &[&str], limits: f64) {
    if Command::new(argv[0]).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("{name}: SKIPPED, there is no {}", argv[0]);
        return;
    }
    let (seconds, counted) = least(|| check(suite, argv));
    let probe = [env!("CARGO_BIN_EXE_sidecert"), "probe", "--as", "one"];
    let start = least(|| (asked(argv, 0), ())).0;
    // It ends at once, since nobody tells it where to connect.
    let launch = least(|| (asked(&probe, 0), ())).0;
    let rate = ASKED_BYTES as f64 / (least(|| (asked(argv, ASKED_BYTES), ())).0 - start).max(1e-9);
    let processors = thread::available_parallelism().map_or(1, usize::from) as f64;
    let floor =
        (start * counted.processes + launch * counted.launches + counted.bytes / rate + limits) / processors;
    println!(
        "{} {name}: {seconds:.2} s, floor {floor:.2} s ({:.0} starts of {:.0} ms, {:.0} guests of {:.0} ms, {:.0} MB at {:.0} MB/s, time limits {limits:.2} s), {:.2} × floor",
        suite.name,
        counted.processes,
        1e3 * start,
        counted.launches,
        1e3 * launch,
        counted.bytes / 1e6,
        rate / 1e6,
        seconds / floor
    );
}

/// What a check had to do.
struct Counted {
    processes: f64,
    launches: f64,
    bytes: f64,
}

/// Seconds that a check takes, and what it had to do.
fn check(suite: &Suite, argv: &[&str]) -> (f64, Counted) {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_sidecert"))
        .args([
            "check",
            "host",
            "--suite",
            suite.name,
            "--driver",
            "shim",
            "--no-config",
            "--quiet",
            "--record",
        ])
        .arg(&run)
        .arg("--")
        .args(argv)
        .stdout(Stdio::null())
        .status()
        .expect("the program starts");
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(status.code(), Some(0), "{argv:?}");
    let mut counted = Counted { processes: 0.0, launches: 0.0, bytes: 0.0 };
    for file in std::fs::read_dir(run).expect("a run").filter_map(Result::ok) {
        if file.path().extension().is_some_and(|its| its == "ndjson") {
            let text = std::fs::read_to_string(file.path()).expect("a recording");
            counted.processes += 1.0;
            counted.launches += text.lines().filter(|line| line.contains(r#""launched":{"#)).count() as f64;
            counted.bytes += text.len() as f64;
        }
    }
    (seconds, counted)
}

/// Seconds from the start of a shim to its end, when it is sent asks of so many bytes that none knows.
fn asked(argv: &[&str], bytes: usize) -> f64 {
    let padding = "x".repeat(4 << 20);
    let asks = bytes / padding.len();
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().display();
    let hello = format!("{{\"shim\":1,\"suite\":\"reasonix-v2\",\"folder\":\"{folder}\"}}\n");
    let ask = |ask| format!("{{\"ask\":{ask},\"do\":\"none\",\"text\":\"{padding}\"}}\n");
    let text: String = std::iter::once(hello).chain((0..asks).map(ask)).collect();
    let start = Instant::now();
    let mut host = Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut input = host.stdin.take().expect("a pipe");
    // A guest that nobody tells where to connect ends, and takes none.
    let writer = thread::spawn(move || input.write_all(text.as_bytes()).is_ok());
    let mut answers = String::new();
    host.stdout.take().expect("a pipe").read_to_string(&mut answers).expect("it writes");
    let all = writer.join().expect("a thread");
    assert!(all || asks == 0, "{argv:?} ended before it had read");
    host.wait().expect("it ends");
    assert!(
        answers.lines().filter(|line| line.contains("\"outcome\":")).count() >= asks,
        "{argv:?}: {answers:.200}"
    );
    start.elapsed().as_secs_f64()
}
