//! What is declared, against what the group above allows.

use super::{Context, Findings};
use crate::{
    field::Field,
    kind::NamespaceOwner,
    kinds::above::{Above, outranks},
    live::Question,
    text,
    value::{Json, Value},
};

/// Why the group above keeps a field from becoming as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The service refuses it: what is wrong, and what to do.
    Refused(String, String),
    /// It would not show; the end of a sentence that begins with `waits`.
    Waits(String),
}

/// Why the group above keeps the field `name` from becoming `value`, if it does. Where that depends on
/// what nobody knows yet, it is asked. What a group of the run declares was compared when it was read,
/// and is not compared with what is there before the run.
pub fn bound(
    field: &Field,
    name: &str,
    value: &Value,
    context: Context<'_>,
    findings: &mut Findings,
) -> Option<Bound> {
    let own = value.plain().filter(|_| field.is_bounded && has_group_above(context))?;
    let path = &context.target.path;
    let Some(group) = context.group_above else {
        findings.ask(Question::GroupAbove);
        return None;
    };
    let (by, above) = outranks(name, own, |by| {
        group.get(by).filter(|_| !context.groups.declare_above(path, by)).cloned()
    })?;
    let above_it = path.rsplit_once('/').map_or("", |(group, _)| group);
    Some(match above {
        Above::Refused => {
            let says = group.get(by).and_then(Json::as_str).unwrap_or_default();
            let says = text::escape(says);
            Bound::Refused(
                format!("`{name}` goes beyond the `{by}` of `{above_it}`, which is `{says}`"),
                format!("declare less here, or change `{by}` of `{above_it}` first"),
            )
        }
        Above::Shown => Bound::Waits(format!("until `{above_it}` has `{by}` on")),
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
