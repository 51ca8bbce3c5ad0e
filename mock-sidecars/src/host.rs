//! The reference host as a process, flawed or not: a filter on what passes between it and its guests.
//!
//! A flaw in what a host decides changes its manners; one that shows in a frame is done here, to the frame.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use sidecert_proto::contract::Contract;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_proto::script::{Captures, Pattern, Template};
use sidecert_proto::wire::{Deframer, Line};

use crate::reasonix::host::{Manners, ReferenceHost};
use crate::{Flaw, Misdeed, Trigger, id_of, is_answer, matches, method_of};

/// The longest line of a guest that a filter looks at, in bytes.
const LINE_BYTES_MAX: usize = 32 << 20;

/// How much of a line whose end has not come is held back from the host, in bytes.
const LINE_BYTES_HELD: usize = 48 << 10;

/// The reference host, and its flaw.
pub struct MockHost<'c> {
    host: ReferenceHost<'c>,
    flaw: Option<&'static Flaw>,
    pattern: Pattern,
    fired: bool,
    links: BTreeMap<LinkId, Guest>,
    actions: VecDeque<Action>,
}

/// What the filter knows of a guest.
struct Guest {
    deframer: Deframer,
    /// The host has heard the beginning of the line that is coming.
    begun: bool,
    /// The host hears nothing more of it.
    deaf: bool,
    /// The methods of its requests, by their ids as they are written.
    asked: BTreeMap<String, String>,
    /// How many bytes of the host's were not written, since a misdeed made a line shorter: it must not wait for them.
    unwritten: usize,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            deframer: Deframer::new(LINE_BYTES_MAX),
            begun: false,
            deaf: false,
            asked: BTreeMap::new(),
            unwritten: 0,
        }
    }
}

impl<'c> MockHost<'c> {
    /// A host of `contract` with these manners, which a flaw may change.
    pub fn new(contract: &'c Contract, mut manners: Manners, flaw: Option<&'static Flaw>) -> Self {
        let mut fired = false;
        if let Some(Flaw { does: Misdeed::Behaves(change), .. }) = flaw {
            change(&mut manners);
            // Whether it shows is up to what it is asked for.
            fired = true;
        }
        Self {
            host: ReferenceHost::new(contract, manners),
            flaw,
            pattern: flaw.map_or(Pattern::Absent, |flaw| flaw.at.pattern()),
            fired,
            links: BTreeMap::new(),
            actions: VecDeque::new(),
        }
    }

    /// Whether its flaw has shown.
    pub fn fired(&self) -> bool {
        self.fired
    }

    /// What a guest says, line by line; those that the flaw lets the host hear.
    fn heard(&mut self, link: LinkId, chunk: &[u8], now: Micros) {
        let mut chunk = chunk.to_vec();
        match self.flaw.map(|flaw| flaw.does) {
            Some(Misdeed::ByReads) if chunk.last() != Some(&b'\n') => {
                self.fired = true;
                chunk.push(b'\n');
            }
            Some(Misdeed::EndsLinesAt(mark)) => {
                let text = String::from_utf8_lossy(&chunk);
                self.fired |= text.contains(mark);
                chunk = if text.contains(mark) { text.replace(mark, "\n").into_bytes() } else { chunk };
            }
            _ => {}
        }
        let mut kept = Vec::new();
        let guest = self.links.entry(link).or_default();
        let mut begun = std::mem::take(&mut guest.begun);
        let mut deframer = std::mem::replace(&mut guest.deframer, Deframer::new(0));
        let mut lines = deframer.push(&chunk);
        while let Some(line) = lines.next() {
            let Line::Whole(line) = line else { continue };
            if let Some(method) = method_of(line) {
                self.links.entry(link).or_default().asked.insert(id_of(line), method);
            }
            // Of a line whose beginning the host has heard it hears the rest.
            if std::mem::take(&mut begun) || !self.drops(link, line) {
                kept.extend_from_slice(&self.as_heard(line));
                kept.push(b'\n');
            }
        }
        // A line that has become long is heard as it comes, so that its end need not come.
        let tail = deframer.tail();
        if tail.len() > LINE_BYTES_HELD && !matches!(self.flaw, Some(Flaw { does: Misdeed::Patient, .. })) {
            kept.extend_from_slice(tail);
            (deframer, begun) = (Deframer::new(LINE_BYTES_MAX), true);
        } else if !tail.is_empty() && matches!(self.flaw, Some(Flaw { does: Misdeed::Patient, .. })) {
            self.fired = true;
        }
        let guest = self.links.entry(link).or_default();
        (guest.deframer, guest.begun) = (deframer, begun);
        if !kept.is_empty() && !guest.deaf {
            self.host.handle(link, Input::Bytes(&kept), now);
        }
    }

    /// Whether the host does not hear this line; what it says instead or as well is on its way.
    fn drops(&mut self, link: LinkId, line: &[u8]) -> bool {
        let Some(flaw) = self.flaw else { return false };
        let mut captures = Captures::new();
        let hit = match flaw.at {
            Trigger::Receives(_) => matches(&self.pattern, line, &mut captures),
            Trigger::Reads(text) => line.windows(text.len()).any(|window| window == text.as_bytes()),
            Trigger::Blank => line.iter().all(u8::is_ascii_whitespace),
            _ => false,
        };
        if !hit {
            return false;
        }
        self.fired = true;
        captures.entry("id".to_owned()).or_insert_with(|| id_of(line));
        match flaw.does {
            Misdeed::Silence => true,
            Misdeed::Deaf => {
                self.links.entry(link).or_default().deaf = true;
                true
            }
            Misdeed::Instead(template) => {
                self.say(link, template, &captures);
                true
            }
            Misdeed::Also(template) | Misdeed::First(template) => {
                self.say(link, template, &captures);
                false
            }
            Misdeed::Exit(code) => {
                self.actions.push_back(Action::Exit(code));
                true
            }
            _ => false,
        }
    }

    /// A line as the host hears it.
    fn as_heard<'l>(&mut self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let Some(Flaw { at: Trigger::Reads(find), does: Misdeed::Edit(from, to), .. }) = self.flaw else {
            return Cow::Borrowed(line);
        };
        let text = String::from_utf8_lossy(line);
        if !text.contains(find) || !text.contains(from) {
            return Cow::Borrowed(line);
        }
        self.fired = true;
        Cow::Owned(text.replacen(from, to, 1).into_bytes())
    }

    fn say(&mut self, link: LinkId, template: &str, captures: &Captures) {
        let (mut ids, mut next) = (BTreeMap::new(), 900_001);
        let text = Template::new(template).render(&mut ids, &mut next, captures);
        self.write(link, text.as_bytes());
    }

    fn write(&mut self, link: LinkId, line: &[u8]) {
        let mut bytes = line.to_vec();
        bytes.push(b'\n');
        self.actions.push_back(Action::Write { link, bytes: Bytes::from(bytes), after_drain: false });
    }

    /// What the host writes to a guest, line by line.
    fn said(&mut self, link: LinkId, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            self.line(link, line);
        }
    }

    fn line(&mut self, link: LinkId, line: &[u8]) {
        let Some(flaw) = self.flaw else { return self.write(link, line) };
        let mut captures = Captures::new();
        let answers = |guest: Option<&Guest>, method: &str| {
            is_answer(line)
                && guest.and_then(|guest| guest.asked.get(&id_of(line))).is_some_and(|it| it == method)
        };
        let guest = self.links.get(&link);
        let hit = match flaw.at {
            Trigger::Answers(method) => answers(guest, method),
            Trigger::Refuses(method, _) => {
                answers(guest, method) && matches(&self.pattern, line, &mut captures)
            }
            Trigger::Asks(method) => method_of(line).as_deref() == Some(method),
            Trigger::Says(_) => matches(&self.pattern, line, &mut captures),
            _ => false,
        };
        if !hit {
            return self.write(link, line);
        }
        self.fired = true;
        captures.entry("id".to_owned()).or_insert_with(|| id_of(line));
        match flaw.does {
            Misdeed::Edit(find, replace) => {
                let edited = String::from_utf8_lossy(line).replacen(find, replace, 1);
                let lost = line.len().saturating_sub(edited.len());
                self.links.entry(link).or_default().unwritten += lost;
                self.write(link, edited.as_bytes());
            }
            Misdeed::Instead(template) | Misdeed::Reply(template) => self.say(link, template, &captures),
            Misdeed::Also(template) => {
                self.write(link, line);
                self.say(link, template, &captures);
            }
            Misdeed::First(template) => {
                self.say(link, template, &captures);
                self.write(link, line);
            }
            Misdeed::Twice => {
                self.write(link, line);
                self.write(link, line);
            }
            Misdeed::Silence => self.links.entry(link).or_default().unwritten += line.len() + 1,
            Misdeed::Overfill => {
                let overfull = vec![b'x'; LINE_BYTES_MAX / 2];
                self.write(link, &overfull);
            }
            _ => self.write(link, line),
        }
    }
}

impl Machine for MockHost<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        match input {
            Input::Bytes(chunk) if link != 0 && self.flaw.is_some() => self.heard(link, chunk, now),
            // A last line without a line feed is the host's to judge.
            Input::Eof if link != 0 && self.flaw.is_some() => {
                let tail = self.links.entry(link).or_default().deframer.tail().to_vec();
                if !tail.is_empty() {
                    self.host.handle(link, Input::Bytes(&tail), now);
                }
                self.host.handle(link, Input::Eof, now);
            }
            Input::Wrote(bytes) if link != 0 => {
                let unwritten = std::mem::take(&mut self.links.entry(link).or_default().unwritten);
                self.host.handle(link, Input::Wrote(bytes + unwritten), now);
            }
            input => self.host.handle(link, input, now),
        }
    }

    fn poll(&mut self, now: Micros) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            match self.host.poll(now)? {
                Action::Write { link, bytes, .. } if link != 0 && self.flaw.is_some() => {
                    self.said(link, &bytes);
                }
                action => return Some(action),
            }
        }
    }

    fn deadline(&self) -> Option<Micros> {
        self.host.deadline()
    }
}
