//! "Structured UI", as a host must keep it: what it shows of a guest and what it does not, and what the user does with it.
//!
//! Prompts are answered by the driver, under the name that it showed them with. Lines of a driver are in order: once
//! something that was asked behind a fence is over, a prompt that the host wanted to show has been shown.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Answer, Exchange, short};
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::reasonix::session;
use sidecert_proto::reasonix::sidecar::ACTION;
use sidecert_proto::requirement::Check::{After, Always, Unobservable};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{Process, Script, ScriptDef, Setting, Step};
use sidecert_proto::transcript::Told;
use sidecert_proto::verdict::{Sight, Why};

use super::super::KEPT_AS_SPECIFIED;
use super::super::sights::{self, BAD_PARAMS, UNKNOWN, all_became, became, result_of};
use super::rulings::not_provoked;
use super::streams::{came, member};
use super::{ONE, ask, awaits, guest, observed, outcome, session as begin, specified, stop};

const UI: Cite = Cite::Seed("结构化 UI", "Structured UI");
const PUBLISH: Cite = Cite::Schema("/$defs/UIPublishParams");
const REQUEST: Cite = Cite::Schema("/$defs/UIRequestParams");

const TAKEN: Seen = Seen("it was taken");
const DECLINED: Seen = Seen("it was answered, and declined");
const ERROR: Seen = Seen("it was refused with an error");
const NAMED: Seen = Seen("what was shown named its plugin");
const SENT: Seen = Seen("the guest was asked");
const HANDED_ON: Seen = Seen("the guest was given each of them");
const NOT_SENT: Seen = Seen("the guest was not asked");
const REACHED: Seen = Seen("its owner was told, once, with the surface and the values");
const OF_ITS_KIND: Seen = Seen("a boolean, a text, a text, and a list of texts");
const CANCELLED: Seen = Seen("it was answered as cancelled");
const UNDER_VALUE: Seen = Seen("the answer stands under the key value");
const ANSWERED: Seen = Seen("each was asked and answered");
const INERT: Seen = Seen("it is shown as text");

const WRONG: &[Accepts] = &[specified(BAD_PARAMS)];
const WRONG_OBSERVED: &[Accepts] = &[observed(BAD_PARAMS)];
const REFUSES_OR_TAKES: &[Accepts] = &[specified(ERROR), specified(DECLINED), observed(TAKEN)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-ui/surfaces-taken", Host)
        .says("A status, a card, a form and a notification that fit are taken.", &[UI, PUBLISH])
        .accepts(&[specified(TAKEN)])
        .checked(After(&SURFACES, |x| all_are(x, &["status", "card", "form", "notification"], TAKEN))),
    must("reasonix/host-ui/surfaces-name-plugin", Host)
        .says("The user sees of which plugin a surface is.", &[UI])
        .accepts(&[specified(NAMED)])
        .checked(After(&SURFACES, surfaces_name_plugin)),
    must("reasonix/host-ui/markup-has-no-member", Host)
        .says("Markup, styles, scripts and addresses have no member of their own in a surface.", &[UI])
        .accepts(WRONG)
        .checked(After(&SURFACES, |x| all_became(x, ["html", "css", "script", "url"], WRONG))),
    must("reasonix/host-ui/markup-is-text", Host)
        .says("Markup in a text of a guest is shown as text.", &[UI])
        .accepts(&[specified(INERT)])
        .checked(Unobservable("how a frontend draws a text does not reach us")),
    must("reasonix/host-ui/unknown-kinds-refused", Host)
        .says("A surface of a kind that there is not is refused as wrong params.", &[PUBLISH])
        .accepts(WRONG)
        .checked(After(&SURFACES, |x| became(x, "kind"))),
    must("reasonix/host-ui/unknown-prompts-refused", Host)
        .says("A prompt of a kind that there is not is refused as wrong params.", &[REQUEST])
        .accepts(WRONG)
        .checked(After(&SURFACES, |x| became(x, "prompt-kind"))),
    must("reasonix/host-ui/documents-checked", Host)
        .says("A surface lacks nothing that its kind must have, and has no value that its kind does not know.", &[])
        .accepts(WRONG_OBSERVED)
        .checked(After(&SURFACES, |x| all_became(x, DOCUMENTS.map(|(label, ..)| label), WRONG_OBSERVED))),
    must("reasonix/host-ui/other-sessions-not-taken", Host)
        .says("What is of another session is not shown.", &[UI])
        .accepts(&[specified(DECLINED), specified(ERROR)])
        .checked(After(&SURFACES, |x| all_are(x, &["stale-session"], DECLINED))),
    must("reasonix/host-ui/old-not-taken", Host)
        .says("What is of an older generation is not shown.", &[UI])
        .accepts(&[specified(DECLINED), specified(ERROR)])
        .checked(After(&RELOADED, old_surface)),
    must("reasonix/host-ui/future-not-taken", Host)
        .says("What is of a generation that was never begun is not shown.", &[])
        .accepts(&[observed(DECLINED), specified(ERROR)])
        .checked(After(&SURFACES, |x| all_are(x, &["stale-generation", "stale-prompt"], DECLINED))),
    must("reasonix/host-ui/stale-before-payload", Host)
        .says("What is of another generation is declined, whatever it holds.", &[])
        .accepts(&[observed(DECLINED)])
        .checked(After(&SURFACES, |x| fate(x, "stale-document"))),
    must("reasonix/host-ui/no-ui-told", Host)
        .says("A host that has nothing to show a surface on says that it does not know the method.", &[])
        .accepts(&[observed(UNKNOWN)])
        .checked(Unobservable("whether a host has something to show surfaces on is not ours to choose")),
    must("reasonix/host-ui/surfaces-need-capability", Host)
        .says("A surface of a guest without the capability is refused.", &[UI])
        .accepts(REFUSES_OR_TAKES)
        .checked(After(&INCAPABLE, |x| fate(x, "surface"))),
    must("reasonix/host-ui/prompts-need-capability", Host)
        .says("A prompt of a guest without the capability is refused.", &[UI])
        .accepts(REFUSES_OR_TAKES)
        .checked(After(&INCAPABLE, prompt_of_incapable)),
    must("reasonix/host-ui/declared-actions-asked", Host)
        .says("An action that the user invokes reaches the plugin that declared it.", &[UI])
        .accepts(&[specified(SENT)])
        .checked(After(&ACTIONS, declared_action)),
    must("reasonix/host-ui/action-args-handed-on", Host)
        .says(
            "What the user gives with an action reaches its plugin, as texts by their names.",
            &[],
        )
        .accepts(&[observed(HANDED_ON)])
        .checked(After(&ARGS, args_handed_on)),
    must("reasonix/host-ui/undeclared-actions-not-asked", Host)
        .says("An action that its plugin did not declare never reaches it.", &[UI])
        .accepts(&[specified(NOT_SENT)])
        .checked(After(&ACTIONS, undeclared_action)),
    must("reasonix/host-ui/actions-named-by-plugin", Host)
        .says("An action is called /<plugin>:<action>.", &[UI])
        .accepts(&[specified(NAMED)])
        .checked(Unobservable("a driver names the plugin and the action each by itself")),
    must("reasonix/host-ui/session-carried", Host)
        .says(
            "Actions and forms carry the session and the generation that the guest was told.",
            &[UI, Cite::Schema("/$defs/UIActionParams"), Cite::Schema("/$defs/UISubmitParams")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::SESSION_CARRIED, &ACTIONS)),
    must("reasonix/host-ui/late-results-dropped", Host)
        .says("What a guest answers to an action behind a reload changes nothing.", &[UI])
        .accepts(&[specified(DECLINED)])
        .checked(Unobservable("a guest that could answer so late has been ended by the reload")),
    must("reasonix/host-ui/forms-reach-owner", Host)
        .says("A form that the user submits reaches the plugin that published it, and no other.", &[UI])
        .accepts(&[specified(REACHED)])
        .checked(After(&FORMS, form_reaches_owner)),
    must("reasonix/host-ui/prompts-answered", Host)
        .says("A prompt of each of the four kinds is asked, and answered.", &[UI, REQUEST])
        .accepts(&[specified(ANSWERED)])
        .checked(After(&PROMPTS, prompts_answered)),
    must("reasonix/host-ui/answers-of-their-kind", Host)
        .says(
            "The answer to a prompt has the form of its kind: a boolean, a text, one of the options, or a list of them.",
            &[],
        )
        .accepts(&[observed(OF_ITS_KIND)])
        .checked(After(&PROMPTS, answers_of_their_kind)),
    must("reasonix/host-ui/question-without-fields", Host)
        .says("A prompt without fields asks one question, whose answer stands under the key value.", &[])
        .accepts(&[observed(UNDER_VALUE)])
        .checked(After(&PROMPTS, |x| {
            answered_with(x, "confirm", |values| values.get("value").is_some(), UNDER_VALUE)
        })),
    must("reasonix/host-ui/dismissed-is-cancelled", Host)
        .says(
            "A prompt that the user dismisses is answered as cancelled.",
            &[Cite::Schema("/$defs/UIRequestResult/properties/cancelled")],
        )
        .accepts(&[specified(CANCELLED)])
        .checked(After(&PROMPTS, dismissed)),
];

// ---- scripts ----

/// The session that the guest was told, and its generation.
pub(super) const SESSION: &str = r#"{"$capture":"session"}"#;
pub(super) const GENERATION: &str = r#"{"$capture":"generation"}"#;
const STALE_GENERATION: &str = "999";
const STALE_SESSION: &str = r#""sidecert-none""#;

pub(super) const STATUS: &str = r#"{"label":"sidecert-ready"}"#;
pub(super) const QUESTION: &str = r#"{"message":"Go on?","fields":[]}"#;
const FORM: &str = r#"{"title":"Who?","fields":[{"key":"name","label":"Name","kind":"input"}]}"#;

/// Surfaces that do not fit their kind: label, kind, and payload.
const DOCUMENTS: [(&str, &str, &str); 4] = [
    ("no-label", "status", "{}"),
    ("empty-label", "status", r#"{"label":""}"#),
    ("severity", "status", r#"{"label":"x","severity":"sidecert"}"#),
    ("no-fields", "form", r#"{"title":"x"}"#),
];

/// What follows is about this guest of ours, in the session that it was told.
pub(super) fn with(script: Script, name: &str) -> Script {
    let told = format!(
        r#"{{"method":"{}","params":{{"session":{{"sessionId":{SESSION},"generation":{GENERATION}}}}}}}"#,
        contract::INITIALIZE
    );
    script.step(guest(name)).step(awaits(&told))
}

pub(super) fn params(
    surface: &str,
    kind: &str,
    payload: &str,
    (session, generation): (&str, &str),
) -> String {
    format!(
        r#"{{"surfaceId":"{surface}","kind":"{kind}","payload":{payload},"sessionId":{session},"generation":{generation}}}"#
    )
}

/// Publishes something that fits, as a surface of the same name.
fn publishes(script: Script, label: &str, kind: &str, payload: &str) -> Script {
    script
        .request(label, contract::UI_PUBLISH, &params(label, kind, payload, (SESSION, GENERATION)))
        .answer(label)
}

/// Publishes something that does not.
fn misfits(script: Script, label: &str, departs: &str, params: &str) -> Script {
    script.raw(label, departs, sights::request(label, contract::UI_PUBLISH, params)).fence()
}

static SURFACES: ScriptDef = ScriptDef {
    name: "surfaces",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let now = (SESSION, GENERATION);
        let mut it = with(begin("surfaces", setting, &[Plugin::new(setting, ONE)]), ONE);
        it = publishes(it, "status", "status", STATUS);
        it = publishes(it, "card", "card", r#"{"title":"sidecert-card","markdown":"some text"}"#);
        it = publishes(it, "form", "form", FORM);
        it = publishes(it, "notification", "notification", r#"{"title":"sidecert-note"}"#);
        for name in ["html", "css", "script", "url"] {
            let payload = format!(r#"{{"title":"x","{name}":"x"}}"#);
            it = misfits(it, name, "a card has no such member", &params(name, "card", &payload, now));
        }
        it = misfits(it, "kind", "there is no such kind", &params("kind", "sidecert", STATUS, now));
        for (label, kind, payload) in DOCUMENTS {
            it = misfits(it, label, "its document does not fit", &params(label, kind, payload, now));
        }
        let prompt = params("prompt-kind", "prompt", QUESTION, now);
        let prompt = sights::request("prompt-kind", contract::UI_REQUEST, &prompt);
        it = it.raw("prompt-kind", "there is no such kind", prompt).fence();
        let document = params("stale-document", "status", "{}", (SESSION, STALE_GENERATION));
        it = misfits(it, "stale-document", "its document does not fit", &document);
        let generation = params("stale-generation", "status", STATUS, (SESSION, STALE_GENERATION));
        it = it.request("stale-generation", contract::UI_PUBLISH, &generation).answer("stale-generation");
        let session = params("stale-session", "status", STATUS, (STALE_SESSION, GENERATION));
        it = it.request("stale-session", contract::UI_PUBLISH, &session).answer("stale-session");
        let prompt = params("stale-prompt", "confirm", QUESTION, (SESSION, STALE_GENERATION));
        stop(it.request("stale-prompt", contract::UI_REQUEST, &prompt).fence())
    },
};

static RELOADED: ScriptDef = ScriptDef {
    name: "surface-of-an-old-generation",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = with(begin("surface-of-an-old-generation", setting, &[Plugin::new(setting, ONE)]), ONE);
        let it = it.step(ask("reload", r#"{"do":"reload"}"#)).step(outcome("reload"));
        let old = params("old", "status", STATUS, (SESSION, GENERATION));
        let it = it.step(Step::Guest { name: ONE.to_owned(), time: 2 });
        stop(it.request("old", contract::UI_PUBLISH, &old).answer("old"))
    },
};

static INCAPABLE: ScriptDef = ScriptDef {
    name: "surfaces-without-capability",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).capabilities(&["interceptors", "strategies", "providers"]);
        let it = with(begin("surfaces-without-capability", setting, &[one]), ONE);
        let surface = params("surface", "status", STATUS, (SESSION, GENERATION));
        let prompt = params("prompt", "confirm", QUESTION, (SESSION, GENERATION));
        let it = it.request("surface", contract::UI_PUBLISH, &surface).fence();
        stop(it.request("prompt", contract::UI_REQUEST, &prompt).fence())
    },
};

static ACTIONS: ScriptDef = ScriptDef {
    name: "actions",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = begin("actions", setting, &[Plugin::new(setting, ONE)]);
        let invoke = |action: &str| format!(r#"{{"do":"action","plugin":"{ONE}","action":"{action}"}}"#);
        let it = it.step(ask("declared", &invoke(ACTION))).step(outcome("declared"));
        stop(it.step(ask("undeclared", &invoke(UNDECLARED))).step(outcome("undeclared")))
    },
};

/// What the user gives with an action. Not every driver can, so it is given here alone.
static ARGS: ScriptDef = ScriptDef {
    name: "action-with-args",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = begin("action-with-args", setting, &[Plugin::new(setting, ONE)]);
        let args = r#"{"who":"Ada","many":"3"}"#;
        let what = format!(r#"{{"do":"action","plugin":"{ONE}","action":"{ACTION}","args":{args}}}"#);
        stop(it.step(ask("args", &what)).step(outcome("args")))
    },
};

/// An action that nobody declares.
const UNDECLARED: &str = "sidecert-none";

static FORMS: ScriptDef = ScriptDef {
    name: "forms",
    process: Process::Tour,
    needs: &[],
    build: |setting: &Setting<'_>| {
        let plugins = [Plugin::new(setting, ONE), Plugin::new(setting, "two")];
        let it = publishes(with(begin("forms", setting, &plugins), ONE), "form-one", "form", FORM);
        let it = publishes(with(it, "two"), "form-two", "form", FORM);
        let submit = r#"{"do":"submit","plugin":"two","surface":"form-two","values":{"name":"Ada"}}"#;
        stop(it.step(ask("submit", submit)).step(outcome("submit")))
    },
};

/// Prompts that the user answers: label and kind, payload, and the values that the driver gives.
const ASKED: [(&str, &str, &str); 4] = [
    ("confirm", QUESTION, r#"{"value":true}"#),
    ("input", r#"{"fields":[{"key":"answer","label":"Name","kind":"input"}]}"#, r#"{"answer":"Ada"}"#),
    (
        "select",
        r#"{"fields":[{"key":"answer","label":"One","kind":"select","options":["a","b"]}]}"#,
        r#"{"answer":"b"}"#,
    ),
    (
        "multiselect",
        r#"{"fields":[{"key":"answer","label":"Some","kind":"multiselect","options":["a","b"]}]}"#,
        r#"{"answer":["a","b"]}"#,
    ),
];

static PROMPTS: ScriptDef = ScriptDef {
    name: "prompts",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let it = with(begin("prompts", setting, &[Plugin::new(setting, ONE)]), ONE);
        let it = ASKED.iter().fold(it, |it, (kind, payload, values)| {
            prompted(it, kind, kind, payload, &format!(r#""values":{values}"#))
        });
        stop(prompted(it, "dismissed", "confirm", QUESTION, r#""cancelled":true"#))
    },
};

/// Asks the user something, and lets the driver do this about it.
pub(super) fn prompted(script: Script, label: &str, kind: &str, payload: &str, does: &str) -> Script {
    let behind = format!("behind-{label}");
    let given = format!("given-{label}");
    let does = format!(r#"{{"do":"answer","prompt":{{"$capture":"prompt"}},{does}}}"#);
    let nobody = format!(r#"{{"do":"answer","prompt":{},"cancelled":true}}"#, quoted("sidecert-none"));
    let asked = params(label, kind, payload, (SESSION, GENERATION));
    let script = script.request(label, contract::UI_REQUEST, &asked).fence();
    let script = script.step(ask(&behind, &nobody)).step(outcome(&behind));
    let script = script.step(ask(&given, &does)).step(outcome(&given));
    script.step(Step::Fence { or_end: false })
}

// ---- sights ----

/// What became of a surface or a prompt.
fn fate(x: &Exchange<'_>, label: &str) -> Sight {
    let shown = x.told(Told::Shown).find(|(_, node)| member(*node, "surface") == label);
    match x.answer_to(label) {
        Some(Answer { outcome: Outcome::Error { .. }, at, .. }) => match became(x, label) {
            Sight::Saw(UNKNOWN, _) => {
                Sight::Undecided(Why::NotProvoked("this host has nothing to show surfaces on".into()))
            }
            _ => Sight::Saw(ERROR, at),
        },
        Some(Answer { outcome: Outcome::Result(result), at, .. }) => {
            let says = |name: &str| result.get(name).and_then(|it| it.as_bool());
            match (says("accepted"), says("cancelled"), shown) {
                (Some(false), _, None) | (None, Some(true), None) => Sight::Saw(DECLINED, at),
                (Some(true), ..) => Sight::Saw(TAKEN, at),
                _ => Sight::SawOther { at, actual: format!("{label}: the result {}", short(result.raw())) },
            }
        }
        None => x.nothing_came(label, &format!("{label}: no answer, though later requests were answered")),
    }
}

/// The first fate that is not this one, or else the last. What was refused with an error was declined as well.
fn all_are(x: &Exchange<'_>, labels: &[&str], seen: Seen) -> Sight {
    let mut last = x.nothing_came("", "");
    for label in labels {
        match fate(x, label) {
            Sight::Saw(it, at) if it == seen || (it == ERROR && seen == DECLINED) => {
                last = Sight::Saw(it, at);
            }
            Sight::Saw(it, at) => return Sight::SawOther { at, actual: format!("{label}: {}", it.0) },
            other => return other,
        }
    }
    last
}

fn surfaces_name_plugin(x: &Exchange<'_>) -> Sight {
    let surfaces = x.told(Told::Shown).filter(|(_, node)| member(*node, "as") == "surface");
    let ours = surfaces.filter(|(_, node)| ["status", "card", "form"].contains(&&*member(*node, "surface")));
    let mut last = None;
    for (entry, node) in ours {
        let plugin = member(node, "plugin");
        if plugin != ONE {
            return Sight::SawOther { at: entry.at, actual: format!("the plugin {:?}", short(&plugin)) };
        }
        last = Some(entry.at);
    }
    match (last, x.cut) {
        (Some(at), _) => Sight::Saw(NAMED, at),
        (None, Some(_)) => super::never_came(x, "status"),
        (None, None) => Sight::Undecided(Why::NotProvoked("no surface was shown".into())),
    }
}

/// A prompt of a guest that may have none: what is answered at the end only was asked.
fn prompt_of_incapable(x: &Exchange<'_>) -> Sight {
    let Some(sent) = x.sent("prompt") else { return x.nothing_came("prompt", "") };
    let settled = x.told(Told::Settled).map(|(entry, _)| entry.at).find(|at| *at > sent.at);
    match (x.answer_to("prompt"), settled) {
        (answer, Some(settled)) if answer.is_none_or(|answer| answer.at > settled) => {
            Sight::Saw(TAKEN, settled)
        }
        _ => fate(x, "prompt"),
    }
}

/// A reload that begins no other generation makes nothing old.
fn old_surface(x: &Exchange<'_>) -> Sight {
    let generation = |params: Option<Node<'_>>| params?.get("session")?.get("generation")?.as_u64();
    let told: Vec<_> = x.asked(contract::INITIALIZE).map(|(_, params)| generation(params)).collect();
    match told[..] {
        [Some(first), .., Some(last)] if first < last => all_are(x, &["old"], DECLINED),
        [_, _, ..] => not_provoked("began a newer generation"),
        _ => match came(x, "reload") {
            Sight::Saw(..) => not_provoked("started the guest again"),
            other => other,
        },
    }
}

fn declared_action(x: &Exchange<'_>) -> Sight {
    let of = |params: Option<Node<'_>>| params.is_some_and(|it| member(it, "actionId") == ACTION);
    if let Some((entry, _)) = x.asked(contract::UI_ACTION).find(|(_, params)| of(*params)) {
        return Sight::Saw(SENT, entry.at);
    }
    match came(x, "declared") {
        Sight::Saw(seen, at) => {
            Sight::SawOther { at, actual: format!("the guest was not asked, and {}", seen.0) }
        }
        other => other,
    }
}

fn args_handed_on(x: &Exchange<'_>) -> Sight {
    let Some((entry, params)) = x.asked(contract::UI_ACTION).next() else {
        return match came(x, "args") {
            Sight::Saw(..) => not_provoked("asked the guest"),
            other => other,
        };
    };
    let args = params.and_then(|it| it.get("args"));
    let is = |name: &str, text: &str| args.and_then(|it| it.get(name)?.as_str()).is_some_and(|it| it == text);
    if is("who", "Ada") && is("many", "3") {
        return Sight::Saw(HANDED_ON, entry.at);
    }
    let args = args.map_or("none", |it| it.raw());
    Sight::SawOther { at: entry.at, actual: format!("the args {}", short(args)) }
}

fn undeclared_action(x: &Exchange<'_>) -> Sight {
    let of = |params: Option<Node<'_>>| params.is_some_and(|it| member(it, "actionId") == UNDECLARED);
    if let Some((entry, _)) = x.asked(contract::UI_ACTION).find(|(_, params)| of(*params)) {
        return Sight::SawOther { at: entry.at, actual: "the guest was asked".to_owned() };
    }
    match came(x, "undeclared") {
        // A host may take it for a text to its model.
        Sight::Saw(_, at) => Sight::Saw(NOT_SENT, at),
        other => other,
    }
}

fn form_reaches_owner(x: &Exchange<'_>) -> Sight {
    let submits: Vec<_> = x.asked(contract::UI_SUBMIT).collect();
    let Some((entry, params)) = submits.first() else {
        return match came(x, "submit") {
            Sight::Saw(seen, at) => {
                Sight::SawOther { at, actual: format!("nobody was told, and {}", seen.0) }
            }
            other => other,
        };
    };
    let owner = x.launches("two").contains(&entry.event.link);
    let named = params.is_some_and(|it| {
        let value = it.pointer("/values/name").and_then(|it| it.as_str());
        member(it, "surfaceId") == "form-two" && value.as_deref() == Some("Ada")
    });
    let actual = match (submits.len(), owner, named) {
        (1, true, true) => return Sight::Saw(REACHED, entry.at),
        (_, false, _) => "another plugin was told",
        (_, true, false) => "its surface or its values are others",
        _ => "it was told several times",
    };
    Sight::SawOther { at: entry.at, actual: actual.to_owned() }
}

/// The result of a prompt, if the user was asked.
fn result<'x>(x: &'x Exchange<'_>, label: &str) -> Result<(Node<'x>, u64), Sight> {
    let given = format!("given-{label}");
    let shown = x.told(Told::Shown).any(|(_, node)| member(node, "as") == "prompt");
    match (x.answer_to(label), came(x, &given)) {
        (_, Sight::Undecided(why)) => Err(Sight::Undecided(why)),
        (None, _) if !shown => {
            Err(Sight::Undecided(Why::NotProvoked("this host shows no prompts to its driver".into())))
        }
        _ => match became(x, label) {
            Sight::Saw(UNKNOWN, _) => {
                Err(Sight::Undecided(Why::NotProvoked("this host has nothing to show prompts on".into())))
            }
            _ => result_of(x, label),
        },
    }
}

fn prompts_answered(x: &Exchange<'_>) -> Sight {
    let mut last = x.nothing_came("confirm", "");
    for (label, ..) in ASKED {
        last = match result(x, label) {
            Ok((result, at)) if result.get("cancelled").is_some() => Sight::Saw(ANSWERED, at),
            Ok((result, at)) => {
                return Sight::SawOther {
                    at,
                    actual: format!("{label}: the result {}", short(result.raw())),
                };
            }
            Err(sight) => return sight,
        };
    }
    last
}

fn answered_with(x: &Exchange<'_>, label: &str, fits: impl Fn(Node<'_>) -> bool, seen: Seen) -> Sight {
    match result(x, label) {
        Ok((result, at)) if result.get("values").is_some_and(fits) => Sight::Saw(seen, at),
        Ok((result, at)) => {
            Sight::SawOther { at, actual: format!("{label}: the result {}", short(result.raw())) }
        }
        Err(sight) => sight,
    }
}

fn answers_of_their_kind(x: &Exchange<'_>) -> Sight {
    let of = |label: &str, key: &str, fits: fn(Node<'_>) -> bool| {
        answered_with(x, label, |values| values.get(key).is_some_and(fits), OF_ITS_KIND)
    };
    let text = |node: Node<'_>| node.as_str().is_some();
    let list =
        |node: Node<'_>| node.raw().starts_with('[') && node.elements().all(|it| it.as_str().is_some());
    let sights = [
        of("confirm", "value", |node| node.as_bool().is_some()),
        of("input", "answer", text),
        of("select", "answer", text),
        of("multiselect", "answer", list),
    ];
    let other = sights.iter().find(|sight| !matches!(sight, Sight::Saw(..)));
    other.unwrap_or(&sights[3]).clone()
}

fn dismissed(x: &Exchange<'_>) -> Sight {
    match result(x, "dismissed") {
        Ok((result, at)) if result.get("cancelled").and_then(|it| it.as_bool()) == Some(true) => {
            Sight::Saw(CANCELLED, at)
        }
        Ok((result, at)) => Sight::SawOther { at, actual: format!("the result {}", short(result.raw())) },
        Err(sight) => sight,
    }
}
