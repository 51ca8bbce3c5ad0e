//! The three streams of a probe, each on a thread that blocks where a guest's would.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
};

use bytes::Bytes;

use super::{FromProbe, Garbage, Socket, number, start};
use crate::{
    budget::{LOOK_AGAIN, PROBE_WINDOW_BYTES, READ_BYTES},
    os,
};

/// Standard input: read as far as there is credit, and told.
pub(super) struct Input {
    credit: AtomicUsize,
    /// Not answered yet.
    pings: AtomicUsize,
    closed: AtomicBool,
    changed: OwnedFd,
}

impl Input {
    pub(super) fn begin(socket: &Arc<Socket>) -> io::Result<Arc<Self>> {
        let input = Arc::new(Self {
            credit: AtomicUsize::new(0),
            pings: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            changed: os::bell()?,
        });
        let (running, socket) = (Arc::clone(&input), Arc::clone(socket));
        start("input", move || running.run(&socket))?;
        Ok(input)
    }

    /// Lets it read so many more bytes; more than the window in all is out of place.
    pub(super) fn credit(&self, bytes: usize) -> Result<(), Garbage> {
        let before = self.credit.fetch_add(bytes, Ordering::SeqCst);
        os::ring(&self.changed);
        if before + bytes > PROBE_WINDOW_BYTES { Err(Garbage) } else { Ok(()) }
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        os::ring(&self.changed);
    }

    /// Answers when all that is there now has been told, as far as there is credit.
    pub(super) fn ping(&self) {
        self.pings.fetch_add(1, Ordering::SeqCst);
        os::ring(&self.changed);
    }

    /// It closes by itself, and waits without reading: a descriptor in use elsewhere is not closed for the other end.
    fn run(&self, socket: &Socket) {
        let stdin = io::stdin();
        let mut buffer = vec![0; READ_BYTES];
        let mut open = true;
        // What is to be answered, and how many bytes are to be told before.
        let (mut pings, mut before) = (0, 0);
        loop {
            if self.closed.swap(false, Ordering::SeqCst) {
                open = false;
                let _ = os::close_stdin();
            }
            let credit = self.credit.load(Ordering::SeqCst);
            let from = (open && credit > 0).then(|| stdin.as_fd());
            let (changed, ready) = os::await_bell(&self.changed, from, pings == 0);
            if changed {
                os::hush(&self.changed);
                let asked = self.pings.swap(0, Ordering::SeqCst);
                pings += asked;
                if asked > 0 {
                    before = unread();
                }
                // It may be that this is not to be read any more.
                continue;
            }
            // What is ready and has no bytes is at its end, which is told before as well.
            if pings > 0 && !(ready && (before > 0 || unread() == 0)) {
                for _ in 0..std::mem::take(&mut pings) {
                    socket.say(&FromProbe::Pong);
                }
            } else if ready {
                let most = credit.min(buffer.len());
                match os::read(&stdin, &mut buffer[..most]) {
                    Ok(read @ 1..) => {
                        before = before.saturating_sub(read);
                        self.credit.fetch_sub(read, Ordering::SeqCst);
                        socket.say(&FromProbe::Read(Bytes::copy_from_slice(&buffer[..read])));
                    }
                    Err(error) if is_passing(&error) => {}
                    Ok(0) | Err(_) => {
                        open = false;
                        socket.say(&FromProbe::ReadEof);
                    }
                }
            }
        }
    }
}

/// How many bytes are unread on standard input.
fn unread() -> usize {
    usize::try_from(os::unread(io::stdin())).unwrap_or(usize::MAX)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Which stream is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Output,
    Errors,
}

/// Standard output or error: written in order, and told as it is taken.
pub(super) struct Output {
    queue: Sender<Piece>,
    /// How many bytes are queued or being written.
    waiting: Arc<AtomicUsize>,
    closed: bool,
}

enum Piece {
    Bytes { bytes: Bytes, after_drain: bool },
    Close,
}

impl Output {
    pub(super) fn begin(socket: &Arc<Socket>, which: Which) -> io::Result<Self> {
        let (queue, pieces) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let writer = Writer { socket: Arc::clone(socket), which, waiting: Arc::clone(&waiting) };
        start(if which == Which::Output { "output" } else { "errors" }, move || writer.run(&pieces))?;
        Ok(Self { queue, waiting, closed: false })
    }

    /// Queues bytes. More than the window is out of place, as is what comes after a close.
    pub(super) fn push(&mut self, bytes: Bytes, after_drain: bool) -> Result<(), Garbage> {
        let waiting = self.waiting.fetch_add(bytes.len(), Ordering::SeqCst) + bytes.len();
        if self.closed || waiting > PROBE_WINDOW_BYTES {
            return Err(Garbage);
        }
        self.queue.send(Piece::Bytes { bytes, after_drain }).map_err(|_| Garbage)
    }

    /// Closes the stream once all is written.
    pub(super) fn close(&mut self) -> Result<(), Garbage> {
        if std::mem::replace(&mut self.closed, true) {
            return Err(Garbage);
        }
        self.queue.send(Piece::Close).map_err(|_| Garbage)
    }
}

struct Writer {
    socket: Arc<Socket>,
    which: Which,
    waiting: Arc<AtomicUsize>,
}

impl Writer {
    fn run(&self, pieces: &Receiver<Piece>) {
        let mut broken = false;
        for piece in pieces {
            match piece {
                Piece::Bytes { bytes, .. } if broken => {
                    self.waiting.fetch_sub(bytes.len(), Ordering::SeqCst);
                }
                Piece::Bytes { bytes, after_drain } => {
                    if let Err(error) = self.write(&bytes, after_drain) {
                        broken = true;
                        let error = number(&error);
                        self.socket.say(&match self.which {
                            Which::Output => FromProbe::WriteFailed(error),
                            Which::Errors => FromProbe::ErrorsFailed(error),
                        });
                    }
                }
                Piece::Close => {
                    // By this thread: a descriptor in use elsewhere is not closed for the other end.
                    let _ = os::close_stdout();
                }
            }
        }
    }

    /// Writes all, in pieces that a pipe takes whole, so that what was taken is known when it has no more room.
    fn write(&self, bytes: &[u8], after_drain: bool) -> io::Result<()> {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let to = match self.which {
            Which::Output => stdout.as_fd(),
            Which::Errors => stderr.as_fd(),
        };
        if after_drain {
            os::await_reader(to, LOOK_AGAIN);
        }
        let (mut taken, mut told) = (0, 0);
        let written = bytes.chunks(os::WRITE_ATOMIC_BYTES).try_for_each(|piece| {
            if taken > told && !os::is_writable(to) {
                self.tell(taken - told);
                told = taken;
            }
            os::write_all(to, piece)?;
            taken += piece.len();
            Ok(())
        });
        self.tell(taken - told);
        self.waiting.fetch_sub(bytes.len() - taken, Ordering::SeqCst);
        written
    }

    fn tell(&self, taken: usize) {
        if taken == 0 {
            return;
        }
        // Before it is told: who hears it may send as much again.
        self.waiting.fetch_sub(taken, Ordering::SeqCst);
        let count = u32::try_from(taken).unwrap_or(u32::MAX);
        self.socket.say(&match self.which {
            Which::Output => FromProbe::Wrote(count),
            Which::Errors => FromProbe::WroteErrors(count),
        });
    }
}
