//! Looks up names in manifests: a `kind`, a section, or a field at any depth.

use std::collections::BTreeSet;

use super::{CONFIG, DocumentKind, layers};
use crate::{
    catalogue::{
        self,
        reference::{self, FieldReference},
    },
    field::Scope,
    value::Json,
};

/// The description of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The kinds of documents that have it.
    pub kinds: Vec<DocumentKind>,
    /// The place that has it instead of documents.
    elsewhere: Option<&'static str>,
    /// The name with its parents; empty for a kind itself.
    pub name: String,
    /// Its description.
    pub described: FieldReference,
    /// The fields that creating an entry needs, as a sentence.
    pub needs: Option<String>,
    /// The names below it.
    pub within: Vec<String>,
}

/// The description of `name` for each kind of document; equal ones are joined. It may start with a
/// kind, as in `group settings.visibility` or `Defaults.match`.
pub fn known(name: &str) -> Vec<Known> {
    let (first, rest) = name.split_once([' ', '.']).unwrap_or((name, ""));
    let (named, others): (Vec<_>, Vec<_>) =
        DocumentKind::ALL.into_iter().partition(|kind| kind.name().eq_ignore_ascii_case(first));
    let all = if named.is_empty() {
        // Rules have the same fields as groups and projects.
        let (containers, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|kind| matches!(kind, DocumentKind::Container(_)));
        let found = describe_in(containers, name);
        if found.is_empty() { describe_in(others, name) } else { found }
    } else {
        describe_in(named, rest)
    };
    let mut once: Vec<Known> = Vec::new();
    for next in all {
        match once.iter_mut().find(|one| one.has_equal_text(&next)) {
            Some(one) => one.kinds.extend(next.kinds),
            None => once.push(next),
        }
    }
    if once.is_empty() {
        once.extend(describe_elsewhere("any entry or value", &layers::in_values(), name));
    }
    once.extend(describe_elsewhere("`undrift.yaml`", &CONFIG.schema, name));
    once
}

/// The description of `name` in documents of each of `kinds` that has it.
fn describe_in(kinds: Vec<DocumentKind>, name: &str) -> Vec<Known> {
    kinds.into_iter().filter_map(|kind| describe_in_kind(kind, name)).collect()
}

/// The description of `name` in `place`, whose schema is `root`.
fn describe_elsewhere(place: &'static str, root: &Json, name: &str) -> Option<Known> {
    let known = find_in_schema(root, name).filter(|_| !name.is_empty())?;
    Some(Known { elsewhere: Some(place), ..known })
}

impl Known {
    /// The kinds of documents in words.
    pub fn labels(&self) -> Vec<String> {
        let mut labels = Vec::from_iter(self.elsewhere.map(str::to_owned));
        for kind in &self.kinds {
            let label = format!("`kind: {}`", kind.name());
            match kind.is_for() {
                _ if labels.contains(&label) => {}
                Some(Scope::Group) => labels.push(format!("{label} with `for: Group`")),
                _ => labels.push(label),
            }
        }
        labels
    }

    fn has_equal_text(&self, other: &Self) -> bool {
        (&self.described, &self.needs, &self.within)
            == (&other.described, &other.needs, &other.within)
    }
}

/// Every name that [`known`] knows, without a kind before it: of documents and of `undrift.yaml`.
pub fn all_names() -> BTreeSet<String> {
    let mut names = names();
    collect_names("", &CONFIG.schema, &mut names);
    names
}

/// Every name in a document.
pub fn names() -> BTreeSet<String> {
    let mut names: BTreeSet<_> = DocumentKind::names().into_iter().map(str::to_owned).collect();
    for kind in DocumentKind::ALL {
        collect_names("", &kind.checker().schema, &mut names);
    }
    collect_names("", &layers::in_values(), &mut names);
    names
}

/// The full names whose last part is `name`.
pub fn with_last_name(name: &str) -> Vec<String> {
    let mut names = all_names();
    names.retain(|full| full.rsplit_once('.').is_some_and(|(_, last)| last == name));
    names.into_iter().collect()
}

/// The description of `name` in documents of this `kind`; of the kind itself if it is empty.
fn describe_in_kind(kind: DocumentKind, name: &str) -> Option<Known> {
    let known = find_in_schema(&kind.checker().schema, name)?;
    let section = kind.scope().and_then(|scope| catalogue::section(scope, name));
    Some(Known {
        kinds: vec![kind],
        needs: section.and_then(reference::needed_fields_sentence),
        ..known
    })
}

/// The description of `name` in the schema `root`.
fn find_in_schema(root: &Json, name: &str) -> Option<Known> {
    let (mut property, mut schema) = (root, root);
    for part in name.split('.').filter(|_| !name.is_empty()) {
        schema = mappings_in(property).find(|object| object["properties"].get(part).is_some())?;
        property = &schema["properties"][part];
    }
    let within = mappings_in(property).filter_map(|object| object["properties"].as_object());
    Some(Known {
        kinds: Vec::new(),
        elsewhere: None,
        name: name.to_owned(),
        described: reference::describe(property, schema),
        needs: None,
        within: within.flat_map(|properties| properties.keys().cloned()).collect(),
    })
}

/// The schemas of the mappings in a value of `schema`.
fn mappings_in(schema: &Json) -> impl Iterator<Item = &Json> {
    [schema, &schema["items"]].into_iter().filter(|schema| schema.get("properties").is_some())
}

fn collect_names(prefix: &str, schema: &Json, names: &mut BTreeSet<String>) {
    for object in mappings_in(schema) {
        for (name, property) in object["properties"].as_object().into_iter().flatten() {
            let name = format!("{prefix}{name}");
            collect_names(&format!("{name}."), property, names);
            names.insert(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for name in all_names() {
            assert!(!known(&name).is_empty(), "{name}");
        }
        assert!(known("settings.merge_mehtod").is_empty() && known("group archived").is_empty());
    }

    #[test]
    fn a_name_with_several_meanings_has_one_for_each_kind() {
        let labels = |known: Known| known.labels();
        let kinds = |name: &str| -> Vec<_> { known(name).into_iter().map(labels).collect() };
        assert_eq!(kinds("watch"), [["`kind: Project`", "`kind: Group`"]]);
        assert_eq!(kinds("settings"), [["`kind: Project`"], ["`kind: Group`"]]);
        assert_eq!(kinds("group settings.visibility"), [["`kind: Group`"]]);
        assert_eq!(kinds("match.path"), [["`kind: Defaults`"]]);
        let both = [["`kind: Defaults`"], ["`kind: Defaults` with `for: Group`"]];
        assert_eq!(kinds("Defaults"), both);
        assert_eq!(with_last_name("masked"), ["variables.masked"]);
    }
}
