//! The documents that stand inside of payloads: what a point hands over, and what a surface of each kind shows.
//!
//! Neither the specification nor the schema has them; they are what the reference implementation was seen to take.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contract::Contract;
use crate::json::Node;
use crate::schema::Validator;

/// The documents, under the definitions of a contract.
#[derive(Debug)]
pub struct Documents<'c> {
    contract: &'c Contract,
    compiled: RefCell<Compiled>,
}

/// The definitions, and each document that was asked for.
#[derive(Debug, Default)]
struct Compiled {
    definitions: Option<Value>,
    documents: BTreeMap<String, Option<Validator>>,
}

impl<'c> Documents<'c> {
    /// The documents of `contract`. Each is compiled when it is first asked for.
    pub fn new(contract: &'c Contract) -> Self {
        Self { contract, compiled: RefCell::default() }
    }

    /// What is wrong with a payload at this point.
    pub fn payload_fault(&self, event: &str, payload: Node<'_>) -> Option<String> {
        self.fault(&format!("payload-{event}"), payload)
    }

    /// What is wrong with the payload of a surface of this kind; every question has the kind `request`.
    pub fn surface_fault(&self, kind: &str, payload: Node<'_>) -> Option<String> {
        self.fault(&format!("surface-{kind}"), payload)
    }

    fn fault(&self, name: &str, value: Node<'_>) -> Option<String> {
        let Compiled { definitions: known, documents } = &mut *self.compiled.borrow_mut();
        if !documents.contains_key(name) {
            let known = known.get_or_insert_with(|| definitions(self.contract));
            let validator = known["$defs"].get(name).and_then(|_| Validator::new(known, name).ok());
            documents.insert(name.to_owned(), validator);
        }
        documents.get(name)?.as_ref()?.check(value).map(|violation| violation.to_string())
    }
}

fn definitions(contract: &Contract) -> Value {
    let mut all = contract.document()["$defs"].as_object().cloned().unwrap_or_default();
    let text = || json!({"type": "string"});
    let filled = || json!({"type": "string", "minLength": 1});
    let list_of = |name: &str| json!({"type": "array", "items": {"$ref": format!("#/$defs/{name}")}});
    let object = |members: Value, required: &[&str]| json!({"type": "object", "additionalProperties": false, "properties": members, "required": required});
    let tool = |more: &[(&str, Value)], required: &[&str]| {
        let mut members = json!({"name": filled(), "arguments": text()});
        for (name, schema) in more {
            members[name] = schema.clone();
        }
        object(members, required)
    };
    let flag = || json!({"type": "boolean"});
    let mut add = |name: &str, schema: Value| drop(all.insert(name.to_owned(), schema));
    add("payload-input.receive", object(json!({"text": filled()}), &["text"]));
    add(
        "payload-agent.before_start",
        object(
            json!({"model": text(), "toolCount": {"type": "integer"}, "sessionId": filled()}),
            &["sessionId"],
        ),
    );
    add(
        "payload-system_prompt.build",
        object(json!({"prompt": text(), "workspaceRoot": filled()}), &["workspaceRoot"]),
    );
    add("payload-context.prepare", object(json!({"messages": list_of("ProviderMessage")}), &["messages"]));
    add(
        "payload-provider.request",
        object(json!({"request": {"$ref": "#/$defs/ProviderRequest"}}), &["request"]),
    );
    add(
        "payload-provider.response",
        object(
            json!({"text": text(), "reasoning": text(), "signature": text(), "calls": list_of("ProviderToolCall"), "usage": {"$ref": "#/$defs/ProviderUsage"}}),
            &[],
        ),
    );
    add("payload-tool.before", tool(&[], &["name"]));
    add("payload-tool.after", tool(&[("result", text()), ("isError", flag())], &["name"]));
    add(
        "payload-permission.decision",
        tool(
            &[("readOnly", flag()), ("hostDecision", json!({"enum": ["allow", "deny"]}))],
            &["name", "hostDecision"],
        ),
    );
    add(
        "payload-compaction.prepare",
        object(json!({"messages": list_of("ProviderMessage"), "guidance": text()}), &["messages"]),
    );
    add("payload-compaction.complete", object(json!({"summary": filled()}), &["summary"]));
    for phase in ["start", "end", "load", "save", "rotate"] {
        let members = json!({"sessionPath": text(), "phase": {"enum": [phase]}});
        add(&format!("payload-session.{phase}"), object(members, &["phase"]));
    }
    add(
        "payload-frontend.event",
        object(json!({"kind": filled(), "text": text(), "detail": text()}), &["kind"]),
    );
    let severity = json!({"enum": ["info", "warn", "error"]});
    let number = json!({"type": "number"});
    let field = object(
        json!({"key": filled(), "label": text(), "kind": {"enum": ["confirm", "input", "select", "multiselect"]},
            "options": {"type": "array", "items": text()}, "default": true, "required": flag()}),
        &["key", "kind"],
    );
    let form = object(
        json!({"title": text(), "message": text(), "fields": {"type": "array", "items": field}}),
        &["fields"],
    );
    add(
        "surface-status",
        object(
            json!({"label": filled(), "detail": text(), "severity": severity, "progress": number}),
            &["label"],
        ),
    );
    let pair = object(json!({"key": filled(), "value": text()}), &["key", "value"]);
    let action = object(json!({"actionId": filled(), "label": filled()}), &["actionId", "label"]);
    add(
        "surface-card",
        object(
            json!({"title": text(), "markdown": text(), "text": text(), "progress": number,
                "fields": {"type": "array", "items": pair}, "actions": {"type": "array", "items": action}}),
            &[],
        ),
    );
    add("surface-form", form.clone());
    add("surface-request", form);
    add(
        "surface-notification",
        object(json!({"title": filled(), "body": text(), "severity": severity}), &["title"]),
    );
    json!({ "$defs": all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;
    use crate::reasonix::contract;

    #[test]
    fn every_point_and_every_kind_has_a_document_that_can_be_broken() {
        let documents = Documents::new(contract::v1());
        for event in &contract::v1().events {
            let tape = Tape::scan(b"{\"sidecert\":1}").unwrap();
            assert!(documents.payload_fault(event, tape.root()).is_some(), "{event}");
        }
        for (kind, good, bad) in [
            ("status", r#"{"label":"x"}"#, r#"{"label":""}"#),
            ("card", "{}", r#"{"html":"<b>"}"#),
            ("form", r#"{"fields":[]}"#, "{}"),
            ("notification", r#"{"title":"x"}"#, r#"{"title":"x","severity":"bad"}"#),
            ("request", r#"{"fields":[{"key":"k","kind":"input"}]}"#, r#"{"fields":[{"key":"k"}]}"#),
        ] {
            let check =
                |text: &str| documents.surface_fault(kind, Tape::scan(text.as_bytes()).unwrap().root());
            assert_eq!((check(good), check(bad).is_some()), (None, true), "{kind}");
        }
    }
}
