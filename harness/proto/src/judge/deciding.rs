//! From tallies and sights to the verdict of each row, once a run has been read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Judge, Origin};
use crate::contract::{Fact, Side};
use crate::requirement::{Check, Requirement};
use crate::script::{Need, ScriptDef, Setting};
use crate::verdict::{self, At, Broken, Sight, Verdict, Why};

impl Judge<'_> {
    pub(super) fn verdict(&self, row: &'static Requirement) -> Verdict {
        if !self.selected.contains(row.id) {
            return Verdict::Undecided(Why::NotSelected);
        }
        if let Some(why) = self.does_not_hold(row) {
            return why;
        }
        if self.unhurried && self.suite.timed.contains(&row.id) {
            return Verdict::Undecided(Why::NotMeasured(
                "the driver in use does not tell at once when it is over",
            ));
        }
        match row.check {
            Check::Unobservable(why) => Verdict::Undecided(Why::Unobservable(why)),
            Check::After(script, _) => {
                let decided = self.decided.get(row.id).cloned();
                decided.unwrap_or_else(|| Verdict::Undecided(self.never_played(script)))
            }
            Check::Always(rule, script) => {
                let place = self.suite.rules.iter().position(|known| *known == rule);
                let tally = place.map(|place| self.tallies[place].clone()).unwrap_or_default();
                match tally.broken {
                    Some((at, actual)) => self.broken(row, at, actual),
                    None if tally.kept => Verdict::Pass { remark: None },
                    None => Verdict::Undecided(self.never_came_up(script)),
                }
            }
        }
    }

    fn broken(&self, row: &'static Requirement, at: At, actual: String) -> Verdict {
        let process = at.process;
        let sight = Sight::SawOther { at: at.event, actual };
        match verdict::verdict(row, self.profile, process, sight) {
            Verdict::Fail(broken) => Verdict::Fail(Broken { at, ..broken }),
            other => other,
        }
    }

    fn does_not_hold(&self, row: &'static Requirement) -> Option<Verdict> {
        if row.holds.editions & self.suite.edition == 0 {
            let why = format!("it does not hold in {}", self.suite.name);
            return Some(Verdict::NotApplicable(Cow::Owned(why)));
        }
        if let Some(missing) = row.holds.facts.iter().find(|fact| !self.contract.has(**fact)) {
            let name = match missing {
                Fact::Method(name) | Fact::Member(name) | Fact::Reason(name) | Fact::Definition(name) => name,
            };
            return Some(Verdict::NotApplicable(Cow::Owned(format!("the contract has no {name}"))));
        }
        let capability = row.holds.declares?;
        match &self.declared {
            Some(declared) if declared.contains(capability) => None,
            Some(_) => {
                let who = self.target;
                Some(Verdict::NotApplicable(Cow::Owned(format!("the {who} does not declare {capability}"))))
            }
            None => Some(Verdict::Undecided(self.cut_short())),
        }
    }

    /// Why a script that a row needs was not played.
    fn never_played(&self, script: &ScriptDef) -> Why {
        if self.origin != Origin::Check {
            return self.cut_short();
        }
        let none = BTreeSet::new();
        let declared = self.declared.as_ref().unwrap_or(&none);
        match (Setting { declared, ..self.setting }).unmet(script) {
            Some(Need::Provocation(name)) => {
                let known = self.suite.provocations.iter().find(|provocation| provocation.name == name);
                let says = known.map_or("", |provocation| provocation.says);
                Why::NotProvoked(Cow::Owned(format!("the provocation `{name}`: {says}")))
            }
            Some(Need::Exercise(group)) => Why::NotExercised(group),
            Some(Need::Declared(what)) if self.target == Side::Host && self.declared.is_some() => {
                Why::OutOfReach(Cow::Owned(format!("the driver in use does not offer {what}")))
            }
            Some(Need::Declared(_)) | None => self.cut_short(),
        }
    }

    fn never_came_up(&self, script: &ScriptDef) -> Why {
        if let Some(why) = self.beyond.get(script.name) {
            return Why::OutOfReach(Cow::Owned(why.clone()));
        }
        match self.cut.get(script.name) {
            Some(Some(cause)) => Why::CutShort(cause.clone()),
            Some(None) => Why::NotProvoked(Cow::Borrowed("nothing that it did brought this up")),
            None => self.never_played(script),
        }
    }

    fn cut_short(&self) -> Why {
        let says = match (self.origin, &self.judged.cause) {
            (Origin::Foreign, _) => "no check made this recording, and nothing in it brings this up",
            (Origin::Unasked, None) => {
                "the host was asked for nothing, and what it did does not bring this up"
            }
            (Origin::Check | Origin::Unasked, Some(cause)) => return Why::CutShort(cause.clone()),
            (Origin::Check, None) => {
                return Why::CutShort("the recording does not have its script".to_owned());
            }
        };
        Why::NotProvoked(Cow::Borrowed(says))
    }
}
