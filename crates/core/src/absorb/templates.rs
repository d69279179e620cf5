//! Finds nodes that are not plain values: a template, a reference, a change of a lower layer's
//! list, a condition. They are not replaced by their present result; a change of a list becomes
//! another change.

use super::edit::written_entry;
use crate::{
    kind::forms,
    value::Json,
    yaml::{Data, Node},
};

/// The keys of a change of a lower layer's list.
pub(super) const CHANGE: [&str; 2] = ["add", "remove"];

/// The node below `names` in the mapping `map`.
pub(super) fn node_at<'n>(map: &'n Node, names: &[String]) -> Option<&'n Node> {
    names.iter().try_fold(map, |node, name| written_entry(node, name).map(|(_, node)| node))
}

/// What `node` is, in words, if it is not a value.
pub(super) fn expression_kind(node: &Node) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().any(|name| node.get(name).is_some());
    match &node.data {
        Data::Map(_) if has(&["text"]) => Some("as a template"),
        Data::Map(_) if has(&["env", "file"]) => Some("as a reference"),
        Data::Map(_) if has(&CHANGE) => Some("as a change of lower layers"),
        Data::Map(_) if has(&forms::CONDITION) => Some("as a condition on the live value"),
        _ => None,
    }
}

/// The new content of a change of a list in `node`. It resulted in `declared`, and must result in
/// `wanted`. `None` if it is not a change of a list, or if one of its lists would become empty.
pub(super) fn change(
    node: &Node,
    declared: &[Json],
    wanted: &[Json],
) -> Option<Vec<(&'static str, Vec<Json>)>> {
    let difference = |some: &[Json], others: &[Json]| -> Vec<Json> {
        some.iter().filter(|item| !others.contains(item)).cloned().collect()
    };
    let (more, less) = (difference(wanted, declared), difference(declared, wanted));
    let [added, removed] = CHANGE.map(|key| match node.get(key).map(|(_, list)| list.to_json()) {
        Some(Json::Array(list)) => list,
        _ => Vec::new(),
    });
    let add = [difference(&added, &less), difference(&more, &removed)].concat();
    let remove = [difference(&removed, &more), difference(&less, &added)].concat();
    let lists = [(CHANGE[0], add, added), (CHANGE[1], remove, removed)];
    let is_sound = CHANGE.iter().any(|key| node.get(key).is_some())
        && lists.iter().all(|(_, new, old)| !new.is_empty() || old.is_empty());
    let changed = lists.into_iter().filter(|(_, new, old)| new != old);
    is_sound.then(|| changed.map(|(key, new, _)| (key, new)).collect())
}
