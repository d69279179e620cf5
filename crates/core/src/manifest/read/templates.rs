//! Forms that may replace a value. A scalar: `{text: '...'}`, which is filled in for each group and
//! project. A list: `{add: [...]}` and `{remove: [...]}`, which change the list of lower layers; or
//! `{at_least: [...]}` and `{none_of: [...]}`, which only set conditions on the live list.
//!
//! The schemas of fields do not contain these forms, so that messages about a value are about the
//! value itself. Schemas see a tree without templates, with the items of such a list form as a
//! plain list. The result of a template is checked when it is filled in.

use super::container::reference;
use crate::{
    catalogue,
    field::Scope,
    kind::{Section, Shape, forms, is_list},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The template in place of a value.
pub(in crate::manifest) fn template(node: &Node) -> Option<&Node> {
    match node.entries() {
        [(key, text)] if key.name == "text" && matches!(text.data, Data::Text(_)) => Some(text),
        _ => None,
    }
}

/// The keys that change the list of lower layers.
pub(in crate::manifest) const CHANGE: [&str; 2] = ["add", "remove"];

/// The items of all lists in a list form.
fn lists(node: &Node) -> Option<Vec<&Node>> {
    let entries = node.entries();
    let is = |keys: &[&str; 2]| entries.iter().all(|(key, _)| keys.contains(&key.name.as_str()));
    let has_items = |(_, node): &(Key, Node)| !node.items().is_empty();
    let fits = !entries.is_empty()
        && entries.iter().all(has_items)
        && (is(&CHANGE) || is(&forms::CONDITION));
    fits.then(|| entries.iter().flat_map(|(_, list)| list.items()).collect())
}

/// Whether a condition on live values is in the place of a list.
fn is_condition(node: &Node) -> bool {
    forms::CONDITION.iter().any(|key| node.get(key).is_some())
}

/// The forms in `node` that replace a value of `schema`, each with the end of its key before it.
pub(in crate::manifest) fn within<'n>(
    node: &'n Node,
    schema: &Json,
) -> Option<impl Iterator<Item = (usize, &'n Node)> + use<'n>> {
    let is_mapping = schema.get("properties").is_some();
    let fits = match is_list(schema) {
        true => lists(node).is_some(),
        false => !is_mapping && template(node).is_some(),
    };
    fits.then(|| node.entries().iter().map(|(key, node)| (key.span.end, node)))
}

/// A tree as schemas see it.
enum SchemaNode {
    /// Unchanged.
    Same,
    /// A template, which may have any value.
    Open,
    /// Changed.
    Changed(Node),
}

/// `document` as its schema sees it, if different. Its profiles may be an `added` list.
pub(super) fn closed(document: &Node, scope: Scope, added: bool) -> Option<Node> {
    let seen = |key: &Key, node: &Node| match catalogue::section(scope, &key.name) {
        Some(of) => section(of, node),
        None if key.name == "uses" && added && !is_condition(node) => match lists(node) {
            Some(items) => list(node, items, &Json::Null),
            None => SchemaNode::Same,
        },
        None if key.name == "params" => map(node, |_, param| match reference(param) {
            Some(_) => SchemaNode::Open,
            None => SchemaNode::Same,
        }),
        None => SchemaNode::Same,
    };
    match map(document, seen) {
        SchemaNode::Changed(document) => Some(document),
        SchemaNode::Same | SchemaNode::Open => None,
    }
}

/// Whether a field of `schema` contains a template or a list form.
pub(super) fn is_open(schema: &Json, node: &Node) -> bool {
    !is_closed(schema, node)
}

fn section(of: Section, node: &Node) -> SchemaNode {
    let schema = &of.table().schema;
    let of_fields = |key: &Key, node: &Node| match node.data {
        Data::Map(_) | Data::List(_) => match schema["properties"].get(&key.name) {
            Some(schema) => value(schema, node),
            None => SchemaNode::Same,
        },
        _ => SchemaNode::Same,
    };
    match of.shape {
        Shape::List => entries(node, |entry| {
            let state = entry.get("state").and_then(|(_, state)| state.text());
            let is_unmanaged = state == Some("unmanaged");
            map(entry, |key, node| match is_unmanaged && of.identity.contains(&&*key.name) {
                // A glob may contain characters that a name must not.
                true if node.text().is_some() => SchemaNode::Open,
                _ => of_fields(key, node),
            })
        }),
        Shape::Container | Shape::Mapping => map(node, of_fields),
        Shape::Switch => SchemaNode::Same,
    }
}

/// The value of a field.
fn value(schema: &Json, node: &Node) -> SchemaNode {
    if !matches!(node.data, Data::Map(_) | Data::List(_)) {
        return SchemaNode::Same;
    }
    if schema.get("properties").is_some() {
        return map(node, |key, node| match schema["properties"].get(&key.name) {
            Some(schema) => value(schema, node),
            None => SchemaNode::Same,
        });
    }
    if template(node).is_some() {
        return SchemaNode::Open;
    }
    match lists(node).filter(|_| is_list(schema)) {
        Some(items) => list(node, items, &schema["items"]),
        None if node.items().iter().all(|item| is_closed(&schema["items"], item)) => {
            SchemaNode::Same
        }
        // The value of an item is unknown, so the list is too.
        None => SchemaNode::Open,
    }
}

/// The list of `items` instead of `node`.
fn list(node: &Node, items: Vec<&Node>, schema: &Json) -> SchemaNode {
    if !items.iter().all(|item| is_closed(schema, item)) {
        return SchemaNode::Open;
    }
    let data = Data::List(items.into_iter().cloned().collect());
    SchemaNode::Changed(Node { data, span: node.span.clone() })
}

/// Whether `node`, a value of `schema`, contains no template or list form.
fn is_closed(schema: &Json, node: &Node) -> bool {
    matches!(value(schema, node), SchemaNode::Same)
}

fn map(node: &Node, seen: impl Fn(&Key, &Node) -> SchemaNode) -> SchemaNode {
    let entries = node.entries();
    let Some(seen) = changed(entries.iter().map(|(key, node)| seen(key, node))) else {
        return SchemaNode::Same;
    };
    let entries = entries.iter().zip(seen).filter_map(|((key, node), seen)| match seen {
        SchemaNode::Same => Some((key.clone(), node.clone())),
        SchemaNode::Open => None,
        SchemaNode::Changed(node) => Some((key.clone(), node)),
    });
    SchemaNode::Changed(Node { data: Data::Map(entries.collect()), span: node.span.clone() })
}

/// All of `seen`, unless each is the same. Nearly always they are.
fn changed(mut seen: impl Iterator<Item = SchemaNode>) -> Option<impl Iterator<Item = SchemaNode>> {
    let mut same = 0;
    let first = seen.find(|seen| {
        let is_same = matches!(seen, SchemaNode::Same);
        same += usize::from(is_same);
        !is_same
    })?;
    Some(std::iter::repeat_with(|| SchemaNode::Same).take(same).chain([first]).chain(seen))
}

fn entries(list: &Node, seen: impl Fn(&Node) -> SchemaNode) -> SchemaNode {
    let Some(seen) = changed(list.items().iter().map(seen)) else { return SchemaNode::Same };
    let entries = list.items().iter().zip(seen).map(|(entry, seen)| match seen {
        SchemaNode::Same | SchemaNode::Open => entry.clone(),
        SchemaNode::Changed(node) => node,
    });
    SchemaNode::Changed(Node { data: Data::List(entries.collect()), span: list.span.clone() })
}
