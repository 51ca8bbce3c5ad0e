//! A host that lives for one turn: the session begins and ends with it, so it is asked for together with `start`.
//!
//! Our guests let that turn begin and no more: what the host asks them because of it waits for its answer until the
//! script comes to the turn, or to the end of the session. So a script sees the session stand still between the two, as
//! it does before any other host.

use std::ops::ControlFlow;

use super::shim::word_of;
use super::{Cast, What};
use crate::json::{Node, Tape};
use crate::machine::{LinkId, Micros};
use crate::play::progress::Playing;
use crate::script::{Step, Template};

/// What a turn is called that no script asks for.
const OWN: &str = "the turn of the session";
/// Why nothing is done any more in a session that is over.
const OVER: &str = "the session ended with its one turn, as it does with the driver in use";

/// The turn of a session.
#[derive(Default)]
pub(super) enum Turn {
    /// None was asked for.
    #[default]
    None,
    /// It was asked for with the start of this label, and the script has not come to it; whether it stands still until
    /// then.
    Ahead { label: String, start: String, stands: bool },
    /// The script has come to it.
    Reached { label: String },
}

impl Turn {
    fn label(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Ahead { label, .. } | Self::Reached { label } => Some(label),
        }
    }
}

impl Cast<'_> {
    /// Asks for the turn of the session that is asked for: the script's, or one of our own where it has none.
    pub(super) fn ask_ahead(&mut self, start: &str, now: Micros) {
        if !self.shim.declared.contains("does/turn") {
            return;
        }
        let own = || (OWN.to_owned(), Template::new(r#"{"do":"turn","text":"Hello"}"#));
        let mut stands = false;
        let found = self.script.as_ref().and_then(|script| turn_ahead(script, &mut stands));
        let (label, what) = found.unwrap_or_else(own);
        self.shim.turn = Turn::Ahead { label: label.clone(), start: start.to_owned(), stands };
        if let Some(script) = &mut self.script {
            let text = what.render(&mut script.ids, &mut self.next_id, &script.captures);
            self.put(&label, &text, now);
        }
    }

    /// The script has come to a turn.
    pub(super) fn reach_turn(&mut self, label: &str, now: Micros) {
        match std::mem::take(&mut self.shim.turn) {
            Turn::Ahead { label: ahead, .. } if ahead == label => {
                self.shim.turn = Turn::Reached { label: ahead };
                self.let_on(now);
            }
            turn => {
                self.shim.turn = turn;
                self.beyond("the driver in use takes one turn in a session", now);
            }
        }
    }

    /// The script has come to the end of a session. Whether its turn is to be waited for first: nobody has asked for
    /// that one, so nobody means to stop it.
    pub(super) fn reach_end(&mut self, now: Micros) -> Option<Step> {
        let Turn::Ahead { label, .. } = &self.shim.turn else { return None };
        let label = label.clone();
        self.shim.turn = Turn::Reached { label: label.clone() };
        self.let_on(now);
        Some(Step::Outcome { of: label, within: None, is: None })
    }

    /// The host asks for something, because of the turn perhaps that the script has not come to; gives whether that is
    /// to wait. In its turn a session has begun, also where the shim cannot tell that until all is over.
    pub(super) fn holds_back(&mut self, link: LinkId, frame: Node<'_>, now: Micros) -> bool {
        let Turn::Ahead { start, stands, .. } = &self.shim.turn else { return false };
        let peer = self.link(link).and_then(|link| link.peer.as_ref());
        if peer.is_none_or(|peer| !peer.is_of_turn(frame)) {
            return false;
        }
        let waits = self.waiting.as_ref().map(|waiting| &waiting.what);
        let (begins, stands) = (matches!(waits, Some(What::Outcome(of)) if of == start), *stands);
        if begins {
            self.came(now);
        }
        if stands {
            self.held_back.push((link, frame.raw().as_bytes().to_vec()));
        }
        stands
    }

    /// Guests answer what waited.
    fn let_on(&mut self, now: Micros) {
        for (link, line) in std::mem::take(&mut self.held_back) {
            if let Ok(tape) = Tape::scan(&line) {
                self.take_in(link, tape.root(), now);
            }
        }
    }

    /// Something was to happen that cannot, as the process of a guest is gone: because the session is over, or a reason
    /// of the script's.
    pub(super) fn lack(&mut self, cause: String, now: Micros) {
        let is_over = self.shim.turn.label().is_some_and(|label| {
            matches!(self.shim.turn, Turn::Reached { .. }) || self.shim.is_over_with(label)
        });
        if is_over { self.beyond(OVER, now) } else { self.cut(cause, now) }
    }
}

/// The next turn of the session that begins here: what it is called, and what is asked. Whether the script does
/// anything before it, or before the end of a session without one, that a turn which goes on would disturb.
fn turn_ahead(script: &Playing, stands: &mut bool) -> Option<(String, Template)> {
    let mut levels = script.stack.iter().rev().map(|level| &level.steps[level.next..]);
    levels.try_for_each(|steps| look(steps, script, stands)).break_value().flatten()
}

/// The same in these steps, for as long as the session goes on.
fn look(steps: &[Step], script: &Playing, stands: &mut bool) -> ControlFlow<Option<(String, Template)>> {
    steps.iter().try_for_each(|step| match step {
        Step::Ask { label, what } => {
            let text = what.render(&mut script.ids.clone(), &mut 1, &script.captures);
            let tape = Tape::scan(text.as_bytes());
            match tape.as_ref().ok().and_then(|tape| word_of(tape.root())).as_deref() {
                Some("turn") => ControlFlow::Break(Some((label.clone(), what.clone()))),
                Some("start" | "stop" | "signal") => ControlFlow::Break(None),
                _ => ControlFlow::Continue(()),
            }
        }
        Step::Repeat { steps, .. } | Step::Each { steps, .. } => look(steps, script, stands),
        Step::Outcome { .. } | Step::Guest { .. } => ControlFlow::Continue(()),
        _ => {
            *stands = true;
            ControlFlow::Continue(())
        }
    })
}
