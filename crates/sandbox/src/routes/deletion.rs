//! Deleting and restoring projects and groups.
//!
//! If deletion is delayed, a project or group is only marked, and renamed so that its path becomes
//! free (a group from release 18.0 on). It can be restored until the delay is over, and removed at
//! once by a call with its full path.

use super::prelude::*;
use super::{group_moves, groups, projects};

pub(super) const ROUTES: &[Route] = &[
    delete("/projects/{id}", |call| {
        let project = call.project_as(OWNER)?;
        let sql = "SELECT updated_at FROM projects WHERE id = ?1";
        let changed: String = call.one(sql, [project.id])?;
        call.check_unmodified(&changed)?;
        remove(call, &Deleted::project(call, &project))
    }),
    delete("/groups/{id}", |call| {
        let group = call.group_as(OWNER)?;
        call.check_unmodified(&group.created_at)?;
        remove(call, &Deleted::group(call, &group))
    }),
    post("/projects/{id}/restore", |call| {
        let project = call.project_as(OWNER)?;
        restore(call, &Deleted::project(call, &project))?;
        projects::answer(call, StatusCode::CREATED, project.id)
    }),
    post("/groups/{id}/restore", |call| {
        let group = call.group_as(OWNER)?;
        restore(call, &Deleted::group(call, &group))?;
        let group = Namespace::by_id(call.db, group.id)?;
        Answer::created(&groups::plain(call, &group.ok_or_else(|| Failure::not_found("Group"))?)?)
    }),
];

/// A project or group, as far as deletion is concerned.
struct Deleted<'a> {
    /// Its name in messages, and the parameter with its path.
    words: [&'static str; 2],
    table: &'static str,
    id: i64,
    name: &'a str,
    path: &'a str,
    full_path: &'a str,
    /// The ids of the groups above it.
    above: Vec<i64>,
    marked: bool,
    /// The suffix that a mark adds to its name and path.
    suffix: String,
    /// Whether `permanently_remove` is a parameter.
    at_once: bool,
}

impl<'a> Deleted<'a> {
    fn project(call: &Call<'_>, project: &'a Project) -> Self {
        let word = if call.is_from(18, 0) { "deletion_scheduled" } else { "deleted" };
        Self {
            words: ["Project", "project"],
            table: "projects",
            id: project.id,
            name: &project.name,
            path: &project.path,
            full_path: &project.full_path,
            above: ids(&project.namespace.traversal)
                .filter(|_| project.namespace.is_group())
                .collect(),
            marked: project.marked_for_deletion_on.is_some(),
            suffix: format!("-{word}-{}", project.id),
            at_once: call.is_from(15, 11),
        }
    }

    fn group(call: &Call<'_>, group: &'a Namespace) -> Self {
        let renamed = call.is_from(18, 0).then(|| format!("-deletion_scheduled-{}", group.id));
        Self {
            words: ["Group", "subgroup"],
            table: "namespaces",
            id: group.id,
            name: &group.name,
            path: &group.path,
            full_path: &group.full_path,
            above: ids(&group.traversal).filter(|id| *id != group.id).collect(),
            marked: group.marked_for_deletion_on.is_some(),
            suffix: renamed.unwrap_or_default(),
            at_once: true,
        }
    }

    fn is_group(&self) -> bool {
        self.table == "namespaces"
    }

    fn refused(&self, why: &str) -> Failure {
        Failure::refused(format!("{} {why}", self.words[0]))
    }

    /// Sets its name and path, and sets or removes the mark.
    fn save(&self, call: &Call<'_>, name: &str, path: &str, day: Option<&str>) -> Result<()> {
        let set = "SET name = ?2, path = ?3, marked_for_deletion_on = ?4 WHERE id = ?1";
        call.run(&format!("UPDATE {} {set}", self.table), params![self.id, name, path, day])?;
        if self.is_group() {
            let group = Namespace::by_id(call.db, self.id)?;
            return group.map_or(Ok(()), |group| group_moves::rename_below(call, &group));
        }
        call.set("projects", self.id, "full_path", self.full_path_with(path))?;
        // Before that release a mark also archived a project.
        match call.release() < OBSERVED {
            true => call.set("projects", self.id, "archived", day.is_some()),
            false => Ok(()),
        }
    }

    fn full_path_with(&self, path: &str) -> String {
        match self.full_path.rsplit_once('/') {
            Some((above, _)) => format!("{above}/{path}"),
            None => path.to_owned(),
        }
    }
}

/// Deletes it, or marks it if deletion is delayed. The answer is the same.
fn remove(call: &Call<'_>, it: &Deleted<'_>) -> Result<Answer> {
    // From 16.0 to 18.0 only groups and their projects wait.
    let is_personal = !it.is_group() && it.above.is_empty();
    let waits_alone = call.is_from(18, 0) || !call.is_from(16, 0);
    let waits = call.service.deletion_delay().is_some() && (waits_alone || !is_personal);
    let at_once = it.at_once && call.params.is_set("permanently_remove")?;
    if waits && at_once {
        check_permanent(call, it)?;
    } else if waits && it.marked {
        return Err(it.refused("has already been marked for deletion"));
    } else if waits {
        // Everything below a marked group is deleted with it.
        if !is_any_marked(call, it.above.iter().copied())? {
            let with_suffix = |text: &str| format!("{text}{}", it.suffix);
            it.save(call, &with_suffix(it.name), &with_suffix(it.path), Some(call.today()))?;
        }
        return accepted();
    }
    call.run(&format!("DELETE FROM {} WHERE id = ?1", it.table), [it.id])?;
    accepted()
}

fn accepted() -> Result<Answer> {
    Answer::with(StatusCode::ACCEPTED, &json!({ "message": "202 Accepted" }))
}

/// Whether one of these groups is marked.
pub(super) fn is_any_marked(
    call: &Call<'_>,
    groups: impl IntoIterator<Item = i64>,
) -> Result<bool> {
    for id in groups {
        let group = Namespace::by_id(call.db, id)?;
        if group.is_some_and(|group| group.marked_for_deletion_on.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A marked one may be removed at once by a call with its full path. A top-level group may not.
fn check_permanent(call: &Call<'_>, it: &Deleted<'_>) -> Result<()> {
    let path = call.params.text("full_path")?;
    refuse_if(it.is_group() && it.above.is_empty(), || {
        Failure::refused("`permanently_remove` option is only available for subgroups.")
    })?;
    refuse_if(!it.marked, || it.refused("must be marked for deletion first."))?;
    refuse_if(path.as_deref() != Some(it.full_path), || {
        let what = it.words[1];
        Failure::refused(format!(
            "`full_path` is incorrect. You must enter the complete path for the {what}."
        ))
    })
}

/// Removes the mark and its suffix. If the path is in use by now, name and path get a random
/// suffix.
fn restore(call: &Call<'_>, it: &Deleted<'_>) -> Result<()> {
    if !call.is_from(18, 0) {
        call.require_tier(Tier::Premium)?;
    }
    refuse_if(!it.marked, || it.refused("has not been marked for deletion"))?;
    let original = |text: &str| text.strip_suffix(&it.suffix).unwrap_or(text).to_owned();
    let (mut name, mut path) = (original(it.name), original(it.path));
    let full_path = it.full_path_with(&path);
    let sql = "SELECT EXISTS (SELECT 1 FROM projects WHERE full_path = ?1 AND (?3 OR id <> ?2))
             OR EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1 AND NOT (?3 AND id = ?2))";
    if call.one(sql, params![full_path, it.id, it.is_group()])? {
        let infix = format!("-{}", &call.random_hex()[..5]);
        name.push_str(&infix);
        path.push_str(&infix);
    }
    let (above, whose) = match it.is_group() {
        true => ("parent_id", ""),
        false => ("namespace_id", "Project namespace name has already been taken and "),
    };
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {0} other JOIN {0} own USING ({above})
                        WHERE own.id = ?1 AND other.id <> ?1 AND other.name = ?2)",
        it.table
    );
    refuse_if(call.one(&sql, params![it.id, name])?, || {
        Failure::refused(format!("{whose}Name has already been taken"))
    })?;
    it.save(call, &name, &path, None)
}
