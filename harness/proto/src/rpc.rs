//! JSON-RPC 2.0 envelopes: what a frame is, or the exact reason why it is none.
//!
//! Classification says what JSON-RPC says and no more: that an id should be an integer, or params an object, is for a
//! protocol's own rules, which find here what was written.

use std::borrow::Cow;
use std::fmt;

use crate::json::{Kind, Node};

/// The code of a frame that is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The code of a frame that is JSON, but no request.
pub const INVALID_REQUEST: i64 = -32600;
/// The code of a request for a method that does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The code of a request whose params are not what the method takes.
pub const INVALID_PARAMS: i64 = -32602;
/// The code of a failure inside the peer.
pub const INTERNAL_ERROR: i64 = -32603;

/// The id of a request or a response, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id<'a> {
    /// A plain integer that fits 64 bits.
    Integer(i64),
    /// Any other number: a fraction, an exponent, or more than 64 bits. Compared as written.
    Number(&'a str),
    /// A string.
    Text(Cow<'a, str>),
    /// `null`: in a response, "the id could not be read".
    Null,
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Number(lexeme) => f.write_str(lexeme),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Null => f.write_str("null"),
        }
    }
}

/// What a frame is.
#[derive(Clone, Debug)]
pub enum Envelope<'a> {
    /// Asks for an answer.
    Request {
        /// Its id.
        id: Id<'a>,
        /// What is asked.
        method: Cow<'a, str>,
        /// With what; `None` when absent.
        params: Option<Node<'a>>,
    },
    /// Tells, and must not be answered.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// With what; `None` when absent.
        params: Option<Node<'a>>,
    },
    /// Answers.
    Response {
        /// The id of the request that it answers.
        id: Id<'a>,
        /// The answer.
        outcome: Outcome<'a>,
    },
}

impl<'a> Envelope<'a> {
    /// The method of a request or a notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Notification { method, .. } => Some(method),
            Self::Response { .. } => None,
        }
    }

    /// The params of a request or a notification.
    pub fn params(&self) -> Option<Node<'a>> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => *params,
            Self::Response { .. } => None,
        }
    }
}

/// What a response says.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The result, of any form.
    Result(Node<'a>),
    /// The error object.
    Error {
        /// Its code.
        code: i64,
        /// The whole error object, for `message` and `data`.
        body: Node<'a>,
    },
}

/// Why a JSON text is no JSON-RPC 2.0 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not an object: a batch, a number, a string, a literal.
    NotAnObject,
    /// `jsonrpc` is absent or not the string `2.0`.
    Version,
    /// `method` is not a string, or empty.
    Method,
    /// `id` is neither a number, a string nor null.
    Id,
    /// `params` is neither an object nor an array.
    Params,
    /// A request or notification with `result` or `error`.
    MethodAndOutcome,
    /// A response without `id`.
    ResponseWithoutId,
    /// `result` and `error` in one response.
    ResultAndError,
    /// Neither `method`, `result` nor `error`.
    Nothing,
    /// `error` is not an object with an integer `code` and a string `message`.
    Error,
    /// A response with `params`.
    ResponseWithParams,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnObject => "not an object",
            Self::Version => "jsonrpc is not \"2.0\"",
            Self::Method => "method is not a non-empty string",
            Self::Id => "id is neither a number, a string nor null",
            Self::Params => "params is neither an object nor an array",
            Self::MethodAndOutcome => "a request that carries a result or an error",
            Self::ResponseWithoutId => "a response without id",
            Self::ResultAndError => "both result and error",
            Self::Nothing => "neither method, result nor error",
            Self::Error => "error is not an object with an integer code and a string message",
            Self::ResponseWithParams => "a response that carries params",
        })
    }
}

#[derive(Default)]
struct Members<'a> {
    version: Option<Node<'a>>,
    id: Option<Node<'a>>,
    method: Option<Node<'a>>,
    params: Option<Node<'a>>,
    result: Option<Node<'a>>,
    error: Option<Node<'a>>,
}

/// What the JSON text at `root` is. Members it does not know are ignored; of duplicates the last one counts.
pub fn classify(root: Node<'_>) -> Result<Envelope<'_>, Malformed> {
    if root.kind() != Kind::Object {
        return Err(Malformed::NotAnObject);
    }
    let mut found = Members::default();
    for (name, value) in root.members() {
        match &*name {
            "jsonrpc" => found.version = Some(value),
            "id" => found.id = Some(value),
            "method" => found.method = Some(value),
            "params" => found.params = Some(value),
            "result" => found.result = Some(value),
            "error" => found.error = Some(value),
            _ => {}
        }
    }
    if found.version.and_then(|version| version.as_str()).as_deref() != Some("2.0") {
        return Err(Malformed::Version);
    }
    let id = found.id.map(id).transpose()?;
    match found.method {
        Some(method) => asked(method, id, &found),
        None => answered(id, &found),
    }
}

/// The id that a frame carries, whatever else may be wrong with it.
pub fn id_of(root: Node<'_>) -> Option<Id<'_>> {
    if root.kind() == Kind::Object { root.get("id").and_then(|node| id(node).ok()) } else { None }
}

fn id(node: Node<'_>) -> Result<Id<'_>, Malformed> {
    match node.kind() {
        Kind::Number => Ok(node
            .is_written_as_integer()
            .then(|| node.as_i64())
            .flatten()
            .map_or(Id::Number(node.raw()), Id::Integer)),
        Kind::String => node.as_str().map(Id::Text).ok_or(Malformed::Id),
        Kind::Null => Ok(Id::Null),
        _ => Err(Malformed::Id),
    }
}

fn asked<'a>(method: Node<'a>, id: Option<Id<'a>>, found: &Members<'a>) -> Result<Envelope<'a>, Malformed> {
    let method = method.as_str().filter(|name| !name.is_empty()).ok_or(Malformed::Method)?;
    if found.result.is_some() || found.error.is_some() {
        return Err(Malformed::MethodAndOutcome);
    }
    let params = found.params;
    if params.is_some_and(|params| !matches!(params.kind(), Kind::Object | Kind::Array)) {
        return Err(Malformed::Params);
    }
    Ok(match id {
        Some(id) => Envelope::Request { id, method, params },
        None => Envelope::Notification { method, params },
    })
}

fn answered<'a>(id: Option<Id<'a>>, found: &Members<'a>) -> Result<Envelope<'a>, Malformed> {
    let outcome = match (found.result, found.error) {
        (Some(_), Some(_)) => return Err(Malformed::ResultAndError),
        (None, None) => return Err(Malformed::Nothing),
        (Some(result), None) => Outcome::Result(result),
        (None, Some(body)) => {
            let code = body
                .get("code")
                .filter(|code| code.is_integer())
                .and_then(|code| code.as_i64())
                .filter(|_| body.get("message").is_some_and(|message| message.kind() == Kind::String))
                .ok_or(Malformed::Error)?;
            Outcome::Error { code, body }
        }
    };
    if found.params.is_some() {
        return Err(Malformed::ResponseWithParams);
    }
    let id = id.ok_or(Malformed::ResponseWithoutId)?;
    Ok(Envelope::Response { id, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn kind(text: &str) -> String {
        let tape = Tape::scan(text.as_bytes()).unwrap();
        match classify(tape.root()) {
            Ok(Envelope::Request { id, method, .. }) => format!("request {id} {method}"),
            Ok(Envelope::Notification { method, .. }) => format!("notification {method}"),
            Ok(Envelope::Response { id, outcome: Outcome::Result(node) }) => {
                format!("result {id} {}", node.raw())
            }
            Ok(Envelope::Response { id, outcome: Outcome::Error { code, .. } }) => {
                format!("error {id} {code}")
            }
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn every_form_and_every_fault() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "request 1 a"),
            (r#"{"id":"a","method":"a","jsonrpc":"2.0","x":[]}"#, "request \"a\" a"),
            (r#"{"jsonrpc":"2.0","id":1.0,"method":"a","params":{}}"#, "request 1.0 a"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "request null a"),
            (
                r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"a"}"#,
                "request 12345678901234567890123 a",
            ),
            (r#"{"jsonrpc":"2.0","method":"a","params":[]}"#, "notification a"),
            (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}"#, "error 1 -1"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"result":0}"#, "result 2 0"),
            ("[]", "not an object"),
            ("{}", "jsonrpc is not \"2.0\""),
            (r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#, "jsonrpc is not \"2.0\""),
            (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, "method is not a non-empty string"),
            (r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, "id is neither a number, a string nor null"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#,
                "params is neither an object nor an array",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","result":1}"#,
                "a request that carries a result or an error",
            ),
            (r#"{"jsonrpc":"2.0","result":1}"#, "a response without id"),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":null}"#, "both result and error"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "neither method, result nor error"),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"params":{}}"#, "a response that carries params"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
        for error in [r#"{"code":1}"#, r#"{"message":""}"#, r#"{"code":1.5,"message":""}"#, "null", "[]"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
            assert_eq!(kind(&text), Malformed::Error.to_string(), "{text}");
        }
    }
}
