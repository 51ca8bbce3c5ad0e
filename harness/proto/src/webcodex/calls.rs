//! Which tools are called: those that the user named, with arguments that the user gave; and, where the user says so, those
//! that say that they only read, with arguments made of their schema. Never another.

use super::admission::{Members, count};
use super::contract::{Bounds, Keyword, Type};
use super::host::{INPUT, READ_ONLY, TOOL};
use super::{Payload, matches};
use crate::json::{Node, Tape, quoted};
use crate::script::Setting;

/// The provocation that holds what the user gave: an array of calls, each the params of one.
pub const GIVEN: &str = "calls";
/// The user lets us call what only reads.
pub const OF_READERS: &str = "calls-read-only";

/// The longest text that is made for an argument, in bytes.
const TEXT_BYTES_MAX: u64 = 4_096;
/// How many elements are made for an argument.
const ELEMENTS_MAX: u64 = 64;

/// What comes of all that the user asked for.
#[derive(Debug, Default)]
pub struct Planned {
    /// The params of each call, one JSON text.
    pub calls: Vec<String>,
    /// Why others are not made, a line each.
    pub not_made: Vec<String>,
}

/// What is called of what the plugin lists.
pub fn planned(setting: &Setting<'_>) -> Planned {
    let mut planned = Planned::default();
    let bounds = Bounds::of(setting.contract);
    let given = setting.provocations.get(GIVEN).map_or("[]", String::as_str);
    let Ok(given) = Tape::scan(given.as_bytes()) else { return planned };
    let mut named = Vec::new();
    for call in given.root().elements() {
        let Some(name) = call.get("name").and_then(|name| name.as_str()) else { continue };
        match fits(setting, &name, call.get("arguments"), &bounds) {
            Ok(()) => planned.calls.push(call.raw().to_owned()),
            Err(why) => planned.not_made.push(format!("--call {name}: {why}")),
        }
        named.push(name.into_owned());
    }
    if setting.exercised.contains(OF_READERS) {
        let readers = setting.declared.iter().filter_map(|it| it.strip_prefix(READ_ONLY));
        for name in readers.filter(|name| !named.iter().any(|known| known == name)) {
            match made(setting, name, &bounds) {
                Some(arguments) => {
                    planned.calls.push(format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name)));
                }
                None => planned.not_made.push(format!(
                    "--call-read-only: no arguments can be made for {name}: give them with --call {name}=JSON"
                )),
            }
        }
    }
    planned
}

/// The lines on what is not called.
pub fn not_made(setting: &Setting<'_>) -> Vec<String> {
    planned(setting).not_made
}

fn input<'s>(setting: &Setting<'s>, name: &str) -> Option<&'s str> {
    setting.declared.iter().find_map(|it| it.strip_prefix(INPUT)?.strip_prefix(name)?.strip_prefix(' '))
}

fn fits(
    setting: &Setting<'_>,
    name: &str,
    arguments: Option<Node<'_>>,
    bounds: &Bounds,
) -> Result<(), String> {
    if !setting.declared.contains(&format!("{TOOL}{name}")) {
        let tools: Vec<&str> = setting.declared.iter().filter_map(|it| it.strip_prefix(TOOL)).collect();
        let all = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        return Err(format!("the plugin lists no such tool; it lists {all}"));
    }
    let tape = input(setting, name).and_then(|schema| Tape::scan(schema.as_bytes()).ok());
    let (Some(tape), Some(arguments)) = (tape, arguments) else {
        return Err("its input schema is none that a host admits".to_owned());
    };
    matches(tape.root(), arguments, Payload::Arguments, bounds).map_err(|refusal| {
        let at = if refusal.pointer.is_empty() { "the arguments".to_owned() } else { refusal.pointer };
        format!("{at}: {}", refusal.says)
    })
}

/// Arguments that match the tool's schema.
fn made(setting: &Setting<'_>, name: &str, bounds: &Bounds) -> Option<String> {
    let schema = Tape::scan(input(setting, name)?.as_bytes()).ok()?;
    let text = made_for(schema.root())?;
    let arguments = Tape::scan(text.as_bytes()).ok()?;
    matches(schema.root(), arguments.root(), Payload::Arguments, bounds).ok()?;
    Some(text)
}

/// A value for an admitted schema, which nests no deeper than is admitted.
fn made_for(schema: Node<'_>) -> Option<String> {
    let members = Members::of(schema).ok()?;
    if let Some(constant) = members.get(Keyword::Const) {
        return Some(constant.raw().to_owned());
    }
    if let Some(first) = members.get(Keyword::Enum).and_then(|all| all.elements().next()) {
        return Some(first.raw().to_owned());
    }
    let least = |keyword| members.get(keyword).and_then(count).unwrap_or_default();
    Some(match members.type_of()? {
        Type::Object => {
            let mut made = Vec::new();
            for name in members.get(Keyword::Required).into_iter().flat_map(Node::elements) {
                let name = name.as_str()?;
                let property = members.get(Keyword::Properties).and_then(|all| all.get(&name));
                let value = property.map_or_else(|| Some("null".to_owned()), made_for)?;
                made.push(format!("{}:{value}", quoted(&name)));
            }
            format!("{{{}}}", made.join(","))
        }
        Type::Array => {
            let elements = least(Keyword::MinItems);
            let of = members.get(Keyword::Items).map_or_else(|| Some("null".to_owned()), made_for)?;
            let elements = usize::try_from(elements).ok().filter(|it| *it as u64 <= ELEMENTS_MAX)?;
            format!("[{}]", vec![of; elements].join(","))
        }
        Type::String => {
            let most = members.get(Keyword::MaxLength).and_then(count).unwrap_or(1);
            let length = least(Keyword::MinLength).max(1.min(most));
            quoted(&"x".repeat(usize::try_from(length).ok().filter(|it| *it as u64 <= TEXT_BYTES_MAX)?))
        }
        Type::Number | Type::Integer => "1".to_owned(),
        Type::Boolean => "false".to_owned(),
        Type::Null => "null".to_owned(),
    })
}
