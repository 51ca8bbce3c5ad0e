//! What somebody has to act on, one block each: what was expected, what came, the frames around it, where it is
//! written, whose fault it is, and the command that shows just this again.

use super::page::{Page, Row};
use super::paint::Paint;
use super::wrap::Breaks;
use crate::report::{
    Basis, Cause, Cite, CiteKind, Fault, Frame, Location, Origin, Report, Requirement, Verdict,
};

/// How many ids of those that a cause cut short are named beside their number.
const CUT_NAMED_MAX: usize = 2;

/// What the signs and words in excerpts mean, where there are any.
pub(super) fn legend(page: &mut Page, report: &Report) {
    let broken = |row: &&Requirement| matches!(row.verdict, Verdict::Fail | Verdict::Warn);
    let of_rows = report.requirements.iter().filter(broken).flat_map(|row| &row.frames);
    let frames: Vec<&Frame> = of_rows.chain(report.causes.iter().flat_map(|cause| &cause.frames)).collect();
    if frames.is_empty() {
        return;
    }
    let says = |word: &str| {
        let holds =
            |frame: &&Frame| frame.label.iter().chain(Some(&frame.text)).any(|text| text.contains(word));
        frames.iter().any(holds)
    };
    page.gap();
    page.sentence(
        0,
        Paint::Dim,
        "In the excerpts: → to the target, ← from the target, · no frame; > is what decided it; the times count \
         from the first line shown.",
    );
    if says("script") || !report.causes.is_empty() {
        page.sentence(0, Paint::Dim, "A script is what is played to bring a requirement up.");
    }
    if says("marker") {
        page.sentence(
            0,
            Paint::Dim,
            "A marker is a harmless request whose answer shows that the target has read so far.",
        );
    }
}

/// A requirement that did not hold. Where another one shows the same frames already, it is only named.
pub(super) fn broken(
    page: &mut Page,
    word: &str,
    paint: Paint,
    requirement: &Requirement,
    shown_by: Option<&Requirement>,
) {
    page.gap();
    page.line(word, paint, &requirement.id);
    page.row(&Row::new(requirement.level.word(), &requirement.text).painted(Paint::Bold));
    page.row(&Row::new("source", &source(requirement)));
    if let Some(says) = &requirement.says {
        page.row(&Row::new("note", says));
    }
    // A rule that is watched all the time expects just what its sentence says.
    let expected = requirement.expected.as_ref().filter(|expected| **expected != requirement.text);
    difference(page, expected, requirement.actual.as_ref(), requirement.at.as_ref());
    match shown_by {
        Some(other) => page.row(&Row::new("frames", &format!("the same as under {}", other.id))),
        None => excerpt(page, &requirement.frames, paint, false),
    }
    end(page, requirement.fault, requirement.again.as_ref());
}

/// What kept a script from its end. If a failure tells it already, only that it did.
pub(super) fn cause(page: &mut Page, cause: &Cause, told_by: Option<&Requirement>) {
    page.gap();
    let undecided = match cause.cuts.len() {
        0 => "the run is incomplete".to_owned(),
        1 => "1 requirement could not be decided".to_owned(),
        count => format!("{count} requirements could not be decided"),
    };
    let title = match &cause.script {
        Some(script) => format!("{undecided}: the script {script} could not be played to its end"),
        None => undecided,
    };
    page.line("CUT SHORT", Paint::Red, &title);
    if let Some(failed) = told_by {
        page.row(&Row::new("actual", &cause.actual));
        cut(page, cause);
        page.row(&Row::new("see", &format!("FAIL {}", failed.id)));
        return;
    }
    difference(page, cause.expected.as_ref(), Some(&cause.actual), cause.at.as_ref());
    if !cause.cites.is_empty() {
        page.row(&Row::new("source", &cites(&cause.cites)));
    }
    excerpt(page, &cause.frames, Paint::Red, false);
    if let Some(hint) = &cause.hint {
        page.row(&Row::new("look at", hint));
    }
    cut(page, cause);
    end(page, cause.fault, cause.again.as_ref());
}

fn cut(page: &mut Page, cause: &Cause) {
    if cause.cuts.is_empty() {
        return;
    }
    let more = cause.cuts.len().saturating_sub(CUT_NAMED_MAX);
    let mut named = cause.cuts.iter().take(CUT_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more (--verbose lists them)"));
    }
    page.row(&Row::new("undecided", &named));
}

/// Expected, actual, and where.
fn difference(page: &mut Page, expected: Option<&String>, actual: Option<&String>, at: Option<&Location>) {
    if let Some(expected) = expected {
        page.row(&Row::new("expected", expected));
    }
    if let Some(actual) = actual {
        page.row(&Row::new("actual", actual));
    }
    if let Some(Location { process, event }) = at {
        page.row(&Row::new("seen in", &format!("process {process}, event {event}")));
    }
}

fn end(page: &mut Page, fault: Option<Fault>, again: Option<&String>) {
    match fault {
        Some(Fault::Target) => page.row(&Row::new("at fault", "the target")),
        Some(Fault::Harness) => {
            page.row(&Row::new("at fault", "sidecert itself, not the target: please report this"));
        }
        None => {}
    }
    if let Some(again) = again {
        page.row(&Row::new("repeat with", again).broken(Breaks::Never));
    }
}

fn source(requirement: &Requirement) -> String {
    match (requirement.basis, requirement.cites.as_slice()) {
        (Basis::Specified, written) => cites(written),
        (Basis::Observed, []) => OBSERVED.to_owned(),
        (Basis::Observed, written) => format!("{OBSERVED} (compare {})", cites(written)),
    }
}

const OBSERVED: &str = "seen in released implementations; the specification does not ask for it";

fn cites(cites: &[Cite]) -> String {
    cites.iter().map(cited).collect::<Vec<_>>().join("; ")
}

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

/// What was on the wire: one line for what a frame is, and one for its text; all of it for the one that matters.
pub(super) fn excerpt(page: &mut Page, frames: &[Frame], paint: Paint, in_full: bool) {
    let Some(first) = frames.first() else { return };
    page.empty_row();
    for frame in frames {
        let (sign, paint) = if frame.marked { ("> ", paint) } else { ("", Paint::Plain) };
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
        let unit = if frame.bytes == 1 { "byte" } else { "bytes" };
        let head = format!("{time} {arrow} {kind}, {} {unit}", frame.bytes);
        page.row(&Row::new(&label, &head).painted(paint).hanging(text_column));
        let text = Row::new("", &frame.text).broken(Breaks::Anywhere).indented(text_column);
        page.row(&if frame.marked || in_full { text.painted(paint) } else { text.in_one_line() });
    }
    page.empty_row();
}

/// `1234` microseconds as `1.234`.
pub(super) fn milliseconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}
