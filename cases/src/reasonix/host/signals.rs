//! What becomes of guests when a signal ends their host in the middle of a turn: none of them is left.
//!
//! They end when their input does, so a host that only dies leaves none either. One that the signal does not end, since
//! it stops the turn for example, has not been asked that question.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::quoted;
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::reasonix::sidecar;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Requirement, Seen, must};
use sidecert_proto::script::{Process, Reply, Script, ScriptDef, Setting, Step, Template};
use sidecert_proto::verdict::{Sight, Why};

use super::processes::{LATE_MILLIS, ended, timely, within};
use super::{DONE, ONE, TURN, ask, awaits, guest, observed, reacts, session, stream_open};

const NONE_LEFT: Seen = Seen("the end of each of its guests");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-processes/terminated-leaves-none", Host)
        .says("A host that SIGTERM ends in the middle of a turn leaves none of its guests running.", &[])
        .accepts(&[observed(NONE_LEFT)])
        .checked(After(&TERMINATED, none_left)),
    must("reasonix/host-processes/interrupted-leaves-none", Host)
        .says("A host that Ctrl-C ends in the middle of a turn leaves none of its guests running.", &[])
        .accepts(&[observed(NONE_LEFT)])
        .checked(After(&INTERRUPTED, none_left)),
];

/// The label of the ask that gives the host a signal.
const SIGNAL: &str = "signal";
/// The guest that has nothing to do with the turn.
const TWO: &str = "two";

static TERMINATED: ScriptDef = ScriptDef {
    name: "host-terminated",
    process: Process::Tour,
    needs: &[],
    build: |setting| signalled("host-terminated", setting, "TERM"),
};
static INTERRUPTED: ScriptDef = ScriptDef {
    name: "host-interrupted",
    process: Process::Tour,
    needs: &[],
    build: |setting| signalled("host-interrupted", setting, "INT"),
};

/// A guest whose stream is open, another that is idle, and a signal for their host.
fn signalled(name: &str, setting: &Setting<'_>, signal: &str) -> Script {
    let script = session(name, setting, &[Plugin::new(setting, ONE), Plugin::new(setting, TWO)]);
    let accepted = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#;
    let script = reacts(script, &stream_open(), Reply::Once(Template::new(accepted)));
    let said = format!(r#"{{"do":"turn","text":"Hello","model":{}}}"#, quoted(&sidecar::model(ONE)));
    let script = script.step(ask(TURN, &said)).step(awaits(&stream_open()));
    let script = script.step(ask(SIGNAL, &format!(r#"{{"do":"signal","signal":"{signal}"}}"#)));
    let script = script.step(within(SIGNAL, LATE_MILLIS));
    // They hear of it a moment later than the driver where it is their input that ends.
    let script = script.step(Step::Gone).step(guest(TWO)).step(Step::Gone);
    script.step(within(TURN, LATE_MILLIS))
}

/// Whether both were gone, where the signal did end the host.
fn none_left(x: &Exchange<'_>) -> Sight {
    match timely(x, SIGNAL) {
        Sight::Saw(DONE, _) => ended(x, SIGNAL, &[(ONE, 1), (TWO, 1)], NONE_LEFT),
        undecided @ Sight::Undecided(_) => undecided,
        Sight::Saw(..) | Sight::SawOther { .. } => {
            Sight::Undecided(Why::NotProvoked("the signal did not end the host".into()))
        }
    }
}
