//! What is before what: an outcome comes behind every frame that its ask caused, however small and quick those are.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde_json::Value;
use sidecert_cases::SUITES;
use sidecert_proto::budget::Budget;
use sidecert_proto::contract::Side;
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::script::{Pattern, Process, Reaction, Reply, Script, ScriptDef, Setting, Step, Template};
use sidecert_runner::record::{Order, record};
use sidecert_runner::{Spawn, Stop};
use support::{mock_host, program, python_host};
use tempfile::TempDir;

const TURN: &str = "turn";

/// The guest blocks each input, so a turn is one tiny request, its answer, and the outcome.
fn asks(setting: &Setting<'_>, times: u32) -> Script {
    let plugins = [Plugin::new(setting, "one").intercepts(&["input.receive"])];
    let mut script = Script::new("asks").step(plugin::start(setting, &plugins, ""));
    let when = Pattern::of(r#"{"id":{"$capture":"id"},"method":"extension/intercept"}"#).unwrap();
    let block = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"block","reason":"no"}}"#;
    script.reactions.push(Reaction {
        when,
        reply: Reply::Once(Template::new(block)),
        times: None,
        guest: None,
    });
    let ask = |label: &str, what: &str| Step::Ask { label: label.to_owned(), what: Template::new(what) };
    let outcome = |of: &str| Step::Outcome { of: of.to_owned(), within: None, is: None };
    let turn = vec![ask(TURN, r#"{"do":"turn","text":"x"}"#), outcome(TURN)];
    script
        .step(outcome(START))
        .step(Step::Repeat { times, steps: turn })
        .step(ask("stop", r#"{"do":"stop"}"#))
        .step(outcome("stop"))
}

static MANY: ScriptDef =
    ScriptDef { name: "asks", process: Process::Tour, needs: &[], build: |it| asks(it, 3_000) };
static SOME: ScriptDef =
    ScriptDef { name: "asks", process: Process::Tour, needs: &[], build: |it| asks(it, 300) };

/// Plays it to a host, and gives the recording.
fn played(script: &'static ScriptDef, host: &[String]) -> Vec<Value> {
    let suite = SUITES[1];
    let contract = (suite.contract)();
    let (folder, scratch) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let spawn = Spawn {
        argv: host.iter().map(OsString::from).collect(),
        env: std::env::vars_os().collect(),
        cwd: None,
        launcher: program(),
    };
    let (none, nothing) = (BTreeSet::new(), BTreeMap::new());
    let workspace = scratch.path().display().to_string();
    let setting = Setting {
        provocations: &nothing,
        exercised: &none,
        workspace: &workspace,
        ..Setting::plain(contract)
    };
    let probe: PathBuf = program();
    let (_say, heard) = tokio::sync::watch::channel(Stop::No);
    let (recordings, recorded) = record(&Order {
        suite,
        side: Side::Host,
        setting,
        scripts: &[script],
        selected: &none,
        isolate: false,
        jobs: NonZeroUsize::MIN,
        idle: 0,
        budget: Budget::default(),
        spawn: &spawn,
        probe: Some((&probe, scratch.path())),
        folder: folder.path(),
        stop: heard,
        watch: None,
    });
    recorded.unwrap();
    assert_eq!(recordings.len(), 1);
    let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether each turn has its one request before its end, and nothing comes from the host that nobody asked for.
fn in_order(events: &[Value], turns: usize) {
    let (mut asked, mut requests, mut settled) = (0, 0, true);
    for event in events {
        if event["ask"].is_object() {
            assert!(settled, "asked before all was settled: {event}");
            (settled, requests) = (false, 0);
            asked += usize::from(event["as"] == TURN);
        } else if event["settled"] == true {
            settled = true;
        } else if event["from"] == "host" && event["l"].as_u64().is_some_and(|link| link > 0) {
            assert!(!settled, "behind the end of what was asked: {event}");
            requests += usize::from(event["json"]["method"] == "extension/intercept");
        } else if event["waited"]["as"] == TURN {
            assert_eq!(requests, 1, "before {event}");
        }
    }
    assert_eq!(asked, turns);
    assert_eq!(events.last().unwrap()["end"], "done");
}

#[test]
fn no_outcome_of_three_thousand_overtakes_a_frame() {
    in_order(&played(&MANY, &mock_host("reasonix-v2", &[])), 3_000);
}

#[test]
fn no_outcome_of_a_host_in_python_overtakes_a_frame() {
    in_order(&played(&SOME, &python_host("reasonix-v2")), 300);
}
