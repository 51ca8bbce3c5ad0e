//! Masks what looks like a credential before anybody is shown it.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::Regex;

/// What stands for what was masked.
const MASK: &str = "****";

/// What is looked for, and what of it stays. Those that know where a secret stands come before those that know how it
/// looks.
const RULES: &[(&str, &str)] = &[
    (r"(?i)([a-z][a-z0-9+.\-]*://)[^\s/@]+@", "${1}****@"),
    (r"(?i)((?:set-)?cookie\s*[:=]\s*)[^\r\n]+", "${1}****"),
    (
        r#"(?i)([\w\-]*(?:api_?-?key|access_?-?key|private_?-?key|secret|token|password|passwd|[_\-]pwd|authorization)[\w\-]*["']?\s*[:=]\s*)("[^"]*"|'[^']*'|(?:bearer\s+|basic\s+)?[^\s"',;&}]+)"#,
        "${1}****",
    ),
    (r"(?i)\b(bearer\s+)[a-z0-9._~+/=\-]{16,}", "${1}****"),
    (r"\b(?:sk|rk)-[A-Za-z0-9_\-]{12,}", MASK),
    (r"\bgh[a-z]_[A-Za-z0-9]{20,}", MASK),
    (r"\bgithub_pat_\w{20,}", MASK),
    (r"\bxox[a-z]-[A-Za-z0-9\-]{16,}", MASK),
    (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}", MASK),
    (r"\beyJ[\w\-]+\.[\w\-]+\.[\w\-]+", MASK),
    (r"(?i)\b((?:api|access|private|secret) key(?: is|:)\s*)\S{12,}", "${1}****"),
];

fn compiled() -> &'static [(Regex, &'static str)] {
    static COMPILED: OnceLock<Vec<(Regex, &'static str)>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        // A test compiles each of them.
        RULES.iter().filter_map(|(rule, kept)| Some((Regex::new(rule).ok()?, *kept))).collect()
    })
}

/// `text` without what the first `rules` of the rules find.
pub(super) fn masked(text: &str, rules: usize) -> String {
    let mut text = Cow::Borrowed(text);
    for (rule, kept) in compiled().iter().take(rules) {
        if let Cow::Owned(changed) = rule.replace_all(&text, *kept) {
            text = Cow::Owned(changed);
        }
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_masks_and_nothing_else_changes() {
        assert_eq!(compiled().len(), RULES.len());
        for (text, expected) in [
            ("see https://me:hunter2@host/x", "see https://****@host/x"),
            ("API_KEY=abc; rest", "API_KEY=****; rest"),
            (r#"{"password": "p w"}"#, r#"{"password": ****}"#),
            ("Authorization: Bearer abc", "Authorization: ****"),
            ("Cookie: a=b; c=d", "Cookie: ****"),
            ("bearer abcdefghijklmnop1", "bearer ****"),
            ("with sk-abcdefghijkl1234 in it", "with **** in it"),
            ("ghp_abcdefghij0123456789", "****"),
            ("github_pat_abcdefghij0123456789", "****"),
            ("xoxb-1234567890-abcdefgh", "****"),
            ("AKIAABCDEFGHIJKLMNOP", "****"),
            ("eyJhbGci.eyJzdWIi.c2ln", "****"),
            ("the api key: abcdefghijkl", "the api key: ****"),
            ("stateSchemaVersion is missing, 3 of 4", "stateSchemaVersion is missing, 3 of 4"),
        ] {
            assert_eq!(masked(text, usize::MAX), expected);
        }
    }
}
