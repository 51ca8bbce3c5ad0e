//! Conforming mock guests, and the ways in which they can be flawed.
//!
//! A mock is the smallest conforming guest as a process: it reads lines, honours the provocations and ends with its
//! input. A [`Flaw`] is one named departure from that, and names every requirement that it breaks. The Python guest
//! beside this crate shares no code with it.

pub mod reasonix;

use std::collections::VecDeque;

use bytes::Bytes;
use sidecert_proto::contract::Side;
use sidecert_proto::json::Tape;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_proto::reasonix::guest::{Features, Guest, Said};
use sidecert_proto::requirement::{Editions, Id};
use sidecert_proto::script::{Captures, Pattern, Template};
use sidecert_proto::suite::Suite;
use sidecert_proto::wire::{Deframer, Line};

/// One departure of a mock from what is required.
#[derive(Debug)]
pub struct Flaw {
    /// The misdeed, as `[a-z0-9-]+`.
    pub name: &'static str,
    /// Which mock has it.
    pub side: Side,
    /// In which editions of its family.
    pub editions: Editions,
    /// Every requirement that it breaks; under the reference profile these fail, and no other.
    pub breaks: &'static [Id],
    /// What it takes to show.
    pub reach: Reach,
    /// When it happens.
    pub at: Trigger,
    /// What happens.
    pub does: Misdeed,
}

/// What it takes for a flaw to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Frames.
    Frame,
    /// The life of the process.
    Process,
    /// Time.
    Time,
    /// A provocation.
    Provoked,
}

impl Reach {
    /// Its name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Process => "process",
            Self::Time => "time",
            Self::Provoked => "provoked",
        }
    }
}

/// When a misdeed happens.
#[derive(Clone, Copy, Debug)]
pub enum Trigger {
    /// When a line comes that matches this pattern; what it captures can be used in the misdeed.
    Receives(&'static str),
    /// When it answers this method.
    Answers(&'static str),
    /// When it asks for this.
    Asks(&'static str),
    /// When its input ends, after a shutdown or without one.
    InputEnds {
        /// Which.
        after_shutdown: bool,
    },
    /// When a line is longer than the limit that it keeps.
    LongLine,
}

/// What a flawed mock does.
#[derive(Clone, Copy, Debug)]
pub enum Misdeed {
    /// Says this as well.
    Also(&'static str),
    /// Says this instead of what it should.
    Instead(&'static str),
    /// Writes the second text where it should write the first.
    Edit(&'static str, &'static str),
    /// Says it this many milliseconds later.
    Delay(u64),
    /// Writes a line that is longer than a frame may be.
    Overfill,
    /// Keeps a limit on lines of this many hundredths of the frame limit.
    Limit(usize),
    /// Goes on running.
    Hang,
}

/// The flaws of the mock guests of `suite`.
pub fn flaws(suite: &Suite) -> impl Iterator<Item = &'static Flaw> {
    let edition = suite.edition;
    reasonix::FLAWS.iter().filter(move |flaw| flaw.editions & edition != 0)
}

/// A mock guest as a process.
#[derive(Debug)]
pub struct Mock<'c> {
    guest: Guest<'c>,
    frame_bytes: usize,
    flaw: Option<&'static Flaw>,
    fired: bool,
    deframer: Deframer,
    actions: VecDeque<Action>,
    /// Lines that are to be written later, in order.
    later: VecDeque<(Micros, Vec<u8>)>,
    captures: Captures,
    ended: bool,
    hangs: bool,
}

/// How long a mock that hangs goes on running after its input ended, in microseconds: longer than anybody waits.
const HANGS_FOR: Micros = 3_600_000_000;

impl<'c> Mock<'c> {
    /// A mock guest of `suite` under `contract`, with this flaw or none.
    pub fn guest(
        suite: &Suite,
        contract: &'c sidecert_proto::contract::Contract,
        features: Features,
        flaw: Option<&'static Flaw>,
    ) -> Self {
        // The limit counts the LF, lines do not.
        let frame_bytes = (suite.line_bytes_max)(contract);
        let limit = match flaw.map(|flaw| flaw.does) {
            Some(Misdeed::Limit(hundredths)) => frame_bytes / 100 * hundredths,
            _ => frame_bytes - 1,
        };
        Self {
            guest: Guest::new(contract, features),
            frame_bytes,
            flaw,
            fired: false,
            deframer: Deframer::new(limit),
            actions: VecDeque::new(),
            later: VecDeque::new(),
            captures: Captures::new(),
            ended: false,
            hangs: false,
        }
    }

    /// Whether its flaw has shown.
    pub fn fired(&self) -> bool {
        self.fired
    }

    fn misdeed(&mut self, test: impl FnOnce(&Trigger) -> bool) -> Option<Misdeed> {
        let flaw = self.flaw.filter(|flaw| test(&flaw.at))?;
        self.fired = true;
        Some(flaw.does)
    }

    fn line(&mut self, line: &[u8], now: Micros) {
        // A line longer than the limit that a conforming guest keeps shows the flaw of one that takes it.
        if matches!(self.flaw.map(|flaw| flaw.does), Some(Misdeed::Limit(100..)))
            && line.len() >= self.frame_bytes
        {
            self.fired = true;
        }
        let mut captures = Captures::new();
        let received = match self.flaw.map(|flaw| flaw.at) {
            Some(Trigger::Receives(pattern)) => matches(pattern, line, &mut captures),
            _ => false,
        };
        let misdeed = if received { self.misdeed(|_| true) } else { None };
        self.captures = captures;
        match misdeed {
            Some(Misdeed::Instead(template)) => return self.say_template(template),
            Some(Misdeed::Overfill) => {
                let overfull = vec![b'x'; self.frame_bytes + self.frame_bytes / 8];
                return self.write(overfull);
            }
            _ => {}
        }
        let mut said = Vec::new();
        if !reasonix::provoked(line, &mut said) {
            self.guest.hear(line, &mut said);
        }
        for said in said {
            self.say(said, now);
        }
        if let Some(Misdeed::Also(template)) = misdeed {
            self.say_template(template);
        }
    }

    fn say(&mut self, said: Said, now: Micros) {
        let misdeed = self.misdeed(|at| match at {
            Trigger::Answers(method) => said.answer && said.method == *method,
            Trigger::Asks(method) => !said.answer && said.method == *method,
            _ => false,
        });
        match misdeed {
            Some(Misdeed::Edit(find, replace)) => {
                let line = String::from_utf8_lossy(&said.line).replacen(find, replace, 1);
                self.write(line.into_bytes());
            }
            Some(Misdeed::Delay(millis)) => self.later.push_back((now + millis * 1_000, said.line)),
            Some(Misdeed::Instead(template)) => {
                matches(r#"{"id":{"$capture":"id"}}"#, &said.line, &mut self.captures);
                self.say_template(template);
            }
            Some(Misdeed::Also(template)) => {
                self.write(said.line);
                self.say_template(template);
            }
            _ => self.write(said.line),
        }
    }

    fn say_template(&mut self, template: &str) {
        let line = Template::new(template).render(
            &mut std::collections::BTreeMap::new(),
            &mut 1_000_000,
            &self.captures,
        );
        self.write(line.into_bytes());
    }

    fn write(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        self.actions.push_back(Action::Write { link: 0, bytes: Bytes::from(line), after_drain: false });
    }

    fn end(&mut self) {
        let after_shutdown = self.guest.is_closing();
        let hangs = self.misdeed(
            |at| matches!(at, Trigger::InputEnds { after_shutdown: when } if *when == after_shutdown),
        );
        self.hangs = hangs.is_some();
        if !self.hangs && !std::mem::replace(&mut self.ended, true) {
            self.actions.push_back(Action::Exit(0));
        }
    }
}

impl Machine for Mock<'_> {
    fn handle(&mut self, _: LinkId, input: Input<'_>, now: Micros) {
        match input {
            Input::Bytes(chunk) => {
                let mut deframer = std::mem::replace(&mut self.deframer, Deframer::new(0));
                let mut lines = deframer.push(chunk);
                while let Some(line) = lines.next() {
                    match line {
                        Line::Whole(line) => self.line(line, now),
                        Line::Oversize { .. } => {
                            self.misdeed(|at| matches!(at, Trigger::LongLine));
                            self.ended = true;
                            self.actions.push_back(Action::Exit(1));
                        }
                    }
                }
                self.deframer = deframer;
            }
            Input::Eof => {
                let tail = self.deframer.tail().to_vec();
                self.line(&tail, now);
                self.end();
            }
            Input::Tick => {
                while let Some((due, _)) = self.later.front()
                    && *due <= now
                {
                    let Some((_, line)) = self.later.pop_front() else { return };
                    self.write(line);
                }
            }
            Input::Broken | Input::Interrupted => {
                self.ended = true;
                self.actions.push_back(Action::Exit(1));
            }
            Input::Wrote(_) | Input::Stderr(_) | Input::Exited(_) | Input::Left(_) => {}
        }
    }

    fn poll(&mut self, _: Micros) -> Option<Action> {
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        self.later.front().map(|(due, _)| *due).or(self.hangs.then_some(HANGS_FOR))
    }
}

fn matches(pattern: &str, line: &[u8], captures: &mut Captures) -> bool {
    let (Ok(pattern), Ok(tape)) = (Pattern::of(pattern), Tape::scan(line)) else { return false };
    pattern.matches(tape.root(), &std::collections::BTreeMap::new(), captures)
}
