//! What things are called in a recording.

use super::{End, Kind, Told, Wait};
use crate::contract::Side;

pub(super) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Host => "host",
        Side::Guest => "guest",
    }
}

impl Told {
    pub(super) const ALL: [Self; 13] = [
        Self::Shim,
        Self::Ask,
        Self::Outcome,
        Self::Shown,
        Self::Found,
        Self::Other,
        Self::Settled,
        Self::Beyond,
        Self::Launched,
        Self::Did,
        Self::Signal,
        Self::Alive,
        Self::Gone,
    ];

    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shim => "shim",
            Self::Ask => "ask",
            Self::Outcome => "outcome",
            Self::Shown => "shown",
            Self::Found => "found",
            Self::Other => "other",
            Self::Settled => "settled",
            Self::Beyond => "beyond",
            Self::Launched => "launched",
            Self::Did => "did",
            Self::Signal => "signal",
            Self::Alive => "alive",
            Self::Gone => "gone",
        }
    }
}

impl Wait {
    pub(super) const ALL: [Self; 8] = [
        Self::Start,
        Self::Answer,
        Self::Fence,
        Self::Quiet,
        Self::Exit,
        Self::Outcome,
        Self::Launch,
        Self::Gone,
    ];

    /// Its name in a recording and in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Answer => "answer",
            Self::Fence => "fence",
            Self::Quiet => "quiet",
            Self::Exit => "exit",
            Self::Outcome => "outcome",
            Self::Launch => "launch",
            Self::Gone => "gone",
        }
    }
}

impl End {
    pub(super) const ALL: [Self; 3] = [Self::Done, Self::Cut, Self::Interrupted];

    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cut => "cut",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Kind<'_> {
    /// The name of the event in a recording; a frame has none of its own.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Frame(_) | Self::Unknown(_) => "frame",
            Self::Told { what, .. } => what.name(),
            Self::Oversize { .. } => "oversize",
            Self::Tail { .. } => "tail",
            Self::Wrote { .. } => "wrote",
            Self::Blocked { .. } => "blocked",
            Self::Lost { .. } => "lost",
            Self::Broken => "broken",
            Self::Closed { .. } => "closed",
            Self::Exited(_) => "exited",
            Self::Killed => "killed",
            Self::Left(_) => "left",
            Self::Stderr { .. } => "stderr",
            Self::Waited { .. } => "waited",
            Self::TimedOut { .. } => "timed-out",
            Self::Starved { .. } => "starved",
            Self::Begin { .. } | Self::Ended { .. } => "script",
        }
    }
}
