//! The cells of a tape: one per value and one per member name, in the order of the text.

/// The memory of a tape, to be used again by the next.
#[derive(Debug, Default)]
pub struct Slots(pub(super) Vec<Slot>);

impl Slots {
    /// The one cell of a text that is a string of well-formed characters.
    pub(super) fn of_string(text: &str) -> Slots {
        let flags = if text.contains('\\') { ESCAPED } else { 0 };
        Slots(vec![Slot {
            start: 0,
            end: offset(text.len()),
            next: 1,
            len: 0,
            kind: SlotKind::String,
            flags,
        }])
    }
}

/// One value or member name. A member is two cells: its name, then its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Where the written form begins, quotes and brackets included.
    pub(super) start: u32,
    /// Where the written form ends.
    pub(super) end: u32,
    /// The cell after this one and all that it contains. In a container that is still open: its parent.
    pub(super) next: u32,
    /// How many elements or members as written; in a name, its [fingerprint](super::strings::Word).
    pub(super) len: u32,
    /// What it is.
    pub(super) kind: SlotKind,
    /// [`ESCAPED`] and so on.
    pub(super) flags: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    Name,
}

/// A string or name: holds at least one escape.
pub(super) const ESCAPED: u8 = 1;
/// A string or name: holds a surrogate escape without its other half.
pub(super) const LONE_SURROGATE: u8 = 1 << 1;
/// A number: written with a fraction or an exponent.
pub(super) const FRACTION_OR_EXPONENT: u8 = 1 << 2;
/// A name: a later member of the same object has it too.
pub(super) const SHADOWED: u8 = 1 << 3;
/// An object: some of its names are shadowed.
pub(super) const DUPLICATES: u8 = 1 << 4;

impl Slot {
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// An offset into the text or the tape. Neither is longer than `u32` can say: longer texts are refused, and every cell
/// has at least one byte of the text for itself.
#[expect(clippy::cast_possible_truncation, reason = "the text is at most u32::MAX bytes long")]
#[inline]
pub(super) fn offset(at: usize) -> u32 {
    at as u32
}
