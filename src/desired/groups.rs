//! What groups declare that counts below them: settings, which plans for the groups and projects below use
//! instead of the live ones, and members.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Container, State};
use crate::{
    address::groups_above,
    field::{Named, Scope},
    kind::Removal,
    kinds::constraints::{self, Setting},
    value::Json,
};

/// The declared settings and members of groups. The plan of each container gets a clone.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    settings: Arc<BTreeMap<String, Vec<Declared>>>,
    members: Arc<BTreeMap<String, BTreeSet<String>>>,
}

/// A declared setting, with its value if that is plain.
type Declared = (&'static Setting, Option<Json>);

impl Groups {
    /// Of the groups among `containers`.
    pub fn of(containers: &[Container]) -> Self {
        let groups = containers.iter().filter(|container| container.scope == Scope::Group);
        let managed = groups.clone().filter(|group| !group.is_watched);
        let members = managed.map(|group| {
            (group.path.to_lowercase(), members(group).map(str::to_owned).collect::<BTreeSet<_>>())
        });
        let members = members.filter(|(_, members)| !members.is_empty()).collect();
        let settings = groups.map(|group| {
            let declared = constraints::all().filter_map(|row| {
                Some((
                    &row.by,
                    group.setting(&row.by.section, &row.by.field)?.value.plain().cloned(),
                ))
            });
            (group.path.to_lowercase(), declared.collect::<Vec<_>>())
        });
        let settings = settings.filter(|(_, declared)| !declared.is_empty()).collect();
        Self { settings: Arc::new(settings), members: Arc::new(members) }
    }

    /// Whether a group above `path` declares `user`, in lower case, as a member.
    pub fn has_member_above(&self, path: &str, user: &str) -> bool {
        let has = |group| self.members.get(group).is_some_and(|members| members.contains(user));
        groups_above(&path.to_lowercase()).any(has)
    }

    /// The groups above `path` that declare `setting`, nearest first, with the value if it is plain.
    pub fn above<'g>(
        &'g self,
        path: &str,
        setting: &'g Setting,
    ) -> impl Iterator<Item = (String, Option<&'g Json>)> {
        let groups: Vec<_> = groups_above(&path.to_lowercase()).map(str::to_owned).collect();
        groups.into_iter().filter_map(move |group| {
            let declared = self.settings.get(&group)?;
            let (_, value) = declared.iter().find(|(by, _)| *by == setting)?;
            Some((group, value.as_ref()))
        })
    }
}

/// The users whom `container` declares as members, in lower case.
pub fn members(container: &Container) -> impl Iterator<Item = &str> {
    let sections = container.sections.iter().filter(|section| {
        let mut identity = section.of.identity.iter();
        section.of.removal == Removal::Access
            && identity.any(|name| section.of.field(name).names == Some(Named::User))
    });
    let entries = sections.flat_map(|section| &section.entries);
    entries.filter(|entry| entry.state == State::Present).map(|entry| &*entry.key)
}
