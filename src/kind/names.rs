//! What manifests name, and its ids: looked up, or of what the same run creates.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    cause::Cause,
    field::{Named, Scope},
    operation::id_of,
    value::Json,
};

/// The ids of what entries name, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The ids that the service gave; `None` where it knows no such thing.
    found: BTreeMap<(Named, String), Option<u64>>,
    /// The same the other way around.
    by_id: BTreeMap<(Named, u64), String>,
    /// What things are called that were looked up by their ids.
    looked_up: BTreeMap<(Named, u64), String>,
    /// The entries of sections of the same container that were asked for, by section and name, or
    /// why a section could not be read.
    entries: BTreeMap<String, Result<BTreeMap<String, Id>, Cause>>,
    /// What the run itself creates.
    created: Created,
    /// The user whom the token belongs to, if it is known.
    caller: Option<u64>,
}

/// The groups and projects that a run creates if they are missing and that something else of it
/// may name, by path in lower case with what is known of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Created(Arc<BTreeMap<String, Creation>>);

/// A group or project that a run creates.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Creation {
    scope: Scope,
    path: Arc<str>,
    id: Option<u64>,
}

/// What is known of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    /// It is this one.
    Known(u64),
    /// It is that of what is at this path, or of the entry with this address, which the run creates.
    OfStep(Arc<str>),
}

impl Id {
    /// As a request carries it.
    pub fn sent(&self) -> Json {
        match self {
            Self::Known(id) => (*id).into(),
            Self::OfStep(path) => id_of(path),
        }
    }

    /// The number, if it is known.
    pub const fn known(&self) -> Option<u64> {
        match self {
            Self::Known(id) => Some(*id),
            Self::OfStep(_) => None,
        }
    }
}

impl Created {
    /// What becomes of the `scope` at `path`, if the run creates it where it is missing.
    pub fn id(&self, scope: Scope, path: &str) -> Option<Id> {
        let creation = self.0.get(&path.to_lowercase()).filter(|known| known.scope == scope)?;
        Some(creation.id.map_or_else(|| Id::OfStep(creation.path.clone()), Id::Known))
    }

    /// The id that what the run creates at `path` was given.
    pub fn known_id(&self, path: &str) -> Option<u64> {
        self.0.get(&path.to_lowercase())?.id
    }

    /// Takes in the id that what the run creates at `path` was given. What nothing names is passed
    /// over.
    pub fn insert(&mut self, path: &str, id: u64) {
        let path = path.to_lowercase();
        if self.0.contains_key(&path)
            && let Some(creation) = Arc::make_mut(&mut self.0).get_mut(&path)
        {
            creation.id = Some(id);
        }
    }
}

impl FromIterator<(Scope, Arc<str>)> for Created {
    fn from_iter<I: IntoIterator<Item = (Scope, Arc<str>)>>(created: I) -> Self {
        let pending = created
            .into_iter()
            .map(|(scope, path)| (path.to_lowercase(), Creation { scope, path, id: None }));
        Self(Arc::new(pending.collect()))
    }
}

impl Names {
    /// Takes in what was found for a name.
    pub fn insert(&mut self, named: Named, name: &str, id: Option<u64>) {
        let name = name.to_lowercase();
        if let Some(id) = id {
            self.by_id.insert((named, id), name.clone());
        }
        self.found.insert((named, name), id);
    }

    /// Takes in what the thing with `id` is called.
    pub fn insert_name(&mut self, named: Named, id: u64, name: &str) {
        self.looked_up.insert((named, id), name.to_owned());
    }

    /// With the ids of what was looked up by its id, found by what it is called.
    #[must_use]
    pub fn found_by_name(mut self) -> Self {
        for ((named, id), name) in &self.looked_up {
            self.found.insert((*named, name.to_lowercase()), Some(*id));
        }
        self
    }

    /// Takes in what others found.
    pub fn extend(&mut self, others: Self) {
        self.found.extend(others.found);
        self.by_id.extend(others.by_id);
        self.looked_up.extend(others.looked_up);
        self.entries.extend(others.entries);
    }

    /// With what the run creates.
    #[must_use]
    pub fn with(&self, created: &Created) -> Self {
        Self { created: created.clone(), ..self.clone() }
    }

    /// Takes in the ids of the entries of a section, by name; of those that the run creates, their
    /// addresses.
    pub fn insert_entries(&mut self, section: &str, entries: Result<BTreeMap<String, Id>, Cause>) {
        self.entries.insert(section.to_owned(), entries);
    }

    /// The ids of the entries of a section, if somebody asked for them.
    pub fn entries(&self, section: &str) -> Option<&Result<BTreeMap<String, Id>, Cause>> {
        self.entries.get(section)
    }

    /// With the user whom the token belongs to.
    #[must_use]
    pub fn for_caller(self, id: u64) -> Self {
        Self { caller: Some(id), ..self }
    }

    /// The user whom the token belongs to, if it is known.
    pub const fn caller(&self) -> Option<u64> {
        self.caller
    }

    /// The id of what is called `name`, if there is or will be such a thing.
    pub fn id(&self, named: Named, name: &str) -> Option<Id> {
        let found = self.found.get(&(named, name.to_lowercase()))?.map(Id::Known);
        found.or_else(|| self.created.id(named.scope()?, name))
    }

    /// The id of what is called `name`, if it is there.
    pub fn known_id(&self, named: Named, name: &str) -> Option<u64> {
        self.id(named, name)?.known()
    }

    /// What the thing with `id` is called, if an entry named it or it was looked up.
    pub(super) fn name(&self, named: Named, id: u64) -> Option<&str> {
        let key = (named, id);
        self.looked_up.get(&key).or_else(|| self.by_id.get(&key)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_what_is_created_is_known_once_it_is_there() {
        let mut created: Created = [(Scope::Group, Arc::from("Acme/Team"))].into_iter().collect();
        assert_eq!((created.known_id("acme/team"), created.known_id("other")), (None, None));
        created.insert("other", 4);
        created.insert("acme/TEAM", 7);
        assert_eq!((created.known_id("acme/team"), created.known_id("other")), (Some(7), None));
        assert_eq!(created.id(Scope::Group, "acme/team"), Some(Id::Known(7)));
        assert_eq!(created.id(Scope::Project, "acme/team"), None);
    }
}
