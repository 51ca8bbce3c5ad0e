//! What binds a host: rows, and how our guests and the driver bring them up.
//!
//! Most scripts begin a session with one guest of ours, called [`ONE`], let the host take a turn with it, and end the
//! session. What only the host knows, its driver tells: what came of what it was asked for, and what it showed.

mod content;
mod envelope;
mod errors;
mod forbidden;
mod interception;
mod lifecycle;
mod manifest;
mod members;
mod misplaced;
mod payloads;
mod processes;
mod providers;
mod responses;
mod rulings;
mod security;
mod signals;
mod slots;
mod streams;
mod transport;
mod ui;

use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::play::Casting;
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::sidecar::Sidecar;
use sidecert_proto::requirement::{Accepts, Basis, Requirement, Seen};
use sidecert_proto::script::{
    Pattern, Process, Reaction, Reply, Script, ScriptDef, Setting, Step, Template, Within,
};
use sidecert_proto::verdict::{Sight, Why};

pub(super) const SECTIONS: [&[Requirement]; 18] = [
    transport::ROWS,
    envelope::ROWS,
    members::ROWS,
    lifecycle::ROWS,
    processes::ROWS,
    signals::ROWS,
    manifest::ROWS,
    content::ROWS,
    interception::ROWS,
    forbidden::ROWS,
    misplaced::ROWS,
    payloads::ROWS,
    slots::ROWS,
    providers::ROWS,
    streams::ROWS,
    ui::ROWS,
    errors::ROWS,
    security::ROWS,
];

/// The guest of ours that most scripts have.
const ONE: &str = "one";
/// The label of a turn.
const TURN: &str = "turn";
/// The label of the ask that ends a session.
const STOP: &str = "stop";

/// Done, says the driver.
const DONE: Seen = Seen("it was done");
/// Blocked by a guest, says the driver.
const BLOCKED: Seen = Seen("it was blocked");
/// Failed, says the driver.
const FAILED: Seen = Seen("it failed, and the user was told");
/// The host does not do or take it, says the driver.
const REFUSED: Seen = Seen("the host refused it");

/// The shim is greeted, which every process begins with.
static GREETING: ScriptDef = ScriptDef {
    name: "greeting",
    process: Process::Tour,
    needs: &[],
    build: |_| Script::new("greeting").step(Step::Greet),
};
/// The shim's input is closed, which every process ends with.
static FAREWELL: ScriptDef = ScriptDef {
    name: "farewell",
    process: Process::Tour,
    needs: &[],
    build: |_| Script::new("farewell").step(Step::Close).step(Step::Exit),
};
/// A session with one guest that steps in nowhere, and one turn.
static PLAIN_TURN: ScriptDef = ScriptDef {
    name: "plain-turn",
    process: Process::Tour,
    needs: &[],
    build: |setting| stop(turn(session("plain-turn", setting, &[Plugin::new(setting, ONE)]), TURN, "Hello")),
};

/// What is played before a host.
pub(super) static CASTING: Casting = Casting {
    opening: &GREETING,
    closing: &FAREWELL,
    part: |setting, name| Box::new(Sidecar::new(setting, name)),
};

// ---- who says so ----

/// Allowed by the specification.
const fn specified(seen: Seen) -> Accepts {
    Accepts { seen, by: Basis::Specified }
}

/// Seen of the released host.
const fn observed(seen: Seen) -> Accepts {
    Accepts { seen, by: super::RELEASE }
}

// ---- scripts ----

/// Begins a session with these plugins; what follows is about the first.
fn session(name: &str, setting: &Setting<'_>, plugins: &[Plugin]) -> Script {
    session_with(name, setting, plugins, "")
}

/// The same, with more members in the ask, each with the comma before it.
fn session_with(name: &str, setting: &Setting<'_>, plugins: &[Plugin], more: &str) -> Script {
    Script::new(name).step(plugin::start(setting, plugins, more)).step(outcome(START)).step(guest(ONE))
}

/// What follows is about this guest of ours.
fn guest(name: &str) -> Step {
    Step::Guest { name: name.to_owned(), time: 1 }
}

fn outcome(of: &str) -> Step {
    Step::Outcome { of: of.to_owned(), within: None, is: None }
}

/// Asks the driver for something; `what` is one JSON object.
fn ask(label: &str, what: &str) -> Step {
    Step::Ask { label: label.to_owned(), what: Template::new(what) }
}

/// Lets the user say something, and does not wait for what comes of it.
fn say(script: Script, label: &str, text: &str) -> Script {
    script.step(ask(label, &format!(r#"{{"do":"turn","text":{}}}"#, quoted(text))))
}

/// Lets the user say something, and waits for what comes of it.
fn turn(script: Script, label: &str, text: &str) -> Script {
    say(script, label, text).step(outcome(label))
}

/// Ends the session.
fn stop(script: Script) -> Script {
    script.step(ask(STOP, r#"{"do":"stop"}"#)).step(outcome(STOP))
}

/// An intercept at this point, as a pattern that captures its id.
fn intercept(at: &str) -> String {
    let method = contract::INTERCEPT;
    format!(r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"event":"{at}"}}}}"#)
}

/// A request for this method, as a pattern that captures its id.
fn request(method: &str) -> String {
    format!(r#"{{"id":{{"$capture":"id"}},"method":"{method}"}}"#)
}

/// The opening of a stream, as a pattern that captures its id and the stream's.
fn stream_open() -> String {
    let method = contract::STREAM_OPEN;
    format!(
        r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"streamId":{{"$capture":"stream"}}}}}}"#
    )
}

fn reacts(mut script: Script, when: &str, reply: Reply) -> Script {
    let when = Pattern::of(when).unwrap_or(Pattern::Absent);
    script.reactions.push(Reaction { when, reply, times: None, guest: None });
    script
}

/// Waits for a frame of the host on the guest's link.
fn awaits(when: &str) -> Step {
    Step::Await { frame: Pattern::of(when).unwrap_or(Pattern::Absent), within: Within::Answer }
}

// ---- sights ----

/// What came of an ask.
fn came_of(exchange: &Exchange<'_>, label: &str) -> Sight {
    let Some((at, outcome)) = exchange.outcome(label) else { return never_came(exchange, label) };
    let names = [("done", DONE), ("blocked", BLOCKED), ("failed", FAILED), ("refused", REFUSED)];
    match names.into_iter().find(|(name, _)| outcome.get(name).is_some()) {
        Some((_, seen)) => Sight::Saw(seen, at),
        None => Sight::SawOther { at, actual: format!("the outcome {}", outcome.raw()) },
    }
}

/// What an outcome says to the user, or shows of an answer.
fn says(outcome: Node<'_>) -> Option<std::borrow::Cow<'_, str>> {
    ["text", "blocked", "failed", "refused"].into_iter().find_map(|name| outcome.get(name)?.as_str())
}

fn never_came(exchange: &Exchange<'_>, label: &str) -> Sight {
    Sight::Undecided(match exchange.cut {
        Some(cut) => Why::CutShort(cut.to_owned()),
        None => Why::NotProvoked(format!("nothing here was asked as {label:?}").into()),
    })
}
