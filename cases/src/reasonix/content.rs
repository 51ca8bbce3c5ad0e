//! "Content ref": what travels outside of frames, page by page.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::{content, session};
use sidecert_proto::requirement::Check::Always;
use sidecert_proto::requirement::{Cite, Requirement, must};
use sidecert_proto::script::{Process, Script, ScriptDef};

use super::KEPT_AS_SPECIFIED;

pub(super) const ROWS: &[Requirement] = &[must("reasonix/content/read-as-given", Guest)
    .says(
        "A guest that reads a content names a reference that the host gave on this connection, and an offset within it.",
        &[Cite::Seed("Content ref", "Content references"), Cite::Schema("/$defs/ContentReadParams")],
    )
    .accepts(KEPT_AS_SPECIFIED)
    .checked(Always(&session::CONTENT_READ_AS_GIVEN, &EXTERNALIZED_INTERCEPT))];

/// Sends an intercept whose payload is kept outside of the frame.
static EXTERNALIZED_INTERCEPT: ScriptDef = ScriptDef {
    name: "externalized-intercept",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let descriptor = content::sample(setting.contract, setting.seed).descriptor("/payload");
        let event = point::INPUT_RECEIVE;
        let params = format!(
            r#"{{"event":"{event}","payload":null,"externalized":[{descriptor}],"seq":1,"timeoutMillis":5000}}"#
        );
        Script::new("externalized-intercept")
            .request("externalized", contract::INTERCEPT, &params)
            .answer("externalized")
            .fence()
            .quiet()
    },
};
