//! The points at which guests step in: who is asked, in which order, what a ruling may be, and who is told afterwards.

use std::rc::Rc;

use serde_json::Value;
use sidecert_proto::contract::Contract;
use sidecert_proto::json::Tape;
use sidecert_proto::machine::LinkId;
use sidecert_proto::reasonix::contract::{self, point, reason};
use sidecert_proto::reasonix::documents::Documents;

use super::connection::give_up;
use super::content;
use super::core::{Core, Failure, Shared, text, together};
use super::manifest::{Plugin, Runtime};
use super::manners::Check;
use super::session::sparse;

/// What became of a payload that nobody objected to.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) payload: Value,
    /// Whether a guest allowed or denied, and which.
    pub(super) allowed: Option<(bool, String)>,
}

/// Why something does not go on.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// A guest blocked it: what the user is told.
    Blocked(String),
    Failed(Failure),
}

/// What a guest says.
#[derive(Debug)]
enum Ruling {
    Continue,
    Replace(Value),
    Block(String),
    Allow,
    Deny,
}

/// Takes a payload through a point: asks whoever is to be asked, and tells whoever is to be told. `tool` is the tool
/// that is to run there.
pub(super) async fn pass(
    core: &Shared<'_>,
    point: &'static str,
    payload: Value,
    tool: Option<&str>,
) -> Result<Passage, Stop> {
    if !core.manners.hooks.waits || core.manners.hooks.unwaited.contains(&point) {
        let (core, given) = (Rc::clone(core), payload.clone());
        let tool = tool.map(str::to_owned);
        core.clone().spawn(async move { drop(ruled(&core, point, given, tool.as_deref()).await) });
        return Ok(Passage { payload, allowed: None });
    }
    ruled(core, point, payload, tool).await
}

async fn ruled(
    core: &Shared<'_>,
    point: &'static str,
    payload: Value,
    tool: Option<&str>,
) -> Result<Passage, Stop> {
    let hooks = &core.manners.hooks;
    let members = members(core, point);
    let owner = owner(core, point, tool).filter(|_| hooks.asks_owners);
    let mut way = Way { point, passage: Passage { payload: payload.clone(), allowed: None }, blocked: None };
    if !hooks.owner_last
        && let Some(owner) = &owner
    {
        own(core, owner, &mut way).await?;
    }
    if has_chain(core, point) {
        chain(core, &members, &payload, &mut way).await?;
    }
    let asked = hooks.owner_last && (way.blocked.is_none() || hooks.owner_after_block);
    if asked && let Some(owner) = &owner {
        own(core, owner, &mut way).await?;
    }
    let known = if hooks.events_are_final { &way.passage.payload } else { &payload };
    let told = hooks.events
        && (hooks.input_event || point != point::INPUT_RECEIVE)
        && !hooks.untold.contains(&point)
        && (hooks.events_of_blocked || way.blocked.is_none());
    if told {
        let text = known.to_string();
        let also = owner
            .iter()
            .filter(|it| !hooks.events_once || !members.iter().any(|other| other.name == it.name));
        for plugin in members.iter().chain(also) {
            tell(core, plugin, point, &text);
            if hooks.events_wait
                && let Some(link) = core.open_link(&plugin.name)
            {
                let unread = |core: &Core<'_>| core.on(link, |it| it.events_unread()).unwrap_or_default();
                core.until_so(None, |core| core.open_link(&plugin.name).is_none() || unread(core) == 0).await;
            }
        }
    }
    match way.blocked {
        Some(says) if hooks.blocks => Err(Stop::Blocked(says)),
        _ => Ok(way.passage),
    }
}

/// How far a payload has come.
struct Way {
    point: &'static str,
    passage: Passage,
    blocked: Option<String>,
}

async fn chain(
    core: &Shared<'_>,
    members: &[Rc<Plugin>],
    payload: &Value,
    way: &mut Way,
) -> Result<(), Stop> {
    let hooks = &core.manners.hooks;
    if !hooks.serial {
        let asks = members.iter().map(|it| {
            let future: std::pin::Pin<Box<dyn Future<Output = _>>> =
                Box::pin(ask(core, it, way.point, payload, false));
            future
        });
        let rulings = together(usize::MAX, asks.collect()).await;
        for (plugin, ruling) in members.iter().zip(rulings) {
            follow(core, plugin, ruling, way)?;
        }
        return Ok(());
    }
    for plugin in members {
        let given = if hooks.passes_replacements { &way.passage.payload } else { payload };
        let ruling = ask(core, plugin, way.point, given, false).await;
        let (ends_chain, rules) = match &ruling {
            Ok(Ruling::Block(_)) => (hooks.block_ends_chain, false),
            Ok(Ruling::Allow) => (hooks.ruling_ends_chain && hooks.allow_ends_chain, true),
            Ok(Ruling::Deny) => (hooks.ruling_ends_chain, true),
            _ => (false, false),
        };
        follow(core, plugin, ruling, way)?;
        if ends_chain && (rules || way.blocked.is_some()) {
            break;
        }
    }
    Ok(())
}

/// Does what a member of the chain says, or what is done about one that fails.
fn follow(
    core: &Shared<'_>,
    plugin: &Plugin,
    ruling: Result<Ruling, Failure>,
    way: &mut Way,
) -> Result<(), Stop> {
    let hooks = &core.manners.hooks;
    match ruling {
        Err(failure) => {
            // Whoever owns a slot is as required as whoever says so, at every point.
            let owns = |it: &Runtime| !it.replaces.is_empty() && hooks.owners_are_required;
            let required = plugin.runtime.as_ref().is_some_and(|it| it.required || owns(it));
            if if required { hooks.required_fails } else { hooks.optional_fails } {
                return Err(Stop::Failed(failure));
            }
            core.warn(&plugin.name, &failure);
        }
        Ok(ruling) => way.take(plugin, ruling, hooks.block_ends_chain),
    }
    Ok(())
}

impl Way {
    fn take(&mut self, plugin: &Plugin, ruling: Ruling, first_block_counts: bool) {
        match ruling {
            Ruling::Replace(replacement) => self.passage.payload = replacement,
            Ruling::Block(says) if self.blocked.is_none() || first_block_counts => self.blocked = Some(says),
            Ruling::Continue | Ruling::Block(_) => {}
            Ruling::Allow => self.passage.allowed = Some((true, plugin.name.clone())),
            Ruling::Deny => self.passage.allowed = Some((false, plugin.name.clone())),
        }
    }
}

/// Asks the owner of a slot, whose ruling is the last one, and without which nothing goes on.
async fn own(core: &Shared<'_>, owner: &Rc<Plugin>, way: &mut Way) -> Result<(), Stop> {
    let hooks = &core.manners.hooks;
    let spared = matches!(way.point, point::FRONTEND_EVENT | point::SESSION_LOAD);
    match ask(core, owner, way.point, &way.passage.payload, true).await {
        Ok(_) if way.point == point::TOOL_BEFORE && !hooks.heeds_tool_owners => {}
        Ok(Ruling::Block(says)) if !hooks.owner_after_block || way.blocked.is_none() => {
            way.blocked = Some(says);
        }
        Ok(Ruling::Replace(_)) if way.point == point::PERMISSION_DECISION && !hooks.permission_replaces => {}
        Ok(ruling) => way.take(owner, ruling, true),
        Err(failure) if (hooks.spares_frontend_and_load && spared) || !hooks.owner_fails => {
            core.warn(&owner.name, &failure);
        }
        Err(failure) => return Err(Stop::Failed(failure)),
    }
    Ok(())
}

/// Asks one guest, and gives what it says if that may be said here.
async fn ask(
    core: &Shared<'_>,
    plugin: &Rc<Plugin>,
    point: &'static str,
    payload: &Value,
    as_owner: bool,
) -> Result<Ruling, Failure> {
    let name = &plugin.name;
    let failed = |failure: Failure| Failure {
        text: format!("plugin {name} failed at {point}: {}", failure.text),
        ..failure
    };
    let violated = |says: &str| {
        Failure::of(reason::PROTOCOL_ERROR, format!("plugin {name} broke the rules of {point}: {says}"))
    };
    let link = core.session(|session| session.running.get(name).copied()).flatten();
    let Some(link) = link else {
        return Err(failed(Failure::of(reason::PROVIDER_INTERRUPTED, "it is not running")));
    };
    let ruling = match intercept(core, link, plugin, point, payload).await {
        Ok(ruling) => ruling,
        Err(failure) if !failure.elapsed && !core.manners.hooks.errors_fail => return Ok(Ruling::Continue),
        Err(failure) => {
            if core.manners.hooks.failure_ends {
                give_up(core, link, &failure);
            }
            return Err(failed(failure));
        }
    };
    let replacement = content::referred(core, link, &ruling).map_err(failed)?;
    let hooks = &core.manners.hooks;
    let replaced = replacement.or_else(|| ruling.get("replacement").cloned());
    match text(&ruling, "decision") {
        "block" => {
            let says = text(&ruling, "reason");
            if says.is_empty() && !hooks.blocks_unexplained {
                return Ok(Ruling::Continue);
            }
            let says = core.masked(core.manners.redacts.reasons, says);
            let told = hooks.tells_block_reasons && !says.is_empty();
            let why = if told { format!(": {says}") } else { String::new() };
            let says = format!("plugin {name} blocked {point}{why}");
            Ok(Ruling::Block(says))
        }
        "replace" => {
            let says = if replaced.is_some() { "null replaces nothing" } else { "there is no replacement" };
            let Some(replacement) = replaced.filter(|it| !it.is_null()) else {
                let fault = Err(violated(says));
                return if hooks.needs_replacement { fault } else { Ok(Ruling::Continue) };
            };
            match replacement_fault(core, point, payload, &replacement) {
                Some(_) if !hooks.misfits_fail => Ok(Ruling::Continue),
                Some(says) => Err(violated(&core.masked(core.manners.redacts.errors, &says))),
                None if hooks.replacements == Check::Weak => {
                    Ok(Ruling::Replace(without_nothing(replacement)))
                }
                None => Ok(Ruling::Replace(replacement)),
            }
        }
        decision @ ("allow" | "deny") => {
            let here = point == point::PERMISSION_DECISION && (!as_owner || hooks.permission_owner_rules);
            match (here || hooks.rulings_anywhere, decision) {
                (false, _) => Err(violated(&format!("it may not {decision} there"))),
                // Elsewhere, a deny can only be a block.
                (true, "deny") if point != point::PERMISSION_DECISION => {
                    Ok(Ruling::Block(format!("plugin {name} denied {point}")))
                }
                (true, "allow") => Ok(Ruling::Allow),
                (true, _) => Ok(Ruling::Deny),
            }
        }
        _ => match replaced.filter(|_| !hooks.continue_keeps) {
            Some(replacement) => Ok(Ruling::Replace(replacement)),
            None => Ok(Ruling::Continue),
        },
    }
}

async fn intercept(
    core: &Shared<'_>,
    link: LinkId,
    plugin: &Plugin,
    point: &'static str,
    payload: &Value,
) -> Result<Value, Failure> {
    let hooks = &core.manners.hooks;
    let millis = budget(core, point, plugin.runtime.as_ref());
    let carried = content::carried(core, link, &payload.to_string(), false)?;
    let seq = core.on(link, |it| if it.last_seq == 0 { 1 } else { it.last_seq + hooks.seq_step });
    let seq = seq.unwrap_or(1);
    let params = format!(r#"{{"event":"{point}","seq":{seq},{carried},"timeoutMillis":{millis}}}"#);
    core.on(link, |it| it.last_seq = seq);
    let deadline = core.now.get() + millis * 1_000;
    let answer = core.call(link, contract::INTERCEPT, &params, Some(deadline)).await;
    let result = answer.map_err(|failure| {
        let reason = failure.elapsed.then(|| reason::INTERCEPT_TIMEOUT.to_owned());
        Failure { reason: reason.or(failure.reason), ..failure }
    })?;
    core.decoded(contract::INTERCEPT, &result)
}

/// How long a guest has at a point, in milliseconds.
fn budget(core: &Shared<'_>, point: &str, runtime: Option<&Runtime>) -> u64 {
    let hooks = &core.manners.hooks;
    let short = matches!(
        point,
        point::INPUT_RECEIVE | point::TOOL_BEFORE | point::TOOL_AFTER | point::PERMISSION_DECISION
    );
    let named = matches!(point, point::CONTEXT_PREPARE | point::SYSTEM_PROMPT_BUILD)
        || ["session.", "compaction."].iter().any(|family| point.starts_with(family));
    let usual = match (short, named) {
        (true, _) => hooks.short_millis,
        (_, true) => hooks.long_millis,
        _ => hooks.other_millis,
    };
    let wanted = runtime.map(|it| it.timeout_millis).filter(|it| *it > 0 && hooks.manifest_millis);
    wanted.unwrap_or(usual).min(hooks.most_millis)
}

/// Whether plugins that only intercept are asked at a point.
fn has_chain(core: &Shared<'_>, point: &str) -> bool {
    let apart = matches!(point, point::SYSTEM_PROMPT_BUILD | point::FRONTEND_EVENT);
    let hooks = &core.manners.hooks;
    !hooks.skips.contains(&point) && (hooks.chain_everywhere || !(apart || point.starts_with("session.")))
}

/// Who intercepts a point, in the order in which they are asked. Those that did not start are not among them.
fn members(core: &Shared<'_>, point: &str) -> Vec<Rc<Plugin>> {
    let hooks = &core.manners.hooks;
    let mut members = core
        .session(|session| {
            let intercepts = |plugin: &&Rc<Plugin>| {
                let mut points = plugin.runtime.iter().flat_map(|it| &it.intercepts);
                session.running.contains_key(&plugin.name)
                    && (hooks.asks_everyone || points.any(|it| it == point))
            };
            session.plugins.iter().filter(intercepts).cloned().collect::<Vec<_>>()
        })
        .unwrap_or_default();
    if !hooks.by_manifest {
        let subscribed =
            |link| core.on(link, |it| it.subscriptions.iter().any(|it| it == point)) == Some(true);
        members.retain(|plugin| core.open_link(&plugin.name).is_some_and(subscribed));
    }
    let priority = |plugin: &Plugin| plugin.runtime.as_ref().map_or(0, |it| it.priority);
    members.sort_by(|one, other| {
        let ranks = priority(one).cmp(&priority(other));
        let names = one.name.cmp(&other.name);
        let ranks = if hooks.lower_first { ranks } else { ranks.reverse() };
        ranks.then(if hooks.names_ascend { names } else { names.reverse() })
    });
    members
}

/// Who owns what is decided at a point.
fn owner(core: &Shared<'_>, point: &str, tool: Option<&str>) -> Option<Rc<Plugin>> {
    let hooks = &core.manners.hooks;
    let tool = tool.filter(|_| hooks.tool_owners_rule);
    let slot = match (point, tool) {
        (point::CONTEXT_PREPARE, _) => "context",
        (point::PROVIDER_REQUEST, _) => "provider_request",
        (point::PROVIDER_RESPONSE, _) => "provider_response",
        (point::PERMISSION_DECISION, _) => "permission",
        (point::COMPACTION_PREPARE | point::COMPACTION_COMPLETE, _) => "compaction",
        (point::SYSTEM_PROMPT_BUILD, _) => "system_prompt",
        (point::FRONTEND_EVENT, _) => "frontend_events",
        (point::SESSION_START | point::SESSION_END, _) if !hooks.chain_everywhere => return None,
        (point, _) if point.starts_with("session.") => "session_policy",
        (point::TOOL_BEFORE, Some(tool)) => &format!("tool:{tool}"),
        _ => return None,
    };
    let owns = |plugin: &&Rc<Plugin>| {
        let active = plugin.enabled && !plugin.project;
        active && plugin.runtime.iter().flat_map(|it| &it.replaces).any(|it| it == slot)
    };
    core.session(|session| session.plugins.iter().find(owns).cloned()).flatten()
}

/// Tells one guest what happened, if it can be told now.
fn tell(core: &Shared<'_>, plugin: &Plugin, point: &str, payload: &str) {
    let Some(link) = core.open_link(&plugin.name) else { return };
    let unread = core.on(link, |connection| connection.events_unread()).unwrap_or_default();
    if unread >= core.manners.hooks.events_queued {
        let told = core.on(link, |connection| std::mem::replace(&mut connection.overflow_told, true));
        if told == Some(false) && core.manners.hooks.tells_overflow {
            let text = format!("plugin {} reads too slowly: events are dropped", plugin.name);
            core.tell("warning", &text, Some(&plugin.name));
        }
        return;
    }
    // What is too long to be kept is not told.
    if let Ok(carried) = content::carried(core, link, payload, true) {
        core.notify(link, contract::EVENT, &format!(r#"{{"event":"{point}",{carried}}}"#), true);
    }
}

/// What is wrong with a replacement at a point.
fn replacement_fault(
    core: &Shared<'_>,
    point: &'static str,
    original: &Value,
    replacement: &Value,
) -> Option<String> {
    let written = replacement.to_string();
    let Ok(tape) = Tape::scan(written.as_bytes()) else { return Some("it is no JSON".to_owned()) };
    let fault = match core.manners.hooks.replacements {
        Check::Schema => core.documents.payload_fault(point, tape.root()),
        Check::Weak => weakened(core.contract)
            .and_then(|contract| Documents::new(&contract).payload_fault(point, tape.root())),
        Check::Nothing => return None,
    };
    let hooks = &core.manners.hooks;
    if fault.is_some() && (hooks.checks_phases || !point.starts_with("session.")) {
        return fault;
    }
    if point == point::FRONTEND_EVENT && replacement["kind"] != original["kind"] {
        return Some("it has another kind".to_owned());
    }
    let tools = replacement["request"]["tools"].as_array().into_iter().flatten();
    if core.manners.frames.beyond_schema && tools.into_iter().any(|tool| !tool["parameters"].is_object()) {
        return Some("the parameters of a tool are no object".to_owned());
    }
    let calls = replacement["calls"].as_array().into_iter().flatten();
    if calls.into_iter().any(|call| text(call, "id").is_empty() || text(call, "name").is_empty()) {
        return Some("a call has no id or name".to_owned());
    }
    let arguments = text(replacement, "arguments");
    let is_tool = point.starts_with("tool.") || point == point::PERMISSION_DECISION;
    let fits =
        arguments.is_empty() || serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object());
    (is_tool && !fits && hooks.checks_arguments).then(|| "arguments are not the text of an object".to_owned())
}

/// A replacement as it comes out of the released implementation: its messages have no members that say nothing, and
/// what must be there and is not is zero.
fn without_nothing(mut replacement: Value) -> Value {
    if let Some(request) = replacement.get_mut("request").and_then(Value::as_object_mut) {
        request.entry("maxTokens").or_insert_with(|| 0.into());
    }
    for pointer in ["/messages", "/request/messages"] {
        for message in replacement.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten() {
            *message = sparse(message.take());
        }
    }
    replacement
}

/// The contract without most of what it asks of messages and calls: which members there are, and of which type, stays.
fn weakened(contract: &Contract) -> Option<Contract> {
    let mut document = contract.document().clone();
    for (name, definition) in document["$defs"].as_object_mut()? {
        if !name.starts_with("Provider") {
            continue;
        }
        let lists =
            matches!(name.as_str(), "ProviderRequest").then(|| serde_json::json!(["messages", "tools"]));
        definition["required"] = lists.unwrap_or_else(|| serde_json::json!([]));
        for (_, member) in definition["properties"].as_object_mut().into_iter().flatten() {
            for rule in ["enum", "minimum", "minLength"] {
                member.as_object_mut().and_then(|it| it.remove(rule));
            }
        }
        // The one text that may be null.
        if name == "ProviderMessage"
            && let Some(content) = definition["properties"]["content"].as_object_mut()
        {
            content.remove("type");
        }
    }
    Contract::read(document.to_string().as_bytes()).ok()
}
