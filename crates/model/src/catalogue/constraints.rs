//! The effects of a group setting on the groups and projects below it: the table of
//! `constraints.yaml`.
//!
//! `check` compares both values if both are declared. A plan compares the declared value with the
//! live one. If one step's setting decides over another step's, the plan orders the two. At its
//! end, a run reads values again that a later step may have changed.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::{field::Scope, value::Json, yaml};

/// A group setting that decides over another setting, or over the creation of entries, below the
/// group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The setting that decides.
    pub by: GroupSetting,
    /// The setting or the creation that it decides over.
    pub over: ConstrainedField,
    /// How the service enforces the setting.
    pub how: ConstraintEffect,
    /// The combinations of values that contradict each other.
    #[serde(default)]
    when: Vec<ConstraintCase>,
    /// The values that a change of the group sets below it.
    #[serde(default)]
    gives: Vec<ConstraintCase>,
    /// Whether it applies in each group above, not only in the nearest one with the setting.
    #[serde(default)]
    pub every: bool,
    /// Whether it also applies in groups, including the group that has the setting.
    #[serde(default)]
    pub groups: bool,
    /// Whether it applies only to entries that name a group of another top-level group.
    #[serde(default)]
    pub outside: bool,
    /// The effect, as text after the name of the setting.
    #[serde(default)]
    pub text: String,
    /// The code of the problem.
    #[serde(default)]
    pub code: String,
}

/// A field of a section that has only one entry in each group.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSetting {
    /// The section.
    pub section: String,
    /// The field.
    pub field: String,
}

/// A field of a section, or the creation of its entries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstrainedField {
    /// The section.
    pub section: String,
    /// The field; `None` for the creation of entries.
    pub field: Option<String>,
}

/// What the service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintEffect {
    /// It refuses the value.
    Bounds,
    /// It shows the value of the group instead.
    Replaces,
    /// A change of the group sets the same below, where it can be changed again.
    Sets,
    /// It refuses to create an entry.
    Forbids,
}

/// A combination of values of both settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintCase {
    by: Vec<Json>,
    /// Any value if the list is empty.
    #[serde(default)]
    over: Vec<Json>,
}

static CONSTRAINTS: LazyLock<Vec<Constraint>> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/constraints"));

/// The key, in the object of a group, of the settings of all groups above, by path in lower case.
pub const SETTINGS_ABOVE_KEY: &str = "settings of groups above";

/// All constraints.
pub fn all_constraints() -> impl Iterator<Item = &'static Constraint> {
    CONSTRAINTS.iter()
}

/// The constraints over the field `name` of `section`, or over creations in it.
pub fn constraints_over<'n>(
    section: &'n str,
    name: Option<&'n str>,
) -> impl Iterator<Item = &'static Constraint> + use<'n> {
    all_constraints().filter(move |constraint| {
        constraint.over.section == section && constraint.over.field.as_deref() == name
    })
}

impl Constraint {
    /// The key, in the object of a group, of the paths of the groups above that have the setting,
    /// nearest first. It contains blanks, so no field of a response has the same name.
    pub fn deciding_groups_key(&self) -> String {
        format!("{} decided by", self.by.field)
    }

    /// True if the group's value contradicts `value`.
    pub fn contradicts(&self, group_value: &Json, value: &Json) -> bool {
        self.when.iter().any(|case| {
            case.by.contains(group_value) && (case.over.is_empty() || case.over.contains(value))
        })
    }

    /// The value of the field below after the group changes to `group_value`.
    pub fn value_below<'j>(&'j self, group_value: &'j Json) -> Option<&'j Json> {
        let matching_case = self.gives.iter().find(|case| case.by.contains(group_value));
        matching_case.and_then(|case| case.over.first()).or_else(|| {
            (self.how == ConstraintEffect::Sets && self.gives.is_empty()).then_some(group_value)
        })
    }

    /// The value of the field below, now `value`, after a move into a group with `group_value`.
    pub fn value_after_move<'j>(&'j self, group_value: &'j Json, value: &Json) -> Option<&'j Json> {
        let is_bounded =
            self.how == ConstraintEffect::Bounds && self.contradicts(group_value, value);
        if is_bounded && self.over.field.as_ref() == Some(&self.by.field) {
            return Some(group_value);
        }
        let is_set = self.how == ConstraintEffect::Sets && !self.gives.is_empty();
        self.value_below(group_value).filter(|_| is_bounded || is_set)
    }

    /// The value of the same setting in the groups below after the group changes to `group_value`.
    pub fn value_in_subgroups<'j>(&self, group_value: &'j Json) -> Option<&'j Json> {
        let mut rows = constraints_over(&self.by.section, Some(&self.by.field));
        rows.find(|row| row.by == self.by)?.value_below(group_value)
    }

    /// True if new groups below get the value of the setting from their group.
    pub fn is_handed_down(&self) -> bool {
        let mut rows = constraints_over(&self.by.section, Some(&self.by.field));
        rows.any(|row| {
            row.by == self.by && (row.how == ConstraintEffect::Sets || !row.gives.is_empty())
        })
    }

    /// True if the group's value forbids creations in a container of `scope`.
    pub fn forbids(&self, group_value: &Json, scope: Scope) -> bool {
        (self.groups || scope == Scope::Project)
            && self.how == ConstraintEffect::Forbids
            && self.contradicts(group_value, &Json::Null)
    }

    /// True if it applies to the entry `name` of the container at `path`.
    pub fn applies_to(&self, path: &str, name: &str) -> bool {
        let [container_root, entry_root] =
            [path, name].map(|path| path.split('/').next().unwrap_or_default());
        !self.outside || !container_root.eq_ignore_ascii_case(entry_root)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalogue;

    #[test]
    fn a_setting_above_limits_the_one_below() {
        let (locked, open) = ("disabled_and_unoverridable", "disabled_and_overridable");
        let of = "settings";
        for (name, project_value, group_value, expected) in [
            ("visibility", json!("public"), json!("private"), true),
            ("visibility", json!("internal"), json!("internal"), false),
            ("visibility", json!("public"), json!(null), false),
            ("show_diff_preview_in_email", json!(true), json!(false), true),
            ("show_diff_preview_in_email", json!(false), json!(false), false),
            ("shared_runners_enabled", json!(true), json!(locked), true),
            ("shared_runners_enabled", json!(true), json!(open), false),
            ("shared_runners_enabled", json!(false), json!(locked), false),
            ("shared_runners_setting", json!("enabled"), json!(open), true),
            ("shared_runners_setting", json!(open), json!(open), false),
            ("shared_runners_setting", json!(open), json!(locked), true),
            ("shared_runners_setting", json!(locked), json!(locked), false),
            // This setting of a project does not depend on the group.
            ("lfs_enabled", json!(true), json!(false), false),
        ] {
            let found = constraints_over(of, Some(name))
                .any(|row| row.contradicts(&group_value, &project_value));
            assert_eq!(found, expected, "{name} {project_value} {group_value}");
        }
    }

    #[test]
    fn every_row_names_fields_and_values_that_they_may_have() {
        for row in all_constraints() {
            let by = catalogue::section(Scope::Group, &row.by.section).unwrap();
            let by = by.spec(&row.by.field).unwrap_or_else(|| panic!("{row:?}"));
            let over: Vec<_> = Scope::ALL
                .into_iter()
                .filter_map(|scope| {
                    let of = catalogue::section(scope, &row.over.section)?;
                    of.spec(row.over.field.as_deref()?)
                })
                .collect();
            assert_eq!(over.is_empty(), row.how == ConstraintEffect::Forbids, "{row:?}");
            assert_eq!(row.text.is_empty() || row.code.is_empty(), !over.is_empty(), "{row:?}");
            let fits = |schema: &Json, value: &Json| match schema.pointer("/enum") {
                Some(words) => words.as_array().unwrap().contains(value),
                None => value.is_boolean() || schema.get("type").is_none(),
            };
            assert!(row.gives.iter().all(|case| case.over.len() == 1), "{row:?}");
            for case in row.when.iter().chain(&row.gives) {
                assert!(case.by.iter().all(|value| fits(&by.schema, value)), "{row:?}");
                for spec in &over {
                    assert!(case.over.iter().all(|value| fits(&spec.schema, value)), "{row:?}");
                }
            }
        }
    }
}
