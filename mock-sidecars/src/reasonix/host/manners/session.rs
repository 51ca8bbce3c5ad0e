//! What the host decides in a session: points, content, models, and what the user sees.

use sidecert_proto::machine::Micros;

use super::{Check, SECOND};

/// Intercepts, slots and events.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Hooks {
    /// Plugins that only intercept are asked at every point. Conforms: yes.
    pub chain_everywhere: bool,
    /// Points at which the chain is passed over. Conforms: none.
    pub skips: &'static [&'static str],
    /// Plugins are asked at every point, whatever they intercept. Conforms: no.
    pub asks_everyone: bool,
    /// Sessions are passed through the points at which they are loaded and saved. Conforms: yes.
    pub session_points: bool,
    /// What the user says is told as an event. Conforms: yes.
    pub input_event: bool,
    /// The lower priority is asked first. Conforms: yes; else the higher.
    pub lower_first: bool,
    /// Equal priorities are asked in the order of names. Conforms: yes; else in the reverse.
    pub names_ascend: bool,
    /// One is asked when the one before has answered. Conforms: yes.
    pub serial: bool,
    /// The operation waits for the rulings. Conforms: yes.
    pub waits: bool,
    /// Points at which it does not, where it does elsewhere. Conforms: none.
    pub unwaited: &'static [&'static str],
    /// The next one sees what the one before made of the payload. Conforms: yes.
    pub passes_replacements: bool,
    /// A replacement beside `continue` is passed over. Conforms: yes.
    pub continue_keeps: bool,
    /// Nobody is asked after a block. Conforms: yes.
    pub block_ends_chain: bool,
    /// A block is followed. Conforms: yes.
    pub blocks: bool,
    /// A block without a reason is one. Conforms: yes.
    pub blocks_unexplained: bool,
    /// The user is told why. Conforms: yes.
    pub tells_block_reasons: bool,
    /// Nobody is asked after an allow or a deny. Conforms: yes.
    pub ruling_ends_chain: bool,
    /// Nobody is asked after an allow either. Conforms: yes.
    pub allow_ends_chain: bool,
    /// Allow and deny are followed at every point. Conforms: no.
    pub rulings_anywhere: bool,
    /// An allow prevails over the deny of the host, and is told. Conforms: yes.
    pub allow_prevails: bool,
    /// A deny prevails over the allow of the host. Conforms: yes.
    pub deny_prevails: bool,
    /// A guest that replaces must say with what. Conforms: yes.
    pub needs_replacement: bool,
    /// A replacement that does not fit is a failure of its guest. Conforms: yes; else it is passed over.
    pub misfits_fail: bool,
    /// The phase of a replaced session is checked. Conforms: yes.
    pub checks_phases: bool,
    /// The arguments of a replaced tool call are checked. Conforms: yes.
    pub checks_arguments: bool,
    /// How replacements are checked.
    pub replacements: Check,
    /// How far apart the numbers of intercepts are. Conforms: 1.
    pub seq_step: u64,
    /// How long input, tool and permission points wait, in milliseconds. Conforms: 5,000.
    pub short_millis: u64,
    /// How long context, compaction, session and system prompt points wait, in milliseconds. Conforms: 30,000.
    pub long_millis: u64,
    /// How long the points wait that the specification does not name. Conforms: any; 30,000.
    pub other_millis: u64,
    /// The longest that a manifest can ask for, in milliseconds. Conforms: 60,000.
    pub most_millis: u64,
    /// A manifest can say how long. Conforms: yes.
    pub manifest_millis: bool,
    /// The wait ends when it is over. Conforms: yes.
    pub keeps_time: bool,
    /// A required plugin that fails at a point fails the operation. Conforms: yes.
    pub required_fails: bool,
    /// An optional plugin that fails at a point fails the operation. Conforms: no.
    pub optional_fails: bool,
    /// An optional plugin is warned of once. Conforms: yes; else each time.
    pub warns_once: bool,
    /// The owner of a slot is asked. Conforms: yes.
    pub asks_owners: bool,
    /// The owner is asked after the chain. Conforms: yes; else before.
    pub owner_last: bool,
    /// The owner is asked even when the chain blocked. Conforms: no.
    pub owner_after_block: bool,
    /// What fails at an owner fails the operation. Conforms: yes.
    pub owner_fails: bool,
    /// Except where a session is loaded and where something is shown. Conforms: no.
    pub spares_frontend_and_load: bool,
    /// What fails where something is shown fails the turn. Conforms: yes; else it is not shown.
    pub frontend_failures_count: bool,
    /// The owner of a tool is asked before it runs. Conforms: yes.
    pub tool_owners_rule: bool,
    /// What the owner of a tool says is done. Conforms: yes.
    pub heeds_tool_owners: bool,
    /// The owner of the permission slot may allow and deny. Conforms: yes.
    pub permission_owner_rules: bool,
    /// A replaced decision of the host counts. Conforms: yes.
    pub permission_replaces: bool,
    /// Events are told. Conforms: yes.
    pub events: bool,
    /// Points of which nothing is told. Conforms: none.
    pub untold: &'static [&'static str],
    /// Events are told of what was blocked. Conforms: either.
    pub events_of_blocked: bool,
    /// An event has the payload as it was ruled. Conforms: yes; else as it came.
    pub events_are_final: bool,
    /// An owner that is also in the chain is told once. Conforms: yes.
    pub events_once: bool,
    /// An event is waited for until it was read. Conforms: no.
    pub events_wait: bool,
    /// How many events wait for a guest that does not read. Conforms: 16.
    pub events_queued: usize,
    /// The user is told of a guest whose events are dropped. Conforms: yes.
    pub tells_overflow: bool,
    /// The system prompt is built once. Conforms: yes; else twice.
    pub builds_prompt_once: bool,
    /// Who intercepts a point is what the manifest says. Conforms: yes; else what the guest subscribed to.
    pub by_manifest: bool,
    /// The owner of a slot is required at every point. Conforms: yes.
    pub owners_are_required: bool,
    /// An error answer is a failure of the guest. Conforms: yes; else it lets pass.
    pub errors_fail: bool,
    /// A guest whose ruling fails is given up. Conforms: no.
    pub failure_ends: bool,
    /// What guests make of the context is for one request. Conforms: yes; else it is kept.
    pub context_is_ephemeral: bool,
    /// What guests make of a request is for that request. Conforms: yes; else the conversation goes on with it.
    pub request_is_ephemeral: bool,
    /// What guests make of an answer is kept. Conforms: yes; else the answer as it came.
    pub response_is_kept: bool,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            chain_everywhere: true,
            skips: &[],
            asks_everyone: false,
            session_points: true,
            input_event: true,
            lower_first: true,
            names_ascend: true,
            serial: true,
            waits: true,
            unwaited: &[],
            passes_replacements: true,
            continue_keeps: true,
            block_ends_chain: true,
            blocks: true,
            blocks_unexplained: true,
            tells_block_reasons: true,
            ruling_ends_chain: true,
            allow_ends_chain: true,
            rulings_anywhere: false,
            allow_prevails: true,
            deny_prevails: true,
            needs_replacement: true,
            misfits_fail: true,
            checks_phases: true,
            checks_arguments: true,
            replacements: Check::Schema,
            seq_step: 1,
            short_millis: 5_000,
            long_millis: 30_000,
            other_millis: 30_000,
            most_millis: 60_000,
            manifest_millis: true,
            keeps_time: true,
            required_fails: true,
            optional_fails: false,
            warns_once: true,
            asks_owners: true,
            owner_last: true,
            owner_after_block: false,
            owner_fails: true,
            spares_frontend_and_load: false,
            frontend_failures_count: true,
            tool_owners_rule: true,
            heeds_tool_owners: true,
            permission_owner_rules: true,
            permission_replaces: true,
            events: true,
            untold: &[],
            events_of_blocked: true,
            events_are_final: true,
            events_once: true,
            events_wait: false,
            events_queued: 16,
            by_manifest: true,
            owners_are_required: true,
            errors_fail: true,
            failure_ends: false,
            context_is_ephemeral: true,
            request_is_ephemeral: true,
            tells_overflow: true,
            builds_prompt_once: true,
            response_is_kept: true,
        }
    }
}

/// Content outside of frames.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Content {
    /// What longer payloads move out of their frames, in bytes, if not the limit of the contract.
    pub externalize_above: Option<usize>,
    /// Events move theirs too. Conforms: yes.
    pub externalizes_events: bool,
    /// The longest page, in bytes, if not the limit of the contract.
    pub page_bytes: Option<usize>,
    /// The longest content, in bytes, if not the limit of the contract.
    pub object_bytes: Option<usize>,
    /// How many objects are kept. Conforms: 64.
    pub objects_kept: usize,
    /// Objects are kept for each connection alone. Conforms: yes.
    pub own_objects: bool,
    /// The digest in a descriptor is that of its bytes. Conforms: yes.
    pub true_digests: bool,
    /// Offsets are where a page begins. Conforms: yes; else pages begin at their multiples.
    pub exact_offsets: bool,
    /// A reference that nobody knows is refused as expired. Conforms: yes; else as wrong params.
    pub names_expired: bool,
    /// A replacement by reference must fit what it names. Conforms: yes.
    pub checks_replacements: bool,
    /// A replacement may be a reference. Conforms: yes.
    pub takes_references: bool,
    /// A replacement may be a reference that nobody knows. Conforms: no.
    pub takes_unknown_references: bool,
    /// The page behind the last byte is empty. Conforms: yes; else there is none.
    pub empty_last_page: bool,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            externalize_above: None,
            externalizes_events: true,
            page_bytes: None,
            object_bytes: None,
            objects_kept: 64,
            own_objects: true,
            true_digests: true,
            exact_offsets: true,
            names_expired: true,
            checks_replacements: true,
            takes_references: true,
            takes_unknown_references: false,
            empty_last_page: true,
        }
    }
}

/// Models and their streams.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Streams {
    /// Only plugins with the capability are asked for a catalog. Conforms: yes.
    pub catalog_needs_capability: bool,
    /// A catalog is asked for once. Conforms: yes.
    pub caches_catalog: bool,
    /// How long a catalog is waited for. Conforms: 10 s.
    pub catalog_within: Micros,
    /// Only entries below the name of the plugin are taken. Conforms: yes.
    pub checks_namespace: bool,
    /// Only what the guest declared in the handshake is opened. Conforms: yes.
    pub declared_only: bool,
    /// Another model takes over when one fails. Conforms: no.
    pub falls_back: bool,
    /// The number that the first chunk has. Conforms: 1.
    pub seq_base: u64,
    /// The effort that the user chose is handed on. Conforms: yes.
    pub hands_on_effort: bool,
    /// Chunks are put in order. Conforms: yes; else they are taken as they come.
    pub reorders: bool,
    /// What was delivered is not delivered again. Conforms: yes.
    pub drops_duplicates: bool,
    /// Of two chunks with one number that wait, the first counts. Conforms: yes.
    pub first_copy_wins: bool,
    /// How far ahead of the next one a chunk may be. Conforms: 256.
    pub window: u64,
    /// How long a missing chunk is waited for. Conforms: some seconds; 1 s.
    pub gap: Micros,
    /// That wait begins with the end only. Conforms: no.
    pub gap_needs_end: bool,
    /// A missing chunk fails the turn. Conforms: yes; else it is passed over.
    pub gap_fails: bool,
    /// The user is told which chunk is missing. Conforms: yes.
    pub names_gap: bool,
    /// A chunk above the end is not delivered. Conforms: yes.
    pub end_freezes: bool,
    /// An end below what was delivered fails. Conforms: yes.
    pub end_below_delivered_fails: bool,
    /// All of an answer is forgotten that ends below what was delivered. Conforms: no.
    pub end_below_forgets: bool,
    /// What came of a stream that failed is shown. Conforms: yes.
    pub shows_interrupted: bool,
    /// Two different ends fail. Conforms: yes.
    pub ends_must_agree: bool,
    /// Chunks of another generation are dropped, where the contract has one in them. Conforms: yes.
    pub checks_generation: bool,
    /// A chunk that breaks the schema is dropped. Conforms: yes.
    pub checks_chunks: bool,
    /// The guest is told when its stream is not wanted any more. Conforms: yes.
    pub cancels: bool,
    /// A stream that broke off fails the turn. Conforms: yes; else what came of it counts.
    pub interruption_fails: bool,
    /// How long a stream may be silent. Conforms: any.
    pub stall: Micros,
    /// Chunks before the stream was accepted count. Conforms: yes.
    pub early_chunks_count: bool,
    /// A stream that was declined fails the turn. Conforms: yes; else it is waited for.
    pub needs_acceptance: bool,
    /// The chunk that says so ends a stream. Conforms: no.
    pub done_ends: bool,
    /// An end that says that something went wrong fails the turn. Conforms: yes.
    pub end_errors_count: bool,
    /// A chunk that tells an error fails the turn. Conforms: yes.
    pub error_chunks_fail: bool,
    /// Models are listed under their whole names. Conforms: yes.
    pub lists_whole_names: bool,
    /// A catalog that failed is an empty one. Conforms: no.
    pub keeps_failed_catalogs: bool,
    /// Every stream has an id of its own. Conforms: yes.
    pub fresh_ids: bool,
    /// The last chunk that is taken in; later ones are lost. Conforms: no bound.
    pub chunks_most: u64,
    /// What comes of a stream that there is not counts for another. Conforms: no.
    pub strays_count: bool,
    /// A second end interrupts, though it is the same. Conforms: no.
    pub same_end_fails: bool,
    /// A stream in which a chunk is missing is complete up to there. Conforms: no.
    pub gap_completes: bool,
    /// A stream whose process died is complete. Conforms: no.
    pub crash_completes: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            catalog_needs_capability: true,
            caches_catalog: true,
            catalog_within: 10 * SECOND,
            checks_namespace: true,
            declared_only: true,
            falls_back: false,
            seq_base: 1,
            hands_on_effort: true,
            reorders: true,
            drops_duplicates: true,
            first_copy_wins: true,
            window: 256,
            gap: SECOND,
            gap_needs_end: false,
            gap_fails: true,
            names_gap: true,
            end_freezes: true,
            end_below_delivered_fails: true,
            end_below_forgets: false,
            shows_interrupted: true,
            ends_must_agree: true,
            checks_generation: true,
            checks_chunks: true,
            cancels: true,
            interruption_fails: true,
            stall: 300 * SECOND,
            early_chunks_count: true,
            needs_acceptance: true,
            done_ends: false,
            end_errors_count: true,
            error_chunks_fail: true,
            lists_whole_names: true,
            keeps_failed_catalogs: false,
            fresh_ids: true,
            chunks_most: u64::MAX,
            strays_count: false,
            same_end_fails: false,
            gap_completes: false,
            crash_completes: false,
        }
    }
}

/// Surfaces, prompts, actions and forms.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Ui {
    /// There is something to show surfaces on. Conforms: either.
    pub available: bool,
    /// Surfaces and prompts need the capability. Conforms: yes.
    pub needs_capability: bool,
    /// What belongs to another generation is passed over. Conforms: yes.
    pub gates_generation: bool,
    /// What belongs to another session is passed over. Conforms: yes.
    pub gates_session: bool,
    /// What a surface holds is checked. Conforms: yes.
    pub checks_surfaces: bool,
    /// Markup in texts is shown as text. Conforms: yes.
    pub inert_markup: bool,
    /// An action is the plugin's to do. Conforms: yes.
    pub asks_actions: bool,
    /// What the user gives with an action is handed on. Conforms: yes.
    pub hands_on_args: bool,
    /// Only actions that were declared are invoked. Conforms: yes.
    pub declared_actions_only: bool,
    /// Forms go to whoever published them. Conforms: yes; else to the first plugin.
    pub forms_to_owner: bool,
    /// Session and generation of what the user does are the current ones. Conforms: yes.
    pub current_session: bool,
    /// What is answered after a reload is shown. Conforms: no.
    pub late_results_count: bool,
    /// Answers to prompts have the form of their kind. Conforms: yes; else all are texts.
    pub typed_answers: bool,
    /// A dismissed prompt is answered as cancelled. Conforms: yes; else without values.
    pub tells_cancelled: bool,
    /// What is shown names its plugin. Conforms: yes.
    pub names_plugins: bool,
}

impl Default for Ui {
    fn default() -> Self {
        Self {
            available: true,
            needs_capability: true,
            gates_generation: true,
            gates_session: true,
            checks_surfaces: true,
            inert_markup: true,
            asks_actions: true,
            hands_on_args: true,
            declared_actions_only: true,
            forms_to_owner: true,
            current_session: true,
            late_results_count: false,
            typed_answers: true,
            tells_cancelled: true,
            names_plugins: true,
        }
    }
}
