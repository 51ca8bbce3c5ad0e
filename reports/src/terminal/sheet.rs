//! A page in the look of a report for what is none: headings, labelled paragraphs, frames.
//!
//! All text is escaped here, as in a report, and nothing but headings begins a line.

use super::Style;
use super::blocks::excerpt;
use super::page::{Page, Row};
use super::paint::Paint;
use super::wrap::Breaks;
use crate::report::Frame;

/// A page that is being written.
pub struct Sheet(Page);

impl Sheet {
    /// An empty page.
    pub fn new(style: Style) -> Self {
        Self(Page::new(style))
    }

    /// A word at the margin, and what it is about; an empty line stands before it.
    pub fn heading(&mut self, word: &str, text: &str) {
        self.0.gap();
        self.0.line(word, Paint::Bold, text);
    }

    /// A heading of what is wrong.
    pub fn fault(&mut self, word: &str, text: &str) {
        self.0.gap();
        self.0.line(word, Paint::Red, text);
    }

    /// A heading of what deserves attention.
    pub fn warning(&mut self, word: &str, text: &str) {
        self.0.gap();
        self.0.line(word, Paint::Yellow, text);
    }

    /// A paragraph with a label.
    pub fn row(&mut self, label: &str, text: &str) {
        self.0.row(&Row::new(label, text));
    }

    /// A paragraph whose label counts, with further lines and deeper steps set in.
    pub fn step(&mut self, label: &str, depth: usize, text: &str) {
        self.0.row(&Row::new(label, text).indented(2 * depth).hanging(2));
    }

    /// A text that is no sentence, broken anywhere and set in.
    pub fn text(&mut self, depth: usize, text: &str) {
        self.0.row(&Row::new("", text).broken(Breaks::Anywhere).indented(2 * depth));
    }

    /// Such a text with a label, at the bar.
    pub fn text_with(&mut self, label: &str, text: &str) {
        self.0.row(&Row::new(label, text).broken(Breaks::Anywhere));
    }

    /// A command, in one line however long it is, so that it can be copied.
    pub fn command(&mut self, label: &str, command: &str) {
        self.0.row(&Row::new(label, command).broken(Breaks::Never));
    }

    /// What was on the wire, each frame with all that is shown of it.
    pub fn frames(&mut self, frames: &[Frame]) {
        excerpt(&mut self.0, frames, Paint::Red, true);
    }

    /// The text.
    pub fn finish(self) -> String {
        self.0.finish()
    }
}
