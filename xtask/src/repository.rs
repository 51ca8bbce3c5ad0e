//! The checkout: its files, and the programs that are run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The checkout that this program was built from.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) root: PathBuf,
}

impl Repository {
    pub(crate) fn open() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the checkout has no root")?;
        Ok(Self { root: root.to_owned() })
    }

    /// Every file that is tracked or could be, by its path from the root, in order.
    pub(crate) fn files(&self) -> Result<Vec<String>, String> {
        let mut git = self.command("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = output(&mut git)?;
        let mut files: Vec<String> = listed.split('\0').map(str::to_owned).collect();
        files.retain(|file| !file.is_empty() && self.root.join(file).is_file());
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The text of a file; `None` if it is none.
    pub(crate) fn text(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(file)).ok()
    }

    /// A program that is run at the root.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// The cargo that runs us.
    pub(crate) fn cargo(&self) -> Command {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        self.command(&cargo)
    }
}

/// Runs a program to its end, silently. If it fails, all that it wrote is the error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    let written = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(written);
    }
    Err(format!("{written}{}{name}: {}", String::from_utf8_lossy(&output.stderr), output.status))
}
