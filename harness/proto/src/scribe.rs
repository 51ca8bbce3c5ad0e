//! What passes between a host and a guest, as a transcript: bytes of both in, however they were cut, events out.
//!
//! ```text
//!  listening --line within the limit--> listening     (a frame)
//!  listening --more than the limit----> skipping      (oversize)
//!  listening --gap--------------------> skipping      (lost: the gap, and what was heard of the line that it cuts)
//!  skipping  --LF---------------------> listening     (lost: what was skipped after a gap)
//! ```
//!
//! Its memory is bounded by the limit on lines, and by what is written into it between two times that it is drained.

use std::borrow::Cow;

use memchr::memchr;

use crate::contract::Side;
use crate::json::Slots;
use crate::machine::{Exited, Micros};
use crate::transcript::{End, Event, Frame, Kind, LINE_BYTES_MAX, Payload, Writer};
use crate::wire::{Deframer, Line};

/// The longest text that is recorded as text, in bytes: escaped it may take six times as much.
const TEXT_BYTES_MAX: usize = LINE_BYTES_MAX / 6 - 1024;

/// Takes down what two others say to each other.
#[derive(Debug)]
pub struct Scribe {
    writer: Writer,
    line_bytes_max: usize,
    host: Ear,
    guest: Ear,
    spare: Slots,
}

/// What is known of the line that one side is writing.
#[derive(Debug)]
struct Ear {
    deframer: Deframer,
    skipping: Option<Skipping>,
}

/// Why the rest of a line is not recorded.
#[derive(Clone, Copy, Debug)]
enum Skipping {
    Oversize,
    /// This much of it was skipped.
    Lost(u64),
}

impl Scribe {
    /// A transcript of the process `process`, with frames of at most `line_bytes_max` bytes, LF not counted.
    pub fn new(process: &str, line_bytes_max: usize) -> Self {
        let ear = || Ear { deframer: Deframer::new(line_bytes_max), skipping: None };
        let (host, guest) = (ear(), ear());
        Self { writer: Writer::new(process), line_bytes_max, host, guest, spare: Slots::default() }
    }

    /// The text so far, of which any prefix may be taken away.
    pub fn text(&mut self) -> &mut Vec<u8> {
        &mut self.writer.text
    }

    /// Takes in what `from` wrote. A frame stands in the transcript where its LF was read.
    pub fn heard(&mut self, t: Micros, from: Side, bytes: &[u8]) {
        let ear = match from {
            Side::Host => &mut self.host,
            Side::Guest => &mut self.guest,
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, ended) = match memchr(b'\n', rest) {
                Some(at) => (&rest[..=at], true),
                None => (rest, false),
            };
            rest = &rest[part.len()..];
            if let Some(skipping) = ear.skipping {
                let skipping = skipping.and(part.len());
                ear.skipping = (!ended).then_some(skipping);
                if ended {
                    skipping.tell(&mut self.writer, t, from);
                }
                continue;
            }
            let mut lines = ear.deframer.push(part);
            let kind = match lines.next() {
                None => continue,
                Some(Line::Whole(line)) => {
                    let payload = payload(line, &mut self.spare);
                    Kind::Frame(Frame { from, label: None, departs: None, open: false, payload })
                }
                Some(Line::Oversize { head, seen }) => {
                    Kind::Oversize { from, head: Cow::Borrowed(head), seen }
                }
            };
            tell(&mut self.writer, t, kind);
            if ear.deframer.is_stopped() {
                ear.deframer = Deframer::new(self.line_bytes_max);
                ear.skipping = (!ended).then_some(Skipping::Oversize);
            }
        }
    }

    /// Takes in that so many bytes of `from` were not heard. Nothing is recorded of the line that this cuts.
    pub fn missed(&mut self, t: Micros, from: Side, bytes: u64) {
        let line_bytes_max = self.line_bytes_max;
        let ear = self.ear(from);
        let begun = ear.deframer.tail().len() as u64;
        let before = match ear.skipping {
            Some(Skipping::Lost(before)) => before,
            _ => 0,
        };
        ear.deframer = Deframer::new(line_bytes_max);
        ear.skipping = Some(Skipping::Lost(0));
        tell(&mut self.writer, t, Kind::Lost { from, bytes: before + begun + bytes });
    }

    /// Takes in that `from` will write no more.
    pub fn closed(&mut self, t: Micros, from: Side) {
        self.finish(t, from);
        tell(&mut self.writer, t, Kind::Closed { from });
    }

    /// Takes in anything else.
    pub fn happened(&mut self, t: Micros, kind: Kind<'_>) {
        tell(&mut self.writer, t, kind);
    }

    /// Takes in that the guest has ended. Lines that have not ended by then never will.
    pub fn exited(&mut self, t: Micros, exited: Exited) {
        self.finish(t, Side::Host);
        self.finish(t, Side::Guest);
        tell(&mut self.writer, t, Kind::Exited(exited));
    }

    /// Ends the transcript.
    pub fn end(&mut self, end: End) {
        self.writer.footer(end);
    }

    /// Tells what is left of the last line of `from`.
    fn finish(&mut self, t: Micros, from: Side) {
        let line_bytes_max = self.line_bytes_max;
        let ear = self.ear(from);
        let deframer = std::mem::replace(&mut ear.deframer, Deframer::new(line_bytes_max));
        if let Some(skipping) = ear.skipping.take() {
            skipping.tell(&mut self.writer, t, from);
        } else if !deframer.tail().is_empty() {
            let payload = payload(deframer.tail(), &mut self.spare);
            tell(&mut self.writer, t, Kind::Tail { from, payload });
        }
    }

    fn ear(&mut self, of: Side) -> &mut Ear {
        match of {
            Side::Host => &mut self.host,
            Side::Guest => &mut self.guest,
        }
    }
}

impl Skipping {
    fn and(self, more: usize) -> Self {
        match self {
            Self::Oversize => Self::Oversize,
            Self::Lost(bytes) => Self::Lost(bytes + more as u64),
        }
    }

    fn tell(self, writer: &mut Writer, t: Micros, from: Side) {
        match self {
            Self::Oversize | Self::Lost(0) => {}
            Self::Lost(bytes) => tell(writer, t, Kind::Lost { from, bytes }),
        }
    }
}

fn tell(writer: &mut Writer, t: Micros, kind: Kind<'_>) {
    writer.event(&Event { t, link: 0, kind });
}

/// The form of a line, such that what is read again is never too long.
fn payload<'l>(line: &'l [u8], spare: &mut Slots) -> Payload<'l> {
    match Payload::of_in(line, spare) {
        Payload::Text(text) if text.len() > TEXT_BYTES_MAX => Payload::Bytes(Cow::Borrowed(line)),
        payload => payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Record, read};

    enum Heard<'h> {
        Host(&'h str),
        Guest(&'h str),
        Missed(Side, u64),
        Closed(Side),
    }
    use Heard::{Closed, Guest, Host, Missed};

    fn check(limit: usize, all: &[Heard<'_>], expected: &[&str]) {
        let mut scribe = Scribe::new("x", limit);
        for (t, heard) in (1..).zip(all) {
            match *heard {
                Host(text) => scribe.heard(t, Side::Host, text.as_bytes()),
                Guest(text) => scribe.heard(t, Side::Guest, text.as_bytes()),
                Missed(from, bytes) => scribe.missed(t, from, bytes),
                Closed(from) => scribe.closed(t, from),
            }
        }
        scribe.exited(99, Exited::Code(0));
        scribe.end(End::Done);
        let text = String::from_utf8(std::mem::take(scribe.text())).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(&lines[1..lines.len() - 2], expected);
        assert_eq!(lines[lines.len() - 2], r#"{"t":99,"exited":{"code":0}}"#);
        for line in &lines {
            assert!(!matches!(
                read(line.as_bytes()),
                Ok(Record::Event(Event { kind: Kind::Unknown(_), .. }))
            ));
        }
        let footer = format!("{{\"end\":\"done\",\"events\":{}}}", expected.len() + 1);
        assert_eq!(lines.last(), Some(&footer.as_str()));
    }

    #[test]
    fn a_frame_stands_where_it_ended() {
        check(
            16,
            &[Host("{\"a\""), Guest("1\n x\n"), Host(":1}\n2\n"), Guest("ab"), Closed(Side::Guest)],
            &[
                r#"{"t":2,"from":"guest","json":1}"#,
                r#"{"t":2,"from":"guest","text":" x"}"#,
                r#"{"t":3,"from":"host","json":{"a":1}}"#,
                r#"{"t":3,"from":"host","json":2}"#,
                r#"{"t":5,"tail":{"from":"guest","text":"ab"}}"#,
                r#"{"t":5,"closed":{"from":"guest"}}"#,
            ],
        );
    }

    #[test]
    fn after_a_line_that_is_too_long_the_next_one_counts() {
        let oversize = r#"{"t":1,"oversize":{"from":"guest","head":"YWJjZGU=","seen":5}}"#;
        let frame = |t: u32| format!(r#"{{"t":{t},"from":"guest","json":1}}"#);
        check(4, &[Guest("abcde\n1\n")], &[oversize, &frame(1)]);
        check(4, &[Guest("abcde"), Guest("fghij"), Guest("k\n1\n")], &[oversize, &frame(3)]);
        check(4, &[Guest("abcde"), Closed(Side::Guest)], &[oversize, r#"{"t":2,"closed":{"from":"guest"}}"#]);
    }

    #[test]
    fn what_was_missed_takes_the_line_that_it_cuts_with_it() {
        check(
            16,
            &[Guest("1\n23"), Missed(Side::Guest, 7), Host("1\n"), Guest("4"), Guest("5\n6\n")],
            &[
                r#"{"t":1,"from":"guest","json":1}"#,
                r#"{"t":2,"lost":{"from":"guest","bytes":9}}"#,
                r#"{"t":3,"from":"host","json":1}"#,
                r#"{"t":5,"lost":{"from":"guest","bytes":3}}"#,
                r#"{"t":5,"from":"guest","json":6}"#,
            ],
        );
        check(
            16,
            &[Missed(Side::Host, 1), Host("ab"), Missed(Side::Host, 1), Host("c"), Closed(Side::Host)],
            &[
                r#"{"t":1,"lost":{"from":"host","bytes":1}}"#,
                r#"{"t":3,"lost":{"from":"host","bytes":3}}"#,
                r#"{"t":5,"lost":{"from":"host","bytes":1}}"#,
                r#"{"t":5,"closed":{"from":"host"}}"#,
            ],
        );
    }

    #[test]
    fn a_line_of_controls_is_not_recorded_as_text_when_that_is_too_long() {
        let line = vec![0x01; TEXT_BYTES_MAX + 1];
        assert!(matches!(payload(&line, &mut Slots::default()), Payload::Bytes(_)));
        assert!(matches!(payload(&line[1..], &mut Slots::default()), Payload::Text(_)));
    }
}
