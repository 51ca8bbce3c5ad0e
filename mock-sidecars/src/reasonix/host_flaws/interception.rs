//! What a host can do wrong when it asks its guests.

use sidecert_proto::reasonix::contract::{self, point};

use super::{frame, manner};
use crate::reasonix::host::Check;
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    manner(
        "host-repeats-numbers",
        &["reasonix/host-interception/sequence-counted", "reasonix/host-interception/counted-from-one"],
        |it| it.hooks.seq_step = 0,
    ),
    frame(
        "host-misnames-a-count",
        &["reasonix/host-interception/payloads-fit"],
        Trigger::Asks(contract::INTERCEPT),
        Misdeed::Edit(r#""toolCount":"#, r#""tools":"#),
    ),
    manner("host-skips-numbers", &["reasonix/host-interception/counted-from-one"], |it| {
        it.hooks.seq_step = 2;
    }),
    manner(
        "host-asks-higher-priorities-first",
        &[
            "reasonix/host-interception/lower-priority-first",
            "reasonix/host-manifest/priority-zero-by-default",
        ],
        |it| {
            it.hooks.lower_first = false;
        },
    ),
    manner("host-asks-in-reverse", &["reasonix/host-interception/equal-priorities-by-name"], |it| {
        it.hooks.names_ascend = false;
    }),
    manner(
        "host-asks-all-at-once",
        &[
            "reasonix/host-interception/one-after-the-other",
            "reasonix/host-interception/replacement-passed-on",
            "reasonix/host-interception/block-ends-chain",
            "reasonix/host-interception/permission-ends-chain",
        ],
        |it| it.hooks.serial = false,
    ),
    manner("host-gives-all-the-same", &["reasonix/host-interception/replacement-passed-on"], |it| {
        it.hooks.passes_replacements = false;
    }),
    manner("host-replaces-on-continue", &["reasonix/host-interception/continue-keeps-payload"], |it| {
        it.hooks.continue_keeps = false;
    }),
    manner(
        "host-passes-over-blocks",
        &[
            "reasonix/host-interception/block-stops",
            "reasonix/host-interception/block-needs-no-reason",
            "reasonix/host-interception/block-reason-told",
            "reasonix/host-transport/noise-loses-no-answer",
            "reasonix/host-transport/unended-answer-counts",
            "reasonix/host-slots/owner-blocks",
            "reasonix/host-slots/tool-owner-rules",
        ],
        |it| it.hooks.blocks = false,
    ),
    manner("host-asks-on-behind-a-block", &["reasonix/host-interception/block-ends-chain"], |it| {
        it.hooks.block_ends_chain = false;
    }),
    manner("host-wants-reasons", &["reasonix/host-interception/block-needs-no-reason"], |it| {
        it.hooks.blocks_unexplained = false;
    }),
    manner("host-hides-reasons", &["reasonix/host-interception/block-reason-told"], |it| {
        it.hooks.tells_block_reasons = false;
    }),
    manner(
        "host-waits-for-ever",
        &["reasonix/host-interception/time-kept", "reasonix/host-events/slow-reader-spared"],
        |it| it.hooks.keeps_time = false,
    ),
    manner(
        "host-goes-on-without-required-guests",
        &[
            "reasonix/host-interception/required-failure-fails",
            "reasonix/host-interception/time-kept",
            "reasonix/host-interception/allow-only-for-permissions",
            "reasonix/host-interception/allow-nowhere-else",
            "reasonix/host-interception/tools-allowed-as-permissions-only",
            "reasonix/host-interception/odd-rulings-fail",
            "reasonix/host-interception/replacement-demanded",
            "reasonix/host-interception/replacements-checked",
            "reasonix/host-interception/unknown-roles-refused",
            "reasonix/host-interception/nameless-tools-refused",
            "reasonix/host-interception/calls-without-id-refused",
            "reasonix/host-interception/schema-binds-replacements",
            "reasonix/host-interception/tool-replacement-checked",
            "reasonix/host-slots/owner-required",
            "reasonix/host-content/unknown-reference-refused",
            "reasonix/host-content/odd-references-refused",
            "reasonix/host-content/too-large-not-sent",
            "reasonix/host-content/large-reference-refused",
            "reasonix/host-content/digests-written-exactly",
            "reasonix/host-errors/misdescribed-reason-distrusted",
            "reasonix/host-errors/more-data-tolerated",
            "reasonix/host-errors/plain-errors-taken",
            "reasonix/host-members/null-parameters-refused",
            "reasonix/host-members/results-letters-exact",
            "reasonix/host-members/results-missing-refused",
            "reasonix/host-members/results-null-refused",
            "reasonix/host-members/results-types-kept",
            "reasonix/host-members/results-unknown-refused",
        ],
        |it| it.hooks.required_fails = false,
    ),
    manner(
        "host-follows-rulings-anywhere",
        &[
            "reasonix/host-interception/allow-only-for-permissions",
            "reasonix/host-interception/deny-only-for-permissions",
            "reasonix/host-interception/allow-nowhere-else",
            "reasonix/host-interception/deny-nowhere-else",
            "reasonix/host-interception/tools-allowed-as-permissions-only",
            "reasonix/host-interception/tools-denied-as-permissions-only",
        ],
        |it| it.hooks.rulings_anywhere = true,
    ),
    manner(
        "host-takes-any-replacement",
        &[
            "reasonix/host-interception/replacements-checked",
            "reasonix/host-interception/bad-replacement-not-used",
            "reasonix/host-slots/owner-failure-fails",
            "reasonix/host-slots/frontend-owner-failure-fails",
            "reasonix/host-slots/phases-match",
            "reasonix/host-members/members-fit",
            "reasonix/host-members/null-parameters-refused",
        ],
        |it| it.hooks.replacements = Check::Nothing,
    ),
    manner(
        "host-passes-over-misfits",
        &[
            "reasonix/host-interception/replacements-checked",
            "reasonix/host-interception/unknown-roles-refused",
            "reasonix/host-interception/nameless-tools-refused",
            "reasonix/host-interception/calls-without-id-refused",
            "reasonix/host-interception/schema-binds-replacements",
            "reasonix/host-interception/tool-replacement-checked",
            "reasonix/host-slots/owner-failure-fails",
            "reasonix/host-slots/phases-match",
            "reasonix/host-members/null-parameters-refused",
        ],
        |it| it.hooks.misfits_fail = false,
    ),
    manner("host-replaces-by-nothing", &["reasonix/host-interception/replacement-demanded"], |it| {
        it.hooks.needs_replacement = false;
    }),
    manner(
        "host-takes-odd-rulings",
        &[
            "reasonix/host-interception/odd-rulings-contained",
            "reasonix/host-interception/odd-rulings-fail",
            "reasonix/host-members/action-results-strict",
            "reasonix/host-members/declared-blank-refused",
            "reasonix/host-members/declared-empty-refused",
            "reasonix/host-members/declared-missing-refused",
            "reasonix/host-members/declared-null-refused",
            "reasonix/host-members/declared-types-kept",
            "reasonix/host-members/declared-unknown-refused",
            "reasonix/host-members/results-missing-refused",
            "reasonix/host-members/results-null-refused",
            "reasonix/host-members/results-types-kept",
            "reasonix/host-members/results-unknown-refused",
        ],
        |it| it.frames.takes_bad_results = true,
    ),
    manner(
        "host-fails-with-optional-guests",
        &[
            "reasonix/host-interception/optional-failure-skipped",
            "reasonix/host-events/slow-reader-spared",
            "reasonix/host-interception/optional-warned-once",
            "reasonix/host-interception/deny-only-for-permissions",
            "reasonix/host-interception/deny-nowhere-else",
            "reasonix/host-interception/tools-denied-as-permissions-only",
            "reasonix/host-interception/bad-replacement-not-used",
            "reasonix/host-interception/odd-rulings-contained",
        ],
        |it| it.hooks.optional_fails = true,
    ),
    manner("host-warns-each-time", &["reasonix/host-interception/optional-warned-once"], |it| {
        it.hooks.warns_once = false;
    }),
    manner(
        "host-denies-all-the-same",
        &["reasonix/host-interception/allow-prevails", "reasonix/host-interception/allow-told"],
        |it| it.hooks.allow_prevails = false,
    ),
    manner(
        "host-allows-all-the-same",
        &["reasonix/host-interception/deny-prevails", "reasonix/host-slots/permission-owner-denies"],
        |it| it.hooks.deny_prevails = false,
    ),
    manner("host-asks-on-behind-a-deny", &["reasonix/host-interception/permission-ends-chain"], |it| {
        it.hooks.ruling_ends_chain = false;
    }),
    manner("host-asks-on-behind-an-allow", &["reasonix/host-interception/permission-ends-chain"], |it| {
        it.hooks.allow_ends_chain = false;
    }),
    manner("host-runs-what-it-is-given", &["reasonix/host-interception/tool-replacement-checked"], |it| {
        it.hooks.checks_arguments = false;
    }),
    manner(
        "host-runs-tools-meanwhile",
        &[
            "reasonix/host-interception/tools-allowed-as-permissions-only",
            "reasonix/host-interception/operation-waits",
            "reasonix/host-interception/tool-replacement-checked",
            "reasonix/host-slots/tool-owner-rules",
        ],
        |it| it.hooks.unwaited = &[point::TOOL_BEFORE],
    ),
    manner(
        "host-runs-tools-meanwhile",
        &[
            "reasonix/host-interception/permission-waits",
            "reasonix/host-interception/allow-prevails",
            "reasonix/host-interception/allow-told",
            "reasonix/host-interception/deny-prevails",
            "reasonix/host-slots/permission-owner-denies",
        ],
        |it| it.hooks.unwaited = &[point::PERMISSION_DECISION],
    ),
    manner(
        "host-asks-the-model-meanwhile",
        &[
            "reasonix/host-interception/allow-nowhere-else",
            "reasonix/host-interception/request-replaced-once",
            "reasonix/host-interception/request-waits",
            "reasonix/host-interception/unknown-roles-refused",
            "reasonix/host-interception/nameless-tools-refused",
            "reasonix/host-interception/calls-without-id-refused",
            "reasonix/host-interception/schema-binds-replacements",
            "reasonix/host-members/null-parameters-refused",
        ],
        |it| it.hooks.unwaited = &[point::PROVIDER_REQUEST],
    ),
    manner("host-skips-a-point", &["reasonix/host-interception/asked-at-points"], |it| {
        it.hooks.skips = &[point::AGENT_BEFORE_START];
    }),
    manner("host-skips-the-end-of-sessions", &["reasonix/host-interception/asked-without-slot"], |it| {
        it.hooks.skips = &[point::SESSION_END];
    }),
    manner("host-asks-nobody-about-summaries", &["reasonix/host-interception/compaction-asked"], |it| {
        it.hooks.skips = &[point::COMPACTION_COMPLETE];
    }),
    manner("host-asks-subscribers-only", &["reasonix/host-interception/asked-by-manifest"], |it| {
        it.hooks.by_manifest = false;
    }),
    manner(
        "host-asks-everyone",
        &[
            "reasonix/host-slots/prompt-asked-once",
            "reasonix/host-streams/crash-shows-what-came",
            "reasonix/host-interception/asked-where-installed",
            "reasonix/host-slots/owner-continues",
            "reasonix/host-slots/owner-failure-fails",
        ],
        |it| it.hooks.asks_everyone = true,
    ),
    manner("host-gives-inputs-less-time", &["reasonix/host-interception/short-time"], |it| {
        it.hooks.short_millis = 4_000;
    }),
    manner(
        "host-gives-contexts-less-time",
        &[
            "reasonix/host-interception/long-time",
            "reasonix/host-interception/compaction-time",
            "reasonix/host-slots/prompt-time",
            "reasonix/host-slots/session-time",
        ],
        |it| it.hooks.long_millis = 20_000,
    ),
    manner("host-gives-requests-less-time", &["reasonix/host-interception/other-time"], |it| {
        it.hooks.other_millis = 20_000;
    }),
    manner(
        "host-passes-over-times",
        &["reasonix/host-interception/manifest-time", "reasonix/host-events/slow-reader-spared"],
        |it| it.hooks.manifest_millis = false,
    ),
    manner("host-gives-any-time", &["reasonix/host-interception/times-within-ceiling"], |it| {
        it.hooks.most_millis = 600_000;
    }),
    manner("host-keeps-replaced-contexts", &["reasonix/host-interception/context-replaced-once"], |it| {
        it.hooks.context_is_ephemeral = false;
    }),
    manner(
        "host-keeps-replaced-requests",
        &[
            "reasonix/host-interception/request-replaced-once",
            "reasonix/host-interception/context-replaced-once",
        ],
        |it| it.hooks.request_is_ephemeral = false,
    ),
    manner("host-forgets-replaced-answers", &["reasonix/host-interception/response-kept"], |it| {
        it.hooks.response_is_kept = false;
    }),
];
