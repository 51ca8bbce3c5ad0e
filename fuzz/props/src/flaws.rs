//! The suite can fail, however bytes are cut on their way: each flaw fails what it names, and nothing else.

use std::collections::{BTreeSet, VecDeque};

use sidecert_mocks::{Flaw, Misdeed, Mock};
use sidecert_proto::contract::Side;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_proto::reasonix::guest::Features;
use sidecert_proto::verdict::{Profile, Verdict};

use crate::draw::Draw;
use crate::stage::STAGES;

/// Rehearses a suite against a mock; which ones, and how their bytes are cut, is drawn from `bytes`.
pub fn flaws(bytes: &[u8]) {
    let mut draw = Draw::new(bytes);
    let stage = draw.pick(&STAGES);
    let known: Vec<&'static Flaw> = sidecert_mocks::flaws(stage.suite, Side::Guest).collect();
    let flaw = draw.below(known.len() + 1).checked_sub(1).map(|place| known[place]);
    // The first of the choices, which spent bytes make, is the one that shows most.
    let (provoked, isolate) = (!draw.flag(), draw.flag());
    let setting = stage.setting(provoked, draw.number());
    // These read otherwise when they read in pieces, as is their flaw.
    let by_pieces = flaw.is_some_and(|flaw| matches!(flaw.does, Misdeed::ByReads | Misdeed::EndsLinesAt(_)));
    let sizes: Vec<usize> = (0..4).map(|_| *draw.pick(&[usize::MAX, 1 << 16, 4096, 1000, 77, 16])).collect();
    let sizes = if by_pieces { vec![usize::MAX] } else { sizes };
    let recordings = stage.rehearse(setting, isolate, &mut || {
        let mock = Mock::guest(stage.suite, &stage.contract, Features::default(), flaw);
        Box::new(Choppy { mock, sizes: sizes.clone(), turn: 0, said: VecDeque::new() })
    });
    let judged = stage.judge(setting, Profile::Reference, &recordings, 1 << 16);

    let expected: BTreeSet<&str> = flaw.map_or(&[][..], |flaw| flaw.breaks).iter().copied().collect();
    let failing = judged.verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Fail(_)));
    let failing: BTreeSet<&str> = failing.map(|(row, _)| row.id).collect();
    // What shares its process with a script that was cut, or is not brought up, may not show.
    let held = if isolate && provoked { failing == expected } else { failing.is_subset(&expected) };
    assert!(
        held,
        "{failing:?} instead of {expected:?}: {} with {:?}, pieces of {sizes:?}",
        stage.suite.name,
        flaw.map(|flaw| flaw.name)
    );
    assert!(judged.ours.is_empty(), "wrong frames of our own: {:?}", judged.ours);
    assert!(judged.faults.is_empty(), "{:?}", judged.faults);
}

/// A mock at the end of pipes that pass on a few bytes at a time.
struct Choppy<'c> {
    mock: Mock<'c>,
    sizes: Vec<usize>,
    turn: usize,
    said: VecDeque<Action>,
}

impl Choppy<'_> {
    fn size(&mut self) -> usize {
        self.turn += 1;
        self.sizes[self.turn % self.sizes.len()]
    }
}

impl Machine for Choppy<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        let Input::Bytes(mut left) = input else { return self.mock.handle(link, input, now) };
        while !left.is_empty() {
            let (chunk, after) = left.split_at(self.size().min(left.len()));
            self.mock.handle(link, Input::Bytes(chunk), now);
            left = after;
        }
    }

    fn poll(&mut self, now: Micros) -> Option<Action> {
        if let Some(action) = self.said.pop_front() {
            return Some(action);
        }
        match self.mock.poll(now)? {
            Action::Write { link, mut bytes, after_drain } => {
                while !bytes.is_empty() {
                    let part = bytes.split_to(self.size().min(bytes.len()));
                    self.said.push_back(Action::Write { link, bytes: part, after_drain });
                }
                self.said.pop_front()
            }
            other => Some(other),
        }
    }

    fn deadline(&self) -> Option<Micros> {
        self.mock.deadline()
    }
}
