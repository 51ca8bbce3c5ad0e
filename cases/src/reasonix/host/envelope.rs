//! "Transport", as a host must keep it: the JSON-RPC envelope, ids, and who answers what.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::plugin::{Plugin, START};
use sidecert_proto::reasonix::sidecar;
use sidecert_proto::reasonix::{sample, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::{Id, Outcome};
use sidecert_proto::script::{Process, Reply, Script, ScriptDef, Setting, Step, Template};
use sidecert_proto::transcript::Told;
use sidecert_proto::verdict::{Sight, Why};

use super::super::sights::{
    BAD_PARAMS, BUSY, EXPIRED, IGNORED, INTERNAL, INVALID, INVALID_BY_ID, NO_JSON, UNKNOWN, VIOLATION,
    all_became, all_with_prefix, became, named, oddities, request,
};
use super::super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};
use super::rulings::all_came;
use super::transport::read_nothing;
use super::{
    DONE, ONE, PLAIN_TURN, TURN, came_of, intercept, lifecycle, observed, reacts, responses,
    session as begin, specified, stop, turn, ui,
};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const REQUEST: Cite = Cite::JsonRpc("4 Request object");
const NOTIFICATION: Cite = Cite::JsonRpc("4.1 Notification");
const RESPONSE: Cite = Cite::JsonRpc("5 Response object");
const ERROR: Cite = Cite::JsonRpc("5.1 Error object");
const DIRECTION: Cite = Cite::Schema("/methods");

/// Whatever a host says of contents that there are not, it has answered.
const MANY_ANSWERED: &[Accepts] = &[
    specified(EXPIRED),
    specified(BUSY),
    specified(UNKNOWN),
    specified(BAD_PARAMS),
    specified(VIOLATION),
    specified(INTERNAL),
];
const SURPLUS: Seen =
    Seen("each of the surplus refused as one too many (-32099), without data, and the rest left open");
const ECHOED: Seen = Seen("answered under the same id, as it was written");

/// An invalid request whose id can be told.
const INVALID_EITHER: &[Accepts] = &[specified(INVALID_BY_ID), specified(VIOLATION), specified(INVALID)];
/// The same, where only the released host is that strict.
const INVALID_OBSERVED: &[Accepts] =
    &[observed(INVALID_BY_ID), specified(VIOLATION), specified(INVALID), specified(UNKNOWN)];
/// An invalid request whose id is none.
const INVALID_UNDER_NULL: &[Accepts] = &[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION)];
/// The specification wants integers; the released host serves these all the same.
const NO_INTEGER: &[Accepts] =
    &[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION), observed(EXPIRED)];
const NO_INTEGER_OBSERVED: &[Accepts] = &[observed(INVALID), specified(EXPIRED)];
const NO_OBJECT: &[Accepts] =
    &[specified(INVALID_BY_ID), specified(VIOLATION), specified(BAD_PARAMS), specified(INVALID)];
/// A response that is none: JSON-RPC has no word on whether one is answered.
const BAD_RESPONSE: &[Accepts] =
    &[specified(IGNORED), specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION)];
const ANY_REFUSAL: &[Accepts] = &[
    specified(UNKNOWN),
    specified(INVALID_BY_ID),
    specified(VIOLATION),
    specified(BAD_PARAMS),
    specified(super::super::sights::INTERNAL),
];
const IGNORED_BY_SPECIFICATION: &[Accepts] = &[specified(IGNORED)];
const LAST_COUNTS: &[Accepts] =
    &[observed(EXPIRED), specified(INVALID), specified(INVALID_BY_ID), specified(NO_JSON)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-envelope/frames-well-formed", Host)
        .says(
            "Every frame is a request, a notification, or a response with exactly one of result and error.",
            &[TRANSPORT, RESPONSE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ENVELOPES_WELL_FORMED.host, &PLAIN_TURN)),
    must("reasonix/host-envelope/answered-once", Host)
        .says("A request is answered once.", &[TRANSPORT, RESPONSE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ANSWERED_ONCE.host, &PLAIN_TURN)),
    must("reasonix/host-envelope/answers-what-was-asked", Host)
        .says("An answer stands under the id of a request that was sent.", &[TRANSPORT, RESPONSE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ANSWERS_ASKED.host, &PLAIN_TURN)),
    must("reasonix/host-envelope/notifications-unanswered", Host)
        .says("A notification is never answered, not even with an error.", &[TRANSPORT, NOTIFICATION])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NOTIFICATIONS_UNANSWERED.host, &PLAIN_TURN)),
    must("reasonix/host-envelope/own-ids-integers", Host)
        .says("The host asks under integer ids, each unlike those that still wait.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::IDS_ARE_INTEGERS.host, &PLAIN_TURN)),
    must("reasonix/host-envelope/params-objects", Host)
        .says("The params that the host sends are objects.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::PARAMS_ARE_OBJECTS.host, &PLAIN_TURN)),
    must("reasonix/host-envelope/frame-errors-plain", Host)
        .says("An error about a frame whose id could not be read has no data.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::FRAME_ERRORS_PLAIN.host, &ODD_FRAMES)),
    must("reasonix/host-envelope/version-demanded", Host)
        .says("A request without \"jsonrpc\":\"2.0\" is an invalid request.", &[TRANSPORT, REQUEST])
        .accepts(INVALID_EITHER)
        .checked(After(&ODD_FRAMES, |x| {
            all_became(x, ["no-version", "old-version", "version-as-number"], INVALID_EITHER)
        })),
    must("reasonix/host-envelope/unknown-members-ignored", Host)
        .says("Members that JSON-RPC does not have are passed over, in every kind of frame.", &[TRANSPORT])
        .accepts(&[specified(DONE)])
        .checked(After(&EXTRA_MEMBERS, extra_members)),
    must("reasonix/host-envelope/string-id-refused", Host)
        .says("A request whose id is a string is an invalid frame.", &[TRANSPORT])
        .accepts(NO_INTEGER)
        .checked(After(&ODD_FRAMES, |x| became(x, "string-id"))),
    must("reasonix/host-envelope/null-id-refused", Host)
        .says("A request whose id is null is an invalid frame.", &[TRANSPORT])
        .accepts(&[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION), observed(UNDER_NULL)])
        .checked(After(&ODD_FRAMES, null_id)),
    must("reasonix/host-envelope/no-number-id-refused", Host)
        .says(
            "A request whose id is a fraction, a truth value, an object or an array is an invalid request.",
            &[TRANSPORT, REQUEST],
        )
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&ODD_FRAMES, |x| {
            all_became(x, ["fraction-id", "true-id", "object-id", "array-id"], INVALID_UNDER_NULL)
        })),
    must("reasonix/host-envelope/written-integers-only", Host)
        .says("An id that is an integer and written with a fraction or an exponent is refused.", &[])
        .accepts(NO_INTEGER_OBSERVED)
        .checked(After(&ODD_FRAMES, |x| all_became(x, ["dot-zero-id", "exponent-id"], NO_INTEGER_OBSERVED))),
    must("reasonix/host-envelope/ids-echoed", Host)
        .says("A negative id, and one of thirty digits, come back as they were written.", &[RESPONSE])
        .accepts(&[specified(ECHOED)])
        .checked(After(&ODD_FRAMES, ids_echoed)),
    must("reasonix/host-envelope/array-params-refused", Host)
        .says("A request whose params are an array is refused.", &[TRANSPORT])
        .accepts(NO_OBJECT)
        .checked(After(&ODD_FRAMES, |x| became(x, "array-params"))),
    must("reasonix/host-envelope/no-object-params-refused", Host)
        .says("A request whose params are a string or null is an invalid request.", &[TRANSPORT, REQUEST])
        .accepts(NO_OBJECT)
        .checked(After(&ODD_FRAMES, |x| all_became(x, ["text-params", "null-params"], NO_OBJECT))),
    must("reasonix/host-envelope/absent-params-empty", Host)
        .says("A request without params is one with none of them: refused where its method needs some.", &[])
        .accepts(&[observed(BAD_PARAMS), specified(INVALID_BY_ID)])
        .checked(After(&ODD_FRAMES, |x| became(x, "no-params"))),
    must("reasonix/host-envelope/batches-refused", Host)
        .says("An array of requests is refused, and none of them is executed.", &[TRANSPORT])
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&ODD_FRAMES, batches_refused)),
    must("reasonix/host-envelope/no-objects-refused", Host)
        .says(
            "A frame that is a number, a string, null or a truth value is an invalid request.",
            &[TRANSPORT],
        )
        .accepts(INVALID_UNDER_NULL)
        .checked(After(&ODD_FRAMES, |x| {
            all_became(x, ["number", "string", "null", "true"], INVALID_UNDER_NULL)
        })),
    must("reasonix/host-envelope/outcome-in-request-refused", Host)
        .says("A request that carries a result is an invalid request.", &[REQUEST])
        .accepts(INVALID_EITHER)
        .checked(After(&ODD_FRAMES, |x| became(x, "with-result"))),
    must("reasonix/host-envelope/empty-method-refused", Host)
        .says("A request whose method is empty or null is refused.", &[])
        .accepts(INVALID_OBSERVED)
        .checked(After(&ODD_FRAMES, |x| all_became(x, ["empty-method", "null-method"], INVALID_OBSERVED))),
    must("reasonix/host-envelope/bad-responses-harmless", Host)
        .says("A response that is none, or that answers nothing, does no harm.", &[RESPONSE, ERROR])
        .accepts(&[specified(HARMLESS)])
        .checked(After(&BAD_RESPONSES, harmless)),
    must("reasonix/host-envelope/stray-answers-ignored", Host)
        .says("An answer to what was never asked is passed over.", &[])
        .accepts(&[observed(IGNORED)])
        .checked(After(&BAD_RESPONSES, |x| {
            all_became(x, ["stray-result", "stray-error"], &[observed(IGNORED)])
        })),
    must("reasonix/host-envelope/first-answer-counts", Host)
        .says("Of two answers to one request the first counts.", &[])
        .accepts(&[observed(DONE)])
        .checked(After(&TWO_ANSWERS, |x| came_of(x, TURN))),
    must("reasonix/host-envelope/late-answers-ignored", Host)
        .says("An answer that comes when its time is over does not answer the next call.", &[])
        .accepts(&[observed(DONE)])
        .checked(After(&responses::LATE_ANSWER, responses::late_ignored)),
    must("reasonix/host-envelope/one-outcome-answers", Host)
        .says(
            "A response with both a result and an error, or with neither, is not taken for an answer to a call.",
            &[],
        )
        .accepts(responses::NO_ANSWER)
        .checked(After(&responses::ODD_ANSWERS, |x| {
            all_came(x, &["both-outcomes", "no-outcome"], responses::NO_ANSWER)
        })),
    must("reasonix/host-envelope/null-error-answers-nothing", Host)
        .says("Nor is a response with a result and an error that is null.", &[])
        .accepts(responses::NO_ANSWER)
        .checked(After(&responses::ODD_ANSWERS, |x| {
            all_came(x, &["null-error"], responses::NO_ANSWER)
        })),
    must("reasonix/host-envelope/text-id-answers-nothing", Host)
        .says("Nor is a response under the id of a call as a string: it is another id.", &[])
        .accepts(responses::NO_ANSWER)
        .checked(After(&responses::ODD_ANSWERS, |x| {
            all_came(x, &["text-id"], responses::NO_ANSWER)
        })),
    must("reasonix/host-envelope/unknown-method-refused", Host)
        .says("A request for a method that there is not is refused as an unknown method.", &[ERROR])
        .accepts(&[specified(UNKNOWN)])
        .checked(After(&ODD_FRAMES, |x| became(x, "unknown-method"))),
    must("reasonix/host-envelope/notification-as-request-refused", Host)
        .says("A request for what is a notification is refused.", &[DIRECTION])
        .accepts(ANY_REFUSAL)
        .checked(After(&ODD_FRAMES, |x| became(x, "chunk-as-request"))),
    must("reasonix/host-envelope/many-requests-answered", Host)
        .says("Of 64 requests at once each is answered.", &[TRANSPORT, RESPONSE])
        .accepts(MANY_ANSWERED)
        .checked(After(&MANY, |x| all_with_prefix(x, "at-once-", MANY_ANSWERED))),
    must("reasonix/host-envelope/surplus-refused", Host)
        .says(
            "Of more than 64 requests that wait at once, those beyond are refused, and the rest wait on.",
            &[],
        )
        .accepts(&[observed(SURPLUS)])
        .checked(After(&SURPLUS_ASKED, surplus_refused)),
    must("reasonix/host-envelope/waiting-blocks-nothing", Host)
        .says("While a prompt waits for the user, other requests of its guest are answered.", &[])
        .accepts(&[observed(responses::MEANWHILE)])
        .checked(After(&responses::WAITING, responses::answered_meanwhile)),
    must("reasonix/host-envelope/prompts-not-dropped", Host)
        .says(
            "A prompt is answered; one that nobody answered before the session ended was at least shown to the user.",
            &[TRANSPORT, RESPONSE],
        )
        .accepts(&[specified(responses::PROMPT_ANSWERED), specified(responses::PROMPT_WAITED)])
        .checked(After(&responses::LEFT_OPEN, responses::prompt_answered)),
    must("reasonix/host-envelope/other-direction-refused", Host)
        .says("A request for what is the host's to ask for is refused.", &[DIRECTION])
        .accepts(ANY_REFUSAL)
        .checked(After(&ODD_FRAMES, |x| became(x, "other-direction"))),
    must("reasonix/host-envelope/unknown-notification-ignored", Host)
        .says("A notification that there is not is passed over.", &[NOTIFICATION])
        .accepts(IGNORED_BY_SPECIFICATION)
        .checked(After(&ODD_FRAMES, |x| became(x, "unknown-notification"))),
    must("reasonix/host-envelope/bad-notifications-ignored", Host)
        .says("A notification whose params are wrong is passed over: nothing answers it.", &[NOTIFICATION])
        .accepts(IGNORED_BY_SPECIFICATION)
        .checked(After(&ODD_FRAMES, |x| {
            all_became(x, ["bad-chunk", "bad-end"], IGNORED_BY_SPECIFICATION)
        })),
    must("reasonix/host-envelope/request-as-notification-ignored", Host)
        .says("A notification of what is a request is passed over.", &[NOTIFICATION])
        .accepts(IGNORED_BY_SPECIFICATION)
        .checked(After(&ODD_FRAMES, |x| became(x, "read-as-notification"))),
    must("reasonix/host-envelope/last-member-counts", Host)
        .says("Of two members of one name the last counts.", &[])
        .accepts(LAST_COUNTS)
        .checked(After(&ODD_FRAMES, |x| all_became(x, ["id-twice", "method-twice"], LAST_COUNTS))),
];

const HARMLESS: Seen = Seen("refused or passed over, and the connection went on");
const UNDER_NULL: Seen = Seen("answered under the id null");

/// A request for nothing in particular, under this id as it is written.
fn under(id: &str) -> String {
    read_nothing("x").replace(r#"{"$id":"x"}"#, id)
}

const IN_BATCH: i64 = 700_020;
const NEGATIVE: &str = "-5";
const THIRTY: &str = "123456789012345678901234567890";

static ODD_FRAMES: ScriptDef = ScriptDef {
    name: "odd-guest-frames",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plain = read_nothing;
        let without = |label: &str, text: &str, by: &str| plain(label).replacen(text, by, 1);
        let with_params = |label: &str, params: &str| request(label, contract::CONTENT_READ, params);
        let version = r#""jsonrpc":"2.0""#;
        let surface = format!(
            r#"{{"event":"{}","seq":1,"timeoutMillis":1000,"payload":{}}}"#,
            point::INPUT_RECEIVE,
            sample::payload(point::INPUT_RECEIVE)
        );
        let chunk = r#"{"streamId":"none","seq":1,"chunk":{"type":"text","text":"x"}}"#;
        let tell = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
        };
        let method = r#""method":"host/sidecert/none","method""#;
        let nothing = r#"{"contentRef":"sidecert-none","offset":0}"#;
        stop(begin("odd-guest-frames", setting, &[Plugin::new(setting, ONE)]).then(oddities(
            "odd-guest-frames",
            [
                ("no-version", "it has no version", without("no-version", &format!("{version},"), "")),
                ("old-version", "its version is 1.0", without("old-version", "2.0", "1.0")),
                (
                    "version-as-number",
                    "its version is a number",
                    without("version-as-number", r#""2.0""#, "2"),
                ),
                ("string-id", "its id is a string", under(r#""odd""#)),
                ("null-id", "its id is null", under("null")),
                ("fraction-id", "its id is a fraction", under("1.5")),
                ("true-id", "its id is a truth value", under("true")),
                ("object-id", "its id is an object", under("{}")),
                ("array-id", "its id is an array", under("[]")),
                ("dot-zero-id", "its id is written with a fraction", under("1.0")),
                ("exponent-id", "its id is written with an exponent", under("1e2")),
                ("negative-id", "its id is negative", under(NEGATIVE)),
                ("thirty-digits", "its id has thirty digits", under(THIRTY)),
                ("array-params", "its params are an array", with_params("array-params", "[]")),
                ("text-params", "its params are a string", with_params("text-params", r#""x""#)),
                ("null-params", "its params are null", with_params("null-params", "null")),
                (
                    "no-params",
                    "it has no params, and its method needs some",
                    with_params("no-params", "{}").replace(r#","params":{}"#, ""),
                ),
                ("batch", "it is an array of requests", format!("[{}]", under(&IN_BATCH.to_string()))),
                ("empty-batch", "it is an empty array", "[]".to_owned()),
                ("number", "it is a number", "42".to_owned()),
                ("string", "it is a string", r#""x""#.to_owned()),
                ("null", "it is null", "null".to_owned()),
                ("true", "it is a truth value", "true".to_owned()),
                (
                    "with-result",
                    "it carries a result",
                    without("with-result", r#""method""#, r#""result":{},"method""#),
                ),
                ("empty-method", "its method is empty", without("empty-method", contract::CONTENT_READ, "")),
                (
                    "null-method",
                    "its method is null",
                    without("null-method", &format!(r#""{}""#, contract::CONTENT_READ), "null"),
                ),
                (
                    "unknown-method",
                    "there is no such method",
                    request("unknown-method", "host/sidecert/none", "{}"),
                ),
                (
                    "chunk-as-request",
                    "it asks for what is a notification",
                    request("chunk-as-request", contract::STREAM_CHUNK, chunk),
                ),
                (
                    "other-direction",
                    "it asks for what is the host's to ask for",
                    request("other-direction", contract::INTERCEPT, &surface),
                ),
                ("unknown-notification", "there is no such notification", tell("host/sidecert/none", "{}")),
                ("bad-chunk", "its params are wrong", tell(contract::STREAM_CHUNK, r#"{"streamId":7}"#)),
                ("bad-end", "its params are wrong", tell(contract::STREAM_END, r#"{"streamId":7}"#)),
                ("read-as-notification", "it tells what is a request", tell(contract::CONTENT_READ, nothing)),
                ("id-twice", "it has two ids", without("id-twice", r#""id""#, r#""id":700040,"id""#)),
                ("method-twice", "it has two methods", without("method-twice", r#""method""#, method)),
            ],
        )))
    },
};

fn null_id(exchange: &Exchange<'_>) -> Sight {
    let Some(sent) = exchange.sent("null-id") else { return exchange.nothing_came("null-id", "") };
    // Anything may be refused under this id, so only what came before the next fence is about it.
    let settled = exchange.told(Told::Settled).map(|(entry, _)| entry.at).find(|at| *at > sent.at);
    let mut its = exchange.responses().filter(|(answer, id)| *id == Id::Null && answer.at > sent.at);
    match (its.next(), settled) {
        (Some((answer, _)), Some(settled)) if answer.at < settled => match named(&answer, true) {
            // Whatever it says, it stands under the id that was asked under.
            Sight::Saw(EXPIRED, at) => Sight::Saw(UNDER_NULL, at),
            Sight::Saw(INVALID_BY_ID, at) => Sight::Saw(INVALID, at),
            other => other,
        },
        _ => exchange.nothing_came("null-id", "passed over: nothing answered it, and the connection went on"),
    }
}

fn extra_members(exchange: &Exchange<'_>) -> Sight {
    match came_of(exchange, START) {
        Sight::Saw(DONE, _) => match became(exchange, "extra") {
            Sight::Saw(EXPIRED | UNKNOWN, _) => came_of(exchange, TURN),
            other => other,
        },
        Sight::Saw(seen, at) => Sight::SawOther { at, actual: format!("the start: {}", seen.0) },
        other => other,
    }
}

fn harmless(exchange: &Exchange<'_>) -> Sight {
    match all_became(exchange, ["no-id", "no-message", "fraction-code", "error-under-null"], BAD_RESPONSE) {
        Sight::Saw(_, at) => Sight::Saw(HARMLESS, at),
        other => other,
    }
}

fn ids_echoed(exchange: &Exchange<'_>) -> Sight {
    let mut last = 0;
    for written in [NEGATIVE, THIRTY] {
        let same = |id: &Id<'_>| id.to_string() == written;
        let label = if written == NEGATIVE { "negative-id" } else { "thirty-digits" };
        match exchange.responses().find(|(_, id)| same(id)) {
            Some((answer, _)) => last = answer.at,
            None => return exchange.nothing_came(label, &format!("no answer under the id {written}")),
        }
    }
    Sight::Saw(ECHOED, last)
}

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

static BAD_RESPONSES: ScriptDef = ScriptDef {
    name: "bad-guest-responses",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let text = |json: &str| json.to_owned();
        stop(begin("bad-guest-responses", setting, &[Plugin::new(setting, ONE)]).then(oddities(
            "bad-guest-responses",
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
                    "error-under-null",
                    "it answers what nobody sent",
                    text(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#),
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
        )))
    },
};

/// How many requests a host is to serve at once.
const AT_ONCE: usize = 64;

static MANY: ScriptDef = ScriptDef {
    name: "many-guest-requests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let asked = |script: Script, at: usize| {
            let params = format!(r#"{{"contentRef":"sidecert-at-once-{at}","offset":0}}"#);
            script.request(&format!("at-once-{at}"), contract::CONTENT_READ, &params)
        };
        let script = begin("many-guest-requests", setting, &[Plugin::new(setting, ONE)]);
        stop((1..=AT_ONCE).fold(script, asked).fence())
    },
};

/// How many prompts wait for the user at once: more than a host is to serve.
const PROMPTS: usize = AT_ONCE + 6;

static SURPLUS_ASKED: ScriptDef = ScriptDef {
    name: "many-prompts",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let asked = |script: Script, at: usize| {
            let label = prompt_of(at);
            let params = ui::params(&label, "confirm", ui::QUESTION, (ui::SESSION, ui::GENERATION));
            script.request(&label, contract::UI_REQUEST, &params)
        };
        let script = ui::with(begin("many-prompts", setting, &[Plugin::new(setting, ONE)]), ONE);
        stop((1..=PROMPTS).fold(script, asked).fence())
    },
};

fn prompt_of(at: usize) -> String {
    format!("prompt-{at}")
}

/// A guest whose every answer has a member that JSON-RPC does not have.
static EXTRA_MEMBERS: ScriptDef = ScriptDef {
    name: "extra-guest-members",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plugin = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let extra = |json: String| Template::new(json.replacen('{', r#"{"x":{"y":[1]},"#, 1));
        let answer = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"continue"}}"#;
        let accepted = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#;
        let stream = sidecar::stream(r#"{"$capture":"stream"}"#, &[sidecar::text_chunk("Hello")]);
        let frames = std::iter::once(accepted.to_owned()).chain(stream).map(extra).collect();
        let mut script = begin("extra-guest-members", setting, &[plugin]);
        let model = lifecycle::a_model(ONE);
        let list = format!(r#"["{}"]"#, point::INPUT_RECEIVE);
        let declared = lifecycle::declaration(setting, &[("subscriptions", &list), ("providers", &model)]);
        let offered = format!(r#"{{"providers":{model}}}"#);
        for (method, result) in [(contract::INITIALIZE, declared), (contract::PROVIDER_CATALOG, offered)] {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{result}}}"#);
            script = reacts(script, &super::request(method), Reply::Once(extra(frame)));
        }
        let script = reacts(script, &intercept(point::INPUT_RECEIVE), Reply::Once(extra(answer.to_owned())));
        let script = reacts(script, &super::stream_open(), Reply::Several(frames));
        let frame = extra(read_nothing("extra"));
        let script = script.step(Step::Send {
            label: Some("extra".to_owned()),
            frame: sidecert_proto::script::Outgoing::Template(frame),
        });
        stop(turn(script.fence(), TURN, "Hello"))
    },
};

/// A guest that lets an operation go on, and then blocks it.
static TWO_ANSWERS: ScriptDef = ScriptDef {
    name: "two-answers",
    process: Process::Tour,
    needs: &[],
    build: |setting| two_answers(setting),
};

fn two_answers(setting: &Setting<'_>) -> Script {
    let plugin = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
    let answer = |result: &str| {
        Template::new(format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{result}}}"#))
    };
    let both = vec![
        answer(r#"{"decision":"continue","reason":"first"}"#),
        answer(r#"{"decision":"block","reason":"sidecert blocks too late"}"#),
    ];
    let script = begin("two-answers", setting, &[plugin]);
    let script = reacts(script, &intercept(point::INPUT_RECEIVE), Reply::Several(both));
    stop(turn(script, TURN, "Hello"))
}

/// Nobody answers these prompts before the session ends, so whatever has an answer by then was refused.
fn surplus_refused(x: &Exchange<'_>) -> Sight {
    let Some(end) = responses::asked_to_stop(x) else { return super::never_came(x, super::STOP) };
    let (mut refused, mut last) = (0, end);
    for at in 1..=PROMPTS {
        let label = prompt_of(at);
        let Some(answer) = x.answer_to(&label).filter(|answer| answer.at < end) else { continue };
        match (became(x, &label), answer.outcome) {
            (Sight::Saw(UNKNOWN, _), _) => {
                return Sight::Undecided(Why::NotProvoked("this host has nothing to show prompts on".into()));
            }
            (_, Outcome::Result(_)) => {
                return Sight::Undecided(Why::NotProvoked("this host lets no prompt wait".into()));
            }
            (Sight::Saw(BUSY, at), Outcome::Error { body, .. }) if body.get("data").is_none() => {
                (refused, last) = (refused + 1, at);
            }
            (other, _) => {
                let actual = match other {
                    Sight::Saw(BUSY, _) => "refused as one too many, with data".to_owned(),
                    Sight::Saw(seen, _) => seen.0.to_owned(),
                    other => return other,
                };
                return Sight::SawOther { at: answer.at, actual };
            }
        }
    }
    if refused == PROMPTS - AT_ONCE {
        return Sight::Saw(SURPLUS, last);
    }
    Sight::SawOther { at: last, actual: format!("{refused} of {PROMPTS} refused as too many") }
}
