//! Values that no report may show.
//!
//! A secret is found however a frame may carry it: as it is, escaped as in JSON (any character, any number of times
//! over), percent-encoded, in base64 (wherever it falls among the groups of three bytes), mixed, and cut off by a
//! preview. Every place is searched, so secrets that overlap are masked together.

use std::ops::Range;

use crate::report::Report;
use crate::safe::CUT;
use crate::texts;

/// What stands in a report instead of a secret.
const MASK: &str = "****";
/// Shorter values are no secrets worth the name, and would blot out half of every report.
const SECRET_BYTES_MIN: usize = 8;
/// How much of a secret must stand before or after a cut to be masked. Fewer characters give little away, and
/// would be found everywhere.
const CUT_CHARACTERS_MIN: usize = 4;
/// A text inside a text inside a text doubles its backslashes each time. The bound keeps the search linear.
const BACKSLASHES_MAX: usize = 16;

/// The secrets to be masked, in every form in which they are looked for.
pub struct Masked {
    needles: Vec<Needle>,
    /// The bytes that can begin a needle: nearly every place of a text is dismissed by a look at it.
    beginnings: [bool; 256],
}

/// One form of a secret, as the characters it is made of; each may be escaped in the text.
struct Needle {
    characters: Vec<char>,
    /// In base64: whether the character before and the one after hold some bits of the secret.
    shares: (bool, bool),
}

impl Masked {
    /// Values shorter than 8 bytes are not masked.
    pub fn new(secrets: &[String]) -> Self {
        let mut needles = Vec::new();
        for secret in secrets.iter().filter(|secret| secret.len() >= SECRET_BYTES_MIN) {
            needles.push(Needle { characters: secret.chars().collect(), shares: (false, false) });
            for offset in 0..3 {
                let (core, shares) = base64_core(secret.as_bytes(), offset);
                let url_safe: String = core.chars().map(url_safe).collect();
                if url_safe != core {
                    needles.push(Needle { characters: url_safe.chars().collect(), shares });
                }
                needles.push(Needle { characters: core.chars().collect(), shares });
            }
        }
        let mut beginnings = [false; 256];
        for needle in &needles {
            if let Some(first) = needle.characters.first() {
                beginnings[usize::from(first.encode_utf8(&mut [0; 4]).as_bytes()[0])] = true;
                // The signs that an escape begins with; `+` is a space in a query.
                for sign in *br"\%+" {
                    beginnings[usize::from(sign)] = true;
                }
            }
        }
        Self { needles, beginnings }
    }

    /// The text with `****` for each secret, or `None` where there is none in it.
    pub fn apply(&self, text: &str) -> Option<String> {
        let mut found = self.find(text);
        found.sort_by_key(|range| (range.start, range.end));
        let mut masked = String::new();
        let mut end = 0;
        for range in &found {
            if range.start > end || masked.is_empty() {
                masked.push_str(&text[end..range.start]);
                masked.push_str(MASK);
            }
            end = end.max(range.end);
        }
        masked.push_str(&text[end..]);
        (!found.is_empty()).then_some(masked)
    }

    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if self.needles.is_empty() {
            return found;
        }
        for (at, character) in text.char_indices() {
            if character == CUT {
                found.extend(self.needles.iter().filter_map(|needle| needle.rest(text, at + CUT.len_utf8())));
            }
            if self.beginnings[usize::from(text.as_bytes()[at])] {
                found.extend(self.needles.iter().filter_map(|needle| needle.find_at(text, at)));
            }
        }
        found
    }
}

impl Report {
    /// Masks these values wherever the report shows what a target, a user or the environment said.
    ///
    /// What stays as it is are enums, numbers, digests, and names of ours that other files refer to (the tool, the
    /// suite, the edition, the ids of requirements): a password `reasonix` must not make a baseline stale.
    pub fn mask(&mut self, secrets: &[String]) {
        let masked = Masked::new(secrets);
        texts::for_each(self, |text| {
            if let Some(without) = masked.apply(text) {
                *text = without;
            }
        });
    }
}

impl Needle {
    fn find_at(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let end = longest_match(&self.characters, text, start)?;
        Some(self.with_shared(text, start..end))
    }

    /// What is left of the needle directly behind a cut at `start`.
    fn rest(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let last = self.characters.len().saturating_sub(CUT_CHARACTERS_MIN);
        (1..=last).find_map(|skipped| {
            let end = longest_match(&self.characters[skipped..], text, start)?;
            Some(self.with_shared(text, start..end))
        })
    }

    /// Stretches a match over the neighbours that share bits with the secret.
    fn with_shared(&self, text: &str, found: Range<usize>) -> Range<usize> {
        let is_base64 = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
        };
        let bytes = text.as_bytes();
        let before = self.shares.0 && is_base64(bytes[..found.start].last());
        let after = self.shares.1 && is_base64(bytes.get(found.end));
        found.start - usize::from(before)..found.end + usize::from(after)
    }
}

/// Where the longest reading of `characters` ends that starts at `start`, each of them plain or escaped. A reading
/// may also end early, at a cut, once it is long enough.
fn longest_match(characters: &[char], text: &str, start: usize) -> Option<usize> {
    let mut ends = vec![start];
    let mut next = Vec::new();
    for (read, character) in characters.iter().enumerate() {
        if read >= CUT_CHARACTERS_MIN
            && let Some(cut) = ends.iter().find_map(|end| cut_after(&text[*end..]).map(|broken| end + broken))
        {
            return Some(cut);
        }
        next.clear();
        for end in &ends {
            readings(*character, &text[*end..], |length| next.push(end + length));
        }
        next.sort_unstable();
        next.dedup();
        std::mem::swap(&mut ends, &mut next);
        if ends.is_empty() {
            return None;
        }
    }
    ends.last().copied()
}

/// How many bytes of a broken escape stand before a cut, if a cut is all that follows them.
fn cut_after(rest: &str) -> Option<usize> {
    let mut near = rest.char_indices().take(r"\ud83d\ude0…".chars().count());
    let (broken, _) = near.find(|(_, character)| *character == CUT)?;
    (broken == 0 || rest.starts_with(['\\', '%'])).then_some(broken)
}

/// Calls `each` with the length of every way in which `rest` can begin with `character`.
fn readings(character: char, rest: &str, mut each: impl FnMut(usize)) {
    if rest.starts_with(character) {
        each(character.len_utf8());
    }
    match rest.as_bytes().first() {
        Some(b'\\') => {
            let backslashes = rest.bytes().take(BACKSLASHES_MAX).take_while(|byte| *byte == b'\\').count();
            if character == '\\' {
                (2..=backslashes).for_each(&mut each);
            }
            let sign = &rest[backslashes..];
            let short = match character {
                '\n' => 'n',
                '\r' => 'r',
                '\t' => 't',
                '\u{8}' => 'b',
                '\u{c}' => 'f',
                other => other,
            };
            if short.is_ascii() && !(short.is_alphanumeric() && short == character) && sign.starts_with(short)
            {
                each(backslashes + 1);
            }
            let coded = &rest[backslashes - 1..];
            let forms = [
                utf16_escaped(character, coded),
                bytes_escaped(character, coded, r"\x"),
                braced(character, coded),
            ];
            forms.into_iter().flatten().for_each(|length| each(backslashes - 1 + length));
        }
        Some(b'%') => bytes_escaped(character, rest, "%").into_iter().for_each(each),
        Some(b'+') if character == ' ' => each(1),
        _ => {}
    }
}

/// `\u00e9`, or two of them for what lies beyond the first plane.
fn utf16_escaped(character: char, text: &str) -> Option<usize> {
    let mut length = 0;
    for unit in character.encode_utf16(&mut [0; 2]) {
        let digits = text.get(length..)?.trim_start_matches('\\').strip_prefix('u')?.get(..4)?;
        if !is_hexadecimal(digits) || u16::from_str_radix(digits, 16) != Ok(*unit) {
            return None;
        }
        length = text.len() - text.get(length..)?.trim_start_matches('\\').len() + 5;
    }
    Some(length)
}

/// `\xc3\xa9` or `%C3%A9`, by `sign`.
fn bytes_escaped(character: char, text: &str, sign: &str) -> Option<usize> {
    let mut rest = text;
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        rest = rest.strip_prefix(sign)?;
        let digits = rest.get(..2)?;
        if !is_hexadecimal(digits) || u8::from_str_radix(digits, 16) != Ok(byte) {
            return None;
        }
        rest = &rest[2..];
    }
    Some(text.len() - rest.len())
}

/// `\u{e9}`
fn braced(character: char, text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\\u{")?;
    let digits = &inner[..inner.bytes().take(6).take_while(u8::is_ascii_hexdigit).count()];
    let same = u32::from_str_radix(digits, 16) == Ok(u32::from(character));
    (same && inner[digits.len()..].starts_with('}')).then_some("\\u{}".len() + digits.len())
}

/// Rust's own parsing would also take a sign.
fn is_hexadecimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The part of a base64 text that `bytes` alone decide when `offset` unknown bytes stand before them in their group
/// of three; and whether the characters around it hold the rest of their bits.
fn base64_core(bytes: &[u8], offset: usize) -> (String, (bool, bool)) {
    let (first, last) = (8 * offset, 8 * (offset + bytes.len()));
    let core = first.div_ceil(6)..last / 6;
    let bit = |place: usize| usize::from(bytes[place / 8 - offset] >> (7 - place % 8) & 1);
    let character = |index: usize| {
        let value = (6 * index..6 * index + 6).fold(0, |value, place| value << 1 | bit(place));
        char::from(BASE64[value])
    };
    (core.map(character).collect(), (first % 6 != 0, last % 6 != 0))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn url_safe(character: char) -> char {
    match character {
        '+' => '-',
        '/' => '_',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(secret: &str, text: &str) -> String {
        Masked::new(&[secret.to_owned()]).apply(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn every_form_is_masked() {
        let secret = "p\"ä/\n \\😀word";
        for form in [
            secret,
            "p\\\"ä/\\n \\\\😀word",
            "p\\\"ä\\/\\n \\\\😀word",
            r"\u0070\u0022\u00E4\u002f\u000A\u0020\u005c\ud83d\uDE00word",
            r#"p\\\"\\u00e4/\\n \\\\\\ud83d\\ude00word"#,
            "p%22%C3%A4%2f%0A%20%5C%F0%9F%98%80word",
            "p%22%c3%a4/%0A+%5C%F0%9F%98%80%77ord",
            r#"p"\xc3\xa4/\x0a \x5c\xf0\x9f\x98\x80word"#,
            r#"p"\u{e4}/\x0a \x5c\u{1f600}word"#,
        ] {
            assert_eq!(mask(secret, &format!("a {form}: z")), "a ****: z", "{form}");
            assert_eq!(mask(secret, form), "****", "{form}");
        }
    }

    #[test]
    fn base64_is_masked_wherever_it_starts() {
        for (text, shown) in [
            // "hunter2-hunter2?>" alone, and behind one and two other bytes.
            ("aHVudGVyMi1odW50ZXIyPz4=", "****="),
            ("x: eGh1bnRlcjItaHVudGVyMj8+", "x: e****"),
            ("eHhodW50ZXIyLWh1bnRlcjI/Pg==", "eH****=="),
            ("eHhodW50ZXIyLWh1bnRlcjI_Pg", "eH****"),
            ("eHhodW50ZXIyLWh1bnRlcjI\\/Pg==", "eH****=="),
            ("eHhodW50ZXIyLWh1bnRlcjI%2FPg==", "eH****=="),
        ] {
            assert_eq!(mask("hunter2-hunter2?>", text), shown, "{text}");
        }
    }

    #[test]
    fn what_a_preview_cut_off_is_masked() {
        for (text, shown) in [
            ("token=correct-horse… (9 bytes left out)", "token=****… (9 bytes left out)"),
            (r"token=corr\u0065\u00… (9 bytes left out)", "token=****… (9 bytes left out)"),
            ("token=cor… (9 bytes left out)", "token=cor… (9 bytes left out)"),
            ("(90 bytes left out) …horse-staple, and more", "(90 bytes left out) …****, and more"),
            ("(90 bytes left out) …ple, and more", "(90 bytes left out) …ple, and more"),
            ("no cut: correct-horse", "no cut: correct-horse"),
        ] {
            assert_eq!(mask("correct-horse-staple", text), shown, "{text}");
        }
    }

    #[test]
    fn overlapping_secrets_leave_no_rest() {
        let masked = Masked::new(&["abcdefgh".to_owned(), "efghijkl".to_owned()]);
        assert_eq!(masked.apply("-abcdefghijkl-").as_deref(), Some("-****-"));
        assert_eq!(masked.apply("abcdefghabcdefgh").as_deref(), Some("****"));
        assert_eq!(masked.apply("abcdefg"), None);
    }

    #[test]
    fn short_values_and_near_misses_stay() {
        assert_eq!(mask("short", "short"), "short");
        assert_eq!(mask("", "text"), "text");
        for text in [r"\u+070assword", "%+70assword", r"\u{110000}assword", "p\\", "%", r"\u", r"\x7"] {
            assert_eq!(mask("password", text), text);
        }
    }
}
