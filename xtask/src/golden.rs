//! What lies under `golden/`: recordings, which are evidence and never edited, and the conclusions drawn from them.
//!
//! A recording that is missing is made; one that is to be made anew is deleted first, which a reviewer sees. Where each
//! of them comes from stands in `golden/recordings/provenance.toml`, with the SHA-256 of every file of it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use sidecert_proto::digest;

use crate::Outcome;
use crate::repository::{Repository, output};

/// Where the recordings are.
const FOLDER: &str = "golden/recordings";
/// Where it stands where they come from.
const PROVENANCE: &str = "golden/recordings/provenance.toml";

/// Where temporary folders are made while something is recorded.
const SHARED_MEMORY: &str = "/dev/shm";
/// Those of the released Reasonix CLI as a host, which a script of their own makes; and what that calls them.
const REASONIX_CLI: [(&str, &[&str]); 2] = [
    (
        "reasonix-cli-1.38.11",
        &["plain-turn", "tool-call", "blocked-input", "large-input", "failed-handshake", "acp-card"],
    ),
    ("reasonix-cli-1.38.11-acp", &["acp-check"]),
];

/// Which recordings there are, and where they come from.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Provenance {
    recording: Vec<Recording>,
}

/// Where a recording comes from.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    /// A file, or the folder of a run, below [`FOLDER`].
    path: String,
    suite: String,
    /// The program that was recorded: its name, its version, and where it is from.
    program: String,
    /// Which end that program is: `guest` or `host`.
    role: String,
    /// The day on which it was made.
    made: String,
    /// The command that made it.
    how: String,
    /// Whether free text was replaced by placeholders.
    redacted: bool,
    /// The SHA-256 of each of its files.
    sha256: BTreeMap<String, String>,
}

/// One that this repository can make by itself.
struct Plan {
    path: &'static str,
    suite: &'static str,
    /// Which end is recorded: `guest` or `host`.
    role: &'static str,
    program: &'static str,
    options: &'static [&'static str],
    target: &'static [&'static str],
}

/// All that a guest can be asked for.
const WHOLE: &[&str] =
    &["--exercise", "all", "--provoke", "mock-sidecars/provocations.toml", "--profile", "reference"];

/// All of a host that takes no time limit of the protocol, but for payloads beyond 64 KiB: a recording has the asks for
/// them, and their pages, byte for byte.
const OF_A_HOST: &[&str] =
    &["--driver", "shim", "--profile", "reference", "--skip", "reasonix/host-content/*"];

/// The same with these payloads, but for the rows that need a great many of them or one of eight megabytes.
const OF_A_HOST_WITH_CONTENTS: &[&str] = &[
    "--driver",
    "shim",
    "--profile",
    "reference",
    "--skip",
    "reasonix/host-content/too-large-not-sent",
    "--skip",
    "reasonix/host-content/newest-kept",
    "--skip",
    "reasonix/host-content/expired-refused",
];

const PLANS: &[Plan] = &[
    Plan {
        path: "mock-v1",
        suite: "reasonix-v1",
        role: "guest",
        program: "the mock guest of this repository",
        options: WHOLE,
        target: &["sidecert", "mock", "guest", "--suite", "reasonix-v1"],
    },
    Plan {
        path: "mock-v2",
        suite: "reasonix-v2",
        role: "guest",
        program: "the mock guest of this repository",
        options: WHOLE,
        target: &["sidecert", "mock", "guest", "--suite", "reasonix-v2"],
    },
    Plan {
        path: "mock-v1-speaks-too-soon",
        suite: "reasonix-v1",
        role: "guest",
        program: "the mock guest of this repository, with a flaw",
        options: &["--only", "reasonix/lifecycle/silent-before-initialized"],
        target: &["sidecert", "mock", "guest", "--suite", "reasonix-v1", "--flaw", "speaks-too-soon"],
    },
    Plan {
        path: "mock-v2-serves-string-ids",
        suite: "reasonix-v2",
        role: "guest",
        program: "the mock guest of this repository, with a flaw",
        options: &["--only", "reasonix/envelope/string-id-refused"],
        target: &["sidecert", "mock", "guest", "--suite", "reasonix-v2", "--flaw", "serves-string-ids"],
    },
    Plan {
        path: "python-v2",
        suite: "reasonix-v2",
        role: "guest",
        program: "mock-sidecars/python/guest.py of this repository",
        options: WHOLE,
        target: &["python3", "-I", "-S", "mock-sidecars/python/guest.py"],
    },
    Plan {
        path: "node-v2",
        suite: "reasonix-v2",
        role: "guest",
        program: "mock-sidecars/node/guest.mjs of this repository",
        options: WHOLE,
        target: &["node", "mock-sidecars/node/guest.mjs"],
    },
    Plan {
        path: "reference-host-v1",
        suite: "reasonix-v1",
        role: "host",
        program: "the reference host of this repository",
        options: OF_A_HOST,
        target: &["sidecert", "mock", "host", "--suite", "reasonix-v1"],
    },
    Plan {
        path: "reference-host-v2",
        suite: "reasonix-v2",
        role: "host",
        program: "the reference host of this repository",
        options: OF_A_HOST_WITH_CONTENTS,
        target: &["sidecert", "mock", "host", "--suite", "reasonix-v2"],
    },
    Plan {
        path: "reference-host-v2-released",
        suite: "reasonix-v2",
        role: "host",
        program: "the reference host of this repository, where it follows the released one",
        options: OF_A_HOST,
        target: &["sidecert", "mock", "host", "--suite", "reasonix-v2", "--released"],
    },
    Plan {
        path: "python-host-v2",
        suite: "reasonix-v2",
        role: "host",
        program: "mock-sidecars/python/host.py of this repository",
        options: OF_A_HOST,
        target: &["python3", "mock-sidecars/python/host.py", "--suite", "reasonix-v2"],
    },
];

/// Makes the recordings that are missing and can be made here.
pub(crate) fn record(repository: &Repository) -> Outcome {
    let mut build = repository.cargo();
    build.args(["build", "--locked", "--workspace", "--bins"]);
    output(&mut build)?;
    for (folder, names) in REASONIX_CLI {
        if repository.root.join(FOLDER).join(folder).exists() {
            continue;
        }
        let mut script = repository.command("python3");
        script.args(["golden/record_reasonix_cli.py", "--sidecert", "target/debug/sidecert"]);
        script.args(names.iter().flat_map(|name| ["--only", name]));
        output(&mut script)?;
        println!("recorded {folder}");
    }
    let mut provenance = read(repository)?;
    provenance.recording.retain(|known| repository.root.join(FOLDER).join(&known.path).exists());
    for plan in PLANS {
        if repository.root.join(FOLDER).join(plan.path).exists() {
            continue;
        }
        let how = make(repository, plan)?;
        provenance.recording.push(Recording {
            path: plan.path.to_owned(),
            suite: plan.suite.to_owned(),
            program: plan.program.to_owned(),
            role: plan.role.to_owned(),
            made: output(repository.command("date").args(["-u", "+%Y-%m-%d"]))?.trim().to_owned(),
            how,
            redacted: false,
            sha256: hashes(&repository.root.join(FOLDER).join(plan.path))?,
        });
        println!("recorded {}", plan.path);
    }
    provenance.recording.sort_by(|one, other| one.path.cmp(&other.path));
    let text = toml::to_string_pretty(&provenance).map_err(|error| error.to_string())?;
    write(repository, PROVENANCE, &format!("{HEAD}{text}"))
}

const HEAD: &str = "\
# Where each recording comes from. Evidence: `cargo xtask golden --check` fails if a file here is another, or is missing.

";

/// Plays the suite against a program of ours; gives the command.
fn make(repository: &Repository, plan: &Plan) -> Result<String, String> {
    let mut words = vec!["check", plan.role, "--suite", plan.suite, "--seed", "1"];
    words.extend(plan.options);
    let folder = repository.root.join(FOLDER).join(plan.path);
    let fault = |error: std::io::Error| format!("{}: {error}", plan.path);
    // A recording says where a program works and, of guests of ours, what it is called and which variables there are:
    // the program is called from a folder that every Linux has, with a copy of it there, and hardly any variables.
    let stage = Path::new(SHARED_MEMORY).join("sidecert");
    fs::create_dir(&stage).map_err(fault)?;
    let made = (|| {
        fs::copy(repository.root.join("target/debug/sidecert"), stage.join("sidecert"))?;
        symlink(repository.root.join("mock-sidecars"), stage.join("mock-sidecars"))?;
        let paths = env::var_os("PATH").unwrap_or_default();
        let paths = [stage.clone()].into_iter().chain(env::split_paths(&paths));
        let paths = env::join_paths(paths).map_err(std::io::Error::other)?;
        let mut check = Command::new(stage.join("sidecert"));
        check.current_dir(&stage).env_clear().env("PATH", paths).env("TMPDIR", SHARED_MEMORY);
        check.args(&words).args(["--quiet", "--record"]).arg(&folder).arg("--").args(plan.target);
        check.status()
    })();
    fs::remove_dir_all(&stage).map_err(fault)?;
    let status = made.map_err(fault)?;
    // A flaw is found, and that is what is recorded.
    if !matches!(status.code(), Some(0 | 1)) {
        return Err(format!("{}: {status}", plan.path));
    }
    Ok(format!("sidecert {} -- {}", words.join(" "), plan.target.join(" ")))
}

fn read(repository: &Repository) -> Result<Provenance, String> {
    let Some(text) = repository.text(PROVENANCE) else { return Ok(Provenance::default()) };
    toml::from_str(&text).map_err(|error| format!("{PROVENANCE}: {error}"))
}

/// The SHA-256 of a file, or of each in a folder.
fn hashes(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(fault)? {
            files.push(entry.map_err(fault)?.path());
        }
    } else {
        files.push(path.to_owned());
    }
    let mut hashes = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        hashes.insert(name, digest::sha256(&bytes));
    }
    Ok(hashes)
}

fn write(repository: &Repository, file: &str, text: &str) -> Outcome {
    fs::write(repository.root.join(file), text).map_err(|error| format!("{file}: {error}"))
}

/// Every file below the recordings must be one that the provenance names, as it was.
pub(crate) fn evidence(repository: &Repository) -> Outcome {
    let provenance = read(repository)?;
    let mut wrong = Vec::new();
    let mut known = vec![PROVENANCE.to_owned()];
    for recording in &provenance.recording {
        let path = format!("{FOLDER}/{}", recording.path);
        let found = hashes(&repository.root.join(&path))?;
        if found != recording.sha256 {
            let differ = found.iter().filter(|(name, hash)| recording.sha256.get(*name) != Some(*hash));
            let missing = recording.sha256.keys().filter(|name| !found.contains_key(*name));
            let names: Vec<&str> = differ.map(|(name, _)| name).chain(missing).map(String::as_str).collect();
            wrong.push(format!("{path}: not what was recorded: {}", names.join(", ")));
        }
        let is_folder = repository.root.join(&path).is_dir();
        let file = |name: &String| if is_folder { format!("{path}/{name}") } else { path.clone() };
        known.extend(found.keys().map(file));
    }
    let below = |file: &String| file.starts_with(&format!("{FOLDER}/")) && !known.contains(file);
    for file in repository.files()?.into_iter().filter(below) {
        wrong.push(format!("{file}: {PROVENANCE} does not say where it comes from"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Draws the conclusions anew: the matrices of flaws and requirements, and the verdicts on the recordings.
pub(crate) fn conclude(repository: &Repository) -> Outcome {
    evidence(repository)?;
    tests(repository, true)
}

/// Fails if a recording is not what was recorded, or a conclusion is not what is drawn from it.
pub(crate) fn check(repository: &Repository) -> Outcome {
    evidence(repository)?;
    tests(repository, false)
}

/// The tests that draw the conclusions; they are among all tests as well.
fn tests(repository: &Repository, bless: bool) -> Outcome {
    let mut command = repository.cargo();
    command.args(["test", "--locked", "-q", "--workspace", "--test", "honesty", "--test", "golden"]);
    command.args(["--", "--exact", "verdicts_on_the_recordings"]);
    command.args(["guest", "host"].map(|side| format!("each_flaw_of_a_{side}_fails_exactly_what_it_names")));
    if bless {
        command.env("SIDECERT_BLESS", "1");
    }
    output(&mut command).map(drop)
}
