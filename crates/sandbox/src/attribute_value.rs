//! Checks the value of a single attribute and converts it to its stored form.

use super::attributes::Bounds;
use crate::prelude::*;

/// True if a value counts as null. A blank text counts as null for flags, numbers and some
/// attributes with a list of words.
pub(super) fn counts_as_null(attribute: &Attribute, value: &Value) -> bool {
    let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
    match attribute.kind {
        ValueKind::Flag | ValueKind::Number(..) => value.is_null() || is_blank,
        ValueKind::OneOf(_) => {
            value.is_null() || (is_blank && attribute.on_null == NullHandling::BlankUnsaved)
        }
        _ => false,
    }
}

/// The value to store for null; `None` if null changes nothing.
pub(super) fn value_for_null(attribute: &Attribute, value: &Value) -> Result<Option<Value>> {
    match attribute.on_null {
        NullHandling::Unsaved | NullHandling::BlankUnsaved => Err(ErrorResponse::not_saved()),
        NullHandling::Above(inherited_value) if !value.is_null() => {
            Ok(Some(inherited_value.into()))
        }
        NullHandling::Stored | NullHandling::Above(_) => Ok(Some(Value::Null)),
        NullHandling::Kept => Ok(None),
        NullHandling::Preset => Ok(Some(attribute.preset.clone())),
        NullHandling::False => Ok(Some(false.into())),
        NullHandling::Last => Ok(match attribute.kind {
            ValueKind::OneOf(values) => values.last().map(|value| (*value).into()),
            _ => None,
        }),
        NullHandling::Refused => Err(ErrorResponse::empty_parameter(attribute.name)),
        NullHandling::Unlisted => Err(ErrorResponse::field_error(
            attribute.name_in_errors(),
            "is not included in the list",
        )),
    }
}

/// The checked value of a single attribute; `None` if null changes nothing.
pub(super) fn parse_value(
    attribute: &Attribute,
    name: &str,
    value: &Value,
) -> Result<Option<Value>> {
    Ok(match attribute.kind {
        ValueKind::Flag
        | ValueKind::TwinOf(_)
        | ValueKind::AliasOf(_)
        | ValueKind::OppositeOf(_) => read_flag(name, value)?.map(Value::Bool),
        ValueKind::Text(max_length)
        | ValueKind::Pattern(max_length)
        | ValueKind::File(max_length)
        | ValueKind::Name(max_length) => match (attribute.kind, read_text(name, value)?) {
            (ValueKind::Name(_), None) => None,
            (ValueKind::Name(_), Some(text)) if text.is_empty() => None,
            (ValueKind::Text(_), None) => Some(attribute.preset.clone()),
            (_, None) => Some(Value::Null),
            (_, Some(text)) => Some(check_text(attribute, text, max_length)?),
        },
        ValueKind::Number(bounds) | ValueKind::Count(bounds) => match read_integer(name, value)? {
            Some(number) => Some(check_bounds(attribute, number, bounds)?),
            None => matches!(attribute.kind, ValueKind::Count(_)).then_some(Value::Null),
        },
        ValueKind::OneOf(values) => match read_text(name, value)? {
            Some(text) if !values.contains(&text.as_str()) => {
                return Err(ErrorResponse::unlisted_parameter_value(name));
            }
            text => text.map(Value::from),
        },
        ValueKind::Choice(values) => {
            read_allowed_integer(name, value, |number| values.contains(&number))?.map(Value::from)
        }
        ValueKind::Topics
        | ValueKind::CleanupPolicy
        | ValueKind::Claims(_)
        | ValueKind::Elsewhere => None,
    })
}

/// Checks that a number is within its bounds.
fn check_bounds(attribute: &Attribute, number: i64, bounds: Bounds) -> Result<Value> {
    let Bounds { least, most, complaint } = bounds;
    if (least..=most).contains(&number) {
        return Ok(number.into());
    }
    let message = match complaint {
        Some(complaint) => complaint.to_owned(),
        None if number < least => format!("must be greater than or equal to {least}"),
        None => format!("must be less than or equal to {most}"),
    };
    // The service adds a second message for a negative duration.
    if attribute.name == "build_timeout" && number < 0 {
        let base_message = "Maximum job timeout has a value which could not be accepted";
        let body = json!({ "base": [base_message], attribute.name_in_errors(): [message] });
        return Err(ErrorResponse::bad_request_message(body));
    }
    Err(ErrorResponse::field_error(attribute.name_in_errors(), message))
}

/// Checks the syntax of a text, and that it has at most `max_length` characters.
fn check_text(attribute: &Attribute, text: String, max_length: usize) -> Result<Value> {
    let escapes_repository = text.starts_with('/') || text.contains("..");
    let error = match attribute.kind {
        ValueKind::Pattern(_) => re2::syntax_error(&text),
        ValueKind::File(_) => escapes_repository
            .then(|| "cannot include leading slash or directory traversal.".to_owned()),
        _ => None,
    };
    let error = error.or_else(|| length_error(&text, max_length));
    refuse_field(attribute.name_in_errors(), error).map(|()| text.into())
}

/// Checks the components of the subject claim (`sub`) of tokens. The first component must be
/// `project_path`.
pub(super) fn check_claims(
    attribute: &Attribute,
    claims: Vec<String>,
    allowed_claims: &[&str],
) -> Result<Value> {
    let (field, mut errors) = (attribute.name_in_errors(), FieldErrors::default());
    errors.add_if(claims.is_empty(), field, "is too short (minimum is 1 character)");
    let has_path_first = claims.first().is_some_and(|first| first == "project_path");
    let order_message = "project_path must be the first element of the sub claim";
    errors.add_if(!has_path_first, field, order_message);
    for claim in claims.iter().filter(|name| !allowed_claims.contains(&name.as_str())) {
        errors.add(field, format!("{claim} is not an allowed sub claim component"));
    }
    errors.into_result()?;
    Ok(claims.into())
}

/// Splits texts at commas into topics, sorts them and removes duplicates. `None` if a topic is too long
/// or not ASCII.
pub(super) fn normalize_topics(requested_topics: &[String]) -> Option<Value> {
    let mut topics: Vec<&str> = requested_topics
        .iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|topic| !topic.is_empty())
        .collect();
    topics.sort_unstable();
    topics.dedup();
    let are_valid = topics.iter().all(|word| word.is_ascii() && word.len() <= 255);
    are_valid.then(|| topics.into())
}
