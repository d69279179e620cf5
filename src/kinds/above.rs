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

/// The setting of a group above, by its `settings`, that does not allow `name` to be `own`, and what
/// comes of it.
pub fn outranks<'a>(
    name: &str,
    own: &Json,
    settings: impl Fn(&str) -> Option<Json> + 'a,
) -> Option<(&'static str, Above)> {
    let sight = |value: &Json| visibility_rank(value.as_str()?);
    let runners = || settings("shared_runners_setting");
    let is_shut = |above: &Json| *above == "disabled_and_unoverridable";
    match name {
        "visibility" => {
            let above = settings("visibility")?;
            (sight(own)? > sight(&above)?).then_some(("visibility", Above::Refused))
        }
        "show_diff_preview_in_email" if *own == true => {
            let is_off = settings("show_diff_preview_in_email")? == false;
            is_off.then_some(("show_diff_preview_in_email", Above::Shown))
        }
        "shared_runners_enabled" if *own == true => {
            is_shut(&runners()?).then_some(("shared_runners_setting", Above::Refused))
        }
        "shared_runners_setting" => {
            let above = runners()?;
            let is_wider = *own == "enabled" && above != "enabled";
            let is_refused = is_wider || (is_shut(&above) && !is_shut(own));
            is_refused.then_some(("shared_runners_setting", Above::Refused))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DIFFS: &str = "show_diff_preview_in_email";

    #[test]
    fn a_group_above_sets_the_bounds() {
        let unoverridable = json!({"shared_runners_setting": "disabled_and_unoverridable"});
        let overridable = json!({"shared_runners_setting": "disabled_and_overridable"});
        let refused = |name| Some((name, Above::Refused));
        for (name, own, above, found) in [
            (
                "visibility",
                json!("public"),
                json!({"visibility": "private"}),
                refused("visibility"),
            ),
            ("visibility", json!("internal"), json!({"visibility": "internal"}), None),
            ("visibility", json!("public"), json!({}), None),
            (DIFFS, json!(true), json!({DIFFS: false}), Some((DIFFS, Above::Shown))),
            (DIFFS, json!(false), json!({DIFFS: false}), None),
            // What a project says itself counts there.
            ("lfs_enabled", json!(true), json!({"lfs_enabled": false}), None),
            ("auto_devops_enabled", json!(true), json!({"auto_devops_enabled": false}), None),
            (
                "shared_runners_enabled",
                json!(true),
                unoverridable.clone(),
                refused("shared_runners_setting"),
            ),
            ("shared_runners_enabled", json!(true), overridable.clone(), None),
            ("shared_runners_enabled", json!(false), unoverridable.clone(), None),
            (
                "shared_runners_setting",
                json!("enabled"),
                overridable.clone(),
                refused("shared_runners_setting"),
            ),
            ("shared_runners_setting", json!("disabled_and_overridable"), overridable, None),
            (
                "shared_runners_setting",
                json!("disabled_and_overridable"),
                unoverridable,
                refused("shared_runners_setting"),
            ),
        ] {
            assert_eq!(
                outranks(name, &own, |name| above.get(name).cloned()),
                found,
                "{name} {own} {above}"
            );
        }
    }
}
