//! Error objects: codes, reasons, and what stands beside them.

use crate::contract::{Contract, Side::Guest};
use crate::exchange::short;
use crate::json::{Kind, Node};
use crate::judge::Notes;
use crate::requirement::Rule;
use crate::rpc::Id;

/// The code that all reasons of the protocol's own domain share.
const DOMAIN: i64 = -32_000;

/// The code of an error is the one that its reason has.
pub static CODES_FIT: Rule = Rule { name: "codes-fit", binds: Guest, assumes: &[] };
/// The reason of an error is one that the contract has.
pub static REASONS_KNOWN: Rule = Rule { name: "reasons-known", binds: Guest, assumes: &[] };
/// Whether an error is retryable is what the contract says of its reason.
pub static RETRYABLE_FITS: Rule = Rule { name: "retryable-fits", binds: Guest, assumes: &[] };
/// The action of an error, if there is one, is a text.
pub static ACTION_IS_TEXT: Rule = Rule { name: "action-is-text", binds: Guest, assumes: &[] };
/// An error of the protocol's own domain gives its reason and whether it is retryable.
pub static DOMAIN_STRUCTURED: Rule = Rule { name: "domain-structured", binds: Guest, assumes: &[] };
/// An error about a frame that could not be read has no data.
pub static FRAME_ERRORS_PLAIN: Rule = Rule { name: "frame-errors-plain", binds: Guest, assumes: &[] };

/// The guest answers with an error.
pub(super) fn error(contract: &Contract, id: &Id<'_>, code: i64, body: Node<'_>, notes: &mut Notes<'_>) {
    let data = body.get("data");
    if *id == Id::Null {
        notes.note(&FRAME_ERRORS_PLAIN, data.is_none(), || {
            format!("the data {}", short(data.map_or("", Node::raw)))
        });
    }
    let member = |name: &str| data.and_then(|data| data.get(name));
    if code == DOMAIN {
        let structured = member("reason").is_some_and(|it| it.kind() == Kind::String)
            && member("retryable").is_some_and(|it| it.kind() == Kind::Bool);
        notes.note(&DOMAIN_STRUCTURED, structured, || match data {
            Some(data) => format!("the error {code} with the data {}", short(data.raw())),
            None => format!("the error {code} without data"),
        });
    }
    let action = member("action");
    if data.is_some() {
        notes.note(&ACTION_IS_TEXT, action.is_none_or(|it| it.kind() == Kind::String), || {
            format!("the action {}", short(action.map_or("", Node::raw)))
        });
    }
    let Some(reason) = member("reason").and_then(|it| it.as_str()) else { return };
    let Some(known) = contract.reason(&reason) else {
        return notes.broken(&REASONS_KNOWN, || format!("the reason {:?}", short(&reason)));
    };
    notes.kept(&REASONS_KNOWN);
    notes.note(&CODES_FIT, code == known.code, || {
        format!("the code {code} with the reason {reason}, which has {}", known.code)
    });
    if let Some(retryable) = member("retryable") {
        notes.note(&RETRYABLE_FITS, retryable.as_bool() == Some(known.retryable), || {
            format!(
                "retryable {} with the reason {reason}, which has {}",
                short(retryable.raw()),
                known.retryable
            )
        });
    }
}
