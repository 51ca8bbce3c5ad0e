//! "Errors", as a host must keep it: codes and reasons of its own, and what it makes of those of its guests.

use std::borrow::Cow;

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{point, reason};
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always, Unobservable};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::script::{Process, Reply, ScriptDef, Template};
use sidecert_proto::verdict::{Sight, Why};

use super::super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};
use super::members::PARAMS;
use super::rulings::{all_came, came, does, input};
use super::{DONE, FAILED, ONE, observed, session as begin, specified, stop, turn};

const ERRORS: Cite = Cite::Seed("错误", "Errors");
const TABLE: Cite = Cite::Schema("/errors");
const ERROR: Cite = Cite::JsonRpc("5.1 Error object");

const BY_REASON: Seen = Seen("it failed for the reason that the guest had given");
const BY_NONE: Seen = Seen("it failed for no reason of the guest's, and the connection went on");

const FAILS: &[Accepts] = &[specified(FAILED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-errors/codes-fit-reasons", Host)
        .says("The code of an error is the one that the table has for its reason.", &[ERRORS, TABLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CODES_FIT.host, &PARAMS)),
    must("reasonix/host-errors/reasons-known", Host)
        .says("The reason of an error is one of the table.", &[ERRORS, TABLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::REASONS_KNOWN.host, &PARAMS)),
    must("reasonix/host-errors/retryable-fits-reasons", Host)
        .says("Whether an error is retryable is what the table has for its reason.", &[ERRORS, TABLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::RETRYABLE_FITS.host, &PARAMS)),
    must("reasonix/host-errors/action-is-text", Host)
        .says("The data of an error may have an action, which is a text; the schema has none.", &[ERRORS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ACTION_IS_TEXT.host, &PARAMS)),
    must("reasonix/host-errors/domain-errors-structured", Host)
        .says("An error with the code -32000 gives its reason, and whether it is retryable.", &[ERRORS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::DOMAIN_STRUCTURED.host, &PARAMS)),
    must("reasonix/host-errors/plain-errors-taken", Host)
        .says(
            "An error of a guest is one whatever its code, and with no data or data of any form.",
            &[ERROR],
        )
        .accepts(FAILS)
        .checked(After(&ODD_ERRORS, |x| all_came(x, &PLAIN.map(|(label, ..)| label), FAILS))),
    must("reasonix/host-errors/more-data-tolerated", Host)
        .says("An error of a guest with more in its data than a reason is taken for its reason.", &[])
        .accepts(&[observed(BY_REASON)])
        .checked(After(&ODD_ERRORS, more_data)),
    must("reasonix/host-errors/misdescribed-reason-distrusted", Host)
        .says(
            "An error of a guest whose reason is unknown, or not as retryable as it says, is an error like any other.",
            &[],
        )
        .accepts(&[observed(BY_NONE)])
        .checked(After(&ODD_ERRORS, distrusted)),
    must("reasonix/host-errors/faults-not-leaked", Host)
        .says("A host that fails in itself says no more than that.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Unobservable("nothing that a guest may do makes a host fail in itself")),
];

/// The reason that our guest gives: one that no host gives of itself where an intercept fails.
const GIVEN: &str = reason::CONTENT_REF_EXPIRED;

/// Errors that need no data: the turn, what is odd about it, if anything is, and the error.
const PLAIN: [(&str, Option<&str>, &str); 5] = [
    ("no-data", None, r#"{"code":-32603,"message":"sidecert-plain"}"#),
    ("null-data", None, r#"{"code":-32603,"message":"x","data":null}"#),
    ("text-data", None, r#"{"code":-32603,"message":"x","data":"sidecert"}"#),
    ("other-code", None, r#"{"code":-32099,"message":"x"}"#),
    ("positive-code", None, r#"{"code":7,"message":""}"#),
];
/// Errors with a reason, likewise.
const REASONED: [(&str, Option<&str>, &str); 4] = [
    (
        "given",
        None,
        r#"{"code":-32000,"message":"x","data":{"reason":"content_ref_expired","retryable":true}}"#,
    ),
    (
        "more",
        Some("its data has more in it"),
        r#"{"code":-32000,"message":"x","data":{"action":"sidecert","reason":"content_ref_expired","retryable":true,"surplus":[1]}}"#,
    ),
    (
        "misdescribed",
        Some("it is not retryable, and its reason is"),
        r#"{"code":-32000,"message":"sidecert-misdescribed","data":{"reason":"content_ref_expired","retryable":false}}"#,
    ),
    (
        "unknown",
        Some("there is no such reason"),
        r#"{"code":-32000,"message":"x","data":{"reason":"sidecert_none","retryable":true}}"#,
    ),
];

static ODD_ERRORS: ScriptDef = ScriptDef {
    name: "odd-errors",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let mut it = begin("odd-errors", setting, &[one]);
        for (label, odd, error) in PLAIN.iter().chain(&REASONED) {
            let text = format!("sidecert-{label}-error");
            let frame = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"error":{error}}}"#);
            let answer = Template::new(frame);
            let reply = match odd {
                Some(departs) => Reply::Odd { departs: (*departs).to_owned(), answer },
                None => Reply::Once(answer),
            };
            it = turn(does(it, ONE, None, &input(&text), reply), label, &text);
        }
        stop(turn(it, "after", "And now?"))
    },
};

/// The reason that the outcome of a turn has, if it has one, where the turn failed.
fn reason_of<'x>(x: &'x Exchange<'_>, label: &str) -> Result<(Option<Cow<'x, str>>, u64), Sight> {
    match came(x, label) {
        Sight::Saw(FAILED, at) => {
            let outcome = x.outcome(label).map(|(_, outcome)| outcome);
            Ok((outcome.and_then(|it| it.get("reason")?.as_str()), at))
        }
        Sight::Saw(seen, at) => Err(Sight::SawOther { at, actual: format!("{label}: {}", seen.0) }),
        other => Err(other),
    }
}

fn more_data(x: &Exchange<'_>) -> Sight {
    let (given, more) = match (reason_of(x, "given"), reason_of(x, "more")) {
        (Ok((given, _)), Ok(more)) => (given, more),
        (Err(sight), _) | (_, Err(sight)) => return sight,
    };
    if given.as_deref() != Some(GIVEN) {
        let why = "the driver does not tell the reasons of guests";
        return Sight::Undecided(Why::NotProvoked(why.into()));
    }
    match more {
        (Some(name), at) if name == GIVEN => Sight::Saw(BY_REASON, at),
        (name, at) => {
            Sight::SawOther { at, actual: format!("the reason {:?}", name.as_deref().unwrap_or("none")) }
        }
    }
}

fn distrusted(x: &Exchange<'_>) -> Sight {
    for (label, said) in [("misdescribed", GIVEN), ("unknown", "sidecert_none")] {
        match reason_of(x, label) {
            Ok((Some(name), at)) if name == said => {
                return Sight::SawOther { at, actual: format!("{label}: it failed for the reason {name}") };
            }
            Ok(_) => {}
            Err(sight) => return sight,
        }
    }
    match came(x, "after") {
        Sight::Saw(DONE, at) => Sight::Saw(BY_NONE, at),
        Sight::Saw(seen, at) => Sight::SawOther { at, actual: format!("the next turn: {}", seen.0) },
        other => other,
    }
}
