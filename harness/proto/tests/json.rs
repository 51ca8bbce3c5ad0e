//! What the tape says of a text, by tables: faults, kinds, numbers, strings, duplicates, pointers, and extreme sizes.

use sidecert_proto::json::{Fault, FaultKind, Kind, Node, Slots, Tape, TapeJson, write_str};

fn tape(text: &str) -> Tape<'_> {
    Tape::scan(text.as_bytes()).unwrap_or_else(|fault| panic!("{text:?}: {fault}"))
}

#[test]
fn says_why_a_text_is_no_json() {
    use FaultKind::{
        BadEscape, BadLiteral, BadNumber, ByteOrderMark, ControlInString, Empty, InvalidUtf8, TrailingText,
        UnexpectedByte, UnexpectedEnd,
    };
    #[rustfmt::skip]
    let table: &[(&[u8], usize, FaultKind)] = &[
        (b"", 0, Empty),
        (b" \t\r\n", 4, Empty),
        (b"\xEF\xBB\xBF{}", 0, ByteOrderMark),
        (b"{} \xEF\xBB\xBF", 3, TrailingText),
        (b"\"\xFF\"", 1, InvalidUtf8),
        (b"[1, \xC3", 4, InvalidUtf8),
        (b"\"\xED\xA0\x80\"", 1, InvalidUtf8),
        (b"\"a\nb\"", 2, ControlInString(b'\n')),
        (b"\"\0\"", 1, ControlInString(0)),
        (b"{\"a\x1F\":1}", 3, ControlInString(0x1F)),
        (br#""\x""#, 1, BadEscape),
        (br#""\'""#, 1, BadEscape),
        (br#""\u12g4""#, 1, BadEscape),
        (br#""\U1234""#, 1, BadEscape),
        (br#"{"\q":1}"#, 2, BadEscape),
        (br#""\u12"#, 5, UnexpectedEnd),
        (br#""\u123""#, 1, BadEscape),
        (br#""\"#, 2, UnexpectedEnd),
        (br#""\""#, 3, UnexpectedEnd),
        (b"\"abc", 4, UnexpectedEnd),
        (b"01", 1, BadNumber),
        (b"-01", 2, BadNumber),
        (b"00", 1, BadNumber),
        (b"-x", 1, BadNumber),
        (b"1.x", 2, BadNumber),
        (b"[1.]", 3, BadNumber),
        (b"1e+x", 3, BadNumber),
        (b"-", 1, UnexpectedEnd),
        (b"1.", 2, UnexpectedEnd),
        (b"1e", 2, UnexpectedEnd),
        (b"1e-", 3, UnexpectedEnd),
        (b"+1", 0, UnexpectedByte(b'+')),
        (b".5", 0, UnexpectedByte(b'.')),
        (b"0x10", 1, TrailingText),
        (b"NaN", 0, UnexpectedByte(b'N')),
        (b"-Infinity", 1, BadNumber),
        (b"nil", 0, BadLiteral),
        (b"True", 0, UnexpectedByte(b'T')),
        (b"tru", 3, UnexpectedEnd),
        (b"[nul]", 1, BadLiteral),
        (b"truex", 4, TrailingText),
        (b"'a'", 0, UnexpectedByte(b'\'')),
        (b"\0", 0, UnexpectedByte(0)),
        (b"\x0C1", 0, UnexpectedByte(0x0C)),
        (b"[1\0]", 2, UnexpectedByte(0)),
        (b"[", 1, UnexpectedEnd),
        (b"[1", 2, UnexpectedEnd),
        (b"[1,", 3, UnexpectedEnd),
        (b"[1,]", 3, UnexpectedByte(b']')),
        (b"[,1]", 1, UnexpectedByte(b',')),
        (b"[1 2]", 3, UnexpectedByte(b'2')),
        (b"[1}", 2, UnexpectedByte(b'}')),
        (b"{1:2}", 1, UnexpectedByte(b'1')),
        (b"{", 1, UnexpectedEnd),
        (br#"{"a""#, 4, UnexpectedEnd),
        (br#"{"a" 1}"#, 5, UnexpectedByte(b'1')),
        (br#"{"a":}"#, 5, UnexpectedByte(b'}')),
        (br#"{"a":1"#, 6, UnexpectedEnd),
        (br#"{"a":1,}"#, 7, UnexpectedByte(b'}')),
        (br#"{"a":1]"#, 6, UnexpectedByte(b']')),
        (b"{a:1}", 1, UnexpectedByte(b'a')),
        (b"{} {}", 3, TrailingText),
        (b"1 // one", 2, TrailingText),
        (b"]", 0, UnexpectedByte(b']')),
    ];
    for (text, at, kind) in table {
        let shown = text.escape_ascii();
        assert_eq!(Tape::scan(text).err(), Some(Fault { at: *at, kind: *kind }), "{shown}");
        assert!(serde_json::from_slice::<serde_json::Value>(text).is_err(), "{shown}");
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn refuses_what_32_bits_cannot_address() {
    // The memory is never touched, so the system never provides it.
    let text = vec![0; (1 << 32) + 1];
    assert_eq!(Tape::scan(&text).err(), Some(Fault { at: 0, kind: FaultKind::TooLarge }));
}

#[test]
fn faults_are_plain_english() {
    let says = |text: &[u8]| Tape::scan(text).err().map(|fault| fault.to_string()).unwrap_or_default();
    assert_eq!(says(b" "), "no value, only white space at byte 1");
    assert_eq!(says(b"\"\x01\""), "unescaped control character 0x01 in a string at byte 1");
    assert_eq!(says(b"[1;2]"), "unexpected `;` at byte 2");
    assert_eq!(says(b"[1\0]"), "unexpected byte 0x00 at byte 2");
    assert_eq!(says(b"{\"a\":"), "the text ends inside its value at byte 5");
}

#[test]
fn keeps_what_was_written() {
    let text = " { \"a\\u0062\" : [ 1.50 , \"\\u00e9\\n\", { } , true,false,null ] }\n";
    let tape = tape(text);
    assert_eq!((tape.text(), tape.depth()), (text, 3));
    let root = tape.root();
    assert_eq!((root.kind(), root.len(), root.raw()), (Kind::Object, 1, text.trim()));
    let array = root.get("ab").unwrap();
    let written: Vec<_> = array.elements().map(|node| (node.kind(), node.raw())).collect();
    #[rustfmt::skip]
    let expected = [
        (Kind::Number, "1.50"), (Kind::String, "\"\\u00e9\\n\""), (Kind::Object, "{ }"), (Kind::Bool, "true"),
        (Kind::Bool, "false"), (Kind::Null, "null"),
    ];
    assert_eq!(written, expected);
    assert_eq!(array.elements().nth(1).unwrap().as_str().unwrap(), "é\n");
    assert_eq!(&text[array.offset()..array.offset() + array.raw().len()], array.raw());
    assert!(
        array.as_str().is_none() && array.as_bool().is_none() && array.as_i64().is_none() && !array.is_null()
    );
    assert!(
        array.get("ab").is_none() && array.members().next().is_none() && root.elements().next().is_none()
    );
}

#[test]
fn undoes_escapes() {
    let table = [
        (r#""""#, "", false),
        (r#""plain""#, "plain", false),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t", false),
        (r#""\u0041\u00E9\u20ac""#, "Aé€", false),
        (r#""\ud83d\ude00!""#, "😀!", false),
        (r#""\uD83D""#, "\u{FFFD}", true),
        (r#""\ude00""#, "\u{FFFD}", true),
        (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", true),
        (r#""\ud83dx\u0041""#, "\u{FFFD}xA", true),
        (r#""\ud83d\n""#, "\u{FFFD}\n", true),
        (r#""\\ud83d""#, "\\ud83d", false),
        ("\"\u{7f}\u{80}\u{2028}\"", "\u{7f}\u{80}\u{2028}", false),
    ];
    for (text, says, lone) in table {
        let tape = tape(text);
        assert_eq!(tape.root().as_str().as_deref(), Some(says), "{text}");
        assert_eq!((tape.has_lone_surrogate(), tape.root().has_lone_surrogate()), (lone, lone), "{text}");
    }
}

#[test]
fn finds_lone_surrogates_below() {
    let tape = tape(r#"[{"a":"b"},{"\udc00":1}]"#);
    let found: Vec<_> = tape.root().elements().map(Node::has_lone_surrogate).collect();
    assert_eq!((tape.has_lone_surrogate(), found), (true, vec![false, true]));
}

#[test]
fn strings_end_where_they_should_at_every_length() {
    for length in 0..100 {
        for special in ["\\\"", "\\u0041", "é", "", "\u{7f}"] {
            let text = format!("[\"{}{special}{0}\",\"{0}\"]", "x".repeat(length));
            assert_eq!(
                tape(&text).root().to_value().unwrap(),
                serde_json::from_str::<serde_json::Value>(&text).unwrap()
            );
        }
        let control = format!("[\"{}\u{1f}{}\"]", "x".repeat(length), "y".repeat(40));
        let fault = Fault { at: length + 2, kind: FaultKind::ControlInString(0x1f) };
        assert_eq!(Tape::scan(control.as_bytes()).err(), Some(fault));
    }
}

#[test]
fn reads_numbers_by_value_and_as_written() {
    let huge = format!("1{}", "0".repeat(400));
    #[rustfmt::skip]
    // Lexeme; integer by value, and written as one; what it is in 64 bits.
    let table = [
        ("0", true, true, Some(0), Some(0), Some(0.0)),
        ("-0", true, true, Some(0), Some(0), Some(-0.0)),
        ("-0.0", true, false, Some(0), Some(0), Some(-0.0)),
        ("0e5", true, false, Some(0), Some(0), Some(0.0)),
        ("0.000e-999999999999999999999", true, false, Some(0), Some(0), Some(0.0)),
        ("1.0", true, false, Some(1), Some(1), Some(1.0)),
        ("1e2", true, false, Some(100), Some(100), Some(100.0)),
        ("10e-1", true, false, Some(1), Some(1), Some(1.0)),
        ("1.5E+1", true, false, Some(15), Some(15), Some(15.0)),
        ("-1.50e1", true, false, Some(-15), None, Some(-15.0)),
        ("1.05e1", false, false, None, None, Some(10.5)),
        ("1e-1", false, false, None, None, Some(0.1)),
        ("0.5", false, false, None, None, Some(0.5)),
        ("9007199254740993", true, true, Some(9_007_199_254_740_993), Some(9_007_199_254_740_993), Some(9_007_199_254_740_992.0)),
        ("9007199254740993.5", false, false, None, None, Some(9_007_199_254_740_994.0)),
        ("9223372036854775807", true, true, Some(i64::MAX), Some(9_223_372_036_854_775_807), Some(9.223_372_036_854_776e18)),
        ("9223372036854775808", true, true, None, Some(9_223_372_036_854_775_808), Some(9.223_372_036_854_776e18)),
        ("-9223372036854775808", true, true, Some(i64::MIN), None, Some(-9.223_372_036_854_776e18)),
        ("-9223372036854775808.0", true, false, Some(i64::MIN), None, Some(-9.223_372_036_854_776e18)),
        ("18446744073709551615", true, true, None, Some(u64::MAX), Some(1.844_674_407_370_955_2e19)),
        ("18446744073709551616", true, true, None, None, Some(1.844_674_407_370_955_2e19)),
        ("1e999999999", true, false, None, None, None),
        ("-1e999999999999999999999", true, false, None, None, None),
        ("1e-999999999999999999999", false, false, None, None, Some(0.0)),
        (huge.as_str(), true, true, None, None, None),
    ];
    for (text, integer, written, signed, unsigned, float) in table {
        let tape = tape(text);
        let node = tape.root();
        assert_eq!((node.is_integer(), node.is_written_as_integer()), (integer, written), "{text}");
        assert_eq!((node.as_i64(), node.as_u64(), node.as_f64()), (signed, unsigned, float), "{text}");
    }
    let tape = tape("\"1\"");
    assert!(
        !tape.root().is_integer() && !tape.root().is_written_as_integer() && tape.root().as_f64().is_none()
    );
}

#[test]
fn the_last_of_duplicates_wins() {
    let table = [
        (r#"{"a":1,"b":2,"a":3}"#, Some("a")),
        (r#"{"a":1,"\u0061":3}"#, Some("a")),
        (r#"{"\ud800":1,"a":3,"\udfff":2}"#, Some("\u{FFFD}")),
        (r#"{"":1,"":2,"a":3}"#, Some("")),
        (r#"{"a":3,"A":1}"#, None),
        (r#"{"a":3,"a ":1,"aa":2}"#, None),
        (r#"{"b":{"a":1},"a":3}"#, None),
    ];
    for (text, duplicate) in table {
        let tape = tape(text);
        assert_eq!(tape.root().duplicate().as_deref(), duplicate, "{text}");
        assert_eq!(tape.has_duplicates(), duplicate.is_some(), "{text}");
        assert_eq!(tape.root().get("a").unwrap().as_i64(), Some(3), "{text}");
    }
    // As many members as are compared pair by pair, and as many as are sorted.
    for members in [2, 31, 32, 33, 200] {
        let names: Vec<String> = (0..members).map(|index| format!("\"name-{index}\":{index}")).collect();
        let text = format!("{{{}}}", names.join(","));
        assert!(!tape(&text).has_duplicates(), "{members}");
        for again in [0, members / 2, members - 1] {
            let text = format!("[{{{},\"name\\u002d{again}\":true}}]", names.join(","));
            let tape = tape(&text);
            let object = tape.root().elements().next().unwrap();
            assert_eq!(object.duplicate().unwrap(), format!("name-{again}"));
            assert_eq!(object.get(&format!("name-{again}")).unwrap().raw(), "true");
            assert_eq!(object.members().count(), members + 1);
        }
    }
    // Deeper than names are sketched.
    let deep = format!("{}{{\"a\":1,\"a\":2}}{}", "[".repeat(40), "]".repeat(40));
    assert!(tape(&deep).has_duplicates());
}

#[test]
fn pointers_lead_there_and_back() {
    let text = r#"{"":{"":1},"a/b":[10,{"m~n":[[]]}],"~1":2,"é\u0021":3,"01":4}"#;
    let tape = tape(text);
    let root = tape.root();
    let table = [
        ("", text),
        ("/", r#"{"":1}"#),
        ("//", "1"),
        ("/a~1b/0", "10"),
        ("/a~1b/1/m~0n/0", "[]"),
        ("/~01", "2"),
        ("/é!", "3"),
        ("/01", "4"),
    ];
    for (pointer, raw) in table {
        let node = root.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        assert_eq!(node.raw(), raw, "{pointer}");
        assert_eq!(root.pointer_to(node).as_deref(), Some(pointer));
    }
    let nowhere = [
        "a",
        "/a~1b/00",
        "/a~1b/01",
        "/a~1b/+1",
        "/a~1b/-",
        "/a~1b/",
        "/a~1b/2",
        "/a~1b/99999999999999999999",
        "/~",
        "/~2",
        "/b",
        "/01/x",
    ];
    for pointer in nowhere {
        assert!(root.pointer(pointer).is_none(), "{pointer}");
    }
    let (one, other) = (root.pointer("/a~1b").unwrap(), root.pointer("/~01").unwrap());
    assert!(one.pointer_to(other).is_none() && one.pointer_to(root).is_none());
    let elsewhere = Tape::scan(b"[1]").unwrap();
    assert!(root.pointer_to(elsewhere.root()).is_none());
}

#[test]
fn walks_all_values_in_order() {
    let tape = tape(r#"{"a":[1,[],{"b":2}],"c":3}"#);
    let seen: Vec<_> = tape.root().walk().map(|(depth, node)| (depth, node.raw())).collect();
    let expected = [
        (0, tape.text()),
        (1, r#"[1,[],{"b":2}]"#),
        (2, "1"),
        (2, "[]"),
        (2, r#"{"b":2}"#),
        (3, "2"),
        (1, "3"),
    ];
    assert_eq!(seen, expected);
    let part: Vec<_> =
        tape.root().get("a").unwrap().walk().map(|(depth, node)| (depth, node.raw())).collect();
    assert_eq!(part.last(), Some(&(2, "2")));
}

#[test]
fn equal_is_by_value() {
    let equal = [
        ("1", "1.0"),
        ("1e2", "100"),
        ("-0", "0.0"),
        ("0.1", "1e-1"),
        ("1e999999999", "10e999999998"),
        ("123456789012345678901234567890", "12345678901234567890123456789e1"),
        (r#""a\u0062""#, r#""ab""#),
        (r#"{"a":1,"b":[2]}"#, r#"{ "b":[2.0], "a":1 }"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        ("[]", "[ ]"),
        ("1e9999999999999999999", "1e9999999999999999999"),
    ];
    let different = [
        ("1", "-1"),
        ("1", "\"1\""),
        ("9007199254740993", "9007199254740992"),
        ("1e999999999", "1e999999998"),
        ("[1,2]", "[2,1]"),
        ("[]", "{}"),
        ("[[]]", "[]"),
        ("null", "false"),
        ("true", "false"),
        (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
        (r#"{"a":"b"}"#, r#"{"b":"a"}"#),
        ("1e9999999999999999999", "1e9999999999999999998"),
    ];
    let table = equal.iter().map(|pair| (pair, true)).chain(different.iter().map(|pair| (pair, false)));
    for ((one, other), expected) in table {
        let (one, other) = (tape(one), tape(other));
        assert_eq!(one.root().equals(other.root()), expected, "{:?} {:?}", one.root(), other.root());
        assert_eq!(other.root().equals(one.root()), expected, "{:?} {:?}", one.root(), other.root());
    }
}

#[test]
fn writes_strings_that_read_back() {
    let mut out = b"x".to_vec();
    write_str(&mut out, "a\"\\\u{0}\u{1f}\u{7f}\u{2028}é😀/");
    assert_eq!(out[0], b'x');
    assert_eq!(Tape::scan(&out[1..]).unwrap().root().as_str().unwrap(), "a\"\\\u{0}\u{1f}\u{7f}\u{2028}é😀/");
}

#[test]
fn what_is_shown_of_a_value_is_bounded() {
    let text = format!("\"{}\"", "é".repeat(10_000));
    assert!(format!("{:?}", tape(&text).root()).len() < 210);
}

#[test]
fn a_tape_gives_its_memory_back() {
    let mut spare = Slots::default();
    for text in ["[1,2,3]", "{", "{\"a\":1}", "", "1"] {
        spare = match Tape::scan_in(text.as_bytes(), spare) {
            Ok(tape) => {
                assert_eq!(tape.root().raw(), text);
                tape.into_spare()
            }
            Err((_, spare)) => spare,
        };
    }
}

#[test]
fn a_million_levels() {
    let levels = 1_000_000;
    let arrays = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for text in [&arrays, &objects] {
        let (tape, again) = (tape(text), tape(text));
        assert_eq!(tape.depth(), 1_000_000);
        assert!(!tape.has_duplicates() && tape.root().to_value().is_none());
        let (depth, deepest) = tape.root().walk().last().unwrap();
        assert!(depth >= 999_999);
        assert_eq!(tape.root().canonical().len(), text.len());
        assert!(tape.root().equals(again.root()));
        let pointer = tape.root().pointer_to(deepest).unwrap();
        assert_eq!(tape.root().pointer(&pointer).unwrap().raw(), deepest.raw());
    }
    assert_eq!(
        Tape::scan(&arrays.as_bytes()[..levels]).err(),
        Some(Fault { at: levels, kind: FaultKind::UnexpectedEnd })
    );
}

#[test]
fn a_million_members() {
    // Comparing all pairs would take hours.
    let member =
        |index: u32, name: u32| format!("{}\"some-name-{name}\":{index}", if index == 0 { "" } else { "," });
    let distinct: String = (0..1_000_000).map(|index| member(index, index)).collect();
    let same: String = (0..1_000_000).map(|index| member(index, 7)).collect();
    for (members, duplicates) in [(distinct, false), (same, true)] {
        let text = format!("{{{members}}}");
        let tape = tape(&text);
        assert_eq!((tape.has_duplicates(), tape.root().len()), (duplicates, 1_000_000));
        assert_eq!(tape.root().get("some-name-7").unwrap().raw(), if duplicates { "999999" } else { "7" });
    }
}

#[test]
fn conforms_to_the_contract_of_the_validator() {
    use jsonschema::json::conformance;
    let text = conformance::document().to_string();
    conformance::assert_conformance::<TapeJson>(&tape(&text).root());
}
