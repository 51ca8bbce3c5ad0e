//! What a person reads, in every situation. The snapshots are there to be read as that person.

use insta::assert_snapshot;
use sidecert_reports::Report;
use sidecert_reports::terminal::{Detail, Style, render};

use crate::samples;

fn shown(report: &Report, detail: Detail) -> String {
    render(report, Style { color: false, width: 100, detail })
}

#[test]
fn all_green() {
    assert_snapshot!(shown(&samples::green(), Detail::Normal));
}

#[test]
fn all_green_in_full() {
    assert_snapshot!(shown(&samples::green(), Detail::Verbose));
}

#[test]
fn one_failure() {
    assert_snapshot!(shown(&samples::one_failure(), Detail::Normal));
}

#[test]
fn one_failure_on_a_narrow_terminal() {
    assert_snapshot!(render(
        &samples::one_failure(),
        Style { color: false, width: 60, detail: Detail::Normal }
    ));
}

#[test]
fn one_failure_in_colour() {
    let style = Style { color: true, width: 100, detail: Detail::Normal };
    // The escape character would be invisible in a snapshot.
    assert_snapshot!(render(&samples::one_failure(), style).replace('\x1b', "␛"));
}

#[test]
fn a_run_that_was_cut_short() {
    assert_snapshot!(shown(&samples::cut_short(), Detail::Normal));
}

#[test]
fn warnings_and_undecided() {
    assert_snapshot!(shown(&samples::warnings_and_undecided(), Detail::Normal));
}

#[test]
fn warnings_and_undecided_in_full() {
    assert_snapshot!(shown(&samples::warnings_and_undecided(), Detail::Verbose));
}

#[test]
fn hostile_strings() {
    let text = "\r::error file=a.rs::pwned\n##vso[task.complete]\u{1b}[2J\u{202e}gnp\u{200b}.exe";
    assert_snapshot!(shown(&samples::said_by_a_target(text), Detail::Normal));
}

#[test]
fn quiet() {
    assert_snapshot!(shown(&samples::one_failure(), Detail::Quiet));
    assert_snapshot!("quiet_green", shown(&samples::green(), Detail::Quiet));
}

#[test]
fn lines_stay_within_the_width_but_for_what_is_copied() {
    for width in [0, 72, 100, 140] {
        let style = Style { color: false, width, detail: Detail::Verbose };
        for line in render(&samples::one_failure(), style).lines() {
            let copied = line.contains("sidecert check") || line.starts_with("reasonix-v1 guest: ");
            assert!(copied || line.chars().count() <= width.max(60), "{width}: {line}");
        }
    }
}

#[test]
fn the_headline_counts_everything() {
    let report = samples::warnings_and_undecided();
    assert_eq!(
        report.headline(),
        "reasonix-v1 guest: 2 pass, 0 fail, 1 warn, 1 not applicable, 9 undecided (2 cut short, 1 not measured, \
         1 out of reach, 2 not provoked, 1 not exercised, 1 not selected, 1 unobservable)"
    );
}

#[test]
fn a_comparison() {
    assert_snapshot!(shown(&samples::compared(), Detail::Normal));
}
