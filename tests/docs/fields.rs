//! The pages about what manifests and `undrift.yaml` hold, from their schemas.

use serde_json::Value as Json;
use undrift::{
    catalogue::{
        self,
        reference::{FieldReference, describe_field, required_fields_sentence},
    },
    field::Scope,
    kind::Section,
    manifest::schema::{self, DocumentKind},
    text,
};

use crate::assert_current;

const INTRODUCTION: &str = "\
# Fields of a manifest

Sections and fields carry the names that the service's API gives them. A field that is not written is not managed. A secret is written
as a reference: `{env: NAME}` for an environment variable, `{file: PATH}` for a file inside the manifest folder.

This page is generated: `UPDATE_SNAPSHOTS=1 cargo test --test docs` writes it again.
";

#[test]
fn the_page_of_fields_is_up_to_date() {
    let [keys, values] = schema::shared_schemas();
    let mut page = format!(
        "{INTRODUCTION}\n# In any document but `kind: Acknowledge`\n\n{}\n# In any entry or value\n\n\
         An entry of a list may also say `state: absent` (it must not exist), `state: unmanaged` (others\n\
         manage it) or `state: present`, which is what an entry without `state` says.\n\n{}",
        table("key", &keys),
        table("key", &values)
    );
    for scope in [Scope::Project, Scope::Group] {
        page += &format!("\n# `kind: {}`\n\n", scope.document_kind());
        let mut schema = DocumentKind::Container(scope).schema();
        let layers = ["kind", "uses", "params", "watch", "ignore_layers"];
        keep(&mut schema, |name| !is_section(scope, name) && !layers.contains(&name));
        page += &table("key", &schema);
        // A container that is never created has no key of its own.
        let written =
            catalogue::sections(scope).filter(|section| !section.table().specs().is_empty());
        written.for_each(|section| page += &of_section(section));
    }
    for kind in [
        DocumentKind::Defaults(Scope::Project),
        DocumentKind::Profile(Scope::Project),
        DocumentKind::Acknowledge,
    ] {
        let mut schema = kind.schema();
        if kind != DocumentKind::Acknowledge {
            let shared = &keys["properties"];
            keep(&mut schema, |name| {
                !is_section(Scope::Project, name) && shared.get(name).is_none()
            });
        }
        page += &document(kind.name(), &schema);
    }
    assert_current("docs/reference/fields.md", &page);
}

fn is_section(scope: Scope, name: &str) -> bool {
    catalogue::find_section(scope, name).is_some() || name == "unlisted"
}

/// Keeps some properties of `schema`, without alternatives to a value.
fn keep(schema: &mut Json, is_kept: impl Fn(&str) -> bool) {
    let properties = schema["properties"].as_object_mut().unwrap();
    properties.retain(|name, _| is_kept(name));
    for property in properties.values_mut().filter(|property| property["anyOf"].is_array()) {
        let mut plain = property["anyOf"][0].take();
        plain["description"] = property["description"].take();
        *property = plain;
    }
}

/// The part on documents of this `kind`, whose keys are all in one `schema`.
fn document(kind: &str, schema: &Json) -> String {
    let required = schema["required"].as_array().unwrap().iter();
    let required: Vec<_> = required.map(|name| format!("`{}`", name.as_str().unwrap())).collect();
    let description = schema["description"].as_str().unwrap();
    format!(
        "\n# `kind: {kind}`\n\n{description}\nIt must have {}.\n\n{}",
        text::join_words(&required),
        table("key", schema)
    )
}

fn of_section(section: Section) -> String {
    let schema = &section.table().schema;
    let needs = required_fields_sentence(section).map(|needs| needs + "\n").unwrap_or_default();
    format!(
        "\n## `{}`\n\n{}\n{needs}\n{}",
        section.section,
        schema["description"].as_str().unwrap_or_default(),
        table("field", schema)
    )
}

/// The properties of `schema` as a table in Markdown.
pub(crate) fn table(head: &str, schema: &Json) -> String {
    let mut page = format!("| {head} | value | meaning |\n|---|---|---|\n");
    rows(&mut page, "", schema);
    page
}

/// One row for each property of `schema`, including nested ones.
fn rows(page: &mut String, prefix: &str, schema: &Json) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let FieldReference { value, meaning, remarks } = describe_field(property, schema);
        let remarks =
            if remarks.is_empty() { String::new() } else { format!(" *{}.*", remarks.join("; ")) };
        let cells = [format!("`{prefix}{name}`"), value, format!("{meaning}{remarks}")];
        *page += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        rows(page, &format!("{prefix}{name}."), property);
        rows(page, &format!("{prefix}{name}[]."), &property["items"]);
    }
}
