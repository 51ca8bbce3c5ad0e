//! What the machinery must know of one family of protocols in one edition.

use std::collections::BTreeSet;

use crate::contract::{Contract, ContractFault, Side};
use crate::json::Node;
use crate::judge::Observer;
use crate::play::{Casting, Peer};
use crate::redact::Free;
use crate::requirement::{Editions, Requirement, Rule};
use crate::script::{Process, ScriptDef, Setting};

/// A family in one edition.
pub struct Suite {
    /// Its name on the command line.
    pub name: &'static str,
    /// Where every requirement id of the family begins.
    pub family: &'static str,
    /// What is specified, in words.
    pub title: &'static str,
    /// The bit of its edition.
    pub edition: Editions,
    /// The contract that is built in.
    pub contract: fn() -> &'static Contract,
    /// Reads another contract of the family: a document of the published form with all that the family rests on.
    pub read: fn(&[u8]) -> Result<Contract, ContractFault>,
    /// The table of the family, all editions.
    pub requirements: &'static [Requirement],
    /// Every rule that its observer notes.
    pub rules: &'static [&'static Rule],
    /// What is played first in a process, except before a bare script.
    pub opening: &'static ScriptDef,
    /// The method whose result tells what the target declares: the first that is asked in a process.
    pub declared_by: &'static str,
    /// What is played last.
    pub closing: &'static ScriptDef,
    /// Watches one side of one connection.
    pub observer: for<'c> fn(&'c Contract, Side) -> Box<dyn Observer<'c> + 'c>,
    /// Our end, when the target is a guest.
    pub host: for<'c> fn(&Setting<'c>) -> Box<dyn Peer + 'c>,
    /// Our end, when the target is a host; `None` while the family has no rows for hosts.
    pub casting: Option<&'static Casting>,
    /// What is played instead of all scripts before a host that is asked for nothing.
    pub visit: Option<&'static ScriptDef>,
    /// The capabilities that a result of the declaring request declares.
    pub declared: fn(Node<'_>) -> BTreeSet<String>,
    /// The variables that a host of the family sets for its guests.
    pub environment: fn(&Setting<'_>) -> Vec<(&'static str, String)>,
    /// The longest line that is read, in bytes, LF not counted.
    pub line_bytes_max: fn(&Contract) -> usize,
    /// The rows for hosts that look at when something was over: undecided where the driver does not tell that at once.
    pub timed: &'static [&'static str],
    /// The members of its frames that hold what somebody wrote, and no name.
    pub free: Free,
    /// Where guests have tools to call: why calls that the user asked for are not made, a line each, once the target has
    /// declared its tools.
    pub calls: Option<fn(&Setting<'_>) -> Vec<String>>,
    /// The contract with the bounds of an older generation, where there was one.
    pub older: Option<fn(&Contract) -> Contract>,
    /// What the user may make possible.
    pub provocations: &'static [Provocation],
    /// What the user may let us do.
    pub exercises: &'static [Exercise],
}

/// Something that no frame can order, and that the user may make possible.
#[derive(Clone, Copy, Debug)]
pub struct Provocation {
    /// Its name in the provocation file.
    pub name: &'static str,
    /// What the target does when it receives the frame.
    pub says: &'static str,
    /// The frame that the mocks honour, as a TOML value.
    pub example: &'static str,
}

/// Something that may have effects, and that the user may let us do.
#[derive(Clone, Copy, Debug)]
pub struct Exercise {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is done.
    pub says: &'static str,
}

impl std::fmt::Debug for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How many tours of a host one process plays: what runs side by side is done sooner, and when one is cut short it is
/// those of its process that are played again.
pub const HOST_TOURS_TOGETHER: usize = 20;

impl Suite {
    /// The rows that bind `side`, in the order of the table.
    pub fn rows(&self, side: Side) -> impl Iterator<Item = &'static Requirement> {
        let requirements = self.requirements;
        requirements.iter().filter(move |row| row.binds == side)
    }

    /// What is played first in a process whose target is on `side`, except before a bare script, and what last.
    pub fn frame(&self, side: Side) -> (&'static ScriptDef, &'static ScriptDef) {
        match (side, self.casting) {
            (Side::Host, Some(casting)) => (casting.opening, casting.closing),
            _ => (self.opening, self.closing),
        }
    }

    /// The scripts that bring up `rows`, each once, in the order of the rows, openings and closings aside.
    pub fn scripts<'r>(&self, rows: impl IntoIterator<Item = &'r Requirement>) -> Vec<&'static ScriptDef> {
        let mut scripts: Vec<&'static ScriptDef> = Vec::new();
        for script in rows.into_iter().filter_map(Requirement::script) {
            if !self.is_frame(script) && !scripts.contains(&script) {
                scripts.push(script);
            }
        }
        scripts
    }

    /// Whether `script` only begins or ends a process.
    pub fn is_frame(&self, script: &ScriptDef) -> bool {
        [Side::Guest, Side::Host].into_iter().any(|side| {
            let (opening, closing) = self.frame(side);
            *script == *opening || *script == *closing
        })
    }

    /// The processes that play `scripts` against a target on `side`: the tours together, unless `isolate`, and every
    /// other script alone. Hosts take long for each, so of theirs [`HOST_TOURS_TOGETHER`] are together.
    pub fn processes(
        &self,
        side: Side,
        scripts: &[&'static ScriptDef],
        isolate: bool,
    ) -> Vec<Vec<&'static ScriptDef>> {
        let (opening, closing) = self.frame(side);
        let wrap = |middle: Vec<&'static ScriptDef>| {
            let mut plan = vec![opening];
            plan.extend(middle);
            plan.push(closing);
            plan
        };
        let (tours, alone): (Vec<_>, Vec<_>) =
            scripts.iter().copied().partition(|script| script.process == Process::Tour && !isolate);
        let mut processes = Vec::new();
        // The opening and the closing have rows of their own, so there is always one process that plays them.
        if !tours.is_empty() || !alone.iter().any(|script| script.process != Process::Bare) {
            let together = if side == Side::Host { HOST_TOURS_TOGETHER } else { usize::MAX };
            let parts = tours.chunks(together.min(tours.len().max(1))).map(<[_]>::to_vec);
            processes.extend(parts.map(wrap));
            if processes.is_empty() {
                processes.push(wrap(Vec::new()));
            }
        }
        processes.extend(alone.into_iter().map(|script| match script.process {
            Process::Bare => vec![script],
            Process::Tour | Process::Own => wrap(vec![script]),
        }));
        processes
    }
}
