//! Which parts of a manifest must not be shown.
//!
//! With a tree, a value is shown only if its schema knows it and does not call it secret, whatever
//! its type: whoever writes `5MB` in the place of a number wants to see it. A misspelt key may hold
//! anything. Without a tree, after broken syntax, a word is shown only if it stands on one line
//! behind a key that is known to be harmless.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    field::{Field, Secrecy},
    text::{self, is_name},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The parts of `node`, a value of `schema`, that must not be shown.
pub(super) fn secrets(text: &str, node: &Node, schema: &Json) -> Vec<Range<usize>> {
    let mut walk = Walk { text, open: open_names(schema), hidden: Vec::new() };
    walk.node(node, node.span.start, schema);
    walk.hidden
}

/// Collects what is secret.
struct Walk<'t> {
    text: &'t str,
    /// The names of the fields that are shown wherever they stand.
    open: BTreeSet<String>,
    hidden: Vec<Range<usize>>,
}

impl Walk<'_> {
    /// Adds what is secret of `node`, whose key ends at the byte `after`.
    fn node(&mut self, node: &Node, after: usize, schema: &Json) {
        let text = self.text;
        match &node.data {
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

    fn entry(&mut self, key: &Key, value: &Node, schema: &Json) {
        let property = schema.get("properties").and_then(|properties| properties.get(&key.name));
        let is_scalar = !matches!(value.data, Data::Map(_) | Data::List(_) | Data::Unreadable);
        match property.map(|property| (property, Field::of(property).secrecy)) {
            Some((property, Secrecy::Open)) => self.node(value, key.span.end, property),
            Some((_, Secrecy::Address)) => self.address(key.span.end, value),
            // In the wrong place, but the value is what it would be in the right one; and no secret
            // is `true`.
            None if is_scalar
                && schema.get("properties").is_some()
                && (self.open.contains(&key.name)
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
pub(super) fn dropped(text: &str, range: &Range<usize>) -> Range<usize> {
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

/// The names of the fields that are shown wherever they stand: known to `schema`, and secret
/// nowhere in it.
pub(super) fn open_names(schema: &Json) -> BTreeSet<String> {
    let (mut open, mut secret) = (BTreeSet::new(), BTreeSet::new());
    collect_names(schema, &mut open, &mut secret);
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

/// What must not be shown of a text that could not be read, where values of the keys `open` are
/// harmless.
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
    fn hide(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.hidden.push(range);
        }
    }

    /// Reads a line that begins at the byte `start`.
    fn line(&mut self, line: &str, start: usize) {
        let (line, start) = line
            .strip_prefix('\u{feff}')
            .map_or((line, start), |rest| (rest, start + line.len() - rest.len()));
        if line == "---" || line.starts_with("--- ") {
            self.parents.clear();
            self.is_lost = false;
        }
        let markers = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
        self.parents.retain(|(column, _)| *column < markers);
        if self.is_lost || self.parents.iter().any(|(_, is_open)| !is_open) {
            // The markers may belong to a text too.
            self.hide(start + (line.len() - line.trim_start().len())..start + line.len());
            return;
        }
        if let Some(from) = self.certain(&line[markers..], markers) {
            self.hide(start + markers + from..start + line.len());
            return;
        }
        let (flow, depth) = self.flow(&line[markers..], start + markers);
        if let Some(from) = flow {
            self.hide(from..start + line.len());
        }
        self.is_lost |= depth > 0;
    }

    /// Reads a line of the form `key: value` or `key:`. The byte from which it must not be shown,
    /// if that is clear.
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

    /// Reads brackets, keys and words. The byte from which nothing is certain, and how many
    /// brackets are still open.
    fn flow(&mut self, content: &str, start: usize) -> (Option<usize>, usize) {
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(c) = content[at..].chars().next() {
            let rest = &content[at..];
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                ' ' | '\t' | ',' => {}
                _ => {
                    let Some((key, value)) = split_key(rest) else {
                        return (Some(start + at), depth);
                    };
                    let value_at = content.len() - value.trim_start().len();
                    let value = &content[value_at..];
                    let length =
                        value.find([',', '}', ']']).filter(|_| depth > 0).unwrap_or(value.len());
                    match (self.open.contains(key), value.starts_with(['{', '['])) {
                        (true, true) => at = value_at,
                        (true, false) if is_word(&value[..length]) => at = value_at + length,
                        (false, false) if is_word(&value[..length]) => {
                            self.hide(start + value_at..start + value_at + length);
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
    let length =
        content.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let rest = content[length..].strip_prefix(':')?;
    (length > 0 && (rest.is_empty() || rest.starts_with([' ', '\t'])))
        .then_some((&content[..length], rest))
}

/// Whether `value` is nothing but a word, or several.
fn is_word(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || " _-./*".contains(c))
}

/// Whether a quote or a bracket that `value` begins with may end on another line.
fn is_unclosed(value: &str) -> bool {
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            value.len() < 2
                || !value.ends_with(quote)
                || value[1..value.len() - 1].contains([quote, '\\'])
        }
        Some('{' | '[') => {
            let count = |bracket: [char; 2]| value.matches(bracket).count();
            count(['{', '[']) != count(['}', ']']) || value.contains(['"', '\''])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::mask_ranges;

    /// What is shown of a text that could not be read.
    fn shown(text: &str) -> String {
        let open = ["key", "path", "variables", "settings", "masked", "description"]
            .map(str::to_owned)
            .into();
        mask_ranges(text, &without_tree(text, &open)).into_owned()
    }

    #[test]
    fn without_a_tree_only_harmless_words_are_shown() {
        for (text, left) in [
            ("path: acme/shop\n", "path: acme/shop\n"),
            (
                "\u{feff}path: acme/shop\r\nvalue: s\r\n",
                "\u{feff}path: acme/shop\r\nvalue: ***\r\n",
            ),
            ("value: s", "value: ***"),
            ("tokne: s", "tokne: ***"),
            ("- {key: A, value: s, masked: yes", "- {key: A, value: ***, masked: yes"),
            ("- {key: A, value: \"s, masked: yes", "- {key: A, value: ***"),
            ("- {key: A, value: [s, s], masked: yes}", "- {key: A, value: ***"),
            ("description: a, 's'", "description: ***"),
            ("variables: [{key: A, value: s}, s]", "variables: [{key: A, value: ***}, ***"),
            ("value: |\n  path: s\n  s\npath: a", "value: ***\n  ***\n  ***\npath: a"),
            ("description: |\n  path: s\n", "description: ***\n  ***\n"),
            ("value:\n  path: s\n  - s\n", "value:\n  ***\n  ***\n"),
            ("value:\n- path: s\n- s\nkey: A", "value:\n***\n***\nkey: A"),
            ("value: \"s\n  s\npath: s\n---\npath: a", "value: ***\n  ***\n***\n---\npath: a"),
            ("value: 's'\npath: a", "value: ***\npath: a"),
            ("value: {env: s}\npath: a", "value: ***\npath: a"),
            ("variables: [\npath: s\n", "variables: [\n***\n"),
            ("s\n", "***\n"),
            ("path: a # s", "path: ***"),
            ("path: &s a", "path: ***"),
            ("? s", "***"),
        ] {
            assert_eq!(shown(text), left, "{text}");
        }
    }

    #[test]
    fn with_a_tree_what_the_schema_calls_open_is_shown() {
        let secret = json!({"type": "string", "x-undrift": {"secrecy": "sensitive"}});
        let item = json!({"type": "object", "properties": {"key": {"type": "string"}, "on": {"type": "boolean"}, "value": secret}});
        let schema = json!({"type": "object", "properties": {
            "list": {"type": "array", "items": item},
            "words": {"type": "array", "items": {"type": "string"}},
            "inner": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }});
        for (text, left) in [
            ("list: [{key: A, value: s, on: true}]", "list: [{key: A, value: ***, on: true}]"),
            ("list: [{key: A, vlaue: {s: s}}]", "list: [{key: A, vlaue: ***}]"),
            ("list: [{value: &s t, key: A}]", "list: [{value: ***, key: A}]"),
            ("list: [{value: !s t, key: A}]", "list: [{value: ***, key: A}]"),
            ("list: [{value: &s , key: A}]", "list: [{value: *** , key: A}]"),
            ("list: [{'s s': s, key: A}]", "list: [{***: ***, key: A}]"),
            ("list: [&s s, s, [s]]", "list: [***, ***, [***]]"),
            ("list: {a: s}", "list: {a: ***}"),
            ("list: &s", "list: ***"),
            ("list: s", "list: ***"),
            ("words: [a, \"b\n  s\"]", "words: [a, \"b***]"),
            ("words:\n  - a\n  -\n    b\n", "words:\n  - a\n  -\n    b\n"),
            ("inner:\n  n:\n    3\n", "inner:\n  n:\n    ***\n"),
            ("list: null", "list: null"),
            ("words: [a, {s: s}]", "words: [a, {s: ***}]"),
            ("words: a", "words: a"),
            ("inner: {n: 5MB}", "inner: {n: 5MB}"),
            ("on: maybe", "on: maybe"),
            ("other: true", "other: true"),
            ("other: &s true", "other: ***true"),
            ("inner: {n: '12', m: s}", "inner: {n: '12', m: ***}"),
            ("inner: {n: !s x}", "inner: {n: ***}"),
            ("other:\n  - s\n  - s\ninner: {}", "other:\n  ***\ninner: {}"),
            ("s", "***"),
        ] {
            let parsed = crate::yaml::parse(text);
            let mut hidden = secrets(text, &parsed.documents[0], &schema);
            hidden.retain(|range| !range.is_empty());
            hidden.sort_by_key(|range| range.start);
            assert_eq!(mask_ranges(text, &hidden), left, "{text}");
        }
    }
}
