//! What is too long for a frame: it is kept here, a descriptor of it is sent, and it is read page by page.

use serde_json::Value;
use sidecert_proto::digest;
use sidecert_proto::json::{Node, Tape};
use sidecert_proto::machine::LinkId;
use sidecert_proto::reasonix::content::Object;
use sidecert_proto::reasonix::contract::reason;

use super::core::{Core, Failure, Shared, text};
use super::frames::{grant, member, refuse};

/// The pointer to what may move out of a ruling.
const REPLACEMENT: &str = "/replacement";

/// The members that carry this payload in a frame to that guest: the payload itself, or where it can be read.
pub(super) fn carried(core: &Core<'_>, link: LinkId, payload: &str, event: bool) -> Result<String, Failure> {
    let manners = &core.manners.content;
    let above = manners.externalize_above.unwrap_or(core.limits.externalize_field_bytes);
    if payload.len() <= above || (event && !manners.externalizes_events) {
        return Ok(format!(r#""payload":{payload}"#));
    }
    let most = manners.object_bytes.unwrap_or(core.limits.content_ref_object_bytes);
    if payload.len() > most {
        let text = format!("a payload of {} bytes is longer than {most}", payload.len());
        return Err(Failure::of(reason::FRAME_TOO_LARGE, text));
    }
    let descriptor = core.on(link, |connection| {
        connection.minted += 1;
        let seed = format!("{link}/{}/{}", connection.generation, connection.minted);
        let reference = format!("content_{}", &digest::sha256(seed.as_bytes())[..24]);
        let object = Object { reference, bytes: payload.as_bytes().to_vec() };
        let mut descriptor = object.descriptor("/payload");
        if !manners.true_digests {
            descriptor = descriptor.replace(&object.sha256(), &digest::sha256(b""));
        }
        connection.objects.push_back(object);
        while connection.objects.len() > manners.objects_kept {
            connection.objects.pop_front();
        }
        descriptor
    });
    Ok(format!(r#""payload":null,"externalized":[{}]"#, descriptor.unwrap_or_default()))
}

/// The object that a guest names.
fn object(core: &Core<'_>, link: LinkId, reference: &str) -> Option<Object> {
    core.with(|state| {
        let links =
            state.links.iter().filter(|(other, _)| **other == link || !core.manners.content.own_objects);
        let mut objects = links.flat_map(|(_, connection)| &connection.objects);
        objects.find(|object| object.reference == reference).cloned()
    })
}

/// Answers with a page.
pub(super) fn read(core: &Shared<'_>, link: LinkId, id: &str, params: Node<'_>) {
    let manners = &core.manners.content;
    let most = manners.page_bytes.unwrap_or(core.limits.content_ref_chunk_bytes);
    let offset = params.get("offset").and_then(Node::as_u64).and_then(|it| usize::try_from(it).ok());
    let mut offset = offset.unwrap_or(usize::MAX);
    if !manners.exact_offsets {
        offset -= offset % most.max(1);
    }
    let object = object(core, link, &member(params, "contentRef"));
    let object = object.filter(|object| manners.empty_last_page || offset < object.bytes.len());
    if let Some(page) = object.and_then(|object| object.page(offset, most)) {
        return grant(core, link, id, &page);
    }
    let name = if manners.names_expired { reason::CONTENT_REF_EXPIRED } else { reason::INVALID_PARAMS };
    refuse(core, link, id, &core.reasoned(name, "nothing is kept under this reference"));
}

/// The replacement that a ruling names by a reference of ours, if it names one.
pub(super) fn referred(core: &Core<'_>, link: LinkId, ruling: &Value) -> Result<Option<Value>, Failure> {
    let Some(descriptors) = ruling["externalized"].as_array().filter(|list| !list.is_empty()) else {
        return Ok(None);
    };
    let wrong = |says: &str| Failure::of(reason::PROTOCOL_ERROR, format!("its replacement: {says}"));
    if !core.manners.content.takes_references {
        return Err(wrong("it is a reference"));
    }
    let descriptor = &descriptors[0];
    let checks = core.manners.content.checks_replacements;
    if checks && (descriptors.len() > 1 || text(descriptor, "jsonPointer") != REPLACEMENT) {
        return Err(wrong("there is not exactly one descriptor for it"));
    }
    if checks && !ruling["replacement"].is_null() {
        return Err(wrong("it stands beside its descriptor"));
    }
    let bytes = descriptor["totalBytes"].as_u64().unwrap_or_default();
    if checks && bytes > core.limits.content_ref_object_bytes as u64 {
        return Err(Failure::of(reason::FRAME_TOO_LARGE, "its replacement is too long"));
    }
    let reference = text(descriptor, "contentRef");
    let Some(object) = object(core, link, reference) else {
        if core.manners.content.takes_unknown_references {
            return Ok(Some(serde_json::json!({ "text": reference })));
        }
        return Err(Failure::of(reason::CONTENT_REF_EXPIRED, "its replacement is not kept any more"));
    };
    let same = object.bytes.len() as u64 == bytes && object.sha256() == text(descriptor, "sha256");
    if checks && !same {
        return Err(wrong("its size or digest is another"));
    }
    let tape = Tape::scan(&object.bytes).map_err(|_| wrong("it is no JSON"))?;
    tape.root().to_value().map(Some).ok_or_else(|| wrong("it is nested too deeply"))
}
