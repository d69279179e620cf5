//! What is looked at of a project object, so that the rest of an answer is not kept.

use std::{borrow::Cow, collections::BTreeSet};

use super::declared_names;
use crate::{field::Tier, kind::Kind, manifest::Project, operation::Wanted};

/// What is looked at whatever is declared, by the functions beside [`super::Observer`]'s search for
/// projects and by the kinds.
const ALWAYS: [&str; 9] = [
    "id",
    "path_with_namespace",
    "archived",
    "empty_repo",
    "marked_for_deletion_at",
    "marked_for_deletion_on",
    "namespace",
    "owner",
    "permissions",
];

/// What is looked at of any of the objects of `projects`.
pub(super) fn of_objects<'p>(projects: impl IntoIterator<Item = &'p Project>) -> Wanted {
    let mut keys = BTreeSet::from(ALWAYS);
    for section in projects.into_iter().flat_map(|project| project.sections.values()) {
        add(section.kind, &declared_names(section), &mut keys);
    }
    Wanted::keys(keys.into_iter().map(|key| Cow::Owned(key.to_owned())))
}

/// Adds what `kind` looks at to read what is `declared` out of an object.
fn add<'p>(kind: &'static dyn Kind, declared: &BTreeSet<&'p str>, keys: &mut BTreeSet<&'p str>) {
    let table = kind.table();
    keys.insert(kind.handle().0);
    keys.extend(kind.rows().keys.iter().chain(kind.rows().also));
    // That a field of a higher tier is there says that the service has this tier.
    let always = table.specs().iter().filter(|spec| {
        spec.field.tier > Tier::Free
            || kind.identity().contains(&spec.name.as_str())
            || kind.sent_with_every_edit(&spec.name)
    });
    for name in declared.iter().copied().chain(always.map(|spec| spec.name.as_str())) {
        let field = table.field(name);
        keys.extend(field.live_name(name));
        // What replaces a deprecated field is read where an answer leaves that out.
        keys.extend(field.replaced_by.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{Source, Target},
        kinds::KINDS,
        value::Object,
    };

    /// Whatever field is declared, a kind reads the same from what is kept as from everything.
    #[test]
    fn what_is_kept_is_enough_to_read_any_field() {
        let target = Target { path: "acme/shop".into(), id: None, namespace: None };
        for kind in KINDS.iter().filter(|kind| matches!(kind.source(&target), Source::Project)) {
            let specs = kind.table().specs();
            let live = |deprecated: bool, tier: Tier| -> Object {
                let said = specs.iter().filter(|spec| {
                    (deprecated || spec.field.replaced_by.is_none()) && spec.field.tier <= tier
                });
                let names = said.filter_map(|spec| spec.field.live_name(&spec.name));
                let more = [("id", json!(7)), ("added_by_hand", json!(1)), ("other", json!(2))];
                let more = more.map(|(name, value)| (name.to_owned(), value));
                names.map(|name| (name.to_owned(), json!(name))).chain(more).collect()
            };
            let names = specs.iter().map(|spec| spec.name.as_str()).chain(["added_by_hand"]);
            for (name, empty, deprecated, tier) in names.flat_map(|name| {
                let tiers = [Tier::Free, Tier::Premium, Tier::Ultimate];
                let cases = tiers.into_iter().flat_map(|tier| {
                    [(true, true), (true, false), (false, true), (false, false)]
                        .map(|(empty, deprecated)| (empty, deprecated, tier))
                });
                cases.map(move |(empty, deprecated, tier)| (name, empty, deprecated, tier))
            }) {
                let mut raw = live(deprecated, tier);
                raw.insert("empty_repo".into(), empty.into());
                let mut keys = BTreeSet::from(ALWAYS);
                add(*kind, &BTreeSet::from([name]), &mut keys);
                let mut kept = raw.clone();
                kept.retain(|key, _| keys.contains(key.as_str()));
                let read = |raw| kind.read(raw, &|wanted| wanted == name);
                assert!(read(&raw) == read(&kept), "{}.{name} of {raw:?}", kind.section());
                assert!(!kept.contains_key("other"));
            }
        }
    }
}
