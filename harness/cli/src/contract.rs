//! The contract that is in force: the one of the suite, or a document of the user's.
//!
//! Any document of the published form will do: a fork has a protocol id of its own, and more or less than the original.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sidecert_cases::SUITES;
use sidecert_proto::contract::Contract;
use sidecert_proto::suite::Suite;

use crate::exit::Fault;
use crate::output;
use crate::select::did_you_mean;

/// Where a document comes from: what a user names on the command line.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// What is built into a suite.
    Suite(&'static Suite),
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match (word, sidecert_cases::suite(word)) {
            ("-", _) => Source::Stdin,
            (_, Some(suite)) => Source::Suite(suite),
            (file, None) => Source::File(file.into()),
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Suite(suite) => f.write_str(suite.name),
            Source::File(file) => write!(f, "{}", file.display()),
            Source::Stdin => f.write_str("standard input"),
        }
    }
}

impl Source {
    /// The document, as it stands there.
    pub(crate) fn text(&self) -> Result<Vec<u8>, Fault> {
        let read = match self {
            Source::Suite(suite) => return Ok((suite.contract)().document().to_string().into_bytes()),
            Source::File(file) => output::read_file(file),
            Source::Stdin => output::read_stdin(),
        };
        read.map_err(|error| {
            let names = SUITES.iter().map(|suite| suite.name);
            let meant = match self {
                Source::File(file) if error.kind() == std::io::ErrorKind::NotFound => {
                    file.to_str().map_or_else(String::new, |word| did_you_mean(word, names))
                }
                _ => String::new(),
            };
            Fault::usage(format!("{self}: {error}{meant}"))
        })
    }

    /// The contract there, of any family, and its text.
    pub(crate) fn contract(&self) -> Result<(Vec<u8>, Contract), Fault> {
        let text = self.text()?;
        let contract = Contract::examine(&text).map_err(|wrong| {
            let more = wrong.faults.len() as u64 - 1 + wrong.more;
            let first = wrong.faults.first().map(ToString::to_string).unwrap_or_default();
            let rest =
                if more == 0 { String::new() } else { format!(" ({more} more: `sidecert contract check`)") };
            Fault::usage(format!("{self}: {first}{rest}"))
        })?;
        Ok((text, contract))
    }
}

/// The contract in `file`, or the one that is built into `suite`.
pub(crate) fn of(suite: &Suite, file: Option<&Path>) -> Result<Contract, Fault> {
    file.map_or_else(|| Ok((suite.contract)().clone()), |file| read(suite, file))
}

/// Reads a contract of the family of `suite`; what is wrong is told with the file and the place in it.
pub(crate) fn read(suite: &Suite, file: &Path) -> Result<Contract, Fault> {
    let fault = |says: String| Fault::usage(format!("--contract {}: {says}", file.display()));
    let text = output::read_file(file).map_err(|error| fault(error.to_string()))?;
    (suite.read)(&text).map_err(|wrong| fault(wrong.to_string()))
}

/// The text for `run.json`, where `contract` is not the one that is built into `suite`.
pub(crate) fn recorded(suite: &Suite, contract: &Contract) -> Option<String> {
    (contract.document() != (suite.contract)().document()).then(|| contract.document().to_string())
}
