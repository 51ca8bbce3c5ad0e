//! `check document`: what it prints, its report, every exit code, and that what is too much is refused quickly.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::{program, sidecert, stderr, stdout};
use tempfile::TempDir;

const TOOLS: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"find","inputSchema":
    {"type":"object","properties":{"what":{"type":"string","pattern":"^a"}}}}]}"#;

/// Checks these texts, each as a file, with these words before them.
fn check(kind: &str, words: &[&str], texts: &[&[u8]]) -> (Output, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let mut all = vec!["check", "document", "--suite", "webcodex-v1", "--kind", kind];
    all.extend(words);
    let files: Vec<String> = (0..texts.len())
        .map(|index| folder.path().join(format!("{index}.json")).display().to_string())
        .collect();
    for (file, text) in files.iter().zip(texts) {
        fs::write(file, text).unwrap();
    }
    all.extend(files.iter().map(String::as_str));
    (sidecert(all), files)
}

fn fed(words: &[&str], input: &[u8]) -> Output {
    support::fed(&[&["check", "document", "--suite", "webcodex-v1"], words].concat(), input)
}

#[test]
fn people_are_told_of_each() {
    let (output, files) = check("tools-list", &[], &[br#"{"tools":[]}"#, TOOLS.as_bytes()]);
    let expected = format!(
        "admitted  {}: 0 tools\n\
         refused   {}: schema_keyword_unsupported\n          \
         tool find, inputSchema, /tools/1/inputSchema/properties/what/pattern\n          \
         `pattern` is not in the profile; the profile knows type, title, description, enum, const; of objects \
         properties, required, additionalProperties; of strings minLength, maxLength; of arrays minItems, maxItems, \
         items (specified)\n",
        files[0], files[1]
    );
    assert_eq!((stdout(&output), stderr(&output)), (expected, String::new()));
    assert_eq!(output.status.code(), Some(1));
    let (output, _) = check("tools-list", &["--quiet"], &[br#"{"tools":[]}"#]);
    assert_eq!((stdout(&output), output.status.code()), (String::new(), Some(0)));
}

#[test]
fn programs_are_told_of_each() {
    let (output, files) = check(
        "tools-list",
        &["--report", "json=-"],
        &[TOOLS.as_bytes(), br#"{"tools":[{"name":"a b","inputSchema":{}}]}"#, b"{", br#"{"tools":[]}"#],
    );
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["format"], "sidecert-documents");
    assert_eq!((&report["kind"], &report["bounds"]), (&json!("tools-list"), &json!("newer")));
    let told = report["documents"].as_array().unwrap().iter().map(|it| {
        ["file", "admitted", "code", "field", "pointer", "tool"].map(|name| it[name].clone()).to_vec()
    });
    let pointer = "/tools/1/inputSchema/properties/what/pattern";
    let expected = [
        json!([files[0], false, "schema_keyword_unsupported", "inputSchema", pointer, "find"]),
        json!([files[1], false, "invalid_tool_name", "name", "/tools/0/name", null]),
        json!([files[2], false, "plugin_malformed_json", null, "", null]),
        json!([files[3], true, null, null, null, null]),
    ];
    assert_eq!(told.map(Value::from).collect::<Vec<_>>(), expected);
    assert!(stderr(&output).starts_with("refused   "), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("report.json").display().to_string();
    let (output, _) =
        check("input-schema", &["--report", &format!("json={path}")], &[br#"{"type":"object"}"#]);
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(report["documents"][0]["admitted"], true);
}

#[test]
fn standard_input_and_the_bounds() {
    let schema = br#"{"type":"object","properties":{"a":{"type":"string","maxLength":65537}}}"#;
    for (words, code) in [
        (&["--kind", "output-schema", "-"][..], 0),
        (&["--kind", "output-schema", "--bounds", "newer", "-"], 0),
        (&["--kind", "output-schema", "--bounds", "older", "-"], 1),
        (&["--kind", "input-schema", "-"], 1),
    ] {
        let output = fed(words, schema);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stdout(&output));
        assert!(stdout(&output).contains("standard input"), "{}", stdout(&output));
    }
}

#[test]
fn wrong_use_is_told() {
    let all = |words: &[&str]| sidecert(["check", "document"].iter().chain(words));
    let suite = ["--suite", "webcodex-v1"];
    for (words, says) in [
        (&["--kind", "tools-list", "x"][..], "--suite"),
        (&[suite[0], suite[1], "x"], "--kind"),
        (&[suite[0], suite[1], "--kind", "tools-list"], "FILE"),
        (&["--suite", "reasonix-v1", "--kind", "tools-list", "x"], "reasonix-v1 has no documents"),
        (&["--suite", "webcodex", "--kind", "tools-list", "x"], "webcodex-v1"),
        (&[suite[0], suite[1], "--kind", "schema", "x"], "input-schema"),
        (&[suite[0], suite[1], "--kind", "tools-list", "-", "-"], "standard input"),
        (&[suite[0], suite[1], "--kind", "tools-list", "not-there.json"], "not-there.json"),
        (&[suite[0], suite[1], "--kind", "tools-list", "--report", "junit=x", "x"], "json=PATH"),
    ] {
        let output = all(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(says), "{words:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{words:?}");
    }
    let (output, _) = check("tools-list", &["--report", "json=not/there/x.json"], &[b"{}"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
}

#[test]
fn what_a_name_holds_stays_in_its_line() {
    let (output, _) = check("input-schema", &[], &[b"{\"type\":\"object\",\"\\u001b[2J\\u202e\xc2\x9b\":1}"]);
    let told = stdout(&output);
    assert!(!told.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{told:?}");
    assert_eq!(told.lines().count(), 3);
}

/// Bounded in memory: the limit on addresses is what a program of this size needs and little more.
#[test]
fn what_is_too_much_is_refused_in_little_memory() {
    const MEMORY_KIB: u64 = 600_000;
    let properties: Vec<String> =
        (0..1_000_000).map(|index| format!(r#""p{index}":{{"type":"null"}}"#)).collect();
    let properties = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
    let small: Vec<String> = (0..400_000).map(|index| format!(r#""{index}":1"#)).collect();
    let small = format!(r#"{{"type":"object","properties":{{{}}}}}"#, small.join(","));
    let folder = TempDir::new().unwrap();
    for (name, kind, text, code) in [
        ("open", "tools-list", "[".repeat(1_000_000), "plugin_malformed_json"),
        ("nested", "tools-list", "[".repeat(1_000_000) + &"]".repeat(1_000_000), "plugin_message_too_large"),
        (
            "nested-schema",
            "input-schema",
            "[".repeat(1_000_000) + &"]".repeat(1_000_000),
            "input_schema_invalid",
        ),
        ("properties", "input-schema", properties, "schema_bounds_exceeded"),
        ("small-properties", "output-schema", small, "schema_bounds_exceeded"),
        (
            "100-mb",
            "tools-list",
            format!(r#"{{"tools":["{}"]}}"#, "x".repeat(100_000_000)),
            "plugin_message_too_large",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let limited = format!(
            "ulimit -v {MEMORY_KIB}; exec \"$0\" check document --suite webcodex-v1 --kind {kind} --report json=- \"$1\""
        );
        let output = Command::new("sh").args(["-c", &limited]).arg(program()).arg(&path).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{name}: {error}: {}", stderr(&output)));
        assert_eq!(report["documents"][0]["code"], code, "{name}");
        assert_eq!(output.status.code(), Some(1), "{name}");
    }
}
