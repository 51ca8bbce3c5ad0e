//! The flaws of the reference host, section by section, in the order of the requirements that they break.

mod content;
mod envelope;
mod errors;
mod interception;
mod lifecycle;
mod manifest;
mod members;
mod processes;
mod providers;
mod security;
mod slots;
mod transport;
mod ui;

use sidecert_proto::contract::Side::Host;
use sidecert_proto::requirement::Id;

use super::BOTH;
use super::host::Manners;
use crate::{Flaw, Misdeed, Reach, Trigger};

/// Every flaw of the reference host.
pub static FLAWS: &[&[Flaw]] = &[
    transport::FLAWS,
    envelope::FLAWS,
    members::FLAWS,
    lifecycle::FLAWS,
    processes::FLAWS,
    manifest::FLAWS,
    content::FLAWS,
    interception::FLAWS,
    slots::FLAWS,
    providers::FLAWS,
    ui::FLAWS,
    errors::FLAWS,
    security::FLAWS,
];

/// A flaw in a frame, in both editions.
const fn frame(name: &'static str, breaks: &'static [Id], at: Trigger, does: Misdeed) -> Flaw {
    Flaw { name, side: Host, editions: BOTH, breaks, reach: Reach::Frame, at, does }
}

/// Reads the second text where the first stands in a line with `line` in it.
const fn misreads(
    name: &'static str,
    breaks: &'static [Id],
    line: &'static str,
    (from, to): (&'static str, &'static str),
) -> Flaw {
    frame(name, breaks, Trigger::Reads(line), Misdeed::Edit(from, to))
}

/// Takes a line with this text for what it is not: says nothing to it.
const fn silent(name: &'static str, breaks: &'static [Id], line: &'static str) -> Flaw {
    frame(name, breaks, Trigger::Reads(line), Misdeed::Silence)
}

/// A flaw in what it decides, in both editions.
const fn manner(name: &'static str, breaks: &'static [Id], change: fn(&mut Manners)) -> Flaw {
    Flaw {
        name,
        side: Host,
        editions: BOTH,
        breaks,
        reach: Reach::Process,
        at: Trigger::Always,
        does: Misdeed::Behaves(change),
    }
}
