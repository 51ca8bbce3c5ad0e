//! Surfaces and prompts of guests, and what the user does with them.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;

use crate::stage::{Act, MILLI, Puppet, Stage, after, answer, intercepting, say, stage, v1};

fn ui() -> Value {
    json!({"capabilities": ["ui"]})
}

/// A request of the plugin `one`, and its answer if one has come.
fn asks(stage: &mut Stage<'_>, id: u64, method: &str, changes: &Value) -> Option<Value> {
    let mut params = json!({
        "sessionId": "session-1", "generation": 1, "surfaceId": "s1", "kind": "status", "payload": {"label": "Ready"},
    });
    for (name, value) in changes.as_object().unwrap() {
        params[name] = value.clone();
    }
    let link = stage.link("one");
    stage.act(link, say(&json!({"id": id, "method": method, "params": params})));
    stage.wait(1);
    stage.answers().into_iter().find(|it| it["id"] == id).cloned()
}

#[test]
fn surfaces_are_checked_and_shown() {
    let mut stage = stage();
    stage.start(&[("one", ui())]);
    let accepted = [
        (
            "status",
            json!({"label": "Ready", "detail": "<b>x</b> token=abcdef", "severity": "info", "progress": 7}),
        ),
        ("card", json!({})),
        (
            "card",
            json!({"title": "T", "markdown": "[x](javascript:y)", "fields": [{"key": "k", "value": "v"}]}),
        ),
        ("form", json!({"title": "F", "fields": [{"key": "k", "kind": "input"}]})),
        ("notification", json!({"title": "N", "body": "B"})),
    ];
    for (id, (kind, payload)) in (1..).zip(&accepted) {
        let answer =
            asks(&mut stage, id, names::UI_PUBLISH, &json!({"kind": kind, "payload": payload})).unwrap();
        assert_eq!(answer["result"], json!({"accepted": true}), "{payload}");
    }
    let shown = stage.shown("surface");
    let texts: Vec<&str> = shown.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(texts, ["Ready\n&lt;b>x&lt;/b> token=****", "", "T\n[x](javascript:y)\nk: v", "F", "N\nB"]);
    assert!(shown.iter().all(|it| it["plugin"] == "one" && it["surface"] == "s1"));
    let refused = [
        ("panel", json!({"label": "x"})),
        ("status", json!({"label": ""})),
        ("status", json!({"label": "x", "severity": "bad"})),
        ("status", json!({"label": "x", "html": "<b>"})),
        ("status", Value::Null),
        ("status", json!("x")),
        ("form", json!({})),
        ("notification", json!({})),
    ];
    for (id, (kind, payload)) in (100..).zip(&refused) {
        let answer =
            asks(&mut stage, id, names::UI_PUBLISH, &json!({"kind": kind, "payload": payload})).unwrap();
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["reason"]),
            (&json!(-32602), &json!("invalid_params"))
        );
    }
    let answer = asks(&mut stage, 200, names::UI_PUBLISH, &json!({"pluginId": "one"})).unwrap();
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(stage.shown("surface").len(), accepted.len());
}

#[test]
fn what_is_of_another_session_or_generation_is_passed_over() {
    let mut stage = stage();
    stage.start(&[("one", ui())]);
    let stale = [
        json!({"generation": 0}),
        json!({"generation": 2}),
        json!({"sessionId": "other"}),
        json!({"generation": 0, "payload": 1}),
    ];
    for (id, changes) in (1..).zip(&stale) {
        let answer = asks(&mut stage, id, names::UI_PUBLISH, changes).unwrap();
        assert_eq!(answer["result"], json!({"accepted": false}), "{changes}");
        let mut changes = changes.clone();
        changes["kind"] = "confirm".into();
        let answer = asks(&mut stage, 100 + id, names::UI_REQUEST, &changes).unwrap();
        assert_eq!(answer["result"], json!({"cancelled": true}), "{changes}");
    }
    for (id, generation) in [(200, json!(-1)), (201, json!(1.0)), (202, json!("1"))] {
        let answer = asks(&mut stage, id, names::UI_PUBLISH, &json!({"generation": generation})).unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{generation}");
    }
    assert!(stage.shown("surface").is_empty() && stage.shown("prompt").is_empty());
}

#[test]
fn surfaces_need_the_capability_and_a_host_that_shows_them() {
    let mut manners = Manners::default();
    manners.ui.available = false;
    for (manners, block, reason, code) in [
        (Manners::default(), json!({}), "capability_not_declared", -32000),
        (manners, ui(), "unknown_method", -32601),
    ] {
        let mut stage = Stage::new(v1(), manners);
        stage.start(&[("one", block)]);
        for (id, method, kind) in [(1, names::UI_PUBLISH, "status"), (2, names::UI_REQUEST, "confirm")] {
            let answer = asks(&mut stage, id, method, &json!({ "kind": kind })).unwrap();
            assert_eq!(
                (&answer["error"]["data"]["reason"], &answer["error"]["code"]),
                (&json!(reason), &json!(code))
            );
        }
    }
}

#[test]
fn prompts_are_answered_by_the_user() {
    let mut stage = stage();
    stage.start(&[("one", ui())]);
    let form = |kind: &str| json!({"message": "sk-abcdefghijkl1234?", "fields": [{"key": "k", "kind": kind, "options": ["a", "b"]}]});
    let cases = [
        ("confirm", json!({"fields": []}), json!({"value": true}), json!({"value": true})),
        ("confirm", form("confirm"), json!({"k": "yes"}), json!({"k": true})),
        ("input", form("input"), json!({"k": "text"}), json!({"k": "text"})),
        ("select", form("select"), json!({"k": "a"}), json!({"k": "a"})),
        ("multiselect", form("multiselect"), json!({"k": ["a", "b"]}), json!({"k": ["a", "b"]})),
        ("multiselect", form("multiselect"), json!({"k": "a", "other": 1}), json!({"k": ["a"]})),
        ("input", form("input"), json!({}), Value::Null),
    ];
    for (id, (kind, payload, values, expected)) in (1..).zip(&cases) {
        assert_eq!(asks(&mut stage, id, names::UI_REQUEST, &json!({"kind": kind, "payload": payload})), None);
        let shown = (*stage.shown("prompt").last().unwrap()).clone();
        assert_eq!((&shown["kind"], &shown["prompt"]), (&json!(kind), &json!(format!("p{id}"))));
        assert!(!shown.to_string().contains("sk-abc") && shown["fields"][0]["key"].is_string());
        assert_eq!(
            stage.does(json!({"do": "answer", "prompt": shown["prompt"], "values": values}))["done"],
            true
        );
        let answer = stage.answers().into_iter().find(|it| it["id"] == id).unwrap();
        assert_eq!(answer["result"]["cancelled"], expected.is_null());
        assert_eq!(answer["result"]["values"], *expected);
    }
    assert_eq!(
        asks(&mut stage, 50, names::UI_REQUEST, &json!({"kind": "confirm", "payload": {"fields": []}})),
        None
    );
    stage.does(json!({"do": "answer", "prompt": "p8", "cancelled": true}));
    assert_eq!(stage.answers().last().unwrap()["result"], json!({"cancelled": true}));
    assert!(stage.does(json!({"do": "answer", "prompt": "p8"}))["refused"].is_string());
    let answer =
        asks(&mut stage, 51, names::UI_REQUEST, &json!({"kind": "prompt", "payload": {"fields": []}}))
            .unwrap();
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn sixty_four_requests_at_once_and_no_more() {
    let mut stage = stage();
    stage.start(&[("one", ui())]);
    for id in 1..=70 {
        let answer =
            asks(&mut stage, id, names::UI_REQUEST, &json!({"kind": "confirm", "payload": {"fields": []}}));
        let error = answer.map(|it| it["error"].clone());
        assert_eq!(error, (id > 64).then(|| json!({"code": -32099, "message": "server busy"})), "{id}");
    }
    stage.does(json!({"do": "answer", "prompt": "p1", "values": {"value": true}}));
    assert!(asks(&mut stage, 71, names::UI_PUBLISH, &json!({})).unwrap()["result"].is_object());
}

#[test]
fn actions_and_forms_reach_their_guest() {
    let mut stage = stage();
    for name in ["one", "two"] {
        stage.casts(name, || {
            Puppet::new().with_actions(&["demo"]).on(names::UI_ACTION, |frame| {
                let accepted = frame["params"]["args"]["no"].is_null();
                Some(answer(frame, &json!({"accepted": accepted, "message": "password: hunter2"})))
            })
        });
    }
    stage.start(&[("one", ui()), ("two", ui())]);
    let outcome = stage.does(json!({"do": "action", "plugin": "one", "action": "demo", "args": {"a": "1"}}));
    assert_eq!((&outcome["done"], &outcome["text"]), (&json!(true), &json!("password: ****")));
    let params = &stage.calls(names::UI_ACTION)[0].frame["params"];
    assert_eq!(
        params,
        &json!({"actionId": "demo", "args": {"a": "1"}, "sessionId": "session-1", "generation": 1})
    );
    assert_eq!(stage.shown("notice")[0]["text"], "password: ****");
    let outcome = stage.does(json!({"do": "action", "plugin": "one", "action": "demo", "args": {"no": "1"}}));
    assert!(outcome["failed"].is_string());
    assert!(stage.does(json!({"do": "action", "plugin": "one", "action": "other"}))["refused"].is_string());
    assert!(stage.does(json!({"do": "action", "plugin": "nobody", "action": "demo"}))["failed"].is_string());
    assert_eq!(stage.calls(names::UI_ACTION).len(), 2);

    let form = json!({"kind": "form", "payload": {"fields": [{"key": "k", "kind": "input"}]}});
    asks(&mut stage, 1, names::UI_PUBLISH, &form);
    let submit =
        |plugin: &str| json!({"do": "submit", "plugin": plugin, "surface": "s1", "values": {"k": "v"}});
    assert!(stage.does(submit("two"))["refused"].is_string());
    assert_eq!(stage.does(submit("one"))["done"], true);
    let submits = stage.calls(names::UI_SUBMIT);
    assert_eq!((submits.len(), submits[0].plugin.as_str()), (1, "one"));
    let expected =
        json!({"surfaceId": "s1", "values": {"k": "v"}, "sessionId": "session-1", "generation": 1});
    assert_eq!(submits[0].frame["params"], expected);
}

#[test]
fn what_comes_after_a_reload_changes_nothing() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new()
            .with_actions(&["demo"])
            .on(names::UI_ACTION, |frame| {
                Some(vec![after(500, answer(frame, &json!({"accepted": true, "message": "late"})).remove(0))])
            })
            .on(names::SHUTDOWN, |frame| {
                Some(vec![after(1_000, answer(frame, &json!({"accepted": true})).remove(0))])
            })
    });
    stage.start(&[("one", ui())]);
    let action = stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
    asks(&mut stage, 1, names::UI_REQUEST, &json!({"kind": "confirm", "payload": {"fields": []}}));
    assert_eq!(stage.does(json!({"do": "reload"}))["done"], true);
    assert_eq!(stage.answers()[0]["result"], json!({"cancelled": true}), "nobody can answer it any more");
    assert_eq!(stage.outcome(action)["reason"], "provider_interrupted");
    stage.wait(2_000);
    assert!(stage.shown("notice").is_empty());
    let stale = asks(&mut stage, 2, names::UI_PUBLISH, &json!({})).unwrap();
    assert_eq!(stale["result"], json!({"accepted": false}));
    let current = asks(&mut stage, 3, names::UI_PUBLISH, &json!({"generation": 2})).unwrap();
    assert_eq!(current["result"], json!({"accepted": true}));
}

#[test]
fn what_is_shown_passes_the_frontend_point() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new().on(names::INTERCEPT, |frame| {
            let payload = &frame["params"]["payload"];
            let replacement = json!({"kind": payload["kind"], "text": "other"});
            let ruling = match payload["text"].as_str() {
                Some("hide") => json!({"decision": "block"}),
                Some("change") => json!({"decision": "replace", "replacement": replacement}),
                _ => json!({"decision": "continue"}),
            };
            Some(answer(frame, &ruling))
        })
    });
    let mut block = intercepting(&["frontend.event"]);
    block["capabilities"] = json!(["ui"]);
    stage.start(&[("one", block)]);
    for (id, label) in [(1, "hide"), (2, "change"), (3, "plain")] {
        asks(&mut stage, id, names::UI_PUBLISH, &json!({"payload": {"label": label}}));
    }
    stage.wait(10);
    let texts: Vec<&str> = stage.shown("surface").iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(texts, ["other", "plain"]);
    let payload = &stage.intercepts("frontend.event")[0].frame["params"]["payload"];
    assert_eq!(payload["kind"], "extension_status");
    assert!(payload["detail"].as_str().unwrap().contains(r#""plugin":"one""#));
}

#[test]
fn a_guest_that_does_not_react_to_the_user_is_waited_for_a_while() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new().with_actions(&["demo"]).on(names::UI_ACTION, |_| Some(Vec::<Act>::new()))
    });
    stage.start(&[("one", ui())]);
    let before = stage.now;
    let outcome = stage.does(json!({"do": "action", "plugin": "one", "action": "demo"}));
    assert!(outcome["failed"].is_string() && stage.now - before >= 60_000 * MILLI);
}
