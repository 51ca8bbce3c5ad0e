//! "Transport", as a host must keep it: members of params and results, which are decoded strictly.
//!
//! What a host makes of params shows in its answer. What it makes of results and of chunks shows in what comes of what it
//! did: a guest that is not opened, a model that is not offered, a turn that fails, a piece that is not shown. Each
//! script puts many of these into one session, where none disturbs another.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::quoted;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::{session, sidecar};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::script::{Pattern, Process, Reaction, Reply, Script, ScriptDef, Template};
use sidecert_proto::verdict::{Sight, Why};

use super::super::sights::{
    self, BAD_PARAMS, EXPIRED, SERVED, UNKNOWN, all_became, all_with_prefix, became, oddities,
};
use super::super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};
use super::lifecycle::declaration;
use super::providers::session_of;
use super::rulings::{BLOCK_REASON, all_came, came, input, odd_ruling, replace, rules_on};
use super::streams::{
    IN_ORDER, STREAM, accepted, all, asks, chunk, chunk_of, conforming, end, end_of, first_stream, opening,
    openings, shows_as, span, text,
};
use super::ui::{GENERATION, QUESTION, SESSION, STATUS, with};
use super::{
    BLOCKED, DONE, FAILED, ONE, PLAIN_TURN, REFUSED, ask, awaits, came_of, guest, intercept, observed,
    outcome, request, say, session as begin, specified, stop, turn,
};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const DEFS: Cite = Cite::Schema("/$defs");

const NOT_TAKEN: Seen = Seen("it was not taken: no guest was opened and no model offered by it");
const TAKEN: Seen = Seen("it was taken as it was meant");
const IN_RANGE: Seen = Seen("2^64-1 was taken, and 2^64 and -1 were refused");
const TO_MODEL: Seen = Seen("it was not taken, and what the user had said went to the model");
const INTERRUPTED: Seen = Seen("its stream failed");

/// Refused; a host that shows nothing need not know the methods of surfaces.
const STRICT: &[Accepts] = &[specified(BAD_PARAMS), specified(UNKNOWN)];
const STRICT_OBSERVED: &[Accepts] = &[observed(BAD_PARAMS), specified(UNKNOWN)];
/// The specification takes 1.0 for an integer.
const WRITTEN: &[Accepts] =
    &[observed(BAD_PARAMS), specified(UNKNOWN), specified(EXPIRED), specified(SERVED)];
/// The specification knows members by their letters; the released host does not look at their case.
const LETTERS: &[Accepts] = &[specified(BAD_PARAMS), observed(EXPIRED)];
const FAILS: &[Accepts] = &[specified(FAILED)];
const REFUSES: &[Accepts] = &[specified(NOT_TAKEN)];
const DROPPED: &[Accepts] = &[specified(IN_ORDER), specified(INTERRUPTED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-members/members-fit", Host)
        .says(
            "Params and results have the members of their definition, with values that fit, and no others.",
            &[TRANSPORT, DEFS],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::MEMBERS_FIT.host, &PLAIN_TURN)),
    must("reasonix/host-members/names-exact", Host)
        .says(
            "Members are written in the letters of their definition: seq, not Seq.",
            &[TRANSPORT, DEFS],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NAMES_EXACT.host, &PLAIN_TURN)),
    must("reasonix/host-members/integers-written-plainly", Host)
        .says("An integer is written without fraction and exponent: 1, not 1.0.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::INTEGERS_WRITTEN.host, &PLAIN_TURN)),
    // ---- params ----
    must("reasonix/host-members/unknown-refused", Host)
        .says("Params with a member that their definition does not have are refused.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "extra in ", STRICT))),
    must("reasonix/host-members/missing-refused", Host)
        .says("Params that lack a member which their definition requires are refused.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "without ", STRICT))),
    must("reasonix/host-members/null-refused", Host)
        .says("A member of a type is not null.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "null ", STRICT))),
    must("reasonix/host-members/null-payload-refused", Host)
        .says("Nor is the payload of a surface or a prompt, which may be any other JSON value.", &[])
        .accepts(STRICT_OBSERVED)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "nothing as ", STRICT_OBSERVED))),
    must("reasonix/host-members/types-kept", Host)
        .says("A text where a number is asked for, or a number where a text is, is refused.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "type of ", STRICT))),
    must("reasonix/host-members/empty-refused", Host)
        .says("A text that its definition wants filled is not empty.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "empty ", STRICT))),
    must("reasonix/host-members/blank-refused", Host)
        .says("A name of nothing but white space is no name.", &[])
        .accepts(STRICT_OBSERVED)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "blank ", STRICT_OBSERVED))),
    must("reasonix/host-members/written-integers-only", Host)
        .says("An integer that is written with a fraction or an exponent is refused.", &[])
        .accepts(WRITTEN)
        .checked(After(&PARAMS, |x| all_with_prefix(x, "written ", WRITTEN))),
    must("reasonix/host-members/generation-in-range", Host)
        .says("A generation is a whole number below 2^64.", &[])
        .accepts(&[observed(IN_RANGE)])
        .checked(After(&PARAMS, generation_in_range)),
    must("reasonix/host-members/letters-exact", Host)
        .says("A member in other letters than its definition has is one that there is not.", &[TRANSPORT, DEFS])
        .accepts(LETTERS)
        .checked(After(&PARAMS, |x| became(x, "letters"))),
    // ---- what guests declare ----
    must("reasonix/host-members/declared-unknown-refused", Host)
        .says(
            "A handshake or a catalog with a member that its definition does not have, at any depth, is refused.",
            &[TRANSPORT, DEFS],
        )
        .accepts(REFUSES)
        .checked(After(&DECLARED, |x| {
            not_taken(x, &["extra-member", "extra-in-model"], &["extra-in-catalog", "extra-in-entry"])
        })),
    must("reasonix/host-members/declared-missing-refused", Host)
        .says(
            "A handshake or a catalog that lacks a member which its definition requires is refused.",
            &[TRANSPORT, DEFS],
        )
        .accepts(REFUSES)
        .checked(After(&DECLARED, |x| {
            not_taken(x, &["lacks-state", "lacks-name"], &["lacks-list", "lacks-ref"])
        })),
    must("reasonix/host-members/declared-null-refused", Host)
        .says("In a handshake or a catalog no member is null.", &[TRANSPORT, DEFS])
        .accepts(REFUSES)
        .checked(After(&DECLARED, |x| not_taken(x, &["null-name", "null-list"], &["null-in-entry"]))),
    must("reasonix/host-members/declared-empty-refused", Host)
        .says("A guest whose name or version is empty is refused.", &[TRANSPORT, DEFS])
        .accepts(REFUSES)
        .checked(After(&DECLARED, |x| not_taken(x, &["empty-name", "empty-version", "empty-protocol"], &[]))),
    must("reasonix/host-members/declared-blank-refused", Host)
        .says("A guest whose name is nothing but white space is refused.", &[])
        .accepts(&[observed(NOT_TAKEN)])
        .checked(After(&DECLARED, |x| not_taken(x, &["blank-name"], &[]))),
    must("reasonix/host-members/declared-types-kept", Host)
        .says(
            "A number that is written as a text, or is below its minimum, is refused in a handshake or a catalog.",
            &[TRANSPORT, DEFS],
        )
        .accepts(REFUSES)
        .checked(After(&DECLARED, |x| {
            not_taken(x, &["text-as-state", "negative-window"], &["negative-in-entry"])
        })),
    // ---- results ----
    must("reasonix/host-members/results-unknown-refused", Host)
        .says("A result with a member that its definition does not have fails what waits for it.", &[TRANSPORT, DEFS])
        .accepts(FAILS)
        .checked(After(&RESULTS, |x| all_came(x, &["more", "open-more"], FAILS))),
    must("reasonix/host-members/results-missing-refused", Host)
        .says("So does one that lacks a member which its definition requires.", &[TRANSPORT, DEFS])
        .accepts(FAILS)
        .checked(After(&RESULTS, |x| all_came(x, &["nothing", "open-nothing"], FAILS))),
    must("reasonix/host-members/results-null-refused", Host)
        .says("So does one with a member that is null and has a type.", &[TRANSPORT, DEFS])
        .accepts(FAILS)
        .checked(After(&RESULTS, |x| all_came(x, &["null-reason", "null-decision", "open-null"], FAILS))),
    must("reasonix/host-members/results-types-kept", Host)
        .says("So does one of another type, or with a member of another type.", &[TRANSPORT, DEFS])
        .accepts(FAILS)
        .checked(After(&RESULTS, |x| all_came(x, &["number", "null-result", "list", "open-text"], FAILS))),
    must("reasonix/host-members/results-letters-exact", Host)
        .says("A member of a result in other letters is one that there is not.", &[TRANSPORT, DEFS])
        .accepts(&[specified(FAILED), observed(BLOCKED)])
        .checked(After(&RESULTS, |x| came(x, "letters"))),
    must("reasonix/host-members/null-replacement-taken", Host)
        .says(
            "A replacement that is null is one that is not there, where none is needed.",
            &[Cite::Schema("/$defs/InterceptResult/properties/replacement")],
        )
        .accepts(&[specified(DONE)])
        .checked(After(&RESULTS, |x| came(x, "null-replacement"))),
    must("reasonix/host-members/null-parameters-refused", Host)
        .says("The parameters of a tool in a replaced request are not null.", &[])
        .accepts(&[observed(FAILED)])
        .checked(After(&RESULTS, |x| came(x, "parameters"))),
    must("reasonix/host-members/odd-results-contained", Host)
        .says("A result that is refused is a fault of its call: the next call works.", &[])
        .accepts(&[observed(DONE)])
        .checked(After(&RESULTS, |x| came(x, "after"))),
    must("reasonix/host-members/action-results-strict", Host)
        .says(
            "An action whose result has a member too many, one too few or one that is null has failed.",
            &[TRANSPORT, Cite::Schema("/$defs/UIActionResult")],
        )
        .accepts(&[specified(FAILED), observed(TO_MODEL)])
        .checked(After(&ACTIONS, action_results)),
    // ---- chunks ----
    must("reasonix/host-members/chunks-unknown-dropped", Host)
        .says(
            "A chunk or an end with a member that its definition does not have, at any depth, has no effect.",
            &[TRANSPORT, DEFS],
        )
        .accepts(DROPPED)
        .checked(After(&CHUNKS, |x| {
            dropped(x, &["more", "more-in-chunk", "more-in-usage", "more-in-call", "more-in-end"])
        })),
    must("reasonix/host-members/chunks-missing-dropped", Host)
        .says("Nor has one that lacks a member which its definition requires.", &[TRANSPORT, DEFS])
        .accepts(DROPPED)
        .checked(After(&CHUNKS, |x| dropped(x, &["no-type", "no-last"]))),
    must("reasonix/host-members/chunks-null-dropped", Host)
        .says("Nor has one with a member that is null.", &[TRANSPORT, DEFS])
        .accepts(DROPPED)
        .checked(After(&CHUNKS, |x| dropped(x, &["null-error", "null-in-end"]))),
    must("reasonix/host-members/chunks-minimums-kept", Host)
        .says("Nor has one whose number is below its minimum, or whose stream has no name.", &[TRANSPORT, DEFS])
        .accepts(DROPPED)
        .checked(After(&CHUNKS, |x| dropped(x, &["zero", "negative-end", "nameless"]))),
    must("reasonix/host-members/chunks-integers-written", Host)
        .says("Nor has one whose number is written with a fraction.", &[])
        .accepts(&[observed(IN_ORDER), specified(TAKEN), specified(INTERRUPTED)])
        .checked(After(&CHUNKS, |x| {
            became_of(x, "fraction", &[("one-two-", IN_ORDER), ("one-odd-", TAKEN)])
        })),
];

// ---- params ----

/// The methods that a guest may ask for, and params that fit: each member with its value.
const ASKED: [(&str, &[(&str, &str)]); 3] = [
    (contract::CONTENT_READ, &[("contentRef", r#""sidecert-none""#), ("offset", "0")]),
    (
        contract::UI_PUBLISH,
        &[
            ("surfaceId", r#""sidecert-none""#),
            ("kind", r#""status""#),
            ("payload", STATUS),
            ("sessionId", SESSION),
            ("generation", GENERATION),
        ],
    ),
    (
        contract::UI_REQUEST,
        &[
            ("surfaceId", r#""sidecert-none""#),
            ("kind", r#""confirm""#),
            ("payload", QUESTION),
            ("sessionId", SESSION),
            ("generation", GENERATION),
        ],
    ),
];

/// What is sent: its label, what makes it wrong, and the frame.
type Sent = (String, String, String);

/// A request for this method with these members.
fn asks_for(label: &str, method: &str, members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, json)| format!(r#""{name}":{json}"#)).collect();
    sights::request(label, method, &format!("{{{}}}", members.join(",")))
}

/// The same for params that fit but in one member.
fn edited(label: String, departs: &str, method: &str, name: &str, json: &str) -> Sent {
    let whole = ASKED.iter().find(|(known, _)| *known == method).map_or(&[][..], |(_, members)| members);
    let members: Vec<(&str, &str)> =
        whole.iter().map(|(known, value)| (*known, if *known == name { json } else { value })).collect();
    let frame = asks_for(&label, method, &members);
    (label, format!("{name} is {departs}"), frame)
}

/// What can be wrong with every member of this method.
fn member_by_member(method: &str, members: &[(&str, &str)]) -> Vec<Sent> {
    let mut sent = Vec::new();
    let more: Vec<(&str, &str)> = members.iter().copied().chain([("extra", "1")]).collect();
    let label = format!("extra in {method}");
    sent.push((label.clone(), "it has a member extra".to_owned(), asks_for(&label, method, &more)));
    for (name, _) in members {
        let others: Vec<(&str, &str)> = members.iter().copied().filter(|(other, _)| other != name).collect();
        let label = format!("without {name} in {method}");
        sent.push((label.clone(), format!("it lacks {name}"), asks_for(&label, method, &others)));
        let how = if *name == "payload" { "nothing as" } else { "null" };
        sent.push(edited(format!("{how} {name} in {method}"), "null", method, name, "null"));
        let number = matches!(*name, "offset" | "generation");
        if number {
            sent.push(edited(format!("type of {name} in {method}"), "a text", method, name, r#""0""#));
        } else if *name != "payload" {
            sent.push(edited(format!("type of {name} in {method}"), "a number", method, name, "7"));
        }
        if matches!(*name, "contentRef" | "surfaceId" | "sessionId") {
            sent.push(edited(format!("empty {name} in {method}"), "empty", method, name, r#""""#));
            sent.push(edited(format!("blank {name} in {method}"), "blank", method, name, r#""  ""#));
        }
    }
    sent
}

pub(super) static PARAMS: ScriptDef = ScriptDef {
    name: "odd-guest-params",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut sent: Vec<Sent> =
            ASKED.iter().flat_map(|(method, members)| member_by_member(method, members)).collect();
        let (read, publish) = (contract::CONTENT_READ, contract::UI_PUBLISH);
        for (how, json) in [("0.0", "0.0"), ("0e0", "0e0")] {
            sent.push(edited(format!("written {how}"), "written oddly", read, "offset", json));
        }
        for (how, json) in [("1.0", "1.0"), ("1e0", "1e0")] {
            sent.push(edited(format!("written {how}"), "written oddly", publish, "generation", json));
        }
        for (label, departs, json) in [
            ("most", "as large as can be", "18446744073709551615"),
            ("too-large", "too large", "18446744073709551616"),
            ("negative", "negative", "-1"),
        ] {
            sent.push(edited(label.to_owned(), departs, publish, "generation", json));
        }
        let twice = [("contentRef", r#""sidecert-none""#), ("offset", "0"), ("OFFSET", "0")];
        let frame = asks_for("letters", read, &twice);
        sent.push(("letters".to_owned(), "it has a member OFFSET".to_owned(), frame));
        let it = with(begin("odd-guest-params", setting, &[Plugin::new(setting, ONE)]), ONE);
        let frames = sent.iter().map(|(label, departs, frame)| (&**label, &**departs, frame.clone()));
        stop(it.then(oddities("odd-guest-params", frames)))
    },
};

fn generation_in_range(x: &Exchange<'_>) -> Sight {
    let refused = &[observed(BAD_PARAMS)];
    match (became(x, "most"), all_became(x, ["too-large", "negative"], refused)) {
        (Sight::Saw(SERVED, _), Sight::Saw(BAD_PARAMS, at)) => Sight::Saw(IN_RANGE, at),
        (Sight::Saw(UNKNOWN, _), _) => {
            Sight::Undecided(Why::NotProvoked("the host has nothing to show a surface on".into()))
        }
        (Sight::Saw(SERVED, _), other) => other,
        (Sight::Saw(seen, at), _) => Sight::SawOther { at, actual: format!("2^64-1: {}", seen.0) },
        (other, _) => other,
    }
}

// ---- what guests declare ----

/// Members by name, each with its JSON text.
type Members = &'static [(&'static str, &'static str)];

/// Handshakes that are wrong: the guest, why, and the members that it has instead of the usual ones.
const HANDSHAKES: [(&str, &str, Members); 12] = [
    ("extra-member", "it has a member surplus", &[("surplus", "1")]),
    ("extra-in-model", "its model has a member surplus", &[("providers", r#"[{"ref":REF,"surplus":1}]"#)]),
    ("lacks-state", "it lacks stateSchemaVersion", &[("stateSchemaVersion", "")]),
    ("lacks-name", "it lacks name", &[("name", "")]),
    ("null-name", "name is null", &[("name", "null")]),
    ("null-list", "subscriptions is null", &[("subscriptions", "null")]),
    ("empty-name", "name is empty", &[("name", r#""""#)]),
    ("empty-version", "version is empty", &[("version", r#""""#)]),
    ("empty-protocol", "protocolVersion is empty", &[("protocolVersion", r#""""#)]),
    ("blank-name", "name is blank", &[("name", r#""  ""#)]),
    ("text-as-state", "stateSchemaVersion is a text", &[("stateSchemaVersion", r#""1""#)]),
    ("negative-window", "contextWindow is negative", &[("providers", r#"[{"ref":REF,"contextWindow":-1}]"#)]),
];

/// Catalogs that are wrong: the guest, why, and its result.
const CATALOGS: [(&str, &str, &str); 6] = [
    (
        "extra-in-catalog",
        "it has a member surplus",
        r#"{"providers":[{"ref":REF,"model":"echo"}],"surplus":1}"#,
    ),
    (
        "extra-in-entry",
        "an entry has a member surplus",
        r#"{"providers":[{"ref":REF,"model":"echo","surplus":1}]}"#,
    ),
    ("lacks-list", "it lacks providers", "{}"),
    ("lacks-ref", "an entry lacks its ref", r#"{"providers":[{"model":"echo"},{"ref":REF,"model":"echo"}]}"#),
    ("null-in-entry", "the model of an entry is null", r#"{"providers":[{"ref":REF,"model":null}]}"#),
    (
        "negative-in-entry",
        "contextWindow is negative",
        r#"{"providers":[{"ref":REF,"model":"echo","contextWindow":-1}]}"#,
    ),
];

/// What this guest answers to this method, which is wrong on purpose.
fn answers_oddly(mut script: Script, name: &str, method: &str, departs: &str, result: &str) -> Script {
    let result = result.replace("REF", &quoted(&sidecar::model(name)));
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{result}}}"#);
    let reply = Reply::Odd { departs: departs.to_owned(), answer: Template::new(answer) };
    let when = Pattern::of(&request(method)).unwrap_or(Pattern::Absent);
    script.reactions.push(Reaction { when, reply, times: None, guest: Some(name.to_owned()) });
    script
}

static DECLARED: ScriptDef = ScriptDef {
    name: "odd-declarations",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let names = HANDSHAKES.iter().map(|(name, ..)| *name).chain(CATALOGS.iter().map(|(name, ..)| *name));
        let odd = names.map(|name| Plugin::new(setting, name).optional());
        let plugins: Vec<Plugin> = std::iter::once(Plugin::new(setting, ONE)).chain(odd).collect();
        let mut it = Script::new("odd-declarations").step(plugin::start(setting, &plugins, ""));
        for (name, departs, members) in HANDSHAKES {
            // A member that is nothing is not there.
            let result = members.iter().fold(declaration(setting, members), |result, (member, _)| {
                result.replace(&format!(r#""{member}":,"#), "").replace(&format!(r#","{member}":}}"#), "}")
            });
            it = answers_oddly(it, name, contract::INITIALIZE, departs, &result);
        }
        for (name, departs, result) in CATALOGS {
            it = answers_oddly(it, name, contract::PROVIDER_CATALOG, departs, result);
        }
        it = it.step(outcome(START)).step(guest(ONE));
        for (name, ..) in CATALOGS {
            let what = format!(r#"{{"do":"turn","text":"Hello","model":"{}"}}"#, sidecar::model(name));
            it = it.step(ask(name, &what)).step(outcome(name));
        }
        stop(it)
    },
};

/// Whether a guest was opened: the event that says so, or that which says that nothing more comes.
fn opened(x: &Exchange<'_>, name: &str) -> Result<(bool, u64), Sight> {
    let started = match came_of(x, START) {
        Sight::Saw(DONE, at) => at,
        Sight::Saw(..) => {
            return Err(Sight::Undecided(Why::NotProvoked("the session did not begin without it".into())));
        }
        other => return Err(other),
    };
    let links = x.launches(name);
    if !x.asked(contract::INITIALIZE).any(|(entry, _)| links.contains(&entry.event.link)) {
        return Err(super::never_came(x, name));
    }
    let told = x.asked(contract::INITIALIZED).find(|(entry, _)| links.contains(&entry.event.link));
    Ok(told.map_or((false, started), |(entry, _)| (true, entry.at)))
}

/// Whether none of these guests was opened by its handshake, and no model of those by its catalog.
fn not_taken(x: &Exchange<'_>, handshakes: &[&str], catalogs: &[&str]) -> Sight {
    let mut last = 0;
    for name in handshakes {
        match opened(x, name) {
            Ok((false, at)) => last = at,
            Ok((true, at)) => return Sight::SawOther { at, actual: format!("{name}: the guest was opened") },
            Err(sight) => return sight,
        }
    }
    for name in catalogs {
        let reference = sidecar::model(name);
        let mut streams = x.asked(contract::STREAM_OPEN).filter(|(_, params)| {
            let asked = params.and_then(|params| params.get("providerRef")?.as_str());
            asked.is_some_and(|it| it == reference)
        });
        match (opened(x, name), streams.next(), came_of(x, name)) {
            (Err(sight), ..) => return sight,
            (_, Some((entry, _)), _) => {
                return Sight::SawOther { at: entry.at, actual: format!("{name}: its model was opened") };
            }
            (_, None, Sight::Saw(FAILED | REFUSED, at)) => last = at,
            (_, None, Sight::Saw(seen, at)) => {
                return Sight::SawOther { at, actual: format!("{name}: {}", seen.0) };
            }
            (_, None, other) => return other,
        }
    }
    Sight::Saw(NOT_TAKEN, last)
}

// ---- results ----

/// Rulings that are none: the turn, why, and the result.
const RULINGS: [(&str, &str, &str); 7] = [
    ("more", "sidecert-more", r#"{"decision":"continue","surplus":1}"#),
    ("nothing", "sidecert-nothing", "{}"),
    ("null-reason", "sidecert-null-reason", r#"{"decision":"block","reason":null}"#),
    ("null-decision", "sidecert-null-decision", r#"{"decision":null}"#),
    ("number", "sidecert-number", r#"{"decision":"block","reason":7}"#),
    ("null-result", "sidecert-null-result", "null"),
    ("list", "sidecert-list", "[]"),
];
/// Answers to the opening of a stream that are none, by the models that are asked.
const OPENED: [(&str, &str); 4] = [
    ("open-more", r#"{"accepted":true,"surplus":1}"#),
    ("open-nothing", "{}"),
    ("open-null", r#"{"accepted":null}"#),
    ("open-text", r#"{"accepted":"true"}"#),
];

static RESULTS: ScriptDef = ScriptDef {
    name: "odd-results",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE, point::PROVIDER_REQUEST]);
        let models = OPENED.map(|(model, _)| model);
        let mut it = session_of("odd-results", setting, one, &models, &[]);
        let tools = r#"[{"name":"sidecert","parameters":null}]"#;
        let messages = r#"[{"role":"user","content":"sidecert-parameters"}]"#;
        let request = format!(r#"{{"request":{{"messages":{messages},"tools":{tools},"maxTokens":16}}}}"#);
        it = held_request(it, "parameters", &replace(&request));
        it = rules_on(
            it,
            ONE,
            None,
            &input("sidecert-null-replacement"),
            r#"{"decision":"continue","replacement":null}"#,
        );
        it = turn(it, "null-replacement", "sidecert-null-replacement");
        for (label, text, result) in RULINGS {
            it = odd_ruling(it, ONE, (label, text), result);
        }
        let letters = format!(r#"{{"decision":"block","Reason":{}}}"#, quoted(BLOCK_REASON));
        it = odd_ruling(it, ONE, ("letters", "sidecert-letters"), &letters);
        for (model, result) in OPENED {
            it = asks(first_stream(it, model, Vec::new()), model).step(awaits(&opening(model)));
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{result}}}"#);
            // It goes on all the same, for hosts that take it.
            it = it.raw(&format!("{model}-result"), "it is no result of an opening", answer);
            it = it.step(conforming(&text(1, "one-"))).step(conforming(&end(1))).step(outcome(model));
        }
        let ruling = r#"{"decision":"continue","reason":"sidecert-after"}"#;
        it = rules_on(it, ONE, None, &input("And now?"), ruling);
        // By the model that is in order: a driver may stay with the one that was asked last.
        let what = format!(r#"{{"do":"turn","text":"And now?","model":"{}"}}"#, sidecar::model(ONE));
        stop(it.step(ask("after", &what)).step(outcome("after")))
    },
};

/// A turn in which our guest answers the request to the model in a way that is wrong on purpose.
fn held_request(mut script: Script, label: &str, result: &str) -> Script {
    let at = intercept(point::PROVIDER_REQUEST);
    let text = format!("sidecert-{label}");
    let held = at.replace(r#"{"$capture":"id"}"#, r#"{"$capture":"held"}"#);
    script.reactions.push(Reaction {
        when: Pattern::of(&at).unwrap_or(Pattern::Absent),
        reply: Reply::Never,
        times: Some(1),
        guest: Some(ONE.to_owned()),
    });
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"held"}},"result":{result}}}"#);
    say(script, label, &text)
        .step(awaits(&held))
        .raw(&format!("{label}-ruling"), "the parameters of a tool are null", frame)
        .step(outcome(label))
}

// ---- results of actions ----

/// Results of an action that are none, by the asks that they answer.
const ACTION_RESULTS: [(&str, &str); 3] = [
    ("action-more", r#"{"accepted":true,"surplus":1}"#),
    ("action-nothing", "{}"),
    ("action-null", r#"{"accepted":true,"message":null}"#),
];

static ACTIONS: ScriptDef = ScriptDef {
    name: "odd-results-of-actions",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut it = begin("odd-results-of-actions", setting, &[Plugin::new(setting, ONE)]);
        let invoke = format!(r#"{{"do":"action","plugin":"{ONE}","action":"{}"}}"#, sidecar::ACTION);
        let invoked = |it: Script, label: &str| it.step(ask(label, &invoke)).step(outcome(label));
        it = rules_once(it, r#"{"accepted":true}"#, None);
        for (label, result) in ACTION_RESULTS {
            it = rules_once(it, result, Some(label));
        }
        let it = ACTION_RESULTS.iter().fold(invoked(it, "action"), |it, (label, _)| invoked(it, label));
        stop(it)
    },
};

/// Our guest answers the next action so; `odd` where that is wrong on purpose.
fn rules_once(mut script: Script, result: &str, odd: Option<&str>) -> Script {
    let when = Pattern::of(&request(contract::UI_ACTION)).unwrap_or(Pattern::Absent);
    let answer = Template::new(format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{result}}}"#));
    let reply = match odd {
        Some(_) => Reply::Odd { departs: "it is no result of an action".to_owned(), answer },
        None => Reply::Once(answer),
    };
    script.reactions.push(Reaction { when, reply, times: Some(1), guest: Some(ONE.to_owned()) });
    script
}

/// What came of an action, and whether the model was asked meanwhile: a host may take what it does not do for a text.
fn action(x: &Exchange<'_>, label: &str) -> Sight {
    let asked =
        |from: u64, to: u64| x.asked(contract::STREAM_OPEN).any(|(entry, _)| (from..=to).contains(&entry.at));
    match (came(x, label), span(x, label)) {
        (Sight::Saw(DONE, at), Ok((from, over, _))) if asked(from, over) => Sight::Saw(TO_MODEL, at),
        (sight, _) => sight,
    }
}

fn action_results(x: &Exchange<'_>) -> Sight {
    match action(x, "action") {
        Sight::Saw(DONE, _) => {}
        Sight::Saw(..) => {
            return Sight::Undecided(Why::NotProvoked("an action that is in order was not done".into()));
        }
        other => return other,
    }
    let mut last = None;
    for (label, _) in ACTION_RESULTS {
        let sight = action(x, label);
        match &sight {
            Sight::Saw(TO_MODEL, _) => last = Some(sight),
            Sight::Saw(FAILED, _) => last = last.or(Some(sight)),
            Sight::Saw(seen, at) => {
                return Sight::SawOther { at: *at, actual: format!("{label}: {}", seen.0) };
            }
            _ => return sight,
        }
    }
    last.unwrap_or_else(|| super::never_came(x, "action"))
}

// ---- chunks ----

/// Chunks and ends that are none, by the models that say them, and why. Each stands behind the first chunk of its
/// stream, and before the second.
fn odd_chunks() -> [(&'static str, &'static str, String); 13] {
    let told =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
    let odd = r#"{"type":"text","text":"odd-"}"#;
    let of_stream =
        |members: &str| told(contract::STREAM_CHUNK, &format!(r#"{{"streamId":{STREAM},{members}}}"#));
    let usage = r#"{"promptTokens":1,"completionTokens":1,"totalTokens":2,"cacheHitTokens":0,"cacheMissTokens":1,"reasoningTokens":0,"besides":1}"#;
    [
        ("more", "it has a member besides", of_stream(&format!(r#""seq":2,"chunk":{odd},"besides":1"#))),
        (
            "more-in-chunk",
            "its chunk has a member besides",
            chunk(2, r#"{"type":"text","text":"odd-","besides":1}"#),
        ),
        (
            "more-in-usage",
            "its usage has a member besides",
            chunk(2, &format!(r#"{{"type":"usage","usage":{usage}}}"#)),
        ),
        (
            "more-in-call",
            "its call has a member besides",
            chunk(
                2,
                r#"{"type":"tool_call_start","toolCall":{"id":"odd","name":"ls","arguments":"","besides":1}}"#,
            ),
        ),
        ("more-in-end", "it has a member besides", end_of(STREAM, 1, r#","besides":1"#)),
        ("no-type", "its chunk has no type", chunk(2, r#"{"text":"odd-"}"#)),
        (
            "no-last",
            "it does not say which chunk is the last",
            told(contract::STREAM_END, &format!(r#"{{"streamId":{STREAM}}}"#)),
        ),
        ("null-error", "error is null", chunk(2, r#"{"type":"text","text":"odd-","error":null}"#)),
        ("null-in-end", "error is null", end_of(STREAM, 1, r#","error":null"#)),
        ("zero", "its number is 0", chunk(0, odd)),
        (
            "negative-end",
            "its last number is below zero",
            told(contract::STREAM_END, &format!(r#"{{"streamId":{STREAM},"lastSeq":-1}}"#)),
        ),
        ("nameless", "its stream has no name", chunk_of(r#""""#, 2, odd)),
        (
            "fraction",
            "its number is written with a fraction",
            of_stream(&format!(r#""seq":2.0,"chunk":{odd}"#)),
        ),
    ]
}

static CHUNKS: ScriptDef = ScriptDef {
    name: "odd-chunks",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let odd = odd_chunks();
        let models: Vec<&str> = odd.iter().map(|(model, ..)| *model).collect();
        let mut it = session_of("odd-chunks", setting, Plugin::new(setting, ONE), &models, &[]);
        for (model, departs, frame) in &odd {
            it = asks(first_stream(it, model, Vec::new()), model).step(awaits(&opening(model)));
            for frame in accepted([text(1, "one-")]) {
                it = it.step(conforming(&frame));
            }
            it = it.raw(&format!("{model}-chunk"), departs, frame.clone());
            it = it.step(conforming(&text(2, "two-"))).step(conforming(&end(2))).step(outcome(model));
        }
        stop(it)
    },
};

/// What the user was shown of a stream, or that it failed.
fn became_of(x: &Exchange<'_>, model: &str, expected: &[(&str, Seen)]) -> Sight {
    let opened = openings(x, model).next().is_some();
    match came(x, model) {
        Sight::Saw(FAILED, at) if opened => Sight::Saw(INTERRUPTED, at),
        _ => shows_as(x, model, expected),
    }
}

/// Whether none of these had any effect but, at most, that its stream failed.
fn dropped(x: &Exchange<'_>, models: &[&str]) -> Sight {
    let mut last = None;
    for model in models {
        match became_of(x, model, &[("one-two-", IN_ORDER)]) {
            Sight::Saw(INTERRUPTED, at) => last = Some(Sight::Saw(INTERRUPTED, at)),
            sight @ Sight::Saw(IN_ORDER, _) => last = last.or(Some(sight)),
            other => return other,
        }
    }
    last.unwrap_or_else(|| all(std::iter::empty(), IN_ORDER))
}
