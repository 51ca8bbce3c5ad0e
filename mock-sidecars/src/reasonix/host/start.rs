//! How processes come and go: starting, the handshake and its checks, the orderly end, and reloading.

use std::pin::Pin;
use std::rc::Rc;

use serde_json::{Value, json};
use sidecert_proto::machine::{Action, LinkId, Micros};
use sidecert_proto::reasonix::contract::{self, reason, since_v2};

use super::connection::{Connection, Stage, diagnosed, give_up, reaped, watched};
use super::core::{Core, Failure, Shared, text, together};
use super::manifest::{self, Plugin, Runtime};
use super::ui;

/// The version of the rules of dependencies that this host knows, in contracts that have them.
const DEPENDENCY_SCHEMA: u64 = 1;
/// The kinds of what a manifest provides that a handshake is held to: models and actions.
const PROVIDER: &str = "provider";
const ACTION: &str = "uiAction";

/// Starts every plugin that is to be started. Fails when one that is required does not start.
pub(super) async fn start(core: &Shared<'_>) -> Result<(), Failure> {
    let manners = &core.manners.plugins;
    let plugins = core.session(|session| session.plugins.clone()).unwrap_or_default();
    let starts = plugins.iter().filter(|plugin| {
        let enabled = plugin.enabled || !manners.enabled_only;
        let installed = !plugin.project || !manners.installed_only;
        let kept = core.session(|session| session.running.contains_key(&plugin.name)) == Some(true);
        plugin.runtime.is_some() && enabled && installed && !kept
    });
    let deadline = core.now.get() + core.manners.starts.budget;
    let tasks = starts.cloned().map(|plugin| {
        let task: Pin<Box<dyn Future<Output = _>>> = Box::pin(async move {
            let failure = begin(core, &plugin, deadline).await.err();
            failure.map(|failure| (plugin, failure))
        });
        task
    });
    let failed = together(core.manners.starts.parallel, tasks.collect()).await;
    let mut fatal = None;
    for (plugin, failure) in failed.into_iter().flatten() {
        let required = plugin.runtime.as_ref().is_some_and(|it| it.required);
        let starts = &core.manners.starts;
        if if required { starts.required_fails } else { starts.optional_fails } {
            fatal.get_or_insert(failure);
        } else {
            core.tell("warning", &failure.text, Some(&plugin.name));
        }
    }
    fatal.map_or(Ok(()), Err)
}

/// Starts one plugin.
async fn begin(core: &Shared<'_>, plugin: &Rc<Plugin>, deadline: Micros) -> Result<(), Failure> {
    let name = &plugin.name;
    let failed = |failure: Failure| Failure {
        text: format!("plugin {name} did not start: {}", failure.text),
        ..failure
    };
    if core.now.get() >= deadline {
        return Err(failed(Failure::new("there was no time left to start it")));
    }
    if core.manners.plugins.asks_again {
        core.tell("prompt", &format!("start the plugin {name}?"), Some(name));
    }
    let root = core.with(|state| format!("{}/plugins/{name}", state.folder));
    let launch = manifest::launch(plugin, &root, &core.manners.plugins);
    let launch = launch.map_err(|says| failed(Failure::new(says)))?;
    let line_bytes = core.limits.frame_bytes / 100 * core.manners.frames.limit_hundredths;
    let line_bytes =
        if core.manners.frames.limit_hundredths == 100 { core.limits.frame_bytes } else { line_bytes };
    let generation = core.session(|session| session.generation).unwrap_or_default();
    let link = core.with(|state| {
        state.last_link += 1;
        // The limit counts the LF, lines do not.
        let connection = Connection::new(Rc::clone(plugin), generation, line_bytes - 1);
        state.links.insert(state.last_link, connection);
        state.last_link
    });
    core.act(Action::Launch { link, launch });
    if !core.manners.frames.drains_stderr {
        core.act(Action::LeaveErrors { link });
    }
    core.spawn(watched(Rc::clone(core), link));
    match handshake(core, link, plugin, deadline).await {
        Ok(()) => {
            core.session(|session| session.running.insert(name.clone(), link));
            Ok(())
        }
        Err(failure) => {
            let failure = failed(failure);
            if core.manners.starts.shuts_down_failed {
                let _answer = ask_to_end(core, link).await;
            }
            give_up(core, link, &failure);
            if core.manners.starts.kills_failed && core.on(link, |it| it.exited) == Some(false) {
                core.act(Action::Kill { link });
                reaped(core, link).await;
            }
            diagnosed(core, link, &failure.text);
            core.with(|state| state.links.remove(&link));
            Err(failure)
        }
    }
}

/// Starts a plugin again that crashed.
pub(super) async fn revive(core: &Shared<'_>, link: LinkId) {
    let Some(plugin) = core.on(link, |it| Rc::clone(&it.plugin)) else { return };
    let deadline = core.now.get() + core.manners.starts.budget;
    drop(begin(core, &plugin, deadline).await);
}

async fn handshake(
    core: &Shared<'_>,
    link: LinkId,
    plugin: &Plugin,
    deadline: Micros,
) -> Result<(), Failure> {
    let starts = &core.manners.starts;
    let params = initialize_params(core, plugin);
    let answer = core.call(link, contract::INITIALIZE, &params, Some(deadline)).await;
    let refused = answer.as_ref().is_err_and(|failure| !failure.elapsed)
        && core.on(link, |it| it.stage) == Some(Stage::Starting);
    if refused && !starts.errors_fail {
        core.on(link, |it| it.stage = Stage::Ready);
        core.notify(link, contract::INITIALIZED, "{}", false);
        return Ok(());
    }
    let answer = answer
        .map_err(|failure| Failure { reason: failure.reason.filter(|_| starts.keeps_reasons), ..failure })?;
    if starts.initialized_unchecked {
        core.notify(link, contract::INITIALIZED, "{}", false);
    }
    let result = core.decoded(contract::INITIALIZE, &answer)?;
    let default = Runtime::default();
    check(core, plugin, plugin.runtime.as_ref().unwrap_or(&default), &result)?;
    let (providers, actions) = (refs(&result), actions(core, plugin, &result));
    let fate = core.on(link, |connection| {
        if connection.stage == Stage::Starting {
            connection.stage = Stage::Ready;
            (connection.providers, connection.actions) = (providers, actions);
            connection.subscriptions = names(&result, "subscriptions", None).map(str::to_owned).collect();
        }
        connection.fate.clone()
    });
    if let Some(failure) = fate.flatten() {
        return Err(failure);
    }
    if starts.says_initialized && !starts.initialized_unchecked {
        core.notify(link, contract::INITIALIZED, "{}", false);
    }
    Ok(())
}

fn initialize_params(core: &Core<'_>, plugin: &Plugin) -> String {
    let version = core.contract.major.to_string();
    let default = Runtime::default();
    let runtime = plugin.runtime.as_ref().unwrap_or(&default);
    let mirrors = core.manners.starts.mirrors_manifest;
    let list = |list: &[String]| if mirrors { json!(list) } else { json!([]) };
    let mut manifest = json!({
        "intercepts": list(&runtime.intercepts),
        "replaces": list(&runtime.replaces),
        "capabilities": list(&runtime.capabilities),
    });
    let wires = [
        (since_v2::MANIFEST_EXPECTATION_PROVIDES, "provides", &runtime.provides),
        (since_v2::MANIFEST_EXPECTATION_REQUIRES, "requires", &runtime.requires),
    ];
    for (fact, name, wire) in wires {
        if let Some(wire) = wire.as_ref().filter(|_| core.contract.has(fact)) {
            manifest[name] = wire.clone();
        }
    }
    for (name, listed) in [("providers", provided(plugin, PROVIDER)), ("uiActions", provided(plugin, ACTION))]
    {
        if let Some(listed) = listed.filter(|_| core.manners.starts.fills_lists) {
            manifest[name] = json!(listed);
        }
    }
    let (id, workspace, generation, ui_host, epoch) = core
        .session(|it| (it.id.clone(), it.workspace.clone(), it.generation, it.ui_host.clone(), it.epoch()))
        .unwrap_or_default();
    let mut params = json!({
        "protocolId": core.contract.id,
        "protocolVersion": version,
        "manifest": manifest,
        "session": {"sessionId": id, "workspaceRoot": workspace, "generation": generation},
        "capabilities": {"contentRefs": true, "uiHost": ui_host, "protocolVersion": version},
    });
    if core.contract.has(since_v2::SESSION_CONTEXT_EPOCH) {
        params["session"]["epoch"] = epoch.into();
    }
    if core.contract.has(since_v2::INITIALIZE_PARAMS_DEPENDENCY_SCHEMA_VERSION) {
        params["dependencySchemaVersion"] = DEPENDENCY_SCHEMA.into();
    }
    if core.contract.has(since_v2::HOST_CAPABILITIES_DEPENDENCY_SCHEMA_VERSION) {
        params["capabilities"]["dependencySchemaVersion"] = DEPENDENCY_SCHEMA.into();
    }
    params.to_string()
}

/// What the manifest lists of a kind, if it lists any, as the handshake names it.
fn provided(plugin: &Plugin, kind: &str) -> Option<Vec<String>> {
    let listed = plugin.runtime.as_ref()?.listed(kind)?;
    let own = format!("plugin/{}/", plugin.name);
    let named =
        |id: String| if kind == PROVIDER && !id.starts_with("plugin/") { format!("{own}{id}") } else { id };
    Some(listed.into_iter().map(named).collect::<Vec<_>>()).filter(|list| !list.is_empty())
}

fn names<'v>(result: &'v Value, list: &str, member: Option<&'v str>) -> impl Iterator<Item = &'v str> {
    let entries = result[list].as_array().into_iter().flatten();
    entries.filter_map(move |it| member.map_or(Some(it), |member| it.get(member))?.as_str())
}

fn refs(result: &Value) -> Vec<String> {
    names(result, "providers", Some("ref")).map(str::to_owned).collect()
}

/// The actions that can be invoked. One whose id is none costs the plugin all of them; of equal ones the first counts.
fn actions(core: &Core<'_>, plugin: &Plugin, result: &Value) -> Vec<String> {
    let mut actions: Vec<String> = Vec::new();
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let name = &plugin.name;
    for action in names(result, "uiActions", Some("actionId")) {
        let odd = action.is_empty() || !action.chars().all(plain);
        if odd && !core.manners.starts.takes_any_action {
            let says = format!("plugin {name} has no actions: the id of one is none");
            core.tell("warning", &says, Some(name));
            return Vec::new();
        }
        if actions.iter().any(|known| known == action) {
            core.tell("warning", &format!("plugin {name} declares /{name}:{action} twice"), Some(name));
        } else {
            actions.push(action.to_owned());
        }
    }
    actions
}

/// Whether what a guest declares is what its manifest lets it declare.
fn check(core: &Core<'_>, plugin: &Plugin, runtime: &Runtime, result: &Value) -> Result<(), Failure> {
    let starts = &core.manners.starts;
    version(core, text(result, "protocolVersion"))?;
    let undeclared = |what: &str, name: &str| {
        let name = core.masked(core.manners.redacts.errors, name);
        let text = format!("it declares the {what} {name}, which its manifest does not");
        Err(Failure::of(reason::CAPABILITY_NOT_DECLARED, text))
    };
    let lists = [
        (
            "subscriptions",
            None,
            "subscription",
            Some(runtime.intercepts.clone()),
            starts.checks_subscriptions,
        ),
        ("replaces", None, "slot", Some(runtime.replaces.clone()), starts.checks_replaces),
        ("providers", Some("ref"), "provider", provided(plugin, PROVIDER), starts.lists_bind),
        ("uiActions", Some("actionId"), "action", provided(plugin, ACTION), starts.lists_bind),
    ];
    let subscriptions: Vec<_> = names(result, "subscriptions", None).collect();
    let twice = (1..subscriptions.len()).find(|at| subscriptions[..*at].contains(&subscriptions[*at]));
    if let Some(at) = twice.filter(|_| !starts.takes_duplicates) {
        return undeclared("second subscription", subscriptions[at]);
    }
    for (list, member, what, allowed, checks) in lists {
        let Some(allowed) = allowed.filter(|_| checks) else { continue };
        if let Some(name) = names(result, list, member).find(|name| !allowed.iter().any(|it| it == name)) {
            return undeclared(what, name);
        }
    }
    for (list, member, what, capability) in
        [("providers", "ref", "provider", "providers"), ("uiActions", "actionId", "action", "ui")]
    {
        if starts.checks_capabilities
            && !runtime.has(capability)
            && let Some(name) = names(result, list, Some(member)).next()
        {
            return undeclared(what, name);
        }
    }
    let own = format!("plugin/{}/", plugin.name);
    let foreign = names(result, "providers", Some("ref")).find(|name| !name.starts_with(&own));
    if let Some(name) = foreign.filter(|_| starts.checks_namespace) {
        return undeclared("provider", name);
    }
    let provides = runtime.provides.as_ref().and_then(Value::as_array).filter(|_| starts.lists_bind);
    let same = |one: &Value, other: &Value| {
        ["kind", "namespace", "id"].iter().all(|name| text(one, name) == text(other, name))
    };
    let declared = result["provides"].as_array().into_iter().flatten();
    let odd = |it: &&Value| provides.is_some_and(|all| !all.iter().any(|known| same(known, it)));
    declared.into_iter().find(odd).map_or(Ok(()), |it| undeclared("capability", text(it, "id")))
}

fn version(core: &Core<'_>, given: &str) -> Result<(), Failure> {
    let starts = &core.manners.starts;
    let digits = given.strip_prefix('+').filter(|_| starts.lenient_version).unwrap_or(given);
    let number = digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|it| it.is_ascii_digit()));
    let exact = starts.lenient_version || number.is_none_or(|number| number.to_string() == given);
    match number {
        _ if !starts.checks_version => Ok(()),
        None => Err(Failure::of(reason::PROTOCOL_ERROR, "its protocol version is no number")),
        Some(major) if major == core.contract.major && exact => Ok(()),
        Some(_) => {
            let shown = core.masked(core.manners.redacts.errors, given);
            Err(Failure::of(reason::UNSUPPORTED_VERSION, format!("it speaks version {shown}")))
        }
    }
}

async fn ask_to_end(core: &Core<'_>, link: LinkId) -> Result<String, Failure> {
    let millis = core.manners.ends.timeout_millis;
    let deadline = core.now.get() + millis * 1_000;
    let deadline = core.manners.ends.keeps_time.then_some(deadline);
    core.call(link, contract::SHUTDOWN, &format!(r#"{{"timeoutMillis":{millis}}}"#), deadline).await
}

/// Ends a process in order.
async fn shut_down(core: &Shared<'_>, link: LinkId) {
    let ends = &core.manners.ends;
    let stage = core.on(link, |it| it.stage);
    if stage == Some(Stage::Ready) {
        ui::dismiss(core, link);
        core.on(link, |it| it.stage = Stage::Closing);
        if ends.closes_first {
            core.act(Action::Close { link });
        }
        if ends.asks {
            let answer = ask_to_end(core, link).await;
            if ends.heeds_declined && answer.as_ref().is_ok_and(|it| it.contains("false")) {
                return drop(core.with(|state| state.links.remove(&link)));
            }
            let late = answer.is_err_and(|failure| failure.elapsed);
            if late && ends.reports_timeout {
                let name = core.on(link, |it| it.plugin.name.clone()).unwrap_or_default();
                let says = format!(
                    "plugin {name} did not answer when it was asked to end ({})",
                    reason::SHUTDOWN_TIMEOUT
                );
                core.tell("warning", &says, Some(&name));
            }
        }
        if ends.closes_input && !ends.closes_first {
            core.act(Action::Close { link });
        }
        let deadline = core.now.get() + ends.grace;
        let gone = core.until_so(Some(deadline), |core| core.on(link, |it| it.exited) != Some(false)).await;
        if !gone && ends.kills {
            core.act(Action::Kill { link });
            reaped(core, link).await;
        }
    }
    core.with(|state| state.links.remove(&link));
}

/// Ends these processes, all at once.
pub(super) async fn shut_all_down(core: &Shared<'_>) {
    let links = core.session(|session| std::mem::take(&mut session.running)).unwrap_or_default();
    let tasks = links.into_values().map(|link| {
        let task: Pin<Box<dyn Future<Output = ()>>> = Box::pin(shut_down(core, link));
        task
    });
    together(usize::MAX, tasks.collect()).await;
}

/// Starts the plugins again, in the next generation.
pub(super) async fn reload(core: &Shared<'_>) -> Result<(), Failure> {
    let counts = u64::from(core.manners.ends.reload_counts);
    core.session(|session| {
        session.generation += counts;
        session.moving = true;
    });
    if !core.manners.ends.reload_revives {
        let crashed = core.with(|state| {
            let gone = state.links.values().filter(|it| it.stage == Stage::Gone);
            gone.map(|it| it.plugin.name.clone()).collect::<Vec<_>>()
        });
        core.session(|session| session.plugins.retain(|plugin| !crashed.contains(&plugin.name)));
    }
    shut_all_down(core).await;
    let started = start(core).await;
    core.session(|session| session.moving = false);
    started
}
