//! Access levels in groups: who inherits access to a container, and which access the caller has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    address::{groups_above, parent_group_path},
    api::Result,
    catalogue::shares,
    cause::Cause,
    desired::{Container, named_object},
    field::{NamedObject, Scope},
    kind::{Removal, Target},
    level::{MAINTAINER, OWNER},
    live::{CallerAccess, InheritedLevels, LiveContainer, Presence},
    observe::{
        Observer,
        cache::{direct_levels_key, levels_after_move_key},
        find::{object_id, object_level},
        split_fatal,
    },
    operation::{self, KeyFilter, Read, Request},
    page::EntryKeys,
    value::Json,
};

/// The field of a group or project with the groups that it is shared with.
const SHARES_FIELD: &str = "shared_with_groups";

impl Observer {
    /// The access levels in the group above the declared `path`.
    pub(super) async fn read_inherited_levels(&self, path: &str) -> Result<InheritedLevels> {
        let levels = split_fatal(self.read_nearest_levels(path).await)?;
        Ok(levels.unwrap_or_default().unwrap_or_default())
    }

    /// The access levels in the nearest existing group above the declared `path`. A group that does
    /// not exist yet starts with the members of the group above it.
    async fn read_nearest_levels(&self, path: &str) -> Result<Option<InheritedLevels>> {
        for group in groups_above(path) {
            match self.read_levels_after_moves(group).await {
                Err(error) if error.is_object_not_found() => {}
                levels => return levels.map(Some),
            }
        }
        Ok(None)
    }

    /// The levels of the direct members of each group above `path` that can be read, by its declared
    /// path in lower case.
    pub(super) async fn read_memberships_above(
        &self,
        path: &str,
    ) -> Result<Vec<(Arc<str>, InheritedLevels)>> {
        let mut memberships = Vec::new();
        for group in groups_above(path) {
            let live_path = self.resolve_live_group_path(group).await?;
            let read = async || {
                let members =
                    operation::GROUP_MEMBER_LIST.request().with_argument("id", &live_path);
                self.read_levels(members).await.map(Arc::new)
            };
            let cache = &self.cache.group_levels;
            let levels = cache.get_or_read(&direct_levels_key(group), read).await;
            memberships.extend(split_fatal(levels)?.ok().map(|l| (group.to_lowercase().into(), l)));
        }
        Ok(memberships)
    }

    /// Reads the users who will have access to `container` if it is a project, or who will be its
    /// maintainers if it is a group. The result is for the declared path and the declared shares of
    /// `container`.
    pub(super) async fn find_users_with_access(
        &self,
        container: &Container,
        live: &LiveContainer,
    ) -> Result<Result<BTreeSet<u64>, Cause>> {
        let exists = matches!(live.presence, Presence::Existing(..));
        let path = self.resolve_live_container_path(container.scope, &container.path).await?;
        let is_moving = exists && !path.eq_ignore_ascii_case(&container.path);
        let mut levels = match container.scope {
            _ if !exists => self.read_initial_levels(&container.path).await?,
            Scope::Group => BTreeMap::clone(&*self.read_levels_after_moves(&container.path).await?),
            Scope::Project if is_moving => {
                let members = operation::MEMBER_LIST.request().with_argument("id", &path);
                let mut levels = self.read_initial_levels(&container.path).await?;
                levels.extend(self.read_levels(members).await?);
                levels
            }
            Scope::Project => {
                self.read_levels(operation::MEMBER_LIST_ALL.request().with_argument("id", &path))
                    .await?
            }
        };
        let sharing_groups = if is_moving {
            match self.find_sharing_groups(container).await? {
                Ok(groups) => groups,
                Err(cause) => return Ok(Err(cause)),
            }
        } else {
            declared_shares(container).map(str::to_owned).collect()
        };
        for group in &sharing_groups {
            let members = self.read_declared_group_levels(group).await?;
            raise_levels(&mut levels, &members, u8::MAX);
        }
        let min_level = container.scope.choose(MAINTAINER, 1);
        levels.retain(|_, level| *level >= min_level);
        Ok(Ok(levels.into_keys().collect()))
    }

    /// The groups with which `container` and the groups above are shared, or are declared to be
    /// shared. Returns their declared paths, in lower case.
    pub(super) async fn find_sharing_groups(
        &self,
        container: &Container,
    ) -> Result<Result<BTreeSet<String>, Cause>> {
        let path = self.resolve_live_container_path(container.scope, &container.path).await?;
        let keys = KeyFilter::keys([SHARES_FIELD]);
        let container_object = self.find_container(container.scope, &path, &keys).await?;
        let mut objects = vec![Arc::new(container_object.unwrap_or_default())];
        for path in std::iter::once(&*container.path).chain(groups_above(&container.path)) {
            let group = self.read_group_above(path).await?;
            // A group that does not exist yet has at least the settings of the groups above it. An
            // empty object therefore means that the group could not be read.
            if group.is_empty() && parent_group_path(path).is_some() {
                return Ok(Err(Cause::new("a group above could not be read")));
            }
            objects.push(group);
        }
        let rows = objects.iter().filter_map(|object| object.get(SHARES_FIELD)?.as_array());
        let live_groups = rows.flatten().filter_map(|row| row["group_full_path"].as_str());
        let live_groups = live_groups.map(|group| self.moves.declared_path(group));
        let declared_groups = declared_shares(container).map(Arc::from);
        Ok(Ok(live_groups.chain(declared_groups).map(|group| group.to_lowercase()).collect()))
    }

    /// The access levels in the group that is declared at `path`. If the group does not exist yet,
    /// only the caller has access, because the caller creates it.
    async fn read_declared_group_levels(&self, path: &str) -> Result<InheritedLevels> {
        match self.read_levels_after_moves(path).await {
            Err(error) if error.is_object_not_found() => {
                Ok(Arc::new(BTreeMap::from([(self.caller.id, OWNER)])))
            }
            levels => levels,
        }
    }

    /// The access levels in the group that is declared at `path`, without the levels that the group
    /// loses because of moves.
    async fn read_levels_after_moves(&self, path: &str) -> Result<InheritedLevels> {
        let live_path = self.resolve_live_group_path(path).await?;
        if live_path.eq_ignore_ascii_case(path) {
            return self.read_group_levels(&live_path).await;
        }
        let read = async || {
            let members = operation::GROUP_MEMBER_LIST.request().with_argument("id", &live_path);
            let mut levels = self.read_levels(members).await?;
            let parent_levels = Box::pin(self.read_inherited_levels(path)).await?;
            raise_levels(&mut levels, &parent_levels, u8::MAX);
            // The group keeps its shares.
            let group = self.read_group_above(&format!("{path}/*")).await?;
            for share in group.get(SHARES_FIELD).and_then(Json::as_array).into_iter().flatten() {
                let Some(name) = share["group_full_path"].as_str() else { continue };
                let max_level = share["group_access_level"].as_u64();
                let max_level = max_level.and_then(|level| level.try_into().ok());
                let members = self.read_group_levels(name).await?;
                raise_levels(&mut levels, &members, max_level.unwrap_or_default());
            }
            Ok(Arc::new(levels))
        };
        self.cache.group_levels.get_or_read(&levels_after_move_key(path), read).await
    }

    /// The access levels that a new project at the declared `path` inherits, even if its group does
    /// not exist yet. The creator of a top-level group becomes its owner.
    async fn read_initial_levels(&self, path: &str) -> Result<BTreeMap<u64, u8>> {
        Ok(match self.read_nearest_levels(path).await? {
            Some(levels) => BTreeMap::clone(&levels),
            None => BTreeMap::from([(self.caller.id, OWNER)]),
        })
    }

    /// The access levels in a group, with inherited levels, read once for each group.
    pub(super) async fn read_group_levels(&self, group: &str) -> Result<InheritedLevels> {
        let read = async || {
            let members_request =
                operation::GROUP_MEMBER_LIST_ALL.request().with_argument("id", group);
            Ok(Arc::new(self.read_levels(members_request).await?))
        };
        self.cache.group_levels.get_or_read(&group.to_lowercase(), read).await
    }

    async fn read_levels(&self, list_request: Request<Read>) -> Result<BTreeMap<u64, u8>> {
        let members =
            self.client.list_with_keys(list_request, EntryKeys::with_id(&["access_level"])).await?;
        let mut levels = BTreeMap::new();
        for member in members.iter() {
            let is_active = member.get("state").is_none_or(|state| state == "active");
            let level = if is_active { object_level(member, "access_level") } else { Some(0) };
            if let Some((id, level)) = object_id(member).zip(level) {
                raise_level(&mut levels, id, level);
            }
        }
        Ok(levels)
    }

    /// The caller's level among `levels`; 0 if the group is not visible.
    fn pick_caller_level(&self, levels: Result<InheritedLevels>) -> Result<Result<u8, Cause>> {
        match levels {
            // A member can see the group, so a 404 means level 0.
            Err(error) if error.is_object_not_found() => Ok(Ok(0)),
            levels => split_fatal(
                levels.map(|user_levels| user_levels.get(&self.caller.id).copied().unwrap_or(0)),
            ),
        }
    }

    /// The level of the caller's access to `target`, also from shares; 0 if it has none. `None` if
    /// the caller has a custom role, which may allow more than its level, or if nothing shows it.
    pub(super) async fn read_caller_role(&self, target: &Target) -> Result<Option<u8>> {
        let op = target.scope.choose(operation::GROUP_MEMBER_GET_ALL, operation::MEMBER_GET_ALL);
        let request = target.address_request(op.request()).with_argument("user_id", self.caller.id);
        let response = match self.client.get(request).await {
            Err(error) if error.is_object_not_found() => return Ok(Some(0)),
            response => split_fatal(response)?,
        };
        let Some(member) = response.as_ref().ok().and_then(|response| response.object()) else {
            return Ok(None);
        };
        let has_custom_role = member.get("member_role").is_some_and(|role| !role.is_null());
        Ok(object_level(member, "access_level").filter(|_| !has_custom_role))
    }

    /// True if the caller is in the group `id`, directly or not, or if that cannot be read.
    pub(super) async fn is_caller_in_group(&self, id: u64) -> Result<bool> {
        let levels = self.read_group_levels(&id.to_string()).await;
        Ok(self.pick_caller_level(levels)?.map_or(true, |level| level > 0))
    }

    /// The ways in which the caller has access to a container.
    pub(super) async fn read_caller_access(
        &self,
        container: &Container,
        live: &LiveContainer,
    ) -> Result<CallerAccess> {
        let path = self.resolve_live_path(&container.path).await?;
        // The level in the object of a project comes only from memberships. The level in the object
        // of a group includes shares.
        let direct_level = match &live.presence {
            Presence::Existing(_, facts) if container.scope == Scope::Project => {
                Ok(facts.caller_level.unwrap_or(0))
            }
            _ => {
                let list_request =
                    operation::GROUP_MEMBER_LIST.request().with_argument("id", &path);
                self.pick_caller_level(self.read_levels(list_request).await.map(Arc::new))?
            }
        };
        let inherited_level = match parent_group_path(&path) {
            Some(group) => self.pick_caller_level(self.read_group_levels(group).await)?,
            None => Ok(0),
        };
        let without_shares = match (direct_level, inherited_level) {
            (Ok(direct), Ok(inherited)) => Ok(direct.max(inherited)),
            (Ok(level), Err(_)) | (Err(_), Ok(level)) if level >= MAINTAINER => Ok(level),
            (Err(cause), _) | (_, Err(cause)) => Err(cause),
        };
        let mut groups = BTreeMap::new();
        for (section, entries) in container.sections.iter().filter_map(|section| {
            Some((section.kind, live.sections.get(section.kind.section)?.entries().ok()?))
        }) {
            let named_field = named_object(section).filter(|_| section.removal == Removal::Access);
            let Some((name, NamedObject::Group)) = named_field else { continue };
            for entry in entries {
                let path = entry.fields.raw().get(name).and_then(Json::as_str);
                if let Some((id, path)) = entry.id().zip(path) {
                    groups.insert(id, self.pick_caller_level(self.read_group_levels(path).await)?);
                }
            }
        }
        Ok(CallerAccess { level_without_shares: without_shares, group_levels: groups })
    }
}

/// The groups with which `container` or a group above it is declared to be shared.
fn declared_shares(container: &Container) -> impl Iterator<Item = &str> {
    let shares = container.present_entries(shares::SECTION).map(|share| &*share.key);
    shares.chain(container.lifecycle.share_paths_above.iter().map(|group| &**group))
}

/// Raises the levels of users to their levels in `other_levels`, but to at most `max_level`.
fn raise_levels(levels: &mut BTreeMap<u64, u8>, other_levels: &BTreeMap<u64, u8>, max_level: u8) {
    other_levels
        .iter()
        .for_each(|(user_id, level)| raise_level(levels, *user_id, max_level.min(*level)));
}

/// Raises the level of a user to at least `level`.
fn raise_level(levels: &mut BTreeMap<u64, u8>, user_id: u64, level: u8) {
    let highest = levels.entry(user_id).or_insert(level);
    *highest = level.max(*highest);
}
