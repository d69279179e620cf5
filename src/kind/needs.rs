//! A field that has no effect until another one of the same entry is on ([`crate::field::Needs`]).

use super::{LiveEntry, Section};
use crate::{
    field::{Field, Limits},
    value::{Fields, Json, Value},
};

/// Whether `value` is that of something that is off.
pub fn is_off(value: &Json) -> bool {
    !Limits::is_on(value) || *value == "disabled"
}

/// How it stands with what a field needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    /// It needs nothing, or nobody knows.
    Ready,
    /// What it needs is off, and stays so.
    Off,
    /// What it needs is turned on by the request that carries the field.
    TurnedOn,
}

/// How it stands with what `field` needs, where `declared` is to be and `live` is there; a `live` of
/// `None` is an entry that is about to be created.
pub fn switch_state(field: &Field, declared: &Fields, live: Option<&LiveEntry>) -> SwitchState {
    let Some(needs) = &field.needs else { return SwitchState::Ready };
    let wanted = declared.get(&*needs.switch).map(|value| value.plain().is_some_and(is_off));
    let found = live.and_then(|live| live.fields.get(&*needs.switch)).map(is_off);
    match (wanted, found) {
        (Some(true), _) | (None, Some(true)) => SwitchState::Off,
        (Some(false), Some(true)) => SwitchState::TurnedOn,
        // What nobody turns on is off in something new.
        (None, None) if live.is_none() && needs.same_request => SwitchState::Off,
        _ => SwitchState::Ready,
    }
}

/// What a declared field waits for, if what it needs is off.
pub fn waits<'f>(
    field: &'f Field,
    name: &str,
    declared: &Fields,
    live: Option<&LiveEntry>,
) -> Option<&'f str> {
    let is_on = declared.get(name).and_then(Value::plain).is_some_and(|value| !is_off(value));
    let waits = is_on && switch_state(field, declared, live) == SwitchState::Off;
    field.needs.as_ref().filter(|_| waits).map(|needs| &*needs.switch)
}

/// What a request that carries `field` has to carry besides: the name of that field.
pub fn in_request(field: &Field) -> Option<&str> {
    field.needs.as_ref().filter(|needs| needs.same_request).map(|needs| &*needs.switch)
}

/// The levels of access from the narrowest to the widest.
const LEVELS: [&str; 4] = ["disabled", "private", "enabled", "public"];

/// Whether one level of access shows more than another.
pub fn exceeds(level: &Json, other: &Json) -> bool {
    let rank = |level: &Json| LEVELS.iter().position(|known| *level == **known);
    rank(level) > rank(other) && rank(other).is_some()
}

/// The fields that show more than they may where `of` declares or has them: each with its own level,
/// and what it may not exceed with that one's.
pub fn exceeding<'s>(
    section: Section,
    of: impl Fn(&str) -> Option<Json> + 's,
) -> impl Iterator<Item = (&'static str, Json, &'static str, Json)> + 's {
    section.table().specs().iter().filter_map(move |spec| {
        let most = spec.field.at_most.as_deref()?;
        let (own, limit) = (of(&spec.name)?, of(most)?);
        exceeds(&own, &limit).then_some((&*spec.name, own, most, limit))
    })
}
