//! A conversation that somebody else kept, as a transcript.
//!
//! [`Log`] reads one that has both directions, a frame a line; other members of a line are passed over:
//!
//! ```text
//! {"dir":"host->guest","frame":{"jsonrpc":"2.0","id":1,"method":…}}
//! {"dir":"guest->host","raw":"a line that is no JSON"}
//! ```
//!
//! [`Merge`] reads two, one of each direction, as they went over the wire. These do not tell what came before what
//! between them, but for an answer, which comes after its question: so they are read [`Guest::Early`] and
//! [`Guest::Late`], and what does not come out the same is not known.
//!
//! No log has a clock: every event is at the time of its number, and what is judged without scripts asks for no time.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use crate::contract::{Contract, Side};
use crate::json::Tape;
use crate::rpc::{self, Envelope, Id};
use crate::suite::Suite;
use crate::transcript::{End, Event, Frame, Kind, LINE_BYTES_MAX, Payload, Writer};
use crate::wire::{Deframer, Line};

/// How many ids of questions are remembered on each side of a merge; the lowest are forgotten first.
const ASKED_MOST: usize = 1 << 16;

/// The member of a line of a log that says who wrote the frame.
pub const DIRECTION: &str = "dir";

/// Who wrote a frame of this direction.
pub fn side(direction: &str) -> Option<Side> {
    match direction {
        "host->guest" => Some(Side::Host),
        "guest->host" => Some(Side::Guest),
        _ => None,
    }
}

/// Why a log is none, or not all of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFault {
    /// In which line, counted from 1.
    pub line: u64,
    /// What is wrong there.
    pub says: String,
    /// Whether nothing in the log can be judged for it. Otherwise what stands before that line can.
    pub all: bool,
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.says)
    }
}

impl std::error::Error for LogFault {}

/// The transcript that is being made.
#[derive(Debug)]
struct Made<'c> {
    contract: &'c Contract,
    declared_by: &'static str,
    writer: Writer,
    /// In which line the conversation begins.
    began: Option<u64>,
    /// How many frames the side sent whose method it is, and how many the other one.
    right: u64,
    wrong: u64,
    /// The first of the wrong ones: the line, the method, and whose it is.
    first_wrong: Option<(u64, String, Side)>,
    over: bool,
}

impl<'c> Made<'c> {
    fn new(name: &str, suite: &Suite, contract: &'c Contract) -> Self {
        Self {
            contract,
            declared_by: suite.declared_by,
            writer: Writer::new(name),
            began: None,
            right: 0,
            wrong: 0,
            first_wrong: None,
            over: false,
        }
    }

    /// A frame, which stands in this line; `method` is what it names.
    fn frame(
        &mut self,
        line: u64,
        from: Side,
        method: Option<&str>,
        payload: Payload<'_>,
    ) -> Result<(), String> {
        if let Some(method) = method.and_then(|name| self.contract.method(name)) {
            if method.from == from {
                self.right += 1;
            } else {
                self.wrong += 1;
                self.first_wrong.get_or_insert_with(|| (line, method.name.clone(), method.from));
            }
            if method.name == self.declared_by {
                if let Some(began) = self.began {
                    let name = &method.name;
                    return Err(format!(
                        "{name} again, after line {began}: another conversation begins, to be judged for itself"
                    ));
                }
                self.began = Some(line);
            }
        }
        let kind = Kind::Frame(Frame { from, label: None, departs: None, open: false, payload });
        self.writer.event(&Event { t: self.writer.events(), link: 0, kind });
        Ok(())
    }

    fn stop(&mut self, line: u64, says: String) -> LogFault {
        self.end(End::Cut);
        LogFault { line, says, all: false }
    }

    fn end(&mut self, end: End) {
        if !std::mem::replace(&mut self.over, true) {
            self.writer.footer(end);
        }
    }

    /// Everything was read. One side that sends what is the other's may do wrong; where most is so, we were misled.
    fn finish(&mut self) -> Result<(), LogFault> {
        self.end(End::Done);
        match self.first_wrong.take() {
            Some((line, method, side)) if self.wrong > self.right => {
                let (other, frames) = (side.opposite(), self.wrong);
                let says = format!(
                    "{method} is the {side}'s to send, and here the {other} does; so it is with most frames that tell \
                     ({frames}): the directions are swapped"
                );
                Err(LogFault { line, says, all: true })
            }
            _ => Ok(()),
        }
    }
}

/// Makes a transcript of a log of both directions, piece by piece. Event N of it is line N + 1 of the log.
#[derive(Debug)]
pub struct Log<'c> {
    made: Made<'c>,
    deframer: Deframer,
    lines: u64,
}

impl<'c> Log<'c> {
    /// A log of the process `name`.
    pub fn new(name: &str, suite: &Suite, contract: &'c Contract) -> Self {
        let deframer = Deframer::new(LINE_BYTES_MAX);
        Self { made: Made::new(name, suite, contract), deframer, lines: 0 }
    }

    /// The transcript so far, of which any prefix may be taken away.
    pub fn transcript(&mut self) -> &mut Vec<u8> {
        &mut self.made.writer.text
    }

    /// Reads on. Any cut of the log into chunks will do; after a fault nothing more is read.
    pub fn read(&mut self, chunk: &[u8]) -> Result<(), LogFault> {
        let mut deframer = std::mem::replace(&mut self.deframer, Deframer::new(0));
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            self.lines += 1;
            let read = match line {
                Line::Whole(line) => self.line(line),
                Line::Oversize { .. } => Err(format!("longer than {LINE_BYTES_MAX} bytes")),
            };
            if let Err(says) = read {
                return Err(self.made.stop(self.lines, says));
            }
        }
        self.deframer = deframer;
        Ok(())
    }

    /// The log is over.
    pub fn finish(&mut self) -> Result<(), LogFault> {
        let rest = self.deframer.tail().to_vec();
        if rest.is_empty() && self.lines == 0 {
            self.made.end(End::Done);
            return Err(LogFault {
                line: 1,
                says: "there is none: nothing was logged".to_owned(),
                all: true,
            });
        }
        if !rest.is_empty() {
            self.lines += 1;
            if let Err(says) = self.line(&rest) {
                return Err(self.made.stop(self.lines, format!("cut off: {says}")));
            }
        }
        self.made.finish()
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let tape = Tape::scan(line).map_err(|fault| format!("not JSON: {fault}"))?;
        let root = tape.root();
        let dir = root.get(DIRECTION).and_then(|dir| dir.as_str());
        let dir = dir.ok_or("no \"dir\", which is \"host->guest\" or \"guest->host\"")?;
        let other = || format!("dir is {dir:?}; it is \"host->guest\" or \"guest->host\"");
        let from = side(&dir).ok_or_else(other)?;
        match (root.get("frame"), root.get("raw").and_then(|raw| raw.as_str())) {
            (Some(frame), _) => {
                let method = frame.get("method").and_then(|method| method.as_str());
                let payload = Payload::Json(Cow::Borrowed(frame.raw()));
                self.made.frame(self.lines, from, method.as_deref(), payload)
            }
            (None, Some(text)) => self.made.frame(self.lines, from, None, Payload::Text(text)),
            (None, None) => Err("neither \"frame\", which is JSON, nor \"raw\", a text".to_owned()),
        }
    }
}

/// When a merge takes what the guest wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// As soon as it can have written it.
    Early,
    /// When the host cannot have gone on without it.
    Late,
}

/// Makes a transcript of two logs, one of each direction, line by line.
#[derive(Debug)]
pub struct Merge<'c> {
    made: Made<'c>,
    guest: Guest,
    host: Way,
    of_guest: Way,
}

/// One direction of a merge.
#[derive(Debug, Default)]
struct Way {
    /// Lines that were read and not yet taken.
    waiting: VecDeque<Vec<u8>>,
    /// The ids of the questions that were taken.
    asked: BTreeSet<i64>,
    taken: u64,
    /// How many of them are JSON-RPC.
    frames: u64,
    over: bool,
}

impl<'c> Merge<'c> {
    /// A merge for the process `name`.
    pub fn new(name: &str, suite: &Suite, contract: &'c Contract, guest: Guest) -> Self {
        Self { made: Made::new(name, suite, contract), guest, host: Way::default(), of_guest: Way::default() }
    }

    /// The transcript so far, of which any prefix may be taken away.
    pub fn transcript(&mut self) -> &mut Vec<u8> {
        &mut self.made.writer.text
    }

    /// How many lines of `side` were read.
    pub fn taken(&self, side: Side) -> u64 {
        let way = match side {
            Side::Host => &self.host,
            Side::Guest => &self.of_guest,
        };
        way.taken + way.waiting.len() as u64
    }

    /// Whose next line is wanted before the merge can go on; `None` when it is over.
    pub fn wants(&self) -> Option<Side> {
        [(Side::Host, &self.host), (Side::Guest, &self.of_guest)]
            .into_iter()
            .find_map(|(side, way)| (way.waiting.is_empty() && !way.over).then_some(side))
    }

    /// The next line of `side`, without its LF, or `None` after the last one.
    pub fn take(&mut self, side: Side, line: Option<&[u8]>) -> Result<(), LogFault> {
        let way = self.way(side);
        match line {
            Some(line) => way.waiting.push_back(line.to_vec()),
            None => way.over = true,
        }
        while self.wants().is_none() {
            let first = match self.guest {
                Guest::Early => Side::Guest,
                Guest::Late => Side::Host,
            };
            let Some(side) = [first, first.opposite()]
                .into_iter()
                .find(|side| self.may_go(*side))
                // An answer to what was never asked has to stand somewhere.
                .or_else(|| {
                    [Side::Host, Side::Guest].into_iter().find(|side| !self.way(*side).waiting.is_empty())
                })
            else {
                return self.without_frames().map_or_else(|| self.made.finish(), Err);
            };
            self.go(side)?;
        }
        Ok(())
    }

    /// What is wrong where one of the files is none of a conversation: nothing can be told of the other one, either.
    fn without_frames(&mut self) -> Option<LogFault> {
        let (side, way) = [(Side::Host, &self.host), (Side::Guest, &self.of_guest)]
            .into_iter()
            .find(|(_, way)| way.frames == 0)?;
        let says = format!("nothing in the file of the {side} is a JSON-RPC frame");
        let line = way.taken.max(1);
        self.made.end(End::Done);
        Some(LogFault { line, says, all: true })
    }

    fn way(&mut self, side: Side) -> &mut Way {
        match side {
            Side::Host => &mut self.host,
            Side::Guest => &mut self.of_guest,
        }
    }

    /// Whether the next line of `side` can have been written by now.
    fn may_go(&mut self, side: Side) -> bool {
        let Some(line) = self.way(side).waiting.front() else { return false };
        let Ok(tape) = Tape::scan(line) else { return true };
        match rpc::classify(tape.root()) {
            Ok(Envelope::Response { id: Id::Integer(id), .. }) => {
                self.way(side.opposite()).asked.contains(&id)
            }
            _ => true,
        }
    }

    fn go(&mut self, side: Side) -> Result<(), LogFault> {
        let way = self.way(side);
        let Some(line) = way.waiting.pop_front() else { return Ok(()) };
        way.taken += 1;
        let number = way.taken;
        let tape = Tape::scan(&line).ok();
        let method =
            tape.as_ref().and_then(|tape| tape.root().get("method")).and_then(|method| method.as_str());
        let envelope = tape.as_ref().map(|tape| rpc::classify(tape.root()));
        way.frames += u64::from(matches!(envelope, Some(Ok(_))));
        match envelope {
            Some(Ok(Envelope::Request { id: Id::Integer(id), .. })) => {
                if way.asked.len() >= ASKED_MOST {
                    way.asked.pop_first();
                }
                way.asked.insert(id);
            }
            Some(Ok(Envelope::Response { id: Id::Integer(id), .. })) => {
                self.way(side.opposite()).asked.remove(&id);
            }
            _ => {}
        }
        let framed = self.made.frame(number, side, method.as_deref(), Payload::of(&line));
        framed.map_err(|says| self.made.stop(number, says))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{self, Record};

    const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    const TELL: &str = r#"{"jsonrpc":"2.0","method":"n"}"#;

    fn sides(transcript: &[u8]) -> Vec<Side> {
        let lines = transcript.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .filter_map(|line| match transcript::read(line).unwrap() {
                Record::Event(Event { kind: Kind::Frame(frame), .. }) => Some(frame.from),
                _ => None,
            })
            .collect()
    }

    fn merged(guest: Guest, of_host: &[&str], of_guest: &[&str]) -> Vec<Side> {
        let contract = crate::reasonix::contract::v1();
        let mut merge = Merge { made: made(contract), guest, host: Way::default(), of_guest: Way::default() };
        let (mut host, mut guest) = (of_host.iter(), of_guest.iter());
        while let Some(side) = merge.wants() {
            let next = if side == Side::Host { host.next() } else { guest.next() };
            merge.take(side, next.map(|line| line.as_bytes())).unwrap();
        }
        sides(merge.transcript())
    }

    fn made(contract: &Contract) -> Made<'_> {
        Made {
            contract,
            declared_by: crate::reasonix::contract::INITIALIZE,
            writer: Writer::new("test"),
            began: None,
            right: 0,
            wrong: 0,
            first_wrong: None,
            over: false,
        }
    }

    #[test]
    fn an_answer_comes_after_its_question_and_all_else_early_or_late() {
        use Side::{Guest as G, Host as H};
        for (guest, expected) in [(Guest::Early, [G, H, G, H]), (Guest::Late, [H, H, G, G])] {
            assert_eq!(merged(guest, &[ASK, TELL], &[TELL, ANSWER]), expected, "{guest:?}");
        }
        // The host answers what the guest must have asked by then.
        assert_eq!(merged(Guest::Late, &[ANSWER, TELL], &[ASK]), [G, H, H]);
        // An answer to nothing still stands somewhere.
        assert_eq!(merged(Guest::Late, &[TELL], &[ANSWER]), [H, G]);
    }

    #[test]
    fn however_a_log_is_cut_it_is_the_same_transcript() {
        let text = format!(
            "{{\"dir\":\"host->guest\",\"frame\":{ASK}}}\n{{\"dir\":\"guest->host\",\"raw\":\"noise\"}}\n"
        );
        let read = |size: usize| {
            let contract = crate::reasonix::contract::v1();
            let deframer = Deframer::new(LINE_BYTES_MAX);
            let mut log = Log { made: made(contract), deframer, lines: 0 };
            for chunk in text.as_bytes().chunks(size) {
                log.read(chunk).unwrap();
            }
            log.finish().unwrap();
            log.transcript().clone()
        };
        assert_eq!(sides(&read(1)), [Side::Host, Side::Guest]);
        assert_eq!(read(1), read(text.len()));
    }
}
