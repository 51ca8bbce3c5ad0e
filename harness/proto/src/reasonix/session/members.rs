//! Params and results: their members, how they are named and written, and what must not stand in them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Pair, keys, pair};
use crate::contract::{Contract, Side, Side::Guest};
use crate::exchange::short;
use crate::json::{Kind, Node};
use crate::judge::{Framed, Notes};
use crate::reasonix::contract;
use crate::requirement::Rule;
use crate::schema::Validator;

/// Params and results of a side fit their definitions, by value.
pub static MEMBERS_FIT: Pair = pair("members-fit", "host-members-fit");
/// A side writes no member in other letters than its definition does.
pub static NAMES_EXACT: Pair = pair("names-exact", "host-names-exact");
/// Where a definition asks for an integer, a side writes one without fraction or exponent.
pub static INTEGERS_WRITTEN: Pair = pair("integers-written", "host-integers-written");
/// What the guest says of itself and of its models has no key in it.
pub static CREDENTIALS_ABSENT: Rule = Rule { name: "credentials-absent", binds: Guest, assumes: &[] };

/// What the contract says of members.
#[derive(Debug)]
pub(super) struct Members<'c> {
    /// Who is watched.
    side: Side,
    /// The members that some definition types as an integer.
    integers: BTreeSet<&'c str>,
    /// The members whose values nobody looks into.
    unread: BTreeSet<&'c str>,
    /// Every member of every definition, by its name in lower case.
    names: BTreeMap<String, &'c str>,
    params: BTreeMap<&'c str, &'c Validator>,
    results: BTreeMap<&'c str, &'c Validator>,
}

impl<'c> Members<'c> {
    pub(super) fn new(contract: &'c Contract, side: Side) -> Self {
        let (mut integers, mut unread, mut names) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let definitions = contract.document().get("$defs").and_then(|defs| defs.as_object());
        let definitions = definitions.into_iter().flat_map(|defs| defs.values());
        let members = definitions.filter_map(|def| def.get("properties")?.as_object()).flatten();
        for (name, schema) in members {
            names.insert(name.to_ascii_lowercase(), name.as_str());
            match schema.get("type").and_then(|kind| kind.as_str()) {
                Some("integer") => drop(integers.insert(name.as_str())),
                Some("object") => drop(unread.insert(name.as_str())),
                None if schema.get("$ref").is_none() => drop(unread.insert(name.as_str())),
                _ => {}
            }
        }
        let by_name = |validator: fn(&'c Contract, &str) -> Option<&'c Validator>| {
            contract
                .methods
                .keys()
                .filter_map(|name| Some((name.as_str(), validator(contract, name)?)))
                .collect()
        };
        Self {
            side,
            integers,
            unread,
            names,
            params: by_name(Contract::params_validator),
            results: by_name(Contract::result_validator),
        }
    }

    /// What is wrong with the params of a method.
    pub(super) fn params_fault(&self, method: &str, params: Option<Node<'_>>) -> Option<String> {
        told(method, "params", self.params.get(method)?, params?)
    }

    /// What is wrong with the result that a frame carries.
    pub(super) fn result_fault(&self, frame: &Framed<'_, 'c>, result: Node<'_>) -> Option<String> {
        let method = frame.answers.as_ref()?.method?;
        told(&method.name, "result", self.results.get(method.name.as_str())?, result)
    }

    /// The watched side asks or tells something.
    pub(super) fn params(
        &self,
        frame: &Framed<'_, 'c>,
        method: &str,
        params: Node<'_>,
        notes: &mut Notes<'_>,
    ) {
        if frame.method.is_some_and(|known| known.from == self.side) {
            self.fit(self.params_fault(method, Some(params)), params, notes);
        }
    }

    /// The watched side answers a request that the contract has.
    pub(super) fn result(&self, frame: &Framed<'_, 'c>, result: Node<'_>, notes: &mut Notes<'_>) {
        let Some(method) = frame.answers.as_ref().and_then(|asked| asked.method) else { return };
        self.fit(self.result_fault(frame, result), result, notes);
        if matches!(method.name.as_str(), contract::INITIALIZE | contract::PROVIDER_CATALOG) {
            let key = result.walk().find_map(|(_, node)| {
                let text = node.as_str()?;
                keys::key_in(&text).map(|key| key.chars().take(6).collect::<String>())
            });
            notes.note(&CREDENTIALS_ABSENT, key.is_none(), || {
                format!("something that looks like a key, which begins with {:?}", key.unwrap_or_default())
            });
        }
    }

    fn fit(&self, fault: Option<String>, value: Node<'_>, notes: &mut Notes<'_>) {
        match fault {
            None => notes.kept(NAMES_EXACT.of(self.side)),
            Some(_) => {
                if let Some(actual) = self.misnamed(value) {
                    notes.broken(NAMES_EXACT.of(self.side), || actual);
                }
            }
        }
        notes.note(MEMBERS_FIT.of(self.side), fault.is_none(), || fault.unwrap_or_default());
        self.integers(value, notes);
    }

    /// A member that would be known in other letters.
    fn misnamed(&self, value: Node<'_>) -> Option<String> {
        self.search(value, |name, _| {
            let known = self.names.get(&name.to_ascii_lowercase())?;
            (*known != name && !self.names.values().any(|it| *it == name))
                .then(|| format!("{} where {known} is meant", short(name)))
        })
    }

    fn integers(&self, value: Node<'_>, notes: &mut Notes<'_>) {
        let odd = value.walk().any(|(_, node)| node.kind() == Kind::Number && !node.is_written_as_integer());
        // Rare, so it may take its time.
        let found = if odd {
            self.search(value, |name, member| {
                (self.integers.contains(name) && member.is_integer() && !member.is_written_as_integer())
                    .then(|| format!("{name} written as {}", short(member.raw())))
            })
        } else {
            None
        };
        notes.note(INTEGERS_WRITTEN.of(self.side), found.is_none(), || found.unwrap_or_default());
    }

    /// Goes down member by member, past what nobody looks into.
    fn search(&self, value: Node<'_>, found: impl Fn(&str, Node<'_>) -> Option<String>) -> Option<String> {
        let mut open = vec![value];
        while let Some(node) = open.pop() {
            if node.kind() == Kind::Array {
                open.extend(node.elements());
                continue;
            }
            for (name, member) in node.members() {
                if let Some(it) = found(&name, member) {
                    return Some(it);
                }
                if !self.unread.contains(&*name) && matches!(member.kind(), Kind::Object | Kind::Array) {
                    open.push(member);
                }
            }
        }
        None
    }
}

fn told(method: &str, part: &str, validator: &Validator, value: Node<'_>) -> Option<String> {
    let violation = validator.check(value)?;
    let at = if violation.pointer.is_empty() { String::new() } else { format!("{} ", violation.pointer) };
    Some(format!("{part} of {method}: {at}{}", violation.says))
}
