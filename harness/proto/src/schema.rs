//! Validates values on a tape against the definitions of a contract, and says in plain words what is wrong.
//!
//! Only contracts are ever compiled, never a schema that a target sent. What a violation says is bounded, whatever the
//! value holds.

use crate::json::{Kind, Node, TapeJson, write_str};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, JsonType, ValidationError};
use serde_json::{Value, json};
use std::fmt;

/// What a violation says, and where, is cut to this many characters each.
pub const SAYS_MAX: usize = 200;

/// How much of a value is quoted.
const SHOWN_MAX: usize = 60;

/// One compiled definition.
#[derive(Debug)]
pub struct Validator {
    name: String,
    compiled: jsonschema::Validator<TapeJson>,
}

/// The first thing about a value that its definition does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where it is, from the value that was checked.
    pub pointer: String,
    /// What is wrong, in plain words on one line.
    pub says: String,
}

/// Why a definition could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    /// What is wrong, on one line.
    pub says: String,
}

impl Validator {
    /// Compiles the definition `name` of `defs`, a document `{"$defs": {…}}`.
    pub fn new(defs: &Value, name: &str) -> Result<Validator, SchemaFault> {
        let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": defs["$defs"] });
        let options = jsonschema::options_for::<TapeJson>().with_draft(Draft::Draft202012);
        match options.build(&schema) {
            Ok(compiled) => Ok(Validator { name: name.to_owned(), compiled }),
            Err(error) => Err(SchemaFault { says: bounded(&format!("definition {name}: {error}")) }),
        }
    }

    /// The definition's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first thing about `node` that the definition does not allow.
    pub fn check(&self, node: Node<'_>) -> Option<Violation> {
        if self.compiled.is_valid(node) {
            return None;
        }
        let error = self.compiled.validate(node).err()?;
        let pointer = error.instance_path().as_str();
        let culprit = node.pointer(pointer).unwrap_or(node);
        Some(Violation { pointer: bounded(pointer), says: bounded(&self.words(&error, culprit)) })
    }

    fn words(&self, error: &ValidationError<'_>, culprit: Node<'_>) -> String {
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                self.unknown_member(error, unexpected.first().map_or("", String::as_str))
            }
            // What an object without any declared member makes of a member.
            ValidationErrorKind::FalseSchema => {
                let name = culprit.members().next().map(|(name, _)| name).unwrap_or_default();
                self.unknown_member(error, &name)
            }
            ValidationErrorKind::Required { property } => {
                format!("member {} is missing", quoted(property.as_str().unwrap_or_default()))
            }
            ValidationErrorKind::Type { kind } => {
                format!("{} is not {}", shown(culprit), expected_type(kind))
            }
            ValidationErrorKind::Enum { options } => {
                let options: Vec<String> = options.as_array().into_iter().flatten().map(option).collect();
                format!("{} is not one of {}", shown(culprit), options.join(", "))
            }
            ValidationErrorKind::Constant { expected_value } => {
                format!("{} is not {}", shown(culprit), option(expected_value))
            }
            ValidationErrorKind::MinLength { limit: 1 } => "the string is empty".to_owned(),
            ValidationErrorKind::MinLength { limit } => {
                format!("{} is shorter than {limit} characters", shown(culprit))
            }
            ValidationErrorKind::MaxLength { limit } => {
                format!("{} is longer than {limit} characters", shown(culprit))
            }
            ValidationErrorKind::Minimum { limit } => format!("{} is less than {limit}", shown(culprit)),
            ValidationErrorKind::Maximum { limit } => format!("{} is more than {limit}", shown(culprit)),
            ValidationErrorKind::MinItems { limit } => format!("the array has fewer than {limit} elements"),
            ValidationErrorKind::MaxItems { limit } => format!("the array has more than {limit} elements"),
            other => format!("{} breaks the rule {}", shown(culprit), quoted(other.keyword())),
        }
    }

    fn unknown_member(&self, error: &ValidationError<'_>, name: &str) -> String {
        let path = error.schema_path().as_str();
        let definition = path.rsplit_once("/$defs/").and_then(|(_, rest)| rest.split('/').next());
        format!("member {} is not part of {}", quoted(name), definition.unwrap_or(&self.name))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.says)
        } else {
            write!(f, "{}: {}", self.pointer, self.says)
        }
    }
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)
    }
}

impl std::error::Error for SchemaFault {}

/// A value in a sentence: scalars as written, containers by what they are.
fn shown(node: Node<'_>) -> String {
    match node.kind() {
        Kind::Object => "an object".to_owned(),
        Kind::Array => "an array".to_owned(),
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => cut(node.raw(), SHOWN_MAX),
    }
}

fn expected_type(kind: &TypeKind) -> String {
    let expected = |kind: JsonType| match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    };
    match kind {
        TypeKind::Single(kind) => expected(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(expected).collect::<Vec<_>>().join(" or "),
    }
}

fn option(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_str(&mut out, &cut(text, SHOWN_MAX));
    String::from_utf8(out).unwrap_or_default()
}

fn bounded(text: &str) -> String {
    cut(text, SAYS_MAX)
}

/// At most `max` characters of `text`, the last an ellipsis if some are gone.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max - 1).chain(['…']).collect(),
    }
}
