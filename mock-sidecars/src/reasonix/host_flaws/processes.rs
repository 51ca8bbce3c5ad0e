//! What a host can do wrong with processes: how they are started, ended, lost and started again.

use sidecert_proto::reasonix::contract;

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    manner("host-ends-guests-unasked", &["reasonix/host-processes/asked-to-end"], |it| it.ends.asks = false),
    manner("host-closes-before-it-asks", &["reasonix/host-processes/asked-to-end"], |it| {
        it.ends.closes_first = true;
    }),
    manner("host-keeps-the-input-open", &["reasonix/host-processes/input-closed"], |it| {
        it.ends.closes_input = false;
    }),
    frame(
        "host-speaks-behind-shutdown",
        &["reasonix/host-processes/nothing-after-shutdown"],
        Trigger::Asks(contract::SHUTDOWN),
        Misdeed::Also(r#"{"jsonrpc":"2.0","method":"extension/resources/changed","params":{"paths":["."]}}"#),
    ),
    manner(
        "host-leaves-what-stays",
        &[
            "reasonix/host-processes/lingering-killed",
            "reasonix/host-processes/escaped-child-holds-up-nothing",
        ],
        |it| it.ends.kills = false,
    ),
    manner("host-kills-what-leaves", &["reasonix/host-processes/leaving-not-killed"], |it| it.ends.grace = 0),
    manner("host-leaves-what-declines", &["reasonix/host-processes/declined-shutdown-goes-on"], |it| {
        it.ends.heeds_declined = true;
    }),
    manner(
        "host-waits-for-the-last-answer",
        &["reasonix/host-processes/unanswered-shutdown-goes-on"],
        |it| {
            it.ends.keeps_time = false;
        },
    ),
    manner("host-takes-an-end-for-a-crash", &["reasonix/host-processes/exit-on-shutdown-fine"], |it| {
        it.ends.exit_is_a_crash = true;
    }),
    manner("host-serves-behind-shutdown", &["reasonix/host-processes/late-requests-refused"], |it| {
        it.ends.refuses_requests = false;
    }),
    manner(
        "host-waits-for-the-dead",
        &[
            "reasonix/host-processes/exit-on-shutdown-fine",
            "reasonix/host-processes/death-fails-its-call",
            "reasonix/host-processes/death-fails-every-call",
            "reasonix/host-processes/deaf-guest-cut-off",
        ],
        |it| it.ends.crash_fails_calls = false,
    ),
    manner("host-calls-the-dead", &["reasonix/host-processes/calls-to-the-dead-fail"], |it| {
        it.ends.fails_fast = false;
    }),
    manner(
        "host-leaves-what-closed-its-output",
        &[
            "reasonix/host-processes/closed-output-is-a-crash",
            "reasonix/host-processes/deaf-guest-cut-off",
            "reasonix/host-transport/line-feed-counts",
            "reasonix/host-transport/limit-needs-no-line-feed",
        ],
        |it| {
            it.ends.kills_crashed = false;
        },
    ),
    manner("host-tells-a-crash-twice", &["reasonix/host-processes/crash-told-once"], |it| {
        it.ends.reports_crash_once = false;
    }),
    manner(
        "host-starts-again-by-itself",
        &["reasonix/host-processes/no-restart-by-itself", "reasonix/host-processes/no-restart-while-busy"],
        |it| it.ends.restarts = true,
    ),
    manner(
        "host-falls-back-to-another-model",
        &[
            "reasonix/host-processes/no-fallback-model",
            "reasonix/host-streams/beyond-end-fails",
            "reasonix/host-streams/ends-agree",
            "reasonix/host-streams/missing-chunk-named",
            "reasonix/host-streams/window-kept",
            "reasonix/host-streams/gap-interrupts",
            "reasonix/host-streams/missing-chunk-fails",
            "reasonix/host-streams/declined-fails",
            "reasonix/host-streams/ends-tell-failure",
            "reasonix/host-streams/error-chunk-fails",
            "reasonix/host-members/results-missing-refused",
            "reasonix/host-members/results-null-refused",
            "reasonix/host-members/results-types-kept",
            "reasonix/host-members/results-unknown-refused",
        ],
        |it| {
            it.streams.falls_back = true;
        },
    ),
    manner("host-waits-for-the-deaf", &["reasonix/host-processes/deaf-guest-cut-off"], |it| {
        it.ends.write_stall = 200_000_000;
    }),
    manner(
        "host-drops-who-is-late",
        &[
            "reasonix/host-processes/timeout-keeps-connection",
            "reasonix/host-errors/misdescribed-reason-distrusted",
            "reasonix/host-content/too-large-not-sent",
            "reasonix/host-events/slow-reader-spared",
        ],
        |it| {
            it.hooks.failure_ends = true;
        },
    ),
    manner("host-splits-arguments", &["reasonix/host-processes/started-without-a-shell"], |it| {
        it.plugins.keeps_args = false;
    }),
    manner("host-starts-shells", &["reasonix/host-processes/shell-or-relative-refused"], |it| {
        it.plugins.checks_commands = false;
    }),
    manner("host-lets-a-guest-name-itself", &["reasonix/host-processes/identity-prevails"], |it| {
        it.plugins.identity_prevails = false;
    }),
    manner("host-clears-the-environment", &["reasonix/host-processes/environment-inherited"], |it| {
        it.plugins.inherits_environment = false;
    }),
    manner("host-leaves-guests-when-terminated", &["reasonix/host-processes/terminated-leaves-none"], |it| {
        it.ends.in_order_when_terminated = false;
    }),
    manner(
        "host-leaves-guests-when-interrupted",
        &["reasonix/host-processes/interrupted-leaves-none"],
        |it| {
            it.ends.in_order_when_interrupted = false;
        },
    ),
    manner("host-forgets-what-crashed", &["reasonix/host-processes/reload-starts-again"], |it| {
        it.ends.reload_revives = false;
    }),
    manner("host-counts-no-reloads", &["reasonix/host-processes/reload-begins-a-generation"], |it| {
        it.ends.reload_counts = false;
    }),
    manner("host-reloads-in-a-turn", &["reasonix/host-processes/no-restart-while-busy"], |it| {
        it.ends.reload_needs_idle = false;
    }),
];
