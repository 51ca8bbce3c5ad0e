//! Runs machines on real processes: the only crate of sidecert with a clock, processes and pipes.
//!
//! ```no_run
//! # use {sidecert_proto::machine::Machine, sidecert_runner::*, std::{env, error::Error, process::ExitCode}};
//! # fn run(machine: &mut impl Machine) -> Result<Ended, Box<dyn Error>> {
//! let stop = stop::listen()?;
//! let spawn = Spawn {
//!     argv: vec!["./guest".into()],
//!     env: env::vars_os().collect(),
//!     cwd: None,
//!     launcher: "/proc/self/exe".into(),
//! };
//! // For any number of guests, each on a thread of its own:
//! let process = Process::spawn(&spawn)?;
//! let ended = drive_here(machine, Links::guest(process), stop.clone(), &mut |_| Ok(()))?;
//! # Ok(ended) }
//!
//! fn main() -> ExitCode {
//!     // Before anything else: the same executable is the launcher of its guests.
//!     let mut args = env::args_os().skip(1);
//!     if args.next().is_some_and(|word| word == launch::WORD) {
//!         return launch::main(args);
//!     }
//!     // …
//! #   ExitCode::SUCCESS
//! }
//! ```
//!
//! It knows no protocol: what travels on a link, and what it means, is the machine's.

pub mod budget;
pub mod drive;
pub mod launch;
pub mod links;
pub mod offspring;
mod os;
pub mod probe;
pub mod process;
pub mod record;
pub mod stop;
pub mod tap;

pub use drive::{DriveFault, Ended, How, drive, drive_here};
pub use links::{Links, Probes};
pub use probe::Probe;
pub use process::{Process, Spawn, SpawnFault};
pub use stop::Stop;
