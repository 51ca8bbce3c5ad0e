//! JSON with holes: `{"$id":"LABEL"}` is the id of the frame called so, `{"$fresh":true}` an id that nothing is called
//! by, `{"$capture":"NAME"}` what was captured; `"as":"text"` beside that makes it a string, `"as":"fraction"` appends
//! `.0`.

use std::collections::BTreeMap;

use super::Captures;
use crate::json::{Kind, Node, Tape, quoted};

/// A frame of ours that is complete only when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    holes: Vec<Hole>,
    /// Whether what is rendered is one JSON text on one line: what fills a hole is one.
    json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hole {
    start: usize,
    end: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Id(String),
    Fresh,
    Capture(String, As),
}

/// How a capture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum As {
    Itself,
    Text,
    Fraction,
}

impl Template {
    /// The template that this text is. A text that is no JSON has no holes.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let (holes, json) = match Tape::scan(text.as_bytes()) {
            Ok(tape) => {
                let verbatim = tape.root().raw().len() == text.len() && !text.contains('\n');
                (tape.root().walk().filter_map(|(_, node)| hole(node)).collect(), verbatim)
            }
            Err(_) => (Vec::new(), false),
        };
        Self { text, holes, json }
    }

    /// The text, holes and all.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many holes there are.
    pub fn holes(&self) -> usize {
        self.holes.len()
    }

    /// The text with its holes filled. A label that has no id yet gets the next one; a capture that holds nothing
    /// leaves `null`.
    pub fn render(&self, ids: &mut BTreeMap<String, i64>, next_id: &mut i64, captures: &Captures) -> String {
        let mut out = String::with_capacity(self.text.len() + 16);
        let mut from = 0;
        for hole in &self.holes {
            out.push_str(&self.text[from..hole.start]);
            match &hole.what {
                What::Id(label) => {
                    let id = ids.get(label).copied().unwrap_or_else(|| {
                        let id = fresh(next_id);
                        ids.insert(label.clone(), id);
                        id
                    });
                    out.push_str(&id.to_string());
                }
                What::Fresh => out.push_str(&fresh(next_id).to_string()),
                What::Capture(name, how) => {
                    let text = captures.get(name).map_or("null", |text| text);
                    match how {
                        As::Itself => out.push_str(text),
                        As::Text => out.push_str(&quoted(text)),
                        As::Fraction => out.push_str(&format!("{text}.0")),
                    }
                }
            }
            from = hole.end;
        }
        out.push_str(&self.text[from..]);
        out
    }

    /// Whether a capture that it needs holds nothing, so that there is nothing to say.
    pub fn lacks(&self, captures: &Captures) -> bool {
        self.holes
            .iter()
            .any(|hole| matches!(&hole.what, What::Capture(name, _) if !captures.contains_key(name)))
    }

    /// Whether what is rendered is one JSON text on one line, so that nobody need look.
    pub fn renders_json(&self) -> bool {
        self.json
    }
}

fn fresh(next_id: &mut i64) -> i64 {
    let id = *next_id;
    *next_id += 1;
    id
}

fn hole(node: Node<'_>) -> Option<Hole> {
    if node.kind() != Kind::Object || !(1..=2).contains(&node.len()) {
        return None;
    }
    let (name, value) = node.members().next()?;
    let how = match (node.len(), node.get("as").and_then(|how| how.as_str()).as_deref()) {
        (1, _) => As::Itself,
        (_, Some("text")) => As::Text,
        (_, Some("fraction")) => As::Fraction,
        _ => return None,
    };
    let text = || value.as_str().map(|text| text.into_owned());
    let what = match &*name {
        "$id" if how == As::Itself => What::Id(text()?),
        "$fresh" if how == As::Itself => What::Fresh,
        "$capture" => What::Capture(text()?, how),
        _ => return None,
    };
    let start = node.offset();
    Some(Hole { start, end: start + node.raw().len(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_and_nothing_else_is_touched() {
        let mut ids = BTreeMap::from([("old".to_owned(), 4)]);
        let mut next = 7;
        let captures = Captures::from([
            ("page".to_owned(), "{\"a\": 1}".to_owned()),
            ("four".to_owned(), "4".to_owned()),
        ]);
        for (text, expected) in [
            (r#"{"id":{"$id":"old"},"x": [ 1.0 ]}"#, r#"{"id":4,"x": [ 1.0 ]}"#),
            (r#"{"id":{"$id":"new"},"again":{"$id":"new"}}"#, r#"{"id":7,"again":7}"#),
            (r#"[{"$fresh":true},{"$fresh":true}]"#, "[8,9]"),
            (r#"{"r":{"$capture":"page"},"n":{"$capture":"none"}}"#, r#"{"r":{"a": 1},"n":null}"#),
            (
                r#"[{"$capture":"none","as":"text"},{"$capture":"page","as":"no"}]"#,
                r#"["null",{"$capture":"page","as":"no"}]"#,
            ),
            (r#"[{"$capture":"four","as":"fraction"}]"#, "[4.0]"),
            (
                r#"{"s":"{\"$id\":\"old\"}","two":{"$id":"old","b":1}}"#,
                r#"{"s":"{\"$id\":\"old\"}","two":{"$id":"old","b":1}}"#,
            ),
            ("{not json {\"$id\":\"old\"}", "{not json {\"$id\":\"old\"}"),
        ] {
            let out = Template::new(text).render(&mut ids, &mut next, &captures);
            assert_eq!(out, expected);
        }
    }
}
