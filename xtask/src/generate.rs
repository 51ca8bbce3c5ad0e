//! The generated files: written from the tables, and checked to be what the tables say.

use std::fmt::Write;

use sidecert_cases::SUITES;
use sidecert_mocks::Flaw;
use sidecert_proto::contract::Side;
use sidecert_proto::requirement::{Basis, Check, Cite, Level, Requirement};
use sidecert_proto::suite::Suite;

use crate::Outcome;
use crate::repository::Repository;

/// Every generated file, and what it should hold.
fn files() -> Vec<(&'static str, String)> {
    vec![("docs/requirements.md", requirements())]
}

/// Writes those that have changed.
pub(crate) fn write(repository: &Repository) -> Outcome {
    for (file, text) in files() {
        if repository.text(file).as_ref() != Some(&text) {
            std::fs::write(repository.root.join(file), text).map_err(|error| format!("{file}: {error}"))?;
            println!("wrote {file}");
        }
    }
    Ok(())
}

/// Fails if one would change.
pub(crate) fn check(repository: &Repository) -> Outcome {
    let stale: Vec<&str> = files()
        .into_iter()
        .filter(|(file, text)| repository.text(file).as_ref() != Some(text))
        .map(|(file, _)| file)
        .collect();
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("stale: {}; `cargo xtask gen` writes it", stale.join(", ")))
    }
}

const BEFORE: &str = "\
<!-- Written by `cargo xtask gen` from the tables in `cases` and `mock-sidecars`. Do not edit. -->

# Requirements

Every requirement that `sidecert` knows, section by section: what conforms, who says so, where it is written, the script
that brings it up, and the flaws of our mocks that prove that it can fail.

A requirement whose basis is *observed* only ever warns, unless `--profile reference` asks for it.
";

const HEAD: &str = "\
| id | level | basis | binds | editions | what conforms | where it is written | script | flaws that break it |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

fn requirements() -> String {
    let mut out = BEFORE.to_owned();
    let mut families: Vec<&Suite> = Vec::new();
    for suite in SUITES {
        if !families.iter().any(|known| known.family == suite.family) {
            families.push(suite);
        }
    }
    for family in families {
        let editions: Vec<&Suite> =
            SUITES.iter().copied().filter(|suite| suite.family == family.family).collect();
        let _ = write!(out, "\n## {}\n\nSuites:", family.family);
        for (place, suite) in editions.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(out, "{comma} `{}` ({})", suite.name, suite.title);
        }
        out.push_str(".\n");
        let mut section = "";
        for row in family.requirements {
            let its = row.id.split('/').nth(1).unwrap_or_default();
            if its != section {
                section = its;
                let _ = write!(out, "\n### {section}\n\n{HEAD}");
            }
            out.push_str(&line(row, &editions));
        }
    }
    out
}

fn line(row: &Requirement, editions: &[&Suite]) -> String {
    let level = match row.level {
        Level::Must => "must",
        Level::Should => "should",
        Level::May => "may",
    };
    let basis = match row.basis() {
        Basis::Specified => "specified".to_owned(),
        Basis::Observed(whom) => format!("observed: {whom}"),
    };
    let binds = match row.binds {
        Side::Guest => "guest",
        Side::Host => "host",
    };
    let holds: Vec<&&Suite> =
        editions.iter().filter(|suite| row.holds.editions & suite.edition != 0).collect();
    let holds = if holds.len() == editions.len() {
        "all".to_owned()
    } else {
        listed(holds.iter().map(|suite| suite.name))
    };
    let cites: Vec<String> = row.cites.iter().map(cited).collect();
    let script = match row.check {
        Check::Unobservable(why) => format!("none: {why}"),
        _ => row.script().map_or_else(String::new, |script| format!("`{}`", script.name)),
    };
    let mut flaws: Vec<&Flaw> = Vec::new();
    for flaw in editions.iter().flat_map(|suite| sidecert_mocks::every_flaw(suite)) {
        if flaw.breaks.contains(&row.id) && !flaws.iter().any(|known| known.name == flaw.name) {
            flaws.push(flaw);
        }
    }
    let cells = [
        format!("`{}`", row.id),
        level.to_owned(),
        basis,
        binds.to_owned(),
        holds,
        row.text.to_owned(),
        cites.join("; "),
        script,
        listed(flaws.iter().map(|flaw| flaw.name)),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn cited(cite: &Cite) -> String {
    match cite {
        Cite::Seed(heading, english) => format!("“{heading}” ({english})"),
        Cite::Schema(pointer) => format!("schema `{pointer}`"),
        Cite::JsonRpc(section) => format!("JSON-RPC 2.0, {section}"),
    }
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
