//! What stands in a document instead of a value: a template, a reference, a change of the list of
//! lower layers, a condition. It is not replaced by what it happens to come to; a change of a list
//! becomes another one.

use super::edit::own;
use crate::{
    kind::forms,
    value::Json,
    yaml::{Data, Node},
};

/// The keys of what changes the list of lower layers.
pub(super) const CHANGE: [&str; 2] = ["add", "remove"];

/// What is written below `names` in the mapping `map`.
pub(super) fn written<'n>(map: &'n Node, names: &[String]) -> Option<&'n Node> {
    names.iter().try_fold(map, |node, name| own(node, name).map(|(_, node)| node))
}

/// What stands in `node` if it is something else than a value, in words.
pub(super) fn in_words(node: &Node) -> Option<&'static str> {
    let has = |names: &[&str]| names.iter().any(|name| node.get(name).is_some());
    match &node.data {
        Data::Map(_) if has(&["text"]) => Some("as a template"),
        Data::Map(_) if has(&["env", "file"]) => Some("as a reference"),
        Data::Map(_) if has(&CHANGE) => Some("as a change of what lower layers say"),
        Data::Map(_) if has(&forms::CONDITION) => Some("as a condition on what is there"),
        _ => None,
    }
}

/// What of the change of a list in `node`, that came to `declared`, has to be another list so that
/// it comes to `wished`; nothing if it is no change, or one of its lists would become empty.
pub(super) fn change(
    node: &Node,
    declared: &[Json],
    wished: &[Json],
) -> Option<Vec<(&'static str, Vec<Json>)>> {
    let only = |some: &[Json], others: &[Json]| -> Vec<Json> {
        some.iter().filter(|item| !others.contains(item)).cloned().collect()
    };
    let (more, less) = (only(wished, declared), only(declared, wished));
    let list = |key: &str| match node.get(key).map(|(_, list)| list.to_json()) {
        Some(Json::Array(list)) => list,
        _ => Vec::new(),
    };
    let [added, removed] = CHANGE.map(list);
    let add = [only(&added, &less), only(&more, &removed)].concat();
    let remove = [only(&removed, &more), only(&less, &added)].concat();
    let lists = [(CHANGE[0], add, added), (CHANGE[1], remove, removed)];
    let is_sound = CHANGE.iter().any(|key| node.get(key).is_some())
        && lists.iter().all(|(_, new, old)| !new.is_empty() || old.is_empty());
    let changed = lists.into_iter().filter(|(_, new, old)| new != old);
    is_sound.then(|| changed.map(|(key, new, _)| (key, new)).collect())
}
