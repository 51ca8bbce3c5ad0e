//! `redact`: a recording in, the same without what was written in it out. The first is never changed.
//!
//! Each file is read twice, line by line: content that travels outside of frames must be known as a whole before its
//! first page and its digest can be written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::slice;

use sidecert_proto::contract::Side;
use sidecert_proto::digest::Digest;
use sidecert_proto::json::Tape;
use sidecert_proto::redact::{Redaction, Rule};
use sidecert_proto::run;
use sidecert_proto::transcript::{self, Event, Kind, LINE_BYTES_MAX, Payload, Record, Writer};
use sidecert_proto::wire::{Deframer, Line};

use crate::args::{RedactArgs, RedactSide};
use crate::commands::judge;
use crate::exit::{self, Fault};
use crate::output;
use crate::recording::{self, Opened, Source};

/// How much of a recording is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Writes the recording again, and says which verdicts are others now because the text was what decided them.
pub(crate) fn run(args: &RedactArgs) -> Result<u8, Fault> {
    let opened = Opened::of(&args.from)?;
    write(args, &opened)?;
    // What cannot be judged at all is no less redacted.
    if opened.only.is_empty()
        && let Ok(before) = judge::verdicts(&opened)
    {
        let source = Source::of(slice::from_ref(&args.output))?;
        let (run, suite) = recording::read(&source, Some(opened.suite), args.from.contract.file.as_deref())?;
        let after = judge::verdicts(&Opened { source, run, suite, ..opened })?;
        for ((id, before), (_, after)) in before.iter().zip(&after).filter(|(one, other)| one != other) {
            let says = "it depends on a text that was replaced";
            output::complain(&format!("{id}: {before} before, and {after} in what was written: {says}"));
        }
    }
    Ok(exit::OK)
}

fn write(args: &RedactArgs, opened: &Opened) -> Result<(), Fault> {
    let sides = match args.side {
        RedactSide::Host => vec![Side::Host],
        RedactSide::Guest => vec![Side::Guest],
        RedactSide::Both => vec![Side::Host, Side::Guest],
    };
    let rule = Rule { sides, keep: args.keep.clone(), free: opened.suite.free };
    let mut redaction = Redaction::new(&opened.contract, &rule);
    let output = &args.output;
    let not_written = |error: &io::Error| Fault::not_written(&output.display().to_string(), error);
    let is_folder = matches!(opened.source, Source::Run(_)) || args.from.recording.is_dir();
    if !is_folder {
        let recordings = opened.recordings()?;
        let [one] = recordings.as_slice() else {
            return Err(Fault::usage(format!("{}: no recording", args.from.recording.display())));
        };
        let mut file = create(output).map_err(|error| not_written(&error))?;
        let written = Copy { from: &one.path, is_log: one.is_log() }.write(&mut file, &mut redaction);
        return match written {
            Ok(_) => Ok(()),
            Err(fault) => {
                // Half a recording is none; that it cannot be removed either changes nothing.
                let _ = fs::remove_file(output);
                Err(fault)
            }
        };
    }
    fs::DirBuilder::new().mode(0o700).create(output).map_err(|error| not_written(&error))?;
    let written = match &opened.source {
        Source::Run(folder) => of_run(opened, folder, output, &mut redaction),
        Source::Foreign(_) => of_folder(opened, output, &mut redaction),
    };
    if written.is_err() {
        let _ = fs::remove_dir_all(output);
    }
    written
}

/// A run: every process, those that were set aside too, and what describes it.
fn of_run(opened: &Opened, folder: &Path, output: &Path, redaction: &mut Redaction) -> Result<(), Fault> {
    // This says which of the processes are not there.
    opened.recordings()?;
    let mut new = redaction.run(&opened.run);
    new.processes.retain(|it| opened.only.is_empty() || opened.only.contains(&it.name));
    for process in &mut new.processes {
        let (from, to) = (folder.join(process.file()), output.join(process.file()));
        let mut file = create(&to).map_err(|error| Fault::not_written(&to.display().to_string(), &error))?;
        let digests = Copy { from: &from, is_log: false }.write(&mut file, redaction)?;
        if process.sha256.is_empty() {
            // The check that recorded it was killed, and its copy is no more whole.
            continue;
        }
        // A copy with a right digest would make evidence of what is none.
        if digests.read != process.sha256 {
            let says = "it is not what was recorded: its SHA-256 is another";
            return Err(Fault::usage(format!("{}: {says}", from.display())));
        }
        process.sha256 = digests.written;
    }
    let path = output.join(run::FILE);
    let written = create(&path).and_then(|mut file| file.write_all(new.write().as_bytes()));
    written.map_err(|error| Fault::not_written(&path.display().to_string(), &error))
}

/// Transcripts and logs that lie in a folder.
fn of_folder(opened: &Opened, output: &Path, redaction: &mut Redaction) -> Result<(), Fault> {
    for recorded in opened.recordings()? {
        let to = output.join(recorded.name);
        let mut file = create(&to).map_err(|error| Fault::not_written(&to.display().to_string(), &error))?;
        Copy { from: &recorded.path, is_log: recorded.is_log() }.write(&mut file, redaction)?;
    }
    Ok(())
}

/// A new file that only its owner may read.
fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// One file, and the form of it.
struct Copy<'a> {
    from: &'a Path,
    is_log: bool,
}

/// The digests of a file and of what was made of it.
struct Digests {
    read: String,
    written: String,
}

impl Copy<'_> {
    fn write(&self, file: &mut File, redaction: &mut Redaction) -> Result<Digests, Fault> {
        redaction.begin();
        self.lines(&mut |line| self.look(line, redaction))?;
        redaction.looked();
        let mut out = BufWriter::new(file);
        let mut digest = Digest::default();
        let not_written = |error: &io::Error| Fault::not_written("the new recording", error);
        let read = self.lines(&mut |line| {
            let new = self.redacted(line, redaction)?;
            digest.update(&new);
            out.write_all(&new).map_err(|error| Wrong::Written(not_written(&error)))
        })?;
        out.flush().map_err(|error| not_written(&error))?;
        Ok(Digests { read, written: digest.finish() })
    }

    fn look(&self, line: &[u8], redaction: &mut Redaction) -> Result<(), Wrong> {
        let looked = if self.is_log {
            let frame = Tape::scan(line).map_err(Wrong::says)?;
            match frame.root().get("frame") {
                Some(frame) => redaction.look(&Payload::Json(frame.raw().into())),
                None => Ok(()),
            }
        } else {
            match transcript::read(line).map_err(Wrong::says)? {
                Record::Event(Event { kind: Kind::Frame(frame), .. }) => redaction.look(&frame.payload),
                _ => Ok(()),
            }
        };
        looked.map_err(Wrong::says)
    }

    fn redacted(&self, line: &[u8], redaction: &mut Redaction) -> Result<Vec<u8>, Wrong> {
        if self.is_log {
            let line = std::str::from_utf8(line).map_err(Wrong::says)?;
            return Ok((redaction.log_line(line) + "\n").into_bytes());
        }
        let mut writer = Writer::default();
        match transcript::read(line).map_err(Wrong::says)? {
            Record::Event(event) => writer.event(&redaction.event(&event)),
            other => writer.record(&other),
        }
        Ok(writer.text)
    }

    /// Reads line by line; gives the digest of all.
    fn lines(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), Wrong>) -> Result<String, Fault> {
        let fault = |says: &str| Fault::usage(format!("{}: {says}", self.from.display()));
        let mut file = recording::regular(self.from).map_err(|error| fault(&error.to_string()))?;
        let mut deframer = Deframer::new(LINE_BYTES_MAX);
        let mut digest = Digest::default();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut number = 0_u64;
        let mut took = |line: &[u8]| {
            number += 1;
            take(line).map_err(|wrong| match wrong {
                Wrong::Line(says) => fault(&format!("line {number}: {says}")),
                Wrong::Written(fault) => fault,
            })
        };
        loop {
            let count = file.read(&mut chunk).map_err(|error| fault(&error.to_string()))?;
            if count == 0 {
                break;
            }
            digest.update(&chunk[..count]);
            let mut lines = deframer.push(&chunk[..count]);
            while let Some(line) = lines.next() {
                match line {
                    Line::Whole(line) => took(line)?,
                    Line::Oversize { .. } => {
                        return Err(fault(&format!("a line is longer than {LINE_BYTES_MAX} bytes")));
                    }
                }
            }
        }
        let tail = deframer.tail();
        if !tail.is_empty() {
            took(tail)?;
        }
        Ok(digest.finish())
    }
}

/// Why a line could not be taken.
enum Wrong {
    /// It is no line of a recording.
    Line(String),
    /// What was made of it could not be written.
    Written(Fault),
}

impl Wrong {
    fn says(error: impl std::fmt::Display) -> Self {
        Self::Line(error.to_string())
    }
}
