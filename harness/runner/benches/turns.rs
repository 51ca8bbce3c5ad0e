//! What a guest costs to start and end, and how many small frames go through the loop, with `cat` at the other end; and
//! what a round trip takes through a probe, whose other link then stands in the place of `cat`.
//!
//! `cargo bench -p sidecert-runner`. A frame counts twice: once written, once read.

use std::{
    collections::VecDeque,
    env,
    ffi::{OsStr, OsString},
    process::ExitCode,
    time::Instant,
};

use bytes::Bytes;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros, Order};
use sidecert_runner::{Links, Probe, Probes, Process, Spawn, Stop, drive_here, launch, probe};
use tokio::sync::watch;

const FRAME: &[u8] = &[b'f'; 100];
const FRAMES: usize = 2_000_000;
const SPAWNS: u32 = 200;
/// The first argument that makes this a probe.
const PROBE: &str = "__probe";

/// Writes frames as fast as they are taken, or one after the answer to the one before.
struct Flow {
    lockstep: bool,
    frames: usize,
    offered: usize,
    read_bytes: usize,
    /// Sends back what comes on this link.
    echo: Option<LinkId>,
    echoes: VecDeque<Bytes>,
    ended: bool,
}

impl Machine for Flow {
    fn handle(&mut self, link: LinkId, input: Input<'_>, _now: Micros) {
        match input {
            Input::Bytes(bytes) if self.echo == Some(link) => {
                self.echoes.push_back(Bytes::copy_from_slice(bytes));
            }
            Input::Bytes(bytes) => self.read_bytes += bytes.len(),
            Input::Exited(_) => self.ended = true,
            _ => {}
        }
    }

    fn poll(&mut self, _now: Micros) -> Option<Action> {
        if self.ended {
            return Some(Action::Done);
        }
        if let (Some(link), Some(bytes)) = (self.echo, self.echoes.pop_front()) {
            return Some(Action::Write { link, bytes, after_drain: false });
        }
        let read_all = self.read_bytes == self.offered * FRAME.len();
        let last = self.offered == self.frames;
        if self.offered > self.frames || (self.lockstep || last && self.echo.is_some()) && !read_all {
            return None;
        }
        self.offered += 1;
        Some(if self.offered > self.frames {
            match self.echo {
                Some(link) => Action::Tell { link, order: Order::Exit(0) },
                None => Action::Close { link: 0 },
            }
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
    match args.next().as_deref().and_then(OsStr::to_str) {
        Some(launch::WORD) => return launch::main(args),
        Some(PROBE) => {
            let probe = Probe { name: PROBE.into(), at: None, token: None, shown: Box::new(|_| false) };
            return match probe::probe(&probe) {
                Ok(probe::Ended::Exit(code)) => code.into(),
                _ => ExitCode::FAILURE,
            };
        }
        _ => {}
    }
    spawn();
    measure("streaming", Links::guest(cat()), false, FRAMES);
    measure("streaming through a probe", probe(), false, FRAMES);
    measure("lockstep", Links::guest(cat()), true, FRAMES / 20);
    measure("lockstep through a probe", probe(), true, FRAMES / 20);
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
    start(&["/bin/cat".into()], &[])
}

/// A probe that is itself the process on link 0, so that link 1 is its other side.
fn probe() -> Links {
    let folder = env::temp_dir();
    let probes = Probes::listen(&folder).unwrap_or_else(|error| panic!("{error}"));
    let env: Vec<_> = probes.environment().into_iter().map(|(name, to)| (name.into(), to.into())).collect();
    let us = env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    Links::host(start(&[us.into(), PROBE.into()], &env), probes)
}

fn start(argv: &[OsString], env: &[(OsString, OsString)]) -> Process {
    let spawn = Spawn { argv: argv.into(), env: env.into(), cwd: None, launcher: "/proc/self/exe".into() };
    Process::spawn(&spawn).unwrap_or_else(|fault| panic!("{fault}"))
}

#[expect(clippy::print_stdout, reason = "a benchmark reports on its standard output")]
#[expect(clippy::cast_precision_loss, reason = "the counts are small")]
fn measure(name: &str, links: Links, lockstep: bool, frames: usize) {
    let echo = name.ends_with("probe").then_some(1);
    let mut machine =
        Flow { lockstep, frames, offered: 0, read_bytes: 0, echo, echoes: VecDeque::new(), ended: false };
    let (_say, heard) = watch::channel(Stop::No);
    let began = Instant::now();
    let ended = drive_here(&mut machine, links, heard, &mut |_| Ok(()));
    let taken = began.elapsed();
    assert!(ended.is_ok() && machine.read_bytes == frames * FRAME.len());
    let rate = 2.0 * frames as f64 / taken.as_secs_f64() / 1e6;
    println!("{name}: {rate:.2} M frames/s, {:.1} \u{b5}s a round trip", 2.0 / rate);
}
