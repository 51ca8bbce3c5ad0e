//! The pure core of sidecert: reading, scripts, plays, recordings and verdicts.
//!
//! Nothing here does I/O or reads a clock, the environment or a random source; `cargo xtask tidy` holds that.
//!
//! ```text
//! bytes → wire → json → rpc → exchange → judge → verdict        what is read
//! script → play ⇄ machine … → transcript                        what is done, and its record
//! scribe → transcript                                           what passes between two others
//! transcript → course, replay                                  what of it can be put beside another
//! transcript → redact → transcript                              the same without what was written in it
//! requirement, suite, contract                                  what is asked, and of whom
//! ```

pub mod budget;
pub mod contract;
pub mod course;
pub mod digest;
pub mod exchange;
pub mod json;
pub mod judge;
pub mod log;
pub mod machine;
pub mod play;
pub mod reasonix;
pub mod redact;
pub mod replay;
pub mod requirement;
pub mod rpc;
pub mod run;
pub mod schema;
pub mod scribe;
pub mod script;
pub mod sim;
pub mod suite;
pub mod transcript;
pub mod verdict;
pub mod webcodex;
pub mod wire;
