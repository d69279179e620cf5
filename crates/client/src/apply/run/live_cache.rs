//! The live state of a container while its steps run: the last reading, updated by the answers to
//! writes.
//!
//! An object in an answer need not be read again. Everything else that a write may have changed,
//! such as the list after a removal, becomes stale and is read again before it is used.

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
    live::{Live, LiveEntries, Presence},
    observe::{entries_in_object, is_same_path},
    operation::{Request, Write},
    planted::Bug,
    value::{Json, Object},
};

/// A live state that is updated after each write.
pub(super) struct LiveCache {
    pub(super) live: Live,
    /// The sections that must be read again.
    pub(super) stale_sections: BTreeSet<&'static str>,
    /// The entries that were shown by the answers to their own steps.
    shown_entries: BTreeSet<Address>,
    /// The ids of entries that this run created, from the responses.
    created_ids: BTreeMap<Address, u64>,
    /// The sections that were written to since the last reading began.
    written_sections: BTreeSet<&'static str>,
    /// When the last reading began.
    reading_began: Duration,
    /// When this run created the container. After that, only this run and the service itself change its
    /// content.
    pub(super) created_at: Option<Duration>,
    /// True if the path or the properties of the container are uncertain after a write.
    pub(super) is_object_stale: bool,
    /// True if a write by id in a group was answered without the group's path since that was last read.
    is_path_stale: bool,
}

impl LiveCache {
    pub(super) const fn new(live: Live) -> Self {
        Self {
            live,
            stale_sections: BTreeSet::new(),
            shown_entries: BTreeSet::new(),
            created_ids: BTreeMap::new(),
            written_sections: BTreeSet::new(),
            reading_began: Duration::ZERO,
            created_at: None,
            is_object_stale: false,
            is_path_stale: false,
        }
    }

    /// Starts a reading at `now`, and returns the state to read on from.
    pub(super) fn begin_reading(&mut self, now: Duration) -> Live {
        self.written_sections.clear();
        self.reading_began = now;
        self.live.clone()
    }

    /// Merges a reading of the sections in `read`, and of everything else that it shows, such as parts
    /// of the container's own object. Sections that were written during the reading keep the answers to
    /// those writes, because the reading may be older and another step may need their ids. Such a
    /// section must be read again, unless it was not part of the reading.
    pub(super) fn merge_reading(&mut self, mut live: Live, read: &BTreeSet<&'static str>) {
        let existed = matches!(self.live.presence, Presence::Here(..));
        let is_whole_container = self.is_object_stale || !existed;
        // The reading may have left out the container's own object.
        let has_object = is_whole_container || live.times.object.began >= self.reading_began;
        if existed && matches!(live.presence, Presence::Here(..)) {
            let mut old_sections = std::mem::take(&mut self.live.sections);
            old_sections.retain(|name, _| {
                self.written_sections.contains(name) || (!has_object && is_in_object(name))
            });
            live.sections.extend(old_sections);
            if !has_object {
                live.presence = self.live.presence.clone();
            }
        }
        self.live = live;
        self.is_object_stale = false;
        self.is_path_stale &= !self.written_sections.is_empty();
        self.stale_sections.retain(|section| !read.contains(section));
        self.stale_sections.extend(self.written_sections.iter().copied().filter(|name| {
            is_whole_container || read.contains(name) || (has_object && is_in_object(name))
        }));
    }

    /// True if the object at `address` was not written after its state was last received.
    pub(super) fn is_up_to_date(&self, address: &Address) -> bool {
        let is_stale = address.section.is_some_and(|section| self.stale_sections.contains(section));
        !self.is_object_stale && (!is_stale || self.shown_entries.contains(address))
    }

    /// True if nothing must be read again. After a write whose answer does not show the group, the group
    /// is read once more, because another group may have taken its path. Projects are not read again:
    /// those requests have the lowest limit.
    pub(super) fn is_fully_up_to_date(&self) -> bool {
        self.stale_sections.is_empty() && !self.is_object_stale && !self.is_path_stale
    }

    /// Marks the section of `step` as uncertain.
    pub(super) fn mark_stale(&mut self, step: &Step, container: &Container) {
        self.shown_entries.remove(&step.address);
        match step.address.section {
            Some(section) => drop(self.stale_sections.insert(section)),
            None => self.mark_all_stale(container),
        }
    }

    /// Marks the whole container as uncertain.
    fn mark_all_stale(&mut self, container: &Container) {
        self.stale_sections.extend(container.section_names());
        self.is_object_stale = true;
    }

    /// The id of the entry at `address`: as read, or from the response to its creation.
    pub(super) fn id_of(&self, container: &Container, address: &str) -> Option<u64> {
        let prefix = container.address();
        let id_in_live = self.live.sections.iter().find_map(|(name, collection)| {
            let section = catalogue::section(container.scope, name)?;
            let mut entries = collection.entries().ok()?.iter();
            section.id_of(entries.find(|entry| {
                let name = section.name(entry.fields.raw());
                prefix.section(section.section).entry(name).to_string() == address
            })?)
        });
        id_in_live.or_else(|| {
            let mut created = self.created_ids.iter();
            created.find(|(created, _)| created.to_string() == address).map(|(_, id)| *id)
        })
    }

    /// Records the answer to a call of `step` in the container with this `id`.
    pub(super) fn record_response(
        &mut self,
        container: &Container,
        step: &Step,
        request: &Request<Write>,
        answer: &Json,
        id: Option<u64>,
        now: Duration,
    ) {
        let body = answer.as_object().filter(|_| request.operation.shows);
        self.shown_entries.remove(&step.address);
        self.written_sections.extend(step.address.section);
        self.is_path_stale = container.scope == Scope::Group;
        let Some(section) = step.address.section.and_then(|name| container.section(name)) else {
            return self.record_container_object(container, body, id, Some(now));
        };
        let name = section.section.section;
        if let (Action::Create, Some(id)) = (step.action, answer.get("id").and_then(Json::as_u64)) {
            self.created_ids.insert(step.address.clone(), id);
        }
        if step.action == Action::Delete {
            // The entries below it are gone, too.
            let child_sections = container.sections.iter().filter(|other| {
                other.section.scoped_kind.parent.is_some_and(|parent| parent.section == name)
            });
            self.stale_sections.extend(child_sections.map(|other| other.section.section));
        }
        // Responses do not contain the parent.
        let has_no_parent = section.section.scoped_kind.parent.is_none();
        let names = section.names().collect();
        let shown =
            body.filter(|body| has_no_parent && shows_declared_fields(section, body, &names));
        match (section.section.scoped_kind.place, shown) {
            (ReadSource::Object, _) => self.record_container_object(container, body, id, None),
            (ReadSource::List(_), Some(body)) => {
                let entry = section.section.read(body, FieldSelection::Only(&names));
                match self.live.sections.get_mut(name).and_then(LiveEntries::entries_mut) {
                    Some(entries) => {
                        entries.retain(|other| {
                            other.address_values != entry.address_values
                                && !Bug::TakeAnswerForList.is_planted()
                        });
                        entries.push(entry);
                        self.shown_entries.insert(step.address.clone());
                    }
                    None => drop(self.stale_sections.insert(name)),
                }
            }
            (ReadSource::Optional(_), Some(body)) => {
                let entry = section.section.read(body, FieldSelection::Only(&names));
                self.live.sections.insert(name, LiveEntries::One(Some(Box::new(entry))));
            }
            _ if Bug::TrustBareAnswers.is_planted() => {}
            _ => drop(self.stale_sections.insert(name)),
        }
    }

    /// Records the container's own object from an answer, if it has this `id`; else marks everything
    /// as stale. `created_at` is set if the container may be new.
    fn record_container_object(
        &mut self,
        container: &Container,
        body: Option<&Object>,
        id: Option<u64>,
        created_at: Option<Duration>,
    ) {
        let lookup = catalogue::container_lookup(container.scope);
        let body = body.filter(|body| {
            let shown_id = body.get("id").and_then(Json::as_u64);
            is_same_path(lookup.path_in(body), &container.path)
                && shown_id.is_some_and(|shown| id.is_none_or(|id| id == shown))
        });
        let Some(body) = body else {
            self.created_at = self.created_at.or(created_at);
            self.mark_all_stale(container);
            return;
        };
        let mut facts = container.read_facts(body);
        let old_level = match &self.live.presence {
            Presence::Here(_, old_facts) => Some(old_facts.caller_level),
            _ => None,
        };
        let is_new = old_level.is_none();
        // An answer to a write may lack the caller's permissions; a creator has all of them.
        facts.caller_level = match old_level {
            Some(level) => facts.caller_level.or(level),
            None => facts.caller_level.max(Some(lookup.creator_level)),
        };
        let target =
            Target { id: facts.id, ..Target::new(container.scope, container.path.clone()) };
        self.live.presence = Presence::Here(target, facts);
        self.created_at = self.created_at.or(created_at.filter(|_| is_new));
        self.is_path_stale = false;
        for section in &container.sections {
            let name = section.section.section;
            let entries = match section.section.scoped_kind.place {
                ReadSource::Object => entries_in_object(section, body)
                    .filter(|_| shows_declared_fields(section, body, &section.names().collect())),
                // Another step may have written to this part, and this answer may be older.
                ReadSource::ListField(_) | ReadSource::ObjectField { .. } if !is_new => continue,
                ReadSource::ListField(_) | ReadSource::ObjectField { .. } => {
                    entries_in_object(section, body)
                }
                // A new container has no entries.
                ReadSource::List(_) | ReadSource::Optional(_) if is_new => Some(LiveEntries::Fresh),
                ReadSource::List(_) | ReadSource::Optional(_) | ReadSource::Container => continue,
            };
            match entries {
                Some(part) => {
                    self.live.sections.insert(name, part);
                    self.stale_sections.remove(name);
                }
                None => drop(self.stale_sections.insert(name)),
            }
        }
    }
}

/// True if the section `name` is part of the own object of groups or projects.
fn is_in_object(name: &str) -> bool {
    let mut sections = Scope::ALL.into_iter().filter_map(|scope| catalogue::section(scope, name));
    sections.any(Section::is_in_object)
}

/// True if an answer can replace a reading: it has the identity and every declared field (`names`)
/// that the service returns.
fn shows_declared_fields(section: &DeclaredSection, body: &Object, names: &BTreeSet<&str>) -> bool {
    let rows = section.section.scoped_kind.rows;
    let has_keys = match section.section.scoped_kind.place {
        ReadSource::List(_) => {
            rows.keys.iter().chain(rows.other_keys).all(|key| body.contains_key(*key))
        }
        _ => true,
    };
    has_keys
        && section.section.mistyped_key(body).is_none()
        && names.iter().all(|name| {
            // A field below `extra` has no description.
            let Some(spec) = section.section.table().get(name) else {
                return body.contains_key(*name);
            };
            spec.field.read == Readback::IfPresent
                || spec.field.live_name().is_none_or(|live| body.contains_key(live))
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
        kind::{Facts, LiveEntry},
        operation::{
            GROUP_UPDATE, GROUP_VARIABLE_CREATE, Op, PROJECT_UPDATE, PROTECTED_BRANCH_CREATE,
            SCHEDULE_DELETE, SCHEDULE_UPDATE, SHARE_DELETE, VARIABLE_CREATE,
        },
    };

    fn step(container: &Container, section: &'static str) -> Step {
        let address = container.address().section(section);
        Step::new(
            container.scope,
            address,
            Action::Update,
            container.origin.clone(),
            Vec::new(),
            Vec::new(),
        )
    }

    /// A reading that began before the answer to a create does not show the new entry, whose id
    /// another step may wait for.
    #[test]
    fn an_answer_during_a_read_outlasts_the_read() {
        let container =
            shop(&json!({"protected_branches": [{"name": "v*"}], "labels": []}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let read = || {
            let sections = ["protected_branches", "labels"]
                .map(|name| (name, LiveEntries::Written(Vec::new())));
            let live = Live::with_presence(
                Presence::Here(target.clone(), Facts::default()),
                Duration::ZERO,
            );
            Live { sections: sections.into_iter().collect(), ..live }
        };
        let mut cache = LiveCache::new(read());
        cache.begin_reading(Duration::ZERO);
        let create = PROTECTED_BRANCH_CREATE.request().arg("id", 1);
        let answer =
            json!({"id": 5, "name": "v*", "push_access_levels": [], "merge_access_levels": []});
        let branches = step(&container, "protected_branches");
        cache.record_response(&container, &branches, &create, &answer, Some(1), Duration::ZERO);
        // A reading of labels alone says nothing about branches.
        cache.merge_reading(read(), &BTreeSet::from(["labels"]));
        assert_eq!(cache.live.sections["protected_branches"].entries().unwrap().len(), 1);
        assert!(cache.stale_sections.is_empty());
        cache.begin_reading(Duration::ZERO);
        cache.record_response(&container, &branches, &create, &answer, Some(1), Duration::ZERO);
        cache.merge_reading(read(), &BTreeSet::from(["protected_branches", "labels"]));
        let kept = cache.live.sections["protected_branches"].entries().unwrap();
        assert_eq!(kept.len(), 1);
        assert_eq!(cache.stale_sections, BTreeSet::from(["protected_branches"]));
        // The next reading begins after it.
        cache.begin_reading(Duration::ZERO);
        cache.merge_reading(read(), &BTreeSet::from(["protected_branches"]));
        assert!(cache.live.sections["protected_branches"].entries().unwrap().is_empty());
        assert!(cache.stale_sections.is_empty());
    }

    /// A reading without the container's own object does not make an edit of that uncertain.
    #[test]
    fn an_edit_during_a_read_of_a_list_stays_known() {
        let sections = json!({"settings": {"description": "new"}, "labels": []});
        let container = shop(&sections, Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let read = |at: u64| {
            let here = Presence::Here(target.clone(), Facts::default());
            Live::with_presence(here, Duration::from_secs(at))
        };
        let answer = json!({
            "id": 1, "path_with_namespace": &*container.path, "description": "new", "name": "Shop",
        });
        for (object_read_at, stale) in [(0, &[][..]), (2, &["settings"])] {
            let mut cache = LiveCache::new(read(0));
            cache.begin_reading(Duration::from_secs(1));
            let (step, edit) =
                (step(&container, "settings"), PROJECT_UPDATE.request().arg("id", 1));
            cache.record_response(&container, &step, &edit, &answer, Some(1), Duration::ZERO);
            cache.merge_reading(read(object_read_at), &BTreeSet::from(["labels"]));
            assert_eq!(cache.stale_sections.iter().copied().collect::<Vec<_>>(), stale);
            assert!(cache.live.sections["settings"].entries().is_ok());
            let Presence::Here(_, facts) = &cache.live.presence else { panic!("it is there") };
            assert_eq!(facts.name.is_some(), object_read_at == 0, "the latest answer");
        }
    }

    /// Without the role, no list below the container would count as complete.
    #[test]
    fn an_answer_without_the_callers_role_keeps_the_known_one() {
        let container = shop(&json!({"settings": {"description": "new"}}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let facts = Facts { id: Some(1), caller_level: Some(40), ..Facts::default() };
        let mut cache =
            LiveCache::new(Live::with_presence(Presence::Here(target, facts), Duration::ZERO));
        let edit = PROJECT_UPDATE.request().arg("id", 1);
        let answer =
            json!({"id": 1, "path_with_namespace": &*container.path, "description": "new"});
        let settings = step(&container, "settings");
        cache.record_response(&container, &settings, &edit, &answer, Some(1), Duration::ZERO);
        let Presence::Here(_, facts) = &cache.live.presence else { panic!("it is there") };
        assert_eq!(facts.caller_level, Some(40));
    }

    /// It was renamed meanwhile, or another container has its path.
    #[test]
    fn an_answer_with_another_path_or_id_is_not_about_the_container() {
        let container = shop(&json!({"settings": {"description": "new"}}), Unlisted::Report);
        for (id, path, is_it) in
            [(1, "acme/shop", true), (1, "acme/other", false), (2, "acme/shop", false)]
        {
            let target =
                Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
            let here = Presence::Here(target, Facts::default());
            let mut cache = LiveCache::new(Live::with_presence(here, Duration::ZERO));
            let edit = PROJECT_UPDATE.request().arg("id", 1);
            let answer = json!({"id": id, "path_with_namespace": path, "description": "new"});
            let settings = step(&container, "settings");
            cache.record_response(&container, &settings, &edit, &answer, Some(1), Duration::ZERO);
            assert_eq!(cache.live.sections.contains_key("settings"), is_it, "{id} {path}");
        }
    }

    /// By the time a write by id is answered, another group may have the path.
    #[test]
    fn a_group_is_read_again_after_writes_that_do_not_show_it() {
        let new = || json!({"key": "A", "value": "x", "environment_scope": "*"});
        for scope in Scope::ALL {
            let sections = json!({"variables": [new()], "settings": {"description": "new"}});
            let container = testing::container(scope, "acme", &sections, Unlisted::Report);
            let target = Target { id: Some(1), ..Target::new(scope, container.path.clone()) };
            let read = || {
                let live = Live::with_presence(
                    Presence::Here(target.clone(), Facts::default()),
                    Duration::ZERO,
                );
                let variables = LiveEntries::Written(Vec::new());
                Live { sections: BTreeMap::from([("variables", variables)]), ..live }
            };
            let itself = catalogue::container_lookup(scope);
            let (variable, edit) = match scope {
                Scope::Group => (GROUP_VARIABLE_CREATE, GROUP_UPDATE),
                Scope::Project => (VARIABLE_CREATE, PROJECT_UPDATE),
            };
            let mut cache = LiveCache::new(read());
            assert!(cache.is_fully_up_to_date());
            let record_response = |cache: &mut LiveCache, section, op: Op<Write>, answer: &Json| {
                let (step, request) = (step(&container, section), op.request().arg("id", 1));
                cache.record_response(&container, &step, &request, answer, Some(1), Duration::ZERO);
            };
            record_response(&mut cache, "variables", variable, &new());
            assert!(cache.stale_sections.is_empty(), "the answer shows it");
            assert_eq!(cache.is_fully_up_to_date(), scope == Scope::Project);
            // A reading that began before that answer proves nothing.
            cache.merge_reading(read(), &BTreeSet::from(["variables"]));
            assert!(!cache.is_fully_up_to_date());
            cache.begin_reading(Duration::ZERO);
            cache.merge_reading(read(), &BTreeSet::from(["variables"]));
            assert!(cache.is_fully_up_to_date());
            // The answer to an edit of the group itself shows its path.
            record_response(&mut cache, "variables", variable, &new());
            let answer = json!({"id": 1, itself.path: "acme", "description": "new"});
            record_response(&mut cache, "settings", edit, &answer);
            assert!(cache.is_fully_up_to_date(), "{scope:?} {:?}", cache.stale_sections);
        }
    }

    /// Variables of a schedule go with it.
    #[test]
    fn entries_below_a_removed_one_are_read_again() {
        let sections = json!({"pipeline_schedules": [], "pipeline_schedule_variables": []});
        let container = shop(&sections, Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        for (action, op, stale) in [
            (Action::Update, SCHEDULE_UPDATE, &["pipeline_schedules"][..]),
            (
                Action::Delete,
                SCHEDULE_DELETE,
                &["pipeline_schedule_variables", "pipeline_schedules"],
            ),
        ] {
            let here = Presence::Here(target.clone(), Facts::default());
            let mut cache = LiveCache::new(Live::with_presence(here, Duration::ZERO));
            let step = Step { action, ..step(&container, "pipeline_schedules") };
            let request = op.request().arg("id", 1).arg("pipeline_schedule_id", 4);
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
                stale,
                "{action:?}"
            );
        }
    }

    /// The answer to a write shows one entry; the others stay known.
    #[test]
    fn an_answer_adds_or_replaces_its_own_entry() {
        let container = shop(&json!({"variables": []}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let here = Presence::Here(target, Facts::default());
        let empty = LiveEntries::Written(Vec::new());
        let sections = BTreeMap::from([("variables", empty)]);
        let mut cache =
            LiveCache::new(Live { sections, ..Live::with_presence(here, Duration::ZERO) });
        for (key, value, expected) in [
            ("A", "x", vec!["A x"]),
            ("B", "x", vec!["A x", "B x"]),
            ("A", "y", vec!["B x", "A y"]),
        ] {
            let answer = json!({"key": key, "value": value, "environment_scope": "*"});
            let (step, request) = (step(&container, "variables"), VARIABLE_CREATE.request());
            cache.record_response(&container, &step, &request, &answer, Some(1), Duration::ZERO);
            let text = |entry: &LiveEntry, name: &str| {
                entry.fields.raw()[name].as_str().unwrap().to_owned()
            };
            let entries = cache.live.sections["variables"].entries().unwrap().iter();
            let found: Vec<_> =
                entries.map(|entry| [text(entry, "key"), text(entry, "value")].join(" ")).collect();
            assert_eq!(found, expected);
        }
    }

    /// Older answers are dropped if the container no longer exists.
    #[test]
    fn a_read_that_does_not_find_the_container_keeps_no_answers() {
        let container = shop(&json!({"variables": []}), Unlisted::Report);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let here = Presence::Here(target.clone(), Facts::default());
        let empty = LiveEntries::Written(Vec::new());
        let sections = BTreeMap::from([("variables", empty)]);
        let live = Live { sections, ..Live::with_presence(here, Duration::ZERO) };
        for (presence, kept) in [(live.presence.clone(), 1), (Presence::Missing(target), 0)] {
            let mut cache = LiveCache::new(live.clone());
            cache.begin_reading(Duration::ZERO);
            let request = VARIABLE_CREATE.request().arg("id", 1);
            let variables = step(&container, "variables");
            cache.record_response(
                &container,
                &variables,
                &request,
                &Json::Null,
                Some(1),
                Duration::ZERO,
            );
            cache.merge_reading(
                Live::with_presence(presence, Duration::ZERO),
                &BTreeSet::from(["variables"]),
            );
            assert_eq!(cache.live.sections.len(), kept);
        }
    }

    /// The answer to an edit may be older than the result of another step.
    #[test]
    fn the_result_of_a_removal_is_not_taken_from_another_answer() {
        let container =
            shop(&json!({"settings": {"description": "new"}, "shares": []}), Unlisted::Delete);
        let target = Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) };
        let mut cache = LiveCache::new(Live::with_presence(
            Presence::Here(target, Facts::default()),
            Duration::ZERO,
        ));
        let removal = SHARE_DELETE.request().arg("id", 1).arg("group_id", 4);
        let shares = step(&container, "shares");
        cache.record_response(&container, &shares, &removal, &Json::Null, Some(1), Duration::ZERO);
        assert_eq!(cache.stale_sections, BTreeSet::from(["shares"]));
        let edit = PROJECT_UPDATE.request().arg("id", 1);
        let share = json!({"group_id": 4, "group_full_path": "acme/x", "group_access_level": 30});
        let answer = json!({
            "id": 1, "path_with_namespace": &*container.path, "description": "new",
            "shared_with_groups": [share],
        });
        let settings = step(&container, "settings");
        cache.record_response(&container, &settings, &edit, &answer, Some(1), Duration::ZERO);
        assert_eq!(cache.stale_sections, BTreeSet::from(["shares"]));
        assert!(matches!(cache.live.sections["settings"], LiveEntries::One(Some(_))));
    }
}
