//! Forms that may replace a value. A template, `{text: '...'}`, may replace a scalar. It is filled
//! in for each group and project. A list form may replace a list. `{add: [...]}` and
//! `{remove: [...]}` change the list of lower layers. `{at_least: [...]}` and `{none_of: [...]}`
//! only set conditions on the live list.
//!
//! The schemas of fields do not contain these forms, so that messages only mention the plain value.
//! Before a document is checked, its templates are removed, and a list form is replaced by the
//! plain list of its items. The result of a template is checked after the template is filled in.

use super::container::{PATHS_KEY, parse_reference};
use crate::{
    catalogue,
    field::Scope,
    kind::{Section, Shape, forms, is_list},
    value::Json,
    yaml::{MappingKey, Node, NodeValue},
};

/// The text of the template `node`; `None` if `node` is not a template.
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

/// The items of all lists of a list form; `None` if `node` is not a list form.
fn form_items(node: &Node) -> Option<Vec<&Node>> {
    let entries = node.entries();
    let has_form_keys = [CHANGE_KEYS, forms::CONDITION_KEYS].iter().any(|keys| {
        let mut entries = entries.iter();
        entries.all(|(key, list)| keys.contains(&&*key.name) && !list.items().is_empty())
    });
    (has_form_keys && !entries.is_empty())
        .then(|| entries.iter().flat_map(|(_, list)| list.items()).collect())
}

/// The values in a form that replaces a value of `schema`, each with the byte at which its key
/// ends; `None` if `node` is not such a form.
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

/// A copy of `document` that its schema can check: without templates, and with plain lists instead
/// of list forms. `None` if `document` has no forms. If `allows_added_profiles` is true, `uses` may
/// also be a list form.
pub(super) fn remove_forms(
    document: &Node,
    scope: Scope,
    allows_added_profiles: bool,
) -> Option<Node> {
    let params = std::iter::once(&document["params"]).chain(document[PATHS_KEY].children());
    let mut param_values = params.flat_map(Node::children);
    if !may_have_form(document) && param_values.all(|param| parse_reference(param).is_none()) {
        return None;
    }
    let mut document = document.clone();
    retain_entries(&mut document, |key, node| {
        match (catalogue::find_section(scope, &key.name), &*key.name) {
            (Some(section), _) => strip_section_forms(section, node),
            (None, "uses")
                if allows_added_profiles
                    && forms::CONDITION_KEYS.iter().all(|key| node.get(key).is_none())
                    && form_items(node).is_some() =>
            {
                return flatten_list_form(&Json::Null, node);
            }
            (None, "params") => remove_references(node),
            (None, PATHS_KEY) => retain_entries(node, |_, params| {
                remove_references(params);
                true
            }),
            (None, _) => {}
        }
        true
    });
    Some(document)
}

/// True if a mapping in `node` may be a form, or is an unmanaged entry.
fn may_have_form(node: &Node) -> bool {
    let mut entries = node.entries().iter();
    entries.any(|(key, value)| match &*key.name {
        "text" | "add" | "remove" | "at_least" | "none_of" => true,
        "state" => value.text() == Some(UNMANAGED_STATE),
        _ => may_have_form(value),
    }) || node.items().iter().any(may_have_form)
}

/// The state of an entry whose identity may be a glob. A glob has characters that a name must not
/// have.
const UNMANAGED_STATE: &str = "unmanaged";

/// Keeps the entries of a mapping for which `keeps_entry` returns true. `keeps_entry` may change
/// the values.
fn retain_entries(node: &mut Node, mut keeps_entry: impl FnMut(&MappingKey, &mut Node) -> bool) {
    if let NodeValue::Map(entries) = &mut node.data {
        entries.retain_mut(|(key, value)| keeps_entry(key, value));
    }
}

/// Removes the parameters that are references to secrets.
fn remove_references(params: &mut Node) {
    retain_entries(params, |_, param| parse_reference(param).is_none());
}

/// Removes the forms from the fields of a section.
fn strip_section_forms(section: Section, node: &mut Node) {
    let schema = &section.table().schema;
    match (section.shape, &mut node.data) {
        (Shape::List, NodeValue::List(entries)) => {
            for entry in entries {
                let is_unmanaged = entry["state"].text() == Some(UNMANAGED_STATE);
                retain_entries(entry, |key, node| {
                    let is_glob = is_unmanaged && section.identity.contains(&&*key.name);
                    !(is_glob && node.text().is_some()) && strip_field_forms(schema, key, node)
                });
            }
        }
        (Shape::Container | Shape::Mapping, _) => {
            retain_entries(node, |key, node| strip_field_forms(schema, key, node));
        }
        (Shape::List | Shape::Switch, _) => {}
    }
}

/// Removes the forms from the field `key` of a mapping with `schema`. Returns false if the field
/// itself must be removed.
fn strip_field_forms(schema: &Json, key: &MappingKey, node: &mut Node) -> bool {
    schema["properties"].get(&key.name).is_none_or(|schema| strip_value_forms(schema, node))
}

/// Removes the forms from a value of `schema`. Returns false if the value contains a template, so
/// that the whole value must be removed.
fn strip_value_forms(schema: &Json, node: &mut Node) -> bool {
    if schema.get("properties").is_some() {
        retain_entries(node, |key, node| strip_field_forms(schema, key, node));
        return true;
    }
    !contains_form(schema, node) || is_list(schema) && flatten_list_form(&schema["items"], node)
}

/// Replaces a list form by the plain list of its items. `schema` is the schema of the items.
/// Returns false if an item contains a template, so that the list must be removed.
fn flatten_list_form(schema: &Json, node: &mut Node) -> bool {
    let Some(items) = form_items(node) else { return false };
    let has_plain_items = items.iter().all(|item| !contains_form(schema, item));
    if has_plain_items {
        node.data = NodeValue::List(items.into_iter().cloned().collect());
    }
    has_plain_items
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
