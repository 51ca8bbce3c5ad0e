//! "Lifecycle": the handshake, the shutdown, the end of the process.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::machine::Exited;
use sidecert_proto::reasonix::host::{self, INITIALIZE, SHUTDOWN as SHUTDOWN_REQUEST, SHUTDOWN_MILLIS};
use sidecert_proto::reasonix::{contract, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Basis, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{Process, Script, ScriptDef, Step};
use sidecert_proto::transcript::{Kind, Wait};
use sidecert_proto::verdict::{Sight, Why};

use super::{HANDSHAKE, IN_V2, KEPT_AS_SPECIFIED, RELEASE, SHUTDOWN};

const LIFECYCLE: Cite = Cite::Seed("生命周期", "Lifecycle");

const IN_TIME: Seen = Seen("answered within the time that the request names");
const EXITED: Seen = Seen("the process ended by itself");
const FIT: Seen = Seen("every entry fits");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/lifecycle/silent-before-initialized", Guest)
        .says("Before the host says initialized, the guest sends nothing but its answer.", &[LIFECYCLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::SILENT_BEFORE_INITIALIZED, &BARRIER)),
    must("reasonix/lifecycle/provides-fit", Guest)
        .says(
            "Each capability that the guest says it provides names its kind, namespace and id.",
            &[Cite::Schema("/$defs/CapabilityWire")],
        )
        .only(IN_V2)
        .needs(&[contract::since_v2::CAPABILITY_WIRE, contract::since_v2::INITIALIZE_RESULT_PROVIDES])
        .when("provides")
        .accepts(&[Accepts { seen: FIT, by: Basis::Specified }])
        .checked(After(&HANDSHAKE, provides_fit)),
    must("reasonix/lifecycle/shutdown-answered-in-time", Guest)
        .says("The guest answers shutdown within the time that the request names.", &[LIFECYCLE])
        .accepts(&[Accepts { seen: IN_TIME, by: Basis::Specified }])
        .checked(After(&SHUTDOWN, shutdown_answered_in_time)),
    must("reasonix/lifecycle/exits-after-shutdown", Guest)
        .says("After shutdown and the end of its input the process ends by itself.", &[LIFECYCLE])
        .accepts(&[Accepts { seen: EXITED, by: Basis::Specified }])
        .checked(After(&SHUTDOWN, exits)),
    must("reasonix/lifecycle/exits-at-end-of-input", Guest)
        .says("At the end of its input, without shutdown, the process ends by itself.", &[])
        .accepts(&[Accepts { seen: EXITED, by: RELEASE }])
        .checked(After(&END_OF_INPUT, exits)),
];

/// Withholds `initialized`, and ends: what the guest says unasked is too early.
static BARRIER: ScriptDef = ScriptDef {
    name: "barrier",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        // No request is legal here that could be a fence: what proves the silence is the end of the guest's output.
        Script::new("barrier")
            .request(INITIALIZE, contract::INITIALIZE, &host::initialize_params(setting))
            .step(Step::Await {
                frame: sidecert_proto::script::Pattern::answer_to(INITIALIZE),
                within: sidecert_proto::script::Within::Start,
            })
            .quiet()
            .step(Step::Close)
            .step(Step::Exit)
    },
};

fn provides_fit(exchange: &Exchange<'_>) -> Sight {
    let Some(answer) = exchange.answer_to(INITIALIZE) else {
        return exchange.nothing_came(INITIALIZE, "no answer");
    };
    let provides = match answer.outcome {
        Outcome::Result(result) => result.get("provides"),
        Outcome::Error { .. } => None,
    };
    let validator = exchange.contract.definition_validator("CapabilityWire");
    let (Some(provides), Some(validator)) = (provides, validator) else {
        return Sight::Undecided(Why::NotProvoked("the guest provides nothing".into()));
    };
    for (place, entry) in provides.elements().enumerate() {
        if let Some(violation) = validator.check(entry) {
            let actual = format!("entry {place}: {} {}", violation.pointer, violation.says);
            return Sight::SawOther { at: answer.at, actual };
        }
    }
    Sight::Saw(FIT, answer.at)
}

fn shutdown_answered_in_time(exchange: &Exchange<'_>) -> Sight {
    let late = |at, took: &str| Sight::SawOther {
        at,
        actual: format!("{took}; the request allows {SHUTDOWN_MILLIS} ms"),
    };
    if let Some((at, _)) = exchange.timed_out(Wait::Answer, Some(SHUTDOWN_REQUEST)) {
        return late(at, "no answer in time");
    }
    match (exchange.answer_to(SHUTDOWN_REQUEST), exchange.wrote(SHUTDOWN_REQUEST)) {
        (Some(answer), Some(wrote)) if answer.t.saturating_sub(wrote) <= SHUTDOWN_MILLIS * 1_000 => {
            Sight::Saw(IN_TIME, answer.at)
        }
        (Some(answer), Some(wrote)) => {
            late(answer.at, &format!("answered after {} ms", (answer.t - wrote) / 1_000))
        }
        _ => match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest })) {
            // Its output has ended, so there is no waiting for an answer any more.
            Some(end) => Sight::SawOther { at: end.at, actual: "it ended without an answer".to_owned() },
            None => exchange.nothing_came(SHUTDOWN_REQUEST, "no answer"),
        },
    }
}

/// Ends the guest's input without a shutdown.
static END_OF_INPUT: ScriptDef = ScriptDef {
    name: "end-of-input",
    process: Process::Bare,
    needs: &[],
    build: |setting| host::opening(setting).fence().step(Step::Close).step(Step::Exit),
};

fn exits(exchange: &Exchange<'_>) -> Sight {
    if let Some((at, within)) = exchange.timed_out(Wait::Exit, None) {
        let seconds = within / 1_000_000;
        return Sight::SawOther {
            at,
            actual: format!("still running {seconds} s after its input had ended"),
        };
    }
    let closed = exchange.find(|kind| matches!(kind, Kind::Closed { from } if *from != Guest));
    match (closed, exchange.exited()) {
        (Some(_), Some((at, Exited::Code(_) | Exited::Unknown, _))) => Sight::Saw(EXITED, at),
        (Some(_), Some((at, Exited::Signal(signal), _))) => {
            Sight::SawOther { at, actual: format!("it was ended by signal {signal}") }
        }
        _ => Sight::Undecided(Why::CutShort(exchange.cut.unwrap_or("its input was never closed").to_owned())),
    }
}
