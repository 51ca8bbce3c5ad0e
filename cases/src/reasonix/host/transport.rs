//! "Transport", as a host must keep it: lines, frames, and what becomes of those that are none.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::reasonix::contract::{self, Limits};
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, must};
use sidecert_proto::script::{Process, Script, ScriptDef, Setting, Step};

use super::super::KEPT_AS_SPECIFIED;
use super::super::sights::{
    self, BAD_PARAMS, ENDED, EXPIRED, IGNORED, INVALID, INVALID_BY_ID, NO_JSON, SERVED, UNKNOWN, VIOLATION,
    all_became, became, oddities,
};
use super::{ONE, PLAIN_TURN, observed, session as begin, specified, stop};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const REQUEST: Cite = Cite::JsonRpc("4 Request object");
const RESPONSE: Cite = Cite::JsonRpc("5 Response object");
const ERROR: Cite = Cite::JsonRpc("5.1 Error object");

/// A request that was taken: what it asks for was never given out.
const TAKEN: &[Accepts] = &[specified(EXPIRED)];
const TAKEN_OBSERVED: &[Accepts] = &[observed(EXPIRED)];
const NO_JSON_HERE: &[Accepts] = &[specified(NO_JSON), specified(INVALID)];
const INVALID_EITHER: &[Accepts] = &[specified(INVALID_BY_ID), specified(VIOLATION), specified(INVALID)];
const INVALID_UNDER_NULL: &[Accepts] = &[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-transport/only-frames", Host)
        .says("Every line that the host writes is one JSON object.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ONLY_FRAMES.host, &PLAIN_TURN)),
    must("reasonix/host-transport/frames-well-formed", Host)
        .says(
            "Every frame is a request, a notification, or a response with exactly one of result and error.",
            &[TRANSPORT, RESPONSE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ENVELOPES_WELL_FORMED.host, &PLAIN_TURN)),
    must("reasonix/host-transport/own-ids-integers", Host)
        .says("The host asks under integer ids, each unlike those that still wait.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::IDS_ARE_INTEGERS.host, &PLAIN_TURN)),
    must("reasonix/host-transport/params-objects", Host)
        .says("The params that the host sends are objects.", &[TRANSPORT])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::PARAMS_ARE_OBJECTS.host, &PLAIN_TURN)),
    must("reasonix/host-transport/text-refused", Host)
        .says("A line that is no JSON is refused as a parse error, and the connection goes on.", &[ERROR])
        .accepts(NO_JSON_HERE)
        .checked(After(&ODD_FRAMES, |x| became(x, "text"))),
    must("reasonix/host-transport/string-id-refused", Host)
        .says("A request whose id is a string is an invalid frame.", &[TRANSPORT])
        .accepts(&[specified(INVALID), specified(INVALID_BY_ID), specified(VIOLATION), observed(EXPIRED)])
        .checked(After(&ODD_FRAMES, |x| became(x, "string-id"))),
    must("reasonix/host-transport/unknown-method-refused", Host)
        .says("A request for a method that there is not is refused.", &[TRANSPORT])
        .accepts(&[specified(UNKNOWN)])
        .checked(After(&ODD_FRAMES, |x| became(x, "unknown-method"))),
];

/// A request for content that the host never gave out: it does nothing, and is always refused.
fn read_nothing(label: &str) -> String {
    sights::request(label, contract::CONTENT_READ, r#"{"contentRef":"sidecert-none","offset":0}"#)
}

static ODD_FRAMES: ScriptDef = ScriptDef {
    name: "odd-guest-frames",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let begun = begin("odd-guest-frames", setting, &[Plugin::new(setting, ONE)]);
        stop(begun.then(oddities(
            "odd-guest-frames",
            [
                ("text", "text that is no JSON", "hello".to_owned()),
                ("string-id", "its id is a string", read_nothing("x").replace(r#"{"$id":"x"}"#, r#""odd""#)),
                (
                    "unknown-method",
                    "no contract has the method",
                    sights::request("unknown-method", "host/sidecert/none", "{}"),
                ),
            ],
        )))
    },
};
