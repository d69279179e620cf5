//! The roster: all existing groups and projects that some globs may match, from complete lists.
//!
//! The lists are the projects and groups below each group that a glob starts with, or below each
//! top-level group if it starts with a wildcard. An incomplete list includes nothing. The rows have
//! the fields of settings, so the containers in them are [not read again](Observer::find_in_roster).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};

use super::{Observer, exist, find::Sender, keys, or_cause};
use crate::{
    api::ApiError,
    desired::{Ask, Container, Exception, Member, Roster, Treatment},
    field::Scope,
    kinds,
    operation::{self, KeyFilter},
    value::{Json, Object},
};

/// How many lists, and how many access levels, are read at once.
const AT_ONCE: usize = 4;

/// The rows of lists, kept until the rest of their containers is read.
#[derive(Default)]
pub(super) struct Rows {
    /// By scope and path in lower case.
    by_path: BTreeMap<(Scope, String), Object>,
    /// When the first list was requested, on the client's clock.
    read_at: Duration,
}

/// A list below a group.
struct Listed {
    scope: Scope,
    /// The path of the group, or the user name.
    root: String,
    rows: Vec<Object>,
    /// Whether it lists the projects of a user.
    is_personal: bool,
}

impl Observer {
    /// The existing containers that `ask` requests.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too. Any other failure leaves out the
    /// containers of that list.
    pub async fn roster(&self, ask: &Ask<'_>) -> Result<Roster, ApiError> {
        let (mut roster, read_at) = (Roster::default(), self.now());
        let wanted = &keys::of_roster(ask);
        let mut roots = Vec::new();
        for scope in Scope::ALL {
            for root in self.roots(ask, scope).await? {
                if root.is_empty() {
                    self.top_level_groups(ask, scope, wanted, &mut roots, &mut roster).await?;
                } else {
                    roots.push((scope, root));
                }
            }
        }
        let lists = roots.into_iter().map(async |(scope, root)| {
            let list = self.all_below(ask, scope, &root, wanted).await;
            (root, list)
        });
        let mut lists = stream::iter(lists).buffered(AT_ONCE);
        let mut rows = BTreeMap::new();
        while let Some((root, list)) = lists.next().await {
            match or_cause(list)? {
                Ok(Some(below)) => self.take(ask, below, &mut rows, &mut roster).await?,
                Ok(None) => roster.nowhere.push(root),
                Err(cause) => roster.incomplete.push((format!("{root}/**").into(), cause)),
            }
        }
        *self.memory.rows() = Rows { by_path: rows, read_at };
        Ok(roster)
    }

    /// Passes on `containers` that have a row in the roster, with that row, and returns the others.
    pub(super) async fn find_in_roster<'c>(
        &self,
        containers: &[&'c Container],
        sender: &Sender<'c>,
    ) -> Result<Vec<&'c Container>, ApiError> {
        let Rows { mut by_path, read_at } = std::mem::take(&mut *self.memory.rows());
        if by_path.is_empty() {
            return Ok(containers.to_vec());
        }
        let mut others = Vec::new();
        for container in containers {
            // A container that moves is looked for at all its paths.
            let moves = self.moves.at(&container.path).or(self.moves.left(&container.path));
            let path = self.live_path(&container.path).await?.to_lowercase();
            let row = by_path.remove(&(container.scope, path)).filter(|_| moves.is_none());
            let seen = row.map(|row| self.seen(container, &row));
            match seen.filter(|seen| seen.facts.deleting.is_none()) {
                Some(mut seen) => {
                    seen.read_at = read_at;
                    // If the receiver is closed, the run is over.
                    let _ = sender.send((container, Some(seen))).await;
                }
                None => others.push(*container),
            }
        }
        Ok(others)
    }

    /// The groups whose lists `ask` needs, by their live paths, none inside another; an empty path
    /// means everywhere.
    async fn roots(&self, ask: &Ask<'_>, scope: Scope) -> Result<BTreeSet<String>, ApiError> {
        let globs = ask.globs.iter().filter(|(of, _)| *of == scope).map(|(_, glob)| glob);
        let mut roots = BTreeSet::new();
        for root in exist::roots(globs) {
            roots.insert(self.live_group_path(&root).await?);
            // What is in a group that moves there is elsewhere until then.
            for group in self.moves.groups_below(&root) {
                roots.insert(self.live_group_path(group).await?.to_lowercase());
            }
        }
        Ok(exist::outermost(&roots))
    }

    /// Adds the top-level groups that `ask` requests, or that may contain requested containers.
    async fn top_level_groups(
        &self,
        ask: &Ask<'_>,
        scope: Scope,
        wanted: &KeyFilter,
        roots: &mut Vec<(Scope, String)>,
        roster: &mut Roster,
    ) -> Result<(), ApiError> {
        match or_cause(self.top_level(wanted).await)? {
            Ok(groups) => {
                let (_, itself) = kinds::container(Scope::Group);
                let paths = groups.iter().filter_map(|group| group.get(itself.path)?.as_str());
                let is_meant = |path: &&str| {
                    let home = self.moves.home(path).to_lowercase();
                    let mut globs = ask.globs.iter().filter(|(of, _)| *of == scope);
                    globs.any(|(_, glob)| exist::may_be_in(glob, &home))
                };
                roots.extend(paths.filter(is_meant).map(|path| (scope, path.to_owned())));
            }
            Err(cause) => roster.incomplete.push(("**".into(), cause)),
        }
        Ok(())
    }

    /// Everything of `scope` at and below `root`, if there is such a group or user.
    async fn all_below(
        &self,
        ask: &Ask<'_>,
        scope: Scope,
        root: &str,
        wanted: &KeyFilter,
    ) -> Result<Option<Listed>, ApiError> {
        let below = |rows| Listed { scope, root: root.to_owned(), rows, is_personal: false };
        let mut rows = match self.listed(scope, exist::all_in(scope).arg("id", root), wanted).await
        {
            Ok(rows) => rows,
            Err(error) if error.is_not_found() => {
                return self.elsewhere(scope, root, wanted).await;
            }
            Err(error) => return Err(error),
        };
        if scope == Scope::Group && (ask.standing)(scope, root) != Treatment::Other {
            rows.extend(self.one_at(scope, root, wanted).await?);
        }
        Ok(Some(below(rows)))
    }

    /// Reads a `root` that is not a group: a project, or the projects of a user.
    async fn elsewhere(
        &self,
        scope: Scope,
        root: &str,
        wanted: &KeyFilter,
    ) -> Result<Option<Listed>, ApiError> {
        let is_personal = !root.contains('/');
        let rows = match scope {
            Scope::Group => None,
            Scope::Project if is_personal => {
                let list = operation::USER_PROJECTS.request().arg("user_id", root);
                match self.listed(scope, list, wanted).await {
                    Ok(rows) => Some(rows),
                    Err(error) if error.is_not_found() => None,
                    Err(error) => return Err(error),
                }
            }
            Scope::Project => self.one_at(scope, root, wanted).await?.map(|project| vec![project]),
        };
        Ok(rows.map(|rows| Listed { scope, root: root.to_owned(), rows, is_personal }))
    }

    /// Adds the rows of a complete list.
    async fn take(
        &self,
        ask: &Ask<'_>,
        below: Listed,
        rows: &mut BTreeMap<(Scope, String), Object>,
        roster: &mut Roster,
    ) -> Result<(), ApiError> {
        let (_, itself) = kinds::container(below.scope);
        let (scope, mut unknown) = (below.scope, Vec::new());
        let start = roster.members.len();
        for row in below.rows {
            let path = row.get(itself.path).and_then(Json::as_str).unwrap_or_default().to_owned();
            let standing = (ask.standing)(scope, &path);
            if standing == Treatment::Included {
                let facts = (itself.facts)(&row);
                let personal = below.is_personal.then_some(Exception::Personal);
                let mut exception = Exception::by_itself(&facts).or(personal);
                if exception.is_none() && !self.caller.administrator {
                    exception = Exception::by_role(facts.level);
                    if facts.level.is_none() {
                        unknown.push((roster.members.len(), path.clone(), facts.id));
                    }
                }
                roster.members.push(Member { scope, path: path.clone(), exception });
            }
            if standing != Treatment::Other {
                rows.insert((scope, path.to_lowercase()), row);
            }
        }
        let levels = unknown.into_iter().map(async |(at, path, id)| {
            let level = self.level_of(scope, &path, id).await;
            (at, level)
        });
        let mut levels = stream::iter(levels).buffered(AT_ONCE);
        while let Some((at, level)) = levels.next().await {
            match or_cause(level)? {
                Ok(level) => roster.members[at].exception = Exception::by_role(level),
                // Without the level it is unknown which of them are excluded.
                Err(cause) => {
                    roster.members.truncate(start);
                    roster.incomplete.push((format!("{}/**", below.root).into(), cause));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The caller's access level to the container at `path`, where a list lacks it.
    async fn level_of(
        &self,
        scope: Scope,
        path: &str,
        id: Option<u64>,
    ) -> Result<Option<u8>, ApiError> {
        let (_, itself) = kinds::container(scope);
        match (itself.level, id) {
            (Some(_), Some(id)) => self.level(scope, id).await,
            _ => {
                let one = self.one_at(scope, path, &exist::known_by(scope)).await?;
                Ok(one.and_then(|raw| (itself.facts)(&raw).level))
            }
        }
    }
}
