//! Writing for people and to files: a closed pipe is nobody's fault, any other failure is told.

use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use crate::args::Color;
use crate::exit::Fault;

/// The largest file of the user's that is read whole, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The width of a report where no terminal says another.
const WIDTH: usize = 100;

/// How much of what stands before a place is shown with it, in bytes.
const BEFORE_BYTES: usize = 40;

/// One line on standard error.
pub(crate) fn complain(line: &str) {
    // If this cannot be written there is nobody left to tell.
    let _ = writeln!(io::stderr(), "sidecert: {line}");
}

/// Text on standard output. A reader that has gone away has seen what it wanted.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    tolerate_closed_pipe(written).map_err(|error| Fault::not_written("standard output", &error))
}

/// Text on standard error.
pub(crate) fn print_to_stderr(text: &str) -> Result<(), Fault> {
    let written = io::stderr().lock().write_all(text.as_bytes());
    tolerate_closed_pipe(written).map_err(|error| Fault::not_written("standard error", &error))
}

/// Text in a file that only its owner may read: what a target said is nobody else's business.
pub(crate) fn write_private_file(path: &Path, text: &str) -> Result<(), Fault> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Fault::not_written(&path.display().to_string(), &error))
}

/// Writes a file for its owner, which must not be there yet.
pub(crate) fn write_new_file(path: &Path, text: &str) -> Result<(), Fault> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = fs::File::options().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Fault::not_written(&path.display().to_string(), &error))
}

/// Reads a file that the user names, up to [`FILE_BYTES_MAX`]: a wrong name may be a device that never ends.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read(fs::File::open(path)?)
}

/// Reads standard input to its end, up to [`FILE_BYTES_MAX`].
pub(crate) fn read_stdin() -> io::Result<Vec<u8>> {
    read(io::stdin().lock())
}

/// Reads the beginning of a file that the user names, or of standard input where none is: at most so many bytes.
pub(crate) fn read_beginning(path: Option<&Path>, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path {
        Some(path) => fs::File::open(path)?.take(bytes_max as u64).read_to_end(&mut bytes)?,
        None => io::stdin().lock().take(bytes_max as u64).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

fn read(from: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}

/// Text in a file.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Fault> {
    fs::write(path, text).map_err(|error| Fault::not_written(&path.display().to_string(), &error))
}

/// Fails where a file cannot stand at `path`, before the work is done that it is to tell of.
pub(crate) fn has_a_place(path: &Path) -> Result<(), Fault> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = fs::metadata(folder).map(|folder| folder.is_dir());
    let fault = match found {
        Err(error) => Some(error),
        Ok(false) => Some(ErrorKind::NotADirectory.into()),
        Ok(true) if path.is_dir() => Some(ErrorKind::IsADirectory.into()),
        Ok(true) => None,
    };
    fault.map_or(Ok(()), |error| Err(Fault::not_written(&path.display().to_string(), &error)))
}

/// Whether to use colours on standard output (or standard error), and how wide a line may be there.
pub(crate) fn style(color: Color, on_stderr: bool) -> (bool, usize) {
    let terminal = if on_stderr { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let color = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let size = if on_stderr {
        rustix::termios::tcgetwinsize(io::stderr())
    } else {
        rustix::termios::tcgetwinsize(io::stdout())
    };
    let width = size.ok().map(|size| usize::from(size.ws_col)).filter(|width| terminal && *width > 0);
    (color, width.unwrap_or(WIDTH))
}

fn tolerate_closed_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A line, cut to about so many bytes where it is longer: its beginning, and what stands around the byte `at`.
pub(crate) fn cut_around(line: &str, bytes_max: usize, at: usize) -> String {
    if line.len() <= bytes_max {
        return line.to_owned();
    }
    let floor = |at: usize| line.floor_char_boundary(at.min(line.len()));
    let (head, from) = (floor(BEFORE_BYTES), floor(at.saturating_sub(BEFORE_BYTES)));
    let (head, from) = if from <= head { ("", 0) } else { (&line[..head], from) };
    let to = floor(from + bytes_max - head.len());
    let gap = if head.is_empty() { "" } else { "…" };
    let more = if to < line.len() { format!("… ({} bytes)", line.len()) } else { String::new() };
    format!("{head}{gap}{}{more}", &line[from..to])
}
