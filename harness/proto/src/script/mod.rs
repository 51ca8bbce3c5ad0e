//! A stimulus as data: what our side does, step by step, and how it reacts meanwhile.
//!
//! A [`ScriptDef`] stands in the tables and builds a [`Script`] from the facts of a run. Steps are played in order;
//! reactions answer frames of the target while they run; what no reaction claims, the peer answers. There is no
//! expression language: what the steps cannot say becomes another kind of step.

mod pattern;
mod recorded;
mod template;
mod text;

pub use pattern::{Captures, Pattern};
pub use recorded::Recorded;
pub use template::Template;
pub use text::ScriptFault;

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::{Contract, Side};
use crate::json::{Kind, Tape, quoted};
use crate::machine::{Launch, Order};
use crate::transcript::Payload;

/// The version of the text form.
pub const FORMAT: u64 = 1;

/// A stimulus in the tables. Compared by name.
#[derive(Debug)]
pub struct ScriptDef {
    /// What our side does, as `[a-z0-9-]+`; unique in its suite.
    pub name: &'static str,
    /// Which process it plays in.
    pub process: Process,
    /// What must be given before it can be played at all.
    pub needs: &'static [Need],
    /// Builds it.
    pub build: fn(&Setting<'_>) -> Script,
}

impl ScriptDef {
    /// What stands for a script of the user's, which is played as it says itself.
    pub fn given(script: &Script) -> Self {
        // Whoever gives scripts gives a few, for as long as the program runs.
        let name = Box::leak(script.name.clone().into_boxed_str());
        Self { name, process: script.process, needs: &[], build: |_| Script::default() }
    }

    /// The script, built from these facts.
    pub fn script(&self, setting: &Setting<'_>) -> Script {
        let given = setting.given.iter().find(|given| given.name == self.name);
        given.map_or_else(|| (self.build)(setting), Script::clone)
    }
}

impl PartialEq for ScriptDef {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Which process a script plays in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// One that it shares with other tours, between the suite's opening and closing.
    Tour,
    /// One of its own, between the suite's opening and closing.
    #[default]
    Own,
    /// One of its own, with nothing before and nothing after.
    Bare,
}

/// The group of what takes as long as a time limit of the protocol: the user's `--slow` exercises it.
pub const SLOW: &str = "slow";

/// The group of what calls tools: only ever those that the user named, or that say that they only read.
pub const CALLS: &str = "calls";

/// Something without which a script is not played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A frame, given by the user, that makes this target do something.
    Provocation(&'static str),
    /// The user's leave to exercise this group.
    Exercise(&'static str),
    /// The target's declaration of this capability.
    Declared(&'static str),
}

/// The facts of a run that scripts and peers are built from.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The contract in force.
    pub contract: &'a Contract,
    /// The target's manifest, one JSON text; `None` when the user gave none.
    pub manifest: Option<&'a str>,
    /// What the target has declared so far; empty before its answer to the opening.
    pub declared: &'a BTreeSet<String>,
    /// The provocations that the user gave: each one JSON text.
    pub provocations: &'a BTreeMap<String, String>,
    /// The groups that the user lets us exercise.
    pub exercised: &'a BTreeSet<String>,
    /// The seed of the run: session ids and cut positions come from it.
    pub seed: u64,
    /// A folder for the target's workspace, as text; it may not exist on this machine.
    pub workspace: &'a str,
    /// Where the target is a host: a folder for what its shim must keep, as text.
    pub folder: &'a str,
    /// Where the target is a host: the remote-controlled process that each of our plugins is.
    pub probe: &'a Launch,
    /// The scripts that the user gave. A [`ScriptDef`] of the same name stands for each.
    pub given: &'a [Script],
}

impl<'a> Setting<'a> {
    /// A setting in which the user gave nothing: no manifest, no provocation, no leave to exercise anything.
    pub fn plain(contract: &'a Contract) -> Self {
        static NONE: BTreeSet<String> = BTreeSet::new();
        static NO_PROVOCATIONS: BTreeMap<String, String> = BTreeMap::new();
        static NO_PROBE: Launch = Launch { command: String::new(), args: Vec::new(), env: Vec::new() };
        Self {
            contract,
            manifest: None,
            declared: &NONE,
            provocations: &NO_PROVOCATIONS,
            exercised: &NONE,
            seed: 0,
            workspace: "/",
            folder: "/",
            probe: &NO_PROBE,
            given: &[],
        }
    }

    /// Whether `need` is met.
    pub fn meets(&self, need: Need) -> bool {
        match need {
            Need::Provocation(name) => self.provocations.contains_key(name),
            // What is slow has no effects, so a leave to have effects does not include it.
            Need::Exercise(SLOW) => self.exercised.contains(SLOW),
            Need::Exercise(group) => self.exercised.contains(group) || self.exercised.contains("all"),
            Need::Declared(capability) => self.declared.contains(capability),
        }
    }

    /// The first need of `script` that is not met.
    pub fn unmet(&self, script: &ScriptDef) -> Option<Need> {
        script.needs.iter().copied().find(|need| !self.meets(*need))
    }
}

/// What our side does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// Which process it plays in, where the user gave it; those in the tables have that beside them.
    pub process: Process,
    /// In order.
    pub steps: Vec<Step>,
    /// Beside them; the first that matches a frame answers it.
    pub reactions: Vec<Reaction>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write a frame that conforms.
    Send {
        /// What it is called in the recording.
        label: Option<String>,
        /// The frame.
        frame: Outgoing,
    },
    /// Write a frame that is wrong on purpose.
    Raw {
        /// What it is called in the recording.
        label: Option<String>,
        /// What makes it wrong.
        departs: String,
        /// The frame.
        frame: Outgoing,
    },
    /// Write this and no line feed behind it, which is wrong on purpose.
    Tail {
        /// What it is called in the recording.
        label: Option<String>,
        /// What makes it wrong.
        departs: String,
        /// What is written.
        frame: Outgoing,
    },
    /// Cut the next write at these places (in bytes, LF included); each part goes when the one before it was read.
    Cut {
        /// Where, ascending.
        at: Vec<usize>,
    },
    /// Wait for a frame; frames that came since the script began and no step has claimed count.
    Await {
        /// Which.
        frame: Pattern,
        /// How long.
        within: Within,
    },
    /// Ask something harmless and wait for any answer: what the target did before is now here, if it is serial.
    Fence {
        /// Whether the end of the link will do as well as an answer.
        or_end: bool,
    },
    /// Wait until nothing comes for eight times the median time of an answer.
    Quiet,
    /// The same, unless each frame of ours in this script that can be answered has been.
    Settle,
    /// Stop reading from the target.
    Hold,
    /// Read again.
    Release,
    /// Close our writing end.
    Close,
    /// Wait for the end of the process.
    Exit,
    /// End the process.
    Kill,
    /// Greet the shim of the host under test, and wait until it says what it does.
    Greet,
    /// Ask the shim to make its host do something. Its outcome is waited for by another step.
    Ask {
        /// What it is called in the recording.
        label: String,
        /// The ask, a JSON object without its number.
        what: Template,
    },
    /// Wait for the outcome of an ask, and then until every guest has heard all that the host had written to it.
    Outcome {
        /// The label of the ask.
        of: String,
        /// How long at most, in milliseconds, where the ask takes longer than others.
        within: Option<u64>,
        /// What it must be; anything else ends the script.
        is: Option<Pattern>,
    },
    /// What follows is about this guest of ours; waits until the host has launched it.
    Guest {
        /// Its name.
        name: String,
        /// Which launch of it in this script, counted from 1.
        time: u32,
    },
    /// Let the process of the guest do something that is not writing.
    Do(Order),
    /// The guest does not end when its input does.
    Linger,
    /// Wait for the end of the guest's process.
    Gone,
    /// See whether the guest's process is there.
    Alive,
    /// Play these steps several times.
    Repeat {
        /// How many times.
        times: u32,
        /// What.
        steps: Vec<Self>,
    },
    /// Play these steps once for each element of a captured array.
    Each {
        /// The array's capture.
        of: String,
        /// The capture that holds the element.
        name: String,
        /// What.
        steps: Vec<Self>,
    },
}

/// A frame to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Outgoing {
    /// JSON with holes.
    Template(Template),
    /// These bytes.
    Payload(Payload<'static>),
}

/// How long a step waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// As long as the first answer of a process may take.
    Start,
    /// As long as an answer may take.
    Answer,
    /// Until nothing has come for a while; then the script goes on without.
    Silence,
    /// This many milliseconds: a bound that stands in a frame of ours.
    Millis(u64),
}

/// What our side does about a frame of the target, whenever it comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaction {
    /// Which frames.
    pub when: Pattern,
    /// What.
    pub reply: Reply,
    /// How many times at most; `None` for always.
    pub times: Option<u32>,
    /// Only on the links of this guest of ours; `None` for all.
    pub guest: Option<String>,
}

/// How a reaction answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// At once.
    Once(Template),
    /// At once, and the same again.
    Twice(Template),
    /// When this many fences of the script were answered or silences of it were over.
    AfterFences(u32, Template),
    /// At once, with several frames.
    Several(Vec<Template>),
    /// At once, with a frame that is wrong on purpose.
    Odd {
        /// What makes it wrong.
        departs: String,
        /// The frame.
        answer: Template,
    },
    /// Not at all.
    Never,
}

/// What a script captures, and whether that is all that it needs.
impl Script {
    /// The first frame that would never be sent, since nothing in the script captures what it needs: its label.
    pub fn unsendable(&self, target: Side) -> Option<&str> {
        let mut captures = Captures::new();
        if target == Side::Host {
            let known = GIVEN.iter().chain([&PROMPT]);
            captures.extend(known.map(|name| ((*name).to_owned(), String::new())));
        }
        for reaction in &self.reactions {
            reaction.when.captured(&mut captures);
        }
        captured(&self.steps, &mut captures);
        unsendable(&self.steps, &captures)
    }

    /// What is wrong with the first ask, or the first outcome, that can never come.
    pub fn unaskable(&self) -> Option<String> {
        unaskable(&self.steps, &mut BTreeSet::new())
    }
}

fn unaskable<'s>(steps: &'s [Step], asked: &mut BTreeSet<&'s str>) -> Option<String> {
    steps.iter().find_map(|step| match step {
        Step::Ask { label, what } => {
            asked.insert(label);
            // With a hole in it, this says what it is only when it is asked.
            let tape = Tape::scan(what.text().as_bytes()).ok()?;
            match tape.root().get("do").map(|word| (word.kind(), word.as_str())) {
                None => Some(format!("the ask {label:?} has no \"do\"")),
                Some((Kind::String, Some(word))) if !WORDS.contains(&&*word) => {
                    Some(format!("the ask {label:?} is for {word:?}, and there are {}", WORDS.join(", ")))
                }
                Some(_) => None,
            }
        }
        Step::Outcome { of, .. } if !asked.contains(of.as_str()) => {
            Some(format!("there is an outcome {of:?}, and no ask before it is called so"))
        }
        Step::Repeat { steps, .. } | Step::Each { steps, .. } => unaskable(steps, asked),
        _ => None,
    })
}

fn captured(steps: &[Step], captures: &mut Captures) {
    for step in steps {
        match step {
            Step::Await { frame, .. } => frame.captured(captures),
            Step::Repeat { steps, .. } => captured(steps, captures),
            Step::Each { name, steps, .. } => {
                captures.insert(name.clone(), String::new());
                captured(steps, captures);
            }
            _ => {}
        }
    }
}

fn unsendable<'s>(steps: &'s [Step], captures: &Captures) -> Option<&'s str> {
    steps.iter().find_map(|step| match step {
        Step::Send { label, frame: Outgoing::Template(template) }
        | Step::Raw { label, frame: Outgoing::Template(template), .. }
        | Step::Tail { label, frame: Outgoing::Template(template), .. } => {
            template.lacks(captures).then(|| label.as_deref().unwrap_or("without a label"))
        }
        Step::Ask { label, what } => what.lacks(captures).then_some(label.as_str()),
        Step::Repeat { steps, .. } | Step::Each { steps, .. } => unsendable(steps, captures),
        _ => None,
    })
}

/// What a shim can be asked for, as `docs/host-shim.md` has it.
pub const WORDS: [&str; 14] = [
    "start",
    "stop",
    "turn",
    "cancel",
    "reload",
    "action",
    "submit",
    "answer",
    "compact",
    "new-session",
    "models",
    "admit",
    "describe",
    "signal",
];

/// What a script of a host has captured when it begins: the workspace, and the command and the environment of a plugin
/// that is a guest of ours.
const GIVEN: [&str; 3] = ["workspace", "command", "environment"];
/// What the host asked its user last: under which name it is answered.
pub(crate) const PROMPT: &str = "prompt";

/// What a script of a host has captured when it begins.
pub(crate) fn given(setting: &Setting<'_>) -> Captures {
    let Launch { command, env, .. } = setting.probe;
    let env = env.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)));
    let env = format!("{{{}}}", env.collect::<Vec<_>>().join(","));
    let values = [quoted(setting.workspace), quoted(command), env];
    GIVEN.into_iter().map(str::to_owned).zip(values).collect()
}

/// Building scripts in Rust; what is built is plain data.
impl Script {
    /// An empty script.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Appends a step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sends a conforming request, which the recording calls `label`; `params` is one JSON text, which may have holes.
    #[must_use]
    pub fn request(self, label: &str, method: &str, params: &str) -> Self {
        let frame = request(&format!(r#"{{"$id":"{label}"}}"#), method, params);
        self.step(Step::Send {
            label: Some(label.to_owned()),
            frame: Outgoing::Template(Template::new(frame)),
        })
    }

    /// Sends a conforming notification.
    #[must_use]
    pub fn notify(self, label: &str, method: &str, params: &str) -> Self {
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        self.step(Step::Send {
            label: Some(label.to_owned()),
            frame: Outgoing::Template(Template::new(frame)),
        })
    }

    /// Sends JSON that is wrong on purpose, and says what makes it wrong.
    #[must_use]
    pub fn raw(self, label: &str, departs: &str, json: impl Into<String>) -> Self {
        self.step(Step::Raw {
            label: Some(label.to_owned()),
            departs: departs.to_owned(),
            frame: Outgoing::Template(Template::new(json.into())),
        })
    }

    /// Waits for the answer to the frame called `label`.
    #[must_use]
    pub fn answer(self, label: &str) -> Self {
        self.step(Step::Await { frame: Pattern::answer_to(label), within: Within::Answer })
    }

    /// Asks something harmless and waits for any answer.
    #[must_use]
    pub fn fence(self) -> Self {
        self.step(Step::Fence { or_end: false })
    }

    /// Waits until nothing comes.
    #[must_use]
    pub fn quiet(self) -> Self {
        self.step(Step::Quiet)
    }

    /// Waits until nothing comes, unless each frame of ours that can be answered has been.
    #[must_use]
    pub fn settle(self) -> Self {
        self.step(Step::Settle)
    }

    /// Appends the steps and reactions of another script.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self.reactions.extend(other.reactions);
        self
    }
}

/// A JSON-RPC request as text; `id` and `params` are JSON texts.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}
