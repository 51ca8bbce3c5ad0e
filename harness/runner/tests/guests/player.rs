//! The machine of these tests: notes what it is told, and does what a closure says.

use std::{
    collections::VecDeque,
    env,
    ffi::{OsStr, OsString},
    time::{Duration, Instant},
};

use bytes::Bytes;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use sidecert_proto::machine::{Action, Exited, Input, Launched, Left, LinkId, Machine, Micros};
use sidecert_runner::{Ended, How, Links, Process, Spawn, Stop, drive_here};
use tokio::sync::watch;

use crate::guest;

/// More of the guest's output than any test looks at.
const OUT_BYTES_MAX: usize = 8 << 20;

/// What a player was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) out: Vec<u8>,
    pub(crate) out_bytes: usize,
    pub(crate) errors: Vec<u8>,
    pub(crate) error_bytes: usize,
    pub(crate) wrote: usize,
    pub(crate) left: Vec<Left>,
    pub(crate) exited: Option<Exited>,
    pub(crate) interrupted: usize,
    pub(crate) launched: Option<Launched>,
    pub(crate) not_launched: Option<String>,
    pub(crate) signals: Vec<i32>,
    pub(crate) pongs: usize,
    /// Kinds of inputs in the order of their first.
    pub(crate) order: Vec<&'static str>,
}

impl Told {
    pub(crate) fn lines(&self) -> Vec<&str> {
        str::from_utf8(&self.out).unwrap().lines().collect()
    }

    /// The ids that guests told, once that many did.
    pub(crate) fn pids(&self, count: usize) -> Option<Vec<i32>> {
        let lines = self.lines();
        let complete = lines.len() >= count && self.out.ends_with(b"\n");
        complete.then(|| lines.iter().map(|line| line.parse().unwrap()).collect())
    }

    pub(crate) fn note(&mut self, input: &Input<'_>) {
        let kind = match input {
            Input::Bytes(bytes) => {
                self.out_bytes += bytes.len();
                if self.out.len() < OUT_BYTES_MAX {
                    self.out.extend_from_slice(bytes);
                }
                "bytes"
            }
            Input::Eof => "eof",
            Input::Wrote(n) => {
                self.wrote += n;
                "wrote"
            }
            Input::Broken => "broken",
            Input::Stderr(bytes) => {
                self.error_bytes += bytes.len();
                if self.errors.len() < OUT_BYTES_MAX {
                    self.errors.extend_from_slice(bytes);
                }
                "stderr"
            }
            Input::Exited(exited) => {
                self.exited = Some(*exited);
                "exited"
            }
            Input::Left(left) => {
                self.left.push(left.clone());
                "left"
            }
            Input::Interrupted => {
                self.interrupted += 1;
                "interrupted"
            }
            Input::Launched(launched) => {
                self.launched = Some((*launched).clone());
                "launched"
            }
            Input::NotLaunched(why) => {
                self.not_launched = Some((*why).to_owned());
                "not-launched"
            }
            Input::Signal(signal) => {
                self.signals.push(*signal);
                "signal"
            }
            Input::Pong => {
                self.pongs += 1;
                "pong"
            }
            Input::Tick => "tick",
        };
        if !self.order.contains(&kind) {
            self.order.push(kind);
        }
    }
}

pub(crate) struct Player<F> {
    pub(crate) told: Told,
    pub(crate) deadline: Option<Micros>,
    todo: VecDeque<Action>,
    react: F,
}

impl<F: FnMut(&Told, &Input<'_>) -> Vec<Action>> Player<F> {
    pub(crate) fn new(react: F) -> Self {
        Self { told: Told::default(), deadline: None, todo: VecDeque::new(), react }
    }

    pub(crate) fn first(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.todo.extend(actions);
        self
    }

    pub(crate) fn due_in(mut self, duration: Duration) -> Self {
        self.deadline = Some(Micros::try_from(duration.as_micros()).unwrap());
        self
    }

    /// Plays against a guest of [`guest`] until it has ended.
    pub(crate) fn play(self, args: &[&str]) -> Told {
        self.play_on(Process::spawn(&spawn(args)).unwrap())
    }

    /// Plays against this process until it has ended.
    pub(crate) fn play_on(mut self, process: Process) -> Told {
        let (_say, heard) = watch::channel(Stop::No);
        let ended = drive_here(&mut self, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
        assert_eq!(ended, Ended { how: How::Done, left_unnamed: 0 });
        self.told
    }
}

impl<F: FnMut(&Told, &Input<'_>) -> Vec<Action>> Machine for Player<F> {
    fn handle(&mut self, _link: LinkId, input: Input<'_>, now: Micros) {
        if matches!(input, Input::Tick) {
            assert!(self.deadline.take().unwrap() <= now, "a tick before its deadline");
        }
        self.told.note(&input);
        self.todo.extend((self.react)(&self.told, &input));
        if matches!(input, Input::Exited(_)) {
            self.todo.push_back(Action::Done);
        }
    }

    fn poll(&mut self, _now: Micros) -> Option<Action> {
        self.todo.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        self.deadline
    }
}

/// The machine of the tests with several links. It is done when all that there are have ended.
pub(crate) struct Cast<F> {
    pub(crate) told: Vec<Told>,
    pub(crate) deadline: Option<Micros>,
    /// When it is due, from the first that is launched on.
    due_after_launch: Option<Micros>,
    todo: VecDeque<Action>,
    react: F,
}

impl<F: FnMut(&[Told], LinkId, &Input<'_>) -> Vec<Action>> Cast<F> {
    pub(crate) fn new(react: F) -> Self {
        Self { told: Vec::new(), deadline: None, due_after_launch: None, todo: VecDeque::new(), react }
    }

    pub(crate) fn first(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.todo.extend(actions);
        self
    }

    pub(crate) fn due_in(mut self, duration: Duration) -> Self {
        self.deadline = Some(Micros::try_from(duration.as_micros()).unwrap());
        self
    }

    pub(crate) fn due_after_launch(mut self, duration: Duration) -> Self {
        self.due_after_launch = Some(Micros::try_from(duration.as_micros()).unwrap());
        self
    }

    /// Plays until all have ended.
    pub(crate) fn play(mut self, links: Links) -> Vec<Told> {
        let (_say, heard) = watch::channel(Stop::No);
        let ended = drive_here(&mut self, links, heard, &mut |_| Ok(())).unwrap();
        assert_eq!(ended.how, How::Done);
        self.told
    }
}

impl<F: FnMut(&[Told], LinkId, &Input<'_>) -> Vec<Action>> Machine for Cast<F> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        if matches!(input, Input::Tick) {
            assert!(self.deadline.take().unwrap() <= now, "a tick before its deadline");
        }
        if matches!(input, Input::Launched(_)) {
            self.deadline = self.deadline.or(self.due_after_launch.take().map(|due| now + due));
        }
        if link >= self.told.len() {
            self.told.resize_with(link + 1, Told::default);
        }
        let told = &mut self.told[link];
        assert!(told.exited.is_none() && told.not_launched.is_none(), "{input:?} after the end of {link}");
        assert!(
            link == 0
                || told.launched.is_some() != matches!(input, Input::Launched(_))
                || matches!(input, Input::NotLaunched(_))
        );
        told.note(&input);
        self.todo.extend((self.react)(&self.told, link, &input));
        if self.told.iter().all(|told| told.exited.is_some() || told.not_launched.is_some()) {
            self.todo.push_back(Action::Done);
        }
    }

    fn poll(&mut self, _now: Micros) -> Option<Action> {
        self.todo.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        self.deadline
    }
}

pub(crate) fn write(bytes: impl Into<Bytes>) -> Action {
    Action::Write { link: 0, bytes: bytes.into(), after_drain: false }
}

pub(crate) fn write_after_drain(bytes: impl Into<Bytes>) -> Action {
    Action::Write { link: 0, bytes: bytes.into(), after_drain: true }
}

pub(crate) const CLOSE: Action = Action::Close { link: 0 };
pub(crate) const KILL: Action = Action::Kill { link: 0 };

/// This executable as one of its guests.
pub(crate) fn spawn(args: &[&str]) -> Spawn {
    let us = env::current_exe().unwrap();
    let words = [us.as_os_str(), OsStr::new(guest::WORD)].into_iter().chain(args.iter().map(OsStr::new));
    Spawn { argv: words.map(OsString::from).collect(), env: Vec::new(), cwd: None, launcher: us }
}

/// Waits until the process has ended, which must be soon.
pub(crate) fn assert_ends(pid: i32) {
    assert!(ended_within(pid, Duration::from_secs(20)), "{pid} still runs");
}

/// The process has ended by now; whoever inherited it may not have reaped it yet.
pub(crate) fn assert_gone(pid: i32) {
    assert!(ended_within(pid, Duration::ZERO), "{pid} still runs");
}

fn ended_within(pid: i32, bound: Duration) -> bool {
    let until = Instant::now() + bound;
    let Ok(watched) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return true };
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).unwrap();
        match poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            ready => return ready == Ok(1),
        }
    }
}
