//! Lists of invitations in both directions: invited groups, inviting groups, and groups that can be
//! invited.

use super::prelude::*;
use super::{actions, groups};

pub(super) const ROUTES: &[Route] = &[
    get("/groups/{id}/groups/shared", inviting),
    get("/{holder}/invited_groups", invited_to),
    get("/projects/{id}/share_locations", could_be_invited),
];

/// The groups that are invited to the holder.
fn invited(call: &Call<'_>, holder: Holder) -> Result<Vec<i64>> {
    let (column, id) = holder.key();
    find(call, &format!("SELECT invited_id FROM shares WHERE {column} = ?1"), id)
}

fn find(call: &Call<'_>, select: &str, id: i64) -> Result<Vec<i64>> {
    let sql = format!("{select} AND (expires_at IS NULL OR expires_at >= ?2)");
    call.many(&sql, params![id, call.today()])
}

fn inviting(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_from(17, 2), Failure::no_route)?;
    let group = call.group()?;
    let select = "SELECT group_id FROM shares WHERE invited_id = ?1 AND group_id IS NOT NULL";
    groups::among(call, &find(call, select, group.id)?)
}

/// The groups invited to a project or group: directly, to the groups above, or both, depending on the
/// call.
fn invited_to(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_from(17, 4), Failure::no_route)?;
    let scope = Scope::seen(call)?;
    let asked = call.params.words_of("relation", &["direct", "inherited"])?.unwrap_or_default();
    let is_asked = |word: &str| asked.is_empty() || asked.iter().any(|other| other == word);
    let mut found = Vec::new();
    if is_asked("direct") {
        found.extend(invited(call, scope.holder())?);
    }
    for above in scope.above().into_iter().filter(|_| is_asked("inherited")) {
        found.extend(invited(call, Holder::Group(above))?);
    }
    match scope {
        Scope::Group(_) => groups::among(call, &found),
        Scope::Project(_) => actions::locations(call, 0, |group| found.contains(&group.id)),
    }
}

fn could_be_invited(call: &Call<'_>) -> Result<Answer> {
    refuse_if(call.release() < OBSERVED, Failure::no_route)?;
    let project = call.project_as(MAINTAINER)?;
    let mut taken = invited(call, Holder::Project(project.id))?;
    taken.extend(ids(&project.namespace.traversal));
    actions::locations(call, GUEST, |group| !taken.contains(&group.id))
}
