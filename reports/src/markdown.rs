//! The form for a page of a CI job: GitHub-flavoured Markdown, short, with everything else folded away.
//!
//! Nothing that a target wrote is Markdown or HTML here. It stands in fenced blocks whose fences are longer than any
//! run of backticks in them, or in `<code>` with each sign of punctuation written as a character reference.

use crate::report::{Counts, Report, Requirement, Verdict, Why};
use crate::{safe, terminal};

/// How many failures, causes and warnings are shown in full; a page of a CI job has a limit.
const DETAILS_MAX: usize = 50;
/// How much of what came instead stands in a table, in characters.
const CELL_CHARACTERS_MAX: usize = 200;

/// Writes a report. Every line ends in `\n`.
pub fn render(report: &Report) -> String {
    let mut page = Page::default();
    page.line(&format!("## {}", text(&report.tool.name)));
    page.paragraph(&text(&report.headline()));
    page.paragraph(&format!(
        "Exit code **{}**: {}. Target: {}",
        report.outcome.exit_code,
        code(&report.outcome.says),
        code(&terminal::command_line(&report.target.argv)),
    ));
    failures(&mut page, report);
    causes(&mut page, report);
    warnings(&mut page, report);
    open(&mut page, report);
    compared(&mut page, report);
    sections(&mut page, report);
    page.text
}

fn failures(page: &mut Page, report: &Report) {
    let failed: Vec<&Requirement> = report.with(Verdict::Fail).collect();
    if failed.is_empty() {
        return;
    }
    page.paragraph("### Failed");
    page.table(["requirement", "level", "what came instead"]);
    for requirement in &failed {
        let actual = requirement.actual.as_deref().unwrap_or_default();
        page.cells([&code(&requirement.id), requirement.level.word(), &code(&shortened(actual))]);
    }
    page.details(failed.iter().map(|row| (row.id.as_str(), terminal::requirement_text("FAIL", row))));
}

fn causes(page: &mut Page, report: &Report) {
    if report.causes.is_empty() {
        return;
    }
    page.paragraph("### Cut short");
    page.details(report.causes.iter().map(|cause| (cause.actual.as_str(), terminal::cause_text(cause))));
}

fn warnings(page: &mut Page, report: &Report) {
    let warned: Vec<&Requirement> = report.with(Verdict::Warn).collect();
    if warned.is_empty() {
        return;
    }
    page.paragraph("### Warnings");
    page.details(warned.iter().map(|row| (row.id.as_str(), terminal::requirement_text("WARN", row))));
}

/// What this run cannot tell, by what would decide it.
fn open(page: &mut Page, report: &Report) {
    let mut groups: Vec<((Why, Option<&str>), usize)> = Vec::new();
    for why in Why::ALL {
        for row in report.requirements.iter().filter(|row| row.why == Some(why)) {
            let key = (why, row.option.as_deref());
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, count)) => *count += 1,
                None => groups.push((key, 1)),
            }
        }
    }
    if groups.is_empty() {
        return;
    }
    page.paragraph("### Undecided");
    page.table(["why", "option", "requirements"]);
    for ((why, option), count) in groups {
        page.cells([why.words(), &option.map(code).unwrap_or_default(), &count.to_string()]);
    }
}

/// Where a host and the reference host part, folded away: no verdict depends on it.
fn compared(page: &mut Page, report: &Report) {
    if let Some(compared) = &report.compared {
        page.paragraph("### Compared");
        let title = format!("with {}", compared.with);
        page.details([(title.as_str(), terminal::compared_text(compared))].into_iter());
    }
}

fn sections(page: &mut Page, report: &Report) {
    let mut sections: Vec<(&str, Vec<&Requirement>)> = Vec::new();
    for requirement in &report.requirements {
        match sections.iter_mut().find(|(name, _)| *name == requirement.section()) {
            Some((_, rows)) => rows.push(requirement),
            None => sections.push((requirement.section(), vec![requirement])),
        }
    }
    page.paragraph("### By section");
    page.table(["section", "pass", "fail", "warn", "not applicable", "undecided"]);
    for (name, rows) in sections {
        let Counts { pass, fail, warn, not_applicable, undecided } = Counts::of(rows);
        let counts = [pass, fail, warn, not_applicable, undecided].map(|count| count.to_string());
        let [pass, fail, warn, not_applicable, undecided] = &counts;
        page.cells([&code(name), pass, fail, warn, not_applicable, undecided]);
    }
}

/// The page so far.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn paragraph(&mut self, line: &str) {
        self.line("");
        self.line(line);
    }

    fn table<const N: usize>(&mut self, head: [&str; N]) {
        self.line("");
        self.cells(head);
        self.cells(["---"; N]);
    }

    fn cells<const N: usize>(&mut self, cells: [&str; N]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Blocks of text, each folded away under its title.
    fn details<'t>(&mut self, blocks: impl Iterator<Item = (&'t str, String)>) {
        let blocks: Vec<(&str, String)> = blocks.collect();
        for (title, block) in blocks.iter().take(DETAILS_MAX) {
            let fence = "`".repeat(longest_run(block).max(2) + 1);
            self.paragraph(&format!("<details><summary>{}</summary>", code(&shortened(title))));
            self.paragraph(&format!("{fence}text\n{}\n{fence}", block.trim_matches('\n')));
            self.paragraph("</details>");
        }
        if blocks.len() > DETAILS_MAX {
            self.paragraph(&format!("And {} more: the other reports have all.", blocks.len() - DETAILS_MAX));
        }
    }
}

/// What anybody may have written, as one piece of code.
fn code(shown: &str) -> String {
    format!("<code>{}</code>", text(shown))
}

/// Text in which no sign means anything to Markdown or HTML, for the middle of a line.
fn text(shown: &str) -> String {
    let escaped = safe::escape(shown);
    let mut text = String::with_capacity(escaped.len() * 2);
    let mut characters = escaped.chars().peekable();
    while let Some(character) = characters.next() {
        // Within a word these may make it a link or a picture.
        let stop = matches!(character, '.' | ':') && characters.peek().is_none_or(|next| *next == ' ');
        if !character.is_ascii_punctuation() || stop || matches!(character, ',' | '(' | ')' | '-' | '/') {
            text.push(character);
        } else {
            text.push_str(&format!("&#{};", u32::from(character)));
        }
    }
    text
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}{}", &text[..end], safe::CUT),
        None => text.to_owned(),
    }
}

/// The length of the longest run of backticks.
fn longest_run(block: &str) -> usize {
    block.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}
