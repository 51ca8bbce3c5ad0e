//! Test results: valid XML whatever a target wrote, and green only where something held.

use insta::assert_snapshot;
use roxmltree::{Document, Node};
use sidecert_reports::junit::render;
use sidecert_reports::{Report, Verdict, Why, safe};

use crate::hostile::texts;
use crate::samples;

fn cases<'d>(document: &'d Document<'d>) -> Vec<Node<'d, 'd>> {
    document.descendants().filter(|node| node.has_tag_name("testcase")).collect()
}

/// What a case is shown as: the name of the element in it, if any.
fn shown_as(case: Node<'_, '_>) -> String {
    let result = case.children().find(|node| node.is_element() && !node.has_tag_name("system-out"));
    result.map_or("success", |node| node.tag_name().name()).to_owned()
}

#[test]
fn one_failure() {
    assert_snapshot!(render(&samples::one_failure()));
}

#[test]
fn a_run_that_was_cut_short() {
    assert_snapshot!(render(&samples::cut_short()));
}

#[test]
fn every_verdict_has_its_form() {
    for report in [samples::one_failure(), samples::cut_short(), samples::warnings_and_undecided()] {
        let text = render(&report);
        let document = Document::parse(&text).expect("XML");
        let cases = cases(&document);
        let alone = usize::from(report.outcome.exit_code > 1);
        assert_eq!(cases.len(), report.requirements.len() + alone);
        for row in &report.requirements {
            let (section, name) = row.id.rsplit_once('/').expect("an id");
            let case = cases
                .iter()
                .find(|case| {
                    case.attribute("name") == Some(name) && case.attribute("classname") == Some(section)
                })
                .expect("a case for each requirement");
            let suite = case.parent().expect("a suite");
            assert_eq!(suite.attribute("name"), Some(section));
            let expected = match (row.verdict, row.why) {
                (Verdict::Pass | Verdict::Warn, _) => "success",
                (Verdict::Fail, _) => "failure",
                (_, Some(Why::CutShort)) => "error",
                _ => "skipped",
            };
            assert_eq!(shown_as(*case), expected, "{}", row.id);
        }
        assert_eq!(document.root_element().attribute("tests"), Some(cases.len().to_string().as_str()));
    }
}

#[test]
fn what_no_verdict_shows_is_a_case_of_its_own() {
    let text = render(&samples::warnings_and_undecided());
    let document = Document::parse(&text).expect("XML");
    let run = cases(&document).into_iter().find(|case| case.attribute("classname") == Some("run"));
    assert_eq!(shown_as(run.expect("a case for the run")), "error");
}

/// A strict parser takes it, and finds in it what the target said, spelled out.
#[test]
fn any_text_is_valid_xml() {
    for text in texts() {
        let report: Report = samples::said_by_a_target(&text);
        let xml = render(&report);
        let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).expect("a failure");
        // Readers of XML make one space of any white space in an attribute; spaces are the only one left here.
        assert_eq!(failure.attribute("message"), Some(&*safe::escape(&text)));
        assert_eq!(cases(&document).len(), report.requirements.len());
    }
}
