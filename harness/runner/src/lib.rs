//! Runs machines on real processes: the only crate of sidecert with a clock, processes and pipes.
//!
//! ```text
//! launch::main(args)  -> ExitCode            the launcher; `main` calls it first (see `launch::WORD`)
//! Process::spawn(&Spawn { argv, env, cwd, launcher }) -> Result<Process, SpawnFault>
//! Links::guest(process) | Links::stdio()?
//! drive(&mut machine, links, stop, &mut sink).await -> Result<Ended, DriveFault>
//! drive_here(&mut machine, links, stop, &mut sink)  -> the same, on a runtime of this thread's own
//! stop::listen()? -> watch::Receiver<Stop>   INT, TERM, HUP; the second one is Stop::Now
//! ```
//!
//! It knows no protocol: what travels on a link, and what it means, is the machine's.

pub mod budget;
pub mod drive;
pub mod launch;
pub mod links;
mod os;
pub mod process;
pub mod stop;

pub use drive::{DriveFault, Ended, How, drive, drive_here};
pub use links::Links;
pub use process::{Process, Spawn, SpawnFault};
pub use stop::Stop;
