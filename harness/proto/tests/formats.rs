//! The formats of recordings: a stored sample of each is read, fits its schema, and is written again byte for byte.
#![expect(clippy::unwrap_used, reason = "a test may")]

use jsonschema::Validator;
use serde_json::Value;
use sidecert_proto::contract::Side;
use sidecert_proto::run::Run;
use sidecert_proto::transcript::{Event, Frame, Kind, LINE_BYTES_MAX, Payload, Record, Writer, read};
use sidecert_proto::wire::{Deframer, Line};

fn schema(text: &str) -> Validator {
    let schema: Value = serde_json::from_str(text).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn errors(schema: &Validator, value: &Value) -> Vec<String> {
    schema.iter_errors(value).map(|error| error.to_string()).collect()
}

const TRANSCRIPT: &str = include_str!("../../../golden/samples/transcript-1.ndjson");
/// Of a host: what is told around it.
const OF_A_HOST: &str = include_str!("../../../golden/samples/transcript-1-host.ndjson");
const RUN: &str = include_str!("../../../golden/samples/run-1.json");

#[test]
fn a_stored_transcript_fits_its_schema_and_is_written_as_it_was_read() {
    let schema = schema(include_str!("../schema/transcript-1.schema.json"));
    for sample in [TRANSCRIPT, OF_A_HOST] {
        let mut writer = Writer::default();
        for line in sample.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(errors(&schema, &value), Vec::<String>::new(), "{line}");
            writer.record(&read(line.as_bytes()).unwrap());
        }
        assert_eq!(String::from_utf8(writer.text).unwrap(), sample);
    }
}

#[test]
fn the_samples_have_every_kind_of_event() {
    let kinds: std::collections::BTreeSet<String> = TRANSCRIPT
        .lines()
        .chain(OF_A_HOST.lines())
        .filter_map(|line| match read(line.as_bytes()).unwrap() {
            Record::Event(event) => Some(match event.kind {
                Kind::Frame(frame) => {
                    format!("{:?}", frame.payload).split(['(', ' ']).next().unwrap().to_owned()
                }
                Kind::Told { what, .. } => format!("{what:?}"),
                kind => format!("{kind:?}").split(['(', ' ']).next().unwrap().to_owned(),
            }),
            _ => None,
        })
        .collect();
    let expected = [
        "Alive", "Ask", "Begin", "Beyond", "Blocked", "Broken", "Bytes", "Closed", "Did", "Ended", "Exited",
        "Fill", "Found", "Gone", "Json", "Killed", "Launched", "Left", "Lost", "Other", "Outcome",
        "Oversize", "Settled", "Shim", "Shown", "Signal", "Starved", "Stderr", "Tail", "Text", "TimedOut",
        "Unknown", "Waited", "Wrote",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_letter_that_is_repeated_takes_no_place() {
    let frame = |byte: &str| format!("{{\"id\":1,\"x\":\"{}é\"}}", byte.repeat(8 << 20));
    let written = |text: &str| {
        let mut writer = Writer::default();
        let frame = Frame {
            from: Side::Guest,
            label: None,
            departs: None,
            open: false,
            payload: Payload::of(text.as_bytes()),
        };
        writer.event(&Event { t: 0, link: 0, kind: Kind::Frame(frame) });
        writer.text
    };
    let text = frame("x");
    let line = written(&text);
    assert!(line.len() < 200, "{}", line.len());
    let Record::Event(event) = read(line.trim_ascii_end()).unwrap() else { panic!("it is an event") };
    let Kind::Frame(frame_read) = event.kind else { panic!("it is a frame") };
    assert_eq!((&*frame_read.payload.bytes(), frame_read.payload.id()), (text.as_bytes(), Some(1)));
    // An escape that ends in that letter stays whole, so that the id can be told.
    for escape in [r"\n", r"\u00aa"] {
        let letter = &escape[escape.len() - 1..];
        let text = format!("{{\"id\":1,\"x\":\"{escape}{}\"}}", letter.repeat(1 << 20));
        let line = written(&text);
        let Record::Event(event) = read(line.trim_ascii_end()).unwrap() else { panic!("it is an event") };
        let Kind::Frame(frame) = event.kind else { panic!("it is a frame") };
        assert!(line.len() < 200, "{}", line.len());
        assert_eq!((&*frame.payload.bytes(), frame.payload.id()), (text.as_bytes(), Some(1)));
    }
    // A run of digits may be a number.
    assert!(written(&frame("1")).len() > 8 << 20);
}

#[test]
fn a_whole_file_comes_back_byte_for_byte_also_a_large_or_a_cut_off_one() {
    let large = format!("{{\"x\":\"{}\"}}", "é".repeat(4 << 20));
    let frame = |text: &str| format!("{{\"t\":1,\"from\":\"guest\",\"json\":{text}}}\n");
    let files =
        [TRANSCRIPT.to_owned(), frame(&large), format!("{}{}", frame("{}"), &frame(&large)[..5_000_001])];
    for file in files {
        let mut deframer = Deframer::new(LINE_BYTES_MAX);
        let mut writer = Writer::default();
        for chunk in file.as_bytes().chunks(1 << 16) {
            let mut lines = deframer.push(chunk);
            while let Some(line) = lines.next() {
                let Line::Whole(line) = line else { panic!("a line of a transcript is never oversize here") };
                writer.record(&read(line).unwrap());
            }
        }
        // What has no line feed yet is kept as it stands.
        let again = [&writer.text, deframer.tail()].concat();
        assert!(again == file.as_bytes(), "{} bytes", file.len());
    }
}

#[test]
fn what_is_no_transcript_is_refused_by_reader_and_schema() {
    let schema = schema(include_str!("../schema/transcript-1.schema.json"));
    for line in [
        r#"{"transcript":2,"process":"x"}"#,
        r#"{"t":-1,"closed":{"from":"guest"}}"#,
        r#"{"t":1,"from":"nobody","json":1}"#,
        r#"{"t":1,"from":"guest"}"#,
        r#"{"t":1,"closed":{"from":"both"}}"#,
        r#"{"t":1}"#,
        r#"{"end":"later","events":1}"#,
        r#"{"t":1,"timed-out":{"for":"godot","within":1}}"#,
        r#"{"t":1,"from":"host","fill":{"head":"","byte":"x","n":99999999,"tail":""}}"#,
        "[]",
    ] {
        assert!(read(line.as_bytes()).is_err(), "{line}");
        assert!(!schema.is_valid(&serde_json::from_str(line).unwrap()), "{line}");
    }
}

#[test]
fn a_stored_run_fits_its_schema_and_is_written_as_it_was_read() {
    let schema = schema(include_str!("../schema/run-1.schema.json"));
    assert_eq!(errors(&schema, &serde_json::from_str(RUN).unwrap()), Vec::<String>::new());
    assert_eq!(Run::read(RUN.as_bytes()).unwrap().write(), RUN);
}
