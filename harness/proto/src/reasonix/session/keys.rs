//! What looks like a key: the shapes in which credentials are handed out.

/// Prefixes of keys, and how many characters of a key follow at least.
const SHAPES: [(&str, usize); 11] = [
    ("sk-", 12),
    ("rk-", 12),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("Bearer ", 16),
];

/// The first thing in `text` that looks like a key.
pub(super) fn key_in(text: &str) -> Option<&str> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    SHAPES.iter().find_map(|(prefix, least)| {
        text.match_indices(prefix).find_map(|(at, _)| {
            let before = text[..at].bytes().next_back();
            let body = &text[at + prefix.len()..];
            let length = body.bytes().take_while(is_part).count();
            // A word that only ends like a prefix ("task-…") is no key, and neither is one without a digit.
            let begins = before.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            let varied = body.as_bytes()[..length].iter().any(u8::is_ascii_digit);
            (begins && length >= *least && varied).then(|| &text[at..at + prefix.len() + length])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_words_are_not() {
        for (text, found) in [
            ("the key sk-abcdefghij1234 was refused", Some("sk-abcdefghij1234")),
            ("Authorization: Bearer abcdefgh12345678", Some("Bearer abcdefgh12345678")),
            ("AKIAABCDEFGH12345678", Some("AKIAABCDEFGH12345678")),
            ("task-abcdefghij1234", None),
            ("sk-short1", None),
            ("sk-abcdefghijklmnop", None),
            ("", None),
        ] {
            assert_eq!(key_in(text), found, "{text}");
        }
    }
}
