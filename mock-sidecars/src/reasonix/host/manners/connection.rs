//! What the host decides about processes and what they write: lines, starts, manifests, ends, and what is masked.

use sidecert_proto::machine::Micros;

use super::SECOND;

/// Lines and envelopes.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Frames {
    /// Errors with a reason name an action beside it. Conforms: yes.
    pub error_action: bool,
    /// Requests under a string id are served. Conforms: no, they are invalid.
    pub string_ids: bool,
    /// Requests under the id null are served. Conforms: no, they are invalid.
    pub null_ids: bool,
    /// Params that are an array are an envelope, and wrong params. Conforms: no, they are an invalid request.
    pub array_params_pass: bool,
    /// A response that is none is answered with an error under its id. Conforms: no.
    pub answers_malformed_responses: bool,
    /// A notification that cannot be served is answered. Conforms: no.
    pub answers_notifications: bool,
    /// A request without an id is done. Conforms: no.
    pub serves_without_id: bool,
    /// What is not known among the methods is answered with a result. Conforms: no.
    pub serves_unknown: bool,
    /// The elements of an array are served. Conforms: no.
    pub serves_batches: bool,
    /// A malformed line ends a connection that is open. Conforms: no.
    pub malformed_ends: bool,
    /// A malformed line is answered. Conforms: yes.
    pub answers_malformed: bool,
    /// A line that is too long ends the connection. Conforms: yes.
    pub oversize_ends: bool,
    /// Before that it is refused as no JSON. Conforms: no.
    pub refuses_oversize: bool,
    /// Calls that such a line ends fail with its reason. Conforms: yes.
    pub names_oversize: bool,
    /// Frames of its own may be longer than the limit. Conforms: no.
    pub writes_too_large: bool,
    /// The longest line that it reads, LF counted, in hundredths of the limit. Conforms: 100.
    pub limit_hundredths: usize,
    /// How many requests it serves at once. Conforms: 64.
    pub served_at_once: usize,
    /// How far the ids of its requests are apart. Conforms: any but 0.
    pub id_step: i64,
    /// Its own ids are strings. Conforms: no.
    pub ids_as_text: bool,
    /// Params that break the schema are served as if they did not. Conforms: no.
    pub serves_bad_params: bool,
    /// Results that break the schema are taken. Conforms: no.
    pub takes_bad_results: bool,
    /// An answer under an unknown id counts for the oldest call. Conforms: no.
    pub unknown_ids_resolve: bool,
    /// The later of two answers counts, where the call still waits. Conforms: no.
    pub last_answer_counts: bool,
    /// White space around a frame is passed over. Conforms: yes.
    pub trims: bool,
    /// A blank line is malformed. Conforms: no.
    pub answers_blank: bool,
    /// A last line without its end is a frame. Conforms: yes.
    pub takes_unended: bool,
    /// How deep a frame may nest. Conforms: 10,000.
    pub depth_max: u32,
    /// Frames on standard error are served. Conforms: no.
    pub reads_stderr: bool,
    /// Standard error is read at all. Conforms: yes.
    pub drains_stderr: bool,
    /// Whatever has a method and an id is served. Conforms: no.
    pub lenient_envelopes: bool,
    /// An answer under the id as a string counts. Conforms: no.
    pub text_ids_match: bool,
    /// An error under the id null ends a connection. Conforms: no.
    pub null_errors_end: bool,
    /// Blank texts, fractions that are integers and the like are refused. Conforms: yes.
    pub beyond_schema: bool,
    /// The reason of an error counts only where it is as retryable as it says. Conforms: yes.
    pub checks_retryable: bool,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            error_action: true,
            string_ids: false,
            null_ids: false,
            array_params_pass: false,
            answers_malformed_responses: false,
            answers_notifications: false,
            serves_without_id: false,
            serves_unknown: false,
            serves_batches: false,
            malformed_ends: false,
            answers_malformed: true,
            oversize_ends: true,
            refuses_oversize: false,
            names_oversize: true,
            writes_too_large: false,
            limit_hundredths: 100,
            served_at_once: 64,
            id_step: 1,
            ids_as_text: false,
            serves_bad_params: false,
            takes_bad_results: false,
            unknown_ids_resolve: false,
            last_answer_counts: false,
            trims: true,
            answers_blank: false,
            takes_unended: true,
            depth_max: 10_000,
            reads_stderr: false,
            drains_stderr: true,
            lenient_envelopes: false,
            text_ids_match: false,
            null_errors_end: false,
            beyond_schema: true,
            checks_retryable: true,
        }
    }
}

/// How processes are started, and the handshake.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Starts {
    /// How many are started at once. Conforms: 4.
    pub parallel: usize,
    /// How long all of them have together. Conforms: 30 s.
    pub budget: Micros,
    /// Providers and actions of the manifest are told to the guest. Conforms: yes, where a manifest has them.
    pub fills_lists: bool,
    /// What the guest declares must stand in those lists. Conforms: yes.
    pub lists_bind: bool,
    /// What the guest is told of its manifest is what the manifest says. Conforms: yes.
    pub mirrors_manifest: bool,
    /// A malformed line before `initialized` ends the connection. Conforms: yes.
    pub garbage_poisons: bool,
    /// A malformed line that does not end it is answered. Conforms: yes.
    pub answers_garbage: bool,
    /// An answer to nothing before `initialized` ends the connection. Conforms: yes.
    pub responses_poison: bool,
    /// One that does not end it counts for `initialize`. Conforms: no.
    pub early_responses_count: bool,
    /// A request or notification before `initialized` ends the connection. Conforms: yes.
    pub traffic_poisons: bool,
    /// Another major version ends the connection. Conforms: yes.
    pub checks_version: bool,
    /// A version may be written with zeros or a sign before it. Conforms: no.
    pub lenient_version: bool,
    /// Subscriptions must stand in the manifest. Conforms: yes.
    pub checks_subscriptions: bool,
    /// Slots must stand in the manifest. Conforms: yes.
    pub checks_replaces: bool,
    /// Providers and actions need their capability. Conforms: yes.
    pub checks_capabilities: bool,
    /// Providers must stand below the name of their plugin. Conforms: yes.
    pub checks_namespace: bool,
    /// A subscription may be named twice. Conforms: yes.
    pub takes_duplicates: bool,
    /// Actions are invoked whatever their ids are. Conforms: no.
    pub takes_any_action: bool,
    /// A guest that answers `initialize` with an error does not start. Conforms: yes.
    pub errors_fail: bool,
    /// Says `initialized` before the checks. Conforms: no.
    pub initialized_unchecked: bool,
    /// Says `initialized`. Conforms: yes.
    pub says_initialized: bool,
    /// A process whose handshake failed is asked to shut down first. Conforms: no.
    pub shuts_down_failed: bool,
    /// A process whose handshake failed is killed. Conforms: yes.
    pub kills_failed: bool,
    /// The reason of an error answer is kept. Conforms: yes.
    pub keeps_reasons: bool,
    /// A required plugin that does not start fails everything. Conforms: yes.
    pub required_fails: bool,
    /// An optional plugin that does not start fails everything. Conforms: no.
    pub optional_fails: bool,
    /// The others are shut down when everything fails. Conforms: yes.
    pub ends_others: bool,
}

impl Default for Starts {
    fn default() -> Self {
        Self {
            parallel: 4,
            budget: 30 * SECOND,
            fills_lists: true,
            lists_bind: true,
            mirrors_manifest: true,
            garbage_poisons: true,
            answers_garbage: true,
            responses_poison: true,
            early_responses_count: false,
            traffic_poisons: true,
            checks_version: true,
            lenient_version: false,
            checks_subscriptions: true,
            checks_replaces: true,
            checks_capabilities: true,
            checks_namespace: true,
            takes_duplicates: true,
            takes_any_action: false,
            errors_fail: true,
            initialized_unchecked: false,
            says_initialized: true,
            shuts_down_failed: false,
            kills_failed: true,
            keeps_reasons: true,
            required_fails: true,
            optional_fails: false,
            ends_others: true,
        }
    }
}

/// What may be installed.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Plugins {
    /// Manifests are checked. Conforms: yes.
    pub checks_manifests: bool,
    /// The one rule of manifests that is not checked, by the member that it is about. Conforms: none.
    pub unchecked: &'static str,
    /// A minor version is its major version. Conforms: yes.
    pub takes_minors: bool,
    /// What the priority of a plugin is that says nothing of it. Conforms: 0.
    pub default_priority: i64,
    /// A plugin without a runtime is started like the first that has one. Conforms: no.
    pub starts_bare: bool,
    /// A plugin whose manifest names no version has the runtime that stands there. Conforms: no, it has none.
    pub starts_unversioned: bool,
    /// The user is asked before what is installed starts. Conforms: no.
    pub asks_again: bool,
    /// Only what is enabled starts. Conforms: yes.
    pub enabled_only: bool,
    /// Only what is installed starts, and nothing that a project names. Conforms: yes.
    pub installed_only: bool,
    /// What is no slot can be claimed. Conforms: no.
    pub takes_odd_slots: bool,
    /// The slots of tools and models can be claimed. Conforms: yes.
    pub takes_named_slots: bool,
    /// A slot has one owner. Conforms: yes.
    pub one_owner: bool,
    /// Shells and relative commands are refused. Conforms: yes.
    pub checks_commands: bool,
    /// The folder of the plugin is put into its command. Conforms: yes.
    pub expands_root: bool,
    /// The variables that say who the guest is prevail. Conforms: yes.
    pub identity_prevails: bool,
    /// A guest has the environment of the host besides its own. Conforms: yes.
    pub inherits_environment: bool,
    /// Arguments are handed on as they stand. Conforms: yes; else they are split at spaces.
    pub keeps_args: bool,
    /// What is described shows that code of the plugin is fully trusted. Conforms: yes.
    pub shows_trust: bool,
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            checks_manifests: true,
            unchecked: "",
            takes_minors: true,
            default_priority: 0,
            starts_bare: false,
            starts_unversioned: false,
            asks_again: false,
            enabled_only: true,
            installed_only: true,
            takes_odd_slots: false,
            takes_named_slots: true,
            one_owner: true,
            checks_commands: true,
            expands_root: true,
            identity_prevails: true,
            inherits_environment: true,
            keeps_args: true,
            shows_trust: true,
        }
    }
}

/// Ends, crashes and reloads.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Ends {
    /// A guest is asked to end. Conforms: yes.
    pub asks: bool,
    /// How long it has, in milliseconds. Conforms: any; 5,000.
    pub timeout_millis: u64,
    /// The wait for its answer ends then. Conforms: yes.
    pub keeps_time: bool,
    /// Its input is closed. Conforms: yes.
    pub closes_input: bool,
    /// Its input is closed before it is asked. Conforms: no.
    pub closes_first: bool,
    /// How long it has to end when its input was closed. Conforms: 750 ms.
    pub grace: Micros,
    /// It is killed when it has not ended then. Conforms: yes.
    pub kills: bool,
    /// The user is told of a guest that did not answer. Conforms: yes.
    pub reports_timeout: bool,
    /// One that declines is left running. Conforms: no.
    pub heeds_declined: bool,
    /// One that ends in place of an answer has crashed. Conforms: no.
    pub exit_is_a_crash: bool,
    /// Requests meanwhile are refused. Conforms: yes.
    pub refuses_requests: bool,
    /// Calls that wait for a process that died fail at once. Conforms: yes; else they wait for their time.
    pub crash_fails_calls: bool,
    /// Calls to a process that died fail at once. Conforms: yes; else they wait for their time.
    pub fails_fast: bool,
    /// A process that died is started again. Conforms: no.
    pub restarts: bool,
    /// A crash is told to the user once. Conforms: yes; else twice.
    pub reports_crash_once: bool,
    /// A process that closed its output is killed. Conforms: yes.
    pub kills_crashed: bool,
    /// A guest that takes no bytes for this long is cut off. Conforms: 10 s.
    pub write_stall: Micros,
    /// SIGTERM ends the host in order. Conforms: yes; else it leaves its guests running.
    pub in_order_when_terminated: bool,
    /// SIGINT does, which is what Ctrl-C sends. Conforms: yes; else it leaves its guests running.
    pub in_order_when_interrupted: bool,
    /// A reload is refused while a turn runs. Conforms: yes.
    pub reload_needs_idle: bool,
    /// A reload begins another generation. Conforms: yes.
    pub reload_counts: bool,
    /// A reload starts what had crashed. Conforms: yes.
    pub reload_revives: bool,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            asks: true,
            timeout_millis: 5_000,
            keeps_time: true,
            closes_input: true,
            closes_first: false,
            grace: 750_000,
            kills: true,
            reports_timeout: true,
            heeds_declined: false,
            exit_is_a_crash: false,
            refuses_requests: true,
            crash_fails_calls: true,
            fails_fast: true,
            restarts: false,
            reports_crash_once: true,
            kills_crashed: true,
            write_stall: 10 * SECOND,
            in_order_when_terminated: true,
            in_order_when_interrupted: true,
            reload_needs_idle: true,
            reload_counts: true,
            reload_revives: true,
        }
    }
}

/// What is masked.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Redacts {
    /// What guests wrote to standard error. Conforms: yes.
    pub stderr: bool,
    /// Why something was blocked. Conforms: yes.
    pub reasons: bool,
    /// Surfaces and prompts, and what actions say. Conforms: yes.
    pub ui: bool,
    /// Errors of models. Conforms: yes.
    pub provider_errors: bool,
    /// Other errors of guests. Conforms: yes.
    pub errors: bool,
    /// What the host keeps in its log. Conforms: yes.
    pub log: bool,
    /// What models say. Conforms: no.
    pub content: bool,
    /// How much is kept of standard error, in bytes. Conforms: 16 KiB.
    pub tail_bytes: usize,
    /// Its end is what is kept. Conforms: yes; else its beginning.
    pub keeps_end: bool,
    /// The rules of masking that hold. Conforms: all.
    pub rules: usize,
}

impl Default for Redacts {
    fn default() -> Self {
        Self {
            stderr: true,
            reasons: true,
            ui: true,
            provider_errors: true,
            errors: true,
            log: true,
            content: false,
            tail_bytes: 16 << 10,
            keeps_end: true,
            rules: usize::MAX,
        }
    }
}
