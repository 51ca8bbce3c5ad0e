//! The links of a machine: reading, queued writing, and what becomes of the process at the other end.
//!
//! Each source is taken from at most once a sweep, so none starves another. Writes are coalesced into one buffer and
//! go out with as few system calls as the pipe allows; a write that waits for what was before it to be read starts a
//! buffer of its own. The pipe is then shrunk to a page, because a writer is woken only when a full pipe empties: so
//! a part of more than a page is read in pieces, but no two parts are ever read in one.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    task::{Context, Poll},
};

use bytes::{Buf as _, Bytes, BytesMut};
use sidecert_proto::machine::{Exited, Left, Micros};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{
    budget::{CONTROL_LINE_BYTES_MAX, EXITED_GRACE, LAUNCHER_WITHIN, LOOK_AGAIN, WRITE_QUEUE_BYTES},
    launch::{Lines, Report},
    os,
    process::{Process, Tree},
};

/// What a machine is connected to, in the order of its link ids. Needs no runtime until it is driven.
#[derive(Debug)]
pub struct Links {
    pub(crate) ends: Vec<Ends>,
}

#[derive(Debug)]
pub(crate) struct Ends {
    input: OwnedFd,
    output: OwnedFd,
    process: Option<(OwnedFd, Tree)>,
}

impl Links {
    /// Link 0 is a guest: its standard output is read, its standard input written.
    pub fn guest(process: Process) -> Self {
        Self::guests([process])
    }

    /// A link for each guest.
    pub fn guests(processes: impl IntoIterator<Item = Process>) -> Self {
        let ends = |Process { stdin, stdout, stderr, tree }| Ends {
            input: stdout,
            output: stdin,
            process: Some((stderr, tree)),
        };
        Self { ends: processes.into_iter().map(ends).collect() }
    }

    /// Link 0 is our own standard input and output: we are the guest. They are ours alone from here on.
    ///
    /// Fails when one of them is closed.
    pub fn stdio() -> io::Result<Self> {
        Ok(Self { ends: vec![Ends { input: os::take_stdin()?, output: os::take_stdout()?, process: None }] })
    }
}

/// Whom to ask whether there is something: the runtime, which will wake us, or the kernel, which always knows.
pub(crate) enum Ask<'a, 'b> {
    Runtime(&'a mut Context<'b>),
    Kernel,
}

/// One link at work.
pub(crate) struct Link {
    pub(crate) reading: bool,
    pub(crate) output: Output,
    pub(crate) guest: Option<Guest>,
    input: Option<End>,
    errors: Option<End>,
}

impl Link {
    /// Needs a runtime.
    pub(crate) fn new(ends: Ends) -> io::Result<Self> {
        let (errors, guest) = match ends.process {
            Some((stderr, tree)) => (Some(End::reading(stderr)?), Some(Guest::new(tree)?)),
            None => (None, None),
        };
        Ok(Self {
            reading: true,
            output: Output::new(ends.output)?,
            guest,
            input: Some(End::reading(ends.input)?),
            errors,
        })
    }

    /// Some bytes of what the other end says; 0 is its end, once.
    pub(crate) fn read(&mut self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
        if self.reading { read_until_end(&mut self.input, ask, into) } else { None }
    }

    /// Some bytes of its standard error; 0 is its end, once.
    pub(crate) fn read_errors(&mut self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
        read_until_end(&mut self.errors, ask, into)
    }

    /// What is now to be told of how the guest ended, survivors first. Once what it wrote has been read to the end
    /// and the launcher has finished; or when that took too long and there is nothing to read (`quiet`).
    pub(crate) fn ended(&mut self, now: Micros, quiet: bool) -> Option<(Vec<Left>, Exited)> {
        let read = self.errors.is_none() && (self.input.is_none() || !self.reading);
        let guest = self.guest.as_mut()?;
        let (exited, _) = guest.exited?;
        let late = quiet && guest.exited_due().is_some_and(|due| due <= now);
        if guest.told || !(late || read && guest.finished) {
            return None;
        }
        guest.told = true;
        Some((std::mem::take(&mut guest.left), exited))
    }

    /// When to look at it even if nothing happens.
    pub(crate) fn due(&self) -> Option<Micros> {
        let guest = self.guest.as_ref();
        let of_guest = guest.and_then(Guest::exited_due).into_iter().chain(guest.and_then(|it| it.kill_due));
        of_guest.chain(self.output.due()).min()
    }

    /// Nothing can come of it any more.
    pub(crate) fn is_silent(&self) -> bool {
        (self.input.is_none() || !self.reading)
            && self.errors.is_none()
            && self.output.queued() == 0
            && self.output.untold.is_none()
            && self.guest.as_ref().is_none_or(|guest| guest.told && guest.finished)
    }
}

/// A guest as far as its launcher tells of it.
pub(crate) struct Guest {
    tree: Tree,
    control: Option<End>,
    heard: Lines,
    exited: Option<(Exited, Micros)>,
    left: Vec<Left>,
    /// How many survivors were killed without a name.
    pub(crate) more: usize,
    /// The launcher has nothing more to say.
    finished: bool,
    /// The machine knows.
    told: bool,
    /// When a kill should have had its effect.
    kill_due: Option<Micros>,
}

impl Guest {
    fn new(tree: Tree) -> io::Result<Self> {
        let control = Some(End::reading(tree.reports()?)?);
        Ok(Self {
            tree,
            control,
            heard: Lines::default(),
            exited: None,
            left: Vec::new(),
            more: 0,
            finished: false,
            told: false,
            kill_due: None,
        })
    }

    /// Ends it, with all that it started.
    pub(crate) fn kill(&mut self, now: Micros) {
        if !self.finished && self.kill_due.is_none() {
            self.tree.kill();
            self.kill_due = Some(now + micros(LAUNCHER_WITHIN));
        }
    }

    /// Takes in what the launcher says, and does its work when it does not; `true` when anything happened.
    pub(crate) fn listen(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> bool {
        let mut bytes = [0; CONTROL_LINE_BYTES_MAX];
        let heard = read_until_end(&mut self.control, ask, &mut bytes);
        self.heard.push(&bytes[..heard.unwrap_or(0)]);
        while let Some(line) = self.heard.next() {
            match line.parse() {
                Ok(Report::Exited(exited)) => self.exited = Some((exited, now)),
                Ok(Report::Left(left)) => self.left.push(left),
                Ok(Report::More(count)) => self.more = count,
                Ok(Report::Gone) => self.finish(now),
                // What another version may add does not concern this one.
                _ => {}
            }
        }
        let lost = heard == Some(0) && !self.finished;
        let stuck = self.kill_due.is_some_and(|due| due <= now);
        if lost || stuck {
            self.tree.kill_without_launcher();
            self.finish(now);
        }
        heard.is_some() || stuck
    }

    fn finish(&mut self, now: Micros) {
        self.finished = true;
        self.kill_due = None;
        self.exited.get_or_insert((Exited::Unknown, now));
    }

    fn exited_due(&self) -> Option<Micros> {
        self.exited.filter(|_| !self.told).map(|(_, at)| at + micros(EXITED_GRACE))
    }
}

/// What is to be written to the other end, and how far that is.
pub(crate) struct Output {
    end: Option<End>,
    queue: VecDeque<Segment>,
    queued: usize,
    closing: bool,
    /// How much the pipe holds when we let it; `None` for what is no pipe, where nobody can tell what was read.
    pipe_bytes: Option<usize>,
    shrunk: bool,
    look_again: Option<Micros>,
    /// What came of writing early, which the machine has not been told yet.
    untold: Option<Wrote>,
}

struct Segment {
    bytes: BytesMut,
    /// It held more than what is queued as a rule, so its memory is not kept.
    large: bool,
    /// It begins only when all before it has been read.
    waits: bool,
}

/// What came of trying to write.
pub(crate) enum Wrote {
    Took(usize),
    Broken,
    /// Not even a beginning, but [`Output::due`] is another than before.
    Nothing,
}

impl Output {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let pipe_bytes = os::pipe_bytes(&fd);
        Ok(Self {
            end: Some(End::writing(fd)?),
            queue: VecDeque::new(),
            queued: 0,
            closing: false,
            pipe_bytes,
            shrunk: false,
            look_again: None,
            untold: None,
        })
    }

    /// How many bytes are queued.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// When to look at it even if nothing happens.
    pub(crate) fn due(&self) -> Option<Micros> {
        self.look_again
    }

    /// Queues a write. After a break or a close there is nowhere for it to go.
    pub(crate) fn push(&mut self, bytes: &Bytes, waits: bool) {
        if self.end.is_none() || self.closing || bytes.is_empty() {
            return;
        }
        self.queued += bytes.len();
        match self.queue.back_mut() {
            Some(last) if !waits => last.bytes.extend_from_slice(bytes),
            _ => self.queue.push_back(Segment { bytes: bytes.as_ref().into(), large: false, waits }),
        }
        if let Some(last) = self.queue.back_mut() {
            last.large |= last.bytes.len() > 2 * WRITE_QUEUE_BYTES;
        }
        if waits {
            self.fit_pipe();
        }
    }

    /// Closes our end once all is written.
    pub(crate) fn close(&mut self) {
        self.closing = true;
        self.close_when_done();
    }

    /// Writes once, if there is something to write and room for it; or tells what came of writing early.
    pub(crate) fn write(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> Option<Wrote> {
        self.untold.take().or_else(|| self.write_once(ask, now))
    }

    /// Writes while the machine is still being heard, so that the other end has something to do meanwhile.
    pub(crate) fn write_early(&mut self, now: Micros) {
        let told = match (self.untold.take(), self.write_once(&mut Ask::Kernel, now)) {
            (Some(Wrote::Took(before)), Some(Wrote::Took(n))) => Some(Wrote::Took(before + n)),
            (_, Some(Wrote::Broken)) => Some(Wrote::Broken),
            (before, now) => before.or(now),
        };
        self.untold = told;
    }

    fn write_once(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> Option<Wrote> {
        if self.queued == 0 {
            return None;
        }
        if self.queue.front().is_some_and(|front| front.bytes.is_empty()) {
            self.queue.pop_front();
        }
        if self.queue.front().is_some_and(|front| front.waits) {
            self.fit_pipe();
            if !self.is_drained(ask) {
                return self.wait_for_reader(now);
            }
            self.look_again = None;
            self.queue.front_mut()?.waits = false;
            self.fit_pipe();
        }
        let is_last = self.queue.len() == 1;
        let front = self.queue.front_mut()?;
        let Ok(n) = self.end.as_ref()?.write(ask, &front.bytes)? else {
            self.end = None;
            self.queue.clear();
            self.queued = 0;
            self.look_again = None;
            return Some(Wrote::Broken);
        };
        front.bytes.advance(n);
        self.queued -= n;
        // The last buffer is kept for the next write, unless one large frame made it large.
        if front.bytes.is_empty() && (!is_last || front.large) {
            self.queue.pop_front();
        }
        self.close_when_done();
        Some(Wrote::Took(n))
    }

    /// The runtime wakes us when a pipe that is full empties; nothing does when it is not full.
    fn wait_for_reader(&mut self, now: Micros) -> Option<Wrote> {
        let due = if self.shrunk { None } else { self.look_again.filter(|&due| due > now) };
        let rearmed = !self.shrunk && due.is_none();
        self.look_again = if rearmed { Some(now + micros(LOOK_AGAIN)) } else { due };
        rearmed.then_some(Wrote::Nothing)
    }

    fn close_when_done(&mut self) {
        if self.closing
            && self.queued == 0
            && let Some(end) = self.end.take()
        {
            os::end_writing(end);
        }
    }

    /// A page while a write waits for the pipe to be empty, all of it otherwise.
    fn fit_pipe(&mut self) {
        let (Some(end), Some(whole)) = (&self.end, self.pipe_bytes) else { return };
        let waiting = self.queue.iter().any(|segment| segment.waits);
        if waiting != self.shrunk && os::resize_pipe(end, if waiting { 1 } else { whole }) {
            self.shrunk = waiting;
        }
    }

    fn is_drained(&self, ask: &mut Ask<'_, '_>) -> bool {
        let Some(end) = self.end.as_ref().filter(|_| self.pipe_bytes.is_some()) else { return true };
        let (Ask::Runtime(cx), End::Polled(fd)) = (ask, end) else { return os::unread(end) == 0 };
        loop {
            let Poll::Ready(Ok(mut ready)) = fd.poll_write_ready(cx) else { return false };
            // A reader that is gone will read nothing more: the write must find that out.
            if ready.ready().is_write_closed() || os::unread(end) == 0 {
                return true;
            }
            if !self.shrunk {
                return false;
            }
            ready.clear_ready();
        }
    }
}

/// A descriptor that the runtime watches, or one, such as a file, that is always ready.
enum End {
    Polled(AsyncFd<OwnedFd>),
    Plain(OwnedFd),
}

impl End {
    fn reading(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE)
    }

    fn writing(fd: OwnedFd) -> io::Result<Self> {
        Self::new(fd, Interest::WRITABLE)
    }

    #[expect(
        deprecated,
        reason = "deprecated for types that may close their descriptor; an `OwnedFd` does not"
    )]
    fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        match AsyncFd::try_with_interest(fd, interest) {
            Ok(polled) => Ok(Self::Polled(polled)),
            Err(refused) => match refused.into_parts() {
                (fd, error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Self::Plain(fd)),
                (_, error) => Err(error),
            },
        }
    }

    fn read(&self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<io::Result<usize>> {
        self.attempt(ask, AsyncFd::poll_read_ready, |fd| os::read(fd, into))
    }

    fn write(&self, ask: &mut Ask<'_, '_>, bytes: &[u8]) -> Option<io::Result<usize>> {
        self.attempt(ask, AsyncFd::poll_write_ready, |fd| os::write(fd, bytes))
    }

    /// Tries until it is done or would block. Only then has the runtime been asked to wake us.
    fn attempt<'a>(
        &'a self,
        ask: &mut Ask<'_, '_>,
        poll: impl Fn(
            &'a AsyncFd<OwnedFd>,
            &mut Context<'_>,
        ) -> Poll<io::Result<tokio::io::unix::AsyncFdReadyGuard<'a, OwnedFd>>>,
        mut call: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Option<io::Result<usize>> {
        loop {
            let tried = match (self, &mut *ask) {
                (Self::Polled(fd), Ask::Runtime(cx)) => match poll(fd, cx) {
                    Poll::Pending => return None,
                    Poll::Ready(Err(error)) => return Some(Err(error)),
                    Poll::Ready(Ok(mut ready)) => match ready.try_io(|fd| call(fd.as_fd())) {
                        Ok(tried) => tried,
                        Err(_would_block) => continue,
                    },
                },
                _ => call(self.as_fd()),
            };
            match tried {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                tried => return Some(tried),
            }
        }
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Polled(fd) => fd.as_fd(),
            Self::Plain(fd) => fd.as_fd(),
        }
    }
}

/// An end that can no longer be read is at its end, whatever the reason.
fn read_until_end(end: &mut Option<End>, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
    let read = end.as_ref()?.read(ask, into)?.unwrap_or(0);
    if read == 0 {
        *end = None;
    }
    Some(read)
}

pub(crate) fn micros(duration: std::time::Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}
