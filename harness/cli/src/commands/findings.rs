//! What a transcript from elsewhere says against its two ends, a line each.
//!
//! Only what was seen is told: rules that were broken on the connection. A recording is judged up to its first gap, since
//! after it an answer may belong to what is not there.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::judge::{Judge, Judged, OURS_MOST};
use sidecert_proto::script::Setting;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{self, Event, Kind, LINE_BYTES_MAX, Record};
use sidecert_proto::verdict::{At, Profile, Verdict};
use sidecert_proto::wire::{Deframer, Line};
use sidecert_reports::safe;

const CHUNK_BYTES: usize = 64 << 10;
/// No event that tells of a gap is as long as this, in bytes.
const GAP_BYTES_MAX: usize = 128;

/// Judges the transcript in the file as what a guest of `suite` did, and as what its host did.
pub(crate) fn transcript(
    path: &Path,
    suite: &'static Suite,
    contract: &Contract,
) -> Result<Vec<String>, io::Error> {
    // What is no file has been read by somebody else, and would be waited for without end.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut file = File::open(path)?;
    let selected: BTreeSet<String> = suite.rows(Side::Guest).map(|row| row.id.to_owned()).collect();
    let setting = Setting::plain(contract);
    let mut judge = Judge::new(suite, Side::Guest, Profile::Specified, setting, &selected);
    judge.begin("tap");
    let gap = read(&mut file, &mut judge)?;
    let judged = judge.finish();
    let mut lines = told(&judged);
    match gap {
        Some(event) => lines.push(format!("not judged: what follows event {event}, where bytes were lost")),
        None => lines.extend(judged.faults.iter().map(|fault| {
            format!("not judged: what follows line {}: {}", fault.line, safe::escape(&fault.says))
        })),
    }
    Ok(lines)
}

/// Reads up to the end or the first gap, the event of which it gives.
fn read(file: &mut File, judge: &mut Judge<'_>) -> io::Result<Option<u64>> {
    let mut deframer = Deframer::new(LINE_BYTES_MAX);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut number = 0_u64;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            judge.read(deframer.tail());
            return Ok(None);
        }
        let mut lines = deframer.push(&chunk[..read]);
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) if is_gap(line) => return Ok(Some(number.saturating_sub(1))),
                Line::Whole(line) => {
                    judge.read(line);
                    judge.read(b"\n");
                }
                Line::Oversize { head, .. } => judge.read(head),
            }
            number += 1;
        }
    }
}

fn is_gap(line: &[u8]) -> bool {
    line.len() < GAP_BYTES_MAX
        && matches!(transcript::read(line), Ok(Record::Event(Event { kind: Kind::Lost { .. }, .. })))
}

fn told(judged: &Judged) -> Vec<String> {
    let line = |side: Side, at: &At, word: &str, what: &str, actual: &str| {
        format!("{side} {word} {what} (event {}): {}", at.event, safe::escape(actual))
    };
    let guest = judged.verdicts.iter().filter_map(|(row, verdict)| match verdict {
        Verdict::Fail(broken) => Some(line(Side::Guest, &broken.at, "FAIL", row.id, &broken.actual)),
        Verdict::Warn(broken) => Some(line(Side::Guest, &broken.at, "WARN", row.id, &broken.actual)),
        _ => None,
    });
    let host = judged.ours.iter().map(|(at, says)| line(Side::Host, at, "FAIL", "frame", says));
    // There may be more of these than are kept.
    let more = (judged.ours.len() >= OURS_MOST).then(|| {
        format!("host FAIL frame: only the first {OURS_MOST} of the wrong frames are told; there may be more")
    });
    host.chain(more).chain(guest).collect()
}
