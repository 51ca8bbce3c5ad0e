//! `sidecert.toml`: what a check is told, written down once.
//!
//! Its keys are the long options of `check guest`, and `target`, the command. `[use.NAME]` overrides any of them. What
//! the command line says wins, key by key. Paths start at the file's folder, where its target runs as well.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::builder::ValueHint;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, FromArgMatches as _};
use toml::de::{DeTable, DeValue};

use crate::args::CheckArgs;
use crate::exit::Fault;
use crate::select::{closest, did_you_mean};
use crate::{output, provoke};

/// The file that is read unless another one is named.
pub(crate) const FILE: &str = "sidecert.toml";
/// The key for the command that follows `--`.
const TARGET: &str = "target";
/// The key of the tables that override.
const USE: &str = "use";
/// The key that may be a table as well as a path.
const PROVOKE: &str = "provoke";
/// What only the command line says.
const NO_KEYS: [&str; 4] = ["config", "no-config", USE, "help"];

/// The arguments of a check, and which of them the file gave.
pub(crate) struct Settled {
    pub(crate) args: Box<CheckArgs>,
    /// For each key that the file gave: the file and the line.
    places: BTreeMap<String, String>,
}

impl Settled {
    /// A fault that names an option is told of the file, where the file gave that option.
    pub(crate) fn attribute(&self, fault: Fault) -> Fault {
        let named = fault.says.strip_prefix("--").and_then(|says| {
            let key = says.split([' ', ':']).next()?;
            Some(format!("{}: {says}", self.places.get(key)?))
        });
        Fault { says: named.unwrap_or(fault.says), ..fault }
    }
}

/// Fills in what the command line leaves open. `words` are those after `check guest`, `matches` what they say.
pub(crate) fn settle(
    args: Box<CheckArgs>,
    words: &[OsString],
    matches: &ArgMatches,
) -> Result<Settled, Fault> {
    let path = args.configured.config.clone().unwrap_or_else(|| PathBuf::from(FILE));
    let found = if args.configured.no_config { None } else { text(&path, args.configured.config.is_some())? };
    let Some(text) = found else {
        return match &args.configured.use_table {
            Some(name) => {
                Err(Fault::usage(format!("--use {name}: no {FILE} is read; --config FILE names one")))
            }
            None => Ok(Settled { args, places: BTreeMap::new() }),
        };
    };
    let file =
        File { path: &path, text: &text, command: CheckArgs::augment_args(clap::Command::new("guest")) };
    let table = DeTable::parse(&text).map_err(|error| {
        file.fault(error.span().map_or(0, |span| span.start), &error.message().replace('\n', " "))
    })?;
    file.settle(table.get_ref(), args.configured.use_table.as_deref(), words, matches)
}

/// The text of the file; `None` where there is none and none is asked for.
fn text(path: &Path, asked: bool) -> Result<Option<String>, Fault> {
    let fault = |says: String| Fault::usage(format!("{}: {says}", path.display()));
    match output::read_file(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| fault("it is not UTF-8".to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound && !asked => Ok(None),
        Err(error) => Err(fault(error.to_string())),
    }
}

/// A value, and where its key stands.
#[derive(Clone, Copy)]
struct Entry<'f> {
    at: usize,
    value: &'f DeValue<'f>,
}

type Entries<'f> = BTreeMap<&'f str, Entry<'f>>;

struct File<'f> {
    path: &'f Path,
    text: &'f str,
    command: clap::Command,
}

impl<'f> File<'f> {
    fn settle(
        &self,
        table: &'f DeTable<'f>,
        asked: Option<&str>,
        words: &[OsString],
        matches: &ArgMatches,
    ) -> Result<Settled, Fault> {
        let mut entries = self.entries(table)?;
        let tables = self.tables(entries.remove(USE))?;
        if let Some(chosen) = self.chosen(&tables, asked)? {
            entries.extend(chosen);
        }
        entries.retain(|key, _| !self.is_given(key, matches));
        let mut all = vec![OsString::from("guest")];
        for (key, entry) in &entries {
            all.extend(self.words(key, *entry)?);
        }
        all.extend(words.iter().cloned());
        let merged = self.command.clone().try_get_matches_from(all);
        let merged = merged.and_then(|matches| CheckArgs::from_arg_matches(&matches));
        let mut args = merged.map_err(|error| {
            // Each entry is right for itself, so two of them go against each other.
            let says = said(&error);
            let named = entries.iter().filter(|(key, _)| says.contains(&format!("'--{key}'")));
            self.fault(named.map(|(_, entry)| entry.at).max().unwrap_or_default(), &says)
        })?;
        if args.target.command.is_empty()
            && let Some(target) = entries.get(TARGET)
        {
            args.target.command = self.target(*target)?;
            args.target.cwd = args.target.cwd.or_else(|| self.folder().map(Path::to_owned));
        }
        if let (Some(suite), Some(Entry { value: DeValue::Table(table), .. })) =
            (args.suite, entries.get(PROVOKE))
        {
            args.provocations = Some(provoke::of(table, suite, &|at, says| self.fault(at, says))?);
        }
        let places = entries.iter().map(|(key, entry)| ((*key).to_owned(), self.place(entry.at))).collect();
        Ok(Settled { args: Box::new(args), places })
    }

    /// The entries of one table, each known and of the right form.
    fn entries(&self, table: &'f DeTable<'f>) -> Result<Entries<'f>, Fault> {
        let mut entries = Entries::new();
        for (key, value) in table {
            let (name, entry) = (&**key.get_ref(), Entry { at: key.span().start, value: value.get_ref() });
            if name != USE {
                self.examine(name, entry)?;
            }
            entries.insert(name, entry);
        }
        Ok(entries)
    }

    /// The tables under `use`, by name.
    fn tables(&self, under: Option<Entry<'f>>) -> Result<BTreeMap<&'f str, Entries<'f>>, Fault> {
        let Some(under) = under else { return Ok(BTreeMap::new()) };
        let DeValue::Table(tables) = under.value else {
            return Err(self.fault(under.at, "use is no table; [use.NAME] is one"));
        };
        let mut all = BTreeMap::new();
        for (name, table) in tables {
            let at = name.span().start;
            let DeValue::Table(table) = table.get_ref() else {
                return Err(self.fault(at, &format!("use.{} is no table", name.get_ref())));
            };
            let entries = self.entries(table)?;
            if let Some(again) = entries.get(USE) {
                return Err(self.fault(again.at, "use stands within use"));
            }
            all.insert(&**name.get_ref(), entries);
        }
        Ok(all)
    }

    /// The table that overrides: the one asked for, or the one for where we run, if it is there.
    fn chosen(
        &self,
        tables: &BTreeMap<&str, Entries<'f>>,
        asked: Option<&str>,
    ) -> Result<Option<Entries<'f>>, Fault> {
        let Some(name) = asked else { return Ok(tables.get(surroundings()).cloned()) };
        if let Some(entries) = tables.get(name) {
            return Ok(Some(entries.clone()));
        }
        let hint = did_you_mean(name, tables.keys().copied());
        Err(Fault::usage(format!("--use {name}: {} has no [use.{name}]{hint}", self.path.display())))
    }

    /// Whether an entry may stand there, and says something.
    fn examine(&self, key: &str, entry: Entry<'_>) -> Result<(), Fault> {
        if key == TARGET {
            return self.target(entry).map(|_| ());
        }
        let known = || self.keys().chain([TARGET, USE]);
        if !known().any(|known| known == key) {
            let hint = did_you_mean(key, known());
            return Err(self.fault(entry.at, &format!("{key:?} is unknown{hint}")));
        }
        let words = self.words(key, entry)?;
        let tried = self.command.clone().try_get_matches_from(["guest".into()].into_iter().chain(words));
        tried.map(|_| ()).map_err(|error| self.fault(entry.at, &format!("{key}: {}", said(&error))))
    }

    /// An entry as words of the command line.
    fn words(&self, key: &str, entry: Entry<'_>) -> Result<Vec<OsString>, Fault> {
        let Some(arg) = self.arg(key) else { return Ok(Vec::new()) };
        let word = |value: &str| {
            let mut word = OsString::from(format!("--{key}="));
            word.push(self.resolved(arg, value));
            word
        };
        let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
        let takes_many = matches!(arg.get_action(), ArgAction::Append);
        let wanted = match entry.value {
            DeValue::Table(_) if key == PROVOKE => return Ok(Vec::new()),
            DeValue::Boolean(on) if is_switch => {
                return Ok(on.then(|| OsString::from(format!("--{key}"))).into_iter().collect());
            }
            _ if is_switch => "true or false",
            DeValue::Array(list) if takes_many => {
                let list = list.iter().map(|element| Some(word(element.get_ref().as_str()?)));
                match list.collect::<Option<_>>() {
                    Some(words) => return Ok(words),
                    None => "a list of texts",
                }
            }
            DeValue::String(text) => return Ok(vec![word(text)]),
            DeValue::Integer(number) if number.radix() == 10 && !takes_many => {
                return Ok(vec![word(number.as_str())]);
            }
            _ if takes_many => "a text or a list of texts",
            _ => "a text or a number",
        };
        Err(self.fault(
            entry.at,
            &format!("{key} is {wanted}, and this is of the type {}", entry.value.type_str()),
        ))
    }

    /// The command that is checked.
    fn target(&self, entry: Entry<'_>) -> Result<Vec<OsString>, Fault> {
        let words = entry.value.as_array().and_then(|list| {
            list.iter().map(|word| word.get_ref().as_str().map(OsString::from)).collect::<Option<Vec<_>>>()
        });
        words.filter(|words| !words.is_empty()).ok_or_else(|| {
            self.fault(entry.at, "target is a list of texts: the program, and each argument for itself")
        })
    }

    /// Paths start at the folder of the file, also those within values.
    fn resolved(&self, arg: &Arg, value: &str) -> PathBuf {
        let Some(folder) = self.folder() else { return value.into() };
        let prefixed = |prefix: &str, path: &str| {
            let mut text = OsString::from(prefix);
            text.push(folder.join(path));
            PathBuf::from(text)
        };
        match (arg.get_long(), value.split_once('=')) {
            (Some("report"), Some((format, path))) if path != "-" => prefixed(&format!("{format}="), path),
            (Some("only" | "skip" | "require"), _) if value.starts_with('@') => prefixed("@", &value[1..]),
            _ if arg.get_value_hint() == ValueHint::AnyPath => folder.join(value),
            _ => value.into(),
        }
    }

    /// The folder of the file, unless that is where we are.
    fn folder(&self) -> Option<&'f Path> {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty())
    }

    /// Whether the command line says it, or something that goes against it.
    fn is_given(&self, key: &str, matches: &ArgMatches) -> bool {
        let Some(arg) = self.arg(key) else { return false };
        let said = |arg: &Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let against = |one: &Arg, other: &Arg| {
            self.command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
        };
        said(arg)
            || self
                .command
                .get_arguments()
                .any(|other| said(other) && (against(arg, other) || against(other, arg)))
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        let longs = self.command.get_arguments().filter_map(|arg| arg.get_long());
        longs.filter(|long| !NO_KEYS.contains(long))
    }

    fn arg(&self, key: &str) -> Option<&Arg> {
        self.command.get_arguments().find(|arg| arg.get_long() == Some(key))
    }

    fn place(&self, at: usize) -> String {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        format!("{}, line {line}", self.path.display())
    }

    fn fault(&self, at: usize, says: &str) -> Fault {
        Fault::usage(format!("{}: {says}", self.place(at)))
    }
}

/// Which table overrides if none is asked for.
fn surroundings() -> &'static str {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    if ci { "ci" } else { "local" }
}

/// What is wrong with a value, on one line.
fn said(error: &clap::Error) -> String {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let value = text(ContextKind::InvalidValue).map(|value| format!("{value:?}: ")).unwrap_or_default();
    if let Some(inner) = std::error::Error::source(error) {
        return format!("{value}{inner}");
    }
    if let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) {
        let meant = text(ContextKind::InvalidValue)
            .and_then(|value| closest(&value, valid.iter().map(String::as_str)).map(str::to_owned));
        let hint = meant.map(|it| format!("; did you mean {it:?}?")).unwrap_or_default();
        return format!("{value}it is {}{hint}", valid.join(" or "));
    }
    let whole = error.to_string();
    let first = whole.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}
