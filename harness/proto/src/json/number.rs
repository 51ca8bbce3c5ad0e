//! Numbers by value, read off the lexeme: no rounding, and no work beyond the length of what was written.

/// A decimal number as `± digits × 10^exponent`, without leading or trailing zeros; zero has no digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal<'a> {
    lexeme: &'a str,
    negative: bool,
    /// The digits, in two runs: the point stood between them.
    head: &'a str,
    tail: &'a str,
    /// The power of ten of the last digit.
    exponent: i64,
    /// Whether `exponent` is exact; else it says no more than "beyond all bounds", up or down.
    exact: bool,
}

/// Exponents of more digits than this are not computed with.
const EXPONENT_DIGITS_MAX: usize = 17;
/// How many zeros at the end of an integer are written out.
const PLAIN_ZEROS_MAX: usize = 20;

impl<'a> Decimal<'a> {
    /// Reads a JSON number.
    pub(super) fn of(lexeme: &'a str) -> Decimal<'a> {
        let (negative, rest) = match lexeme.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, lexeme),
        };
        let (mantissa, written_exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (mut head, tail) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut tail = tail.trim_end_matches('0');
        let mut shift = -length(tail);
        if tail.is_empty() {
            let trimmed = head.trim_end_matches('0');
            shift = length(head) - length(trimmed);
            head = trimmed;
        }
        head = head.trim_start_matches('0');
        if head.is_empty() {
            tail = tail.trim_start_matches('0');
        }
        if head.is_empty() && tail.is_empty() {
            return Decimal { lexeme: "0", negative: false, head, tail, exponent: 0, exact: true };
        }
        let (exponent, exact) = exponent(written_exponent);
        Decimal { lexeme, negative, head, tail, exponent: exponent + shift, exact }
    }

    pub(super) fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    /// The value, if it is an integer that fits.
    pub(super) fn to_integer(self) -> Option<i128> {
        let zeros = u32::try_from(self.exponent).ok()?;
        if zeros > 38 || self.head.len() + self.tail.len() > 38 {
            return None;
        }
        let digits = self.digits().fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
        let value = digits.checked_mul(10_i128.checked_pow(zeros)?)?;
        Some(if self.negative { -value } else { value })
    }

    /// Whether both are the same number. Numbers whose exponents are too long to compute with are the same only if
    /// they are written alike.
    pub(super) fn equals(self, other: Decimal<'_>) -> bool {
        if !(self.exact && other.exact) {
            return self.lexeme == other.lexeme;
        }
        self.negative == other.negative && self.exponent == other.exponent && self.digits().eq(other.digits())
    }

    /// Appends the one way to write this number: without an exponent, where people would.
    pub(super) fn write_canonical(self, out: &mut Vec<u8>) {
        if !self.exact || (self.head.is_empty() && self.tail.is_empty()) {
            out.extend_from_slice(self.lexeme.as_bytes());
            return;
        }
        if self.negative {
            out.push(b'-');
        }
        out.extend(self.digits());
        if let Ok(zeros @ 1..=PLAIN_ZEROS_MAX) = usize::try_from(self.exponent) {
            out.resize(out.len() + zeros, b'0');
        } else if self.exponent != 0 {
            out.push(b'e');
            out.extend_from_slice(self.exponent.to_string().as_bytes());
        }
    }

    fn digits(self) -> impl Iterator<Item = u8> {
        self.head.bytes().chain(self.tail.bytes())
    }
}

/// The written exponent, and whether it is exact. What has too many digits is far beyond any shift by the length of
/// a text.
fn exponent(written: &str) -> (i64, bool) {
    let (negative, digits) = match written.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, written.strip_prefix('+').unwrap_or(written)),
    };
    let digits = digits.trim_start_matches('0');
    let exact = digits.len() <= EXPONENT_DIGITS_MAX;
    let size = if exact { digits.parse().unwrap_or(0) } else { i64::MAX / 4 };
    (if negative { -size } else { size }, exact)
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX / 4)
}
