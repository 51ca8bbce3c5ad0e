//! As much HTTP as `reasonix serve` needs from somebody on the same machine: version 1.0, so that an answer is what
//! comes until the end, without chunks.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::shims::budget::{CONNECT_WITHIN, REPLY_BYTES_MAX};
use crate::shims::program;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Its text, without white space around it.
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn is_done(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Asks for something, and waits for the answer, so long between two parts of it.
pub(crate) fn call(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
    within: Duration,
) -> io::Result<Reply> {
    let (mut from, status) = open(to, method, path, body, within)?;
    let mut text = Vec::new();
    from.by_ref().take(REPLY_BYTES_MAX).read_to_end(&mut text)?;
    Ok(Reply { status, text: String::from_utf8_lossy(&text).trim().to_owned() })
}

/// A stream of events (`text/event-stream`), each of which is JSON on one line.
#[derive(Debug)]
pub(crate) struct Events(TcpStream);

impl Events {
    /// Opens it; each event goes to `take` from a thread of its own, and nothing when there are no more.
    pub(crate) fn open(
        to: SocketAddr,
        path: &str,
        mut take: impl FnMut(Option<Value>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (from, status) = open(to, "GET", path, None, CONNECT_WITHIN)?;
        if status != 200 {
            return Err(io::Error::other(format!("{path} gives {status}")));
        }
        let stream = from.get_ref().try_clone()?;
        // Events come when they come.
        stream.set_read_timeout(None)?;
        program::spawn("events", move || {
            program::lines(from, |line| {
                let event = line.strip_prefix("data:").map(str::trim_start);
                event.and_then(|event| serde_json::from_str(event).ok()).is_none_or(|event| take(Some(event)))
            });
            take(None);
        })?;
        Ok(Self(stream))
    }

    /// Ends it.
    pub(crate) fn close(&self) {
        // One that has ended is closed.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Sends a request; gives where its answer comes from, and the status.
fn open(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
    within: Duration,
) -> io::Result<(BufReader<TcpStream>, u16)> {
    let stream = TcpStream::connect_timeout(&to, CONNECT_WITHIN)?;
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {to}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    (&stream).write_all(format!("{head}{body}").as_bytes())?;
    let mut from = BufReader::new(stream);
    let status = line(&mut from)?;
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status =
        status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP"))?;
    while !line(&mut from)?.is_empty() {}
    Ok((from, status))
}

/// A line of the head of an answer.
fn line(from: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if from.by_ref().take(REPLY_BYTES_MAX).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
