//! Scripts of the user's: read, named, and what becomes of them in a check.

use std::path::{Path, PathBuf};

use sidecert_proto::contract::Side;
use sidecert_proto::judge::Judged;
use sidecert_proto::script::{Script, ScriptDef};
use sidecert_proto::suite::Suite;

use crate::exit::Fault;
use crate::output;

/// Reads the scripts in these files.
pub(crate) fn read(paths: &[PathBuf], suite: &Suite, target: Side) -> Result<Vec<Script>, Fault> {
    let mut scripts: Vec<Script> = Vec::new();
    for path in paths {
        let script = one(path)?;
        let fault = |says: String| Fault::usage(format!("--script {}: {says}", path.display()));
        let (opening, closing) = suite.frame(target);
        let taken = suite.scripts(suite.requirements).into_iter().chain([opening, closing]);
        if taken.map(|known| known.name).any(|name| name == script.name) {
            return Err(fault(format!("the suite has a script called {:?} itself", script.name)));
        }
        if let Some(label) = script.unsendable(target) {
            return Err(fault(format!(
                "the frame {label:?} has a $capture that no await and no reaction keeps, so it is never sent"
            )));
        }
        if let Some(says) = script.unaskable() {
            return Err(fault(says));
        }
        if scripts.iter().any(|other| other.name == script.name) {
            return Err(fault(format!("two scripts are called {:?}", script.name)));
        }
        scripts.push(script);
    }
    Ok(scripts)
}

fn one(path: &Path) -> Result<Script, Fault> {
    let fault = |says: String| Fault::usage(format!("--script {}: {says}", path.display()));
    let text = output::read_file(path).map_err(|error| fault(error.to_string()))?;
    Script::read(&text).map_err(|wrong| fault(wrong.to_string()))
}

/// What stands for them in a plan. There are a few, for as long as the program runs.
pub(crate) fn planned(scripts: &[Script]) -> Vec<&'static ScriptDef> {
    scripts.iter().map(|script| &*Box::leak(Box::new(ScriptDef::given(script)))).collect()
}

/// The first of these that was not played to its end, and why.
pub(crate) fn unmet<'j>(judged: &'j Judged, given: &'j [String]) -> Option<(&'j str, &'j str)> {
    given.iter().find_map(|name| match judged.scripts.get(name) {
        Some(None) => None,
        Some(Some(cause)) => Some((name.as_str(), cause.as_str())),
        None => Some((name.as_str(), "it was not played")),
    })
}

/// The first frame of such a script that is wrong and does not say so: the script, and what is wrong.
pub(crate) fn wrong<'j>(judged: &'j Judged, given: &[String]) -> Option<(&'j str, &'j str)> {
    judged.ours.iter().find_map(|(at, says)| {
        let played = &judged.processes.get(at.process)?.scripts;
        let name = played.iter().find(|name| given.contains(name))?;
        Some((name.as_str(), says.as_str()))
    })
}
