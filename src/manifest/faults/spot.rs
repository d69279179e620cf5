//! Where something is written, without the text around it.

use std::{collections::HashMap, ops::Range};

use crate::{
    diagnostic::Source,
    origin::Origin,
    steps,
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

    /// Where it is in a text that holds what is `written`.
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

/// Everything in a text, by the byte at which it begins.
#[derive(Default)]
pub(in crate::manifest) struct Written<'p> {
    /// Each key with its value. Of what is merged in more than once, the outermost.
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
