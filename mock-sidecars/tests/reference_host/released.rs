//! Where the released implementation and the specification part: each host does what it should.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;

use crate::frames::answered;
use crate::stage::{
    Act, Puppet, Stage, after, answer, chunk, end, everything, intercepting, plugin, say, v1, v2, with_model,
    words,
};

/// The host that conforms, and then the other.
fn both() -> [(bool, Manners); 2] {
    [(false, Manners::default()), (true, Manners::released())]
}

fn open(manners: Manners, block: Value) -> Stage<'static> {
    let mut stage = Stage::new(v1(), manners);
    stage.start(&[("one", block)]);
    stage
}

#[test]
fn ids_params_and_malformed_responses() {
    let read = r#""method":"host/content/read","params":{"contentRef":"x","offset":0}"#;
    for (released, manners) in both() {
        let mut stage = open(manners, json!({}));
        let lines = [
            (
                format!(r#"{{"jsonrpc":"2.0","id":"a",{read}}}"#),
                Some(json!([null, -32600])),
                Some(json!(["a", -32000])),
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":null,{read}}}"#),
                Some(json!([null, -32600])),
                Some(json!([null, -32000])),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"host/content/read","params":[]}"#.to_owned(),
                Some(json!([1, -32600])),
                Some(json!([1, -32602])),
            ),
            (
                r#"{"jsonrpc":"2.0","id":2,"result":1,"error":null}"#.to_owned(),
                None,
                Some(json!([2, -32600])),
            ),
            (r#"{"jsonrpc":"2.0","id":3,"error":{"code":1}}"#.to_owned(), None, Some(json!([3, -32600]))),
        ];
        for (line, conforming, other) in lines {
            let answers = answered(&mut stage, format!("{line}\n").as_bytes());
            let seen = answers.first().map(|it| json!([it["id"], it["error"]["code"]]));
            assert_eq!(seen, if released { other } else { conforming }, "{line}");
            let data = answers.first().map_or(&Value::Null, |it| &it["error"]["data"]);
            assert_eq!(data["action"].is_string(), data.is_object() && !released, "{line}");
        }
    }
}

#[test]
fn a_line_that_is_too_long_has_a_reason_or_none() {
    for (released, manners) in both() {
        let mut stage = Stage::new(v1(), manners);
        stage.casts("one", || {
            Puppet::new().on(names::INTERCEPT, |_| Some(vec![Act::Bytes(vec![b'x'; 9 << 20])]))
        });
        let model = with_model(&mut stage, "Hello");
        let mut block = intercepting(&["input.receive"]);
        block["required"] = true.into();
        stage.start(&[("one", block), model]);
        let reason = if released { "provider_interrupted" } else { "frame_too_large" };
        assert_eq!(stage.turn("hi")["reason"], reason);
        assert!(stage.answers().is_empty());
    }
}

#[test]
fn the_handshake() {
    let provides = json!([{"kind": "provider", "namespace": "p", "id": "m"}]);
    for (released, manners) in both() {
        let mut stage = Stage::new(v2(), manners.clone());
        stage.casts("one", || Puppet::new().with_models(&["plugin/one/p/other"]));
        let block = json!({"capabilities": ["providers"], "provides": provides, "required": true});
        let outcome = stage.start(&[("one", block)]);
        assert_eq!(outcome["done"] == true, released, "{outcome}");
        let manifest = &stage.written[0].frame["params"]["manifest"];
        assert_eq!(manifest["providers"].is_null(), released);
        let early: [Act; 3] = [
            Act::Say("a banner".to_owned()),
            Act::Say(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned()),
            say(&json!({"method": "x"})),
        ];
        for (place, act) in early.into_iter().enumerate() {
            let mut stage = Stage::new(v1(), manners.clone());
            stage.casts("one", move || Puppet::new().first(vec![act.clone()]));
            let outcome = stage.start(&[("one", json!({"required": true}))]);
            assert_eq!(outcome["done"] == true, released && place < 2, "{place}: {outcome}");
        }
        for version in ["01", "+1"] {
            let mut stage = Stage::new(v1(), manners.clone());
            stage.casts("one", move || Puppet::new().greets(json!({"protocolVersion": version})));
            let outcome = stage.start(&[("one", json!({"required": true}))]);
            assert_eq!(outcome["done"] == true, released, "{version}: {outcome}");
        }
    }
}

#[test]
fn points_that_are_asked_and_told() {
    for (released, manners) in both() {
        let mut stage = Stage::new(v1(), manners);
        stage.casts("one", || Puppet::new().with_models(&["plugin/one/p/m"]).answering("Hello"));
        stage.start(&[("one", everything(v1()))]);
        stage.turn("hi");
        stage.does(json!({"do": "reload"}));
        stage.does(json!({"do": "new-session"}));
        stage.does(json!({"do": "stop"}));
        let only_told =
            ["system_prompt.build", "frontend.event", "session.start", "session.end", "session.rotate"];
        for point in only_told {
            assert_eq!(stage.intercepts(point).is_empty(), released, "{point}");
            assert_eq!(stage.events(point).len(), 1, "{point}");
        }
        for point in ["session.load", "session.save"] {
            assert_eq!(
                stage.intercepts(point).is_empty() && stage.events(point).is_empty(),
                released,
                "{point}"
            );
        }
        assert_eq!(
            (stage.intercepts("input.receive").len(), stage.events("input.receive").is_empty()),
            (1, released)
        );
    }
}

#[test]
fn owners() {
    for (released, manners) in both() {
        let mut stage = Stage::new(v1(), manners.clone());
        stage.casts("one", || Puppet::new().at("frontend.event", json!({"decision": "allow"})));
        let model = with_model(&mut stage, "Hello");
        stage.start(&[("one", json!({"replaces": ["frontend_events"]})), model]);
        let outcome = stage.turn("hi");
        assert_eq!(
            (outcome["done"] == true, stage.shown("warning").len()),
            (released, usize::from(released)),
            "{outcome}"
        );

        for (slot, point, ruling, conforming, other) in [
            (
                "tool:write_file",
                "tool.before",
                json!({"decision": "block"}),
                "plugin one blocked tool.before",
                "the host denies the tool write_file",
            ),
            (
                "permission",
                "permission.decision",
                json!({"decision": "allow"}),
                "0 bytes were written",
                "plugin one broke the rules of permission.decision: it may not allow there",
            ),
            (
                "permission",
                "permission.decision",
                json!({"decision": "replace", "replacement": {"name": "write_file", "hostDecision": "allow"}}),
                "0 bytes were written",
                "the host denies the tool write_file",
            ),
        ] {
            let mut stage = Stage::new(v1(), manners.clone());
            stage.casts("one", move || Puppet::new().at(point, ruling.clone()));
            stage.casts("model", || {
                let mut opened = 0;
                Puppet::new().with_models(&["plugin/model/p/m"]).streaming(move |open| {
                    opened += 1;
                    let call = json!({"id": "c", "name": "write_file", "arguments": "{}"});
                    let first = chunk(open, 1, &json!({"type": "tool_call", "toolCall": call}));
                    vec![if opened == 1 { first } else { words(open, 1, "Done") }, end(open, 1)]
                })
            });
            let plugins = [
                plugin(v1(), "one", &json!({"replaces": [slot]})),
                plugin(v1(), "model", &json!({"capabilities": ["providers"]})),
            ];
            stage.does(json!({"do": "start", "workspace": "/", "permission": "deny", "plugins": plugins}));
            assert_eq!(stage.turn("hi")["text"], "Done");
            let opens = stage.calls(names::STREAM_OPEN);
            let messages = opens[1].frame["params"]["request"]["messages"].as_array().unwrap();
            assert_eq!(messages.last().unwrap()["content"], if released { other } else { conforming });
        }
    }
}

#[test]
fn replacements_are_checked_more_or_less() {
    let request = |message: Value| json!({"request": {"messages": [message], "tools": [], "maxTokens": 1}});
    let cases = [
        (request(json!({"role": "king"})), false),
        (request(json!({"role": "", "content": null})), false),
        (json!({"request": {"messages": [], "tools": []}}), false),
        (request(json!({"role": "user", "more": 1})), true),
        (request(json!({"role": 1})), true),
        (json!({"request": {"messages": []}}), true),
    ];
    for (released, manners) in both() {
        for (replacement, refused) in &cases {
            let mut stage = Stage::new(v1(), manners.clone());
            // What is let through breaks the schema on the way to the model too.
            stage.checks = !released;
            let ruling = json!({"decision": "replace", "replacement": replacement});
            stage.casts("one", move || Puppet::new().at("provider.request", ruling.clone()));
            let model = with_model(&mut stage, "Hello");
            stage.start(&[("one", intercepting(&["provider.request"])), model]);
            assert_eq!(stage.turn("hi")["text"], "Hello");
            assert_eq!(stage.shown("warning").len(), usize::from(!released || *refused), "{replacement}");
        }
    }
}

#[test]
fn capabilities() {
    for (released, manners) in both() {
        let mut stage = open(manners, json!({}));
        stage.does(json!({"do": "models"}));
        assert_eq!(stage.calls(names::PROVIDER_CATALOG).len(), usize::from(released));
        let params = json!({"sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "card", "payload": {"text": "<b>"}});
        let publish = say(&json!({"id": 1, "method": names::UI_PUBLISH, "params": params}));
        let link = stage.link("one");
        stage.act(link, publish);
        stage.wait(1);
        assert_eq!(stage.answers()[0]["result"]["accepted"] == true, released);
        if released {
            assert_eq!(stage.shown("surface")[0]["text"], "<b>", "markup is shown as it comes");
        }
    }
}

#[test]
fn streams() {
    type Does = fn(&Value) -> Vec<Act>;
    let cases: &[(Does, Option<&str>, Option<&str>)] = &[
        // A gap without an end: only the silence of the model ends it.
        (
            |it| {
                vec![
                    words(it, 1, "a"),
                    words(it, 3, "c"),
                    after(5_000, words(it, 2, "b")),
                    after(5_001, end(it, 3)),
                ]
            },
            None,
            Some("abc"),
        ),
        (
            |it| vec![words(it, 1, "a"), words(it, 3, "b"), words(it, 3, "X"), words(it, 2, "c"), end(it, 3)],
            Some("acb"),
            Some("acX"),
        ),
        (|it| vec![words(it, 1, "a"), words(it, 2, "b"), end(it, 1)], None, Some("ab")),
        (|it| vec![words(it, 1, "a"), words(it, 3, "c"), end(it, 3)], None, None),
    ];
    for (released, manners) in both() {
        for (place, (does, conforming, other)) in cases.iter().enumerate() {
            let does = *does;
            let mut stage = Stage::new(v1(), manners.clone());
            stage.casts("one", move || Puppet::new().with_models(&["plugin/one/p/m"]).streaming(does));
            stage.start(&[("one", json!({"capabilities": ["providers"]}))]);
            let outcome = stage.turn("hi");
            assert_eq!(
                outcome["text"].as_str(),
                if released { *other } else { *conforming },
                "{place}: {outcome}"
            );
        }
        let mut stage = Stage::new(v2(), manners);
        stage.casts("one", || {
            Puppet::new().with_models(&["plugin/one/p/m"]).streaming(|open| {
                let chunk = json!({"type": "text", "text": "a"});
                let params = json!({"streamId": open["params"]["streamId"], "seq": 1, "generation": 99, "chunk": chunk});
                vec![say(&json!({"method": names::STREAM_CHUNK, "params": params})), end(open, 1)]
            })
        });
        stage.start(&[("one", json!({"capabilities": ["providers"]}))]);
        assert_eq!(stage.turn("hi")["text"] == "a", released);
    }
}

#[test]
fn long_messages_stay_in_their_frame_and_the_schema_has_no_plugin_id_in_both() {
    for (_, manners) in both() {
        let mut stage = Stage::new(v1(), manners);
        let model = with_model(&mut stage, "Hello");
        stage.start(&[model, ("one", json!({"capabilities": ["ui"]}))]);
        stage.turn(&"a".repeat(70_000));
        let open = &stage.calls(names::STREAM_OPEN)[0].frame["params"];
        assert_eq!(open["request"]["messages"][1]["content"].as_str().map(str::len), Some(70_000));
        let params = json!({
            "sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "card", "payload": {}, "pluginId": "one",
        });
        let answers = answered(
            &mut stage,
            format!(
                "{}\n",
                json!({"jsonrpc": "2.0", "id": 1, "method": names::UI_PUBLISH, "params": params})
            )
            .as_bytes(),
        );
        assert_eq!(answers[0]["error"]["code"], -32602);
    }
}

#[test]
fn an_unanswered_shutdown_is_told_or_not() {
    for (released, manners) in both() {
        let mut stage = Stage::new(v1(), manners);
        stage.casts("one", || Puppet::new().on(names::SHUTDOWN, |_| Some(Vec::new())));
        stage.start(&[("one", json!({}))]);
        assert_eq!(stage.does(json!({"do": "stop"}))["done"], true);
        assert_eq!(stage.shown("warning").is_empty(), released);
    }
}

#[test]
fn the_turn_of_a_released_host_is_as_good() {
    let mut stage = Stage::new(v1(), Manners::released());
    stage.casts("one", || {
        Puppet::new()
            .with_models(&["plugin/one/p/m"])
            .answering("Hello")
            .on(names::INTERCEPT, |frame| Some(answer(frame, &json!({"decision": "continue"}))))
    });
    stage.start(&[("one", everything(v1()))]);
    assert_eq!(stage.turn("hi")["text"], "Hello");
    assert_eq!(stage.does(json!({"do": "stop"}))["done"], true);
}
