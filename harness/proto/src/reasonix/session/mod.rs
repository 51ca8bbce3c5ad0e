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
mod hosting;
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
pub use hosting::{
    ASKED_AS_INSTALLED, ASKS_IN_TURN, DESCRIPTORS_TRUE, FRAMES_WITHIN_LIMIT, LARGE_MOVED_OUT,
    OPENS_WITH_INITIALIZE, PAGES_TRUE, QUIET_AFTER_SHUTDOWN, SEQUENCE_COUNTED, SESSION_CARRIED,
    STREAM_IDS_FRESH, TIMES_WITHIN_CEILING,
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
use crate::transcript::{Kind, Told, Wait};

/// Every frame of the host is an envelope, of a method that it may send, with members that fit, under a fresh id.
pub static HOST_CONFORMS: Rule = Rule { name: "host-conforms", binds: Side::Host, assumes: &[] };
/// The same of the guest: what rules of the host assume.
pub static GUEST_CONFORMS: Rule = Rule { name: "guest-conforms", binds: Side::Guest, assumes: &[] };
/// The guest sends nothing but its answer until the host says `initialized`.
pub static SILENT_BEFORE_INITIALIZED: Rule =
    Rule { name: "silent-before-initialized", binds: Side::Guest, assumes: &[&HOST_CONFORMS] };

/// A condition that binds either side alike: a rule for each.
#[derive(Debug)]
pub struct Pair {
    /// What binds the guest.
    pub guest: Rule,
    /// What binds the host.
    pub host: Rule,
}

impl Pair {
    /// The rule that binds `side`.
    pub fn of(&'static self, side: Side) -> &'static Rule {
        match side {
            Side::Guest => &self.guest,
            Side::Host => &self.host,
        }
    }
}

const CONFORMING_HOST: &[&Rule] = &[&HOST_CONFORMS];
const CONFORMING_GUEST: &[&Rule] = &[&GUEST_CONFORMS];

/// A condition of either side by itself.
const fn pair(guest: &'static str, host: &'static str) -> Pair {
    Pair {
        guest: Rule { name: guest, binds: Side::Guest, assumes: &[] },
        host: Rule { name: host, binds: Side::Host, assumes: &[] },
    }
}

/// A condition of either side that nobody is judged on once the other side has confused things.
const fn pair_assuming(guest: &'static str, host: &'static str) -> Pair {
    Pair {
        guest: Rule { name: guest, binds: Side::Guest, assumes: CONFORMING_HOST },
        host: Rule { name: host, binds: Side::Host, assumes: CONFORMING_GUEST },
    }
}

/// All of them.
pub static RULES: &[&Rule] = &[
    &HOST_CONFORMS,
    &SILENT_BEFORE_INITIALIZED,
    &ONLY_FRAMES.guest,
    &ENVELOPES_WELL_FORMED.guest,
    &ANSWERED_ONCE.guest,
    &ANSWERS_ASKED.guest,
    &LEGAL_IDS_ECHOED.guest,
    &IDS_ARE_INTEGERS.guest,
    &PARAMS_ARE_OBJECTS.guest,
    &NOTIFICATIONS_UNANSWERED.guest,
    &MEMBERS_FIT.guest,
    &NAMES_EXACT.guest,
    &INTEGERS_WRITTEN.guest,
    &CREDENTIALS_ABSENT,
    &DECLARES_WITHIN,
    &RULINGS_IN_PLACE,
    &REPLACEMENTS_FIT,
    &CONTENT_READ_AS_GIVEN,
    &CONTENT_READ_WHEN_OPEN,
    &CODES_FIT.guest,
    &REASONS_KNOWN.guest,
    &RETRYABLE_FITS.guest,
    &ACTION_IS_TEXT.guest,
    &DOMAIN_STRUCTURED.guest,
    &FRAME_ERRORS_PLAIN.guest,
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
    &GUEST_CONFORMS,
    &ONLY_FRAMES.host,
    &ENVELOPES_WELL_FORMED.host,
    &ANSWERED_ONCE.host,
    &ANSWERS_ASKED.host,
    &LEGAL_IDS_ECHOED.host,
    &IDS_ARE_INTEGERS.host,
    &PARAMS_ARE_OBJECTS.host,
    &NOTIFICATIONS_UNANSWERED.host,
    &MEMBERS_FIT.host,
    &NAMES_EXACT.host,
    &INTEGERS_WRITTEN.host,
    &CODES_FIT.host,
    &REASONS_KNOWN.host,
    &RETRYABLE_FITS.host,
    &ACTION_IS_TEXT.host,
    &DOMAIN_STRUCTURED.host,
    &FRAME_ERRORS_PLAIN.host,
    &OPENS_WITH_INITIALIZE,
    &ASKS_IN_TURN,
    &FRAMES_WITHIN_LIMIT,
    &SEQUENCE_COUNTED,
    &TIMES_WITHIN_CEILING,
    &ASKED_AS_INSTALLED,
    &LARGE_MOVED_OUT,
    &DESCRIPTORS_TRUE,
    &PAGES_TRUE,
    &STREAM_IDS_FRESH,
    &SESSION_CARRIED,
    &QUIET_AFTER_SHUTDOWN,
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
    /// Who is watched.
    watched: Side,
    phase: Phase,
    answers: answers::Answers,
    members: members::Members<'c>,
    rulings: rulings::Rulings<'c>,
    contents: contents::Contents,
    streams: streams::Streams,
    surfaces: surfaces::Surfaces<'c>,
    hosting: hosting::Hosting,
}

impl<'c> Session<'c> {
    /// A connection that has not begun, of which `watched` is looked at.
    pub fn new(contract: &'c Contract, watched: Side) -> Self {
        Self {
            contract,
            watched,
            phase: Phase::Opening,
            answers: answers::Answers::new(watched),
            members: members::Members::new(contract, watched),
            rulings: rulings::Rulings::new(contract),
            contents: contents::Contents::default(),
            streams: streams::Streams::default(),
            surfaces: surfaces::Surfaces::new(contract),
            hosting: hosting::Hosting::new(contract),
        }
    }

    fn host_frame(&mut self, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        let odd = self.other_frame(&HOST_CONFORMS, frame, notes);
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

    /// A frame of the side that is not watched; whether it is odd.
    fn other_frame(
        &mut self,
        conforms: &'static Rule,
        frame: &Framed<'_, 'c>,
        notes: &mut Notes<'_>,
    ) -> bool {
        let fault = self.fault(frame);
        let odd = frame.departs || fault.is_some();
        match fault {
            Some(fault) => notes.broken(conforms, || fault),
            None => notes.kept(conforms),
        }
        self.answers.other_frame(frame, odd);
        odd
    }

    /// What is wrong with a frame.
    fn fault(&self, frame: &Framed<'_, 'c>) -> Option<String> {
        let known = |id: &Id<'_>| match id {
            Id::Integer(_) if frame.id_in_use => Some(format!("the id {id} is still in use")),
            Id::Integer(_) => None,
            other => Some(format!("the id {other} is no integer")),
        };
        match &frame.envelope {
            Err(fault) => Some(fault.to_string()),
            Ok(Envelope::Request { id, method, params }) => known(id)
                .or_else(|| misplaced(frame.method, frame.from, MethodKind::Request, method))
                .or_else(|| self.members.params_fault(method, *params)),
            Ok(Envelope::Notification { method, params }) => {
                misplaced(frame.method, frame.from, MethodKind::Notification, method)
                    .or_else(|| self.members.params_fault(method, *params))
            }
            Ok(Envelope::Response { outcome: Outcome::Result(result), .. }) => {
                self.members.result_fault(frame, *result)
            }
            Ok(Envelope::Response { .. }) => None,
        }
    }

    /// What holds of the frames of either side, of the one that is watched.
    fn watched_frame(&mut self, at: u64, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        self.answers.frame(at, frame, notes);
        match &frame.envelope {
            Ok(Envelope::Response { outcome: Outcome::Result(result), .. }) => {
                self.members.result(frame, *result, notes);
            }
            Ok(Envelope::Response { id, outcome: Outcome::Error { code, body } }) => {
                errors::error(self.watched, self.contract, id, (*code, *body), notes);
            }
            Ok(Envelope::Request { method, params, .. } | Envelope::Notification { method, params }) => {
                if let Some(params) = *params {
                    self.members.params(frame, method, params, notes);
                }
            }
            Err(_) => {}
        }
    }

    fn guest_frame(&mut self, at: u64, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        self.before_initialized(frame, notes);
        self.watched_frame(at, frame, notes);
        match &frame.envelope {
            Ok(Envelope::Response { id: Id::Integer(id), outcome: Outcome::Result(result) }) => {
                self.rulings.answered(*id, frame, *result, notes);
                self.streams.answered(*id, Some(*result));
            }
            Ok(Envelope::Response { id: Id::Integer(id), outcome: Outcome::Error { .. } }) => {
                self.rulings.refused(*id);
                self.streams.answered(*id, None);
            }
            Ok(Envelope::Request { method, params, .. } | Envelope::Notification { method, params }) => {
                let Some(params) = *params else { return };
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
            Ok(Envelope::Response { .. }) | Err(_) => {}
        }
    }

    /// What happens where the host is watched.
    fn observe_host(&mut self, moment: &Moment<'_, 'c>, notes: &mut Notes<'_>) {
        match &moment.what {
            Happened::Frame(frame) if frame.from == Side::Guest => {
                self.other_frame(&GUEST_CONFORMS, frame, notes);
                self.hosting.guest_frame(frame);
            }
            Happened::Frame(frame) => {
                self.watched_frame(moment.at, frame, notes);
                self.hosting.host_frame(frame, notes);
            }
            Happened::Line { from: Side::Host, fault: Some(fault), .. } => {
                answers::no_frame(Side::Host, *fault, notes);
            }
            Happened::Line { from: Side::Guest, fault: Some(_), id } => self.answers.other_line(*id),
            Happened::Event(Kind::Begin { .. } | Kind::Told { what: Told::Settled, .. }) => {
                self.answers.settled(notes);
            }
            Happened::Event(Kind::Closed { from: Side::Host }) => {
                self.answers.settled(notes);
                self.answers.over(notes);
                self.hosting.over(notes);
            }
            Happened::Event(Kind::Oversize { from: Side::Host, seen, .. }) => {
                notes.broken(&FRAMES_WITHIN_LIMIT, || format!("a line of {seen} bytes and more"));
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
}

impl<'c> Observer<'c> for Session<'c> {
    fn observe(&mut self, moment: &Moment<'_, 'c>, notes: &mut Notes<'_>) {
        if self.watched == Side::Host {
            return self.observe_host(moment, notes);
        }
        match &moment.what {
            Happened::Frame(frame) => match frame.from {
                Side::Host => self.host_frame(frame, notes),
                Side::Guest => self.guest_frame(moment.at, frame, notes),
            },
            Happened::Line { from: Side::Guest, fault: Some(fault), .. } => {
                answers::no_frame(Side::Guest, *fault, notes);
                // White space around a frame, the CR before the LF above all, makes it no other frame.
                if self.phase != Phase::Open {
                    notes.broken(&SILENT_BEFORE_INITIALIZED, || {
                        format!("a line that is no frame ({fault}) before initialized")
                    });
                }
            }
            Happened::Line { from: Side::Host, fault: Some(_), id } => self.answers.other_line(*id),
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
