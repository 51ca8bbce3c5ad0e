//! One JSON text as a flat tape of byte ranges: what was *written*, not what a parser made of it.
//!
//! This is the only reader of frames, recordings, manifests and tool schemas. Scanning is one pass without recursion,
//! linear in the text whatever it holds, and keeps what other readers forget: duplicate members, number lexemes,
//! depth, lone surrogates, and why a text is no JSON. A DTO is validated on the tape itself ([`TapeJson`]).

mod canonical;
mod fault;
mod measure;
mod node;
mod number;
mod scan;
mod slot;
mod strings;
mod validate;

pub use canonical::{Ambiguity, AmbiguityKind};
pub use fault::{Fault, FaultKind};
pub use measure::Weight;
pub use node::{EffectiveMembers, Elements, Kind, Members, Node, Walk};
pub use slot::Slots;
pub(crate) use strings::origins;
pub use strings::{quoted, write_str};
pub use validate::{ArrayView, ObjectView, TapeJson, WrittenNumber};

/// The deepest value that [`Node::to_value`] takes out of a tape: what `serde_json` reads by default.
pub const VALUE_DEPTH_MAX: u32 = 127;

/// A scanned JSON text.
#[derive(Debug)]
pub struct Tape<'t> {
    text: &'t str,
    slots: Slots,
    depth: u32,
    has_duplicates: bool,
    has_lone_surrogate: bool,
}

impl<'t> Tape<'t> {
    /// Scans `text`, which must hold exactly one JSON value, with or without white space around it.
    pub fn scan(text: &'t [u8]) -> Result<Tape<'t>, Fault> {
        Tape::scan_in(text, Slots::default()).map_err(|(fault, _)| fault)
    }

    /// Scans `text` into the memory of an earlier tape, which a fault gives back.
    pub fn scan_in(text: &'t [u8], spare: Slots) -> Result<Tape<'t>, (Fault, Slots)> {
        scan::scan(text, spare)
    }

    /// Gives up the tape but keeps its memory for the next one.
    pub fn into_spare(self) -> Slots {
        self.slots
    }

    /// The value that the text holds.
    pub fn root(&self) -> Node<'_> {
        Node::at(self, 0)
    }

    /// How many containers the most deeply nested value stands in: 0 for a scalar, 1 for `[]`.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether some object holds two members whose names are equal once unescaped.
    pub fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }

    /// Whether some string or member name holds an escaped surrogate without its other half.
    pub fn has_lone_surrogate(&self) -> bool {
        self.has_lone_surrogate
    }

    /// The scanned text, with the white space around the value.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The tape of a text that is one JSON string.
    fn of_string(text: &'t str) -> Tape<'t> {
        let slots = Slots::of_string(text);
        Tape { text, slots, depth: 0, has_duplicates: false, has_lone_surrogate: false }
    }
}
