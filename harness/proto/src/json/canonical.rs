//! Canonical texts, compact and with sorted names: one for all values that are equal, and one for a published document,
//! which keeps numbers as they were written and refuses what readers take in different ways.

use super::number::Decimal;
use super::slot::{LONE_SURROGATE, SHADOWED, SlotKind};
use super::strings::write_str;
use super::{Kind, Node};
use std::borrow::Cow;
use std::fmt;

/// How numbers are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// As digits and exponent: equal numbers alike.
    ByValue,
    /// As they were written.
    AsWritten,
}

/// Why a document has no text that all readers take for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// The pointer to the value, or to the value of the member whose name it is.
    pub pointer: String,
    /// The offset, in bytes.
    pub at: usize,
    /// What is ambiguous.
    pub kind: AmbiguityKind,
}

/// What readers take in different ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AmbiguityKind {
    /// A later member of the same object has this name too.
    Duplicate(String),
    /// A string or name holds an escaped surrogate without its other half, which no UTF-8 can say.
    LoneSurrogate,
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{pointer}: ")?;
        match &self.kind {
            AmbiguityKind::Duplicate(name) => write!(f, "member {name:?} stands twice")?,
            AmbiguityKind::LoneSurrogate => f.write_str("half a surrogate pair")?,
        }
        write!(f, ", at byte {}", self.at)
    }
}

impl std::error::Error for Ambiguity {}

/// The first thing in `node` that readers take in different ways.
pub(super) fn ambiguity(node: Node<'_>) -> Option<Ambiguity> {
    let (at, slot) = node.cells().find(|(_, slot)| slot.has(LONE_SURROGATE) || slot.has(SHADOWED))?;
    let is_name = slot.kind == SlotKind::Name;
    let kind = if slot.has(LONE_SURROGATE) {
        AmbiguityKind::LoneSurrogate
    } else {
        AmbiguityKind::Duplicate(node.other(at).as_str().unwrap_or_default().into_owned())
    };
    let pointer = node.pointer_to(node.other(at + u32::from(is_name))).unwrap_or_default();
    Some(Ambiguity { pointer, at: slot.start as usize, kind })
}

/// What is still to be written.
enum Step<'a> {
    Value(Node<'a>),
    Name(Cow<'a, str>),
    Byte(u8),
}

/// Writes `node` without recursion: what it holds may be nested without bound. In the place of the nodes that begin at
/// the offsets `omitted` stands `instead`.
pub(super) fn text(node: Node<'_>, numbers: Numbers, omitted: &[usize], instead: &str) -> String {
    let mut out = Vec::new();
    let mut steps = vec![Step::Value(node)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Byte(byte) => out.push(byte),
            Step::Name(name) => {
                write_str(&mut out, &name);
                out.push(b':');
            }
            Step::Value(node) if omitted.contains(&node.offset()) => {
                out.extend_from_slice(instead.as_bytes());
            }
            Step::Value(node) => match node.kind() {
                Kind::Number if numbers == Numbers::AsWritten => out.extend_from_slice(node.raw().as_bytes()),
                Kind::Null | Kind::Bool => out.extend_from_slice(node.raw().as_bytes()),
                Kind::Number => Decimal::of(node.raw()).write_canonical(&mut out),
                Kind::String => write_str(&mut out, &node.as_str().unwrap_or_default()),
                Kind::Array => {
                    out.push(b'[');
                    let first = steps.len();
                    for element in node.elements() {
                        separate(&mut steps, first);
                        steps.push(Step::Value(element));
                    }
                    steps.push(Step::Byte(b']'));
                    steps[first..].reverse();
                }
                Kind::Object => {
                    out.push(b'{');
                    let first = steps.len();
                    let mut members: Vec<_> = node.effective_members().collect();
                    members.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                    for (name, value) in members {
                        separate(&mut steps, first);
                        steps.push(Step::Name(name));
                        steps.push(Step::Value(value));
                    }
                    steps.push(Step::Byte(b'}'));
                    steps[first..].reverse();
                }
            },
        }
    }
    // Only whole characters were written.
    String::from_utf8(out).unwrap_or_default()
}

fn separate(steps: &mut Vec<Step<'_>>, first: usize) {
    if steps.len() > first {
        steps.push(Step::Byte(b','));
    }
}
