//! Content references: what our host keeps outside of frames, and how it hands out pages.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::contract::Limits;
use crate::contract::Contract;
use crate::digest;
use crate::exchange::Exchange;

/// One object kept outside of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its reference.
    pub reference: String,
    /// A JSON text.
    pub bytes: Vec<u8>,
}

impl Object {
    /// The lowercase hexadecimal SHA-256 of its bytes.
    pub fn sha256(&self) -> String {
        digest::sha256(&self.bytes)
    }

    /// The descriptor that stands in a frame for the value at `pointer`, as one JSON text.
    pub fn descriptor(&self, pointer: &str) -> String {
        format!(
            r#"{{"jsonPointer":"{pointer}","contentRef":"{}","totalBytes":{},"sha256":"{}"}}"#,
            self.reference,
            self.bytes.len(),
            self.sha256()
        )
    }

    /// The page at `offset`, as the JSON text of a result; `None` past the end. Pages cut bytes anywhere.
    pub fn page(&self, offset: usize, page_bytes: usize) -> Option<String> {
        let rest = self.bytes.get(offset..)?;
        let page = &rest[..rest.len().min(page_bytes)];
        let next = offset + page.len();
        let next = if next < self.bytes.len() { format!(r#","nextOffset":{next}"#) } else { String::new() };
        Some(format!(
            r#"{{"contentRef":"{}","offset":{offset}{next},"totalBytes":{},"sha256":"{}","encoding":"utf8","dataBase64":"{}"}}"#,
            self.reference,
            self.bytes.len(),
            self.sha256(),
            BASE64.encode(page)
        ))
    }
}

/// The payload that our scripts send outside of a frame: the smallest one that takes three pages, with characters of
/// several bytes wherever a page may be cut.
pub fn sample(contract: &Contract, seed: u64) -> Object {
    let limits = Limits::of(contract);
    let bytes = (2 * limits.content_ref_chunk_bytes + 1).max(limits.externalize_field_bytes + 1);
    let bytes = bytes.min(limits.content_ref_object_bytes);
    let (head, tail) = ("{\"text\":\"", "\"}");
    let room = bytes.saturating_sub(head.len() + tail.len());
    let text = format!("{head}{}{}{tail}", "é".repeat(room / 2), "a".repeat(room % 2));
    let reference = format!("content_{}", &digest::sha256(&seed.to_le_bytes())[..24]);
    Object { reference, bytes: text.into_bytes() }
}

/// What the host of an exchange has handed out of the content `reference`, up to the first page that is missing.
pub fn served(exchange: &Exchange<'_>, reference: &str) -> Vec<u8> {
    let mut pages = BTreeMap::new();
    for said in exchange.entries().iter().filter_map(|entry| entry.frame.as_ref()) {
        let Some(result) = said.root.get("result") else { continue };
        let text = |name: &str| result.get(name).and_then(|it| it.as_str());
        let offset = result.get("offset").and_then(|it| it.as_u64()).and_then(|it| usize::try_from(it).ok());
        if let (Some(given), Some(offset), Some(data)) = (text("contentRef"), offset, text("dataBase64"))
            && given == reference
        {
            pages.insert(offset, BASE64.decode(data.as_bytes()).unwrap_or_default());
        }
    }
    let mut whole = Vec::new();
    while let Some(page) = pages.remove(&whole.len()).filter(|page| !page.is_empty()) {
        whole.extend(page);
    }
    whole
}

/// What a host keeps.
#[derive(Clone, Debug, Default)]
pub struct Store {
    objects: BTreeMap<String, Object>,
}

impl Store {
    /// Keeps an object.
    pub fn keep(&mut self, object: Object) {
        self.objects.insert(object.reference.clone(), object);
    }

    /// The object of this reference.
    pub fn object(&self, reference: &str) -> Option<&Object> {
        self.objects.get(reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reasonix::contract;

    #[test]
    fn pages_join_to_the_object_and_end_where_it_does() {
        let object = sample(contract::v1(), 7);
        let page_bytes = Limits::of(contract::v1()).content_ref_chunk_bytes;
        let mut joined = Vec::new();
        let mut pages = 0;
        loop {
            let page = object.page(joined.len(), page_bytes).unwrap();
            let tape = crate::json::Tape::scan(page.as_bytes()).unwrap();
            let data = tape.root().get("dataBase64").and_then(|data| data.as_str()).unwrap();
            joined.extend(BASE64.decode(data.as_bytes()).unwrap());
            pages += 1;
            match tape.root().get("nextOffset").and_then(|next| next.as_u64()) {
                Some(next) => assert_eq!(next, joined.len() as u64),
                None => break,
            }
        }
        assert_eq!((joined == object.bytes, pages), (true, 3));
        assert!(object.page(object.bytes.len() + 1, page_bytes).is_none());
        assert!(object.page(object.bytes.len(), page_bytes).is_some());
    }
}
