//! Schema Profile v1: which schemas are admitted.
//!
//! The order of checks decides which of several faults is told: a value that is no object, then its bounds, then the
//! schemas from the root down, properties in the order of their names, and that the root is an object schema last.

use super::bounds::Limits;
use super::contract::{Bounds, Keyword, Rule, Type, v1};
use super::refusal::{Field, Found, Refusal, odd_control, shown, sorted};
use crate::json::{Kind, Node};

/// Says whether a schema, or annotations, may stand in this field of a tool. Pointers begin at `schema`.
pub fn admit_schema(schema: Node<'_>, field: Field, bounds: &Bounds) -> Result<(), Refusal> {
    admit(schema, field, bounds).map_err(|found| found.of(schema, None, Some(field.name())))
}

/// The same for a schema that stands in a tool.
pub(super) fn admit<'a>(schema: Node<'a>, field: Field, bounds: &Bounds) -> Result<(), Found<'a>> {
    if schema.kind() != Kind::Object {
        let rule = if field == Field::Annotations { Rule::AnnotationsObject } else { Rule::Object };
        return Err(Found::new(
            rule,
            schema,
            format!("it is of the kind {}, and must be an object", schema.kind()),
        ));
    }
    let limits =
        Limits { bytes: bounds.schema_bytes, of: bounds, rule: Rule::Bounds, name_rule: Rule::MemberName };
    limits.hold(schema)?;
    let length = match field {
        Field::Annotations => return Ok(()),
        Field::Input => bounds.input_length,
        Field::Output => bounds.output_length,
    };
    let root = Walk { bounds, length }.schema(schema)?;
    if root == Type::Object {
        return Ok(());
    }
    let says = format!("the root has the type {:?}, and must have {:?}", root.name(), Type::Object.name());
    Err(Found::new(Rule::RootType, schema, says))
}

type Checked<'a, T = ()> = Result<T, Found<'a>>;

/// The members of a schema by what they mean.
pub(super) struct Members<'a>([Option<Node<'a>>; Keyword::ALL.len()]);

impl<'a> Members<'a> {
    /// Sorts them; what is no keyword is given back instead.
    pub(super) fn of(schema: Node<'a>) -> Result<Members<'a>, Node<'a>> {
        let mut found = Members([None; Keyword::ALL.len()]);
        for (name, value) in schema.effective_members() {
            let Some(keyword) = Keyword::named(&name) else { return Err(value) };
            found.0[keyword as usize] = Some(value);
        }
        Ok(found)
    }

    pub(super) fn get(&self, keyword: Keyword) -> Option<Node<'a>> {
        self.0[keyword as usize]
    }

    /// The type, where it is one.
    pub(super) fn type_of(&self) -> Option<Type> {
        Type::named(&self.get(Keyword::Type)?.as_str()?)
    }
}

struct Walk<'b> {
    bounds: &'b Bounds,
    /// The largest length that a string may declare.
    length: u64,
}

impl Walk<'_> {
    /// Checks a schema and all below it, and gives its type. No deeper than the bound on depth, which is held before.
    fn schema<'a>(&self, node: Node<'a>) -> Checked<'a, Type> {
        if node.kind() != Kind::Object {
            let says =
                format!("a schema is an object with a `type`, and this is of the kind {}", node.kind());
            return Err(Found::new(Rule::Object, node, says));
        }
        let members = Members::of(node).map_err(|unknown| unknown_keyword(node, unknown))?;
        let of = type_of(node, &members)?;
        for keyword in [Keyword::Title, Keyword::Description] {
            members.get(keyword).map_or(Ok(()), |value| words(keyword, value))?;
        }
        members.get(Keyword::Enum).map_or(Ok(()), |value| self.enumeration(value))?;
        for keywords in [
            &[Keyword::Properties, Keyword::Required, Keyword::AdditionalProperties][..],
            &[Keyword::MinLength, Keyword::MaxLength],
            &[Keyword::MinItems, Keyword::MaxItems, Keyword::Items],
        ] {
            in_place(of, &members, keywords)?;
            match keywords[0] {
                Keyword::Properties => self.object(&members)?,
                Keyword::MinLength => {
                    range(&members, Keyword::MinLength, Keyword::MaxLength, self.length)?;
                }
                _ => {
                    range(&members, Keyword::MinItems, Keyword::MaxItems, self.bounds.items)?;
                    if let Some(items) = members.get(Keyword::Items) {
                        self.schema(items)?;
                    }
                }
            }
        }
        Ok(of)
    }

    fn enumeration<'a>(&self, value: Node<'a>) -> Checked<'a> {
        let most = self.bounds.enumerated;
        if value.kind() != Kind::Array {
            return Err(Found::new(Rule::Enum, value, "`enum` is no array"));
        }
        if value.is_empty() || value.len() as u64 > most {
            let says = format!("`enum` has {} members, and may have 1 to {most}", value.len());
            return Err(Found::new(Rule::Enum, value, says));
        }
        Ok(())
    }

    fn object<'a>(&self, members: &Members<'a>) -> Checked<'a> {
        let declared = self.properties(members)?;
        let required = self.required(members)?;
        let Some(additional) = members.get(Keyword::AdditionalProperties) else { return Ok(()) };
        if additional.as_bool() == Some(false) {
            let missing = required.iter().find(|(name, _)| {
                declared.binary_search_by(|(declared, _)| declared.as_ref().cmp(name)).is_err()
            });
            if let Some((name, at)) = missing {
                let says = format!(
                    "{} is required, not declared in `properties`, and `additionalProperties` is false",
                    shown(name)
                );
                return Err(Found::new(Rule::RequiredDeclared, *at, says));
            }
        }
        if additional.as_bool().is_none() {
            let says = format!(
                "`additionalProperties` is of the kind {}; the profile has only true and false",
                additional.kind()
            );
            return Err(Found::new(Rule::AdditionalProperties, additional, says));
        }
        Ok(())
    }

    /// Gives the properties in the order of their names.
    fn properties<'a>(&self, members: &Members<'a>) -> Checked<'a, Named<'a>> {
        let Some(properties) = members.get(Keyword::Properties) else { return Ok(Vec::new()) };
        if properties.kind() != Kind::Object {
            return Err(Found::new(Rule::Properties, properties, "`properties` is no object"));
        }
        let declared = sorted(properties);
        if declared.len() as u64 > self.bounds.properties {
            let says =
                format!("there are {} properties, and may be {}", declared.len(), self.bounds.properties);
            return Err(Found::new(Rule::Properties, properties, says));
        }
        for (_, schema) in &declared {
            self.schema(*schema)?;
        }
        Ok(declared)
    }

    /// Gives the names in their order.
    fn required<'a>(&self, members: &Members<'a>) -> Checked<'a, Named<'a>> {
        let Some(required) = members.get(Keyword::Required) else { return Ok(Vec::new()) };
        if required.kind() != Kind::Array {
            let says =
                format!("`required` is of the kind {}, and must be an array of names", required.kind());
            return Err(Found::new(Rule::Required, required, says));
        }
        if required.len() as u64 > self.bounds.required {
            let says =
                format!("`required` has {} names, and may have {}", required.len(), self.bounds.required);
            return Err(Found::new(Rule::Required, required, says));
        }
        let mut names = Vec::with_capacity(required.len());
        for element in required.elements() {
            let Some(name) = element.as_str() else {
                return Err(Found::new(Rule::Required, element, "a name in `required` is no string"));
            };
            names.push((name, element));
        }
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        match names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => {
                let says = format!("{} stands twice in `required`", shown(&pair[1].0));
                Err(Found::new(Rule::Required, pair[1].1, says))
            }
            None => Ok(names),
        }
    }
}

type Named<'a> = Vec<(std::borrow::Cow<'a, str>, Node<'a>)>;

fn unknown_keyword<'a>(schema: Node<'a>, value: Node<'a>) -> Found<'a> {
    let name = schema.effective_members().find(|(_, it)| it.offset() == value.offset()).map(|(name, _)| name);
    let words = |of: Option<Type>| {
        let words = Keyword::ALL.iter().filter(|keyword| v1().keyword_of(**keyword) == of);
        words.map(|keyword| keyword.name()).collect::<Vec<_>>().join(", ")
    };
    let says = format!(
        "{} is not in the profile; the profile knows {}; of objects {}; of strings {}; of arrays {}",
        shown(&name.unwrap_or_default()).replace('"', "`"),
        words(None),
        words(Some(Type::Object)),
        words(Some(Type::String)),
        words(Some(Type::Array)),
    );
    Found::new(Rule::Keyword, value, says)
}

fn type_of<'a>(node: Node<'a>, members: &Members<'a>) -> Checked<'a, Type> {
    if let Some(of) = members.type_of() {
        return Ok(of);
    }
    let known: Vec<&str> = Type::ALL.iter().map(|of| of.name()).collect();
    let (at, what) = match members.get(Keyword::Type) {
        None => (node, "there is no `type`".to_owned()),
        Some(written) => match written.as_str() {
            Some(name) => (written, format!("{} is no type", shown(&name))),
            None => (written, format!("`type` is of the kind {}, and must be one string", written.kind())),
        },
    };
    Err(Found::new(Rule::Type, at, format!("{what}; the types are {}", known.join(", "))))
}

fn words(keyword: Keyword, value: Node<'_>) -> Checked<'_> {
    let Some(text) = value.as_str() else {
        return Err(Found::new(Rule::Words, value, format!("`{}` is no string", keyword.name())));
    };
    match odd_control(&text) {
        Some(odd) => {
            let says = format!("`{}` has the control character U+{:04X}", keyword.name(), u32::from(odd));
            Err(Found::new(Rule::Words, value, says))
        }
        None => Ok(()),
    }
}

/// Whether these keywords, which are of one type, stand in a schema of that type.
fn in_place<'a>(of: Type, members: &Members<'a>, keywords: &[Keyword]) -> Checked<'a> {
    for keyword in keywords {
        let (Some(at), Some(needs)) = (members.get(*keyword), v1().keyword_of(*keyword)) else { continue };
        if needs != of {
            let says = format!(
                "`{}` stands in a schema of the type {:?}, and is only for {:?}",
                keyword.name(),
                of.name(),
                needs.name()
            );
            return Err(Found::new(Rule::Place, at, says));
        }
    }
    Ok(())
}

fn range<'a>(members: &Members<'a>, least: Keyword, most: Keyword, bound: u64) -> Checked<'a> {
    let of = |keyword: Keyword| match members.get(keyword) {
        None => Ok(None),
        Some(value) => match count(value) {
            Some(count) if count <= bound => Ok(Some(count)),
            Some(count) => {
                let says = format!("`{}` is {count}, and may be at most {bound}", keyword.name());
                Err(Found::new(Rule::Range, value, says))
            }
            None => {
                let says = format!("`{}` is not written as a whole number from 0 on", keyword.name());
                Err(Found::new(Rule::Range, value, says))
            }
        },
    };
    let (low, high) = (of(least)?, of(most)?);
    match (low, high, members.get(least)) {
        (Some(low), Some(high), Some(at)) if low > high => {
            let says = format!("`{}` is {low}, more than `{}`, {high}", least.name(), most.name());
            Err(Found::new(Rule::Range, at, says))
        }
        _ => Ok(()),
    }
}

/// A number that is written as a whole one from 0 on. `-0` is none: it is read as a fraction.
pub(super) fn count(value: Node<'_>) -> Option<u64> {
    if value.is_written_as_integer() { value.raw().parse().ok() } else { None }
}
