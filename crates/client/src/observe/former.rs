//! Finds groups and projects with former paths, and lists the projects below a group.
//!
//! This module translates declared paths into live paths. Below a group that this run moves, a live
//! path starts with the group's former path. A project that left a path is found because the
//! service redirects its former path. The service does not redirect former paths of groups. The
//! list of projects below a group contains undeclared projects too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::FutureExt as _;

use super::{
    Observer, exist,
    find::{
        LiveObject,
        LocateResult::{self, Absent, Present},
        paths_are_equal,
    },
    lookups, split_fatal,
};
use crate::{
    address::parent_group_path,
    api::Result,
    catalogue,
    cause::Cause,
    desired::{
        Container, DeclaredSection, EntryPresence, MovedContainer, named_object, path_after_rename,
    },
    field::{NamedObject, Scope},
    kind::{LiveEntry, NameIndex, Target, unmarked_path},
    level::MAINTAINER,
    live::{ListedContainer, LiveEntries, Presence},
    operation::KeyFilter,
    value::Json,
};

impl Observer {
    /// Translates the declared `path` of a container into its live path. The container itself must
    /// not move, but a group above it may move.
    pub(super) async fn resolve_live_path(&self, path: &str) -> Result<String> {
        let Some(group) = self.moves.nearest_moved_group_above(path) else {
            return Ok(path.to_owned());
        };
        // The group may be below another group that moves.
        let locate = async || self.find_live_path(group).boxed_local().await;
        let live_group_path =
            self.cache.live_paths.get_or_read(&group.path.to_lowercase(), locate).await?;
        Ok(format!("{live_group_path}{}", &path[group.path.len()..]))
    }

    /// The live path of the group that is declared at `path`. The group may have former paths.
    pub(super) async fn resolve_live_group_path(&self, path: &str) -> Result<String> {
        // Translate the path of any child, and remove its last segment.
        let child_path = self.resolve_live_path(&format!("{path}/-")).await?;
        Ok(child_path.strip_suffix("/-").unwrap_or(path).to_owned())
    }

    /// The live path of the project that is declared at `path`. The project may have former paths.
    /// Another project that is about to move may still have this path.
    pub(super) async fn resolve_live_project_path(&self, path: &str) -> Result<String> {
        let Some(declared_move) = self.moves.find_moved_container(path) else {
            return self.resolve_live_path(path).await;
        };
        let locate = async || self.find_live_path(declared_move).await;
        self.cache.live_paths.get_or_read(&path.to_lowercase(), locate).await
    }

    /// The live path of the group or project that is declared at `path`. It may have former paths.
    pub(super) async fn resolve_live_container_path(
        &self,
        scope: Scope,
        path: &str,
    ) -> Result<String> {
        match scope {
            Scope::Group => self.resolve_live_group_path(path).await,
            Scope::Project => self.resolve_live_project_path(path).await,
        }
    }

    /// The live path of a group or project with former paths.
    async fn find_live_path(&self, declared_move: &MovedContainer) -> Result<String> {
        let MovedContainer { scope, path: declared_path, former_paths } = declared_move;
        let live_path = self.resolve_live_path(declared_path).await?;
        if self.find_blocking_path(declared_path).await?.is_none()
            && self.exists_at(*scope, &live_path).await?
        {
            return Ok(live_path);
        }
        let renamed_paths =
            former_paths.iter().filter_map(|former| path_after_rename(former, declared_path));
        let transit_paths =
            renamed_paths.filter(|path| self.moves.intermediate_group(path).is_some());
        for candidate in former_paths.iter().map(ToString::to_string).chain(transit_paths) {
            let path = self.resolve_live_path(&candidate).await?;
            if self.exists_at(*scope, &path).await? {
                return Ok(path);
            }
        }
        for former_path in former_paths.iter().filter(|_| *scope == Scope::Project) {
            let Some(redirect_path) = self.follow_redirects(former_path).await? else { continue };
            for path in intermediate_paths(former_path, declared_path) {
                let path = self.resolve_live_path(&path).await?;
                if paths_are_equal(&redirect_path, &path) {
                    return Ok(path);
                }
            }
        }
        Ok(live_path)
    }

    /// Follows the redirects of the service to the project that left `former_path`, and returns its
    /// current path.
    async fn follow_redirects(&self, former_path: &str) -> Result<Option<String>> {
        let live_path = self.resolve_live_path(former_path).await?;
        let older_paths = self.older_paths(Scope::Project, former_path, &live_path);
        for path in std::iter::once(live_path).chain(older_paths) {
            let mut path_result = self.fetch_path(Scope::Project, &path).await;
            if let Err(error) = &path_result
                && error.is_moved()
            {
                let Some(id) = error.moved_to() else { continue };
                path_result = self.fetch_path(Scope::Project, &id.to_string()).await;
            }
            match path_result {
                Err(error) if error.is_container_not_found_in(Scope::Project) => {}
                path_result => return path_result.map(Some),
            }
        }
        Ok(None)
    }

    /// Reads the group or project at `path_or_id`, and returns the path in its object.
    async fn fetch_path(&self, scope: Scope, path_or_id: &str) -> Result<String> {
        let object = self.get_container_object(scope, path_or_id, &KeyFilter::All).await?;
        Ok(catalogue::container_lookup(scope).read_path(&object).to_owned())
    }

    /// Returns the declared path of the container that must leave `path` before another container
    /// can move to `path`. Returns `None` if no container must leave `path`. Also returns `None` if
    /// that container, and all containers that it waits for, have already moved.
    async fn find_blocking_path(&self, path: &str) -> Result<Option<Arc<str>>> {
        let first_blocker = self.moves.former_occupant(path);
        let mut occupant = first_blocker;
        while let Some(blocker) = occupant {
            let live_path = self.resolve_live_path(&blocker.path).await?;
            if !self.exists_at(blocker.scope, &live_path).await? {
                return Ok(first_blocker.map(|next_move| next_move.path.clone()));
            }
            occupant = self.moves.former_occupant(&blocker.path);
        }
        Ok(None)
    }

    /// The nearest group above `path` whose own name or parent changes. A group that only moves
    /// together with a group above it does not count.
    async fn find_moving_group_above(&self, path: &str) -> Result<Option<Arc<str>>> {
        let mut group_above = self.moves.nearest_moved_group_above(path);
        while let Some(group) = group_above {
            if self.resolve_live_group_path(&group.path).await?
                != self.resolve_live_path(&group.path).await?
            {
                return Ok(Some(group.path.clone()));
            }
            group_above = self.moves.nearest_moved_group_above(&group.path);
        }
        Ok(None)
    }

    /// True if a group or project exists at exactly this path, without a redirect.
    pub(super) async fn exists_at(&self, scope: Scope, path: &str) -> Result<bool> {
        match self.fetch_path(scope, path).await {
            Ok(actual_path) => Ok(paths_are_equal(&actual_path, path)),
            Err(error) if error.is_moved() || error.is_container_not_found_in(scope) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The other scope, if a container of that scope exists at the declared path of `target`.
    /// `None` if no such container exists, or if other containers must move first.
    pub(super) async fn find_occupant(&self, target: &Target) -> Result<Option<Scope>> {
        let other_scope = target.scope.choose(Scope::Project, Scope::Group);
        let live_path = self.resolve_live_path(&target.path).await?;
        let is_occupied = match (other_scope, parent_group_path(&live_path)) {
            _ if !target.blocking_paths.is_empty() => false,
            // Every project is in a namespace.
            (Scope::Project, None) => false,
            (Scope::Group, Some(parent)) => {
                let groups = self.list_below(other_scope, parent).await?;
                groups.iter().any(|group| paths_are_equal(&group.path, &live_path))
            }
            _ => self.exists_at(other_scope, &live_path).await?,
        };
        Ok(is_occupied.then_some(other_scope))
    }

    /// The former paths of a container.
    fn former_paths(&self, container: &Container) -> &[Arc<str>] {
        self.moves
            .find_moved_container(&container.path)
            .map(|declared_move| &declared_move.former_paths[..])
            .unwrap_or_default()
    }

    /// True if a group above the container, or above one of its former paths, has former paths.
    pub(super) fn is_below_moving_group(&self, container: &Container) -> bool {
        let mut paths = std::iter::once(&container.path).chain(self.former_paths(container));
        paths.any(|path| {
            let was_above = parent_group_path(path)
                .is_some_and(|group| self.moves.path_after_move(group).is_some());
            was_above || self.moves.nearest_moved_group_above(path).is_some()
        })
    }

    /// Finds a container at its declared path, at a former path, or at an intermediate path.
    pub(super) async fn search_paths(&self, container: &Container) -> Result<LocateResult> {
        let live_path = self.resolve_live_path(&container.path).await?;
        let blocking_path = self.find_blocking_path(&container.path).await?;
        let declared_location = match blocking_path {
            None => self.read_at_path(container, &live_path).await?,
            Some(_) => Absent(self.explain_absence(container).await?),
        };
        let blockers =
            blocking_path.into_iter().chain(self.find_moving_group_above(&container.path).await?);
        let blocking_paths: Vec<_> = blockers.collect();
        let former_paths = self.former_paths(container);
        let absence = match declared_location {
            Present(object) => return self.reject_duplicate(object, former_paths).await,
            Absent(presence) => presence,
        };
        for (index, path) in former_paths.iter().enumerate() {
            let (present_path, location) = self.read_former_path(container, path).await?;
            match location {
                Present(mut object) => {
                    object.target.blocking_paths = blocking_paths;
                    object.target.occupant_scope = self.find_occupant(&object.target).await?;
                    let object = self.add_move(container, object, &present_path).await?;
                    return self.reject_duplicate(object, &former_paths[index + 1..]).await;
                }
                Absent(Presence::Missing(_)) => {}
                // The redirect leads to a former path that is read later in this loop.
                Absent(Presence::Redirected { new_path: Some(redirect_path) })
                    if self.is_live_at_any(&redirect_path, &former_paths[index + 1..]).await? => {}
                // Only an administrator can be sure that a namespace does not exist.
                Absent(Presence::MissingNamespace(_)) if self.caller.is_administrator => {}
                other @ Absent(_) => return Ok(other),
            }
        }
        Ok(Absent(match (absence, parent_group_path(&container.path)) {
            (Presence::Missing(target), _) => {
                Presence::Missing(Target { blocking_paths, ..target })
            }
            (Presence::MissingNamespace(_), Some(group)) => {
                Presence::MissingNamespace(group.to_owned())
            }
            (other, _) => other,
        }))
    }

    /// Reads the container with this `id`. The container may be at its declared path, a former
    /// path, an intermediate path, or any other path.
    pub(super) async fn locate_by_id(
        &self,
        container: &Container,
        id: u64,
    ) -> Result<LocateResult> {
        let raw = self.fetch_object(container, &id.to_string()).await?;
        let object = self.parse_with_level(container, &raw).await?;
        if object.facts.deletion_mark.is_some()
            || paths_are_equal(&object.path, &self.resolve_live_path(&container.path).await?)
        {
            return Ok(Present(object));
        }
        for former_path in self.former_paths(container) {
            let intermediate = intermediate_paths(former_path, &container.path);
            for path in std::iter::once(former_path.to_string()).chain(intermediate) {
                if paths_are_equal(&object.path, &self.resolve_live_path(&path).await?) {
                    return self.add_move(container, object, &path).await.map(Present);
                }
            }
        }
        Ok(Absent(Presence::Redirected { new_path: Some(object.path) }))
    }

    /// Reads a container at a former path, or at an intermediate path. A move changes the name and
    /// the namespace in two steps, and may have ended after the first step. The returned path
    /// contains the declared paths of the groups above, because these groups may move too.
    async fn read_former_path(
        &self,
        container: &Container,
        former_path: &str,
    ) -> Result<(String, LocateResult)> {
        let live_former_path = self.resolve_live_path(former_path).await?;
        let mut location = self.read_at_path(container, &live_former_path).await?;
        for path in self.older_paths(container.scope, former_path, &live_former_path) {
            if let Absent(Presence::Missing(_)) = &location
                && let redirect @ Absent(Presence::Redirected { .. }) =
                    self.read_at_path(container, &path).await?
            {
                location = redirect;
            }
        }
        for path in intermediate_paths(former_path, &container.path) {
            let live_intermediate_path = self.resolve_live_path(&path).await?;
            match &location {
                Absent(Presence::Redirected { new_path: Some(redirect_path) })
                    if paths_are_equal(redirect_path, &live_intermediate_path) =>
                {
                    return Ok((
                        path,
                        self.read_at_path(container, &live_intermediate_path).await?,
                    ));
                }
                // Former paths of groups do not redirect, so the group at the intermediate path may
                // be another group.
                Absent(Presence::Missing(_))
                    if container.scope == Scope::Group
                        && self.moves.former_occupant(&path).is_none()
                        && self.exists_at(Scope::Group, &live_intermediate_path).await? =>
                {
                    if self.moves.intermediate_group(&path).is_some() {
                        return Ok((
                            path,
                            self.read_at_path(container, &live_intermediate_path).await?,
                        ));
                    }
                    return Ok((
                        path,
                        Absent(Presence::PartlyMoved {
                            former_path: live_former_path,
                            intermediate_path: live_intermediate_path,
                        }),
                    ));
                }
                _ => {}
            }
        }
        Ok((former_path.to_owned(), location))
    }

    /// Older paths of a project that left `former_path` before a group above it moved. The result
    /// does not contain `live_path`.
    fn older_paths(&self, scope: Scope, former_path: &str, live_path: &str) -> Vec<String> {
        let mut paths = match scope {
            Scope::Project => self.moves.former_paths(former_path).unwrap_or_default(),
            // The service forgets former paths of groups.
            Scope::Group => Vec::new(),
        };
        paths.retain(|path| !paths_are_equal(path, live_path));
        paths
    }

    /// True if `live_path` is the live path of one of the former paths.
    async fn is_live_at_any(&self, live_path: &str, former_paths: &[Arc<str>]) -> Result<bool> {
        for path in former_paths {
            if paths_are_equal(&self.resolve_live_path(path).await?, live_path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `object`, or [`Presence::Ambiguous`] if another container exists at one of
    /// `former_paths`. A container that is declared at such a path does not count.
    async fn reject_duplicate(
        &self,
        object: LiveObject,
        former_paths: &[Arc<str>],
    ) -> Result<LocateResult> {
        for former_path in former_paths.iter().filter(|former| !self.moves.is_reoccupied(former)) {
            let other_path = self.resolve_live_path(former_path).await?;
            for scope in Scope::ALL {
                if self.exists_at(scope, &other_path).await? {
                    return Ok(Absent(Presence::Ambiguous {
                        current_path: object.path,
                        other_path,
                    }));
                }
            }
        }
        Ok(Present(object))
    }

    /// The projects of the group `target` at `path` and of its subgroups, for a caller with this
    /// access `level`.
    pub(super) async fn list_projects_below(
        &self,
        target: &Target,
        path: &str,
        level: Option<u8>,
    ) -> Result<Result<Vec<ListedContainer>, Cause>> {
        if !self.caller.is_administrator && level < Some(MAINTAINER) {
            let reason = "the token's role is below Maintainer, so the list may be incomplete";
            return Ok(Err(Cause::new(reason)));
        }
        let lookup = catalogue::container_lookup(Scope::Project);
        let list = target.address_request(exist::descendants_request(Scope::Project));
        let project_rows =
            self.list_containers(Scope::Project, list, &exist::identity_keys(Scope::Project)).await;
        let prefix = format!("{}/", path.to_lowercase());
        Ok(split_fatal(project_rows)?.map(|rows| {
            let projects = rows.iter().map(|raw| {
                let (path, facts) = (lookup.read_path(raw), (lookup.read_facts)(raw));
                // Manifests declare a project at its path without the deletion mark.
                let marked_id = facts.id.filter(|_| facts.deletion_mark.is_some());
                let path = marked_id.map_or(path, |id| unmarked_path(path, id));
                ListedContainer { path: path.into(), facts }
            });
            // Drop projects that are only shared with the group: their paths are not below the
            // group.
            projects.filter(|project| project.path.to_lowercase().starts_with(&prefix)).collect()
        }))
    }

    /// Replaces live names of groups, projects or runners in `live_entries` with declared names.
    /// The service returns live paths, and no names of runners. A runner without a declared name
    /// keeps its description if the description is unique among `runners`. Otherwise its id becomes
    /// its name.
    pub(super) fn use_declared_names(
        &self,
        section: &DeclaredSection,
        live_entries: LiveEntries,
        names: &NameIndex,
        runners: &[(u64, String)],
    ) -> LiveEntries {
        let Some((field, object_type)) = named_object(section.kind) else { return live_entries };
        match object_type {
            NamedObject::Runner => {}
            NamedObject::Group | NamedObject::Project if !self.moves.is_empty() => {}
            _ => return live_entries,
        }
        let (mut declared_names, mut absent_names) = (BTreeMap::new(), BTreeSet::new());
        for entry in &section.entries {
            let Some(value) = entry.fields.get(field) else { continue };
            let Some(name) = value.value.plain_json() else { continue };
            let text = name.as_str();
            if let Some(id) = text.map_or(name.as_u64(), |text| names.numeric_id(object_type, text))
            {
                declared_names.insert(id, name.clone());
            } else if entry.state == EntryPresence::Absent {
                absent_names.extend(text.map(str::to_lowercase));
            }
        }
        let set_declared_name = |mut entry: LiveEntry| {
            let Some(id) = entry.id() else { return entry };
            let mut name = declared_names.get(&id).cloned();
            if name.is_none() && object_type == NamedObject::Runner {
                let live_name = entry.fields.raw().get(field).and_then(Json::as_str);
                let live_name = live_name.unwrap_or_default();
                let is_unique_name = !live_name.is_empty()
                    && live_name.parse::<u64>().is_err()
                    && (lookups::runner_ids_by_description(runners, live_name) == [id]
                        || absent_names.contains(&live_name.to_lowercase()));
                name = (!is_unique_name).then(|| id.into());
            }
            if let Some(name) = name {
                entry.fields.raw_mut().insert(field.to_owned(), name);
            }
            entry
        };
        match live_entries {
            LiveEntries::Complete(entries) => LiveEntries::Complete(entries.map(set_declared_name)),
            LiveEntries::Nested(entries) => {
                LiveEntries::Nested(entries.into_iter().map(set_declared_name).collect())
            }
            other => other,
        }
    }
}

/// The intermediate paths of a move that changes both the name and the namespace.
fn intermediate_paths(former_path: &str, declared_path: &str) -> Vec<String> {
    path_after_rename(former_path, declared_path)
        .into_iter()
        .chain(path_after_rename(declared_path, former_path))
        .collect()
}
