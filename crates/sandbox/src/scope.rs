//! The owner of members, variables, tokens and invitations: a group or a project, with the same
//! operations for both.

use crate::prelude::*;

/// A group or a project.
pub(crate) enum GroupOrProject {
    Group(Box<Namespace>),
    Project(Box<Project>),
}

impl From<Project> for GroupOrProject {
    fn from(project: Project) -> Self {
        Self::Project(Box::new(project))
    }
}

impl From<Namespace> for GroupOrProject {
    fn from(group: Namespace) -> Self {
        Self::Group(Box::new(group))
    }
}

impl GroupOrProject {
    /// The project or group of the call. The caller must have at least the first level in a
    /// project, or the second level in a group. Level 0 allows reads by every user who sees the
    /// project.
    pub(crate) fn from_call(call: &Call<'_>, min_levels: [i64; 2]) -> Result<Self> {
        if call.is_group_operation() || min_levels[0] == 0 {
            return Self::from_call_allow_archived(call, min_levels);
        }
        Ok(call.require_writable_project(min_levels[0])?.into())
    }

    /// Like [`Self::from_call`], but reads also accept archived projects.
    pub(crate) fn from_call_read_archived(call: &Call<'_>, min_levels: [i64; 2]) -> Result<Self> {
        let from_call =
            if call.is_write { Self::from_call } else { Self::from_call_allow_archived };
        from_call(call, min_levels)
    }

    /// Like [`Self::from_call`], for operations that archived projects accept.
    pub(crate) fn from_call_allow_archived(call: &Call<'_>, min_levels: [i64; 2]) -> Result<Self> {
        call.require_user()?;
        Self::from_call_allowing_anonymous(call, min_levels)
    }

    /// Like [`Self::from_call_allow_archived`], but a caller without a token counts as a caller without a level.
    pub(crate) fn from_call_allowing_anonymous(
        call: &Call<'_>,
        min_levels: [i64; 2],
    ) -> Result<Self> {
        Ok(if call.is_group_operation() {
            call.group_allowing_anonymous(min_levels[1])?.into()
        } else {
            call.project_allowing_anonymous(min_levels[0])?.into()
        })
    }

    /// The project or group of the call. Fails with 404 if the caller does not see it. Callers
    /// without a token are allowed.
    pub(crate) fn from_call_if_visible(call: &Call<'_>) -> Result<Self> {
        Ok(if call.is_group_operation() { call.group()?.into() } else { call.project()?.into() })
    }

    /// Returns `project_value` for a project, and `group_value` for a group.
    pub(crate) fn choose<T>(&self, project_value: T, group_value: T) -> T {
        match self {
            Self::Group(_) => group_value,
            Self::Project(_) => project_value,
        }
    }

    /// The id of a project; `None` for a group.
    pub(crate) fn project_id(&self) -> Option<i64> {
        self.choose(Some(self.id()), None)
    }

    pub(crate) fn holder(&self) -> Holder {
        match self {
            Self::Group(group) => Holder::Group(group.id),
            Self::Project(project) => Holder::Project(project.id),
        }
    }

    /// The database table that contains the project or group.
    pub(crate) fn table(&self) -> &'static str {
        self.choose("projects", "namespaces")
    }

    /// The name and the path of the project or group.
    pub(crate) fn name_and_path(&self) -> [&str; 2] {
        match self {
            Self::Group(group) => [&group.name, &group.path],
            Self::Project(project) => [&project.name, &project.path],
        }
    }

    pub(crate) fn full_path(&self) -> &str {
        match self {
            Self::Group(group) => &group.full_path,
            Self::Project(project) => &project.full_path,
        }
    }

    /// The column that refers to the project or group in other tables.
    pub(crate) fn id_column(&self) -> &'static str {
        self.holder().column_and_id().0
    }

    /// The name of the type in messages.
    pub(crate) fn type_name(&self) -> &'static str {
        self.choose("project", "group")
    }

    pub(crate) fn id(&self) -> i64 {
        self.holder().column_and_id().1
    }

    /// The ids of the groups whose members are also members of this project or group: the group
    /// itself, and all groups above. The top-level group comes first.
    pub(crate) fn group_ids(&self) -> Vec<i64> {
        match self {
            Self::Group(group) => traversal_ids(&group.traversal).collect(),
            Self::Project(project) if project.namespace.is_group() => {
                traversal_ids(&project.namespace.traversal).collect()
            }
            Self::Project(_) => Vec::new(),
        }
    }

    /// The ids of the groups above, with the top-level group first.
    pub(crate) fn parent_group_ids(&self) -> Vec<i64> {
        let own_group_id = self.choose(None, Some(self.id()));
        self.group_ids().into_iter().filter(|id| Some(*id) != own_group_id).collect()
    }

    /// The caller's level in the group or project.
    pub(crate) fn caller_level(&self, call: &Call<'_>) -> Result<i64> {
        match self {
            Self::Group(group) => call.caller_level_in_group(group),
            Self::Project(project) => call.caller_level_in_project(project),
        }
    }

    /// The level needed to manage members.
    pub(crate) fn level_to_manage_members(&self) -> i64 {
        self.choose(MAINTAINER, OWNER)
    }
}
