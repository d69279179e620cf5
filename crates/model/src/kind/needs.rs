//! Fields that have no effect until another field of the same entry is on
//! ([`Relations::switch_field`](crate::field::Relations::switch_field)).

use super::{LiveEntry, Section};
use crate::{
    field::{self, Field},
    value::{Fields, Json},
};

/// True if `value` means off.
pub fn is_off(value: &Json) -> bool {
    !field::is_on(value) || *value == "disabled"
}

/// The state of the field that another field needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    /// It is on or unknown, or the field needs no other field.
    Ready,
    /// It is off and stays off.
    Off,
    /// The request that contains the field also turns it on.
    TurnedOn,
}

/// The state of the field that `field` needs. `live` is `None` if the entry is still to be created.
pub fn switch_state(field: &Field, declared: &Fields, live: Option<&LiveEntry>) -> SwitchState {
    let Some(switch) = field.relations.switch_field() else { return SwitchState::Ready };
    let declared_off = declared.get(switch).map(|value| value.plain_json().is_some_and(is_off));
    let live_off = live.and_then(|live| live.fields.raw().get(switch)).map(is_off);
    match (declared_off, live_off) {
        (Some(true), _) | (None, Some(true)) => SwitchState::Off,
        (Some(false), Some(true)) => SwitchState::TurnedOn,
        // In a new entry, undeclared switches are off.
        (None, None) if live.is_none() && field.relations.sent_with.is_some() => SwitchState::Off,
        _ => SwitchState::Ready,
    }
}

impl Section {
    /// The reason why the declared field `name` is neither sent nor compared yet: from the
    /// [rules](super::KindRules::wait_reason), or because a field that it needs is off. The reason
    /// is the end of a sentence that starts with "waits".
    pub fn describe_wait(
        self,
        name: &str,
        declared: &Fields,
        live: Option<&LiveEntry>,
        is_empty: bool,
    ) -> Option<String> {
        let reason =
            self.rules().wait_reason(self, name, declared, live, is_empty).map(str::to_owned);
        reason.or_else(|| {
            let switch = find_awaited_field(self.field(name), name, declared, live)?;
            Some(format!("until `{switch}` is set"))
        })
    }
}

/// The field that a declared field waits for, if it is off.
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
pub fn exceeds(level: &Json, limit: &Json) -> bool {
    let [rank, limit_rank] =
        [level, limit].map(|level| ACCESS_WORDS.iter().position(|name| *level == **name));
    limit_rank.is_some() && rank > limit_rank
}

/// The fields that show more than their limit: the field, its level, the limiting field and its
/// level. `find_value` returns a declared or live value.
pub fn fields_above_limit<'s>(
    section: Section,
    value_of: impl Fn(&str) -> Option<Json> + 's,
) -> impl Iterator<Item = (&'static str, Json, &'static str, Json)> + 's {
    section.specs().iter().filter_map(move |spec| {
        let limit_field = spec.field.relations.at_most?;
        let (value, limit) = (value_of(spec.name)?, value_of(limit_field)?);
        exceeds(&value, &limit).then_some((spec.name, value, limit_field, limit))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        field::{Field, Relations},
        kind::testing::{fields, live_entry, section},
    };

    fn field_with_switch(switch: &'static str, same_request: bool) -> Field {
        let switch = Some(switch);
        let relations = match same_request {
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
    fn the_state_of_a_switch_follows_from_the_declared_and_the_live_switch() {
        use SwitchState::{Off, Ready, TurnedOn};
        let settings = section("settings");
        let make_entry = |raw: Json| Some(live_entry(settings, raw));
        for (declared, new, new_beside, unseen, live_off, live_on) in [
            (json!({}), Ready, Off, Ready, Off, Ready),
            (json!({"lfs_enabled": false}), Off, Off, Off, Off, Off),
            (json!({"lfs_enabled": true}), Ready, Ready, Ready, TurnedOn, Ready),
        ] {
            for beside in [false, true] {
                let (field, declared) =
                    (field_with_switch("lfs_enabled", beside), fields(declared.clone()));
                for (found, expected) in [
                    (None, if beside { new_beside } else { new }),
                    (make_entry(json!({"id": 7})), unseen),
                    (make_entry(json!({"lfs_enabled": false})), live_off),
                    (make_entry(json!({"lfs_enabled": true})), live_on),
                ] {
                    let fields = found.as_ref().map(|entry| &entry.fields);
                    let about = format!("{declared:?} {fields:?} {beside}");
                    assert_eq!(
                        switch_state(&field, &declared, found.as_ref()),
                        expected,
                        "{about}"
                    );
                    assert_eq!(
                        switch_state(&Field::default(), &declared, found.as_ref()),
                        Ready,
                        "{about}"
                    );
                    for (value, is_on) in [(json!("x"), true), (json!("disabled"), false)] {
                        let mut declared = declared.clone();
                        declared.insert("own".to_owned(), value.into());
                        let awaited_field =
                            find_awaited_field(&field, "own", &declared, found.as_ref());
                        let waiting = is_on && expected == Off;
                        assert_eq!(awaited_field, waiting.then_some("lfs_enabled"), "{about}");
                    }
                }
                assert_eq!(field.relations.sent_with, beside.then_some("lfs_enabled"));
            }
        }
    }

    #[test]
    fn a_level_exceeds_lower_levels_only() {
        let levels = ["disabled", "private", "enabled", "public"];
        let find_rank = |level: &str| levels.iter().position(|known| *known == level);
        for level in levels.into_iter().chain(["other"]) {
            for most in levels.into_iter().chain(["other"]) {
                let expected =
                    find_rank(level).zip(find_rank(most)).is_some_and(|(level, most)| level > most);
                assert_eq!(exceeds(&json!(level), &json!(most)), expected, "{level} {most}");
            }
        }
    }
}
