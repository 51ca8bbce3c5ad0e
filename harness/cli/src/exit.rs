//! The exit codes, and what stops a command: one line that names the thing and what to do about it.

use std::fmt;

/// Nothing that is demanded failed, and nothing demanded was cut short.
pub(crate) const OK: u8 = 0;
/// Something that the specification demands failed.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong, or a file that it names.
pub(crate) const USAGE: u8 = 2;
/// Nothing failed, but something demanded could not be decided.
pub(crate) const UNDECIDED: u8 = 3;
/// The target could not be started.
pub(crate) const NOT_STARTED: u8 = 4;
/// A report or a recording could not be written.
pub(crate) const NOT_WRITTEN: u8 = 5;
/// A fault of sidecert itself.
pub(crate) const OURS: u8 = 70;
/// The user interrupted it; what was known by then has been reported.
pub(crate) const INTERRUPTED: u8 = 130;

/// The table of exit codes, as `--help` and the README show it.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  nothing that is demanded failed
    1  something that the specification demands failed
    2  the command line is wrong, or a file that it names
    3  nothing failed, but something demanded could not be decided: the target never answered
       the handshake or ended before it, a recording is cut off, all is out of the driver's
       reach, or a --require is no pass
    4  the target could not be started
    5  a report or a recording could not be written
   70  a fault of sidecert itself
  130  interrupted; a partial report was written";

/// The exit codes of `contract`.
pub(crate) const CONTRACT_TABLE: &str = "\
Exit codes:
    0  it is done: nothing is wrong with the contract, nothing breaks
    1  check: something is wrong with it; diff: something breaks within a major version
    2  the command line is wrong, or a file that it names: not there, no JSON, no contract
    5  standard output could not be written
   70  a fault of sidecert itself";

/// The exit codes of `check document`.
pub(crate) const DOCUMENT_TABLE: &str = "\
Exit codes:
    0  every document is admitted
    1  one is refused
    2  the command line is wrong, or a file that it names cannot be read
    5  a report could not be written
   70  a fault of sidecert itself";

/// What stopped a command.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The exit code.
    pub(crate) code: u8,
    /// One line.
    pub(crate) says: String,
}

impl Fault {
    /// The command line is wrong, or a file that it names.
    pub(crate) fn usage(says: impl Into<String>) -> Self {
        Self { code: USAGE, says: says.into() }
    }

    /// Something could not be written.
    pub(crate) fn not_written(what: &str, error: &std::io::Error) -> Self {
        Self { code: NOT_WRITTEN, says: format!("{what} could not be written: {error}") }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a target or a file is called may hold anything; a line stays a line.
        f.write_str(&sidecert_reports::safe::escape(&self.says))
    }
}
