//! Checks that compare several sections of one group or project.

use std::collections::BTreeMap;

use super::{declared_values, project_section_name};
use crate::{
    catalogue::{self, approval_rules, pipeline_schedules, settings::SECTION as SETTINGS},
    desired::{Container, DeclaredEntry, DeclaredSection, EntryPresence, Unlisted},
    field::{Field, NamedObject, Scope},
    kind::{Section, needs, refs::patterns_overlap},
    level::{AccessLevel, DEVELOPER, MAINTAINER, MINIMAL_ACCESS},
    manifest::faults::{FaultTexts, Faults, NodePosition, placeholders, texts},
    origin::{Origin, Sourced},
    text::nearest,
    value::Json,
};

/// Checks the sections of `container` together.
pub(super) fn check_sections(container: &Container, faults: &mut Faults) {
    for section in &container.sections {
        check_count(section, container, faults);
        check_references(section, container, faults);
        check_path_prefixes(section, container, faults);
        check_top_level(section, container, faults);
    }
    check_self_reference(container, faults);
    check_allowlists(container, faults);
    check_closed_sections(container, faults);
    check_approvals(container, faults);
}

/// Reports a section with more entries than the service accepts.
fn check_count(section: &DeclaredSection, container: &Container, faults: &mut Faults) {
    let count = section.present_entries().count();
    if let Some(max) = pipeline_schedules::max_entries(section.kind).filter(|max| count > *max) {
        let (count, max) = (count.to_string(), max.to_string());
        let args =
            placeholders![count, max, noun = container.scope.noun(), what = section.kind.noun];
        faults.report_key(texts::TOO_MANY_ENTRIES, &section.origin, args);
    }
}

/// Checks the fields of `section` that name entries of another section.
fn check_references(section: &DeclaredSection, container: &Container, faults: &mut Faults) {
    let parent = section.kind.scoped_kind.parent.map(|parent| (parent.field, parent.section));
    let specs = section.kind.specs().iter();
    let name_fields =
        specs.filter_map(|spec| Some((spec.name, spec.field.relations.names_entries?)));
    for (field, other_section_name) in name_fields.chain(parent) {
        let Some(other_section) = container.section(other_section_name) else { continue };
        let is_parent = parent.is_some_and(|(parent_field, _)| parent_field == field);
        for entry in &section.entries {
            check_named_entries(other_section, field, is_parent, entry, faults);
        }
    }
}

/// Reports names in the `field` of `entry` that refer to an absent or missing entry of
/// `named_section`. `is_parent` is true if `field` names the parent of `entry`.
fn check_named_entries(
    named_section: &DeclaredSection,
    field: &str,
    is_parent: bool,
    entry: &DeclaredEntry,
    faults: &mut Faults,
) {
    let Some(Sourced { value, origin }) = entry.fields.get(field) else { return };
    let is_present = entry.state == EntryPresence::Present;
    let args =
        placeholders![field, noun = named_section.kind.noun, section = named_section.kind.section];
    let names = value.list().into_iter().flatten().filter_map(Json::as_str);
    for name in names.chain(value.text()) {
        let position = NodePosition::item(&origin, name);
        if let Some(named_entry) = named_section.entries.iter().find(|entry| &*entry.key == name) {
            if is_present && named_entry.state == EntryPresence::Absent {
                let problem_texts =
                    if is_parent { texts::REMOVED_PARENT } else { texts::REMOVED_ENTRY };
                let positions = [position, NodePosition::key(&named_entry.origin)];
                faults.report_pair(problem_texts, positions, args);
            }
            continue;
        }
        if named_section.unmanaged_globs.iter().any(|glob| glob.matches(name)) {
            continue;
        }
        let mut keys = named_section.entries.iter().map(|entry| &*entry.key);
        let similar_name = nearest(name, keys.clone())
            .or_else(|| keys.find(|key| key.contains('*') && patterns_overlap(key, name)));
        if named_section.unlisted.value == Unlisted::Delete && is_present {
            let fault = faults.report(texts::DELETED_ENTRY, position, args);
            fault.set_related(NodePosition::value(&named_section.unlisted.origin));
            if let Some(near) = similar_name {
                fault.set_help(format!("write `{near}`, the name as it is declared"));
            }
        } else if similar_name.is_some() {
            faults.report(texts::UNDECLARED_ENTRY, position, args).suggest_name(similar_name);
        }
    }
}

/// Reports fields that must start with the path of the container and do not.
fn check_path_prefixes(section: &DeclaredSection, container: &Container, faults: &mut Faults) {
    let specs = section.kind.specs().iter();
    for spec in specs.filter(|spec| spec.field.valid.starts_with_path) {
        for (_, field) in declared_values(section, spec) {
            let Some(text) = field.value.text() else { continue };
            let suffix = text.strip_prefix(&*container.path);
            if !suffix.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '*'])) {
                let args = placeholders![
                    name = spec.name,
                    noun = container.scope.noun(),
                    path = container.path
                ];
                faults.report_value(texts::OUTSIDE_PATH, &field.origin, args);
            }
        }
    }
}

/// Reports fields and levels that only top-level groups have. If only top-level groups have the
/// section, reports the section once for each entry, instead of its fields.
fn check_top_level(section: &DeclaredSection, container: &Container, faults: &mut Faults) {
    if container.scope == Scope::Group && !container.path.contains('/') {
        return;
    }
    let kind = section.kind;
    let top_level_group = container.path.split('/').next().unwrap_or_default();
    let is_top_level_section = kind.is_only_top_level();
    let section_name = is_top_level_section.then(|| project_section_name(kind)).flatten();
    let rule_hint = section_name
        .map(|name| format!(", or `{name}` for the projects below in a `kind: Defaults`"));
    for entry in &section.entries {
        let misplaced_fields = entry.fields.iter().filter_map(|(name, field)| {
            let spec = kind.spec(name)?;
            let level = field.value.plain_json().filter(|_| spec.field.is_level());
            let is_minimal = level
                .and_then(AccessLevel::parse)
                .is_some_and(|level| level.number == MINIMAL_ACCESS);
            let problem_texts = if spec.field.available.is_only_top_level() {
                texts::TOP_LEVEL
            } else if is_minimal {
                texts::MINIMAL_ACCESS
            } else {
                return None;
            };
            Some((name, field.origin, problem_texts))
        });
        for (name, origin, problem_texts) in
            misplaced_fields.take(if is_top_level_section { 1 } else { usize::MAX })
        {
            let name = if is_top_level_section { kind.section } else { name };
            let reported_origin = if is_top_level_section { &section.origin } else { &origin };
            let rule = rule_hint.as_deref().unwrap_or_default();
            faults.report_key(
                problem_texts,
                reported_origin,
                placeholders![name, above = top_level_group, rule],
            );
        }
    }
}

/// Reports job-token allowlists that have no effect because `inbound_enabled` is false.
fn check_allowlists(container: &Container, faults: &mut Faults) {
    let inbound_field = container.setting("job_token_scope", "inbound_enabled");
    let Some(inbound_setting) = inbound_field.filter(|field| field.value.flag() == Some(false))
    else {
        return;
    };
    let lists = ["job_token_allowlist", "job_token_groups_allowlist"];
    for allowlist in lists.iter().filter_map(|name| container.section(name)) {
        let args = placeholders![section = allowlist.kind.section];
        let fault = faults.report_key(texts::IDLE_ALLOWLIST, &allowlist.origin, args);
        fault.set_related(NodePosition::value(&inbound_setting.origin));
    }
}

/// Reports sections with entries that have no effect, because settings turn off all features that
/// the section belongs to.
fn check_closed_sections(container: &Container, faults: &mut Faults) {
    let specs = catalogue::find_section(container.scope, SETTINGS).map_or(&[][..], Section::specs);
    let find_off_setting = |feature: &&'static str| {
        let old_names = specs.iter().filter(|spec| spec.field.replacement_name() == Some(feature));
        let mut names = [*feature].into_iter().chain(old_names.map(|spec| spec.name));
        names.find_map(|name| {
            let field = container.setting(SETTINGS, name)?;
            field.value.plain_json().filter(|value| needs::is_off(value))?;
            Some((name, field.origin))
        })
    };
    // Skip sections whose entries are below entries of another section: the other section is
    // reported.
    let sections = container
        .sections
        .iter()
        .filter(|section| !section.entries.is_empty() && section.kind.scoped_kind.parent.is_none());
    for section in sections {
        let feature_sets = section.kind.scoped_kind.closed_by.iter();
        let switches: Vec<Vec<_>> =
            feature_sets.filter_map(|set| set.iter().map(find_off_setting).collect()).collect();
        let Some((switch, origin)) = switches.iter().flatten().next() else { continue };
        let args = placeholders![section = section.kind.section, switch];
        let fault = faults.report_key(texts::CLOSED_SECTION, &section.origin, args);
        fault.set_related(NodePosition::key(origin));
    }
}

/// Reports fields that name the container itself, and shares of a project with one of its parent
/// groups.
fn check_self_reference(container: &Container, faults: &mut Faults) {
    let path = container.path.to_lowercase();
    let fields =
        [("fork_of", "fork_of", texts::FORK_OF_ITSELF), ("shares", "group", texts::ITSELF)];
    for (section, field, problem_texts) in fields {
        for reference in container.entries(section).filter_map(|entry| entry.fields.get(field)) {
            let referenced_path = reference.value.text().unwrap_or_default().to_lowercase();
            let is_parent_group = path.starts_with(&format!("{referenced_path}/"));
            let checks_parents = section == "shares" && container.scope == Scope::Project;
            if path == referenced_path || checks_parents && is_parent_group {
                faults.report_value(problem_texts, &reference.origin, placeholders![field]);
            }
        }
    }
}

/// Reports `approvals_before_merge` if approval rules conflict with this setting. The service turns
/// this setting into an approval rule.
fn check_approvals(container: &Container, faults: &mut Faults) {
    let name = approval_rules::APPROVALS_SETTING;
    let count = container.setting(catalogue::settings::SECTION, name).filter(|count| {
        count.value.plain_json().and_then(Json::as_u64).is_some_and(|count| count > 0)
    });
    let rules = container.section(approval_rules::SECTION);
    let Some((approvals, rules)) = count.zip(rules) else { return };
    let any_approver_rule =
        rules.entries.iter().find(|entry| approval_rules::is_any_approver_rule(&entry.values()));
    let (problem_texts, related) = match any_approver_rule {
        Some(rule) => (texts::APPROVALS_TWICE, &rule.origin),
        None if rules.unlisted.value == Unlisted::Delete => {
            (texts::APPROVALS_REMOVED, &rules.unlisted.origin)
        }
        None => return,
    };
    let args = placeholders![name, rules = rules.kind.section];
    faults
        .report_value(problem_texts, &approvals.origin, args)
        .set_related(NodePosition::key(related));
}

/// Declared access that is too low: the service refuses a rule that names the holder of this
/// access, now or later.
struct LowAccess {
    fault_texts: FaultTexts,
    name: String,
    /// The declared level, if it is too low. Then only grantees in rows are faults, because a plain
    /// list of names needs no level.
    level: Option<&'static str>,
    /// The declaration of the access.
    origin: Origin,
}

/// Reports rows and lists of rules that name a grantee with too low access: a group or user with a
/// low level, a deploy key that can only read, or a grantee whose access is removed. In a group,
/// rows must also only name groups below this group.
pub(super) fn check_grantees(container: &Container, faults: &mut Faults) {
    let scope = container.scope;
    let sections = container.sections.iter();
    let low_access_by_grantee: BTreeMap<_, _> =
        sections.flat_map(|section| collect_low_access(scope, section)).collect();
    if low_access_by_grantee.is_empty() && scope == Scope::Project {
        return;
    }
    let group_prefix = format!("{}/", container.path.to_lowercase());
    for section in &container.sections {
        for entry in section.present_entries() {
            for spec in section.kind.specs() {
                let Some(field) = entry.fields.get(spec.name) else { continue };
                for (row_key, name, is_row) in grantees(spec.field, field.value.plain_json()) {
                    let is_group_row = is_row && row_key == "group" && scope == Scope::Group;
                    if is_group_row && !name.to_lowercase().starts_with(&group_prefix) {
                        let position = NodePosition::item(&field.origin, name);
                        faults.report(texts::GROUP_OUTSIDE, position, placeholders![name]);
                    }
                    let Some(low_access) =
                        low_access_by_grantee.get(&(row_key, name.to_lowercase()))
                    else {
                        continue;
                    };
                    // A list of names needs no level.
                    if is_row || low_access.level.is_none() {
                        let (noun, level) = (scope.noun(), low_access.level.unwrap_or_default());
                        let args = placeholders![noun, name = low_access.name, level];
                        let position = NodePosition::item(&field.origin, name);
                        let fault = faults.report(low_access.fault_texts, position, args);
                        fault.set_related(NodePosition::value(&low_access.origin));
                    }
                }
            }
        }
    }
}

/// The grantees in a `value` of `field`. Each has the key of its row, its name, and true if it is
/// written as a row. A plain name has the key that its row would have.
fn grantees<'v>(
    field: &Field,
    value: Option<&'v Json>,
) -> impl Iterator<Item = (&'v str, &'v str, bool)> {
    let row_key = row_key(field.names);
    value.and_then(Json::as_array).into_iter().flatten().flat_map(move |item| {
        let row = item.as_object().into_iter().flatten();
        let row = row.filter_map(|(key, name)| Some((key.as_str(), name.as_str()?, true)));
        row.chain(row_key.zip(item.as_str()).map(|(key, name)| (key, name, false)))
    })
}

/// The key of rows that name an object of this type.
const fn row_key(named_object: Option<NamedObject>) -> Option<&'static str> {
    match named_object {
        Some(NamedObject::User) => Some("user"),
        Some(NamedObject::Group) => Some("group"),
        _ => None,
    }
}

/// The entries of `section` with less access than rules need, by row key and lower-case name.
fn collect_low_access(
    scope: Scope,
    section: &DeclaredSection,
) -> Vec<((&'static str, String), LowAccess)> {
    let kind = section.kind;
    let named_object = kind.identity.first().and_then(|name| kind.field(name).names);
    let deploy_key = kind.called_by.map(|_| "deploy_key");
    let Some(row_key) = row_key(named_object).or(deploy_key) else { return Vec::new() };
    let level_field = kind.specs().iter().find(|spec| spec.field.is_level());
    let low_entries = section.entries.iter().filter_map(|entry| {
        let (fault_texts, level, origin) = match (entry.state, row_key) {
            // Only warn: the grantee may still have access through a group above.
            (EntryPresence::Absent, "group") => {
                (texts::LOW_SHARE_REMOVED, None, entry.origin.clone())
            }
            (EntryPresence::Absent, "user") => {
                (texts::LOW_MEMBER_REMOVED, None, entry.origin.clone())
            }
            (EntryPresence::Present, "group" | "user") => {
                // Members may have a higher level through a group above.
                let (min_level, fault_texts) = match (row_key, scope) {
                    ("group", _) => (DEVELOPER, texts::LOW_SHARE),
                    (_, Scope::Group) => (MAINTAINER, texts::LOW_MEMBER),
                    (_, Scope::Project) => return None,
                };
                let field = entry.fields.get(level_field?.name)?;
                let declared_level = field.value.plain_json().and_then(AccessLevel::parse);
                let low_level = declared_level.filter(|level| level.number < min_level)?;
                (fault_texts, Some(low_level.word), field.origin)
            }
            (EntryPresence::Present, "deploy_key") => {
                let field = entry.fields.get("can_push")?;
                // Existing rules keep the key after it loses push access.
                field.value.flag().filter(|can_push| !can_push)?;
                (texts::LOW_KEY, None, field.origin)
            }
            _ => return None,
        };
        let title = kind.called_by.and_then(|name| entry.fields.get(name));
        let title = title.as_ref().and_then(|title| title.value.text());
        let name = title.unwrap_or(&entry.key).to_owned();
        Some(((row_key, name.to_lowercase()), LowAccess { fault_texts, name, level, origin }))
    });
    low_entries.collect()
}
