//! Variables of a project (reference 1, 4.1), and those of a group, which the reference leaves out.
//! They differ in who manages them, in the licence for scopes, and in what PUT changes.

use super::names::{MAX_NAME_LENGTH, is_key_char, is_maskable};
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] =
    &[VARIABLES, Collection { path: "/groups/{id}/variables", fields: &GROUP_FIELDS, ..VARIABLES }];

/// The fields of reference 1, 2.2, and `description` (from release 16.2 on). There also is `hidden`:
/// whether no answer contains the value (from release 17.4 on).
const FIELDS: [RowField; 8] = [
    RowField {
        preset: r#""env_var""#,
        ..RowField::new(VARIABLE_TYPE, Form::Word(&["env_var", "file"]))
    },
    RowField { is_create_only: true, is_trimmed: true, ..RowField::new("key", Form::Text) },
    RowField::new("value", Form::Text),
    RowField { preset: "false", ..RowField::new(FLAG_NAMES[0], Form::Flag) },
    RowField { preset: "false", ..RowField::new(FLAG_NAMES[1], Form::Flag) },
    RowField { preset: "false", ..RowField::new(FLAG_NAMES[2], Form::Flag) },
    RowField { preset: r#""*""#, is_trimmed: true, ..RowField::new(ENVIRONMENT_SCOPE, Form::Text) },
    RowField { since: Some(Release::new(16, 2)), ..RowField::new("description", Form::Text) },
];

/// Without a licence for scopes, those of groups are ignored.
const GROUP_FIELDS: [RowField; 8] = {
    let mut fields = FIELDS;
    fields[6].tier = AttributeTier::Premium;
    fields
};

const VARIABLES: Collection = Collection {
    entry: "key",
    required: &["key", "value"],
    fields: &FIELDS,
    limit: Some(("ci variables", [8_000, 30_000], |text| ErrorResponse::model("base", text))),
    required_features: &[PIPELINE_FEATURES],
    scope: |_, call| GroupOrProject::from_call_reading_archived(call, [MAINTAINER, OWNER]),
    find: |call| if call.method == Method::PUT { find_to_change(call) } else { find(call) },
    complete,
    // Project variables have no time of change.
    check_removal: |call, variable| match call.scope {
        GroupOrProject::Group(_) => call.check_unmodified(&variable.updated_at),
        GroupOrProject::Project(_) => Ok(()),
    },
    json: |call, variable| Ok(json(call, variable)),
    ..Collection::new("/projects/{id}/variables")
};

/// The minimum length of a masked value.
const MIN_MASKED_LENGTH: usize = 8;

const VARIABLE_TYPE: &str = "variable_type";
const FLAG_NAMES: [&str; 3] = ["protected", "masked", "raw"];
const ENVIRONMENT_SCOPE: &str = "environment_scope";

fn json(call: &Call<'_>, variable: &Record) -> Value {
    let mut body = json!({});
    for field in FIELDS.iter().filter(|field| field.exists(call)) {
        body[field.name] = variable.value(field.name);
    }
    set_if(&mut body, variable.is_set("hidden"), "value", Value::Null);
    set_if(&mut body, call.is_at_least(17, 4), "hidden", variable.is_set("hidden"));
    body
}

fn check(variable: &Record, profile: &Profile) -> Result<()> {
    let mut complaints = Complaints::default();
    for name in ["masked", "raw"] {
        complaints.add_if(variable.value(name).is_null(), name, "is not included in the list");
    }
    let letters = "can contain only letters, digits";
    let key = variable.text("key");
    complaints.add_if(key.is_empty(), "key", "can't be blank");
    complaints.check_length("key", key, MAX_NAME_LENGTH);
    complaints.add_if(
        key.is_empty() || !key.chars().all(is_key_char),
        "key",
        format!("{letters} and '_'."),
    );
    let scope = variable.text(ENVIRONMENT_SCOPE);
    complaints.add_if(scope.is_empty(), "environment_scope", "can't be blank");
    complaints.add_if(
        scope.is_empty()
            || !scope.chars().all(|c: char| c.is_ascii_alphanumeric() || "_/\\${}. -*".contains(c)),
        "environment_scope",
        format!("{letters}, '-', '_', '/', '$', '{{', '}}', '.', '*' and spaces"),
    );
    complaints.check_length("description", variable.text("description"), MAX_NAME_LENGTH);
    complaints.add_if(
        variable.is_set("masked") && !can_be_masked(variable, profile),
        "value",
        "is invalid",
    );
    complaints.into_result()
}

/// True if a value can be masked: it is long enough, on one line, and, unless it is raw, has only
/// characters that are never expanded.
fn can_be_masked(variable: &Record, profile: &Profile) -> bool {
    let allows_any_character = variable.is_set("raw") && !profile.raw_masks_plainly;
    let value = variable.text("value");
    value.chars().count() >= MIN_MASKED_LENGTH
        && value
            .chars()
            .all(|c| if allows_any_character { !c.is_whitespace() } else { is_maskable(c) })
}

/// Refuses a variable whose key and scope are taken.
fn check_key_free(call: &CollectionCall<'_>, variable: &Record) -> Result<()> {
    // The only limit is that of the column in the database, and only for groups.
    let is_long = variable.text(ENVIRONMENT_SCOPE).chars().count() > MAX_NAME_LENGTH;
    refuse_if(is_long && matches!(call.scope, GroupOrProject::Group(_)), || {
        ErrorResponse::internal(&"the scope is too long")
    })?;
    refuse_if(is_key_taken(call, variable)?, || {
        ErrorResponse::model("key", format!("({}) has already been taken", variable.text("key")))
    })
}

/// True if another variable has the key and the scope.
fn is_key_taken(call: &CollectionCall<'_>, variable: &Record) -> Result<bool> {
    let same_key_variables =
        VARIABLES.rows.with_text(call, call.scope.holder(), "key", variable.text("key"))?;
    let scope = variable.text(ENVIRONMENT_SCOPE);
    Ok(same_key_variables
        .iter()
        .any(|other| other.id != variable.id && other.text(ENVIRONMENT_SCOPE) == scope))
}

/// The feature of a project that pipelines, and what they use, need.
pub(super) const PIPELINE_FEATURES: &[&str] = &["builds_access_level"];

/// The answer for a variable that does not exist.
fn not_found(scope: &GroupOrProject) -> ErrorResponse {
    ErrorResponse::not_found(scope.choose("Variable", "GroupVariable"))
}

/// The scope filter in a call.
fn filter<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>> {
    match call.params.get("filter") {
        Some(Value::Object(filter)) => {
            let scope = filter.get("environment_scope").and_then(Value::as_str);
            Ok(scope.filter(|scope| !scope.is_empty()))
        }
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(ErrorResponse::invalid("filter")),
    }
}

/// The variables with the key in the call, the least recently changed one first.
fn find_by_key(call: &CollectionCall<'_>, filter: Option<&str>) -> Result<Vec<Record>> {
    let mut variables =
        VARIABLES.rows.with_text(call, call.scope.holder(), "key", call.segment("key"))?;
    variables
        .retain(|variable| filter.is_none_or(|filter| variable.text(ENVIRONMENT_SCOPE) == filter));
    variables.sort_by(|one, other| one.updated_at.cmp(&other.updated_at));
    Ok(variables)
}

/// Finds the variable with the key of the call, and with the scope in the filter if there is one.
fn find(call: &CollectionCall<'_>) -> Result<Record> {
    let mut variables = find_by_key(call, filter(call)?)?;
    if variables.len() > 1 {
        return Err(ErrorResponse::conflict(
            "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'",
        ));
    }
    variables.pop().ok_or_else(|| not_found(call.scope))
}

/// The variable that PUT changes. In a group it is found by key alone, and any one is taken if there
/// are several. Later releases use the filter, and take any one if the filter finds none.
fn find_to_change(call: &CollectionCall<'_>) -> Result<Record> {
    if matches!(call.scope, GroupOrProject::Project(_)) {
        if !call.service.profile.optional_variable_value {
            call.params.require(&["value"])?;
        }
        return find(call);
    }
    let filter = filter(call)?.filter(|_| call.service.profile.group_variable_filter);
    let filtered_variables = find_by_key(call, filter)?;
    let variables =
        if filtered_variables.is_empty() { find_by_key(call, None)? } else { filtered_variables };
    variables.into_iter().next().ok_or_else(|| not_found(call.scope))
}

/// Completes a new or changed variable.
fn complete(call: &CollectionCall<'_>, variable: &mut Record) -> Result<()> {
    let is_new = variable.id == 0;
    if !is_new && call.service.profile.put_resets_omitted_flags {
        for field in FIELDS.iter().filter(|field| !call.params.has(field.name)) {
            if matches!(field.form, Form::Flag | Form::Word(_)) {
                variable.set(field.name, field.preset());
            }
        }
    }
    for name in [VARIABLE_TYPE, "protected"] {
        refuse_if(variable.value(name).is_null(), || ErrorResponse::not_null(name))?;
    }
    if is_new && call.is_at_least(17, 4) && call.params.is_set("masked_and_hidden")? {
        variable.set("hidden", true);
        variable.set("masked", true);
    }
    check(variable, &call.service.profile)?;
    // A dialect resets fields that the call omits. Then the comparison uses the reset values.
    let refused_value = Some(call.service.profile.put_resets_omitted_flags);
    if !is_new && variable.is_set("hidden") && call.params.flag("masked")? == refused_value {
        return Err(ErrorResponse::model(
            "base",
            "The visibility setting cannot be changed for masked and hidden variables.",
        ));
    }
    check_key_free(call, variable)
}
