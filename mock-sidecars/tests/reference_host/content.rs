//! Payloads that do not fit their frames: descriptors, pages, how long they are kept, and replacements by reference.

use std::cell::RefCell;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::digest;
use sidecert_proto::reasonix::contract::{self as names, Limits};

use crate::stage::{Puppet, Stage, answer, intercepting, say, stage, v1, with_model};

/// What the user says so that the payload has so many bytes.
fn text_of(bytes: usize) -> String {
    "a".repeat(bytes - r#"{"text":""}"#.len())
}

/// A stage with a plugin `one` that steps in where the user says something, and does this then.
fn with_one(does: impl FnMut(&Value) -> Value + Clone + 'static) -> Stage<'static> {
    let mut stage = stage();
    stage.casts("one", move || {
        let mut does = does.clone();
        Puppet::new().on(names::INTERCEPT, move |frame| Some(answer(frame, &does(frame))))
    });
    let model = with_model(&mut stage, "Hello");
    stage.start(&[("one", intercepting(&["input.receive"])), model]);
    stage
}

fn read(stage: &mut Stage<'_>, plugin: &str, id: u64, reference: &Value, offset: i64) -> Value {
    let link = stage.link(plugin);
    let params = json!({"contentRef": reference, "offset": offset});
    stage.act(link, say(&json!({"id": id, "method": names::CONTENT_READ, "params": params})));
    stage.wait(1);
    stage.answers().into_iter().rfind(|it| it["id"] == id).unwrap().clone()
}

#[test]
fn what_is_longer_than_the_limit_is_read_page_by_page() {
    let limits = Limits::of(v1());
    let page = limits.content_ref_chunk_bytes;
    for (bytes, pages) in [
        (limits.externalize_field_bytes, 0),
        (limits.externalize_field_bytes + 1, 1),
        (page, 1),
        (page + 1, 2),
    ] {
        let mut stage = with_one(|_| json!({"decision": "continue"}));
        assert_eq!(stage.turn(&text_of(bytes))["text"], "Hello");
        for written in
            [stage.intercepts("input.receive")[0].clone(), stage.events("input.receive")[0].clone()]
        {
            let params = &written.frame["params"];
            if pages == 0 {
                assert_eq!((params["payload"].to_string().len(), params.get("externalized")), (bytes, None));
                continue;
            }
            let [descriptor] = params["externalized"].as_array().unwrap().as_slice() else {
                panic!("{params}")
            };
            assert_eq!((&params["payload"], &descriptor["jsonPointer"]), (&Value::Null, &json!("/payload")));
            let (mut whole, mut offset, mut count) = (Vec::new(), 0, 0);
            loop {
                let result =
                    read(&mut stage, "one", 100 + count, &descriptor["contentRef"], offset)["result"].clone();
                count += 1;
                for (name, value) in [
                    ("contentRef", &descriptor["contentRef"]),
                    ("totalBytes", &json!(bytes)),
                    ("sha256", &descriptor["sha256"]),
                    ("offset", &json!(offset)),
                ] {
                    assert_eq!(&result[name], value, "{name}");
                }
                whole.extend(BASE64.decode(result["dataBase64"].as_str().unwrap()).unwrap());
                match result["nextOffset"].as_i64() {
                    Some(next) => offset = next,
                    None => break,
                }
            }
            assert_eq!((count, whole.len()), (pages, bytes));
            assert_eq!(digest::sha256(&whole), descriptor["sha256"].as_str().unwrap());
            let value: Value = serde_json::from_slice(&whole).unwrap();
            assert_eq!(value["text"].as_str().unwrap().len(), text_of(bytes).len());
        }
    }
}

#[test]
fn odd_reads_are_refused_and_others_begin_anywhere() {
    let mut stage = with_one(|_| json!({"decision": "continue"}));
    let total = 70_000;
    stage.turn(&text_of(total));
    let reference =
        stage.intercepts("input.receive")[0].frame["params"]["externalized"][0]["contentRef"].clone();
    let total = i64::try_from(total).unwrap();
    let last = read(&mut stage, "one", 1, &reference, total)["result"].clone();
    assert_eq!((&last["dataBase64"], last.get("nextOffset")), (&json!(""), None));
    let tail = read(&mut stage, "one", 2, &reference, total - 3)["result"].clone();
    assert_eq!(BASE64.decode(tail["dataBase64"].as_str().unwrap()).unwrap(), b"a\"}");
    let expired = |answer: Value| {
        assert_eq!(answer["error"]["code"], -32000);
        assert_eq!(answer["error"]["data"]["reason"], "content_ref_expired");
        assert_eq!(answer["error"]["data"]["retryable"], true);
    };
    expired(read(&mut stage, "one", 3, &reference, total + 1));
    expired(read(&mut stage, "one", 4, &json!("nope"), 0));
    expired(read(&mut stage, "model", 5, &reference, 0));
    for (id, reference, offset) in [(6, reference.clone(), -1), (7, json!(" "), 0)] {
        assert_eq!(read(&mut stage, "one", id, &reference, offset)["error"]["code"], -32602);
    }
    // Two objects a turn: the payload and its event.
    (0..32).for_each(|_| drop(stage.turn(&text_of(70_000))));
    expired(read(&mut stage, "one", 8, &reference, 0));
    let second =
        stage.intercepts("input.receive")[1].frame["params"]["externalized"][0]["contentRef"].clone();
    assert!(read(&mut stage, "one", 9, &second, 0)["result"].is_object(), "64 newer ones are kept");
}

#[test]
fn what_is_longer_than_any_content_is_never_sent() {
    let limits = Limits { content_ref_object_bytes: 100_000, ..Limits::of(v1()) };
    let contract: &'static _ = Box::leak(Box::new(limits.applied_to(v1())));
    for required in [true, false] {
        let mut stage = Stage::new(contract, Manners::default());
        let model = with_model(&mut stage, "Hello");
        let mut block = intercepting(&["input.receive"]);
        block["required"] = required.into();
        stage.start(&[("one", block), model]);
        let outcome = stage.turn(&text_of(100_001));
        assert_eq!(outcome["reason"] == "frame_too_large", required, "{outcome}");
        assert_eq!(stage.intercepts("input.receive").len(), 0);
        assert_eq!(stage.turn("short")["text"], "Hello");
        assert_eq!(stage.intercepts("input.receive")[0].frame["params"]["seq"], 1);
    }
}

#[test]
fn a_frame_that_would_be_too_long_fails_its_call_alone() {
    let limits = Limits { frame_bytes: 50_000, ..Limits::of(v1()) };
    let contract: &'static _ = Box::leak(Box::new(limits.applied_to(v1())));
    let mut stage = Stage::new(contract, Manners::default());
    let model = with_model(&mut stage, "Hello");
    stage.start(&[model]);
    let outcome = stage.turn(&"a".repeat(60_000));
    assert_eq!(outcome["reason"], "frame_too_large", "{outcome}");
    assert!(stage.calls(names::STREAM_OPEN).is_empty());
    assert_eq!(stage.does(json!({"do": "new-session"}))["done"], true);
    assert_eq!(stage.turn("short")["text"], "Hello");
}

/// What is done to a ruling that is right.
type Change = fn(&mut Value);

#[test]
fn a_replacement_may_name_what_the_host_keeps_for_that_guest() {
    let right = |descriptor: &Value| {
        let mut descriptor = descriptor.clone();
        descriptor["jsonPointer"] = "/replacement".into();
        descriptor
    };
    let cases: &[(Change, Option<&str>)] = &[
        (|_| {}, None),
        (|it| it["externalized"][0]["jsonPointer"] = "/payload".into(), Some("protocol_error")),
        (
            |it| {
                let first = it["externalized"][0].clone();
                it["externalized"].as_array_mut().unwrap().push(first);
            },
            Some("protocol_error"),
        ),
        (|it| it["replacement"] = json!({"text": "x"}), Some("protocol_error")),
        (|it| it["externalized"][0]["totalBytes"] = 1.into(), Some("protocol_error")),
        (|it| it["externalized"][0]["sha256"] = "0".repeat(64).into(), Some("protocol_error")),
        (|it| it["externalized"][0]["sha256"] = "A".repeat(64).into(), Some("protocol_error")),
        (|it| it["externalized"][0]["contentRef"] = "nope".into(), Some("content_ref_expired")),
        (|it| it["externalized"][0]["totalBytes"] = 8_388_609.into(), Some("frame_too_large")),
    ];
    for (change, reason) in cases {
        let change = *change;
        let kept: Rc<RefCell<Value>> = Rc::default();
        let mut stage = stage();
        let seen = Rc::clone(&kept);
        stage.casts("one", move || {
            let kept = Rc::clone(&seen);
            Puppet::new().on(names::INTERCEPT, move |frame| {
                let descriptor = &frame["params"]["externalized"][0];
                if descriptor.is_object() {
                    *kept.borrow_mut() = right(descriptor);
                }
                let mut ruling = json!({"decision": "replace", "externalized": [*kept.borrow()]});
                change(&mut ruling);
                Some(answer(frame, &ruling))
            })
        });
        let model = with_model(&mut stage, "Hello");
        let mut block = intercepting(&["input.receive"]);
        block["required"] = true.into();
        stage.start(&[("one", block), model]);
        let outcome = stage.turn(&text_of(70_000));
        assert_eq!(outcome["reason"].as_str(), *reason, "{outcome}");
        if reason.is_none() {
            // The next payload is replaced by what was kept of the first.
            stage.turn("short");
            let opens = stage.calls(names::STREAM_OPEN);
            let messages = opens[1].frame["params"]["request"]["messages"].as_array().unwrap();
            assert_eq!(
                messages.last().unwrap()["content"].as_str().map(str::len),
                Some(text_of(70_000).len())
            );
        }
    }
}
