//! Watches one Reasonix connection and notes each rule that comes up.
//!
//! ```text
//!  opening --result of initialize--> barrier --initialized offered--> open
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::contract;
use crate::contract::{Contract, Method, MethodKind, Side};
use crate::exchange::short;
use crate::json::{Kind as JsonKind, Node};
use crate::judge::{Framed, Happened, Moment, Notes, Observer};
use crate::requirement::Rule;
use crate::rpc::{Envelope, Id, Malformed, Outcome};
use crate::schema::Validator;
use crate::transcript::{Kind, Wait};

/// Every frame of the host is an envelope, of a method that it may send, with members that fit, under a fresh id.
pub static HOST_CONFORMS: Rule = Rule { name: "host-conforms", binds: Side::Host, assumes: &[] };
/// The guest sends nothing but its answer until the host says `initialized`.
pub static SILENT_BEFORE_INITIALIZED: Rule =
    Rule { name: "silent-before-initialized", binds: Side::Guest, assumes: &[&HOST_CONFORMS] };
/// The guest answers no notification.
pub static NOTIFICATIONS_UNANSWERED: Rule =
    Rule { name: "notifications-unanswered", binds: Side::Guest, assumes: &[] };
/// Params and results of the guest fit their definitions, by value.
pub static MEMBERS_FIT: Rule = Rule { name: "members-fit", binds: Side::Guest, assumes: &[] };
/// Where a definition asks for an integer, the guest writes one without fraction or exponent.
pub static INTEGERS_WRITTEN: Rule = Rule { name: "integers-written", binds: Side::Guest, assumes: &[] };
/// The guest reads content that it was given, within its bounds.
pub static CONTENT_READ_AS_GIVEN: Rule =
    Rule { name: "content-read-as-given", binds: Side::Guest, assumes: &[&HOST_CONFORMS] };

/// All of them.
pub static RULES: &[&Rule] = &[
    &HOST_CONFORMS,
    &SILENT_BEFORE_INITIALIZED,
    &NOTIFICATIONS_UNANSWERED,
    &MEMBERS_FIT,
    &INTEGERS_WRITTEN,
    &CONTENT_READ_AS_GIVEN,
];

/// How many references of one connection are remembered; of older ones nothing is said.
const REFERENCES_MOST: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Barrier,
    Open,
}

/// One connection.
#[derive(Debug)]
pub struct Session<'c> {
    phase: Phase,
    /// The members that some definition types as an integer.
    integers: BTreeSet<&'c str>,
    /// The members whose values nobody looks into.
    unread: BTreeSet<&'c str>,
    params: BTreeMap<&'c str, &'c Validator>,
    results: BTreeMap<&'c str, &'c Validator>,
    /// What the host gave out, and how many bytes it has.
    given: BTreeMap<String, u64>,
    forgotten: bool,
    notified: bool,
    /// From the least to the greatest id under which the host has asked, with one more at the end.
    asked: Range<i64>,
    /// How many requests of the host have no answer yet.
    unanswered: u64,
    /// How many frames that are no requests the guest may still refuse under the id null.
    refusable: u64,
    /// A refusal under no id, and where: of a notification, unless a request turns out to have no answer of its own.
    refused: Option<(u64, String)>,
}

impl<'c> Session<'c> {
    /// A connection that has not begun.
    pub fn new(contract: &'c Contract) -> Self {
        let (mut integers, mut unread) = (BTreeSet::new(), BTreeSet::new());
        let definitions = contract.document().get("$defs").and_then(|defs| defs.as_object());
        let definitions = definitions.into_iter().flat_map(|defs| defs.values());
        let members = definitions.filter_map(|def| def.get("properties")?.as_object()).flatten();
        for (name, schema) in members {
            match schema.get("type").and_then(|kind| kind.as_str()) {
                Some("integer") => drop(integers.insert(name.as_str())),
                Some("object") => drop(unread.insert(name.as_str())),
                None if schema.get("$ref").is_none() => drop(unread.insert(name.as_str())),
                _ => {}
            }
        }
        let by_name = |validator: fn(&'c Contract, &str) -> Option<&'c Validator>| {
            contract
                .methods
                .keys()
                .filter_map(|name| Some((name.as_str(), validator(contract, name)?)))
                .collect()
        };
        Self {
            phase: Phase::Opening,
            integers,
            unread,
            params: by_name(Contract::params_validator),
            results: by_name(Contract::result_validator),
            given: BTreeMap::new(),
            forgotten: false,
            notified: false,
            asked: 0..0,
            unanswered: 0,
            refusable: 0,
            refused: None,
        }
    }

    fn frame(&mut self, at: u64, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        match frame.from {
            Side::Host => self.host_frame(frame, notes),
            Side::Guest => self.guest_frame(at, frame, notes),
        }
    }

    fn host_frame(&mut self, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        if let Some(fault) = self.host_fault(frame) {
            self.refusable += 1;
            notes.broken(&HOST_CONFORMS, || fault);
        } else {
            self.unanswered += u64::from(matches!(frame.envelope, Ok(Envelope::Request { .. })));
            notes.kept(&HOST_CONFORMS);
        }
        match &frame.envelope {
            Ok(Envelope::Notification { method, .. }) => {
                self.notified = true;
                if method == contract::INITIALIZED && self.phase == Phase::Barrier {
                    self.phase = Phase::Open;
                    notes.kept(&SILENT_BEFORE_INITIALIZED);
                }
                self.remember(frame);
            }
            Ok(Envelope::Request { id, .. }) => {
                if let Id::Integer(id) = id {
                    let (least, most) = if self.asked.is_empty() {
                        (*id, *id)
                    } else {
                        (self.asked.start, self.asked.end - 1)
                    };
                    self.asked = least.min(*id)..most.max(*id).saturating_add(1);
                }
                self.remember(frame);
            }
            _ => {}
        }
    }

    /// What is wrong with a frame of the host.
    fn host_fault(&self, frame: &Framed<'_, 'c>) -> Option<String> {
        let known = |id: &Id<'_>| match id {
            Id::Integer(_) if frame.id_in_use => Some(format!("the id {id} is still in use")),
            Id::Integer(_) => None,
            other => Some(format!("the id {other} is no integer")),
        };
        match &frame.envelope {
            Err(fault) => Some(fault.to_string()),
            Ok(Envelope::Request { id, method, params }) => known(id)
                .or_else(|| misplaced(frame.method, Side::Host, MethodKind::Request, method))
                .or_else(|| self.params_fault(method, *params)),
            Ok(Envelope::Notification { method, params }) => {
                misplaced(frame.method, Side::Host, MethodKind::Notification, method)
                    .or_else(|| self.params_fault(method, *params))
            }
            Ok(Envelope::Response { outcome: Outcome::Result(result), .. }) => {
                self.result_fault(frame, *result)
            }
            Ok(Envelope::Response { .. }) => None,
        }
    }

    fn guest_frame(&mut self, at: u64, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        self.before_initialized(frame, notes);
        if frame.answers.is_some() {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        match &frame.envelope {
            Ok(Envelope::Response { id, outcome }) if frame.answers.is_none() && !self.was_asked(id) => {
                self.refuses(at, &format!("{} under the id {}", outcome.summary(), short(&id.to_string())));
            }
            Err(Malformed::ResponseWithoutId) => self.refuses(at, "an answer without an id"),
            Ok(Envelope::Response { outcome: Outcome::Result(result), .. })
                if frame.answers.as_ref().is_some_and(|asked| asked.method.is_some()) =>
            {
                let fault = self.result_fault(frame, *result);
                notes.note(&MEMBERS_FIT, fault.is_none(), || fault.unwrap_or_default());
                self.integers(*result, notes);
            }
            Ok(Envelope::Request { method, params, .. } | Envelope::Notification { method, params }) => {
                if frame.method.is_some_and(|known| known.from == Side::Guest) {
                    let fault = self.params_fault(method, *params);
                    notes.note(&MEMBERS_FIT, fault.is_none(), || fault.unwrap_or_default());
                    if let Some(params) = params {
                        self.integers(*params, notes);
                    }
                }
                if method == contract::CONTENT_READ {
                    self.content_read(*params, notes);
                }
            }
            _ => {}
        }
    }

    fn before_initialized(&mut self, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        if self.phase == Phase::Open {
            return;
        }
        let answered = frame.answers.as_ref().and_then(|asked| asked.method);
        if answered.is_some_and(|method| method.name == contract::INITIALIZE) {
            if let Ok(Envelope::Response { outcome: Outcome::Result(_), .. }) = frame.envelope {
                self.phase = Phase::Barrier;
            }
        } else if answered.is_none() {
            notes.broken(&SILENT_BEFORE_INITIALIZED, || match &frame.envelope {
                Ok(envelope) => envelope.method().map_or_else(
                    || "an answer to nothing that was asked".to_owned(),
                    |method| format!("{} before initialized", short(method)),
                ),
                Err(fault) => format!("a line that is no frame ({fault}) before initialized"),
            });
        }
    }

    /// Whether the host ever asked under this id.
    fn was_asked(&self, id: &Id<'_>) -> bool {
        matches!(id, Id::Integer(id) if self.asked.contains(id))
    }

    /// The guest refused something under no id: a frame of ours that was none, a request, or a notification.
    fn refuses(&mut self, at: u64, what: &str) {
        if self.refusable > 0 {
            self.refusable -= 1;
        } else if self.notified {
            self.refused
                .get_or_insert_with(|| (at, format!("{what}, with nothing but notifications to answer")));
        }
    }

    /// Nothing more comes that belongs to what was said so far: whatever was refused can be told.
    fn settled(&mut self, notes: &mut Notes<'_>) {
        self.refusable = 0;
        if let Some((at, actual)) = self.refused.take()
            && self.unanswered == 0
        {
            notes.broken_at(at, &NOTIFICATIONS_UNANSWERED, || actual);
        }
    }

    fn content_read(&self, params: Option<Node<'_>>, notes: &mut Notes<'_>) {
        let Some(params) = params else { return };
        let reference = params.get("contentRef").and_then(|it| it.as_str());
        let (Some(reference), Some(offset)) = (reference, params.get("offset").and_then(|it| it.as_u64()))
        else {
            return;
        };
        match self.given.get(&*reference) {
            Some(total) => notes.note(&CONTENT_READ_AS_GIVEN, offset <= *total, || {
                format!("a read at {offset} of a content of {total} bytes")
            }),
            None if self.forgotten => {}
            None => notes.broken(&CONTENT_READ_AS_GIVEN, || {
                format!("a read of {:?}, which the host never gave", short(&reference))
            }),
        }
    }

    /// Remembers the references that a frame of the host gives.
    fn remember(&mut self, frame: &Framed<'_, 'c>) {
        let given = frame
            .envelope
            .as_ref()
            .ok()
            .and_then(Envelope::params)
            .and_then(|params| params.get("externalized"));
        for descriptor in given.into_iter().flat_map(Node::elements) {
            let reference = descriptor.get("contentRef").and_then(|it| it.as_str());
            let total = descriptor.get("totalBytes").and_then(|it| it.as_u64());
            if let (Some(reference), Some(total)) = (reference, total) {
                if self.given.len() == REFERENCES_MOST {
                    self.given.pop_first();
                    self.forgotten = true;
                }
                self.given.insert(reference.into_owned(), total);
            }
        }
    }

    fn params_fault(&self, method: &str, params: Option<Node<'_>>) -> Option<String> {
        let validator = self.params.get(method)?;
        match params {
            Some(params) => told(method, "params", validator, params),
            None => None,
        }
    }

    fn result_fault(&self, frame: &Framed<'_, 'c>, result: Node<'_>) -> Option<String> {
        let method = frame.answers.as_ref()?.method?;
        told(&method.name, "result", self.results.get(method.name.as_str())?, result)
    }

    fn integers(&self, value: Node<'_>, notes: &mut Notes<'_>) {
        let odd =
            value.walk().any(|(_, node)| node.kind() == JsonKind::Number && !node.is_written_as_integer());
        if !odd {
            return notes.kept(&INTEGERS_WRITTEN);
        }
        // Rare, so it may take its time: go down member by member, past what nobody looks into.
        let mut open = vec![value];
        while let Some(node) = open.pop() {
            if node.kind() == JsonKind::Array {
                open.extend(node.elements());
                continue;
            }
            for (name, member) in node.members() {
                if self.unread.contains(&*name) {
                    continue;
                }
                if self.integers.contains(&*name) && member.is_integer() && !member.is_written_as_integer() {
                    return notes
                        .broken(&INTEGERS_WRITTEN, || format!("{name} written as {}", short(member.raw())));
                }
                if matches!(member.kind(), JsonKind::Object | JsonKind::Array) {
                    open.push(member);
                }
            }
        }
        notes.kept(&INTEGERS_WRITTEN);
    }
}

impl<'c> Observer<'c> for Session<'c> {
    fn observe(&mut self, moment: &Moment<'_, 'c>, notes: &mut Notes<'_>) {
        match &moment.what {
            Happened::Frame(frame) => self.frame(moment.at, frame, notes),
            // White space around a frame, the CR before the LF above all, makes it no other frame.
            Happened::Line { from: Side::Guest, fault: Some(fault) } if self.phase != Phase::Open => {
                notes.broken(&SILENT_BEFORE_INITIALIZED, || {
                    format!("a line that is no frame ({fault}) before initialized")
                });
            }
            Happened::Line { from: Side::Host, fault: Some(_) } => self.refusable += 1,
            // After a silence nobody is still about to refuse what came before it.
            Happened::Event(Kind::Waited { wait: Wait::Quiet, .. }) => self.settled(notes),
            // The guest's output ended in order, so nothing can come any more: absences are proven.
            Happened::Event(Kind::Closed { from: Side::Guest }) => {
                self.settled(notes);
                if self.phase == Phase::Barrier {
                    notes.kept(&SILENT_BEFORE_INITIALIZED);
                }
                if self.notified {
                    notes.kept(&NOTIFICATIONS_UNANSWERED);
                }
            }
            _ => {}
        }
    }
}

/// What is wrong with where a method was used.
fn misplaced(known: Option<&Method>, from: Side, kind: MethodKind, name: &str) -> Option<String> {
    match known {
        Some(method) if method.from == from && method.kind == kind => None,
        Some(_) => Some(format!("{} is not for the {from} to send so", short(name))),
        None => Some(format!("the contract has no method {}", short(name))),
    }
}

fn told(method: &str, part: &str, validator: &Validator, value: Node<'_>) -> Option<String> {
    let violation = validator.check(value)?;
    let at = if violation.pointer.is_empty() { String::new() } else { format!("{} ", violation.pointer) };
    Some(format!("{part} of {method}: {at}{}", violation.says))
}
