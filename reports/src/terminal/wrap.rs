//! Lines of a given width: how wide text is on a terminal, and where it may be broken.

use std::ops::Range;

/// Where a text may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    /// Between words; within one only if it is longer than a line.
    Words,
    /// Anywhere, and nothing is left out: frames.
    Anywhere,
    /// Nowhere: commands, which are there to be copied.
    Never,
}

/// The width of a text in columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Breaks escaped text into lines of at most `columns_max` columns. There is at least one.
pub(super) fn wrap(text: &str, columns_max: usize, breaks: Breaks) -> Vec<&str> {
    if breaks == Breaks::Never {
        return vec![text];
    }
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(full) = overflow(rest, columns_max) {
        let line = match breaks {
            Breaks::Words => last_space(rest, full).unwrap_or(full..full),
            Breaks::Anywhere | Breaks::Never => full..full,
        };
        lines.push(&rest[..line.start]);
        rest = &rest[line.end..];
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest);
    }
    lines
}

/// How many bytes of `text` fill a line, if it does not fit into one. Never 0, and never within an escape of ours.
fn overflow(text: &str, columns_max: usize) -> Option<usize> {
    let mut used = 0;
    let (full, _) = text.char_indices().find(|(_, character)| {
        used += width(*character);
        used > columns_max
    })?;
    let full = if full == 0 { text.chars().next().map_or(0, char::len_utf8) } else { full };
    let head = &text[..full];
    let unbroken =
        head.rfind('\\').filter(|start| *start > 0 && start + escape_length(&text[*start..]) > full);
    Some(unbroken.unwrap_or(full))
}

/// The space to break at, which is left out, so that at most `full` bytes stand before it.
fn last_space(text: &str, full: usize) -> Option<Range<usize>> {
    let start = if text[full..].starts_with(' ') { full } else { text[..full].rfind(' ')? };
    // A line of nothing but its indentation would be no progress for a reader.
    (!text[..start].trim().is_empty()).then_some(start..start + 1)
}

/// The length of the escape that `text` begins with, or 1.
fn escape_length(text: &str) -> usize {
    if text.starts_with("\\x") {
        4
    } else if text.starts_with("\\u{") {
        text.find('}').map_or(1, |end| end + 1)
    } else {
        1
    }
}

/// East Asian characters and emoji take two columns, combining marks none. Close enough for alignment: nothing but
/// looks rests on it.
fn width(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36f
        | 0x483..=0x489
        | 0x591..=0x5bd
        | 0x64b..=0x65f
        | 0x1ab0..=0x1aff
        | 0x20d0..=0x20ff
        | 0xfe20..=0xfe2f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xa960..=0xa97f
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1faff
        | 0x2_0000..=0x3_fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_where_they_may_be() {
        for (text, columns_max, breaks, lines) in [
            ("", 5, Breaks::Words, vec![""]),
            ("one two three", 7, Breaks::Words, vec!["one two", "three"]),
            ("one two three", 8, Breaks::Words, vec!["one two", "three"]),
            ("abcdefgh ij", 5, Breaks::Words, vec!["abcde", "fgh", "ij"]),
            ("    abcdefgh", 5, Breaks::Words, vec!["    a", "bcdef", "gh"]),
            ("a bc d", 3, Breaks::Anywhere, vec!["a b", "c d"]),
            ("传输传输", 5, Breaks::Anywhere, vec!["传输", "传输"]),
            ("传", 1, Breaks::Anywhere, vec!["传"]),
            (r"ab\x1bcd", 5, Breaks::Anywhere, vec!["ab", r"\x1bc", "d"]),
            (r"ab\u{202e}cd", 8, Breaks::Anywhere, vec!["ab", r"\u{202e}", "cd"]),
            (r"\u{202e}", 3, Breaks::Anywhere, vec![r"\u{", "202", "e}"]),
            ("one two  ", 7, Breaks::Words, vec!["one two", " "]),
            ("one two three", 7, Breaks::Never, vec!["one two three"]),
        ] {
            assert_eq!(wrap(text, columns_max, breaks), lines, "{text:?} {columns_max} {breaks:?}");
        }
    }
}
