//! A walk over the strings of a report that can hold what somebody else wrote.
//!
//! Every struct is taken apart by name, without `..`: a member that is added later does not compile until somebody
//! decided whether it is to be visited. Left out are only enums, numbers, digests, and the names that are ours and
//! that other files refer to (the tool, the suite, the edition, the ids of requirements).

use crate::report::{
    Cause, Cite, Compared, Contract, Difference, Environment, Frame, LateFrame, LeftOut, Location, Outcome,
    OwnFrame, Process, Report, Requirement, Seen, Target, Wait,
};

/// Calls `visit` with every such string of `report`, in the order of the document.
pub(crate) fn for_each(report: &mut Report, mut visit: impl FnMut(&mut String)) {
    report.texts(&mut visit);
}

type Visit<'a> = &'a mut dyn FnMut(&mut String);

trait Texts {
    fn texts(&mut self, visit: Visit<'_>);
}

impl Texts for String {
    fn texts(&mut self, visit: Visit<'_>) {
        visit(self);
    }
}

impl<T: Texts> Texts for Option<T> {
    fn texts(&mut self, visit: Visit<'_>) {
        if let Some(inner) = self {
            inner.texts(visit);
        }
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn texts(&mut self, visit: Visit<'_>) {
        for inner in self {
            inner.texts(visit);
        }
    }
}

/// Visits the members in `visited`, and names the others, so that the two lists together are all there are.
macro_rules! texts {
    ($($structure:ident { $($visited:ident),* ; $($left:ident),* })*) => {$(
        impl Texts for $structure {
            fn texts(&mut self, visit: Visit<'_>) {
                let Self { $($visited,)* $($left: _,)* } = self;
                $($visited.texts(visit);)*
            }
        }
    )*};
}

texts! {
    Report {
        contract, target, seed, started, platform, outcome, requirements, causes, ours, late, waits, processes, compared,
        environment;
        format, version, tool, suite, edition, role, profile, strict, counts, longest_wait_micros
    }
    Contract { id; sha256, built_in }
    Target { argv; sha256 }
    Outcome { says, cause; exit_code, interrupted }
    Requirement {
        says, option, text, cites, expected, actual, at, frames, again;
        id, level, basis, verdict, why, fault
    }
    Cause { script, expected, actual, cites, at, frames, hint, again; fault, cuts }
    Cite { section, english; kind }
    Location { process; event }
    Frame { label, text; event, micros, from, target, bytes, marked }
    OwnFrame { process, says; event }
    LateFrame { process, method; event }
    Wait { process, script, label; awaited, micros, within_micros }
    Process { name, scripts, ended, exit, left, stderr_tail; }
    Compared { with, left_out, differences; scripts, alike, more }
    LeftOut { script, why; }
    Difference { what, point, place, target, reference, seen; times }
    Seen { script, guest, at; }
    Environment { withheld; }
}
