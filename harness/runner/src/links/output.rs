//! Queued writing to a pipe.
//!
//! Writes are coalesced into one buffer and go out with as few system calls as the pipe allows; a write that waits for
//! what was before it to be read starts a buffer of its own. The pipe is then shrunk to a page, because a writer is
//! woken only when a full pipe empties: so a part of more than a page is read in pieces, but no two parts are ever read
//! in one.

use std::{collections::VecDeque, io, os::fd::OwnedFd, task::Poll};

use bytes::{Buf as _, Bytes, BytesMut};
use sidecert_proto::machine::Micros;

use super::{
    Wrote,
    end::{Ask, End},
    micros,
};
use crate::{
    budget::{LOOK_AGAIN, WRITE_QUEUE_BYTES},
    os,
};

/// What is to be written to the other end, and how far that is.
pub(super) struct Output {
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

impl Output {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
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

    /// Nothing is queued, and the machine knows what came of everything.
    pub(super) fn is_silent(&self) -> bool {
        self.queued == 0 && self.untold.is_none()
    }

    /// How many bytes are queued.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// When to look at it even if nothing happens.
    pub(super) fn due(&self) -> Option<Micros> {
        self.look_again
    }

    /// Queues a write. After a break or a close there is nowhere for it to go.
    pub(super) fn push(&mut self, bytes: &Bytes, waits: bool) {
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
    pub(super) fn close(&mut self) {
        self.closing = true;
        self.close_when_done();
    }

    /// Writes once, if there is something to write and room for it; or tells what came of writing early.
    pub(super) fn write(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> Option<Wrote> {
        self.untold.take().or_else(|| self.write_once(ask, now))
    }

    /// Writes while the machine is still being heard, so that the other end has something to do meanwhile.
    pub(super) fn write_early(&mut self, now: Micros) {
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
