//! `tap`: stands where a guest stands in a host's configuration, relays, and records what passes.
//!
//! The host is the one that started us, so standard output is the guest's alone, and the exit code is its, too. What
//! goes wrong with the recording is a line on standard error, and nothing more.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sidecert_proto::machine::Exited;
use sidecert_runner::tap::{self, Record};

use crate::args::TapArgs;
use crate::commands::findings;
use crate::contract;
use crate::exit::{self, Fault};
use crate::output;

/// The longest frame that is recorded where no suite says another, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;
/// What is added to the number of a signal where we cannot die of it, as shells do.
const BY_SIGNAL: i32 = 128;

/// Taps until the guest is gone; gives the code that it ended with.
pub(crate) fn run(args: &TapArgs) -> Result<u8, Fault> {
    if args.command.is_empty() {
        return Err(Fault::usage("no command to stand before: `sidecert tap --record FILE -- COMMAND`"));
    }
    let contract = match (args.suite, &args.contract.file) {
        (Some(suite), file) => Some((suite, contract::of(suite, file.as_deref())?)),
        (None, Some(_)) => return Err(Fault::usage("--contract needs --suite, which says how it is read")),
        (None, None) => None,
    };
    let path = named(&args.record);
    let to = args.findings.as_deref().map(named);
    if to.as_ref() == Some(&path) {
        return Err(Fault::usage("--findings and --record name the same file"));
    }
    let is_recorded = Arc::new(AtomicBool::new(true));
    let (said, failed) = (path.clone(), is_recorded.clone());
    let record = Record {
        path: path.clone(),
        line_bytes_max: contract.as_ref().map_or(LINE_BYTES_MAX, |(suite, it)| (suite.line_bytes_max)(it)),
        told: Box::new(move |error| {
            failed.store(false, Ordering::Relaxed);
            complain(&said, &format!("{error}; all is relayed, and not recorded"));
        }),
    };
    let ended = tap::tap(&args.command, record)
        .map_err(|fault| Fault { code: exit::NOT_STARTED, says: fault.to_string() })?;
    if ended.recorded.lost > 0 {
        let says = format!("{} bytes came too fast, and are marked there as lost", ended.recorded.lost);
        complain(&path, &says);
    }
    if args.judge
        && let Some((suite, contract)) = &contract
    {
        // What is in the file otherwise is another session.
        let lines = if is_recorded.load(Ordering::Relaxed) {
            findings::transcript(&path, suite, contract)
        } else {
            Err(io::Error::other("nothing was recorded"))
        };
        tell(&path, lines, to.as_deref());
    }
    match ended.exited {
        Exited::Code(code) => Ok(u8::try_from(code).unwrap_or(exit::OURS)),
        Exited::Signal(signal) => {
            tap::die_of(signal);
            Ok(u8::try_from(BY_SIGNAL + signal).unwrap_or(exit::OURS))
        }
        Exited::Unknown => Ok(exit::OURS),
    }
}

/// Says what was wrong. The host hears of none of it, so nothing that fails here is more than a line.
fn tell(path: &Path, lines: io::Result<Vec<String>>, to: Option<&Path>) {
    let lines = lines.unwrap_or_else(|error| {
        let says = format!("not judged: {error}");
        complain(path, &says);
        vec![says]
    });
    let text = lines.iter().fold(String::new(), |text, line| text + line + "\n");
    match to {
        Some(to) => {
            if let Err(fault) = output::write_new_file(to, &text) {
                output::complain(&format!("--findings {fault}"));
                drop(output::print_to_stderr(&text));
            }
        }
        // Nobody may be reading it, which is their affair.
        None => drop(output::print_to_stderr(&text)),
    }
}

fn complain(path: &Path, says: &str) {
    let line = format!("--record {}: {says}", path.display());
    output::complain(&sidecert_reports::safe::escape(&line));
}

/// The file that is meant: `{pid}` is our process id.
fn named(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) => text.replace("{pid}", &std::process::id().to_string()).into(),
        None => path.to_owned(),
    }
}
