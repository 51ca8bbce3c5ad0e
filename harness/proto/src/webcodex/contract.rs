//! The WebCodex contract that is built in: the methods, the profile's words, the codes and the bounds. What is specified
//! and what was only observed stands in the data, rule by rule. Nothing else in this crate names any of these.
//!
//! It is one document of the published form ([`wire`]) that also holds the profile ([`v1`]).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use crate::contract::{self, ContractFault};
use crate::json::Kind;

const TEXT: &str = include_str!("contract/v1.json");

/// Host asks: the handshake.
pub const INITIALIZE: &str = "initialize";
/// Host asks: which tools are there?
pub const TOOLS_LIST: &str = "tools/list";
/// Host asks: do this.
pub const TOOLS_CALL: &str = "tools/call";

/// What goes over the wire in `webcodex-plugin-v1`.
#[expect(clippy::expect_used, reason = "the text is part of the program; a test reads it")]
pub fn wire() -> &'static contract::Contract {
    static WIRE: OnceLock<contract::Contract> = OnceLock::new();
    WIRE.get_or_init(|| wire_of(TEXT.as_bytes()).expect("a built-in contract reads"))
}

/// Reads a contract of this family: a document of the published form that has the bounds and the methods.
pub fn wire_of(text: &[u8]) -> Result<contract::Contract, ContractFault> {
    let contract = contract::Contract::read(text)?;
    let missing = |pointer: &str, what: &str, name: &str| {
        Err(ContractFault { pointer: pointer.to_owned(), says: format!("{what} {name:?} is missing") })
    };
    if let Some(name) = Bounds::NAMES.iter().find(|name| contract.limit(name).is_none()) {
        return missing("/limits", "limit", name);
    }
    for name in [INITIALIZE, TOOLS_LIST, TOOLS_CALL] {
        if contract.method(name).is_none() {
            return missing("/methods", "method", name);
        }
    }
    Ok(contract)
}

/// The same contract with the bounds of the generation before.
pub fn older(contract: &contract::Contract) -> contract::Contract {
    let older = contract.document()["older"].as_object().into_iter().flatten();
    contract.with_limits(older.filter_map(|(name, bound)| Some((name.as_str(), bound.as_u64()?))))
}

/// The protocol `webcodex-plugin-v1`.
pub fn v1() -> &'static Contract {
    static V1: OnceLock<Contract> = OnceLock::new();
    V1.get_or_init(|| built_in(TEXT))
}

/// The data of the protocol.
#[derive(Debug)]
pub struct Contract {
    /// The protocol's name on the wire.
    pub id: String,
    rules: BTreeMap<String, Code>,
    fields: BTreeMap<String, String>,
    /// For each keyword, the type whose schemas may have it.
    of: [Option<Type>; Keyword::ALL.len()],
    newer: Bounds,
    older: Bounds,
}

/// What a refusal is called, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// The code; `None` is that of the field.
    pub(super) name: Option<String>,
    pub(super) basis: Basis,
}

/// Who says that something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The published text.
    Specified,
    /// The reference implementation does it, and no text says so.
    Observed,
}

impl Basis {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Specified => "specified",
            Basis::Observed => "observed",
        }
    }
}

/// Which generation of the reference implementation the bounds are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// The last one.
    #[default]
    Newer,
    /// The one before, with smaller results and declared lengths.
    Older,
}

impl Contract {
    /// The bounds of a generation.
    pub fn bounds(&self, generation: Generation) -> &Bounds {
        match generation {
            Generation::Newer => &self.newer,
            Generation::Older => &self.older,
        }
    }

    /// The type whose schemas may have this keyword; `None`: all may.
    pub(super) fn keyword_of(&self, keyword: Keyword) -> Option<Type> {
        self.of[keyword as usize]
    }

    pub(super) fn code(&self, rule: Rule) -> &Code {
        &self.rules[rule.name()]
    }

    /// The code of whatever is wrong with a field and has no code of its own.
    pub(super) fn field_code(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }
}

#[expect(clippy::expect_used, reason = "the text is part of the program; a test reads it")]
fn built_in(text: &str) -> Contract {
    let document: Value = serde_json::from_str(text).expect("a built-in contract is JSON");
    read(&document).expect("a built-in contract has all that one has")
}

/// `None` if something is missing, or there is something that this program does not know.
fn read(document: &Value) -> Option<Contract> {
    let mut rules = BTreeMap::new();
    for (name, rule) in document["rules"].as_object()? {
        let basis = match rule["basis"].as_str()? {
            "specified" => Basis::Specified,
            "observed" => Basis::Observed,
            _ => return None,
        };
        rules.insert(name.clone(), Code { name: rule["code"].as_str().map(str::to_owned), basis });
    }
    let fields = document["fields"]["codes"].as_object()?.iter();
    let fields = fields.map(|(name, code)| Some((name.clone(), code.as_str()?.to_owned())));
    let keywords = document["keywords"]["of"].as_object()?;
    let mut of = [None; Keyword::ALL.len()];
    for (name, type_name) in keywords {
        of[Keyword::named(name)? as usize] = match type_name.as_str() {
            Some(type_name) => Some(Type::named(type_name)?),
            None => None,
        };
    }
    let types = document["types"]["names"].as_array()?;
    let complete = keywords.len() == Keyword::ALL.len()
        && types.len() == Type::ALL.len()
        && types.iter().all(|name| name.as_str().and_then(Type::named).is_some())
        && rules.len() == Rule::ALL.len()
        && rules.keys().all(|name| Rule::named(name).is_some());
    complete.then_some(Contract {
        id: document["protocol"].as_str()?.to_owned(),
        rules,
        fields: fields.collect::<Option<_>>()?,
        of,
        newer: Bounds::of(wire()),
        older: Bounds::of(&older(wire())),
    })
}

macro_rules! bounds {
    ($($(#[$doc:meta])* $member:ident = $name:literal,)*) => {
        /// The bounds of one generation. All are inclusive.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Bounds { $($(#[$doc])* pub $member: u64,)* }

        impl Bounds {
            const NAMES: &[&str] = &[$($name,)*];

            /// Those of `contract`. One that it does not state, which [`wire_of`] would have refused, is none.
            pub fn of(contract: &contract::Contract) -> Bounds {
                Bounds { $($member: contract.limit($name).unwrap_or(u64::MAX),)* }
            }
        }
    };
}

bounds! {
    /// The longest frame, its line feed not counted, in bytes.
    frame_bytes = "frameBytes",
    /// How many tools a plugin lists.
    tools = "tools",
    /// The longest name of a tool, in bytes.
    tool_name_bytes = "toolNameBytes",
    /// The longest title of a tool, in bytes.
    tool_title_bytes = "toolTitleBytes",
    /// The longest description of a tool, in bytes.
    tool_description_bytes = "toolDescriptionBytes",
    /// The largest schema or annotations, in bytes when written again.
    schema_bytes = "schemaBytes",
    /// How many containers a value stands in.
    depth = "depth",
    /// How many values there are in one.
    nodes = "nodes",
    /// The longest name of a member anywhere, in bytes.
    member_name_bytes = "memberNameBytes",
    /// The longest string, in bytes.
    string_bytes = "stringBytes",
    /// How many properties an object schema has.
    properties = "properties",
    /// How many names it requires.
    required = "required",
    /// How many values an enumeration has.
    enumerated = "enum",
    /// The largest length that a string of an input declares.
    input_length = "inputLength",
    /// The largest length that a string of an output declares.
    output_length = "outputLength",
    /// The largest number of items that an array declares.
    items = "items",
    /// The largest arguments, in bytes when written again.
    arguments_bytes = "argumentsBytes",
    /// The largest structured content, in bytes when written again.
    structured_content_bytes = "structuredContentBytes",
    /// How many items a result has.
    content_items = "contentItems",
    /// The longest text of one, in bytes.
    text_bytes = "textBytes",
    /// The largest result, in bytes when written again.
    result_bytes = "resultBytes",
    /// The longest message of an error, in bytes; it has at least one.
    error_message_bytes = "errorMessageBytes",
}

macro_rules! names {
    ($(#[$doc:meta])* $vis:vis enum $of:ident { $($(#[$each:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $of { $($(#[$each])* $variant,)* }

        impl $of {
            pub(super) const ALL: &[$of] = &[$($of::$variant,)*];

            /// Its name in the contract.
            pub(super) fn name(self) -> &'static str {
                match self { $($of::$variant => $name,)* }
            }

            pub(super) fn named(name: &str) -> Option<$of> {
                $of::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}

names! {
    /// A type of values.
    pub(super) enum Type {
        Object = "object",
        Array = "array",
        String = "string",
        Number = "number",
        Integer = "integer",
        Boolean = "boolean",
        Null = "null",
    }
}

impl Type {
    /// What its values are in JSON.
    pub(super) fn kind(self) -> Kind {
        match self {
            Type::Object => Kind::Object,
            Type::Array => Kind::Array,
            Type::String => Kind::String,
            Type::Number | Type::Integer => Kind::Number,
            Type::Boolean => Kind::Bool,
            Type::Null => Kind::Null,
        }
    }
}

names! {
    /// A word of the profile.
    pub(super) enum Keyword {
        Type = "type",
        Title = "title",
        Description = "description",
        Enum = "enum",
        Const = "const",
        Properties = "properties",
        Required = "required",
        AdditionalProperties = "additionalProperties",
        MinLength = "minLength",
        MaxLength = "maxLength",
        MinItems = "minItems",
        MaxItems = "maxItems",
        Items = "items",
    }
}

names! {
    /// What can be broken.
    pub(super) enum Rule {
        Text = "text",
        Size = "size",
        List = "list",
        Count = "count",
        ToolName = "toolName",
        ToolNameOnce = "toolNameOnce",
        ToolTitle = "toolTitle",
        ToolDescription = "toolDescription",
        Object = "object",
        AnnotationsObject = "annotationsObject",
        Bounds = "bounds",
        MemberName = "memberName",
        Keyword = "keyword",
        Type = "type",
        RootType = "rootType",
        Words = "words",
        Enum = "enum",
        Place = "place",
        Properties = "properties",
        Required = "required",
        RequiredDeclared = "requiredDeclared",
        AdditionalProperties = "additionalProperties",
        Range = "range",
        Arguments = "arguments",
        ArgumentsBounds = "argumentsBounds",
        StructuredContent = "structuredContent",
        StructuredContentBounds = "structuredContentBounds",
    }
}

/// The members of a tool.
pub(super) mod member {
    pub(in crate::webcodex) const TOOLS: &str = "tools";
    pub(in crate::webcodex) const NAME: &str = "name";
    pub(in crate::webcodex) const TITLE: &str = "title";
    pub(in crate::webcodex) const DESCRIPTION: &str = "description";
    pub(in crate::webcodex) const INPUT_SCHEMA: &str = "inputSchema";
    pub(in crate::webcodex) const OUTPUT_SCHEMA: &str = "outputSchema";
    pub(in crate::webcodex) const ANNOTATIONS: &str = "annotations";

    /// All that a tool may have.
    pub(in crate::webcodex) const OF_A_TOOL: [&str; 6] =
        [NAME, TITLE, DESCRIPTION, INPUT_SCHEMA, OUTPUT_SCHEMA, ANNOTATIONS];
}

/// The members of what goes over the wire, tools aside.
pub(super) mod wire_member {
    pub(in crate::webcodex) const PROTOCOL_VERSION: &str = "protocolVersion";
    pub(in crate::webcodex) const CONTENT: &str = "content";
    pub(in crate::webcodex) const STRUCTURED_CONTENT: &str = "structuredContent";
    pub(in crate::webcodex) const IS_ERROR: &str = "isError";
    pub(in crate::webcodex) const TYPE: &str = "type";
    pub(in crate::webcodex) const TEXT: &str = "text";
    pub(in crate::webcodex) const READ_ONLY: &str = "readOnlyHint";
    pub(in crate::webcodex) const DESTRUCTIVE: &str = "destructiveHint";
}
