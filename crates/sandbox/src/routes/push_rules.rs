//! The push rule of a project (reference 2, 4.6; Premium), and that of a group, which the reference
//! leaves out: new projects get a copy of it.

use rusqlite::OptionalExtension;

use super::super::profile::AbsentDelete;
use super::super::re2;
use super::prelude::*;

pub(super) const OF_BOTH: &[Route] = &[
    get("/push_rule", |call| show(call, &scope(call)?)),
    post("/push_rule", |call| create(call, &scope(call)?)),
    put("/push_rule", |call| update(call, &scope(call)?)),
    delete("/push_rule", |call| remove(call, &scope(call)?)),
];

/// What a value of a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A flag that is never null: null is not stored.
    Flag,
    /// A flag that is null until it is set.
    Unset,
    /// The same, and in the rule of a project null while it is off.
    Off,
    /// An expression of at most 511 characters.
    Regex,
    /// The one that may be longer, from release 16.4 on.
    LongRegex,
    /// A number of megabytes.
    Size,
}

const FIRST: Release = Release::new(15, 8);
/// What a rule has, in the order in which the service names it, with the release that brought it.
const ATTRIBUTES: [(&str, Kind, Release); 13] = [
    ("deny_delete_tag", Kind::Unset, FIRST),
    ("member_check", Kind::Flag, FIRST),
    ("prevent_secrets", Kind::Flag, FIRST),
    ("commit_message_regex", Kind::Regex, FIRST),
    ("commit_message_negative_regex", Kind::LongRegex, FIRST),
    ("branch_name_regex", Kind::Regex, FIRST),
    ("author_email_regex", Kind::Regex, FIRST),
    ("file_name_regex", Kind::Regex, FIRST),
    ("max_file_size", Kind::Size, FIRST),
    ("commit_committer_check", Kind::Off, FIRST),
    ("commit_committer_name_check", Kind::Flag, Release::new(16, 7)),
    ("reject_unsigned_commits", Kind::Off, FIRST),
    ("reject_non_dco_commits", Kind::Off, Release::new(17, 1)),
];

/// The attributes of this release.
fn attributes(call: &Call<'_>) -> impl Iterator<Item = (&'static str, Kind)> {
    let release = call.release();
    let known = ATTRIBUTES.iter().filter(move |(.., since)| *since <= release);
    known.map(|(name, kind, _)| (*name, *kind))
}

/// A rule, with what was ever set of it.
struct PushRule {
    id: i64,
    settings: Map<String, Value>,
    created_at: String,
}

impl PushRule {
    fn new(now: String) -> Self {
        Self { id: 0, settings: Map::new(), created_at: now }
    }

    /// That of a group does not say whose it is.
    fn json(&self, call: &Call<'_>, scope: &Scope) -> Value {
        let mut body = json!({ "id": self.id, "created_at": self.created_at });
        let project = match scope {
            Scope::Project(project) => Some(project.id),
            Scope::Group(_) => None,
        };
        if let Some(project) = project {
            body["project_id"] = project.into();
        }
        for (name, kind) in attributes(call) {
            body[name] = match (self.settings.get(name), kind) {
                (Some(Value::Bool(false)), Kind::Off) if project.is_some() => Value::Null,
                (Some(stored), _) => stored.clone(),
                (None, Kind::Flag) => false.into(),
                (None, Kind::Size) => 0.into(),
                (None, _) => Value::Null,
            };
        }
        body
    }

    /// Takes what the call says; it has to say something.
    fn take(&mut self, call: &Call<'_>, params: &Params) -> Result<()> {
        let sent: Vec<_> = attributes(call).filter(|(name, _)| params.has(name)).collect();
        params.require_any(&attributes(call).map(|(name, _)| name).collect::<Vec<_>>())?;
        let mut complaints = Map::new();
        for (name, kind) in sent {
            let (value, wrong): (Value, Vec<String>) = match kind {
                Kind::Regex | Kind::LongRegex => {
                    let regex = params.text(name)?;
                    let wrong = regex_complaints(call, kind, regex.as_deref().unwrap_or_default());
                    (regex.into(), wrong)
                }
                Kind::Size => {
                    let size = params.integer(name)?;
                    (size.into(), size_complaint(size).into_iter().map(str::to_owned).collect())
                }
                Kind::Flag | Kind::Unset | Kind::Off => (params.flag(name)?.into(), Vec::new()),
            };
            if kind == Kind::Flag && value.is_null() {
                return Err(Failure::internal(&format!("{name} is null")));
            }
            if !wrong.is_empty() {
                complaints.insert(name.to_owned(), wrong.into());
            }
            self.settings.insert(name.to_owned(), value);
        }
        refuse_if(!complaints.is_empty(), || Failure::message(StatusCode::BAD_REQUEST, complaints))
    }

    fn save(&mut self, call: &Call<'_>, (column, id): (&str, i64)) -> Result<()> {
        let sql = format!(
            "INSERT INTO push_rules ({column}, settings, created_at) VALUES (?1, ?2, ?3)
             ON CONFLICT ({column}) DO UPDATE SET settings = excluded.settings RETURNING id"
        );
        let settings = Value::Object(self.settings.clone()).to_string();
        self.id = call.one(&sql, params![id, settings, self.created_at])?;
        Ok(())
    }
}

/// What is wrong with an expression.
fn regex_complaints(call: &Call<'_>, kind: Kind, regex: &str) -> Vec<String> {
    let longest = if kind == Kind::LongRegex && call.is_from(16, 4) { 2_047 } else { 511 };
    let long = (regex.chars().count() > longest)
        .then(|| format!("is too long (maximum is {longest} characters)"));
    // Older releases store what they cannot run.
    let invalid = if call.is_from(18, 2) { re2::refusal(regex) } else { None };
    long.into_iter().chain(invalid).collect()
}

/// What is wrong with a size.
fn size_complaint(size: Option<i64>) -> Option<&'static str> {
    match size {
        None => Some("is not a number"),
        Some(..0) => Some("must be greater than or equal to 0"),
        Some(0..=2_147_483_647) => None,
        Some(_) => Some("must be less than or equal to 2147483647"),
    }
}

/// Adds the push rule as a call with these parameters would, unless there is one.
pub(crate) fn plant(call: &Call<'_>, project: i64, params: &Params) -> Result<()> {
    let holder = Holder::Project(project).key();
    if find(call, holder)?.is_some() {
        return Ok(());
    }
    let mut rule = PushRule::new(call.now().to_owned());
    rule.take(call, params)?;
    rule.save(call, holder)
}

/// Gives a new project a copy of the rule of the next group above it that has one.
pub(super) fn inherit(call: &Call<'_>, project: i64, namespace: &Namespace) -> Result<()> {
    if call.tier() < Tier::Premium || !namespace.is_group() {
        return Ok(());
    }
    let above: Vec<i64> = ids(&namespace.traversal).collect();
    for group in above.into_iter().rev() {
        if let Some(rule) = find(call, Holder::Group(group).key())? {
            let mut copy = PushRule { settings: rule.settings, ..PushRule::new(call.now().into()) };
            return copy.save(call, Holder::Project(project).key());
        }
    }
    Ok(())
}

/// The project or group, whose caller has to be a maintainer; 404 where push rules are not licensed,
/// and for everybody else in a group.
fn scope(call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::kept_by(call, [MAINTAINER, 0])?;
    let is_hidden = call.is_of_group() && scope.level(call)? < MAINTAINER;
    refuse_if(is_hidden, Failure::hidden)?;
    call.require_tier(Tier::Premium).map(|()| scope)
}

fn find(call: &Call<'_>, (column, id): (&str, i64)) -> Result<Option<PushRule>> {
    let sql = format!("SELECT id, settings, created_at FROM push_rules WHERE {column} = ?1");
    let mut statement = call.db.prepare_cached(&sql)?;
    let found = statement.query_row([id], |row| {
        let settings: String = row.get(1)?;
        Ok(PushRule {
            id: row.get(0)?,
            settings: serde_json::from_str(&settings).unwrap_or_default(),
            created_at: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

fn absent(call: &Call<'_>) -> Failure {
    Failure::not_found(if call.service.profile.later_errors { "Push rule" } else { "Push Rule" })
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    match (find(call, scope.key())?, scope) {
        (Some(rule), _) => Answer::ok(&rule.json(call, scope)),
        (None, Scope::Group(_)) => Err(Failure::hidden()),
        (None, _) => Answer::ok(&Value::Null),
    }
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let mut rule = PushRule::new(call.now().to_owned());
    rule.take(call, &call.params)?;
    if find(call, scope.key())?.is_some() {
        let text = match scope {
            Scope::Project(_) => "Project push rule exists",
            Scope::Group(_) => "Group push rule exists, try updating",
        };
        return Err(match call.service.profile.later_errors {
            true => Failure::message(StatusCode::UNPROCESSABLE_ENTITY, text),
            false => Failure::unprocessable(text),
        });
    }
    rule.save(call, scope.key())?;
    Answer::created(&rule.json(call, scope))
}

fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let mut rule = find(call, scope.key())?.ok_or_else(|| absent(call))?;
    rule.take(call, &call.params)?;
    rule.save(call, scope.key())?;
    Answer::ok(&rule.json(call, scope))
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let (column, id) = scope.key();
    let sql = format!("DELETE FROM push_rules WHERE {column} = ?1");
    match (call.db.prepare_cached(&sql)?.execute([id])?, scope) {
        (0, Scope::Group(_)) => Err(Failure::hidden()),
        (0, _) if call.service.profile.absent_delete == AbsentDelete::NotFound => Err(absent(call)),
        _ => Ok(Answer::no_content()),
    }
}
