//! A home that the CLI is given instead of the user's: every file of it, and every variable that the CLI sees.
//!
//! The user's own home is never read and never written: the CLI inherits nothing but `PATH` and what a probe needs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::shims::Ask;

/// The model that stands in the configuration where no plugin has one: nobody serves it, so a session begins, and every
/// turn fails.
pub(crate) const NO_MODEL: &str = "none/none";

/// The last part of the ref of the model that is chosen where `start` names none: of the first plugin that may be one.
const MODEL_OF_PLUGIN: &str = "sample/echo";

/// Port 9 is where everything that is sent is thrown away, and in practice nobody listens.
const NO_MODEL_CONFIG: &str = r#"default_model = "none/none"
[[providers]]
name = "none"
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
model = "none"
models = ["none"]
api_key_env = "SIDECERT_NO_KEY"
"#;

/// A plugin as sidecert gives it.
#[derive(Clone, Debug)]
pub(crate) struct Plugin {
    pub(crate) name: String,
    manifest: Value,
    is_enabled: bool,
    /// Not installed, and only named in the configuration of the project.
    is_declared: bool,
}

impl Plugin {
    /// Reads one; none without a name.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            manifest: value["manifest"].clone(),
            is_enabled: value["enabled"].as_bool().unwrap_or(true),
            is_declared: value["declared"] == "project",
        })
    }

    /// It runs, and may be a model.
    fn has_models(&self) -> bool {
        let capabilities = self.manifest["runtime"]["capabilities"].as_array();
        let has_models = capabilities.is_some_and(|all| all.iter().any(|one| one == "providers"));
        self.is_enabled && !self.is_declared && has_models
    }

    /// Writes its folder.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("reasonix-plugin.json"), self.manifest.to_string())
    }
}

/// A throw-away home.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    program: PathBuf,
    /// `HOME`.
    pub(crate) folder: PathBuf,
    scratch: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) plugins: Vec<Plugin>,
    /// What to choose with `--model`; where it is absent, the configuration says it.
    pub(crate) model: Option<String>,
    env: Vec<(String, String)>,
    /// Whether tools that need permission are not to get it.
    pub(crate) denies: bool,
}

impl Home {
    /// Makes one in an empty folder, with these plugins installed as `start` asks.
    pub(crate) fn make(program: &Path, folder: &Path, plugins: Vec<Plugin>, start: &Ask) -> io::Result<Self> {
        let workspace = start.text("workspace").map_or_else(|| folder.join("workspace"), PathBuf::from);
        let first = plugins.iter().find(|plugin| plugin.has_models());
        let of_first = first.map(|plugin| format!("plugin/{}/{MODEL_OF_PLUGIN}", plugin.name));
        let model = start.text("model").map(str::to_owned).or(of_first).filter(|model| model != NO_MODEL);
        let given = start.member("env").as_object();
        let env = given
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| value.as_str().map(|value| (name.clone(), value.to_owned())));
        let home = Self {
            program: program.to_owned(),
            folder: folder.join("home"),
            scratch: folder.join("tmp"),
            workspace,
            model,
            env: env.collect(),
            denies: start.text("permission") == Some("deny"),
            plugins,
        };
        for folder in [&home.state(), &home.scratch, &home.workspace] {
            fs::create_dir_all(folder)?;
        }
        home.install(folder)?;
        if home.model.is_none() {
            fs::write(home.state().join("config.toml"), NO_MODEL_CONFIG)?;
        }
        Ok(home)
    }

    /// Where the CLI keeps what it knows.
    fn state(&self) -> PathBuf {
        self.folder.join(".reasonix")
    }

    fn install(&self, folder: &Path) -> io::Result<()> {
        let (mut installed, mut declared) = (Vec::new(), Vec::new());
        for (number, plugin) in self.plugins.iter().enumerate() {
            // A name may be none for a folder.
            let root = folder.join(format!("plugins/{number}"));
            plugin.write(&root)?;
            let version = plugin.manifest["version"].as_str().unwrap_or("0.0.0");
            let package = json!({
                "name": plugin.name, "source": root, "root": root, "version": version,
                "manifestKind": "reasonix", "enabled": plugin.is_enabled,
            });
            if plugin.is_declared { declared.push(package) } else { installed.push(package) }
        }
        let write = |state: PathBuf, packages: Vec<Value>| {
            let packages = json!({ "version": 1, "plugins": packages });
            fs::write(state.join("plugin-packages.json"), packages.to_string())
        };
        if !declared.is_empty() {
            // The nearest to it that a project has: the same file, in its own folder.
            let project = self.workspace.join(".reasonix");
            fs::create_dir_all(&project)?;
            write(project, declared)?;
        }
        write(self.state(), installed)
    }

    /// Where the plugin of this name lies.
    pub(crate) fn root_of(&self, name: &str) -> Option<PathBuf> {
        let number = self.plugins.iter().position(|plugin| plugin.name == name)?;
        Some(self.folder.with_file_name("plugins").join(number.to_string()))
    }

    /// The CLI in this home, with these words.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = bare(&self.program, &self.folder);
        command.args(words).current_dir(&self.workspace).env("TMPDIR", &self.scratch);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The same with `--model`, where there is one.
    pub(crate) fn command_with_model(&self, words: &[&str], model: Option<&str>) -> Command {
        let mut command = self.command(words);
        if let Some(model) = model.or(self.model.as_deref()) {
            command.args(["--model", model]);
        }
        command
    }

    /// The plugin that a message of the CLI is about, if it names one the way such messages do.
    pub(crate) fn named_in(&self, text: &str) -> Option<&str> {
        let names = |name: &str| {
            text.starts_with(&format!("{name}: "))
                || text.starts_with(&format!("[{name}] "))
                || text.contains(&format!("extension {name} "))
                || text.contains(&format!("sidecar {name} "))
                || text.contains(&format!("runtime \"{name}\""))
        };
        self.plugins.iter().map(|plugin| plugin.name.as_str()).find(|name| names(name))
    }
}

/// The CLI with this as its home, and nothing else of its own.
pub(crate) fn bare(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    // Not in the folder of the user: a CLI reads a configuration where it stands.
    command.current_dir(home);
    command.env_clear().envs(inherited()).env("HOME", home).env("TMPDIR", home);
    command.env("DO_NOT_TRACK", "1").env("REASONIX_TELEMETRY", "off");
    command.env("LANG", "C.UTF-8").env("REASONIX_LANG", "en").env("SIDECERT_NO_KEY", "none");
    command
}

/// What the CLI sees of our environment.
fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| name == "PATH" || name.starts_with("SIDECERT_PROBE"))
    })
}
