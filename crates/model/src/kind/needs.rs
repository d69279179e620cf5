//! Fields that have no effect until another field of the same entry is on
//! ([`Relations::switch_field`](crate::field::Relations::switch_field)).

use super::{LiveEntry, Section};
use crate::{
    field::{self, Field},
    value::{Fields, Json},
};

/// True if `value` is the value of a switch that is off.
pub fn is_off(value: &Json) -> bool {
    !field::is_on(value) || *value == "disabled"
}

/// The state of a switch: the field that another field needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    /// The switch is on or unknown, or there is no switch.
    Ready,
    /// The switch is off and stays off.
    Off,
    /// The request that contains the field also turns the switch on.
    TurnedOn,
}

/// The state of the field that `field` needs. `live` is `None` if the entry is still to be created.
pub fn switch_state(field: &Field, declared: &Fields, live: Option<&LiveEntry>) -> SwitchState {
    let Some(switch) = field.relations.switch_field() else { return SwitchState::Ready };
    let is_declared_off = declared.get(switch).map(|value| value.plain_json().is_some_and(is_off));
    let is_live_off = live.and_then(|live| live.fields.raw().get(switch)).map(is_off);
    match (is_declared_off, is_live_off) {
        (Some(true), _) | (None, Some(true)) => SwitchState::Off,
        (Some(false), Some(true)) => SwitchState::TurnedOn,
        // In a new entry, undeclared switches are off.
        (None, None) if live.is_none() && field.relations.sent_with.is_some() => SwitchState::Off,
        _ => SwitchState::Ready,
    }
}

impl Section {
    /// The reason why the declared field `name` is neither sent nor compared yet. It comes from the
    /// [rules](super::KindRules::wait_reason), or a field that this field needs is off. The reason
    /// is the end of a sentence that starts with "waits".
    pub fn describe_wait(
        self,
        name: &str,
        declared: &Fields,
        live: Option<&LiveEntry>,
        has_no_branch: bool,
    ) -> Option<String> {
        let reason =
            self.rules().wait_reason(self, name, declared, live, has_no_branch).map(str::to_owned);
        reason.or_else(|| {
            let switch = find_awaited_field(self.field(name), name, declared, live)?;
            Some(format!("until `{switch}` is set"))
        })
    }
}

/// The field that the declared field `name` waits for, because that field is off; `None` if there
/// is no such field.
fn find_awaited_field(
    field: &Field,
    name: &str,
    declared: &Fields,
    live: Option<&LiveEntry>,
) -> Option<&'static str> {
    let switch = field.relations.switch_field()?;
    let is_on = declared.plain_json(name).is_some_and(|value| !is_off(value));
    (is_on && switch_state(field, declared, live) == SwitchState::Off).then_some(switch)
}

/// The levels of access to a feature, narrowest first.
pub(super) const ACCESS_WORDS: [&str; 4] = ["disabled", "private", "enabled", "public"];

/// True if a level of access shows more than its limit.
pub fn exceeds_limit(level: &Json, limit: &Json) -> bool {
    let [rank, limit_rank] =
        [level, limit].map(|level| ACCESS_WORDS.iter().position(|name| *level == **name));
    limit_rank.is_some() && rank > limit_rank
}

/// The fields that show more than their limit. Each item is the field, its level, the limiting
/// field, and the level of the limiting field. `find_value` returns a declared or live value.
pub fn fields_above_limit<'s>(
    section: Section,
    find_value: impl Fn(&str) -> Option<Json> + 's,
) -> impl Iterator<Item = (&'static str, Json, &'static str, Json)> + 's {
    section.specs().iter().filter_map(move |spec| {
        let limit_field = spec.field.relations.at_most?;
        let (value, limit) = (find_value(spec.name)?, find_value(limit_field)?);
        exceeds_limit(&value, &limit).then_some((spec.name, value, limit_field, limit))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        field::{Field, Relations},
        kind::testing::{fields, live_entry, project_section},
    };

    fn field_with_switch(switch: &'static str, is_same_request: bool) -> Field {
        let switch = Some(switch);
        let relations = match is_same_request {
            true => Relations { sent_with: switch, ..Relations::default() },
            false => Relations { needs: switch, ..Relations::default() },
        };
        Field { relations, ..Field::default() }
    }

    #[test]
    fn null_false_empty_and_disabled_are_off() {
        for off in [json!(null), json!(false), json!(""), json!("disabled")] {
            assert!(is_off(&off), "{off}");
        }
        for on in [json!(true), json!("enabled"), json!("private"), json!(0), json!([])] {
            assert!(!is_off(&on), "{on}");
        }
    }

    /// Every combination of the declared and the live value of the switch.
    #[test]
    fn a_switch_state_depends_on_both_values() {
        use SwitchState::{Off, Ready, TurnedOn};
        let settings = project_section("settings");
        let make_entry = |raw: Json| Some(live_entry(settings, raw));
        for (declared, new_state, sent_with_state, hidden_state, off_state, on_state) in [
            (json!({}), Ready, Off, Ready, Off, Ready),
            (json!({"lfs_enabled": false}), Off, Off, Off, Off, Off),
            (json!({"lfs_enabled": true}), Ready, Ready, Ready, TurnedOn, Ready),
        ] {
            for is_same_request in [false, true] {
                let (field, declared) =
                    (field_with_switch("lfs_enabled", is_same_request), fields(declared.clone()));
                for (live, expected) in [
                    (None, if is_same_request { sent_with_state } else { new_state }),
                    (make_entry(json!({"id": 7})), hidden_state),
                    (make_entry(json!({"lfs_enabled": false})), off_state),
                    (make_entry(json!({"lfs_enabled": true})), on_state),
                ] {
                    let fields = live.as_ref().map(|entry| &entry.fields);
                    let label = format!("{declared:?} {fields:?} {is_same_request}");
                    assert_eq!(switch_state(&field, &declared, live.as_ref()), expected, "{label}");
                    assert_eq!(
                        switch_state(&Field::default(), &declared, live.as_ref()),
                        Ready,
                        "{label}"
                    );
                    for (value, is_on) in [(json!("x"), true), (json!("disabled"), false)] {
                        let mut declared = declared.clone();
                        declared.insert("own".to_owned(), value.into());
                        let awaited_field =
                            find_awaited_field(&field, "own", &declared, live.as_ref());
                        let is_waiting = is_on && expected == Off;
                        assert_eq!(awaited_field, is_waiting.then_some("lfs_enabled"), "{label}");
                    }
                }
                assert_eq!(field.relations.sent_with, is_same_request.then_some("lfs_enabled"));
            }
        }
    }

    #[test]
    fn a_level_exceeds_lower_levels_only() {
        let levels = ["disabled", "private", "enabled", "public"];
        let find_rank = |level: &str| levels.iter().position(|word| *word == level);
        for level in levels.into_iter().chain(["other"]) {
            for limit in levels.into_iter().chain(["other"]) {
                let expected = find_rank(level)
                    .zip(find_rank(limit))
                    .is_some_and(|(level, most)| level > most);
                assert_eq!(
                    exceeds_limit(&json!(level), &json!(limit)),
                    expected,
                    "{level} {limit}"
                );
            }
        }
    }
}
