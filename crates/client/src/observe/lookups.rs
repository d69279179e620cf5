//! Look-ups by name: ids of users, groups and projects, and namespaces.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Observer, cache,
    find::{object_id, object_level, paths_are_equal},
};
use crate::{
    api::Result,
    catalogue,
    desired::{DeclaredSection, named_object},
    field::{NamedObject, Scope},
    kind::{Id, LiveNamespace, NameIndex, NamespaceOwner, Section, forms},
    live::LiveEntries,
    operation::{self, KeyFilter},
    page::EntryKeys,
    value::Json,
};

/// Runners: their ids, and their descriptions in lower case.
pub(super) type Runners = Arc<[(u64, String)]>;

/// The custom roles of the installation or of a top-level group.
pub(super) type Roles = Arc<[CustomRole]>;

/// A custom role for members.
pub(super) struct CustomRole {
    id: u64,
    name: String,
    /// The access level that the role is based on, if the service shows it.
    level: Option<u8>,
}

impl Observer {
    /// Looks up the ids of the objects that the declared entries of `section` name. A name is not
    /// looked up if a live entry was already identified by this name.
    pub(super) async fn resolve_names(
        &self,
        path: &str,
        section: &DeclaredSection,
        live_entries: &LiveEntries,
    ) -> Result<NameIndex> {
        let mut names = NameIndex::default();
        // A section that was not read is not planned, so its names are not needed.
        let Ok(live) = live_entries.entries() else { return Ok(names) };
        let mut live_keys: Option<BTreeSet<String>> = None;
        let runners = self.read_runners_if_named(section.kind).await?;
        for entry in section.present_entries() {
            for (field, object_type, name) in forms::referenced_names(section.kind, &entry.values())
            {
                if object_type == NamedObject::Runner {
                    names.insert(object_type, &name, runner_ids_by_description(&runners, &name));
                } else if object_type == NamedObject::Role {
                    if live.iter().any(|live_entry| {
                        section.kind.entry_name(live_entry.fields.raw()) == entry.key
                            && live_entry.fields.raw().get(&field).and_then(Json::as_str)
                                == Some(&name)
                    }) {
                        continue;
                    }
                    let roles = self.read_roles(path).await?;
                    let role = roles.iter().find(|role| role.name == name);
                    names.insert(object_type, &name, role.map(|role| role.id));
                    if let Some(CustomRole { id, level: Some(level), .. }) = role {
                        names.insert_role_level(*id, *level);
                    }
                } else {
                    let is_identity = section.kind.identity.contains(&&*field);
                    let live_keys = live_keys.get_or_insert_with(|| {
                        live.iter()
                            .map(|entry| section.kind.entry_name(entry.fields.raw()))
                            .collect()
                    });
                    if !(is_identity && live_keys.contains(&entry.key)) {
                        names.insert(object_type, &name, self.find_id(object_type, &name).await?);
                    }
                }
            }
        }
        Ok(names)
    }

    /// Looks up the id of an object by `name`. Each name is looked up only once.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if the id could not be looked up.
    pub async fn find_id(&self, object_type: NamedObject, name: &str) -> Result<Option<u64>> {
        match object_type {
            NamedObject::User => self.find_user_id(name).await,
            NamedObject::Group => self.find_container_id(Scope::Group, name).await,
            NamedObject::Project => self.find_container_id(Scope::Project, name).await,
            NamedObject::Runner => {
                Ok(match runner_ids_by_description(&self.read_runners().await?, name)[..] {
                    [id] => Some(id),
                    _ => None,
                })
            }
            // Roles are looked up with the members that have them (`resolve_names`).
            NamedObject::Role => Ok(None),
        }
    }

    /// The custom roles for members of the container at `path`, read once. For an administrator,
    /// these are the roles of the installation. For any other caller, these are the roles of the
    /// top-level group.
    async fn read_roles(&self, path: &str) -> Result<Roles> {
        let top_level_group = path.split('/').next().unwrap_or(path);
        let cache_key = if self.caller.is_administrator { "" } else { top_level_group };
        let read_custom_roles = async || {
            let request = match cache_key {
                "" => operation::MEMBER_ROLE_LIST.request(),
                top => operation::GROUP_MEMBER_ROLE_LIST.request().with_argument("id", top),
            };
            let role_rows = match self.client.list_with_keys(request, EntryKeys::with_id(&[])).await
            {
                // The token has no right to see custom roles, or the service has no custom roles.
                Err(error) if matches!(error.status(), Some(400 | 403 | 404)) => {
                    return Ok(Roles::default());
                }
                rows => rows?,
            };
            let roles = role_rows.iter().filter_map(|raw| {
                let name = raw.get("name")?.as_str()?.to_owned();
                Some(CustomRole {
                    id: object_id(raw)?,
                    name,
                    level: object_level(raw, "base_access_level"),
                })
            });
            Ok(roles.collect())
        };
        self.cache.roles.get_or_read(cache_key, read_custom_roles).await
    }

    /// The runners of projects that the token sees; an empty list if the entries of the section do
    /// not refer to runners by name.
    pub(super) async fn read_runners_if_named(&self, section: Section) -> Result<Runners> {
        match named_object(section) {
            Some((_, NamedObject::Runner)) => self.read_runners().await,
            _ => Ok(Runners::default()),
        }
    }

    /// The runners of projects that the token sees, read once.
    async fn read_runners(&self) -> Result<Runners> {
        let list_runners = async || {
            let is_administrator = self.caller.is_administrator;
            let op =
                if is_administrator { operation::RUNNER_LIST_ALL } else { operation::RUNNER_LIST };
            let list = op.request().with_query("type", "project_type");
            let runner_rows = self.client.list_with_keys(list, EntryKeys::with_id(&[])).await?;
            let runners = runner_rows.iter().filter_map(|raw| {
                Some((object_id(raw)?, raw.get("description")?.as_str()?.to_lowercase()))
            });
            Ok(runners.collect())
        };
        self.cache.runners.get_or_read("", list_runners).await
    }

    /// The id of the user with this name.
    pub(super) async fn find_user_id(&self, name: &str) -> Result<Option<u64>> {
        let key = name.to_lowercase();
        let read_user_id = async || {
            let response = self
                .client
                .get(operation::USER_FIND.request().with_query("username", name))
                .await?;
            let mut users = response.body.as_array().into_iter().flatten();
            let user = users.find(|user| {
                user["username"].as_str().is_some_and(|username| username.to_lowercase() == key)
            });
            Ok(user.and_then(|user| user["id"].as_u64()))
        };
        self.cache.ids.get_or_read(&format!("user {key}"), read_user_id).await
    }

    /// The id of the group or project that is declared at this path.
    async fn find_container_id(&self, scope: Scope, path: &str) -> Result<Option<u64>> {
        let key = path.to_lowercase();
        let lookup = catalogue::container_lookup(scope);
        let read = async || {
            let live_path = self.resolve_live_container_path(scope, path).await?;
            match self.get_container_object(scope, &live_path, &KeyFilter::All).await {
                Ok(object) => Ok(object_id(&object)
                    .filter(|_| paths_are_equal(lookup.read_path(&object), &live_path))),
                Err(error) if error.is_moved() || error.is_object_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.cache.ids.get_or_read(&cache::id_key(scope, &key), read).await
    }

    /// The namespace at the declared `path`.
    pub(super) async fn find_declared_namespace(
        &self,
        path: &str,
    ) -> Result<Option<LiveNamespace>> {
        let live_path = self.resolve_live_group_path(path).await?;
        self.read_namespace_at(&live_path).await
    }

    /// The namespace at the live `path`.
    pub(super) async fn read_namespace_at(&self, path: &str) -> Result<Option<LiveNamespace>> {
        let read_namespace = async || {
            let namespace = match self.get_namespace(path).await? {
                Some(namespace) => namespace,
                // Search for the namespace, because the service reads a path of digits as an id.
                None => self.search_namespace(path).await?,
            };
            let Some(id) = namespace["id"].as_u64().map(Id::Known) else { return Ok(None) };
            let owner = if namespace["kind"] != "user" {
                NamespaceOwner::Group
            } else if path.eq_ignore_ascii_case(&self.caller.username) {
                NamespaceOwner::Caller
            } else {
                self.find_user_id(path).await?.map_or(NamespaceOwner::Caller, NamespaceOwner::User)
            };
            Ok(Some(LiveNamespace { id, owner }))
        };
        self.cache.namespaces.get_or_read(&path.to_lowercase(), read_namespace).await
    }

    /// Reads the namespace at `path`. Returns `null` if the namespace does not exist, and `None` if
    /// the service returned another namespace.
    async fn get_namespace(&self, path: &str) -> Result<Option<Json>> {
        let request = operation::NAMESPACE_GET.request().with_argument("id", path);
        match self.client.get_object(request, &["id", "full_path"]).await {
            Ok(response) => {
                Ok(Some(response.body).filter(|namespace| is_namespace_at(namespace, path)))
            }
            Err(error) if error.is_object_not_found() => Ok(Some(Json::Null)),
            Err(error) => Err(error),
        }
    }

    /// Searches for the namespace at `path`. Returns `null` if the search does not find the
    /// namespace.
    async fn search_namespace(&self, path: &str) -> Result<Json> {
        let request = operation::NAMESPACE_FIND.request().with_query("search", path);
        let namespaces =
            self.client.list_with_keys(request, EntryKeys::with_id(&["full_path"])).await?;
        let mut namespaces = namespaces.into_vec().into_iter().map(Json::Object);
        Ok(namespaces.find(|namespace| is_namespace_at(namespace, path)).unwrap_or_default())
    }
}

/// The ids of the `runners` with this description, ignoring case.
pub(super) fn runner_ids_by_description(runners: &[(u64, String)], description: &str) -> Vec<u64> {
    let description = description.to_lowercase();
    runners.iter().filter(|(_, other)| *other == description).map(|(id, _)| *id).collect()
}

/// True if `namespace` has this `path`, ignoring case.
fn is_namespace_at(namespace: &Json, path: &str) -> bool {
    namespace["full_path"].as_str().is_some_and(|full_path| paths_are_equal(full_path, path))
}
