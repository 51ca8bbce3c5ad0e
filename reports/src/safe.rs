//! Text that somebody else controls, made fit to be shown.
//!
//! Two steps. [`preview`] and [`tail`] turn bytes into text: bounded, with `\xNN` for a byte that is no UTF-8. [`escape`]
//! turns text into visible text: a character that would move the cursor, turn the text around, hide, end a line or
//! command a CI runner becomes `\u{N}`. After both, these two are ours; all other backslashes are the sender's.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Marks the place where something was left out; the mask of secrets looks for cut ones beside it.
pub const CUT: char = '…';

/// The text with everything invisible spelled out and every CI command broken up, visibly.
///
/// The result is one line. Doing it twice changes nothing.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_with(text, |shown, character| {
        // Writing to a String cannot fail.
        let _ = write!(shown, "{}", character.escape_unicode());
    })
}

/// [`escape`], with another way to spell a character out. What `spell` writes must not end in `:` or `#`.
pub(crate) fn escape_with(text: &str, spell: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let acts = |at: usize, character: char| is_hidden(character) || is_command(text, at);
    let Some((first, _)) = text.char_indices().find(|(at, character)| acts(*at, *character)) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for (offset, character) in text[first..].char_indices() {
        // `:::` is broken up once: a character that was spelled out is no neighbour of the next.
        let commands = is_command(text, first + offset) && shown.ends_with(character);
        if is_hidden(character) || commands {
            spell(&mut shown, character);
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// The first `bytes_max` bytes as text, and how many are not shown.
///
/// Up to four characters stand for a byte that is no UTF-8, so the text is bounded, but not by `bytes_max` itself.
pub fn preview(bytes: &[u8], bytes_max: usize) -> String {
    if bytes.len() <= bytes_max {
        return decode(bytes);
    }
    let mut end = bytes_max;
    while end > 0 && bytes_max - end < 3 && is_continuation(bytes[end]) {
        end -= 1;
    }
    format!("{}{CUT} ({} bytes left out)", decode(&bytes[..end]), bytes.len() - end)
}

/// The last `bytes_max` bytes as text, and how many are not shown.
pub fn tail(bytes: &[u8], bytes_max: usize) -> String {
    if bytes.len() <= bytes_max {
        return decode(bytes);
    }
    let least = bytes.len() - bytes_max;
    let mut start = least;
    while start < bytes.len() && start - least < 3 && is_continuation(bytes[start]) {
        start += 1;
    }
    format!("({start} bytes left out) {CUT}{}", decode(&bytes[start..]))
}

/// The bytes as text: `\xNN` for what is no UTF-8, and `\x5c` for a backslash that would make text look like that.
pub fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (at, character) in valid.char_indices() {
            let rest = &valid[at..];
            if rest.starts_with("\\x") || rest.starts_with("\\u{") {
                text.push_str("\\x5c");
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Whether a character shows nothing of itself, or acts on the text around it.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Fillers and joiners that take no room, or only pretend to be a letter.
            '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{3164}' | '\u{ffa0}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Zero width, direction marks, separators of lines and paragraphs, embeddings, overrides, isolates.
            | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Variation selectors, the byte order mark, annotations, what is no character, tags.
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the character at `at` is the second one of a command to a CI runner: `::`, `##[`, `##vso[` and their like.
fn is_command(text: &str, at: usize) -> bool {
    let (before, here) = (&text[..at], &text[at..]);
    (here.starts_with(':') && before.ends_with(':'))
        || (here.starts_with('#') && before.ends_with('#') && names_a_command(&here[1..]))
}

/// `[`, `vso[`, `teamcity[`: a short word of letters, or none, and a bracket. Bounded, so that reading stays linear.
fn names_a_command(after: &str) -> bool {
    let word = after.bytes().take(16).take_while(u8::is_ascii_alphabetic).count();
    after.as_bytes().get(word) == Some(&b'[')
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_spelled_out() {
        for (text, shown) in [
            ("plain 传输 ünï", "plain 传输 ünï"),
            ("\0\u{1b}[31m\r\n\t", r"\u{0}\u{1b}[31m\u{d}\u{a}\u{9}"),
            ("\u{7f}\u{80}\u{85}\u{9b}31m", r"\u{7f}\u{80}\u{85}\u{9b}31m"),
            (
                "\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}",
                r"\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}",
            ),
            ("a\u{200b}b\u{200d}c\u{feff}d\u{ad}", r"a\u{200b}b\u{200d}c\u{feff}d\u{ad}"),
            ("\u{2028}\u{2029}", r"\u{2028}\u{2029}"),
            ("\u{e0041}\u{fe0f}", r"\u{e0041}\u{fe0f}"),
            (r#"{"a":"\u001b \\ \" \n"}"#, r#"{"a":"\u001b \\ \" \n"}"#),
        ] {
            assert_eq!(escape(text), shown);
            assert_eq!(escape(shown), shown, "twice is once");
        }
    }

    #[test]
    fn commands_are_broken_up() {
        for (text, shown) in [
            ("::error::x", r":\u{3a}error:\u{3a}x"),
            ("a:b: c", "a:b: c"),
            (":::", r":\u{3a}:"),
            ("::::", r":\u{3a}:\u{3a}"),
            ("##[group]", r"#\u{23}[group]"),
            ("##vso[task]", r"#\u{23}vso[task]"),
            ("##VSO[task]", r"#\u{23}VSO[task]"),
            ("##teamcity[x]", r"#\u{23}teamcity[x]"),
            ("###[x]", r"##\u{23}[x]"),
            ("## heading [1]", "## heading [1]"),
            ("####[", r"###\u{23}["),
            (":\u{200b}:", r":\u{200b}:"),
        ] {
            assert_eq!(escape(text), shown);
            assert_eq!(escape(shown), shown, "twice is once");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_spelled_out() {
        for (bytes, text) in [
            (&b"ok"[..], "ok"),
            (b"\xff\xfe", r"\xff\xfe"),
            (b"a\xed\xa0\x80b", r"a\xed\xa0\x80b"),
            (b"\xe4\xbc", r"\xe4\xbc"),
            // Text that would look like one of our escapes shows that it is none.
            (br"\xff \u{41} \u0041 \n \", r"\x5cxff \x5cu{41} \u0041 \n \"),
        ] {
            assert_eq!(decode(bytes), text);
        }
    }

    #[test]
    fn previews_are_bounded_and_say_so() {
        assert_eq!(preview(b"12345", 5), "12345");
        assert_eq!(preview(b"123456", 5), "12345… (1 bytes left out)");
        assert_eq!(preview("传输".as_bytes(), 4), "传… (3 bytes left out)");
        assert_eq!(preview(&[0x80; 8], 4), r"\x80… (7 bytes left out)");
        assert_eq!(preview(b"abc", 0), "… (3 bytes left out)");
        assert_eq!(tail(b"123456", 5), "(1 bytes left out) …23456");
        assert_eq!(tail("传输".as_bytes(), 4), "(3 bytes left out) …输");
        assert_eq!(tail(b"abc", 0), "(3 bytes left out) …");
    }
}
