//! The reader of contracts: what it takes out of a document, and every reason to refuse one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use sidecert_proto::contract::{Contract, ContractFault, Fact, MethodKind, Side};

/// A small contract in the published form.
fn document() -> Value {
    json!({
        "$defs": {
            "Ask": {
                "type": "object",
                "properties": { "what": { "$ref": "#/$defs/Word" }, "blob": { "x-externalizable": true } },
                "required": ["what"],
                "additionalProperties": false
            },
            "Word": { "type": "string", "minLength": 1, "title": "a word" }
        },
        "errors": [{ "reason": "busy", "jsonRpcCode": -32000, "retryable": true, "message": "Busy." }],
        "interceptEvents": ["before", "after"],
        "limits": { "frameBytes": 100 },
        "methods": {
            "ask": {
                "class": "talk", "direction": "host_to_extension_request", "notification": false,
                "params": { "$ref": "#/$defs/Ask" }, "result": { "$ref": "#/$defs/Word" }
            },
            "tell": {
                "class": "talk", "direction": "extension_to_host_notification", "notification": true,
                "params": null, "result": null
            }
        },
        "protocolID": "example.v3",
        "protocolMajor": 3
    })
}

fn read(document: &Value) -> Result<Contract, ContractFault> {
    Contract::read(document.to_string().as_bytes())
}

#[test]
fn reads_the_published_form() {
    let contract = read(&document()).unwrap();
    assert_eq!((contract.id.as_str(), contract.major), ("example.v3", 3));
    let ask = contract.method("ask").unwrap();
    assert_eq!(
        (ask.name.as_str(), ask.from, ask.kind, ask.class.as_str()),
        ("ask", Side::Host, MethodKind::Request, "talk")
    );
    assert_eq!((ask.params.as_deref(), ask.result.as_deref()), (Some("Ask"), Some("Word")));
    let tell = contract.method("tell").unwrap();
    assert_eq!(
        (tell.from, tell.kind, &tell.params, &tell.result),
        (Side::Guest, MethodKind::Notification, &None, &None)
    );
    let busy = contract.reason("busy").unwrap();
    assert_eq!((busy.code, busy.retryable), (-32000, true));
    assert_eq!(contract.events, ["before", "after"]);
    assert_eq!((contract.limit("frameBytes"), contract.limit("other")), (Some(100), None));
    assert_eq!(contract.definitions().collect::<Vec<_>>(), ["Ask", "Word"]);
    assert_eq!(contract.document(), &document());
    assert!(contract.params_validator("ask").is_some() && contract.result_validator("ask").is_some());
    assert!(contract.params_validator("tell").is_none() && contract.params_validator("none").is_none());
    assert_eq!(contract.definition_validator("Word").unwrap().name(), "Word");
    assert!(contract.definition_validator("Sentence").is_none());
}

#[test]
fn knows_its_facts() {
    let contract = read(&document()).unwrap();
    let held =
        [Fact::Method("ask"), Fact::Member("Ask.what"), Fact::Reason("busy"), Fact::Definition("Word")];
    let missing = [
        Fact::Method("Ask"),
        Fact::Member("Ask.why"),
        Fact::Member("Ask"),
        Fact::Member("Word.what"),
        Fact::Member("None.what"),
        Fact::Reason("ask"),
        Fact::Definition(""),
    ];
    assert!(held.into_iter().all(|fact| contract.has(fact)));
    assert!(!missing.into_iter().any(|fact| contract.has(fact)));
    assert!(contract.externalizable("Ask", "blob") && !contract.externalizable("Ask", "what"));
}

#[test]
fn other_limits_make_another_contract() {
    let contract = read(&document()).unwrap();
    let small = contract.with_limits([("frameBytes", 7)]);
    assert_eq!((small.limit("frameBytes"), contract.limit("frameBytes")), (Some(7), Some(100)));
    assert_ne!(small.hash(), contract.hash());
    assert_eq!(read(small.document()).unwrap().hash(), small.hash());
    let same = |one: &Contract, other: &Contract| {
        std::ptr::eq(one.definition_validator("Ask").unwrap(), other.definition_validator("Ask").unwrap())
    };
    assert!(same(&small, &contract), "what was compiled is shared");
}

#[test]
fn the_hash_does_not_depend_on_spelling() {
    let spelt = serde_json::to_string_pretty(&document()).unwrap().replace("\"limits\"", "\"l\\u0069mits\"");
    let contract = read(&document()).unwrap();
    assert_eq!(Contract::read(spelt.as_bytes()).unwrap().hash(), contract.hash());
    assert_eq!(contract.hash().len(), 64);
}

#[test]
fn sides_are_opposite() {
    for (side, name) in [(Side::Host, "host"), (Side::Guest, "guest")] {
        assert_eq!((side.opposite().opposite(), side.to_string().as_str()), (side, name));
        assert_ne!(side.opposite(), side);
    }
}

#[test]
fn contracts_travel_between_threads() {
    fn travels<T: Send + Sync + 'static>() {}
    travels::<Contract>();
}

/// Removes what `pointer` leads to.
fn without(pointer: &str) -> Value {
    let mut document = document();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    document
}

/// Puts `value` in the place that `pointer` leads to.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = document();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Array(elements) => elements.push(value),
        parent => parent[name] = value,
    }
    document
}

#[test]
fn says_what_is_wrong_and_where() {
    let missing = [
        ("/$defs", "", "$defs"),
        ("/errors", "", "errors"),
        ("/errors/0/reason", "/errors/0", "reason"),
        ("/errors/0/jsonRpcCode", "/errors/0", "jsonRpcCode"),
        ("/errors/0/retryable", "/errors/0", "retryable"),
        ("/interceptEvents", "", "interceptEvents"),
        ("/limits", "", "limits"),
        ("/methods", "", "methods"),
        ("/methods/ask/class", "/methods/ask", "class"),
        ("/methods/ask/direction", "/methods/ask", "direction"),
        ("/methods/ask/notification", "/methods/ask", "notification"),
        ("/methods/ask/params", "/methods/ask", "params"),
        ("/methods/ask/params/$ref", "/methods/ask/params", "$ref"),
        ("/methods/ask/result", "/methods/ask", "result"),
        ("/protocolID", "", "protocolID"),
        ("/protocolMajor", "", "protocolMajor"),
    ];
    for (removed, pointer, name) in missing {
        let fault = read(&without(removed)).unwrap_err();
        assert_eq!(
            (fault.pointer.as_str(), fault.says),
            (pointer, format!("member {name:?} is missing")),
            "{removed}"
        );
    }
    let no_reference = "\"#/$defs/None\" refers to no definition";
    let circle = "refers to itself, or to others more than 16 levels deep";
    #[rustfmt::skip]
    let wrong = [
        ("/protocolID", json!(1), "/protocolID", "number instead of string"),
        ("/protocolMajor", json!(0), "/protocolMajor", "must be an integer of at least 1 that fits"),
        ("/protocolMajor", json!(1.5), "/protocolMajor", "must be an integer of at least 1 that fits"),
        ("/protocolMajor", json!(1_u64 << 32), "/protocolMajor", "must be an integer of at least 1 that fits"),
        ("/protocolMajor", json!("1"), "/protocolMajor", "must be an integer of at least 1 that fits"),
        ("/limits", json!([]), "/limits", "array instead of object"),
        ("/limits/frameBytes", json!(0), "/limits/frameBytes", "must be an integer of at least 1 that fits"),
        ("/limits/a~b", json!(-1), "/limits/a~0b", "must be an integer of at least 1 that fits"),
        ("/interceptEvents", json!({}), "/interceptEvents", "object instead of array"),
        ("/interceptEvents/-", json!("after"), "/interceptEvents/2", "the name stands twice"),
        ("/interceptEvents/-", json!(true), "/interceptEvents/2", "boolean instead of string"),
        ("/errors/-", json!({ "reason": "busy", "jsonRpcCode": 1, "retryable": false }), "/errors/1/reason", "the reason stands twice"),
        ("/errors/-", json!(null), "/errors/1", "null instead of object"),
        ("/errors/0/jsonRpcCode", json!("x"), "/errors/0/jsonRpcCode", "must be an integer of at least -9223372036854775808 that fits"),
        ("/errors/0/retryable", json!("yes"), "/errors/0/retryable", "string instead of boolean"),
        ("/methods/ask", json!("x"), "/methods/ask", "string instead of object"),
        ("/methods/ask/direction", json!("sideways"), "/methods/ask/direction", "\"sideways\" is no direction"),
        ("/methods/ask/notification", json!(true), "/methods/ask/notification", "the direction says otherwise"),
        ("/methods/tell/notification", json!(false), "/methods/tell/notification", "the direction says otherwise"),
        ("/methods/ask/params", json!({ "$ref": "#/$defs/None" }), "/methods/ask/params/$ref", no_reference),
        ("/methods/ask/result", json!({ "$ref": "Word" }), "/methods/ask/result/$ref", "\"Word\" refers to no definition"),
        ("/methods/tell/result", json!({ "$ref": "#/$defs/Word" }), "/methods/tell/result", "a notification has no result"),
        ("/$defs/Word", json!("x"), "/$defs/Word", "string instead of object"),
        ("/$defs/a.b", json!({}), "/$defs/a.b", "a definition's name may not hold `/`, `~`, `%` or `.`"),
        ("/$defs/Ask/properties/what", json!({ "$ref": "#/$defs/None" }), "/$defs/Ask/properties/what/$ref", no_reference),
        ("/$defs/Word/items", json!({ "$ref": 1 }), "/$defs/Word/items/$ref", "number instead of string"),
        ("/$defs/Word/items", json!({ "$ref": "#/$defs/Ask" }), "/$defs/Ask", circle),
        ("/$defs/Word/items", json!({ "$ref": "#/$defs/Word" }), "/$defs/Ask", circle),
        ("/$defs/Word/additionalProperties", json!(1), "/$defs/Word/additionalProperties", "number instead of object"),
        ("/$defs/Word/properties", json!([]), "/$defs/Word/properties", "array instead of object"),
        ("/$defs/Word/pattern", json!("(a+)+"), "/$defs/Word/pattern", "contracts do not use the keyword \"pattern\""),
        ("/$defs/Word/type", json!("word"), "/$defs/Word/type", "\"word\" is no type"),
        ("/$defs/Word/type", json!(["string"]), "/$defs/Word/type", "array instead of string"),
        ("/$defs/Word/required", json!(["a", "a"]), "/$defs/Word/required/1", "the name stands twice"),
        ("/$defs/Word/enum", json!("a"), "/$defs/Word/enum", "string instead of array"),
        ("/$defs/Word/minLength", json!(-1), "/$defs/Word/minLength", "must be an integer of at least 0 that fits"),
        ("/$defs/Word/maximum", json!("9"), "/$defs/Word/maximum", "string instead of number"),
    ];
    for (place, value, pointer, says) in wrong {
        let fault = read(&with(place, value.clone())).unwrap_err();
        assert_eq!((fault.pointer.as_str(), fault.says.as_str()), (pointer, says), "{place} {value}");
    }
}

#[test]
fn says_everything_that_is_wrong_in_the_order_of_the_text() {
    let text = r##"{
        "protocolID": 7, "protocolMajor": 0,
        "methods": {
            "a": 1,
            "b": {"class": null, "direction": "up", "notification": 1, "params": {"$ref": "#/$defs/No"}, "result": 2}
        },
        "limits": {"x": -1, "y": 1, "z": "3"},
        "interceptEvents": ["e", 5, "e"],
        "errors": [true, {"reason": "r", "jsonRpcCode": "c"}, {"reason": "r", "jsonRpcCode": 1, "retryable": true}],
        "$defs": {"A": {"type": "word", "items": 3, "required": [1, "a", "a"], "pattern": "."}, "B.": {"$ref": "A"}}
    }"##;
    let wrong = Contract::examine(text.as_bytes()).unwrap_err();
    let pointers: Vec<&str> = wrong.faults.iter().map(|fault| fault.pointer.as_str()).collect();
    #[rustfmt::skip]
    assert_eq!(
        pointers,
        [
            "/protocolID", "/protocolMajor", "/methods/a", "/methods/b/class", "/methods/b/direction",
            "/methods/b/notification", "/methods/b/params/$ref", "/methods/b/result", "/limits/x", "/limits/z",
            "/interceptEvents/1", "/interceptEvents/2", "/errors/0", "/errors/1", "/errors/1/jsonRpcCode",
            "/errors/2/reason", "/$defs/A/type", "/$defs/A/items", "/$defs/A/required/0", "/$defs/A/required/2",
            "/$defs/A/pattern", "/$defs/B.", "/$defs/B./$ref",
        ],
        "{wrong:#?}"
    );
    // Without definitions no reference can be told wrong; the rest is said all the same.
    let wrong = Contract::examine(without("/$defs").to_string().as_bytes()).unwrap_err();
    assert_eq!((wrong.faults.len(), wrong.more), (1, 0), "{wrong:?}");
    let many = with("/interceptEvents", vec![json!(1); 100_000].into());
    let wrong = Contract::examine(many.to_string().as_bytes()).unwrap_err();
    assert_eq!((wrong.faults.len(), wrong.more), (200, 99_800));
}

#[test]
fn refuses_texts_that_no_value_can_hold() {
    let text = document().to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let table = [
        (String::new(), "/: no JSON: no value, only white space at byte 0".to_owned()),
        (text[1..].to_owned(), "/: no JSON: text after the value at byte 7".to_owned()),
        ("[]".to_owned(), "/: array instead of object".to_owned()),
        (
            text.replace("\"frameBytes\":100", "\"a\":1,\"a\":2"),
            "/limits: member \"a\" stands twice".to_owned(),
        ),
        (
            text.replace("\"a word\"", r#""\ud800""#),
            format!("/$defs/Word/title: half a surrogate pair, at byte {}", text.find("\"a word\"").unwrap()),
        ),
        (text.replace("\"a word\"", &deep), "/: nested deeper than 32 levels".to_owned()),
        (
            text.replace("\"a word\"", "1e999"),
            "/$defs/Word/title: the number is beyond 64-bit floats".to_owned(),
        ),
    ];
    for (text, says) in table {
        assert_eq!(Contract::read(text.as_bytes()).unwrap_err().to_string(), says);
    }
}

#[test]
fn a_long_chain_of_references_is_refused() {
    let chain = |length: usize| {
        let link =
            |index: usize| json!({ "properties": { "next": { "$ref": format!("#/$defs/D{}", index + 1) } } });
        let mut document = document();
        for index in 0..length {
            document["$defs"][format!("D{index}")] = link(index);
        }
        document["$defs"][format!("D{length}")] = json!(true);
        read(&document)
    };
    assert!(chain(15).is_ok());
    assert!(chain(16).unwrap_err().says.contains("16 levels"));
    assert!(chain(5000).is_err());
}
