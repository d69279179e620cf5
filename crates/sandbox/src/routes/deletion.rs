//! Deleting and restoring projects and groups.
//!
//! If deletion is delayed, a project or group is only marked. The mark also renames it, which makes
//! its path free (for a group from release 18.0 on). A marked project or group can be restored
//! until the delay is over. A call with its full path removes it at once.

use super::prelude::*;

pub(super) const ROUTES: &[Route] =
    &[delete("/{holder}", remove), post("/{holder}/restore", restore)];

/// A project or group to delete or restore.
struct DeletionTarget<'a> {
    call: &'a Call<'a>,
    scope: GroupOrProject,
    /// The ids of the groups above the project or group.
    ancestor_ids: Vec<i64>,
    is_marked: bool,
    /// The suffix that a mark adds to the name and path.
    suffix: String,
}

impl<'a> DeletionTarget<'a> {
    /// The project or group of the call. The caller must own it.
    fn from_call(call: &'a Call<'_>) -> Result<Self> {
        let scope = GroupOrProject::from_call_allow_archived(call, [OWNER, OWNER])?;
        let is_from_18 = call.is_at_least(18, 0);
        let (marked_on, suffix_word) = match &scope {
            GroupOrProject::Group(group) => {
                (&group.marked_for_deletion_on, is_from_18.then_some("deletion_scheduled"))
            }
            GroupOrProject::Project(project) => {
                let suffix_word = if is_from_18 { "deletion_scheduled" } else { "deleted" };
                (&project.marked_for_deletion_on, Some(suffix_word))
            }
        };
        let suffix = suffix_word.map(|word| format!("-{word}-{}", scope.id())).unwrap_or_default();
        Ok(Self {
            call,
            ancestor_ids: scope.parent_group_ids(),
            is_marked: marked_on.is_some(),
            suffix,
            scope,
        })
    }

    fn is_group(&self) -> bool {
        matches!(self.scope, GroupOrProject::Group(_))
    }

    fn error(&self, reason: &str) -> ErrorResponse {
        format!("{} {reason}", self.scope.choose("Project", "Group")).into()
    }

    /// Saves the name and path of the project or group. Marks it for deletion on `day`, or removes
    /// the mark if `day` is `None`.
    fn save_mark(&self, [name, path]: [String; 2], day: Option<&str>) -> Result<()> {
        let (call, table, id) = (self.call, self.scope.table(), self.scope.id());
        let set_clause = "SET name = ?2, path = ?3, marked_for_deletion_on = ?4 WHERE id = ?1";
        call.execute(&format!("UPDATE {table} {set_clause}"), params![id, name, path, day])?;
        if self.is_group() {
            let group = Namespace::find_by_id(call.db, id)?;
            return group.map_or(Ok(()), |group| group_moves::update_full_paths(call, &group));
        }
        call.set_column(table, id, "full_path", self.sibling_full_path(&path))?;
        // Before `OBSERVED_RELEASE`, a mark also archived a project.
        let is_archiving = !call.is_observed_release_or_later();
        if is_archiving { call.set_column(table, id, "archived", day.is_some()) } else { Ok(()) }
    }

    fn sibling_full_path(&self, path: &str) -> String {
        match self.scope.full_path().rsplit_once('/') {
            Some((parent_path, _)) => format!("{parent_path}/{path}"),
            None => path.to_owned(),
        }
    }
}

/// Deletes the project or group, or marks it if deletion is delayed. Both cases have the same
/// response.
fn remove(call: &Call<'_>) -> Result<Answer> {
    let target = DeletionTarget::from_call(call)?;
    call.check_unmodified(match &target.scope {
        GroupOrProject::Project(project) => &project.updated_at,
        GroupOrProject::Group(group) => &group.created_at,
    })?;
    // From 16.0 to 18.0, only the deletion of groups and of their projects is delayed.
    let is_personal = !target.is_group() && target.ancestor_ids.is_empty();
    let delays_personal = call.is_at_least(18, 0) || !call.is_at_least(16, 0);
    let is_delayed = call.service.deletion_delay().is_some() && (delays_personal || !is_personal);
    let can_be_permanent = target.is_group() || call.is_at_least(15, 11);
    let is_permanent = can_be_permanent && call.is_true("permanently_remove")?;
    if is_delayed && is_permanent {
        check_permanent_removal(&target)?;
    } else if is_delayed && target.is_marked {
        return Err(target.error("has already been marked for deletion"));
    }
    if !is_delayed || is_permanent {
        let (table, id) = (target.scope.table(), target.scope.id());
        call.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [id])?;
    } else if !is_any_group_marked(call, target.ancestor_ids.iter().copied())? {
        // The groups and projects below a marked group are deleted with that group.
        let name_and_path =
            target.scope.name_and_path().map(|text| format!("{text}{}", target.suffix));
        target.save_mark(name_and_path, Some(call.today()))?;
    }
    Answer::with_status(StatusCode::ACCEPTED, &json!({ "message": "202 Accepted" }))
}

/// True if one of these groups is marked for deletion.
pub(super) fn is_any_group_marked(
    call: &Call<'_>,
    group_ids: impl Iterator<Item = i64>,
) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM namespaces WHERE marked_for_deletion_on IS NOT NULL
                   AND id IN (SELECT value FROM json_each(?1)))";
    call.query_value(sql, [Value::from_iter(group_ids).to_string()])
}

/// Refuses an immediate removal unless the project or group is marked and the call contains its full
/// path. A top-level group cannot be removed immediately.
fn check_permanent_removal(target: &DeletionTarget<'_>) -> Result<()> {
    let path = target.call.text("full_path")?;
    let text = "`permanently_remove` option is only available for subgroups.";
    refuse_if(target.is_group() && target.ancestor_ids.is_empty(), || text.into())?;
    refuse_if(!target.is_marked, || target.error("must be marked for deletion first."))?;
    refuse_if(path.as_deref() != Some(target.scope.full_path()), || {
        let type_name = target.scope.choose("project", "subgroup");
        format!("`full_path` is incorrect. You must enter the complete path for the {type_name}.")
            .into()
    })
}

/// Restores a project or group: removes the mark and its suffix. If the path is taken now, the name
/// and path get a random suffix.
fn restore(call: &Call<'_>) -> Result<Answer> {
    let target = DeletionTarget::from_call(call)?;
    let (table, id) = (target.scope.table(), target.scope.id());
    if !call.is_at_least(18, 0) {
        call.require_tier(ServiceTier::Premium)?;
    }
    refuse_if(!target.is_marked, || target.error("has not been marked for deletion"))?;
    let name_and_path = target.scope.name_and_path();
    let mut restored_name_and_path =
        name_and_path.map(|name| name.strip_suffix(&target.suffix).unwrap_or(name).to_owned());
    let full_path = target.sibling_full_path(&restored_name_and_path[1]);
    let sql = "SELECT EXISTS (SELECT 1 FROM projects WHERE full_path = ?1 AND (?3 OR id <> ?2))
             OR EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1 AND NOT (?3 AND id = ?2))";
    if call.query_value(sql, params![full_path, id, target.is_group()])? {
        let random_suffix = format!("-{}", &call.random_hex()[..5]);
        restored_name_and_path.iter_mut().for_each(|name| name.push_str(&random_suffix));
    }
    let (parent_column, text_prefix) = target.scope.choose(
        ("namespace_id", "Project namespace name has already been taken and "),
        ("parent_id", ""),
    );
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {table} other JOIN {table} own USING ({parent_column})
                        WHERE own.id = ?1 AND other.id <> ?1 AND other.name = ?2)"
    );
    refuse_if(call.query_value(&sql, params![id, restored_name_and_path[0]])?, || {
        format!("{text_prefix}Name has already been taken").into()
    })?;
    target.save_mark(restored_name_and_path, None)?;
    match target.scope {
        GroupOrProject::Project(_) => {
            projects::project_answer(call, StatusCode::CREATED, id, ExtraFields::default())
        }
        GroupOrProject::Group(_) => {
            Answer::created(&groups::action_response_json(call, &groups::reload(call, id)?)?)
        }
    }
}
