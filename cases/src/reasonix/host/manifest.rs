//! What a host must look at before it installs a plugin, which of those that are installed it starts, and what it says
//! of them.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Exchange, short};
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::plugin::{Plugin, START};
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::script::{Process, Script, ScriptDef, Setting};
use sidecert_proto::transcript::Told;
use sidecert_proto::verdict::Sight;

use super::super::IN_V1;
use super::lifecycle::{start_as, stop_of};
use super::{
    DONE, FAILED, ONE, PLAIN_TURN, REFUSED, TURN, ask, came_of, never_came, observed, outcome,
    session as begin, specified, stop, turn,
};

const INTERCEPTION: Cite = Cite::Seed("拦截", "Interception");
const SECURITY: Cite = Cite::Seed("安全模型", "Security model");

const WEIGHED: Seen = Seen("that what is wrong is not taken, and what is right is");
const NO_PROCESS: Seen = Seen("no process of it");
const IN_ORDER: Seen = Seen("the order -1, none, 1");
const WARNED: Seen = Seen("FULL TRUST");
const UNASKED: Seen = Seen("a start that asks the user nothing");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-manifest/command-demanded", Host)
        .says("A runtime has a command that is not blank.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| weighed(x, &["no-command", "blank-command"], &["plain"]))),
    must("reasonix/host-manifest/priority-in-range", Host)
        .says("A priority is from -1000 to 1000.", &[INTERCEPTION])
        .accepts(&[specified(WEIGHED)])
        .checked(After(&ADMITS, |x| {
            weighed(x, &["priority-below", "priority-above"], &["priority-least", "priority-most", "plain"])
        })),
    must("reasonix/host-manifest/timeout-not-negative", Host)
        .says("A time limit is not negative, and may be longer than the ceiling.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| weighed(x, &["timeout-negative"], &["timeout-long"]))),
    must("reasonix/host-manifest/points-known", Host)
        .says("A runtime intercepts points that there are.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| weighed(x, &["point-misspelled"], &["point"]))),
    must("reasonix/host-manifest/slots-known", Host)
        .says("A runtime replaces slots that there are.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| {
            weighed(x, &["slot-misspelled", "slot-of-no-tool"], &["slot", "slot-of-a-tool"])
        })),
    must("reasonix/host-manifest/capabilities-known", Host)
        .says("A runtime has capabilities that there are.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| weighed(x, &["capability-unknown"], &["plain"]))),
    must("reasonix/host-manifest/members-known", Host)
        .says("A runtime has no members but those that are known.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| weighed(x, &["member-unknown"], &["plain"]))),
    must("reasonix/host-manifest/api-version-known", Host)
        .says("A manifest is of this version of plugins.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| {
            weighed(x, &["version-next", "version-zero", "version-junk"], &["plain"])
        })),
    must("reasonix/host-manifest/minor-version-taken", Host)
        .says("A minor version of the first version is the first version.", &[])
        .only(IN_V1)
        .accepts(&[observed(DONE)])
        .checked(After(&ADMITS, |x| came_of(x, "version-minor"))),
    must("reasonix/host-manifest/args-and-env-filled", Host)
        .says("No argument is blank, and no variable is without a name.", &[])
        .accepts(&[observed(WEIGHED)])
        .checked(After(&ADMITS, |x| weighed(x, &["args-blank", "env-nameless"], &["plain"]))),
    must("reasonix/host-manifest/disabled-not-started", Host)
        .says("A plugin that is installed and not enabled is not started.", &[SECURITY])
        .accepts(&[specified(NO_PROCESS)])
        .checked(After(&INACTIVE, |x| no_process(x, "off"))),
    must("reasonix/host-manifest/project-not-started", Host)
        .says("A plugin that only a project names is not started.", &[SECURITY])
        .accepts(&[specified(NO_PROCESS)])
        .checked(After(&INACTIVE, |x| no_process(x, "named"))),
    must("reasonix/host-manifest/nothing-without-runtime", Host)
        .says("A plugin without a runtime has no process.", &[SECURITY])
        .accepts(&[specified(NO_PROCESS)])
        .checked(After(&INACTIVE, |x| no_process(x, "bare"))),
    must("reasonix/host-manifest/unversioned-not-started", Host)
        .says("A plugin whose manifest names no version is of a kind that has no process.", &[])
        .accepts(&[observed(NO_PROCESS)])
        .checked(After(&UNVERSIONED, |x| {
            match (came_of(x, "unversioned"), x.launches("unversioned").is_empty()) {
                (Sight::Saw(_, at), true) => Sight::Saw(NO_PROCESS, at),
                (Sight::Saw(_, at), false) => Sight::SawOther { at, actual: "it was started".to_owned() },
                (other, _) => other,
            }
        })),
    must("reasonix/host-manifest/priority-zero-by-default", Host)
        .says("A plugin that says nothing of its priority has the priority 0.", &[INTERCEPTION])
        .accepts(&[specified(IN_ORDER)])
        .checked(After(&ORDER, in_order)),
    must("reasonix/host-manifest/trust-in-preview", Host)
        .says("Before a plugin with a runtime is installed, its full trust is shown.", &[SECURITY])
        .accepts(&[specified(WARNED)])
        .checked(After(&PREVIEW, |x| warned(x, &["preview"]))),
    must("reasonix/host-manifest/trust-in-details", Host)
        .says(
            "The details of a plugin with a runtime, and its diagnostics, show its full trust.",
            &[SECURITY],
        )
        .accepts(&[specified(WARNED)])
        .checked(After(&DETAILS, |x| warned(x, &["show", "doctor"]))),
    must("reasonix/host-manifest/installed-is-allowed", Host)
        .says("What is installed and enabled is started, and nobody is asked again.", &[SECURITY])
        .accepts(&[specified(UNASKED)])
        .checked(After(&PLAIN_TURN, unasked)),
];

// ---- scripts ----

/// What makes a plugin another than it usually is.
type Change = Box<dyn Fn(Plugin) -> Plugin>;

/// Installs `plugin`, or tries to start it where the driver does not install.
fn tries(script: Script, setting: &Setting<'_>, name: &str, plugin: &Plugin) -> Script {
    let does = |word: &str| setting.declared.contains(&format!("does/{word}"));
    if does("start") && !does("admit") {
        let start = start_as(setting, name, std::slice::from_ref(plugin));
        return stop_of(script.step(start).step(outcome(name)), name);
    }
    script.step(ask(name, &format!(r#"{{"do":"admit","plugin":{}}}"#, plugin.json()))).step(outcome(name))
}

static ADMITS: ScriptDef = ScriptDef {
    name: "manifests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let major = setting.contract.major;
        let of_version =
            |version: String| move |it: Plugin| it.manifest("apiVersion", &format!(r#""{version}""#));
        let with = |member: &'static str, json: &'static str| move |it: Plugin| it.with(member, json);
        let versions = |text: String| format!("reasonix.io/plugin/{text}");
        let all: [(&str, Change); 24] = [
            ("plain", Box::new(|it| it)),
            ("no-command", Box::new(|it: Plugin| it.without("command"))),
            ("blank-command", Box::new(with("command", r#"" ""#))),
            ("priority-below", Box::new(with("priority", "-1001"))),
            ("priority-above", Box::new(with("priority", "1001"))),
            ("priority-least", Box::new(with("priority", "-1000"))),
            ("priority-most", Box::new(with("priority", "1000"))),
            ("timeout-negative", Box::new(with("timeoutMillis", "-1"))),
            ("timeout-long", Box::new(with("timeoutMillis", "90000"))),
            ("point-misspelled", Box::new(with("intercepts", r#"["input.recieve"]"#))),
            ("point", Box::new(with("intercepts", r#"["input.receive"]"#))),
            ("slot-misspelled", Box::new(with("replaces", r#"["systemprompt"]"#))),
            ("slot-of-no-tool", Box::new(with("replaces", r#"["tool:"]"#))),
            ("slot", Box::new(with("replaces", r#"["system_prompt"]"#))),
            ("slot-of-a-tool", Box::new(with("replaces", r#"["tool:ls"]"#))),
            ("capability-unknown", Box::new(with("capabilities", r#"["filesystem"]"#))),
            ("member-unknown", Box::new(with("intrcepts", "[]"))),
            ("version-next", Box::new(of_version(versions(format!("v{}", major + 1))))),
            ("version-zero", Box::new(of_version(versions("v0".to_owned())))),
            ("version-junk", Box::new(of_version("sidecert".to_owned()))),
            ("version-minor", Box::new(of_version(versions(format!("v{major}.3"))))),
            ("args-blank", Box::new(with("args", r#"[""]"#))),
            ("env-nameless", Box::new(with("env", r#"{"":"x"}"#))),
            ("plain-again", Box::new(|it| it)),
        ];
        all.iter().fold(Script::new("manifests"), |script, (name, change)| {
            tries(script, setting, name, &change(Plugin::new(setting, name)))
        })
    },
};

static INACTIVE: ScriptDef = ScriptDef {
    name: "plugins-that-are-not-started",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugins = [
            Plugin::new(setting, ONE),
            Plugin::new(setting, "off").disabled(),
            Plugin::new(setting, "named").of_the_project(),
            Plugin::new(setting, "bare").without_runtime(),
        ];
        stop(turn(begin("plugins-that-are-not-started", setting, &plugins), TURN, "Hello"))
    },
};

static UNVERSIONED: ScriptDef = ScriptDef {
    name: "manifest-without-a-version",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, "unversioned").manifest_without("apiVersion");
        let start = start_as(setting, "unversioned", &[plugin]);
        let script = Script::new("manifest-without-a-version").step(start);
        stop_of(script.step(outcome("unversioned")), "unversioned")
    },
};

static ORDER: ScriptDef = ScriptDef {
    name: "priority-of-none",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let listens = |name: &str| Plugin::new(setting, name).intercepts(&["input.receive"]);
        // By their names they would be asked in the other order.
        let plugins =
            [listens(ONE).with("priority", "1"), listens("three").with("priority", "-1"), listens("two")];
        stop(turn(begin("priority-of-none", setting, &plugins), TURN, "Hello"))
    },
};

static PREVIEW: ScriptDef = ScriptDef {
    name: "preview",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE).json();
        let script = Script::new("preview");
        script
            .step(ask("preview", &format!(r#"{{"do":"describe","view":"preview","plugin":{plugin}}}"#)))
            .step(outcome("preview"))
    },
};

static DETAILS: ScriptDef = ScriptDef {
    name: "details",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let script = begin("details", setting, &[Plugin::new(setting, ONE)]);
        let describe = |script: Script, view: &str| {
            let what = format!(r#"{{"do":"describe","view":"{view}","plugin":"{ONE}"}}"#);
            script.step(ask(view, &what)).step(outcome(view))
        };
        stop(describe(describe(script, "show"), "doctor"))
    },
};

// ---- sights ----

/// Whether none of `wrong` was taken, and each of `right` was.
fn weighed(x: &Exchange<'_>, wrong: &[&str], right: &[&str]) -> Sight {
    let mut last = 0;
    for (name, taken) in wrong.iter().map(|name| (name, false)).chain(right.iter().map(|name| (name, true))) {
        match came_of(x, name) {
            Sight::Saw(DONE, at) if taken => last = at,
            Sight::Saw(REFUSED | FAILED, at) if !taken => last = at,
            Sight::Saw(seen, at) => return Sight::SawOther { at, actual: format!("{name}: {}", seen.0) },
            other => return other,
        }
    }
    Sight::Saw(WEIGHED, last)
}

fn no_process(x: &Exchange<'_>, name: &str) -> Sight {
    let Some((over, _)) = x.outcome(TURN).filter(|_| !x.launches(ONE).is_empty()) else {
        return never_came(x, TURN);
    };
    let links = x.launches(name);
    let launched = x.told(Told::Launched).find(|(entry, _)| links.contains(&entry.event.link));
    match launched {
        Some((entry, _)) => Sight::SawOther { at: entry.at, actual: "a process of it".to_owned() },
        None => Sight::Saw(NO_PROCESS, over),
    }
}

fn in_order(x: &Exchange<'_>) -> Sight {
    let asked = x.asked(contract::INTERCEPT).filter(|(_, params)| {
        let event = params.and_then(|params| params.get("event")?.as_str());
        event.as_deref() == Some("input.receive")
    });
    let name_of = |link| ["three", "two", ONE].into_iter().find(|name| x.launches(name).contains(&link));
    let names: Vec<_> = asked.filter_map(|(entry, _)| name_of(entry.event.link)).collect();
    match (x.outcome(TURN), names.as_slice()) {
        (Some((at, _)), ["three", "two", ONE]) => Sight::Saw(IN_ORDER, at),
        (Some((at, _)), [_, _, _]) => {
            let priority = |name: &&str| {
                ["1", "-1", "none"][usize::from(**name != *ONE) * (1 + usize::from(**name == *"two"))]
            };
            let order = names.iter().map(priority).collect::<Vec<_>>().join(", ");
            Sight::SawOther { at, actual: format!("the order {order}") }
        }
        _ => never_came(x, TURN),
    }
}

fn warned(x: &Exchange<'_>, views: &[&str]) -> Sight {
    let mut last = 0;
    for view in views {
        let Some((at, outcome)) = x.outcome(view) else { return never_came(x, view) };
        if x.outcome(START).is_some_and(|(_, begun)| begun.get("done").is_none()) {
            return never_came(x, "a session");
        }
        let text = outcome.get("text").and_then(|text| text.as_str());
        match text {
            Some(text) if text.to_ascii_uppercase().contains(WARNED.0) => last = at,
            Some(text) => return Sight::SawOther { at, actual: format!("{view}: {}", short(&text)) },
            None => {
                return Sight::SawOther {
                    at,
                    actual: format!("{view}: the outcome {}", short(outcome.raw())),
                };
            }
        }
    }
    Sight::Saw(WARNED, last)
}

fn unasked(x: &Exchange<'_>) -> Sight {
    let Sight::Saw(DONE, begun) = came_of(x, START) else { return never_came(x, "a session") };
    let prompt = x.told(Told::Shown).find(|(entry, root)| {
        let kind = root.pointer("/as").and_then(|it| it.as_str());
        entry.at < begun && kind.as_deref() == Some("prompt")
    });
    match prompt {
        Some((entry, _)) => Sight::SawOther { at: entry.at, actual: "a prompt".to_owned() },
        None => Sight::Saw(UNASKED, begun),
    }
}
