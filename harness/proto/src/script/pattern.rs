//! Matchers: what a frame must look like to be awaited or reacted to.
//!
//! A plain JSON value matches an equal one, objects by the members they name, arrays element by element. An object
//! with one member that begins with `$` is a matcher of its own:
//!
//! ```text
//! {"$any":true}  {"$absent":true}  {"$type":"string"}  {"$like":"plugin/*"}  {"$exact":{…}}
//! {"$either":[…,…]}  {"$id":"LABEL"}  {"$capture":"NAME","of":…}  {"$same":"NAME"}
//! ```

use std::collections::BTreeMap;

use crate::json::{self, Kind, Node, Tape};

/// What was captured: JSON texts by name.
pub type Captures = BTreeMap<String, String>;

/// How deep a pattern may nest.
const DEPTH_MAX: usize = 64;

/// A matcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Anything that is there.
    Any,
    /// Nothing: the member must not be there.
    Absent,
    /// Any value of this type.
    Type(Kind),
    /// A string, in which `*` stands for any characters.
    Like(String),
    /// Exactly this value: objects have no other members.
    Exact(String),
    /// A value equal to this one, which is no object and no array.
    Value(String),
    /// What one of these matches.
    Either(Vec<Self>),
    /// Elements that match these, as many of them.
    Elements(Vec<Self>),
    /// An object whose members of these names match.
    Members(Vec<(String, Self)>),
    /// The id of the frame that is called so.
    Id(String),
    /// What matches is kept under this name.
    Capture(String, Box<Self>),
    /// Equal to what was captured under this name.
    Same(String),
}

impl Pattern {
    /// Reads a pattern; the fault is one line.
    pub fn read(node: Node<'_>) -> Result<Self, String> {
        Self::read_at(node, 0)
    }

    /// The pattern that this JSON text is.
    pub fn of(text: &str) -> Result<Self, String> {
        let tape = Tape::scan(text.as_bytes()).map_err(|fault| fault.to_string())?;
        Self::read(tape.root())
    }

    /// The answer to the frame called `label`.
    pub fn answer_to(label: &str) -> Self {
        Self::Members(vec![
            ("id".to_owned(), Self::Id(label.to_owned())),
            ("method".to_owned(), Self::Absent),
        ])
    }

    /// A request for `method`, whose id is captured as `id`.
    pub fn request(method: &str) -> Self {
        Self::Members(vec![
            ("id".to_owned(), Self::Capture("id".to_owned(), Box::new(Self::Any))),
            ("method".to_owned(), Self::Value(json::quoted(method))),
        ])
    }

    fn read_at(node: Node<'_>, depth: usize) -> Result<Self, String> {
        if depth > DEPTH_MAX {
            return Err(format!("a pattern nests deeper than {DEPTH_MAX}"));
        }
        match node.kind() {
            Kind::Array => node
                .elements()
                .map(|element| Self::read_at(element, depth + 1))
                .collect::<Result<_, _>>()
                .map(Self::Elements),
            Kind::Object => match node.members().next() {
                Some((name, value)) if name.starts_with('$') => Self::read_matcher(&name, value, node, depth),
                _ => node
                    .members()
                    .map(|(name, value)| Ok((name.into_owned(), Self::read_at(value, depth + 1)?)))
                    .collect::<Result<_, String>>()
                    .map(Self::Members),
            },
            _ => Ok(Self::Value(node.raw().to_owned())),
        }
    }

    fn read_matcher(name: &str, value: Node<'_>, whole: Node<'_>, depth: usize) -> Result<Self, String> {
        let text = || {
            value.as_str().map(std::borrow::Cow::into_owned).ok_or_else(|| format!("{name} takes a string"))
        };
        Ok(match name {
            "$any" => Self::Any,
            "$absent" => Self::Absent,
            "$type" => {
                let wanted = text()?;
                let kind = TYPES.iter().find(|(_, name)| *name == wanted);
                Self::Type(kind.ok_or_else(|| format!("{wanted:?} is no JSON type"))?.0)
            }
            "$like" => Self::Like(text()?),
            "$exact" => Self::Exact(value.raw().to_owned()),
            "$either" => Self::Either(
                value.elements().map(|one| Self::read_at(one, depth + 1)).collect::<Result<_, _>>()?,
            ),
            "$id" => Self::Id(text()?),
            "$same" => Self::Same(text()?),
            "$capture" => {
                let of = whole.get("of").map_or(Ok(Self::Any), |of| Self::read_at(of, depth + 1))?;
                Self::Capture(text()?, Box::new(of))
            }
            _ => return Err(format!("{name} is no matcher")),
        })
    }

    /// Appends the pattern as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Any => out.extend_from_slice(b"{\"$any\":true}"),
            Self::Absent => out.extend_from_slice(b"{\"$absent\":true}"),
            Self::Type(kind) => {
                let name = TYPES.iter().find(|(known, _)| known == kind).map_or("null", |(_, name)| name);
                matcher(out, "$type", name);
            }
            Self::Like(glob) => matcher(out, "$like", glob),
            Self::Exact(text) => {
                out.extend_from_slice(b"{\"$exact\":");
                out.extend_from_slice(text.as_bytes());
                out.push(b'}');
            }
            Self::Value(text) => out.extend_from_slice(text.as_bytes()),
            Self::Either(patterns) => {
                out.extend_from_slice(b"{\"$either\":");
                write_all(out, patterns);
                out.push(b'}');
            }
            Self::Elements(elements) => write_all(out, elements),
            Self::Members(members) => {
                out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    json::write_str(out, name);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
            Self::Id(label) => matcher(out, "$id", label),
            Self::Same(name) => matcher(out, "$same", name),
            Self::Capture(name, of) => {
                out.extend_from_slice(b"{\"$capture\":");
                json::write_str(out, name);
                if **of != Self::Any {
                    out.extend_from_slice(b",\"of\":");
                    of.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// Adds what it captures, without values.
    pub fn captured(&self, captures: &mut Captures) {
        match self {
            Self::Capture(name, of) => {
                captures.insert(name.clone(), String::new());
                of.captured(captures);
            }
            Self::Either(all) | Self::Elements(all) => all.iter().for_each(|one| one.captured(captures)),
            Self::Members(members) => members.iter().for_each(|(_, member)| member.captured(captures)),
            _ => {}
        }
    }

    /// Whether `node` matches. What is captured on the way is kept only if all of it does.
    pub fn matches(&self, node: Node<'_>, ids: &BTreeMap<String, i64>, captures: &mut Captures) -> bool {
        let mut fresh = Captures::new();
        let matched = self.test(Some(node), ids, captures, &mut fresh);
        if matched {
            captures.append(&mut fresh);
        }
        matched
    }

    fn test(
        &self,
        node: Option<Node<'_>>,
        ids: &BTreeMap<String, i64>,
        kept: &Captures,
        fresh: &mut Captures,
    ) -> bool {
        let Some(node) = node else { return *self == Self::Absent };
        match self {
            Self::Any => true,
            Self::Absent => false,
            Self::Type(kind) => node.kind() == *kind,
            Self::Like(glob) => node.as_str().is_some_and(|text| like(glob, &text)),
            Self::Exact(text) | Self::Value(text) => equal(node, text),
            Self::Either(patterns) => {
                patterns.iter().any(|pattern| pattern.test(Some(node), ids, kept, fresh))
            }
            Self::Elements(wanted) => {
                node.kind() == Kind::Array
                    && node.len() == wanted.len()
                    && wanted
                        .iter()
                        .zip(node.elements())
                        .all(|(wanted, it)| wanted.test(Some(it), ids, kept, fresh))
            }
            Self::Members(wanted) => {
                node.kind() == Kind::Object
                    && wanted.iter().all(|(name, wanted)| wanted.test(node.get(name), ids, kept, fresh))
            }
            Self::Id(label) => {
                node.is_integer() && node.as_i64() == ids.get(label).copied() && ids.contains_key(label)
            }
            Self::Same(name) => {
                fresh.get(name).or_else(|| kept.get(name)).is_some_and(|text| equal(node, text))
            }
            Self::Capture(name, of) => {
                let matched = of.test(Some(node), ids, kept, fresh);
                if matched {
                    fresh.insert(name.clone(), node.raw().to_owned());
                }
                matched
            }
        }
    }
}

const TYPES: [(Kind, &str); 6] = [
    (Kind::Null, "null"),
    (Kind::Bool, "boolean"),
    (Kind::Number, "number"),
    (Kind::String, "string"),
    (Kind::Array, "array"),
    (Kind::Object, "object"),
];

fn write_all(out: &mut Vec<u8>, patterns: &[Pattern]) {
    out.push(b'[');
    for (at, pattern) in patterns.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        pattern.write(out);
    }
    out.push(b']');
}

fn matcher(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b'{');
    json::write_str(out, name);
    out.push(b':');
    json::write_str(out, value);
    out.push(b'}');
}

fn equal(node: Node<'_>, text: &str) -> bool {
    Tape::scan(text.as_bytes()).is_ok_and(|tape| node.equals(tape.root()))
}

/// Whether `text` is `glob`, in which `*` stands for any characters.
fn like(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_matcher_matches_what_it_says_and_nothing_else() {
        let ids = BTreeMap::from([("probe".to_owned(), 7)]);
        for (pattern, yes, no) in [
            ("1", "[1, 1.0, 10e-1]", "[2, \"1\", true, [1]]"),
            ("{\"a\":1}", "[{\"a\":1}, {\"a\":1,\"b\":2}]", "[{\"b\":2}, 1, {\"a\":2}]"),
            ("[1,{\"$any\":true}]", "[[1,2], [1,null]]", "[[1], [1,2,3], [2,1], {}]"),
            ("{\"$exact\":{\"a\":1}}", "[{\"a\":1}]", "[{\"a\":1,\"b\":2}]"),
            ("{\"$type\":\"string\"}", "[\"\"]", "[1, null]"),
            ("{\"$like\":\"a*c*\"}", "[\"ac\", \"abc\", \"abcd\"]", "[\"ab\", \"bac\", 1]"),
            ("{\"$like\":\"ab*ba\"}", "[\"abba\", \"abxba\"]", "[\"aba\"]"),
            ("{\"$either\":[1,{\"a\":2}]}", "[1, {\"a\":2}]", "[2, {\"a\":1}]"),
            ("{\"$id\":\"probe\"}", "[7, 7.0]", "[8, \"7\"]"),
            ("{\"$id\":\"other\"}", "[]", "[null, 7]"),
            ("{\"a\":{\"$absent\":true}}", "[{}, {\"b\":1}]", "[{\"a\":null}]"),
            (
                "{\"a\":{\"$capture\":\"x\"},\"b\":{\"$same\":\"x\"}}",
                "[{\"a\":1,\"b\":1}]",
                "[{\"a\":1,\"b\":2}]",
            ),
        ] {
            let pattern = Pattern::of(pattern).unwrap();
            for (values, expected) in [(yes, true), (no, false)] {
                let tape = Tape::scan(values.as_bytes()).unwrap();
                for value in tape.root().elements() {
                    let matched = pattern.matches(value, &ids, &mut Captures::new());
                    assert_eq!(matched, expected, "{pattern:?} on {}", value.raw());
                }
            }
        }
    }

    #[test]
    fn captures_are_kept_only_when_everything_matches() {
        let pattern = Pattern::of(r#"{"id":{"$capture":"id"},"method":"x"}"#).unwrap();
        let mut captures = Captures::new();
        for (text, expected) in
            [(r#"{"id":1,"method":"y"}"#, None), (r#"{"id":2.0,"method":"x"}"#, Some("2.0"))]
        {
            let tape = Tape::scan(text.as_bytes()).unwrap();
            pattern.matches(tape.root(), &BTreeMap::new(), &mut captures);
            assert_eq!(captures.get("id").map(String::as_str), expected);
        }
    }

    #[test]
    fn what_is_no_matcher_is_a_fault() {
        for (text, says) in [
            ("{\"$no\":1}", "$no is no matcher"),
            ("{\"$type\":\"integer\"}", "\"integer\" is no JSON type"),
            ("{\"$like\":1}", "$like takes a string"),
        ] {
            assert_eq!(Pattern::of(text).unwrap_err(), says);
        }
    }
}
