//! The shim of the released Reasonix CLI: each word that it knows, in each way of telling the CLI what to do, with a
//! guest whose model does what the user says.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{program, reasonix_cli, workspace};

/// How long anything of these tests may take.
const WITHIN: Duration = Duration::from_mins(1);

/// A plugin that runs our guest.
fn plugin(name: &str, plays: &[&str]) -> Value {
    let guest = workspace().join("harness/cli/tests/reasonix_cli_shim/obedient.py");
    let mut args = vec!["python3".into(), "-I".into(), "-S".into(), guest.display().to_string()];
    args.extend(plays.iter().map(ToString::to_string));
    json!({ "name": name, "enabled": true, "manifest": {
        "apiVersion": "reasonix.io/plugin/v2", "name": name, "version": "0.1.0", "description": "A guest.",
        "contributes": {},
        "runtime": {
            "command": "/usr/bin/env", "args": args, "env": {}, "required": true, "priority": 0,
            "intercepts": ["input.receive"], "replaces": [], "capabilities": ["interceptors", "providers", "ui"],
        },
    } })
}

/// The shim, and everything that it has said.
struct Shim {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    hello: Value,
    asked: u64,
    outcomes: BTreeMap<u64, Value>,
    /// What was shown and found since it was last looked at.
    told: Vec<Value>,
    folder: tempfile::TempDir,
    /// Where a session is one turn: what the next one starts with, and whether one is there.
    plugins: Value,
    is_on: bool,
}

impl Shim {
    /// None, said aloud, where the CLI cannot be had.
    fn begin(mode: &str) -> Option<Self> {
        let mut command = Command::new(program());
        command.args(["shim", "reasonix-cli", "--mode", mode, "--"]).arg(reasonix_cli()?);
        Some(Self::of(command))
    }

    fn of(mut command: Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (say, lines) = mpsc::channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if say.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        let mut shim = Self {
            process,
            input,
            lines,
            hello: Value::Null,
            asked: 0,
            outcomes: BTreeMap::new(),
            told: Vec::new(),
            folder,
            plugins: Value::Null,
            is_on: false,
        };
        let host = shim.folder.path().join("host");
        fs::create_dir(&host).unwrap();
        shim.write(&json!({ "shim": 1, "suite": "reasonix-v2", "folder": host }));
        shim.hello = shim.lines.recv_timeout(WITHIN).unwrap();
        shim
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Asks, and gives the number. Where a session is one turn, it is asked for right before that.
    fn send(&mut self, what: &str, with: Value) -> u64 {
        if self.hello["perTurn"] == true && what == "turn" {
            if self.is_on {
                self.ask("stop", json!({}));
            }
            self.put("start", self.plugins.clone());
        }
        if what == "turn" || what == "stop" {
            self.is_on = what == "turn";
        }
        self.put(what, with)
    }

    fn put(&mut self, what: &str, with: Value) -> u64 {
        self.asked += 1;
        let mut line = with;
        line["ask"] = self.asked.into();
        line["do"] = what.into();
        self.write(&line);
        self.asked
    }

    /// Takes in lines until this is so.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let line = self.lines.recv_timeout(WITHIN).unwrap();
            match line["outcome"].as_u64() {
                Some(ask) => assert!(self.outcomes.insert(ask, line).is_none(), "a second outcome"),
                None => self.told.push(line),
            }
        }
    }

    fn outcome(&mut self, ask: u64) -> Value {
        self.until(|shim| shim.outcomes.contains_key(&ask));
        self.outcomes[&ask].clone()
    }

    fn ask(&mut self, what: &str, with: Value) -> Value {
        let ask = self.send(what, with);
        self.outcome(ask)
    }

    fn start_with(&mut self, mut with: Value) -> Value {
        with["workspace"] = self.folder.path().join("workspace").display().to_string().into();
        if self.hello["perTurn"] == true {
            // It comes with each turn.
            self.plugins = with;
            return json!({ "done": true });
        }
        self.ask("start", with)
    }

    fn start(&mut self, plugins: &[Value]) {
        let outcome = self.start_with(json!({ "plugins": plugins }));
        assert_eq!(outcome["done"], true, "{outcome}");
    }

    /// A turn that is done: what was shown of the answer.
    fn turn(&mut self, text: &str) -> String {
        let outcome = self.ask("turn", json!({ "text": text }));
        assert_eq!(outcome["done"], true, "{outcome}");
        if self.hello["perTurn"] == true {
            assert_eq!(self.outcomes[&(self.asked - 1)]["done"], true, "it has started before");
        }
        outcome["text"].as_str().unwrap().to_owned()
    }

    /// What has been shown of a kind since this was last asked.
    fn shown(&mut self, kind: &str) -> Vec<Value> {
        let shown = self.told.drain(..).filter(|line| line["shown"]["as"] == kind);
        shown.map(|line| line["shown"].clone()).collect()
    }

    /// Begins a turn, and waits for something to be shown in it.
    fn turn_until(&mut self, text: &str, kind: &str) -> (u64, Value) {
        self.told.clear();
        let ask = self.send("turn", json!({ "text": text }));
        self.until(|shim| shim.told.iter().any(|line| line["shown"]["as"] == kind));
        (ask, self.shown(kind).remove(0))
    }

    /// Ends its input; it must end with 0.
    fn end(mut self) {
        self.input = None;
        self.ends();
    }

    fn ends(&mut self) {
        let until = Instant::now() + WITHIN;
        // The end of its output is the end of it, which blocks nobody.
        while self.lines.recv_timeout(until - Instant::now()).is_ok() {}
        assert!(Instant::now() < until, "it does not end");
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either: killed, the shim could not see to that.
        self.input = None;
        let until = Instant::now() + WITHIN;
        while self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether there is such a process, and not only what is left of one.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn every_mode_takes_turns() {
    for mode in ["acp", "serve", "run"] {
        let Some(mut shim) = Shim::begin(mode) else { return };
        assert_eq!(shim.hello["name"], "reasonix-cli");
        assert_eq!(shim.hello["version"], "1.38.11");
        shim.start(&[plugin("one", &[])]);
        assert_eq!(shim.turn("hello"), "echo hello", "{mode}");
        assert_eq!(shim.shown("text")[0]["text"], "echo hello", "{mode}");

        let blocked = shim.ask("turn", json!({ "text": "a forbidden word" }));
        let says = blocked["blocked"].as_str().unwrap();
        assert!(says.starts_with("Turn blocked by an extension."), "{mode}: {blocked}");
        assert_eq!(says.contains("that word is forbidden"), mode != "acp", "acp does not tell why");
        assert_eq!(shim.shown("warning").len(), 1, "{mode}");

        for tool in ["list", "write"] {
            assert_eq!(shim.turn(tool), "the tool was called", "{mode}");
        }
        let notices = shim.shown("notice");
        assert!(notices.iter().any(|it| it["text"].as_str().unwrap().contains("wrote 4 bytes")), "{mode}");
        let made = fs::read_to_string(shim.folder.path().join("workspace/made.txt")).unwrap();
        assert_eq!(made, "made", "{mode}");

        assert_eq!(shim.turn("card"), "echo card", "a surface is no part of the answer");
        let card = shim.shown("surface").remove(0);
        assert_eq!(card["text"], "A card\nits *text*", "{mode}");
        assert_eq!(
            (&card["plugin"], &card["surface"], &card["kind"]),
            (&json!("one"), &json!("s-card"), &json!("card"))
        );

        // More than the protocol carries in a frame of an intercept.
        let large = format!("{} echo", "x ".repeat(40_000));
        assert_eq!(shim.turn(&large), format!("echo {large}"), "{mode}");

        assert_eq!(shim.turn("hello"), "echo hello", "{mode}");
        assert_eq!(shim.ask("stop", json!({}))["done"], true, "{mode}");
        let stored = shim.told.iter().filter(|line| line["found"]["in"] == "session");
        let stored: Vec<&str> = stored.map(|line| line["found"]["text"].as_str().unwrap()).collect();
        assert!(stored.iter().any(|text| text.contains("echo hello")), "{mode}: {stored:?}");
        shim.end();
    }
}

#[test]
fn a_session_after_another_knows_nothing_of_it() {
    let Some(mut shim) = Shim::begin("acp") else { return };
    shim.start(&[plugin("one", &[])]);
    assert_eq!(shim.start_with(json!({ "plugins": [] }))["refused"], "a session is there already");
    assert_eq!(shim.ask("models", json!({}))["models"], json!(["plugin/one/sample/echo"]));
    shim.ask("stop", json!({}));
    assert_eq!(shim.ask("stop", json!({}))["refused"], "there is no session");
    shim.start(&[plugin("two", &[])]);
    assert_eq!(shim.ask("models", json!({}))["models"], json!(["plugin/two/sample/echo"]));
    assert_eq!(shim.turn("generation"), "1");
    shim.end();
}

#[test]
fn what_does_not_start_is_told() {
    for mode in ["acp", "serve", "run"] {
        let Some(mut shim) = Shim::begin(mode) else { return };
        let mut outcome = shim.start_with(json!({ "plugins": [plugin("one", &["refuses"])] }));
        if mode == "run" {
            let turn = shim.send("turn", json!({ "text": "hello" }));
            outcome = shim.outcome(turn - 1);
            assert_eq!(shim.outcome(turn)["failed"], outcome["failed"]);
            shim.ask("stop", json!({}));
        }
        let says = outcome["failed"].as_str().unwrap().to_owned();
        assert!(says.contains(r#"required extension runtime "one" failed to start"#), "{mode}: {says}");
        assert!(says.contains("this guest speaks no version"), "{mode}: {says}");
        let found = json!({ "found": { "in": "diagnostics", "text": says } });
        assert!(shim.told.contains(&found), "{mode}");
        // There is none now, and another may begin.
        shim.start(&[plugin("one", &[])]);
        shim.end();
    }
}

#[test]
fn only_what_is_installed_and_enabled_starts() {
    let Some(mut shim) = Shim::begin("acp") else { return };
    let (mut off, mut declared, mut optional) =
        (plugin("off", &["refuses"]), plugin("declared", &["refuses"]), plugin("optional", &["refuses"]));
    off["enabled"] = false.into();
    declared["declared"] = "project".into();
    shim.start(&[off.clone(), declared, plugin("one", &[])]);
    assert_eq!(shim.turn("hello"), "echo hello");
    shim.ask("stop", json!({}));

    optional["manifest"]["runtime"]["required"] = false.into();
    shim.start(&[plugin("one", &[]), optional]);
    let warning = shim.shown("warning").remove(0);
    assert_eq!(warning["plugin"], "optional");
    assert!(warning["text"].as_str().unwrap().contains("this guest speaks no version"), "{warning}");
    shim.ask("stop", json!({}));

    // Without any model of a plugin a session begins all the same.
    shim.start(&[off]);
    assert_eq!(shim.ask("models", json!({}))["models"], json!(["none/none"]));
    shim.end();
}

#[test]
fn an_editor_answers_prompts() {
    let Some(mut shim) = Shim::begin("acp") else { return };
    shim.start(&[plugin("one", &[])]);
    let answers = [
        ("confirm", json!({ "value": true }), r#""values": {"value": true}"#),
        ("select", json!({ "colour": "blue" }), r#""values": {"colour": "blue"}"#),
        ("multiselect", json!({ "many": ["y"] }), r#""values": {"many": ["y"]}"#),
    ];
    for (kind, values, told) in answers {
        let (turn, prompt) = shim.turn_until(kind, "prompt");
        assert_eq!(prompt["kind"], kind);
        let answer = json!({ "prompt": prompt["prompt"], "values": values });
        assert_eq!(shim.ask("answer", answer.clone())["done"], true);
        let outcome = shim.outcome(turn);
        assert!(outcome["text"].as_str().unwrap().contains(told), "{outcome}");
        assert!(shim.ask("answer", answer)["refused"].is_string(), "it was answered");
    }
    // Two fields are two questions to an editor.
    let (turn, first) = shim.turn_until("two", "prompt");
    shim.ask("answer", json!({ "prompt": first["prompt"], "values": { "colour": "red" } }));
    shim.until(|shim| shim.told.iter().any(|line| line["shown"]["as"] == "prompt"));
    let second = shim.shown("prompt").remove(0);
    shim.ask("answer", json!({ "prompt": second["prompt"], "values": { "sure": false } }));
    assert!(shim.outcome(turn)["text"].as_str().unwrap().contains(r#"{"colour": "red", "sure": false}"#));

    let (turn, prompt) = shim.turn_until("input", "prompt");
    let typed = json!({ "prompt": prompt["prompt"], "values": { "value": "typed" } });
    assert!(shim.ask("answer", typed)["cannot"].as_str().unwrap().contains("no way to type"));
    shim.ask("answer", json!({ "prompt": prompt["prompt"], "cancelled": true }));
    assert_eq!(shim.outcome(turn)["failed"], "context canceled");
    shim.end();
}

#[test]
fn a_server_answers_prompts_and_takes_forms() {
    let Some(mut shim) = Shim::begin("serve") else { return };
    shim.start(&[plugin("one", &[])]);
    let answers = [
        ("two", json!({ "colour": "blue", "sure": false }), r#"{"colour": "blue", "sure": false}"#),
        ("input", json!({ "value": "typed" }), r#"{"value": "typed"}"#),
        ("multiselect", json!({ "many": ["x", "z"] }), r#"{"many": ["x", "z"]}"#),
        ("confirm", json!({ "value": true }), r#"{"value": true}"#),
    ];
    for (word, values, told) in answers {
        let (turn, prompt) = shim.turn_until(word, "prompt");
        assert_eq!(prompt["fields"].as_array().unwrap().len(), values.as_object().unwrap().len());
        let answer = json!({ "prompt": prompt["prompt"], "values": values });
        assert_eq!(shim.ask("answer", answer)["done"], true);
        let outcome = shim.outcome(turn);
        assert!(outcome["text"].as_str().unwrap().contains(told), "{outcome}");
    }
    let (turn, prompt) = shim.turn_until("confirm", "prompt");
    shim.ask("answer", json!({ "prompt": prompt["prompt"], "cancelled": true }));
    assert_eq!(shim.outcome(turn)["failed"], "interrupted");

    shim.turn("form");
    let form = json!({ "plugin": "one", "surface": "s-form", "values": { "colour": "red" } });
    assert_eq!(shim.ask("submit", form)["done"], true);
    assert_eq!(shim.turn("submitted"), r#"{"colour": "red"}"#);
    let nobodys = json!({ "plugin": "two", "surface": "s-form", "values": {} });
    assert!(shim.ask("submit", nobodys)["refused"].is_string());
    shim.end();
}

#[test]
fn plugins_are_started_again() {
    for mode in ["acp", "serve"] {
        let Some(mut shim) = Shim::begin(mode) else { return };
        shim.start(&[plugin("one", &[])]);
        let before = shim.turn("pid");
        assert_eq!(shim.ask("reload", json!({}))["done"], true, "{mode}");
        assert_eq!(shim.turn("generation"), "2", "{mode}");
        assert_ne!(shim.turn("pid"), before, "{mode}");
        assert!(!runs(&before), "{mode}: the old one is gone when the reload is done");

        let (turn, _) = shim.turn_until("hang", "text");
        let reload = shim.send("reload", json!({}));
        if mode == "serve" {
            assert!(shim.outcome(reload)["refused"].is_string(), "it does so only when it is idle");
        }
        assert!(shim.ask("turn", json!({ "text": "hello" }))["refused"].is_string(), "{mode}");
        assert_eq!(shim.ask("cancel", json!({}))["done"], true, "{mode}");
        assert!(shim.outcome(turn)["failed"].is_string(), "{mode}");
        if mode == "acp" {
            assert_eq!(shim.outcome(reload)["done"], true, "it does so when the turn is over");
            assert_eq!(shim.turn("generation"), "3");
        }
        assert_eq!(shim.ask("cancel", json!({}))["refused"], "no turn is running", "{mode}");
        shim.end();
    }
}

#[test]
fn each_mode_does_what_the_others_do_not() {
    let Some(mut shim) = Shim::begin("acp") else { return };
    shim.start(&[plugin("one", &[])]);
    let action = json!({ "plugin": "one", "action": "demo", "args": { "a": "1" } });
    // What a plugin says of its action is what the model is told next.
    assert_eq!(shim.ask("action", action)["text"], r#"echo did {"a": "1"}"#);
    let spaced = json!({ "plugin": "one", "action": "demo", "args": { "a": "1 2" } });
    assert!(shim.ask("action", spaced)["cannot"].is_string());
    assert!(shim.ask("turn", json!({ "text": "effort", "effort": "high" }))["cannot"].is_string());
    assert!(shim.ask("compact", json!({}))["cannot"].as_str().unwrap().contains("acp"));
    let unknown = shim.ask("turn", json!({ "text": "hello", "model": "plugin/none/of/these" }));
    assert!(unknown["failed"].as_str().unwrap().contains("unknown model"), "{unknown}");
    shim.end();

    let Some(mut shim) = Shim::begin("serve") else { return };
    shim.start(&[plugin("one", &[])]);
    let says = shim.ask("compact", json!({}));
    assert!(says["failed"].as_str().unwrap().contains("no foldable region"), "nothing was said yet: {says}");
    shim.turn(&"much to fold ".repeat(500));
    for word in ["compact", "new-session"] {
        assert_eq!(shim.ask(word, json!({}))["done"], true, "{word}");
    }
    assert_eq!(shim.ask("models", json!({}))["models"], json!(["plugin/one/sample/echo"]));
    assert_eq!(shim.turn("hello"), "echo hello");
    shim.end();

    let Some(mut shim) = Shim::begin("run") else { return };
    shim.start(&[plugin("one", &[])]);
    assert_eq!(shim.ask("turn", json!({ "text": "effort", "effort": "high" }))["text"], "high");
    let (turn, _) = shim.turn_until("hang", "text");
    shim.ask("cancel", json!({}));
    assert_eq!(shim.outcome(turn)["failed"], "context canceled");
    let again = shim.put("turn", json!({ "text": "hello" }));
    assert!(shim.outcome(again)["cannot"].as_str().unwrap().contains("another session"));
    // It says only what it does.
    assert_eq!(shim.hello["does"], json!(["start", "stop", "turn", "cancel", "admit", "describe", "signal"]));
    shim.end();
}

#[test]
fn a_command_for_one_turn_starts_with_it() {
    let Some(mut shim) = Shim::begin("run") else { return };
    assert_eq!(shim.hello["perTurn"], true);
    shim.start(&[plugin("one", &[])]);
    let (turn, _) = shim.turn_until("hang", "text");
    assert_eq!(shim.outcome(turn - 1)["done"], true, "it is told while the turn runs");
    assert!(!shim.outcomes.contains_key(&turn));
    assert_eq!(shim.ask("stop", json!({}))["done"], true);
    assert!(shim.outcome(turn)["failed"].is_string());

    let start = shim.put("start", shim.plugins.clone());
    assert_eq!(shim.ask("stop", json!({}))["done"], true);
    assert!(shim.outcome(start)["cannot"].as_str().unwrap().contains("none was asked for"));

    let unknown = shim.send("turn", json!({ "text": "hello", "model": "plugin/none/of/these" }));
    assert!(shim.outcome(unknown)["failed"].as_str().unwrap().contains("unknown model"));
    assert!(shim.outcome(unknown - 1)["cannot"].is_string(), "its plugins did start");
    shim.end();
}

#[test]
fn a_tool_is_refused_where_that_is_asked_for() {
    for mode in ["acp", "serve", "run"] {
        let Some(mut shim) = Shim::begin(mode) else { return };
        let started = shim.start_with(json!({ "plugins": [plugin("one", &[])], "permission": "deny" }));
        assert_eq!(started["done"], true, "{mode}");
        assert_eq!(shim.turn("write"), "the tool was called", "{mode}");
        assert_eq!(shim.shown("error").len(), 1, "{mode}");
        assert!(!shim.folder.path().join("workspace/made.txt").exists(), "{mode}");
        shim.end();
    }
}

#[test]
fn what_is_asked_beside_a_session_goes_on_when_one_starts() {
    let Some(mut shim) = Shim::begin("run") else { return };
    let admit = shim.send("admit", json!({ "plugin": plugin("two", &[]) }));
    shim.start(&[plugin("one", &[])]);
    assert_eq!(shim.turn("hello"), "echo hello");
    assert_eq!(shim.outcome(admit)["done"], true);
    shim.end();
}

#[test]
fn manifests_are_admitted_or_not_and_described() {
    let Some(mut shim) = Shim::begin("acp") else { return };
    // A session is not needed for it.
    assert_eq!(shim.ask("admit", json!({ "plugin": plugin("one", &[]) }))["done"], true);
    let edits = [
        ("/apiVersion", json!("reasonix.io/plugin/v1"), "unsupported apiVersion"),
        ("/runtime/intercepts", json!(["no.such.point"]), "no.such.point"),
        ("/runtime/priority", json!(100_000), "priority"),
    ];
    for (pointer, value, told) in edits {
        let mut bad = plugin("one", &[]);
        *bad["manifest"].pointer_mut(pointer).unwrap() = value;
        let outcome = shim.ask("admit", json!({ "plugin": bad }));
        assert!(outcome["refused"].as_str().is_some_and(|says| says.contains(told)), "{outcome}");
    }
    for (view, told) in [("preview", "FULL TRUST"), ("show", "FULL TRUST"), ("doctor", "ok: one")] {
        let outcome = shim.ask("describe", json!({ "plugin": plugin("one", &[]), "view": view }));
        assert!(outcome["text"].as_str().unwrap().contains(told), "{view}: {outcome}");
    }
    shim.start(&[plugin("one", &[])]);
    let outcome = shim.ask("describe", json!({ "plugin": "one", "view": "show" }));
    assert!(outcome["text"].as_str().unwrap().starts_with("name: one\n"), "{outcome}");
    assert!(shim.ask("describe", json!({ "plugin": "two", "view": "show" }))["refused"].is_string());
    shim.end();
}

#[test]
fn the_home_of_the_user_is_neither_read_nor_written() {
    let Some(cli) = reasonix_cli() else { return };
    for mode in ["acp", "serve", "run"] {
        let decoy = tempfile::tempdir().unwrap();
        let state = decoy.path().join(".reasonix");
        fs::create_dir(&state).unwrap();
        // Whoever reads this fails to start.
        fs::write(state.join("config.toml"), "this is no TOML").unwrap();
        fs::write(state.join("plugin-packages.json"), "this is no JSON").unwrap();
        let before = listing(decoy.path());
        let mut command = Command::new(program());
        command.args(["shim", "reasonix-cli", "--mode", mode, "--"]).arg(&cli);
        command.env("HOME", decoy.path()).env("XDG_CONFIG_HOME", decoy.path()).env("REASONIX_HOME", &state);
        command.env("SECRET_TOKEN", "secret").env("SIDECERT_PROBE_TOKEN", "for the probe");
        let mut shim = Shim::of(command);
        let started =
            shim.start_with(json!({ "plugins": [plugin("one", &[])], "env": { "GIVEN": "given" } }));
        assert_eq!(started["done"], true, "{mode}: {started}");
        let seen: Value = serde_json::from_str(&shim.turn("environment")).unwrap();
        assert!(Path::new(seen["HOME"].as_str().unwrap()).starts_with(shim.folder.path()), "{mode}");
        assert!(Path::new(seen["TMPDIR"].as_str().unwrap()).starts_with(shim.folder.path()), "{mode}");
        assert_eq!(
            (&seen["SIDECERT_PROBE_TOKEN"], &seen["GIVEN"]),
            (&json!("for the probe"), &json!("given"))
        );
        for absent in ["SECRET_TOKEN", "XDG_CONFIG_HOME", "REASONIX_HOME"] {
            assert!(seen.get(absent).is_none(), "{mode}: {absent}");
        }
        shim.ask("admit", json!({ "plugin": plugin("two", &[]) }));
        shim.ask("stop", json!({}));
        shim.end();
        assert_eq!(listing(decoy.path()), before, "{mode}");
    }
}

/// Every file below a folder, with its content.
fn listing(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(listing(&path));
        } else {
            all.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn nothing_survives_the_shim() {
    for (mode, is_signalled) in [("acp", false), ("acp", true), ("serve", true), ("run", true)] {
        let Some(mut shim) = Shim::begin(mode) else { return };
        shim.start(&[plugin("one", &[])]);
        // In a session of its own, it is none of what the host ends.
        let child = shim.turn("child");
        assert_eq!(shim.ask("stop", json!({}))["done"], true);
        assert!(runs(&child), "{mode}: what the host leaves behind can be seen until the next session");
        shim.start(&[plugin("one", &[])]);
        if mode == "run" {
            shim.turn("hello");
        }
        assert!(!runs(&child), "{mode}");
        let child = shim.turn("child");
        let guest = shim.turn("pid");
        shim.turn_until("hang", "text");
        if is_signalled {
            let pid = rustix::process::Pid::from_child(&shim.process);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            shim.ends();
        } else {
            shim.end();
        }
        assert!(!runs(&child) && !runs(&guest), "{mode}");
    }
}

#[test]
fn a_signal_ends_the_cli_and_not_the_shim() {
    for mode in ["acp", "serve", "run"] {
        let Some(mut shim) = Shim::begin(mode) else { return };
        for signal in ["TERM", "INT"] {
            shim.start(&[plugin("one", &[])]);
            let (turn, _) = shim.turn_until("hang", "text");
            assert!(shim.ask("signal", json!({ "signal": "HUP" }))["cannot"].is_string(), "{mode}");
            let outcome = shim.ask("signal", json!({ "signal": signal }));
            if (mode, signal) == ("acp", "INT") {
                // An agent of an editor stops its turn, and has to be killed.
                assert!(outcome["failed"].as_str().unwrap().contains("did not end"), "{outcome}");
            } else {
                assert_eq!(outcome["done"], true, "{mode} {signal}: {outcome}");
            }
            assert!(shim.outcome(turn)["failed"].is_string(), "{mode} {signal}");
            assert_eq!(shim.ask("stop", json!({}))["refused"], "there is no session", "{mode} {signal}");
        }
        shim.start(&[plugin("one", &[])]);
        assert_eq!(shim.turn("hello"), "echo hello", "{mode}");
        if mode == "run" {
            let says = shim.ask("signal", json!({ "signal": "TERM" }));
            assert!(says["cannot"].as_str().unwrap().contains("no process of the CLI"), "{says}");
        }
        shim.end();
    }
}

#[test]
fn what_is_no_cli_is_told_in_one_line() {
    for (no_cli, told) in [("/bin/true", "it is no Reasonix CLI"), ("/no/such/program", "No such file")] {
        let mut command = Command::new(program());
        command.args(["shim", "reasonix-cli", "--", no_cli]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let first = json!({ "shim": 1, "suite": "reasonix-v2", "folder": folder.path() });
        // It may have ended before it reads this.
        let _ = writeln!(process.stdin.as_mut().unwrap(), "{first}");
        let output = process.wait_with_output().unwrap();
        let says = support::stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{says}");
        assert!(says.starts_with("sidecert: ") && says.contains(told) && says.lines().count() == 1, "{says}");
        assert!(output.stdout.is_empty());
    }
}
