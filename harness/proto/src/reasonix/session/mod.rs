//! Watches one Reasonix connection and notes each rule that comes up.
//!
//! ```text
//!  opening --result of initialize--> barrier --initialized offered--> open
//! ```
//!
//! Each part watches one subject and declares its rules; here stands what they share: the phase, and what our own side
//! may send.

mod answers;
mod contents;
mod errors;
mod keys;
mod members;
mod rulings;
mod streams;
mod surfaces;

pub use answers::{
    ANSWERED_ONCE, ANSWERS_ASKED, ENVELOPES_WELL_FORMED, IDS_ARE_INTEGERS, LEGAL_IDS_ECHOED,
    NOTIFICATIONS_UNANSWERED, ONLY_FRAMES, PARAMS_ARE_OBJECTS,
};
pub use contents::{CONTENT_READ_AS_GIVEN, CONTENT_READ_WHEN_OPEN};
pub use errors::{
    ACTION_IS_TEXT, CODES_FIT, DOMAIN_STRUCTURED, FRAME_ERRORS_PLAIN, REASONS_KNOWN, RETRYABLE_FITS,
};
pub use members::{CREDENTIALS_ABSENT, INTEGERS_WRITTEN, MEMBERS_FIT, NAMES_EXACT};
pub use rulings::{DECLARES_WITHIN, REPLACEMENTS_FIT, RULINGS_IN_PLACE};
pub use streams::{
    CHUNKS_COMPLETE, CHUNKS_CONTIGUOUS, ENDED_ONCE, ERRORS_REDACTED, NOTHING_AFTER_CANCEL,
    SIGNATURES_WITH_REASONING,
};
pub use surfaces::{DOCUMENTS_FIT, MARKDOWN_TAME, STRUCTURED_ONLY, SURFACES_BOUND};

use crate::contract::{Contract, Method, MethodKind, Side};
use crate::exchange::short;
use crate::judge::{Framed, Happened, Moment, Notes, Observer};
use crate::reasonix::contract;
use crate::requirement::Rule;
use crate::rpc::{Envelope, Id, Outcome};
use crate::transcript::{Kind, Wait};

/// Every frame of the host is an envelope, of a method that it may send, with members that fit, under a fresh id.
pub static HOST_CONFORMS: Rule = Rule { name: "host-conforms", binds: Side::Host, assumes: &[] };
/// The guest sends nothing but its answer until the host says `initialized`.
pub static SILENT_BEFORE_INITIALIZED: Rule =
    Rule { name: "silent-before-initialized", binds: Side::Guest, assumes: &[&HOST_CONFORMS] };

/// All of them.
pub static RULES: &[&Rule] = &[
    &HOST_CONFORMS,
    &SILENT_BEFORE_INITIALIZED,
    &ONLY_FRAMES,
    &ENVELOPES_WELL_FORMED,
    &ANSWERED_ONCE,
    &ANSWERS_ASKED,
    &LEGAL_IDS_ECHOED,
    &IDS_ARE_INTEGERS,
    &PARAMS_ARE_OBJECTS,
    &NOTIFICATIONS_UNANSWERED,
    &MEMBERS_FIT,
    &NAMES_EXACT,
    &INTEGERS_WRITTEN,
    &CREDENTIALS_ABSENT,
    &DECLARES_WITHIN,
    &RULINGS_IN_PLACE,
    &REPLACEMENTS_FIT,
    &CONTENT_READ_AS_GIVEN,
    &CONTENT_READ_WHEN_OPEN,
    &CODES_FIT,
    &REASONS_KNOWN,
    &RETRYABLE_FITS,
    &ACTION_IS_TEXT,
    &DOMAIN_STRUCTURED,
    &FRAME_ERRORS_PLAIN,
    &CHUNKS_CONTIGUOUS,
    &ENDED_ONCE,
    &NOTHING_AFTER_CANCEL,
    &CHUNKS_COMPLETE,
    &SIGNATURES_WITH_REASONING,
    &ERRORS_REDACTED,
    &SURFACES_BOUND,
    &STRUCTURED_ONLY,
    &MARKDOWN_TAME,
    &DOCUMENTS_FIT,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Barrier,
    Open,
}

/// One connection.
#[derive(Debug)]
pub struct Session<'c> {
    contract: &'c Contract,
    phase: Phase,
    answers: answers::Answers,
    members: members::Members<'c>,
    rulings: rulings::Rulings<'c>,
    contents: contents::Contents,
    streams: streams::Streams,
    surfaces: surfaces::Surfaces<'c>,
}

impl<'c> Session<'c> {
    /// A connection that has not begun.
    pub fn new(contract: &'c Contract) -> Self {
        Self {
            contract,
            phase: Phase::Opening,
            answers: answers::Answers::default(),
            members: members::Members::new(contract),
            rulings: rulings::Rulings::new(contract),
            contents: contents::Contents::default(),
            streams: streams::Streams::default(),
            surfaces: surfaces::Surfaces::new(contract),
        }
    }

    fn host_frame(&mut self, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        let fault = self.host_fault(frame);
        let odd = frame.departs || fault.is_some();
        match fault {
            Some(fault) => notes.broken(&HOST_CONFORMS, || fault),
            None => notes.kept(&HOST_CONFORMS),
        }
        self.answers.host_frame(frame, odd);
        if let Ok(Envelope::Notification { method, .. }) = &frame.envelope
            && method == contract::INITIALIZED
            && self.phase == Phase::Barrier
        {
            self.phase = Phase::Open;
            notes.kept(&SILENT_BEFORE_INITIALIZED);
        }
        if let Some(params) = frame.envelope.as_ref().ok().and_then(Envelope::params) {
            self.contents.remember(params);
            if let Ok(Envelope::Request { id: Id::Integer(id), method, .. }) = &frame.envelope {
                self.rulings.asked(*id, method, params);
                self.streams.asked(*id, method, params, odd);
                self.surfaces.asked(method, params);
            }
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
                .or_else(|| self.members.params_fault(method, *params)),
            Ok(Envelope::Notification { method, params }) => {
                misplaced(frame.method, Side::Host, MethodKind::Notification, method)
                    .or_else(|| self.members.params_fault(method, *params))
            }
            Ok(Envelope::Response { outcome: Outcome::Result(result), .. }) => {
                self.members.result_fault(frame, *result)
            }
            Ok(Envelope::Response { .. }) => None,
        }
    }

    fn guest_frame(&mut self, at: u64, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        self.before_initialized(frame, notes);
        self.answers.guest_frame(at, frame, notes);
        match &frame.envelope {
            Ok(Envelope::Response { id, outcome: Outcome::Result(result) }) => {
                self.members.result(frame, *result, notes);
                if let Id::Integer(id) = id {
                    self.rulings.answered(*id, frame, *result, notes);
                    self.streams.answered(*id, Some(*result));
                }
            }
            Ok(Envelope::Response { id, outcome: Outcome::Error { code, body } }) => {
                errors::error(self.contract, id, *code, *body, notes);
                if let Id::Integer(id) = id {
                    self.rulings.refused(*id);
                    self.streams.answered(*id, None);
                }
            }
            Ok(Envelope::Request { method, params, .. } | Envelope::Notification { method, params }) => {
                let Some(params) = *params else { return };
                self.members.params(frame, method, params, notes);
                match &**method {
                    contract::CONTENT_READ => self.contents.read(params, self.phase == Phase::Open, notes),
                    contract::STREAM_CHUNK => self.streams.chunk(params, notes),
                    contract::STREAM_END => self.streams.end(params, notes),
                    contract::UI_PUBLISH | contract::UI_REQUEST => {
                        self.surfaces.shown(method, params, notes);
                    }
                    _ => {}
                }
            }
            Err(_) => {}
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
}

impl<'c> Observer<'c> for Session<'c> {
    fn observe(&mut self, moment: &Moment<'_, 'c>, notes: &mut Notes<'_>) {
        match &moment.what {
            Happened::Frame(frame) => match frame.from {
                Side::Host => self.host_frame(frame, notes),
                Side::Guest => self.guest_frame(moment.at, frame, notes),
            },
            Happened::Line { from: Side::Guest, fault: Some(fault) } => {
                answers::no_frame(*fault, notes);
                // White space around a frame, the CR before the LF above all, makes it no other frame.
                if self.phase != Phase::Open {
                    notes.broken(&SILENT_BEFORE_INITIALIZED, || {
                        format!("a line that is no frame ({fault}) before initialized")
                    });
                }
            }
            Happened::Line { from: Side::Host, fault: Some(_) } => self.answers.host_line(),
            // After a silence nobody is still about to refuse what came before it, and a script ends only when that is so.
            Happened::Event(Kind::Begin { .. } | Kind::Waited { wait: Wait::Quiet, .. }) => {
                self.answers.settled(notes);
            }
            // The guest's output ended in order, so nothing can come any more: absences are proven.
            Happened::Event(Kind::Closed { from: Side::Guest }) => {
                self.answers.settled(notes);
                self.answers.over(notes);
                self.streams.over(notes);
                if self.phase == Phase::Barrier {
                    notes.kept(&SILENT_BEFORE_INITIALIZED);
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
