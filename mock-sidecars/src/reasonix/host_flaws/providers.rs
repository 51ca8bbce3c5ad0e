//! What a host can do wrong with models and with what they say.

use sidecert_proto::reasonix::contract;

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    manner("host-shortens-names-of-models", &["reasonix/host-providers/models-named-by-plugin"], |it| {
        it.streams.lists_whole_names = false;
    }),
    manner("host-takes-models-of-other-names", &["reasonix/host-providers/other-names-skipped"], |it| {
        it.streams.checks_namespace = false;
    }),
    manner("host-asks-for-catalogs-again", &["reasonix/host-providers/catalog-asked-once"], |it| {
        it.streams.caches_catalog = false;
    }),
    manner(
        "host-keeps-failed-catalogs",
        &["reasonix/host-providers/catalog-asked-again-after-failure"],
        |it| it.streams.keeps_failed_catalogs = true,
    ),
    manner("host-waits-for-catalogs", &["reasonix/host-providers/catalog-time-kept"], |it| {
        it.streams.catalog_within = 300_000_000;
    }),
    manner(
        "host-opens-any-model",
        &[
            "reasonix/host-providers/catalog-needs-capability",
            "reasonix/host-providers/undeclared-not-opened",
        ],
        |it| (it.streams.catalog_needs_capability, it.streams.declared_only) = (false, false),
    ),
    manner("host-keeps-the-effort", &["reasonix/host-providers/effort-handed-on"], |it| {
        it.streams.hands_on_effort = false;
    }),
    frame(
        "host-asks-something-else",
        &["reasonix/host-streams/open-complete"],
        Trigger::Asks(contract::STREAM_OPEN),
        Misdeed::Edit("What does plain mean?", "What is plain?"),
    ),
    manner("host-counts-from-zero", &["reasonix/host-streams/counted-from-one"], |it| {
        it.streams.seq_base = 0;
    }),
    manner(
        "host-reuses-ids-of-streams",
        &["reasonix/host-streams/ids-fresh", "reasonix/host-streams/late-chunks-ignored"],
        |it| {
            it.streams.fresh_ids = false;
        },
    ),
    manner(
        "host-takes-chunks-as-they-come",
        &[
            "reasonix/host-streams/reordered",
            "reasonix/host-streams/waiting-duplicates-dropped",
            "reasonix/host-streams/late-chunk-fills",
            "reasonix/host-streams/same-end-again",
            "reasonix/host-streams/window-wide",
            "reasonix/host-streams/nothing-beyond-end",
            "reasonix/host-streams/missing-chunk-fails",
            "reasonix/host-streams/missing-chunk-named",
            "reasonix/host-streams/ends-agree",
        ],
        |it| {
            it.streams.reorders = false;
        },
    ),
    manner(
        "host-shows-chunks-twice",
        &["reasonix/host-streams/duplicates-dropped", "reasonix/host-streams/waiting-duplicates-dropped"],
        |it| it.streams.drops_duplicates = false,
    ),
    manner(
        "host-waits-for-no-chunk",
        &["reasonix/host-streams/late-chunk-fills", "reasonix/host-streams/same-end-again"],
        |it| {
            (it.streams.gap, it.streams.gap_needs_end) = (0, true);
        },
    ),
    manner("host-drops-early-chunks", &["reasonix/host-streams/early-chunks-count"], |it| {
        it.streams.early_chunks_count = false;
    }),
    manner(
        "host-takes-chunks-of-other-streams",
        &["reasonix/host-streams/unknown-streams-ignored", "reasonix/host-streams/late-chunks-ignored"],
        |it| it.streams.strays_count = true,
    ),
    manner(
        "host-takes-senseless-chunks",
        &[
            "reasonix/host-streams/malformed-chunks-dropped",
            "reasonix/host-members/chunks-missing-dropped",
            "reasonix/host-members/chunks-null-dropped",
            "reasonix/host-members/chunks-unknown-dropped",
        ],
        |it| {
            it.streams.checks_chunks = false;
        },
    ),
    manner("host-ends-at-done", &["reasonix/host-streams/done-ends-nothing"], |it| {
        it.streams.done_ends = true;
    }),
    manner("host-takes-one-end", &["reasonix/host-streams/same-end-again"], |it| {
        it.streams.same_end_fails = true;
    }),
    manner("host-keeps-few-chunks", &["reasonix/host-streams/window-wide"], |it| it.streams.window = 16),
    manner("host-keeps-any-chunk", &["reasonix/host-streams/window-kept"], |it| {
        it.streams.window = 1 << 20;
    }),
    manner(
        "host-goes-on-behind-ends",
        &["reasonix/host-streams/nothing-beyond-end", "reasonix/host-streams/beyond-end-fails"],
        |it| it.streams.end_freezes = false,
    ),
    manner(
        "host-passes-over-gaps",
        &[
            "reasonix/host-streams/missing-chunk-fails",
            "reasonix/host-streams/gap-interrupts",
            "reasonix/host-streams/missing-chunk-named",
        ],
        |it| it.streams.gap_completes = true,
    ),
    manner("host-hides-what-is-missing", &["reasonix/host-streams/missing-chunk-named"], |it| {
        it.streams.names_gap = false;
    }),
    manner("host-takes-the-first-end", &["reasonix/host-streams/ends-agree"], |it| {
        it.streams.ends_must_agree = false;
    }),
    manner("host-takes-failed-ends", &["reasonix/host-streams/ends-tell-failure"], |it| {
        it.streams.end_errors_count = false;
    }),
    manner(
        "host-needs-no-acceptance",
        &["reasonix/host-streams/declined-fails", "reasonix/host-streams/declined-cancelled"],
        |it| {
            it.streams.needs_acceptance = false;
        },
    ),
    manner(
        "host-cancels-nothing",
        &["reasonix/host-streams/declined-cancelled", "reasonix/host-streams/cancel-told"],
        |it| it.streams.cancels = false,
    ),
    manner("host-forgets-what-goes-on", &["reasonix/host-streams/end-below-chunks"], |it| {
        it.streams.end_below_forgets = true;
    }),
    manner("host-hides-what-came", &["reasonix/host-streams/crash-shows-what-came"], |it| {
        it.streams.shows_interrupted = false;
    }),
    manner(
        "host-takes-a-crash-for-the-end",
        &[
            "reasonix/host-streams/crash-interrupts",
            "reasonix/host-processes/deaf-guest-cut-off",
            "reasonix/host-processes/no-fallback-model",
        ],
        |it| {
            it.streams.crash_completes = true;
        },
    ),
    manner("host-loses-chunks", &["reasonix/host-streams/floods-whole"], |it| it.streams.chunks_most = 500),
    frame(
        "host-forgets-what-was-cached",
        &["reasonix/host-streams/every-type-taken"],
        Trigger::Says(r#"{"method":"extension/intercept","params":{"payload":{"usage":{}}}}"#),
        Misdeed::Edit(r#""cacheHitTokens":7"#, r#""cacheHitTokens":0"#),
    ),
    frame(
        "host-answers-another-call",
        &["reasonix/host-streams/calls-run-once"],
        Trigger::Asks(contract::STREAM_OPEN),
        Misdeed::Edit(r#""tool_call_id":"sidecert-call""#, r#""tool_call_id":"another-call""#),
    ),
    manner("host-shows-failed-answers", &["reasonix/host-streams/error-chunk-fails"], |it| {
        it.streams.error_chunks_fail = false;
    }),
];
