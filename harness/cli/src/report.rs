//! From what a judge says to the report: words, excerpts, and the command that shows it again.

use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::judge::{Judged, ProcessEnd};
use sidecert_proto::requirement::{Basis, Check, Cite, Level, Requirement};
use sidecert_proto::run::Run;
use sidecert_proto::script::{CALLS, Need, SLOW};
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{End, Wait};
use sidecert_proto::verdict::{Broken, Verdict, Why};
use sidecert_reports as reports;
use sidecert_reports::safe;

use crate::args::{Judging, ProfileArg};
use crate::excerpts::{Cut, Excerpts, Heard, How};
use crate::{exit, words};

/// How much of standard error a report shows, in bytes.
const STDERR_BYTES: usize = 1_000;

/// Everything that a report is made of.
pub(crate) struct Facts<'a> {
    pub(crate) run: &'a Run,
    pub(crate) suite: &'a Suite,
    pub(crate) contract: &'a Contract,
    pub(crate) judging: &'a Judging,
    pub(crate) judged: &'a Judged,
    pub(crate) excerpts: &'a Excerpts,
    pub(crate) code: u8,
    pub(crate) says: &'a str,
}

/// The report.
pub(crate) fn build(facts: &Facts<'_>) -> reports::Report {
    let Facts { run, suite, contract, judging, judged, code, says, .. } = facts;
    let requirements: Vec<_> =
        judged.verdicts.iter().map(|(row, verdict)| requirement(facts, row, verdict)).collect();
    let causes = causes(facts);
    let waits: Vec<_> = judged
        .waits
        .iter()
        .map(|wait| reports::Wait {
            process: name(judged, wait.process),
            script: wait.script.clone(),
            awaited: match wait.wait {
                Wait::Start => reports::WaitFor::Start,
                Wait::Answer => reports::WaitFor::Answer,
                Wait::Fence => reports::WaitFor::Fence,
                Wait::Quiet => reports::WaitFor::Quiet,
                Wait::Exit => reports::WaitFor::Exit,
                Wait::Outcome => reports::WaitFor::Outcome,
                Wait::Launch => reports::WaitFor::Launch,
                Wait::Gone => reports::WaitFor::Gone,
            },
            label: wait.label.clone(),
            micros: wait.took,
            within_micros: wait.within,
        })
        .collect();
    let cause = judged.cause.iter().cloned().chain(faults(judged)).next();
    reports::Report {
        format: reports::Format::SidecertReport,
        version: reports::Report::VERSION,
        tool: reports::Tool { name: "sidecert".to_owned(), version: run.tool.clone() },
        suite: suite.name.to_owned(),
        edition: suite.title.to_owned(),
        contract: reports::Contract {
            id: contract.id.clone(),
            sha256: run.contract_sha256.clone(),
            built_in: run.contract.is_none(),
        },
        role: match run.target.0 {
            Side::Guest => reports::Role::Guest,
            Side::Host => reports::Role::Host,
        },
        target: reports::Target { argv: run.argv.clone(), sha256: run.executable_sha256.clone() },
        seed: format!("{:016x}", run.seed),
        profile: match judging.profile {
            ProfileArg::Specified => reports::Profile::Specified,
            ProfileArg::Reference => reports::Profile::Reference,
        },
        strict: judging.strict,
        started: Some(run.started.clone()),
        platform: run.platform.clone(),
        outcome: reports::Outcome {
            exit_code: *code,
            says: (*says).to_owned(),
            cause,
            interrupted: *code == exit::INTERRUPTED,
        },
        counts: reports::Counts::of(&requirements),
        requirements,
        causes,
        ours: judged
            .ours
            .iter()
            .map(|(at, says)| reports::OwnFrame {
                process: name(judged, at.process),
                event: at.event,
                says: says.clone(),
            })
            .collect(),
        late: judged
            .late
            .iter()
            .map(|(at, method)| reports::LateFrame {
                process: name(judged, at.process),
                event: at.event,
                method: method.clone(),
            })
            .collect(),
        longest_wait_micros: waits.iter().map(|wait| wait.micros).max().unwrap_or_default(),
        waits,
        processes: judged
            .processes
            .iter()
            .enumerate()
            .map(|(number, end)| process(end, facts.excerpts.was_killed(number)))
            .collect(),
        compared: None,
        environment: reports::Environment { withheld: run.withheld.clone() },
    }
}

/// What is wrong with the recordings themselves.
fn faults(judged: &Judged) -> impl Iterator<Item = String> {
    judged.faults.iter().map(|fault| {
        let name = name(judged, fault.process);
        match fault.line {
            0 => format!("the recording {name} is faulty: {}", fault.says),
            line => format!("the recording {name} is faulty in line {line}: {}", fault.says),
        }
    })
}

fn name(judged: &Judged, process: usize) -> String {
    judged.processes.get(process).map(|process| process.name.clone()).unwrap_or_default()
}

fn requirement(facts: &Facts<'_>, row: &Requirement, verdict: &Verdict) -> reports::Requirement {
    let mut told = reports::Requirement {
        id: row.id.to_owned(),
        level: match row.level {
            Level::Must => reports::Level::Must,
            Level::Should => reports::Level::Should,
            Level::May => reports::Level::May,
        },
        basis: match row.basis() {
            Basis::Specified => reports::Basis::Specified,
            Basis::Observed(_) => reports::Basis::Observed,
        },
        verdict: reports::Verdict::Pass,
        why: None,
        says: None,
        option: None,
        text: row.text.to_owned(),
        cites: row.cites.iter().map(cite).collect(),
        expected: None,
        actual: None,
        at: None,
        frames: Vec::new(),
        fault: None,
        again: None,
    };
    match verdict {
        Verdict::Pass { remark } => told.says = remark.map(str::to_owned),
        Verdict::Fail(broken) => tell(facts, row, broken, &mut told, reports::Verdict::Fail),
        Verdict::Warn(broken) => {
            tell(facts, row, broken, &mut told, reports::Verdict::Warn);
            if let Basis::Observed(program) = row.basis() {
                told.says =
                    Some(format!("{program} does it so; under --profile reference this is a failure"));
            }
        }
        Verdict::NotApplicable(why) => {
            told.verdict = reports::Verdict::NotApplicable;
            told.says = Some(why.to_string());
        }
        Verdict::Undecided(why) => {
            told.verdict = reports::Verdict::Undecided;
            told.why = Some(reason(why));
            (told.option, told.says) = open(facts, row, why);
        }
    }
    told
}

fn tell(
    facts: &Facts<'_>,
    row: &Requirement,
    broken: &Broken,
    told: &mut reports::Requirement,
    as_: reports::Verdict,
) {
    told.verdict = as_;
    told.expected = Some(match row.check {
        // A rule is watched all the time: what is expected is what it says.
        Check::Always(..) => row.text.to_owned(),
        _ => broken.expected.0.to_owned(),
    });
    told.actual = Some(broken.actual.clone());
    told.at =
        Some(reports::Location { process: name(facts.judged, broken.at.process), event: broken.at.event });
    let excerpt = facts.excerpts.around(&broken.at);
    told.frames = excerpt.map(|excerpt| excerpt.frames.clone()).unwrap_or_default();
    told.fault = (as_ == reports::Verdict::Fail).then_some(reports::Fault::Target);
    told.again = Some(again(facts, row, excerpt.map(|excerpt| excerpt.script.as_str())));
}

/// What would decide an undecided requirement: the option, and why.
fn open(facts: &Facts<'_>, row: &Requirement, why: &Why) -> (Option<String>, Option<String>) {
    let provocation = row.script().into_iter().flat_map(|script| script.needs).find_map(|need| match need {
        Need::Provocation(name) => facts.suite.provocations.iter().find(|known| known.name == *name),
        _ => None,
    });
    match (why, provocation) {
        (Why::NotProvoked(_), Some(known)) if !facts.run.provocations.contains_key(known.name) => {
            let says = format!("where the file says of `{}`: {}", known.name, known.says);
            (Some("--provoke FILE".to_owned()), Some(says))
        }
        (Why::NotExercised(SLOW), _) => {
            (Some("--slow".to_owned()), Some("it takes as long as a time limit of the protocol".to_owned()))
        }
        (Why::NotExercised(CALLS), _) => {
            let says =
                "a tool may have effects, so none is called that you do not name (or --call-read-only)";
            (Some("--call NAME=JSON".to_owned()), Some(says.to_owned()))
        }
        (Why::NotExercised(group), _) => {
            let known = facts.suite.exercises.iter().find(|known| known.name == *group);
            let says = known.map_or("it may have effects", |known| known.says);
            (Some(format!("--exercise {group}")), Some(says.to_owned()))
        }
        (Why::CutShort(cause), _) => {
            let cut = facts.excerpts.cuts.iter().find(|cut| cut.recorded == *cause);
            (None, Some(cut.map_or(cause, |cut| &cut.actual).clone()))
        }
        _ => (None, Some(why.to_string())),
    }
}

/// Every reason for which requirements were cut short, once.
fn causes(facts: &Facts<'_>) -> Vec<reports::Cause> {
    let faults: Vec<String> = faults(facts.judged).collect();
    let mut causes: Vec<(&str, Vec<&'static Requirement>)> = Vec::new();
    let mut lost = Vec::new();
    for (row, verdict) in &facts.judged.verdicts {
        let Verdict::Undecided(Why::CutShort(cause)) = verdict else { continue };
        let recorded = facts.excerpts.cuts.iter().any(|cut| cut.recorded == *cause);
        match causes.iter_mut().find(|(known, _)| known == cause) {
            Some((_, rows)) => rows.push(row),
            // What no recording says is missing because a recording is faulty, if one is.
            None if !recorded && !faults.is_empty() => lost.push(row.id.to_owned()),
            None => causes.push((cause, vec![row])),
        }
    }
    let faulty = reports::Cause { cuts: lost, ..unexplained(faults.join("; ")) };
    let faulty = (!faults.is_empty()).then_some(faulty);
    let cut = causes.into_iter().map(|(cause, rows)| self::cause(facts, cause, &rows));
    faulty.into_iter().chain(cut).collect()
}

fn cause(facts: &Facts<'_>, cause: &str, rows: &[&'static Requirement]) -> reports::Cause {
    let cut = facts.excerpts.cuts.iter().find(|cut| cut.recorded == cause);
    let played = |row: &&&Requirement| {
        row.script().is_some_and(|script| cut.is_some_and(|cut| cut.script == script.name))
    };
    let again = rows.iter().find(played).or(rows.first()).map(|row| again(facts, row, None));
    let cuts = rows.iter().map(|row| row.id.to_owned()).collect();
    let mut told = reports::Cause { again, cuts, ..unexplained(cause.to_owned()) };
    let Some(cut) = cut else { return told };
    told.script = Some(cut.script.clone());
    told.actual.clone_from(&cut.actual);
    told.at = Some(reports::Location { process: name(facts.judged, cut.at.process), event: cut.at.event });
    told.frames.clone_from(&cut.frames);
    told.hint = match facts.run.target.0 {
        Side::Guest => hint(cut),
        Side::Host => host_hint(cut),
    }
    .map(str::to_owned);
    // How long a target may take is mostly for us to say, so a slow one is at fault nowhere.
    told.fault = matches!(cut.how, How::Ended | How::Said).then_some(reports::Fault::Target);
    if let Some(awaited) = &cut.awaited {
        let what = if cut.how == How::Said { "a result for" } else { "an answer to" };
        told.expected = Some(format!("{what} {}", awaited.name()));
        told.cites = awaited.method.as_deref().map(|method| answer_cites(facts, method)).unwrap_or_default();
    }
    told
}

fn unexplained(actual: String) -> reports::Cause {
    reports::Cause {
        script: None,
        expected: None,
        actual,
        cites: Vec::new(),
        at: None,
        frames: Vec::new(),
        fault: None,
        hint: None,
        again: None,
        cuts: Vec::new(),
    }
}

/// Where it stands what a method is answered with: the section about its class, and the definition of its result.
fn answer_cites(facts: &Facts<'_>, method: &str) -> Vec<reports::Cite> {
    let Some(method) = facts.contract.method(method) else { return Vec::new() };
    let section = facts.suite.requirements.iter().find_map(|row| {
        let about = row.id.split('/').nth(1).is_some_and(|section| section.starts_with(&method.class));
        row.cites.iter().find(|cite| about && matches!(cite, Cite::Seed(..)))
    });
    let result = method.result.as_ref().map(|name| reports::Cite {
        kind: reports::CiteKind::Schema,
        section: format!("/$defs/{name}"),
        english: None,
    });
    section.map(cite).into_iter().chain(result).collect()
}

/// What to look at first in a host and its driver.
fn host_hint(cut: &Cut) -> Option<&'static str> {
    match (cut.how, cut.heard) {
        (How::TimedOut | How::Ended | How::Said, Heard::Echo | Heard::Noise) => Some(
            "what the host writes to the standard input of its guests: frames of its own only, one a line; logs and \
             banners belong elsewhere",
        ),
        (How::TimedOut, Heard::Nothing) => Some(
            "whether the command is the driver's, reads standard input, flushes its output after every line, and \
             makes the host start its plugins: nothing was written to a guest",
        ),
        (How::TimedOut, Heard::Frames) => Some(
            "what the host does with what it was asked for: it wrote to its guests, but this did not come",
        ),
        (How::Ended, Heard::Nothing) => Some(
            "its standard error, and whether the command is right: it ended before anything was written to a guest",
        ),
        (How::Ended, Heard::Frames) => Some("its standard error: it ended while something was awaited"),
        (How::Said, Heard::Frames) => Some("the message of that error: the host says why it cannot go on"),
        (How::Said, Heard::Nothing) | (How::Other, _) => None,
    }
}

/// What to look at first in a guest.
fn hint(cut: &Cut) -> Option<&'static str> {
    match (cut.how, cut.heard) {
        (_, Heard::Echo) => Some("the command: it repeats what it reads, so it may not be the guest itself"),
        (How::TimedOut | How::Ended | How::Said, Heard::Noise) => Some(
            "what it writes to standard output: frames only, one a line; logs and banners belong on standard error",
        ),
        (How::TimedOut, Heard::Nothing) => Some(
            "whether the command is the guest's, reads standard input, and flushes its output after every frame: \
             not one byte came",
        ),
        (How::TimedOut, Heard::Frames) => Some(
            "what it does with the request: it wrote frames, but not this answer. Is it only slow? Then give it \
             more time with --answer-timeout",
        ),
        (How::Ended, Heard::Nothing) => Some(
            "its standard error, and whether the command is right: it ended before it said anything. A guest runs \
             until it is told to shut down, or until its input ends",
        ),
        (How::Ended, Heard::Frames) => Some("its standard error: it ended while an answer was awaited"),
        (How::Said, Heard::Frames) => Some("the message of that error: the guest says why it cannot go on"),
        (How::Said, Heard::Nothing) | (How::Other, _) => None,
    }
}

/// The command that shows one requirement again, as it showed in `script`.
fn again(facts: &Facts<'_>, row: &Requirement, script: Option<&str>) -> String {
    let run = facts.run;
    let seed = format!("{:016x}", run.seed);
    let target = if run.target.0 == Side::Host { "host" } else { "guest" };
    let mut words = vec!["sidecert", "check", target, "--suite", facts.suite.name];
    if !run.driver.is_empty() {
        words.extend(["--driver", &run.driver]);
    }
    words.extend(["--seed", &seed, "--only", row.id]);
    words.extend(played_by(facts, row, script).into_iter().flat_map(|id| ["--only", id]));
    if facts.judging.profile == ProfileArg::Reference {
        words.extend(["--profile", "reference"]);
    }
    words.extend(run.options.iter().map(String::as_str));
    // What is slow, and which tools are called, stand among the options.
    let of_options = |group: &&str| *group == SLOW || group.starts_with(CALLS);
    let groups = run.exercised.iter().map(String::as_str).filter(|group| !of_options(group));
    let exercised = groups.collect::<Vec<_>>().join(",");
    if !exercised.is_empty() {
        words.extend(["--exercise", &exercised]);
    }
    // A driver stands for a command where a person needs none.
    if run.argv.first() != Some(&run.driver) {
        words.push("--");
        words.extend(run.argv.iter().map(String::as_str));
    }
    // Only a NUL byte cannot be quoted, and no argument can hold one.
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}

/// What must be selected as well so that `script` is played: a rule can be broken in any script.
fn played_by(facts: &Facts<'_>, row: &Requirement, script: Option<&str>) -> Option<&'static str> {
    let (opening, closing) = facts.suite.frame(facts.run.target.0);
    let ends = [opening.name, closing.name];
    let own = row.script().map(|script| script.name);
    let script = script.filter(|script| own != Some(*script) && !ends.contains(script))?;
    let rows = facts.judged.verdicts.iter().map(|(row, _)| row);
    let mut others = rows.filter(|row| row.script().is_some_and(|its| its.name == script));
    others.next().map(|row| row.id)
}

fn cite(cite: &Cite) -> reports::Cite {
    let (kind, section, english) = match cite {
        Cite::Seed(heading, english) => (reports::CiteKind::Seed, *heading, Some((*english).to_owned())),
        Cite::Schema(pointer) => (reports::CiteKind::Schema, *pointer, None),
        Cite::JsonRpc(section) => (reports::CiteKind::JsonRpc, *section, None),
    };
    reports::Cite { kind, section: section.to_owned(), english }
}

fn reason(why: &Why) -> reports::Why {
    match why {
        Why::CutShort(_) => reports::Why::CutShort,
        Why::NotMeasured(_) => reports::Why::NotMeasured,
        Why::OutOfReach(_) => reports::Why::OutOfReach,
        Why::NotProvoked(_) => reports::Why::NotProvoked,
        Why::NotExercised(_) => reports::Why::NotExercised,
        Why::NotSelected => reports::Why::NotSelected,
        Why::Unobservable(_) => reports::Why::Unobservable,
    }
}

fn process(process: &ProcessEnd, killed: bool) -> reports::Process {
    let ended = match process.end {
        Some(End::Done) => "in order",
        Some(End::Cut) => "cut short",
        Some(End::Interrupted) => "interrupted",
        None => "its recording has no end",
    };
    reports::Process {
        name: process.name.clone(),
        scripts: process.scripts.clone(),
        ended: ended.to_owned(),
        exit: process
            .exited
            .map(words::exited)
            .map(|exit| if killed { format!("{exit}, from sidecert") } else { exit }),
        left: process.left.iter().map(|left| format!("{} (process {})", left.name, left.pid)).collect(),
        stderr_tail: safe::tail(process.stderr.as_bytes(), STDERR_BYTES),
    }
}
