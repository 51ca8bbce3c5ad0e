//! A page for CI: short, and nothing in it but text where a target has a say.

use insta::assert_snapshot;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use sidecert_reports::markdown::render;
use sidecert_reports::safe;

use crate::hostile::{MARK, texts};
use crate::samples;

/// The HTML that is ours.
const OURS: [&str; 6] = ["<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>"];

#[test]
fn one_failure() {
    assert_snapshot!(render(&samples::one_failure()));
}

#[test]
fn a_run_that_was_cut_short() {
    assert_snapshot!(render(&samples::cut_short()));
}

#[test]
fn warnings_and_undecided() {
    assert_snapshot!(render(&samples::warnings_and_undecided()));
}

/// Takes our own elements and character references out of a piece of HTML, and demands that no other element is left.
fn text_of(html: &str) -> String {
    let mut text = html.to_owned();
    for element in OURS {
        text = text.replace(element, "");
    }
    assert!(!text.contains(['<', '>']), "HTML that is not ours: {html}");
    text
}

#[test]
fn no_text_of_a_target_is_markdown_or_html() {
    for hostile in texts() {
        let page = render(&samples::said_by_a_target(&hostile));
        let shown = safe::escape(&hostile).into_owned();
        let (mut blocks, mut in_code) = (0, false);
        let mut open = Vec::new();
        for event in Parser::new_ext(&page, Options::all()) {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    assert_eq!(kind, CodeBlockKind::Fenced("text".into()), "{page}");
                    (blocks, in_code) = (blocks + 1, true);
                }
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Html(html) => drop(text_of(&html)),
                Event::InlineHtml(html) => {
                    drop(text_of(&html));
                    match &*html {
                        "<code>" => open.push(()),
                        _ => drop(open.pop()),
                    }
                }
                Event::Text(text) if text.contains(MARK) => {
                    assert!(in_code || !open.is_empty(), "text of the target outside of code: {text}");
                }
                Event::Start(
                    Tag::Link { .. }
                    | Tag::Image { .. }
                    | Tag::Emphasis
                    | Tag::Strikethrough
                    | Tag::List(_)
                    | Tag::BlockQuote(_)
                    | Tag::FootnoteDefinition(_),
                )
                | Event::Code(_)
                | Event::Rule
                | Event::InlineMath(_)
                | Event::DisplayMath(_)
                | Event::FootnoteReference(_)
                | Event::TaskListMarker(_) => panic!("{event:?} in {page}"),
                _ => {}
            }
        }
        // The failure, the cause and the warning, whole.
        assert_eq!((blocks, open.len()), (3, 0), "{page}");
        assert!(shown.contains('\n') || page.lines().any(|line| line.contains(&shown)), "{shown}: {page}");
        let columns = |line: &&str| line.matches(" | ").count();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
        assert!(rows.iter().all(|row| [2, 5].contains(&columns(row))), "{rows:?}");
    }
}
