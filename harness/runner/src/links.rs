//! The links of a machine, and what the loop asks of each: reading, queued writing, and what becomes of the process at
//! the other end. Each source is taken from at most once a sweep, so none starves another.

mod end;
mod output;
mod pipes;
mod probes;
mod remote;

use std::{io, os::fd::OwnedFd, path::PathBuf};

use bytes::Bytes;
use sidecert_proto::machine::{Exited, Launch, Launched, Left, Micros, Order};

use crate::{os, process::Process};
pub(crate) use end::Ask;
use pipes::{Ends, Pipes};
pub(crate) use probes::Door;
pub use probes::Probes;

/// What a machine is connected to, in the order of its link ids. Needs no runtime until it is driven.
#[derive(Debug)]
pub struct Links {
    ends: Vec<Ends>,
    probes: Option<Probes>,
    launcher: PathBuf,
}

impl Links {
    /// Link 0 is a guest: its standard output is read, its standard input written.
    pub fn guest(process: Process) -> Self {
        Self::guests([process])
    }

    /// A link for each guest.
    pub fn guests(processes: impl IntoIterator<Item = Process>) -> Self {
        Self::of(processes.into_iter().map(Ends::from).collect())
    }

    /// Link 0 is a host, or what makes one act; each probe that connects becomes the next link.
    pub fn host(process: Process, probes: Probes) -> Self {
        Self { probes: Some(probes), ..Self::guest(process) }
    }

    /// Link 0 is our own standard input and output: we are the guest. They are ours alone from here on.
    ///
    /// Fails when one of them is closed.
    pub fn stdio() -> io::Result<Self> {
        let ends = Ends { input: os::take_stdin()?, output: os::take_stdout()?, process: None };
        Ok(Self::of(vec![ends]))
    }

    /// Link 0 is somebody at the other ends of two pipes: `input` is read, `output` written.
    pub fn pipes(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        os::set_nonblocking(&input)?;
        os::set_nonblocking(&output)?;
        Ok(Self::of(vec![Ends { input, output, process: None }]))
    }

    /// What starts the processes that the machine asks for, as in [`Spawn`](crate::Spawn); our own executable by default.
    #[must_use]
    pub fn launcher(self, path: impl Into<PathBuf>) -> Self {
        Self { launcher: path.into(), ..self }
    }

    fn of(ends: Vec<Ends>) -> Self {
        Self { ends, probes: None, launcher: "/proc/self/exe".into() }
    }

    /// All of them at work. Needs a runtime.
    pub(crate) fn begin(self) -> io::Result<Begun> {
        let links = self.ends.into_iter().map(|ends| Ok(Box::new(Pipes::new(ends)?) as Box<dyn Link>));
        Ok(Begun {
            links: links.collect::<io::Result<_>>()?,
            door: self.probes.map(Door::new).transpose()?,
            launcher: self.launcher,
        })
    }
}

/// Links at work, and where others come from.
pub(crate) struct Begun {
    pub(crate) links: Vec<Box<dyn Link>>,
    pub(crate) door: Option<Door>,
    pub(crate) launcher: PathBuf,
}

/// Starts a process that a machine asks for, and gives its link. It blocks for some milliseconds and needs a runtime.
pub(crate) fn launch(launch: Launch, launcher: PathBuf) -> Box<dyn Link> {
    match Pipes::launch(launch, launcher) {
        Ok(pipes) => Box::new(pipes),
        Err(why) => Box::new(Vacant { why: Some(why) }),
    }
}

/// One link at work, as the loop sees it. What stands here is the link of nothing.
pub(crate) trait Link: Send {
    /// Takes in what is told of the process at the other end, and looks after it; `true` when anything happened.
    fn listen(&mut self, _ask: &mut Ask<'_, '_>, _now: Micros, _buffer: &mut [u8]) -> bool {
        false
    }

    /// What is now to be told of the process, other than its end. Asked until there is nothing.
    fn news(&mut self) -> Option<News> {
        None
    }

    /// More has been taken in than is told by now.
    fn holds(&self) -> bool {
        false
    }

    /// Some bytes of what the other end says; 0 is its end, once.
    fn read(&mut self, _ask: &mut Ask<'_, '_>, _into: &mut [u8]) -> Option<usize> {
        None
    }

    /// Some bytes of its standard error; 0 is its end, once.
    fn read_errors(&mut self, _ask: &mut Ask<'_, '_>, _into: &mut [u8]) -> Option<usize> {
        None
    }

    /// Writes once, if there is something to write and room for it; or tells what came of writing early.
    fn write(&mut self, _ask: &mut Ask<'_, '_>, _now: Micros) -> Option<Wrote> {
        None
    }

    /// What is now to be told of how the process ended, survivors first. `quiet`: there was nothing to read.
    fn ended(&mut self, _now: Micros, _quiet: bool) -> Option<(Vec<Left>, Exited)> {
        None
    }

    /// Queues a write. After a break or a close there is nowhere for it to go.
    fn push(&mut self, _bytes: &Bytes, _after_drain: bool) {}

    /// Writes while the machine is still being heard, so that the other end has something to do meanwhile.
    fn write_early(&mut self, _now: Micros) {}

    /// Closes our writing end once all is written.
    fn close(&mut self) {}

    /// Whether to read from now on.
    fn set_reading(&mut self, _on: bool) {}

    /// Reads nothing more of its standard error, which stays open.
    fn leave_errors(&mut self) {}

    /// Ends the process, with all that it started.
    fn kill(&mut self, _now: Micros) {}

    /// Lets a remote-controlled process do it; no other can.
    fn tell(&mut self, _order: Order) {}

    /// How many bytes are queued.
    fn queued(&self) -> usize {
        0
    }

    /// When to write even if nothing happens.
    fn write_due(&self) -> Option<Micros> {
        None
    }

    /// When to look at it even if nothing happens.
    fn due(&self) -> Option<Micros> {
        None
    }

    /// Nothing can come of it any more.
    fn is_silent(&self) -> bool {
        true
    }

    /// How many survivors were killed without a name.
    fn left_unnamed(&self) -> usize {
        0
    }
}

/// The link of a process that could not be started.
struct Vacant {
    why: Option<String>,
}

impl Link for Vacant {
    fn news(&mut self) -> Option<News> {
        self.why.take().map(News::NotLaunched)
    }

    fn holds(&self) -> bool {
        self.why.is_some()
    }

    fn is_silent(&self) -> bool {
        self.why.is_none()
    }
}

/// What is told of a process while it runs.
pub(crate) enum News {
    Launched(Box<Launched>),
    NotLaunched(String),
    Signal(i32),
    Pong,
}

/// What came of trying to write.
pub(crate) enum Wrote {
    Took(usize),
    Broken,
    /// Not even a beginning, but [`Link::write_due`] is another than before.
    Nothing,
}

pub(crate) fn micros(duration: std::time::Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}
