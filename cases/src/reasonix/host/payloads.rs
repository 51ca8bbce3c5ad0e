//! "Interception", as far as it is about what a host gives at each point: a number, and a payload that fits.

use std::collections::BTreeMap;

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::machine::LinkId;
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::documents::Documents;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Requirement, Seen, must};
use sidecert_proto::verdict::Sight;

use super::interception::{CHAIN, EVERY_POINT};
use super::observed;
use super::rulings::{judged, not_provoked, span, tour};

const FIT: Seen = Seen("each fits");

const COUNTED: Seen = Seen("1, 2, 3 and so on");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-interception/counted-from-one", Host)
        .says("Intercepts are counted from 1, on each connection by itself.", &[])
        .accepts(&[observed(COUNTED)])
        .checked(After(&CHAIN, counted_from_one)),
    must("reasonix/host-interception/payloads-fit", Host)
        .says("What a guest is asked about, or told, fits the document of its point.", &[])
        .accepts(&[observed(FIT)])
        .checked(After(&EVERY_POINT, payloads_fit)),
];

/// Where nothing is too long to be sent: what is not sent may have had its number all the same.
fn counted_from_one(x: &Exchange<'_>) -> Sight {
    judged(span(x, "mute").map(|_| {
        let mut counts: BTreeMap<LinkId, u64> = BTreeMap::new();
        let mut last = not_provoked("asked a guest twice");
        for (entry, params) in x.asked(contract::INTERCEPT) {
            let count = counts.entry(entry.event.link).or_default();
            *count += 1;
            let seq = params.and_then(|it| it.get("seq")?.as_u64());
            if seq != Some(*count) {
                let seq = seq.map_or("no number".to_owned(), |seq| seq.to_string());
                return Sight::SawOther { at: entry.at, actual: format!("{seq} as number {count}") };
            }
            if *count > 1 {
                last = Sight::Saw(COUNTED, entry.at);
            }
        }
        last
    }))
}

/// What stands outside of its frame is read in other scripts, and looked at there.
fn payloads_fit(x: &Exchange<'_>) -> Sight {
    judged(tour(x).map(|_| {
        let documents = Documents::new(x.contract);
        let mut last = not_provoked("asked a guest");
        let told = [contract::INTERCEPT, contract::EVENT].into_iter().flat_map(|method| x.asked(method));
        for (entry, params) in told.filter_map(|(entry, params)| Some((entry, params?))) {
            let event = params.get("event").and_then(|it| it.as_str());
            let inside = params.get("externalized").is_none();
            let Some((event, payload)) = event.zip(params.get("payload")).filter(|_| inside) else {
                continue;
            };
            if let Some(fault) = documents.payload_fault(&event, payload) {
                return Sight::SawOther { at: entry.at, actual: format!("at {event}: {fault}") };
            }
            last = Sight::Saw(FIT, entry.at);
        }
        last
    }))
}
