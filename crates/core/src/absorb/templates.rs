//! Finds nodes that are not plain values: a template, a reference, a change of a lower layer's
//! list, a condition. They are not replaced by their present result; a change of a list becomes
//! another change.

use super::edit::written_entry;
use crate::{kind::forms, value::Json, yaml::Node};

/// The keys of a change of a lower layer's list.
pub(super) const CHANGE: [&str; 2] = ["add", "remove"];

/// The node below `names` in the mapping `map`.
pub(super) fn node_at<'n>(map: &'n Node, names: &[String]) -> Option<&'n Node> {
    names.iter().try_fold(map, |node, name| written_entry(node, name).map(|(_, node)| node))
}

/// What `node` is, in words, if it is not a value.
pub(super) fn expression_kind(node: &Node) -> Option<&'static str> {
    let kinds: [(&[&str], _); 4] = [
        (&["text"], "as a template"),
        (&["env", "file"], "as a reference"),
        (&CHANGE, "as a change of lower layers"),
        (&forms::CONDITION, "as a condition on the live value"),
    ];
    let mut kinds = kinds.into_iter();
    kinds.find(|(names, _)| has_any(node, names)).map(|(_, kind)| kind)
}

/// Whether `node` is a mapping with one of these keys.
fn has_any(node: &Node, names: &[&str]) -> bool {
    names.iter().any(|name| node.get(name).is_some())
}

/// The items of `list` that `others` lack.
fn difference(list: &[Json], others: &[Json]) -> Vec<Json> {
    list.iter().filter(|item| !others.contains(item)).cloned().collect()
}

/// The new content of a change of a list in `node`. It resulted in `declared`, and must result in
/// `wanted`. `None` if it is not a change of a list, or if one of its lists would become empty.
pub(super) fn list_change(
    node: &Node,
    declared: &[Json],
    wanted: &[Json],
) -> Option<Vec<(&'static str, Vec<Json>)>> {
    let (more, less) = (difference(wanted, declared), difference(declared, wanted));
    let [added, removed] = CHANGE.map(|key| match node.get(key).map(|(_, list)| list.to_json()) {
        Some(Json::Array(list)) => list,
        _ => Vec::new(),
    });
    let add = [difference(&added, &less), difference(&more, &removed)].concat();
    let remove = [difference(&removed, &more), difference(&less, &added)].concat();
    let lists = [(CHANGE[0], add, added), (CHANGE[1], remove, removed)];
    let is_sound = has_any(node, &CHANGE)
        && lists.iter().all(|(_, new, old)| !new.is_empty() || old.is_empty());
    let changed = lists.into_iter().filter(|(_, new, old)| new != old);
    is_sound.then(|| changed.map(|(key, new, _)| (key, new)).collect())
}
