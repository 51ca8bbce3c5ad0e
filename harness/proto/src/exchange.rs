//! Who answered what: pairs answers with requests, in both directions, in bounded memory.
//!
//! [`Pairs`] does it in a stream, for observers. [`Exchange`] is one script's part of a recording with everything
//! looked up, for judges: they ask for the answer to *their* request, never for "the next frame".

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{Contract, Method, Side};
use crate::json::{Node, Tape};
use crate::machine::{Exited, LinkId, Micros};
use crate::rpc::{self, Envelope, Id, Malformed, Outcome};
use crate::transcript::{self, Event, Frame, Kind, Record, Told, Wait};
use crate::verdict::{Sight, Why};

/// How many requests of one side are remembered while they wait for an answer; the oldest are forgotten first.
const OPEN_MOST: usize = 1 << 16;

/// A request that waits for its answer.
#[derive(Clone, Debug)]
pub struct Pending<'c> {
    /// Its event.
    pub at: u64,
    /// When it was offered or read.
    pub t: Micros,
    /// Its method, if the contract knows it.
    pub method: Option<&'c Method>,
    /// Whether it is one of our fences.
    pub fence: bool,
}

/// Requests that wait for answers, by side.
#[derive(Debug, Default)]
pub struct Pairs<'c> {
    of_host: BTreeMap<i64, Pending<'c>>,
    of_guest: BTreeMap<i64, Pending<'c>>,
}

impl<'c> Pairs<'c> {
    fn of(&mut self, side: Side) -> &mut BTreeMap<i64, Pending<'c>> {
        match side {
            Side::Host => &mut self.of_host,
            Side::Guest => &mut self.of_guest,
        }
    }

    /// Takes in a request of `from`; `false` when one with this id already waits.
    pub fn asked(&mut self, from: Side, id: &Id<'_>, pending: Pending<'c>) -> bool {
        let Id::Integer(id) = id else { return true };
        let open = self.of(from);
        if open.len() >= OPEN_MOST {
            open.pop_first();
        }
        open.insert(*id, pending).is_none()
    }

    /// Takes in an answer of `from`; the request of the other side that it answers.
    pub fn answered(&mut self, from: Side, id: &Id<'_>) -> Option<Pending<'c>> {
        let Id::Integer(id) = id else { return None };
        self.of(from.opposite()).remove(id)
    }
}

/// One event of a script, with what its frame says.
#[derive(Debug)]
pub struct Entry<'a> {
    /// Its place in the transcript.
    pub at: u64,
    /// The event.
    pub event: &'a Event<'a>,
    /// What the frame says, if it is one that is JSON.
    pub frame: Option<Said<'a>>,
}

/// What a frame says.
#[derive(Debug)]
pub struct Said<'a> {
    /// The whole JSON text.
    pub root: Node<'a>,
    /// The envelope, or why it is none.
    pub envelope: Result<Envelope<'a>, Malformed>,
}

/// The answer to a frame of ours.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'e> {
    /// The event.
    pub at: u64,
    /// When it was read.
    pub t: Micros,
    /// What it says.
    pub outcome: Outcome<'e>,
}

/// One script's part of a recording.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The contract in force.
    pub contract: &'a Contract,
    /// The side under test.
    pub target: Side,
    /// What the target declared.
    pub declared: &'a BTreeSet<String>,
    /// Why the script could not be played to its end.
    pub cut: Option<&'a str>,
    entries: Vec<Entry<'a>>,
}

/// Reads the lines of one script's part of a transcript, the first of which is event `first`, and shows it to `judge`.
///
/// A line that is no event is passed over: the recording's own faults are found where it is read.
pub fn read<R>(
    lines: &[u8],
    first: u64,
    contract: &Contract,
    target: Side,
    declared: &BTreeSet<String>,
    judge: impl FnOnce(&Exchange<'_>) -> R,
) -> R {
    let events: Vec<Event<'_>> = lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| match transcript::read(line) {
            Ok(Record::Event(event)) => Some(event),
            _ => None,
        })
        .collect();
    let texts: Vec<Option<Cow<'_, [u8]>>> = events
        .iter()
        .map(|event| match &event.kind {
            Kind::Frame(frame) => Some(frame.payload.bytes()),
            Kind::Told { json, .. } => Some(Cow::Borrowed(json.as_bytes())),
            _ => None,
        })
        .collect();
    let tapes: Vec<Option<Tape<'_>>> =
        texts.iter().map(|text| text.as_ref().and_then(|text| Tape::scan(text).ok())).collect();
    let entries = events
        .iter()
        .zip(&tapes)
        .zip(first..)
        .map(|((event, tape), at)| {
            let frame =
                tape.as_ref().map(|tape| Said { root: tape.root(), envelope: rpc::classify(tape.root()) });
            Entry { at, event, frame }
        })
        .collect();
    let cut = events.iter().rev().find_map(|event| match &event.kind {
        Kind::Ended { cut, .. } => Some(cut.as_deref()),
        _ => None,
    });
    let cut = cut.unwrap_or(Some("its recording ends in the middle"));
    judge(&Exchange { contract, target, declared, cut, entries })
}

impl<'a> Exchange<'a> {
    /// Every event, in order.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The place of the last event.
    pub fn last(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.at)
    }

    /// The frame of ours that the script calls `label`; the last one, if there are several.
    pub fn sent(&self, label: &str) -> Option<&Entry<'a>> {
        self.entries.iter().rev().find(|entry| {
            matches!(&entry.event.kind,
            Kind::Frame(Frame { from, label: Some(it), .. }) if *from != self.target && it == label)
        })
    }

    /// When the last byte of the frame called `label` was accepted.
    pub fn wrote(&self, label: &str) -> Option<Micros> {
        let late = self.entries.iter().rev().find_map(|entry| match &entry.event.kind {
            Kind::Wrote { label: Some(it), .. } if it == label => Some(entry.event.t),
            _ => None,
        });
        late.or_else(|| self.sent(label).map(|entry| entry.event.t))
    }

    /// The frames of the target, in order, that are JSON.
    pub fn from_target(&self) -> impl Iterator<Item = (&Entry<'a>, &Said<'a>)> {
        self.entries.iter().filter_map(|entry| match (&entry.event.kind, &entry.frame) {
            (Kind::Frame(frame), Some(said)) if frame.from == self.target => Some((entry, said)),
            _ => None,
        })
    }

    /// The target's answer to the frame called `label`.
    pub fn answer_to(&self, label: &str) -> Option<Answer<'_>> {
        let sent = self.sent(label)?;
        let id = rpc::id_of(sent.frame.as_ref()?.root)?;
        let of_link = self.from_target().filter(|(entry, _)| entry.event.link == sent.event.link);
        of_link
            .filter_map(answer)
            .find(|(answer, its)| answer.at > sent.at && *its == id)
            .map(|(answer, _)| answer)
    }

    /// All answers of the target, in order.
    pub fn responses(&self) -> impl Iterator<Item = (Answer<'_>, Id<'_>)> {
        self.from_target().filter_map(answer)
    }

    /// Where the answer to `label` was waited for as long as `millis`, and did not come.
    pub fn not_within(&self, label: &str, millis: u64) -> Option<u64> {
        let (at, within) = self.timed_out(Wait::Answer, Some(label))?;
        // A shorter wait, for what is known to be missing, says nothing about the bound.
        (within >= millis.saturating_mul(1_000)).then_some(at)
    }

    /// A wait of ours that ended without what it was for.
    pub fn timed_out(&self, wait: Wait, label: Option<&str>) -> Option<(u64, Micros)> {
        self.entries.iter().find_map(|entry| match &entry.event.kind {
            Kind::TimedOut { wait: it, label: its, within }
                if *it == wait && (label.is_none() || its.as_deref() == label) =>
            {
                Some((entry.at, *within))
            }
            _ => None,
        })
    }

    /// How the process ended, if that is in this part, and whether we had to kill it.
    pub fn exited(&self) -> Option<(u64, Exited, bool)> {
        let killed = self.entries.iter().any(|entry| matches!(entry.event.kind, Kind::Killed));
        self.entries.iter().find_map(|entry| match entry.event.kind {
            Kind::Exited(exited) => Some((entry.at, exited, killed)),
            _ => None,
        })
    }

    /// The first event for which `test` says so.
    pub fn find(&self, test: impl Fn(&Kind<'a>) -> bool) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| test(&entry.event.kind))
    }

    /// What is recorded around the host, of this kind, in order, with what its JSON says.
    pub fn told(&self, what: Told) -> impl Iterator<Item = (&Entry<'a>, Node<'a>)> {
        self.entries.iter().filter_map(move |entry| match (&entry.event.kind, &entry.frame) {
            (Kind::Told { what: it, .. }, Some(said)) if *it == what => Some((entry, said.root)),
            _ => None,
        })
    }

    /// What came of the ask called `label`; the last time, if it was asked several times.
    pub fn outcome(&self, label: &str) -> Option<(u64, Node<'a>)> {
        let its = |entry: &Entry<'a>| matches!(&entry.event.kind, Kind::Told { label: Some(it), .. } if it == label);
        self.told(Told::Outcome).filter(|(entry, _)| its(entry)).last().map(|(entry, node)| (entry.at, node))
    }

    /// The links on which the host launched the guest of this name, in order.
    pub fn launches(&self, name: &str) -> Vec<LinkId> {
        let its = |node: Node<'a>| {
            node.get("as").and_then(|it| it.as_str()).as_deref() == Some(name)
                && node.get("spawned").and_then(|it| it.as_bool()) != Some(true)
        };
        self.told(Told::Launched).filter(|(_, node)| its(*node)).map(|(entry, _)| entry.event.link).collect()
    }

    /// The requests and notifications of the target for this method, in order, with their params.
    pub fn asked<'x>(&'x self, method: &'x str) -> impl Iterator<Item = (&'x Entry<'a>, Option<Node<'a>>)> {
        self.from_target().filter_map(move |(entry, said)| match &said.envelope {
            Ok(envelope) if envelope.method() == Some(method) => Some((entry, envelope.params())),
            _ => None,
        })
    }

    /// What a judge says of a frame of ours that should have had an effect and had none: what `actual` says, unless the
    /// script ended early or never came so far.
    pub fn nothing_came(&self, label: &str, actual: &str) -> Sight {
        match (self.cut, self.sent(label)) {
            (Some(cut), _) => Sight::Undecided(Why::CutShort(cut.to_owned())),
            (None, None) => {
                Sight::Undecided(Why::NotProvoked(Cow::Owned(format!("nothing here is called {label:?}"))))
            }
            (None, Some(sent)) => Sight::SawOther { at: sent.at, actual: actual.to_owned() },
        }
    }
}

/// The answer that a frame of the target is, and the id under which it stands.
fn answer<'x>((entry, said): (&'x Entry<'_>, &'x Said<'_>)) -> Option<(Answer<'x>, Id<'x>)> {
    match &said.envelope {
        Ok(Envelope::Response { id, outcome }) => {
            Some((Answer { at: entry.at, t: entry.event.t, outcome: *outcome }, id.clone()))
        }
        _ => None,
    }
}

/// What a response says, in one short line.
pub fn summary(envelope: &Envelope<'_>) -> String {
    match envelope {
        Envelope::Response { outcome, .. } => outcome.summary(),
        _ => "no answer".to_owned(),
    }
}

impl Outcome<'_> {
    /// The outcome in one short line.
    pub fn summary(&self) -> String {
        match self {
            Outcome::Result(result) => format!("the result {}", short(result.raw())),
            Outcome::Error { code, body } => {
                let reason = body.pointer("/data/reason").or_else(|| body.get("message"));
                match reason.and_then(|reason| reason.as_str()) {
                    Some(reason) => format!("the error {code} ({})", short(&reason)),
                    None => format!("the error {code}"),
                }
            }
        }
    }
}

impl Answer<'_> {
    /// The answer in one short line.
    pub fn summary(&self) -> String {
        self.outcome.summary()
    }

    /// The code of an error.
    pub fn code(&self) -> Option<i64> {
        match self.outcome {
            Outcome::Error { code, .. } => Some(code),
            Outcome::Result(_) => None,
        }
    }

    /// The reason that an error names in its data.
    pub fn reason(&self) -> Option<Cow<'_, str>> {
        match self.outcome {
            Outcome::Error { body, .. } => body.pointer("/data/reason").and_then(|reason| reason.as_str()),
            Outcome::Result(_) => None,
        }
    }
}

/// A text short enough for one line of a report.
pub fn short(text: &str) -> String {
    const CHARS: usize = 80;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
