//! "Lifecycle": the handshake, the shutdown, the end of the process.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::Kind as JsonKind;
use sidecert_proto::machine::Exited;
use sidecert_proto::reasonix::host::{self, INITIALIZE, SHUTDOWN as SHUTDOWN_REQUEST, SHUTDOWN_MILLIS};
use sidecert_proto::reasonix::{contract, sample, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{Pattern, Process, Script, ScriptDef, Setting, Step, Within};
use sidecert_proto::transcript::{Kind, Wait};
use sidecert_proto::verdict::{Sight, Why};

use super::sights::{
    BAD_PARAMS, IGNORED, INVALID_BY_ID, SERVED, UNKNOWN, UNSUPPORTED, VIOLATION, all_became, became, request,
    sdk, specified,
};
use super::{HANDSHAKE, IN_V2, KEPT_AS_SPECIFIED, RELEASE, SHUTDOWN};

const LIFECYCLE: Cite = Cite::Seed("生命周期", "Lifecycle");
const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const INITIALIZE_RESULT: Cite = Cite::Schema("/$defs/InitializeResult/required");

const IN_TIME: Seen = Seen("answered within the time that the request names");
const ACCEPTED: Seen = Seen("accepted");
const EXITED: Seen = Seen("the process ended by itself");
const FIT: Seen = Seen("every entry fits");
const COMPLETE: Seen = Seen("it has all four, filled");
const SAME_MAJOR: Seen = Seen("the major version that the host speaks");
const ANSWERED: Seen = Seen("answered");
const NARROW: Seen = Seen("nothing beyond the empty lists");

const STRICT: &[Accepts] = &[specified(BAD_PARAMS)];
const EARLY: &[Accepts] = &[sdk(VIOLATION), specified(INVALID_BY_ID)];
const REFUSED_VERSION: &[Accepts] = &[sdk(UNSUPPORTED)];
const IGNORED_BY_SDK: &[Accepts] = &[sdk(IGNORED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/lifecycle/initialize-complete", Guest)
        .says(
            "The answer to initialize names the protocol's version, the guest, the guest's version and the version of its state.",
            &[LIFECYCLE, INITIALIZE_RESULT],
        )
        .accepts(&[specified(COMPLETE)])
        .checked(After(&HANDSHAKE, initialize_complete)),
    must("reasonix/lifecycle/version-matches", Guest)
        .says("The protocol version in that answer is the major version of the host, as a number.", &[LIFECYCLE])
        .accepts(&[specified(SAME_MAJOR)])
        .checked(After(&HANDSHAKE, version_matches)),
    must("reasonix/lifecycle/declares-within-manifest", Guest)
        .says(
            "Subscriptions, slots, providers and actions in that answer are among those that the manifest allows.",
            &[LIFECYCLE],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::DECLARES_WITHIN, &HANDSHAKE)),
    must("reasonix/lifecycle/declares-within-empty-manifest", Guest)
        .says("So they are where the manifest allows none: the guest goes by what it is told, not by what it is.", &[])
        .accepts(&[Accepts { seen: NARROW, by: RELEASE }])
        .checked(After(&EMPTY_MANIFEST, declares_nothing)),
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
        .accepts(&[specified(FIT)])
        .checked(After(&HANDSHAKE, provides_fit)),
    must("reasonix/lifecycle/early-requests-refused", Guest)
        .says("Before initialize no other request is served, and the connection goes on.", &[])
        .accepts(EARLY)
        .checked(After(&EARLY_FRAMES, |x| became(x, "early-catalog"))),
    must("reasonix/lifecycle/early-notifications-ignored", Guest)
        .says("Before initialize notifications are passed over, initialized too.", &[])
        .accepts(IGNORED_BY_SDK)
        .checked(After(&EARLY_FRAMES, |x| all_became(x, ["early-event", "early-initialized"], IGNORED_BY_SDK))),
    must("reasonix/lifecycle/requests-before-initialized-refused", Guest)
        .says("Between the answer to initialize and initialized no other request is served.", &[])
        .accepts(EARLY)
        .checked(After(&EARLY_FRAMES, |x| became(x, "early-intercept"))),
    must("reasonix/lifecycle/second-initialize-refused", Guest)
        .says("A second initialize before initialized is refused.", &[])
        .accepts(EARLY)
        .checked(After(&EARLY_FRAMES, |x| became(x, "second-initialize"))),
    must("reasonix/lifecycle/opens-with-initialized", Guest)
        .says("When the host has said initialized, requests are served.", &[LIFECYCLE])
        .accepts(&[specified(SERVED)])
        .checked(After(&EARLY_FRAMES, |x| became(x, "intercept"))),
    must("reasonix/lifecycle/late-initialize-answered", Guest)
        .says("An initialize on an open connection is answered, one way or the other.", &[])
        .accepts(&[sdk(ANSWERED)])
        .checked(After(&LATE_INITIALIZE, |x| match x.answer_to("late-initialize") {
            Some(answer) => Sight::Saw(ANSWERED, answer.at),
            None => became(x, "late-initialize"),
        })),
    must("reasonix/lifecycle/other-protocol-refused", Guest)
        .says("An initialize of another protocol is refused as an unsupported version.", &[])
        .accepts(REFUSED_VERSION)
        .checked(After(&OTHER_PROTOCOL, |x| became(x, "other-protocol"))),
    must("reasonix/lifecycle/other-major-refused", Guest)
        .says("An initialize of another major version is refused as an unsupported version.", &[])
        .accepts(REFUSED_VERSION)
        .checked(After(&OTHER_MAJOR, |x| became(x, "other-major"))),
    must("reasonix/lifecycle/version-no-number-refused", Guest)
        .says("An initialize whose version is no number breaks the protocol.", &[])
        .accepts(&[sdk(VIOLATION), specified(INVALID_BY_ID), specified(UNSUPPORTED), specified(BAD_PARAMS)])
        .checked(After(&VERSION_NO_NUMBER, |x| became(x, "version-no-number"))),
    must("reasonix/lifecycle/unknown-member-refused", Guest)
        .says("An initialize with a member that its definition does not have is refused.", &[TRANSPORT, Cite::Schema("/$defs/InitializeParams")])
        .accepts(STRICT)
        .checked(After(&UNKNOWN_MEMBER, |x| became(x, "unknown-member"))),
    must("reasonix/lifecycle/unknown-manifest-member-refused", Guest)
        .says("So is one with such a member in its manifest.", &[TRANSPORT, Cite::Schema("/$defs/ManifestExpectation")])
        .accepts(STRICT)
        .checked(After(&UNKNOWN_MANIFEST_MEMBER, |x| became(x, "unknown-manifest-member"))),
    must("reasonix/lifecycle/unknown-session-member-refused", Guest)
        .says("So is one with such a member in its session.", &[TRANSPORT, Cite::Schema("/$defs/SessionContext")])
        .accepts(STRICT)
        .checked(After(&UNKNOWN_SESSION_MEMBER, |x| became(x, "unknown-session-member"))),
    must("reasonix/lifecycle/manifest-demanded", Guest)
        .says("An initialize without a manifest is refused.", &[TRANSPORT, Cite::Schema("/$defs/InitializeParams/required")])
        .accepts(&[specified(BAD_PARAMS), sdk(SERVED)])
        .checked(After(&NO_MANIFEST, |x| became(x, "no-manifest"))),
    must("reasonix/lifecycle/params-demanded", Guest)
        .says("An initialize without params is refused.", &[TRANSPORT, Cite::Schema("/$defs/InitializeParams/required")])
        .accepts(&[specified(BAD_PARAMS), specified(INVALID_BY_ID), specified(VIOLATION), sdk(UNSUPPORTED)])
        .checked(After(&NO_PARAMS, |x| became(x, "no-params"))),
    must("reasonix/lifecycle/shutdown-answered-in-time", Guest)
        .says("The guest answers shutdown within the time that the request names.", &[LIFECYCLE])
        .accepts(&[specified(IN_TIME)])
        .checked(After(&SHUTDOWN, shutdown_answered_in_time)),
    must("reasonix/lifecycle/shutdown-accepted", Guest)
        .says("The guest accepts a shutdown.", &[])
        .accepts(&[sdk(ACCEPTED)])
        .checked(After(&SHUTDOWN, shutdown_accepted)),
    must("reasonix/lifecycle/negative-timeout-refused", Guest)
        .says("A shutdown with a negative time is refused.", &[Cite::Schema("/$defs/ShutdownParams/properties/timeoutMillis")])
        .accepts(STRICT)
        .checked(After(&NEGATIVE_SHUTDOWN, |x| became(x, "negative-shutdown"))),
    must("reasonix/lifecycle/early-shutdown-served", Guest)
        .says("A shutdown before initialize is served.", &[])
        .accepts(&[sdk(SERVED)])
        .checked(After(&EARLY_SHUTDOWN, |x| became(x, "early-shutdown"))),
    must("reasonix/lifecycle/exits-after-shutdown", Guest)
        .says("After shutdown and the end of its input the process ends by itself.", &[LIFECYCLE])
        .accepts(&[specified(EXITED)])
        .checked(After(&SHUTDOWN, exits)),
    must("reasonix/lifecycle/exits-at-end-of-input", Guest)
        .says("At the end of its input, without shutdown, the process ends by itself.", &[])
        .accepts(&[Accepts { seen: EXITED, by: RELEASE }])
        .checked(After(&END_OF_INPUT, exits)),
    must("reasonix/lifecycle/ends-cleanly", Guest)
        .says("Its exit code is then 0.", &[])
        .accepts(&[sdk(EXITED_CLEANLY)])
        .checked(After(&END_OF_INPUT, ends_cleanly)),
    must("reasonix/lifecycle/no-catalog-without-providers", Guest)
        .says("A guest that declares no providers does not know the catalog.", &[])
        .accepts(&[sdk(UNKNOWN)])
        .checked(After(&EMPTY_MANIFEST, |x| undeclared(x, "providers", "catalog"))),
    must("reasonix/lifecycle/no-actions-without-ui", Guest)
        .says("A guest that declares no actions does not know how one is called.", &[])
        .accepts(&[sdk(UNKNOWN)])
        .checked(After(&EMPTY_MANIFEST, |x| undeclared(x, "uiActions", "action"))),
];

const EXITED_CLEANLY: Seen = Seen("the process ended with the code 0");

fn answered() -> Step {
    Step::Await { frame: Pattern::answer_to(INITIALIZE), within: Within::Start }
}

/// Withholds `initialized`, and ends: what the guest says unasked is too early.
static BARRIER: ScriptDef = ScriptDef {
    name: "barrier",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        // No request is legal here that could be a fence: what proves the silence is the end of the guest's output.
        Script::new("barrier")
            .request(INITIALIZE, contract::INITIALIZE, &host::initialize_params(setting))
            .step(answered())
            .quiet()
            .step(Step::Close)
            .step(Step::Exit)
    },
};

fn initialize_complete(exchange: &Exchange<'_>) -> Sight {
    let Ok((result, at)) = super::sights::result_of(exchange, INITIALIZE) else {
        return exchange.nothing_came(INITIALIZE, "no result");
    };
    for name in ["protocolVersion", "name", "version"] {
        let filled = result.get(name).and_then(|it| it.as_str()).is_some_and(|text| !text.is_empty());
        if !filled {
            let found = result.get(name).map_or("nothing", |it| it.raw());
            return Sight::SawOther {
                at,
                actual: format!("{name} is {}", sidecert_proto::exchange::short(found)),
            };
        }
    }
    match result.get("stateSchemaVersion").and_then(|it| it.as_u64()) {
        Some(_) => Sight::Saw(COMPLETE, at),
        None => Sight::SawOther { at, actual: "stateSchemaVersion is no whole number".to_owned() },
    }
}

fn version_matches(exchange: &Exchange<'_>) -> Sight {
    let Ok((result, at)) = super::sights::result_of(exchange, INITIALIZE) else {
        return exchange.nothing_came(INITIALIZE, "no result");
    };
    let version = result.get("protocolVersion").and_then(|it| it.as_str()).unwrap_or_default();
    // The released hosts take any number that means the same, 01 for example.
    if version.parse::<u32>().ok() == Some(exchange.contract.major) {
        return Sight::Saw(SAME_MAJOR, at);
    }
    let said = sidecert_proto::exchange::short(&version);
    Sight::SawOther {
        at,
        actual: format!("the version {said:?}, and the host speaks {}", exchange.contract.major),
    }
}

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

/// Says things before their time, and then opens the connection in order.
static EARLY_FRAMES: ScriptDef = ScriptDef {
    name: "early-frames",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let intercept = sample::params(setting, contract::INTERCEPT).to_string();
        let event = format!(r#"{{"event":"session.start","payload":{}}}"#, sample::payload("session.start"));
        let tell = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
        };
        Script::new("early-frames")
            .raw("early-event", "it comes before initialize", tell(contract::EVENT, &event))
            .raw("early-initialized", "it comes before initialize", tell(contract::INITIALIZED, "{}"))
            .raw(
                "early-catalog",
                "it comes before initialize",
                request("early-catalog", contract::PROVIDER_CATALOG, "{}"),
            )
            .request(INITIALIZE, contract::INITIALIZE, &host::initialize_params(setting))
            .step(answered())
            .raw(
                "early-intercept",
                "it comes before initialized",
                request("early-intercept", contract::INTERCEPT, &intercept),
            )
            .raw(
                "second-initialize",
                "it is the second one",
                request("second-initialize", contract::INITIALIZE, &host::initialize_params(setting)),
            )
            // Whatever is still being served must not take what comes next for the end of the handshake.
            .settle()
            .notify("initialized", contract::INITIALIZED, "{}")
            .request("intercept", contract::INTERCEPT, &intercept)
            .step(Step::Fence { or_end: true })
            .settle()
    },
};

/// Sends a second initialize on an open connection.
static LATE_INITIALIZE: ScriptDef = ScriptDef {
    name: "late-initialize",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let params = host::initialize_params(setting);
        host::opening(setting)
            .fence()
            .raw(
                "late-initialize",
                "it is the second one",
                request("late-initialize", contract::INITIALIZE, &params),
            )
            .settle()
            .step(Step::Close)
            .step(Step::Exit)
    },
};

/// Opens a connection with an initialize that is wrong, and ends the input when it was answered.
fn wrong_opening(
    setting: &Setting<'_>,
    label: &str,
    departs: &str,
    edit: impl FnOnce(String) -> String,
) -> Script {
    let frame = request(label, contract::INITIALIZE, &host::initialize_params(setting));
    Script::new(label)
        .raw(label, departs, edit(frame))
        .step(Step::Await { frame: Pattern::answer_to(label), within: Within::Start })
        .step(Step::Close)
        .step(Step::Exit)
}

macro_rules! wrong_openings {
    ($($(#[$doc:meta])* $def:ident = $label:literal, $departs:literal, $edit:expr;)*) => {
        $($(#[$doc])* static $def: ScriptDef = ScriptDef {
            name: $label,
            process: Process::Bare,
            needs: &[],
            build: |setting| wrong_opening(setting, $label, $departs, |frame: String| ($edit)(setting, frame)),
        };)*
    };
}

wrong_openings! {
    /// Offers another protocol.
    OTHER_PROTOCOL = "other-protocol", "its protocol is another", |setting: &Setting<'_>, frame: String| {
        frame.replacen(&setting.contract.id, "sidecert.another.v1", 1)
    };
    /// Offers another major version.
    OTHER_MAJOR = "other-major", "its major version is another", |setting: &Setting<'_>, frame: String| {
        let (own, other) = (setting.contract.major, setting.contract.major + 97);
        frame.replace(&format!(r#""protocolVersion":"{own}""#), &format!(r#""protocolVersion":"{other}""#))
    };
    /// Offers a version that is no number.
    VERSION_NO_NUMBER = "version-no-number", "its version is no number", |setting: &Setting<'_>, frame: String| {
        let own = setting.contract.major;
        frame.replace(&format!(r#""protocolVersion":"{own}""#), r#""protocolVersion":"one""#)
    };
    /// Opens with a member too many.
    UNKNOWN_MEMBER = "unknown-member", "it has a member x", |_: &Setting<'_>, frame: String| {
        frame.replacen(r#""protocolId""#, r#""x":1,"protocolId""#, 1)
    };
    /// Opens with a member too many in the manifest.
    UNKNOWN_MANIFEST_MEMBER = "unknown-manifest-member", "its manifest has a member x", |_: &Setting<'_>, frame: String| {
        frame.replacen(r#""manifest":{"#, r#""manifest":{"x":1,"#, 1)
    };
    /// Opens with a member too many in the session.
    UNKNOWN_SESSION_MEMBER = "unknown-session-member", "its session has a member x", |_: &Setting<'_>, frame: String| {
        frame.replacen(r#""session":{"#, r#""session":{"x":1,"#, 1)
    };
    /// Opens without a manifest.
    NO_MANIFEST = "no-manifest", "it has no manifest", |setting: &Setting<'_>, frame: String| {
        frame.replacen(&format!(r#""manifest":{},"#, host::expectation(setting)), "", 1)
    };
    /// Opens without params.
    NO_PARAMS = "no-params", "it has no params", |setting: &Setting<'_>, frame: String| {
        frame.replacen(&format!(r#","params":{}"#, host::initialize_params(setting)), "", 1)
    };
}

/// Opens with a manifest that allows nothing, and asks for what the guest then does not have.
pub(super) static EMPTY_MANIFEST: ScriptDef = ScriptDef {
    name: "empty-manifest",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let nothing = r#"{"intercepts":[],"replaces":[],"capabilities":[]}"#;
        let frame =
            request(INITIALIZE, contract::INITIALIZE, &host::initialize_params_with(setting, nothing));
        let action = sample::params(setting, contract::UI_ACTION).to_string();
        let mut script = Script::new("empty-manifest")
            .raw(INITIALIZE, "its manifest allows nothing", frame)
            .step(answered())
            .notify("initialized", contract::INITIALIZED, "{}")
            .raw(
                "catalog",
                "the manifest allows no providers",
                request("catalog", contract::PROVIDER_CATALOG, "{}"),
            )
            .raw("action", "the manifest allows no actions", request("action", contract::UI_ACTION, &action));
        for name in ["publish", "prompt"] {
            if setting.provocations.contains_key(name) {
                script = script.request(
                    name,
                    contract::INTERCEPT,
                    &super::provoked_intercept(setting, name, 5_000),
                );
            }
        }
        script.step(Step::Fence { or_end: true }).settle().step(Step::Close).step(Step::Exit)
    },
};

fn declares_nothing(exchange: &Exchange<'_>) -> Sight {
    let (result, at) = match super::sights::result_of(exchange, INITIALIZE) {
        Ok(found) => found,
        Err(sight) => return sight,
    };
    let lists = ["subscriptions", "replaces", "providers", "uiActions"];
    let full = lists
        .into_iter()
        .find(|name| result.get(name).is_some_and(|list| list.kind() == JsonKind::Array && !list.is_empty()));
    match full {
        None => Sight::Saw(NARROW, at),
        Some(name) => Sight::SawOther { at, actual: format!("{name} is not empty") },
    }
}

/// What became of a request for what the guest does not declare.
fn undeclared(exchange: &Exchange<'_>, list: &str, label: &str) -> Sight {
    let declares = super::sights::result_of(exchange, INITIALIZE)
        .is_ok_and(|(result, _)| result.get(list).is_some_and(|list| !list.is_empty()));
    if declares {
        let why = format!("the guest declares {list} even where the manifest allows none");
        return Sight::Undecided(Why::NotProvoked(why.into()));
    }
    became(exchange, label)
}

fn shutdown_answered_in_time(exchange: &Exchange<'_>) -> Sight {
    let late = |at, took: &str| Sight::SawOther {
        at,
        actual: format!("{took}; the request allows {SHUTDOWN_MILLIS} ms"),
    };
    if let Some(at) = exchange.not_within(SHUTDOWN_REQUEST, SHUTDOWN_MILLIS) {
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

fn shutdown_accepted(exchange: &Exchange<'_>) -> Sight {
    let Some(answer) = exchange.answer_to(SHUTDOWN_REQUEST) else {
        // That it does not answer is another matter.
        return Sight::Undecided(Why::CutShort("it did not answer shutdown".to_owned()));
    };
    match answer.outcome {
        Outcome::Result(result) if result.get("accepted").and_then(|it| it.as_bool()) == Some(true) => {
            Sight::Saw(ACCEPTED, answer.at)
        }
        _ => Sight::SawOther { at: answer.at, actual: answer.summary() },
    }
}

/// Sends a shutdown with a negative time.
static NEGATIVE_SHUTDOWN: ScriptDef = ScriptDef {
    name: "negative-shutdown",
    process: Process::Bare,
    needs: &[],
    build: |setting| {
        let frame = request("negative-shutdown", contract::SHUTDOWN, r#"{"timeoutMillis":-1}"#);
        host::opening(setting)
            .fence()
            .raw("negative-shutdown", "its time is negative", frame)
            .settle()
            .step(Step::Close)
            .step(Step::Exit)
    },
};

/// Sends a shutdown before anything else.
static EARLY_SHUTDOWN: ScriptDef = ScriptDef {
    name: "early-shutdown",
    process: Process::Bare,
    needs: &[],
    build: |_| {
        let params = format!(r#"{{"timeoutMillis":{SHUTDOWN_MILLIS}}}"#);
        Script::new("early-shutdown")
            .raw(
                "early-shutdown",
                "it comes before initialize",
                request("early-shutdown", contract::SHUTDOWN, &params),
            )
            .step(Step::Await { frame: Pattern::answer_to("early-shutdown"), within: Within::Start })
            .step(Step::Close)
            .step(Step::Exit)
    },
};

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

fn ends_cleanly(exchange: &Exchange<'_>) -> Sight {
    match exits(exchange) {
        Sight::Saw(..) => match exchange.exited() {
            Some((at, Exited::Code(0) | Exited::Unknown, _)) => Sight::Saw(EXITED_CLEANLY, at),
            Some((at, Exited::Code(code), _)) => Sight::SawOther { at, actual: format!("the code {code}") },
            _ => exchange.nothing_came(INITIALIZE, "it did not end"),
        },
        // That it does not end is another matter.
        Sight::SawOther { actual, .. } => Sight::Undecided(Why::CutShort(actual)),
        undecided @ Sight::Undecided(_) => undecided,
    }
}
