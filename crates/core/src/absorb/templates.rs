//! Finds expressions: a template, a reference, a change of a lower layer's list, a condition. An edit
//! must not replace them by a plain value. A change of a list (`add`, `remove`) can be adapted.

use super::edit::written_entry;
use crate::{kind::forms, value::Json, yaml::Node};

/// The keys of a mapping that changes the list of a lower layer.
pub(super) const CHANGE_KEYS: [&str; 2] = ["add", "remove"];

/// The node below `names` in the mapping `map`.
pub(super) fn node_at<'n>(map: &'n Node, names: &[String]) -> Option<&'n Node> {
    names.iter().try_fold(map, |node, name| written_entry(node, name).map(|(_, node)| node))
}

/// The kind of expression in `node` as text for a message; `None` for a plain value.
pub(super) fn expression_kind(node: &Node) -> Option<&'static str> {
    let kinds: [(&[&str], _); 4] = [
        (&["text"], "as a template"),
        (&["env", "file"], "as a reference"),
        (&CHANGE_KEYS, "as a change of lower layers"),
        (&forms::CONDITION_KEYS, "as a condition on the live value"),
    ];
    let mut kinds = kinds.into_iter();
    kinds.find(|(names, _)| has_any_key(node, names)).map(|(_, kind)| kind)
}

/// True if `node` is a mapping with one of these keys.
fn has_any_key(node: &Node, names: &[&str]) -> bool {
    names.iter().any(|name| node.get(name).is_some())
}

/// The items of `list` that `others` lack.
fn missing_items(list: &[Json], others: &[Json]) -> Vec<Json> {
    list.iter().filter(|item| !others.contains(item)).cloned().collect()
}

/// The new `add` and `remove` lists for `node`, which changes the list of a lower layer. The merged list
/// is `declared` and must become `target`. `None` if `node` does not change a list, or if one of its
/// lists would become empty.
pub(super) fn list_change(
    node: &Node,
    declared: &[Json],
    target: &[Json],
) -> Option<Vec<(&'static str, Vec<Json>)>> {
    let (new_items, lost_items) =
        (missing_items(target, declared), missing_items(declared, target));
    let [added, removed] =
        CHANGE_KEYS.map(|key| match node.get(key).map(|(_, list)| list.to_json()) {
            Some(Json::Array(list)) => list,
            _ => Vec::new(),
        });
    let add = [missing_items(&added, &lost_items), missing_items(&new_items, &removed)].concat();
    let remove = [missing_items(&removed, &new_items), missing_items(&lost_items, &added)].concat();
    let lists = [(CHANGE_KEYS[0], add, added), (CHANGE_KEYS[1], remove, removed)];
    let is_possible = has_any_key(node, &CHANGE_KEYS)
        && lists.iter().all(|(_, new, old)| !new.is_empty() || old.is_empty());
    let changed = lists.into_iter().filter(|(_, new, old)| new != old);
    is_possible.then(|| changed.map(|(key, new, _)| (key, new)).collect())
}
