//! Shims of hosts: each makes one host do what sidecert asks for, and speaks docs/host-shim.md.
//!
//! Here is what they have in common: an [`Ask`], an [`Outcome`], and the [`Desk`], which sees to it that every ask has
//! exactly one outcome, within its bound.

pub(crate) mod budget;
pub(crate) mod folder;
pub(crate) mod manual;
pub(crate) mod none;
pub(crate) mod program;
pub(crate) mod reasonix_cli;
pub(crate) mod terminal;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use budget::{LOG_BYTES_MAX, LOG_LINE_BYTES_MAX, REST};

/// The version of the protocol between sidecert and a shim.
pub(crate) const VERSION: u64 = 1;

/// What sidecert says first, the suite and the folder that is the shim's, if this line is that.
pub(crate) fn spoken_to(line: &str) -> Option<(String, String)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let folder = line["folder"].as_str().filter(|_| line["shim"].is_u64())?;
    Some((line["suite"].as_str().unwrap_or_default().to_owned(), folder.to_owned()))
}

/// What sidecert asks for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Its number, which the outcome bears.
    pub(crate) number: u64,
    /// What to do.
    pub(crate) what: String,
    /// The whole line.
    with: Map<String, Value>,
}

impl Ask {
    /// Reads a line; one that is no ask is none.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let Ok(Value::Object(with)) = serde_json::from_str(line) else { return None };
        let (number, what) = (with.get("ask")?.as_u64()?, with.get("do")?.as_str()?.to_owned());
        Some(Self { number, what, with })
    }

    /// A member, null where there is none.
    pub(crate) fn member(&self, name: &str) -> &Value {
        self.with.get(name).unwrap_or(&Value::Null)
    }

    /// The whole line.
    pub(crate) fn raw(&self) -> String {
        Value::Object(self.with.clone()).to_string()
    }

    /// A text, if there is one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.member(name).as_str()
    }

    /// A text, empty where there is none.
    pub(crate) fn words(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }
}

/// What came of an ask.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It was done; with these members besides.
    Done(Value),
    /// A plugin blocked it, and this is what the user is told.
    Blocked(String),
    /// It failed, and this is what the user is told.
    Failed(String),
    /// The host does not do it now, or does not take it.
    Refused(String),
    /// The host cannot be made to do it this way.
    Cannot(String),
}

impl Outcome {
    /// Done, with nothing to say of it.
    pub(crate) fn done() -> Self {
        Self::Done(json!({}))
    }

    fn line(self, ask: u64) -> Value {
        let (name, says) = match self {
            Self::Done(mut with) => {
                with["outcome"] = ask.into();
                with["done"] = true.into();
                return with;
            }
            Self::Blocked(says) => ("blocked", says),
            Self::Failed(says) => ("failed", says),
            Self::Refused(says) => ("refused", says),
            Self::Cannot(says) => ("cannot", says),
        };
        json!({ "outcome": ask, name: says })
    }
}

/// Where sidecert is told everything, a line each.
#[derive(Debug)]
pub(crate) struct Desk {
    out: io::Stdout,
    /// The asks that have no outcome yet, and until when they may have none.
    open: BTreeMap<u64, Instant>,
    /// Outcomes that are told at their time, in order.
    resting: VecDeque<(Instant, u64, Outcome)>,
    log_bytes: usize,
    is_gone: bool,
}

impl Desk {
    pub(crate) fn open() -> Self {
        Self {
            out: io::stdout(),
            open: BTreeMap::new(),
            resting: VecDeque::new(),
            log_bytes: 0,
            is_gone: false,
        }
    }

    /// Nobody reads what we write any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Says one line.
    pub(crate) fn say(&mut self, line: &Value) {
        let mut out = self.out.lock();
        self.is_gone |= writeln!(out, "{line}").and_then(|()| out.flush()).is_err();
    }

    /// An ask is at work, and has an outcome within this time.
    pub(crate) fn expect(&mut self, ask: u64, within: Duration) {
        self.open.insert(ask, Instant::now() + within);
    }

    /// Says what came of an ask, unless that has been said.
    pub(crate) fn settle(&mut self, ask: u64, outcome: Outcome) {
        if self.open.remove(&ask).is_some() {
            self.say(&outcome.line(ask));
        }
    }

    /// Says what came of an ask that plugins heard of, in a moment: a host may tell them something on the side that
    /// nobody waits for, so it says that it is done before it has.
    pub(crate) fn settle_rested(&mut self, ask: u64, outcome: Outcome) {
        self.resting.push_back((Instant::now() + REST, ask, outcome));
    }

    /// Tells the outcomes whose time has come.
    pub(crate) fn tell_rested(&mut self) {
        let now = Instant::now();
        while let Some((_, ask, outcome)) = self.resting.pop_front_if(|(at, ..)| *at <= now) {
            self.settle(ask, outcome);
        }
    }

    /// Tells all outcomes: nothing more can come of what was asked.
    pub(crate) fn tell_all(&mut self) {
        for (_, ask, outcome) in std::mem::take(&mut self.resting) {
            self.settle(ask, outcome);
        }
    }

    /// When the next ask is late, or the next outcome is told.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.values().copied().chain(self.resting.front().map(|(at, ..)| *at)).min()
    }

    /// The asks that are late.
    pub(crate) fn late(&self) -> Vec<u64> {
        let now = Instant::now();
        self.open.iter().filter(|(_, until)| **until <= now).map(|(ask, _)| *ask).collect()
    }

    /// Something is shown to the user: as what, its text, and these members besides.
    pub(crate) fn shown(&mut self, kind: &str, text: &str, with: Value) {
        let mut shown = with;
        shown["as"] = kind.into();
        shown["text"] = text.into();
        self.say(&json!({ "shown": shown }));
    }

    /// The host keeps this for itself.
    pub(crate) fn found(&mut self, place: &str, text: &str) {
        self.say(&json!({ "found": { "in": place, "text": text } }));
    }

    /// A line of the log of the host. What is too much is left out, and one line says so.
    pub(crate) fn log(&mut self, line: &str) {
        if self.log_bytes > LOG_BYTES_MAX {
            return;
        }
        let line = cut(line, LOG_LINE_BYTES_MAX);
        self.log_bytes += line.len();
        self.found("log", line);
        if self.log_bytes > LOG_BYTES_MAX {
            self.found("log", "(the shim tells no more of this log)");
        }
    }

    /// Another log begins.
    pub(crate) fn new_log(&mut self) {
        self.log_bytes = 0;
    }
}

/// The beginning of a text, of so many bytes at most.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// The end of a text, of so many bytes at most.
pub(crate) fn tail(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}
