//! Content that travels outside of its frame: its pages are put together, so that those of the placeholder fit it.
//!
//! A digest that was right is that of the placeholder; one that was wrong stays wrong, and equal ones stay equal.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::digest;
use crate::json::{Node, Tape};

/// How much content of one process is held, in bytes.
pub const CONTENT_BYTES_MAX: usize = 256 << 20;

const REFERENCE: &str = "contentRef";
const DATA: &str = "dataBase64";
const DIGEST: &str = "sha256";
const POINTER: &str = "jsonPointer";

/// A process holds more content than [`CONTENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug)]
pub struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} MiB of content outside of frames", CONTENT_BYTES_MAX >> 20)
    }
}

impl std::error::Error for TooMuch {}

/// The contents of one process.
#[derive(Debug, Default)]
pub(super) struct Contents {
    found: BTreeMap<String, Found>,
    bytes: usize,
    settled: BTreeMap<String, Settled>,
    digests: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct Found {
    pointer: String,
    /// The pages, by offset: of several the first.
    pages: BTreeMap<u64, Vec<u8>>,
}

#[derive(Debug)]
struct Settled {
    /// How long each page is, and its digest.
    pages: BTreeMap<u64, (usize, String)>,
    redacted: Vec<u8>,
}

/// A page, as it was handed out.
#[derive(Debug)]
pub(super) struct Page {
    reference: String,
    offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// The page that the member `name` of `object` holds.
pub(super) fn page(name: &str, object: Node<'_>, said: &str) -> Option<Page> {
    if name != DATA {
        return None;
    }
    let reference = object.get(REFERENCE)?.as_str()?.into_owned();
    let offset = object.get("offset")?.as_u64()?;
    Some(Page { reference, offset, bytes: BASE64.decode(said).ok()? })
}

/// The bytes as a page has them.
pub(super) fn encoded(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

impl Contents {
    /// Takes what a frame has of contents.
    pub(super) fn look(&mut self, text: &str) -> Result<(), TooMuch> {
        if memchr::memmem::find(text.as_bytes(), REFERENCE.as_bytes()).is_none() {
            return Ok(());
        }
        let Ok(tape) = Tape::scan(text.as_bytes()) else { return Ok(()) };
        for (_, object) in tape.root().walk() {
            let text = |name: &str| object.get(name).and_then(|it| it.as_str());
            let Some(reference) = text(REFERENCE) else { continue };
            if let Some(pointer) = text(POINTER) {
                self.found.entry(reference.into_owned()).or_default().pointer = pointer.into_owned();
            } else if let Some(page) = text(DATA).and_then(|data| page(DATA, object, &data)) {
                let pages = &mut self.found.entry(page.reference).or_default().pages;
                if let std::collections::btree_map::Entry::Vacant(place) = pages.entry(page.offset) {
                    self.bytes += page.bytes.len();
                    place.insert(page.bytes);
                }
            }
        }
        if self.bytes > CONTENT_BYTES_MAX { Err(TooMuch) } else { Ok(()) }
    }

    /// What was found: reference, pointer, and the bytes up to the first page that is missing.
    pub(super) fn take_found(&mut self) -> Vec<(String, String, Vec<u8>)> {
        let found = std::mem::take(&mut self.found);
        found
            .into_iter()
            .map(|(reference, mut found)| {
                let mut whole = Vec::new();
                let mut pages = BTreeMap::new();
                while let Some(page) =
                    found.pages.remove(&(whole.len() as u64)).filter(|page| !page.is_empty())
                {
                    pages.insert(whole.len() as u64, (page.len(), digest::sha256(&page)));
                    whole.extend(page);
                }
                self.settled.insert(reference.clone(), Settled { pages, redacted: Vec::new() });
                (reference, found.pointer, whole)
            })
            .collect()
    }

    /// The content `bytes` has become `redacted`.
    pub(super) fn settle(&mut self, reference: &str, bytes: &[u8], redacted: Vec<u8>) {
        self.digests.insert(digest::sha256(bytes), digest::sha256(&redacted));
        if let Some(settled) = self.settled.get_mut(reference) {
            settled.redacted = redacted;
        }
    }

    /// What the page has become; `None` if it is none of what was put together.
    pub(super) fn page_of(&self, page: &Page) -> Option<&[u8]> {
        let settled = self.settled.get(&page.reference)?;
        let (length, known) = settled.pages.get(&page.offset)?;
        let at = usize::try_from(page.offset).ok()?;
        let is_it = page.bytes.len() == *length && digest::sha256(&page.bytes) == *known;
        settled.redacted.get(at..at + length).filter(|_| is_it)
    }

    /// What has become of the digest that the member `name` of `object` is.
    pub(super) fn digest(&mut self, name: &str, object: Node<'_>, said: &str) -> Option<String> {
        let is_one = said.len() == 64 && said.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        if name != DIGEST || !is_one || object.get(REFERENCE).is_none() {
            return None;
        }
        let other =
            || digest::sha256(format!("of nothing that is recorded, {}", self.digests.len()).as_bytes());
        let new = self.digests.get(said).cloned().unwrap_or_else(other);
        self.digests.insert(said.to_owned(), new.clone());
        Some(new)
    }
}
