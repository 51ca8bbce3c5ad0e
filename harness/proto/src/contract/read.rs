//! The one reader of contracts. It goes over the tape, so that a fault can say where it is, and goes on after a fault, so
//! that all of them are found at once.

use super::{Contract, ContractFault, ContractFaults, Definitions, Method, MethodKind, Reason, Side};
use crate::json::{AmbiguityKind, Kind, Node, Tape};
use crate::schema::Validator;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// How many faults are told of one document; finding the place of one takes a walk.
const FAULTS_MAX: usize = 200;

/// Reads a document of the published form.
pub(super) fn read(text: &[u8]) -> Result<Contract, ContractFaults> {
    let tape = Tape::scan(text)
        .map_err(|fault| ContractFault { pointer: String::new(), says: format!("no JSON: {fault}") })?;
    let reader = Reader { root: tape.root(), found: RefCell::default() };
    let contract = reader.contract(&tape);
    let Found { mut faults, more } = reader.found.into_inner();
    // In the order of the text, whatever was looked at first.
    faults.sort_by_key(|(at, _)| *at);
    let faults = ContractFaults { faults: faults.into_iter().map(|(_, fault)| fault).collect(), more };
    match contract {
        Some(contract) if faults.faults.is_empty() => Ok(contract),
        _ => Err(faults),
    }
}

/// Where a reference to a definition points.
pub(super) const DEFS: &str = "#/$defs/";

/// How deep a contract may be nested, and how long a chain of references may be. Together they bound how deep the
/// compiler and the validators, which recurse over the contract, ever go.
const DEPTH_MAX: u32 = 32;
const REFERENCE_DEPTH_MAX: u32 = 16;

/// What a schema may be of.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

struct Reader<'a> {
    root: Node<'a>,
    found: RefCell<Found>,
}

/// The faults so far, each with where in the text it is.
#[derive(Default)]
struct Found {
    faults: Vec<(usize, ContractFault)>,
    more: u64,
}

/// A fault that is not noted yet.
struct Fault<'a> {
    node: Node<'a>,
    says: String,
}

type Read<'a, T> = Result<T, Fault<'a>>;

/// The names of the definitions; `None` where there are none to read, and so no reference can be told wrong.
type Names<'n, 'a> = Option<&'n BTreeSet<Cow<'a, str>>>;

impl<'a> Reader<'a> {
    fn contract(&self, tape: &Tape<'_>) -> Option<Contract> {
        self.noted(object(self.root))?;
        let document = self.document(tape);
        let names = self.noted(member(self.root, "$defs").and_then(|defs| object(defs)));
        let names = names.map(|defs| self.definitions(defs));
        let names = names.as_ref();
        let id = self.noted(member(self.root, "protocolID").and_then(|id| text(id)));
        let major = self.noted(member(self.root, "protocolMajor").and_then(|it| integer(it, 1)));
        let methods = self.methods(names);
        let reasons = self.reasons();
        let events = self.noted(member(self.root, "interceptEvents").and_then(|it| self.texts(it)));
        let limits = self.limits();
        // What is compiled must have passed: the compiler recurses.
        if !self.found.borrow().faults.is_empty() {
            return None;
        }
        let document = document?;
        let definitions = match compiled(&document) {
            Ok(definitions) => Arc::new(definitions),
            Err(says) => {
                self.note(Fault { node: self.root.get("$defs").unwrap_or(self.root), says });
                return None;
            }
        };
        let id = id?.into_owned();
        Some(Contract { id, major: major?, methods, reasons, events: events?, limits, document, definitions })
    }

    /// Checks what a value cannot hold or a reader may take in two ways, and gives the value.
    fn document(&self, tape: &Tape<'_>) -> Option<Value> {
        for (_, node) in self.root.walk() {
            if let Some(name) = node.duplicate() {
                self.note(Fault { node, says: format!("member {name:?} stands twice") });
            }
            if node.kind() == Kind::Number && node.as_f64().is_none() {
                self.note(Fault { node, says: "the number is beyond 64-bit floats".to_owned() });
            }
        }
        if let Some(half) = self.root.ambiguity().filter(|it| it.kind == AmbiguityKind::LoneSurrogate) {
            let node = self.root.pointer(&half.pointer).unwrap_or(self.root);
            self.note(Fault { node, says: format!("half a surrogate pair, at byte {}", half.at) });
        } else if tape.has_lone_surrogate() {
            self.note(Fault { node: self.root, says: "some string holds half a surrogate pair".to_owned() });
        }
        if tape.depth() > DEPTH_MAX {
            self.note(Fault { node: self.root, says: format!("nested deeper than {DEPTH_MAX} levels") });
            return None;
        }
        self.root.to_value()
    }

    /// Checks that the definitions use nothing but what contracts may use, and returns their names.
    fn definitions(&self, defs: Node<'a>) -> BTreeSet<Cow<'a, str>> {
        let names: BTreeSet<_> = defs.members().map(|(name, _)| name).collect();
        let mut references = BTreeMap::new();
        for (name, definition) in defs.members() {
            if name.contains(['/', '~', '%', '.']) {
                let says = "a definition's name may not hold `/`, `~`, `%` or `.`".to_owned();
                self.note(Fault { node: definition, says });
            }
            references.insert(name, self.definition(definition, &names));
        }
        // Each round does away with the definitions that refer to none of those left; what is still left is too deep.
        for _ in 0..REFERENCE_DEPTH_MAX {
            let open: BTreeSet<_> = references.keys().cloned().collect();
            references.retain(|_, to| !to.is_disjoint(&open));
        }
        if let Some((name, _)) = references.first_key_value() {
            let says = format!("refers to itself, or to others more than {REFERENCE_DEPTH_MAX} levels deep");
            self.note(Fault { node: defs.get(name).unwrap_or(defs), says });
        }
        names
    }

    /// Checks one definition and returns which others it refers to.
    fn definition(&self, definition: Node<'a>, names: &BTreeSet<Cow<'a, str>>) -> BTreeSet<Cow<'a, str>> {
        let mut references = BTreeSet::new();
        let mut schemas = vec![definition];
        while let Some(schema) = schemas.pop() {
            if schema.kind() == Kind::Bool || self.noted(object(schema)).is_none() {
                continue;
            }
            for (keyword, value) in schema.members() {
                match &*keyword {
                    "$ref" => references.extend(self.noted(reference(value, Some(names)))),
                    "properties" => {
                        let members = self.noted(object(value)).map(Node::members);
                        schemas.extend(members.into_iter().flatten().map(|(_, schema)| schema));
                    }
                    "items" | "additionalProperties" => schemas.push(value),
                    keyword => {
                        self.noted(self.keyword(keyword, value));
                    }
                }
            }
        }
        references
    }

    /// Checks the value of a keyword that holds no schema.
    fn keyword(&self, keyword: &str, value: Node<'a>) -> Read<'a, ()> {
        match keyword {
            "type" => {
                let name = text(value)?;
                if !TYPES.contains(&&*name) {
                    return fault(value, format!("{name:?} is no type"));
                }
            }
            "required" => drop(self.texts(value)?),
            "enum" => drop(array(value)?),
            "minLength" | "maxLength" | "minItems" | "maxItems" => drop(integer::<u64>(value, 0)?),
            "minimum" | "maximum" => drop(expect(value, Kind::Number)?),
            "const" | "title" | "description" => {}
            mark if mark.starts_with("x-") => {}
            other => return fault(value, format!("contracts do not use the keyword {other:?}")),
        }
        Ok(())
    }

    fn methods(&self, names: Names<'_, 'a>) -> BTreeMap<String, Method> {
        let methods = self.noted(member(self.root, "methods").and_then(|it| object(it)));
        let methods = methods.into_iter().flat_map(Node::members);
        methods
            .filter_map(|(name, node)| self.method(&name, node, names))
            .map(|it| (it.name.clone(), it))
            .collect()
    }

    fn method(&self, name: &str, method: Node<'a>, names: Names<'_, 'a>) -> Option<Method> {
        self.noted(object(method))?;
        let direction = self.noted(member(method, "direction").and_then(|it| direction(it)));
        let kind = direction.map(|(_, kind)| kind);
        let notification = self.noted(member(method, "notification"));
        let notified = notification.and_then(|it| self.noted(truth(it)));
        if let (Some(node), Some(kind), Some(notified)) = (notification, kind, notified)
            && notified != (kind == MethodKind::Notification)
        {
            self.note(Fault { node, says: "the direction says otherwise".to_owned() });
        }
        let class = self.noted(member(method, "class").and_then(|it| text(it)));
        let params = self.noted(member(method, "params").and_then(|it| optional_reference(it, names)));
        let result = self.noted(member(method, "result"));
        let result_of = result.and_then(|it| self.noted(optional_reference(it, names)));
        if let (Some(node), Some(MethodKind::Notification), Some(Some(_))) = (result, kind, &result_of) {
            self.note(Fault { node, says: "a notification has no result".to_owned() });
        }
        let volatile = method.get("x-volatile").map_or(Some(Vec::new()), |list| self.noted(self.texts(list)));
        let (name, (from, kind), class) = (name.to_owned(), direction?, class?.into_owned());
        Some(Method { name, from, kind, class, params: params?, result: result_of?, volatile: volatile? })
    }

    fn reasons(&self) -> BTreeMap<String, Reason> {
        let errors = self.noted(member(self.root, "errors").and_then(|it| array(it)));
        let mut reasons = BTreeMap::new();
        for error in errors.into_iter().flat_map(Node::elements) {
            if self.noted(object(error)).is_none() {
                continue;
            }
            let named = self.noted(member(error, "reason"));
            let name = named.and_then(|it| self.noted(text(it)));
            let code = self.noted(member(error, "jsonRpcCode").and_then(|it| integer(it, i64::MIN)));
            let retryable = self.noted(member(error, "retryable").and_then(|it| truth(it)));
            let (Some(node), Some(name)) = (named, name.map(Cow::into_owned)) else { continue };
            // One that is wrong elsewhere still has its name.
            let (code, retryable) = (code.unwrap_or_default(), retryable.unwrap_or_default());
            if reasons.insert(name.clone(), Reason { name, code, retryable }).is_some() {
                self.note(Fault { node, says: "the reason stands twice".to_owned() });
            }
        }
        reasons
    }

    fn limits(&self) -> BTreeMap<String, u64> {
        let limits = self.noted(member(self.root, "limits").and_then(|it| object(it)));
        let limits = limits.into_iter().flat_map(Node::members);
        limits.filter_map(|(name, it)| Some((name.into_owned(), self.noted(integer(it, 1))?))).collect()
    }

    /// An array of strings, none of which stands twice. Each wrong element is a fault of its own.
    fn texts(&self, node: Node<'a>) -> Read<'a, Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut texts = Vec::new();
        for element in array(node)?.elements() {
            let Some(text) = self.noted(text(element)) else { continue };
            texts.push(text.clone().into_owned());
            if !seen.insert(text) {
                self.note(Fault { node: element, says: "the name stands twice".to_owned() });
            }
        }
        Ok(texts)
    }

    /// What was read; what is wrong with it instead is noted.
    fn noted<T>(&self, read: Read<'a, T>) -> Option<T> {
        read.map_err(|fault| self.note(fault)).ok()
    }

    fn note(&self, fault: Fault<'a>) {
        let mut found = self.found.borrow_mut();
        if found.faults.len() == FAULTS_MAX {
            found.more += 1;
            return;
        }
        let pointer = self.root.pointer_to(fault.node).unwrap_or_default();
        found.faults.push((fault.node.offset(), ContractFault { pointer, says: fault.says }));
    }
}

// ---- single values ----

fn direction(node: Node<'_>) -> Read<'_, (Side, MethodKind)> {
    Ok(match &*text(node)? {
        "host_to_extension_request" => (Side::Host, MethodKind::Request),
        "host_to_extension_notification" => (Side::Host, MethodKind::Notification),
        "extension_to_host_request" => (Side::Guest, MethodKind::Request),
        "extension_to_host_notification" => (Side::Guest, MethodKind::Notification),
        other => return fault(node, format!("{other:?} is no direction")),
    })
}

fn optional_reference<'a>(node: Node<'a>, names: Names<'_, 'a>) -> Read<'a, Option<String>> {
    if node.is_null() {
        return Ok(None);
    }
    Ok(Some(reference(member(node, "$ref")?, names)?.into_owned()))
}

/// The name of the definition that a `$ref` refers to.
fn reference<'a>(node: Node<'a>, names: Names<'_, 'a>) -> Read<'a, Cow<'a, str>> {
    let text = text(node)?;
    let name = text.strip_prefix(DEFS).map(|name| Cow::Owned(name.to_owned()));
    let known = name.filter(|name| names.is_none_or(|names| names.contains(name)));
    known.map_or_else(|| fault(node, format!("{text:?} refers to no definition")), Ok)
}

fn member<'a>(node: Node<'a>, name: &str) -> Read<'a, Node<'a>> {
    let member = object(node)?.get(name);
    member.map_or_else(|| fault(node, format!("member {name:?} is missing")), Ok)
}

fn object(node: Node<'_>) -> Read<'_, Node<'_>> {
    expect(node, Kind::Object)
}

fn array(node: Node<'_>) -> Read<'_, Node<'_>> {
    expect(node, Kind::Array)
}

fn text(node: Node<'_>) -> Read<'_, Cow<'_, str>> {
    Ok(expect(node, Kind::String)?.as_str().unwrap_or_default())
}

fn truth(node: Node<'_>) -> Read<'_, bool> {
    Ok(expect(node, Kind::Bool)?.as_bool().unwrap_or_default())
}

fn integer<T>(node: Node<'_>, min: T) -> Read<'_, T>
where
    T: Copy + TryFrom<i128> + PartialOrd + std::fmt::Display,
{
    let value = node.as_u64().map(i128::from).or(node.as_i64().map(i128::from));
    let value = value.and_then(|value| T::try_from(value).ok()).filter(|value| *value >= min);
    value.map_or_else(|| fault(node, format!("must be an integer of at least {min} that fits")), Ok)
}

fn expect(node: Node<'_>, kind: Kind) -> Read<'_, Node<'_>> {
    if node.kind() == kind { Ok(node) } else { fault(node, format!("{} instead of {kind}", node.kind())) }
}

fn fault<T>(node: Node<'_>, says: String) -> Read<'_, T> {
    Err(Fault { node, says })
}

/// Compiles all definitions at once, which finds whatever the reader did not.
fn compiled(document: &Value) -> Result<Definitions, String> {
    let defs = &document["$defs"];
    let names = || defs.as_object().into_iter().flat_map(|defs| defs.keys());
    let all: serde_json::Map<_, _> =
        names().map(|name| (name.clone(), json!({ "$ref": format!("{DEFS}{name}") }))).collect();
    let mut probe = json!({ "$defs": defs });
    probe["$defs"][""] = json!({ "properties": all });
    Validator::new(&probe, "").map_err(|fault| fault.says)?;
    Ok(Definitions {
        document: json!({ "$defs": defs }),
        compiled: names().map(|name| (name.clone(), OnceLock::new())).collect(),
    })
}
