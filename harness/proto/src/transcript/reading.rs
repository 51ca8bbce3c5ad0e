//! Reads the lines of a transcript.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{End, Event, FILL_BYTES_MAX, FORMAT, Fault, Frame, Kind, Payload, Record, Told, Wait};
use crate::contract::Side;
use crate::json::{Kind as JsonKind, Node, Tape};
use crate::machine::{Exited, Left, Micros};

/// Reads one line, its LF taken off.
pub fn read(line: &[u8]) -> Result<Record<'_>, Fault> {
    if let Some(Plain { t, from, text }) = read_plain(line)
        && let Ok(tape) = Tape::scan(text)
        // White space around the text is the recording's own, and not the frame's.
        && tape.root().raw().len() == text.len()
    {
        let text = tape.text();
        let payload = Payload::Json(Cow::Borrowed(text));
        let frame = Frame { from, label: None, departs: None, open: false, payload };
        return Ok(Record::Event(Event { t, link: 0, kind: Kind::Frame(frame) }));
    }
    let tape = Tape::scan(line).map_err(|fault| Fault(format!("not JSON: {fault}")))?;
    let root = tape.root();
    if root.kind() != JsonKind::Object {
        return Err(Fault("not an object".to_owned()));
    }
    if let Some(format) = root.get("transcript") {
        return match format.as_u64() {
            Some(FORMAT) => Ok(Record::Header { process: Cow::Owned(text_of(root, "process")?) }),
            _ => Err(Fault(format!(
                "format {} of a transcript; this version reads format {FORMAT}",
                format.raw()
            ))),
        };
    }
    if root.get("end").is_some() {
        let name = text_of(root, "end")?;
        let end = End::ALL.into_iter().find(|end| end.name() == name);
        let end = end.ok_or_else(|| Fault(format!("end is {name:?}; it is done, cut or interrupted")))?;
        return Ok(Record::Footer { end, events: number_of(root, "events")? });
    }
    let t = number_of(root, "t")?;
    let link = match root.get("l") {
        Some(_) => usize::try_from(number_of(root, "l")?).map_err(|_| Fault("l is too large".to_owned()))?,
        None => 0,
    };
    let kind = match read_kind(root)? {
        Some(kind) => kind,
        None => Kind::Unknown(Cow::Borrowed(
            std::str::from_utf8(line).map_err(|_| Fault("not UTF-8".to_owned()))?,
        )),
    };
    Ok(Record::Event(Event { t, link, kind }))
}

/// A frame without label whose payload is JSON: the one shape that most lines have.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    /// When.
    pub t: Micros,
    /// Who wrote it.
    pub from: Side,
    /// What should be one JSON text. Not scanned yet: if it is none, [`read`] says what the line is.
    pub text: &'a [u8],
}

/// Reads the shape that most lines have without scanning them, so that a judge scans every frame once.
pub fn read_plain(line: &[u8]) -> Option<Plain<'_>> {
    let (t, rest) = leading_number(line.strip_prefix(b"{\"t\":")?)?;
    let rest = rest.strip_prefix(b",\"from\":\"")?;
    let (from, rest) = match rest.strip_prefix(b"guest\",\"json\":") {
        Some(rest) => (Side::Guest, rest),
        None => (Side::Host, rest.strip_prefix(b"host\",\"json\":")?),
    };
    // In `{"t":1,"from":"guest","json":{},"more":1}` what is left is `{},"more":1`: no JSON text, so not taken for one.
    Some(Plain { t, from, text: rest.strip_suffix(b"}")? })
}

fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    if end == 0 || end > 19 || (end > 1 && text[0] == b'0') {
        return None;
    }
    let value = text[..end].iter().fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
    Some((value, &text[end..]))
}

/// The kind of an event; `None` when this version does not know it.
fn read_kind(root: Node<'_>) -> Result<Option<Kind<'static>>, Fault> {
    if root.get("from").is_some() {
        return Ok(Some(Kind::Frame(Frame {
            from: side_of(root)?,
            label: optional_text(root, "as")?,
            departs: optional_text(root, "departs")?,
            open: root.get("open").is_some_and(|open| open.as_bool() == Some(true)),
            payload: read_payload(root)?,
        })));
    }
    let Some((name, body)) = root.members().find(|(name, _)| !matches!(&**name, "t" | "l" | "as")) else {
        return Err(Fault("an event that says nothing".to_owned()));
    };
    if let Some(what) = Told::ALL.into_iter().find(|what| what.name() == name) {
        let json = Cow::Owned(body.raw().to_owned());
        return Ok(Some(Kind::Told { what, label: optional_text(root, "as")?, json }));
    }
    Ok(Some(match &*name {
        "oversize" => Kind::Oversize {
            from: side_of(body)?,
            head: Cow::Owned(base64_of(body, "head")?),
            seen: number_of(body, "seen")?,
        },
        "tail" => Kind::Tail { from: side_of(body)?, payload: read_payload(body)? },
        "wrote" => Kind::Wrote {
            label: optional_text(body, "as")?,
            parts: body
                .get("parts")
                .map_or_else(Vec::new, |parts| parts.elements().filter_map(|part| part.as_u64()).collect()),
        },
        "blocked" => Kind::Blocked { bytes: number_of(body, "bytes")? },
        "lost" => Kind::Lost { from: side_of(body)?, bytes: number_of(body, "bytes")? },
        "broken" => Kind::Broken,
        "killed" => Kind::Killed,
        "closed" => Kind::Closed { from: side_of(body)? },
        "exited" => Kind::Exited(match (signed_of(body, "code"), signed_of(body, "signal")) {
            (Some(code), _) => Exited::Code(code),
            (None, Some(signal)) => Exited::Signal(signal),
            (None, None) => Exited::Unknown,
        }),
        "left" => Kind::Left(Left {
            pid: signed_of(body, "pid").ok_or_else(|| Fault("left has no pid".to_owned()))?,
            name: text_of(body, "name")?,
            session: body.get("session").and_then(|session| session.as_bool()).unwrap_or_default(),
        }),
        "stderr" => Kind::Stderr {
            text: Cow::Owned(text_of(body, "text")?),
            dropped: if body.get("dropped").is_some() { number_of(body, "dropped")? } else { 0 },
        },
        "waited" => Kind::Waited {
            wait: wait_of(body)?,
            label: optional_text(body, "as")?,
            took: number_of(body, "took")?,
            within: number_of(body, "within")?,
        },
        "timed-out" => Kind::TimedOut {
            wait: wait_of(body)?,
            label: optional_text(body, "as")?,
            within: number_of(body, "within")?,
        },
        "starved" => Kind::Starved { late: number_of(body, "late")? },
        "script" => {
            let script = Cow::Owned(text_of(body, "name")?);
            match &*text_of(body, "phase")? {
                "begin" => Kind::Begin { script },
                "end" => Kind::Ended { script, cut: optional_text(body, "cut")? },
                other => return Err(Fault(format!("phase is {other:?}; it is begin or end"))),
            }
        }
        _ => return Ok(None),
    }))
}

/// Reads `json`, `text`, `base64` or `fill` of an object.
pub(crate) fn read_payload(of: Node<'_>) -> Result<Payload<'static>, Fault> {
    if let Some(json) = of.get("json") {
        return Ok(Payload::Json(Cow::Owned(json.raw().to_owned())));
    }
    if of.get("text").is_some() {
        return Ok(Payload::Text(Cow::Owned(text_of(of, "text")?)));
    }
    if of.get("base64").is_some() {
        return Ok(Payload::Bytes(Cow::Owned(base64_of(of, "base64")?)));
    }
    let fill = of.get("fill").ok_or_else(|| Fault("a frame has json, text, base64 or fill".to_owned()))?;
    let byte = text_of(fill, "byte")?;
    let &[byte] = byte.as_bytes() else {
        return Err(Fault("byte of a fill is one ASCII character".to_owned()));
    };
    let count = number_of(fill, "n")?;
    if count > FILL_BYTES_MAX {
        return Err(Fault(format!("a fill of {count} bytes; at most {FILL_BYTES_MAX}")));
    }
    let (head, tail) = (Cow::Owned(text_of(fill, "head")?), Cow::Owned(text_of(fill, "tail")?));
    Ok(Payload::Fill { head, byte, count, tail })
}

fn text_of(of: Node<'_>, name: &str) -> Result<String, Fault> {
    let text = of.get(name).and_then(|node| node.as_str());
    text.map(Cow::into_owned).ok_or_else(|| Fault(format!("{name} is not a string")))
}

fn optional_text(of: Node<'_>, name: &str) -> Result<Option<Cow<'static, str>>, Fault> {
    of.get(name).map(|_| text_of(of, name).map(Cow::Owned)).transpose()
}

fn number_of(of: Node<'_>, name: &str) -> Result<u64, Fault> {
    let number = of.get(name).and_then(|node| node.as_u64());
    number.ok_or_else(|| Fault(format!("{name} is not a whole number of 64 bits")))
}

fn signed_of(of: Node<'_>, name: &str) -> Option<i32> {
    of.get(name).and_then(|node| node.as_i64()).and_then(|value| i32::try_from(value).ok())
}

fn base64_of(of: Node<'_>, name: &str) -> Result<Vec<u8>, Fault> {
    BASE64.decode(text_of(of, name)?).map_err(|_| Fault(format!("{name} is not base64")))
}

fn side_of(of: Node<'_>) -> Result<Side, Fault> {
    match &*text_of(of, "from")? {
        "host" => Ok(Side::Host),
        "guest" => Ok(Side::Guest),
        other => Err(Fault(format!("from is {other:?}; it is host or guest"))),
    }
}

fn wait_of(of: Node<'_>) -> Result<Wait, Fault> {
    let name = text_of(of, "for")?;
    let wait = Wait::ALL.into_iter().find(|wait| wait.name() == name);
    wait.ok_or_else(|| Fault(format!("for is {name:?}, which is no wait")))
}
