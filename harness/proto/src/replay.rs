//! What the target said in a recording, in a form in which two recordings of the same script can be compared.
//!
//! Frames are compared as JSON values: white space, escapes and the order of members do not count, and neither do the
//! ids that the target chose, what an error says to people, and the members that the contract calls volatile
//! ([`Method::volatile`](crate::contract::Method)). Between answers and what comes by itself there is no order that a
//! target must keep, so an answer stands with its question, in the order in which these were asked, and everything else
//! behind them, by method, in the order in which it came.

use std::collections::BTreeMap;

use crate::contract::{Contract, Method, Side};
use crate::json::{Node, Tape, quoted};
use crate::rpc::{self, Envelope, Id};
use crate::transcript::{Event, Frame, Kind};

/// What stands in the place of what does not count.
pub const VOLATILE: &str = "\"…\"";

/// What a line begins with that tells how the target ended; frames begin otherwise.
const END: &str = "· exited: ";

/// The lines of one half: what was asked of the target, and what it said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Half {
    /// One frame a line: `→ …` names a frame of ours, `← …` is one of the target's in canonical form.
    pub lines: Vec<String>,
}

impl Half {
    fn tells_end(&self) -> bool {
        self.lines.last().is_some_and(|line| line.starts_with(END))
    }

    /// Leaves out how the target ended if `other` does not tell: a log of others does not.
    pub fn no_more_than(&mut self, other: &Self) {
        if self.tells_end() && !other.tells_end() {
            self.lines.pop();
        }
    }
}

/// Gathers one half, event by event.
#[derive(Debug)]
pub struct Gather<'c> {
    contract: &'c Contract,
    /// Says what is volatile where `contract` does not: a published document declares nothing of the kind.
    own: &'c Contract,
    /// Each frame of ours and the answers to it.
    asked: Vec<(String, Vec<String>)>,
    /// Where the question with an id stands.
    by_id: BTreeMap<i64, (usize, Option<&'c Method>)>,
    /// Everything else, by what it is.
    by_itself: BTreeMap<String, Vec<String>>,
    end: Option<String>,
}

impl<'c> Gather<'c> {
    /// Of a target whose contract this is; `own` is that of the suite.
    pub fn new(contract: &'c Contract, own: &'c Contract) -> Self {
        Self {
            contract,
            own,
            asked: Vec::new(),
            by_id: BTreeMap::new(),
            by_itself: BTreeMap::new(),
            end: None,
        }
    }

    /// The next event.
    pub fn event(&mut self, event: &Event<'_>) {
        match &event.kind {
            Kind::Frame(frame) if frame.from == Side::Host => self.ours(frame),
            Kind::Frame(frame) => self.theirs(frame),
            Kind::Oversize { from: Side::Guest, .. } => self.other("a line beyond the limit", String::new()),
            Kind::Tail { from: Side::Guest, payload } => {
                let text = quoted(&String::from_utf8_lossy(&payload.bytes()));
                self.other("text without a line feed", text);
            }
            Kind::Exited(exited) => self.end = Some(format!("{exited:?}")),
            _ => {}
        }
    }

    /// The half.
    pub fn finish(self) -> Half {
        let mut lines = Vec::new();
        for (ours, answers) in self.asked {
            lines.push(format!("→ {ours}"));
            lines.extend(answers.into_iter().map(|answer| format!("← {answer}")));
        }
        for said in self.by_itself.into_values().flatten() {
            lines.push(format!("← {said}"));
        }
        lines.extend(self.end.map(|end| format!("{END}{end}")));
        Half { lines }
    }

    fn ours(&mut self, frame: &Frame<'_>) {
        let bytes = frame.payload.bytes();
        let tape = Tape::scan(&bytes).ok();
        let place = self.asked.len();
        let what = match tape.as_ref().map(|tape| rpc::classify(tape.root())) {
            Some(Ok(Envelope::Request { id, method, .. })) => {
                if let Id::Integer(id) = id {
                    self.by_id.insert(id, (place, self.method(&method)));
                }
                format!("{method}, id {id}")
            }
            Some(Ok(Envelope::Notification { method, .. })) => method.into_owned(),
            // Under which id we answer is the target's to say.
            Some(Ok(Envelope::Response { .. })) => return,
            _ => frame.label.as_deref().unwrap_or("what is no frame").to_owned(),
        };
        self.asked.push((what, Vec::new()));
    }

    fn theirs(&mut self, frame: &Frame<'_>) {
        let bytes = frame.payload.bytes();
        let Ok(tape) = Tape::scan(&bytes) else {
            return self.other("what is no JSON", quoted(&String::from_utf8_lossy(&bytes)));
        };
        let root = tape.root();
        match rpc::classify(root) {
            Ok(Envelope::Response { id: Id::Integer(id), .. }) if self.by_id.contains_key(&id) => {
                let (place, method) = self.by_id[&id];
                let text = said(root, method, false, &[]);
                self.asked[place].1.push(text);
            }
            Ok(Envelope::Response { .. }) => {
                let text = said(root, None, false, &[]);
                self.other("an answer to nothing", text);
            }
            Ok(Envelope::Request { method, .. } | Envelope::Notification { method, .. }) => {
                let text = said(root, self.method(&method), true, &[]);
                self.other(&method, text);
            }
            Err(_) => {
                let text = said(root, None, false, &[]);
                self.other("what is no frame", text);
            }
        }
    }

    fn method(&self, name: &str) -> Option<&'c Method> {
        volatile_of(self.contract, self.own, name)
    }

    fn other(&mut self, what: &str, text: String) {
        self.by_itself.entry(what.to_owned()).or_default().push(if text.is_empty() {
            what.to_owned()
        } else {
            text
        });
    }
}

/// The method of this name in `contract`, or in `own` where that does not say what is volatile in it.
pub fn volatile_of<'c>(contract: &'c Contract, own: &'c Contract, name: &str) -> Option<&'c Method> {
    let declares = |method: &&Method| !method.volatile.is_empty();
    contract.method(name).filter(declares).or_else(|| own.method(name))
}

/// A frame in canonical form, without what does not count; neither does what is `omitted`, and the id of its `own`.
pub fn said(root: Node<'_>, method: Option<&Method>, own: bool, omitted: &[Node<'_>]) -> String {
    let volatile = method.into_iter().flat_map(|method| method.volatile.iter().map(String::as_str));
    let places = volatile.chain(["/error/message"]).chain(own.then_some("/id"));
    let places = places.filter_map(|place| root.pointer(place));
    let omitted: Vec<Node<'_>> = places.chain(omitted.iter().copied()).collect();
    root.canonical_without(&omitted, VOLATILE)
}
