//! The smallest conforming host: what it opens and closes a connection with, and what it answers.
//!
//! A play stands on it. It serves content, takes every surface and dismisses every prompt.

use std::collections::BTreeSet;

use super::content::{self, Store};
use super::contract::{self, Limits, reason};
use crate::contract::{Contract, MethodKind, Side};
use crate::json::{Node, Tape, quoted};
use crate::play::Peer;
use crate::rpc::{self, Envelope, Id, Outcome};
use crate::script::{Outgoing, Pattern, Script, Setting, Step, Within};

/// The label of the request that opens a connection.
pub const INITIALIZE: &str = "initialize";
/// The label of the request that closes one.
pub const SHUTDOWN: &str = "shutdown";
/// How long the guest has for its answer to that, in milliseconds: what the request itself says.
pub const SHUTDOWN_MILLIS: u64 = 1_000;

/// How long a guest has for an intercept unless a script says otherwise, in milliseconds. A host gives it more as a
/// rule; every second of it is one that a guest which hangs costs its author.
pub const INTERCEPT_MILLIS: u64 = 3_000;
/// The guest's name where its manifest does not say one.
pub const GUEST_NAME: &str = "sidecert-guest";

/// The generation of the runtime that every session of ours belongs to.
const GENERATION: u64 = 1;

/// The slots that every contract of this family has.
const SLOTS: [&str; 8] = [
    "system_prompt",
    "context",
    "provider_request",
    "provider_response",
    "compaction",
    "session_policy",
    "permission",
    "frontend_events",
];
const CAPABILITIES: [&str; 4] = ["interceptors", "strategies", "providers", "ui"];

/// The handshake.
pub fn opening(setting: &Setting<'_>) -> Script {
    let answered = Pattern::Members(vec![
        ("id".to_owned(), Pattern::Id(INITIALIZE.to_owned())),
        ("result".to_owned(), Pattern::Any),
    ]);
    Script::new("handshake")
        .request(INITIALIZE, contract::INITIALIZE, &initialize_params(setting))
        .step(Step::Await { frame: answered, within: Within::Start })
        .notify("initialized", contract::INITIALIZED, "{}")
}

/// The orderly end.
pub fn closing(_: &Setting<'_>) -> Script {
    Script::new("shutdown")
        .request(SHUTDOWN, contract::SHUTDOWN, &format!(r#"{{"timeoutMillis":{SHUTDOWN_MILLIS}}}"#))
        .step(Step::Await { frame: Pattern::answer_to(SHUTDOWN), within: Within::Millis(SHUTDOWN_MILLIS) })
        .step(Step::Close)
        .step(Step::Exit)
}

/// The session id of every session of a run with this seed.
pub fn session_id(seed: u64) -> String {
    format!("sidecert-{seed:016x}")
}

/// What a result of `initialize` declares: capabilities by name, and behind a slash what it offers of one.
pub fn declared(result: Node<'_>) -> BTreeSet<String> {
    let members = [
        ("subscriptions", "interceptors"),
        ("replaces", "strategies"),
        ("providers", "providers"),
        ("uiActions", "ui"),
        ("provides", "provides"),
        ("tools", "tools"),
    ];
    let declares = |member: &str| result.get(member).is_some_and(|list| list.elements().next().is_some());
    let capabilities = members.into_iter().filter(|(member, _)| declares(member));
    let mut declared: BTreeSet<String> = capabilities.map(|(_, name)| name.to_owned()).collect();
    for (member, capability, name) in [("providers", "providers", "ref"), ("uiActions", "ui", "actionId")] {
        let entries = result.get(member).into_iter().flat_map(Node::elements);
        let names = entries.filter_map(|entry| entry.get(name)?.as_str().map(|text| text.into_owned()));
        declared.extend(names.map(|name| format!("{capability}/{name}")));
    }
    let points = result.get("subscriptions").into_iter().flat_map(Node::elements);
    declared.extend(points.filter_map(|point| Some(format!("interceptors/{}", point.as_str()?))));
    declared
}

/// The first thing that the guest offers of a capability, by the name that it has there.
pub fn offered<'s>(setting: &Setting<'s>, capability: &str) -> Option<&'s str> {
    setting.declared.iter().find_map(|name| name.strip_prefix(capability)?.strip_prefix('/'))
}

/// The variables that say who the guest is: what its manifest says, or else names of ours.
pub fn environment(setting: &Setting<'_>) -> Vec<(&'static str, String)> {
    let manifest = setting.manifest.and_then(|text| Tape::scan(text.as_bytes()).ok());
    let text = |name: &str, otherwise: &str| {
        let found = manifest.as_ref().and_then(|tape| tape.root().get(name)).and_then(|it| it.as_str());
        found.map_or_else(|| otherwise.to_owned(), |found| found.into_owned())
    };
    vec![
        (contract::variable::ROOT, setting.workspace.to_owned()),
        (contract::variable::NAME, text("name", GUEST_NAME)),
        (contract::variable::VERSION, text("version", "0.0.0")),
    ]
}

/// The params of the first request.
pub fn initialize_params(setting: &Setting<'_>) -> String {
    let Setting { contract, seed, .. } = setting;
    let version = contract.major.to_string();
    let session = format!(
        r#"{{"sessionId":{},"workspaceRoot":{},"generation":{GENERATION}}}"#,
        quoted(&session_id(*seed)),
        quoted(setting.workspace)
    );
    format!(
        r#"{{"protocolId":{},"protocolVersion":"{version}","manifest":{},"session":{session},"capabilities":{{"contentRefs":true,"uiHost":"headless","protocolVersion":"{version}"}}}}"#,
        quoted(&contract.id),
        expectation(setting)
    )
}

/// The params of the first request with another manifest: one JSON text.
pub fn initialize_params_with(setting: &Setting<'_>, manifest: &str) -> String {
    initialize_params(setting).replacen(&expectation(setting), manifest, 1)
}

/// What the host will accept, as one JSON text: what the manifest says, or, without one, everything.
pub fn expectation(setting: &Setting<'_>) -> String {
    let manifest = setting.manifest.and_then(|text| Tape::scan(text.as_bytes()).ok());
    let root = manifest.as_ref().map(Tape::root);
    let runtime = root.and_then(|root| root.get("runtime"));
    let list = |name: &str, otherwise: Vec<String>| match (setting.manifest, runtime) {
        (None, _) => format!("[{}]", otherwise.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(",")),
        (Some(_), runtime) => runtime
            .and_then(|runtime| runtime.get(name))
            .map_or_else(|| "[]".to_owned(), |list| list.raw().to_owned()),
    };
    let slots = SLOTS
        .iter()
        .map(|slot| (*slot).to_owned())
        .chain(["tool:sample".to_owned(), "provider:sample/model".to_owned()]);
    let mut text = format!(
        r#"{{"intercepts":{},"replaces":{},"capabilities":{}"#,
        list("intercepts", setting.contract.events.clone()),
        list("replaces", slots.collect()),
        list("capabilities", CAPABILITIES.map(str::to_owned).to_vec())
    );
    if setting.contract.has(contract::since_v2::MANIFEST_EXPECTATION_PROVIDES) {
        let provides = match (setting.manifest, root.and_then(|root| root.get("provides"))) {
            (None, _) => Some(r#"[{"kind":"tool","namespace":"sidecert","id":"sample"}]"#),
            (Some(_), provides) => provides.map(Node::raw),
        };
        if let Some(provides) = provides {
            text.push_str(&format!(r#","provides":{provides}"#));
        }
    }
    text.push('}');
    text
}

/// The smallest conforming host.
#[derive(Debug)]
pub struct Host<'c> {
    contract: &'c Contract,
    declared: BTreeSet<String>,
    opened: bool,
    store: Store,
}

impl<'c> Host<'c> {
    /// A host in this setting, whose store holds the sample content.
    pub fn new(setting: &Setting<'c>) -> Self {
        let mut store = Store::default();
        store.keep(content::sample(setting.contract, setting.seed));
        Self { contract: setting.contract, declared: BTreeSet::new(), opened: false, store }
    }

    fn serve(&self, method: &str, params: Option<Node<'_>>) -> Result<String, String> {
        let known = self.contract.method(method);
        if known.is_none_or(|known| known.from != Side::Guest || known.kind != MethodKind::Request) {
            return Err(error(self.contract, reason::UNKNOWN_METHOD));
        }
        let fits = self
            .contract
            .params_validator(method)
            .zip(params)
            .is_some_and(|(it, params)| it.check(params).is_none());
        let Some(params) = params.filter(|_| fits) else {
            return Err(error(self.contract, reason::INVALID_PARAMS));
        };
        match method {
            contract::CONTENT_READ => {
                self.page(params).ok_or_else(|| error(self.contract, reason::CONTENT_REF_EXPIRED))
            }
            contract::UI_PUBLISH => Ok(r#"{"accepted":true}"#.to_owned()),
            contract::UI_REQUEST => Ok(r#"{"cancelled":true}"#.to_owned()),
            // A fork's own: it has the method, and this host has nothing behind it.
            _ => Err(error(self.contract, reason::UNKNOWN_METHOD)),
        }
    }

    fn page(&self, params: Node<'_>) -> Option<String> {
        let reference = params.get("contentRef")?.as_str()?;
        let offset = usize::try_from(params.get("offset")?.as_u64()?).ok()?;
        self.store.object(&reference)?.page(offset, Limits::of(self.contract).content_ref_chunk_bytes)
    }
}

impl Peer for Host<'_> {
    fn fence(&mut self, id: i64) -> Vec<u8> {
        // To cancel a stream that never was does nothing and is always answered.
        crate::script::request(&id.to_string(), contract::STREAM_CANCEL, r#"{"streamId":"sidecert-fence"}"#)
            .into_bytes()
    }

    fn meet(&mut self, frame: &Envelope<'_>, claimed: bool, out: &mut Vec<Vec<u8>>) {
        match frame {
            // The first answer of a connection is the one to its first request.
            Envelope::Response { outcome: Outcome::Result(result), .. } if !self.opened => {
                self.opened = true;
                self.declared = declared(*result);
            }
            Envelope::Request { id, method, params } if !claimed => {
                let id = written(id);
                out.push(
                    match self.serve(method, *params) {
                        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
                        Err(error) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
                    }
                    .into_bytes(),
                );
            }
            _ => {}
        }
    }

    fn declared(&self) -> &BTreeSet<String> {
        &self.declared
    }
}

/// An id as it must be written to answer it.
pub(super) fn written(id: &Id<'_>) -> String {
    match id {
        Id::Text(text) => quoted(text),
        other => other.to_string(),
    }
}

/// The error object for a reason of the contract, as one JSON text.
pub(super) fn error(contract: &Contract, name: &str) -> String {
    let reason = contract.reason(name);
    let code = reason.map_or(rpc::INTERNAL_ERROR, |reason| reason.code);
    let retryable = reason.is_some_and(|reason| reason.retryable);
    format!(r#"{{"code":{code},"message":"{name}","data":{{"reason":"{name}","retryable":{retryable}}}}}"#)
}

/// A conforming request padded to `bytes` without its LF, under this id: one that does nothing and is always answered.
pub fn padded_request(id: i64, bytes: usize) -> Outgoing {
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{{"streamId":"sidecert-fence"}},"padding":""#,
        contract::STREAM_CANCEL
    );
    let tail = "\"}";
    let count = bytes.saturating_sub(head.len() + tail.len()) as u64;
    Outgoing::Payload(crate::transcript::Payload::Fill {
        head: head.into(),
        byte: b'x',
        count,
        tail: tail.into(),
    })
}
