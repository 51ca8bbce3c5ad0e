//! The released Reasonix CLI as a host: it never notices a tap, our guest does nothing wrong, and what is stored of it
//! holds nothing that somebody else wrote.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sidecert_proto::digest::sha256;
use support::{UNREACHABLE, program, sidecert, stderr, workspace};

/// The longest text with white space that may stand in what is stored, in bytes.
const TEXT_BYTES_MAX: usize = 12;

/// Drives the CLI in these scenarios; where what was recorded is, or nothing, said aloud, where it cannot be had.
#[expect(clippy::print_stderr, reason = "a skip must not read green")]
fn driven(scenarios: &[&str], raw: &Path) -> bool {
    let mut command = Command::new("python3");
    command.arg(workspace().join("golden/record_reasonix_cli.py"));
    command.arg("--sidecert").arg(program()).arg("--raw").arg(raw);
    command.arg("--cache").arg(support::reasonix_cli_cache());
    command.args(scenarios.iter().flat_map(|name| ["--only", name]));
    let output = command.output().unwrap();
    if output.status.code() == Some(UNREACHABLE) {
        eprintln!("SKIPPED: {} scenarios of the released CLI: {}", scenarios.len(), stderr(&output).trim());
        return false;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    true
}

#[test]
fn the_released_host_does_not_notice_a_tap() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path();
    let scenarios = ["plain-turn", "large-input"];
    if !driven(&scenarios, raw) {
        return;
    }
    for name in scenarios {
        let text = |ending: &str| fs::read_to_string(raw.join(format!("{name}.{ending}"))).unwrap();
        // The script has seen that the host ended with 0.
        assert!(text("stdout").contains("Hello from the golden guest."), "{}", text("stdout"));
        assert!(
            !text("stdout").contains("sidecert") && !text("stderr").contains("sidecert"),
            "{}",
            text("stderr")
        );
        let record = text("ndjson");
        assert!(
            record.ends_with('\n') && record.contains("{\"end\":\"done\""),
            "it was not recorded to its end"
        );
        assert_eq!(record.contains("dataBase64"), name == "large-input");
        let findings = text("findings");
        for line in findings.lines() {
            let found = line.split(" (event").next().unwrap();
            assert!(HOST_FINDINGS.contains(&found), "{name}: {findings}");
        }
    }
}

/// What the released host does against its own schema, as `tap --judge` tells it: nothing in these scenarios.
const HOST_FINDINGS: &[&str] = &[];

/// The recordings that are stored, by their path below `golden/recordings`.
fn stored() -> Vec<(String, toml::Table)> {
    let text = fs::read_to_string(workspace().join("golden/recordings/provenance.toml")).unwrap();
    let all: toml::Table = text.parse().unwrap();
    let entries = all["recording"].as_array().unwrap().iter().map(|entry| entry.as_table().unwrap().clone());
    entries.map(|entry| (entry["path"].as_str().unwrap().to_owned(), entry)).collect()
}

#[test]
fn what_is_stored_of_the_released_host_is_redacted_and_small() {
    let folder = workspace().join("golden/recordings");
    let tapped = |path: &str| path.starts_with("reasonix-cli-1.38.11/");
    let of_cli: Vec<_> = stored().into_iter().filter(|(path, _)| tapped(path)).collect();
    let mut files: Vec<PathBuf> = fs::read_dir(folder.join("reasonix-cli-1.38.11"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let told: Vec<PathBuf> = of_cli.iter().map(|(path, _)| folder.join(path)).collect();
    assert_eq!(files, told, "provenance.toml tells of each, in order");
    for (path, entry) in of_cli {
        let bytes = fs::read(folder.join(&path)).unwrap();
        let name = path.rsplit('/').next().unwrap();
        assert_eq!(entry["sha256"][name].as_str(), Some(&*sha256(&bytes)), "{path}");
        assert_eq!(entry["redacted"].as_bool(), Some(true));
        assert!(bytes.len() < 400_000, "{path} has {} bytes", bytes.len());
        for line in String::from_utf8(bytes).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let is_hosts = line["from"] == "host";
            texts(&line, &mut |text| {
                let is_text = is_hosts && text.len() > TEXT_BYTES_MAX && text.contains(char::is_whitespace);
                assert!(!is_text && !text.starts_with('/') && !text.contains("/home"), "{path}: {text:?}");
            });
        }
    }
}

#[test]
fn what_is_stored_of_a_check_of_it_has_no_text_that_only_it_said() {
    let folder = workspace().join("golden/recordings/reasonix-cli-1.38.11-acp");
    let mut said = 0;
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|it| it.file_name() != "run.json") {
        let name = entry.file_name();
        let text = fs::read_to_string(entry.path()).unwrap();
        // A few frames are too deep for this reader, and hold nothing else.
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let is_ours = |line: &Value| line["from"] == "guest" || line["ask"].is_object();
        let mut ours = BTreeSet::new();
        lines.iter().filter(|line| is_ours(line)).for_each(|line| {
            texts(line, &mut |text| {
                ours.insert(text.to_owned());
            });
        });
        for mut line in lines.into_iter().filter(|line| !is_ours(line)) {
            // What it shows of an answer is put together of what our guests said.
            if let Some(outcome) = line["outcome"].as_object_mut() {
                outcome.remove("text");
            }
            texts(&line, &mut |text| {
                let is_its =
                    text.len() > TEXT_BYTES_MAX && text.contains(char::is_whitespace) && !ours.contains(text);
                let is_script =
                    line["script"].is_object() || line["beyond"].is_string() || line["departs"].is_string();
                assert!(is_script || !is_its, "{name:?}: {text:?}");
                said += 1;
            });
        }
    }
    assert!(said > 1_000, "{said}");
}

/// Every text in a value, and in JSON that stands in a text.
fn texts(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => texts(&inner, take),
            _ => take(text),
        },
        Value::Array(all) => all.iter().for_each(|one| texts(one, take)),
        Value::Object(all) => all.values().for_each(|one| texts(one, take)),
        _ => {}
    }
}

#[test]
fn what_is_stored_of_the_released_host_is_judged_without_a_fault_of_our_guest() {
    for (path, entry) in stored().into_iter().filter(|(path, _)| path.starts_with("reasonix-cli-")) {
        let file = workspace().join("golden/recordings").join(&path);
        let suite = entry["suite"].as_str().unwrap();
        let output = sidecert(["judge", "--suite", suite, "--report", "json=-", &file.display().to_string()]);
        assert_eq!(stderr(&output).contains("this recording is redacted"), file.is_dir(), "{path}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let failed = report["requirements"].as_array().unwrap().iter().filter(|row| row["verdict"] == "fail");
        let failed: Vec<&str> = failed.map(|row| row["id"].as_str().unwrap()).collect();
        assert_eq!(failed, Vec::<&str>::new(), "{path}");
    }
}
