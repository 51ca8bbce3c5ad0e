//! What may be installed: manifests, the grammar of slots, who owns one, and what a process is started with.

use serde_json::{Map, Value};
use sidecert_proto::contract::Contract;
use sidecert_proto::machine::Launch;
use sidecert_proto::reasonix::contract::variable;

use super::manners::Plugins;

/// What stands before the major version in the `apiVersion` of a manifest.
const API_VERSION: &str = "reasonix.io/plugin/v";
const SLOTS: [&str; 8] = [
    "system_prompt",
    "context",
    "provider_request",
    "provider_response",
    "compaction",
    "session_policy",
    "permission",
    "frontend_events",
];
const CAPABILITIES: [&str; 4] = ["interceptors", "strategies", "providers", "ui"];
const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "fish", "dash", "ksh", "cmd", "powershell", "pwsh"];
const MEMBERS: [&str; 12] = [
    "apiVersion",
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "icon",
    "contributes",
    "runtime",
];
const RUNTIME: [&str; 9] = [
    "command",
    "args",
    "env",
    "required",
    "priority",
    "intercepts",
    "replaces",
    "capabilities",
    "timeoutMillis",
];
/// What a manifest has besides since version 2.
const SINCE_2: [&str; 2] = ["provides", "requires"];
const PRIORITY_MOST: i64 = 1_000;

/// A plugin as it was installed, or only named.
#[derive(Clone, Debug)]
pub(super) struct Plugin {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) enabled: bool,
    /// Whether it is only named in the configuration of the project.
    pub(super) project: bool,
    pub(super) runtime: Option<Runtime>,
}

/// The part of a manifest that makes a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Runtime {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) required: bool,
    pub(super) priority: i64,
    pub(super) intercepts: Vec<String>,
    pub(super) replaces: Vec<String>,
    pub(super) capabilities: Vec<String>,
    pub(super) timeout_millis: u64,
    pub(super) provides: Option<Value>,
    pub(super) requires: Option<Value>,
}

impl Runtime {
    pub(super) fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|it| it == capability)
    }

    /// What the manifest lists of one kind, where it lists anything; a provider is named with its namespace.
    pub(super) fn listed(&self, kind: &str) -> Option<Vec<String>> {
        let all = self.provides.as_ref()?.as_array()?;
        let of_kind = all.iter().filter(|it| it["kind"].as_str() == Some(kind));
        let named = |it: &Value| {
            let id = it["id"].as_str()?;
            let namespace = it["namespace"].as_str().filter(|_| kind == "provider");
            Some(namespace.map_or_else(|| id.to_owned(), |namespace| format!("{namespace}/{id}")))
        };
        Some(of_kind.filter_map(named).collect())
    }
}

/// Reads a plugin as `start` names it, or says why it cannot be installed.
pub(super) fn admit(contract: &Contract, manners: &Plugins, entry: &Value) -> Result<Plugin, String> {
    let manifest = &entry["manifest"];
    let version = manifest["apiVersion"].as_str().and_then(|it| it.strip_prefix(API_VERSION));
    if version.is_some_and(|it| it.contains('.')) && !manners.takes_minors {
        return Err("apiVersion is a minor one".to_owned());
    }
    let fault = fault(contract, manners, manifest).filter(|_| manners.checks_manifests);
    if let Some(fault) = fault {
        return Err(format!("the manifest of {}: {fault}", entry["name"].as_str().unwrap_or("a plugin")));
    }
    let name = manifest["name"].as_str().or(entry["name"].as_str()).unwrap_or_default();
    let plain = manifest["apiVersion"].is_null() && !manners.starts_unversioned;
    Ok(Plugin {
        name: name.to_owned(),
        version: manifest["version"].as_str().unwrap_or_default().to_owned(),
        enabled: entry["enabled"].as_bool().unwrap_or(true),
        project: entry["declared"].as_str() == Some("project"),
        runtime: manifest
            .get("runtime")
            .filter(|_| !plain)
            .map(|block| runtime(manifest, block, manners.default_priority)),
    })
}

fn runtime(manifest: &Value, block: &Value, default_priority: i64) -> Runtime {
    let texts = |name: &str| -> Vec<String> {
        let list = block[name].as_array().into_iter().flatten();
        list.filter_map(|it| Some(it.as_str()?.to_owned())).collect()
    };
    let env = block["env"].as_object().into_iter().flatten();
    Runtime {
        command: block["command"].as_str().unwrap_or_default().to_owned(),
        args: texts("args"),
        env: env.filter_map(|(name, it)| Some((name.clone(), it.as_str()?.to_owned()))).collect(),
        required: block["required"].as_bool().unwrap_or(false),
        priority: block["priority"].as_i64().unwrap_or(default_priority),
        intercepts: texts("intercepts"),
        replaces: texts("replaces"),
        capabilities: texts("capabilities"),
        timeout_millis: block["timeoutMillis"].as_u64().unwrap_or(0),
        provides: manifest.get("provides").cloned(),
        requires: manifest.get("requires").cloned(),
    }
}

/// What is wrong with a manifest, apart from what is about the member that is not checked.
fn fault(contract: &Contract, manners: &Plugins, manifest: &Value) -> Option<String> {
    let unchecked = manners.unchecked;
    let Some(members) = manifest.as_object() else { return Some("it is no object".to_owned()) };
    if let Some(fault) =
        version_fault(contract, &manifest["apiVersion"]).filter(|_| unchecked != "apiVersion")
    {
        return Some(fault);
    }
    if manifest["apiVersion"].is_null() {
        return None;
    }
    let since: &[&str] = if contract.major > 1 { &SINCE_2 } else { &[] };
    if let Some(name) = unknown(members, &MEMBERS, since) {
        return Some(format!("{name} is not part of it"));
    }
    if let Some(name) = SINCE_2.iter().find(|name| members.get(**name).is_some_and(|it| !it.is_array())) {
        return Some(format!("{name} is no list"));
    }
    match manifest["name"].as_str() {
        Some(name) if is_name(name) => {}
        _ => return Some("name is not the name of a plugin".to_owned()),
    }
    let block = manifest.get("runtime")?;
    let Some(members) = block.as_object() else { return Some("runtime is no object".to_owned()) };
    runtime_fault(contract, manners, &checked(members, unchecked))
}

/// A runtime block without what is not checked of it: `members` stands for those that are not known.
fn checked(block: &Map<String, Value>, unchecked: &str) -> Map<String, Value> {
    let mut block = block.clone();
    match unchecked {
        "command" => drop(block.insert("command".to_owned(), "unchecked".into())),
        "members" => block.retain(|name, _| RUNTIME.contains(&&**name)),
        name => drop(block.remove(name)),
    }
    block
}

/// Gives plugins without a runtime that of the first which has one, as if it was theirs.
pub(super) fn clothe(plugins: &mut [std::rc::Rc<Plugin>]) {
    let Some(model) = plugins.iter().find_map(|plugin| plugin.runtime.clone()) else { return };
    for plugin in plugins.iter_mut().filter(|plugin| plugin.runtime.is_none()) {
        let mut worn = Plugin::clone(plugin);
        let mut runtime = model.clone();
        if let Some(at) = runtime.args.iter().position(|word| word == "--as")
            && let Some(name) = runtime.args.get_mut(at + 1)
        {
            name.clone_from(&worn.name);
        }
        worn.runtime = Some(runtime);
        *plugin = std::rc::Rc::new(worn);
    }
}

/// A minor of version 1 is version 1; later versions are written exactly. Without one it is a plugin of old, which has
/// no runtime.
fn version_fault(contract: &Contract, version: &Value) -> Option<String> {
    let wanted = format!("{API_VERSION}{}", contract.major);
    let fits = match version.as_str() {
        None => version.is_null() && contract.major == 1,
        Some(version) if contract.major == 1 => {
            let minor = version.strip_prefix(&wanted);
            minor.is_some_and(|minor| minor.is_empty() || minor.strip_prefix('.').is_some_and(is_number))
        }
        Some(version) => version == wanted,
    };
    (!fits).then(|| format!("apiVersion is not {wanted}"))
}

fn runtime_fault(contract: &Contract, manners: &Plugins, block: &Map<String, Value>) -> Option<String> {
    if let Some(name) = unknown(block, &RUNTIME, &[]) {
        return Some(format!("runtime.{name} is not part of it"));
    }
    let says = |name: &str, rule: &str| Some(format!("runtime.{name} {rule}"));
    let filled = |it: &Value| it.as_str().is_some_and(|text| !text.trim().is_empty());
    if !block.get("command").is_some_and(filled) {
        return says("command", "is no text that is not blank");
    }
    if let Some(list) = block.get("args").filter(|list| !all(list, filled)) {
        return says("args", &format!("is no list of texts that are not blank: {list}"));
    }
    let pairs = |it: &Value| {
        it.as_object()
            .is_some_and(|map| map.iter().all(|(key, value)| !key.trim().is_empty() && value.is_string()))
    };
    if block.get("env").is_some_and(|env| !pairs(env)) {
        return says("env", "is no map of texts");
    }
    if block.get("required").is_some_and(|it| !it.is_boolean()) {
        return says("required", "is neither true nor false");
    }
    let in_range = |it: &Value| it.as_i64().is_some_and(|it| it.abs() <= PRIORITY_MOST);
    if block.get("priority").is_some_and(|it| !in_range(it)) {
        return says("priority", "is not between -1000 and 1000");
    }
    if block.get("timeoutMillis").is_some_and(|it| !it.is_u64()) {
        return says("timeoutMillis", "is no integer from 0 on");
    }
    let is_known = |list: &str, it: &str| match list {
        "intercepts" => contract.events.iter().any(|event| event == it),
        "replaces" => {
            manners.takes_odd_slots || (is_slot(it) && (manners.takes_named_slots || !it.contains(':')))
        }
        _ => CAPABILITIES.contains(&it),
    };
    for name in ["intercepts", "replaces", "capabilities"] {
        let Some(list) = block.get(name) else { continue };
        if !list.is_array() {
            return says(name, "is no list");
        }
        let odd = list
            .as_array()
            .into_iter()
            .flatten()
            .find(|it| !it.as_str().is_some_and(|it| is_known(name, it)));
        if let Some(odd) = odd {
            return says(name, &format!("has {odd}, which is none"));
        }
    }
    None
}

fn unknown<'m>(members: &'m Map<String, Value>, known: &[&str], more: &[&str]) -> Option<&'m str> {
    members.keys().map(String::as_str).find(|name| !known.contains(name) && !more.contains(name))
}

fn all(list: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|list| list.iter().all(fits))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
}

fn is_name(name: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    name.len() <= 64 && name.starts_with(|it: char| it.is_ascii_alphanumeric()) && name.chars().all(plain)
}

/// Whether this is the name of a slot.
pub(super) fn is_slot(name: &str) -> bool {
    if let Some(tool) = name.strip_prefix("tool:") {
        return !tool.is_empty() && !tool.contains([' ', '\t', '\n']);
    }
    if let Some(model) = name.strip_prefix("provider:") {
        let parts: Vec<&str> = model.split('/').collect();
        let shaped = match parts.as_slice() {
            [_, _] => true,
            [kind, _, _, _] => *kind == "plugin",
            _ => false,
        };
        return shaped && parts.iter().all(|part| !part.trim().is_empty());
    }
    SLOTS.contains(&name)
}

/// Why these cannot be installed together: two claims to one slot.
pub(super) fn conflict<'p>(plugins: impl Iterator<Item = &'p Plugin>) -> Option<String> {
    let mut owners: Vec<(&str, &str)> = Vec::new();
    for plugin in plugins {
        for slot in plugin.runtime.iter().flat_map(|runtime| &runtime.replaces) {
            if let Some((_, owner)) = owners.iter().find(|(known, _)| known == slot) {
                return Some(format!("the slot {slot} is claimed by {owner} and by {}", plugin.name));
            }
            owners.push((slot, &plugin.name));
        }
    }
    None
}

/// What to start for a plugin in the folder `root`, or why its command is refused.
pub(super) fn launch(plugin: &Plugin, root: &str, manners: &Plugins) -> Result<Launch, String> {
    let runtime = plugin.runtime.clone().unwrap_or_default();
    let placeholder = format!("${{{}}}", variable::ROOT);
    let command = match runtime.command.strip_prefix(&placeholder).filter(|_| manners.expands_root) {
        Some(rest) => format!("{root}{rest}"),
        None => runtime.command,
    };
    let base = command.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let base = base.strip_suffix(".exe").unwrap_or(&base);
    if manners.checks_commands && SHELLS.contains(&base) {
        return Err(format!("its command is the shell {base}"));
    }
    if manners.checks_commands && !std::path::Path::new(&command).is_absolute() {
        return Err(format!("its command {command} is not absolute"));
    }
    let identity =
        [(variable::ROOT, root), (variable::NAME, &plugin.name), (variable::VERSION, &plugin.version)];
    let identity = identity.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let env = if manners.identity_prevails {
        runtime.env.into_iter().chain(identity).collect()
    } else {
        identity.into_iter().chain(runtime.env).collect()
    };
    let split =
        |args: &[String]| args.iter().flat_map(|it| it.split_whitespace()).map(str::to_owned).collect();
    let args = if manners.keeps_args { runtime.args } else { split(&runtime.args) };
    if manners.inherits_environment {
        return Ok(Launch { command, args, env });
    }
    let own = env.iter().map(|(name, value): &(String, String)| format!("{name}={value}"));
    let args = ["-i".to_owned()].into_iter().chain(own).chain([command]).chain(args).collect();
    Ok(Launch { command: "/usr/bin/env".to_owned(), args, env })
}
