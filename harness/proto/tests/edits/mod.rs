//! Small contracts, and edits of a known class at a known place: what a differ must find, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::unnecessary_wraps, reason = "an edit ends with what it notes")]

use serde_json::{Map, Value, json};
use sidecert_proto::contract::diff::{Class, Edition};
use std::collections::BTreeSet;

/// Choices, from numbers that proptest shrinks; when they are used up, always the first.
pub(crate) struct Dice<'d>(pub(crate) &'d [u16]);

impl Dice<'_> {
    pub(crate) fn is_spent(&self) -> bool {
        self.0.is_empty()
    }

    /// Less than `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % bound
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        if of.is_empty() { None } else { Some(&of[self.below(of.len())]) }
    }

    fn name(&mut self, object: &Value) -> Option<String> {
        let names: Vec<&String> = object.as_object()?.keys().collect();
        self.pick(&names).map(|name| (*name).clone())
    }
}

/// A contract: definitions `D…`, which methods and members refer to, and `S…`, which nothing refers to.
pub(crate) fn contract(dice: &mut Dice<'_>) -> Value {
    let definitions = 2 + dice.below(4);
    let mut defs = Map::new();
    for at in 0..definitions {
        defs.insert(format!("D{at}"), definition(dice, at));
    }
    for at in 0..=dice.below(2) {
        defs.insert(format!("S{at}"), definition(dice, 100 + at));
    }
    let mut methods = Map::new();
    for at in 0..=dice.below(4) {
        let kind = ["request", "notification"][dice.below(2)];
        let from = ["host_to_extension", "extension_to_host"][dice.below(2)];
        let mut refer = || json!({ "$ref": format!("#/$defs/D{}", dice.below(definitions)) });
        let (params, result) = (refer(), if kind == "request" { refer() } else { Value::Null });
        let method = json!({
            "class": "c", "direction": format!("{from}_{kind}"), "notification": kind == "notification",
            "params": params, "result": result,
        });
        methods.insert(format!("a/m{at}~"), method);
    }
    let errors = (0..=dice.below(3)).map(|at| {
        json!({ "reason": format!("r{at}"), "jsonRpcCode": 10 + dice.below(9), "retryable": dice.below(2) == 1, "message": "M" })
    });
    let errors: Vec<Value> = errors.collect();
    let events: Vec<String> = (0..=dice.below(3)).map(|at| format!("e{at}")).collect();
    let limits: Map<String, Value> =
        (0..=dice.below(2)).map(|at| (format!("l{at}"), (100 + dice.below(50)).into())).collect();
    json!({
        "$id": "p.v1", "title": "P", "protocol": "p.v1", "protocolID": "p.v1", "protocolMajor": 1, "errors": errors,
        "interceptEvents": events, "limits": limits, "methods": methods, "$defs": defs,
    })
}

/// A definition with a member that no other has, so that no two are alike; it refers to later ones only.
fn definition(dice: &mut Dice<'_>, at: usize) -> Value {
    let mut members = Map::new();
    let mut required = vec![format!("own{at}")];
    members.insert(format!("own{at}"), json!({ "type": "boolean" }));
    for member in 0..=dice.below(5) {
        let schema = match dice.below(8) {
            0 => json!({ "type": "string" }),
            1 => json!({ "type": "string", "minLength": 1 + dice.below(3) }),
            2 => json!({ "type": "integer", "minimum": dice.below(3) }),
            3 => json!({ "type": "number", "maximum": 50 }),
            4 => json!({ "type": "string", "enum": ["x", "y", "z"] }),
            5 => json!({ "type": "array", "items": { "type": "string" } }),
            6 => json!({ "x-externalizable": true }),
            _ => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        };
        members.insert(format!("m{member}"), schema);
        if dice.below(2) == 1 {
            required.push(format!("m{member}"));
        }
    }
    if at == 0 {
        members.insert("link".to_owned(), json!({ "$ref": "#/$defs/D1" }));
    }
    let mut definition = json!({ "type": "object", "properties": members, "required": required });
    if dice.below(3) > 0 {
        definition["additionalProperties"] = false.into();
    }
    definition
}

/// What the differ must find: the class, the place, and in which document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expected {
    pub(crate) class: Class,
    pub(crate) pointer: String,
    pub(crate) of: Edition,
}

/// Edits a contract, and keeps book of what that must be called.
pub(crate) struct Editor {
    pub(crate) old: Value,
    pub(crate) new: Value,
    /// Places that were edited: no other edit may touch them.
    claimed: BTreeSet<String>,
    noted: Vec<(Class, Spot, Edition)>,
    fresh: usize,
}

/// Where a change is. The index of an element is only known when all edits are done.
enum Spot {
    At(String),
    Element(String, Value),
    /// A member of an element.
    Within(String, Value, &'static str),
}

pub(crate) type Edit = fn(&mut Editor, &mut Dice<'_>) -> Option<()>;

use Class::{Additive, Breaking, Editorial, Warning};
use Edition::{New, Old};

impl Editor {
    pub(crate) fn new(old: Value) -> Self {
        Self { new: old.clone(), old, claimed: BTreeSet::new(), noted: Vec::new(), fresh: 0 }
    }

    /// What the differ must find, sorted.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let placed = self.noted.iter().map(|(class, spot, of)| {
            let pointer = match spot {
                Spot::At(pointer) => pointer.clone(),
                Spot::Element(list, key) => self.element(list, key, *of),
                Spot::Within(list, key, name) => format!("{}/{name}", self.element(list, key, *of)),
            };
            Expected { class: *class, pointer, of: *of }
        });
        let mut placed: Vec<Expected> = placed.collect();
        placed.sort();
        placed
    }

    fn element(&self, list: &str, key: &Value, of: Edition) -> String {
        let document = if of == Old { &self.old } else { &self.new };
        let elements = document.pointer(list).unwrap().as_array().unwrap();
        let is = |it: &Value| it == key || (it.is_object() && it["reason"] == *key);
        format!("{list}/{}", elements.iter().position(is).unwrap())
    }

    fn claim(&mut self, place: &str) -> Option<()> {
        self.claimed.insert(place.to_owned()).then_some(())
    }

    fn note(&mut self, class: Class, pointer: impl Into<String>, of: Edition) -> Option<()> {
        self.noted.push((class, Spot::At(pointer.into()), of));
        Some(())
    }

    fn note_element(&mut self, class: Class, list: &str, key: Value, of: Edition) -> Option<()> {
        self.noted.push((class, Spot::Element(list.to_owned(), key), of));
        Some(())
    }

    fn fresh(&mut self) -> String {
        self.fresh += 1;
        format!("new{}", self.fresh)
    }

    /// A method that was not edited.
    fn method(&mut self, dice: &mut Dice<'_>) -> Option<(String, String)> {
        let name = dice.name(&self.old["methods"])?;
        self.claim(&format!("method {name}"))?;
        Some((format!("/methods/{}", name.replace('~', "~0").replace('/', "~1")), name))
    }

    /// A definition that others may refer to, and that is never removed.
    fn definition(&self, dice: &mut Dice<'_>) -> Option<String> {
        let names: Vec<&String> =
            self.old["$defs"].as_object()?.keys().filter(|it| it.starts_with('D')).collect();
        dice.pick(&names).map(|name| (*name).clone())
    }

    /// A member that was not edited, and whether it is required.
    fn member(
        &mut self,
        dice: &mut Dice<'_>,
        has: impl Fn(&Value) -> bool,
    ) -> Option<(String, String, bool)> {
        let definition = self.definition(dice)?;
        let schema = self.old["$defs"][&definition].clone();
        let fits: Vec<String> = schema["properties"]
            .as_object()?
            .iter()
            .filter(|(name, it)| name.starts_with('m') && has(it))
            .map(|(name, _)| name.clone())
            .collect();
        let name = dice.pick(&fits)?.clone();
        self.claim(&format!("member {definition} {name}"))?;
        let required = schema["required"].as_array()?.contains(&json!(name));
        Some((definition, name, required))
    }

    fn schema(&mut self, definition: &str, member: &str) -> &mut Value {
        &mut self.new["$defs"][definition]["properties"][member]
    }

    fn list(&mut self, pointer: &str) -> &mut Vec<Value> {
        self.new.pointer_mut(pointer).unwrap().as_array_mut().unwrap()
    }

    /// Puts `value` under a keyword of a member that has such a one, or takes it away.
    fn keyword(
        &mut self,
        dice: &mut Dice<'_>,
        (class, keyword): (Class, &str),
        has: impl Fn(&Value) -> bool,
        value: Option<Value>,
    ) -> Option<()> {
        let (definition, name, _) = self.member(dice, has)?;
        let schema = self.schema(&definition, &name).as_object_mut()?;
        let of = if value.is_some() { New } else { Old };
        match value {
            Some(value) => drop(schema.insert(keyword.to_owned(), value)),
            None => drop(schema.remove(keyword)?),
        }
        self.note(class, format!("/$defs/{definition}/properties/{name}/{keyword}"), of)
    }
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |it| it["type"] == kind && it["enum"].is_null() && it["minLength"].is_null()
}

/// Every edit. Each does its thing once, or nothing where there is no place left for it.
pub(crate) const EDITS: &[(&str, Edit)] = &[
    ("another id", |it, _| {
        it.claim("id")?;
        it.new["protocolID"] = "q.v1".into();
        it.new["protocol"] = "q.v1".into();
        it.note(Breaking, "/protocolID", New);
        it.note(Editorial, "/protocol", New)
    }),
    ("another title", |it, dice| {
        let name = ["$id", "title", "description"][dice.below(3)];
        it.claim(name)?;
        it.new[name] = "other".into();
        it.note(Editorial, format!("/{name}"), New)
    }),
    ("a method goes", |it, dice| {
        let (pointer, name) = it.method(dice)?;
        it.new["methods"].as_object_mut()?.remove(&name);
        it.note(Breaking, pointer, Old)
    }),
    ("a method comes", |it, _| {
        let name = it.fresh();
        it.new["methods"][&name] = json!({
            "class": "c", "direction": "host_to_extension_notification", "notification": true, "params": null, "result": null
        });
        it.note(Additive, format!("/methods/{name}"), New)
    }),
    ("a method turns round", |it, dice| {
        let (pointer, name) = it.method(dice)?;
        let direction = it.new["methods"][&name]["direction"].as_str()?.to_owned();
        let turned = match direction.strip_prefix("host_to_extension") {
            Some(kind) => format!("extension_to_host{kind}"),
            None => format!("host_to_extension{}", direction.strip_prefix("extension_to_host")?),
        };
        it.new["methods"][&name]["direction"] = turned.into();
        it.note(Breaking, format!("{pointer}/direction"), New)
    }),
    ("a method is of another class", |it, dice| {
        let (pointer, name) = it.method(dice)?;
        it.new["methods"][&name]["class"] = "d".into();
        it.note(Breaking, format!("{pointer}/class"), New)
    }),
    ("a method carries something else", |it, dice| {
        let (pointer, name) = it.method(dice)?;
        let now = it.new["methods"][&name]["params"]["$ref"].as_str()?.to_owned();
        let other = format!("#/$defs/{}", if now == "#/$defs/D0" { "D1" } else { "D0" });
        it.new["methods"][&name]["params"]["$ref"] = other.into();
        it.note(Breaking, format!("{pointer}/params/$ref"), New)
    }),
    ("a method carries nothing", |it, dice| {
        let (pointer, name) = it.method(dice)?;
        it.new["methods"][&name]["params"] = Value::Null;
        it.note(Breaking, format!("{pointer}/params"), New)
    }),
    ("a reason goes", |it, dice| {
        let reason = dice.pick(it.old["errors"].as_array()?)?["reason"].clone();
        it.claim(&format!("reason {reason}"))?;
        it.list("/errors").retain(|error| error["reason"] != reason);
        it.note_element(Breaking, "/errors", reason, Old)
    }),
    ("a reason comes", |it, dice| {
        let name = it.fresh();
        let at = dice.below(it.list("/errors").len() + 1);
        it.list("/errors").insert(at, json!({ "reason": name, "jsonRpcCode": 1, "retryable": false }));
        it.note_element(Warning, "/errors", name.into(), New)
    }),
    ("a reason says something else", |it, dice| {
        let reason = dice.pick(it.old["errors"].as_array()?)?["reason"].clone();
        it.claim(&format!("reason {reason}"))?;
        let at = it.new["errors"].as_array()?.iter().position(|error| error["reason"] == reason)?;
        let (class, name, value) = match dice.below(3) {
            0 => (Breaking, "jsonRpcCode", json!(7)),
            1 => (Breaking, "retryable", json!(it.new["errors"][at]["retryable"] == false)),
            _ => (Editorial, "message", json!("other")),
        };
        it.new["errors"][at][name] = value;
        // Others may come before it, so its index is looked up in the end.
        it.noted.push((class, Spot::Within("/errors".to_owned(), reason, name), New));
        Some(())
    }),
    ("an event goes", |it, dice| {
        let event = dice.pick(it.old["interceptEvents"].as_array()?)?.clone();
        it.claim(&format!("event {event}"))?;
        it.list("/interceptEvents").retain(|one| *one != event);
        it.note_element(Breaking, "/interceptEvents", event, Old)
    }),
    ("an event comes", |it, dice| {
        let name = it.fresh();
        let at = dice.below(it.list("/interceptEvents").len() + 1);
        it.list("/interceptEvents").insert(at, name.clone().into());
        it.note_element(Warning, "/interceptEvents", name.into(), New)
    }),
    ("a limit moves", |it, dice| {
        let name = dice.name(&it.old["limits"])?;
        it.claim(&format!("limit {name}"))?;
        it.new["limits"][&name] = [1_u64, 5_000][dice.below(2)].into();
        it.note(Breaking, format!("/limits/{name}"), New)
    }),
    ("a limit goes", |it, dice| {
        let name = dice.name(&it.old["limits"])?;
        it.claim(&format!("limit {name}"))?;
        it.new["limits"].as_object_mut()?.remove(&name);
        it.note(Breaking, format!("/limits/{name}"), Old)
    }),
    ("a limit comes", |it, _| {
        let name = it.fresh();
        it.new["limits"][&name] = 3.into();
        it.note(Warning, format!("/limits/{name}"), New)
    }),
    ("a definition goes", |it, _| {
        it.claim("S0")?;
        it.new["$defs"].as_object_mut()?.remove("S0")?;
        it.note(Breaking, "/$defs/S0", Old)
    }),
    ("a definition comes", |it, _| {
        let name = it.fresh();
        it.new["$defs"][&name] = json!({ "type": "string" });
        it.note(Additive, format!("/$defs/{name}"), New)
    }),
    ("a member goes", |it, dice| {
        let (definition, name, required) = it.member(dice, |_| true)?;
        it.new["$defs"][&definition]["properties"].as_object_mut()?.remove(&name);
        if required {
            it.list(&format!("/$defs/{definition}/required")).retain(|one| *one != name);
        }
        it.note(Breaking, format!("/$defs/{definition}/properties/{name}"), Old)
    }),
    ("a member comes", |it, dice| {
        let (definition, name) = (it.definition(dice)?, it.fresh());
        it.new["$defs"][&definition]["properties"][&name] = json!({ "type": "string" });
        let is_closed = it.old["$defs"][&definition]["additionalProperties"] == false;
        let class = if is_closed { Warning } else { Additive };
        it.note(class, format!("/$defs/{definition}/properties/{name}"), New)
    }),
    ("a required member comes", |it, dice| {
        let (definition, name) = (it.definition(dice)?, it.fresh());
        it.new["$defs"][&definition]["properties"][&name] = json!({ "type": "string" });
        it.list(&format!("/$defs/{definition}/required")).push(name.clone().into());
        it.note(Breaking, format!("/$defs/{definition}/properties/{name}"), New)
    }),
    ("a member becomes required, or optional", |it, dice| {
        let (definition, name, required) = it.member(dice, |_| true)?;
        let list = format!("/$defs/{definition}/required");
        if required {
            it.list(&list).retain(|one| *one != name);
        } else {
            it.list(&list).push(name.clone().into());
        }
        it.note_element(Breaking, &list, name.into(), if required { Old } else { New })
    }),
    ("an object opens, or closes", |it, dice| {
        let definition = it.definition(dice)?;
        it.claim(&format!("open {definition}"))?;
        let schema = it.new["$defs"][&definition].as_object_mut()?;
        let opened = schema.remove("additionalProperties").is_some();
        if !opened {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        it.note(Breaking, format!("/$defs/{definition}/additionalProperties"), if opened { Old } else { New })
    }),
    ("a definition is described", |it, dice| {
        let (definition, name) = (it.definition(dice)?, ["title", "description"][dice.below(2)]);
        it.claim(&format!("{name} {definition}"))?;
        it.new["$defs"][&definition][name] = "words".into();
        it.note(Editorial, format!("/$defs/{definition}/{name}"), New)
    }),
    ("a member is described", |it, dice| {
        it.keyword(dice, (Editorial, "title"), |_| true, Some(json!("words")))
    }),
    ("a member is marked", |it, dice| it.keyword(dice, (Warning, "x-mark"), |_| true, Some(json!(1)))),
    ("a value comes", |it, dice| {
        let (definition, name, _) = it.member(dice, |schema| schema["enum"].is_array())?;
        let (list, value) = (format!("/$defs/{definition}/properties/{name}/enum"), json!("w"));
        let at = dice.below(4);
        it.list(&list).insert(at, value.clone());
        it.note_element(Warning, &list, value, New)
    }),
    ("a value goes", |it, dice| {
        let (definition, name, _) = it.member(dice, |schema| schema["enum"].is_array())?;
        let (list, at) = (format!("/$defs/{definition}/properties/{name}/enum"), dice.below(3));
        let value = it.list(&list).remove(at);
        it.note_element(Breaking, &list, value, Old)
    }),
    ("values are reordered", |it, dice| {
        let (definition, name, _) = it.member(dice, |schema| schema["enum"].is_array())?;
        let list = format!("/$defs/{definition}/properties/{name}/enum");
        it.list(&list).rotate_left(1);
        it.note(Editorial, list, New)
    }),
    ("values are written otherwise", |it, dice| {
        // The same numbers: no change at all.
        let (definition, name, _) = it.member(dice, |schema| schema["maximum"].is_number())?;
        it.schema(&definition, &name)["maximum"] = 50.0.into();
        Some(())
    }),
    ("any value will do", |it, dice| {
        it.keyword(dice, (Breaking, "enum"), |schema| schema["enum"].is_array(), None)
    }),
    ("only some values will do", |it, dice| {
        it.keyword(dice, (Breaking, "enum"), is("string"), Some(json!(["x"])))
    }),
    ("a type is another", |it, dice| {
        it.keyword(dice, (Breaking, "type"), is("string"), Some(json!("boolean")))
    }),
    ("a type is wider", |it, dice| {
        it.keyword(dice, (Breaking, "type"), is("integer"), Some(json!("number")))
    }),
    ("a type is narrower", |it, dice| {
        it.keyword(dice, (Breaking, "type"), is("number"), Some(json!("integer")))
    }),
    ("a type is none", |it, dice| it.keyword(dice, (Breaking, "type"), is("array"), None)),
    ("a bound moves", |it, dice| {
        let value = [json!(7), json!(0.5)][dice.below(2)].clone();
        it.keyword(dice, (Breaking, "minimum"), |schema| schema["minimum"].is_number(), Some(value))
    }),
    ("a bound goes", |it, dice| {
        it.keyword(dice, (Breaking, "minLength"), |schema| schema["minLength"].is_number(), None)
    }),
    ("a bound comes", |it, dice| it.keyword(dice, (Breaking, "maxLength"), is("string"), Some(json!(9)))),
    ("a bound comes that binds nothing", |it, dice| {
        it.keyword(dice, (Editorial, "minLength"), is("string"), Some(json!(0)))
    }),
    ("what may travel outside stays", |it, dice| {
        it.keyword(dice, (Breaking, "x-externalizable"), |schema| schema["x-externalizable"] == true, None)
    }),
    ("what stays may travel outside", |it, dice| {
        it.keyword(dice, (Breaking, "x-externalizable"), is("string"), Some(json!(true)))
    }),
    ("elements are others", |it, dice| {
        let (definition, name, _) = it.member(dice, is("array"))?;
        it.schema(&definition, &name)["items"]["type"] = "integer".into();
        it.note(Breaking, format!("/$defs/{definition}/properties/{name}/items/type"), New)
    }),
    ("others are others", |it, dice| {
        let (definition, name, _) = it.member(dice, |schema| schema["additionalProperties"].is_object())?;
        it.schema(&definition, &name)["additionalProperties"]["type"] = "integer".into();
        it.note(Breaking, format!("/$defs/{definition}/properties/{name}/additionalProperties/type"), New)
    }),
    ("nothing else will do", |it, dice| {
        it.keyword(dice, (Breaking, "const"), is("string"), Some(json!("x")))
    }),
    ("a reference goes elsewhere", |it, _| {
        it.old["$defs"].get("S1")?;
        it.claim("link")?;
        it.new["$defs"]["D0"]["properties"]["link"]["$ref"] = "#/$defs/S1".into();
        it.note(Breaking, "/$defs/D0/properties/link/$ref", New)
    }),
    ("a definition is called otherwise", |it, _| {
        it.claim("link")?;
        let same = it.old["$defs"]["D1"].clone();
        it.new["$defs"]["Alias"] = same;
        it.new["$defs"]["D0"]["properties"]["link"]["$ref"] = "#/$defs/Alias".into();
        it.note(Additive, "/$defs/Alias", New);
        it.note(Editorial, "/$defs/D0/properties/link/$ref", New)
    }),
];
