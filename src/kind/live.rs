//! What is there: containers and entries, as undrift looks at them.

use std::{collections::BTreeSet, sync::Arc};

use super::Id;
use crate::{
    field::{Named, Scope, Tier},
    operation::Request,
    value::{Fields, Json, Object},
};

/// The container that requests are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it is a group or a project.
    pub scope: Scope,
    /// The full path as declared.
    pub path: Arc<str>,
    /// The id, if it exists.
    pub id: Option<u64>,
    /// The namespace that it is to be in; known when it must be created there, or moved there.
    pub namespace: Option<Namespace>,
    /// Where it is, if that is not where it is to be.
    pub former: Option<Former>,
    /// The declared paths of what has to move before it gets its path: what has that path, and a
    /// group above.
    pub follows: Vec<Arc<str>>,
}

/// Where something is that has to be renamed, moved, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// Its full path.
    pub path: Arc<str>,
    /// Whether the last part of the path has to change.
    pub renames: bool,
    /// Whether the namespace has to change.
    pub transfers: bool,
    /// The name that it gets with its path: what is declared at its former path needs the old one,
    /// which the service refuses twice in one group.
    pub name: Option<String>,
}

impl Target {
    /// What is declared at `path`, of which nothing else is known.
    pub const fn new(scope: Scope, path: Arc<str>) -> Self {
        Self { scope, path, id: None, namespace: None, former: None, follows: Vec::new() }
    }

    /// The last part of the path.
    pub fn slug(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// What a create says of the path and, unless something else is declared, of the name.
    pub fn naming(&self) -> Fields {
        ["name", "path"].map(|name| (name.to_owned(), self.slug().into())).into()
    }

    /// `request` for this container: by its id, which survives a rename. The path stands for the id
    /// of what is still to be created.
    #[must_use]
    pub fn addressed<E>(&self, request: Request<E>) -> Request<E> {
        request.of_container(&self.path, self.id)
    }
}

/// A namespace: a group, or a user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its id.
    pub id: Id,
    /// Whose it is.
    pub owner: NamespaceOwner,
}

/// Whose namespace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceOwner {
    /// A group's.
    Group,
    /// The caller's own.
    Caller,
    /// That of the user with this id.
    User(u64),
}

/// What the object of a container says whatever is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The id.
    pub id: Option<u64>,
    /// The name.
    pub name: Option<String>,
    /// Whether it is archived: then nothing of it can be changed.
    pub archived: bool,
    /// Whether its repository has no branch yet.
    pub is_empty: bool,
    /// The user in whose personal namespace it is.
    pub personal_owner: Option<u64>,
    /// The caller's level of access; `None` if the object does not tell.
    pub level: Option<u8>,
    /// The highest tier of which the object certainly tells that the service has it now: by keys that
    /// are there with a licence only.
    pub tier: Tier,
    /// Its settings that are `disabled`.
    pub disabled: BTreeSet<String>,
    /// Whether it shows that the service has no licence: then fields of higher tiers are accepted and
    /// ignored.
    pub is_unlicensed: bool,
    /// If it is marked for deletion, the day on which it was, if the service told.
    pub deleting: Option<Option<String>>,
    /// If its contents come from elsewhere and have not all arrived, how that stands.
    pub arrival: Option<Arrival>,
}

/// The path that a group or project with this `id` has, or had before it was marked for deletion:
/// until it is gone it has another one, so that the old one is free (since 15.8: 9).
pub fn unmarked_path(path: &str, id: u64) -> &str {
    let marks = ["-deletion_scheduled-", "-deleted-"];
    let mut own = marks.iter().filter_map(|mark| path.strip_suffix(&format!("{mark}{id}")));
    own.next().unwrap_or(path)
}

/// The path of the group above `path` that is marked for deletion, as its own path says.
pub fn marked_above(path: &str) -> Option<&str> {
    let is_marked = |group: &&str| {
        let id = group.rsplit('-').next().and_then(|id| id.parse().ok());
        id.is_some_and(|id| unmarked_path(group, id) != *group)
    };
    path.match_indices('/').map(|(at, _)| &path[..at]).find(is_marked)
}

/// How it stands with contents that have not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// They are on their way.
    Running,
    /// They will not come: why, if the service told.
    Failed(Option<String>),
}

/// An entry as it is on the service, in comparable form.
#[derive(Clone, PartialEq)]
pub struct LiveEntry {
    /// What addresses it on the service, as the home's [handles](super::Home::handle) say: an id, a
    /// key and a scope.
    pub handle: Vec<Json>,
    /// Its fields; one that is missing is unknown.
    pub fields: Object,
    /// Why undrift leaves it alone whatever is declared, for example `bot user`.
    pub protected: Option<&'static str>,
    /// The highest tier whose fields the service showed with it.
    pub tier: Tier,
    /// The whole answer, where the service may hold the same thing twice.
    pub whole: Option<Object>,
}

impl LiveEntry {
    /// Its id, if that is what addresses it.
    pub fn id(&self) -> Option<u64> {
        self.handle.first().and_then(Json::as_u64)
    }

    /// The same without what rules grant to the users or groups with `ids`.
    #[must_use]
    pub fn without_grants(&self, table: &super::Table, named: Named, ids: &[u64]) -> Self {
        let mut entry = self.clone();
        for (name, value) in &mut entry.fields {
            if let Some(spec) = table.get(name) {
                spec.drop_rows_of(value, named, ids);
            }
        }
        entry
    }

    /// What addresses it, as text.
    pub fn handle_text(&self) -> String {
        self.handle.first().map(super::plain_text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_for_deletion_is_known_by_the_path_that_it_had() {
        for (path, id, before) in [
            ("acme/shop-deletion_scheduled-7", 7, "acme/shop"),
            ("acme/shop-deleted-7", 7, "acme/shop"),
            ("acme/shop-deletion_scheduled-7", 8, "acme/shop-deletion_scheduled-7"),
            ("acme/shop", 7, "acme/shop"),
        ] {
            assert_eq!(unmarked_path(path, id), before);
        }
        for (path, group) in [
            ("acme/shop", None),
            ("acme-deletion_scheduled-7/shop", Some("acme-deletion_scheduled-7")),
            ("acme/web-deleted-12/shop", Some("acme/web-deleted-12")),
            ("acme/shop-deletion_scheduled-7", None),
        ] {
            assert_eq!(marked_above(path), group);
        }
    }
}
