//! Finds the position of a schema error, in the tree and in the schema.

use std::ops::Range;

use crate::{
    field::{Field, Secrecy},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The position of an error, in the tree and in the schema.
pub(super) struct Located<'d> {
    pub(super) node: &'d Node,
    /// The key of the value, or of the list that contains it.
    pub(super) key: Option<&'d Key>,
    pub(super) is_item: bool,
    pub(super) depth: usize,
    /// The first key of the path to it; empty at the top.
    pub(super) section: String,
    pub(super) schema: &'d Json,
    pub(super) root: &'d Json,
}

/// Follows a JSON pointer through the tree and the schema. Stops at a secret.
pub(super) fn locate<'d>(pointer: &str, document: &'d Node, root: &'d Json) -> Option<Located<'d>> {
    let mut spot = Located {
        node: document,
        key: None,
        is_item: false,
        depth: 0,
        section: String::new(),
        schema: root,
        root,
    };
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if spot.depth == 0 {
            spot.section.clone_from(&token);
        }
        match &spot.node.data {
            Data::List(items) => {
                spot.node = items.get(token.parse::<usize>().ok()?)?;
                spot.schema = spot.schema.get("items").unwrap_or(&Json::Null);
                spot.is_item = true;
            }
            _ => {
                let (key, value) = spot.node.get(&token)?;
                (spot.node, spot.key, spot.is_item) = (value, Some(key), false);
                spot.schema = spot
                    .schema
                    .pointer(&format!(
                        "/properties/{}",
                        token.replace('~', "~0").replace('/', "~1")
                    ))
                    .unwrap_or(&Json::Null);
            }
        }
        spot.depth += 1;
        if Field::of(spot.schema).secrecy != Secrecy::Open {
            break;
        }
    }
    Some(spot)
}

impl Located<'_> {
    /// The range to mark: the value if it is on one line, otherwise its key or its first key.
    pub(super) fn span(&self) -> Range<usize> {
        match (&self.node.data, self.key) {
            (Data::Map(entries), _) if self.is_item || self.key.is_none() => {
                entries.first().map_or_else(|| self.node.span.clone(), |(key, _)| key.span.clone())
            }
            (Data::Map(_) | Data::List(_) | Data::Null, Some(key)) if !self.is_item => {
                key.span.clone()
            }
            _ => self.node.span.clone(),
        }
    }

    /// The name of the value.
    pub(super) fn name(&self) -> String {
        match (self.key, self.is_item) {
            (Some(key), false) => format!("`{}`", key.name),
            (Some(key), true) => format!("an entry of `{}`", key.name),
            (None, _) => "the document".into(),
        }
    }

    pub(super) fn property_names(&self) -> Vec<&str> {
        names(self.schema)
    }

    /// The first sentence of the description.
    pub(super) fn description(&self) -> Option<String> {
        first_sentence(self.schema)
    }
}

/// The properties of a schema.
pub(super) fn names(schema: &Json) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect()
}

pub(super) fn first_sentence(schema: &Json) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    let end = text.find(". ").unwrap_or(text.len());
    let sentence = text[..end].trim_end_matches('.').replace('\n', " ");
    let mut characters = sentence.chars();
    // Help texts start in lower case, except a word in capitals.
    let first = characters.next()?;
    let rest = characters.as_str();
    let lower = rest.starts_with(|c: char| c.is_lowercase() || c == ' ');
    Some(if lower { first.to_lowercase().chain(rest.chars()).collect() } else { sentence })
}
