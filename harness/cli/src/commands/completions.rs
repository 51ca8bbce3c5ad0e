//! `completions`: a script that lets a shell complete our commands and options.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::{self, Fault};
use crate::output;

/// Prints the script for a shell.
pub(crate) fn run(shell: Shell) -> Result<u8, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sidecert", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(exit::OK)
}
