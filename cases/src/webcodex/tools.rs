//! What a plugin lists.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::{Answer, Exchange};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Requirement, Seen, must, should};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{Process, Script, ScriptDef};
use sidecert_proto::verdict::Sight;
use sidecert_proto::webcodex::contract::{TOOLS_CALL, TOOLS_LIST};
use sidecert_proto::webcodex::session;

use super::sights::{plugins, request};
use super::{GATEWAY, HANDSHAKE, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, PROFILE, PROTOCOL};

const THE_SAME: Seen = Seen("the same list both times");

pub(super) const ROWS: &[Requirement] = &[
    must("webcodex/tools/listed", Guest)
        .says("The result of `tools/list` has all tools in one array `tools`: there are no pages.", &[PROTOCOL])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::TOOLS_LISTED, &HANDSHAKE)),
    must("webcodex/tools/no-more-members", Guest)
        .says("The list and each tool have no members but those of the protocol, of its types.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::LIST_CLOSED, &HANDSHAKE)),
    must("webcodex/tools/names-unique", Guest)
        .says("No two tools of a plugin have the same name.", &[GATEWAY])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NAMES_UNIQUE, &HANDSHAKE)),
    must("webcodex/tools/names-plain", Guest)
        .says("A name has 1 to 128 of A-Z, a-z, 0-9, `_`, `-` and `.`.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::NAMES_PLAIN, &HANDSHAKE)),
    must("webcodex/tools/list-bounded", Guest)
        .says("There are at most 128 tools, and their titles and descriptions keep their bounds.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::LIST_BOUNDED, &HANDSHAKE)),
    must("webcodex/tools/schemas-in-profile", Guest)
        .says(
            "Input and output schemas are of Schema Profile v1: one type each, its keywords only, an object at the root.",
            &[PROFILE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::SCHEMAS_IN_PROFILE, &HANDSHAKE)),
    must("webcodex/tools/schemas-bounded", Guest)
        .says("Schemas and annotations keep the bounds that the Runner sets.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::SCHEMAS_BOUNDED, &HANDSHAKE)),
    should("webcodex/tools/list-stays", Guest)
        .says("The list is the same every time in the life of a process.", &[])
        .accepts(&[plugins(THE_SAME)])
        .checked(After(&LIST_TWICE, list_stays)),
];

/// Asks for the tools before and after a call of one that there is not.
static LIST_TWICE: ScriptDef = ScriptDef {
    name: "list-twice",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let unknown = request("unknown-tool", TOOLS_CALL, r#"{"name":"sidecert-none","arguments":{}}"#);
        Script::new("list-twice")
            .request("one", TOOLS_LIST, "{}")
            .answer("one")
            .raw("unknown-tool", "there is no such tool", unknown)
            .answer("unknown-tool")
            .request("other", TOOLS_LIST, "{}")
            .answer("other")
    },
};

fn list_stays(exchange: &Exchange<'_>) -> Sight {
    match (exchange.answer_to("one"), exchange.answer_to("other")) {
        (
            Some(Answer { outcome: Outcome::Result(one), .. }),
            Some(Answer { outcome: Outcome::Result(other), at, .. }),
        ) => {
            if one.equals(other) {
                Sight::Saw(THE_SAME, at)
            } else {
                Sight::SawOther { at, actual: "another list the second time".to_owned() }
            }
        }
        (_, Some(answer)) => Sight::SawOther { at: answer.at, actual: answer.summary() },
        (_, None) => exchange.nothing_came("other", "no answer"),
    }
}
