//! Limits that a group above sets for settings of the groups and projects in it.
//!
//! If a manifest declares that group, `check` compares the two. If none does, and a limited field
//! differs, the plan asks for the live settings of the group.

use crate::{kind::visibility_rank, value::Json};

/// What happens to a setting that a group above does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// The service refuses it.
    Refused,
    /// The service stores it, but responses show the value of the group above.
    Shown,
}

/// What happens if the setting `name` is declared as `own` and the group above does not allow that:
/// its setting that [bounds](crate::field::Field::bounded_by) `name` is `above`. `None` if it is
/// allowed.
pub fn outranks(name: &str, own: &Json, above: &Json) -> Option<OnLimit> {
    let sight = |value: &Json| visibility_rank(value.as_str()?);
    let is_shut = |setting: &Json| *setting == "disabled_and_unoverridable";
    let (is_outranked, comes) = match name {
        "visibility" => (sight(own)? > sight(above)?, OnLimit::Refused),
        "show_diff_preview_in_email" => (*own == true && *above == false, OnLimit::Shown),
        "shared_runners_enabled" => (*own == true && is_shut(above), OnLimit::Refused),
        "shared_runners_setting" => {
            let is_wider = *own == "enabled" && *above != "enabled";
            (is_wider || (is_shut(above) && !is_shut(own)), OnLimit::Refused)
        }
        _ => return None,
    };
    is_outranked.then_some(comes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{field::Scope, kinds::settings};

    #[test]
    fn a_setting_above_limits_the_one_below() {
        let (shut, open) = ("disabled_and_unoverridable", "disabled_and_overridable");
        let refused = Some(OnLimit::Refused);
        for (name, own, above, found) in [
            ("visibility", json!("public"), json!("private"), refused),
            ("visibility", json!("internal"), json!("internal"), None),
            ("visibility", json!("public"), json!(null), None),
            ("show_diff_preview_in_email", json!(true), json!(false), Some(OnLimit::Shown)),
            ("show_diff_preview_in_email", json!(false), json!(false), None),
            ("shared_runners_enabled", json!(true), json!(shut), refused),
            ("shared_runners_enabled", json!(true), json!(open), None),
            ("shared_runners_enabled", json!(false), json!(shut), None),
            ("shared_runners_setting", json!("enabled"), json!(open), refused),
            ("shared_runners_setting", json!(open), json!(open), None),
            ("shared_runners_setting", json!(open), json!(shut), refused),
            // This setting of a project does not depend on the group.
            ("lfs_enabled", json!(true), json!(false), None),
        ] {
            assert_eq!(outranks(name, &own, &above), found, "{name} {own} {above}");
        }
    }

    #[test]
    fn each_limit_is_a_setting_of_groups() {
        for scope in Scope::ALL {
            let section = settings::KIND.in_scope(scope).unwrap();
            let group = settings::KIND.in_scope(Scope::Group).unwrap().table();
            for spec in section.table().specs() {
                let Some(by) = spec.field.bounded_by.as_deref() else { continue };
                assert!(group.get(by).is_some(), "{by}");
                let words = ["public", "enabled"].map(Json::from);
                let mut own = words.into_iter().chain([true.into()]);
                let low = ["private", "disabled_and_unoverridable"].map(Json::from);
                let low: Vec<_> = low.into_iter().chain([false.into()]).collect();
                let is_known =
                    own.any(|own| low.iter().any(|low| outranks(&spec.name, &own, low).is_some()));
                assert!(is_known, "{}", spec.name);
            }
        }
    }
}
