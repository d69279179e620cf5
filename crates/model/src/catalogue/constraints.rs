//! The effects of a group setting on the groups and projects below it: the table of
//! `constraints.yaml`.
//!
//! `check` compares both values if both are declared. A plan compares the declared value with the
//! live one, and orders two steps if one of them changes a group setting that constrains the other
//! one. At its end, a run reads again the values that a later step may have changed.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::{field::Scope, value::Json, yaml};

/// A group setting that constrains another setting, or the creation of entries, in the groups and
/// projects below the group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The group setting that constrains.
    pub group_setting: GroupSetting,
    /// The constrained setting, or the section in which the creation of entries is constrained.
    pub constrained: ConstrainedField,
    /// The way in which the service enforces the constraint.
    pub effect: ConstraintEffect,
    /// The combinations of values that contradict each other.
    #[serde(default)]
    contradictions: Vec<ConstraintCase>,
    /// The values that the constrained field gets when the group's value changes.
    #[serde(default)]
    values_below: Vec<ConstraintCase>,
    /// True if the settings of all groups above constrain, not only the setting of the nearest
    /// group.
    #[serde(default)]
    pub from_all_ancestors: bool,
    /// True if the constraint also applies to groups, including the group that has the setting.
    #[serde(default)]
    pub includes_groups: bool,
    /// True if the constraint applies only to entries that name a group of another top-level group.
    #[serde(default)]
    pub outside_hierarchy: bool,
    /// The effect, as the text that follows the name of the setting in a message.
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
    /// The name of the section.
    pub section: String,
    /// The name of the field in the section.
    pub field: String,
}

/// A field of a section, or the creation of its entries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstrainedField {
    /// The name of the section.
    pub section: String,
    /// The name of the field in the section; `None` for the creation of entries.
    pub field: Option<String>,
}

/// The way in which the service enforces a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintEffect {
    /// The service refuses a value below the group that contradicts the group's value.
    Bounds,
    /// Below the group, the service shows the group's value instead of the container's own value.
    Replaces,
    /// A change of the group's value also changes the value below the group. There, the value can
    /// be changed again.
    Sets,
    /// The service refuses to create an entry.
    Forbids,
}

/// Values of the group setting, combined with values of the constrained field.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintCase {
    group_values: Vec<Json>,
    /// The values of the constrained field. An empty list means any value.
    #[serde(default)]
    values: Vec<Json>,
}

static CONSTRAINTS: LazyLock<Vec<Constraint>> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/constraints"));

/// A key that undrift adds to the object of a group. Its value holds the settings of all groups
/// above, by path in lower case.
pub const SETTINGS_ABOVE_KEY: &str = "settings of groups above";

/// All constraints.
pub fn all_constraints() -> impl Iterator<Item = &'static Constraint> {
    CONSTRAINTS.iter()
}

/// The constraints on the field `name` of `section`, or on the creation of its entries if `name` is
/// `None`.
pub fn find_constraints<'n>(
    section: &'n str,
    name: Option<&'n str>,
) -> impl Iterator<Item = &'static Constraint> + use<'n> {
    all_constraints().filter(move |constraint| {
        constraint.constrained.section == section && constraint.constrained.field.as_deref() == name
    })
}

impl Constraint {
    /// A key that undrift adds to the object of a group. Its value lists the paths of the groups
    /// above that have the setting, nearest first. The key contains blanks, so no response field
    /// has the same name.
    pub fn deciding_groups_key(&self) -> String {
        format!("{} decided by", self.group_setting.field)
    }

    /// True if the group's value contradicts `value`.
    pub fn contradicts(&self, group_value: &Json, value: &Json) -> bool {
        self.contradictions.iter().any(|case| {
            case.group_values.contains(group_value)
                && (case.values.is_empty() || case.values.contains(value))
        })
    }

    /// The value of the constrained field after the group setting changes to `group_value`; `None`
    /// if the change sets no value.
    pub fn value_below<'j>(&'j self, group_value: &'j Json) -> Option<&'j Json> {
        let matching_case =
            self.values_below.iter().find(|case| case.group_values.contains(group_value));
        matching_case.and_then(|case| case.values.first()).or_else(|| {
            (self.effect == ConstraintEffect::Sets && self.values_below.is_empty())
                .then_some(group_value)
        })
    }

    /// The value of the constrained field after its container moves into a group with
    /// `group_value`. `value` is the value before the move. `None` if the service keeps the value.
    pub fn value_after_move<'j>(&'j self, group_value: &'j Json, value: &Json) -> Option<&'j Json> {
        let is_bounded =
            self.effect == ConstraintEffect::Bounds && self.contradicts(group_value, value);
        if is_bounded && self.constrained.field.as_ref() == Some(&self.group_setting.field) {
            return Some(group_value);
        }
        let is_set = self.effect == ConstraintEffect::Sets && !self.values_below.is_empty();
        self.value_below(group_value).filter(|_| is_bounded || is_set)
    }

    /// The value of the same setting in the groups below, after the group's own value changes to
    /// `group_value`.
    pub fn value_in_subgroups<'j>(&self, group_value: &'j Json) -> Option<&'j Json> {
        let mut constraints_on_setting =
            find_constraints(&self.group_setting.section, Some(&self.group_setting.field));
        constraints_on_setting
            .find(|constraint| constraint.group_setting == self.group_setting)?
            .value_below(group_value)
    }

    /// True if new groups below get the value of the setting from their group.
    pub fn is_inherited(&self) -> bool {
        let mut constraints_on_setting =
            find_constraints(&self.group_setting.section, Some(&self.group_setting.field));
        constraints_on_setting.any(|constraint| {
            constraint.group_setting == self.group_setting
                && (constraint.effect == ConstraintEffect::Sets
                    || !constraint.values_below.is_empty())
        })
    }

    /// True if the group's value forbids creations in a container of `scope`.
    pub fn forbids(&self, group_value: &Json, scope: Scope) -> bool {
        (self.includes_groups || scope == Scope::Project)
            && self.effect == ConstraintEffect::Forbids
            && self.contradicts(group_value, &Json::Null)
    }

    /// True if the constraint applies to the entry `name` of the container at `path`.
    pub fn applies_to(&self, path: &str, name: &str) -> bool {
        let [container_root, entry_root] =
            [path, name].map(|path| path.split('/').next().unwrap_or_default());
        !self.outside_hierarchy || !container_root.eq_ignore_ascii_case(entry_root)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalogue;

    #[test]
    fn a_group_setting_limits_project_settings() {
        let (locked_value, open_value) = ("disabled_and_unoverridable", "disabled_and_overridable");
        let section_name = "settings";
        for (name, project_value, group_value, expected) in [
            ("visibility", json!("public"), json!("private"), true),
            ("visibility", json!("internal"), json!("internal"), false),
            ("visibility", json!("public"), json!(null), false),
            ("show_diff_preview_in_email", json!(true), json!(false), true),
            ("show_diff_preview_in_email", json!(false), json!(false), false),
            ("shared_runners_enabled", json!(true), json!(locked_value), true),
            ("shared_runners_enabled", json!(true), json!(open_value), false),
            ("shared_runners_enabled", json!(false), json!(locked_value), false),
            ("shared_runners_setting", json!("enabled"), json!(open_value), true),
            ("shared_runners_setting", json!(open_value), json!(open_value), false),
            ("shared_runners_setting", json!(open_value), json!(locked_value), true),
            ("shared_runners_setting", json!(locked_value), json!(locked_value), false),
            // This setting of a project does not depend on its group.
            ("lfs_enabled", json!(true), json!(false), false),
        ] {
            let contradicts = find_constraints(section_name, Some(name))
                .any(|row| row.contradicts(&group_value, &project_value));
            assert_eq!(contradicts, expected, "{name} {project_value} {group_value}");
        }
    }

    #[test]
    fn every_row_names_fields_and_values_that_they_may_have() {
        for row in all_constraints() {
            let group_section =
                catalogue::find_section(Scope::Group, &row.group_setting.section).unwrap();
            let group_spec =
                group_section.spec(&row.group_setting.field).unwrap_or_else(|| panic!("{row:?}"));
            let specs: Vec<_> = Scope::ALL
                .into_iter()
                .filter_map(|scope| {
                    let section = catalogue::find_section(scope, &row.constrained.section)?;
                    section.spec(row.constrained.field.as_deref()?)
                })
                .collect();
            assert_eq!(specs.is_empty(), row.effect == ConstraintEffect::Forbids, "{row:?}");
            assert_eq!(row.text.is_empty() || row.code.is_empty(), !specs.is_empty(), "{row:?}");
            let is_allowed = |schema: &Json, value: &Json| match schema.pointer("/enum") {
                Some(words) => words.as_array().unwrap().contains(value),
                None => value.is_boolean() || schema.get("type").is_none(),
            };
            assert!(row.values_below.iter().all(|case| case.values.len() == 1), "{row:?}");
            for case in row.contradictions.iter().chain(&row.values_below) {
                assert!(
                    case.group_values.iter().all(|value| is_allowed(&group_spec.schema, value)),
                    "{row:?}"
                );
                for spec in &specs {
                    assert!(
                        case.values.iter().all(|value| is_allowed(&spec.schema, value)),
                        "{row:?}"
                    );
                }
            }
        }
    }
}
