//! Provocations: which frames make this target do what no frame can order.
//!
//! ```toml
//! [provoke]
//! large = { event = "input.receive", payload = { text = "please" } }
//! empty-stream = { message = "please" }
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sidecert_proto::suite::Suite;
use toml::de::{DeTable, DeValue};

use crate::exit::Fault;
use crate::output;
use crate::select::closest;

/// The provocations in the `[provoke]` table of a file, each as one JSON text.
pub(crate) fn read(path: &Path, suite: &Suite) -> Result<BTreeMap<String, String>, Fault> {
    let fault = |says: &str| Fault::usage(format!("--provoke {}: {says}", path.display()));
    let text = output::read_file(path).map_err(|error| fault(&error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| fault("it is not UTF-8"))?;
    let fault_at = |at: usize, says: &str| {
        let line = text[..at.min(text.len())].matches('\n').count() + 1;
        fault(&format!("line {line}: {says}"))
    };
    // An error of the TOML reader is several lines long; the first one and the place say all that is needed.
    let table = DeTable::parse(&text).map_err(|error| {
        fault_at(error.span().map_or(0, |span| span.start), &error.message().replace('\n', " "))
    })?;
    if let Some(other) = table.get_ref().keys().find(|key| *key.get_ref() != "provoke") {
        let says = format!("{:?} is unknown; there is one table, [provoke]", other.get_ref());
        return Err(fault_at(other.span().start, &says));
    }
    match table.get_ref().get("provoke").map(|provoke| provoke.get_ref()) {
        Some(DeValue::Table(table)) => of(table, suite, &fault_at),
        _ => Err(fault("it has no [provoke] table")),
    }
}

/// The provocations in a table, each as one JSON text; `fault` says what is wrong at a place of the document.
pub(crate) fn of(
    table: &DeTable<'_>,
    suite: &Suite,
    fault: &dyn Fn(usize, &str) -> Fault,
) -> Result<BTreeMap<String, String>, Fault> {
    let mut provocations = BTreeMap::new();
    for (name, frame) in table {
        let at = name.span().start;
        let name = &**name.get_ref();
        let mut known = suite.provocations.iter().map(|provocation| provocation.name);
        if !known.clone().any(|known| known == name) {
            let hint = closest(name, &mut known).map(|it| format!(", but {it:?}")).unwrap_or_default();
            let says =
                format!("there is no provocation {name:?}{hint}; `sidecert list provocations` shows all");
            return Err(fault(at, &says));
        }
        let frame = json(frame.get_ref()).map_err(|says| fault(at, &format!("{name}: {says}")))?;
        let complete = (frame["event"].is_string() && frame.get("payload").is_some())
            || (frame["message"].is_string() && frame.get("event").is_none());
        if !complete {
            let says = format!("{name} is no frame: it has an event and a payload, or it has a message");
            return Err(fault(at, &says));
        }
        provocations.insert(name.to_owned(), frame.to_string());
    }
    Ok(provocations)
}

/// A TOML value as JSON; says why if it is none.
pub(crate) fn json(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Boolean(on) => Value::from(*on),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            Value::from(parsed.map_err(|_| format!("{} is beyond 64 bits", number.as_str()))?)
        }
        DeValue::Float(number) => {
            let parsed: Option<f64> = number.as_str().parse().ok().filter(|number: &f64| number.is_finite());
            Value::from(parsed.ok_or_else(|| format!("{} is no number of JSON", number.as_str()))?)
        }
        DeValue::Datetime(date) => return Err(format!("{date} is no JSON; in quotes it is a text")),
        DeValue::Array(list) => {
            list.iter().map(|element| json(element.get_ref())).collect::<Result<_, _>>()?
        }
        DeValue::Table(table) => {
            let members =
                table.iter().map(|(name, value)| Ok((name.get_ref().to_string(), json(value.get_ref())?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
    })
}
