//! Every bound that a play keeps, by name: on time, and on what is written down. Nothing waits or grows beyond these.

use crate::machine::Micros;

const MILLI: Micros = 1_000;
const SECOND: Micros = 1_000_000;

/// How long a play waits, and for what. All in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How long a target may take to write its first byte before the run ends.
    pub first_byte: Micros,
    /// How long it may take for its first answer, once it has written something.
    pub start: Micros,
    /// The least that is allowed for an answer.
    pub answer_least: Micros,
    /// The most that is allowed for an answer; in between it is twenty times what the first answer took.
    pub answer_most: Micros,
    /// The most that is waited for anything but a start, whatever it is allowed: less where it was waited for before.
    pub wait_most: Micros,
    /// How long a process may take to end once our writing end is closed.
    pub exit_after_close: Micros,
    /// How long a process that closed its output may take to end before it is killed.
    pub exit_after_end: Micros,
    /// How long a killed process may take to be gone.
    pub exit_after_kill: Micros,
    /// The least that counts as silence.
    pub quiet_least: Micros,
    /// The most that silence must last; in between it is eight times the median time of an answer.
    pub quiet_most: Micros,
    /// The least that must pass without a sign of something that is due before it counts as not coming.
    pub silence_least: Micros,
    /// The most; in between it is four times what the first answer took.
    pub silence_most: Micros,
    /// The most that all of what is due may take together, however long each may.
    pub settled_most: Micros,
    /// How long we wait for silence while the target goes on talking.
    pub quiet_total: Micros,
    /// How long what a host under test is asked for may take, unless the script gives it more.
    pub outcome: Micros,
    /// How long it may take to launch a guest that it was told to launch, and to end one that it should end.
    pub launch: Micros,
    /// How much of one process is recorded, in bytes, before it is ended for it.
    pub record_bytes: u64,
    /// `false` lifts every bound but those on ending a process: for people with a debugger.
    pub deadlines: bool,
}

/// How late a tick may be before it means that we were not running.
pub const LATE_TICK: Micros = 20 * MILLI;
/// How often one wait may be re-armed because we were not running.
pub const STARVED_MOST: u8 = 3;

/// How many guests a host under test may launch in one process, before it counts as launching them without an end.
pub const LAUNCHES_MOST: usize = 256;

/// How much of one process is recorded, in bytes.
pub const RECORD_BYTES_MOST: u64 = 256 << 20;
/// How much of all processes of a run is recorded, in bytes.
pub const RUN_BYTES_MOST: u64 = 1 << 30;
/// How much a target may write during one wait, in bytes, before that counts as a flood.
pub const FLOOD_BYTES_MOST: u64 = 64 << 20;
/// How many lines it may write during one wait. Short lines take several times their length to record and to judge.
pub const FLOOD_LINES_MOST: u64 = 1 << 16;

impl Default for Budget {
    fn default() -> Self {
        Self {
            first_byte: 5 * SECOND,
            start: 30 * SECOND,
            answer_least: SECOND,
            answer_most: 5 * SECOND,
            wait_most: Micros::MAX,
            exit_after_close: 5 * SECOND,
            exit_after_end: 500 * MILLI,
            exit_after_kill: 5 * SECOND,
            quiet_least: 20 * MILLI,
            quiet_most: 250 * MILLI,
            silence_least: 250 * MILLI,
            silence_most: SECOND,
            settled_most: 60 * SECOND,
            quiet_total: 2 * SECOND,
            outcome: 20 * SECOND,
            launch: 10 * SECOND,
            record_bytes: RECORD_BYTES_MOST,
            deadlines: true,
        }
    }
}

impl Budget {
    /// How long an answer may take to a target whose first answer took `start`.
    pub fn answer(&self, start: Micros) -> Micros {
        (20 * start).clamp(self.answer_least, self.answer_most)
    }

    /// How long another process may take to its first byte where the slowest so far answered after `start`.
    pub fn another_start(&self, start: Micros) -> Micros {
        (20 * start).max(2 * self.answer_least).min(self.first_byte.max(2 * start))
    }

    /// How long silence must last for a target whose answers take `median`, and whose first one took `start`.
    pub fn quiet(&self, median: Micros, start: Micros) -> Micros {
        (8 * median).max(start / 4).clamp(self.quiet_least, self.quiet_most)
    }

    /// How long nothing must come before what is due counts as not coming, for a target whose first answer took `start`.
    pub fn silence(&self, start: Micros) -> Micros {
        (4 * start).clamp(self.silence_least, self.silence_most)
    }

    /// The moment `within` after `from`, or none when deadlines are lifted.
    pub fn deadline(&self, from: Micros, within: Micros) -> Option<Micros> {
        self.deadlines.then(|| from.saturating_add(within))
    }
}
