//! The provocation file: which frames make this target do what no frame can order.
//!
//! ```toml
//! [provoke]
//! large = { event = "input.receive", payload = { text = "please" } }
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use sidecert_proto::suite::Suite;

use crate::exit::Fault;
use crate::output;
use crate::select::closest;

/// The provocations in the file, each as one JSON text.
pub(crate) fn read(path: &Path, suite: &Suite) -> Result<BTreeMap<String, String>, Fault> {
    let fault = |says: String| Fault::usage(format!("--provoke {}: {says}", path.display()));
    let text = output::read_file(path).map_err(|error| fault(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| fault("it is not UTF-8".to_owned()))?;
    // An error of the TOML reader is several lines long; the first one and the place say all that is needed.
    let table: toml::Table = toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        fault(format!("line {line}: {}", error.message().replace('\n', " ")))
    })?;
    if let Some(other) = table.keys().find(|key| *key != "provoke") {
        return Err(fault(format!("{other:?} is unknown; there is one table, [provoke]")));
    }
    let Some(provoke) = table.get("provoke").and_then(|provoke| provoke.as_table()) else {
        return Err(fault("it has no [provoke] table".to_owned()));
    };
    let known: Vec<&str> = suite.provocations.iter().map(|provocation| provocation.name).collect();
    let mut provocations = BTreeMap::new();
    for (name, frame) in provoke {
        if !known.contains(&name.as_str()) {
            let hint =
                closest(name, known.iter().copied()).map(|it| format!(", but {it:?}")).unwrap_or_default();
            return Err(fault(format!(
                "there is no provocation {name:?}{hint}; `sidecert list provocations` shows all"
            )));
        }
        let complete = frame.get("event").is_some_and(toml::Value::is_str) && frame.get("payload").is_some();
        if !complete {
            return Err(fault(format!("{name} is no frame: it has an event and a payload")));
        }
        let json = serde_json::to_string(frame).map_err(|error| fault(format!("{name}: {error}")))?;
        provocations.insert(name.clone(), json);
    }
    Ok(provocations)
}
