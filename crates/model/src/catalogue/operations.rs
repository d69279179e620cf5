//! The parameters of every operation.
//!
//! The table of operations describes the parameters of paths and queries, and the bodies that
//! manifests cannot contain. Fields of manifests are described only in the descriptions of the
//! kinds. For these fields, the table only names the section. This module joins the table and the
//! descriptions. Each field that a request accepts becomes a parameter, under its name in requests.

use crate::{
    field::{Equality, Requirement, ValueType},
    kind::{FieldSpec, key_defining_field},
    operation::{
        AnyOp, OPERATIONS, Operation, Parameter, ParameterLocation, ParameterType, ResponseBody,
    },
    release::Release,
};

use std::sync::LazyLock;

use super::prelude::*;

/// Every operation that undrift knows, from the table and from described kinds.
pub fn all_operations() -> impl Iterator<Item = AnyOp> {
    OPERATIONS.iter().chain(super::registry().described_operations()).copied()
}

/// The operation with this id.
pub fn find_operation(id: &str) -> Option<AnyOp> {
    all_operations().find(|op| op.row().id == id)
}

/// The fields of a section that a request accepts, as parameters.
struct BodyParameters {
    section: (Scope, &'static str),
    request: WriteRequest,
    parameters: Vec<Parameter>,
}

static BODY_PARAMETERS: LazyLock<Vec<BodyParameters>> = LazyLock::new(|| {
    let body_sections = all_operations().filter_map(|op| op.row().fields);
    body_sections
        .map(|(section, request)| BodyParameters {
            section,
            request,
            parameters: accepted_parameters(section, request),
        })
        .collect()
});

/// All parameters of a request for `operation`. The parameters of the path come first, then the
/// parameters of the query, then the parameters of the body.
pub fn request_parameters(operation: &Operation) -> Vec<&'static Parameter> {
    let mut all_parameters: Vec<_> = operation.parameters().collect();
    let body =
        BODY_PARAMETERS.iter().find(|body| operation.fields == Some((body.section, body.request)));
    // A parameter in the row of the operation takes precedence over a field. For example, a key in
    // the path is not in the body.
    let fields = body
        .into_iter()
        .flat_map(|body| &body.parameters)
        .filter(|field| operation.parameters().all(|parameter| parameter.name != field.name));
    all_parameters.extend(fields);
    all_parameters.sort_by_key(|parameter| parameter.location);
    all_parameters
}

/// The fields of `section` that `request` accepts. For a container, they include the fields of the
/// sections that are created with it.
fn accepted_parameters((scope, section): (Scope, &str), request: WriteRequest) -> Vec<Parameter> {
    let Some(section) = super::find_section(scope, section) else { return Vec::new() };
    let container = section.is_created_with_container().then(|| super::container(scope).0);
    let sections = [Some(section), container].into_iter().flatten();
    let specs =
        sections.flat_map(|section| section.specs().iter().map(move |spec| (section, spec)));
    let single_level_parameters = specs.clone().filter_map(|(_, spec)| {
        let name = spec.field.grants.single_level_as.filter(|_| request == WriteRequest::Create)?;
        let description = String::leak(format!("A single level, in the place of `{}`.", spec.name));
        Some(Parameter::new(ParameterLocation::Body, name, ParameterType::Integer, description))
    });
    specs
        .filter(|(_, spec)| spec.field.accepted.includes(request))
        .map(|(section, spec)| {
            let parameter = field_parameter(spec.field);
            // This request may not accept the field that replaces a deprecated field.
            let replacement = parameter.replaced_by.and_then(|name| section.spec(name));
            let accepts_replacement =
                replacement.is_none_or(|new_spec| new_spec.field.accepted.includes(request));
            Parameter {
                required: is_required(section, spec, request),
                deprecated: parameter.deprecated && accepts_replacement,
                replaced_by: parameter.replaced_by.filter(|_| accepts_replacement),
                value_type: row_value_type(spec, parameter.value_type, request),
                ..parameter
            }
        })
        .chain(single_level_parameters)
        .collect()
}

/// The type of the rows of a list in `request`. An edit identifies rows by their ids, or by their
/// names.
fn row_value_type(
    spec: &FieldSpec,
    value_type: ParameterType,
    request: WriteRequest,
) -> ParameterType {
    let (ParameterType::Objects(keys), WriteRequest::Edit) = (value_type, request) else {
        return value_type;
    };
    if spec.has_secret_rows() {
        return value_type;
    }
    let body_parameter =
        |name, value, about| Parameter::new(ParameterLocation::Body, name, value, about);
    if spec.has_named_rows() {
        let removal_flag = body_parameter(
            "destroy",
            ParameterType::Boolean,
            "Whether to remove the row with this name.",
        );
        return ParameterType::Objects(
            keys.iter().chain([&removal_flag]).copied().collect::<Vec<_>>().leak(),
        );
    }
    let id = body_parameter(
        "id",
        ParameterType::Integer,
        "The id of the row to change; a new one if left out.",
    );
    let removal_by_id = body_parameter(
        "_destroy",
        ParameterType::Boolean,
        "Whether to remove the row with this id.",
    );
    ParameterType::Objects(
        [id].iter().chain(keys).chain([&removal_by_id]).copied().collect::<Vec<_>>().leak(),
    )
}

/// True if `request` requires a field. An edit only requires the fields that it must repeat.
fn is_required(section: Section, spec: &FieldSpec, request: WriteRequest) -> bool {
    let is_required =
        spec.field.required == Requirement::Always || section.required_fields.contains(&spec.name);
    is_required && (request != WriteRequest::Edit || spec.field.with_every_edit)
}

/// The parameter for a field. Its keys and words are leaked once per process, like the tables.
fn field_parameter(field: &'static Field) -> Parameter {
    Parameter {
        tier: field.available.tier,
        since: field.available.since,
        administrators: field.available.needs_administrator(),
        deprecated: field.deprecated.is_some(),
        replaced_by: field.replacement_name(),
        // A URL often contains credentials if responses show it without credentials.
        secret: field.secrecy() == Secrecy::Reference
            || (field.secrecy() == Secrecy::Address && field.compare == Equality::Location),
        ..Parameter::new(
            ParameterLocation::Body,
            field.sent_name(),
            request_type(field),
            field.about,
        )
    }
}

/// The type of a field in requests.
fn request_type(field: &'static Field) -> ParameterType {
    match field.value_type {
        // Requests contain the id of the object that manifests name.
        ValueType::Texts if field.names.is_some() => ParameterType::Integers,
        _ if field.names.is_some() => ParameterType::Integer,
        ValueType::File => ParameterType::File,
        ValueType::Level | ValueType::RuleLevel => ParameterType::Level,
        ValueType::Date => ParameterType::Date,
        ValueType::Boolean => ParameterType::Boolean,
        ValueType::Integer => ParameterType::Integer,
        ValueType::Texts | ValueType::Addresses => ParameterType::Texts,
        ValueType::Mapping | ValueType::Spread => ParameterType::Object(key_parameters(field)),
        ValueType::Rows | ValueType::Grants | ValueType::Approvals | ValueType::LevelGrants => {
            ParameterType::Objects(key_parameters(field))
        }
        _ if !field.words.is_empty() => {
            ParameterType::Word(field.words.iter().map(|word| word.word).collect::<Vec<_>>().leak())
        }
        // This includes values that are either a text or a reference to a secret.
        _ => ParameterType::Text,
    }
}

/// The keys of a mapping, or of the rows of a list. A key that is only an alias in manifests is not
/// sent.
fn key_parameters(field: &'static Field) -> &'static [Parameter] {
    let keys = key_defining_field(field).keys.iter().filter(|key| key.replacement_name().is_none());
    keys.map(field_parameter).collect::<Vec<_>>().leak()
}

/// Short remarks about an operation, apart from its parameters.
pub fn operation_remarks(row: &Operation) -> Vec<String> {
    let response_remark = match row.response {
        ResponseBody::One => "returns one object",
        ResponseBody::List => "returns a list",
        ResponseBody::Map => "returns an object whose keys are data",
        ResponseBody::Nothing => "returns nothing",
        ResponseBody::Undocumented => "what it returns is not described",
    };
    let mut remarks = vec![row.purpose.to_owned(), response_remark.to_owned()];
    let choices: Vec<_> = row.one_of.iter().map(|name| format!("`{name}`")).collect();
    remarks.extend((!choices.is_empty()).then(|| format!("needs {}", choices.join(" or "))));
    remarks.extend(describe_restrictions(row.tier, row.since, row.needs_administrator));
    remarks
}

/// Short remarks about a parameter that is restricted in some way.
pub fn parameter_remarks(parameter: &Parameter) -> Vec<String> {
    let mut remarks = Vec::new();
    if parameter.deprecated {
        remarks.push(
            parameter.replaced_by.map_or_else(
                || "deprecated".to_owned(),
                |other| format!("deprecated: use `{other}`"),
            ),
        );
    }
    remarks.extend(describe_restrictions(
        parameter.tier,
        parameter.since,
        parameter.administrators,
    ));
    remarks.extend(parameter.secret.then(|| "a secret".to_owned()));
    remarks
}

fn describe_restrictions(
    tier: Tier,
    since: Option<Release>,
    needs_administrator: bool,
) -> impl Iterator<Item = String> {
    let tier = (tier > Tier::Free).then(|| format!("{tier} tier"));
    let since = since.map(|release| format!("from release {release}"));
    tier.into_iter()
        .chain(since)
        .chain(needs_administrator.then(|| "administrators only".to_owned()))
}
