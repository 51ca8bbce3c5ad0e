//! What a report says, as data.
//!
//! The order of the members here is their order in the JSON form. Both are closed: a new member is a new
//! [`Report::VERSION`]. A member that is `None` is left out of the JSON; empty lists stay.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// Everything that one run found out about one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// What kind of document this is.
    pub format: Format,
    /// The version of that format; [`Report::VERSION`] in every report that this crate reads or writes.
    pub version: u32,
    /// The program that judged.
    pub tool: Tool,
    /// The suite, for example `reasonix-v1`.
    pub suite: String,
    /// The edition of the protocol that the suite stands for.
    pub edition: String,
    /// The machine-readable contract that the frames were held to.
    pub contract: Contract,
    /// Which end of the protocol the target plays.
    pub role: Role,
    /// The program under test.
    pub target: Target,
    /// Where all randomness of the run came from.
    pub seed: String,
    /// Whether what was only observed in implementations can fail.
    pub profile: Profile,
    /// Whether a failed *should* makes the run fail.
    pub strict: bool,
    /// When the run started, as the caller writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Where the run took place, for example `linux-x86_64`.
    pub platform: String,
    /// How the run as a whole ended.
    pub outcome: Outcome,
    /// How often each verdict was given.
    pub counts: Counts,
    /// Every requirement of the suite, in its order.
    pub requirements: Vec<Requirement>,
    /// Why requirements were cut short: each root once, however many there are that it left undecided.
    pub causes: Vec<Cause>,
    /// Wrong frames that sidecert itself sent without meaning to.
    pub ours: Vec<OwnFrame>,
    /// What a host under test wrote to guests when its driver had said that all that it was asked for is over, and no
    /// guest had done anything since: the driver says so too soon, or the host does more by itself. No verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<LateFrame>,
    /// What was waited for, and how long.
    pub waits: Vec<Wait>,
    /// The longest of [`Report::waits`]; 0 where there was none.
    pub longest_wait_micros: u64,
    /// The processes of the target, in the order in which they were started.
    pub processes: Vec<Process>,
    /// Where a host under test did something else than the reference host, if the two were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// What the target's environment lacked.
    pub environment: Environment,
}

/// A comparison of a host with the reference host. What the specification leaves open is a difference, and no fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// What the target was compared with.
    pub with: String,
    /// How many scripts were compared.
    pub scripts: u32,
    /// In how many of them nothing differs.
    pub alike: u32,
    /// Scripts that could not be compared.
    pub left_out: Vec<LeftOut>,
    /// What differs, each thing once: what differs in most scripts first.
    pub differences: Vec<Difference>,
    /// How many differences there are beyond those that are listed.
    pub more: u32,
}

/// A script that could not be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Which.
    pub script: String,
    /// Why.
    pub why: String,
}

/// One thing in which two hosts differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The method of the frame, or in words what was done.
    pub what: String,
    /// Its interception point, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// Where in it, as a JSON pointer; empty where it is the whole.
    pub place: String,
    /// What the target has there, in the first script; absent where only the reference host has something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What the reference host has there; absent where only the target has something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// How often this was seen.
    pub times: u64,
    /// Where: each script and guest once.
    pub seen: Vec<Seen>,
}

/// Where a difference was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// In which script.
    pub script: String,
    /// On the link of which guest, and which launch of it that was; absent for what the user sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// The event of the target's recording, where it is in there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Location>,
}

/// The one value of `format`. It is a type of its own so that no report can carry another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// `sidecert-report`
    #[default]
    #[serde(rename = "sidecert-report")]
    SidecertReport,
}

/// The program that made the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The contract of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The protocol id that the contract itself gives.
    pub id: String,
    /// The SHA-256 of its exact bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Whether it came with sidecert rather than from the user.
    pub built_in: bool,
}

/// An end of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The plugin, the sidecar, the app.
    Guest,
    /// The program that runs guests.
    Host,
}

/// The program under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The command that started it. Empty where nothing was started: a recording of unknown origin.
    pub argv: Vec<String>,
    /// The SHA-256 of its executable, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Only what the specification states; a departure from mere observations warns.
    Specified,
    /// Also what released implementations were seen to do.
    Reference,
}

/// How the run as a whole ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The exit code of the command.
    pub exit_code: u8,
    /// What that code means here, in one line.
    pub says: String,
    /// Why scripts were cut short, if any were: the root, not the symptoms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether the run was stopped from outside, so that the report is partial.
    pub interrupted: bool,
}

/// How often each verdict was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// It came up and held.
    pub pass: u32,
    /// It did not hold.
    pub fail: u32,
    /// It did not hold, but the specification does not ask for it.
    pub warn: u32,
    /// It does not concern this contract or this target.
    pub not_applicable: u32,
    /// It could not be told.
    pub undecided: u32,
}

/// One requirement and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// `<family>/<section>/<what-holds>`.
    pub id: String,
    /// How strongly it is asked for.
    pub level: Level,
    /// Who asks for it.
    pub basis: Basis,
    /// What was found.
    pub verdict: Verdict,
    /// Why it is undecided. Present exactly then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// A sentence for people: what would decide it, or a remark on any other verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The option of the command line that would decide it, where one would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The requirement as a sentence.
    pub text: String,
    /// Where it stands. Empty where it was only observed.
    pub cites: Vec<Cite>,
    /// What would have conformed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was seen instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// Where it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Location>,
    /// What was on the wire around that place.
    pub frames: Vec<Frame>,
    /// Whose fault it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The command that shows it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

/// How strongly something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Without it a target does not conform.
    Must,
    /// Without it a target conforms, but badly.
    Should,
    /// It is allowed.
    May,
}

/// What a requirement rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The specification or its published schema.
    Specified,
    /// What released implementations were seen to do.
    Observed,
}

/// What was found about a requirement. Only `Pass` is green.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It came up and held.
    Pass,
    /// It did not hold.
    Fail,
    /// It did not hold, but the specification does not ask for it.
    Warn,
    /// It does not concern this contract or this target.
    NotApplicable,
    /// It could not be told; [`Requirement::why`] has the reason.
    Undecided,
}

/// Why a requirement is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its script ended early.
    CutShort,
    /// The target never did the thing, and no frame can order it.
    NotProvoked,
    /// Unsafe to try unless an option allows it.
    NotExercised,
    /// The driver in use cannot bring it about.
    OutOfReach,
    /// The platform cannot measure it.
    NotMeasured,
    /// The user left it out.
    NotSelected,
    /// No frame can show it.
    Unobservable,
}

/// Why a script could not be played to its end, and what that left undecided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The script, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// What would have let it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What happened instead.
    pub actual: String,
    /// Where what was expected stands.
    pub cites: Vec<Cite>,
    /// Where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Location>,
    /// What was on the wire around that place.
    pub frames: Vec<Frame>,
    /// Whose fault it is, where that is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What to look at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The command that shows it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// The ids of the requirements that it left undecided, in the order of the suite.
    pub cuts: Vec<String>,
}

/// A place in a specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cite {
    /// Which document.
    pub kind: CiteKind,
    /// The heading, the JSON pointer or the section, as that document has it.
    pub section: String,
    /// The heading in English, where the document is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub english: Option<String>,
}

/// A document that can be cited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CiteKind {
    /// The specification text that the suite grew from.
    Seed,
    /// The published schema; the section is a JSON pointer.
    Schema,
    /// JSON-RPC 2.0.
    JsonRpc,
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// The name of the process, which is the name of its recording.
    pub process: String,
    /// The number of the event there.
    pub event: u64,
}

/// One line of an excerpt: a frame, or something else that happened between frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The number of the event in the recording.
    pub event: u64,
    /// When, since the recording began.
    pub micros: u64,
    /// Who sent it.
    pub from: Origin,
    /// Whether the target sent it.
    pub target: bool,
    /// What it is, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its beginning, as [`crate::safe::preview`] gives it. May hold any character: renderers escape.
    pub text: String,
    /// How long all of it is.
    pub bytes: u64,
    /// Whether this is what broke the requirement, or cut the script short.
    pub marked: bool,
}

/// Who brought a line of an excerpt about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A frame of the host.
    Host,
    /// A frame of the guest.
    Guest,
    /// No frame: an exit, a closed pipe, a limit that was reached.
    Event,
}

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The program under test.
    Target,
    /// sidecert.
    Harness,
}

/// A frame of sidecert's own that was wrong without meaning to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFrame {
    /// The process it was sent to.
    pub process: String,
    /// The number of the event in its recording.
    pub event: u64,
    /// What is wrong with it.
    pub says: String,
}

/// A frame of a host under test that came when all that it was asked for was said to be over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateFrame {
    /// The process that wrote it.
    pub process: String,
    /// The number of the event in its recording.
    pub event: u64,
    /// Its method.
    pub method: String,
}

/// One wait of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The process that was waited for.
    pub process: String,
    /// The script that waited.
    pub script: String,
    /// For what.
    #[serde(rename = "for")]
    pub awaited: WaitFor,
    /// Which one of these, for example the method whose answer was awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How long it took.
    pub micros: u64,
    /// How long it would have been allowed to take.
    pub within_micros: u64,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// The answer to a request.
    Answer,
    /// The answer to a request that is only there to mark a place in the order of events.
    Fence,
    /// Silence.
    Quiet,
    /// The end of a process.
    Exit,
    /// What came of something that a host was asked for.
    Outcome,
    /// The launch of a guest by a host.
    Launch,
    /// The end of such a guest, or a sign of its life.
    Gone,
    /// The first byte of a process.
    Start,
    /// The end of what a process writes.
    Drain,
}

/// One process of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// The name of the process, which is the name of its recording.
    pub name: String,
    /// The scripts that were played on it, in order.
    pub scripts: Vec<String>,
    /// How the conversation with it ended.
    pub ended: String,
    /// How it exited, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
    /// The processes that it left behind.
    pub left: Vec<String>,
    /// The end of what it wrote to stderr, as [`crate::safe::tail`] gives it.
    pub stderr_tail: String,
}

/// What the target's environment lacked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// The names of the variables that were not passed on, because they look like secrets.
    pub withheld: Vec<String>,
}

impl Report {
    /// The version of the format that this crate reads and writes.
    pub const VERSION: u32 = 1;

    /// Whether we played against the target; otherwise somebody else's recording was judged.
    pub fn is_played(&self) -> bool {
        !self.target.argv.is_empty()
    }

    /// The run in one line. Every verdict is counted, so that nothing that was not decided can look green.
    pub fn headline(&self) -> String {
        let Counts { pass, fail, warn, not_applicable, undecided } = self.counts;
        let mut line = format!(
            "{} {}: {pass} pass, {fail} fail, {warn} warn, {not_applicable} not applicable, {undecided} undecided",
            self.suite,
            self.role.word(),
        );
        let reasons: Vec<String> = Why::ALL
            .into_iter()
            .map(|why| (why, self.requirements.iter().filter(|row| row.why == Some(why)).count()))
            .filter(|(_, rows)| *rows > 0)
            .map(|(why, rows)| format!("{rows} {}", why.words()))
            .collect();
        if !reasons.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(line, " ({})", reasons.join(", "));
        }
        line
    }
}

impl Counts {
    /// Counts the verdicts of these requirements.
    pub fn of<'r>(requirements: impl IntoIterator<Item = &'r Requirement>) -> Self {
        let mut counts = Self::default();
        for requirement in requirements {
            *match requirement.verdict {
                Verdict::Pass => &mut counts.pass,
                Verdict::Fail => &mut counts.fail,
                Verdict::Warn => &mut counts.warn,
                Verdict::NotApplicable => &mut counts.not_applicable,
                Verdict::Undecided => &mut counts.undecided,
            } += 1;
        }
        counts
    }
}

impl Requirement {
    /// The part of the specification that its id names: `<family>/<section>`.
    pub fn section(&self) -> &str {
        self.id.rsplit_once('/').map_or(&self.id, |(section, _)| section)
    }

    /// What there is to say beside its verdict, in one line: why it is undecided, the option, the remark.
    pub fn remark(&self) -> String {
        let why = self.why.map(|why| why.words().to_owned());
        let option = self.option.as_ref().map(|option| format!("`{option}`"));
        [why, option, self.says.clone()].into_iter().flatten().collect::<Vec<_>>().join(": ")
    }
}

impl Role {
    /// `guest` or `host`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Host => "host",
        }
    }

    /// The other end, which sidecert plays.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Guest => Self::Host,
            Self::Host => Self::Guest,
        }
    }
}

impl Level {
    /// `must`, `should` or `may`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

impl Why {
    /// All of them, in the order in which they outrank each other.
    pub const ALL: [Self; 7] = [
        Self::CutShort,
        Self::NotMeasured,
        Self::OutOfReach,
        Self::NotProvoked,
        Self::NotExercised,
        Self::NotSelected,
        Self::Unobservable,
    ];

    /// The reason in words, for example `not provoked`.
    pub fn words(self) -> &'static str {
        match self {
            Self::CutShort => "cut short",
            Self::NotMeasured => "not measured",
            Self::OutOfReach => "out of reach",
            Self::NotProvoked => "not provoked",
            Self::NotExercised => "not exercised",
            Self::NotSelected => "not selected",
            Self::Unobservable => "unobservable",
        }
    }
}
