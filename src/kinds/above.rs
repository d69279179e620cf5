//! What a group above has to say of the settings of what is in it.
//!
//! Where a manifest declares that group, `check` compares the two. Where none does, a plan asks what
//! the group says, once a field differs of which it has a say.

use crate::{kind::visibility_rank, value::Json};

/// What becomes of a setting for which a group above says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// The service refuses it.
    Refused,
    /// The service keeps it, and shows what the group above says.
    Shown,
}

/// What comes of it that the setting `name` is declared as `own` where the setting of the group above
/// that [bounds](crate::field::Field::bounded_by) it is `above`, if that does not allow it.
pub fn outranks(name: &str, own: &Json, above: &Json) -> Option<Above> {
    let sight = |value: &Json| visibility_rank(value.as_str()?);
    let is_shut = |setting: &Json| *setting == "disabled_and_unoverridable";
    let (is_outranked, comes) = match name {
        "visibility" => (sight(own)? > sight(above)?, Above::Refused),
        "show_diff_preview_in_email" => (*own == true && *above == false, Above::Shown),
        "shared_runners_enabled" => (*own == true && is_shut(above), Above::Refused),
        "shared_runners_setting" => {
            let is_wider = *own == "enabled" && *above != "enabled";
            (is_wider || (is_shut(above) && !is_shut(own)), Above::Refused)
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
    fn a_group_above_sets_the_bounds() {
        let (shut, open) = ("disabled_and_unoverridable", "disabled_and_overridable");
        let refused = Some(Above::Refused);
        for (name, own, above, found) in [
            ("visibility", json!("public"), json!("private"), refused),
            ("visibility", json!("internal"), json!("internal"), None),
            ("visibility", json!("public"), json!(null), None),
            ("show_diff_preview_in_email", json!(true), json!(false), Some(Above::Shown)),
            ("show_diff_preview_in_email", json!(false), json!(false), None),
            ("shared_runners_enabled", json!(true), json!(shut), refused),
            ("shared_runners_enabled", json!(true), json!(open), None),
            ("shared_runners_enabled", json!(false), json!(shut), None),
            ("shared_runners_setting", json!("enabled"), json!(open), refused),
            ("shared_runners_setting", json!(open), json!(open), None),
            ("shared_runners_setting", json!(open), json!(shut), refused),
            // What a project says itself counts there.
            ("lfs_enabled", json!(true), json!(false), None),
        ] {
            assert_eq!(outranks(name, &own, &above), found, "{name} {own} {above}");
        }
    }

    #[test]
    fn what_is_bounded_is_compared_with_a_setting_of_groups() {
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
