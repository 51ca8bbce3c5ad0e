//! The program that is started: its command, how much time it has, and how many of it run at once.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use sidecert_proto::budget::Budget;

use crate::args::TargetArgs;
use crate::exit::Fault;

/// How many processes run at once unless the user says: more would only wait for processors.
const JOBS_MOST: usize = 4;

impl TargetArgs {
    /// The command; `usage` is what stands before `--` where one is missing.
    pub(crate) fn command(&self, usage: impl FnOnce() -> String) -> Result<Vec<OsString>, Fault> {
        if self.command.is_empty() {
            return Err(Fault::usage(format!("no command to check: `sidecert {} -- COMMAND`", usage())));
        }
        Ok(self.command.clone())
    }

    /// The command with that of `--wrap` in front.
    pub(crate) fn wrapped(&self, command: &[OsString]) -> Result<Vec<OsString>, Fault> {
        let Some(wrap) = &self.wrap else { return Ok(command.to_vec()) };
        let words = shlex::split(wrap).filter(|words| !words.is_empty());
        let words = words
            .ok_or_else(|| Fault::usage("--wrap is no command: a quote is not closed, or it is empty"))?;
        Ok(words.into_iter().map(OsString::from).chain(command.iter().cloned()).collect())
    }

    /// How long to wait, and for what.
    pub(crate) fn budget(&self) -> Budget {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut budget = Budget { deadlines: !self.no_deadline, ..Budget::default() };
        if let Some(start) = self.start_timeout.map(micros) {
            (budget.first_byte, budget.start) = (start, start);
        }
        if let Some(answer) = self.answer_timeout.map(micros) {
            (budget.answer_least, budget.answer_most) = (answer, answer);
        }
        budget
    }

    /// How many processes run at once.
    pub(crate) fn jobs(&self) -> NonZeroUsize {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        // One more than can run: some always wait for something.
        let most = NonZeroUsize::new((processors + 1).min(JOBS_MOST)).unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or(most)
    }
}
