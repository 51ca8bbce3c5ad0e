//! "Interception", as far as it is about the owners of slots, and what guests are told of what has happened.

use std::collections::BTreeSet;

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Exchange, short};
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::reasonix::contract::{self, Limits, point};
use sidecert_proto::reasonix::plugin::{Plugin, start};
use sidecert_proto::reasonix::sidecar;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must, should};
use sidecert_proto::rpc::Envelope;
use sidecert_proto::script::{Need, Process, Reply, SLOW, Script, ScriptDef, Setting, Step, Template};
use sidecert_proto::transcript::{Kind, Told};
use sidecert_proto::verdict::Sight;

use super::interception::{
    COMPACTION, COMPACTION_POINTS, DID_NOT_RUN, EVERY_POINT, FAILS, FAILS_OBSERVED, INTERCEPTION, LONG_TIME,
    LS, OWNERS_ONLY, RAN, TOOLS, WIRED, times_are,
};
use super::rulings::{
    BLOCK, CONTINUE, HURRY, all_came, asks_at, came, context_of, does, errs_on, frames_at, input, is_to,
    judged, model_heard, model_says, not_provoked, opened, ran_as, replace, rules_on, span, stopped, tour,
    wants_tool,
};
use super::{
    DONE, FAILED, ONE, REFUSED, TURN, ask, awaits, guest, intercept, observed, outcome, say,
    session as begin, specified, stop, turn,
};

const LIFECYCLE: Cite = Cite::Seed("生命周期", "Lifecycle");
const EVENT: Cite = Cite::Schema("/$defs/EventParams");

const ONE_OWNER: Seen = Seen("each slot has one owner at most");
const CONFLICT: Seen = Seen("it was taken for two claims to one slot");
const OWNER_LAST: Seen = Seen("the owner ruled last, on what the others had made of it");
const OWNER_NOT_ASKED: Seen = Seen("the owner was not asked");
const FOLLOWED: Seen = Seen("the owner was asked, and what it said was done");
const NEVER_ASKED: Seen = Seen("the owner was never asked");
const NO_DEFAULT: Seen = Seen("it failed, and the model was not asked");
const PROMPT_USED: Seen = Seen("the model was given the prompt of the owner");
const ORIGINAL: Seen = Seen("what was there before was shown");
const NOTIFIED: Seen = Seen("each event is a notification");
const TOLD_ALL: Seen = Seen("an event at each of these points");
const TOLD_MOST: Seen = Seen("an event at each of these points but those of inputs and of saved sessions");
const FINAL: Seen = Seen("the event has the payload as it was ruled");
const TOLD_ONCE: Seen = Seen("one event");

const ASKED_ONCE: Seen =
    Seen("one intercept before the first turn, and one event with the prompt of the owner");
const DROP_TOLD: Seen = Seen("the user was told, or the log has it");

const SPARED: Seen = Seen("all turns were done, and the guest is asked again once it reads");

const SESSION_POINTS: [&str; 5] = [
    point::SESSION_START,
    point::SESSION_LOAD,
    point::SESSION_SAVE,
    point::SESSION_ROTATE,
    point::SESSION_END,
];
/// Points at which the released host tells nothing.
const UNTOLD: [&str; 2] = [point::INPUT_RECEIVE, point::SESSION_SAVE];

const ADMITTED: &[Accepts] = &[specified(DONE)];
const ODD_REFUSED: &[Accepts] = &[observed(REFUSED)];
const FAILS_OR_SHOWS: &[Accepts] = &[specified(FAILED), observed(ORIGINAL)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-slots/one-owner", Host)
        .says("Two guests that claim the same slot cannot be had together.", &[INTERCEPTION])
        .accepts(&[specified(ONE_OWNER)])
        .checked(After(&CLAIMS, one_owner)),
    should("reasonix/host-slots/claimed-twice", Host)
        .says("A guest that claims a slot twice is at odds with itself.", &[])
        .accepts(&[observed(CONFLICT)])
        .checked(After(&CLAIMS, |x| conflict(x, "twice", CONFLICT))),
    must("reasonix/host-slots/slots-claimable", Host)
        .says("Each slot of the protocol can be claimed, those of tools and models included.", &[INTERCEPTION])
        .accepts(ADMITTED)
        .checked(After(&NAMES, |x| all_came(x, &labels(&SLOTS), ADMITTED))),
    must("reasonix/host-slots/odd-slots-refused", Host)
        .says("A guest that claims what is no slot is not taken.", &[])
        .accepts(ODD_REFUSED)
        .checked(After(&NAMES, |x| all_came(x, &labels(&NO_SLOTS), ODD_REFUSED))),
    must("reasonix/host-slots/owner-last", Host)
        .says("The owner of a slot is asked after all others, and its ruling is the last one.", &[INTERCEPTION])
        .accepts(&[specified(OWNER_LAST)])
        .checked(After(&OWNERS, owner_last)),
    must("reasonix/host-slots/owner-not-after-block", Host)
        .says("The owner of a slot is not asked about what was blocked before.", &[])
        .accepts(&[observed(OWNER_NOT_ASKED)])
        .checked(After(&OWNERS, owner_not_after_block)),
    must("reasonix/host-slots/owner-failure-fails", Host)
        .says("Where the owner of a slot fails, what it was asked about fails.", &[INTERCEPTION])
        .accepts(FAILS)
        .checked(After(&OWNERS, |x| all_came(x, &["error", "misfit"], FAILS))),
    must("reasonix/host-slots/late-owner-fails", Host)
        .says("Where the owner of a slot does not answer in time, what it was asked about fails.", &[INTERCEPTION])
        .accepts(FAILS)
        .checked(After(&CRASH, |x| came(x, "late"))),
    must("reasonix/host-slots/crashed-owner-fails", Host)
        .says(
            "When the owner of a slot has crashed, what it owns fails: the host does not fall back on its own way.",
            &[LIFECYCLE, INTERCEPTION],
        )
        .accepts(&[specified(NO_DEFAULT)])
        .checked(After(&CRASH, crashed_owner_fails)),
    must("reasonix/host-slots/owner-continues", Host)
        .says("An owner may leave things as they are.", &[])
        .accepts(&[observed(FOLLOWED)])
        .checked(After(&OWNERS, owner_continues)),
    must("reasonix/host-slots/owner-blocks", Host)
        .says("An owner may block.", &[])
        .accepts(&[observed(super::BLOCKED), observed(FAILED)])
        .checked(After(&OWNERS, |x| stopped(x, "blocked"))),
    must("reasonix/host-slots/owner-required", Host)
        .says("A guest that owns a slot counts as required at every point.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&OWNERS, |x| came(x, "elsewhere"))),
    must("reasonix/host-slots/permission-owner-denies", Host)
        .says("The owner of the permissions can deny a tool.", &[INTERCEPTION])
        .accepts(&[specified(DID_NOT_RUN)])
        .checked(After(&TOOL_OWNERS, |x| ran_as(x, "denied", "plain", false, DID_NOT_RUN))),
    must("reasonix/host-slots/permission-owner-allows", Host)
        .says("The owner of the permissions has the last word on a tool: it can allow it as well.", &[INTERCEPTION])
        .accepts(&[specified(RAN), observed(DID_NOT_RUN)])
        .checked(After(&TOOL_OWNERS, permission_owner_allows)),
    must("reasonix/host-slots/tool-owner-rules", Host)
        .says("The owner of a tool is asked when it is to run, and its ruling is the last one.", &[INTERCEPTION])
        .accepts(&[specified(FOLLOWED), observed(NEVER_ASKED)])
        .checked(After(&TOOL_OWNERS, tool_owner_rules)),
    must("reasonix/host-slots/system-prompt-owner", Host)
        .says("The owner of the system prompt is asked before the first turn.", &[])
        .accepts(&[observed(PROMPT_USED)])
        .checked(After(&SURFACES, |x| model_heard(x, "first", "sidecert-prompt", PROMPT_USED))),
    must("reasonix/host-slots/prompt-asked-once", Host)
        .says("The owner of the system prompt is asked once, and told once what came of it.", &[])
        .accepts(&[observed(ASKED_ONCE)])
        .checked(After(&SURFACES, prompt_asked_once)),
    must("reasonix/host-slots/prompt-time", Host)
        .says("The owner of the system prompt has 30 s for it.", &[INTERCEPTION])
        .accepts(&[specified(LONG_TIME)])
        .checked(After(&SURFACES, |x| times_are(x, "two", &[point::SYSTEM_PROMPT_BUILD], 30_000, LONG_TIME))),
    must("reasonix/host-slots/session-time", Host)
        .says("The owner of the session policy has 30 s at each point of a session.", &[INTERCEPTION])
        .accepts(&[specified(LONG_TIME)])
        .checked(After(&POLICY, |x| times_are(x, "two", &SESSION_POINTS, 30_000, LONG_TIME))),
    must("reasonix/host-slots/frontend-owner-failure-fails", Host)
        .says("Where the owner of what is shown fails or gives it another kind, it fails.", &[INTERCEPTION])
        .accepts(FAILS_OR_SHOWS)
        .checked(After(&SURFACES, frontend_owner)),
    must("reasonix/host-slots/phases-match", Host)
        .says("A session that is replaced must be in the phase of the point.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&POLICY, |x| came(x, "rotate"))),
    must("reasonix/host-events/notifications", Host)
        .says("What has happened is told in notifications: no answer is asked for.", &[INTERCEPTION, EVENT])
        .accepts(&[specified(NOTIFIED)])
        .checked(After(&EVERY_POINT, notifications)),
    must("reasonix/host-events/every-point-told", Host)
        .says("A guest is told what has passed each point that it intercepts.", &[INTERCEPTION])
        .accepts(&[specified(TOLD_ALL), observed(TOLD_MOST)])
        .checked(After(&EVERY_POINT, every_point_told)),
    must("reasonix/host-events/compaction-told", Host)
        .says("A guest is told what is compacted, and what comes of it.", &[INTERCEPTION])
        .accepts(&[specified(TOLD_ALL)])
        .checked(After(&COMPACTION, |x| told_after(x, "compact", &COMPACTION_POINTS))),
    must("reasonix/host-events/rotation-told", Host)
        .says("A guest is told when another conversation begins.", &[INTERCEPTION])
        .accepts(&[specified(TOLD_ALL)])
        .checked(After(&ROTATION, |x| told_after(x, "rotate", &[point::SESSION_ROTATE]))),
    must("reasonix/host-events/final-payload", Host)
        .says("An event has the payload as the guests and the owner have left it.", &[])
        .accepts(&[observed(FINAL)])
        .checked(After(&OWNERS, final_payload)),
    must("reasonix/host-events/told-once", Host)
        .says("A guest that both intercepts a point and owns its slot is told once.", &[])
        .accepts(&[observed(TOLD_ONCE)])
        .checked(After(&OWNERS, told_once)),
    must("reasonix/host-events/slow-reader-spared", Host)
        .says("A guest that does not read for a while holds nothing up, and loses events at most.", &[INTERCEPTION])
        .accepts(&[specified(SPARED)])
        .checked(After(&SLOW_READER, slow_reader_spared)),
    should("reasonix/host-events/dropped-told", Host)
        .says("The user is told of a guest whose events are dropped because it does not read them.", &[INTERCEPTION])
        .accepts(&[specified(DROP_TOLD)])
        .checked(After(&SLOW_READER, dropped_told)),
    must("reasonix/host-events/read-only", Host)
        .says("What a guest says to an event changes nothing.", &[INTERCEPTION])
        .accepts(&[specified(RAN)])
        .checked(After(&TOOLS, |x| ran_as(x, "held", "plain", true, RAN))),
];

// ---- scripts ----

/// Begins a session under a label of its own, takes a turn, and ends it. A host that starts its guests with the turn says
/// only then what it does not take.
fn trial(script: Script, setting: &Setting<'_>, label: &str, plugins: &[Plugin]) -> Script {
    let Step::Ask { what, .. } = start(setting, plugins, "") else { return script };
    let script = script.step(Step::Ask { label: label.to_owned(), what }).step(outcome(label));
    stop(turn(script, &format!("{label}-turn"), "sidecert-claims"))
}

static CLAIMS: ScriptDef = ScriptDef {
    name: "claims-to-slots",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let of = |name: &str, slot: &str| Plugin::new(setting, name).replaces(&[slot]);
        let mut it = trial(Script::new("claims-to-slots"), setting, "alone", &[Plugin::new(setting, ONE)]);
        for (label, slot) in CONTESTED {
            it = trial(it, setting, label, &[of(ONE, slot), of("two", slot)]);
        }
        let twice = Plugin::new(setting, ONE).replaces(&["context", "context"]);
        it = trial(it, setting, "twice", &[twice]);
        trial(it, setting, "apart", &[of(ONE, "tool:ls"), of("two", "tool:cat")])
    },
};

const CONTESTED: [(&str, &str); 3] =
    [("context", "context"), ("tool", "tool:ls"), ("model", "provider:sample/echo")];

/// A slot of each form.
const SLOTS: [&str; 11] = [
    "system_prompt",
    "context",
    "provider_request",
    "provider_response",
    "compaction",
    "session_policy",
    "permission",
    "frontend_events",
    "tool:ls",
    "provider:sample/echo",
    "provider:plugin/one/sample/echo",
];
/// What is none.
const NO_SLOTS: [&str; 5] = ["tool:", "tool:a b", "provider:sample", "provider:one/sample/echo", "model"];

/// The labels under which these slots are asked for.
fn labels(slots: &[&'static str]) -> Vec<&'static str> {
    slots.to_vec()
}

static NAMES: ScriptDef = ScriptDef {
    name: "names-of-slots",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let admit = |script: Script, slot: &&str| {
            let plugin = Plugin::new(setting, ONE).replaces(&[*slot]).json();
            script.step(ask(slot, &format!(r#"{{"do":"admit","plugin":{plugin}}}"#))).step(outcome(slot))
        };
        SLOTS.iter().chain(&NO_SLOTS).fold(Script::new("names-of-slots"), admit)
    },
};

static OWNERS: ScriptDef = ScriptDef {
    name: "owners-of-slots",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::CONTEXT_PREPARE]);
        // It says that it is optional: as the owner of slots it is not.
        let two = Plugin::new(setting, "two").optional();
        let two = two.intercepts(&[point::INPUT_RECEIVE, point::PROVIDER_REQUEST]);
        let two = two.replaces(&["context", "provider_request"]);
        let mut it = begin("owners-of-slots", setting, &[one, two]);
        let context = intercept(point::CONTEXT_PREPARE);
        it = rules_on(it, ONE, Some(1), &context, &replace(&context_of("sidecert-of-chain")));
        it = rules_on(it, ONE, Some(4), &context, CONTINUE);
        it = rules_on(it, ONE, Some(1), &context, BLOCK);
        it = rules_on(it, "two", Some(1), &context, &replace(&context_of("sidecert-of-owner")));
        it = rules_on(it, "two", Some(1), &context, CONTINUE);
        it = rules_on(it, "two", Some(1), &context, BLOCK);
        it = errs_on(it, "two", Some(1), &context);
        it = rules_on(it, "two", Some(1), &context, &replace(r#"{"messages":1}"#));
        it = errs_on(it, "two", None, &input("sidecert-elsewhere"));
        it = turn(turn(it, TURN, "sidecert-both"), "continued", "sidecert-as-it-is");
        it = turn(turn(it, "blocked", "sidecert-block"), "error", "sidecert-error");
        it = turn(turn(it, "misfit", "sidecert-misfit"), "chain", "sidecert-chain");
        stop(turn(it, "elsewhere", "sidecert-elsewhere"))
    },
};

static CRASH: ScriptDef = ScriptDef {
    name: "owner-late-and-gone",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let two = Plugin::new(setting, "two").replaces(&["context"]).with("timeoutMillis", HURRY);
        let mut it = begin("owner-late-and-gone", setting, &[Plugin::new(setting, ONE), two]);
        let context = intercept(point::CONTEXT_PREPARE);
        it = does(it, "two", None, &context, Reply::Never);
        it = say(it, "late", "sidecert-late").step(guest("two")).step(awaits(&context)).step(outcome("late"));
        it = say(it, "crash", "sidecert-crash").step(awaits(&context)).step(Step::Kill);
        stop(turn(it.step(outcome("crash")), "gone", "sidecert-gone"))
    },
};

static TOOL_OWNERS: ScriptDef = ScriptDef {
    name: "owners-of-tools",
    process: Process::Tour,
    needs: &[Need::Declared("tool/ls")],
    build: |setting| {
        let two = Plugin::new(setting, "two").replaces(&["permission"]);
        let three = Plugin::new(setting, "three").replaces(&["tool:ls"]);
        let mut it = begin("owners-of-tools", setting, &[Plugin::new(setting, ONE), two, three]);
        let permission = intercept(point::PERMISSION_DECISION);
        let before = intercept(point::TOOL_BEFORE);
        it = rules_on(it, "two", Some(1), &permission, CONTINUE);
        it = rules_on(it, "two", Some(1), &permission, r#"{"decision":"deny"}"#);
        it = rules_on(it, "two", Some(1), &permission, r#"{"decision":"allow"}"#);
        it = rules_on(it, "three", Some(3), &before, CONTINUE);
        it = rules_on(it, "three", Some(1), &before, BLOCK);
        for _ in 0..4 {
            it = wants_tool(it, LS.0, LS.1);
        }
        it = turn(turn(it, "plain", "sidecert-tool"), "denied", "sidecert-tool");
        it = turn(it, "allowed", "sidecert-tool");
        stop(turn(it, "owned", "sidecert-tool"))
    },
};

static SURFACES: ScriptDef = ScriptDef {
    name: "owner-of-prompt-and-surfaces",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let two = Plugin::new(setting, "two").replaces(&["system_prompt", "frontend_events"]);
        let mut it = begin("owner-of-prompt-and-surfaces", setting, &[Plugin::new(setting, ONE), two]);
        let prompt =
            format!(r#"{{"prompt":"sidecert-prompt","workspaceRoot":{}}}"#, quoted(setting.workspace));
        it = rules_on(it, "two", None, &intercept(point::SYSTEM_PROMPT_BUILD), &replace(&prompt));
        it = errs_on(it, "two", None, &piece("sidecert-piece-one"));
        let another = replace(r#"{"kind":"sidecert","text":"sidecert-other"}"#);
        it = rules_on(it, "two", None, &piece("sidecert-piece-two"), &another);
        it = model_says(it, &[sidecar::text_chunk("sidecert-piece-one")]);
        it = model_says(it, &[sidecar::text_chunk("sidecert-piece-two")]);
        stop(turn(turn(it, "first", "sidecert-begin"), "second", "sidecert-begin"))
    },
};

/// An intercept of something that is shown, where this is in its text.
fn piece(text: &str) -> String {
    let (method, at) = (contract::INTERCEPT, point::FRONTEND_EVENT);
    format!(
        r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"event":"{at}","payload":{{"text":{{"$like":"*{text}*"}}}}}}}}"#
    )
}

static POLICY: ScriptDef = ScriptDef {
    name: "owner-of-sessions",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let two = Plugin::new(setting, "two").replaces(&["session_policy"]);
        let mut it = begin("owner-of-sessions", setting, &[Plugin::new(setting, ONE), two]);
        let wrong = replace(r#"{"sessionPath":"x","phase":"start"}"#);
        it = rules_on(it, "two", None, &intercept(point::SESSION_ROTATE), &wrong);
        it = turn(it, TURN, "sidecert-session");
        stop(it.step(ask("rotate", r#"{"do":"new-session"}"#)).step(outcome("rotate")))
    },
};

static ROTATION: ScriptDef = ScriptDef {
    name: "another-conversation",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::SESSION_ROTATE]);
        let it = turn(begin("another-conversation", setting, &[one]), TURN, "sidecert-rotate");
        stop(it.step(ask("rotate", r#"{"do":"new-session"}"#)).step(outcome("rotate")))
    },
};

/// How often it is told something that it does not read.
const UNREAD: u32 = 20;

static SLOW_READER: ScriptDef = ScriptDef {
    name: "guest-does-not-read",
    process: Process::Own,
    needs: &[Need::Exercise(SLOW)],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::CONTEXT_PREPARE]).with("priority", "10");
        // It answers nothing meanwhile, so it has little time each time that it is asked.
        let two = Plugin::new(setting, "two")
            .optional()
            .with("timeoutMillis", "50")
            .capabilities(&["interceptors"]);
        let two = two.intercepts(&[point::INPUT_RECEIVE, point::CONTEXT_PREPARE]);
        let mut it = begin("guest-does-not-read", setting, &[one, two]);
        let long = "x".repeat(Limits::of(setting.contract).externalize_field_bytes / 2);
        it = rules_on(it, ONE, None, &intercept(point::CONTEXT_PREPARE), &replace(&context_of(&long)));
        it = turn(it, TURN, "sidecert-reads").step(guest("two")).step(Step::Hold);
        let what = Template::new(r#"{"do":"turn","text":"sidecert-unread"}"#);
        let steps = vec![Step::Ask { label: "unread".to_owned(), what }, outcome("unread")];
        it = it.step(Step::Repeat { times: UNREAD, steps }).step(guest("two")).step(Step::Release).fence();
        stop(turn(it, "read", "sidecert-read"))
    },
};

// ---- judges ----

/// Whether a session was not begun, or its first turn not taken.
fn conflict(x: &Exchange<'_>, label: &str, seen: Seen) -> Sight {
    let begun = came(x, label);
    let came = match begun {
        Sight::Saw(DONE, _) => came(x, &format!("{label}-turn")),
        other => other,
    };
    match came {
        Sight::Saw(FAILED | REFUSED, at) => Sight::Saw(seen, at),
        Sight::Saw(other, at) => Sight::SawOther { at, actual: format!("{label}: {}", other.0) },
        other => other,
    }
}

fn one_owner(x: &Exchange<'_>) -> Sight {
    if !matches!(came(x, "alone-turn"), Sight::Saw(DONE, _)) {
        return not_provoked("took a turn with a guest that owns nothing");
    }
    for (label, _) in CONTESTED {
        let sight = conflict(x, label, ONE_OWNER);
        if !matches!(sight, Sight::Saw(..)) {
            return sight;
        }
    }
    match came(x, "apart") {
        Sight::Saw(DONE, at) => Sight::Saw(ONE_OWNER, at),
        Sight::Saw(other, at) => Sight::SawOther { at, actual: format!("two tools: {}", other.0) },
        other => other,
    }
}

fn owner_last(x: &Exchange<'_>) -> Sight {
    judged(span(x, TURN).map(|within| {
        let mut asked = asks_at(x, point::CONTEXT_PREPARE)
            .filter(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, "two"));
        match asked.next() {
            None => Sight::SawOther { at: *within.end(), actual: "the owner was not asked".to_owned() },
            Some((entry, params)) if !params.raw().contains("sidecert-of-chain") => {
                let payload = params.get("payload").map_or("none", Node::raw);
                Sight::SawOther { at: entry.at, actual: format!("the payload {}", short(payload)) }
            }
            Some(_) => model_heard(x, TURN, "sidecert-of-owner", OWNER_LAST),
        }
    }))
}

fn owner_continues(x: &Exchange<'_>) -> Sight {
    judged(span(x, "continued").map(|within| {
        let mut asked = asks_at(x, point::CONTEXT_PREPARE);
        if asked.any(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, "two")) {
            return model_heard(x, "continued", "sidecert-as-it-is", FOLLOWED);
        }
        Sight::SawOther { at: *within.end(), actual: "the owner was not asked".to_owned() }
    }))
}

fn owner_not_after_block(x: &Exchange<'_>) -> Sight {
    judged(span(x, "chain").map(|within| {
        let asked = |name| {
            let mut all = asks_at(x, point::CONTEXT_PREPARE).filter(|(entry, _)| within.contains(&entry.at));
            all.find(|(entry, _)| is_to(x, entry, name)).map(|(entry, _)| entry.at)
        };
        match (asked(ONE), asked("two")) {
            (None, _) => not_provoked("asked the guest that blocks"),
            (_, Some(at)) => Sight::SawOther { at, actual: "the owner was asked".to_owned() },
            (Some(_), None) => Sight::Saw(OWNER_NOT_ASKED, *within.end()),
        }
    }))
}

fn crashed_owner_fails(x: &Exchange<'_>) -> Sight {
    let mut last = not_provoked("took a turn");
    for label in ["crash", "gone"] {
        last = judged(span(x, label).map(|within| match (opened(x, &within).is_empty(), came(x, label)) {
            (false, _) => {
                Sight::SawOther { at: *within.end(), actual: format!("{label}: the model was asked") }
            }
            (true, Sight::Saw(FAILED, at)) => Sight::Saw(NO_DEFAULT, at),
            (true, other) => other,
        }));
        if !matches!(last, Sight::Saw(NO_DEFAULT, _)) {
            return last;
        }
    }
    last
}

/// What became of a tool that the owner of the permissions allowed: the released host takes that for a fault.
fn permission_owner_allows(x: &Exchange<'_>) -> Sight {
    judged(span(x, "allowed").map(|within| {
        let mut asked = asks_at(x, point::PERMISSION_DECISION)
            .filter(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, "two"));
        if asked.next().is_none() {
            let actual = "the owner was not asked".to_owned();
            return Sight::SawOther { at: *within.end(), actual };
        }
        let ran = ran_as(x, "allowed", "plain", true, RAN);
        if matches!(ran, Sight::SawOther { .. }) {
            return ran_as(x, "allowed", "plain", false, DID_NOT_RUN);
        }
        ran
    }))
}

fn tool_owner_rules(x: &Exchange<'_>) -> Sight {
    judged(span(x, "owned").map(|within| {
        let mut asked = asks_at(x, point::TOOL_BEFORE).filter(|(entry, _)| is_to(x, entry, "three"));
        match asked.next() {
            None => Sight::Saw(NEVER_ASKED, *within.end()),
            Some(_) => ran_as(x, "owned", "plain", false, FOLLOWED),
        }
    }))
}

/// What came of turns whose text an owner did not let pass as it must.
fn frontend_owner(x: &Exchange<'_>) -> Sight {
    let mut last = not_provoked("asked the owner");
    for (label, text) in [("first", "sidecert-piece-one"), ("second", "sidecert-piece-two")] {
        let sight = judged(span(x, label).map(|within| {
            let shown = x
                .told(Told::Shown)
                .any(|(entry, shown)| within.contains(&entry.at) && shown.raw().contains(text));
            let said = x.outcome(label).is_some_and(|(_, outcome)| outcome.raw().contains(text));
            match came(x, label) {
                Sight::Saw(DONE, at) if shown || said => Sight::Saw(ORIGINAL, at),
                Sight::Saw(FAILED, at) => Sight::Saw(FAILED, at),
                Sight::Saw(other, at) => {
                    Sight::SawOther { at, actual: format!("{}, and the text was not shown", other.0) }
                }
                other => other,
            }
        }));
        match &sight {
            Sight::Saw(FAILED, _) if matches!(last, Sight::Saw(..)) => {}
            Sight::Saw(..) => last = sight,
            _ => return sight,
        }
    }
    last
}

fn notifications(x: &Exchange<'_>) -> Sight {
    judged(tour(x).map(|_| {
        let mut last = not_provoked("told an event");
        for (entry, said) in x.from_target() {
            match &said.envelope {
                Ok(Envelope::Notification { method, .. }) if method == contract::EVENT => {
                    last = Sight::Saw(NOTIFIED, entry.at);
                }
                Ok(envelope) if envelope.method() == Some(contract::EVENT) => {
                    return Sight::SawOther { at: entry.at, actual: "an event under an id".to_owned() };
                }
                _ => {}
            }
        }
        last
    }))
}

fn every_point_told(x: &Exchange<'_>) -> Sight {
    judged(tour(x).map(|within| {
        let points = WIRED.iter().chain(&OWNERS_ONLY);
        let missing: BTreeSet<&str> =
            points.copied().filter(|at| frames_at(x, contract::EVENT, at).next().is_none()).collect();
        let at = *within.end();
        if missing.is_empty() {
            Sight::Saw(TOLD_ALL, at)
        } else if missing.iter().all(|missing| UNTOLD.contains(missing)) {
            Sight::Saw(TOLD_MOST, at)
        } else {
            let missing = missing.into_iter().collect::<Vec<_>>().join(", ");
            Sight::SawOther { at, actual: format!("no event at {missing}") }
        }
    }))
}

/// Whether events at all these points followed what was asked, and done.
fn told_after(x: &Exchange<'_>, label: &str, points: &[&str]) -> Sight {
    judged(span(x, label).map(|within| {
        let passed = |at: &str, method| frames_at(x, method, at).any(|(entry, _)| within.contains(&entry.at));
        match came(x, label) {
            Sight::Saw(DONE, _) => {}
            Sight::Saw(..) => return not_provoked("did that"),
            other => return other,
        }
        let at = *within.end();
        match points.iter().find(|at| !passed(at, contract::EVENT)) {
            None => Sight::Saw(TOLD_ALL, at),
            // A host that finds nothing worth compacting passes no point.
            Some(_)
                if label == "compact"
                    && !points
                        .iter()
                        .any(|at| passed(at, contract::EVENT) || passed(at, contract::INTERCEPT)) =>
            {
                not_provoked("compacted anything")
            }
            Some(missing) => Sight::SawOther { at, actual: format!("no event at {missing}") },
        }
    }))
}

fn final_payload(x: &Exchange<'_>) -> Sight {
    judged(span(x, TURN).map(|within| {
        let mut told = frames_at(x, contract::EVENT, point::CONTEXT_PREPARE)
            .filter(|(entry, _)| entry.at >= *within.start() && is_to(x, entry, ONE));
        match told.next() {
            Some((entry, params)) if params.raw().contains("sidecert-of-owner") => {
                Sight::Saw(FINAL, entry.at)
            }
            Some((entry, params)) => {
                let payload = params.get("payload").map_or("none", Node::raw);
                Sight::SawOther { at: entry.at, actual: format!("the payload {}", short(payload)) }
            }
            None => not_provoked("told an event at context.prepare"),
        }
    }))
}

fn slow_reader_spared(x: &Exchange<'_>) -> Sight {
    if !matches!(came(x, TURN), Sight::Saw(DONE, _)) {
        return not_provoked("took a turn with a guest that reads");
    }
    judged(span(x, "read").map(|within| {
        let of_turn = |kind: &Kind<'_>| matches!(kind, Kind::Told { label: Some(it), .. } if it == "unread");
        let mut outcomes = x.told(Told::Outcome).filter(|(entry, _)| of_turn(&entry.event.kind));
        if let Some((entry, outcome)) = outcomes.find(|(_, outcome)| outcome.get("done").is_none()) {
            return Sight::SawOther { at: entry.at, actual: format!("the outcome {}", short(outcome.raw())) };
        }
        let mut asked = asks_at(x, point::INPUT_RECEIVE)
            .filter(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, "two"));
        match asked.next() {
            Some((entry, _)) => Sight::Saw(SPARED, entry.at),
            None => Sight::SawOther { at: *within.end(), actual: "it was not asked any more".to_owned() },
        }
    }))
}

/// Each start of the guest has a prompt of its own.
fn prompt_asked_once(x: &Exchange<'_>) -> Sight {
    judged(span(x, "first").map(|within| {
        let at = *within.end();
        let starts = x.launches("two").len();
        let of = |method| {
            let all = frames_at(x, method, point::SYSTEM_PROMPT_BUILD);
            all.filter(|(entry, _)| is_to(x, entry, "two")).collect::<Vec<_>>()
        };
        let (asked, told) = (of(contract::INTERCEPT), of(contract::EVENT));
        let finals = told.iter().filter(|(_, params)| params.raw().contains("sidecert-prompt")).count();
        if asked.len() == starts && told.len() == starts && finals == starts {
            return Sight::Saw(ASKED_ONCE, at);
        }
        let (asked, told) = (asked.len(), told.len());
        let actual =
            format!("{asked} intercepts and {told} events, {finals} of them with it, of {starts} starts");
        Sight::SawOther { at, actual }
    }))
}

/// Whether somebody who looks was told that events of a guest were lost, where some were.
fn dropped_told(x: &Exchange<'_>) -> Sight {
    judged(span(x, "read").map(|within| {
        let passed = asks_at(x, point::CONTEXT_PREPARE).filter(|(entry, _)| is_to(x, entry, ONE)).count();
        let told = frames_at(x, contract::EVENT, point::CONTEXT_PREPARE);
        let told = told.filter(|(entry, _)| is_to(x, entry, "two")).count();
        // A guest that was cut off, or that everything waits for, has not lost events alone.
        if told >= passed || !matches!(slow_reader_spared(x), Sight::Saw(..)) {
            return not_provoked("dropped an event");
        }
        // That its time was over when it did not answer is told as well, and is another thing.
        let says = |text: &str| {
            let text = text.to_lowercase();
            text.contains("two") && DROP_WORDS.iter().any(|word| text.contains(word))
        };
        let heard = x.entries().iter().find(|entry| match &entry.event.kind {
            Kind::Told { what: Told::Shown | Told::Found, json, .. } => says(json),
            Kind::Stderr { text, .. } => says(text),
            _ => false,
        });
        if let Some(entry) = heard {
            return Sight::Saw(DROP_TOLD, entry.at);
        }
        let actual = format!("{} events were dropped, and nobody was told", passed - told);
        Sight::SawOther { at: *within.end(), actual }
    }))
}

/// What a host may say of events that were lost.
const DROP_WORDS: [&str; 7] = ["drop", "discard", "lost", "queue", "overflow", "丢弃", "队列"];

fn told_once(x: &Exchange<'_>) -> Sight {
    judged(span(x, TURN).map(|within| {
        let passages = opened(x, &within).len();
        let told: Vec<u64> = frames_at(x, contract::EVENT, point::PROVIDER_REQUEST)
            .filter(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, "two"))
            .map(|(entry, _)| entry.at)
            .collect();
        match told.last() {
            Some(at) if told.len() == passages => Sight::Saw(TOLD_ONCE, *at),
            Some(at) => {
                Sight::SawOther { at: *at, actual: format!("{} events of {passages} requests", told.len()) }
            }
            None => not_provoked("told an event at provider.request"),
        }
    }))
}
