//! "Transport": lines, frames, ids and members.

use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{self, Limits, point};
use sidecert_proto::reasonix::host::padded_request;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Basis, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::{self, Id, Outcome};
use sidecert_proto::script::{Need, Process, Script, ScriptDef, Setting, Step};
use sidecert_proto::transcript::Kind;
use sidecert_proto::verdict::Sight;

use super::{KEPT, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};
use sidecert_proto::contract::Side::Guest;

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");

const REFUSED: Seen = Seen("refused as an invalid request, under the id null");
const REFUSED_BY_ID: Seen = Seen("refused as an invalid request, under the id that was sent");
const SERVED: Seen = Seen("served");
const ENDED: Seen = Seen("the connection ended, and the request was not served");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/transport/notifications-unanswered", Guest)
        .says(
            "A notification is never answered, not even with an error.",
            &[TRANSPORT, Cite::JsonRpc("4.1 Notification")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NOTIFICATIONS_UNANSWERED, &OBSERVATIONS)),
    must("reasonix/transport/largest-frame-served", Guest)
        .says(
            "A frame of exactly the limit, its line feed counted, is served.",
            &[TRANSPORT, Cite::Schema("/limits/frameBytes")],
        )
        .accepts(&[Accepts { seen: SERVED, by: Basis::Specified }])
        .checked(After(&LARGEST_FRAME, largest_frame_served)),
    must("reasonix/transport/oversized-frame-fatal", Guest)
        .says(
            "A frame whose body alone is longer than the limit ends the connection, and is not served.",
            &[TRANSPORT, Cite::Schema("/limits/frameBytes")],
        )
        .accepts(&[Accepts { seen: ENDED, by: Basis::Specified }])
        .checked(After(&OVERSIZED_FRAME, oversized_frame_fatal)),
    must("reasonix/transport/frames-within-limit", Guest)
        .says(
            "No frame is longer than the limit, however much there is to say.",
            &[TRANSPORT, Cite::Schema("/limits/frameBytes")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(After(&LARGE_ANSWER, frames_within_limit)),
    must("reasonix/transport/string-id-refused", Guest)
        .says("A request whose id is a string is an invalid frame, and is refused.", &[TRANSPORT])
        .accepts(&[
            Accepts { seen: REFUSED, by: Basis::Specified },
            Accepts { seen: REFUSED_BY_ID, by: Basis::Specified },
        ])
        .checked(After(&ODD_IDS, string_id_refused)),
    must("reasonix/transport/members-fit", Guest)
        .says(
            "Params and results have the members of their definition, with values that fit, and no others.",
            &[TRANSPORT, Cite::Schema("/$defs")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::MEMBERS_FIT, &super::HANDSHAKE)),
    must("reasonix/transport/integers-written-plainly", Guest)
        .says("An integer is written without fraction and exponent: 1, not 1.0.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::INTEGERS_WRITTEN, &super::HANDSHAKE)),
];

/// Tells the guest things that it must not answer, the first one in three parts.
static OBSERVATIONS: ScriptDef = ScriptDef {
    name: "observations",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        // Two places in the first hundred bytes, so that the parts end anywhere in a frame.
        let (first, second) = (1 + setting.seed % 50, 51 + setting.seed / 50 % 50);
        let cut = [first, second].map(|at| usize::try_from(at).unwrap_or(1)).to_vec();
        let event = |point: &str, phase: &str| {
            format!(r#"{{"event":"{point}","payload":{{"sessionPath":"sidecert","phase":"{phase}"}}}}"#)
        };
        Script::new("observations")
            .step(Step::Cut { at: cut })
            .notify("started", contract::EVENT, &event(point::SESSION_START, "start"))
            .notify("changed", contract::RESOURCES_CHANGED, r#"{"paths":["README.md"]}"#)
            .notify("saved", contract::EVENT, &event(point::SESSION_SAVE, "save"))
            .fence()
            .quiet()
    },
};

const LARGEST: i64 = 9_000_001;
const OVERSIZED: i64 = 9_000_002;

/// Sends the largest frame that there may be.
static LARGEST_FRAME: ScriptDef = ScriptDef {
    name: "largest-frame",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let body = Limits::of(setting.contract).frame_bytes - 1;
        Script::new("largest-frame")
            .step(Step::Send { label: Some("largest".to_owned()), frame: padded_request(LARGEST, body) })
            .answer("largest")
    },
};

fn largest_frame_served(exchange: &Exchange<'_>) -> Sight {
    match exchange.answer_to("largest") {
        // Whatever the method says to it, it was read; only the frame layer's own refusals mean that it was not.
        Some(answer) => match answer.code() {
            Some(code @ (rpc::PARSE_ERROR | rpc::INVALID_REQUEST)) => {
                Sight::SawOther { at: answer.at, actual: format!("refused with {code}") }
            }
            _ => Sight::Saw(SERVED, answer.at),
        },
        None => match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest })) {
            Some(end) => {
                Sight::SawOther { at: end.at, actual: "the connection ended without an answer".to_owned() }
            }
            None => exchange.nothing_came("largest", "no answer"),
        },
    }
}

/// Sends a frame that is too long under every reading of the limit.
static OVERSIZED_FRAME: ScriptDef = ScriptDef {
    name: "oversized-frame",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let body = Limits::of(setting.contract).frame_bytes + 1;
        sidecert_proto::reasonix::host::opening(setting)
            .step(Step::Raw {
                label: Some("oversized".to_owned()),
                departs: "its body is longer than the limit".to_owned(),
                frame: padded_request(OVERSIZED, body),
            })
            .step(Step::Fence { or_end: true })
    },
};

fn oversized_frame_fatal(exchange: &Exchange<'_>) -> Sight {
    if let Some(answer) = exchange.answer_to("oversized").filter(|answer| answer.code().is_none()) {
        return Sight::SawOther { at: answer.at, actual: "the request was served".to_owned() };
    }
    match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest } | Kind::Exited(_))) {
        Some(end) => Sight::Saw(ENDED, end.at),
        None => exchange.nothing_came("oversized", "the connection went on: a later request was answered"),
    }
}

/// Makes the guest want to say more than a frame can hold.
static LARGE_ANSWER: ScriptDef = ScriptDef {
    name: "large-answer",
    process: Process::Own,
    needs: &[Need::Provocation("large")],
    build: |setting| {
        let params = provoked_intercept(setting, "large");
        Script::new("large-answer").request("large", contract::INTERCEPT, &params).answer("large")
    },
};

/// The params of an intercept whose event and payload are those of a provocation.
fn provoked_intercept(setting: &Setting<'_>, name: &str) -> String {
    let text = setting.provocations.get(name).map_or("{}", String::as_str);
    let tape = sidecert_proto::json::Tape::scan(text.as_bytes());
    let member = |name: &str| {
        let found = tape.as_ref().ok().and_then(|tape| tape.root().get(name));
        found.map_or_else(|| "null".to_owned(), |node| node.raw().to_owned())
    };
    format!(r#"{{"event":{},"payload":{},"seq":1,"timeoutMillis":5000}}"#, member("event"), member("payload"))
}

fn frames_within_limit(exchange: &Exchange<'_>) -> Sight {
    let oversize = exchange.entries().iter().find_map(|entry| match &entry.event.kind {
        Kind::Oversize { seen, .. } => Some((entry.at, *seen)),
        _ => None,
    });
    if let Some((at, seen)) = oversize {
        return Sight::SawOther { at, actual: format!("a frame of at least {seen} bytes") };
    }
    match exchange.answer_to("large") {
        Some(answer) => Sight::Saw(KEPT, answer.at),
        None => exchange.nothing_came("large", "no answer"),
    }
}

/// Sends requests whose ids are no integers.
static ODD_IDS: ScriptDef = ScriptDef {
    name: "odd-ids",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let request = sidecert_proto::script::request(
            r#""sidecert""#,
            contract::STREAM_CANCEL,
            r#"{"streamId":"sidecert-fence"}"#,
        );
        Script::new("odd-ids").raw("string-id", "its id is a string", request).fence().quiet()
    },
};

fn string_id_refused(exchange: &Exchange<'_>) -> Sight {
    let Some(sent) = exchange.sent("string-id") else {
        return exchange.nothing_came("string-id", "no answer");
    };
    let answers = exchange.responses().filter(|(answer, _)| answer.at > sent.at);
    let first = answers.into_iter().find_map(|(answer, id)| match (id, answer.outcome) {
        (Id::Text(text), _) if text == "sidecert" => Some((answer, true)),
        (Id::Null, Outcome::Error { .. }) => Some((answer, false)),
        _ => None,
    });
    match first {
        Some((answer, named)) if answer.code() == Some(rpc::INVALID_REQUEST) => {
            Sight::Saw(if named { REFUSED_BY_ID } else { REFUSED }, answer.at)
        }
        Some((answer, _)) => {
            Sight::SawOther { at: answer.at, actual: format!("answered with {}", answer.summary()) }
        }
        None => exchange.nothing_came("string-id", "no answer, though a later request was answered"),
    }
}
