//! A protocol's contract as owned data, read from a document of the published form: definitions, methods, error
//! reasons, events and limits.
//!
//! A contract is refused where it is read or not at all: what [`Contract::read`] accepts compiles, refers to nothing
//! outside itself, and is not recursive, so that validating a value goes no deeper than the contract.

pub mod diff;
mod read;

use crate::digest;
use crate::schema::Validator;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// One of the two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The program that runs guests.
    Host,
    /// The sidecar, plugin or app.
    Guest,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn opposite(self) -> Side {
        match self {
            Side::Host => Side::Guest,
            Side::Guest => Side::Host,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Host => "host",
            Side::Guest => "guest",
        })
    }
}

/// What one side may ask or tell the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name on the wire.
    pub name: String,
    /// Who sends it.
    pub from: Side,
    /// Whether it is answered.
    pub kind: MethodKind,
    /// The family that the contract counts it to.
    pub class: String,
    /// The definition of its params, if the contract has one.
    pub params: Option<String>,
    /// The definition of its result, if it has one.
    pub result: Option<String>,
    /// The members of its frames, as JSON pointers into them, that may differ each time: `x-volatile` in the document,
    /// which is ours and no part of the published form.
    pub volatile: Vec<String>,
}

/// Whether a method is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MethodKind {
    /// It is.
    Request,
    /// It must not be.
    Notification,
}

/// A reason that an error may give, and what must stand beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its name in the error's data.
    pub name: String,
    /// The JSON-RPC code that goes with it.
    pub code: i64,
    /// Whether trying again may help.
    pub retryable: bool,
}

/// Something that a contract may hold or not, for requirements that only apply where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// A method of this name.
    Method(&'static str),
    /// A member of a definition: `Definition.member`.
    Member(&'static str),
    /// An error reason of this name.
    Reason(&'static str),
    /// A definition of this name.
    Definition(&'static str),
}

/// A contract.
#[derive(Clone, Debug)]
pub struct Contract {
    /// The protocol's name on the wire.
    pub id: String,
    /// The protocol's major version.
    pub major: u32,
    /// The methods, by name.
    pub methods: BTreeMap<String, Method>,
    /// The error reasons, by name.
    pub reasons: BTreeMap<String, Reason>,
    /// The points at which a host lets guests look or step in, as the contract orders them.
    pub events: Vec<String>,
    /// The limits, by name.
    pub limits: BTreeMap<String, u64>,
    document: Value,
    definitions: Arc<Definitions>,
}

/// Why a document is no contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFault {
    /// Where in the document.
    pub pointer: String,
    /// What is wrong there, on one line.
    pub says: String,
}

/// Everything that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFaults {
    /// What is wrong, in the order of the text; at least one.
    pub faults: Vec<ContractFault>,
    /// How many more there are, where there are too many to tell.
    pub more: u64,
}

impl Contract {
    /// Reads a document of the published form. What is wrong with another is the first thing in its text.
    pub fn read(text: &[u8]) -> Result<Contract, ContractFault> {
        Contract::examine(text).map_err(|wrong| {
            let unknown = || ContractFault { pointer: String::new(), says: "it is no contract".to_owned() };
            wrong.faults.into_iter().next().unwrap_or_else(unknown)
        })
    }

    /// Reads a document of the published form, or says everything that is wrong with it.
    pub fn examine(text: &[u8]) -> Result<Contract, ContractFaults> {
        read::read(text)
    }

    /// The method of that name.
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.get(name)
    }

    /// The error reason of that name.
    pub fn reason(&self, name: &str) -> Option<&Reason> {
        self.reasons.get(name)
    }

    /// The limit of that name.
    pub fn limit(&self, name: &str) -> Option<u64> {
        self.limits.get(name).copied()
    }

    /// Whether the contract holds `fact`.
    pub fn has(&self, fact: Fact) -> bool {
        match fact {
            Fact::Method(name) => self.methods.contains_key(name),
            Fact::Reason(name) => self.reasons.contains_key(name),
            Fact::Definition(name) => self.definitions.compiled.contains_key(name),
            Fact::Member(path) => path
                .split_once('.')
                .is_some_and(|(definition, member)| self.member(definition, member).is_some()),
        }
    }

    /// Whether the contract lets this member's value travel outside of its frame.
    pub fn externalizable(&self, definition: &str, member: &str) -> bool {
        self.member(definition, member).is_some_and(|schema| schema["x-externalizable"] == true)
    }

    /// What checks the params of a method, if the contract defines them. Compiled when first asked for.
    pub fn params_validator(&self, method: &str) -> Option<&Validator> {
        self.definition_validator(self.method(method)?.params.as_deref()?)
    }

    /// What checks the result of a method, if the contract defines it. Compiled when first asked for.
    pub fn result_validator(&self, method: &str) -> Option<&Validator> {
        self.definition_validator(self.method(method)?.result.as_deref()?)
    }

    /// What checks a value of that definition, if there is one. Compiled when first asked for.
    pub fn definition_validator(&self, name: &str) -> Option<&Validator> {
        self.definitions.validator(name)
    }

    /// The names of the definitions.
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        self.definitions.compiled.keys().map(String::as_str)
    }

    /// The document, as it was read (or as [`Contract::with_limits`] changed it).
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// SHA-256, in lowercase hexadecimal, of the document's canonical form: compact, names sorted. That of the text
    /// itself is the same ([`published`](crate::json::Node::published)) where all numbers are written as plain as can be.
    pub fn hash(&self) -> String {
        digest::sha256(self.document.to_string().as_bytes())
    }

    /// The same contract with other limits: those named are set, the others stay. For tests that play with small ones.
    #[must_use]
    pub fn with_limits<'n>(&self, limits: impl IntoIterator<Item = (&'n str, u64)>) -> Contract {
        let mut contract = self.clone();
        for (name, limit) in limits {
            contract.limits.insert(name.to_owned(), limit);
            contract.document["limits"][name] = limit.into();
        }
        contract
    }

    fn member(&self, definition: &str, member: &str) -> Option<&Value> {
        self.definitions.document.get("$defs")?.get(definition)?.get("properties")?.get(member)
    }
}

impl From<ContractFault> for ContractFaults {
    fn from(fault: ContractFault) -> Self {
        Self { faults: vec![fault], more: 0 }
    }
}

impl fmt::Display for ContractFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{pointer}: {}", self.says)
    }
}

impl std::error::Error for ContractFault {}

/// The definitions of a contract: `{"$defs": {…}}`, and each compiled once, when it is first asked for.
#[derive(Debug)]
struct Definitions {
    document: Value,
    compiled: BTreeMap<String, OnceLock<Option<Validator>>>,
}

impl Definitions {
    fn validator(&self, name: &str) -> Option<&Validator> {
        // Reading has compiled them all together, so `ok` loses nothing.
        self.compiled.get(name)?.get_or_init(|| Validator::new(&self.document, name).ok()).as_ref()
    }
}
