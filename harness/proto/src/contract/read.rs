//! The one reader of contracts. It goes over the tape, so that a fault can say where it is.

use super::{Contract, ContractFault, Definitions, Method, MethodKind, Reason, Side};
use crate::json::{Kind, Node, Tape};
use crate::schema::Validator;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Reads a document of the published form.
pub(super) fn read(text: &[u8]) -> Result<Contract, ContractFault> {
    let tape = Tape::scan(text)
        .map_err(|fault| ContractFault { pointer: String::new(), says: format!("no JSON: {fault}") })?;
    let reader = Reader { root: tape.root() };
    let document = reader.document(&tape)?;
    let defs = reader.definitions()?;
    Ok(Contract {
        id: reader.text(reader.member(reader.root, "protocolID")?)?.into_owned(),
        major: reader.integer(reader.member(reader.root, "protocolMajor")?, 1)?,
        methods: reader.methods(&defs)?,
        reasons: reader.reasons()?,
        events: reader.events()?,
        limits: reader.limits()?,
        definitions: Arc::new(compiled(&document)?),
        document,
    })
}

/// Where a reference to a definition points.
const DEFS: &str = "#/$defs/";

/// How deep a contract may be nested, and how long a chain of references may be. Together they bound how deep the
/// compiler and the validators, which recurse over the contract, ever go.
const DEPTH_MAX: u32 = 32;
const REFERENCE_DEPTH_MAX: u32 = 16;

struct Reader<'a> {
    root: Node<'a>,
}

impl<'a> Reader<'a> {
    fn document(&self, tape: &Tape<'_>) -> Result<Value, ContractFault> {
        if let Some((node, name)) = self.root.walk().find_map(|(_, node)| Some((node, node.duplicate()?))) {
            return self.fault(node, &format!("member {name:?} stands twice"));
        }
        if tape.has_lone_surrogate() {
            return self.fault(self.root, "some string holds half a surrogate pair");
        }
        if tape.depth() > DEPTH_MAX {
            return self.fault(self.root, &format!("nested deeper than {DEPTH_MAX} levels"));
        }
        self.root.to_value().map_or_else(|| self.fault(self.root, "some number is beyond 64-bit floats"), Ok)
    }

    /// Checks that the definitions use nothing but what contracts may use, and returns their names.
    fn definitions(&self) -> Result<BTreeSet<Cow<'a, str>>, ContractFault> {
        let defs = self.object(self.member(self.root, "$defs")?)?;
        let names: BTreeSet<_> = defs.members().map(|(name, _)| name).collect();
        let mut references = BTreeMap::new();
        for (name, definition) in defs.members() {
            if name.contains(['/', '~', '%', '.']) {
                return self.fault(definition, "a definition's name may not hold `/`, `~`, `%` or `.`");
            }
            references.insert(name, self.definition(definition, &names)?);
        }
        // Each round does away with the definitions that refer to none of those left; what is still left is too deep.
        for _ in 0..REFERENCE_DEPTH_MAX {
            let open: BTreeSet<_> = references.keys().cloned().collect();
            references.retain(|_, to| !to.is_disjoint(&open));
        }
        let Some((name, _)) = references.first_key_value() else { return Ok(names) };
        let says = format!("refers to itself, or to others more than {REFERENCE_DEPTH_MAX} levels deep");
        self.fault(defs.get(name).unwrap_or(defs), &says)
    }

    /// Checks one definition and returns which others it refers to.
    fn definition(
        &self,
        definition: Node<'a>,
        names: &BTreeSet<Cow<'a, str>>,
    ) -> Result<BTreeSet<Cow<'a, str>>, ContractFault> {
        let mut references = BTreeSet::new();
        let mut schemas = vec![definition];
        while let Some(schema) = schemas.pop() {
            if schema.kind() == Kind::Bool {
                continue;
            }
            for (keyword, value) in self.object(schema)?.members() {
                match &*keyword {
                    "$ref" => {
                        references.insert(self.reference(value, names)?);
                    }
                    "properties" => schemas.extend(self.object(value)?.members().map(|(_, schema)| schema)),
                    "items" | "additionalProperties" => schemas.push(value),
                    "type" => {
                        self.text(value)?;
                    }
                    "required" => {
                        self.texts(value)?;
                    }
                    "enum" => {
                        self.array(value)?;
                    }
                    "minLength" | "maxLength" | "minItems" | "maxItems" => {
                        self.integer::<u64>(value, 0)?;
                    }
                    "minimum" | "maximum" => {
                        self.expect(value, Kind::Number)?;
                    }
                    "const" | "title" | "description" => {}
                    mark if mark.starts_with("x-") => {}
                    other => {
                        return self.fault(value, &format!("contracts do not use the keyword {other:?}"));
                    }
                }
            }
        }
        Ok(references)
    }

    fn methods(&self, defs: &BTreeSet<Cow<'a, str>>) -> Result<BTreeMap<String, Method>, ContractFault> {
        let mut methods = BTreeMap::new();
        for (name, method) in self.object(self.member(self.root, "methods")?)?.members() {
            let direction = self.member(method, "direction")?;
            let (from, kind) = match &*self.text(direction)? {
                "host_to_extension_request" => (Side::Host, MethodKind::Request),
                "host_to_extension_notification" => (Side::Host, MethodKind::Notification),
                "extension_to_host_request" => (Side::Guest, MethodKind::Request),
                "extension_to_host_notification" => (Side::Guest, MethodKind::Notification),
                other => return self.fault(direction, &format!("{other:?} is no direction")),
            };
            let notification = self.member(method, "notification")?;
            if self.truth(notification)? != (kind == MethodKind::Notification) {
                return self.fault(notification, "the direction says otherwise");
            }
            let class = self.text(self.member(method, "class")?)?.into_owned();
            let params = self.optional_reference(self.member(method, "params")?, defs)?;
            let result = self.member(method, "result")?;
            let result_of = self.optional_reference(result, defs)?;
            if kind == MethodKind::Notification && result_of.is_some() {
                return self.fault(result, "a notification has no result");
            }
            let volatile = match method.get("x-volatile") {
                Some(list) => self.texts(list)?,
                None => Vec::new(),
            };
            let name = name.into_owned();
            methods.insert(
                name.clone(),
                Method { name, from, kind, class, params, result: result_of, volatile },
            );
        }
        Ok(methods)
    }

    fn reasons(&self) -> Result<BTreeMap<String, Reason>, ContractFault> {
        let mut reasons = BTreeMap::new();
        for error in self.array(self.member(self.root, "errors")?)?.elements() {
            let name_node = self.member(error, "reason")?;
            let name = self.text(name_node)?.into_owned();
            let code = self.integer(self.member(error, "jsonRpcCode")?, i64::MIN)?;
            let retryable = self.truth(self.member(error, "retryable")?)?;
            if reasons.insert(name.clone(), Reason { name, code, retryable }).is_some() {
                return self.fault(name_node, "the reason stands twice");
            }
        }
        Ok(reasons)
    }

    fn events(&self) -> Result<Vec<String>, ContractFault> {
        self.texts(self.member(self.root, "interceptEvents")?)
    }

    fn limits(&self) -> Result<BTreeMap<String, u64>, ContractFault> {
        let limits = self.object(self.member(self.root, "limits")?)?.members();
        limits.map(|(name, limit)| Ok((name.into_owned(), self.integer(limit, 1)?))).collect()
    }

    fn optional_reference(
        &self,
        node: Node<'a>,
        names: &BTreeSet<Cow<'a, str>>,
    ) -> Result<Option<String>, ContractFault> {
        if node.is_null() {
            return Ok(None);
        }
        Ok(Some(self.reference(self.member(node, "$ref")?, names)?.into_owned()))
    }

    /// The name of the definition that a `$ref` refers to.
    fn reference(
        &self,
        node: Node<'a>,
        names: &BTreeSet<Cow<'a, str>>,
    ) -> Result<Cow<'a, str>, ContractFault> {
        let text = self.text(node)?;
        let known = text.strip_prefix(DEFS).and_then(|name| names.get(name));
        known.cloned().map_or_else(|| self.fault(node, &format!("{text:?} refers to no definition")), Ok)
    }

    fn member(&self, node: Node<'a>, name: &str) -> Result<Node<'a>, ContractFault> {
        let member = self.object(node)?.get(name);
        member.map_or_else(|| self.fault(node, &format!("member {name:?} is missing")), Ok)
    }

    fn object(&self, node: Node<'a>) -> Result<Node<'a>, ContractFault> {
        self.expect(node, Kind::Object)
    }

    fn array(&self, node: Node<'a>) -> Result<Node<'a>, ContractFault> {
        self.expect(node, Kind::Array)
    }

    fn text(&self, node: Node<'a>) -> Result<Cow<'a, str>, ContractFault> {
        Ok(self.expect(node, Kind::String)?.as_str().unwrap_or_default())
    }

    /// An array of strings, none of which stands twice.
    fn texts(&self, node: Node<'a>) -> Result<Vec<String>, ContractFault> {
        let mut seen = BTreeSet::new();
        let mut texts = Vec::new();
        for element in self.array(node)?.elements() {
            let text = self.text(element)?;
            texts.push(text.clone().into_owned());
            if !seen.insert(text) {
                return self.fault(element, "the name stands twice");
            }
        }
        Ok(texts)
    }

    fn truth(&self, node: Node<'a>) -> Result<bool, ContractFault> {
        Ok(self.expect(node, Kind::Bool)?.as_bool().unwrap_or_default())
    }

    fn integer<T>(&self, node: Node<'a>, min: T) -> Result<T, ContractFault>
    where
        T: Copy + TryFrom<i128> + PartialOrd + std::fmt::Display,
    {
        let value = node.as_u64().map(i128::from).or(node.as_i64().map(i128::from));
        let value = value.and_then(|value| T::try_from(value).ok()).filter(|value| *value >= min);
        value.map_or_else(|| self.fault(node, &format!("must be an integer of at least {min} that fits")), Ok)
    }

    fn expect(&self, node: Node<'a>, kind: Kind) -> Result<Node<'a>, ContractFault> {
        if node.kind() == kind {
            Ok(node)
        } else {
            self.fault(node, &format!("{} instead of {kind}", node.kind()))
        }
    }

    fn fault<T>(&self, node: Node<'_>, says: &str) -> Result<T, ContractFault> {
        let pointer = self.root.pointer_to(node).unwrap_or_default();
        Err(ContractFault { pointer, says: says.to_owned() })
    }
}

/// Compiles all definitions at once, which finds whatever the reader did not.
fn compiled(document: &Value) -> Result<Definitions, ContractFault> {
    let defs = &document["$defs"];
    let names = || defs.as_object().into_iter().flat_map(|defs| defs.keys());
    let all: serde_json::Map<_, _> =
        names().map(|name| (name.clone(), json!({ "$ref": format!("{DEFS}{name}") }))).collect();
    let mut probe = json!({ "$defs": defs });
    probe["$defs"][""] = json!({ "properties": all });
    Validator::new(&probe, "")
        .map_err(|fault| ContractFault { pointer: "/$defs".to_owned(), says: fault.says })?;
    Ok(Definitions {
        document: json!({ "$defs": defs }),
        compiled: names().map(|name| (name.clone(), OnceLock::new())).collect(),
    })
}
