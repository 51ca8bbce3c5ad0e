//! The specimens in `cases/specimens/webcodex/`, a line each: a text, and what is said of it.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// One of them.
#[derive(Debug)]
pub(crate) struct Specimen {
    /// Its name, with that of its file.
    pub(crate) name: String,
    /// `input-schema` and so on.
    pub(crate) kind: String,
    /// Whether it is judged by the older bounds.
    pub(crate) older: bool,
    /// What arguments or structured content are matched with.
    pub(crate) schema: Option<String>,
    /// The document.
    pub(crate) text: String,
    /// `None` where it is admitted, else code, tool, field and pointer.
    pub(crate) expect: Option<(String, Option<String>, Option<String>, String)>,
}

/// All of them.
pub(crate) fn all() -> Vec<Specimen> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases/specimens/webcodex");
    let mut specimens = Vec::new();
    for file in ["schemas", "lists", "texts", "instances"] {
        #[expect(clippy::disallowed_methods, reason = "a test reads its data")]
        let lines = std::fs::read(folder.join(format!("{file}.ndjson"))).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        specimens.extend(lines.lines().map(|line| one(file, &serde_json::from_str(line).unwrap())));
    }
    specimens
}

fn one(file: &str, line: &Value) -> Specimen {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let expect = &line["expect"];
    let expect = expect.is_object().then(|| {
        (
            text(&expect["code"]).unwrap(),
            text(&expect["tool"]),
            text(&expect["field"]),
            text(&expect["pointer"]).unwrap(),
        )
    });
    Specimen {
        name: format!("{file}/{}", line["name"].as_str().unwrap()),
        kind: text(&line["kind"]).unwrap(),
        older: line["bounds"] == "older",
        schema: text(&line["schema"]),
        text: text(&line["text"]).unwrap_or_else(|| written_out(line["text"].as_array().unwrap())),
        expect,
    }
}

/// A text in pieces: a string is itself, and `{"times", "of", "between"}` is repeated, each `#` in it its number.
fn written_out(pieces: &[Value]) -> String {
    let mut out = String::new();
    for piece in pieces {
        if let Some(text) = piece.as_str() {
            out.push_str(text);
            continue;
        }
        let (of, between) = (piece["of"].as_str().unwrap(), piece["between"].as_str().unwrap());
        for index in 0..piece["times"].as_u64().unwrap() {
            if index > 0 {
                out.push_str(between);
            }
            match of.split_once('#') {
                Some((before, behind)) => write!(out, "{before}{index}{behind}").unwrap(),
                None => out.push_str(of),
            }
        }
    }
    out
}
