//! Whether all is over that a host was asked for, as its driver says and fences prove, and nothing of ours came since.
//!
//! What the host writes to a guest then, and not in answer to it, came too late for anybody to know what caused it: its
//! shim says that something is over before it has handed on all of it, or the host does more by itself.

use std::collections::BTreeSet;

use super::Framed;
use crate::contract::Side;
use crate::machine::LinkId;
use crate::play::FENCE;
use crate::transcript::{Kind, Told};

/// What is under way in a process.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// How many asks have no outcome yet.
    open: u32,
    /// The links on which a fence stands behind all outcomes. One that was on its way before tells nothing of what the
    /// last of them caused, and what a guest does not read proves nothing.
    fenced: BTreeSet<LinkId>,
    /// The links of which all is here.
    proven: BTreeSet<LinkId>,
}

impl Settled {
    /// Takes in anything but a frame.
    pub(super) fn event(&mut self, kind: &Kind<'_>) {
        match kind {
            Kind::Told { what: Told::Ask, .. } => {
                self.open += 1;
                self.fenced.clear();
                self.proven.clear();
            }
            Kind::Told { what: Told::Outcome, .. } => self.open = self.open.saturating_sub(1),
            Kind::Told { what: Told::Settled, .. } => self.proven = std::mem::take(&mut self.fenced),
            // What a guest does, or what becomes of it, may make the host write to another one.
            Kind::Told { what: Told::Did | Told::Launched | Told::Gone | Told::Signal, .. }
            | Kind::Closed { .. }
            | Kind::Exited(_)
            | Kind::Killed
            | Kind::Begin { .. } => self.proven.clear(),
            _ => {}
        }
    }

    /// Takes in a frame: whether it is one of the host's that is too late.
    pub(super) fn frame(&mut self, link: LinkId, frame: &Framed<'_, '_>) -> bool {
        if frame.from == Side::Guest {
            if frame.label == Some(FENCE) && self.open == 0 {
                self.fenced.insert(link);
            }
            // It may cause others, so that nothing is known from there on.
            self.proven.clear();
        }
        self.proven.contains(&link) && frame.root.get("method").is_some()
    }
}
