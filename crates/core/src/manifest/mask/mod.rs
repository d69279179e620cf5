//! Finds the parts of a manifest that must not be shown.
//!
//! If the text has a parsed tree, a value is shown only if the schema has its field and the field
//! is not secret. The type of the value does not matter: a person who wrote `5MB` instead of a
//! number needs to see this value. The value of an unknown key is shown if all similar fields are
//! harmless. If there are no similar fields, the value is shown if no field of the mapping can
//! contain a secret and the key is not similar to the name of a secret. After broken syntax, there
//! is no tree. A word is then shown only on the line of a key that is known to be harmless.

use std::{cell::OnceCell, collections::BTreeSet, ops::Range};

use super::read::templates;
use crate::{
    diagnostic::SourceText,
    field::{Field, Secrecy},
    secret::judge::{self, Credential},
    text::{self, looks_like_name},
    value::{Json, texts},
    yaml::{MappingKey, Node, NodeValue, ParsedYaml},
};

mod lexer;

use lexer::find_secrets_in_lines;

/// Names of fields that may contain a secret. The value of an unknown key with a similar name is
/// hidden.
const SECRET_NAMES: [&str; 7] = ["key", "password", "secret", "token", "tokens", "url", "value"];

/// The YAML key that merges an anchor into a mapping. Manifests must not have it.
const MERGE_KEY: &str = "<<";

/// The state of a text. It decides if quotes and indentation of the text can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextState {
    /// The text may have any fault.
    MayHaveFaults,
    /// The text was loaded without a fault.
    Faultless,
}

/// Hides secrets in `source`. `find_schema` returns the schema of a document. In a part of the text
/// without a tree, a value is shown only if at least one of `schemas` has its field and none of
/// them marks it as secret.
pub(super) fn hide_secrets<'j>(
    source: &mut SourceText<'_>,
    parsed: &ParsedYaml,
    text_state: TextState,
    find_schema: impl Fn(&Node) -> &'j Json,
    schemas: &[&Json],
) {
    let text = source.text();
    let dropped_ranges = parsed.dropped_ranges.iter();
    let mut hidden_ranges: Vec<_> = dropped_ranges
        .map(|range| anchored_range(text, &value_range(text, range.start, range)))
        .collect();
    for document in &parsed.documents {
        hidden_ranges.extend(find_secrets(text, document, text_state, find_schema(document)));
    }
    if parsed.is_broken {
        let hidden_lines = find_secrets_in_lines(text, &collect_harmless_names(schemas));
        hidden_ranges.extend(hidden_lines.into_iter().filter(|range| {
            let next_index =
                parsed.documents.partition_point(|document| document.span.end < range.end);
            let next_document = parsed.documents.get(next_index);
            next_document.is_none_or(|document| document.span.start > range.start)
        }));
    }
    source.hide_ranges(hidden_ranges);
}

/// The byte ranges of the document `node` that must be hidden. `schema` is the schema of the
/// document.
fn find_secrets(
    text: &str,
    node: &Node,
    text_state: TextState,
    schema: &Json,
) -> Vec<Range<usize>> {
    let mut walk = MaskWalk {
        text,
        text_state,
        schema,
        harmless_names: OnceCell::new(),
        allows_template_forms: schema["properties"].get("uses").is_some(),
        is_misplaced: false,
        hidden_ranges: Vec::new(),
    };
    walk.visit(node, node.span.start, schema);
    walk.hidden_ranges
}

/// Walks through a document and collects the byte ranges to hide.
struct MaskWalk<'t> {
    text: &'t str,
    text_state: TextState,
    /// The schema of the document.
    schema: &'t Json,
    /// The names of fields that are never secret in the document. Computed on first use.
    harmless_names: OnceCell<BTreeSet<String>>,
    /// True if the document may contain forms that replace a value, such as templates.
    allows_template_forms: bool,
    /// True below a misplaced field. There, a field is shown only if its name is never secret in
    /// the whole document.
    is_misplaced: bool,
    hidden_ranges: Vec<Range<usize>>,
}

impl MaskWalk<'_> {
    /// Hides the secrets in `node`, whose key ends at the byte `key_end`.
    fn visit(&mut self, node: &Node, key_end: usize, schema: &Json) {
        let text = self.text;
        if is_credential(node) {
            return self.hidden_ranges.push(anchored_range(text, &node.span));
        }
        match &node.data {
            NodeValue::Map(_)
                if self.allows_template_forms
                    && let Some(forms) = templates::form_values(node, schema) =>
            {
                forms.for_each(|(form_key_end, value)| self.visit(value, form_key_end, schema));
            }
            NodeValue::Map(entries) => {
                entries.iter().for_each(|(key, value)| self.visit_entry(key, value, schema));
            }
            NodeValue::List(items) => {
                // If a list is written instead of a single value, its items are read with the
                // schema of the value.
                let schema = schema.get("items").unwrap_or(schema);
                items.iter().for_each(|item| self.visit(item, item.span.start, schema));
            }
            NodeValue::Unreadable if text.get(node.span.clone()).is_some_and(is_numeric) => {}
            NodeValue::Null | NodeValue::Bool(_) => {
                self.hidden_ranges.push(anchor_start(text, node.span.start)..node.span.start);
            }
            data if *data != NodeValue::Unreadable
                && (accepts_scalars(schema) || !may_be_secret(schema)) =>
            {
                self.hide_continuation_lines(node, key_end);
            }
            _ => self.hidden_ranges.push(anchored_range(text, &node.span)),
        }
    }

    fn harmless_names(&self) -> &BTreeSet<String> {
        self.harmless_names.get_or_init(|| collect_harmless_names(&[self.schema]))
    }

    fn visit_entry(&mut self, key: &MappingKey, value: &Node, schema: &Json) {
        let snake_name = text::snake_case(&key.name);
        let properties = &schema["properties"];
        let property = properties.get(&key.name).or_else(|| properties.get(&snake_name));
        // `additionalProperties` is only used if it describes mappings.
        let additional_schema = schema.get("additionalProperties").filter(|free| free.is_object());
        let property =
            property.or(additional_schema.filter(|free| free.get("properties").is_some()));
        match property.map(|property| (property, Field::from_schema(property).secrecy())) {
            Some((property, Secrecy::Open))
                if !self.is_misplaced || self.harmless_names().contains(&key.name) =>
            {
                self.visit(value, key.span.end, property);
            }
            Some((_, Secrecy::Address)) if !is_credential(value) => {
                self.hide_url_credentials(key.span.end, value);
            }
            // This is an unknown field, or a harmless but misplaced field with a scalar. `true` is
            // never a secret.
            None if additional_schema.is_none()
                && (self.is_harmless_unknown(key, value, schema)
                    || is_plain_scalar(value)
                        && schema.get("properties").is_some()
                        && (self.harmless_names().contains(&key.name)
                            || matches!(value.data, NodeValue::Null | NodeValue::Bool(_)))) =>
            {
                self.hidden_ranges
                    .push(anchor_start(self.text, value.span.start)..value.span.start);
                let NodeValue::List(items) = &value.data else {
                    return self.hide_continuation_lines(value, key.span.end);
                };
                for item in items {
                    self.hide_continuation_lines(item, item.span.start);
                }
            }
            // This is a list or mapping at a wrong place of the document.
            None if (value.is_collection() || value.data == NodeValue::Unreadable)
                && self.harmless_names().contains(&key.name)
                && let Some(property) = find_property(self.schema, &key.name) =>
            {
                let was_misplaced = std::mem::replace(&mut self.is_misplaced, true);
                self.visit(value, key.span.end, property);
                self.is_misplaced = was_misplaced;
            }
            None if key.name == MERGE_KEY && is_alias(self.text, key.span.end, &value.span) => {}
            _ => {
                self.hidden_ranges.push(value_range(self.text, key.span.end, &value.span));
                self.hidden_ranges.extend((!looks_like_name(&key.name)).then(|| key.span.clone()));
            }
        }
    }

    /// True if an unknown key and its value may be shown: all similar fields are harmless, or there
    /// is no similar field and no field of the mapping can contain a secret.
    fn is_harmless_unknown(&self, key: &MappingKey, value: &Node, schema: &Json) -> bool {
        let Some(properties) = schema["properties"].as_object() else { return false };
        let has_only_scalars = match &value.data {
            NodeValue::List(items) => items.iter().all(is_plain_scalar),
            _ => is_plain_scalar(value),
        };
        if !has_only_scalars
            || !looks_like_name(&key.name)
            || judge::is_named_like_secret(&key.name)
        {
            return false;
        }
        let names: Vec<_> = properties.keys().map(String::as_str).collect();
        let likely_names = text::likely_candidates(&key.name, &names);
        if !likely_names.is_empty() {
            return likely_names.iter().all(|name| !may_be_secret(&properties[*name]));
        }
        !may_be_secret(schema) && text::nearest(&key.name, SECRET_NAMES).is_none()
    }

    /// Hides possible credentials in a URL. If the value cannot be read as a URL, hides the whole
    /// value.
    fn hide_url_credentials(&mut self, key_end: usize, value: &Node) {
        let range = value_range(self.text, key_end, &value.span);
        if range.start == value.span.start
            && let NodeValue::List(items) = &value.data
        {
            return items.iter().for_each(|item| self.hide_url_credentials(item.span.start, item));
        }
        let quoted_text = self.text.get(range.clone()).unwrap_or_default();
        let quote = quoted_text.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let unquoted_text = quote.map_or(quoted_text, |quote| {
            quoted_text.trim_start_matches(quote).trim_end_matches(quote)
        });
        let start = range.start + (quoted_text.len() - unquoted_text.len()) / 2;
        match judge::find_address_secrets(unquoted_text)
            .filter(|_| value.text() == Some(unquoted_text))
        {
            Some(ranges) => self
                .hidden_ranges
                .extend(ranges.into_iter().map(|secret| start + secret.start..start + secret.end)),
            None => self.hidden_ranges.push(range),
        }
    }

    /// Hides the parts of a value that are not on the line of its key. These parts may contain
    /// anything, because quotes and indentation are often wrong. In a faultless text, hides them
    /// only if the value may be a secret.
    fn hide_continuation_lines(&mut self, node: &Node, key_end: usize) {
        if self.text_state == TextState::Faultless
            && !node.text().is_some_and(|text| judge::may_be_secret(text, Secrecy::Sensitive))
        {
            return;
        }
        let Some(value) = self.text.get(key_end..node.span.end) else { return };
        // The parser ends a block text at the next token, so remove the white space before that
        // token.
        if let Some(length) = value.find('\n') {
            let start = (key_end + length).max(node.span.start);
            self.hidden_ranges.push(start..key_end + value.trim_end().len());
        }
    }
}

/// True if `node` is a scalar without a credential.
fn is_plain_scalar(node: &Node) -> bool {
    !matches!(node.data, NodeValue::Map(_) | NodeValue::List(_) | NodeValue::Unreadable)
        && !is_credential(node)
}

/// True if the text of `node` is or contains a known form of a credential. A password in a URL does
/// not count, because only the password itself is hidden in a URL.
fn is_credential(node: &Node) -> bool {
    node.text()
        .and_then(judge::find_credential)
        .is_some_and(|credential| credential != Credential::Password)
}

/// The byte range of the value of a key that ends at `key_end`. The range starts right after the
/// colon, because a secret that begins with `&` or `!` looks like an anchor or tag.
fn value_range(text: &str, key_end: usize, value: &Range<usize>) -> Range<usize> {
    let after_key = text.get(key_end..value.end).unwrap_or_default();
    let value_text = after_key.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
    // The parser ends a collection in block style at the next token, so remove the white space
    // before that token.
    let start = value.end - value_text.len();
    start..start + value_text.trim_end().len()
}

/// The byte range of a value with its anchor and tag.
fn anchored_range(text: &str, value: &Range<usize>) -> Range<usize> {
    let start = anchor_start(text, value.start);
    start..start + text.get(start..value.end).unwrap_or_default().trim_end().len()
}

/// The byte at which the anchor and tag of a value start. If the value has neither, the start of
/// the value.
fn anchor_start(text: &str, value_start: usize) -> usize {
    let mut start = value_start;
    while let Some(text_before) =
        text.get(..start).map(|before| before.trim_end_matches([' ', '\t', '\n', '\r']))
        && let Some(word) =
            text_before.rsplit(|c: char| c.is_whitespace() || "[{,".contains(c)).next()
        && word.starts_with(['&', '!'])
    {
        start = text_before.len() - word.len();
    }
    start
}

/// True if a value of `schema` may contain a secret: in a sensitive field, or in an unknown field.
pub(super) fn may_be_secret(schema: &Json) -> bool {
    let properties = schema["properties"].as_object();
    let has_no_constraint = properties.is_none()
        && (schema.get("type").is_none() || schema["type"].to_string().contains("object"))
        && ["enum", "const", "anyOf", "oneOf"].iter().all(|keyword| schema.get(keyword).is_none());
    let fields = properties.into_iter().flatten().filter(|(name, _)| *name != "extra");
    has_no_constraint
        || Field::from_schema(schema).secrecy() != Secrecy::Open
        || fields.map(|(_, property)| property).chain(schema.get("items")).any(may_be_secret)
}

/// True if `schema` accepts a scalar or a list of scalars. A scalar that is written instead of a
/// mapping may be anything, so it is hidden.
fn accepts_scalars(schema: &Json) -> bool {
    let mut types = texts(&schema["type"]);
    schema.get("type").is_none()
        || schema["items"]["type"].is_string() && accepts_scalars(&schema["items"])
        || types.any(|type_name| !matches!(type_name, "array" | "object" | "null"))
}

/// The schema of the first field with this `name` in `schema`, at any depth.
fn find_property<'j>(schema: &'j Json, name: &str) -> Option<&'j Json> {
    let properties = schema["properties"].as_object();
    let mut inner_schemas =
        properties.into_iter().flat_map(|map| map.values()).chain(schema.get("items"));
    let property = properties.and_then(|properties| properties.get(name));
    property.or_else(|| inner_schemas.find_map(|inner_schema| find_property(inner_schema, name)))
}

/// True if the value of a key that ends at `key_end` is an alias, `*NAME`.
fn is_alias(text: &str, key_end: usize, value: &Range<usize>) -> bool {
    let value = text.get(value_range(text, key_end, value)).unwrap_or_default();
    value.strip_prefix('*').is_some_and(looks_like_name)
}

/// True if `text` may be a number, infinity or not-a-number.
fn is_numeric(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || "+-.einfaEINFA".contains(c))
}

/// The names of fields that at least one of `schemas` has and none marks as secret.
fn collect_harmless_names(schemas: &[&Json]) -> BTreeSet<String> {
    let (mut harmless_names, mut secret_names) = (BTreeSet::new(), BTreeSet::new());
    let mut pending_schemas = schemas.to_vec();
    while let Some(schema) = pending_schemas.pop() {
        pending_schemas.extend(schema.get("items"));
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_open = Field::from_schema(property).secrecy() == Secrecy::Open;
            if is_open && name != "extra" {
                harmless_names.insert(name.clone());
                pending_schemas.push(property);
            } else {
                secret_names.insert(name.clone());
            }
        }
    }
    harmless_names.difference(&secret_names).cloned().collect()
}

#[cfg(test)]
mod tests;
