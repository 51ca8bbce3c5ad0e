//! The WebCodex plugin protocol: its contract, what is watched on a connection, our end of one, and Schema Profile v1, which
//! says what tools and schemas a plugin may list.

mod admission;
mod bounds;
pub mod calls;
pub mod contract;
pub mod document;
pub mod host;
mod instance;
mod refusal;
pub mod session;
mod tools;

use crate::redact::Free;

pub use admission::admit_schema;
pub use instance::{Payload, matches};
pub use refusal::{Field, Refusal};
pub use tools::admit_tools;

/// The members of frames that hold what somebody wrote, and no name.
pub const FREE: Free = Free {
    texts: &["description", "message", "text", "title"],
    trees: &["arguments", "const", "data", "enum", "structuredContent"],
};
