//! "Lifecycle", as a host must keep it while a guest begins: the handshake, its checks, and what becomes of one that fails.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Exchange, Said};
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::machine::{LinkId, Order};
use sidecert_proto::reasonix::contract::{self, reason, since_v2};
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::{session, sidecar};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::rpc::{self, Envelope, Id, Outcome};
use sidecert_proto::script::{
    Need, Outgoing, Pattern, Process, Reaction, Reply, SLOW, Script, ScriptDef, Setting, Step, Template,
};
use sidecert_proto::transcript::{Kind, Told, Wait};
use sidecert_proto::verdict::Sight;

use super::super::sights;
use super::super::{IN_V2, KEPT_AS_SPECIFIED};
use super::{
    DONE, FAILED, ONE, PLAIN_TURN, ask, awaits, came_of, guest, never_came, observed, outcome, specified,
    stop,
};

const LIFECYCLE: Cite = Cite::Seed("生命周期", "Lifecycle");
const VERSION: Cite = Cite::Schema("/protocolMajor");
const PROVIDERS: Cite = Cite::Schema("/$defs/ManifestExpectation/properties/providers");
const ACTIONS: Cite = Cite::Schema("/$defs/ManifestExpectation/properties/uiActions");

const NAMED: Seen = Seen("the id and the major version of this protocol");
const MIRRORED: Seen = Seen("the lists of the manifest");
const UNLISTED: Seen = Seen("neither list");
const REGARDLESS: Seen = Seen("the start was done, and the malformed line was refused as no JSON (-32700)");
const NOTHING: Seen = Seen("nothing of it");
const GONE: Seen = Seen("all of it was gone");
const AT_MOST_FOUR: Seen = Seen("at most four at once");
const PASSED_OVER: Seen = Seen("the start was done, and the action could not be invoked");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-lifecycle/initialize-alone-first", Host)
        .says(
            "The first frame is the request to initialize, and nothing follows it before its answer.",
            &[LIFECYCLE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::OPENS_WITH_INITIALIZE, &SLOW_ANSWER)),
    must("reasonix/host-lifecycle/protocol-named", Host)
        .says("Initialize names the protocol, and its major version both times.", &[LIFECYCLE, VERSION])
        .accepts(&[specified(NAMED)])
        .checked(After(&SLOW_ANSWER, protocol_named)),
    must("reasonix/host-lifecycle/manifest-told", Host)
        .says(
            "A guest is told the points, slots and capabilities of its manifest, and no others.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(MIRRORED)])
        .checked(After(&SLOW_ANSWER, manifest_told)),
    must("reasonix/host-lifecycle/initialized-once-next", Host)
        .says("Behind a good answer comes initialized, once and before anything else.", &[LIFECYCLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ASKS_IN_TURN, &PLAIN_TURN)),
    must("reasonix/host-lifecycle/early-request-fails", Host)
        .says("A request of a guest before initialized fails its start.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&EARLY, |x| all_failed(x, &[("early-request", PROTOCOL)]))),
    must("reasonix/host-lifecycle/early-notification-fails", Host)
        .says("A notification of a guest before initialized fails its start, known or not.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&EARLY, |x| all_failed(x, &[("early-end", PROTOCOL), ("early-unknown", PROTOCOL)]))),
    must("reasonix/host-lifecycle/early-garbage-fails", Host)
        .says("A malformed line of a guest before initialized fails its start.", &[LIFECYCLE])
        .accepts(&[specified(FAILED), observed(REGARDLESS)])
        .checked(After(&EARLY, garbage)),
    must("reasonix/host-lifecycle/early-response-opens-nothing", Host)
        .says("An answer to nothing, before the answer to initialize, does not stand for it.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&EARLY, |x| all_failed(x, &[("early-answer", ANY)]))),
    must("reasonix/host-lifecycle/other-major-fails", Host)
        .says("A guest of another major version does not start.", &[LIFECYCLE, VERSION])
        .accepts(&[specified(FAILED)])
        .checked(After(&CHECKS, |x| {
            all_failed(x, &[("next-major", UNSUPPORTED), ("major-zero", UNSUPPORTED)])
        })),
    must("reasonix/host-lifecycle/version-is-a-number", Host)
        .says("A guest whose version is no decimal integer does not start.", &[])
        .accepts(&[observed(FAILED)])
        .checked(After(&CHECKS, |x| {
            all_failed(
                x,
                &[("version-letter", VERSIONS), ("version-point", VERSIONS), ("version-space", VERSIONS)],
            )
        })),
    must("reasonix/host-lifecycle/version-written-exactly", Host)
        .says("A version with a zero or a sign before it is another one.", &[LIFECYCLE])
        .accepts(&[specified(FAILED), observed(DONE)])
        .checked(After(&EITHER, |x| either(x, &["version-zero", "version-plus"]))),
    must("reasonix/host-lifecycle/subscriptions-in-manifest", Host)
        .says(
            "A guest that subscribes to what its manifest does not have, to the letter, does not start.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(FAILED)])
        .checked(After(&CHECKS, |x| {
            all_failed(
                x,
                &[("more-points", UNDECLARED), ("points-in-capitals", UNDECLARED), ("empty-point", ANY)],
            )
        })),
    must("reasonix/host-lifecycle/slots-in-manifest", Host)
        .says("A guest that claims a slot which its manifest does not have does not start.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&CHECKS, |x| all_failed(x, &[("more-slots", UNDECLARED)]))),
    must("reasonix/host-lifecycle/repeated-subscription-taken", Host)
        .says("A guest may name a subscription twice.", &[])
        .accepts(&[observed(DONE)])
        .checked(After(&EITHER, |x| began(x, "twice", "twice"))),
    must("reasonix/host-lifecycle/providers-need-capability", Host)
        .says("A guest that offers a model without the capability providers does not start.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&CHECKS, |x| all_failed(x, &[("no-providers", UNDECLARED)]))),
    must("reasonix/host-lifecycle/providers-in-own-namespace", Host)
        .says("A guest that offers a model under the name of another plugin does not start.", &[])
        .accepts(&[observed(FAILED)])
        .checked(After(&CHECKS, |x| all_failed(x, &[("foreign-model", UNDECLARED)]))),
    must("reasonix/host-lifecycle/actions-need-capability", Host)
        .says("A guest that declares an action without the capability ui does not start.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&CHECKS, |x| all_failed(x, &[("no-ui", UNDECLARED)]))),
    must("reasonix/host-lifecycle/provided-lists-told", Host)
        .says(
            "Models and actions that a manifest lists are told to the guest.",
            &[LIFECYCLE, PROVIDERS, ACTIONS],
        )
        .only(IN_V2)
        .accepts(&[specified(MIRRORED), observed(UNLISTED)])
        .checked(After(&LISTS, lists_told)),
    must("reasonix/host-lifecycle/providers-in-manifest", Host)
        .says(
            "A guest that offers another model than its manifest lists does not start.",
            &[LIFECYCLE, PROVIDERS],
        )
        .only(IN_V2)
        .accepts(&[specified(FAILED), observed(DONE)])
        .checked(After(&LISTS, |x| either(x, &["unlisted-model"]))),
    must("reasonix/host-lifecycle/actions-in-manifest", Host)
        .says(
            "A guest that declares another action than its manifest lists does not start.",
            &[LIFECYCLE, ACTIONS],
        )
        .only(IN_V2)
        .accepts(&[specified(FAILED), observed(DONE)])
        .checked(After(&LISTS, |x| either(x, &["unlisted-action"]))),
    must("reasonix/host-lifecycle/odd-action-passed-over", Host)
        .says("An action whose id is none keeps no guest from starting, and cannot be invoked.", &[])
        .accepts(&[observed(PASSED_OVER)])
        .checked(After(&ODD_ACTION, odd_action)),
    must("reasonix/host-lifecycle/error-answer-fails", Host)
        .says("A guest that answers initialize with an error does not start.", &[])
        .accepts(&[observed(FAILED)])
        .checked(After(&CHECKS, |x| all_failed(x, &[("error", UNSUPPORTED)]))),
    must("reasonix/host-lifecycle/no-initialized-after-failure", Host)
        .says("A guest whose declaration fails a check is never told initialized.", &[LIFECYCLE])
        .accepts(&[specified(NOTHING)])
        .checked(After(&CHECKS, |x| said_after_failure(x, true))),
    must("reasonix/host-lifecycle/no-shutdown-after-failure", Host)
        .says("A guest whose handshake failed is asked nothing more, not even to shut down.", &[])
        .accepts(&[observed(NOTHING)])
        .checked(After(&CHECKS, |x| said_after_failure(x, false))),
    must("reasonix/host-lifecycle/failed-process-ended", Host)
        .says("A process whose handshake failed is ended, with those that it started.", &[])
        .accepts(&[observed(GONE)])
        .checked(After(&LEFT_BEHIND, |x| gone_of(x, "unfit", &[(ONE, 1), (ONE, 2)]))),
    must("reasonix/host-lifecycle/others-end-when-start-fails", Host)
        .says("When a plugin that is required does not start, those that did are ended.", &[])
        .accepts(&[observed(GONE)])
        .checked(After(&LEFT_BEHIND, |x| gone_of(x, "pair", &[("good", 1)]))),
    must("reasonix/host-lifecycle/optional-may-fail", Host)
        .says("A plugin that is not required and does not start keeps nobody else from starting.", &[])
        .accepts(&[observed(DONE)])
        .checked(After(&OPTIONAL, |x| match asked_to_initialize(x, "weak") {
            Some(_) => came_of(x, "optional"),
            None => never_came(x, "optional"),
        })),
    must("reasonix/host-lifecycle/handshake-bounded", Host)
        .says("A guest that never answers initialize fails its start in bounded time.", &[LIFECYCLE])
        .accepts(&[specified(FAILED)])
        .checked(After(&SILENT_GUESTS, bounded)),
    must("reasonix/host-lifecycle/four-at-once", Host)
        .says("At most four guests are initialized at once.", &[LIFECYCLE])
        .accepts(&[specified(AT_MOST_FOUR)])
        .checked(After(&SILENT_GUESTS, four_at_once)),
];

// ---- reasons, where a host has them ----

const PROTOCOL: &[&str] = &[reason::PROTOCOL_ERROR];
const UNSUPPORTED: &[&str] = &[reason::UNSUPPORTED_VERSION];
const VERSIONS: &[&str] = &[reason::PROTOCOL_ERROR, reason::UNSUPPORTED_VERSION];
const UNDECLARED: &[&str] = &[reason::CAPABILITY_NOT_DECLARED];
const ANY: &[&str] = &[];

// ---- scripts ----

/// How long a start may take whose guests never answer, in milliseconds: twice what it should take.
const SILENT_MILLIS: u64 = 60_000;
/// When guests that are initialized at once have all been launched, and none was given up, in microseconds.
const LAUNCHED_BY: u64 = 20_000_000;
/// More guests than may be initialized at once.
const SILENT: [&str; 6] = ["silent-1", "silent-2", "silent-3", "silent-4", "silent-5", "silent-6"];
/// The starts of [`CHECKS`].
const CHECKED: [&str; 13] = [
    "next-major",
    "major-zero",
    "version-letter",
    "version-point",
    "version-space",
    "more-points",
    "points-in-capitals",
    "empty-point",
    "more-slots",
    "no-providers",
    "no-ui",
    "foreign-model",
    "error",
];

/// The label of the true answer where something comes before it.
const ANSWER: &str = "true-answer";

/// A frame that a guest says where the host waits for its answer to initialize: what it is called, why it is wrong,
/// and the frame.
type Spoken = (&'static str, &'static str, String);

/// What makes the plugin of a start another than it usually is.
type Change = fn(Plugin) -> Plugin;

/// A declaration with these members, JSON texts, besides what every declaration has; later ones prevail.
pub(super) fn declaration(setting: &Setting<'_>, members: &[(&str, &str)]) -> String {
    let version = format!(r#""{}""#, setting.contract.major);
    let usual = [
        ("protocolVersion", version.as_str()),
        ("name", r#""x""#),
        ("version", r#""1.0.0""#),
        ("stateSchemaVersion", "1"),
    ];
    let kept = usual.iter().filter(|(name, _)| !members.iter().any(|(other, _)| other == name));
    let all: Vec<_> = kept.chain(members).map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
    format!("{{{}}}", all.join(","))
}

/// What a guest of this name declares besides, so that a host which needs a model for its session has one.
pub(super) fn a_model(name: &str) -> String {
    format!(r#"[{{"ref":{},"model":"echo"}}]"#, quoted(&sidecar::model(name)))
}

/// The answer to initialize with this result.
pub(super) fn answers(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"opening"}},"result":{result}}}"#)
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// The guest of this name leaves initialize to the steps.
pub(super) fn leaves_initialize(mut script: Script, name: &str) -> Script {
    let when = Pattern::of(&format!(r#"{{"method":"{}"}}"#, contract::INITIALIZE)).unwrap_or(Pattern::Absent);
    script.reactions.push(Reaction { when, reply: Reply::Never, times: None, guest: Some(name.to_owned()) });
    script
}

/// Asks for a session with these plugins, under this label.
pub(super) fn start_as(setting: &Setting<'_>, label: &str, plugins: &[Plugin]) -> Step {
    match plugin::start(setting, plugins, "") {
        Step::Ask { what, .. } => Step::Ask { label: label.to_owned(), what },
        other => other,
    }
}

/// Waits until the guest of this name is asked to initialize.
pub(super) fn meets_initialize(script: Script, name: &str) -> Script {
    let method = contract::INITIALIZE;
    let asked = format!(
        r#"{{"id":{{"$capture":"opening"}},"method":"{method}","params":{{"session":{{"sessionId":{{"$capture":"session"}},"generation":{{"$capture":"generation"}}}}}}}}"#
    );
    leaves_initialize(script, name).step(guest(name)).step(awaits(&asked))
}

/// Ends the session of the start called `label`, which may have failed.
pub(super) fn stop_of(script: Script, label: &str) -> Script {
    let label = format!("{label}-stop");
    script.step(ask(&label, r#"{"do":"stop"}"#)).step(outcome(&label))
}

/// Starts `plugin`, which is called `name` as the start is, and lets its guest say these where it should answer
/// initialize.
fn attempt(script: Script, setting: &Setting<'_>, name: &str, plugin: &Plugin, says: &[Spoken]) -> Script {
    let script = meets_initialize(script.step(start_as(setting, name, std::slice::from_ref(plugin))), name);
    let said = |script: Script, (label, departs, frame): &Spoken| script.raw(label, departs, frame.clone());
    stop_of(says.iter().fold(script, said).step(outcome(name)), name)
}

/// The same, with one answer that has these members.
fn declares(
    script: Script,
    setting: &Setting<'_>,
    name: &'static str,
    change: Change,
    members: &[(&str, &str)],
) -> Script {
    let answer = answers(&declaration(setting, members));
    let said = [(name, "its declaration is not what it may declare", answer)];
    attempt(script, setting, name, &change(Plugin::new(setting, name)), &said)
}

static SLOW_ANSWER: ScriptDef = ScriptDef {
    name: "late-answer-to-initialize",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin =
            Plugin::new(setting, ONE).intercepts(&["tool.after", "input.receive"]).replaces(&["context"]);
        let script = Script::new("late-answer-to-initialize").step(plugin::start(setting, &[plugin], ""));
        let members = [("subscriptions", r#"["input.receive"]"#), ("providers", &a_model(ONE))];
        let answer = declaration(setting, &members);
        let frame = Outgoing::Template(Template::new(answers(&answer)));
        let answer = Step::Send { label: Some(ANSWER.to_owned()), frame };
        stop(meets_initialize(script, ONE).quiet().step(answer).step(outcome(START)))
    },
};

static EARLY: ScriptDef = ScriptDef {
    name: "early-guest-frames",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let read = sights::request("early-read", contract::CONTENT_READ, r#"{"contentRef":"x","offset":0}"#);
        let end = notification(contract::STREAM_END, r#"{"streamId":"x","lastSeq":0}"#);
        let unknown = notification("host/sidecert/none", "{}");
        let good = |name: &str| answers(&declaration(setting, &[("providers", &a_model(name))]));
        let (early, behind) = ("it comes before initialized", "something came before it");
        let one = |name: &'static str, first: Spoken| (name, [first, (ANSWER, behind, good(name))]);
        let all = [
            one("early-request", ("early-read", early, read)),
            one("early-end", ("early-end", early, end)),
            one("early-unknown", ("early-unknown", early, unknown)),
            one("garbage", ("banner", early, "ready".to_owned())),
        ];
        let script = all.iter().fold(Script::new("early-guest-frames"), |script, (name, said)| {
            attempt(script, setting, name, &Plugin::new(setting, name), said)
        });
        // What answers nothing is a good declaration, and the answer is none: who takes the first for the answer begins.
        let unasked = good("early-answer").replace(r#"{"$capture":"opening"}"#, "990099");
        let unfit = answers(&declaration(setting, &[("protocolVersion", r#""0""#)]));
        let said = [("unasked", "it answers nothing", unasked), (ANSWER, "its version is another", unfit)];
        attempt(script, setting, "early-answer", &Plugin::new(setting, "early-answer"), &said)
    },
};

static CHECKS: ScriptDef = ScriptDef {
    name: "unfit-declarations",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let major = setting.contract.major;
        let as_it_is: Change = |plugin| plugin;
        let points: Change = |plugin| plugin.intercepts(&["input.receive"]);
        let versions = [
            ("next-major", format!(r#""{}""#, major + 1)),
            ("major-zero", r#""0""#.to_owned()),
            ("version-letter", format!(r#""v{major}""#)),
            ("version-point", format!(r#""{major}.0""#)),
            ("version-space", format!(r#"" {major}""#)),
        ];
        let script = versions.iter().fold(Script::new("unfit-declarations"), |script, (name, version)| {
            declares(script, setting, name, as_it_is, &[("protocolVersion", version)])
        });
        let model = |plugin: &str| format!(r#"[{{"ref":"plugin/{plugin}/sample/echo"}}]"#);
        let (own, foreign) = (model("no-providers"), model("other"));
        let lists: [(&'static str, Change, &str, &str); 7] = [
            ("more-points", points, "subscriptions", r#"["input.receive","tool.before"]"#),
            ("points-in-capitals", points, "subscriptions", r#"["Input.Receive"]"#),
            ("empty-point", points, "subscriptions", r#"[""]"#),
            ("more-slots", |it| it.replaces(&["context"]), "replaces", r#"["context","compaction"]"#),
            ("no-providers", |it| it.capabilities(&["ui"]), "providers", &own),
            (
                "no-ui",
                |it| it.capabilities(&["providers"]),
                "uiActions",
                r#"[{"actionId":"demo","label":"Demo"}]"#,
            ),
            ("foreign-model", as_it_is, "providers", &foreign),
        ];
        let script = lists.iter().fold(script, |script, (name, change, member, list)| {
            declares(script, setting, name, *change, &[(member, list)])
        });
        let name = reason::UNSUPPORTED_VERSION;
        let code = setting.contract.reason(name).map_or(rpc::INTERNAL_ERROR, |it| it.code);
        let error =
            format!(r#"{{"code":{code},"message":"no","data":{{"reason":"{name}","retryable":false}}}}"#);
        let error = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"opening"}},"error":{error}}}"#);
        attempt(
            script,
            setting,
            "error",
            &Plugin::new(setting, "error"),
            &[("error", "it refuses a good request", error)],
        )
    },
};

static EITHER: ScriptDef = ScriptDef {
    name: "declarations-read-either-way",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let major = setting.contract.major;
        let versions =
            [("version-zero", format!(r#""0{major}""#)), ("version-plus", format!(r#""+{major}""#))];
        let script =
            versions.iter().fold(Script::new("declarations-read-either-way"), |script, (name, version)| {
                let members = [("protocolVersion", version.as_str()), ("providers", &a_model(name))];
                declares(script, setting, name, |it| it, &members)
            });
        let model = a_model("twice");
        let twice = [("subscriptions", r#"["input.receive","input.receive"]"#), ("providers", &model)];
        declares(script, setting, "twice", |it| it.intercepts(&["input.receive"]), &twice)
    },
};

static LISTS: ScriptDef = ScriptDef {
    name: "declarations-beside-lists",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let lists: Change = |plugin| {
            // The released host wants a version and a hash of each, of whatever.
            let hash = "0".repeat(64);
            let entry = |kind: &str, id: &str| {
                format!(
                    r#"{{"kind":"{kind}","namespace":"sample","id":"{id}","version":"1.0.0","schemaHash":"{hash}"}}"#
                )
            };
            let [model, action] = [entry("provider", "echo"), entry("uiAction", "demo")];
            plugin.manifest("provides", &format!("[{model},{action}]"))
        };
        // Where a manifest can list nothing there is nothing to see, and nothing to go wrong.
        let can_list = setting.contract.has(since_v2::MANIFEST_EXPECTATION_PROVIDES);
        let listing = if can_list { lists } else { |plugin| plugin };
        let script = Script::new("declarations-beside-lists");
        // Beside the one that is listed, so that it is not for want of that one that a session does not begin.
        let other = r#"[{"ref":"plugin/unlisted-model/sample/other"},"#;
        let models = a_model("unlisted-model").replacen('[', other, 1);
        let script = declares(script, setting, "unlisted-model", listing, &[("providers", &models)]);
        let action = r#"[{"actionId":"other","label":"Other"}]"#;
        let members = [("uiActions", action), ("providers", &a_model("unlisted-action"))];
        declares(script, setting, "unlisted-action", listing, &members)
    },
};

static ODD_ACTION: ScriptDef = ScriptDef {
    name: "odd-action",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let script = Script::new("odd-action").step(plugin::start(setting, &[Plugin::new(setting, ONE)], ""));
        let odd = r#"[{"actionId":"BAD ID!","label":"Bad"}]"#;
        let answer = declaration(setting, &[("uiActions", odd), ("providers", &a_model(ONE))]);
        let script =
            meets_initialize(script, ONE).raw(ANSWER, "the id of its action is none", answers(&answer));
        let script = script.step(outcome(START));
        let invoked = ask("invoked", r#"{"do":"action","plugin":"one","action":"BAD ID!","args":{}}"#);
        stop(script.step(invoked).step(outcome("invoked")))
    },
};

static LEFT_BEHIND: ScriptDef = ScriptDef {
    name: "failed-starts",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let unfit = || answers(&declaration(setting, &[("protocolVersion", r#""0""#)]));
        let departs = "its version is another";
        let script =
            Script::new("failed-starts").step(start_as(setting, "unfit", &[Plugin::new(setting, ONE)]));
        let script =
            meets_initialize(script, ONE).step(Step::Linger).step(Step::Do(Order::Spawn { session: false }));
        let script = script.step(Step::Guest { name: ONE.to_owned(), time: 2 }).step(guest(ONE));
        let script = script.raw("unfit", departs, unfit()).step(outcome("unfit")).step(Step::Gone);
        let script = script.step(Step::Guest { name: ONE.to_owned(), time: 2 }).step(Step::Gone);
        let script = stop_of(script, "unfit");
        let pair = [Plugin::new(setting, "good"), Plugin::new(setting, "bad")];
        let script = script.step(start_as(setting, "pair", &pair)).step(guest("good"));
        let initialized = format!(r#"{{"method":"{}"}}"#, contract::INITIALIZED);
        let script = meets_initialize(script.step(awaits(&initialized)), "bad").raw("pair", departs, unfit());
        stop_of(script.step(outcome("pair")).step(guest("good")).step(Step::Gone), "pair")
    },
};

static OPTIONAL: ScriptDef = ScriptDef {
    name: "optional-plugin-does-not-start",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let pair = [Plugin::new(setting, ONE), Plugin::new(setting, "weak").optional()];
        let script = Script::new("optional-plugin-does-not-start").step(start_as(setting, "optional", &pair));
        let unfit = answers(&declaration(setting, &[("protocolVersion", r#""0""#)]));
        let script = meets_initialize(script, "weak").raw("weak", "its version is another", unfit);
        stop(script.step(outcome("optional")))
    },
};

static SILENT_GUESTS: ScriptDef = ScriptDef {
    name: "silent-guests",
    process: Process::Tour,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let plugins = SILENT.map(|name| Plugin::new(setting, name));
        let script =
            SILENT.iter().fold(Script::new("silent-guests"), |script, name| leaves_initialize(script, name));
        let start = start_as(setting, START, &plugins);
        stop(script.step(start).step(Step::Outcome {
            of: START.to_owned(),
            within: Some(SILENT_MILLIS),
            is: None,
        }))
    },
};

// ---- sights ----

/// Whether the host asked the guest of this name to initialize, and on which link.
fn asked_to_initialize(x: &Exchange<'_>, name: &str) -> Option<LinkId> {
    let links = x.launches(name);
    let asked = x.from_target().filter(|(entry, _)| links.contains(&entry.event.link));
    // Who asks under anything else cannot be answered.
    let asks = |said: &Said<'_>| matches!(&said.envelope, Ok(Envelope::Request { id: Id::Integer(_), method, .. }) if method == contract::INITIALIZE);
    asked.filter(|(_, said)| asks(said)).map(|(entry, _)| entry.event.link).next()
}

fn told_initialized(x: &Exchange<'_>, link: LinkId) -> Option<u64> {
    x.asked(contract::INITIALIZED).find(|(entry, _)| entry.event.link == link).map(|(entry, _)| entry.at)
}

/// What came of a start whose guest was asked to initialize.
fn began(x: &Exchange<'_>, label: &str, name: &str) -> Sight {
    match asked_to_initialize(x, name) {
        Some(_) => came_of(x, label),
        None => never_came(x, label),
    }
}

/// Whether all of these starts failed, for a reason that is among these where the host has reasons.
fn all_failed(x: &Exchange<'_>, starts: &[(&str, &[&str])]) -> Sight {
    let mut last = Sight::Undecided(sidecert_proto::verdict::Why::NotProvoked("nothing was started".into()));
    for (name, reasons) in starts {
        let sight = began(x, name, name);
        let Sight::Saw(FAILED, at) = sight else { return named(name, sight) };
        let given = x.outcome(name).and_then(|(_, outcome)| outcome.get("reason")?.as_str());
        if let Some(given) = given.filter(|given| !reasons.is_empty() && !reasons.contains(&&**given)) {
            return Sight::SawOther { at, actual: format!("{name}: it failed for the reason {given}") };
        }
        last = sight;
    }
    last
}

fn named(name: &str, sight: Sight) -> Sight {
    match sight {
        Sight::Saw(seen, at) => Sight::SawOther { at, actual: format!("{name}: {}", seen.0) },
        Sight::SawOther { at, actual } => Sight::SawOther { at, actual: format!("{name}: {actual}") },
        undecided @ Sight::Undecided(_) => undecided,
    }
}

/// Whether each of these starts was done and the guest was told so, or failed and it was not; the last of both kinds.
fn either(x: &Exchange<'_>, starts: &[&str]) -> Sight {
    let mut worst = None;
    for name in starts {
        let sight = began(x, name, name);
        let initialized = asked_to_initialize(x, name).and_then(|link| told_initialized(x, link));
        match (&sight, initialized) {
            (Sight::Saw(FAILED, _), None) => worst = worst.or(Some(sight)),
            (Sight::Saw(DONE, _), Some(_)) => worst = Some(sight),
            (Sight::Saw(FAILED, _), Some(at)) => {
                let actual = format!("{name}: it failed, and the guest had been told initialized");
                return Sight::SawOther { at, actual };
            }
            (Sight::Saw(DONE, at), None) => {
                let actual = format!("{name}: it was done, and the guest was never told initialized");
                return Sight::SawOther { at: *at, actual };
            }
            _ => return named(name, sight),
        }
    }
    worst.unwrap_or_else(|| never_came(x, ""))
}

fn protocol_named(x: &Exchange<'_>) -> Sight {
    let Some((entry, Some(params))) = x.asked(contract::INITIALIZE).next() else {
        return never_came(x, START);
    };
    let major = |pointer: &str| {
        let version = params.pointer(pointer).and_then(|it| it.as_str());
        version.is_some_and(|it| it.parse::<u32>() == Ok(x.contract.major))
    };
    let id = params.get("protocolId").and_then(|it| it.as_str());
    match (
        id.as_deref() == Some(&*x.contract.id),
        major("/protocolVersion"),
        major("/capabilities/protocolVersion"),
    ) {
        (true, true, true) => Sight::Saw(NAMED, entry.at),
        (false, ..) => other(entry.at, "protocolId", params.get("protocolId")),
        (_, false, _) => other(entry.at, "protocolVersion", params.get("protocolVersion")),
        _ => other(entry.at, "capabilities", params.get("capabilities")),
    }
}

fn other(at: u64, what: &str, it: Option<Node<'_>>) -> Sight {
    let raw = it.map_or("absent", |it| it.raw());
    Sight::SawOther { at, actual: format!("{what} {}", sidecert_proto::exchange::short(raw)) }
}

/// A list of texts, sorted.
fn texts(list: Option<Node<'_>>) -> Vec<String> {
    let list = list.into_iter().flat_map(|it| it.elements());
    let mut all: Vec<_> = list.filter_map(|it| Some(it.as_str()?.into_owned())).collect();
    all.sort();
    all
}

/// The manifest that the start of this label was asked with.
fn asked_with<'x>(x: &'x Exchange<'_>, label: &str) -> Option<Node<'x>> {
    let is_it =
        |kind: &Kind<'_>| matches!(kind, Kind::Told { what: Told::Ask, label: Some(it), .. } if it == label);
    let mut asks = x.told(Told::Ask).filter(|(entry, _)| is_it(&entry.event.kind));
    asks.next().and_then(|(_, ask)| ask.pointer("/plugins/0/manifest/runtime"))
}

fn manifest_told(x: &Exchange<'_>) -> Sight {
    let (Some((entry, Some(params))), Some(manifest)) =
        (x.asked(contract::INITIALIZE).next(), asked_with(x, START))
    else {
        return never_came(x, START);
    };
    for list in ["intercepts", "replaces", "capabilities"] {
        let told = params.pointer(&format!("/manifest/{list}"));
        if texts(told) != texts(manifest.get(list)) {
            return other(entry.at, list, told);
        }
    }
    Sight::Saw(MIRRORED, entry.at)
}

fn lists_told(x: &Exchange<'_>) -> Sight {
    let Some((entry, Some(params))) = x.asked(contract::INITIALIZE).next() else {
        return never_came(x, START);
    };
    let told = |list: &str| params.pointer(&format!("/manifest/{list}"));
    match (texts(told("providers")), texts(told("uiActions"))) {
        (models, actions) if models.is_empty() && actions.is_empty() => Sight::Saw(UNLISTED, entry.at),
        // A model is named with its plugin before it, or as the manifest names it.
        (models, actions)
            if models.len() == 1
                && ["sample/echo", "plugin/unlisted-model/sample/echo"].contains(&&*models[0])
                && actions == ["demo"] =>
        {
            Sight::Saw(MIRRORED, entry.at)
        }
        _ => other(entry.at, "manifest", params.get("manifest")),
    }
}

fn garbage(x: &Exchange<'_>) -> Sight {
    let sight = began(x, "garbage", "garbage");
    let Sight::Saw(DONE, at) = sight else { return sight };
    let link = asked_to_initialize(x, "garbage");
    let refused = |said: &Said<'_>| match &said.envelope {
        Ok(Envelope::Response { id: Id::Null, outcome: Outcome::Error { code, .. } }) => {
            *code == rpc::PARSE_ERROR
        }
        _ => false,
    };
    let refusal = x.from_target().find(|(entry, said)| Some(entry.event.link) == link && refused(said));
    match refusal {
        Some((entry, _)) => Sight::Saw(REGARDLESS, entry.at),
        None => Sight::SawOther {
            at,
            actual: "the start was done, and nothing answered the malformed line".to_owned(),
        },
    }
}

fn odd_action(x: &Exchange<'_>) -> Sight {
    let sight = began(x, START, ONE);
    let Sight::Saw(DONE, _) = sight else { return sight };
    if let Some((entry, _)) = x.asked(contract::UI_ACTION).next() {
        return Sight::SawOther { at: entry.at, actual: "the action was invoked".to_owned() };
    }
    match came_of(x, "invoked") {
        // A host may take it for a text to its model.
        Sight::Saw(_, at) => Sight::Saw(PASSED_OVER, at),
        other => named("the action", other),
    }
}

/// What the host said to guests whose handshake had failed: initialized, or any request.
fn said_after_failure(x: &Exchange<'_>, initialized: bool) -> Sight {
    let mut failed = None;
    for name in CHECKED {
        let Some(link) = asked_to_initialize(x, name) else { continue };
        let said = x.from_target().filter(|(entry, _)| entry.event.link == link).find_map(|(entry, said)| {
            let envelope = said.envelope.as_ref().ok()?;
            let method = envelope.method()?;
            let asks = matches!(envelope, Envelope::Request { .. }) && method != contract::INITIALIZE;
            let odd = if initialized { method == contract::INITIALIZED } else { asks };
            odd.then(|| (entry.at, method.to_owned()))
        });
        let sight = came_of(x, name);
        match (said, &sight) {
            // Whoever started all the same is the matter of another row.
            (Some((at, method)), Sight::Saw(FAILED, _)) => {
                return Sight::SawOther { at, actual: format!("{name}: {method}") };
            }
            (None, Sight::Saw(FAILED, at)) => failed = Some(*at),
            _ => {}
        }
    }
    failed.map_or_else(|| never_came(x, CHECKED[0]), |at| Sight::Saw(NOTHING, at))
}

/// Whether these launches were gone when the start of this label had failed, and before its session was ended.
fn gone_of(x: &Exchange<'_>, start: &str, launches: &[(&str, usize)]) -> Sight {
    match came_of(x, start) {
        Sight::Saw(FAILED, _) => gone(x, launches, Some(&format!("{start}-stop"))),
        Sight::Saw(..) | Sight::SawOther { .. } => never_came(x, "a start that fails"),
        undecided @ Sight::Undecided(_) => undecided,
    }
}

/// Whether these launches were gone, before the ask of this label was made if one is given.
pub(super) fn gone(x: &Exchange<'_>, launches: &[(&str, usize)], before: Option<&str>) -> Sight {
    let asked = |label: &str| {
        let is_it = |kind: &Kind<'_>| matches!(kind, Kind::Told { what: Told::Ask, label: Some(it), .. } if it == label);
        x.find(is_it).map(|entry| entry.at)
    };
    let Some(end) = before.map_or(Some(x.last()), asked) else {
        return never_came(x, before.unwrap_or_default());
    };
    let mut last = end;
    for (name, time) in launches {
        let is_it = |it: Node<'_>| it.get("as").and_then(|it| it.as_str()).as_deref() == Some(name);
        let launched = x.told(Told::Launched).filter(|(_, it)| is_it(*it)).nth(time - 1);
        let Some(link) = launched.map(|(entry, _)| entry.event.link) else { return never_came(x, name) };
        let gone = x.told(Told::Gone).find(|(entry, _)| entry.event.link == link && entry.at <= end);
        match gone {
            Some((entry, _)) => last = entry.at,
            None if before.is_none() && x.cut.is_some() => return never_came(x, name),
            None => {
                let which = if *time > 1 { "what the guest had started" } else { "the process" };
                return Sight::SawOther { at: end, actual: format!("{which} ({name}) was still there") };
            }
        }
    }
    Sight::Saw(GONE, last)
}

fn bounded(x: &Exchange<'_>) -> Sight {
    match x.timed_out(Wait::Outcome, Some(START)) {
        Some((at, micros)) => {
            Sight::SawOther { at, actual: format!("nothing came of the start in {} s", micros / 1_000_000) }
        }
        None => came_of(x, START),
    }
}

fn four_at_once(x: &Exchange<'_>) -> Sight {
    let Some(asked) = x.told(Told::Ask).next().map(|(entry, _)| entry.event.t) else {
        return never_came(x, START);
    };
    let over =
        x.outcome(START).map(|(at, _)| at).or(x.timed_out(Wait::Outcome, Some(START)).map(|(at, _)| at));
    let Some(over) = over else { return never_came(x, START) };
    let early = |t: u64| t.saturating_sub(asked) < LAUNCHED_BY;
    let mut launched =
        x.told(Told::Launched).filter(|(entry, _)| early(entry.event.t)).map(|(entry, _)| entry.at);
    match (launched.nth(4), x.told(Told::Launched).next()) {
        (Some(at), _) => Sight::SawOther { at, actual: "a fifth, while four had not answered".to_owned() },
        (None, Some(_)) => Sight::Saw(AT_MOST_FOUR, over),
        (None, None) => never_came(x, START),
    }
}
