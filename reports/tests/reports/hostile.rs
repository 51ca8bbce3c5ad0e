//! Whatever a target says, it commands neither the terminal nor the CI runner, and tells no secret.

use sidecert_reports::terminal::{Detail, Style, render};
use sidecert_reports::{Report, json, junit, markdown, safe};

use crate::samples;

/// What hostile texts are made of. `MARK` shows where the text of the target is.
const PIECES: [&str; 50] = [
    "\n",
    "\r",
    "\t",
    "\u{1b}[31m",
    "\u{1b}[0m",
    "\u{1b}]0;title\u{7}",
    "\0",
    "\u{8}",
    "\u{7f}",
    "\u{85}",
    "\u{9b}2J",
    "\u{202e}",
    "\u{202a}",
    "\u{2066}",
    "\u{2069}",
    "\u{200e}",
    "\u{61c}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{2028}",
    "\u{2029}",
    "\u{e0041}",
    "::",
    ":",
    "::error::",
    "##[",
    "##vso[",
    "#",
    "\\",
    " ",
    "传输",
    "{\"id\":1}",
    "e\u{301}😀",
    "\u{fffe}\u{ffff}",
    "]]>",
    "<!--",
    "</details><script>",
    "</code>",
    "&amp;&#60;",
    "`",
    "```\n",
    "|",
    "[x](http://example.com)",
    "![x](y)",
    "http://www.example.com",
    "*a* _b_ ~~c~~",
    "@somebody #1",
    "\n# heading\n",
    "- item",
];
pub(crate) const MARK: char = '¤';
/// The codes of our own; they always stand in pairs with the first of them.
const CODES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;31m", "\x1b[1;33m"];

/// A fixed sequence of texts: each piece alone, then mixtures of all lengths.
pub(crate) fn texts() -> impl Iterator<Item = String> {
    let mut state = 1_u32;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let mixtures =
        std::iter::repeat_with(move || (0..next(24)).map(|_| PIECES[next(PIECES.len())]).collect());
    PIECES.map(str::to_owned).into_iter().chain(mixtures.take(150)).map(|text: String| {
        let marked = text.chars().flat_map(|character| [MARK, character]).collect::<String>();
        // Marks would keep the parts of a command apart, so every text comes with and without them.
        format!("{marked}{MARK}{text}{MARK}")
    })
}

fn check(shown: &str) {
    let mut plain = shown.to_owned();
    for code in CODES {
        plain = plain.replace(code, "");
    }
    for character in plain.chars() {
        assert!(character == '\n' || !safe::is_hidden(character), "raw {character:?} in {plain}");
    }
    for command in ["::", "##[", "##vso["] {
        assert!(!plain.contains(command), "{command} in {plain}");
    }
    for line in plain.lines() {
        assert!(!line.trim_start().starts_with(MARK), "the target begins the line {line}");
    }
}

#[test]
fn no_text_of_a_target_acts() {
    for text in texts() {
        let report = samples::said_by_a_target(&text);
        for (color, width, detail) in
            [(false, 100, Detail::Normal), (true, 48, Detail::Verbose), (true, 0, Detail::Quiet)]
        {
            check(&render(&report, Style { color, width, detail }));
        }
        let once = safe::escape(&text).into_owned();
        assert_eq!(safe::escape(&once), once, "escaping twice is escaping once");
        check(&format!("| {once}"));
        check(&junit::render(&report));
        check(&markdown::render(&report));
        let stored = json::render(&report);
        check(&stored);
        assert_eq!(json::read(&stored).expect("our own report"), report);
    }
}

#[test]
fn no_bytes_of_a_target_act() {
    for text in texts() {
        let mut bytes = text.into_bytes();
        for (at, byte) in bytes.iter_mut().enumerate().filter(|(at, _)| at % 7 == 3) {
            *byte ^= u8::try_from(at % 251).expect("below 251") | 0x80;
        }
        for bytes_max in [0, 1, 7, bytes.len()] {
            for text in [safe::preview(&bytes, bytes_max), safe::tail(&bytes, bytes_max)] {
                assert!(text.len() <= 4 * bytes_max + 40, "{text}");
                check(&format!("| {}", safe::escape(&text)));
            }
        }
    }
}

#[test]
fn secrets_are_masked_everywhere() {
    let secrets = ["hunter2\"hunter2".to_owned(), "reasonix".to_owned(), "specified".to_owned()];
    for form in [
        "hunter2\"hunter2",
        r#"hunter2\"hunter2"#,
        "hunter2%22hunter2",
        r"hunter\u0032\u0022hunter2",
        "aHVudGVyMiJodW50ZXIy",
    ] {
        let mut report = samples::said_by_a_target(&format!("<{form}>"));
        report.mask(&secrets);
        assert_eq!(report.outcome.says, "<****>");
        for shown in [
            json::render(&report),
            junit::render(&report),
            markdown::render(&report),
            render(&report, Style { color: false, width: 9999, detail: Detail::Verbose }),
        ] {
            assert!(!shown.contains("hunter") && !shown.contains("HVudGVy"), "{shown}");
        }
        // A value that is also one of our own words changes neither these nor what files refer to.
        let stored = json::render(&report);
        assert_eq!(json::read(&stored).expect("our own report"), report);
        assert_eq!(report.suite, "reasonix-v1");
        assert_eq!(report.requirements[2].id, "reasonix/envelope/string-id-refused");
        assert_eq!(report.contract.id, "****.extension.v1");
    }
}

/// The walk over the strings misses none: it is compared with a walk over the JSON form.
#[test]
fn every_string_but_names_of_ours_is_visited() {
    let mut report: Report = samples::one_failure();
    report.outcome.cause = Some("a cause".to_owned());
    let ours = ["format", "name", "version", "suite", "edition", "id", "sha256"];
    let value = serde_json::to_value(&report).expect("a report is JSON");
    let mut secrets = Vec::new();
    strings(&value, "", &mut |member, text| {
        if text.len() >= 8 && !ours.contains(&member) {
            secrets.push(text.to_owned());
        }
    });
    report.mask(&secrets);
    let masked = serde_json::to_value(&report).expect("a report is JSON");
    strings(&masked, "", &mut |member, text| {
        let closed = ["role", "profile", "level", "basis", "verdict", "why", "kind", "from", "fault", "for"];
        let whole = ours.contains(&member) || closed.contains(&member) || text.len() < 8;
        assert!(whole || text.contains("****"), "{member}: {text}");
    });
}

fn strings(value: &serde_json::Value, member: &str, visit: &mut impl FnMut(&str, &str)) {
    match value {
        serde_json::Value::String(text) => visit(member, text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, member, visit)),
        serde_json::Value::Object(members) => {
            members.iter().for_each(|(name, inner)| strings(inner, name, visit));
        }
        _ => {}
    }
}
