//! The service's defaults for undeclared fields of new objects.
//!
//! `undrift export` leaves these values out, so that exported manifests contain only decisions. A
//! value is left out if it is the [default](crate::field::FieldDefaults::service) of its field or
//! empty (`null`, empty text or an empty list). A default that depends on the installation or on a
//! group above, such as the visibility, is not described, so the value of such a field is always
//! exported. A value that many projects share then becomes part of their `Defaults`. A test
//! compares the defaults with the sandbox.

use crate::{kind::Section, value::Json};

/// The placeholder in a default for the last part of the container's path.
const SLUG_PLACEHOLDER: &str = "{name}";

/// The default of the field `name` in a new `section` of the container at `path`; `null` if
/// unknown. In `name`, the key of a nested mapping follows a dot.
pub fn service_default(section: Section, name: &str, path: &str) -> Json {
    let field = section.spec(name).map(|spec| spec.field).or_else(|| {
        let (mapping, key) = name.split_once('.')?;
        section.spec(mapping).and_then(|spec| spec.key_field(key))
    });
    match field.and_then(|field| field.default.service.as_ref()) {
        Some(Json::String(text)) if text == SLUG_PLACEHOLDER => {
            path.rsplit('/').next().unwrap_or(path).into()
        }
        default => default.cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue;

    #[test]
    fn every_default_is_valid() {
        let mut default_count = 0;
        for spec in catalogue::all_sections().flat_map(crate::kind::Section::specs) {
            let key_fields = spec.key_fields.iter().filter(|_| spec.is_mapping());
            let key_pairs =
                key_fields.map(|key_field| (key_field, &spec.schema["properties"][key_field.name]));
            for (field, schema) in key_pairs.chain([(spec.field, &spec.schema)]) {
                let Some(default) = &field.default.service else { continue };
                default_count += 1;
                assert!(jsonschema::is_valid(schema, default), "{}: {default}", field.name);
            }
        }
        assert!(default_count > 100, "{default_count}");
    }
}
