//! What is refused: the code, where it stands, and why, in words.

use std::borrow::Cow;

use super::contract::{Basis, Rule, member, v1};
use crate::json::{Node, quoted};

/// How much of a name of the document's is shown, in bytes.
const SHOWN_MAX: usize = 64;

/// A member of a tool that holds a value with bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// What a call is given.
    Input,
    /// What it gives back.
    Output,
    /// Hints.
    Annotations,
}

impl Field {
    /// Its name in a tool.
    pub fn name(self) -> &'static str {
        match self {
            Field::Input => member::INPUT_SCHEMA,
            Field::Output => member::OUTPUT_SCHEMA,
            Field::Annotations => member::ANNOTATIONS,
        }
    }
}

/// Why a document, arguments or structured content are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: String,
    /// The tool that it is the fault of, where it is one's and its name is one.
    pub tool: Option<String>,
    /// The member of the tool.
    pub field: Option<&'static str>,
    /// Where it stands, from the root of the document.
    pub pointer: String,
    /// Why, on one line.
    pub says: String,
    /// Who says that it is refused. The code itself was observed, whatever this is.
    pub basis: Basis,
}

/// The same before it is known whose it is.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) rule: Rule,
    pub(super) at: Node<'a>,
    pub(super) says: String,
}

impl<'a> Found<'a> {
    pub(super) fn new(rule: Rule, at: Node<'a>, says: impl Into<String>) -> Found<'a> {
        Found { rule, at, says: says.into() }
    }

    /// Says whose it is.
    pub(super) fn of(self, root: Node<'_>, tool: Option<&str>, field: Option<&'static str>) -> Refusal {
        let pointer = root.pointer_to(self.at).unwrap_or_default();
        Refusal { pointer, tool: tool.map(str::to_owned), ..without_place(self.rule, field, self.says) }
    }
}

/// What is refused as a whole.
pub(super) fn without_place(rule: Rule, field: Option<&'static str>, says: String) -> Refusal {
    let code = v1().code(rule);
    let name = code.name.as_deref().unwrap_or_else(|| v1().field_code(field.unwrap_or_default()));
    Refusal { code: name.to_owned(), tool: None, field, pointer: String::new(), says, basis: code.basis }
}

/// A name of the document's, quoted, and cut where it is long.
pub(super) fn shown(name: &str) -> String {
    let cut = &name[..name.floor_char_boundary(SHOWN_MAX)];
    let more = if cut.len() < name.len() { "…" } else { "" };
    quoted(cut) + more
}

/// The members of an object that count, in the order of their names.
pub(super) fn sorted(object: Node<'_>) -> Vec<(Cow<'_, str>, Node<'_>)> {
    let mut members: Vec<_> = object.effective_members().collect();
    if !members.is_sorted_by(|(one, _), (other, _)| one <= other) {
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    members
}

/// The first control character in `text` that people do not write with.
pub(super) fn odd_control(text: &str) -> Option<char> {
    text.chars().find(|it| it.is_control() && !matches!(it, '\t' | '\n' | '\r'))
}
