//! What a person, or a program of theirs, finds of our plugins: a folder with a folder for each, and the variables that
//! every process of theirs must get.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sidecert_runner::probe;

use super::Ask;

/// What a manifest is called.
const MANIFEST: &str = "reasonix-plugin.json";
/// The file with the variables, as a shell reads them.
const VARIABLES: &str = "variables";

/// A plugin that has its folder.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) is_enabled: bool,
    /// Not installed, and only named in the configuration of the project.
    pub(crate) is_declared: bool,
}

/// The folder, which is the same in a whole run.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The one that is named, or else the one that sidecert gives a shim.
    pub(crate) fn of(named: Option<&Path>, given: &str) -> Self {
        Self(named.map_or_else(|| given.into(), Path::to_owned))
    }

    /// Where the folders of the plugins are.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.0.join("plugins")
    }

    /// Where something else is.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The file with the variables.
    pub(crate) fn variables(&self) -> PathBuf {
        self.file(VARIABLES)
    }

    /// Writes a folder for each plugin of a `start`, and the variables; what was there before is gone.
    pub(crate) fn place(&self, start: &Ask) -> io::Result<Vec<Placed>> {
        match fs::remove_dir_all(self.plugins()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(self.plugins())?,
        }
        let mut text = String::new();
        for (name, value) in variables() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "export {name}={}", shlex::try_quote(&value).unwrap_or_default());
        }
        fs::write(self.variables(), text)?;
        let plugins = start.member("plugins").as_array().into_iter().flatten();
        plugins.map(|plugin| self.place_one(plugin)).collect()
    }

    /// Writes the folder of one plugin.
    pub(crate) fn place_one(&self, plugin: &Value) -> io::Result<Placed> {
        let name = plugin["name"].as_str().unwrap_or_default();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let folder = if is_plain && !name.is_empty() && name.len() <= 64 {
            self.plugins().join(name)
        } else {
            // A name may be none for a folder.
            let taken = fs::read_dir(self.plugins()).map_or(0, Iterator::count);
            self.plugins().join(format!("plugin-{}", taken + 1))
        };
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(MANIFEST), plugin["manifest"].to_string())?;
        Ok(Placed {
            name: name.to_owned(),
            folder,
            is_enabled: plugin["enabled"].as_bool().unwrap_or(true),
            is_declared: plugin["declared"] == "project",
        })
    }
}

/// The variables by which a probe finds us.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, String)> {
    [probe::AT, probe::TOKEN].into_iter().filter_map(|name| Some((name, env::var(name).ok()?)))
}
