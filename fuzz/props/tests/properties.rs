//! Every property on random bytes, on the stored corpus and on what once broke it; and a proof that one can break.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use sidecert_cases::SUITES;
use sidecert_props::{ALL, Cut, Property, lines_of, unlike};
use sidecert_proto::contract::Side;
use sidecert_proto::script::{Script, Setting};

/// How many random byte strings a property is tried on.
const CASES: u32 = 256;
/// How long they are at most.
const BYTES_MAX: usize = 400;

/// The same random byte strings every time.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn on_random_bytes(name: &str, cases: u32) {
    let property = ALL.iter().find(|property| property.name == name).expect("a property of that name");
    let outcome = runner(cases).run(&vec(any::<u8>(), 0..BYTES_MAX), |bytes| {
        (property.check)(&bytes);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{}\n{error}", property.says);
    }
}

#[test]
fn chunking_holds_of_random_bytes() {
    on_random_bytes("chunking", CASES);
}

#[test]
fn contracts_holds_of_random_bytes() {
    // Each of these reads a dozen contracts.
    on_random_bytes("contracts", CASES / 4);
}

#[test]
fn encoding_holds_of_random_bytes() {
    on_random_bytes("encoding", CASES);
}

#[test]
fn flaws_holds_of_random_bytes() {
    // Each of these is a whole run.
    on_random_bytes("flaws", CASES / 8);
}

#[test]
fn json_holds_of_random_bytes() {
    on_random_bytes("json", CASES);
}

#[test]
fn judging_holds_of_random_bytes() {
    // Each of these is judged a dozen times.
    on_random_bytes("judging", CASES / 4);
}

#[test]
fn scripts_holds_of_random_bytes() {
    on_random_bytes("scripts", CASES);
}

/// The files that are stored for a property, in order.
fn stored(property: &Property) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above");
    let folders = ["corpus", "regressions"].map(|folder| fuzz.join(folder).join(property.name));
    let entries = folders
        .iter()
        .filter(|folder| folder.exists())
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_property_holds_of_what_is_stored() {
    for property in ALL {
        let files = stored(property);
        assert!(!files.is_empty(), "fuzz/corpus/{} is empty", property.name);
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let outcome = std::panic::catch_unwind(|| (property.check)(&bytes));
            assert!(outcome.is_ok(), "{} is false of {}", property.name, file.display());
        }
    }
}

/// What takes a limit and chunks, and gives what it makes of them.
type Deframe = fn(usize, &[&[u8]]) -> Cut;

/// A deframer that forgets an empty line at the beginning of a chunk.
fn forgetful(limit: usize, chunks: &[&[u8]]) -> Cut {
    let kept: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.strip_prefix(b"\n\n").unwrap_or(chunk)).collect();
    lines_of(limit, &kept)
}

/// A deframer that takes the end of a chunk for the end of a line.
fn hasty(limit: usize, chunks: &[&[u8]]) -> Cut {
    let ended: Vec<Vec<u8>> = chunks.iter().map(|chunk| [chunk, &b"\n"[..]].concat()).collect();
    lines_of(limit, &ended.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A deframer that lets a line be one byte longer than the limit, when it comes in one chunk.
fn generous(limit: usize, chunks: &[&[u8]]) -> Cut {
    lines_of(limit + usize::from(chunks.len() == 1), chunks)
}

#[test]
fn a_wrong_deframer_is_caught() {
    let wrong: [(&str, Deframe); 3] = [("forgetful", forgetful), ("hasty", hasty), ("generous", generous)];
    for (name, deframe) in wrong {
        // Line feeds are what matters, so they are not left to chance.
        let text = vec(proptest::sample::select(vec![b'\n', b'a', b'b', 7_u8, 0_u8]), 0..64);
        let cases = Cell::new(0);
        let outcome = runner(CASES).run(&text, |bytes| {
            cases.set(cases.get() + 1);
            match unlike(&bytes, deframe) {
                Some(difference) => Err(TestCaseError::fail(difference)),
                None => Ok(()),
            }
        });
        assert!(outcome.is_err(), "{name} was not caught in {} cases", cases.get());
    }
}

#[test]
fn every_built_in_script_comes_back_from_its_text_form() {
    let large = r#"{"event":"input.receive","payload":{"text":"sidecert:large"}}"#;
    let provocations = BTreeMap::from([("large".to_owned(), large.to_owned())]);
    let (nothing, everything) = (BTreeSet::new(), BTreeSet::from(["all".to_owned()]));
    for suite in SUITES {
        let setting = Setting {
            declared: &nothing,
            provocations: &provocations,
            exercised: &everything,
            seed: 7,
            workspace: "/workspace",
            ..Setting::plain((suite.contract)())
        };
        let mut scripts = suite.scripts(suite.rows(Side::Guest));
        scripts.extend([suite.opening, suite.closing]);
        for def in scripts {
            let script = def.script(&setting);
            let again = Script::read(script.write().as_bytes());
            assert_eq!(again.as_ref(), Ok(&script), "{} {}", suite.name, def.name);
        }
    }
}
