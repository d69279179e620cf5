//! The roster: all existing groups and projects that some globs may match, from complete lists.
//!
//! The lists are the projects and groups below each group that a glob starts with, or below each
//! top-level group if it starts with a wildcard. If a list cannot be read completely, none of its containers is included. The rows have
//! the fields of settings, so the containers in them are [not read again](Observer::find_in_roster).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};

use super::{
    Observer, exist,
    find::{LiveObject, Sender},
    keys, split_fatal,
};
use crate::{
    api::Result,
    catalogue,
    cause::Cause,
    desired::{Container, Exception, MatchedContainer, PathClass, Roster, RosterQuery},
    field::Scope,
    lock,
    operation::{self, KeyFilter},
    value::Object,
};

/// How many lists, and how many access levels, are read at once.
const MAX_CONCURRENT: usize = 4;

/// The rows of lists, kept until the rest of their containers is read.
#[derive(Default)]
pub(super) struct RosterRows {
    /// By scope and path in lower case.
    by_path: BTreeMap<(Scope, String), Object>,
    /// When the first list was requested, on the client's clock.
    read_at: Duration,
}

/// A question about what exists.
struct RosterReader<'a> {
    observer: &'a Observer,
    query: &'a RosterQuery<'a>,
    /// The fields to keep of the rows.
    wanted: KeyFilter,
}

/// The rows of a list, and whether it has the projects of a user.
type ListedRows = (Vec<Object>, bool);

impl Observer {
    /// Reads the existing containers that `query` requests.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if all further requests would fail too. Any other failure
    /// leaves out the containers of that list.
    pub async fn read_roster(&self, query: &RosterQuery<'_>) -> Result<Roster> {
        let (mut roster, mut rows, read_at) = (Roster::default(), BTreeMap::new(), self.now());
        let reader = RosterReader { observer: self, query, wanted: keys::roster_keys(query) };
        let mut roots = Vec::new();
        for scope in Scope::ALL {
            for root in reader.list_roots(scope).await? {
                if root.is_empty() {
                    match split_fatal(reader.top_level_groups(scope).await)? {
                        Ok(groups) => roots.extend(groups.into_iter().map(|root| (scope, root))),
                        Err(cause) => roster.incomplete.push(("**".into(), cause)),
                    }
                } else {
                    roots.push((scope, root));
                }
            }
        }
        let lists = roots.into_iter().map(async |(scope, root)| {
            let list = reader.list_root(scope, &root).await;
            (scope, root, list)
        });
        let mut lists = stream::iter(lists).buffered(MAX_CONCURRENT);
        while let Some((scope, root, list)) = lists.next().await {
            let failed = match split_fatal(list)? {
                Ok(Some(listed)) => reader.add_rows(scope, listed, &mut rows, &mut roster).await?,
                Ok(None) => {
                    roster.absent_roots.push(root);
                    continue;
                }
                Err(cause) => Some(cause),
            };
            let missing_glob = format!("{root}/**").into();
            roster.incomplete.extend(failed.map(|cause| (missing_glob, cause)));
        }
        *lock(&self.memory.roster_rows) = RosterRows { by_path: rows, read_at };
        Ok(roster)
    }

    /// Sends those of `containers` that have a row in the roster, with that row, and returns the others.
    pub(super) async fn find_in_roster<'c>(
        &self,
        containers: &[&'c Container],
        sender: &Sender<'c>,
    ) -> Result<Vec<&'c Container>> {
        let RosterRows { mut by_path, read_at } =
            std::mem::take(&mut *lock(&self.memory.roster_rows));
        if by_path.is_empty() {
            return Ok(containers.to_vec());
        }
        let mut others = Vec::new();
        for container in containers {
            // A container that moves is looked for at all its paths.
            let moves = self
                .moves
                .declared_at(&container.path)
                .or(self.moves.former_occupant(&container.path));
            let path = self.live_path(&container.path).await?.to_lowercase();
            let row = by_path.remove(&(container.scope, path)).filter(|_| moves.is_none());
            let row = row.map(|row| LiveObject { read_at, ..self.parse(container, &row) });
            match row.filter(|row| row.facts.deletion_mark.is_none()) {
                // If the receiver is closed, the run is over.
                row @ Some(_) => drop(sender.send((container, row)).await),
                None => others.push(*container),
            }
        }
        Ok(others)
    }
}

impl RosterReader<'_> {
    /// The groups whose lists are needed, by their live paths, none inside another; an empty path
    /// means everywhere.
    async fn list_roots(&self, scope: Scope) -> Result<BTreeSet<String>> {
        let globs = self.query.globs.iter().filter(|(of, _)| *of == scope).map(|(_, glob)| glob);
        let (mut roots, observer) = (BTreeSet::new(), self.observer);
        for root in exist::glob_roots(globs) {
            roots.insert(observer.live_group_path(&root).await?);
            // Before a group moves to this path, its contents are still below its old path.
            for group in observer.moves.groups_below(&root) {
                roots.insert(observer.live_group_path(group).await?.to_lowercase());
            }
        }
        Ok(exist::outermost_paths(&roots))
    }

    /// The paths of the top-level groups that are requested, or that may contain requested
    /// containers.
    async fn top_level_groups(&self, scope: Scope) -> Result<Vec<String>> {
        let groups = self.observer.list_top_level(&self.wanted).await?;
        let paths =
            groups.iter().map(|group| catalogue::container_lookup(Scope::Group).path_in(group));
        let matching = paths.filter(|path| {
            let declared_path = self.observer.moves.declared_path(path).to_lowercase();
            let mut globs = self.query.globs.iter().filter(|(of, _)| *of == scope);
            globs.any(|(_, glob)| exist::may_match_in(glob, &declared_path))
        });
        Ok(matching.map(str::to_owned).collect())
    }

    /// Everything of `scope` at and below `root`: a group, a user or a project; `None` if there is
    /// none.
    async fn list_root(&self, scope: Scope, root: &str) -> Result<Option<ListedRows>> {
        let (observer, wanted) = (self.observer, &self.wanted);
        let group_list =
            observer.list_all(scope, exist::list_below(scope).arg("id", root), wanted).await;
        if let Some(mut rows) = none_if_absent(group_list)? {
            if scope == Scope::Group && (self.query.classify)(scope, root) != PathClass::Unmatched {
                rows.extend(observer.find_at(scope, root, wanted).await?);
            }
            return Ok(Some((rows, false)));
        }
        match scope {
            Scope::Group => Ok(None),
            Scope::Project if !root.contains('/') => {
                let list = operation::USER_PROJECTS.request().arg("user_id", root);
                let user_list = observer.list_all(scope, list, wanted).await;
                Ok(none_if_absent(user_list)?.map(|rows| (rows, true)))
            }
            Scope::Project => {
                let project = observer.find_at(scope, root, wanted).await?;
                Ok(project.map(|project| (vec![project], false)))
            }
        }
    }

    /// Adds the rows of a complete list. If an access level cannot be read, adds none and returns the cause.
    async fn add_rows(
        &self,
        scope: Scope,
        (listed, is_personal): ListedRows,
        rows: &mut BTreeMap<(Scope, String), Object>,
        roster: &mut Roster,
    ) -> Result<Option<Cause>> {
        let lookup = catalogue::container_lookup(scope);
        let (start, mut without_level) = (roster.members.len(), Vec::new());
        for row in listed {
            let path = lookup.path_in(&row).to_owned();
            let class = (self.query.classify)(scope, &path);
            if class == PathClass::Included {
                let facts = (lookup.facts)(&row);
                let personal = is_personal.then_some(Exception::Personal);
                let mut exception = Exception::from_facts(&facts).or(personal);
                if exception.is_none() && !self.observer.caller.is_administrator {
                    exception = Exception::from_role(facts.caller_level);
                    if facts.caller_level.is_none() {
                        without_level.push((roster.members.len(), path.clone(), facts.id));
                    }
                }
                roster.members.push(MatchedContainer { scope, path: path.clone(), exception });
            }
            if class != PathClass::Unmatched {
                rows.insert((scope, path.to_lowercase()), row);
            }
        }
        let levels = without_level.into_iter().map(async |(at, path, id)| {
            let level = self.read_level(scope, &path, id).await;
            (at, level)
        });
        let mut levels = stream::iter(levels).buffered(MAX_CONCURRENT);
        while let Some((at, level)) = levels.next().await {
            match split_fatal(level)? {
                Ok(level) => roster.members[at].exception = Exception::from_role(level),
                // Without the level it is unknown which of them are excluded.
                Err(cause) => {
                    roster.members.truncate(start);
                    return Ok(Some(cause));
                }
            }
        }
        Ok(None)
    }

    /// The caller's access level to the container at `path`, where a list lacks it.
    async fn read_level(&self, scope: Scope, path: &str, id: Option<u64>) -> Result<Option<u8>> {
        let lookup = catalogue::container_lookup(scope);
        if let (Some(_), Some(id)) = (lookup.level, id) {
            return self.observer.caller_level(scope, id).await;
        }
        let object = self.observer.find_at(scope, path, &exist::identity_keys(scope)).await?;
        Ok(object.and_then(|raw| (lookup.facts)(&raw).caller_level))
    }
}

/// Turns a 404 into `None`.
fn none_if_absent<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.is_not_found() => Ok(None),
        read => read.map(Some),
    }
}
