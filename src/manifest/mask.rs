//! Which parts of a manifest must not be shown.
//!
//! With a tree, a value is shown only if its schema knows it and does not call it secret: a misspelt key may hold anything. Without a
//! tree, after broken syntax, a word is shown only if it stands on one line behind a key that is known to be harmless.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    field::{Field, Secrecy},
    value::Json,
    yaml::{Data, Node},
};

/// The parts of `node`, a value of `schema`, that must not be shown.
pub(super) fn secrets(text: &str, node: &Node, schema: &Json) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    walk(text, node, schema, &mut hidden);
    hidden
}

fn walk(text: &str, node: &Node, schema: &Json, hidden: &mut Vec<Range<usize>>) {
    match &node.data {
        Data::Map(entries) => {
            for (key, value) in entries {
                match schema.get("properties").and_then(|properties| properties.get(&key.name)) {
                    Some(property) if Field::of(property).secrecy == Secrecy::Open => walk(text, value, property, hidden),
                    // From the colon on: an anchor or a tag before the value may be a secret that begins with `&` or `!`.
                    _ => hidden.push(value_start(text, key.span.end, value.span.start)..value.span.end.max(key.span.end)),
                }
            }
        }
        Data::List(items) => {
            for item in items {
                match schema.get("items") {
                    Some(schema) => walk(text, item, schema, hidden),
                    None => hidden.push(item.span.clone()),
                }
            }
        }
        Data::Unreadable if text.get(node.span.clone()).is_some_and(|text| text.chars().all(is_numeric)) => {}
        Data::Unreadable => hidden.push(properties_start(text, node.span.start)..node.span.end),
        Data::Null | Data::Bool(_) => hidden.push(properties_start(text, node.span.start)..node.span.start),
        data if takes(schema, data) => {}
        _ => hidden.push(properties_start(text, node.span.start)..node.span.end),
    }
}

/// Where the value of a key begins that ends at `key_end`. A value that was merged in from elsewhere begins where it begins.
fn value_start(text: &str, key_end: usize, value_start: usize) -> usize {
    let between = text.get(key_end..value_start).unwrap_or_default();
    let rest = between.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ':'));
    value_start - rest.len()
}

/// Where the anchor and the tag of a value begin.
fn properties_start(text: &str, value_start: usize) -> usize {
    let mut start = value_start;
    while let Some(before) = text.get(..start).map(|before| before.trim_end_matches([' ', '\t', '\n', '\r']))
        && let Some(word) = before.rsplit(|c: char| c.is_whitespace() || "[{,".contains(c)).next()
        && word.starts_with(['&', '!'])
    {
        start = before.len() - word.len();
    }
    start
}

/// Whether `schema` may be meant for this scalar. A word in the place of a boolean or of a number is shown if it stands for one.
fn takes(schema: &Json, data: &Data) -> bool {
    let types = match &schema["type"] {
        Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
        Json::String(one) => vec![one.as_str()],
        _ => return true,
    };
    // A word in the place of a list of words is a slip, not a secret.
    if types.contains(&"array") && schema["items"]["type"].is_string() {
        return takes(&schema["items"], data);
    }
    let takes = |wanted: &[&str]| types.iter().any(|kind| wanted.contains(kind));
    match data {
        Data::Text(text) if is_spelt_out(text) => takes(&["string", "boolean", "integer", "number"]),
        Data::Text(_) => takes(&["string"]),
        _ => takes(&["string", "boolean", "integer", "number"]),
    }
}

/// Whether `c` may be in a number, infinity or not-a-number.
fn is_numeric(c: char) -> bool {
    c.is_ascii_digit() || "+-.einfaEINFA".contains(c)
}

/// Whether a text is a number, or a word that some readers of YAML take for a boolean.
fn is_spelt_out(text: &str) -> bool {
    super::faults::yes_or_no(text).is_some() || text.parse::<f64>().is_ok()
}

/// The names of the fields that are shown wherever they stand: known to `schema`, and secret nowhere in it.
pub(super) fn open_names(schema: &Json) -> BTreeSet<String> {
    let (mut open, mut secret) = (BTreeSet::new(), BTreeSet::new());
    collect_names(schema, &mut open, &mut secret);
    open.difference(&secret).cloned().collect()
}

fn collect_names(schema: &Json, open: &mut BTreeSet<String>, secret: &mut BTreeSet<String>) {
    for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
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

/// What must not be shown of a text that could not be read, where values of the keys `open` are harmless.
pub(super) fn without_tree(text: &str, open: &BTreeSet<String>) -> Vec<Range<usize>> {
    let mut lexer = Lexer { open, parents: Vec::new(), is_lost: false, hidden: Vec::new() };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lexer.line(line.trim_end(), at);
        at += line.len();
    }
    lexer.hidden
}

/// Reads lines one by one, and gives up on what it is not sure of.
struct Lexer<'o> {
    open: &'o BTreeSet<String>,
    /// The keys that the line stands below: their column, and whether what is below them is shown.
    parents: Vec<(usize, bool)>,
    /// Whether a bracket or a quote is open, so that nothing is certain until the next document.
    is_lost: bool,
    hidden: Vec<Range<usize>>,
}

impl Lexer<'_> {
    /// Reads a line that begins at the byte `start`.
    fn line(&mut self, line: &str, start: usize) {
        let (line, start) = line.strip_prefix('\u{feff}').map_or((line, start), |rest| (rest, start + line.len() - rest.len()));
        if line == "---" || line.starts_with("--- ") {
            self.parents.clear();
            self.is_lost = false;
        }
        let markers = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
        self.parents.retain(|(column, _)| *column < markers);
        if self.is_lost || self.parents.iter().any(|(_, is_open)| !is_open) {
            // The markers may belong to a text too.
            self.hidden.push(start + (line.len() - line.trim_start().len())..start + line.len());
            return;
        }
        if let Some(from) = self.certain(&line[markers..], markers) {
            self.hidden.push(start + markers + from..start + line.len());
            return;
        }
        let (flow, depth) = self.flow(&line[markers..], start + markers);
        if let Some(from) = flow {
            self.hidden.push(from..start + line.len());
        }
        self.is_lost |= depth > 0;
    }

    /// Reads a line of the form `key: value` or `key:`. The byte from which it must not be shown, if that is clear.
    fn certain(&mut self, content: &str, column: usize) -> Option<usize> {
        let (key, rest) = split_key(content)?;
        let value = rest.trim_start();
        let is_open = self.open.contains(key);
        self.parents.push((column, is_open && !value.starts_with(['|', '>'])));
        let from = content.len() - value.len();
        if is_open && (is_word(value) || value.starts_with(['{', '['])) {
            return None;
        }
        self.is_lost |= is_unclosed(value);
        Some(from)
    }

    /// Reads brackets, keys and words. The byte from which nothing is certain, and how many brackets are still open.
    fn flow(&mut self, content: &str, start: usize) -> (Option<usize>, usize) {
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(c) = content[at..].chars().next() {
            let rest = &content[at..];
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                ' ' | '\t' | ',' => {}
                _ => {
                    let Some((key, value)) = split_key(rest) else { return (Some(start + at), depth) };
                    let value_at = content.len() - value.trim_start().len();
                    let value = &content[value_at..];
                    let length = value.find([',', '}', ']']).filter(|_| depth > 0).unwrap_or(value.len());
                    match (self.open.contains(key), value.starts_with(['{', '['])) {
                        (true, true) => at = value_at,
                        (true, false) if is_word(&value[..length]) => at = value_at + length,
                        (false, false) if is_word(&value[..length]) => {
                            self.hidden.push(start + value_at..start + value_at + length);
                            at = value_at + length;
                        }
                        _ => {
                            self.is_lost |= is_unclosed(value);
                            return (Some(start + value_at), depth);
                        }
                    }
                    continue;
                }
            }
            at += c.len_utf8();
        }
        (None, depth)
    }
}

/// A key in front of a colon, and what follows it.
fn split_key(content: &str) -> Option<(&str, &str)> {
    let length = content.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let rest = content[length..].strip_prefix(':')?;
    (length > 0 && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some((&content[..length], rest))
}

/// Whether `value` is nothing but a word, or several.
fn is_word(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || " _-./*".contains(c))
}

/// Whether a quote or a bracket that `value` begins with may end on another line.
fn is_unclosed(value: &str) -> bool {
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value.len() < 2 || !value.ends_with(quote) || value[1..value.len() - 1].contains([quote, '\\']),
        Some('{' | '[') => {
            let count = |bracket: [char; 2]| value.matches(bracket).count();
            count(['{', '[']) != count(['}', ']']) || value.contains(['"', '\''])
        }
        _ => false,
    }
}
