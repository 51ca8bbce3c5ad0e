//! Answers of models: order, doubles, gaps, ends, failures and cancellation; which model is asked, and which never.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;

use crate::stage::{
    Act, MILLI, Puppet, Stage, after, answer, chunk, end, error, intercepting, say, stage, v1, v2, words,
};

fn provider() -> Value {
    json!({"capabilities": ["providers"]})
}

/// A turn with a model that streams so.
fn streamed(manners: Manners, does: fn(&Value) -> Vec<Act>) -> (Stage<'static>, Value) {
    let mut stage = Stage::new(v1(), manners);
    stage.casts("one", move || Puppet::new().with_models(&["plugin/one/p/m"]).streaming(does));
    stage.start(&[("one", provider())]);
    let outcome = stage.turn("hi");
    (stage, outcome)
}

fn ended(open: &Value, more: &Value) -> Act {
    let mut params = json!({"streamId": open["params"]["streamId"], "lastSeq": 0});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    say(&json!({"method": names::STREAM_END, "params": params}))
}

/// What a model does, what was shown of it, and what the turn failed with: its reason, and what the user is told.
type Case = (fn(&Value) -> Vec<Act>, &'static str, Option<(&'static str, &'static str)>);

const INTERRUPTED: &str = "provider_interrupted";

#[test]
fn each_way_of_a_stream() {
    let cases: &[Case] = &[
        (|it| vec![words(it, 2, "b"), words(it, 1, "a"), words(it, 3, "c"), end(it, 3)], "abc", None),
        (|it| vec![words(it, 1, "a"), words(it, 1, "X"), words(it, 2, "b"), end(it, 2)], "ab", None),
        (
            |it| vec![words(it, 1, "a"), words(it, 3, "b"), words(it, 3, "X"), words(it, 2, "c"), end(it, 3)],
            "acb",
            None,
        ),
        (|it| vec![words(it, 1, "a"), end(it, 1), words(it, 2, "X")], "a", None),
        (|it| vec![words(it, 1, "a"), end(it, 1), end(it, 1)], "a", None),
        (|it| vec![end(it, 0)], "", None),
        (
            |it| vec![words(it, 1, "a"), words(it, 3, "c"), end(it, 3), after(500, words(it, 2, "b"))],
            "abc",
            None,
        ),
        (
            |it| vec![words(it, 1, "a"), words(it, 3, "c"), end(it, 3)],
            "a",
            Some((INTERRUPTED, "chunk 2 of 3 is missing")),
        ),
        (
            |it| vec![words(it, 1, "a"), words(it, 3, "c")],
            "a",
            Some((INTERRUPTED, "chunk 2 of 3 is missing")),
        ),
        (|it| vec![words(it, 1, "a"), words(it, 258, "z")], "a", Some((INTERRUPTED, "long before chunk 2"))),
        (|it| vec![end(it, 1), words(it, 2, "z")], "", Some((INTERRUPTED, "after the end"))),
        (|it| vec![words(it, 5, "z"), end(it, 3)], "", Some((INTERRUPTED, "beyond the end"))),
        (
            |it| vec![words(it, 1, "a"), words(it, 2, "b"), end(it, 1)],
            "ab",
            Some((INTERRUPTED, "beyond the end")),
        ),
        (|it| vec![words(it, 1, "a"), end(it, 3), end(it, 2)], "a", Some((INTERRUPTED, "ended twice"))),
        (
            |it| vec![words(it, 1, "a"), ended(it, &json!({"lastSeq": 1, "error": "no, token=abcdef"}))],
            "a",
            Some(("provider_failed", "no, token=****")),
        ),
        (|it| vec![ended(it, &json!({"interrupted": true}))], "", Some((INTERRUPTED, "broke off"))),
        (
            |it| {
                let error = json!({"code": "provider_failed", "message": "sk-abcdefghijkl1234"});
                vec![words(it, 1, "a"), chunk(it, 2, &json!({"type": "error", "error": error}))]
            },
            "a",
            Some(("provider_failed", "****")),
        ),
        (
            |it| {
                let error = json!({"code": "provider_interrupted", "message": "away"});
                vec![chunk(it, 1, &json!({"type": "error", "error": error})), end(it, 1)]
            },
            "",
            Some((INTERRUPTED, "away")),
        ),
        (|it| vec![words(it, 1, "a"), Act::Exit(1)], "a", Some((INTERRUPTED, "closed its output"))),
        (|it| vec![chunk(it, 1, &json!({"type": "done"})), words(it, 2, "a"), end(it, 2)], "a", None),
        // What makes no sense is passed over, and missing then.
        (
            |it| vec![chunk(it, 1, &json!({"type": "zzz"})), end(it, 1)],
            "",
            Some((INTERRUPTED, "chunk 1 of 1 is missing")),
        ),
        (
            |it| vec![chunk(it, 1, &json!({"type": "usage"})), end(it, 1)],
            "",
            Some((INTERRUPTED, "chunk 1 of 1 is missing")),
        ),
        (
            |it| vec![chunk(it, 1, &json!({"type": "text", "argChars": -1})), end(it, 1)],
            "",
            Some((INTERRUPTED, "chunk 1 of 1 is missing")),
        ),
        (
            |it| {
                let other = json!({"params": {"streamId": "es_other"}});
                vec![words(&other, 1, "X"), end(&other, 1), words(it, 1, "a"), end(it, 1)]
            },
            "a",
            None,
        ),
    ];
    for (place, (does, shown, failed)) in cases.iter().enumerate() {
        let (stage, outcome) = streamed(Manners::default(), *does);
        let said: String = stage.shown("text").iter().filter_map(|it| it["text"].as_str()).collect();
        assert_eq!(said, *shown, "{place}: {outcome}");
        assert_eq!(outcome["reason"].as_str(), failed.map(|(reason, _)| reason), "{place}: {outcome}");
        if let Some((_, says)) = failed {
            assert!(outcome["failed"].as_str().unwrap().contains(says), "{place}: {outcome}");
            assert!(outcome["failed"].as_str().unwrap().contains("plugin/one/p/m"), "{place}: {outcome}");
        }
        assert!(stage.answers().is_empty(), "{place}");
    }
}

#[test]
fn a_window_of_256_and_a_thousand_chunks() {
    let (_, outcome) = streamed(Manners::default(), |open| {
        let mut acts = vec![words(open, 1, "a"), words(open, 257, "z")];
        acts.extend((2..257).map(|seq| words(open, seq, ".")));
        acts.push(end(open, 257));
        acts
    });
    assert_eq!(outcome["text"].as_str().map(str::len), Some(257));
    let (_, outcome) = streamed(Manners::default(), |open| {
        (1..=1000).map(|seq| words(open, seq, "x")).chain([end(open, 1000)]).collect()
    });
    assert_eq!(outcome["text"].as_str().map(str::len), Some(1000));
}

#[test]
fn all_kinds_of_chunks_come_to_the_response() {
    let mut stage = stage();
    stage.casts("one", || {
        let mut opened = 0;
        Puppet::new().with_models(&["plugin/one/p/m"]).streaming(move |open| {
            opened += 1;
            if opened > 1 {
                return vec![end(open, 0)];
            }
            let call = json!({"id": "c", "name": "ls", "arguments": "{}"});
            let usage = json!({
                "promptTokens": 1, "completionTokens": 2, "totalTokens": 3, "reasoningTokens": 0, "cacheHitTokens": 4, "cacheMissTokens": 5,
            });
            let kinds = [
                json!({"type": "reasoning", "text": "why", "signature": "sig"}),
                json!({"type": "text", "text": "sk-abcdefghijkl1234 stays"}),
                json!({"type": "tool_call_start", "toolCall": call}),
                json!({"type": "tool_call_args_delta", "toolCall": call, "argChars": 2}),
                json!({"type": "tool_call", "toolCall": call}),
                json!({"type": "usage", "usage": usage}),
                json!({"type": "done"}),
            ];
            let chunks = kinds.iter().zip(1..).map(|(kind, seq)| chunk(open, seq, kind));
            chunks.chain([end(open, 7)]).collect()
        })
    });
    let mut block = intercepting(&["provider.response", "tool.before"]);
    block["capabilities"] = json!(["providers", "interceptors"]);
    stage.start(&[("one", block)]);
    stage.turn("hi");
    let payload = &stage.intercepts("provider.response")[0].frame["params"]["payload"];
    assert_eq!((&payload["reasoning"], &payload["signature"]), (&json!("why"), &json!("sig")));
    assert_eq!(
        (payload["calls"].as_array().unwrap().len(), &payload["usage"]["cacheHitTokens"]),
        (1, &json!(4))
    );
    assert_eq!(stage.intercepts("tool.before").len(), 1);
    assert_eq!(stage.shown("text")[0]["text"], "sk-abcdefghijkl1234 stays");
}

#[test]
fn chunks_may_come_before_the_answer_and_a_declined_open_is_cancelled() {
    let mut early = stage();
    early.casts("one", || {
        Puppet::new().with_models(&["plugin/one/p/m"]).on(names::STREAM_OPEN, |open| {
            let mut acts = vec![words(open, 1, "early"), end(open, 1)];
            acts.extend(answer(open, &json!({"accepted": true})).into_iter().map(|act| after(500, act)));
            Some(acts)
        })
    });
    early.start(&[("one", provider())]);
    assert_eq!(early.turn("hi")["text"], "early");
    for refused in [true, false] {
        let mut stage = stage();
        stage.casts("one", move || {
            Puppet::new().with_models(&["plugin/one/p/m"]).on(names::STREAM_OPEN, move |open| {
                let body = json!({"code": -32000, "message": "no", "data": {"reason": "provider_failed", "retryable": true}});
                Some(if refused { error(open, &body) } else { answer(open, &json!({"accepted": false})) })
            })
        });
        stage.start(&[("one", provider())]);
        assert_eq!(stage.turn("hi")["reason"], "provider_failed");
        assert_eq!(stage.heard("one").last().unwrap(), "provider/stream/cancel");
    }
}

#[test]
fn a_cancelled_turn_cancels_its_stream() {
    let mut stage = stage();
    stage.casts("one", || {
        Puppet::new().with_models(&["plugin/one/p/m"]).streaming(|open| {
            vec![words(open, 1, "a"), after(2_000, words(open, 2, "b")), after(2_000, end(open, 2))]
        })
    });
    stage.start(&[("one", provider())]);
    assert!(stage.does(json!({"do": "cancel"}))["refused"].is_string());
    let turn = stage.ask(json!({"do": "turn", "text": "hi"}));
    stage.wait(500);
    assert!(stage.does(json!({"do": "turn", "text": "two"}))["refused"].is_string());
    assert_eq!(stage.does(json!({"do": "cancel"}))["done"], true);
    assert_eq!(stage.outcome(turn)["reason"], "stream_cancelled");
    stage.wait(5_000);
    assert_eq!(stage.calls(names::STREAM_CANCEL).len(), 1);
    assert!(stage.shown("text").is_empty());
    assert_eq!(stage.turn("again")["text"], "ab");
}

#[test]
fn a_silent_model_is_given_up_and_an_open_one_is_cancelled() {
    let before = 0;
    let (stage, outcome) = streamed(Manners::default(), |open| vec![words(open, 1, "a")]);
    assert_eq!(outcome["reason"], INTERRUPTED);
    assert!(stage.now - before >= 300_000 * MILLI);
    assert_eq!(stage.calls(names::STREAM_CANCEL).len(), 1);
}

#[test]
fn catalogs_and_which_model_is_asked() {
    let mut stage = stage();
    let model = |name: &str, more: &str| json!({"ref": name, "model": more, "contextWindow": 1, "efforts": ["low", "high"]});
    stage.casts("one", move || {
        let list = json!({"providers": [
            model("plugin/one/p/m", "m"), model("plugin/other/p/m", "m"), model("plugin/one/p/undeclared", "u"),
        ]});
        Puppet::new()
            .with_models(&["plugin/one/p/m"])
            .answering("One")
            .on(names::PROVIDER_CATALOG, move |frame| Some(answer(frame, &list)))
    });
    stage.casts("two", || Puppet::new().with_models(&["plugin/two/p/m"]).answering("Two"));
    stage.casts("none", Puppet::new);
    stage.start(&[("one", provider()), ("two", provider()), ("none", json!({}))]);
    assert!(stage.calls(names::PROVIDER_CATALOG).is_empty(), "lazily");
    let models = stage.does(json!({"do": "models"}));
    assert_eq!(models["models"], json!(["plugin/one/p/m", "plugin/one/p/undeclared", "plugin/two/p/m"]));
    assert_eq!(stage.turn("hi")["text"], "One");
    for (model, text) in [("plugin/two/p/m", "Two"), ("plugin/two/p", "Two"), ("plugin/one/p/m", "One")] {
        let outcome = stage.does(json!({"do": "turn", "text": "hi", "model": model, "effort": "high"}));
        assert_eq!(outcome["text"], text, "{outcome}");
        let opens = stage.calls(names::STREAM_OPEN);
        let params = &opens.last().unwrap().frame["params"];
        assert_eq!(
            (&params["effort"], &params["seqBase"], &params["model"]),
            (&json!("high"), &json!(1), &json!("m"))
        );
    }
    let opened = stage.calls(names::STREAM_OPEN).len();
    for (model, says) in [
        ("plugin/one/p/undeclared", "did not declare"),
        ("plugin/other/p/m", "no model"),
        ("plugin/one/p/mm", "no model"),
        ("gpt", "no model"),
    ] {
        let outcome = stage.does(json!({"do": "turn", "text": "hi", "model": model}));
        assert!(outcome["failed"].as_str().unwrap().contains(says), "{outcome}");
    }
    assert_eq!(stage.calls(names::STREAM_OPEN).len(), opened);
    assert_eq!(stage.calls(names::PROVIDER_CATALOG).len(), 2, "each is asked once, who has no models never");
    // The selected model is gone: no other one takes over.
    let link = stage.link("one");
    stage.act(link, Act::Exit(1));
    stage.wait(100);
    assert_eq!(stage.turn("hi")["reason"], INTERRUPTED);
    let outcome = stage.does(json!({"do": "turn", "text": "hi", "model": "plugin/one/p/m"}));
    assert_eq!(outcome["reason"], INTERRUPTED);
    assert_eq!(stage.calls(names::STREAM_OPEN).len(), opened);
}

#[test]
fn a_catalog_that_fails_is_asked_for_again_and_one_that_hangs_is_left() {
    let mut stage = stage();
    stage.casts("one", || {
        let mut asked = 0;
        Puppet::new().with_models(&["plugin/one/p/m"]).on(names::PROVIDER_CATALOG, move |frame| {
            asked += 1;
            match asked {
                1 => Some(answer(frame, &json!({"providers": [], "extra": 1}))),
                2 => Some(Vec::new()),
                _ => None,
            }
        })
    });
    stage.start(&[("one", provider())]);
    assert_eq!(stage.does(json!({"do": "models"}))["models"], json!([]));
    let before = stage.now;
    assert_eq!(stage.does(json!({"do": "models"}))["models"], json!([]));
    assert!(stage.now - before >= 10_000 * MILLI);
    assert_eq!(stage.does(json!({"do": "models"}))["models"], json!(["plugin/one/p/m"]));
}

#[test]
fn chunks_of_another_generation_are_dropped_where_they_can_say_so() {
    for (generation, text) in [(1, Some("a")), (2, None)] {
        let mut stage = Stage::new(v2(), Manners::default());
        stage.casts("one", move || {
            Puppet::new().with_models(&["plugin/one/p/m"]).streaming(move |open| {
                assert_eq!((&open["params"]["generation"], &open["params"]["epoch"]), (&json!(1), &json!("session-1-1")));
                let params = json!({
                    "streamId": open["params"]["streamId"], "seq": 1, "generation": generation, "chunk": {"type": "text", "text": "a"},
                });
                vec![say(&json!({"method": names::STREAM_CHUNK, "params": params})), end(open, 1)]
            })
        });
        stage.start(&[("one", provider())]);
        assert_eq!(stage.turn("hi")["text"].as_str(), text);
    }
}
