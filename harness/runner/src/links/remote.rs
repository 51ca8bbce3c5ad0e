//! The link of a probe: a socket, over which bytes come and go as far as there is credit.
//!
//! What the probe reads ahead of us, and what it holds that is still to be written, is bounded by a window each. Writes
//! and a close keep their order, as does an end behind them. What goes to standard error overtakes what waits to be
//! written, and what is written later waits for it; all other orders wait for nothing.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};
use sidecert_proto::machine::{Exited, Launched, Left, Micros, Order};

use super::{
    Link, News, Wrote,
    end::{Ask, End},
};
use crate::{
    budget::PROBE_WINDOW_BYTES,
    probe::{FromProbe, Garbage, ToProbe},
};

/// How often one listening reads while its buffer is filled: so much is never in a socket at once.
const READS_MOST: usize = 4;

/// The code of a probe that is killed: that of a shell for a process that SIGKILL ended.
const KILLED: u8 = 137;

pub(super) struct Remote {
    /// The connection, until it is at its end.
    end: Option<End>,
    heard: BytesMut,
    /// What is to be told, and how many inputs and their end before: the order of the probe is kept.
    news: VecDeque<(u64, News)>,
    came: u64,
    told: u64,
    reading: bool,
    /// How much more the probe may read.
    credit: usize,
    /// What it read, and the machine has not been told.
    input: BytesMut,
    input_end: Told,
    output: Stream,
    errors: Stream,
    /// The machine has not been told of so many bytes that were taken.
    took: usize,
    broken: Told,
    /// Standard output is to be closed.
    closing: bool,
    ending: Option<ToProbe>,
    exited: Told,
    /// Frames on their way into the socket.
    frames: BytesMut,
}

/// Whether something happened, and the machine knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Never,
    NotYet,
    Known,
}

impl Told {
    /// `true` once, when it happened.
    fn tell(&mut self) -> bool {
        let now = *self == Self::NotYet;
        if now {
            *self = Self::Known;
        }
        now
    }

    fn happens(&mut self) {
        if *self == Self::Never {
            *self = Self::NotYet;
        }
    }
}

/// What is to be written to one stream of the probe.
#[derive(Default)]
struct Stream {
    waiting: VecDeque<Part>,
    waiting_bytes: usize,
    /// What the probe has and has not written.
    sent: usize,
    /// Nothing more is taken.
    closed: bool,
    /// What the probe has does not matter any more.
    lost: bool,
}

struct Part {
    bytes: BytesMut,
    after_drain: bool,
}

impl Stream {
    fn push(&mut self, bytes: &Bytes, after_drain: bool) {
        if self.closed || bytes.is_empty() {
            return;
        }
        self.waiting_bytes += bytes.len();
        match self.waiting.back_mut() {
            Some(last) if !after_drain => last.bytes.extend_from_slice(bytes),
            _ => self.waiting.push_back(Part { bytes: bytes.as_ref().into(), after_drain }),
        }
    }

    /// What goes to the probe now: as much as the window has room for.
    fn next(&mut self) -> Option<(Bytes, bool)> {
        let room = PROBE_WINDOW_BYTES - self.sent;
        let part = self.waiting.front_mut().filter(|_| room > 0)?;
        let bytes = part.bytes.split_to(room.min(part.bytes.len())).freeze();
        let after_drain = std::mem::take(&mut part.after_drain);
        if part.bytes.is_empty() {
            self.waiting.pop_front();
        }
        self.waiting_bytes -= bytes.len();
        self.sent += bytes.len();
        Some((bytes, after_drain))
    }

    /// The probe has written so many; gives how many of them matter.
    fn wrote(&mut self, bytes: usize) -> Result<usize, Garbage> {
        if self.lost {
            return Ok(0);
        }
        self.sent = self.sent.checked_sub(bytes).ok_or(Garbage)?;
        Ok(bytes)
    }

    fn lose(&mut self) {
        *self = Self { closed: true, lost: true, ..Self::default() };
    }

    fn queued(&self) -> usize {
        self.waiting_bytes + self.sent
    }
}

impl Remote {
    /// A connection that has said hello. Nothing comes behind that before we have said something.
    pub(super) fn new(end: End, launched: Launched) -> Self {
        Self {
            end: Some(end),
            heard: BytesMut::new(),
            news: [(0, News::Launched(Box::new(launched)))].into(),
            came: 0,
            told: 0,
            reading: true,
            credit: 0,
            input: BytesMut::new(),
            input_end: Told::Never,
            output: Stream::default(),
            errors: Stream::default(),
            took: 0,
            broken: Told::Never,
            closing: false,
            ending: None,
            exited: Told::Never,
            frames: BytesMut::new(),
        }
    }

    /// The connection is at its end, and with it the probe.
    fn lose(&mut self) {
        self.end = None;
        self.frames.clear();
        self.output.lose();
        self.errors.lose();
        self.exited.happens();
    }

    fn take_in(&mut self) -> Result<(), Garbage> {
        while let Some(told) = FromProbe::take(&mut self.heard)? {
            match told {
                FromProbe::Read(bytes) => {
                    self.credit = self.credit.checked_sub(bytes.len()).ok_or(Garbage)?;
                    self.came += bytes.len() as u64;
                    self.input.extend_from_slice(&bytes);
                }
                FromProbe::ReadEof if self.input_end == Told::Never => {
                    self.came += 1;
                    self.input_end.happens();
                }
                FromProbe::Wrote(count) => self.took += self.output.wrote(count as usize)?,
                FromProbe::WriteFailed(_) => {
                    self.output.lose();
                    self.broken.happens();
                }
                FromProbe::WroteErrors(count) => {
                    self.errors.wrote(count as usize)?;
                }
                FromProbe::ErrorsFailed(_) => self.errors.lose(),
                FromProbe::Signal(signal) => {
                    let signal = i32::try_from(signal).map_err(|_| Garbage)?;
                    self.news.push_back((self.came, News::Signal(signal)));
                }
                FromProbe::Pong => self.news.push_back((self.came, News::Pong)),
                // The machine sees the one that was started when that connects.
                FromProbe::Spawned(_) | FromProbe::NotSpawned(_) => {}
                FromProbe::Hello(_) | FromProbe::ReadEof => return Err(Garbage),
            }
        }
        Ok(())
    }

    /// Makes frames of all that may go now.
    fn prepare(&mut self) {
        if self.reading && self.input_end == Told::Never {
            let room = PROBE_WINDOW_BYTES - self.credit - self.input.len();
            // Not for every byte.
            if room >= PROBE_WINDOW_BYTES / 2 {
                self.credit += room;
                ToProbe::Credit(u32::try_from(room).unwrap_or(0)).put(&mut self.frames);
            }
        }
        while let Some((bytes, _)) = self.errors.next() {
            ToProbe::Errors(bytes).put(&mut self.frames);
        }
        // A program that blocks in one write does not do the next.
        let blocked = self.errors.queued() > 0;
        while !blocked && let Some((bytes, after_drain)) = self.output.next() {
            ToProbe::Write { bytes, after_drain }.put(&mut self.frames);
        }
        if !blocked && self.output.waiting.is_empty() && std::mem::take(&mut self.closing) {
            ToProbe::CloseOutput.put(&mut self.frames);
        }
        if self.output.queued() == 0
            && self.errors.queued() == 0
            && let Some(ending) = self.ending.take()
        {
            ending.put(&mut self.frames);
        }
    }

    /// Makes frames of all that may go now, and gives the socket as much as it takes.
    fn send(&mut self, ask: &mut Ask<'_, '_>) {
        if self.end.is_some() {
            self.prepare();
        }
        while let Some(end) = self.end.as_ref().filter(|_| !self.frames.is_empty()) {
            match end.write(ask, &self.frames) {
                Some(Ok(n)) => self.frames.advance(n),
                // That it is gone is also what reading finds, behind what it said before.
                Some(Err(_)) => self.frames.clear(),
                None => break,
            }
        }
    }

    /// Ends once all before this is written.
    fn end_by(&mut self, ending: ToProbe) {
        self.output.closed = true;
        self.errors.closed = true;
        self.ending.get_or_insert(ending);
    }
}

impl Link for Remote {
    fn listen(&mut self, ask: &mut Ask<'_, '_>, _now: Micros, buffer: &mut [u8]) -> bool {
        let mut any = false;
        for _ in 0..READS_MOST {
            let Some(end) = &self.end else { break };
            match end.read(ask, buffer) {
                Some(Ok(n @ 1..)) => {
                    any = true;
                    self.heard.extend_from_slice(&buffer[..n]);
                    if self.take_in().is_err() {
                        self.lose();
                    }
                }
                Some(Ok(0) | Err(_)) => {
                    any = true;
                    self.lose();
                }
                None => break,
            }
        }
        any
    }

    fn news(&mut self) -> Option<News> {
        let (after, _) = self.news.front()?;
        if *after > self.told && self.reading {
            return None;
        }
        self.news.pop_front().map(|(_, news)| news)
    }

    fn holds(&self) -> bool {
        let input = self.reading && (!self.input.is_empty() || self.input_end == Told::NotYet);
        let told = self.took == 0 && self.broken != Told::NotYet && self.exited != Told::NotYet;
        input || !told || !self.news.is_empty()
    }

    fn read(&mut self, _ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
        if !self.reading {
            return None;
        }
        if self.input.is_empty() {
            let ended = self.input_end.tell();
            self.told += u64::from(ended);
            return ended.then_some(0);
        }
        let n = self.input.len().min(into.len());
        self.told += n as u64;
        self.input.copy_to_slice(&mut into[..n]);
        Some(n)
    }

    fn write(&mut self, ask: &mut Ask<'_, '_>, _now: Micros) -> Option<Wrote> {
        self.send(ask);
        match std::mem::take(&mut self.took) {
            0 => self.broken.tell().then_some(Wrote::Broken),
            took => Some(Wrote::Took(took)),
        }
    }

    /// When the connection is at its end, and all that came over it has been told.
    fn ended(&mut self, _now: Micros, _quiet: bool) -> Option<(Vec<Left>, Exited)> {
        let read = !self.reading || self.input.is_empty() && self.input_end != Told::NotYet;
        let wrote = self.took == 0 && self.broken != Told::NotYet;
        let all = read && wrote && self.news.is_empty();
        (all && self.exited.tell()).then_some((Vec::new(), Exited::Unknown))
    }

    fn push(&mut self, bytes: &Bytes, after_drain: bool) {
        self.output.push(bytes, after_drain);
    }

    fn write_early(&mut self, _now: Micros) {
        self.send(&mut Ask::Kernel);
    }

    fn close(&mut self) {
        self.closing |= !self.output.closed;
        self.output.closed = true;
    }

    fn set_reading(&mut self, on: bool) {
        self.reading = on;
    }

    /// At once, and without what waits to be written.
    fn kill(&mut self, _now: Micros) {
        self.output.lose();
        self.errors.lose();
        self.closing = false;
        self.ending = Some(ToProbe::Exit(KILLED));
    }

    fn tell(&mut self, order: Order) {
        let frame = match order {
            Order::Stderr(bytes) => return self.errors.push(&bytes, false),
            Order::Exit(code) => return self.end_by(ToProbe::Exit(code)),
            Order::Abort => return self.end_by(ToProbe::Abort),
            Order::CloseInput => ToProbe::CloseInput,
            Order::IgnoreTerm => ToProbe::IgnoreTerm,
            Order::Spawn { session } => ToProbe::Spawn { session },
            Order::Ping => ToProbe::Ping,
        };
        if self.end.is_some() {
            frame.put(&mut self.frames);
        }
    }

    fn queued(&self) -> usize {
        self.output.queued() + self.errors.queued() + self.frames.len()
    }

    fn is_silent(&self) -> bool {
        self.exited == Told::Known && (!self.reading || self.input.is_empty())
    }
}
