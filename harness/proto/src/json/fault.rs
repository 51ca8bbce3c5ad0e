//! Why a text is no JSON, and where.

use std::fmt;

/// The first thing in a text that makes it no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The offset in bytes of what is wrong.
    pub at: usize,
    /// What is wrong there.
    pub kind: FaultKind,
}

/// What can be wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// There is nothing but white space.
    Empty,
    /// It is too long for the 32-bit offsets of a tape.
    TooLarge,
    /// It begins with a byte order mark.
    ByteOrderMark,
    /// It is not UTF-8.
    InvalidUtf8,
    /// A string holds a control character that had to be escaped.
    ControlInString(u8),
    /// A backslash begins no escape that JSON knows.
    BadEscape,
    /// A number breaks the grammar: a leading zero, or no digit where one must stand.
    BadNumber,
    /// A word begins like `true`, `false` or `null` and is none of them.
    BadLiteral,
    /// A byte stands where the grammar allows none like it.
    UnexpectedByte(u8),
    /// It ends before its value does.
    UnexpectedEnd,
    /// Something follows the value.
    TrailingText,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no value, only white space"),
            Self::TooLarge => f.write_str("longer than 4 GiB"),
            Self::ByteOrderMark => f.write_str("a byte order mark"),
            Self::InvalidUtf8 => f.write_str("not UTF-8"),
            Self::ControlInString(byte) => write!(f, "unescaped control character 0x{byte:02X} in a string"),
            Self::BadEscape => f.write_str("unknown escape in a string"),
            Self::BadNumber => f.write_str("malformed number"),
            Self::BadLiteral => f.write_str("a word other than true, false or null"),
            Self::UnexpectedByte(byte) if byte.is_ascii_graphic() => {
                write!(f, "unexpected `{}`", char::from(*byte))
            }
            Self::UnexpectedByte(byte) => write!(f, "unexpected byte 0x{byte:02X}"),
            Self::UnexpectedEnd => f.write_str("the text ends inside its value"),
            Self::TrailingText => f.write_str("text after the value"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.at)
    }
}

impl std::error::Error for Fault {}
