//! `sidecert`: where the suites, the mocks, the runner and the reports meet.
//!
//! A command returns an exit code, or a fault: one line on standard error and its code. Only this crate prints.

mod args;
mod commands;
mod config;
mod contract;
mod environment;
mod exit;
mod output;
mod provoke;
mod report;
mod select;
mod steps;

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use crate::args::{CheckArgs, CheckTarget, Cli, Command, MockSide};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == sidecert_runner::launch::WORD) {
        return sidecert_runner::launch::main(words);
    }
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are no faults; clap says which stream they belong to.
            let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
            return match error.print() {
                Ok(()) => code.into(),
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => code.into(),
                Err(_) => exit::NOT_WRITTEN.into(),
            };
        }
    };
    panic::set_hook(Box::new(|info| output::complain(&format!("a fault of sidecert itself: {info}"))));
    let ran = panic::catch_unwind(AssertUnwindSafe(|| match cli.command {
        Command::Check { target: CheckTarget::Guest(args) } => check(args, &matches),
        Command::Judge(args) => commands::judge::run(&args),
        Command::Mock { side: MockSide::Guest { suite, contract, flaw } } => {
            commands::mock::run(suite, contract.file.as_deref(), flaw.as_deref())
        }
        Command::Explain(args) => commands::explain::run(&args),
        Command::List(args) => commands::list::run(&args),
    }));
    match ran {
        Ok(Ok(code)) => code.into(),
        Ok(Err(fault)) => {
            output::complain(&fault.to_string());
            fault.code.into()
        }
        Err(_) => exit::OURS.into(),
    }
}

/// Checks, with what the configuration file adds to the command line.
fn check(args: Box<CheckArgs>, matches: &ArgMatches) -> Result<u8, exit::Fault> {
    let deepest = matches.subcommand().and_then(|(_, matches)| matches.subcommand());
    // The program, `check` and `guest` take no options of their own, so the rest is the guest's.
    let words: Vec<OsString> = std::env::args_os().skip(3).collect();
    let settled = config::settle(args, &words, deepest.map_or(matches, |(_, matches)| matches))?;
    commands::check::run(&settled.args).map_err(|fault| settled.attribute(fault))
}
