//! The built-in contracts of Reasonix: equal to the published schemas, and different from each other as is known.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use sidecert_proto::contract::{Contract, Method, Side};
use sidecert_proto::reasonix::contract::{self, Limits, limit, point, reason, since_v2};
use std::fmt::Write as _;
use std::io::Write as _;

/// A published schema, or `None` and a loud word where the specifications are not at hand.
#[expect(clippy::disallowed_methods, reason = "what is tested stands outside of the repository")]
fn published(file: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../../shared/spec/reasonix/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).ok();
    if text.is_none() {
        // Past the capture of the test runner, so that nobody takes a skipped test for a passed one.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: {path} is not there, so nothing was compared with it").unwrap();
    }
    text
}

/// A published document without what the built-in ones leave out.
fn stripped(document: &Value) -> Value {
    let mut document = document.clone();
    document.as_object_mut().unwrap().remove("title");
    for error in document["errors"].as_array_mut().unwrap() {
        error.as_object_mut().unwrap().remove("message").unwrap();
    }
    document
}

/// One of ours without what only a replay reads.
fn without_volatile(document: &Value) -> Value {
    let mut document = document.clone();
    for method in document["methods"].as_object_mut().unwrap().values_mut() {
        method.as_object_mut().unwrap().remove("x-volatile");
    }
    document
}

#[test]
fn the_built_in_contracts_are_the_published_ones() {
    for (ours, file) in [(contract::v1(), "schema.v1.json"), (contract::v2(), "schema.v2-1.38.11.json")] {
        let Some(text) = published(file) else { continue };
        let theirs = contract::read(&text).unwrap();
        assert_eq!(without_volatile(ours.document()), stripped(theirs.document()), "{file}");
        let methods = ours.methods.values().cloned().map(|method| Method { volatile: Vec::new(), ..method });
        assert!(methods.eq(theirs.methods.values().cloned()), "{file}");
        assert_eq!(&ours.reasons, &theirs.reasons, "{file}");
        assert_eq!((&ours.events, &ours.limits), (&theirs.events, &theirs.limits), "{file}");
    }
}

#[test]
fn every_published_schema_reads_and_hashes_to_its_file() {
    let table = [
        ("schema.v1.json", "22338e662c66a0cb0f6055263afc18e122640e71f552b601251a1c7899593be3"),
        ("schema.v2-60ab9be.json", "f93ad7f8681773864a17fcb899705d7b3f7f0dce62d0940ae8ac30b3c4f46b8f"),
        ("schema.v2-f7f3f29.json", "085c014bb6d1713f722177dda5d79b1224d9bf611cb3947d3331aeb0768449fa"),
        ("schema.v2-1.38.11.json", "ac99dbabd4f6e354c89aced778d8a83646e7a06345cc67d08bcb3faf73bb56f5"),
    ];
    for (file, hash) in table {
        let Some(text) = published(file) else { continue };
        let contract = contract::read(&text).unwrap_or_else(|fault| panic!("{file}: {fault}"));
        assert_eq!(contract.hash(), hash, "{file}");
        assert!(contract.definitions().all(|name| contract.definition_validator(name).is_some()), "{file}");
    }
}

#[test]
fn version_2_adds_what_is_known_and_nothing_else() {
    assert_eq!(differences(contract::v1(), contract::v2()), KNOWN.trim_start());
    assert!(since_v2::ALL.iter().all(|fact| contract::v2().has(*fact) && !contract::v1().has(*fact)));
    let facts = KNOWN.lines().filter(|line| line.starts_with('+')).count();
    assert_eq!(since_v2::ALL.len(), facts);
}

const KNOWN: &str = r##"
~ $id
~ protocol
~ protocolID
~ protocolMajor
+ def CapabilityWire: {"additionalProperties":false,"properties":{"id":{"minLength":1,"type":"string"},"kind":{"minLength":1,"type":"string"},"namespace":{"minLength":1,"type":"string"},"schemaHash":{"type":"string"},"version":{"type":"string"}},"required":["id","kind","namespace"],"type":"object"}
+ HostCapabilities.dependencySchemaVersion: {"minimum":0,"type":"integer"}
+ InitializeParams.dependencySchemaVersion: {"minimum":0,"type":"integer"}
+ InitializeResult.componentId: {"type":"string"}
+ InitializeResult.provides: {"items":{"$ref":"#/$defs/CapabilityWire"},"type":"array"}
+ InitializeResult.requires: {"items":{"$ref":"#/$defs/RequirementWire"},"type":"array"}
+ ManifestExpectation.provides: {"items":{"$ref":"#/$defs/CapabilityWire"},"type":"array"}
+ ManifestExpectation.requires: {"items":{"$ref":"#/$defs/RequirementWire"},"type":"array"}
+ ProviderChunk.epoch: {"type":"string"}
+ ProviderChunk.generation: {"type":"integer"}
+ ProviderDescriptor.inputModalities: {"items":{"type":"string"},"type":"array"}
+ def RequirementWire: {"additionalProperties":false,"properties":{"id":{"minLength":1,"type":"string"},"kind":{"minLength":1,"type":"string"},"namespace":{"minLength":1,"type":"string"},"optional":{"type":"boolean"},"schemaHash":{"type":"string"},"version":{"type":"string"},"versionRange":{"type":"string"}},"required":["id","kind","namespace"],"type":"object"}
+ SessionContext.epoch: {"type":"string"}
+ StreamChunkParams.epoch: {"type":"string"}
+ StreamChunkParams.generation: {"type":"integer"}
+ StreamOpenParams.epoch: {"type":"string"}
+ StreamOpenParams.generation: {"type":"integer"}
+ error activation_failed: {"jsonRpcCode":-32000,"reason":"activation_failed","retryable":false}
+ error cleanup_failed: {"jsonRpcCode":-32000,"reason":"cleanup_failed","retryable":true}
+ error dependency_cycle: {"jsonRpcCode":-32000,"reason":"dependency_cycle","retryable":false}
+ error dependency_unsatisfied: {"jsonRpcCode":-32000,"reason":"dependency_unsatisfied","retryable":false}
+ error schema_mismatch: {"jsonRpcCode":-32000,"reason":"schema_mismatch","retryable":false}
+ error stale_generation: {"jsonRpcCode":-32000,"reason":"stale_generation","retryable":false}
"##;

/// A line per difference: `+`, `-` or `~`, and what.
fn differences(one: &Contract, other: &Contract) -> String {
    let mut lines = String::new();
    let (old, new) = (one.document(), other.document());
    compare(&mut lines, "", old, new, |name, old, new| match (name, old, new) {
        // Shown in parts below.
        ("$defs" | "errors", Some(_), Some(_)) => None,
        _ => Some(name.to_owned()),
    });
    compare(&mut lines, "def ", &old["$defs"], &new["$defs"], |name, old, new| {
        let rest = |definition: &Value| {
            let mut definition = definition.clone();
            definition["properties"] = Value::Null;
            definition
        };
        (old.map(rest) != new.map(rest)).then(|| name.to_owned())
    });
    for (name, definition) in new["$defs"].as_object().unwrap() {
        if let Some(earlier) = old["$defs"].get(name) {
            let prefix = format!("{name}.");
            compare(&mut lines, &prefix, &earlier["properties"], &definition["properties"], |name, _, _| {
                Some(name.to_owned())
            });
        }
    }
    // In the order of facts.md: by definition, and in it by member.
    let (meta, mut rest): (Vec<_>, Vec<_>) = lines.lines().partition(|line| line.starts_with('~'));
    rest.sort_by_key(|line| line.trim_start_matches(['+', '-', ' ']).trim_start_matches("def ").to_owned());
    let mut lines = meta.into_iter().chain(rest).fold(String::new(), |lines, line| lines + line + "\n");
    let errors = |document: &Value| {
        let errors = document["errors"].as_array().unwrap().iter();
        errors.map(|error| (error["reason"].as_str().unwrap().to_owned(), error.clone())).collect::<Value>()
    };
    compare(&mut lines, "error ", &errors(old), &errors(new), |name, _, _| Some(name.to_owned()));
    lines
}

fn compare(
    lines: &mut String,
    prefix: &str,
    old: &Value,
    new: &Value,
    label: impl Fn(&str, Option<&Value>, Option<&Value>) -> Option<String>,
) {
    let (old, new) = (old.as_object().unwrap(), new.as_object().unwrap());
    let names: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        let Some(label) = (before != after).then(|| label(name, before, after)).flatten() else { continue };
        match (before, after) {
            (None, Some(value)) => writeln!(lines, "+ {prefix}{label}: {value}").unwrap(),
            (Some(_), None) => writeln!(lines, "- {prefix}{label}").unwrap(),
            _ => writeln!(lines, "~ {prefix}{label}").unwrap(),
        }
    }
}

#[test]
fn the_names_are_those_of_the_contracts() {
    let methods = [
        contract::INITIALIZE,
        contract::INITIALIZED,
        contract::SHUTDOWN,
        contract::INTERCEPT,
        contract::EVENT,
        contract::RESOURCES_CHANGED,
        contract::PROVIDER_CATALOG,
        contract::STREAM_OPEN,
        contract::STREAM_CHUNK,
        contract::STREAM_END,
        contract::STREAM_CANCEL,
        contract::UI_ACTION,
        contract::UI_SUBMIT,
        contract::CONTENT_READ,
        contract::UI_PUBLISH,
        contract::UI_REQUEST,
    ];
    for contract in [contract::v1(), contract::v2()] {
        assert_eq!(contract.methods.len(), methods.len());
        assert!(methods.iter().all(|name| contract.method(name).is_some()));
        assert_eq!(contract.events, point::ALL);
        assert_eq!(contract.limits.keys().collect::<Vec<_>>(), limit::ALL);
    }
    assert_eq!(contract::v2().reasons.keys().collect::<Vec<_>>(), reason::ALL);
    let from_guest = contract::v1().methods.values().filter(|method| method.from == Side::Guest).count();
    assert_eq!(from_guest, 5);
}

#[test]
fn limits_can_be_scaled_down() {
    let v1 = contract::v1();
    let limits = Limits::of(v1);
    assert_eq!((limits.frame_bytes, limits.externalize_field_bytes), (8_388_608, 65_536));
    assert_eq!((limits.content_ref_chunk_bytes, limits.content_ref_object_bytes), (262_144, 8_388_608));
    let small = Limits {
        frame_bytes: 4096,
        externalize_field_bytes: 512,
        content_ref_chunk_bytes: 256,
        content_ref_object_bytes: 2048,
    };
    assert_eq!(Limits::of(&small.applied_to(v1)), small);
    assert_ne!(small.applied_to(v1).hash(), v1.hash());
    assert_eq!(limits.applied_to(v1).hash(), v1.hash());
}

#[test]
fn marks_of_what_may_travel_outside_survive() {
    let marked = [
        ("EventParams", "payload"),
        ("InterceptParams", "payload"),
        ("InterceptResult", "replacement"),
        ("ProviderMessage", "content"),
    ];
    for contract in [contract::v1(), contract::v2()] {
        let found: Vec<(String, String)> = contract
            .definitions()
            .flat_map(|definition| {
                let members = contract.document()["$defs"][definition]["properties"].as_object().unwrap();
                members.keys().map(move |member| (definition.to_owned(), member.clone()))
            })
            .filter(|(definition, member)| contract.externalizable(definition, member))
            .collect();
        assert!(found.iter().map(|(one, other)| (one.as_str(), other.as_str())).eq(marked));
    }
}

#[test]
fn a_contract_without_the_handshake_is_not_of_this_family() {
    let broken = |edit: fn(&mut Value)| {
        let mut document = contract::v1().document().clone();
        edit(&mut document);
        contract::read(document.to_string().as_bytes()).unwrap_err().to_string()
    };
    let limit =
        broken(|document| drop(document["limits"].as_object_mut().unwrap().remove(limit::FRAME_BYTES)));
    assert_eq!(limit, "/limits: limit \"frameBytes\" is missing");
    let method =
        broken(|document| drop(document["methods"].as_object_mut().unwrap().remove(contract::INITIALIZE)));
    assert_eq!(method, "/methods: method \"extension/initialize\" is missing");
}
