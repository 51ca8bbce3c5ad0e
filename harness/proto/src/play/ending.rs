//! How a script and a process end: in order, cut, gone, in vain, interrupted. Each cut says why in one sentence.

use std::borrow::Cow;

use crate::budget::{LATE_TICK, STARVED_MOST};
use crate::machine::{Action, Exited, Micros};
use crate::transcript::{End, Kind, Wait};

use super::{FENCE, Missed, Play, STDERR_BYTES_MOST, Waiting, What};

impl Play<'_> {
    /// The target writes no more.
    pub(super) fn over(&mut self, now: Micros) {
        if std::mem::replace(&mut self.link.over, true) {
            return;
        }
        match self.waiting.take() {
            Some(Waiting { what: What::Fence { or_end: false, .. }, .. }) => {
                let earlier =
                    self.unanswered(None).map(|earlier| format!(", or {earlier}")).unwrap_or_default();
                self.cut_when_gone(format!("before it answered a fence{earlier}"), now);
            }
            Some(Waiting { what: What::Frame(_), label, .. }) => {
                let earlier = self.unanswered(label.as_deref()).map(|earlier| format!(", or {earlier}"));
                let what =
                    label.map_or_else(|| "a frame that was awaited".to_owned(), |label| format!("{label:?}"));
                self.cut_when_gone(format!("before it answered {what}{}", earlier.unwrap_or_default()), now);
            }
            Some(Waiting { what: What::Fence { .. } | What::Silence { .. }, .. }) | None => {}
            other => self.waiting = other,
        }
    }

    pub(super) fn exited(&mut self, exited: Exited, now: Micros) {
        if self.link.exited.is_some() {
            return;
        }
        self.stderr_rest(now);
        self.note(now, Kind::Exited(exited));
        self.link.exited = Some(exited);
        self.over(now);
        match self.waiting.take() {
            Some(waiting @ Waiting { what: What::Exit, .. }) => {
                self.waiting = Some(waiting);
                self.came(now);
            }
            Some(Waiting { what: What::Gone { cut }, .. }) => self.gone(cut, now),
            other => self.waiting = other,
        }
    }

    /// The script cannot go on, for a reason that is complete once it is known how the process ended.
    pub(super) fn cut_when_gone(&mut self, before: String, now: Micros) {
        if self.link.exited.is_some() {
            return self.cut(format!("{} {before}", self.state()), now);
        }
        self.wait(Wait::Exit, None, self.budget.exit_after_end, What::Gone { cut: Some(before) }, now);
    }

    /// The process is gone, or will never be.
    fn gone(&mut self, cut: Option<String>, now: Micros) {
        match cut {
            Some(before) => self.cut(format!("{} {before}", self.state()), now),
            None => self.close_record(),
        }
    }

    /// The script cannot go on.
    pub(super) fn cut(&mut self, cause: String, now: Micros) {
        self.waiting = None;
        if let Some(script) = self.script.take() {
            let cause = match (&self.link.echo, &self.link.noise) {
                // Whatever came of it, our own refusals included, came of that.
                (Some(label), _) => {
                    format!("the guest sent {label} back as it had come: it echoes its input")
                }
                (None, Some(noise)) => {
                    format!("{cause}; it wrote {noise} to standard output, which is no frame")
                }
                (None, None) => cause,
            };
            self.cut_in = Some(script.name.clone());
            self.note(now, Kind::Ended { script: Cow::Owned(script.name), cut: Some(Cow::Owned(cause)) });
        }
        self.plan.clear();
        self.end = self.end.or(Some(End::Cut));
        self.finish(None, now);
    }

    /// Ends the process if it has not ended, and the recording with it.
    pub(super) fn finish(&mut self, cut: Option<String>, now: Micros) {
        if self.link.exited.is_some() {
            return self.close_record();
        }
        self.kill(now);
        self.wait(Wait::Exit, None, self.budget.exit_after_kill, What::Gone { cut }, now);
    }

    fn close_record(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.waiting = None;
            self.record.footer(self.end.unwrap_or(End::Cut));
            self.actions.push_back(Action::Done);
        }
    }

    pub(super) fn kill(&mut self, now: Micros) {
        if self.link.exited.is_none() && !std::mem::replace(&mut self.link.killed, true) {
            self.note(now, Kind::Killed);
            self.actions.push_back(Action::Kill { link: 0 });
        }
    }

    pub(super) fn state(&self) -> String {
        match self.link.exited {
            _ if self.link.oversize => {
                "the guest wrote a line that is longer than the limit, and was killed for it,".to_owned()
            }
            _ if self.link.lingers => "the guest went on running and had to be killed".to_owned(),
            Some(_) if self.link.killed => "the guest closed its output and had to be killed".to_owned(),
            Some(Exited::Code(code)) => format!("the guest exited with code {code}"),
            Some(Exited::Signal(signal)) => format!("the guest was ended by signal {signal}"),
            Some(Exited::Unknown) => "the guest ended".to_owned(),
            None if self.link.over => "the guest closed its output".to_owned(),
            None => "the guest stopped reading".to_owned(),
        }
    }

    pub(super) fn stderr(&mut self, chunk: &[u8], now: Micros) {
        let room = STDERR_BYTES_MOST - self.link.stderr_kept;
        let (kept, rest) = chunk.split_at(chunk.len().min(room));
        self.link.stderr_kept += kept.len();
        self.link.stderr_dropped += rest.len() as u64;
        if !kept.is_empty() {
            let text = String::from_utf8_lossy(kept);
            self.note(now, Kind::Stderr { text, dropped: 0 });
        }
    }

    fn stderr_rest(&mut self, now: Micros) {
        let dropped = std::mem::take(&mut self.link.stderr_dropped);
        if dropped > 0 {
            self.note(now, Kind::Stderr { text: Cow::Borrowed(""), dropped });
        }
    }

    pub(super) fn tick(&mut self, now: Micros) {
        let Some(waiting) = &mut self.waiting else { return };
        let Some(deadline) = waiting.deadline.filter(|deadline| *deadline <= now) else { return };
        let late = now - deadline;
        if late > LATE_TICK && waiting.starved < STARVED_MOST {
            waiting.starved += 1;
            waiting.deadline = Some(now.saturating_add(late.min(waiting.within)));
            return self.note(now, Kind::Starved { late });
        }
        match &waiting.what {
            What::Silence { settles, .. } => {
                if *settles {
                    self.missing();
                }
                self.came(now);
                self.fence_answered(now);
            }
            What::Gone { cut } if self.link.killed => {
                let cut = cut.clone();
                self.gone(cut, now);
            }
            What::Gone { cut } => {
                let cut = cut.clone();
                self.finish(cut, now);
            }
            What::Exit => {
                self.timed_out(now);
                self.kill(now);
                self.wait(Wait::Exit, None, self.budget.exit_after_kill, What::Exit, now);
                if let Some(waiting) = &mut self.waiting {
                    // The process had its time; what is awaited now is only our own cleaning up.
                    waiting.what = What::Gone { cut: Some("after its input had ended".to_owned()) };
                    self.link.lingers = true;
                }
            }
            What::Frame(_) | What::Fence { .. } => {
                let label = waiting.label.clone();
                let mut cause = self.timeout_cause();
                if let Some(earlier) = self.unanswered(label.as_deref()) {
                    cause = format!("{cause}, nor to {earlier}");
                }
                self.missing();
                let unread = self.link.offered - self.link.accepted;
                if unread > 0 {
                    cause =
                        format!("{cause}; it did not read the last {unread} bytes that were written to it");
                    self.note(now, Kind::Blocked { bytes: unread });
                }
                self.timed_out(now);
                self.cut(cause, now);
            }
        }
    }

    /// The oldest request that has no answer and was asked before what is awaited: that is where to look.
    fn unanswered(&self, label: Option<&str>) -> Option<String> {
        let script = self.script.as_ref()?;
        let awaited = label.and_then(|label| script.ids.get(label)).copied();
        let (id, method) =
            script.due.first().filter(|(id, _)| awaited.is_none_or(|awaited| *id < awaited))?;
        Some(format!("request {id} ({method}) before it"))
    }

    /// Remembers the first answer that did not come. What has waited longest is what the others wait behind.
    fn missing(&mut self) {
        let (Some(waiting), Some(script)) = (&self.waiting, &self.script) else { return };
        let awaited = waiting.label.as_ref().and_then(|label| script.ids.get(label));
        let method = script.due.methods().next().or_else(|| script.due.method_of(*awaited?));
        let what = match (&waiting.in_doubt, method, &waiting.what) {
            (Some(doubted), ..) => doubted.clone(),
            (_, Some(method), _) => method.to_owned(),
            (_, None, What::Fence { .. }) => FENCE.to_owned(),
            (_, None, What::Silence { .. }) => return,
            (_, None, _) => format!("a frame in {}", script.name),
        };
        if !self.heard.contains(&what) {
            self.doubted.insert(what.clone());
        }
        self.missed.get_or_insert(Missed { what, script: script.name.clone(), within: waiting.within });
    }

    /// Ends the process when there is no room for more of what it says.
    pub(super) fn fit(&mut self, now: Micros) {
        if self.recorded > self.budget.record_bytes && self.end.is_none() {
            self.deafen();
            let says = "the recording of this process reached its bound";
            self.cut(format!("{says} of {} KiB", self.budget.record_bytes >> 10), now);
        }
    }

    fn timeout_cause(&self) -> String {
        let Some(waiting) = &self.waiting else { return String::new() };
        let what = waiting.label.as_deref().unwrap_or("a fence");
        let seconds = waiting.within / 1_000_000;
        let within = if waiting.within % 1_000_000 == 0 {
            format!("{seconds} s")
        } else {
            format!("{} ms", waiting.within / 1_000)
        };
        match waiting.wait {
            Wait::Start if waiting.within < self.budget.start => {
                let start = self.budget.start / 1_000_000;
                format!(
                    "no answer to {what} in {within}; the protocol allows {start} s: `--start-timeout {start}s` waits"
                )
            }
            _ => format!("no answer to {what} in {within}"),
        }
    }

    fn timed_out(&mut self, now: Micros) {
        if let Some(waiting) = self.waiting.take() {
            let label = waiting.label.map(Cow::Owned);
            self.note(now, Kind::TimedOut { wait: waiting.wait, label, within: waiting.within });
        }
    }

    pub(super) fn interrupted(&mut self, now: Micros) {
        if self.end.is_none() {
            self.end = Some(End::Interrupted);
            self.cut("the user interrupted the run".to_owned(), now);
        }
    }
}
