//! What makes a host act that is checked: a shim of ours, or the user's command, and all that it is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;

use sidecert_proto::contract::Side;
use sidecert_proto::script::{ScriptDef, Setting, Step, WORDS};
use sidecert_proto::suite::Suite;
use sidecert_runner::Spawn;

use crate::args::{CheckArgs, DRIVERS, Driver};
use crate::exit::{self, Fault};
use crate::shims::terminal;

/// The driver of a check.
#[derive(Debug)]
pub(crate) struct Driving {
    pub(crate) driver: Driver,
    /// The terminal on which a person is asked, where one is.
    terminal: Option<PathBuf>,
}

impl Driving {
    /// What makes the host act, if one is checked.
    pub(crate) fn of(args: &CheckArgs, side: Side) -> Result<Option<Self>, Fault> {
        let driver = match (side, args.driver) {
            (Side::Guest, None) if args.compare => {
                return Err(Fault::usage("--compare: it compares hosts, and here a guest is checked"));
            }
            (Side::Guest, None) => return Ok(None),
            (Side::Guest, Some(_)) => {
                return Err(Fault::usage("--driver: it makes a host act, and here a guest is checked"));
            }
            (Side::Host, Some(driver)) => driver,
            (Side::Host, None) => {
                let names = DRIVERS.map(|(name, _)| name).join(", ");
                return Err(Fault::usage(format!(
                    "no driver to make the host act: --driver is one of {names}"
                )));
            }
        };
        if driver == Driver::None && args.compare {
            return Err(Fault::usage(
                "--compare: the driver none asks for nothing that the reference host could do as well",
            ));
        }
        if driver == Driver::None && !args.script.is_empty() {
            return Err(Fault::usage(
                "--script: the driver none asks the host for nothing, and plays no script",
            ));
        }
        let asks_a_person =
            driver == Driver::Manual || driver == Driver::None && args.target.command.is_empty();
        let no_terminal = || Fault {
            code: exit::NOT_STARTED,
            says: format!("--driver {}: {}", driver.name(), terminal::NONE),
        };
        let terminal = if asks_a_person { Some(terminal::name().ok_or_else(no_terminal)?) } else { None };
        Ok(Some(Self { driver, terminal }))
    }

    /// Whether it and the rest of sidecert would write to one terminal.
    pub(crate) fn has_the_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether a person would have to do things twice if scripts were played twice.
    pub(crate) fn is_a_person(&self) -> bool {
        self.driver == Driver::Manual
    }

    /// The words that start it before those of the user's command. `sidecert` is our own program, and `folder` one that
    /// stays as long as the run.
    pub(crate) fn words(&self, sidecert: &Path, folder: &Path, asks: u64) -> Vec<OsString> {
        let words = self.driver.words();
        if words.is_empty() {
            return Vec::new();
        }
        let mut all = vec![sidecert.as_os_str().to_owned()];
        all.extend(words.iter().map(OsString::from));
        if let Some(terminal) = &self.terminal {
            all.extend(["--terminal".into(), terminal.into()]);
        }
        if self.driver.is_by_hand() {
            all.extend(["--folder".into(), folder.into()]);
        }
        if self.is_a_person() {
            let (asks, pid) = (asks.to_string(), process::id().to_string());
            all.extend(["--asks".into(), asks.into(), "--stops".into(), pid.into()]);
        }
        all.push("--".into());
        all
    }

    /// Fails where the user's command cannot be started: behind a shim of ours, nobody else would say so.
    pub(crate) fn can_start(&self, command: &Spawn) -> Result<(), Fault> {
        if self.driver.words().is_empty() || self.is_a_person() || command.argv.is_empty() {
            return Ok(());
        }
        let fault = command.foreseen();
        fault.map_or(Ok(()), |fault| Err(Fault { code: exit::NOT_STARTED, says: fault.to_string() }))
    }

    /// What is played in place of the scripts of the requirements, if anything is.
    pub(crate) fn instead(&self, suite: &Suite) -> Option<Vec<&'static ScriptDef>> {
        (self.driver == Driver::None).then(|| suite.visit.into_iter().collect())
    }
}

/// How much there is to do for a person who plays all of `scripts`.
pub(crate) fn asks(scripts: &[&'static ScriptDef], setting: &Setting<'_>) -> u64 {
    let declared = WORDS.iter().map(|word| format!("does/{word}")).collect();
    let setting = Setting { declared: &declared, ..*setting };
    let played = scripts.iter().filter(|script| setting.unmet(script).is_none());
    played.map(|script| asks_of(&script.script(&setting).steps)).sum()
}

fn asks_of(steps: &[Step]) -> u64 {
    let asks = steps.iter().map(|step| match step {
        Step::Ask { .. } => 1,
        Step::Repeat { times, steps } => u64::from(*times) * asks_of(steps),
        Step::Each { steps, .. } => asks_of(steps),
        _ => 0,
    });
    asks.sum()
}
