//! What is played before a host that is asked for nothing: our guests are there, and it does what it does.

use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::script::{Process, Script, ScriptDef, Setting, Step};

/// The guest that must have been there.
const ONE: &str = "one";

/// A session with two guests, one of which steps in wherever it can.
pub(super) static VISIT: ScriptDef =
    ScriptDef { name: "visit", process: Process::Tour, needs: &[], build: visit };

fn visit(setting: &Setting<'_>) -> Script {
    let points: Vec<&str> = setting.contract.events.iter().map(String::as_str).collect();
    let plugins = [Plugin::new(setting, ONE).intercepts(&points), Plugin::new(setting, "two")];
    Script::new("visit")
        .step(plugin::start(setting, &plugins, ""))
        .step(Step::Outcome { of: START.to_owned(), within: None, is: None })
        .step(Step::Guest { name: ONE.to_owned(), time: 1 })
}
