//! What the target says: its lines, what they answer, and when what is awaited can no longer come.
//!
//! An answer is hopeless when it came, and came in a form that answers nothing: waiting on would show no more. A bound
//! that stands in a frame of ours is waited for all the same, since that it passed is what a verdict rests on.

use std::borrow::Cow;

use crate::budget::{FLOOD_BYTES_MOST, FLOOD_LINES_MOST};
use crate::contract::Side;
use crate::json::{Kind as JsonKind, Node, Tape};
use crate::machine::{Action, Micros};
use crate::rpc::{self, Envelope, Id, Malformed};
use crate::transcript::{Frame, Kind, Payload, Wait};
use crate::wire::Line;

use super::progress::Claim;
use super::{FENCE, Play, Waiting, What};

/// How much of a line that is no frame a cause shows, in characters.
const NOISE_CHARS: usize = 120;

impl Play<'_> {
    pub(super) fn read(&mut self, chunk: &[u8], now: Micros) {
        self.link.any_byte |= !chunk.is_empty();
        if self.floods(chunk, now) {
            return;
        }
        self.extend_start();
        let Some(mut deframer) = self.deframer.take() else { return };
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) => self.line(line, now),
                Line::Oversize { head, seen } => {
                    self.note(now, Kind::Oversize { from: Side::Guest, head: Cow::Borrowed(head), seen });
                    self.link.oversize = true;
                    self.kill(now);
                    self.over(now);
                }
            }
        }
        self.deframer = Some(deframer);
    }

    /// Cuts the script when the target writes more during one wait than anybody could ask for.
    fn floods(&mut self, chunk: &[u8], now: Micros) -> bool {
        self.link.bytes_since_wait += chunk.len() as u64;
        self.link.lines_since_wait += memchr::memchr_iter(b'\n', chunk).count() as u64;
        let waited_for = self.waiting.as_ref().map(|waiting| &waiting.what);
        if matches!(waited_for, None | Some(What::Gone { .. })) {
            return false;
        }
        let wrote = if self.link.bytes_since_wait > FLOOD_BYTES_MOST {
            format!("{} MiB", FLOOD_BYTES_MOST >> 20)
        } else if self.link.lines_since_wait > FLOOD_LINES_MOST {
            format!("{FLOOD_LINES_MOST} lines")
        } else {
            return false;
        };
        // What the first of these lines are says what the flood is.
        let head = &chunk[..chunk.len().min(NOISE_CHARS)];
        if let Some(end) = memchr::memchr(b'\n', head)
            && Tape::scan(&head[..end]).is_err()
        {
            self.noise(&head[..end]);
        }
        self.deafen();
        self.cut(format!("the guest wrote {wrote} and more, and not what was awaited"), now);
        true
    }

    /// Nothing more of what the target says is taken in: there is no room for it, and its end is near.
    pub(super) fn deafen(&mut self) {
        self.deframer = None;
        self.actions.push_back(Action::Reading { link: 0, on: false });
    }

    /// A target that has written something gets the time that the protocol allows for the first answer.
    fn extend_start(&mut self) {
        if let Some(waiting) = &mut self.waiting
            && waiting.wait == Wait::Start
            && waiting.within < self.budget.start
        {
            waiting.within = self.budget.start;
            waiting.deadline = self.budget.deadline(waiting.since, waiting.within);
        }
    }

    fn line(&mut self, line: &[u8], now: Micros) {
        let tape = match Tape::scan_in(line, std::mem::take(&mut self.spare)) {
            Ok(tape) => tape,
            Err((_, spare)) => {
                self.spare = spare;
                self.noise(line);
                return self.note_frame(Payload::of(line), now);
            }
        };
        let root = tape.root();
        let text = tape.text();
        let whole = root.raw().len() == text.len();
        let payload =
            if whole { Payload::Json(Cow::Borrowed(text)) } else { Payload::Text(Cow::Borrowed(text)) };
        self.note_frame(payload, now);
        if let Some((label, asked)) = &self.link.asked
            && asked == line
        {
            self.link.echo = Some(label.clone());
        }
        let said = rpc::classify(root);
        if said.is_err() {
            self.noise(line);
        }
        if let Some(cause) = self.hopeless(root, said.as_ref().err().copied()) {
            self.link.noise = None;
            self.cut(cause, now);
        } else if let Ok(envelope) = &said {
            self.meet(envelope, root, now);
        }
        self.spare = tape.into_spare();
    }

    /// Remembers the first line that is no frame: a wait in vain may be explained by it.
    pub(super) fn noise(&mut self, line: &[u8]) {
        self.link.noise.get_or_insert_with(|| {
            let head = &line[..line.len().min(4 * NOISE_CHARS)];
            let shown: String = String::from_utf8_lossy(head).chars().take(NOISE_CHARS).collect();
            format!("{shown:?}")
        });
    }

    fn note_frame(&mut self, payload: Payload<'_>, now: Micros) {
        let frame = Frame { from: Side::Guest, label: None, departs: None, open: false, payload };
        self.note(now, Kind::Frame(frame));
        if let Some(Waiting { what: What::Silence { .. }, .. }) = &self.waiting {
            self.wait_on(now);
        }
    }

    /// The id whose answer is awaited, if it has not come, and what the request is called.
    fn awaited(&self) -> Option<(i64, String)> {
        let waiting = self.waiting.as_ref()?;
        let (id, name) = match &waiting.what {
            What::Fence { id, .. } => (*id, "a fence".to_owned()),
            What::Frame(_) => {
                let label = waiting.label.as_ref()?;
                (*self.script.as_ref()?.ids.get(label)?, label.clone())
            }
            _ => return None,
        };
        (!waiting.is_the_bound && self.pending.contains_key(&id)).then_some((id, name))
    }

    /// Why the answer that is awaited will not come: this frame is meant to be it, and is none.
    fn hopeless(&self, root: Node<'_>, malformed: Option<Malformed>) -> Option<String> {
        if root.kind() != JsonKind::Object || root.get("method").is_some() {
            return None;
        }
        let (awaited, name) = self.awaited()?;
        let says = |what: String| Some(format!("the guest answered {name} {what}"));
        match (rpc::id_of(root), malformed) {
            (Some(Id::Integer(id)), Some(fault)) if id == awaited => {
                says(format!("with what is no frame: {fault}"))
            }
            (Some(Id::Text(text)), _) if *text == awaited.to_string() => {
                says(format!("under the id {text:?}, a string, and not under the number {awaited}"))
            }
            (Some(Id::Number(written)), _) if is_written_of(written, awaited) => {
                says(format!("under the id {written}, and not under {awaited} as it was asked"))
            }
            // It can be about nothing else: all the rest has been answered, and nothing was told or sent amiss.
            (Some(Id::Null), None) | (None, Some(Malformed::ResponseWithoutId))
                if self.pending.len() == 1 && !self.link.loose =>
            {
                says(format!("under no id, and not under {awaited}"))
            }
            _ => None,
        }
    }

    fn meet(&mut self, envelope: &Envelope<'_>, root: Node<'_>, now: Micros) {
        let mut answered = None;
        if let Envelope::Response { id: Id::Integer(id), .. } = envelope
            && let Some(since) = self.pending.remove(id)
        {
            // How long it takes to start says nothing about how long it takes to answer.
            if !matches!(&self.waiting, Some(Waiting { wait: Wait::Start, .. })) {
                self.clock.took(now.saturating_sub(since));
            }
            answered = Some(*id);
        }
        let fence = matches!(&self.waiting, Some(Waiting { what: What::Fence { id, .. }, .. }) if answered == Some(*id));
        if fence {
            self.heard.insert(FENCE.to_owned());
        } else if let (Some(script), Envelope::Response { id, .. }) = (&mut self.script, envelope) {
            if let Id::Integer(id) = id
                && let Some(method) = script.due.asked(*id)
            {
                self.heard.insert(method.to_owned());
            }
            if script.due.answered(id) {
                self.wait_on(now);
            }
        }
        let mut out = Vec::new();
        let claim = match &mut self.script {
            Some(script) => script.react(root, None, &mut self.next_id, &mut out),
            None => Claim::None,
        };
        self.peer.meet(envelope, claim != Claim::None, &mut out);
        for (place, frame) in out.into_iter().enumerate() {
            self.answer(frame, claim.departs(place), now);
        }
        let settled = self.script.as_ref().is_none_or(|script| script.due.is_empty());
        match &self.waiting {
            Some(Waiting { what: What::Silence { settles: true, .. }, .. }) if settled => {
                self.came(now);
                self.fence_answered(now);
            }
            Some(Waiting { what: What::Silence { frame: Some(pattern), .. }, .. }) => {
                let Some(script) = &mut self.script else { return };
                if pattern.matches(root, &script.ids, &mut script.captures) {
                    self.came(now);
                } else {
                    script.keep(0, root.raw());
                }
            }
            Some(Waiting { what: What::Fence { .. }, .. }) if fence => {
                self.came(now);
                self.fence_answered(now);
            }
            Some(Waiting { what: What::Frame(pattern), .. }) => {
                let Some(script) = &mut self.script else { return };
                if pattern.matches(root, &script.ids, &mut script.captures) {
                    self.came(now);
                } else if let Some(label) = answered.and_then(|id| script.label_of(id))
                    && self.waiting.as_ref().is_some_and(|waiting| waiting.label.as_deref() == Some(&label))
                {
                    // The only answer that there will be is not the one that the script needs.
                    let said = crate::exchange::summary(envelope);
                    self.cut(format!("the guest answered {label} with {said}"), now);
                } else {
                    script.keep(0, root.raw());
                }
            }
            _ => self.with_script(|script| script.keep(0, root.raw())),
        }
    }

    /// A target that does one thing after the other has come further, and gets its time for the next anew.
    pub(super) fn wait_on(&mut self, now: Micros) {
        let most = self.budget.settled_most;
        let Some(waiting) = &mut self.waiting else { return };
        let anew = now.saturating_add(waiting.within);
        match (&waiting.what, waiting.deadline) {
            (What::Silence { until, .. }, _) => waiting.deadline = Some(anew.min(*until)),
            (What::Frame(_) | What::Fence { .. }, Some(deadline)) if !waiting.is_the_bound => {
                waiting.deadline = Some(anew.min(waiting.since.saturating_add(most)).max(deadline));
            }
            _ => {}
        }
    }

    pub(super) fn fence_answered(&mut self, now: Micros) {
        let Some(script) = &mut self.script else { return };
        script.fences += 1;
        for (fences, _) in &mut script.deferred {
            *fences = fences.saturating_sub(1);
        }
        let (due, later) =
            std::mem::take(&mut script.deferred).into_iter().partition(|(fences, _)| *fences == 0);
        script.deferred = later;
        let due: Vec<(u32, Vec<u8>)> = due;
        for (_, frame) in due {
            self.answer(frame, None, now);
        }
    }
}

/// Whether a number that is not plainly written is this one: `7.0`, `7e0`.
fn is_written_of(written: &str, number: i64) -> bool {
    // Our ids are small, so a float holds them; what does not parse is none of them.
    i32::try_from(number).is_ok_and(|number| written.parse() == Ok(f64::from(number)))
}
