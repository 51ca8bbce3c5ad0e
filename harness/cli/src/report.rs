//! From what a judge says to the report: words, excerpts, and the command that shows it again.

use std::collections::BTreeMap;

use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::json::Tape;
use sidecert_proto::judge::{Judged, ProcessEnd};
use sidecert_proto::machine::Exited;
use sidecert_proto::requirement::{Basis, Cite, Level, Requirement};
use sidecert_proto::rpc::{self, Envelope, Outcome};
use sidecert_proto::run::Run;
use sidecert_proto::suite::Suite;
use sidecert_proto::transcript::{End, Event, Kind, Payload, Wait};
use sidecert_proto::verdict::{At, Broken, Verdict, Why};
use sidecert_reports as reports;
use sidecert_reports::safe;

use crate::args::{Judging, ProfileArg};
use crate::exit;

/// What stands around the places that verdicts name.
pub(crate) type Excerpts = BTreeMap<At, Vec<reports::Frame>>;

/// How much of a frame an excerpt shows, in bytes.
const PREVIEW_BYTES: usize = 400;
/// How much of what a frame says stands before it, in bytes.
const LABEL_BYTES: usize = 60;
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
            },
            label: wait.label.clone(),
            micros: wait.took,
            within_micros: wait.within,
        })
        .collect();
    let faults = judged.faults.iter().map(|fault| {
        let name = name(judged, fault.process);
        match fault.line {
            0 => format!("the recording {name} is faulty: {}", fault.says),
            line => format!("the recording {name} is faulty in line {line}: {}", fault.says),
        }
    });
    let cause = judged.cause.iter().cloned().chain(faults).next();
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
        role: reports::Role::Guest,
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
        ours: judged
            .ours
            .iter()
            .map(|(at, says)| reports::OwnFrame {
                process: name(judged, at.process),
                event: at.event,
                says: says.clone(),
            })
            .collect(),
        longest_wait_micros: waits.iter().map(|wait| wait.micros).max().unwrap_or_default(),
        waits,
        processes: judged.processes.iter().map(process).collect(),
        environment: reports::Environment { withheld: run.withheld.clone() },
    }
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
                told.says = Some(format!("the specification does not ask for it; {program} does it so"));
            }
        }
        Verdict::NotApplicable(why) => {
            told.verdict = reports::Verdict::NotApplicable;
            told.says = Some(why.to_string());
        }
        Verdict::Undecided(why) => {
            told.verdict = reports::Verdict::Undecided;
            told.why = Some(reason(why));
            told.says = Some(why.to_string());
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
    told.expected = Some(broken.expected.0.to_owned());
    told.actual = Some(broken.actual.clone());
    told.at =
        Some(reports::Location { process: name(facts.judged, broken.at.process), event: broken.at.event });
    told.frames = facts.excerpts.get(&broken.at).cloned().unwrap_or_default();
    told.fault = Some(reports::Fault::Target);
    told.again = Some(again(facts, row.id));
}

/// The command that shows one requirement again.
fn again(facts: &Facts<'_>, id: &str) -> String {
    let run = facts.run;
    let mut words = vec![
        "sidecert".to_owned(),
        "check".into(),
        "guest".into(),
        "--suite".into(),
        facts.suite.name.to_owned(),
    ];
    words.extend(["--seed".to_owned(), format!("{:016x}", run.seed), "--only".into(), id.to_owned()]);
    if facts.judging.profile == ProfileArg::Reference {
        words.extend(["--profile".to_owned(), "reference".into()]);
    }
    words.push("--".to_owned());
    words.extend(run.argv.iter().cloned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Only a NUL byte cannot be quoted, and no argument can hold one.
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
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

fn process(process: &ProcessEnd) -> reports::Process {
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
        exit: process.exited.map(exited),
        left: process.left.iter().map(|left| format!("{} (process {})", left.name, left.pid)).collect(),
        stderr_tail: safe::tail(process.stderr.as_bytes(), STDERR_BYTES),
    }
}

fn exited(exited: Exited) -> String {
    match exited {
        Exited::Code(code) => format!("code {code}"),
        Exited::Signal(signal) => format!("signal {signal}"),
        Exited::Unknown => "unknown".to_owned(),
    }
}

/// One line of an excerpt.
pub(crate) fn frame(number: u64, event: &Event<'_>, target: Side) -> reports::Frame {
    let mut shown = reports::Frame {
        event: number,
        micros: event.t,
        from: reports::Origin::Event,
        target: false,
        label: None,
        text: String::new(),
        bytes: 0,
        marked: false,
    };
    let from = |side: Side| match side {
        Side::Host => reports::Origin::Host,
        Side::Guest => reports::Origin::Guest,
    };
    let seconds = |micros: u64| format!("{} ms", micros / 1_000);
    match &event.kind {
        Kind::Frame(frame) => {
            shown.from = from(frame.from);
            shown.target = frame.from == target;
            shown.label = match (&frame.label, &frame.departs) {
                (_, Some(departs)) => Some(format!("wrong on purpose: {departs}")),
                (Some(label), None) => Some(label.to_string()),
                (None, None) => said(&frame.payload),
            };
            (shown.text, shown.bytes) = preview(&frame.payload);
        }
        Kind::Oversize { from: side, head, seen } => {
            shown.from = from(*side);
            shown.target = *side == target;
            shown.label = Some("longer than the limit".to_owned());
            shown.text = safe::preview(head, PREVIEW_BYTES);
            shown.bytes = *seen;
        }
        Kind::Tail { from: side, payload } => {
            shown.from = from(*side);
            shown.target = *side == target;
            shown.label = Some("not ended by a line feed".to_owned());
            (shown.text, shown.bytes) = preview(payload);
        }
        other => shown.text = happened(other, seconds),
    }
    shown
}

fn happened(kind: &Kind<'_>, time: impl Fn(u64) -> String) -> String {
    let named = |label: &Option<std::borrow::Cow<'_, str>>| {
        label.as_ref().map(|label| format!(" {label}")).unwrap_or_default()
    };
    match kind {
        Kind::Wrote { label, parts } if parts.is_empty() => format!("all of{} was accepted", named(label)),
        Kind::Wrote { label, parts } => {
            format!("all of{} was accepted, in {} parts", named(label), parts.len())
        }
        Kind::Blocked { bytes } => format!("it had not read the last {bytes} bytes"),
        Kind::Broken => "it takes no more bytes".to_owned(),
        Kind::Closed { from } => format!("the {from} closed its end"),
        Kind::Exited(how) => format!("it ended: {}", exited(*how)),
        Kind::Killed => "it was killed".to_owned(),
        Kind::Left(left) => format!("it left {} running", left.name),
        Kind::Stderr { text, .. } => {
            format!("standard error: {}", safe::preview(text.as_bytes(), PREVIEW_BYTES))
        }
        Kind::Waited { wait, label, took, .. } => {
            format!("waited {} for {}{}", time(*took), awaited(*wait), named(label))
        }
        Kind::TimedOut { wait, label, within } => {
            format!("waited {} in vain for {}{}", time(*within), awaited(*wait), named(label))
        }
        Kind::Starved { late } => format!("we ourselves were not running for {}", time(*late)),
        Kind::Begin { script } => format!("the script {script} begins"),
        Kind::Ended { script, cut: None } => format!("the script {script} ends"),
        Kind::Ended { script, cut: Some(cut) } => format!("the script {script} is cut short: {cut}"),
        Kind::Unknown(line) => safe::preview(line.as_bytes(), PREVIEW_BYTES),
        Kind::Frame(_) | Kind::Oversize { .. } | Kind::Tail { .. } => String::new(),
    }
}

fn preview(payload: &Payload<'_>) -> (String, u64) {
    let text = match payload {
        Payload::Fill { head, byte, count, tail } => {
            format!("{head}{}… ({count} times)…{tail}", char::from(*byte))
        }
        other => safe::preview(&other.bytes(), PREVIEW_BYTES),
    };
    (text, payload.len())
}

/// What a frame is, in a few words.
fn said(payload: &Payload<'_>) -> Option<String> {
    let Payload::Json(text) = payload else { return None };
    let tape = Tape::scan(text.as_bytes()).ok()?;
    let told = match rpc::classify(tape.root()) {
        Ok(Envelope::Request { id, method, .. }) => format!("request {id}, {method}"),
        Ok(Envelope::Notification { method, .. }) => format!("notification {method}"),
        Ok(Envelope::Response { id, outcome: Outcome::Result(_) }) => format!("result for {id}"),
        Ok(Envelope::Response { id, outcome: Outcome::Error { code, .. } }) => {
            format!("error {code} for {id}")
        }
        Err(fault) => format!("no frame: {fault}"),
    };
    Some(safe::preview(told.as_bytes(), LABEL_BYTES))
}

fn awaited(wait: Wait) -> &'static str {
    match wait {
        Wait::Start => "the first answer,",
        Wait::Answer => "the answer to",
        Wait::Fence => "the answer to a fence",
        Wait::Quiet => "silence",
        Wait::Exit => "the end of the process",
    }
}
