//! What a probe and the harness say to each other: `{kind: u8, len: u32 LE, bytes}`, version 1.
//!
//! Both ends read it here, so what one writes the other reads. `docs/probe.md` tells the same to people.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::budget::PROBE_FRAME_BYTES_MAX;

const HEADER_BYTES: usize = 5;

/// What is no frame of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbage;

/// What a probe is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToProbe {
    /// Write this to standard output; `after_drain`: once all before it has been read.
    Write { bytes: Bytes, after_drain: bool },
    /// Close standard output once all before this is written.
    CloseOutput,
    /// Close standard input.
    CloseInput,
    /// Write this to standard error.
    Errors(Bytes),
    /// Read so many more bytes.
    Credit(u32),
    /// End with this code, now.
    Exit(u8),
    /// End by SIGABRT, now.
    Abort,
    /// Go on at SIGTERM, and say so.
    IgnoreTerm,
    /// Start another one.
    Spawn { session: bool },
    /// Answer.
    Ping,
}

/// What a probe tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromProbe {
    /// Who it is, once and first: JSON.
    Hello(Bytes),
    /// This came on standard input.
    Read(Bytes),
    /// Standard input is at its end.
    ReadEof,
    /// Standard output took so many more bytes.
    Wrote(u32),
    /// Standard output takes no more: the number of the error.
    WriteFailed(u32),
    /// Standard error took so many more bytes.
    WroteErrors(u32),
    /// Standard error takes no more.
    ErrorsFailed(u32),
    /// This signal came.
    Signal(u32),
    /// The answer to a ping.
    Pong,
    /// Another one was started: its process id.
    Spawned(u32),
    /// None could be: the number of the error.
    NotSpawned(u32),
}

const WRITE: u8 = 1;
const WRITE_AFTER_DRAIN: u8 = 2;
const CLOSE_OUTPUT: u8 = 3;
const CLOSE_INPUT: u8 = 4;
const ERRORS: u8 = 5;
const CREDIT: u8 = 6;
const EXIT: u8 = 7;
const ABORT: u8 = 8;
const IGNORE_TERM: u8 = 9;
const SPAWN: u8 = 10;
const PING: u8 = 11;

const HELLO: u8 = 128;
const READ: u8 = 129;
const READ_EOF: u8 = 130;
const WROTE: u8 = 131;
const WRITE_FAILED: u8 = 132;
const WROTE_ERRORS: u8 = 133;
const ERRORS_FAILED: u8 = 134;
const SIGNAL: u8 = 135;
const PONG: u8 = 136;
const SPAWNED: u8 = 137;
const NOT_SPAWNED: u8 = 138;

impl ToProbe {
    pub(crate) fn put(&self, into: &mut BytesMut) {
        match self {
            Self::Write { bytes, after_drain: false } => put(into, WRITE, bytes),
            Self::Write { bytes, after_drain: true } => put(into, WRITE_AFTER_DRAIN, bytes),
            Self::CloseOutput => put(into, CLOSE_OUTPUT, &[]),
            Self::CloseInput => put(into, CLOSE_INPUT, &[]),
            Self::Errors(bytes) => put(into, ERRORS, bytes),
            Self::Credit(count) => put(into, CREDIT, &count.to_le_bytes()),
            Self::Exit(code) => put(into, EXIT, &[*code]),
            Self::Abort => put(into, ABORT, &[]),
            Self::IgnoreTerm => put(into, IGNORE_TERM, &[]),
            Self::Spawn { session } => put(into, SPAWN, &[u8::from(*session)]),
            Self::Ping => put(into, PING, &[]),
        }
    }

    /// The next one that is whole.
    pub(crate) fn take(from: &mut BytesMut) -> Result<Option<Self>, Garbage> {
        let Some((kind, bytes)) = take(from)? else { return Ok(None) };
        let told = match (kind, bytes.as_ref()) {
            (WRITE | WRITE_AFTER_DRAIN, [_, ..]) => {
                Self::Write { bytes, after_drain: kind == WRITE_AFTER_DRAIN }
            }
            (CLOSE_OUTPUT, []) => Self::CloseOutput,
            (CLOSE_INPUT, []) => Self::CloseInput,
            (ERRORS, [_, ..]) => Self::Errors(bytes),
            (CREDIT, _) => Self::Credit(number(&bytes)?),
            (EXIT, &[code]) => Self::Exit(code),
            (ABORT, []) => Self::Abort,
            (IGNORE_TERM, []) => Self::IgnoreTerm,
            (SPAWN, &[session @ (0 | 1)]) => Self::Spawn { session: session == 1 },
            (PING, []) => Self::Ping,
            _ => return Err(Garbage),
        };
        Ok(Some(told))
    }
}

impl FromProbe {
    pub(crate) fn put(&self, into: &mut BytesMut) {
        match self {
            Self::Hello(bytes) => put(into, HELLO, bytes),
            Self::Read(bytes) => put(into, READ, bytes),
            Self::ReadEof => put(into, READ_EOF, &[]),
            Self::Wrote(count) => put(into, WROTE, &count.to_le_bytes()),
            Self::WriteFailed(error) => put(into, WRITE_FAILED, &error.to_le_bytes()),
            Self::WroteErrors(count) => put(into, WROTE_ERRORS, &count.to_le_bytes()),
            Self::ErrorsFailed(error) => put(into, ERRORS_FAILED, &error.to_le_bytes()),
            Self::Signal(signal) => put(into, SIGNAL, &signal.to_le_bytes()),
            Self::Pong => put(into, PONG, &[]),
            Self::Spawned(pid) => put(into, SPAWNED, &pid.to_le_bytes()),
            Self::NotSpawned(error) => put(into, NOT_SPAWNED, &error.to_le_bytes()),
        }
    }

    /// The next one that is whole.
    pub(crate) fn take(from: &mut BytesMut) -> Result<Option<Self>, Garbage> {
        let Some((kind, bytes)) = take(from)? else { return Ok(None) };
        let told = match (kind, bytes.as_ref()) {
            (HELLO, _) => Self::Hello(bytes),
            (READ, [_, ..]) => Self::Read(bytes),
            (READ_EOF, []) => Self::ReadEof,
            (WROTE, _) => Self::Wrote(number(&bytes)?),
            (WRITE_FAILED, _) => Self::WriteFailed(number(&bytes)?),
            (WROTE_ERRORS, _) => Self::WroteErrors(number(&bytes)?),
            (ERRORS_FAILED, _) => Self::ErrorsFailed(number(&bytes)?),
            (SIGNAL, _) => Self::Signal(number(&bytes)?),
            (PONG, []) => Self::Pong,
            (SPAWNED, _) => Self::Spawned(number(&bytes)?),
            (NOT_SPAWNED, _) => Self::NotSpawned(number(&bytes)?),
            _ => return Err(Garbage),
        };
        Ok(Some(told))
    }
}

fn put(into: &mut BytesMut, kind: u8, bytes: &[u8]) {
    into.put_u8(kind);
    into.put_u32_le(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    into.extend_from_slice(bytes);
}

fn take(from: &mut BytesMut) -> Result<Option<(u8, Bytes)>, Garbage> {
    let Some(&[kind, a, b, c, d]) = from.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > PROBE_FRAME_BYTES_MAX {
        return Err(Garbage);
    }
    if from.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    from.advance(HEADER_BYTES);
    Ok(Some((kind, from.split_to(length).freeze())))
}

fn number(bytes: &[u8]) -> Result<u32, Garbage> {
    bytes.try_into().map(u32::from_le_bytes).map_err(|_| Garbage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_end_puts_the_other_takes() {
        let all = [
            ToProbe::Write { bytes: "a".into(), after_drain: false },
            ToProbe::Write { bytes: "b".into(), after_drain: true },
            ToProbe::CloseOutput,
            ToProbe::CloseInput,
            ToProbe::Errors("c".into()),
            ToProbe::Credit(70_000),
            ToProbe::Exit(137),
            ToProbe::Abort,
            ToProbe::IgnoreTerm,
            ToProbe::Spawn { session: true },
            ToProbe::Spawn { session: false },
            ToProbe::Ping,
        ];
        let mut bytes = BytesMut::new();
        for it in &all {
            it.put(&mut bytes);
        }
        for it in all {
            assert_eq!(ToProbe::take(&mut bytes), Ok(Some(it)));
        }
        let all = [
            FromProbe::Hello("{}".into()),
            FromProbe::Read("a".into()),
            FromProbe::ReadEof,
            FromProbe::Wrote(1),
            FromProbe::WriteFailed(32),
            FromProbe::WroteErrors(2),
            FromProbe::ErrorsFailed(32),
            FromProbe::Signal(15),
            FromProbe::Pong,
            FromProbe::Spawned(7),
            FromProbe::NotSpawned(2),
        ];
        for it in &all {
            it.put(&mut bytes);
        }
        for it in all {
            assert_eq!(FromProbe::take(&mut bytes), Ok(Some(it)));
        }
        assert_eq!(FromProbe::take(&mut bytes), Ok(None));
    }

    #[test]
    fn a_frame_may_be_cut_and_what_is_none_is_refused() {
        let mut bytes = BytesMut::from(&[WROTE, 4, 0, 0][..]);
        assert_eq!(FromProbe::take(&mut bytes), Ok(None));
        bytes.extend_from_slice(&[0, 1, 2, 0]);
        assert_eq!(FromProbe::take(&mut bytes), Ok(None));
        bytes.extend_from_slice(&[0]);
        assert_eq!(FromProbe::take(&mut bytes), Ok(Some(FromProbe::Wrote(513))));
        for garbage in [
            &b"{\"jsonrpc\":\"2.0\"}"[..],
            &[WRITE, 0, 0, 0, 0],
            &[PING, 1, 0, 0, 0, 0],
            &[SPAWN, 1, 0, 0, 0, 2],
            &[CREDIT, 3, 0, 0, 0, 1, 2, 3],
            &[HELLO, 0, 0, 0, 0],
            &[WRITE, 1, 0, 16, 0],
        ] {
            assert_eq!(ToProbe::take(&mut garbage.into()), Err(Garbage), "{garbage:?}");
        }
    }
}
