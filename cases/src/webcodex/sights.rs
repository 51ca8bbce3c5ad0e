//! What judges of this family look for. A plugin answers one request after the other, so what came before the answer to a
//! later request is all that there is.

use sidecert_proto::exchange::{Answer, Exchange};
use sidecert_proto::requirement::{Accepts, Seen};
use sidecert_proto::rpc::{self, Id, Outcome};
use sidecert_proto::script::{Pattern, Script, Step, Within};
use sidecert_proto::transcript::{Frame, Kind};
use sidecert_proto::verdict::{Sight, Why};

use super::{PLUGINS, RUNNER};

/// It was answered with a result.
pub(super) const SERVED: Seen = Seen("served");
/// It was refused under its id.
pub(super) const REFUSED: Seen = Seen("refused with an error");
/// Its method was unknown.
pub(super) const UNKNOWN: Seen = Seen("refused as an unknown method (-32601)");
/// It was refused without an id.
pub(super) const REFUSED_UNDER_NULL: Seen = Seen("refused with an error under the id null");
/// Nothing answered it.
pub(super) const IGNORED: Seen = Seen("passed over: nothing answered it, and later requests were answered");

/// What a plugin may do about what is no request.
pub(super) const NOT_SERVED: &[Accepts] = &[plugins(REFUSED_UNDER_NULL), plugins(REFUSED), plugins(IGNORED)];
/// It was answered with a result, as all do.
pub(super) const SERVED_BY_ALL: &[Accepts] = &[plugins(SERVED)];

/// Seen of the plugins that were watched.
pub(super) const fn plugins(seen: Seen) -> Accepts {
    Accepts { seen, by: PLUGINS }
}

/// The host that was watched needs it.
pub(super) const fn runner(seen: Seen) -> Accepts {
    Accepts { seen, by: RUNNER }
}

/// A script that says odd things one after the other, and asks something harmless after each.
pub(super) fn oddities<'f>(
    name: &str,
    frames: impl IntoIterator<Item = (&'f str, &'f str, String)>,
) -> Script {
    frames.into_iter().fold(Script::new(name), |script, (label, departs, frame)| {
        script.raw(label, departs, frame).step(Step::Fence { or_end: true })
    })
}

/// Waits for the answer to a request that a plugin serves, so that one that would serve the next one first does not; it is
/// not waited for longer than something can be silent.
pub(super) fn answered(label: &str) -> Step {
    Step::Await { frame: Pattern::answer_to(label), within: Within::Silence }
}

/// The same, under an id as it is written.
pub(super) fn answered_under(id: &str) -> Step {
    let frame = Pattern::of(&format!(r#"{{"id":{id}}}"#)).unwrap_or(Pattern::Absent);
    Step::Await { frame, within: Within::Silence }
}

/// A request under the id that its label stands for.
pub(super) fn request(label: &str, method: &str, params: &str) -> String {
    sidecert_proto::script::request(&format!(r#"{{"$id":"{label}"}}"#), method, params)
}

/// What became of the frame of ours called `label`.
pub(super) fn became(exchange: &Exchange<'_>, label: &str) -> Sight {
    let Some(sent) = exchange.sent(label) else { return exchange.nothing_came(label, "") };
    let next = exchange.entries().iter().find(|entry| {
        entry.at > sent.at
            && matches!(&entry.event.kind, Kind::Frame(Frame { from, departs: Some(_), .. }) if *from != exchange.target)
    });
    let within = |at: u64| at > sent.at && next.is_none_or(|next| at < next.at);
    if let Some(answer) = exchange.answer_to(label) {
        return named(&answer);
    }
    // A batch is answered with one, if it is.
    let array = exchange
        .from_target()
        .find(|(entry, said)| within(entry.at) && said.root.kind() == sidecert_proto::json::Kind::Array);
    if let Some((entry, _)) = array {
        return Sight::SawOther { at: entry.at, actual: "an array of answers".to_owned() };
    }
    let loose = exchange.responses().find(|(answer, id)| within(answer.at) && *id == Id::Null);
    if let Some((answer, _)) = loose {
        return match answer.outcome {
            Outcome::Error { .. } => Sight::Saw(REFUSED_UNDER_NULL, answer.at),
            Outcome::Result(_) => Sight::SawOther { at: answer.at, actual: answer.summary() },
        };
    }
    let ended = exchange.find(|kind| matches!(kind, Kind::Closed { from } if *from == exchange.target));
    match ended {
        Some(end) if within(end.at) => {
            Sight::SawOther { at: end.at, actual: "the plugin ended its output".to_owned() }
        }
        _ if exchange.cut.is_some() || ended.is_some_and(|end| end.at < sent.at) => {
            Sight::Undecided(Why::CutShort(exchange.cut.unwrap_or("the plugin had ended").to_owned()))
        }
        _ => Sight::Saw(IGNORED, sent.at),
    }
}

fn named(answer: &Answer<'_>) -> Sight {
    match answer.code() {
        None => Sight::Saw(SERVED, answer.at),
        Some(rpc::METHOD_NOT_FOUND) => Sight::Saw(UNKNOWN, answer.at),
        Some(_) => Sight::Saw(REFUSED, answer.at),
    }
}

/// What became of all of these: the first that is not accepted, else the last.
pub(super) fn all_became(exchange: &Exchange<'_>, labels: &[&str], accepts: &[Accepts]) -> Sight {
    let mut last = Sight::Undecided(Why::NotProvoked("this script had nothing to send".into()));
    for label in labels {
        last = became(exchange, label);
        match &last {
            Sight::Saw(seen, at) if !accepts.iter().any(|it| it.seen == *seen) => {
                return Sight::SawOther { at: *at, actual: format!("{label}: {}", seen.0) };
            }
            Sight::Saw(..) => {}
            Sight::SawOther { at, actual } => {
                return Sight::SawOther { at: *at, actual: format!("{label}: {actual}") };
            }
            Sight::Undecided(_) => return last,
        }
    }
    last
}
