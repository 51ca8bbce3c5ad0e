//! The smallest conforming guest: it declares what it is offered, continues every intercept and ends when it is told.
//!
//! ```text
//!  started --initialize--> answered --initialized--> open --shutdown--> closing --end of input--> exit 0
//! ```
//!
//! Mocks stand on it. Lines in, lines out, no clock.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::contract::{self, Limits, reason};
use super::host::{error, written};
use crate::contract::{Contract, MethodKind, Side};
use crate::digest;
use crate::json::{Node, Tape, quoted};
use crate::rpc::{self, Envelope, Id, Outcome};

/// What a mock can do beyond the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// The name in its own provider references: what the host calls it.
    pub name: String,
    /// Declares a provider, where the host allows providers.
    pub providers: bool,
    /// Does without what the schema requires, as the SDK of the reference implementation does.
    pub lenient: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { name: super::host::GUEST_NAME.to_owned(), providers: true, lenient: false }
    }
}

/// A line that the guest writes, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The method that it asks for, tells, or answers; empty for a refusal of something that is no request.
    pub method: String,
    /// Whether it is an answer.
    pub answer: bool,
    /// The line, without its LF.
    pub line: Vec<u8>,
}

/// The smallest conforming guest.
#[derive(Debug)]
pub struct Guest<'c> {
    contract: &'c Contract,
    features: Features,
    phase: Phase,
    next_id: i64,
    reads: BTreeMap<i64, Read>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Started,
    Answered,
    Open,
    Closing,
}

/// A content that is being read, page by page, for an intercept that waits for it.
#[derive(Debug)]
struct Read {
    intercept: String,
    reference: String,
    total: usize,
    sha256: String,
    bytes: Vec<u8>,
}

impl<'c> Guest<'c> {
    /// A guest that has not been spoken to.
    pub fn new(contract: &'c Contract, features: Features) -> Self {
        Self { contract, features, phase: Phase::Started, next_id: 1, reads: BTreeMap::new() }
    }

    /// Whether it was told to end.
    pub fn is_closing(&self) -> bool {
        self.phase == Phase::Closing
    }

    /// Takes in a line, and appends what it says to that.
    pub fn hear(&mut self, line: &[u8], out: &mut Vec<Said>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(tape) = Tape::scan(line) else { return out.push(refusal(rpc::PARSE_ERROR, &Id::Null)) };
        let root = tape.root();
        match rpc::classify(root) {
            Ok(Envelope::Request { method, params, .. }) => match root.get("id") {
                // The id is echoed as it was written: `-0` and thirty digits come back unchanged.
                Some(id) if id.is_null() || id.is_written_as_integer() => {
                    self.asked(id.raw(), &method, params, out);
                }
                _ => out.push(refusal(rpc::INVALID_REQUEST, &Id::Null)),
            },
            Ok(Envelope::Notification { method, .. }) => self.told(&method),
            Ok(Envelope::Response { id: Id::Integer(id), outcome }) => self.answered(id, outcome, out),
            Ok(Envelope::Response { .. }) => {}
            Err(_)
                if root.get("method").is_some()
                    && root.get("id").is_none()
                    && root.get("jsonrpc").is_some() => {}
            Err(_) => {
                let id = rpc::id_of(root).filter(|id| matches!(id, Id::Integer(_))).unwrap_or(Id::Null);
                out.push(refusal(rpc::INVALID_REQUEST, &id));
            }
        }
    }

    fn told(&mut self, method: &str) {
        if method == contract::INITIALIZED && self.phase == Phase::Answered {
            self.phase = Phase::Open;
        }
    }

    fn asked(&mut self, id: &str, method: &str, params: Option<Node<'_>>, out: &mut Vec<Said>) {
        let answer = match params {
            Some(params) if params.kind() != crate::json::Kind::Object => Err(plain(rpc::INVALID_REQUEST)),
            _ => match self.served(method) {
                Err(error) => Err(error),
                Ok(()) if !self.fits(method, params) => Err(self.error(reason::INVALID_PARAMS)),
                Ok(()) => match self.serve(id, method, params, out) {
                    Some(answer) => answer,
                    None => return,
                },
            },
        };
        out.push(answered(method, id, &answer));
    }

    /// Whether the method is served now.
    fn served(&self, method: &str) -> Result<(), String> {
        let known = self.contract.method(method);
        if known.is_none_or(|known| known.from != Side::Host || known.kind != MethodKind::Request) {
            return Err(self.error(reason::UNKNOWN_METHOD));
        }
        let early = match self.phase {
            Phase::Started => method != contract::INITIALIZE && method != contract::SHUTDOWN,
            Phase::Answered => method != contract::SHUTDOWN,
            Phase::Open => method == contract::INITIALIZE,
            Phase::Closing => true,
        };
        if early { Err(self.error(reason::PROTOCOL_ERROR)) } else { Ok(()) }
    }

    fn fits(&self, method: &str, params: Option<Node<'_>>) -> bool {
        let Some(validator) = self.contract.params_validator(method) else { return true };
        match params {
            Some(params) => {
                validator.check(params).is_none()
                    || (self.features.lenient
                        && params.get("event").is_some()
                        && params.get("timeoutMillis").is_none())
            }
            None => Tape::scan(b"{}").is_ok_and(|empty| validator.check(empty.root()).is_none()),
        }
    }

    /// The answer, or `None` when it comes later.
    fn serve(
        &mut self,
        id: &str,
        method: &str,
        params: Option<Node<'_>>,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        Some(Ok(match method {
            contract::INITIALIZE => return Some(self.initialize(params)),
            contract::INTERCEPT => return self.intercept(id, params, out),
            contract::SHUTDOWN => {
                self.phase = Phase::Closing;
                r#"{"accepted":true}"#.to_owned()
            }
            contract::PROVIDER_CATALOG => format!(r#"{{"providers":[{}]}}"#, self.provider()),
            contract::STREAM_CANCEL => r#"{"cancelled":false}"#.to_owned(),
            contract::STREAM_OPEN => return Some(Err(self.error(reason::PROVIDER_FAILED))),
            contract::UI_ACTION | contract::UI_SUBMIT => r#"{"accepted":false}"#.to_owned(),
            _ => return Some(Err(self.error(reason::UNKNOWN_METHOD))),
        }))
    }

    fn initialize(&mut self, params: Option<Node<'_>>) -> Result<String, String> {
        let text = |name: &str| params.and_then(|params| params.get(name)).and_then(|it| it.as_str());
        if text("protocolId").as_deref() != Some(&self.contract.id)
            || text("protocolVersion").and_then(|version| version.parse().ok()) != Some(self.contract.major)
        {
            return Err(self.error(reason::UNSUPPORTED_VERSION));
        }
        self.phase = Phase::Answered;
        let manifest = params.and_then(|params| params.get("manifest"));
        let list = |name: &str| manifest.and_then(|manifest| manifest.get(name)).map_or("[]", Node::raw);
        let allows = |capability: &str| {
            let capabilities = manifest.and_then(|manifest| manifest.get("capabilities"));
            capabilities
                .is_some_and(|all| all.elements().any(|it| it.as_str().as_deref() == Some(capability)))
        };
        let mut result = format!(
            r#"{{"protocolVersion":"{}","name":"{}","version":"0.1.0","stateSchemaVersion":1,"subscriptions":{},"replaces":[]"#,
            self.contract.major,
            self.features.name,
            list("intercepts")
        );
        if self.features.providers && allows("providers") {
            result.push_str(&format!(r#","providers":[{}]"#, self.provider()));
        }
        if self.contract.has(contract::since_v2::INITIALIZE_RESULT_PROVIDES) {
            result.push_str(&format!(r#","provides":{}"#, list("provides")));
        }
        result.push('}');
        Ok(result)
    }

    fn provider(&self) -> String {
        if !self.features.providers {
            return String::new();
        }
        format!(
            r#"{{"ref":"plugin/{}/sample/echo","model":"echo","inputPerMillion":0.5}}"#,
            self.features.name
        )
    }

    fn intercept(
        &mut self,
        id: &str,
        params: Option<Node<'_>>,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        let mut descriptors =
            params.and_then(|params| params.get("externalized")).into_iter().flat_map(Node::elements);
        let Some(descriptor) = descriptors.next() else { return Some(Ok(CONTINUE.to_owned())) };
        let payload = params.and_then(|params| params.get("payload"));
        let text =
            |name: &str| descriptor.get(name).and_then(|it| it.as_str()).unwrap_or_default().into_owned();
        let total =
            descriptor.get("totalBytes").and_then(|it| it.as_u64()).and_then(|it| usize::try_from(it).ok());
        let total = total.unwrap_or(usize::MAX);
        if descriptors.next().is_some()
            || text("jsonPointer") != "/payload"
            || payload.is_some_and(|it| !it.is_null())
        {
            return Some(Err(self.error(reason::PROTOCOL_ERROR)));
        }
        if total > Limits::of(self.contract).content_ref_object_bytes {
            return Some(Err(self.error(reason::FRAME_TOO_LARGE)));
        }
        let (reference, sha256) = (text("contentRef"), text("sha256"));
        self.read(Read { intercept: id.to_owned(), reference, total, sha256, bytes: Vec::new() }, out);
        None
    }

    /// Asks for the next page.
    fn read(&mut self, read: Read, out: &mut Vec<Said>) {
        let id = self.next_id;
        self.next_id += 1;
        let reference = quoted(&read.reference);
        let params = format!(r#"{{"contentRef":{reference},"offset":{}}}"#, read.bytes.len());
        let line = crate::script::request(&id.to_string(), contract::CONTENT_READ, &params).into_bytes();
        self.reads.insert(id, read);
        out.push(Said { method: contract::CONTENT_READ.to_owned(), answer: false, line });
    }

    fn answered(&mut self, id: i64, outcome: Outcome<'_>, out: &mut Vec<Said>) {
        let Some(mut read) = self.reads.remove(&id) else { return };
        let intercept = read.intercept.clone();
        let ruling = match outcome {
            Outcome::Error { body, .. } => Err(body.raw().to_owned()),
            Outcome::Result(page) => match self.page(&mut read, page) {
                Some(true) => Ok(CONTINUE.to_owned()),
                Some(false) => return self.read(read, out),
                None => Err(self.error(reason::PROTOCOL_ERROR)),
            },
        };
        out.push(answered(contract::INTERCEPT, &intercept, &ruling));
    }

    /// Takes in a page: whether it is the last one, or `None` when it is not what was asked for.
    fn page(&self, read: &mut Read, page: Node<'_>) -> Option<bool> {
        let number =
            |name: &str| page.get(name).and_then(|it| it.as_u64()).and_then(|it| usize::try_from(it).ok());
        let text = |name: &str| page.get(name).and_then(|it| it.as_str()).unwrap_or_default();
        let data = BASE64.decode(text("dataBase64").as_bytes()).ok()?;
        let asked = number("offset")? == read.bytes.len() && text("contentRef") == read.reference;
        let same = number("totalBytes")? == read.total
            && text("sha256") == read.sha256
            && text("encoding") == "utf8";
        let fits = data.len() <= Limits::of(self.contract).content_ref_chunk_bytes;
        if !asked || !same || !fits || read.bytes.len() + data.len() > read.total {
            return None;
        }
        read.bytes.extend_from_slice(&data);
        match number("nextOffset") {
            Some(next) if next == read.bytes.len() && !data.is_empty() => Some(false),
            Some(_) => None,
            None => {
                let whole = read.bytes.len() == read.total && digest::sha256(&read.bytes) == read.sha256;
                whole.then_some(true)
            }
        }
    }

    fn error(&self, name: &str) -> String {
        error(self.contract, name)
    }
}

const CONTINUE: &str = r#"{"decision":"continue"}"#;

fn answered(method: &str, id: &str, answer: &Result<String, String>) -> Said {
    let line = match answer {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(error) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
    };
    Said { method: method.to_owned(), answer: true, line: line.into_bytes() }
}

fn refusal(code: i64, id: &Id<'_>) -> Said {
    answered("", &written(id), &Err(plain(code)))
}

/// An error object without data: what the frame layer says.
fn plain(code: i64) -> String {
    let message = if code == rpc::PARSE_ERROR { "parse error" } else { "invalid request" };
    format!(r#"{{"code":{code},"message":"{message}"}}"#)
}
