//! The Reasonix extension protocol: its contracts, small conforming ends, and what is watched on a connection.

pub mod content;
pub mod contract;
pub mod documents;
pub mod guest;
pub mod host;
pub mod plugin;
pub mod prose;
pub mod sample;
pub mod session;
pub mod sidecar;
