//! A stage for the reference host: it speaks the shim, plays every process that the host starts, and lets time pass.
//!
//! Every frame that the host writes to a guest is held to the contract here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::{Manners, ReferenceHost};
use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::json::Tape;
use sidecert_proto::machine::{Action, Exited, Input, Launch, LinkId, Machine, Micros};
use sidecert_proto::reasonix::contract as names;

/// A millisecond.
pub(crate) const MILLI: Micros = 1_000;
/// How long a byte takes from one to the other.
const LATENCY: Micros = 50;
/// When a test is given up, in virtual time.
const TIME_MOST: Micros = 3_600_000 * MILLI;

/// What a guest does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes a line.
    Say(String),
    /// Writes these bytes.
    Bytes(Vec<u8>),
    Stderr(String),
    CloseOutput,
    Exit(i32),
    /// Does this so many milliseconds later.
    After(u64, Box<Act>),
}

/// The answer to a frame.
pub(crate) fn answer(frame: &Value, result: &Value) -> Vec<Act> {
    vec![Act::Say(json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string())]
}

/// An error under the id of a frame.
pub(crate) fn error(frame: &Value, error: &Value) -> Vec<Act> {
    vec![Act::Say(json!({"jsonrpc": "2.0", "id": frame["id"], "error": error}).to_string())]
}

/// A request or notification of a guest.
pub(crate) fn say(frame: &Value) -> Act {
    let mut frame = frame.clone();
    frame["jsonrpc"] = "2.0".into();
    Act::Say(frame.to_string())
}

pub(crate) fn after(millis: u64, act: Act) -> Act {
    Act::After(millis, Box::new(act))
}

/// A chunk of the stream that `open` opens.
pub(crate) fn chunk(open: &Value, seq: u64, chunk: &Value) -> Act {
    let id = &open["params"]["streamId"];
    let params = json!({"streamId": id, "seq": seq, "chunk": chunk});
    say(&json!({"method": names::STREAM_CHUNK, "params": params}))
}

pub(crate) fn words(open: &Value, seq: u64, text: &str) -> Act {
    chunk(open, seq, &json!({"type": "text", "text": text}))
}

/// The end of the stream that `open` opens.
pub(crate) fn end(open: &Value, last: u64) -> Act {
    let params = json!({"streamId": open["params"]["streamId"], "lastSeq": last});
    say(&json!({"method": names::STREAM_END, "params": params}))
}

type Rule = Box<dyn FnMut(&Value) -> Option<Vec<Act>>>;

/// A guest whose every move a test can decide; what it does not decide is done politely.
#[derive(Default)]
pub(crate) struct Puppet {
    rules: Vec<Rule>,
    /// Whether it goes on when its input ends.
    stays: bool,
    /// What it does first.
    first: Vec<Act>,
    providers: Vec<String>,
    subscriptions: Vec<String>,
    actions: Vec<String>,
}

impl Puppet {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Does this about every frame of a method; `None` leaves it to what comes next.
    #[must_use]
    pub(crate) fn on(
        mut self,
        method: &'static str,
        mut does: impl FnMut(&Value) -> Option<Vec<Act>> + 'static,
    ) -> Self {
        self.rules.push(Box::new(move |frame| (frame["method"] == method).then(|| does(frame)).flatten()));
        self
    }

    /// Rules so at a point.
    #[must_use]
    pub(crate) fn at(self, point: &'static str, ruling: Value) -> Self {
        self.on(names::INTERCEPT, move |frame| {
            (frame["params"]["event"] == point).then(|| answer(frame, &ruling))
        })
    }

    /// Answers `initialize` so.
    #[must_use]
    pub(crate) fn greets(self, more: Value) -> Self {
        self.on(names::INITIALIZE, move |frame| Some(answer(frame, &greeting(frame, &more))))
    }

    #[must_use]
    pub(crate) fn with_models(mut self, refs: &[&str]) -> Self {
        self.providers = refs.iter().map(|it| (*it).to_owned()).collect();
        self
    }

    #[must_use]
    pub(crate) fn with_actions(mut self, actions: &[&str]) -> Self {
        self.actions = actions.iter().map(|it| (*it).to_owned()).collect();
        self
    }

    /// What its model says: this text.
    #[must_use]
    pub(crate) fn answering(self, text: &'static str) -> Self {
        self.streaming(move |open| vec![words(open, 1, text), end(open, 1)])
    }

    /// What it does once a stream is open.
    #[must_use]
    pub(crate) fn streaming(self, mut does: impl FnMut(&Value) -> Vec<Act> + 'static) -> Self {
        self.on(names::STREAM_OPEN, move |frame| {
            let mut acts = answer(frame, &json!({"accepted": true}));
            acts.extend(does(frame));
            Some(acts)
        })
    }

    #[must_use]
    pub(crate) fn staying(mut self) -> Self {
        self.stays = true;
        self
    }

    #[must_use]
    pub(crate) fn first(mut self, acts: Vec<Act>) -> Self {
        self.first = acts;
        self
    }

    fn hear(&mut self, frame: &Value) -> Vec<Act> {
        for rule in self.rules.iter_mut().rev() {
            if let Some(acts) = rule(frame) {
                return acts;
            }
        }
        let refs: Vec<Value> = self.providers.iter().map(|it| json!({"ref": it, "model": "m"})).collect();
        match frame["method"].as_str().unwrap_or_default() {
            names::INITIALIZE => {
                let actions: Vec<Value> = self.actions.iter().map(|it| json!({"actionId": it})).collect();
                let more =
                    json!({"providers": refs, "uiActions": actions, "subscriptions": self.subscriptions});
                answer(frame, &greeting(frame, &more))
            }
            names::INTERCEPT => answer(frame, &json!({"decision": "continue"})),
            names::PROVIDER_CATALOG => answer(frame, &json!({ "providers": refs })),
            names::STREAM_OPEN => answer(frame, &json!({"accepted": true})),
            names::STREAM_CANCEL => answer(frame, &json!({"cancelled": true})),
            names::SHUTDOWN | names::UI_ACTION | names::UI_SUBMIT => {
                answer(frame, &json!({"accepted": true}))
            }
            _ => Vec::new(),
        }
    }
}

fn greeting(frame: &Value, more: &Value) -> Value {
    let version = &frame["params"]["protocolVersion"];
    let mut result =
        json!({"protocolVersion": version, "name": "puppet", "version": "1", "stateSchemaVersion": 0});
    for (name, value) in more.as_object().into_iter().flatten() {
        let empty = value.as_array().is_some_and(Vec::is_empty);
        if value.is_null() {
            result.as_object_mut().unwrap().remove(name);
        } else if !empty {
            result[name] = value.clone();
        }
    }
    result
}

/// Who plays a process.
pub(crate) enum Player<'c> {
    Puppet(Puppet),
    Machine(Box<dyn Machine + 'c>),
    /// Nobody: it cannot be started.
    None(&'static str),
}

impl From<Puppet> for Player<'_> {
    fn from(puppet: Puppet) -> Self {
        Self::Puppet(puppet)
    }
}

/// A process on the stage.
struct Seat<'c> {
    plugin: String,
    player: Player<'c>,
    unread: Vec<u8>,
    /// What it has not read because nobody reads.
    held: Vec<Vec<u8>>,
    /// The methods of its requests, by id as text.
    asked: BTreeMap<String, String>,
    ids: BTreeSet<String>,
    alive: bool,
}

/// What is on its way.
#[derive(Debug)]
enum Parcel {
    ToGuest(Vec<u8>),
    CloseGuest,
    Act(Act),
    FromGuest(Vec<u8>),
}

/// A frame that the host wrote to a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) plugin: String,
    pub(crate) frame: Value,
    pub(crate) at: Micros,
}

impl Written {
    /// The method, and the point if it has one.
    pub(crate) fn name(&self) -> String {
        let method = self.frame["method"].as_str().unwrap_or("answer");
        let method = method.strip_prefix("extension/").unwrap_or(method);
        match self.frame["params"]["event"].as_str() {
            Some(point) => format!("{method} {point}"),
            None => method.to_owned(),
        }
    }
}

type Cast<'c> = Box<dyn FnMut() -> Player<'c> + 'c>;

/// The stage.
pub(crate) struct Stage<'c> {
    contract: &'c Contract,
    host: ReferenceHost<'c>,
    pub(crate) now: Micros,
    seats: BTreeMap<LinkId, Seat<'c>>,
    cast: BTreeMap<String, Cast<'c>>,
    parcels: Vec<(Micros, u64, LinkId, Parcel)>,
    sent: u64,
    asks: u64,
    /// What the host wrote on link 0.
    pub(crate) lines: Vec<Value>,
    /// When it wrote each of these.
    pub(crate) said_at: Vec<Micros>,
    pub(crate) written: Vec<Written>,
    pub(crate) launched: Vec<(LinkId, Launch)>,
    pub(crate) killed: Vec<LinkId>,
    pub(crate) exited: Option<u8>,
    /// Whether guests read.
    reading: bool,
    /// Whether what the host writes is held to the contract.
    pub(crate) checks: bool,
}

impl<'c> Stage<'c> {
    pub(crate) fn new(contract: &'c Contract, manners: Manners) -> Self {
        let mut stage = Self {
            contract,
            host: ReferenceHost::new(contract, manners),
            now: 0,
            seats: BTreeMap::new(),
            cast: BTreeMap::new(),
            parcels: Vec::new(),
            sent: 0,
            asks: 0,
            lines: Vec::new(),
            said_at: Vec::new(),
            written: Vec::new(),
            launched: Vec::new(),
            killed: Vec::new(),
            exited: None,
            reading: true,
            checks: true,
        };
        stage.shim(&json!({"shim": 1, "suite": "reasonix", "folder": "/host"}));
        assert_eq!(stage.lines.len(), 1);
        stage
    }

    /// Who plays a plugin, each time that it is started.
    pub(crate) fn casts<P: Into<Player<'c>>>(
        &mut self,
        plugin: &str,
        mut player: impl FnMut() -> P + 'c,
    ) -> &mut Self {
        self.cast.insert(plugin.to_owned(), Box::new(move || player().into()));
        self
    }

    fn shim(&mut self, line: &Value) {
        self.host.handle(0, Input::Bytes(format!("{line}\n").as_bytes()), self.now);
        self.drain();
    }

    /// Ends the input of link 0.
    pub(crate) fn close(&mut self) {
        self.host.handle(0, Input::Eof, self.now);
        self.drain();
        self.run(|stage| stage.exited.is_some());
    }

    /// Asks the host, and gives the number of that.
    pub(crate) fn ask(&mut self, mut ask: Value) -> u64 {
        self.asks += 1;
        ask["ask"] = self.asks.into();
        self.shim(&ask);
        self.asks
    }

    /// Asks the host, and waits for the outcome.
    pub(crate) fn does(&mut self, ask: Value) -> Value {
        let number = self.ask(ask);
        self.outcome(number)
    }

    pub(crate) fn outcome(&mut self, number: u64) -> Value {
        self.run(|stage| stage.found(number).is_some());
        // What was written before that arrives.
        self.wait(1);
        self.found(number).unwrap()
    }

    pub(crate) fn found(&self, number: u64) -> Option<Value> {
        self.lines.iter().find(|line| line["outcome"] == number).cloned()
    }

    /// Starts these plugins; each is a runtime block by name.
    pub(crate) fn start(&mut self, plugins: &[(&str, Value)]) -> Value {
        let entries: Vec<Value> =
            plugins.iter().map(|(name, runtime)| plugin(self.contract, name, runtime)).collect();
        self.does(json!({"do": "start", "workspace": "/work", "plugins": entries}))
    }

    pub(crate) fn turn(&mut self, text: &str) -> Value {
        self.does(json!({"do": "turn", "text": text}))
    }

    /// Lets this much time pass.
    pub(crate) fn wait(&mut self, millis: u64) {
        let until = self.now + millis * MILLI;
        while self.step(until) {}
        self.now = until;
    }

    /// Lets a guest do something of itself.
    pub(crate) fn act(&mut self, link: LinkId, act: Act) {
        self.send(LATENCY, link, Parcel::Act(act));
    }

    /// Lets guests read, or not.
    pub(crate) fn reads(&mut self, reading: bool) {
        self.reading = reading;
        let held = self.seats.iter_mut().map(|(link, seat)| (*link, std::mem::take(&mut seat.held)));
        for (link, parcels) in held.collect::<Vec<_>>() {
            for bytes in parcels {
                self.send(0, link, Parcel::ToGuest(bytes));
            }
        }
    }

    /// The link of the latest process of a plugin.
    pub(crate) fn link(&self, plugin: &str) -> LinkId {
        *self.seats.iter().rfind(|(_, seat)| seat.plugin == plugin).unwrap().0
    }

    /// What was written to a plugin, answers aside.
    pub(crate) fn heard(&self, plugin: &str) -> Vec<String> {
        let of = self.written.iter().filter(|it| it.plugin == plugin);
        of.map(Written::name).filter(|name| name != "answer").collect()
    }

    /// Who was asked what, in order.
    pub(crate) fn intercepts(&self, point: &str) -> Vec<&Written> {
        let name = format!("intercept {point}");
        self.written.iter().filter(|it| it.name() == name).collect()
    }

    pub(crate) fn events(&self, point: &str) -> Vec<&Written> {
        let name = format!("event {point}");
        self.written.iter().filter(|it| it.name() == name).collect()
    }

    pub(crate) fn calls(&self, method: &str) -> Vec<&Written> {
        self.written.iter().filter(|it| it.frame["method"] == method).collect()
    }

    /// What was answered to the requests of guests.
    pub(crate) fn answers(&self) -> Vec<&Value> {
        self.written.iter().map(|it| &it.frame).filter(|it| it["method"].is_null()).collect()
    }

    /// What was shown in this way.
    pub(crate) fn shown(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().map(|line| &line["shown"]).filter(|it| it["as"] == kind).collect()
    }

    pub(crate) fn found_in(&self, place: &str) -> Vec<&str> {
        let found = self.lines.iter().map(|line| &line["found"]).filter(|it| it["in"] == place);
        found.filter_map(|it| it["text"].as_str()).collect()
    }

    fn send(&mut self, latency: Micros, link: LinkId, parcel: Parcel) {
        self.sent += 1;
        self.parcels.push((self.now + latency, self.sent, link, parcel));
    }

    /// Runs until that holds.
    pub(crate) fn run(&mut self, until: impl Fn(&Self) -> bool) {
        while !until(self) {
            assert!(self.step(TIME_MOST), "nothing comes of it: {:?}", self.lines.last());
        }
    }

    /// Lets the next thing happen, if it happens until then.
    fn step(&mut self, until: Micros) -> bool {
        let next = self.parcels.iter().enumerate().min_by_key(|(_, it)| (it.0, it.1));
        let next = next.map(|(at, it)| (at, it.0));
        let machines = self.seats.values().filter_map(|seat| match &seat.player {
            Player::Machine(machine) if seat.alive => machine.deadline(),
            _ => None,
        });
        let deadline = self.host.deadline().into_iter().chain(machines).min();
        let when = deadline.into_iter().chain(next.map(|(_, when)| when)).min();
        let Some(when) = when.filter(|when| *when <= until) else { return false };
        self.now = self.now.max(when);
        match next {
            Some((at, due)) if due == when => {
                let (_, _, link, parcel) = self.parcels.remove(at);
                self.deliver(link, parcel);
            }
            _ => self.tick(),
        }
        self.drain();
        true
    }

    fn tick(&mut self) {
        self.host.handle(0, Input::Tick, self.now);
        let links: Vec<LinkId> = self.seats.keys().copied().collect();
        for link in links {
            if let Some(Seat { player: Player::Machine(machine), alive: true, .. }) =
                self.seats.get_mut(&link)
                && machine.deadline().is_some_and(|when| when <= self.now)
            {
                machine.handle(0, Input::Tick, self.now);
            }
            self.drain_machine(link);
        }
    }

    fn drain(&mut self) {
        while let Some(action) = self.host.poll(self.now) {
            match action {
                Action::Write { link: 0, bytes, .. } => {
                    let line = std::str::from_utf8(&bytes).unwrap().strip_suffix('\n').unwrap();
                    self.lines.push(serde_json::from_str(line).unwrap());
                    self.said_at.push(self.now);
                }
                Action::Write { link, bytes, .. } => {
                    self.send(LATENCY, link, Parcel::ToGuest(bytes.to_vec()));
                }
                Action::Close { link } => self.send(LATENCY, link, Parcel::CloseGuest),
                Action::Kill { link } => {
                    self.killed.push(link);
                    self.send(LATENCY, link, Parcel::Act(Act::Exit(-9)));
                }
                Action::Launch { link, launch } => self.launch(link, launch),
                Action::Exit(code) => self.exited = Some(code),
                Action::Reading { .. } | Action::LeaveErrors { .. } | Action::Tell { .. } | Action::Done => {}
            }
        }
    }

    fn launch(&mut self, link: LinkId, launch: Launch) {
        assert_eq!(link, self.launched.len() + 1, "links count up");
        let name = launch.env.iter().rfind(|(name, _)| name == names::variable::NAME).unwrap().1.clone();
        self.launched.push((link, launch));
        let mut player = self.cast.get_mut(&name).map_or(Player::Puppet(Puppet::new()), |cast| cast());
        let first = match &mut player {
            Player::Puppet(puppet) => std::mem::take(&mut puppet.first),
            Player::Machine(_) => Vec::new(),
            Player::None(why) => return self.host.handle(link, Input::NotLaunched(why), self.now),
        };
        let (asked, ids) = (BTreeMap::new(), BTreeSet::new());
        self.seats.insert(
            link,
            Seat { plugin: name, player, unread: Vec::new(), held: Vec::new(), asked, ids, alive: true },
        );
        for act in first {
            self.act(link, act);
        }
        self.drain_machine(link);
    }

    fn deliver(&mut self, link: LinkId, parcel: Parcel) {
        let Some(seat) = self.seats.get_mut(&link).filter(|seat| seat.alive) else { return };
        match parcel {
            Parcel::ToGuest(bytes) if !self.reading => seat.held.push(bytes),
            Parcel::ToGuest(bytes) => {
                seat.unread.extend(&bytes);
                self.host.handle(link, Input::Wrote(bytes.len()), self.now);
                self.read(link, &bytes);
            }
            Parcel::CloseGuest => match &mut seat.player {
                Player::Puppet(puppet) if !puppet.stays => self.done(link, Act::Exit(0)),
                Player::Machine(machine) => {
                    machine.handle(0, Input::Eof, self.now);
                    self.drain_machine(link);
                }
                _ => {}
            },
            Parcel::Act(act) => self.done(link, act),
            Parcel::FromGuest(bytes) => {
                note_requests(seat, &bytes);
                self.host.handle(link, Input::Bytes(&bytes), self.now);
            }
        }
    }

    /// A guest does something.
    fn done(&mut self, link: LinkId, act: Act) {
        let seat = self.seats.get_mut(&link).unwrap();
        match act {
            Act::Say(line) => self.send(LATENCY, link, Parcel::FromGuest(format!("{line}\n").into_bytes())),
            Act::Bytes(bytes) => self.send(LATENCY, link, Parcel::FromGuest(bytes)),
            Act::After(millis, act) => self.send(millis * MILLI, link, Parcel::Act(*act)),
            Act::Stderr(text) => self.host.handle(link, Input::Stderr(text.as_bytes()), self.now),
            Act::CloseOutput => self.host.handle(link, Input::Eof, self.now),
            Act::Exit(code) => {
                seat.alive = false;
                self.host.handle(link, Input::Eof, self.now);
                self.drain();
                let exited = if code < 0 { Exited::Signal(-code) } else { Exited::Code(code) };
                self.host.handle(link, Input::Exited(exited), self.now);
            }
        }
    }

    fn read(&mut self, link: LinkId, bytes: &[u8]) {
        let seat = self.seats.get_mut(&link).unwrap();
        let mut lines = Vec::new();
        while let Some(end) = seat.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = seat.unread.drain(..=end).collect();
            lines.push(line[..end].to_vec());
        }
        for line in &lines {
            let seat = self.seats.get_mut(&link).unwrap();
            if self.checks {
                check(self.contract, seat, line);
            }
            let frame: Value = serde_json::from_slice(line).unwrap();
            let plugin = seat.plugin.clone();
            let acts = match &mut seat.player {
                Player::Puppet(puppet) => puppet.hear(&frame),
                _ => Vec::new(),
            };
            self.written.push(Written { plugin, frame, at: self.now });
            for act in acts {
                match act {
                    // Not before what was said on the way to it arrives.
                    Act::Exit(_) | Act::CloseOutput => self.act(link, act),
                    act => self.done(link, act),
                }
            }
        }
        if let Some(Seat { player: Player::Machine(machine), .. }) = self.seats.get_mut(&link) {
            machine.handle(0, Input::Bytes(bytes), self.now);
        }
        self.drain_machine(link);
    }

    fn drain_machine(&mut self, link: LinkId) {
        while let Some(Seat { player: Player::Machine(machine), alive: true, .. }) = self.seats.get_mut(&link)
            && let Some(action) = machine.poll(self.now)
        {
            match action {
                Action::Write { bytes, .. } => self.done(link, Act::Bytes(bytes.to_vec())),
                Action::Exit(code) => self.send(LATENCY, link, Parcel::Act(Act::Exit(code.into()))),
                _ => {}
            }
        }
    }
}

fn note_requests(seat: &mut Seat<'_>, bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(tape) = Tape::scan(line) else { continue };
        let member = |name: &str| tape.root().get(name);
        if let (Some(id), Some(method)) = (member("id"), member("method").and_then(|it| it.as_str())) {
            seat.asked.insert(id.raw().to_owned(), method.into_owned());
        }
    }
}

/// Holds a frame of the host to the contract.
fn check(contract: &Contract, seat: &mut Seat<'_>, line: &[u8]) {
    let text = String::from_utf8(line.to_vec()).unwrap();
    let tape = Tape::scan(line).unwrap_or_else(|_| panic!("no JSON: {text}"));
    let root = tape.root();
    assert_eq!(root.get("jsonrpc").and_then(|it| it.as_str()).as_deref(), Some("2.0"), "{text}");
    let id = root.get("id").map(|it| it.raw().to_owned());
    if let Some(method) = root.get("method").and_then(|it| it.as_str()) {
        let known = contract.method(&method).unwrap_or_else(|| panic!("no such method: {text}"));
        assert_eq!(known.from, Side::Host, "{text}");
        let params = root.get("params").unwrap_or_else(|| panic!("no params: {text}"));
        let fault = contract.params_validator(&method).and_then(|it| it.check(params));
        assert_eq!(fault, None, "{}", &text[..text.len().min(2_000)]);
        if let Some(id) = id {
            assert!(
                id.parse::<i64>().is_ok() && seat.ids.insert(id),
                "an id that is none, or not new: {text}"
            );
        }
        return;
    }
    let id = id.unwrap_or_else(|| panic!("an answer without id: {text}"));
    if let Some(result) = root.get("result") {
        let method = seat.asked.get(&id).unwrap_or_else(|| panic!("an answer to nothing: {text}"));
        let fault = contract.result_validator(method).and_then(|it| it.check(result));
        assert_eq!(fault, None, "{text}");
    } else {
        let error = root.get("error").unwrap_or_else(|| panic!("neither result nor error: {text}"));
        let reason = error.get("data").and_then(|it| it.get("reason")).and_then(|it| it.as_str());
        if let Some(reason) = reason {
            let known = contract.reason(&reason).unwrap_or_else(|| panic!("no such reason: {text}"));
            assert_eq!(error.get("code").and_then(|it| it.as_i64()), Some(known.code), "{text}");
        }
    }
}

/// A plugin as `start` takes it.
pub(crate) fn plugin(contract: &Contract, name: &str, runtime: &Value) -> Value {
    let version = format!("reasonix.io/plugin/v{}", contract.major);
    let mut manifest = json!({
        "apiVersion": version, "name": name, "version": "1.0.0", "description": name, "contributes": {},
        "runtime": {"command": "/bin/guest"},
    });
    for (member, value) in runtime.as_object().into_iter().flatten() {
        let stands_beside = ["provides", "requires"].contains(&member.as_str());
        let block = if stands_beside { &mut manifest } else { &mut manifest["runtime"] };
        block[member] = value.clone();
    }
    json!({"name": name, "enabled": true, "manifest": manifest})
}

/// A runtime block that intercepts everything and has every capability.
pub(crate) fn everything(contract: &Contract) -> Value {
    json!({
        "intercepts": contract.events,
        "capabilities": ["interceptors", "strategies", "providers", "ui"],
    })
}

/// A runtime block that intercepts this.
pub(crate) fn intercepting(points: &[&str]) -> Value {
    json!({"intercepts": points, "capabilities": ["interceptors"]})
}

/// A plugin named `model` with one model that says `text`, and its runtime block.
pub(crate) fn with_model(stage: &mut Stage<'_>, text: &'static str) -> (&'static str, Value) {
    stage.casts("model", move || Puppet::new().with_models(&["plugin/model/p/m"]).answering(text));
    ("model", json!({"capabilities": ["providers"]}))
}

pub(crate) fn v1() -> &'static Contract {
    names::v1()
}

pub(crate) fn v2() -> &'static Contract {
    names::v2()
}

/// A stage of version 1 with a host that conforms.
pub(crate) fn stage() -> Stage<'static> {
    Stage::new(v1(), Manners::default())
}
