//! How fast a guest is driven, recorded and judged, against what the same guest does when it is fed blindly.
//!
//! `cargo bench -p sidecert --bench driving`. Requests are pipelined, with a fence after every thousand; frames of both
//! directions count. The native guest is our mock, the other one is the Python guest.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::naive_bytecount,
    reason = "a benchmark tells what it finds, or stops"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use sidecert_cases::reasonix::V1;
use sidecert_proto::budget::Budget;
use sidecert_proto::contract::Side;
use sidecert_proto::judge::Judge;
use sidecert_proto::play::Play;
use sidecert_proto::reasonix::{contract, host};
use sidecert_proto::script::{Outgoing, Process as Own, Script, ScriptDef, Setting, Step, Template};
use sidecert_proto::transcript::End;
use sidecert_proto::verdict::{Profile, Verdict};
use sidecert_runner::{Links, Process, Spawn, Stop, drive_here};

const FENCES: u32 = 200;
const REQUESTS_A_FENCE: u32 = 1_000;
const TRIES: usize = 5;

/// Many requests, and a fence now and then.
static BULK: ScriptDef = ScriptDef {
    name: "bulk",
    process: Own::Own,
    needs: &[],
    build: |_| {
        let request = Step::Send {
            label: None,
            frame: Outgoing::Template(Template::new(sidecert_proto::script::request(
                r#"{"$fresh":true}"#,
                contract::STREAM_CANCEL,
                r#"{"streamId":"es_0123456789abcdef01234567"}"#,
            ))),
        };
        let burst = vec![
            Step::Repeat { times: REQUESTS_A_FENCE, steps: vec![request] },
            Step::Fence { or_end: false },
        ];
        Script::new("bulk").step(Step::Repeat { times: FENCES, steps: burst })
    },
};

fn main() {
    let program = env!("CARGO_BIN_EXE_sidecert");
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mock-sidecars/python/guest.py");
    let native = [program, "mock", "guest", "--suite", "reasonix-v1"].map(OsString::from).to_vec();
    let mut python = ["/usr/bin/env", "python3", "-I", "-S"].map(OsString::from).to_vec();
    python.push(guest.into());
    for (name, argv) in [("native", native), ("python", python)] {
        let (mut driven, mut blind) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TRIES {
            driven = driven.min(drive(&argv));
            blind = blind.min(feed(&argv));
        }
        let frames = f64::from(2 * FENCES * (REQUESTS_A_FENCE + 1));
        let rate = |seconds: f64| frames / seconds / 1e3;
        println!(
            "{name}: driven, recorded and judged {:4.0} k frames/s, blindly {:4.0} k frames/s, {:3.0} %",
            rate(driven),
            rate(blind),
            100.0 * blind / driven
        );
    }
}

/// Seconds to drive, record and judge.
fn drive(argv: &[OsString]) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bulk.ndjson");
    let selected: BTreeSet<String> = V1.rows(Side::Guest).map(|row| row.id.to_owned()).collect();
    let setting = Setting::plain((V1.contract)());
    let start = Instant::now();
    let spawn =
        Spawn { argv: argv.to_vec(), env: std::env::vars_os().collect(), cwd: None, launcher: launcher() };
    let process = Process::spawn(&spawn).expect("the guest starts");
    let line_bytes_max = (V1.line_bytes_max)(setting.contract);
    let plan = [V1.opening, &BULK, V1.closing];
    let mut play = Play::new("bulk", plan, (V1.host)(&setting), setting, Budget::default(), line_bytes_max);
    let mut file = File::create(&path).expect("a file");
    let mut judge = Judge::new(&V1, Side::Guest, Profile::Reference, setting, &selected);
    judge.begin("bulk");
    let (_say, stop) = tokio::sync::watch::channel(Stop::No);
    drive_here(&mut play, Links::guest(process), stop, &mut |play: &mut Play<'_>| {
        if play.record().len() > 64 << 10 {
            file.write_all(play.record())?;
            judge.read(play.record());
            play.record().clear();
        }
        Ok(())
    })
    .expect("it is driven");
    file.write_all(play.record()).expect("a file");
    judge.read(play.record());
    assert_eq!(play.end(), Some(End::Done));
    let judged = judge.finish();
    let seconds = start.elapsed().as_secs_f64();
    assert!(judged.faults.is_empty() && judged.ours.is_empty(), "{:?} {:?}", judged.faults, judged.ours);
    assert!(!judged.verdicts.iter().any(|(_, verdict)| matches!(verdict, Verdict::Fail(_))));
    seconds
}

/// Our own executable is no launcher, so the program's is.
fn launcher() -> PathBuf {
    env!("CARGO_BIN_EXE_sidecert").into()
}

/// Seconds in which the guest answers the same requests when they are written without looking.
fn feed(argv: &[OsString]) -> f64 {
    let setting = Setting::plain((V1.contract)());
    let initialize =
        sidecert_proto::script::request("1", contract::INITIALIZE, &host::initialize_params(&setting));
    let start = Instant::now();
    let mut guest = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the guest starts");
    let mut input = guest.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || {
        let mut text = format!(
            "{initialize}\n{{\"jsonrpc\":\"2.0\",\"method\":\"{}\",\"params\":{{}}}}\n",
            contract::INITIALIZED
        );
        for id in 2..2 + FENCES * (REQUESTS_A_FENCE + 1) {
            let params = r#"{"streamId":"es_0123456789abcdef01234567"}"#;
            text.push_str(&sidecert_proto::script::request(&id.to_string(), contract::STREAM_CANCEL, params));
            text.push('\n');
            if text.len() > 64 << 10 {
                input.write_all(text.as_bytes()).expect("the guest reads");
                text.clear();
            }
        }
        input.write_all(text.as_bytes()).expect("the guest reads");
    });
    let mut output = guest.stdout.take().expect("a pipe");
    let (mut lines, mut chunk) = (0, vec![0; 64 << 10]);
    loop {
        match output.read(&mut chunk).expect("the guest writes") {
            0 => break,
            read => lines += chunk[..read].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    writer.join().expect("all was written");
    guest.wait().expect("the guest ends");
    assert_eq!(lines, 1 + (FENCES * (REQUESTS_A_FENCE + 1)) as usize);
    seconds
}
