//! Strings: eight bytes at a time while scanning, and what their escapes stand for.

use std::borrow::Cow;

/// Appends `text` as a JSON string, quotes included.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail, and neither can a `str`.
    let _infallible = serde_json::to_writer(out, text);
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_str(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

/// What the escapes in `written`, a JSON string without its quotes, stand for. A surrogate without its other half
/// becomes U+FFFD.
pub(super) fn unescape(written: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', written.as_bytes()) else {
        return Cow::Borrowed(written);
    };
    let mut out = String::with_capacity(written.len());
    let (plain, mut rest) = written.split_at(first);
    out.push_str(plain);
    while let Some(escape) = rest.as_bytes().get(1) {
        let mut used = 2;
        match escape {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let (character, length) = code_point(rest.as_bytes());
                out.push(character);
                used = length;
            }
            other => out.push(char::from(*other)),
        }
        rest = rest.get(used..).unwrap_or_default();
        let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        out.push_str(&rest[..plain]);
        rest = &rest[plain..];
    }
    Cow::Owned(out)
}

/// Where in `written`, a JSON string without its quotes, each byte of what it says comes from; the last is its end.
pub(crate) fn origins(written: &str) -> Vec<usize> {
    let mut origins = Vec::with_capacity(written.len() + 1);
    let mut at = 0;
    while let Some(first) = written.as_bytes().get(at) {
        let (said, used) = match (first, written.as_bytes().get(at + 1)) {
            (b'\\', Some(b'u')) => {
                let (character, used) = code_point(&written.as_bytes()[at..]);
                (character.len_utf8(), used)
            }
            (b'\\', _) => (1, 2),
            _ => (1, 1),
        };
        origins.extend(std::iter::repeat_n(at, said));
        at += used;
    }
    origins.push(written.len());
    origins
}

/// The UTF-16 unit that the `\uXXXX` at the start of `text` names, if one stands there.
pub(super) fn unit(text: &[u8]) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = text else { return None };
    let mut unit = 0;
    for digit in digits.get(..4)? {
        unit = unit << 4 | char::from(*digit).to_digit(16)?;
    }
    u16::try_from(unit).ok()
}

/// Whether a UTF-16 unit is the first half of a pair.
pub(super) fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

/// Whether a UTF-16 unit is the second half of a pair.
pub(super) fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// The character that the one or two `\uXXXX` at the start of `text` stand for, and how long they are.
fn code_point(text: &[u8]) -> (char, usize) {
    let first = unit(text).unwrap_or_default();
    let second = text.get(6..).and_then(unit).filter(|second| is_high(first) && is_low(*second));
    let length = if second.is_some() { 12 } else { 6 };
    let character = char::decode_utf16([first].into_iter().chain(second)).next();
    (character.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER), length)
}

/// The fingerprint of a whole name: what [`Word::mix`] makes of its words, the last of which is not full.
pub(super) fn fingerprint(name: &str) -> u64 {
    let name = name.as_bytes();
    (0..=name.len() / Word::SIZE).fold(0, |mixed, index| {
        let at = index * Word::SIZE;
        Word::load(name, at).mix(mixed, (name.len() - at).min(Word::SIZE))
    })
}

/// Eight bytes of text, the first in the lowest place.
#[derive(Clone, Copy)]
pub(super) struct Word(u64);

const ONES: u64 = u64::MAX / 0xFF;
const HIGHS: u64 = ONES * 0x80;

impl Word {
    /// How many bytes a word has.
    pub(super) const SIZE: usize = 8;

    /// The bytes at `at`; past the end of the text stand zeros, which no string may hold.
    #[inline]
    pub(super) fn load(text: &[u8], at: usize) -> Word {
        let rest = text.get(at..).unwrap_or_default();
        Word(rest.first_chunk().map_or_else(|| partial(rest), |bytes| u64::from_le_bytes(*bytes)))
    }

    /// How many bytes stand before the first quote, backslash or control character: all if there is none.
    #[inline]
    pub(super) fn plain(self) -> usize {
        // Subtracting sets the high bit of each byte that was below; a borrow can only do so wrongly above a byte where
        // it is right, and only the lowest counts. Bytes beyond ASCII are none of the three.
        let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit));
        let equal = |byte: u8| below(self.0 ^ (ONES * u64::from(byte)), 1);
        let found = (below(self.0, b' ') | equal(b'"') | equal(b'\\')) & !self.0 & HIGHS;
        found.trailing_zeros() as usize / 8
    }

    /// Mixes the first `count` bytes into the fingerprint of a name. Equal names have equal fingerprints.
    #[inline]
    pub(super) fn mix(self, into: u64, count: usize) -> u64 {
        let kept = if count < Word::SIZE { self.0 & ((1 << (count * 8)) - 1) } else { self.0 };
        (into ^ kept).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
    }
}

#[cold]
fn partial(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
