//! The reference of every field of manifests, from the schemas and treatments of the kinds: for
//! Markdown pages, editors, and `undrift explain`.

use crate::{
    field::{Available, Readback, Weakens, Word},
    kind::plain_text,
    release::Release,
};

use super::prelude::*;

/// The fields that creating an entry of `section` needs, as a sentence.
pub fn needed_fields_sentence(section: Section) -> Option<String> {
    let needed = text::list_names(section.required);
    (!needed.is_empty()).then(|| format!("To be created it needs {needed}."))
}

/// The description of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldReference {
    /// The allowed values, as Markdown.
    pub value: String,
    /// Its meaning.
    pub meaning: String,
    /// Short remarks about restrictions.
    pub remarks: Vec<String>,
}

/// Describes `property`, one of the properties of `schema`.
pub fn describe(property: &Json, schema: &Json) -> FieldReference {
    let field = Field::from_schema(property);
    // The replacing field may be newer than the release of the reference.
    let modern = field.replaced_by().map(|name| Field::from_schema(&schema["properties"][name]));
    let replaced =
        modern.and_then(|modern| modern.available.since).filter(|since| since.is_after_reference());
    FieldReference {
        value: allowed_values(property),
        meaning: property["description"].as_str().unwrap_or_default().to_owned(),
        remarks: remarks(field, property, replaced),
    }
}

/// The allowed values.
fn allowed_values(schema: &Json) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", plain_text(word)))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        // A choice that is only a pattern allows other spellings of the words of another choice.
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
    types.iter().map(|kind| values_of_type(kind, schema)).collect::<Vec<_>>().join(" or ")
}

/// The allowed values of the type `kind`, one of those in `schema`.
fn values_of_type(kind: &Json, schema: &Json) -> String {
    match kind.as_str() {
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("integer") => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(least), Some(most)) if least == most => most.to_string(),
            (least, Some(most)) => format!("{} to {most}", least.unwrap_or_default()),
            (least, None) => format!("number from {}", least.unwrap_or_default()),
        },
        Some("number") => "number".to_owned(),
        Some("array") => format!("list of {}", allowed_values(&schema["items"])),
        Some("object") => "mapping".to_owned(),
        Some("null") => "`null`".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Short remarks about restrictions of the field.
fn remarks(field: &Field, schema: &Json, replaced_since: Option<Release>) -> Vec<String> {
    let default = schema.get("default");
    let from =
        replaced_since.map(|release| format!(" from release {release} on")).unwrap_or_default();
    let replacement = field.replaced_by();
    let instead =
        replacement.map(|other| format!("deprecated{from}: {}", field.replacement_hint(other)));
    let Available { tier, since, until, local_before, .. } = field.available;
    let since = since.filter(|_| !local_before);
    let first = [
        default.map(|default| format!("`{}` if left out", plain_text(default))),
        instead.or(Some("deprecated".to_owned())).filter(|_| schema["deprecated"] == true),
        (tier > Tier::Free).then(|| format!("{tier} tier")),
        since.map(|release| format!("from release {release}")),
        until.map(|release| format!("gone from release {release} on")),
    ];
    let words = field.words.iter().flat_map(|Word { word, available, .. }| {
        let since = available.since.map(|release| format!("`{word}` from release {release}"));
        let until =
            available.until.map(|release| format!("`{word}` gone from release {release} on"));
        since.into_iter().chain(until)
    });
    let is_never_read =
        field.read == Readback::Never && field.accepted.includes(WriteRequest::Edit);
    let last = [
        (field.available.needs_administrator(), "administrators only"),
        (field.accepted == Accepted::OnEdit, "set right after creation"),
        (field.secrecy() == Secrecy::Sensitive, "plans hide its live value"),
        (is_never_read, "cannot be verified: the service does not return it"),
        (field.read == Readback::IfPresent, "verified only where the service returns it"),
    ];
    let last = last.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned());
    first.into_iter().flatten().chain(words).chain(last).chain(guard_remark(field)).collect()
}

/// The guard that checks a field, and the changes that it refuses.
fn guard_remark(field: &Field) -> Option<String> {
    let condition = match &field.weakens {
        Weakens::Never => return None,
        Weakens::Access => return Some("guarded: `own-access`, `last-owner`".to_owned()),
        Weakens::Shows => return Some("guarded: `visibility` if more people see it".to_owned()),
        Weakens::WhenWider | Weakens::WhenFewer | Weakens::ByKind => "if it protects less",
        Weakens::WhenOff | Weakens::OpensWhenOff => "if it is switched off",
        Weakens::WhenOn | Weakens::OpensWhenOn => "if it is switched on",
        Weakens::WhenLower => "if it is lowered",
        Weakens::WhenHigher => "if it is raised",
        Weakens::WhenCleared => "if it is cleared",
        Weakens::WhenChanged | Weakens::OpensWhenChanged => "if it is changed or cleared",
        Weakens::OpensWhenMoved => "if it is changed without the secrets that are sent there",
        Weakens::OpensWhenOutside => "if it is changed to a URL or a path in another project",
        Weakens::WhenMoreListed => "if something is added, or all cleared",
        Weakens::WhenLater | Weakens::WhenLaterIn(_) => {
            let words: Vec<_> = field.from_strictest().iter().map(plain_text).collect();
            &format!("from left to right in `{}`", words.join("`, `"))
        }
    };
    Some(format!("guarded: `protection` {condition}"))
}
