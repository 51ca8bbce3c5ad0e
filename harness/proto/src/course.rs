//! What a host did in each script of a recording, in a form in which two hosts can be put beside each other.
//!
//! What a host writes to one guest is in order, between guests there is none, so each launch of a guest has a strand of
//! its own; what the driver told is one more. Frames count as in a replay ([`said`]): as JSON
//! values, without what may differ each time. So do the names that a host makes up, and what it says to people.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contract::{Contract, Method, Side};
use crate::json::{Kind as Form, Node, Tape, quoted};
use crate::machine::LinkId;
use crate::play::FENCE;
use crate::reasonix::prose::MADE_UP;
use crate::replay::{said, volatile_of};
use crate::rpc::{self, Envelope, Id};
use crate::transcript::{Event, Frame, Kind, Told};

/// How many deeds of one strand are kept; what comes beyond is counted.
pub const DEEDS_MAX: usize = 4_096;

/// The longest deed that is kept, in bytes; of a longer one its length is.
pub const DEED_BYTES_MAX: usize = 1 << 20;

/// One script, as a host went through it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Which.
    pub script: String,
    /// Why it was not played to its end.
    pub cut: Option<String>,
    /// What the host did: first what its driver told, then to each guest, in the order of their launches.
    pub strands: Vec<Strand>,
}

/// What a host did to one guest, in order, or told through its driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strand {
    /// The guest, and which launch of it that was; `None` for what the driver told.
    pub guest: Option<(String, usize)>,
    /// What it did.
    pub deeds: Vec<Deed>,
    /// How many deeds came beyond [`DEEDS_MAX`].
    pub beyond: usize,
}

/// One frame, or something else that a host did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The method, or in words what it is.
    pub what: String,
    /// The interception point, where it has one.
    pub point: Option<String>,
    /// All that counts of it, as one JSON text in canonical form.
    pub json: String,
    /// The number of the event.
    pub event: u64,
}

/// Gathers the scripts of one recording, event by event.
#[derive(Debug)]
pub struct Courses<'c> {
    contract: &'c Contract,
    own: &'c Contract,
    done: Vec<Course>,
    script: Option<Script>,
    event: u64,
}

/// The script that is being read.
#[derive(Debug, Default)]
struct Script {
    name: String,
    links: BTreeMap<LinkId, Link>,
    launches: BTreeMap<String, usize>,
    /// What was asked for, by label, in order.
    asks: Vec<(String, String)>,
    /// Outcomes, by the place of their ask.
    outcomes: Vec<(usize, Deed)>,
    /// What was shown of answers, put together: where a shim cuts it is its own business.
    text: String,
    shown: Vec<Deed>,
}

#[derive(Debug, Default)]
struct Link {
    strand: Strand,
    /// The requests of our guest, by their ids as they are written: which method, and whether it is a fence.
    asked: BTreeMap<String, (String, bool)>,
}

impl<'c> Courses<'c> {
    /// Of a host whose contract this is; `own` is that of the suite, and says what is volatile.
    pub fn new(contract: &'c Contract, own: &'c Contract) -> Self {
        Self { contract, own, done: Vec::new(), script: None, event: 0 }
    }

    /// The next event.
    pub fn event(&mut self, event: &Event<'_>) {
        let number = self.event;
        self.event += 1;
        match &event.kind {
            Kind::Begin { script } => {
                self.script = Some(Script { name: script.to_string(), ..Script::default() });
            }
            Kind::Ended { cut, .. } => {
                let cut = cut.as_ref().map(ToString::to_string);
                self.done.extend(self.script.take().map(|script| script.finish(cut)));
            }
            Kind::Frame(frame) => self.frame(event.link, frame, number),
            Kind::Oversize { from: Side::Host, .. } => {
                self.other(event.link, "a line beyond the limit", "null", number);
            }
            Kind::Tail { from: Side::Host, payload } => {
                let text = quoted(&String::from_utf8_lossy(&payload.bytes()));
                self.other(event.link, "text without a line feed", &text, number);
            }
            Kind::Told { what, label, json } => {
                let Some(script) = &mut self.script else { return };
                let told = serde_json::from_str(json).unwrap_or_default();
                script.told(event.link, *what, label.as_deref(), &told, number);
            }
            _ => {}
        }
    }

    /// The scripts, in the order in which they were played.
    pub fn finish(mut self) -> Vec<Course> {
        let cut = "the recording ends in it".to_owned();
        self.done.extend(self.script.take().map(|script| script.finish(Some(cut))));
        self.done
    }

    fn frame(&mut self, link: LinkId, frame: &Frame<'_>, number: u64) {
        let bytes = frame.payload.bytes();
        let tape = Tape::scan(&bytes).ok();
        let envelope = tape.as_ref().and_then(|tape| rpc::classify(tape.root()).ok());
        if frame.from == Side::Guest {
            if let Some(Envelope::Request { id, method, .. }) = envelope
                && let Some(its) = self.script.as_mut().and_then(|script| script.links.get_mut(&link))
            {
                let is_fence = frame.label.as_deref() == Some(FENCE);
                its.asked.insert(written(&id), (method.into_owned(), is_fence));
            }
            return;
        }
        let Some(tape) = &tape else {
            return self.other(link, "what is no JSON", &quoted(&String::from_utf8_lossy(&bytes)), number);
        };
        let root = tape.root();
        match envelope {
            Some(Envelope::Response { id, .. }) => {
                let asked = self.script.as_mut().and_then(|script| script.links.get_mut(&link));
                let asked = asked.and_then(|link| {
                    let (method, is_fence) = link.asked.get(&written(&id))?.clone();
                    // Who answers a fence twice answers nothing the second time.
                    is_fence.then(|| link.asked.remove(&written(&id)));
                    Some((method, is_fence))
                });
                match asked {
                    Some((_, true)) => {}
                    Some((method, _)) => {
                        let json = Self::json(root, self.method(&method), true);
                        self.deed(link, format!("answer to {method}"), None, json, number);
                    }
                    None => {
                        // A number is the one of a frame of ours that was no request, and these are counted on.
                        let json = Self::json(root, None, matches!(id, Id::Integer(_)));
                        self.other(link, "an answer to nothing", &json, number);
                    }
                }
            }
            Some(Envelope::Request { method, .. } | Envelope::Notification { method, .. }) => {
                let point = root.get("params").and_then(|params| params.get("event"));
                let point = point.and_then(Node::as_str).map(|point| point.into_owned());
                let json = Self::json(root, self.method(&method), true);
                self.deed(link, method.into_owned(), point, json, number);
            }
            None => {
                let json = Self::json(root, None, false);
                self.other(link, "what is no frame", &json, number);
            }
        }
    }

    fn method(&self, name: &str) -> Option<&'c Method> {
        volatile_of(self.contract, self.own, name)
    }

    /// A frame without what does not count; `own` leaves its id out as well.
    fn json(root: Node<'_>, method: Option<&Method>, own: bool) -> String {
        let mut made_up = Vec::new();
        find_made_up(root, &mut made_up);
        // What an error asks people to do is in words of the host's, too.
        made_up.extend(root.pointer("/error/data/action"));
        said(root, method, own, &made_up)
    }

    fn other(&mut self, link: LinkId, what: &str, json: &str, number: u64) {
        self.deed(link, what.to_owned(), None, json.to_owned(), number);
    }

    fn deed(&mut self, link: LinkId, what: String, point: Option<String>, json: String, event: u64) {
        let its = self.script.as_mut().and_then(|script| script.links.get_mut(&link));
        let Some(strand) = its.map(|link| &mut link.strand) else { return };
        if strand.deeds.len() >= DEEDS_MAX {
            strand.beyond += 1;
            return;
        }
        let json = if json.len() > DEED_BYTES_MAX { format!("\"{} bytes\"", json.len()) } else { json };
        strand.deeds.push(Deed { what, point, json, event });
    }
}

impl Script {
    fn told(&mut self, link: LinkId, what: Told, label: Option<&str>, told: &Value, event: u64) {
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        match what {
            // What one of our guests started is no launch of the host's.
            Told::Launched if told["spawned"] != true => {
                let name = text("as");
                let launch = self.launches.entry(name.clone()).or_default();
                *launch += 1;
                let strand = Strand { guest: Some((name, *launch)), ..Strand::default() };
                self.links.insert(link, Link { strand, ..Link::default() });
            }
            Told::Ask => self.asks.push((label.unwrap_or_default().to_owned(), text("do"))),
            Told::Outcome => {
                let its = self.asks.iter().position(|(of, _)| Some(of.as_str()) == label);
                let Some(place) = its else { return };
                let does = self.asks[place].1.clone();
                let json = came_of(&does, told).to_string();
                let what = format!("outcome of {does}");
                self.outcomes.push((place, Deed { what, point: None, json, event }));
            }
            Told::Shown => {
                let shown = told;
                let part = |name: &str| shown[name].as_str().unwrap_or_default();
                if part("as") == "text" {
                    return self.text.push_str(part("text"));
                }
                // Most of what it says is in its own words; which fields a prompt has is not.
                let mut json = json!({});
                for name in ["plugin", "kind", "fields"] {
                    if !shown[name].is_null() {
                        json[name] = shown[name].clone();
                    }
                }
                let what = format!("{} shown", part("as"));
                self.shown.push(Deed { what, point: None, json: json.to_string(), event });
            }
            _ => {}
        }
    }

    fn finish(mut self, cut: Option<String>) -> Course {
        self.outcomes.sort_by_key(|(place, _)| *place);
        let mut deeds: Vec<Deed> = self.outcomes.into_iter().map(|(_, deed)| deed).collect();
        if !self.text.is_empty() {
            let what = "text shown".to_owned();
            deeds.push(Deed { what, point: None, json: quoted(&self.text), event: 0 });
        }
        // What is shown because of one thing and because of another has no order.
        self.shown.sort_by(|one, other| (&one.what, &one.json).cmp(&(&other.what, &other.json)));
        deeds.extend(self.shown);
        let driver = Strand { guest: None, deeds, beyond: 0 };
        let guests = self.links.into_values().map(|link| link.strand);
        Course { script: self.name, cut, strands: [driver].into_iter().chain(guests).collect() }
    }
}

/// What counts of an outcome: in most what the user is told is in the host's own words.
fn came_of(does: &str, told: &Value) -> Value {
    let ways = ["done", "blocked", "failed", "refused", "cannot"];
    let mut came = json!({ "came": ways.iter().find(|way| !told[**way].is_null()) });
    let mut also = vec!["reason"];
    match does {
        "turn" => also.push("text"),
        "models" => also.push("models"),
        _ => {}
    }
    for name in also {
        if !told[name].is_null() {
            came[name] = told[name].clone();
        }
    }
    came
}

/// The values of members that hold names that a host makes up, wherever they stand.
fn find_made_up<'n>(node: Node<'n>, found: &mut Vec<Node<'n>>) {
    for (name, value) in node.members() {
        if value.kind() == Form::String && MADE_UP.contains(&&*name) {
            found.push(value);
        } else {
            find_made_up(value, found);
        }
    }
    for element in node.elements() {
        find_made_up(element, found);
    }
}

fn written(id: &Id<'_>) -> String {
    format!("{id:?}")
}
