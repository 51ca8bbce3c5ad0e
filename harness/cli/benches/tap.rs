//! What a tap costs: the time that it adds to a round trip, the rate of a flood, and its memory.
//!
//! `cargo bench -p sidecert --bench tap`. Beside it stand, in the same run and turn by turn: for round trips a bare relay
//! of two threads that records nothing, for floods `tee` into a file of the same file system. The best of each counts.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a benchmark tells what it finds, roughly, or stops"
)]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

const ROUNDS: usize = 7;
const TRIPS: usize = 20_000;
const READ_BYTES: usize = 64 << 10;
/// As long as small requests are.
const FRAME: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\",\"params\":{\"streamId\":\"es_0123456789abcdef01234567\"}}\n";
const FLOOD_BYTES: usize = 1 << 30;
const SHORT_FLOOD_BYTES: usize = 10 << 20;

fn main() {
    let mut words = env::args_os().skip(1);
    // The same executable is all the other programs.
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some("echo") => copy(io::stdin().lock(), io::stdout().lock()),
        Some("flood") => {
            let bytes =
                words.next().and_then(|word| word.into_string().ok()).and_then(|word| word.parse().ok());
            flood(bytes.expect("how much"));
        }
        Some("bare") => bare(&words.collect::<Vec<_>>()),
        _ => measure(),
    }
}

fn measure() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let own = env::current_exe().expect("an executable").into_os_string();
    let file = |name: &str| folder.path().join(name).into_os_string();
    let tap = |name: &str| {
        [env!("CARGO_BIN_EXE_sidecert").into(), "tap".into(), "--record".into(), file(name), "--".into()]
            .to_vec()
    };
    let with = |mut before: Vec<OsString>, words: &[&str]| {
        before.push(own.clone());
        before.extend(words.iter().map(OsString::from));
        before
    };
    let bare = || [own.clone(), "bare".into()].to_vec();
    round_trips(&[
        ("direct", with(Vec::new(), &["echo"])),
        ("bare relay", with(bare(), &["echo"])),
        ("tap", with(tap("trips-{pid}"), &["echo"])),
    ]);
    let flood = FLOOD_BYTES.to_string();
    let tee = [&"tee".into(), &file("tee")].map(OsString::clone).to_vec();
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS.div_ceil(2) {
        best[0] = best[0].min(seconds(&tee, Some(&with(Vec::new(), &["flood", &flood]))));
        best[1] = best[1].min(seconds(&with(tap("flood"), &["flood", &flood]), None));
        let _ = (fs::remove_file(file("tee")), fs::remove_file(file("flood")));
    }
    let rate = |seconds: f64| FLOOD_BYTES as f64 / seconds / 1e6;
    println!(
        "flood of 1 GiB: tee {:.0} MB/s, tap {:.0} MB/s, {:.2} × tee",
        rate(best[0]),
        rate(best[1]),
        best[0] / best[1]
    );
    let [short, long] = [SHORT_FLOOD_BYTES, FLOOD_BYTES]
        .map(|bytes| peak_kib(&with(tap(&format!("memory-{bytes}")), &["flood", &bytes.to_string()]), bytes));
    println!(
        "memory after 10 MiB {:.1} MiB, after 1 GiB {:.1} MiB",
        short as f64 / 1024.0,
        long as f64 / 1024.0
    );
}

/// Round trips one after another, the contestants turn by turn.
fn round_trips(contestants: &[(&str, Vec<OsString>); 3]) {
    let mut best = [[f64::INFINITY; 2]; 3];
    for _ in 0..ROUNDS {
        for (best, (_, argv)) in best.iter_mut().zip(contestants) {
            let mut micros = trips(argv);
            micros.sort_by(f64::total_cmp);
            for (best, place) in best.iter_mut().zip([TRIPS / 2, TRIPS * 99 / 100]) {
                *best = best.min(micros[place]);
            }
        }
    }
    for ((name, _), [half, most]) in contestants.iter().zip(best) {
        println!("round trip, {name}: p50 {half:.1} µs, p99 {most:.1} µs");
    }
    let [direct, bare, tap] = best;
    println!(
        "round trip, tap: p50 {:.2} × bare relay, p99 {:.2} × bare relay; p50 {:.1} µs more than direct",
        tap[0] / bare[0],
        tap[1] / bare[1],
        tap[0] - direct[0]
    );
}

fn trips(argv: &[OsString]) -> Vec<f64> {
    let mut child = start(argv, Stdio::piped());
    let (mut input, mut output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut frame = vec![0; FRAME.len()];
    let micros = (0..TRIPS + TRIPS / 10)
        .map(|_| {
            let start = Instant::now();
            input.write_all(FRAME).expect("it reads");
            output.read_exact(&mut frame).expect("it answers");
            start.elapsed().as_secs_f64() * 1e6
        })
        // The first ones warm up.
        .skip(TRIPS / 10)
        .collect();
    drop(input);
    assert!(child.wait().expect("it ends").success());
    micros
}

/// Seconds in which all of a flood comes out of `argv`, which floods by itself or is fed by `source`.
fn seconds(argv: &[OsString], source: Option<&[OsString]>) -> f64 {
    let start_at = Instant::now();
    let mut source = source.map(|argv| start(argv, Stdio::null()));
    let input = source.as_mut().and_then(|source| source.stdout.take()).map_or_else(Stdio::null, Stdio::from);
    let mut child = start(argv, input);
    assert_eq!(drain(&mut child), FLOOD_BYTES);
    let seconds = start_at.elapsed().as_secs_f64();
    assert!(child.wait().expect("it ends").success());
    source.map(|mut source| source.wait());
    seconds
}

/// The most memory that a tap has taken by when all has come out of it; its guest waits until it was asked.
fn peak_kib(argv: &[OsString], bytes: usize) -> u64 {
    let mut child = start(argv, Stdio::piped());
    let input = child.stdin.take();
    let mut output = child.stdout.take().expect("a pipe");
    let (mut chunk, mut total) = (vec![0; READ_BYTES], 0);
    while total < bytes {
        total += output.read(&mut chunk).expect("it writes");
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next().and_then(|number| number.parse().ok()));
    drop(input);
    child.wait().expect("it ends");
    peak.expect("a number")
}

fn drain(child: &mut Child) -> usize {
    let mut output = child.stdout.take().expect("a pipe");
    let (mut chunk, mut total) = (vec![0; READ_BYTES], 0);
    loop {
        match output.read(&mut chunk).expect("it writes") {
            0 => return total,
            read => total += read,
        }
    }
}

fn start(argv: &[OsString], input: Stdio) -> Child {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(input).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{}: {error}", Path::new(&argv[0]).display()))
}

// ---- the other programs ----

/// Reads and writes, as plainly as can be.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut chunk = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..read]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

/// Frames without end, so many bytes of them; then it waits for its input to end.
fn flood(bytes: usize) {
    let block = FRAME.repeat(READ_BYTES / FRAME.len());
    let mut out = io::stdout().lock();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(block.len());
        out.write_all(&block[..now]).expect("somebody reads");
        left -= now;
    }
    out.flush().expect("somebody reads");
    let _ = io::stdin().lock().read(&mut [0]);
}

/// A relay of two threads, and nothing else.
fn bare(argv: &[OsString]) {
    let mut command = Command::new(&argv[0]);
    let mut child =
        command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    thread::spawn(move || copy(raw("/dev/stdin", false), input));
    copy(output, raw("/dev/stdout", true));
    child.wait().expect("it ends");
}

/// Our own standard input or output without a buffer of the standard library's.
fn raw(path: &str, write: bool) -> fs::File {
    fs::File::options().read(!write).write(write).open(path).expect("it is a pipe")
}
