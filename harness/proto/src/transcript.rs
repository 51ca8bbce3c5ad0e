//! The record of one process, format 1: JSON lines, a header, events, a footer.
//!
//! ```text
//! {"transcript":1,"process":"001-tour"}
//! {"t":0,"script":{"name":"handshake","phase":"begin"}}
//! {"t":12,"from":"host","as":"initialize","json":{"jsonrpc":"2.0","id":1,"method":…}}
//! {"t":2304,"from":"guest","json":{"jsonrpc":"2.0","id":1,"result":…}}
//! {"end":"done","events":3}
//! ```
//!
//! `t` is in microseconds since the process was launched, and never goes back; `l` is the link, absent when it is 0. A frame of the target
//! stands where its LF was read, a frame of ours where it was offered. Reading and then writing is the identity for
//! what this writer wrote, and for events of kinds that it does not know.

mod names;
mod reading;

pub(crate) use reading::read_payload;
pub use reading::{Plain, read, read_plain};

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::contract::Side;
use crate::json::{self, Slots, Tape};
use crate::machine::{Exited, Left, LinkId, Micros};
use names::side_name;

/// The version of the format.
pub const FORMAT: u64 = 1;

/// The longest line that a recording may have, in bytes: a frame of 16 MiB in base64 and what stands around it.
pub const LINE_BYTES_MAX: usize = 24 << 20;

/// The most bytes that a `fill` may stand for.
pub const FILL_BYTES_MAX: u64 = 16 << 20;
/// How many letters of an escape may stand behind its backslash.
const ESCAPE_BYTES_MAX: usize = 5;
/// From how many repetitions on a letter is recorded by how often it stands there.
const FILL_BYTES_MIN: usize = 4 << 10;

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The first line.
    Header {
        /// Which process of its run this is.
        process: Cow<'a, str>,
    },
    /// Something that happened.
    Event(Event<'a>),
    /// The last line.
    Footer {
        /// How the recording ended.
        end: End,
        /// How many events precede it.
        events: u64,
    },
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every script was played and the process ended.
    Done,
    /// A script could not go on.
    Cut,
    /// The user stopped it.
    Interrupted,
}

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When, since the process was launched.
    pub t: Micros,
    /// On which link.
    pub link: LinkId,
    /// What.
    pub kind: Kind<'a>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A line of `from`.
    Frame(Frame<'a>),
    /// A line of `from` beyond the limit, of which `seen` bytes arrived before it was given up.
    Oversize {
        /// Whose.
        from: Side,
        /// Its first bytes.
        head: Cow<'a, [u8]>,
        /// How many bytes arrived.
        seen: u64,
    },
    /// What stood after the last LF when the link ended.
    Tail {
        /// Whose.
        from: Side,
        /// The bytes.
        payload: Payload<'a>,
    },
    /// The last byte of a frame of ours was accepted. Absent when that was within [`WROTE_SILENT_MICROS`] of offering.
    Wrote {
        /// The label of the frame.
        label: Option<Cow<'a, str>>,
        /// How it was cut: the bytes of each part; empty when it was not.
        parts: Vec<u64>,
    },
    /// When a wait of ours ended in vain, the target had not taken all that we had offered.
    Blocked {
        /// How many bytes it had not taken.
        bytes: u64,
    },
    /// What `from` wrote here was relayed and not recorded: recording could not keep up. A frame that it cuts is part
    /// of that. Only ever in what was recorded between two others.
    Lost {
        /// Whose.
        from: Side,
        /// How many bytes.
        bytes: u64,
    },
    /// The target takes no more bytes from us.
    Broken,
    /// `from` will send no more.
    Closed {
        /// Who.
        from: Side,
    },
    /// The process ended.
    Exited(Exited),
    /// We ended it.
    Killed,
    /// It left another process running, which has been killed.
    Left(Left),
    /// Text on its standard error; `dropped` bytes before it were not kept.
    Stderr {
        /// The text, invalid UTF-8 replaced.
        text: Cow<'a, str>,
        /// How many bytes were not kept.
        dropped: u64,
    },
    /// A wait of ours ended with what it waited for.
    Waited {
        /// What for.
        wait: Wait,
        /// The label of the step, or of the frame whose answer it was.
        label: Option<Cow<'a, str>>,
        /// How long it took.
        took: Micros,
        /// How long it might have taken.
        within: Micros,
    },
    /// A wait of ours ended without.
    TimedOut {
        /// What for.
        wait: Wait,
        /// The label of the step, or of the frame whose answer it was.
        label: Option<Cow<'a, str>>,
        /// How long we waited.
        within: Micros,
    },
    /// We were not running when a deadline came, and waited for as long again.
    Starved {
        /// How late we were.
        late: Micros,
    },
    /// A script begins.
    Begin {
        /// Which.
        script: Cow<'a, str>,
    },
    /// A script ends.
    Ended {
        /// Which.
        script: Cow<'a, str>,
        /// Why it could not be played to its end; `None` when it was.
        cut: Option<Cow<'a, str>>,
    },
    /// Something around a host under test, as one JSON text.
    Told {
        /// What.
        what: Told,
        /// What our script calls it.
        label: Option<Cow<'a, str>>,
        /// What there is to say of it.
        json: Cow<'a, str>,
    },
    /// A kind that this version does not know, kept as it stands.
    Unknown(Cow<'a, str>),
}

/// What is recorded around a host under test. The JSON of each stands in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The shim said what it is and does (its line).
    Shim,
    /// We asked the shim for something (our line).
    Ask,
    /// What came of an ask (the shim's line).
    Outcome,
    /// The host showed this to its user (the shim's line).
    Shown,
    /// The host keeps this for itself (the shim's line).
    Found,
    /// The shim wrote something else (its line, as a string where it is no JSON).
    Other,
    /// Every guest has heard all that the host had written to it (`true`).
    Settled,
    /// The driver cannot bring about what the script needs (why).
    Beyond,
    /// The host launched the guest on this link (what it tells of itself).
    Launched,
    /// The process of a guest of ours did something that was not writing (what).
    Did,
    /// It was sent this signal and went on (its number).
    Signal,
    /// It is there (`true`).
    Alive,
    /// It is gone (`true`).
    Gone,
}

/// A frame that is accepted sooner than this after it was offered has no `wrote` event. Microseconds.
pub const WROTE_SILENT_MICROS: Micros = 1_000;

/// What a wait was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The first answer of the process.
    Start,
    /// A frame, mostly the answer to one of ours.
    Answer,
    /// The answer to a fence.
    Fence,
    /// Silence.
    Quiet,
    /// The end of the process.
    Exit,
    /// What came of an ask.
    Outcome,
    /// The launch of a guest by a host under test.
    Launch,
    /// The end of such a guest, or a sign of its life.
    Gone,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Who wrote it.
    pub from: Side,
    /// What our script calls it.
    pub label: Option<Cow<'a, str>>,
    /// What makes it wrong on purpose; only ever on a frame of ours.
    pub departs: Option<Cow<'a, str>>,
    /// Whether its LF was left out; only ever on a frame of ours.
    pub open: bool,
    /// Its bytes, without the LF.
    pub payload: Payload<'a>,
}

/// The bytes of a frame, in the form in which they are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// One JSON text in UTF-8 without outer white space, verbatim.
    Json(Cow<'a, str>),
    /// Other UTF-8.
    Text(Cow<'a, str>),
    /// Anything else.
    Bytes(Cow<'a, [u8]>),
    /// `head`, then `count` times `byte`, then `tail`.
    Fill {
        /// What comes first.
        head: Cow<'a, str>,
        /// The byte that is repeated; ASCII.
        byte: u8,
        /// How many times.
        count: u64,
        /// What comes last.
        tail: Cow<'a, str>,
    },
}

impl<'a> Payload<'a> {
    /// The form for these bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self::of_in(bytes, &mut Slots::default())
    }

    /// [`Self::of`], in memory that is kept for the next one.
    pub fn of_in(bytes: &'a [u8], spare: &mut Slots) -> Self {
        let white = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
        // A line feed is legal inside of JSON, but a line of a transcript has only one, at its end.
        let verbatim =
            !white(bytes.first()) && !white(bytes.last()) && memchr::memchr(b'\n', bytes).is_none();
        if verbatim {
            match Tape::scan_in(bytes, std::mem::take(spare)) {
                Ok(tape) => {
                    let text = tape.text();
                    *spare = tape.into_spare();
                    return Self::Json(Cow::Borrowed(text));
                }
                Err((_, slots)) => *spare = slots,
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(Cow::Borrowed(text)),
            Err(_) => Self::Bytes(Cow::Borrowed(bytes)),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Json(text) | Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Fill { head, byte, count, tail } => {
                let count = usize::try_from(*count.min(&FILL_BYTES_MAX)).unwrap_or_default();
                let mut bytes = Vec::with_capacity(head.len() + count + tail.len() + 1);
                bytes.extend_from_slice(head.as_bytes());
                bytes.resize(head.len() + count, *byte);
                bytes.extend_from_slice(tail.as_bytes());
                Cow::Owned(bytes)
            }
        }
    }

    /// The id of the request that they are. What a fill repeats stands in a string, so it is not needed to tell.
    pub fn id(&self) -> Option<i64> {
        let bytes = match self {
            Self::Fill { head, tail, .. } => Cow::Owned([head.as_bytes(), tail.as_bytes()].concat()),
            other => other.bytes(),
        };
        let tape = Tape::scan(&bytes).ok()?;
        tape.root().get("id").filter(|id| id.is_written_as_integer()).and_then(|id| id.as_i64())
    }

    /// How many bytes they are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Json(text) | Self::Text(text) => text.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Fill { head, count, tail, .. } => head.len() as u64 + count + tail.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a text is no recording: in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub(crate) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

// ---- writing ----

/// Writes a transcript into memory; whoever owns the file drains it.
#[derive(Debug, Default)]
pub struct Writer {
    /// The text so far, of which any prefix may be taken away.
    pub text: Vec<u8>,
    events: u64,
}

impl Writer {
    /// A transcript of the process `process`.
    pub fn new(process: &str) -> Self {
        let mut writer = Self::default();
        writer.record(&Record::Header { process: Cow::Borrowed(process) });
        writer
    }

    /// How many events were written.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Appends an event.
    pub fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        write_event(&mut self.text, event);
    }

    /// Appends the footer.
    pub fn footer(&mut self, end: End) {
        let events = self.events;
        self.record(&Record::Footer { end, events });
    }

    /// Appends any line.
    pub fn record(&mut self, record: &Record<'_>) {
        let out = &mut self.text;
        match record {
            Record::Header { process } => {
                out.extend_from_slice(b"{\"transcript\":");
                number(out, FORMAT);
                member(out, "process", process);
                out.extend_from_slice(b"}\n");
            }
            Record::Event(event) => self.event(event),
            Record::Footer { end, events } => {
                out.extend_from_slice(b"{\"end\":");
                json::write_str(out, end.name());
                out.extend_from_slice(b",\"events\":");
                number(out, *events);
                out.extend_from_slice(b"}\n");
            }
        }
    }
}

fn write_event(out: &mut Vec<u8>, event: &Event<'_>) {
    if let Kind::Unknown(line) = &event.kind {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        return;
    }
    out.extend_from_slice(b"{\"t\":");
    number(out, event.t);
    if event.link != 0 {
        out.extend_from_slice(b",\"l\":");
        number(out, event.link as u64);
    }
    match &event.kind {
        Kind::Frame(frame) => write_frame(out, frame),
        Kind::Told { what, label, json } => {
            optional(out, "as", label.as_deref());
            out.extend_from_slice(format!(",\"{}\":", what.name()).as_bytes());
            out.extend_from_slice(json.as_bytes());
        }
        kind => write_kind(out, kind),
    }
    out.extend_from_slice(b"}\n");
}

fn write_frame(out: &mut Vec<u8>, frame: &Frame<'_>) {
    out.extend_from_slice(match frame.from {
        Side::Host => b",\"from\":\"host\"",
        Side::Guest => b",\"from\":\"guest\"",
    });
    optional(out, "as", frame.label.as_deref());
    optional(out, "departs", frame.departs.as_deref());
    if frame.open {
        out.extend_from_slice(b",\"open\":true");
    }
    write_payload(out, &frame.payload);
}

/// Appends `,"json":…`, `,"text":…`, `,"base64":…` or `,"fill":…`.
pub(crate) fn write_payload(out: &mut Vec<u8>, payload: &Payload<'_>) {
    match payload {
        Payload::Json(text) => {
            if let Some(fill) = filled(text) {
                return write_payload(out, &fill);
            }
            out.extend_from_slice(b",\"json\":");
            out.extend_from_slice(text.as_bytes());
        }
        Payload::Text(text) => member(out, "text", text),
        Payload::Bytes(bytes) => member(out, "base64", &BASE64.encode(bytes)),
        Payload::Fill { head, byte, count, tail } => {
            out.extend_from_slice(b",\"fill\":{\"head\":");
            json::write_str(out, head);
            member(out, "byte", &char::from(*byte).to_string());
            out.extend_from_slice(b",\"n\":");
            number(out, *count);
            member(out, "tail", tail);
            out.push(b'}');
        }
    }
}

/// A JSON text as a fill, if most of it is one letter that is repeated, as in frames that are to be long: megabytes that
/// say nothing need no place on a disk. Letters, since a run of those can only stand in a string.
fn filled(text: &str) -> Option<Payload<'_>> {
    if text.len() < 2 * FILL_BYTES_MIN {
        return None;
    }
    let bytes = text.as_bytes();
    let middle = bytes.len() / 2;
    let byte = bytes[middle];
    let before = bytes[..middle].iter().rev().take_while(|one| **one == byte).count();
    let after = bytes[middle..].iter().take_while(|one| **one == byte).count();
    // The first ones may belong to an escape, `\u00aa` at the longest, which is not to be torn apart.
    let (start, end) = ((middle - before + ESCAPE_BYTES_MAX).min(middle), middle + after);
    let count = (end - start) as u64;
    (byte.is_ascii_alphabetic() && (FILL_BYTES_MIN as u64..=FILL_BYTES_MAX).contains(&count)).then(|| {
        let (head, tail) = (Cow::Borrowed(&text[..start]), Cow::Borrowed(&text[end..]));
        Payload::Fill { head, byte, count, tail }
    })
}

fn write_kind(out: &mut Vec<u8>, kind: &Kind<'_>) {
    let mut object = Members::begin(out, kind.name());
    match kind {
        Kind::Oversize { from, head, seen } => {
            object.text("from", side_name(*from)).text("head", &BASE64.encode(head)).number("seen", *seen);
        }
        Kind::Tail { from, payload } => {
            object.text("from", side_name(*from));
            write_payload(object.out, payload);
        }
        Kind::Wrote { label, parts } => {
            object.optional("as", label.as_deref());
            if !parts.is_empty() {
                object.key("parts");
                let text: Vec<String> = parts.iter().map(u64::to_string).collect();
                object.out.extend_from_slice(format!("[{}]", text.join(",")).as_bytes());
            }
        }
        Kind::Closed { from } => {
            object.text("from", side_name(*from));
        }
        Kind::Exited(exited) => match exited {
            Exited::Code(code) => object.signed("code", *code),
            Exited::Signal(signal) => object.signed("signal", *signal),
            Exited::Unknown => {}
        },
        Kind::Left(left) => {
            object.signed("pid", left.pid);
            object.text("name", &left.name).flag("session", left.session);
        }
        Kind::Stderr { text, dropped } => {
            object.text("text", text);
            if *dropped > 0 {
                object.number("dropped", *dropped);
            }
        }
        Kind::Waited { wait, label, took, within } => {
            object.text("for", wait.name()).optional("as", label.as_deref());
            object.number("took", *took).number("within", *within);
        }
        Kind::TimedOut { wait, label, within } => {
            object.text("for", wait.name()).optional("as", label.as_deref()).number("within", *within);
        }
        Kind::Starved { late } => {
            object.number("late", *late);
        }
        Kind::Blocked { bytes } => {
            object.number("bytes", *bytes);
        }
        Kind::Lost { from, bytes } => {
            object.text("from", side_name(*from)).number("bytes", *bytes);
        }
        Kind::Begin { script } => {
            object.text("name", script).text("phase", "begin");
        }
        Kind::Ended { script, cut } => {
            object.text("name", script).text("phase", "end").optional("cut", cut.as_deref());
        }
        Kind::Broken | Kind::Killed | Kind::Frame(_) | Kind::Told { .. } | Kind::Unknown(_) => {}
    }
    object.out.push(b'}');
}

/// The members of one object under `name`, written in order.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Members<'o> {
    fn begin(out: &'o mut Vec<u8>, name: &str) -> Self {
        out.push(b',');
        json::write_str(out, name);
        out.extend_from_slice(b":{");
        Self { out, first: true }
    }

    fn key(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        json::write_str(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.key(name);
        json::write_str(self.out, text);
        self
    }

    fn optional(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.text(name, text);
        }
        self
    }

    fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.key(name);
        number(self.out, value);
        self
    }

    fn signed(&mut self, name: &str, value: i32) {
        self.key(name);
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.key(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }
}

fn member(out: &mut Vec<u8>, name: &str, text: &str) {
    out.push(b',');
    json::write_str(out, name);
    out.push(b':');
    json::write_str(out, text);
}

fn optional(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        member(out, name, text);
    }
}

/// Appends a number in decimal; on the path of every frame, so without an allocation.
fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
