//! Compares every attribute of a project in the reference (2, 4.3; how they are shown: 1, 2.8) with
//! the fields of the kinds.
//!
//! The facts are in `data/attributes.csv`, read from the reference a second time and independently.
//! Its column `read` has the attribute's name in the project object; with `?` the reference does
//! not list it there, and empty means that it is never shown.

use std::collections::{BTreeMap, BTreeSet};

use undrift::{
    catalogue,
    field::{Acceptance, Readback, Scope, Secrecy, WriteRequest},
    kind::{FieldSpec, FieldTable},
    value::Json,
};

/// Attributes without a field.
const NO_FIELD: [(&str, &str); 3] = [
    ("id", "addresses the project in the path of a request"),
    ("path", "is the last part of the manifest's own path"),
    ("namespace_id", "follows from the first part of the manifest's own path"),
];

/// The fields of `settings:`, including those of later releases.
fn settings() -> &'static FieldTable {
    catalogue::find_section(Scope::Project, "settings").unwrap().table()
}

/// The fields of `create:`.
fn create() -> &'static FieldTable {
    catalogue::container(Scope::Project).0.table()
}

type Row = BTreeMap<&'static str, &'static str>;

fn rows() -> BTreeMap<&'static str, Row> {
    let mut lines = include_str!("data/attributes.csv").lines();
    let columns: Vec<_> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| columns.iter().copied().zip(line.split(',')).collect::<Row>())
        .map(|row| (row["attribute"], row))
        .collect()
}

/// The fields of `create:` in the request that creates a project; the others belong to other
/// requests.
fn attributes_of_create() -> impl Iterator<Item = &'static FieldSpec> {
    create().specs().iter().filter(|spec| spec.field.accepted != Acceptance::Never)
}

/// Every field of the reference's release by its name in requests, and whether it is one of
/// `create:`.
fn fields() -> BTreeMap<String, (&'static FieldSpec, bool)> {
    let of_settings = settings().specs().iter().map(|spec| (spec, false));
    let of_create = attributes_of_create().map(|spec| (spec, true));
    of_settings
        .chain(of_create)
        .filter(|(spec, _)| !spec.field.is_newer_than_reference())
        .map(|(spec, create)| (spec.field.sent_name().to_owned(), (spec, create)))
        .collect()
}

/// The type of a property in the words of the table.
fn type_of(spec: &FieldSpec) -> &str {
    if spec.field.is_upload() {
        return "file";
    }
    if matches!(spec.field.secrecy(), Secrecy::Reference | Secrecy::Address) {
        return "string";
    }
    let types = &spec.schema["type"];
    types.as_str().or_else(|| types[0].as_str()).unwrap_or_default()
}

#[test]
fn every_attribute_is_a_field_and_every_field_an_attribute() {
    let rows = rows();
    assert_eq!(rows.len(), 88);
    let expected: BTreeSet<_> = rows
        .keys()
        .copied()
        .filter(|name| NO_FIELD.iter().all(|(other, _)| other != name))
        .collect();
    let fields = fields();
    assert_eq!(fields.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    let specs = settings().specs().iter().chain(attributes_of_create());
    assert_eq!(fields.len(), specs.filter(|spec| !spec.field.is_newer_than_reference()).count());
}

/// Attributes that a create accepts according to the reference, and the service's own code ignores
/// at 18.9.
const IGNORED_ON_CREATE: [&str; 2] = ["merge_pipelines_enabled", "merge_trains_enabled"];

#[test]
fn every_field_is_treated_as_the_reference_says() {
    let rows = rows();
    for (name, (spec, create)) in fields() {
        let (row, field) = (&rows[name.as_str()], &spec.field);
        assert_eq!(field.available.tier.to_string(), row["tier"], "{name}");
        assert_eq!(type_of(spec), row["type"], "{name}");
        for (route, column) in [
            (WriteRequest::Create, "create"),
            (WriteRequest::CreateForUser, "create_for_user"),
            (WriteRequest::Edit, "edit"),
        ] {
            let is_dropped =
                route == WriteRequest::Create && IGNORED_ON_CREATE.contains(&name.as_str());
            let is_accepted = row[column] == "yes" && !is_dropped;
            assert_eq!(field.accepted.includes(route), is_accepted, "{name} {column}");
        }
        assert_eq!(
            create,
            row["edit"] == "-",
            "{name}: what cannot be edited belongs below `create:`"
        );
        let read = match &field.read {
            Readback::Never => String::new(),
            Readback::IfPresent => format!("{}?", spec.name),
            Readback::Same | Readback::Nested => spec.name.to_owned(),
            Readback::As(other) => other.to_string(),
        };
        assert_eq!(read, row["read"], "{name}");
        let since = field.available.since.map(|release| release.to_string()).unwrap_or_default();
        assert_eq!(since, row["since"], "{name}");
        // An attribute that a later release replaces is not deprecated in this one.
        let modern = field.replacement_name().and_then(|modern| settings().get(modern));
        let replaced_later = modern.is_some_and(|modern| modern.field.is_newer_than_reference());
        let deprecated = spec.schema["deprecated"] == true && !replaced_later;
        assert_eq!(
            field.replacement_name().filter(|_| deprecated).unwrap_or(if deprecated {
                "yes"
            } else {
                ""
            }),
            row["deprecated"],
            "{name}"
        );
        if !row["values"].is_empty() {
            let values: Vec<_> = row["values"].split(' ').map(Json::from).collect();
            assert_eq!(spec.schema["enum"], Json::from(values), "{name}");
        }
    }
}

#[test]
fn unverifiable_fields_are_listed() {
    let named = |table: &'static [FieldSpec], read: Readback| -> Vec<&str> {
        table.iter().filter(|spec| spec.field.read == read).map(|spec| spec.name).collect()
    };
    let of_settings = settings().specs();
    assert_eq!(named(of_settings, Readback::Never), [""; 0]);
    assert_eq!(
        named(of_settings, Readback::IfPresent),
        [
            "import_url",
            "merge_pipelines_enabled",
            "merge_trains_enabled",
            "build_git_strategy",
            "releases_access_level",
            "environments_access_level",
            "feature_flags_access_level",
            "infrastructure_access_level",
            "monitor_access_level",
            "operations_access_level",
            "emails_disabled",
            "show_diff_preview_in_email",
        ]
    );
    assert_eq!(named(create().specs(), Readback::Never).len(), create().specs().len());
}

#[test]
fn fields_for_certain_roles_are_listed() {
    let named = |has: fn(&FieldSpec) -> bool| {
        settings().specs().iter().filter(|s| has(s)).map(|s| s.name).collect::<Vec<_>>()
    };
    assert_eq!(
        named(|spec| spec.field.available.needs_administrator()),
        ["max_artifacts_size", "repository_storage", "mirror_user_id"]
    );
    assert_eq!(named(|spec| spec.field.secrecy() != Secrecy::Open), ["import_url"]);
    assert_eq!(named(|spec| spec.field.is_upload()), ["avatar"]);
    assert_eq!(named(|spec| spec.field.accepted == Acceptance::Never), [""; 0]);
}
