//! The tape against `serde_json` and against a second, naive reading of numbers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use serde_json::Value;
use sidecert_proto::json::{Kind, Node, Tape, VALUE_DEPTH_MAX};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_what_serde_json_reads(text in json_text()) {
        prop_assert!(Tape::scan(text.as_bytes()).is_ok());
        agrees(text.as_bytes())?;
    }

    #[test]
    fn refuses_what_serde_json_refuses(text in json_text(), edits in prop::collection::vec(edit(), 1..4)) {
        let mut text = text.into_bytes();
        for (at, what) in edits {
            mutate(&mut text, at, &what);
        }
        agrees(&text)?;
    }

    #[test]
    fn survives_anything(text in prop::collection::vec(any::<u8>(), 0..64)) {
        agrees(&text)?;
    }

    #[test]
    fn survives_what_looks_like_json(text in r#"[\[\]{}:,"\\u0-9eE+.\-dDcC trufalsn]{0,40}"#) {
        agrees(text.as_bytes())?;
    }

    #[test]
    fn integers_are_what_a_written_out_decimal_says(lexeme in number()) {
        let tape = Tape::scan(lexeme.as_bytes()).unwrap();
        let (whole, fraction) = written_out(&lexeme);
        prop_assert_eq!(tape.root().is_integer(), fraction.is_empty(), "{}", lexeme);
        prop_assert_eq!(tape.root().is_written_as_integer(), !lexeme.contains(['.', 'e', 'E']));
        let expected = if fraction.is_empty() { whole.parse::<i64>().ok() } else { None };
        prop_assert_eq!(tape.root().as_i64(), expected, "{}", lexeme);
    }

    #[test]
    fn numbers_are_equal_when_they_are_written_out_alike(one in number(), other in number(), zeros in 0..9_usize) {
        let equal = |one: &str, other: &str| {
            let (one, other) = (Tape::scan(one.as_bytes()).unwrap(), Tape::scan(other.as_bytes()).unwrap());
            one.root().equals(other.root())
        };
        prop_assert_eq!(equal(&one, &other), written_out(&one) == written_out(&other), "{} {}", &one, &other);
        if !one.contains(['e', 'E']) {
            let point = if one.contains('.') { "" } else { ".0" };
            let respelt = format!("{one}{point}{}e0{}", "0".repeat(zeros), "0".repeat(zeros));
            prop_assert!(equal(&one, &respelt), "{} {}", &one, &respelt);
        }
    }

    #[test]
    fn equality_is_that_of_json_schema(one in value(), other in value(), order in any::<u64>()) {
        let equal = |one: &str, other: &str| {
            let (one, other) = (Tape::scan(one.as_bytes()).unwrap(), Tape::scan(other.as_bytes()).unwrap());
            (one.root().equals(other.root()), one.root().canonical() == other.root().canonical())
        };
        let expected = jsonschema::json::cmp::equal(&one, &other);
        prop_assert_eq!(equal(&one.to_string(), &other.to_string()), (expected, expected));
        prop_assert_eq!(equal(&one.to_string(), &respelt(&one, order)), (true, true), "{}", respelt(&one, order));
    }

    #[test]
    fn the_canonical_text_is_the_same_value(value in value()) {
        let text = value.to_string();
        let canonical = Tape::scan(text.as_bytes()).unwrap().root().canonical();
        let again = Tape::scan(canonical.as_bytes()).unwrap();
        prop_assert_eq!(again.root().canonical(), canonical.clone());
        prop_assert!(jsonschema::json::cmp::equal(&again.root().to_value().unwrap(), &value));
    }
}

/// Holds the tape to `serde_json` on one text.
fn agrees(text: &[u8]) -> Result<(), TestCaseError> {
    let shown = text.escape_ascii().to_string();
    let theirs = serde_json::from_slice::<Value>(text);
    let tape = match Tape::scan(text) {
        Ok(tape) => tape,
        Err(fault) => {
            prop_assert!(theirs.is_err(), "{}: {}", shown, fault);
            prop_assert!(fault.at <= text.len());
            return Ok(());
        }
    };
    match theirs {
        Ok(value) => same(tape.root(), &value)?,
        Err(error) => {
            // All that a tape can hold and `serde_json` cannot. The grammar of JSON allows each of the three.
            let deep = tape.depth() > VALUE_DEPTH_MAX;
            let far =
                tape.root().walk().any(|(_, node)| node.kind() == Kind::Number && node.as_f64().is_none());
            prop_assert!(deep || far || tape.has_lone_surrogate(), "{}: {}", shown, error);
        }
    }
    let mut depth_max = 0;
    for (depth, node) in tape.root().walk() {
        depth_max = depth_max.max(depth + u32::from(matches!(node.kind(), Kind::Array | Kind::Object)));
        prop_assert_eq!(Tape::scan(node.raw().as_bytes()).unwrap().root().kind(), node.kind());
        let pointer = tape.root().pointer_to(node).unwrap();
        if !tape.has_duplicates() {
            prop_assert_eq!(tape.root().pointer(&pointer).unwrap().offset(), node.offset());
        }
    }
    prop_assert_eq!(tape.depth(), depth_max);
    Ok(())
}

/// Whether a value on the tape is that value, through every way to ask.
fn same(node: Node<'_>, value: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(node.to_value(), Some(value.clone()));
    match value {
        Value::Null => prop_assert!(node.is_null()),
        Value::Bool(truth) => prop_assert_eq!(node.as_bool(), Some(*truth)),
        Value::Number(number) => {
            prop_assert_eq!(node.as_f64(), number.as_f64());
            if node.is_written_as_integer() {
                // `-0` is a float for `serde_json`.
                prop_assert!(node.as_i64() == number.as_i64() || node.as_i64() == Some(0));
                prop_assert!(node.as_u64() == number.as_u64() || node.as_u64() == Some(0));
            }
        }
        Value::String(text) => prop_assert_eq!(node.as_str().unwrap(), text.as_str()),
        Value::Array(elements) => {
            prop_assert_eq!(node.len(), elements.len());
            for (node, value) in node.elements().zip(elements) {
                same(node, value)?;
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                same(node.get(name).unwrap(), value)?;
            }
            prop_assert_eq!(node.duplicate().is_some(), node.len() != members.len());
            prop_assert!(node.members().all(|(name, _)| members.contains_key(&*name)));
        }
    }
    Ok(())
}

/// A number written out without exponent, point, or zeros that say nothing: sign and whole part, and fraction.
fn written_out(lexeme: &str) -> (String, String) {
    let (sign, rest) = lexeme.strip_prefix('-').map_or(("", lexeme), |rest| ("-", rest));
    let rest = rest.to_lowercase();
    let (mantissa, exponent) = rest.split_once('e').unwrap_or((&rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
    let exponent: i32 = exponent.parse().unwrap();
    for _ in 0..exponent {
        let digit = if fraction.is_empty() { '0' } else { fraction.remove(0) };
        whole.push(digit);
    }
    for _ in exponent..0 {
        fraction.insert(0, whole.pop().unwrap_or('0'));
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let sign = if whole.is_empty() && fraction.is_empty() { "" } else { sign };
    (format!("{sign}{}", if whole.is_empty() { "0" } else { whole }), fraction.to_owned())
}

/// The same value in another spelling: names in another order, numbers with a point, characters escaped.
fn respelt(value: &Value, order: u64) -> String {
    let text = |text: &str| {
        let escaped: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{}\"", escaped.concat())
    };
    match value {
        Value::Number(number) if number.is_i64() => format!("{number}.0E+0"),
        Value::String(string) => text(string),
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(|element| respelt(element, order)).collect();
            format!("[ {} ]", elements.join(" ,"))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", text(name), respelt(value, order)))
                .collect();
            let turn = usize::try_from(order % 7).unwrap() % members.len().max(1);
            members.rotate_left(turn);
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}

fn number() -> impl Strategy<Value = String> {
    let plain = "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?";
    let zeros = "-?(0|[1-9]0{0,5})(\\.0{1,5})?";
    let exponent = prop_oneof![Just(String::new()), "[eE][+-]?0{0,2}[0-9]{1,2}"];
    (prop_oneof![plain, zeros], exponent).prop_map(|(mantissa, exponent)| mantissa + &exponent)
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-c]{0,9}",
        1 => "[ -~&&[^\"\\\\]]{0,40}",
        1 => "[é€😀\u{7f}\u{80}]{1,3}",
        1 => r#"\\(["\\/bfnrt]|u00[0-9a-fA-F]{2}|u[0-9a-cA-C][0-9a-f]{3})"#,
        1 => Just(r"\ud83d\ude00".to_owned()),
        1 => r"\\u[dD][89a-fA-F][0-9a-f]{2}",
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// A JSON text: few names, so that duplicates are common, and white space anywhere.
fn json_text() -> impl Strategy<Value = String> {
    let space = || prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t")];
    let literal = prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(str::to_owned);
    let far =
        prop_oneof![Just("1e400"), Just("-1E999999999999"), Just("1e-999999999")].prop_map(str::to_owned);
    let leaf = prop_oneof![3 => literal, 4 => number(), 4 => string(), 1 => far];
    let text = leaf.prop_recursive(6, 60, 6, move |inner| {
        let array =
            (prop::collection::vec((space(), inner.clone()), 0..6), space()).prop_map(|(elements, end)| {
                let elements: Vec<_> =
                    elements.into_iter().map(|(space, element)| format!("{space}{element}")).collect();
                format!("[{}{end}]", elements.join(","))
            });
        let name = prop_oneof!["\"[ab]{0,2}\"", string()];
        let member = (space(), name, space(), inner)
            .prop_map(|(one, name, two, value)| format!("{one}{name}{two}:{two}{value}{one}"));
        let object = (prop::collection::vec(member, 0..6), space())
            .prop_map(|(members, space)| format!("{{{}{space}}}", members.join(",")));
        prop_oneof![array, object]
    });
    (space(), text, space()).prop_map(|(before, text, after)| format!("{before}{text}{after}"))
}

/// A value that `serde_json` and the tape both hold exactly.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3_i64).prop_map(Value::from),
        (-4..5_i32).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]{0,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[derive(Clone, Debug)]
enum Edit {
    Remove,
    Insert(u8),
    Replace(u8),
    Cut,
    Repeat,
}

fn edit() -> impl Strategy<Value = (prop::sample::Index, Edit)> {
    let byte = || prop_oneof![3 => prop::sample::select(b"{}[]:,\"\\0123456789-+.eEutfnad \n\t\x0b\x00\x1f\xff\x80".to_vec()), 1 => any::<u8>()];
    let edit = prop_oneof![
        Just(Edit::Remove),
        byte().prop_map(Edit::Insert),
        byte().prop_map(Edit::Replace),
        Just(Edit::Cut),
        Just(Edit::Repeat),
    ];
    (any::<prop::sample::Index>(), edit)
}

fn mutate(text: &mut Vec<u8>, at: prop::sample::Index, edit: &Edit) {
    if text.is_empty() {
        return;
    }
    let at = at.index(text.len());
    match edit {
        Edit::Remove => {
            text.remove(at);
        }
        Edit::Insert(byte) => text.insert(at, *byte),
        Edit::Replace(byte) => text[at] = *byte,
        Edit::Cut => text.truncate(at),
        Edit::Repeat => text.extend_from_within(at..),
    }
}
