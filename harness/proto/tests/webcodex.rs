//! Schema Profile v1: our specimens, a second reading that shares no code, and that the first tell every broken rule of
//! the second from the whole one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "webcodex/naive.rs"]
#[expect(clippy::float_cmp, reason = "doubles are compared as they are read")]
mod naive;
#[path = "webcodex/specimens.rs"]
mod specimens;
#[path = "webcodex/texts.rs"]
mod texts;

use naive::{BOUNDS, Naive, RULES};
use proptest::prelude::*;
use sidecert_proto::json::Tape;
use sidecert_proto::webcodex::contract::{Bounds, Generation, v1};
use sidecert_proto::webcodex::document::{self, Kind};
use sidecert_proto::webcodex::{Field, Payload, Refusal, admit_schema, matches};
use specimens::Specimen;

/// What is said of a document: `None` if it is admitted, or code, tool and field.
type Said = Option<(String, Option<String>, Option<String>)>;

fn bounds(older: bool) -> &'static Bounds {
    v1().bounds(if older { Generation::Older } else { Generation::Newer })
}

fn kind(name: &str) -> Option<Kind> {
    match name {
        "input-schema" => Some(Kind::InputSchema),
        "output-schema" => Some(Kind::OutputSchema),
        "tools-list" => Some(Kind::ToolsList),
        _ => None,
    }
}

fn instance(schema: &str, text: &str, structured: bool, older: bool) -> Result<(), Refusal> {
    let (schema, value) = (Tape::scan(schema.as_bytes()).unwrap(), Tape::scan(text.as_bytes()).unwrap());
    let payload = if structured { Payload::StructuredContent } else { Payload::Arguments };
    matches(schema.root(), value.root(), payload, bounds(older))
}

fn ours(it: &Specimen) -> Option<Refusal> {
    if let Some(kind) = kind(&it.kind) {
        return document::check(it.text.as_bytes(), kind, bounds(it.older)).err();
    }
    instance(it.schema.as_ref().unwrap(), &it.text, it.kind == "structured-content", it.older).err()
}

fn naively(reading: &Naive, it: &Specimen) -> Said {
    let reading = Naive { older: it.older, ..reading.clone() };
    let said = match it.kind.as_str() {
        "input-schema" => reading.schema(&it.text, "inputSchema"),
        "output-schema" => reading.schema(&it.text, "outputSchema"),
        "tools-list" => reading.tools(&it.text),
        other => reading
            .instance(it.schema.as_ref().unwrap(), &it.text, other == "structured-content")
            .map_err(|code| (code, None, None)),
    };
    said.err().map(|(code, tool, field)| (code.to_owned(), tool, field.map(str::to_owned)))
}

fn said(refusal: &Refusal) -> (String, Option<String>, Option<String>) {
    (refusal.code.clone(), refusal.tool.clone(), refusal.field.map(str::to_owned))
}

#[test]
fn the_specimens_are_judged_as_they_say() {
    let mut wrong = Vec::new();
    for it in specimens::all() {
        let refusal = ours(&it);
        let found = refusal.as_ref().map(|it| {
            let (code, tool, field) = said(it);
            (code, tool, field, it.pointer.clone())
        });
        if found != it.expect {
            wrong.push(format!("{}: {refusal:?}, not {:?}", it.name, it.expect));
        }
        if let Some(refusal) = refusal {
            assert!(!refusal.says.is_empty() && refusal.says.len() < 500, "{}: {}", it.name, refusal.says);
            assert!(!refusal.says.contains('\n'), "{}", it.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The specimens that the naive reading can read: `serde_json` must.
fn readable() -> Vec<Specimen> {
    specimens::all().into_iter().filter(|it| !it.name.starts_with("texts/")).collect()
}

#[test]
fn the_naive_reading_says_the_same_of_the_specimens() {
    for it in readable() {
        let expected = it.expect.clone().map(|(code, tool, field, _)| (code, tool, field));
        assert_eq!(naively(&Naive::default(), &it), expected, "{}", it.name);
    }
}

#[test]
fn the_specimens_tell_every_broken_rule() {
    let specimens = readable();
    let mut mutants: Vec<String> = RULES.iter().map(|&rule| rule.to_owned()).collect();
    mutants.extend(BOUNDS.iter().flat_map(|(name, _)| [format!("{name}+"), format!("{name}-")]));
    let survives = |mutant: &String| {
        let broken = Naive { broken: Some(mutant.clone()), older: false };
        specimens.iter().all(|it| {
            let expected = it.expect.clone().map(|(code, tool, field, _)| (code, tool, field));
            naively(&broken, it) == expected
        })
    };
    let survivors: Vec<&String> = mutants.iter().filter(|mutant| survives(mutant)).collect();
    assert!(survivors.is_empty(), "no specimen tells these: {survivors:?}");
}

#[test]
fn the_words_say_what_to_do() {
    for (kind, text, says) in [
        (
            Kind::InputSchema,
            r#"{"type":"object","pattern":""}"#,
            "`pattern` is not in the profile; the profile knows type, title, description, enum, const; of objects \
             properties, required, additionalProperties; of strings minLength, maxLength; of arrays minItems, maxItems, \
             items",
        ),
        (
            Kind::OutputSchema,
            r#"{"type":"object","properties":{"a":{"type":["string","null"]}}}"#,
            "`type` is of the kind array, and must be one string; the types are object, array, string, number, integer, \
             boolean, null",
        ),
        (
            Kind::InputSchema,
            r#"{"type":"array"}"#,
            r#"the root has the type "array", and must have "object""#,
        ),
        (Kind::InputSchema, "{", "no JSON: "),
        (
            Kind::ToolsList,
            r#"{"tools":[],"nextCursor":""}"#,
            r#"the result has "nextCursor"; it has only `tools`"#,
        ),
    ] {
        let refusal = document::check(text.as_bytes(), kind, bounds(false)).unwrap_err();
        assert!(refusal.says.starts_with(says), "{}", refusal.says);
    }
}

#[test]
fn a_list_that_fits_no_frame_is_refused() {
    let tool = |index: usize, size: usize| {
        let text = "x".repeat(size);
        format!(r#"{{"name":"t{index}","inputSchema":{{"type":"object"}},"annotations":{{"a":"{text}"}}}}"#)
    };
    // Sixteen tools, and the last as large as it takes to come to the byte.
    let list = |bytes: usize, space: &str| {
        let mut tools: Vec<String> = (0..16).map(|index| tool(index, 65_000)).collect();
        let rest = bytes - format!(r#"{{"tools":[{},{}]}}"#, tools.join(","), tool(16, 0)).len();
        tools.push(tool(16, rest));
        format!(r#"{{"tools":[{}{space}]}}"#, tools.join(","))
    };
    let envelope = r#"{"jsonrpc":"2.0","id":2,"result":}"#.len();
    let most = 1_048_576 - envelope;
    let check = |text: String| document::check(text.as_bytes(), Kind::ToolsList, bounds(false));
    assert_eq!(check(list(most, "")), Ok(Some(17)));
    assert_eq!(check(list(most, &" ".repeat(1 << 20))), Ok(Some(17)), "white space need not be sent");
    assert_eq!(check(list(most + 1, "")).unwrap_err().code, "plugin_message_too_large");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_global_rejects: 30_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schemas_are_read_as_naively(text in texts::schema(true), older in any::<bool>(), output in any::<bool>()) {
        let (kind, field) =
            if output { (Kind::OutputSchema, "outputSchema") } else { (Kind::InputSchema, "inputSchema") };
        let ours = document::check(text.as_bytes(), kind, bounds(older)).err();
        let naive = Naive { broken: None, older }.schema(&text, field).err();
        let naive = naive.map(|(code, tool, field)| (code.to_owned(), tool, field.map(str::to_owned)));
        prop_assert_eq!(ours.as_ref().map(said), naive, "{}", text);
        if let Some(refusal) = ours {
            let tape = Tape::scan(text.as_bytes()).unwrap();
            prop_assert!(tape.root().pointer(&refusal.pointer).is_some(), "{} {}", text, refusal.pointer);
        }
    }

    #[test]
    fn annotations_are_read_as_naively(text in texts::value()) {
        let tape = Tape::scan(text.as_bytes()).unwrap();
        let ours = admit_schema(tape.root(), Field::Annotations, bounds(false)).err();
        let naive = Naive::default().schema(&text, "annotations").err();
        prop_assert_eq!(ours.map(|it| it.code), naive.map(|it| it.0.to_owned()), "{}", text);
    }

    #[test]
    fn lists_are_read_as_naively(text in texts::tools()) {
        let ours = document::check(text.as_bytes(), Kind::ToolsList, bounds(false)).err();
        let naive = Naive::default().tools(&text).err();
        let naive = naive.map(|(code, tool, field)| (code.to_owned(), tool, field.map(str::to_owned)));
        prop_assert_eq!(ours.as_ref().map(said), naive, "{}", text);
    }

    #[test]
    fn instances_are_matched_as_naively(schema in texts::schema(false), text in texts::value(), structured in any::<bool>()) {
        let tape = Tape::scan(schema.as_bytes()).unwrap();
        prop_assume!(admit_schema(tape.root(), Field::Input, bounds(false)).is_ok());
        let ours = instance(&schema, &text, structured, false).err().map(|it| it.code);
        let naive = Naive::default().instance(&schema, &text, structured).err();
        prop_assert_eq!(ours.as_deref(), naive, "{} {}", schema, text);
    }

    /// What is admitted is JSON Schema; and what is written without the numbers that the profile reads in its own way
    /// matches where it does there.
    #[test]
    fn an_admitted_schema_is_json_schema(schema in texts::schema(false), text in texts::value()) {
        let tape = Tape::scan(schema.as_bytes()).unwrap();
        prop_assume!(admit_schema(tape.root(), Field::Input, bounds(false)).is_ok());
        let schema_value: serde_json::Value = serde_json::from_str(&schema).unwrap();
        prop_assert!(jsonschema::draft202012::meta::is_valid(&schema_value), "{}", schema);
        let both = format!("{schema}{text}");
        prop_assume!(!["1.0", "1e2", "-0", "184467440737095516"].iter().any(|number| both.contains(number)));
        let validator = jsonschema::draft202012::new(&schema_value).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        // JSON Schema knows no bounds.
        prop_assume!(value.is_object() && instance(r#"{"type":"object"}"#, &text, false, false).is_ok());
        let ours = instance(&schema, &text, false, false).is_ok();
        prop_assert_eq!(ours, validator.is_valid(&value), "{} {}", schema, text);
    }

    #[test]
    fn any_text_gets_an_answer(text in prop::collection::vec(any::<u8>(), 0..64)) {
        for kind in [Kind::InputSchema, Kind::OutputSchema, Kind::ToolsList] {
            let _answer = document::check(&text, kind, bounds(false));
        }
    }
}
