//! What a play knows of the process, of the pipe to it, and of the time that it takes.

use std::collections::VecDeque;

use crate::machine::{Exited, Micros};

/// How many answer times the median is taken from.
const TIMES_MOST: usize = 64;

/// What is known of the process and the pipe to it.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own: either end may end in any order"
)]
pub(super) struct Link {
    pub(super) any_byte: bool,
    /// How much has come since the wait began.
    pub(super) bytes_since_wait: u64,
    pub(super) lines_since_wait: u64,
    pub(super) over: bool,
    pub(super) broken: bool,
    pub(super) closed: bool,
    pub(super) exited: Option<Exited>,
    pub(super) killed: bool,
    pub(super) offered: u64,
    pub(super) accepted: u64,
    pub(super) unwritten: VecDeque<Unwritten>,
    /// The first line that was no frame.
    pub(super) noise: Option<String>,
    /// It wrote a line that is longer than the limit.
    pub(super) oversize: bool,
    /// It did not end when it should have.
    pub(super) lingers: bool,
    /// The last request of ours, and what it is called.
    pub(super) asked: Option<(String, Vec<u8>)>,
    /// The request that came back as it had been sent.
    pub(super) echo: Option<String>,
    /// Since the last silence we sent what may be refused under no id.
    pub(super) loose: bool,
    pub(super) stderr_kept: usize,
    pub(super) stderr_dropped: u64,
}

pub(super) struct Unwritten {
    pub(super) ends: u64,
    pub(super) offered: Micros,
    pub(super) label: Option<String>,
    pub(super) parts: Vec<u64>,
}

/// What the target's own times allow it.
#[derive(Default)]
pub(super) struct Clock {
    pub(super) start: Option<Micros>,
    pub(super) times: VecDeque<Micros>,
}

impl Clock {
    pub(super) fn took(&mut self, took: Micros) {
        if self.times.len() == TIMES_MOST {
            self.times.pop_front();
        }
        self.times.push_back(took);
    }

    pub(super) fn median(&self) -> Micros {
        let mut times: Vec<Micros> = self.times.iter().copied().collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}
