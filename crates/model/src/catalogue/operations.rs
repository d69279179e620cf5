//! The parameters of every operation.
//!
//! The table of operations describes parameters of paths and queries, and bodies that manifests
//! cannot contain. Fields of manifests are described once, on the structs of the kinds; the table
//! only names the section. This module, one layer above the table, joins both: each field that the
//! request accepts becomes a parameter, under its name in requests.

use crate::{
    field::{Compare, ValueType},
    kind::Spec,
    operation::{Answer, AnyOp, OPERATIONS, Operation, Parameter, Place, Type},
    release::Release,
};

use std::sync::LazyLock;

use super::prelude::*;

/// Every operation that undrift knows: those of the table and those of described kinds.
pub fn all() -> impl Iterator<Item = AnyOp> {
    OPERATIONS.iter().chain(super::all().described()).copied()
}

/// The operation with this id.
pub fn find(id: &str) -> Option<AnyOp> {
    all().find(|op| op.row().id == id)
}

/// The fields of a section that a route accepts, as parameters.
struct Body {
    section: (Scope, &'static str),
    route: Route,
    parameters: Vec<Parameter>,
}

static BODIES: LazyLock<Vec<Body>> = LazyLock::new(|| {
    let named = all().filter_map(|op| op.row().fields);
    named
        .map(|(section, route)| Body { section, route, parameters: accepted(section, route) })
        .collect()
});

/// All parameters of a request for `operation`: first those of the path, then of the query, then of
/// the body.
pub fn parameters(operation: &Operation) -> Vec<&'static Parameter> {
    let own = || operation.parameters();
    let body = BODIES.iter().find(|body| operation.fields == Some((body.section, body.route)));
    // Parameters of the row win: a key in the path is not in the body.
    let fields = body
        .into_iter()
        .flat_map(|body| &body.parameters)
        .filter(|field| own().all(|p| p.name != field.name));
    let mut all: Vec<_> = own().chain(fields).collect();
    all.sort_by_key(|parameter| parameter.place);
    all
}

/// The fields of `section` that `route` accepts. For a container, they include the fields of the
/// sections that are created with it.
fn accepted((scope, section): (Scope, &str), route: Route) -> Vec<Parameter> {
    let Some(section) = super::section(scope, section) else { return Vec::new() };
    let container = section.comes_with_container().then(|| super::container(scope).0);
    let sections = [Some(section), container].into_iter().flatten();
    let specs = sections
        .flat_map(|section| section.table().specs().iter().map(move |spec| (section, spec)));
    let alone = |(_, spec): &(_, &'static Spec)| {
        let name = spec.field.grants.single_level_as.filter(|_| route == Route::Create)?;
        let about = String::leak(format!("A single level, in the place of `{}`.", spec.name));
        Some(Parameter::new(Place::Body, name, Type::Integer, about))
    };
    let singles: Vec<_> = specs.clone().filter_map(|of| alone(&of)).collect();
    specs
        .filter(|(_, spec)| spec.field.accepted.on(route))
        .map(|(section, spec)| {
            let all = parameter(&spec.schema, spec.field);
            // The replacing field may not be part of this request.
            let modern = all.replaced_by.and_then(|name| section.table().get(name));
            let is_replaced = modern.is_none_or(|modern| modern.field.accepted.on(route));
            Parameter {
                required: is_required(section, spec, route),
                deprecated: all.deprecated && is_replaced,
                replaced_by: all.replaced_by.filter(|_| is_replaced),
                value: rows(spec, all.value, route),
                ..all
            }
        })
        .chain(singles)
        .collect()
}

/// An edit identifies rows of a list by their ids, or by their names.
fn rows(spec: &Spec, value: Type, route: Route) -> Type {
    let (Type::Objects(keys), Route::Edit) = (value, route) else { return value };
    if spec.has_secret_rows() {
        return value;
    }
    let part = |name, value, about| Parameter::new(Place::Body, name, value, about);
    if spec.has_named_rows() {
        let gone = part("destroy", Type::Boolean, "Whether to remove the row with this name.");
        return Type::Objects(keys.iter().chain([&gone]).copied().collect::<Vec<_>>().leak());
    }
    let id = part("id", Type::Integer, "The id of the row to change; a new one if left out.");
    let gone = part("_destroy", Type::Boolean, "Whether to remove the row with this id.");
    Type::Objects([id].iter().chain(keys).chain([&gone]).copied().collect::<Vec<_>>().leak())
}

/// An edit only requires the fields that it must repeat.
fn is_required(section: Section, spec: &Spec, route: Route) -> bool {
    if route == Route::Edit && !spec.field.with_every_edit {
        return false;
    }
    let by_schema = section.table().schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| *name == *spec.name));
    by_schema || section.required.contains(&spec.name)
}

fn parameter(schema: &'static Json, field: &'static Field) -> Parameter {
    let about = schema["description"].as_str().unwrap_or_default();
    Parameter {
        tier: field.available.tier,
        since: field.available.since,
        administrators: field.available.is_for_administrators(),
        deprecated: schema["deprecated"] == true,
        replaced_by: field.replaced_by(),
        // A URL that responses show without its credentials often holds some.
        secret: field.secrecy() == Secrecy::Reference
            || (field.secrecy() == Secrecy::Address && field.compare == Compare::Location),
        ..Parameter::new(Place::Body, field.sent_name(), of_field(schema, field), about)
    }
}

fn of_field(schema: &'static Json, field: &Field) -> Type {
    match field {
        Field { value_type: ValueType::File, .. } => Type::File,
        // Requests contain the id of the thing that manifests name.
        Field { names: Some(_), .. } if schema["type"] == "array" => Type::Integers,
        Field { names: Some(_), .. } => Type::Integer,
        _ if field.is_level() => Type::Level,
        _ if schema["format"] == "date" => Type::Date,
        _ => value(schema),
    }
}

/// The type of a property. It is leaked once per process, like the tables.
fn value(schema: &'static Json) -> Type {
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let words: Vec<_> = words.collect();
    if !words.is_empty() {
        return Type::Word(words.leak());
    }
    let kind = &schema["type"];
    match kind.as_str().or_else(|| kind[0].as_str()) {
        Some("boolean") => Type::Boolean,
        Some("integer") => Type::Integer,
        Some("array") => keys(&schema["items"]).map_or(Type::Texts, Type::Objects),
        Some("object") => keys(schema).map_or(Type::Text, Type::Object),
        // Also a choice between text and a reference to a secret.
        _ => Type::Text,
    }
}

/// The keys of the mapping that `schema` describes, if it lists them.
fn keys(schema: &'static Json) -> Option<&'static [Parameter]> {
    let properties = schema["properties"].as_object()?.iter();
    // A key that is only an alias in manifests is not sent.
    let keys = properties.filter(|(_, property)| Field::of(property).replaced_by().is_none());
    let keys = keys.map(|(_, property)| parameter(property, Field::of(property)));
    Some(keys.collect::<Vec<_>>().leak())
}

/// Short remarks about an operation, apart from its parameters.
pub fn facts(row: &Operation) -> Vec<String> {
    let answer = match row.answer {
        Answer::One => "returns one object",
        Answer::List => "returns a list",
        Answer::Map => "returns an object whose keys are data",
        Answer::Nothing => "returns nothing",
        Answer::Unsaid => "what it returns is not described",
    };
    let mut facts = vec![row.purpose.to_owned(), answer.to_owned()];
    let one_of: Vec<_> = row.one_of.iter().map(|name| format!("`{name}`")).collect();
    facts.extend((!one_of.is_empty()).then(|| format!("needs {}", one_of.join(" or "))));
    facts.extend(limits(row.tier, row.since, row.administrators));
    facts
}

/// Short remarks about a parameter that is restricted in some way.
pub fn remarks(parameter: &Parameter) -> Vec<String> {
    let mut remarks = Vec::new();
    if parameter.deprecated {
        remarks.push(
            parameter.replaced_by.map_or_else(
                || "deprecated".to_owned(),
                |other| format!("deprecated: use `{other}`"),
            ),
        );
    }
    remarks.extend(limits(parameter.tier, parameter.since, parameter.administrators));
    remarks.extend(parameter.secret.then(|| "a secret".to_owned()));
    remarks
}

fn limits(
    tier: Tier,
    since: Option<Release>,
    administrators: bool,
) -> impl Iterator<Item = String> {
    let tier = (tier > Tier::Free).then(|| format!("{tier} tier"));
    let since = since.map(|release| format!("from release {release}"));
    tier.into_iter().chain(since).chain(administrators.then(|| "administrators only".to_owned()))
}
