//! "Interception": rulings on what the host is about to do.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Accepts, Basis, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::{self, Outcome};
use sidecert_proto::script::{Process, Script, ScriptDef};
use sidecert_proto::verdict::Sight;

use super::SDK;

const REFUSED: Seen = Seen("refused as invalid params");
const SERVED: Seen = Seen("ruled on all the same");

pub(super) const ROWS: &[Requirement] = &[must("reasonix/interception/incomplete-intercept-refused", Guest)
    .says(
        "An intercept without its timeoutMillis, which the schema requires, is refused as invalid params.",
        &[Cite::Seed("传输", "Transport"), Cite::Schema("/$defs/InterceptParams/required")],
    )
    .accepts(&[Accepts { seen: REFUSED, by: Basis::Specified }, Accepts { seen: SERVED, by: SDK }])
    .checked(After(&INCOMPLETE_INTERCEPT, incomplete_intercept_refused))];

/// Sends an intercept that lacks a required member.
static INCOMPLETE_INTERCEPT: ScriptDef = ScriptDef {
    name: "incomplete-intercept",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let params =
            format!(r#"{{"event":"{}","payload":{{"text":"sidecert"}},"seq":1}}"#, point::INPUT_RECEIVE);
        let frame = sidecert_proto::script::request(r#"{"$id":"incomplete"}"#, contract::INTERCEPT, &params);
        Script::new("incomplete-intercept")
            .raw("incomplete", "it has no timeoutMillis", frame)
            .fence()
            .quiet()
    },
};

fn incomplete_intercept_refused(exchange: &Exchange<'_>) -> Sight {
    match exchange.answer_to("incomplete") {
        Some(answer) => match answer.outcome {
            Outcome::Result(_) => Sight::Saw(SERVED, answer.at),
            Outcome::Error { code: rpc::INVALID_PARAMS, .. } => Sight::Saw(REFUSED, answer.at),
            Outcome::Error { .. } => Sight::SawOther { at: answer.at, actual: answer.summary() },
        },
        None => exchange.nothing_came("incomplete", "no answer, though a later request was answered"),
    }
}
