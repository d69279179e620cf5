//! The cache of an observer: each object is read only once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use tokio::sync::OnceCell;

use super::{
    lookups::{Roles, Runners},
    roster,
};
use crate::{
    address::groups_above,
    api::Result,
    field::Scope,
    kind::{Id, LiveNamespace, NamespaceOwner},
    live::{InheritedLevels, ListedContainer},
    lock,
    release::DetectedRelease,
    value::Object,
};

/// The cached results of look-ups.
#[derive(Default)]
pub(super) struct ObserverCache {
    /// The ids of users, groups and projects, by name.
    pub(super) ids: LookUpCache<Option<u64>>,
    /// The namespaces, by path.
    pub(super) namespaces: LookUpCache<Option<LiveNamespace>>,
    /// The access levels of users in groups, by path.
    pub(super) group_levels: LookUpCache<InheritedLevels>,
    /// The names of the entries of groups, by section and path.
    pub(super) entry_names: LookUpCache<Arc<[String]>>,
    /// The groups or projects below a group, by [`id_key`].
    pub(super) containers_below: LookUpCache<Arc<[ListedContainer]>>,
    /// The API objects of groups, by path, and the settings of groups, by section and path.
    pub(super) groups: LookUpCache<Arc<Object>>,
    /// The live paths of groups and projects that have declared former paths, by declared path.
    pub(super) live_paths: LookUpCache<String>,
    /// The runners of projects that the token sees.
    pub(super) runners: LookUpCache<Runners>,
    /// The custom roles for members, by top-level group. The key is empty for the roles of the
    /// installation.
    pub(super) roles: LookUpCache<Roles>,
    /// The release of the service.
    pub(super) release: LookUpCache<DetectedRelease>,
    /// The names of users and groups, by id.
    pub(super) names: LookUpCache<Option<String>>,
    /// Declared fields that no response contains, neither a list row nor the response to a single
    /// read. For these fields, undrift does not read the single object again.
    pub(super) never_returned_fields: Mutex<BTreeSet<String>>,
    /// Rows of the [`roster`], which are removed when they are used.
    pub(super) roster_rows: Mutex<roster::RosterRows>,
}

/// The key of the access levels in the group that moves to the declared `path`. The key differs
/// from every path, because no path contains a blank.
pub(super) fn levels_after_move_key(path: &str) -> String {
    format!("{} after its move", path.to_lowercase())
}

/// The key of the levels of the direct members of the group that is declared at `path`.
pub(super) fn direct_levels_key(path: &str) -> String {
    format!("{} directly", path.to_lowercase())
}

impl ObserverCache {
    /// Removes the cached results for `path`.
    pub(super) fn forget(&self, path: &str) {
        self.live_paths.clear();
        let path = path.to_lowercase();
        for scope in Scope::ALL {
            self.ids.forget(&id_key(scope, &path));
            groups_above(&path)
                .for_each(|group| self.containers_below.forget(&id_key(scope, group)));
        }
        self.namespaces.forget(&path);
        self.group_levels.forget(&path);
        self.group_levels.forget(&levels_after_move_key(&path));
        self.group_levels.forget(&direct_levels_key(&path));
        self.groups.forget(&path);
    }

    /// Records the group or project that this run created at, or moved to, `path`. Look-ups return
    /// its id even if another container gets this path later.
    pub(super) fn record_id(&self, scope: Scope, path: &str, id: u64) {
        self.forget(path);
        let path = path.to_lowercase();
        self.ids.insert(&id_key(scope, &path), Some(id));
        if scope == Scope::Group {
            let namespace = LiveNamespace { id: Id::Known(id), owner: NamespaceOwner::Group };
            self.namespaces.insert(&path, Some(namespace));
        }
    }
}

/// The key for the id of the container at `path`, in lower case.
pub(super) fn id_key(scope: Scope, path: &str) -> String {
    format!("{} {path}", scope.noun())
}

/// The results of look-ups, by name. The first caller reads. All other callers wait, and share the
/// result. A failure is shared too, so that a failing request is sent only once.
pub(super) struct LookUpCache<T>(Mutex<BTreeMap<String, LookUp<T>>>);

/// One look-up, in progress or finished.
type LookUp<T> = Arc<OnceCell<Result<T>>>;

impl<T: Clone> LookUpCache<T> {
    /// The result for `name`: cached, or else from `read_value`.
    pub(super) async fn get_or_read(
        &self,
        name: &str,
        read_value: impl AsyncFnOnce() -> Result<T>,
    ) -> Result<T> {
        let cell = lock(&self.0).entry(name.to_owned()).or_default().clone();
        cell.get_or_init(|| async { read_value().await }).await.clone()
    }

    /// True if the result for `name` was read before, or is being read.
    pub(super) fn contains(&self, name: &str) -> bool {
        lock(&self.0).contains_key(name)
    }

    /// Sets the result for `name` without a request.
    fn insert(&self, name: &str, value: T) {
        let cell = Arc::new(OnceCell::new_with(Some(Ok(value))));
        lock(&self.0).insert(name.to_owned(), cell);
    }

    /// Removes all results.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Removes the result for `name`.
    pub(super) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }
}

impl<T> Default for LookUpCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
