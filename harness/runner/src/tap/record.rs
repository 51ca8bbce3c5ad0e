//! What was overheard, on its way into a file: a bounded queue, and a thread that empties it.
//!
//! Whoever relays only copies into memory and never waits for a disk. When the queue is full, because the disk is slow,
//! full or stuck, what comes is counted instead, and stands in the recording as `lost` where it would have stood.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use sidecert_proto::{
    contract::Side,
    machine::{Exited, Micros},
    scribe::Scribe,
    transcript::{End, Kind},
};

use crate::{
    budget::{
        LISTEN_EVERY, OVERHEARD_BYTES_MAX, OVERHEARD_BYTES_SOON, OVERHEARD_EACH_BYTES, RECORD_BYTES,
        RECORDED_WITHIN, RETRY_EVERY,
    },
    links::micros,
};

/// The name of the process in a transcript of this kind.
const PROCESS: &str = "tap";

/// Where the recording goes.
pub struct Record {
    /// The file. It must not exist, but for a pipe with a name or a device.
    pub path: PathBuf,
    /// The longest frame that is recorded, in bytes, LF not counted.
    pub line_bytes_max: usize,
    /// Told once, from another thread, when the file cannot be written; the relay goes on.
    pub told: Box<dyn Fn(&io::Error) + Send>,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What came of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// It has its footer.
    pub whole: bool,
    /// How many bytes were relayed and not recorded, as far as the recording goes on after them.
    pub lost: u64,
}

/// Something that was overheard, beside bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    /// So many bytes.
    Bytes(usize),
    /// This many bytes came, and there was no room for them.
    Lost(u64),
    /// That side writes no more.
    Closed,
    /// Nobody reads that side any more.
    Broken,
    /// The guest ended.
    Exited(Exited),
}

#[derive(Debug)]
pub(super) struct Overheard {
    clock: Instant,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Waiting,
    /// Of the host and of the guest: what has not been told as lost yet.
    lost: [u64; 2],
    /// The recorder waits for anything at all.
    idle: bool,
    /// The guest is gone: nothing more comes.
    over: bool,
    /// Nothing is recorded any more, if this is not the footer's doing.
    done: Option<Recorded>,
}

/// What waits to be recorded.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    heard: Vec<(Micros, Side, Heard)>,
}

impl Waiting {
    /// What it counts for.
    fn size(&self) -> usize {
        self.bytes.len() + self.heard.len() * OVERHEARD_EACH_BYTES
    }
}

impl Overheard {
    /// The clock starts now.
    pub(super) fn begin() -> Self {
        Self { clock: Instant::now(), queue: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes in bytes that are about to be relayed; `true` when the recorder is to be woken for them.
    pub(super) fn bytes(&self, from: Side, bytes: &[u8]) -> bool {
        let mut queue = self.lock();
        // Under the lock, so that time goes on in the order of the recording.
        let t = micros(self.clock.elapsed());
        if queue.over || queue.done.is_some() {
            return false;
        }
        let before = queue.waiting.size();
        let lost = &mut queue.lost[place(from)];
        if before + bytes.len() > OVERHEARD_BYTES_MAX {
            *lost += bytes.len() as u64;
            return false;
        }
        let lost = std::mem::take(lost);
        if lost > 0 {
            queue.waiting.heard.push((t, from, Heard::Lost(lost)));
        }
        queue.waiting.bytes.extend_from_slice(bytes);
        queue.waiting.heard.push((t, from, Heard::Bytes(bytes.len())));
        let soon = before < OVERHEARD_BYTES_SOON && queue.waiting.size() >= OVERHEARD_BYTES_SOON;
        std::mem::take(&mut queue.idle) || soon
    }

    /// Takes in anything else. There are few of these, so there is always room. Nothing comes after the guest's end.
    pub(super) fn push(&self, from: Side, heard: Heard) {
        let mut queue = self.lock();
        let t = micros(self.clock.elapsed());
        if queue.over {
            return;
        }
        queue.over = matches!(heard, Heard::Exited(_));
        queue.tell_lost(t, from);
        queue.waiting.heard.push((t, from, heard));
        queue.idle = false;
        drop(queue);
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Ends the recording, and waits for that as long as [`RECORDED_WITHIN`] says.
    pub(super) fn end(&self, exited: Exited) -> Recorded {
        self.push(Side::Guest, Heard::Exited(exited));
        let waited =
            self.changed.wait_timeout_while(self.lock(), RECORDED_WITHIN, |queue| queue.done.is_none());
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.done.unwrap_or(Recorded { whole: false, lost: 0 })
    }

    /// Is the recorder, until everything is recorded or nothing can be.
    pub(super) fn record(&self, record: Record) {
        let told = record.told;
        let recorded = match create(&record.path) {
            Ok(file) => self.transcribe(Out { file, told, complained: false }, record.line_bytes_max),
            Err(error) => {
                told(&error);
                Recorded { whole: false, lost: 0 }
            }
        };
        let mut queue = self.lock();
        queue.done = Some(recorded);
        queue.waiting = Waiting::default();
        self.wake();
    }

    fn transcribe(&self, mut out: Out, line_bytes_max: usize) -> Recorded {
        let mut scribe = Scribe::new(PROCESS, line_bytes_max);
        let mut taken = Waiting::default();
        let mut recorded = Recorded { whole: false, lost: 0 };
        loop {
            let over = self.take(&mut taken);
            let mut rest = taken.bytes.as_slice();
            for &(t, from, heard) in &taken.heard {
                match heard {
                    Heard::Bytes(count) => {
                        let (bytes, after) = rest.split_at(count);
                        scribe.heard(t, from, bytes);
                        rest = after;
                    }
                    Heard::Lost(bytes) => {
                        recorded.lost += bytes;
                        scribe.missed(t, from, bytes);
                    }
                    Heard::Closed => scribe.closed(t, from),
                    // That the host reads no more is no event: whether the guest minds is what it does next.
                    Heard::Broken if from == Side::Host => scribe.happened(t, Kind::Broken),
                    Heard::Broken => {}
                    Heard::Exited(exited) => scribe.exited(t, exited),
                }
                if scribe.text().len() >= RECORD_BYTES && !out.write(self, scribe.text()) {
                    return recorded;
                }
            }
            if over {
                scribe.end(End::Done);
            }
            if !out.write(self, scribe.text()) {
                return recorded;
            }
            if over {
                return Recorded { whole: true, ..recorded };
            }
        }
    }

    /// Swaps what waits for `taken`, when there is something and it was not long ago that there was; `true` when nothing
    /// more comes.
    fn take(&self, taken: &mut Waiting) -> bool {
        taken.bytes.clear();
        taken.heard.clear();
        // Nobody is woken for every frame: what comes within a moment is recorded together.
        let pause = |queue: &mut Queue| !queue.over && queue.waiting.size() < OVERHEARD_BYTES_SOON;
        let paused = self.changed.wait_timeout_while(self.lock(), LISTEN_EVERY, pause);
        let (mut queue, _) = paused.unwrap_or_else(PoisonError::into_inner);
        while queue.waiting.heard.is_empty() && !queue.over {
            queue.idle = true;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.idle = false;
        std::mem::swap(&mut queue.waiting, taken);
        queue.over
    }

    /// Waits before a full disk is tried again; `false` when the guest is gone.
    fn pause(&self) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), RETRY_EVERY, |queue| !queue.over);
        !waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn tell_lost(&mut self, t: Micros, from: Side) {
        let lost = std::mem::take(&mut self.lost[place(from)]);
        if lost > 0 {
            self.waiting.heard.push((t, from, Heard::Lost(lost)));
        }
    }
}

fn place(side: Side) -> usize {
    match side {
        Side::Host => 0,
        Side::Guest => 1,
    }
}

/// The file.
struct Out {
    file: File,
    told: Box<dyn Fn(&io::Error) + Send>,
    complained: bool,
}

impl Out {
    /// Writes all of `text` and takes it away; `false` when that will never be possible. A disk that is full is waited
    /// for.
    fn write(&mut self, overheard: &Overheard, text: &mut Vec<u8>) -> bool {
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.complained, true) {
                        (self.told)(&error);
                    }
                    let full = matches!(
                        error.kind(),
                        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::WouldBlock
                    );
                    if !(full && overheard.pause()) {
                        return false;
                    }
                }
            }
        }
        text.clear();
        true
    }
}

/// Evidence is its owner's, and nothing is overwritten. A pipe with a name waits here for its reader.
fn create(path: &Path) -> io::Result<File> {
    let created = File::options().write(true).create_new(true).mode(0o600).open(path);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let kind = path.metadata().map_or(None, |data| Some(data.file_type()));
            match kind {
                Some(kind) if kind.is_fifo() || kind.is_char_device() => {
                    File::options().write(true).open(path)
                }
                _ => Err(error),
            }
        }
        created => created,
    }
}
