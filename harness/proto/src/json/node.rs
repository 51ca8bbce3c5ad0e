//! One value of a tape: what was written, what it means, and what lies below it.

use super::number::Decimal;
use super::slot::{DUPLICATES, ESCAPED, FRACTION_OR_EXPONENT, LONE_SURROGATE, SHADOWED, Slot, SlotKind};
use super::{Ambiguity, Tape, VALUE_DEPTH_MAX, canonical, strings};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A value on a tape. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    tape: &'a Tape<'a>,
    at: u32,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, of any size and however written.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        })
    }
}

impl<'a> Node<'a> {
    pub(super) fn at(tape: &'a Tape<'a>, at: u32) -> Node<'a> {
        Node { tape, at }
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        match self.slot().kind {
            SlotKind::Null => Kind::Null,
            SlotKind::Bool => Kind::Bool,
            SlotKind::Number => Kind::Number,
            SlotKind::String | SlotKind::Name => Kind::String,
            SlotKind::Array => Kind::Array,
            SlotKind::Object => Kind::Object,
        }
    }

    /// The value exactly as it was written: strings with their quotes, containers whole.
    pub fn raw(self) -> &'a str {
        let slot = self.slot();
        &self.tape.text[slot.start as usize..slot.end as usize]
    }

    /// Where in the text [`Node::raw`] begins.
    pub fn offset(self) -> usize {
        self.slot().start as usize
    }

    /// `null`?
    pub fn is_null(self) -> bool {
        self.slot().kind == SlotKind::Null
    }

    /// The truth value, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        (self.slot().kind == SlotKind::Bool).then(|| self.raw() == "true")
    }

    /// What a string says, with its escapes undone; a surrogate without its other half becomes U+FFFD.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let slot = self.slot();
        if !matches!(slot.kind, SlotKind::String | SlotKind::Name) {
            return None;
        }
        let written = &self.tape.text[slot.start as usize + 1..slot.end as usize - 1];
        Some(if slot.has(ESCAPED) { strings::unescape(written) } else { Cow::Borrowed(written) })
    }

    /// The number, if it is by value an integer that fits: `1.0` is 1.
    pub fn as_i64(self) -> Option<i64> {
        self.as_integer()
    }

    /// The number, if it is by value an integer that fits: `1e2` is 100.
    pub fn as_u64(self) -> Option<u64> {
        self.as_integer()
    }

    /// The number, as near as `f64` comes. `None` if that is infinitely far off.
    pub fn as_f64(self) -> Option<f64> {
        self.is_number().then(|| self.raw().parse().ok()).flatten().filter(|value: &f64| value.is_finite())
    }

    /// Whether it is a number without a fractional part by value: `1.0`, `1e2`, `10e-1` and `-0.0` are.
    pub fn is_integer(self) -> bool {
        self.is_number() && (!self.slot().has(FRACTION_OR_EXPONENT) || Decimal::of(self.raw()).is_integer())
    }

    /// Whether it is a number written with neither a fraction nor an exponent.
    pub fn is_written_as_integer(self) -> bool {
        self.is_number() && !self.slot().has(FRACTION_OR_EXPONENT)
    }

    /// How many elements or members it has as written; 0 if it is no container.
    pub fn len(self) -> usize {
        let slot = self.slot();
        if matches!(slot.kind, SlotKind::Array | SlotKind::Object) { slot.len as usize } else { 0 }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The member of this object with that name; of several the last.
    pub fn get(self, name: &str) -> Option<Node<'a>> {
        let mut names = self.names();
        names
            .find(|at| !self.other(*at).slot().has(SHADOWED) && self.other(*at).says(name))
            .map(|at| self.other(at + 1))
    }

    /// The members of this object as written, duplicates included; none if it is no object.
    pub fn members(self) -> Members<'a> {
        Members { names: self.names() }
    }

    /// The elements of this array; none if it is no array.
    pub fn elements(self) -> Elements<'a> {
        let slot = self.slot();
        let left = if slot.kind == SlotKind::Array { slot.len } else { 0 };
        Elements { of: self, at: self.at + 1, left }
    }

    /// The first name that this object gives to more than one member.
    pub fn duplicate(self) -> Option<Cow<'a, str>> {
        if !self.slot().has(DUPLICATES) {
            return None;
        }
        let shadowed = self.names().find(|at| self.other(*at).slot().has(SHADOWED))?;
        self.other(shadowed).as_str()
    }

    /// Whether this string, or any string or name inside this container, holds an escaped surrogate without its
    /// other half.
    pub fn has_lone_surrogate(self) -> bool {
        let cells = &self.tape.slots.0[self.at as usize..self.slot().next as usize];
        self.tape.has_lone_surrogate && cells.iter().any(|slot| slot.has(LONE_SURROGATE))
    }

    /// Whether both are the same value: numbers mathematically, strings by what they say, objects without order and
    /// with the last of duplicates.
    pub fn equals(self, other: Node<'_>) -> bool {
        if self.kind() != other.kind() {
            return false;
        }
        match self.kind() {
            Kind::Null => true,
            Kind::Bool => self.raw() == other.raw(),
            Kind::Number => Decimal::of(self.raw()).equals(Decimal::of(other.raw())),
            Kind::String => self.as_str() == other.as_str(),
            Kind::Array | Kind::Object => self.raw() == other.raw() || self.canonical() == other.canonical(),
        }
    }

    /// The one text for all values that [equal](Node::equals) this one: JSON, compact, with sorted names.
    pub fn canonical(self) -> String {
        canonical::text(self, canonical::Numbers::ByValue, &[], "")
    }

    /// The same with `instead`, a JSON text, in the place of each node of `omitted`, which are nodes of the same tape.
    pub fn canonical_without(self, omitted: &[Self], instead: &str) -> String {
        let places: Vec<usize> = omitted.iter().map(|node| node.offset()).collect();
        canonical::text(self, canonical::Numbers::ByValue, &places, instead)
    }

    /// The text whose hash names a published document: JSON in UTF-8, compact, names sorted, without a final line feed.
    ///
    /// * Names are sorted by their UTF-8 bytes, which is the order of code points; by UTF-16 units, as RFC 8785 sorts
    ///   them, names beyond U+FFFF would stand before those from U+E000 on.
    /// * Numbers stay as they were written, so none is rounded: `1.0`, `1` and `1e0` give three texts, and an integer
    ///   of any length stays whole. What a peer hashes is what was published.
    /// * Strings are respelt: only `"`, `\` and control characters are escaped, by the short form where there is one.
    ///   `<`, `>`, `&`, `/`, U+007F, U+2028 and U+2029 stand as they are.
    /// * A name that stands twice in one object and half a surrogate pair are refused: readers take them in different
    ///   ways, and UTF-8 cannot say the latter at all.
    ///
    /// Any depth will do: nothing here recurses.
    pub fn published(self) -> Result<String, Ambiguity> {
        match canonical::ambiguity(self) {
            Some(ambiguity) => Err(ambiguity),
            None => Ok(canonical::text(self, canonical::Numbers::AsWritten, &[], "")),
        }
    }

    /// The first thing in here that readers take in different ways.
    pub fn ambiguity(self) -> Option<Ambiguity> {
        canonical::ambiguity(self)
    }

    /// The value that an RFC 6901 pointer leads to from here.
    pub fn pointer(self, pointer: &str) -> Option<Node<'a>> {
        let Some(tokens) = pointer.strip_prefix('/') else {
            return pointer.is_empty().then_some(self);
        };
        tokens.split('/').try_fold(self, |node, token| match node.kind() {
            Kind::Object => node.get(&token_text(token)?),
            Kind::Array => node.elements().nth(token_index(token)?),
            _ => None,
        })
    }

    /// The pointer that leads from here to `descendant`; `None` if that is not in here.
    pub fn pointer_to(self, descendant: Node<'_>) -> Option<String> {
        let inside = |node: Node<'_>| (node.at..node.slot().next).contains(&descendant.at);
        if self.tape.text.as_ptr() != descendant.tape.text.as_ptr() || !inside(self) {
            return None;
        }
        let mut pointer = String::new();
        let mut node = self;
        while node.at != descendant.at {
            if node.kind() == Kind::Array {
                let (index, element) = node.elements().enumerate().find(|(_, element)| inside(*element))?;
                pointer.push('/');
                pointer.push_str(&index.to_string());
                node = element;
            } else {
                let (name, value) = node.members().find(|(_, value)| inside(*value))?;
                push_token(&mut pointer, &name);
                node = value;
            }
        }
        Some(pointer)
    }

    /// This value and all below it, in the order of the text, each with how many containers it stands in below here.
    pub fn walk(self) -> Walk<'a> {
        Walk { tape: self.tape, at: self.at, end: self.slot().next, open: Vec::new() }
    }

    /// The value as `serde_json` has it. `None` where it cannot: nested deeper than [`VALUE_DEPTH_MAX`], or with a
    /// number beyond `f64`.
    pub fn to_value(self) -> Option<Value> {
        if self.tape.depth > VALUE_DEPTH_MAX && self.walk().any(|(depth, _)| depth > VALUE_DEPTH_MAX) {
            return None;
        }
        self.shallow_value()
    }

    pub(super) fn slot(self) -> Slot {
        self.tape.slots.0[self.at as usize]
    }

    pub(super) fn is_number(self) -> bool {
        self.slot().kind == SlotKind::Number
    }

    pub(super) fn has_duplicates(self) -> bool {
        self.slot().has(DUPLICATES)
    }

    /// The members of this object that count: of duplicates only the last.
    pub fn effective_members(self) -> EffectiveMembers<'a> {
        EffectiveMembers { names: self.names() }
    }

    /// Tells apart all values of all texts alive at once.
    pub(super) fn identity(self) -> (usize, u32) {
        (self.tape.text.as_ptr().addr(), self.at)
    }

    /// Recursion is bounded here: [`Node::to_value`] has looked at the depth.
    fn shallow_value(self) -> Option<Value> {
        Some(match self.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(self.as_bool()?),
            Kind::Number => Value::Number(self.raw().parse().ok()?),
            Kind::String => Value::String(self.as_str()?.into_owned()),
            Kind::Array => {
                self.elements().map(Node::shallow_value).collect::<Option<_>>().map(Value::Array)?
            }
            Kind::Object => {
                let members = self.effective_members();
                let members = members.map(|(name, value)| Some((name.into_owned(), value.shallow_value()?)));
                Value::Object(members.collect::<Option<_>>()?)
            }
        })
    }

    fn names(self) -> Names<'a> {
        let slot = self.slot();
        let left = if slot.kind == SlotKind::Object { slot.len } else { 0 };
        Names { of: self, at: self.at + 1, left }
    }

    /// The cells of this value and all below it, names too, each with where it is.
    pub(super) fn cells(self) -> impl Iterator<Item = (u32, Slot)> {
        (self.at..self.slot().next).map(move |at| (at, self.tape.slots.0[at as usize]))
    }

    pub(super) fn other(self, at: u32) -> Node<'a> {
        Node { tape: self.tape, at }
    }

    fn name(self) -> Cow<'a, str> {
        self.as_str().unwrap_or_default()
    }

    fn says(self, text: &str) -> bool {
        let slot = self.slot();
        if slot.has(ESCAPED) {
            self.name() == text
        } else {
            let written = slot.start as usize + 1..slot.end as usize - 1;
            written.len() == text.len() && self.tape.text[written] == *text
        }
    }

    fn as_integer<T: std::str::FromStr + TryFrom<i128>>(self) -> Option<T> {
        if !self.is_number() {
            return None;
        }
        let raw = self.raw();
        // `-0` is no `u64` for `parse`, and by value it is one.
        raw.parse().ok().or_else(|| T::try_from(Decimal::of(raw).to_integer()?).ok())
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 200;
        let raw = self.raw();
        let shown = &raw[..raw.floor_char_boundary(SHOWN_MAX)];
        f.write_str(shown)?;
        if shown.len() < raw.len() { f.write_str("…") } else { Ok(()) }
    }
}

/// The members of an object as written.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    names: Names<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.names.next()?;
        Some((self.names.of.other(at).name(), self.names.of.other(at + 1)))
    }
}

/// The members of an object that count: of duplicates only the last.
#[derive(Clone, Debug)]
pub struct EffectiveMembers<'a> {
    names: Names<'a>,
}

impl<'a> Iterator for EffectiveMembers<'a> {
    type Item = (Cow<'a, str>, Node<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.names.next()?;
            let name = self.names.of.other(at);
            if !name.slot().has(SHADOWED) {
                return Some((name.name(), self.names.of.other(at + 1)));
            }
        }
    }
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    of: Node<'a>,
    at: u32,
    left: u32,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = self.of.other(self.at);
        self.at = element.slot().next;
        Some(element)
    }
}

/// A value and all below it.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    tape: &'a Tape<'a>,
    at: u32,
    end: u32,
    /// Where the containers end that the next value may stand in, the innermost last.
    open: Vec<u32>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = (u32, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        while self.open.pop_if(|end| *end <= self.at).is_some() {}
        let mut node = Node { tape: self.tape, at: self.at };
        if node.slot().kind == SlotKind::Name {
            node.at += 1;
        }
        self.at = node.at + 1;
        let depth = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        if node.slot().next > self.at {
            self.open.push(node.slot().next);
        }
        Some((depth, node))
    }
}

/// The cells of an object's names.
#[derive(Clone, Debug)]
struct Names<'a> {
    of: Node<'a>,
    at: u32,
    left: u32,
}

impl Iterator for Names<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at = self.of.other(at + 1).slot().next;
        Some(at)
    }
}

/// What a reference token stands for; `None` if it is not well formed.
fn token_text(token: &str) -> Option<Cow<'_, str>> {
    if !token.contains('~') {
        return Some(Cow::Borrowed(token));
    }
    let well_formed = token.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    well_formed.then(|| Cow::Owned(token.replace("~1", "/").replace("~0", "~")))
}

/// The index that a reference token names: digits without a leading zero.
fn token_index(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    plain.then(|| token.parse().ok()).flatten()
}

/// Appends a name to a pointer.
fn push_token(pointer: &mut String, name: &str) {
    pointer.push('/');
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}
