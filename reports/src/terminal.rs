//! The form of a report for people.
//!
//! It is read from the bottom: the last line counts everything, before it stands what the run came to and why,
//! and above that one block for each thing that somebody has to look at. What is green is only listed when asked for.

mod blocks;
mod compared;
mod page;
mod paint;
mod sheet;
mod wrap;

use crate::report::{Cause, Compared, Level, Process, Profile, Report, Requirement, Verdict, WaitFor, Why};
use crate::safe;
use blocks::milliseconds;
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
    /// The ids of what failed, what cut the run short, and the headline.
    Quiet,
    /// Everything but what is green.
    Normal,
    /// Everything.
    Verbose,
}

/// How many ids are shown of those that share a remark, unless everything is.
const IDS_MAX: usize = 6;
/// How many lines of stderr are shown of a process, unless everything is.
const STDERR_LINES_MAX: usize = 10;

/// Writes a report. Every line ends in `\n`.
pub fn render(report: &Report, style: Style) -> String {
    let mut page = Page::new(style);
    if style.detail == Detail::Quiet {
        for requirement in report.with(Verdict::Fail) {
            page.line("FAIL", Paint::Red, &requirement.id);
        }
        for cause in &report.causes {
            page.line("CUT SHORT", Paint::Red, &cause.actual);
        }
        headline(&mut page, report);
        return page.finish();
    }
    let verbose = style.detail == Detail::Verbose;
    header(&mut page, report, verbose);
    blocks::legend(&mut page, report);
    broken(&mut page, report, Verdict::Fail, "FAIL", Paint::Red);
    for cause in &report.causes {
        blocks::cause(&mut page, cause, told_by(report, cause));
    }
    broken(&mut page, report, Verdict::Warn, "WARN", Paint::Yellow);
    undecided(&mut page, report, verbose);
    not_applicable(&mut page, report, verbose);
    if verbose {
        passes(&mut page, report);
        waits(&mut page, report);
    }
    if let Some(compared) = &report.compared {
        compared::compared(&mut page, compared, verbose);
    }
    processes(&mut page, report, verbose);
    ours(&mut page, report);
    late(&mut page, report);
    outcome(&mut page, report, verbose);
    page.finish()
}

/// One requirement that did not hold, as [`render`] shows it: for what is no terminal, without colours.
pub fn requirement_text(word: &str, requirement: &Requirement) -> String {
    let mut page = Page::new(PLAIN);
    blocks::broken(&mut page, word, Paint::Plain, requirement, None);
    page.finish()
}

/// A comparison, as [`render`] shows it: for what is no terminal, without colours.
pub fn compared_text(compared: &Compared) -> String {
    let mut page = Page::new(PLAIN);
    compared::compared(&mut page, compared, false);
    page.finish()
}

/// One cause, as [`render`] shows it: for what is no terminal, without colours.
pub fn cause_text(cause: &Cause) -> String {
    let mut page = Page::new(PLAIN);
    blocks::cause(&mut page, cause, None);
    page.finish()
}

const PLAIN: Style = Style { color: false, width: 100, detail: Detail::Normal };

fn header(page: &mut Page, report: &Report, verbose: bool) {
    let target = if report.is_played() {
        command_line(&report.target.argv)
    } else {
        "not started by sidecert: judged from a recording".to_owned()
    };
    page.row(&Row::new("target", &target).broken(Breaks::Anywhere));
    let profile = match report.profile {
        Profile::Specified => "",
        Profile::Reference => "; observed behaviour counts as required",
    };
    let strict = if report.strict { "; every should counts as required" } else { "" };
    let (role, other) = (report.role.word(), report.role.opposite().word());
    let ends = if report.is_played() {
        format!("judged as a {role}, against a {other} played by")
    } else {
        format!("judged as a {role} by")
    };
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
    if report.is_played() {
        page.row(&Row::new("seed", &report.seed));
    }
}

/// Those that did not hold. One fault often shows in several of them: what was on the wire is then shown once.
fn broken(page: &mut Page, report: &Report, verdict: Verdict, word: &str, paint: Paint) {
    let mut shown: Vec<&Requirement> = Vec::new();
    for requirement in report.with(verdict) {
        let same = |other: &&&Requirement| other.at.is_some() && other.at == requirement.at;
        let shown_by = shown.iter().find(same).copied();
        blocks::broken(page, word, paint, requirement, shown_by);
        shown.push(requirement);
    }
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
        let sentence = match why {
            Why::NotProvoked if !report.is_played() => {
                "This recording does not show it. `sidecert check` asks for it."
            }
            _ => what_would_decide(why),
        };
        page.sentence(4, Paint::Dim, sentence);
        // What the user left out is no news to the user, and what a cause cut short stands there.
        let told = |row: &&Requirement| {
            why == Why::NotSelected || report.causes.iter().any(|cause| cause.cuts.contains(&row.id))
        };
        let rows: Vec<&Requirement> = rows.into_iter().filter(|row| verbose || !told(row)).collect();
        by_remark(page, &rows, verbose);
    }
}

fn what_would_decide(why: Why) -> &'static str {
    match why {
        Why::CutShort => {
            "The script that would show it ended early. Mend what is told under CUT SHORT or FAIL, and run again."
        }
        Why::NotMeasured => "This platform or this recording cannot tell. Run where it can be measured.",
        Why::OutOfReach => "The driver in use cannot make the host do it. Use another driver.",
        Why::NotProvoked => {
            "The target never did the thing in question, and no frame can order it. A file for --provoke says which \
             frame makes this target do it (a provocation); `sidecert list provocations` shows all there are."
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
        by_remark(page, &rows, verbose);
    }
}

/// Ids under the remark that they share, each remark once. In full all of them, with the sentences they stand for.
fn by_remark(page: &mut Page, rows: &[&Requirement], in_full: bool) {
    let remark = |row: &Requirement| match (&row.option, &row.says) {
        (Some(option), Some(says)) => format!("`{option}`: {says}"),
        (Some(option), None) => format!("`{option}`"),
        (None, says) => says.clone().unwrap_or_default(),
    };
    let mut groups: Vec<(String, Vec<&Requirement>)> = Vec::new();
    for row in rows {
        let remark = remark(row);
        match groups.iter_mut().find(|(its, _)| *its == remark) {
            Some((_, group)) => group.push(row),
            None => groups.push((remark, vec![row])),
        }
    }
    for (remark, group) in groups {
        let count = group.len().to_string();
        page.row(&Row::new(&count, if remark.is_empty() { "without a remark" } else { &remark }));
        let shown = if in_full { group.len() } else { group.len().min(IDS_MAX) };
        for row in &group[..shown] {
            page.row(&Row::new("", &row.id).broken(Breaks::Never).indented(2));
            if in_full {
                page.row(&Row::new("", &row.text).painted(Paint::Dim).indented(4));
            }
        }
        if shown < group.len() {
            let more = format!("and {} more; --verbose lists them", group.len() - shown);
            page.row(&Row::new("", &more).indented(2));
        }
    }
}

fn passes(page: &mut Page, report: &Report) {
    let rows: Vec<&Requirement> = report.with(Verdict::Pass).collect();
    if !rows.is_empty() {
        page.gap();
        page.line("PASS", Paint::Green, "these came up and held");
        let remarks = rows.iter().map(|row| match &row.says {
            Some(says) => format!("{} ({says})", row.text),
            None => row.text.clone(),
        });
        let remarks: Vec<String> = remarks.collect();
        let entries = rows.iter().zip(&remarks).map(|(row, remark)| (row.id.as_str(), remark.as_str()));
        page.names(&entries.collect::<Vec<_>>());
    }
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
            WaitFor::Fence => "the answer to a marker",
            WaitFor::Quiet => "silence",
            WaitFor::Exit => "the exit",
            WaitFor::Outcome => "an outcome",
            WaitFor::Launch => "the launch of a guest",
            WaitFor::Gone => "the end of a guest",
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
        let failed = report.with(Verdict::Fail).filter_map(|failed| failed.at.as_ref());
        let cut = report.causes.iter().filter_map(|cause| cause.at.as_ref());
        failed.chain(cut).any(|at| at.process == process.name)
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
    if report.target.argv.is_empty() {
        let who = report.role.opposite().word();
        page.line("OTHER END", Paint::Yellow, &format!("what the {who} did that a {who} may not"));
    } else {
        page.line("OURS", Paint::Yellow, "wrong frames that sidecert sent: please report this");
    }
    for frame in &report.ours {
        let place = format!("process {}, event {}: {}", frame.process, frame.event, frame.says);
        page.row(&Row::new("", &place));
    }
}

fn late(page: &mut Page, report: &Report) {
    if report.late.is_empty() {
        return;
    }
    page.gap();
    page.line(
        "LATE",
        Paint::Yellow,
        "what the host wrote when its driver had said that all was over: it says so too soon, or the host does more by itself",
    );
    for frame in &report.late {
        page.row(&Row::new(
            "",
            &format!("process {}, event {}: {}", frame.process, frame.event, frame.method),
        ));
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
    // A root cause stands once: where there is a block of it, that is the place.
    let told = !report.causes.is_empty() || report.counts.fail + report.counts.warn > 0;
    if let Some(cause) = report.outcome.cause.as_ref().filter(|_| !told) {
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

/// The failure that says already what a cause has to say.
pub(crate) fn told_by<'r>(report: &'r Report, cause: &Cause) -> Option<&'r Requirement> {
    report.with(Verdict::Fail).find(|failed| failed.at.is_some() && failed.at == cause.at)
}

impl Report {
    pub(crate) fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().filter(move |requirement| requirement.verdict == verdict)
    }
}

/// The arguments as a shell would take them.
pub(crate) fn command_line(argv: &[String]) -> String {
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
