//! `reasonix run`: the CLI for one turn. The session begins when that is asked for, and ends with it.

use std::mem;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::acp::kind_of;
use super::home::Home;
use super::turn::{self, End, Turn};
use super::{Ended, News, Session, Tell};
use crate::shims::budget::TURN_WITHIN;
use crate::shims::program::{Heard, Last, Program, Sent};
use crate::shims::{Ask, Desk, Outcome};

/// What can be asked for in this mode.
pub(crate) const DOES: &[&str] = &["start", "stop", "turn", "cancel", "admit", "describe", "signal"];

/// The turn that is running.
#[derive(Debug)]
struct Running {
    cli: Program,
    turn: Turn,
    end: Option<End>,
    /// What it says last: its own account of the turn.
    result: Option<Value>,
    last: Last,
    /// Whether the user has chosen its model.
    has_model: bool,
}

/// What the CLI says of a model that no plugin and no configuration has.
const UNKNOWN_MODEL: &str = ": unknown model ";

/// A turn of the CLI, which is a process, and a session of its plugins.
#[derive(Debug)]
pub(crate) struct Run {
    home: Home,
    tell: Tell,
    /// The ask that the session begins with, until it is known whether its plugins did.
    starting: Option<u64>,
    running: Option<Running>,
    had_turn: bool,
    is_stopped: bool,
}

impl Run {
    pub(crate) fn start(home: Home, ask: u64, tell: Tell) -> Self {
        Self { home, tell, starting: Some(ask), running: None, had_turn: false, is_stopped: false }
    }

    fn begin(&mut self, ask: &Ask, desk: &mut Desk) {
        if self.running.is_some() {
            return desk.settle(ask.number, Outcome::Refused("a turn is running".into()));
        }
        if mem::replace(&mut self.had_turn, true) {
            let says = "another turn of `reasonix run` is another session";
            return desk.settle(ask.number, Outcome::Cannot(says.into()));
        }
        let words = ["run", "--output-format", "stream-json"];
        let mut command = self.home.command_with_model(&words, ask.text("model"));
        if self.home.denies {
            command.args(["--permission-mode", "read-only"]);
        }
        if let Some(effort) = ask.text("effort") {
            command.args(["--effort", effort]);
        }
        let tell = self.tell.clone();
        let started = Program::start(command, move |heard| tell.say(News::Cli(heard)));
        let mut cli = match started {
            Ok(cli) => cli,
            Err(error) => {
                self.failed_to_start(&error.to_string(), desk);
                return desk.settle(ask.number, Outcome::Failed(error.to_string()));
            }
        };
        // An argument of a program has a bound that a text has not.
        cli.write(ask.words("text").to_owned());
        cli.close();
        let turn = Turn::new(ask.number);
        let has_model = ask.text("model").is_some();
        self.running = Some(Running { cli, turn, end: None, result: None, last: Last::default(), has_model });
    }

    fn line(&mut self, line: &str, desk: &mut Desk) {
        let Some(running) = &mut self.running else { return };
        match serde_json::from_str::<Value>(line) {
            Ok(result) if result["type"] == "result" => running.result = Some(result),
            Ok(event) if event["kind"] == "ask_request" => {
                let question = &event["ask"]["questions"][0];
                let options = question["options"].as_array().into_iter().flatten();
                let labels: Vec<&str> = options.filter_map(|option| option["label"].as_str()).collect();
                let kind = kind_of(&labels, question["multi"] == true);
                let text = question["prompt"].as_str().unwrap_or_default();
                desk.shown("prompt", text, json!({ "kind": kind, "prompt": event["ask"]["id"] }));
            }
            Ok(event) => {
                // It tells of its turn when its plugins are there.
                let is_of_turn = event["kind"].as_str().is_some_and(|kind| kind.starts_with("turn_"));
                if let Some(ask) = self.starting.take_if(|_| is_of_turn) {
                    desk.settle_rested(ask, Outcome::done());
                }
                let end = turn::event(&event, Some(&mut running.turn), &self.home, desk);
                running.end = end.or(running.end.take());
            }
            Err(_) => desk.log(line),
        }
    }

    fn failed_to_start(&mut self, says: &str, desk: &mut Desk) {
        if let Some(ask) = self.starting.take() {
            desk.settle(ask, Outcome::Failed(says.into()));
        }
    }

    fn cannot_start(&mut self, says: &str, desk: &mut Desk) {
        if let Some(ask) = self.starting.take() {
            desk.settle(ask, Outcome::Cannot(says.into()));
        }
    }

    fn ended(&mut self, ended: &Ended, desk: &mut Desk) {
        let Some(running) = mem::take(&mut self.running) else { return };
        match (running.end, running.result) {
            (Some(end), Some(result)) if ended.is_well() == (result["is_error"] == false) => {
                end.settle(running.turn, desk);
            }
            (_, Some(result)) if result["is_error"] == true => {
                let says = result["result"].as_str().unwrap_or_default();
                desk.found("diagnostics", says);
                if running.has_model && says.contains(UNKNOWN_MODEL) {
                    let says = "`reasonix run` does not start with a model that it does not know";
                    self.cannot_start(says, desk);
                }
                self.failed_to_start(says, desk);
                running.turn.failed(says, desk);
            }
            _ => {
                let says = ended.says(&running.last);
                self.failed_to_start(&says, desk);
                running.turn.failed(&says, desk);
            }
        }
    }
}

impl Session for Run {
    fn ask(&mut self, ask: &Ask, desk: &mut Desk) {
        desk.expect(ask.number, TURN_WITHIN);
        match (ask.what.as_str(), &mut self.running) {
            ("turn", _) => self.begin(ask, desk),
            ("cancel", Some(running)) => {
                running.turn.awaited_by.push(ask.number);
                running.cli.signal(Signal::INT);
            }
            ("cancel", None) => desk.settle(ask.number, Outcome::Refused("no turn is running".into())),
            _ => desk.settle(ask.number, super::not_in(&ask.what, "run")),
        }
    }

    fn heard(&mut self, news: News, desk: &mut Desk) {
        match news {
            News::Cli(Heard::Line(line)) => self.line(&line, desk),
            News::Cli(Heard::Log(line)) => {
                if let Some(running) = &mut self.running {
                    running.last.push(&line);
                }
                desk.log(&line);
            }
            News::Cli(Heard::Ended(status)) => self.ended(&Ended(status), desk),
            _ => {}
        }
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        if let Some(running) = &self.running {
            running.cli.signal(Signal::TERM);
        }
    }

    fn signal(&mut self, sent: Sent) -> bool {
        let Some(running) = &self.running else { return false };
        self.is_stopped = true;
        running.cli.sent(sent);
        true
    }

    fn kill(&mut self) {
        if let Some(running) = &self.running {
            running.cli.signal(Signal::KILL);
        }
    }

    fn is_over(&self) -> bool {
        self.is_stopped && self.running.is_none()
    }

    fn over(&mut self, desk: &mut Desk) {
        self.cannot_start("`reasonix run` starts its plugins for a turn, and none was asked for", desk);
    }

    fn home(&self) -> &Home {
        &self.home
    }
}
