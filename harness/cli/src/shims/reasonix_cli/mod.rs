//! The shim of the released Reasonix CLI, which is told what to do in one of three ways: `acp`, `run` or `serve`.
//!
//! One thread looks at everything that is heard, in its order; others only wait. Every session has a home of its own,
//! and when this returns, nothing that was started still runs.

mod acp;
mod home;
mod http;
mod plugin;
mod run;
mod serve;
mod stored;
mod turn;

use std::fmt::Debug;
use std::fs;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::path::{self, Path, PathBuf};
use std::process::{self, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Value, json};
use sidecert_runner::{Stop, offspring};
use tokio::sync::watch;

use self::home::{Home, Plugin};
use super::budget::{
    ASK_WITHIN, BESIDE_WITHIN, END_WITHIN, HEARD_MAX, KILLED_WITHIN, RUN_WITHIN, SIGNALLED_WITHIN,
    START_WITHIN, STOP_WITHIN, STORED_TOLD_BYTES_MAX,
};
use super::program::{self, Heard, Last, Program, Sent};
use super::{Ask, Desk, Outcome, VERSION, cut, spoken_to};
use crate::exit;

/// In which way the CLI is told what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Acp,
    Run,
    Serve,
}

impl Mode {
    /// The words that it does.
    pub(crate) fn does(self) -> &'static [&'static str] {
        match self {
            Self::Acp => acp::DOES,
            Self::Run => run::DOES,
            Self::Serve => serve::DOES,
        }
    }

    /// Whether a session is one turn.
    pub(crate) fn is_per_turn(self) -> bool {
        self == Self::Run
    }
}

/// What is heard.
#[derive(Debug)]
enum Event {
    /// A line of sidecert.
    Line(String),
    /// Nobody asks any more.
    End,
    /// News of the session of this number.
    News(u64, News),
    /// What came of an ask that needs no session.
    Settled(u64, Outcome),
}

/// What is heard of a session.
#[derive(Debug)]
enum News {
    Cli(Heard),
    /// The server listens there.
    Bound(io::Result<SocketAddr>),
    Event(Value),
    Replied(serve::Asked, Result<http::Reply, String>),
}

/// Where a session tells its news.
#[derive(Clone, Debug)]
struct Tell {
    session: u64,
    to: SyncSender<Event>,
}

impl Tell {
    /// Whether anybody listens.
    fn say(&self, news: News) -> bool {
        self.to.send(Event::News(self.session, news)).is_ok()
    }
}

/// What there is between `start` and `stop`.
trait Session: Debug {
    /// Does what is asked, and settles it sooner or later.
    fn ask(&mut self, ask: &Ask, desk: &mut Desk);
    fn heard(&mut self, news: News, desk: &mut Desk);
    /// Begins to end, in order.
    fn stop(&mut self);
    /// Its process gets this from elsewhere, and is over when that is gone. Whether there is one to get it.
    fn signal(&mut self, sent: Sent) -> bool;
    /// Ends at once.
    fn kill(&mut self);
    /// Its process is gone.
    fn is_over(&self) -> bool;
    /// It is over: what is left to say of it.
    fn over(&mut self, _desk: &mut Desk) {}
    fn home(&self) -> &Home;
}

/// How the CLI ended.
#[derive(Debug)]
struct Ended(Option<ExitStatus>);

impl Ended {
    fn is_well(&self) -> bool {
        self.0.is_some_and(|status| status.success())
    }

    /// What a user sees of it: what it said last, or how it ended where it said nothing.
    fn says(&self, last: &Last) -> String {
        match (last.text().trim(), self.0) {
            ("", Some(status)) => format!("the CLI ended with {status}"),
            ("", None) => "the CLI ended".into(),
            (said, _) => said.to_owned(),
        }
    }
}

/// Is the shim until nobody asks any more; gives the exit code.
pub(crate) fn shim(mode: Mode, program: &Path, stop: watch::Receiver<Stop>) -> io::Result<u8> {
    offspring::adopt()?;
    let (tell, heard) = mpsc::sync_channel(HEARD_MAX);
    listen(&tell, stop)?;
    let mut desk = Desk::open();
    let Some((suite, folder)) = first_line(&heard) else { return Ok(exit::OK) };
    // The CLI runs elsewhere than we do. What has no slash in it is looked for on PATH.
    let program =
        if program.components().count() > 1 { path::absolute(program)? } else { program.to_owned() };
    let version = version(&program, &folder)?;
    desk.say(&json!({
        "shim": VERSION, "name": "reasonix-cli", "version": version, "does": mode.does(), "tools": tools(),
        "perTurn": mode.is_per_turn(), "mode": format!("{mode:?}").to_lowercase(), "suite": suite,
    }));
    let mut shim = Shim {
        mode,
        program,
        folder,
        tell,
        number: 0,
        session: None,
        bounds: Vec::new(),
        is_killed: false,
        beside: 0,
        is_ending: false,
    };
    shim.run(&heard, &mut desk);
    offspring::kill();
    Ok(exit::OK)
}

/// Hears sidecert and the signals, each on a thread of its own, and makes sure that we end when they say so.
fn listen(tell: &SyncSender<Event>, stop: watch::Receiver<Stop>) -> io::Result<()> {
    let to = tell.clone();
    program::spawn("asks", move || {
        program::lines(io::stdin(), |line| to.send(Event::Line(line)).is_ok());
        end_by_force_later(&to);
    })?;
    let to = tell.clone();
    program::told_to_stop(stop, move || end_by_force_later(&to))
}

/// Says that it is time to end. Whoever does not hear it, because nobody reads what is written for example, ends all
/// the same.
fn end_by_force_later(to: &SyncSender<Event>) {
    let until = Instant::now() + END_WITHIN;
    let told = to.clone();
    // A full queue must not keep us here.
    let _ = program::spawn("end", move || drop(told.send(Event::End)));
    thread::sleep(until.saturating_duration_since(Instant::now()));
    offspring::kill();
    process::exit(exit::OURS.into());
}

/// What sidecert says first: the suite, and the folder that is ours.
fn first_line(heard: &Receiver<Event>) -> Option<(String, PathBuf)> {
    loop {
        match heard.recv().ok()? {
            Event::Line(line) => {
                if let Some((suite, folder)) = spoken_to(&line) {
                    return Some((suite, folder.into()));
                }
            }
            _ => return None,
        }
    }
}

/// `reasonix --version` without the name.
fn version(program: &Path, folder: &Path) -> io::Result<String> {
    let home = folder.join("version");
    fs::create_dir_all(&home)?;
    let mut command = home::bare(program, &home);
    command.arg("--version");
    let printed = Program::run(command, None, RUN_WITHIN)?;
    match printed.out.text().trim().strip_prefix("reasonix v") {
        Some(version) => Ok(version.to_owned()),
        None => Err(io::Error::other("it is no Reasonix CLI: `--version` does not say so")),
    }
}

/// The tools of the CLI that are safe to run in the workspace.
fn tools() -> Value {
    json!([
        { "name": "ls", "readOnly": true, "arguments": { "path": "." } },
        { "name": "write_file", "readOnly": false,
          "arguments": { "path": "sidecert.txt", "content": "written at the request of sidecert\n" } },
    ])
}

/// A mode does not do that.
fn not_in(what: &str, mode: &str) -> Outcome {
    Outcome::Cannot(format!("`reasonix {mode}` has no way to be asked for {what:?}"))
}

struct Shim {
    mode: Mode,
    program: PathBuf,
    folder: PathBuf,
    tell: SyncSender<Event>,
    /// How many homes there were.
    number: u64,
    session: Option<Box<dyn Session>>,
    /// The asks that begin and end the session.
    bounds: Vec<u64>,
    is_killed: bool,
    /// How many asks are at work that need no session.
    beside: usize,
    is_ending: bool,
}

impl Shim {
    fn run(&mut self, heard: &Receiver<Event>, desk: &mut Desk) {
        let mut forced = None;
        while !(self.is_ending && self.session.is_none() || desk.is_gone()) {
            let next = desk.deadline().into_iter().chain(forced).min();
            let event = match next {
                Some(until) => heard.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => heard.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Line(line)) => {
                    if let Some(ask) = Ask::read(&line) {
                        self.ask(&ask, desk);
                    }
                }
                Ok(Event::End) if !self.is_ending => {
                    self.is_ending = true;
                    forced = Some(Instant::now() + STOP_WITHIN);
                    if let Some(session) = &mut self.session {
                        session.stop();
                    }
                    self.rest(desk);
                }
                Ok(Event::News(number, news)) if number == self.number => self.news(news, desk),
                Ok(Event::Settled(ask, outcome)) => {
                    self.beside -= 1;
                    desk.settle(ask, outcome);
                }
                Ok(Event::End | Event::News(..)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if forced.is_some_and(|until| until <= Instant::now()) {
                return;
            }
            desk.tell_rested();
            self.late(desk);
        }
    }

    fn ask(&mut self, ask: &Ask, desk: &mut Desk) {
        match (ask.what.as_str(), &mut self.session) {
            (_, _) if self.is_ending => {}
            ("start", None) => self.start(ask, desk),
            ("start", Some(_)) => {
                desk.expect(ask.number, START_WITHIN);
                desk.settle(ask.number, Outcome::Refused("a session is there already".into()));
            }
            ("admit" | "describe", session) => {
                desk.expect(ask.number, BESIDE_WITHIN);
                let home = session.as_ref().map(|session| session.home().clone());
                match self.beside(ask, home) {
                    Ok(()) => self.beside += 1,
                    Err(error) => desk.settle(ask.number, Outcome::Failed(error.to_string())),
                }
            }
            ("stop", Some(session)) => {
                desk.expect(ask.number, STOP_WITHIN);
                self.bounds.push(ask.number);
                session.stop();
                self.rest(desk);
            }
            ("signal", Some(session)) => {
                desk.expect(ask.number, SIGNALLED_WITHIN);
                let says = match Sent::read(ask.words("signal")) {
                    Some(sent) if session.signal(sent) => return self.bounds.push(ask.number),
                    Some(_) => "no process of the CLI runs that could get it",
                    None => "this shim knows no such signal",
                };
                desk.settle(ask.number, Outcome::Cannot(says.into()));
            }
            (_, Some(session)) => session.ask(ask, desk),
            (_, None) => {
                desk.expect(ask.number, ASK_WITHIN);
                desk.settle(ask.number, Outcome::Refused("there is no session".into()));
            }
        }
    }

    fn start(&mut self, ask: &Ask, desk: &mut Desk) {
        desk.expect(ask.number, START_WITHIN);
        desk.new_log();
        // What the last session left running was there to be seen until now. It cannot be told from what runs beside.
        if self.beside == 0 {
            offspring::kill();
        }
        if let Some(host) = ask.text("uiHost").filter(|host| *host != "headless") {
            let says = format!("this CLI tells every plugin that it is headless, not {host:?}");
            return desk.settle(ask.number, Outcome::Cannot(says));
        }
        self.number += 1;
        let tell = Tell { session: self.number, to: self.tell.clone() };
        let plugins =
            ask.member("plugins").as_array().into_iter().flatten().filter_map(Plugin::read).collect();
        let folder = self.folder.join(format!("{}", self.number));
        let made = Home::make(&self.program, &folder, plugins, ask);
        let started: io::Result<Box<dyn Session>> = made.and_then(|home| match self.mode {
            Mode::Acp => Ok(Box::new(acp::Acp::start(home, ask.number, tell)?) as Box<dyn Session>),
            Mode::Serve => Ok(Box::new(serve::Serve::start(home, ask.number, tell)?)),
            Mode::Run => Ok(Box::new(run::Run::start(home, ask.number, tell))),
        });
        match started {
            Ok(session) => {
                self.session = Some(session);
                self.bounds.push(ask.number);
            }
            Err(error) => {
                desk.settle(ask.number, Outcome::Failed(format!("the CLI could not be started: {error}")));
            }
        }
    }

    /// What needs no session, on a thread of its own.
    fn beside(&self, ask: &Ask, home: Option<Home>) -> io::Result<()> {
        let folder = self.folder.join(format!("beside-{}", ask.number));
        let (program, ask, to) = (self.program.clone(), ask.clone(), self.tell.clone());
        program::spawn("beside", move || {
            let outcome = plugin::ask(&program, &folder, &ask, home);
            let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(error.to_string()));
            let _ = to.send(Event::Settled(ask.number, outcome));
        })
    }

    fn news(&mut self, news: News, desk: &mut Desk) {
        if let Some(session) = &mut self.session {
            session.heard(news, desk);
            self.rest(desk);
        }
    }

    /// Sees to a session that is over.
    fn rest(&mut self, desk: &mut Desk) {
        if let Some(mut session) = self.session.take_if(|session| session.is_over()) {
            desk.tell_all();
            session.over(desk);
            let mut left = STORED_TOLD_BYTES_MAX;
            for text in stored::payloads(&session.home().folder) {
                let text = cut(&text, left);
                left -= text.len();
                if !text.is_empty() {
                    desk.found("session", text);
                }
            }
            let outcome = if mem::take(&mut self.is_killed) {
                Outcome::Failed(format!("it did not end in order within {STOP_WITHIN:?}, and was killed"))
            } else {
                Outcome::done()
            };
            // The one that began it was settled by the session.
            for ask in mem::take(&mut self.bounds) {
                desk.settle(ask, outcome.clone());
            }
        }
    }

    /// What has no outcome by now has failed. A session that does not begin or end is ended by force first, and has a
    /// little time to be gone.
    fn late(&mut self, desk: &mut Desk) {
        for ask in desk.late() {
            match &mut self.session {
                Some(session) if !self.is_killed && self.bounds.contains(&ask) => {
                    self.is_killed = true;
                    session.kill();
                    desk.expect(ask, KILLED_WITHIN);
                }
                _ => desk.settle(ask, Outcome::Failed("nothing came of it in time".into())),
            }
        }
    }
}
