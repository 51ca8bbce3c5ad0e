//! The differ finds every edit of a contract, in its place and by its class, and nothing else.
//!
//! A thousand pairs by default, since reading two contracts takes milliseconds; `PROPTEST_CASES=10000` makes it more.

mod edits;

use edits::{Dice, EDITS, Editor, Expected};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use sidecert_proto::contract::Contract;
use sidecert_proto::contract::diff::{Class, diff};
use std::cell::RefCell;
use std::collections::BTreeMap;

const PAIRS: u32 = 1_000;

#[expect(clippy::disallowed_methods, reason = "a test may be told how much to do")]
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(PAIRS)
}

fn read(document: &Value) -> Contract {
    let text = document.to_string();
    Contract::read(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// What the differ finds, as the editor keeps book of it.
fn found(old: &Contract, new: &Contract) -> Vec<Expected> {
    let changes = diff(old, new).changes;
    let mut found: Vec<Expected> = changes
        .into_iter()
        .map(|change| Expected { class: change.class, pointer: change.pointer, of: change.of })
        .collect();
    found.sort();
    found
}

#[test]
fn every_edit_is_found_by_its_class_in_its_place_and_nothing_else() {
    let cases = cases();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let done: RefCell<BTreeMap<&str, u32>> = RefCell::default();
    let outcome = runner.run(&(vec(any::<u16>(), 0..60), vec(any::<u16>(), 0..24)), |(shape, choices)| {
        let mut editor = Editor::new(edits::contract(&mut Dice(&shape)));
        let mut dice = Dice(&choices);
        while !dice.is_spent() {
            let (name, edit) = EDITS[dice.below(EDITS.len())];
            if edit(&mut editor, &mut dice).is_some() {
                *done.borrow_mut().entry(name).or_default() += 1;
            }
        }
        let (old, new) = (read(&editor.old), read(&editor.new));
        assert_eq!(found(&old, &new), editor.expected());
        assert!(diff(&old, &old).is_empty() && diff(&new, &new).is_empty());
        // The other way round there is as much to find, and never less at the worst.
        assert_eq!(diff(&new, &old).is_empty(), editor.expected().is_empty());
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let done = done.into_inner();
    let rare: Vec<_> =
        EDITS.iter().filter(|(name, _)| done.get(name).is_none_or(|times| *times < cases / 500)).collect();
    assert!(rare.is_empty(), "hardly ever done: {:?}", rare.iter().map(|(name, _)| name).collect::<Vec<_>>());
}

#[test]
fn edits_of_every_class_are_there() {
    let mut editor = Editor::new(edits::contract(&mut Dice(&[])));
    for (_, edit) in EDITS {
        let _ = edit(&mut editor, &mut Dice(&[]));
    }
    let expected = editor.expected();
    for class in Class::ALL {
        assert!(expected.iter().any(|one| one.class == class), "{class:?}");
    }
}
