//! Forms that may replace a value. A scalar: `{text: '...'}`, which is filled in for each group and
//! project. A list: `{add: [...]}` and `{remove: [...]}`, which change the list of lower layers; or
//! `{at_least: [...]}` and `{none_of: [...]}`, which only set conditions on the live list.
//!
//! The schemas of fields do not contain these forms, so that messages about a value are about the
//! value itself. Schemas see a tree without templates, with the items of such a list form as a
//! plain list. The result of a template is checked when it is filled in.

use super::{container::parse_reference, paths::PATHS};
use crate::{
    catalogue,
    field::Scope,
    kind::{Section, Shape, forms, is_list},
    value::Json,
    yaml::{MappingKey, Node, NodeValue},
};

/// The template in place of a value.
pub(in crate::manifest) fn template_text(node: &Node) -> Option<&Node> {
    match node.entries() {
        [(key, text)] if key.name == "text" && matches!(text.data, NodeValue::Text(_)) => {
            Some(text)
        }
        _ => None,
    }
}

/// The keys that change the list of lower layers.
pub(in crate::manifest) const CHANGE_KEYS: [&str; 2] = ["add", "remove"];

/// The items of all lists in a list form.
fn form_items(node: &Node) -> Option<Vec<&Node>> {
    let entries = node.entries();
    let has_form = [CHANGE_KEYS, forms::CONDITION_KEYS].iter().any(|keys| {
        entries
            .iter()
            .all(|(key, list)| keys.contains(&key.name.as_str()) && !list.items().is_empty())
    });
    (has_form && !entries.is_empty())
        .then(|| entries.iter().flat_map(|(_, list)| list.items()).collect())
}

/// True if a condition on live values is in the place of a list.
fn is_condition(node: &Node) -> bool {
    forms::CONDITION_KEYS.iter().any(|key| node.get(key).is_some())
}

/// The forms in `node` that replace a value of `schema`, each with the end of its key before it.
pub(in crate::manifest) fn form_values<'n>(
    node: &'n Node,
    schema: &Json,
) -> Option<impl Iterator<Item = (usize, &'n Node)> + use<'n>> {
    let is_mapping = schema.get("properties").is_some();
    let is_form = if is_list(schema) {
        form_items(node).is_some()
    } else {
        !is_mapping && template_text(node).is_some()
    };
    is_form.then(|| node.entries().iter().map(|(key, node)| (key.span.end, node)))
}

/// `document` as its schema sees it, if different: without templates, which may have any value, and
/// with the items of a list form as a plain list. If `allows_added_profiles`, its profiles may be
/// an `add` list.
pub(super) fn remove_forms(
    document: &Node,
    scope: Scope,
    allows_added_profiles: bool,
) -> Option<Node> {
    let params = std::iter::once(&document["params"]).chain(document[PATHS].children());
    let mut params = params.flat_map(Node::children);
    if !has_form(document) && params.all(|param| parse_reference(param).is_none()) {
        return None;
    }
    let mut document = document.clone();
    retain_entries(&mut document, |key, node| {
        match (catalogue::section(scope, &key.name), &*key.name) {
            (Some(section), _) => close_section_fields(section, node),
            (None, "uses")
                if allows_added_profiles && !is_condition(node) && form_items(node).is_some() =>
            {
                return close_list(&Json::Null, node);
            }
            (None, "params") => remove_references(node),
            (None, PATHS) => retain_entries(node, |_, params| {
                remove_references(params);
                true
            }),
            (None, _) => {}
        }
        true
    });
    Some(document)
}

/// True if a mapping in `node` looks like one of the forms, or is an unmanaged entry.
fn has_form(node: &Node) -> bool {
    let mut entries = node.entries().iter();
    entries.any(|(key, value)| match &*key.name {
        "text" | "add" | "remove" | "at_least" | "none_of" => true,
        "state" => value.text() == Some(UNMANAGED),
        _ => has_form(value),
    }) || node.items().iter().any(has_form)
}

/// The state of an entry whose identity may be a glob, with characters that a name must not contain.
const UNMANAGED: &str = "unmanaged";

/// Keeps the entries of a mapping that `accept` accepts, which may change their values.
fn retain_entries(node: &mut Node, mut accept: impl FnMut(&MappingKey, &mut Node) -> bool) {
    if let NodeValue::Map(entries) = &mut node.data {
        entries.retain_mut(|(key, value)| accept(key, value));
    }
}

/// Removes the parameters that are references.
fn remove_references(params: &mut Node) {
    retain_entries(params, |_, param| parse_reference(param).is_none());
}

/// Closes the fields of a section.
fn close_section_fields(section: Section, node: &mut Node) {
    let schema = &section.table().schema;
    match (section.shape, &mut node.data) {
        (Shape::List, NodeValue::List(entries)) => {
            for entry in entries {
                let is_unmanaged = entry["state"].text() == Some(UNMANAGED);
                retain_entries(entry, |key, node| {
                    let is_glob = is_unmanaged && section.identity.contains(&&*key.name);
                    !(is_glob && node.text().is_some()) && close_field(schema, key, node)
                });
            }
        }
        (Shape::Container | Shape::Mapping, _) => {
            retain_entries(node, |key, node| close_field(schema, key, node));
        }
        (Shape::List | Shape::Switch, _) => {}
    }
}

/// Closes the field `key` of a mapping with `schema`. Returns false if it may have any value.
fn close_field(schema: &Json, key: &MappingKey, node: &mut Node) -> bool {
    schema["properties"].get(&key.name).is_none_or(|schema| close_value(schema, node))
}

/// Closes a value of `schema`. Returns false if it may have any value.
fn close_value(schema: &Json, node: &mut Node) -> bool {
    if schema.get("properties").is_some() {
        retain_entries(node, |key, node| close_field(schema, key, node));
        return true;
    }
    !contains_form(schema, node) || is_list(schema) && close_list(&schema["items"], node)
}

/// Replaces a list form by the list of its items, which have `schema`. Returns false if one of them may have
/// any value, so that the list may, too.
fn close_list(schema: &Json, node: &mut Node) -> bool {
    let Some(items) = form_items(node) else { return false };
    let is_closed = items.iter().all(|item| !contains_form(schema, item));
    if is_closed {
        node.data = NodeValue::List(items.into_iter().cloned().collect());
    }
    is_closed
}

/// True if `node`, a value of `schema`, contains a template or a list form.
pub(super) fn contains_form(schema: &Json, node: &Node) -> bool {
    match &node.data {
        NodeValue::Map(entries) if schema.get("properties").is_some() => {
            entries.iter().any(|(key, node)| {
                schema["properties"]
                    .get(&key.name)
                    .is_some_and(|schema| contains_form(schema, node))
            })
        }
        NodeValue::Map(_) => {
            template_text(node).is_some() || is_list(schema) && form_items(node).is_some()
        }
        NodeValue::List(items) if schema.get("properties").is_none() => {
            items.iter().any(|item| contains_form(&schema["items"], item))
        }
        _ => false,
    }
}
