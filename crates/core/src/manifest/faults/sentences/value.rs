//! Messages for values that a field does not accept.

use std::collections::BTreeSet;

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind},
};

use super::{
    LocatedFault, SchemaPosition,
    example::{USERNAME_PHRASE, has_only_fields},
    find_sections,
    suggest::option_texts,
};
use crate::{
    field::{Field, NamedObject, Scope},
    kind::forms::plain_text,
    text::{alternatives, is_unsafe},
    value::Json,
    yaml::{Node, NodeValue},
};

/// The maximum number of different characters in a text that is searched for refused characters.
/// The search compiles a schema for each character.
const MAX_CHARACTERS: usize = 100;

impl SchemaPosition<'_> {
    /// The fault of a value that its field does not accept.
    pub(super) fn value_fault(&self, error: &ValidationError<'_>) -> LocatedFault {
        match error.kind() {
            ValidationErrorKind::Type { kind } => self.wrong_type_fault(&type_names(kind)),
            ValidationErrorKind::Enum { options } => self.choice_fault(&option_texts(options)),
            ValidationErrorKind::Constant { expected_value } => {
                self.choice_fault(&[plain_text(expected_value)])
            }
            ValidationErrorKind::AnyOf { .. }
            | ValidationErrorKind::OneOfNotValid { .. }
            | ValidationErrorKind::OneOfMultipleValid { .. } => self.alternatives_fault(),
            ValidationErrorKind::Pattern { pattern } => {
                let example = self.schema["examples"][0].as_str();
                let requirement = match (self.find_refused_chars(example), example) {
                    _ if self.node.scalar_text().is_some_and(|text| text.is_empty()) => {
                        "must not be empty".to_owned()
                    }
                    (Some(chars), _) => format!("must not contain {chars}"),
                    (None, Some(example)) => format!("must be as in `{example}`"),
                    (None, None) => "has a form that is not allowed".to_owned(),
                };
                let position = SchemaPosition { subject: pattern, ..self.clone() };
                position.build_fault("pattern", "pattern", format!("{} {requirement}", self.name()))
            }
            _ => {
                let keyword = error.schema_path().as_str().rsplit('/').next();
                let position =
                    SchemaPosition { subject: keyword.unwrap_or_default(), ..self.clone() };
                let message = (position.suggest_help("limit"))
                    .unwrap_or_else(|| error.masked_with("the value").to_string());
                position.build_fault("value", "value", message)
            }
        }
    }

    /// The characters of the text that the field refuses, as text. The field refuses `example` with
    /// one of these characters in the middle, and accepts the text without these characters.
    fn find_refused_chars(&self, example: Option<&str>) -> Option<String> {
        let (text, example) = (self.node.scalar_text()?, example?);
        let middle_offset = example.char_indices().nth(example.chars().count() / 2)?.0;
        let is_refused = |c: &char| {
            let candidate =
                format!("{}{c}{}", &example[..middle_offset], &example[middle_offset..]);
            !c.is_alphanumeric() && !is_unsafe(*c) && !self.accepts(&candidate)
        };
        let mut refused_chars: BTreeSet<_> = text.chars().collect();
        if refused_chars.len() > MAX_CHARACTERS {
            return None;
        }
        refused_chars.retain(is_refused);
        let accepted_text: String =
            text.chars().filter(|sign| !refused_chars.contains(sign)).collect();
        let names: Vec<_> = refused_chars
            .iter()
            .map(|sign| if *sign == ' ' { "blanks".to_owned() } else { format!("`{sign}`") })
            .collect();
        (!names.is_empty() && self.accepts(&accepted_text)).then(|| names.join(" or "))
    }

    fn wrong_type_fault(&self, types: &[&str]) -> LocatedFault {
        let options = option_texts(&self.schema["enum"]);
        let is_scalar = matches!(self.node.data, NodeValue::Bool(_) | NodeValue::Number(_));
        if is_scalar && types == ["string"] && !options.is_empty() {
            return self.choice_fault(&options);
        }
        let type_texts =
            types.iter().filter(|type_name| **type_name != "null").map(|kind| describe_type(kind));
        self.type_fault(types, &type_texts.collect::<Vec<_>>())
    }

    /// The fault of a value that is empty, or that has none of the types in `type_texts`.
    fn type_fault(&self, allowed_types: &[&str], type_texts: &[&str]) -> LocatedFault {
        let (name, position) = (self.name(), SchemaPosition { allowed_types, ..self.clone() });
        if self.node.data == NodeValue::Null {
            return position.build_fault("empty", "null", format!("{name} is empty"));
        }
        position.build_fault("type", "type", format!("{name} must be {}", type_texts.join(" or ")))
    }

    /// True if the parent requires the key, or the key identifies it.
    pub(super) fn is_required(&self) -> bool {
        let parent = self.parent.map_or(self.root_schema, |(_, schema)| schema);
        let required = [&parent["required"], &parent["then"]["required"]];
        let required = required.into_iter().filter_map(Json::as_array).flatten();
        self.key.is_some_and(|key| {
            required.clone().any(|name| *name == key.name) || self.is_identity(&key.name)
        })
    }

    /// The description of the name that the value must be; `None` if the value need not name an
    /// object.
    pub(super) fn describe_named_object(&self) -> Option<&'static str> {
        let item_object = self
            .parent
            .filter(|_| self.is_list_item)
            .map(|(_, list_schema)| Field::from_schema(list_schema).names);
        Field::from_schema(self.schema).names.or(item_object.flatten()).map(|object| match object {
            NamedObject::User => USERNAME_PHRASE,
            NamedObject::Runner => "the description or the id",
            NamedObject::Role => "the name of a custom role",
            NamedObject::Group | NamedObject::Project => "the full path, as in `acme/team`",
        })
    }

    /// True if the field `name` identifies entries of its section.
    pub(super) fn is_identity(&self, name: &str) -> bool {
        find_sections(&self.section).any(|kind| kind.identity.contains(&name))
    }

    /// The section whose entries have the fields of the first item. `None` if the schema at this
    /// position has these fields.
    pub(super) fn guess_section(&self, items: &[Node]) -> Option<&str> {
        let first_item = items.first().filter(|first| !has_only_fields(first, self.schema))?;
        let mut sections = self.root_schema["properties"].as_object()?.iter();
        let property = sections.find(|(_, section)| has_only_fields(first_item, &section["items"]));
        property.map(|(name, _)| &**name)
    }

    fn choice_fault(&self, options: &[String]) -> LocatedFault {
        let requirement = match options.len() {
            13.. => format!("one of {} words", options.len()),
            _ => alternatives(options),
        };
        let position = SchemaPosition { allowed_words: options, ..self.clone() };
        position.build_fault("choice", "choice", format!("{} must be {requirement}", self.name()))
    }

    /// The scope whose documents accept the written word at this position. `None` if the scope of
    /// this document accepts the word.
    pub(super) fn other_scope(&self) -> Option<Scope> {
        let (word, key) = (self.node.text()?, self.key?);
        let has_option = |schema: &Json| {
            schema["enum"]
                .as_array()
                .is_some_and(|options| options.iter().any(|option| option == word))
        };
        if has_option(self.schema) || self.schema.get("enum").is_none() {
            return None;
        }
        let other_section = find_sections(&self.section)
            .find(|kind| kind.spec(&key.name).is_some_and(|spec| has_option(&spec.schema)));
        other_section.map(|kind| kind.scoped_kind.scope)
    }

    /// The address in the value of `guard`, if the value is `GUARD:ADDRESS`, as on the command
    /// line.
    pub(super) fn address_after_guard(&self) -> Option<&str> {
        let (_, address) = self.node.text()?.split_once(':')?;
        Some(address).filter(|_| self.key.is_some_and(|key| key.name == "guard"))
    }

    /// The fault of a value that no alternative of the schema accepts. The message lists the
    /// accepted values.
    fn alternatives_fault(&self) -> LocatedFault {
        let choices = ["anyOf", "oneOf"].map(|keyword| self.schema[keyword].as_array());
        let (mut options, mut types) = (Vec::new(), Vec::new());
        for choice in choices.into_iter().flatten().flatten() {
            match (choice.get("enum").or_else(|| choice.get("const")), choice["type"].as_str()) {
                // A field that accepts words also accepts numbers, but the message does not mention
                // them.
                (Some(Json::Array(words)), _) if words.iter().all(Json::is_string) => {
                    options.extend(option_texts(&choice["enum"]));
                }
                (None, Some(type_name)) if type_name != "null" => {
                    types.push(describe_type(type_name));
                }
                _ => {}
            }
        }
        if self.node.data == NodeValue::Null || options.is_empty() {
            return self.type_fault(&[], &types);
        }
        self.choice_fault(&options)
    }
}

fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(json_type) => vec![json_type.as_str()],
        TypeKind::Multiple(kinds) => kinds.iter().map(JsonType::as_str).collect(),
    }
}

fn describe_type(type_name: &str) -> &'static str {
    match type_name {
        "array" => "a list",
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "null" => "`null`",
        "number" => "a number",
        "object" => "a mapping",
        _ => "text",
    }
}
