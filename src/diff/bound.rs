//! Compares declared values with what the group above allows.

use super::{Context, Findings};
use crate::{
    field::Field,
    kind::NamespaceOwner,
    kinds::group_limits::{OnLimit, outranks},
    live::Question,
    text,
    value::Value,
};

/// Why the group above prevents a declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The service refuses it: what is wrong, and what to do.
    Refused(String, String),
    /// It would have no effect; the end of a sentence that begins with `waits`.
    Waits(String),
}

/// Why the group above prevents `value` for the field `name`, if it does. Asks a question if that
/// depends on an unknown fact. A group of the same run was checked against its declaration when the
/// manifests were read; its live state before the run does not count.
pub fn bound(
    field: &Field,
    name: &str,
    value: &Value,
    context: Context<'_>,
    findings: &mut Findings,
) -> Option<Limit> {
    let by = field.bounded_by.as_deref().filter(|_| has_group_above(context))?;
    let own = value.plain()?;
    let path = &context.target.path;
    if context.groups.declare_above(path, by) {
        return None;
    }
    let Some(group) = context.group_above else {
        findings.ask(Question::GroupAbove);
        return None;
    };
    let says = group.get(by)?;
    let above = outranks(name, own, says)?;
    let above_it = path.rsplit_once('/').map_or("", |(group, _)| group);
    Some(match above {
        OnLimit::Refused => {
            let says = text::escape(says.as_str().unwrap_or_default());
            Limit::Refused(
                format!("`{name}` goes beyond the `{by}` of `{above_it}`, which is `{says}`"),
                format!("declare less here, or change `{by}` of `{above_it}` first"),
            )
        }
        OnLimit::Shown => Limit::Waits(format!("until `{above_it}` has `{by}` on")),
    })
}

/// Whether the container is in a group.
pub(super) fn has_group_above(context: Context<'_>) -> bool {
    let of_user = context
        .target
        .namespace
        .as_ref()
        .is_some_and(|namespace| !matches!(namespace.owner, NamespaceOwner::Group));
    context.target.path.contains('/') && context.personal_owner.is_none() && !of_user
}
