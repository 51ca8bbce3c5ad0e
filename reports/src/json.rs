//! The JSON form of a report: pretty, with a final newline, always the same bytes for the same report.
//!
//! `schema/report-1.schema.json` describes it. It is safe to print: what [`crate::safe`] would spell out is written
//! as `\uNNNN`, which is the same string to every reader of JSON.

use std::fmt::{self, Write as _};
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::report::{Counts, Report, Requirement, Verdict};
use crate::safe;

/// The JSON Schema (draft 2020-12) of [`Report::VERSION`].
pub const SCHEMA: &str = include_str!("../schema/report-1.schema.json");

/// Writes a report.
pub fn render(report: &Report) -> String {
    written(report)
}

/// Writes another document in the same manner.
pub fn render_value(value: &serde_json::Value) -> String {
    written(value)
}

fn written(document: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, SafeFormatter::default());
    document.serialize(&mut serializer).expect("it has only string keys and is written to memory");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("serde_json writes UTF-8")
}

/// Reads a report back. A document of another version is refused by that version, whatever else it holds.
pub fn read(text: &str) -> Result<Report, ReadError> {
    let head: Head = serde_json::from_str(text).map_err(ReadError::Json)?;
    if head.format.as_ref().and_then(serde_json::Value::as_str) != Some("sidecert-report") {
        return Err(ReadError::Format);
    }
    match head.version {
        Some(version) if version == Report::VERSION => {
            let report = serde_json::from_str(text).map_err(ReadError::Shape)?;
            contradiction(&report).map_or(Ok(report), |says| Err(ReadError::Contradiction(says)))
        }
        Some(version) => Err(ReadError::Version(version.to_string())),
        None => Err(ReadError::Version("none".to_owned())),
    }
}

/// What a report says against itself. The headline is computed from both, so neither may lie.
fn contradiction(report: &Report) -> Option<String> {
    let unreasoned = |row: &&Requirement| row.why.is_some() != (row.verdict == Verdict::Undecided);
    match report.requirements.iter().find(unreasoned) {
        Some(row) => Some(format!("{} must have a reason exactly if it is undecided", row.id)),
        None if report.counts != Counts::of(&report.requirements) => {
            Some("the counts are not those of the verdicts".to_owned())
        }
        None => None,
    }
}

/// Why a text is no report that this crate can read.
#[derive(Debug)]
pub enum ReadError {
    /// It is no JSON object.
    Json(serde_json::Error),
    /// It is no sidecert report.
    Format,
    /// It is a report of this other version.
    Version(String),
    /// It says that it is a report of a known version, but departs from its schema.
    Shape(serde_json::Error),
    /// It has the shape of a report, but says this against itself.
    Contradiction(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(formatter, "not a JSON object: {}", safe::escape(&error.to_string())),
            Self::Format => formatter.write_str("not a sidecert report: `format` is not \"sidecert-report\""),
            Self::Version(found) => write!(
                formatter,
                "a report of version {}; this sidecert reads version {}",
                safe::escape(&safe::preview(found.as_bytes(), 40)),
                Report::VERSION,
            ),
            Self::Shape(error) => invalid(formatter, &error.to_string()),
            Self::Contradiction(says) => invalid(formatter, says),
        }
    }
}

fn invalid(formatter: &mut fmt::Formatter<'_>, says: &str) -> fmt::Result {
    write!(formatter, "not a valid report of version {}: {}", Report::VERSION, safe::escape(says))
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) | Self::Shape(error) => Some(error),
            Self::Format | Self::Version(_) | Self::Contradiction(_) => None,
        }
    }
}

/// What every version of the format begins with. All else is unread until the version is known.
#[derive(Deserialize)]
struct Head {
    format: Option<serde_json::Value>,
    version: Option<serde_json::Value>,
}

/// The pretty form of `serde_json`, but for the strings.
#[derive(Default)]
struct SafeFormatter<'a> {
    pretty: PrettyFormatter<'a>,
}

impl Formatter for SafeFormatter<'_> {
    /// A fragment is what stands between two escapes of JSON's own, so no command can straddle its ends.
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let escaped = safe::escape_with(fragment, |shown, character| {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        });
        writer.write_all(escaped.as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}
