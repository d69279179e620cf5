//! Finds groups and projects with former paths, and lists what is below such groups.
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
    find::{FoundPath, LiveObject, same_path},
    lookups, tolerate,
};
use crate::{
    address::group_of,
    api::Result,
    catalogue,
    cause::Cause,
    desired::{Container, DeclaredSection, EntryPresence, Move, named_object, renamed},
    field::{NamedObject, Scope},
    kind::{Former, LiveEntry, Names, Target, unmarked_path},
    level::MAINTAINER,
    live::{ListedProject, LiveEntries, Presence},
    operation::KeyFilter,
    value::Json,
};

impl Observer {
    /// The live path for the declared `path`, if it is in its group and has no former path of its
    /// own.
    pub(super) async fn live_path(&self, path: &str) -> Result<String> {
        let Some(group) = self.moves.above(path) else { return Ok(path.to_owned()) };
        // A group may itself be below a group that moves.
        let locate = async || self.locate_move(group).boxed_local().await;
        let live = self.memory.live_paths.read(&group.path.to_lowercase(), locate).await?;
        Ok(format!("{live}{}", &path[group.path.len()..]))
    }

    /// The live path of the group that is declared at `path`, with or without former paths.
    pub(super) async fn live_group_path(&self, path: &str) -> Result<String> {
        // Any path in the group starts with it.
        let within = self.live_path(&format!("{path}/-")).await?;
        Ok(within.strip_suffix("/-").unwrap_or(path).to_owned())
    }

    /// The live path of the project that is declared at `path`, with or without former paths. The
    /// project that has this path now may be about to move away.
    pub(super) async fn live_project_path(&self, path: &str) -> Result<String> {
        let Some(declared) = self.moves.at(path) else { return self.live_path(path).await };
        let locate = async || self.locate_move(declared).await;
        self.memory.live_paths.read(&path.to_lowercase(), locate).await
    }

    /// The live path of a group or project with former paths.
    async fn locate_move(&self, moved: &Move) -> Result<String> {
        let Move { scope, path: declared, former } = moved;
        let home = self.live_path(declared).await?;
        if self.blocking_move(declared).await?.is_none() && self.exists_at(*scope, &home).await? {
            return Ok(home);
        }
        let passing = former.iter().filter_map(|former| renamed(former, declared));
        let passing = passing.filter(|path| self.moves.passing(path).is_some());
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
                if same_path(&target, &path) {
                    return Ok(path);
                }
            }
        }
        Ok(home)
    }

    /// The present path of the project that left `former`.
    async fn redirect_target(&self, former: &str) -> Result<Option<String>> {
        let live = self.live_path(former).await?;
        let older_paths = self.older_paths(Scope::Project, former, &live);
        for path in std::iter::once(live).chain(older_paths) {
            let mut target = self.path_of(Scope::Project, &path).await;
            if let Err(error) = &target
                && error.is_moved()
            {
                let Some(id) = error.moved_to() else { continue };
                target = self.path_of(Scope::Project, &id.to_string()).await;
            }
            match target {
                Err(error) if error.is_missing(Scope::Project) => {}
                target => return target.map(Some),
            }
        }
        Ok(None)
    }

    /// The path in the object at `at`, which may also be an id.
    async fn path_of(&self, scope: Scope, at: &str) -> Result<String> {
        let object = self.object(scope, at, &KeyFilter::All).await?;
        Ok(catalogue::lookup(scope).path_in(&object).to_owned())
    }

    /// The declared path of the container that must leave `path` first. It has left once it, and
    /// every container that it in turn waits for, is at its declared path.
    async fn blocking_move(&self, path: &str) -> Result<Option<Arc<str>>> {
        let first = self.moves.former_occupant(path);
        let mut next = first;
        while let Some(other) = next {
            let home = self.live_path(&other.path).await?;
            if !self.exists_at(other.scope, &home).await? {
                return Ok(first.map(|first| first.path.clone()));
            }
            next = self.moves.former_occupant(&other.path);
        }
        Ok(None)
    }

    /// The nearest group above `path` that must move by itself, not only with a group above it.
    async fn moving_group_above(&self, path: &str) -> Result<Option<Arc<str>>> {
        let mut next = self.moves.above(path);
        while let Some(group) = next {
            if self.live_group_path(&group.path).await? != self.live_path(&group.path).await? {
                return Ok(Some(group.path.clone()));
            }
            next = self.moves.above(&group.path);
        }
        Ok(None)
    }

    /// True if a group or project has exactly this path.
    async fn exists_at(&self, scope: Scope, path: &str) -> Result<bool> {
        match self.path_of(scope, path).await {
            Ok(live) => Ok(same_path(&live, path)),
            Err(error) if error.is_moved() || error.is_missing(scope) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The former paths of a container.
    fn former_paths(&self, container: &Container) -> &[Arc<str>] {
        self.moves.at(&container.path).map(|own| &own.former[..]).unwrap_or_default()
    }

    /// True if a group above the container, now or formerly, has declared former paths.
    pub(super) fn is_below_a_move(&self, container: &Container) -> bool {
        let mut paths = std::iter::once(&container.path).chain(self.former_paths(container));
        paths.any(|path| {
            let was_above = group_of(path).is_some_and(|group| self.moves.now(group).is_some());
            was_above || self.moves.above(path).is_some()
        })
    }

    /// Finds a container at its declared path or at a former one.
    pub(super) async fn search_paths(&self, container: &Container) -> Result<FoundPath> {
        let home = self.live_path(&container.path).await?;
        let blocking = self.blocking_move(&container.path).await?;
        let at_home = match blocking {
            None => self.read_at(container, &home).await?,
            Some(_) => FoundPath::Absent(self.missing(container).await?),
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
                    object.target.follows = follows;
                    let object = self.with_move(container, object, &at).await?;
                    return self.check_duplicate(object, &former[number + 1..]).await;
                }
                FoundPath::Absent(Presence::Missing(_)) => {}
                // It had this path before one of the next ones.
                FoundPath::Absent(Presence::Moved { to: Some(to) })
                    if self.is_live_at_any(&to, &former[number + 1..]).await? => {}
                // Only an administrator can be sure that a namespace does not exist.
                FoundPath::Absent(Presence::NoNamespace(_)) if self.caller.administrator => {}
                other @ FoundPath::Absent(_) => return Ok(other),
            }
        }
        Ok(FoundPath::Absent(match (at_home, group_of(&container.path)) {
            (Presence::Missing(target), _) => Presence::Missing(Target { follows, ..target }),
            (Presence::NoNamespace(_), Some(group)) => Presence::NoNamespace(group.to_owned()),
            (other, _) => other,
        }))
    }

    /// Reads the container with this `id`: at its declared path, between two moves, or elsewhere.
    pub(super) async fn locate_by_id(&self, container: &Container, id: u64) -> Result<FoundPath> {
        let raw = self.object_of(container, &id.to_string()).await?;
        let object = self.parse_whole(container, &raw).await?;
        if object.facts.deleting.is_some()
            || same_path(&object.path, &self.live_path(&container.path).await?)
        {
            return Ok(FoundPath::Here(object));
        }
        for former in self.former_paths(container) {
            let intermediate = intermediate_paths(former, &container.path);
            for path in std::iter::once(former.to_string()).chain(intermediate) {
                if same_path(&object.path, &self.live_path(&path).await?) {
                    return self.with_move(container, object, &path).await.map(FoundPath::Here);
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
        let mut read = self.read_at(container, &live).await?;
        for path in self.older_paths(container.scope, former, &live) {
            if let FoundPath::Absent(Presence::Missing(_)) = &read
                && let moved @ FoundPath::Absent(Presence::Moved { .. }) =
                    self.read_at(container, &path).await?
            {
                read = moved;
            }
        }
        for path in intermediate_paths(former, &container.path) {
            let at = self.live_path(&path).await?;
            match &read {
                FoundPath::Absent(Presence::Moved { to: Some(to) }) if same_path(to, &at) => {
                    return Ok((path, self.read_at(container, &at).await?));
                }
                // Nothing shows whether a group was at the former path.
                FoundPath::Absent(Presence::Missing(_))
                    if container.scope == Scope::Group
                        && self.moves.former_occupant(&path).is_none()
                        && self.exists_at(Scope::Group, &at).await? =>
                {
                    if self.moves.passing(&path).is_some() {
                        return Ok((path, self.read_at(container, &at).await?));
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
            Scope::Project => self.moves.former(former).unwrap_or_default(),
            // The service forgets former paths of groups.
            Scope::Group => Vec::new(),
        };
        all.retain(|path| !same_path(path, live));
        all
    }

    /// True if a container has one of these paths now.
    async fn is_live_at_any(&self, at: &str, former: &[Arc<str>]) -> Result<bool> {
        for path in former {
            if same_path(&self.live_path(path).await?, at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `object`, unless a container exists at one of its other `former` paths. One that is
    /// declared there itself is no conflict.
    async fn check_duplicate(&self, object: LiveObject, former: &[Arc<str>]) -> Result<FoundPath> {
        for former in former.iter().filter(|former| !self.moves.is_declared(former)) {
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
    pub(super) async fn projects_below(
        &self,
        target: &Target,
        path: &str,
        level: Option<u8>,
    ) -> Result<Result<Vec<ListedProject>, Cause>> {
        if !self.caller.administrator && level < Some(MAINTAINER) {
            let why = "the token's role is below Maintainer, so the list may be incomplete";
            return Ok(Err(Cause::new(why)));
        }
        let itself = catalogue::lookup(Scope::Project);
        let list = target.addressed(exist::list_below(Scope::Project));
        let all = self.list_all(Scope::Project, list, &exist::identity_keys(Scope::Project)).await;
        let prefix = format!("{}/", path.to_lowercase());
        Ok(tolerate(all)?.map(|all| {
            let projects = all.iter().map(|raw| {
                let (path, facts) = (itself.path_in(raw), (itself.facts)(raw));
                // A project is declared, if at all, at the path without the deletion mark.
                let marked = facts.id.filter(|_| facts.deleting.is_some());
                let path = marked.map_or(path, |id| unmarked_path(path, id));
                ListedProject { path: path.into(), facts }
            });
            // Projects that are only shared with the group are elsewhere.
            projects.filter(|project| project.path.to_lowercase().starts_with(&prefix)).collect()
        }))
    }

    /// Adds the changes that bring the container to its declared path. `at` is its present path,
    /// relative to the declared paths of the groups above.
    async fn with_move(
        &self,
        container: &Container,
        mut object: LiveObject,
        at: &str,
    ) -> Result<LiveObject> {
        let (at, home) = (at.to_lowercase(), container.path.to_lowercase());
        let transfers = group_of(&at) != group_of(&home);
        object.target.former = Some(Former {
            path: object.path.as_str().into(),
            renames: name(&at) != name(&home),
            transfers,
            name: None,
        });
        if transfers && let Some(namespace) = group_of(&container.path) {
            object.target.namespace = self.namespace(namespace).await?;
        }
        Ok(object)
    }

    /// `collection` with the declared names of the groups, projects or runners in its entries: the
    /// service uses live paths, and no names of runners. A runner without a declared name is called by
    /// its description if that means only one of all `runners`, and else by its id.
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
        let (mut declared, mut gone) = (BTreeMap::new(), BTreeSet::new());
        for entry in &section.entries {
            let Some(value) = entry.fields.get(field) else { continue };
            let Some(name) = value.value.plain() else { continue };
            let text = name.as_str();
            if let Some(id) = text.map_or(name.as_u64(), |text| names.known_id(named, text)) {
                declared.insert(id, name.clone());
            } else if entry.state == EntryPresence::Absent {
                gone.extend(text.map(str::to_lowercase));
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
                        || gone.contains(&shown.to_lowercase()));
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
    renamed(former, home).into_iter().chain(renamed(home, former)).collect()
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
