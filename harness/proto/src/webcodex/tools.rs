//! The answer to `tools/list`: which catalogues are admitted. The first fault in the order of the list is told.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::admission;
use super::contract::{Bounds, Rule, member};
use super::refusal::{Field, Found, Refusal, odd_control, shown};
use crate::json::{Kind, Node};

/// A tool as it is listed.
struct Tool<'a> {
    node: Node<'a>,
    name: Cow<'a, str>,
    title: Option<Node<'a>>,
    description: Option<Node<'a>>,
    input: Node<'a>,
    output: Option<Node<'a>>,
    annotations: Option<Node<'a>>,
}

/// Says whether a result of `tools/list` is admitted, and how many tools it has. Pointers begin at `result`.
///
/// Whether it fits a frame is not asked here.
pub fn admit_tools(result: Node<'_>, bounds: &Bounds) -> Result<usize, Refusal> {
    let tools = read(result).map_err(|found| found.of(result, None, None))?;
    if tools.len() as u64 > bounds.tools {
        let says = format!("there are {} tools, and may be {}", tools.len(), bounds.tools);
        return Err(Found::new(Rule::Count, result, says).of(result, None, None));
    }
    let mut names = BTreeSet::new();
    for tool in &tools {
        admit_one(result, tool, &mut names, bounds)?;
    }
    Ok(tools.len())
}

/// Reads the whole list first: what is no tool is told before what is wrong with one.
fn read(result: Node<'_>) -> Result<Vec<Tool<'_>>, Found<'_>> {
    let wrong = |at, says: String| Err(Found::new(Rule::List, at, says));
    if result.kind() != Kind::Object {
        return wrong(result, format!("the result is of the kind {}, and must be an object", result.kind()));
    }
    let mut tools = None;
    for (name, value) in result.effective_members() {
        if name != member::TOOLS {
            return wrong(
                result,
                format!("the result has {}; it has only `{}`", shown(&name), member::TOOLS),
            );
        }
        tools = Some(value);
    }
    match tools {
        Some(tools) if tools.kind() == Kind::Array => tools.elements().map(read_one).collect(),
        Some(other) => {
            wrong(other, format!("`{}` is of the kind {}, and must be an array", member::TOOLS, other.kind()))
        }
        None => wrong(result, format!("`{}` is missing", member::TOOLS)),
    }
}

fn read_one(node: Node<'_>) -> Result<Tool<'_>, Found<'_>> {
    let wrong = |at, says: String| Found::new(Rule::List, at, says);
    if node.kind() != Kind::Object {
        return Err(wrong(node, format!("a tool is of the kind {}, and must be an object", node.kind())));
    }
    let mut members = [None; member::OF_A_TOOL.len()];
    for (name, value) in node.effective_members() {
        let Some(index) = member::OF_A_TOOL.iter().position(|known| *known == name) else {
            let says = format!("a tool has {}; it has only {}", shown(&name), member::OF_A_TOOL.join(", "));
            return Err(wrong(node, says));
        };
        members[index] = Some(value);
    }
    let [name, title, description, input, output, annotations] = members;
    let missing = |name: &str| wrong(node, format!("a tool has no `{name}`"));
    let written = name.ok_or_else(|| missing(member::NAME))?;
    let name =
        written.as_str().ok_or_else(|| wrong(written, "the name of a tool is no string".to_owned()))?;
    let input = input.ok_or_else(|| missing(member::INPUT_SCHEMA))?;
    // `null` is the same as nothing where a member is optional.
    let [title, description, output, annotations] =
        [title, description, output, annotations].map(|it| it.filter(|it| !it.is_null()));
    let mut texts = [title, description].into_iter().flatten();
    if let Some(other) = texts.find(|it| it.kind() != Kind::String) {
        let says = format!("a text of a tool is of the kind {}, and must be a string", other.kind());
        return Err(wrong(other, says));
    }
    Ok(Tool { node, name, title, description, input, output, annotations })
}

fn admit_one<'a>(
    result: Node<'a>,
    tool: &'a Tool<'a>,
    names: &mut BTreeSet<&'a str>,
    bounds: &Bounds,
) -> Result<(), Refusal> {
    let name = tool.name.as_ref();
    let of_name = |rule, says: String, echoed| {
        let at = tool.node.get(member::NAME).unwrap_or(tool.node);
        Err(Found::new(rule, at, says).of(result, echoed, Some(member::NAME)))
    };
    if !is_plain_name(name, bounds) {
        let says = format!(
            "{} is no name: it has 1 to {} of A-Z a-z 0-9 _ - .",
            shown(name),
            bounds.tool_name_bytes
        );
        // What is no name does not name the tool either.
        return of_name(Rule::ToolName, says, None);
    }
    if !names.insert(name) {
        let says = format!("an earlier tool has the name {} as well", shown(name));
        return of_name(Rule::ToolNameOnce, says, Some(name));
    }
    for (text, rule, field, least, most) in [
        (tool.title, Rule::ToolTitle, member::TITLE, 1, bounds.tool_title_bytes),
        (tool.description, Rule::ToolDescription, member::DESCRIPTION, 0, bounds.tool_description_bytes),
    ] {
        if let Some(text) = text {
            admit_text(text, rule, least, most).map_err(|found| found.of(result, Some(name), Some(field)))?;
        }
    }
    for (value, field) in [
        (Some(tool.input), Field::Input),
        (tool.output, Field::Output),
        (tool.annotations, Field::Annotations),
    ] {
        if let Some(value) = value {
            admission::admit(value, field, bounds)
                .map_err(|found| found.of(result, Some(name), Some(field.name())))?;
        }
    }
    Ok(())
}

/// Whether a tool may be called so.
pub(super) fn is_plain_name(name: &str, bounds: &Bounds) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() as u64 <= bounds.tool_name_bytes && name.bytes().all(plain)
}

pub(super) fn admit_text(at: Node<'_>, rule: Rule, least: u64, most: u64) -> Result<(), Found<'_>> {
    let text = at.as_str().unwrap_or_default();
    let bytes = text.len() as u64;
    if !(least..=most).contains(&bytes) {
        let says = format!("it has {bytes} bytes, and may have {least} to {most}");
        return Err(Found::new(rule, at, says));
    }
    match odd_control(&text) {
        Some(odd) => {
            let says = format!("it has the control character U+{:04X}", u32::from(odd));
            Err(Found::new(rule, at, says))
        }
        None => Ok(()),
    }
}
