//! What a host can do wrong with owners of slots and with events.

use sidecert_proto::reasonix::contract::{self, point};

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    manner(
        "host-lets-slots-be-shared",
        &["reasonix/host-slots/one-owner", "reasonix/host-slots/claimed-twice"],
        |it| it.plugins.one_owner = false,
    ),
    manner(
        "host-knows-no-slots-of-tools",
        &[
            "reasonix/host-slots/slots-claimable",
            "reasonix/host-slots/one-owner",
            "reasonix/host-manifest/slots-known",
        ],
        |it| it.plugins.takes_named_slots = false,
    ),
    manner(
        "host-takes-odd-slots",
        &["reasonix/host-slots/odd-slots-refused", "reasonix/host-manifest/slots-known"],
        |it| {
            it.plugins.takes_odd_slots = true;
        },
    ),
    manner(
        "host-asks-owners-first",
        &[
            "reasonix/host-slots/owner-last",
            "reasonix/host-slots/owner-not-after-block",
            "reasonix/host-events/final-payload",
        ],
        |it| it.hooks.owner_last = false,
    ),
    manner("host-asks-owners-of-what-is-blocked", &["reasonix/host-slots/owner-not-after-block"], |it| {
        it.hooks.owner_after_block = true;
    }),
    manner(
        "host-goes-on-without-owners",
        &[
            "reasonix/host-slots/owner-failure-fails",
            "reasonix/host-slots/late-owner-fails",
            "reasonix/host-slots/crashed-owner-fails",
            "reasonix/host-slots/phases-match",
        ],
        |it| it.hooks.owner_fails = false,
    ),
    manner(
        "host-never-asks-owners",
        &[
            "reasonix/host-slots/owner-last",
            "reasonix/host-slots/owner-continues",
            "reasonix/host-slots/owner-blocks",
            "reasonix/host-slots/owner-failure-fails",
            "reasonix/host-slots/late-owner-fails",
            "reasonix/host-slots/phases-match",
            "reasonix/host-events/final-payload",
            "reasonix/host-slots/permission-owner-denies",
            "reasonix/host-slots/permission-owner-allows",
            "reasonix/host-slots/system-prompt-owner",
            "reasonix/host-slots/prompt-asked-once",
        ],
        |it| it.hooks.asks_owners = false,
    ),
    manner("host-takes-owners-for-optional", &["reasonix/host-slots/owner-required"], |it| {
        it.hooks.owners_are_required = false;
    }),
    manner("host-does-not-heed-owners-of-tools", &["reasonix/host-slots/tool-owner-rules"], |it| {
        it.hooks.heeds_tool_owners = false;
    }),
    manner("host-hides-what-failed", &["reasonix/host-slots/frontend-owner-failure-fails"], |it| {
        it.hooks.frontend_failures_count = false;
    }),
    manner("host-takes-any-phase", &["reasonix/host-slots/phases-match"], |it| {
        it.hooks.checks_phases = false;
    }),
    frame(
        "host-asks-about-events",
        &["reasonix/host-events/notifications"],
        Trigger::Asks(contract::EVENT),
        Misdeed::Edit(r#""method":"#, r#""id":900001,"method":"#),
    ),
    manner("host-tells-nothing-of-requests", &["reasonix/host-events/every-point-told"], |it| {
        it.hooks.untold = &[point::AGENT_BEFORE_START];
    }),
    manner("host-tells-nothing-of-summaries", &["reasonix/host-events/compaction-told"], |it| {
        it.hooks.untold = &[point::COMPACTION_COMPLETE];
    }),
    manner("host-tells-nothing-of-other-conversations", &["reasonix/host-events/rotation-told"], |it| {
        it.hooks.untold = &[point::SESSION_ROTATE];
    }),
    manner(
        "host-tells-what-came",
        &["reasonix/host-slots/prompt-asked-once", "reasonix/host-events/final-payload"],
        |it| {
            it.hooks.events_are_final = false;
        },
    ),
    manner("host-tells-owners-twice", &["reasonix/host-events/told-once"], |it| {
        it.hooks.events_once = false;
    }),
    manner("host-drops-events-in-silence", &["reasonix/host-events/dropped-told"], |it| {
        it.hooks.tells_overflow = false;
    }),
    manner("host-builds-prompts-twice", &["reasonix/host-slots/prompt-asked-once"], |it| {
        it.hooks.builds_prompt_once = false;
    }),
    manner("host-waits-for-readers", &["reasonix/host-events/slow-reader-spared"], |it| {
        it.hooks.events_wait = true;
    }),
    manner(
        "host-takes-any-answer",
        &[
            "reasonix/host-events/read-only",
            "reasonix/host-envelope/first-answer-counts",
            "reasonix/host-envelope/late-answers-ignored",
            "reasonix/host-interception/permission-waits",
        ],
        |it| it.frames.unknown_ids_resolve = true,
    ),
];
