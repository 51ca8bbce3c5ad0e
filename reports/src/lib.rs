//! The report of a run: what was asked of a target, what held, and how to see it again.
//!
//! A [`Report`] is plain data with a stable, versioned JSON form ([`json`]), a form for people ([`terminal`]), and
//! forms for CI: test results ([`junit`]) and a page ([`markdown`]). Nothing here knows how a verdict was reached, and
//! nothing here does I/O: the same report gives the same text, byte for byte. What a target controls is shown by way
//! of [`safe`], and never otherwise.

pub mod json;
pub mod junit;
pub mod markdown;
mod mask;
mod report;
pub mod safe;
pub mod terminal;
mod texts;

pub use mask::Masked;
pub use report::{
    Basis, Cause, Cite, CiteKind, Compared, Contract, Counts, Difference, Environment, Fault, Format, Frame,
    LateFrame, LeftOut, Level, Location, Origin, Outcome, OwnFrame, Process, Profile, Report, Requirement,
    Role, Seen, Target, Tool, Verdict, Wait, WaitFor, Why,
};
