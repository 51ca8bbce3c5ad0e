//! What is concluded from the recordings under `golden/`: the verdicts beside them, which `cargo xtask golden` writes.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs;
use std::process::Command;

use serde_json::Value;
use support::{program, stderr, workspace};

/// How big a recording may be: whoever clones the repository gets all of them.
const RECORDING_BYTES_MAX: u64 = 4 << 20;

fn recordings() -> Vec<toml::Table> {
    let text = fs::read_to_string(workspace().join("golden/recordings/provenance.toml")).unwrap();
    let provenance: toml::Table = text.parse().unwrap();
    let all = provenance["recording"].as_array().unwrap();
    all.iter().map(|recording| recording.as_table().unwrap().clone()).collect()
}

/// What `judge` says of a recording: a line for each row, and one for each thing that the host did wrong.
fn concluded(recording: &toml::Table) -> String {
    let (path, suite) = (recording["path"].as_str().unwrap(), recording["suite"].as_str().unwrap());
    let output = Command::new(program())
        .current_dir(workspace())
        .args(["judge", &format!("golden/recordings/{path}"), "--suite", suite])
        .args(["--profile", "reference", "--report", "json=-"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{path}: {error}: {}", stderr(&output)));
    let mut text = format!("exit code {}\n", output.status.code().unwrap());
    for row in report["requirements"].as_array().unwrap() {
        let verdict = row["why"].as_str().or(row["verdict"].as_str()).unwrap();
        let at = row["at"].as_object().map(|at| format!(" {} {}", at["process"], at["event"]));
        text += &format!("{verdict} {}{}\n", row["id"].as_str().unwrap(), at.unwrap_or_default());
    }
    for ours in report["ours"].as_array().unwrap() {
        text += &format!("host: {ours}\n");
    }
    text
}

#[test]
fn verdicts_on_the_recordings() {
    let recordings = recordings();
    assert!(!recordings.is_empty());
    let mut stale = Vec::new();
    for recording in &recordings {
        let path = recording["path"].as_str().unwrap();
        // A version in the name of a folder is no extension.
        let name = path.strip_suffix(".ndjson").unwrap_or(path);
        let beside = workspace().join("golden/verdicts").join(format!("{name}.txt"));
        let text = concluded(recording);
        if std::env::var_os("SIDECERT_BLESS").is_some() {
            fs::create_dir_all(beside.parent().unwrap()).unwrap();
            fs::write(&beside, text).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != text {
            stale.push(path);
        }
    }
    assert!(stale.is_empty(), "other verdicts on {}: `cargo xtask golden` writes them", stale.join(", "));
}

#[test]
fn a_recording_of_the_repository_is_small_and_names_no_place_of_a_machine() {
    // Where this checkout is, where people's are, and where a machine keeps what goes.
    let here = workspace().canonicalize().unwrap().display().to_string();
    let places =
        [here, concat!("/ho", "me/").to_owned(), concat!("/ro", "ot/").to_owned(), "/tmp/".to_owned()];
    let mut folders = vec![workspace().join("golden/recordings")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8(fs::read(&path).unwrap()).unwrap();
            assert!(text.len() as u64 <= RECORDING_BYTES_MAX, "{}: {} bytes", path.display(), text.len());
            for place in &places {
                assert!(!text.contains(place), "{} names {place}", path.display());
            }
        }
    }
}
