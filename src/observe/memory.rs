//! What an observer remembers, so that it asks for each thing once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OnceCell;

use super::roster;
use crate::{
    api::ApiError,
    field::Scope,
    kind::{Id, Namespace, NamespaceOwner},
    live::Inherited,
    release::Known,
    value::Object,
};

/// All that is remembered.
#[derive(Default)]
pub(super) struct Memory {
    /// The ids of users, groups and projects by their names.
    pub(super) ids: LookUps<Option<u64>>,
    /// The namespaces by their paths.
    pub(super) namespaces: LookUps<Option<Namespace>>,
    /// Who has access to groups.
    pub(super) inherited: LookUps<Inherited>,
    /// What groups say of themselves.
    pub(super) groups: LookUps<Arc<Object>>,
    /// Where the groups that are declared to have had other paths are.
    pub(super) places: LookUps<String>,
    /// The release of the service.
    pub(super) release: LookUps<Known>,
    /// What those with an id are called.
    pub(super) called: LookUps<Option<String>>,
    /// Declared fields that single answers lack as well as list answers, so that asking again
    /// brings nothing.
    in_no_answer: Mutex<BTreeSet<String>>,
    /// What the roster brought, until it is looked at.
    rows: Mutex<roster::Rows>,
}

impl Memory {
    pub(super) fn in_no_answer(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.in_no_answer)
    }

    pub(super) fn rows(&self) -> MutexGuard<'_, roster::Rows> {
        lock(&self.rows)
    }

    /// Forgets what was looked up about `path`.
    pub(super) fn forget(&self, path: &str) {
        self.places.clear();
        let path = path.to_lowercase();
        for scope in Scope::ALL {
            self.ids.forget(&key(scope, &path));
        }
        self.namespaces.forget(&path);
        self.inherited.forget(&path);
        self.groups.forget(&path);
    }

    /// Takes in which group or project is at `path` since this run put it there. Whoever names it
    /// means that one, also once somebody else has its path.
    pub(super) fn learn(&self, scope: Scope, path: &str, id: u64) {
        self.forget(path);
        let path = path.to_lowercase();
        self.ids.learn(&key(scope, &path), Some(id));
        if scope == Scope::Group {
            let namespace = Namespace { id: Id::Known(id), owner: NamespaceOwner::Group };
            self.namespaces.learn(&path, Some(namespace));
        }
    }
}

/// Under which name the id of what is at `path`, in lower case, is remembered.
pub(super) fn key(scope: Scope, path: &str) -> String {
    format!("{} {path}", scope.noun())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers by name. Whoever asks first reads; the others wait for that answer and then read nothing
/// themselves, also where it failed: one by one they would fail as long as the service does.
pub(super) struct LookUps<T>(Mutex<BTreeMap<String, LookUp<T>>>);

/// One of them, under way or ended.
type LookUp<T> = Arc<OnceCell<Result<T, ApiError>>>;

impl<T: Clone> LookUps<T> {
    pub(super) async fn of(
        &self,
        name: &str,
        look_up: impl AsyncFnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let known = lock(&self.0).entry(name.to_owned()).or_default().clone();
        known.get_or_init(|| async { look_up().await }).await.clone()
    }

    /// Takes in what is known of `name` without asking.
    fn learn(&self, name: &str, found: T) {
        let known = Arc::new(OnceCell::new_with(Some(Ok(found))));
        lock(&self.0).insert(name.to_owned(), known);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Forgets what is known of `name`.
    pub(super) fn forget(&self, name: &str) {
        lock(&self.0).remove(name);
    }
}

impl<T> Default for LookUps<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
