//! Which plugins are installed and started, and how.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;

use crate::stage::{Stage, plugin, stage, v1, v2};

fn admits(stage: &mut Stage<'_>, entry: &Value) -> Result<(), String> {
    let outcome = stage.does(json!({"do": "admit", "plugin": entry}));
    if outcome["done"] == true { Ok(()) } else { Err(outcome["refused"].as_str().unwrap().to_owned()) }
}

#[test]
fn runtime_blocks() {
    let mut stage = stage();
    let cases = [
        (json!({}), None),
        (json!({"command": ""}), Some("command")),
        (json!({"command": 1}), Some("command")),
        (json!({"args": ["a", "b"], "env": {"A": ""}, "required": true}), None),
        (json!({"args": [""]}), Some("args")),
        (json!({"args": "a"}), Some("args")),
        (json!({"env": {"": "x"}}), Some("env")),
        (json!({"env": {"A": 1}}), Some("env")),
        (json!({"required": 1}), Some("required")),
        (json!({"priority": -1000}), None),
        (json!({"priority": 1000}), None),
        (json!({"priority": -1001}), Some("priority")),
        (json!({"priority": 1001}), Some("priority")),
        (json!({"timeoutMillis": 90000}), None),
        (json!({"timeoutMillis": -1}), Some("timeoutMillis")),
        (json!({"intercepts": ["input.recieve"]}), Some("input.recieve")),
        (json!({"capabilities": ["filesystem"]}), Some("filesystem")),
        (json!({"capabilities": "ui"}), Some("capabilities")),
        (json!({"intrcepts": []}), Some("intrcepts")),
        (json!({"provides": []}), Some("provides")),
    ];
    for (block, says) in cases {
        let outcome = admits(&mut stage, &plugin(v1(), "one", &block));
        match (&outcome, says) {
            (Ok(()), None) => {}
            (Err(told), Some(says)) => assert!(told.contains(says), "{told}"),
            _ => panic!("{block}: {outcome:?}"),
        }
    }
    let slots = [
        ("system_prompt", true),
        ("context", true),
        ("provider_request", true),
        ("provider_response", true),
        ("compaction", true),
        ("session_policy", true),
        ("permission", true),
        ("frontend_events", true),
        ("tool:ls", true),
        ("provider:a/b", true),
        ("provider:plugin/p/a/b", true),
        ("systemprompt", false),
        ("tool:", false),
        ("tool:a b", false),
        ("tool:a\tb", false),
        ("provider:x", false),
        ("provider:a/b/c", false),
        ("provider:a/b/c/d", false),
        ("provider:/b", false),
        ("model", false),
    ];
    for (slot, good) in slots {
        let outcome = admits(&mut stage, &plugin(v1(), "one", &json!({"replaces": [slot]})));
        assert_eq!(outcome.is_ok(), good, "{slot}");
    }
}

#[test]
fn manifests_name_their_version_exactly() {
    for (contract, versions) in [
        (
            v1(),
            [
                ("v1", true),
                ("v1.3", true),
                ("v2", false),
                ("v0", false),
                ("v1.", false),
                ("v10", false),
                ("junk", false),
            ],
        ),
        (
            v2(),
            [
                ("v2", true),
                ("v2.1", false),
                ("v1", false),
                ("v3", false),
                ("v1.3", false),
                ("v20", false),
                ("", false),
            ],
        ),
    ] {
        let mut stage = Stage::new(contract, Manners::default());
        for (version, good) in versions {
            let mut entry = plugin(contract, "one", &json!({}));
            entry["manifest"]["apiVersion"] = format!("reasonix.io/plugin/{version}").into();
            assert_eq!(admits(&mut stage, &entry).is_ok(), good, "{version}");
        }
    }
    let mut stage = stage();
    let mut entry = plugin(v1(), "one", &json!({}));
    entry["manifest"].as_object_mut().unwrap().remove("apiVersion");
    assert_eq!(admits(&mut stage, &entry), Ok(()), "a plugin of old");
    stage.does(json!({"do": "start", "workspace": "/", "plugins": [entry]}));
    assert!(stage.launched.is_empty(), "has no runtime");
    for name in ["", "-x", "a b", "a/b", &"x".repeat(65)] {
        assert!(admits(&mut stage, &plugin(v1(), name, &json!({}))).is_err(), "{name}");
    }
}

#[test]
fn only_what_is_installed_and_enabled_starts() {
    let mut stage = stage();
    let mut disabled = plugin(v1(), "off", &json!({}));
    disabled["enabled"] = false.into();
    let mut named = plugin(v1(), "named", &json!({}));
    named["declared"] = "project".into();
    let mut without = plugin(v1(), "without", &json!({}));
    without["manifest"].as_object_mut().unwrap().remove("runtime");
    let good = plugin(v1(), "good", &json!({}));
    let outcome =
        stage.does(json!({"do": "start", "workspace": "/", "plugins": [disabled, named, without, good]}));
    assert_eq!((&outcome["done"], stage.launched.len()), (&json!(true), 1));
    let bad = plugin(v1(), "bad", &json!({"priority": 2000}));
    stage.does(json!({"do": "stop"}));
    assert!(stage.does(json!({"do": "start", "workspace": "/", "plugins": [bad]}))["refused"].is_string());
}

#[test]
fn commands_arguments_and_environments() {
    let mut stage = stage();
    let block = json!({
        "command": "${REASONIX_PLUGIN_ROOT}/bin/guest", "args": ["a;b $HOME", "${REASONIX_PLUGIN_ROOT}"],
        "env": {"REASONIX_PLUGIN_NAME": "other", "MORE": "1"},
    });
    stage.start(&[("one", block)]);
    let launch = &stage.launched[0].1;
    assert_eq!(launch.command, "/host/plugins/one/bin/guest");
    assert_eq!(launch.args, ["a;b $HOME", "${REASONIX_PLUGIN_ROOT}"]);
    let value = |name: &str| launch.env.iter().rfind(|(it, _)| it == name).map(|(_, value)| value.as_str());
    assert_eq!((value("REASONIX_PLUGIN_NAME"), value("MORE")), (Some("one"), Some("1")));
    assert_eq!(
        (value("REASONIX_PLUGIN_ROOT"), value("REASONIX_PLUGIN_VERSION")),
        (Some("/host/plugins/one"), Some("1.0.0"))
    );
    stage.does(json!({"do": "stop"}));
    for (command, says) in [
        ("run.sh", "not absolute"),
        ("/bin/sh", "the shell sh"),
        ("/bin/PWSH.EXE", "the shell pwsh"),
        ("x${REASONIX_PLUGIN_ROOT}", "not absolute"),
    ] {
        let outcome = stage.start(&[("one", json!({"command": command, "required": true}))]);
        assert!(outcome["failed"].as_str().unwrap().contains(says), "{outcome}");
    }
    assert_eq!(stage.launched.len(), 1);
}

#[test]
fn a_plugin_with_code_is_said_to_be_fully_trusted() {
    let mut stage = stage();
    for view in ["preview", "show", "doctor"] {
        let entry = plugin(v1(), "one", &json!({}));
        let text = stage.does(json!({"do": "describe", "plugin": entry, "view": view}))["text"].clone();
        assert!(text.as_str().unwrap().contains("FULL TRUST"), "{text}");
    }
    stage.start(&[("one", json!({}))]);
    let text = stage.does(json!({"do": "describe", "plugin": "one", "view": "show"}))["text"].clone();
    assert!(text.as_str().unwrap().contains("FULL TRUST"));
    assert!(stage.does(json!({"do": "describe", "plugin": "two", "view": "show"}))["refused"].is_string());
}
