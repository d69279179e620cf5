//! The declared settings of groups. Plans for the groups and projects below use them instead of the
//! live settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Container;
use crate::{field::Scope, kinds::settings};

/// The declared settings of groups. The plan of each container gets a clone.
#[derive(Clone, Debug, Default)]
pub struct Groups(Arc<BTreeMap<String, BTreeSet<String>>>);

impl Groups {
    /// Of the groups among `containers`.
    pub fn of(containers: &[Container]) -> Self {
        let groups = containers.iter().filter(|container| container.scope == Scope::Group);
        let said = groups.filter_map(|group| {
            let entry = group.section(settings::KIND.section)?.entries.first()?;
            let names = entry.fields.iter().map(|(name, _)| name.to_owned()).collect();
            Some((group.path.to_lowercase(), names))
        });
        Self(Arc::new(said.collect()))
    }

    /// Whether a group above `path` declares the setting `name`.
    pub fn declare_above(&self, path: &str, name: &str) -> bool {
        let path = path.to_lowercase();
        let mut above = path.match_indices('/').filter_map(|(at, _)| self.0.get(&path[..at]));
        above.any(|names| names.contains(name))
    }
}
