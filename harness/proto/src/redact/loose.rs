//! Bytes that are no JSON, or only a part of some: what is wrong with them stays, and so do the strings that are names.

use super::{Redaction, Tape};

/// Where in a text a part of it ended.
#[derive(Debug, Default)]
pub(super) struct State {
    in_string: bool,
    /// The last string that a colon followed.
    name: String,
}

impl Redaction {
    /// As many bytes, without what was written in them.
    pub(super) fn loose(&mut self, bytes: &[u8], state: &mut State) -> Vec<u8> {
        if self.known_only {
            return bytes.to_vec();
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            if !state.in_string {
                let end = memchr::memchr(b'"', &bytes[at..]).map_or(bytes.len(), |place| at + place);
                out.extend(outside(&bytes[at..end]));
                if end == bytes.len() {
                    break;
                }
                out.push(b'"');
                at = end + 1;
            }
            let end = closing(bytes, at);
            let (body, rest) = (&bytes[at..end], &bytes[(end + 1).min(bytes.len())..]);
            let is_whole = !state.in_string && end < bytes.len();
            out.extend(if is_whole { self.loose_string(body, rest, state) } else { masked(body) });
            state.in_string = end == bytes.len();
            if end < bytes.len() {
                out.push(b'"');
            }
            at = end + 1;
        }
        out
    }

    /// The inside of a string that is closed.
    fn loose_string(&mut self, body: &[u8], rest: &[u8], state: &mut State) -> Vec<u8> {
        let quoted = [b"\"", body, b"\""].concat();
        let Ok(tape) = Tape::scan(&quoted) else { return masked(body) };
        let said = tape.root().as_str().unwrap_or_default();
        if rest.trim_ascii_start().starts_with(b":") {
            state.name = said.into_owned();
            return body.to_vec();
        }
        if self.is_kept(&state.name, false, &said) || tape.has_lone_surrogate() {
            return body.to_vec();
        }
        self.placeholder(&said, body.len()).map_or_else(|| body.to_vec(), String::into_bytes)
    }
}

/// Where the quote stands that closes the string in which `at` is; the end if there is none.
fn closing(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// What stands outside of strings: structure, numbers and literals stay, and other words do not.
fn outside(bytes: &[u8]) -> Vec<u8> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let mut out = Vec::with_capacity(bytes.len());
    for run in bytes.chunk_by(|one, other| is_word(one) == is_word(other)) {
        let is_number = run[0].is_ascii_digit() && run.iter().all(|it| it.is_ascii_digit() || *it == b'e');
        if is_number || matches!(run, b"true" | b"false" | b"null") {
            out.extend_from_slice(run);
        } else {
            out.extend(masked(run));
        }
    }
    out
}

/// As many bytes with an `x` for each letter and digit. What is no UTF-8 stays so, and an escape stays one.
fn masked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut escape = false;
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let stays = escape || letter == '\u{feff}' || (letter.is_ascii() && !letter.is_alphanumeric());
            escape = letter == '\\' && !escape;
            if stays {
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.extend(std::iter::repeat_n(b'x', letter.len_utf8()));
            }
        }
        out.extend_from_slice(chunk.invalid());
    }
    out
}
