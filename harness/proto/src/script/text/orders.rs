//! What a guest's process is told to do, as a step: `{"do":"exit","code":3}`.

use bytes::Bytes;

use super::text;
use crate::json::{self, Node};
use crate::machine::Order;

pub(super) fn write(out: &mut Vec<u8>, order: &Order) {
    out.extend_from_slice(b"{\"do\":");
    json::write_str(out, order.name());
    match order {
        Order::Stderr(bytes) => {
            out.extend_from_slice(b",\"text\":");
            json::write_str(out, &String::from_utf8_lossy(bytes));
        }
        Order::Exit(code) => out.extend_from_slice(format!(",\"code\":{code}").as_bytes()),
        Order::Spawn { session } => out.extend_from_slice(format!(",\"session\":{session}").as_bytes()),
        Order::CloseInput | Order::Abort | Order::IgnoreTerm | Order::Ping => {}
    }
}

pub(super) fn read(node: Node<'_>) -> Result<Order, String> {
    let name = node.get("do").and_then(|name| name.as_str()).ok_or("do is a word")?;
    Ok(match &*name {
        "stderr" => {
            let says = text(node, "text")?.ok_or("stderr has \"text\"")?;
            Order::Stderr(Bytes::from(says.into_bytes()))
        }
        "exit" => {
            let code = node.get("code").and_then(|code| code.as_u64());
            let code =
                code.and_then(|code| u8::try_from(code).ok()).ok_or("exit has a \"code\" below 256")?;
            Order::Exit(code)
        }
        "spawn" => {
            let session = node.get("session").and_then(|session| session.as_bool()).unwrap_or_default();
            Order::Spawn { session }
        }
        "close-input" => Order::CloseInput,
        "abort" => Order::Abort,
        "ignore-term" => Order::IgnoreTerm,
        "ping" => Order::Ping,
        other => return Err(format!("{other:?} is nothing that a guest can do")),
    })
}
