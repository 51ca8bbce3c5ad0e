//! A turn from what the user says to what the user is shown.

use serde_json::json;
use sidecert_mocks::Mock;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;
use sidecert_proto::reasonix::guest::Features;

use crate::stage::{Player, Puppet, Stage, chunk, end, everything, v1, v2, words};

const POINTS: [&str; 11] = [
    "system_prompt.build",
    "session.start",
    "input.receive",
    "agent.before_start",
    "context.prepare",
    "provider.request",
    "provider.response",
    "frontend.event",
    "session.save",
    "session.end",
    "shutdown",
];

#[test]
fn a_turn_passes_every_point_in_order_in_both_editions() {
    for contract in [v1(), v2()] {
        let mut stage = Stage::new(contract, Manners::default());
        stage.casts("one", || Puppet::new().with_models(&["plugin/one/p/m"]).answering("Hello"));
        assert_eq!(stage.start(&[("one", everything(contract))])["done"], true);
        let outcome = stage.turn("hi");
        assert_eq!((&outcome["done"], &outcome["text"]), (&json!(true), &json!("Hello")), "{outcome}");
        assert_eq!(stage.does(json!({"do": "stop"}))["done"], true);
        let heard = stage.heard("one");
        let asked: Vec<&str> = heard
            .iter()
            .filter_map(|it| it.strip_prefix("intercept ").or((it == "shutdown").then_some(it)))
            .collect();
        assert_eq!(asked, POINTS);
        assert_eq!((heard[0].as_str(), heard[1].as_str()), ("initialize", "initialized"));
        for point in &POINTS[..10] {
            assert_eq!((stage.intercepts(point).len(), stage.events(point).len()), (1, 1), "{point}");
            assert!(stage.intercepts(point)[0].at < stage.events(point)[0].at, "{point}");
        }
        let seqs = stage
            .calls(names::INTERCEPT)
            .iter()
            .map(|it| it.frame["params"]["seq"].as_u64())
            .collect::<Vec<_>>();
        assert_eq!(seqs, (1..=10).map(Some).collect::<Vec<_>>());
        assert_eq!(stage.shown("text")[0]["text"], "Hello");
        assert!(stage.killed.is_empty());
        stage.close();
        assert_eq!(stage.exited, Some(0));
    }
}

#[test]
fn the_mock_guest_of_each_suite_gets_along_with_it() {
    for suite in [&sidecert_cases::reasonix::V1, &sidecert_cases::reasonix::V2] {
        let contract = (suite.contract)();
        let mut stage = Stage::new(contract, Manners::default());
        stage.casts("mock", move || {
            let features = Features { name: "mock".to_owned(), ..Features::default() };
            Player::Machine(Box::new(Mock::guest(suite, contract, features, None)))
        });
        assert_eq!(stage.start(&[("mock", everything(contract))])["done"], true);
        let outcome = stage.turn("hi");
        assert_eq!(outcome["done"], true, "{outcome}");
        assert_eq!(stage.does(json!({"do": "stop"}))["done"], true);
        assert!(stage.killed.is_empty() && stage.shown("warning").is_empty(), "{:?}", stage.lines);
    }
}

#[test]
fn tools_are_asked_about_run_and_told_to_the_model() {
    let mut stage = Stage::new(v1(), Manners::default());
    stage.casts("one", || {
        let mut opened = 0;
        Puppet::new().with_models(&["plugin/one/p/m"]).streaming(move |open| {
            opened += 1;
            match opened {
                1 => {
                    let call = json!({"id": "c1", "name": "ls", "arguments": "{\"path\":\".\"}"});
                    vec![chunk(open, 1, &json!({"type": "tool_call", "toolCall": call})), end(open, 1)]
                }
                _ => vec![words(open, 1, "Done"), end(open, 1)],
            }
        })
    });
    stage.start(&[("one", everything(v1()))]);
    assert_eq!(stage.turn("list")["text"], "Done");
    for point in ["tool.before", "permission.decision", "tool.after"] {
        assert_eq!(stage.intercepts(point).len(), 1, "{point}");
    }
    assert_eq!(stage.intercepts("context.prepare").len(), 2);
    let after = &stage.intercepts("tool.after")[0].frame["params"]["payload"];
    assert_eq!(after, &json!({"name": "ls", "arguments": "{\"path\":\".\"}", "result": "README.md"}));
    let opens = stage.calls(names::STREAM_OPEN);
    let messages = opens[1].frame["params"]["request"]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().filter_map(|it| it["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(messages[3]["content"], "README.md");
}
