//! Writes a seed for the sandbox and placeholders for secrets, so that `apply` accepts the exported
//! manifests in the sandbox.
//!
//! The seed contains the users, groups, projects and runners that the manifests name. The seed also
//! contains the branches that fields need, and the entries that no request creates.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ExportedFile,
    document::{DocEntry, DocSection, ExportedDocument, SecretReference},
    files::stable_hash,
};
use crate::{
    address::groups_above,
    catalogue::preset,
    field::{NamedObject, Scope, Tier},
    kind::{Effect, Risk, Section, forms, risk, visibility_rank},
    release::DetectedRelease,
    text,
    value::{Fields, Json, Object},
    yaml::write::{self, MapItem, OutputNode},
};

/// The project that owns the runners of a seed.
const RUNNER_PROJECT: &str = "rehearsal/runners";
/// The seed for `documents` and the placeholders for their secrets, as files. Call this function
/// before values move into `Defaults`.
pub(super) fn seed_files(
    documents: &[ExportedDocument],
    release: DetectedRelease,
) -> Vec<ExportedFile> {
    let text = write::render_document(&seed_items(documents, release));
    let seed = ExportedFile { path: "sandbox.yaml".into(), text };
    let secrets = documents.iter().flat_map(|document| &document.secrets);
    let lines: BTreeSet<_> = secrets.map(placeholder_line).collect();
    let values = (!lines.is_empty()).then(|| ExportedFile {
        path: "sandbox.env".into(),
        text: std::iter::once("# Placeholders for the sandbox.\n".to_owned())
            .chain(lines)
            .collect(),
    });
    std::iter::once(seed).chain(values).collect()
}

/// The line that assigns a placeholder to the environment variable of a secret.
fn placeholder_line(secret: &SecretReference) -> String {
    let field = secret.section.field(&secret.field);
    let value = match secret.value.expose() {
        // The service cannot mask a value with the characters of a URL, so use a placeholder that
        // is not a URL.
        _ if field.relations.hidden_by.is_some() => "",
        // The service does not show this value. The field may need a URL, so use a URL as the
        // placeholder.
        "" => "https://example.org",
        value => value,
    };
    format!("{}='{}'\n", secret.name, placeholder(&secret.name, value))
}

/// Omits members whose level is below their level in a group above, and returns the number of
/// omitted members. The service refuses to add these members. On the original service, their level
/// in the group above was raised later.
pub(super) fn omit_lower_members(documents: &mut [ExportedDocument]) -> usize {
    let mut levels_above: BTreeMap<(String, String), u8> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.scope == Scope::Group) {
        for (section, fields) in document_entries(document) {
            if let Some((user, level)) = granted_access(section, &fields) {
                levels_above.insert((document.path.to_lowercase(), user), level);
            }
        }
    }
    let mut count = 0;
    for document in documents {
        let group_paths = ancestor_paths(&document.path);
        for doc_section in &mut document.sections {
            let (section, comments) = (doc_section.section, &mut doc_section.comments);
            doc_section.entries.retain(|entry| {
                let access = granted_access(section, &entry_fields(entry));
                let Some((user, level)) = access else { return true };
                let keeps_access = group_paths.iter().all(|group| {
                    let inherited = levels_above.get(&(group.clone(), user.clone()));
                    inherited.is_none_or(|inherited| *inherited <= level)
                });
                if !keeps_access {
                    let user = text::escape(&user);
                    comments.push(format!("Not exported: {user} (below the inherited level)"));
                    count += 1;
                }
                keeps_access
            });
        }
    }
    count
}

/// The user, in lower case, and the level of an entry that gives somebody access.
fn granted_access(section: Section, fields: &Fields) -> Option<(String, u8)> {
    let user = find_named_object(section, fields, NamedObject::User)?;
    creation_effects(section, fields).into_iter().find_map(|effect| match effect {
        Effect::Access { after, .. } => Some((user.to_lowercase(), after)),
        _ => None,
    })
}

fn seed_items(documents: &[ExportedDocument], release: DetectedRelease) -> Vec<MapItem> {
    // The names of objects in the documents, by type and by lower-case name.
    let mut names_by_type: BTreeMap<NamedObject, BTreeMap<String, String>> = BTreeMap::new();
    // The paths of the projects that name each runner.
    let mut runners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for document in documents {
        for (section, fields) in document_entries(document) {
            for (_, object_type, name) in forms::referenced_names(section, &fields) {
                if object_type == NamedObject::Runner {
                    runners.entry(name).or_default().insert(&document.path);
                } else {
                    names_by_type.entry(object_type).or_default().insert(name.to_lowercase(), name);
                }
            }
        }
    }
    for document in documents.iter().filter(|document| document.is_personal) {
        let owner = document.path.split('/').next().unwrap_or_default();
        let users = names_by_type.entry(NamedObject::User).or_default();
        users.insert(owner.to_lowercase(), owner.to_owned());
    }
    let [users, named_groups, named_projects] =
        [NamedObject::User, NamedObject::Group, NamedObject::Project]
            .map(|kind| names_by_type.remove(&kind).unwrap_or_default());
    let users = users.into_values().map(|name| vec![MapItem::value("username", name)]);
    let mut projects: Vec<_> = documents.iter().filter_map(seed_project).collect();
    let groups = seed_groups(documents, &projects, named_groups).map(|(path, visibility)| {
        let visibility = visibility.map(|word| MapItem::value("visibility", word));
        std::iter::once(MapItem::value("path", path)).chain(visibility).collect()
    });
    let groups: Vec<_> = groups.collect();
    let declared_paths: BTreeSet<_> =
        documents.iter().map(|document| document.path.to_lowercase()).collect();
    let undeclared_projects =
        named_projects.into_iter().filter(|(lower, _)| !declared_paths.contains(lower));
    projects.extend(
        undeclared_projects.map(|(_, path)| (path.clone(), vec![MapItem::value("path", path)])),
    );
    let runner_owner = (!runners.is_empty()).then(|| vec![MapItem::value("path", RUNNER_PROJECT)]);
    projects.extend(runner_owner.map(|items| (RUNNER_PROJECT.to_owned(), items)));
    let runners = runners.into_iter().map(|(runner, project_paths)| {
        let project_paths: Vec<_> =
            std::iter::once(RUNNER_PROJECT).chain(project_paths).map(Json::from).collect();
        vec![MapItem::value("description", runner), MapItem::value("projects", project_paths)]
    });
    let lists = [
        seed_list("users", users),
        seed_list("groups", groups.into_iter()),
        seed_list("projects", projects.into_iter().map(|(_, items)| items)),
        seed_list("runners", runners),
    ];
    let tier = documents.iter().map(|document| document.tier).max().unwrap_or(Tier::Free);
    let release = release.release().map(|release| MapItem::value("release", release.to_string()));
    let head = std::iter::once(MapItem::value("tier", tier.to_string())).chain(release);
    head.chain(lists.into_iter().flatten()).collect()
}

fn seed_list(name: &str, rows: impl Iterator<Item = Vec<MapItem>>) -> Option<MapItem> {
    let list_rows: Vec<_> = rows.map(|items| (items, None)).collect();
    (!list_rows.is_empty()).then(|| MapItem::new(name, OutputNode::List(list_rows)))
}

/// The paths of the groups in the seed, each with its visibility. The result contains
/// `named_groups`, groups above seeded `projects`, groups that `apply` does not create, and
/// unexported groups above exported objects.
fn seed_groups(
    documents: &[ExportedDocument],
    projects: &[(String, Vec<MapItem>)],
    named_groups: BTreeMap<String, String>,
) -> impl Iterator<Item = (String, Option<String>)> {
    // The groups above a seeded project must exist too, and must be at least as visible as the
    // project.
    let seed_ancestors: BTreeSet<String> =
        projects.iter().flat_map(|(path, _)| ancestor_paths(path)).collect();
    let exported_groups = documents.iter().filter(|document| document.scope == Scope::Group);
    let exported_groups: BTreeMap<String, &ExportedDocument> =
        exported_groups.map(|document| (document.path.to_lowercase(), document)).collect();
    let mut groups: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
    for (lower_path, document) in &exported_groups {
        if seed_ancestors.contains(lower_path) || !document.can_be_created() {
            groups
                .insert(lower_path.clone(), (document.path.to_string(), seed_visibility(document)));
        }
    }
    // `apply` does not create groups that are not exported. Seed these groups, at least as visible
    // as their contents.
    for document in documents.iter().filter(|document| !document.is_personal) {
        let visibility = seed_visibility(document);
        for group in ancestor_paths(&document.path)
            .into_iter()
            .filter(|group_path| !exported_groups.contains_key(group_path))
        {
            let path = document.path[..group.len()].to_owned();
            let (_, widest) = groups.entry(group).or_insert((path, None));
            if widest.as_deref().map(visibility_rank) < visibility.as_deref().map(visibility_rank) {
                widest.clone_from(&visibility);
            }
        }
    }
    for (lower, path) in
        named_groups.into_iter().filter(|(lower, _)| !exported_groups.contains_key(lower))
    {
        groups.entry(lower).or_insert((path, None));
    }
    groups.into_values()
}

/// The path and the seed of a project that `apply` alone cannot create; `None` for other projects.
/// The seed contains:
/// - archived projects, because their groups often do not allow anybody to create projects;
/// - projects with a field that needs an existing branch;
/// - projects with entries that no request creates. Left out are projects that also have entries
///   that a guard refuses to add to an existing project, but not to a new one;
/// - projects with a runner, because a guard refuses to add a runner even to a new project;
/// - projects with a path that is not valid for new projects.
fn seed_project(document: &ExportedDocument) -> Option<(String, Vec<MapItem>)> {
    let branch = document.sections.iter().find_map(required_branch);
    let seeded_sections = document.sections.iter().filter(|doc_section| {
        doc_section.section.is_only_edited()
            && !doc_section.entries.is_empty()
            && !has_guarded_entry(document)
    });
    let seeded_sections: Vec<_> = seeded_sections.collect();
    let has_runner = document_entries(document).any(|(section, fields)| {
        find_named_object(section, &fields, NamedObject::Runner).is_some()
    });
    let is_creatable = branch.is_none()
        && seeded_sections.is_empty()
        && !has_runner
        && !document.is_archived
        && document.can_be_created();
    if document.scope != Scope::Project || is_creatable {
        return None;
    }
    let mut items = vec![MapItem::value("path", &*document.path)];
    if let Some(word) = seed_visibility(document) {
        let settings = Object::from_iter([("visibility".to_owned(), word.into())]);
        items.push(MapItem::value("settings", Json::Object(settings)));
    }
    items.extend(branch.map(|branch| MapItem::value("branches", vec![branch])));
    items.extend(seeded_sections.into_iter().map(|doc_section| {
        let names = doc_section.entries.iter().map(|entry| Json::from(&*entry.key));
        MapItem::value(doc_section.name(), names.collect::<Vec<_>>())
    }));
    items.extend(document.is_archived.then(|| MapItem::value("archived", true)));
    Some((document.path.to_string(), items))
}

/// True if a guard would refuse to add one of the document's entries to an existing project.
/// Ignores runners, because the seed contains them.
fn has_guarded_entry(document: &ExportedDocument) -> bool {
    document_entries(document).any(|(section, fields)| {
        let find_default = |name: &str| preset::service_default(section, name, &document.path);
        let risks = risk::creation_risks(section, find_default, &forms::plain_fields(&fields));
        let mut effects = creation_effects(section, &fields).into_iter().chain(risks);
        find_named_object(section, &fields, NamedObject::Runner).is_none()
            && !section.is_created_with_container()
            && effects.any(|effect| matches!(effect, Effect::Risk(Risk::Opens | Risk::Weakens, _)))
    })
}

/// The name of the first object of type `object_type` that an entry with `fields` names.
fn find_named_object(
    section: Section,
    fields: &Fields,
    object_type: NamedObject,
) -> Option<String> {
    let mut names = forms::referenced_names(section, fields).into_iter();
    names.find(|(_, other_type, _)| *other_type == object_type).map(|(.., name)| name)
}

/// The effects of adding an entry with these fields.
fn creation_effects(section: Section, fields: &Fields) -> Vec<Effect> {
    section.rules().effects(None, &Object::new(), &forms::plain_fields(fields))
}

/// The entries of a document, each with its section.
fn document_entries(document: &ExportedDocument) -> impl Iterator<Item = (Section, Fields)> {
    document.sections.iter().flat_map(|doc_section| {
        doc_section.entries.iter().map(|entry| (doc_section.section, entry_fields(entry)))
    })
}

/// The branch that must exist before `apply` can set a field of a section; `None` without such a
/// field.
fn required_branch(doc_section: &DocSection) -> Option<Json> {
    let fields = doc_section.entries.first().map(entry_fields)?;
    let section = doc_section.section;
    let mut names = fields.keys();
    let waiting_field = names
        .find(|name| section.rules().wait_reason(section, name, &fields, None, true).is_some());
    fields.get(waiting_field?)?.plain_json().cloned()
}

/// The visibility that the document declares.
fn seed_visibility(document: &ExportedDocument) -> Option<String> {
    let mut effects =
        document_entries(document).flat_map(|(section, fields)| creation_effects(section, &fields));
    effects.find_map(|effect| match effect {
        Effect::Visibility { after, .. } => Some(after),
        _ => None,
    })
}

fn entry_fields(entry: &DocEntry) -> Fields {
    entry.fields.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect()
}

/// The paths of the groups above `path`, in lower case.
fn ancestor_paths(path: &str) -> Vec<String> {
    groups_above(&path.to_lowercase()).map(str::to_owned).collect()
}

/// A placeholder: a URL with the same host if `value` is a URL, otherwise a token. An export from the sandbox recognises the placeholder as
/// a secret.
fn placeholder(name: &str, value: &str) -> String {
    let token = format!("glpat-rehearsal-{:08x}", stable_hash(name));
    let url = url::Url::parse(value).ok();
    match url.as_ref().and_then(|url| Some((url.scheme(), url.host_str()?))) {
        Some((scheme, host)) => format!("{scheme}://{host}/?token={token}"),
        None => token,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{field::Secrecy, secret::judge};

    #[test]
    fn placeholder_secrets_pass_the_same_checks() {
        for (value, prefix) in [
            ("abc", "glpat-rehearsal-"),
            ("https://bob:pw@h.example/x", "https://h.example/?token=glpat-rehearsal-"),
            ("two\nlines", "glpat-rehearsal-"),
        ] {
            let result = placeholder("NAME", value);
            assert!(
                result.starts_with(prefix) && judge::may_be_secret(&result, Secrecy::Sensitive),
                "{result}"
            );
        }
    }
}
