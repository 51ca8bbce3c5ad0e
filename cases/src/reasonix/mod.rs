//! The Reasonix extension protocol: one table for the family, a suite for each edition.

mod content;
mod envelope;
mod errors;
mod framing;
mod host;
mod interception;
mod lifecycle;
mod members;
mod providers;
mod security;
mod sights;
mod ui;
mod visit;

use sidecert_proto::json::{Tape, quoted};
use sidecert_proto::reasonix::contract::{self, Limits};
use sidecert_proto::reasonix::{host as peer, prose, session};
use sidecert_proto::requirement::{Accepts, Basis, Editions, Requirement, Seen};
use sidecert_proto::script::{Process, ScriptDef, Setting};
use sidecert_proto::suite::{Exercise, Provocation, Suite};

/// The edition of `reasonix-v1`.
pub const IN_V1: Editions = 1;
/// The edition of `reasonix-v2`.
pub const IN_V2: Editions = 2;

/// The released host that was watched.
const RELEASE: Basis = Basis::Observed("reasonix 1.38.11");
/// The Go SDK that was watched.
const SDK: Basis = Basis::Observed("the Go SDK of reasonix");

/// What is seen of a rule that nothing broke.
const KEPT: Seen = Seen("that this holds throughout");
const KEPT_AS_SPECIFIED: &[Accepts] = &[Accepts { seen: KEPT, by: Basis::Specified }];
const KEPT_AS_OBSERVED: &[Accepts] = &[Accepts { seen: KEPT, by: RELEASE }];

/// A method that no contract has.
const NO_METHOD: &str = "extension/sidecert/none";
/// The params that cancel a stream that there is not: a request that does nothing.
const NOTHING_PARAMS: &str = r#"{"streamId":"sidecert-none"}"#;

/// The handshake, which every process but a bare one begins with.
static HANDSHAKE: ScriptDef =
    ScriptDef { name: "handshake", process: Process::Tour, needs: &[], build: peer::opening };
/// The orderly end, which every process but a bare one ends with.
static SHUTDOWN: ScriptDef =
    ScriptDef { name: "shutdown", process: Process::Tour, needs: &[], build: peer::closing };

const GUESTS: [&[Requirement]; 10] = [
    framing::ROWS,
    envelope::ROWS,
    members::ROWS,
    lifecycle::ROWS,
    content::ROWS,
    interception::ROWS,
    providers::ROWS,
    ui::ROWS,
    errors::ROWS,
    security::ROWS,
];

/// Every requirement of the family, section by section.
static REQUIREMENTS: &[Requirement] = {
    const PARTS: [&[&[Requirement]]; 2] = [&GUESTS, &host::SECTIONS];
    &crate::joined::<{ crate::count(&PARTS) }>(&PARTS)
};

/// The event (a JSON text) and the payload of a provocation, with `more` behind the first text of the payload.
fn provoked_payload(setting: &Setting<'_>, name: &str, more: &str) -> (String, String) {
    let text = setting.provocations.get(name).map_or("{}", String::as_str);
    let tape = Tape::scan(text.as_bytes());
    let member = |name: &str| tape.as_ref().ok().and_then(|tape| tape.root().get(name));
    let event = member("event").map_or("null", |event| event.raw()).to_owned();
    let Some(payload) = member("payload") else { return (event, "null".to_owned()) };
    let whole = payload.raw();
    let first = payload.walk().find_map(|(_, node)| Some((node, node.as_str()?.into_owned())));
    match first {
        Some((node, said)) if !more.is_empty() => {
            let start = node.offset() - payload.offset();
            let end = start + node.raw().len();
            (event, format!("{}{}{}", &whole[..start], quoted(&format!("{said}{more}")), &whole[end..]))
        }
        _ => (event, whole.to_owned()),
    }
}

/// The params of an intercept that is a provocation, and that may take so long.
fn provoked_intercept(setting: &Setting<'_>, name: &str, millis: u64) -> String {
    let (event, payload) = provoked_payload(setting, name, "");
    format!(r#"{{"event":{event},"payload":{payload},"seq":1,"timeoutMillis":{millis}}}"#)
}

/// `reasonix.extension.v1`.
pub static V1: Suite = Suite {
    name: "reasonix-v1",
    title: "Reasonix Extension Protocol v1",
    edition: IN_V1,
    contract: contract::v1,
    ..FAMILY
};

/// `reasonix.extension.v2`, release 1.38.11.
pub static V2: Suite = Suite {
    name: "reasonix-v2",
    title: "Reasonix Extension Protocol v2 (release 1.38.11)",
    edition: IN_V2,
    contract: contract::v2,
    ..FAMILY
};

/// What both editions share.
const FAMILY: Suite = Suite {
    name: "reasonix",
    family: "reasonix",
    title: "Reasonix Extension Protocol",
    edition: 0,
    contract: contract::v1,
    read: contract::read,
    requirements: REQUIREMENTS,
    rules: session::RULES,
    opening: &HANDSHAKE,
    declared_by: contract::INITIALIZE,
    closing: &SHUTDOWN,
    observer: |contract, watched| Box::new(session::Session::new(contract, watched)),
    host: |setting| Box::new(peer::Host::new(setting)),
    casting: Some(&host::CASTING),
    visit: Some(&visit::VISIT),
    declared: peer::declared,
    environment: peer::environment,
    // A body of exactly the limit, with its LF one byte more, is read: nothing is asserted of it either way.
    line_bytes_max: |contract| Limits::of(contract).frame_bytes,
    timed: TIMED,
    free: prose::FREE,
    calls: None,
    older: None,
    provocations: PROVOCATIONS,
    exercises: EXERCISES,
};

const TIMED: &[&str] = &[
    "reasonix/host-interception/time-kept",
    "reasonix/host-lifecycle/four-at-once",
    "reasonix/host-lifecycle/handshake-bounded",
    "reasonix/host-processes/calls-to-the-dead-fail",
    "reasonix/host-processes/death-fails-every-call",
    "reasonix/host-processes/death-fails-its-call",
    "reasonix/host-processes/exit-on-shutdown-fine",
    "reasonix/host-processes/no-restart-while-busy",
    "reasonix/host-providers/catalog-time-kept",
];

const PROVOCATIONS: &[Provocation] = &[
    Provocation {
        name: "panic",
        says: "its handler fails with an exception when it rules on this intercept",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:panic" } }"#,
    },
    Provocation {
        name: "slow",
        says: "it is not done with this intercept within the time that the intercept allows",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:slow" } }"#,
    },
    Provocation {
        name: "replace",
        says: "it replaces the payload of this intercept",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:replace" } }"#,
    },
    Provocation {
        name: "large",
        says: "it wants to answer this intercept with more than a frame can hold (a replacement of 9 MiB)",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:large" } }"#,
    },
    Provocation {
        name: "prompt",
        says: "it asks the user something before it rules on this intercept",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:prompt" } }"#,
    },
    Provocation {
        name: "publish",
        says: "it shows a surface of each kind before it rules on this intercept",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:publish" } }"#,
    },
    Provocation {
        name: "echo-payload",
        says: "it replaces the payload of this intercept by the same payload",
        example: r#"{ event = "input.receive", payload = { text = "sidecert:echo-payload" } }"#,
    },
    Provocation {
        name: "empty-stream",
        says: "its provider has nothing to say to this message",
        example: r#"{ message = "sidecert:empty-stream" }"#,
    },
    Provocation {
        name: "failing-stream",
        says: "its provider fails on this message, with an error that has a key in it",
        example: r#"{ message = "sidecert:failing-stream" }"#,
    },
    Provocation {
        name: "long-stream",
        says: "its provider goes on and on about this message",
        example: r#"{ message = "sidecert:long-stream" }"#,
    },
];

const EXERCISES: &[Exercise] = &[
    Exercise { name: "streams", says: "open provider streams, which may cost money" },
    Exercise { name: "ui-actions", says: "call the actions that it declares" },
    Exercise { name: "prompts", says: "answer its prompts" },
    Exercise { name: "all", says: "all of these" },
];
