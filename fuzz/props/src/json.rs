//! The tape against `serde_json`: the same texts, the same values.

use serde_json::Value;
use sidecert_proto::json::{Node, Tape, VALUE_DEPTH_MAX, write_str};

use crate::draw::Draw;

/// Up to how many bytes of a text every value is looked up by its pointer, which takes quadratic time.
const POINTED_BYTES_MAX: usize = 512;

/// Scans `bytes` as a JSON text, and one that is drawn from them, whole and with one byte changed.
pub fn json(bytes: &[u8]) {
    read_alike(bytes);
    let mut draw = Draw::new(bytes);
    let (place, byte) = (draw.below(1 << 16), draw.byte());
    let mut text = draw.json().into_bytes();
    read_alike(&text);
    let place = place % text.len();
    text[place] = byte;
    read_alike(&text);
}

fn read_alike(bytes: &[u8]) {
    let value: Result<Value, _> = serde_json::from_slice(bytes);
    let tape = match (Tape::scan(bytes), &value) {
        (Ok(tape), _) => tape,
        (Err(fault), Ok(_)) => panic!("serde_json accepts what the tape refuses: {fault}"),
        (Err(fault), Err(_)) => {
            assert!(fault.at <= bytes.len(), "{fault} points past the text");
            return;
        }
    };
    let root = tape.root();
    match value {
        Ok(value) => assert_eq!(root.to_value(), Some(value)),
        Err(error) => {
            // All that the tape takes and serde_json does not: it says so instead of refusing.
            let beyond_f64 = root.walk().any(|(_, node)| is_beyond_f64(node.raw()));
            let listed = tape.has_lone_surrogate() || tape.depth() > VALUE_DEPTH_MAX || beyond_f64;
            assert!(listed, "serde_json refuses what the tape accepts: {error}");
        }
    }
    let text = tape.text();
    assert_eq!(root.raw(), text.trim_matches([' ', '\t', '\r', '\n']));
    for (_, node) in root.walk() {
        assert_eq!(&text[node.offset()..node.offset() + node.raw().len()], node.raw());
        if text.len() <= POINTED_BYTES_MAX {
            let pointer = root.pointer_to(node);
            assert!(pointer.is_some(), "a value that no pointer leads to");
            // Of duplicate members the last one counts, so a pointer to an earlier one leads past it.
            let found = pointer.and_then(|pointer| root.pointer(&pointer));
            assert!(
                tape.has_duplicates()
                    || tape.has_lone_surrogate()
                    || found.map(Node::raw) == Some(node.raw())
            );
        }
        if let Some(said) = node.as_str() {
            let mut written = Vec::new();
            write_str(&mut written, &said);
            let again =
                Tape::scan(&written).map(|tape| tape.root().as_str().map(std::borrow::Cow::into_owned));
            assert_eq!(again, Ok(Some(said.into_owned())), "a string that does not survive being written");
        }
    }
    let spare = Tape::scan(b"[{\"a\":[1,2,{}]},\"x\"]").map(Tape::into_spare).unwrap_or_default();
    let again =
        Tape::scan_in(bytes, spare).map(|again| (again.depth(), again.root().len(), again.has_duplicates()));
    let first = (tape.depth(), root.len(), tape.has_duplicates());
    assert_eq!(again.map_err(|(fault, _)| fault), Ok(first), "used memory changes what is read");
}

/// Whether this is a number, and one that is infinitely far off as `f64`.
fn is_beyond_f64(raw: &str) -> bool {
    raw.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        && raw.parse::<f64>().is_ok_and(f64::is_infinite)
}
