//! How a script for a host and its process end: in order, cut, in vain, interrupted. Each cut says why in one sentence.

use std::borrow::Cow;

use super::{Cast, Waiting, What};
use crate::budget::{LATE_TICK, STARVED_MOST};
use crate::machine::{Action, Exited, Micros};
use crate::transcript::{End, Kind, Wait};

impl Cast<'_> {
    /// The shim writes no more.
    pub(super) fn over(&mut self, now: Micros) {
        if std::mem::replace(&mut self.shim.over, true) {
            return;
        }
        let before = match self.waiting.as_ref().map(|waiting| &waiting.what) {
            Some(What::Greeting) => "before it had greeted".to_owned(),
            Some(What::Outcome(of)) => format!("before it told what came of {of:?}"),
            Some(What::Exit | What::End { .. }) | None => return,
            Some(_) => "in the middle of a script".to_owned(),
        };
        self.waiting = None;
        self.cut_when_gone(before, now);
    }

    pub(super) fn exited(&mut self, exited: Exited, now: Micros) {
        if self.shim.exited.is_some() {
            return;
        }
        self.note(0, now, Kind::Exited(exited));
        self.shim.exited = Some(exited);
        self.over(now);
        match self.waiting.take() {
            Some(waiting @ Waiting { what: What::Exit, .. }) => {
                self.waiting = Some(waiting);
                self.came(now);
            }
            Some(Waiting { what: What::End { cut }, .. }) => self.ended(cut, now),
            other => self.waiting = other,
        }
    }

    /// The script cannot go on, for a reason that is complete once it is known how the process ended.
    pub(super) fn cut_when_gone(&mut self, before: String, now: Micros) {
        if self.shim.exited.is_some() {
            return self.cut(format!("{} {before}", self.state()), now);
        }
        self.wait(Wait::Exit, None, self.budget.exit_after_end, What::End { cut: Some(before) }, now);
    }

    fn ended(&mut self, cut: Option<String>, now: Micros) {
        match cut {
            Some(before) => self.cut(format!("{} {before}", self.state()), now),
            None => self.close_record(),
        }
    }

    /// The script cannot go on.
    pub(super) fn cut(&mut self, cause: String, now: Micros) {
        (self.waiting, self.hearing, self.fencing) = (None, None, None);
        if let Some(script) = self.script.take() {
            self.cut_in = Some(script.name.clone());
            self.note(0, now, Kind::Ended { script: Cow::Owned(script.name), cut: Some(Cow::Owned(cause)) });
        }
        self.plan.clear();
        self.end = self.end.or(Some(End::Cut));
        self.finish(None, now);
    }

    /// Ends the process if it has not ended, and the recording with it.
    pub(super) fn finish(&mut self, cut: Option<String>, now: Micros) {
        if self.shim.exited.is_some() {
            return self.close_record();
        }
        self.kill(now);
        self.wait(Wait::Exit, None, self.budget.exit_after_kill, What::End { cut }, now);
    }

    fn close_record(&mut self) {
        if !std::mem::replace(&mut self.done, true) {
            self.waiting = None;
            self.record.footer(self.end.unwrap_or(End::Cut));
            self.actions.push_back(Action::Done);
        }
    }

    fn kill(&mut self, now: Micros) {
        if self.shim.exited.is_none() && !std::mem::replace(&mut self.shim.killed, true) {
            self.note(0, now, Kind::Killed);
            self.actions.push_back(Action::Kill { link: 0 });
        }
    }

    pub(super) fn state(&self) -> String {
        match self.shim.exited {
            Some(_) if self.shim.killed => "the host had to be killed".to_owned(),
            Some(Exited::Code(code)) => format!("the host exited with code {code}"),
            Some(Exited::Signal(signal)) => format!("the host was ended by signal {signal}"),
            Some(Exited::Unknown) => "the host ended".to_owned(),
            None if self.shim.over => "the host closed its output".to_owned(),
            None => "the host stopped reading".to_owned(),
        }
    }

    pub(super) fn tick(&mut self, now: Micros) {
        let Some(waiting) = &mut self.waiting else { return };
        let Some(deadline) = waiting.deadline.filter(|deadline| *deadline <= now) else { return };
        if self.shim.holds_time(&waiting.what) {
            waiting.deadline = Some(now.saturating_add(waiting.within));
            if let What::Silence { until } = &mut waiting.what {
                *until = now + self.budget.quiet_total;
            }
            return;
        }
        let late = now - deadline;
        if late > LATE_TICK && waiting.starved < STARVED_MOST {
            waiting.starved += 1;
            waiting.deadline = Some(now.saturating_add(late.min(waiting.within)));
            return self.note(0, now, Kind::Starved { late });
        }
        match &waiting.what {
            What::Silence { .. } | What::Frame { optional: true, .. } => self.came(now),
            What::End { cut } if self.shim.killed => {
                let cut = cut.clone();
                self.ended(cut, now);
            }
            What::End { cut } => {
                let cut = cut.clone();
                self.finish(cut, now);
            }
            What::Exit => {
                self.timed_out(now);
                self.kill(now);
                let what = What::End { cut: Some("after its input had ended".to_owned()) };
                self.wait(Wait::Exit, None, self.budget.exit_after_kill, what, now);
            }
            // That it lives on is what there is to see.
            What::Gone(_) => self.timed_out(now),
            _ => {
                let cause = self.timeout_cause();
                self.timed_out(now);
                self.cut(cause, now);
            }
        }
    }

    fn timeout_cause(&self) -> String {
        let Some(waiting) = &self.waiting else { return String::new() };
        let within = match waiting.within {
            micros if micros % 1_000_000 == 0 => format!("{} s", micros / 1_000_000),
            micros => format!("{} ms", micros / 1_000),
        };
        let fence = self.fencing.as_ref().and_then(|fencing| fencing.keys().next());
        if let Some(id) = self.hearing.as_ref().and_then(|hearing| hearing.first()) {
            let name = self.link(*id).map(|link| link.name.as_str()).unwrap_or_default();
            return format!("the process of guest {name:?} did not come to read what the host wrote to it");
        }
        let guest = fence.and_then(|id| self.link(*id)).map(|link| link.name.as_str());
        match (&waiting.what, guest) {
            (_, Some(guest)) => {
                let most = self.budget.answer_most / 1_000_000;
                format!("the host did not answer a fence of guest {guest:?} in {most} s")
            }
            (What::Greeting, _) => format!("the shim did not greet in {within}"),
            (What::Outcome(of), _) => format!("the shim did not tell what came of {of:?} in {within}"),
            (What::Launch(name, _), _) => format!("the host did not launch guest {name:?} in {within}"),
            (What::Frame { link, .. }, _) => {
                let name = self.link(*link).map(|link| link.name.as_str()).unwrap_or_default();
                let what = waiting.label.as_deref().unwrap_or("what was awaited");
                format!("the host did not send guest {name:?} {what} in {within}")
            }
            _ => format!("a guest of ours gave no sign of life in {within}"),
        }
    }

    fn timed_out(&mut self, now: Micros) {
        if let Some(waiting) = self.waiting.take() {
            let label = waiting.label.map(Cow::Owned);
            self.note(0, now, Kind::TimedOut { wait: waiting.wait, label, within: waiting.within });
        }
    }

    pub(super) fn interrupted(&mut self, now: Micros) {
        if self.end.is_none() {
            self.end = Some(End::Interrupted);
            self.cut("the user interrupted the run".to_owned(), now);
        }
    }

    /// Ends the process when there is no room for more of what it says.
    pub(super) fn fit(&mut self, now: Micros) {
        if self.recorded > self.budget.record_bytes && self.end.is_none() {
            let says = "the recording of this process reached its bound";
            self.cut(format!("{says} of {} KiB", self.budget.record_bytes >> 10), now);
        }
    }
}
