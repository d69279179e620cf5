//! The effects of field changes that guards check, as far as the fields declare them
//! ([`Weakens`]).

use super::{Effect, Removal, Section, Shape, forms, needs, plain_text};
use crate::{
    field::{Field, Risk, Secrecy, Weakens},
    text,
    value::{Json, Object},
};

/// The effects of a change of the fields `changed`, from one comparable form to another. For a new
/// entry, `before` has the defaults of the service; for one that is removed, `after` has nothing.
pub fn changing(
    section: Section,
    changed: &[&str],
    before: &Object,
    after: &Object,
) -> Vec<Effect> {
    let is_private = after.get("visibility").is_some_and(|visibility| visibility == "private");
    let effect = |name: &&str| {
        let (was, is) = (before.get(*name), after.get(*name).unwrap_or(&Json::Null));
        let field = section.field(name);
        let risk = field.weakens.risk()?;
        if field.weakens == Weakens::OpensWhenMoved && !keeps_secret(section, changed, after) {
            return None;
        }
        let how = match risk {
            Risk::Shows => shown(name, was, is, is_private),
            Risk::Weakens | Risk::Opens => weakened(field, name, was, is),
        };
        Some(Effect::Risk(risk, how?))
    };
    changed.iter().filter_map(effect).collect()
}

/// The effects of creating an entry with the fields `after`, which the service gives these
/// defaults.
pub fn creating(section: Section, default: impl Fn(&str) -> Json, after: &Object) -> Vec<Effect> {
    let names = after.keys().map(String::as_str);
    // Only these are compared, and there is one lookup for each default.
    let names: Vec<_> = names.filter(|name| section.field(name).weakens.risk().is_some()).collect();
    let before = names.iter().map(|name| ((*name).to_owned(), default(name))).collect();
    changing(section, &names, &before, after)
}

/// The effects of removing the entry `before`, which unsets each of its fields.
pub fn removing(section: Section, before: &Object) -> Vec<Effect> {
    if section.removal == Removal::Weakens {
        return vec![Effect::Risk(Risk::Weakens, format!("take the {} away", section.noun))];
    }
    let names: Vec<_> =
        protecting(section).filter(|name: &&str| section.has(before, name)).collect();
    changing(section, &names, before, &Object::new())
}

/// The fields of an entry that are a protection each, so that a removal needs their live values.
pub fn protecting(section: Section) -> impl Iterator<Item = &'static str> {
    let each = section.shape == Shape::List && section.removal == Removal::Nothing;
    let specs = section.table().specs().iter().filter(move |_| each);
    let specs = specs.filter(|spec| spec.field.weakens.risk() == Some(Risk::Weakens));
    specs.map(|spec| spec.name)
}

/// Whether an entry with the fields `after` may have a secret that is not written with `changed`.
fn keeps_secret(section: Section, changed: &[&str], after: &Object) -> bool {
    section.table().specs().iter().any(|spec| {
        spec.field.secrecy() == Secrecy::Reference
            && section.has(after, spec.name)
            && !changed.contains(&spec.name)
    })
}

/// How the new value protects less, as the end of a sentence that starts with "would".
fn weakened(field: &Field, name: &str, was: Option<&Json>, is: &Json) -> Option<String> {
    let flag = |value: &Json| value.as_bool().unwrap_or(false);
    let number = |value: &Json| value.as_u64().unwrap_or(0);
    let known = |weaker: &dyn Fn(&Json) -> bool| was.is_none_or(weaker);
    let differs = |was: &Json| !forms::same(field.compare, is, was);
    let replaces = |was: &Json| !is_nothing(was) && differs(was);
    let (is_weaker, how) = match field.weakens {
        Weakens::WhenOff | Weakens::OpensWhenOff => (!flag(is) && known(&flag), "switch off"),
        Weakens::WhenOn | Weakens::OpensWhenOn => {
            (flag(is) && known(&|was| !flag(was)), "switch on")
        }
        Weakens::WhenLower => (known(&|was| number(is) < number(was)), "lower"),
        Weakens::WhenHigher => (number(is) > was.map_or(0, number), "raise"),
        Weakens::WhenCleared => (is_nothing(is) && known(&|was| !is_nothing(was)), "clear"),
        Weakens::OpensWhenMoved => (known(&replaces), "send a stored secret to a new"),
        Weakens::OpensWhenOutside => {
            (is_outside(is) && known(&differs), "load the pipeline from outside with")
        }
        Weakens::WhenMoreListed => (known(&|was| is_wider(was, is)), "widen"),
        Weakens::WhenLater | Weakens::WhenLaterIn(_) => {
            (rank(field, is) > was.map_or(0, |was| rank(field, was)), "lower")
        }
        _ => (known(&replaces), "change"),
    };
    let shows_values = matches!(how, "lower" | "raise");
    let values = |was: &Json| format!(" from {} to {}", word(was), word(is));
    let more = was.filter(|_| shows_values).map(values).unwrap_or_default();
    let how = if is_nothing(is) && how == "change" { "clear" } else { how };
    is_weaker.then(|| format!("{how} `{name}`{more}"))
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

/// The rank of a level of access. A flag that is on counts as `enabled`; so does `internal`.
fn seen(level: &Json) -> usize {
    match level {
        Json::Bool(true) => 2,
        Json::String(word) if word == "internal" => 2,
        Json::String(word) => needs::LEVELS.iter().position(|known| known == word).unwrap_or(0),
        _ => 0,
    }
}

fn is_nothing(value: &Json) -> bool {
    value.is_null() || value == ""
}

/// Whether a path is a URL, or in another project.
fn is_outside(path: &Json) -> bool {
    path.as_str().is_some_and(|path| path.contains("://") || path.contains('@'))
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

/// The position of a value among those of `field`, from the one that protects most. An unknown
/// value comes last.
fn rank(field: &Field, value: &Json) -> usize {
    let (values, value) = (field.from_strictest(), plain_text(value));
    values.iter().position(|one| plain_text(one) == value).unwrap_or(values.len())
}

fn word(value: &Json) -> String {
    if value.is_null() { "none".to_owned() } else { text::escape(&plain_text(value)).into_owned() }
}
