//! What a guest costs to start and end, and how many small frames go through the loop, with `cat` at the other end.
//!
//! `cargo bench -p sidecert-runner`. A frame counts twice: once written, once read.

use std::{env, ffi::OsStr, process::ExitCode, time::Instant};

use bytes::Bytes;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_runner::{Links, Process, Spawn, Stop, drive_here, launch};
use tokio::sync::watch;

const FRAME: &[u8] = &[b'f'; 100];
const FRAMES: usize = 2_000_000;
const SPAWNS: u32 = 200;

/// Writes frames as fast as they are taken, or one after the answer to the one before.
struct Flow {
    lockstep: bool,
    frames: usize,
    offered: usize,
    read_bytes: usize,
    ended: bool,
}

impl Machine for Flow {
    fn handle(&mut self, _link: LinkId, input: Input<'_>, _now: Micros) {
        match input {
            Input::Bytes(bytes) => self.read_bytes += bytes.len(),
            Input::Exited(_) => self.ended = true,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Micros) -> Option<Action> {
        if self.ended {
            return Some(Action::Done);
        }
        if self.offered > self.frames || self.lockstep && self.read_bytes < self.offered * FRAME.len() {
            return None;
        }
        self.offered += 1;
        Some(if self.offered > self.frames {
            Action::Close { link: 0 }
        } else {
            Action::Write { link: 0, bytes: Bytes::from_static(FRAME), after_drain: false }
        })
    }

    fn deadline(&self) -> Option<Micros> {
        Some(3_600_000_000)
    }
}

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    if args.next().as_deref() == Some(OsStr::new(launch::WORD)) {
        return launch::main(args);
    }
    spawn();
    measure("streaming", false, FRAMES);
    measure("lockstep", true, FRAMES / 20);
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "a benchmark reports on its standard output")]
fn spawn() {
    let began = Instant::now();
    for _ in 0..SPAWNS {
        drop(cat());
    }
    println!("spawn and kill: {:?} each", began.elapsed() / SPAWNS);
}

fn cat() -> Process {
    let spawn = Spawn {
        argv: vec!["/bin/cat".into()],
        env: Vec::new(),
        cwd: None,
        launcher: "/proc/self/exe".into(),
    };
    Process::spawn(&spawn).unwrap_or_else(|fault| panic!("{fault}"))
}

#[expect(clippy::print_stdout, reason = "a benchmark reports on its standard output")]
#[expect(clippy::cast_precision_loss, reason = "the counts are small")]
fn measure(name: &str, lockstep: bool, frames: usize) {
    let process = cat();
    let mut machine = Flow { lockstep, frames, offered: 0, read_bytes: 0, ended: false };
    let (_say, heard) = watch::channel(Stop::No);
    let began = Instant::now();
    let ended = drive_here(&mut machine, Links::guest(process), heard, &mut |_| Ok(()));
    let seconds = began.elapsed().as_secs_f64();
    assert!(ended.is_ok() && machine.read_bytes == frames * FRAME.len());
    println!("{name}: {:.2} M frames/s", 2.0 * frames as f64 / seconds / 1e6);
}
