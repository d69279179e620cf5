//! The effects of a group setting on containers below the group: the table of `constraints.yaml`.
//!
//! `check` compares both sides if both are declared. A plan compares the declared side with the
//! live one, and orders two steps of which one decides over the other. At its end, a run reads again
//! what a later step may have undone.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::{field::Scope, value::Json, yaml};

/// A setting that decides about another one, or about the creation of entries, below its group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The setting that decides.
    pub by: GroupSetting,
    /// What it decides about.
    pub over: ConstrainedField,
    /// What the service does.
    pub how: ConstraintEffect,
    /// The values that contradict each other.
    #[serde(default)]
    when: Vec<ConstraintCase>,
    /// The values that a change of the group gives what is below.
    #[serde(default)]
    gives: Vec<ConstraintCase>,
    /// Whether it counts in each group above, not only in the nearest one that decides.
    #[serde(default)]
    pub every: bool,
    /// Whether it counts in groups too, the deciding one included.
    #[serde(default)]
    pub groups: bool,
    /// Whether it counts only for entries that name a group of another top-level group.
    #[serde(default)]
    pub outside: bool,
    /// The effect, as text after the name of the setting.
    #[serde(default)]
    pub text: String,
    /// The code of the problem.
    #[serde(default)]
    pub code: String,
}

/// A field of a section of which a group has one entry.
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
    /// The field, unless it is about creations.
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

/// Values of both sides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintCase {
    by: Vec<Json>,
    /// Any, if it is empty.
    #[serde(default)]
    over: Vec<Json>,
}

static CONSTRAINTS: LazyLock<Vec<Constraint>> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/constraints"));

/// The key of the settings of all groups above, by path in lower case, in the object of a group.
pub const SETTINGS_ABOVE: &str = "settings of groups above";

/// All constraints.
pub fn all_constraints() -> impl Iterator<Item = &'static Constraint> {
    CONSTRAINTS.iter()
}

/// The constraints over the field `name` of `section`, or over creations in it.
pub fn constraints_over<'n>(
    section: &'n str,
    name: Option<&'n str>,
) -> impl Iterator<Item = &'static Constraint> + use<'n> {
    all_constraints()
        .filter(move |row| row.over.section == section && row.over.field.as_deref() == name)
}

impl Constraint {
    /// The key of the paths of the groups that have the setting, from the nearest on, in the object of a
    /// group. No field of a response has blanks in its name.
    pub fn deciding_groups_key(&self) -> String {
        format!("{} decided by", self.by.field)
    }

    /// True if the group's value `by` contradicts the value `over`.
    pub fn contradicts(&self, by: &Json, over: &Json) -> bool {
        self.when
            .iter()
            .any(|case| case.by.contains(by) && (case.over.is_empty() || case.over.contains(over)))
    }

    /// The value that a change of the group to `by` gives the field below.
    pub fn value_below<'j>(&'j self, by: &'j Json) -> Option<&'j Json> {
        let given = self.gives.iter().find(|case| case.by.contains(by));
        given
            .and_then(|case| case.over.first())
            .or_else(|| (self.how == ConstraintEffect::Sets && self.gives.is_empty()).then_some(by))
    }

    /// The value that a change of the group to `by` gives the same setting in the groups below it.
    pub fn value_between<'j>(&self, by: &'j Json) -> Option<&'j Json> {
        let mut rows = constraints_over(&self.by.section, Some(&self.by.field));
        rows.find(|row| row.by == self.by)?.value_below(by)
    }

    /// True if the setting of a group decides about the same setting of new groups below it.
    pub fn is_handed_down(&self) -> bool {
        let mut rows = constraints_over(&self.by.section, Some(&self.by.field));
        rows.any(|row| {
            row.by == self.by && (row.how == ConstraintEffect::Sets || !row.gives.is_empty())
        })
    }

    /// True if the group's value `by` forbids creations in a container of `scope`.
    pub fn forbids(&self, by: &Json, scope: Scope) -> bool {
        (self.groups || scope == Scope::Project)
            && self.how == ConstraintEffect::Forbids
            && self.contradicts(by, &Json::Null)
    }

    /// True if it counts for the entry `name` of the container at `path`.
    pub fn applies_to(&self, path: &str, name: &str) -> bool {
        let [top, other] = [path, name].map(|path| path.split('/').next().unwrap_or_default());
        !self.outside || !top.eq_ignore_ascii_case(other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalogue;

    #[test]
    fn a_setting_above_limits_the_one_below() {
        let (shut, open) = ("disabled_and_unoverridable", "disabled_and_overridable");
        let of = "settings";
        for (name, own, above, expected) in [
            ("visibility", json!("public"), json!("private"), true),
            ("visibility", json!("internal"), json!("internal"), false),
            ("visibility", json!("public"), json!(null), false),
            ("show_diff_preview_in_email", json!(true), json!(false), true),
            ("show_diff_preview_in_email", json!(false), json!(false), false),
            ("shared_runners_enabled", json!(true), json!(shut), true),
            ("shared_runners_enabled", json!(true), json!(open), false),
            ("shared_runners_enabled", json!(false), json!(shut), false),
            ("shared_runners_setting", json!("enabled"), json!(open), true),
            ("shared_runners_setting", json!(open), json!(open), false),
            ("shared_runners_setting", json!(open), json!(shut), true),
            ("shared_runners_setting", json!(shut), json!(shut), false),
            // This setting of a project does not depend on the group.
            ("lfs_enabled", json!(true), json!(false), false),
        ] {
            let found = constraints_over(of, Some(name)).any(|row| row.contradicts(&above, &own));
            assert_eq!(found, expected, "{name} {own} {above}");
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
