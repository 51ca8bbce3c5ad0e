//! What no compiler checks, each violation with its file and line: purity, names that belong in contracts, lengths,
//! words, links.

use std::collections::BTreeSet;

use serde_json::Value;
use sidecert_cases::SUITES;
use sidecert_proto::contract::Side;

use crate::Outcome;
use crate::repository::{Repository, output};
use crate::source::Source;

/// The crates that do no I/O.
const PURE: &[&str] = &["harness/proto", "cases"];
/// What they may depend on.
const PURE_DEPENDENCIES: &[&str] =
    &["base64", "bytes", "jsonschema", "memchr", "serde_json", "sha2", "sidecert-proto"];
/// What they may use of the standard library.
const PURE_MODULES: &[&str] = &[
    "borrow",
    "cell",
    "cmp",
    "collections",
    "convert",
    "error",
    "fmt",
    "hash",
    "iter",
    "marker",
    "mem",
    "num",
    "ops",
    "rc",
    "slice",
    "str",
    "string",
    "sync",
    "vec",
];
/// Where no method, protocol or limit is named; contracts excepted.
const NAMELESS: &[&str] = &["harness/proto/src/", "harness/runner/src/"];
/// Where the contracts are that say what those names are.
const CONTRACTS: &[&str] = &["harness/proto/src/reasonix/contract/", "harness/proto/src/webcodex/contract/"];
/// From here on a number is known for a limit; smaller ones, and names that are one plain word, mean other things as well.
const LIMIT_LEAST: u64 = 32 << 10;
/// What would change how numbers are read, or the order of members.
const FORBIDDEN_FEATURES: &[&str] = &["arbitrary_precision", "preserve_order"];
/// The most lines of a source file.
const LINES_MAX: usize = 800;
/// Files that are longer, and why.
const LONG: &[(&str, &str)] = &[("mock-sidecars/src/reasonix.rs", "a table, one entry a flaw")];
/// Where words and paths are data.
const DATA: &[&str] = &["golden/", "fuzz/corpus/", "fuzz/regressions/"];
// Written in parts, so that this file does not hold what it forbids.
const WORDS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("db", "g!")];
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];
const TEMPORARY: &str = concat!("/tm", "p/");

/// Reports every violation.
pub(crate) fn run(repository: &Repository) -> Outcome {
    let mut found = Violations::default();
    let files = repository.files()?;
    let names = contract_names(repository, &files)?;
    for file in &files {
        let Some(text) = repository.text(file) else { continue };
        if !DATA.iter().any(|data| file.starts_with(data)) {
            words(file, &text, &mut found);
        }
        let extension = file.rsplit('.').next().unwrap_or_default();
        match extension {
            "rs" => rust(file, &text, &names, &mut found),
            "py" if file.contains("/test_") => sleeps(file, &text, &mut found),
            "md" => links(repository, file, &text, &mut found),
            _ => {}
        }
    }
    packages(repository, &mut found)?;
    table_names(&mut found);
    if found.lines.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{} to tidy", found.lines.join("\n"), found.lines.len()))
}

#[derive(Default)]
struct Violations {
    lines: Vec<String>,
}

impl Violations {
    fn add(&mut self, file: &str, line: usize, says: impl std::fmt::Display) {
        self.lines.push(format!("{file}:{line}: {says}"));
    }
}

// ---- any file ----

fn words(file: &str, text: &str, found: &mut Violations) {
    for (at, line) in text.lines().enumerate() {
        for word in WORDS.iter().filter(|word| Source::places(line, word).next().is_some()) {
            found.add(file, at + 1, format_args!("{word}: open an issue instead"));
        }
        let machine = MACHINE_PATHS.iter().any(|path| line.contains(path));
        let mut temporary = line.match_indices(TEMPORARY).map(|(place, _)| &line[place + TEMPORARY.len()..]);
        if machine || temporary.any(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric())) {
            found.add(file, at + 1, "a path that only one machine has");
        }
    }
}

fn sleeps(file: &str, text: &str, found: &mut Violations) {
    for (at, line) in
        text.lines().enumerate().filter(|(_, line)| Source::places(line, "sleep(").next().is_some())
    {
        found.add(file, at + 1, format_args!("a test that sleeps: {}", line.trim()));
    }
}

/// Links of Markdown to files: `[text](path)`, `[name]: path`.
fn links(repository: &Repository, file: &str, text: &str, found: &mut Violations) {
    let folder = repository.root.join(file);
    let Some(folder) = folder.parent() else { return };
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let inline = line.match_indices("](").map(|(place, mark)| &line[place + mark.len()..]);
        let inline = inline.filter_map(|rest| rest.split(')').next());
        let named =
            line.starts_with('[').then(|| line.split_once("]: ")).flatten().map(|(_, target)| target.trim());
        for target in inline.chain(named) {
            let path = target.split(['#', ' ']).next().unwrap_or_default();
            let elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
            if !elsewhere && !folder.join(path).exists() {
                found.add(file, at + 1, format_args!("a link to {path}, which is not there"));
            }
        }
    }
}

// ---- Rust ----

fn rust(file: &str, text: &str, names: &Names, found: &mut Violations) {
    if !text.starts_with("//!") {
        found.add(file, 1, "it begins without a `//!` that says what it is for");
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && !LONG.iter().any(|(long, _)| *long == file) {
        found.add(
            file,
            LINES_MAX + 1,
            format_args!("{lines} lines; at most {LINES_MAX}, or a reason in `tidy::LONG`"),
        );
    }
    let source = Source::new(text);
    for at in
        Source::places(&source.code, "sleep(").filter(|at| file.contains("/tests/") || source.is_test(*at))
    {
        found.add(file, source.line(at), "a test that sleeps");
    }
    if PURE.iter().any(|pure| file.starts_with(&format!("{pure}/src/"))) {
        purity(file, &source, found);
    }
    let in_contract = file.ends_with("/contract.rs") || file.contains("/contract/");
    if NAMELESS.iter().any(|folder| file.starts_with(folder)) && !in_contract {
        names.find(file, &source, found);
    }
}

fn purity(file: &str, source: &Source, found: &mut Violations) {
    for library in ["std::", "core::", "alloc::"] {
        for at in Source::places(&source.code, library).filter(|at| !source.is_test(*at)) {
            // A module of that name in another path is none of the standard library.
            let before = source.code[..at].trim_end_matches("::");
            if before.len() < at && before.ends_with(|last: char| last.is_alphanumeric() || last == '_') {
                continue;
            }
            for module in modules(&source.code[at + library.len()..]) {
                if !PURE_MODULES.contains(&module) {
                    found.add(
                        file,
                        source.line(at),
                        format_args!("{library}{module} in a crate that does no I/O"),
                    );
                }
            }
        }
    }
}

/// The first segments of the paths that begin here: one, or those of a group.
fn modules(rest: &str) -> Vec<&str> {
    let rest = rest.trim_start();
    let Some(group) = rest.strip_prefix('{') else { return vec![first_segment(rest)] };
    let (mut depth, mut from, mut modules) = (0_usize, 0, Vec::new());
    for (at, byte) in group.bytes().enumerate() {
        let ends = match byte {
            b'{' => {
                depth += 1;
                false
            }
            b'}' if depth > 0 => {
                depth -= 1;
                false
            }
            b'}' => true,
            b',' => depth == 0,
            _ => false,
        };
        if ends {
            modules.push(first_segment(&group[from..at]));
            from = at + 1;
        }
        if ends && byte == b'}' {
            break;
        }
    }
    modules.retain(|module| !module.is_empty());
    modules
}

fn first_segment(path: &str) -> &str {
    let path = path.trim_start();
    let end = path.find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '*'));
    &path[..end.unwrap_or(path.len())]
}

/// What only contracts may name.
#[derive(Debug)]
struct Names {
    texts: BTreeSet<String>,
    limits: BTreeSet<u64>,
}

impl Names {
    fn find(&self, file: &str, source: &Source, found: &mut Violations) {
        for text in &self.texts {
            for at in Source::places(&source.spoken, text).filter(|at| !source.is_test(*at)) {
                // `extension/ui/action` is no mention of `extension/ui`.
                let longer = source.spoken.as_bytes().get(at + text.len()).is_some_and(|byte| *byte == b'/');
                if !longer {
                    found.add(file, source.line(at), format_args!("{text:?} belongs in the contract"));
                }
            }
        }
        let mut numbers = source.code.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, first)) = numbers.next() {
            let mut number = String::from(first);
            while first.is_ascii_digit()
                && let Some((_, more)) = numbers.next_if(|(_, it)| it.is_ascii_digit() || *it == '_')
            {
                number.push(more);
            }
            let number = number.replace('_', "").parse::<u64>();
            let whole = !(before.is_alphanumeric() || before == '_' || before == '.');
            if whole && number.is_ok_and(|number| self.limits.contains(&number)) && !source.is_test(at) {
                found.add(file, source.line(at), "a limit that belongs in the contract");
            }
            before = first;
        }
    }
}

fn contract_names(repository: &Repository, files: &[String]) -> Result<Names, String> {
    let mut names = Names { texts: BTreeSet::new(), limits: BTreeSet::new() };
    let is_contract = |file: &&String| CONTRACTS.iter().any(|folder| file.starts_with(folder));
    for file in files.iter().filter(is_contract) {
        let text = repository.text(file).ok_or_else(|| format!("{file} is no text"))?;
        let contract: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
        let members = |name: &str| contract[name].as_object().into_iter().flatten();
        names
            .texts
            .extend(members("methods").map(|(name, _)| name.clone()).filter(|name| name.contains('/')));
        names.limits.extend(
            members("limits").filter_map(|(_, limit)| limit.as_u64()).filter(|it| *it >= LIMIT_LEAST),
        );
        for name in ["$id", "protocol", "protocolID"] {
            names.texts.extend(contract[name].as_str().map(str::to_owned));
        }
    }
    if names.texts.is_empty() { Err(format!("no contract in {}", CONTRACTS.join(" or "))) } else { Ok(names) }
}

// ---- packages and tables ----

fn packages(repository: &Repository, found: &mut Violations) -> Outcome {
    let text = output(repository.cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for package in each(&metadata["packages"]) {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        for pure in PURE.iter().filter(|pure| repository.root.join(pure).join("Cargo.toml") == *manifest) {
            let file = format!("{pure}/Cargo.toml");
            let text = repository.text(&file).unwrap_or_default();
            for dependency in each(&package["dependencies"]).iter().filter(|it| it["kind"] != "dev") {
                let name = dependency["name"].as_str().unwrap_or_default();
                if !PURE_DEPENDENCIES.contains(&name) {
                    let line = text.lines().position(|line| line.starts_with(name)).unwrap_or_default();
                    found.add(
                        &file,
                        line + 1,
                        format_args!("{name} is not allowed in a crate that does no I/O"),
                    );
                }
            }
        }
    }
    for node in each(&metadata["resolve"]["nodes"]) {
        let id = node["id"].as_str().unwrap_or_default();
        if id.contains("#serde_json@") || id.contains("/serde_json#") {
            for feature in each(&node["features"]).iter().filter_map(Value::as_str) {
                if FORBIDDEN_FEATURES.contains(&feature) {
                    found.add(
                        "Cargo.lock",
                        1,
                        format_args!("{feature} of serde_json is on: `cargo tree -e features -i serde_json`"),
                    );
                }
            }
        }
    }
    Ok(())
}

fn table_names(found: &mut Violations) {
    let plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    for suite in SUITES {
        let mut scripts = suite.scripts(suite.rows(Side::Guest).chain(suite.rows(Side::Host)));
        for side in [Side::Guest, Side::Host] {
            let (opening, closing) = suite.frame(side);
            scripts.extend([opening, closing]);
        }
        for script in scripts.iter().filter(|script| !plain(script.name)) {
            found.add("cases/src/lib.rs", 1, format_args!("the script {:?} is not [a-z0-9-]", script.name));
        }
        for flaw in sidecert_mocks::every_flaw(suite).filter(|flaw| !plain(flaw.name)) {
            found.add(
                "mock-sidecars/src/lib.rs",
                1,
                format_args!("the flaw {:?} is not [a-z0-9-]", flaw.name),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: impl FnOnce(&mut Violations)) -> Vec<String> {
        let mut found = Violations::default();
        check(&mut found);
        found.lines
    }

    #[test]
    fn only_pure_parts_of_the_standard_library_are_used() {
        let check = |text: &str| found(|found| purity("x.rs", &Source::new(text), found)).len();
        for (text, violations) in [
            ("use std::fmt;", 0),
            ("use std::{borrow::Cow, collections::{BTreeMap, BTreeSet}, vec};", 0),
            ("use std::{fmt, fs, time::Instant};", 2),
            ("fn f() { std::process::exit(1) }", 1),
            ("// std::fs\nconst A: &str = \"std::fs\"; use my::std::fs;", 0),
            ("use core::time::Duration;", 1),
            ("#[cfg(test)]\nmod tests { use std::fs; }", 0),
        ] {
            assert_eq!(check(text), violations, "{text}");
        }
    }

    #[test]
    fn what_belongs_in_a_contract_is_found_elsewhere() {
        let names = Names {
            texts: BTreeSet::from(["extension/ui".to_owned(), "some.protocol".to_owned()]),
            limits: BTreeSet::from([65_536]),
        };
        let check = |text: &str| found(|found| names.find("x.rs", &Source::new(text), found)).len();
        for (text, violations) in [
            ("\"extension/ui\"", 1),
            ("\"extension/ui/action\"", 0),
            ("// extension/ui", 0),
            ("\"some.protocol\"", 1),
            ("65_536", 1),
            ("x65536 + 1.65536 + 655360", 0),
            ("#[cfg(test)]\nmod tests { const A: u64 = 65536; }", 0),
        ] {
            assert_eq!(check(text), violations, "{text}");
        }
    }

    #[test]
    fn words_and_paths_are_found() {
        for (text, violations) in [
            (concat!("// TO", "DO: this"), 1),
            ("a todo, and XXXX", 0),
            (concat!("/tm", "p/x"), 1),
            (concat!("/tm", "p/$NAME"), 0),
            (concat!("/wo", "rk/main"), 1),
            ("/workspace", 0),
        ] {
            assert_eq!(found(|found| words("x.md", text, found)).len(), violations, "{text}");
        }
    }
}
