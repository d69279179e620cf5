//! A position in a manifest, without its text.

use std::{collections::HashMap, ops::Range};

use crate::{
    diagnostic::Source,
    origin::Origin,
    steps,
    yaml::{Data, Key, Node, Parsed},
};

/// A position that can be found again in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) struct Spot {
    /// The position of the key, or of the value if it has no key.
    pub(in crate::manifest) origin: Origin,
    pub(in crate::manifest) part: Part,
}

/// The part of a key and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) enum Part {
    /// The key.
    Key,
    /// The value, or the key if the value is not a scalar.
    Value,
    /// A key within the value: the names that lead to it.
    Inner(Vec<String>),
    /// The value of such a key, also in a row of a list, or the item that is this text.
    Within(&'static str),
    /// The first item of the value, or the first one in a row of it, that is this text; the key if there
    /// is none, as in a template.
    Item(String),
}

impl Spot {
    /// The key at `origin`.
    pub(in crate::manifest) fn key(origin: &Origin) -> Self {
        Self { origin: origin.clone(), part: Part::Key }
    }

    /// The value of the key at `origin`.
    pub(in crate::manifest) fn value(origin: &Origin) -> Self {
        Self { origin: origin.clone(), part: Part::Value }
    }

    /// The item `text` of the value of the key at `origin`.
    pub(in crate::manifest) fn item(origin: &Origin, text: &str) -> Self {
        Self { origin: origin.clone(), part: Part::Item(text.to_owned()) }
    }

    /// The range in a text with the positions `written`.
    pub(in crate::manifest) fn find(
        &self,
        source: &Source<'_>,
        written: &Written<'_>,
    ) -> Range<usize> {
        let at = source.offset(self.origin.line, self.origin.column);
        let Some((key, value)) = written.keys.get(&at).copied() else {
            return written.nodes.get(&at).map_or(at..at, |node| node.span.clone());
        };
        match &self.part {
            Part::Key => key.span.clone(),
            Part::Value => visible(key, value),
            Part::Inner(names) => {
                let inner = names.iter().try_fold((key, value), |(_, value), name| value.get(name));
                inner.unwrap_or((key, value)).0.span.clone()
            }
            Part::Within(name) => {
                let of_row = || value.items().iter().find_map(|row| row.get(name));
                match value.get(name).or_else(of_row) {
                    Some((key, value)) => visible(key, value),
                    None => item(value, name).cloned().unwrap_or_else(|| visible(key, value)),
                }
            }
            Part::Item(text) => item(value, text).unwrap_or(&key.span).clone(),
        }
    }
}

/// The range of a field's value, or of its key if the value is not a scalar.
fn visible(key: &Key, value: &Node) -> Range<usize> {
    if matches!(value.data, Data::List(_) | Data::Map(_) | Data::Null) {
        key.span.clone()
    } else {
        value.span.clone()
    }
}

/// The range of the first `text` in `node`.
fn item<'n>(node: &'n Node, text: &str) -> Option<&'n Range<usize>> {
    if node.text() == Some(text) {
        return Some(&node.span);
    }
    let values = node.entries().iter().map(|(_, value)| value);
    values.chain(node.items()).find_map(|inner| item(inner, text))
}

/// All keys and values of a text, by the byte at which they begin.
#[derive(Default)]
pub(in crate::manifest) struct Written<'p> {
    /// Each key with its value. Of merged ones, the outermost.
    keys: HashMap<usize, (&'p Key, &'p Node)>,
    /// The outermost value.
    nodes: HashMap<usize, &'p Node>,
}

impl<'p> Written<'p> {
    pub(in crate::manifest) fn of(parsed: &'p Parsed) -> Self {
        let mut written = Self::default();
        parsed.documents.iter().for_each(|document| written.add(document));
        written
    }

    fn add(&mut self, node: &'p Node) {
        steps::step();
        self.nodes.entry(node.span.start).or_insert(node);
        for (key, value) in node.entries() {
            self.keys.entry(key.span.start).or_insert((key, value));
        }
        node.entries()
            .iter()
            .map(|(_, value)| value)
            .chain(node.items())
            .for_each(|inner| self.add(inner));
    }
}
