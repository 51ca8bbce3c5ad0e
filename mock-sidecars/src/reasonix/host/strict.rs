//! What the host asks of params and results beyond the schema: integers without fraction, texts that are not blank,
//! digests in lowercase, nothing that is null but may be anything.

use serde_json::Value;
use sidecert_proto::contract::Contract;
use sidecert_proto::json::{Kind, Node};

/// What is wrong with `node`, which the schema of `definition` allows.
pub(super) fn fault(contract: &Contract, definition: &str, node: Node<'_>) -> Option<String> {
    let schema = contract.document()["$defs"].get(definition)?;
    walk(contract, "", schema, node)
}

fn walk(contract: &Contract, name: &str, schema: &Value, node: Node<'_>) -> Option<String> {
    if let Some(definition) = schema["$ref"].as_str().and_then(|it| it.strip_prefix("#/$defs/")) {
        return fault(contract, definition, node);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object()?;
            let member = |(name, value): (std::borrow::Cow<'_, str>, _)| {
                walk(contract, &name, properties.get(&*name)?, value)
            };
            node.members().find_map(member)
        }
        Some("array") => node.elements().find_map(|element| walk(contract, name, &schema["items"], element)),
        Some("integer") => integer(name, node),
        Some("string") => text(name, schema, node),
        // What only the schema says nothing about, and what may travel outside of its frame, may be null.
        None if schema["x-externalizable"] != true && schema["enum"].is_null() && node.is_null() => {
            Some(format!("{name} is null"))
        }
        _ => None,
    }
}

fn integer(name: &str, node: Node<'_>) -> Option<String> {
    let fits = match name {
        "generation" => node.as_u64().is_some(),
        _ => node.as_i64().is_some() || node.as_u64().is_some(),
    };
    (!node.is_written_as_integer() || !fits).then(|| format!("{name} is no integer that fits"))
}

fn text(name: &str, schema: &Value, node: Node<'_>) -> Option<String> {
    if node.kind() != Kind::String {
        return None;
    }
    let text = node.as_str()?;
    if schema["minLength"].as_u64().is_some_and(|least| least > 0) && text.trim().is_empty() {
        return Some(format!("{name} is blank"));
    }
    let digits = |text: &str| {
        text.len() == 64 && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    (name == "sha256" && !digits(&text)).then(|| format!("{name} is not written as a digest"))
}
