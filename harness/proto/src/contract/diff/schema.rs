//! Definitions, keyword by keyword. A reference counts as what it refers to.
//!
//! What two definitions make of each other is found out once, and there is a bound for the whole: a contract that refers
//! in all directions costs no more than others.

use super::found::Token;
use super::{
    Class, Comparison, Edition, changed, definition, elements, entries, key, pairs, same, short, shown,
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::mem;
use std::sync::LazyLock;

/// What became of two schemas that stand in each other's place.
#[derive(Clone, Debug)]
pub(super) struct Sameness {
    /// The worst class of what differs, if something does.
    pub(super) worst: Option<Class>,
    /// The first difference of that class.
    pub(super) says: String,
}

/// How many schemas, members and values are compared because one refers to something else than the other.
const STEPS_MAX: usize = 300_000;

/// What an older peer meets where a form allows more now, and where it allows less.
const WIDER: &str = "an older receiver refuses what a newer sender may send";
const NARROWER: &str = "a newer receiver refuses what an older sender may send";

impl<'a> Comparison<'a> {
    /// What changed from one schema to another in the same place.
    pub(super) fn schema(&mut self, old: &'a Value, new: &'a Value) {
        if old == new {
            return;
        }
        if self.aside {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return self.note(Class::Breaking, "not-compared", Edition::New, || {
                    "too much refers to something else to compare it all".to_owned()
                });
            }
        }
        let (Some(one), Some(other)) = (keywords(old), keywords(new)) else {
            let (says, why) = if *new == Value::Bool(false) {
                ("nothing is allowed here any more", NARROWER)
            } else {
                ("something is allowed here that was not", WIDER)
            };
            return self.note(Class::Breaking, "schema-changed", Edition::New, || format!("{says}: {why}"));
        };
        if one.is_empty() && other.is_empty() {
            return self.respelt(Edition::New);
        }
        match (reference(one), reference(other)) {
            (None, None) => {}
            (Some(name), Some(named)) if name == named => {}
            (Some(name), Some(named)) => {
                let sameness = self.named(name, named);
                self.at(Token::Name("$ref"), |it| it.referred(&sameness, &short(name), &short(named)));
            }
            // One stands here in full; a reference with more beside it cannot be put in its place.
            (Some(name), None) if one.len() == 1 => {
                let sameness = self.aside(target(self.old, name), new);
                return self.referred(&sameness, &short(name), "what stands here");
            }
            (None, Some(name)) if other.len() == 1 => {
                let sameness = self.aside(old, target(self.new, name));
                return self.referred(&sameness, "what stood here", &short(name));
            }
            (one, other) => {
                let shown = |name: Option<&str>| name.map_or_else(|| "nothing".to_owned(), short);
                self.note(Class::Breaking, "reference-changed", Edition::New, || {
                    format!("refers to {} instead of {}", shown(other), shown(one))
                });
            }
        }
        self.members(one, other);
        let plain = |name: &str| !matches!(name, "$ref" | "properties" | "required");
        for (name, old, new) in pairs(one, other).filter(|(name, ..)| plain(name)) {
            if !same(old, new) {
                self.at(Token::Name(name), |it| it.keyword(name, old, new));
            }
        }
    }

    fn keyword(&mut self, name: &'a str, old: Option<&'a Value>, new: Option<&'a Value>) {
        let place = if new.is_some() { Edition::New } else { Edition::Old };
        let told = || changed(name, old, new);
        match name {
            "type" => self.kind(old, new),
            "enum" => self.values(old, new),
            "const" => self.note(Class::Breaking, "const-changed", place, || {
                format!("{}: one of the two is refused", told())
            }),
            "items" | "additionalProperties" => self.rest(name, old, new),
            "minLength" | "minItems" if same(old.or(Some(&ZERO)), new.or(Some(&ZERO))) => {
                self.respelt(place);
            }
            "minLength" | "minItems" | "minimum" => {
                let narrower = new.is_some() && (old.is_none() || number(new) > number(old));
                self.bound(narrower, place, told);
            }
            "maxLength" | "maxItems" | "maximum" => {
                let narrower = new.is_some() && (old.is_none() || number(new) < number(old));
                self.bound(narrower, place, told);
            }
            "x-externalizable" => {
                let is = |value: Option<&Value>| value.is_some_and(|value| *value == Value::Bool(true));
                if is(old) == is(new) {
                    return self.respelt(place);
                }
                self.note(Class::Breaking, "externalizable-changed", place, || {
                    format!("{}: its value may travel outside of a frame for one of the two only", told())
                });
            }
            _ => self.annotation(name, old, new),
        }
    }

    fn bound(&mut self, narrower: bool, place: Edition, told: impl FnOnce() -> String) {
        let (what, why) = if narrower { ("bound-narrowed", NARROWER) } else { ("bound-widened", WIDER) };
        self.note(Class::Breaking, what, place, || format!("{}: {why}", told()));
    }

    fn kind(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let place = if new.is_some() { Edition::New } else { Edition::Old };
        let within = |one: Option<&Value>, other: Option<&Value>| {
            let (one, other) = (one.and_then(Value::as_str), other.and_then(Value::as_str));
            other.is_none() || (one, other) == (Some("integer"), Some("number"))
        };
        let (what, why) = if within(new, old) {
            ("type-narrowed", NARROWER)
        } else if within(old, new) {
            ("type-widened", WIDER)
        } else {
            ("type-changed", "each receiver refuses what the other sender may send")
        };
        self.note(Class::Breaking, what, place, || format!("{}: {why}", changed("type", old, new)));
    }

    fn values(&mut self, old: Option<&'a Value>, new: Option<&'a Value>) {
        let (Some(one), Some(other)) = (old, new) else {
            let (what, place, why) = match new {
                Some(_) => ("enum-set", Edition::New, NARROWER),
                None => ("enum-dropped", Edition::Old, WIDER),
            };
            return self
                .note(Class::Breaking, what, place, || format!("{}: {why}", changed("enum", old, new)));
        };
        self.list(elements(one), elements(other), key, |it, _, old, new| match (old, new) {
            (None, Some(_)) => it.note(Class::Warning, "enum-value-added", Edition::New, || {
                format!("value {} is new: a strict older receiver refuses it", shown(new))
            }),
            (Some(_), None) => it.note(Class::Breaking, "enum-value-removed", Edition::Old, || {
                format!("value {} is gone: an older sender may still send it", shown(old))
            }),
            _ => {}
        });
    }

    /// What elements, or members without a schema of their own, must be. Without the keyword they may be anything.
    fn rest(&mut self, name: &str, old: Option<&'a Value>, new: Option<&'a Value>) {
        const ANYTHING: &Value = &Value::Bool(true);
        let (one, other) = (old.unwrap_or(ANYTHING), new.unwrap_or(ANYTHING));
        let closed = |schema: &Value| *schema == Value::Bool(false);
        if old.is_some() && new.is_some() && closed(one) == closed(other) {
            return self.schema(one, other);
        }
        let place = if new.is_some() { Edition::New } else { Edition::Old };
        if is_anything(one) && is_anything(other) {
            return self.respelt(place);
        }
        let (of, what) = match name {
            "items" => ("elements", "items-changed"),
            _ => ("members that are not listed", "additional-properties-changed"),
        };
        let why = if is_anything(other) || closed(one) { WIDER } else { NARROWER };
        self.note(Class::Breaking, what, place, || format!("{of}: {}: {why}", changed(name, old, new)));
    }

    // ---- members ----

    fn members(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        let listed =
            |schema: &'a Map<String, Value>| entries(schema.get("properties").unwrap_or(&Value::Null));
        let demanded =
            |schema: &'a Map<String, Value>| elements(schema.get("required").unwrap_or(&Value::Null));
        let (listed_then, listed_now) = (listed(old), listed(new));
        let (then, now) = (demanded(old), demanded(new));
        self.steps += if self.aside { listed_then.len() + listed_now.len() } else { 0 };
        let is_open = old.get("additionalProperties").is_none_or(is_anything);
        let required: BTreeSet<&str> = now.iter().filter_map(Value::as_str).collect();
        self.at(Token::Name("properties"), |it| {
            for (name, old, new) in pairs(listed_then, listed_now) {
                it.at(Token::Name(name), |it| match (old, new) {
                    (Some(old), Some(new)) => it.schema(old, new),
                    (Some(_), None) => it.note(Class::Breaking, "member-removed", Edition::Old, || {
                        format!("member {} is gone: an older peer may still send it, or need it", short(name))
                    }),
                    (None, Some(_)) => it.member_added(name, required.contains(name), is_open),
                    (None, None) => {}
                });
            }
        });
        self.at(Token::Name("required"), |it| it.required(then, now, listed_then, listed_now));
        // An empty list says no more than none.
        for (name, empty) in [
            ("properties", listed_then.is_empty() && listed_now.is_empty()),
            ("required", then.is_empty() && now.is_empty()),
        ] {
            if empty && old.contains_key(name) != new.contains_key(name) {
                let place = if new.contains_key(name) { Edition::New } else { Edition::Old };
                self.at(Token::Name(name), |it| it.respelt(place));
            }
        }
    }

    fn member_added(&mut self, name: &str, required: bool, is_open: bool) {
        let (class, what, why) = if required {
            (Class::Breaking, "required-member-added", "required, and an older sender does not send it")
        } else if is_open {
            (Class::Additive, "member-added", "optional, and an older receiver takes any member")
        } else {
            (Class::Warning, "member-added", "optional, but a strict older receiver refuses it")
        };
        self.note(class, what, Edition::New, || format!("member {} is new: {why}", short(name)));
    }

    /// A member that is listed in one of the two only has been told already.
    fn required(
        &mut self,
        old: &'a [Value],
        new: &'a [Value],
        listed_then: &Map<String, Value>,
        listed_now: &Map<String, Value>,
    ) {
        let name = |value: &'a Value| value.as_str().unwrap_or_default();
        self.list(old, new, name, |it, name, old, new| {
            let (then, now) = (listed_then.contains_key(*name), listed_now.contains_key(*name));
            match (old, new) {
                (None, Some(_)) if then || !now => {
                    it.note(Class::Breaking, "member-required", Edition::New, || {
                        format!("member {} is required now: an older sender may leave it out", short(name))
                    });
                }
                (Some(_), None) if now || !then => {
                    it.note(Class::Breaking, "member-optional", Edition::Old, || {
                        format!("member {} is optional now: an older receiver needs it", short(name))
                    });
                }
                _ => {}
            }
        });
    }

    // ---- references ----

    /// A reference to something else, or something else in the place of one.
    fn referred(&mut self, sameness: &Sameness, old: &str, new: &str) {
        match sameness.worst {
            None | Some(Class::Editorial) => {
                self.note(Class::Editorial, "reference-renamed", Edition::New, || {
                    format!("{new} instead of {old}, which says the same")
                });
            }
            Some(class) => self.note(class, "reference-changed", Edition::New, || {
                format!("{new} instead of {old}: {}", sameness.says)
            }),
        }
    }

    /// What the new definition `other` makes of the old one that is named `one`.
    pub(super) fn named(&mut self, one: &'a str, other: &'a str) -> Sameness {
        if let Some(known) = self.known.get(&(one, other)) {
            return known.clone();
        }
        let sameness = self.aside(target(self.old, one), target(self.new, other));
        self.known.insert((one, other), sameness.clone());
        sameness
    }

    /// Compares two schemas without telling each difference.
    fn aside(&mut self, old: &'a Value, new: &'a Value) -> Sameness {
        let found = mem::take(&mut self.found);
        let outer = mem::replace(&mut self.aside, true);
        self.schema(old, new);
        self.aside = outer;
        let aside = mem::replace(&mut self.found, found);
        let (worst, says) = aside.worst().map(|(class, says)| (class, says.to_owned())).unzip();
        Sameness { worst, says: says.unwrap_or_default() }
    }

    // ---- the same in other words ----

    fn respelt(&mut self, place: Edition) {
        self.note(Class::Editorial, "respelt", place, || "the same, written another way".to_owned());
    }
}

/// The keywords of a schema; those of `true` are none. `None` for `false`, which no keywords can say.
fn keywords(schema: &Value) -> Option<&Map<String, Value>> {
    (*schema != Value::Bool(false)).then(|| entries(schema))
}

/// The definition of that name; the reader has refused references that lead nowhere.
fn target<'a>(document: &'a Value, name: &str) -> &'a Value {
    &document["$defs"][name]
}

fn reference(keywords: &Map<String, Value>) -> Option<&str> {
    keywords.get("$ref").and_then(definition)
}

/// Whether a schema allows everything.
fn is_anything(schema: &Value) -> bool {
    keywords(schema).is_some_and(Map::is_empty)
}

/// What a least length is where none is written.
static ZERO: LazyLock<Value> = LazyLock::new(|| 0.into());

/// A bound as a number; without one, 0.
fn number(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).unwrap_or_default()
}
