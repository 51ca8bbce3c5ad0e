//! Lines, envelopes and ids: who answers what, and nothing else on the link.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Pair, pair, pair_assuming};
use crate::contract::Side;
use crate::exchange::short;
use crate::json::{self, FaultKind, Kind};
use crate::judge::{Framed, Notes};
use crate::rpc::{self, Envelope, Id, Malformed, Outcome};

/// Every line of a side is one JSON object.
pub static ONLY_FRAMES: Pair = pair("only-frames", "host-only-frames");
/// Every frame of a side is a JSON-RPC 2.0 request, notification or response.
pub static ENVELOPES_WELL_FORMED: Pair = pair("envelopes-well-formed", "host-envelopes-well-formed");
/// A side answers no request twice.
pub static ANSWERED_ONCE: Pair = pair_assuming("answered-once", "host-answered-once");
/// A side answers nothing but requests that were sent.
pub static ANSWERS_ASKED: Pair = pair_assuming("answers-asked", "host-answers-asked");
/// An error of a side stands under an integer id, or under null.
pub static LEGAL_IDS_ECHOED: Pair = pair("legal-ids-echoed", "host-legal-ids-echoed");
/// A side asks under integer ids, each unlike those that still wait.
pub static IDS_ARE_INTEGERS: Pair = pair("ids-are-integers", "host-ids-are-integers");
/// The params of a side are objects.
pub static PARAMS_ARE_OBJECTS: Pair = pair("params-are-objects", "host-params-are-objects");
/// A side answers no notification.
pub static NOTIFICATIONS_UNANSWERED: Pair = pair("notifications-unanswered", "host-notifications-unanswered");

/// How many wrong frames of ours are remembered that may be answered; of older ones nothing is said.
const ODD_MOST: usize = 4096;

/// What was asked and what was not answered.
#[derive(Debug)]
pub(super) struct Answers {
    /// Who is watched.
    side: Side,
    /// From the least to the greatest id under which the other side has asked, with one more at the end.
    asked: Range<i64>,
    /// The ids of wrong frames of ours that may still be answered.
    odd: BTreeSet<i64>,
    notified: bool,
    /// How many requests of the other side have no answer yet.
    unanswered: u64,
    /// How many frames that are no requests it may still refuse under the id null.
    refusable: u64,
    /// A refusal under no id, and where: of a notification, unless a request turns out to have no answer of its own.
    refused: Option<(u64, String)>,
}

/// The watched side wrote a line that is no JSON.
pub(super) fn no_frame(side: Side, fault: json::Fault, notes: &mut Notes<'_>) {
    // Every reader passes over a blank line, so nobody is troubled by one.
    if fault.kind != FaultKind::Empty {
        notes.broken(ONLY_FRAMES.of(side), || format!("a line that is no JSON ({fault})"));
    }
}

impl Answers {
    /// Watches what `side` answers.
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            asked: 0..0,
            odd: BTreeSet::new(),
            notified: false,
            unanswered: 0,
            refusable: 0,
            refused: None,
        }
    }

    /// The other side wrote what is no JSON, on who knows how many lines: until the next silence it may be refused. Who
    /// reads it all the same may serve it under the id that stands in it, also behind the answers to later requests.
    pub(super) fn other_line(&mut self, id: Option<i64>) {
        self.refusable = u64::MAX / 2;
        if let Some(id) = id {
            self.asks(id, true);
        }
    }

    pub(super) fn other_frame(&mut self, frame: &Framed<'_, '_>, odd: bool) {
        if frame.root.raw().contains('\n') {
            // Read line by line it is no JSON.
            return self.other_line(None);
        }
        self.refusable = self.refusable.saturating_add(u64::from(odd));
        match &frame.envelope {
            Ok(Envelope::Notification { .. }) => self.notified = true,
            Ok(Envelope::Request { id: Id::Integer(id), .. }) => self.asks(*id, odd),
            Ok(Envelope::Request { .. } | Envelope::Response { .. }) => {}
            Err(_) => {
                if let Some(Id::Integer(id)) = rpc::id_of(frame.root) {
                    self.asks(id, true);
                }
            }
        }
    }

    fn asks(&mut self, id: i64, odd: bool) {
        if odd {
            if self.odd.len() == ODD_MOST {
                self.odd.pop_first();
            }
            self.odd.insert(id);
        } else {
            let (least, most) =
                if self.asked.is_empty() { (id, id) } else { (self.asked.start, self.asked.end - 1) };
            self.asked = least.min(id)..most.max(id).saturating_add(1);
            self.unanswered += 1;
        }
    }

    pub(super) fn frame(&mut self, at: u64, frame: &Framed<'_, '_>, notes: &mut Notes<'_>) {
        let is_object = frame.root.kind() == Kind::Object;
        notes.note(ONLY_FRAMES.of(self.side), is_object, || {
            format!("a line that is no object: {}", short(frame.root.raw()))
        });
        match &frame.envelope {
            Ok(_) => notes.kept(ENVELOPES_WELL_FORMED.of(self.side)),
            Err(Malformed::NotAnObject | Malformed::Params) => {}
            Err(fault) => notes.broken(ENVELOPES_WELL_FORMED.of(self.side), || fault.to_string()),
        }
        match &frame.envelope {
            Ok(Envelope::Response { id, outcome }) => self.answer(at, frame, id, outcome, notes),
            Ok(Envelope::Request { id, params, .. }) => {
                let whole = matches!(id, Id::Integer(_)) && !frame.id_in_use;
                notes.note(IDS_ARE_INTEGERS.of(self.side), whole, || match id {
                    Id::Integer(id) => format!("the id {id}, which is still in use"),
                    other => format!("the id {}", short(&other.to_string())),
                });
                params_are_object(self.side, params.map(|params| params.kind()), notes);
            }
            Ok(Envelope::Notification { params, .. }) => {
                params_are_object(self.side, params.map(|params| params.kind()), notes);
            }
            Err(Malformed::Params) => {
                notes.broken(PARAMS_ARE_OBJECTS.of(self.side), || "params that are no object".to_owned());
            }
            Err(Malformed::ResponseWithoutId) => self.refuses(at, "an answer without an id"),
            Err(_) => {}
        }
    }

    fn answer(
        &mut self,
        at: u64,
        frame: &Framed<'_, '_>,
        id: &Id<'_>,
        outcome: &Outcome<'_>,
        notes: &mut Notes<'_>,
    ) {
        if let Outcome::Error { .. } = outcome {
            notes.note(LEGAL_IDS_ECHOED.of(self.side), matches!(id, Id::Integer(_) | Id::Null), || {
                format!("an error under the id {}", short(&id.to_string()))
            });
        }
        if frame.answers.is_some() {
            self.unanswered = self.unanswered.saturating_sub(1);
            notes.kept(ANSWERED_ONCE.of(self.side));
            return notes.kept(ANSWERS_ASKED.of(self.side));
        }
        match id {
            Id::Integer(id) if self.odd.remove(id) => {}
            Id::Integer(id) if self.asked.contains(id) => {
                notes.broken(ANSWERED_ONCE.of(self.side), || format!("a second answer to the request {id}"));
            }
            Id::Integer(id) => {
                notes.broken(ANSWERS_ASKED.of(self.side), || {
                    format!("an answer to {id}, under which nothing was asked")
                });
            }
            other => {
                if matches!((other, outcome), (Id::Null, Outcome::Result(_))) && self.refusable == 0 {
                    notes.broken(ANSWERS_ASKED.of(self.side), || "a result under the id null".to_owned());
                }
                self.refuses(
                    at,
                    &format!("{} under the id {}", outcome.summary(), short(&other.to_string())),
                );
            }
        }
    }

    /// The watched side refused something under no id: a frame of ours that was none, a request, or a notification.
    fn refuses(&mut self, at: u64, what: &str) {
        if self.refusable > 0 {
            self.refusable -= 1;
        } else if self.notified {
            self.refused
                .get_or_insert_with(|| (at, format!("{what}, with nothing but notifications to answer")));
        }
    }

    /// Nothing more comes that belongs to what was said so far: whatever was refused can be told.
    pub(super) fn settled(&mut self, notes: &mut Notes<'_>) {
        self.refusable = 0;
        if let Some((at, actual)) = self.refused.take()
            && self.unanswered == 0
        {
            notes.broken_at(at, NOTIFICATIONS_UNANSWERED.of(self.side), || actual);
        }
    }

    /// The output of the watched side has ended.
    pub(super) fn over(&self, notes: &mut Notes<'_>) {
        if self.notified {
            notes.kept(NOTIFICATIONS_UNANSWERED.of(self.side));
        }
    }
}

fn params_are_object(side: Side, kind: Option<Kind>, notes: &mut Notes<'_>) {
    // Without params there is nothing that could be wrong with them.
    if let Some(kind) = kind {
        notes.note(PARAMS_ARE_OBJECTS.of(side), kind == Kind::Object, || {
            "params that are an array".to_owned()
        });
    }
}
