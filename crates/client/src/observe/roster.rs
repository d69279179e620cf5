//! The roster: all existing groups and projects that the globs of a query may match, read from
//! complete lists.
//!
//! This module reads the groups and projects below each group that a glob starts with, or below
//! each top-level group if the glob starts with a wildcard. If a list cannot be read completely,
//! none of its containers is included. The rows of the lists contain the fields of settings, so the
//! containers of these rows are [not read again](Observer::find_in_roster).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};

use super::{
    Observer, exist,
    find::{LiveObject, RowSender},
    keys, none_if_absent, split_fatal,
};
use crate::{
    api::Result,
    catalogue,
    cause::Cause,
    desired::{Container, ExclusionReason, MatchedContainer, PathClass, Roster, RosterQuery},
    field::Scope,
    lock,
    operation::{self, KeyFilter},
    value::Object,
};

/// The maximum number of lists, and of access levels, that are read in parallel.
const MAX_CONCURRENT: usize = 4;

/// The rows of lists, kept until the sections of their containers are read.
#[derive(Default)]
pub(super) struct RosterRows {
    /// The rows, by scope and path in lower case.
    by_path: BTreeMap<(Scope, String), Object>,
    /// When the first list was requested, on the client's clock.
    read_at: Duration,
}

/// Reads the containers that a query requests.
struct RosterScan<'a> {
    observer: &'a Observer,
    query: &'a RosterQuery<'a>,
    /// The fields that are kept from the rows.
    key_filter: KeyFilter,
}

/// The rows of a list, and true if the rows are projects in a personal namespace.
type ListedRows = (Vec<Object>, bool);

impl Observer {
    /// Reads the existing containers that `query` requests.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if all further requests would fail too. If reading one list
    /// fails for another reason, only the containers of that list are left out.
    pub async fn read_roster(&self, query: &RosterQuery<'_>) -> Result<Roster> {
        let (mut roster, mut rows, read_at) = (Roster::default(), BTreeMap::new(), self.now());
        let scan = RosterScan { observer: self, query, key_filter: keys::roster_keys(query) };
        let mut roots = Vec::new();
        for scope in Scope::ALL {
            for root in scan.find_roots(scope).await? {
                if root.is_empty() {
                    match split_fatal(scan.list_top_level_groups(scope).await)? {
                        Ok(groups) => roots.extend(groups.into_iter().map(|root| (scope, root))),
                        Err(cause) => roster.incomplete_globs.push(("**".into(), cause)),
                    }
                } else {
                    roots.push((scope, root));
                }
            }
        }
        let root_reads = roots.into_iter().map(async |(scope, root)| {
            let list_result = scan.read_root(scope, &root).await;
            (scope, root, list_result)
        });
        let mut lists = stream::iter(root_reads).buffered(MAX_CONCURRENT);
        while let Some((scope, root, list_result)) = lists.next().await {
            let failure = match split_fatal(list_result)? {
                Ok(Some(roster_list)) => {
                    scan.add_rows(scope, roster_list, &mut rows, &mut roster).await?
                }
                Ok(None) => {
                    roster.missing_namespaces.push(root);
                    continue;
                }
                Err(cause) => Some(cause),
            };
            let unread_glob = format!("{root}/**").into();
            roster.incomplete_globs.extend(failure.map(|cause| (unread_glob, cause)));
        }
        *lock(&self.cache.roster_rows) = RosterRows { by_path: rows, read_at };
        Ok(roster)
    }

    /// Sends each container that has a row in the roster, together with the row. Returns the
    /// containers without a row.
    pub(super) async fn find_in_roster<'c>(
        &self,
        containers: &'c [Container],
        sender: &RowSender<'c>,
    ) -> Result<Vec<&'c Container>> {
        let RosterRows { mut by_path, read_at } =
            std::mem::take(&mut *lock(&self.cache.roster_rows));
        if by_path.is_empty() {
            return Ok(containers.iter().collect());
        }
        let mut remaining_containers = Vec::new();
        for container in containers {
            // Ignore the row of a container that moves: all its paths must be searched.
            let declared_move = self
                .moves
                .find_moved_container(&container.path)
                .or(self.moves.former_occupant(&container.path));
            let path = self.resolve_live_path(&container.path).await?.to_lowercase();
            let row = by_path.remove(&(container.scope, path)).filter(|_| declared_move.is_none());
            let row = row.map(|row| LiveObject { read_at, ..self.parse_object(container, &row) });
            match row.filter(|row| row.facts.deletion_mark.is_none()) {
                // If the receiver is closed, the run is over.
                row @ Some(_) => drop(sender.send((container, row)).await),
                None => remaining_containers.push(container),
            }
        }
        Ok(remaining_containers)
    }
}

impl RosterScan<'_> {
    /// The live paths of the groups whose lists are needed. No path is inside another path. An
    /// empty path means all top-level groups.
    async fn find_roots(&self, scope: Scope) -> Result<BTreeSet<String>> {
        let globs = self
            .query
            .globs
            .iter()
            .filter(|(glob_scope, _)| *glob_scope == scope)
            .map(|(_, glob)| glob);
        let (mut roots, observer) = (BTreeSet::new(), self.observer);
        for root in exist::glob_roots(globs) {
            roots.insert(observer.resolve_live_group_path(&root).await?);
            // Before a group moves to a path below `root`, its contents are still below its old
            // path.
            for moving_group in observer.moves.moved_groups_below(&root) {
                roots.insert(observer.resolve_live_group_path(moving_group).await?.to_lowercase());
            }
        }
        Ok(exist::outermost_paths(&roots))
    }

    /// The paths of the top-level groups that a glob may match, or that may contain a match.
    async fn list_top_level_groups(&self, scope: Scope) -> Result<Vec<String>> {
        let groups = self.observer.list_top_level(&self.key_filter).await?;
        let paths =
            groups.iter().map(|group| catalogue::container_lookup(Scope::Group).read_path(group));
        let matching_paths = paths.filter(|path| {
            let declared_path = self.observer.moves.declared_path(path).to_lowercase();
            let mut globs = self.query.globs.iter().filter(|(glob_scope, _)| *glob_scope == scope);
            globs.any(|(_, glob)| exist::may_match_in_group(glob, &declared_path))
        });
        Ok(matching_paths.map(str::to_owned).collect())
    }

    /// Reads all containers of `scope` at and below `root`, which is a group, a user or a project.
    /// Returns `None` if `root` does not exist.
    async fn read_root(&self, scope: Scope, root: &str) -> Result<Option<ListedRows>> {
        let (observer, key_filter) = (self.observer, &self.key_filter);
        let group_list = observer
            .list_containers(
                scope,
                exist::descendants_request(scope).with_argument("id", root),
                key_filter,
            )
            .await;
        if let Some(mut rows) = none_if_absent(group_list)? {
            if scope == Scope::Group && (self.query.classify)(scope, root) != PathClass::Unmatched {
                rows.extend(observer.find_container(scope, root, key_filter).await?);
            }
            return Ok(Some((rows, false)));
        }
        match scope {
            Scope::Group => Ok(None),
            Scope::Project if !root.contains('/') => {
                let list_request =
                    operation::USER_PROJECTS.request().with_argument("user_id", root);
                let user_list = observer.list_containers(scope, list_request, key_filter).await;
                Ok(none_if_absent(user_list)?.map(|rows| (rows, true)))
            }
            Scope::Project => {
                let project = observer.find_container(scope, root, key_filter).await?;
                Ok(project.map(|project| (vec![project], false)))
            }
        }
    }

    /// Adds the containers of a complete list to `roster`, and their rows to `rows`. If an access
    /// level cannot be read, adds no container to `roster`, and returns the cause.
    async fn add_rows(
        &self,
        scope: Scope,
        (listed_rows, is_personal): ListedRows,
        rows: &mut BTreeMap<(Scope, String), Object>,
        roster: &mut Roster,
    ) -> Result<Option<Cause>> {
        let lookup = catalogue::container_lookup(scope);
        let (old_count, mut unknown_levels) = (roster.containers.len(), Vec::new());
        for row in listed_rows {
            let path = lookup.read_path(&row).to_owned();
            let class = (self.query.classify)(scope, &path);
            if class == PathClass::Included {
                let facts = (lookup.read_facts)(&row);
                let personal_reason = is_personal.then_some(ExclusionReason::Personal);
                let mut exclusion = ExclusionReason::from_facts(&facts).or(personal_reason);
                if exclusion.is_none() && !self.observer.caller.is_administrator {
                    exclusion = ExclusionReason::from_access_level(facts.caller_level);
                    if facts.caller_level.is_none() {
                        unknown_levels.push((roster.containers.len(), path.clone(), facts.id));
                    }
                }
                roster.containers.push(MatchedContainer { scope, path: path.clone(), exclusion });
            }
            if class != PathClass::Unmatched {
                rows.insert((scope, path.to_lowercase()), row);
            }
        }
        let level_reads = unknown_levels.into_iter().map(async |(index, path, id)| {
            let level_result = self.read_level(scope, &path, id).await;
            (index, level_result)
        });
        let mut levels = stream::iter(level_reads).buffered(MAX_CONCURRENT);
        while let Some((index, level_result)) = levels.next().await {
            match split_fatal(level_result)? {
                Ok(level) => {
                    roster.containers[index].exclusion = ExclusionReason::from_access_level(level);
                }
                // Drop all containers of the list, because the exclusion of this container is
                // unknown without its level.
                Err(cause) => {
                    roster.containers.truncate(old_count);
                    return Ok(Some(cause));
                }
            }
        }
        Ok(None)
    }

    /// The caller's access level to the container at `path`, whose list row lacks the level.
    async fn read_level(&self, scope: Scope, path: &str, id: Option<u64>) -> Result<Option<u8>> {
        let lookup = catalogue::container_lookup(scope);
        if let (Some(_), Some(id)) = (lookup.level_request, id) {
            return self.observer.read_caller_level(scope, id).await;
        }
        let object =
            self.observer.find_container(scope, path, &exist::identity_keys(scope)).await?;
        Ok(object.and_then(|raw| (lookup.read_facts)(&raw).caller_level))
    }
}
