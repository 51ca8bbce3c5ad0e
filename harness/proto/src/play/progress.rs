//! How far a script has come: its steps, its reactions, and what it has captured.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::json::{FaultKind, Kind, Node, Tape};
use crate::machine::{LinkId, Micros};
use crate::rpc::{self, Envelope, Id};
use crate::script::{Captures, Pattern, Reaction, Reply, Script, Step, Template};

/// How many frames that no step has claimed are kept for steps to come.
const UNCLAIMED_MOST: usize = 4096;

/// The script that is being played.
pub(super) struct Playing {
    pub(super) name: String,
    pub(super) stack: Vec<Level>,
    pub(super) reactions: Vec<(Reaction, u32)>,
    /// Answers that wait for fences to come.
    pub(super) deferred: Vec<(u32, Vec<u8>)>,
    pub(super) ids: BTreeMap<String, i64>,
    pub(super) captures: Captures,
    /// Frames that no step has claimed; kept only where a step may come that asks for one.
    pub(super) unclaimed: Option<VecDeque<(LinkId, Vec<u8>)>>,
    pub(super) cut_at: Vec<usize>,
    /// Whether a step asks if everything was answered, so that it is counted.
    pub(super) settles: bool,
    pub(super) due: Due,
    /// How many fences of it were answered and silences were over.
    pub(super) fences: u32,
}

/// A list of steps, and how far it has come.
pub(super) struct Level {
    pub(super) steps: Rc<[Step]>,
    pub(super) next: usize,
    pub(super) again: u32,
    /// The elements still to come, last first, and the capture that takes them.
    pub(super) each: Option<(Vec<String>, String)>,
}

/// The frames of ours that may still be answered.
#[derive(Default)]
pub(super) struct Due {
    asked: BTreeMap<i64, Asked>,
    /// Those that are wrong on purpose, and may be refused under no id as well as under their own.
    odd: BTreeMap<i64, String>,
    /// How many more may be refused, and have no id that could be told.
    nameless: usize,
}

/// A request of ours that is in order.
struct Asked {
    method: String,
    /// How long its answer may take, as it says itself, in microseconds.
    allowed: Micros,
}

impl Due {
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.odd.is_empty() && self.nameless == 0
    }

    /// How long the next of those that wait may take, as the frames themselves say, in microseconds.
    pub(super) fn allowed(&self) -> Micros {
        self.asked.values().map(|asked| asked.allowed).max().unwrap_or_default()
    }

    /// How long all of them may take to a target that serves one after the other, in microseconds.
    pub(super) fn allowed_in_all(&self) -> Micros {
        self.asked.values().fold(0, |all, asked| all.saturating_add(asked.allowed))
    }

    /// The oldest request that must be answered and is not: its id and its method.
    pub(super) fn first(&self) -> Option<(i64, &str)> {
        self.asked.first_key_value().map(|(id, asked)| (*id, asked.method.as_str()))
    }

    /// The methods of the requests that must be answered and are not, the oldest first.
    pub(super) fn methods(&self) -> impl Iterator<Item = &str> {
        self.asked.values().map(|asked| asked.method.as_str())
    }

    /// The method of the request with this id, if it is due, in order or not.
    pub(super) fn method_of(&self, id: i64) -> Option<&str> {
        self.asked(id).or_else(|| self.odd.get(&id).map(String::as_str))
    }

    /// The method of the request with this id, if it is due and in order.
    pub(super) fn asked(&self, id: i64) -> Option<&str> {
        self.asked.get(&id).map(|asked| asked.method.as_str())
    }

    /// A frame of ours goes out: a blank line, a notification and a response are never answered.
    pub(super) fn sent(&mut self, bytes: &[u8], departs: bool) {
        let tape = match Tape::scan(bytes) {
            Ok(tape) if !bytes.contains(&b'\n') => tape,
            Ok(_) => return self.nameless += 1,
            Err(fault) => return self.nameless += usize::from(fault.kind != FaultKind::Empty),
        };
        let root = tape.root();
        let asks = match rpc::classify(root) {
            Ok(envelope) => matches!(envelope, Envelope::Request { .. }),
            Err(_) => root.kind() != Kind::Object || root.get("method").is_some(),
        };
        let method = || root.get("method").and_then(|it| it.as_str()).unwrap_or_default().into_owned();
        match rpc::id_of(root) {
            _ if !asks => {}
            Some(Id::Integer(id)) if departs => drop(self.odd.insert(id, method())),
            Some(Id::Integer(id)) => {
                let millis = root.pointer("/params/timeoutMillis").and_then(|it| it.as_u64());
                let allowed = millis.unwrap_or_default().saturating_mul(1_000);
                let method = method();
                self.asked.insert(id, Asked { method, allowed });
            }
            _ => self.nameless += 1,
        }
    }

    /// The target answers; `true` if that is one of what was due.
    pub(super) fn answered(&mut self, id: &Id<'_>) -> bool {
        let known =
            matches!(id, Id::Integer(id) if self.asked.remove(id).is_some() || self.odd.remove(id).is_some());
        match id {
            _ if known => {}
            _ if self.nameless > 0 => self.nameless -= 1,
            Id::Null => drop(self.odd.pop_last()),
            _ => {}
        }
        known
    }
}

/// What a reaction makes of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// None is about it.
    None,
    /// One is.
    Whole,
    /// One is, and what it answers first is wrong on purpose: why.
    Oddly(String),
}

impl Claim {
    /// What makes the answer in this place wrong, if anything does.
    pub(super) fn departs(&self, place: usize) -> Option<&str> {
        match self {
            Self::Oddly(departs) if place == 0 => Some(departs),
            _ => None,
        }
    }
}

impl Playing {
    pub(super) fn new(name: &str, script: Script) -> Self {
        let awaits = script.steps.iter().any(|step| has(step, &|step| matches!(step, Step::Await { .. })));
        let settles = script.steps.iter().any(|step| has(step, &|step| *step == Step::Settle));
        Self {
            name: name.to_owned(),
            stack: vec![Level { steps: Rc::from(script.steps), next: 0, again: 1, each: None }],
            reactions: script.reactions.into_iter().map(|reaction| (reaction, 0)).collect(),
            deferred: Vec::new(),
            ids: BTreeMap::new(),
            captures: Captures::new(),
            unclaimed: awaits.then(VecDeque::new),
            cut_at: Vec::new(),
            settles,
            due: Due::default(),
            fences: 0,
        }
    }

    pub(super) fn next_step(&mut self) -> Option<(Rc<[Step]>, usize)> {
        loop {
            let level = self.stack.last_mut()?;
            if level.next < level.steps.len() {
                level.next += 1;
                return Some((Rc::clone(&level.steps), level.next - 1));
            }
            level.next = 0;
            level.again = level.again.saturating_sub(1);
            match &mut level.each {
                Some((elements, name)) => match elements.pop() {
                    Some(element) => drop(self.captures.insert(name.clone(), element)),
                    None => drop(self.stack.pop()),
                },
                None if level.again > 0 => {}
                None => drop(self.stack.pop()),
            }
        }
    }

    pub(super) fn enter(&mut self, steps: Rc<[Step]>, again: u32, each: Option<(Vec<String>, String)>) {
        if again > 0 {
            self.stack.push(Level { steps, next: 0, again, each });
        }
    }

    pub(super) fn enter_each(&mut self, of: &str, steps: Rc<[Step]>, name: String) {
        let Some(tape) = self.captures.get(of).map(|text| Tape::scan(text.as_bytes())) else { return };
        let Ok(tape) = tape else { return };
        let mut elements: Vec<String> =
            tape.root().elements().map(|element| element.raw().to_owned()).collect();
        elements.reverse();
        let Some(first) = elements.pop() else { return };
        drop(tape);
        self.captures.insert(name.clone(), first);
        self.enter(steps, 1, Some((elements, name)));
    }

    /// Whether a reaction claims the frame at `root`, on a link of `guest` where there are several guests; its answers
    /// are put into `out`, which is empty.
    pub(super) fn react(
        &mut self,
        root: Node<'_>,
        guest: Option<&str>,
        next_id: &mut i64,
        out: &mut Vec<Vec<u8>>,
    ) -> Claim {
        for (reaction, done) in &mut self.reactions {
            if reaction.times.is_some_and(|times| *done >= times)
                || reaction.guest.as_deref().is_some_and(|of| guest != Some(of))
                || !reaction.when.matches(root, &self.ids, &mut self.captures)
            {
                continue;
            }
            *done += 1;
            let mut render =
                |template: &Template| template.render(&mut self.ids, next_id, &self.captures).into_bytes();
            match &reaction.reply {
                Reply::Once(template) => out.push(render(template)),
                Reply::Twice(template) => {
                    let frame = render(template);
                    out.push(frame.clone());
                    out.push(frame);
                }
                Reply::AfterFences(fences, template) if self.fences >= *fences => out.push(render(template)),
                Reply::AfterFences(fences, template) => {
                    let frame = render(template);
                    self.deferred.push((*fences - self.fences, frame));
                }
                Reply::Several(templates) => out.extend(templates.iter().map(render)),
                Reply::Odd { departs, answer } => {
                    out.push(render(answer));
                    return Claim::Oddly(departs.clone());
                }
                Reply::Never => {}
            }
            return Claim::Whole;
        }
        Claim::None
    }

    pub(super) fn label_of(&self, id: i64) -> Option<String> {
        self.ids.iter().find(|(_, its)| **its == id).map(|(label, _)| label.clone())
    }

    /// Takes the first unclaimed frame of this link that matches.
    pub(super) fn claim(&mut self, link: LinkId, pattern: &Pattern) -> bool {
        let Some(unclaimed) = &mut self.unclaimed else { return false };
        let at = unclaimed.iter().position(|(of, frame)| {
            *of == link
                && Tape::scan(frame)
                    .is_ok_and(|tape| pattern.matches(tape.root(), &self.ids, &mut self.captures))
        });
        at.and_then(|at| unclaimed.remove(at)).is_some()
    }

    pub(super) fn keep(&mut self, link: LinkId, frame: &str) {
        if let Some(unclaimed) = &mut self.unclaimed {
            if unclaimed.len() == UNCLAIMED_MOST {
                unclaimed.pop_front();
            }
            unclaimed.push_back((link, frame.as_bytes().to_vec()));
        }
    }
}

/// Whether `step`, or one in it, is what `test` looks for.
fn has(step: &Step, test: &dyn Fn(&Step) -> bool) -> bool {
    match step {
        Step::Repeat { steps, .. } | Step::Each { steps, .. } => steps.iter().any(|step| has(step, test)),
        step => test(step),
    }
}
