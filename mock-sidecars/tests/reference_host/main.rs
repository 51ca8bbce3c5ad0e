//! The reference host on a stage in memory, with guests that do what a test wants: what it writes, what it makes of what
//! it reads, and what the user is told. The clock is virtual.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod admission;
mod chain;
mod content;
mod ends;
mod frames;
mod handshake;
mod manners;
mod released;
mod stage;
mod streams;
mod turns;
mod ui;
