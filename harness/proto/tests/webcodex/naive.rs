//! Schema Profile v1 read a second time, naively, on `serde_json::Value`: it shares no code with the one under test.
//!
//! Any one of its rules can be broken, by name; and each number can be one more or one less.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A reading, whole or with one rule broken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    /// The rule that is broken, or a bound with `+` or `-` behind it.
    pub(crate) broken: Option<String>,
    /// With the older bounds.
    pub(crate) older: bool,
}

/// What is refused: code, tool, field.
pub(crate) type Refused = (&'static str, Option<String>, Option<&'static str>);

/// Every rule that can be broken.
pub(crate) const RULES: &[&str] = &[
    "object",
    "object-first",
    "bytes-first",
    "bounds-before-profile",
    "annotations-bounded",
    "annotations-no-schema",
    "name-control",
    "name-control-all",
    "name-fault-is-no-bound",
    "payloads-bounded",
    "payloads-not-walked",
    "node-object",
    "keyword",
    "keyword-below",
    "keyword-in-items",
    "keyword-before-type",
    "type",
    "type-required",
    "type-of-seven",
    "type-single",
    "words-string",
    "words-control",
    "words-tab",
    "enum-array",
    "enum-empty",
    "place-object",
    "place-string",
    "place-array",
    "properties-object",
    "children-before-required",
    "parent-before-children",
    "children-sorted",
    "required-array",
    "required-strings",
    "required-distinct",
    "required-declared",
    "required-declared-open",
    "required-declared-absent",
    "additional-boolean",
    "range-literal",
    "range-ordered",
    "items-ordered",
    "range-equal",
    "root-type",
    "root-type-last",
    "output-code",
    "list-closed",
    "tools-required",
    "tool-closed",
    "tool-whole-list-first",
    "null-is-absent",
    "null-input",
    "name-grammar",
    "name-empty",
    "name-echoed",
    "name-once",
    "name-case",
    "name-bytes-not-characters",
    "title-empty",
    "title-control",
    "description-empty",
    "text-control-tab",
    "count-before-tools",
    "first-in-order",
    "order-in-tool",
    "integer-literal",
    "integer-range",
    "integer-negative-zero",
    "number-any",
    "equal-one",
    "equal-zero",
    "equal-float-zero",
    "equal-deep",
    "equal-array-order",
    "equal-array-length",
    "const",
    "enum-match",
    "scalar-length",
    "astral-length",
    "open",
    "closed",
    "required-match",
    "required-undeclared",
    "null-is-present",
    "nested-match",
    "items-match",
    "min-length",
    "max-length",
    "min-items",
    "max-items",
    "reencoded",
];

/// Every bound, with what it is.
pub(crate) const BOUNDS: &[(&str, u64)] = &[
    ("tools", 128),
    ("tool-name", 128),
    ("title", 128),
    ("description", 4096),
    ("schema-bytes", 65_536),
    ("depth", 16),
    ("nodes", 4096),
    ("member-name", 1024),
    ("properties", 128),
    ("required", 128),
    ("enum", 128),
    ("input-length", 65_536),
    ("output-length", 524_288),
    ("items", 4096),
    ("arguments-bytes", 65_536),
    ("structured-bytes", 524_288),
];

const KEYWORDS: [&str; 13] = [
    "additionalProperties",
    "const",
    "description",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "minItems",
    "minLength",
    "properties",
    "required",
    "title",
    "type",
];

impl Naive {
    /// Whether a rule is kept.
    fn on(&self, rule: &str) -> bool {
        assert!(RULES.contains(&rule), "{rule}");
        self.broken.as_deref() != Some(rule)
    }

    fn bound(&self, name: &str) -> u64 {
        let (_, bound) = BOUNDS.iter().find(|(known, _)| *known == name).unwrap();
        let bound = match (self.older, name) {
            (true, "output-length") => 65_536,
            (true, "structured-bytes") => 131_072,
            _ => *bound,
        };
        match self.broken.as_deref().and_then(|broken| broken.strip_prefix(name)) {
            Some("+") => bound + 1,
            Some("-") => bound - 1,
            _ => bound,
        }
    }

    fn string_bytes(&self) -> u64 {
        if self.older { 65_536 } else { 524_288 }
    }

    // ---- schemas ----

    /// Reads a schema or annotations.
    pub(crate) fn schema(&self, text: &str, field: &'static str) -> Result<(), Refused> {
        let value: Value = serde_json::from_str(text).unwrap();
        self.schema_value(&value, text, field).map_err(|code| (code, None, Some(field)))
    }

    fn invalid(&self, field: &str) -> &'static str {
        match field {
            "annotations" => "annotations_invalid",
            "outputSchema" if self.on("output-code") => "output_schema_invalid",
            _ => "input_schema_invalid",
        }
    }

    fn schema_value(&self, value: &Value, text: &str, field: &str) -> Result<(), &'static str> {
        let invalid = self.invalid(field);
        if self.on("object-first") && self.on("object") && !value.is_object() {
            return Err(invalid);
        }
        if !self.on("bounds-before-profile") && field != "annotations" {
            self.profile(value, field)?;
        }
        if field != "annotations" || self.on("annotations-bounded") {
            let bytes = if self.on("reencoded") { value.to_string().len() } else { text.len() } as u64;
            self.value_bounds(value, bytes, self.bound("schema-bytes"), invalid)?;
        }
        if self.on("object") && !value.is_object() {
            return Err(invalid);
        }
        if field == "annotations" && self.on("annotations-no-schema") {
            return Ok(());
        }
        self.profile(value, field)
    }

    fn profile(&self, value: &Value, field: &str) -> Result<(), &'static str> {
        let invalid = self.invalid(field);
        if !self.on("root-type-last") && value["type"] != "object" {
            return Err(invalid);
        }
        self.node(value, field, 0)?;
        if self.on("root-type") && value["type"] != "object" { Err(invalid) } else { Ok(()) }
    }

    /// Bytes first, then what the walk meets first.
    fn value_bounds(
        &self,
        value: &Value,
        bytes: u64,
        bytes_max: u64,
        name_fault: &'static str,
    ) -> Result<(), &'static str> {
        const EXCEEDED: &str = "schema_bounds_exceeded";
        if self.on("bytes-first") && bytes > bytes_max {
            return Err(EXCEEDED);
        }
        self.walk(value, 0, &mut 0, name_fault)?;
        if bytes > bytes_max { Err(EXCEEDED) } else { Ok(()) }
    }

    fn walk(
        &self,
        value: &Value,
        depth: u64,
        nodes: &mut u64,
        name_fault: &'static str,
    ) -> Result<(), &'static str> {
        const EXCEEDED: &str = "schema_bounds_exceeded";
        *nodes += 1;
        if depth > self.bound("depth") || *nodes > self.bound("nodes") {
            return Err(EXCEEDED);
        }
        match value {
            Value::String(text) if text.len() as u64 > self.string_bytes() => Err(EXCEEDED),
            Value::Array(elements) => {
                elements.iter().try_for_each(|element| self.walk(element, depth + 1, nodes, name_fault))
            }
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                let odd = |c: char| {
                    c.is_control() && (self.on("name-control-all") || !matches!(c, '\n' | '\r' | '\t'))
                };
                let wrong = name.len() as u64 > self.bound("member-name")
                    || (self.on("name-control") && name.chars().any(odd));
                if wrong {
                    return Err(if self.on("name-fault-is-no-bound") { name_fault } else { EXCEEDED });
                }
                if !self.on("payloads-bounded") && (name == "const" || name == "enum") {
                    return Ok(());
                }
                self.walk(member, depth + 1, nodes, name_fault)
            }),
            _ => Ok(()),
        }
    }

    fn node(&self, node: &Value, field: &str, depth: u64) -> Result<(), &'static str> {
        let invalid = self.invalid(field);
        let check = |holds: bool| if holds { Ok(()) } else { Err(invalid) };
        let Some(members) = node.as_object() else {
            return check(!self.on("node-object"));
        };
        if !self.on("keyword-before-type") {
            self.type_of(members, invalid)?;
        }
        let known = |name: &String| KEYWORDS.contains(&name.as_str());
        if self.on("keyword")
            && (depth == 0 || self.on("keyword-below"))
            && (depth < 1000 || self.on("keyword-in-items"))
            && !members.keys().all(known)
        {
            return Err("schema_keyword_unsupported");
        }
        let of = self.type_of(members, invalid)?;
        for name in ["title", "description"] {
            if let Some(text) = members.get(name) {
                check(self.words(text))?;
            }
        }
        if let Some(list) = members.get("enum") {
            match list.as_array() {
                Some(list) => {
                    check(!list.is_empty() || !self.on("enum-empty"))?;
                    check(list.len() as u64 <= self.bound("enum"))?;
                    if !self.on("payloads-not-walked") {
                        list.iter().filter(|it| it.is_object()).try_for_each(|it| self.node(it, field, 1))?;
                    }
                }
                None => check(!self.on("enum-array"))?,
            }
        }
        let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
        let of_objects = has(&["properties", "required", "additionalProperties"]);
        check(of == "object" || !of_objects || !self.on("place-object"))?;
        if !self.on("parent-before-children") {
            self.children(members, field)?;
        }
        self.object(members, field)?;
        check(of == "string" || !has(&["minLength", "maxLength"]) || !self.on("place-string"))?;
        let length = if field == "outputSchema" { "output-length" } else { "input-length" };
        self.range(members, "minLength", "maxLength", self.bound(length), self.on("range-ordered"), invalid)?;
        check(of == "array" || !has(&["minItems", "maxItems", "items"]) || !self.on("place-array"))?;
        self.range(members, "minItems", "maxItems", self.bound("items"), self.on("items-ordered"), invalid)?;
        match members.get("items") {
            Some(items) => self.node(items, field, depth + 1000),
            None => Ok(()),
        }
    }

    fn type_of<'v>(
        &self,
        members: &'v Map<String, Value>,
        invalid: &'static str,
    ) -> Result<&'v str, &'static str> {
        const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
        if !self.on("type") {
            return Ok(members.get("type").and_then(Value::as_str).unwrap_or("object"));
        }
        match members.get("type") {
            Some(Value::String(name)) if TYPES.contains(&name.as_str()) || !self.on("type-of-seven") => {
                Ok(name)
            }
            Some(Value::Array(list)) if !self.on("type-single") && list.len() == 1 => {
                list[0].as_str().ok_or(invalid)
            }
            None if !self.on("type-required") => Ok("object"),
            _ => Err(invalid),
        }
    }

    fn words(&self, text: &Value) -> bool {
        let Some(text) = text.as_str() else { return !self.on("words-string") };
        let fine = |c: char| !c.is_control() || (matches!(c, '\t' | '\n' | '\r') && self.on("words-tab"));
        !self.on("words-control") || text.chars().all(fine)
    }

    fn children(&self, members: &Map<String, Value>, field: &str) -> Result<(), &'static str> {
        let Some(properties) = members.get("properties").and_then(Value::as_object) else { return Ok(()) };
        let mut schemas: Vec<&Value> = properties.values().collect();
        if !self.on("children-sorted") {
            schemas.reverse();
        }
        schemas.into_iter().try_for_each(|schema| self.node(schema, field, 1))
    }

    fn object(&self, members: &Map<String, Value>, field: &str) -> Result<(), &'static str> {
        let invalid = self.invalid(field);
        let check = |holds: bool| if holds { Ok(()) } else { Err(invalid) };
        let mut declared = BTreeSet::new();
        if let Some(properties) = members.get("properties") {
            match properties.as_object() {
                Some(properties) => {
                    check(properties.len() as u64 <= self.bound("properties"))?;
                    declared.extend(properties.keys().map(String::as_str));
                }
                None => check(!self.on("properties-object"))?,
            }
        }
        if self.on("children-before-required") {
            self.children(members, field)?;
        }
        let additional = members.get("additionalProperties");
        if let Some(required) = members.get("required") {
            match required.as_array() {
                Some(names) => {
                    check(names.len() as u64 <= self.bound("required"))?;
                    check(names.iter().all(Value::is_string) || !self.on("required-strings"))?;
                    let distinct: BTreeSet<_> = names.iter().map(Value::to_string).collect();
                    check(distinct.len() == names.len() || !self.on("required-distinct"))?;
                    let enforced = match additional {
                        Some(Value::Bool(false)) => self.on("required-declared"),
                        Some(Value::Bool(true)) => !self.on("required-declared-open"),
                        None => !self.on("required-declared-absent"),
                        _ => false,
                    };
                    let inside = names.iter().filter_map(Value::as_str).all(|name| declared.contains(name));
                    check(!enforced || inside)?;
                }
                None => check(!self.on("required-array"))?,
            }
        }
        self.children(members, field)?;
        check(additional.is_none_or(Value::is_boolean) || !self.on("additional-boolean"))
    }

    fn range(
        &self,
        members: &Map<String, Value>,
        least: &str,
        most: &str,
        bound: u64,
        ordered: bool,
        invalid: &'static str,
    ) -> Result<(), &'static str> {
        let of = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) if count <= bound => Ok(Some(count)),
                None if !self.on("range-literal") && value.is_f64() => Ok(None),
                _ => Err(invalid),
            },
        };
        match (of(least)?, of(most)?) {
            (Some(low), Some(high)) if ordered && low > high => Err(invalid),
            (Some(low), Some(high)) if !self.on("range-equal") && low == high => Err(invalid),
            _ => Ok(()),
        }
    }

    // ---- lists ----

    /// Reads a result of `tools/list`.
    pub(crate) fn tools(&self, text: &str) -> Result<(), Refused> {
        const MALFORMED: Refused = ("tools_list_result_malformed", None, None);
        let value: Value = serde_json::from_str(text).unwrap();
        let result = value.as_object().ok_or(MALFORMED)?;
        if self.on("list-closed") && result.keys().any(|name| name != "tools") {
            return Err(MALFORMED);
        }
        let none = Vec::new();
        let tools = match result.get("tools") {
            Some(tools) => tools.as_array().ok_or(MALFORMED)?,
            None if self.on("tools-required") => return Err(MALFORMED),
            None => &none,
        };
        if self.on("tool-whole-list-first") {
            tools.iter().try_for_each(|tool| if self.tool_shape(tool) { Ok(()) } else { Err(MALFORMED) })?;
        }
        let counted = |fault| if tools.len() as u64 > self.bound("tools") { Err(fault) } else { Ok(()) };
        if self.on("count-before-tools") {
            counted(("tool_count_exceeded", None, None))?;
        }
        let mut names = BTreeSet::new();
        let mut faults: Vec<Refused> = Vec::new();
        for tool in tools {
            if !self.tool_shape(tool) {
                return Err(faults.into_iter().next().unwrap_or(MALFORMED));
            }
            if let Err(fault) = self.tool(tool.as_object().unwrap(), &mut names) {
                faults.push(fault);
            }
        }
        let fault = if self.on("first-in-order") { faults.into_iter().next() } else { faults.pop() };
        fault.map_or(Ok(()), Err)?;
        counted(("tool_count_exceeded", None, None))
    }

    fn tool_shape(&self, tool: &Value) -> bool {
        const MEMBERS: [&str; 6] =
            ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
        let Some(tool) = tool.as_object() else { return false };
        let text = |name: &str| tool.get(name).is_none_or(|it| it.is_string() || it.is_null());
        (!self.on("tool-closed") || tool.keys().all(|name| MEMBERS.contains(&name.as_str())))
            && tool.get("name").is_some_and(Value::is_string)
            && tool.contains_key("inputSchema")
            && text("title")
            && text("description")
    }

    fn tool(&self, tool: &Map<String, Value>, names: &mut BTreeSet<String>) -> Result<(), Refused> {
        let name = tool["name"].as_str().unwrap();
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let good = (!name.is_empty() || !self.on("name-empty"))
            && name.len() as u64 <= self.bound("tool-name")
            && (name.chars().all(plain) || !self.on("name-grammar"));
        if !good {
            let echoed = if self.on("name-echoed") { None } else { Some(name.to_owned()) };
            return Err(("invalid_tool_name", echoed, Some("name")));
        }
        let of = |code, field| (code, Some(name.to_owned()), Some(field));
        let key = if self.on("name-case") { name.to_owned() } else { name.to_lowercase() };
        if !names.insert(key) && self.on("name-once") {
            return Err(of("duplicate_tool_name", "name"));
        }
        let size = |text: &str| {
            if self.on("name-bytes-not-characters") { text.len() } else { text.chars().count() }
        };
        let fine =
            |c: char| !c.is_control() || (matches!(c, '\t' | '\n' | '\r') && self.on("text-control-tab"));
        let mut checks: Vec<(&'static str, Result<(), Refused>)> = Vec::new();
        if let Some(title) = tool.get("title").and_then(Value::as_str) {
            let good = (!title.is_empty() || !self.on("title-empty"))
                && size(title) as u64 <= self.bound("title")
                && (title.chars().all(fine) || !self.on("title-control"));
            checks.push(("title", if good { Ok(()) } else { Err(of("invalid_tool_title", "title")) }));
        }
        if let Some(text) = tool.get("description").and_then(Value::as_str) {
            let good = (!text.is_empty() || self.on("description-empty"))
                && size(text) as u64 <= self.bound("description")
                && text.chars().all(fine);
            let fault = of("invalid_tool_description", "description");
            checks.push(("description", if good { Ok(()) } else { Err(fault) }));
        }
        for field in ["inputSchema", "outputSchema", "annotations"] {
            let Some(value) = tool.get(field) else { continue };
            if value.is_null() {
                let absent =
                    if field == "inputSchema" { !self.on("null-input") } else { self.on("null-is-absent") };
                if absent {
                    continue;
                }
            }
            let checked = self.schema_value(value, &value.to_string(), field).map_err(|code| of(code, field));
            checks.push((field, checked));
        }
        if !self.on("order-in-tool") {
            checks.reverse();
        }
        checks.into_iter().try_for_each(|(_, check)| check)
    }

    // ---- instances ----

    /// Whether a value keeps the bounds, and matches: `None` where it does, or the code.
    pub(crate) fn instance(&self, schema: &str, text: &str, structured: bool) -> Result<(), &'static str> {
        let (bytes, bounds_fault, fault) = if structured {
            ("structured-bytes", "plugin_result_invalid", "plugin_output_schema_violation")
        } else {
            ("arguments-bytes", "plugin_arguments_schema_invalid", "plugin_arguments_schema_invalid")
        };
        let schema: Value = serde_json::from_str(schema).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        let size = if self.on("reencoded") { value.to_string().len() } else { text.len() } as u64;
        self.value_bounds(&value, size, self.bound(bytes), bounds_fault).map_err(|_| bounds_fault)?;
        if self.matches(&schema, &value) { Ok(()) } else { Err(fault) }
    }

    fn matches(&self, schema: &Value, value: &Value) -> bool {
        let right_type = match schema["type"].as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" if self.on("number-any") => value.is_number(),
            "number" => value.is_f64(),
            _ => self.is_integer(value),
        };
        let constant = schema.get("const").is_none_or(|it| !self.on("const") || self.equal(it, value));
        let listed = schema
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|list| !self.on("enum-match") || list.iter().any(|one| self.equal(one, value)));
        right_type
            && constant
            && listed
            && match value {
                Value::Object(members) => self.matches_object(schema, members),
                Value::Array(elements) => {
                    let length = elements.len() as u64;
                    let least = schema["minItems"].as_u64().is_none_or(|least| length >= least);
                    let most = schema["maxItems"].as_u64().is_none_or(|most| length <= most);
                    let items = schema.get("items").is_none_or(|items| {
                        !self.on("items-match") || elements.iter().all(|it| self.matches(items, it))
                    });
                    (least || !self.on("min-items")) && (most || !self.on("max-items")) && items
                }
                Value::String(text) => {
                    let length = if !self.on("scalar-length") {
                        text.len()
                    } else if !self.on("astral-length") {
                        text.encode_utf16().count()
                    } else {
                        text.chars().count()
                    } as u64;
                    let least = schema["minLength"].as_u64().is_none_or(|least| length >= least);
                    let most = schema["maxLength"].as_u64().is_none_or(|most| length <= most);
                    (least || !self.on("min-length")) && (most || !self.on("max-length"))
                }
                _ => true,
            }
    }

    fn is_integer(&self, value: &Value) -> bool {
        let Value::Number(number) = value else { return false };
        let float = number.as_f64().unwrap();
        number.is_i64()
            || number.is_u64()
            || (!self.on("integer-literal") && float == 100.0)
            || (!self.on("integer-range") && float > 1e18)
            || (!self.on("integer-negative-zero") && float == 0.0)
    }

    fn matches_object(&self, schema: &Value, members: &Map<String, Value>) -> bool {
        let none = Map::new();
        let declared = schema["properties"].as_object().unwrap_or(&none);
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let required = names.into_iter().all(|name| {
            let there = members.get(name).is_some_and(|it| self.on("null-is-present") || !it.is_null());
            there
                || !self.on("required-match")
                || (!self.on("required-undeclared") && !declared.contains_key(name))
        });
        let below = members.iter().all(|(name, value)| {
            declared.get(name).is_none_or(|schema| !self.on("nested-match") || self.matches(schema, value))
        });
        let closed = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => self.on("closed"),
            None => !self.on("open"),
            _ => false,
        };
        required && below && (!closed || members.keys().all(|name| declared.contains_key(name)))
    }

    fn equal(&self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                let (a, b) = (one.as_f64().unwrap(), other.as_f64().unwrap());
                if !self.on("equal-float-zero") && one.is_f64() && other.is_f64() {
                    return a.to_bits() == b.to_bits();
                }
                if one.is_f64() == other.is_f64() {
                    return if one.is_f64() { a == b } else { one == other };
                }
                (!self.on("equal-one") && a == b && a != 0.0)
                    || (!self.on("equal-zero") && a == 0.0 && b == 0.0)
            }
            (Value::Array(one), Value::Array(other)) => {
                let same = |(one, other): (&Value, &Value)| self.equal(one, other);
                if !self.on("equal-array-order") {
                    return one.len() == other.len()
                        && one.iter().all(|a| other.iter().any(|b| self.equal(a, b)));
                }
                (one.len() == other.len() || !self.on("equal-array-length"))
                    && one.iter().zip(other).all(same)
            }
            (Value::Object(one), Value::Object(other)) => {
                let same = |(name, value): (&String, &Value)| {
                    other.get(name).is_some_and(|it| !self.on("equal-deep") || self.equal(value, it))
                };
                one.len() == other.len() && one.iter().all(same)
            }
            _ => one == other,
        }
    }
}
