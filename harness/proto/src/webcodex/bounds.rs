//! The bounds of any value: how large it is when it is written again, how deep, of how many values, with which names.
//!
//! Size goes first. Of the rest, what stands first counts, names in their order; that walk is only taken by values that
//! have something to be found, and are small.

use super::contract::{Bounds, Rule};
use super::refusal::{Found, shown, sorted};
use crate::json::{Kind, Node};

/// The bounds of one kind of value.
pub(super) struct Limits<'b> {
    pub(super) bytes: u64,
    pub(super) of: &'b Bounds,
    /// What is broken by a value that is too large.
    pub(super) rule: Rule,
    /// What is broken by a name that is too long, or has control characters.
    pub(super) name_rule: Rule,
}

impl Limits<'_> {
    /// Finds the first that is not kept.
    pub(super) fn hold<'a>(&self, root: Node<'a>) -> Result<(), Found<'a>> {
        let weight = root.weight(self.bytes);
        if weight.bytes > self.bytes {
            let says =
                format!("it has more than {} bytes when it is written without white space", self.bytes);
            return Err(Found::new(self.rule, root, says));
        }
        let kept = u64::from(weight.depth) <= self.of.depth
            && weight.nodes <= self.of.nodes
            && weight.string_bytes_max <= self.of.string_bytes
            && weight.name_bytes_max <= self.of.member_name_bytes
            && !weight.name_has_control;
        if kept { Ok(()) } else { self.first(root, 0, &mut 0) }
    }

    /// No deeper than the bound on depth.
    fn first<'a>(&self, node: Node<'a>, depth: u64, nodes: &mut u64) -> Result<(), Found<'a>> {
        *nodes += 1;
        let over = |says: String| Err(Found::new(self.rule, node, says));
        if depth > self.of.depth {
            return over(format!("it stands in more than {} objects and arrays", self.of.depth));
        }
        if *nodes > self.of.nodes {
            return over(format!("there are more than {} values", self.of.nodes));
        }
        match node.kind() {
            Kind::String if node.as_str().is_some_and(|it| it.len() as u64 > self.of.string_bytes) => {
                over(format!("a string has more than {} bytes", self.of.string_bytes))
            }
            Kind::Array => node.elements().try_for_each(|element| self.first(element, depth + 1, nodes)),
            Kind::Object => sorted(node).into_iter().try_for_each(|(name, value)| {
                if name.len() as u64 > self.of.member_name_bytes {
                    let says = format!(
                        "the name {} has more than {} bytes",
                        shown(&name),
                        self.of.member_name_bytes
                    );
                    return Err(Found::new(self.name_rule, node, says));
                }
                if name.chars().any(char::is_control) {
                    let says = format!("the name {} has a control character", shown(&name));
                    return Err(Found::new(self.name_rule, node, says));
                }
                self.first(value, depth + 1, nodes)
            }),
            _ => Ok(()),
        }
    }
}
