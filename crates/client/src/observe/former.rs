//! Finds groups and projects that have former paths, and lists the content of such groups.
//!
//! Declared paths are translated into live ones. Below a group that this run renames, the live path
//! starts with the group's former path. A project that left a path is found through the service's
//! redirect; former paths of groups are forgotten at once (beyond: groups, A.6). This module also
//! lists the projects below a group, declared or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::FutureExt as _;

use super::{
    Observer, exist,
    find::{FoundPath, LiveObject, is_same_path},
    lookups, split_fatal,
};
use crate::{
    address::group_of,
    api::Result,
    catalogue,
    cause::Cause,
    desired::{Container, DeclaredSection, EntryPresence, Move, named_object, path_after_rename},
    field::{NamedObject, Scope},
    kind::{Former, LiveEntry, Names, Target, unmarked_path},
    level::MAINTAINER,
    live::{ListedProject, LiveEntries, Presence},
    operation::KeyFilter,
    value::Json,
};

impl Observer {
    /// Translates the declared `path` into a live one, for a container that is in its declared
    /// group and has no former paths of its own.
    pub(super) async fn live_path(&self, path: &str) -> Result<String> {
        let Some(group) = self.moves.nearest_group_above(path) else { return Ok(path.to_owned()) };
        // A group may itself be below a group that moves.
        let locate = async || self.locate_move(group).boxed_local().await;
        let live = self.memory.live_paths.read(&group.path.to_lowercase(), locate).await?;
        Ok(format!("{live}{}", &path[group.path.len()..]))
    }

    /// The live path of the group that is declared at `path`, with or without former paths.
    pub(super) async fn live_group_path(&self, path: &str) -> Result<String> {
        // Any path in the group starts with it.
        let child_path = self.live_path(&format!("{path}/-")).await?;
        Ok(child_path.strip_suffix("/-").unwrap_or(path).to_owned())
    }

    /// The live path of the project that is declared at `path`, with or without former paths. The
    /// project that has this path now may be about to move away.
    pub(super) async fn live_project_path(&self, path: &str) -> Result<String> {
        let Some(declared) = self.moves.declared_at(path) else {
            return self.live_path(path).await;
        };
        let locate = async || self.locate_move(declared).await;
        self.memory.live_paths.read(&path.to_lowercase(), locate).await
    }

    /// The live path of a group or project with former paths.
    async fn locate_move(&self, declared_move: &Move) -> Result<String> {
        let Move { scope, path: declared, former } = declared_move;
        let live_path = self.live_path(declared).await?;
        if self.blocking_move(declared).await?.is_none()
            && self.exists_at(*scope, &live_path).await?
        {
            return Ok(live_path);
        }
        let passing = former.iter().filter_map(|former| path_after_rename(former, declared));
        let passing = passing.filter(|path| self.moves.passing_group(path).is_some());
        for path in former.iter().map(ToString::to_string).chain(passing) {
            let path = self.live_path(&path).await?;
            if self.exists_at(*scope, &path).await? {
                return Ok(path);
            }
        }
        for former in former.iter().filter(|_| *scope == Scope::Project) {
            let Some(target) = self.redirect_target(former).await? else { continue };
            for path in intermediate_paths(former, declared) {
                let path = self.live_path(&path).await?;
                if is_same_path(&target, &path) {
                    return Ok(path);
                }
            }
        }
        Ok(live_path)
    }

    /// The present path of the project that left `former`.
    async fn redirect_target(&self, former: &str) -> Result<Option<String>> {
        let live = self.live_path(former).await?;
        let older_paths = self.older_paths(Scope::Project, former, &live);
        for path in std::iter::once(live).chain(older_paths) {
            let mut target = self.fetch_path(Scope::Project, &path).await;
            if let Err(error) = &target
                && error.is_moved()
            {
                let Some(id) = error.moved_to() else { continue };
                target = self.fetch_path(Scope::Project, &id.to_string()).await;
            }
            match target {
                Err(error) if error.is_missing(Scope::Project) => {}
                target => return target.map(Some),
            }
        }
        Ok(None)
    }

    /// The path in the object at `path_or_id`, which may also be an id.
    async fn fetch_path(&self, scope: Scope, path_or_id: &str) -> Result<String> {
        let object = self.get_container_object(scope, path_or_id, &KeyFilter::All).await?;
        Ok(catalogue::container_lookup(scope).path_in(&object).to_owned())
    }

    /// Returns the declared path of the container that must leave `path` first. It has left once it
    /// and every container that it waits for are at their declared paths.
    async fn blocking_move(&self, path: &str) -> Result<Option<Arc<str>>> {
        let first_occupant = self.moves.former_occupant(path);
        let mut occupant = first_occupant;
        while let Some(other) = occupant {
            let live_path = self.live_path(&other.path).await?;
            if !self.exists_at(other.scope, &live_path).await? {
                return Ok(first_occupant.map(|first| first.path.clone()));
            }
            occupant = self.moves.former_occupant(&other.path);
        }
        Ok(None)
    }

    /// The nearest group above `path` that must move by itself, not only with a group above it.
    async fn moving_group_above(&self, path: &str) -> Result<Option<Arc<str>>> {
        let mut group_above = self.moves.nearest_group_above(path);
        while let Some(group) = group_above {
            if self.live_group_path(&group.path).await? != self.live_path(&group.path).await? {
                return Ok(Some(group.path.clone()));
            }
            group_above = self.moves.nearest_group_above(&group.path);
        }
        Ok(None)
    }

    /// True if a group or project has exactly this path.
    async fn exists_at(&self, scope: Scope, path: &str) -> Result<bool> {
        match self.fetch_path(scope, path).await {
            Ok(live) => Ok(is_same_path(&live, path)),
            Err(error) if error.is_moved() || error.is_missing(scope) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The former paths of a container.
    fn former_paths(&self, container: &Container) -> &[Arc<str>] {
        self.moves
            .declared_at(&container.path)
            .map(|declared_move| &declared_move.former[..])
            .unwrap_or_default()
    }

    /// True if a group above the container, now or formerly, has declared former paths.
    pub(super) fn is_below_a_move(&self, container: &Container) -> bool {
        let mut paths = std::iter::once(&container.path).chain(self.former_paths(container));
        paths.any(|path| {
            let was_above =
                group_of(path).is_some_and(|group| self.moves.new_path(group).is_some());
            was_above || self.moves.nearest_group_above(path).is_some()
        })
    }

    /// Finds a container at its declared path or at a former one.
    pub(super) async fn search_paths(&self, container: &Container) -> Result<FoundPath> {
        let live_path = self.live_path(&container.path).await?;
        let blocking = self.blocking_move(&container.path).await?;
        let at_home = match blocking {
            None => self.read_at_path(container, &live_path).await?,
            Some(_) => FoundPath::Absent(self.explain_absence(container).await?),
        };
        let follows = blocking.into_iter().chain(self.moving_group_above(&container.path).await?);
        let follows: Vec<_> = follows.collect();
        let former = self.former_paths(container);
        let at_home = match at_home {
            FoundPath::Here(object) => return self.check_duplicate(object, former).await,
            FoundPath::Absent(presence) => presence,
        };
        for (number, path) in former.iter().enumerate() {
            let (at, read) = self.read_former(container, path).await?;
            match read {
                FoundPath::Here(mut object) => {
                    object.target.moves_after = follows;
                    let object = self.add_move(container, object, &at).await?;
                    return self.check_duplicate(object, &former[number + 1..]).await;
                }
                FoundPath::Absent(Presence::Missing(_)) => {}
                // It had this path before one of the next ones.
                FoundPath::Absent(Presence::Moved { to: Some(to) })
                    if self.is_live_at_any(&to, &former[number + 1..]).await? => {}
                // Only an administrator can be sure that a namespace does not exist.
                FoundPath::Absent(Presence::NoNamespace(_)) if self.caller.is_administrator => {}
                other @ FoundPath::Absent(_) => return Ok(other),
            }
        }
        Ok(FoundPath::Absent(match (at_home, group_of(&container.path)) {
            (Presence::Missing(target), _) => {
                Presence::Missing(Target { moves_after: follows, ..target })
            }
            (Presence::NoNamespace(_), Some(group)) => Presence::NoNamespace(group.to_owned()),
            (other, _) => other,
        }))
    }

    /// Reads the container with this `id`: at its declared path, between two moves, or elsewhere.
    pub(super) async fn locate_by_id(&self, container: &Container, id: u64) -> Result<FoundPath> {
        let raw = self.fetch_object(container, &id.to_string()).await?;
        let object = self.parse_whole(container, &raw).await?;
        if object.facts.deletion_mark.is_some()
            || is_same_path(&object.path, &self.live_path(&container.path).await?)
        {
            return Ok(FoundPath::Here(object));
        }
        for former in self.former_paths(container) {
            let intermediate = intermediate_paths(former, &container.path);
            for path in std::iter::once(former.to_string()).chain(intermediate) {
                if is_same_path(&object.path, &self.live_path(&path).await?) {
                    return self.add_move(container, object, &path).await.map(FoundPath::Here);
                }
            }
        }
        Ok(FoundPath::Absent(Presence::Moved { to: Some(object.path) }))
    }

    /// Reads a former path, or a path halfway from there to the declared one: name and namespace
    /// change one after the other. The returned path is relative to the declared paths of the
    /// groups above, which may move at the same time.
    async fn read_former(
        &self,
        container: &Container,
        former: &str,
    ) -> Result<(String, FoundPath)> {
        let live = self.live_path(former).await?;
        let mut read = self.read_at_path(container, &live).await?;
        for path in self.older_paths(container.scope, former, &live) {
            if let FoundPath::Absent(Presence::Missing(_)) = &read
                && let moved @ FoundPath::Absent(Presence::Moved { .. }) =
                    self.read_at_path(container, &path).await?
            {
                read = moved;
            }
        }
        for path in intermediate_paths(former, &container.path) {
            let at = self.live_path(&path).await?;
            match &read {
                FoundPath::Absent(Presence::Moved { to: Some(to) }) if is_same_path(to, &at) => {
                    return Ok((path, self.read_at_path(container, &at).await?));
                }
                // Nothing shows whether a group was at the former path.
                FoundPath::Absent(Presence::Missing(_))
                    if container.scope == Scope::Group
                        && self.moves.former_occupant(&path).is_none()
                        && self.exists_at(Scope::Group, &at).await? =>
                {
                    if self.moves.passing_group(&path).is_some() {
                        return Ok((path, self.read_at_path(container, &at).await?));
                    }
                    return Ok((path, FoundPath::Absent(Presence::Halfway { from: live, at })));
                }
                _ => {}
            }
        }
        Ok((former.to_owned(), read))
    }

    /// Other paths of a project that left `former` before a group above it moved; not `live`.
    fn older_paths(&self, scope: Scope, former: &str, live: &str) -> Vec<String> {
        let mut all = match scope {
            Scope::Project => self.moves.former_paths(former).unwrap_or_default(),
            // The service forgets former paths of groups.
            Scope::Group => Vec::new(),
        };
        all.retain(|path| !is_same_path(path, live));
        all
    }

    /// True if `live_path` is the live path of one of the `former` paths.
    async fn is_live_at_any(&self, live_path: &str, former: &[Arc<str>]) -> Result<bool> {
        for path in former {
            if is_same_path(&self.live_path(path).await?, live_path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `object`, unless a container exists at one of its other `former` paths. One that is
    /// declared there itself is no conflict.
    async fn check_duplicate(&self, object: LiveObject, former: &[Arc<str>]) -> Result<FoundPath> {
        for former in former.iter().filter(|former| !self.moves.is_reoccupied(former)) {
            let other = self.live_path(former).await?;
            for scope in Scope::ALL {
                if self.exists_at(scope, &other).await? {
                    return Ok(FoundPath::Absent(Presence::Twice { at: object.path, other }));
                }
            }
        }
        Ok(FoundPath::Here(object))
    }

    /// The projects of the group `target` at `path` and of its subgroups, for a caller with this
    /// access `level`.
    pub(super) async fn list_projects_below(
        &self,
        target: &Target,
        path: &str,
        level: Option<u8>,
    ) -> Result<Result<Vec<ListedProject>, Cause>> {
        if !self.caller.is_administrator && level < Some(MAINTAINER) {
            let why = "the token's role is below Maintainer, so the list may be incomplete";
            return Ok(Err(Cause::new(why)));
        }
        let lookup = catalogue::container_lookup(Scope::Project);
        let list = target.addressed(exist::list_below(Scope::Project));
        let live_projects =
            self.list_all(Scope::Project, list, &exist::identity_keys(Scope::Project)).await;
        let prefix = format!("{}/", path.to_lowercase());
        Ok(split_fatal(live_projects)?.map(|all| {
            let projects = all.iter().map(|raw| {
                let (path, facts) = (lookup.path_in(raw), (lookup.facts)(raw));
                // A project is declared, if at all, at the path without the deletion mark.
                let marked = facts.id.filter(|_| facts.deletion_mark.is_some());
                let path = marked.map_or(path, |id| unmarked_path(path, id));
                ListedProject { path: path.into(), facts }
            });
            // Projects that are only shared with the group are elsewhere.
            projects.filter(|project| project.path.to_lowercase().starts_with(&prefix)).collect()
        }))
    }

    /// Adds the changes that bring the container to its declared path. `at` is its present path,
    /// relative to the declared paths of the groups above.
    async fn add_move(
        &self,
        container: &Container,
        mut object: LiveObject,
        at: &str,
    ) -> Result<LiveObject> {
        let (at, home) = (at.to_lowercase(), container.path.to_lowercase());
        let transfers = group_of(&at) != group_of(&home);
        object.target.former = Some(Former {
            path: object.path.as_str().into(),
            is_renamed: last_segment(&at) != last_segment(&home),
            is_transferred: transfers,
            name: None,
        });
        if transfers && let Some(namespace) = group_of(&container.path) {
            object.target.namespace = self.find_namespace(namespace).await?;
        }
        Ok(object)
    }

    /// Replaces live names in `collection` by the declared names of groups, projects or runners:
    /// the service returns live paths, and no names of runners. A runner without a declared name
    /// gets its description if that is unique among `runners`, else its id.
    pub(super) fn with_declared_names(
        &self,
        section: &DeclaredSection,
        collection: LiveEntries,
        names: &Names,
        runners: &[(u64, String)],
    ) -> LiveEntries {
        let Some((field, named)) = named_object(section.section) else { return collection };
        match named {
            NamedObject::Runner => {}
            NamedObject::Group | NamedObject::Project if !self.moves.is_empty() => {}
            _ => return collection,
        }
        let (mut declared, mut absent_names) = (BTreeMap::new(), BTreeSet::new());
        for entry in &section.entries {
            let Some(value) = entry.fields.get(field) else { continue };
            let Some(name) = value.value.plain() else { continue };
            let text = name.as_str();
            if let Some(id) = text.map_or(name.as_u64(), |text| names.numeric_id(named, text)) {
                declared.insert(id, name.clone());
            } else if entry.state == EntryPresence::Absent {
                absent_names.extend(text.map(str::to_lowercase));
            }
        }
        let rename = |mut entry: LiveEntry| {
            let Some(id) = entry.id() else { return entry };
            let mut name = declared.get(&id).cloned();
            if name.is_none() && named == NamedObject::Runner {
                let shown = entry.fields.raw().get(field).and_then(Json::as_str);
                let shown = shown.unwrap_or_default();
                let is_name = !shown.is_empty()
                    && shown.parse::<u64>().is_err()
                    && (lookups::runner_ids(runners, shown) == [id]
                        || absent_names.contains(&shown.to_lowercase()));
                name = (!is_name).then(|| id.into());
            }
            if let Some(name) = name {
                entry.fields.raw_mut().insert(field.to_owned(), name);
            }
            entry
        };
        match collection {
            LiveEntries::Complete(entries) => LiveEntries::Complete(entries.map(rename)),
            LiveEntries::Within(entries) => {
                LiveEntries::Within(entries.into_iter().map(rename).collect())
            }
            other => other,
        }
    }
}

/// The paths between `former` and `home` if both the name and the namespace change.
fn intermediate_paths(former: &str, home: &str) -> Vec<String> {
    path_after_rename(former, home).into_iter().chain(path_after_rename(home, former)).collect()
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
