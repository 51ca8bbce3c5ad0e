//! What the guest shows and asks the user: bound to its session, and structured data only.

use super::HOST_CONFORMS;
use crate::contract::{Contract, Side::Guest};
use crate::exchange::short;
use crate::json::Node;
use crate::judge::Notes;
use crate::reasonix::contract;
use crate::reasonix::documents::Documents;
use crate::requirement::Rule;

/// A surface names the session and the generation that the guest was given.
pub static SURFACES_BOUND: Rule = Rule { name: "surfaces-bound", binds: Guest, assumes: &[&HOST_CONFORMS] };
/// A surface has no script, no markup and no address in it, outside of its Markdown.
pub static STRUCTURED_ONLY: Rule = Rule { name: "structured-only", binds: Guest, assumes: &[] };
/// The Markdown of a surface has no markup and loads nothing.
pub static MARKDOWN_TAME: Rule = Rule { name: "markdown-tame", binds: Guest, assumes: &[] };
/// The payload of a surface has the form that its kind has.
pub static DOCUMENTS_FIT: Rule = Rule { name: "documents-fit", binds: Guest, assumes: &[] };

/// What begins an element that does more than show text.
const MARKUP: [&str; 6] = ["<script", "<style", "<iframe", "<object", "<embed", "<link"];
/// What begins an address that does something by itself.
const ACTIVE: [&str; 3] = ["javascript:", "vbscript:", "data:text/html"];
/// Members of a surface that stand for markup of its own.
const FRONTEND: [&str; 5] = ["html", "css", "script", "url", "src"];

/// The session of the connection.
#[derive(Debug)]
pub(super) struct Surfaces<'c> {
    documents: Documents<'c>,
    session: Option<(String, String)>,
}

impl<'c> Surfaces<'c> {
    pub(super) fn new(contract: &'c Contract) -> Self {
        Self { documents: Documents::new(contract), session: None }
    }

    /// The host asks something.
    pub(super) fn asked(&mut self, method: &str, params: Node<'_>) {
        if method == contract::INITIALIZE
            && let Some(session) = params.get("session")
            && let (Some(id), Some(generation)) = (session.get("sessionId"), session.get("generation"))
        {
            self.session = Some((id.canonical(), generation.canonical()));
        }
    }

    /// The guest shows something or asks the user.
    pub(super) fn shown(&self, method: &str, params: Node<'_>, notes: &mut Notes<'_>) {
        if let Some((session, generation)) = &self.session {
            let same = |name: &str, own: &str| params.get(name).is_some_and(|it| it.canonical() == own);
            notes.note(&SURFACES_BOUND, same("sessionId", session) && same("generation", generation), || {
                let raw = |name: &str| params.get(name).map_or("nothing", Node::raw);
                format!(
                    "the session {} and the generation {}, and they are {} and {}",
                    short(raw("sessionId")),
                    short(raw("generation")),
                    short(session),
                    short(generation)
                )
            });
        }
        let Some(payload) = params.get("payload") else { return };
        let seen = look(payload);
        notes.note(&STRUCTURED_ONLY, seen.markup.is_none(), || seen.markup.unwrap_or_default());
        if seen.has_markdown {
            notes.note(&MARKDOWN_TAME, seen.wild.is_none(), || seen.wild.unwrap_or_default());
        }
        let kind = params.get("kind").and_then(|it| it.as_str()).unwrap_or_default();
        let name = if method == contract::UI_REQUEST { "request" } else { &*kind };
        let fault = self.documents.surface_fault(name, payload);
        notes.note(&DOCUMENTS_FIT, fault.is_none(), || {
            format!("the payload of a {}: {}", short(&kind), fault.unwrap_or_default())
        });
    }
}

/// What is seen in a surface.
#[derive(Default)]
struct Look {
    /// Markup outside of Markdown.
    markup: Option<String>,
    has_markdown: bool,
    /// What is wrong with its Markdown.
    wild: Option<String>,
}

/// Looks through a surface.
fn look(payload: Node<'_>) -> Look {
    let mut seen = Look::default();
    let mut open = vec![(None, payload)];
    while let Some((name, node)) = open.pop() {
        for (name, member) in node.members() {
            if FRONTEND.contains(&&*name.to_ascii_lowercase()) {
                seen.markup.get_or_insert_with(|| format!("the member {}", short(&name)));
            }
            open.push((Some(name), member));
        }
        open.extend(node.elements().map(|element| (None, element)));
        let Some(text) = node.as_str() else { continue };
        let lower = text.trim_start().to_ascii_lowercase();
        if name.as_deref() == Some("markdown") {
            let wild = MARKUP.iter().chain(&ACTIVE).find(|it| lower.contains(**it)).copied();
            let loads = ["![", "<img"].into_iter().find(|it| lower.contains(it) && lower.contains("http"));
            let found = wild.or(loads).map(|it| format!("Markdown with {it}"));
            seen.has_markdown = true;
            seen.wild = seen.wild.take().or(found);
            continue;
        }
        let element = MARKUP.iter().find(|it| lower.contains(**it) && lower.contains("</"));
        let address = ACTIVE.iter().find(|it| lower.starts_with(**it));
        if let Some(found) = element.or(address) {
            seen.markup.get_or_insert_with(|| format!("a text with {found}"));
        }
    }
    seen
}
