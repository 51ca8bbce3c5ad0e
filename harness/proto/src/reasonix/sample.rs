//! Small values that fit a contract: params for every method that a host may ask for, and a payload for every point.
//!
//! They are made from the contract itself, so that a fork's own methods have them too, and name nothing that exists: a
//! conforming guest has nothing to do with them.

use serde_json::{Map, Value, json};

use super::contract::{self, point};
use super::host;
use crate::contract::{Contract, MethodKind, Side};
use crate::script::Setting;

/// What every text of a sample is: the name of nothing.
pub const NOTHING: &str = "sidecert-none";

/// The methods that a host asks for once the connection is open, in order, but the last one that it ever asks for.
pub fn methods(contract: &Contract) -> impl Iterator<Item = &str> {
    let asked = |name: &str| !matches!(name, contract::INITIALIZE | contract::SHUTDOWN);
    contract
        .methods
        .values()
        .filter(move |method| method.from == Side::Host && method.kind == MethodKind::Request)
        .map(|method| method.name.as_str())
        .filter(move |name| asked(name))
}

/// The smallest params that fit `method`, with nothing in them that exists.
pub fn params(setting: &Setting<'_>, method: &str) -> Value {
    let contract = setting.contract;
    let definition = contract.method(method).and_then(|method| method.params.as_deref());
    let mut params = definition.map_or_else(|| json!({}), |name| definition_sample(contract, name, 0));
    let Some(members) = params.as_object_mut() else { return params };
    for (name, value) in members.iter_mut() {
        match name.as_str() {
            "sessionId" => *value = host::session_id(setting.seed).into(),
            "generation" | "seq" | "seqBase" => *value = 1.into(),
            "timeoutMillis" => *value = host::INTERCEPT_MILLIS.into(),
            _ => {}
        }
    }
    if method == contract::INTERCEPT {
        members.insert("event".to_owned(), point::INPUT_RECEIVE.into());
        members.insert("payload".to_owned(), payload(point::INPUT_RECEIVE));
    }
    params
}

/// The smallest value of a definition.
fn definition_sample(contract: &Contract, name: &str, depth: usize) -> Value {
    contract.document()["$defs"].get(name).map_or(Value::Null, |schema| sample(contract, schema, depth))
}

fn sample(contract: &Contract, schema: &Value, depth: usize) -> Value {
    // A contract is not recursive, and no deeper than this.
    const DEPTH_MAX: usize = 64;
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|it| it.strip_prefix("#/$defs/")) {
        return definition_sample(contract, name, depth + 1);
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let member =
                |name: &str| (name.to_owned(), sample(contract, &schema["properties"][name], depth + 1));
            Value::Object(required.map(member).collect::<Map<_, _>>())
        }
        Some("array") => json!([]),
        Some("string") => NOTHING.into(),
        Some("integer" | "number") => schema["minimum"].as_i64().unwrap_or_default().into(),
        Some("boolean") => false.into(),
        _ => json!({}),
    }
}

/// A harmless payload at this point; `{}` at one that this version does not know.
pub fn payload(event: &str) -> Value {
    let message = json!({"role": "user", "content": "sidecert"});
    match event {
        point::INPUT_RECEIVE | point::PROVIDER_RESPONSE => json!({"text": "sidecert"}),
        point::AGENT_BEFORE_START => json!({"model": "sidecert", "toolCount": 1, "sessionId": "sidecert"}),
        point::SYSTEM_PROMPT_BUILD => json!({"prompt": "sidecert", "workspaceRoot": "/"}),
        point::CONTEXT_PREPARE => json!({ "messages": [message] }),
        point::PROVIDER_REQUEST => json!({"request": {"messages": [message], "tools": [], "maxTokens": 16}}),
        point::TOOL_BEFORE => json!({"name": "sidecert", "arguments": "{}"}),
        point::TOOL_AFTER => json!({"name": "sidecert", "arguments": "{}", "result": "sidecert"}),
        point::PERMISSION_DECISION => {
            json!({"name": "sidecert", "arguments": "{}", "readOnly": true, "hostDecision": "allow"})
        }
        point::COMPACTION_PREPARE => json!({"messages": [message], "guidance": "sidecert"}),
        point::COMPACTION_COMPLETE => json!({"summary": "sidecert"}),
        point::FRONTEND_EVENT => json!({"kind": "sidecert", "text": "sidecert"}),
        _ => match event.strip_prefix("session.") {
            Some(phase) => json!({"sessionPath": "sidecert", "phase": phase}),
            None => json!({}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;
    use crate::reasonix::documents::Documents;

    #[test]
    fn every_sample_fits() {
        for contract in [contract::v1(), contract::v2()] {
            let setting = Setting::plain(contract);
            assert!(methods(contract).count() >= 6);
            for method in methods(contract) {
                let text = params(&setting, method).to_string();
                let tape = Tape::scan(text.as_bytes()).unwrap();
                let found = contract.params_validator(method).and_then(|it| it.check(tape.root()));
                assert_eq!(found, None, "{method}: {text}");
            }
            let documents = Documents::new(contract);
            for event in &contract.events {
                let text = payload(event).to_string();
                let tape = Tape::scan(text.as_bytes()).unwrap();
                assert_eq!(documents.payload_fault(event, tape.root()), None, "{event}: {text}");
            }
        }
    }
}
