//! A plugin of ours, as a host under test is asked to install it.

use crate::contract::Contract;
use crate::json::quoted;
use crate::machine::Launch;
use crate::script::{Setting, Step, Template};

/// The label of the ask that begins a session.
pub const START: &str = "start";

/// A plugin whose process is a remote-controlled one.
#[derive(Clone, Debug)]
pub struct Plugin {
    name: String,
    /// Members of the manifest besides `runtime`, as JSON texts; later ones prevail.
    manifest: Vec<(String, String)>,
    /// Members of its `runtime`, likewise.
    runtime: Vec<(String, String)>,
    has_runtime: bool,
    enabled: bool,
    project: bool,
}

impl Plugin {
    /// A plugin that is required, has every capability, steps in nowhere and owns nothing.
    pub fn new(setting: &Setting<'_>, name: &str) -> Self {
        let Launch { command, args, env } = setting.probe;
        let args = args.iter().map(String::as_str).chain(["--as", name]).map(quoted).collect::<Vec<_>>();
        let env = env.iter().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value)));
        let manifest = [
            ("apiVersion", quoted(&api_version(setting.contract))),
            ("name", quoted(name)),
            ("version", quoted("1.0.0")),
            ("description", quoted("A guest of sidecert")),
            ("contributes", "{}".to_owned()),
        ];
        let runtime = [
            ("command", quoted(command)),
            ("args", format!("[{}]", args.join(","))),
            ("env", format!("{{{}}}", env.collect::<Vec<_>>().join(","))),
            ("required", "true".to_owned()),
            ("capabilities", r#"["interceptors","strategies","providers","ui"]"#.to_owned()),
        ];
        let owned = |members: &[(&str, String)]| {
            members.iter().map(|(name, json)| ((*name).to_owned(), json.clone())).collect()
        };
        Self {
            name: name.to_owned(),
            manifest: owned(&manifest),
            runtime: owned(&runtime),
            has_runtime: true,
            enabled: true,
            project: false,
        }
    }

    /// With this member of its `runtime`, one JSON text, in place of the one that it has.
    #[must_use]
    pub fn with(mut self, member: &str, json: &str) -> Self {
        set(&mut self.runtime, member, json);
        self
    }

    /// Without this member of its `runtime`.
    #[must_use]
    pub fn without(mut self, member: &str) -> Self {
        self.runtime.retain(|(name, _)| name != member);
        self
    }

    /// With this member of its manifest, one JSON text, in place of the one that it has.
    #[must_use]
    pub fn manifest(mut self, member: &str, json: &str) -> Self {
        set(&mut self.manifest, member, json);
        self
    }

    /// Without this member of its manifest.
    #[must_use]
    pub fn manifest_without(mut self, member: &str) -> Self {
        self.manifest.retain(|(name, _)| name != member);
        self
    }

    /// Steps in at these points.
    #[must_use]
    pub fn intercepts(self, points: &[&str]) -> Self {
        let list = list(points);
        self.with("intercepts", &list)
    }

    /// Owns these slots.
    #[must_use]
    pub fn replaces(self, slots: &[&str]) -> Self {
        let list = list(slots);
        self.with("replaces", &list)
    }

    /// Has these capabilities only.
    #[must_use]
    pub fn capabilities(self, names: &[&str]) -> Self {
        let list = list(names);
        self.with("capabilities", &list)
    }

    /// The host goes on without it when it fails.
    #[must_use]
    pub fn optional(self) -> Self {
        self.with("required", "false")
    }

    /// Has no process of its own.
    #[must_use]
    pub fn without_runtime(mut self) -> Self {
        self.has_runtime = false;
        self
    }

    /// Is installed and not enabled.
    #[must_use]
    pub fn disabled(mut self) -> Self {
        self.enabled = false;
        self
    }

    /// Is not installed, and only named by the project.
    #[must_use]
    pub fn of_the_project(mut self) -> Self {
        self.project = true;
        self
    }

    /// What the shim is told of it: one JSON object.
    pub fn json(&self) -> String {
        let mut manifest = self.manifest.clone();
        if self.has_runtime {
            manifest.push(("runtime".to_owned(), object(&self.runtime)));
        }
        let declared = if self.project { r#","declared":"project""# } else { "" };
        let (name, enabled, manifest) = (quoted(&self.name), self.enabled, object(&manifest));
        format!(r#"{{"name":{name},"enabled":{enabled}{declared},"manifest":{manifest}}}"#)
    }
}

/// Asks for a session with these plugins. `more` are members of the ask, each with the comma before it.
pub fn start(setting: &Setting<'_>, plugins: &[Plugin], more: &str) -> Step {
    let plugins = plugins.iter().map(Plugin::json).collect::<Vec<_>>().join(",");
    let workspace = quoted(setting.workspace);
    let what = format!(r#"{{"do":"start","workspace":{workspace},"plugins":[{plugins}]{more}}}"#);
    Step::Ask { label: START.to_owned(), what: Template::new(what) }
}

fn api_version(contract: &Contract) -> String {
    format!("reasonix.io/plugin/v{}", contract.major)
}

fn list(of: &[&str]) -> String {
    format!("[{}]", of.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(","))
}

fn object(members: &[(String, String)]) -> String {
    let members = members.iter().map(|(name, json)| format!("{}:{json}", quoted(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn set(members: &mut Vec<(String, String)>, member: &str, json: &str) {
    members.retain(|(name, _)| name != member);
    members.push((member.to_owned(), json.to_owned()));
}
