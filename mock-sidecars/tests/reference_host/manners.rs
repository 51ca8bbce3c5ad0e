//! Every decision that the host can take otherwise makes a difference that somebody can see.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::{Check, Manners};
use sidecert_proto::contract::Contract;
use sidecert_proto::reasonix::contract::{self as names, Limits};

use crate::stage::{
    Act, Puppet, Stage, after, answer, chunk, end, error, everything, intercepting, plugin, say, v1, v2,
    words,
};

type Flaw = fn(&mut Manners);
type Play = fn(&Manners) -> String;
/// What a guest does about a frame.
type Does = fn(&Value) -> Vec<Act>;
type Cast = fn() -> Puppet;

/// All that can be seen of a stage.
fn seen(stage: &Stage<'_>, into: &mut String) {
    let written: Vec<_> =
        stage.written.iter().map(|it| format!("{} {} {}", it.at, it.plugin, it.frame)).collect();
    let lines = stage.lines.iter().zip(&stage.said_at).map(|(line, at)| format!("{at} {line}"));
    let lines: Vec<_> = lines.collect();
    writeln!(into, "{written:#?}\n{lines:#?}\n{:?} {:?}", stage.launched, stage.killed).unwrap();
}

/// A stage whose limits are small, so that little has to be written to break them.
fn stage(manners: &Manners) -> Stage<'static> {
    static SMALL: OnceLock<Contract> = OnceLock::new();
    let small = SMALL.get_or_init(|| {
        let limits = Limits {
            frame_bytes: 40_000,
            externalize_field_bytes: 2_000,
            content_ref_chunk_bytes: 8_000,
            content_ref_object_bytes: 30_000,
        };
        limits.applied_to(v1())
    });
    let mut stage = Stage::new(small, manners.clone());
    stage.checks = false;
    stage
}

/// Asks for something, and lets time pass.
fn does(stage: &mut Stage<'_>, ask: Value) {
    stage.ask(ask);
    stage.wait(400_000);
}

fn starts(stage: &mut Stage<'_>, plugins: &[(&str, Value)]) {
    let entries: Vec<Value> = plugins.iter().map(|(name, block)| plugin(v1(), name, block)).collect();
    does(stage, json!({"do": "start", "workspace": "/", "plugins": entries}));
}

fn turn(stage: &mut Stage<'_>) {
    does(stage, json!({"do": "turn", "text": "hi", "effort": "high"}));
}

fn handshakes(manners: &Manners) -> String {
    let mut all = String::new();
    let greetings = [
        json!({}),
        json!({"protocolVersion": "2"}),
        json!({"protocolVersion": "02"}),
        json!({"providers": [{"ref": "plugin/one/p/m"}]}),
        json!({"subscriptions": ["tool.after"]}),
        json!({"replaces": ["permission"]}),
        json!({"providers": [{"ref": "plugin/other/p/m"}]}),
        json!({"providers": [{"ref": "plugin/one/p/other"}]}),
        json!({"extra": 1}),
        json!({"name": " "}),
    ];
    for greeting in greetings {
        for capabilities in [json!(["providers", "ui"]), json!([])] {
            let mut stage = Stage::new(v2(), manners.clone());
            stage.checks = false;
            let greeting = greeting.clone();
            stage.casts("one", move || Puppet::new().greets(greeting.clone()));
            let provides = json!([{"kind": "provider", "namespace": "one", "id": "p/m"}]);
            let block =
                json!({"intercepts": ["tool.before"], "capabilities": capabilities, "provides": provides});
            let entry = plugin(v2(), "one", &block);
            does(&mut stage, json!({"do": "start", "workspace": "/", "plugins": [entry]}));
            seen(&stage, &mut all);
        }
    }
    let early = [
        Act::Say("garbage".to_owned()),
        Act::Say(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned()),
        say(&json!({"method": "x"})),
    ];
    for act in early {
        let mut stage = stage(manners);
        stage.casts("one", move || Puppet::new().first(vec![act.clone()]));
        starts(&mut stage, &[("one", json!({})), ("two", json!({}))]);
        seen(&stage, &mut all);
    }
    let mut foreign = stage(manners);
    foreign.casts("one", || Puppet::new().with_models(&["plugin/other/p/m"]));
    starts(&mut foreign, &[("one", json!({"capabilities": ["providers"]}))]);
    seen(&foreign, &mut all);
    for (required, retryable) in [(true, false), (true, true), (false, false)] {
        let mut stage = stage(manners);
        for name in ["a", "b"] {
            let data = json!({"reason": "unsupported_version", "retryable": retryable});
            let body = json!({"code": -32000, "message": "no sk-abcdefghijkl1234", "data": data});
            stage.casts(name, move || {
                let body = body.clone();
                Puppet::new().on(names::INITIALIZE, move |frame| Some(error(frame, &body)))
            });
        }
        for name in ["c", "d", "e"] {
            stage.casts(name, || Puppet::new().on(names::INITIALIZE, |_| Some(Vec::new())));
        }
        let block = |name: &str| json!({"required": required && name == "a"});
        let plugins = ["good", "a", "b", "c", "d", "e"].map(|name| (name, block(name)));
        starts(&mut stage, &plugins);
        seen(&stage, &mut all);
    }
    all
}

fn lines(manners: &Manners) -> String {
    let mut all = String::new();
    let read = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"host/content/read","params":{{"contentRef":"x","offset":0}}}}"#
        )
    };
    let lines = [
        read("\"a\""),
        read("null"),
        read("1"),
        "   ".to_owned(),
        format!("  {}", read("2")),
        "hello".to_owned(),
        format!("[{}]", read("3")),
        read("4").replace("2.0", "1.0"),
        read("5").replace("offset\":0", "offset\":0.0"),
        read("6").replace("offset\":0", "offset\":-1"),
        r#"{"jsonrpc":"2.0","id":7,"method":"host/content/read","params":[]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":8,"method":"host/content/read"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9,"method":"host/zzz"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"zzz"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"host/content/read","params":{"contentRef":"x","offset":0}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":10,"result":1,"error":null}"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":11,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(60),
            "]".repeat(60)
        ),
    ];
    let mut one = stage(manners);
    starts(&mut one, &[("one", json!({"capabilities": ["ui"]}))]);
    let link = one.link("one");
    for line in lines {
        one.act(link, Act::Bytes(format!("{line}\n").into_bytes()));
        one.wait(1);
    }
    one.act(link, Act::Stderr(format!("{}\n", read("20"))));
    for id in 100..105 {
        let params = json!({"sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "confirm", "payload": {"fields": []}});
        one.act(link, say(&json!({"id": id, "method": names::UI_REQUEST, "params": params})));
    }
    one.wait(10);
    one.act(link, Act::Bytes(read("30").into_bytes()));
    one.wait(1);
    one.act(link, Act::CloseOutput);
    one.wait(10_000);
    seen(&one, &mut all);
    for bytes in [vec![b' '; 39_999], vec![b' '; 40_001]] {
        let mut stage = stage(manners);
        stage.casts("one", || {
            Puppet::new().with_actions(&["demo"]).on(names::UI_ACTION, |_| Some(Vec::new()))
        });
        starts(&mut stage, &[("one", json!({"capabilities": ["ui"]}))]);
        stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
        stage.wait(1);
        let link = stage.link("one");
        stage.act(link, Act::Bytes(bytes));
        stage.wait(100_000);
        seen(&stage, &mut all);
    }
    all
}

/// Guests that do each of these at `input.receive`, with a model that runs a tool.
fn rulings(manners: &Manners) -> String {
    let mut all = String::new();
    let rules: [Does; 9] = [
        |it| answer(it, &json!({"decision": "replace", "replacement": {"text": "new"}})),
        |it| answer(it, &json!({"decision": "continue", "replacement": {"text": "never"}})),
        |it| answer(it, &json!({"decision": "block", "reason": "sk-abcdefghijkl1234"})),
        |it| answer(it, &json!({"decision": "allow"})),
        |it| answer(it, &json!({"decision": "replace", "replacement": {"text": ""}})),
        |it| answer(it, &json!({"decision": "continue", "extra": 1})),
        |it| {
            error(
                it,
                &json!({"code": -32000, "message": "no", "data": {"reason": "internal", "retryable": false}}),
            )
        },
        |it| answer(it, &json!({"decision": "continue"})).into_iter().map(|act| after(7_000, act)).collect(),
        |it| {
            let ruled = |id: String, decision: &str| {
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"decision\":\"{decision}\"}}}}\n")
            };
            let id = &it["id"];
            let odd = [ruled(format!("\"{id}\""), "block"), ruled("77".to_owned(), "block")]
                .map(|line| Act::Bytes(line.into_bytes()));
            let both = ruled(id.to_string(), "continue") + &ruled(id.to_string(), "block");
            [odd.to_vec(), vec![Act::Bytes(both.into_bytes())]].concat()
        },
    ];
    for rule in rules {
        for (required, slot) in [(false, None), (true, None), (false, Some("compaction"))] {
            let mut stage = stage(manners);
            for name in ["a", "b", "c"] {
                let mut ruled = 0;
                stage.casts(name, move || {
                    Puppet::new().on(names::INTERCEPT, move |frame| {
                        ruled += 1;
                        (name != "c" && frame["params"]["event"] == "input.receive" && ruled < 3)
                            .then(|| rule(frame))
                    })
                });
            }
            let mut block = intercepting(&["input.receive"]);
            block["required"] = required.into();
            if let Some(slot) = slot {
                block["replaces"] = json!([slot]);
            }
            let mut first = intercepting(&["input.receive", "session.save", "frontend.event"]);
            (first["priority"], first["timeoutMillis"]) = (5.into(), 70_000.into());
            stage.casts("model", || {
                Puppet::new()
                    .with_models(&["plugin/model/p/m"])
                    .streaming(|it| vec![words(it, 1, "x"), end(it, 1)])
            });
            starts(
                &mut stage,
                &[
                    ("a", block),
                    ("b", first),
                    ("c", intercepting(&["input.receive", "session.save", "frontend.event"])),
                    ("model", json!({"capabilities": ["providers"]})),
                ],
            );
            turn(&mut stage);
            turn(&mut stage);
            seen(&stage, &mut all);
        }
    }
    all
}

/// Owners of slots, permissions, and what guests make of requests and answers.
fn owners(manners: &Manners) -> String {
    let mut all = String::new();
    let message = json!({"role": "user", "content": "other"});
    let write = |decision: &str| json!({"decision": "replace", "replacement": {"name": "write_file", "hostDecision": decision}});
    let cases: Vec<(&'static str, &str, Value)> = vec![
        (
            "context",
            "context.prepare",
            json!({"decision": "replace", "replacement": {"messages": [message]}}),
        ),
        ("context", "context.prepare", json!({"decision": "block"})),
        ("context", "context.prepare", json!({"decision": "allow"})),
        (
            "provider_response",
            "provider.response",
            json!({"decision": "replace", "replacement": {"text": "other"}}),
        ),
        ("frontend_events", "frontend.event", json!({"decision": "allow"})),
        ("permission", "permission.decision", json!({"decision": "allow"})),
        ("permission", "permission.decision", json!({"decision": "deny"})),
        ("permission", "permission.decision", write("allow")),
        ("tool:write_file", "tool.before", json!({"decision": "block"})),
    ];
    for (slot, point, ruling) in cases {
        for chain in ["continue", "block", "allow", "deny", "continue too"] {
            let mut stage = stage(manners);
            let point: &'static str = Box::leak(point.to_owned().into_boxed_str());
            let ruling = ruling.clone();
            stage.casts("owner", move || Puppet::new().at(point, ruling.clone()));
            for name in ["chain", "next"] {
                let decision = chain.split(' ').next();
                stage.casts(name, move || Puppet::new().at(point, json!({ "decision": decision })));
            }
            stage.casts("model", || {
                let mut opened = 0;
                Puppet::new().with_models(&["plugin/model/p/m"]).streaming(move |it| {
                    opened += 1;
                    let call = json!({"id": "c", "name": "write_file", "arguments": "{}"});
                    let first = chunk(it, 1, &json!({"type": "tool_call", "toolCall": call}));
                    vec![
                        if opened == 1 { first } else { words(it, 1, "Done sk-abcdefghijkl1234") },
                        end(it, 1),
                    ]
                })
            });
            // Every other owner steps in at its point as well.
            let mut owner = if chain == "continue" { json!({}) } else { intercepting(&[point]) };
            owner["replaces"] = json!([slot]);
            let entries: Vec<Value> = [
                ("owner", owner),
                ("chain", intercepting(&[point])),
                ("next", intercepting(&[point])),
                ("model", json!({"capabilities": ["providers"]})),
            ]
            .iter()
            .map(|(name, block)| plugin(v1(), name, block))
            .collect();
            does(
                &mut stage,
                json!({"do": "start", "workspace": "/", "permission": "deny", "plugins": entries}),
            );
            turn(&mut stage);
            does(&mut stage, json!({"do": "stop"}));
            seen(&stage, &mut all);
        }
    }
    all
}

fn contents(manners: &Manners) -> String {
    let mut all = String::new();
    for wrong in [false, true] {
        let mut stage = stage(manners);
        stage.casts("one", move || {
            Puppet::new().on(names::INTERCEPT, move |frame| {
                let mut descriptor = frame["params"]["externalized"][0].clone();
                if descriptor.is_null() {
                    return None;
                }
                descriptor["jsonPointer"] = if wrong { "/payload" } else { "/replacement" }.into();
                let reads = [0, 5, 8_000].map(|offset| {
                    let params = json!({"contentRef": descriptor["contentRef"], "offset": offset});
                    say(&json!({"id": offset, "method": names::CONTENT_READ, "params": params}))
                });
                let ruling = json!({"decision": "replace", "externalized": [descriptor]});
                Some([reads.to_vec(), answer(frame, &ruling)].concat())
            })
        });
        stage.casts("model", || Puppet::new().with_models(&["plugin/model/p/m"]).answering("Hello"));
        starts(
            &mut stage,
            &[("one", intercepting(&["input.receive"])), ("model", json!({"capabilities": ["providers"]}))],
        );
        for bytes in [2_500, 20_000, 1_900, 60_000] {
            does(&mut stage, json!({"do": "turn", "text": "a".repeat(bytes)}));
            does(&mut stage, json!({"do": "new-session"}));
        }
        let reference =
            stage.intercepts("input.receive")[0].frame["params"]["externalized"][0]["contentRef"].clone();
        for (name, id) in [("one", 1), ("model", 2)] {
            let link = stage.link(name);
            let params = json!({"contentRef": reference, "offset": 0});
            stage.act(link, say(&json!({"id": id, "method": names::CONTENT_READ, "params": params})));
        }
        stage.wait(10);
        seen(&stage, &mut all);
    }
    all
}

fn models(manners: &Manners) -> String {
    let mut all = String::new();
    let ways: [Does; 15] = [
        |it| vec![words(it, 2, "b"), words(it, 1, "a"), end(it, 2)],
        |it| vec![words(it, 1, "a"), words(it, 1, "X"), end(it, 1)],
        |it| vec![words(it, 1, "a"), words(it, 3, "c"), words(it, 3, "X"), words(it, 2, "b"), end(it, 3)],
        |it| vec![words(it, 1, "a"), words(it, 3, "c"), end(it, 3)],
        |it| {
            vec![
                words(it, 1, "a"),
                words(it, 3, "c"),
                after(3_000, words(it, 2, "b")),
                after(3_001, end(it, 3)),
            ]
        },
        |it| vec![words(it, 1, "a"), words(it, 258, "c")],
        |it| vec![words(it, 3, "c"), end(it, 1), words(it, 1, "a")],
        |it| vec![words(it, 1, "a"), words(it, 2, "b"), end(it, 1)],
        |it| vec![end(it, 1), end(it, 2), words(it, 1, "a")],
        |it| vec![chunk(it, 1, &json!({"type": "done"})), words(it, 2, "a"), end(it, 2)],
        |it| vec![chunk(it, 1, &json!({"type": "text", "text": "a", "x": 1})), end(it, 1)],
        |it| {
            vec![
                words(it, 1, "a"),
                say(
                    &json!({"method": names::STREAM_END, "params": {"streamId": it["params"]["streamId"], "lastSeq": 1, "error": "sk-abcdefghijkl1234"}}),
                ),
            ]
        },
        |it| vec![words(it, 1, "a"), Act::Exit(1)],
        |_| Vec::new(),
        |it| vec![after(100_000, words(it, 1, "late")), after(100_001, end(it, 1))],
    ];
    for (place, way) in ways.into_iter().enumerate() {
        let mut stage = stage(manners);
        stage.casts("one", move || {
            let list = json!({"providers": [{"ref": "plugin/one/p/m"}, {"ref": "plugin/other/p/m"}, {"ref": "plugin/one/p/u"}]});
            Puppet::new().with_models(&["plugin/one/p/m"]).streaming(way).on(names::PROVIDER_CATALOG, move |frame| Some(answer(frame, &list)))
        });
        stage.casts("two", || {
            Puppet::new().with_models(&["plugin/two/p/m"]).on(names::PROVIDER_CATALOG, |_| Some(Vec::new()))
        });
        let block = json!({"capabilities": ["providers"]});
        starts(&mut stage, &[("one", block.clone()), ("two", block), ("none", json!({}))]);
        does(&mut stage, json!({"do": "models"}));
        if place == 14 {
            stage.ask(json!({"do": "turn", "text": "hi"}));
            stage.wait(15_000);
            stage.ask(json!({"do": "cancel"}));
            stage.wait(200_000);
        }
        turn(&mut stage);
        does(&mut stage, json!({"do": "turn", "text": "hi", "model": "plugin/one/p/u"}));
        seen(&stage, &mut all);
    }
    for accepted in [true, false] {
        let mut stage = stage(manners);
        stage.casts("one", move || {
            Puppet::new().with_models(&["plugin/one/p/m"]).on(names::STREAM_OPEN, move |it| {
                Some(
                    [
                        vec![words(it, 1, "early"), end(it, 1)],
                        vec![after(10, answer(it, &json!({ "accepted": accepted })).remove(0))],
                    ]
                    .concat(),
                )
            })
        });
        starts(&mut stage, &[("one", json!({"capabilities": ["providers"]}))]);
        turn(&mut stage);
        seen(&stage, &mut all);
    }
    let mut stage = Stage::new(v2(), manners.clone());
    stage.checks = false;
    stage.casts("one", || {
        Puppet::new().with_models(&["plugin/one/p/m"]).streaming(|open| {
            let chunk = json!({"type": "text", "text": "a"});
            let params =
                json!({"streamId": open["params"]["streamId"], "seq": 1, "generation": 99, "chunk": chunk});
            vec![say(&json!({"method": names::STREAM_CHUNK, "params": params})), end(open, 1)]
        })
    });
    let entry = plugin(v2(), "one", &json!({"capabilities": ["providers"]}));
    does(&mut stage, json!({"do": "start", "workspace": "/", "plugins": [entry]}));
    turn(&mut stage);
    seen(&stage, &mut all);
    all
}

fn surfaces(manners: &Manners) -> String {
    let mut all = String::new();
    let mut stage = stage(manners);
    for name in ["a", "one"] {
        stage.casts(name, || {
            Puppet::new()
                .with_actions(&["demo"])
                .on(names::UI_ACTION, |it| {
                    let result = json!({"accepted": true, "message": "sk-abcdefghijkl1234"});
                    Some(vec![after(100, answer(it, &result).remove(0))])
                })
                .on(names::SHUTDOWN, |it| {
                    Some(vec![after(1_000, answer(it, &json!({"accepted": true})).remove(0))])
                })
        });
    }
    stage.casts("bare", Puppet::new);
    let block = json!({"capabilities": ["ui"]});
    starts(&mut stage, &[("a", block.clone()), ("one", block), ("bare", json!({}))]);
    let params = |more: Value| {
        let mut params = json!({"sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "form", "payload": {"title": "<b>", "fields": [{"key": "k", "kind": "confirm"}]}});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let publishes = [
        params(json!({})),
        params(json!({"generation": 9})),
        params(json!({"sessionId": "x"})),
        params(json!({"payload": {"html": 1}})),
    ];
    for plugin in ["one", "bare"] {
        let link = stage.link(plugin);
        for (id, params) in publishes.iter().enumerate() {
            stage.act(link, say(&json!({"id": id, "method": names::UI_PUBLISH, "params": params})));
        }
    }
    let link = stage.link("one");
    for id in 10..12 {
        stage.act(
            link,
            say(
                &json!({"id": id, "method": names::UI_REQUEST, "params": params(json!({"kind": "confirm"}))}),
            ),
        );
    }
    stage.wait(10);
    does(&mut stage, json!({"do": "answer", "prompt": "p1", "values": {"k": true}}));
    does(&mut stage, json!({"do": "answer", "prompt": "p2", "cancelled": true}));
    does(&mut stage, json!({"do": "action", "plugin": "one", "action": "demo"}));
    does(&mut stage, json!({"do": "action", "plugin": "one", "action": "other"}));
    does(&mut stage, json!({"do": "submit", "plugin": "one", "surface": "s", "values": {"k": true}}));
    stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
    stage.wait(10);
    does(&mut stage, json!({"do": "reload"}));
    does(&mut stage, json!({"do": "stop"}));
    seen(&stage, &mut all);
    all
}

fn lives(manners: &Manners) -> String {
    let mut all = String::new();
    let casts: [Cast; 3] = [
        || Puppet::new().on(names::SHUTDOWN, |_| Some(Vec::new())),
        || Puppet::new().staying(),
        || {
            Puppet::new().on(names::SHUTDOWN, |it| {
                let read = say(&json!({"id": 1, "method": names::CONTENT_READ, "params": {"contentRef": "x", "offset": 0}}));
                Some([vec![read], answer(it, &json!({"accepted": true}))].concat())
            })
        },
    ];
    for cast in casts {
        let mut stage = stage(manners);
        stage.casts("one", cast);
        starts(&mut stage, &[("one", json!({}))]);
        does(&mut stage, json!({"do": "stop"}));
        seen(&stage, &mut all);
    }
    for act in [Act::Exit(1), Act::CloseOutput] {
        let mut stage = stage(manners);
        stage.casts("one", || {
            let text = format!("A token=abcdef {} Z token=abcdef", "x ".repeat(10_000));
            Puppet::new()
                .with_actions(&["demo"])
                .on(names::UI_ACTION, |_| Some(Vec::new()))
                .with_models(&["plugin/one/p/m"])
                .streaming(|it| [words(it, 1, "a"), end(it, 1)].map(|it| after(500, it)).to_vec())
                .first(vec![Act::Stderr(text)])
        });
        starts(&mut stage, &[("one", everything(v1()))]);
        stage.ask(json!({"do": "turn", "text": "hi"}));
        stage.wait(100);
        does(&mut stage, json!({"do": "reload"}));
        stage.ask(json!({"do": "turn", "text": "hi"}));
        stage.wait(100);
        stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
        stage.wait(1);
        let link = stage.link("one");
        stage.act(link, act);
        stage.wait(400_000);
        turn(&mut stage);
        does(&mut stage, json!({"do": "reload"}));
        turn(&mut stage);
        does(&mut stage, json!({"do": "stop"}));
        seen(&stage, &mut all);
    }
    let mut stage = stage(manners);
    let block = json!({"intercepts": ["session.rotate"], "timeoutMillis": 10});
    starts(&mut stage, &[("one", block)]);
    stage.reads(false);
    for _ in 0..20 {
        stage.ask(json!({"do": "new-session"}));
        stage.wait(100);
    }
    stage.wait(11_000);
    stage.reads(true);
    stage.wait(1_000);
    seen(&stage, &mut all);
    all
}

fn installs(manners: &Manners) -> String {
    let mut all = String::new();
    let mut disabled = plugin(v1(), "off", &json!({}));
    disabled["enabled"] = false.into();
    let mut project = plugin(v1(), "named", &json!({}));
    project["declared"] = "project".into();
    let command = json!({"command": "${REASONIX_PLUGIN_ROOT}/bin", "args": ["a b"], "env": {"REASONIX_PLUGIN_VERSION": "other"}});
    let good = plugin(v1(), "good", &command);
    let shell = plugin(v1(), "shell", &json!({"command": "/bin/sh"}));
    let odd = plugin(v1(), "odd", &json!({"priority": 5_000}));
    let (one, two) = (
        plugin(v1(), "one", &json!({"replaces": ["context"]})),
        plugin(v1(), "two", &json!({"replaces": ["context"]})),
    );
    for plugins in [vec![disabled, project, good.clone(), shell], vec![odd], vec![one, two]] {
        let mut stage = stage(manners);
        does(&mut stage, json!({"do": "start", "workspace": "/", "plugins": plugins}));
        does(&mut stage, json!({"do": "describe", "plugin": good, "view": "show"}));
        seen(&stage, &mut all);
    }
    all
}

macro_rules! flaws {
    ($($group:ident . $member:ident = $value:expr),* $(,)?) => {
        &[$((stringify!($group.$member), |manners: &mut Manners| manners.$group.$member = $value)),*]
    };
}

/// Each of these changes what can be seen of that play.
fn differ(play: Play, flaws: &[(&str, Flaw)]) {
    let usual = play(&Manners::default());
    assert_eq!(usual, play(&Manners::default()), "the same each time");
    let changes_nothing = |flaw: &Flaw| {
        let mut manners = Manners::default();
        flaw(&mut manners);
        play(&manners) == usual
    };
    let without: Vec<&str> =
        flaws.iter().filter(|(_, flaw)| changes_nothing(flaw)).map(|(name, _)| *name).collect();
    assert_eq!(without, [] as [&str; 0], "decisions that change nothing");
}

#[test]
fn handshakes_differ() {
    differ(
        handshakes,
        flaws![
            starts.parallel = 1,
            starts.budget = 1_000_000,
            starts.fills_lists = false,
            starts.lists_bind = false,
            starts.mirrors_manifest = false,
            starts.garbage_poisons = false,
            starts.responses_poison = false,
            starts.traffic_poisons = false,
            starts.checks_version = false,
            starts.lenient_version = true,
            starts.checks_subscriptions = false,
            starts.checks_replaces = false,
            starts.checks_capabilities = false,
            starts.checks_namespace = false,
            starts.initialized_unchecked = true,
            starts.says_initialized = false,
            starts.shuts_down_failed = true,
            starts.kills_failed = false,
            starts.keeps_reasons = false,
            starts.required_fails = false,
            starts.optional_fails = true,
            starts.ends_others = false,
            frames.takes_bad_results = true,
            frames.beyond_schema = false,
            frames.checks_retryable = false,
            redacts.errors = false,
            redacts.rules = 0,
        ],
    );
}

#[test]
fn lines_differ() {
    differ(
        lines,
        flaws![
            frames.error_action = false,
            frames.string_ids = true,
            frames.null_ids = true,
            frames.array_params_pass = true,
            frames.answers_malformed_responses = true,
            frames.answers_notifications = true,
            frames.serves_without_id = true,
            frames.serves_unknown = true,
            frames.serves_batches = true,
            frames.malformed_ends = true,
            frames.answers_malformed = false,
            frames.oversize_ends = false,
            frames.names_oversize = false,
            frames.limit_hundredths = 99,
            frames.served_at_once = 2,
            frames.ids_as_text = true,
            frames.serves_bad_params = true,
            frames.trims = false,
            frames.answers_blank = true,
            frames.takes_unended = false,
            frames.depth_max = 50,
            frames.reads_stderr = true,
            frames.lenient_envelopes = true,
            frames.beyond_schema = false,
            content.names_expired = false,
        ],
    );
}

#[test]
fn rulings_differ() {
    differ(
        rulings,
        flaws![
            frames.id_step = 0,
            frames.unknown_ids_resolve = true,
            frames.last_answer_counts = true,
            frames.text_ids_match = true,
            hooks.chain_everywhere = false,
            hooks.session_points = false,
            hooks.input_event = false,
            hooks.lower_first = false,
            hooks.names_ascend = false,
            hooks.serial = false,
            hooks.waits = false,
            hooks.passes_replacements = false,
            hooks.continue_keeps = false,
            hooks.block_ends_chain = false,
            hooks.blocks = false,
            hooks.tells_block_reasons = false,
            hooks.rulings_anywhere = true,
            hooks.replacements = Check::Nothing,
            hooks.seq_step = 2,
            hooks.short_millis = 6_000,
            hooks.long_millis = 20_000,
            hooks.most_millis = 90_000,
            hooks.manifest_millis = false,
            hooks.keeps_time = false,
            hooks.required_fails = false,
            hooks.optional_fails = true,
            hooks.warns_once = false,
            hooks.events = false,
            hooks.events_of_blocked = false,
            hooks.events_are_final = false,
            hooks.by_manifest = false,
            hooks.owners_are_required = false,
            hooks.errors_fail = false,
            hooks.failure_ends = true,
            redacts.reasons = false,
        ],
    );
}

#[test]
fn owners_differ() {
    differ(
        owners,
        flaws![
            hooks.ruling_ends_chain = false,
            hooks.allow_prevails = false,
            hooks.deny_prevails = false,
            hooks.asks_owners = false,
            hooks.owner_last = false,
            hooks.owner_after_block = true,
            hooks.owner_fails = false,
            hooks.spares_frontend_and_load = true,
            hooks.tool_owners_rule = false,
            hooks.permission_owner_rules = false,
            hooks.permission_replaces = false,
            hooks.events_once = false,
            hooks.context_is_ephemeral = false,
            hooks.response_is_kept = false,
            redacts.content = true,
        ],
    );
}

#[test]
fn contents_differ() {
    differ(
        contents,
        flaws![
            content.externalize_above = Some(1_000),
            content.externalizes_events = false,
            content.page_bytes = Some(1_000),
            content.object_bytes = Some(10_000),
            content.objects_kept = 2,
            content.own_objects = false,
            content.true_digests = false,
            content.exact_offsets = false,
            content.names_expired = false,
            content.checks_replacements = false,
            content.takes_references = false,
            frames.writes_too_large = true,
        ],
    );
}

#[test]
fn models_differ() {
    differ(
        models,
        flaws![
            streams.catalog_needs_capability = false,
            streams.caches_catalog = false,
            streams.catalog_within = 20_000_000,
            streams.checks_namespace = false,
            streams.declared_only = false,
            streams.falls_back = true,
            streams.seq_base = 0,
            streams.hands_on_effort = false,
            streams.reorders = false,
            streams.drops_duplicates = false,
            streams.first_copy_wins = false,
            streams.window = 300,
            streams.gap = 5_000_000,
            streams.gap_needs_end = true,
            streams.gap_fails = false,
            streams.names_gap = false,
            streams.end_freezes = false,
            streams.end_below_delivered_fails = false,
            streams.ends_must_agree = false,
            streams.checks_generation = false,
            streams.checks_chunks = false,
            streams.cancels = false,
            streams.interruption_fails = false,
            streams.stall = 10_000_000,
            streams.early_chunks_count = false,
            streams.needs_acceptance = false,
            streams.done_ends = true,
            streams.end_errors_count = false,
            redacts.provider_errors = false,
        ],
    );
}

#[test]
fn surfaces_differ() {
    differ(
        surfaces,
        flaws![
            ui.available = false,
            ui.needs_capability = false,
            ui.gates_generation = false,
            ui.gates_session = false,
            ui.checks_surfaces = false,
            ui.inert_markup = false,
            ui.declared_actions_only = false,
            ui.forms_to_owner = false,
            ui.current_session = false,
            ui.late_results_count = true,
            ui.typed_answers = false,
            ui.tells_cancelled = false,
            redacts.ui = false,
        ],
    );
}

#[test]
fn lives_differ() {
    differ(
        lives,
        flaws![
            ends.asks = false,
            ends.timeout_millis = 1_000,
            ends.keeps_time = false,
            ends.closes_input = false,
            ends.closes_first = true,
            ends.grace = 0,
            ends.kills = false,
            ends.reports_timeout = false,
            ends.refuses_requests = false,
            ends.crash_fails_calls = false,
            ends.fails_fast = false,
            ends.restarts = true,
            ends.reports_crash_once = false,
            ends.kills_crashed = false,
            ends.write_stall = 60_000_000,
            ends.reload_needs_idle = false,
            ends.reload_counts = false,
            ends.reload_revives = false,
            hooks.events_queued = 2,
            redacts.stderr = false,
            redacts.log = false,
            redacts.tail_bytes = 100,
            redacts.keeps_end = false,
        ],
    );
}

#[test]
fn installs_differ() {
    differ(
        installs,
        flaws![
            plugins.checks_manifests = false,
            plugins.enabled_only = false,
            plugins.installed_only = false,
            plugins.one_owner = false,
            plugins.checks_commands = false,
            plugins.expands_root = false,
            plugins.identity_prevails = false,
            plugins.keeps_args = false,
            plugins.shows_trust = false,
        ],
    );
}
