//! What comes from a guest: lines, envelopes, and what is said to those that are none.

use std::borrow::Cow;

use sidecert_proto::contract::{MethodKind, Side};
use sidecert_proto::json::{Kind, Node, Tape};
use sidecert_proto::machine::{Input, LinkId};
use sidecert_proto::reasonix::contract::{self, reason};
use sidecert_proto::rpc::{self, Envelope, Id, Malformed};
use sidecert_proto::wire::Line;

use super::connection::{Stage, give_up};
use super::core::{Failure, Shared};
use super::{content, streams, strict, ui};

/// What is said to a request too many.
const BUSY: i64 = -32_099;

/// Takes in what happened to a guest.
pub(super) fn happened(core: &Shared<'_>, link: LinkId, input: &Input<'_>) {
    let now = core.now.get();
    let redacts = &core.manners.redacts;
    match input {
        Input::Bytes(chunk) => read(core, link, chunk),
        Input::Eof => {
            let tail = core.on(link, |it| it.deframer.as_ref().map(|it| it.tail().to_vec()));
            if let Some(tail) =
                tail.flatten().filter(|it| !it.is_empty() && core.manners.frames.takes_unended)
            {
                line(core, link, &tail);
            }
            core.on(link, |it| it.ended = true);
            ended(core, link, "it closed its output");
        }
        Input::Wrote(bytes) => drop(core.on(link, |it| it.wrote(*bytes, now))),
        Input::Broken => ended(core, link, "it closed its input"),
        Input::Stderr(bytes) => {
            core.on(link, |it| it.complained(bytes, redacts.tail_bytes, redacts.keeps_end));
            if core.manners.frames.reads_stderr {
                bytes.split(|byte| *byte == b'\n').for_each(|text| line(core, link, text));
            }
        }
        Input::Exited(_) => {
            core.on(link, |it| (it.exited, it.ended) = (true, true));
            ended(core, link, "it ended");
        }
        Input::NotLaunched(why) => {
            core.on(link, |it| (it.exited, it.ended) = (true, true));
            give_up(core, link, &Failure::new(format!("it could not be started: {why}")));
        }
        Input::Launched(_)
        | Input::Left(_)
        | Input::Signal(_)
        | Input::Pong
        | Input::Interrupted
        | Input::Tick => {}
    }
}

/// Gives up a guest that ended, unless it was asked to.
fn ended(core: &Shared<'_>, link: LinkId, how: &str) {
    let unanswered = core.on(link, |it| it.stage == Stage::Closing && it.waits()) == Some(true);
    if unanswered && core.manners.ends.exit_is_a_crash {
        let name = core.on(link, |it| it.plugin.name.clone()).unwrap_or_default();
        core.tell("warning", &format!("plugin {name} crashed: {how}"), Some(&name));
    }
    if core.on(link, |it| it.stage) != Some(Stage::Closing) {
        give_up(core, link, &Failure::of(reason::PROVIDER_INTERRUPTED, how));
    }
}

fn read(core: &Shared<'_>, link: LinkId, chunk: &[u8]) {
    let Some(mut deframer) = core.on(link, |it| it.deframer.take()).flatten() else { return };
    let mut lines = deframer.push(chunk);
    while let Some(next) = lines.next() {
        match next {
            Line::Whole(text) => line(core, link, text),
            Line::Oversize { .. } if core.manners.frames.oversize_ends => {
                let limit = core.limits.frame_bytes;
                let text = format!("it wrote a line longer than {limit} bytes");
                let named = core.manners.frames.names_oversize;
                let failure =
                    if named { Failure::of(reason::FRAME_TOO_LARGE, text) } else { Failure::new(text) };
                if core.manners.frames.refuses_oversize {
                    let code = rpc::PARSE_ERROR;
                    let error = format!(r#"{{"code":{code},"message":"the line is too long"}}"#);
                    refuse(core, link, "null", &error);
                }
                give_up(core, link, &failure);
            }
            Line::Oversize { .. } => {}
        }
    }
    core.on(link, |it| it.deframer = Some(deframer));
}

fn line(core: &Shared<'_>, link: LinkId, line: &[u8]) {
    let frames = &core.manners.frames;
    let stage = core.on(link, |it| it.stage);
    let blank = line.trim_ascii().is_empty();
    if (blank && !frames.answers_blank) || stage.is_none_or(|stage| stage == Stage::Gone) {
        return;
    }
    let padded = line.trim_ascii().len() != line.len() && !frames.trims;
    let text = String::from_utf8_lossy(line);
    let tape = Tape::scan(text.as_bytes()).ok();
    let tape = tape.filter(|tape| tape.depth() <= frames.depth_max && !padded);
    if stage == Some(Stage::Starting)
        && let Some(why) = too_early(core, link, tape.as_ref().map(Tape::root))
    {
        let text = format!("{why} before the handshake was over");
        return give_up(core, link, &Failure::of(reason::PROTOCOL_ERROR, text));
    }
    match tape {
        Some(tape) => frame(core, link, tape.root()),
        None => malformed(core, link, rpc::PARSE_ERROR, None),
    }
}

/// What of a line ends a connection whose handshake is not over.
fn too_early(core: &Shared<'_>, link: LinkId, root: Option<Node<'_>>) -> Option<String> {
    let starts = &core.manners.starts;
    match root.map(rpc::classify) {
        None | Some(Err(_)) => starts.garbage_poisons.then(|| "a malformed line".to_owned()),
        Some(Ok(Envelope::Response { id, .. })) => {
            let waits = |id| core.on(link, |it| it.waits_for(id)).unwrap_or(false);
            let expected = matches!(id, Id::Integer(id) if waits(id));
            (starts.responses_poison && !expected).then(|| "an answer to nothing".to_owned())
        }
        Some(Ok(Envelope::Request { method, .. } | Envelope::Notification { method, .. })) => {
            let method = core.masked(core.manners.redacts.errors, &method);
            starts.traffic_poisons.then(|| format!("it sent {method}"))
        }
    }
}

fn frame(core: &Shared<'_>, link: LinkId, root: Node<'_>) {
    let frames = &core.manners.frames;
    if root.kind() == Kind::Array && frames.serves_batches {
        return root.elements().for_each(|element| frame(core, link, element));
    }
    match rpc::classify(root) {
        Ok(Envelope::Request { method, params, .. }) => {
            let id = root.get("id").filter(|id| match id.kind() {
                Kind::Null => frames.null_ids,
                Kind::String => frames.string_ids,
                _ => id.is_written_as_integer(),
            });
            match id {
                // The id is echoed as it was written: `-0` and thirty digits come back unchanged.
                Some(id) => asked(core, link, id.raw(), &method, params),
                None => malformed(core, link, rpc::INVALID_REQUEST, None),
            }
        }
        Ok(Envelope::Notification { method, params }) => told(core, link, &method, params),
        Ok(Envelope::Response { id: Id::Integer(id), outcome }) => core.answered(link, id, &outcome),
        Ok(Envelope::Response { id: Id::Text(id), outcome }) if frames.text_ids_match => {
            if let Ok(id) = id.parse() {
                core.answered(link, id, &outcome);
            }
        }
        Ok(Envelope::Response { id: Id::Null, .. }) if frames.null_errors_end => {
            give_up(core, link, &Failure::of(reason::PROTOCOL_ERROR, "it answered under no id"));
        }
        Ok(Envelope::Response { .. }) => {}
        Err(_) if frames.lenient_envelopes && root.get("method").is_some() && root.get("id").is_some() => {
            let id = root.get("id").map_or("null", Node::raw);
            let params = root.get("params").filter(|it| it.kind() == Kind::Object);
            asked(core, link, id, &member(root, "method"), params);
        }
        Err(fault) => {
            let id = rpc::id_of(root).filter(|id| matches!(id, Id::Integer(_)));
            let id = id.and_then(|_| root.get("id")).map(Node::raw);
            let response =
                matches!(fault, Malformed::ResultAndError | Malformed::Error | Malformed::ResponseWithParams);
            let notification = root.get("method").is_some() && root.get("id").is_none();
            let silent = (notification && fault != Malformed::Version && !frames.answers_notifications)
                || (response && id.is_some() && !frames.answers_malformed_responses);
            if !silent {
                malformed(core, link, rpc::INVALID_REQUEST, id);
            }
        }
    }
}

/// Answers a line that is no frame.
fn malformed(core: &Shared<'_>, link: LinkId, code: i64, id: Option<&str>) {
    if core.manners.frames.malformed_ends {
        return give_up(core, link, &Failure::of(reason::PROTOCOL_ERROR, "it wrote a malformed line"));
    }
    let early = core.on(link, |it| it.stage) == Some(Stage::Starting);
    if core.manners.frames.answers_malformed && (!early || core.manners.starts.answers_garbage) {
        let message = if code == rpc::PARSE_ERROR { "parse error" } else { "invalid request" };
        refuse(core, link, id.unwrap_or("null"), &format!(r#"{{"code":{code},"message":"{message}"}}"#));
    }
}

/// Answers a request with this error.
pub(super) fn refuse(core: &Shared<'_>, link: LinkId, id: &str, error: &str) {
    core.write(link, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#), false);
}

/// Answers a request with this result, if it is not too long.
pub(super) fn grant(core: &Shared<'_>, link: LinkId, id: &str, result: &str) {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    if frame.len() >= core.limits.frame_bytes && !core.manners.frames.writes_too_large {
        let code = rpc::INTERNAL_ERROR;
        let error = format!(r#"{{"code":{code},"message":"the answer is longer than a frame may be"}}"#);
        return refuse(core, link, id, &error);
    }
    core.write(link, &frame, false);
}

fn asked(core: &Shared<'_>, link: LinkId, id: &str, method: &str, params: Option<Node<'_>>) {
    let frames = &core.manners.frames;
    let refused = |error: &str| refuse(core, link, id, error);
    let reasoned = |name: &str, message: &str| core.reasoned(name, message);
    if params.is_some_and(|params| params.kind() == Kind::Array) && !frames.array_params_pass {
        return malformed(core, link, rpc::INVALID_REQUEST, Some(id));
    }
    let closing = core.on(link, |it| it.stage) == Some(Stage::Closing);
    if closing && core.manners.ends.refuses_requests {
        return refused(&reasoned(reason::PROTOCOL_ERROR, "the connection is closing"));
    }
    let known = core.contract.method(method);
    let Some(known) = known.filter(|it| it.from == Side::Guest && it.kind == MethodKind::Request) else {
        if frames.serves_unknown {
            return grant(core, link, id, "{}");
        }
        return refused(&reasoned(reason::UNKNOWN_METHOD, "there is no such method"));
    };
    if ui::serving(core, link) >= frames.served_at_once {
        return refused(&format!(r#"{{"code":{BUSY},"message":"server busy"}}"#));
    }
    let empty = Tape::scan(b"{}").ok();
    let Some(params) = params.or_else(|| empty.as_ref().map(Tape::root)) else { return };
    let fault = params_fault(core, &known.name, params).filter(|_| !frames.serves_bad_params);
    if let Some(says) = fault {
        return refused(&reasoned(reason::INVALID_PARAMS, &says));
    }
    match method {
        contract::CONTENT_READ => content::read(core, link, id, params),
        contract::UI_PUBLISH => ui::published(core, link, id, params),
        contract::UI_REQUEST => ui::requested(core, link, id, params),
        // A fork's own: it has the method, and this host has nothing behind it.
        _ => refused(&reasoned(reason::UNKNOWN_METHOD, "nothing is behind this method")),
    }
}

/// What is wrong with the params of a method.
fn params_fault(core: &Shared<'_>, method: &str, params: Node<'_>) -> Option<String> {
    let definition = core.contract.method(method)?.params.as_deref()?;
    let broken = core.contract.definition_validator(definition)?.check(params).map(|it| it.to_string());
    let beyond = || strict::fault(core.contract, definition, params);
    broken.or_else(|| beyond().filter(|_| core.manners.frames.beyond_schema))
}

fn told(core: &Shared<'_>, link: LinkId, method: &str, params: Option<Node<'_>>) {
    let frames = &core.manners.frames;
    if core.on(link, |it| it.stage) != Some(Stage::Ready) {
        return;
    }
    let known = core.contract.method(method).filter(|it| it.from == Side::Guest);
    let kind = known.map(|it| it.kind);
    if kind == Some(MethodKind::Request) && frames.serves_without_id {
        return asked(core, link, "null", method, params);
    }
    let fault = match params {
        Some(params) if params.kind() == Kind::Object => params_fault(core, method, params),
        _ => Some("the params are no object".to_owned()),
    };
    let fault = fault.filter(|_| method != contract::STREAM_CHUNK || core.manners.streams.checks_chunks);
    if frames.answers_notifications && (kind != Some(MethodKind::Notification) || fault.is_some()) {
        return malformed(core, link, rpc::INVALID_REQUEST, None);
    }
    let (None, Some(params)) = (fault, params) else { return };
    match method {
        contract::STREAM_CHUNK => streams::chunk(core, link, params),
        contract::STREAM_END => streams::end(core, link, params),
        _ => {}
    }
}

/// A member that is a text; empty where it is none.
pub(super) fn member<'n>(node: Node<'n>, name: &str) -> Cow<'n, str> {
    node.get(name).and_then(|it| it.as_str()).unwrap_or_default()
}
