//! What a comparison has found, bounded: where it is now, how many changes there are of each class, and the first ones.

use super::{CHANGES_MAX, Change, Class, Edition, POINTER_MAX};
use crate::schema::{SAYS_MAX, cut};

/// One step from a value to one in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Index(usize),
}

/// The changes so far, and the way to where the comparison is.
#[derive(Default)]
pub(super) struct Found<'a> {
    pub(super) path: Vec<Token<'a>>,
    changes: Vec<Change>,
    counts: [u64; 4],
}

impl Found<'_> {
    /// A change at this place. What it says is only written where it is told.
    pub(super) fn note(
        &mut self,
        class: Class,
        what: &'static str,
        of: Edition,
        says: impl FnOnce() -> String,
    ) {
        let count = &mut self.counts[class as usize];
        *count += 1;
        if *count > CHANGES_MAX as u64 {
            return;
        }
        let (pointer, says) = (self.pointer(), cut(&says(), SAYS_MAX));
        self.changes.push(Change { class, what, pointer, of, says });
    }

    /// The worst class of the changes, and what the first of it says.
    pub(super) fn worst(&self) -> Option<(Class, &str)> {
        let worst = self.changes.iter().min_by_key(|change| change.class)?;
        Some((worst.class, &worst.says))
    }

    /// The changes as they were found, and how many there are of each class.
    pub(super) fn finish(self) -> (Vec<Change>, [u64; 4]) {
        (self.changes, self.counts)
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for token in &self.path {
            pointer.push('/');
            match token {
                Token::Index(index) => pointer.push_str(&index.to_string()),
                // Names come from a file, and no more of one is escaped than is shown.
                Token::Name(name) => {
                    let name = cut(name, POINTER_MAX);
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
            }
        }
        cut(&pointer, POINTER_MAX)
    }
}
