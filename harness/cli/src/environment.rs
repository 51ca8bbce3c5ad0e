//! What a target sees of our environment: all of it, but for variables whose name looks like a secret.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use sidecert_proto::redact;

use crate::args::TargetArgs;
use crate::exit::Fault;

/// A value shorter than this, in bytes, is not masked in reports: it would be found everywhere.
const MASKED_BYTES_LEAST: usize = 8;

/// The environment of a target.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Every variable.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The names of those of ours that it does not get.
    pub(crate) withheld: Vec<String>,
}

/// What the target sees.
pub(crate) fn of(
    args: &TargetArgs,
    identity: Vec<(&'static str, String)>,
    scratch: &Path,
) -> Result<Environment, Fault> {
    let mut environment = Environment { variables: Vec::new(), withheld: Vec::new() };
    let named = |name: &OsStr| args.env.iter().any(|given| given == name);
    for (name, value) in env::vars_os() {
        if args.env_clear && !named(&name) {
            continue;
        }
        if looks_secret(&name) && !args.env_all && !named(&name) {
            environment.withheld.push(name.to_string_lossy().into_owned());
            continue;
        }
        environment.variables.push((name, value));
    }
    environment.withheld.sort();
    environment.set("TMPDIR".into(), scratch.into());
    for (name, value) in identity {
        environment.set(name.into(), value.into());
    }
    for given in &args.env {
        match assignment(given) {
            Some((name, _)) if name.is_empty() => {
                let given = given.to_string_lossy();
                return Err(Fault::usage(format!(
                    "--env {given}: there is no name; it is NAME or NAME=VALUE"
                )));
            }
            Some((name, value)) => environment.set(name, value),
            None if given.is_empty() => {
                return Err(Fault::usage("--env: there is no name; it is NAME or NAME=VALUE"));
            }
            None if env::var_os(given).is_some() => {}
            None => {
                let name = given.to_string_lossy();
                return Err(Fault::usage(format!(
                    "--env {name}: there is no such variable; NAME=VALUE sets one"
                )));
            }
        }
    }
    Ok(environment)
}

/// The values in our environment and in `--env` that no report may show.
pub(crate) fn secrets(given: &[OsString]) -> Vec<String> {
    let ours = env::vars_os();
    let given = given.iter().filter_map(|given| assignment(given));
    ours.chain(given)
        .filter(|(name, value)| looks_secret(name) && value.len() >= MASKED_BYTES_LEAST)
        .map(|(_, value)| value.to_string_lossy().into_owned())
        .collect()
}

impl Environment {
    fn set(&mut self, name: OsString, value: OsString) {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value));
    }
}

fn looks_secret(name: &OsStr) -> bool {
    redact::looks_secret(&name.to_string_lossy())
}

fn assignment(given: &OsStr) -> Option<(OsString, OsString)> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = given.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((OsStr::from_bytes(&bytes[..at]).to_owned(), OsStr::from_bytes(&bytes[at + 1..]).to_owned()))
}
