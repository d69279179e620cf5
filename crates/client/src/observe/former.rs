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
    find::{Found, Parsed, same},
    lookups, or_cause,
};
use crate::{
    address::group_of,
    api::Result,
    catalogue,
    cause::Cause,
    desired::{Container, DeclaredSection, Move, State, renamed},
    field::{Named, Scope},
    kind::{Former, LiveEntry, Names, Target, unmarked_path},
    level::MAINTAINER,
    live::{Collection, Presence, Project},
    operation::KeyFilter,
    value::{Json, Object},
};

impl Observer {
    /// The live path for the declared `path`, if it is in its group and has no former path of its
    /// own.
    pub(super) async fn live_path(&self, path: &str) -> Result<String> {
        let Some(group) = self.moves.above(path) else { return Ok(path.to_owned()) };
        // A group may itself be below a group that moves.
        let look = async || self.place(group).boxed_local().await;
        let place = self.memory.places.of(&group.path.to_lowercase(), look).await?;
        Ok(format!("{place}{}", &path[group.path.len()..]))
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
        match self.moves.at(path) {
            Some(own) => {
                let look = async || self.place(own).await;
                self.memory.places.of(&path.to_lowercase(), look).await
            }
            None => self.live_path(path).await,
        }
    }

    /// The live path of a group or project with former paths.
    async fn place(&self, group: &Move) -> Result<String> {
        let home = self.live_path(&group.path).await?;
        if self.leaver(&group.path).await?.is_none() && self.is_there(group.scope, &home).await? {
            return Ok(home);
        }
        let passing = group.former.iter().filter_map(|former| renamed(former, &group.path));
        let passing = passing.filter(|path| self.moves.passing(path).is_some());
        for path in group.former.iter().map(ToString::to_string).chain(passing) {
            let path = self.live_path(&path).await?;
            if self.is_there(group.scope, &path).await? {
                return Ok(path);
            }
        }
        for former in group.former.iter().filter(|_| group.scope == Scope::Project) {
            let Some(left) = self.left_for(former).await? else { continue };
            for at in halfway(former, &group.path) {
                let at = self.live_path(&at).await?;
                if same(&left, &at) {
                    return Ok(at);
                }
            }
        }
        Ok(home)
    }

    /// Where the project that left `former` is now.
    async fn left_for(&self, former: &str) -> Result<Option<String>> {
        let live = self.live_path(former).await?;
        let of_that_time = self.of_that_time(Scope::Project, former, &live);
        for path in std::iter::once(live).chain(of_that_time) {
            let mut found = self.path_of(Scope::Project, &path).await;
            if let Err(error) = &found
                && error.is_moved()
            {
                let Some(id) = error.moved_to() else { continue };
                found = self.path_of(Scope::Project, &id.to_string()).await;
            }
            match found {
                Err(error) if error.is_missing(Scope::Project) => {}
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    /// The path in the object at `at`, which may also be an id.
    async fn path_of(&self, scope: Scope, at: &str) -> Result<String> {
        let found = self.object(scope, at, &KeyFilter::All).await?;
        Ok(catalogue::lookup(scope).path_in(&found).to_owned())
    }

    /// The declared path of the container that must leave `path` first. It has left once it, and
    /// every container that it in turn waits for, is at its declared path.
    async fn leaver(&self, path: &str) -> Result<Option<Arc<str>>> {
        let first = self.moves.former_occupant(path);
        let mut next = first;
        while let Some(other) = next {
            let home = self.live_path(&other.path).await?;
            if !self.is_there(other.scope, &home).await? {
                return Ok(first.map(|first| first.path.clone()));
            }
            next = self.moves.former_occupant(&other.path);
        }
        Ok(None)
    }

    /// The nearest group above `path` that must move by itself, not only with a group above it.
    async fn to_be_moved(&self, path: &str) -> Result<Option<Arc<str>>> {
        let mut next = self.moves.above(path);
        while let Some(group) = next {
            if self.live_group_path(&group.path).await? != self.live_path(&group.path).await? {
                return Ok(Some(group.path.clone()));
            }
            next = self.moves.above(&group.path);
        }
        Ok(None)
    }

    /// Whether a group or project has exactly this path.
    async fn is_there(&self, scope: Scope, path: &str) -> Result<bool> {
        match self.path_of(scope, path).await {
            Ok(live) => Ok(same(&live, path)),
            Err(error) if error.is_moved() || error.is_missing(scope) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The former paths of a container.
    fn former(&self, container: &Container) -> &[Arc<str>] {
        self.moves.at(&container.path).map(|own| &own.former[..]).unwrap_or_default()
    }

    /// Whether a group above the container, now or formerly, has declared former paths.
    pub(super) fn is_below_a_move(&self, container: &Container) -> bool {
        let mut paths = std::iter::once(&container.path).chain(self.former(container));
        paths.any(|path| {
            let was_above = group_of(path).is_some_and(|group| self.moves.now(group).is_some());
            was_above || self.moves.above(path).is_some()
        })
    }

    /// Finds a container at its declared path or at a former one.
    pub(super) async fn look_around(&self, container: &Container) -> Result<Found> {
        let home = self.live_path(&container.path).await?;
        let leaver = self.leaver(&container.path).await?;
        let at_home = match leaver {
            None => self.read_at(container, &home).await?,
            Some(_) => Found::Not(self.missing(container).await?),
        };
        let follows: Vec<_> =
            leaver.into_iter().chain(self.to_be_moved(&container.path).await?).collect();
        let former = self.former(container);
        let at_home = match at_home {
            Found::Here(seen) => return self.unless_twice(seen, former).await,
            Found::Not(presence) => presence,
        };
        for (number, path) in former.iter().enumerate() {
            let (at, found) = self.read_former(container, path).await?;
            match found {
                Found::Here(mut seen) => {
                    seen.target.follows = follows;
                    let seen = self.moving(container, seen, &at).await?;
                    return self.unless_twice(seen, &former[number + 1..]).await;
                }
                Found::Not(Presence::Missing(_)) => {}
                // It had this path before one of the next ones.
                Found::Not(Presence::Moved { to: Some(to) })
                    if self.is_one_of(&to, &former[number + 1..]).await? => {}
                // Only an administrator can be sure that a namespace does not exist.
                Found::Not(Presence::NoNamespace(_)) if self.caller.administrator => {}
                other @ Found::Not(_) => return Ok(other),
            }
        }
        Ok(Found::Not(match (at_home, group_of(&container.path)) {
            (Presence::Missing(target), _) => Presence::Missing(Target { follows, ..target }),
            (Presence::NoNamespace(_), Some(group)) => Presence::NoNamespace(group.to_owned()),
            (other, _) => other,
        }))
    }

    /// Judges the container with this `id`: at its declared path, between two moves, or elsewhere.
    pub(super) async fn known(&self, container: &Container, id: u64) -> Result<Found> {
        let raw = self.object_of(container, &id.to_string()).await?;
        let seen = self.whole(container, &raw).await?;
        if seen.facts.deleting.is_some() {
            return Ok(Found::Here(seen));
        }
        let on_its_way = self.former(container).iter().flat_map(|former| {
            std::iter::once(former.to_string()).chain(halfway(former, &container.path))
        });
        if same(&seen.at, &self.live_path(&container.path).await?) {
            return Ok(Found::Here(seen));
        }
        for path in on_its_way {
            if same(&seen.at, &self.live_path(&path).await?) {
                return self.moving(container, seen, &path).await.map(Found::Here);
            }
        }
        Ok(Found::Not(Presence::Moved { to: Some(seen.at) }))
    }

    /// Reads a former path, or a path halfway from there to the declared one: name and namespace
    /// change one after the other. The returned path is relative to the declared paths of the
    /// groups above, which may move at the same time.
    async fn read_former(&self, container: &Container, former: &str) -> Result<(String, Found)> {
        let live = self.live_path(former).await?;
        let mut found = self.read_at(container, &live).await?;
        for path in self.of_that_time(container.scope, former, &live) {
            if let Found::Not(Presence::Missing(_)) = &found
                && let moved @ Found::Not(Presence::Moved { .. }) =
                    self.read_at(container, &path).await?
            {
                found = moved;
            }
        }
        for path in halfway(former, &container.path) {
            let at = self.live_path(&path).await?;
            match &found {
                Found::Not(Presence::Moved { to: Some(to) }) if same(to, &at) => {
                    return Ok((path, self.read_at(container, &at).await?));
                }
                // Nothing shows whether a group was at the former path.
                Found::Not(Presence::Missing(_))
                    if container.scope == Scope::Group
                        && self.moves.former_occupant(&path).is_none()
                        && self.is_there(Scope::Group, &at).await? =>
                {
                    if self.moves.passing(&path).is_some() {
                        return Ok((path, self.read_at(container, &at).await?));
                    }
                    return Ok((path, Found::Not(Presence::Halfway { from: live, at })));
                }
                _ => {}
            }
        }
        Ok((former.to_owned(), found))
    }

    /// Other paths of a project that left `former` before a group above it moved; not `live`.
    fn of_that_time(&self, scope: Scope, former: &str, live: &str) -> Vec<String> {
        let mut all = match scope {
            Scope::Project => self.moves.former(former).unwrap_or_default(),
            // The service forgets former paths of groups.
            Scope::Group => Vec::new(),
        };
        all.retain(|path| !same(path, live));
        all
    }

    /// Whether a container has one of these paths now.
    async fn is_one_of(&self, at: &str, former: &[Arc<str>]) -> Result<bool> {
        for path in former {
            if same(&self.live_path(path).await?, at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `seen`, unless a container exists at one of its `other` former paths. One that is
    /// declared there itself is no conflict.
    async fn unless_twice(&self, seen: Parsed, other: &[Arc<str>]) -> Result<Found> {
        for former in other.iter().filter(|former| !self.moves.is_declared(former)) {
            let other = self.live_path(former).await?;
            for scope in Scope::ALL {
                if self.is_there(scope, &other).await? {
                    return Ok(Found::Not(Presence::Twice { at: seen.at, other }));
                }
            }
        }
        Ok(Found::Here(seen))
    }

    /// The projects of the group `target` at `path` and of its subgroups, for a caller with this
    /// access `level`.
    pub(super) async fn projects_below(
        &self,
        target: &Target,
        path: &str,
        level: Option<u8>,
    ) -> Result<Result<Vec<Project>, Cause>> {
        if !self.caller.administrator && level < Some(MAINTAINER) {
            let why = "the token's role is below Maintainer, so the list may be incomplete";
            return Ok(Err(Cause::new(why)));
        }
        let itself = catalogue::lookup(Scope::Project);
        let list = target.addressed(exist::all_in(Scope::Project));
        let all = self.listed(Scope::Project, list, &exist::known_by(Scope::Project)).await;
        let project = |raw: &Object| {
            let (path, facts) = (itself.path_in(raw), (itself.facts)(raw));
            // A project is declared, if at all, at the path without the deletion mark.
            let marked = facts.id.filter(|_| facts.deleting.is_some());
            let path = marked.map_or(path, |id| unmarked_path(path, id));
            Project { path: path.into(), facts }
        };
        let below = format!("{}/", path.to_lowercase());
        // Projects that are only shared with the group are elsewhere.
        let is_below = |project: &Project| project.path.to_lowercase().starts_with(&below);
        Ok(or_cause(all)?.map(|all| all.iter().map(project).filter(is_below).collect()))
    }

    /// Adds the changes that bring the container to its declared path. `at` is its present path,
    /// relative to the declared paths of the groups above.
    async fn moving(&self, container: &Container, mut seen: Parsed, at: &str) -> Result<Parsed> {
        let (at, home) = (at.to_lowercase(), container.path.to_lowercase());
        let transfers = group_of(&at) != group_of(&home);
        seen.target.former = Some(Former {
            path: seen.at.as_str().into(),
            renames: name(&at) != name(&home),
            transfers,
            name: None,
        });
        if transfers && let Some(namespace) = group_of(&container.path) {
            seen.target.namespace = self.namespace(namespace).await?;
        }
        Ok(seen)
    }

    /// `collection` with the declared names of the groups or runners in its entries: the service uses
    /// live paths of groups, and no names of runners. Other runners are called by their descriptions if
    /// one means only one of all `runners`, and else by their ids.
    pub(super) fn with_declared_names(
        &self,
        section: &DeclaredSection,
        collection: Collection,
        names: &Names,
        runners: &[(u64, String)],
    ) -> Collection {
        let mut identity = section.of.identity.iter();
        let of = identity.find_map(|name| Some((*name, section.of.field(name).names?)));
        let is_needed = |named| match named {
            Named::Group => !self.moves.is_empty(),
            Named::Runner => true,
            Named::User | Named::Project | Named::Role => false,
        };
        let Some((field, of)) = of.filter(|(_, of)| is_needed(*of)) else { return collection };
        let (mut declared, mut gone) = (BTreeMap::new(), BTreeSet::new());
        for entry in &section.entries {
            let Some(value) = entry.fields.get(field) else { continue };
            let Some(name) = value.value.plain() else { continue };
            let text = name.as_str();
            let known = text.map_or(name.as_u64(), |text| names.known_id(of, text));
            if let Some(id) = known {
                declared.insert(id, name.clone());
            } else if entry.state == State::Absent {
                gone.extend(text.map(str::to_lowercase));
            }
        }
        let called = |entry: &LiveEntry, id: u64| match of {
            Named::Runner => {
                let own = entry.fields.raw().get(field).and_then(Json::as_str).unwrap_or_default();
                let is_plain = !own.is_empty() && own.parse::<u64>().is_err();
                let means_it = lookups::called(runners, own) == [id];
                let is_it = is_plain && (means_it || gone.contains(&own.to_lowercase()));
                (!is_it).then(|| id.into())
            }
            _ => None,
        };
        let named = |mut entry: LiveEntry| {
            if let Some(id) = entry.id()
                && let Some(name) = declared.get(&id).cloned().or_else(|| called(&entry, id))
            {
                entry.fields.raw_mut().insert(field.to_owned(), name);
            }
            entry
        };
        match collection {
            Collection::Complete(entries) => Collection::Complete(entries.map(named)),
            Collection::Within(entries) => {
                Collection::Within(entries.into_iter().map(named).collect())
            }
            other => other,
        }
    }
}

/// The paths between `former` and `home` if both the name and the namespace change.
fn halfway(former: &str, home: &str) -> Vec<String> {
    renamed(former, home).into_iter().chain(renamed(home, former)).collect()
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
