//! A small conforming guest: it declares what it is offered, continues every intercept, streams, shows, honours the
//! provocations, and ends when it is told.
//!
//! ```text
//!  started --initialize--> answered --initialized--> open --shutdown--> closing --end of input--> exit 0
//!     answered, started --a version that it does not speak--> over (exit 1)
//! ```
//!
//! Mocks stand on it. Lines in, lines out, no clock: it is told the time.

mod provoked;
mod streams;

use std::collections::{BTreeMap, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::contract::{self, Limits, reason};
use super::host::{error, written};
use crate::contract::{Contract, MethodKind, Side};
use crate::digest;
use crate::json::{Node, Tape, quoted};
use crate::machine::Micros;
use crate::rpc::{self, Envelope, Id, Outcome};
use streams::Streams;

/// How deep a frame may nest.
const DEPTH_MAX: u32 = 10_000;
/// How many requests are served at once.
const SERVED_MOST: usize = 32;
/// What is said to one more.
const BUSY: i64 = -32_099;
/// The one point that it does not step in at.
const UNWATCHED: &str = contract::point::FRONTEND_EVENT;
/// The action that it declares.
const ACTION: &str = "demo";

/// What a mock can do beyond the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// The name in its own provider references: what the host calls it.
    pub name: String,
    /// Declares a provider, where the host allows providers.
    pub providers: bool,
    /// Takes what the SDK of the reference implementation takes, and numbers its chunks as that does.
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

/// A small conforming guest.
#[derive(Debug)]
pub struct Guest<'c> {
    contract: &'c Contract,
    features: Features,
    phase: Phase,
    next_id: i64,
    /// What waits for answers of the host, by the ids of its requests.
    waiting: BTreeMap<i64, Waiting>,
    streams: Streams,
    /// The session that it belongs to: id and generation, as JSON texts.
    session: (String, String),
    has_provider: bool,
    has_ui: bool,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was said.
    Started,
    /// `initialize` was answered.
    Answered,
    /// The host said `initialized`.
    Open,
    /// The guest was told to end.
    Closing,
    /// The guest refused the connection.
    Over,
}

/// An intercept that is ruled on later.
#[derive(Debug)]
struct Waiting {
    /// Its id, as it was written.
    intercept: String,
    /// When it is given up.
    deadline: Option<Micros>,
    what: What,
}

/// What an intercept waits for.
#[derive(Debug)]
enum What {
    /// The rest of its payload.
    Read(Read),
    /// The answer to a surface or a question; then these are shown, and then it goes on.
    Shown(VecDeque<(&'static str, String)>),
    /// Nothing: it takes too long.
    Time,
}

/// A content that is being read, page by page.
#[derive(Debug)]
struct Read {
    reference: String,
    total: usize,
    sha256: String,
    bytes: Vec<u8>,
}

impl<'c> Guest<'c> {
    /// A guest that has not been spoken to.
    pub fn new(contract: &'c Contract, features: Features) -> Self {
        Self {
            contract,
            features,
            phase: Phase::Started,
            next_id: 1,
            waiting: BTreeMap::new(),
            streams: Streams::default(),
            session: (String::new(), String::new()),
            has_provider: false,
            has_ui: false,
        }
    }

    /// How far the connection has come.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When it wants to say something that nobody asks for.
    pub fn deadline(&self) -> Option<Micros> {
        let given_up = self.waiting.values().filter_map(|waiting| waiting.deadline);
        given_up.chain(self.streams.deadline()).min()
    }

    /// Says what is due: the next chunk of each long stream, and that an intercept took too long.
    pub fn tick(&mut self, now: Micros, out: &mut Vec<Said>) {
        self.streams.tick(now, out);
        let due: Vec<i64> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.deadline.is_some_and(|deadline| deadline <= now))
            .map(|(id, _)| *id)
            .collect();
        for waiting in due.into_iter().filter_map(|id| self.waiting.remove(&id)).collect::<Vec<_>>() {
            let late = Err(self.error(reason::INTERCEPT_TIMEOUT));
            out.push(answered(contract::INTERCEPT, &waiting.intercept, &late));
        }
    }

    /// Takes in a line, and appends what it says to that.
    pub fn hear(&mut self, line: &[u8], now: Micros, out: &mut Vec<Said>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        // Bytes that are no UTF-8 become U+FFFD, as in the reference implementation.
        let text = String::from_utf8_lossy(line);
        let tape = Tape::scan(text.as_bytes()).ok().filter(|tape| tape.depth() <= DEPTH_MAX);
        let Some(tape) = tape else { return out.push(refusal(rpc::PARSE_ERROR, &Id::Null)) };
        let root = tape.root();
        match rpc::classify(root) {
            Ok(Envelope::Request { method, params, .. }) => match root.get("id") {
                // The id is echoed as it was written: `-0` and thirty digits come back unchanged.
                Some(id) if id.is_null() || id.is_written_as_integer() => {
                    self.asked(id.raw(), &method, params, now, out);
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

    fn asked(&mut self, id: &str, method: &str, params: Option<Node<'_>>, now: Micros, out: &mut Vec<Said>) {
        let answer = match params {
            Some(params) if params.kind() != crate::json::Kind::Object => Err(plain(rpc::INVALID_REQUEST)),
            _ => match self.served(method) {
                Err(error) => Err(error),
                Ok(()) if method == contract::INITIALIZE => self.initialize(params),
                Ok(()) if !self.fits(method, params) => Err(self.error(reason::INVALID_PARAMS)),
                Ok(()) => match self.serve(id, method, params, now, out) {
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
            Phase::Closing | Phase::Over => true,
        };
        if early { Err(self.error(reason::PROTOCOL_ERROR)) } else { Ok(()) }
    }

    fn fits(&self, method: &str, params: Option<Node<'_>>) -> bool {
        let Some(validator) = self.contract.params_validator(method) else { return true };
        let empty = Tape::scan(b"{}").ok();
        let Some(params) = params.or_else(|| empty.as_ref().map(Tape::root)) else { return true };
        match validator.check(params) {
            None => !has_blank(method, params),
            // The SDK knows unknown members, and what it needs itself; a member that is missing is empty to it.
            Some(violation) if self.features.lenient => {
                let needed = ["event", "payload", "streamId", "providerRef", "actionId", "surfaceId"];
                !violation.says.contains("is not part of")
                    && !needed.iter().any(|name| {
                        violation.says.contains(&format!("\"{name}\"")) || violation.pointer.ends_with(name)
                    })
                    && !["/seq", "/seqBase", "/timeoutMillis", "/values"]
                        .contains(&violation.pointer.as_str())
                    && !violation.pointer.starts_with("/request")
                    && !violation.pointer.starts_with("/args")
            }
            Some(_) => false,
        }
    }

    /// The answer, or `None` when it comes later.
    fn serve(
        &mut self,
        id: &str,
        method: &str,
        params: Option<Node<'_>>,
        now: Micros,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        Some(Ok(match method {
            contract::INTERCEPT => return self.intercept(id, params, now, out),
            contract::SHUTDOWN => {
                self.phase = Phase::Closing;
                self.streams = Streams::default();
                r#"{"accepted":true}"#.to_owned()
            }
            contract::PROVIDER_CATALOG if self.has_provider => {
                format!(r#"{{"providers":[{}]}}"#, self.provider())
            }
            contract::STREAM_OPEN => return self.open(id, params, now, out),
            contract::STREAM_CANCEL => return self.cancel(id, params, out),
            contract::UI_ACTION if self.has_ui => {
                let action = params.and_then(|params| params.get("actionId")).and_then(|it| it.as_str());
                format!(r#"{{"accepted":{}}}"#, action.as_deref() == Some(ACTION))
            }
            contract::UI_SUBMIT if self.has_ui => {
                let surface = params.and_then(|params| params.get("surfaceId")).and_then(|it| it.as_str());
                format!(r#"{{"accepted":{}}}"#, surface.is_some_and(|it| it.starts_with("sidecert-form")))
            }
            _ => return Some(Err(self.error(reason::UNKNOWN_METHOD))),
        }))
    }

    fn initialize(&mut self, params: Option<Node<'_>>) -> Result<String, String> {
        let text = |name: &str| params.and_then(|params| params.get(name)).and_then(|it| it.as_str());
        if let (Some(id), Some(version)) = (text("protocolId"), text("protocolVersion"))
            && !id.is_empty()
            && !version.is_empty()
        {
            let major: Option<u32> = version.parse().ok();
            if id != self.contract.id || major != Some(self.contract.major) {
                self.phase = Phase::Over;
                let plain = version.bytes().all(|byte| byte.is_ascii_digit());
                return Err(self.error(if plain {
                    reason::UNSUPPORTED_VERSION
                } else {
                    reason::PROTOCOL_ERROR
                }));
            }
        }
        if !self.fits(contract::INITIALIZE, params) {
            return Err(self.error(reason::INVALID_PARAMS));
        }
        if params.and_then(|params| params.get("protocolId")).is_none() {
            self.phase = Phase::Over;
            return Err(self.error(reason::UNSUPPORTED_VERSION));
        }
        self.phase = Phase::Answered;
        if let Some(session) = params.and_then(|params| params.get("session")) {
            let raw = |name: &str| session.get(name).map_or_else(String::new, |it| it.raw().to_owned());
            self.session = (raw("sessionId"), raw("generation"));
        }
        Ok(self.declaration(params.and_then(|params| params.get("manifest"))))
    }

    /// What it declares, within what the manifest allows.
    fn declaration(&mut self, manifest: Option<Node<'_>>) -> String {
        let elements =
            |name: &str| manifest.and_then(|it| it.get(name)).into_iter().flat_map(|list| list.elements());
        let allows =
            |capability: &str| elements("capabilities").any(|it| it.as_str().as_deref() == Some(capability));
        let watched: Vec<&str> = elements("intercepts")
            .filter(|point| point.as_str().as_deref() != Some(UNWATCHED))
            .map(Node::raw)
            .collect();
        let mut result = format!(
            r#"{{"protocolVersion":"{}","name":"{}","version":"0.1.0","stateSchemaVersion":1,"subscriptions":[{}],"replaces":[]"#,
            self.contract.major,
            self.features.name,
            watched.join(",")
        );
        self.has_provider = self.features.providers && allows("providers");
        if self.has_provider {
            result.push_str(&format!(r#","providers":[{}]"#, self.provider()));
        }
        self.has_ui = allows("ui");
        if self.has_ui {
            result.push_str(&format!(r#","uiActions":[{{"actionId":"{ACTION}","label":"Demo"}}]"#));
        }
        if self.contract.has(contract::since_v2::INITIALIZE_RESULT_PROVIDES) {
            let provides: Vec<&str> = elements("provides").map(Node::raw).collect();
            result.push_str(&format!(r#","provides":[{}]"#, provides.join(",")));
        }
        result.push('}');
        result
    }

    /// The reference of its provider.
    fn provider_ref(&self) -> String {
        format!("plugin/{}/sample/echo", self.features.name)
    }

    fn provider(&self) -> String {
        format!(r#"{{"ref":"{}","model":"echo","inputPerMillion":0.5}}"#, self.provider_ref())
    }

    fn intercept(
        &mut self,
        id: &str,
        params: Option<Node<'_>>,
        now: Micros,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        let member = |name: &str| params.and_then(|params| params.get(name));
        let millis = member("timeoutMillis").and_then(|it| it.as_u64()).unwrap_or_default();
        // A little before the host gives up, so that it hears why.
        let deadline = (millis > 0).then(|| now + millis.min(MILLIS_MOST) * 800);
        let mut descriptors = member("externalized").into_iter().flat_map(Node::elements);
        let Some(descriptor) = descriptors.next() else {
            let payload = member("payload").map_or("null", Node::raw);
            return self.rule(id, payload, deadline, out);
        };
        let text =
            |name: &str| descriptor.get(name).and_then(|it| it.as_str()).unwrap_or_default().into_owned();
        let total =
            descriptor.get("totalBytes").and_then(|it| it.as_u64()).and_then(|it| usize::try_from(it).ok());
        let total = total.unwrap_or(usize::MAX);
        if descriptors.next().is_some()
            || text("jsonPointer") != "/payload"
            || member("payload").is_some_and(|it| !it.is_null())
        {
            return Some(Err(self.error(reason::PROTOCOL_ERROR)));
        }
        if total > Limits::of(self.contract).content_ref_object_bytes {
            return Some(Err(self.error(reason::FRAME_TOO_LARGE)));
        }
        if self.waiting.len() >= SERVED_MOST {
            return Some(Err(format!(r#"{{"code":{BUSY},"message":"server busy"}}"#)));
        }
        let (reference, sha256) = (text("contentRef"), text("sha256"));
        let read = Read { reference, total, sha256, bytes: Vec::new() };
        self.read(Waiting { intercept: id.to_owned(), deadline, what: What::Time }, read, out);
        None
    }

    /// Asks for the next page.
    fn read(&mut self, waiting: Waiting, read: Read, out: &mut Vec<Said>) {
        let reference = quoted(&read.reference);
        let params = format!(r#"{{"contentRef":{reference},"offset":{}}}"#, read.bytes.len());
        self.ask(contract::CONTENT_READ, &params, Waiting { what: What::Read(read), ..waiting }, out);
    }

    /// Asks the host something that an intercept waits for.
    fn ask(&mut self, method: &str, params: &str, waiting: Waiting, out: &mut Vec<Said>) {
        let id = self.next_id;
        self.next_id += 1;
        let line = crate::script::request(&id.to_string(), method, params).into_bytes();
        self.waiting.insert(id, waiting);
        out.push(Said { method: method.to_owned(), answer: false, line });
    }

    fn answered(&mut self, id: i64, outcome: Outcome<'_>, out: &mut Vec<Said>) {
        let Some(mut waiting) = self.waiting.remove(&id) else { return };
        let (intercept, deadline) = (waiting.intercept.clone(), waiting.deadline);
        let what = std::mem::replace(&mut waiting.what, What::Time);
        let ruling = match (what, outcome) {
            (What::Read(_), Outcome::Error { body, .. }) => Err(self.passed_on(body)),
            (What::Read(mut read), Outcome::Result(page)) => match self.page(&mut read, page) {
                Some(true) => {
                    let payload = String::from_utf8(read.bytes).unwrap_or_default();
                    match self.rule(&intercept, &payload, deadline, out) {
                        Some(ruling) => ruling,
                        None => return,
                    }
                }
                Some(false) => return self.read(waiting, read, out),
                None => Err(self.error(reason::PROTOCOL_ERROR)),
            },
            (What::Shown(mut left), _) => match left.pop_front() {
                Some((method, params)) => {
                    waiting.what = What::Shown(left);
                    return self.ask(method, &params, waiting, out);
                }
                None => Ok(CONTINUE.to_owned()),
            },
            (What::Time, _) => return drop(self.waiting.insert(id, waiting)),
        };
        out.push(answered(contract::INTERCEPT, &intercept, &ruling));
    }

    /// What an error of the host makes of an intercept: its reason counts only as the contract has it.
    fn passed_on(&self, body: Node<'_>) -> String {
        let reason = body.pointer("/data/reason").and_then(|it| it.as_str()).unwrap_or_default();
        let retryable = body.pointer("/data/retryable").and_then(|it| it.as_bool());
        let known = self.contract.reason(&reason).filter(|known| retryable == Some(known.retryable));
        self.error(known.map_or(reason::INTERNAL, |known| &known.name))
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

/// The longest time that an intercept is worth waiting for, in milliseconds.
const MILLIS_MOST: u64 = 3_600_000;

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

/// Whether one of the members that the reference implementation trims before it looks is blank.
fn has_blank(method: &str, params: Node<'_>) -> bool {
    let names: &[&str] = match method {
        contract::STREAM_OPEN => &["streamId", "providerRef"],
        contract::STREAM_CANCEL => &["streamId"],
        contract::UI_ACTION => &["actionId", "sessionId"],
        contract::UI_SUBMIT => &["surfaceId", "sessionId"],
        _ => &[],
    };
    names
        .iter()
        .any(|name| params.get(name).and_then(|it| it.as_str()).is_some_and(|text| text.trim().is_empty()))
}
