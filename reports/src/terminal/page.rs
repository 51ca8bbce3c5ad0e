//! The page that a terminal report is written on, and the only way to write there.
//!
//! All text is escaped here, whoever wrote it, and no text but ours begins a line: [`Row`]s stand behind a bar, in
//! all of their lines.

use super::Style;
use super::paint::Paint;
use super::wrap::{Breaks, columns, wrap};
use crate::safe;

/// How wide the column of labels before the bar is.
const LABEL_COLUMNS: usize = 11;
/// Narrower pages than this are hard to read at any width.
const PAGE_COLUMNS_MIN: usize = 60;

/// The text so far.
pub(super) struct Page {
    style: Style,
    text: String,
}

/// One labelled paragraph behind the bar.
pub(super) struct Row<'a> {
    label: &'a str,
    text: &'a str,
    paint: Paint,
    breaks: Breaks,
    indent: usize,
    hang: usize,
    one_line: bool,
}

impl<'a> Row<'a> {
    pub(super) fn new(label: &'a str, text: &'a str) -> Self {
        Self { label, text, paint: Paint::Plain, breaks: Breaks::Words, indent: 0, hang: 0, one_line: false }
    }

    pub(super) fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    pub(super) fn broken(self, breaks: Breaks) -> Self {
        Self { breaks, ..self }
    }

    /// Moves the text away from the bar.
    pub(super) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Moves all lines but the first away from the bar.
    pub(super) fn hanging(self, hang: usize) -> Self {
        Self { hang, ..self }
    }

    /// Leaves out what does not fit into one line.
    pub(super) fn in_one_line(self) -> Self {
        Self { one_line: true, ..self }
    }
}

impl Page {
    pub(super) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Leaves a line empty, but never two, and never the first.
    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// One line that starts at the margin: a word of ours, then text that is not broken.
    pub(super) fn line(&mut self, word: &str, paint: Paint, text: &str) {
        let word = paint.apply(self.style.color, &safe::escape(word));
        let space = if word.is_empty() || text.is_empty() { "" } else { "  " };
        self.push(&[&word, space, &safe::escape(text)]);
    }

    /// A sentence of ours, broken to the width of the page.
    pub(super) fn sentence(&mut self, indent: usize, paint: Paint, text: &'static str) {
        for line in wrap(text, self.columns() - indent, Breaks::Words) {
            let line = paint.apply(self.style.color, line);
            self.push(&[&" ".repeat(indent), &line]);
        }
    }

    pub(super) fn row(&mut self, row: &Row<'_>) {
        let text = safe::escape(row.text);
        let room =
            (self.columns() - LABEL_COLUMNS - " | ".len()).saturating_sub(row.indent + row.hang).max(16);
        let lines = wrap(&text, room, row.breaks);
        let shortened = (row.one_line && lines.len() > 1).then(|| {
            let short = wrap(&text, room - 1, Breaks::Anywhere)[0];
            format!("{short}{}", safe::CUT)
        });
        let lines = shortened.as_deref().map_or(lines, |line| vec![line]);
        let mut label = safe::escape(row.label).into_owned();
        let mut indent = row.indent;
        for line in lines {
            let line = row.paint.apply(self.style.color, line);
            self.bar(&label, row.paint, &format!("{:indent$}{line}", ""));
            label.clear();
            indent = row.indent + row.hang;
        }
    }

    /// A line with nothing behind the bar.
    pub(super) fn empty_row(&mut self) {
        self.bar("", Paint::Plain, "");
    }

    /// Names that belong together, each with a remark behind a bar of its own; a remark is not said twice in a row.
    pub(super) fn names(&mut self, entries: &[(&str, &str)]) {
        let indent = 4;
        let widest = entries.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
        let room = self.columns().saturating_sub(indent + widest + " | ".len());
        let beside = room >= 32;
        let mut said = "";
        for (name, remark) in entries {
            let text =
                if *remark == said && !remark.is_empty() { "the same".into() } else { safe::escape(remark) };
            said = remark;
            let name = safe::escape(name);
            if remark.is_empty() {
                self.push(&[&" ".repeat(indent), &name]);
                continue;
            }
            let bar = Paint::Dim.apply(self.style.color, "│");
            let mut before = format!("{:indent$}{name}", "");
            let (column, room) = if beside {
                (indent + widest, room)
            } else {
                self.push(&[&before]);
                before.clear();
                (indent + 1, self.columns() - indent - 4)
            };
            for line in wrap(&text, room, Breaks::Words) {
                let space = " ".repeat(column - columns(&before));
                self.push(&[&before, &space, " ", &bar, " ", line]);
                before.clear();
            }
        }
    }

    fn bar(&mut self, label: &str, paint: Paint, text: &str) {
        let space = " ".repeat(LABEL_COLUMNS.saturating_sub(columns(label)));
        let color = self.style.color;
        let label = if paint == Paint::Plain { Paint::Dim } else { paint }.apply(color, label);
        let bar = Paint::Dim.apply(color, "│");
        self.push(&[&space, &label, " ", &bar, " ", text]);
    }

    /// The only place that ends a line. Spaces at its end go.
    fn push(&mut self, parts: &[&str]) {
        for part in parts {
            self.text.push_str(part);
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    fn columns(&self) -> usize {
        self.style.width.max(PAGE_COLUMNS_MIN)
    }
}
