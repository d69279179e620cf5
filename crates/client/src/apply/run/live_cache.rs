//! The live state of a container while its steps run: the last reading, updated by the responses to
//! writes.
//!
//! An object that a response shows is not read again. Everything else that a write may have
//! changed, such as the list after a delete, becomes stale, and is read again before it is used.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    address::Address,
    catalogue,
    desired::{Container, DeclaredSection},
    diff::{Action, Step},
    field::{Readback, Scope},
    kind::{FieldSelection, ReadSource, Section, Target},
    live::{LiveContainer, LiveEntries, Presence},
    observe::{entries_in_object, paths_are_equal},
    operation::{Request, Write},
    planted::Bug,
    value::{Json, Object},
};

/// A live state that is updated after each write.
pub(super) struct LiveCache {
    pub(super) live: LiveContainer,
    /// The sections that must be read again.
    pub(super) stale_sections: BTreeSet<&'static str>,
    /// The entries that are up to date even if their section is stale, because the response to
    /// their own step contained these entries.
    confirmed_entries: BTreeSet<Address>,
    /// The ids of entries that this run created, from the responses.
    created_ids: BTreeMap<Address, u64>,
    /// The sections that were written to since the last reading began.
    written_sections: BTreeSet<&'static str>,
    /// When the last reading began, on the client's clock.
    reading_started_at: Duration,
    /// When this run created the container, on the client's clock. Nobody else is expected to
    /// change the container after that.
    pub(super) created_at: Option<Duration>,
    /// True if the container's own object must be read again.
    pub(super) is_object_stale: bool,
    /// True if no response since the last write contained the group's path. Writes address the group
    /// by id, so they succeed even if another group has taken the path.
    is_path_stale: bool,
}

impl LiveCache {
    pub(super) const fn new(live: LiveContainer) -> Self {
        Self {
            live,
            stale_sections: BTreeSet::new(),
            confirmed_entries: BTreeSet::new(),
            created_ids: BTreeMap::new(),
            written_sections: BTreeSet::new(),
            reading_started_at: Duration::ZERO,
            created_at: None,
            is_object_stale: false,
            is_path_stale: false,
        }
    }

    /// Starts a reading at `now`, and returns the live state that the reading updates.
    pub(super) fn begin_reading(&mut self, now: Duration) -> LiveContainer {
        self.written_sections.clear();
        self.reading_started_at = now;
        self.live.clone()
    }

    /// Merges a reading of `read_sections` into the cache. The reading may also contain other
    /// parts, such as the container's own object. A section that was written during the reading
    /// keeps its cached state, because the reading may be older than the write. If the reading
    /// contains such a section, the section is marked as stale.
    pub(super) fn merge_reading(
        &mut self,
        mut live: LiveContainer,
        read_sections: &BTreeSet<&'static str>,
    ) {
        let was_present = matches!(self.live.presence, Presence::Existing(..));
        let is_whole_container = self.is_object_stale || !was_present;
        // The reading may lack the container's own object.
        let shows_object =
            is_whole_container || live.read_times.object.start >= self.reading_started_at;
        if was_present && matches!(live.presence, Presence::Existing(..)) {
            let mut old_sections = std::mem::take(&mut self.live.sections);
            old_sections.retain(|name, _| {
                self.written_sections.contains(name) || (!shows_object && is_in_object(name))
            });
            live.sections.extend(old_sections);
            if !shows_object {
                live.presence = self.live.presence.clone();
            }
        }
        self.live = live;
        self.is_object_stale = false;
        self.is_path_stale &= !self.written_sections.is_empty();
        self.stale_sections.retain(|section| !read_sections.contains(section));
        self.stale_sections.extend(self.written_sections.iter().copied().filter(|name| {
            is_whole_container
                || read_sections.contains(name)
                || (shows_object && is_in_object(name))
        }));
    }

    /// True if the state of the object at `address` is newer than every write to the object.
    pub(super) fn is_up_to_date(&self, address: &Address) -> bool {
        let is_stale = address.section.is_some_and(|section| self.stale_sections.contains(section));
        !self.is_object_stale && (!is_stale || self.confirmed_entries.contains(address))
    }

    /// True if nothing must be read again. If the response to a write does not contain the group,
    /// the group must be read again, because another group may have taken its path. This rule does
    /// not apply to projects, because the service limits reads of projects most strictly.
    pub(super) fn is_fully_up_to_date(&self) -> bool {
        self.stale_sections.is_empty() && !self.is_object_stale && !self.is_path_stale
    }

    /// Marks the section of `step` as stale, or the whole container if the step has no section.
    pub(super) fn mark_stale(&mut self, step: &Step, container: &Container) {
        self.confirmed_entries.remove(&step.address);
        match step.address.section {
            Some(section) => drop(self.stale_sections.insert(section)),
            None => self.mark_all_stale(container),
        }
    }

    /// Marks the whole container as stale.
    fn mark_all_stale(&mut self, container: &Container) {
        self.stale_sections.extend(container.section_names());
        self.is_object_stale = true;
    }

    /// The id of the entry at `address`, from the last reading or from the response to its
    /// creation.
    pub(super) fn find_entry_id(&self, container: &Container, address: &str) -> Option<u64> {
        let prefix = container.address();
        let live_id = self.live.sections.iter().find_map(|(name, live_entries)| {
            let section = catalogue::find_section(container.scope, name)?;
            let mut entries = live_entries.entries().ok()?.iter();
            section.referenced_id(entries.find(|entry| {
                let entry_name = section.entry_name(entry.fields.raw());
                prefix.with_section(section.section).with_entry(entry_name).to_string() == address
            })?)
        });
        live_id.or_else(|| {
            let mut created_ids = self.created_ids.iter();
            created_ids
                .find(|(created_address, _)| created_address.to_string() == address)
                .map(|(_, id)| *id)
        })
    }

    /// Records the response to a call of `step` in the container with this `id`.
    pub(super) fn record_response(
        &mut self,
        container: &Container,
        step: &Step,
        request: &Request<Write>,
        response: &Json,
        id: Option<u64>,
        now: Duration,
    ) {
        let body = response.as_object().filter(|_| request.operation.shows_object);
        self.confirmed_entries.remove(&step.address);
        self.written_sections.extend(step.address.section);
        self.is_path_stale = container.scope == Scope::Group;
        let Some(section) = step.address.section.and_then(|name| container.section(name)) else {
            return self.record_container_object(container, body, id, Some(now));
        };
        let section_name = section.kind.section;
        if let (Action::Create, Some(id)) = (step.action, response.get("id").and_then(Json::as_u64))
        {
            self.created_ids.insert(step.address.clone(), id);
        }
        if step.action == Action::Delete {
            // The service also removed the child entries of the deleted entry.
            let child_sections = container.sections.iter().filter(|other| {
                other.kind.scoped_kind.parent.is_some_and(|parent| parent.section == section_name)
            });
            self.stale_sections.extend(child_sections.map(|other| other.kind.section));
        }
        // Responses do not contain the parent of an entry.
        let has_no_parent = section.kind.scoped_kind.parent.is_none();
        let declared_names = section.field_names().collect();
        let shown_body = body
            .filter(|body| has_no_parent && shows_declared_fields(section, body, &declared_names));
        match (section.kind.scoped_kind.read_source, shown_body) {
            (ReadSource::Object, _) => self.record_container_object(container, body, id, None),
            (ReadSource::List(_), Some(body)) => {
                let entry = section.kind.read(body, FieldSelection::Only(&declared_names));
                match self.live.sections.get_mut(section_name).and_then(LiveEntries::entries_mut) {
                    Some(entries) => {
                        entries.retain(|other| {
                            other.address_values != entry.address_values
                                && !Bug::TreatResponseAsWholeList.is_planted()
                        });
                        entries.push(entry);
                        self.confirmed_entries.insert(step.address.clone());
                    }
                    None => drop(self.stale_sections.insert(section_name)),
                }
            }
            (ReadSource::Optional(_), Some(body)) => {
                let entry = section.kind.read(body, FieldSelection::Only(&declared_names));
                self.live.sections.insert(section_name, LiveEntries::Single(Some(Box::new(entry))));
            }
            _ if Bug::TrustIncompleteResponses.is_planted() => {}
            _ => drop(self.stale_sections.insert(section_name)),
        }
    }

    /// Records the container's own object from the `body` of a response. If the object does not
    /// have this `id`, marks the whole container as stale. `created_at` is the time of a write that
    /// may have created the container; `None` for any other write.
    fn record_container_object(
        &mut self,
        container: &Container,
        body: Option<&Object>,
        id: Option<u64>,
        created_at: Option<Duration>,
    ) {
        let container_lookup = catalogue::container_lookup(container.scope);
        let body = body.filter(|body| {
            let shown_id = body.get("id").and_then(Json::as_u64);
            paths_are_equal(container_lookup.read_path(body), &container.path)
                && shown_id.is_some_and(|shown_id| id.is_none_or(|id| id == shown_id))
        });
        let Some(body) = body else {
            self.created_at = self.created_at.or(created_at);
            self.mark_all_stale(container);
            return;
        };
        let mut facts = container.read_facts(body);
        let old_level = match &self.live.presence {
            Presence::Existing(_, old_facts) => Some(old_facts.caller_level),
            _ => None,
        };
        let is_new = old_level.is_none();
        // A response to a write may lack the caller's access level: keep the old level. For a new
        // container, use at least the level that its creator gets.
        facts.caller_level = match old_level {
            Some(level) => facts.caller_level.or(level),
            None => facts.caller_level.max(Some(container_lookup.creator_level)),
        };
        let target =
            Target { id: facts.id, ..Target::new(container.scope, container.path.clone()) };
        self.live.presence = Presence::Existing(target, facts);
        self.created_at = self.created_at.or(created_at.filter(|_| is_new));
        self.is_path_stale = false;
        self.record_object_sections(container, body, is_new);
    }

    /// Records the sections that the container's own object shows. A new container has no entries of
    /// other sections.
    fn record_object_sections(&mut self, container: &Container, body: &Object, is_new: bool) {
        for section in &container.sections {
            let section_name = section.kind.section;
            let entries = match section.kind.scoped_kind.read_source {
                ReadSource::Object => entries_in_object(section, body).filter(|_| {
                    shows_declared_fields(section, body, &section.field_names().collect())
                }),
                // Skip the section: another step may have changed its field after the service built
                // this response.
                ReadSource::ListField(_) | ReadSource::ObjectField { .. } if !is_new => continue,
                ReadSource::ListField(_) | ReadSource::ObjectField { .. } => {
                    entries_in_object(section, body)
                }
                ReadSource::List(_) | ReadSource::Optional(_) if is_new => {
                    Some(LiveEntries::NoContainer)
                }
                ReadSource::List(_) | ReadSource::Optional(_) | ReadSource::Container => continue,
            };
            match entries {
                Some(shown_entries) => {
                    self.live.sections.insert(section_name, shown_entries);
                    self.stale_sections.remove(section_name);
                }
                None => drop(self.stale_sections.insert(section_name)),
            }
        }
    }
}

/// True if the section `name` is part of the own object of groups or projects.
fn is_in_object(name: &str) -> bool {
    let mut sections =
        Scope::ALL.into_iter().filter_map(|scope| catalogue::find_section(scope, name));
    sections.any(Section::is_part_of_container)
}

/// True if a response can replace a reading. Its `body` must contain the identifying keys, and each
/// declared field in `names` that a reading would contain.
fn shows_declared_fields(section: &DeclaredSection, body: &Object, names: &BTreeSet<&str>) -> bool {
    let entry_keys = section.kind.scoped_kind.entry_keys;
    let has_keys = match section.kind.scoped_kind.read_source {
        ReadSource::List(_) => entry_keys
            .identity_keys
            .iter()
            .chain(entry_keys.other_keys)
            .all(|key| body.contains_key(*key)),
        _ => true,
    };
    has_keys
        && section.kind.mistyped_key(body).is_none()
        && names.iter().all(|name| {
            // A field below `extra` has no specification.
            let Some(spec) = section.kind.spec(name) else {
                return body.contains_key(*name);
            };
            spec.field.read == Readback::IfPresent
                || spec.field.live_name().is_none_or(|live_name| body.contains_key(live_name))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        desired::{
            Unlisted,
            testing::{self, shop},
        },
        kind::{ContainerFacts, LiveEntry},
        operation::{
            GROUP_UPDATE, GROUP_VARIABLE_CREATE, Op, PROJECT_UPDATE, PROTECTED_BRANCH_CREATE,
            SCHEDULE_DELETE, SCHEDULE_UPDATE, SHARE_DELETE, VARIABLE_CREATE,
        },
    };

    fn step(container: &Container, section: &'static str) -> Step {
        let address = container.address().with_section(section);
        Step::new(
            container.scope,
            address,
            Action::Update,
            container.origin.clone(),
            Vec::new(),
            Vec::new(),
        )
    }

    /// A reading that began before the response to a create lacks the new entry, whose id another
    /// step may need.
    #[test]
    fn a_response_replaces_a_read_that_began_earlier() {
        let container =
            shop(&json!({"protected_branches": [{"name": "v*"}], "labels": []}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let live_without_entries = || {
            let sections = ["protected_branches", "labels"]
                .map(|name| (name, LiveEntries::Updated(Vec::new())));
            let live = LiveContainer::with_presence(
                Presence::Existing(target.clone(), ContainerFacts::default()),
                Duration::ZERO,
            );
            LiveContainer { sections: sections.into_iter().collect(), ..live }
        };
        let mut cache = LiveCache::new(live_without_entries());
        cache.begin_reading(Duration::ZERO);
        let create_request = PROTECTED_BRANCH_CREATE.request().with_argument("id", 1);
        let response =
            json!({"id": 5, "name": "v*", "push_access_levels": [], "merge_access_levels": []});
        let branch_step = step(&container, "protected_branches");
        let record_creation = |cache: &mut LiveCache| {
            let now = Duration::ZERO;
            cache.record_response(
                &container,
                &branch_step,
                &create_request,
                &response,
                Some(1),
                now,
            );
        };
        record_creation(&mut cache);
        // A reading of only the labels does not change the branches.
        cache.merge_reading(live_without_entries(), &BTreeSet::from(["labels"]));
        assert_eq!(cache.live.sections["protected_branches"].entries().unwrap().len(), 1);
        assert!(cache.stale_sections.is_empty());
        cache.begin_reading(Duration::ZERO);
        record_creation(&mut cache);
        cache.merge_reading(
            live_without_entries(),
            &BTreeSet::from(["protected_branches", "labels"]),
        );
        let kept_entries = cache.live.sections["protected_branches"].entries().unwrap();
        assert_eq!(kept_entries.len(), 1);
        assert_eq!(cache.stale_sections, BTreeSet::from(["protected_branches"]));
        // The next reading begins after the response.
        cache.begin_reading(Duration::ZERO);
        cache.merge_reading(live_without_entries(), &BTreeSet::from(["protected_branches"]));
        assert!(cache.live.sections["protected_branches"].entries().unwrap().is_empty());
        assert!(cache.stale_sections.is_empty());
    }

    /// A reading without the container's own object does not make an update of the object stale.
    #[test]
    fn a_read_of_a_list_keeps_an_edit_of_the_object() {
        let sections = json!({"settings": {"description": "new"}, "labels": []});
        let container = shop(&sections, Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let live_at = |seconds: u64| {
            let presence = Presence::Existing(target.clone(), ContainerFacts::default());
            LiveContainer::with_presence(presence, Duration::from_secs(seconds))
        };
        let response = json!({
            "id": 1, "path_with_namespace": &*container.path, "description": "new", "name": "Shop",
        });
        for (object_read_at, expected_stale) in [(0, &[][..]), (2, &["settings"])] {
            let mut cache = LiveCache::new(live_at(0));
            cache.begin_reading(Duration::from_secs(1));
            let (step, edit) =
                (step(&container, "settings"), PROJECT_UPDATE.request().with_argument("id", 1));
            cache.record_response(&container, &step, &edit, &response, Some(1), Duration::ZERO);
            cache.merge_reading(live_at(object_read_at), &BTreeSet::from(["labels"]));
            assert_eq!(cache.stale_sections.iter().copied().collect::<Vec<_>>(), expected_stale);
            assert!(cache.live.sections["settings"].entries().is_ok());
            let Presence::Existing(_, facts) = &cache.live.presence else { panic!("it is there") };
            assert_eq!(facts.name.is_some(), object_read_at == 0, "the latest answer");
        }
    }

    /// Without the role, no list below the container would count as complete.
    #[test]
    fn a_response_without_the_callers_role_keeps_the_old_role() {
        let container = shop(&json!({"settings": {"description": "new"}}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let facts =
            ContainerFacts { id: Some(1), caller_level: Some(40), ..ContainerFacts::default() };
        let mut cache = LiveCache::new(LiveContainer::with_presence(
            Presence::Existing(target, facts),
            Duration::ZERO,
        ));
        let edit_request = PROJECT_UPDATE.request().with_argument("id", 1);
        let response =
            json!({"id": 1, "path_with_namespace": &*container.path, "description": "new"});
        let settings_step = step(&container, "settings");
        cache.record_response(
            &container,
            &settings_step,
            &edit_request,
            &response,
            Some(1),
            Duration::ZERO,
        );
        let Presence::Existing(_, facts) = &cache.live.presence else { panic!("it is there") };
        assert_eq!(facts.caller_level, Some(40));
    }

    /// Such a response shows that the container was renamed meanwhile, or that another container
    /// has its path.
    #[test]
    fn a_response_with_another_path_or_id_is_not_recorded() {
        let container = shop(&json!({"settings": {"description": "new"}}), Unlisted::Report);
        for (id, path, is_recorded) in
            [(1, "acme/shop", true), (1, "acme/other", false), (2, "acme/shop", false)]
        {
            let target =
                Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
            let presence = Presence::Existing(target, ContainerFacts::default());
            let mut cache = LiveCache::new(LiveContainer::with_presence(presence, Duration::ZERO));
            let edit_request = PROJECT_UPDATE.request().with_argument("id", 1);
            let response = json!({"id": id, "path_with_namespace": path, "description": "new"});
            let settings_step = step(&container, "settings");
            cache.record_response(
                &container,
                &settings_step,
                &edit_request,
                &response,
                Some(1),
                Duration::ZERO,
            );
            assert_eq!(cache.live.sections.contains_key("settings"), is_recorded, "{id} {path}");
        }
    }

    /// When the response to a write by id arrives, another group may have the path.
    #[test]
    fn a_group_is_read_again_after_writes_that_do_not_show_it() {
        let new_variable = || json!({"key": "A", "value": "x", "environment_scope": "*"});
        for scope in Scope::ALL {
            let sections =
                json!({"variables": [new_variable()], "settings": {"description": "new"}});
            let container = testing::container(scope, "acme", &sections, Unlisted::Report);
            let target = Target { id: Some(1), ..Target::new(scope, container.path.clone()) };
            let make_live = || {
                let live = LiveContainer::with_presence(
                    Presence::Existing(target.clone(), ContainerFacts::default()),
                    Duration::ZERO,
                );
                let variables = LiveEntries::Updated(Vec::new());
                LiveContainer { sections: BTreeMap::from([("variables", variables)]), ..live }
            };
            let lookup = catalogue::container_lookup(scope);
            let (variable_op, edit_op) = match scope {
                Scope::Group => (GROUP_VARIABLE_CREATE, GROUP_UPDATE),
                Scope::Project => (VARIABLE_CREATE, PROJECT_UPDATE),
            };
            let mut cache = LiveCache::new(make_live());
            assert!(cache.is_fully_up_to_date());
            let record_response =
                |cache: &mut LiveCache, section, op: Op<Write>, response: &Json| {
                    let (step, request) =
                        (step(&container, section), op.request().with_argument("id", 1));
                    cache.record_response(
                        &container,
                        &step,
                        &request,
                        response,
                        Some(1),
                        Duration::ZERO,
                    );
                };
            record_response(&mut cache, "variables", variable_op, &new_variable());
            assert!(cache.stale_sections.is_empty(), "the answer shows it");
            assert_eq!(cache.is_fully_up_to_date(), scope == Scope::Project);
            // A reading that began before that response proves nothing.
            cache.merge_reading(make_live(), &BTreeSet::from(["variables"]));
            assert!(!cache.is_fully_up_to_date());
            cache.begin_reading(Duration::ZERO);
            cache.merge_reading(make_live(), &BTreeSet::from(["variables"]));
            assert!(cache.is_fully_up_to_date());
            // The response to an edit of the group itself shows its path.
            record_response(&mut cache, "variables", variable_op, &new_variable());
            let response = json!({"id": 1, lookup.path_field: "acme", "description": "new"});
            record_response(&mut cache, "settings", edit_op, &response);
            assert!(cache.is_fully_up_to_date(), "{scope:?} {:?}", cache.stale_sections);
        }
    }

    /// Removing a schedule also removes its variables.
    #[test]
    fn children_of_a_removed_entry_are_read_again() {
        let sections = json!({"pipeline_schedules": [], "pipeline_schedule_variables": []});
        let container = shop(&sections, Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        for (action, op, expected_stale) in [
            (Action::Update, SCHEDULE_UPDATE, &["pipeline_schedules"][..]),
            (
                Action::Delete,
                SCHEDULE_DELETE,
                &["pipeline_schedule_variables", "pipeline_schedules"],
            ),
        ] {
            let presence = Presence::Existing(target.clone(), ContainerFacts::default());
            let mut cache = LiveCache::new(LiveContainer::with_presence(presence, Duration::ZERO));
            let step = Step { action, ..step(&container, "pipeline_schedules") };
            let request =
                op.request().with_argument("id", 1).with_argument("pipeline_schedule_id", 4);
            cache.record_response(
                &container,
                &step,
                &request,
                &Json::Null,
                Some(1),
                Duration::ZERO,
            );
            assert_eq!(
                cache.stale_sections.iter().copied().collect::<Vec<_>>(),
                expected_stale,
                "{action:?}"
            );
        }
    }

    /// The response to a write shows one entry. All other entries stay known.
    #[test]
    fn a_response_adds_or_replaces_its_own_entry() {
        let container = shop(&json!({"variables": []}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let presence = Presence::Existing(target, ContainerFacts::default());
        let no_entries = LiveEntries::Updated(Vec::new());
        let sections = BTreeMap::from([("variables", no_entries)]);
        let mut cache = LiveCache::new(LiveContainer {
            sections,
            ..LiveContainer::with_presence(presence, Duration::ZERO)
        });
        for (key, value, expected) in [
            ("A", "x", vec!["A x"]),
            ("B", "x", vec!["A x", "B x"]),
            ("A", "y", vec!["B x", "A y"]),
        ] {
            let response = json!({"key": key, "value": value, "environment_scope": "*"});
            let (step, request) = (step(&container, "variables"), VARIABLE_CREATE.request());
            cache.record_response(&container, &step, &request, &response, Some(1), Duration::ZERO);
            let field_text = |entry: &LiveEntry, name: &str| {
                entry.fields.raw()[name].as_str().unwrap().to_owned()
            };
            let entries = cache.live.sections["variables"].entries().unwrap().iter();
            let actual: Vec<_> = entries
                .map(|entry| [field_text(entry, "key"), field_text(entry, "value")].join(" "))
                .collect();
            assert_eq!(actual, expected);
        }
    }

    /// Older responses are dropped if the container no longer exists.
    #[test]
    fn a_read_that_does_not_find_the_container_keeps_no_responses() {
        let container = shop(&json!({"variables": []}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let presence = Presence::Existing(target.clone(), ContainerFacts::default());
        let no_entries = LiveEntries::Updated(Vec::new());
        let sections = BTreeMap::from([("variables", no_entries)]);
        let live =
            LiveContainer { sections, ..LiveContainer::with_presence(presence, Duration::ZERO) };
        for (presence, expected) in [(live.presence.clone(), 1), (Presence::Missing(target), 0)] {
            let mut cache = LiveCache::new(live.clone());
            cache.begin_reading(Duration::ZERO);
            let request = VARIABLE_CREATE.request().with_argument("id", 1);
            let variables_step = step(&container, "variables");
            cache.record_response(
                &container,
                &variables_step,
                &request,
                &Json::Null,
                Some(1),
                Duration::ZERO,
            );
            cache.merge_reading(
                LiveContainer::with_presence(presence, Duration::ZERO),
                &BTreeSet::from(["variables"]),
            );
            assert_eq!(cache.live.sections.len(), expected);
        }
    }

    /// The response to an edit may be older than the result of another step.
    #[test]
    fn the_result_of_a_removal_is_not_taken_from_another_response() {
        let container =
            shop(&json!({"settings": {"description": "new"}, "shares": []}), Unlisted::Delete);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let mut cache = LiveCache::new(LiveContainer::with_presence(
            Presence::Existing(target, ContainerFacts::default()),
            Duration::ZERO,
        ));
        let removal_request =
            SHARE_DELETE.request().with_argument("id", 1).with_argument("group_id", 4);
        let shares_step = step(&container, "shares");
        cache.record_response(
            &container,
            &shares_step,
            &removal_request,
            &Json::Null,
            Some(1),
            Duration::ZERO,
        );
        assert_eq!(cache.stale_sections, BTreeSet::from(["shares"]));
        let edit = PROJECT_UPDATE.request().with_argument("id", 1);
        let share = json!({"group_id": 4, "group_full_path": "acme/x", "group_access_level": 30});
        let response = json!({
            "id": 1, "path_with_namespace": &*container.path, "description": "new",
            "shared_with_groups": [share],
        });
        let settings_step = step(&container, "settings");
        cache.record_response(
            &container,
            &settings_step,
            &edit,
            &response,
            Some(1),
            Duration::ZERO,
        );
        assert_eq!(cache.stale_sections, BTreeSet::from(["shares"]));
        assert!(matches!(cache.live.sections["settings"], LiveEntries::Single(Some(_))));
    }
}
