//! What a host can do wrong with manifests, and with what is installed.

use super::manner;
use crate::Flaw;

pub(super) const FLAWS: &[Flaw] = &[
    manner("host-takes-a-blank-command", &["reasonix/host-manifest/command-demanded"], |it| {
        it.plugins.unchecked = "command";
    }),
    manner("host-takes-any-priority", &["reasonix/host-manifest/priority-in-range"], |it| {
        it.plugins.unchecked = "priority";
    }),
    manner("host-takes-negative-times", &["reasonix/host-manifest/timeout-not-negative"], |it| {
        it.plugins.unchecked = "timeoutMillis";
    }),
    manner("host-takes-any-point", &["reasonix/host-manifest/points-known"], |it| {
        it.plugins.unchecked = "intercepts";
    }),
    manner(
        "host-takes-any-slot",
        &["reasonix/host-manifest/slots-known", "reasonix/host-slots/odd-slots-refused"],
        |it| {
            it.plugins.unchecked = "replaces";
        },
    ),
    manner("host-takes-any-capability", &["reasonix/host-manifest/capabilities-known"], |it| {
        it.plugins.unchecked = "capabilities";
    }),
    manner("host-takes-any-member", &["reasonix/host-manifest/members-known"], |it| {
        it.plugins.unchecked = "members";
    }),
    manner(
        "host-starts-what-has-no-version",
        &["reasonix/host-manifest/api-version-known", "reasonix/host-manifest/unversioned-not-started"],
        |it| {
            it.plugins.unchecked = "apiVersion";
            it.plugins.starts_unversioned = true;
        },
    ),
    manner("host-takes-any-api-version", &["reasonix/host-manifest/api-version-known"], |it| {
        it.plugins.unchecked = "apiVersion";
    }),
    super::lifecycle::only(
        super::lifecycle::FIRST,
        manner("host-refuses-minor-versions", &["reasonix/host-manifest/minor-version-taken"], |it| {
            it.plugins.takes_minors = false;
        }),
    ),
    manner("host-takes-blank-arguments", &["reasonix/host-manifest/args-and-env-filled"], |it| {
        it.plugins.unchecked = "args";
    }),
    manner("host-takes-nameless-variables", &["reasonix/host-manifest/args-and-env-filled"], |it| {
        it.plugins.unchecked = "env";
    }),
    manner("host-starts-what-is-disabled", &["reasonix/host-manifest/disabled-not-started"], |it| {
        it.plugins.enabled_only = false;
    }),
    manner("host-starts-what-a-project-names", &["reasonix/host-manifest/project-not-started"], |it| {
        it.plugins.installed_only = false;
    }),
    manner("host-starts-what-has-no-runtime", &["reasonix/host-manifest/nothing-without-runtime"], |it| {
        it.plugins.starts_bare = true;
    }),
    manner("host-has-another-default-priority", &["reasonix/host-manifest/priority-zero-by-default"], |it| {
        it.plugins.default_priority = 2;
    }),
    manner(
        "host-hides-full-trust",
        &["reasonix/host-manifest/trust-in-preview", "reasonix/host-manifest/trust-in-details"],
        |it| it.plugins.shows_trust = false,
    ),
    manner("host-asks-before-it-starts", &["reasonix/host-manifest/installed-is-allowed"], |it| {
        it.plugins.asks_again = true;
    }),
];
