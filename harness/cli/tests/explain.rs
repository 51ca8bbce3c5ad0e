//! `explain` tells everything of every requirement, and plays each flaw that breaks it.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use serde_json::Value;
use sidecert_proto::reasonix::contract::v2;
use support::{list, sidecert};

fn explained(words: &[&str]) -> String {
    let output = sidecert([&["explain"], words].concat());
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What stands on a page, without its layout.
fn words(text: &str) -> String {
    text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The requirements of a suite that bind a guest or a host.
fn of(side: &str, suite: &str) -> Vec<Value> {
    list("requirements", suite).into_iter().filter(|row| row["side"] == side).collect()
}

/// Checks the page of every requirement of `suite` that binds `side`, but for those that `but` has as well.
fn complete(side: &str, suite: &str, but: &[Value]) {
    let flaws = list("flaws", suite);
    let by = if side == "host" { "the reference host" } else { "the mock" };
    let rows: Vec<Value> =
        of(side, suite).into_iter().filter(|row| !but.iter().any(|known| known["id"] == row["id"])).collect();
    // Each page is a process that plays some scripts: as many at once as there are processors.
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for rows in rows.chunks(rows.len().div_ceil(at_once).max(1)) {
            scope.spawn(|| pages(side, suite, rows, &flaws, by));
        }
    });
}

fn pages(side: &str, suite: &str, rows: &[Value], flaws: &[Value], by: &str) {
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let text = explained(&[id, "--suite", suite]);
        let said = words(&text);
        assert!(text.starts_with(id) && said.contains(row["text"].as_str().unwrap()), "{id}: {text}");
        for cite in row["cites"].as_array().unwrap() {
            for part in ["section", "english"] {
                assert!(said.contains(cite[part].as_str().unwrap_or_default()), "{id}: {part}: {text}");
            }
        }
        if let Some(script) = row["script"].as_str() {
            assert!(said.contains(&format!("the script {script} begins")), "{id}: {text}");
            let driven = side == "host" && !["greeting", "farewell"].contains(&script);
            assert_eq!(said.contains("driver it must make the host `"), driven, "{id}: {text}");
        }
        let breaks = |flaw: &&Value| flaw["breaks"].as_array().unwrap().iter().any(|broken| broken == id);
        for flaw in flaws.iter().filter(breaks) {
            let name = flaw["name"].as_str().unwrap();
            let heading = format!("BROKEN  by {by} with the flaw {name}\n");
            let played = text.split_once(&heading).unwrap_or_else(|| panic!("{id}: {name}: {text}")).1;
            let played = played.split("\nBROKEN").next().unwrap();
            for part in ["expected │", "actual │", "> event", "see it with │"] {
                assert!(played.contains(part), "{id}: {name}: {part}: {played}");
            }
        }
    }
}

#[test]
fn every_requirement_of_v1_is_explained_in_full() {
    complete("guest", "reasonix-v1", &[]);
}

#[test]
fn every_requirement_that_only_v2_has_is_explained_in_full() {
    complete("guest", "reasonix-v2", &of("guest", "reasonix-v1"));
}

#[test]
fn every_requirement_of_hosts_of_v1_is_explained_in_full() {
    complete("host", "reasonix-v1", &[]);
}

#[test]
fn every_requirement_of_hosts_that_only_v2_has_is_explained_in_full() {
    complete("host", "reasonix-v2", &of("host", "reasonix-v1"));
}

#[test]
fn what_a_driver_must_do_and_which_cannot_is_said() {
    let compacted = words(&explained(&["host-interception/compaction-asked", "--suite", "reasonix-v2"]));
    assert!(compacted.contains("driver it must make the host `compact`, `start`, `stop`"), "{compacted}");
    let asked = words(&explained(&["host-interception/block-stops"]));
    assert!(!asked.contains("which cannot"), "{asked}");
    assert!(
        asked.contains("out of reach of reasonix-cli:run from the second turn of a session on"),
        "{asked}"
    );
    let once = words(&explained(&["host-processes/lingering-killed"]));
    assert!(!once.contains("out of reach of"), "{once}");
}

#[test]
fn a_requirement_is_found_by_its_end_and_by_a_pattern() {
    let name = "opens-with-initialized";
    let whole = explained(&[&format!("reasonix/lifecycle/{name}")]);
    let pattern = ["*", &name.replace("initi", "in?ti")].concat();
    for word in [name, &format!("lifecycle/{name}"), &pattern, &format!("reasonix/*/{name}")] {
        assert_eq!(explained(&[word]), whole, "{word}");
    }
    // What only the second suite has is explained as that has it.
    assert!(words(&explained(&["provides-fit"])).contains("a guest, in reasonix-v2"));
    let elsewhere = explained(&["provides-fit", "--suite", "reasonix-v1"]);
    assert!(elsewhere.contains("it is not asked in reasonix-v1") && !elsewhere.contains("EXAMPLE"));
}

#[test]
fn an_unknown_requirement_is_told_with_the_nearest() {
    for (word, says) in [
        ("member-fit", "no requirement is called \"member-fit\"; did you mean reasonix/members/members-fit?"),
        (
            "nothing-like-it",
            "no requirement is called \"nothing-like-it\"; `sidecert list requirements` shows all",
        ),
        ("*shutdown*", "\"*shutdown*\" names 10 requirements: reasonix/lifecycle/"),
        ("[[", "\"[[\" is no pattern: "),
    ] {
        let output = sidecert(["explain", word]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{word}: {told}");
        assert!(told.starts_with(&format!("sidecert: {says}")), "{word}: {told}");
    }
}

#[test]
fn a_contract_without_the_fact_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contract.json").display().to_string();
    let mut document = v2().document().clone();
    document["$defs"]["InitializeResult"]["properties"].as_object_mut().unwrap().remove("provides");
    std::fs::write(&path, document.to_string()).unwrap();
    let text = explained(&["provides-fit", "--suite", "reasonix-v2", "--contract", &path]);
    assert!(text.contains("that has no InitializeResult.provides") && !text.contains("EXAMPLE"), "{text}");
}

#[test]
fn what_must_be_given_is_said_with_the_command_that_gives_it() {
    let provoked = words(&explained(&["reasonix/transport/frames-within-limit"]));
    assert!(provoked.contains("large = { event = \"input.receive\"") && provoked.contains("--provoke FILE"));
    let observed = words(&explained(&["exits-at-end-of-input"]));
    assert!(
        observed.contains("fails only with --profile reference")
            && observed.contains("reasonix-v1 --profile reference")
    );
}
