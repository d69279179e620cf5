//! Fills in the templates of fields, and checks the results with the schema.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::json;

use super::text::{Filler, has_template};
use crate::{
    desired::DeclaredFields,
    kind::{Section, forms::CONDITION_KEYS, is_list},
    manifest::{
        faults::{FaultTexts, Faults, placeholders, texts},
        read::{
            document::{LayerEntry, identify_entry},
            layers::BUILT_IN_PARAMS,
        },
        schema::find_refusal,
    },
    origin::Sourced,
    secret::{Reference, has_reference},
    text,
    value::{Json, Value},
};

/// Fills in the templates in the identity of `entry`. Returns the key and the fields of the entry;
/// `None` after a fault.
pub(super) fn fill_identity<'p>(
    section: Section,
    entry: &'p LayerEntry,
    filler: &Filler<'_>,
    faults: &mut Faults,
) -> Option<(String, Cow<'p, DeclaredFields>)> {
    if !entry.has_templates || section.identity.is_empty() {
        return Some((entry.key(section).to_owned(), Cow::Borrowed(&entry.fields)));
    }
    let mut fields: BTreeMap<&str, _> = entry.fields.iter().collect();
    let mut is_valid = true;
    for name in section.identity {
        if let Some(field) = fields.get_mut(name) {
            is_valid &= fill_templates(section, name, field, filler, faults);
        }
    }
    let key =
        identify_entry(section, &|name| fields.get(name).map(|field| field.value.clone())).name;
    is_valid.then(|| (key, Cow::Owned(fields.into_iter().collect())))
}

/// Fills in every template in the field `name`. Reports faults. Returns true if the result is
/// valid.
pub(super) fn fill_templates(
    section: Section,
    name: &str,
    field: &mut Sourced<Value>,
    filler: &Filler<'_>,
    faults: &mut Faults,
) -> bool {
    let (json, spec) = (field.value.plain_json(), section.spec(name));
    let has_name_template = field.value.sources().iter().any(Reference::is_template);
    let has_value_template = json.is_some_and(|json| match spec {
        Some(spec) if !spec.has_secret_rows() => has_template(&spec.schema, json),
        _ => has_reference(json),
    });
    if !has_value_template && !has_name_template {
        return true;
    }
    let template = json.map(ToString::to_string).unwrap_or_default();
    let fault = match filler.fill_field(section, name, field) {
        Err(error) if filler.is_reported_as_missing(&error) => return false,
        Err(error) => faults.push(*error.fault),
        Ok(()) if has_name_template || spec.is_none() => return true,
        Ok(()) => {
            let checked_json = checkable_json(&field.value);
            let is_list_field = spec.is_some_and(|spec| is_list(&spec.schema));
            if is_list_field
                && checked_json.as_ref().is_some_and(|json| plain_values(json).any(Json::is_object))
            {
                // The fault is reported where the list is read.
                return false;
            }
            let why = checked_json.and_then(|json| {
                plain_values(&json).find_map(|json| find_refusal(section, name, json))
            });
            let Some(why) = why else {
                if let Some(warning) = find_foreign_braces(&template) {
                    faults.report_key(warning, &field.origin, &[]);
                }
                return true;
            };
            let texts = if field.value.plain_json().is_some_and(has_reference) {
                texts::FILLED_REFERENCE
            } else {
                texts::FILLED_VALUE
            };
            faults.report_key(texts, &field.origin, placeholders![name, why])
        }
    };
    fault.set_label(format!("for `{}`", filler.path()));
    false
}

/// The value as JSON that its schema can check. A dummy reference replaces each secret in a list or
/// mapping. `None` if the whole value is a secret or a file, which needs no check.
fn checkable_json(value: &Value) -> Option<Cow<'_, Json>> {
    match value {
        Value::Plain(json) => Some(Cow::Borrowed(json)),
        Value::Secret(Reference::Data(data)) => {
            data.to_json(&mut |_| Ok::<_, ()>(json!({"env": "NAME"}))).ok().map(Cow::Owned)
        }
        Value::Secret(_) | Value::File(_) => None,
    }
}

/// The plain values in `value`: for a condition, the lists `at_least` and `none_of`; otherwise
/// `value` itself.
fn plain_values(value: &Json) -> impl Iterator<Item = &Json> {
    let (plain_value, conditions) = match value {
        Json::Object(object) if object.keys().all(|key| CONDITION_KEYS.contains(&&**key)) => {
            (None, Some(object.values()))
        }
        json => (Some(json), None),
    };
    plain_value.into_iter().chain(conditions.into_iter().flatten())
}

/// The warning about braces in `template` that look like the syntax of other tools: a name in
/// double braces, or braces after `$` or `%`.
fn find_foreign_braces(template: &str) -> Option<FaultTexts> {
    let has_double_braces = template.match_indices("{{").any(|(start, braces)| {
        let inner = template[start + braces.len()..].split("}}").next().unwrap_or_default();
        let is_expression =
            inner.strip_prefix(' ').is_some_and(|name| text::looks_like_name(name.trim()));
        let is_reference = inner.starts_with("env:") || inner.starts_with("file:");
        (is_expression || is_reference || BUILT_IN_PARAMS.contains(&inner))
            && !template[..start].ends_with(['$', '%', '{'])
    });
    let mut sign_matches = template.match_indices("${").chain(template.match_indices("%{"));
    let has_sign = sign_matches
        .any(|(sign_start, sign)| !template[sign_start + sign.len()..].starts_with('{'));
    let sign_warning = has_sign.then_some(texts::DOLLAR_BEFORE_TEMPLATE);
    if has_double_braces { Some(texts::KEPT_BRACES) } else { sign_warning }
}
