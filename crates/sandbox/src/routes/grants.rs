//! What calls say about the grants of a protected branch or tag: `allowed_to_push` and its like.
//!
//! Such a list is a difference. An element without `id` adds a grant, one with `id` changes that
//! grant, one with `id` and `_destroy` takes it away; grants that no element names stay.

use serde_json::{Map, Value, json};

use super::super::access::{self, DEVELOPER, MAINTAINER, OWNER, Standing};
use super::super::answer::Failure;
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::params::{Params, flag, integer};
use super::super::store::namespace::Namespace;
use super::super::store::project::Project;
use super::super::store::protection::{self, Action, Grant, Grantee, Protection};
use super::super::store::user::User;

/// Nobody.
const NO_ONE: i64 = 0;
/// Administrators of the service.
const ADMINISTRATORS: i64 = 60;
/// The levels that can be granted, as answers describe them. Nobody cannot unprotect.
const LEVELS: [(i64, &str); 4] = [
    (NO_ONE, "No one"),
    (DEVELOPER, "Developers + Maintainers"),
    (MAINTAINER, "Maintainers"),
    (ADMINISTRATORS, "Instance admins"),
];

/// As answers show a grant. Users and groups are of the licensed build.
pub(super) fn json(call: &Call<'_>, grant: &Grant) -> Result<Value, Failure> {
    // The column of the level has a default, which grants of users and groups keep.
    let kept = Some(MAINTAINER).filter(|_| !call.service.profile.grants_without_level);
    let (level, user, group) = match grant.to {
        Grantee::Level(level) => (Some(level), None, None),
        Grantee::User(id) => (kept, Some(id), None),
        Grantee::Group(id) => (kept, None, Some(id)),
    };
    let name = match grant.to {
        Grantee::Level(level) => describe(level).to_owned(),
        Grantee::User(id) => User::by_id(call.db, id)?.map(|user| user.name).unwrap_or_default(),
        Grantee::Group(id) => {
            Namespace::by_id(call.db, id)?.map(|group| group.name).unwrap_or_default()
        }
    };
    let mut body =
        json!({ "id": grant.id, "access_level": level, "access_level_description": name });
    if call.tier() >= Tier::Premium {
        body["user_id"] = user.into();
        body["group_id"] = group.into();
    }
    Ok(body)
}

/// What answers call a level.
fn describe(level: i64) -> &'static str {
    LEVELS.iter().find(|(value, _)| *value == level).map_or("", |(_, name)| name)
}

/// The list of grants that an action has in calls.
pub(super) fn list_name(action: Action) -> String {
    format!("allowed_to_{}", action.word())
}

/// What one element of a list asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    action: Action,
    id: Option<i64>,
    destroy: bool,
    to: Option<Grantee>,
}

/// A level that may be granted for an action.
fn checked_level(action: Action, name: &str, level: i64) -> Result<i64, Failure> {
    let known = LEVELS.iter().any(|(value, _)| *value == level);
    let refused = match action {
        Action::Push | Action::Merge => false,
        Action::Unprotect => level == NO_ONE,
        Action::Create => level == ADMINISTRATORS,
    };
    match known && !refused {
        true => Ok(level),
        false => Err(Failure::no_valid_value(name)),
    }
}

/// Reads the lists of these actions; they need Premium, and are ignored below.
pub(super) fn changes(
    tier: Tier,
    params: &Params,
    actions: &[Action],
) -> Result<Vec<Change>, Failure> {
    if tier < Tier::Premium {
        return Ok(Vec::new());
    }
    let lists: Vec<_> =
        actions.iter().map(|action| (*action, params.get(&list_name(*action)))).collect();
    let wrong: Vec<String> = lists
        .iter()
        .filter(|(_, list)| list.is_some_and(|list| !is_list(list)))
        .map(|(action, _)| format!("{} is invalid", list_name(*action)))
        .collect();
    if !wrong.is_empty() {
        return Err(Failure::error(http::StatusCode::BAD_REQUEST, wrong.join(", ")));
    }
    let mut changes = Vec::new();
    for (action, list) in lists {
        let elements = list.and_then(Value::as_array).into_iter().flatten();
        for (number, element) in elements.filter_map(Value::as_object).enumerate() {
            changes.push(change(action, number, element)?);
        }
    }
    Ok(changes)
}

/// An array of objects; null and a blank text, as forms have it, are empty ones.
fn is_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_object),
        Value::String(text) => text.is_empty(),
        other => other.is_null(),
    }
}

/// Reads one element. It names one of a level, a user and a group.
fn change(action: Action, number: usize, element: &Map<String, Value>) -> Result<Change, Failure> {
    let list = list_name(action);
    let name = |key: &str| format!("{list}[{number}][{key}]");
    let read = |key: &str| element.get(key).map_or(Ok(None), |value| integer(&name(key), value));
    let level = read("access_level")?
        .map(|level| checked_level(action, &name("access_level"), level))
        .transpose()?;
    let targets = [
        level.map(Grantee::Level),
        read("user_id")?.map(Grantee::User),
        read("group_id")?.map(Grantee::Group),
    ];
    let id = read("id")?;
    let destroy = element.get("_destroy").map_or(Ok(None), |on| flag(&name("_destroy"), on))?;
    let mut named = targets.into_iter().flatten();
    let to = named.next();
    if named.next().is_some() || (to.is_none() && id.is_none()) {
        return Err(Failure::invalid(&list));
    }
    Ok(Change { action, id, destroy: destroy == Some(true), to })
}

/// The grants of a new protection for these actions: what the lists say, the single levels, and a level where neither
/// says something.
pub(super) fn of_new(
    tier: Tier,
    params: &Params,
    actions: &[Action],
) -> Result<Vec<Change>, Failure> {
    let listed = changes(tier, params, actions)?;
    let licensed = |action| action != Action::Unprotect || tier >= Tier::Premium;
    let mut all = Vec::new();
    for action in actions.iter().copied().filter(|action| licensed(*action)) {
        let name = format!("{}_access_level", action.word());
        let level = match params.integer(&name)? {
            Some(level) => Some(checked_level(action, &name, level)?),
            None if listed.iter().any(|change| change.action == action) => None,
            None => Some(MAINTAINER),
        };
        let to = level.map(Grantee::Level);
        all.extend(to.map(|to| Change { action, id: None, destroy: false, to: Some(to) }));
    }
    all.extend(listed);
    Ok(all)
}

/// What the changes come to, and what is wrong with them in whole sentences.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) revoked: Vec<i64>,
    pub(super) regranted: Vec<(i64, Grantee)>,
    pub(super) added: Vec<(Action, Grantee)>,
    pub(super) complaints: Vec<String>,
}

impl Plan {
    /// Plans changes of grants of which `stored` are there.
    pub(super) fn new(
        call: &Call<'_>,
        project: &Project,
        stored: &[Grant],
        changes: &[Change],
    ) -> Result<Self, Failure> {
        let mut plan = Self::default();
        for change in changes {
            let own = match change.id {
                None => None,
                Some(id) => Some(find(stored, change.action, id)?),
            };
            match (own, change.to) {
                (Some(own), _) if change.destroy => plan.revoked.push(own.id),
                (Some(own), Some(to)) if is_changed(own.to, to) => {
                    plan.check(call, project, stored, change.action, own.id, to)?;
                    plan.regranted.push((own.id, to));
                }
                (None, Some(to)) if !change.destroy => {
                    plan.check(call, project, stored, change.action, 0, to)?;
                    plan.added.push((change.action, to));
                }
                _ => {}
            }
        }
        plan.complaints.dedup();
        Ok(plan)
    }

    /// Checks a grant against those that are stored, also against what the same call takes away.
    fn check(
        &mut self,
        call: &Call<'_>,
        project: &Project,
        stored: &[Grant],
        action: Action,
        own: i64,
        to: Grantee,
    ) -> Result<(), Failure> {
        let taken =
            stored.iter().any(|other| other.action == action && other.to == to && other.id != own)
                || self.added.contains(&(action, to));
        let complaint =
            if taken { Some("has already been taken") } else { fault(call, project, to)? };
        if let Some(complaint) = complaint {
            let mut words = format!("{} access levels", action.word());
            words[..1].make_ascii_uppercase();
            let field = match to {
                Grantee::Level(_) => "access level",
                Grantee::User(_) => "user",
                Grantee::Group(_) => "group",
            };
            self.complaints.push(format!("{words} {field} {complaint}"));
        }
        Ok(())
    }

    /// Carries it out on a protection.
    pub(super) fn apply(&self, call: &Call<'_>, branch: i64) -> Result<(), Failure> {
        for id in &self.revoked {
            protection::revoke(call.db, *id)?;
        }
        for (id, to) in &self.regranted {
            protection::regrant(call.db, *id, *to)?;
        }
        for (action, to) in &self.added {
            protection::grant(call.db, branch, *action, *to)?;
        }
        Ok(())
    }
}

fn find(stored: &[Grant], action: Action, id: i64) -> Result<Grant, Failure> {
    let found = stored.iter().find(|grant| grant.id == id && grant.action == action);
    found.copied().ok_or_else(Failure::no_record)
}

/// A level does not turn the grant of a user or group into one of a role.
fn is_changed(from: Grantee, to: Grantee) -> bool {
    from != to && (matches!(from, Grantee::Level(_)) || !matches!(to, Grantee::Level(_)))
}

/// Why something cannot be granted to somebody: a user has to be a member, in any way; a group has
/// to be invited to the project itself, as a developer or higher.
fn fault(call: &Call<'_>, project: &Project, to: Grantee) -> Result<Option<&'static str>, Failure> {
    let blank = Some("can't be blank");
    Ok(match to {
        Grantee::Level(_) => None,
        Grantee::User(id) if User::by_id(call.db, id)?.is_none() => blank,
        Grantee::User(id) if level_of(call, project, id)? > 0 => None,
        Grantee::User(_) => Some("is not a member of the project"),
        Grantee::Group(id) if Namespace::by_id(call.db, id)?.is_none() => blank,
        Grantee::Group(id) if is_invited(call, project.id, id)? => None,
        Grantee::Group(_) => Some("does not have access to the project"),
    })
}

/// The level that a user has in a project, however they came by it.
pub(super) fn level_of(call: &Call<'_>, project: &Project, user: i64) -> Result<i64, Failure> {
    if project.namespace.owner_id == Some(user) {
        return Ok(OWNER);
    }
    let today = call.today();
    let direct = access::direct_level(call.db, user, project.id, today)?.unwrap_or(0);
    let standing = Standing::of(call.db, user, today)?;
    Ok(direct.max(access::inherited_level(call.db, &standing, project, today)?))
}

fn is_invited(call: &Call<'_>, project: i64, group: i64) -> Result<bool, Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM shares WHERE project_id = ?1 AND invited_id = ?2 AND access_level >= ?3)";
    Ok(call.db.prepare_cached(sql)?.query_row([project, group, DEVELOPER], |row| row.get(0))?)
}

/// Whether the caller is among those who may unprotect: everybody who may protect, unless grants
/// say who (Premium).
pub(super) fn may_unprotect(
    call: &Call<'_>,
    project: &Project,
    granted: &[Grantee],
) -> Result<bool, Failure> {
    if call.tier() < Tier::Premium || call.is_administrator() || granted.is_empty() {
        return Ok(true);
    }
    is_granted(call, project, granted)
}

/// Whether the caller is among those to whom something is granted. Administrators are, unless it is
/// granted to nobody.
pub(super) fn is_granted(
    call: &Call<'_>,
    project: &Project,
    granted: &[Grantee],
) -> Result<bool, Failure> {
    if call.is_administrator() {
        return Ok(granted.iter().any(|to| *to != Grantee::Level(NO_ONE)));
    }
    let user = call.user()?.id;
    let level = call.level_in(project)?;
    for to in granted {
        let named = match *to {
            Grantee::Level(NO_ONE | ADMINISTRATORS) => false,
            Grantee::Level(least) => level >= least,
            Grantee::User(id) => id == user,
            Grantee::Group(id) => match Namespace::by_id(call.db, id)? {
                Some(group) => call.standing()?.in_namespace(&group.traversal) > 0,
                None => false,
            },
        };
        if named {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Who may unprotect a branch that is protected already.
pub(super) fn unprotectors(protection: &Protection) -> Vec<Grantee> {
    protection.granted(Action::Unprotect).map(|grant| grant.to).collect()
}
