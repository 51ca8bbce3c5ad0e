//! The contract that is in force: the one of the suite, or a document of the user's.
//!
//! Any document of the published form will do: a fork has a protocol id of its own, and more or less than the original.

use std::path::Path;

use sidecert_proto::contract::Contract;
use sidecert_proto::reasonix;
use sidecert_proto::suite::Suite;

use crate::exit::Fault;
use crate::output;

/// The contract in `file`, or the one that is built into `suite`.
pub(crate) fn of(suite: &Suite, file: Option<&Path>) -> Result<Contract, Fault> {
    file.map_or_else(|| Ok((suite.contract)().clone()), read)
}

/// Reads a contract; what is wrong is told with the file and the place in it.
pub(crate) fn read(file: &Path) -> Result<Contract, Fault> {
    let fault = |says: String| Fault::usage(format!("--contract {}: {says}", file.display()));
    let text = output::read_file(file).map_err(|error| fault(error.to_string()))?;
    reasonix::contract::read(&text).map_err(|wrong| fault(wrong.to_string()))
}

/// The text for `run.json`, where `contract` is not the one that is built into `suite`.
pub(crate) fn recorded(suite: &Suite, contract: &Contract) -> Option<String> {
    (contract.document() != (suite.contract)().document()).then(|| contract.document().to_string())
}
