//! `--trace`: every event of a run as one line on standard error, while it happens.
//!
//! A line begins with the process and the script, never with what a target wrote; secrets are masked as in reports.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use sidecert_proto::contract::Side;
use sidecert_proto::transcript::{self, Record};
use sidecert_reports::{Frame, Masked, Origin, safe};
use sidecert_runner::record::Watch;

use crate::output;
use crate::words::Reading;

/// How much of a frame a line shows, in bytes.
const FRAME_BYTES: usize = 160;

/// Writes the trace of one run.
pub(crate) struct Trace {
    /// Who is under test.
    target: Side,
    masked: Masked,
    readings: Mutex<BTreeMap<String, Reading>>,
}

impl Trace {
    pub(crate) fn new(target: Side, secrets: &[String]) -> Self {
        Self { target, masked: Masked::new(secrets), readings: Mutex::default() }
    }

    /// These lines of the recording of a process, as they are traced.
    fn lines(&self, reading: &mut Reading, process: &str, text: &[u8]) -> String {
        let mut lines = String::new();
        for recorded in text.split(|byte| *byte == b'\n') {
            let Ok(Record::Event(event)) = transcript::read(recorded) else { continue };
            let told = reading.read(&event, FRAME_BYTES);
            lines.push_str(&line(&self.masked, process, &told.script, &told.frame));
            lines.push('\n');
        }
        lines
    }
}

impl Watch for Trace {
    fn recorded(&self, process: &str, text: &[u8]) {
        // The lock is held while the lines are written, so that those of one process stay in order.
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = readings.entry(process.to_owned()).or_insert_with(|| Reading::new(self.target));
        let lines = self.lines(reading, process, text);
        // Nobody may be reading; the check goes on all the same.
        let _ = output::print_to_stderr(&lines);
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It holds secrets.
        f.write_str("Trace")
    }
}

/// One event as one line, without its end.
fn line(masked: &Masked, process: &str, script: &str, frame: &Frame) -> String {
    let sign = match frame.from {
        Origin::Event => '·',
        _ if frame.target => '←',
        _ => '→',
    };
    let what = match (frame.from, frame.label.as_deref()) {
        (Origin::Event, _) => frame.text.clone(),
        (_, label) => format!("{}, {} bytes: {}", label.unwrap_or("frame"), frame.bytes, frame.text),
    };
    let script = if script.is_empty() { "-" } else { script };
    let (whole, rest) = (frame.micros / 1_000, frame.micros % 1_000);
    let line = format!("{process} {script} {whole:>6}.{rest:03} ms {sign} {what}");
    let line = masked.apply(&line).unwrap_or(line);
    safe::escape(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_a_line() {
        let trace = Trace::new(Side::Guest, &["hunter2hunter2".to_owned()]);
        let long = "x".repeat(200);
        let text = [
            r#"{"transcript":1,"process":"001-tour"}"#,
            r#"{"t":0,"script":{"name":"handshake","phase":"begin"}}"#,
            r#"{"t":12,"from":"host","as":"initialize","json":{"jsonrpc":"2.0","id":1,"method":"x/initialize"}}"#,
            r#"{"t":2304,"from":"guest","text":"a hunter2hunter2 \u001b[2J::error::\u0085\u202e"}"#,
            &format!(r#"{{"t":1002305,"from":"guest","json":{{"jsonrpc":"2.0","id":1,"result":"{long}"}}}}"#),
            r#"{"t":1002306,"script":{"name":"handshake","phase":"end"}}"#,
            r#"{"t":1002307,"closed":{"from":"guest"}}"#,
            r#"{"end":"done","events":6}"#,
        ]
        .join("\n");
        let mut reading = Reading::new(Side::Guest);
        let lines = trace.lines(&mut reading, "001-tour", text.as_bytes());
        let shown: Vec<&str> = lines.lines().collect();
        let cut = "x".repeat(160 - r#"{"jsonrpc":"2.0","id":1,"result":""#.len());
        let expected = [
            "001-tour handshake      0.000 ms · the script handshake begins".to_owned(),
            "001-tour handshake      0.012 ms → request 1, x/initialize, 48 bytes: \
             {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/initialize\"}"
                .to_owned(),
            "001-tour handshake      2.304 ms ← no JSON (unexpected `a` at byte 0), 35 bytes: a **** \
             \\u{1b}[2J:\\u{3a}error:\\u{3a}\\u{85}\\u{202e}"
                .to_owned(),
            format!(
                "001-tour handshake   1002.305 ms ← result for 1, 236 bytes: \
                 {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{cut}… (76 bytes left out)"
            ),
            "001-tour handshake   1002.306 ms · the script handshake ends".to_owned(),
            "001-tour -   1002.307 ms · the guest closed its output".to_owned(),
        ];
        assert_eq!(shown, expected);
    }
}
