//! The parts of a manifest that must not be shown.
//!
//! With a tree, a value is shown only if its schema knows the field and it is not secret. Its type
//! does not matter: someone who wrote `5MB` instead of a number needs to see it. The value of an unknown
//! key is shown if the key resembles only fields that contain no secret, or if no field beside it can
//! contain one and it has no name of a secret. Without a tree, after broken syntax, a word is shown only on the line of a key
//! that is known to be harmless.

use std::{cell::OnceCell, collections::BTreeSet, ops::Range};

use super::read::templates;
use crate::{
    diagnostic::SourceText,
    field::{Field, Secrecy},
    secret::judge::{self, Credential},
    text::{self, is_name},
    value::{Json, texts},
    yaml::{MappingKey, Node, NodeValue, Parsed},
};

mod lexer;

use lexer::find_secrets_in_lines;

/// Names of fields that hold a secret: the value of a key that resembles one is not shown.
const SECRET_NAMES: [&str; 7] = ["key", "password", "secret", "token", "tokens", "url", "value"];

/// The key that inserts what an anchor marks. Manifests must not have it.
const MERGE_KEY: &str = "<<";

/// The reliability of quotes and indentation in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextState {
    /// The text may have any fault.
    Doubtful,
    /// The text was loaded without a fault.
    Loaded,
}

/// Hides the secret parts of `source`. `schema` returns the schema of a document. Of text outside of
/// documents, only values of fields are shown that `schemas` have and that are nowhere secret.
pub(super) fn hide_secrets<'j>(
    source: &mut SourceText<'_>,
    parsed: &Parsed,
    quality: TextState,
    schema: impl Fn(&Node) -> &'j Json,
    schemas: &[&Json],
) {
    let text = source.text();
    let mut hidden: Vec<_> =
        parsed.dropped.iter().map(|range| dropped_range(text, range)).collect();
    for document in &parsed.documents {
        hidden.extend(find_secrets(text, document, quality, schema(document)));
    }
    if parsed.is_broken {
        let hidden_lines = find_secrets_in_lines(text, &open_names(schemas));
        hidden.extend(hidden_lines.into_iter().filter(|range| {
            let next = parsed.documents.partition_point(|document| document.span.end < range.end);
            let next = parsed.documents.get(next);
            next.is_none_or(|document| document.span.start > range.start)
        }));
    }
    source.hide(hidden);
}

/// The hidden parts of `node`, a value of `schema`.
fn find_secrets(text: &str, node: &Node, quality: TextState, schema: &Json) -> Vec<Range<usize>> {
    let is_layered = schema["properties"].get("uses").is_some();
    let (open, hidden) = (OnceCell::new(), Vec::new());
    let mut walk = MaskWalk {
        text,
        quality,
        schema,
        open_names: open,
        is_layered,
        is_misplaced: false,
        hidden,
    };
    walk.visit(node, node.span.start, schema);
    walk.hidden
}

/// Collects hidden parts.
struct MaskWalk<'t> {
    text: &'t str,
    quality: TextState,
    /// The schema of the document.
    schema: &'t Json,
    /// The names of fields that are shown anywhere. Computed when the first field is in a wrong
    /// place.
    open_names: OnceCell<BTreeSet<String>>,
    /// Whether templates and changes of lists are allowed.
    is_layered: bool,
    /// Whether the walk is below a field in a wrong place, where a name that is open here may be secret.
    is_misplaced: bool,
    hidden: Vec<Range<usize>>,
}

impl MaskWalk<'_> {
    /// Adds the hidden parts of `node`, whose key ends at the byte `key_end`.
    fn visit(&mut self, node: &Node, key_end: usize, schema: &Json) {
        let text = self.text;
        if is_credential(node) {
            return self.hidden.push(with_properties(text, &node.span));
        }
        match &node.data {
            NodeValue::Map(_)
                if self.is_layered
                    && let Some(forms) = templates::form_values(node, schema) =>
            {
                forms.for_each(|(after, value)| self.visit(value, after, schema));
            }
            NodeValue::Map(entries) => {
                entries.iter().for_each(|(key, value)| self.visit_entry(key, value, schema));
            }
            NodeValue::List(items) => {
                // A list in place of another value: its items are judged by the schema of that
                // value.
                let schema = schema.get("items").unwrap_or(schema);
                items.iter().for_each(|item| self.visit(item, item.span.start, schema));
            }
            NodeValue::Unreadable if text.get(node.span.clone()).is_some_and(is_numeric) => {}
            NodeValue::Null | NodeValue::Bool(_) => {
                self.hidden.push(properties_start(text, node.span.start)..node.span.start);
            }
            data if *data != NodeValue::Unreadable
                && (takes_scalars(schema) || !may_be_secret(schema)) =>
            {
                self.hide_other_lines(node, key_end);
            }
            _ => self.hidden.push(with_properties(text, &node.span)),
        }
    }

    fn shown_names(&self) -> &BTreeSet<String> {
        self.open_names.get_or_init(|| open_names(&[self.schema]))
    }

    fn visit_entry(&mut self, key: &MappingKey, value: &Node, schema: &Json) {
        let snake_name = text::snake_case(&key.name);
        let properties = &schema["properties"];
        let property = properties.get(&key.name).or_else(|| properties.get(&snake_name));
        // Of values below names that are free, only mappings are known.
        let free = schema.get("additionalProperties").filter(|free| free.is_object());
        let property = property.or(free.filter(|free| free.get("properties").is_some()));
        match property.map(|property| (property, Field::from_schema(property).secrecy())) {
            Some((property, Secrecy::Open))
                if !self.is_misplaced || self.shown_names().contains(&key.name) =>
            {
                self.visit(value, key.span.end, property);
            }
            Some((_, Secrecy::Address)) if !is_credential(value) => {
                self.hide_address(key.span.end, value);
            }
            // An unknown field, or one in a wrong place whose value is valid for the right place. `true` is
            // never a secret.
            None if free.is_none()
                && (self.is_harmless_unknown(key, value, schema)
                    || is_plain_scalar(value)
                        && schema.get("properties").is_some()
                        && (self.shown_names().contains(&key.name)
                            || matches!(value.data, NodeValue::Null | NodeValue::Bool(_)))) =>
            {
                self.hidden.push(properties_start(self.text, value.span.start)..value.span.start);
                match &value.data {
                    NodeValue::List(items) => {
                        items.iter().for_each(|item| self.hide_other_lines(item, item.span.start));
                    }
                    _ => self.hide_other_lines(value, key.span.end),
                }
            }
            // A list or mapping in a wrong place.
            None if matches!(
                value.data,
                NodeValue::Map(_) | NodeValue::List(_) | NodeValue::Unreadable
            ) && self.shown_names().contains(&key.name)
                && let Some(property) = find_property(self.schema, &key.name) =>
            {
                let outer = std::mem::replace(&mut self.is_misplaced, true);
                self.visit(value, key.span.end, property);
                self.is_misplaced = outer;
            }
            None if key.name == MERGE_KEY && is_alias(self.text, key.span.end, &value.span) => {}
            _ => {
                self.hidden.push(value_range(self.text, key.span.end, &value.span));
                self.hidden.extend((!is_name(&key.name)).then(|| key.span.clone()));
            }
        }
    }

    /// True if an unknown key with its value is shown: nothing in the mapping can hold a secret, or it
    /// resembles only one field, which cannot.
    fn is_harmless_unknown(&self, key: &MappingKey, value: &Node, schema: &Json) -> bool {
        let Some(properties) = schema["properties"].as_object() else { return false };
        let is_shown = match &value.data {
            NodeValue::List(items) => items.iter().all(is_plain_scalar),
            _ => is_plain_scalar(value),
        };
        if !is_shown || !is_name(&key.name) || judge::is_named_like_secret(&key.name) {
            return false;
        }
        let names: Vec<_> = properties.keys().map(String::as_str).collect();
        let likely = text::likely_candidates(&key.name, &names);
        if !likely.is_empty() {
            return likely.iter().all(|name| !may_be_secret(&properties[*name]));
        }
        !may_be_secret(schema) && text::nearest(&key.name, SECRET_NAMES).is_none()
    }

    /// Adds possible credentials in a URL, or in a text that should be a URL.
    fn hide_address(&mut self, key_end: usize, value: &Node) {
        let range = value_range(self.text, key_end, &value.span);
        if range.start == value.span.start
            && let NodeValue::List(items) = &value.data
        {
            return items.iter().for_each(|item| self.hide_address(item.span.start, item));
        }
        let quoted = self.text.get(range.clone()).unwrap_or_default();
        let quote = quoted.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let inner =
            quote.map_or(quoted, |quote| quoted.trim_start_matches(quote).trim_end_matches(quote));
        let start = range.start + (quoted.len() - inner.len()) / 2;
        match judge::address_secrets(inner).filter(|_| value.text() == Some(inner)) {
            Some(secrets) => self
                .hidden
                .extend(secrets.into_iter().map(|secret| start + secret.start..start + secret.end)),
            None => self.hidden.push(range),
        }
    }

    /// Adds the parts on other lines than the key. They may contain anything, because quotes and
    /// indentation are often wrong.
    fn hide_other_lines(&mut self, node: &Node, key_end: usize) {
        if self.quality == TextState::Loaded
            && !node.text().is_some_and(|text| judge::may_be_secret(text, Secrecy::Sensitive))
        {
            return;
        }
        let Some(value) = self.text.get(key_end..node.span.end) else { return };
        // A block text ends at the next token, after the indentation of another line.
        if let Some(length) = value.find('\n') {
            let start = (key_end + length).max(node.span.start);
            self.hidden.push(start..key_end + value.trim_end().len());
        }
    }
}

/// True if it is a scalar without a credential.
fn is_plain_scalar(node: &Node) -> bool {
    !matches!(node.data, NodeValue::Map(_) | NodeValue::List(_) | NodeValue::Unreadable)
        && !is_credential(node)
}

/// True if it certainly is or contains a credential. A credential at its place in a URL is hidden
/// without the rest of the URL.
fn is_credential(node: &Node) -> bool {
    node.text().and_then(judge::find_credential).is_some_and(|what| what != Credential::Password)
}

/// The value of a key that ends at `key_end`, from the colon on: a secret that begins with `&` or
/// `!` looks like an anchor or tag.
fn value_range(text: &str, key_end: usize, value: &Range<usize>) -> Range<usize> {
    let after_key = text.get(key_end..value.end).unwrap_or_default();
    let rest = after_key.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
    // A collection in block style ends at the next token.
    let start = value.end - rest.len();
    start..start + rest.trim_end().len()
}

/// A part of the text that is in no tree, with the anchor and tag before it.
fn dropped_range(text: &str, range: &Range<usize>) -> Range<usize> {
    with_properties(text, &value_range(text, range.start, range))
}

/// A value with its anchor and tag.
fn with_properties(text: &str, value: &Range<usize>) -> Range<usize> {
    let start = properties_start(text, value.start);
    start..start + text.get(start..value.end).unwrap_or_default().trim_end().len()
}

/// The start of the anchor and tag of a value.
fn properties_start(text: &str, value_start: usize) -> usize {
    let mut start = value_start;
    while let Some(before) =
        text.get(..start).map(|before| before.trim_end_matches([' ', '\t', '\n', '\r']))
        && let Some(word) = before.rsplit(|c: char| c.is_whitespace() || "[{,".contains(c)).next()
        && word.starts_with(['&', '!'])
    {
        start = before.len() - word.len();
    }
    start
}

/// True if a value of `schema` may contain a secret: a sensitive field, or an unknown field.
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

/// True if `schema` is one of scalars or of a list of scalars. A scalar instead of a mapping may be
/// anything.
fn takes_scalars(schema: &Json) -> bool {
    let mut types = texts(&schema["type"]);
    schema.get("type").is_none()
        || schema["items"]["type"].is_string() && takes_scalars(&schema["items"])
        || types.any(|kind| !matches!(kind, "array" | "object" | "null"))
}

/// The first field of this name in `schema` at any depth.
fn find_property<'j>(schema: &'j Json, name: &str) -> Option<&'j Json> {
    let properties = schema["properties"].as_object();
    let mut inner = properties.into_iter().flat_map(|all| all.values()).chain(schema.get("items"));
    let own_property = properties.and_then(|all| all.get(name));
    own_property.or_else(|| inner.find_map(|inner| find_property(inner, name)))
}

/// True if the value of a key that ends at `key_end` is only the name of an anchor.
fn is_alias(text: &str, key_end: usize, value: &Range<usize>) -> bool {
    let value = text.get(value_range(text, key_end, value)).unwrap_or_default();
    value.strip_prefix('*').is_some_and(is_name)
}

/// True if `text` may be a number, infinity or not-a-number.
fn is_numeric(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || "+-.einfaEINFA".contains(c))
}

/// The names of fields that are shown anywhere: they are in one of `schemas`, and secret in none.
fn open_names(schemas: &[&Json]) -> BTreeSet<String> {
    let (mut open, mut secret) = (BTreeSet::new(), BTreeSet::new());
    for schema in schemas {
        collect_names(schema, &mut open, &mut secret);
    }
    open.difference(&secret).cloned().collect()
}

fn collect_names(schema: &Json, open: &mut BTreeSet<String>, secret: &mut BTreeSet<String>) {
    for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten()
    {
        let is_open = Field::from_schema(property).secrecy() == Secrecy::Open && name != "extra";
        if is_open { &mut *open } else { &mut *secret }.insert(name.clone());
        if is_open {
            collect_names(property, open, secret);
        }
    }
    if let Some(items) = schema.get("items") {
        collect_names(items, open, secret);
    }
}

#[cfg(test)]
mod tests;
