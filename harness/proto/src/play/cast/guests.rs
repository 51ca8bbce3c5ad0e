//! The other links: the guests of ours that the host launches, what it writes to them, and what they do.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Cast, What};
use crate::budget::LAUNCHES_MOST;
use crate::contract::Side;
use crate::json::{Node, Tape, quoted};
use crate::machine::{Action, Input, Launched, LinkId, Micros, Order};
use crate::play::progress::Claim;
use crate::play::{FENCE, Peer};
use crate::rpc::{self, Envelope, Id};
use crate::transcript::{Frame, Kind, Payload, Told, Wait};
use crate::wire::{Deframer, Line};

/// A guest of ours.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own: either end may end in any order"
)]
pub(super) struct Link<'a> {
    pub(super) name: String,
    /// None where one of our guests started it, and not the host: it only holds what it was given.
    pub(super) peer: Option<Box<dyn Peer + 'a>>,
    deframer: Option<Deframer>,
    /// The host has closed its input.
    over: bool,
    /// We have closed its output.
    closed: bool,
    broken: bool,
    held: bool,
    pub(super) gone: bool,
    /// It goes on when its input ends.
    pub(super) lingers: bool,
}

impl Link<'_> {
    /// Why it can say nothing.
    pub(super) fn cannot_write(&self) -> Option<String> {
        let name = &self.name;
        match (self.gone, self.closed, self.broken) {
            (true, ..) => Some(format!("the process of guest {name:?} was gone")),
            (_, true, _) => Some(format!("guest {name:?} had closed its output")),
            (.., true) => Some(format!("the host had stopped reading from guest {name:?}")),
            _ => None,
        }
    }

    /// Why the host can say nothing to it any more.
    pub(super) fn cannot_speak(&self) -> Option<String> {
        let name = &self.name;
        match (self.gone, self.over) {
            (true, _) => Some(format!("the process of guest {name:?} was gone")),
            (_, true) => Some(format!("the host had closed the input of guest {name:?}")),
            _ => None,
        }
    }

    /// Whether a fence on it is legal and can be answered.
    fn may_fence(&self) -> bool {
        let open = self.peer.as_ref().is_some_and(|peer| peer.is_open());
        open && !self.held && self.cannot_write().is_none() && self.cannot_speak().is_none()
    }
}

impl<'a> Cast<'a> {
    pub(super) fn link(&self, id: LinkId) -> Option<&Link<'a>> {
        self.links.get(id.checked_sub(1)?)
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link<'a>> {
        self.links.get_mut(id.checked_sub(1)?)
    }

    pub(super) fn with_link(&mut self, change: impl FnOnce(&mut Link<'a>)) {
        if let Some(link) = self.current.and_then(|id| self.link_mut(id)) {
            change(link);
        }
    }

    pub(super) fn launched(&mut self, id: LinkId, launched: &Launched, now: Micros) {
        debug_assert_eq!(id, self.links.len() + 1, "links are counted up");
        let peer = (!launched.spawned).then(|| (self.part)(&self.setting, &launched.name));
        self.links.push(Link {
            name: launched.name.clone(),
            peer,
            deframer: Some(Deframer::new(self.line_bytes_max)),
            over: false,
            closed: false,
            broken: false,
            held: false,
            gone: false,
            lingers: launched.spawned,
        });
        self.told(id, Told::Launched, &told_of(launched), now);
        if launched.spawned {
            self.spawning = self.spawning.saturating_sub(1);
            // What its parent was given is its parent's to read.
            self.actions.push_back(Action::Reading { link: id, on: false });
        }
        if self.links.len() > LAUNCHES_MOST {
            return self.cut(format!("the host launched a guest for the {LAUNCHES_MOST}th time"), now);
        }
        match self.waiting.as_ref().map(|waiting| &waiting.what) {
            Some(What::Launch(name, time)) => {
                if let Some(found) = self.nth_launch(name, *time) {
                    self.current = Some(found);
                    self.came(now);
                }
            }
            Some(What::Frame { link, .. })
                if self.link(*link).is_some_and(|link| link.cannot_speak().is_some()) =>
            {
                self.follow(*link, now);
            }
            _ => {}
        }
    }

    /// The process that has taken the place of one that hears nothing more: a host may start another one for what it
    /// is asked, another model for example, before or after it ends the first.
    pub(super) fn successor(&self, id: LinkId) -> Option<LinkId> {
        let name = &self.link(id)?.name;
        let takes_over =
            |link: &Link<'_>| link.peer.is_some() && link.name == *name && link.cannot_speak().is_none();
        (id + 1..=self.links.len()).rev().find(|later| self.link(*later).is_some_and(takes_over))
    }

    /// What is awaited on this link will come on that of its successor, if there is one.
    fn follow(&mut self, id: LinkId, now: Micros) -> bool {
        let Some(next) = self.successor(id) else { return false };
        let Some(What::Frame { link, pattern, .. }) = self.waiting.as_mut().map(|waiting| &mut waiting.what)
        else {
            return false;
        };
        *link = next;
        let pattern = pattern.clone();
        self.current = Some(next);
        if self.claim(next, &pattern) {
            self.came(now);
        }
        true
    }

    /// The link of the nth launch of this guest in this script.
    fn nth_launch(&self, name: &str, time: u32) -> Option<LinkId> {
        let links = self.links.iter().enumerate().skip(self.known);
        let mut its = links.filter(|(_, link)| link.name == name).map(|(at, _)| at + 1);
        its.nth(time.checked_sub(1)? as usize)
    }

    pub(super) fn await_launch(&mut self, name: &str, time: u32, now: Micros) {
        if let Some(id) = self.nth_launch(name, time) {
            self.current = Some(id);
        } else {
            let what = What::Launch(name.to_owned(), time);
            self.wait(Wait::Launch, Some(name.to_owned()), self.budget.launch, what, now);
            self.give_up_waiting(now);
        }
    }

    pub(super) fn await_gone(&mut self, now: Micros) {
        let Some(id) = self.current else { return self.aimless(now) };
        if !self.link(id).is_some_and(|link| link.gone) {
            self.wait(Wait::Gone, None, self.budget.launch, What::Gone(id), now);
        }
    }

    pub(super) fn await_alive(&mut self, now: Micros) {
        let Some(id) = self.current else { return self.aimless(now) };
        if !self.link(id).is_some_and(|link| link.gone) {
            self.actions.push_back(Action::Tell { link: id, order: Order::Ping });
            self.wait(Wait::Gone, None, self.budget.launch, What::Alive(id), now);
        }
    }

    pub(super) fn order(&mut self, order: Order, now: Micros) {
        let Some(id) = self.current else { return self.aimless(now) };
        self.tell(id, order, now);
    }

    fn tell(&mut self, id: LinkId, order: Order, now: Micros) {
        if self.link(id).is_none_or(|link| link.gone) {
            return;
        }
        let json = match &order {
            Order::Stderr(bytes) => format!(r#"{{"do":"stderr","bytes":{}}}"#, bytes.len()),
            Order::Exit(code) => format!(r#"{{"do":"exit","code":{code}}}"#),
            Order::Spawn { session } => format!(r#"{{"do":"spawn","session":{session}}}"#),
            other => format!(r#"{{"do":"{}"}}"#, other.name()),
        };
        self.told(id, Told::Did, &json, now);
        self.spawning += usize::from(matches!(order, Order::Spawn { .. }));
        self.actions.push_back(Action::Tell { link: id, order });
    }

    pub(super) fn reading(&mut self, on: bool) {
        let Some(id) = self.current else { return };
        self.with_link(|link| link.held = !on);
        self.actions.push_back(Action::Reading { link: id, on });
    }

    /// Closes the output of the guest that the steps are about, or, before any was named, the input of the shim.
    pub(super) fn close(&mut self, now: Micros) {
        let Some(id) = self.current else {
            if !std::mem::replace(&mut self.shim.closed, true) {
                self.note(0, now, Kind::Closed { from: Side::Guest });
                self.actions.push_back(Action::Close { link: 0 });
            }
            return;
        };
        if self.link_mut(id).is_some_and(|link| !std::mem::replace(&mut link.closed, true)) {
            self.note(id, now, Kind::Closed { from: Side::Guest });
            self.actions.push_back(Action::Close { link: id });
        }
    }

    pub(super) fn of_guest(&mut self, id: LinkId, input: &Input<'_>, now: Micros) {
        if self.link(id).is_none_or(|link| link.gone) {
            return;
        }
        match input {
            Input::Bytes(chunk) => self.read(id, chunk, now),
            Input::Eof => self.input_over(id, now),
            Input::Broken => {
                if self.link_mut(id).is_some_and(|link| !std::mem::replace(&mut link.broken, true)) {
                    self.note(id, now, Kind::Broken);
                    self.unfence(id, now);
                }
            }
            Input::Signal(number) => self.told(id, Told::Signal, &number.to_string(), now),
            Input::Pong if self.hearing.as_ref().is_some_and(|hearing| hearing.contains(&id)) => {
                self.unfence(id, now);
            }
            Input::Pong => {
                self.told(id, Told::Alive, "true", now);
                if matches!(&self.waiting, Some(waiting) if matches!(waiting.what, What::Alive(of) if of == id))
                {
                    self.came(now);
                }
            }
            Input::Exited(_) => self.gone(id, now),
            Input::Wrote(_)
            | Input::Stderr(_)
            | Input::Left(_)
            | Input::Launched(_)
            | Input::NotLaunched(_)
            | Input::Interrupted
            | Input::Tick => {}
        }
    }

    fn input_over(&mut self, id: LinkId, now: Micros) {
        let Some(link) = self.link_mut(id) else { return };
        link.over = true;
        let lingers = link.lingers;
        let tail = link.deframer.take().map(|deframer| deframer.tail().to_vec()).unwrap_or_default();
        if !tail.is_empty() {
            self.note(id, now, Kind::Tail { from: Side::Host, payload: Payload::of(&tail) });
        }
        self.note(id, now, Kind::Closed { from: Side::Host });
        if !lingers {
            self.tell(id, Order::Exit(0), now);
        }
        self.unheard(id, now);
    }

    fn gone(&mut self, id: LinkId, now: Micros) {
        let Some(link) = self.link_mut(id) else { return };
        link.gone = true;
        let cut = link.deframer.take().map(|deframer| deframer.tail().to_vec()).unwrap_or_default();
        if !cut.is_empty() {
            self.note(id, now, Kind::Tail { from: Side::Host, payload: Payload::of(&cut) });
        }
        self.told(id, Told::Gone, "true", now);
        match self.waiting.as_ref().map(|waiting| &waiting.what) {
            Some(What::Gone(of) | What::Alive(of)) if *of == id => self.came(now),
            _ => self.unheard(id, now),
        }
    }

    /// Nothing more will come on this link.
    fn unheard(&mut self, id: LinkId, now: Micros) {
        if let Some(What::Frame { link, optional, .. }) = self.waiting.as_ref().map(|waiting| &waiting.what)
            && *link == id
        {
            if *optional {
                self.came(now);
            } else if !self.follow(id, now) && !self.shim.is_busy() {
                let state = self.link(id).and_then(Link::cannot_speak).unwrap_or_default();
                return self.lack(format!("{state} before what was awaited came"), now);
            }
        }
        self.unfence(id, now);
    }

    // ---- frames ----

    fn read(&mut self, id: LinkId, chunk: &[u8], now: Micros) {
        let Some(mut deframer) = self.link_mut(id).and_then(|link| link.deframer.take()) else { return };
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) => self.line(id, line, now),
                Line::Oversize { head, seen } => {
                    self.note(id, now, Kind::Oversize { from: Side::Host, head: Cow::Borrowed(head), seen });
                    self.tell(id, Order::Exit(1), now);
                }
            }
        }
        if let Some(link) = self.link_mut(id) {
            link.deframer = Some(deframer);
        }
    }

    fn line(&mut self, id: LinkId, line: &[u8], now: Micros) {
        let frame = |payload| Frame { from: Side::Host, label: None, departs: None, open: false, payload };
        let Ok(tape) = Tape::scan(line) else {
            return self.note(id, now, Kind::Frame(frame(Payload::of(line))));
        };
        let root = tape.root();
        let text = tape.text();
        let whole = root.raw().len() == text.len();
        let payload =
            if whole { Payload::Json(Cow::Borrowed(text)) } else { Payload::Text(Cow::Borrowed(text)) };
        self.note(id, now, Kind::Frame(frame(payload)));
        if !self.holds_back(id, root, now) {
            self.take_in(id, root, now);
        }
    }

    /// Answers a frame of the host as the script or the guest does, and looks whether it is what is waited for.
    pub(super) fn take_in(&mut self, id: LinkId, root: Node<'_>, now: Micros) {
        let said = rpc::classify(root);
        let mut out = Vec::new();
        let name = self.link(id).map(|link| link.name.clone()).unwrap_or_default();
        let claim = match &mut self.script {
            Some(script) => script.react(root, Some(&name), &mut self.next_id, &mut out),
            None => Claim::None,
        };
        let mut fence = false;
        if let Ok(envelope) = &said {
            fence = matches!(envelope, Envelope::Response { id: Id::Integer(number), .. }
                if self.fencing.as_ref().is_some_and(|fencing| fencing.get(&id) == Some(number)));
            if let Some(peer) = self.link_mut(id).and_then(|link| link.peer.as_mut()) {
                peer.meet(envelope, claim != Claim::None, &mut out);
            }
        }
        for (place, frame) in out.into_iter().enumerate() {
            if self.link(id).is_some_and(|link| link.cannot_write().is_none()) {
                self.offer(id, frame, None, (None, claim.departs(place), false), &[], now);
            }
        }
        if fence {
            return self.unfence(id, now);
        }
        let Some(script) = &mut self.script else { return };
        match self.waiting.as_mut().map(|waiting| (&mut waiting.deadline, &waiting.what)) {
            Some((_, What::Frame { link, pattern, .. }))
                if *link == id && pattern.matches(root, &script.ids, &mut script.captures) =>
            {
                (self.hearing, self.fencing) = (None, None);
                self.came(now);
            }
            Some((deadline, What::Silence { until })) => {
                *deadline = Some((now + self.budget.silence_least).min(*until));
                script.keep(id, root.raw());
            }
            _ => script.keep(id, root.raw()),
        }
    }

    // ---- fences ----

    /// Lets every guest hear all that is on its way to it, and then ask something harmless.
    pub(super) fn fence(&mut self, now: Micros) {
        let hears = |link: &Link<'_>| !link.gone && !link.held && link.peer.is_some();
        let links: BTreeSet<LinkId> =
            (1..=self.links.len()).filter(|id| self.link(*id).is_some_and(hears)).collect();
        self.actions.extend(links.iter().map(|&link| Action::Tell { link, order: Order::Ping }));
        (self.hearing, self.fencing) = (Some(links), None);
        let deadline = self.budget.deadline(now, self.budget.answer_most);
        if let Some(waiting) = &mut self.waiting
            && matches!(waiting.what, What::Outcome(_))
        {
            waiting.deadline = deadline;
        }
        self.heard(now);
    }

    /// When all have heard what there was, each that may asks something harmless.
    fn heard(&mut self, now: Micros) {
        if self.hearing.as_ref().is_none_or(|hearing| !hearing.is_empty()) {
            return;
        }
        self.hearing = None;
        let links: Vec<LinkId> =
            (1..=self.links.len()).filter(|id| self.link(*id).is_some_and(Link::may_fence)).collect();
        let mut fencing = std::collections::BTreeMap::new();
        for id in links {
            let number = self.next_id;
            self.next_id += 1;
            let frame = self.link_mut(id).and_then(|link| link.peer.as_mut()).map(|peer| peer.fence(number));
            if let Some(frame) = frame {
                fencing.insert(id, number);
                self.offer(id, frame, None, (Some(FENCE), None, false), &[], now);
            }
        }
        self.fencing = Some(fencing);
        self.fenced(now);
    }

    /// The fence of this link was answered, or will not be.
    fn unfence(&mut self, id: LinkId, now: Micros) {
        if self.hearing.as_mut().is_some_and(|hearing| hearing.remove(&id)) {
            // Its fence, if it has one, comes only now.
            return self.heard(now);
        }
        if let Some(fencing) = &mut self.fencing {
            fencing.remove(&id);
            self.fenced(now);
        }
    }

    /// When all fences are answered, what was written because of the asks is here.
    fn fenced(&mut self, now: Micros) {
        if self.fencing.as_ref().is_none_or(|fencing| !fencing.is_empty()) {
            return;
        }
        self.fencing = None;
        match self.waiting.as_ref().map(|waiting| &waiting.what) {
            // These fences stood behind something else: those behind the outcome come when it does.
            Some(What::Outcome(of)) if !self.shim.is_over_with(of) => {}
            Some(What::Outcome(_) | What::Fences) => {
                self.told(0, Told::Settled, "true", now);
                self.came(now);
                if let Some(script) = &mut self.script {
                    script.fences += 1;
                }
                self.deferred(now);
            }
            Some(What::Frame { optional: true, .. }) => self.came(now),
            Some(What::Frame { link, .. }) => {
                let name = self.link(*link).map(|link| link.name.clone()).unwrap_or_default();
                let says = format!("what was asked is over, and what guest {name:?} awaits of it never came");
                let is_gone = self.link(*link).is_some_and(|link| link.cannot_speak().is_some());
                if is_gone { self.lack(says, now) } else { self.cut(says, now) }
            }
            Some(What::Launch(name, 1)) => {
                self.cut(format!("what was asked is over, and guest {name:?} was not launched"), now);
            }
            Some(What::Launch(name, _)) => {
                self.lack(format!("what was asked is over, and guest {name:?} was not launched again"), now);
            }
            _ => {}
        }
    }

    /// Answers that waited for fences.
    fn deferred(&mut self, now: Micros) {
        let (Some(script), Some(id)) = (&mut self.script, self.current) else { return };
        for (fences, _) in &mut script.deferred {
            *fences = fences.saturating_sub(1);
        }
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut script.deferred).into_iter().partition(|(fences, _)| *fences == 0);
        script.deferred = later;
        for (_, frame) in due {
            self.offer(id, frame, None, (None, None, false), &[], now);
        }
    }
}

/// What a launched guest tells of itself, as it is recorded.
fn told_of(launched: &Launched) -> String {
    let list = |texts: &mut dyn Iterator<Item = String>| texts.collect::<Vec<_>>().join(",");
    let names = list(&mut launched.env.iter().map(|(name, _)| quoted(name)));
    let values = launched.env.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let values = list(&mut values.map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))));
    format!(
        r#"{{"as":{},"spawned":{},"pid":{},"parent":{},"session":{},"argv":[{}],"cwd":{},"env":[{names}],"values":{{{values}}},"descriptors":[{}]}}"#,
        quoted(&launched.name),
        launched.spawned,
        launched.pid,
        launched.parent,
        launched.session,
        list(&mut launched.argv.iter().map(|word| quoted(word))),
        quoted(&launched.cwd),
        list(&mut launched.descriptors.iter().map(i32::to_string)),
    )
}
