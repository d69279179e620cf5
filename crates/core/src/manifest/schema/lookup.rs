//! Finds descriptions of the names in manifests: of a `kind`, a section, or a field at any depth.

use std::collections::BTreeSet;

use super::{CONFIG_CHECKER, DocumentKind, container::value_keys_schema};
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
pub struct NameDescription {
    /// The places of the name, in words: kinds of documents, `undrift.yaml`, or any entry.
    pub contexts: Vec<String>,
    /// The full name, such as `settings.visibility`; empty for a kind.
    pub name: String,
    /// The description of the name.
    pub field: FieldReference,
    /// A sentence about the fields that a new entry needs, if the name is a section.
    pub required_fields: Option<String>,
    /// The names that are directly below this name.
    pub inner_names: Vec<String>,
}

/// The description of `name` in each kind of document. Equal descriptions are joined. `name` may
/// start with a kind, as in `group settings.visibility` or `Defaults.match`.
pub fn describe_name(name: &str) -> Vec<NameDescription> {
    let (first_word, inner_name) = name.split_once([' ', '.']).unwrap_or((name, ""));
    let mut kinds = DocumentKind::ALL.to_vec();
    kinds.retain(|kind| kind.name().eq_ignore_ascii_case(first_word));
    let (kinds, name_in_kinds) =
        if kinds.is_empty() { (DocumentKind::ALL.to_vec(), name) } else { (kinds, inner_name) };
    let matches =
        kinds.iter().filter_map(|kind| Some((kind, describe_in_kind(*kind, name_in_kinds)?)));
    let (container_matches, other_matches): (Vec<_>, Vec<_>) =
        matches.partition(|(kind, _)| matches!(kind, DocumentKind::Container(_)));
    // Rules have the same fields as groups and projects.
    let all_descriptions =
        if container_matches.is_empty() { other_matches } else { container_matches };
    let mut descriptions: Vec<NameDescription> = Vec::new();
    for (_, mut description) in all_descriptions {
        if let Some(existing) = descriptions.iter_mut().find(|candidate: &&mut NameDescription| {
            (&candidate.field, &candidate.required_fields, &candidate.inner_names)
                == (&description.field, &description.required_fields, &description.inner_names)
        }) {
            // The context of a rule for groups starts with the context of a rule for projects. Of
            // the two contexts, list only the one for projects.
            description.contexts.retain(|context| {
                !existing.contexts.iter().any(|other| context.starts_with(other))
            });
            existing.contexts.append(&mut description.contexts);
        } else {
            descriptions.push(description);
        }
    }
    if descriptions.is_empty() {
        descriptions.extend(describe_in_schema("any entry or value", &value_keys_schema(), name));
    }
    descriptions.extend(describe_in_schema("`undrift.yaml`", &CONFIG_CHECKER.schema, name));
    descriptions
}

/// The description of `name` in `context`, whose schema is `root`.
fn describe_in_schema(context: &'static str, root: &Json, name: &str) -> Option<NameDescription> {
    let description = find_in_schema(root, name).filter(|_| !name.is_empty())?;
    Some(NameDescription { contexts: vec![context.to_owned()], ..description })
}

/// Every name that [`describe_name`] knows, in documents and in `undrift.yaml`, without a kind at
/// the start.
pub fn all_names() -> BTreeSet<String> {
    let mut names = document_names();
    collect_names("", &CONFIG_CHECKER.schema, &mut names);
    names
}

/// Every name in a document.
pub fn document_names() -> BTreeSet<String> {
    let mut names: BTreeSet<_> = DocumentKind::names().into_iter().map(str::to_owned).collect();
    for kind in DocumentKind::ALL {
        collect_names("", &kind.checker().schema, &mut names);
    }
    collect_names("", &value_keys_schema(), &mut names);
    names
}

/// The full names whose last part is `name`.
pub fn find_full_names(name: &str) -> Vec<String> {
    let mut names = all_names();
    names.retain(|full_name| full_name.rsplit_once('.').is_some_and(|(_, last)| last == name));
    names.into_iter().collect()
}

/// The description of `name` in documents of this `kind`. If `name` is empty, the description of
/// the kind itself.
fn describe_in_kind(kind: DocumentKind, name: &str) -> Option<NameDescription> {
    let description = find_in_schema(&kind.checker().schema, name)?;
    let section = kind.scope().and_then(|scope| catalogue::find_section(scope, name));
    let rule_suffix =
        if kind.rule_scope() == Some(Scope::Group) { " with `for: Group`" } else { "" };
    let contexts = vec![format!("`kind: {}`{rule_suffix}", kind.name())];
    Some(NameDescription {
        contexts,
        required_fields: section.and_then(reference::required_fields_sentence),
        ..description
    })
}

/// The description of `name` in the schema `root`.
fn find_in_schema(root: &Json, name: &str) -> Option<NameDescription> {
    let (mut property, mut schema) = (root, root);
    for key in name.split('.').filter(|_| !name.is_empty()) {
        schema =
            mapping_schemas(property).find(|mapping| mapping["properties"].get(key).is_some())?;
        property = &schema["properties"][key];
    }
    let inner_mappings =
        mapping_schemas(property).filter_map(|mapping| mapping["properties"].as_object());
    Some(NameDescription {
        contexts: Vec::new(),
        name: name.to_owned(),
        field: reference::describe_field(property, schema),
        required_fields: None,
        inner_names: inner_mappings.flat_map(|properties| properties.keys().cloned()).collect(),
    })
}

/// The schemas of mappings in a value of `schema`: of the value itself, and of the items of a list.
fn mapping_schemas(schema: &Json) -> impl Iterator<Item = &Json> {
    [schema, &schema["items"]].into_iter().filter(|schema| schema.get("properties").is_some())
}

fn collect_names(prefix: &str, schema: &Json, names: &mut BTreeSet<String>) {
    for mapping in mapping_schemas(schema) {
        for (name, property) in mapping["properties"].as_object().into_iter().flatten() {
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
    fn every_name_has_a_description() {
        for name in all_names() {
            assert!(!describe_name(&name).is_empty(), "{name}");
        }
        assert!(
            describe_name("settings.merge_mehtod").is_empty()
                && describe_name("group archived").is_empty()
        );
    }

    #[test]
    fn a_name_with_several_meanings_has_one_for_each_kind() {
        let find_contexts = |name: &str| -> Vec<_> {
            describe_name(name).into_iter().map(|description| description.contexts).collect()
        };
        assert_eq!(find_contexts("watch"), [["`kind: Project`", "`kind: Group`"]]);
        assert_eq!(find_contexts("settings"), [["`kind: Project`"], ["`kind: Group`"]]);
        assert_eq!(find_contexts("group settings.visibility"), [["`kind: Group`"]]);
        assert_eq!(find_contexts("match.path"), [["`kind: Defaults`"]]);
        let rule_contexts = [["`kind: Defaults`"], ["`kind: Defaults` with `for: Group`"]];
        assert_eq!(find_contexts("Defaults"), rule_contexts);
        assert_eq!(find_full_names("masked"), ["variables.masked"]);
    }
}
