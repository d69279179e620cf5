//! Which parts of a manifest must not be shown.
//!
//! With a tree, a value is shown only if its schema knows it and does not call it secret, whatever
//! its type: whoever writes `5MB` in the place of a number wants to see it. A misspelt key may hold
//! anything. Without a tree, after broken syntax, a word is shown only if it stands on one line
//! behind a key that is known to be harmless.

use std::{cell::OnceCell, collections::BTreeSet, ops::Range};

use super::read::templates;
use crate::{
    diagnostic::Source,
    field::{Field, Secrecy},
    secret::looks,
    text::{self, is_name},
    value::Json,
    yaml::{Data, Key, Node, Parsed},
};

mod lexer;

use lexer::without_tree;

/// Tells `source` what must not be shown of it. `schema` is that of a document; of what is in none,
/// only values of fields are shown that `known` knows and that are secret in none of them.
pub(super) fn hide(
    source: &mut Source<'_>,
    parsed: &Parsed,
    schema: impl Fn(&Node) -> &'static Json,
    known: &[&Json],
) {
    let text = source.text();
    let mut hidden: Vec<_> = parsed.dropped.iter().map(|range| dropped(text, range)).collect();
    for document in &parsed.documents {
        hidden.extend(secrets(text, document, schema(document)));
    }
    if parsed.is_broken {
        let is_read = |range: &Range<usize>| {
            let next = parsed.documents.partition_point(|document| document.span.end < range.end);
            parsed.documents.get(next).is_some_and(|document| document.span.start <= range.start)
        };
        let unread = without_tree(text, &open_names(known));
        hidden.extend(unread.into_iter().filter(|range| !is_read(range)));
    }
    source.hide(hidden);
}

/// The parts of `node`, a value of `schema`, that must not be shown.
fn secrets(text: &str, node: &Node, schema: &Json) -> Vec<Range<usize>> {
    let is_layered = schema["properties"].get("uses").is_some();
    let mut walk = Walk { text, schema, open: OnceCell::new(), is_layered, hidden: Vec::new() };
    walk.node(node, node.span.start, schema);
    walk.hidden
}

/// Collects what is secret.
struct Walk<'t> {
    text: &'t str,
    /// What the document holds.
    schema: &'t Json,
    /// The names of the fields that are shown wherever they stand, once one stands in the wrong place.
    open: OnceCell<BTreeSet<String>>,
    /// Whether something else may stand instead of a value.
    is_layered: bool,
    hidden: Vec<Range<usize>>,
}

impl Walk<'_> {
    /// Adds what is secret of `node`, whose key ends at the byte `after`.
    fn node(&mut self, node: &Node, after: usize, schema: &Json) {
        let text = self.text;
        if is_credential(node) {
            return self.hidden.push(whole(text, &node.span));
        }
        match &node.data {
            Data::Map(_) if self.is_layered && templates::within(node, schema).is_some() => {
                for (after, value) in templates::within(node, schema).into_iter().flatten() {
                    self.node(value, after, schema);
                }
            }
            Data::Map(entries) => {
                for (key, value) in entries {
                    self.entry(key, value, schema);
                }
            }
            Data::List(items) => {
                for item in items {
                    match schema.get("items") {
                        Some(schema) => self.node(item, item.span.start, schema),
                        None => self.hidden.push(whole(text, &item.span)),
                    }
                }
            }
            Data::Unreadable if text.get(node.span.clone()).is_some_and(is_numeric) => {}
            Data::Null | Data::Bool(_) => {
                self.hidden.push(properties_start(text, node.span.start)..node.span.start);
            }
            data if *data != Data::Unreadable && takes_scalars(schema) => {
                self.rest_of_lines(node, after);
            }
            _ => self.hidden.push(whole(text, &node.span)),
        }
    }

    fn open(&self) -> &BTreeSet<String> {
        self.open.get_or_init(|| open_names(&[self.schema]))
    }

    fn entry(&mut self, key: &Key, value: &Node, schema: &Json) {
        let property = schema.get("properties").and_then(|properties| properties.get(&key.name));
        let is_scalar = !matches!(value.data, Data::Map(_) | Data::List(_) | Data::Unreadable);
        match property.map(|property| (property, Field::of(property).secrecy)) {
            Some((property, Secrecy::Open)) => self.node(value, key.span.end, property),
            Some((_, Secrecy::Address)) if !is_credential(value) => {
                self.address(key.span.end, value);
            }
            // In the wrong place, but the value is what it would be in the right one; and no secret
            // is `true`.
            None if is_scalar
                && !is_credential(value)
                && schema.get("properties").is_some()
                && (self.open().contains(&key.name)
                    || matches!(value.data, Data::Null | Data::Bool(_))) =>
            {
                self.hidden.push(properties_start(self.text, value.span.start)..value.span.start);
                self.rest_of_lines(value, key.span.end);
            }
            _ => {
                self.hidden.push(value_of(self.text, key.span.end, &value.span));
                self.hidden.extend((!is_name(&key.name)).then(|| key.span.clone()));
            }
        }
    }

    /// Adds what may be a credential in a URL, or in what was meant as one.
    fn address(&mut self, after: usize, value: &Node) {
        if let (Data::List(items), true) =
            (&value.data, value_of(self.text, after, &value.span).start == value.span.start)
        {
            for item in items {
                self.address(item.span.start, item);
            }
            return;
        }
        let range = value_of(self.text, after, &value.span);
        let written = self.text.get(range.clone()).unwrap_or_default();
        let quote = written.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let inner = quote
            .map_or(written, |quote| written.trim_start_matches(quote).trim_end_matches(quote));
        let start = range.start + (written.len() - inner.len()) / 2;
        match text::address_secrets(inner).filter(|_| value.text() == Some(inner)) {
            Some(secrets) => self
                .hidden
                .extend(secrets.into_iter().map(|secret| start + secret.start..start + secret.end)),
            None => self.hidden.push(range),
        }
    }

    /// Adds what stands on other lines than the key: there may be anything, since a quote or an
    /// indentation slips easily.
    fn rest_of_lines(&mut self, node: &Node, after: usize) {
        let line_end = self
            .text
            .get(after..)
            .and_then(|rest| rest.find('\n'))
            .map_or(self.text.len(), |length| after + length);
        self.hidden.extend(
            (line_end < node.span.end).then(|| line_end.max(node.span.start)..node.span.end),
        );
    }
}

/// Whether it certainly is, or has in it, a credential, wherever it stands. What is one in a URL by
/// its place there is hidden without the rest of that.
fn is_credential(node: &Node) -> bool {
    node.text().and_then(looks::credential).is_some_and(|what| what != looks::PASSWORD)
}

/// The value of a key that ends at `key_end`, from the colon on: an anchor or a tag before the
/// value may be a secret that begins with `&` or `!`.
fn value_of(text: &str, key_end: usize, value: &Range<usize>) -> Range<usize> {
    let whole = text.get(key_end..value.end).unwrap_or_default();
    let rest = whole.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
    // A collection in block style reaches to what follows it.
    let start = value.end - rest.len();
    start..start + rest.trim_end().len()
}

/// Part of the text that is in no tree, with the anchor and the tag in front of it.
fn dropped(text: &str, range: &Range<usize>) -> Range<usize> {
    whole(text, &value_of(text, range.start, range))
}

/// A value with its anchor and its tag.
fn whole(text: &str, value: &Range<usize>) -> Range<usize> {
    let start = properties_start(text, value.start);
    start..start + text.get(start..value.end).unwrap_or_default().trim_end().len()
}

/// Where the anchor and the tag of a value begin.
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

/// Whether `schema` is one of scalars, or of a list of them. A scalar in the place of a mapping may
/// be anything.
fn takes_scalars(schema: &Json) -> bool {
    let types: Vec<_> = match &schema["type"] {
        Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
        Json::String(one) => vec![one.as_str()],
        _ => return true,
    };
    let is_list = types.contains(&"array") && schema["items"]["type"].is_string();
    (is_list && takes_scalars(&schema["items"]))
        || types.iter().any(|kind| !matches!(*kind, "array" | "object" | "null"))
}

/// Whether `text` may be a number, infinity or not-a-number.
fn is_numeric(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || "+-.einfaEINFA".contains(c))
}

/// The names of the fields that are shown wherever they stand: known to one of `schemas`, and secret
/// in none.
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
        let is_open = Field::of(property).secrecy == Secrecy::Open && name != "extra";
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
