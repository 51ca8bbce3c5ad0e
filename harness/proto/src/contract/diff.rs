//! What changed between two contracts, and what it does to peers that know only one of them.
//!
//! Within a major version a protocol may add optional members, enum values and methods, and nothing else; everything
//! that touches the wire beyond that is [`Class::Breaking`], wider or narrower. Two documents have no change between
//! them exactly if they are equal as JSON values; how numbers are written and how members are ordered is no change.

mod found;
mod schema;

use super::Contract;
use super::read::DEFS;
use crate::json::{Tape, quoted};
use crate::schema::cut;
use found::{Found, Token};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a change does to peers, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A peer that keeps to one of the two is wrong by the other.
    Breaking,
    /// Allowed within a major version, and yet a strict older peer refuses what a newer one may send.
    Warning,
    /// Allowed, and no older peer meets it.
    Additive,
    /// Nothing that any peer could see.
    Editorial,
}

impl Class {
    /// All of them, the worst first.
    pub const ALL: [Class; 4] = [Class::Breaking, Class::Warning, Class::Additive, Class::Editorial];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Breaking => "breaking",
            Class::Warning => "warning",
            Class::Additive => "additive",
            Class::Editorial => "editorial",
        }
    }
}

/// One of the two documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// The older one.
    Old,
    /// The newer one.
    New,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it does to peers.
    pub class: Class,
    /// What it is, in one word with hyphens: `member-added`.
    pub what: &'static str,
    /// Where it is; cut to [`POINTER_MAX`] characters.
    pub pointer: String,
    /// In which document that is: what is gone stands in the old one, everything else in the new one.
    pub of: Edition,
    /// What changed and whom it concerns, in plain words on one line; bounded.
    pub says: String,
}

/// A pointer of a change is cut to this many characters.
pub const POINTER_MAX: usize = 500;

/// How many changes of one class are told.
pub const CHANGES_MAX: usize = 1_000;

/// Everything that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The changes, the worst first, and in the order of a document within a class. Of each class at most
    /// [`CHANGES_MAX`].
    pub changes: Vec<Change>,
    /// Whether both are of the same major version, within which nothing may break.
    pub same_major: bool,
    counts: [u64; 4],
}

impl Diff {
    /// How many changes there are of this class, told or not.
    pub fn count(&self, class: Class) -> u64 {
        self.counts[class as usize]
    }

    /// How many changes are not told.
    pub fn left_out(&self) -> u64 {
        self.counts.iter().sum::<u64>() - self.changes.len() as u64
    }

    /// Whether something changed that may not change within a major version.
    pub fn is_breaking(&self) -> bool {
        self.count(Class::Breaking) > 0
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.counts == [0; 4]
    }
}

/// Says what changed from `old` to `new`.
pub fn diff(old: &Contract, new: &Contract) -> Diff {
    let mut comparison = Comparison {
        old: &old.document,
        new: &new.document,
        found: Found::default(),
        known: BTreeMap::new(),
        aside: false,
        steps: 0,
    };
    if old.document != new.document {
        comparison.documents();
    }
    let (mut changes, counts) = comparison.found.finish();
    changes.sort_by_key(|change| change.class);
    Diff { changes, same_major: old.major == new.major, counts }
}

/// Two documents, and what was found so far.
struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    found: Found<'a>,
    /// What became of pairs of definitions that stand in each other's place.
    known: BTreeMap<(&'a str, &'a str), schema::Sameness>,
    /// Whether differences are told as one, and how much was compared so.
    aside: bool,
    steps: usize,
}

/// The members of a document that are compared on their own.
const PARTS: &[&str] = &["$defs", "errors", "interceptEvents", "limits", "methods"];

impl<'a> Comparison<'a> {
    fn documents(&mut self) {
        self.identity();
        self.part("methods", |it, old, new| it.methods(entries(old), entries(new)));
        self.part("errors", |it, old, new| it.reasons(elements(old), elements(new)));
        self.part("interceptEvents", |it, old, new| it.events(elements(old), elements(new)));
        self.part("limits", |it, old, new| it.limits(entries(old), entries(new)));
        self.part("$defs", |it, old, new| it.definitions(entries(old), entries(new)));
    }

    fn part(&mut self, name: &'a str, compare: fn(&mut Self, &'a Value, &'a Value)) {
        let (old, new) = (&self.old[name], &self.new[name]);
        self.at(Token::Name(name), |it| compare(it, old, new));
    }

    fn identity(&mut self) {
        let (old, new) = (entries(self.old), entries(self.new));
        let is_label = |document: &Map<String, Value>| {
            document.get("protocol").is_none_or(|label| Some(label) == document.get("protocolID"))
        };
        let labels = is_label(old) && is_label(new);
        for (name, old, new) in pairs(old, new) {
            if PARTS.contains(&name) || same(old, new) {
                continue;
            }
            let told = changed(name, old, new);
            self.at(Token::Name(name), |it| match name {
                "protocolID" => it.note(Class::Breaking, "protocol-changed", Edition::New, || {
                    format!("{told}: a handshake with an older peer fails")
                }),
                "protocolMajor" => it.note(Class::Breaking, "major-changed", Edition::New, || {
                    format!("{told}: a handshake with an older peer fails")
                }),
                "protocol" if labels => {
                    it.note(Class::Editorial, "label-changed", Edition::New, || {
                        format!("{told}, as protocolID")
                    });
                }
                _ => it.annotation(name, old, new),
            });
        }
    }

    // ---- methods ----

    fn methods(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, old, new) in pairs(old, new) {
            self.at(Token::Name(name), |it| match (old, new) {
                (None, Some(new)) => it.note(Class::Additive, "method-added", Edition::New, || {
                    format!("method {} is new: {}", short(name), unknown_to(new))
                }),
                (Some(old), None) => it.note(Class::Breaking, "method-removed", Edition::Old, || {
                    format!("method {} is gone: {}", short(name), missed_by(old))
                }),
                (Some(old), Some(new)) if old != new => it.method(entries(old), entries(new)),
                _ => {}
            });
        }
    }

    fn method(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        // The reader has seen to it that the flag says what the direction says.
        for (name, old, new) in pairs(old, new).filter(|(name, ..)| *name != "notification") {
            if same(old, new) {
                continue;
            }
            self.at(Token::Name(name), |it| match name {
                "direction" => it.note(Class::Breaking, "direction-changed", Edition::New, || {
                    format!(
                        "{}: who sends it, or whether it is answered, is another",
                        changed(name, old, new)
                    )
                }),
                "class" => it.note(Class::Breaking, "class-changed", Edition::New, || {
                    format!("{}: what it is granted with is another", changed(name, old, new))
                }),
                "params" => it.carried("params-changed", old, new),
                "result" => it.carried("result-changed", old, new),
                _ => it.annotation(name, old, new),
            });
        }
    }

    /// What a method carries: a reference to a definition, or nothing. Unlike inside of a definition, any other one
    /// breaks, unless it says the same.
    fn carried(&mut self, what: &'static str, old: Option<&'a Value>, new: Option<&'a Value>) {
        let named = |value: Option<&'a Value>| value.and_then(|value| value.get("$ref")).and_then(definition);
        let shown = |name: Option<&str>| name.map_or_else(|| "nothing".to_owned(), short);
        let (one, other) = (named(old), named(new));
        match (one, other) {
            (Some(one), Some(other)) if one != other => {
                let place = Token::Name("$ref");
                let sameness = self.named(one, other);
                self.at(place, |it| match sameness.worst {
                    None | Some(Class::Editorial) => {
                        it.note(Class::Editorial, "reference-renamed", Edition::New, || {
                            format!(
                                "refers to {} instead of {}, which says the same",
                                short(other),
                                short(one)
                            )
                        });
                    }
                    Some(_) => it.note(Class::Breaking, what, Edition::New, || {
                        format!("{} instead of {}: {}", short(other), short(one), sameness.says)
                    }),
                });
            }
            _ if one != other => self.note(Class::Breaking, what, Edition::New, || {
                format!("{} instead of {}", shown(other), shown(one))
            }),
            _ => {}
        }
        if let (Some(old), Some(new)) = (old.and_then(Value::as_object), new.and_then(Value::as_object)) {
            for (name, old, new) in pairs(old, new).filter(|(name, ..)| *name != "$ref") {
                if !same(old, new) {
                    self.at(Token::Name(name), |it| it.annotation(name, old, new));
                }
            }
        }
    }

    // ---- errors, events, limits ----

    fn reasons(&mut self, old: &'a [Value], new: &'a [Value]) {
        let name = |error: &'a Value| error["reason"].as_str().unwrap_or_default();
        self.list(old, new, name, |it, name, old, new| match (old, new) {
            (None, Some(_)) => it.note(Class::Warning, "reason-added", Edition::New, || {
                format!("reason {} is new: an older peer takes it for an error without a reason", short(name))
            }),
            (Some(_), None) => it.note(Class::Breaking, "reason-removed", Edition::Old, || {
                format!("reason {} is gone: an older peer may still give it, or wait for it", short(name))
            }),
            (Some(old), Some(new)) if old != new => it.reason(entries(old), entries(new)),
            _ => {}
        });
    }

    fn reason(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, old, new) in pairs(old, new).filter(|(_, old, new)| !same(*old, *new)) {
            // What is gone is only in the old one.
            let of = if new.is_some() { Edition::New } else { Edition::Old };
            self.at(Token::Name(name), |it| match name {
                "jsonRpcCode" => it.note(Class::Breaking, "code-changed", of, || {
                    format!("{}: both stand in the same error", changed("the code", old, new))
                }),
                "retryable" => it.note(Class::Breaking, "retryable-changed", of, || {
                    format!("{}: an older peer does otherwise", changed(name, old, new))
                }),
                "message" => it.note(Class::Editorial, "message-changed", of, || {
                    format!("{}: a text for people", changed(name, old, new))
                }),
                _ => it.annotation(name, old, new),
            });
        }
    }

    fn events(&mut self, old: &'a [Value], new: &'a [Value]) {
        let name = |event: &'a Value| event.as_str().unwrap_or_default();
        self.list(old, new, name, |it, name, old, new| match (old, new) {
            (None, Some(_)) => it.note(Class::Warning, "event-added", Edition::New, || {
                format!("event {} is new: an older host refuses a guest that asks for it", short(name))
            }),
            (Some(_), None) => it.note(Class::Breaking, "event-removed", Edition::Old, || {
                format!("event {} is gone: an older guest still waits for it", short(name))
            }),
            _ => {}
        });
    }

    /// A limit binds whoever sends, and that is both: so either way one of the two is refused.
    fn limits(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, old, new) in pairs(old, new).filter(|(_, old, new)| !same(*old, *new)) {
            let number = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or_default();
            let rises = number(new) > number(old);
            self.at(Token::Name(name), |it| match (old, new) {
                (None, _) => it.note(Class::Warning, "limit-added", Edition::New, || {
                    format!("limit {} is new: an older sender does not know it", short(name))
                }),
                (_, None) => it.note(Class::Breaking, "limit-removed", Edition::Old, || {
                    format!(
                        "limit {} is gone: an older receiver still holds a newer sender to it",
                        short(name)
                    )
                }),
                _ if rises => it.note(Class::Breaking, "limit-raised", Edition::New, || {
                    format!(
                        "{}: an older receiver refuses what a newer sender may send",
                        changed(name, old, new)
                    )
                }),
                _ => it.note(Class::Breaking, "limit-lowered", Edition::New, || {
                    format!(
                        "{}: a newer receiver refuses what an older sender may send",
                        changed(name, old, new)
                    )
                }),
            });
        }
    }

    // ---- definitions ----

    fn definitions(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, old, new) in pairs(old, new) {
            self.at(Token::Name(name), |it| match (old, new) {
                (None, Some(_)) => it.note(Class::Additive, "definition-added", Edition::New, || {
                    format!("definition {} is new", short(name))
                }),
                (Some(_), None) => it.note(Class::Breaking, "definition-removed", Edition::Old, || {
                    format!("definition {} is gone: what was of it has no form any more", short(name))
                }),
                (Some(old), Some(new)) => it.schema(old, new),
                (None, None) => {}
            });
        }
    }

    // ---- everywhere ----

    /// Members that say something about a document, not about frames.
    fn annotation(&mut self, name: &str, old: Option<&Value>, new: Option<&Value>) {
        let place = if new.is_some() { Edition::New } else { Edition::Old };
        match name {
            "title" | "description" | "$id" | "$comment" | "$schema" | "message" => {
                self.note(Class::Editorial, "text-changed", place, || changed(name, old, new));
            }
            _ => self.note(Class::Warning, "unknown-changed", place, || {
                format!("{}: what that means to peers is not known", changed(name, old, new))
            }),
        }
    }

    /// Lists whose elements have names: each name of either list, in order, and then whether the order is another.
    fn list<T: Ord + Clone>(
        &mut self,
        old: &'a [Value],
        new: &'a [Value],
        name: impl Fn(&'a Value) -> T,
        mut compare: impl FnMut(&mut Self, &T, Option<&'a Value>, Option<&'a Value>),
    ) {
        let named = |list: &'a [Value]| {
            list.iter()
                .enumerate()
                .map(|(index, value)| (name(value), (index, value)))
                .collect::<BTreeMap<_, _>>()
        };
        self.steps += if self.aside { old.len() + new.len() } else { 0 };
        let (one, other) = (named(old), named(new));
        let names: BTreeSet<&T> = one.keys().chain(other.keys()).collect();
        for name in names {
            let (old, new) = (one.get(name), other.get(name));
            let Some((index, _)) = new.or(old) else { continue };
            self.at(Token::Index(*index), |it| {
                compare(it, name, old.map(|(_, value)| *value), new.map(|(_, value)| *value));
            });
        }
        let kept = |list: &'a [Value], others: &BTreeMap<T, _>| {
            list.iter().map(&name).filter(|name| others.contains_key(name)).collect::<Vec<T>>()
        };
        if kept(old, &other) != kept(new, &one) {
            self.note(Class::Editorial, "reordered", Edition::New, || "the same in another order".to_owned());
        }
    }

    fn note(&mut self, class: Class, what: &'static str, place: Edition, says: impl FnOnce() -> String) {
        self.found.note(class, what, place, says);
    }

    fn at(&mut self, token: Token<'a>, then: impl FnOnce(&mut Self)) {
        self.found.path.push(token);
        then(self);
        self.found.path.pop();
    }
}

/// What a peer does not know of a method that is new.
fn unknown_to(method: &Value) -> &'static str {
    match method["direction"].as_str().unwrap_or_default() {
        direction if direction.starts_with("host_") => "an older guest does not know it",
        _ => "an older host does not know it",
    }
}

/// Who misses a method that is gone.
fn missed_by(method: &Value) -> &'static str {
    match method["direction"].as_str().unwrap_or_default() {
        direction if direction.starts_with("host_") => "an older host still sends it",
        _ => "an older guest still sends it",
    }
}

/// The members of both, by name.
fn pairs<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let names: BTreeSet<&'a str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    names.into_iter().map(|name| (name, old.get(name), new.get(name)))
}

/// The members of an object; none of anything else.
fn entries(value: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE)
}

/// The elements of an array; none of anything else.
fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether both are there and equal as JSON values, or both are not.
fn same(old: Option<&Value>, new: Option<&Value>) -> bool {
    old == new || matches!((old, new), (Some(old), Some(new)) if key(old) == key(new))
}

/// One text for all values that are equal, `1` and `1.0` too.
fn key(value: &Value) -> String {
    let text = value.to_string();
    Tape::scan(text.as_bytes()).map_or_else(|_| text.clone(), |tape| tape.root().canonical())
}

/// The definition that a reference names.
fn definition(reference: &Value) -> Option<&str> {
    reference.as_str()?.strip_prefix(DEFS)
}

/// How much of a name or a value is shown.
const SHOWN_MAX: usize = 60;

/// A name, in quotes and bounded.
fn short(name: &str) -> String {
    quoted(&cut(name, SHOWN_MAX))
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| cut(&value.to_string(), SHOWN_MAX))
}

/// That `name` says something else.
fn changed(name: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    format!("{} is {} instead of {}", cut(name, SHOWN_MAX), shown(new), shown(old))
}
