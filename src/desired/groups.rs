//! The declared settings of groups that decide about what is below them. Plans for the groups and
//! projects below use them instead of the live settings.

use std::{collections::BTreeMap, sync::Arc};

use super::Container;
use crate::{
    address::groups_above,
    field::Scope,
    kinds::constraints::{self, Setting},
    value::Json,
};

/// The declared settings of groups. The plan of each container gets a clone.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    declared: Arc<BTreeMap<String, Vec<Declared>>>,
    /// Whether the run has set them.
    pub are_set: bool,
}

/// A declared setting, with its value if that is plain.
type Declared = (&'static Setting, Option<Json>);

impl Groups {
    /// Of the groups among `containers` that the run may change.
    pub fn of<'c>(containers: impl IntoIterator<Item = &'c Container>) -> Self {
        let changes = |of: &&Container| of.scope == Scope::Group && !of.is_watched;
        let groups = containers.into_iter().filter(changes);
        let settings = groups.map(|group| {
            let declared = constraints::all().filter_map(|row| {
                Some((
                    &row.by,
                    group.setting(&row.by.section, &row.by.field)?.value.plain().cloned(),
                ))
            });
            (group.path.to_lowercase(), declared.collect::<Vec<_>>())
        });
        let declared = settings.filter(|(_, declared)| !declared.is_empty()).collect();
        Self { declared: Arc::new(declared), are_set: false }
    }

    /// Whether a group above `path` declares a setting that gives what is below another value.
    pub fn give(&self, path: &str) -> bool {
        constraints::all().any(|row| {
            let mut above = self.above(path, &row.by);
            above.any(|(_, by)| by.is_some_and(|by| row.gives(by).is_some()))
        })
    }

    /// The groups above `path` that declare `setting`, nearest first, with the value if it is plain.
    pub fn above<'g>(
        &'g self,
        path: &str,
        setting: &'g Setting,
    ) -> impl Iterator<Item = (String, Option<&'g Json>)> {
        let groups: Vec<_> = groups_above(&path.to_lowercase()).map(str::to_owned).collect();
        groups.into_iter().filter_map(move |group| {
            let declared = self.declared.get(&group)?;
            let (_, value) = declared.iter().find(|(by, _)| *by == setting)?;
            Some((group, value.as_ref()))
        })
    }
}
