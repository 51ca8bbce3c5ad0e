//! The few colours of the terminal form. Nothing else in this crate writes an escape sequence.

/// How a piece of text is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

impl Paint {
    /// The text between the two codes, or as it is where there is nothing to paint or no colour is wanted.
    pub(super) fn apply(self, color: bool, text: &str) -> String {
        match self.code() {
            Some(code) if color && !text.is_empty() => format!("{code}{text}{RESET}"),
            _ => text.to_owned(),
        }
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("\x1b[1m"),
            Self::Dim => Some("\x1b[2m"),
            Self::Green => Some("\x1b[1;32m"),
            Self::Red => Some("\x1b[1;31m"),
            Self::Yellow => Some("\x1b[1;33m"),
        }
    }
}

const RESET: &str = "\x1b[0m";
