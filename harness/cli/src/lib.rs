//! `sidecert`: where the suites, the mocks, the runner and the reports meet.
//!
//! Three ways in: [`main`] is the program, [`conformance`] makes a suite the tests of somebody's project, and [`host`]
//! runs a sidecar under the reference host in a test.
//!
//! A command returns an exit code, or a fault: one line on standard error and its code. Only this crate prints.

mod args;
mod calls;
mod commands;
mod compare;
mod config;
pub mod conformance;
mod contract;
mod driving;
mod environment;
mod excerpts;
mod exit;
pub mod hosted;
mod output;
mod progress;
mod provoke;
mod recording;
mod report;
mod scripts;
mod select;
mod shims;
mod steps;
mod target;
mod trace;
mod words;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use sidecert_proto::contract::Side;
use sidecert_runner::{Stop, stop};
use tokio::sync::watch;

use crate::args::{CheckArgs, CheckTarget, Cli, Command, InitSide, MockSide, ScriptCommand};
use crate::config::Settled;
use crate::exit::Fault;
pub use crate::hosted::host;

/// Is the program `sidecert`, with the words of the command line; ends with what it returns.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    if first.as_ref().is_some_and(|word| word == sidecert_runner::launch::WORD) {
        return sidecert_runner::launch::main(words);
    }
    // Who runs a target hears a signal from the first moment on, and ends in order.
    let listening =
        first.filter(|word| ["check", "replay", "shim"].iter().any(|it| word == it)).map(|_| stop::listen());
    panic::set_hook(Box::new(|info| output::complain(&format!("a fault of sidecert itself: {info}"))));
    match panic::catch_unwind(AssertUnwindSafe(|| run(listening))) {
        Ok(Ok(code)) => code.into(),
        Ok(Err(fault)) => {
            output::complain(&fault.to_string());
            fault.code.into()
        }
        Err(_) => exit::OURS.into(),
    }
}

type Listening = io::Result<watch::Receiver<Stop>>;

fn run(listening: Option<Listening>) -> Result<u8, Fault> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let (cli, matches) = match parsed(&words) {
        Ok(parsed) => parsed,
        Err(error) => return told(&error),
    };
    match cli.command {
        Command::Check { target } => {
            let (side, args) = match target {
                CheckTarget::Guest(args) => (Side::Guest, args),
                CheckTarget::Host(args) => (Side::Host, args),
                CheckTarget::Document(args) => return commands::document::run(&args),
            };
            let listening = heard(listening.unwrap_or_else(stop::listen))?;
            let settled = settled(args, &words, &matches)?;
            commands::check::run(&settled.args, side, &listening).map_err(|fault| settled.attribute(fault))
        }
        Command::Init { side: InitSide::Guest(args) } => commands::init::run(&args),
        Command::Judge(args) => commands::judge::run(&args),
        Command::Redact(args) => commands::redact::run(&args),
        Command::Tap(args) => commands::tap::run(&args),
        Command::Probe(args) => Ok(commands::probe::run(args)),
        Command::Mock { side: MockSide::Guest { suite, contract, flaw } } => {
            commands::mock::guest(suite, contract.file.as_deref(), flaw.as_deref())
        }
        Command::Mock { side: MockSide::Host { suite, contract, flaw, released } } => {
            commands::mock::host(suite, contract.file.as_deref(), flaw.as_deref(), released)
        }
        Command::Replay(args) => {
            let listening = heard(listening.unwrap_or_else(stop::listen))?;
            commands::replay::run(&args, &listening)
        }
        Command::Script { what: ScriptCommand::From(args) } => commands::script::from(&args),
        Command::Shim { host } => commands::shim::run(host, heard(listening.unwrap_or_else(stop::listen))?),
        Command::Contract { what } => commands::contract::run(&what),
        Command::Explain(args) => commands::explain::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}

/// What the words of a command line say, the program's name first.
fn parsed(words: &[OsString]) -> Result<(Cli, ArgMatches), clap::Error> {
    let matches = Cli::command().try_get_matches_from(words)?;
    Ok((Cli::from_arg_matches(&matches)?, matches))
}

/// The arguments of a check, with what the configuration file adds to the command line.
fn settled(args: Box<CheckArgs>, words: &[OsString], matches: &ArgMatches) -> Result<Settled, Fault> {
    let deepest = matches.subcommand().and_then(|(_, matches)| matches.subcommand());
    // The program, `check` and `guest` take no options of their own, so the rest is the guest's.
    config::settle(args, words.get(3..).unwrap_or_default(), deepest.map_or(matches, |(_, matches)| matches))
}

fn heard(listening: Listening) -> Result<watch::Receiver<Stop>, Fault> {
    listening.map_err(|error| Fault { code: exit::OURS, says: error.to_string() })
}

/// Prints what clap has to say. Help and version are no faults; clap knows which stream they belong to.
fn told(error: &clap::Error) -> Result<u8, Fault> {
    let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
    match error.print() {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Fault::not_written("this text", &error)),
        _ => Ok(code),
    }
}
