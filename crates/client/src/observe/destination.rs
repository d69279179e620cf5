//! Finds out what a move to a declared path meets: the paths in between that are in use, and a
//! container that has the same name in the new group.

use std::sync::Arc;

use super::{
    Observer,
    find::{LiveObject, paths_are_equal},
};
use crate::{
    address::parent_group_path,
    api::Result,
    catalogue::settings,
    desired::{Container, path_after_rename},
    field::Scope,
    kind::{FormerLocation, NamespaceOwner},
};

impl Observer {
    /// Records in `object` the move of the container from `present_path` to its declared path. In
    /// `present_path`, the groups above have their declared paths.
    pub(super) async fn add_move(
        &self,
        container: &Container,
        mut object: LiveObject,
        present_path: &str,
    ) -> Result<LiveObject> {
        let (present_path, declared_path) =
            (present_path.to_lowercase(), container.path.to_lowercase());
        let is_transferred = parent_group_path(&present_path) != parent_group_path(&declared_path);
        let intermediate_paths = path_after_rename(&present_path, &declared_path)
            .zip(path_after_rename(&declared_path, &present_path));
        let is_transferred_first = match intermediate_paths {
            Some((path_if_renamed_first, path_if_transferred_first)) => {
                self.is_in_use(&path_if_renamed_first).await?
                    && !self.is_in_use(&path_if_transferred_first).await?
            }
            None => false,
        };
        let (mut namesake, mut name) = (None, None);
        if let Some(group) = parent_group_path(&container.path).filter(|_| is_transferred) {
            object.target.namespace = self.find_declared_namespace(group).await?;
            let group = self.resolve_live_group_path(group).await?;
            namesake = self.find_namesake(&object, object.facts.name.as_deref(), &group).await?;
            if namesake.is_some() && !is_transferred_first {
                name = self.find_free_name(container, &object, &group).await?;
            }
        }
        object.target.former_location = Some(FormerLocation {
            path: object.path.as_str().into(),
            is_renamed: last_segment(&present_path) != last_segment(&declared_path),
            is_transferred,
            is_transferred_first,
            namesake,
            name,
        });
        Ok(object)
    }

    /// True if a group or project has `path`, or may get it in this run.
    async fn is_in_use(&self, path: &str) -> Result<bool> {
        let live_path = self.resolve_live_path(path).await?;
        Ok(self.moves.declares_container(path)
            || self.exists_at(Scope::Group, &live_path).await?
            || self.exists_at(Scope::Project, &live_path).await?)
    }

    /// The declared display name of `container`, if neither its present group nor `new_group` has a
    /// container with that name.
    async fn find_free_name(
        &self,
        container: &Container,
        object: &LiveObject,
        new_group: &str,
    ) -> Result<Option<String>> {
        let declared_name = container.setting(settings::SECTION, "name");
        let name = declared_name.as_ref().and_then(|name| name.value.text());
        for group in parent_group_path(&object.path).into_iter().chain([new_group]) {
            if self.find_namesake(object, name, group).await?.is_some() {
                return Ok(None);
            }
        }
        Ok(name.map(str::to_owned))
    }

    /// The declared path of the container that has `name` in the group whose live path is
    /// `live_group`, if `object` moves to a group. `None` also if undrift cannot know.
    async fn find_namesake(
        &self,
        object: &LiveObject,
        name: Option<&str>,
        live_group: &str,
    ) -> Result<Option<Arc<str>>> {
        let owner = object.target.namespace.as_ref().map(|namespace| namespace.owner);
        if name.is_none() || owner != Some(NamespaceOwner::Group) {
            return Ok(None);
        }
        let containers = self.list_below(object.target.scope, live_group).await?;
        let namesake = containers.iter().find(|other| {
            other.facts.name.as_deref() == name
                && parent_group_path(&other.path)
                    .is_some_and(|parent| paths_are_equal(parent, live_group))
        });
        Ok(namesake.map(|other| {
            let path = self.moves.canonical_path(&other.path);
            self.moves.former_occupant(&path).map_or(path, |moved| moved.path.clone())
        }))
    }
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
