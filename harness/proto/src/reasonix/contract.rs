//! The Reasonix contracts that are built in, and the names in them. Nothing else in this crate names a protocol id, a
//! version, a limit or a method of Reasonix.

use crate::contract::{Contract, ContractFault};
use std::sync::OnceLock;

/// The protocol as first published, `reasonix.extension.v1`.
pub fn v1() -> &'static Contract {
    static V1: OnceLock<Contract> = OnceLock::new();
    V1.get_or_init(|| built_in(include_bytes!("contract/v1.json")))
}

/// `reasonix.extension.v2` as of release 1.38.11.
pub fn v2() -> &'static Contract {
    static V2: OnceLock<Contract> = OnceLock::new();
    V2.get_or_init(|| built_in(include_bytes!("contract/v2.json")))
}

/// Reads a contract of this family: a document of the published form that has the limits and the handshake.
pub fn read(text: &[u8]) -> Result<Contract, ContractFault> {
    let contract = Contract::read(text)?;
    let fault = |pointer: &str, what: &str, name: &str| {
        Err(ContractFault { pointer: pointer.to_owned(), says: format!("{what} {name:?} is missing") })
    };
    for name in limit::ALL {
        if contract.limit(name).is_none() {
            return fault("/limits", "limit", name);
        }
    }
    for name in [INITIALIZE, INITIALIZED, SHUTDOWN] {
        if contract.method(name).is_none() {
            return fault("/methods", "method", name);
        }
    }
    Ok(contract)
}

#[expect(clippy::expect_used, reason = "the text is part of the program; a test reads it")]
fn built_in(text: &[u8]) -> Contract {
    read(text).expect("a built-in contract reads")
}

/// The limits that every contract of this family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame, with its line feed, in bytes.
    pub frame_bytes: usize,
    /// A field that may travel outside of its frame does so when it is longer than this many bytes.
    pub externalize_field_bytes: usize,
    /// The longest page of content, in bytes.
    pub content_ref_chunk_bytes: usize,
    /// The longest content, in bytes.
    pub content_ref_object_bytes: usize,
}

impl Limits {
    /// The limits of `contract`. One that it does not state, which [`read`] would have refused, is no limit.
    pub fn of(contract: &Contract) -> Limits {
        let limit =
            |name| contract.limit(name).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        Limits {
            frame_bytes: limit(limit::FRAME_BYTES),
            externalize_field_bytes: limit(limit::EXTERNALIZE_FIELD_BYTES),
            content_ref_chunk_bytes: limit(limit::CONTENT_REF_CHUNK_BYTES),
            content_ref_object_bytes: limit(limit::CONTENT_REF_OBJECT_BYTES),
        }
    }

    /// `contract` with these limits in place of its own.
    pub fn applied_to(self, contract: &Contract) -> Contract {
        contract.with_limits([
            (limit::FRAME_BYTES, self.frame_bytes as u64),
            (limit::EXTERNALIZE_FIELD_BYTES, self.externalize_field_bytes as u64),
            (limit::CONTENT_REF_CHUNK_BYTES, self.content_ref_chunk_bytes as u64),
            (limit::CONTENT_REF_OBJECT_BYTES, self.content_ref_object_bytes as u64),
        ])
    }
}

/// Host asks: the handshake.
pub const INITIALIZE: &str = "extension/initialize";
/// Host tells: the handshake is done.
pub const INITIALIZED: &str = "extension/initialized";
/// Host asks: end.
pub const SHUTDOWN: &str = "extension/shutdown";
/// Host asks: may this happen, and so?
pub const INTERCEPT: &str = "extension/intercept";
/// Host tells: this happened.
pub const EVENT: &str = "extension/event";
/// Host tells: these files changed.
pub const RESOURCES_CHANGED: &str = "extension/resources/changed";
/// Host asks: which models are there?
pub const PROVIDER_CATALOG: &str = "extension/provider/catalog";
/// Host asks: begin an answer of a model.
pub const STREAM_OPEN: &str = "extension/provider/stream/open";
/// Guest tells: a piece of that answer.
pub const STREAM_CHUNK: &str = "extension/provider/stream/chunk";
/// Guest tells: that answer is over.
pub const STREAM_END: &str = "extension/provider/stream/end";
/// Host asks: stop that answer.
pub const STREAM_CANCEL: &str = "extension/provider/stream/cancel";
/// Host asks: the user chose this action.
pub const UI_ACTION: &str = "extension/ui/action";
/// Host asks: the user filled in this form.
pub const UI_SUBMIT: &str = "extension/ui/submit";
/// Guest asks: a page of content that did not fit its frame.
pub const CONTENT_READ: &str = "host/content/read";
/// Guest asks: show this.
pub const UI_PUBLISH: &str = "host/ui/publish";
/// Guest asks: ask the user this.
pub const UI_REQUEST: &str = "host/ui/request";

/// The names of the limits.
pub mod limit {
    /// The longest page of content.
    pub const CONTENT_REF_CHUNK_BYTES: &str = "contentRefChunkBytes";
    /// The longest content.
    pub const CONTENT_REF_OBJECT_BYTES: &str = "contentRefObjectBytes";
    /// The longest field that stays in its frame.
    pub const EXTERNALIZE_FIELD_BYTES: &str = "externalizeFieldBytes";
    /// The longest frame.
    pub const FRAME_BYTES: &str = "frameBytes";

    /// All of them.
    pub const ALL: &[&str] =
        &[CONTENT_REF_CHUNK_BYTES, CONTENT_REF_OBJECT_BYTES, EXTERNALIZE_FIELD_BYTES, FRAME_BYTES];
}

/// The names of the error reasons.
pub mod reason {
    /// A component could not be activated. Since version 2.
    pub const ACTIVATION_FAILED: &str = "activation_failed";
    /// The manifest did not declare what was used.
    pub const CAPABILITY_NOT_DECLARED: &str = "capability_not_declared";
    /// A component could not clean up. Since version 2.
    pub const CLEANUP_FAILED: &str = "cleanup_failed";
    /// The content is gone.
    pub const CONTENT_REF_EXPIRED: &str = "content_ref_expired";
    /// Components need each other in a circle. Since version 2.
    pub const DEPENDENCY_CYCLE: &str = "dependency_cycle";
    /// A needed component is missing or does not fit. Since version 2.
    pub const DEPENDENCY_UNSATISFIED: &str = "dependency_unsatisfied";
    /// A frame or content is longer than its limit.
    pub const FRAME_TOO_LARGE: &str = "frame_too_large";
    /// The guest took too long to rule.
    pub const INTERCEPT_TIMEOUT: &str = "intercept_timeout";
    /// The peer failed in itself.
    pub const INTERNAL: &str = "internal";
    /// The params are not what the method takes.
    pub const INVALID_PARAMS: &str = "invalid_params";
    /// The frame breaks the protocol.
    pub const PROTOCOL_ERROR: &str = "protocol_error";
    /// A model could not answer.
    pub const PROVIDER_FAILED: &str = "provider_failed";
    /// The answer of a model broke off.
    pub const PROVIDER_INTERRUPTED: &str = "provider_interrupted";
    /// The schema of a capability is not the pinned one. Since version 2.
    pub const SCHEMA_MISMATCH: &str = "schema_mismatch";
    /// The guest took too long to end.
    pub const SHUTDOWN_TIMEOUT: &str = "shutdown_timeout";
    /// The generation is over. Since version 2.
    pub const STALE_GENERATION: &str = "stale_generation";
    /// The answer of a model was cancelled.
    pub const STREAM_CANCELLED: &str = "stream_cancelled";
    /// A piece of the answer is missing.
    pub const STREAM_GAP: &str = "stream_gap";
    /// There is no such method.
    pub const UNKNOWN_METHOD: &str = "unknown_method";
    /// The versions do not go together.
    pub const UNSUPPORTED_VERSION: &str = "unsupported_version";

    /// All of them, as of version 2.
    pub const ALL: &[&str] = &[
        ACTIVATION_FAILED,
        CAPABILITY_NOT_DECLARED,
        CLEANUP_FAILED,
        CONTENT_REF_EXPIRED,
        DEPENDENCY_CYCLE,
        DEPENDENCY_UNSATISFIED,
        FRAME_TOO_LARGE,
        INTERCEPT_TIMEOUT,
        INTERNAL,
        INVALID_PARAMS,
        PROTOCOL_ERROR,
        PROVIDER_FAILED,
        PROVIDER_INTERRUPTED,
        SCHEMA_MISMATCH,
        SHUTDOWN_TIMEOUT,
        STALE_GENERATION,
        STREAM_CANCELLED,
        STREAM_GAP,
        UNKNOWN_METHOD,
        UNSUPPORTED_VERSION,
    ];
}

/// The names of the points at which a guest may look or step in.
pub mod point {
    /// Before an agent starts.
    pub const AGENT_BEFORE_START: &str = "agent.before_start";
    /// After a conversation was compacted.
    pub const COMPACTION_COMPLETE: &str = "compaction.complete";
    /// Before a conversation is compacted.
    pub const COMPACTION_PREPARE: &str = "compaction.prepare";
    /// Before the messages for a model are final.
    pub const CONTEXT_PREPARE: &str = "context.prepare";
    /// Before a frontend shows something.
    pub const FRONTEND_EVENT: &str = "frontend.event";
    /// After the user said something.
    pub const INPUT_RECEIVE: &str = "input.receive";
    /// After the host decided about a tool call.
    pub const PERMISSION_DECISION: &str = "permission.decision";
    /// Before a model is asked.
    pub const PROVIDER_REQUEST: &str = "provider.request";
    /// After a model answered.
    pub const PROVIDER_RESPONSE: &str = "provider.response";
    /// A session ended.
    pub const SESSION_END: &str = "session.end";
    /// A session is loaded.
    pub const SESSION_LOAD: &str = "session.load";
    /// A session is rotated.
    pub const SESSION_ROTATE: &str = "session.rotate";
    /// A session is saved.
    pub const SESSION_SAVE: &str = "session.save";
    /// A session started.
    pub const SESSION_START: &str = "session.start";
    /// Before the system prompt is final.
    pub const SYSTEM_PROMPT_BUILD: &str = "system_prompt.build";
    /// After a tool ran.
    pub const TOOL_AFTER: &str = "tool.after";
    /// Before a tool runs.
    pub const TOOL_BEFORE: &str = "tool.before";

    /// All of them.
    pub const ALL: &[&str] = &[
        AGENT_BEFORE_START,
        COMPACTION_COMPLETE,
        COMPACTION_PREPARE,
        CONTEXT_PREPARE,
        FRONTEND_EVENT,
        INPUT_RECEIVE,
        PERMISSION_DECISION,
        PROVIDER_REQUEST,
        PROVIDER_RESPONSE,
        SESSION_END,
        SESSION_LOAD,
        SESSION_ROTATE,
        SESSION_SAVE,
        SESSION_START,
        SYSTEM_PROMPT_BUILD,
        TOOL_AFTER,
        TOOL_BEFORE,
    ];
}

/// What version 2 has and version 1 has not.
pub mod since_v2 {
    use crate::contract::Fact;

    /// The definition `CapabilityWire`.
    pub const CAPABILITY_WIRE: Fact = Fact::Definition("CapabilityWire");
    /// The member `HostCapabilities.dependencySchemaVersion`.
    pub const HOST_CAPABILITIES_DEPENDENCY_SCHEMA_VERSION: Fact =
        Fact::Member("HostCapabilities.dependencySchemaVersion");
    /// The member `InitializeParams.dependencySchemaVersion`.
    pub const INITIALIZE_PARAMS_DEPENDENCY_SCHEMA_VERSION: Fact =
        Fact::Member("InitializeParams.dependencySchemaVersion");
    /// The member `InitializeResult.componentId`.
    pub const INITIALIZE_RESULT_COMPONENT_ID: Fact = Fact::Member("InitializeResult.componentId");
    /// The member `InitializeResult.provides`.
    pub const INITIALIZE_RESULT_PROVIDES: Fact = Fact::Member("InitializeResult.provides");
    /// The member `InitializeResult.requires`.
    pub const INITIALIZE_RESULT_REQUIRES: Fact = Fact::Member("InitializeResult.requires");
    /// The member `ManifestExpectation.provides`.
    pub const MANIFEST_EXPECTATION_PROVIDES: Fact = Fact::Member("ManifestExpectation.provides");
    /// The member `ManifestExpectation.requires`.
    pub const MANIFEST_EXPECTATION_REQUIRES: Fact = Fact::Member("ManifestExpectation.requires");
    /// The member `ProviderChunk.epoch`.
    pub const PROVIDER_CHUNK_EPOCH: Fact = Fact::Member("ProviderChunk.epoch");
    /// The member `ProviderChunk.generation`.
    pub const PROVIDER_CHUNK_GENERATION: Fact = Fact::Member("ProviderChunk.generation");
    /// The member `ProviderDescriptor.inputModalities`.
    pub const PROVIDER_DESCRIPTOR_INPUT_MODALITIES: Fact = Fact::Member("ProviderDescriptor.inputModalities");
    /// The definition `RequirementWire`.
    pub const REQUIREMENT_WIRE: Fact = Fact::Definition("RequirementWire");
    /// The member `SessionContext.epoch`.
    pub const SESSION_CONTEXT_EPOCH: Fact = Fact::Member("SessionContext.epoch");
    /// The member `StreamChunkParams.epoch`.
    pub const STREAM_CHUNK_PARAMS_EPOCH: Fact = Fact::Member("StreamChunkParams.epoch");
    /// The member `StreamChunkParams.generation`.
    pub const STREAM_CHUNK_PARAMS_GENERATION: Fact = Fact::Member("StreamChunkParams.generation");
    /// The member `StreamOpenParams.epoch`.
    pub const STREAM_OPEN_PARAMS_EPOCH: Fact = Fact::Member("StreamOpenParams.epoch");
    /// The member `StreamOpenParams.generation`.
    pub const STREAM_OPEN_PARAMS_GENERATION: Fact = Fact::Member("StreamOpenParams.generation");
    /// The reason `activation_failed`.
    pub const ACTIVATION_FAILED: Fact = Fact::Reason("activation_failed");
    /// The reason `cleanup_failed`.
    pub const CLEANUP_FAILED: Fact = Fact::Reason("cleanup_failed");
    /// The reason `dependency_cycle`.
    pub const DEPENDENCY_CYCLE: Fact = Fact::Reason("dependency_cycle");
    /// The reason `dependency_unsatisfied`.
    pub const DEPENDENCY_UNSATISFIED: Fact = Fact::Reason("dependency_unsatisfied");
    /// The reason `schema_mismatch`.
    pub const SCHEMA_MISMATCH: Fact = Fact::Reason("schema_mismatch");
    /// The reason `stale_generation`.
    pub const STALE_GENERATION: Fact = Fact::Reason("stale_generation");

    /// All of them.
    pub const ALL: &[Fact] = &[
        CAPABILITY_WIRE,
        HOST_CAPABILITIES_DEPENDENCY_SCHEMA_VERSION,
        INITIALIZE_PARAMS_DEPENDENCY_SCHEMA_VERSION,
        INITIALIZE_RESULT_COMPONENT_ID,
        INITIALIZE_RESULT_PROVIDES,
        INITIALIZE_RESULT_REQUIRES,
        MANIFEST_EXPECTATION_PROVIDES,
        MANIFEST_EXPECTATION_REQUIRES,
        PROVIDER_CHUNK_EPOCH,
        PROVIDER_CHUNK_GENERATION,
        PROVIDER_DESCRIPTOR_INPUT_MODALITIES,
        REQUIREMENT_WIRE,
        SESSION_CONTEXT_EPOCH,
        STREAM_CHUNK_PARAMS_EPOCH,
        STREAM_CHUNK_PARAMS_GENERATION,
        STREAM_OPEN_PARAMS_EPOCH,
        STREAM_OPEN_PARAMS_GENERATION,
        ACTIVATION_FAILED,
        CLEANUP_FAILED,
        DEPENDENCY_CYCLE,
        DEPENDENCY_UNSATISFIED,
        SCHEMA_MISMATCH,
        STALE_GENERATION,
    ];
}

/// The environment variables that a host sets for its guests.
pub mod variable {
    /// The folder of the plugin.
    pub const ROOT: &str = "REASONIX_PLUGIN_ROOT";
    /// The name of the plugin.
    pub const NAME: &str = "REASONIX_PLUGIN_NAME";
    /// The version of the plugin.
    pub const VERSION: &str = "REASONIX_PLUGIN_VERSION";
}
