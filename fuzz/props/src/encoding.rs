//! The form of recordings: reading and writing undo each other.

use std::borrow::Cow;

use sidecert_proto::contract::Side;
use sidecert_proto::machine::{Exited, Left};
use sidecert_proto::transcript::{
    self, End, Event, FILL_BYTES_MAX, Frame, Kind, Payload, Record, Wait, Writer,
};

use crate::draw::Draw;

const SIDES: &[Side] = &[Side::Guest, Side::Host];
const WAITS: &[Wait] = &[Wait::Start, Wait::Answer, Wait::Fence, Wait::Quiet, Wait::Exit];
const ENDS: &[End] = &[End::Done, End::Cut, End::Interrupted];

/// Reads `bytes` as lines of a recording, and writes and reads one that is drawn from them.
pub fn encoding(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        stable(line);
    }

    let mut draw = Draw::new(bytes);
    let mut writer = Writer::new(&draw.text());
    let mut events = Vec::new();
    while !draw.is_spent() {
        let event = event(&mut draw, FILL_BYTES_MAX);
        let before = writer.text.len();
        writer.event(&event);
        let written = &writer.text[before..];
        let line = written.strip_suffix(b"\n").unwrap_or(written);
        assert!(!line.contains(&b'\n'), "more than one line: {event:?}");
        match transcript::read(line) {
            Ok(Record::Event(again)) => assert_eq!(again, event),
            other => panic!("{event:?} is read as {other:?}"),
        }
        events.push(event);
    }
    writer.footer(ENDS[events.len() % ENDS.len()]);
    assert_eq!(writer.events(), events.len() as u64);
    assert_eq!(rewritten(&writer.text), writer.text, "reading and then writing is not the identity");

    // A recording may end anywhere: in the middle of a character, too.
    for end in 0..writer.text.len().min(256) {
        let cut = &writer.text[..writer.text.len() - end];
        let last = cut.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let _ = transcript::read(last);
    }
}

/// An event of any kind; what it fills a frame with is at most `fill_bytes_max` long.
pub(crate) fn event(draw: &mut Draw<'_>, fill_bytes_max: u64) -> Event<'static> {
    let t = draw.number();
    let link = draw.below(3);
    let from = *draw.pick(SIDES);
    let wait = *draw.pick(WAITS);
    let kind = match draw.below(18) {
        0..3 => {
            let label = draw.optional(Draw::text).map(Cow::Owned);
            let departs = draw.optional(Draw::text).map(Cow::Owned);
            let open = draw.flag();
            Kind::Frame(Frame { from, label, departs, open, payload: payload(draw, fill_bytes_max) })
        }
        3 => Kind::Oversize { from, head: Cow::Owned(draw.bytes(64).to_vec()), seen: draw.number() },
        4 => Kind::Tail { from, payload: payload(draw, fill_bytes_max) },
        5 => {
            let label = draw.optional(Draw::text).map(Cow::Owned);
            Kind::Wrote { label, parts: draw.several(3, Draw::number) }
        }
        6 if draw.flag() => Kind::Lost { from, bytes: draw.number() },
        6 => Kind::Broken,
        7 => Kind::Closed { from },
        8 => Kind::Exited(match draw.below(3) {
            0 => Exited::Unknown,
            1 => Exited::Code(i32::from(draw.byte()) - 128),
            _ => Exited::Signal(i32::from(draw.byte())),
        }),
        9 => Kind::Killed,
        10 => {
            let session = draw.flag();
            Kind::Left(Left { pid: i32::from(draw.byte()), name: draw.text(), session })
        }
        11 => Kind::Stderr { text: Cow::Owned(draw.text()), dropped: draw.number() },
        12 => {
            let label = draw.optional(Draw::text).map(Cow::Owned);
            Kind::Waited { wait, label, took: draw.number(), within: draw.number() }
        }
        13 => {
            let label = draw.optional(Draw::text).map(Cow::Owned);
            Kind::TimedOut { wait, label, within: draw.number() }
        }
        14 if draw.flag() => Kind::Blocked { bytes: draw.number() },
        14 => Kind::Starved { late: draw.number() },
        15 => Kind::Begin { script: Cow::Owned(draw.text()) },
        16 => {
            let cut = draw.optional(Draw::text).map(Cow::Owned);
            Kind::Ended { script: Cow::Owned(draw.text()), cut }
        }
        _ => {
            let l = if link == 0 { String::new() } else { format!(r#""l":{link},"#) };
            Kind::Unknown(Cow::Owned(format!(r#"{{"t":{t},{l}"not-yet-known":{}}}"#, draw.json())))
        }
    };
    Event { t, link, kind }
}

/// The bytes of a frame in any form; a frame has no LF in it.
pub(crate) fn payload(draw: &mut Draw<'_>, fill_bytes_max: u64) -> Payload<'static> {
    let owned = |bytes: &[u8]| match Payload::of(bytes) {
        Payload::Json(text) => Payload::Json(Cow::Owned(text.into_owned())),
        Payload::Text(text) => Payload::Text(Cow::Owned(text.into_owned())),
        Payload::Bytes(bytes) => Payload::Bytes(Cow::Owned(bytes.into_owned())),
        Payload::Fill { .. } => unreachable!("bytes alone are never a fill"),
    };
    match draw.below(4) {
        0 => owned(draw.json().as_bytes()),
        1 => owned(draw.text().replace('\n', " ").as_bytes()),
        2 => owned(&draw.bytes(32).iter().copied().filter(|byte| *byte != b'\n').collect::<Vec<_>>()),
        _ => Payload::Fill {
            head: Cow::Owned(draw.text()),
            byte: draw.byte() & 0x7f,
            count: draw.number().min(fill_bytes_max),
            tail: Cow::Owned(draw.text()),
        },
    }
}

/// A line that is accepted in any form has one normal form.
fn stable(line: &[u8]) {
    let Ok(record) = transcript::read(line) else { return };
    if let Record::Event(Event { kind: Kind::Frame(Frame { payload: Payload::Json(text), .. }), .. }) =
        &record
    {
        assert_eq!(text.trim(), text, "white space of the recording is taken for the target's");
    }
    let once = written(&record);
    let Ok(again) = transcript::read(once.strip_suffix(b"\n").unwrap_or(&once)) else {
        panic!("accepted, but its normal form is not: {}", String::from_utf8_lossy(&once));
    };
    assert_eq!(again, record);
    assert_eq!(written(&again), once);
}

fn rewritten(text: &[u8]) -> Vec<u8> {
    let lines =
        text.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line));
    lines.flat_map(|line| transcript::read(line).map(|record| written(&record)).unwrap_or_default()).collect()
}

fn written(record: &Record<'_>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.record(record);
    writer.text
}
