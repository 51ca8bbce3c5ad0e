//! "Security model": what no peer can see stands here so that a report says so.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::requirement::Check::Unobservable;
use sidecert_proto::requirement::{Cite, Requirement, must};

use super::KEPT_AS_SPECIFIED;

pub(super) const ROWS: &[Requirement] = &[must("reasonix/security/credentials-read-by-itself", Guest)
    .says(
        "A guest with providers reads the environment and the credentials that it needs by itself.",
        &[Cite::Seed("流式 Provider", "Streaming providers")],
    )
    .accepts(KEPT_AS_SPECIFIED)
    .checked(Unobservable("what a process reads, and where it has it from, does not show on its link"))];
