//! Which requirements are meant: ids, patterns, and files of them.

use std::collections::BTreeSet;
use std::path::Path;

use globset::{Glob, GlobMatcher};
use sidecert_proto::contract::Side;
use sidecert_proto::suite::Suite;

use crate::args::Judging;
use crate::exit::Fault;
use crate::output;

/// The requirements of `suite` for `side` that `--only` and `--skip` leave; never none.
pub(crate) fn selected(suite: &Suite, side: Side, judging: &Judging) -> Result<BTreeSet<String>, Fault> {
    let ids: Vec<&str> = suite.rows(side).map(|row| row.id).collect();
    if ids.is_empty() {
        return Err(Fault::usage(format!("{} has no requirements for a {side} yet", suite.name)));
    }
    let mut selected: BTreeSet<String> = if judging.only.is_empty() {
        ids.iter().map(|&id| id.to_owned()).collect()
    } else {
        matching("--only", &judging.only, &ids)?
    };
    for id in matching("--skip", &judging.skip, &ids)? {
        selected.remove(&id);
    }
    if selected.is_empty() {
        return Err(Fault::usage("--only and --skip leave no requirement: nothing would be checked"));
    }
    Ok(selected)
}

/// The requirements that `--require` names.
pub(crate) fn required(suite: &Suite, side: Side, judging: &Judging) -> Result<BTreeSet<String>, Fault> {
    let ids: Vec<&str> = suite.rows(side).map(|row| row.id).collect();
    matching("--require", &judging.require, &ids)
}

fn matching(option: &str, patterns: &[String], ids: &[&str]) -> Result<BTreeSet<String>, Fault> {
    let mut found = BTreeSet::new();
    for (pattern, from) in expanded(option, patterns)? {
        let matcher = matcher(&pattern)
            .map_err(|says| Fault::usage(format!("{from}: {pattern:?} is no pattern: {says}")))?;
        let mut any = false;
        for id in ids.iter().filter(|id| matcher.is_match(id)) {
            any = true;
            found.insert((*id).to_owned());
        }
        if !any {
            let hint = closest(&pattern, ids.iter().copied())
                .map(|id| format!("; did you mean {id}?"))
                .unwrap_or_default();
            return Err(Fault::usage(format!("{from}: no requirement matches {pattern:?}{hint}")));
        }
    }
    Ok(found)
}

/// The patterns, those in files read, each with where it comes from.
fn expanded(option: &str, patterns: &[String]) -> Result<Vec<(String, String)>, Fault> {
    let mut all = Vec::new();
    for pattern in patterns {
        let Some(path) = pattern.strip_prefix('@') else {
            all.push((pattern.clone(), option.to_owned()));
            continue;
        };
        let text = output::read_file(Path::new(path))
            .map_err(|error| Fault::usage(format!("{option} @{path}: {error}")))?;
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let before = all.len();
        for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            all.push((line.to_owned(), format!("{option} @{path}, line {}", at + 1)));
        }
        if all.len() == before {
            return Err(Fault::usage(format!("{option} @{path}: it names nothing")));
        }
    }
    Ok(all)
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    Glob::new(pattern).map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

/// The one of `known` that `word` was most probably meant to be.
pub(crate) fn closest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len() / 3)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean "x"?` if one of `known` is close enough, or nothing.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> String {
    closest(word, known).map(|it| format!("; did you mean {it:?}?")).unwrap_or_default()
}
