//! Everything that must be green, in order. A step says one line; one that fails says all that it wrote.

use std::process::Command;
use std::time::Instant;

use crate::Outcome;
use crate::repository::{Repository, output};
use crate::{fuzz, generate, golden, tidy};

/// How long each property is fuzzed, in seconds.
const FUZZ_SECONDS: u64 = 3;

/// Runs every step, up to the first failure.
pub(crate) fn run(repository: &Repository) -> Outcome {
    let cargo = |arguments: &[&str]| {
        let mut command = repository.cargo();
        command.args(arguments);
        command
    };
    step("format", || {
        quiet(cargo(&["fmt", "--all", "--check"]))?;
        quiet(cargo(&["fmt", "--check", "--manifest-path", "fuzz/targets/Cargo.toml"]))
    })?;
    step("lints", || {
        quiet(cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    })?;
    step("generated files", || generate::check(repository))?;
    // What is concluded from them is tested below.
    step("recordings", || golden::evidence(repository))?;
    step("tidy", || tidy::run(repository))?;
    // The suite over its own mocks as processes, and every stored input of the fuzzers, are among these.
    step("tests", || shown(cargo(&["test", "--locked", "--workspace"])))?;
    step("documentation", || {
        let mut doc = cargo(&["doc", "--locked", "--workspace", "--no-deps"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        quiet(doc)
    })?;
    step("fuzz smoke", || fuzz::smoke(repository, FUZZ_SECONDS))?;
    for (name, tests) in [
        ("the Python guest", "mock-sidecars/python/test_guest.py"),
        ("the Python host", "mock-sidecars/python/test_host.py"),
        ("the Python shim", "adapters/shim/test_sidecert_shim.py"),
    ] {
        step(name, || {
            let mut python = repository.command("python3");
            python.args(["-I", tests]);
            quiet(python)
        })?;
    }
    step("the guest and the shim in JavaScript", || {
        let mut node = repository.command("node");
        if node.arg("--version").output().is_err() {
            println!("SKIPPED: there is no `node`, so what is in JavaScript is not tested");
            return Ok(());
        }
        let mut node = repository.command("node");
        node.args(["--test", "mock-sidecars/node/test_guest.mjs", "adapters/shim/test_sidecert-shim.mjs"]);
        quiet(node)
    })
}

fn step(name: &str, run: impl FnOnce() -> Outcome) -> Outcome {
    let began = Instant::now();
    let outcome = run();
    let seconds = began.elapsed().as_secs_f64();
    match outcome {
        Ok(()) => {
            println!("ok    {name}, {seconds:.1} s");
            Ok(())
        }
        Err(says) => Err(format!("{}\nfailed {name}, {seconds:.1} s", says.trim_end())),
    }
}

fn quiet(mut command: Command) -> Outcome {
    output(&mut command).map(drop)
}

/// Runs a program whose output is for the reader.
fn shown(mut command: Command) -> Outcome {
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", command.get_program().to_string_lossy()))
    }
}
