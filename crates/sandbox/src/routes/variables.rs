//! Variables of a project (reference 1, 4.1), and those of a group, which the reference leaves out.
//! They differ in who manages them, in the licence for scopes, and in what PUT changes.

use super::super::profile::Profile;
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] =
    &[VARIABLES, Collection { path: "/groups/{id}/variables", ..VARIABLES }];

/// Its fields are those of reference 1, 2.2, `description` (from release 16.2 on) and `hidden`:
/// whether no answer contains the value (from release 17.4 on).
const VARIABLES: Collection = Collection {
    entry: "key",
    required: &["key", "value"],
    scope: |_, call| scope(call),
    find: |_, call, scope| match call.method == http::Method::PUT {
        true => find_to_change(call, scope),
        false => find(call, scope),
    },
    settle,
    // Project variables have no time of change.
    kept: |call, scope, variable| match scope {
        Scope::Group(_) => call.check_unmodified(&variable.updated_at),
        Scope::Project(_) => Ok(()),
    },
    json: |_, call, _, variable| Ok(json(variable, call)),
    ..Collection::new("/projects/{id}/variables")
};

/// The maximum number of variables of a project, and of a group.
const MOST: i64 = 8_000;
const MOST_OF_GROUP: i64 = 30_000;
/// The maximum length of keys and descriptions.
const LONGEST: usize = 255;
/// The minimum length of a masked value.
const SHORTEST_MASKED: usize = 8;

const FLAGS: [&str; 3] = ["protected", "masked", "raw"];
const ENVIRONMENT: &str = "environment_scope";

/// Gives a new variable its key and the presets.
fn begin(variable: &mut Record, params: &Params) -> Result<()> {
    variable.set("key", params.text("key")?.unwrap_or_default().trim());
    variable.set(ENVIRONMENT, "*");
    reset(variable);
    Ok(())
}

/// Sets the type and the flags to their defaults.
fn reset(variable: &mut Record) {
    variable.set("variable_type", "env_var");
    FLAGS.iter().for_each(|name| variable.set(name, false));
}

fn json(variable: &Record, call: &Call<'_>) -> Value {
    let mut body =
        json!({ "variable_type": variable.value("variable_type"), "key": variable.text("key") });
    body["value"] = if variable.is_set("hidden") { Value::Null } else { variable.value("value") };
    for name in FLAGS.into_iter().chain([ENVIRONMENT]) {
        body[name] = variable.value(name);
    }
    set_if(&mut body, call.is_from(16, 2), "description", variable.value("description"));
    set_if(&mut body, call.is_from(17, 4), "hidden", variable.is_set("hidden"));
    body
}

/// Hides and masks a new variable if the call says so. Older releases do neither.
fn hide(variable: &mut Record, call: &Call<'_>) -> Result<()> {
    if call.is_from(17, 4) && call.params.is_set("masked_and_hidden")? {
        variable.set("hidden", true);
        variable.set("masked", true);
    }
    check(variable, &call.service.profile, Complaints::default())
}

/// Stores the fields in a call. Without a licence for scopes, a scope is ignored.
fn take(variable: &mut Record, call: &Call<'_>, params: &Params, scoped: bool) -> Result<()> {
    if params.has("value") {
        variable.set("value", params.text("value")?);
    }
    if params.has("variable_type") {
        let kind = params.one_of("variable_type", &["env_var", "file"])?;
        variable.set("variable_type", kind.ok_or_else(|| Failure::not_null("variable_type"))?);
    }
    let mut wrong = Complaints::default();
    for name in FLAGS {
        match params.flag(name)? {
            Some(on) => variable.set(name, on),
            None if !params.has(name) => {}
            None if name == "protected" => return Err(Failure::not_null(name)),
            None => wrong.add(name, "is not included in the list"),
        }
    }
    if scoped && params.has(ENVIRONMENT) {
        variable.set(ENVIRONMENT, params.text(ENVIRONMENT)?.unwrap_or_default().trim());
    }
    if call.is_from(16, 2) && params.has("description") {
        variable.set("description", params.text("description")?);
    }
    check(variable, &call.service.profile, wrong)
}

fn check(variable: &Record, profile: &Profile, mut wrong: Complaints) -> Result<()> {
    let too_long = format!("is too long (maximum is {LONGEST} characters)");
    let letters = "can contain only letters, digits";
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let key = variable.text("key");
    wrong.add_if(key.is_empty(), "key", "can't be blank");
    wrong.add_if(key.chars().count() > LONGEST, "key", too_long.as_str());
    wrong.add_if(key.is_empty() || !key.chars().all(word), "key", format!("{letters} and '_'."));
    let place = |c: char| c.is_ascii_alphanumeric() || "_/\\${}. -*".contains(c);
    let scope = variable.text(ENVIRONMENT);
    wrong.add_if(scope.is_empty(), "environment_scope", "can't be blank");
    wrong.add_if(
        scope.is_empty() || !scope.chars().all(place),
        "environment_scope",
        format!("{letters}, '-', '_', '/', '$', '{{', '}}', '.', '*' and spaces"),
    );
    wrong.add_if(variable.text("description").chars().count() > LONGEST, "description", too_long);
    wrong.add_if(
        variable.is_set("masked") && !can_be_masked(variable, profile),
        "value",
        "is invalid",
    );
    wrong.settle()
}

/// Whether a value can be masked: long enough, on one line, and, unless raw, of characters that are
/// never expanded.
fn can_be_masked(variable: &Record, profile: &Profile) -> bool {
    let anything = variable.is_set("raw") && !profile.raw_masks_plainly;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_+=/@:.~-".contains(c);
    let fits = |c: char| if anything { !c.is_whitespace() } else { plain(c) };
    let value = variable.text("value");
    value.chars().count() >= SHORTEST_MASKED && value.chars().all(fits)
}

/// Refuses a variable whose key and scope are taken.
fn check_place(call: &Call<'_>, scope: &Scope, variable: &Record) -> Result<()> {
    // Only the database limits it, and only for groups.
    let is_long = variable.text(ENVIRONMENT).chars().count() > LONGEST;
    refuse_if(is_long && matches!(scope, Scope::Group(_)), || {
        Failure::internal(&"the scope is too long")
    })?;
    refuse_if(is_known(call, scope, variable)?, || {
        Failure::model("key", format!("({}) has already been taken", variable.text("key")))
    })
}

/// Whether another variable has the key and the scope.
fn is_known(call: &Call<'_>, scope: &Scope, variable: &Record) -> Result<bool> {
    let namesakes = VARIABLES.rows.with(call.db, scope.holder(), "key", variable.text("key"))?;
    let place = variable.text(ENVIRONMENT);
    Ok(namesakes.iter().any(|other| other.id != variable.id && other.text(ENVIRONMENT) == place))
}

/// Adds a variable as a call with these parameters would; an existing one stays unchanged.
pub(crate) fn plant(call: &Call<'_>, scope: &Scope, params: &Params) -> Result<()> {
    let mut variable = Record::new(call.now());
    begin(&mut variable, params)?;
    take(&mut variable, call, params, is_scoped(call, scope))?;
    if is_known(call, scope, &variable)? {
        return Ok(());
    }
    check_place(call, scope, &variable)?;
    Ok(VARIABLES.rows.save(call.db, scope.holder(), &mut variable, call.now())?)
}

/// The project or group, for callers who manage it. A project is closed while its CI/CD is
/// disabled, also for reads.
fn scope(call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::kept_by(call, [MAINTAINER, OWNER])?;
    match &scope {
        Scope::Project(project) if !has_pipelines(call, project)? => Err(Failure::forbidden()),
        _ => Ok(scope),
    }
}

/// Whether CI/CD is enabled in a project.
pub(super) fn has_pipelines(call: &Call<'_>, project: &Project) -> Result<bool> {
    let sql = "SELECT json_extract(attributes, '$.builds_access_level') IS NOT 'disabled'
               FROM projects WHERE id = ?1";
    call.one(sql, [project.id])
}

/// Whether variables have scopes: those of groups need a licence.
fn is_scoped(call: &Call<'_>, scope: &Scope) -> bool {
    matches!(scope, Scope::Project(_)) || call.tier() >= Tier::Premium
}

/// The answer for a variable that does not exist.
fn absent(scope: &Scope) -> Failure {
    Failure::not_found(scope.either("Variable", "GroupVariable"))
}

/// The scope filter in a call.
fn filter<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>> {
    match call.params.get("filter") {
        Some(Value::Object(filter)) => {
            let scope = filter.get("environment_scope").and_then(Value::as_str);
            Ok(scope.filter(|scope| !scope.is_empty()))
        }
        Some(Value::Null) | None => Ok(None),
        Some(_) => Err(Failure::invalid("filter")),
    }
}

/// The variables with the key in the call, the least recently changed one first.
fn with_key(call: &Call<'_>, scope: &Scope, filter: Option<&str>) -> Result<Vec<Record>> {
    let mut all = VARIABLES.rows.with(call.db, scope.holder(), "key", call.segment("key"))?;
    all.retain(|variable| filter.is_none_or(|filter| variable.text(ENVIRONMENT) == filter));
    all.sort_by(|one, other| one.updated_at.cmp(&other.updated_at));
    Ok(all)
}

/// The one variable with the key, and with the scope in the filter, if there is one.
fn find(call: &Call<'_>, scope: &Scope) -> Result<Record> {
    let mut found = with_key(call, scope, filter(call)?)?;
    if found.len() > 1 {
        return Err(Failure::conflict(
            "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'",
        ));
    }
    found.pop().ok_or_else(|| absent(scope))
}

/// The variable that PUT changes. That of a group is found by key alone: among several, any one.
/// Later releases use the filter, but also fall back to any one.
fn find_to_change(call: &Call<'_>, scope: &Scope) -> Result<Record> {
    if matches!(scope, Scope::Project(_)) {
        if !call.service.profile.optional_variable_value {
            call.params.require(&["value"])?;
        }
        return find(call, scope);
    }
    let filter = filter(call)?.filter(|_| call.service.profile.group_variable_filter);
    let filtered = with_key(call, scope, filter)?;
    let found = if filtered.is_empty() { with_key(call, scope, None)? } else { filtered };
    found.into_iter().next().ok_or_else(|| absent(scope))
}

/// Completes a new or changed variable.
fn settle(of: &Collection, call: &Call<'_>, scope: &Scope, variable: &mut Record) -> Result<()> {
    let is_new = variable.id == 0;
    if is_new {
        begin(variable, &call.params)?;
    } else if call.service.profile.put_resets_omitted_flags {
        reset(variable);
    }
    let masked = variable.is_set("masked");
    take(variable, call, &call.params, is_scoped(call, scope))?;
    if is_new {
        hide(variable, call)?;
        check_number(of, call, scope)?;
    } else if variable.is_set("hidden") && variable.is_set("masked") != masked {
        return Err(Failure::model(
            "base",
            "The visibility setting cannot be changed for masked and hidden variables.",
        ));
    }
    check_place(call, scope, variable)
}

/// Refuses one variable more than a project or group may have.
fn check_number(of: &Collection, call: &Call<'_>, scope: &Scope) -> Result<()> {
    let most = scope.either(MOST, MOST_OF_GROUP);
    refuse_if(of.rows.count(call.db, scope.holder())? >= most, || {
        let text = format!("Maximum number of {} ci variables ({most}) exceeded", scope.name());
        Failure::model("base", text)
    })
}
