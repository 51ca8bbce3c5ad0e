//! The tape as a representation of JSON that `jsonschema` validates directly.

use super::number::Decimal;
use super::{EffectiveMembers, Elements, Kind, Node, Tape, write_str};
use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node as ValidatedNode, NodeIdentity, Object};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// Names the representation for `jsonschema::options_for`.
#[derive(Clone, Copy, Debug)]
pub struct TapeJson;

impl Json for TapeJson {
    type Node<'a> = Node<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = Vec<u8>;

    /// A lookup is itself a pass over the members, so one pass is never dearer than several lookups.
    const KEYS_PER_LOOKUP: usize = 1 << 20;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(buffer: &mut Vec<u8>, string: &str, f: impl FnOnce(Node<'_>) -> T) -> T {
        buffer.clear();
        write_str(buffer, string);
        f(Tape::of_string(str::from_utf8(buffer).unwrap_or(r#""""#)).root())
    }
}

impl<'a> ValidatedNode<'a, TapeJson> for Node<'a> {
    type Object = ObjectView<'a>;
    type Array = ArrayView<'a>;
    type Number = WrittenNumber<'a>;

    fn as_object(&self) -> Option<ObjectView<'a>> {
        (self.kind() == Kind::Object).then_some(ObjectView(*self))
    }

    fn as_array(&self) -> Option<ArrayView<'a>> {
        (self.kind() == Kind::Array).then_some(ArrayView(*self))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.as_str()
    }

    fn as_number(&self) -> Option<WrittenNumber<'a>> {
        self.is_number().then_some(WrittenNumber(*self))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.as_bool()
    }

    fn is_null(&self) -> bool {
        Node::is_null(*self)
    }

    fn is_number(&self) -> bool {
        Node::is_number(*self)
    }

    fn json_type(&self) -> JsonType {
        match self.kind() {
            Kind::Null => JsonType::Null,
            Kind::Bool => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String => JsonType::String,
            Kind::Array => JsonType::Array,
            Kind::Object => JsonType::Object,
        }
    }

    fn string_length_within(&self, min: u64, max: u64) -> Option<bool> {
        let text = self.as_str()?;
        // A character takes one to four bytes, which mostly decides without counting.
        let bytes = text.len() as u64;
        let fewest = bytes.div_ceil(4);
        Some(if bytes < min || fewest > max {
            false
        } else if min <= fewest && bytes <= max {
            true
        } else {
            (min..=max).contains(&(text.chars().count() as u64))
        })
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // As deep as the contract's value is, whatever a target sent.
        match expected {
            Value::Null => Node::is_null(*self),
            Value::Bool(expected) => self.as_bool() == Some(*expected),
            Value::Number(expected) => {
                Node::is_number(*self) && Decimal::of(self.raw()).equals(Decimal::of(&expected.to_string()))
            }
            Value::String(expected) => self.as_str().is_some_and(|text| text == *expected),
            Value::Array(expected) => {
                self.kind() == Kind::Array
                    && self.len() == expected.len()
                    && self.elements().zip(expected).all(|(element, expected)| element.equals_value(expected))
            }
            Value::Object(expected) => {
                self.kind() == Kind::Object
                    && ObjectView(*self).len() == expected.len()
                    && self.effective_members().all(|(name, value)| {
                        expected.get(&*name).is_some_and(|expected| value.equals_value(expected))
                    })
            }
        }
    }

    /// Asked for only to report a value that was refused, which `schema` words from the tape instead; so a value that
    /// `serde_json` cannot hold may be `null` here.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(Node::to_value(*self).unwrap_or_default())
    }

    fn identity(&self) -> Option<NodeIdentity> {
        let (tape, at) = Node::identity(*self);
        Some(NodeIdentity::tagged(tape, at))
    }
}

/// An object as the validator sees it: of duplicate members only the last is there.
#[derive(Clone, Copy, Debug)]
pub struct ObjectView<'a>(Node<'a>);

impl<'a> Object<'a, TapeJson> for ObjectView<'a> {
    type Node = Node<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = EffectiveMembers<'a>;

    fn len(&self) -> usize {
        if self.0.has_duplicates() { self.0.effective_members().count() } else { self.0.len() }
    }

    fn get(&self, key: &Box<str>) -> Option<Node<'a>> {
        self.0.get(key)
    }

    fn members(&self) -> EffectiveMembers<'a> {
        self.0.effective_members()
    }
}

/// An array as the validator sees it.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a>(Node<'a>);

impl<'a> Array<'a, TapeJson> for ArrayView<'a> {
    type Node = Node<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        self.0.elements()
    }

    fn is_unique(&self) -> bool {
        let mut texts: Vec<String> = self.0.elements().map(Node::canonical).collect();
        texts.sort_unstable();
        texts.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// A number as the validator sees it: by value, whatever its spelling.
#[derive(Clone, Copy, Debug)]
pub struct WrittenNumber<'a>(Node<'a>);

impl JsonNumber for WrittenNumber<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    /// Infinite where [`Node::as_f64`] gives nothing: then bounds are still decided rightly.
    fn as_f64(&self) -> Option<f64> {
        self.0.raw().parse().ok()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.raw())
    }

    fn to_number(&self) -> Cow<'_, Number> {
        // Only for reports, which `schema` words from the tape instead.
        Cow::Owned(self.0.raw().parse().unwrap_or_else(|_| Number::from(0)))
    }

    fn is_integer(&self) -> bool {
        self.0.is_integer()
    }

    fn is_written_as_integer(&self) -> bool {
        self.0.is_written_as_integer()
    }
}
