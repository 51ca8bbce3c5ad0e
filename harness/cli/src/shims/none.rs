//! The driver that asks a host for nothing: a command of the user's runs it, or the user does, with our plugins; and when
//! that is over, so is the visit.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, SyncSender};

use serde_json::json;
use sidecert_runner::{Stop, offspring};
use tokio::sync::watch;

use super::budget::HEARD_MAX;
use super::folder::{self, Folder};
use super::program;
use super::terminal::Terminal;
use super::{Ask, Desk, VERSION, spoken_to};
use crate::exit;

/// What stands for the folder of the plugins in a word of the command.
const PLUGINS: &str = "{plugins}";
/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// What the driver is told besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visitor {
    /// The terminal; otherwise the one that this process was started on.
    pub(crate) terminal: Option<PathBuf>,
    /// The folder for the plugins; otherwise the one that sidecert gives.
    pub(crate) folder: Option<PathBuf>,
    /// What runs the host; without it, the user does.
    pub(crate) command: Vec<OsString>,
}

/// What is heard.
#[derive(Debug)]
enum Event {
    Line(String),
    /// Nobody asks any more.
    End,
    /// A line of the user; none is the end of them.
    Typed(Option<String>),
    /// The command has ended.
    Ended(io::Result<ExitStatus>),
}

/// Is the shim until nobody asks any more; gives the exit code.
pub(crate) fn shim(visitor: Visitor, stop: watch::Receiver<Stop>) -> io::Result<u8> {
    offspring::adopt()?;
    let terminal =
        if visitor.command.is_empty() { Some(Terminal::open(visitor.terminal.as_deref())?) } else { None };
    let (tell, heard) = mpsc::sync_channel(HEARD_MAX);
    let to = tell.clone();
    program::spawn("asks", move || {
        program::lines(io::stdin(), |line| to.send(Event::Line(line)).is_ok());
        let _ = to.send(Event::End);
    })?;
    let to = tell.clone();
    program::told_to_stop(stop, move || drop(to.send(Event::End)))?;
    if let Some(terminal) = &terminal {
        let to = tell.clone();
        terminal.listen(move |line| to.send(Event::Typed(line)).is_ok())?;
    }
    let mut visit = Visit {
        visitor,
        terminal,
        tell,
        desk: Desk::open(),
        folder: None,
        running: None,
        ended: exit::OK.into(),
    };
    let mut code = exit::OK;
    for event in heard {
        match visit.hear(event) {
            Goes::On => {}
            Goes::Out(ended) => {
                code = ended;
                break;
            }
        }
    }
    // What the command left running is the host's as a rule, and goes with it.
    offspring::kill();
    Ok(code)
}

enum Goes {
    On,
    /// With this exit code.
    Out(u8),
}

struct Visit {
    visitor: Visitor,
    terminal: Option<Terminal>,
    tell: SyncSender<Event>,
    desk: Desk,
    folder: Option<Folder>,
    /// The ask whose outcome is the end of the command, or of the user's visit.
    running: Option<u64>,
    /// What the command ended with.
    ended: i32,
}

impl Visit {
    fn hear(&mut self, event: Event) -> Goes {
        match event {
            Event::Line(line) if self.folder.is_none() => self.greet(&line),
            Event::Line(line) => {
                if let Some(ask) = Ask::read(&line) {
                    return self.ask(&ask);
                }
            }
            Event::End => return Goes::Out(exit::OK),
            Event::Typed(typed) => {
                let outcome = match typed {
                    Some(_) => json!({ "done": true }),
                    None => json!({ "failed": "the terminal is gone" }),
                };
                self.settle(outcome);
            }
            Event::Ended(status) => self.over(status),
        }
        if self.desk.is_gone() { Goes::Out(exit::OK) } else { Goes::On }
    }

    fn greet(&mut self, line: &str) {
        let Some((_, given)) = spoken_to(line) else { return };
        self.folder = Some(Folder::of(self.visitor.folder.as_deref(), &given));
        let version = env!("CARGO_PKG_VERSION");
        self.desk.say(&json!({
            "shim": VERSION, "name": "none", "version": version, "does": ["start", "stop"], "unhurried": true,
        }));
    }

    fn ask(&mut self, ask: &Ask) -> Goes {
        let outcome = match ask.what.as_str() {
            "start" if self.running.is_none() => {
                self.running = Some(ask.number);
                if let Err(error) = self.start(ask) {
                    self.settle(json!({ "failed": error.to_string() }));
                }
                return Goes::On;
            }
            // A run of the user's that failed may have been cut short anywhere, and must not read as a whole one.
            "stop" if self.ended != 0 => return Goes::Out(u8::try_from(self.ended).unwrap_or(exit::FAILED)),
            "stop" => json!({ "done": true }),
            "start" => json!({ "refused": "it is running" }),
            other => {
                json!({ "cannot": format!("this driver asks the host for nothing, and not for {other:?}") })
            }
        };
        self.running = Some(ask.number);
        self.settle(outcome);
        Goes::On
    }

    /// Places the plugins, and starts the command, or tells the user where they are.
    fn start(&mut self, ask: &Ask) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let placed = folder.place(ask)?;
        if let Some(terminal) = &mut self.terminal {
            terminal.line("");
            terminal.line("Let your host do what it does, with these plugins:");
            for plugin in &placed {
                terminal.line(&format!("    {}: {}", plugin.name, plugin.folder.display()));
            }
            for (name, value) in folder::variables() {
                terminal.line(&format!("    in the environment of every plugin: {name}={value}"));
            }
            terminal.line(&format!("    (a shell reads them from {})", folder.variables().display()));
            terminal.line("Press Enter when your host is gone; Ctrl-C ends the run.");
            terminal.forget_typed();
            terminal.prompt("");
            return Ok(());
        }
        let Some((program, words)) = self.visitor.command.split_first() else { return Ok(()) };
        let plugins = folder.plugins();
        // Our standard output is the protocol.
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        let mut command = Command::new(with_plugins(program, &plugins));
        command.args(words.iter().map(|word| with_plugins(word, &plugins)));
        command.stdin(Stdio::null()).stdout(stderr);
        let mut child = command.spawn().map_err(|error| {
            io::Error::other(format!("{} could not be started: {error}", program.display()))
        })?;
        let to = self.tell.clone();
        program::spawn("end", move || drop(to.send(Event::Ended(child.wait()))))
    }

    fn over(&mut self, status: io::Result<ExitStatus>) {
        let outcome = match status {
            Ok(status) if status.success() => json!({ "done": true }),
            Ok(status) => {
                self.ended = status.code().or(status.signal().map(|signal| BY_SIGNAL + signal)).unwrap_or(1);
                json!({ "failed": format!("the command ended with {status}") })
            }
            Err(error) => json!({ "failed": format!("how the command ended, nobody says: {error}") }),
        };
        self.settle(outcome);
    }

    fn settle(&mut self, mut outcome: serde_json::Value) {
        if let Some(ask) = self.running.take() {
            outcome["outcome"] = ask.into();
            self.desk.say(&outcome);
        }
    }
}

/// A word of the command with the folder of the plugins in it.
fn with_plugins(word: &OsStr, plugins: &Path) -> OsString {
    match word.to_str().filter(|word| word.contains(PLUGINS)) {
        Some(text) => text.replace(PLUGINS, &plugins.to_string_lossy()).into(),
        None => word.to_owned(),
    }
}
