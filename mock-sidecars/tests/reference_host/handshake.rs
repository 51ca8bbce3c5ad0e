//! How processes are started, what of a handshake is refused, and what is done about one that fails.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;

use crate::stage::{
    Act, MILLI, Player, Puppet, Stage, after, answer, error, everything, plugin, say, stage, v1, v2,
};

fn block() -> Value {
    json!({
        "required": true, "intercepts": ["tool.before"], "replaces": ["context"],
        "capabilities": ["interceptors", "strategies", "providers", "ui"],
    })
}

#[test]
fn the_first_request_mirrors_the_manifest() {
    for contract in [v1(), v2()] {
        let mut stage = Stage::new(contract, Manners::default());
        let mut runtime = block();
        let provides = json!([
            {"kind": "provider", "namespace": "p", "id": "m"},
            {"kind": "uiAction", "namespace": "one", "id": "demo"},
        ]);
        if contract.major > 1 {
            runtime["provides"] = provides.clone();
            runtime["requires"] = json!([]);
        }
        stage.does(json!({
            "do": "start", "workspace": "/work", "uiHost": "tui", "plugins": [plugin(contract, "one", &runtime)],
        }));
        let first = &stage.written[0].frame;
        assert_eq!((&first["id"], &first["method"]), (&json!(1), &json!(names::INITIALIZE)));
        let params = &first["params"];
        let major = contract.major.to_string();
        assert_eq!((&params["protocolId"], &params["protocolVersion"]), (&json!(contract.id), &json!(major)));
        assert_eq!(params["session"]["sessionId"], "session-1");
        assert_eq!(
            (&params["session"]["generation"], &params["session"]["workspaceRoot"]),
            (&json!(1), &json!("/work"))
        );
        assert_eq!(
            (&params["capabilities"]["contentRefs"], &params["capabilities"]["uiHost"]),
            (&json!(true), &json!("tui"))
        );
        let manifest = &params["manifest"];
        for list in ["intercepts", "replaces", "capabilities"] {
            assert_eq!(manifest[list], runtime[list], "{list}");
        }
        assert_eq!(manifest["provides"], runtime["provides"]);
        let lists = if contract.major > 1 {
            (json!(["plugin/one/p/m"]), json!(["demo"]), json!(1))
        } else {
            (Value::Null, Value::Null, Value::Null)
        };
        assert_eq!(
            (&manifest["providers"], &manifest["uiActions"], &params["dependencySchemaVersion"]),
            (&lists.0, &lists.1, &lists.2)
        );
        assert_eq!(stage.heard("one")[1], "initialized");
    }
}

/// What a guest answers, the reason that the start fails with, and what the user is told.
const REFUSED: &[(&str, &str, &str)] = &[
    (r#"{"protocolVersion":"2"}"#, "unsupported_version", "version 2"),
    (r#"{"protocolVersion":"0"}"#, "unsupported_version", "version 0"),
    (r#"{"protocolVersion":"01"}"#, "unsupported_version", "version 01"),
    (r#"{"protocolVersion":"v1"}"#, "protocol_error", "no number"),
    (r#"{"protocolVersion":"1.0"}"#, "protocol_error", "no number"),
    (r#"{"protocolVersion":" 1"}"#, "protocol_error", "no number"),
    (r#"{"protocolVersion":""}"#, "protocol_error", "empty"),
    (r#"{"name":"  "}"#, "protocol_error", "blank"),
    (r#"{"stateSchemaVersion":null}"#, "protocol_error", "stateSchemaVersion"),
    (r#"{"stateSchemaVersion":-1}"#, "protocol_error", "less than 0"),
    (r#"{"stateSchemaVersion":1.0}"#, "protocol_error", "no integer"),
    (r#"{"extra":1}"#, "protocol_error", "extra"),
    (r#"{"providers":[{"ref":"plugin/one/p/m","extra":1}]}"#, "protocol_error", "extra"),
    (r#"{"subscriptions":["tool.after"]}"#, "capability_not_declared", "tool.after"),
    (r#"{"subscriptions":["Tool.before"]}"#, "capability_not_declared", "Tool.before"),
    (r#"{"replaces":["permission"]}"#, "capability_not_declared", "permission"),
    (r#"{"providers":[{"ref":"plugin/other/p/m"}]}"#, "capability_not_declared", "plugin/other/p/m"),
];

/// A failed handshake: nothing but `initialize` was written, and the process was killed.
fn assert_failed(stage: &Stage<'_>, outcome: &Value, reason: &Value, says: &str) {
    assert_eq!(&outcome["reason"], reason, "{outcome}");
    let text = outcome["failed"].as_str().unwrap();
    assert!(text.contains(says), "{text} does not contain {says}");
    assert_eq!(stage.heard("one"), ["initialize"], "{says}");
    assert_eq!(stage.killed, [1], "{says}");
    assert!(stage.found_in("diagnostics")[0].contains(says), "{says}");
}

#[test]
fn what_a_guest_declares_is_checked() {
    for (more, reason, says) in REFUSED {
        let more: Value = serde_json::from_str(more).unwrap();
        let mut stage = stage();
        stage.casts("one", move || Puppet::new().greets(more.clone()));
        let outcome = stage.start(&[("one", block())]);
        assert_failed(&stage, &outcome, &json!(reason), says);
    }
}

#[test]
fn capabilities_and_lists_bind() {
    let declares = |capabilities: &[&str], more: Value| {
        let mut runtime = block();
        runtime["capabilities"] = json!(capabilities);
        (runtime, more)
    };
    let model = json!({"providers": [{"ref": "plugin/one/p/m"}]});
    let action = json!({"uiActions": [{"actionId": "demo"}]});
    for (runtime, more) in [declares(&["ui"], model.clone()), declares(&["providers"], action.clone())] {
        let mut stage = stage();
        stage.casts("one", move || Puppet::new().greets(more.clone()));
        let outcome = stage.start(&[("one", runtime)]);
        assert_failed(&stage, &outcome, &json!("capability_not_declared"), "declares");
    }
    for more in [model, action] {
        let mut stage = Stage::new(v2(), Manners::default());
        stage.casts("one", move || Puppet::new().greets(more.clone()));
        let mut runtime = block();
        runtime["provides"] = json!([
            {"kind": "provider", "namespace": "p", "id": "other"},
            {"kind": "uiAction", "namespace": "one", "id": "other"},
        ]);
        let outcome = stage.start(&[("one", runtime)]);
        assert_failed(&stage, &outcome, &json!("capability_not_declared"), "declares");
    }
}

#[test]
fn anything_before_the_end_of_the_handshake_poisons() {
    let greeting = |frame: &Value| {
        answer(frame, &json!({"protocolVersion": "1", "name": "x", "version": "1", "stateSchemaVersion": 0}))
    };
    let read = json!({"id": 7, "method": names::CONTENT_READ, "params": {"contentRef": "x", "offset": 0}});
    let cases: [(&str, Vec<Act>); 5] = [
        ("a malformed line", vec![Act::Say("hello".to_owned())]),
        ("an answer to nothing", vec![Act::Say(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned())]),
        (names::CONTENT_READ, vec![say(&read)]),
        ("x/y", vec![say(&json!({"method": "x/y"}))]),
        (names::STREAM_END, vec![say(&json!({"method": names::STREAM_END, "params": {}}))]),
    ];
    for (says, acts) in cases {
        let mut stage = stage();
        stage.casts("one", move || {
            let acts = acts.clone();
            Puppet::new().on(names::INITIALIZE, move |frame| Some([acts.clone(), greeting(frame)].concat()))
        });
        let outcome = stage.start(&[("one", block())]);
        assert_failed(&stage, &outcome, &json!("protocol_error"), says);
    }
    // Even what is written in the same breath as the answer is too early.
    let mut stage = stage();
    stage.casts("one", move || {
        let read = read.clone();
        Puppet::new().on(names::INITIALIZE, move |frame| {
            let (Act::Say(first), Act::Say(second)) = (greeting(frame).remove(0), say(&read)) else {
                return None;
            };
            Some(vec![Act::Bytes(format!("{first}\n{second}\n").into_bytes())])
        })
    });
    let outcome = stage.start(&[("one", block())]);
    assert_failed(&stage, &outcome, &json!("protocol_error"), names::CONTENT_READ);
}

#[test]
fn errors_keep_the_reasons_that_they_give() {
    let data = |reason: &str, retryable: bool| json!({"code": -32000, "message": "no, key: sk-abcdefghijkl1234", "data": {"reason": reason, "retryable": retryable, "action": "x"}});
    for (body, reason) in [
        (data("unsupported_version", false), json!("unsupported_version")),
        (data("unsupported_version", true), Value::Null),
        (data("nothing", false), Value::Null),
        (json!({"code": -32603, "message": "no, "}), Value::Null),
    ] {
        let mut stage = stage();
        stage.casts("one", move || {
            let body = body.clone();
            Puppet::new().on(names::INITIALIZE, move |frame| Some(error(frame, &body)))
        });
        let outcome = stage.start(&[("one", block())]);
        assert_failed(&stage, &outcome, &reason, "no, ");
        assert!(!outcome.to_string().contains("sk-abc"), "{outcome}");
    }
}

#[test]
fn a_process_that_ends_or_cannot_be_started_fails() {
    let mut first = stage();
    first.casts("one", || {
        Puppet::new().on(names::INITIALIZE, |_| Some(vec![Act::Stderr("why".to_owned()), Act::Exit(3)]))
    });
    let outcome = first.start(&[("one", block())]);
    assert_eq!(outcome["reason"], "provider_interrupted");
    assert!(first.found_in("diagnostics")[0].ends_with("; stderr: why"));
    let mut second = stage();
    second.casts("one", || Player::None("no such file"));
    assert!(second.start(&[("one", block())])["failed"].as_str().unwrap().contains("no such file"));
}

#[test]
fn four_start_at_once_and_all_have_thirty_seconds() {
    let silent = || Puppet::new().on(names::INITIALIZE, |_| Some(Vec::new()));
    let mut stage = stage();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        stage.casts(name, silent);
    }
    let plugins: Vec<_> = names.iter().map(|name| (*name, json!({}))).collect();
    let number = {
        let entries: Vec<Value> = plugins.iter().map(|(name, block)| plugin(v1(), name, block)).collect();
        stage.ask(json!({"do": "start", "workspace": "/", "plugins": entries}))
    };
    stage.wait(29_000);
    assert_eq!((stage.launched.len(), stage.found(number)), (4, None));
    assert_eq!(stage.outcome(number)["done"], true);
    assert_eq!((stage.launched.len(), stage.killed.len()), (4, 4));
    assert!(stage.now >= 30_000 * MILLI && stage.now < 36_000 * MILLI);
    assert_eq!(stage.shown("warning").len(), 6);
}

#[test]
fn a_required_plugin_fails_everything_and_an_optional_one_nothing() {
    for required in [true, false] {
        let mut stage = stage();
        stage.casts("broken", || Puppet::new().greets(json!({"protocolVersion": "9"})));
        let outcome = stage.start(&[("good", json!({})), ("broken", json!({"required": required}))]);
        assert_eq!(outcome["done"].is_null(), required, "{outcome}");
        let asked = stage.heard("good").contains(&"shutdown".to_owned());
        assert_eq!((asked, stage.shown("warning").len()), (required, usize::from(!required)));
    }
}

#[test]
fn odd_actions_and_slow_answers_are_no_failure() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new().on(names::INITIALIZE, |frame| {
            let actions = json!([{"actionId": "BAD ID!"}, {"actionId": "good"}]);
            let result = json!({
                "protocolVersion": "1", "name": "other", "version": "1", "stateSchemaVersion": 0,
                "uiActions": actions, "subscriptions": ["tool.before", "tool.before"],
            });
            Some(answer(frame, &result).into_iter().map(|act| after(20_000, act)).collect())
        })
    });
    assert_eq!(stage.start(&[("one", everything(v1()))])["done"], true);
    assert_eq!(stage.shown("warning").len(), 1);
    assert!(stage.does(json!({"do": "action", "plugin": "one", "action": "good"}))["refused"].is_string());
}
