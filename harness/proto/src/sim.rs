//! Two machines against each other, in memory, on a virtual clock: no process, no waiting, the same every time.

mod stage;

use std::collections::VecDeque;

use bytes::Bytes;

use crate::budget::Budget;
use crate::contract::Side;
use crate::machine::{Action, Exited, Input, Machine, Micros};
pub use stage::stage;

use crate::play::{Cast, Play, Player};
use crate::script::{ScriptDef, Setting};
use crate::suite::Suite;

/// How much virtual time a meeting may take before it is given up, in microseconds.
pub const TIME_MOST: Micros = 600_000_000;

/// How many actions a meeting may take before it is given up.
pub const ACTIONS_MOST: u64 = 50_000_000;

/// How long a byte takes from one machine to the other, in microseconds: time passes, so that nothing is instant.
const LATENCY: Micros = 50;

/// Why a meeting did not come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Nobody had anything to do and nobody waited for a deadline.
    Deadlock,
    /// [`TIME_MOST`] or [`ACTIONS_MOST`].
    TooLong,
}

/// What goes from one machine to the other.
enum Parcel {
    Bytes(Bytes),
    Eof,
    Exited(Exited),
}

/// Lets `play` meet `target` until `play` is done. `target` is a process: it ends with [`Action::Exit`] or is killed.
pub fn meet(play: &mut dyn Machine, target: &mut dyn Machine) -> Result<(), Stuck> {
    let mut now: Micros = 0;
    let mut to_target: VecDeque<Parcel> = VecDeque::new();
    let mut to_play: VecDeque<Parcel> = VecDeque::new();
    let (mut alive, mut reading, mut actions) = (true, true, 0_u64);
    loop {
        actions += 1;
        if actions > ACTIONS_MOST || now > TIME_MOST {
            return Err(Stuck::TooLong);
        }
        match play.poll(now) {
            Some(Action::Done | Action::Exit(_)) => return Ok(()),
            Some(Action::Write { bytes, .. }) if alive => to_target.push_back(Parcel::Bytes(bytes)),
            Some(Action::Write { .. }) => play.handle(0, Input::Broken, now),
            Some(Action::Close { .. }) => to_target.push_back(Parcel::Eof),
            Some(Action::Reading { on, .. }) => reading = on,
            Some(Action::Kill { .. }) if alive => {
                alive = false;
                to_play.extend([Parcel::Eof, Parcel::Exited(Exited::Signal(9))]);
            }
            Some(
                Action::Kill { .. }
                | Action::Launch { .. }
                | Action::Tell { .. }
                | Action::LeaveErrors { .. },
            ) => {}
            None => {
                if alive && let Some(action) = target.poll(now) {
                    act(action, &mut alive, &mut to_play);
                } else if alive && let Some(parcel) = to_target.pop_front() {
                    now += LATENCY;
                    deliver(parcel, target, now, play);
                } else if reading && let Some(parcel) = to_play.pop_front() {
                    now += LATENCY;
                    match parcel {
                        Parcel::Bytes(bytes) => play.handle(0, Input::Bytes(&bytes), now),
                        Parcel::Eof => play.handle(0, Input::Eof, now),
                        Parcel::Exited(exited) => play.handle(0, Input::Exited(exited), now),
                    }
                } else {
                    now = tick(play, target, alive, now)?;
                }
            }
        }
    }
}

fn act(action: Action, alive: &mut bool, to_play: &mut VecDeque<Parcel>) {
    match action {
        Action::Write { bytes, .. } => to_play.push_back(Parcel::Bytes(bytes)),
        Action::Close { .. } => to_play.push_back(Parcel::Eof),
        Action::Exit(code) => {
            *alive = false;
            to_play.extend([Parcel::Eof, Parcel::Exited(Exited::Code(code.into()))]);
        }
        Action::Done => {
            *alive = false;
            to_play.extend([Parcel::Eof, Parcel::Exited(Exited::Code(0))]);
        }
        Action::Reading { .. }
        | Action::LeaveErrors { .. }
        | Action::Kill { .. }
        | Action::Launch { .. }
        | Action::Tell { .. } => {}
    }
}

fn deliver(parcel: Parcel, target: &mut dyn Machine, now: Micros, play: &mut dyn Machine) {
    match parcel {
        Parcel::Bytes(bytes) => {
            target.handle(0, Input::Bytes(&bytes), now);
            play.handle(0, Input::Wrote(bytes.len()), now);
        }
        Parcel::Eof => target.handle(0, Input::Eof, now),
        Parcel::Exited(_) => {}
    }
}

/// Lets the next deadline come.
fn tick(play: &mut dyn Machine, target: &mut dyn Machine, alive: bool, now: Micros) -> Result<Micros, Stuck> {
    let theirs = target.deadline().filter(|_| alive);
    let next = play.deadline().into_iter().chain(theirs).min().ok_or(Stuck::Deadlock)?;
    let now = now.max(next);
    if theirs.is_some_and(|deadline| deadline <= now) {
        target.handle(0, Input::Tick, now);
    }
    if play.deadline().is_some_and(|deadline| deadline <= now) {
        play.handle(0, Input::Tick, now);
    }
    Ok(now)
}

/// A whole run in memory: every process of `scripts` against a fresh target of `target` on `side`. Gives the
/// recordings, in order.
pub fn rehearse<'c>(
    suite: &'static Suite,
    side: Side,
    setting: Setting<'_>,
    scripts: &[&'static ScriptDef],
    isolate: bool,
    target: &mut dyn FnMut() -> Box<dyn Machine + 'c>,
) -> Result<Vec<Vec<u8>>, Stuck> {
    let mut recordings = Vec::new();
    let opening = suite.frame(side).0.name;
    for (place, plan) in suite.processes(side, scripts, isolate).into_iter().enumerate() {
        let name = format!("{place:03}");
        let mut target = target();
        let casting = suite.casting.filter(|_| side == Side::Host);
        let (recording, cut_in) = if let Some(casting) = casting {
            let mut cast = Cast::new(&name, suite, casting, plan, setting, Budget::default());
            stage(&mut cast, &mut *target, setting.probe)?;
            (std::mem::take(cast.record()), cast.cut_in().map(str::to_owned))
        } else {
            let line_bytes_max = (suite.line_bytes_max)(setting.contract);
            let peer = (suite.host)(&setting);
            let mut play = Play::new(&name, plan, peer, setting, Budget::default(), line_bytes_max);
            meet(&mut play, &mut *target)?;
            (std::mem::take(play.record()), play.cut_in().map(str::to_owned))
        };
        recordings.push(recording);
        // As where processes are started: when the first opening fails, nothing else is tried.
        if place == 0 && cut_in.as_deref() == Some(opening) {
            break;
        }
    }
    Ok(recordings)
}
