//! `reasonix serve`: the CLI as a server on this machine, asked over HTTP, which tells what happens as a stream of events.

use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, io, thread};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::acp::kind_of;
use super::home::Home;
use super::http::{self, Events, Reply};
use super::turn::{self, End, Turn};
use super::{Ended, News, Session, Tell};
use crate::shims::budget::{ASK_WITHIN, LOOK_AGAIN, START_WITHIN, TURN_WITHIN};
use crate::shims::program::{self, Heard, Last, Program, Sent};
use crate::shims::{Ask, Desk, Outcome};

/// What can be asked for in this mode.
pub(crate) const DOES: &[&str] = &[
    "start",
    "stop",
    "turn",
    "cancel",
    "reload",
    "submit",
    "answer",
    "compact",
    "new-session",
    "models",
    "admit",
    "describe",
    "signal",
];

const WORDS: &[&str] = &["serve", "--addr", "127.0.0.1:0", "--auth", "none", "--no-open"];

/// What was asked over HTTP, and waits for its answer.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The input of the turn.
    Submit,
    /// Another model; then comes the turn with this text.
    Model {
        model: String,
        text: String,
    },
    /// Done when it is answered.
    Plain(u64),
    Models(u64),
    /// Nothing waits for the answer: the turn goes on by itself.
    Aside,
}

/// A session of the CLI as a server.
#[derive(Debug)]
pub(crate) struct Serve {
    cli: Program,
    home: Home,
    tell: Tell,
    starting: Option<u64>,
    address: Option<SocketAddr>,
    events: Option<Events>,
    model: Option<String>,
    turn: Option<Turn>,
    /// How the turn ended; it is over when the server is idle again.
    end: Option<End>,
    /// The questions that are open, with what is asked in each.
    prompts: BTreeMap<String, Vec<String>>,
    last: Last,
    /// Why it did not begin, where it does not say so itself.
    failure: Option<String>,
    is_over: Arc<AtomicBool>,
}

impl Serve {
    pub(crate) fn start(home: Home, ask: u64, tell: Tell) -> io::Result<Self> {
        let file = home.folder.with_file_name("port");
        let mut command = home.command_with_model(WORDS, None);
        command.arg("--port-file").arg(&file);
        let told = tell.clone();
        let cli = Program::start(command, move |heard| told.say(News::Cli(heard)))?;
        let (told, is_over) = (tell.clone(), Arc::new(AtomicBool::new(false)));
        let gone = Arc::clone(&is_over);
        program::spawn("port", move || {
            if let Some(bound) = port(&file, &gone) {
                told.say(News::Bound(bound));
            }
        })?;
        Ok(Self {
            cli,
            model: home.model.clone(),
            home,
            tell,
            starting: Some(ask),
            address: None,
            events: None,
            turn: None,
            end: None,
            prompts: BTreeMap::new(),
            last: Last::default(),
            failure: None,
            is_over,
        })
    }

    /// Asks the server on a thread of its own.
    fn call(&self, method: &'static str, path: &'static str, body: Option<Value>, asked: Asked) {
        let (Some(to), tell) = (self.address, self.tell.clone()) else { return };
        let called = program::spawn("call", move || {
            let reply = http::call(to, method, path, body.as_ref(), ASK_WITHIN);
            tell.say(News::Replied(asked, reply.map_err(|error| error.to_string())));
        });
        if let Err(error) = called {
            // What was asked for is late then, and says so.
            self.tell.say(News::Cli(Heard::Log(format!("no thread to ask {path}: {error}"))));
        }
    }

    fn post(&self, path: &'static str, body: Option<Value>, asked: Asked) {
        self.call("POST", path, body, asked);
    }

    /// It can be reached. Its events first, so that none is missed.
    fn bound(&mut self, address: SocketAddr) -> io::Result<()> {
        let tell = self.tell.clone();
        let events = Events::open(address, "/events", move |event| {
            event.is_some_and(|event| tell.say(News::Event(event)))
        })?;
        self.address = Some(address);
        self.events = Some(events);
        Ok(())
    }

    fn event(&mut self, event: &Value, desk: &mut Desk) {
        match event["kind"].as_str().unwrap_or_default() {
            "ask_request" => self.prompt(&event["ask"], desk),
            "approval_request" => {
                let decision = json!({ "id": event["approval"]["id"], "allow": !self.home.denies });
                self.post("/approve", Some(decision), Asked::Aside);
            }
            "runtime_state" => {
                if event["runtimeState"]["phase"] == "idle"
                    && let Some(end) = self.end.take()
                    && let Some(turn) = self.turn.take()
                {
                    self.prompts.clear();
                    end.settle(turn, desk);
                }
            }
            _ => {
                if let Some(end) = turn::event(event, self.turn.as_mut(), &self.home, desk) {
                    self.end = Some(end);
                }
            }
        }
    }

    fn prompt(&mut self, ask: &Value, desk: &mut Desk) {
        let (mut fields, mut keys, mut titles) = (Vec::new(), Vec::new(), Vec::new());
        for question in ask["questions"].as_array().into_iter().flatten() {
            let key = question["id"].as_str().unwrap_or_default();
            let options = question["options"].as_array().into_iter().flatten();
            let labels: Vec<&str> = options.filter_map(|option| option["label"].as_str()).collect();
            let kind = kind_of(&labels, question["multi"] == true);
            fields.push(json!({ "key": key, "kind": kind, "options": labels }));
            keys.push(key.to_owned());
            titles.push(question["prompt"].as_str().unwrap_or_default());
        }
        let id = ask["id"].as_str().unwrap_or_default();
        let kind = fields.first().map_or(Value::Null, |field| field["kind"].clone());
        desk.shown("prompt", &titles.join("\n"), json!({ "kind": kind, "prompt": id, "fields": fields }));
        self.prompts.insert(id.to_owned(), keys);
    }

    fn answer(&mut self, ask: &Ask, desk: &mut Desk) {
        let name = ask.words("prompt");
        let Some(keys) = self.prompts.remove(name) else {
            return desk.settle(ask.number, Outcome::Refused(format!("no prompt {name:?} is open")));
        };
        // None at all is how a user of it cancels.
        let keys = if ask.member("cancelled") == true { Vec::new() } else { keys };
        let answers: Vec<Value> = keys
            .iter()
            .filter_map(|key| {
                let selected = match ask.member("values").get(key)? {
                    Value::Bool(true) => json!(["Yes"]),
                    Value::Bool(false) => json!(["No"]),
                    Value::Array(many) => json!(many),
                    one => json!([one]),
                };
                Some(json!({ "questionId": key, "selected": selected }))
            })
            .collect();
        self.post("/answer", Some(json!({ "id": name, "answers": answers })), Asked::Plain(ask.number));
    }

    fn begin(&mut self, ask: &Ask, desk: &mut Desk) {
        if ask.text("effort").is_some() {
            let says =
                "the server of the CLI does not find the provider of a plugin when an effort is chosen";
            return desk.settle(ask.number, Outcome::Cannot(says.into()));
        }
        if self.turn.is_some() {
            // Its answer could not be told from that of the other.
            return desk.settle(ask.number, Outcome::Refused("a turn is running".into()));
        }
        self.turn = Some(Turn::new(ask.number));
        let text = ask.words("text");
        match ask.text("model").filter(|model| Some(*model) != self.model.as_deref()) {
            Some(model) => {
                let asked = Asked::Model { model: model.to_owned(), text: text.to_owned() };
                self.post("/submit", Some(json!({ "input": format!("/model {model}") })), asked);
            }
            None => self.post("/submit", Some(json!({ "input": text })), Asked::Submit),
        }
    }

    fn cancel(&mut self, ask: &Ask, desk: &mut Desk) {
        let Some(turn) = &mut self.turn else {
            return desk.settle(ask.number, Outcome::Refused("no turn is running".into()));
        };
        turn.awaited_by.push(ask.number);
        self.post("/cancel", None, Asked::Aside);
    }

    fn replied(&mut self, asked: Asked, reply: Result<Reply, String>, desk: &mut Desk) {
        let reply = reply.unwrap_or_else(|says| Reply { status: 0, text: says });
        match asked {
            Asked::Aside if reply.is_done() => {}
            Asked::Aside => desk.log(&reply.text),
            Asked::Models(ask) if reply.is_done() => {
                let listed: Value = serde_json::from_str(&reply.text).unwrap_or_default();
                let models = listed["models"].as_array().into_iter().flatten().map(|model| &model["ref"]);
                desk.settle(ask, Outcome::Done(json!({ "models": models.collect::<Vec<_>>() })));
            }
            Asked::Plain(ask) | Asked::Models(ask) => desk.settle_rested(ask, outcome(&reply)),
            Asked::Model { model, text } if reply.is_done() => {
                self.model = Some(model);
                self.post("/submit", Some(json!({ "input": text })), Asked::Submit);
            }
            // The stream of events tells the rest.
            Asked::Submit if reply.status == 202 => {}
            Asked::Submit | Asked::Model { .. } => {
                let Some(turn) = self.turn.take() else { return };
                match outcome(&reply) {
                    // A command of the server's own.
                    Outcome::Done(_) => turn.done(desk),
                    Outcome::Refused(says) => turn.refused(&says, desk),
                    _ => turn.failed(&reply.text, desk),
                }
            }
        }
    }

    /// Reads its events no more: it would wait ten seconds, when it ends, for whoever does.
    fn leave(&self) {
        if let Some(events) = &self.events {
            events.close();
        }
    }

    fn ended(&mut self, ended: &Ended, desk: &mut Desk) {
        self.is_over.store(true, Ordering::Relaxed);
        let says = self.failure.take().unwrap_or_else(|| ended.says(&self.last));
        if let Some(ask) = self.starting.take() {
            desk.found("diagnostics", &says);
            desk.settle(ask, Outcome::Failed(says.clone()));
        }
        if let Some(turn) = mem::take(&mut self.turn) {
            turn.failed(&says, desk);
        }
    }
}

/// Where the server listens, as soon as it says so in its file; nothing if it is over before.
fn port(file: &Path, is_over: &AtomicBool) -> Option<io::Result<SocketAddr>> {
    let until = Instant::now() + START_WITHIN;
    while !is_over.load(Ordering::Relaxed) {
        // It may be seen before it is written.
        if let Some(address) = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()) {
            return Some(Ok(address));
        }
        if Instant::now() > until {
            return Some(Err(io::ErrorKind::TimedOut.into()));
        }
        thread::sleep(LOOK_AGAIN);
    }
    None
}

fn outcome(reply: &Reply) -> Outcome {
    match reply.status {
        409 => Outcome::Refused(reply.text.clone()),
        _ if reply.is_done() => Outcome::done(),
        _ => Outcome::Failed(reply.text.clone()),
    }
}

impl Session for Serve {
    fn ask(&mut self, ask: &Ask, desk: &mut Desk) {
        let within = if matches!(ask.what.as_str(), "turn" | "cancel") { TURN_WITHIN } else { ASK_WITHIN };
        desk.expect(ask.number, within);
        let plain = Asked::Plain(ask.number);
        match ask.what.as_str() {
            "turn" => self.begin(ask, desk),
            "cancel" => self.cancel(ask, desk),
            "answer" => self.answer(ask, desk),
            "reload" => self.post("/extensions/reload", None, plain),
            "compact" => self.post("/compact", None, plain),
            "new-session" => self.post("/new", None, plain),
            "models" => self.call("GET", "/models", None, Asked::Models(ask.number)),
            "submit" => {
                let form = json!({
                    "pluginId": ask.words("plugin"), "surfaceId": ask.words("surface"), "values": ask.member("values"),
                });
                self.post("/extension-form", Some(form), plain);
            }
            _ => desk.settle(ask.number, super::not_in(&ask.what, "serve")),
        }
    }

    fn heard(&mut self, news: News, desk: &mut Desk) {
        match news {
            News::Cli(Heard::Line(line)) => desk.log(&line),
            News::Bound(bound) => match (bound.and_then(|address| self.bound(address)), self.starting.take())
            {
                (Ok(()), Some(ask)) => desk.settle_rested(ask, Outcome::done()),
                (Err(error), Some(ask)) => {
                    self.failure = Some(format!("the server cannot be reached: {error}"));
                    self.starting = Some(ask);
                    self.stop();
                }
                (_, None) => {}
            },
            News::Cli(Heard::Log(line)) => {
                self.last.push(&line);
                desk.log(&line);
            }
            News::Cli(Heard::Ended(status)) => self.ended(&Ended(status), desk),
            News::Event(event) => self.event(&event, desk),
            News::Replied(asked, reply) => self.replied(asked, reply, desk),
        }
    }

    fn stop(&mut self) {
        self.leave();
        self.cli.close();
        self.cli.signal(Signal::TERM);
    }

    fn signal(&mut self, sent: Sent) -> bool {
        self.leave();
        self.cli.sent(sent);
        true
    }

    fn kill(&mut self) {
        self.cli.signal(Signal::KILL);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn home(&self) -> &Home {
        &self.home
    }
}
