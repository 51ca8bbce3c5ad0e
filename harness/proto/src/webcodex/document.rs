//! A document on its own: the text of a schema or of a tools list, from its bytes to whether it is admitted.
//!
//! Time and memory grow with the text, which is not read at all where it is longer than [`BYTES_MAX`].

use super::admission::admit_schema;
use super::contract::{Bounds, Rule};
use super::refusal::{Field, Found, Refusal, without_place};
use super::tools::admit_tools;
use crate::json::{Kind as JsonKind, Node, Tape};

/// The longest text that is read, in bytes: four frames, so that what fits one may be indented here.
pub const BYTES_MAX: usize = 4 << 20;

/// What is around a result in the shortest answer to the second request, in bytes.
const ENVELOPE_BYTES: u64 = r#"{"jsonrpc":"2.0","id":2,"result":}"#.len() as u64;

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The input schema of a tool.
    InputSchema,
    /// The output schema of a tool.
    OutputSchema,
    /// The result of `tools/list`.
    ToolsList,
}

impl Kind {
    fn field(self) -> Option<Field> {
        match self {
            Kind::InputSchema => Some(Field::Input),
            Kind::OutputSchema => Some(Field::Output),
            Kind::ToolsList => None,
        }
    }
}

/// Says whether a document is admitted; of a tools list, how many tools it has.
pub fn check(text: &[u8], kind: Kind, bounds: &Bounds) -> Result<Option<usize>, Refusal> {
    let field = kind.field().map(Field::name);
    if text.len() > BYTES_MAX {
        let says = format!("it has more than {BYTES_MAX} bytes, which is as much as is read of a document");
        let rule = if field.is_some() { Rule::Bounds } else { Rule::Size };
        return Err(without_place(rule, field, says));
    }
    let tape =
        Tape::scan(text).map_err(|fault| without_place(Rule::Text, None, format!("no JSON: {fault}")))?;
    let root = tape.root();
    if let Some(found) = unreadable(&tape) {
        return Err(found.of(root, None, None));
    }
    if let Some(field) = kind.field() {
        return admit_schema(root, field, bounds).map(|()| None);
    }
    fits_frame(root, bounds).map_err(|found| found.of(root, None, None))?;
    admit_tools(root, bounds).map(Some)
}

/// What is JSON by its grammar, and no reader that is strict takes: half a surrogate pair, a number beyond `f64`.
fn unreadable<'a>(tape: &'a Tape<'a>) -> Option<Found<'a>> {
    let root = tape.root();
    if tape.has_lone_surrogate() {
        let string = root.walk().map(|(_, node)| node);
        let string = string.filter(|it| it.kind() == JsonKind::String).find(|it| it.has_lone_surrogate());
        return Some(Found::new(Rule::Text, string.unwrap_or(root), "half a surrogate pair in a string"));
    }
    let numbers = root.walk().map(|(_, node)| node).filter(|node| node.kind() == JsonKind::Number);
    let mut beyond = numbers.filter(|it| !it.is_written_as_integer() || it.raw().len() > 308);
    beyond.find(|it| it.as_f64().is_none()).map(|it| Found::new(Rule::Text, it, "a number beyond 64 bits"))
}

/// Whether a list fits the frame that it would be sent in, if no white space is.
fn fits_frame<'a>(result: Node<'a>, bounds: &Bounds) -> Result<(), Found<'a>> {
    let most = bounds.frame_bytes.saturating_sub(ENVELOPE_BYTES);
    if result.raw().len() as u64 <= most || result.weight(most).bytes <= most {
        return Ok(());
    }
    let says = format!("with what is around it, it fits no frame of {} bytes", bounds.frame_bytes);
    Err(Found::new(Rule::Size, result, says))
}
