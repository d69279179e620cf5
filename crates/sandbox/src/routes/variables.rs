//! Variables of projects (reference 1, 4.1) and of groups. The reference does not describe
//! variables of groups. The two types differ in the callers who may manage them, in the licence for
//! scopes, and in the effect of PUT.

use super::fields::FieldType;
use super::prelude::*;

const VARIABLES: RecordTable = RecordTable("variables");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: VARIABLES,
    limit: Some(("ci variables", [8_000, 30_000], |text| ErrorResponse::field_error("base", text))),
    find: |call| {
        if call.method == Method::PUT {
            find_changeable_variable(call)
        } else {
            find_variable(call)
        }
    },
    complete: complete_variable,
    // Project variables have no time of change.
    check_removal: |call, variable| match call.scope {
        GroupOrProject::Group(_) => call.check_unmodified(&variable.updated_at),
        GroupOrProject::Project(_) => Ok(()),
    },
    to_json: |call, variable| Ok(variable_json(call, variable)),
    ..Callbacks::DEFAULT
}];

/// The minimum length of a masked value.
const MIN_MASKED_LENGTH: usize = 8;

const VARIABLE_TYPE: &str = "variable_type";
const ENVIRONMENT_SCOPE: &str = "environment_scope";

fn variable_json(call: &CollectionCall<'_>, variable: &Record) -> Value {
    let mut body = json!({});
    for field in call.collection.fields.iter().filter(|field| field.is_available(call)) {
        body[field.name] = variable.value(field.name);
    }
    set_field_if(&mut body, variable.is_true("hidden"), "value", Value::Null);
    set_field_if(&mut body, call.is_at_least(17, 4), "hidden", variable.is_true("hidden"));
    body
}

fn check_variable(variable: &Record, profile: &Profile) -> Result<()> {
    let mut errors = FieldErrors::default();
    for name in ["masked", "raw"] {
        errors.add_if(variable.value(name).is_null(), name, "is not included in the list");
    }
    let letters_message = "can contain only letters, digits";
    let key = variable.text("key");
    errors.add_if(key.is_empty(), "key", BLANK_TEXT);
    errors.check_length("key", key, MAX_NAME_LENGTH);
    let is_malformed = key.is_empty() || !key.chars().all(is_key_char);
    errors.add_if(is_malformed, "key", format!("{letters_message} and '_'."));
    let environment_scope = variable.text(ENVIRONMENT_SCOPE);
    errors.add_if(environment_scope.is_empty(), "environment_scope", BLANK_TEXT);
    let is_scope_char = |c: char| c.is_ascii_alphanumeric() || "_/\\${}. -*".contains(c);
    let is_malformed =
        environment_scope.is_empty() || !environment_scope.chars().all(is_scope_char);
    let text = format!("{letters_message}, '-', '_', '/', '$', '{{', '}}', '.', '*' and spaces");
    errors.add_if(is_malformed, "environment_scope", text);
    errors.check_length("description", variable.text("description"), MAX_NAME_LENGTH);
    let is_unmaskable = variable.is_true("masked") && !is_maskable_value(variable, profile);
    errors.add_if(is_unmaskable, "value", "is invalid");
    errors.into_result()
}

/// True if the value of a variable can be masked. The value must be long enough and have no spaces
/// or line breaks. Unless the variable is raw, the value must have only characters that are never
/// expanded.
fn is_maskable_value(variable: &Record, profile: &Profile) -> bool {
    let allows_any_character = variable.is_true("raw") && !profile.raw_values_need_plain_alphabet;
    let value = variable.text("value");
    value.chars().count() >= MIN_MASKED_LENGTH
        && value
            .chars()
            .all(|c| if allows_any_character { !c.is_whitespace() } else { is_maskable_char(c) })
}

/// Refuses a variable whose key and scope are taken.
fn check_key_free(call: &CollectionCall<'_>, variable: &Record) -> Result<()> {
    // Only the database column limits the length, and only for groups.
    let is_long = variable.text(ENVIRONMENT_SCOPE).chars().count() > MAX_NAME_LENGTH;
    let is_refused = is_long && matches!(call.scope, GroupOrProject::Group(_));
    refuse_if(is_refused, || ErrorResponse::internal(&"the scope is too long"))?;
    let text = format!("({}) has already been taken", variable.text("key"));
    refuse_if(is_key_taken(call, variable)?, || ErrorResponse::field_error("key", text))
}

/// True if another variable has the key and the scope.
fn is_key_taken(call: &CollectionCall<'_>, variable: &Record) -> Result<bool> {
    let variables =
        VARIABLES.list_with_text(call, call.scope.holder(), "key", variable.text("key"))?;
    let environment_scope = variable.text(ENVIRONMENT_SCOPE);
    Ok(variables
        .iter()
        .any(|other| other.id != variable.id && other.text(ENVIRONMENT_SCOPE) == environment_scope))
}

/// The feature of a project that pipelines and their variables and schedules need.
pub(super) const PIPELINE_FEATURES: &[&str] = &["builds_access_level"];

/// The response for a variable that does not exist.
fn not_found_error(scope: &GroupOrProject) -> ErrorResponse {
    ErrorResponse::not_found(scope.choose("Variable", "GroupVariable"))
}

/// The scope filter in a call.
fn read_scope_filter<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>> {
    match call.get("filter") {
        Some(Value::Object(filter)) => {
            let scope = filter.get("environment_scope").and_then(Value::as_str);
            Ok(scope.filter(|scope| !scope.is_empty()))
        }
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(ErrorResponse::invalid_parameter("filter")),
    }
}

/// The variables with the key in the call, with the least recently changed variable first.
fn find_by_key(call: &CollectionCall<'_>, filter: Option<&str>) -> Result<Vec<Record>> {
    let mut variables =
        VARIABLES.list_with_text(call, call.scope.holder(), "key", call.segment("key"))?;
    variables
        .retain(|variable| filter.is_none_or(|filter| variable.text(ENVIRONMENT_SCOPE) == filter));
    variables.sort_by(|one, other| one.updated_at.cmp(&other.updated_at));
    Ok(variables)
}

/// Finds the variable with the key of the call. If the call has a filter, the variable must have
/// its scope.
fn find_variable(call: &CollectionCall<'_>) -> Result<Record> {
    let mut variables = find_by_key(call, read_scope_filter(call)?)?;
    let text = "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'";
    refuse_if(variables.len() > 1, || ErrorResponse::conflict(text))?;
    variables.pop().ok_or_else(|| not_found_error(call.scope))
}

/// The variable that PUT changes. In a group, it is found by its key alone. If several variables
/// have the key, the least recently changed variable is used. From 16.9 on, the filter is applied
/// first, unless no variable matches it.
fn find_changeable_variable(call: &CollectionCall<'_>) -> Result<Record> {
    if matches!(call.scope, GroupOrProject::Project(_)) {
        if !call.profile().optional_variable_value {
            call.require(&["value"])?;
        }
        return find_variable(call);
    }
    let filter = read_scope_filter(call)?.filter(|_| call.profile().group_variable_filter);
    let matching_variables = find_by_key(call, filter)?;
    let variables =
        if matching_variables.is_empty() { find_by_key(call, None)? } else { matching_variables };
    variables.into_iter().next().ok_or_else(|| not_found_error(call.scope))
}

/// Fills in and checks a new or changed variable.
fn complete_variable(call: &CollectionCall<'_>, variable: &mut Record) -> Result<()> {
    let is_new = variable.id == 0;
    if !is_new && call.profile().put_resets_omitted_flags {
        for field in call.collection.fields.iter().filter(|field| !call.has(field.name)) {
            if matches!(field.field_type, FieldType::Flag | FieldType::Word(_)) {
                variable.set(field.name, field.default.clone());
            }
        }
    }
    for name in [VARIABLE_TYPE, "protected"] {
        refuse_if(variable.value(name).is_null(), || ErrorResponse::null_column(name))?;
    }
    if is_new && call.is_at_least(17, 4) && call.is_true("masked_and_hidden")? {
        variable.set("hidden", true);
        variable.set("masked", true);
    }
    check_variable(variable, call.profile())?;
    // The dialect `put_resets_omitted_flags` resets fields that the call omits. The comparison then
    // uses the reset values.
    let refused_flag = Some(call.profile().put_resets_omitted_flags);
    let is_hidden = !is_new && variable.is_true("hidden");
    let text = "The visibility setting cannot be changed for masked and hidden variables.";
    let is_refused = is_hidden && call.flag("masked")? == refused_flag;
    refuse_if(is_refused, || ErrorResponse::field_error("base", text))?;
    check_key_free(call, variable)
}
