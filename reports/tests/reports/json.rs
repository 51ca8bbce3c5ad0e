//! The stored form: closed, described by its schema, and read back as what it was.

use serde_json::{Value, json};
use sidecert_reports::Report;
use sidecert_reports::json::{ReadError, SCHEMA, read, render};

use crate::samples;

const STORED: &str = include_str!("../../examples/report-1.json");

fn all() -> [Report; 6] {
    [
        samples::green(),
        samples::one_failure(),
        samples::cut_short(),
        samples::compared(),
        samples::warnings_and_undecided(),
        samples::said_by_a_target("\0\u{202e}::\u{10ffff}\"\\"),
    ]
}

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

#[test]
fn one_failure() {
    insta::assert_snapshot!(render(&samples::one_failure()));
}

#[test]
fn what_is_written_is_read_back() {
    for report in all() {
        let text = render(&report);
        assert_eq!(read(&text).expect("our own report"), report);
        assert!(text.ends_with("}\n"));
    }
}

#[test]
fn a_stored_report_reads_and_renders_as_it_stands() {
    let report = read(STORED).expect("a stored report of version 1");
    assert_eq!(render(&report), STORED);
}

#[test]
fn reports_conform_to_the_schema() {
    let schema = schema();
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
    let stored = read(STORED).expect("a stored report of version 1");
    for report in all().into_iter().chain([stored]) {
        let value = serde_json::to_value(&report).expect("a report is JSON");
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    }
}

/// The schema and the reader agree on what is too much, and on what is too little.
#[test]
fn the_format_is_closed() {
    let validator = jsonschema::validator_for(&schema()).expect("the schema compiles");
    // Together these have every member there is.
    for report in [samples::one_failure(), samples::warnings_and_undecided()] {
        let whole = serde_json::to_value(report).expect("a report is JSON");
        for path in objects(&whole, "") {
            let mut more = whole.clone();
            more.pointer_mut(&path).expect("the object")["more"] = json!(1);
            assert!(!validator.is_valid(&more), "the schema takes more in {path}");
            assert!(read(&more.to_string()).is_err(), "the reader takes more in {path}");

            let members: Vec<String> = whole
                .pointer(&path)
                .and_then(Value::as_object)
                .expect("the object")
                .keys()
                .cloned()
                .collect();
            for member in members {
                let mut less = whole.clone();
                less.pointer_mut(&path).and_then(Value::as_object_mut).expect("the object").remove(&member);
                let (valid, readable) = (validator.is_valid(&less), read(&less.to_string()).is_ok());
                assert_eq!(valid, readable, "schema and reader disagree on {path} without {member}");
            }
        }
    }
}

#[test]
fn other_documents_are_refused_by_name() {
    for (text, message) in [
        (
            r#"{"format":"sidecert-report","version":2,"new":[]}"#,
            "a report of version 2; this sidecert reads version 1",
        ),
        (
            r#"{"format":"sidecert-report","version":"1"}"#,
            r#"a report of version "1"; this sidecert reads version 1"#,
        ),
        (r#"{"format":"sidecert-report"}"#, "a report of version none; this sidecert reads version 1"),
        (
            r#"{"format":"sidecert-run","version":1}"#,
            r#"not a sidecert report: `format` is not "sidecert-report""#,
        ),
        ("{}", r#"not a sidecert report: `format` is not "sidecert-report""#),
        ("[1", "not a JSON object: EOF while parsing a list at line 1 column 2"),
        (
            r#"{"format":"sidecert-report","version":1,"\u001b[2J":0}"#,
            r"not a valid report of version 1: unknown field `\u{1b}[2J`, expected one of",
        ),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(matches!(read(r#"{"format":"sidecert-report","version":1e999}"#), Err(ReadError::Json(_))));
}

#[test]
fn a_report_does_not_contradict_itself() {
    let mut miscounted = samples::one_failure();
    miscounted.counts.pass += 1;
    let error = read(&render(&miscounted)).expect_err("the counts").to_string();
    assert_eq!(error, "not a valid report of version 1: the counts are not those of the verdicts");

    let mut unreasoned = samples::cut_short();
    unreasoned.requirements[1].why = None;
    let error = read(&render(&unreasoned)).expect_err("the reason").to_string();
    assert_eq!(
        error,
        "not a valid report of version 1: reasonix/lifecycle/initialize-answered must have a reason exactly if it is \
         undecided"
    );
}

#[test]
fn printing_it_is_safe() {
    let report = samples::said_by_a_target(
        "a::b ##[x] ##vso[y] \u{7f}\u{9b}\u{202e}\u{200b}\u{e0041}\u{2028}\n\u{1b}",
    );
    let text = render(&report);
    for part in
        ["::", "##[", "##vso[", "\u{7f}", "\u{9b}", "\u{202e}", "\u{200b}", "\u{e0041}", "\u{2028}", "\u{1b}"]
    {
        assert!(!text.contains(part), "{part:?}");
    }
    assert!(
        text.contains(
            r"a:\u003ab #\u0023[x] #\u0023vso[y] \u007f\u009b\u202e\u200b\udb40\udc41\u2028\n\u001b"
        )
    );
    assert_eq!(read(&text).expect("our own report"), report);
}

/// The JSON pointers of all objects in a value.
fn objects(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let inner = members.iter().flat_map(|(name, member)| objects(member, &format!("{path}/{name}")));
            std::iter::once(path.to_owned()).chain(inner).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(index, item)| objects(item, &format!("{path}/{index}")))
            .collect(),
        _ => Vec::new(),
    }
}
