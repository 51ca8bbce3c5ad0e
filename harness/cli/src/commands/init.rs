//! `init`: a folder to start from, with a guest that conforms, what checks it, and what checks it in CI.
//!
//! Nothing that is there is ever overwritten: if one file exists, none is written.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::args::{InitArgs, Language};
use crate::exit::{self, Fault};
use crate::output;

/// The files of a starter: where each goes, and what stands in it. The first one is the author's to change.
type Starter = &'static [(&'static str, &'static str)];

macro_rules! starter {
    ($folder:literal, $($path:literal from $file:literal),+) => {
        &[$(($path, include_str!(concat!("../../starter/", $folder, "/", $file)))),+]
    };
}

static PYTHON: Starter = starter!(
    "python",
    "guest.py" from "guest.py",
    "reasonix.py" from "reasonix.py",
    "reasonix-plugin.json" from "reasonix-plugin.json",
    "sidecert.toml" from "sidecert.toml",
    ".github/workflows/sidecert.yml" from "ci.yml"
);
static NODE: Starter = starter!(
    "node",
    "guest.mjs" from "guest.mjs",
    "reasonix.mjs" from "reasonix.mjs",
    "reasonix-plugin.json" from "reasonix-plugin.json",
    "sidecert.toml" from "sidecert.toml",
    ".github/workflows/sidecert.yml" from "ci.yml"
);

/// Writes the starter of a language, and says what to do with it.
pub(crate) fn run(args: &InitArgs) -> Result<u8, Fault> {
    let starter = match args.language {
        Language::Python => PYTHON,
        Language::Node => NODE,
    };
    for (name, _) in starter {
        let path = args.folder.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(there(&path));
        }
    }
    let mut written = Vec::new();
    for (name, text) in starter {
        let path = args.folder.join(name);
        if let Err(error) = write(&path, text, &mut written) {
            // What was written a moment ago is ours to take back.
            for ours in &written {
                let _ = fs::remove_file(ours);
            }
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => there(&path),
                _ => Fault::not_written(&path.display().to_string(), &error),
            });
        }
    }
    output::print(&advice(&args.folder, starter))?;
    Ok(exit::OK)
}

fn there(path: &Path) -> Fault {
    Fault::usage(format!("{} is there already; nothing was written", path.display()))
}

fn write(path: &Path, text: &str, written: &mut Vec<PathBuf>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // The manifest starts the guest itself by its path.
    let starts = path.file_stem().is_some_and(|stem| stem == "guest");
    let mut file =
        File::options().write(true).create_new(true).mode(if starts { 0o755 } else { 0o644 }).open(path)?;
    written.push(path.to_owned());
    file.write_all(text.as_bytes())
}

fn advice(folder: &Path, starter: Starter) -> String {
    let mut text = String::new();
    for (name, _) in starter {
        text += &format!("wrote {}\n", folder.join(name).display());
    }
    let guest = starter.first().map_or("it", |(name, _)| name);
    text += "\nNow:\n";
    if folder != Path::new(".") {
        text += &format!("  cd {}\n", quoted(folder));
    }
    text += &format!(
        "  sidecert check guest           it conforms as it is\n  \
           sidecert explain members-fit   all there is to know of one requirement\n\n\
         Then make {guest} do what you want, keep reasonix-plugin.json true, and check again.\n\
         The workflow in .github needs one line from you: where it gets sidecert from.\n"
    );
    text
}

fn quoted(folder: &Path) -> String {
    let text = folder.display().to_string();
    shlex::try_quote(&text).map(|quoted| quoted.into_owned()).unwrap_or(text)
}
