//! Conforming mock guests and a reference host, and the ways in which they can be flawed.
//!
//! A mock is the smallest conforming guest as a process: it reads lines, honours the provocations and ends with its
//! input. A [`Flaw`] is one named departure from that, and names every requirement that it breaks. The Python guest
//! beside this crate shares no code with it.

mod conforming;
mod host;
pub mod reasonix;
pub mod webcodex;

pub use host::MockHost;

use std::collections::VecDeque;

use bytes::Bytes;
use conforming::Conforming;
use sidecert_proto::contract::Side;
use sidecert_proto::json::Tape;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_proto::reasonix::guest::{Features, Phase, Said};
use sidecert_proto::requirement::{Editions, Id};
use sidecert_proto::script::{Captures, Pattern, Template};
use sidecert_proto::suite::Suite;
use sidecert_proto::wire::{Deframer, Line};

/// One departure of a mock from what is required.
#[derive(Clone, Copy, Debug)]
pub struct Flaw {
    /// The misdeed, as `[a-z0-9-]+`.
    pub name: &'static str,
    /// Which mock has it.
    pub side: Side,
    /// In which editions of its family.
    pub editions: Editions,
    /// Every requirement that it breaks; under the reference profile these fail, and no other. With none, all that
    /// shows is that the run is cut short.
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

/// When a misdeed happens: every time, but for what happens once in the life of a process.
#[derive(Clone, Copy, Debug)]
pub enum Trigger {
    /// When the process begins.
    Starts,
    /// When a line comes that matches this pattern; what it captures can be used in the misdeed.
    Receives(&'static str),
    /// When a line comes that has this text in it, JSON or not.
    Reads(&'static str),
    /// When a blank line comes.
    Blank,
    /// When this is asked or told while it is in this phase.
    When(Phase, &'static str),
    /// When it answers this method.
    Answers(&'static str),
    /// When it answers this method with an error of this reason.
    Refuses(&'static str, &'static str),
    /// When it asks for this, or tells this.
    Asks(&'static str),
    /// When it says a line that matches this pattern; what it captures can be used in the misdeed.
    Says(&'static str),
    /// When its input ends, after a shutdown or without one.
    InputEnds {
        /// Which.
        after_shutdown: bool,
    },
    /// When its input ends behind a frame without a line feed.
    LineUnended,
    /// When a line is longer than the limit that it keeps.
    LongLine,
    /// As long as it runs.
    Always,
}

impl Trigger {
    /// What it looks for in a line; nothing, where it does not look at lines.
    pub(crate) fn pattern(self) -> Pattern {
        let text = match self {
            Self::Receives(pattern) | Self::Says(pattern) => pattern.to_owned(),
            Self::When(_, method) => format!(r#"{{"method":"{method}"}}"#),
            Self::Refuses(_, reason) => format!(r#"{{"error":{{"data":{{"reason":"{reason}"}}}}}}"#),
            _ => return Pattern::Absent,
        };
        Pattern::of(&text).unwrap_or(Pattern::Absent)
    }
}

/// What a flawed mock does.
#[derive(Clone, Copy, Debug)]
pub enum Misdeed {
    /// Says this as well.
    Also(&'static str),
    /// Says this instead of what it should.
    Instead(&'static str),
    /// Says this before what it should.
    First(&'static str),
    /// Writes the second text where it should write the first; or reads it so, if it is a host that reads.
    Edit(&'static str, &'static str),
    /// Answers what it would answer, but with this.
    Reply(&'static str),
    /// Says what it should, and this to the next request for the method.
    Then(&'static str, &'static str),
    /// Says nothing.
    Silence,
    /// Says it twice.
    Twice,
    /// Says it with the next thing in the middle.
    Interleave,
    /// Says it this many milliseconds later.
    Delay(u64),
    /// Ends at once, with this code.
    Exit(u8),
    /// Reads no more.
    Deaf,
    /// Writes a line that is longer than a frame may be.
    Overfill,
    /// Keeps a limit on lines of this many hundredths of the frame limit.
    Limit(usize),
    /// Takes a line that is one byte longer than the limit.
    TakesOneMore,
    /// Counts only what a line has between its white space.
    CountsTrimmed,
    /// Looks at the length of a line when it is complete.
    Patient,
    /// Takes what one read gives for a line.
    ByReads,
    /// Ends lines here too.
    EndsLinesAt(&'static str),
    /// Says each thing when it has the next one to say.
    HoldsBack,
    /// Reads on when it has answered what it read.
    Serial,
    /// Goes on running.
    Hang,
    /// Decides otherwise; only ever a host.
    Behaves(fn(&mut reasonix::host::Manners)),
}

/// The flaws of all mocks of `suite`.
pub fn every_flaw(suite: &Suite) -> impl Iterator<Item = &'static Flaw> {
    flaws(suite, Side::Guest).chain(flaws(suite, Side::Host))
}

/// The flaws of the mocks of `suite` on `side`.
pub fn flaws(suite: &Suite, side: Side) -> impl Iterator<Item = &'static Flaw> {
    let edition = suite.edition;
    let (guests, hosts): (_, &[&[Flaw]]) = match suite.family {
        webcodex::FAMILY => (webcodex::FLAWS, &[]),
        _ => (reasonix::FLAWS, reasonix::host_flaws::FLAWS),
    };
    let all = guests.iter().chain(hosts.iter().copied().flatten());
    all.filter(move |flaw| flaw.side == side && flaw.editions & edition != 0)
}

/// A mock guest as a process.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "what has happened to it: each can be so by itself")]
pub struct Mock<'c> {
    guest: Conforming<'c>,
    frame_bytes: usize,
    flaw: Option<&'static Flaw>,
    /// What the flaw's trigger looks for in a line.
    pattern: Pattern,
    fired: bool,
    deframer: Deframer,
    actions: VecDeque<Action>,
    /// Lines that are to be written later.
    later: Vec<(Micros, Vec<u8>)>,
    /// A line that waits for the next one.
    held: Option<Vec<u8>>,
    /// Lines that came while an answer was due, for a mock that serves one request at a time.
    unheard: VecDeque<Vec<u8>>,
    captures: Captures,
    /// What the next request for a method is answered with.
    next: Option<(&'static str, &'static str)>,
    started: bool,
    ended: bool,
    deaf: bool,
    hangs: bool,
}

/// What a mock reads at once that takes each read for a frame, in bytes.
const READ_BYTES: usize = 4096;
/// How much white space a mock takes that does not count it.
const SPACE_MOST: usize = 64;
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
            Some(Misdeed::Patient) => frame_bytes * 2,
            Some(Misdeed::TakesOneMore) => frame_bytes,
            Some(Misdeed::CountsTrimmed) => frame_bytes + SPACE_MOST,
            _ => frame_bytes - 1,
        };
        Self {
            guest: Conforming::of(suite, contract, features),
            frame_bytes,
            flaw,
            pattern: flaw.map_or(Pattern::Absent, |flaw| flaw.at.pattern()),
            fired: false,
            deframer: Deframer::new(limit),
            actions: VecDeque::new(),
            later: Vec::new(),
            held: None,
            unheard: VecDeque::new(),
            captures: Captures::new(),
            next: None,
            started: false,
            ended: false,
            deaf: false,
            hangs: false,
        }
    }

    /// Whether its flaw has shown.
    pub fn fired(&self) -> bool {
        self.fired
    }

    fn does(&self) -> Option<Misdeed> {
        self.flaw.map(|flaw| flaw.does)
    }

    fn misdeed(&mut self, test: impl FnOnce(&Trigger) -> bool) -> Option<Misdeed> {
        let flaw = self.flaw.filter(|flaw| test(&flaw.at))?;
        self.fired = true;
        Some(flaw.does)
    }

    /// Whether the line is too long for it, and what it does then has been done.
    fn refuses(&mut self, line: &[u8]) -> bool {
        let too_long = match self.does() {
            // A line longer than the limit that a conforming guest keeps shows the flaw of one that takes it.
            Some(Misdeed::Limit(100..)) => {
                self.fired |= line.len() >= self.frame_bytes;
                false
            }
            Some(Misdeed::TakesOneMore) => {
                self.fired |= line.len() == self.frame_bytes;
                false
            }
            Some(Misdeed::CountsTrimmed) => {
                self.fired |= line.len() >= self.frame_bytes;
                line.trim_ascii().len() >= self.frame_bytes
            }
            Some(Misdeed::Patient) => {
                self.fired |= line.len() >= self.frame_bytes;
                line.len() >= self.frame_bytes
            }
            _ => false,
        };
        if too_long {
            self.exit(1);
        }
        too_long
    }

    fn line(&mut self, line: &[u8], now: Micros) {
        if matches!(self.flaw, Some(Flaw { at: Trigger::Always, does: Misdeed::Deaf, .. })) {
            (self.fired, self.deaf) = (true, true);
        }
        if self.ended || self.deaf || self.refuses(line) {
            return;
        }
        if matches!(self.does(), Some(Misdeed::Serial)) && self.guest.deadline().is_some() && !is_answer(line)
        {
            self.fired = true;
            return self.unheard.push_back(line.to_vec());
        }
        let misdeed = self.receives(line);
        match misdeed {
            Some(Misdeed::Instead(template)) => return self.say_template(template),
            Some(Misdeed::Silence) => return,
            Some(Misdeed::Exit(code)) => return self.exit(code),
            Some(Misdeed::Deaf) => return self.deaf = true,
            Some(Misdeed::First(template)) => self.say_template(template),
            Some(Misdeed::Overfill) => {
                let overfull = vec![b'x'; self.frame_bytes + self.frame_bytes / 8];
                return self.write(overfull);
            }
            _ => {}
        }
        let mut said = Vec::new();
        self.guest.hear(line, now, &mut said);
        match misdeed {
            Some(Misdeed::Reply(template)) => self.reply(said, template),
            Some(Misdeed::Interleave) => said.into_iter().for_each(|said| match self.held {
                None => self.held = Some(said.line),
                Some(_) => self.write(said.line),
            }),
            Some(Misdeed::Delay(millis)) => {
                self.later.extend(said.into_iter().map(|said| (now + millis * 1_000, said.line)));
            }
            _ => self.say_all(said, now),
        }
        match misdeed {
            Some(Misdeed::Also(template)) => self.say_template(template),
            Some(Misdeed::Then(method, template)) => self.next = Some((method, template)),
            _ => {}
        }
        if self.guest.phase() == Phase::Over {
            self.exit(1);
        }
        while self.guest.deadline().is_none()
            && let Some(line) = self.unheard.pop_front()
        {
            self.line(&line, now);
        }
    }

    /// What it does about a line that comes.
    fn receives(&mut self, line: &[u8]) -> Option<Misdeed> {
        let mut captures = Captures::new();
        let received = match self.flaw?.at {
            Trigger::Receives(_) => matches(&self.pattern, line, &mut captures),
            Trigger::Reads(text) => line.windows(text.len()).any(|window| window == text.as_bytes()),
            Trigger::Blank => line.iter().all(u8::is_ascii_whitespace),
            Trigger::When(phase, _) => {
                self.guest.phase() == phase && matches(&self.pattern, line, &mut captures)
            }
            _ => false,
        };
        if !received {
            return None;
        }
        captures.entry("id".to_owned()).or_insert_with(|| id_of(line));
        self.captures = captures;
        self.misdeed(|_| true)
    }

    /// Answers what it would answer, but with `template`.
    fn reply(&mut self, said: Vec<Said>, template: &str) {
        for said in said {
            if said.answer {
                self.captures.insert("id".to_owned(), id_of(&said.line));
                self.say_template(template);
            } else {
                self.write(said.line);
            }
        }
    }

    fn say_all(&mut self, said: Vec<Said>, now: Micros) {
        for said in said {
            self.say(said, now);
        }
    }

    fn say(&mut self, said: Said, now: Micros) {
        if self.ended {
            return;
        }
        if let Some((_, template)) = self.next.take_if(|(method, _)| said.answer && said.method == *method) {
            self.captures.insert("id".to_owned(), id_of(&said.line));
            return self.say_template(template);
        }
        let mut captures = Captures::new();
        let pattern = std::mem::replace(&mut self.pattern, Pattern::Absent);
        let misdeed = self.misdeed(|at| match at {
            Trigger::Answers(method) => said.answer && said.method == *method,
            Trigger::Refuses(method, _) => {
                said.answer && said.method == *method && matches(&pattern, &said.line, &mut captures)
            }
            Trigger::Asks(method) => !said.answer && said.method == *method,
            Trigger::Says(_) => matches(&pattern, &said.line, &mut captures),
            _ => false,
        });
        self.pattern = pattern;
        if misdeed.is_some() {
            captures.entry("id".to_owned()).or_insert_with(|| id_of(&said.line));
            self.captures = captures;
        }
        match misdeed {
            Some(Misdeed::Edit(find, replace)) => {
                let line = String::from_utf8_lossy(&said.line).replacen(find, replace, 1);
                self.write(line.into_bytes());
            }
            Some(Misdeed::Delay(millis)) => self.later.push((now + millis * 1_000, said.line)),
            Some(Misdeed::Instead(template)) => self.say_template(template),
            Some(Misdeed::Also(template)) => {
                self.write(said.line);
                self.say_template(template);
            }
            Some(Misdeed::First(template)) => {
                self.say_template(template);
                self.write(said.line);
            }
            Some(Misdeed::Silence) => {}
            Some(Misdeed::Twice) => {
                self.write(said.line.clone());
                self.write(said.line);
            }
            Some(Misdeed::Exit(code)) => self.exit(code),
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

    fn write(&mut self, line: Vec<u8>) {
        let held = self.held.take();
        match (self.does(), held) {
            (Some(Misdeed::HoldsBack), held) => {
                self.fired = true;
                self.held = Some(line);
                self.write_lines(held);
            }
            (Some(Misdeed::Interleave), Some(held)) => {
                let (first, rest) = held.split_at(held.len() / 2);
                self.write_lines([[first, &line, rest].concat()]);
            }
            (_, held) => self.write_lines([line].into_iter().chain(held)),
        }
    }

    fn write_lines(&mut self, lines: impl IntoIterator<Item = Vec<u8>>) {
        for mut line in lines {
            line.push(b'\n');
            self.actions.push_back(Action::Write { link: 0, bytes: Bytes::from(line), after_drain: false });
        }
    }

    fn exit(&mut self, code: u8) {
        if !std::mem::replace(&mut self.ended, true) {
            self.actions.push_back(Action::Exit(code));
        }
    }

    fn end(&mut self) {
        let held = self.held.take();
        self.write_lines(held);
        let after_shutdown = self.guest.phase() == Phase::Closing;
        let misdeed = self.misdeed(
            |at| matches!(at, Trigger::InputEnds { after_shutdown: when } if *when == after_shutdown),
        );
        match misdeed {
            Some(Misdeed::Exit(code)) => self.exit(code),
            Some(Misdeed::Hang) => self.hangs = true,
            _ => self.exit(0),
        }
    }

    fn read(&mut self, chunk: &[u8], now: Micros) {
        match self.does() {
            // A long frame never comes in one read, and nobody takes that for a frame.
            Some(Misdeed::ByReads) if chunk.len() < READ_BYTES => {
                self.fired |= !chunk.ends_with(b"\n");
                let lines = chunk.strip_suffix(b"\n").unwrap_or(chunk);
                return lines.split(|byte| *byte == b'\n').for_each(|line| self.line(line, now));
            }
            Some(Misdeed::EndsLinesAt(mark)) => {
                let text = String::from_utf8_lossy(chunk).replace(mark, "\n");
                self.fired |= text.len() != chunk.len();
                return self.lines(text.as_bytes(), now);
            }
            _ => {}
        }
        self.lines(chunk, now);
    }

    fn lines(&mut self, chunk: &[u8], now: Micros) {
        let mut deframer = std::mem::replace(&mut self.deframer, Deframer::new(0));
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) => self.line(line, now),
                Line::Oversize { .. } => {
                    if let Some(Misdeed::Instead(template)) =
                        self.misdeed(|at| matches!(at, Trigger::LongLine))
                    {
                        self.say_template(template);
                    }
                    self.exit(1);
                }
            }
        }
        self.deframer = deframer;
    }
}

impl Machine for Mock<'_> {
    fn handle(&mut self, _: LinkId, input: Input<'_>, now: Micros) {
        match input {
            Input::Bytes(chunk) => self.read(chunk, now),
            Input::Eof => {
                let tail = self.deframer.tail().to_vec();
                let misdeed = match Tape::scan(&tail) {
                    Ok(_) => self.misdeed(|at| matches!(at, Trigger::LineUnended)),
                    Err(_) => None,
                };
                match misdeed {
                    Some(Misdeed::Instead(template)) => self.say_template(template),
                    Some(Misdeed::Silence) => {}
                    _ if tail.is_empty() => {}
                    _ => self.line(&tail, now),
                }
                self.end();
            }
            Input::Tick => {
                let (due, later) =
                    std::mem::take(&mut self.later).into_iter().partition(|(due, _)| *due <= now);
                self.later = later;
                let due: Vec<(Micros, Vec<u8>)> = due;
                for (_, line) in due {
                    self.write(line);
                }
                let mut said = Vec::new();
                self.guest.tick(now, &mut said);
                self.say_all(said, now);
                while self.guest.deadline().is_none()
                    && let Some(line) = self.unheard.pop_front()
                {
                    self.line(&line, now);
                }
            }
            Input::Broken | Input::Interrupted => self.exit(1),
            // The process that it is has one link, and starts no other.
            Input::Wrote(_)
            | Input::Stderr(_)
            | Input::Exited(_)
            | Input::Left(_)
            | Input::Launched(_)
            | Input::NotLaunched(_)
            | Input::Signal(_)
            | Input::Pong => {}
        }
    }

    fn poll(&mut self, _: Micros) -> Option<Action> {
        if !std::mem::replace(&mut self.started, true)
            && let Some(misdeed) = self.misdeed(|at| matches!(at, Trigger::Starts))
        {
            match misdeed {
                Misdeed::Also(text) => self.say_template(text),
                Misdeed::Exit(code) => self.exit(code),
                _ => {}
            }
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Micros> {
        let later = self.later.iter().map(|(due, _)| *due);
        later.chain(self.guest.deadline()).min().or(self.hangs.then_some(HANGS_FOR))
    }
}

fn is_answer(line: &[u8]) -> bool {
    Tape::scan(line).is_ok_and(|tape| tape.root().get("method").is_none())
}

/// The method that a line asks for or tells.
fn method_of(line: &[u8]) -> Option<String> {
    let tape = Tape::scan(line).ok()?;
    Some(tape.root().get("method")?.as_str()?.into_owned())
}

fn id_of(line: &[u8]) -> String {
    let tape = Tape::scan(line).ok();
    let id = tape.as_ref().and_then(|tape| tape.root().get("id"));
    id.map_or_else(|| "null".to_owned(), |id| id.raw().to_owned())
}

fn matches(pattern: &Pattern, line: &[u8], captures: &mut Captures) -> bool {
    let Ok(tape) = Tape::scan(line) else { return false };
    pattern.matches(tape.root(), &std::collections::BTreeMap::new(), captures)
}
