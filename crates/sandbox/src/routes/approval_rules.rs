//! Approval rules of a project (Premium). The reference does not describe approval rules. This
//! module follows the real service.
//!
//! The service ignores users, groups and branches that a rule cannot name, without an error.
//! Clients must compare the response with the request.

use super::approvals::{RULES_LOCK, is_instance_setting_on, readable_project, writable_project};
use super::prelude::*;

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: APPROVAL_RULES,
    find_scope: |_, call| {
        let project = if call.is_write { writable_project(call)? } else { readable_project(call)? };
        // The service may allow only administrators to change rules.
        let is_locked =
            call.is_write && !call.is_administrator() && is_instance_setting_on(call, RULES_LOCK)?;
        refuse_if(is_locked, ErrorResponse::forbidden)?;
        Ok(project.into())
    },
    complete: complete_rule,
    // The rule for any approver comes first, and the rules for reports come last.
    filter: |_, rules| {
        rules.sort_by_key(|rule| {
            (rule.text(RULE_TYPE) != ANY_APPROVER, rule.text(RULE_TYPE) == REPORT_APPROVER)
        });
        Ok(())
    },
    // Only writing operations check that the id is a number.
    find: |call| match call.segment_id(call.collection.entry_segment) {
        Err(failure) if call.is_write => Err(failure),
        Err(_) => Err(ErrorResponse::record_not_found()),
        Ok(_) => call.select_named_row(call.stored_rows()?),
    },
    to_json: rule_json,
    ..Callbacks::DEFAULT
}];

const APPROVAL_RULES: RecordTable = RecordTable("approval_rules");

const RULE_TYPE: &str = "rule_type";
const REPORT_TYPE: &str = "report_type";
const USERS: &str = "users";
const GROUPS: &str = "groups";
const BRANCH_IDS: &str = "protected_branch_ids";
/// The type of a rule that approvals of any users fulfil.
const ANY_APPROVER: &str = "any_approver";
const REGULAR_RULE: &str = "regular";
/// The name of rules for licence reports. Other rules may also have this name.
const LICENSE_RULE: &str = "License-Check";
const REPORT_APPROVER: &str = "report_approver";
/// The names of rules for reports, each with its report type. Before release 18.9, a new rule with
/// such a name becomes a rule for reports if the call contains no type.
const REPORT_RULES: [(&str, &str); 2] =
    [(LICENSE_RULE, "license_scanning"), ("Coverage-Check", "code_coverage")];
const APPROVALS_REQUIRED: &str = "approvals_required";
const ALL_BRANCHES: &str = "applies_to_all_protected_branches";
const MAX_APPROVALS: i64 = 100;
const MAX_NAME_LENGTH: usize = 1_024;

/// The ids in the list `field` of a rule.
fn stored_ids(rule: &Record, field: &str) -> Vec<i64> {
    rule.value(field).as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
}

/// Stores ids in a list of a rule, in order and without duplicates.
fn set_ids(rule: &mut Record, field: &str, mut ids: Vec<i64>) {
    ids.sort_unstable();
    ids.dedup();
    rule.set(field, ids);
}

fn rule_json(call: &CollectionCall<'_>, rule: &Record) -> Result<Value> {
    let (mut groups, mut has_hidden_groups) = (Vec::new(), false);
    for id in stored_ids(rule, GROUPS) {
        match Namespace::find_by_id(call.db, id)? {
            Some(group) if call.may_see_group(&group)? => {
                groups.push(groups::short_form_json(call, &group)?);
            }
            Some(_) => has_hidden_groups = true,
            None => {}
        }
    }
    let branch_ids = stored_ids(rule, BRANCH_IDS);
    let is_for_all_branches = rule.is_true(ALL_BRANCHES);
    let branches: Vec<Value> = call
        .scope
        .holder()
        .protections(call)?
        .iter()
        .filter(|protection| is_for_all_branches || branch_ids.contains(&protection.id))
        .map(|protection| protected_branches::protection_json(call, protection))
        .collect::<Result<_, _>>()?;
    let mut body = json!({
        "id": rule.id,
        "name": rule.text("name"),
        "rule_type": rule.value(RULE_TYPE),
        "eligible_approvers": users_json(call, &eligible_approver_ids(call, rule)?)?,
        "approvals_required": rule.value(APPROVALS_REQUIRED),
        "users": users_json(call, &stored_ids(rule, USERS))?,
        "groups": groups,
        "contains_hidden_groups": has_hidden_groups,
        "protected_branches": branches,
        "applies_to_all_protected_branches": is_for_all_branches,
    });
    let shows_type = rule.text(RULE_TYPE) == REPORT_APPROVER || call.is_observed_release_or_later();
    set_field_if(&mut body, shows_type, REPORT_TYPE, rule.value(REPORT_TYPE));
    Ok(body)
}

fn users_json(call: &Call<'_>, ids: &[i64]) -> Result<Vec<Value>> {
    let mut shown_users = Vec::new();
    for id in ids {
        shown_users.extend(User::find_by_id(call.db, *id)?.map(|user| user.brief_json(call)));
    }
    Ok(shown_users)
}

/// The ids of the active users of a rule, and of the active members of its groups.
fn eligible_approver_ids(call: &Call<'_>, rule: &Record) -> Result<Vec<i64>> {
    let make_ids_json = |name| Value::from(stored_ids(rule, name)).to_string();
    let sql = "SELECT u.id FROM users u WHERE u.state = 'active' AND (u.id IN (SELECT value FROM json_each(?1))
             OR u.id IN (SELECT m.user_id FROM members m WHERE m.state = 'active'
                 AND (m.expires_at IS NULL OR m.expires_at >= ?3)
                 AND m.group_id IN (SELECT value FROM json_each(?2))))
         ORDER BY u.id";
    call.query_column(sql, [&make_ids_json(USERS), &make_ids_json(GROUPS), call.today()])
}

/// Reads a list of ids. Null counts as an empty list.
fn read_ids(call: &Call<'_>, name: &str) -> Result<Option<Vec<i64>>> {
    let null_ids = call.get(name).is_some_and(Value::is_null).then(Vec::new);
    Ok(call.integers(name)?.or(null_ids))
}

/// Reads a list of ids from two parameters; `None` if neither of them was sent.
fn read_ids_by_any_name(call: &Call<'_>, names: [&str; 2]) -> Result<Option<Vec<i64>>> {
    let [first_ids, second_ids] = [read_ids(call, names[0])?, read_ids(call, names[1])?];
    Ok(match (first_ids, second_ids) {
        (None, None) => None,
        (ids, other_ids) => Some([ids.unwrap_or_default(), other_ids.unwrap_or_default()].concat()),
    })
}

/// The ids of the users that a call names by id or username. Users who are not members of the
/// project are ignored.
fn requested_user_ids(call: &Call<'_>, project: &Project) -> Result<Option<Vec<i64>>> {
    let requested_ids = read_ids_by_any_name(call, ["user_ids", "users"])?;
    let names = call.texts("usernames")?;
    if requested_ids.is_none() && names.is_none() {
        return Ok(None);
    }
    let mut user_ids = requested_ids.unwrap_or_default();
    for name in names.unwrap_or_default() {
        user_ids.extend(User::find_by_username(call.db, &name)?.map(|user| user.id));
    }
    try_filter(user_ids, |id| {
        Ok(User::find_by_id(call.db, *id)?.is_some()
            && call.user_level_in_project(*id, project)? > 0)
    })
    .map(Some)
}

/// True if a group with this id exists and the caller may see it.
fn may_see_group_with_id(call: &Call<'_>, id: i64) -> Result<bool> {
    let group = Namespace::find_by_id(call.db, id)?.filter(Namespace::is_group);
    group.map_or(Ok(false), |group| call.may_see_group(&group))
}

/// The ids of the groups in a call that the caller can see.
fn requested_group_ids(call: &Call<'_>) -> Result<Option<Vec<i64>>> {
    let Some(group_ids) = read_ids_by_any_name(call, ["group_ids", "groups"])? else {
        return Ok(None);
    };
    try_filter(group_ids, |id| may_see_group_with_id(call, *id)).map(Some)
}

/// The ids in a call that belong to protected branches of the project. Other ids are ignored.
fn requested_branch_ids(call: &Call<'_>, project: &Project) -> Result<Option<Vec<i64>>> {
    let Some(mut branch_ids) = read_ids(call, "protected_branch_ids")? else { return Ok(None) };
    let protections = Holder::Project(project.id).protections(call)?;
    branch_ids.retain(|id| protections.iter().any(|branch| branch.id == *id));
    Ok(Some(branch_ids))
}

/// Fills in and checks a rule. Lists that are not sent stay unchanged. Before release 18.9 the flag
/// for all branches is off unless the call contains it.
fn complete_rule(call: &CollectionCall<'_>, rule: &mut Record) -> Result<()> {
    let project = call.project()?;
    if !call.has(ALL_BRANCHES) && !call.is_observed_release_or_later() {
        rule.set(ALL_BRANCHES, false);
    }
    if let Some(branch_ids) = requested_branch_ids(call, project)? {
        set_ids(rule, BRANCH_IDS, branch_ids);
    }
    if rule.id == 0 {
        complete_type(call, rule)?;
    }
    if let Some(user_ids) = requested_user_ids(call, project)? {
        set_ids(rule, USERS, user_ids);
    }
    if let Some(mut group_ids) = requested_group_ids(call)? {
        group_ids.extend(hidden_group_ids(call, rule)?);
        set_ids(rule, GROUPS, group_ids);
    }
    check_rule(rule, &call.stored_rows()?)
}

/// The ids of a rule's groups that the caller does not see. These groups stay in the rule, unless
/// the call removes hidden groups.
fn hidden_group_ids(call: &Call<'_>, rule: &Record) -> Result<Vec<i64>> {
    let removes_hidden = call.is_true("remove_hidden_groups")?;
    try_filter(stored_ids(rule, GROUPS), |id| {
        Ok(!removes_hidden && !may_see_group_with_id(call, *id)?)
    })
}

/// Sets the type of a new rule. Unless the call contains a type, a rule without users and groups is
/// for any approver. Before release 18.9, usernames in the call do not count as users.
fn complete_type(call: &Call<'_>, rule: &mut Record) -> Result<()> {
    let is_before_observed = !call.is_observed_release_or_later();
    let report_rule =
        REPORT_RULES.iter().find(|(name, _)| is_before_observed && *name == rule.text("name"));
    let has_usernames = call.texts("usernames")?.is_some_and(|names| !names.is_empty());
    let has_ids = |names| {
        Ok::<_, ErrorResponse>(
            read_ids_by_any_name(call, names)?.is_some_and(|ids| !ids.is_empty()),
        )
    };
    let has_approvers = has_usernames && !is_before_observed
        || has_ids(["user_ids", "users"])?
        || has_ids(["group_ids", "groups"])?;
    let default_type = if has_approvers { REGULAR_RULE } else { ANY_APPROVER };
    if rule.text(RULE_TYPE).is_empty() {
        rule.set(RULE_TYPE, report_rule.map_or(default_type, |_| REPORT_APPROVER));
    }
    if rule.text(RULE_TYPE) != REPORT_APPROVER {
        rule.settings.remove(REPORT_TYPE);
    } else if let (Some((_, report)), Value::Null) = (report_rule, rule.value(REPORT_TYPE)) {
        rule.set(REPORT_TYPE, *report);
    }
    Ok(())
}

/// Fails with 400 and all errors of a rule.
fn check_rule(rule: &Record, stored_rules: &[Record]) -> Result<()> {
    let (rule_type, rule_name) = (rule.text(RULE_TYPE), rule.text("name"));
    let mut same_type_rules = stored_rules
        .iter()
        .filter(|other| other.id != rule.id && other.text(RULE_TYPE) == rule_type);
    let is_taken = same_type_rules.clone().any(|other| other.text("name") == rule_name);
    let has_other_any_approver = rule_type == ANY_APPROVER && same_type_rules.next().is_some();
    let reserved_rule =
        REPORT_RULES.iter().find(|(name, _)| *name == rule_name && *name != LICENSE_RULE);
    let name_error = match reserved_rule {
        _ if rule_name.trim().is_empty() => Some(BLANK_TEXT.to_owned()),
        _ if rule_name.chars().count() > MAX_NAME_LENGTH => {
            Some(format!("is too long (maximum is {MAX_NAME_LENGTH} characters)"))
        }
        _ if is_taken => Some(TAKEN_TEXT.to_owned()),
        Some((name, report)) if rule_type == REGULAR_RULE => {
            Some(format!("{name} is reserved for {report} report type"))
        }
        _ => None,
    };
    let count_error = number_error(rule.value(APPROVALS_REQUIRED).as_i64(), MAX_APPROVALS);
    let report_error = match rule.text(REPORT_TYPE) {
        _ if rule_type != REPORT_APPROVER => None,
        "" => Some(BLANK_TEXT.to_owned()),
        report => {
            let entry = REPORT_RULES
                .iter()
                .find(|(name, report_type)| *report_type == report && *name != LICENSE_RULE);
            entry
                .filter(|(name, _)| *name != rule_name)
                .map(|(name, _)| format!("{report} only supports {name} name"))
        }
    };
    let type_error =
        has_other_any_approver.then(|| "any-approver for the project already exists".to_owned());
    let mut errors = FieldErrors::default();
    for (field, text) in [
        ("name", name_error),
        (APPROVALS_REQUIRED, count_error),
        (REPORT_TYPE, report_error),
        (RULE_TYPE, type_error),
    ] {
        text.into_iter().for_each(|text| errors.add(field, text));
    }
    errors.into_result()
}

/// Creates the rule for any approver, or changes its number of approvals. Returns false for a rule with a
/// custom name, which is not changed.
pub(super) fn require_approvals(
    call: &Call<'_>,
    project_id: i64,
    [former_count, requested_count]: [Option<&Value>; 2],
) -> Result<bool> {
    const DEFAULT_NAME: &str = "All Members";
    let changed_count =
        requested_count.filter(|value| value.is_i64() && former_count != Some(value));
    let Some(count) = changed_count.filter(|_| call.is_premium()) else {
        return Ok(true);
    };
    let holder = Holder::Project(project_id);
    let stored_rule = APPROVAL_RULES.list_with_text(call, holder, RULE_TYPE, ANY_APPROVER)?.pop();
    let mut rule = stored_rule.unwrap_or_else(|| {
        let mut rule = Record::new(call.time_text());
        rule.set("name", DEFAULT_NAME);
        rule.set(RULE_TYPE, ANY_APPROVER);
        rule
    });
    if rule.text("name") != DEFAULT_NAME {
        return Ok(false);
    }
    rule.set(APPROVALS_REQUIRED, count.clone());
    APPROVAL_RULES.save(call, holder, &mut rule)?;
    Ok(true)
}
