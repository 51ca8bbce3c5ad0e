//! `reasonix run`: the CLI once for each turn. Between two turns there is nothing but the home.

use std::mem;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::acp::kind_of;
use super::home::Home;
use super::turn::{self, End, Turn};
use super::{Ended, News, Session, Tell};
use crate::shims::budget::TURN_WITHIN;
use crate::shims::program::{Heard, Last, Program};
use crate::shims::{Ask, Desk, Outcome};

/// What can be asked for in this mode.
pub(crate) const DOES: &[&str] = &["start", "stop", "turn", "cancel", "admit", "describe"];

/// The turn that is running.
#[derive(Debug)]
struct Running {
    cli: Program,
    turn: Turn,
    end: Option<End>,
    /// What it says last: its own account of the turn.
    result: Option<Value>,
    last: Last,
}

/// Turns of the CLI, each a process of its own.
#[derive(Debug)]
pub(crate) struct Run {
    home: Home,
    tell: Tell,
    running: Option<Running>,
    is_stopped: bool,
}

impl Run {
    pub(crate) fn start(home: Home, ask: u64, tell: Tell, desk: &mut Desk) -> Self {
        desk.settle(ask, Outcome::done());
        Self { home, tell, running: None, is_stopped: false }
    }

    fn begin(&mut self, ask: &Ask, desk: &mut Desk) {
        if self.running.is_some() {
            return desk.settle(ask.number, Outcome::Refused("a turn is running".into()));
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
            Err(error) => return desk.settle(ask.number, Outcome::Failed(error.to_string())),
        };
        // An argument of a program has a bound that a text has not.
        cli.write(ask.words("text").to_owned());
        cli.close();
        let turn = Turn::new(ask.number);
        self.running = Some(Running { cli, turn, end: None, result: None, last: Last::default() });
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
                let end = turn::event(&event, Some(&mut running.turn), &self.home, desk);
                running.end = end.or(running.end.take());
            }
            Err(_) => desk.log(line),
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
                running.turn.failed(says, desk);
            }
            _ => running.turn.failed(&ended.says(&running.last), desk),
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

    fn kill(&mut self) {
        if let Some(running) = &self.running {
            running.cli.signal(Signal::KILL);
        }
    }

    fn is_over(&self) -> bool {
        self.is_stopped && self.running.is_none()
    }

    fn home(&self) -> &Home {
        &self.home
    }
}
