//! The events of a recording in words: what a frame is, which request an answer belongs to, what else happened.
//!
//! The names that a script gives its frames are for scripts. People see ids and methods.

use std::collections::BTreeMap;

use sidecert_proto::contract::Side;
use sidecert_proto::json::Tape;
use sidecert_proto::machine::Exited;
use sidecert_proto::play::FENCE;
use sidecert_proto::rpc::{self, Envelope, Id, Outcome};
use sidecert_proto::transcript::{Event, Kind, Payload, Told as Around, Wait};
use sidecert_reports::{Frame, Origin, safe};

/// How much of what a frame says stands before it, in bytes.
const LABEL_BYTES: usize = 80;
/// What stands before the label of a frame of ours where a play says why it cut a script short.
const LEADS: [&str; 5] = [
    "before it answered ",
    "no answer to ",
    "the guest answered ",
    "the guest sent ",
    "before it could be sent ",
];
/// How many requests of one side are remembered while they wait for an answer; the oldest are forgotten first.
const ASKED_MOST: usize = 1 << 10;

/// Reads one recording, event by event.
pub(crate) struct Reading {
    target: Side,
    event: u64,
    /// The script that is running; empty between scripts.
    script: String,
    asked_by_host: BTreeMap<i64, Frame>,
    asked_by_guest: BTreeMap<i64, Frame>,
    labelled: BTreeMap<String, Labelled>,
}

/// A frame of ours that the script has a name for.
#[derive(Clone)]
pub(crate) struct Labelled {
    pub(crate) label: String,
    pub(crate) frame: Frame,
    pub(crate) method: Option<String>,
    words: String,
}

/// One event.
pub(crate) struct Told {
    pub(crate) frame: Frame,
    /// The script that it belongs to; empty between scripts.
    pub(crate) script: String,
    /// The request that this answers, or that was waited for in vain.
    pub(crate) concerns: Option<Frame>,
    /// Whether the target sent something that is no JSON.
    pub(crate) noise: bool,
}

/// What the bytes of a frame say.
struct Said {
    words: String,
    method: Option<String>,
    asks: Option<i64>,
    answers: Option<i64>,
    noise: bool,
}

impl Reading {
    pub(crate) fn new(target: Side) -> Self {
        Self {
            target,
            event: 0,
            script: String::new(),
            asked_by_host: BTreeMap::new(),
            asked_by_guest: BTreeMap::new(),
            labelled: BTreeMap::new(),
        }
    }

    /// Takes in the next event. At most `bytes_max` bytes of a frame are shown.
    pub(crate) fn read(&mut self, event: &Event<'_>, bytes_max: usize) -> Told {
        if let Kind::Begin { script } = &event.kind {
            self.script = script.to_string();
        }
        let mut told = Told {
            frame: Frame {
                event: self.event,
                micros: event.t,
                from: Origin::Event,
                target: false,
                label: None,
                text: String::new(),
                bytes: 0,
                marked: false,
            },
            script: self.script.clone(),
            concerns: None,
            noise: false,
        };
        self.event += 1;
        match &event.kind {
            Kind::Frame(frame) => {
                self.is_from(&mut told.frame, frame.from);
                let (label, departs) = (frame.label.as_deref(), frame.departs.as_deref());
                self.frame(&mut told, frame.from, label, departs, &frame.payload, bytes_max);
            }
            Kind::Oversize { from, head, seen } => {
                self.is_from(&mut told.frame, *from);
                told.frame.label = Some("longer than the limit".to_owned());
                told.frame.text = safe::preview(head, bytes_max);
                told.frame.bytes = *seen;
            }
            Kind::Tail { from, payload } => {
                self.is_from(&mut told.frame, *from);
                told.frame.label = Some("not ended by a line feed".to_owned());
                (told.frame.text, told.frame.bytes) = preview(payload, bytes_max);
            }
            other => {
                if let Kind::TimedOut { label: Some(label), .. } = other {
                    told.concerns = self.called(label).map(|its| its.frame.clone());
                }
                if matches!(other, Kind::Ended { .. }) {
                    self.script.clear();
                }
                told.frame.text = self.happened(other, bytes_max);
            }
        }
        told
    }

    /// The frame of ours that the script calls so; the last one, if there are several.
    pub(crate) fn called(&self, label: &str) -> Option<&Labelled> {
        self.labelled.get(label)
    }

    /// Why a script was cut short, with our request called by its method, and that request.
    pub(crate) fn cause(&self, cause: &str) -> (String, Option<&Labelled>) {
        for lead in LEADS {
            let Some(at) = cause.find(lead).map(|at| at + lead.len()) else { continue };
            let Some((label, length)) = label_at(&cause[at..]) else { continue };
            if let Some(its) = self.called(label) {
                return (format!("{}{}{}", &cause[..at], its.name(), &cause[at + length..]), Some(its));
            }
        }
        (cause.to_owned(), None)
    }

    fn is_from(&self, frame: &mut Frame, side: Side) {
        frame.from = match side {
            Side::Host => Origin::Host,
            Side::Guest => Origin::Guest,
        };
        frame.target = side == self.target;
    }

    fn frame(
        &mut self,
        told: &mut Told,
        from: Side,
        label: Option<&str>,
        departs: Option<&str>,
        payload: &Payload<'_>,
        bytes_max: usize,
    ) {
        let said = said(payload);
        let words = match label {
            Some(FENCE) => format!("marker {}", said.words),
            _ => said.words,
        };
        told.frame.label = Some(match departs {
            Some(departs) => format!("{words}; wrong on purpose: {departs}"),
            None => words.clone(),
        });
        (told.frame.text, told.frame.bytes) = preview(payload, bytes_max);
        told.noise = said.noise && from == self.target;
        if let Some(id) = said.answers {
            told.concerns = self.asked(from.opposite()).remove(&id);
        }
        if let Some(id) = said.asks {
            let asked = self.asked(from);
            if asked.len() >= ASKED_MOST {
                asked.pop_first();
            }
            asked.insert(id, told.frame.clone());
        }
        if let Some(label) = label {
            let (label, frame) = (label.to_owned(), told.frame.clone());
            let labelled = Labelled { label: label.clone(), frame, method: said.method, words };
            self.labelled.insert(label, labelled);
        }
    }

    fn asked(&mut self, side: Side) -> &mut BTreeMap<i64, Frame> {
        match side {
            Side::Host => &mut self.asked_by_host,
            Side::Guest => &mut self.asked_by_guest,
        }
    }

    fn happened(&self, kind: &Kind<'_>, bytes_max: usize) -> String {
        let named = |label: Option<&str>| match label {
            Some(label) => self.called(label).map_or_else(|| label.to_owned(), |its| its.words.clone()),
            None => "it".to_owned(),
        };
        let awaited = |wait: Wait, label: Option<&str>| match wait {
            Wait::Start | Wait::Answer => format!("the answer to {}", named(label)),
            Wait::Fence => "the answer to the marker".to_owned(),
            Wait::Quiet => "silence".to_owned(),
            Wait::Exit => "the end of the process".to_owned(),
            Wait::Outcome => format!("what comes of {}", named(label)),
            Wait::Launch => format!("the launch of guest {}", label.unwrap_or_default()),
            Wait::Gone => "the end of the guest".to_owned(),
        };
        match kind {
            Kind::Wrote { label, parts } if parts.is_empty() => {
                format!("all of {} was accepted", named(label.as_deref()))
            }
            Kind::Wrote { label, parts } => {
                format!("all of {} was accepted, in {} parts", named(label.as_deref()), parts.len())
            }
            Kind::Blocked { bytes } => format!("it had not read the last {bytes} bytes"),
            Kind::Lost { from, bytes } => format!("{bytes} bytes of the {from} were not recorded"),
            Kind::Broken => "it takes no more bytes".to_owned(),
            Kind::Closed { from } => format!("the {from} closed its output"),
            Kind::Exited(how) => format!("the process ended ({})", exited(*how)),
            Kind::Killed => "the process was killed by sidecert".to_owned(),
            Kind::Left(left) => format!("it left {} running", left.name),
            Kind::Stderr { text, .. } => {
                format!("standard error: {}", safe::preview(text.as_bytes(), bytes_max))
            }
            Kind::Waited { wait, label, took, .. } => {
                format!("waited {} ms for {}", took / 1_000, awaited(*wait, label.as_deref()))
            }
            Kind::TimedOut { wait, label, within } => {
                format!("waited {} ms in vain for {}", within / 1_000, awaited(*wait, label.as_deref()))
            }
            Kind::Starved { late } => format!("sidecert itself was not running for {} ms", late / 1_000),
            Kind::Begin { script } => format!("the script {script} begins"),
            Kind::Ended { script, cut: None } => format!("the script {script} ends"),
            Kind::Ended { script, cut: Some(cut) } => {
                format!("the script {script} is cut short: {}", self.cause(cut).0)
            }
            Kind::Told { what, label, json } => {
                around(*what, label.as_deref(), &safe::preview(json.as_bytes(), bytes_max))
            }
            Kind::Unknown(line) => safe::preview(line.as_bytes(), bytes_max),
            Kind::Frame(_) | Kind::Oversize { .. } | Kind::Tail { .. } => String::new(),
        }
    }
}

impl Labelled {
    /// Its method, and the name that the script gives it where that is another.
    pub(crate) fn name(&self) -> String {
        match &self.method {
            Some(method) if self.label == FENCE => format!("a marker ({method})"),
            Some(method) if method.rsplit('/').next() == Some(&self.label) => method.clone(),
            Some(method) => format!("{method} ({})", self.label),
            None => self.label.clone(),
        }
    }
}

/// The label that a text begins with, in quotes or not, and the length of it.
fn label_at(text: &str) -> Option<(&str, usize)> {
    if text.starts_with("a fence") {
        return Some((FENCE, "a fence".len()));
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.find('"').map(|end| (&quoted[..end], end + 2));
    }
    let end = text.find([' ', ';']).unwrap_or(text.len());
    Some((&text[..end], end))
}

/// What happened around a host under test, in words; `json` is fit to be shown.
fn around(what: Around, label: Option<&str>, json: &str) -> String {
    match (what, label) {
        (Around::Shim, _) => format!("the driver says what it is: {json}"),
        (Around::Ask, label) => {
            format!("we ask the driver for {}: {json}", label.unwrap_or("something"))
        }
        (Around::Outcome, label) => format!("what came of {}: {json}", label.unwrap_or("it")),
        (Around::Shown, _) => format!("the user is shown {json}"),
        (Around::Found, _) => format!("the host keeps {json}"),
        (Around::Other, _) => format!("the driver wrote {json}"),
        (Around::Settled, _) => "every guest has heard all that the host wrote to it".to_owned(),
        (Around::Beyond, _) => format!("out of reach: {json}"),
        (Around::Launched, _) => format!("the host launched {json}"),
        (Around::Did, _) => format!("the guest did {json}"),
        (Around::Signal, _) => format!("the guest was sent signal {json}"),
        (Around::Alive, _) => "the guest is there".to_owned(),
        (Around::Gone, _) => "the guest is gone".to_owned(),
    }
}

/// How a process ended, in words.
pub(crate) fn exited(exited: Exited) -> String {
    match exited {
        Exited::Code(code) => format!("code {code}"),
        Exited::Signal(signal) => format!("signal {signal}"),
        Exited::Unknown => "nobody knows how".to_owned(),
    }
}

fn preview(payload: &Payload<'_>, bytes_max: usize) -> (String, u64) {
    let text = match payload {
        Payload::Fill { head, byte, count, tail } => {
            format!("{head}{}… ({count} times)…{tail}", char::from(*byte))
        }
        other => safe::preview(&other.bytes(), bytes_max),
    };
    (text, payload.len())
}

fn said(payload: &Payload<'_>) -> Said {
    let bytes = match payload {
        // What a fill repeats stands in a string, so it is not needed to tell.
        Payload::Fill { head, tail, .. } => [head.as_bytes(), tail.as_bytes()].concat().into(),
        other => other.bytes(),
    };
    let mut said = Said { words: String::new(), method: None, asks: None, answers: None, noise: false };
    let integer = |id: &Id<'_>| match id {
        Id::Integer(id) => Some(*id),
        _ => None,
    };
    let words = match Tape::scan(&bytes) {
        Err(fault) => {
            said.noise = true;
            format!("no JSON ({fault})")
        }
        Ok(tape) => match rpc::classify(tape.root()) {
            Ok(Envelope::Request { id, method, .. }) => {
                said.asks = integer(&id);
                said.method = Some(method.to_string());
                format!("request {id}, {method}")
            }
            Ok(Envelope::Notification { method, .. }) => {
                said.method = Some(method.to_string());
                format!("notification {method}")
            }
            Ok(Envelope::Response { id, outcome }) => {
                said.answers = integer(&id);
                match outcome {
                    Outcome::Result(_) => format!("result for {id}"),
                    Outcome::Error { code, .. } => format!("error {code} for {id}"),
                }
            }
            Err(fault) => format!("no frame ({fault})"),
        },
    };
    said.words = safe::preview(words.as_bytes(), LABEL_BYTES);
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidecert_proto::transcript::{self, Record};

    /// What is told of these lines.
    fn told(lines: &[&str]) -> (Reading, Vec<Told>) {
        let mut reading = Reading::new(Side::Guest);
        let events = lines.iter().map(|line| match transcript::read(line.as_bytes()).unwrap() {
            Record::Event(event) => reading.read(&event, 40),
            other => panic!("{other:?}"),
        });
        let events = events.collect();
        (reading, events)
    }

    const INITIALIZE: &str =
        r#"{"t":1,"from":"host","as":"initialize","json":{"jsonrpc":"2.0","id":1,"method":"x/initialize"}}"#;
    const FENCED: &str =
        r#"{"t":2,"from":"host","as":"fence","json":{"jsonrpc":"2.0","id":2,"method":"x/cancel"}}"#;
    const LARGEST: &str = r#"{"t":3,"from":"host","as":"largest","fill":{"head":"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x/cancel\",\"params\":{\"a\":\"","byte":"a","n":9000,"tail":"\"}}"}}"#;

    #[test]
    fn frames_are_called_by_what_they_say() {
        let answer = r#"{"t":4,"from":"guest","json":{"jsonrpc":"2.0","id":1,"result":{}}}"#;
        let noise = r#"{"t":5,"from":"guest","text":"hello"}"#;
        let (_, told) = told(&[INITIALIZE, FENCED, LARGEST, answer, noise]);
        let labels: Vec<_> = told.iter().map(|told| told.frame.label.clone().unwrap()).collect();
        assert_eq!(
            labels,
            [
                "request 1, x/initialize",
                "marker request 2, x/cancel",
                "request 3, x/cancel",
                "result for 1",
                "no JSON (unexpected `h` at byte 0)",
            ]
        );
        assert_eq!(told[3].concerns.as_ref().unwrap().event, 0);
        assert_eq!(
            told.iter().map(|told| told.noise).collect::<Vec<_>>(),
            [false, false, false, false, true]
        );
    }

    #[test]
    fn causes_name_methods() {
        let (reading, _) = told(&[INITIALIZE, FENCED, LARGEST]);
        for (cause, shown, label) in [
            (
                "the guest exited with code 0 before it answered \"initialize\"",
                "the guest exited with code 0 before it answered x/initialize",
                Some("initialize"),
            ),
            (
                "no answer to initialize in 5 s; more",
                "no answer to x/initialize in 5 s; more",
                Some("initialize"),
            ),
            (
                "the guest answered initialize with the error -1",
                "the guest answered x/initialize with the error -1",
                Some("initialize"),
            ),
            (
                "gone before it answered \"largest\"",
                "gone before it answered x/cancel (largest)",
                Some("largest"),
            ),
            ("gone before it answered a fence", "gone before it answered a marker (x/cancel)", Some(FENCE)),
            (
                "the guest sent initialize back as it had come",
                "the guest sent x/initialize back as it had come",
                Some("initialize"),
            ),
            ("no answer to unknown in 5 s", "no answer to unknown in 5 s", None),
            ("the user interrupted the run", "the user interrupted the run", None),
            ("gone before it answered \"", "gone before it answered \"", None),
        ] {
            let (text, its) = reading.cause(cause);
            assert_eq!((text.as_str(), its.map(|its| its.label.as_str())), (shown, label));
        }
    }
}
