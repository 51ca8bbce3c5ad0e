//! The driver that is a person: what is asked for is told to them on their terminal, and they type what came of it.
//!
//! One thread looks at everything that is heard, in its order. What is told is ours or escaped, and everything that is
//! typed is an answer to something that is shown.

mod typed;
mod wording;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use sidecert_proto::script::WORDS;
use sidecert_runner::Stop;
use tokio::sync::watch;

use self::typed::{Kind, Typed};
use self::wording::Wording;
use super::budget::HEARD_MAX;
use super::folder::Folder;
use super::program;
use super::terminal::Terminal;
use super::{Ask, Desk, VERSION, spoken_to};
use crate::exit;

/// The file that counts what was asked, from process to process of a run.
const ASKED: &str = "asked";

/// What a person is told besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manual {
    /// The terminal; otherwise the one that this process was started on.
    pub(crate) terminal: Option<PathBuf>,
    /// The folder for the plugins; otherwise the one that sidecert gives.
    pub(crate) folder: Option<PathBuf>,
    /// How much there will be to do in the whole run.
    pub(crate) asks: Option<u64>,
    /// The process that ends in order when it is interrupted.
    pub(crate) stops: Option<i32>,
    /// The host, as it is started.
    pub(crate) command: Vec<String>,
}

/// What is heard.
#[derive(Debug)]
enum Event {
    /// A line of sidecert.
    Line(String),
    /// Nobody asks any more.
    End,
    /// A line of the person; none is the end of them.
    Typed(Option<String>),
}

/// Is the shim until nobody asks any more, or the person wants no more; gives the exit code.
pub(crate) fn shim(manual: Manual, stop: watch::Receiver<Stop>) -> io::Result<u8> {
    let terminal = Terminal::open(manual.terminal.as_deref())?;
    let (tell, heard) = mpsc::sync_channel(HEARD_MAX);
    listen(&tell, stop)?;
    let Some(given) = first_line(&heard) else { return Ok(exit::OK) };
    let folder = Folder::of(manual.folder.as_deref(), &given);
    let to = tell.clone();
    terminal.listen(move |line| to.send(Event::Typed(line)).is_ok())?;
    let mut desk = Desk::open();
    desk.say(&json!({
        "shim": VERSION, "name": "manual", "version": env!("CARGO_PKG_VERSION"), "does": WORDS, "unhurried": true,
    }));
    let asked = fs::read_to_string(folder.file(ASKED)).ok().and_then(|text| text.parse().ok());
    let mut shim = Shim {
        asked: asked.unwrap_or_default(),
        wording: Wording::of(folder, manual.command.clone()),
        manual,
        terminal,
        desk,
        open: Vec::new(),
        is_stopping: false,
    };
    Ok(shim.run(&heard))
}

/// Hears sidecert and the signals, each on a thread of its own.
fn listen(tell: &SyncSender<Event>, stop: watch::Receiver<Stop>) -> io::Result<()> {
    let to = tell.clone();
    program::spawn("asks", move || {
        program::lines(io::stdin(), |line| to.send(Event::Line(line)).is_ok());
        let _ = to.send(Event::End);
    })?;
    let to = tell.clone();
    program::told_to_stop(stop, move || drop(to.send(Event::End)))
}

/// The folder that sidecert gives in its first line.
fn first_line(heard: &Receiver<Event>) -> Option<String> {
    loop {
        match heard.recv().ok()? {
            Event::Line(line) => {
                if let Some((_, folder)) = spoken_to(&line) {
                    return Some(folder);
                }
            }
            Event::End => return None,
            Event::Typed(_) => {}
        }
    }
}

/// Something that the person is doing.
#[derive(Debug)]
struct Open {
    ask: Ask,
    /// Its number as the person sees it.
    number: u64,
    /// What they said was shown because of it.
    shown: Vec<String>,
    /// Whether they said that it is done without what should have been shown.
    is_warned: bool,
}

struct Shim {
    manual: Manual,
    terminal: Terminal,
    desk: Desk,
    wording: Wording,
    /// What was not answered yet, in the order in which it was asked.
    open: Vec<Open>,
    /// How much was asked in this run.
    asked: u64,
    is_stopping: bool,
}

impl Shim {
    fn run(&mut self, heard: &Receiver<Event>) -> u8 {
        while !self.desk.is_gone() {
            match heard.recv() {
                Ok(Event::Line(line)) => {
                    if let Some(ask) = Ask::read(&line) {
                        self.ask(ask);
                    }
                }
                Ok(Event::Typed(Some(line))) => self.typed(&line),
                Ok(Event::Typed(None)) => self.stop(),
                Ok(Event::End) | Err(_) => break,
            }
            if self.is_stopping && self.manual.stops.is_none() {
                return exit::INTERRUPTED;
            }
        }
        if !self.open.is_empty() {
            // Whoever writes to the terminal next begins a line of its own.
            self.terminal.line("");
        }
        exit::OK
    }

    // ---- asking ----

    fn ask(&mut self, ask: Ask) {
        if self.open.is_empty() {
            self.terminal.forget_typed();
        }
        self.asked += 1;
        // Without it the count begins anew, and nothing else goes wrong.
        let _ = fs::write(self.wording.folder().file(ASKED), self.asked.to_string());
        let lines = match self.wording.lines(&ask) {
            Ok(lines) => lines,
            Err(error) => {
                let says = format!("sidecert cannot write the files for it: {error}");
                self.terminal.line(&says);
                return self.desk.say(&json!({ "outcome": ask.number, "cannot": says }));
            }
        };
        let of = self.manual.asks.map(|asks| format!(" of {}", asks.max(self.asked))).unwrap_or_default();
        let meanwhile = if self.open.is_empty() { "" } else { ", meanwhile" };
        self.terminal.line("");
        self.terminal.line(&format!("---- {}{of}{meanwhile} ----", self.asked));
        for line in lines {
            self.terminal.line(&line);
        }
        if self.asked == 1 {
            self.help();
        }
        self.open.push(Open { ask, number: self.asked, shown: Vec::new(), is_warned: false });
        self.prompt();
    }

    fn prompt(&mut self) {
        match self.open.as_slice() {
            [] => {}
            [only] => self.terminal.prompt(&only.number.to_string()),
            [others @ .., last] => {
                let others: Vec<String> = others.iter().map(|open| open.number.to_string()).collect();
                let says = format!("{} (also open: {})", last.number, others.join(", "));
                self.terminal.prompt(&says);
            }
        }
    }

    fn help(&mut self) {
        for line in typed::HELP {
            self.terminal.line(line);
        }
    }

    // ---- hearing ----

    fn typed(&mut self, line: &str) {
        if self.is_stopping {
            return;
        }
        let (number, typed) = Typed::read(line);
        let place = match number {
            Some(number) => self.open.iter().position(|open| open.number == number),
            None => self.open.len().checked_sub(1),
        };
        match (typed, place) {
            (Typed::Help, _) => self.help(),
            (Typed::Quit, _) => return self.stop(),
            (Typed::Odd, _) => self.terminal.line("That is nothing of what can be said here; ? shows it."),
            (_, None) if number.is_some() => self.terminal.line("Nothing of that number is open."),
            (_, None) => {}
            (Typed::Shown(kind, text), Some(place)) => self.shown(place, kind, text),
            (Typed::Done, Some(place)) => self.done(place),
            (Typed::Other(outcome), Some(place)) => self.settle(place, outcome),
        }
        self.prompt();
    }

    /// The person was shown this.
    fn shown(&mut self, place: usize, kind: Kind, text: String) {
        let open = &mut self.open[place];
        // What models there are, or what is said of a plugin, is no part of an answer.
        let is_answer = !matches!(open.ask.what.as_str(), "models" | "describe");
        if is_answer || kind != Kind::Text {
            let plugin = self.wording.named_in(&text);
            let with = plugin.map_or_else(|| json!({}), |plugin| json!({ "plugin": plugin }));
            self.desk.shown(kind.name(), &text, with);
        }
        if kind == Kind::Text {
            open.shown.push(text);
        }
    }

    fn done(&mut self, place: usize) {
        let open = &mut self.open[place];
        let needed = match open.ask.what.as_str() {
            "turn" => "Was nothing shown of an answer? Say it with `s TEXT`, or press Enter again.",
            "models" => "Is there no model at all? Say each with `s NAME`, or press Enter again.",
            "describe" => "Does it say nothing? Say it with `s TEXT`, or press Enter again.",
            _ => "",
        };
        if !needed.is_empty() && open.shown.is_empty() && !open.is_warned {
            open.is_warned = true;
            return self.terminal.line(needed);
        }
        let outcome = match open.ask.what.as_str() {
            "turn" | "describe" => json!({ "done": true, "text": open.shown.join("\n") }),
            "models" => json!({ "done": true, "models": open.shown }),
            // What is not shown cannot be answered, whatever a person says.
            "answer" if open.ask.text("prompt").is_some() => json!({ "refused": "no such prompt is shown" }),
            _ => json!({ "done": true }),
        };
        self.settle(place, outcome);
    }

    fn settle(&mut self, place: usize, mut outcome: Value) {
        let open = self.open.remove(place);
        outcome["outcome"] = open.ask.number.into();
        self.desk.say(&outcome);
    }

    /// The person wants no more: whoever runs us ends in order, and us with it.
    fn stop(&mut self) {
        if std::mem::replace(&mut self.is_stopping, true) {
            return;
        }
        self.terminal.line("This ends the run; what is known so far is told.");
        let process = self.manual.stops.and_then(Pid::from_raw);
        let stopped = process.map(|process| {
            pidfd_open(process, PidfdFlags::empty()).and_then(|it| pidfd_send_signal(it, Signal::INT))
        });
        if !matches!(stopped, Some(Ok(()))) {
            self.manual.stops = None;
        }
    }
}
