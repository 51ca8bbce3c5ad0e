//! What the differ makes of single changes, of what is equal in other words, and of what nobody would write.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use sidecert_proto::contract::Contract;
use sidecert_proto::contract::diff::{CHANGES_MAX, Class, Diff, Edition, POINTER_MAX, diff};
use sidecert_proto::reasonix::contract::{v1, v2};

fn document() -> Value {
    json!({
        "$defs": {
            "Ask": {
                "type": "object",
                "properties": { "what": { "$ref": "#/$defs/Word" }, "any": {} },
                "required": ["what"],
                "additionalProperties": false
            },
            "Word": { "type": "string", "minLength": 1 },
            "Token": { "type": "string", "minLength": 1, "title": "a token" },
            "Text": { "type": "string" },
            "Plain": true
        },
        "errors": [
            { "reason": "busy", "jsonRpcCode": -32000, "retryable": true },
            { "reason": "lost", "jsonRpcCode": -32001, "retryable": false }
        ],
        "interceptEvents": ["before", "after"],
        "limits": { "frameBytes": 100 },
        "methods": {
            "a/b": {
                "class": "talk", "direction": "host_to_extension_request", "notification": false,
                "params": { "$ref": "#/$defs/Ask" }, "result": { "$ref": "#/$defs/Word" }
            }
        },
        "protocolID": "example.v3",
        "protocolMajor": 3
    })
}

fn read(document: &Value) -> Contract {
    Contract::read(document.to_string().as_bytes()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// What is found after `change`: class, what, and where; `<` marks what stands in the old document.
fn found(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let old = document();
    let mut new = old.clone();
    change(&mut new);
    lines(&diff(&read(&old), &read(&new)))
}

fn lines(diff: &Diff) -> Vec<String> {
    let line = |change: &sidecert_proto::contract::diff::Change| {
        let of = if change.of == Edition::Old { "<" } else { "" };
        format!("{} {} {of}{}", change.class.name(), change.what, change.pointer)
    };
    diff.changes.iter().map(line).collect()
}

/// Sets one place and expects these changes.
fn set(pointer: &str, value: &Value, expected: &[&str]) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let found = found(|new| match new.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value.clone(),
        parent if value.is_null() && pointer.starts_with("/$defs") => {
            drop(parent.as_object_mut().unwrap().remove(name));
        }
        parent => parent[name] = value.clone(),
    });
    assert_eq!(found, expected, "{pointer} {value}");
}

#[test]
fn single_changes() {
    let what = "/$defs/Ask/properties/what";
    set(
        what,
        &json!({ "$ref": "#/$defs/Token" }),
        &["editorial reference-renamed /$defs/Ask/properties/what/$ref"],
    );
    set(
        what,
        &json!({ "$ref": "#/$defs/Text" }),
        &["breaking reference-changed /$defs/Ask/properties/what/$ref"],
    );
    set(
        what,
        &json!({ "type": "string", "minLength": 1 }),
        &["editorial reference-renamed /$defs/Ask/properties/what"],
    );
    set(
        what,
        &json!({ "type": "string", "minLength": 2 }),
        &["breaking reference-changed /$defs/Ask/properties/what"],
    );
    set(
        what,
        &json!({ "$ref": "#/$defs/Word", "description": "x" }),
        &["editorial text-changed /$defs/Ask/properties/what/description"],
    );
    set(
        what,
        &json!({ "type": "string", "$ref": "#/$defs/Word" }),
        &["breaking type-narrowed /$defs/Ask/properties/what/type"],
    );
    // Everything is allowed, in three ways.
    set("/$defs/Ask/properties/any", &json!(true), &["editorial respelt /$defs/Ask/properties/any"]);
    set("/$defs/Plain", &json!({}), &["editorial respelt /$defs/Plain"]);
    set("/$defs/Plain", &json!(false), &["breaking schema-changed /$defs/Plain"]);
    set("/$defs/Plain", &json!({ "type": "null" }), &["breaking type-narrowed /$defs/Plain/type"]);
    set("/$defs/Text/items", &json!(true), &["editorial respelt /$defs/Text/items"]);
    set("/$defs/Text/items", &json!(false), &["breaking items-changed /$defs/Text/items"]);
    set("/$defs/Text/required", &json!([]), &["editorial respelt /$defs/Text/required"]);
    set("/$defs/Text/properties", &json!({}), &["editorial respelt /$defs/Text/properties"]);
    set("/$defs/Text/x-externalizable", &json!(false), &["editorial respelt /$defs/Text/x-externalizable"]);
    set("/$defs/Text/required", &json!(["unlisted"]), &["breaking member-required /$defs/Text/required/0"]);
    set("/$defs/Word/minLength", &json!(0), &["breaking bound-widened /$defs/Word/minLength"]);
    set("/$defs/Word/minLength", &json!(1.0), &[]);
    set("/$defs/Word/minLength", &Value::Null, &["breaking bound-widened </$defs/Word/minLength"]);
    set("/$defs/Word/maxLength", &json!(9), &["breaking bound-narrowed /$defs/Word/maxLength"]);
    let closed = "/$defs/Ask/additionalProperties";
    set(closed, &json!(true), &["breaking additional-properties-changed /$defs/Ask/additionalProperties"]);
    set(closed, &Value::Null, &["breaking additional-properties-changed </$defs/Ask/additionalProperties"]);
    set("/methods/a~1b", &document()["methods"]["a/b"], &["additive method-added /methods/a~01b"]);
    let method = "/methods/a~1b";
    let changed = |name: &str| format!("{method}/{name}");
    for (name, value, expected) in [
        ("params", json!(null), "breaking params-changed /methods/a~1b/params"),
        ("params", json!({ "$ref": "#/$defs/Text" }), "breaking params-changed /methods/a~1b/params/$ref"),
        (
            "result",
            json!({ "$ref": "#/$defs/Token" }),
            "editorial reference-renamed /methods/a~1b/result/$ref",
        ),
        ("result", json!({ "$ref": "#/$defs/Text" }), "breaking result-changed /methods/a~1b/result/$ref"),
        (
            "result",
            json!({ "$ref": "#/$defs/Word", "title": "t" }),
            "editorial text-changed /methods/a~1b/result/title",
        ),
        ("class", json!("other"), "breaking class-changed /methods/a~1b/class"),
        ("since", json!(1), "warning unknown-changed /methods/a~1b/since"),
    ] {
        assert_eq!(found(|new| new["methods"]["a/b"][name] = value.clone()), [expected], "{}", changed(name));
    }
    set("/limits/frameBytes", &json!(101), &["breaking limit-raised /limits/frameBytes"]);
    set("/limits/frameBytes", &json!(99), &["breaking limit-lowered /limits/frameBytes"]);
    set("/limits/frameBytes", &json!(1e2), &[]);
    set("/protocolMajor", &json!(4), &["breaking major-changed /protocolMajor"]);
    set("/protocol", &json!("example.v3"), &["editorial label-changed /protocol"]);
    set("/protocol", &json!("another"), &["warning unknown-changed /protocol"]);
    set("/extra", &json!({}), &["warning unknown-changed /extra"]);
    assert_eq!(found(|new| new["errors"].as_array_mut().unwrap().reverse()), ["editorial reordered /errors"]);
    assert_eq!(
        found(|new| new["interceptEvents"] = json!(["new", "after", "before"])),
        ["warning event-added /interceptEvents/0", "editorial reordered /interceptEvents"]
    );
}

#[test]
fn what_says_who_is_concerned() {
    let says = |change: fn(&mut Value)| {
        let mut new = document();
        change(&mut new);
        diff(&read(&document()), &read(&new)).changes[0].says.clone()
    };
    assert_eq!(
        says(|new| new["limits"]["frameBytes"] = 10.into()),
        "frameBytes is 10 instead of 100: a newer receiver refuses what an older sender may send"
    );
    assert_eq!(
        says(|new| new["limits"]["frameBytes"] = 1000.into()),
        "frameBytes is 1000 instead of 100: an older receiver refuses what a newer sender may send"
    );
    assert_eq!(
        says(|new| new["$defs"]["Ask"]["properties"]["what"]["$ref"] = "#/$defs/Text".into()),
        "\"Text\" instead of \"Word\": minLength is nothing instead of 1: an older receiver refuses what a newer \
         sender may send"
    );
    assert_eq!(
        says(|new| drop(new["methods"].as_object_mut().unwrap().remove("a/b"))),
        "method \"a/b\" is gone: an older host still sends it"
    );
}

#[test]
fn the_major_is_compared_and_the_counts_are_whole() {
    let mut new = document();
    new["protocolMajor"] = 4.into();
    let across = diff(&read(&document()), &read(&new));
    assert!(!across.same_major && across.is_breaking() && !across.is_empty());
    let same = diff(&read(&document()), &read(&document()));
    assert!(same.same_major && !same.is_breaking() && same.is_empty() && same.left_out() == 0);
}

#[test]
fn hostile_contracts_are_compared_within_bounds() {
    let many = |count: usize| {
        let mut document = document();
        let members: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("{at}{}", "n/".repeat(600)), json!({ "type": "string" }))).collect();
        document["$defs"]["Many"] = json!({ "properties": members });
        document
    };
    let told = diff(&read(&many(1500)), &read(&many(0)));
    assert_eq!((told.count(Class::Breaking), told.changes.len()), (1500, CHANGES_MAX));
    assert_eq!(told.left_out(), 500);
    for change in &told.changes {
        assert!(change.pointer.chars().count() <= POINTER_MAX && change.says.chars().count() <= 200);
    }
    // Each level refers to all of the next, under another name in the new document: 40^8 ways.
    let lattice = |prefix: &str| {
        let mut document = document();
        for level in 0..8 {
            for at in 0..40 {
                let members: serde_json::Map<String, Value> = (0..40)
                    .map(|next| {
                        (
                            format!("m{next}"),
                            json!({ "$ref": format!("#/$defs/{prefix}{}_{next}", level + 1) }),
                        )
                    })
                    .collect();
                document["$defs"][format!("{prefix}{level}_{at}")] = json!({ "properties": members });
            }
        }
        for at in 0..40 {
            document["$defs"][format!("{prefix}8_{at}")] = json!({ "type": "string" });
        }
        document["$defs"]["Root"] = json!({ "$ref": format!("#/$defs/{prefix}0_0") });
        document
    };
    let told = diff(&read(&lattice("A")), &read(&lattice("B")));
    let root = told.changes.iter().find(|change| change.pointer == "/$defs/Root/$ref").unwrap();
    assert_eq!((root.class, root.what), (Class::Editorial, "reference-renamed"), "{root:?}");
}

#[test]
fn from_version_1_of_reasonix_to_version_2() {
    assert_eq!(lines(&diff(v1(), v2())), KNOWN.trim().lines().collect::<Vec<_>>());
    assert!(diff(v1(), v1()).is_empty() && diff(v2(), v2()).is_empty());
}

const KNOWN: &str = "
breaking protocol-changed /protocolID
breaking major-changed /protocolMajor
warning reason-added /errors/0
warning reason-added /errors/2
warning reason-added /errors/4
warning reason-added /errors/5
warning reason-added /errors/13
warning reason-added /errors/15
warning member-added /$defs/HostCapabilities/properties/dependencySchemaVersion
warning member-added /$defs/InitializeParams/properties/dependencySchemaVersion
warning member-added /$defs/InitializeResult/properties/componentId
warning member-added /$defs/InitializeResult/properties/provides
warning member-added /$defs/InitializeResult/properties/requires
warning member-added /$defs/ManifestExpectation/properties/provides
warning member-added /$defs/ManifestExpectation/properties/requires
warning member-added /$defs/ProviderChunk/properties/epoch
warning member-added /$defs/ProviderChunk/properties/generation
warning member-added /$defs/ProviderDescriptor/properties/inputModalities
warning member-added /$defs/SessionContext/properties/epoch
warning member-added /$defs/StreamChunkParams/properties/epoch
warning member-added /$defs/StreamChunkParams/properties/generation
warning member-added /$defs/StreamOpenParams/properties/epoch
warning member-added /$defs/StreamOpenParams/properties/generation
additive definition-added /$defs/CapabilityWire
additive definition-added /$defs/RequirementWire
editorial text-changed /$id
editorial label-changed /protocol
";
