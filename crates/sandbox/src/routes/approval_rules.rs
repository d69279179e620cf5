//! Approval rules of a project (Premium). The reference leaves them out; all of this is the real
//! service's behaviour.
//!
//! Users, groups and branches that a rule cannot name are ignored without an error: clients must
//! compare the answer.

use super::super::store::approval_rule::{ANY, ApprovalRule};
use super::super::store::protection::Protection;
use super::approvals::{RULES_LOCK, is_locked, readable, writable};
use super::prelude::*;
use super::{grants, groups, protected_branches};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/approval_rules", list),
    post("/projects/{id}/approval_rules", create),
    get("/projects/{id}/approval_rules/{rule_id}", show),
    put("/projects/{id}/approval_rules/{rule_id}", update),
    delete("/projects/{id}/approval_rules/{rule_id}", remove),
];

const REGULAR: &str = "regular";
/// No rule with this name is stored.
const LICENSE: &str = "License-Check";
const REPORT: &str = "report_approver";
/// Rules for reports. Before release 18.9 a rule with such a name is one.
const REPORTS: [(&str, &str); 2] =
    [(LICENSE, "license_scanning"), ("Coverage-Check", "code_coverage")];
const REQUIRED: &str = "approvals_required";
const ALL_BRANCHES: &str = "applies_to_all_protected_branches";
/// Stands for a value that is not a number.
const NO_NUMBER: i64 = i64::MIN;
const MOST_APPROVALS: i64 = 100;
const LONGEST_NAME: usize = 1_024;

/// The project of a call that changes rules, unless the service allows only administrators to.
fn changeable(call: &Call<'_>) -> Result<Project> {
    let project = writable(call)?;
    let locked = is_locked(call, RULES_LOCK)?;
    refuse_if(locked && !call.is_administrator(), Failure::forbidden)?;
    Ok(project)
}

fn json(call: &Call<'_>, rule: &ApprovalRule) -> Result<Value> {
    let (mut groups, mut hidden) = (Vec::new(), false);
    for id in &rule.groups {
        match Namespace::by_id(call.db, *id)? {
            Some(group) if call.sees_group(&group)? => groups.push(groups::brief(call, &group)?),
            _ => hidden = true,
        }
    }
    let branches: Vec<Value> = Protection::all(call.db, rule.project_id, call.now())?
        .iter()
        .filter(|protection| rule.all_branches || rule.branches.contains(&protection.id))
        .map(|protection| protected_branches::json(call, protection))
        .collect::<Result<_, _>>()?;
    let mut body = json!({
        "id": rule.id,
        "name": rule.name,
        "rule_type": rule.rule_type,
        "eligible_approvers": users(call, &eligible(call, rule)?)?,
        "approvals_required": rule.approvals_required,
        "users": users(call, &rule.users)?,
        "groups": groups,
        "contains_hidden_groups": hidden,
        "protected_branches": branches,
        "applies_to_all_protected_branches": rule.all_branches,
    });
    let is_typed = rule.rule_type == REPORT || call.release() >= OBSERVED;
    set_if(&mut body, is_typed, "report_type", rule.report_type.clone());
    Ok(body)
}

fn users(call: &Call<'_>, ids: &[i64]) -> Result<Vec<Value>> {
    let mut shown = Vec::new();
    for id in ids {
        shown.extend(User::by_id(call.db, *id)?.map(|user| user.brief(call)));
    }
    Ok(shown)
}

/// The users of a rule and the members of its groups, as far as they are active.
fn eligible(call: &Call<'_>, rule: &ApprovalRule) -> Result<Vec<i64>> {
    let list = |ids: &[i64]| Value::from(ids).to_string();
    let sql = "SELECT u.id FROM users u WHERE u.state = 'active' AND (u.id IN (SELECT value FROM json_each(?1))
             OR u.id IN (SELECT m.user_id FROM members m WHERE m.state = 'active'
                 AND (m.expires_at IS NULL OR m.expires_at >= ?3)
                 AND m.group_id IN (SELECT value FROM json_each(?2))))
         ORDER BY u.id";
    call.many(sql, [&list(&rule.users), &list(&rule.groups), call.today()])
}

fn find(call: &Call<'_>, project: &Project) -> Result<ApprovalRule> {
    // Only writes check that it is a number.
    let id = match call.segment_id("rule_id") {
        Err(failure) if call.writes => return Err(failure),
        id => id.unwrap_or_default(),
    };
    stored(call, project.id, id)
}

/// A rule as it was stored, with its users and groups sorted.
fn stored(call: &Call<'_>, project: i64, id: i64) -> Result<ApprovalRule> {
    let mut all = ApprovalRule::all(call.db, project)?.into_iter();
    all.find(|rule| rule.id == id).ok_or_else(Failure::no_record)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let project = readable(call)?;
    let all = ApprovalRule::all(call.db, project.id)?;
    page::each(call, all.iter().map(|rule| json(call, rule)))
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let project = readable(call)?;
    Answer::ok(&json(call, &find(call, &project)?)?)
}

/// A list of ids; null is an empty list here.
fn list_of_ids(call: &Call<'_>, name: &str) -> Result<Option<Vec<i64>>> {
    let empty = call.params.get(name).is_some_and(Value::is_null).then(Vec::new);
    Ok(call.params.integers(name)?.or(empty))
}

/// A list of ids under either of two names.
fn ids(call: &Call<'_>, names: [&str; 2]) -> Result<Option<Vec<i64>>> {
    let [one, other] = [list_of_ids(call, names[0])?, list_of_ids(call, names[1])?];
    Ok(match (one, other) {
        (None, None) => None,
        (one, other) => Some([one.unwrap_or_default(), other.unwrap_or_default()].concat()),
    })
}

/// The users in a call, by id and by name, who are members of the project in any way.
fn wanted_users(call: &Call<'_>, project: &Project) -> Result<Option<Vec<i64>>> {
    let by_id = ids(call, ["user_ids", "users"])?;
    let names = call.params.texts("usernames")?;
    if by_id.is_none() && names.is_none() {
        return Ok(None);
    }
    let mut wanted = by_id.unwrap_or_default();
    for name in names.unwrap_or_default() {
        wanted.extend(User::by_username(call.db, &name)?.map(|user| user.id));
    }
    let mut members = Vec::new();
    for id in wanted {
        if User::by_id(call.db, id)?.is_some() && grants::level_of(call, project, id)? > 0 {
            members.push(id);
        }
    }
    Ok(Some(members))
}

/// The groups in a call that the caller sees.
fn wanted_groups(call: &Call<'_>) -> Result<Option<Vec<i64>>> {
    let Some(wanted) = ids(call, ["group_ids", "groups"])? else { return Ok(None) };
    let mut seen = Vec::new();
    for id in wanted {
        let group = Namespace::by_id(call.db, id)?.filter(Namespace::is_group);
        if let Some(group) = group
            && call.sees_group(&group)?
        {
            seen.push(id);
        }
    }
    Ok(Some(seen))
}

/// The project's protected branches in a call.
fn wanted_branches(call: &Call<'_>, project: &Project) -> Result<Option<Vec<i64>>> {
    let Some(wanted) = list_of_ids(call, "protected_branch_ids")? else { return Ok(None) };
    let known = Protection::all(call.db, project.id, call.now())?;
    Ok(Some(wanted.into_iter().filter(|id| known.iter().any(|branch| branch.id == *id)).collect()))
}

/// Reads name, number and branches, for POST and PUT. Before release 18.9 the flag for all branches
/// is off unless it is sent. Null as a number is refused.
fn take(call: &Call<'_>, project: &Project, rule: &mut ApprovalRule) -> Result<()> {
    if call.params.has("name") {
        rule.name = call.params.text("name")?.unwrap_or_default();
    }
    if call.params.has(REQUIRED) {
        rule.approvals_required = call.params.integer(REQUIRED)?.unwrap_or(NO_NUMBER);
    }
    if call.params.has(ALL_BRANCHES) || call.release() < OBSERVED {
        rule.all_branches = call.params.is_set(ALL_BRANCHES)?;
    }
    if let Some(branches) = wanted_branches(call, project)? {
        rule.branches = branches;
    }
    rule.updated_at = call.now().to_owned();
    Ok(())
}

/// 400 with all faults of a rule.
fn check(call: &Call<'_>, rule: &ApprovalRule) -> Result<()> {
    let all = ApprovalRule::all(call.db, rule.project_id)?;
    let mut others =
        all.iter().filter(|other| other.id != rule.id && other.rule_type == rule.rule_type);
    let taken = others.clone().any(|other| other.name == rule.name);
    let any = rule.rule_type == ANY && others.next().is_some();
    let reserved = REPORTS.iter().find(|(name, _)| *name == rule.name && *name != LICENSE);
    let name = match reserved {
        _ if rule.name.trim().is_empty() => Some("can't be blank".to_owned()),
        _ if rule.name.chars().count() > LONGEST_NAME => {
            Some(format!("is too long (maximum is {LONGEST_NAME} characters)"))
        }
        _ if taken => Some("has already been taken".to_owned()),
        Some((name, report)) if rule.rule_type == REGULAR => {
            Some(format!("{name} is reserved for {report} report type"))
        }
        _ => None,
    };
    let number = Some(rule.approvals_required).filter(|number| *number != NO_NUMBER);
    let required = number_fault(number, MOST_APPROVALS);
    let report = match rule.report_type.as_deref() {
        _ if rule.rule_type != REPORT => None,
        None => Some("can't be blank".to_owned()),
        Some(report) => {
            let own = REPORTS.iter().find(|(name, known)| *known == report && *name != LICENSE);
            own.filter(|(name, _)| *name != rule.name)
                .map(|(name, _)| format!("{report} only supports {name} name"))
        }
    };
    let any = any.then(|| "any-approver for the project already exists".to_owned());
    let mut complaints = Complaints::default();
    for (field, text) in
        [("name", name), (REQUIRED, required), ("report_type", report), ("rule_type", any)]
    {
        text.into_iter().for_each(|text| complaints.add(field, text));
    }
    complaints.settle()
}

/// A rule that names nobody is for anybody, unless the call contains a type. Before release 18.9,
/// names of users do not count.
fn create(call: &Call<'_>) -> Result<Answer> {
    let project = changeable(call)?;
    call.params.require(&["name", "approvals_required"])?;
    let said = call.params.one_of("rule_type", &[REGULAR, ANY, REPORT])?;
    let report = call.params.one_of("report_type", &REPORTS.map(|(_, report)| report))?;
    let mut rule = ApprovalRule { project_id: project.id, ..ApprovalRule::default() };
    take(call, &project, &mut rule)?;
    let former = call.release() < OBSERVED;
    let by_name = REPORTS.iter().find(|(name, _)| former && *name == rule.name);
    let by_name = by_name.map(|(_, report)| *report);
    let usernames =
        !former && call.params.texts("usernames")?.is_some_and(|names| !names.is_empty());
    let named = |names| Ok::<_, Failure>(ids(call, names)?.is_some_and(|ids| !ids.is_empty()));
    rule.rule_type = match said {
        Some(said) => said,
        None if by_name.is_some() => REPORT.to_owned(),
        None if usernames || named(["user_ids", "users"])? || named(["group_ids", "groups"])? => {
            REGULAR.to_owned()
        }
        None => ANY.to_owned(),
    };
    if rule.rule_type == REPORT {
        rule.report_type = report.or(by_name.map(str::to_owned));
    }
    rule.users = wanted_users(call, &project)?.unwrap_or_default();
    rule.groups = wanted_groups(call)?.unwrap_or_default();
    check(call, &rule)?;
    rule.save(call.db)?;
    Answer::created(&json(call, &stored(call, project.id, rule.id)?)?)
}

/// Lists that are not sent stay unchanged. Groups that the caller does not see stay, unless the
/// call removes them.
fn update(call: &Call<'_>) -> Result<Answer> {
    let project = changeable(call)?;
    let mut rule = find(call, &project)?;
    take(call, &project, &mut rule)?;
    if let Some(users) = wanted_users(call, &project)? {
        rule.users = users;
    }
    if let Some(mut groups) = wanted_groups(call)? {
        if !call.params.is_set("remove_hidden_groups")? {
            for id in &rule.groups {
                let group = Namespace::by_id(call.db, *id)?;
                if !group.is_some_and(|group| call.sees_group(&group).unwrap_or(false)) {
                    groups.push(*id);
                }
            }
        }
        rule.groups = groups;
    }
    check(call, &rule)?;
    rule.save(call.db)?;
    Answer::ok(&json(call, &stored(call, project.id, rule.id)?)?)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let project = changeable(call)?;
    let rule = find(call, &project)?;
    call.remove(&rule, &rule.updated_at)
}
