//! Schema Profile v1: which values match a schema that was admitted.
//!
//! An integer is one by how it is written; values are equal if they are written so that the same is read; strings are as
//! long as they have Unicode scalar values; objects are open unless they are closed; what is required need not be declared.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::admission::{Members, count};
use super::bounds::Limits;
use super::contract::{Bounds, Keyword, Rule, Type};
use super::refusal::{Found, Refusal, shown, sorted};
use crate::json::{Kind, Node};

/// What is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The arguments of a call, against the tool's input schema.
    Arguments,
    /// The structured content of a result, against its output schema.
    StructuredContent,
}

/// Says whether `value` keeps the bounds of such a value, and matches `schema`, which must be admitted. Pointers begin at
/// `value`.
pub fn matches(schema: Node<'_>, value: Node<'_>, payload: Payload, bounds: &Bounds) -> Result<(), Refusal> {
    let (rule, bounds_rule, bytes) = match payload {
        Payload::Arguments => (Rule::Arguments, Rule::ArgumentsBounds, bounds.arguments_bytes),
        Payload::StructuredContent => {
            (Rule::StructuredContent, Rule::StructuredContentBounds, bounds.structured_content_bytes)
        }
    };
    let limits = Limits { bytes, of: bounds, rule: bounds_rule, name_rule: bounds_rule };
    let checked = match limits.hold(value) {
        Ok(()) => match_one(schema, value).map_err(|(at, says)| Found::new(rule, at, says)),
        Err(found) => Err(found),
    };
    checked.map_err(|found| found.of(value, None, None))
}

type Matched<'v> = Result<(), (Node<'v>, String)>;

/// No deeper than the bound on depth, which both keep.
fn match_one<'v>(schema: Node<'_>, value: Node<'v>) -> Matched<'v> {
    let members = Members::of(schema).ok();
    let Some((members, of)) = members.and_then(|members| members.type_of().map(|of| (members, of))) else {
        return Err((value, "its schema is not of the profile".to_owned()));
    };
    if value.kind() != of.kind() || (of == Type::Integer && !is_integer(value)) {
        let found = if value.kind() == Kind::Number {
            format!("{:?}", shown_number(value))
        } else {
            format!("of the kind {}", value.kind())
        };
        return Err((value, format!("it is {found}, and the type is {:?}", of.name())));
    }
    if members.get(Keyword::Const).is_some_and(|constant| !equal(constant, value)) {
        return Err((value, "it is not what `const` says".to_owned()));
    }
    if members.get(Keyword::Enum).is_some_and(|of| !of.elements().any(|one| equal(one, value))) {
        return Err((value, "it is none of `enum`".to_owned()));
    }
    match of {
        Type::Object => match_object(&members, value),
        Type::Array => {
            within(&members, Keyword::MinItems, Keyword::MaxItems, value, value.len(), "elements")?;
            match members.get(Keyword::Items) {
                Some(items) => value.elements().try_for_each(|element| match_one(items, element)),
                None => Ok(()),
            }
        }
        Type::String => {
            let length = value.as_str().unwrap_or_default().chars().count();
            within(&members, Keyword::MinLength, Keyword::MaxLength, value, length, "characters")
        }
        Type::Number | Type::Integer | Type::Boolean | Type::Null => Ok(()),
    }
}

fn match_object<'v>(members: &Members<'_>, value: Node<'v>) -> Matched<'v> {
    let present = sorted(value);
    let find = |name: &str| present.binary_search_by(|(present, _)| present.as_ref().cmp(name)).ok();
    for required in members.get(Keyword::Required).into_iter().flat_map(Node::elements) {
        let name = required.as_str().unwrap_or_default();
        if find(&name).is_none() {
            return Err((value, format!("{} is required, and not there", shown(&name))));
        }
    }
    let declared = members.get(Keyword::Properties).map(sorted).unwrap_or_default();
    for (name, schema) in &declared {
        if let Some(at) = find(name) {
            match_one(*schema, present[at].1)?;
        }
    }
    if members.get(Keyword::AdditionalProperties).and_then(Node::as_bool) == Some(false) {
        let is_declared =
            |name: &Cow<'_, str>| declared.binary_search_by(|(declared, _)| declared.cmp(name)).is_ok();
        if let Some((name, at)) = present.iter().find(|(name, _)| !is_declared(name)) {
            let says = format!("{} is not declared, and `additionalProperties` is false", shown(name));
            return Err((*at, says));
        }
    }
    Ok(())
}

fn within<'v>(
    members: &Members<'_>,
    least: Keyword,
    most: Keyword,
    value: Node<'v>,
    length: usize,
    of: &str,
) -> Matched<'v> {
    let bound = |keyword| members.get(keyword).and_then(count);
    if let Some(bound) = bound(least).filter(|bound| (length as u64) < *bound) {
        return Err((value, format!("it has {length} {of}, and `{}` is {bound}", least.name())));
    }
    if let Some(bound) = bound(most).filter(|bound| length as u64 > *bound) {
        return Err((value, format!("it has {length} {of}, and `{}` is {bound}", most.name())));
    }
    Ok(())
}

fn shown_number(value: Node<'_>) -> &str {
    const SHOWN_MAX: usize = 40;
    let raw = value.raw();
    &raw[..raw.len().min(SHOWN_MAX)]
}

/// Whether a number is read as an integer: written as one, within `i64` or `u64`. `-0` is read as a fraction.
fn is_integer(number: Node<'_>) -> bool {
    let raw = number.raw();
    number.is_written_as_integer()
        && raw != "-0"
        && (raw.parse::<i64>().is_ok() || raw.parse::<u64>().is_ok())
}

/// Whether both are read as the same value: 1 and 1.0 are not, and neither are 0 and -0.
///
/// No deeper than the bound on depth, which both keep.
fn equal(one: Node<'_>, other: Node<'_>) -> bool {
    if one.kind() != other.kind() {
        return false;
    }
    match one.kind() {
        Kind::Null => true,
        Kind::Bool => one.as_bool() == other.as_bool(),
        Kind::String => one.as_str() == other.as_str(),
        Kind::Number => match (is_integer(one), is_integer(other)) {
            (true, true) => one.raw() == other.raw(),
            (false, false) => float(one).partial_cmp(&float(other)) == Some(Ordering::Equal),
            _ => false,
        },
        Kind::Array => {
            one.len() == other.len()
                && one.elements().zip(other.elements()).all(|(one, other)| equal(one, other))
        }
        Kind::Object => {
            let (one, other) = (sorted(one), sorted(other));
            one.len() == other.len()
                && one.iter().zip(&other).all(|(one, other)| one.0 == other.0 && equal(one.1, other.1))
        }
    }
}

fn float(number: Node<'_>) -> f64 {
    number.raw().parse().unwrap_or(f64::NAN)
}

/// The same value with each whole number written as an integer; `None` where nothing would change.
pub(super) fn with_whole_numbers(value: Node<'_>) -> Option<String> {
    let whole = |node: Node<'_>| {
        let plain = node.as_i64().map(|it| it.to_string()).or_else(|| node.as_u64().map(|it| it.to_string()));
        plain.filter(|plain| plain != node.raw())
    };
    let mut text = String::new();
    let mut done = value.offset();
    for (_, node) in value.walk() {
        if node.kind() == Kind::Number
            && let Some(plain) = whole(node)
        {
            text.push_str(&value.raw()[done - value.offset()..node.offset() - value.offset()]);
            text.push_str(&plain);
            done = node.offset() + node.raw().len();
        }
    }
    let rest = &value.raw()[done - value.offset()..];
    (!text.is_empty()).then(|| text + rest)
}
