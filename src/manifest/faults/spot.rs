//! Where something is written, without the text around it.

use std::ops::Range;

use crate::{
    diagnostic::Source,
    origin::Origin,
    yaml::{Data, Key, Node, Parsed},
};

/// What is meant at a place: enough to find it in the file again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) struct Spot {
    /// Where the key is, or the thing itself if it has none.
    pub(in crate::manifest) origin: Origin,
    pub(in crate::manifest) part: Part,
}

/// Which part of a key with its value is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) enum Part {
    /// The key.
    Key,
    /// The value, or the key if the value is no scalar.
    Value,
    /// A key within the value: the names on the way to it.
    Inner(Vec<String>),
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

    /// Where it is in a text that was read as `parsed`.
    pub(in crate::manifest) fn find(&self, source: &Source<'_>, parsed: &Parsed) -> Range<usize> {
        let at = source.offset(self.origin.line, self.origin.column);
        let Some((key, value)) = parsed.documents.iter().find_map(|node| key_at(node, at)) else {
            let node = parsed.documents.iter().find_map(|node| node_at(node, at));
            return node.map_or(at..at, |node| node.span.clone());
        };
        match &self.part {
            Part::Key => key.span.clone(),
            Part::Value => visible(key, value),
            Part::Inner(names) => {
                let inner = names.iter().try_fold((key, value), |(_, value), name| value.get(name));
                inner.unwrap_or((key, value)).0.span.clone()
            }
        }
    }
}

/// A field's value, or its key if the value is no scalar.
fn visible(key: &Key, value: &Node) -> Range<usize> {
    if matches!(value.data, Data::List(_) | Data::Map(_) | Data::Null) {
        key.span.clone()
    } else {
        value.span.clone()
    }
}

/// The key that begins at the byte `at`, with its value.
fn key_at(node: &Node, at: usize) -> Option<(&Key, &Node)> {
    let own = node.entries().iter().find(|(key, _)| key.span.start == at);
    own.map(|(key, value)| (key, value))
        .or_else(|| node.entries().iter().find_map(|(_, value)| key_at(value, at)))
        .or_else(|| node.items().iter().find_map(|item| key_at(item, at)))
}

/// The outermost value that begins at the byte `at`.
fn node_at(node: &Node, at: usize) -> Option<&Node> {
    if node.span.start == at {
        return Some(node);
    }
    let entries = node.entries().iter().map(|(_, value)| value);
    entries.chain(node.items()).find_map(|inner| node_at(inner, at))
}
