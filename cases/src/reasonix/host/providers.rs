//! "Streaming providers", as a host must choose among their models: what catalogs say, and what is made of it.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Exchange, short};
use sidecert_proto::json::Node;
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::sidecar;
use sidecert_proto::requirement::Check::{After, Unobservable};
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::script::{
    Need, Pattern, Process, Reaction, Reply, SLOW, Script, ScriptDef, Setting, Template,
};
use sidecert_proto::transcript::Wait;
use sidecert_proto::verdict::{Sight, Why};

use super::super::KEPT_AS_SPECIFIED;
use super::streams::{
    PROVIDERS, accepted, answer_of, asked, came, end, member, not_opened, openings, patient, sight, span,
    streams, text,
};
use super::{
    DONE, FAILED, ONE, REFUSED, ask, came_of, guest, observed, outcome, reacts, request, session as begin,
    specified, stop, turn,
};

const LISTED: Seen = Seen("it is listed as plugin/<plugin>/<provider>/<model>");
const NOT_LISTED: Seen = Seen("it is not listed");
const ONCE: Seen = Seen("the catalog was asked for once on each connection");
const AGAIN: Seen = Seen("the catalog was asked for again, and its model was there");
const NOT_ASKED: Seen = Seen("it was not asked for a catalog");
const ASKED: Seen = Seen("it was asked for a catalog, and none of its models was opened");
const NOT_OPENED: Seen = Seen("it was not opened, and the user was told");
const HANDED_ON: Seen = Seen("the effort was handed on");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-providers/models-named-by-plugin", Host)
        .says("A model of a plugin is called plugin/<plugin>/<provider>/<model>.", &[PROVIDERS])
        .accepts(&[specified(LISTED)])
        .checked(After(&MODELS, |x| listed(x, &reference("plain"), true))),
    must("reasonix/host-providers/other-names-skipped", Host)
        .says("An entry of a catalog that does not stand below the name of its plugin is passed over.", &[])
        .accepts(&[observed(NOT_LISTED)])
        .checked(After(&MODELS, |x| listed(x, FOREIGN, false))),
    must("reasonix/host-providers/catalog-asked-once", Host)
        .says("A guest is asked for its catalog once.", &[])
        .accepts(&[observed(ONCE)])
        .checked(After(&CATALOG, catalog_asked_once)),
    must("reasonix/host-providers/catalog-asked-again-after-failure", Host)
        .says("A guest that failed to give its catalog is asked again when it is needed.", &[])
        .accepts(&[observed(AGAIN)])
        .checked(After(&NO_CATALOG, catalog_asked_again)),
    must("reasonix/host-providers/catalog-time-kept", Host)
        .says("A guest that does not give its catalog holds nothing up for more than 10 s.", &[])
        .accepts(&[observed(NOT_OPENED)])
        .checked(After(&SILENT_CATALOG, catalog_time_kept)),
    must("reasonix/host-providers/catalog-needs-capability", Host)
        .says("A guest without the capability is not asked for a catalog.", &[PROVIDERS])
        .accepts(&[specified(NOT_ASKED), observed(ASKED)])
        .checked(After(&INCAPABLE, catalog_needs_capability)),
    must("reasonix/host-providers/undeclared-not-opened", Host)
        .says("A model that the guest did not declare in the handshake is never opened.", &[])
        .accepts(&[observed(NOT_OPENED)])
        .checked(After(&CATALOG, undeclared_not_opened)),
    must("reasonix/host-providers/effort-handed-on", Host)
        .says(
            "The effort that the user chose of those that a model offers is handed on to it.",
            &[PROVIDERS, Cite::Schema("/$defs/StreamOpenParams/properties/effort")],
        )
        .accepts(&[specified(HANDED_ON)])
        .checked(After(&EFFORT, effort_handed_on)),
    must("reasonix/host-providers/base-models-need-slot", Host)
        .says(
            "A model of a plugin takes the place of one of the host only where the plugin owns its slot.",
            &[],
        )
        .accepts(&[observed(NOT_OPENED)])
        .checked(Unobservable("which models a host has of its own is not known to us")),
    must("reasonix/host-providers/keys-of-others-kept", Host)
        .says("No frame has a key or a header of another provider in it.", &[PROVIDERS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Unobservable("the keys of other providers are not ours to set")),
];

/// A model whose name is not below that of its plugin.
const FOREIGN: &str = "plugin/other/sample/foreign";

// ---- models of our guest ----

/// The reference of a model of our guest.
pub(super) fn reference(model: &str) -> String {
    format!("plugin/{ONE}/sample/{model}")
}

/// The descriptor of a model.
fn descriptor(reference: &str) -> String {
    let model = reference.rsplit('/').next().unwrap_or_default();
    format!(
        r#"{{"ref":"{reference}","model":"{model}","contextWindow":65536,"efforts":["low","high"],"reasoning":true}}"#
    )
}

fn descriptors(references: &[String]) -> String {
    references.iter().map(|it| descriptor(it)).collect::<Vec<_>>().join(",")
}

/// A session whose guest declares the models `declared`, and has these and `more` in its catalog.
pub(super) fn session_of(
    name: &str,
    setting: &Setting<'_>,
    plugin: Plugin,
    declared: &[&str],
    more: &[String],
) -> Script {
    // The one that every guest of ours has comes first: a driver may choose it for the session.
    let usual = std::iter::once(sidecar::model(ONE));
    let declared: Vec<String> = usual.chain(declared.iter().map(|it| reference(it))).collect();
    let script = declaring(begin(name, setting, &[plugin]), setting, &declared);
    let all = [&declared, more].concat();
    let catalog = format!(
        r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{{"providers":[{}]}}}}"#,
        descriptors(&all)
    );
    reacts(script, &request(contract::PROVIDER_CATALOG), Reply::Once(Template::new(catalog)))
}

/// Our guest declares these models, and steps in where its manifest says so; a host may name no points where there are
/// none.
fn declaring(script: Script, setting: &Setting<'_>, references: &[String]) -> Script {
    let (initialize, major) = (contract::INITIALIZE, setting.contract.major);
    let providers = descriptors(references);
    let named =
        (r#","params":{"manifest":{"intercepts":{"$capture":"points"}}}"#, r#"{"$capture":"points"}"#);
    [named, ("", "[]")].into_iter().fold(script, |script, (params, points)| {
        let when = format!(r#"{{"id":{{"$capture":"id"}},"method":"{initialize}"{params}}}"#);
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{{"protocolVersion":"{major}","name":"{ONE}","version":"1.0.0","stateSchemaVersion":1,"subscriptions":{points},"replaces":[],"providers":[{providers}]}}}}"#
        );
        reacts(script, &when, Reply::Once(Template::new(answer)))
    })
}

// ---- scripts ----

static MODELS: ScriptDef = ScriptDef {
    name: "models-listed",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE);
        let it = session_of("models-listed", setting, plugin, &["plain"], &[FOREIGN.to_owned()]);
        stop(it.step(ask("models", r#"{"do":"models"}"#)).step(outcome("models")))
    },
};

static CATALOG: ScriptDef = ScriptDef {
    name: "models-chosen",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let more = [reference("undeclared")];
        let it = session_of("models-chosen", setting, Plugin::new(setting, ONE), &["plain"], &more);
        let it = streams(it, "plain", None, accepted([text(1, "one-"), end(1)]));
        stop(asked(asked(it, "undeclared"), "plain"))
    },
};

/// Not every driver can choose an effort, so it is chosen here alone.
static EFFORT: ScriptDef = ScriptDef {
    name: "effort-chosen",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = session_of("effort-chosen", setting, Plugin::new(setting, ONE), &["plain"], &[]);
        let it = streams(it, "plain", None, accepted([text(1, "one-"), end(1)]));
        let what =
            format!(r#"{{"do":"turn","text":"Try hard","model":"{}","effort":"high"}}"#, reference("plain"));
        stop(it.step(ask("effort", &what)).step(outcome("effort")))
    },
};

static NO_CATALOG: ScriptDef = ScriptDef {
    name: "catalog-fails-once",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut it = begin("catalog-fails-once", setting, &[Plugin::new(setting, ONE)]);
        let error = r#"{"code":-32603,"message":"not now","data":{"reason":"internal","retryable":true}}"#;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"error":{error}}}"#);
        let when = Pattern::of(&request(contract::PROVIDER_CATALOG)).unwrap_or(Pattern::Absent);
        let reply = Reply::Once(Template::new(answer));
        it.reactions.push(Reaction { when, reply, times: Some(1), guest: None });
        stop(turn(turn(it, "without", "Is anybody there?"), "with", "And now?"))
    },
};

static SILENT_CATALOG: ScriptDef = ScriptDef {
    name: "catalog-never-comes",
    process: Process::Own,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let it =
            Script::new("catalog-never-comes").step(plugin::start(setting, &[Plugin::new(setting, ONE)], ""));
        // A host may ask for it again, and wait again.
        let it = it.step(patient(START, 45_000)).step(guest(ONE));
        let it = reacts(it, &request(contract::PROVIDER_CATALOG), Reply::Never);
        stop(it.step(ask("silent", r#"{"do":"turn","text":"Hello"}"#)).step(patient("silent", 15_000)))
    },
};

static INCAPABLE: ScriptDef = ScriptDef {
    name: "models-without-capability",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).capabilities(&["interceptors", "strategies", "ui"]);
        let it = begin("models-without-capability", setting, &[one]);
        let model = sidecar::model(ONE);
        let what = format!(r#"{{"do":"turn","text":"Hello","model":"{model}"}}"#);
        stop(it.step(ask("incapable", &what)).step(outcome("incapable")))
    },
};

// ---- sights ----

fn listed(x: &Exchange<'_>, reference: &str, wanted: bool) -> Sight {
    sight(span(x, "models").map(|(_, at, outcome)| {
        let Some(models) = outcome.get("models") else {
            return Sight::SawOther { at, actual: format!("the outcome {}", short(outcome.raw())) };
        };
        let found = models.elements().filter_map(|it| it.as_str()).any(|it| it == reference);
        match (found, wanted) {
            (true, true) => Sight::Saw(LISTED, at),
            (false, false) => Sight::Saw(NOT_LISTED, at),
            _ => Sight::SawOther { at, actual: format!("the models {}", short(models.raw())) },
        }
    }))
}

fn catalog_asked_once(x: &Exchange<'_>) -> Sight {
    let links = x.launches(ONE);
    let many =
        |link: usize| x.asked(contract::PROVIDER_CATALOG).filter(|(it, _)| it.event.link == link).count();
    sight(answer_of(x, "plain").map(|(_, at)| match links.iter().map(|link| many(*link)).max() {
        Some(most @ 2..) => Sight::SawOther { at, actual: format!("{most} times on one connection") },
        _ => Sight::Saw(ONCE, at),
    }))
}

fn catalog_asked_again(x: &Exchange<'_>) -> Sight {
    match (came_of(x, START), came_of(x, "with")) {
        (Sight::Saw(DONE, _), Sight::Saw(DONE, at)) => Sight::Saw(AGAIN, at),
        (Sight::Saw(DONE, _), other) => other,
        _ => Sight::Undecided(Why::NotProvoked("the session did not begin without a catalog".into())),
    }
}

fn catalog_time_kept(x: &Exchange<'_>) -> Sight {
    let waited = [START, "silent"].into_iter().find_map(|label| x.timed_out(Wait::Outcome, Some(label)));
    if let Some((at, _)) = waited {
        return Sight::SawOther { at, actual: "it was still waited for".to_owned() };
    }
    // A host that has no other model may not begin without it.
    let asked = x.asked(contract::PROVIDER_CATALOG).next().is_some();
    match (came_of(x, START), came(x, "silent")) {
        (Sight::Saw(FAILED | REFUSED, at), _) if asked => Sight::Saw(NOT_OPENED, at),
        (_, Sight::Saw(FAILED | REFUSED, at)) => Sight::Saw(NOT_OPENED, at),
        (_, other) => other,
    }
}

fn catalog_needs_capability(x: &Exchange<'_>) -> Sight {
    sight(span(x, "incapable").map(|(_, over, _)| {
        if let Some((entry, _)) = x.asked(contract::STREAM_OPEN).next() {
            return Sight::SawOther { at: entry.at, actual: "a model of it was opened".to_owned() };
        }
        match x.asked(contract::PROVIDER_CATALOG).next() {
            Some((entry, _)) => Sight::Saw(ASKED, entry.at),
            None => Sight::Saw(NOT_ASKED, over),
        }
    }))
}

fn undeclared_not_opened(x: &Exchange<'_>) -> Sight {
    if let Some((entry, _)) = openings(x, "undeclared").next() {
        return Sight::SawOther { at: entry.at, actual: "it was opened".to_owned() };
    }
    match came(x, "undeclared") {
        Sight::Saw(FAILED | REFUSED, at) => Sight::Saw(NOT_OPENED, at),
        other => other,
    }
}

fn effort_handed_on(x: &Exchange<'_>) -> Sight {
    let asked = |params: Node<'_>| {
        let messages = params.pointer("/request/messages").into_iter().flat_map(Node::elements);
        messages.last().is_some_and(|it| member(it, "content").contains("Try hard"))
    };
    let Some((entry, params)) = openings(x, "plain").find(|(_, params)| asked(*params)) else {
        return not_opened(x, "effort");
    };
    match &*member(params, "effort") {
        "high" => Sight::Saw(HANDED_ON, entry.at),
        "" => Sight::SawOther { at: entry.at, actual: "no effort".to_owned() },
        other => Sight::SawOther { at: entry.at, actual: format!("the effort {:?}", short(other)) },
    }
}
