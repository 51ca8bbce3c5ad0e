//! The person at the terminal: what is told to them, and the lines that they type.
//!
//! Standard output of a shim is its protocol, so it speaks to the terminal itself. Nothing that is told commands it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::termios::{self, QueueSelector};
use sidecert_reports::safe;

use super::program;

/// What there is to say where nobody can be asked.
pub(crate) const NONE: &str =
    "there is no terminal to ask a person on: none of standard input, output and error is one";
/// The terminal of a session.
const OURS: &str = "/dev/tty";

/// A terminal.
#[derive(Debug)]
pub(crate) struct Terminal(File);

/// The name of the terminal that this process was started on; a shim in a session of its own has no other way to it.
pub(crate) fn name() -> Option<PathBuf> {
    let name_of = |name: rustix::io::Result<std::ffi::CString>| name.ok()?.into_string().ok();
    let name = name_of(termios::ttyname(io::stdin(), Vec::new()))
        .or_else(|| name_of(termios::ttyname(io::stderr(), Vec::new())))
        .or_else(|| name_of(termios::ttyname(io::stdout(), Vec::new())));
    name.map(PathBuf::from)
}

impl Terminal {
    /// Opens the terminal of this name, or else the one that this process was started on, or has.
    pub(crate) fn open(named: Option<&Path>) -> io::Result<Self> {
        let path = named.map(Path::to_owned).or_else(name).unwrap_or_else(|| OURS.into());
        let no_terminal = || io::Error::other(NONE);
        // It must not become the terminal that our signals come from.
        let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).custom_flags(flags).open(path).map_err(|_| no_terminal())?;
        if file.is_terminal() { Ok(Self(file)) } else { Err(no_terminal()) }
    }

    /// Hears every line that is typed from now on, on a thread of its own; `None` is their end.
    pub(crate) fn listen(&self, told: impl Fn(Option<String>) -> bool + Send + 'static) -> io::Result<()> {
        let typed = self.0.try_clone()?;
        program::spawn("typed", move || {
            program::lines(typed, |line| told(Some(line)));
            told(None);
        })
    }

    /// Says one line. A terminal that is gone hears nothing, and its lines have ended.
    pub(crate) fn line(&mut self, text: &str) {
        let _ = writeln!(self.0, "{}", safe::escape(text));
    }

    /// Says where the next line that is typed goes.
    pub(crate) fn prompt(&mut self, text: &str) {
        let _ = write!(self.0, "{}> ", safe::escape(text)).and_then(|()| self.0.flush());
    }

    /// Forgets what was typed before anything was asked.
    pub(crate) fn forget_typed(&self) {
        let _ = termios::tcflush(&self.0, QueueSelector::IFlush);
    }
}
