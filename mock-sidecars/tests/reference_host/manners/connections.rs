//! Decisions about processes and what they write: handshakes, lines, ends and manifests.

use serde_json::json;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::reasonix::contract as names;

use super::{Cast, differ, does, seen, stage, starts, turn};
use crate::stage::{Act, Puppet, Stage, after, answer, end, error, everything, plugin, say, v1, v2, words};

fn handshakes(manners: &Manners) -> String {
    let mut all = String::new();
    let greetings = [
        json!({}),
        json!({"protocolVersion": "2"}),
        json!({"protocolVersion": "02"}),
        json!({"providers": [{"ref": "plugin/one/p/m"}]}),
        json!({"subscriptions": ["tool.after"]}),
        json!({"replaces": ["permission"]}),
        json!({"providers": [{"ref": "plugin/other/p/m"}]}),
        json!({"providers": [{"ref": "plugin/one/p/other"}]}),
        json!({"extra": 1}),
        json!({"name": " "}),
    ];
    for greeting in greetings {
        for capabilities in [json!(["providers", "ui"]), json!([])] {
            let mut stage = Stage::new(v2(), manners.clone());
            stage.checks = false;
            let greeting = greeting.clone();
            stage.casts("one", move || Puppet::new().greets(greeting.clone()));
            let provides = json!([{"kind": "provider", "namespace": "p", "id": "m"}]);
            let block =
                json!({"intercepts": ["tool.before"], "capabilities": capabilities, "provides": provides});
            let entry = plugin(v2(), "one", &block);
            does(&mut stage, json!({"do": "start", "workspace": "/", "plugins": [entry]}));
            seen(&stage, &mut all);
        }
    }
    let early = [
        Act::Say("garbage".to_owned()),
        Act::Say(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned()),
        say(&json!({"method": "x"})),
    ];
    for act in early {
        let mut stage = stage(manners);
        stage.casts("one", move || Puppet::new().first(vec![act.clone()]));
        starts(&mut stage, &[("one", json!({})), ("two", json!({}))]);
        seen(&stage, &mut all);
    }
    let mut foreign = stage(manners);
    foreign.casts("one", || Puppet::new().with_models(&["plugin/other/p/m"]));
    starts(&mut foreign, &[("one", json!({"capabilities": ["providers"]}))]);
    seen(&foreign, &mut all);
    for (required, retryable) in [(true, false), (true, true), (false, false)] {
        let mut stage = stage(manners);
        for name in ["a", "b"] {
            let data = json!({"reason": "unsupported_version", "retryable": retryable});
            let body = json!({"code": -32000, "message": "no sk-abcdefghijkl1234", "data": data});
            stage.casts(name, move || {
                let body = body.clone();
                Puppet::new().on(names::INITIALIZE, move |frame| Some(error(frame, &body)))
            });
        }
        for name in ["c", "d", "e"] {
            stage.casts(name, || Puppet::new().on(names::INITIALIZE, |_| Some(Vec::new())));
        }
        let block = |name: &str| json!({"required": required && name == "a"});
        let plugins = ["good", "a", "b", "c", "d", "e"].map(|name| (name, block(name)));
        starts(&mut stage, &plugins);
        seen(&stage, &mut all);
    }
    all
}

#[test]
fn handshakes_differ() {
    differ(
        handshakes,
        flaws![
            starts.parallel = 1,
            starts.budget = 1_000_000,
            starts.fills_lists = false,
            starts.lists_bind = false,
            starts.mirrors_manifest = false,
            starts.garbage_poisons = false,
            starts.responses_poison = false,
            starts.traffic_poisons = false,
            starts.checks_version = false,
            starts.lenient_version = true,
            starts.checks_subscriptions = false,
            starts.checks_replaces = false,
            starts.checks_capabilities = false,
            starts.checks_namespace = false,
            starts.initialized_unchecked = true,
            starts.says_initialized = false,
            starts.shuts_down_failed = true,
            starts.kills_failed = false,
            starts.keeps_reasons = false,
            starts.required_fails = false,
            starts.optional_fails = true,
            starts.ends_others = false,
            frames.takes_bad_results = true,
            frames.beyond_schema = false,
            frames.checks_retryable = false,
            redacts.errors = false,
            redacts.rules = 0,
        ],
    );
}

fn lines(manners: &Manners) -> String {
    let mut all = String::new();
    let read = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"host/content/read","params":{{"contentRef":"x","offset":0}}}}"#
        )
    };
    let lines = [
        read("\"a\""),
        read("null"),
        read("1"),
        "   ".to_owned(),
        format!("  {}", read("2")),
        "hello".to_owned(),
        format!("[{}]", read("3")),
        read("4").replace("2.0", "1.0"),
        read("5").replace("offset\":0", "offset\":0.0"),
        read("6").replace("offset\":0", "offset\":-1"),
        r#"{"jsonrpc":"2.0","id":7,"method":"host/content/read","params":[]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":8,"method":"host/content/read"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9,"method":"host/zzz"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"zzz"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"host/content/read","params":{"contentRef":"x","offset":0}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":10,"result":1,"error":null}"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":11,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(60),
            "]".repeat(60)
        ),
    ];
    let mut one = stage(manners);
    starts(&mut one, &[("one", json!({"capabilities": ["ui"]}))]);
    let link = one.link("one");
    for line in lines {
        one.act(link, Act::Bytes(format!("{line}\n").into_bytes()));
        one.wait(1);
    }
    one.act(link, Act::Stderr(format!("{}\n", read("20"))));
    for id in 100..105 {
        let params = json!({"sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "confirm", "payload": {"fields": []}});
        one.act(link, say(&json!({"id": id, "method": names::UI_REQUEST, "params": params})));
    }
    one.wait(10);
    one.act(link, Act::Bytes(read("30").into_bytes()));
    one.wait(1);
    one.act(link, Act::CloseOutput);
    one.wait(10_000);
    seen(&one, &mut all);
    for bytes in [vec![b' '; 39_999], vec![b' '; 40_001]] {
        let mut stage = stage(manners);
        stage.casts("one", || {
            Puppet::new().with_actions(&["demo"]).on(names::UI_ACTION, |_| Some(Vec::new()))
        });
        starts(&mut stage, &[("one", json!({"capabilities": ["ui"]}))]);
        stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
        stage.wait(1);
        let link = stage.link("one");
        stage.act(link, Act::Bytes(bytes));
        stage.wait(100_000);
        seen(&stage, &mut all);
    }
    all
}

#[test]
fn lines_differ() {
    differ(
        lines,
        flaws![
            frames.error_action = false,
            frames.string_ids = true,
            frames.null_ids = true,
            frames.array_params_pass = true,
            frames.answers_malformed_responses = true,
            frames.answers_notifications = true,
            frames.serves_without_id = true,
            frames.serves_unknown = true,
            frames.serves_batches = true,
            frames.malformed_ends = true,
            frames.answers_malformed = false,
            frames.oversize_ends = false,
            frames.names_oversize = false,
            frames.limit_hundredths = 99,
            frames.served_at_once = 2,
            frames.ids_as_text = true,
            frames.serves_bad_params = true,
            frames.trims = false,
            frames.answers_blank = true,
            frames.takes_unended = false,
            frames.depth_max = 50,
            frames.reads_stderr = true,
            frames.lenient_envelopes = true,
            frames.beyond_schema = false,
            content.names_expired = false,
        ],
    );
}

fn lives(manners: &Manners) -> String {
    let mut all = String::new();
    let casts: [Cast; 3] = [
        || Puppet::new().on(names::SHUTDOWN, |_| Some(Vec::new())),
        || Puppet::new().staying(),
        || {
            Puppet::new().on(names::SHUTDOWN, |it| {
                let read = say(&json!({"id": 1, "method": names::CONTENT_READ, "params": {"contentRef": "x", "offset": 0}}));
                Some([vec![read], answer(it, &json!({"accepted": true}))].concat())
            })
        },
    ];
    for cast in casts {
        let mut stage = stage(manners);
        stage.casts("one", cast);
        let signals = ["TERM", "INT"].map(|signal| json!({"do": "signal", "signal": signal}));
        for ask in std::iter::once(json!({"do": "stop"})).chain(signals) {
            starts(&mut stage, &[("one", json!({}))]);
            does(&mut stage, ask);
        }
        seen(&stage, &mut all);
    }
    for act in [Act::Exit(1), Act::CloseOutput] {
        let mut stage = stage(manners);
        stage.casts("one", || {
            let text = format!("A token=abcdef {} Z token=abcdef", "x ".repeat(10_000));
            Puppet::new()
                .with_actions(&["demo"])
                .on(names::UI_ACTION, |_| Some(Vec::new()))
                .with_models(&["plugin/one/p/m"])
                .streaming(|it| [words(it, 1, "a"), end(it, 1)].map(|it| after(500, it)).to_vec())
                .first(vec![Act::Stderr(text)])
        });
        starts(&mut stage, &[("one", everything(v1()))]);
        stage.ask(json!({"do": "turn", "text": "hi"}));
        stage.wait(100);
        does(&mut stage, json!({"do": "reload"}));
        stage.ask(json!({"do": "turn", "text": "hi"}));
        stage.wait(100);
        stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
        stage.wait(1);
        let link = stage.link("one");
        stage.act(link, act);
        stage.wait(400_000);
        turn(&mut stage);
        does(&mut stage, json!({"do": "reload"}));
        turn(&mut stage);
        does(&mut stage, json!({"do": "stop"}));
        seen(&stage, &mut all);
    }
    let mut stage = stage(manners);
    let block = json!({"intercepts": ["session.rotate"], "timeoutMillis": 10});
    starts(&mut stage, &[("one", block)]);
    stage.reads(false);
    for _ in 0..20 {
        stage.ask(json!({"do": "new-session"}));
        stage.wait(100);
    }
    stage.wait(11_000);
    stage.reads(true);
    stage.wait(1_000);
    seen(&stage, &mut all);
    all
}

#[test]
fn lives_differ() {
    differ(
        lives,
        flaws![
            ends.asks = false,
            ends.timeout_millis = 1_000,
            ends.keeps_time = false,
            ends.closes_input = false,
            ends.closes_first = true,
            ends.grace = 0,
            ends.kills = false,
            ends.reports_timeout = false,
            ends.refuses_requests = false,
            ends.crash_fails_calls = false,
            ends.fails_fast = false,
            ends.restarts = true,
            ends.reports_crash_once = false,
            ends.kills_crashed = false,
            ends.write_stall = 60_000_000,
            ends.in_order_when_terminated = false,
            ends.in_order_when_interrupted = false,
            ends.reload_needs_idle = false,
            ends.reload_counts = false,
            ends.reload_revives = false,
            hooks.events_queued = 2,
            redacts.stderr = false,
            redacts.log = false,
            redacts.tail_bytes = 100,
            redacts.keeps_end = false,
        ],
    );
}

fn installs(manners: &Manners) -> String {
    let mut all = String::new();
    let mut disabled = plugin(v1(), "off", &json!({}));
    disabled["enabled"] = false.into();
    let mut project = plugin(v1(), "named", &json!({}));
    project["declared"] = "project".into();
    let command = json!({"command": "${REASONIX_PLUGIN_ROOT}/bin", "args": ["a b"], "env": {"REASONIX_PLUGIN_VERSION": "other"}});
    let good = plugin(v1(), "good", &command);
    let shell = plugin(v1(), "shell", &json!({"command": "/bin/sh"}));
    let odd = plugin(v1(), "odd", &json!({"priority": 5_000}));
    let (one, two) = (
        plugin(v1(), "one", &json!({"replaces": ["context"]})),
        plugin(v1(), "two", &json!({"replaces": ["context"]})),
    );
    for plugins in [vec![disabled, project, good.clone(), shell], vec![odd], vec![one, two]] {
        let mut stage = stage(manners);
        does(&mut stage, json!({"do": "start", "workspace": "/", "plugins": plugins}));
        does(&mut stage, json!({"do": "describe", "plugin": good, "view": "show"}));
        seen(&stage, &mut all);
    }
    all
}

#[test]
fn installs_differ() {
    differ(
        installs,
        flaws![
            plugins.checks_manifests = false,
            plugins.enabled_only = false,
            plugins.installed_only = false,
            plugins.one_owner = false,
            plugins.checks_commands = false,
            plugins.expands_root = false,
            plugins.identity_prevails = false,
            plugins.keeps_args = false,
            plugins.shows_trust = false,
        ],
    );
}
