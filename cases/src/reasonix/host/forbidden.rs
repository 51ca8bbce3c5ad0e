//! "Interception", as far as it is about requests that fit their document and that the schema forbids all the same.
//!
//! No such request shall reach a model: a host that takes it would write what its schema forbids. So a second guest is
//! asked behind the one that replaces, and blocks; what it was given tells what became of the replacement.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::point;
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::script::{Process, ScriptDef};
use sidecert_proto::verdict::Sight;

use super::interception::INTERCEPTION;
use super::rulings::{
    BLOCK, asked_behind, asks_at, came, is_to, judged, not_provoked, replace, rules_on, span,
};
use super::{FAILED, ONE, intercept, observed, session as begin, specified, stop, turn};

const TAKEN: Seen = Seen("it was taken: the next guest was given it");
const REFUSED: &[Accepts] = &[specified(FAILED), observed(TAKEN)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-interception/unknown-roles-refused", Host)
        .says(
            "A request with a message of an unknown role is a fault of the guest that puts it in the place of one.",
            &[INTERCEPTION, Cite::Schema("/$defs/ProviderMessage")],
        )
        .accepts(REFUSED)
        .checked(After(&REQUESTS, |x| refused(x, "role"))),
    must("reasonix/host-interception/nameless-tools-refused", Host)
        .says(
            "A request with a tool that has no name is a fault of the guest that puts it in the place of one.",
            &[INTERCEPTION, Cite::Schema("/$defs/ProviderRequest")],
        )
        .accepts(REFUSED)
        .checked(After(&REQUESTS, |x| refused(x, "tool"))),
    must("reasonix/host-interception/calls-without-id-refused", Host)
        .says(
            "A request with a call that has no id is a fault of the guest that puts it in the place of one.",
            &[INTERCEPTION, Cite::Schema("/$defs/ProviderToolCall")],
        )
        .accepts(REFUSED)
        .checked(After(&REQUESTS, |x| refused(x, "call"))),
];

/// What tells each of these requests from those of the host.
const MARK: &str = "sidecert-forbidden";

static REQUESTS: ScriptDef = ScriptDef {
    name: "requests-that-the-schema-forbids",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let of = |name: &str| Plugin::new(setting, name).intercepts(&[point::PROVIDER_REQUEST]);
        let mut it = begin("requests-that-the-schema-forbids", setting, &[of(ONE), of("two")]);
        let at = intercept(point::PROVIDER_REQUEST);
        let message = format!(r#"{{"role":"user","content":"{MARK}"}}"#);
        let unnamed = r#"{"name":"","description":"x","parameters":{"type":"object"}}"#;
        let call = r#"{"name":"ls","arguments":"{}"}"#;
        let requests = [
            ("role", message.replace("user", "sidecert"), ""),
            ("tool", message, unnamed),
            ("call", format!(r#"{{"role":"assistant","content":"{MARK}","tool_calls":[{call}]}}"#), ""),
        ];
        for (_, message, tool) in &requests {
            let request = format!(r#"{{"messages":[{message}],"tools":[{tool}],"maxTokens":512}}"#);
            it = rules_on(it, ONE, Some(1), &at, &replace(&format!(r#"{{"request":{request}}}"#)));
        }
        it = rules_on(it, "two", None, &at, BLOCK);
        stop(requests.iter().fold(it, |it, (label, ..)| turn(it, label, "sidecert-request")))
    },
};

fn refused(x: &Exchange<'_>, label: &str) -> Sight {
    judged(span(x, label).map(|within| {
        let asked = asks_at(x, point::PROVIDER_REQUEST)
            .any(|(entry, _)| within.contains(&entry.at) && is_to(x, entry, ONE));
        if !asked {
            return not_provoked("asked about a request");
        }
        let mut behind = asked_behind(x, &within, ONE, point::PROVIDER_REQUEST);
        if let Some((entry, _)) = behind.find(|(_, params)| params.raw().contains(MARK)) {
            return Sight::Saw(TAKEN, entry.at);
        }
        match came(x, label) {
            Sight::Saw(seen, at) if seen != FAILED => {
                let actual = format!("the replacement was passed over: {}", seen.0);
                Sight::SawOther { at, actual }
            }
            sight => sight,
        }
    }))
}
