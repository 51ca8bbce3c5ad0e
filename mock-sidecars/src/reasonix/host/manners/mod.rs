//! What the reference host decides, one member a decision: by default what the specification says, else what the
//! released implementation does, or a flaw.

mod connection;
mod session;

use sidecert_proto::machine::Micros;

pub use connection::{Ends, Frames, Plugins, Redacts, Starts};
pub use session::{Content, Hooks, Streams, Ui};

/// A second.
const SECOND: Micros = 1_000_000;

/// How a host behaves. [`Default`] conforms.
#[derive(Clone, Debug, Default)]
pub struct Manners {
    /// Lines and envelopes.
    pub frames: Frames,
    /// How processes are started, and the handshake.
    pub starts: Starts,
    /// What may be installed.
    pub plugins: Plugins,
    /// Intercepts, slots and events.
    pub hooks: Hooks,
    /// Content outside of frames.
    pub content: Content,
    /// Models and their streams.
    pub streams: Streams,
    /// Surfaces, prompts, actions and forms.
    pub ui: Ui,
    /// Ends, crashes and reloads.
    pub ends: Ends,
    /// What is masked.
    pub redacts: Redacts,
}

impl Manners {
    /// What the released implementation does where it and the specification part.
    pub fn released() -> Self {
        let mut manners = Self::default();
        manners.frames.error_action = false;
        manners.frames.string_ids = true;
        manners.frames.null_ids = true;
        manners.frames.array_params_pass = true;
        manners.frames.names_oversize = false;
        manners.frames.answers_malformed_responses = true;
        manners.starts.fills_lists = false;
        manners.starts.lists_bind = false;
        manners.starts.garbage_poisons = false;
        manners.starts.responses_poison = false;
        manners.starts.lenient_version = true;
        manners.hooks.chain_everywhere = false;
        manners.hooks.session_points = false;
        manners.hooks.input_event = false;
        manners.hooks.replacements = Check::Weak;
        manners.hooks.spares_frontend_and_load = true;
        manners.hooks.tool_owners_rule = false;
        manners.hooks.permission_owner_rules = false;
        manners.hooks.permission_replaces = false;
        manners.streams.catalog_needs_capability = false;
        manners.streams.gap_needs_end = true;
        manners.streams.first_copy_wins = false;
        manners.streams.end_below_delivered_fails = false;
        manners.streams.checks_generation = false;
        manners.ui.needs_capability = false;
        manners.ui.inert_markup = false;
        manners.ends.reports_timeout = false;
        manners
    }
}

/// How a replacement is checked before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Against the document of its point and the definitions of the contract: conforms.
    Schema,
    /// Only for members that are unknown or of another type.
    Weak,
    /// Not at all.
    Nothing,
}
