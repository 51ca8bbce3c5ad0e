//! Orderly ends, crashes, reloads, and guests that do not read.

use serde_json::{Value, json};
use sidecert_proto::reasonix::contract as names;

use crate::stage::{
    Act, MILLI, Puppet, after, answer, end, error, everything, intercepting, say, stage, v1, with_model,
    words,
};

#[test]
fn a_guest_is_asked_to_end_then_its_input_is_closed_then_it_is_killed() {
    type Cast = fn() -> Puppet;
    let never: Cast = || Puppet::new().on(names::SHUTDOWN, |_| Some(Vec::new()));
    let cases: &[(Cast, u64, bool, bool)] = &[
        (Puppet::new, 0, false, false),
        (
            || Puppet::new().on(names::SHUTDOWN, |it| Some(answer(it, &json!({"accepted": false})))),
            0,
            false,
            false,
        ),
        (
            || {
                Puppet::new()
                    .on(names::SHUTDOWN, |it| Some(error(it, &json!({"code": -32603, "message": "no"}))))
            },
            0,
            false,
            false,
        ),
        (|| Puppet::new().on(names::SHUTDOWN, |_| Some(vec![Act::Exit(5)])), 0, false, false),
        (never, 5_000, false, true),
        (|| Puppet::new().staying(), 750, true, false),
        (|| Puppet::new().staying().on(names::SHUTDOWN, |_| Some(Vec::new())), 5_750, true, true),
        (
            || {
                Puppet::new().staying().on(names::SHUTDOWN, |it| {
                    Some([answer(it, &json!({"accepted": true})), vec![after(600, Act::Exit(0))]].concat())
                })
            },
            600,
            false,
            false,
        ),
    ];
    for (place, (cast, millis, killed, told)) in cases.iter().enumerate() {
        let mut stage = stage();
        stage.casts("one", *cast);
        stage.start(&[("one", json!({}))]);
        let before = stage.now;
        assert_eq!(stage.does(json!({"do": "stop"}))["done"], true);
        let took = (stage.now - before) / MILLI;
        assert!((*millis..millis + 50).contains(&took), "{place}: {took}");
        assert_eq!(stage.killed.len(), usize::from(*killed), "{place}");
        assert_eq!(stage.calls(names::SHUTDOWN)[0].frame["params"], json!({"timeoutMillis": 5_000}));
        let warned: Vec<&str> = stage.shown("warning").iter().filter_map(|it| it["text"].as_str()).collect();
        assert_eq!(warned.iter().any(|it| it.contains("shutdown_timeout")), *told, "{place}: {warned:?}");
        assert!(stage.found_in("diagnostics").is_empty(), "{place}: an orderly end is no crash");
        assert_eq!(stage.start(&[("one", json!({}))])["done"], true, "another session may follow");
        assert_eq!(stage.calls(names::INITIALIZE)[1].frame["params"]["session"]["sessionId"], "session-2");
    }
}

#[test]
fn requests_are_refused_while_the_connection_closes() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new().on(names::SHUTDOWN, |frame| {
            let params = json!({"contentRef": "x", "offset": 0});
            let read = say(&json!({"id": 5, "method": names::CONTENT_READ, "params": params}));
            Some(vec![read, after(100, answer(frame, &json!({"accepted": true})).remove(0))])
        })
    });
    stage.start(&[("one", json!({}))]);
    stage.does(json!({"do": "stop"}));
    let error = &stage.answers()[0]["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32600), &json!("protocol_error")));
}

#[test]
fn the_session_ends_with_what_is_kept_of_it() {
    let mut stage = stage();
    let model = with_model(&mut stage, "Answer");
    stage.casts("one", || {
        Puppet::new()
            .at("context.prepare", json!({"decision": "replace", "replacement": {"messages": []}}))
            .at("provider.response", json!({"decision": "replace", "replacement": {"text": "Persisted"}}))
    });
    stage.start(&[("one", intercepting(&["context.prepare", "provider.response"])), model]);
    assert_eq!(stage.turn("Question")["text"], "Persisted");
    stage.does(json!({"do": "stop"}));
    let stored = stage.found_in("session")[0];
    assert!(
        stored.contains("Question") && stored.contains("Persisted") && !stored.contains("Answer"),
        "{stored}"
    );
    stage.close();
    assert_eq!(stage.exited, Some(0));
}

#[test]
fn the_end_of_link_0_ends_everything_even_a_turn() {
    let mut stage = stage();
    stage.casts("one", || Puppet::new().with_models(&["plugin/one/p/m"]));
    stage.start(&[("one", json!({"capabilities": ["providers"]}))]);
    let turn = stage.ask(json!({"do": "turn", "text": "hi"}));
    stage.wait(100);
    stage.close();
    assert_eq!(stage.exited, Some(0));
    assert_eq!(stage.found(turn).unwrap()["reason"], "stream_cancelled");
    let heard = stage.heard("one");
    assert!(heard.contains(&"provider/stream/cancel".to_owned()) && heard.contains(&"shutdown".to_owned()));
}

#[test]
fn a_signal_ends_the_session_in_order_also_in_a_turn() {
    let mut stage = stage();
    let stays = || Puppet::new().staying().with_models(&["plugin/one/p/m"]);
    stage.casts("one", stays);
    for (place, signal) in ["TERM", "INT"].into_iter().enumerate() {
        assert!(stage.does(json!({"do": "signal", "signal": signal}))["refused"].is_string(), "nothing runs");
        assert_eq!(stage.start(&[("one", json!({"capabilities": ["providers"]}))])["done"], true);
        assert!(stage.does(json!({"do": "signal", "signal": "HUP"}))["refused"].is_string());
        let turn = stage.ask(json!({"do": "turn", "text": "hi"}));
        stage.wait(100);
        assert_eq!(stage.does(json!({"do": "signal", "signal": signal}))["done"], true);
        assert_eq!(stage.outcome(turn)["reason"], "stream_cancelled");
        assert_eq!(stage.killed.len(), place + 1, "it would have stayed");
        for method in [names::STREAM_CANCEL, names::SHUTDOWN] {
            assert_eq!(stage.calls(method).len(), place + 1, "{method}");
        }
    }
    assert_eq!(stage.exited, None, "the process of the shim goes on");
}

#[test]
fn a_crash_fails_all_that_waits_and_all_that_comes() {
    type Die = fn() -> Vec<Act>;
    let ways: [Die; 3] = [
        || vec![Act::Stderr("why token=abcdef".to_owned()), Act::Exit(1)],
        || vec![Act::Stderr("why token=abcdef".to_owned()), Act::CloseOutput],
        || vec![Act::Stderr("why token=abcdef".to_owned()), Act::Bytes(vec![b'x'; 8 << 20])],
    ];
    for (place, die) in ways.into_iter().enumerate() {
        let mut stage = stage();
        stage.casts("one", || {
            Puppet::new()
                .with_actions(&["demo"])
                .on(names::UI_ACTION, |_| Some(Vec::new()))
                .on(names::PROVIDER_CATALOG, |_| Some(Vec::new()))
        });
        let mut block = everything(v1());
        block["required"] = true.into();
        stage.start(&[("one", block)]);
        let action = stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
        let models = stage.ask(json!({"do": "models"}));
        stage.wait(100);
        let link = stage.link("one");
        for act in die() {
            stage.act(link, act);
        }
        let before = stage.now;
        let reason = if place == 2 { "frame_too_large" } else { "provider_interrupted" };
        assert_eq!(stage.outcome(action)["reason"], reason, "{place}");
        assert_eq!(stage.outcome(models)["models"], json!([]));
        assert_eq!(stage.turn("hi")["reason"], reason);
        assert!(stage.now - before < 100 * MILLI, "at once");
        stage.wait(60_000);
        let warned: Vec<&str> = stage.shown("warning").iter().filter_map(|it| it["text"].as_str()).collect();
        assert_eq!(warned.iter().filter(|it| it.contains("crashed")).count(), 1, "{warned:?}");
        let [diagnostics] = stage.found_in("diagnostics")[..] else { panic!("{place}") };
        assert!(diagnostics.contains("stderr: why token=****"), "{diagnostics}");
        assert_eq!((stage.launched.len(), stage.killed.len()), (1, 1), "killed, and never started again");
        assert_eq!(stage.does(json!({"do": "reload"}))["done"], true);
        assert_eq!(stage.launched.len(), 2);
        assert_eq!(stage.calls(names::INITIALIZE)[1].frame["params"]["session"]["generation"], 2);
        let again = stage.ask(json!({"do": "turn", "text": "hi"}));
        stage.wait(100);
        assert_eq!(stage.intercepts("input.receive").len(), 1, "calls work again");
        stage.does(json!({"do": "cancel"}));
        assert_eq!(stage.outcome(again)["reason"], "stream_cancelled");
    }
}

#[test]
fn a_crashed_owner_fails_every_turn() {
    let mut stage = stage();
    let model = with_model(&mut stage, "Hello");
    stage.casts("owner", || Puppet::new().on(names::INTERCEPT, |_| Some(vec![Act::Exit(1)])));
    stage.start(&[("owner", json!({"replaces": ["context"]})), model]);
    for text in ["one", "two"] {
        assert_eq!(stage.turn(text)["reason"], "provider_interrupted");
    }
    assert!(stage.calls(names::STREAM_OPEN).is_empty(), "the default is not taken instead");
}

#[test]
fn reloads_wait_for_no_turn_and_begin_a_generation() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new().with_models(&["plugin/one/p/m"]).streaming(|open| {
            [words(open, 1, "a"), end(open, 1)].into_iter().map(|act| after(1_000, act)).collect()
        })
    });
    stage.start(&[("one", everything(v1()))]);
    let turn = stage.ask(json!({"do": "turn", "text": "hi"}));
    stage.wait(100);
    assert!(stage.does(json!({"do": "reload"}))["refused"].is_string());
    assert_eq!(stage.outcome(turn)["text"], "a");
    assert_eq!(stage.launched.len(), 1);
    assert_eq!(stage.does(json!({"do": "reload"}))["done"], true);
    assert_eq!((stage.launched.len(), stage.calls(names::SHUTDOWN).len()), (2, 1));
    assert_eq!(stage.intercepts("session.load").len(), 1);
    assert_eq!(stage.turn("hi")["text"], "a");
}

#[test]
fn conversations_are_compacted_and_begun() {
    let mut stage = stage();
    let model = with_model(&mut stage, "Hello");
    stage.casts("one", || {
        Puppet::new()
            .at("compaction.complete", json!({"decision": "replace", "replacement": {"summary": "short"}}))
    });
    stage.start(&[("one", everything(v1())), model]);
    stage.turn("hi");
    assert_eq!(stage.does(json!({"do": "compact"}))["done"], true);
    assert_eq!(
        (stage.intercepts("compaction.prepare").len(), stage.intercepts("compaction.complete").len()),
        (1, 1)
    );
    stage.turn("again");
    let contents = |stage: &crate::stage::Stage<'_>| -> Vec<String> {
        let opens = stage.calls(names::STREAM_OPEN);
        let messages =
            opens.last().unwrap().frame["params"]["request"]["messages"].as_array().unwrap().clone();
        messages.iter().skip(1).map(|it| it["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(contents(&stage), ["short", "again"]);
    assert_eq!(stage.does(json!({"do": "new-session"}))["done"], true);
    assert_eq!(stage.intercepts("session.rotate")[0].frame["params"]["payload"]["phase"], "rotate");
    stage.turn("fresh");
    assert_eq!(contents(&stage), ["fresh"]);
}

#[test]
fn events_are_dropped_for_a_guest_that_does_not_read_and_requests_are_not() {
    let mut stage = stage();
    stage.casts("one", || Puppet::new().with_actions(&["demo"]));
    let model = with_model(&mut stage, "Hello");
    let mut block = json!({"capabilities": ["ui"], "intercepts": ["session.rotate"], "timeoutMillis": 10});
    block["priority"] = 0.into();
    stage.start(&[("one", block), model]);
    stage.reads(false);
    for _ in 0..40 {
        assert_eq!(stage.does(json!({"do": "new-session"}))["done"], true);
    }
    let action = stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
    stage.reads(true);
    assert_eq!(stage.outcome(action)["done"], true);
    assert_eq!((stage.events("session.rotate").len(), stage.intercepts("session.rotate").len()), (16, 40));
    let warned: Vec<&str> = stage.shown("warning").iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(warned.iter().filter(|it| it.contains("dropped")).count(), 1, "{warned:?}");
    assert!(stage.killed.is_empty());
}

#[test]
fn a_guest_that_reads_nothing_is_cut_off() {
    let mut stage = stage();
    let model = with_model(&mut stage, "Hello");
    let mut block = intercepting(&["input.receive"]);
    (block["timeoutMillis"], block["required"]) = (60_000.into(), true.into());
    stage.start(&[("one", block), model]);
    stage.reads(false);
    let before = stage.now;
    let outcome = stage.turn("hi");
    let took = (stage.now - before) / MILLI;
    assert_eq!(outcome["reason"], "provider_interrupted", "{outcome}");
    assert!((10_000..15_100).contains(&took), "{took}");
    assert_eq!(stage.killed, [1]);
}

#[test]
fn what_is_no_answer_any_more_and_odd_asks() {
    let mut stage = stage();
    for ask in ["turn", "stop", "reload", "compact", "models", "cancel", "nothing"] {
        assert!(stage.does(json!({ "do": ask }))["refused"].is_string(), "{ask}");
    }
    stage.start(&[]);
    assert!(stage.start(&[])["refused"].is_string());
    assert!(stage.does(json!({"do": "nothing"}))["refused"].is_string());
    assert!(stage.turn("hi")["failed"].is_string(), "there is no model");
    let lines: Vec<Value> = stage.lines.clone();
    assert_eq!(lines[0]["does"].as_array().unwrap().len(), 14);
}
