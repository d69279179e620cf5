//! The service's defaults for undeclared fields of new things.
//!
//! `undrift export` leaves these values out, so that exported manifests contain only decisions. A
//! value is left out if it is listed here or empty (`null`, empty text or an empty list). Defaults
//! that an installation or a group above decides, such as the visibility, are not listed and always
//! written; a value that many projects share then becomes part of their `Defaults`. Defaults of
//! described kinds are in their descriptions. The values are those of the reference (2, 4.3; 1,
//! 2.2, 2.3 and 2.9; beyond: groups, A.4; collections); a test compares them with the sandbox.

use std::{collections::BTreeMap, sync::LazyLock};

use crate::{field::Scope, kind::Section, value::Json, yaml};

/// Defaults by scope, section and field. Keys of nested mappings follow a dot.
static KNOWN: LazyLock<BTreeMap<Scope, Sections>> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/presets"));

type Sections = BTreeMap<&'static str, BTreeMap<&'static str, Json>>;

/// The default of the field `name` in a new `section` of the container at `path`: `null` if
/// unknown. Keys of nested mappings follow a dot.
pub fn of(section: Section, name: &str, path: &str) -> Json {
    let known = KNOWN.get(&section.home.scope).and_then(|of| of.get(section.section)?.get(name));
    match known {
        Some(Json::String(text)) if text == "{name}" => {
            path.rsplit('/').next().unwrap_or(path).into()
        }
        known => {
            known.or(section.field(name).default.service.as_ref()).cloned().unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn every_row_names_a_field_and_has_a_value_that_it_may_have() {
        let sections = KNOWN.iter().flat_map(|(scope, of)| of.iter().map(move |of| (scope, of)));
        for (scope, (section, fields)) in sections {
            let of = catalogue::section(*scope, section).unwrap();
            for (name, value) in fields {
                let (field, within) = name.split_once('.').unwrap_or((name, ""));
                // Fields of one scope are listed for both.
                let known =
                    Scope::ALL.into_iter().filter_map(|scope| catalogue::section(scope, section));
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
