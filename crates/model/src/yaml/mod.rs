//! Parses YAML text to a tree in which every node has its position.
//!
//! The rules are stricter than the rules of YAML:
//!
//! - The core schema of YAML 1.2 decides which scalars are booleans.
//! - Keys are texts and must be unique.
//! - Only core tags are allowed.
//! - Aliases must not multiply the size of the text.
//!
//! Every fault is reported, not only the first fault. A well-formed but forbidden value becomes
//! [`NodeValue::Unreadable`] or is omitted from the tree. After broken syntax, parsing continues
//! with the next document. No message quotes a scalar, because any scalar may be a secret.

use std::{
    borrow::Cow,
    ops::{Index, Range},
};

use serde::Deserialize;

use crate::{steps, value::Json};

mod compose;
mod number;
mod syntax;
pub mod write;

/// The maximum depth of nested collections. Manifests need less than ten.
pub const MAX_DEPTH: usize = 64;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub data: NodeValue,
    /// The byte range in the text; for an alias, the range of the alias itself.
    pub span: Range<usize>,
}

/// The value of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// `null`, `~` or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that JSON and 64 bits can hold.
    Number(serde_json::Number),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in its written order.
    Map(Vec<(MappingKey, Node)>),
    /// A value with a fault that is already reported.
    Unreadable,
}

/// The key of a mapping's entry.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingKey {
    /// The text of the key.
    pub name: String,
    /// The byte range in the text; for a merged key, its range in the original mapping.
    pub span: Range<usize>,
}

/// A fault in YAML text.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlFault {
    /// The code, one of `syntax`, `duplicate-key`, `null`, `yaml-key`, `yaml-tag`, `yaml-number`,
    /// `yaml-limit` and `control-character`, or `no-effect` for a warning.
    pub code: &'static str,
    /// The message, as a lower-case fragment.
    pub message: Cow<'static, str>,
    /// The advice.
    pub help: Option<&'static str>,
    /// The byte range in the text.
    pub span: Range<usize>,
    /// For a duplicate key, the byte range of its first occurrence.
    pub first_span: Option<Range<usize>>,
}

/// The code, the message and the help of each fault, which the build reads from `faults.yaml`. The
/// help may be empty.
mod texts {
    include!(concat!(env!("OUT_DIR"), "/tables/yaml/faults.rs"));
}

impl YamlFault {
    fn new([code, message, help]: [&'static str; 3], span: Range<usize>) -> Self {
        let help = Some(help).filter(|help| !help.is_empty());
        Self { code, message: message.into(), help, span, first_span: None }
    }
}

/// The readable documents of a text, and its faults.
#[derive(Debug, Default, PartialEq)]
pub struct ParsedYaml {
    /// The documents with valid syntax.
    pub documents: Vec<Node>,
    /// The faults in the text.
    pub faults: Vec<YamlFault>,
    /// Parts of the text that are in no document: entries whose key is not text or has no value,
    /// values of duplicate keys, and values that a merge dropped.
    pub dropped_ranges: Vec<Range<usize>>,
    /// True if a document is missing because of broken syntax.
    pub is_broken: bool,
}

/// Reads the table that the build generated from a YAML file. The name is its path below `src`, without the
/// extension: `built_in!("catalogue/tables/words")`.
#[macro_export]
macro_rules! built_in {
    ($name:literal) => {
        $crate::yaml::read_table(include_str!(concat!(env!("OUT_DIR"), "/tables/", $name, ".json")))
    };
}

pub use built_in;
pub use compose::parse;

/// Reads the JSON that the build generated from a YAML file of the program. The result lives as
/// long as the program.
///
/// # Panics
/// If the JSON has an unexpected form. A test reads each file of the program.
pub fn read_table<T: Deserialize<'static>>(json: &str) -> T {
    let content = serde_json::from_str(json).expect("the build writes JSON");
    read_leaked(content).expect("a part of the program is well-formed")
}

/// Leaks `content` and reads it: the result borrows its texts until the end of the process.
///
/// # Errors
/// If `content` has an unexpected form.
pub fn read_leaked<T: Deserialize<'static>>(content: Json) -> serde_json::Result<T> {
    T::deserialize(&*Box::leak(Box::new(content)))
}

/// True if texts of manifests must not contain `c`: control characters except tab, line feed and
/// carriage return.
pub fn is_forbidden_char(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

impl Node {
    /// The value as JSON; unreadable parts are `null`.
    pub fn to_json(&self) -> Json {
        match &self.data {
            NodeValue::Null | NodeValue::Unreadable => Json::Null,
            NodeValue::Bool(value) => Json::Bool(*value),
            NodeValue::Number(number) => Json::Number(number.clone()),
            NodeValue::Text(text) => Json::String(text.clone()),
            NodeValue::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            NodeValue::Map(entries) => Json::Object(
                entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect(),
            ),
        }
    }

    /// The key `name` of a mapping, and its value.
    pub fn get(&self, name: &str) -> Option<(&MappingKey, &Self)> {
        let mut entries = self.entries().iter().inspect(|_| steps::count_step());
        entries.find(|(key, _)| key.name == name).map(|(key, value)| (key, value))
    }

    /// The byte offset for the origin of an entry: the start of its first key, or the start of the
    /// alias.
    pub fn start_offset(&self) -> usize {
        steps::count_step();
        let first_key_start = self.entries().first().map(|(key, _)| key.span.start);
        first_key_start.filter(|offset| self.span.contains(offset)).unwrap_or(self.span.start)
    }

    /// The entries of a mapping; empty for other values.
    pub fn entries(&self) -> &[(MappingKey, Self)] {
        if let NodeValue::Map(entries) = &self.data { entries } else { &[] }
    }

    /// The keys of a mapping; none for other values.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries().iter().map(|(key, _)| &*key.name)
    }

    /// The items of a list; empty for other values.
    pub fn items(&self) -> &[Self] {
        if let NodeValue::List(items) = &self.data { items } else { &[] }
    }

    /// The values in a mapping or list; none for other values.
    pub fn children(&self) -> impl Iterator<Item = &Self> {
        self.entries().iter().map(|(_, value)| value).chain(self.items())
    }

    /// The text, if the value is text.
    pub fn text(&self) -> Option<&str> {
        if let NodeValue::Text(text) = &self.data { Some(text) } else { None }
    }

    /// The value as text, if it is a text, a number or a boolean.
    pub fn scalar_text(&self) -> Option<String> {
        match &self.data {
            NodeValue::Text(text) => Some(text.clone()),
            NodeValue::Number(number) => Some(number.to_string()),
            NodeValue::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    /// True if the node is a list or a mapping.
    pub const fn is_collection(&self) -> bool {
        matches!(self.data, NodeValue::List(_) | NodeValue::Map(_))
    }
}

/// The value of the key `name` in a mapping. If the key is missing, the value is `null` without a
/// position.
impl Index<&str> for Node {
    type Output = Self;

    fn index(&self, name: &str) -> &Self {
        static MISSING: Node = Node { data: NodeValue::Null, span: 0..0 };
        self.get(name).map_or(&MISSING, |(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
