//! How a requirement is declared: one row that holds everything there is to know about it.
//!
//! The row says what is asked, where it is written, for whom and when it holds, what a judge may see, who allows each
//! of these sights, and how it is checked. Nothing else names its id but flaws, baselines and reports.

use crate::contract::Side;
use crate::exchange::Exchange;
use crate::script::ScriptDef;
use crate::verdict::Sight;

/// A path, stable for ever: `<family>/<section>/<what-holds>`.
pub type Id = &'static str;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A target that breaks it does not conform.
    Must,
    /// A target that breaks it had better have a reason; `--strict` takes it for a must.
    Should,
    /// It is free to break it.
    May,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The specification, or the schema that it declares to prevail.
    Specified,
    /// This program was seen to do it; never a reason to fail outside the reference profile.
    Observed(&'static str),
}

/// Where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cite {
    /// Under this heading of the specification, in its own language and in English.
    Seed(&'static str, &'static str),
    /// At this JSON pointer of the published schema.
    Schema(&'static str),
    /// In this section of JSON-RPC 2.0, which the specification takes in whole.
    JsonRpc(&'static str),
}

/// What a judge may see, in the words of the report. Compared by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(pub &'static str);

/// One thing that may be seen, and who allows it. The first one of a row is what its text asks for.
#[derive(Clone, Copy, Debug)]
pub struct Accepts {
    /// What is seen.
    pub seen: Seen,
    /// Who allows it.
    pub by: Basis,
}

/// A condition that an observer watches on every transcript.
#[derive(Debug)]
pub struct Rule {
    /// Its name, unique in its family.
    pub name: &'static str,
    /// Whom it binds.
    pub binds: Side,
    /// Rules of the *other* side. Once one of them is broken on a link, this one does not come up there until the next
    /// answered fence: nobody is judged on what the other side confused.
    pub assumes: &'static [&'static Rule],
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// How a row is checked.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// The rule is watched in every script; the one named here is sure to bring it up.
    Always(&'static Rule, &'static ScriptDef),
    /// The judge reads what happened in this script.
    After(&'static ScriptDef, fn(&Exchange<'_>) -> Sight),
    /// No peer can see it; says why.
    Unobservable(&'static str),
}

/// Something that a contract must contain for a row to hold.
pub use crate::contract::Fact;

/// Editions of a family, as bits: a row holds in every edition whose bit it has.
pub type Editions = u8;

/// When a row holds; all of it must be true.
#[derive(Clone, Copy, Debug)]
pub struct Holds {
    /// In these editions.
    pub editions: Editions,
    /// Where the contract contains these.
    pub facts: &'static [Fact],
    /// Where the target declares this capability.
    pub declares: Option<&'static str>,
}

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// Its name for ever.
    pub id: Id,
    /// The version of sidecert that first checked it.
    pub since: &'static str,
    /// How much it matters.
    pub level: Level,
    /// Whom it binds.
    pub binds: Side,
    /// Where it is written; empty when it was only observed.
    pub cites: &'static [Cite],
    /// What conforms, in one sentence.
    pub text: &'static str,
    /// When it holds.
    pub holds: Holds,
    /// What may be seen.
    pub accepts: &'static [Accepts],
    /// How it is checked.
    pub check: Check,
}

/// A row that a target must keep.
pub const fn must(id: Id, binds: Side) -> Requirement {
    row(id, binds, Level::Must)
}

/// A row that a target should keep.
pub const fn should(id: Id, binds: Side) -> Requirement {
    row(id, binds, Level::Should)
}

const fn row(id: Id, binds: Side, level: Level) -> Requirement {
    Requirement {
        id,
        since: "0.1",
        level,
        binds,
        cites: &[],
        text: "",
        holds: Holds { editions: Editions::MAX, facts: &[], declares: None },
        accepts: &[],
        check: Check::Unobservable(""),
    }
}

impl Requirement {
    /// What conforms, and where it is written.
    #[must_use]
    pub const fn says(mut self, text: &'static str, cites: &'static [Cite]) -> Self {
        self.text = text;
        self.cites = cites;
        self
    }

    /// Holds in these editions only.
    #[must_use]
    pub const fn only(mut self, editions: Editions) -> Self {
        self.holds.editions = editions;
        self
    }

    /// Holds only where the contract contains these.
    #[must_use]
    pub const fn needs(mut self, facts: &'static [Fact]) -> Self {
        self.holds.facts = facts;
        self
    }

    /// Holds only for a target that declares this capability.
    #[must_use]
    pub const fn when(mut self, capability: &'static str) -> Self {
        self.holds.declares = Some(capability);
        self
    }

    /// What may be seen; the first one is what the text asks for.
    #[must_use]
    pub const fn accepts(mut self, accepts: &'static [Accepts]) -> Self {
        self.accepts = accepts;
        self
    }

    /// How it is checked.
    #[must_use]
    pub const fn checked(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Who asks for it: the basis of what its text asks for.
    pub fn basis(&self) -> Basis {
        self.accepts.first().map_or(Basis::Specified, |accepts| accepts.by)
    }

    /// The script that brings it up; `None` when nothing can.
    pub fn script(&self) -> Option<&'static ScriptDef> {
        match self.check {
            Check::Always(_, script) | Check::After(script, _) => Some(script),
            Check::Unobservable(_) => None,
        }
    }
}
