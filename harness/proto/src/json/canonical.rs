//! The one text for all values that are equal: compact, names sorted and unique, numbers as digits and exponent.

use super::number::Decimal;
use super::strings::write_str;
use super::{Kind, Node};
use std::borrow::Cow;

/// What is still to be written.
enum Step<'a> {
    Value(Node<'a>),
    Name(Cow<'a, str>),
    Byte(u8),
}

/// Writes `node` without recursion: what it holds may be nested without bound. In the place of the nodes that begin at
/// the offsets `omitted` stands `instead`.
pub(super) fn text(node: Node<'_>, omitted: &[usize], instead: &str) -> String {
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
                out.extend_from_slice(instead.as_bytes())
            }
            Step::Value(node) => match node.kind() {
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
