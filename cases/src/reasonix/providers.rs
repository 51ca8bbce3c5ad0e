//! "Streaming providers": the catalog.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Accepts, Basis, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{Need, Process, Script, ScriptDef};
use sidecert_proto::verdict::Sight;

const LISTED: Seen = Seen("answered with a list of descriptors");

pub(super) const ROWS: &[Requirement] = &[must("reasonix/providers/catalog-answered", Guest)
    .says(
        "A guest that declares providers answers the catalog request with their descriptors.",
        &[Cite::Seed("流式 Provider", "Streaming providers"), Cite::Schema("/$defs/ProviderCatalogResult")],
    )
    .when("providers")
    .accepts(&[Accepts { seen: LISTED, by: Basis::Specified }])
    .checked(After(&CATALOG, catalog_answered))];

/// Asks for the catalog.
static CATALOG: ScriptDef = ScriptDef {
    name: "catalog",
    process: Process::Tour,
    needs: &[Need::Declared("providers")],
    build: |_| Script::new("catalog").request("catalog", contract::PROVIDER_CATALOG, "{}").fence().quiet(),
};

fn catalog_answered(exchange: &Exchange<'_>) -> Sight {
    let Some(answer) = exchange.answer_to("catalog") else {
        return exchange.nothing_came("catalog", "no answer, though a later request was answered");
    };
    match answer.outcome {
        Outcome::Result(result)
            if result
                .get("providers")
                .is_some_and(|list| list.kind() == sidecert_proto::json::Kind::Array) =>
        {
            Sight::Saw(LISTED, answer.at)
        }
        _ => Sight::SawOther { at: answer.at, actual: answer.summary() },
    }
}
