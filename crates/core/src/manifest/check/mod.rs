//! The third part of loading: checks merged groups and projects, and makes [`Desired`] from them.
//!
//! This part finds every fault that can be found without the service: faults that span fields,
//! entries or documents, and faults that a kind's own rules find. Each fault has an origin, which
//! points into the right document. This part reads no live state, and no manifests, because their
//! texts were dropped.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map},
    hash::Hash,
    sync::Arc,
};

use jiff::civil::Date;

use super::{
    config::Config,
    faults::{Faults, LocatedFault, NodeFault, NodePosition, placeholders, texts},
    layer::{LayerRules, MergeResult},
    parallel::map_parallel,
    read::document::{DeclaredContainer, DocumentSection, EntryState, LayerBody, Validity},
};
use crate::{
    catalogue::{
        self,
        words::{self, Meaning},
    },
    desired::{
        Container, CreationPolicy, DeclaredEntry, DeclaredSection, Desired, PROJECTS_KEY, Unlisted,
    },
    field::Scope,
    kind::{CollectionTrait, EntryFault, FieldSpec, Section, Shape},
    origin::{Layer, Sourced},
    secret::{AllowedVariables, Secrets},
    value::Value,
};

mod acknowledgements;
mod between;
mod entry;
mod field;
mod moves;
mod named;
pub(super) mod path;
mod within;

pub(super) use named::is_inside_folder;

/// Facts for checks, in addition to the declarations.
#[derive(Debug)]
pub(super) struct CheckContext {
    /// The content of `undrift.yaml`.
    pub(super) config: Config,
    pub(super) today: Date,
    /// Reads files that manifests name; `None` if they are not on this machine.
    pub(super) file_reader: Option<Secrets>,
    /// The environment variables that manifests may name.
    pub(super) variables: AllowedVariables,
}

impl CheckContext {
    /// True if these manifests may declare the group or project at `path`.
    pub(super) fn manages(&self, path: &str) -> bool {
        self.config.manages.as_ref().is_none_or(|managed| managed.allows_path(path))
    }
}

/// Checks all declarations. Returns the named containers as [`Desired`].
pub(super) fn check_declarations(
    merge_result: MergeResult,
    rules: &LayerRules,
    context: &CheckContext,
) -> (Desired, Faults) {
    let MergeResult { containers, sample_containers: samples, mut faults, .. } = merge_result;
    let named_flags: Vec<_> =
        containers.iter().map(|container| container.is_selected_by_command).collect();
    let results = map_parallel(containers, |container| check_container(container, context));
    check_samples(samples, context, &mut faults);
    let (mut containers, container_faults): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    faults.items.extend(container_faults.into_iter().flat_map(|faults| faults.items));
    between::mark_namespaces(&mut containers);
    let containers_by_path =
        containers.iter().map(|container| (container.path.to_lowercase(), container)).collect();
    between::check_parents(&containers_by_path, context, &mut faults);
    between::check_circular_sources(&containers_by_path, &mut faults);
    between::check_named_scopes(&containers, &containers_by_path, &mut faults);
    between::check_display_names(&containers, &mut faults);
    let moves = Arc::new(moves::check_former_paths(&containers, &mut faults));
    let acknowledgements = acknowledgements::check_acknowledgements(
        merge_result.acknowledgements,
        &containers_by_path,
        rules,
        context,
        &mut faults,
    );
    between::check_shared_fields(&containers, &mut faults);
    let mut named_flags = named_flags.into_iter();
    containers.retain(|_| named_flags.next().unwrap_or_default());
    (Desired { containers, acknowledgements, moves }, faults)
}

/// All containers, by their lower-case paths.
type ContainersByPath<'c> = BTreeMap<String, &'c Container>;

/// Checks the containers at sample paths. A fault is reported once for each position, and not if a
/// declared container has the same fault.
fn check_samples(
    samples: Vec<(Box<DeclaredContainer>, Faults)>,
    context: &CheckContext,
    faults: &mut Faults,
) {
    let fault_key = |fault: &NodeFault| (fault.position.clone(), fault.code);
    let mut reported_keys: BTreeSet<_> = faults.items.iter().map(fault_key).collect();
    for (declaration, layer_faults) in samples {
        // Rules never include containers outside of `manages`.
        if context.manages(&declaration.path.value) {
            let check_faults = check_container(declaration, context).1.items;
            let all_faults = layer_faults.items.into_iter().chain(check_faults);
            let new_faults: Vec<_> =
                all_faults.filter(|fault| !reported_keys.contains(&fault_key(fault))).collect();
            reported_keys.extend(new_faults.iter().map(fault_key));
            faults.items.extend(new_faults);
        }
    }
}

/// Checks and converts one container.
pub(super) fn check_container(
    declaration: Box<DeclaredContainer>,
    context: &CheckContext,
) -> (Container, Faults) {
    let mut check = ContainerCheck { context, scope: declaration.scope, faults: Faults::default() };
    let container = check.convert_container(declaration);
    within::check_grantees(&container, &mut check.faults);
    (container, check.faults)
}

/// The name of the section of projects that corresponds to `section` of a group; `None` if there is
/// no such section.
fn project_section_name(section: Section) -> Option<&'static str> {
    let alias = words::find_meaning(&["Project"], section.section).and_then(Meaning::field);
    let mut names = [Some(section.section), alias].into_iter().flatten();
    names.find(|name| catalogue::find_section(Scope::Project, name).is_some())
}

/// The entries that declare the field `spec`, with its value.
fn declared_values<'s>(
    section: &'s DeclaredSection,
    spec: &'static FieldSpec,
) -> impl Iterator<Item = (&'s DeclaredEntry, Sourced<Value>)> {
    section.entries.iter().filter_map(|entry| Some((entry, entry.fields.get(spec.name)?)))
}

/// Finds items with equal keys. Returns a pair for each repeated item: the first item with the key,
/// and the repeated item.
fn find_repeats<K: Eq + Hash, T: Clone>(
    items: impl IntoIterator<Item = (K, T)>,
) -> impl Iterator<Item = (T, T)> {
    let mut first_items = HashMap::new();
    items.into_iter().filter_map(move |(key, item)| match first_items.entry(key) {
        hash_map::Entry::Occupied(first) => Some((T::clone(first.get()), item)),
        hash_map::Entry::Vacant(slot) => {
            slot.insert(item);
            None
        }
    })
}

/// Converts a fault that a kind found to a fault at `position`.
fn place_fault(fault: EntryFault, position: NodePosition) -> NodeFault {
    let EntryFault { severity, code, message, help, .. } = fault;
    let related_label = "the other one";
    LocatedFault {
        severity,
        help: Some(help),
        related_label,
        ..LocatedFault::error(code, message, position)
    }
}

/// The check of one container.
struct ContainerCheck<'c> {
    context: &'c CheckContext,
    scope: Scope,
    faults: Faults,
}

impl ContainerCheck<'_> {
    fn convert_container(&mut self, declaration: Box<DeclaredContainer>) -> Container {
        self.check_absent(&declaration);
        self.check_managed_paths(&declaration);
        let DeclaredContainer { scope, path, mut lifecycle, body, .. } = *declaration;
        let LayerBody { mut sections, mut unlisted, watch, .. } = body;
        let projects_policy = unlisted.remove(PROJECTS_KEY);
        lifecycle.unlisted_projects =
            projects_policy.filter(|policy| policy.value != Unlisted::Ignore);
        let (create_section, _) = catalogue::container(scope);
        self.check_creation(create_section, &sections);
        let creation_section = sections
            .extract_if(.., |section| section.section_kind.section == create_section.section)
            .next();
        let create = creation_section
            .map_or(CreationPolicy::Forbidden, |section| self.convert_creation(section));
        let is_new = create.create_fields().is_some()
            || lifecycle
                .former_paths
                .iter()
                .any(|former_path| path::is_renamed(&former_path.value, &path.value));
        if let Err(why) = path::check(scope, &path.value, is_new) {
            let fault = self.faults.report_value(texts::PATH, &path.origin, placeholders![why]);
            fault.set_optional_help(path::suggest_path_fix(&path.value));
        }
        let converted_sections = sections.into_iter().map(|section| {
            let policy = unlisted.remove(section.section_kind.section);
            self.convert_section(section, policy)
        });
        let mut sections: Vec<_> = converted_sections.collect();
        self.drop_self_entry(&path.value, &mut sections);
        for (name, policy) in unlisted {
            self.faults.report_key(texts::UNLISTED, &policy.origin, placeholders![name]);
        }
        let is_watched = watch.is_some_and(|watch| watch.value);
        let container = Container::new(scope, path.value, path.origin, sections);
        let container = Container { creation_policy: create, is_watched, lifecycle, ..container };
        within::check_sections(&container, &mut self.faults);
        self.check_files(&container);
        // A fault in a rule may exist only for this container, so name the container.
        for fault in &mut self.faults.items {
            if fault.position.origin.layer <= Layer::Profile {
                fault.label.get_or_insert_with(|| format!("for `{}`", container.path));
            }
        }
        container
    }

    /// Reports paths and sections that `manages` does not allow.
    fn check_managed_paths(&mut self, declaration: &DeclaredContainer) {
        let Some(manages) = &self.context.config.manages else { return };
        let path = &declaration.path;
        // A former path must be allowed too, because it selects the live container at that path.
        for path in std::iter::once(path).chain(&declaration.lifecycle.former_paths) {
            if manages.matching_entries(&path.value).is_empty() {
                let args =
                    placeholders![path = path.value, why = manages.explain_exclusion(&path.value)];
                self.faults.report_value(texts::OUTSIDE, &path.origin, args);
            }
        }
        let matching_entries = manages.matching_entries(&path.value);
        for section in declaration.body.sections.iter().filter(|_| !matching_entries.is_empty()) {
            let name = section.section_kind.section;
            if !matching_entries.iter().any(|managed| managed.allows_section(name)) {
                let args = placeholders![path = path.value, section = name];
                self.faults.report_key(texts::OUTSIDE_SECTION, &section.origin, args);
            }
        }
    }

    /// Reports an absent group, and other declarations of an absent project.
    fn check_absent(&mut self, declaration: &DeclaredContainer) {
        let DeclaredContainer { lifecycle, body, .. } = declaration;
        let Some(absent_origin) = lifecycle.absent_origin() else { return };
        if self.scope == Scope::Group {
            self.faults.report_value(texts::ABSENT_GROUP, absent_origin, &[]);
            return;
        }
        let former_path =
            lifecycle.former_paths.first().map(|former| ("previously", &former.origin));
        let origins =
            body.sections.iter().map(|section| (section.section_kind.section, &section.origin));
        let policy = body.unlisted.values().next().map(|policy| ("unlisted", &policy.origin));
        for (name, origin) in origins.chain(former_path).chain(policy) {
            self.faults.report_key(texts::BESIDE_ABSENT, origin, placeholders![name]);
        }
    }

    /// Checks the fields of the create request, including the sections that are created with the
    /// container. Reports fields of `create` that differ from the same field of one of these
    /// sections.
    fn check_creation(&mut self, create_section: Section, sections: &[DocumentSection]) {
        let find_first_entry = |kind: Section| {
            let section =
                sections.iter().find(|section| section.section_kind.section == kind.section)?;
            Some((section, section.entries.first()?))
        };
        let create_entry = find_first_entry(create_section).map(|(_, create)| create);
        let Some(create_entry) = create_entry.filter(|create| create.state == EntryState::Present)
        else {
            return;
        };
        let created_sections =
            catalogue::sections(self.scope).filter(|kind| kind.is_created_with_container());
        let creation_entries: Vec<_> = created_sections.filter_map(find_first_entry).collect();
        let all_entries: Vec<_> = std::iter::once(create_entry)
            .chain(creation_entries.iter().map(|section_entry| section_entry.1))
            .collect();
        if all_entries.iter().any(|entry| entry.validity != Validity::Valid) {
            return;
        }
        for (section, entry) in creation_entries {
            for (name, field) in create_entry.fields.iter() {
                let is_conflict = match entry.fields.get(name) {
                    Some(other) => other.value != field.value,
                    None => {
                        entry.state == EntryState::Absent && section.section_kind.section == name
                    }
                };
                if is_conflict {
                    let args = placeholders![create = create_section.section, name];
                    let origins = [&field.origin, &section.origin];
                    self.faults.report_keys(texts::CREATE_CONFLICT, origins, args);
                }
            }
        }
        let values = all_entries.iter().flat_map(|entry| entry.fields.values()).collect();
        create_section.check(&values, true, &mut |fault| {
            let find_origin = |name| all_entries.iter().find_map(|entry| entry.fields.origin(name));
            let fault_origin =
                find_origin(fault.field).unwrap_or_else(|| all_entries[0].origin.clone());
            let related =
                fault.other_field.and_then(find_origin).map(|other| NodePosition::key(&other));
            self.faults.push(LocatedFault {
                related,
                ..place_fault(fault, NodePosition::key(&fault_origin))
            });
        });
    }

    /// Drops entries that name the project itself from sections in which the service always lists
    /// the project. A rule for many projects may name one of these projects, so the entry is no
    /// fault in a rule. Reports the entry if a document declares it.
    fn drop_self_entry(&mut self, path: &str, sections: &mut [DeclaredSection]) {
        for section in sections {
            if !section.kind.traits.contains(&CollectionTrait::ListsItself) {
                continue;
            }
            let entries = &mut section.entries;
            for entry in entries.extract_if(.., |entry| entry.key.eq_ignore_ascii_case(path)) {
                if entry.origin.layer > Layer::Profile {
                    self.faults.report_key(texts::LISTS_ITSELF, &entry.origin, &[]);
                }
            }
        }
    }

    /// Converts `create`. The result decides if the container may be created, and with which
    /// fields.
    fn convert_creation(&mut self, section: DocumentSection) -> CreationPolicy {
        let first_entry = section.entries.into_iter().next();
        let Some(entry) = first_entry.filter(|entry| entry.state == EntryState::Present) else {
            return CreationPolicy::Forbidden;
        };
        self.check_fields(section.section_kind, &entry.fields);
        CreationPolicy::Allowed(entry.fields)
    }

    fn convert_section(
        &mut self,
        section: DocumentSection,
        policy: Option<Sourced<Unlisted>>,
    ) -> DeclaredSection {
        let DocumentSection { section_kind, origin, entries: mut all_entries } = section;
        self.check_required_tier(
            section_kind.section,
            section_kind.tier(),
            NodePosition::key(&origin),
        );
        if let (Some(release), Some(since)) =
            (self.context.config.service.release, section_kind.first_release())
            && release < since
        {
            let what = format!("`{}` needs release {since} or later", section_kind.section);
            let args = placeholders![what, help = "take the section out", release];
            self.faults.report_key(texts::RELEASE, &origin, args);
        }
        if self.report_split_entry(section_kind, &all_entries) {
            all_entries.clear();
        }
        let (mut identities, mut unmanaged_globs) = (Vec::new(), Vec::new());
        // Do not use `unzip`, which would reserve memory for unmanaged entries too.
        let mut entries: Vec<_> = all_entries
            .into_iter()
            .filter_map(|layer_entry| {
                if layer_entry.state == EntryState::Unmanaged {
                    unmanaged_globs.extend(self.unmanaged_glob(section_kind, &layer_entry));
                    return None;
                }
                let (entry, identity) = self.convert_entry(section_kind, layer_entry);
                identities.push(identity);
                Some(entry)
            })
            .collect();
        if section_kind.shape == Shape::List {
            self.check_duplicates(section_kind, &entries, &identities);
            entries.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let default_policy = if section_kind.cannot_remove_entries() {
            Unlisted::Ignore
        } else {
            Unlisted::default()
        };
        let unlisted =
            policy.unwrap_or_else(|| Sourced { value: default_policy, origin: origin.clone() });
        let section = DeclaredSection::with_entries(section_kind, &origin, entries);
        DeclaredSection { unlisted, unmanaged_globs, ..section }
    }
}
