//! Variables of a project (reference 1, 4.1), and those of a group, which the reference leaves out:
//! they differ in who manages them, in what their scopes need, and in what PUT changes.

use std::borrow::Cow;

use super::super::profile::Profile;
use super::super::store::stored::stored;
use super::prelude::*;

pub(super) const OF_BOTH: &[Route] = &[
    get("/variables", |call| list(call, &scope(call)?)),
    post("/variables", |call| create(call, &scope(call)?)),
    get("/variables/{key}", |call| show(call, &scope(call)?)),
    put("/variables/{key}", |call| update(call, &scope(call)?)),
    delete("/variables/{key}", |call| remove(call, &scope(call)?)),
];

/// How many variables a project may have, and how many a group.
const MOST: i64 = 8_000;
const MOST_OF_GROUP: i64 = 30_000;
/// The longest key and description.
const LONGEST: usize = 255;
/// The shortest value that can be masked.
const SHORTEST_MASKED: usize = 8;

/// A variable; its fields are those of reference 1, 2.2.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    id: i64,
    key: String,
    value: Option<String>,
    variable_type: String,
    protected: bool,
    masked: bool,
    raw: bool,
    environment_scope: String,
    /// From release 16.2 on.
    description: Option<String>,
    /// Whether no answer has its value; from release 17.4 on.
    hidden: bool,
    updated_at: String,
}

stored!(Variable: variables v,
    id, key, value, variable_type, protected, masked, raw, environment_scope, description, hidden, updated_at);

impl Variable {
    fn new(key: String) -> Self {
        Self {
            id: 0,
            key,
            value: None,
            variable_type: "env_var".to_owned(),
            protected: false,
            masked: false,
            raw: false,
            environment_scope: "*".to_owned(),
            description: None,
            hidden: false,
            updated_at: String::new(),
        }
    }

    /// A new one with the key of a call.
    fn named(params: &Params) -> Result<Self> {
        let key = params.text("key")?.unwrap_or_default();
        Ok(Self::new(key.trim().to_owned()))
    }

    fn json(&self, call: &Call<'_>) -> Value {
        let mut body = json!({
            "variable_type": self.variable_type,
            "key": self.key,
            "value": self.value.as_ref().filter(|_| !self.hidden),
            "protected": self.protected,
            "masked": self.masked,
            "raw": self.raw,
            "environment_scope": self.environment_scope,
        });
        if call.is_from(16, 2) {
            body["description"] = self.description.clone().into();
        }
        if call.is_from(17, 4) {
            body["hidden"] = self.hidden.into();
        }
        body
    }

    /// Hides a new variable, and masks it, if the call says so. Older releases do neither.
    fn hide(&mut self, call: &Call<'_>) -> Result<()> {
        if call.is_from(17, 4) && call.params.is_set("masked_and_hidden")? {
            self.hidden = true;
            self.masked = true;
        }
        self.check(&call.service.profile, Complaints::default())
    }

    /// Takes what the call says. Where scopes are not licensed, one is dropped without a word.
    fn take(&mut self, call: &Call<'_>, params: &Params, scoped: bool) -> Result<()> {
        if params.has("value") {
            self.value = params.text("value")?;
        }
        if params.has("variable_type") {
            let kind = params.one_of("variable_type", &["env_var", "file"])?;
            self.variable_type = kind.ok_or_else(|| Failure::not_null("variable_type"))?;
        }
        let mut wrong = Complaints::default();
        for (name, flag) in [
            ("protected", &mut self.protected),
            ("masked", &mut self.masked),
            ("raw", &mut self.raw),
        ] {
            match params.flag(name)? {
                Some(on) => *flag = on,
                None if !params.has(name) => {}
                None if name == "protected" => return Err(Failure::not_null(name)),
                None => wrong.add(name, "is not included in the list"),
            }
        }
        if scoped && params.has("environment_scope") {
            let scope = params.text("environment_scope")?.unwrap_or_default();
            self.environment_scope = scope.trim().to_owned();
        }
        if call.is_from(16, 2) && params.has("description") {
            self.description = params.text("description")?;
        }
        self.check(&call.service.profile, wrong)
    }

    fn check(&self, profile: &Profile, mut wrong: Complaints) -> Result<()> {
        let too_long = format!("is too long (maximum is {LONGEST} characters)");
        let letters = "can contain only letters, digits";
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let key = &self.key;
        wrong.add_if(key.is_empty(), "key", "can't be blank");
        wrong.add_if(key.chars().count() > LONGEST, "key", too_long.as_str());
        wrong.add_if(
            key.is_empty() || !key.chars().all(word),
            "key",
            format!("{letters} and '_'."),
        );
        let place = |c: char| c.is_ascii_alphanumeric() || "_/\\${}. -*".contains(c);
        let scope = &self.environment_scope;
        wrong.add_if(scope.is_empty(), "environment_scope", "can't be blank");
        wrong.add_if(
            scope.is_empty() || !scope.chars().all(place),
            "environment_scope",
            format!("{letters}, '-', '_', '/', '$', '{{', '}}', '.', '*' and spaces"),
        );
        let description = self.description.as_deref().unwrap_or_default();
        wrong.add_if(description.chars().count() > LONGEST, "description", too_long);
        wrong.add_if(
            self.masked && !self.can_be_masked(self.raw && !profile.raw_masks_plainly),
            "value",
            "is invalid",
        );
        wrong.settle()
    }

    /// A masked value is long enough and one line, and, unless anything goes, of characters that
    /// never expand.
    fn can_be_masked(&self, anything: bool) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_+=/@:.~-".contains(c);
        let fits = |c: char| if anything { !c.is_whitespace() } else { plain(c) };
        let value = self.value.as_deref().unwrap_or_default();
        value.chars().count() >= SHORTEST_MASKED && value.chars().all(fits)
    }

    fn save(&mut self, call: &Call<'_>, scope: &Scope) -> Result<()> {
        let column = scope.column();
        let is_long = self.environment_scope.chars().count() > LONGEST;
        if is_long && matches!(scope, Scope::Group(_)) {
            // That of a project is as long as it likes; here the database has a limit.
            return Err(Failure::internal(&"the scope is too long"));
        }
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM variables WHERE {column} = ?1 AND key = ?2 AND environment_scope = ?3 AND id <> ?4)"
        );
        let taken: bool =
            call.one(&sql, params![scope.id(), self.key, self.environment_scope, self.id])?;
        if taken {
            return Err(Failure::model("key", format!("({}) has already been taken", self.key)));
        }
        let sql = format!(
            "INSERT INTO variables (id, {column}, key, value, variable_type, protected, masked, raw, environment_scope,
                                    description, hidden, updated_at)
             VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (id) DO UPDATE SET value = excluded.value, variable_type = excluded.variable_type,
                 protected = excluded.protected, masked = excluded.masked, raw = excluded.raw,
                 environment_scope = excluded.environment_scope, description = excluded.description,
                 updated_at = excluded.updated_at
             RETURNING id"
        );
        self.id = call.one(
            &sql,
            params![
                self.id,
                scope.id(),
                self.key,
                self.value,
                self.variable_type,
                self.protected,
                self.masked,
                self.raw,
                self.environment_scope,
                self.description,
                self.hidden,
                call.now(),
            ],
        )?;
        Ok(())
    }
}

/// Adds a variable as a call with these parameters would; one that exists stays as it is.
pub(crate) fn plant(call: &Call<'_>, scope: &Scope, params: &Params) -> Result<()> {
    let mut variable = Variable::named(params)?;
    variable.take(call, params, is_scoped(call, scope))?;
    let sql = format!(
        "SELECT 1 FROM variables WHERE {} = ?1 AND key = ?2 AND environment_scope = ?3",
        scope.column()
    );
    let exists = call.db.prepare_cached(&sql)?.exists(params![
        scope.id(),
        variable.key,
        variable.environment_scope
    ])?;
    if exists { Ok(()) } else { variable.save(call, scope) }
}

/// The project or group, for who manages it. A project is closed while its CI/CD is disabled, also
/// for reading.
fn scope(call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::kept_by(call, [MAINTAINER, OWNER])?;
    match &scope {
        Scope::Project(project) if !has_pipelines(call, project)? => Err(Failure::forbidden()),
        _ => Ok(scope),
    }
}

/// Whether the CI/CD of a project is not disabled.
pub(super) fn has_pipelines(call: &Call<'_>, project: &Project) -> Result<bool> {
    let sql = "SELECT json_extract(attributes, '$.builds_access_level') IS NOT 'disabled'
               FROM projects WHERE id = ?1";
    call.one(sql, [project.id])
}

/// Whether variables have scopes: those of groups only with a licence.
fn is_scoped(call: &Call<'_>, scope: &Scope) -> bool {
    matches!(scope, Scope::Project(_)) || call.tier() >= Tier::Premium
}

/// What a call for a variable answers that is not there.
fn absent(scope: &Scope) -> Failure {
    Failure::not_found(match scope {
        Scope::Project(_) => "Variable",
        Scope::Group(_) => "GroupVariable",
    })
}

/// The scope that a call asks for.
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

/// The variables with the key of the call, that which was not changed for longest first.
fn with_key(call: &Call<'_>, scope: &Scope, filter: Option<&str>) -> Result<Vec<Variable>> {
    let rest = format!(
        "WHERE v.{} = ?1 AND v.key = ?2 AND (?3 IS NULL OR v.environment_scope = ?3)
         ORDER BY v.updated_at, v.id LIMIT 2",
        scope.column()
    );
    Ok(Variable::list(call.db, &rest, params![scope.id(), call.segment("key"), filter])?)
}

/// The one variable with the key, in the scope of the filter if there is one.
fn find(call: &Call<'_>, scope: &Scope) -> Result<Variable> {
    let mut found = with_key(call, scope, filter(call)?)?;
    if found.len() > 1 {
        return Err(Failure::conflict(
            "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'",
        ));
    }
    found.pop().ok_or_else(|| absent(scope))
}

/// The variable that PUT changes. That of a group is found by its key alone: of several, any one.
/// Later releases heed the filter, but fall back to any one too.
fn find_to_change(call: &Call<'_>, scope: &Scope) -> Result<Variable> {
    if matches!(scope, Scope::Project(_)) {
        return find(call, scope);
    }
    let filter = filter(call)?.filter(|_| call.service.profile.group_variable_filter);
    let filtered = with_key(call, scope, filter)?;
    let found = match filtered.is_empty() {
        true => with_key(call, scope, None)?,
        false => filtered,
    };
    found.into_iter().next().ok_or_else(|| absent(scope))
}

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let rest = format!("WHERE v.{} = ?1 ORDER BY v.id", scope.column());
    let all = Variable::list(call.db, &rest, [scope.id()])?;
    page::list_of(call, &all, |variable| Ok(Cow::Owned(variable.json(call))))
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    Answer::ok(&find(call, scope)?.json(call))
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    call.params.require(&["key", "value"])?;
    let mut variable = Variable::named(&call.params)?;
    variable.take(call, &call.params, is_scoped(call, scope))?;
    variable.hide(call)?;
    let count: i64 = call.one(
        &format!("SELECT count(*) FROM variables WHERE {} = ?1", scope.column()),
        [scope.id()],
    )?;
    let most = match scope {
        Scope::Project(_) => MOST,
        Scope::Group(_) => MOST_OF_GROUP,
    };
    if count >= most {
        return Err(Failure::model(
            "base",
            format!("Maximum number of {} ci variables ({most}) exceeded", scope.name()),
        ));
    }
    variable.save(call, scope)?;
    Answer::created(&variable.json(call))
}

fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let profile = &call.service.profile;
    if matches!(scope, Scope::Project(_)) && !profile.optional_variable_value {
        call.params.require(&["value"])?;
    }
    let mut variable = find_to_change(call, scope)?;
    if profile.put_resets_omitted_flags {
        let fresh = Variable::new(String::new());
        variable.protected = fresh.protected;
        variable.masked = fresh.masked;
        variable.raw = fresh.raw;
        variable.variable_type = fresh.variable_type;
    }
    let masked = variable.masked;
    variable.take(call, &call.params, is_scoped(call, scope))?;
    if variable.hidden && variable.masked != masked {
        return Err(Failure::model(
            "base",
            "The visibility setting cannot be changed for masked and hidden variables.",
        ));
    }
    variable.save(call, scope)?;
    Answer::ok(&variable.json(call))
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let variable = find(call, scope)?;
    // Those of projects do not know when they were changed.
    if matches!(scope, Scope::Group(_)) {
        call.check_unmodified(&variable.updated_at)?;
    }
    call.db.execute("DELETE FROM variables WHERE id = ?1", [variable.id])?;
    Ok(Answer::no_content())
}
