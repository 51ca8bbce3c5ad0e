//! From what was seen to what it means: the one place where facts become verdicts.

use std::borrow::Cow;
use std::fmt;

use crate::requirement::{Accepts, Basis, Requirement, Seen};
use crate::script::{CALLS, SLOW};

/// Where in a run something was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The process, by the place of its transcript in the run.
    pub process: usize,
    /// The event, counted from 0, in that transcript.
    pub event: u64,
}

/// What a judge says: a fact, never a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// One of the things that may be seen, at this event.
    Saw(Seen, u64),
    /// Something else, in words for the report.
    SawOther {
        /// The event that shows it.
        at: u64,
        /// What it was.
        actual: String,
    },
    /// Nothing that would decide it.
    Undecided(Why),
}

/// Why a requirement is undecided: a closed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its script ended early, for this reason.
    CutShort(String),
    /// This platform cannot measure it; says what is missing.
    NotMeasured(&'static str),
    /// This driver cannot bring it about.
    OutOfReach(Cow<'static, str>),
    /// The target never did the thing; says what would make it.
    NotProvoked(Cow<'static, str>),
    /// Unsafe by default; names the exercise group that turns it on.
    NotExercised(&'static str),
    /// Left out by `--only` or `--skip`.
    NotSelected,
    /// No peer can see it; says why.
    Unobservable(&'static str),
}

impl Why {
    /// Its name in a report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CutShort(_) => "cut_short",
            Self::NotMeasured(_) => "not_measured",
            Self::OutOfReach(_) => "out_of_reach",
            Self::NotProvoked(_) => "not_provoked",
            Self::NotExercised(_) => "not_exercised",
            Self::NotSelected => "not_selected",
            Self::Unobservable(_) => "unobservable",
        }
    }

    /// Of several that occurred in a run, the one with the lowest rank is told.
    fn rank(&self) -> u8 {
        match self {
            Self::CutShort(_) => 0,
            Self::NotMeasured(_) => 1,
            Self::OutOfReach(_) => 2,
            Self::NotProvoked(_) => 3,
            Self::NotExercised(_) => 4,
            Self::NotSelected => 5,
            Self::Unobservable(_) => 6,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort(cause) => f.write_str(cause),
            Self::NotMeasured(what) | Self::Unobservable(what) => f.write_str(what),
            Self::NotProvoked(what) | Self::OutOfReach(what) => f.write_str(what),
            Self::NotExercised(SLOW) => {
                f.write_str("it takes as long as a time limit of the protocol: `--slow` plays it")
            }
            Self::NotExercised(CALLS) => f.write_str(
                "a tool may have effects: `--call NAME=JSON` calls one, `--call-read-only` those that only read",
            ),
            Self::NotExercised(group) => write!(f, "it may have effects: `--exercise {group}` turns it on"),
            Self::NotSelected => f.write_str("left out by --only or --skip"),
        }
    }
}

/// What holds of a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It came up and held.
    Pass {
        /// What a reader should know all the same.
        remark: Option<&'static str>,
    },
    /// It was broken.
    Fail(Broken),
    /// It was broken, but only the reference implementation asks for it.
    Warn(Broken),
    /// It does not hold for this target; says why.
    NotApplicable(Cow<'static, str>),
    /// Nothing decided it.
    Undecided(Why),
}

/// How a requirement was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where it shows.
    pub at: At,
    /// What was asked for.
    pub expected: Seen,
    /// What was seen instead.
    pub actual: String,
}

/// How severe a run is. What the specification does not say fails nobody outside `Reference`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// Only the specification fails a target.
    #[default]
    Specified,
    /// What the reference implementation does is asked for as well.
    Reference,
}

/// The remark on a pass in the way of the reference implementation, where the specification says otherwise.
pub const AS_THE_REFERENCE: &str = "as the reference implementation does; the specification says otherwise";
/// The remark on a pass in another way that the specification allows.
pub const OTHER_READING: &str = "another reading of the specification than the usual one";

/// What a sight in the transcript of `process` means for `requirement`.
pub fn verdict(requirement: &Requirement, profile: Profile, process: usize, sight: Sight) -> Verdict {
    let Some(asked) = requirement.accepts.first() else {
        return Verdict::Undecided(Why::Unobservable("the row accepts nothing"));
    };
    match sight {
        Sight::Undecided(why) => Verdict::Undecided(why),
        Sight::Saw(seen, event) => match requirement.accepts.iter().find(|accepted| accepted.seen == seen) {
            Some(accepted) if accepted.seen == asked.seen => Verdict::Pass { remark: None },
            Some(Accepts { by: Basis::Observed(_), .. }) => Verdict::Pass { remark: Some(AS_THE_REFERENCE) },
            Some(_) => Verdict::Pass { remark: Some(OTHER_READING) },
            None => broken(*asked, profile, At { process, event }, seen.0.to_owned()),
        },
        Sight::SawOther { at, actual } => broken(*asked, profile, At { process, event: at }, actual),
    }
}

fn broken(asked: Accepts, profile: Profile, at: At, actual: String) -> Verdict {
    let broken = Broken { at, expected: asked.seen, actual };
    match (asked.by, profile) {
        (Basis::Observed(_), Profile::Specified) => Verdict::Warn(broken),
        _ => Verdict::Fail(broken),
    }
}

/// Joins what two parts of a run say of one requirement: the first failure counts, else a warning, else a pass that
/// came up, else the weightiest reason why nothing was decided.
pub fn join(first: Option<Verdict>, second: Verdict) -> Verdict {
    let Some(first) = first else { return second };
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Fail(_) => (0, 0),
        Verdict::Warn(_) => (1, 0),
        Verdict::Pass { .. } => (2, 0),
        Verdict::Undecided(why) => (3, why.rank()),
        Verdict::NotApplicable(_) => (4, 0),
    };
    if rank(&second) < rank(&first) { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Side;
    use crate::requirement::{Accepts, must};

    const REFUSED: Seen = Seen("refused");
    const SERVED: Seen = Seen("served");
    const SPECIFIED: Requirement = must("x/y/z", Side::Guest).accepts(&[
        Accepts { seen: REFUSED, by: Basis::Specified },
        Accepts { seen: SERVED, by: Basis::Observed("reference") },
    ]);
    const OBSERVED: Requirement =
        must("x/y/z", Side::Guest).accepts(&[Accepts { seen: REFUSED, by: Basis::Observed("reference") }]);

    fn name(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Pass { remark: None } => "pass",
            Verdict::Pass { remark: Some(remark) } => remark,
            Verdict::Fail(_) => "fail",
            Verdict::Warn(_) => "warn",
            Verdict::NotApplicable(_) => "not applicable",
            Verdict::Undecided(why) => why.name(),
        }
    }

    #[test]
    fn a_sight_means_what_the_row_says_of_it() {
        let other = || Sight::SawOther { at: 3, actual: "silence".to_owned() };
        for (row, profile, sight, expected) in [
            (&SPECIFIED, Profile::Specified, Sight::Saw(REFUSED, 1), "pass"),
            (&SPECIFIED, Profile::Specified, Sight::Saw(SERVED, 1), AS_THE_REFERENCE),
            (&SPECIFIED, Profile::Reference, Sight::Saw(SERVED, 1), AS_THE_REFERENCE),
            (&SPECIFIED, Profile::Specified, Sight::Saw(Seen("else"), 1), "fail"),
            (&SPECIFIED, Profile::Specified, other(), "fail"),
            (&OBSERVED, Profile::Specified, other(), "warn"),
            (&OBSERVED, Profile::Reference, other(), "fail"),
            (&OBSERVED, Profile::Specified, Sight::Undecided(Why::NotSelected), "not_selected"),
        ] {
            assert_eq!(name(&verdict(row, profile, 0, sight.clone())), expected, "{sight:?} {profile:?}");
        }
    }

    #[test]
    fn the_weightiest_verdict_of_a_run_counts() {
        let at = |event| At { process: 0, event };
        let broken = |event| Broken { at: at(event), expected: REFUSED, actual: String::new() };
        let pass = || Verdict::Pass { remark: None };
        let cut = || Verdict::Undecided(Why::CutShort("gone".to_owned()));
        let joined = |first, second| join(Some(first), second);
        assert_eq!(joined(Verdict::Fail(broken(1)), Verdict::Fail(broken(2))), Verdict::Fail(broken(1)));
        assert_eq!(joined(pass(), Verdict::Warn(broken(2))), Verdict::Warn(broken(2)));
        assert_eq!(joined(cut(), pass()), pass());
        assert_eq!(joined(Verdict::Undecided(Why::NotSelected), cut()), cut());
        assert_eq!(join(None, cut()), cut());
    }
}
