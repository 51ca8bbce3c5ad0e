//! Error objects: codes, reasons, and what stands beside them.

use super::{Pair, pair};
use crate::contract::{Contract, Side};
use crate::exchange::short;
use crate::json::{Kind, Node};
use crate::judge::Notes;
use crate::rpc::{self, Id};

/// The code that all reasons of the protocol's own domain share.
const DOMAIN: i64 = -32_000;

/// The code of an error is the one that its reason has.
pub static CODES_FIT: Pair = pair("codes-fit", "host-codes-fit");
/// The reason of an error is one that the contract has.
pub static REASONS_KNOWN: Pair = pair("reasons-known", "host-reasons-known");
/// Whether an error is retryable is what the contract says of its reason.
pub static RETRYABLE_FITS: Pair = pair("retryable-fits", "host-retryable-fits");
/// The action of an error, if there is one, is a text.
pub static ACTION_IS_TEXT: Pair = pair("action-is-text", "host-action-is-text");
/// An error of the protocol's own domain gives its reason and whether it is retryable.
pub static DOMAIN_STRUCTURED: Pair = pair("domain-structured", "host-domain-structured");
/// An error about a frame that could not be read has no data.
pub static FRAME_ERRORS_PLAIN: Pair = pair("frame-errors-plain", "host-frame-errors-plain");

/// The watched side answers with an error.
pub(super) fn error(
    side: Side,
    contract: &Contract,
    id: &Id<'_>,
    (code, body): (i64, Node<'_>),
    notes: &mut Notes<'_>,
) {
    let data = body.get("data");
    // A host that serves requests under null has other errors for them.
    let of_frames = [rpc::PARSE_ERROR, rpc::INVALID_REQUEST, rpc::METHOD_NOT_FOUND].contains(&code);
    if *id == Id::Null && of_frames {
        notes.note(FRAME_ERRORS_PLAIN.of(side), data.is_none(), || {
            format!("the data {}", short(data.map_or("", Node::raw)))
        });
    }
    let member = |name: &str| data.and_then(|data| data.get(name));
    if code == DOMAIN {
        let structured = member("reason").is_some_and(|it| it.kind() == Kind::String)
            && member("retryable").is_some_and(|it| it.kind() == Kind::Bool);
        notes.note(DOMAIN_STRUCTURED.of(side), structured, || match data {
            Some(data) => format!("the error {code} with the data {}", short(data.raw())),
            None => format!("the error {code} without data"),
        });
    }
    let action = member("action");
    if data.is_some() {
        notes.note(ACTION_IS_TEXT.of(side), action.is_none_or(|it| it.kind() == Kind::String), || {
            format!("the action {}", short(action.map_or("", Node::raw)))
        });
    }
    let Some(reason) = member("reason").and_then(|it| it.as_str()) else { return };
    let Some(known) = contract.reason(&reason) else {
        return notes.broken(REASONS_KNOWN.of(side), || format!("the reason {:?}", short(&reason)));
    };
    notes.kept(REASONS_KNOWN.of(side));
    notes.note(CODES_FIT.of(side), code == known.code, || {
        format!("the code {code} with the reason {reason}, which has {}", known.code)
    });
    if let Some(retryable) = member("retryable") {
        notes.note(RETRYABLE_FITS.of(side), retryable.as_bool() == Some(known.retryable), || {
            format!(
                "retryable {} with the reason {reason}, which has {}",
                short(retryable.raw()),
                known.retryable
            )
        });
    }
}
