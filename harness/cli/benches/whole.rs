//! How long a whole check takes, against the least that it could: what the guest itself needs.
//!
//! `cargo bench -p sidecert --bench whole`. The floor is (all starts + all bytes at the rate at which the guest echoes +
//! all silences that were waited for) ÷ processors, each measured with the same command in the same run.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_lossless,
    reason = "a benchmark tells what it finds, roughly, or stops"
)]

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use sidecert_cases::reasonix::V1;
use sidecert_proto::reasonix::{contract, host};
use sidecert_proto::script::{Setting, request};

const TRIES: usize = 5;
/// How much is echoed to find the rate.
const ECHOED_BYTES: usize = 32 << 20;

fn main() {
    let mocks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mock-sidecars");
    let program = env!("CARGO_BIN_EXE_sidecert").to_owned();
    let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let python = mocks.join("python/guest.py").display().to_string();
    let node = mocks.join("node/guest.mjs").display().to_string();
    for (name, argv) in [
        ("native", text(&[&program, "mock", "guest", "--suite", "reasonix-v1"])),
        ("python", text(&["/usr/bin/python3", "-I", &python])),
        ("node", text(&["node", &node])),
    ] {
        if Command::new(&argv[0]).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
        {
            println!("{name}: SKIPPED, there is no {}", argv[0]);
            continue;
        }
        let checks: Vec<Check> = (0..TRIES).map(|_| check(&program, &argv)).collect();
        let best = checks.iter().min_by(|one, other| one.seconds.total_cmp(&other.seconds)).expect("a try");
        let least = |of: &dyn Fn() -> f64| (0..TRIES).map(|_| of()).fold(f64::INFINITY, f64::min);
        let start = least(&|| exchange(&argv, 0));
        let rate = ECHOED_BYTES as f64 / (least(&|| exchange(&argv, ECHOED_BYTES)) - start).max(1e-9);
        let processors = thread::available_parallelism().map_or(1, usize::from) as f64;
        let floor = (start * best.processes + best.bytes / rate + best.silences) / processors;
        println!(
            "{name}: {:.2} s, floor {floor:.2} s ({:.0} starts of {:.0} ms, {:.0} MB at {:.0} MB/s, silences {:.2} s), {:.2} × floor",
            best.seconds,
            best.processes,
            1e3 * start,
            best.bytes / 1e6,
            rate / 1e6,
            best.silences,
            best.seconds / floor
        );
    }
}

/// What one check came to.
struct Check {
    seconds: f64,
    processes: f64,
    /// Written by us.
    bytes: f64,
    silences: f64,
}

fn check(program: &str, argv: &[String]) -> Check {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let run = folder.path().join("run");
    let start = Instant::now();
    let status = Command::new(program)
        .args(["check", "guest", "--suite", "reasonix-v1", "--no-config", "--quiet", "--report"])
        .arg(format!("json={}", report.display()))
        .arg("--record")
        .arg(&run)
        .arg("--")
        .args(argv)
        .stdout(Stdio::null())
        .status()
        .expect("the program starts");
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(status.code(), Some(0), "{argv:?}");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("a report");
    let waits = report["waits"].as_array().expect("waits");
    let silences: u64 = waits
        .iter()
        .filter(|wait| wait["awaited"] == "quiet")
        .filter_map(|wait| wait["micros"].as_u64())
        .sum();
    // Frames that are filled stand in a recording by their length: five of them are as long as a frame may be.
    let long = 5.0 * (8 << 20) as f64;
    Check {
        seconds,
        processes: report["processes"].as_array().expect("processes").len() as f64,
        bytes: long + recorded(&run),
        silences: silences as f64 / 1e6,
    }
}

fn recorded(run: &Path) -> f64 {
    let files = std::fs::read_dir(run).expect("a run").filter_map(Result::ok);
    files.filter_map(|file| file.metadata().ok()).map(|data| data.len() as f64).sum()
}

/// Seconds from the start of a guest to its end, when it is sent the handshake and so many bytes that it answers.
fn exchange(argv: &[String], bytes: usize) -> f64 {
    let setting = Setting::plain((V1.contract)());
    let mut text = request("1", contract::INITIALIZE, &host::initialize_params(&setting));
    text += &format!("\n{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{{}}}}\n", contract::INITIALIZED);
    let padding = "x".repeat(4 << 20);
    let mut id = 1;
    while text.len() < bytes {
        id += 1;
        let ask = request(&id.to_string(), contract::STREAM_CANCEL, r#"{"streamId":"none"}"#);
        text += &ask.replacen(r#""method""#, &format!(r#""padding":"{padding}","method""#), 1);
        text.push('\n');
    }
    let start = Instant::now();
    let mut guest = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the guest starts");
    let mut input = guest.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || input.write_all(text.as_bytes()));
    let mut answers = String::new();
    guest.stdout.take().expect("a pipe").read_to_string(&mut answers).expect("the guest writes");
    writer.join().expect("a thread").expect("the guest reads");
    guest.wait().expect("the guest ends");
    assert_eq!(answers.lines().count(), id, "{argv:?}");
    start.elapsed().as_secs_f64()
}
