//! Examples of correct values that reuse the parts of the written value that may be shown.

use crate::{
    catalogue::{self, words},
    kind::{Section, is_list, takes_type},
    level::{AccessLevel, LEVELS},
    manifest::mask::may_be_secret,
    secret::judge,
    text::is_name,
    value::{Json, Object},
    yaml::{Node, NodeValue, write::scalar as quoted},
};

use super::{SchemaPosition, suggest::option_texts};

/// The longest text that is quoted in an example.
const MAX_QUOTED_LENGTH: usize = 40;

/// The maximum number of fields of a mapping for which the first field is offered as a guess.
const MAX_GUESSABLE_FIELDS: usize = 6;

/// Keys whose value may be the name, where only the name should be.
pub(super) const NAME_KEYS: [&str; 6] = ["group", "name", "path", "project", "user", "username"];

/// The values of a switch.
const SWITCH_VALUES: [&str; 2] = ["true", "false"];

/// The kind of name in a field that names a user.
pub(super) const USERNAME: &str = "the username";

/// True if a value of `schema` is `true` or `false`, or perhaps `null`.
pub(super) fn is_switch(schema: &Json) -> bool {
    takes_type(schema, "boolean") && !takes_type(schema, "string")
}

/// The level of access that a word, or a number in quotes, means.
pub(super) fn parse_level(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let level = (AccessLevel::parse(&text.into()))
        .or_else(|| AccessLevel::parse(&text.parse::<u8>().ok()?.into()))
        .or_else(|| AccessLevel::parse(&text.trim_end_matches('s').into()));
    let words = LEVELS.into_iter().map(|level| level.word).chain(["no_access"]);
    level.map(|level| level.word).or_else(|| words::find_option(text, words))
}

/// True if it is a mapping with fields of `schema` only.
pub(super) fn has_only_fields(node: &Node, schema: &Json) -> bool {
    let mut keys = node.entries().iter().map(|(key, _)| key);
    !node.entries().is_empty() && keys.all(|key| schema["properties"].get(&key.name).is_some())
}

/// A scalar as text.
pub(super) fn scalar_text(node: &Node) -> Option<String> {
    match &node.data {
        NodeValue::Text(text) => Some(text.clone()),
        NodeValue::Number(number) => Some(number.to_string()),
        NodeValue::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

impl<'d> SchemaPosition<'d> {
    /// An entry of the list that is written in another shape, or of which this is an entry of another
    /// shape: with what tells entries apart and what each of them needs.
    pub(super) fn entry_example(&self) -> Option<String> {
        let item = if self.is_list_item { self.schema } else { self.schema.get("items")? };
        let properties = item.get("properties")?.as_object()?;
        let section = self.find_section_by_properties(properties);
        let mut names = option_texts(&section.map_or(item, |of| &of.table().schema)["required"]);
        names.extend(section.iter().flat_map(|of| of.required).map(|name| (*name).to_owned()));
        names.retain(|name| properties.contains_key(name));
        let identity = section.and_then(|of| of.identity.first().copied());
        names.extend(identity.filter(|_| names.is_empty()).map(str::to_owned));
        let (key, text) = written_pair(self.node);
        // A key holds the identity, which is not always the first required field.
        let key = key.filter(|_| {
            identity.is_none_or(|name| names.first().is_some_and(|first_name| first_name == name))
        });
        let text = text
            .filter(|text| key.is_some() || parse_level(text).is_some() || !may_be_secret(item));
        let field = |name: &str, piece: &Option<String>| {
            self.fit_value(name, &properties[name], piece.as_deref()?)
        };
        if names.is_empty() {
            let mut all = properties.keys();
            let fitting = all.find(|name| [&key, &text].iter().any(|of| field(name, of).is_some()));
            names.push(fitting.or(properties.keys().next())?.clone());
        }
        let is_short = section.is_none() && names.len() == 1 && field(&names[0], &text).is_none();
        let (inner, is_pair) = (self.node.entries().first().map(|(_, inner)| inner), key.is_some());
        let fields = names.iter().map(|name| {
            let nested_text = inner.and_then(|inner| quotable_scalar(inner.get(name)?.1));
            let key = key.as_ref().filter(|_| *name == names[0]).cloned();
            // One text is not the value of two fields.
            let is_for_text = is_pair || *name == names[0] || name.contains("access");
            let pieces = [nested_text, key, text.clone().filter(|_| is_for_text)];
            let value = pieces.iter().find_map(|piece| field(name, piece));
            format!("{name}: {}", value.unwrap_or_else(|| value_example(&properties[name])))
        });
        let ellipsis = if is_short { ", ..." } else { "" };
        Some(format!("{{{}{ellipsis}}}", fields.collect::<Vec<_>>().join(", ")))
    }

    /// The section whose entries have these properties. A seed has lists with the names of sections, and
    /// entries of their own.
    fn find_section_by_properties(&self, properties: &Object) -> Option<Section> {
        if self.depth != 1 + usize::from(self.is_list_item) {
            return None;
        }
        catalogue::all_sections().find(|section| {
            let mut needed = section.identity.iter().chain(section.required);
            section.section == self.section && needed.all(|name| properties.contains_key(*name))
        })
    }

    /// `piece`, which is written elsewhere, as the value of the field `name`, if it fits.
    fn fit_value(&self, name: &str, schema: &Json, piece: &str) -> Option<String> {
        let (options, level) = (option_texts(&schema["enum"]), parse_level(piece));
        if name.contains("access") {
            return level.map(str::to_owned);
        }
        if !self.marks_secrets() || may_be_secret(schema) {
            return None;
        }
        if !options.is_empty() {
            return options.into_iter().find(|option| option == piece);
        }
        if is_switch(schema) {
            return words::find_option(piece, SWITCH_VALUES)
                .or(SWITCH_VALUES.into_iter().find(|value| *value == piece))
                .map(str::to_owned);
        }
        if schema["type"] == "integer" {
            return piece.parse::<u64>().ok().map(|number| number.to_string());
        }
        let is_everybody = words::find_option(piece, ["enabled", "no_access"]).is_some();
        let is_text = level.is_none() && !is_everybody;
        (is_text && jsonschema::is_valid(schema, &piece.into())).then(|| quoted(piece, true))
    }

    /// The mapping that a scalar, or a list, should be.
    pub(super) fn mapping_example(&self) -> Option<String> {
        let Some(properties) = self.schema["properties"].as_object() else {
            let first = self.schema["examples"][0].as_object()?;
            return Some(Json::from(first.clone()).to_string().replace('"', "").replace(':', ": "));
        };
        let first = self.node.items().first().unwrap_or(self.node);
        let piece = scalar_text(first).filter(|text| can_be_quoted(text)).unwrap_or_default();
        let fits = |name: &str| self.fit_value(name, properties.get(name)?, &piece);
        // Those that the mapping around it has, such as the sections of a document, come first.
        let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
        names.sort_by_key(|name| self.parent.is_none_or(|(parent, _)| parent.get(name).is_none()));
        let mut names = names.into_iter();
        let has_options = |name: &&str| properties[*name].get("enum").is_some();
        let switch = Some("enabled").filter(|name| fits(name).is_some());
        let name = (switch.or_else(|| self.schema["required"][0].as_str()))
            .or_else(|| names.clone().find(|name| has_options(name) && fits(name).is_some()))
            .or_else(|| names.clone().next().filter(|_| properties.len() <= MAX_GUESSABLE_FIELDS))
            .or_else(|| names.find(has_options))
            .or_else(|| {
                let mut names = properties.keys().map(String::as_str);
                names.find(|name| is_switch(&properties[*name]) && fits(name).is_some())
            })?;
        let value = fits(name).unwrap_or_else(|| value_example(&properties[name]));
        Some(format!("{{{name}: {value}}}"))
    }

    /// True if the schema marks what is secret, as those of manifests and of `undrift.yaml` do.
    fn marks_secrets(&self) -> bool {
        ["kind", "version", "section"].iter().any(|key| self.root["properties"].get(key).is_some())
    }

    /// The list of texts that something else should be.
    pub(super) fn list_example(&self) -> Option<String> {
        let items = self.schema.get("items").filter(|items| items.get("properties").is_none())?;
        let is_shown = self.marks_secrets() && !may_be_secret(items);
        let texts: Vec<&str> = match &self.node.data {
            NodeValue::Text(text) => {
                let inner = text.trim_matches(['(', ')', '<', '>', '[', ']']);
                inner.split([',', ';']).map(str::trim).collect()
            }
            NodeValue::Map(entries)
                if entries.iter().all(|(_, value)| value.items().is_empty()) =>
            {
                let texts = entries.iter().map(|(key, value)| {
                    let named = value.text().filter(|_| NAME_KEYS.contains(&key.name.as_str()));
                    named.unwrap_or(&key.name)
                });
                texts.collect()
            }
            _ => return None,
        };
        let is_safe = texts.iter().all(|text| {
            (1..MAX_QUOTED_LENGTH).contains(&text.len()) && judge::find_credential(text).is_none()
        });
        let fits = is_shown && !texts.is_empty() && is_safe;
        let texts = texts.into_iter().map(|text| quoted(text, true));
        fits.then(|| format!("[{}]", texts.collect::<Vec<_>>().join(", ")))
    }
}

/// The key and the text that are written where an entry should be: as in `alice: maintainer`, but not
/// `users: {alice: {...}}`.
fn written_pair(node: &Node) -> (Option<String>, Option<String>) {
    let NodeValue::Map(entries) = &node.data else {
        return (None, quotable_scalar(node).map(|text| text.trim_start_matches('@').to_owned()));
    };
    let Some((key, value)) = entries.first() else { return (None, None) };
    let is_group = value.entries().iter().any(|(_, inner)| {
        let is_reference = inner.get("env").is_some() || inner.get("file").is_some();
        matches!(inner.data, NodeValue::Map(_)) && !is_reference
    });
    let is_odd = matches!(value.data, NodeValue::List(_) | NodeValue::Bool(_)) || is_group;
    let is_key = !is_odd && is_name(&key.name.replace('/', "."));
    (is_key.then(|| key.name.clone()), quotable_scalar(value))
}

/// A scalar as it may be quoted.
fn quotable_scalar(node: &Node) -> Option<String> {
    scalar_text(node).filter(|text| !matches!(node.data, NodeValue::Bool(_)) && can_be_quoted(text))
}

/// True if a text may be quoted.
pub(super) fn can_be_quoted(text: &str) -> bool {
    let is_odd = text.contains(['\n', '[', ']', '{', '}', '`', '(', ',']) || text == "...";
    (1..MAX_QUOTED_LENGTH).contains(&text.len())
        && !is_odd
        && judge::find_credential(text).is_none()
}

/// An example of a field's value.
pub(super) fn value_example(schema: &Json) -> String {
    let options = schema["enum"].as_array().and_then(|options| options.first());
    let first = schema["examples"].as_array().and_then(|examples| examples.first());
    match first.or(options) {
        Some(Json::String(text)) if !text.contains(": ") => quoted(text, true),
        Some(Json::Number(number)) => number.to_string(),
        Some(Json::Array(rows)) if rows.iter().all(Json::is_object) => {
            let rows = rows
                .iter()
                .map(|row| row.to_string().replace('"', "").replace(':', ": ").replace(',', ", "));
            format!("[{}]", rows.collect::<Vec<_>>().join(", "))
        }
        _ if is_list(schema) => "[...]".to_owned(),
        _ if is_switch(schema) => "true".to_owned(),
        _ if schema["type"] == "integer" => "1".to_owned(),
        _ if AccessLevel::parse(&schema["default"]).is_some() => schema["default"].to_string(),
        _ => "...".to_owned(),
    }
}
