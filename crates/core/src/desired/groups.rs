//! The declared members and settings of groups, which affect all groups and projects below them.
//! Plans use the declared settings instead of the live settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Container, DeclaredSection, subject_field};
use crate::{
    address::groups_above,
    catalogue::constraints::{self, GroupSetting},
    field::{NamedObject, Scope},
    kind::Removal,
    value::Json,
};

/// The declared settings and members of groups, by path of the group in lower case. The plan of
/// each container gets a clone.
#[derive(Clone, Debug, Default)]
pub struct GroupDeclarations {
    settings: Arc<BTreeMap<String, Vec<DeclaredSetting>>>,
    members: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// True if the run has already applied these declarations.
    pub is_applied: bool,
}

/// A declared setting with its value; `None` if the value is a secret or a file.
type DeclaredSetting = (&'static GroupSetting, Option<Json>);

impl GroupDeclarations {
    /// Collects the declarations of the groups among `containers` that the run may change.
    pub fn from_containers<'c>(containers: impl IntoIterator<Item = &'c Container>) -> Self {
        let groups: Vec<_> = containers
            .into_iter()
            .filter(|container| container.scope == Scope::Group && !container.is_watched)
            .collect();
        let members = groups.iter().map(|group| {
            let members: BTreeSet<_> = declared_members(group).map(str::to_owned).collect();
            (group.path.to_lowercase(), members)
        });
        let members = members.filter(|(_, members)| !members.is_empty()).collect();
        let settings = groups.into_iter().map(|group| {
            let group_settings = constraints::all_constraints().filter_map(|constraint| {
                let setting = group
                    .setting(&constraint.group_setting.section, &constraint.group_setting.field)?;
                Some((&constraint.group_setting, setting.value.plain_json().cloned()))
            });
            (group.path.to_lowercase(), group_settings.collect::<Vec<_>>())
        });
        let declared = settings.filter(|(_, declared)| !declared.is_empty()).collect();
        Self { settings: Arc::new(declared), members: Arc::new(members), is_applied: false }
    }

    /// True if a group above `path` declares `username`, in lower case, as a member.
    pub fn has_member_above(&self, path: &str, username: &str) -> bool {
        groups_above(&path.to_lowercase())
            .any(|group| self.members.get(group).is_some_and(|members| members.contains(username)))
    }

    /// True if a group above `path` declares a setting of a constraint.
    pub fn has_setting_above(&self, path: &str) -> bool {
        groups_above(&path.to_lowercase()).any(|group| self.settings.contains_key(group))
    }

    /// True if a group above `path` declares a setting that replaces values below it.
    pub fn replaces_values_below(&self, path: &str) -> bool {
        self.has_setting_above(path)
            && constraints::all_constraints().any(|constraint| {
                let mut declarations = self.declarations_above(path, &constraint.group_setting);
                declarations.any(|(_, value)| {
                    value.is_some_and(|value| constraint.value_below(value).is_some())
                })
            })
    }

    /// The groups above `path` that declare `setting`, nearest first: the path of the group in
    /// lower case, and the value. `None` if the value is a secret or a file.
    pub fn declarations_above<'g>(
        &'g self,
        path: &str,
        setting: &'g GroupSetting,
    ) -> impl Iterator<Item = (String, Option<&'g Json>)> {
        let groups: Vec<_> = groups_above(&path.to_lowercase()).map(str::to_owned).collect();
        groups.into_iter().filter_map(move |group| {
            let settings = self.settings.get(&group)?;
            let (_, value) =
                settings.iter().find(|(declared_setting, _)| *declared_setting == setting)?;
            Some((group, value.as_ref()))
        })
    }
}

/// The users that `container` declares as members, in lower case.
pub fn declared_members(container: &Container) -> impl Iterator<Item = &str> {
    let sections = container.sections.iter().filter(|section| {
        section.kind.removal == Removal::Access
            && matches!(subject_field(section.kind), Some((_, NamedObject::User)))
    });
    sections.flat_map(DeclaredSection::present_entries).map(|entry| &*entry.key)
}
