//! Content references: what the host gave out, and what the guest reads of it.

use std::collections::BTreeMap;

use super::HOST_CONFORMS;
use crate::contract::Side::Guest;
use crate::exchange::short;
use crate::json::Node;
use crate::judge::Notes;
use crate::requirement::Rule;

/// The guest reads content that it was given, within its bounds.
pub static CONTENT_READ_AS_GIVEN: Rule =
    Rule { name: "content-read-as-given", binds: Guest, assumes: &[&HOST_CONFORMS] };
/// The guest reads no content before the connection is open.
pub static CONTENT_READ_WHEN_OPEN: Rule = Rule { name: "content-read-when-open", binds: Guest, assumes: &[] };

/// How many references of one connection are remembered; of older ones nothing is said.
const REFERENCES_MOST: usize = 4096;

/// What the host gave out, and how many bytes it has.
#[derive(Debug, Default)]
pub(super) struct Contents {
    given: BTreeMap<String, u64>,
    forgotten: bool,
}

impl Contents {
    /// Remembers the references that a frame of the host gives.
    pub(super) fn remember(&mut self, params: Node<'_>) {
        for descriptor in params.get("externalized").into_iter().flat_map(Node::elements) {
            let reference = descriptor.get("contentRef").and_then(|it| it.as_str());
            let total = descriptor.get("totalBytes").and_then(|it| it.as_u64());
            if let (Some(reference), Some(total)) = (reference, total) {
                if self.given.len() == REFERENCES_MOST {
                    self.given.pop_first();
                    self.forgotten = true;
                }
                self.given.insert(reference.into_owned(), total);
            }
        }
    }

    /// The guest asks for a page.
    pub(super) fn read(&self, params: Node<'_>, open: bool, notes: &mut Notes<'_>) {
        notes.note(&CONTENT_READ_WHEN_OPEN, open, || "a read before initialized".to_owned());
        let reference = params.get("contentRef").and_then(|it| it.as_str());
        let (Some(reference), Some(offset)) = (reference, params.get("offset").and_then(|it| it.as_u64()))
        else {
            return;
        };
        match self.given.get(&*reference) {
            Some(total) => notes.note(&CONTENT_READ_AS_GIVEN, offset <= *total, || {
                format!("a read at {offset} of a content of {total} bytes")
            }),
            None if self.forgotten => {}
            None => notes.broken(&CONTENT_READ_AS_GIVEN, || {
                format!("a read of {:?}, which the host never gave", short(&reference))
            }),
        }
    }
}
