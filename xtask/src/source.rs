//! Rust sources as `tidy` looks at them: without comments, with or without what stands in strings, and with the lines
//! that only tests see marked. Every byte stays in its place, so that offsets lead to lines.

use std::ops::Range;

/// One source file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Comments blanked.
    pub(crate) spoken: String,
    /// Comments and the contents of strings blanked.
    pub(crate) code: String,
    tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let (spoken, code) = blanked(text);
        let tests = test_modules(&code);
        Self { spoken, code, tests }
    }

    /// Whether the byte at this offset is compiled for tests only.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// The line of the byte at this offset, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.code[..at].matches('\n').count()
    }

    /// Where `word` stands in `text`, one of the two above, with nothing around it that could be a part of it.
    pub(crate) fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        text.match_indices(word).map(|(at, _)| at).filter(move |at| {
            let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
            let after = text.as_bytes().get(at + word.len()).copied();
            let (first, last) = (word.as_bytes()[0], word.as_bytes()[word.len() - 1]);
            let goes_on =
                (part(first) && before.is_some_and(part)) || (part(last) && after.is_some_and(part));
            !goes_on
        })
    }
}

/// The source without comments, and without comments and strings.
fn blanked(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let (mut spoken, mut code) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = at + length(rest, at.checked_sub(1).map(|before| bytes[before]));
        if rest.starts_with(b"//") || rest.starts_with(b"/*") {
            blank(&mut spoken[at..end]);
            blank(&mut code[at..end]);
        } else if end > at + 1 {
            blank(&mut code[at..end]);
        }
        at = end;
    }
    (String::from_utf8_lossy(&spoken).into_owned(), String::from_utf8_lossy(&code).into_owned())
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// How long the comment, string or character is that stands here; 1 for anything else.
fn length(rest: &[u8], before: Option<u8>) -> usize {
    let find = |from: usize, what: &[u8]| {
        rest.windows(what.len()).skip(from).position(|it| it == what).map(|place| from + place)
    };
    match rest {
        [b'/', b'/', ..] => find(0, b"\n").unwrap_or(rest.len()),
        [b'/', b'*', ..] => comment_length(rest),
        [b'"', ..] => {
            let mut at = 1;
            while at < rest.len() && rest[at] != b'"' {
                at += if rest[at] == b'\\' { 2 } else { 1 };
            }
            rest.len().min(at + 1)
        }
        [b'r', b'"' | b'#', ..] if !before.is_some_and(|it| it.is_ascii_alphanumeric() && it != b'b') => {
            let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
            if rest.get(1 + hashes) != Some(&b'"') {
                return 1;
            }
            let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
            find(2 + hashes, &close).map_or(rest.len(), |end| end + close.len())
        }
        [b'\'', b'\\', ..] => find(3, b"'").map_or(1, |end| end + 1),
        // A lifetime has no closing quote behind its first character.
        [b'\'', first, ..] => {
            let width = if first.is_ascii() {
                1
            } else {
                4 - usize::from(*first < 0xF0) - usize::from(*first < 0xE0)
            };
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 1 }
        }
        _ => 1,
    }
}

fn comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The items under `#[cfg(test)]`, up to the brace that closes them.
fn test_modules(code: &str) -> Vec<Range<usize>> {
    let marks = code.match_indices("#[cfg(test)]");
    let item = |(start, _): (usize, &str)| {
        let mut depth = 0_usize;
        for (at, byte) in code.bytes().enumerate().skip(start) {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => return start..at + 1,
                b'}' => depth = depth.saturating_sub(1),
                b';' if depth == 0 => return start..at + 1,
                _ => {}
            }
        }
        start..code.len()
    };
    marks.map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_told_from_code() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (text, spoken, code) in [
            ("a // b\nc", "a c", "a c"),
            ("a /* b /* c */ d */ e", "a e", "a e"),
            (r#"a("b // \" c") // d"#, r#"a("b // \" c")"#, "a( )"),
            (r##"r#"a"b"# 'c' '\'' &'d e"##, r##"r#"a"b"# 'c' '\'' &'d e"##, "&'d e"),
            ("'é' b'\"' \"é\" x", "'é' b'\"' \"é\" x", "b x"),
        ] {
            let source = Source::new(text);
            assert_eq!(
                (words(&source.spoken).as_str(), words(&source.code).as_str()),
                (spoken, code),
                "{text}"
            );
            assert_eq!((source.spoken.len(), source.code.len()), (text.len(), text.len()), "{text}");
        }
    }

    #[test]
    fn what_only_tests_see_ends_with_its_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new(text);
        let seen =
            ["a()", "b()", "c()"].map(|name| text.find(name).map(|at| (source.line(at), source.is_test(at))));
        assert_eq!(seen, [Some((1, false)), Some((4, true)), Some((6, false))]);
    }

    #[test]
    fn words_are_found_whole() {
        let places = |text, word| Source::places(text, word).collect::<Vec<_>>();
        assert_eq!(places("std::a mystd::b ::std::c", "std::"), [0, 18]);
        assert_eq!(places("65536 165536 65536u", "65536"), [0]);
    }
}
