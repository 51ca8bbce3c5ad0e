//! `list`: what is checked, what can go wrong, what our side does, and what a user can make possible.

use serde_json::{Value, json};
use sidecert_cases::SUITES;
use sidecert_mocks::every_flaw;
use sidecert_proto::contract::Contract;
use sidecert_proto::requirement::{Basis, Check, Cite, Level, Requirement};
use sidecert_proto::script::{Need, Process, ScriptDef};
use sidecert_proto::suite::Suite;

use crate::args::{ListArgs, ListFormat, What};
use crate::contract;
use crate::exit::{self, Fault};
use crate::output;

/// Lists.
pub(crate) fn run(args: &ListArgs) -> Result<u8, Fault> {
    let suites: Vec<&Suite> = match args.suite {
        Some(suite) => vec![suite],
        None => SUITES.to_vec(),
    };
    let contracts: Result<Vec<Contract>, Fault> =
        suites.iter().map(|suite| contract::of(suite, args.contract.file.as_deref())).collect();
    let given: Vec<(&Suite, Contract)> = suites.into_iter().zip(contracts?).collect();
    let (columns, rows): (&[&str], Vec<Value>) = match args.what {
        What::Suites => (&["name", "contract", "requirements", "title"], given.iter().map(suite).collect()),
        What::Requirements => (&["id", "level", "basis", "side", "text"], merged(&given, requirements)),
        What::Flaws => (&["name", "side", "reach", "breaks"], merged(&given, flawed)),
        What::Scripts => (&["name", "process", "needs"], merged(&given, scripts)),
        What::Provocations => (&["name", "says", "example"], merged(&given, provocations)),
    };
    output::print(&match args.format {
        ListFormat::Json => format!("{}\n", serde_json::to_string_pretty(&rows).unwrap_or_default()),
        ListFormat::Table => table(columns, &rows),
    })?;
    Ok(exit::OK)
}

/// The entries of all suites, each once, with the suites that it belongs to.
fn merged(given: &[(&Suite, Contract)], list: fn(&Suite, &Contract) -> Vec<Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for (suite, contract) in given {
        for mut entry in list(suite, contract) {
            let same = all.iter_mut().find(|known| {
                known.as_object().is_some_and(|known| {
                    known.iter().all(|(name, value)| name == "suites" || entry[name] == *value)
                })
            });
            if let Some(suites) = same.and_then(|known| known["suites"].as_array_mut()) {
                suites.push(suite.name.into());
            } else {
                entry["suites"] = json!([suite.name]);
                all.push(entry);
            }
        }
    }
    all
}

fn suite((suite, contract): &(&Suite, Contract)) -> Value {
    json!({
        "name": suite.name,
        "contract": contract.id,
        "requirements": holding(suite, contract).count(),
        "title": suite.title,
    })
}

/// The requirements that hold in the edition and under the contract.
fn holding<'a>(
    suite: &'a Suite,
    contract: &'a Contract,
) -> impl Iterator<Item = &'static Requirement> + use<'a> {
    suite.requirements.iter().filter(|row| {
        row.holds.editions & suite.edition != 0 && row.holds.facts.iter().all(|fact| contract.has(*fact))
    })
}

fn requirements(suite: &Suite, contract: &Contract) -> Vec<Value> {
    holding(suite, contract).map(requirement).collect()
}

fn requirement(row: &Requirement) -> Value {
    json!({
        "id": row.id,
        "level": match row.level { Level::Must => "must", Level::Should => "should", Level::May => "may" },
        "basis": match row.basis() { Basis::Specified => "specified", Basis::Observed(_) => "observed" },
        "side": row.binds.to_string(),
        "text": row.text,
        "cites": row.cites.iter().map(cite).collect::<Vec<_>>(),
        "declares": row.holds.declares,
        "script": row.script().map(|script| script.name),
        "unobservable": match row.check { Check::Unobservable(why) => Some(why), _ => None },
        "since": row.since,
    })
}

fn cite(cite: &Cite) -> Value {
    match cite {
        Cite::Seed(heading, english) => json!({"kind": "seed", "section": heading, "english": english}),
        Cite::Schema(pointer) => json!({"kind": "schema", "section": pointer}),
        Cite::JsonRpc(section) => json!({"kind": "json-rpc", "section": section}),
    }
}

fn flawed(suite: &Suite, contract: &Contract) -> Vec<Value> {
    every_flaw(suite)
        .filter(|flaw| holding(suite, contract).any(|row| flaw.breaks.contains(&row.id)))
        .map(|flaw| {
            json!({
                "name": flaw.name,
                "side": flaw.side.to_string(),
                "breaks": flaw.breaks,
                "reach": flaw.reach.name(),
            })
        })
        .collect()
}

fn scripts(suite: &Suite, contract: &Contract) -> Vec<Value> {
    let mut all: Vec<&ScriptDef> = vec![suite.opening];
    all.extend(suite.scripts(holding(suite, contract)));
    all.push(suite.closing);
    all.into_iter()
        .map(|script| {
            let needs = script.needs.iter().map(|need| match need {
                Need::Provocation(name) => format!("the provocation {name}"),
                Need::Exercise(group) => format!("--exercise {group}"),
                Need::Declared(capability) => format!("a guest that declares {capability}"),
            });
            let process = match script.process {
                Process::Tour => "shared",
                Process::Own | Process::Bare => "its own",
            };
            json!({"name": script.name, "process": process, "needs": needs.collect::<Vec<_>>()})
        })
        .collect()
}

fn provocations(suite: &Suite, _: &Contract) -> Vec<Value> {
    let all = suite.provocations.iter();
    all.map(|it| json!({"name": it.name, "says": it.says, "example": it.example})).collect()
}

/// The rows, each column as wide as it needs to be.
fn table(columns: &[&str], rows: &[Value]) -> String {
    let cell = |row: &Value, column: &str| match &row[column] {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|column| (*column).to_owned()).collect()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()));
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for line in lines {
        let padded =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect::<Vec<_>>();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}
