//! Link 0: what is asked of the shim, and what it says.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::ahead::Turn;
use super::{Cast, What};
use crate::json::{Kind as JsonKind, Node, Tape, quoted};
use crate::machine::{Action, Exited, Input, Micros};
use crate::script::{PROMPT, Pattern, Step, Template};
use crate::transcript::{Kind, Told, Wait};
use crate::wire::{Deframer, Line};

/// The version of the protocol with a shim.
pub(super) const VERSION: u64 = 1;
/// The longest line of a shim that is read, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;
/// What an outcome is but done, each with a text for the user.
const TEXTS: [&str; 4] = ["blocked", "failed", "refused", "cannot"];
/// How much of an outcome is told that is not the one of the script, in bytes.
const TOLD_BYTES_MAX: usize = 300;
/// How much standard error is recorded, in bytes.
const STDERR_BYTES_MOST: usize = 64 << 10;

/// What is known of the shim and the process that it is.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own: either end may end in any order"
)]
pub(super) struct Shim {
    pub(super) deframer: Option<Deframer>,
    pub(super) has_spoken: bool,
    pub(super) over: bool,
    pub(super) closed: bool,
    pub(super) broken: bool,
    pub(super) killed: bool,
    pub(super) exited: Option<Exited>,
    /// What it does, as `does/WORD`, and the tools of its host, as `tool/NAME`.
    pub(super) declared: BTreeSet<String>,
    /// Whether a session was begun that was not ended.
    pub(super) in_session: bool,
    /// The ask that gives its host a signal. The session is over when that is done.
    signalled: Option<String>,
    /// Whether what it is asked for takes as long as it takes: a person does it, for example.
    is_unhurried: bool,
    /// Whether a session of its host is one turn.
    is_per_turn: bool,
    /// That turn.
    pub(super) turn: Turn,
    /// Whether the host has done something to a guest since the last ask.
    is_stirred: bool,
    next_ask: u64,
    /// The asks without an outcome, and what they are called.
    open: BTreeMap<u64, String>,
    /// What came of the asks of this script that have an outcome, by their labels.
    pub(super) over_with: BTreeMap<String, String>,
    /// What the outcome must be that is waited for.
    expected: Option<Pattern>,
    stderr_kept: usize,
}

impl Default for Shim {
    fn default() -> Self {
        Self {
            deframer: Some(Deframer::new(LINE_BYTES_MAX)),
            has_spoken: false,
            over: false,
            closed: false,
            broken: false,
            killed: false,
            exited: None,
            declared: BTreeSet::new(),
            in_session: false,
            signalled: None,
            is_unhurried: false,
            is_per_turn: false,
            turn: Turn::None,
            is_stirred: false,
            next_ask: 1,
            open: BTreeMap::new(),
            over_with: BTreeMap::new(),
            expected: None,
            stderr_kept: 0,
        }
    }
}

impl Shim {
    /// Whether an ask waits for its outcome.
    pub(super) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether time passes for nobody while this is waited for: what was asked for is with somebody who takes the time
    /// that it takes. Where only silence is waited for, that ends once the host has begun to do it.
    pub(super) fn holds_time(&self, what: &What) -> bool {
        let is_held = match what {
            What::Silence { .. } | What::Frame { optional: true, .. } => !self.is_stirred,
            What::Outcome(_) | What::Launch(..) | What::Frame { .. } | What::Gone(_) | What::Alive(_) => true,
            What::Greeting | What::Fences | What::Exit | What::End { .. } => false,
        };
        self.is_unhurried && self.is_busy() && is_held
    }

    /// The host has done something to a guest.
    pub(super) fn stir(&mut self) {
        self.is_stirred = true;
    }

    /// Another script begins: what the labels of the last one meant is over.
    pub(super) fn begin(&mut self) {
        self.over_with.clear();
        self.signalled = None;
        self.turn = Turn::None;
    }

    /// Whether the ask of this label has its outcome.
    pub(super) fn is_over_with(&self, label: &str) -> bool {
        self.over_with.contains_key(label)
    }
}

impl Cast<'_> {
    pub(super) fn greet(&mut self, now: Micros) {
        let (suite, folder) = (quoted(self.suite), quoted(self.setting.folder));
        let line = format!(r#"{{"shim":{VERSION},"suite":{suite},"folder":{folder}}}"#);
        self.write(line);
        self.wait(Wait::Start, None, self.budget.first_byte, What::Greeting, now);
    }

    fn write(&mut self, mut line: String) {
        line.push('\n');
        let bytes = line.into_bytes().into();
        self.actions.push_back(Action::Write { link: 0, bytes, after_drain: false });
    }

    pub(super) fn ask(&mut self, label: &str, what: &Template, now: Micros) {
        if self.shim.over || self.shim.broken || self.shim.exited.is_some() {
            return self.cut(format!("{} before it could be asked for {label:?}", self.state()), now);
        }
        let Some(script) = &mut self.script else { return };
        let text = what.render(&mut script.ids, &mut self.next_id, &script.captures);
        let word = Tape::scan(text.as_bytes()).ok().and_then(|tape| Some(word_of(tape.root())?.into_owned()));
        let word = word.unwrap_or_default();
        if !self.shim.declared.contains(&format!("does/{word}")) {
            return self.beyond(&format!("the driver in use does not do `{word}`"), now);
        }
        match &*word {
            "turn" if self.shim.is_per_turn => return self.reach_turn(label, now),
            "start" => self.shim.in_session = true,
            "signal" => self.shim.signalled = Some(label.to_owned()),
            "stop" => {
                if let Some(first) = self.reach_end(now)
                    && let Some(script) = &mut self.script
                {
                    let this = Step::Ask { label: label.to_owned(), what: what.clone() };
                    return script.enter([first, this].into(), 1, None);
                }
                self.shim.in_session = false;
            }
            _ => {}
        }
        self.put(label, &text, now);
        if word == "start" && self.shim.is_per_turn {
            self.ask_ahead(label, now);
        }
    }

    /// Writes an ask.
    pub(super) fn put(&mut self, label: &str, text: &str, now: Micros) {
        let number = self.shim.next_ask;
        self.shim.next_ask += 1;
        self.shim.over_with.remove(label);
        self.shim.open.insert(number, label.to_owned());
        self.shim.is_stirred = false;
        let line = format!(r#"{{"ask":{number},{}"#, text.trim_start().trim_start_matches('{'));
        let (label, json) = (Some(Cow::Borrowed(label)), Cow::Borrowed(line.as_str()));
        self.note(0, now, Kind::Told { what: Told::Ask, label, json });
        self.write(line);
    }

    /// Ends the session before another script begins one.
    pub(super) fn stop_session(&mut self) {
        let Some(script) = &mut self.script else { return };
        let label = "stop".to_owned();
        let what = Template::new(r#"{"do":"stop"}"#);
        let steps =
            [Step::Ask { label: label.clone(), what }, Step::Outcome { of: label, within: None, is: None }];
        script.enter(steps.into(), 1, None);
    }

    pub(super) fn await_outcome(&mut self, of: &str, within: Option<u64>, is: Option<&Pattern>, now: Micros) {
        let within = within.map_or(self.budget.outcome, |millis| millis.saturating_mul(1_000));
        let known = self.shim.is_over_with(of);
        self.shim.expected = is.cloned();
        self.wait(Wait::Outcome, Some(of.to_owned()), within, What::Outcome(of.to_owned()), now);
        if known {
            self.take_outcome(of, now);
        } else if self.shim.over {
            self.cut_when_gone(format!("before it told what came of {of:?}"), now);
        }
    }

    pub(super) fn of_shim(&mut self, input: Input<'_>, now: Micros) {
        match input {
            Input::Bytes(chunk) => self.hear(chunk, now),
            Input::Eof => self.shim_over(now),
            Input::Broken => {
                if !std::mem::replace(&mut self.shim.broken, true) {
                    self.note(0, now, Kind::Broken);
                }
            }
            Input::Stderr(chunk) => {
                let room = STDERR_BYTES_MOST - self.shim.stderr_kept;
                let kept = &chunk[..chunk.len().min(room)];
                self.shim.stderr_kept += kept.len();
                if !chunk.is_empty() {
                    let dropped = (chunk.len() - kept.len()) as u64;
                    self.note(0, now, Kind::Stderr { text: String::from_utf8_lossy(kept), dropped });
                }
            }
            Input::Exited(exited) => self.exited(exited, now),
            Input::Left(left) => self.note(0, now, Kind::Left(left)),
            Input::Wrote(_)
            | Input::Launched(_)
            | Input::NotLaunched(_)
            | Input::Signal(_)
            | Input::Pong
            | Input::Interrupted
            | Input::Tick => {}
        }
    }

    fn hear(&mut self, chunk: &[u8], now: Micros) {
        self.shim.has_spoken |= !chunk.is_empty();
        let Some(mut deframer) = self.shim.deframer.take() else { return };
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => self.line_of_shim(line, now),
                Line::Oversize { seen, .. } => {
                    let says = format!("the shim wrote a line of {seen} bytes and more");
                    return self.cut(says, now);
                }
            }
        }
        self.shim.deframer = Some(deframer);
    }

    fn line_of_shim(&mut self, line: &[u8], now: Micros) {
        let Ok(tape) = Tape::scan(line) else {
            let text = quoted(&String::from_utf8_lossy(line));
            return self.told(0, Told::Other, &text, now);
        };
        let root = tape.root();
        let json = root.raw();
        if root.get("outcome").is_some() {
            return self.outcome(root, now);
        }
        let known = [("shown", Told::Shown), ("found", Told::Found), ("shim", Told::Shim)];
        let what = known.into_iter().find(|(name, _)| root.get(name).is_some()).map(|(_, what)| what);
        match what {
            Some(Told::Shim) => self.greeted(root, now),
            Some(what) => {
                // A prompt is answered under the name that it was shown with.
                if let (Some(script), Some(prompt)) = (&mut self.script, root.pointer("/shown/prompt")) {
                    script.captures.insert(PROMPT.to_owned(), prompt.raw().to_owned());
                }
                let body = root.get(what.name()).map_or(json, Node::raw).to_owned();
                self.told(0, what, &body, now);
            }
            None => self.told(0, Told::Other, json, now),
        }
    }

    fn greeted(&mut self, root: Node<'_>, now: Micros) {
        self.told(0, Told::Shim, root.raw(), now);
        if let Some(says) = unfit(root) {
            return self.cut(says, now);
        }
        let says = |name: &str| root.get(name).and_then(|it| it.as_bool()).unwrap_or_default();
        (self.shim.is_unhurried, self.shim.is_per_turn) = (says("unhurried"), says("perTurn"));
        for word in root.get("does").into_iter().flat_map(Node::elements) {
            if let Some(word) = word.as_str() {
                self.shim.declared.insert(format!("does/{word}"));
            }
        }
        for tool in root.get("tools").into_iter().flat_map(Node::elements) {
            if let Some(name) = tool.get("name").and_then(|name| name.as_str()) {
                self.shim.declared.insert(format!("tool/{name}"));
            }
        }
        if matches!(&self.waiting, Some(waiting) if matches!(waiting.what, What::Greeting)) {
            self.start = self.waiting.as_ref().map(|waiting| now.saturating_sub(waiting.since));
            self.came(now);
        }
    }

    fn outcome(&mut self, root: Node<'_>, now: Micros) {
        let number = root.get("outcome").and_then(|number| number.as_u64());
        let Some(label) = number.and_then(|number| self.shim.open.remove(&number)) else {
            self.told(0, Told::Other, root.raw(), now);
            let number = root.get("outcome").map_or("none", Node::raw);
            return self.cut(format!("the shim told what came of ask {number}, and none such is open"), now);
        };
        let is_done = root.get("done").is_some_and(|done| done.as_bool() == Some(true));
        if !is_done && !TEXTS.iter().any(|name| is_text(root, name)) {
            self.told(0, Told::Other, root.raw(), now);
            let says = format!("what the shim told of {label:?} is no outcome: {}", beginning(root.raw()));
            return self.cut(says, now);
        }
        let (as_label, json) = (Some(Cow::Borrowed(label.as_str())), Cow::Borrowed(root.raw()));
        self.note(0, now, Kind::Told { what: Told::Outcome, label: as_label, json });
        let cannot = root.get("cannot").and_then(|why| why.as_str());
        self.shim.over_with.insert(label.clone(), root.raw().to_owned());
        if self.shim.signalled.take_if(|it| *it == label).is_some() && root.get("done").is_some() {
            self.shim.in_session = false;
        }
        if self.shim.is_unhurried
            && let Some(waiting) = &mut self.waiting
            && waiting.deadline.is_some()
        {
            // What was held is on time again from now on.
            waiting.deadline = Some(now.saturating_add(waiting.within));
        }
        if let Some(why) = cannot {
            return self.beyond(&why, now);
        }
        match self.waiting.as_ref().map(|waiting| &waiting.what) {
            Some(What::Outcome(of)) if *of == label => self.take_outcome(&label, now),
            Some(What::Frame { .. } | What::Launch(..)) => self.give_up_waiting(now),
            _ => {}
        }
    }

    /// What was asked for is over: goes on if that came of it which the script says.
    fn take_outcome(&mut self, of: &str, now: Micros) {
        let (Some(expected), Some(script)) = (self.shim.expected.take(), &mut self.script) else {
            return self.fence(now);
        };
        let raw = self.shim.over_with.get(of).map(String::as_str).unwrap_or_default();
        let is_it = |tape: Tape<'_>| expected.matches(tape.root(), &script.ids, &mut script.captures);
        if Tape::scan(raw.as_bytes()).is_ok_and(is_it) {
            return self.fence(now);
        }
        let says = format!("what came of {of:?} is not what the script says, but {}", beginning(raw));
        self.cut(says, now);
    }

    /// When nothing that was asked is going on any more, what is awaited of it will not come: see whether it has.
    pub(super) fn give_up_waiting(&mut self, now: Micros) {
        let asked = self.script.is_some() && !self.shim.over_with.is_empty();
        let waits = self.waiting.as_ref().is_some_and(|waiting| match &waiting.what {
            What::Frame { .. } => waiting.label.is_none(),
            // One that a guest of ours starts is not the host's to start.
            What::Launch(..) => self.spawning == 0,
            _ => false,
        });
        if asked && waits && !self.shim.is_busy() {
            self.fence(now);
        }
    }

    /// The driver cannot bring about what the script needs: it ends here, without a fault of the host.
    pub(super) fn beyond(&mut self, why: &str, now: Micros) {
        self.told(0, Told::Beyond, &quoted(why), now);
        (self.waiting, self.hearing, self.fencing) = (None, None, None);
        if let Some(script) = &mut self.script {
            script.stack.clear();
        }
    }

    fn shim_over(&mut self, now: Micros) {
        let tail = self.shim.deframer.take().map(|deframer| deframer.tail().to_vec()).unwrap_or_default();
        if !tail.is_empty() {
            self.told(0, Told::Other, &quoted(&String::from_utf8_lossy(&tail)), now);
        }
        self.note(0, now, Kind::Closed { from: crate::contract::Side::Host });
        self.over(now);
    }
}

/// Why the first line of a shim is none that this can go on with. What it does is never guessed: with nothing to ask
/// for, everything would be out of reach, and no fault of a host be found.
fn unfit(root: Node<'_>) -> Option<String> {
    let version = root.get("shim");
    if version.and_then(|version| version.as_u64()) != Some(VERSION) {
        let raw = version.map_or("none", |version| version.raw());
        return Some(format!("the shim speaks version {raw} of its protocol, and not {VERSION}"));
    }
    if let Some(name) = ["name", "version"].into_iter().find(|name| !is_text(root, name)) {
        return Some(format!("the first line of the shim has no text {name:?}"));
    }
    let does = root.get("does").filter(|does| does.kind() == JsonKind::Array);
    if !does.is_some_and(|does| does.elements().all(|word| word.kind() == JsonKind::String)) {
        return Some("the first line of the shim has no list of words \"does\"".to_owned());
    }
    None
}

fn is_text(root: Node<'_>, name: &str) -> bool {
    root.get(name).is_some_and(|it| it.kind() == JsonKind::String)
}

/// As much of a line as is told.
fn beginning(raw: &str) -> &str {
    &raw[..raw.floor_char_boundary(TOLD_BYTES_MAX)]
}

/// What an ask asks for.
pub(super) fn word_of(root: Node<'_>) -> Option<Cow<'_, str>> {
    if root.kind() == JsonKind::Object { root.get("do")?.as_str() } else { None }
}
