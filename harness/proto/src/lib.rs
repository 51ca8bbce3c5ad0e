//! The pure core of sidecert: reading, scripts, plays, recordings and verdicts.
//!
//! Nothing here does I/O or reads a clock, the environment or a random source; `cargo xtask tidy` holds that.

pub mod contract;
pub mod json;
pub mod machine;
pub mod schema;
