//! The launcher: one small process between the harness and each guest, in the same executable.
//!
//! `EXECUTABLE __launch 1 -- ARGV…`, with a socket as standard input over which the guest's own three descriptors
//! come. It leads a session without a terminal, adopts what the guest's children leave behind, and starts the guest in
//! a process group of its own. So a Ctrl-C does not reach the guest, no process gets out of sight, and the end of the
//! harness, however it ends, is seen as the end of the socket. It promises that nothing that the guest started
//! outlives it by more than [`SETTLE_WITHIN`] and [`KILL_WITHIN`].
//!
//! Version 1 of what is said, one line each. It says, in this order: `spawned PID` or `failed ERRNO` (and nothing
//! more); `exited code N`, `exited signal N` or `exited unknown`; any `left PID own|same NAME`, the middle one being
//! the session; `more N` when not all were named; `gone`. It obeys `kill` and `signal N`. After `kill` there is no
//! `left`: nobody was given the time to clean up.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fmt, io,
    io::{Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, ExitCode},
    str::FromStr,
    time::Instant,
};

use sidecert_proto::machine::{Exited, Left};

use crate::{
    budget::{CONTROL_LINE_BYTES_MAX, KILL_WITHIN, LEFT_NAMED_MAX, REAP_EVERY, SETTLE_WITHIN},
    os::{self, Pid, Reaped},
};

/// The first argument that makes the executable a launcher.
pub const WORD: &str = "__launch";

/// What the harness and the launcher say to each other.
pub(crate) const VERSION: &str = "1";

/// Is the launcher: call it before anything else, with the arguments after [`WORD`], and end with what it returns.
///
/// It is single-threaded and returns when the guest and all that it started are gone. Not zero means that it could not
/// do its work; it says nothing, since its own output goes nowhere.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    match launch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// What a launcher says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Spawned(i32),
    Failed(i32),
    Exited(Exited),
    Left(Left),
    More(usize),
    Gone,
}

/// Bytes cut anywhere, made lines again. A line beyond [`CONTROL_LINE_BYTES_MAX`] is dropped.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn next(&mut self) -> Option<String> {
        let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') else {
            if self.bytes.len() > CONTROL_LINE_BYTES_MAX {
                self.bytes.clear();
            }
            return None;
        };
        let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.bytes.drain(..=end);
        Some(line)
    }
}

fn launch(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let refused = || io::Error::from(io::ErrorKind::InvalidInput);
    if args.next().is_none_or(|version| version != VERSION) || args.next().is_none_or(|dashes| dashes != "--")
    {
        return Err(refused());
    }
    let program = args.next().ok_or_else(refused)?;
    let control = UnixStream::from(os::take_stdin()?);
    let [stdin, stdout, stderr] = os::receive_descriptors(&control)?;
    os::lead_session()?;
    os::adopt_orphans()?;
    // As a statement of its own, so that our copies of the guest's descriptors close with the command: every end of
    // file is the guest's.
    let started =
        Command::new(program).args(args).stdin(stdin).stdout(stdout).stderr(stderr).process_group(0).spawn();
    let guest = match started {
        Ok(child) => os::id_of(&child),
        Err(error) => return say(&control, &Report::Failed(error.raw_os_error().unwrap_or(0))),
    };
    say(&control, &Report::Spawned(guest.as_raw_nonzero().get()))?;
    let ended = os::watch(guest)?;
    Launcher { control, heard: Lines::default(), guest, ended, reaped: false }.run();
    Ok(())
}

fn say(mut control: &UnixStream, report: &Report) -> io::Result<()> {
    control.write_all(format!("{report}\n").as_bytes())
}

struct Launcher {
    control: UnixStream,
    heard: Lines,
    guest: Pid,
    /// Readable when the guest has ended.
    ended: OwnedFd,
    reaped: bool,
}

impl Launcher {
    fn run(&mut self) {
        let told_to = self.guard() || self.settle();
        self.clear(!told_to);
        self.say(&Report::Gone);
    }

    /// Until the guest ends (`false`), or we are told to end it (`true`).
    fn guard(&mut self) -> bool {
        loop {
            os::readable(&[self.control.as_fd(), self.ended.as_fd()], Instant::now() + REAP_EVERY);
            self.reap();
            if self.reaped {
                return false;
            }
            if self.is_told_to_kill() {
                return true;
            }
        }
    }

    /// Leaves what the guest started the time to end by itself; `true` when we are told to kill instead.
    fn settle(&mut self) -> bool {
        let until = Instant::now() + SETTLE_WITHIN;
        let me = os::ourselves();
        while self.reap() && Instant::now() < until {
            let watched: Vec<_> =
                os::descendants(me).iter().filter_map(|seen| os::watch(seen.pid).ok()).collect();
            let mut of = vec![self.control.as_fd()];
            of.extend(watched.iter().map(|fd| fd.as_fd()));
            os::readable(&of, until);
            if self.is_told_to_kill() {
                return true;
            }
        }
        false
    }

    /// Kills until there is nothing to kill. Being the reaper, we have a child as long as there is.
    fn clear(&mut self, naming: bool) {
        let until = Instant::now() + KILL_WITHIN;
        let me = os::ourselves();
        let mut seen = BTreeSet::new();
        if !self.reaped {
            // At once, before any of them can fork again. Afterwards the id may be somebody else's.
            os::kill_group(self.guest);
        }
        while self.reap() && Instant::now() < until {
            let found = os::descendants(me);
            for left in found.iter().filter(|_| naming) {
                let pid = left.pid.as_raw_nonzero().get();
                if seen.insert(pid) && seen.len() <= LEFT_NAMED_MAX {
                    let session = left.session != me.as_raw_nonzero().get();
                    self.say(&Report::Left(Left { pid, name: left.name.clone(), session }));
                }
            }
            os::kill_all(&found, until);
        }
        if seen.len() > LEFT_NAMED_MAX {
            self.say(&Report::More(seen.len() - LEFT_NAMED_MAX));
        }
    }

    /// Takes in the children that ended, and says so of the guest; `false` when there is none left.
    fn reap(&mut self) -> bool {
        loop {
            match os::reap() {
                Reaped::One(pid, exited) if pid == self.guest && !self.reaped => {
                    self.reaped = true;
                    self.say(&Report::Exited(exited));
                }
                Reaped::One(..) => {}
                Reaped::AllRun => return true,
                Reaped::NoneLeft => return false,
            }
        }
    }

    /// Reads and obeys; the end of the harness is an order, too.
    fn is_told_to_kill(&mut self) -> bool {
        let mut bytes = [0; CONTROL_LINE_BYTES_MAX];
        loop {
            match self.control.read(&mut bytes) {
                Ok(0) => return true,
                Ok(n) => self.heard.push(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return true,
            }
        }
        while let Some(line) = self.heard.next() {
            match line.split_once(' ') {
                None if line == "kill" => return true,
                Some(("signal", number)) => os::send_signal(self.guest, number.parse().unwrap_or(0)),
                _ => {}
            }
        }
        false
    }

    /// All that is ever said fits into the socket; a harness that is gone misses nothing.
    fn say(&self, report: &Report) {
        let _ = say(&self.control, report);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawned(pid) => write!(f, "spawned {pid}"),
            Self::Failed(errno) => write!(f, "failed {errno}"),
            Self::Exited(Exited::Code(code)) => write!(f, "exited code {code}"),
            Self::Exited(Exited::Signal(signal)) => write!(f, "exited signal {signal}"),
            Self::Exited(Exited::Unknown) => write!(f, "exited unknown"),
            Self::Left(Left { pid, name, session }) => {
                write!(f, "left {pid} {} {name}", if *session { "own" } else { "same" })
            }
            Self::More(count) => write!(f, "more {count}"),
            Self::Gone => write!(f, "gone"),
        }
    }
}

impl FromStr for Report {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let number = |text: &str| text.parse::<i32>().map_err(|_| ());
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next();
        Ok(match (word().unwrap_or(""), word(), word(), word()) {
            ("spawned", Some(pid), None, None) => Self::Spawned(number(pid)?),
            ("failed", Some(errno), None, None) => Self::Failed(number(errno)?),
            ("exited", Some("code"), Some(code), None) => Self::Exited(Exited::Code(number(code)?)),
            ("exited", Some("signal"), Some(signal), None) => Self::Exited(Exited::Signal(number(signal)?)),
            ("exited", Some("unknown"), None, None) => Self::Exited(Exited::Unknown),
            ("left", Some(pid), Some(session @ ("own" | "same")), Some(name)) => {
                Self::Left(Left { pid: number(pid)?, name: name.to_owned(), session: session == "own" })
            }
            ("more", Some(count), None, None) => Self::More(count.parse().map_err(|_| ())?),
            ("gone", None, None, None) => Self::Gone,
            _ => return Err(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        let left = |name: &str, session| Left { pid: 7, name: name.into(), session };
        for said in [
            Report::Spawned(12),
            Report::Failed(2),
            Report::Exited(Exited::Code(-1)),
            Report::Exited(Exited::Signal(9)),
            Report::Exited(Exited::Unknown),
            Report::Left(left("a b  c", true)),
            Report::Left(left("", false)),
            Report::More(3),
            Report::Gone,
        ] {
            assert_eq!(said.to_string().parse(), Ok(said));
        }
        for noise in ["", "gone 1", "spawned", "left 1 other x", "exited code"] {
            assert_eq!(noise.parse::<Report>(), Err(()), "{noise:?}");
        }
    }

    #[test]
    fn lines_come_in_pieces_and_long_ones_not_at_all() {
        let mut lines = Lines::default();
        lines.push(b"one\ntw");
        assert_eq!(lines.next().as_deref(), Some("one"));
        assert_eq!(lines.next(), None);
        lines.push(b"o\n");
        assert_eq!(lines.next().as_deref(), Some("two"));
        lines.push(&[b'x'; CONTROL_LINE_BYTES_MAX + 1]);
        assert_eq!(lines.next(), None);
        lines.push(b"three\n");
        assert_eq!(lines.next().as_deref(), Some("three"));
    }

    #[test]
    fn a_wrong_start_is_refused() {
        for args in [&[][..], &["2", "--", "x"], &["1", "x"], &["1", "--"]] {
            assert!(launch(args.iter().map(OsString::from)).is_err());
        }
    }
}
