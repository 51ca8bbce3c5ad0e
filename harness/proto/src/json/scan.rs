//! The scanner: one pass over the bytes, no recursion and no stack of its own (an open container remembers its parent
//! in the cell that will later hold where it ends).

use super::slot::{
    DUPLICATES, ESCAPED, FRACTION_OR_EXPONENT, LONE_SURROGATE, SHADOWED, Slot, SlotKind, offset,
};
use super::strings::{self, Word};
use super::{Fault, FaultKind, Slots, Tape};
use std::borrow::Cow;

/// Scans `text` into the memory of `spare`.
pub(super) fn scan(text: &[u8], mut spare: Slots) -> Result<Tape<'_>, (Fault, Slots)> {
    spare.0.clear();
    let text = match checked(text) {
        Ok(text) => text,
        Err(fault) => return Err((fault, spare)),
    };
    let mut scanner = Scanner {
        whole: text,
        text: text.as_bytes(),
        slots: spare.0,
        open: NONE,
        depth: 0,
        depth_max: 0,
        names_seen: [0; SKETCHED],
        has_duplicates: false,
        has_lone_surrogate: false,
        string_flags: 0,
        fault: Fault { at: 0, kind: FaultKind::Empty },
    };
    match scanner.document() {
        Some(()) => Ok(Tape {
            text,
            slots: Slots(scanner.slots),
            depth: scanner.depth_max,
            has_duplicates: scanner.has_duplicates,
            has_lone_surrogate: scanner.has_lone_surrogate,
        }),
        None => Err((scanner.fault, Slots(scanner.slots))),
    }
}

/// What can be said of the whole text before looking at its grammar.
fn checked(text: &[u8]) -> Result<&str, Fault> {
    if u32::try_from(text.len()).is_err() {
        return Err(Fault { at: 0, kind: FaultKind::TooLarge });
    }
    if text.starts_with(b"\xEF\xBB\xBF") {
        return Err(Fault { at: 0, kind: FaultKind::ByteOrderMark });
    }
    str::from_utf8(text).map_err(|error| Fault { at: error.valid_up_to(), kind: FaultKind::InvalidUtf8 })
}

/// In place of a parent: there is none.
const NONE: u32 = u32::MAX;

/// How many levels of objects have a sketch of their names. Deeper ones are compared when they close.
const SKETCHED: usize = 16;

/// Up to this many members, names are compared pair by pair; beyond it they are sorted.
const PAIRWISE: usize = 32;

/// In an object that is still open: two of its names may be equal.
const SUSPECT: u8 = 1 << 7;

struct Scanner<'t> {
    whole: &'t str,
    text: &'t [u8],
    slots: Vec<Slot>,
    /// The innermost open container.
    open: u32,
    depth: u32,
    depth_max: u32,
    /// Per level a set of 64 bits, one set by each name: while none is set twice, no two names are equal.
    names_seen: [u64; SKETCHED],
    has_duplicates: bool,
    has_lone_surrogate: bool,
    /// Of the string that was read last: [`ESCAPED`], [`LONE_SURROGATE`].
    string_flags: u8,
    fault: Fault,
}

/// The position is passed along instead of kept in the scanner, so that it stays in a register; `None` is a fault, which
/// the scanner keeps.
impl Scanner<'_> {
    fn document(&mut self) -> Option<()> {
        let (mut at, mut byte) = self.next(0);
        if at == self.text.len() {
            return self.refuse(at, FaultKind::Empty);
        }
        let mut in_object = false;
        loop {
            // A value is due here, in an object with its name before it.
            if in_object {
                (at, byte) = self.name(at, byte)?;
            }
            match byte {
                b'"' => at = self.string_value(at)?,
                b'{' | b'[' => {
                    in_object = byte == b'{';
                    self.begin(if in_object { SlotKind::Object } else { SlotKind::Array }, at);
                    (at, byte) = self.next(at + 1);
                    if byte != if in_object { b'}' } else { b']' } {
                        self.slots[self.open as usize].len = 1;
                        continue;
                    }
                    at = self.end(at);
                }
                b'-' | b'0'..=b'9' => at = self.number(at)?,
                b't' => at = self.literal(SlotKind::Bool, at, b"true")?,
                b'f' => at = self.literal(SlotKind::Bool, at, b"false")?,
                b'n' => at = self.literal(SlotKind::Null, at, b"null")?,
                _ => return self.unexpected(at),
            }
            // A value ends here, and maybe the containers that it is the last in.
            loop {
                (at, byte) = self.next(at);
                let Some(container) = self.slots.get_mut(self.open as usize) else {
                    return if at == self.text.len() {
                        Some(())
                    } else {
                        self.refuse(at, FaultKind::TrailingText)
                    };
                };
                in_object = container.kind == SlotKind::Object;
                if byte == b',' {
                    container.len += 1;
                    (at, byte) = self.next(at + 1);
                    break;
                }
                if byte != if in_object { b'}' } else { b']' } {
                    return self.unexpected(at);
                }
                at = self.end(at);
            }
        }
    }

    /// Opens a container.
    #[inline]
    fn begin(&mut self, kind: SlotKind, at: usize) {
        let flags = match self.names_seen.get_mut(self.depth as usize) {
            Some(seen) => {
                *seen = 0;
                0
            }
            None => SUSPECT,
        };
        self.depth += 1;
        self.depth_max = self.depth_max.max(self.depth);
        let next = std::mem::replace(&mut self.open, offset(self.slots.len()));
        self.slots.push(Slot { start: offset(at), end: 0, next, len: 0, kind, flags });
    }

    /// Closes the open container at the bracket that stands here.
    #[inline]
    fn end(&mut self, at: usize) -> usize {
        let next = offset(self.slots.len());
        let closed = self.open;
        let container = &mut self.slots[closed as usize];
        self.open = std::mem::replace(&mut container.next, next);
        container.end = offset(at + 1);
        self.depth -= 1;
        if container.has(SUSPECT) {
            container.flags = 0;
            if container.kind == SlotKind::Object && container.len > 1 {
                self.compare_names(closed);
            }
        }
        at + 1
    }

    /// Reads a member name and the colon after it, up to the value.
    #[inline]
    fn name(&mut self, at: usize, byte: u8) -> Option<(usize, u8)> {
        if byte != b'"' {
            return self.unexpected(at);
        }
        let mut end = at + 1;
        let mut flags = 0;
        let mut fingerprint = 0;
        loop {
            let word = Word::load(self.text, end);
            let plain = word.plain();
            fingerprint = word.mix(fingerprint, plain);
            end += plain;
            if plain < Word::SIZE {
                break;
            }
        }
        if self.text.get(end) == Some(&b'"') {
            end += 1;
        } else {
            end = self.string(at)?;
            flags = self.string_flags;
            fingerprint = strings::fingerprint(&strings::unescape(&self.whole[at + 1..end - 1]));
        }
        let next = offset(self.slots.len() + 1);
        let len = fold(fingerprint);
        self.slots.push(Slot { start: offset(at), end: offset(end), next, len, kind: SlotKind::Name, flags });
        if let Some(seen) = self.names_seen.get_mut(self.depth as usize - 1) {
            let bit = 1 << (fingerprint >> 58);
            if *seen & bit != 0 {
                self.slots[self.open as usize].flags = SUSPECT;
            }
            *seen |= bit;
        }
        let (at, byte) = self.next(end);
        if byte == b':' { Some(self.next(at + 1)) } else { self.unexpected(at) }
    }

    #[inline]
    fn string_value(&mut self, at: usize) -> Option<usize> {
        let end = self.string(at)?;
        self.push(SlotKind::String, at, end, self.string_flags);
        Some(end)
    }

    /// Reads a string, and leaves what is to be known of it in `string_flags`.
    #[inline]
    fn string(&mut self, at: usize) -> Option<usize> {
        let mut at = at + 1;
        self.string_flags = 0;
        loop {
            at = self.skip_plain(at);
            match self.text.get(at) {
                Some(b'"') => return Some(at + 1),
                Some(b'\\') => at = self.escape(at)?,
                Some(byte) => return self.refuse(at, FaultKind::ControlInString(*byte)),
                None => return self.refuse(at, FaultKind::UnexpectedEnd),
            }
        }
    }

    /// Goes to the next quote, backslash or control character.
    #[inline]
    fn skip_plain(&self, mut at: usize) -> usize {
        for _ in 0..2 {
            let plain = Word::load(self.text, at).plain();
            at += plain;
            if plain < Word::SIZE {
                return at;
            }
        }
        // It is long: larger steps, which the compiler turns into vector instructions.
        while let Some(block) = self.text.get(at..).and_then(<[u8]>::first_chunk::<32>) {
            let special =
                |byte: &u8| u8::from(*byte < 0x20) | u8::from(*byte == b'"') | u8::from(*byte == b'\\');
            if block.iter().fold(0, |any, byte| any | special(byte)) != 0 {
                break;
            }
            at += block.len();
        }
        loop {
            let plain = Word::load(self.text, at).plain();
            at += plain;
            if plain < Word::SIZE {
                return at;
            }
        }
    }

    /// Reads an escape, both halves of a surrogate pair at once.
    #[inline]
    fn escape(&mut self, at: usize) -> Option<usize> {
        self.string_flags |= ESCAPED;
        match self.text.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Some(at + 2),
            Some(b'u') => self.unicode_escape(at),
            Some(_) => self.refuse(at, FaultKind::BadEscape),
            None => self.cut_short(),
        }
    }

    fn unicode_escape(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let Some(unit) = strings::unit(rest) else {
            let digits = rest[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).take(4).count();
            return if rest.len() == 2 + digits {
                self.cut_short()
            } else {
                self.refuse(at, FaultKind::BadEscape)
            };
        };
        if strings::is_high(unit) && rest.get(6..).and_then(strings::unit).is_some_and(strings::is_low) {
            return Some(at + 12);
        }
        if strings::is_high(unit) || strings::is_low(unit) {
            self.has_lone_surrogate = true;
            self.string_flags |= LONE_SURROGATE;
        }
        Some(at + 6)
    }

    #[inline]
    fn number(&mut self, start: usize) -> Option<usize> {
        let mut flags = 0;
        let first = if self.text[start] == b'-' { start + 1 } else { start };
        let mut at = self.digits(first)?;
        if self.text[first] == b'0' && at > first + 1 {
            return self.refuse(first + 1, FaultKind::BadNumber);
        }
        if self.text.get(at) == Some(&b'.') {
            flags = FRACTION_OR_EXPONENT;
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.text.get(at) {
            flags = FRACTION_OR_EXPONENT;
            let sign = matches!(self.text.get(at + 1), Some(b'+' | b'-'));
            at = self.digits(at + 1 + usize::from(sign))?;
        }
        self.push(SlotKind::Number, start, at, flags);
        Some(at)
    }

    /// Reads one digit or more.
    #[inline]
    fn digits(&mut self, mut at: usize) -> Option<usize> {
        match self.text.get(at) {
            Some(b'0'..=b'9') => {}
            Some(_) => return self.refuse(at, FaultKind::BadNumber),
            None => return self.refuse(at, FaultKind::UnexpectedEnd),
        }
        while let Some(b'0'..=b'9') = self.text.get(at) {
            at += 1;
        }
        Some(at)
    }

    #[inline]
    fn literal(&mut self, kind: SlotKind, at: usize, word: &[u8]) -> Option<usize> {
        let rest = &self.text[at..];
        if rest.starts_with(word) {
            let end = at + word.len();
            self.push(kind, at, end, 0);
            Some(end)
        } else if word.starts_with(rest) {
            self.cut_short()
        } else {
            self.refuse(at, FaultKind::BadLiteral)
        }
    }

    /// The next byte that is not white space, and where it is. At the end of the text it is NUL, which no rule allows
    /// outside of a string.
    #[inline]
    fn next(&self, mut at: usize) -> (usize, u8) {
        loop {
            match self.text.get(at).copied() {
                Some(byte) if byte > b' ' => return (at, byte),
                Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
                Some(byte) => return (at, byte),
                None => return (at, 0),
            }
        }
    }

    #[inline]
    fn push(&mut self, kind: SlotKind, start: usize, end: usize, flags: u8) {
        let next = offset(self.slots.len() + 1);
        self.slots.push(Slot { start: offset(start), end: offset(end), next, len: 0, kind, flags });
    }

    #[cold]
    fn unexpected<T>(&mut self, at: usize) -> Option<T> {
        match self.text.get(at) {
            Some(byte) => self.refuse(at, FaultKind::UnexpectedByte(*byte)),
            None => self.cut_short(),
        }
    }

    #[cold]
    fn cut_short<T>(&mut self) -> Option<T> {
        self.refuse(self.text.len(), FaultKind::UnexpectedEnd)
    }

    #[cold]
    fn refuse<T>(&mut self, at: usize, kind: FaultKind) -> Option<T> {
        self.fault = Fault { at, kind };
        None
    }

    /// Finds the equal names in the object at `object` and marks all but the last of each.
    fn compare_names(&mut self, object: u32) {
        let members = self.slots[object as usize].len as usize;
        let mut few = [(0, 0); PAIRWISE];
        let mut many = Vec::new();
        let names = if members <= PAIRWISE {
            &mut few[..members]
        } else {
            many.resize(members, (0, 0));
            &mut many[..]
        };
        let mut name = object + 1;
        for place in names.iter_mut() {
            *place = (self.slots[name as usize].len, name);
            name = self.slots[name as usize + 1].next;
        }
        if members <= PAIRWISE {
            for (place, later) in names.iter().enumerate() {
                for earlier in &names[..place] {
                    if earlier.0 == later.0 && self.name_at(earlier.1) == self.name_at(later.1) {
                        self.shadow(object, earlier.1);
                    }
                }
            }
        } else {
            names.sort_unstable_by(|a, b| {
                let names = || self.name_at(a.1).cmp(&self.name_at(b.1));
                a.0.cmp(&b.0).then_with(names).then(a.1.cmp(&b.1))
            });
            for pair in names.windows(2) {
                if pair[0].0 == pair[1].0 && self.name_at(pair[0].1) == self.name_at(pair[1].1) {
                    self.shadow(object, pair[0].1);
                }
            }
        }
    }

    fn shadow(&mut self, object: u32, name: u32) {
        self.has_duplicates = true;
        self.slots[object as usize].flags |= DUPLICATES;
        self.slots[name as usize].flags |= SHADOWED;
    }

    fn name_at(&self, name: u32) -> Cow<'_, str> {
        let slot = self.slots[name as usize];
        let written = &self.whole[slot.start as usize + 1..slot.end as usize - 1];
        if slot.has(ESCAPED) { strings::unescape(written) } else { Cow::Borrowed(written) }
    }
}

/// The part of a fingerprint that is kept.
#[inline]
fn fold(fingerprint: u64) -> u32 {
    (fingerprint >> 32) as u32
}
