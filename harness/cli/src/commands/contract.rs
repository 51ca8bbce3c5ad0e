//! `contract`: what a protocol's contract holds, its hash, what is wrong with one, and what changed between two.
//!
//! Nothing is played here: this is for the CI of a protocol, whoever's it is.

use std::io::{self, IsTerminal as _};

use serde_json::{Map, Value, json};
use sidecert_proto::contract::diff::{CHANGES_MAX, Class, Diff, Edition, diff};
use sidecert_proto::contract::{Contract, Method, MethodKind};
use sidecert_proto::digest;
use sidecert_proto::json::Tape;
use sidecert_reports::terminal::{Detail, Sheet, Style};
use sidecert_reports::{json, safe};

use crate::args::{Color, ContractCommand, ContractDiffArgs, ListFormat, ShowFormat};
use crate::contract::Source;
use crate::exit::{self, Fault};
use crate::output;

/// Does one of these things.
pub(crate) fn run(what: &ContractCommand) -> Result<u8, Fault> {
    match what {
        ContractCommand::Show { what, format, color } => show(what, *format, *color),
        ContractCommand::Hash { what } => hash(what),
        ContractCommand::Check { what } => check(what),
        ContractCommand::Diff(args) => changes(args),
    }
}

/// The canonical text of the JSON there.
fn canonical(source: &Source, text: &[u8]) -> Result<String, Fault> {
    let tape = Tape::scan(text).map_err(|fault| Fault::usage(format!("{source}: no JSON: {fault}")))?;
    tape.root().published().map_err(|ambiguity| Fault::usage(format!("{source}: {ambiguity}")))
}

// ---- hash ----

fn hash(source: &Source) -> Result<u8, Fault> {
    let text = canonical(source, &source.text()?)?;
    output::print(&format!("{}\n", digest::sha256(text.as_bytes())))?;
    if let Source::Suite(suite) = source {
        output::complain(&format!(
            "this is the hash of what {} has built in, without titles and messages; it is not the published file's",
            suite.name
        ));
    }
    Ok(exit::OK)
}

// ---- check ----

fn check(source: &Source) -> Result<u8, Fault> {
    let text = source.text()?;
    Tape::scan(&text).map_err(|fault| Fault::usage(format!("{source}: no JSON: {fault}")))?;
    match Contract::examine(&text) {
        Ok(contract) => {
            let told = format!("{source}: {}", counted(&contract));
            output::print(&format!("ok     {}\n", safe::escape(&told)))?;
            Ok(exit::OK)
        }
        Err(wrong) => {
            let mut told = String::new();
            for fault in &wrong.faults {
                told += &format!("wrong  {}\n", safe::escape(&fault.to_string()));
            }
            if wrong.more > 0 {
                told += &format!("wrong  {} more\n", wrong.more);
            }
            output::print(&told)?;
            Ok(exit::FAILED)
        }
    }
}

fn counted(contract: &Contract) -> String {
    format!(
        "{}, major {}: {} methods, {} error reasons, {} events, {} limits, {} definitions",
        contract.id,
        contract.major,
        contract.methods.len(),
        contract.reasons.len(),
        contract.events.len(),
        contract.limits.len(),
        contract.definitions().count(),
    )
}

// ---- show ----

fn show(source: &Source, format: ShowFormat, color: Color) -> Result<u8, Fault> {
    let (text, contract) = source.contract()?;
    let text = canonical(source, &text)?;
    output::print(&match format {
        // What is piped is what is hashed, to the byte.
        ShowFormat::Canonical if io::stdout().is_terminal() => format!("{}\n", safe::escape(&text)),
        ShowFormat::Canonical => text,
        ShowFormat::Table => table(&contract, &text, color),
    })?;
    Ok(exit::OK)
}

fn table(contract: &Contract, text: &str, color: Color) -> String {
    let (color, width) = output::style(color, false);
    let mut sheet = Sheet::new(Style { color, width, detail: Detail::Normal });
    sheet.heading("CONTRACT", &contract.id);
    sheet.row("major", &contract.major.to_string());
    sheet.row("SHA-256", &digest::sha256(text.as_bytes()));
    sheet.heading("METHODS", &contract.methods.len().to_string());
    for method in contract.methods.values() {
        let (label, says) = described(method);
        sheet.step(&label, 0, &says);
    }
    sheet.heading("ERRORS", &contract.reasons.len().to_string());
    for reason in contract.reasons.values() {
        let again = if reason.retryable { "retryable" } else { "not retryable" };
        sheet.row(&reason.code.to_string(), &format!("{}, {again}", reason.name));
    }
    sheet.heading("EVENTS", &contract.events.len().to_string());
    sheet.row("", &contract.events.join(", "));
    sheet.heading("LIMITS", &contract.limits.len().to_string());
    for (name, limit) in &contract.limits {
        sheet.row(&limit.to_string(), name);
    }
    sheet.heading("DEFINITIONS", &contract.definitions().count().to_string());
    for name in contract.definitions() {
        sheet.step("", 0, &format!("{name}: {}", shape(&contract.document()["$defs"][name])));
    }
    sheet.finish()
}

fn described(method: &Method) -> (String, String) {
    let verb = match method.kind {
        MethodKind::Request => "asks",
        MethodKind::Notification => "tells",
    };
    let params = method.params.as_deref().unwrap_or("nothing");
    let result = method.result.as_deref().map_or_else(String::new, |result| format!(" → {result}"));
    let says = format!("{} ({}): {params}{result}", method.name, method.class);
    (format!("{} {verb}", method.from), says)
}

/// A schema in a line.
fn shape(schema: &Value) -> String {
    let Some(keywords) = schema.as_object() else {
        return if *schema == Value::Bool(false) { "nothing" } else { "anything" }.to_owned();
    };
    let mut parts = vec![kind(keywords)];
    for (name, value) in keywords {
        match name.as_str() {
            "$ref" | "type" | "properties" | "required" | "items" | "title" | "description" => {}
            "additionalProperties" if value.is_boolean() => {}
            "additionalProperties" => parts.push(format!("others: {}", shape(value))),
            "enum" => {
                let values: Vec<String> =
                    value.as_array().into_iter().flatten().map(Value::to_string).collect();
                parts.push(format!("one of {}", values.join(" ")));
            }
            "x-externalizable" if *value == Value::Bool(true) => parts.push("externalizable".to_owned()),
            _ => parts.push(format!("{name} {value}")),
        }
    }
    parts.join(", ")
}

fn kind(keywords: &Map<String, Value>) -> String {
    if let Some(name) = keywords.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()) {
        return name.to_owned();
    }
    if let Some(items) = keywords.get("items") {
        return format!("array of {}", shape(items));
    }
    let Some(members) = keywords.get("properties").and_then(Value::as_object) else {
        return keywords.get("type").and_then(Value::as_str).unwrap_or("anything").to_owned();
    };
    let required: Vec<&str> = keywords
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let members = members.iter().map(|(name, schema)| {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{optional}: {}", shape(schema))
    });
    let mut members: Vec<String> = members.collect();
    if keywords.get("additionalProperties") != Some(&Value::Bool(false)) {
        members.push("…".to_owned());
    }
    format!("{{{}}}", members.join("; "))
}

// ---- diff ----

fn changes(args: &ContractDiffArgs) -> Result<u8, Fault> {
    if matches!((&args.old, &args.new), (Source::Stdin, Source::Stdin)) {
        return Err(Fault::usage("standard input can be one of the two only"));
    }
    let old = Side::read(&args.old)?;
    let new = Side::read(&args.new)?;
    let diff = diff(&old.contract, &new.contract);
    let held = diff.same_major || args.same_major;
    output::print(&match args.format {
        ListFormat::Json => json::render_value(&document(&old, &new, &diff, held)),
        ListFormat::Table => told(&old, &new, &diff, held, args.color),
    })?;
    Ok(if diff.is_breaking() && held { exit::FAILED } else { exit::OK })
}

/// One of the two contracts.
struct Side<'a> {
    source: &'a Source,
    contract: Contract,
    sha256: String,
}

impl<'a> Side<'a> {
    fn read(source: &'a Source) -> Result<Self, Fault> {
        let (text, contract) = source.contract()?;
        let sha256 = digest::sha256(canonical(source, &text)?.as_bytes());
        Ok(Self { source, contract, sha256 })
    }

    fn says(&self) -> String {
        format!(
            "{}: {}, major {}, SHA-256 {}",
            self.source, self.contract.id, self.contract.major, self.sha256
        )
    }

    fn document(&self) -> Value {
        json!({
            "source": self.source.to_string(),
            "id": self.contract.id,
            "major": self.contract.major,
            "sha256": self.sha256,
        })
    }
}

/// What changed, for programs: `contract-diff-1.schema.json` describes it.
fn document(old: &Side<'_>, new: &Side<'_>, diff: &Diff, held: bool) -> Value {
    let changes = diff.changes.iter().map(|change| {
        json!({
            "class": change.class.name(),
            "what": change.what,
            "pointer": change.pointer,
            "in": match change.of { Edition::Old => "old", Edition::New => "new" },
            "says": change.says,
        })
    });
    let counts: Map<String, Value> =
        Class::ALL.iter().map(|class| (class.name().to_owned(), diff.count(*class).into())).collect();
    json!({
        "format": "sidecert-contract-diff",
        "version": 1,
        "tool": { "name": "sidecert", "version": env!("CARGO_PKG_VERSION") },
        "old": old.document(),
        "new": new.document(),
        "same_major": diff.same_major,
        "held": held,
        "passes": !(diff.is_breaking() && held),
        "counts": counts,
        "left_out": diff.left_out(),
        "changes": changes.collect::<Vec<_>>(),
    })
}

/// What changed, for people.
fn told(old: &Side<'_>, new: &Side<'_>, diff: &Diff, held: bool, color: Color) -> String {
    let (color, width) = output::style(color, false);
    let mut sheet = Sheet::new(Style { color, width, detail: Detail::Normal });
    sheet.row("old", &old.says());
    sheet.row("new", &new.says());
    for class in Class::ALL {
        let count = diff.count(class);
        if count > 0 {
            group(&mut sheet, class, count, diff);
        }
    }
    let counts: Vec<String> =
        Class::ALL.iter().map(|class| format!("{} {}", diff.count(*class), class.name())).collect();
    let counts = counts.join(", ");
    let (then, now) = (old.contract.major, new.contract.major);
    let within =
        if diff.same_major { format!("within major {now}") } else { format!("from major {then} to {now}") };
    if diff.is_breaking() && held {
        sheet.fault("BREAKS", &format!("{within}: {counts}"));
    } else if diff.is_breaking() {
        sheet.heading(
            "ok",
            &format!("{within}, so it may break (--same-major holds it to the rule): {counts}"),
        );
    } else {
        sheet.heading("ok", &format!("{within}: {counts}"));
    }
    sheet.finish()
}

fn group(sheet: &mut Sheet, class: Class, count: u64, diff: &Diff) {
    let changes = if count == 1 { "1 change".to_owned() } else { format!("{count} changes") };
    let word = class.name().to_uppercase();
    match class {
        Class::Breaking if diff.same_major => sheet.fault(&word, &changes),
        Class::Breaking | Class::Warning => sheet.warning(&word, &changes),
        Class::Additive | Class::Editorial => sheet.heading(&word, &changes),
    }
    for change in diff.changes.iter().filter(|change| change.class == class) {
        let done = change.what.rsplit('-').next().unwrap_or(change.what);
        sheet.text_with(done, &change.pointer);
        sheet.step("", 1, &change.says);
    }
    if count > CHANGES_MAX as u64 {
        sheet.row("", &format!("… and {} more", count - CHANGES_MAX as u64));
    }
}
