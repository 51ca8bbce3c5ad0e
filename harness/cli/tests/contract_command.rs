//! `contract show`, `hash`, `check` and `diff`: what they print, every exit code, and what the page on gates says of them.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sidecert_proto::digest::sha256;
use sidecert_proto::reasonix::contract::{v1, v2};
use support::{program, sidecert, workspace};
use tempfile::TempDir;

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Writes a file and gives its path.
fn file(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs `contract` with these words.
fn contract(words: &[&str]) -> Output {
    sidecert(["contract"].iter().chain(words))
}

/// Runs `contract` with these words and this standard input.
fn fed(words: &[&str], input: &str) -> Output {
    support::fed(&[&["contract"], words].concat(), input.as_bytes())
}

/// The contract of version 2, changed.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut document = v2().document().clone();
    change(&mut document);
    serde_json::to_string_pretty(&document).unwrap()
}

#[test]
fn show_prints_the_canonical_form_to_the_byte() {
    let folder = TempDir::new().unwrap();
    let pretty = file(folder.path(), "pretty.json", changed(|_| {}));
    let text = v2().document().to_string();
    for what in ["reasonix-v2", &pretty] {
        let output = contract(&["show", what]);
        assert_eq!((stdout(&output), output.status.code()), (text.clone(), Some(0)), "{what}");
    }
    assert_eq!(stdout(&fed(&["show", "-"], &changed(|_| {}))), text);
}

#[test]
fn show_has_a_form_for_people() {
    let output = contract(&["show", "reasonix-v1", "--format", "table", "--color", "never"]);
    let told = stdout(&output);
    for part in [
        "CONTRACT  reasonix.extension.v1\n",
        "      major │ 1\n",
        "METHODS  16\n",
        " guest asks │ host/content/read (content): ContentReadParams → ContentReadResult\n",
        " host tells │ extension/initialized (lifecycle): InitializedParams\n",
        "ERRORS  14\n",
        "     -32000 │ content_ref_expired, retryable\n",
        "     -32602 │ invalid_params, not retryable\n",
        "EVENTS  17\n",
        "    8388608 │ frameBytes\n",
        "StreamCancelParams: {streamId: string, minLength 1}\n",
        "UIActionDecl: {actionId: string, minLength 1; label?: string}\n",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(told.lines().all(|line| line.chars().count() <= 100), "{told}");
    assert!(told.contains(&v1().hash()));
}

#[test]
fn the_hash_is_that_of_the_canonical_form() {
    let folder = TempDir::new().unwrap();
    for (name, text, canonical) in [
        ("order", "{ \"b\" : [ 1 , true ],\n \"a\" : null }\n", r#"{"a":null,"b":[1,true]}"#),
        // By bytes of UTF-8: U+10000 after U+FFFF, which UTF-16 would have the other way round.
        (
            "names",
            r#"{"\ud800\udc00":1,"\uffff":2,"Z":3,"é":4}"#,
            "{\"Z\":3,\"é\":4,\"\u{ffff}\":2,\"\u{10000}\":1}",
        ),
        (
            "numbers",
            "[1.0,1e2,-0,123456789012345678901234567890,1E+400]",
            "[1.0,1e2,-0,123456789012345678901234567890,1E+400]",
        ),
        ("escapes", r#""\u003c\/\u2028\u00e9\u0001\n\"""#, "\"</\u{2028}é\\u0001\\n\\\"\""),
        ("scalar", " 7 ", "7"),
    ] {
        let output = contract(&["hash", &file(folder.path(), name, text)]);
        assert_eq!(stdout(&output), format!("{}\n", sha256(canonical.as_bytes())), "{name}");
        assert_eq!((stderr(&output), output.status.code()), (String::new(), Some(0)), "{name}");
    }
    assert_eq!(stdout(&fed(&["hash", "-"], "[ ]")), format!("{}\n", sha256(b"[]")));
    for (name, text, says) in [
        ("twice", r#"{"a":[{"b":1,"\u0062":2}]}"#, "/a/0/b: member \"b\" stands twice, at byte 7"),
        ("half", r#"{"a":["x","\ud800"]}"#, "/a/1: half a surrogate pair, at byte 10"),
        ("half-name", r#"{"a":{"\udc00":1}}"#, "/a/\u{fffd}: half a surrogate pair, at byte 6"),
    ] {
        let path = file(folder.path(), name, text);
        let output = contract(&["hash", &path]);
        assert_eq!((stderr(&output), output.status.code()), (format!("sidecert: {path}: {says}\n"), Some(2)));
    }
}

#[test]
fn the_hash_of_a_suite_says_that_it_is_not_the_published_one() {
    let output = contract(&["hash", "reasonix-v1"]);
    assert_eq!((stdout(&output), output.status.code()), (format!("{}\n", v1().hash()), Some(0)));
    assert!(stderr(&output).contains("it is not the published file's"), "{}", stderr(&output));
}

#[test]
fn check_says_everything_that_is_wrong() {
    let folder = TempDir::new().unwrap();
    let good = file(folder.path(), "good.json", changed(|_| {}));
    let output = contract(&["check", &good]);
    let expected = format!(
        "ok     {good}: reasonix.extension.v2, major 2: 16 methods, 20 error reasons, 17 events, 4 limits, 43 definitions\n"
    );
    assert_eq!((stdout(&output), output.status.code()), (expected, Some(0)));
    let bad = file(
        folder.path(),
        "bad.json",
        changed(|document| {
            document["limits"]["frameBytes"] = 0.into();
            document["methods"]["::error::\u{202e}"] = json!(1);
            document["methods"]["extension/event"]["params"] = json!({ "$ref": "#/$defs/None" });
        }),
    );
    let output = contract(&["check", &bad]);
    let expected = "wrong  /limits/frameBytes: must be an integer of at least 1 that fits\n\
                    wrong  /methods/:\\u{3a}error:\\u{3a}\\u{202e}: number instead of object\n\
                    wrong  /methods/extension~1event/params/$ref: \"#/$defs/None\" refers to no definition\n";
    assert_eq!((stdout(&output), output.status.code()), (expected.to_owned(), Some(1)));
    let output = fed(&["check", "-"], "[]");
    assert_eq!(
        (stdout(&output), output.status.code()),
        ("wrong  /: array instead of object\n".to_owned(), Some(1))
    );
    let many = file(
        folder.path(),
        "many.json",
        changed(|document| document["interceptEvents"] = vec![1; 1000].into()),
    );
    let output = contract(&["check", &many]);
    assert_eq!(
        (stdout(&output).lines().count(), stdout(&output).ends_with("wrong  800 more\n")),
        (201, true)
    );
}

#[test]
fn what_cannot_be_read_is_one_line_and_code_2() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("missing.json").display().to_string();
    let directory = folder.path().display().to_string();
    let no_json = file(folder.path(), "no.json", "{\"a\": ");
    let no_text = file(folder.path(), "no.txt", [0xff, 0xfe]);
    let no_contract = file(folder.path(), "array.json", "[]");
    let good = file(folder.path(), "good.json", changed(|_| {}));
    let good = good.as_str();
    for (path, says) in [
        (&missing, "No such file"),
        (&directory, "Is a directory"),
        (&no_json, "no JSON: the text ends inside its value at byte 6"),
        (&no_text, "no JSON: not UTF-8 at byte 0"),
    ] {
        for words in [
            vec!["show", path],
            vec!["hash", path],
            vec!["check", path],
            vec!["diff", good, path],
            vec!["diff", path, good],
        ] {
            let output = contract(&words);
            let told = stderr(&output);
            assert_eq!(
                (output.status.code(), stdout(&output)),
                (Some(2), String::new()),
                "{words:?}: {told}"
            );
            assert!(
                told.starts_with(&format!("sidecert: {path}: ")) && told.contains(says),
                "{words:?}: {told}"
            );
            assert_eq!(told.lines().count(), 1, "{words:?}: {told}");
        }
    }
    for words in
        [vec!["show", &no_contract], vec!["diff", &no_contract, good], vec!["diff", good, &no_contract]]
    {
        let told = stderr(&contract(&words));
        assert_eq!(told, format!("sidecert: {no_contract}: /: array instead of object\n"), "{words:?}");
        assert_eq!(contract(&words).status.code(), Some(2), "{words:?}");
    }
    let told = stderr(&contract(&["show", "reasonix-v3"]));
    assert!(told.contains("did you mean \"reasonix-v"), "{told}");
    let output = contract(&["diff", "-", "-"]);
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(2), 1));
    for words in [vec!["diff", good], vec!["show"], vec!["show", good, "--format", "xml"], vec![]] {
        assert_eq!(contract(&words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    for words in
        [vec!["show", "reasonix-v2"], vec!["diff", "reasonix-v1", "reasonix-v2"], vec!["hash", "reasonix-v1"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(program()).arg("contract").args(&words).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn the_exit_code_of_diff_is_what_a_gate_needs() {
    let folder = TempDir::new().unwrap();
    let old = file(folder.path(), "old.json", changed(|_| {}));
    let same = file(folder.path(), "same.json", v2().document().to_string());
    let added = file(
        folder.path(),
        "added.json",
        changed(|it| it["methods"]["a/new"] = it["methods"]["extension/event"].clone()),
    );
    let gone = file(
        folder.path(),
        "gone.json",
        changed(|it| drop(it["methods"].as_object_mut().unwrap().remove("extension/event"))),
    );
    let fork = file(folder.path(), "fork.json", changed(|it| it["protocolID"] = "fork.extension.v2".into()));
    for (words, code, last) in [
        (vec![&*old, &*same], 0, "ok  within major 2: 0 breaking, 0 warning, 0 additive, 0 editorial"),
        (vec![&*old, &*added], 0, "ok  within major 2: 0 breaking, 0 warning, 1 additive, 0 editorial"),
        (vec![&*old, &*gone], 1, "BREAKS  within major 2: 1 breaking, 0 warning, 0 additive, 0 editorial"),
        (vec![&*old, &*fork], 1, "BREAKS  within major 2: 1 breaking, 0 warning, 0 additive, 0 editorial"),
        (
            vec!["reasonix-v1", &*old],
            0,
            "ok  from major 1 to 2, so it may break (--same-major holds it to the rule): ",
        ),
        (vec!["reasonix-v1", &*old, "--same-major"], 1, "BREAKS  from major 1 to 2: "),
    ] {
        let output = contract(&[vec!["diff"], words.clone()].concat());
        let told = stdout(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert!(told.lines().last().unwrap().starts_with(last), "{words:?}: {told}");
    }
    let output = fed(&["diff", "-", &gone], &changed(|_| {}));
    assert_eq!(output.status.code(), Some(1));
    let told = stdout(&output);
    assert!(
        told.contains("        old │ standard input: reasonix.extension.v2, major 2, SHA-256\n"),
        "{told}"
    );
    assert!(told.contains("BREAKING  1 change\n    removed │ /methods/extension~1event\n"), "{told}");
    assert!(
        told.contains("            │   method \"extension/event\" is gone: an older host still sends it\n"),
        "{told}"
    );
}

#[test]
fn hostile_names_stay_in_their_lines_and_long_ones_are_cut() {
    let folder = TempDir::new().unwrap();
    let hostile = file(
        folder.path(),
        "hostile.json",
        changed(|it| {
            let event = it["methods"]["extension/event"].clone();
            it["methods"]["\n\u{1b}[31m::error::##[group]\u{202e}"] = event.clone();
            it["methods"]["x".repeat(100_000)] = event;
            it["limits"]["a\r\nb"] = 3.into();
            for at in 0..1_200 {
                it["$defs"][format!("D{at}")] = json!(true);
            }
        }),
    );
    let output = contract(&["diff", "reasonix-v2", &hostile, "--color", "never"]);
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    assert!(told.contains(r"/methods/\u{a}\u{1b}[31m:\u{3a}error:\u{3a}#\u{23}[group]\u{202e}"), "{told}");
    assert!(told.contains("… and 202 more"), "{told}");
    assert!(told.len() < 300_000, "{}", told.len());
    assert!(told.lines().all(|line| line.chars().count() <= 100), "{told}");
    let output = contract(&["diff", "reasonix-v2", &hostile, "--format", "json"]);
    let told = stdout(&output);
    assert!(!told.contains("::") && !told.contains('\u{202e}'));
    let document: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&document["counts"]["additive"], &document["left_out"]), (&json!(1202), &json!(202)));
    fits(&document);
    // The whole of it is shown to people, and escaped.
    let output = contract(&["show", &hostile, "--format", "table"]);
    assert!(stdout(&output).lines().all(|line| !line.starts_with('b') && !line.contains('\u{1b}')));
}

/// Whether this is what the schema describes.
fn fits(document: &Value) {
    let schema = fs::read(workspace().join("harness/proto/schema/contract-diff-1.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_json_form_is_the_stored_sample_and_fits_its_schema() {
    let output = contract(&["diff", "reasonix-v1", "reasonix-v2", "--format", "json"]);
    let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits(&document);
    let sample = fs::read(workspace().join("golden/samples/contract-diff-1.json")).unwrap();
    let sample: Value = serde_json::from_slice(&sample).unwrap();
    fits(&sample);
    document["tool"] = sample["tool"].clone();
    assert_eq!(document, sample);
    let mut other = sample;
    other["more"] = json!(1);
    assert!(std::panic::catch_unwind(|| fits(&other)).is_err());
}

// ---- docs/contract-gate.md ----

/// The shell commands of the page.
fn commands_of_the_page() -> Vec<String> {
    let page = fs::read_to_string(workspace().join("docs/contract-gate.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.collect()
}

fn shell(folder: &Path, command: &str) -> Output {
    let bin = program().parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-euc", command])
        .current_dir(folder)
        .env("PATH", path)
        // No configuration of the user's decides what happens here.
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("BASE")
        .output()
        .unwrap()
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let folder = TempDir::new().unwrap();
    let schema = folder.path().join("schema.json");
    fs::write(&schema, changed(|_| {})).unwrap();
    let begun = shell(
        folder.path(),
        "git init -q -b main && git -c user.name=a -c user.email=a@b.c -c commit.gpgsign=false add schema.json \
         && git -c user.name=a -c user.email=a@b.c -c commit.gpgsign=false commit -qm first",
    );
    assert!(begun.status.success(), "git: {}", stderr(&begun));
    let commands = commands_of_the_page();
    assert_eq!(commands.len(), 4);
    let codes = || -> Vec<i32> {
        commands.iter().map(|command| shell(folder.path(), command).status.code().unwrap()).collect()
    };
    assert_eq!(codes(), [0, 0, 0, 0]);
    fs::write(&schema, changed(|it| it["limits"]["frameBytes"] = 9.into())).unwrap();
    assert_eq!(codes(), [0, 1, 0, 0]);
    let written: Value =
        serde_json::from_slice(&fs::read(folder.path().join("changes.json")).unwrap()).unwrap();
    assert_eq!(
        (&written["passes"], &written["changes"][0]["pointer"]),
        (&json!(false), &json!("/limits/frameBytes"))
    );
    fs::write(&schema, changed(|it| it["limits"]["frameBytes"] = 0.into())).unwrap();
    assert_eq!(codes(), [1, 2, 0, 0]);
    fs::write(&schema, "{").unwrap();
    assert_eq!(codes(), [2, 2, 0, 2]);
}

#[test]
fn the_page_names_what_there_is() {
    let page = fs::read_to_string(workspace().join("docs/contract-gate.md")).unwrap();
    let help =
        ["show", "hash", "check", "diff"].map(|command| stdout(&contract(&[command, "--help"]))).join("\n");
    let code = page.split('`').skip(1).step_by(2);
    for option in code.flat_map(str::split_whitespace).filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "{option}");
    }
    for class in ["breaking", "warning", "additive", "editorial"] {
        assert!(page.contains(&format!("| `{class}` |")), "{class}");
    }
    for code in ["0", "1", "2"] {
        assert!(page.contains(&format!("| {code} |")) && help.contains(&format!("    {code}  ")), "{code}");
    }
}
