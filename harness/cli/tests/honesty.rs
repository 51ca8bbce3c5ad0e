//! The same proof as in memory, on real processes: each flaw fails exactly what it names, whether tours share a process
//! or not, and a flawless guest fails nothing, ours or the one that shares no code with us.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use sidecert_cases::SUITES;
use sidecert_mocks::{Flaw, flaws};
use sidecert_proto::contract::Side;
use sidecert_proto::suite::Suite;
use support::{check, mock, node_guest, provocations, python_guest, verdicts};

/// The suite whose guests have tools.
const WEBCODEX: &str = "webcodex-v1";

/// Flaws of time and of processes mostly wait, so more of them run at once than there are processors.
const AT_ONCE: usize = 3;

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

/// What makes the mocks do everything: what no frame can order, and what may have effects.
fn everything(suite: &str) -> Vec<String> {
    if suite == WEBCODEX {
        let calls = [r#"add={"a":1,"b":2}"#, r#"echo={"text":"sidecert"}"#, "fail={}"];
        return calls.into_iter().flat_map(|call| ["--call", call]).map(str::to_owned).collect();
    }
    ["--provoke", &provocations().display().to_string(), "--exercise", "all"].map(str::to_owned).to_vec()
}

fn checked(suite: &str, options: &[&str], target: &[String]) -> (Vec<(String, String)>, i32, String) {
    let everything = everything(suite);
    let options: Vec<&str> = everything.iter().map(String::as_str).chain(options.iter().copied()).collect();
    let (report, code) = check(suite, &options, target);
    let causes = report["causes"].as_array().unwrap().iter();
    let causes = causes.map(|cause| format!("{} {} {}", cause["script"], cause["actual"], cause["at"]));
    (verdicts(&report), code, causes.collect::<Vec<_>>().join("; "))
}

/// Every which flaw is checked by the whole suite; the others by what they break, since in memory each has met all of it.
const WHOLE: usize = 16;

#[test]
fn each_flaw_fails_exactly_what_it_names_shared_or_alone() {
    // In memory both editions are gone through; here one of those that have the flaw will do.
    let mut cases: Vec<_> = flaws(SUITES[1], Side::Guest).map(|flaw| (SUITES[1], flaw)).collect();
    cases.extend(
        flaws(SUITES[0], Side::Guest)
            .filter(|flaw| flaw.editions == SUITES[0].edition)
            .map(|it| (SUITES[0], it)),
    );
    cases.extend(flaws(SUITES[2], Side::Guest).map(|flaw| (SUITES[2], flaw)));
    let cases: Vec<_> = cases.into_iter().enumerate().collect();
    let problems = each(&cases, |(place, (suite, flaw))| {
        let only: Vec<&str> = flaw.breaks.iter().flat_map(|id| ["--only", id]).collect();
        let few = (place % WHOLE != 0 && !only.is_empty()).then(|| held(suite, flaw, &only));
        match few {
            Some(None) => None,
            // What it breaks may show only where others are played, too.
            Some(Some(_)) | None => held(suite, flaw, &[]),
        }
    });
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

/// What does not hold of a flaw, where it is checked with these options, shared and alone.
fn held(suite: &Suite, flaw: &Flaw, options: &[&str]) -> Option<String> {
    let target = mock(suite.name, Some(flaw.name));
    // What should hold counts as well.
    let options = [&["--profile", "reference", "--strict"], options].concat();
    let (shared, code, cause) = checked(suite.name, &options, &target);
    let (alone, _, cause_alone) = checked(suite.name, &[&options[..], &["--isolate"]].concat(), &target);
    let failing: BTreeSet<&str> =
        shared.iter().filter(|(_, verdict)| verdict == "fail").map(|(id, _)| &**id).collect();
    let expected: BTreeSet<&str> = flaw.breaks.iter().copied().collect();
    let cut = shared.iter().any(|(_, verdict)| verdict == "cut_short");
    let warned = shared.iter().any(|(_, verdict)| verdict == "warn");
    // What is cut short may be nothing that the specification asks for.
    let shows = if expected.is_empty() { cut && [0, 3].contains(&code) } else { code == 1 };
    let held = failing == expected && !warned && shows && shared == alone;
    let others: Vec<_> =
        shared.iter().zip(&alone).filter(|(shared, alone)| shared != alone).take(3).collect();
    (!held).then(|| {
        let causes = format!("cut short shared: {cause}; alone: {cause_alone}");
        format!("{} {} {options:?}: {code} {failing:?} {others:?}; {causes}", suite.name, flaw.name)
    })
}

/// What a flawless guest comes to where everything is brought up.
fn expected(suite: &str, id: &str) -> &'static str {
    match id {
        "reasonix/security/credentials-read-by-itself"
        | "reasonix/transport/memory-bounded"
        | "reasonix/members/additions-tolerated"
        | "reasonix/content/digests-plain" => "unobservable",
        "reasonix/lifecycle/provides-fit" if suite == "reasonix-v1" => "not_applicable",
        _ => "pass",
    }
}

#[test]
fn a_flawless_guest_fails_nothing_shared_or_alone() {
    for (suite, target) in SUITES.iter().flat_map(|suite| {
        let ours = [mock(suite.name, None), python_guest(suite.name)];
        ours.into_iter().chain(node_guest(suite.name)).map(move |target| (suite, target))
    }) {
        let (shared, code, _) = checked(suite.name, &["--profile", "reference"], &target);
        assert_eq!(code, 0, "{target:?}");
        for (id, verdict) in &shared {
            assert_eq!(verdict, expected(suite.name, id), "{target:?} {id}");
        }
        let (alone, ..) = checked(suite.name, &["--profile", "reference", "--isolate"], &target);
        assert_eq!(shared, alone, "{target:?}");
    }
}

#[test]
fn without_anything_given_the_rest_is_undecided_and_the_run_is_green() {
    for suite in SUITES {
        let (report, code) = check(suite.name, &[], &mock(suite.name, None));
        assert_eq!(code, 0);
        for (id, verdict) in verdicts(&report) {
            let undecided = matches!(&*verdict, "not_provoked" | "not_exercised");
            assert!(undecided || verdict == expected(suite.name, &id), "{id}: {verdict}");
        }
    }
}
