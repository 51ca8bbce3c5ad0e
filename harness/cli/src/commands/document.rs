//! `check document`: whether a document on its own is admitted, and why not. It starts nothing, and takes time and memory
//! only for the beginning of what is too long.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use sidecert_proto::webcodex::Refusal;
use sidecert_proto::webcodex::contract::v1;
use sidecert_proto::webcodex::document::{self, BYTES_MAX, Kind};
use sidecert_reports::{json, safe};

use crate::calls::BoundsArg;
use crate::exit::{self, Fault};
use crate::output;
use crate::select::did_you_mean;

/// The suite whose documents are known.
const SUITE: &str = "webcodex-v1";

#[derive(Debug, Args)]
pub(crate) struct DocumentArgs {
    /// What to check against. So far only webcodex-v1 has documents of its own.
    #[arg(long, value_parser = suite)]
    suite: &'static str,
    /// What the documents are.
    #[arg(long, value_enum)]
    kind: KindArg,
    /// Which generation of the reference implementation the bounds are of. The specification names no numbers.
    #[arg(long, value_enum, default_value_t = BoundsArg::Newer)]
    bounds: BoundsArg,
    /// Write a report: json=PATH; - is standard output, and what people read then goes to standard error.
    #[arg(long, value_name = "json=PATH", value_parser = report)]
    report: Vec<ReportPath>,
    /// Only what is refused.
    #[arg(long, short)]
    quiet: bool,
    /// The documents; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// The inputSchema of a tool.
    InputSchema,
    /// The outputSchema of a tool.
    OutputSchema,
    /// The result of tools/list: an object with the tools.
    ToolsList,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::InputSchema => Self::InputSchema,
            KindArg::OutputSchema => Self::OutputSchema,
            KindArg::ToolsList => Self::ToolsList,
        }
    }
}

/// Where a report goes; `None` is standard output.
#[derive(Clone, Debug)]
struct ReportPath(Option<PathBuf>);

fn suite(name: &str) -> Result<&'static str, String> {
    if name == SUITE {
        return Ok(SUITE);
    }
    if sidecert_cases::suite(name).is_some() {
        return Err(format!("{name} has no documents that are checked on their own; {SUITE} has"));
    }
    Err(format!("there is {SUITE}{}", did_you_mean(name, [SUITE].into_iter())))
}

fn report(text: &str) -> Result<ReportPath, String> {
    match text.split_once('=') {
        Some(("json", "")) => Err("the path is missing; - is standard output".to_owned()),
        Some(("json", path)) => Ok(ReportPath((path != "-").then(|| path.into()))),
        _ => Err("documents have one format: json=PATH, json=report.json for example".to_owned()),
    }
}

/// Checks them all, and tells.
pub(crate) fn run(args: &DocumentArgs) -> Result<u8, Fault> {
    if args.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err(Fault::usage("standard input can be one of the documents only"));
    }
    for path in args.report.iter().filter_map(|to| to.0.as_ref()) {
        output::has_a_place(path)?;
    }
    let bounds = v1().bounds(args.bounds.into());
    let mut checked = Vec::with_capacity(args.files.len());
    for file in &args.files {
        // One byte more shows that it is too long.
        let text = output::read_beginning((!is_stdin(file)).then_some(file.as_path()), BYTES_MAX + 1)
            .map_err(|error| Fault::usage(format!("{}: {error}", shown(file))))?;
        checked.push((file.as_path(), document::check(&text, args.kind.into(), bounds)));
    }
    let told: String = checked.iter().map(|(file, answer)| told(file, answer, args.quiet)).collect();
    if args.report.iter().any(|to| to.0.is_none()) {
        output::print_to_stderr(&told)?;
    } else {
        output::print(&told)?;
    }
    let report = json::render_value(&document(args, &checked));
    for to in &args.report {
        match &to.0 {
            Some(path) => output::write_file(path, &report)?,
            None => output::print(&report)?,
        }
    }
    let refused = checked.iter().any(|(_, answer)| answer.is_err());
    Ok(if refused { exit::FAILED } else { exit::OK })
}

type Answer = Result<Option<usize>, Refusal>;

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn shown(file: &Path) -> impl fmt::Display + '_ {
    let name = if is_stdin(file) { Path::new("standard input") } else { file };
    name.display()
}

/// What people read of one.
fn told(file: &Path, answer: &Answer, quiet: bool) -> String {
    let refusal = match answer {
        Ok(_) if quiet => return String::new(),
        Ok(tools) => {
            let tools = match tools {
                None => String::new(),
                Some(1) => ": 1 tool".to_owned(),
                Some(tools) => format!(": {tools} tools"),
            };
            return format!("admitted  {}{tools}\n", safe::escape(&shown(file).to_string()));
        }
        Err(refusal) => refusal,
    };
    let mut place = Vec::new();
    place.extend(refusal.tool.as_ref().map(|tool| format!("tool {tool}")));
    place.extend(refusal.field.map(str::to_owned));
    place.push(if refusal.pointer.is_empty() { "the whole".to_owned() } else { refusal.pointer.clone() });
    let lines = [
        format!("refused   {}: {}", shown(file), refusal.code),
        format!("          {}", place.join(", ")),
        format!("          {} ({})", refusal.says, refusal.basis.name()),
    ];
    lines.map(|line| safe::escape(&line).into_owned()).join("\n") + "\n"
}

/// What programs read of all.
fn document(args: &DocumentArgs, checked: &[(&Path, Answer)]) -> Value {
    let documents = checked.iter().map(|(file, answer)| {
        let refusal = answer.as_ref().err();
        json!({
            "file": file.display().to_string(),
            "admitted": refusal.is_none(),
            "code": refusal.map(|it| &it.code),
            "tool": refusal.and_then(|it| it.tool.as_ref()),
            "field": refusal.and_then(|it| it.field),
            "pointer": refusal.map(|it| &it.pointer),
            "says": refusal.map(|it| &it.says),
            "basis": refusal.map(|it| it.basis.name()),
        })
    });
    let name = |value: Option<clap::builder::PossibleValue>| value.map(|it| it.get_name().to_owned());
    json!({
        "format": "sidecert-documents",
        "version": 1,
        "tool": { "name": "sidecert", "version": env!("CARGO_PKG_VERSION") },
        "suite": args.suite,
        "kind": name(args.kind.to_possible_value()),
        "bounds": name(args.bounds.to_possible_value()),
        "documents": documents.collect::<Vec<_>>(),
    })
}
