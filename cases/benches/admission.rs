//! How fast lists of WebCodex tools are admitted, from their text to the answer, on one core.
//!
//! `cargo bench -p sidecert-cases --bench admission`. A list of 120 tools as they are: a description, an input schema of six
//! properties, an output schema, hints. Beside it, in the same run, one scan of the same text. The goal is 65 MB/s.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark is told the time, and tells it"
)]

use std::time::Instant;

use sidecert_proto::json::Tape;
use sidecert_proto::webcodex::contract::{Generation, v1};
use sidecert_proto::webcodex::document::{self, Kind};

/// How often a try reads the list.
const ROUNDS: u32 = 50;
/// Of several tries the best one counts: the machine may be busy with something else.
const TRIES: usize = 5;

fn main() {
    let text = list();
    let bounds = v1().bounds(Generation::Newer);
    println!("{} tools, {} KB", 120, text.len() / 1000);
    told("scan", &text, || assert!(Tape::scan(text.as_bytes()).is_ok()));
    told("admission", &text, || {
        assert_eq!(document::check(text.as_bytes(), Kind::ToolsList, bounds), Ok(Some(120)));
    });
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn told(what: &str, text: &str, run: impl Fn()) {
    let time = |_| {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            run();
        }
        start.elapsed().as_secs_f64()
    };
    let best = (0..TRIES).map(time).fold(f64::INFINITY, f64::min);
    let bytes = text.len() as f64 * f64::from(ROUNDS);
    println!("{what:10} {:7.0} MB/s", bytes / best / 1e6);
}

fn list() -> String {
    let tools: Vec<String> = (0..120).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

fn tool(index: usize) -> String {
    let properties: Vec<String> = ["path", "query", "encoding", "revision", "prefix", "language"]
        .iter()
        .map(|name| {
            format!(
                r#""{name}":{{"type":"string","description":"The {name} that is looked at, as it is on the machine.","minLength":1,"maxLength":4096}}"#
            )
        })
        .collect();
    format!(
        r#"{{"name":"tool_{index}","title":"Tool {index}","description":"Looks for symbols in the files of a project, and says where each is declared and used.","inputSchema":{{"type":"object","properties":{{{},"limit":{{"type":"integer","enum":[10,20,50,100]}},"kinds":{{"type":"array","items":{{"type":"string","enum":["function","type","value"]}},"maxItems":8}}}},"required":["path","query"],"additionalProperties":false}},"outputSchema":{{"type":"object","properties":{{"found":{{"type":"array","items":{{"type":"object","properties":{{"file":{{"type":"string"}},"line":{{"type":"integer"}}}},"required":["file","line"]}}}}}},"required":["found"]}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#,
        properties.join(",")
    )
}
