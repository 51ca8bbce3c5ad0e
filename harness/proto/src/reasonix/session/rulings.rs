//! What the guest declares and rules: within its manifest, where it may, and with payloads that fit the point.

use std::collections::{BTreeMap, BTreeSet};

use super::HOST_CONFORMS;
use crate::contract::{Contract, Side::Guest};
use crate::exchange::short;
use crate::json::Node;
use crate::judge::{Framed, Notes};
use crate::reasonix::contract::{self, point};
use crate::reasonix::documents::Documents;
use crate::requirement::Rule;

/// The guest declares nothing that the manifest in `initialize` does not allow.
pub static DECLARES_WITHIN: Rule = Rule { name: "declares-within", binds: Guest, assumes: &[&HOST_CONFORMS] };
/// The guest allows and denies only where the host asks for a permission.
pub static RULINGS_IN_PLACE: Rule = Rule { name: "rulings-in-place", binds: Guest, assumes: &[] };
/// What the guest puts in the place of a payload has the form that the point has.
pub static REPLACEMENTS_FIT: Rule = Rule { name: "replacements-fit", binds: Guest, assumes: &[] };

/// How many intercepts are remembered while they wait for a ruling.
const OPEN_MOST: usize = 1 << 16;

/// What the host offered and asked.
#[derive(Debug)]
pub(super) struct Rulings<'c> {
    events: &'c [String],
    documents: Documents<'c>,
    /// The lists of the manifest in `initialize`, and whether that allows a capability.
    offered: BTreeMap<&'static str, BTreeSet<String>>,
    /// The intercepts that wait, each with the place of its point.
    open: BTreeMap<i64, usize>,
}

/// The lists of a result, the lists of the manifest that bound them, and the capability without which there is none.
const LISTS: [(&str, &str, Option<&str>); 5] = [
    ("subscriptions", "intercepts", None),
    ("replaces", "replaces", None),
    ("providers", "providers", Some("providers")),
    ("uiActions", "uiActions", Some("ui")),
    ("tools", "tools", None),
];

impl<'c> Rulings<'c> {
    pub(super) fn new(contract: &'c Contract) -> Self {
        Self {
            events: &contract.events,
            documents: Documents::new(contract),
            offered: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// The host asks something.
    pub(super) fn asked(&mut self, id: i64, method: &str, params: Node<'_>) {
        match method {
            contract::INITIALIZE => self.offer(params.get("manifest")),
            contract::INTERCEPT => {
                let event = params.get("event").and_then(|it| it.as_str()).unwrap_or_default();
                if let Some(place) = self.events.iter().position(|known| *known == event) {
                    if self.open.len() >= OPEN_MOST {
                        self.open.pop_first();
                    }
                    self.open.insert(id, place);
                }
            }
            _ => {}
        }
    }

    fn offer(&mut self, manifest: Option<Node<'_>>) {
        let Some(manifest) = manifest else { return };
        let names = LISTS.iter().map(|(_, list, _)| *list).chain(["capabilities"]);
        self.offered = names
            .filter_map(|name| {
                let elements = manifest.get(name)?.elements();
                let texts = elements.filter_map(|it| it.as_str().map(|text| text.into_owned()));
                Some((name, texts.collect()))
            })
            .collect();
    }

    /// The guest answers with an error.
    pub(super) fn refused(&mut self, id: i64) {
        self.open.remove(&id);
    }

    /// The guest answers with a result.
    pub(super) fn answered(
        &mut self,
        id: i64,
        frame: &Framed<'_, '_>,
        result: Node<'_>,
        notes: &mut Notes<'_>,
    ) {
        let method = frame.answers.as_ref().and_then(|asked| asked.method).map(|method| method.name.as_str());
        if method == Some(contract::INITIALIZE) {
            let beyond = self.beyond(result);
            notes.note(&DECLARES_WITHIN, beyond.is_none(), || beyond.unwrap_or_default());
        }
        let Some(place) = self.open.remove(&id) else { return };
        let event = &self.events[place];
        let decision = result.get("decision").and_then(|it| it.as_str()).unwrap_or_default();
        let permits = matches!(&*decision, "allow" | "deny");
        notes.note(&RULINGS_IN_PLACE, !permits || event == point::PERMISSION_DECISION, || {
            format!("{decision} at {event}")
        });
        if decision == "replace"
            && let Some(replacement) = result.get("replacement").filter(|it| !it.is_null())
        {
            let fault = self.documents.payload_fault(event, replacement);
            notes.note(&REPLACEMENTS_FIT, fault.is_none(), || {
                format!("the replacement at {event}: {}", fault.unwrap_or_default())
            });
        }
    }

    /// What a result declares beyond the manifest. A list that the manifest does not send bounds nothing but what a
    /// capability bounds.
    fn beyond(&self, result: Node<'_>) -> Option<String> {
        let capabilities = self.offered.get("capabilities");
        for (list, bound, capability) in LISTS {
            let allowed =
                capability.is_none_or(|it| capabilities.is_none_or(|capabilities| capabilities.contains(it)));
            let bound = self.offered.get(bound);
            for entry in result.get(list).into_iter().flat_map(Node::elements) {
                let name = [Some(entry), entry.get("ref"), entry.get("actionId")];
                let name = name.into_iter().flatten().find_map(|it| it.as_str()).unwrap_or_default();
                if !allowed {
                    let capability = capability.unwrap_or_default();
                    return Some(format!(
                        "{list} has {:?}, and the manifest lacks the capability {capability}",
                        short(&name)
                    ));
                }
                if bound.is_some_and(|bound| !bound.contains(&*name)) {
                    return Some(format!("{list} has {:?}, which the manifest does not allow", short(&name)));
                }
            }
        }
        None
    }
}
