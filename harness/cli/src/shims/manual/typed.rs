//! The lines that a person types.

use serde_json::{Value, json};

/// What can be typed.
pub(super) const HELP: &[&str] = &[
    "    Enter      it is done",
    "    s TEXT     this is shown, of an answer above all; before Enter, several times if it has several lines",
    "    w, n, e TEXT    the same of a warning, a notice, an error; with the name of the plugin, if it is shown",
    "    b TEXT     a plugin blocked it, and this is what is told of it",
    "    f TEXT     it failed, and this is what is told of it; f/REASON TEXT with the reason of the protocol",
    "    r TEXT     your host does not do it now, or does not take it, and says this",
    "    c TEXT     your host cannot be made to do it, because of this",
    "    ?          this help",
    "    q          stop the run; what is known so far is told",
    "    A number before any of these says which one it is about, where several are open.",
];

/// As what something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Warning,
    Notice,
    Error,
}

impl Kind {
    /// What a shim calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Error => "error",
        }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Typed {
    /// It is done.
    Done,
    /// This is shown.
    Shown(Kind, String),
    /// Another outcome, without its number.
    Other(Value),
    Help,
    Quit,
    /// Nothing of all this.
    Odd,
}

impl Typed {
    /// Reads a line; and the number of what it is about, if it has one.
    pub(super) fn read(line: &str) -> (Option<u64>, Self) {
        let line = line.trim();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at(digits);
        // `1st` is no number and an answer.
        if digits > 0 && !(rest.is_empty() || rest.starts_with(' ')) {
            return (None, Self::Odd);
        }
        (number.parse().ok(), Self::of(rest.trim_start()))
    }

    fn of(line: &str) -> Self {
        let (word, text) = line.split_once(' ').unwrap_or((line, ""));
        let text = text.trim();
        match word {
            "" => Self::Done,
            "?" => Self::Help,
            "q" if text.is_empty() => Self::Quit,
            "s" => Self::Shown(Kind::Text, text.to_owned()),
            "w" => Self::Shown(Kind::Warning, text.to_owned()),
            "n" => Self::Shown(Kind::Notice, text.to_owned()),
            "e" => Self::Shown(Kind::Error, text.to_owned()),
            "b" => Self::Other(json!({ "blocked": text })),
            "f" => Self::Other(json!({ "failed": text })),
            "r" => Self::Other(json!({ "refused": text })),
            "c" => Self::Other(json!({ "cannot": text })),
            _ => match word.strip_prefix("f/").filter(|reason| !reason.is_empty()) {
                Some(reason) => Self::Other(json!({ "failed": text, "reason": reason })),
                None => Self::Odd,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let shown = |kind, text: &str| Typed::Shown(kind, text.to_owned());
        for (line, number, typed) in [
            ("", None, Typed::Done),
            ("  \t", None, Typed::Done),
            ("12", Some(12), Typed::Done),
            ("s Hello  you ", None, shown(Kind::Text, "Hello  you")),
            ("w one: slow", None, shown(Kind::Warning, "one: slow")),
            ("3 s x", Some(3), shown(Kind::Text, "x")),
            ("s", None, shown(Kind::Text, "")),
            ("b no", None, Typed::Other(json!({ "blocked": "no" }))),
            ("f it broke", None, Typed::Other(json!({ "failed": "it broke" }))),
            ("f/internal it", None, Typed::Other(json!({ "failed": "it", "reason": "internal" }))),
            ("7 r busy", Some(7), Typed::Other(json!({ "refused": "busy" }))),
            ("c", None, Typed::Other(json!({ "cannot": "" }))),
            ("?", None, Typed::Help),
            ("q", None, Typed::Quit),
            ("q no", None, Typed::Odd),
            ("f/ x", None, Typed::Odd),
            ("yes", None, Typed::Odd),
            ("1st", None, Typed::Odd),
            ("99999999999999999999999", None, Typed::Done),
        ] {
            assert_eq!(Typed::read(line), (number, typed), "{line:?}");
        }
    }
}
