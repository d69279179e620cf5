//! The rights of the caller: levels in projects and groups, archived objects, tiers.

use crate::prelude::*;

impl Call<'_> {
    /// The caller's memberships of groups, read once.
    pub(crate) fn memberships(&self) -> Result<&Memberships> {
        if let Some(memberships) = self.memberships.get() {
            return Ok(memberships);
        }
        let memberships = match &self.caller {
            Some(user) => Memberships::read(self.db, user.id, self.today())?,
            None => Memberships::default(),
        };
        Ok(self.memberships.get_or_init(|| memberships))
    }

    /// Reads the caller's direct levels in all projects of a list at once.
    pub(crate) fn cache_direct_levels(&self, projects: &[Project]) -> Result<()> {
        if let Some(user) = &self.caller {
            let ids = projects.iter().map(|project| project.id);
            // Only lists call this function, and a call reads only one list.
            let _ = self.direct_level_cache.set(self.direct_levels(user.id, ids.collect())?);
        }
        Ok(())
    }

    /// The user's direct level in each of these projects; `None` if the user is not a direct member.
    fn direct_levels(&self, user_id: i64, ids: Vec<i64>) -> Result<HashMap<i64, Option<i64>>> {
        let mut levels: HashMap<i64, Option<i64>> = ids.iter().map(|id| (*id, None)).collect();
        let sql = "SELECT project_id, access_level FROM members
             WHERE user_id = ?1 AND project_id IN (SELECT value FROM json_each(?2))
               AND state = 'active' AND (expires_at IS NULL OR expires_at >= ?3)";
        let ids = Value::from(ids).to_string();
        levels.extend(
            self.query_rows::<(i64, Option<i64>)>(sql, params![user_id, ids, self.today()])?,
        );
        Ok(levels)
    }

    fn is_caller(&self, user_id: i64) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.id == user_id)
    }

    /// The direct level of a user in a project; `None` if the user is not a direct member.
    pub(crate) fn direct_level(&self, user_id: i64, project_id: i64) -> Result<Option<i64>> {
        let levels = self.direct_level_cache.get().filter(|_| self.is_caller(user_id));
        // Lists also show the upstream projects of forks, which the cache lacks.
        match levels.and_then(|levels| levels.get(&project_id)) {
            Some(level) => Ok(*level),
            None => {
                Ok(self.direct_levels(user_id, vec![project_id])?.remove(&project_id).flatten())
            }
        }
    }

    /// The caller's level in a project; 0 for none. Administrators count as owners.
    pub(crate) fn caller_level_in_project(&self, project: &Project) -> Result<i64> {
        match &self.caller {
            None => Ok(0),
            Some(user) if user.admin => Ok(OWNER),
            Some(user) => self.user_level_in_project(user.id, project),
        }
    }

    /// The highest level of a user in a project; 0 for none. It comes from ownership, direct
    /// membership, a group above, or an invited group.
    pub(crate) fn user_level_in_project(&self, user_id: i64, project: &Project) -> Result<i64> {
        if project.namespace.owner_id == Some(user_id) {
            return Ok(OWNER);
        }
        let user_memberships;
        let memberships = if self.is_caller(user_id) {
            self.memberships()?
        } else {
            user_memberships = Memberships::read(self.db, user_id, self.today())?;
            &user_memberships
        };
        let direct_level = self.direct_level(user_id, project.id)?.unwrap_or(0);
        let best_level =
            direct_level.max(memberships.level_in_namespace(&project.namespace.traversal));
        if !project.shared {
            return Ok(best_level);
        }
        let sql = "SELECT s.access_level, n.traversal
             FROM shares s JOIN namespaces n ON n.id = s.invited_id
             WHERE s.project_id = ?1 AND (s.expires_at IS NULL OR s.expires_at >= ?2)";
        let invitations =
            self.query_rows::<(i64, String)>(sql, params![project.id, self.today()])?;
        let levels = invitations.iter().map(|(max_level, traversal)| {
            memberships.level_in_namespace(traversal).min(*max_level)
        });
        Ok(levels.fold(best_level, i64::max))
    }

    /// True if objects with this visibility are visible to the caller even without membership.
    fn is_visible_without_level(&self, visibility: &str) -> bool {
        visibility == "public" || visibility == "internal" && self.caller.is_some()
    }

    /// True if the caller may see a project.
    pub(crate) fn may_see_project(&self, project: &Project) -> Result<bool> {
        Ok(self.is_visible_without_level(&project.visibility)
            || self.caller_level_in_project(project)? >= GUEST)
    }

    /// The project with this id or path. Fails with 404 if it is missing or hidden from the caller.
    pub(crate) fn visible_project(&self, id_or_path: &str) -> Result<Project> {
        match Project::find_by_reference(self.db, id_or_path)? {
            Some(project) if self.may_see_project(&project)? => Ok(project),
            Some(_) => Err(ErrorResponse::not_found("Project")),
            None => self.find_moved_project(id_or_path),
        }
    }

    /// Handles the former path of a project: returns the project, or fails with a redirect or a refusal.
    fn find_moved_project(&self, path: &str) -> Result<Project> {
        let project = match Project::find_by_former_path(self.db, path)? {
            Some(project) if self.may_see_project(&project)? => project,
            _ => return Err(ErrorResponse::not_found("Project")),
        };
        if self.profile().former_paths_answer {
            return Ok(project);
        }
        let text = "Non GET methods are not allowed for moved projects";
        refuse_if(self.is_write, || ErrorResponse::message(StatusCode::METHOD_NOT_ALLOWED, text))?;
        // In `/api/v4/projects/OLD/rest?query`, the id replaces the fourth segment.
        let (url_path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut segments: Vec<&str> = url_path.split('/').collect();
        let id = project.id.to_string();
        if let Some(segment) = segments.get_mut(4) {
            *segment = &id;
        }
        let query_separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{}{}{query_separator}{query}", self.base_url, segments.join("/"));
        Err(ErrorResponse::redirect(url))
    }

    /// True if the caller may use the feature whose access level is in the attribute `level_attribute`. In a
    /// private project the caller must be at least a reporter.
    pub(crate) fn may_use_feature(&self, project: &Project, level_attribute: &str) -> Result<bool> {
        let level = self.caller_level_in_project(project)?;
        let is_not_private = project.visibility != "private";
        let attributes = project.attributes(self.db)?;
        Ok(match attributes.get(level_attribute).and_then(Value::as_str) {
            Some("disabled") => false,
            Some("private") => level >= REPORTER || is_not_private && level >= GUEST,
            _ => level >= REPORTER || is_not_private,
        })
    }

    /// True if all `features` of a project are disabled. A feature is the name of an attribute such
    /// as `wiki_access_level`.
    pub(crate) fn are_features_off(&self, project: &Project, features: &[&str]) -> Result<bool> {
        let attributes = project.attributes(self.db)?;
        let mut levels = features.iter().map(|name| attributes.get(*name));
        Ok(levels.all(|level| level.is_some_and(|level| level == "disabled")))
    }

    /// The project that `:id` in the path names.
    pub(crate) fn project(&self) -> Result<Project> {
        self.visible_project(self.segment("id"))
    }

    /// The project that `:id` names. Fails with 401 for an anonymous caller, with 404 if the
    /// project is not visible, and with 403 below `min_level`.
    pub(crate) fn require_project(&self, min_level: i64) -> Result<Project> {
        self.require_user()?;
        self.project_allowing_anonymous(min_level)
    }

    /// True if a project is archived, by itself or with a group above it.
    pub(crate) fn is_archived(&self, project: &Project) -> Result<bool> {
        Ok(project.archived || self.is_group_archived(&project.namespace)?)
    }

    /// True if a group is archived, by itself or with a group above it.
    pub(crate) fn is_group_archived(&self, group: &Namespace) -> Result<bool> {
        self.is_set_in_hierarchy(group, ARCHIVED, true)
    }

    /// True if a group, or a group above it, sets the flag `name` to `value`.
    pub(crate) fn is_set_in_hierarchy(
        &self,
        group: &Namespace,
        name: &str,
        value: bool,
    ) -> Result<bool> {
        let group_ids: Vec<i64> = access::traversal_ids(&group.traversal).collect();
        let sql =
            "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id IN (SELECT value FROM json_each(?1))
                              AND json_extract(settings, '$.' || ?2) = ?3)";
        self.query_value(sql, params![Value::from(group_ids).to_string(), name, value])
    }

    /// Fails with 403 if the project is archived and archived projects refuse this route.
    pub(crate) fn check_archive_rule(&self, project: &Project) -> Result<()> {
        match self.archive_refusal {
            Some(refuse) if self.is_archived(project)? => Err(refuse()),
            _ => Ok(()),
        }
    }

    /// Like [`Call::require_project`], but an anonymous caller counts as a caller without a level.
    pub(crate) fn project_allowing_anonymous(&self, min_level: i64) -> Result<Project> {
        let project = self.project()?;
        refuse_if(self.caller_level_in_project(&project)? < min_level, ErrorResponse::forbidden)?;
        self.check_archive_rule(&project).map(|()| project)
    }

    /// Like [`Call::require_project`], but also calls [`Self::check_writable`].
    pub(crate) fn require_writable_project(&self, min_level: i64) -> Result<Project> {
        let project = self.require_project(min_level)?;
        self.check_writable(&project)?;
        Ok(project)
    }

    /// Like [`Self::check_archive_rule`]. In the dialect `archived_read_only`, archived projects
    /// refuse all routes.
    pub(crate) fn check_writable(&self, project: &Project) -> Result<()> {
        let is_read_only = project.archived && self.profile().archived_read_only;
        refuse_if(is_read_only, ErrorResponse::forbidden)?;
        self.check_archive_rule(project)
    }

    /// Fails if the service's tier is below `min_tier`: with 404, or with 403 in the dialect
    /// `unlicensed_forbidden`.
    pub(crate) fn require_tier(&self, min_tier: ServiceTier) -> Result<()> {
        refuse_if(self.tier() < min_tier, || {
            let is_forbidden = self.profile().unlicensed_forbidden;
            if is_forbidden {
                ErrorResponse::forbidden()
            } else {
                ErrorResponse::not_found_hidden()
            }
        })
    }

    /// The error for removing the last owner: 403, or 400 in the dialect `last_owner_bad_request`.
    pub(crate) fn last_owner_error(&self) -> ErrorResponse {
        if self.profile().last_owner_bad_request {
            return ErrorResponse::bad_request("the last owner cannot be removed");
        }
        ErrorResponse::forbidden()
    }

    /// The caller's level in a group; 0 for none. Administrators count as owners.
    pub(crate) fn caller_level_in_group(&self, group: &Namespace) -> Result<i64> {
        match &self.caller {
            None => Ok(0),
            Some(user) if user.admin || group.owner_id == Some(user.id) => Ok(OWNER),
            Some(_) => Ok(self.memberships()?.level_in_namespace(&group.traversal)),
        }
    }

    /// True if the caller may see a group.
    pub(crate) fn may_see_group(&self, group: &Namespace) -> Result<bool> {
        Ok(self.is_visible_without_level(&group.visibility)
            || self.caller_level_in_group(group)? > 0)
    }

    /// The group with this id or path. Fails with 404 if it is missing or hidden from the caller.
    pub(crate) fn visible_group(&self, reference: &str) -> Result<Namespace> {
        match Namespace::find_by_reference(self.db, reference)? {
            Some(group) if group.is_group() && self.may_see_group(&group)? => Ok(group),
            _ => Err(ErrorResponse::not_found("Group")),
        }
    }

    /// The group that `:id` in the path names.
    pub(crate) fn group(&self) -> Result<Namespace> {
        self.visible_group(self.segment("id"))
    }

    /// The group that `:id` names. Fails with 401 for an anonymous caller, with 404 if the group is
    /// not visible, and with 403 below `min_level`.
    pub(crate) fn require_group(&self, min_level: i64) -> Result<Namespace> {
        self.require_user()?;
        self.group_allowing_anonymous(min_level)
    }

    /// Like [`Self::require_group`], but an anonymous caller counts as a caller without a level.
    pub(crate) fn group_allowing_anonymous(&self, min_level: i64) -> Result<Namespace> {
        let group = self.group()?;
        refuse_if(self.caller_level_in_group(&group)? < min_level, ErrorResponse::forbidden)
            .map(|()| group)
    }
}
