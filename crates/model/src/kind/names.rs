//! Names in manifests and their ids. The ids are looked up, or become known when the run creates
//! the objects.

use std::{collections::BTreeMap, sync::Arc};

use super::{EntryFault, NoCalls, PlannedCall, fault_text};
use crate::{
    cause::Cause,
    field::{NamedObject, Scope},
    operation::{id_placeholder, placeholder_path},
    text,
    value::Json,
};

/// The ids of users, groups, projects and entries that manifests name, by lower-case name.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NameIndex {
    /// Ids by name. A name has no ids if the service has no such object, and several ids if the
    /// name is ambiguous.
    ids_by_name: BTreeMap<(NamedObject, String), Vec<u64>>,
    /// The reverse of `ids_by_name`; the names are in lower case.
    names_by_id: BTreeMap<(NamedObject, u64), String>,
    /// Names that were looked up by id.
    looked_up_names: BTreeMap<(NamedObject, u64), String>,
    /// The ids of entries in other sections of the same container, by section and name, or the
    /// reason why a section could not be read.
    entry_ids: BTreeMap<String, Result<EntryIds, Cause>>,
    /// The levels of access to which custom roles belong, by the id of the role.
    role_levels: BTreeMap<u64, u8>,
    /// The calls that must precede a change below a parent, by the parent's section and id.
    preparatory_calls: BTreeMap<(String, u64), Vec<PlannedCall>>,
    /// Groups and projects that the run creates.
    created_containers: CreatedContainers,
    /// The id of the token's user, if known.
    caller_id: Option<u64>,
    /// For each group that was looked up, by its id: false if the token's user is certainly not in
    /// the group.
    caller_groups: BTreeMap<u64, bool>,
}

/// Groups and projects that the run creates if they are missing and that other declarations may
/// name, by lower-case path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreatedContainers(Arc<BTreeMap<String, PendingContainer>>);

/// A group or project that a run creates.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PendingContainer {
    scope: Scope,
    path: Arc<str>,
    id: Option<u64>,
}

/// The ids of the entries of a section, by name; `None` if several entries have the name.
pub type EntryIds = BTreeMap<String, Option<Id>>;

/// An id that is known now, or that the run will know later.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    /// A known id.
    Known(u64),
    /// The id of the container at this path, or of the entry with this address, which the run
    /// creates.
    Pending(Arc<str>),
}

impl Id {
    /// The id that a request sends as `value`.
    pub fn from_json(value: &Json) -> Option<Self> {
        match value.as_u64() {
            Some(id) => Some(Self::Known(id)),
            None => placeholder_path(value).map(|path| Self::Pending(path.into())),
        }
    }

    /// The value in a request.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Known(id) => (*id).into(),
            Self::Pending(path) => id_placeholder(path),
        }
    }

    /// The number, if known.
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Known(id) => Some(*id),
            Self::Pending(_) => None,
        }
    }
}

impl CreatedContainers {
    /// The id of the group or project at `path`, if the run creates or created it.
    pub fn id(&self, scope: Scope, path: &str) -> Option<Id> {
        let creation =
            self.0.get(&path.to_lowercase()).filter(|creation| creation.scope == scope)?;
        Some(creation.id.map_or_else(|| Id::Pending(creation.path.clone()), Id::Known))
    }

    /// The id of the container at `path`, if the run created it.
    pub fn numeric_id(&self, path: &str) -> Option<u64> {
        self.0.get(&path.to_lowercase())?.id
    }

    /// The path of the group or project with `id`, if the run created it.
    fn path(&self, scope: Scope, id: u64) -> Option<&str> {
        let mut creations = self.0.values();
        Some(&*creations.find(|creation| creation.scope == scope && creation.id == Some(id))?.path)
    }

    /// Stores the id of the container that the run created at `path`. A path that no declaration
    /// names is ignored.
    pub fn insert(&mut self, path: &str, id: u64) {
        let path = path.to_lowercase();
        if self.0.contains_key(&path)
            && let Some(creation) = Arc::make_mut(&mut self.0).get_mut(&path)
        {
            creation.id = Some(id);
        }
    }
}

impl FromIterator<(Scope, Arc<str>)> for CreatedContainers {
    fn from_iter<I: IntoIterator<Item = (Scope, Arc<str>)>>(created_paths: I) -> Self {
        let pending_pairs = created_paths
            .into_iter()
            .map(|(scope, path)| (path.to_lowercase(), PendingContainer { scope, path, id: None }));
        Self(Arc::new(pending_pairs.collect()))
    }
}

/// The stored form of a name. Only the names of roles are case-sensitive.
fn lookup_key(object_type: NamedObject, name: &str) -> String {
    match object_type {
        NamedObject::Role => name.to_owned(),
        _ => name.to_lowercase(),
    }
}

impl NameIndex {
    /// Stores the ids of the objects called `name`.
    pub fn insert(
        &mut self,
        object_type: NamedObject,
        name: &str,
        ids: impl IntoIterator<Item = u64>,
    ) {
        let (name, ids) = (lookup_key(object_type, name), Vec::from_iter(ids));
        if let [id] = ids[..] {
            self.names_by_id.insert((object_type, id), name.clone());
        }
        self.ids_by_name.insert((object_type, name), ids);
    }

    /// Stores the level of access to which the custom role with `id` belongs.
    pub fn insert_role_level(&mut self, id: u64, level: u8) {
        self.role_levels.insert(id, level);
    }

    /// The level of access to which the custom role `name` belongs, if it was looked up.
    pub fn role_level(&self, name: &str) -> Option<u8> {
        self.role_levels.get(&self.numeric_id(NamedObject::Role, name)?).copied()
    }

    /// Stores the name of the object with `id`.
    pub fn insert_reverse_lookup(&mut self, object_type: NamedObject, id: u64, name: &str) {
        self.looked_up_names.insert((object_type, id), name.to_owned());
    }

    /// Makes the names that were looked up by id available for lookups by name.
    pub fn with_reverse_lookups(mut self) -> Self {
        for ((object_type, id), name) in &self.looked_up_names {
            self.ids_by_name.insert((*object_type, lookup_key(*object_type, name)), vec![*id]);
        }
        self
    }

    /// Adds the lookup results of `other`.
    pub fn extend(&mut self, other: Self) {
        self.ids_by_name.extend(other.ids_by_name);
        self.names_by_id.extend(other.names_by_id);
        self.looked_up_names.extend(other.looked_up_names);
        self.role_levels.extend(other.role_levels);
        self.entry_ids.extend(other.entry_ids);
        self.preparatory_calls.extend(other.preparatory_calls);
    }

    /// Returns a copy with the groups and projects that the run creates.
    pub fn with_created_containers(&self, created_containers: &CreatedContainers) -> Self {
        Self { created_containers: created_containers.clone(), ..self.clone() }
    }

    /// Stores the ids of the entries of a section, by name. The id of an entry that the run will create is
    /// [`Id::Pending`] with its address.
    pub fn insert_entry_ids(&mut self, section: &str, entries: Result<EntryIds, Cause>) {
        self.entry_ids.insert(section.to_owned(), entries);
    }

    /// The ids of the entries of a section, if they were requested.
    pub fn entry_ids(&self, section: &str) -> Option<&Result<EntryIds, Cause>> {
        self.entry_ids.get(section)
    }

    /// The name of the entry of a section whose id is `sent_id` in requests.
    pub(super) fn entry_name(&self, section: &str, sent_id: &Json) -> Option<&str> {
        let ids = self.entry_ids(section)?.as_ref().ok()?.iter();
        let mut ids = ids.filter_map(|(name, id)| Some((name, id.as_ref()?)));
        ids.find(|(_, id)| id.to_json() == *sent_id).map(|(name, _)| name.as_str())
    }

    /// Stores the calls that must precede a change below the entry of `section` with this `id`.
    pub fn insert_preparatory_calls(&mut self, section: &str, id: u64, calls: Vec<PlannedCall>) {
        self.preparatory_calls.insert((section.to_owned(), id), calls);
    }

    /// The calls that must precede a change below the entry of `section` with this `id`.
    pub(super) fn preparatory_calls(&self, section: &str, id: u64) -> Option<&[PlannedCall]> {
        self.preparatory_calls.get(&(section.to_owned(), id)).map(Vec::as_slice)
    }

    /// Sets the id of the token's user.
    pub fn with_caller_id(self, id: u64) -> Self {
        Self { caller_id: Some(id), ..self }
    }

    /// The id of the token's user, if known.
    pub const fn caller_id(&self) -> Option<u64> {
        self.caller_id
    }

    /// Stores whether the token's user is in the group `id`. `is_inside` is also true if this is
    /// unknown.
    pub fn insert_caller_group(&mut self, id: u64, is_inside: bool) {
        self.caller_groups.insert(id, is_inside);
    }

    /// Records that the token's user is in each group for whose path `is_added` returns true,
    /// because this run adds the user to the group.
    pub fn add_caller_groups(&mut self, is_added: impl Fn(&str) -> bool) {
        let ids = self.caller_groups.keys().copied();
        let added_ids = ids.filter(|id| self.name(NamedObject::Group, *id).is_some_and(&is_added));
        let added_ids: Vec<_> = added_ids.collect();
        self.caller_groups.extend(added_ids.into_iter().map(|id| (id, true)));
    }

    /// True if the token's user is in the group `id`, or if that is not known.
    ///
    /// # Errors
    /// If the group was not looked up.
    pub(crate) fn is_caller_in_group(&self, id: u64) -> Result<bool, NoCalls> {
        self.caller_groups.get(&id).copied().ok_or(NoCalls::DependsOnCallerGroup(id))
    }

    /// The ids of the objects called `name` that were looked up.
    fn known_ids(&self, object_type: NamedObject, name: &str) -> &[u64] {
        let key = (object_type, lookup_key(object_type, name));
        self.ids_by_name.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The id of the object called `name`, if the object exists or the run creates it.
    pub fn id(&self, object_type: NamedObject, name: &str) -> Option<Id> {
        match self.known_ids(object_type, name) {
            [id] => Some(Id::Known(*id)),
            _ => self.created_containers.id(object_type.scope()?, name),
        }
    }

    /// The id of the object `name`. `field` is the field that refers to it, for messages.
    ///
    /// # Errors
    /// If the service has no object with this name, or several objects.
    pub fn require_id(
        &self,
        object_type: NamedObject,
        name: &str,
        field: &'static str,
    ) -> Result<Id, NoCalls> {
        self.id(object_type, name).ok_or_else(|| {
            let ids = self.known_ids(object_type, name);
            let fault_texts = match object_type {
                _ if !ids.is_empty() => fault_text::SEVERAL_THINGS,
                NamedObject::User => fault_text::UNKNOWN_USER,
                NamedObject::Group => fault_text::UNKNOWN_GROUP,
                NamedObject::Project => fault_text::UNKNOWN_PROJECT,
                NamedObject::Runner => fault_text::UNKNOWN_RUNNER,
                NamedObject::Role => fault_text::UNKNOWN_ROLE,
            };
            let mut fault = EntryFault::for_field(fault_texts, field);
            if let [first_id, ..] = ids {
                let ids: Vec<_> = ids.iter().map(u64::to_string).collect();
                fault = fault.fill("nouns", &text::plural(object_type.noun()));
                fault = fault.fill("ids", &ids.join(", ")).fill("id", &first_id.to_string());
            }
            fault.fill("name", &text::escape(name)).into()
        })
    }

    /// The id of the entry `name` of another `section`, to which `field` refers.
    ///
    /// # Errors
    /// If the entries of `section` were not looked up, or if not exactly one entry has the name.
    pub(super) fn require_entry_id(
        &self,
        section: &str,
        name: &str,
        field: &'static str,
    ) -> Result<&Id, NoCalls> {
        match self.entry_ids(section) {
            None => Err(NoCalls::DependsOnEntries(section.to_owned())),
            Some(Err(cause)) => Err(cause.clone().into()),
            Some(Ok(ids)) => match ids.get(name) {
                Some(Some(id)) => Ok(id),
                entry_id => {
                    let is_ambiguous = entry_id.is_some();
                    let fault = if is_ambiguous {
                        fault_text::SEVERAL_ENTRIES
                    } else {
                        fault_text::NO_ENTRY
                    };
                    let candidates: Vec<_> = ids.keys().map(String::as_str).collect();
                    let near = match text::likely_candidates(name, &candidates) {
                        names if is_ambiguous || names.is_empty() => String::new(),
                        names => format!("did you mean {}? ", text::alternatives(&names)),
                    };
                    let fault = EntryFault::for_field(fault, field).fill("section", section);
                    let fault = fault.fill("near", &near);
                    Err(fault.fill("name", &text::escape(name)).into())
                }
            },
        }
    }

    /// The id of the object called `name`, if the object exists.
    pub fn numeric_id(&self, object_type: NamedObject, name: &str) -> Option<u64> {
        self.id(object_type, name)?.number()
    }

    /// The name of the object with `id`, if it was looked up by name or by id, or if the run
    /// created the object.
    pub fn name(&self, object_type: NamedObject, id: u64) -> Option<&str> {
        let key = (object_type, id);
        let name = self
            .looked_up_names
            .get(&key)
            .or_else(|| self.names_by_id.get(&key))
            .map(String::as_str);
        name.or_else(|| self.created_containers.path(object_type.scope()?, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_created_group_is_known_after_its_creation() {
        let mut created: CreatedContainers =
            [(Scope::Group, Arc::from("Acme/Team"))].into_iter().collect();
        assert_eq!((created.numeric_id("acme/team"), created.numeric_id("other")), (None, None));
        created.insert("other", 4);
        created.insert("acme/TEAM", 7);
        assert_eq!((created.numeric_id("acme/team"), created.numeric_id("other")), (Some(7), None));
        assert_eq!(created.id(Scope::Group, "acme/team"), Some(Id::Known(7)));
        assert_eq!(created.id(Scope::Project, "acme/team"), None);
        let names = NameIndex::default().with_created_containers(&created);
        assert_eq!(names.name(NamedObject::Group, 7), Some("Acme/Team"));
        assert_eq!(names.id(NamedObject::Group, "acme/team"), Some(Id::Known(7)), "not looked up");
        assert_eq!(
            (names.name(NamedObject::Project, 7), names.name(NamedObject::Group, 4)),
            (None, None)
        );
    }
}
