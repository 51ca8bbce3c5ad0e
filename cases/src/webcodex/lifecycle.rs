//! The handshake, the methods, and the end.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Requirement, Seen, must, should};
use sidecert_proto::script::{Process, Script, ScriptDef};
use sidecert_proto::transcript::{Kind, Wait};
use sidecert_proto::verdict::Sight;
use sidecert_proto::webcodex::contract::TOOLS_LIST;
use sidecert_proto::webcodex::{host, session};

use super::sights::{
    IGNORED, NOT_SERVED, REFUSED, SERVED, SERVED_BY_ALL, UNKNOWN, all_became, became, oddities, plugins,
    request,
};
use super::{END_OF_INPUT, HANDSHAKE, INITIALIZE, KEPT_AS_SPECIFIED, PROTOCOL};

const EXITED: Seen = Seen("the process ended");
const REFUSALS: &[Accepts] = &[plugins(REFUSED), plugins(UNKNOWN)];
const UNKNOWN_METHOD: &[Accepts] = &[plugins(UNKNOWN), plugins(REFUSED)];
const ANSWERED: &[Accepts] =
    &[plugins(REFUSED), plugins(SERVED), plugins(UNKNOWN), NOT_SERVED[0], plugins(IGNORED)];

pub(super) const ROWS: &[Requirement] = &[
    must("webcodex/lifecycle/version-said", Guest)
        .says("The result of `initialize` has the version that was asked for.", &[PROTOCOL])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::VERSION_SAID, &HANDSHAKE)),
    must("webcodex/lifecycle/other-version-refused", Guest)
        .says("Another version is refused with an error.", &[])
        .accepts(REFUSALS)
        .checked(After(&OTHER_VERSION, |x| became(x, "other-version"))),
    should("webcodex/lifecycle/initialize-again-served", Guest)
        .says("A second `initialize` is served like the first.", &[])
        .accepts(SERVED_BY_ALL)
        .checked(After(&INITIALIZE_AGAIN, |x| became(x, "again"))),
    must("webcodex/lifecycle/unknown-method-refused", Guest)
        .says("A method that there is not is refused with an error.", &[])
        .accepts(UNKNOWN_METHOD)
        .checked(After(&OTHER_METHOD, |x| became(x, "other-method"))),
    should("webcodex/lifecycle/odd-params-survived", Guest)
        .says("Params that are missing or null do not end the plugin.", &[])
        .accepts(ANSWERED)
        .checked(After(&ODD_PARAMS, |x| all_became(x, &["no-params", "null-params"], ANSWERED))),
    should("webcodex/lifecycle/ends-with-its-input", Guest)
        .says("The process ends when its input does.", &[])
        .accepts(&[plugins(EXITED)])
        .checked(After(&END_OF_INPUT, ends_with_its_input)),
];

/// Asks for another version.
static OTHER_VERSION: ScriptDef = ScriptDef {
    name: "other-version",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let params = host::initialize_params(setting.contract).replace("-v1", "-v0");
        let frame = request("other-version", INITIALIZE, &params);
        oddities("other-version", [("other-version", "there is no such version", frame)])
    },
};

/// Shakes hands once more.
static INITIALIZE_AGAIN: ScriptDef = ScriptDef {
    name: "initialize-again",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let params = host::initialize_params(setting.contract);
        Script::new("initialize-again").request("again", INITIALIZE, &params).answer("again")
    },
};

/// Asks for a method that there is not.
pub(super) static OTHER_METHOD: ScriptDef = ScriptDef {
    name: "other-method",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let frame = request("other-method", "resources/list", "{}");
        oddities("other-method", [("other-method", "there is no such method", frame)])
    },
};

/// Leaves params out, and sends null in place of them.
static ODD_PARAMS: ScriptDef = ScriptDef {
    name: "odd-params",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let no_params = format!(r#"{{"jsonrpc":"2.0","id":{{"$id":"no-params"}},"method":"{TOOLS_LIST}"}}"#);
        oddities(
            "odd-params",
            [
                ("no-params", "it has no params", no_params),
                ("null-params", "its params are null", request("null-params", INITIALIZE, "null")),
            ],
        )
    },
};

fn ends_with_its_input(exchange: &Exchange<'_>) -> Sight {
    if let Some((at, within)) = exchange.timed_out(Wait::Exit, None) {
        let seconds = within / 1_000_000;
        return Sight::SawOther { at, actual: format!("the process went on for {seconds} s") };
    }
    match exchange.find(|kind| matches!(kind, Kind::Exited(_))) {
        Some(end) => Sight::Saw(EXITED, end.at),
        None => exchange.nothing_came("", "the process went on"),
    }
}
