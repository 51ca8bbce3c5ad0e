//! What a host can do wrong with surfaces, prompts, actions and forms.

use sidecert_proto::reasonix::contract::{self, reason};

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-has-no-cards",
        &["reasonix/host-ui/surfaces-taken"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"host/ui/publish","params":{"kind":"card","surfaceId":"card"}}"#,
        ),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32602,"message":"no cards","data":{"reason":"invalid_params","retryable":false}}}"#,
        ),
    ),
    manner("host-hides-whose-surfaces", &["reasonix/host-ui/surfaces-name-plugin"], |it| {
        it.ui.names_plugins = false;
    }),
    manner(
        "host-takes-any-surface",
        &["reasonix/host-ui/markup-has-no-member", "reasonix/host-ui/documents-checked"],
        |it| it.ui.checks_surfaces = false,
    ),
    frame(
        "host-takes-unknown-kinds",
        &["reasonix/host-ui/unknown-kinds-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"host/ui/publish","params":{"kind":"sidecert"}}"#,
        ),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#),
    ),
    frame(
        "host-takes-unknown-prompts",
        &["reasonix/host-ui/unknown-prompts-refused"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"host/ui/request","params":{"kind":"prompt"}}"#,
        ),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"cancelled":true}}"#),
    ),
    manner(
        "host-takes-other-generations",
        &[
            "reasonix/host-ui/old-not-taken",
            "reasonix/host-ui/future-not-taken",
            "reasonix/host-ui/stale-before-payload",
        ],
        |it| it.ui.gates_generation = false,
    ),
    manner("host-takes-other-sessions", &["reasonix/host-ui/other-sessions-not-taken"], |it| {
        it.ui.gates_session = false;
    }),
    manner("host-asks-no-actions", &["reasonix/host-ui/declared-actions-asked"], |it| {
        it.ui.asks_actions = false;
    }),
    frame(
        "host-is-silent-about-capabilities",
        &["reasonix/host-ui/surfaces-need-capability"],
        Trigger::Refuses(contract::UI_PUBLISH, reason::CAPABILITY_NOT_DECLARED),
        Misdeed::Silence,
    ),
    frame(
        "host-answers-for-the-user",
        &["reasonix/host-ui/prompts-need-capability"],
        Trigger::Refuses(contract::UI_REQUEST, reason::CAPABILITY_NOT_DECLARED),
        Misdeed::Reply(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"cancelled":false,"values":{"value":true}}}"#,
        ),
    ),
    manner(
        "host-invokes-any-action",
        &["reasonix/host-ui/undeclared-actions-not-asked", "reasonix/host-lifecycle/odd-action-passed-over"],
        |it| {
            it.ui.declared_actions_only = false;
        },
    ),
    manner("host-acts-for-another-generation", &["reasonix/host-ui/session-carried"], |it| {
        it.ui.current_session = false;
    }),
    manner("host-gives-forms-to-the-first", &["reasonix/host-ui/forms-reach-owner"], |it| {
        it.ui.forms_to_owner = false;
    }),
    frame(
        "host-asks-no-choices",
        &["reasonix/host-ui/prompts-answered", "reasonix/host-ui/answers-of-their-kind"],
        Trigger::Receives(
            r#"{"id":{"$capture":"id"},"method":"host/ui/request","params":{"kind":"select"}}"#,
        ),
        Misdeed::Instead(
            r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"error":{"code":-32602,"message":"no choices","data":{"reason":"invalid_params","retryable":false}}}"#,
        ),
    ),
    manner("host-keeps-args", &["reasonix/host-ui/action-args-handed-on"], |it| {
        it.ui.hands_on_args = false;
    }),
    manner("host-answers-in-texts", &["reasonix/host-ui/answers-of-their-kind"], |it| {
        it.ui.typed_answers = false;
    }),
    frame(
        "host-answers-under-another-key",
        &["reasonix/host-ui/question-without-fields", "reasonix/host-ui/answers-of-their-kind"],
        Trigger::Answers(contract::UI_REQUEST),
        Misdeed::Edit(r#"{"value":true}"#, r#"{"answer":true}"#),
    ),
    manner("host-hides-that-it-was-dismissed", &["reasonix/host-ui/dismissed-is-cancelled"], |it| {
        it.ui.tells_cancelled = false;
    }),
];
