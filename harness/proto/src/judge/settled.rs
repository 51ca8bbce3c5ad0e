//! Whether all is over that a host was asked for, as its driver says and fences prove, and nothing of ours came since.
//!
//! What the host writes to a guest then, and not in answer to it, came too late for anybody to know what caused it: its
//! shim says that something is over before it has handed on all of it, or the host does more by itself.

use super::Framed;
use crate::contract::Side;
use crate::transcript::{Kind, Told};

/// What is under way in a process.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// How many asks have no outcome yet.
    open: u32,
    settled: bool,
}

impl Settled {
    /// Takes in anything but a frame.
    pub(super) fn event(&mut self, kind: &Kind<'_>) {
        match kind {
            Kind::Told { what: Told::Ask, .. } => {
                self.open += 1;
                self.settled = false;
            }
            Kind::Told { what: Told::Outcome, .. } => self.open = self.open.saturating_sub(1),
            Kind::Told { what: Told::Settled, .. } => self.settled = self.open == 0,
            // What a guest does, or what becomes of it, may make the host write to another one.
            Kind::Told { what: Told::Did | Told::Launched | Told::Gone | Told::Signal, .. }
            | Kind::Closed { .. }
            | Kind::Exited(_)
            | Kind::Killed
            | Kind::Begin { .. } => self.settled = false,
            _ => {}
        }
    }

    /// Takes in a frame: whether it is one of the host's that is too late.
    pub(super) fn frame(&mut self, frame: &Framed<'_, '_>) -> bool {
        // One of a guest's may cause others, so that nothing is known from there on.
        self.settled &= frame.from == Side::Host;
        self.settled && frame.root.get("method").is_some()
    }
}
