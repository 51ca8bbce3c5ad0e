//! Choices drawn from a byte string, so that a seed, libFuzzer and a stored crash are sources of the same thing.
//!
//! When the bytes are used up, every draw is zero: the first of the choices, the shortest of the texts. So what is
//! drawn is always finite, and shorter bytes give something simpler.

use sidecert_proto::json::write_str;

/// Texts that have confused readers before.
const ODD_TEXTS: &[&str] = &[
    "", "a", "probe", "id", "\"", "\\", "\u{0}", "\n", "\r\n", "\u{7f}", "\u{2028}", "é", "𝄞", "$id", "*",
    "</>",
];

/// JSON texts that are easily lost on the way; none holds a line feed.
const ODD_JSON: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1.0",
    "1e2",
    "1E400",
    "123456789012345678901234567890",
    "\"\"",
    r#""\ud800""#,
    r#""\u0000\/""#,
    r#"{"a":1,"a":2}"#,
    r#"{ "a" : [ 1 , {} ] }"#,
    r#"{"$id":"probe"}"#,
    r#"{"$capture":"id"}"#,
    "[]",
    "{}",
];

/// How deep drawn JSON nests.
const DEPTH_MOST: usize = 6;

/// What is left of a byte string to draw from.
#[derive(Debug)]
pub(crate) struct Draw<'b> {
    rest: &'b [u8],
}

impl<'b> Draw<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// Less than `bound`, which is at most 65536; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let drawn = if bound <= 256 {
            u16::from(self.byte())
        } else {
            u16::from_le_bytes([self.byte(), self.byte()])
        };
        usize::from(drawn).checked_rem(bound).unwrap_or_default()
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    pub(crate) fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// Small numbers, large ones, and those at the edges.
    pub(crate) fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => u64::from(self.byte()),
            1 => u64::from(u16::from_le_bytes([self.byte(), self.byte()])),
            2 => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            _ => *self.pick(&[
                u64::MAX,
                i64::MAX as u64,
                1 << 53,
                u64::from(u32::MAX),
                9_999_999_999_999_999_999,
            ]),
        }
    }

    /// At most `most` bytes, any bytes.
    pub(crate) fn bytes(&mut self, most: usize) -> &'b [u8] {
        let wanted = self.below(most + 1);
        let (taken, rest) = self.rest.split_at(wanted.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    pub(crate) fn text(&mut self) -> String {
        if self.flag() {
            return String::from_utf8_lossy(self.bytes(24)).into_owned();
        }
        (*self.pick(ODD_TEXTS)).to_owned()
    }

    pub(crate) fn optional<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw(self))
    }

    pub(crate) fn several<T>(&mut self, most: usize, mut draw: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| draw(self)).collect()
    }

    /// One JSON text without outer white space and without a line feed.
    pub(crate) fn json(&mut self) -> String {
        let mut out = Vec::new();
        self.json_below(&mut out, 0);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn json_below(&mut self, out: &mut Vec<u8>, depth: usize) {
        let container = if depth < DEPTH_MOST { 4 } else { 2 };
        match self.below(container) {
            0 => out.extend_from_slice(self.pick(ODD_JSON).as_bytes()),
            1 => write_str(out, &self.text()),
            2 => {
                out.push(b'[');
                for at in 0..self.below(4) {
                    if at > 0 {
                        out.push(b',');
                    }
                    self.json_below(out, depth + 1);
                }
                out.push(b']');
            }
            _ => {
                out.push(b'{');
                for at in 0..self.below(4) {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_str(out, &self.text());
                    out.push(b':');
                    self.json_below(out, depth + 1);
                }
                out.push(b'}');
            }
        }
    }
}
