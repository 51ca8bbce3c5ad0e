//! Definitions against values: the words of each violation, and the same answers as on `serde_json::Value`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use sidecert_proto::json::Tape;
use sidecert_proto::reasonix::contract;
use sidecert_proto::schema::{SAYS_MAX, Validator, Violation};

fn check(definition: &str, text: &str) -> Option<Violation> {
    let validator = contract::v2().definition_validator(definition).unwrap();
    validator.check(Tape::scan(text.as_bytes()).unwrap().root())
}

#[test]
fn says_what_is_wrong_and_where() {
    let table = [
        ("InterceptResult", r#"{"decision":"continue"}"#, ""),
        (
            "InterceptResult",
            r#"{"decision":"CONTINUE"}"#,
            r#"/decision: "CONTINUE" is not one of allow, block, continue, deny, replace"#,
        ),
        ("InterceptResult", r#"{"decision":null}"#, "/decision: null is not a string"),
        ("InterceptResult", r#"{"decision":"deny","x":1}"#, r#"member "x" is not part of InterceptResult"#),
        ("InterceptResult", "{}", r#"member "decision" is missing"#),
        ("InterceptResult", "[]", "an array is not an object"),
        ("InterceptResult", r#"{"decision":"deny","reason":{}}"#, "/reason: an object is not a string"),
        ("InitializedParams", "{}", ""),
        ("InitializedParams", r#"{"a\nb":1}"#, r#"member "a\nb" is not part of InitializedParams"#),
        ("ContentReadParams", r#"{"contentRef":"c","offset":0}"#, ""),
        ("ContentReadParams", r#"{"contentRef":"c","offset":1.0}"#, ""),
        ("ContentReadParams", r#"{"contentRef":"c","offset":1e400}"#, ""),
        ("ContentReadParams", r#"{"contentRef":"c","offset":-1e400}"#, "/offset: -1e400 is less than 0"),
        ("ContentReadParams", r#"{"contentRef":"c","offset":1.5}"#, "/offset: 1.5 is not an integer"),
        ("ContentReadParams", r#"{"contentRef":"c","offset":-1}"#, "/offset: -1 is less than 0"),
        ("ContentReadParams", r#"{"contentRef":"","offset":0}"#, "/contentRef: the string is empty"),
        ("ContentReadParams", r#"{"contentRef":"\u0020","offset":0}"#, ""),
        ("ContentReadParams", r#"{"contentRef":"c","offset":true}"#, "/offset: true is not an integer"),
        // Of duplicates the last counts, and two of one name do not stand for two.
        ("ContentReadParams", r#"{"contentRef":"c","offset":-1,"offset":0}"#, ""),
        ("ContentReadParams", r#"{"contentRef":"c","offset":0,"offset":-1}"#, "/offset: -1 is less than 0"),
        ("ContentReadParams", r#"{"offset":0,"offset":0}"#, r#"member "contentRef" is missing"#),
        ("EventParams", r#"{"event":"tool.after","payload":null}"#, ""),
        ("EventParams", r#"{"event":"tool.after"}"#, r#"member "payload" is missing"#),
        ("ResourcesChangedParams", r#"{"paths":["a",1]}"#, "/paths/1: 1 is not a string"),
        (
            "UIActionParams",
            r#"{"actionId":"a","generation":1,"sessionId":"s","args":{"a/b":[]}}"#,
            "/args/a~1b: an array is not a string",
        ),
        (
            "StreamChunkParams",
            r#"{"streamId":"s","seq":1,"chunk":{"type":"error","error":{"code":"provider_failed","message":"m","why":1}}}"#,
            r#"/chunk/error: member "why" is not part of ProviderError"#,
        ),
        (
            "InitializeResult",
            r#"{"name":"n","protocolVersion":"2","stateSchemaVersion":0,"version":"1","provides":[{"id":"i","kind":"k"}]}"#,
            r#"/provides/0: member "namespace" is missing"#,
        ),
    ];
    for (definition, text, says) in table {
        let found = check(definition, text).map(|violation| violation.to_string()).unwrap_or_default();
        assert_eq!(found, says, "{definition} {text}");
    }
}

#[test]
fn never_repeats_a_huge_value() {
    let huge = "x\u{202e}".repeat(100_000);
    let texts = [
        format!(r#"{{"decision":"{huge}"}}"#),
        format!(r#"{{"decision":"deny","{huge}":1}}"#),
        format!(r#"{{"decision":"deny","reason":1{}}}"#, "0".repeat(100_000)),
        format!(r#"{{"decision":"deny","reason":["{huge}"]}}"#),
    ];
    for text in texts {
        let violation = check("InterceptResult", &text).unwrap();
        assert!(violation.says.chars().count() <= SAYS_MAX, "{violation}");
    }
    let text = format!(r#"{{"actionId":"a","generation":1,"sessionId":"s","args":{{"{huge}":1}}}}"#);
    let violation = check("UIActionParams", &text).unwrap();
    assert!(violation.pointer.chars().count() <= SAYS_MAX);
}

#[test]
fn goes_no_deeper_than_the_contract() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(check("EventParams", &format!(r#"{{"event":"tool.after","payload":{deep}}}"#)), None);
    let found = check("EventParams", &format!(r#"{{"event":{deep},"payload":1}}"#)).unwrap();
    assert_eq!(found.to_string(), "/event: an array is not a string");
}

#[test]
fn words_for_what_published_contracts_do_not_use() {
    let table = [
        (json!({ "const": { "a": 1 } }), r#"{"a":1.0}"#, ""),
        (json!({ "const": { "a": 1 } }), r#"{"a":1,"b":1}"#, r#"an object is not {"a":1}"#),
        (json!({ "enum": [[1, null]] }), "[1e0,null]", ""),
        (json!({ "enum": [1, "b"] }), "2", "2 is not one of 1, b"),
        (json!({ "maxLength": 2 }), r#""\ud83d\ude00é""#, ""),
        (json!({ "maxLength": 2 }), r#""abc""#, r#""abc" is longer than 2 characters"#),
        (json!({ "minLength": 3 }), r#""éé""#, r#""éé" is shorter than 3 characters"#),
        (json!({ "maximum": 5 }), "5.1", "5.1 is more than 5"),
        (json!({ "minItems": 2 }), "[1]", "the array has fewer than 2 elements"),
        (json!({ "maxItems": 0 }), "[1]", "the array has more than 0 elements"),
        (json!({ "type": ["string", "null"] }), "1", "1 is not null or a string"),
        (
            json!({ "uniqueItems": true }),
            r#"[1,{"a":2},{"a":2e0}]"#,
            r#"an array breaks the rule "uniqueItems""#,
        ),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            r#"{"ab":1}"#,
            r#"an object breaks the rule "propertyNames""#,
        ),
        (json!({ "propertyNames": { "const": "\"\n" } }), r#"{"\"\n":1}"#, ""),
    ];
    for (schema, text, says) in table {
        let validator = Validator::new(&json!({ "$defs": { "D": schema } }), "D").unwrap();
        let found = validator.check(Tape::scan(text.as_bytes()).unwrap().root());
        assert_eq!(found.map(|violation| violation.to_string()).unwrap_or_default(), says, "{schema} {text}");
    }
}

#[test]
fn says_why_a_definition_does_not_compile() {
    let fault = Validator::new(&json!({ "$defs": { "D": { "type": "word" } } }), "D").unwrap_err();
    assert!(fault.says.starts_with("definition D: "), "{fault}");
    assert!(Validator::new(&json!({ "$defs": {} }), "D").is_err());
    let remote = json!({ "$defs": { "D": { "$ref": "https://example.org/schema.json" } } });
    assert!(Validator::new(&remote, "D").is_err());
}

#[test]
fn validators_are_shared_between_threads() {
    let validators: Vec<usize> = std::thread::scope(|scope| {
        let spawn = |_| {
            scope.spawn(|| {
                std::ptr::from_ref(contract::v1().params_validator(contract::EVENT).unwrap()).addr()
            })
        };
        let threads: Vec<_> = (0..4).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(validators.windows(2).all(|pair| pair[0] == pair[1]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The tape and `serde_json::Value` are two representations of one value, so one schema says the same of both.
    #[test]
    fn agrees_with_the_validator_of_values(
        sample in any::<Index>(),
        edits in prop::collection::vec((any::<Index>(), any::<Index>()), 0..3),
    ) {
        let (definition, text) = sample.get(SAMPLES);
        let mut value: Value = serde_json::from_str(text).unwrap();
        for (place, edit) in edits {
            mutate(&mut value, place, edit);
        }
        let text = value.to_string();
        let theirs = jsonschema::validator_for(&json!({
            "$ref": format!("#/$defs/{definition}"),
            "$defs": contract::v2().document()["$defs"],
        })).unwrap();
        let found = check(definition, &text);
        prop_assert_eq!(found.is_none(), theirs.is_valid(&value), "{} {:?}", text, found);
        if let Some(violation) = found {
            prop_assert!(value.pointer(&violation.pointer).is_some(), "{}", violation);
        }
    }
}

const SAMPLES: &[(&str, &str)] = &[
    (
        "InterceptParams",
        r#"{"event":"tool.before","payload":{"a":1},"seq":1,"timeoutMillis":5000,"externalized":[{"contentRef":"r","jsonPointer":"/payload","sha256":"s","totalBytes":7}]}"#,
    ),
    ("InterceptResult", r#"{"decision":"replace","reason":"r","replacement":[1]}"#),
    (
        "InitializeParams",
        r#"{"capabilities":{"contentRefs":true,"protocolVersion":"2","uiHost":"acp"},"manifest":{"requires":[{"id":"i","kind":"k","namespace":"n","optional":true}]},"protocolId":"p","protocolVersion":"2","session":{"generation":1,"sessionId":"s","workspaceRoot":"/"}}"#,
    ),
    (
        "StreamOpenParams",
        r#"{"providerRef":"p","request":{"maxTokens":1,"messages":[{"role":"user","content":"c","tool_calls":[{"arguments":"{}","id":"i","name":"n"}]}],"tools":[{"name":"n","parameters":{}}],"temperature":0.5},"seqBase":1,"streamId":"s"}"#,
    ),
    (
        "ProviderUsage",
        r#"{"cacheHitTokens":0,"cacheMissTokens":0,"completionTokens":0,"promptTokens":0,"reasoningTokens":0,"totalTokens":0}"#,
    ),
    ("UISubmitParams", r#"{"generation":1,"sessionId":"s","surfaceId":"u","values":{"a":null}}"#),
];

/// Replaces, removes or adds something somewhere.
fn mutate(value: &mut Value, place: Index, edit: Index) {
    let pointers = pointers(value);
    let Some(node) = value.pointer_mut(place.get::<String>(&pointers)) else { return };
    let others = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(""),
        json!("user"),
        json!([]),
        json!({}),
        json!([{}]),
    ];
    match (edit.index(others.len() + 2), node) {
        (0, Value::Object(members)) => {
            members.insert("extra".to_owned(), json!(1));
        }
        (1, Value::Object(members)) => {
            let first = members.keys().next().cloned();
            first.map(|name| members.remove(&name));
        }
        (index, node) => *node = others[index % others.len()].clone(),
    }
}

fn pointers(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let tape = Tape::scan(text.as_bytes()).unwrap();
    tape.root().walk().filter_map(|(_, node)| tape.root().pointer_to(node)).collect()
}
