//! A recording without what was written in it: free text becomes a placeholder, everything else stays.
//!
//! A text is kept if the contract spells it, or if it reads as a name and stands where a name may. Any other becomes a
//! placeholder that is as long as it was written: the same text always the same, another one another. Names of
//! members, numbers, truth values, the form of each frame and its length never change.

mod contents;
mod loose;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::contract::{Contract, Side};
use crate::json::{self, Elements, Kind as JsonKind, Members, Node, Tape};
use crate::log;
use crate::run::Run;
use crate::transcript::{Event, Frame, Kind, Payload, Told};
use contents::Contents;

pub use contents::{CONTENT_BYTES_MAX, TooMuch};

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// What stands before an answer where a play says why it cut a script short.
const CUT_BY: [&str; 3] = [" with the result ", " with the error ", " under the id "];
/// What fills a placeholder up.
const FILL: char = '.';

/// Whose texts are replaced, and which not.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The sides whose texts are replaced, but for those that the other one wrote first. Of the other one only those are
    /// that one of these wrote before. What a host is asked for is the guest's to say: who plays that asks it, too.
    pub sides: Vec<Side>,
    /// JSON pointers into frames, below which texts are kept; `*` stands for any one token. What a driver tells is below
    /// the name of its line: `/outcome/text`.
    pub keep: Vec<String>,
    /// Where a text is free, however much it reads as a name.
    pub free: Free,
}

/// Parts of names that look like those of secrets, in upper case.
const SECRET_PARTS: [&str; 11] = [
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
    "BEARER",
    "AUTHORIZATION",
];

/// Whether what is called so (a variable, a member) is likely to be a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| name.contains(part)) || name.ends_with("_KEY")
}

/// Names of members that hold free text.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// Those whose own texts are free.
    pub texts: &'static [&'static str],
    /// Those below which every text is free, at any depth.
    pub trees: &'static [&'static str],
}

/// What has become of texts so far. One serves all transcripts of a run, so that the same text stays the same.
#[derive(Debug)]
pub struct Redaction {
    words: BTreeSet<String>,
    sides: Vec<Side>,
    keep: Vec<Vec<String>>,
    free: Free,
    /// The number of each text, by its written length and its hash; and how many there are of a length.
    numbers: BTreeMap<(usize, u64), u64>,
    counts: BTreeMap<usize, u64>,
    /// The hashes of texts of a side whose texts stay, which stay when the other one says them again.
    staying: BTreeSet<u64>,
    contents: Contents,
    /// Whether only texts that have a number already are replaced.
    known_only: bool,
}

impl Redaction {
    /// Nothing was replaced yet. What `contract` spells is kept.
    pub fn new(contract: &Contract, rule: &Rule) -> Self {
        let document = contract.document().to_string();
        let mut words = BTreeSet::new();
        if let Ok(tape) = Tape::scan(document.as_bytes()) {
            let strings = tape.root().walk().filter_map(|(_, node)| node.as_str().map(Cow::into_owned));
            words.extend(strings);
            let names = tape.root().walk().flat_map(|(_, node)| node.members());
            words.extend(names.map(|(name, _)| name.into_owned()));
        }
        let tokens = |pointer: &String| {
            let tokens = pointer.split('/').skip(1);
            tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
        };
        Self {
            words,
            sides: rule.sides.clone(),
            keep: rule.keep.iter().map(tokens).collect(),
            free: rule.free,
            numbers: BTreeMap::new(),
            counts: BTreeMap::new(),
            staying: BTreeSet::new(),
            contents: Contents::default(),
            known_only: false,
        }
    }

    /// A process begins: what was kept outside of the frames of the last one is forgotten.
    pub fn begin(&mut self) {
        self.contents = Contents::default();
    }

    /// Looks for content that travels outside of its frame. A process is looked through before it is redacted.
    pub fn look(&mut self, payload: &Payload<'_>) -> Result<(), TooMuch> {
        match payload {
            Payload::Json(text) if self.sides.contains(&Side::Host) => self.contents.look(text),
            _ => Ok(()),
        }
    }

    /// Everything was looked at.
    pub fn looked(&mut self) {
        let found = self.contents.take_found();
        for (reference, pointer, bytes) in found {
            let redacted = self.content(&bytes, &pointer);
            self.contents.settle(&reference, &bytes, redacted);
        }
    }

    /// The event without what was written in it.
    pub fn event<'a>(&mut self, event: &'a Event<'a>) -> Event<'a> {
        let kind = match &event.kind {
            Kind::Frame(frame) => {
                let payload = self.payload(frame.from, &frame.payload);
                Kind::Frame(Frame { payload, ..frame.clone() })
            }
            Kind::Tail { from, payload } => Kind::Tail { from: *from, payload: self.payload(*from, payload) },
            Kind::Oversize { from, head, seen } => {
                let head = self.of(*from, |it| it.loose(head, &mut loose::State::default()));
                Kind::Oversize { from: *from, head: head.into(), seen: *seen }
            }
            Kind::Stderr { text, dropped } => {
                let text = self.of(Side::Guest, |it| it.lines(text));
                Kind::Stderr { text: text.into(), dropped: *dropped }
            }
            Kind::Left(left) => {
                let mut left = left.clone();
                left.name = self.of(Side::Guest, |it| it.word(&left.name));
                Kind::Left(left)
            }
            Kind::Ended { script, cut: Some(cut) } => {
                let cut = self.of(Side::Guest, |it| it.cut(cut));
                Kind::Ended { script: script.clone(), cut: Some(cut.into()) }
            }
            Kind::Told { what, label, json } => {
                let from = if *what == Told::Ask { Side::Guest } else { Side::Host };
                let json = self.of(from, |it| it.json(json, &[what.name()])).into();
                Kind::Told { what: *what, label: label.clone(), json }
            }
            Kind::Unknown(line) => Kind::Unknown(self.json(line, &[]).into()),
            other => other.clone(),
        };
        Event { t: event.t, link: event.link, kind }
    }

    /// A line of a log of both directions, as [`log::Log`] reads it.
    pub fn log_line(&mut self, line: &str) -> String {
        let Ok(tape) = Tape::scan(line.as_bytes()) else { return self.text(line) };
        let root = tape.root();
        let from = root.get(log::DIRECTION).and_then(|it| it.as_str()).and_then(|it| log::side(&it));
        let mut edits = Vec::new();
        for (name, member) in root.members() {
            let (at, raw) = (member.offset(), member.raw());
            let side = from.unwrap_or(Side::Guest);
            let new = match (&*name, member.as_str()) {
                (log::DIRECTION, _) if from.is_some() => continue,
                ("frame", _) => self.of(side, |it| it.json(raw, &[])),
                ("raw", Some(text)) => {
                    let payload = self.payload(side, &Payload::Text(text)).bytes().into_owned();
                    json::quoted(&String::from_utf8_lossy(&payload))
                }
                _ => self.json(raw, &[]),
            };
            edits.push((at, at + raw.len(), new));
        }
        spliced(line, &edits)
    }

    /// What describes a run, without paths and what was written.
    pub fn run(&mut self, run: &Run) -> Run {
        let mut new = run.clone();
        new.manifest = run.manifest.as_deref().map(|text| self.json(text, &[]));
        new.provocations.values_mut().for_each(|frame| *frame = self.json(frame, &["params"]));
        new.workspace = self.text(&run.workspace);
        for word in new.argv.iter_mut().chain(&mut new.options) {
            *word = self.word(word);
        }
        new.withheld.iter_mut().for_each(|name| *name = self.text(name));
        new.redacted = true;
        new
    }

    /// What `from` wrote is treated as the rule says for that side.
    fn of<T>(&mut self, from: Side, redact: impl FnOnce(&mut Self) -> T) -> T {
        self.known_only = !self.sides.contains(&from);
        let new = redact(self);
        self.known_only = false;
        new
    }

    fn payload(&mut self, from: Side, payload: &Payload<'_>) -> Payload<'static> {
        self.of(from, |it| match payload {
            Payload::Json(text) => Payload::Json(it.json(text, &[]).into()),
            // JSON with white space around it.
            Payload::Text(text) if Tape::scan(text.as_bytes()).is_ok() => {
                Payload::Text(it.json(text, &[]).into())
            }
            Payload::Text(text) => {
                let bytes = it.loose(text.as_bytes(), &mut loose::State::default());
                Payload::Text(String::from_utf8_lossy(&bytes).into_owned().into())
            }
            Payload::Bytes(bytes) => Payload::Bytes(it.loose(bytes, &mut loose::State::default()).into()),
            Payload::Fill { head, byte, count, tail } => {
                let mut state = loose::State::default();
                let mut part = |text: &str| {
                    String::from_utf8_lossy(&it.loose(text.as_bytes(), &mut state)).into_owned().into()
                };
                Payload::Fill { head: part(head), byte: *byte, count: *count, tail: part(tail) }
            }
        })
    }

    /// What travels outside of a frame, the value at `pointer` of its params.
    fn content(&mut self, bytes: &[u8], pointer: &str) -> Vec<u8> {
        let path: Vec<&str> = ["params"].into_iter().chain(pointer.split('/').skip(1)).collect();
        match std::str::from_utf8(bytes) {
            Ok(text) if Tape::scan(bytes).is_ok() => self.json(text, &path).into_bytes(),
            _ => self.loose(bytes, &mut loose::State::default()),
        }
    }

    /// Why a script was cut short: our words, and then those of an answer.
    fn cut(&mut self, cut: &str) -> String {
        let ends = CUT_BY.iter().filter_map(|lead| cut.find(lead).map(|at| at + lead.len()));
        let (ours, said) = cut.split_at(ends.min().unwrap_or(cut.len()));
        let said = self.loose(said.as_bytes(), &mut loose::State::default());
        format!("{ours}{}", String::from_utf8_lossy(&said))
    }

    /// A JSON text, the value at `path` of a frame.
    fn json(&mut self, text: &str, path: &[&str]) -> String {
        let Ok(tape) = Tape::scan(text.as_bytes()) else { return self.text(text) };
        let mut edits = Vec::new();
        self.value(tape.root(), path, false, &mut edits);
        spliced(text, &edits)
    }

    /// Every text in a value: where it begins and ends, and what stands there instead. Any depth will do.
    fn value(&mut self, root: Node<'_>, path: &[&str], free: bool, edits: &mut Vec<(usize, usize, String)>) {
        let mut path: Vec<Cow<'_, str>> = path.iter().map(|&token| Cow::Borrowed(token)).collect();
        let name = path.last().cloned().unwrap_or_default();
        let free = free || path.iter().any(|token| self.free.trees.contains(&&**token));
        let mut open: Vec<Open<'_>> = Vec::new();
        let mut next = Some(Place { node: root, name, within: None, free });
        loop {
            let Some(place) = next.take() else {
                let Some(level) = open.last_mut() else { return };
                path.truncate(level.depth);
                match level.child(self.free) {
                    Some((token, place)) => {
                        path.push(token);
                        next = Some(place);
                    }
                    None => drop(open.pop()),
                }
                continue;
            };
            match place.node.kind() {
                JsonKind::String if !self.is_kept_at(&path) => self.string(&place, edits),
                JsonKind::Array | JsonKind::Object => open.push(Open::of(place, path.len())),
                _ => {}
            }
        }
    }

    fn is_kept_at(&self, path: &[Cow<'_, str>]) -> bool {
        let fits = |pattern: &Vec<String>| {
            let mut tokens = pattern.iter().zip(path);
            pattern.len() <= path.len() && tokens.all(|(wanted, token)| wanted == "*" || wanted == token)
        };
        self.keep.iter().any(fits)
    }

    fn string(&mut self, place: &Place<'_>, edits: &mut Vec<(usize, usize, String)>) {
        let (node, raw) = (place.node, place.node.raw());
        let written = &raw[1..raw.len() - 1];
        let said = node.as_str().unwrap_or_default();
        let start = node.offset() + 1;
        let new = match self.content_member(place, &said) {
            Some(new) => new,
            None if self.is_kept(&place.name, place.free, &said) => return,
            // A text may hold JSON, as the arguments of a tool do: it stays JSON.
            None if said.starts_with(['{', '['])
                && !node.has_lone_surrogate()
                && Tape::scan(said.as_bytes()).is_ok() =>
            {
                return self.nested(&said, written, start, place, edits);
            }
            None if node.has_lone_surrogate() => {
                let half = r"\ud800";
                self.placeholder(&said, written.len() - half.len()).map_or(written.to_owned(), |it| it + half)
            }
            None => self.placeholder(&said, written.len()).unwrap_or_else(|| written.to_owned()),
        };
        edits.push((start, start + written.len(), new));
    }

    /// A JSON text in a JSON string: its own texts are replaced where they are written in the outer one.
    fn nested(
        &mut self,
        said: &str,
        written: &str,
        start: usize,
        place: &Place<'_>,
        edits: &mut Vec<(usize, usize, String)>,
    ) {
        let Ok(tape) = Tape::scan(said.as_bytes()) else { return };
        let origins = json::origins(written);
        let free = place.free || self.is_free(&place.name);
        for (_, node) in tape.root().walk().filter(|(_, node)| node.kind() == JsonKind::String) {
            let text = node.as_str().unwrap_or_default();
            if self.is_kept("", free, &text) {
                continue;
            }
            let (from, to) = (origins[node.offset() + 1], origins[node.offset() + node.raw().len() - 1]);
            if let Some(new) = self.placeholder(&text, to - from) {
                edits.push((start + from, start + to, new));
            }
        }
    }

    /// What stands for a member of a description or a page of content.
    fn content_member(&mut self, place: &Place<'_>, said: &str) -> Option<String> {
        let object = place.within.filter(|_| self.sides.contains(&Side::Host))?;
        if let Some(digest) = self.contents.digest(&place.name, object, said) {
            return Some(digest);
        }
        let page = contents::page(&place.name, object, said)?;
        let new = match self.contents.page_of(&page) {
            Some(new) => new.to_vec(),
            None => self.loose(&page.bytes, &mut loose::State::default()),
        };
        Some(contents::encoded(&new))
    }

    // ---- texts ----

    fn is_free(&self, name: &str) -> bool {
        self.free.texts.contains(&name) || self.free.trees.contains(&name) || looks_secret(name)
    }

    /// Whether a text under a member of this name stays.
    fn is_kept(&self, name: &str, free: bool, text: &str) -> bool {
        text.trim().is_empty()
            || self.words.contains(text)
            || (!free && !self.is_free(name) && reads_as_a_name(text))
    }

    /// Free text.
    fn text(&mut self, text: &str) -> String {
        if text.trim().is_empty() {
            return text.to_owned();
        }
        self.placeholder(text, text.len()).unwrap_or_else(|| text.to_owned())
    }

    /// A word of a command line, or the like.
    fn word(&mut self, word: &str) -> String {
        if reads_as_a_name(word) { word.to_owned() } else { self.text(word) }
    }

    /// Free text, line by line.
    fn lines(&mut self, text: &str) -> String {
        text.split('\n').map(|line| self.text(line)).collect::<Vec<_>>().join("\n")
    }

    /// What stands for a text that takes `bytes` bytes: ASCII that needs no escape. `None` for a text that stays.
    fn placeholder(&mut self, text: &str, bytes: usize) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        let key = (bytes, hash);
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if self.known_only => {
                self.staying.insert(hash);
                return None;
            }
            None if self.staying.contains(&hash) => return None,
            None => {
                let count = self.counts.entry(bytes).or_default();
                *count += 1;
                self.numbers.insert(key, *count - 1);
                *count - 1
            }
        };
        let mut new = base_36(number);
        if new.len() > bytes {
            new.drain(..new.len() - bytes);
        }
        new.extend(std::iter::repeat_n(FILL, bytes - new.len()));
        Some(new)
    }
}

/// A value, and where it stands.
struct Place<'a> {
    node: Node<'a>,
    /// The name of the member that it is, or that the arrays are which it stands in.
    name: Cow<'a, str>,
    /// The object that it is a member of.
    within: Option<Node<'a>>,
    /// Whether every text in it is free.
    free: bool,
}

/// A container that is gone through.
struct Open<'a> {
    place: Place<'a>,
    depth: usize,
    members: Members<'a>,
    elements: Elements<'a>,
    index: usize,
}

impl<'a> Open<'a> {
    fn of(place: Place<'a>, depth: usize) -> Self {
        let (members, elements) = (place.node.members(), place.node.elements());
        Self { place, depth, members, elements, index: 0 }
    }

    fn child(&mut self, names: Free) -> Option<(Cow<'a, str>, Place<'a>)> {
        if let Some((name, node)) = self.members.next() {
            let free = self.place.free || names.trees.contains(&&*name);
            let within = Some(self.place.node);
            return Some((name.clone(), Place { node, name, within, free }));
        }
        let node = self.elements.next()?;
        let token = Cow::Owned(self.index.to_string());
        self.index += 1;
        Some((token, Place { node, name: self.place.name.clone(), within: None, free: self.place.free }))
    }
}

/// Whether a text may be a name: short, of the characters of names, and no path from the root or a home.
fn reads_as_a_name(text: &str) -> bool {
    let of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:+-".contains(&byte);
    text.len() <= NAME_BYTES_MAX
        && !text.starts_with('/')
        && !text.contains(":/")
        && text.bytes().all(of_names)
}

fn base_36(mut number: u64) -> String {
    let mut digits = VecDeque::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or_default();
        digits.push_front(char::from_digit(digit, 36).unwrap_or_default());
        number /= 36;
        if number == 0 {
            return digits.into_iter().collect();
        }
    }
}

/// `text` with other words from each place to another, which stand in order.
fn spliced(text: &str, edits: &[(usize, usize, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (from, to, new) in edits {
        out.push_str(&text[done..*from]);
        out.push_str(new);
        done = *to;
    }
    out.push_str(&text[done..]);
    out
}
