//! What judges of this family look for, and what they call it.
//!
//! Most rows ask the same of one frame of ours: what became of it? [`became`] says so; the row says who allows that.

use std::collections::{BTreeMap, VecDeque};

use sidecert_proto::exchange::{Answer, Entry, Exchange};
use sidecert_proto::reasonix::contract::reason;
use sidecert_proto::requirement::{Accepts, Basis, Seen};
use sidecert_proto::rpc::{self, Id, Outcome};
use sidecert_proto::script::{Script, Step};
use sidecert_proto::transcript::{Frame, Kind, Told, Wait};
use sidecert_proto::verdict::{Sight, Why};

/// It was answered with a result.
pub(super) const SERVED: Seen = Seen("served");
/// It was no JSON to the guest.
pub(super) const NO_JSON: Seen = Seen("refused as no JSON (-32700) under the id null");
/// It was an invalid request to the guest, which could not tell its id.
pub(super) const INVALID: Seen = Seen("refused as an invalid request (-32600) under the id null");
/// It was an invalid request to the guest.
pub(super) const INVALID_BY_ID: Seen = Seen("refused as an invalid request (-32600) under its id");
/// Its method was unknown to the guest.
pub(super) const UNKNOWN: Seen = Seen("refused as an unknown method (-32601)");
/// Its params were invalid to the guest.
pub(super) const BAD_PARAMS: Seen = Seen("refused as invalid params (-32602)");
/// It broke the protocol, said the guest.
pub(super) const VIOLATION: Seen = Seen("refused as a protocol_error");
/// The guest does not speak this version, it said.
pub(super) const UNSUPPORTED: Seen = Seen("refused as an unsupported_version");
/// The guest has too much to do, it said.
pub(super) const BUSY: Seen = Seen("refused as one too many (-32099)");
/// The guest failed in itself, it said.
pub(super) const INTERNAL: Seen = Seen("refused as an internal error (-32603)");
/// The content was too large, said the guest.
pub(super) const TOO_LARGE: Seen = Seen("refused as frame_too_large");
/// The content was gone, said the guest.
pub(super) const EXPIRED: Seen = Seen("refused as content_ref_expired");
/// The provider failed, said the guest.
pub(super) const PROVIDER_FAILED: Seen = Seen("refused as provider_failed");
/// It took too long, said the guest.
pub(super) const TIMED_OUT: Seen = Seen("refused as an intercept_timeout");
/// It was refused with an error that has no name here.
pub(super) const REFUSED: Seen = Seen("refused with another error");
/// Nothing answered it, and the guest went on.
pub(super) const IGNORED: Seen = Seen("passed over: nothing answered it, and the connection went on");
/// The guest ended its output, and had not answered it.
pub(super) const ENDED: Seen = Seen("the connection ended, and it was not answered");

/// Where an error's name comes from: its reason, else its code.
const BY_REASON: [(&str, Seen); 8] = [
    (reason::PROTOCOL_ERROR, VIOLATION),
    (reason::UNSUPPORTED_VERSION, UNSUPPORTED),
    (reason::FRAME_TOO_LARGE, TOO_LARGE),
    (reason::CONTENT_REF_EXPIRED, EXPIRED),
    (reason::PROVIDER_FAILED, PROVIDER_FAILED),
    (reason::INTERCEPT_TIMEOUT, TIMED_OUT),
    (reason::INVALID_PARAMS, BAD_PARAMS),
    (reason::UNKNOWN_METHOD, UNKNOWN),
];
/// The code of a server that has too much to do, which JSON-RPC leaves to implementations.
const SERVER_BUSY: i64 = -32_099;

/// Allowed by the specification.
pub(super) const fn specified(seen: Seen) -> Accepts {
    Accepts { seen, by: Basis::Specified }
}

/// Seen of the Go SDK.
pub(super) const fn sdk(seen: Seen) -> Accepts {
    Accepts { seen, by: super::SDK }
}

/// A script that says odd things one after the other, and asks something harmless after each.
pub(super) fn oddities<'f>(
    name: &str,
    frames: impl IntoIterator<Item = (&'f str, &'f str, String)>,
) -> Script {
    let script = Script::new(name);
    let said = |script: Script, (label, departs, frame): (&str, &str, String)| {
        script.raw(label, departs, frame).step(Step::Fence { or_end: true })
    };
    frames.into_iter().fold(script, said).settle()
}

/// A request under the id that its label stands for.
pub(super) fn request(label: &str, method: &str, params: &str) -> String {
    sidecert_proto::script::request(&format!(r#"{{"$id":"{label}"}}"#), method, params)
}

/// What became of the frame of ours called `label`.
pub(super) fn became(exchange: &Exchange<'_>, label: &str) -> Sight {
    let Some(sent) = exchange.sent(label) else { return exchange.nothing_came(label, "") };
    if let Some(answer) = exchange.answer_to(label) {
        return named(&answer, true);
    }
    if let Some(answer) = refusals(exchange).get(label) {
        return named(answer, false);
    }
    fate(exchange, label, sent)
}

/// The same of a frame that is too long for one: an error may stand before the end.
pub(super) fn became_of_too_long(exchange: &Exchange<'_>, label: &str) -> Sight {
    let Some(sent) = exchange.sent(label) else { return exchange.nothing_came(label, "") };
    match exchange.answer_to(label) {
        Some(answer) if answer.code().is_none() => named(&answer, true),
        _ => fate(exchange, label, sent),
    }
}

/// What became of a frame of ours that had no answer.
fn fate(exchange: &Exchange<'_>, label: &str, sent: &Entry<'_>) -> Sight {
    let link = sent.event.link;
    let end = exchange.entries().iter().filter(|entry| entry.event.link == link).find(|entry| {
        matches!(&entry.event.kind, Kind::Closed { from } | Kind::Oversize { from, .. } if *from == exchange.target)
            || matches!(&entry.event.kind, Kind::Told { what: Told::Gone, .. })
    });
    if end.is_some_and(|end| end.at < sent.at) {
        return Sight::Undecided(Why::CutShort("the connection had ended before it was sent".to_owned()));
    }
    // A host answered what was asked behind it: whatever ended the connection then was not this.
    let between = |at: u64| at > sent.at && end.is_none_or(|end| at < end.at);
    let settled = exchange.told(Told::Settled).any(|(entry, _)| between(entry.at));
    // Nor was it where the end was waited for and did not come.
    let lived_on = exchange.entries().iter().any(|entry| {
        between(entry.at) && matches!(entry.event.kind, Kind::TimedOut { wait: Wait::Gone, .. })
    });
    if settled || lived_on {
        return Sight::Saw(IGNORED, sent.at);
    }
    let next = exchange.entries().iter().find(|entry| entry.at > sent.at && is_odd(&entry.event.kind));
    match end {
        // Whatever was said last before the end is what ended it.
        Some(end) if end.at > sent.at && next.is_none_or(|next| next.at > end.at) => {
            let ordered = exchange.entries().iter().any(|entry| {
                let ours = matches!(entry.event.kind, Kind::Closed { from } if from != exchange.target);
                entry.at > sent.at && entry.at < end.at && entry.event.link == link && ours
            });
            Sight::Saw(if ordered { IGNORED } else { ENDED }, end.at)
        }
        _ if exchange.cut.is_some() => exchange.nothing_came(label, ""),
        _ => Sight::Saw(IGNORED, sent.at),
    }
}

/// What an answer is called.
pub(super) fn named(answer: &Answer<'_>, by_id: bool) -> Sight {
    let Some(code) = answer.code() else { return Sight::Saw(SERVED, answer.at) };
    let reason = answer.reason().unwrap_or_default();
    let seen = match (code, by_id) {
        _ if by_id && BY_REASON.iter().any(|(name, _)| *name == reason) => {
            BY_REASON.iter().find(|(name, _)| *name == reason).map_or(REFUSED, |(_, seen)| *seen)
        }
        (rpc::PARSE_ERROR, false) => NO_JSON,
        (rpc::INVALID_REQUEST, false) => INVALID,
        (rpc::INVALID_REQUEST, true) => INVALID_BY_ID,
        (rpc::METHOD_NOT_FOUND, _) => UNKNOWN,
        (rpc::INVALID_PARAMS, _) => BAD_PARAMS,
        (rpc::INTERNAL_ERROR, true) => INTERNAL,
        (SERVER_BUSY, true) => BUSY,
        _ => return Sight::SawOther { at: answer.at, actual: under_null(answer, by_id) },
    };
    Sight::Saw(seen, answer.at)
}

fn under_null(answer: &Answer<'_>, by_id: bool) -> String {
    if by_id { answer.summary() } else { format!("{} under the id null", answer.summary()) }
}

/// What became of all frames whose labels are given: the first that is not accepted, else the one that comes last in
/// the row's list.
pub(super) fn all_became<'l>(
    exchange: &Exchange<'_>,
    labels: impl IntoIterator<Item = &'l str>,
    accepts: &[Accepts],
) -> Sight {
    let mut last: Option<(usize, Sight)> = None;
    for label in labels {
        let sight = became(exchange, label);
        match &sight {
            Sight::Saw(seen, at) => match accepts.iter().position(|accepted| accepted.seen == *seen) {
                Some(place) if last.as_ref().is_none_or(|(known, _)| place > *known) => {
                    last = Some((place, sight));
                }
                Some(_) => {}
                None => return Sight::SawOther { at: *at, actual: format!("{label}: {}", seen.0) },
            },
            Sight::SawOther { at, actual } => {
                return Sight::SawOther { at: *at, actual: format!("{label}: {actual}") };
            }
            Sight::Undecided(_) => return sight,
        }
    }
    last.map_or(Sight::Undecided(Why::NotProvoked("this script had nothing to send".into())), |(_, sight)| {
        sight
    })
}

/// Like [`all_became`], for every frame whose label begins with `prefix`.
pub(super) fn all_with_prefix(exchange: &Exchange<'_>, prefix: &str, accepts: &[Accepts]) -> Sight {
    if let Some(cut) = exchange.cut.filter(|_| labels(exchange, prefix).is_empty()) {
        return Sight::Undecided(Why::CutShort(cut.to_owned()));
    }
    all_became(exchange, labels(exchange, prefix), accepts)
}

fn labels<'x>(exchange: &'x Exchange<'_>, prefix: &str) -> Vec<&'x str> {
    let labels = exchange.entries().iter().filter_map(|entry| match &entry.event.kind {
        Kind::Frame(Frame { from, label: Some(label), .. }) if *from != exchange.target => Some(&**label),
        _ => None,
    });
    labels.filter(|label| label.starts_with(prefix)).collect()
}

fn is_odd(kind: &Kind<'_>) -> bool {
    matches!(kind, Kind::Frame(Frame { departs: Some(_), .. }))
}

/// Answers under the id null, by the label of the frame that each belongs to.
///
/// The first one after an odd frame of ours is its own; one more is late, and belongs to the earliest that has none.
pub(super) fn refusals<'x>(exchange: &'x Exchange<'_>) -> BTreeMap<&'x str, Answer<'x>> {
    let mut found = BTreeMap::new();
    let mut unanswered: VecDeque<&str> = VecDeque::new();
    let mut current: Option<&str> = None;
    let mut answers = exchange.responses().filter(|(_, id)| *id == Id::Null).peekable();
    for entry in exchange.entries() {
        if let Kind::Told { what: Told::Settled, .. } = entry.event.kind {
            // All that was said before has been answered by now, if it ever is.
            unanswered.clear();
            current = None;
        }
        if let Kind::Frame(Frame { departs: Some(_), label: Some(label), .. }) = &entry.event.kind
            && let Some(before) = current.replace(label)
            && !found.contains_key(before)
            && exchange.answer_to(before).is_none()
        {
            unanswered.push_back(before);
        }
        let Some((answer, _)) = answers.next_if(|(answer, _)| answer.at == entry.at) else { continue };
        let own = current.filter(|label| !found.contains_key(label) && exchange.answer_to(label).is_none());
        if let Some(label) = own.or_else(|| unanswered.pop_front()) {
            found.insert(label, answer);
        }
    }
    found
}

/// Whether the guest asked for anything of this content.
pub(super) fn asked_for(exchange: &Exchange<'_>, reference: &str) -> bool {
    exchange.from_target().any(|(_, said)| {
        said.root.pointer("/params/contentRef").and_then(|it| it.as_str()).as_deref() == Some(reference)
    })
}

/// The result that the frame called `label` was answered with.
pub(super) fn result_of<'x>(
    exchange: &'x Exchange<'_>,
    label: &str,
) -> Result<(sidecert_proto::json::Node<'x>, u64), Sight> {
    match exchange.answer_to(label) {
        Some(Answer { outcome: Outcome::Result(result), at, .. }) => Ok((result, at)),
        Some(answer) => Err(Sight::SawOther { at: answer.at, actual: answer.summary() }),
        None => Err(exchange.nothing_came(label, "no answer, though later requests were answered")),
    }
}
