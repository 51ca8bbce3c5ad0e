//! The links of a machine, and what the loop asks of each: reading, queued writing, and what becomes of the process at
//! the other end. Each source is taken from at most once a sweep, so none starves another.

mod end;
mod output;
mod pipes;

use std::io;

use bytes::Bytes;
use sidecert_proto::machine::{Exited, Left, Micros};

use crate::{os, process::Process};
pub(crate) use end::Ask;
use pipes::{Ends, Pipes};

/// What a machine is connected to, in the order of its link ids. Needs no runtime until it is driven.
#[derive(Debug)]
pub struct Links {
    ends: Vec<Ends>,
}

impl Links {
    /// Link 0 is a guest: its standard output is read, its standard input written.
    pub fn guest(process: Process) -> Self {
        Self::guests([process])
    }

    /// A link for each guest.
    pub fn guests(processes: impl IntoIterator<Item = Process>) -> Self {
        Self { ends: processes.into_iter().map(Ends::from).collect() }
    }

    /// Link 0 is our own standard input and output: we are the guest. They are ours alone from here on.
    ///
    /// Fails when one of them is closed.
    pub fn stdio() -> io::Result<Self> {
        Ok(Self { ends: vec![Ends { input: os::take_stdin()?, output: os::take_stdout()?, process: None }] })
    }

    /// All of them at work. Needs a runtime.
    pub(crate) fn begin(self) -> io::Result<Vec<Box<dyn Link>>> {
        self.ends.into_iter().map(|ends| Ok(Box::new(Pipes::new(ends)?) as Box<dyn Link>)).collect()
    }
}

/// One link at work, as the loop sees it.
pub(crate) trait Link: Send {
    /// Takes in what is told of the process at the other end, and looks after it; `true` when anything happened.
    fn listen(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> bool;

    /// Some bytes of what the other end says; 0 is its end, once.
    fn read(&mut self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize>;

    /// Some bytes of its standard error; 0 is its end, once.
    fn read_errors(&mut self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize>;

    /// Writes once, if there is something to write and room for it; or tells what came of writing early.
    fn write(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> Option<Wrote>;

    /// What is now to be told of how the process ended, survivors first. `quiet`: there was nothing to read.
    fn ended(&mut self, now: Micros, quiet: bool) -> Option<(Vec<Left>, Exited)>;

    /// Queues a write. After a break or a close there is nowhere for it to go.
    fn push(&mut self, bytes: &Bytes, after_drain: bool);

    /// Writes while the machine is still being heard, so that the other end has something to do meanwhile.
    fn write_early(&mut self, now: Micros);

    /// Closes our writing end once all is written.
    fn close(&mut self);

    /// Whether to read from now on.
    fn set_reading(&mut self, on: bool);

    /// Ends the process, with all that it started.
    fn kill(&mut self, now: Micros);

    /// How many bytes are queued.
    fn queued(&self) -> usize;

    /// When to write even if nothing happens.
    fn write_due(&self) -> Option<Micros>;

    /// When to look at it even if nothing happens.
    fn due(&self) -> Option<Micros>;

    /// Nothing can come of it any more.
    fn is_silent(&self) -> bool;

    /// How many survivors were killed without a name.
    fn left_unnamed(&self) -> usize;
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
