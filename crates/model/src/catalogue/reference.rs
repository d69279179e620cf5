//! The reference of every field of manifests, generated from the schemas and the field tables of
//! the kinds. Markdown pages, editors and `undrift explain` show it.

use crate::{
    field::{Availability, Readback, Weakening, Word},
    kind::plain_text,
    release::Release,
};

use super::prelude::*;

/// A sentence that names the fields required to create an entry of `section`.
pub fn required_fields_sentence(section: Section) -> Option<String> {
    let required_fields = text::list_names(section.required_fields);
    (!required_fields.is_empty()).then(|| format!("To be created it needs {required_fields}."))
}

/// The description of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldReference {
    /// The allowed values, as Markdown.
    pub value: String,
    /// The meaning of the field.
    pub meaning: String,
    /// Short remarks about restrictions.
    pub remarks: Vec<String>,
}

/// Describes `property`, one of the properties of `schema`.
pub fn describe_field(property: &Json, schema: &Json) -> FieldReference {
    let field = Field::from_schema(property);
    // A deprecated field may be replaced only in a release after the release of the reference.
    let replacement =
        field.replacement_name().map(|name| Field::from_schema(&schema["properties"][name]));
    let replaced_since = replacement
        .and_then(|new_field| new_field.available.since)
        .filter(|since| since.is_after_reference());
    FieldReference {
        value: allowed_values(property),
        meaning: property["description"].as_str().unwrap_or_default().to_owned(),
        remarks: field_remarks(field, property, replaced_since),
    }
}

/// The allowed values of `schema`, as Markdown.
fn allowed_values(schema: &Json) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", plain_text(word)))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        // If there is a list of words, a pattern only allows other spellings of these words. The
        // pattern is then omitted.
        let has_words = choices.iter().any(|choice| choice["enum"].is_array());
        let choices = choices.iter().filter(|choice| !has_words || choice.get("pattern").is_none());
        return choices.map(allowed_values).collect::<Vec<_>>().join(" or ");
    }
    if schema["oneOf"].is_array() {
        return "reference to a secret".to_owned();
    }
    let types = schema["type"]
        .as_array()
        .map_or_else(|| std::slice::from_ref(&schema["type"]), Vec::as_slice);
    types.iter().map(|json_type| values_of_type(json_type, schema)).collect::<Vec<_>>().join(" or ")
}

/// The allowed values of `json_type`, one of the types in `schema`.
fn values_of_type(json_type: &Json, schema: &Json) -> String {
    match json_type.as_str() {
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("integer") => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(min), Some(max)) if min == max => max.to_string(),
            (min, Some(max)) => format!("{} to {max}", min.unwrap_or_default()),
            (min, None) => format!("number from {}", min.unwrap_or_default()),
        },
        Some("number") => "number".to_owned(),
        Some("array") => format!("list of {}", allowed_values(&schema["items"])),
        Some("object") => "mapping".to_owned(),
        Some("null") => "`null`".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Short remarks about restrictions of the field.
fn field_remarks(field: &Field, schema: &Json, replaced_since: Option<Release>) -> Vec<String> {
    let default = schema.get("default");
    let from_release =
        replaced_since.map(|release| format!(" from release {release} on")).unwrap_or_default();
    let replacement_name = field.replacement_name();
    let deprecation = replacement_name
        .map(|other| format!("deprecated{from_release}: {}", field.replacement_hint(other)));
    let Availability { tier, since, until, local_before, .. } = field.available;
    let since = since.filter(|_| !local_before);
    let value_remarks = [
        default.map(|default| format!("`{}` if left out", plain_text(default))),
        deprecation.or(Some("deprecated".to_owned())).filter(|_| schema["deprecated"] == true),
        (tier > Tier::Free).then(|| format!("{tier} tier")),
        since.map(|release| format!("from release {release}")),
        until.map(|release| format!("gone from release {release} on")),
    ];
    let word_remarks = field.words.iter().flat_map(|Word { word, available, .. }| {
        let since = available.since.map(|release| format!("`{word}` from release {release}"));
        let until =
            available.until.map(|release| format!("`{word}` gone from release {release} on"));
        since.into_iter().chain(until)
    });
    let is_never_read =
        field.read == Readback::Never && field.accepted.includes(WriteRequest::Edit);
    let field_remarks = [
        (field.available.needs_administrator(), "administrators only"),
        (field.accepted == Acceptance::OnEdit, "set right after creation"),
        (field.secrecy() == Secrecy::Sensitive, "plans hide its live value"),
        (is_never_read, "cannot be verified: the service does not return it"),
        (field.read == Readback::IfPresent, "verified only where the service returns it"),
    ];
    let field_remarks = field_remarks
        .into_iter()
        .filter(|(is_relevant, _)| *is_relevant)
        .map(|(_, text)| text.to_owned());
    value_remarks
        .into_iter()
        .flatten()
        .chain(word_remarks)
        .chain(field_remarks)
        .chain(guard_remark(field))
        .collect()
}

/// A remark about the guard that checks a field, and about the changes that the guard refuses.
fn guard_remark(field: &Field) -> Option<String> {
    let condition = match &field.weakens {
        Weakening::Never => return None,
        Weakening::Access => return Some("guarded: `own-access`, `last-owner`".to_owned()),
        Weakening::Shows => return Some("guarded: `visibility` if more people see it".to_owned()),
        Weakening::WhenWider | Weakening::WhenFewer | Weakening::ByKind => "if it protects less",
        Weakening::WhenOff | Weakening::OpensWhenOff => "if it is switched off",
        Weakening::WhenOn | Weakening::OpensWhenOn => "if it is switched on",
        Weakening::WhenLower => "if it is lowered",
        Weakening::WhenHigher => "if it is raised",
        Weakening::WhenCleared => "if it is cleared",
        Weakening::WhenChanged | Weakening::OpensWhenChanged => "if it is changed or cleared",
        Weakening::OpensWhenMoved => "if it is changed without the secrets that are sent there",
        Weakening::OpensWhenOutside => "if it is changed to a URL or a path in another project",
        Weakening::WhenMoreListed => "if something is added, or all cleared",
        Weakening::WhenLater | Weakening::WhenLaterIn(_) => {
            let words: Vec<_> = field.strictness_order().iter().map(plain_text).collect();
            &format!("from left to right in `{}`", words.join("`, `"))
        }
    };
    Some(format!("guarded: `protection` {condition}"))
}
