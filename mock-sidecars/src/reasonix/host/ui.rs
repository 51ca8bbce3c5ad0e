//! Surfaces and prompts of guests, what the user does with them, and everything that is shown piece by piece.

use std::rc::Rc;

use serde_json::{Map, Value, json};
use sidecert_proto::json::Node;
use sidecert_proto::machine::{LinkId, Micros};
use sidecert_proto::reasonix::contract::{self, point, reason};

use super::core::{Core, Failure, Shared, text};
use super::frames::{grant, member, refuse};
use super::hooks::{self, Stop};
use super::session::sparse;

/// How long a guest has for what the user did, in microseconds.
const DONE_WITHIN: Micros = 60_000_000;

/// A question to the user.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    link: LinkId,
    /// The id of the request, as it was written.
    id: String,
    /// What is asked for, and in which form: key and kind.
    fields: Vec<(String, String)>,
}

/// How many requests of a guest wait for the user.
pub(super) fn serving(core: &Core<'_>, link: LinkId) -> usize {
    core.with(|state| state.prompts.values().filter(|prompt| prompt.link == link).count())
}

/// What of a request does not let it through: an error, or nothing but that it is too late.
fn refused(core: &Core<'_>, link: LinkId, params: Node<'_>) -> Option<Result<(), String>> {
    let manners = &core.manners.ui;
    if !manners.available {
        return Some(Err(core.reasoned(reason::UNKNOWN_METHOD, "there is nothing to show it on")));
    }
    let capable = core.on(link, |it| it.plugin.runtime.as_ref().is_some_and(|it| it.has("ui")));
    if capable != Some(true) && manners.needs_capability {
        let text = "its manifest does not have the capability ui";
        return Some(Err(core.reasoned(reason::CAPABILITY_NOT_DECLARED, text)));
    }
    let generation = params.get("generation").and_then(Node::as_u64);
    let current = core.session(|session| (session.generation, session.id.clone()));
    let (current, session) = current.unwrap_or_default();
    let stale = (manners.gates_generation && generation != Some(current))
        || (manners.gates_session && member(params, "sessionId") != session);
    stale.then_some(Ok(()))
}

/// Shows a surface, unless it is too late.
pub(super) fn published(core: &Shared<'_>, link: LinkId, id: &str, params: Node<'_>) {
    match refused(core, link, params) {
        Some(Err(error)) => return refuse(core, link, id, &error),
        Some(Ok(())) => return grant(core, link, id, r#"{"accepted":false}"#),
        None => {}
    }
    let (kind, surface) = (member(params, "kind").into_owned(), member(params, "surfaceId").into_owned());
    let payload = match document(core, &kind, params) {
        Ok(payload) => payload,
        Err(says) => return refuse(core, link, id, &core.reasoned(reason::INVALID_PARAMS, &says)),
    };
    grant(core, link, id, r#"{"accepted":true}"#);
    let Some(plugin) = core.on(link, |it| it.plugin.name.clone()) else { return };
    if kind == "form" {
        core.on(link, |it| it.forms.insert(surface.clone()));
    }
    let says = seen(core, &summary(&payload));
    let named = if core.manners.ui.names_plugins { &*plugin } else { "" };
    let mut shown = json!({"as": "surface", "plugin": named, "surface": surface, "kind": kind, "text": says});
    for list in ["fields", "actions"] {
        if payload[list].is_array() {
            shown[list] = shown_value(core, &payload[list]);
        }
    }
    let event = if kind == "status" { "extension_status" } else { "extension_surface" };
    core.note(&format!("plugin {plugin} shows {surface}: {}", summary(&payload)));
    let detail = json!({"plugin": plugin, "surface": surface, "kind": kind}).to_string();
    piece(core, json!({"kind": event, "text": says, "detail": detail}), shown);
}

/// Asks the user, unless it is too late. The answer comes when the user gives one.
pub(super) fn requested(core: &Shared<'_>, link: LinkId, id: &str, params: Node<'_>) {
    match refused(core, link, params) {
        Some(Err(error)) => return refuse(core, link, id, &error),
        Some(Ok(())) => return grant(core, link, id, r#"{"cancelled":true}"#),
        None => {}
    }
    let payload = match document(core, "request", params) {
        Ok(payload) => payload,
        Err(says) => return refuse(core, link, id, &core.reasoned(reason::INVALID_PARAMS, &says)),
    };
    let kind = member(params, "kind").into_owned();
    let mut fields = payload["fields"].as_array().cloned().unwrap_or_default();
    if fields.is_empty() {
        fields.push(json!({"key": "value", "kind": kind}));
    }
    let asked = fields.iter().map(|it| (text(it, "key").to_owned(), text(it, "kind").to_owned()));
    let prompt = Prompt { link, id: id.to_owned(), fields: asked.collect() };
    let name = core.with(|state| {
        state.last_prompt += 1;
        let name = format!("p{}", state.last_prompt);
        state.prompts.insert(name.clone(), prompt);
        name
    });
    let plugin = core.on(link, |it| it.plugin.name.clone()).unwrap_or_default();
    core.say(&json!({"shown": {
        "as": "prompt", "plugin": plugin, "surface": member(params, "surfaceId"), "kind": kind, "prompt": name,
        "text": seen(core, &summary(&payload)), "fields": shown_value(core, &Value::Array(fields)),
    }}));
}

/// The payload of a surface, if its document allows it.
fn document(core: &Core<'_>, kind: &str, params: Node<'_>) -> Result<Value, String> {
    let payload = params.get("payload").ok_or("there is no payload")?;
    if let Some(fault) = core.documents.surface_fault(kind, payload)
        && core.manners.ui.checks_surfaces
    {
        return Err(fault);
    }
    payload.to_value().ok_or_else(|| "the payload is nested too deeply".to_owned())
}

/// What a surface says, without its form.
fn summary(payload: &Value) -> String {
    let names = ["label", "title", "message", "detail", "body", "markdown", "text"];
    let texts = names.iter().map(|name| text(payload, name).to_owned()).filter(|it| !it.is_empty());
    let fields = payload["fields"].as_array().into_iter().flatten();
    let pairs = fields.filter(|it| it["value"].is_string());
    let pairs = pairs.map(|it| format!("{}: {}", text(it, "key"), text(it, "value")));
    texts.chain(pairs).collect::<Vec<_>>().join("\n")
}

/// A text of a guest as the user sees it.
fn seen(core: &Core<'_>, text: &str) -> String {
    let text = core.masked(core.manners.redacts.ui, text);
    if core.manners.ui.inert_markup { text.replace('<', "&lt;") } else { text }
}

/// Fields and actions as the user sees them. Names by which the guest knows them stay.
fn shown_value(core: &Core<'_>, value: &Value) -> Value {
    match value {
        Value::String(text) => seen(core, text).into(),
        Value::Array(list) => list.iter().map(|it| shown_value(core, it)).collect(),
        Value::Object(members) => {
            let is_card = members.contains_key("value");
            let one = |(name, value): (&String, &Value)| {
                let stays = name == "actionId" || (name == "key" && !is_card);
                (name.clone(), if stays { value.clone() } else { shown_value(core, value) })
            };
            Value::Object(members.iter().map(one).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Nobody can answer the prompts of a guest that died.
pub(super) fn drop_prompts(core: &Core<'_>, link: LinkId) {
    core.with(|state| state.prompts.retain(|_, prompt| prompt.link != link));
}

/// Dismisses the prompts of a guest that is about to end.
pub(super) fn dismiss(core: &Shared<'_>, link: LinkId) {
    let prompts = core.with(|state| state.prompts.clone());
    for (name, prompt) in prompts.into_iter().filter(|(_, prompt)| prompt.link == link) {
        core.with(|state| state.prompts.remove(&name));
        grant(core, link, &prompt.id, r#"{"cancelled":true}"#);
    }
}

/// The user answers a prompt, or dismisses it. `false` when there is no such prompt.
pub(super) fn answered(core: &Shared<'_>, name: &str, values: Option<&Value>) -> bool {
    let Some(prompt) = core.with(|state| state.prompts.remove(name)) else { return false };
    let manners = &core.manners.ui;
    let given = values.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut result = json!({"cancelled": given.is_empty() && manners.tells_cancelled});
    if !given.is_empty() {
        let of_kind = prompt.fields.iter().filter_map(|(key, kind)| {
            let value = given.get(key)?;
            let value = if manners.typed_answers { typed(kind, value) } else { value.to_string().into() };
            Some((key.clone(), value))
        });
        result["values"] = Value::Object(of_kind.collect());
    }
    grant(core, prompt.link, &prompt.id, &result.to_string());
    true
}

/// An answer in the form that its kind of question has.
fn typed(kind: &str, value: &Value) -> Value {
    let plain = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match (kind, value) {
        ("confirm", Value::Bool(_))
        | ("input" | "select", Value::String(_))
        | ("multiselect", Value::Array(_)) => value.clone(),
        ("confirm", other) => matches!(other.as_str(), Some("true" | "yes")).into(),
        ("multiselect", _) => json!([plain()]),
        _ => plain().into(),
    }
}

/// Shows something when everything before it was shown and nobody objects. Gives its place.
pub(super) fn piece(core: &Shared<'_>, payload: Value, shown: Value) -> u64 {
    let place = core.with(|state| {
        state.pieces += 1;
        state.pieces
    });
    let core = Rc::clone(core);
    core.clone().spawn(async move {
        core.until_so(None, |core| core.with(|state| state.shown + 1 == place)).await;
        let mut shown = shown;
        match hooks::pass(&core, point::FRONTEND_EVENT, sparse(payload), None).await {
            Ok(passage) => {
                let says = text(&passage.payload, "text");
                if shown["as"] == "text" {
                    core.session(|session| session.shown_text.push_str(says));
                }
                shown["text"] = says.into();
                core.say(&json!({ "shown": shown }));
            }
            Err(Stop::Blocked(says)) => core.note(&says),
            Err(Stop::Failed(failure)) if !core.manners.hooks.frontend_failures_count => {
                core.note(&failure.text);
            }
            Err(Stop::Failed(failure)) => {
                core.tell("error", &failure.text, None);
                core.with(|state| state.unshown.insert(place, failure));
            }
        }
        core.with(|state| state.shown = place);
    });
    place
}

/// Waits until a piece was shown, or nothing came of it.
pub(super) async fn settled(core: &Shared<'_>, place: u64) -> Result<(), Failure> {
    core.until_so(None, |core| core.with(|state| state.shown >= place)).await;
    core.with(|state| state.unshown.remove(&place)).map_or(Ok(()), Err)
}

/// Why an action or a form does not reach its guest.
pub(super) enum NotDone {
    Refused(String),
    Failed(Failure),
}

/// The user invokes an action of a plugin. What it says is shown, and given.
pub(super) async fn invoke(core: &Shared<'_>, ask: &Value) -> Result<String, NotDone> {
    let (plugin, action) = (text(ask, "plugin"), text(ask, "action"));
    let link = link_of(core, plugin).map_err(NotDone::Failed)?;
    let declared = core.on(link, |it| it.actions.iter().any(|it| it == action)) == Some(true);
    if !core.manners.ui.asks_actions || !declared && core.manners.ui.declared_actions_only {
        return Err(NotDone::Refused(format!("there is no action /{plugin}:{action}")));
    }
    let mut params = json!({"actionId": action});
    let given = ask["args"].as_object().is_some_and(|args| !args.is_empty());
    if given && core.manners.ui.hands_on_args {
        params["args"] = ask["args"].clone();
    }
    let result = done_by_user(core, link, contract::UI_ACTION, params).await?;
    let says = seen(core, text(&result, "message"));
    if !says.is_empty() {
        core.tell("notice", &says, Some(plugin));
    }
    match result["accepted"].as_bool() {
        Some(true) => Ok(says),
        _ => Err(NotDone::Failed(Failure::new(format!("/{plugin}:{action} was not accepted: {says}")))),
    }
}

/// The user submits a form.
pub(super) async fn submit(core: &Shared<'_>, ask: &Value) -> Result<String, NotDone> {
    let (plugin, surface) = (text(ask, "plugin"), text(ask, "surface"));
    let link = link_of(core, plugin).map_err(NotDone::Failed)?;
    if core.on(link, |it| it.forms.contains(surface)) != Some(true) {
        return Err(NotDone::Refused(format!("plugin {plugin} shows no form {surface}")));
    }
    let first = core.session(|session| session.running.values().next().copied()).flatten();
    let link = if core.manners.ui.forms_to_owner { link } else { first.unwrap_or(link) };
    let values = if ask["values"].is_object() { ask["values"].clone() } else { json!({}) };
    let params = json!({"surfaceId": surface, "values": values});
    let result = done_by_user(core, link, contract::UI_SUBMIT, params).await?;
    match result["accepted"].as_bool() {
        Some(true) => Ok(String::new()),
        _ => Err(NotDone::Failed(Failure::new(format!("plugin {plugin} did not accept the form {surface}")))),
    }
}

fn link_of(core: &Core<'_>, plugin: &str) -> Result<LinkId, Failure> {
    let gone = || Failure::of(reason::PROVIDER_INTERRUPTED, format!("plugin {plugin} is not running"));
    core.open_link(plugin).ok_or_else(gone)
}

/// Tells a guest what the user did, and gives its result, unless everything is another by then.
async fn done_by_user(
    core: &Shared<'_>,
    link: LinkId,
    method: &'static str,
    mut params: Value,
) -> Result<Value, NotDone> {
    let now =
        |core: &Core<'_>| core.session(|it| (it.id.clone(), it.generation, it.moving)).unwrap_or_default();
    let (session, generation, _) = now(core);
    let shift = u64::from(!core.manners.ui.current_session);
    params["sessionId"] = session.as_str().into();
    params["generation"] = (generation + shift).into();
    let late = || Failure::of(reason::PROVIDER_INTERRUPTED, "the plugin was reloaded meanwhile");
    let over = |core: &Core<'_>| now(core) != (session.clone(), generation, false);
    let deadline = core.now.get() + DONE_WITHIN;
    let written = params.to_string();
    let call = core.call(link, method, &written, Some(deadline));
    let answer = core.unless(|core| !core.manners.ui.late_results_count && over(core), call).await;
    let failed = |failure: Failure| NotDone::Failed(failure);
    let result = answer.unwrap_or_else(|| Err(late())).map_err(failed)?;
    core.decoded(method, &result).map_err(failed)
}
