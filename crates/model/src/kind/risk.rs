//! The risky effects of field changes, which guards check. This module covers the effects that the
//! descriptions of fields set ([`Weakening`]).

use super::{Effect, Removal, Section, Shape, forms, needs, plain_text};
use crate::{
    field::{Field, Risk, Secrecy, Weakening},
    text,
    value::{Json, Object},
};

/// The risky effects of changing the fields `changed` of an entry from `before` to `after`, both in
/// comparable form. For a new entry, `before` has the defaults of the service; for a removed entry,
/// `after` is empty.
pub fn change_risks(
    section: Section,
    changed: &[&str],
    before: &Object,
    after: &Object,
) -> Vec<Effect> {
    let is_private = after.get("visibility").is_some_and(|visibility| visibility == "private");
    let effects = changed.iter().filter_map(|name| {
        let (old_value, new_value) = (before.get(*name), after.get(*name).unwrap_or(&Json::Null));
        let field = section.field(name);
        let risk = field.weakens.risk()?;
        if field.weakens == Weakening::OpensWhenMoved
            && !keeps_stored_secret(section, changed, after)
        {
            return None;
        }
        let description = match risk {
            Risk::Shows => describe_widening(name, old_value, new_value, is_private),
            Risk::Weakens | Risk::Opens => describe_weakening(field, name, old_value, new_value),
        };
        Some(Effect::Risk(risk, description?))
    });
    effects.collect()
}

/// The effects of creating an entry with the fields `after`. `find_default` returns the service's
/// default of a field.
pub fn creation_risks(
    section: Section,
    find_default: impl Fn(&str) -> Json,
    after: &Object,
) -> Vec<Effect> {
    let names = after.keys().map(String::as_str);
    // Compare only fields with a risk, because the default of each field must be looked up.
    let names: Vec<_> = names.filter(|name| section.field(name).weakens.risk().is_some()).collect();
    let default_object =
        names.iter().map(|name| ((*name).to_owned(), find_default(name))).collect();
    change_risks(section, &names, &default_object, after)
}

/// The effects of removing the entry `before`, which unsets each of its fields.
pub fn removal_risks(section: Section, before: &Object) -> Vec<Effect> {
    if section.removal == Removal::Weakens {
        return vec![Effect::Risk(Risk::Weakens, format!("remove the {}", section.noun))];
    }
    let names: Vec<_> =
        protective_fields(section).filter(|name: &&str| section.has_field(before, name)).collect();
    change_risks(section, &names, before, &Object::new())
}

/// The fields of an entry that protect something. Their live values must be read before a removal.
pub fn protective_fields(section: Section) -> impl Iterator<Item = &'static str> {
    let can_protect = section.shape == Shape::List && section.removal == Removal::Nothing;
    let specs = section.specs().iter().filter(move |_| can_protect);
    let specs = specs.filter(|spec| spec.field.weakens.risk() == Some(Risk::Weakens));
    specs.map(|spec| spec.name)
}

/// True if an entry with the fields `after` may have a stored secret that `changed` does not
/// replace.
fn keeps_stored_secret(section: Section, changed: &[&str], after: &Object) -> bool {
    section.specs().iter().any(|spec| {
        spec.field.secrecy() == Secrecy::Reference
            && section.has_field(after, spec.name)
            && !changed.contains(&spec.name)
    })
}

/// Describes how the new value protects less, as the end of a sentence that starts with "would".
fn describe_weakening(
    field: &Field,
    name: &str,
    old_value: Option<&Json>,
    new_value: &Json,
) -> Option<String> {
    // An unknown old value is treated as different.
    let is_different = old_value.is_none_or(|old| !forms::are_equal(field.compare, new_value, old));
    let is_replaced = is_different && old_value.is_none_or(|old| !is_unset(old));
    let (is_weaker, action) = match field.weakens {
        Weakening::WhenOff | Weakening::OpensWhenOff => {
            (*new_value != true && old_value.is_none_or(|old| *old == true), "switch off")
        }
        Weakening::WhenOn | Weakening::OpensWhenOn => {
            (*new_value == true && old_value.is_none_or(|old| *old != true), "switch on")
        }
        Weakening::WhenLower => {
            (old_value.is_none_or(|old| number_or_zero(new_value) < number_or_zero(old)), "lower")
        }
        Weakening::WhenHigher => {
            (number_or_zero(new_value) > old_value.map_or(0, number_or_zero), "raise")
        }
        Weakening::WhenCleared => {
            (is_unset(new_value) && old_value.is_none_or(|old| !is_unset(old)), "clear")
        }
        Weakening::OpensWhenMoved => (is_replaced, "send a stored secret to a new"),
        Weakening::OpensWhenOutside => {
            (is_outside(new_value) && is_different, "load the pipeline from outside with")
        }
        Weakening::WhenMoreListed => {
            (old_value.is_none_or(|old| is_wider(old, new_value)), "widen")
        }
        Weakening::WhenLater | Weakening::WhenLaterIn(_) => (
            strictness_rank(field, new_value)
                > old_value.map_or(0, |old| strictness_rank(field, old)),
            "lower",
        ),
        _ => (is_replaced, "change"),
    };
    let value_change = match old_value {
        Some(old) if matches!(action, "lower" | "raise") => {
            format!(" from {} to {}", value_text(old), value_text(new_value))
        }
        _ => String::new(),
    };
    let verb = if is_unset(new_value) && action == "change" { "clear" } else { action };
    is_weaker.then(|| format!("{verb} `{name}`{value_change}"))
}

/// Describes how the new value shows more, as the end of a sentence that starts with "would".
fn describe_widening(
    name: &str,
    old_value: Option<&Json>,
    new_value: &Json,
    is_private: bool,
) -> Option<String> {
    // In a private container, people who are not members see only features that are open to
    // everybody.
    let min_rank = access_rank(&Json::from(if is_private { "public" } else { "enabled" }));
    let new_rank = access_rank(new_value);
    let shows_more =
        new_rank >= min_rank && old_value.is_none_or(|old| access_rank(old) < new_rank);
    let old_text = old_value.map(|old| format!(" from {}", value_text(old))).unwrap_or_default();
    shows_more.then(|| format!("widen `{name}`{old_text} to {}", value_text(new_value)))
}

/// The rank of a level of access. A flag that is on, and the level `internal`, have the rank of
/// `enabled`.
fn access_rank(level: &Json) -> usize {
    match level {
        Json::Bool(true) => 2,
        Json::String(word) if word == "internal" => 2,
        Json::String(word) => needs::ACCESS_WORDS.iter().position(|rank| rank == word).unwrap_or(0),
        _ => 0,
    }
}

fn number_or_zero(value: &Json) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn is_unset(value: &Json) -> bool {
    value.is_null() || value == ""
}

/// True if a path is a URL or belongs to another project.
fn is_outside(path: &Json) -> bool {
    path.as_str().is_some_and(|path| path.contains("://") || path.contains('@'))
}

/// True if the list `new_list` contains an item that `old_list` does not. An empty list allows
/// everything.
fn is_wider(old_list: &Json, new_list: &Json) -> bool {
    let [old_items, new_items] = [old_list, new_list].map(|list| -> Vec<_> {
        let items = list.as_str().unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(str::to_lowercase).collect()
    });
    !old_items.is_empty()
        && (new_items.is_empty() || new_items.iter().any(|item| !old_items.contains(item)))
}

/// The position of a value among the values of `field`, from 0 for the strictest. An unknown value is last.
fn strictness_rank(field: &Field, value: &Json) -> usize {
    let (values, value) = (field.strictness_order(), plain_text(value));
    values.iter().position(|candidate| plain_text(candidate) == value).unwrap_or(values.len())
}

fn value_text(value: &Json) -> String {
    if value.is_null() { "none".to_owned() } else { text::escape(&plain_text(value)).into_owned() }
}
