//! Checks that the groups, users and deploy keys that rules name have access, as far as the same
//! document declares it.

use std::collections::BTreeMap;

use crate::{
    desired::{Container, DeclaredSection, Entry, State},
    diagnostic::Severity,
    field::{Field, Named, Scope},
    level::{DEVELOPER, Level},
    manifest::faults::{Faults, Finding, Spot},
    origin::Origin,
    value::Json,
};

/// Why the service refuses a row that names someone, or will.
struct Low {
    severity: Severity,
    why: String,
    help: &'static str,
    /// The declaration of the access.
    origin: Origin,
}

/// Reports rows and lists that name a group with which `container` is declared to be shared at a level that
/// the service refuses in them, a deploy key that only reads, or someone whose access is declared to
/// end.
pub(super) fn rows(container: &Container, faults: &mut Faults) {
    let low: BTreeMap<_, _> =
        container.sections.iter().flat_map(|access| low(container.scope, access)).collect();
    if low.is_empty() {
        return;
    }
    for section in &container.sections {
        for entry in section.entries.iter().filter(|entry| entry.state == State::Present) {
            for spec in section.of.table().specs() {
                let Some(field) = entry.fields.get(spec.name) else { continue };
                for (part, name, is_row) in named(spec.field, field.value.plain()) {
                    let low = low.get(&(part, name.to_lowercase()));
                    // A list of names needs no level.
                    let low = low.filter(|low| is_row || low.severity == Severity::Warning);
                    let Some(low) = low else { continue };
                    let at = Spot::item(&field.origin, name);
                    let refused = Finding::error("low-share", &*low.why, at);
                    let refused = faults.push(Finding { severity: low.severity, ..refused });
                    refused.related(Spot::value(&low.origin), "declared here").help(low.help);
                }
            }
        }
    }
}

/// Whom `value` names: the key of the row that names them, or the one that it would have; the name; and
/// whether it is a row.
fn named<'v>(
    field: &Field,
    value: Option<&'v Json>,
) -> impl Iterator<Item = (&'v str, &'v str, bool)> {
    let part = part(field.names);
    let items = value.and_then(Json::as_array).into_iter().flatten();
    items.flat_map(move |item| {
        let row = item.as_object().into_iter().flatten();
        let row = row.filter_map(|(part, name)| Some((part.as_str(), name.as_str()?, true)));
        row.chain(part.zip(item.as_str()).map(|(part, name)| (part, name, false)))
    })
}

/// The key of rows that name such a thing.
const fn part(names: Option<Named>) -> Option<&'static str> {
    match names {
        Some(Named::User) => Some("user"),
        Some(Named::Group) => Some("group"),
        _ => None,
    }
}

/// What the entries of `access` let rows do less than those need, by the key of the row and the name in
/// lower case.
fn low(scope: Scope, access: &DeclaredSection) -> Vec<((&'static str, String), Low)> {
    let of = access.of;
    let names = of.identity.first().and_then(|name| of.field(name).names);
    let deploy_key = of.called_by.map(|_| "deploy_key");
    let Some(part) = part(names).or(deploy_key) else { return Vec::new() };
    let level = of.table().specs().iter().find(|spec| spec.field.is_level());
    let low = |entry: &Entry| {
        let title = of.called_by.and_then(|name| entry.fields.get(name));
        let name = title.as_ref().and_then(|title| title.value.text()).unwrap_or(&entry.key);
        let warn = |why: String, help| Low {
            severity: Severity::Warning,
            why,
            help,
            origin: entry.origin.clone(),
        };
        let low = match (entry.state, part) {
            // By a group above, they may still have access.
            (State::Absent, "group") => warn(
                format!("the share with `{name}` is removed"),
                "write a group here that has access, or keep the share",
            ),
            (State::Absent, "user") => warn(
                format!("`{name}` is removed from the members"),
                "name another user here, or take this out: only members can be named",
            ),
            (State::Present, "group") => {
                let field = entry.fields.get(level?.name)?;
                let level = field.value.plain().and_then(Level::parse)?;
                if level.number >= DEVELOPER {
                    return None;
                }
                let (noun, severity) = (scope.noun(), Severity::Error);
                let why = format!("the {noun} is shared with `{name}` as {} only", level.word);
                let help = "write `group_access: developer` or more there, or take the group out of this rule";
                Low { severity, why, help, origin: field.origin }
            }
            (State::Present, "deploy_key") => {
                let field = entry.fields.get("can_push")?;
                if field.value.flag() != Some(false) {
                    return None;
                }
                // A rule that was there before the key lost this stays.
                let low = warn(
                    "this deploy key only reads".to_owned(),
                    "write `can_push: true` there, or take the key out of this rule",
                );
                Low { origin: field.origin, ..low }
            }
            _ => return None,
        };
        Some(((part, name.to_lowercase()), low))
    };
    access.entries.iter().filter_map(low).collect()
}
