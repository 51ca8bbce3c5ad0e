//! What a value weighs when it is read and written again: compact, of duplicates the last, escapes only where they must
//! be, and numbers as 64 bits hold them.

use super::Node;
use super::slot::{ESCAPED, FRACTION_OR_EXPONENT, SHADOWED, Slot, SlotKind};
use super::strings;
use serde_json::Number;

/// The size of a value in several ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// How many bytes its compact form has.
    pub bytes: u64,
    /// How many values there are, itself and all below it.
    pub nodes: u64,
    /// How many containers the deepest value stands in: 0 for a scalar and for `[]`.
    pub depth: u32,
    /// How many bytes the longest string says.
    pub string_bytes_max: u64,
    /// How many bytes the longest member name says.
    pub name_bytes_max: u64,
    /// Whether a member name holds a control character, U+007F to U+009F included.
    pub name_has_control: bool,
}

impl Node<'_> {
    /// Weighs this value, and stops where it has more bytes than these: then the rest is not counted.
    ///
    /// An integer within `i64` or `u64` is kept; what is larger, `-0`, and what is written with a fraction or an exponent
    /// is written as the nearest `f64`.
    pub fn weight(self, bytes_max: u64) -> Weight {
        let mut weight = Weight::default();
        // Where the containers end that the next value stands in.
        let mut open: Vec<u32> = Vec::new();
        let mut past = 0;
        for (at, slot) in self.cells() {
            if at < past {
                continue;
            }
            if weight.bytes > bytes_max {
                break;
            }
            while open.pop_if(|end| *end <= at).is_some() {}
            if slot.kind == SlotKind::Name {
                if slot.has(SHADOWED) {
                    past = self.other(at + 1).slot().next;
                } else {
                    weight.name(self.other(at), slot);
                }
                continue;
            }
            weight.nodes += 1;
            weight.depth = weight.depth.max(u32::try_from(open.len()).unwrap_or(u32::MAX));
            match slot.kind {
                SlotKind::Array => weight.bytes += 2 + u64::from(slot.len.saturating_sub(1)),
                // Its names count the comma behind each member, and there is none behind the last.
                SlotKind::Object => weight.bytes += if slot.len == 0 { 2 } else { 1 },
                SlotKind::String => {
                    let (says, written) = lengths(self.other(at), slot);
                    weight.bytes += written;
                    weight.string_bytes_max = weight.string_bytes_max.max(says);
                }
                SlotKind::Number => weight.bytes += number(self.other(at).raw(), slot),
                SlotKind::Null | SlotKind::Bool | SlotKind::Name => {
                    weight.bytes += u64::from(slot.end - slot.start);
                }
            }
            if slot.next > at + 1 {
                open.push(slot.next);
            }
        }
        weight
    }
}

impl Weight {
    fn name(&mut self, name: Node<'_>, slot: Slot) {
        let (says, written) = lengths(name, slot);
        // Its colon, and a comma.
        self.bytes += written + 2;
        self.name_bytes_max = self.name_bytes_max.max(says);
        // U+0080 to U+009F begin with C2; what is below a space is written escaped.
        let raw = name.raw();
        if slot.has(ESCAPED) || raw.bytes().any(|byte| matches!(byte, 0x7F | 0xC2)) {
            self.name_has_control |= name.as_str().is_some_and(|text| text.chars().any(char::is_control));
        }
    }
}

/// How many bytes a string says, and how many it has when it is written again.
fn lengths(node: Node<'_>, slot: Slot) -> (u64, u64) {
    let written = u64::from(slot.end - slot.start);
    if !slot.has(ESCAPED) {
        return (written - 2, written);
    }
    let raw = node.raw();
    let text = strings::unescape(&raw[1..raw.len() - 1]);
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0A | 0x0C | 0x0D => 1,
        0..=0x1F => 5,
        _ => 0,
    });
    let says = text.len() as u64;
    (says, says + 2 + escapes.sum::<u64>())
}

fn number(raw: &str, slot: Slot) -> u64 {
    let is_float = slot.has(FRACTION_OR_EXPONENT)
        || raw == "-0"
        || (raw.len() > 18 && raw.parse::<u64>().is_err() && raw.parse::<i64>().is_err());
    let float = if is_float { raw.parse().ok().and_then(Number::from_f64) } else { None };
    float.map_or(raw.len(), |float| float.to_string().len()) as u64
}
