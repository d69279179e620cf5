//! The effects of field changes that guards check, as far as the descriptions of the fields declare
//! them ([`Weakens`]).

use super::{Effect, Removal, Section, Shape, forms, needs, plain_text};
use crate::{
    field::{Field, Risk, Secrecy, Weakens},
    text,
    value::{Json, Object},
};

/// The effects of a change of the fields `changed`, from one comparable form to another. For a new
/// entry, `before` has the defaults of the service; for a removed one, `after` is empty.
pub fn change_risks(
    section: Section,
    changed: &[&str],
    before: &Object,
    after: &Object,
) -> Vec<Effect> {
    let is_private = after.get("visibility").is_some_and(|visibility| visibility == "private");
    let effects = changed.iter().filter_map(|name| {
        let (old, new) = (before.get(*name), after.get(*name).unwrap_or(&Json::Null));
        let field = section.field(name);
        let risk = field.weakens.risk()?;
        if field.weakens == Weakens::OpensWhenMoved && !keeps_stored_secret(section, changed, after)
        {
            return None;
        }
        let description = match risk {
            Risk::Shows => describe_widening(name, old, new, is_private),
            Risk::Weakens | Risk::Opens => describe_weakening(field, name, old, new),
        };
        Some(Effect::Risk(risk, description?))
    });
    effects.collect()
}

/// The effects of creating an entry with the fields `after`. `default` returns the service's
/// default of a field.
pub fn creation_risks(
    section: Section,
    default: impl Fn(&str) -> Json,
    after: &Object,
) -> Vec<Effect> {
    let names = after.keys().map(String::as_str);
    // Only these fields are compared; each needs a lookup of its default.
    let names: Vec<_> = names.filter(|name| section.field(name).weakens.risk().is_some()).collect();
    let before = names.iter().map(|name| ((*name).to_owned(), default(name))).collect();
    change_risks(section, &names, &before, after)
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

/// The fields of an entry that protect something. A removal needs their live values.
pub fn protective_fields(section: Section) -> impl Iterator<Item = &'static str> {
    let has_protective_fields = section.shape == Shape::List && section.removal == Removal::Nothing;
    let specs = section.specs().iter().filter(move |_| has_protective_fields);
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

/// How the new value protects less, as the end of a sentence that starts with "would".
fn describe_weakening(field: &Field, name: &str, old: Option<&Json>, new: &Json) -> Option<String> {
    // An unknown old value counts as different.
    let differs = old.is_none_or(|old| !forms::are_equal(field.compare, new, old));
    let is_replaced = differs && old.is_none_or(|old| !is_unset(old));
    let (is_weaker, action) = match field.weakens {
        Weakens::WhenOff | Weakens::OpensWhenOff => {
            (*new != true && old.is_none_or(|old| *old == true), "switch off")
        }
        Weakens::WhenOn | Weakens::OpensWhenOn => {
            (*new == true && old.is_none_or(|old| *old != true), "switch on")
        }
        Weakens::WhenLower => {
            (old.is_none_or(|old| number_or_zero(new) < number_or_zero(old)), "lower")
        }
        Weakens::WhenHigher => (number_or_zero(new) > old.map_or(0, number_or_zero), "raise"),
        Weakens::WhenCleared => (is_unset(new) && old.is_none_or(|old| !is_unset(old)), "clear"),
        Weakens::OpensWhenMoved => (is_replaced, "send a stored secret to a new"),
        Weakens::OpensWhenOutside => {
            (is_outside(new) && differs, "load the pipeline from outside with")
        }
        Weakens::WhenMoreListed => (old.is_none_or(|old| is_wider(old, new)), "widen"),
        Weakens::WhenLater | Weakens::WhenLaterIn(_) => (
            strictness_rank(field, new) > old.map_or(0, |old| strictness_rank(field, old)),
            "lower",
        ),
        _ => (is_replaced, "change"),
    };
    let value_change = match old {
        Some(old) if matches!(action, "lower" | "raise") => {
            format!(" from {} to {}", value_text(old), value_text(new))
        }
        _ => String::new(),
    };
    let verb = if is_unset(new) && action == "change" { "clear" } else { action };
    is_weaker.then(|| format!("{verb} `{name}`{value_change}"))
}

/// Describes how the new value shows more, as the end of a sentence that starts with "would".
fn describe_widening(
    name: &str,
    old: Option<&Json>,
    new: &Json,
    is_private: bool,
) -> Option<String> {
    // In a private container, others see only parts that are open to everybody.
    let min_rank = access_rank(&Json::from(if is_private { "public" } else { "enabled" }));
    let new_rank = access_rank(new);
    let is_wider = new_rank >= min_rank && old.is_none_or(|old| access_rank(old) < new_rank);
    let old_text = old.map(|old| format!(" from {}", value_text(old))).unwrap_or_default();
    is_wider.then(|| format!("widen `{name}`{old_text} to {}", value_text(new)))
}

/// The rank of a level of access. A flag that is on counts as `enabled`; so does `internal`.
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

/// True if the list `new` contains an item that `old` does not. An empty list means everything.
fn is_wider(old: &Json, new: &Json) -> bool {
    let [old, new] = [old, new].map(|list| -> Vec<_> {
        let items = list.as_str().unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(str::to_lowercase).collect()
    });
    !old.is_empty() && (new.is_empty() || new.iter().any(|item| !old.contains(item)))
}

/// The position of a value among those of `field`, strictest first. An unknown value comes last.
fn strictness_rank(field: &Field, value: &Json) -> usize {
    let (values, value) = (field.strictest_first(), plain_text(value));
    values.iter().position(|candidate| plain_text(candidate) == value).unwrap_or(values.len())
}

fn value_text(value: &Json) -> String {
    if value.is_null() { "none".to_owned() } else { text::escape(&plain_text(value)).into_owned() }
}
