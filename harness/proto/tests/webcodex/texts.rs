//! Texts for properties: values, schemas that are right or have one thing or another wrong with them, and lists of tools.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "1.0",
    "1e2",
    "100",
    "-1",
    "2",
    "3",
    "0.5",
    "0.0",
    "-0.0",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
];
const STRINGS: &[&str] = &[
    r#""""#,
    r#""a""#,
    r#""\u0061""#,
    r#""é""#,
    r#""e\u0301""#,
    r#""😀""#,
    r#""\ud83d\ude00""#,
    r#""\u0007""#,
    r#""a\tb""#,
    "\"\u{7f}\"",
    "\"\u{85}\"",
    r#""ab""#,
    r#""abc""#,
    r#""object""#,
];
const NAMES: &[&str] = &[r#""a""#, r#""b""#, r#""c""#, r#""\u0061""#, r#""v""#];
const ODD_NAMES: &[&str] =
    &[r#""\u0001""#, r#""""#, "\"\u{7f}\"", "\"\u{9f}\"", r#""type""#, r#""__proto__""#];

fn text(of: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(of).prop_map(str::to_owned)
}

fn name() -> impl Strategy<Value = String> + Clone {
    prop_oneof![20 => text(NAMES), 1 => text(ODD_NAMES)]
}

fn list(of: impl Strategy<Value = String>, most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(of, 0..=most).prop_map(|all| format!("[{}]", all.join(",")))
}

fn object(members: Vec<(String, String)>) -> String {
    let members: Vec<String> = members.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

/// Any value; more often than not an object.
pub(crate) fn value() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        text(NUMBERS),
        text(STRINGS),
    ];
    let any = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            1 => list(inner.clone(), 3),
            3 => prop::collection::vec((name(), inner), 0..4).prop_map(object),
        ]
    });
    let root = prop::collection::vec((name(), any.clone()), 0..4).prop_map(object);
    prop_oneof![4 => root, 1 => any].boxed()
}

/// A schema; `odd`: as often as not there is something wrong with it.
pub(crate) fn schema(odd: bool) -> BoxedStrategy<String> {
    let leaf = (
        select(&["string", "number", "integer", "boolean", "null"][..]),
        keywords(odd, Just("{}".to_owned()).boxed()),
    )
        .prop_map(|(of, members)| typed(of, members));
    let any = leaf.prop_recursive(4, 24, 4, move |inner| {
        let of = prop_oneof![
            Just("object"),
            Just("object"),
            Just("array"),
            Just("string"),
            Just("integer"),
            Just("number"),
            Just("null")
        ];
        (of, keywords(odd, inner.boxed())).prop_map(|(of, members)| typed(of, members))
    });
    let root = keywords(odd, any.clone().boxed()).prop_map(|members| typed("object", members));
    if odd { prop_oneof![8 => root, 1 => any].boxed() } else { root.boxed() }
}

/// Members that a schema may have, with the type that they are for; others stay away unless it is to be odd.
fn keywords(
    odd: bool,
    inner: BoxedStrategy<String>,
) -> BoxedStrategy<Vec<(&'static str, String, &'static str)>> {
    let small =
        prop_oneof![Just("0".to_owned()), Just("1".to_owned()), Just("2".to_owned()), Just("3".to_owned())];
    let of = |name: &'static str, of: &'static str, value: BoxedStrategy<String>| {
        value.prop_map(move |value| (name, value, of)).boxed()
    };
    let named = prop::collection::vec((name(), inner.clone()), 0..4).prop_map(object).boxed();
    let mut all = vec![
        of("title", "", text(&[r#""t""#, r#""""#, r#""a\tb""#]).boxed()),
        of("const", "", value()),
        of(
            "enum",
            "",
            prop::collection::vec(value(), 1..4).prop_map(|all| format!("[{}]", all.join(","))).boxed(),
        ),
        of("properties", "object", named.clone()),
        of("properties", "object", named),
        of("required", "object", text(&["[]", r#"["a"]"#, r#"["a","b"]"#, r#"["c","v"]"#]).boxed()),
        of("additionalProperties", "object", text(&["true", "false"]).boxed()),
        of("minLength", "string", small.clone().boxed()),
        of("maxLength", "string", small.clone().boxed()),
        of("minItems", "array", small.clone().boxed()),
        of("maxItems", "array", small.boxed()),
        of("items", "array", inner.clone()),
    ];
    if odd {
        all.extend([
            of("pattern", "", value()),
            of(
                "type",
                "",
                text(&["null", r#"["object"]"#, r#""Object""#, r#""array""#, r#""string""#]).boxed(),
            ),
            of("description", "", value()),
            of("enum", "", text(&["[]", "{}"]).boxed()),
            of("properties", "", value()),
            of("required", "", list(prop_oneof![text(NAMES), text(NUMBERS)], 3).boxed()),
            of("additionalProperties", "", inner),
            of("maxLength", "", text(NUMBERS).boxed()),
            of("minLength", "string", text(NUMBERS).boxed()),
            of("maxItems", "", text(NUMBERS).boxed()),
            of("maxLength", "string", text(&["65536", "65537", "524288", "524289"]).boxed()),
            of("maxItems", "array", text(&["4096", "4097"]).boxed()),
            of("items", "", value()),
            of("\\u0001", "", value()),
        ]);
    }
    prop::collection::vec(proptest::strategy::Union::new(all), 0..4).boxed()
}

fn typed(of: &str, members: Vec<(&'static str, String, &'static str)>) -> String {
    let mut out = vec![("\"type\"".to_owned(), format!("\"{of}\""))];
    for (name, value, only) in members {
        if only.is_empty() || only == of {
            out.push((format!("\"{name}\""), value));
        }
    }
    object(out)
}

/// A result of `tools/list`.
pub(crate) fn tools() -> BoxedStrategy<String> {
    let name = text(&[r#""a""#, r#""b""#, r#""A""#, r#""c.d-e_f""#, r#""\u0061""#, r#""""#, r#""a b""#, "1"]);
    let member = prop_oneof![
        8 => (Just("inputSchema"), prop_oneof![4 => schema(false), 1 => schema(true), 1 => value()]),
        2 => (Just("outputSchema"), prop_oneof![4 => schema(false), 1 => schema(true), 1 => Just("null".to_owned())]),
        2 => (Just("annotations"), value()),
        2 => (Just("title"), text(STRINGS).boxed()),
        2 => (Just("description"), text(STRINGS).boxed()),
        1 => (Just("title"), Just("null".to_owned())),
        1 => (Just("icons"), Just("[]".to_owned())),
    ];
    let tool =
        (name, schema(false), prop::collection::vec(member, 0..2)).prop_map(|(name, input, members)| {
            let mut all = vec![("\"name\"".to_owned(), name), ("\"inputSchema\"".to_owned(), input)];
            all.extend(members.into_iter().map(|(name, value)| (format!("\"{name}\""), value)));
            object(all)
        });
    let list = list(prop_oneof![30 => tool, 1 => value()], 4);
    prop_oneof![
        20 => list.prop_map(|tools| format!("{{\"tools\":{tools}}}")),
        1 => value(),
        1 => Just(r#"{"tools":[],"nextCursor":null}"#.to_owned()),
    ]
    .boxed()
}
