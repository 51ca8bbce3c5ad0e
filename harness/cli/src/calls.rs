//! Which tools a check may call, and what their results may hold, as the command line says it.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Args, ValueEnum};
use sidecert_proto::contract::Contract;
use sidecert_proto::json::{Kind, Tape, quoted};
use sidecert_proto::script::CALLS;
use sidecert_proto::suite::Suite;
use sidecert_proto::webcodex::calls::OF_READERS;
use sidecert_proto::webcodex::contract::Generation;

use crate::exit::Fault;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// Call this tool with these arguments, a JSON object or @FILE with one. Given several times, several calls, in order.
    /// No tool is called that is not named here, but for --call-read-only.
    #[arg(long, value_name = "NAME=JSON")]
    call: Vec<String>,
    /// Call every tool once that says that it only reads, with arguments made of its input schema.
    #[arg(long)]
    call_read_only: bool,
    /// Which generation of the reference implementation the bounds on results are of; by default the newer.
    #[arg(long, value_enum)]
    bounds: Option<BoundsArg>,
}

/// A generation of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoundsArg {
    /// Smaller results and declared lengths.
    Older,
    /// The last known.
    Newer,
}

impl From<BoundsArg> for Generation {
    fn from(bounds: BoundsArg) -> Self {
        match bounds {
            BoundsArg::Older => Self::Older,
            BoundsArg::Newer => Self::Newer,
        }
    }
}

impl CallArgs {
    /// The calls that the user gave, one JSON text, where there are some.
    pub(crate) fn given(&self, suite: &Suite) -> Result<Option<String>, Fault> {
        let option = match (self.call.first(), self.call_read_only) {
            (None, false) => return Ok(None),
            (Some(_), _) => "--call",
            (None, true) => "--call-read-only",
        };
        if suite.calls.is_none() {
            return Err(Fault::usage(format!("{option}: {} has no tools to call", suite.name)));
        }
        let calls = self.call.iter().map(|text| call(text)).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(format!("[{}]", calls.join(","))))
    }

    /// What the user lets us do with that.
    pub(crate) fn groups(&self) -> BTreeSet<String> {
        let readers = self.call_read_only.then_some(OF_READERS);
        let any = (self.call_read_only || !self.call.is_empty()).then_some(CALLS);
        readers.into_iter().chain(any).map(str::to_owned).collect()
    }

    /// The contract with the bounds that were asked for.
    pub(crate) fn bounded(&self, suite: &Suite, contract: Contract) -> Result<Contract, Fault> {
        match (self.bounds, suite.older) {
            (None, _) | (Some(BoundsArg::Newer), Some(_)) => Ok(contract),
            (Some(BoundsArg::Older), Some(older)) => Ok(older(&contract)),
            (Some(_), None) => {
                Err(Fault::usage(format!("--bounds: {} has only one set of bounds", suite.name)))
            }
        }
    }

    /// The same as words of the command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let calls = self.call.iter().flat_map(|call| ["--call".to_owned(), call.clone()]);
        let readers = self.call_read_only.then(|| "--call-read-only".to_owned());
        let older =
            (self.bounds == Some(BoundsArg::Older)).then_some(["--bounds", "older"].map(str::to_owned));
        calls.chain(readers).chain(older.into_iter().flatten()).collect()
    }
}

/// The params of a call.
fn call(text: &str) -> Result<String, Fault> {
    let Some((name, given)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(Fault::usage(format!(
            "--call {text}: it is NAME=JSON or NAME=@FILE, 'echo={{\"text\":\"hello\"}}' for example"
        )));
    };
    let fault = |says: String| Fault::usage(format!("--call {name}: {says}"));
    let read = match given.strip_prefix('@') {
        Some(path) => {
            output::read_file(Path::new(path)).map_err(|error| fault(format!("{path}: {error}")))?
        }
        None => given.as_bytes().to_vec(),
    };
    let tape = Tape::scan(&read).map_err(|bad| fault(format!("its arguments are no JSON: {bad}")))?;
    let arguments = tape.root();
    if arguments.kind() != Kind::Object {
        return Err(fault(format!(
            "its arguments are of the kind {}, and must be an object",
            arguments.kind()
        )));
    }
    // On one line, whatever the file looks like.
    let arguments = arguments
        .to_value()
        .ok_or_else(|| fault("its arguments have a number or text that no JSON writer keeps".to_owned()))?;
    Ok(format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name)))
}
