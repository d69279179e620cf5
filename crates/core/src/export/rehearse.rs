//! A seed with which the manifests can be applied to the embedded service: the users, groups,
//! projects and runners that they name, branches, entries that no request creates, and stand-ins for
//! secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ExportedFile,
    document::{DocEntry, DocSection, ExportedDocument, SecretReference},
    layout::hash,
};
use crate::{
    address::groups_above,
    catalogue::{self, preset},
    field::{NamedObject, Scope, Tier},
    kind::{Effect, Risk, Section, forms, risk, visibility_rank},
    release::DetectedRelease,
    text,
    value::{Fields, Json, Object},
    yaml::write::{self, Item, OutputNode},
};

/// The project that owns the runners of a seed.
const RUNNER_PROJECT: &str = "rehearsal/runners";
/// The seed for `documents`, whose values are not in `Defaults` yet, and values for their secrets.
pub(super) fn seed_files(
    documents: &[ExportedDocument],
    release: DetectedRelease,
) -> Vec<ExportedFile> {
    let text = write::document(&seed_items(documents, release));
    let seed = ExportedFile { path: "sandbox.yaml".into(), text };
    let lines = documents.iter().flat_map(|document| {
        document.secrets.iter().map(move |secret| placeholder_line(document.scope, secret))
    });
    let lines: BTreeSet<_> = lines.collect();
    let values = (!lines.is_empty()).then(|| ExportedFile {
        path: "sandbox.env".into(),
        text: std::iter::once("# Placeholders for the sandbox.\n".to_owned())
            .chain(lines)
            .collect(),
    });
    std::iter::once(seed).chain(values).collect()
}

/// The assignment of a placeholder for a secret.
fn placeholder_line(scope: Scope, secret: &SecretReference) -> String {
    let section = catalogue::section(scope, secret.section);
    let field = section.map(|section| section.field(&secret.field));
    let value = match secret.value.expose() {
        // A masked value must not have the characters of a URL.
        _ if field.is_some_and(|field| field.relations.hidden_by.is_some()) => "",
        // One that the service never shows is empty, and may have to be a URL.
        "" => "https://example.org",
        value => value,
    };
    format!("{}='{}'\n", secret.name, placeholder(&secret.name, value))
}

/// Leaves out members whose level is below the one that a group above gives them: somebody raised
/// that later, and the service refuses to add them again. Returns their number.
pub(super) fn leave_out_lower_members(documents: &mut [ExportedDocument]) -> usize {
    let mut levels_above: BTreeMap<(String, String), u8> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.scope == Scope::Group) {
        for content in &document.sections {
            for entry in &content.entries {
                if let Some((user, level)) = granted_access(content.section, entry) {
                    levels_above.insert((document.path.to_lowercase(), user), level);
                }
            }
        }
    }
    let mut count = 0;
    for document in documents {
        let groups_above = ancestors(&document.path);
        for content in &mut document.sections {
            let (section, about) = (content.section, &mut content.comments);
            content.entries.retain(|entry| {
                let Some((user, level)) = granted_access(section, entry) else { return true };
                let mut inherited = groups_above
                    .iter()
                    .filter_map(|group| levels_above.get(&(group.clone(), user.clone())));
                let is_lower = inherited.any(|inherited| *inherited > level);
                if is_lower {
                    let user = text::escape(&user);
                    about.push(format!("Not exported: {user} (below the inherited level)"));
                    count += 1;
                }
                !is_lower
            });
        }
    }
    count
}

/// The user, in lower case, and the level of an entry that gives somebody access.
fn granted_access(section: Section, entry: &DocEntry) -> Option<(String, u8)> {
    let fields = plain_fields(entry);
    let (.., user) = forms::referenced_names(section, &fields)
        .into_iter()
        .find(|(_, kind, _)| *kind == NamedObject::User)?;
    creation_effects(section, &fields).into_iter().find_map(|effect| match effect {
        Effect::Access { after, .. } => Some((user.to_lowercase(), after)),
        _ => None,
    })
}

fn seed_items(documents: &[ExportedDocument], release: DetectedRelease) -> Vec<Item> {
    // What documents name, by kind: each name by its lower case.
    let mut names_by_type: BTreeMap<NamedObject, BTreeMap<String, String>> = BTreeMap::new();
    // The projects that have each runner.
    let mut runners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for document in documents {
        for (section, fields) in document_entries(document) {
            for (_, kind, name) in forms::referenced_names(section, &fields) {
                if kind == NamedObject::Runner {
                    runners.entry(name).or_default().insert(&document.path);
                } else {
                    names_by_type.entry(kind).or_default().insert(name.to_lowercase(), name);
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
    let users = users.into_values().map(|name| vec![Item::value("username", name)]);
    let mut projects: Vec<_> = documents.iter().filter_map(seed_project).collect();
    let groups = seed_groups(documents, &projects, named_groups).map(|(path, visibility)| {
        let visibility = visibility.map(|word| Item::value("visibility", word));
        std::iter::once(Item::value("path", path)).chain(visibility).collect()
    });
    let groups: Vec<_> = groups.collect();
    let declared: BTreeSet<_> =
        documents.iter().map(|document| document.path.to_lowercase()).collect();
    let others = named_projects.into_iter().filter(|(lower, _)| !declared.contains(lower));
    projects.extend(others.map(|(_, path)| (path.clone(), vec![Item::value("path", path)])));
    let owner = (!runners.is_empty()).then(|| vec![Item::value("path", RUNNER_PROJECT)]);
    projects.extend(owner.map(|items| (RUNNER_PROJECT.to_owned(), items)));
    let runners = runners.into_iter().map(|(runner, having)| {
        let having: Vec<_> =
            std::iter::once(RUNNER_PROJECT).chain(having).map(Json::from).collect();
        vec![Item::value("description", runner), Item::value("projects", having)]
    });
    let lists = [
        seed_list("users", users),
        seed_list("groups", groups.into_iter()),
        seed_list("projects", projects.into_iter().map(|(_, items)| items)),
        seed_list("runners", runners),
    ];
    let tier = documents.iter().map(|document| document.tier).max().unwrap_or(Tier::Free);
    let release = release.release().map(|release| Item::value("release", release.to_string()));
    let head = std::iter::once(Item::value("tier", tier.to_string())).chain(release);
    head.chain(lists.into_iter().flatten()).collect()
}

fn seed_list(name: &str, rows: impl Iterator<Item = Vec<Item>>) -> Option<Item> {
    let rows: Vec<_> = rows.map(|items| (items, None)).collect();
    (!rows.is_empty()).then(|| Item::new(name, OutputNode::List(rows)))
}

/// The groups of the seed, each with its visibility: those above seeded `projects`, those that apply
/// does not create, those that are not exported, and others that are `named`.
fn seed_groups(
    documents: &[ExportedDocument],
    projects: &[(String, Vec<Item>)],
    named: BTreeMap<String, String>,
) -> impl Iterator<Item = (String, Option<String>)> {
    // The groups above a seeded project must exist too, and be at least as visible.
    let ancestor_paths: BTreeSet<String> =
        projects.iter().flat_map(|(path, _)| ancestors(path)).collect();
    let exported = documents.iter().filter(|document| document.scope == Scope::Group);
    let exported: BTreeMap<String, &ExportedDocument> =
        exported.map(|document| (document.path.to_lowercase(), document)).collect();
    let mut groups: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
    for (lower, document) in &exported {
        if ancestor_paths.contains(lower) || !document.can_be_created() {
            groups.insert(lower.clone(), (document.path.to_string(), seed_visibility(document)));
        }
    }
    // Groups that are not exported are there already, as visible as anything in them.
    for document in documents.iter().filter(|document| !document.is_personal) {
        let visible = seed_visibility(document);
        for above in ancestors(&document.path).into_iter().filter(|it| !exported.contains_key(it)) {
            let path = document.path[..above.len()].to_owned();
            let (_, widest) = groups.entry(above).or_insert((path, None));
            if widest.as_deref().map(visibility_rank) < visible.as_deref().map(visibility_rank) {
                widest.clone_from(&visible);
            }
        }
    }
    for (lower, path) in named.into_iter().filter(|(lower, _)| !exported.contains_key(lower)) {
        groups.entry(lower).or_insert((path, None));
    }
    groups.into_values()
}

/// A project that apply cannot create alone, with its path: an archived one, since groups for those
/// often allow nobody to create projects, one with a field that waits for a branch, with entries that no
/// request creates or with a runner, since a guard asks before one is added, also to a new project, or
/// one with a path that is no longer valid for new projects. Where a guard would ask about something in
/// a project that is not new, entries that no request creates are left to wait.
fn seed_project(document: &ExportedDocument) -> Option<(String, Vec<Item>)> {
    let branch = document.sections.iter().find_map(required_branch);
    let mut seeded_sections: Vec<_> =
        document.sections.iter().filter(|content| content.section.only_edits()).collect();
    seeded_sections.retain(|content| !content.entries.is_empty() && !is_guarded(document));
    let has_runner =
        document_entries(document).any(|(section, fields)| names_runner(section, &fields));
    let is_made = branch.is_none()
        && seeded_sections.is_empty()
        && !has_runner
        && !document.is_archived
        && document.can_be_created();
    if document.scope != Scope::Project || is_made {
        return None;
    }
    let mut items = vec![Item::value("path", &*document.path)];
    if let Some(word) = seed_visibility(document) {
        let settings = Object::from_iter([("visibility".to_owned(), word.into())]);
        items.push(Item::value("settings", Json::Object(settings)));
    }
    items.extend(branch.map(|branch| Item::value("branches", vec![branch])));
    items.extend(seeded_sections.into_iter().map(|content| {
        let names = content.entries.iter().map(|entry| Json::from(&*entry.key));
        Item::value(content.name(), names.collect::<Vec<_>>())
    }));
    items.extend(document.is_archived.then(|| Item::value("archived", true)));
    Some((document.path.to_string(), items))
}

/// True if a guard asks before an entry is added to a project that is there already; not counted are
/// runners, which a seeded project has.
fn is_guarded(document: &ExportedDocument) -> bool {
    document_entries(document).any(|(section, fields)| {
        let presets = |name: &str| preset::service_default(section, name, &document.path);
        let opened = risk::creation_risks(section, presets, &forms::plain_fields(&fields));
        let mut effects = creation_effects(section, &fields).into_iter().chain(opened);
        !names_runner(section, &fields)
            && !section.comes_with_container()
            && effects.any(|it| matches!(it, Effect::Risk(Risk::Opens | Risk::Weakens, _)))
    })
}

/// True if an entry of the section names a runner.
fn names_runner(section: Section, fields: &Fields) -> bool {
    forms::referenced_names(section, fields)
        .into_iter()
        .any(|(_, kind, _)| kind == NamedObject::Runner)
}

/// The effects of adding an entry with these fields.
fn creation_effects(section: Section, fields: &Fields) -> Vec<Effect> {
    section.rules().effects(None, &Object::new(), &forms::plain_fields(fields))
}

/// The entries of a document, each with its section.
fn document_entries(document: &ExportedDocument) -> impl Iterator<Item = (Section, Fields)> {
    document.sections.iter().flat_map(|content| {
        let section = content.section;
        content.entries.iter().map(move |entry| (section, plain_fields(entry))).collect::<Vec<_>>()
    })
}

/// The branch that a field of a section waits for.
fn required_branch(content: &DocSection) -> Option<Json> {
    let fields = content.entries.first().map(plain_fields)?;
    let section = content.section;
    let mut names = fields.keys();
    let waiting_field = names
        .find(|name| section.rules().wait_reason(section, name, &fields, None, true).is_some());
    fields.get(waiting_field?)?.plain().cloned()
}

/// The visibility for the seed.
fn seed_visibility(document: &ExportedDocument) -> Option<String> {
    let mut all =
        document_entries(document).flat_map(|(section, fields)| creation_effects(section, &fields));
    all.find_map(|effect| match effect {
        Effect::Visibility { after, .. } => Some(after),
        _ => None,
    })
}

fn plain_fields(entry: &DocEntry) -> Fields {
    entry.fields.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect()
}

/// The paths of the groups above `path`, in lower case.
fn ancestors(path: &str) -> Vec<String> {
    groups_above(&path.to_lowercase()).map(str::to_owned).collect()
}

/// A harmless value of the same form as `value`, which an export of the sandbox treats as a secret
/// again.
fn placeholder(name: &str, value: &str) -> String {
    let token = format!("glpat-rehearsal-{:08x}", hash(name));
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
        for (value, beginning) in [
            ("abc", "glpat-rehearsal-"),
            ("https://bob:pw@h.example/x", "https://h.example/?token=glpat-rehearsal-"),
            ("two\nlines", "glpat-rehearsal-"),
        ] {
            let stand_in = placeholder("NAME", value);
            assert!(
                stand_in.starts_with(beginning)
                    && judge::may_be_secret(&stand_in, Secrecy::Sensitive),
                "{stand_in}"
            );
        }
    }
}
