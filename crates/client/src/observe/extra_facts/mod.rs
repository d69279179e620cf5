//! Reads the [`ExtraFact`]s that a plan requests. Only some changes need such facts.

mod levels;

use std::{collections::BTreeSet, sync::Arc};

use super::{Observer, exist::descendants_request, split_fatal};
use crate::{
    address::{groups_above, parent_group_path},
    api::Result,
    catalogue::{self, constraints, shares},
    cause::Cause,
    desired::{Container, DeclaredSection},
    field::Scope,
    kind::{
        ContainerFacts, EntryIds, FieldSelection, LiveEntry, ReadSource, Section, Target, forms,
    },
    live::{ExtraFact, InheritedLevels, LiveContainer, LiveEntries, Presence, entry_ids},
    operation::{self, KeyFilter},
    release::DetectedRelease,
    value::{Json, Object},
};

impl Observer {
    /// Copies cached facts about the parent group to `live`. Without these facts, the plan would
    /// request them, and would then be computed a second time. Waits for facts that are being read.
    pub async fn fill_from_cache(&self, container: &Container, live: &mut LiveContainer) {
        let no_group_above_moves = self.moves.nearest_moved_group_above(&container.path).is_none();
        let Some(group) = parent_group_path(&container.path).filter(|_| no_group_above_moves)
        else {
            return;
        };
        let key = group.to_lowercase();
        // Try twice: while this plan waits for one fact, another plan may start to read the second
        // fact.
        for _ in 0..2 {
            if live.levels_above.is_none() && self.cache.group_levels.contains(&key) {
                live.levels_above = self.read_group_levels(group).await.ok();
            }
            if live.group_above.is_none() && self.cache.groups.contains(&key) {
                live.group_above = self.read_group_above(&container.path).await.ok();
            }
        }
    }

    /// Reads the extra `facts` that a plan needs about a container.
    ///
    /// # Errors
    /// The errors of [`Self::read_container`].
    pub async fn read_extra_facts(
        &self,
        container: &Container,
        live: &mut LiveContainer,
        facts: &[ExtraFact],
    ) -> Result<()> {
        for fact in facts {
            match fact {
                ExtraFact::LevelsAbove => {
                    live.levels_above = Some(self.read_inherited_levels(&container.path).await?);
                }
                ExtraFact::MembershipsAbove => {
                    live.memberships_above =
                        Some(self.read_memberships_above(&container.path).await?);
                }
                ExtraFact::UsersWithAccess => {
                    let users =
                        split_fatal(self.find_users_with_access(container, live).await)?.flatten();
                    live.users_with_access = Some(users);
                }
                ExtraFact::SharingGroups => {
                    let groups = split_fatal(self.find_sharing_groups(container).await)?.flatten();
                    live.sharing_groups = Some(groups.map(Arc::new));
                }
                ExtraFact::LevelsAboveFormerPath => {
                    let levels = self.read_levels_above_former_path(&live.presence).await?;
                    live.levels_above_former_path = levels.or(live.levels_above_former_path.take());
                }
                ExtraFact::GroupAbove => {
                    live.group_above = Some(self.read_restricting_group(&container.path).await?);
                }
                ExtraFact::EntriesAbove(name) => {
                    let entries_above = self.read_entries_above(container, name).await?;
                    live.entries_above.insert(name, entries_above);
                }
                ExtraFact::SettingsAbove(name) => {
                    let settings = self.read_settings_above(container, name).await?;
                    live.settings_above.insert(name, settings);
                }
                ExtraFact::VisibilitiesBelow => {
                    let Presence::Existing(target, _) = &live.presence else { continue };
                    live.visibilities_below = Some(self.read_visibilities(target).await?);
                }
                ExtraFact::CallerAccess => {
                    live.caller_access = Some(self.read_caller_access(container, live).await?);
                }
                ExtraFact::Shares => {
                    let shares = self.read_shares_section(&container.path).await?;
                    live.sections.insert(shares::SECTION, shares);
                }
                ExtraFact::Entries(name) => {
                    let entry_ids = self.read_entry_ids(container, live, name).await?;
                    live.names.insert_entry_ids(name, entry_ids);
                }
                ExtraFact::CallerRole => {
                    let Presence::Existing(target, _) = &live.presence else { continue };
                    live.caller_role = Some(self.read_caller_role(target).await?);
                }
                ExtraFact::CallerGroup(id) => {
                    live.names.insert_caller_group(*id, self.is_caller_in_group(*id).await?);
                }
                ExtraFact::Release => live.read_release = self.release().await?,
            }
        }
        Ok(())
    }

    /// The levels of users in the group above the former path of a container that moves; `None` if the
    /// container does not move.
    async fn read_levels_above_former_path(
        &self,
        presence: &Presence,
    ) -> Result<Option<InheritedLevels>> {
        let Presence::Existing(target, _) = presence else { return Ok(None) };
        let Some(former_location) = &target.former_location else { return Ok(None) };
        let levels = match parent_group_path(&former_location.path) {
            Some(group) => split_fatal(self.read_group_levels(group).await)?.unwrap_or_default(),
            None => InheritedLevels::default(),
        };
        Ok(Some(levels))
    }

    /// The group whose settings restrict the container at `path`: the group above. A top-level group has
    /// no parent, but some of its settings also restrict the group itself. With a slash at the end of
    /// its path, the group becomes its own parent in this look-up.
    async fn read_restricting_group(&self, path: &str) -> Result<Arc<Object>> {
        let is_top_level = !path.contains('/');
        let lookup_path = if is_top_level { format!("{path}/") } else { path.to_owned() };
        self.read_group_above(&lookup_path).await
    }

    /// The shares of the project that is declared at `path`.
    async fn read_shares_section(&self, path: &str) -> Result<LiveEntries> {
        let live_path = self.resolve_live_project_path(path).await?;
        let shares = split_fatal(self.read_shares(&live_path).await)?.flatten();
        Ok(shares.map_or_else(LiveEntries::Unreadable, LiveEntries::Nested))
    }

    /// The release of the service, read once. Some installations hide the release.
    pub async fn release(&self) -> Result<DetectedRelease> {
        let read = async || {
            let response = self.client.get(operation::VERSION_GET.request()).await?;
            let version = response.body["version"].as_str().and_then(|text| text.parse().ok());
            Ok(version.map_or(DetectedRelease::Hidden, DetectedRelease::Known))
        };
        Ok(split_fatal(self.cache.release.get_or_read("", read).await)?
            .unwrap_or(DetectedRelease::Hidden))
    }

    /// The live entries of a section: from `live`, or else read from the service.
    pub(super) async fn get_or_read_entries(
        &self,
        section: Section,
        container: &Container,
        (target, facts): (&Target, &ContainerFacts),
        live: &LiveContainer,
    ) -> Result<LiveEntries> {
        if let Some(entries) = live.sections.get(section.section) {
            return Ok(entries.clone());
        }
        let empty_section = DeclaredSection::with_entries(section, &container.origin, Vec::new());
        self.read_section(&empty_section, (target, facts), &[]).await
    }

    /// Rows of an entry may name entries of other sections. Reads the ids of those entries.
    pub(super) async fn read_referenced_entry_ids(
        &self,
        container: &Container,
        live: &mut LiveContainer,
    ) -> Result<()> {
        let mut referenced_sections = BTreeSet::new();
        for section in &container.sections {
            let mut row_fields = section.kind.specs().iter().flat_map(|spec| spec.key_fields);
            if !row_fields.any(|field| field.relations.names_entries.is_some()) {
                continue;
            }
            let declared_fields =
                section.entries.iter().map(|entry| forms::plain_fields(&entry.values()));
            let entries = live.sections.get(section.kind.section);
            let entries = entries.and_then(|entries| entries.entries().ok()).into_iter().flatten();
            let live_fields = entries.map(|entry| entry.fields.raw().clone());
            for fields in declared_fields.chain(live_fields) {
                referenced_sections.extend(
                    forms::referenced_entries(section.kind, &fields).map(|(section, _)| section),
                );
            }
        }
        for name in referenced_sections {
            let entries = self.read_entry_ids(container, live, name).await?;
            live.names.insert_entry_ids(name, entries);
        }
        Ok(())
    }

    /// The groups that the project at `path` is shared with.
    async fn read_shares(&self, path: &str) -> Result<Result<Vec<LiveEntry>, Cause>> {
        let object = self.get_container_object(Scope::Project, path, &KeyFilter::All).await?;
        let shares_section = catalogue::find_section(Scope::Project, shares::SECTION);
        let shares =
            shares_section.and_then(|section| section.read_nested(&object, FieldSelection::All));
        Ok(shares.ok_or_else(|| Cause::new("the service does not show the shares")))
    }

    async fn read_entry_ids(
        &self,
        container: &Container,
        live: &LiveContainer,
        name: &str,
    ) -> Result<Result<EntryIds, Cause>> {
        let Some(section) = catalogue::find_section(container.scope, name) else {
            return Ok(Ok(EntryIds::new()));
        };
        let entries = match &live.presence {
            Presence::Existing(target, facts) => {
                self.get_or_read_entries(section, container, (target, facts), live).await?
            }
            _ => LiveEntries::NoContainer,
        };
        Ok(entry_ids(section, container, &entries))
    }

    /// The names of the entries of the section `name` in the groups above, each with its group,
    /// nearest first. Skips groups that cannot be read.
    async fn read_entries_above(
        &self,
        container: &Container,
        name: &str,
    ) -> Result<Vec<(String, Arc<str>)>> {
        let mut entries_above = Vec::new();
        let Some(group_section) = catalogue::find_section(Scope::Group, name) else {
            return Ok(entries_above);
        };
        let ReadSource::List(list) = group_section.scoped_kind.read_source else {
            return Ok(entries_above);
        };
        for group in groups_above(&container.path) {
            let live_path = self.resolve_live_group_path(group).await?;
            let read = async || {
                let request = group_section
                    .scoped_kind
                    .list_request(list.request().with_argument("id", &live_path));
                let rows = self
                    .client
                    .list_with_keys(request, group_section.scoped_kind.entry_keys)
                    .await?;
                let no_fields = BTreeSet::new();
                let reader = group_section.reader(FieldSelection::Only(&no_fields));
                let rows = rows.iter().filter(|raw| !group_section.scoped_kind.is_inherited(raw));
                let names = rows.map(|raw| group_section.entry_name(reader.read(raw).fields.raw()));
                Ok(names.collect::<Vec<_>>().into())
            };
            let key = format!("{name} {}", live_path.to_lowercase());
            let names: Arc<[String]> =
                split_fatal(self.cache.entry_names.get_or_read(&key, read).await)?
                    .unwrap_or_default();
            entries_above.extend(names.iter().map(|name| (name.clone(), group.into())));
        }
        Ok(entries_above)
    }

    /// The settings in the section `name` of the top-level group above; empty if they cannot be read.
    async fn read_settings_above(&self, container: &Container, name: &str) -> Result<Arc<Object>> {
        let section = catalogue::find_section(Scope::Group, name);
        let Some((section, group)) = section.zip(groups_above(&container.path).last()) else {
            return Ok(Arc::default());
        };
        let ReadSource::Optional(op) = section.scoped_kind.read_source else {
            return Ok(Arc::default());
        };
        let live_path = self.resolve_live_group_path(group).await?;
        let read = async || {
            let keys = section.scoped_kind.entry_keys.identity_keys;
            let request = op.request().with_argument("id", &live_path);
            let response = self.client.get_object(request, keys).await?;
            let settings = response.object().map(|raw| section.read(raw, FieldSelection::All));
            Ok(settings.map(|settings| settings.fields.raw().clone()).unwrap_or_default().into())
        };
        let key = format!("{name} {}", live_path.to_lowercase());
        Ok(split_fatal(self.cache.groups.get_or_read(&key, read).await)?.unwrap_or_default())
    }

    /// The paths and visibilities of the readable groups and projects below the group `target`.
    async fn read_visibilities(&self, target: &Target) -> Result<Vec<(Arc<str>, String)>> {
        let mut visibilities = Vec::new();
        for scope in Scope::ALL {
            let lookup = catalogue::container_lookup(scope);
            let list_request = target.address_request(descendants_request(scope));
            let key_filter = KeyFilter::keys(["id", lookup.path_field, "visibility"]);
            let objects =
                split_fatal(self.list_containers(scope, list_request, &key_filter).await)?
                    .unwrap_or_default();
            visibilities.extend(objects.iter().filter_map(|raw| {
                Some((lookup.read_path(raw).into(), raw.get("visibility")?.as_str()?.to_owned()))
            }));
        }
        Ok(visibilities)
    }

    /// The API object of the parent group of the declared `path`. The object has the values that
    /// the group gets from the moves of this run. Each group is read once. The object is empty if
    /// the group cannot be read.
    pub(super) async fn read_group_above(&self, path: &str) -> Result<Arc<Object>> {
        let Some(group) = parent_group_path(path) else { return Ok(Arc::default()) };
        let read_group = async || {
            // A group that does not exist yet has no fields: it inherits its parent's settings.
            let live_path = self.resolve_live_group_path(group).await?;
            let mut object =
                match self.get_container_object(Scope::Group, &live_path, &KeyFilter::All).await {
                    Err(error) if error.is_object_not_found() => Object::new(),
                    object => object?,
                };
            // Some settings apply if any ancestor sets them, so the object also lists the ancestors
            // that set them.
            let parent_object = Box::pin(self.read_group_above(group)).await?;
            let declared_parent = parent_group_path(group).unwrap_or_default();
            if parent_group_path(&live_path).unwrap_or_default()
                != self.resolve_live_group_path(declared_parent).await?
            {
                add_values_after_move(&mut object, &parent_object);
            }
            let is_parent_unread = parent_object.is_empty() && parent_group_path(group).is_some();
            let inherited_settings =
                parent_object.get(constraints::SETTINGS_ABOVE_KEY).and_then(Json::as_object);
            let mut settings = inherited_settings.cloned().unwrap_or_default();
            let constraining_fields = object.iter().filter(|(name, _)| {
                constraints::all_constraints().any(|row| row.group_setting.field == **name)
            });
            let constraining_settings: Object =
                constraining_fields.map(|(name, value)| (name.clone(), value.clone())).collect();
            settings.insert(group.to_lowercase(), constraining_settings.into());
            object.insert(constraints::SETTINGS_ABOVE_KEY.to_owned(), settings.into());
            for constraint in constraints::all_constraints().filter(|row| row.from_all_ancestors) {
                let (name, key) =
                    (&constraint.group_setting.field, constraint.deciding_groups_key());
                let is_set = object.get(name) == Some(&Json::Bool(true));
                let groups_above_with_setting =
                    parent_object.get(&key).and_then(Json::as_array).into_iter().flatten();
                let group_with_setting = is_set.then(|| group.into());
                let groups_with_setting: Vec<Json> = group_with_setting
                    .into_iter()
                    .chain(groups_above_with_setting.cloned())
                    .collect();
                if groups_with_setting.is_empty() && is_parent_unread {
                    object.remove(name);
                } else if !groups_with_setting.is_empty() {
                    object.extend([(name.clone(), true.into()), (key, groups_with_setting.into())]);
                }
            }
            Ok(Arc::new(object))
        };
        let object = self.cache.groups.get_or_read(&group.to_lowercase(), read_group).await;
        Ok(split_fatal(object)?.unwrap_or_default())
    }
}

/// Changes the settings in `object` as the service does when the group moves below the group of
/// `parent_object`.
fn add_values_after_move(object: &mut Object, parent_object: &Object) {
    for row in constraints::all_constraints() {
        let name = &row.group_setting.field;
        if row.constrained.field.as_ref() == Some(name)
            && let Some(value) = parent_object
                .get(name)
                .zip(object.get(name))
                .and_then(|(above, value)| row.value_after_move(above, value))
        {
            object.insert(name.clone(), value.clone());
        }
    }
}
