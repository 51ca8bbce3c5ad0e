//! One file per command.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod contract;
pub(crate) mod document;
pub(crate) mod explain;
pub(crate) mod findings;
pub(crate) mod init;
pub(crate) mod judge;
pub(crate) mod list;
pub(crate) mod mock;
pub(crate) mod probe;
pub(crate) mod redact;
pub(crate) mod replay;
pub(crate) mod script;
pub(crate) mod shim;
pub(crate) mod tap;
