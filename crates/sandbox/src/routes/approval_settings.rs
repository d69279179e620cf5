//! How merge requests are approved, as groups and projects say it together (Premium): each setting
//! with whether something above decides on it. What a project says is also in its approvals.

use serde_json::{Map, Value, json};

use super::super::access::{MAINTAINER, OWNER, ids};
use super::super::answer::{Answer, Failure};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::kept::OF_GROUPS;
use super::super::store::namespace::Namespace;
use super::super::store::project::Project;
use super::{Route, approvals, get, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/merge_request_approval_setting", show_project),
    put("/projects/{id}/merge_request_approval_setting", update_project),
    get("/groups/{id}/merge_request_approval_setting", show_group),
    put("/groups/{id}/merge_request_approval_setting", update_group),
];

/// Where a group keeps its settings.
const KEPT: &str = "merge_request_approval_setting";

/// What a setting does to those below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Off above is off below.
    Allows,
    /// On above is on below.
    Requires,
    /// What it says counts only where the approvals stay.
    Selects,
}

/// A setting, the flag of a project that says the same, and whether that says it the other way
/// round.
struct Setting {
    name: &'static str,
    flag: &'static str,
    opposite: bool,
    rule: Rule,
}

const fn setting(name: &'static str, flag: &'static str, opposite: bool, rule: Rule) -> Setting {
    Setting { name, flag, opposite, rule }
}

const RETAIN: &str = "retain_approvals_on_push";
const PASSWORD: &str = "require_password_to_approve";
const REAUTHENTICATION: &str = "require_reauthentication_to_approve";
const SETTINGS: [Setting; 7] = [
    setting("allow_author_approval", "merge_requests_author_approval", false, Rule::Allows),
    setting(
        "allow_committer_approval",
        "merge_requests_disable_committers_approval",
        true,
        Rule::Allows,
    ),
    setting(
        "allow_overrides_to_approver_list_per_merge_request",
        "disable_overriding_approvers_per_merge_request",
        true,
        Rule::Allows,
    ),
    setting(RETAIN, "reset_approvals_on_push", true, Rule::Allows),
    setting("selective_code_owner_removals", "selective_code_owner_removals", false, Rule::Selects),
    setting(PASSWORD, PASSWORD, false, Rule::Requires),
    // The newer name.
    setting(REAUTHENTICATION, PASSWORD, false, Rule::Requires),
];

fn settings(call: &Call<'_>) -> impl Iterator<Item = &'static Setting> {
    let newer = call.is_from(17, 1);
    SETTINGS.iter().filter(move |setting| newer || setting.name != REAUTHENTICATION)
}

/// What a group has said, if it ever did.
fn of_group(call: &Call<'_>, group: i64) -> Result<Option<Map<String, Value>>, Failure> {
    Ok(match OF_GROUPS.set(call.db, group)?.remove(KEPT) {
        Some(Value::Object(said)) => Some(said),
        _ => None,
    })
}

/// What the group at the top of a project's namespace has said.
fn above(call: &Call<'_>, namespace: &Namespace) -> Result<Option<Map<String, Value>>, Failure> {
    match ids(&namespace.traversal).next().filter(|_| namespace.is_group()) {
        Some(top) => of_group(call, top),
        None => Ok(None),
    }
}

fn is_on(said: &Map<String, Value>, name: &str) -> bool {
    said.get(name) == Some(&Value::Bool(true))
}

/// The values that a group forces upon the flags of its projects.
pub(super) fn forced(
    call: &Call<'_>,
    project: &Project,
) -> Result<Vec<(&'static str, bool)>, Failure> {
    let Some(said) = above(call, &project.namespace)? else { return Ok(Vec::new()) };
    let force = |setting: &Setting| match (setting.rule, is_on(&said, setting.name)) {
        (Rule::Allows, false) => Some((setting.flag, setting.opposite)),
        (Rule::Requires, true) => Some((setting.flag, true)),
        _ => None,
    };
    Ok(SETTINGS.iter().filter_map(force).collect())
}

/// The answer: what holds of each setting, and who says so. `own` is what is said here, `group` what
/// the group says.
fn resolved(
    call: &Call<'_>,
    group: Option<&Map<String, Value>>,
    own: impl Fn(&Setting) -> bool,
    is_group: bool,
) -> Result<Answer, Failure> {
    let mut body = json!({});
    for setting in settings(call) {
        let by_service = match approvals::lock_of(setting.flag) {
            Some(lock) => approvals::is_locked(call, lock)?,
            None => false,
        };
        let by_group = match (setting.rule, group) {
            (_, None) => false,
            (Rule::Selects, Some(said)) => !is_on(said, RETAIN),
            (_, Some(_)) if is_group => false,
            (Rule::Allows, Some(said)) => !is_on(said, setting.name),
            (Rule::Requires, Some(said)) => is_on(said, setting.name),
        };
        let value = match setting.rule {
            Rule::Allows => own(setting) && !by_service && !by_group,
            Rule::Requires => own(setting) || by_group,
            Rule::Selects => own(setting),
        };
        let from = match (by_service, by_group) {
            (true, _) => Some("instance"),
            (false, true) => Some("group"),
            (false, false) => None,
        };
        body[setting.name] =
            json!({ "value": value, "locked": from.is_some(), "inherited_from": from });
    }
    Answer::ok(&body)
}

/// What a call sets; at least one setting.
fn sent(call: &Call<'_>) -> Result<Vec<(&'static Setting, bool)>, Failure> {
    let mut sent = Vec::new();
    for setting in settings(call) {
        match call.params.flag(setting.name)? {
            Some(on) => sent.push((setting, on)),
            None if call.params.has(setting.name) => {
                return Err(Failure::parameter(setting.name, "is empty"));
            }
            None => {}
        }
    }
    let names: Vec<&str> = settings(call).map(|setting| setting.name).collect();
    call.params.require_any(&names)?;
    Ok(sent)
}

fn project(call: &Call<'_>) -> Result<Project, Failure> {
    let project = call.project_as(MAINTAINER)?;
    call.require_tier(Tier::Premium)?;
    Ok(project)
}

fn respond(call: &Call<'_>, project: &Project) -> Result<Answer, Failure> {
    let group = above(call, &project.namespace)?;
    let flags = approvals::flags(call, project.id)?;
    resolved(call, group.as_ref(), |setting| is_on(&flags, setting.flag) != setting.opposite, false)
}

fn show_project(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call)?;
    respond(call, &project)
}

fn update_project(call: &Call<'_>) -> Result<Answer, Failure> {
    let project = project(call)?;
    let mut flags = approvals::flags(call, project.id)?;
    for (setting, on) in sent(call)? {
        flags.insert(setting.flag.to_owned(), (on != setting.opposite).into());
    }
    approvals::save(call, project.id, flags)?;
    respond(call, &project)
}

fn group(call: &Call<'_>) -> Result<Namespace, Failure> {
    let group = call.group_as(OWNER)?;
    call.require_tier(Tier::Premium)?;
    Ok(group)
}

/// A group that never said anything allows everything.
fn respond_for(call: &Call<'_>, group: &Namespace) -> Result<Answer, Failure> {
    let said = of_group(call, group.id)?;
    let own = |setting: &Setting| match &said {
        Some(said) => is_on(said, setting.name),
        None => setting.rule == Rule::Allows,
    };
    resolved(call, said.as_ref(), own, true)
}

fn show_group(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = group(call)?;
    respond_for(call, &group)
}

/// The first change of a group sets what it does not name to false.
fn update_group(call: &Call<'_>) -> Result<Answer, Failure> {
    let group = group(call)?;
    let mut said = of_group(call, group.id)?.unwrap_or_default();
    for (setting, on) in sent(call)? {
        let both = [PASSWORD, REAUTHENTICATION];
        match both.contains(&setting.name) {
            true => both.iter().for_each(|name| drop(said.insert((*name).to_owned(), on.into()))),
            false => drop(said.insert(setting.name.to_owned(), on.into())),
        }
    }
    OF_GROUPS.put(call.db, group.id, KEPT, Value::Object(said))?;
    respond_for(call, &group)
}
