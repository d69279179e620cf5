//! Answers a plan's [`ExtraFact`]s: facts that only some differences need.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Observer,
    exist::list_below,
    find::{id_of, level_of},
    split_fatal,
};
use crate::{
    address::{group_of, groups_above},
    api::Result,
    catalogue::{self, constraints, shares},
    cause::Cause,
    desired::{Container, DeclaredSection, named_object},
    field::{NamedObject, Scope},
    kind::{
        Entries, Facts, FieldSelection, LiveEntry, ReadSource, Removal, Section, Target, forms,
    },
    level::{MAINTAINER, OWNER},
    live::{CallerAccess, ExtraFact, InheritedLevels, Live, LiveEntries, Presence, entry_ids},
    operation::{self, KeyFilter, Read, Request},
    page::Rows,
    release::DetectedRelease,
    value::{Json, Object},
};

impl Observer {
    /// Adds facts about the group above to `live` that another plan asked for, so that this plan
    /// need not ask for them and be made again. Waits for those that are being read.
    pub async fn fill_from_memory(&self, container: &Container, live: &mut Live) {
        let is_in_place = self.moves.nearest_group_above(&container.path).is_none();
        let Some(group) = group_of(&container.path).filter(|_| is_in_place) else { return };
        let key = group.to_lowercase();
        // The other plan asks for the second fact after the answer about the first one, in either
        // order.
        for _ in 0..2 {
            if live.levels_above.is_none() && self.memory.group_levels.contains(&key) {
                live.levels_above = self.levels_in_group(group).await.ok();
            }
            if live.group_above.is_none() && self.memory.groups.contains(&key) {
                live.group_above = self.group_above(&container.path).await.ok();
            }
        }
    }

    /// Answers a plan's question about a container.
    ///
    /// # Errors
    /// As [`Self::read_container`].
    pub async fn answer(
        &self,
        container: &Container,
        live: &mut Live,
        questions: &[ExtraFact],
    ) -> Result<()> {
        for question in questions {
            match question {
                ExtraFact::Inherited => {
                    let live_path = self.live_path(&container.path).await?;
                    live.levels_above = Some(self.inherited_levels(&live_path).await?);
                }
                ExtraFact::UsersWithAccess => {
                    let people =
                        split_fatal(self.users_with_access(container, &live.presence).await)?;
                    live.users_with_access = Some(people.flatten());
                }
                ExtraFact::InheritedAtFormerPath => {
                    if let Presence::Here(Target { former: Some(former), .. }, _) = &live.presence {
                        live.levels_above_former = Some(self.inherited_levels(&former.path).await?);
                    }
                }
                ExtraFact::GroupAbove => {
                    // Some settings of a top-level group also count in the group itself.
                    let mut home = self.live_path(&container.path).await?;
                    if !home.contains('/') {
                        home.push('/');
                    }
                    live.group_above = Some(self.group_above(&home).await?);
                }
                ExtraFact::EntriesAbove(name) => {
                    let entries_above = self.read_entries_above(container, name).await?;
                    live.entries_above.insert(name, entries_above);
                }
                ExtraFact::VisibilitiesBelow => {
                    if let Presence::Here(target, _) = &live.presence {
                        live.visibilities_below = Some(self.read_visibilities(target).await?);
                    }
                }
                ExtraFact::CallerAccess => {
                    live.caller_access = Some(self.read_caller_access(container, live).await?);
                }
                ExtraFact::Shares => {
                    let path = self.live_project_path(&container.path).await?;
                    let shares = split_fatal(self.read_shares(&path).await)?.flatten();
                    let shares = shares.map_or_else(LiveEntries::Unreadable, LiveEntries::Within);
                    live.sections.insert(shares::SECTION, shares);
                }
                ExtraFact::Entries(name) => {
                    let entries = self.read_entry_ids(container, live, name).await?;
                    live.names.insert_entries(name, entries);
                }
                ExtraFact::Release => live.release = self.release().await?,
            }
        }
        Ok(())
    }

    /// The release of the service, read once. Some installations show it to nobody, others only to
    /// users.
    pub async fn release(&self) -> Result<DetectedRelease> {
        let read = async || {
            let answer = self.client.get(operation::VERSION_GET.request()).await?;
            let version = answer.body["version"].as_str().and_then(|text| text.parse().ok());
            Ok(version.map_or(DetectedRelease::Hidden, DetectedRelease::Known))
        };
        Ok(split_fatal(self.memory.release.read("", read).await)?
            .unwrap_or(DetectedRelease::Hidden))
    }

    /// The live entries of a section. A section that was read already is not read again.
    pub(super) async fn entries_of(
        &self,
        kind: Section,
        container: &Container,
        (target, facts): (&Target, &Facts),
        live: &Live,
    ) -> Result<LiveEntries> {
        if let Some(entries) = live.sections.get(kind.section) {
            return Ok(entries.clone());
        }
        let empty_section = DeclaredSection::with_entries(kind, &container.origin, Vec::new());
        self.read_section(&empty_section, (target, facts), &[]).await
    }

    /// Adds the ids of entries of other sections that rows name, declared or live.
    pub(super) async fn add_row_entry_ids(
        &self,
        container: &Container,
        live: &mut Live,
    ) -> Result<()> {
        let mut referenced_sections = BTreeSet::new();
        for section in &container.sections {
            let mut parts = section.section.table().specs().iter().flat_map(|spec| spec.parts);
            if !parts.any(|field| field.relations.names_entries.is_some()) {
                continue;
            }
            let declared = section.entries.iter().map(|entry| forms::plain_fields(&entry.values()));
            let entries = live.sections.get(section.section.section);
            let entries = entries.and_then(|entries| entries.entries().ok()).into_iter().flatten();
            let shown = entries.map(|entry| entry.fields.raw().clone());
            for fields in declared.chain(shown) {
                referenced_sections.extend(
                    forms::referenced_entries(section.section, &fields).map(|(section, _)| section),
                );
            }
        }
        for name in referenced_sections {
            let entries = self.read_entry_ids(container, live, name).await?;
            live.names.insert_entries(name, entries);
        }
        Ok(())
    }

    /// The groups that the project at `path` is shared with.
    async fn read_shares(&self, path: &str) -> Result<Result<Vec<LiveEntry>, Cause>> {
        let object = self.get_container_object(Scope::Project, path, &KeyFilter::All).await?;
        let shares_kind = catalogue::section(Scope::Project, shares::SECTION);
        let shares = shares_kind.and_then(|of| of.read_nested(&object, FieldSelection::All));
        Ok(shares.ok_or_else(|| Cause::new("the service does not show the shares")))
    }

    async fn read_entry_ids(
        &self,
        container: &Container,
        live: &Live,
        name: &str,
    ) -> Result<Result<Entries, Cause>> {
        let Some(kind) = catalogue::section(container.scope, name) else {
            return Ok(Ok(Entries::new()));
        };
        let entries = match &live.presence {
            Presence::Here(target, facts) => {
                self.entries_of(kind, container, (target, facts), live).await?
            }
            _ => LiveEntries::Fresh,
        };
        Ok(entry_ids(kind, container, &entries))
    }

    /// The names of the entries of the section `name` in the groups above, nearest first, each with
    /// its group, as far as they can be read.
    async fn read_entries_above(
        &self,
        container: &Container,
        name: &str,
    ) -> Result<Vec<(String, Arc<str>)>> {
        let mut above = Vec::new();
        let Some(group_section) = catalogue::section(Scope::Group, name) else { return Ok(above) };
        let ReadSource::List(list) = group_section.scoped_kind.place else { return Ok(above) };
        for group in groups_above(&container.path) {
            let live = self.live_group_path(group).await?;
            let read = async || {
                let request =
                    group_section.scoped_kind.list_request(list.request().arg("id", &live));
                let rows = self.client.list_rows(request, group_section.scoped_kind.rows).await?;
                let nothing = BTreeSet::new();
                let reader = group_section.reader(FieldSelection::Only(&nothing));
                let rows = rows.iter().filter(|raw| !group_section.scoped_kind.is_inherited(raw));
                let names = rows.map(|raw| group_section.name(reader.read(raw).fields.raw()));
                Ok(names.collect::<Vec<_>>().into())
            };
            let key = format!("{name} {}", live.to_lowercase());
            let names: Arc<[String]> =
                split_fatal(self.memory.entries.read(&key, read).await)?.unwrap_or_default();
            above.extend(names.iter().map(|name| (name.clone(), group.into())));
        }
        Ok(above)
    }

    /// The paths of the groups and projects in the group `target`, each with its visibility, as far as they
    /// can be read.
    async fn read_visibilities(&self, target: &Target) -> Result<Vec<(Arc<str>, String)>> {
        let mut contents = Vec::new();
        for scope in Scope::ALL {
            let lookup = catalogue::container_lookup(scope);
            let list = target.addressed(list_below(scope));
            let wanted = KeyFilter::keys(["id", lookup.path, "visibility"]);
            let objects =
                split_fatal(self.list_all(scope, list, &wanted).await)?.unwrap_or_default();
            contents.extend(objects.iter().filter_map(|raw| {
                Some((lookup.path_in(raw).into(), raw.get("visibility")?.as_str()?.to_owned()))
            }));
        }
        Ok(contents)
    }

    /// The access levels in the group above the container at `path`.
    async fn inherited_levels(&self, path: &str) -> Result<InheritedLevels> {
        for group in groups_above(path) {
            match self.levels_in_group(group).await {
                // A group that does not exist yet starts with the members of the group above.
                Err(error) if error.is_not_found() => {}
                levels => return Ok(split_fatal(levels)?.unwrap_or_default()),
            }
        }
        Ok(Arc::default())
    }

    /// Reads the users who will have access to a project, or maintain a group, at its declared path
    /// and with its declared shares.
    async fn users_with_access(
        &self,
        project: &Container,
        presence: &Presence,
    ) -> Result<Result<BTreeSet<u64>, Cause>> {
        if project.scope == Scope::Group {
            return Ok(Ok(self.maintainers(project).await?));
        }
        let path = self.live_project_path(&project.path).await?;
        let all_members = operation::MEMBER_LIST_ALL.request().arg("id", &path);
        let levels = match presence {
            Presence::Here(Target { former: Some(former), .. }, _) if former.is_transferred => {
                let shares = match self.read_shares(&path).await? {
                    Ok(shares) => shares,
                    Err(cause) => return Ok(Err(cause)),
                };
                let direct = operation::MEMBER_LIST.request().arg("id", &path);
                let live_path = self.live_path(&project.path).await?;
                let mut levels = self.initial_levels(&live_path).await?;
                levels.extend(self.read_levels(direct).await?);
                for share in shares {
                    let group = share.fields.raw().get("group").and_then(Json::as_str);
                    levels.extend(&*self.levels_in_group(group.unwrap_or_default()).await?);
                }
                levels
            }
            Presence::Here(..) => self.read_levels(all_members).await?,
            _ => self.initial_levels(&path).await?,
        };
        let mut people: BTreeSet<_> = levels.into_keys().collect();
        for group in declared_shares(project) {
            people.extend(self.levels_in_declared_group(group).await?.keys());
        }
        Ok(Ok(people))
    }

    /// The users who maintain a group once its declared shares exist, or may do so.
    async fn maintainers(&self, group: &Container) -> Result<BTreeSet<u64>> {
        let live = self.live_group_path(&group.path).await?;
        let mut levels = match self.levels_in_group(&live).await {
            Err(error) if error.is_not_found() => self.initial_levels(&live).await?,
            levels => BTreeMap::clone(&*levels?),
        };
        for group in declared_shares(group) {
            let members = self.levels_in_declared_group(group).await?;
            members.iter().for_each(|(user, level)| raise(&mut levels, *user, *level));
        }
        levels.retain(|_, level| *level >= MAINTAINER);
        Ok(levels.into_keys().collect())
    }

    /// The access levels in the group that is declared at `path`; of a missing one, that of its creator.
    async fn levels_in_declared_group(&self, path: &str) -> Result<InheritedLevels> {
        match self.levels_in_group(&self.live_group_path(path).await?).await {
            Err(error) if error.is_not_found() => {
                Ok(Arc::new(BTreeMap::from([(self.caller.id, OWNER)])))
            }
            levels => levels,
        }
    }

    /// The access levels that a new project at `path` inherits, also if its group does not exist
    /// yet. Who creates a top-level group owns it.
    async fn initial_levels(&self, path: &str) -> Result<BTreeMap<u64, u8>> {
        for group in groups_above(path) {
            match self.levels_in_group(group).await {
                Err(error) if error.is_not_found() => {}
                levels => return Ok(BTreeMap::clone(&*levels?)),
            }
        }
        Ok(BTreeMap::from([(self.caller.id, OWNER)]))
    }

    /// The object of the group above the container at `path`, read once for each group. If it
    /// cannot be read it is empty: its fields count as unknown.
    async fn group_above(&self, path: &str) -> Result<Arc<Object>> {
        let Some(group) = group_of(path) else { return Ok(Arc::default()) };
        let read = async || {
            // A group that does not exist yet starts with the settings of the group above.
            let mut object =
                match self.get_container_object(Scope::Group, group, &KeyFilter::All).await {
                    Err(error) if error.is_not_found() => Object::new(),
                    object => object?,
                };
            // Some settings count in each group above: the object names all groups that have one.
            let outer = Box::pin(self.group_above(group)).await?;
            let is_unread = outer.is_empty() && group_of(group).is_some();
            let inherited = outer.get(constraints::SETTINGS_ABOVE).and_then(Json::as_object);
            let mut settings = inherited.cloned().unwrap_or_default();
            let constraint_fields = object.iter().filter(|(name, _)| {
                constraints::all_constraints().any(|row| row.by.field == **name)
            });
            let here: Object =
                constraint_fields.map(|(name, value)| (name.clone(), value.clone())).collect();
            settings.insert(group.to_lowercase(), here.into());
            object.insert(constraints::SETTINGS_ABOVE.to_owned(), settings.into());
            for row in constraints::all_constraints().filter(|row| row.every) {
                let (name, key) = (&row.by.field, row.deciding_groups_key());
                let is_set = object.get(name) == Some(&Json::Bool(true));
                let groups_above = outer.get(&key).and_then(Json::as_array).into_iter().flatten();
                let own_group = is_set.then(|| group.into());
                let groups: Vec<Json> =
                    own_group.into_iter().chain(groups_above.cloned()).collect();
                if groups.is_empty() && is_unread {
                    object.remove(name);
                } else if !groups.is_empty() {
                    object.extend([(name.clone(), true.into()), (key, groups.into())]);
                }
            }
            Ok(Arc::new(object))
        };
        let object = self.memory.groups.read(&group.to_lowercase(), read).await;
        Ok(split_fatal(object)?.unwrap_or_default())
    }

    /// The access levels in a group, with inherited ones, read once for each group.
    async fn levels_in_group(&self, group: &str) -> Result<InheritedLevels> {
        let read = async || {
            let members_request = operation::GROUP_MEMBER_LIST_ALL.request().arg("id", group);
            Ok(Arc::new(self.read_levels(members_request).await?))
        };
        self.memory.group_levels.read(&group.to_lowercase(), read).await
    }

    async fn read_levels(&self, list: Request<Read>) -> Result<BTreeMap<u64, u8>> {
        let members = self.client.list_rows(list, Rows::with_id(&["access_level"])).await?;
        let mut levels = BTreeMap::new();
        for member in members.iter() {
            let is_active = member.get("state").is_none_or(|state| state == "active");
            let level = if is_active { level_of(member, "access_level") } else { Some(0) };
            if let Some((id, level)) = id_of(member).zip(level) {
                raise(&mut levels, id, level);
            }
        }
        Ok(levels)
    }

    /// The caller's level in a list of `levels`.
    fn pick_caller_level(&self, levels: Result<InheritedLevels>) -> Result<Result<u8, Cause>> {
        match levels {
            // A member can see the group, so a 404 means level 0.
            Err(error) if error.is_not_found() => Ok(Ok(0)),
            levels => split_fatal(levels.map(|all| all.get(&self.caller.id).copied().unwrap_or(0))),
        }
    }

    /// How the caller gets access to a container.
    async fn read_caller_access(&self, container: &Container, live: &Live) -> Result<CallerAccess> {
        let path = self.live_path(&container.path).await?;
        // The object of a project shows memberships only; that of a group includes shares.
        let direct = match &live.presence {
            Presence::Here(_, facts) if container.scope == Scope::Project => {
                Ok(facts.caller_level.unwrap_or(0))
            }
            _ => {
                let list = operation::GROUP_MEMBER_LIST.request().arg("id", &path);
                self.pick_caller_level(self.read_levels(list).await.map(Arc::new))?
            }
        };
        let inherited = match group_of(&path) {
            Some(group) => self.pick_caller_level(self.levels_in_group(group).await)?,
            None => Ok(0),
        };
        let otherwise = match (direct, inherited) {
            (Ok(direct), Ok(inherited)) => Ok(direct.max(inherited)),
            (Ok(level), Err(_)) | (Err(_), Ok(level)) if level >= MAINTAINER => Ok(level),
            (Err(cause), _) | (_, Err(cause)) => Err(cause),
        };
        let mut groups = BTreeMap::new();
        for (section, entries) in container.sections.iter().filter_map(|section| {
            Some((section.section, live.sections.get(section.section.section)?.entries().ok()?))
        }) {
            let named = named_object(section).filter(|_| section.removal == Removal::Access);
            let Some((name, NamedObject::Group)) = named else { continue };
            for entry in entries {
                let path = entry.fields.raw().get(name).and_then(Json::as_str);
                if let Some((id, path)) = entry.id().zip(path) {
                    groups.insert(id, self.pick_caller_level(self.levels_in_group(path).await)?);
                }
            }
        }
        Ok(CallerAccess { without_shares: otherwise, groups })
    }
}

/// The groups with which `container` or a group above it is declared to be shared.
fn declared_shares(container: &Container) -> impl Iterator<Item = &str> {
    let shares = container.present(shares::SECTION).map(|share| &*share.key);
    shares.chain(container.lifecycle.shares_above.iter().map(|group| &**group))
}

/// Gives a user at least this level.
fn raise(levels: &mut BTreeMap<u64, u8>, user: u64, level: u8) {
    let highest = levels.entry(user).or_insert(level);
    *highest = level.max(*highest);
}
