//! The WebCodex plugin protocol: what binds the plugin.

mod calls;
mod lifecycle;
mod sights;
mod tools;
mod wire;

use sidecert_proto::requirement::{Accepts, Basis, Cite, Editions, Requirement, Seen};
use sidecert_proto::script::{Process, ScriptDef};
use sidecert_proto::suite::Suite;
use sidecert_proto::webcodex::contract::{self, Bounds, INITIALIZE, TOOLS_LIST};
use sidecert_proto::webcodex::{self, host as peer, session};

/// The edition of `webcodex-v1`.
pub const IN_V1: Editions = 1;

/// The host that was watched.
const RUNNER: Basis = Basis::Observed("the WebCodex Runner");
/// The plugins that were watched.
const PLUGINS: Basis = Basis::Observed("the published WebCodex plugins");

const PROTOCOL: Cite = Cite::Seed("WebCodex Plugin Protocol v1", "WebCodex Plugin Protocol v1");
const PROFILE: Cite = Cite::Seed("Native Plugin Schema Profile v1", "Native Plugin Schema Profile v1");
const CALLING: Cite = Cite::Seed("调用与失败语义", "Calls and failures");
const GATEWAY: Cite = Cite::Seed("Runner-owned gateway 模型", "The gateway that a Runner owns");
const RESPONSE: Cite = Cite::JsonRpc("5");

/// What is seen of a rule that nothing broke.
const KEPT: Seen = Seen("that this holds throughout");
const KEPT_AS_SPECIFIED: &[Accepts] = &[Accepts { seen: KEPT, by: Basis::Specified }];
const KEPT_AS_OBSERVED: &[Accepts] = &[Accepts { seen: KEPT, by: RUNNER }];

/// The handshake and the first list of tools, which every process begins with.
static HANDSHAKE: ScriptDef =
    ScriptDef { name: "handshake", process: Process::Tour, needs: &[], build: peer::opening };
/// The end of the input, which every process ends with.
static END_OF_INPUT: ScriptDef =
    ScriptDef { name: "end-of-input", process: Process::Tour, needs: &[], build: peer::closing };

const SECTIONS: [&[Requirement]; 4] = [wire::ROWS, lifecycle::ROWS, tools::ROWS, calls::ROWS];

/// Every requirement of the family, section by section.
static REQUIREMENTS: &[Requirement] = &crate::joined::<{ crate::count(&[&SECTIONS]) }>(&[&SECTIONS]);

/// `webcodex-plugin-v1`.
pub static V1: Suite = Suite {
    name: "webcodex-v1",
    family: "webcodex",
    title: "WebCodex Plugin Protocol v1",
    edition: IN_V1,
    contract: contract::wire,
    read: contract::wire_of,
    requirements: REQUIREMENTS,
    rules: session::RULES,
    opening: &HANDSHAKE,
    declared_by: TOOLS_LIST,
    closing: &END_OF_INPUT,
    observer: |contract, _| Box::new(session::Session::new(contract)),
    host: |_| Box::new(peer::Host::default()),
    casting: None,
    visit: None,
    declared: peer::declared,
    environment: |_| Vec::new(),
    // A carriage return before the line feed does not count.
    line_bytes_max: |contract| {
        usize::try_from(Bounds::of(contract).frame_bytes).unwrap_or(usize::MAX).saturating_add(1)
    },
    timed: &[],
    free: webcodex::FREE,
    calls: Some(webcodex::calls::not_made),
    older: Some(contract::older),
    provocations: &[],
    exercises: &[],
};
