//! What a guest may write, what it is told when it writes something else, and what its errors and standard error show.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract::{self as names, Limits};

use crate::stage::{Act, Puppet, Stage, answer, intercepting, say, stage, v1, with_model};

/// A host with a plugin `one` that is open.
fn open(manners: Manners) -> Stage<'static> {
    let mut stage = Stage::new(v1(), manners);
    stage.start(&[("one", json!({"capabilities": ["ui"]}))]);
    stage
}

/// What the host answers to these bytes of a guest.
pub(crate) fn answered(stage: &mut Stage<'_>, bytes: &[u8]) -> Vec<Value> {
    let (before, link) = (stage.answers().len(), stage.link("one"));
    stage.act(link, Act::Bytes(bytes.to_vec()));
    stage.wait(1);
    stage.answers().into_iter().skip(before).cloned().collect()
}

const READ: &str = r#""method":"host/content/read","params":{"contentRef":"x","offset":0}"#;

#[test]
fn every_line_has_its_answer() {
    let read = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{READ}}}"#);
    let expired = -32000;
    let cases: Vec<(String, Option<(&str, i64)>)> = vec![
        (read("1"), Some(("1", expired))),
        (format!("  \t{}\r", read("2")), Some(("2", expired))),
        (read("-5"), Some(("-5", expired))),
        (read("-0"), Some(("-0", expired))),
        (read("123456789012345678901234567890"), Some(("123456789012345678901234567890", expired))),
        (read("\"a\""), Some(("null", -32600))),
        (read("null"), Some(("null", -32600))),
        (read("1.0"), Some(("null", -32600))),
        (read("1e2"), Some(("null", -32600))),
        (read("true"), Some(("null", -32600))),
        (read("[]"), Some(("null", -32600))),
        (String::new(), None),
        ("   \r".to_owned(), None),
        ("hello".to_owned(), Some(("null", -32700))),
        ("\u{feff}{}".to_owned(), Some(("null", -32700))),
        (format!("{} {}", read("3"), read("4")), Some(("null", -32700))),
        ("{\"a\":\"\u{0}\"}".to_owned(), Some(("null", -32700))),
        (format!("[{}]", read("5")), Some(("null", -32600))),
        ("[]".to_owned(), Some(("null", -32600))),
        ("42".to_owned(), Some(("null", -32600))),
        ("null".to_owned(), Some(("null", -32600))),
        (format!(r#"{{"id":6,{READ}}}"#), Some(("6", -32600))),
        (format!(r#"{{"jsonrpc":"1.0","id":7,{READ}}}"#), Some(("7", -32600))),
        (format!(r#"{{"jsonrpc":"2.0","id":8,"x":1,{READ}}}"#), Some(("8", expired))),
        (format!(r#"{{"jsonrpc":"2.0","id":9,"id":10,{READ}}}"#), Some(("10", expired))),
        (format!(r#"{{"jsonrpc":"2.0","id":11,{READ},"result":1}}"#), Some(("11", -32600))),
        (r#"{"jsonrpc":"2.0","id":12,"method":""}"#.to_owned(), Some(("12", -32600))),
        (r#"{"jsonrpc":"2.0","id":13,"method":"host/content/read","params":[]}"#.to_owned(), Some(("13", -32600))),
        (r#"{"jsonrpc":"2.0","id":14,"method":"host/content/read","params":"x"}"#.to_owned(), Some(("14", -32600))),
        (r#"{"jsonrpc":"2.0","id":15,"method":"host/content/read","params":null}"#.to_owned(), Some(("15", -32600))),
        (r#"{"jsonrpc":"2.0","id":16,"method":"host/content/read"}"#.to_owned(), Some(("16", -32602))),
        (r#"{"jsonrpc":"2.0","id":17,"method":"host/zzz"}"#.to_owned(), Some(("17", -32601))),
        (r#"{"jsonrpc":"2.0","id":18,"method":"extension/intercept","params":{}}"#.to_owned(), Some(("18", -32601))),
        (
            r#"{"jsonrpc":"2.0","id":19,"method":"extension/provider/stream/chunk","params":{}}"#.to_owned(),
            Some(("19", -32601)),
        ),
        (r#"{"jsonrpc":"2.0","method":"zzz"}"#.to_owned(), None),
        (format!(r#"{{"jsonrpc":"2.0",{READ}}}"#), None),
        (r#"{"jsonrpc":"2.0","method":"x","params":1}"#.to_owned(), None),
        (r#"{"jsonrpc":"2.0","id":999,"result":{}}"#.to_owned(), None),
        (r#"{"jsonrpc":"2.0","id":20,"result":1,"error":null}"#.to_owned(), None),
        (r#"{"jsonrpc":"2.0","id":21,"error":{"code":1}}"#.to_owned(), None),
        (r#"{"jsonrpc":"2.0","id":null,"result":1}"#.to_owned(), None),
        (r#"{"jsonrpc":"2.0","result":1}"#.to_owned(), Some(("null", -32600))),
        (r#"{"jsonrpc":"2.0","id":22}"#.to_owned(), Some(("22", -32600))),
        (
            r#"{"jsonrpc":"2.0","id":23,"method":"host/content/read","params":{"contentRef":"x","offset":0,"x":1}}"#
                .to_owned(),
            Some(("23", -32602)),
        ),
        (
            r#"{"jsonrpc":"2.0","id":24,"method":"host/content/read","params":{"contentRef":"x","offset":0.0}}"#
                .to_owned(),
            Some(("24", -32602)),
        ),
        (
            r#"{"jsonrpc":"2.0","id":25,"method":"host/content/read","params":{"contentRef":"x","OFFSET":0}}"#
                .to_owned(),
            Some(("25", -32602)),
        ),
    ];
    let mut stage = open(Manners::default());
    for (line, expected) in cases {
        let answers = answered(&mut stage, format!("{line}\n").as_bytes());
        let Some((id, code)) = expected else {
            assert_eq!(answers, [] as [Value; 0], "{line}");
            continue;
        };
        let [answer] = answers.as_slice() else { panic!("{line}: {answers:?}") };
        let id: Value = serde_json::from_str(id).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}: {answer}");
        let plain = matches!(code, -32700 | -32600);
        assert_eq!(answer["error"]["data"].is_null(), plain, "{line}: {answer}");
        assert_eq!(answer["error"]["data"]["action"].is_string(), !plain, "{line}: {answer}");
    }
    assert!(stage.killed.is_empty() && stage.shown("warning").is_empty());
}

#[test]
fn deep_nesting_and_odd_bytes() {
    let mut stage = open(Manners::default());
    for (depth, code) in [(9_998, -32601), (9_999, -32700)] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        assert_eq!(answered(&mut stage, format!("{line}\n").as_bytes())[0]["error"]["code"], code);
    }
    let mut line =
        br#"{"jsonrpc":"2.0","id":2,"method":"host/content/read","params":{"contentRef":""#.to_vec();
    line.extend([0xff, 0xfe]);
    line.extend(br#"","offset":0}}"#);
    line.push(b'\n');
    assert_eq!(answered(&mut stage, &line)[0]["error"]["code"], -32000);
}

#[test]
fn the_limit_of_a_line_counts_its_end() {
    let limits = Limits { frame_bytes: 2_000, ..Limits::of(v1()) };
    let contract: &'static _ = Box::leak(Box::new(limits.applied_to(v1())));
    let line = |bytes: usize| {
        let head = r#"{"jsonrpc":"2.0","id":1,"method":"host/zzz","x":""#;
        format!("{head}{}\"}}\n", "x".repeat(bytes - head.len() - 3)).into_bytes()
    };
    for (bytes, ends) in
        [(line(2_000), false), (line(2_001), true), (vec![b'x'; 2_001], true), (vec![b' '; 2_001], true)]
    {
        let mut stage = Stage::new(contract, Manners::default());
        stage.start(&[("one", json!({}))]);
        let answers = answered(&mut stage, &bytes);
        assert_eq!((answers.is_empty(), stage.killed.len()), (ends, usize::from(ends)), "{}", bytes.len());
        if ends {
            assert!(stage.shown("warning")[0]["text"].as_str().unwrap().contains("2000 bytes"));
        }
    }
}

#[test]
fn lines_come_in_pieces_and_the_last_one_without_its_end() {
    let mut stage = open(Manners::default());
    let link = stage.link("one");
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,{READ}}}"#);
    let two = format!("{line}\n{line}\n");
    assert_eq!(answered(&mut stage, two.as_bytes()).len(), 2);
    let (head, tail) = line.split_at(20);
    stage.act(link, Act::Bytes(head.into()));
    stage.wait(100);
    assert_eq!(answered(&mut stage, format!("{tail}\n").as_bytes()).len(), 1);
    // An answer that ends with the output counts.
    let mut stage = stage_with_last_answer();
    assert_eq!(stage.turn("hi")["blocked"], "plugin one blocked input.receive: last");
}

fn stage_with_last_answer() -> Stage<'static> {
    let mut stage = stage();
    let model = with_model(&mut stage, "Hello");
    stage.casts("one", || {
        Puppet::new().on(names::INTERCEPT, |frame| {
            let Act::Say(line) = answer(frame, &json!({"decision": "block", "reason": "last"})).remove(0)
            else {
                return None;
            };
            Some(vec![Act::Bytes(line.into_bytes()), Act::CloseOutput])
        })
    });
    stage.start(&[("one", intercepting(&["input.receive"])), model]);
    stage
}

#[test]
fn only_the_answer_that_is_waited_for_counts() {
    type Answers = fn(&Value) -> Vec<Act>;
    let block = |id: &Value| {
        Act::Say(json!({"jsonrpc": "2.0", "id": id, "result": {"decision": "block"}}).to_string())
    };
    let cases: &[(Answers, &str)] = &[
        (
            |it| [vec![Act::Say("noise".to_owned())], answer(it, &json!({"decision": "block"}))].concat(),
            "blocked",
        ),
        (
            |it| {
                [answer(it, &json!({"decision": "continue"})), answer(it, &json!({"decision": "block"}))]
                    .concat()
            },
            "done",
        ),
        (
            |it| {
                vec![Act::Say(format!(
                    r#"{{"jsonrpc":"2.0","id":"{}","result":{{"decision":"block"}}}}"#,
                    it["id"]
                ))]
            },
            "done",
        ),
        (
            |it| {
                vec![Act::Say(format!(
                    r#"{{"jsonrpc":"2.0","id":{}.0,"result":{{"decision":"block"}}}}"#,
                    it["id"]
                ))]
            },
            "done",
        ),
        (
            |it| {
                vec![Act::Say(format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{{"decision":"block"}},"error":null}}"#,
                    it["id"]
                ))]
            },
            "done",
        ),
    ];
    for (place, (answers, expected)) in cases.iter().enumerate() {
        let answers = *answers;
        let mut stage = stage();
        let model = with_model(&mut stage, "Hello");
        stage.casts("one", move || Puppet::new().on(names::INTERCEPT, move |frame| Some(answers(frame))));
        stage.start(&[("one", intercepting(&["input.receive"])), model]);
        let outcome = stage.turn("hi");
        assert!(!outcome[expected].is_null(), "{place}: {outcome}");
    }
    let mut stage = open(Manners::default());
    let link = stage.link("one");
    stage.act(link, block(&json!(77)));
    stage.wait(1);
    assert!(stage.answers().is_empty());
}

#[test]
fn standard_error_is_no_protocol_and_what_is_kept_is_its_end() {
    let mut stage = stage();
    stage.casts("one", || {
        let read = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,{READ}}}\n");
        let filler = "filler ".repeat(9_000);
        let text = format!("MARK-A api_key=abcdef {read}{filler} MARK-B api_key=abcdef");
        Puppet::new().first(vec![Act::Stderr(text)])
    });
    assert_eq!(stage.start(&[("one", json!({}))])["done"], true);
    assert!(stage.answers().is_empty());
    let link = stage.link("one");
    stage.act(link, Act::Exit(1));
    stage.wait(10);
    let text = stage.found_in("diagnostics")[0];
    assert!(text.contains("MARK-B api_key=****") && !text.contains("MARK-A") && text.len() < 17_000);
}

#[test]
fn what_the_user_and_the_log_see_is_masked() {
    let secret = "sk-abcdefghijkl1234";
    let mut stage = stage();
    stage.casts("one", move || {
        let block = json!({"decision": "block", "reason": secret});
        let message = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": 1, "message": secret}});
        Puppet::new().at("input.receive", block).on(names::PROVIDER_CATALOG, move |frame| {
            let mut message = message.clone();
            message["id"] = frame["id"].clone();
            Some(vec![Act::Stderr(secret.to_owned()), Act::Say(message.to_string())])
        })
    });
    let mut block = intercepting(&["input.receive"]);
    block["capabilities"] = json!(["providers", "ui"]);
    stage.start(&[("one", block)]);
    stage.turn("hi");
    stage.does(json!({"do": "models"}));
    let publish = json!({
        "sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "status", "payload": {"label": secret},
    });
    let link = stage.link("one");
    stage.act(link, say(&json!({"id": 1, "method": names::UI_PUBLISH, "params": publish})));
    stage.wait(10);
    stage.act(link, Act::Exit(1));
    stage.wait(10);
    stage.does(json!({"do": "stop"}));
    let all = Value::Array(stage.lines.clone()).to_string();
    assert!(!all.contains(secret), "{all}");
    assert!(all.matches("****").count() >= 6 && !stage.found_in("log").is_empty(), "{all}");
}
