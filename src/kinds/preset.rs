//! What the service gives to something new of which nobody says anything, field by field.
//!
//! `undrift export` leaves such values out, so that what it writes is what somebody decided. The rule
//! is the simplest honest one: a value is left out if it stands here, or if it is nothing (`null`,
//! empty text or an empty list). What an installation or a group above decides for new things, such
//! as the visibility, does not stand here and is always written; what many projects have in common
//! then stands in their `Defaults`. What a described kind gives stands in its description. The values are those of the reference (2, 4.3; 1, 2.2, 2.3 and
//! 2.9; beyond: groups, A.4; collections); a test holds them against the sandbox.

use std::{collections::BTreeMap, sync::LazyLock};

use crate::{field::Scope, kind::Section, value::Json, yaml};

/// What is known, by scope, section and field. The keys of a mapping within a section follow a dot.
static KNOWN: LazyLock<BTreeMap<Scope, Sections>> =
    LazyLock::new(|| yaml::built_in(include_str!("presets.yaml")));

type Sections = BTreeMap<&'static str, BTreeMap<&'static str, Json>>;

/// What the field `name` of a new `section` is in the container at `path`: `null` where nothing is
/// known. The keys of a mapping within the section follow a dot.
pub fn of(section: Section, name: &str, path: &str) -> Json {
    let known = KNOWN.get(&section.home.scope).and_then(|of| of.get(section.section)?.get(name));
    match known {
        Some(Json::String(text)) if text == "{name}" => {
            path.rsplit('/').next().unwrap_or(path).into()
        }
        known => known.or(section.field(name).preset.as_ref()).cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_row_names_a_field_and_has_a_value_that_it_may_have() {
        let sections = KNOWN.iter().flat_map(|(scope, of)| of.iter().map(move |of| (scope, of)));
        for (scope, (section, fields)) in sections {
            let of = kinds::section(*scope, section).unwrap();
            for (name, value) in fields {
                let (field, within) = name.split_once('.').unwrap_or((name, ""));
                // What only one scope has stands in the rows of both.
                let known =
                    Scope::ALL.into_iter().filter_map(|scope| kinds::section(scope, section));
                assert!(known.into_iter().any(|of| of.table().get(field).is_some()), "{name}");
                let Some(spec) = of.table().get(field) else { continue };
                let schema = match within {
                    "" => &spec.schema,
                    within => &spec.schema["properties"][within],
                };
                assert!(!schema.is_null() && !value.is_null(), "{section}.{name}");
            }
        }
    }
}
