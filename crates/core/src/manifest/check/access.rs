//! Checks that the groups, users and deploy keys that rules name have access, if the same document
//! declares their access.

use std::collections::BTreeMap;

use crate::{
    desired::{Container, DeclaredSection, EntryPresence},
    field::{Field, NamedObject, Scope},
    level::{AccessLevel, DEVELOPER, MAINTAINER},
    manifest::faults::{FaultTexts, Faults, NodePosition, placeholders, texts},
    origin::Origin,
    value::Json,
};

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
