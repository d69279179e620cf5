//! Builds examples of correct values. The examples reuse parts of the wrong value that are not
//! secret.

use crate::{
    catalogue::words,
    kind::{Section, allows_type, is_list},
    level::{AccessLevel, MEMBER_LEVELS},
    manifest::mask::may_be_secret,
    secret::judge,
    text::looks_like_name,
    value::{Json, Object},
    yaml::{Node, NodeValue, write::format_scalar as quoted},
};

use super::{SchemaPosition, find_sections, guess::has_property, suggest::option_texts};

/// Texts of this length in bytes or more are not quoted in an example.
const MAX_QUOTED_LENGTH: usize = 40;

/// If a mapping has more fields than this number, an example does not guess its first field.
const MAX_GUESSABLE_FIELDS: usize = 6;

/// If a mapping is written instead of a name, the value of one of these keys is the name.
pub(super) const NAME_KEYS: [&str; 6] = ["group", "name", "path", "project", "user", "username"];

/// The values of a switch.
const SWITCH_VALUES: [&str; 2] = ["true", "false"];

/// The phrase in messages for a field that names a user.
pub(super) const USERNAME_PHRASE: &str = "the username";

/// True if `schema` accepts `true` and `false`, and no text.
pub(super) fn is_switch(schema: &Json) -> bool {
    allows_type(schema, "boolean") && !allows_type(schema, "string")
}

/// The word of the access level that `text` means. `text` is a word, also in the plural, or a
/// number.
pub(super) fn parse_level(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let level = (AccessLevel::parse(&text.into()))
        .or_else(|| AccessLevel::parse(&text.parse::<u8>().ok()?.into()))
        .or_else(|| AccessLevel::parse(&text.trim_end_matches('s').into()));
    let level_words = MEMBER_LEVELS.into_iter().map(|level| level.word).chain(["no_access"]);
    level.map(|level| level.word).or_else(|| words::find_option(text, level_words))
}

/// True if `node` is a non-empty mapping with only fields of `schema`.
pub(super) fn has_only_fields(node: &Node, schema: &Json) -> bool {
    !node.entries().is_empty() && node.keys().all(|key| has_property(schema, key))
}

impl<'d> SchemaPosition<'d> {
    /// An example of an entry, for an entry or a list of the wrong type. The example has the
    /// required fields. If no field is required, it has the identity.
    pub(super) fn entry_example(&self) -> Option<String> {
        let item_schema = if self.is_list_item { self.schema } else { self.schema.get("items")? };
        let properties = item_schema.get("properties")?.as_object()?;
        let section = self.find_section(properties);
        let mut names =
            option_texts(&section.map_or(item_schema, |kind| &kind.table().schema)["required"]);
        names.extend(
            section.iter().flat_map(|kind| kind.required_fields).map(|name| (*name).to_owned()),
        );
        names.retain(|name| properties.contains_key(name));
        let identity = section.and_then(|kind| kind.identity.first().copied());
        names.extend(identity.filter(|_| names.is_empty()).map(str::to_owned));
        let (written_key, written_text) = split_pair(self.node);
        // Use the written key only as the identity, and only if the identity is the first required
        // field.
        let written_key = written_key.filter(|_| {
            identity.is_none_or(|name| names.first().is_some_and(|first_name| first_name == name))
        });
        let written_text = written_text.filter(|text| {
            written_key.is_some() || parse_level(text).is_some() || !may_be_secret(item_schema)
        });
        let format_field = |name: &str, candidate: &Option<String>| {
            self.format_if_valid(name, &properties[name], candidate.as_deref()?)
        };
        if names.is_empty() {
            let mut property_names = properties.keys();
            let fitting_name = property_names.find(|name| {
                [&written_key, &written_text]
                    .iter()
                    .any(|value_text| format_field(name, value_text).is_some())
            });
            names.push(fitting_name.or(properties.keys().next())?.clone());
        }
        let is_incomplete = section.is_none()
            && names.len() == 1
            && format_field(&names[0], &written_text).is_none();
        let (first_value, has_key) =
            (self.node.entries().first().map(|(_, inner)| inner), written_key.is_some());
        let fields = names.iter().map(|name| {
            let nested_text = first_value.and_then(|inner| quotable_scalar(inner.get(name)?.1));
            let key_text = written_key.as_ref().filter(|_| *name == names[0]).cloned();
            // Use the written text for only one field, but for every field with an access level.
            let takes_text = has_key || *name == names[0] || name.contains("access");
            let candidates = [nested_text, key_text, written_text.clone().filter(|_| takes_text)];
            let value = candidates.iter().find_map(|source_text| format_field(name, source_text));
            format!("{name}: {}", value.unwrap_or_else(|| value_example(&properties[name])))
        });
        let ellipsis = if is_incomplete { ", ..." } else { "" };
        Some(format!("{{{}{ellipsis}}}", fields.collect::<Vec<_>>().join(", ")))
    }

    /// The section at this position, if its entries have these properties. The name alone is not
    /// enough: a sandbox seed has lists with the names of sections but with other entries.
    fn find_section(&self, properties: &Object) -> Option<Section> {
        if self.depth != 1 + usize::from(self.is_list_item) {
            return None;
        }
        find_sections(&self.section).find(|section| {
            let mut needed_fields = section.identity.iter().chain(section.required_fields);
            needed_fields.all(|name| properties.contains_key(*name))
        })
    }

    /// Formats a text of the wrong value as the value of the field `name`; `None` if the field does
    /// not accept the text.
    fn format_if_valid(&self, name: &str, schema: &Json, candidate: &str) -> Option<String> {
        let (options, level) = (option_texts(&schema["enum"]), parse_level(candidate));
        if name.contains("access") {
            return level.map(str::to_owned);
        }
        if !self.marks_secrets() || may_be_secret(schema) {
            return None;
        }
        if !options.is_empty() {
            return options.into_iter().find(|option| option == candidate);
        }
        if is_switch(schema) {
            return words::find_option(candidate, SWITCH_VALUES)
                .or(SWITCH_VALUES.into_iter().find(|value| *value == candidate))
                .map(str::to_owned);
        }
        if schema["type"] == "integer" {
            return candidate.parse::<u64>().ok().map(|number| number.to_string());
        }
        let is_access_word = words::find_option(candidate, ["enabled", "no_access"]).is_some();
        let is_text = level.is_none() && !is_access_word;
        (is_text && jsonschema::is_valid(schema, &candidate.into()))
            .then(|| quoted(candidate, true))
    }

    /// An example of a mapping, for a scalar or list that is written instead of a mapping.
    pub(super) fn mapping_example(&self) -> Option<String> {
        let Some(properties) = self.schema["properties"].as_object() else {
            let first_example = self.schema["examples"][0].as_object()?;
            return Some(
                Json::from(first_example.clone()).to_string().replace('"', "").replace(':', ": "),
            );
        };
        let first_node = self.node.items().first().unwrap_or(self.node);
        let first_text =
            first_node.scalar_text().filter(|text| can_be_quoted(text)).unwrap_or_default();
        let format_text =
            |name: &str| self.format_if_valid(name, properties.get(name)?, &first_text);
        // Fields that the enclosing mapping also has, such as sections of a document, come first.
        let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
        names.sort_by_key(|name| self.parent.is_none_or(|(parent, _)| parent.get(name).is_none()));
        let mut names = names.into_iter();
        let has_options = |name: &&str| properties[*name].get("enum").is_some();
        let switch_name = Some("enabled").filter(|name| format_text(name).is_some());
        let name = (switch_name.or_else(|| self.schema["required"][0].as_str()))
            .or_else(|| names.clone().find(|name| has_options(name) && format_text(name).is_some()))
            .or_else(|| names.clone().next().filter(|_| properties.len() <= MAX_GUESSABLE_FIELDS))
            .or_else(|| names.find(has_options))
            .or_else(|| {
                let mut names = properties.keys().map(String::as_str);
                names.find(|name| is_switch(&properties[*name]) && format_text(name).is_some())
            })?;
        let value = format_text(name).unwrap_or_else(|| value_example(&properties[name]));
        Some(format!("{{{name}: {value}}}"))
    }

    /// True if the schema marks secret values. This is so for the schemas of manifests,
    /// `undrift.yaml` and descriptions.
    fn marks_secrets(&self) -> bool {
        ["kind", "version", "section"]
            .iter()
            .any(|key| self.root_schema["properties"].get(key).is_some())
    }

    /// An example of a list of texts, for a text or mapping that is written instead of a list.
    pub(super) fn list_example(&self) -> Option<String> {
        let item_schema =
            self.schema.get("items").filter(|items| items.get("properties").is_none())?;
        let may_quote_items = self.marks_secrets() && !may_be_secret(item_schema);
        let texts: Vec<&str> = match &self.node.data {
            NodeValue::Text(text) => {
                let list_text = text.trim_matches(['(', ')', '<', '>', '[', ']']);
                list_text.split([',', ';']).map(str::trim).collect()
            }
            NodeValue::Map(entries)
                if entries.iter().all(|(_, value)| value.items().is_empty()) =>
            {
                let texts = entries.iter().map(|(key, value)| {
                    let name_text = value.text().filter(|_| NAME_KEYS.contains(&key.name.as_str()));
                    name_text.unwrap_or(&key.name)
                });
                texts.collect()
            }
            _ => return None,
        };
        let is_safe = texts.iter().all(|text| {
            (1..MAX_QUOTED_LENGTH).contains(&text.len()) && judge::find_credential(text).is_none()
        });
        let is_quotable = may_quote_items && !texts.is_empty() && is_safe;
        let texts = texts.into_iter().map(|text| quoted(text, true));
        is_quotable.then(|| format!("[{}]", texts.collect::<Vec<_>>().join(", ")))
    }
}

/// Splits a pair that is written instead of an entry into key and text: `alice: maintainer` into
/// `alice` and `maintainer`. `users: {alice: {...}}` is no pair.
fn split_pair(node: &Node) -> (Option<String>, Option<String>) {
    let NodeValue::Map(entries) = &node.data else {
        return (None, quotable_scalar(node).map(|text| text.trim_start_matches('@').to_owned()));
    };
    let Some((key, value)) = entries.first() else { return (None, None) };
    let has_nested_mapping = value.entries().iter().any(|(_, inner)| {
        let is_reference = inner.get("env").is_some() || inner.get("file").is_some();
        matches!(inner.data, NodeValue::Map(_)) && !is_reference
    });
    let is_unusable =
        matches!(value.data, NodeValue::List(_) | NodeValue::Bool(_)) || has_nested_mapping;
    let is_key = !is_unusable && looks_like_name(&key.name.replace('/', "."));
    (is_key.then(|| key.name.clone()), quotable_scalar(value))
}

/// The text of a scalar, if it may be quoted.
fn quotable_scalar(node: &Node) -> Option<String> {
    node.scalar_text()
        .filter(|text| !matches!(node.data, NodeValue::Bool(_)) && can_be_quoted(text))
}

/// True if a text may be quoted in a message: short, without special characters, and no credential.
pub(super) fn can_be_quoted(text: &str) -> bool {
    let has_syntax = text.contains(['\n', '[', ']', '{', '}', '`', '(', ',']) || text == "...";
    (1..MAX_QUOTED_LENGTH).contains(&text.len())
        && !has_syntax
        && judge::find_credential(text).is_none()
}

/// An example of a field's value.
pub(super) fn value_example(schema: &Json) -> String {
    let options = schema["enum"].as_array().and_then(|options| options.first());
    let first_example = schema["examples"].as_array().and_then(|examples| examples.first());
    match first_example.or(options) {
        Some(Json::String(text)) if !text.contains(": ") => quoted(text, true),
        Some(Json::Number(number)) => number.to_string(),
        Some(Json::Array(rows)) if rows.iter().all(Json::is_object) => {
            let row_texts = rows
                .iter()
                .map(|row| row.to_string().replace('"', "").replace(':', ": ").replace(',', ", "));
            format!("[{}]", row_texts.collect::<Vec<_>>().join(", "))
        }
        _ if is_list(schema) => "[...]".to_owned(),
        _ if is_switch(schema) => "true".to_owned(),
        _ if schema["type"] == "integer" => "1".to_owned(),
        _ if AccessLevel::parse(&schema["default"]).is_some() => schema["default"].to_string(),
        _ => "...".to_owned(),
    }
}
