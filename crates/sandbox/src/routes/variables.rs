//! Variables of a project (reference 1, 4.1), and those of a group, which the reference leaves out.
//! They differ in who manages them, in the licence for scopes, and in what PUT changes.

use super::names::{LONGEST, is_key_char, is_maskable};
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] =
    &[VARIABLES, Collection { path: "/groups/{id}/variables", fields: &OF_GROUPS, ..VARIABLES }];

/// The fields of reference 1, 2.2, and `description` (from release 16.2 on). There also is `hidden`:
/// whether no answer contains the value (from release 17.4 on).
const FIELDS: [RowField; 8] = [
    RowField { preset: r#""env_var""#, ..RowField::new(TYPE, Form::Word(&["env_var", "file"])) },
    RowField { only_new: true, trims: true, ..RowField::new("key", Form::Text) },
    RowField::new("value", Form::Text),
    RowField { preset: "false", ..RowField::new(FLAGS[0], Form::Flag) },
    RowField { preset: "false", ..RowField::new(FLAGS[1], Form::Flag) },
    RowField { preset: "false", ..RowField::new(FLAGS[2], Form::Flag) },
    RowField { preset: r#""*""#, trims: true, ..RowField::new(ENVIRONMENT, Form::Text) },
    RowField { since: Some(Release::new(16, 2)), ..RowField::new("description", Form::Text) },
];

/// Without a licence for scopes, those of groups are ignored.
const OF_GROUPS: [RowField; 8] = {
    let mut fields = FIELDS;
    fields[6].tier = AttributeTier::Premium;
    fields
};

const VARIABLES: Collection = Collection {
    entry: "key",
    required: &["key", "value"],
    fields: &FIELDS,
    limit: Some(("ci variables", [8_000, 30_000], |text| ErrorResponse::model("base", text))),
    closed_by: &[PIPELINES],
    scope: |_, call| GroupOrProject::writable_by(call, [MAINTAINER, OWNER]),
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
const SHORTEST_MASKED: usize = 8;

const TYPE: &str = "variable_type";
const FLAGS: [&str; 3] = ["protected", "masked", "raw"];
const ENVIRONMENT: &str = "environment_scope";

fn json(call: &Call<'_>, variable: &Record) -> Value {
    let mut body = json!({});
    for field in FIELDS.iter().filter(|field| field.is_there(call)) {
        body[field.name] = variable.value(field.name);
    }
    set_if(&mut body, variable.is_set("hidden"), "value", Value::Null);
    set_if(&mut body, call.is_from(17, 4), "hidden", variable.is_set("hidden"));
    body
}

fn check(variable: &Record, profile: &Profile) -> Result<()> {
    let mut faults = Complaints::default();
    for name in ["masked", "raw"] {
        faults.add_if(variable.value(name).is_null(), name, "is not included in the list");
    }
    let letters = "can contain only letters, digits";
    let key = variable.text("key");
    faults.add_if(key.is_empty(), "key", "can't be blank");
    faults.check_length("key", key, LONGEST);
    faults.add_if(
        key.is_empty() || !key.chars().all(is_key_char),
        "key",
        format!("{letters} and '_'."),
    );
    let scope = variable.text(ENVIRONMENT);
    faults.add_if(scope.is_empty(), "environment_scope", "can't be blank");
    faults.add_if(
        scope.is_empty()
            || !scope.chars().all(|c: char| c.is_ascii_alphanumeric() || "_/\\${}. -*".contains(c)),
        "environment_scope",
        format!("{letters}, '-', '_', '/', '$', '{{', '}}', '.', '*' and spaces"),
    );
    faults.check_length("description", variable.text("description"), LONGEST);
    faults.add_if(
        variable.is_set("masked") && !can_be_masked(variable, profile),
        "value",
        "is invalid",
    );
    faults.settle()
}

/// True if a value can be masked: long enough, on one line, and, unless raw, of characters that are
/// never expanded.
fn can_be_masked(variable: &Record, profile: &Profile) -> bool {
    let anything = variable.is_set("raw") && !profile.raw_masks_plainly;
    let value = variable.text("value");
    value.chars().count() >= SHORTEST_MASKED
        && value.chars().all(|c| if anything { !c.is_whitespace() } else { is_maskable(c) })
}

/// Refuses a variable whose key and scope are taken.
fn check_key_free(call: &CollectionCall<'_>, variable: &Record) -> Result<()> {
    // Only the database limits it, and only for groups.
    let is_long = variable.text(ENVIRONMENT).chars().count() > LONGEST;
    refuse_if(is_long && matches!(call.scope, GroupOrProject::Group(_)), || {
        ErrorResponse::internal(&"the scope is too long")
    })?;
    refuse_if(is_key_taken(call, variable)?, || {
        ErrorResponse::model("key", format!("({}) has already been taken", variable.text("key")))
    })
}

/// True if another variable has the key and the scope.
fn is_key_taken(call: &CollectionCall<'_>, variable: &Record) -> Result<bool> {
    let namesakes = VARIABLES.rows.with(call, call.scope.holder(), "key", variable.text("key"))?;
    let scope = variable.text(ENVIRONMENT);
    Ok(namesakes.iter().any(|other| other.id != variable.id && other.text(ENVIRONMENT) == scope))
}

/// The feature of a project that pipelines, and what they use, need.
pub(super) const PIPELINES: &[&str] = &["builds_access_level"];

/// The answer for a variable that does not exist.
fn not_found(scope: &GroupOrProject) -> ErrorResponse {
    ErrorResponse::not_found(scope.either("Variable", "GroupVariable"))
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
    let mut twins = VARIABLES.rows.with(call, call.scope.holder(), "key", call.segment("key"))?;
    twins.retain(|variable| filter.is_none_or(|filter| variable.text(ENVIRONMENT) == filter));
    twins.sort_by(|one, other| one.updated_at.cmp(&other.updated_at));
    Ok(twins)
}

/// The one variable with the key, and with the scope in the filter, if there is one.
fn find(call: &CollectionCall<'_>) -> Result<Record> {
    let mut variables = find_by_key(call, filter(call)?)?;
    if variables.len() > 1 {
        return Err(ErrorResponse::conflict(
            "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'",
        ));
    }
    variables.pop().ok_or_else(|| not_found(call.scope))
}

/// The variable that PUT changes. That of a group is found by key alone: among several, any one.
/// Later releases use the filter, but also fall back to any one.
fn find_to_change(call: &CollectionCall<'_>) -> Result<Record> {
    if matches!(call.scope, GroupOrProject::Project(_)) {
        if !call.service.profile.optional_variable_value {
            call.params.require(&["value"])?;
        }
        return find(call);
    }
    let filter = filter(call)?.filter(|_| call.service.profile.group_variable_filter);
    let filtered = find_by_key(call, filter)?;
    let variables = if filtered.is_empty() { find_by_key(call, None)? } else { filtered };
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
    for name in [TYPE, "protected"] {
        refuse_if(variable.value(name).is_null(), || ErrorResponse::not_null(name))?;
    }
    if is_new && call.is_from(17, 4) && call.params.is_set("masked_and_hidden")? {
        variable.set("hidden", true);
        variable.set("masked", true);
    }
    check(variable, &call.service.profile)?;
    // A dialect that resets what a call leaves out compares with what is left then.
    let refused = Some(call.service.profile.put_resets_omitted_flags);
    if !is_new && variable.is_set("hidden") && call.params.flag("masked")? == refused {
        return Err(ErrorResponse::model(
            "base",
            "The visibility setting cannot be changed for masked and hidden variables.",
        ));
    }
    check_key_free(call, variable)
}
