//! Watches one plugin and notes each rule that comes up.
//!
//! A plugin answers one request after the other, so whatever was wrong on purpose is behind us once a fence is answered;
//! until then nothing is noted of what it answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::contract::{self, Bounds, member, wire_member};
use super::instance::with_whole_numbers;
use super::refusal::{Field, Refusal, odd_control};
use super::tools::{admit_text, is_plain_name};
use super::{Payload, admit_schema, matches};
use crate::contract::{Contract, Side};
use crate::exchange::short;
use crate::json::{Kind, Node, Tape};
use crate::judge::{Framed, Happened, Moment, Notes, Observer};
use crate::requirement::Rule;
use crate::rpc::{Envelope, Id, Outcome};

/// Every frame of the host is a request of the contract under a fresh integer, with params that fit.
pub static HOST_CONFORMS: Rule = Rule { name: "host-conforms", binds: Side::Host, assumes: &[] };

const fn rule(name: &'static str) -> Rule {
    Rule { name, binds: Side::Guest, assumes: &[] }
}

const CONFORMING_HOST: &[&Rule] = &[&HOST_CONFORMS];

/// What is not noted of answers to what was wrong on purpose.
const fn answering(name: &'static str) -> Rule {
    Rule { name, binds: Side::Guest, assumes: CONFORMING_HOST }
}

/// Every line is one JSON object.
pub static ONLY_FRAMES: Rule = rule("only-frames");
/// Every frame is a response. What is no request may be refused without an id.
pub static RESPONSES_WELL_FORMED: Rule = answering("responses-well-formed");
/// A response has the id of a request, an integer as it was written.
pub static IDS_ECHOED: Rule = answering("ids-echoed");
/// There is one answer to a request, and nothing else.
pub static ANSWERED_ONCE: Rule = answering("answered-once");
/// The message of an error has a length that is read.
pub static MESSAGES_BOUNDED: Rule = rule("messages-bounded");
/// The answer to the handshake says the same version.
pub static VERSION_SAID: Rule = answering("version-said");
/// The list is one, and the whole one.
pub static TOOLS_LISTED: Rule = answering("tools-listed");
/// A list and a tool have no members but those that are known, of the types that they have.
pub static LIST_CLOSED: Rule = answering("list-closed");
/// No two tools have one name.
pub static NAMES_UNIQUE: Rule = answering("names-unique");
/// Names have a form.
pub static NAMES_PLAIN: Rule = answering("names-plain");
/// The number of tools and their texts have bounds.
pub static LIST_BOUNDED: Rule = answering("list-bounded");
/// Schemas are of the profile.
pub static SCHEMAS_IN_PROFILE: Rule = answering("schemas-in-profile");
/// Schemas and annotations keep the bounds that the reference implementation sets.
pub static SCHEMAS_BOUNDED: Rule = answering("schemas-bounded");
/// Content is a list of texts.
pub static CONTENT_IS_TEXT: Rule = answering("content-is-text");
/// Structured content is an object.
pub static STRUCTURED_IS_OBJECT: Rule = answering("structured-is-object");
/// Structured content matches what the tool declared.
pub static OUTPUT_MATCHES: Rule = answering("output-matches");
/// Integers in it are written as such.
pub static INTEGERS_WRITTEN: Rule = answering("integers-written");
/// `isError` is a boolean.
pub static IS_ERROR_BOOLEAN: Rule = answering("is-error-boolean");
/// A result and its items have no members but those that are known.
pub static RESULTS_CLOSED: Rule = answering("results-closed");
/// Texts have no control characters but those that people write with.
pub static TEXTS_PLAIN: Rule = answering("texts-plain");
/// Results keep the bounds of the generation in force.
pub static RESULTS_BOUNDED: Rule = answering("results-bounded");

/// All of them.
pub static RULES: &[&Rule] = &[
    &HOST_CONFORMS,
    &ONLY_FRAMES,
    &RESPONSES_WELL_FORMED,
    &IDS_ECHOED,
    &ANSWERED_ONCE,
    &MESSAGES_BOUNDED,
    &VERSION_SAID,
    &TOOLS_LISTED,
    &LIST_CLOSED,
    &NAMES_UNIQUE,
    &NAMES_PLAIN,
    &LIST_BOUNDED,
    &SCHEMAS_IN_PROFILE,
    &SCHEMAS_BOUNDED,
    &CONTENT_IS_TEXT,
    &STRUCTURED_IS_OBJECT,
    &OUTPUT_MATCHES,
    &INTEGERS_WRITTEN,
    &IS_ERROR_BOOLEAN,
    &RESULTS_CLOSED,
    &TEXTS_PLAIN,
    &RESULTS_BOUNDED,
];

/// One connection.
#[derive(Debug)]
pub struct Session<'c> {
    contract: &'c Contract,
    bounds: Bounds,
    /// The greatest id under which something was asked.
    asked: i64,
    /// The tools that calls without an answer are of, by their ids.
    called: BTreeMap<i64, String>,
    /// The output schemas of the first list, by the names of their tools; those that are admitted.
    outputs: BTreeMap<String, String>,
    listed: bool,
}

impl<'c> Session<'c> {
    /// A connection that has not begun.
    pub fn new(contract: &'c Contract) -> Self {
        Self {
            contract,
            bounds: Bounds::of(contract),
            asked: 0,
            called: BTreeMap::new(),
            outputs: BTreeMap::new(),
            listed: false,
        }
    }

    fn host_frame(&mut self, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        match self.fault(frame) {
            Some(fault) => notes.broken(&HOST_CONFORMS, || fault),
            None => notes.kept(&HOST_CONFORMS),
        }
        let Ok(Envelope::Request { id: Id::Integer(id), method, params }) = &frame.envelope else { return };
        if frame.departs {
            return;
        }
        self.asked = self.asked.max(*id);
        if method == contract::TOOLS_CALL
            && let Some(name) = params.and_then(|params| params.get(member::NAME)?.as_str())
        {
            self.called.insert(*id, name.into_owned());
        }
    }

    /// What is wrong with a frame of the host.
    fn fault(&self, frame: &Framed<'_, 'c>) -> Option<String> {
        let (id, method, params) = match &frame.envelope {
            Ok(Envelope::Request { id, method, params }) => (id, method, params),
            Ok(_) => return Some("a host sends nothing but requests".to_owned()),
            Err(fault) => return Some(fault.to_string()),
        };
        let Id::Integer(id) = id else { return Some(format!("the id {id} is no integer")) };
        if *id <= self.asked {
            return Some(format!("the id {id} does not rise"));
        }
        if frame.method.is_none() {
            return Some(format!("the contract has no method {}", short(method)));
        }
        let Some(params) = params else { return Some("there are no params".to_owned()) };
        let violation = self.contract.params_validator(method)?.check(*params)?;
        Some(format!("params{}: {}", violation.pointer, violation.says))
    }

    fn guest_frame(&mut self, frame: &Framed<'_, 'c>, notes: &mut Notes<'_>) {
        let is_object = frame.root.kind() == Kind::Object;
        notes.note(&ONLY_FRAMES, is_object, || {
            format!("a line that is no object: {}", short(frame.root.raw()))
        });
        if !is_object {
            return;
        }
        let (id, outcome) = match &frame.envelope {
            Ok(Envelope::Response { id, outcome }) => (id, outcome),
            Ok(other) => {
                let method = other.method().unwrap_or_default();
                return notes
                    .broken(&RESPONSES_WELL_FORMED, || format!("it asks or tells {}", short(method)));
            }
            Err(fault) => return notes.broken(&RESPONSES_WELL_FORMED, || fault.to_string()),
        };
        notes.kept(&RESPONSES_WELL_FORMED);
        self.answers(frame, id, notes);
        if let Outcome::Error { body, .. } = outcome {
            let length = body.get("message").and_then(|it| it.as_str()).map_or(0, |it| it.len() as u64);
            notes.note(&MESSAGES_BOUNDED, (1..=self.bounds.error_message_bytes).contains(&length), || {
                format!("a message of {length} bytes")
            });
        }
        let Some(method) = frame.answers.as_ref().and_then(|asked| asked.method) else { return };
        let call = match id {
            Id::Integer(id) => self.called.remove(id),
            _ => None,
        };
        let Outcome::Result(result) = outcome else { return };
        match method.name.as_str() {
            contract::INITIALIZE => self.version(*result, notes),
            contract::TOOLS_LIST => self.list(*result, notes),
            contract::TOOLS_CALL => self.result(call.as_deref(), *result, notes),
            _ => {}
        }
    }

    fn answers(&self, frame: &Framed<'_, 'c>, id: &Id<'_>, notes: &mut Notes<'_>) {
        match id {
            _ if frame.answers.is_some() => {
                notes.kept(&IDS_ECHOED);
                notes.kept(&ANSWERED_ONCE);
            }
            Id::Integer(id) if (1..=self.asked).contains(id) => {
                notes.broken(&ANSWERED_ONCE, || format!("a second answer to the request {id}"));
            }
            other => notes.broken(&IDS_ECHOED, || {
                format!("an answer under the id {}, under which nothing was asked", short(&other.to_string()))
            }),
        }
    }

    fn version(&self, result: Node<'_>, notes: &mut Notes<'_>) {
        let said = result.get(wire_member::PROTOCOL_VERSION);
        let same = said.and_then(|said| said.as_str()).as_deref() == Some(&*self.contract.id);
        notes.note(&VERSION_SAID, same, || match said {
            Some(said) => format!("the version {}", short(said.raw())),
            None => "no version".to_owned(),
        });
    }

    // ---- tools ----

    fn list(&mut self, result: Node<'_>, notes: &mut Notes<'_>) {
        let tools = result.get(member::TOOLS).filter(|tools| tools.kind() == Kind::Array);
        let more = has_more(result, &[member::TOOLS]);
        let paged = more.as_ref().filter(|name| name.to_ascii_lowercase().contains("cursor"));
        notes.note(&TOOLS_LISTED, tools.is_some() && paged.is_none(), || match paged {
            Some(paged) => format!("the list has {}, and there are no pages", short(paged)),
            None => "there is no array `tools`".to_owned(),
        });
        let Some(tools) = tools else { return };
        let first = !std::mem::replace(&mut self.listed, true);
        let mut closed = more.map(|name| format!("the list has {}", short(&name)));
        let mut names = BTreeSet::new();
        let (mut twice, mut odd_name, mut bounds) = (None, None, None);
        let (mut profile, mut schema_bounds): (Option<String>, Option<String>) = (None, None);
        if tools.len() as u64 > self.bounds.tools {
            bounds = Some(format!("there are {} tools", tools.len()));
        }
        for tool in tools.elements() {
            closed = closed.or_else(|| not_a_tool(tool));
            let name = tool.get(member::NAME).and_then(|name| name.as_str()).unwrap_or_default();
            if !is_plain_name(&name, &self.bounds) {
                odd_name.get_or_insert_with(|| format!("the name {:?}", short(&name)));
            }
            if !names.insert(name.clone().into_owned()) {
                twice.get_or_insert_with(|| format!("two tools have the name {}", short(&name)));
            }
            bounds = bounds.or_else(|| self.long_text(tool, &name));
            for (field, optional) in
                [(Field::Input, false), (Field::Output, true), (Field::Annotations, true)]
            {
                let schema = tool.get(field.name()).filter(|it| !(optional && it.is_null()));
                let Some(schema) = schema else { continue };
                match admit_schema(schema, field, &self.bounds) {
                    Ok(()) if first && field == Field::Output => {
                        let outputs = &mut self.outputs;
                        outputs.entry(name.clone().into_owned()).or_insert_with(|| schema.raw().to_owned());
                    }
                    Ok(()) => {}
                    Err(refusal) => {
                        let told = if refusal.basis == contract::Basis::Specified {
                            &mut profile
                        } else {
                            &mut schema_bounds
                        };
                        told.get_or_insert_with(|| in_words(&name, field, &refusal));
                    }
                }
            }
        }
        for (rule, broken) in [
            (&LIST_CLOSED, closed),
            (&NAMES_UNIQUE, twice),
            (&NAMES_PLAIN, odd_name),
            (&LIST_BOUNDED, bounds),
            (&SCHEMAS_IN_PROFILE, profile),
            (&SCHEMAS_BOUNDED, schema_bounds),
        ] {
            // Of an empty list nothing can be said.
            if !tools.is_empty() || broken.is_some() {
                notes.note(rule, broken.is_none(), || broken.unwrap_or_default());
            }
        }
    }

    fn long_text(&self, tool: Node<'_>, name: &str) -> Option<String> {
        let texts = [
            (member::TITLE, contract::Rule::ToolTitle, 1, self.bounds.tool_title_bytes),
            (member::DESCRIPTION, contract::Rule::ToolDescription, 0, self.bounds.tool_description_bytes),
        ];
        texts.into_iter().find_map(|(field, rule, least, most)| {
            let text = tool.get(field).filter(|text| text.kind() == Kind::String)?;
            let found = admit_text(text, rule, least, most).err()?;
            Some(format!("the {field} of {}: {}", short(name), found.says))
        })
    }

    // ---- calls ----

    fn result(&self, tool: Option<&str>, result: Node<'_>, notes: &mut Notes<'_>) {
        let items: Vec<Node<'_>> =
            result.get(wire_member::CONTENT).into_iter().flat_map(Node::elements).collect();
        let is_list = result.get(wire_member::CONTENT).is_some_and(|it| it.kind() == Kind::Array);
        let odd = items.iter().find(|item| {
            let is_text = |name| item.get(name).and_then(|it| it.as_str());
            is_text(wire_member::TYPE).as_deref() != Some(wire_member::TEXT)
                || is_text(wire_member::TEXT).is_none()
        });
        notes.note(&CONTENT_IS_TEXT, is_list && odd.is_none(), || match odd {
            Some(odd) => format!("the content {}", short(odd.raw())),
            None => "there is no array `content`".to_owned(),
        });
        let structured = result.get(wire_member::STRUCTURED_CONTENT).filter(|it| !it.is_null());
        if let Some(structured) = structured {
            notes.note(&STRUCTURED_IS_OBJECT, structured.kind() == Kind::Object, || {
                format!("structured content of the kind {}", structured.kind())
            });
        }
        if let Some(output) = tool.and_then(|tool| self.outputs.get(tool)) {
            self.output(output, structured, notes);
        }
        if let Some(is_error) = result.get(wire_member::IS_ERROR) {
            notes.note(&IS_ERROR_BOOLEAN, is_error.kind() == Kind::Bool, || {
                format!("`isError` is {}", short(is_error.raw()))
            });
        }
        let known = [wire_member::CONTENT, wire_member::STRUCTURED_CONTENT, wire_member::IS_ERROR];
        let more = has_more(result, &known).map(Cow::into_owned);
        let more = more.or_else(|| {
            items.iter().find_map(|item| {
                has_more(*item, &[wire_member::TYPE, wire_member::TEXT]).map(Cow::into_owned)
            })
        });
        notes
            .note(&RESULTS_CLOSED, more.is_none(), || format!("it has {}", short(&more.unwrap_or_default())));
        let texts: Vec<Cow<'_, str>> =
            items.iter().filter_map(|item| item.get(wire_member::TEXT)?.as_str()).collect();
        if !texts.is_empty() {
            let control = texts.iter().find_map(|text| odd_control(text));
            notes.note(&TEXTS_PLAIN, control.is_none(), || {
                format!("a text has the control character U+{:04X}", control.map_or(0, u32::from))
            });
        }
        let too_much = self.too_much(result, &texts, items.len());
        notes.note(&RESULTS_BOUNDED, too_much.is_none(), || too_much.unwrap_or_default());
    }

    fn too_much(&self, result: Node<'_>, texts: &[Cow<'_, str>], items: usize) -> Option<String> {
        let bounds = &self.bounds;
        if items as u64 > bounds.content_items {
            return Some(format!("it has {items} items"));
        }
        if let Some(text) = texts.iter().find(|text| text.len() as u64 > bounds.text_bytes) {
            return Some(format!("a text has {} bytes", text.len()));
        }
        let bytes = result.weight(bounds.result_bytes).bytes;
        (bytes > bounds.result_bytes).then(|| format!("it has more than {} bytes", bounds.result_bytes))
    }

    fn output(&self, schema: &str, structured: Option<Node<'_>>, notes: &mut Notes<'_>) {
        let Ok(schema) = Tape::scan(schema.as_bytes()) else { return };
        let Some(structured) = structured else {
            return notes.broken(&OUTPUT_MATCHES, || "there is no structured content".to_owned());
        };
        let Err(refusal) = matches(schema.root(), structured, Payload::StructuredContent, &self.bounds)
        else {
            notes.kept(&INTEGERS_WRITTEN);
            return notes.kept(&OUTPUT_MATCHES);
        };
        let says = || format!("structuredContent{}: {}", refusal.pointer, refusal.says);
        if refusal.basis == contract::Basis::Observed {
            return notes.broken(&RESULTS_BOUNDED, says);
        }
        // That `1.0` is no integer is only how the reference implementation reads.
        let whole = with_whole_numbers(structured);
        let same = whole.and_then(|text| {
            let tape = Tape::scan(text.as_bytes()).ok()?;
            matches(schema.root(), tape.root(), Payload::StructuredContent, &self.bounds).ok()
        });
        match same {
            Some(()) => {
                notes.kept(&OUTPUT_MATCHES);
                notes.broken(&INTEGERS_WRITTEN, says);
            }
            None => notes.broken(&OUTPUT_MATCHES, says),
        }
    }
}

impl<'c> Observer<'c> for Session<'c> {
    fn observe(&mut self, moment: &Moment<'_, 'c>, notes: &mut Notes<'_>) {
        match &moment.what {
            Happened::Frame(frame) => match frame.from {
                Side::Host => self.host_frame(frame, notes),
                Side::Guest => self.guest_frame(frame, notes),
            },
            Happened::Line { from: Side::Guest, fault: Some(fault), .. } => {
                notes.broken(&ONLY_FRAMES, || format!("a line that is no JSON ({fault})"));
            }
            _ => {}
        }
    }
}

/// A member that is not among these.
fn has_more<'a>(object: Node<'a>, known: &[&str]) -> Option<Cow<'a, str>> {
    object.members().map(|(name, _)| name).find(|name| !known.contains(&&**name))
}

/// Why this is no tool.
fn not_a_tool(tool: Node<'_>) -> Option<String> {
    if tool.kind() != Kind::Object {
        return Some(format!("a tool is of the kind {}", tool.kind()));
    }
    if let Some(more) = has_more(tool, &member::OF_A_TOOL) {
        return Some(format!("a tool has {}", short(&more)));
    }
    let is_text = |name: &str| tool.get(name).is_some_and(|it| it.kind() == Kind::String);
    let may_be_text = |name: &str| tool.get(name).is_none_or(|it| it.is_null() || it.kind() == Kind::String);
    if !is_text(member::NAME) || !may_be_text(member::TITLE) || !may_be_text(member::DESCRIPTION) {
        return Some("a name, title or description is no string".to_owned());
    }
    tool.get(member::INPUT_SCHEMA).is_none().then(|| format!("a tool has no `{}`", member::INPUT_SCHEMA))
}

fn in_words(tool: &str, field: Field, refusal: &Refusal) -> String {
    format!("{} of {}, {}: {}", field.name(), short(tool), refusal.pointer, refusal.says)
}
