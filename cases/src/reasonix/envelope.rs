//! "Transport": the JSON-RPC envelope, ids, and who answers what.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::{sample, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::{Id, Outcome};
use sidecert_proto::script::{Process, Script, ScriptDef, Step};
use sidecert_proto::transcript::Kind;
use sidecert_proto::verdict::Sight;

use super::content::{self, EXTERNALIZED_INTERCEPT, LATE_PAGE, MISMATCHED_PAGES, STRAY_PAGES};
use super::sights::{
    BAD_PARAMS, BUSY, IGNORED, INVALID, INVALID_BY_ID, SERVED, UNKNOWN, VIOLATION, all_became, became, named,
    oddities, request, sdk, specified,
};
use super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, NO_METHOD, NOTHING_PARAMS};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const REQUEST: Cite = Cite::JsonRpc("4 Request object");
const NOTIFICATION: Cite = Cite::JsonRpc("4.1 Notification");
const RESPONSE: Cite = Cite::JsonRpc("5 Response object");
const ERROR: Cite = Cite::JsonRpc("5.1 Error object");
const DIRECTION: Cite = Cite::Schema("/methods");

const ALL_ANSWERED: Seen = Seen("each is answered: what is one too many is refused (-32099)");
const SURVIVED: Seen = Seen("refused or passed over");
const ECHOED: Seen = Seen("answered under the same id");
const UNDER_NULL: Seen = Seen("answered under the id null");

/// An invalid request whose id can be told.
const INVALID_EITHER: &[Accepts] = &[specified(INVALID_BY_ID), specified(VIOLATION), specified(INVALID)];
/// The same, where only the reference implementation is that strict.
const INVALID_OBSERVED: &[Accepts] =
    &[sdk(INVALID_BY_ID), specified(VIOLATION), specified(INVALID), specified(UNKNOWN)];
/// An invalid request whose id is none.
const INVALID_UNDER_NULL: &[Accepts] = &[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION)];
const INVALID_UNDER_NULL_OBSERVED: &[Accepts] = &[sdk(INVALID)];
const NO_OBJECT_PARAMS: &[Accepts] =
    &[specified(INVALID_BY_ID), specified(VIOLATION), specified(BAD_PARAMS), specified(INVALID)];
/// A response that is none: JSON-RPC has no word on whether one is answered.
const BAD_RESPONSE: &[Accepts] =
    &[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION), specified(IGNORED)];
const UNKNOWN_BY_SPECIFICATION: &[Accepts] = &[specified(UNKNOWN)];
const ANY_REFUSAL: &[Accepts] = &[
    specified(UNKNOWN),
    specified(INVALID_BY_ID),
    specified(VIOLATION),
    specified(BAD_PARAMS),
    specified(super::sights::INTERNAL),
];
const IGNORED_BY_SPECIFICATION: &[Accepts] = &[specified(IGNORED)];
const IGNORED_BY_SDK: &[Accepts] = &[sdk(IGNORED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/envelope/frames-well-formed", Guest)
        .says(
            "Every frame is a request, a notification, or a response with exactly one of result and error.",
            &[TRANSPORT, RESPONSE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ENVELOPES_WELL_FORMED.guest, &super::HANDSHAKE)),
    must("reasonix/envelope/answered-once", Guest)
        .says("A request is answered once.", &[TRANSPORT, RESPONSE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ANSWERED_ONCE.guest, &super::HANDSHAKE)),
    must("reasonix/envelope/answers-what-was-asked", Guest)
        .says("An answer stands under the id of a request that was sent.", &[TRANSPORT, RESPONSE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ANSWERS_ASKED.guest, &super::HANDSHAKE)),
    must("reasonix/envelope/notifications-unanswered", Guest)
        .says("A notification is never answered, not even with an error.", &[TRANSPORT, NOTIFICATION])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NOTIFICATIONS_UNANSWERED.guest, &OBSERVATIONS)),
    must("reasonix/envelope/own-ids-integers", Guest)
        .says("The guest asks under integer ids, each unlike those that still wait.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::IDS_ARE_INTEGERS.guest, &EXTERNALIZED_INTERCEPT)),
    must("reasonix/envelope/own-params-objects", Guest)
        .says("The params of what the guest asks and tells are objects.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::PARAMS_ARE_OBJECTS.guest, &EXTERNALIZED_INTERCEPT)),
    must("reasonix/envelope/legal-ids-echoed", Guest)
        .says("An error stands under the integer id that was sent, or under null, and never under another kind of id.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::LEGAL_IDS_ECHOED.guest, &ODD_IDS)),
    must("reasonix/envelope/version-demanded", Guest)
        .says(r#"A request whose jsonrpc is not the string "2.0" is refused."#, &[TRANSPORT, REQUEST])
        .accepts(INVALID_EITHER)
        .checked(After(&ODD_ENVELOPES, |x| {
            all_became(x, ["no-version", "old-version", "number-version"], INVALID_EITHER)
        })),
    must("reasonix/envelope/unknown-members-ignored", Guest)
        .says("Members of a frame that JSON-RPC does not have are passed over.", &[TRANSPORT])
        .accepts(&[specified(SERVED)])
        .checked(After(&EXTRA_MEMBERS, |x| became(x, "extra"))),
    must("reasonix/envelope/unknown-members-in-answers-ignored", Guest)
        .says("Members of an answer that JSON-RPC does not have are passed over.", &[TRANSPORT])
        .accepts(&[specified(SERVED)])
        .checked(After(&STRAY_PAGES, |x| content::became(x, "extra"))),
    must("reasonix/envelope/string-id-refused", Guest)
        .says("A request whose id is a string is an invalid frame, and is refused.", &[TRANSPORT])
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&ODD_IDS, |x| became(x, "string-id"))),
    must("reasonix/envelope/odd-ids-refused", Guest)
        .says("A request whose id is a fraction, a truth value, an object or an array is refused.", &[TRANSPORT, REQUEST])
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&ODD_IDS, |x| {
            all_became(x, ["fraction-id", "boolean-id", "object-id", "array-id"], INVALID_UNDER_NULL)
        })),
    must("reasonix/envelope/written-fractions-refused", Guest)
        .says("An id that is written with a fraction or an exponent is refused, whole or not.", &[])
        .accepts(INVALID_UNDER_NULL_OBSERVED)
        .checked(After(&ODD_IDS, |x| {
            all_became(x, ["written-fraction-id", "exponent-id"], INVALID_UNDER_NULL_OBSERVED)
        })),
    must("reasonix/envelope/null-id-answered", Guest)
        .says("A request under the id null is answered under the id null.", &[])
        .accepts(&[sdk(UNDER_NULL)])
        .checked(After(&NULL_ID, null_id_answered)),
    must("reasonix/envelope/ids-echoed", Guest)
        .says("The id of an answer is the id of its request: negative, and beyond 2^53.", &[TRANSPORT, RESPONSE])
        .accepts(&[specified(ECHOED)])
        .checked(After(&FAR_IDS, |x| echoed(x, &["negative", "beyond-doubles", "greatest"]))),
    must("reasonix/envelope/huge-ids-echoed", Guest)
        .says("Ids of thirty digits, and -0, come back as they were written.", &[])
        .accepts(&[sdk(ECHOED), specified(INVALID)])
        .checked(After(&FAR_IDS, huge_ids_echoed)),
    must("reasonix/envelope/params-objects-demanded", Guest)
        .says("A request whose params are an array, a string or null is refused.", &[TRANSPORT])
        .accepts(NO_OBJECT_PARAMS)
        .checked(After(&ODD_PARAMS, |x| {
            all_became(x, ["array-params", "text-params", "null-params"], NO_OBJECT_PARAMS)
        })),
    must("reasonix/envelope/absent-params-empty", Guest)
        .says("A request without params is taken as one with empty params: what it lacks are members.", &[])
        .accepts(&[sdk(BAD_PARAMS)])
        .checked(After(&ODD_PARAMS, |x| became(x, "no-params"))),
    must("reasonix/envelope/batches-refused", Guest)
        .says("An array of requests is no frame; it is refused, and none of them is executed.", &[TRANSPORT])
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&NO_OBJECTS, batches_refused)),
    must("reasonix/envelope/no-objects-refused", Guest)
        .says("A JSON text that is no object is no frame, and is refused.", &[TRANSPORT])
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&NO_OBJECTS, |x| {
            all_became(x, ["number", "string", "null", "true"], INVALID_UNDER_NULL)
        })),
    must("reasonix/envelope/requests-with-outcome-refused", Guest)
        .says("A request that carries a result or an error is refused.", &[REQUEST])
        .accepts(INVALID_EITHER)
        .checked(After(&ODD_ENVELOPES, |x| all_became(x, ["with-result", "with-error"], INVALID_EITHER))),
    must("reasonix/envelope/method-demanded", Guest)
        .says("A request whose method is empty or null is an invalid frame.", &[])
        .accepts(INVALID_OBSERVED)
        .checked(After(&ODD_ENVELOPES, |x| all_became(x, ["empty-method", "null-method"], INVALID_OBSERVED))),
    must("reasonix/envelope/bad-responses-survived", Guest)
        .says(
            "A response without an id, or whose error lacks its code or message, is refused or passed over.",
            &[RESPONSE, ERROR],
        )
        .accepts(&[specified(SURVIVED)])
        .checked(After(&BAD_RESPONSES, |x| {
            match all_became(x, ["no-id", "no-message", "fraction-code"], BAD_RESPONSE) {
                Sight::Saw(_, at) => Sight::Saw(SURVIVED, at),
                other => other,
            }
        })),
    must("reasonix/envelope/stray-responses-ignored", Guest)
        .says("A response to nothing that was asked is passed over.", &[])
        .accepts(IGNORED_BY_SDK)
        .checked(After(&BAD_RESPONSES, |x| all_became(x, ["stray-result", "stray-error"], IGNORED_BY_SDK))),
    must("reasonix/envelope/second-responses-ignored", Guest)
        .says("Of two responses to one request the first counts, and the second is passed over.", &[])
        .accepts(&[sdk(SERVED)])
        .checked(After(&STRAY_PAGES, |x| content::became(x, "twice"))),
    must("reasonix/envelope/late-responses-ignored", Guest)
        .says("A response that comes when its request was given up is passed over.", &[])
        .accepts(&[sdk(super::sights::TIMED_OUT)])
        .checked(After(&LATE_PAGE, content::gave_up)),
    must("reasonix/envelope/responses-matched-by-integer", Guest)
        .says("A response under the same number as a text, or written as a fraction, is to another request.", &[])
        .accepts(&[sdk(SERVED)])
        .checked(After(&MISMATCHED_PAGES, |x| {
            content::all_became(x, &["text-id", "written-fraction"], &[sdk(SERVED)])
        })),
    must("reasonix/envelope/malformed-responses-leave-it-open", Guest)
        .says("A response with both a result and an error leaves its request open for a good one.", &[])
        .accepts(&[sdk(SERVED), specified(VIOLATION), specified(super::sights::INTERNAL)])
        .checked(After(&MISMATCHED_PAGES, |x| content::became(x, "both"))),
    must("reasonix/envelope/unknown-method-refused", Guest)
        .says("A request for a method that there is not is refused as an unknown method.", &[Cite::Seed("错误", "Errors"), Cite::Schema("/errors")])
        .accepts(UNKNOWN_BY_SPECIFICATION)
        .checked(After(&WRONG_METHODS, |x| became(x, "no-method"))),
    must("reasonix/envelope/notifications-not-requested", Guest)
        .says("A request for what is only a notification is refused, and does nothing.", &[DIRECTION])
        .accepts(ANY_REFUSAL)
        .checked(After(&WRONG_METHODS, |x| became(x, "event-as-request"))),
    must("reasonix/envelope/own-methods-refused", Guest)
        .says("A request for a method that is the guest's own to ask for is refused, and does nothing.", &[DIRECTION])
        .accepts(ANY_REFUSAL)
        .checked(After(&WRONG_METHODS, |x| became(x, "other-direction"))),
    must("reasonix/envelope/unknown-notifications-ignored", Guest)
        .says("A notification that there is not is passed over.", &[NOTIFICATION])
        .accepts(IGNORED_BY_SPECIFICATION)
        .checked(After(&ODD_NOTIFICATIONS, |x| became(x, "no-notification"))),
    must("reasonix/envelope/requests-not-notified", Guest)
        .says("A notification of what is only a request is passed over.", &[NOTIFICATION])
        .accepts(IGNORED_BY_SPECIFICATION)
        .checked(After(&ODD_NOTIFICATIONS, |x| became(x, "request-as-notification"))),
    must("reasonix/envelope/last-of-repeated-members-counts", Guest)
        .says("Of members with the same name the last one counts.", &[])
        .accepts(&[sdk(SERVED), specified(INVALID), specified(super::sights::NO_JSON), specified(INVALID_BY_ID)])
        .checked(After(&REPEATED_MEMBERS, |x| {
            all_became(
                x,
                ["id-twice", "method-twice"],
                &[sdk(SERVED), specified(INVALID), specified(super::sights::NO_JSON), specified(INVALID_BY_ID)],
            )
        })),
    must("reasonix/envelope/overload-answered", Guest)
        .says("However many requests wait, each is answered; what is one too many is refused.", &[])
        .accepts(&[sdk(ALL_ANSWERED)])
        .checked(After(&OVERLOAD, overload_answered)),
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
        let event = |point: &str| format!(r#"{{"event":"{point}","payload":{}}}"#, sample::payload(point));
        Script::new("observations")
            .step(Step::Cut { at: cut })
            .notify("started", contract::EVENT, &event(point::SESSION_START))
            .notify("changed", contract::RESOURCES_CHANGED, r#"{"paths":["README.md"]}"#)
            .notify("saved", contract::EVENT, &event(point::SESSION_SAVE))
            .fence()
            .quiet()
    },
};

/// A request that does nothing, under this id, as one JSON text.
fn under_id(id: &str) -> String {
    sidecert_proto::script::request(id, contract::STREAM_CANCEL, NOTHING_PARAMS)
}

/// Sends requests whose envelope is wrong.
pub(super) static ODD_ENVELOPES: ScriptDef = ScriptDef {
    name: "odd-envelopes",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let plain = |label: &str| request(label, contract::STREAM_CANCEL, NOTHING_PARAMS);
        let edited = |label: &str, from: &str, to: &str| plain(label).replacen(from, to, 1);
        let method = format!(r#""{}""#, contract::STREAM_CANCEL);
        oddities(
            "odd-envelopes",
            [
                ("no-version", "it has no jsonrpc", edited("no-version", r#""jsonrpc":"2.0","#, "")),
                ("old-version", r#"its jsonrpc is "1.0""#, edited("old-version", r#""2.0""#, r#""1.0""#)),
                ("number-version", "its jsonrpc is a number", edited("number-version", r#""2.0""#, "2")),
                (
                    "with-result",
                    "it carries a result",
                    edited("with-result", r#""params""#, r#""result":{},"params""#),
                ),
                (
                    "with-error",
                    "it carries an error",
                    edited("with-error", r#""params""#, r#""error":{"code":1,"message":"x"},"params""#),
                ),
                ("empty-method", "its method is empty", edited("empty-method", &method, r#""""#)),
                ("null-method", "its method is null", edited("null-method", &method, "null")),
            ],
        )
    },
};

/// Sends requests whose ids are no integers.
static ODD_IDS: ScriptDef = ScriptDef {
    name: "odd-ids",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        oddities(
            "odd-ids",
            [
                ("string-id", "its id is a string", under_id(r#""sidecert""#)),
                ("fraction-id", "its id is a fraction", under_id("1.5")),
                ("boolean-id", "its id is a truth value", under_id("true")),
                ("object-id", "its id is an object", under_id("{}")),
                ("array-id", "its id is an array", under_id("[]")),
                ("written-fraction-id", "its id is written as a fraction", under_id("700010.0")),
                ("exponent-id", "its id is written with an exponent", under_id("7e5")),
            ],
        )
    },
};

/// Sends a request under the id null.
static NULL_ID: ScriptDef = ScriptDef {
    name: "null-id",
    process: Process::Tour,
    needs: &[],
    build: |_| oddities("null-id", [("null-id", "its id is null", under_id("null"))]),
};

fn null_id_answered(exchange: &Exchange<'_>) -> Sight {
    let answer = exchange.responses().find(|(_, id)| *id == Id::Null);
    match answer {
        // Served or refused: both stand under null.
        Some((answer, _)) => Sight::Saw(UNDER_NULL, answer.at),
        None => exchange.nothing_came("null-id", "no answer"),
    }
}

const BEYOND_DOUBLES: &str = "9007199254740993";
const GREATEST: &str = "9223372036854775807";
const THIRTY_DIGITS: &str = "123456789012345678901234567890";

/// Sends requests under ids that few expect.
static FAR_IDS: ScriptDef = ScriptDef {
    name: "far-ids",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        oddities(
            "far-ids",
            [
                ("negative", "its id is negative, which is allowed", under_id("-5")),
                (
                    "beyond-doubles",
                    "its id is more than a double holds, which is allowed",
                    under_id(BEYOND_DOUBLES),
                ),
                ("greatest", "its id is the greatest of 64 bits, which is allowed", under_id(GREATEST)),
                ("thirty-digits", "its id is more than 64 bits hold", under_id(THIRTY_DIGITS)),
                ("negative-zero", "its id is -0", under_id("-0")),
            ],
        )
    },
};

fn echoed(exchange: &Exchange<'_>, labels: &[&str]) -> Sight {
    let mut last = 0;
    for label in labels {
        match exchange.answer_to(label) {
            Some(answer) => last = answer.at,
            None => return other_id(exchange, label),
        }
    }
    Sight::Saw(ECHOED, last)
}

/// The answer that came under an id that nobody sent, or none.
fn other_id(exchange: &Exchange<'_>, label: &str) -> Sight {
    let sent = exchange.sent(label).map_or(0, |sent| sent.at);
    let next = exchange.responses().find(|(answer, id)| answer.at > sent && !is_ours(exchange, id));
    match next {
        Some((answer, id)) => {
            Sight::SawOther { at: answer.at, actual: format!("{label}: answered under the id {id}") }
        }
        None => exchange.nothing_came(label, &format!("{label}: no answer")),
    }
}

fn is_ours(exchange: &Exchange<'_>, id: &Id<'_>) -> bool {
    exchange.entries().iter().any(|entry| {
        let ours = matches!(&entry.event.kind, Kind::Frame(frame) if frame.from != Guest);
        ours && entry.frame.as_ref().and_then(|said| sidecert_proto::rpc::id_of(said.root)).as_ref()
            == Some(id)
    })
}

fn huge_ids_echoed(exchange: &Exchange<'_>) -> Sight {
    // By the text, since -0 is 0 by value.
    let written = |text: &str| {
        exchange.from_target().find(|(_, said)| said.root.get("id").is_some_and(|id| id.raw() == text))
    };
    match (written(THIRTY_DIGITS), written("-0")) {
        (Some((entry, _)), Some(_)) => Sight::Saw(ECHOED, entry.at),
        (None, _) => match became(exchange, "thirty-digits") {
            Sight::Saw(IGNORED, _) => other_id(exchange, "thirty-digits"),
            other => other,
        },
        (_, None) => match exchange.answer_to("negative-zero") {
            Some(answer) => {
                Sight::SawOther { at: answer.at, actual: "-0 was answered under the id 0".to_owned() }
            }
            None => other_id(exchange, "negative-zero"),
        },
    }
}

/// Sends requests whose params are no object, and one without.
static ODD_PARAMS: ScriptDef = ScriptDef {
    name: "odd-params",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let with = |label: &str, params: &str| request(label, contract::STREAM_CANCEL, params);
        let none = with("no-params", "{}").replace(r#","params":{}"#, "");
        oddities(
            "odd-params",
            [
                ("array-params", "its params are an array", with("array-params", "[]")),
                ("text-params", "its params are a string", with("text-params", r#""x""#)),
                ("null-params", "its params are null", with("null-params", "null")),
                ("no-params", "it has no params, and its method needs some", none),
            ],
        )
    },
};

const IN_BATCH: i64 = 700_020;

/// Sends JSON texts that are no objects.
static NO_OBJECTS: ScriptDef = ScriptDef {
    name: "no-objects",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let text = |json: &str| json.to_owned();
        oddities(
            "no-objects",
            [
                ("batch", "it is an array of requests", format!("[{}]", under_id(&IN_BATCH.to_string()))),
                ("empty-batch", "it is an empty array", text("[]")),
                ("number", "it is a number", text("42")),
                ("string", "it is a string", text(r#""x""#)),
                ("null", "it is null", text("null")),
                ("true", "it is a truth value", text("true")),
            ],
        )
    },
};

fn batches_refused(exchange: &Exchange<'_>) -> Sight {
    let executed = exchange.from_target().find(|(_, said)| {
        let inside = said.root.elements().next().and_then(|first| first.get("id"));
        inside.or_else(|| said.root.get("id")).and_then(|id| id.as_i64()) == Some(IN_BATCH)
    });
    match executed {
        Some((entry, _)) => Sight::SawOther { at: entry.at, actual: "its request was answered".to_owned() },
        None => all_became(exchange, ["batch", "empty-batch"], INVALID_UNDER_NULL),
    }
}

/// Sends a request with a member that JSON-RPC does not have.
static EXTRA_MEMBERS: ScriptDef = ScriptDef {
    name: "extra-members",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let frame = request("extra", contract::STREAM_CANCEL, NOTHING_PARAMS);
        let frame = frame.replacen(r#""method""#, r#""x":{"y":[1]},"method""#, 1);
        Script::new("extra-members")
            .step(Step::Send {
                label: Some("extra".to_owned()),
                frame: sidecert_proto::script::Outgoing::Template(sidecert_proto::script::Template::new(
                    frame,
                )),
            })
            .fence()
            .settle()
    },
};

/// Sends responses that are none, and responses to nothing.
static BAD_RESPONSES: ScriptDef = ScriptDef {
    name: "bad-responses",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let text = |json: &str| json.to_owned();
        oddities(
            "bad-responses",
            [
                ("no-id", "it is a response without an id", text(r#"{"jsonrpc":"2.0","result":{}}"#)),
                (
                    "no-message",
                    "its error has no message",
                    text(r#"{"jsonrpc":"2.0","id":700030,"error":{"code":-32603}}"#),
                ),
                (
                    "fraction-code",
                    "the code of its error is a fraction",
                    text(r#"{"jsonrpc":"2.0","id":700031,"error":{"code":1.5,"message":"x"}}"#),
                ),
                (
                    "stray-result",
                    "nothing was asked under its id",
                    text(r#"{"jsonrpc":"2.0","id":700032,"result":{}}"#),
                ),
                (
                    "stray-error",
                    "nothing was asked under its id",
                    text(r#"{"jsonrpc":"2.0","id":700033,"error":{"code":-32603,"message":"x"}}"#),
                ),
            ],
        )
        .quiet()
    },
};

/// Asks for methods that a guest does not have.
pub(super) static WRONG_METHODS: ScriptDef = ScriptDef {
    name: "wrong-methods",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let event = format!(
            r#"{{"event":"{}","payload":{}}}"#,
            point::SESSION_START,
            sample::payload(point::SESSION_START)
        );
        let surface = format!(
            r#"{{"surfaceId":"sidecert","kind":"status","payload":{{"label":"x"}},"sessionId":"{}","generation":1}}"#,
            sidecert_proto::reasonix::host::session_id(setting.seed)
        );
        oddities(
            "wrong-methods",
            [
                ("no-method", "there is no such method", request("no-method", NO_METHOD, "{}")),
                (
                    "event-as-request",
                    "it asks for what is a notification",
                    request("event-as-request", contract::EVENT, &event),
                ),
                (
                    "other-direction",
                    "it asks for what is the guest's to ask for",
                    request("other-direction", contract::UI_PUBLISH, &surface),
                ),
            ],
        )
    },
};

/// Tells the guest what is no notification.
static ODD_NOTIFICATIONS: ScriptDef = ScriptDef {
    name: "odd-notifications",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let tell = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
        };
        oddities(
            "odd-notifications",
            [
                ("no-notification", "there is no such notification", tell(NO_METHOD, "{}")),
                (
                    "request-as-notification",
                    "it tells what is a request",
                    tell(contract::STREAM_CANCEL, NOTHING_PARAMS),
                ),
            ],
        )
        .quiet()
    },
};

/// Sends requests with a member twice, of which the last one is good.
static REPEATED_MEMBERS: ScriptDef = ScriptDef {
    name: "repeated-members",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let plain = |label: &str| request(label, contract::STREAM_CANCEL, NOTHING_PARAMS);
        let method = format!(r#""method":"{NO_METHOD}","method""#);
        oddities(
            "repeated-members",
            [
                (
                    "id-twice",
                    "it has two ids",
                    plain("id-twice").replacen(r#""id""#, r#""id":700040,"id""#, 1),
                ),
                (
                    "method-twice",
                    "it has two methods",
                    plain("method-twice").replacen(r#""method""#, &method, 1),
                ),
            ],
        )
    },
};

/// How many requests wait at once: more than the reference implementation serves.
const WAITING: usize = 40;

/// Sends many intercepts that all wait for their content.
static OVERLOAD: ScriptDef = ScriptDef {
    name: "overload",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let script = (1..=WAITING).fold(Script::new("overload"), |script, number| {
            script.request(
                &format!("waiting-{number}"),
                contract::INTERCEPT,
                &content::held_intercept(setting),
            )
        });
        let mut script = script.step(content::held_is_asked()).quiet().settle();
        script.reactions.push(content::held_pages(setting));
        script
    },
};

fn overload_answered(exchange: &Exchange<'_>) -> Sight {
    let mut last = 0;
    for number in 1..=WAITING {
        let label = format!("waiting-{number}");
        let Some(answer) = exchange.answer_to(&label) else {
            return exchange.nothing_came(&label, "not every request was answered");
        };
        let refused = matches!(named(&answer, true), Sight::Saw(BUSY, _));
        if !refused && matches!(answer.outcome, Outcome::Error { .. }) {
            return Sight::SawOther { at: answer.at, actual: answer.summary() };
        }
        last = answer.at;
    }
    Sight::Saw(ALL_ANSWERED, last)
}
