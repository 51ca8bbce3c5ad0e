//! The WebCodex plugin protocol: its contract, and Schema Profile v1, which says what tools and schemas a plugin may list.

mod admission;
mod bounds;
pub mod contract;
pub mod document;
mod instance;
mod refusal;
mod tools;

pub use admission::admit_schema;
pub use instance::{Payload, matches};
pub use refusal::{Field, Refusal};
pub use tools::admit_tools;
