//! libFuzzer on the stable compiler, for a few seconds per property: that the targets build, run over the stored corpus,
//! and find nothing at once. What they find becomes a regression.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sidecert_props::{ALL, Property};

use crate::Outcome;
use crate::repository::{Repository, output};

/// How long each property is fuzzed unless told otherwise, in seconds.
pub(crate) const SECONDS: u64 = 5;

/// How much longer than asked a target may take before it is ended: it first runs the whole corpus.
const GRACE: Duration = Duration::from_mins(2);
/// How often it is looked whether a target has ended.
const LOOK: Duration = Duration::from_millis(50);
const MEMORY_MIB_MAX: u32 = 2048;
/// How long one input may take, in seconds.
const INPUT_SECONDS_MAX: u32 = 20;

/// Builds the targets and runs each for this many seconds.
pub(crate) fn smoke(repository: &Repository, seconds: u64) -> Outcome {
    let workspace = repository.root.join("fuzz/targets");
    let folder = workspace.join("target");
    // The flags stand in the workspace's own .cargo/config.toml, which cargo reads in that folder; the environment would
    // come before it.
    let mut build = repository.cargo();
    build.current_dir(&workspace).args(["build", "--release", "--locked", "--target-dir"]).arg(&folder);
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        build.env_remove(name);
    }
    output(&mut build)?;
    let host = output(repository.command("rustc").arg("--print").arg("host-tuple"))?;
    let binaries = folder.join(host.trim()).join("release");
    for property in ALL {
        run(
            repository,
            property,
            &binaries.join(property.name),
            &folder.join("smoke").join(property.name),
            seconds,
        )?;
    }
    Ok(())
}

fn run(repository: &Repository, property: &Property, binary: &Path, scratch: &Path, seconds: u64) -> Outcome {
    let says = |error: std::io::Error| format!("{}: {error}", property.name);
    let (corpus, crashes) = (scratch.join("corpus"), scratch.join("crashes"));
    if scratch.exists() {
        std::fs::remove_dir_all(scratch).map_err(says)?;
    }
    std::fs::create_dir_all(&corpus).map_err(says)?;
    std::fs::create_dir_all(&crashes).map_err(says)?;
    let stored = repository.root.join("fuzz/corpus").join(property.name);
    copy(&stored, &corpus).map_err(says)?;

    let log = scratch.join("log");
    let file = std::fs::File::create(&log).map_err(says)?;
    let mut command = repository.command(&binary.to_string_lossy());
    command
        .arg(&corpus)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .args(["-max_len=4096", "-verbosity=1", "-print_final_stats=1"])
        .stdout(Stdio::null())
        .stderr(file);
    let mut child = command.spawn().map_err(says)?;
    let until = Instant::now() + Duration::from_secs(seconds) + GRACE;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(says)? {
            break status;
        }
        if Instant::now() > until {
            child.kill().map_err(says)?;
            break child.wait().map_err(says)?;
        }
        std::thread::sleep(LOOK);
    };
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    if status.success() {
        let runs = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        println!("  {}: {} inputs", property.name, runs.unwrap_or("?").trim());
        return Ok(());
    }
    let regressions = repository.root.join("fuzz/regressions").join(property.name);
    std::fs::create_dir_all(&regressions).map_err(says)?;
    let stored = copy(&crashes, &regressions).map_err(says)?;
    let stored: Vec<String> =
        stored.iter().map(|name| format!("fuzz/regressions/{}/{name}", property.name)).collect();
    // What the property says comes first, before the stack; a target that was ended says it last.
    let lines: Vec<&str> = log.lines().collect();
    let from =
        lines.iter().position(|line| line.contains("panicked at")).unwrap_or(lines.len().saturating_sub(20));
    let last = lines[from..].iter().take(20).copied().collect::<Vec<_>>().join("\n");
    let name = property.name;
    Err(format!(
        "{last}\n{name}: {status}\n{}\nstored: {}\n`cargo test -p sidecert-props` runs it again",
        property.says,
        stored.join(", ")
    ))
}

/// Copies the files of a folder; their names.
fn copy(from: &Path, to: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}
