//! `cargo xtask`: what a developer of sidecert runs. `cargo xtask help` lists it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program that talks to its developer")]

mod ci;
mod fuzz;
mod generate;
mod golden;
mod repository;
mod source;
mod tidy;

use std::process::ExitCode;

use repository::Repository;

/// What stopped a task, in words for the terminal; empty if they have been said.
type Outcome = Result<(), String>;

const HELP: &str = "\
cargo xtask TASK

  ci                        everything that must be green, in order, up to the first failure
  gen [--check]             write the generated files; with --check, fail if one would change
  golden [--check]          write the conclusions under golden/ anew: their diff is what a reviewer reads; with --check,
                            fail if one would change, or if a recording is not what was recorded
  golden --record           make the recordings that are missing under golden/ and can be made here
  tidy                      what no compiler checks: purity, names, lengths, links
  fuzz-smoke [--seconds N]  build the libFuzzer targets on this compiler and run each for N seconds (default 5)
  help                      this
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = Repository::open().and_then(|repository| match arguments.as_slice() {
        ["ci"] => ci::run(&repository),
        ["gen"] => generate::write(&repository),
        ["gen", "--check"] => generate::check(&repository),
        ["golden"] => golden::conclude(&repository),
        ["golden", "--check"] => golden::check(&repository),
        ["golden", "--record"] => golden::record(&repository),
        ["tidy"] => tidy::run(&repository),
        ["fuzz-smoke"] => fuzz::smoke(&repository, fuzz::SECONDS),
        ["fuzz-smoke", "--seconds", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::smoke(&repository, seconds),
            Err(_) => Err(format!("--seconds takes a number, not {seconds:?}")),
        },
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        [] => Err(HELP.to_owned()),
        [first, ..] => Err(format!("{first:?} is no task, or takes no such argument\n\n{HELP}")),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(says) => {
            eprintln!("{}", says.trim_end());
            ExitCode::FAILURE
        }
    }
}
