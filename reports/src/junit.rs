//! The form for what reads test results: `JUnit` XML, a suite for each section, a case for each requirement.
//!
//! A failure has the text of [`crate::terminal`]. What was cut short is an error, and any other requirement that was
//! not judged is skipped with its reason, so that only what held looks green. What the run as a whole came to is a case
//! of its own where it is more than its verdicts.

use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use crate::report::{Report, Requirement, Verdict, Why};
use crate::{safe, terminal};

/// Exit codes that say no more than the verdicts do.
const OF_VERDICTS: [u8; 2] = [0, 1];

/// Writes a report.
pub fn render(report: &Report) -> String {
    let mut junit = Junit::new(shown(&format!("{} {}", report.suite, report.role.word())));
    let mut suites: Vec<(&str, TestSuite)> = Vec::new();
    for requirement in &report.requirements {
        let section = requirement.section();
        let case = case(report, requirement);
        let known = suites.iter().position(|(name, _)| *name == section);
        let place = known.unwrap_or_else(|| {
            suites.push((section, TestSuite::new(shown(section))));
            suites.len() - 1
        });
        suites[place].1.add_test_case(case);
    }
    junit.add_test_suites(suites.into_iter().map(|(_, suite)| suite));
    if !OF_VERDICTS.contains(&report.outcome.exit_code) {
        let mut suite = TestSuite::new("run");
        suite.add_test_case(outcome(report));
        junit.add_test_suite(suite);
    }
    junit.to_string().expect("text that is escaped is written to memory")
}

fn case(report: &Report, requirement: &Requirement) -> TestCase {
    let remark = shown(&requirement.remark());
    let mut seen = None;
    let status = match requirement.verdict {
        Verdict::Pass => {
            seen = requirement.says.as_deref().map(shown);
            TestCaseStatus::success()
        }
        Verdict::Warn => {
            seen = Some(terminal::requirement_text("WARN", requirement));
            TestCaseStatus::success()
        }
        Verdict::Fail => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(requirement.level.word());
            status.set_message(shown(requirement.actual.as_deref().unwrap_or(&requirement.text)));
            status.set_description(terminal::requirement_text("FAIL", requirement));
            status
        }
        Verdict::Undecided if requirement.why == Some(Why::CutShort) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("cut short");
            status.set_message(remark);
            // All of it once: with the first of those that it cut short.
            let first = report.causes.iter().find(|cause| cause.cuts.first() == Some(&requirement.id));
            if let Some(cause) = first {
                status.set_description(terminal::cause_text(cause));
            }
            status
        }
        Verdict::Undecided => skipped(remark),
        Verdict::NotApplicable => skipped(format!("not applicable: {remark}")),
    };
    let name = requirement.id.rsplit('/').next().unwrap_or_default();
    let mut case = TestCase::new(shown(name), status);
    case.set_classname(shown(requirement.section()));
    if let Some(seen) = seen {
        case.set_system_out(seen);
    }
    case
}

fn skipped(message: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}

/// An interruption, a report that could not be written, a requirement that was required: no verdict shows these.
fn outcome(report: &Report) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type(format!("exit code {}", report.outcome.exit_code));
    status.set_message(shown(&report.outcome.says));
    let mut case = TestCase::new("outcome", status);
    case.set_classname("run");
    case
}

/// Text that holds nothing that XML cannot: everything of the kind is spelled out.
fn shown(text: &str) -> String {
    safe::escape(text).into_owned()
}
