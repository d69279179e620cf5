//! Live state: the containers and entries of the service, in the form in which undrift compares them.

use std::{collections::BTreeSet, fmt, sync::Arc};

use super::Id;
use crate::{
    field::{NamedObject, Scope, Tier},
    operation::{Op, Request},
    value::{Fields, Json, Object},
};

/// The group or project that requests address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The type: group or project.
    pub scope: Scope,
    /// The full path as declared.
    pub path: Arc<str>,
    /// The id, if the container exists.
    pub id: Option<u64>,
    /// The declared namespace. It is known if the container must be created in it or moved to it.
    pub namespace: Option<LiveNamespace>,
    /// The current location of the container, if it is not at its declared path.
    pub former_location: Option<FormerLocation>,
    /// The declared paths of containers that must move first: the container that has the path now,
    /// and a group above.
    pub blocking_paths: Vec<Arc<str>>,
    /// The scope of another container that stays at the declared path. A group and a project cannot
    /// have the same path.
    pub occupant_scope: Option<Scope>,
}

/// The former location of a container that must be renamed, moved, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerLocation {
    /// The full path.
    pub path: Arc<str>,
    /// True if the last part of the path must change.
    pub is_renamed: bool,
    /// True if the namespace must change.
    pub is_transferred: bool,
    /// True if the container must be moved before it is renamed, because the path that it has in
    /// between is otherwise in use.
    pub is_transferred_first: bool,
    /// The declared path of the group or project that has the same name in the new namespace.
    pub namesake: Option<Arc<str>>,
    /// The new name, if the name must change together with the path, because another container needs
    /// the old name in the former group, or has it in the new one. The service refuses duplicate
    /// names in one group.
    pub name: Option<String>,
}

impl Target {
    /// A target for the container that is declared at `path`. All other facts are unknown.
    pub fn new(scope: Scope, path: Arc<str>) -> Self {
        Self { scope, path, ..Self::default() }
    }

    /// The last part of the path.
    pub fn slug(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The path and the default name for a create request.
    pub fn naming_fields(&self) -> Fields {
        ["name", "path"].map(|name| (name.to_owned(), self.slug().into())).into()
    }

    /// A request of `op` for this container.
    pub fn request<E: Copy>(&self, op: Op<E>) -> Request<E> {
        self.address_request(op.request())
    }

    /// Addresses `request` to this container: by its id, which survives a rename, or by its path if
    /// it does not exist yet.
    pub fn address_request<E>(&self, request: Request<E>) -> Request<E> {
        request.with_container(&self.path, self.id)
    }
}

/// A namespace: a group, or the namespace of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveNamespace {
    /// The id of the namespace.
    pub id: Id,
    /// The owner.
    pub owner: NamespaceOwner,
}

/// The owner of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceOwner {
    /// A group.
    Group,
    /// The caller.
    Caller,
    /// The user with this id.
    User(u64),
}

/// Facts from the object of a container, independent of its declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// The id.
    pub id: Option<u64>,
    /// The name.
    pub name: Option<String>,
    /// The visibility.
    pub visibility: Option<String>,
    /// True if the container is archived. An archived container cannot be changed.
    pub is_archived: bool,
    /// True if the repository of the container has no branch yet.
    pub has_no_branch: bool,
    /// The id of the owner, if the container is in a personal namespace.
    pub personal_owner_id: Option<u64>,
    /// The caller's level of access; `None` if the object does not show it.
    pub caller_level: Option<u8>,
    /// The highest tier that the object proves, by keys that exist only with a licence.
    pub tier: Tier,
    /// The settings that are `disabled`.
    pub disabled_settings: BTreeSet<String>,
    /// True if the object proves that the service has no licence. Without a licence, the service
    /// accepts fields of higher tiers and ignores them.
    pub is_unlicensed: bool,
    /// The deletion mark: `Some` if the container is marked for deletion, with the day if the
    /// service shows the day.
    pub deletion_mark: Option<Option<String>>,
    /// The state of an import that has not finished.
    pub import_state: Option<ImportState>,
}

/// The path without the suffix that the service (since release 15.8) adds when a group or project
/// is marked for deletion. The suffix frees the old path.
pub fn unmarked_path(path: &str, id: u64) -> &str {
    let deletion_marks = ["-deletion_scheduled-", "-deleted-"];
    let mut unmarked_paths =
        deletion_marks.iter().filter_map(|mark| path.strip_suffix(&format!("{mark}{id}")));
    unmarked_paths.next().unwrap_or(path)
}

/// The first group in `path` whose own path shows that it is marked for deletion.
pub fn find_marked_group(path: &str) -> Option<&str> {
    path.match_indices('/').map(|(index, _)| &path[..index]).find(|group: &&str| {
        let id = group.rsplit('-').next().and_then(|id| id.parse().ok());
        id.is_some_and(|id| unmarked_path(group, id) != *group)
    })
}

/// The state of an import whose contents have not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportState {
    /// The import is running.
    Running,
    /// The import failed. The text is the reason, if the service shows one.
    Failed(Option<String>),
}

/// The key of the placeholder for a value that a snapshot withholds.
const WITHHELD_KEY: &str = "undrift_withheld";

/// The placeholder for a value that a snapshot withholds. Such a value is unknown, not null.
pub fn withheld_placeholder() -> Json {
    Json::Object(Object::from_iter([(WITHHELD_KEY.to_owned(), true.into())]))
}

/// True if `value` is the placeholder for a withheld value.
pub fn is_withheld(value: &Json) -> bool {
    value.get(WITHHELD_KEY).is_some()
}

/// Live fields. They have neither `Display` nor `Serialize`, and `Debug` shows only their names:
/// all output of values passes the [judge](crate::secret::judge) first.
#[derive(Clone, Default, PartialEq)]
pub struct LiveFields {
    raw: Object,
    withheld_names: Vec<String>,
}

impl LiveFields {
    /// Creates the fields `raw`, with the names of the fields that a snapshot withholds.
    pub const fn new(raw: Object, withheld_names: Vec<String>) -> Self {
        Self { raw, withheld_names }
    }

    /// The values. Use them only in comparisons and requests.
    pub const fn raw(&self) -> &Object {
        &self.raw
    }

    /// A mutable reference to the values.
    pub const fn raw_mut(&mut self) -> &mut Object {
        &mut self.raw
    }

    /// True if a snapshot withholds the field `name`.
    pub fn is_withheld(&self, name: &str) -> bool {
        self.withheld_names.iter().any(|withheld_name| withheld_name == name)
    }
}

impl fmt::Debug for LiveFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.raw.keys()).finish()
    }
}

/// An entry on the service, in comparable form.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveEntry {
    /// The values of the keys in [`ScopedKind::address_keys`](super::ScopedKind::address_keys) that
    /// address the entry: an id, or a key and a scope.
    pub address_values: Vec<Json>,
    /// The fields. A missing field is unknown.
    pub fields: LiveFields,
    /// The reason why undrift never changes the entry, for example `bot user`.
    pub protection_reason: Option<&'static str>,
    /// The highest tier whose fields the response contained.
    pub tier: Tier,
    /// The whole object of the response, if the service accepts duplicates. A placeholder replaces a
    /// value that a snapshot withholds.
    pub whole_object: Option<LiveFields>,
}

impl LiveEntry {
    /// The id, if the entry is addressed by an id.
    pub fn id(&self) -> Option<u64> {
        self.address_values.first().and_then(Json::as_u64)
    }

    /// The same entry without the grants to the users or groups with `ids`.
    #[must_use]
    pub fn without_grants(
        &self,
        table: &super::FieldTable,
        object_type: NamedObject,
        ids: &[u64],
    ) -> Self {
        let mut entry = self.clone();
        for (name, value) in entry.fields.raw_mut() {
            if let Some(spec) = table.get(name) {
                spec.remove_rows_naming(value, object_type, ids);
            }
        }
        entry
    }

    /// The first value that addresses the entry, as text.
    pub fn address_text(&self) -> String {
        self.address_values.first().map(super::plain_text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_of_a_path_marked_for_deletion_is_recognised() {
        for (path, id, original_path) in [
            ("acme/shop-deletion_scheduled-7", 7, "acme/shop"),
            ("acme/shop-deleted-7", 7, "acme/shop"),
            ("acme/shop-deletion_scheduled-7", 8, "acme/shop-deletion_scheduled-7"),
            ("acme/shop", 7, "acme/shop"),
        ] {
            assert_eq!(unmarked_path(path, id), original_path);
        }
        for (path, group) in [
            ("acme/shop", None),
            ("acme-deletion_scheduled-7/shop", Some("acme-deletion_scheduled-7")),
            ("acme/web-deleted-12/shop", Some("acme/web-deleted-12")),
            ("acme/shop-deletion_scheduled-7", None),
        ] {
            assert_eq!(find_marked_group(path), group);
        }
    }
}
