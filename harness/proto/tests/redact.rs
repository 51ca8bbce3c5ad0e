//! Whatever a frame holds, its redacted form has the same length and form, and is wrong in the same way.
#![expect(clippy::unwrap_used, reason = "a test may")]

use proptest::prelude::*;
use sidecert_proto::contract::Side;
use sidecert_proto::json::{Kind as JsonKind, Tape};
use sidecert_proto::reasonix::{contract, prose};
use sidecert_proto::redact::{Redaction, Rule};
use sidecert_proto::transcript::{Event, Frame, Kind, Payload};

fn redaction() -> Redaction {
    let rule = Rule { sides: vec![Side::Host, Side::Guest], keep: vec![], free: prose::FREE };
    Redaction::new(contract::v2(), &rule)
}

fn redacted(payload: Payload<'_>) -> Payload<'static> {
    let frame = Frame { from: Side::Guest, label: None, departs: None, open: false, payload };
    let event = Event { t: 0, link: 0, kind: Kind::Frame(frame) };
    let mut redaction = redaction();
    redaction.looked();
    match redaction.event(&event).kind {
        Kind::Frame(Frame { payload: Payload::Json(text), .. }) => Payload::Json(text.into_owned().into()),
        Kind::Frame(Frame { payload: Payload::Text(text), .. }) => Payload::Text(text.into_owned().into()),
        Kind::Frame(Frame { payload: Payload::Bytes(bytes), .. }) => {
            Payload::Bytes(bytes.into_owned().into())
        }
        other => panic!("{other:?}"),
    }
}

fn of(text: &str) -> String {
    String::from_utf8(redacted(Payload::of(text.as_bytes())).bytes().into_owned()).unwrap()
}

#[test]
fn what_is_replaced_and_what_is_not() {
    for (text, expected) in [
        // Names and what the contract spells stay, and so does the form.
        (r#"{ "id": 7, "method": "a/b", "x": [true, null, 1.0] }"#, None),
        (r#"{"reason":"unsupported_version","text":" ","path":""}"#, None),
        (r#"{"a":{"text":"hi"},"b":"hi"}"#, Some(r#"{"a":{"text":"0."},"b":"hi"}"#)),
        // The same text is the same, another one another; paths are none of the names.
        (r#"["a b","c d","a b","/a","s:/b"]"#, Some(r#"["0..","1..","0..","0.","0..."]"#)),
        // Texts are as long as they were written, in a text that holds JSON too.
        (r#"{"x":"\u00e9 \n"}"#, Some(r#"{"x":"0........"}"#)),
        (
            r#"{"arguments":"{\"a\":\"b\\\"c\",\"n\":[1]}"}"#,
            Some(r#"{"arguments":"{\"a\":\"0.....\",\"n\":[1]}"}"#),
        ),
        (r#"{"arguments":{"a":["ab"]}}"#, Some(r#"{"arguments":{"a":["0."]}}"#)),
        // Half a surrogate pair stays one.
        (r#"{"x":"a b \ud800"}"#, Some(r#"{"x":"0...\ud800"}"#)),
        // What is no JSON stays none, for the same reason.
        ("Hello, World 42!", Some("xxxxx, xxxxx 42!")),
        (r#"{"method":"a/b","text":"Hello Bo"#, Some(r#"{"method":"a/b","text":"xxxxx xx"#)),
        (r#"{"id":7,"text":"a b","x":tru}"#, Some(r#"{"id":7,"text":"0..","x":xxx}"#)),
        ("\u{feff}{\"text\":\"a\tb\"}", Some("\u{feff}{\"text\":\"x\tx\"}")),
        (" {\"text\":\"a b\"} ", Some(" {\"text\":\"0..\"} ")),
    ] {
        assert_eq!(of(text), expected.unwrap_or(text));
    }
    let bytes = redacted(Payload::of(b"{\"text\":\"a\xff b\"}"));
    assert_eq!(bytes, Payload::Bytes(b"{\"text\":\"x\xff x\"}".as_slice().into()));
}

#[test]
fn depth_does_not_matter() {
    let deep = format!("{}\"a b\"{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(of(&deep), deep.replace("a b", "0.."));
}

/// Pieces of frames, of which most are no JSON when they are put together.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"{\"text\":\"".to_vec()),
        Just(b"\"}".to_vec()),
        Just(b"{\"x\":[".to_vec()),
        Just(b"]}".to_vec()),
        Just(b"\\\"".to_vec()),
        Just(b"\\ud800".to_vec()),
        Just(b"\\u00".to_vec()),
        Just(b"{\\\"a\\\":\\\"b c\\\"}".to_vec()),
        Just(b"\"a b\",".to_vec()),
        "\\PC{0,6}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = Vec<u8>> {
    let text = "(\\PC|[\\x00-\\x1f]){0,12}".prop_map(serde_json::Value::from);
    let leaf =
        prop_oneof![text, any::<i64>().prop_map(serde_json::Value::from), Just(serde_json::Value::Null)];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let names = prop_oneof![Just("text".to_owned()), Just("arguments".to_owned()), "[a-z]{1,3}"];
        let nested = inner.clone().prop_map(|value| serde_json::Value::from(value.to_string()));
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(names, prop_oneof![inner, nested], 0..4)
                .prop_map(|all| serde_json::Value::Object(all.into_iter().collect())),
        ]
    });
    value.prop_map(|value| value.to_string().into_bytes())
}

proptest! {
    #[test]
    fn length_and_form_stay(bytes in prop_oneof![pieces(), json()]) {
        let payload = Payload::of(&bytes);
        let new = redacted(payload.clone());
        prop_assert_eq!(new.len(), payload.len());
        prop_assert_eq!(std::mem::discriminant(&new), std::mem::discriminant(&payload));
        let again = new.bytes().into_owned();
        prop_assert_eq!(std::mem::discriminant(&Payload::of(&again)), std::mem::discriminant(&payload));
        if let Payload::Json(_) = payload {
            let (old, new) = (Tape::scan(&bytes).unwrap(), Tape::scan(&again).unwrap());
            let shape = |tape: &Tape<'_>| {
                let all = tape.root().walk().map(|(depth, node)| {
                    let raw = if node.kind() == JsonKind::Number { node.raw() } else { "" };
                    (depth, node.kind(), node.offset(), raw.to_owned())
                });
                all.collect::<Vec<_>>()
            };
            prop_assert_eq!(shape(&old), shape(&new));
            prop_assert_eq!(old.has_lone_surrogate(), new.has_lone_surrogate());
        }
    }
}
