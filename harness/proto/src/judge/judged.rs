//! What a run says: data, for reports.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Exited, Left, Micros};
use crate::requirement::Requirement;
use crate::transcript::{End, Wait};
use crate::verdict::{At, Verdict};

/// What a run says, requirement by requirement.
#[derive(Debug)]
pub struct Judged {
    /// Every row that binds the target, in the order of the table.
    pub verdicts: Vec<(&'static Requirement, Verdict)>,
    /// What the target declared; empty while it has not.
    pub declared: BTreeSet<String>,
    /// Wrong frames of our own that did not mean to be wrong.
    pub ours: Vec<(At, String)>,
    /// What a host wrote too late for anybody to know that it was asked for: its driver had said that all was over.
    pub late: Vec<(At, String)>,
    /// The waits, in order, process by process.
    pub waits: Vec<WaitTaken>,
    /// The processes, in order.
    pub processes: Vec<ProcessEnd>,
    /// Why the first script that could not be played to its end could not.
    pub cause: Option<String>,
    /// The scripts that were played, and why each was not played to its end if it was not.
    pub scripts: BTreeMap<String, Option<String>>,
    /// What is wrong with the recording itself.
    pub faults: Vec<RecordingFault>,
}

/// A wait of ours.
#[derive(Clone, Debug)]
pub struct WaitTaken {
    /// In which process.
    pub process: usize,
    /// In which script.
    pub script: String,
    /// What for.
    pub wait: Wait,
    /// The label of the step, or of the frame whose answer it was.
    pub label: Option<String>,
    /// How long it took.
    pub took: Micros,
    /// How long it might have taken.
    pub within: Micros,
}

/// How a process ended.
#[derive(Clone, Debug, Default)]
pub struct ProcessEnd {
    /// The name of its recording.
    pub name: String,
    /// The scripts that began in it.
    pub scripts: Vec<String>,
    /// How its recording ended; `None` when it has no footer.
    pub end: Option<End>,
    /// How it ended.
    pub exited: Option<Exited>,
    /// What it left running.
    pub left: Vec<Left>,
    /// The end of its standard error.
    pub stderr: String,
}

/// Something wrong with a recording.
#[derive(Clone, Debug)]
pub struct RecordingFault {
    /// In which process.
    pub process: usize,
    /// In which line, counted from 1; 0 where it is the whole of it.
    pub line: u64,
    /// What.
    pub says: String,
}
