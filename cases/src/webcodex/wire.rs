//! Lines, envelopes and ids.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Basis, Requirement, Seen, must, should};
use sidecert_proto::rpc::Id;
use sidecert_proto::script::{Process, Script, ScriptDef, Step};
use sidecert_proto::verdict::Sight;
use sidecert_proto::webcodex::contract::{INITIALIZE, TOOLS_LIST};
use sidecert_proto::webcodex::{host, session};

use super::sights::{self, NOT_SERVED, SERVED, SERVED_BY_ALL, all_became, became, oddities, request, runner};
use super::{CALLING, HANDSHAKE, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, PROTOCOL, RESPONSE};

const IN_ORDER: Seen = Seen("answered one after the other, in the order in which they were asked");

pub(super) const ROWS: &[Requirement] = &[
    must("webcodex/wire/only-frames", Guest)
        .says(
            "Standard output carries one JSON object a line, and nothing else: no banner, no log.",
            &[CALLING],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ONLY_FRAMES, &HANDSHAKE)),
    must("webcodex/wire/responses-well-formed", Guest)
        .says(
            "Every frame is a JSON-RPC 2.0 response with either a result or an error, and asks nothing.",
            &[PROTOCOL, RESPONSE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::RESPONSES_WELL_FORMED, &HANDSHAKE)),
    must("webcodex/wire/ids-echoed", Guest)
        .says("A response has the id of its request: the same integer.", &[PROTOCOL, RESPONSE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::IDS_ECHOED, &HANDSHAKE)),
    must("webcodex/wire/answered-once", Guest)
        .says("A request is answered once; another line between two requests ends the plugin.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::ANSWERED_ONCE, &HANDSHAKE)),
    must("webcodex/wire/messages-bounded", Guest)
        .says("The message of an error has 1 to 512 bytes.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::MESSAGES_BOUNDED, &super::lifecycle::OTHER_METHOD)),
    must("webcodex/wire/pieces-put-together", Guest)
        .says("A request is one line, in however many pieces it comes.", &[PROTOCOL])
        .accepts(&[Accepts { seen: SERVED, by: Basis::Specified }])
        .checked(After(&CUT_REQUEST, |x| became(x, "cut"))),
    must("webcodex/wire/answered-in-order", Guest)
        .says("Two requests that come together are answered one after the other, in order.", &[])
        .accepts(&[runner(IN_ORDER)])
        .checked(After(&TWO_REQUESTS, answered_in_order)),
    should("webcodex/wire/carriage-return-served", Guest)
        .says("A carriage return before the line feed is passed over.", &[])
        .accepts(SERVED_BY_ALL)
        .checked(After(&ODD_LINES, |x| became(x, "carriage-return"))),
    must("webcodex/wire/text-not-served", Guest)
        .says("A line that is no JSON is refused or passed over, and the plugin goes on.", &[])
        .accepts(NOT_SERVED)
        .checked(After(&ODD_LINES, |x| became(x, "text"))),
    should("webcodex/wire/blank-line-not-served", Guest)
        .says("A blank line is refused or passed over.", &[])
        .accepts(NOT_SERVED)
        .checked(After(&ODD_LINES, |x| became(x, "blank"))),
    must("webcodex/wire/batch-not-executed", Guest)
        .says("An array of requests is refused or passed over: none of them is executed.", &[])
        .accepts(NOT_SERVED)
        .checked(After(&BATCH, batch_not_executed)),
    should("webcodex/wire/null-survived", Guest)
        .says("A line `null` does not end the plugin.", &[])
        .accepts(NOT_SERVED)
        .checked(After(&NULL_LINE, |x| became(x, "null"))),
    should("webcodex/wire/large-ids-echoed", Guest)
        .says("Ids up to 9007199254740991 come back as they were.", &[])
        .accepts(SERVED_BY_ALL)
        .checked(After(&LARGE_IDS, |x| all_became(x, &["beyond-32-bits", "beyond-doubles"], SERVED_BY_ALL))),
];

/// Sends a request in pieces.
static CUT_REQUEST: ScriptDef = ScriptDef {
    name: "cut-request",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        Script::new("cut-request")
            .step(Step::Cut { at: vec![1, 12, 30, 45] })
            .request("cut", TOOLS_LIST, "{}")
            .step(sights::answered("cut"))
            .fence()
    },
};

/// Sends two requests before it looks at an answer.
static TWO_REQUESTS: ScriptDef = ScriptDef {
    name: "two-requests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        Script::new("two-requests")
            .request("first", INITIALIZE, &host::initialize_params(setting.contract))
            .request("second", TOOLS_LIST, "{}")
            .answer("first")
            .answer("second")
            .fence()
    },
};

fn answered_in_order(exchange: &Exchange<'_>) -> Sight {
    match (exchange.answer_to("first"), exchange.answer_to("second")) {
        (Some(first), Some(second)) if first.at < second.at => Sight::Saw(IN_ORDER, second.at),
        (Some(_), Some(second)) => {
            Sight::SawOther { at: second.at, actual: "the second was answered first".to_owned() }
        }
        (None, _) => exchange.nothing_came("first", "no answer"),
        (_, None) => exchange.nothing_came("second", "no answer"),
    }
}

/// Sends odd lines.
static ODD_LINES: ScriptDef = ScriptDef {
    name: "odd-lines",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let label = "carriage-return";
        let request = request(label, TOOLS_LIST, "{}") + "\r";
        let whole =
            Script::new("odd-lines").raw(label, "a carriage return stands before its line feed", request);
        let whole = whole.step(sights::answered(label)).step(Step::Fence { or_end: true });
        whole.then(oddities(
            "odd-lines",
            [
                ("text", "it is no JSON", "{sidecert says hello".to_owned()),
                ("blank", "it is blank", String::new()),
            ],
        ))
    },
};

/// The id of a request in an array.
const IN_A_BATCH: i64 = 700_001;

fn batch_not_executed(exchange: &Exchange<'_>) -> Sight {
    match exchange.responses().find(|(_, id)| *id == Id::Integer(IN_A_BATCH)) {
        Some((answer, _)) => Sight::SawOther { at: answer.at, actual: answer.summary() },
        None => became(exchange, "batch"),
    }
}

/// Sends an array of requests.
static BATCH: ScriptDef = ScriptDef {
    name: "batch",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let one = sidecert_proto::script::request(&IN_A_BATCH.to_string(), TOOLS_LIST, "{}");
        oddities("batch", [("batch", "it is an array", format!("[{one}]"))])
    },
};

/// Sends a null.
static NULL_LINE: ScriptDef = ScriptDef {
    name: "null-line",
    process: Process::Tour,
    needs: &[],
    build: |_| oddities("null-line", [("null", "it is null", "null".to_owned())]),
};

/// Asks under large ids.
static LARGE_IDS: ScriptDef = ScriptDef {
    name: "large-ids",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let under = |id: &str| sidecert_proto::script::request(id, TOOLS_LIST, "{}");
        let departs = "its id does not follow the last one";
        let ids = [("beyond-32-bits", "4294967296"), ("beyond-doubles", "9007199254740991")];
        ids.into_iter().fold(Script::new("large-ids"), |script, (label, id)| {
            let asked = script.raw(label, departs, under(id)).step(sights::answered_under(id));
            asked.step(Step::Fence { or_end: true })
        })
    },
};
