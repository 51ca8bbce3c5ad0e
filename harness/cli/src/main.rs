//! `sidecert`: where the suites, the mocks, the runner and the reports meet.
//!
//! A command returns an exit code, or a fault: one line on standard error and its code. Only this crate prints.

mod args;
mod commands;
mod contract;
mod environment;
mod exit;
mod output;
mod provoke;
mod report;
mod select;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{CheckTarget, Cli, Command, MockSide};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == sidecert_runner::launch::WORD) {
        return sidecert_runner::launch::main(words);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
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
        Command::Check { target: CheckTarget::Guest(args) } => commands::check::run(&args),
        Command::Judge(args) => commands::judge::run(&args),
        Command::Mock { side: MockSide::Guest { suite, contract, flaw } } => {
            commands::mock::run(suite, contract.file.as_deref(), flaw.as_deref())
        }
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
