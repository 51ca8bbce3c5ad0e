//! A small conforming WebCodex plugin, and the flaws of its mock.

mod flaws;

pub use flaws::FLAWS;

use sidecert_proto::contract::Contract;
use sidecert_proto::json::{Node, Tape, quoted};
use sidecert_proto::rpc::{self, Envelope, Id};
use sidecert_proto::webcodex::contract::{Bounds, INITIALIZE, TOOLS_CALL, TOOLS_LIST};
use sidecert_proto::webcodex::{Payload, matches};

/// What its requirements begin with.
pub const FAMILY: &str = "webcodex";

/// What it is called with where everything is brought up: the params of each call, in one array.
pub const CALLS: &str = r#"[{"name":"add","arguments":{"a":1,"b":2}},{"name":"echo","arguments":{"text":"sidecert"}},{"name":"fail","arguments":{}}]"#;

const ADD: &str = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}"#;
const ECHO: &str = r#"{"type":"object","properties":{"text":{"type":"string","maxLength":4096}},"required":["text"],"additionalProperties":false}"#;
const FAIL: &str = r#"{"type":"object","properties":{}}"#;
const SUM: &str = r#"{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}"#;

/// A plugin that adds, says again what it is told, and fails.
#[derive(Debug)]
pub struct Plugin {
    version: String,
    bounds: Bounds,
}

impl Plugin {
    /// A plugin under `contract`.
    pub fn new(contract: &Contract) -> Self {
        Self { version: contract.id.clone(), bounds: Bounds::of(contract) }
    }

    /// The answer to a line, and to which method it is; to none where the line is no request.
    pub fn answer(&self, line: &[u8]) -> (String, String) {
        let Ok(tape) = Tape::scan(line) else {
            return (String::new(), refusal("null", rpc::PARSE_ERROR, "no JSON"));
        };
        let root = tape.root();
        let Ok(Envelope::Request { id: id @ Id::Integer(_), method, params }) = rpc::classify(root) else {
            let id = match rpc::id_of(root) {
                Some(Id::Integer(id)) => id.to_string(),
                _ => "null".to_owned(),
            };
            return (String::new(), refusal(&id, rpc::INVALID_REQUEST, "no request"));
        };
        let id = id.to_string();
        let served = match &*method {
            INITIALIZE => self.initialize(params),
            TOOLS_LIST => Ok(list()),
            TOOLS_CALL => self.call(params),
            _ => Err((rpc::METHOD_NOT_FOUND, "no such method")),
        };
        let line = match served {
            Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Err((code, message)) => refusal(&id, code, message),
        };
        (method.into_owned(), line)
    }

    fn initialize(&self, params: Option<Node<'_>>) -> Served {
        let version = params.and_then(|params| params.get("protocolVersion")?.as_str());
        if version.as_deref() == Some(&*self.version) {
            Ok(format!(r#"{{"protocolVersion":{}}}"#, quoted(&self.version)))
        } else {
            Err((rpc::INVALID_PARAMS, "no such version"))
        }
    }

    fn call(&self, params: Option<Node<'_>>) -> Served {
        let invalid = |message| Err((rpc::INVALID_PARAMS, message));
        let member = |name| params.and_then(|params| params.get(name));
        let (name, arguments) = (member("name").and_then(|name| name.as_str()), member("arguments"));
        let (Some(name), Some(arguments)) = (name, arguments) else {
            return invalid("no name or no arguments");
        };
        let schema = match &*name {
            "add" => ADD,
            "echo" => ECHO,
            "fail" => FAIL,
            _ => return invalid("no such tool"),
        };
        let fits = Tape::scan(schema.as_bytes())
            .is_ok_and(|schema| matches(schema.root(), arguments, Payload::Arguments, &self.bounds).is_ok());
        if !fits {
            return invalid("the arguments do not fit");
        }
        let integer = |name| arguments.get(name).and_then(|it| it.as_i64()).unwrap_or_default();
        let text = arguments.get("text").and_then(|it| it.as_str()).unwrap_or_default();
        Ok(match &*name {
            "add" => {
                let sum = integer("a").saturating_add(integer("b"));
                result(&sum.to_string(), &format!(r#""structuredContent":{{"sum":{sum}}},"#), false)
            }
            "echo" if text.chars().any(|it| it.is_control() && !matches!(it, '\t' | '\n' | '\r')) => {
                result("the text has a control character", r#""structuredContent":{"text":""},"#, true)
            }
            "echo" => {
                let structured = format!(r#""structuredContent":{{"text":{}}},"#, quoted(&text));
                result(&text, &structured, false)
            }
            _ => result("it fails, as it says", "", true),
        })
    }
}

type Served = Result<String, (i64, &'static str)>;

fn refusal(id: &str, code: i64, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}}}}}"#, quoted(message))
}

fn result(text: &str, structured: &str, is_error: bool) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}],{structured}"isError":{is_error}}}"#, quoted(text))
}

fn list() -> String {
    let reads = r#""annotations":{"readOnlyHint":true}"#;
    let echo = format!(
        r#"{{"name":"echo","title":"Echo","description":"Says it again.","inputSchema":{ECHO},"outputSchema":{ECHO},{reads}}}"#
    );
    let add = format!(r#"{{"name":"add","title":"Add","inputSchema":{ADD},"outputSchema":{SUM},{reads}}}"#);
    let fail = format!(r#"{{"name":"fail","description":"Fails.","inputSchema":{FAIL}}}"#);
    format!(r#"{{"tools":[{echo},{add},{fail}]}}"#)
}
