//! What only the platform can do. The rest of the crate asks here and nowhere else.

mod linux;

pub(crate) use linux::*;
