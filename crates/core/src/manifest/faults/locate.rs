//! Finds the position of a schema error, in the tree and in the schema.

use std::ops::Range;

use crate::{
    field::{Field, Secrecy},
    value::Json,
    yaml::{MappingKey, Node, NodeValue},
};

/// The position of an error in the tree and in the schema, with facts about the error.
#[derive(Clone)]
pub(super) struct SchemaPosition<'d> {
    pub(super) node: &'d Node,
    /// The mapping or list that contains `node`, with the schema of that mapping or list.
    pub(super) parent: Option<(&'d Node, &'d Json)>,
    /// The key of `node`, or of the list that contains `node`.
    pub(super) key: Option<&'d MappingKey>,
    pub(super) is_list_item: bool,
    /// The number of keys and list items on the path to `node`.
    pub(super) depth: usize,
    /// The first key of the path to `node`; empty at the top of the document.
    pub(super) section: String,
    /// The schema of `node`.
    pub(super) schema: &'d Json,
    /// The schema of the whole document.
    pub(super) root_schema: &'d Json,
    /// The types that the field accepts.
    pub(super) allowed_types: &'d [&'d str],
    /// The words that the field accepts, if it accepts only some words.
    pub(super) allowed_words: &'d [String],
    /// The subject of the error: an unknown key, the pattern that a text does not match, or the
    /// violated keyword of the schema.
    pub(super) subject: &'d str,
    /// The value of the unknown key.
    pub(super) unknown_value: Option<&'d Node>,
}

impl<'d> SchemaPosition<'d> {
    /// The position of a document, which must fit `schema`.
    pub(super) const fn new(node: &'d Node, schema: &'d Json, root: &'d Json) -> Self {
        Self {
            node,
            parent: None,
            key: None,
            is_list_item: false,
            depth: 0,
            section: String::new(),
            schema,
            root_schema: root,
            allowed_types: &[],
            allowed_words: &[],
            subject: "",
            unknown_value: None,
        }
    }

    /// Follows a JSON pointer through the tree and the schema. Stops at a secret, so that no
    /// message shows parts of the secret.
    pub(super) fn follow_pointer(self, pointer: &str) -> Option<Self> {
        let mut position = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            position = match &position.node.data {
                NodeValue::List(items) => SchemaPosition {
                    node: items.get(token.parse::<usize>().ok()?)?,
                    parent: Some((position.node, position.schema)),
                    schema: &position.schema["items"],
                    is_list_item: true,
                    depth: position.depth + 1,
                    ..position
                },
                _ => {
                    let (key, value) = position.node.get(&token)?;
                    position.child_position(key, value, &token)
                }
            };
            if Field::from_schema(position.schema).secrecy() != Secrecy::Open {
                break;
            }
        }
        Some(position)
    }

    /// The position of the value `node` of `key`, as if the key had the name `name`.
    pub(super) fn child_position(&self, key: &'d MappingKey, node: &'d Node, name: &str) -> Self {
        let property = self.schema["properties"].get(name);
        let property = property.or_else(|| self.schema.get("additionalProperties"));
        let section = if self.depth == 0 { name } else { &self.section };
        Self {
            parent: Some((self.node, self.schema)),
            key: Some(key),
            depth: self.depth + 1,
            section: section.to_owned(),
            ..Self::new(node, property.unwrap_or(&Json::Null), self.root_schema)
        }
    }

    /// The byte range to mark. For a scalar, this is the value. For a mapping, a list or an empty
    /// value, it is the key, or the first key of a mapping without a key.
    pub(super) fn span(&self) -> Range<usize> {
        match (&self.node.data, self.key) {
            (NodeValue::Map(entries), _) if self.is_list_item || self.key.is_none() => {
                entries.first().map_or_else(|| self.node.span.clone(), |(key, _)| key.span.clone())
            }
            (NodeValue::Map(_) | NodeValue::List(_) | NodeValue::Null, Some(key))
                if !self.is_list_item =>
            {
                key.span.clone()
            }
            _ => self.node.span.clone(),
        }
    }

    /// The name of the value in messages.
    pub(super) fn name(&self) -> String {
        match (self.key, self.is_list_item) {
            (Some(key), false) => format!("`{}`", key.name),
            (Some(key), true) => format!("an entry of `{}`", key.name),
            (None, _) => "the document".into(),
        }
    }

    /// The name of the key; empty at the top of the document.
    pub(super) fn key_name(&self) -> &'d str {
        self.key.map_or("", |key| &key.name)
    }

    /// The names of the properties in `schema`.
    pub(super) fn property_names(&self) -> Vec<&str> {
        let properties = self.schema["properties"].as_object();
        properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The names that a hint may suggest: properties that are not deprecated.
    pub(super) fn suggestable_names(&self) -> Vec<&str> {
        let mut names = self.property_names();
        names.retain(|name| self.schema["properties"][name]["deprecated"] != true);
        names
    }

    /// The first sentence of the description in `schema`.
    pub(super) fn description(&self) -> Option<String> {
        first_sentence(self.schema)
    }
}

pub(super) fn first_sentence(schema: &Json) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    let end = text.find(". ").unwrap_or(text.len());
    let sentence = text[..end].trim_end_matches('.').replace('\n', " ");
    let mut characters = sentence.chars();
    // Help texts start in lower case, unless the first word is an abbreviation such as `URL`.
    let first_char = characters.next()?;
    let later_text = characters.as_str();
    let should_lowercase = later_text.starts_with(|c: char| c.is_lowercase() || c == ' ');
    Some(if should_lowercase {
        first_char.to_lowercase().chain(later_text.chars()).collect()
    } else {
        sentence
    })
}
