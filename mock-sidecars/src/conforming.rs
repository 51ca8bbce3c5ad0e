//! The conforming guest inside a mock, of whichever family: lines in, lines out.

use sidecert_proto::contract::Contract;
use sidecert_proto::machine::Micros;
use sidecert_proto::reasonix::guest::{Features, Guest, Phase, Said};
use sidecert_proto::suite::Suite;

use crate::webcodex::Plugin;

#[derive(Debug)]
pub(crate) enum Conforming<'c> {
    Reasonix(Box<Guest<'c>>),
    WebCodex(Plugin),
}

impl<'c> Conforming<'c> {
    pub(crate) fn of(suite: &Suite, contract: &'c Contract, features: Features) -> Self {
        if suite.family == crate::webcodex::FAMILY {
            Self::WebCodex(Plugin::new(contract))
        } else {
            Self::Reasonix(Box::new(Guest::new(contract, features)))
        }
    }

    pub(crate) fn hear(&mut self, line: &[u8], now: Micros, said: &mut Vec<Said>) {
        match self {
            Self::Reasonix(guest) => guest.hear(line, now, said),
            Self::WebCodex(plugin) => {
                let (method, line) = plugin.answer(line);
                said.push(Said { method, answer: true, line: line.into_bytes() });
            }
        }
    }

    pub(crate) fn tick(&mut self, now: Micros, said: &mut Vec<Said>) {
        if let Self::Reasonix(guest) = self {
            guest.tick(now, said);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Micros> {
        match self {
            Self::Reasonix(guest) => guest.deadline(),
            Self::WebCodex(_) => None,
        }
    }

    /// How far its connection has come; one that has no phases is always open.
    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Reasonix(guest) => guest.phase(),
            Self::WebCodex(_) => Phase::Open,
        }
    }
}
