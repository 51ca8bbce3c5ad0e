//! The reference host of the Reasonix extension protocol: a pure machine that does what the specification says.
//!
//! Link 0 is its own input and output, on which it speaks the shim of `docs/host-shim.md`; every plugin that it starts
//! has a link of its own. It follows the published text and the schema, and what the released implementation was seen
//! to do where both are silent. [`Manners`] has every decision that can be taken otherwise.
//!
//! ```text
//! shim  asks → turn, start, ui …  what the host does, as tasks
//!                 hooks           each step through its point: chain, owner, event
//!                 streams         answers of models
//!       connection, frames        one process: calls, envelopes, lines
//! core                            the state, and how tasks wait
//! ```

mod connection;
mod content;
mod core;
mod frames;
mod hooks;
mod manifest;
mod manners;
mod providers;
mod redact;
mod session;
mod shim;
mod start;
mod streams;
mod strict;
mod turn;
mod ui;

use std::rc::Rc;

use sidecert_proto::contract::Contract;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_proto::wire::{Deframer, Line};

use self::core::{Core, Shared, Task};
pub use manners::{Check, Content, Ends, Frames, Hooks, Manners, Plugins, Redacts, Starts, Streams, Ui};

/// The longest line on link 0, in bytes: one that carries the longest content, escaped.
const SHIM_LINE_BYTES: usize = 64 << 20;

/// The reference host.
pub struct ReferenceHost<'c> {
    core: Shared<'c>,
    tasks: Vec<Task<'c>>,
    asks: Deframer,
}

impl<'c> ReferenceHost<'c> {
    /// A host of this contract that behaves so.
    pub fn new(contract: &'c Contract, manners: Manners) -> Self {
        let core = Rc::new(Core::new(contract, manners));
        Self { core, tasks: Vec::new(), asks: Deframer::new(SHIM_LINE_BYTES) }
    }
}

impl std::fmt::Debug for ReferenceHost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReferenceHost").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Machine for ReferenceHost<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        self.core.now.set(now);
        match (link, input) {
            (0, Input::Bytes(chunk)) => {
                let mut lines = self.asks.push(chunk);
                while let Some(line) = lines.next() {
                    if let Line::Whole(line) = line {
                        shim::heard(&self.core, line);
                    }
                }
            }
            (0, Input::Eof | Input::Interrupted | Input::Broken) => shim::over(&self.core),
            (0, _) => {}
            (link, input) => frames::happened(&self.core, link, &input),
        }
        self.core.settle(&mut self.tasks);
    }

    fn poll(&mut self, _: Micros) -> Option<Action> {
        self.core.next_action()
    }

    fn deadline(&self) -> Option<Micros> {
        self.core.wakes_at()
    }
}
