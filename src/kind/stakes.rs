//! The effects of field changes that guards check, as far as the fields declare them
//! ([`crate::field::Stake`]).

use std::borrow::Cow;

use super::{Effect, Removal, Section, plain_text};
use crate::{
    field::{Stake, When},
    text,
    value::{Json, Object},
};

/// The effects of a change of the fields `changed`, from one comparable form to another.
pub fn changing(
    section: Section,
    changed: &[&str],
    before: &Object,
    after: &Object,
) -> Vec<Effect> {
    let is_private = after.get("visibility").is_some_and(|visibility| visibility == "private");
    let effect = |name: &&str| {
        let (was, is) = (before.get(*name), after.get(*name).unwrap_or(&Json::Null));
        match &section.field(name).stake {
            Stake::Weakens(when) => weakened(when, name, was, is).map(Effect::Weakens),
            Stake::Shows => shown(name, was, is, is_private).map(Effect::Shows),
            Stake::Nothing | Stake::Access | Stake::ByKind => None,
        }
    };
    changed.iter().filter_map(effect).collect()
}

/// The effect of removing an entry.
pub fn removing(section: Section) -> Option<Effect> {
    let how = || Effect::Weakens(format!("take the {} away", section.noun));
    (section.removal == Removal::Weakens).then(how)
}

/// How the new value protects less, as the end of a sentence that starts with "would".
fn weakened(when: &When, name: &str, was: Option<&Json>, is: &Json) -> Option<String> {
    let flag = |value: &Json| value.as_bool().unwrap_or(false);
    let number = |value: &Json| value.as_u64().unwrap_or(0);
    let known = |weaker: &dyn Fn(&Json) -> bool| was.is_none_or(weaker);
    let (is_weaker, how) = match when {
        When::Off => (!flag(is) && known(&flag), "switch off"),
        When::On => (flag(is) && known(&|was| !flag(was)), "switch on"),
        When::Lower => (known(&|was| number(is) < number(was)), "lower"),
        When::Higher => (number(is) > was.map_or(0, number), "raise"),
        When::Cleared => (is_nothing(is) && known(&|was| !is_nothing(was)), "clear"),
        When::Changed => (known(&|was| !is_nothing(was) && was != is), "change"),
        When::Wider => (known(&|was| is_wider(was, is)), "widen"),
        When::Later(words) => (place(words, is) > was.map_or(0, |was| place(words, was)), "lower"),
    };
    let shows_values = matches!(when, When::Lower | When::Higher | When::Later(_));
    let values = |was: &Json| format!(" from {} to {}", word(was), word(is));
    let values = was.filter(|_| shows_values).map(values).unwrap_or_default();
    let how = if is_nothing(is) && how == "change" { "clear" } else { how };
    is_weaker.then(|| format!("{how} `{name}`{values}"))
}

/// How the new value shows more.
fn shown(name: &str, was: Option<&Json>, is: &Json, is_private: bool) -> Option<String> {
    // In a private container, others see only parts that are open to everybody.
    let least = seen(&Json::from(if is_private { "public" } else { "enabled" }));
    let now = seen(is);
    let is_more = now >= least && was.is_none_or(|was| seen(was) < now);
    let from = was.map(|was| format!(" from {}", word(was))).unwrap_or_default();
    is_more.then(|| format!("widen `{name}`{from} to {}", word(is)))
}

/// The levels of access, from the narrowest. A flag that is on counts as `enabled`; so does
/// `internal`.
const SEEN: [&str; 4] = ["disabled", "private", "enabled", "public"];

fn seen(level: &Json) -> usize {
    match level {
        Json::Bool(true) => 2,
        Json::String(word) if word == "internal" => 2,
        Json::String(word) => SEEN.iter().position(|known| known == word).unwrap_or(0),
        _ => 0,
    }
}

fn is_nothing(value: &Json) -> bool {
    value.is_null() || value == ""
}

/// Whether the list `is` contains an item that `was` does not. An empty list means everything.
fn is_wider(was: &Json, is: &Json) -> bool {
    let items = |list: &Json| -> Vec<String> {
        let items = list.as_str().unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(str::to_lowercase).collect()
    };
    let (was, is) = (items(was), items(is));
    !was.is_empty() && (is.is_empty() || is.iter().any(|item| !was.contains(item)))
}

/// The position of a value among `words`. An unknown value comes last.
fn place(words: &[Cow<'static, str>], value: &Json) -> usize {
    let value = plain_text(value);
    words.iter().position(|word| *word == value).unwrap_or(words.len())
}

fn word(value: &Json) -> String {
    if value.is_null() { "none".to_owned() } else { text::escape(&plain_text(value)).into_owned() }
}
