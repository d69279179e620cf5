//! What is looked up once for each name, whatever comes of it: ids of users and groups, namespaces.
//!
//! Whoever asks first reads; the others wait for that answer and then read nothing themselves, also
//! where it failed: one by one they would fail as long as the service does.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OnceCell;

use super::Observer;
use crate::{
    api::ApiError,
    field::Scope,
    kind::{Id, Namespace, NamespaceOwner},
    kinds, operation,
    page::Rows,
    value::Json,
};

/// Answers by name.
pub(super) struct LookUps<T>(Mutex<BTreeMap<String, LookUp<T>>>);

/// One of them, under way or ended.
type LookUp<T> = Arc<OnceCell<Result<T, ApiError>>>;

impl<T: Clone> LookUps<T> {
    pub(super) async fn of(
        &self,
        name: &str,
        look_up: impl AsyncFnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let known = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(name.to_owned())
            .or_default()
            .clone();
        known.get_or_init(|| async { look_up().await }).await.clone()
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Forgets what is known of `name`.
    pub(super) fn forget(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

impl<T> Default for LookUps<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl Observer {
    /// The id of the user with this name.
    pub(super) async fn user(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let key = name.to_lowercase();
        let look_up = async || {
            let answer =
                self.client.get(operation::USER_FIND.request().query("username", name)).await?;
            let is_named = |user: &&Json| {
                user["username"].as_str().is_some_and(|username| username.to_lowercase() == key)
            };
            let users = answer.body.as_array().into_iter().flatten();
            Ok(users.clone().find(is_named).and_then(|user| user["id"].as_u64()))
        };
        self.ids.of(&format!("user {key}"), look_up).await
    }

    /// The id of the group that is declared at this path.
    pub(super) async fn group(&self, path: &str) -> Result<Option<u64>, ApiError> {
        self.container_id(Scope::Group, path).await
    }

    /// The id of the project at this path.
    pub(super) async fn project(&self, path: &str) -> Result<Option<u64>, ApiError> {
        self.container_id(Scope::Project, path).await
    }

    async fn container_id(&self, scope: Scope, path: &str) -> Result<Option<u64>, ApiError> {
        let key = path.to_lowercase();
        let (_, itself) = kinds::container(scope);
        let look_up = async || {
            let live = match scope {
                Scope::Group => self.live_group_path(path).await?,
                Scope::Project => self.live_path(path).await?,
            };
            match self.client.get_known((itself.get)(&live), &["id", itself.path]).await {
                Ok(answer) => {
                    let is_named = answer.body[itself.path]
                        .as_str()
                        .is_some_and(|path| path.to_lowercase() == live.to_lowercase());
                    Ok(answer.body["id"].as_u64().filter(|_| is_named))
                }
                Err(error) if error.is_moved() => Ok(None),
                Err(error) if error.is_not_found() && !error.is_unknown_route() => Ok(None),
                Err(error) => Err(error),
            }
        };
        let key = match scope {
            Scope::Group => group_key(&key),
            Scope::Project => project_key(&key),
        };
        self.ids.of(&key, look_up).await
    }

    /// The namespace that is declared at `path`.
    pub(super) async fn namespace(&self, path: &str) -> Result<Option<Namespace>, ApiError> {
        let live = self.live_group_path(path).await?;
        self.namespace_at_live(&live).await
    }

    /// The namespace at `path`.
    pub(super) async fn namespace_at_live(
        &self,
        path: &str,
    ) -> Result<Option<Namespace>, ApiError> {
        let look_up = async || {
            let found = match self.namespace_at(path).await? {
                Some(namespace) => namespace,
                // A path of digits is taken for an id.
                None => self.namespace_among(path).await?,
            };
            Ok(match (found["id"].as_u64(), &found["kind"]) {
                (Some(id), kind) if kind == "user" => {
                    Some(Namespace { id: Id::Known(id), owner: self.namespace_owner(path).await? })
                }
                (Some(id), _) => {
                    Some(Namespace { id: Id::Known(id), owner: NamespaceOwner::Group })
                }
                (None, _) => None,
            })
        };
        self.namespaces.of(&path.to_lowercase(), look_up).await
    }

    /// The namespace that the service names `path`, `null` if there is none; `None` if it took
    /// `path` for something else.
    async fn namespace_at(&self, path: &str) -> Result<Option<Json>, ApiError> {
        let request = operation::NAMESPACE_GET.request().arg("id", path);
        match self.client.get_known(request, &["id", "full_path"]).await {
            Ok(answer) => Ok(Some(answer.body).filter(|namespace| is_at(namespace, path))),
            Err(error) if error.is_not_found() && !error.is_unknown_route() => Ok(Some(Json::Null)),
            Err(error) => Err(error),
        }
    }

    /// The namespace at `path` as a search finds it; `null` if it does not.
    async fn namespace_among(&self, path: &str) -> Result<Json, ApiError> {
        let request = operation::NAMESPACE_FIND.request().query("search", path);
        let found =
            self.client.list_known(request, Rows::with_id(&["full_path"])).await?.into_vec();
        Ok(found
            .into_iter()
            .map(Json::Object)
            .find(|namespace| is_at(namespace, path))
            .unwrap_or_default())
    }

    async fn namespace_owner(&self, username: &str) -> Result<NamespaceOwner, ApiError> {
        if username.eq_ignore_ascii_case(&self.caller.username) {
            return Ok(NamespaceOwner::Caller);
        }
        Ok(self.user(username).await?.map_or(NamespaceOwner::Caller, NamespaceOwner::User))
    }
}

/// Under which name the id of the group at `path` is known.
pub(super) fn group_key(path: &str) -> String {
    format!("group {path}")
}

/// Under which name the id of the project at `path` is known.
pub(super) fn project_key(path: &str) -> String {
    format!("project {path}")
}

/// Whether a namespace is the one at `path`. Paths are the same in any case.
fn is_at(namespace: &Json, path: &str) -> bool {
    namespace["full_path"]
        .as_str()
        .is_some_and(|full_path| full_path.to_lowercase() == path.to_lowercase())
}
