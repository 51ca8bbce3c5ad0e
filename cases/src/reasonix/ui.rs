//! "Structured UI": what the guest shows, what it asks the user, and the actions that it offers.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::quoted;
use sidecert_proto::reasonix::{contract, host, sample, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Envelope;
use sidecert_proto::script::{Need, Process, Script, ScriptDef};
use sidecert_proto::verdict::{Sight, Why};

use super::lifecycle::EMPTY_MANIFEST;
use super::sights::{BAD_PARAMS, SERVED, became, request, result_of, sdk, specified};
use super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, provoked_intercept};

const UI: Cite = Cite::Seed("结构化 UI", "Structured UI");

const ACCEPTED: Seen = Seen("answered with accepted");
const REFUSED: Seen = Seen("answered that it was not accepted");
const SILENT: Seen = Seen("it shows and asks nothing");
const SHOWN: Seen = Seen("it shows something");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/ui/shows-when-it-should", Guest)
        .says("A guest that means to show something publishes it.", &[UI])
        .when("ui")
        .accepts(&[specified(SHOWN)])
        .checked(After(&SURFACES, shows)),
    must("reasonix/ui/bound-to-session", Guest)
        .says(
            "A surface names the session and the generation that the guest was given.",
            &[UI, Cite::Schema("/$defs/UIPublishParams")],
        )
        .when("ui")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::SURFACES_BOUND, &SURFACES)),
    must("reasonix/ui/structured-data-only", Guest)
        .says("A surface is data: no script, no markup, no style, no address that acts by itself.", &[UI])
        .when("ui")
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::STRUCTURED_ONLY, &SURFACES)),
    must("reasonix/ui/markdown-tame", Guest)
        .says("The Markdown of a surface has no markup and loads nothing from elsewhere.", &[])
        .when("ui")
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::MARKDOWN_TAME, &SURFACES)),
    must("reasonix/ui/payloads-fit", Guest)
        .says("The payload of a surface has the form that its kind has.", &[])
        .when("ui")
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::DOCUMENTS_FIT, &SURFACES)),
    must("reasonix/ui/declared-action-accepted", Guest)
        .says(
            "An action that the guest declares is accepted when it is called.",
            &[UI, Cite::Schema("/$defs/UIActionResult")],
        )
        .when("ui")
        .accepts(&[specified(ACCEPTED)])
        .checked(After(&DECLARED_ACTION, |x| accepted(x, "declared", true))),
    must("reasonix/ui/unknown-action-refused", Guest)
        .says("An action that there is not is answered, and not accepted.", &[])
        .when("ui")
        .accepts(&[sdk(REFUSED)])
        .checked(After(&UNKNOWN_ACTION, |x| accepted(x, "unknown", false))),
    must("reasonix/ui/values-demanded", Guest)
        .says(
            "A form whose values are null is refused.",
            &[Cite::Schema("/$defs/UISubmitParams/properties/values")],
        )
        .when("ui")
        .accepts(&[specified(BAD_PARAMS)])
        .checked(After(&BAD_SUBMIT, |x| became(x, "null-values"))),
    must("reasonix/ui/dismissal-handled", Guest)
        .says("A question that the user dismisses is no fault: what asked it goes on.", &[])
        .when("ui")
        .accepts(&[sdk(SERVED)])
        .checked(After(&PROMPT, |x| became(x, "prompt"))),
    must("reasonix/ui/nothing-without-ui", Guest)
        .says("Where the manifest has no ui capability, the guest shows and asks nothing.", &[])
        .when("ui")
        .accepts(&[sdk(SILENT)])
        .checked(After(&EMPTY_MANIFEST, silent_without_ui)),
];

/// Makes the guest show something.
static SURFACES: ScriptDef = ScriptDef {
    name: "surfaces",
    process: Process::Tour,
    needs: &[Need::Declared("ui"), Need::Provocation("publish")],
    build: |setting| {
        let params = provoked_intercept(setting, "publish", 5_000);
        Script::new("surfaces")
            .request("publish", contract::INTERCEPT, &params)
            .answer("publish")
            .fence()
            .settle()
    },
};

fn shows(exchange: &Exchange<'_>) -> Sight {
    let shown = exchange.from_target().find(|(_, said)| {
        matches!(&said.envelope, Ok(Envelope::Request { method, .. }) if method == contract::UI_PUBLISH)
    });
    match shown {
        Some((entry, _)) => Sight::Saw(SHOWN, entry.at),
        None => exchange.nothing_came("publish", "it showed nothing"),
    }
}

/// Makes the guest ask the user something, who dismisses it.
static PROMPT: ScriptDef = ScriptDef {
    name: "prompt",
    process: Process::Tour,
    needs: &[Need::Declared("ui"), Need::Exercise("prompts"), Need::Provocation("prompt")],
    build: |setting| {
        let params = provoked_intercept(setting, "prompt", 5_000);
        Script::new("prompt").request("prompt", contract::INTERCEPT, &params).answer("prompt").fence()
    },
};

/// Calls the first action that the guest declares.
static DECLARED_ACTION: ScriptDef = ScriptDef {
    name: "declared-action",
    process: Process::Tour,
    needs: &[Need::Declared("ui"), Need::Exercise("ui-actions")],
    build: |setting| {
        let mut params = sample::params(setting, contract::UI_ACTION);
        params["actionId"] = host::offered(setting, "ui").unwrap_or(sample::NOTHING).into();
        Script::new("declared-action")
            .request("declared", contract::UI_ACTION, &params.to_string())
            .fence()
            .settle()
    },
};

/// Calls an action that there is not.
static UNKNOWN_ACTION: ScriptDef = ScriptDef {
    name: "unknown-action",
    process: Process::Tour,
    needs: &[Need::Declared("ui")],
    build: |setting| {
        let params = sample::params(setting, contract::UI_ACTION).to_string();
        Script::new("unknown-action").request("unknown", contract::UI_ACTION, &params).fence().settle()
    },
};

fn accepted(exchange: &Exchange<'_>, label: &str, expected: bool) -> Sight {
    match result_of(exchange, label) {
        Ok((result, at)) => match result.get("accepted").and_then(|it| it.as_bool()) {
            Some(true) if expected => Sight::Saw(ACCEPTED, at),
            Some(false) if !expected => Sight::Saw(REFUSED, at),
            _ => Sight::SawOther {
                at,
                actual: format!("the result {}", sidecert_proto::exchange::short(result.raw())),
            },
        },
        Err(sight) => sight,
    }
}

/// Sends a form without values.
static BAD_SUBMIT: ScriptDef = ScriptDef {
    name: "bad-submit",
    process: Process::Tour,
    needs: &[Need::Declared("ui")],
    build: |setting| {
        let params = format!(
            r#"{{"surfaceId":"sidecert-none","sessionId":{},"generation":1,"values":null}}"#,
            quoted(&host::session_id(setting.seed))
        );
        super::sights::oddities(
            "bad-submit",
            [("null-values", "its values are null", request("null-values", contract::UI_SUBMIT, &params))],
        )
    },
};

fn silent_without_ui(exchange: &Exchange<'_>) -> Sight {
    let asked = exchange.from_target().find(|(_, said)| {
        matches!(&said.envelope, Ok(Envelope::Request { method, .. })
            if matches!(&**method, contract::UI_PUBLISH | contract::UI_REQUEST))
    });
    if let Some((entry, said)) = asked {
        let method = said.root.get("method").map_or("", |method| method.raw());
        return Sight::SawOther { at: entry.at, actual: sidecert_proto::exchange::short(method) };
    }
    // Silence is worth something only where there was an occasion to speak.
    match exchange.answer_to("publish") {
        Some(answer) => Sight::Saw(SILENT, answer.at),
        None if exchange.sent("publish").is_some() => exchange.nothing_came("publish", "no answer"),
        None => Sight::Undecided(Why::NotProvoked(
            "the provocation `publish`: it shows a surface of each kind before it rules on this intercept"
                .into(),
        )),
    }
}
