//! Compares declared values and creations with what the groups above allow.

use super::{Context, Findings};
use crate::{
    address::group_of,
    field::Scope,
    kind::{Id, Namespace, NamespaceOwner, Section},
    kinds::{
        constraints::{self, Constraint, How},
        settings,
    },
    live::Question,
    text,
    value::{Json, Value},
};

/// Why a group above prevents a declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The service refuses it: the code, what is wrong, and what to do.
    Refused(&'static str, String, String),
    /// It would have no effect; the end of a sentence that begins with `waits`.
    Waits(String),
}

/// Why a group above prevents `value` for the field `name`, if it does. Asks a question if that
/// depends on an unknown fact. What a group of the same run refuses was found when the manifests were
/// read; its live state before the run does not count.
pub fn bound(
    section: Section,
    name: &str,
    value: &Value,
    context: Context<'_>,
    findings: &mut Findings,
) -> Option<Limit> {
    let own = value.plain()?;
    constraints::over(section.section, Some(name)).find_map(|row| {
        let (group, by, is_declared) = decided(row, own, context, findings)?;
        if !row.contradicts(&by, own) || (is_declared && row.how == How::Bounds) {
            return None;
        }
        let setting = &row.by.field;
        if row.how == How::Replaces {
            return Some(Limit::Waits(format!("until `{setting}` of `{group}` allows it")));
        }
        let by = text::escape(by.as_str().unwrap_or_default());
        Some(Limit::Refused(
            "too-visible",
            format!("`{name}` goes beyond the `{setting}` of `{group}`, which is `{by}`"),
            format!("declare less here, or change `{setting}` of `{group}` first"),
        ))
    })
}

/// Why a group above prevents the creation of an entry of `section`, if it does so already, and this
/// run does not change that.
pub(super) fn forbidden(
    section: Section,
    context: Context<'_>,
    findings: &mut Findings,
) -> Option<Limit> {
    let rows = constraints::over(section.section, None);
    rows.filter(|_| context.target.scope == Scope::Project).find_map(|row| {
        let declared =
            decided(row, &Json::Null, context, findings).filter(|(.., is_declared)| *is_declared);
        let (groups, by) = match declared {
            // It counts only if it is live, too: otherwise the run changes it after the creation.
            Some((_, by, _)) if !row.forbids(&by, context.target.scope) => return None,
            _ => above(row, context, findings)?,
        };
        let (setting, text, scope) = (&row.by.field, &row.text, context.target.scope);
        // This run lifts it in a group that declares another value.
        let lifted = context.groups.above(&context.target.path, &row.by);
        let lifted = lifted.filter(|(_, by)| by.is_some_and(|by| !row.forbids(by, scope)));
        let lifted: Vec<_> = lifted.map(|(path, _)| path).collect();
        let is_lifted = |group: &String| lifted.iter().any(|path| path.eq_ignore_ascii_case(group));
        let group = groups.iter().find(|group| !is_lifted(group))?;
        row.forbids(&by, scope).then(|| {
            Limit::Refused(
                &row.code,
                format!("`{setting}` of `{group}` {text}"),
                format!("change `{setting}` of `{group}` first, or take the entry away"),
            )
        })
    })
}

/// The value of the setting that decides about the value `own`, with its group, and whether it is
/// declared. A group in between may be stricter, so a declared value that allows is not enough.
fn decided(
    row: &Constraint,
    own: &Json,
    context: Context<'_>,
    findings: &mut Findings,
) -> Option<(String, Json, bool)> {
    if !has_group_above(context) {
        return None;
    }
    let mut declared = context.groups.above(&context.target.path, &row.by);
    let nearest = declared.next();
    let contradicts = |(_, by): &(_, Option<&Json>)| by.is_some_and(|by| row.contradicts(by, own));
    let deciding = nearest.iter().cloned().chain(declared.filter(|_| row.every)).find(contradicts);
    if let Some((group, by)) = deciding.or(nearest) {
        let by = by?;
        let is_direct = context.target.path.rfind('/') == Some(group.len());
        if is_direct || row.contradicts(by, own) || row.hands_down.contains(by) {
            return Some((group, by.clone(), true));
        }
    }
    let (groups, by) = above(row, context, findings)?;
    Some((groups.into_iter().next_back()?, by, false))
}

/// The live value of the setting in the group above, and the groups that have it, from the nearest on.
fn above(
    row: &Constraint,
    context: Context<'_>,
    findings: &mut Findings,
) -> Option<(Vec<String>, Json)> {
    let is_new = matches!(context.target.namespace, Some(Namespace { id: Id::OfStep(_), .. }));
    if row.by.section != settings::SECTION || !has_group_above(context) || is_new {
        return None;
    }
    let Some(group) = context.group_above else {
        findings.ask(Question::GroupAbove);
        return None;
    };
    let path = group_of(&context.target.path).unwrap_or_default();
    let named = group.get(&row.decided_by()).and_then(Json::as_array).into_iter().flatten();
    let named: Vec<_> = named.filter_map(Json::as_str).map(str::to_owned).collect();
    let groups = if named.is_empty() { vec![path.to_owned()] } else { named };
    Some((groups, group.get(&row.by.field)?.clone()))
}

/// Whether the container is in a group.
pub(crate) fn has_group_above(context: Context<'_>) -> bool {
    let of_user = context
        .target
        .namespace
        .as_ref()
        .is_some_and(|namespace| !matches!(namespace.owner, NamespaceOwner::Group));
    context.target.path.contains('/') && context.personal_owner.is_none() && !of_user
}
