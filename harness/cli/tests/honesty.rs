//! The same proof as in memory, on real processes: each flaw fails exactly what it names, whether tours share a process
//! or not, and a flawless guest fails nothing, ours or the one that shares no code with us.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use sidecert_cases::SUITES;
use sidecert_mocks::flaws;
use support::{check, mock, provocations, python_guest, verdicts};

/// Flaws of time and of processes mostly wait, so more of them run at once than there are processors.
const AT_ONCE: usize = 6;

/// What comes of `of` for each item, several at once.
fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = {
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        *next - 1
                    };
                    let Some(item) = items.get(at) else { return };
                    let result = of(item);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn each_flaw_fails_exactly_what_it_names() {
    let provoke = provocations().display().to_string();
    let cases: Vec<_> = SUITES
        .iter()
        .flat_map(|suite| flaws(suite).flat_map(|flaw| [(*suite, flaw, false), (*suite, flaw, true)]))
        .collect();
    let problems = each(&cases, |(suite, flaw, isolate)| {
        let mut options = vec!["--profile", "reference", "--provoke", &provoke];
        if *isolate {
            options.push("--isolate");
        }
        let (report, code) = check(suite.name, &options, &mock(suite.name, Some(flaw.name)));
        let failing: BTreeSet<String> = verdicts(&report)
            .into_iter()
            .filter(|(_, verdict)| verdict == "fail")
            .map(|(id, _)| id)
            .collect();
        let expected: BTreeSet<String> = flaw.breaks.iter().map(|&id| id.to_owned()).collect();
        let others: Vec<_> = verdicts(&report)
            .into_iter()
            .filter(|(_, verdict)| verdict == "warn" || verdict == "not_provoked")
            .collect();
        let held = failing == expected && others.is_empty() && code == 1;
        (!held)
            .then(|| format!("{} {} isolate={isolate}: {code} {failing:?} {others:?}", suite.name, flaw.name))
    });
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn a_flawless_guest_fails_nothing_shared_or_alone() {
    let provoke = provocations().display().to_string();
    for suite in SUITES {
        for target in [mock(suite.name, None), python_guest()] {
            let (shared, code) = check(suite.name, &["--provoke", &provoke], &target);
            assert_eq!(code, 0, "{target:?}");
            for (id, verdict) in verdicts(&shared) {
                let expected = match &*id {
                    "reasonix/security/credentials-read-by-itself" => "unobservable",
                    "reasonix/lifecycle/provides-fit" if suite.name == "reasonix-v1" => "not_applicable",
                    _ => "pass",
                };
                assert_eq!(verdict, expected, "{target:?} {id}");
            }
            let (alone, _) = check(suite.name, &["--provoke", &provoke, "--isolate"], &target);
            assert_eq!(verdicts(&shared), verdicts(&alone), "{target:?}");
        }
    }
}

#[test]
fn without_a_provocation_file_what_needs_one_is_undecided_and_the_run_is_green() {
    let (report, code) = check("reasonix-v1", &[], &mock("reasonix-v1", None));
    let undecided: Vec<_> =
        verdicts(&report).into_iter().filter(|(_, verdict)| verdict == "not_provoked").collect();
    assert_eq!(undecided, [("reasonix/transport/frames-within-limit".to_owned(), "not_provoked".to_owned())]);
    assert_eq!(code, 0);
}
