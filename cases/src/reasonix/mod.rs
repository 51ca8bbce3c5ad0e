//! The Reasonix extension protocol: one table for the family, a suite for each edition.

mod content;
mod interception;
mod lifecycle;
mod providers;
mod security;
mod transport;

use sidecert_proto::reasonix::contract::{self, Limits};
use sidecert_proto::reasonix::{host, session};
use sidecert_proto::requirement::{Accepts, Basis, Editions, Requirement, Seen};
use sidecert_proto::script::{Process, ScriptDef};
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

/// The handshake, which every process but a bare one begins with.
static HANDSHAKE: ScriptDef =
    ScriptDef { name: "handshake", process: Process::Tour, needs: &[], build: host::opening };
/// The orderly end, which every process but a bare one ends with.
static SHUTDOWN: ScriptDef =
    ScriptDef { name: "shutdown", process: Process::Tour, needs: &[], build: host::closing };

/// Every requirement of the family, section by section.
static REQUIREMENTS: &[Requirement] = &{
    let sections: [&[Requirement]; 6] = [
        transport::ROWS,
        lifecycle::ROWS,
        content::ROWS,
        interception::ROWS,
        providers::ROWS,
        security::ROWS,
    ];
    joined::<ROWS>(&sections)
};

const ROWS: usize = transport::ROWS.len()
    + lifecycle::ROWS.len()
    + content::ROWS.len()
    + interception::ROWS.len()
    + providers::ROWS.len()
    + security::ROWS.len();

/// The rows of all sections in one table.
const fn joined<const N: usize>(sections: &[&[Requirement]]) -> [Requirement; N] {
    let mut table = [sections[0][0]; N];
    let (mut section, mut place) = (0, 0);
    while section < sections.len() {
        let mut row = 0;
        while row < sections[section].len() {
            table[place] = sections[section][row];
            place += 1;
            row += 1;
        }
        section += 1;
    }
    table
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
    requirements: REQUIREMENTS,
    rules: session::RULES,
    opening: &HANDSHAKE,
    declaration: host::INITIALIZE,
    closing: &SHUTDOWN,
    observer: |contract| Box::new(session::Session::new(contract)),
    host: |setting| Box::new(host::Host::new(setting)),
    declared: host::declared,
    environment: host::environment,
    // A body of exactly the limit, with its LF one byte more, is read: nothing is asserted of it either way.
    line_bytes_max: |contract| Limits::of(contract).frame_bytes,
    provocations: PROVOCATIONS,
    exercises: EXERCISES,
};

const PROVOCATIONS: &[Provocation] = &[Provocation {
    name: "large",
    says: "it wants to answer this intercept with more than a frame can hold (a replacement of 9 MiB)",
    example: r#"{ event = "input.receive", payload = { text = "sidecert:large" } }"#,
}];

const EXERCISES: &[Exercise] = &[
    Exercise { name: "streams", says: "open provider streams, which may cost money" },
    Exercise { name: "ui-actions", says: "call the actions that it declares" },
    Exercise { name: "prompts", says: "answer its prompts" },
    Exercise { name: "calls", says: "call its tools" },
    Exercise { name: "all", says: "all of these" },
];
