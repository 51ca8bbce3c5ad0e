//! How far a check has come, for people who wait for it: one line at the bottom of a terminal, gone before the report.

use std::env;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sidecert_proto::transcript::{self, Kind, Record};
use sidecert_reports::safe;
use sidecert_runner::record::Watch;

/// How often the time is shown anew.
const TICK: Duration = Duration::from_millis(250);
/// Where the beginning or end of a script stands in the line of a recording, at the latest, in bytes. Frames may be
/// large, and need not be read for this.
const SCRIPT_WITHIN_BYTES: usize = 40;

/// The line. It vanishes when this is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line on standard error, if that is a terminal and nobody but people reads it.
    pub(crate) fn on_terminal(scripts: usize) -> Option<Self> {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "false");
        let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
        if set("CI") || dumb || !io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(scripts as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos} of {len} scripts, {elapsed}: {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Some(Self { bar })
    }
}

impl Watch for Progress {
    fn recorded(&self, _: &str, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let head = &line[..line.len().min(SCRIPT_WITHIN_BYTES)];
            if !String::from_utf8_lossy(head).contains(r#","script":{"#) {
                continue;
            }
            match transcript::read(line) {
                Ok(Record::Event(transcript::Event { kind: Kind::Begin { script }, .. })) => {
                    self.bar.set_message(safe::escape(&script).into_owned());
                }
                Ok(Record::Event(transcript::Event { kind: Kind::Ended { .. }, .. })) => {
                    // Scripts that are played once more were not planned.
                    if self.bar.length().is_some_and(|planned| self.bar.position() >= planned) {
                        self.bar.inc_length(1);
                    }
                    self.bar.inc(1);
                }
                _ => {}
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
