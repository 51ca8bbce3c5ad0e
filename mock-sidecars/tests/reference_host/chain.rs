//! Who is asked at a point and in which order, what rulings do, and what is done about a guest that fails.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;

use crate::stage::{
    Act, MILLI, Puppet, Stage, after, answer, chunk, end, error, intercepting, stage, v1, with_model, words,
};

/// Plugins with these runtime blocks besides one with a model, and a turn.
fn turn(stage: &mut Stage<'static>, plugins: &[(&str, Value)]) -> Value {
    let model = with_model(stage, "Hello");
    let mut all = plugins.to_vec();
    all.push(model);
    let outcome = stage.start(&all);
    assert_eq!(outcome["done"], true, "{outcome}");
    stage.turn("hi")
}

fn order(stage: &Stage<'_>, point: &str) -> Vec<String> {
    stage.intercepts(point).iter().map(|it| it.plugin.clone()).collect()
}

#[test]
fn priority_then_name_and_each_after_the_one_before() {
    let mut stage = stage();
    let with = |priority: Option<i64>| {
        let mut block = intercepting(&["input.receive"]);
        if let Some(priority) = priority {
            block["priority"] = priority.into();
        }
        block
    };
    for name in ["a", "b", "c", "d"] {
        stage.casts(name, || {
            Puppet::new().on(names::INTERCEPT, |frame| {
                let acts = answer(frame, &json!({"decision": "continue"}));
                Some(acts.into_iter().map(|act| after(200, act)).collect())
            })
        });
    }
    turn(
        &mut stage,
        &[("d", with(Some(-5))), ("c", with(Some(-5))), ("b", with(Some(10))), ("a", with(None))],
    );
    assert_eq!(order(&stage, "input.receive"), ["c", "d", "a", "b"]);
    let times: Vec<_> = stage.intercepts("input.receive").iter().map(|it| it.at).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 200 * MILLI), "{times:?}");
}

#[test]
fn the_next_one_sees_the_replacement_and_the_event_has_it() {
    let mut stage = stage();
    stage.casts("a", || {
        Puppet::new().at("input.receive", json!({"decision": "replace", "replacement": {"text": "new"}}))
    });
    stage.casts("b", || {
        Puppet::new().at("input.receive", json!({"decision": "continue", "replacement": {"text": "never"}}))
    });
    turn(&mut stage, &[("a", intercepting(&["input.receive"])), ("b", intercepting(&["input.receive"]))]);
    let seen: Vec<_> =
        stage.intercepts("input.receive").iter().map(|it| it.frame["params"]["payload"].clone()).collect();
    assert_eq!(seen, [json!({"text": "hi"}), json!({"text": "new"})]);
    assert!(stage.events("input.receive").iter().all(|it| it.frame["params"]["payload"]["text"] == "new"));
    assert_eq!(stage.events("input.receive").len(), 2);
    let open = &stage.calls(names::STREAM_OPEN)[0].frame["params"]["request"]["messages"];
    assert_eq!(open[1]["content"], "new");
}

#[test]
fn a_block_ends_the_operation_and_the_chain() {
    for (reason, says) in [(json!("key sk-abcdefghijkl1234"), ": key ****"), (Value::Null, "")] {
        let mut stage = stage();
        stage.casts("a", move || {
            let mut ruling = json!({"decision": "block"});
            if reason.is_string() {
                ruling["reason"] = reason.clone();
            }
            Puppet::new().at("input.receive", ruling)
        });
        let points = intercepting(&["input.receive"]);
        let outcome = turn(&mut stage, &[("a", points.clone()), ("b", points)]);
        assert_eq!(outcome["blocked"], format!("plugin a blocked input.receive{says}"));
        assert_eq!(order(&stage, "input.receive"), ["a"]);
        assert_eq!((stage.events("input.receive").len(), stage.calls(names::STREAM_OPEN).len()), (2, 0));
    }
}

/// What a guest rules at `input.receive` that it may not, and what the user is told of it.
const VIOLATIONS: &[(&str, &str)] = &[
    (r#"{"decision":"allow"}"#, "may not allow"),
    (r#"{"decision":"deny"}"#, "may not deny"),
    (r#"{"decision":"ALLOW"}"#, "not one of"),
    (r#"{"decision":"continue","extra":1}"#, "extra"),
    (r#"{"decision":"block","reason":null}"#, "null"),
    (r#"{"decision":"replace"}"#, "no replacement"),
    (r#"{"decision":"replace","replacement":null}"#, "null"),
    (r#"{"decision":"replace","replacement":{"text":""}}"#, "empty"),
    (r#"{"decision":"replace","replacement":{"text":1}}"#, "string"),
    (r#"{"decision":"replace","replacement":{"text":"x","more":1}}"#, "more"),
];

#[test]
fn what_may_not_be_ruled_is_a_failure_of_the_guest_alone() {
    for (ruling, says) in VIOLATIONS {
        for required in [false, true] {
            let ruling: Value = serde_json::from_str(ruling).unwrap();
            let mut stage = stage();
            stage.casts("a", move || Puppet::new().at("input.receive", ruling.clone()));
            let mut block = intercepting(&["input.receive"]);
            block["required"] = required.into();
            let outcome = turn(&mut stage, &[("a", block)]);
            let told = if required {
                outcome["failed"].as_str()
            } else {
                stage.shown("warning")[0]["text"].as_str()
            };
            assert!(told.unwrap().contains(says), "{told:?} {says}");
            assert_eq!(outcome["reason"] == "protocol_error", required);
            assert_eq!(stage.calls(names::STREAM_OPEN).is_empty(), required);
            if !required {
                assert_eq!(stage.turn("again")["text"], "Hello");
                assert_eq!(stage.shown("warning").len(), 1, "one warning for each plugin");
            }
        }
    }
}

#[test]
fn a_replacement_is_held_to_the_schema() {
    let request = |messages: Value, tools: Value| json!({"request": {"messages": messages, "tools": tools, "maxTokens": 1}});
    let cases = [
        ("provider.request", request(json!([{"role": "king"}]), json!([]))),
        ("provider.request", json!({"request": {"messages": [], "tools": []}})),
        ("provider.request", request(json!([]), json!([{"name": "", "parameters": {}}]))),
        ("provider.request", request(json!([{"tool_calls": [{"name": "x", "arguments": "{}"}]}]), json!([]))),
        ("provider.response", json!({"usage": {"promptTokens": -1}})),
        ("provider.response", json!({"calls": [{"id": "", "name": "x", "arguments": "{}"}]})),
        ("context.prepare", json!({})),
        ("session.save", json!({"phase": "start"})),
        ("frontend.event", json!({"kind": "other"})),
    ];
    for (point, replacement) in cases {
        let mut stage = stage();
        let ruling = json!({"decision": "replace", "replacement": replacement});
        stage.casts("a", move || Puppet::new().at(point, ruling.clone()));
        let outcome = turn(&mut stage, &[("a", intercepting(&[point]))]);
        assert_eq!(outcome["text"], "Hello", "{point}");
        let told = stage.shown("warning")[0]["text"].as_str().unwrap();
        assert!(told.contains("broke the rules"), "{told}");
    }
}

#[test]
fn budgets_and_late_answers() {
    for (manifest, short, long) in
        [(0, 5_000, 30_000), (1_500, 1_500, 1_500), (60_000, 60_000, 60_000), (90_000, 60_000, 60_000)]
    {
        let mut stage = stage();
        stage.casts("a", || {
            Puppet::new().on(names::INTERCEPT, |frame| {
                let acts = answer(frame, &json!({"decision": "block"}));
                (frame["params"]["event"] == "input.receive")
                    .then(|| acts.into_iter().map(|act| after(70_000, act)).collect())
            })
        });
        let mut block = intercepting(&["input.receive", "context.prepare", "provider.request"]);
        block["timeoutMillis"] = manifest.into();
        let model = with_model(&mut stage, "Hello");
        stage.start(&[("a", block), model]);
        let before = stage.now;
        let outcome = stage.turn("hi");
        assert_eq!(outcome["text"], "Hello");
        assert!(stage.now - before >= short * MILLI && stage.now - before < (short + 100) * MILLI);
        for (point, millis) in
            [("input.receive", short), ("context.prepare", long), ("provider.request", long)]
        {
            assert_eq!(stage.intercepts(point)[0].frame["params"]["timeoutMillis"], millis, "{point}");
        }
        assert!(stage.shown("warning")[0]["text"].as_str().unwrap().contains("in time"));
        stage.wait(80_000);
        assert_eq!(stage.turn("again")["text"], "Hello", "the late answer changed nothing");
    }
}

#[test]
fn whoever_is_required_or_owns_a_slot_fails_the_operation() {
    let mut required = intercepting(&["input.receive"]);
    required["required"] = true.into();
    let mut owner = intercepting(&["input.receive"]);
    owner["replaces"] = json!(["compaction"]);
    for block in [required, owner] {
        let mut stage = stage();
        stage.casts("a", || {
            Puppet::new()
                .on(names::INTERCEPT, |frame| (frame["params"]["event"] == "input.receive").then(Vec::new))
        });
        let outcome = turn(&mut stage, &[("a", block)]);
        assert_eq!(outcome["reason"], "intercept_timeout", "{outcome}");
        assert_eq!(stage.events("input.receive").len(), 0, "nothing is told of what failed");
    }
    let mut stage = stage();
    let body =
        json!({"code": -32603, "message": "broken", "data": {"reason": "internal", "retryable": true}});
    stage.casts("a", move || {
        let body = body.clone();
        Puppet::new().on(names::INTERCEPT, move |frame| Some(error(frame, &body)))
    });
    let mut block = intercepting(&["input.receive"]);
    block["required"] = true.into();
    let outcome = turn(&mut stage, &[("a", block)]);
    assert_eq!(
        (&outcome["reason"], &outcome["failed"]),
        (&json!("internal"), &json!("plugin a failed at input.receive: broken"))
    );
}

#[test]
fn owners_have_the_last_word_after_the_chain() {
    let owning = |ruling: Value| {
        let mut stage = stage();
        let first = json!({"decision": "replace", "replacement": {"messages": [{"role": "user", "content": "chain"}]}});
        stage.casts("chain", move || Puppet::new().at("context.prepare", first.clone()));
        stage.casts("owner", move || Puppet::new().at("context.prepare", ruling.clone()));
        let mut owner = intercepting(&["context.prepare"]);
        (owner["replaces"], owner["priority"]) = (json!(["context"]), 9.into());
        let outcome = turn(&mut stage, &[("chain", intercepting(&["context.prepare"])), ("owner", owner)]);
        (stage, outcome)
    };
    let last = json!({"messages": [{"role": "user", "content": "owner"}]});
    let (stage, outcome) = owning(json!({"decision": "replace", "replacement": last}));
    assert_eq!(outcome["text"], "Hello");
    assert_eq!(order(&stage, "context.prepare"), ["chain", "owner", "owner"]);
    assert_eq!(stage.events("context.prepare").len(), 2, "whoever is asked twice is told once");
    assert!(stage.events("context.prepare").iter().all(|it| it.frame["params"]["payload"] == last));
    let open = &stage.calls(names::STREAM_OPEN)[0].frame["params"]["request"]["messages"];
    assert_eq!(open[0]["content"], "owner");
    let (_, outcome) = owning(json!({"decision": "block", "reason": "no"}));
    assert_eq!(outcome["blocked"], "plugin owner blocked context.prepare: no");
    let (stage, outcome) = owning(json!({"decision": "allow"}));
    assert!(outcome["failed"].is_string() && stage.calls(names::STREAM_OPEN).is_empty());
}

/// A turn in which the model runs a tool, with guests `a` that rule so.
fn tool_turn(
    tool: &'static str,
    permission: &str,
    block: Value,
    rulings: &'static [(&'static str, &'static str)],
) -> Stage<'static> {
    let mut stage = Stage::new(v1(), Manners::default());
    stage.casts("a", move || {
        rulings.iter().fold(Puppet::new(), |puppet, (point, ruling)| {
            puppet.at(point, serde_json::from_str(ruling).unwrap())
        })
    });
    stage.casts("model", move || {
        let mut opened = 0;
        Puppet::new().with_models(&["plugin/model/p/m"]).streaming(move |open| {
            opened += 1;
            if opened > 1 {
                return vec![words(open, 1, "Done"), end(open, 1)];
            }
            let call = json!({"id": "c1", "name": tool, "arguments": "{\"path\":\"README.md\"}"});
            vec![chunk(open, 1, &json!({"type": "tool_call", "toolCall": call})), end(open, 1)]
        })
    });
    let plugins: Vec<Value> = [("a", block), ("model", json!({"capabilities": ["providers"]}))]
        .iter()
        .map(|(name, block)| crate::stage::plugin(v1(), name, block))
        .collect();
    stage.does(json!({"do": "start", "workspace": "/", "permission": permission, "plugins": plugins}));
    assert_eq!(stage.turn("go")["text"], "Done");
    stage
}

fn told(stage: &Stage<'_>) -> String {
    let opens = stage.calls(names::STREAM_OPEN);
    let messages = opens.last().unwrap().frame["params"]["request"]["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

const ALLOW: &[(&str, &str)] = &[("permission.decision", r#"{"decision":"allow"}"#)];
const DENY: &[(&str, &str)] = &[("permission.decision", r#"{"decision":"deny"}"#)];
const REPLACE: &[(&str, &str)] = &[(
    "permission.decision",
    r#"{"decision":"replace","replacement":{"name":"write_file","hostDecision":"allow"}}"#,
)];

#[test]
fn permissions() {
    let at = |points: &[&str]| intercepting(points);
    let owner = || json!({"replaces": ["permission"], "capabilities": ["strategies"]});
    let ruling = at(&["permission.decision"]);
    for (tool, permission, block, rulings, expected) in [
        ("write_file", "deny", at(&[]), &[] as &[_], "the host denies the tool write_file"),
        ("write_file", "allow", at(&[]), &[], "0 bytes were written"),
        ("read_file", "deny", at(&[]), &[], "A file of the reference host."),
        ("write_file", "deny", ruling.clone(), ALLOW, "0 bytes were written"),
        ("read_file", "deny", ruling.clone(), DENY, "plugin a denied the tool read_file"),
        ("write_file", "deny", owner(), ALLOW, "0 bytes were written"),
        ("read_file", "allow", owner(), DENY, "plugin a denied the tool read_file"),
        ("write_file", "deny", ruling, REPLACE, "0 bytes were written"),
    ] {
        let stage = tool_turn(tool, permission, block, rulings);
        assert_eq!(told(&stage), expected);
        let audited = rulings == ALLOW;
        assert_eq!(stage.shown("notice").len(), usize::from(audited), "{expected}");
    }
}

const OTHER: &[(&str, &str)] =
    &[("tool.before", r#"{"decision":"replace","replacement":{"name":"ls","arguments":"{}"}}"#)];
const UNKNOWN: &[(&str, &str)] =
    &[("tool.before", r#"{"decision":"replace","replacement":{"name":"rm","arguments":"{}"}}"#)];
const EMPTY: &[(&str, &str)] = &[("tool.before", r#"{"decision":"replace","replacement":{"name":"ls"}}"#)];
const BLOCK: &[(&str, &str)] = &[("tool.before", r#"{"decision":"block","reason":"no"}"#)];
const BROKEN: &[(&str, &str)] = &[("tool.before", r#"{"decision":"allow"}"#)];
const AFTER: &[(&str, &str)] =
    &[("tool.after", r#"{"decision":"replace","replacement":{"name":"read_file","result":"other"}}"#)];

#[test]
fn tools_that_are_changed_blocked_or_owned() {
    let owner = json!({"replaces": ["tool:read_file"], "capabilities": ["strategies"]});
    let mut required = intercepting(&["tool.before"]);
    required["required"] = true.into();
    for (block, rulings, expected) in [
        (intercepting(&["tool.before"]), OTHER, "README.md"),
        (intercepting(&["tool.before"]), UNKNOWN, "there is no tool rm"),
        (intercepting(&["tool.before"]), EMPTY, "the arguments are not the text of an object"),
        (intercepting(&["tool.before"]), BLOCK, "plugin a blocked tool.before: no"),
        (owner, BLOCK, "plugin a blocked tool.before: no"),
        (required, BROKEN, "plugin a broke the rules of tool.before: it may not allow there"),
        (intercepting(&["tool.after"]), AFTER, "other"),
    ] {
        assert_eq!(told(&tool_turn("read_file", "allow", block, rulings)), expected);
    }
}

#[test]
fn slots_have_one_owner() {
    let with = |slots: &[&str]| json!({ "replaces": slots });
    for (one, other, conflict) in [
        (&["context"] as &[&str], &["context"] as &[&str], Some("context")),
        (&["tool:ls"], &["tool:ls"], Some("tool:ls")),
        (&["provider:a/b"], &["provider:a/b"], Some("provider:a/b")),
        (&["context", "context"], &[], Some("context")),
        (&["tool:ls"], &["tool:cat"], None),
    ] {
        let mut stage = stage();
        let outcome = stage.start(&[("one", with(one)), ("two", with(other))]);
        match conflict {
            None => assert_eq!(outcome["done"], true),
            Some(slot) => {
                let text = outcome["failed"].as_str().unwrap();
                assert!(text.contains(slot) && text.contains("one") && stage.launched.is_empty(), "{text}");
            }
        }
    }
}

#[test]
fn a_guest_that_only_observes_changes_nothing() {
    let mut stage = stage();
    stage.casts("a", || {
        Puppet::new().on(names::EVENT, |_| {
            Some(vec![Act::Say(r#"{"jsonrpc":"2.0","id":999,"result":{"decision":"block"}}"#.to_owned())])
        })
    });
    assert_eq!(turn(&mut stage, &[("a", intercepting(&["input.receive"]))])["text"], "Hello");
    assert!(stage.answers().is_empty());
}
