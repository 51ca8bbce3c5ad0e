//! Bytes to lines. Linear in the bytes, bounded in memory, and the same lines however the bytes were cut.
//!
//! ```text
//!  collecting --LF within the limit--> collecting     (a line)
//!  collecting --more than the limit--> stopped        (oversize: its head, how much was seen)
//! ```

use memchr::memchr;

/// How much of a line that is too long is kept, in bytes.
pub const OVERSIZE_HEAD_BYTES: usize = 4096;

/// One line of a stream, without its LF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line, its LF taken off and nothing else.
    Whole(&'a [u8]),
    /// A line longer than the limit. Nothing after it is read: its stream is over.
    Oversize {
        /// Its first [`OVERSIZE_HEAD_BYTES`].
        head: &'a [u8],
        /// How many of its bytes had arrived when it was given up.
        seen: u64,
    },
}

/// Cuts a stream into lines of a bounded length.
#[derive(Debug)]
pub struct Deframer {
    line_bytes_max: usize,
    /// The beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// Whether `begun` was handed out as a whole line and is to be dropped.
    spent: bool,
    stopped: bool,
}

impl Deframer {
    /// A deframer for lines of at most `line_bytes_max` bytes, LF not counted.
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, begun: Vec::new(), spent: false, stopped: false }
    }

    /// The lines that `chunk` completes, to be taken until there are no more.
    pub fn push<'a>(&'a mut self, chunk: &'a [u8]) -> Lines<'a> {
        Lines { deframer: self, rest: chunk }
    }

    /// What has arrived of a line that has not ended. Empty at the end of an orderly stream.
    pub fn tail(&self) -> &[u8] {
        if self.spent || self.stopped { &[] } else { &self.begun }
    }

    /// Whether an oversize line ended the stream.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }
}

/// The lines that one chunk completes.
#[derive(Debug)]
pub struct Lines<'a> {
    deframer: &'a mut Deframer,
    rest: &'a [u8],
}

impl Lines<'_> {
    /// The next line. Not an `Iterator`: a line borrows the deframer until the next call.
    #[expect(clippy::should_implement_trait, reason = "a lending iterator cannot implement Iterator")]
    pub fn next(&mut self) -> Option<Line<'_>> {
        let Self { deframer, rest } = self;
        if deframer.stopped {
            return None;
        }
        if std::mem::take(&mut deframer.spent) {
            deframer.begun.clear();
        }
        let Some(end) = memchr(b'\n', rest) else {
            // Never more than the limit and one chunk: whoever pushes chunks bounds how far past the limit we read.
            deframer.begun.extend_from_slice(rest);
            *rest = &[];
            return if deframer.begun.len() > deframer.line_bytes_max { Some(deframer.stop()) } else { None };
        };
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        *rest = after;
        if deframer.begun.is_empty() && line.len() <= deframer.line_bytes_max {
            return Some(Line::Whole(line));
        }
        deframer.begun.extend_from_slice(line);
        if deframer.begun.len() > deframer.line_bytes_max {
            return Some(deframer.stop());
        }
        deframer.spent = true;
        Some(Line::Whole(&deframer.begun))
    }
}

impl Deframer {
    fn stop(&mut self) -> Line<'_> {
        self.stopped = true;
        let seen = self.begun.len() as u64;
        self.begun.truncate(OVERSIZE_HEAD_BYTES);
        self.begun.shrink_to_fit();
        Line::Oversize { head: &self.begun, seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]]) -> (Vec<String>, String) {
        let mut deframer = Deframer::new(limit);
        let mut seen = Vec::new();
        for chunk in chunks {
            let mut lines = deframer.push(chunk);
            while let Some(line) = lines.next() {
                seen.push(match line {
                    Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    Line::Oversize { seen, .. } => format!("oversize {seen}"),
                });
            }
        }
        (seen, String::from_utf8_lossy(deframer.tail()).into_owned())
    }

    fn check(limit: usize, chunks: &[&str], expected: &[&str], tail: &str) {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        let (seen, rest) = lines(limit, &chunks);
        assert_eq!(
            (seen.as_slice(), rest.as_str()),
            (expected.map_to_owned().as_slice(), tail),
            "{chunks:?}"
        );
    }

    trait MapToOwned {
        fn map_to_owned(&self) -> Vec<String>;
    }
    impl MapToOwned for &[&str] {
        fn map_to_owned(&self) -> Vec<String> {
            self.iter().map(|&text| text.to_owned()).collect()
        }
    }

    #[test]
    fn lines_end_at_lf_and_nowhere_else() {
        check(8, &["ab\ncd\n"], &["ab", "cd"], "");
        check(8, &["a", "b", "\n", "c"], &["ab"], "c");
        check(8, &["\n\r\n"], &["", "\r"], "");
        check(8, &["a\u{2028}b\n"], &["a\u{2028}b"], "");
        check(8, &[], &[], "");
    }

    #[test]
    fn the_limit_is_inclusive_and_ends_the_stream() {
        check(4, &["abcd\nx\n"], &["abcd", "x"], "");
        check(4, &["abcde\nx\n"], &["oversize 5"], "");
        check(4, &["abc", "de"], &["oversize 5"], "");
        check(4, &["abcd", "\n"], &["abcd"], "");
        check(4, &["abcdefgh", "\n", "x\n"], &["oversize 8"], "");
    }
}
