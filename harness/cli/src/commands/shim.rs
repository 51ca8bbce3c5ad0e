//! `shim`: is what makes a host that we know do what sidecert says, for `check host`.

use sidecert_runner::Stop;
use tokio::sync::watch;

use crate::args::ShimArgs;
use crate::exit::{self, Fault};
use crate::shims::reasonix_cli;

/// Is the shim of the released Reasonix CLI until its input ends.
pub(crate) fn reasonix_cli(args: &ShimArgs, listening: watch::Receiver<Stop>) -> Result<u8, Fault> {
    let not_started = |says| Fault { code: exit::NOT_STARTED, says };
    // The CLI runs elsewhere, so where it is must not depend on where we are. A mere name is looked for in PATH.
    let is_name = args.program.parent().is_some_and(|folder| folder.as_os_str().is_empty());
    let program = if is_name { Ok(args.program.clone()) } else { args.program.canonicalize() };
    let program = program.map_err(|error| not_started(format!("{}: {error}", args.program.display())))?;
    reasonix_cli::shim(args.mode, &program, listening)
        .map_err(|error| not_started(format!("{}: {error}", program.display())))
}
