//! A contract of the user's in place of the one that is built in: a fork's, a smaller one, a broken one.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sidecert_proto::contract::Contract;
use sidecert_proto::reasonix::contract::{v1, v2};
use support::{check, mock, sidecert, verdicts};
use tempfile::TempDir;

/// Writes a contract, as `change` makes it, and gives its path.
fn written(folder: &Path, contract: &Contract, change: impl FnOnce(&mut Value)) -> String {
    let mut document = contract.document().clone();
    change(&mut document);
    let path = folder.join("contract.json");
    fs::write(&path, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    path.display().to_string()
}

/// The mock of a suite under a contract.
fn mock_of(suite: &str, contract: &str, flaw: Option<&str>) -> Vec<String> {
    let mut target = mock(suite, flaw);
    target.extend(["--contract".to_owned(), contract.to_owned()]);
    target
}

/// Makes a fork: a protocol id, a version and a method of its own.
fn fork(document: &mut Value) {
    for name in ["$id", "protocol", "protocolID"] {
        document[name] = "fork.extension.v7".into();
    }
    document["protocolMajor"] = 7.into();
    document["methods"]["fork/extra"] = document["methods"]["extension/event"].clone();
}

#[test]
fn a_fork_is_checked_against_its_own_contract() {
    let folder = TempDir::new().unwrap();
    let contract = written(folder.path(), v1(), fork);
    let options = ["--contract", &*contract];
    let (report, code) = check("reasonix-v1", &options, &mock_of("reasonix-v1", &contract, None));
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["contract"]["id"], "fork.extension.v7");
    assert_eq!(report["contract"]["built_in"], false);
    // The same guest is none of the original protocol, and the original guest none of the fork.
    assert_eq!(check("reasonix-v1", &[], &mock_of("reasonix-v1", &contract, None)).1, 3);
    assert_eq!(check("reasonix-v1", &options, &mock("reasonix-v1", None)).1, 3);
    let flawed = mock_of("reasonix-v1", &contract, Some("misspells-its-decision"));
    assert_eq!(check("reasonix-v1", &options, &flawed).1, 1);
}

#[test]
fn what_a_contract_lacks_is_not_asked_for() {
    let folder = TempDir::new().unwrap();
    let contract = written(folder.path(), v2(), |document| {
        document["$defs"]["InitializeResult"]["properties"].as_object_mut().unwrap().remove("provides");
    });
    let target = mock_of("reasonix-v2", &contract, None);
    let (report, code) = check("reasonix-v2", &["--contract", &contract], &target);
    let row = verdicts(&report).into_iter().find(|(id, _)| id == "reasonix/lifecycle/provides-fit");
    assert_eq!((row.unwrap().1.as_str(), code), ("not_applicable", 0));
    assert_eq!(report["contract"]["built_in"], false);
    let listed = |contract: &[&str]| {
        let words = ["list", "requirements", "--format", "json", "--suite", "reasonix-v2"];
        let output = sidecert(words.iter().chain(contract));
        String::from_utf8(output.stdout).unwrap().contains("reasonix/lifecycle/provides-fit")
    };
    assert_eq!((listed(&[]), listed(&["--contract", &contract])), (true, false));
}

#[test]
fn a_recording_holds_the_contract_and_needs_no_file() {
    let folder = TempDir::new().unwrap();
    let contract = written(folder.path(), v1(), fork);
    let run = folder.path().join("run").display().to_string();
    let options = ["--contract", &*contract, "--record", &run];
    assert_eq!(check("reasonix-v1", &options, &mock_of("reasonix-v1", &contract, None)).1, 0);
    assert_eq!(sidecert(["judge", &run]).status.code(), Some(0));
    assert_eq!(sidecert(["judge", "--contract", &contract, &run]).status.code(), Some(0));
    let other = written(folder.path(), v1(), |_| {});
    let output = sidecert(["judge", "--contract", &other, &run]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.contains("another contract")), (Some(2), true), "{told}");
    // A run against what an older version had built in does not hold it, and can be given it.
    let path = Path::new(&run).join("run.json");
    let mut recorded: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let given = written(folder.path(), v1(), fork);
    recorded.as_object_mut().unwrap().remove("contract");
    fs::write(&path, recorded.to_string()).unwrap();
    let output = sidecert(["judge", &run]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.contains("give it with --contract")), (Some(2), true), "{told}");
    assert_eq!(sidecert(["judge", "--contract", &given, &run]).status.code(), Some(0));
}

#[test]
fn a_broken_contract_is_one_line_with_the_file_the_place_and_what_is_missing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("contract.json").display().to_string();
    let complains = |says: &str| {
        for command in [
            vec!["check", "guest", "--suite", "reasonix-v1", "--contract", &path, "--", "true"],
            vec!["mock", "guest", "--suite", "reasonix-v1", "--contract", &path],
            vec!["list", "requirements", "--contract", &path],
            vec!["explain", "reasonix/members/members-fit", "--contract", &path],
        ] {
            let output = sidecert(&command);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command:?}: {told}");
            assert_eq!(told, format!("sidecert: --contract {path}: {says}\n"), "{command:?}");
        }
    };
    complains("No such file or directory (os error 2)");
    written(folder.path(), v1(), |document| {
        document["limits"].as_object_mut().unwrap().remove("frameBytes");
    });
    complains("/limits: limit \"frameBytes\" is missing");
    written(folder.path(), v1(), |document| {
        document["methods"].as_object_mut().unwrap().remove("extension/shutdown");
    });
    complains("/methods: method \"extension/shutdown\" is missing");
    written(folder.path(), v1(), |document| {
        document["$defs"]["EventParams"] = json!({"$ref": "#/$defs/Nothing"});
    });
    let output = sidecert(["list", "requirements", "--contract", &path]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("/$defs/EventParams/$ref") && told.contains("Nothing"), "{told}");
    fs::write(&path, "{\"$id\": ").unwrap();
    let output = sidecert(["list", "requirements", "--contract", &path]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no JSON"));
}
