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
        at: 0,
        slots: spare.0,
        open: NONE,
        depth: 0,
        depth_max: 0,
        names_seen: [0; SKETCHED],
        has_duplicates: false,
        has_lone_surrogate: false,
    };
    match scanner.text() {
        Ok(()) => Ok(Tape {
            text,
            slots: Slots(scanner.slots),
            depth: scanner.depth_max,
            has_duplicates: scanner.has_duplicates,
            has_lone_surrogate: scanner.has_lone_surrogate,
        }),
        Err(fault) => Err((fault, Slots(scanner.slots))),
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
    at: usize,
    slots: Vec<Slot>,
    /// The innermost open container.
    open: u32,
    depth: u32,
    depth_max: u32,
    /// Per level a set of 64 bits, one set by each name: while none is set twice, no two names are equal.
    names_seen: [u64; SKETCHED],
    has_duplicates: bool,
    has_lone_surrogate: bool,
}

impl Scanner<'_> {
    fn text(&mut self) -> Result<(), Fault> {
        self.skip_space();
        if self.at == self.text.len() {
            return self.fault(FaultKind::Empty);
        }
        loop {
            if !self.value()? {
                continue;
            }
            while self.open != NONE {
                if self.more()? {
                    break;
                }
            }
            if self.open == NONE {
                break;
            }
        }
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { self.fault(FaultKind::TrailingText) }
    }

    /// Reads a scalar, an empty container, or up to the first value in a container. `true`: the value is complete.
    #[inline]
    fn value(&mut self) -> Result<bool, Fault> {
        self.skip_space();
        match self.text.get(self.at) {
            Some(b'"') => {
                let start = self.at;
                let flags = self.string()?;
                self.push(SlotKind::String, start, flags);
            }
            Some(b'{') => return self.begin(SlotKind::Object),
            Some(b'[') => return self.begin(SlotKind::Array),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal(SlotKind::Bool, b"true")?,
            Some(b'f') => self.literal(SlotKind::Bool, b"false")?,
            Some(b'n') => self.literal(SlotKind::Null, b"null")?,
            _ => return self.unexpected(),
        }
        Ok(true)
    }

    /// Opens a container and goes on to its first value, or closes it at once.
    #[inline]
    fn begin(&mut self, kind: SlotKind) -> Result<bool, Fault> {
        let start = self.at;
        self.at += 1;
        let parent = std::mem::replace(&mut self.open, offset(self.slots.len()));
        self.push(kind, start, 0);
        let level = self.depth as usize;
        self.depth += 1;
        self.depth_max = self.depth_max.max(self.depth);
        let container = &mut self.slots[self.open as usize];
        container.next = parent;
        if let Some(seen) = self.names_seen.get_mut(level) {
            *seen = 0;
        } else {
            container.flags = SUSPECT;
        }
        self.skip_space();
        let (object, close) = (kind == SlotKind::Object, closing(kind));
        if self.text.get(self.at) == Some(&close) {
            self.end();
            return Ok(true);
        }
        self.slots[self.open as usize].len = 1;
        if object {
            self.name()?;
        }
        Ok(false)
    }

    /// Reads what follows a value in the open container: a comma, and then another value comes (`true`), or the end
    /// of the container, which is then itself a value that something follows (`false`).
    #[inline]
    fn more(&mut self) -> Result<bool, Fault> {
        self.skip_space();
        let container = &mut self.slots[self.open as usize];
        match self.text.get(self.at) {
            Some(b',') => {
                self.at += 1;
                container.len += 1;
                if container.kind == SlotKind::Object {
                    self.skip_space();
                    self.name()?;
                }
                Ok(true)
            }
            Some(byte) if *byte == closing(container.kind) => {
                self.end();
                Ok(false)
            }
            _ => self.unexpected(),
        }
    }

    /// Closes the open container at the bracket that stands here.
    #[inline]
    fn end(&mut self) {
        self.at += 1;
        let next = offset(self.slots.len());
        let at = self.open;
        let container = &mut self.slots[at as usize];
        self.open = std::mem::replace(&mut container.next, next);
        container.end = offset(self.at);
        self.depth -= 1;
        if container.has(SUSPECT) {
            container.flags = 0;
            if container.kind == SlotKind::Object && container.len > 1 {
                self.compare_names(at);
            }
        }
    }

    /// Reads a member name and the colon after it.
    #[inline]
    fn name(&mut self) -> Result<(), Fault> {
        if self.text.get(self.at) != Some(&b'"') {
            return self.unexpected();
        }
        let start = self.at;
        let mut fingerprint = 0;
        self.at += 1;
        let mut flags = 0;
        loop {
            let word = Word::load(self.text, self.at);
            let plain = word.plain();
            fingerprint = word.mix(fingerprint, plain);
            self.at += plain;
            if plain < 8 {
                break;
            }
        }
        if self.text.get(self.at) == Some(&b'"') {
            self.at += 1;
        } else {
            self.at = start;
            flags = self.string()?;
            fingerprint = strings::fingerprint(&strings::unescape(&self.whole[start + 1..self.at - 1]));
        }
        self.push(SlotKind::Name, start, flags);
        if let Some(name) = self.slots.last_mut() {
            name.len = fold(fingerprint);
        }
        if let Some(seen) = self.names_seen.get_mut(self.depth as usize - 1) {
            let bit = 1 << (fingerprint >> 58);
            if *seen & bit != 0 {
                self.slots[self.open as usize].flags = SUSPECT;
            }
            *seen |= bit;
        }
        if self.text.get(self.at) != Some(&b':') {
            self.skip_space();
            if self.text.get(self.at) != Some(&b':') {
                return self.unexpected();
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a string, and says what is to be known of it: [`ESCAPED`], [`LONE_SURROGATE`].
    #[inline]
    fn string(&mut self) -> Result<u8, Fault> {
        self.at += 1;
        let mut flags = 0;
        loop {
            self.skip_plain();
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(flags);
                }
                Some(b'\\') => flags |= self.escape()?,
                Some(byte) => return self.fault(FaultKind::ControlInString(*byte)),
                None => return self.fault(FaultKind::UnexpectedEnd),
            }
        }
    }

    /// Goes to the next quote, backslash or control character.
    #[inline]
    fn skip_plain(&mut self) {
        for _ in 0..4 {
            let plain = Word::load(self.text, self.at).plain();
            self.at += plain;
            if plain < 8 {
                return;
            }
        }
        // It is long: larger steps, which the compiler turns into vector instructions.
        while let Some(block) = self.text.get(self.at..).and_then(<[u8]>::first_chunk::<32>) {
            let special =
                |byte: &u8| u8::from(*byte < 0x20) | u8::from(*byte == b'"') | u8::from(*byte == b'\\');
            if block.iter().fold(0, |any, byte| any | special(byte)) != 0 {
                break;
            }
            self.at += 32;
        }
        loop {
            let plain = Word::load(self.text, self.at).plain();
            self.at += plain;
            if plain < 8 {
                return;
            }
        }
    }

    /// Reads an escape, both halves of a surrogate pair at once.
    fn escape(&mut self) -> Result<u8, Fault> {
        let rest = &self.text[self.at..];
        match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(ESCAPED)
            }
            Some(b'u') => {
                let Some(unit) = strings::unit(rest) else {
                    let digits = rest[2..].iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
                    return if rest.len() == 2 + digits {
                        self.cut_short()
                    } else {
                        self.fault(FaultKind::BadEscape)
                    };
                };
                let paired = strings::is_high(unit)
                    && rest.get(6..).and_then(strings::unit).is_some_and(strings::is_low);
                self.at += if paired { 12 } else { 6 };
                if !paired && (strings::is_high(unit) || strings::is_low(unit)) {
                    self.has_lone_surrogate = true;
                    return Ok(ESCAPED | LONE_SURROGATE);
                }
                Ok(ESCAPED)
            }
            Some(_) => self.fault(FaultKind::BadEscape),
            None => self.cut_short(),
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let mut flags = 0;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        let first = self.at;
        self.digits()?;
        if self.text[first] == b'0' && self.at > first + 1 {
            self.at = first + 1;
            return self.fault(FaultKind::BadNumber);
        }
        if self.text.get(self.at) == Some(&b'.') {
            flags = FRACTION_OR_EXPONENT;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            flags = FRACTION_OR_EXPONENT;
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        self.push(SlotKind::Number, start, flags);
        Ok(())
    }

    /// Reads one digit or more.
    #[inline]
    fn digits(&mut self) -> Result<(), Fault> {
        match self.text.get(self.at) {
            Some(b'0'..=b'9') => {}
            Some(_) => return self.fault(FaultKind::BadNumber),
            None => return self.fault(FaultKind::UnexpectedEnd),
        }
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, kind: SlotKind, word: &[u8]) -> Result<(), Fault> {
        let start = self.at;
        let rest = &self.text[start..];
        if rest.starts_with(word) {
            self.at += word.len();
            self.push(kind, start, 0);
            Ok(())
        } else if word.starts_with(rest) {
            self.cut_short()
        } else {
            self.fault(FaultKind::BadLiteral)
        }
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    #[inline]
    fn push(&mut self, kind: SlotKind, start: usize, flags: u8) {
        let next = offset(self.slots.len() + 1);
        self.slots.push(Slot { start: offset(start), end: offset(self.at), next, len: 0, kind, flags });
    }

    #[cold]
    fn unexpected<T>(&self) -> Result<T, Fault> {
        match self.text.get(self.at) {
            Some(byte) => self.fault(FaultKind::UnexpectedByte(*byte)),
            None => self.fault(FaultKind::UnexpectedEnd),
        }
    }

    #[cold]
    fn cut_short<T>(&self) -> Result<T, Fault> {
        Err(Fault { at: self.text.len(), kind: FaultKind::UnexpectedEnd })
    }

    #[cold]
    fn fault<T>(&self, kind: FaultKind) -> Result<T, Fault> {
        Err(Fault { at: self.at, kind })
    }

    /// Finds the equal names in the object at `object` and marks all but the last of each.
    fn compare_names(&mut self, object: u32) {
        let members = self.slots[object as usize].len as usize;
        let mut names: Vec<u32> = Vec::new();
        let mut few = [0; PAIRWISE];
        let names = if members <= PAIRWISE {
            &mut few[..members]
        } else {
            names.resize(members, 0);
            &mut names[..]
        };
        let mut name = object + 1;
        for place in names.iter_mut() {
            *place = name;
            name = self.slots[name as usize + 1].next;
        }
        if members <= PAIRWISE {
            for later in 1..members {
                for earlier in 0..later {
                    if self.slots[names[earlier] as usize].len == self.slots[names[later] as usize].len
                        && self.name_at(names[earlier]) == self.name_at(names[later])
                    {
                        self.shadow(object, names[earlier]);
                    }
                }
            }
        } else {
            let slots = &self.slots;
            names.sort_unstable_by(|&a, &b| {
                let fingerprints = slots[a as usize].len.cmp(&slots[b as usize].len);
                fingerprints.then_with(|| self.name_at(a).cmp(&self.name_at(b))).then(a.cmp(&b))
            });
            for place in 1..members {
                if self.name_at(names[place - 1]) == self.name_at(names[place]) {
                    self.shadow(object, names[place - 1]);
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
        strings::unescape(&self.whole[slot.start as usize + 1..slot.end as usize - 1])
    }
}

/// The byte that closes a container of this kind.
#[inline]
fn closing(kind: SlotKind) -> u8 {
    if kind == SlotKind::Object { b'}' } else { b']' }
}

/// The part of a fingerprint that is kept.
#[inline]
fn fold(fingerprint: u64) -> u32 {
    (fingerprint >> 32) as u32
}
