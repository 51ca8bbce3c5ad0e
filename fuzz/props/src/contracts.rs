//! Contracts that nobody would write: read or refused, and compared.

use serde_json::{Value, json};
use sidecert_proto::contract::Contract;
use sidecert_proto::contract::diff::{Class, diff};
use sidecert_proto::json::Tape;

use crate::draw::Draw;

/// How often a contract is changed.
const CHANGES_MOST: usize = 6;

/// Examines `bytes` as a contract, and compares contracts that are changed as they say.
pub fn contracts(bytes: &[u8]) {
    drop(examined(bytes));
    published(bytes);
    let mut draw = Draw::new(bytes);
    let mut document = document();
    let first = changed(&mut document, &mut draw);
    let second = changed(&mut document, &mut draw);
    if let (Some(first), Some(second)) = (first, second) {
        compared(&first, &second);
        compared(&second, &first);
        compared(&first, &first);
    }
}

/// Both ways to read agree, and a refusal says why.
fn examined(text: &[u8]) -> Option<Contract> {
    let first = Contract::read(text);
    match Contract::examine(text) {
        Ok(contract) => {
            assert_eq!(first.map(|first| first.hash()), Ok(contract.hash()));
            Some(contract)
        }
        Err(wrong) => {
            assert_eq!(
                first.err().as_ref(),
                wrong.faults.first(),
                "the first fault is the one that is told alone"
            );
            assert!(!wrong.faults.is_empty(), "a refusal without a reason");
            None
        }
    }
}

/// The canonical text of a text is its own, and the same value.
fn published(text: &[u8]) {
    let Ok(tape) = Tape::scan(text) else { return };
    let ambiguous = tape.has_duplicates() || tape.has_lone_surrogate();
    match tape.root().published() {
        Ok(canonical) => {
            assert!(!ambiguous, "an ambiguous text has a canonical form");
            let again = Tape::scan(canonical.as_bytes()).expect("what is canonical is JSON");
            assert!(again.root().equals(tape.root()), "the canonical form is another value");
            assert_eq!(again.root().published().as_deref(), Ok(canonical.as_str()));
        }
        Err(ambiguity) => assert!(ambiguous && ambiguity.at < text.len(), "{ambiguity}"),
    }
}

/// There is a change exactly if the documents differ as values, and the counts are those of the list.
fn compared(old: &Contract, new: &Contract) {
    let found = diff(old, new);
    let value = |contract: &Contract| {
        let text = contract.document().to_string();
        Tape::scan(text.as_bytes()).map(|tape| tape.root().canonical())
    };
    assert_eq!(found.is_empty(), value(old) == value(new), "{:?}", found.changes);
    for class in Class::ALL {
        let told = found.changes.iter().filter(|change| change.class == class).count() as u64;
        assert!(found.count(class) >= told);
    }
    let all: u64 = Class::ALL.iter().map(|class| found.count(*class)).sum();
    assert_eq!(all, found.changes.len() as u64 + found.left_out());
    for change in &found.changes {
        assert!(!change.says.is_empty() && !change.what.is_empty());
        let document = match change.of {
            sidecert_proto::contract::diff::Edition::Old => old.document(),
            sidecert_proto::contract::diff::Edition::New => new.document(),
        };
        assert!(document.pointer(&change.pointer).is_some(), "a change where nothing is: {change:?}");
    }
}

/// A small contract that has one of everything.
fn document() -> Value {
    json!({
        "$id": "p.v1", "title": "P", "protocolID": "p.v1", "protocolMajor": 1,
        "limits": { "frameBytes": 100 },
        "interceptEvents": ["before", "after"],
        "errors": [{ "reason": "busy", "jsonRpcCode": -1, "retryable": true, "message": "Busy." }],
        "methods": {
            "a/b": {
                "class": "c", "direction": "host_to_extension_request", "notification": false,
                "params": { "$ref": "#/$defs/Ask" }, "result": { "$ref": "#/$defs/Word" }
            },
            "c": {
                "class": "c", "direction": "extension_to_host_notification", "notification": true,
                "params": { "$ref": "#/$defs/Word" }, "result": null
            }
        },
        "$defs": {
            "Ask": {
                "type": "object", "required": ["word"], "additionalProperties": false,
                "properties": {
                    "word": { "$ref": "#/$defs/Word" },
                    "list": { "type": "array", "items": { "$ref": "#/$defs/Word" }, "maxItems": 3 },
                    "of": { "type": "string", "enum": ["x", "y", 1] },
                    "far": { "x-externalizable": true },
                    "map": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } }
                }
            },
            "Word": { "type": "string", "minLength": 1 },
            "Same": { "type": "string", "minLength": 1 },
            "Any": true
        }
    })
}

/// The contract after some changes, if it still is one; what made it none is undone.
fn changed(document: &mut Value, draw: &mut Draw<'_>) -> Option<Contract> {
    let mut contract = examined(document.to_string().as_bytes());
    for _ in 0..draw.below(CHANGES_MOST) {
        let mut other = document.clone();
        change(&mut other, draw);
        if let Some(changed) = examined(other.to_string().as_bytes()) {
            (*document, contract) = (other, Some(changed));
        }
    }
    contract
}

/// What a value may be replaced by: what contracts are made of, and what they are not.
const PARTS: &[&str] = &[
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "0",
    "1.0",
    "2",
    "1e2",
    "\"\"",
    "\"x\"",
    "\"string\"",
    "\"integer\"",
    "[\"x\"]",
    "[\"word\"]",
    "[1.0]",
    "\"host_to_extension_request\"",
    "\"#/$defs/Same\"",
    "\"#/$defs/Any\"",
    "{\"$ref\":\"#/$defs/Same\"}",
    "{\"$ref\":\"#/$defs/Word\"}",
    "{\"type\":\"string\",\"minLength\":1}",
    "{\"type\":\"number\"}",
    "{\"minLength\":0}",
];

/// Names that a member may get.
const NAMES: &[&str] = &[
    "x",
    "items",
    "properties",
    "required",
    "enum",
    "const",
    "type",
    "title",
    "minimum",
    "additionalProperties",
    "$ref",
    "x-externalizable",
    "x-mark",
    "Word",
    "word",
    "a/b~",
];

/// Walks down at random, and takes away, adds, replaces or reorders what is there.
fn change(value: &mut Value, draw: &mut Draw<'_>) {
    let deeper = draw.below(4) > 0;
    let part = |draw: &mut Draw<'_>| serde_json::from_str(draw.pick::<&str>(PARTS)).unwrap_or_default();
    match value {
        Value::Object(members) if !members.is_empty() => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = draw.pick(&names);
            match (deeper, draw.below(3)) {
                (true, _) => change(&mut members[name], draw),
                (false, 0) => drop(members.remove(name)),
                (false, 1) => drop(members.insert((*draw.pick(NAMES)).to_owned(), part(draw))),
                (false, _) => members[name] = part(draw),
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            let at = draw.below(elements.len());
            match (deeper, draw.below(4)) {
                (true, _) => change(&mut elements[at], draw),
                (false, 0) => drop(elements.remove(at)),
                (false, 1) => elements.insert(at, part(draw)),
                (false, 2) => elements.rotate_left(at),
                (false, _) => elements[at] = part(draw),
            }
        }
        other => *other = part(draw),
    }
}
