//! Machines driven on real processes. This executable is its own launcher and its own guests, by its first argument;
//! without one of those it is a test harness with the usual filter.
//!
//! Nothing sleeps: tests wait for bytes, for ends of files and for pidfds, and all of that within a bound.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod drives;
mod guest;
mod launches;
mod player;
mod probes;
mod spawns;

use std::{
    env,
    ffi::OsStr,
    panic,
    process::ExitCode,
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use sidecert_runner::launch;

/// What a test may take when the machine is busy; a hang is longer.
const TEST_WITHIN: Duration = Duration::from_mins(1);

/// Tests that run at the same time: they mostly wait.
const AT_ONCE: usize = 4;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    match args.next().as_deref().and_then(OsStr::to_str) {
        Some(launch::WORD) => launch::main(args),
        Some(guest::WORD) => guest::main(args),
        Some(probes::WORD) => probes::main(args),
        _ => test(&env::args().skip(1).collect::<Vec<_>>()),
    }
}

#[expect(clippy::print_stdout, reason = "a test harness reports on its standard output")]
fn test(args: &[String]) -> ExitCode {
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let exact = args.iter().any(|arg| arg == "--exact");
    let wanted = |name: &str| {
        filters.is_empty()
            || filters.iter().any(|&filter| if exact { name == filter } else { name.contains(filter) })
    };
    let tests: Vec<Test> = [drives::TESTS, launches::TESTS, probes::TESTS, spawns::TESTS]
        .concat()
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .collect();
    if args.iter().any(|arg| arg == "--list") {
        for (name, _) in &tests {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let count = tests.len();
    // What others take, and took, would be counted as well.
    let (alone, tests): (Vec<Test>, _) = tests.into_iter().partition(|(name, _)| name.ends_with("no_memory"));
    let failed = run(alone, 1).and_then(|failed| Some(failed + run(tests, AT_ONCE)?));
    let Some(failed) = failed else { return ExitCode::FAILURE };
    println!("\ntest result: {count} run, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs tests, so many at once; how many failed, or `None` when one hangs.
#[expect(clippy::print_stdout, reason = "a test harness reports on its standard output")]
fn run(tests: Vec<Test>, at_once: usize) -> Option<usize> {
    let mut running: Vec<&str> = tests.iter().map(|(name, _)| *name).collect();
    let count = tests.len();
    let queue = std::sync::Arc::new(Mutex::new(tests));
    let (say, heard) = mpsc::channel();
    for _ in 0..at_once {
        let (queue, say) = (queue.clone(), say.clone());
        thread::spawn(move || {
            while let Some((name, run)) = { queue.lock().unwrap().pop() } {
                // Nobody hears it when the harness has given up.
                let _ = say.send((name, panic::catch_unwind(run).is_ok()));
            }
        });
    }
    let mut failed = 0;
    for _ in 0..count {
        let Ok((name, passed)) = heard.recv_timeout(TEST_WITHIN) else {
            println!("nothing ended within {TEST_WITHIN:?}; running: {running:?}");
            return None;
        };
        running.retain(|&it| it != name);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    Some(failed)
}
