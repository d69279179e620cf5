//! The push rule of a project (reference 2, 4.6; Premium), and that of a group, which the reference
//! leaves out: new projects get a copy of it.

use super::super::profile::AbsentDelete;
use super::super::re2;
use super::super::store::record::Records;
use super::prelude::*;

pub(super) const OF_BOTH: &[Route] = &[
    get("/push_rule", |call| show(call, &scope(call)?)),
    post("/push_rule", |call| create(call, &scope(call)?)),
    put("/push_rule", |call| update(call, &scope(call)?)),
    delete("/push_rule", |call| remove(call, &scope(call)?)),
];

/// The type of a value in a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A flag that is never null: null is not stored.
    Flag,
    /// A flag that is null until it is set.
    Unset,
    /// The same; in a project's rule it is also null while off.
    Off,
    /// An expression of at most 511 characters.
    Regex,
    /// An expression that may be longer, from release 16.4 on.
    LongRegex,
    /// A number of megabytes.
    Size,
}

const FIRST: Release = Release::new(15, 8);
/// The attributes of a rule in the service's order, with their first releases.
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

/// The maximum size of a file.
const MOST_SIZE: i64 = i32::MAX as i64;

const RULES: Records = Records("push_rules");

/// A push rule as the service shows it; that of a group does not name its group.
fn json(rule: &Record, call: &Call<'_>, scope: &Scope) -> Value {
    let mut body = json!({ "id": rule.id, "created_at": rule.created_at });
    let project = scope.project_id();
    if let Some(project) = project {
        body["project_id"] = project.into();
    }
    for (name, kind) in attributes(call) {
        body[name] = match (rule.settings.get(name), kind) {
            (Some(Value::Bool(false)), Kind::Off) if project.is_some() => Value::Null,
            (Some(stored), _) => stored.clone(),
            (None, Kind::Flag) => false.into(),
            (None, Kind::Size) => 0.into(),
            (None, _) => Value::Null,
        };
    }
    body
}

/// Stores the fields in a call, which must have some.
fn take(rule: &mut Record, call: &Call<'_>, params: &Params) -> Result<()> {
    let sent: Vec<_> = attributes(call).filter(|(name, _)| params.has(name)).collect();
    params.require_any(&attributes(call).map(|(name, _)| name).collect::<Vec<_>>())?;
    let mut complaints = Complaints::default();
    for (name, kind) in sent {
        let (value, wrong): (Value, Vec<String>) = match kind {
            Kind::Regex | Kind::LongRegex => {
                let regex = params.text(name)?;
                let wrong = regex_complaints(call, kind, regex.as_deref().unwrap_or_default());
                (regex.into(), wrong)
            }
            Kind::Size => {
                let size = params.integer(name)?;
                (size.into(), number_fault(size, MOST_SIZE).into_iter().collect())
            }
            Kind::Flag | Kind::Unset | Kind::Off => (params.flag(name)?.into(), Vec::new()),
        };
        if kind == Kind::Flag && value.is_null() {
            return Err(Failure::internal(&format!("{name} is null")));
        }
        wrong.into_iter().for_each(|text| complaints.add(name, text));
        rule.set(name, value);
    }
    complaints.settle()
}

/// The faults of an expression.
fn regex_complaints(call: &Call<'_>, kind: Kind, regex: &str) -> Vec<String> {
    let longest = if kind == Kind::LongRegex && call.is_from(16, 4) { 2_047 } else { 511 };
    let long = (regex.chars().count() > longest)
        .then(|| format!("is too long (maximum is {longest} characters)"));
    // Older releases also store invalid ones.
    let invalid = if call.is_from(18, 2) { re2::refusal(regex) } else { None };
    long.into_iter().chain(invalid).collect()
}

/// The fault of a size.
/// Adds a push rule as a call with these parameters would, unless there is one.
pub(crate) fn plant(call: &Call<'_>, project: i64, params: &Params) -> Result<()> {
    let holder = Holder::Project(project);
    if RULES.one(call.db, holder)?.is_some() {
        return Ok(());
    }
    let mut rule = Record::new(call.now());
    take(&mut rule, call, params)?;
    Ok(RULES.save(call.db, holder, &mut rule, call.now())?)
}

/// Copies the rule of the nearest group above to a new project, if there is one.
pub(super) fn inherit(call: &Call<'_>, project: i64, namespace: &Namespace) -> Result<()> {
    if call.tier() < Tier::Premium || !namespace.is_group() {
        return Ok(());
    }
    let above: Vec<i64> = ids(&namespace.traversal).collect();
    for group in above.into_iter().rev() {
        if let Some(rule) = RULES.one(call.db, Holder::Group(group))? {
            let mut copy = Record { settings: rule.settings, ..Record::new(call.now()) };
            return Ok(RULES.save(call.db, Holder::Project(project), &mut copy, call.now())?);
        }
    }
    Ok(())
}

/// The project or group, whose caller must be a maintainer; 404 without a licence, and in a group
/// for all other callers.
fn scope(call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::kept_by(call, [MAINTAINER, 0])?;
    let is_hidden = call.is_of_group() && scope.level(call)? < MAINTAINER;
    refuse_if(is_hidden, Failure::hidden)?;
    call.require_tier(Tier::Premium).map(|()| scope)
}

fn find(call: &Call<'_>, scope: &Scope) -> Result<Option<Record>> {
    Ok(RULES.one(call.db, scope.holder())?)
}

fn absent(call: &Call<'_>) -> Failure {
    Failure::not_found(if call.service.profile.later_errors { "Push rule" } else { "Push Rule" })
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    match (find(call, scope)?, scope) {
        (Some(rule), _) => Answer::ok(&json(&rule, call, scope)),
        (None, Scope::Group(_)) => Err(Failure::hidden()),
        (None, _) => Answer::ok(&Value::Null),
    }
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let mut rule = Record::new(call.now());
    take(&mut rule, call, &call.params)?;
    if find(call, scope)?.is_some() {
        let text = scope.either("Project push rule exists", "Group push rule exists, try updating");
        return Err(match call.service.profile.later_errors {
            true => Failure::invalid_record(text),
            false => Failure::unprocessable(text),
        });
    }
    RULES.save(call.db, scope.holder(), &mut rule, call.now())?;
    Answer::created(&json(&rule, call, scope))
}

fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let mut rule = find(call, scope)?.ok_or_else(|| absent(call))?;
    take(&mut rule, call, &call.params)?;
    RULES.save(call.db, scope.holder(), &mut rule, call.now())?;
    Answer::ok(&json(&rule, call, scope))
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    match (find(call, scope)?, scope) {
        (Some(rule), _) => RULES.remove(call.db, &rule)?,
        (None, Scope::Group(_)) => return Err(Failure::hidden()),
        (None, _) if call.service.profile.absent_delete == AbsentDelete::NotFound => {
            return Err(absent(call));
        }
        (None, _) => {}
    }
    Ok(Answer::no_content())
}
