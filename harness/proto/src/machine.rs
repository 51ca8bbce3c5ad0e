//! The one shape of behaviour: bytes and time in, actions out.
//!
//! A play, a mock guest and the reference host are all machines. Two of them run against each other in memory on a
//! virtual clock; the runner's loop drives any of them on real links. A machine never blocks, and asks for time only
//! by naming a deadline.

use bytes::Bytes;

/// Microseconds since the machine was started, on a monotonic clock.
pub type Micros = u64;

/// Which of a machine's links an input or an action belongs to. A guest has one: link 0.
pub type LinkId = usize;

/// What happens to a machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// Bytes arrived on the link, cut anywhere.
    Bytes(&'a [u8]),
    /// The other end will send nothing more on the link.
    Eof,
    /// The other end took this many more of the bytes that this machine asked to write.
    Wrote(usize),
    /// The other end takes no more bytes; what was not yet written never will be.
    Broken,
    /// The process on the link wrote this to its standard error.
    Stderr(&'a [u8]),
    /// A process was started, and this is its link from now on. The first input of every link but 0.
    Launched(&'a Launched),
    /// The process that was to be started on the link could not be: why, in a sentence. The last input of the link.
    NotLaunched(&'a str),
    /// The remote-controlled process on the link was sent this signal, and went on.
    Signal(i32),
    /// The remote-controlled process on the link answers [`Order::Ping`].
    Pong,
    /// The process on the link ended. [`Exited::Unknown`] on the link of a remote-controlled one: it is gone.
    Exited(Exited),
    /// The process on the link left another one running when it ended; it has been killed.
    Left(Left),
    /// The user asked to stop.
    Interrupted,
    /// The deadline has come (or a later moment).
    Tick,
}

/// What a machine wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Write these bytes, in order with earlier ones of the same link.
    Write {
        /// Where to.
        link: LinkId,
        /// What.
        bytes: Bytes,
        /// `true`: begin only when the other end has read everything that was written before.
        after_drain: bool,
    },
    /// Close our writing end once everything asked for is written.
    Close {
        /// Which.
        link: LinkId,
    },
    /// Stop (`false`) or go on (`true`) reading from the link. Links are read from the start.
    Reading {
        /// Which.
        link: LinkId,
        /// Whether to read.
        on: bool,
    },
    /// Read nothing more from the standard error of the process on the link.
    LeaveErrors {
        /// Which.
        link: LinkId,
    },
    /// End the process on the link, with everything that it started, now.
    Kill {
        /// Which.
        link: LinkId,
    },
    /// Start a process. Its link is the one after the highest that there is, and must be named so.
    Launch {
        /// Its link from now on.
        link: LinkId,
        /// What to start.
        launch: Launch,
    },
    /// Let the remote-controlled process on the link do something that is not writing.
    Tell {
        /// Which.
        link: LinkId,
        /// What.
        order: Order,
    },
    /// The machine is a process of its own and ends with this code.
    Exit(u8),
    /// The machine has nothing more to do.
    Done,
}

/// A process that is to be started, without a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What its environment has besides the one of the process that starts it; later ones prevail.
    pub env: Vec<(String, String)>,
}

/// A process that was started, as it tells itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// Which guest it is: what stands behind `--as`.
    pub name: String,
    /// Whether a guest of ours started it, and not the host.
    pub spawned: bool,
    /// Its process id.
    pub pid: i32,
    /// That of its parent.
    pub parent: i32,
    /// That of its session.
    pub session: i32,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub cwd: String,
    /// The names of the variables in its environment, sorted, and the values of those that the protocol gives a guest.
    pub env: Vec<(String, Option<String>)>,
    /// The descriptors that it was started with, ascending.
    pub descriptors: Vec<i32>,
}

/// What a remote-controlled process is told to do, besides writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Write this to standard error, blocking: nothing that comes later is written before it was taken.
    Stderr(Bytes),
    /// Close its standard input.
    CloseInput,
    /// End with this code.
    Exit(u8),
    /// End by SIGABRT.
    Abort,
    /// Go on when it is sent SIGTERM, and say so.
    IgnoreTerm,
    /// Start another one like itself, which holds the same pipes.
    Spawn {
        /// In a session of its own.
        session: bool,
    },
    /// Answer, if it is still there.
    Ping,
}

impl Order {
    /// Its name in scripts and recordings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stderr(_) => "stderr",
            Self::CloseInput => "close-input",
            Self::Exit(_) => "exit",
            Self::Abort => "abort",
            Self::IgnoreTerm => "ignore-term",
            Self::Spawn { .. } => "spawn",
            Self::Ping => "ping",
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exited {
    /// By returning this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// The platform did not say.
    Unknown,
}

/// A process that outlived the one that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its process id.
    pub pid: i32,
    /// Its name, as the platform gives it.
    pub name: String,
    /// `true` when it had made a session of its own.
    pub session: bool,
}

/// A behaviour without I/O and without a clock.
pub trait Machine {
    /// Takes in what happened on `link` at `now`.
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros);

    /// The next thing to do, or `None` until more happens. Called until it returns `None` after every `handle`.
    fn poll(&mut self, now: Micros) -> Option<Action>;

    /// When to call `handle` with [`Input::Tick`] if nothing happens before.
    fn deadline(&self) -> Option<Micros>;
}
