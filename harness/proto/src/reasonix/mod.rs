//! The Reasonix extension protocol: its contracts, the smallest conforming ends, and what is watched on a connection.

pub mod content;
pub mod contract;
pub mod guest;
pub mod host;
pub mod session;
