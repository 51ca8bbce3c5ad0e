//! What the reference host decides, one member a decision: by default what the specification says, else what the
//! released implementation does, or a flaw.

use sidecert_proto::machine::Micros;

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
    /// An answer to nothing before `initialized` ends the connection. Conforms: yes.
    pub responses_poison: bool,
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
            responses_poison: true,
            traffic_poisons: true,
            checks_version: true,
            lenient_version: false,
            checks_subscriptions: true,
            checks_replaces: true,
            checks_capabilities: true,
            checks_namespace: true,
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
    /// Arguments are handed on as they stand. Conforms: yes; else they are split at spaces.
    pub keeps_args: bool,
    /// What is described shows that code of the plugin is fully trusted. Conforms: yes.
    pub shows_trust: bool,
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            checks_manifests: true,
            enabled_only: true,
            installed_only: true,
            takes_odd_slots: false,
            takes_named_slots: true,
            one_owner: true,
            checks_commands: true,
            expands_root: true,
            identity_prevails: true,
            keeps_args: true,
            shows_trust: true,
        }
    }
}

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
    /// What a guest subscribed to counts, and not its manifest. Conforms: no.
    pub subscriptions_count: bool,
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
    /// Points at which the operation does not wait for the rulings. Conforms: none.
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
    /// A replaced context is for one request. Conforms: yes; else the conversation has it.
    pub context_passes: bool,
    /// A replaced answer is kept. Conforms: yes; else it is only shown.
    pub keeps_responses: bool,
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
    /// Whoever owns a slot is required at every point. Conforms: yes.
    pub owners_are_required: bool,
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
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            chain_everywhere: true,
            skips: &[],
            asks_everyone: false,
            subscriptions_count: false,
            session_points: true,
            input_event: true,
            lower_first: true,
            names_ascend: true,
            serial: true,
            unwaited: &[],
            passes_replacements: true,
            continue_keeps: true,
            block_ends_chain: true,
            blocks: true,
            blocks_unexplained: true,
            tells_block_reasons: true,
            ruling_ends_chain: true,
            rulings_anywhere: false,
            allow_prevails: true,
            deny_prevails: true,
            needs_replacement: true,
            misfits_fail: true,
            checks_phases: true,
            checks_arguments: true,
            context_passes: true,
            keeps_responses: true,
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
            owners_are_required: true,
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
    /// Two different ends fail. Conforms: yes.
    pub ends_must_agree: bool,
    /// Chunks of another generation are dropped, where the contract has one in them. Conforms: yes.
    pub checks_generation: bool,
    /// A chunk that breaks the schema is dropped. Conforms: yes.
    pub checks_chunks: bool,
    /// The guest is told when its stream is not wanted any more. Conforms: yes.
    pub cancels: bool,
    /// What comes after that is passed over. Conforms: yes.
    pub cancel_closes: bool,
    /// A stream that broke off fails the turn. Conforms: yes; else what came of it counts.
    pub interruption_fails: bool,
    /// How long a stream may be silent. Conforms: any.
    pub stall: Micros,
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
            ends_must_agree: true,
            checks_generation: true,
            checks_chunks: true,
            cancels: true,
            cancel_closes: true,
            interruption_fails: true,
            stall: 300 * SECOND,
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
            declared_actions_only: true,
            forms_to_owner: true,
            current_session: true,
            late_results_count: false,
            typed_answers: true,
            tells_cancelled: true,
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
            refuses_requests: true,
            crash_fails_calls: true,
            fails_fast: true,
            restarts: false,
            reports_crash_once: true,
            kills_crashed: true,
            write_stall: 10 * SECOND,
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
