//! What the groups of a run declare of their settings: what is in them goes by that, and not by what
//! the service still says.

use std::collections::{BTreeMap, BTreeSet};

use super::Container;
use crate::{field::Scope, kinds::settings};

/// What the groups of a run declare of their settings.
#[derive(Clone, Debug, Default)]
pub struct Groups(BTreeMap<String, BTreeSet<String>>);

impl Groups {
    /// Those among `containers`.
    pub fn of(containers: &[Container]) -> Self {
        let groups = containers.iter().filter(|container| container.scope == Scope::Group);
        let said = groups.filter_map(|group| {
            let entry = group.section(settings::KIND.section)?.entries.first()?;
            let names = entry.fields.iter().map(|(name, _)| name.to_owned()).collect();
            Some((group.path.to_lowercase(), names))
        });
        Self(said.collect())
    }

    /// Whether a group above `path` declares the setting `name`.
    pub fn declare_above(&self, path: &str, name: &str) -> bool {
        let path = path.to_lowercase();
        let mut above = path.match_indices('/').filter_map(|(at, _)| self.0.get(&path[..at]));
        above.any(|names| names.contains(name))
    }
}
