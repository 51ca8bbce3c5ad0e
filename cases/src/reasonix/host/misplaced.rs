//! "Interception", as far as it is about where guests may allow and deny: at the point of permissions, and nowhere else.
//!
//! Elsewhere such a ruling is a fault of its guest: what a required guest was asked about fails, and an optional one is
//! passed over. So a required guest allows, and an optional one denies: a host that follows either shows it.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::point;
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Requirement, must};
use sidecert_proto::script::{Need, Process, ScriptDef, Setting};
use sidecert_proto::verdict::Sight;

use super::interception::{DID_NOT_RUN, FAILS, INTERCEPTION, LS, RAN};
use super::rulings::{
    CONTINUE, asks_at, came, is_to, judged, not_provoked, ran_as, rules_on, span, wants_tool,
};
use super::{DONE, FAILED, ONE, intercept, session as begin, specified, stop, turn};

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-interception/allow-nowhere-else", Host)
        .says(
            "To allow a turn, a context, or what a model is asked or answers is a fault of the guest.",
            &[INTERCEPTION],
        )
        .accepts(FAILS)
        .checked(After(&TURNS, allows_fail)),
    must("reasonix/host-interception/deny-nowhere-else", Host)
        .says(
            "To deny a turn, a context, or what a model is asked or answers denies nothing.",
            &[INTERCEPTION],
        )
        .accepts(&[specified(DONE)])
        .checked(After(&TURNS, denials_pass)),
    must("reasonix/host-interception/tools-allowed-as-permissions-only", Host)
        .says("A guest that allows a tool before its permission is asked for makes it fail.", &[INTERCEPTION])
        .accepts(&[specified(DID_NOT_RUN)])
        .checked(After(&TOOLS, |x| asked_about_tool(x, "allowed", ONE, false))),
    must("reasonix/host-interception/tools-denied-as-permissions-only", Host)
        .says("A guest that denies a tool before it runs, or behind that, denies nothing.", &[INTERCEPTION])
        .accepts(&[specified(RAN)])
        .checked(After(&TOOLS, |x| asked_about_tool(x, "denied", UNWILLING, true))),
];

/// A guest that the host can do without.
const UNWILLING: &str = "unwilling";
const ALLOW: &str = r#"{"decision":"allow"}"#;
const DENY: &str = r#"{"decision":"deny"}"#;

/// The points of a turn without tools, in its order, each the label of the turn in which it is allowed.
const POINTS: [&str; 4] =
    [point::AGENT_BEFORE_START, point::CONTEXT_PREPARE, point::PROVIDER_REQUEST, point::PROVIDER_RESPONSE];
const TOOL_POINTS: [&str; 2] = [point::TOOL_BEFORE, point::TOOL_AFTER];

/// Both guests, at these points; the one that must be there is asked first.
fn both(setting: &Setting<'_>, points: &[&str]) -> [Plugin; 2] {
    let unwilling = Plugin::new(setting, UNWILLING).optional();
    [Plugin::new(setting, ONE).intercepts(points), unwilling.intercepts(points)]
}

static TURNS: ScriptDef = ScriptDef {
    name: "turns-allowed-and-denied",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut it = begin("turns-allowed-and-denied", setting, &both(setting, &POINTS));
        for at in POINTS {
            it = rules_on(it, ONE, Some(1), &intercept(at), CONTINUE);
            it = rules_on(it, ONE, Some(1), &intercept(at), ALLOW);
            it = rules_on(it, UNWILLING, Some(1), &intercept(at), DENY);
        }
        it = turn(it, "denied", "sidecert-denied");
        stop(POINTS.iter().fold(it, |it, at| turn(it, at, "sidecert-allowed")))
    },
};

static TOOLS: ScriptDef = ScriptDef {
    name: "tools-allowed-and-denied",
    process: Process::Tour,
    needs: &[Need::Declared("tool/ls")],
    build: |setting| {
        let mut it = begin("tools-allowed-and-denied", setting, &both(setting, &TOOL_POINTS));
        let (before, after) = (intercept(point::TOOL_BEFORE), intercept(point::TOOL_AFTER));
        it = rules_on(it, ONE, Some(2), &before, CONTINUE);
        it = rules_on(it, ONE, Some(1), &before, ALLOW);
        for at in [&before, &after] {
            it = rules_on(it, UNWILLING, Some(1), at, CONTINUE);
            it = rules_on(it, UNWILLING, Some(1), at, DENY);
        }
        for _ in 0..3 {
            it = wants_tool(it, LS.0, LS.1);
        }
        let labels = ["plain", "denied", "allowed"];
        stop(labels.iter().fold(it, |it, label| turn(it, label, "sidecert-tool")))
    },
};

/// Whether this guest was asked at a point between an ask and its outcome.
fn was_asked(x: &Exchange<'_>, label: &str, name: &str, at: &str) -> Result<bool, Sight> {
    let within = span(x, label)?;
    Ok(asks_at(x, at).any(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, name)))
}

fn allows_fail(x: &Exchange<'_>) -> Sight {
    let mut last = not_provoked("took a turn");
    for at in POINTS {
        last = judged(was_asked(x, at, ONE, at).map(|asked| match came(x, at) {
            _ if !asked => not_provoked(&format!("asked at {at}")),
            Sight::Saw(seen, place) if seen != FAILED => {
                Sight::SawOther { at: place, actual: format!("allowed at {at}: {}", seen.0) }
            }
            sight => sight,
        }));
        if !matches!(last, Sight::Saw(..)) {
            return last;
        }
    }
    last
}

fn denials_pass(x: &Exchange<'_>) -> Sight {
    for at in POINTS {
        match was_asked(x, "denied", UNWILLING, at) {
            Ok(true) => {}
            // Who is denied at a point comes to no other.
            Ok(false) => {
                return match came(x, "denied") {
                    Sight::Saw(DONE, _) => not_provoked(&format!("asked at {at}")),
                    sight => sight,
                };
            }
            Err(sight) => return sight,
        }
    }
    came(x, "denied")
}

/// Whether a tool about which this guest was asked ran as it does when nobody objects.
fn asked_about_tool(x: &Exchange<'_>, label: &str, name: &str, runs: bool) -> Sight {
    let points = if runs { &TOOL_POINTS[..] } else { &TOOL_POINTS[..1] };
    let everywhere = points.iter().try_fold(true, |so_far, at| Ok(so_far && was_asked(x, label, name, at)?));
    judged(everywhere.map(|asked| {
        if asked {
            ran_as(x, label, "plain", runs, if runs { RAN } else { DID_NOT_RUN })
        } else {
            not_provoked("asked about the tool")
        }
    }))
}
