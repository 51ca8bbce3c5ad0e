//! What scripts and judges of rulings share: what guests of ours do about intercepts, and what is seen of a turn.

use std::ops::RangeInclusive;

use sidecert_proto::exchange::{Entry, Exchange, short};
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::plugin::START;
use sidecert_proto::reasonix::sidecar;
use sidecert_proto::requirement::{Accepts, Seen};
use sidecert_proto::script::{Outgoing, Pattern, Reaction, Reply, Script, Step, Template};
use sidecert_proto::transcript::{Kind, Told};
use sidecert_proto::verdict::{Sight, Why};

use super::{DONE, STOP, TURN, awaits, came_of, guest, never_came, outcome, say};

// ---- what guests do ----

/// A ruling that lets things go on.
pub(super) const CONTINUE: &str = r#"{"decision":"continue"}"#;
/// A ruling that blocks.
pub(super) const BLOCK: &str = r#"{"decision":"block","reason":"not on a sunday"}"#;
/// Why, in words that no host takes for a credential.
pub(super) const BLOCK_REASON: &str = "not on a sunday";
/// The time of a guest that will not answer, in milliseconds.
pub(super) const HURRY: &str = "900";

/// A ruling that puts this JSON text in the place of the payload.
pub(super) fn replace(with: &str) -> String {
    format!(r#"{{"decision":"replace","replacement":{with}}}"#)
}

/// A context of one message.
pub(super) fn context_of(text: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":{}}}]}}"#, quoted(text))
}

/// An intercept of what the user says, where this is in it.
pub(super) fn input(text: &str) -> String {
    let (method, at) = (contract::INTERCEPT, point::INPUT_RECEIVE);
    format!(
        r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"event":"{at}","payload":{{"text":{{"$like":"*{text}*"}}}}}}}}"#
    )
}

/// What one guest does about such frames, so often.
pub(super) fn does(mut script: Script, name: &str, times: Option<u32>, when: &str, reply: Reply) -> Script {
    let when = Pattern::of(when).unwrap_or(Pattern::Absent);
    script.reactions.push(Reaction { when, reply, times, guest: Some(name.to_owned()) });
    script
}

/// One guest rules so on such intercepts.
pub(super) fn rules_on(script: Script, name: &str, times: Option<u32>, when: &str, result: &str) -> Script {
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{result}}}"#);
    does(script, name, times, when, Reply::Once(Template::new(answer)))
}

/// One guest answers such intercepts with an error.
pub(super) fn errs_on(script: Script, name: &str, times: Option<u32>, when: &str) -> Script {
    let error = r#"{"code":-32603,"message":"it failed","data":{"reason":"internal","retryable":true}}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"error":{error}}}"#);
    does(script, name, times, when, Reply::Once(Template::new(answer)))
}

/// The next stream of any model has these chunks.
pub(super) fn model_says(mut script: Script, chunks: &[String]) -> Script {
    let method = contract::STREAM_OPEN;
    let when = format!(
        r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"streamId":{{"$capture":"stream"}}}}}}"#
    );
    let when = Pattern::of(&when).unwrap_or(Pattern::Absent);
    let accepted = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#;
    let mut frames = vec![Template::new(accepted)];
    frames.extend(sidecar::stream(r#"{"$capture":"stream"}"#, chunks).into_iter().map(Template::new));
    script.reactions.push(Reaction { when, reply: Reply::Several(frames), times: Some(1), guest: None });
    script
}

/// The next turn is one in which the model wants this tool, and says something when it has run.
pub(super) fn wants_tool(script: Script, name: &str, arguments: &str) -> Script {
    let call = format!(
        r#"{{"type":"tool_call","toolCall":{{"id":"call-{}","name":"{name}","arguments":{}}}}}"#,
        script.reactions.len(),
        quoted(arguments)
    );
    let script = model_says(script, &[call]);
    model_says(script, &[sidecar::text_chunk(sidecar::REPLY)])
}

/// Holds an intercept, and answers it behind a fence; the answer is called `label`.
pub(super) fn holds(script: Script, name: &str, when: &str, label: &str) -> Script {
    let when = when.replace(r#"{"$capture":"id"}"#, r#"{"$capture":"held"}"#);
    script.step(guest(name)).step(awaits(&when)).fence().step(answer(label, CONTINUE))
}

/// Answers the intercept that is held.
pub(super) fn answer(label: &str, result: &str) -> Step {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"held"}},"result":{result}}}"#);
    Step::Send { label: Some(label.to_owned()), frame: Outgoing::Template(Template::new(frame)) }
}

/// A turn in which a guest rules on the input in a way that no schema allows.
pub(super) fn odd_ruling(script: Script, name: &str, (label, text): (&str, &str), result: &str) -> Script {
    let script = does(script, name, None, &input(text), Reply::Never);
    let held = input(text).replace(r#"{"$capture":"id"}"#, r#"{"$capture":"held"}"#);
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"held"}},"result":{result}}}"#);
    say(script, label, text)
        .step(guest(name))
        .step(awaits(&held))
        .raw(&format!("{label}-ruling"), "it is no ruling", frame)
        .step(outcome(label))
}

// ---- what is seen of a turn ----

/// The intercepts at this point, in order, with their params.
pub(super) fn asks_at<'x>(
    x: &'x Exchange<'_>,
    at: &'x str,
) -> impl Iterator<Item = (&'x Entry<'x>, Node<'x>)> {
    frames_at(x, contract::INTERCEPT, at)
}

/// The frames of this method at this point.
pub(super) fn frames_at<'x>(
    x: &'x Exchange<'_>,
    method: &'x str,
    at: &'x str,
) -> impl Iterator<Item = (&'x Entry<'x>, Node<'x>)> {
    x.asked(method)
        .filter_map(|(entry, params)| Some((entry, params?)))
        .filter(move |(_, params)| params.get("event").and_then(|it| it.as_str()).as_deref() == Some(at))
}

/// Whether the host wrote this to the guest of this name.
pub(super) fn is_to(x: &Exchange<'_>, entry: &Entry<'_>, name: &str) -> bool {
    x.launches(name).contains(&entry.event.link)
}

/// Whether the session began, where the script begins only one.
pub(super) fn began(x: &Exchange<'_>) -> Result<(), Sight> {
    match x.outcome(START) {
        Some((_, outcome)) if outcome.get("done").is_none() => Err(not_provoked("began the session")),
        _ => Ok(()),
    }
}

/// What came of an ask in a session that began.
pub(super) fn came(x: &Exchange<'_>, label: &str) -> Sight {
    judged(began(x).map(|()| came_of(x, label)))
}

/// From the ask of this label to its outcome, and to what is read behind it.
pub(super) fn span(x: &Exchange<'_>, label: &str) -> Result<RangeInclusive<u64>, Sight> {
    began(x)?;
    let Some((end, _)) = x.outcome(label) else { return Err(never_came(x, label)) };
    let its =
        |entry: &Entry<'_>| matches!(&entry.event.kind, Kind::Told { label: Some(it), .. } if it == label);
    let begin = x.told(Told::Ask).filter(|(entry, _)| its(entry)).last().map_or(end, |(entry, _)| entry.at);
    // What the guests have not heard by then comes before the record says so.
    let settled = x.told(Told::Settled).map(|(entry, _)| entry.at).find(|at| *at > end);
    Ok(begin..=settled.unwrap_or(end))
}

/// What the model was asked meanwhile.
pub(super) fn opened<'x>(x: &'x Exchange<'_>, within: &RangeInclusive<u64>) -> Vec<Node<'x>> {
    let its = x.asked(contract::STREAM_OPEN).filter(|(entry, _)| within.contains(&entry.at));
    its.filter_map(|(_, params)| params).collect()
}

/// That nothing shows what is looked for, since the host never did the thing.
pub(super) fn not_provoked(what: &str) -> Sight {
    Sight::Undecided(Why::NotProvoked(format!("the host never {what}").into()))
}

/// What a judge says that may have to give up on the way.
pub(super) fn judged(sight: Result<Sight, Sight>) -> Sight {
    sight.unwrap_or_else(|sight| sight)
}

/// What came of all of these: the first that is not accepted, else the one that comes last in the row's list.
pub(super) fn all_came(x: &Exchange<'_>, labels: &[&str], accepts: &[Accepts]) -> Sight {
    let mut last: Option<(usize, Sight)> = None;
    for label in labels {
        let sight = came(x, label);
        let Sight::Saw(seen, at) = &sight else { return sight };
        match accepts.iter().position(|accepted| accepted.seen == *seen) {
            Some(place) if last.as_ref().is_none_or(|(known, _)| place > *known) => {
                last = Some((place, sight));
            }
            Some(_) => {}
            None => return Sight::SawOther { at: *at, actual: format!("{label}: {}", seen.0) },
        }
    }
    last.map_or_else(|| not_provoked("was asked"), |(_, sight)| sight)
}

/// Something did not go on: the model was not asked, and the user was told.
pub(super) fn stopped(x: &Exchange<'_>, label: &str) -> Sight {
    judged(span(x, label).map(|within| {
        if opened(x, &within).is_empty() {
            return came(x, label);
        }
        Sight::SawOther { at: *within.end(), actual: "the model was asked all the same".to_owned() }
    }))
}

/// Whether the model was told this in a turn.
pub(super) fn model_heard(x: &Exchange<'_>, label: &str, text: &str, seen: Seen) -> Sight {
    judged(span(x, label).map(|within| {
        let at = *within.end();
        let asked = opened(x, &within);
        match asked.first() {
            Some(first) if first.raw().contains(text) => Sight::Saw(seen, at),
            Some(_) => Sight::SawOther { at, actual: format!("the model was asked without {text:?}") },
            None => Sight::SawOther { at, actual: "the model was not asked".to_owned() },
        }
    }))
}

/// Who else was asked at a point in a turn, behind the guest of this name.
pub(super) fn asked_behind<'x>(
    x: &'x Exchange<'_>,
    within: &RangeInclusive<u64>,
    name: &'x str,
    at: &'x str,
) -> impl Iterator<Item = (&'x Entry<'x>, Node<'x>)> {
    let within = within.clone();
    let all = asks_at(x, at).filter(move |(entry, _)| within.contains(&entry.at));
    let behind = all.skip_while(|(entry, _)| !is_to(x, entry, name));
    behind.filter(|(entry, _)| !is_to(x, entry, name))
}

/// What the model was told that its tool gave, in this turn.
pub(super) fn tool_result(x: &Exchange<'_>, label: &str) -> Result<(String, u64), Sight> {
    let within = span(x, label)?;
    let asked = opened(x, &within);
    let messages = asked.last().and_then(|params| params.pointer("/request/messages"));
    let tool = messages
        .into_iter()
        .flat_map(Node::elements)
        .filter(|message| message.get("role").and_then(|it| it.as_str()).as_deref() == Some("tool"));
    match tool.last().filter(|_| asked.len() > 1) {
        Some(message) => {
            let content = message.get("content").and_then(|it| it.as_str()).unwrap_or_default();
            Ok((content.into_owned(), *within.end()))
        }
        None => Err(not_provoked("told the model what its tool gave")),
    }
}

/// Whether a tool gave the same in this turn as in another one.
pub(super) fn ran_as(x: &Exchange<'_>, label: &str, other: &str, same: bool, seen: Seen) -> Sight {
    judged((|| {
        let (known, _) = tool_result(x, other)?;
        let (result, at) = tool_result(x, label)?;
        if other == "denied" && !denied_by_host(x, other) {
            return Err(Sight::Undecided(Why::NotProvoked("the host denies nothing of itself here".into())));
        }
        if (result == known) == same {
            return Ok(Sight::Saw(seen, at));
        }
        Ok(Sight::SawOther { at, actual: format!("the model was told {:?}", short(&result)) })
    })())
}

/// Whether the host itself would deny what guests were asked about in this turn.
pub(super) fn denied_by_host(x: &Exchange<'_>, label: &str) -> bool {
    let Ok(within) = span(x, label) else { return false };
    asks_at(x, point::PERMISSION_DECISION).any(|(entry, params)| {
        let decision = params.pointer("/payload/hostDecision").and_then(|it| it.as_str());
        within.contains(&entry.at) && decision.as_deref() == Some("deny")
    })
}

/// A whole session with a turn that was done, from its end on.
pub(super) fn tour(x: &Exchange<'_>) -> Result<RangeInclusive<u64>, Sight> {
    let within = span(x, STOP)?;
    match came(x, TURN) {
        Sight::Saw(DONE, _) => Ok(within),
        Sight::Saw(..) => Err(not_provoked("took a turn")),
        other => Err(other),
    }
}
