//! From a recording to a script: what the host's side did in it, and what it waited for.
//!
//! Our frames stand in it as they were written, under the ids that they had. Before each of them the script awaits what
//! the target had said by then: an answer by its id and whether it was a result or which error, a request or a
//! notification by its method. Where the host answered a request of the target, the answer takes the id from there. So
//! the script plays against another target as well, and goes no further than the target follows.

use std::collections::BTreeMap;

use super::{Outgoing, Pattern, Process, Reaction, Reply, Script, Step, Template, Within};
use crate::contract::Side;
use crate::json::{Tape, quoted};
use crate::machine::Exited;
use crate::rpc::{self, Envelope, Id, Outcome};
use crate::transcript::{Event, Frame, Kind, Payload};

/// Makes a script of the events of one process, in order.
#[derive(Debug)]
pub struct Recorded {
    script: Script,
    /// The target's requests that wait for our answer, and the captures that hold their ids.
    asked: BTreeMap<i64, String>,
    requests: usize,
    /// How many frames have this label, so that each has one of its own.
    labels: BTreeMap<String, usize>,
    /// Where in the steps the last frame with a label stands.
    last: BTreeMap<String, usize>,
    /// Whether the target has answered anything.
    answered: bool,
    killed: bool,
}

impl Recorded {
    /// A script called `name`.
    pub fn new(name: &str) -> Self {
        let mut script = Script { process: Process::Bare, ..Script::new(name) };
        // What the recording does not answer, nobody does.
        let request =
            Pattern::Members(vec![("id".to_owned(), Pattern::Any), ("method".to_owned(), Pattern::Any)]);
        script.reactions.push(Reaction { when: request, reply: Reply::Never, times: None, guest: None });
        Self {
            script,
            asked: BTreeMap::new(),
            requests: 0,
            labels: BTreeMap::new(),
            last: BTreeMap::new(),
            answered: false,
            killed: false,
        }
    }

    /// The next event.
    pub fn event(&mut self, event: &Event<'_>) {
        match &event.kind {
            Kind::Frame(frame) if frame.from == Side::Host => self.ours(frame),
            Kind::Frame(frame) => self.theirs(frame),
            Kind::Wrote { label, parts } => self.cut(label.as_deref(), parts),
            Kind::Closed { from: Side::Host } => {
                self.script.steps.push(Step::Close);
            }
            Kind::Killed => {
                self.killed = true;
                self.script.steps.push(Step::Kill);
            }
            // It left by itself, whatever we did then: it is not ended before it could do so again.
            Kind::Exited(Exited::Code(_)) => {
                self.script.steps.retain(|step| *step != Step::Kill);
                self.script.steps.push(Step::Exit);
            }
            Kind::Exited(_) if !self.killed => self.script.steps.push(Step::Exit),
            _ => {}
        }
    }

    /// The script.
    pub fn finish(self) -> Script {
        self.script
    }

    fn ours(&mut self, frame: &Frame<'_>) {
        let name = frame.label.as_deref().unwrap_or("frame");
        let count = self.labels.entry(name.to_owned()).or_default();
        *count += 1;
        let label = if *count == 1 { name.to_owned() } else { format!("{name}-{count}") };
        let outgoing = self.outgoing(&frame.payload);
        self.last.insert(name.to_owned(), self.script.steps.len());
        let label = Some(label);
        let departs = frame.departs.as_deref().map(str::to_owned);
        self.script.steps.push(match departs {
            _ if frame.open => Step::Tail {
                label,
                departs: departs.unwrap_or_else(|| "it has no line feed".to_owned()),
                frame: outgoing,
            },
            Some(departs) => Step::Raw { label, departs, frame: outgoing },
            None => Step::Send { label, frame: outgoing },
        });
    }

    /// A frame of ours as it was; an answer takes its id from the request that it answers.
    fn outgoing(&mut self, payload: &Payload<'_>) -> Outgoing {
        let Payload::Json(text) = payload else { return verbatim(payload) };
        let Ok(tape) = Tape::scan(text.as_bytes()) else { return verbatim(payload) };
        let root = tape.root();
        let Ok(Envelope::Response { id: Id::Integer(id), .. }) = rpc::classify(root) else {
            return verbatim(payload);
        };
        let Some((capture, node)) = self.asked.remove(&id).zip(root.get("id")) else {
            return verbatim(payload);
        };
        let (start, end) = (node.offset(), node.offset() + node.raw().len());
        let hole = format!(r#"{{"$capture":{}}}"#, quoted(&capture));
        let template = Template::new(format!("{}{hole}{}", &text[..start], &text[end..]));
        // A frame that happens to look like a template elsewhere must stay as it is.
        if template.holes() == 1 { Outgoing::Template(template) } else { verbatim(payload) }
    }

    fn theirs(&mut self, frame: &Frame<'_>) {
        let bytes = frame.payload.bytes();
        let Ok(tape) = Tape::scan(&bytes) else { return };
        let name = |name: &str, pattern: Pattern| (name.to_owned(), pattern);
        let mut within = Within::Answer;
        let pattern = match rpc::classify(tape.root()) {
            Ok(Envelope::Response { outcome, .. }) => {
                let id = tape.root().get("id").map_or("null", |id| id.raw()).to_owned();
                if !std::mem::replace(&mut self.answered, true) {
                    within = Within::Start;
                }
                let said = match outcome {
                    Outcome::Result(_) => name("result", Pattern::Any),
                    Outcome::Error { code, .. } => {
                        name("error", Pattern::Members(vec![name("code", Pattern::Value(code.to_string()))]))
                    }
                };
                vec![name("id", Pattern::Value(id)), said]
            }
            Ok(Envelope::Request { id, method, .. }) => {
                self.requests += 1;
                let capture = format!("request-{}", self.requests);
                if let Id::Integer(id) = id {
                    self.asked.insert(id, capture.clone());
                }
                let id = name("id", Pattern::Capture(capture, Box::new(Pattern::Any)));
                vec![id, name("method", Pattern::Value(quoted(&method)))]
            }
            Ok(Envelope::Notification { method, .. }) => {
                vec![name("id", Pattern::Absent), name("method", Pattern::Value(quoted(&method)))]
            }
            // What is no frame cannot be awaited; replaying still compares it.
            Err(_) => return,
        };
        self.script.steps.push(Step::Await { frame: Pattern::Members(pattern), within });
    }

    /// How a frame was cut is recorded behind it.
    fn cut(&mut self, label: Option<&str>, parts: &[u64]) {
        let Some(at) = self.last.get(label.unwrap_or("frame")).copied().filter(|_| parts.len() > 1) else {
            return;
        };
        let mut sum = 0_usize;
        let places = parts[..parts.len() - 1].iter().map(|part| {
            sum = sum.saturating_add(usize::try_from(*part).unwrap_or(usize::MAX));
            sum
        });
        self.script.steps.insert(at, Step::Cut { at: places.collect() });
        for place in self.last.values_mut().filter(|place| **place >= at) {
            *place += 1;
        }
    }
}

/// The frame as it was written, whatever it looks like.
fn verbatim(payload: &Payload<'_>) -> Outgoing {
    let owned = match payload {
        Payload::Json(text) | Payload::Text(text) => {
            let template = Template::new(text.clone().into_owned());
            if template.holes() == 0 {
                return Outgoing::Template(template);
            }
            Payload::Bytes(text.as_bytes().to_vec().into())
        }
        Payload::Bytes(bytes) => Payload::Bytes(bytes.to_vec().into()),
        Payload::Fill { head, byte, count, tail } => Payload::Fill {
            head: head.clone().into_owned().into(),
            byte: *byte,
            count: *count,
            tail: tail.clone().into_owned().into(),
        },
    };
    Outgoing::Payload(owned)
}
