//! What the CLI stored of its conversations: `events.frames` below its home, records in JSON with a few bytes around
//! each, and in a record the payload of an event in Base64.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::shims::budget::{FOLDERS_DEEP_MAX, STORED_BYTES_MAX};

/// How a record begins.
const RECORD: &[u8] = br#"{"schemaVersion":"#;

/// The payload of each event that is stored below a folder.
pub(crate) fn payloads(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    gather(folder, FOLDERS_DEEP_MAX, &mut all);
    all
}

/// What cannot be read is as if it were not there: the CLI, which may have been killed, is at work on it no more.
fn gather(folder: &Path, deep: usize, all: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link may lead anywhere.
        if deep > 0 && entry.file_type().is_ok_and(|it| it.is_dir()) {
            gather(&path, deep - 1, all);
        } else if entry.file_name() == "events.frames" {
            let mut bytes = Vec::new();
            if File::open(path).and_then(|file| file.take(STORED_BYTES_MAX).read_to_end(&mut bytes)).is_ok() {
                all.extend(records(&bytes).filter_map(|record| payload(&record)));
            }
        }
    }
}

fn records(bytes: &[u8]) -> impl Iterator<Item = Value> {
    let begins = bytes.windows(RECORD.len()).enumerate().filter(|(_, window)| *window == RECORD);
    begins.filter_map(|(at, _)| serde_json::Deserializer::from_slice(&bytes[at..]).into_iter().next()?.ok())
}

fn payload(record: &Value) -> Option<String> {
    let payload = STANDARD.decode(record["event"]["payload"].as_str()?).ok()?;
    Some(String::from_utf8_lossy(&payload).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_found_between_other_bytes() {
        let record = |payload: &str| {
            let payload = STANDARD.encode(payload);
            format!(r#"{{"schemaVersion":4,"event":{{"payload":"{payload}"}}}}"#)
        };
        let bytes =
            [b"\x00\x01{\xff", record("one").as_bytes(), b"\x02", record("two").as_bytes(), RECORD].concat();
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("events.frames"), bytes).unwrap();
        assert_eq!(payloads(folder.path()), ["one", "two"]);
    }
}
