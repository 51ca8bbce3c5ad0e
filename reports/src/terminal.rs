//! The form of a report for people.
//!
//! It is read from the bottom: the last line counts everything, before it stands what the run came to and why,
//! and above that one block for each thing that somebody has to look at. What is green is only listed when asked for.

mod page;
mod paint;
mod sheet;
mod wrap;

use crate::report::{
    Basis, Cite, CiteKind, Fault, Frame, Level, Location, Origin, Process, Profile, Report, Requirement,
    Verdict, WaitFor, Why,
};
use crate::safe;
pub use sheet::Sheet;

use page::{Page, Row};
use paint::Paint;
use wrap::Breaks;

/// How a report is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours.
    pub color: bool,
    /// How many columns there are. Commands are not broken, so that they can be copied.
    pub width: usize,
    /// How much to say.
    pub detail: Detail,
}

/// How much a terminal report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The ids of what failed, and the headline.
    Quiet,
    /// Everything but what is green.
    Normal,
    /// Everything.
    Verbose,
}

/// How many lines of stderr are shown of a process, unless everything is.
const STDERR_LINES_MAX: usize = 10;

/// Writes a report. Every line ends in `\n`.
pub fn render(report: &Report, style: Style) -> String {
    let mut page = Page::new(style);
    if style.detail == Detail::Quiet {
        for requirement in report.with(Verdict::Fail) {
            page.line("FAIL", Paint::Red, &requirement.id);
        }
        headline(&mut page, report);
        return page.finish();
    }
    let verbose = style.detail == Detail::Verbose;
    header(&mut page, report, verbose);
    failures(&mut page, report);
    warnings(&mut page, report);
    undecided(&mut page, report, verbose);
    not_applicable(&mut page, report, verbose);
    if verbose {
        passes(&mut page, report);
        waits(&mut page, report);
    }
    processes(&mut page, report, verbose);
    ours(&mut page, report);
    outcome(&mut page, report, verbose);
    page.finish()
}

fn header(page: &mut Page, report: &Report, verbose: bool) {
    let target = match report.target.argv.as_slice() {
        [] => "not started by sidecert: judged from a recording".to_owned(),
        argv => command_line(argv),
    };
    page.row(&Row::new("target", &target).broken(Breaks::Anywhere));
    let profile = match report.profile {
        Profile::Specified => "",
        Profile::Reference => "; observed behaviour counts as required",
    };
    let strict = if report.strict { "; every should counts as required" } else { "" };
    let ends =
        format!("judged as a {}, against a {} played by", report.role.word(), report.role.opposite().word());
    let suite =
        format!("{}, {ends} {} {}{profile}{strict}", report.suite, report.tool.name, report.tool.version);
    page.row(&Row::new("suite", &suite));
    if verbose || !report.contract.built_in {
        let origin = if report.contract.built_in { "built in" } else { "given by the user" };
        let contract = format!("{}, {origin}, SHA-256 {}", report.contract.id, report.contract.sha256);
        page.row(&Row::new("contract", &contract));
    }
    if verbose {
        page.row(&Row::new("edition", &report.edition));
        page.row(&Row::new("platform", &report.platform));
        if let Some(started) = &report.started {
            page.row(&Row::new("started", started));
        }
    }
    page.row(&Row::new("seed", &report.seed));
}

fn failures(page: &mut Page, report: &Report) {
    if report.with(Verdict::Fail).any(|requirement| !requirement.frames.is_empty()) {
        page.gap();
        page.sentence(
            0,
            Paint::Dim,
            "In the excerpts: → to the target, ← from the target, · no frame; the times count from the first line \
             shown; > is what broke the requirement.",
        );
    }
    for requirement in report.with(Verdict::Fail) {
        page.gap();
        page.line("FAIL", Paint::Red, &requirement.id);
        let (asks, text) = (requirement.level.word(), &requirement.text);
        page.row(&Row::new(asks, text).painted(Paint::Bold));
        page.row(&Row::new("source", &source(requirement)));
        if let Some(says) = &requirement.says {
            page.row(&Row::new("note", says));
        }
        difference(page, requirement);
        excerpt(page, &requirement.frames, false);
        match requirement.fault {
            Some(Fault::Target) => page.row(&Row::new("at fault", "the target")),
            Some(Fault::Harness) => {
                page.row(&Row::new("at fault", "sidecert itself, not the target: please report this"));
            }
            None => {}
        }
        if let Some(again) = &requirement.again {
            page.row(&Row::new("repeat with", again).broken(Breaks::Never));
        }
    }
}

fn warnings(page: &mut Page, report: &Report) {
    for requirement in report.with(Verdict::Warn) {
        page.gap();
        page.line("WARN", Paint::Yellow, &requirement.id);
        page.row(&Row::new(requirement.level.word(), &requirement.text));
        page.row(&Row::new("source", &source(requirement)));
        if let Some(says) = &requirement.says {
            page.row(&Row::new("note", says));
        }
        difference(page, requirement);
        for frame in requirement.frames.iter().filter(|frame| frame.marked) {
            page.row(&Row::new("frame", &frame.text).broken(Breaks::Anywhere).in_one_line());
        }
    }
}

/// Expected, actual, and where.
fn difference(page: &mut Page, requirement: &Requirement) {
    if let Some(expected) = &requirement.expected {
        page.row(&Row::new("expected", expected));
    }
    if let Some(actual) = &requirement.actual {
        page.row(&Row::new("actual", actual));
    }
    if let Some(Location { process, event }) = &requirement.at {
        page.row(&Row::new("seen in", &format!("process {process}, event {event}")));
    }
}

fn source(requirement: &Requirement) -> String {
    let cites: Vec<String> = requirement.cites.iter().map(cited).collect();
    match (requirement.basis, cites.as_slice()) {
        (Basis::Specified, cites) => cites.join("; "),
        (Basis::Observed, []) => OBSERVED.to_owned(),
        (Basis::Observed, cites) => format!("{OBSERVED} (compare {})", cites.join("; ")),
    }
}

const OBSERVED: &str = "seen in released implementations; the specification does not ask for it";

fn cited(cite: &Cite) -> String {
    let section = match &cite.english {
        Some(english) => format!("“{}” ({english})", cite.section),
        None => format!("“{}”", cite.section),
    };
    match cite.kind {
        CiteKind::Seed => format!("the specification, {section}"),
        CiteKind::Schema => format!("the schema, {}", cite.section),
        CiteKind::JsonRpc => format!("JSON-RPC 2.0, {section}"),
    }
}

/// What was on the wire: one line for what a frame is, and one for its text; all of it for the one that matters, or
/// for each.
fn excerpt(page: &mut Page, frames: &[Frame], in_full: bool) {
    let Some(first) = frames.first() else { return };
    page.empty_row();
    for frame in frames {
        let (sign, paint) = if frame.marked { ("> ", Paint::Red) } else { ("", Paint::Plain) };
        let label = format!("{sign}event {}", frame.event);
        let time =
            format!("{:>12}", format!("+{} ms", milliseconds(frame.micros.saturating_sub(first.micros))));
        let arrow = match frame.from {
            Origin::Event => '·',
            _ if frame.target => '←',
            _ => '→',
        };
        let text_column = time.len() + 3;
        if frame.from == Origin::Event {
            let what = frame.label.iter().chain(Some(&frame.text)).filter(|text| !text.is_empty());
            let what: Vec<&str> = what.map(String::as_str).collect();
            page.row(
                &Row::new(&label, &format!("{time} {arrow} {}", what.join(": ")))
                    .painted(paint)
                    .hanging(text_column),
            );
            continue;
        }
        let kind = frame.label.as_deref().unwrap_or("frame");
        let head = format!("{time} {arrow} {kind}, {} bytes", frame.bytes);
        page.row(&Row::new(&label, &head).painted(paint).hanging(text_column));
        let text = Row::new("", &frame.text).broken(Breaks::Anywhere).indented(text_column);
        page.row(&if frame.marked || in_full { text.painted(paint) } else { text.in_one_line() });
    }
    page.empty_row();
}

fn undecided(page: &mut Page, report: &Report, verbose: bool) {
    if report.counts.undecided == 0 {
        return;
    }
    page.gap();
    page.line("UNDECIDED", Paint::Bold, "this run cannot tell whether they hold");
    for why in Why::ALL {
        let rows: Vec<&Requirement> = report.requirements.iter().filter(|row| row.why == Some(why)).collect();
        if rows.is_empty() {
            continue;
        }
        page.line("", Paint::Plain, &format!("  {}: {}", why.words(), rows.len()));
        page.sentence(4, Paint::Dim, what_would_decide(why));
        // What the user left out is no news to the user.
        if why != Why::NotSelected || verbose {
            names(page, &rows, verbose);
        }
    }
}

fn what_would_decide(why: Why) -> &'static str {
    match why {
        Why::CutShort => {
            "The script that would show it ended early. Remove the root cause below and run again."
        }
        Why::NotMeasured => "This platform cannot measure it. Run on one that can.",
        Why::OutOfReach => "The driver in use cannot make the host do it. Use another driver.",
        Why::NotProvoked => {
            "The target never did the thing in question, and no frame can order it. Say in a file for --provoke \
             what makes this target do it."
        }
        Why::NotExercised => {
            "Trying it can have effects outside of the run. The option named here allows it."
        }
        Why::NotSelected => "The selection of this run leaves it out. Run without the selection.",
        Why::Unobservable => "No frame can show it. Only somebody who reads the target's source can decide.",
    }
}

fn not_applicable(page: &mut Page, report: &Report, verbose: bool) {
    let rows: Vec<&Requirement> = report.with(Verdict::NotApplicable).collect();
    if !rows.is_empty() {
        page.gap();
        page.line("NOT APPLICABLE", Paint::Bold, "not asked of this contract or this target");
        names(page, &rows, verbose);
    }
}

fn passes(page: &mut Page, report: &Report) {
    let rows: Vec<&Requirement> = report.with(Verdict::Pass).collect();
    if !rows.is_empty() {
        page.gap();
        page.line("PASS", Paint::Green, "these came up and held");
        names(page, &rows, true);
    }
}

/// The ids with their remarks; in full also with the sentences that they stand for.
fn names(page: &mut Page, rows: &[&Requirement], in_full: bool) {
    let remarks = rows.iter().map(|row| match &row.says {
        Some(says) if in_full => format!("{} ({says})", row.text),
        None if in_full => row.text.clone(),
        says => says.clone().unwrap_or_default(),
    });
    let remarks: Vec<String> = remarks.collect();
    let entries = rows.iter().zip(&remarks).map(|(row, remark)| (row.id.as_str(), remark.as_str()));
    page.names(&entries.collect::<Vec<_>>());
}

fn waits(page: &mut Page, report: &Report) {
    if report.waits.is_empty() {
        return;
    }
    page.gap();
    page.line(
        "WAITS",
        Paint::Bold,
        &format!("the longest took {} ms", milliseconds(report.longest_wait_micros)),
    );
    for wait in &report.waits {
        let label = wait.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        let (took, within) = (milliseconds(wait.micros), milliseconds(wait.within_micros));
        let time = format!("{:>12}", format!("{took} ms"));
        let awaited = match wait.awaited {
            WaitFor::Answer => "an answer",
            WaitFor::Fence => "a fence",
            WaitFor::Quiet => "silence",
            WaitFor::Exit => "the exit",
            WaitFor::Start => "the first byte",
            WaitFor::Drain => "the end of the output",
        };
        let place = format!("script {}, process {}", wait.script, wait.process);
        page.row(
            &Row::new("", &format!("{time} of {within} ms for {awaited}{label}: {place}"))
                .hanging(time.len() + 1),
        );
    }
}

/// The processes that somebody may have to look at: a failure points there, something was left behind, or the run
/// was cut short and they had something to say.
fn processes(page: &mut Page, report: &Report, verbose: bool) {
    let pointed_at = |process: &Process| {
        report
            .with(Verdict::Fail)
            .filter_map(|failed| failed.at.as_ref())
            .any(|at| at.process == process.name)
    };
    for process in &report.processes {
        let silent = process.stderr_tail.is_empty();
        let concerned =
            pointed_at(process) || !process.left.is_empty() || (report.outcome.cause.is_some() && !silent);
        if !concerned && !verbose {
            continue;
        }
        page.gap();
        page.line("PROCESS", Paint::Bold, &process.name);
        page.row(&Row::new("scripts", &process.scripts.join(", ")));
        page.row(&Row::new("ended", &process.ended));
        if let Some(exit) = &process.exit {
            page.row(&Row::new("exit", exit));
        }
        for left in &process.left {
            page.row(&Row::new("left behind", left).painted(Paint::Yellow));
        }
        stderr(page, &process.stderr_tail, verbose);
    }
}

fn stderr(page: &mut Page, tail: &str, verbose: bool) {
    let lines: Vec<&str> = tail.lines().collect();
    let shown_max = if verbose { lines.len() } else { STDERR_LINES_MAX };
    let skipped = lines.len().saturating_sub(shown_max);
    let mut label = "stderr";
    if skipped > 0 {
        page.row(&Row::new(label, &format!("({skipped} lines left out) {}", safe::CUT)).painted(Paint::Dim));
        label = "";
    }
    for line in &lines[skipped..] {
        page.row(&Row::new(label, line).broken(Breaks::Anywhere));
        label = "";
    }
}

fn ours(page: &mut Page, report: &Report) {
    if report.ours.is_empty() {
        return;
    }
    page.gap();
    page.line("OURS", Paint::Yellow, "wrong frames that sidecert sent: please report this");
    for frame in &report.ours {
        let place = format!("process {}, event {}: {}", frame.process, frame.event, frame.says);
        page.row(&Row::new("", &place));
    }
}

/// What the run came to, from the root to the sum.
fn outcome(page: &mut Page, report: &Report, verbose: bool) {
    page.gap();
    let troubled = report.counts.fail > 0 || report.outcome.cause.is_some();
    if !report.environment.withheld.is_empty() && (troubled || verbose) {
        let names = report.environment.withheld.join(", ");
        let withheld = format!(
            "names that look like secrets are not passed to the target: {names}; `--env NAME` passes one"
        );
        page.row(&Row::new("environment", &withheld));
    }
    if let Some(cause) = &report.outcome.cause {
        page.row(&Row::new("root cause", cause).painted(Paint::Red));
    }
    if report.outcome.interrupted {
        let partial = "the run was stopped before its end; this report says what had been found by then";
        page.row(&Row::new("interrupted", partial).painted(Paint::Yellow));
    }
    let exit_code = format!("{}: {}", report.outcome.exit_code, report.outcome.says);
    page.row(&Row::new("exit code", &exit_code));
    page.gap();
    headline(page, report);
}

fn headline(page: &mut Page, report: &Report) {
    let failed_must = report.with(Verdict::Fail).any(|requirement| requirement.level == Level::Must);
    let paint = match report.outcome.exit_code {
        _ if failed_must => Paint::Red,
        0 if report.counts.fail == 0 => Paint::Green,
        _ => Paint::Yellow,
    };
    page.line(&report.headline(), paint, "");
}

impl Report {
    fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().filter(move |requirement| requirement.verdict == verdict)
    }
}

/// `1234` microseconds as `1.234`.
fn milliseconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// The arguments as a shell would take them.
fn command_line(argv: &[String]) -> String {
    let quoted = argv.iter().map(|argument| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
        if !argument.is_empty() && argument.bytes().all(plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
