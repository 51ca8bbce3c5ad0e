//! `shim`: is what makes a host do what sidecert says, for `check host`.

use std::io;

use sidecert_runner::Stop;
use tokio::sync::watch;

use crate::args::{ManualArgs, ReasonixCliArgs, ShimSide, VisitArgs};
use crate::exit::{self, Fault};
use crate::shims::manual::{self, Manual};
use crate::shims::none::{self, Visitor};
use crate::shims::reasonix_cli;

/// Is a shim until its input ends.
pub(crate) fn run(side: ShimSide, listening: watch::Receiver<Stop>) -> Result<u8, Fault> {
    let not_started = |error: io::Error| Fault { code: exit::NOT_STARTED, says: error.to_string() };
    match side {
        ShimSide::ReasonixCli(args) => reasonix_cli(&args, listening),
        ShimSide::Manual(args) => {
            let ManualArgs { place, asks, stops, command } = args;
            let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let manual = Manual { terminal: place.terminal, folder: place.folder, asks, stops, command };
            manual::shim(manual, listening).map_err(not_started)
        }
        ShimSide::None(VisitArgs { place, command }) => {
            let visitor = Visitor { terminal: place.terminal, folder: place.folder, command };
            none::shim(visitor, listening).map_err(not_started)
        }
    }
}

/// Is the shim of the released Reasonix CLI.
fn reasonix_cli(args: &ReasonixCliArgs, listening: watch::Receiver<Stop>) -> Result<u8, Fault> {
    let not_started = |says| Fault { code: exit::NOT_STARTED, says };
    // The CLI runs elsewhere, so where it is must not depend on where we are. A mere name is looked for in PATH.
    let is_name = args.program.parent().is_some_and(|folder| folder.as_os_str().is_empty());
    let program = if is_name { Ok(args.program.clone()) } else { args.program.canonicalize() };
    let program = program.map_err(|error| not_started(format!("{}: {error}", args.program.display())))?;
    reasonix_cli::shim(args.mode, &program, listening)
        .map_err(|error| not_started(format!("{}: {error}", program.display())))
}
