//! Environments of projects, and their protection by projects and groups.

use super::collections::CLUSTER_AGENTS;
use super::fields::{apply_row_changes, row_id_or_next};
use super::prelude::*;

pub(super) const CALLBACKS: &[Callbacks] = &[ENVIRONMENT_CALLBACKS, PROTECTION_CALLBACKS];

const ENVIRONMENT_TIERS: &[&str] = &["production", "staging", "testing", "development", "other"];

/// Words in a name that show the tier of an environment.
const TIER_WORDS: [(&str, &[&str]); 4] = [
    ("development", &["dev", "review", "trunk"]),
    ("testing", &["test", "tst", "int", "acpt", "acept", "qa", "qc", "control", "quality"]),
    ("staging", &["stg", "stag", "modl", "model", "pre", "demo", "non"]),
    ("production", &["prd", "prod", "live"]),
];

const ENVIRONMENT_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("environments"),
    operations: &[(Method::POST, "/{entry}/stop", CollectionOperation::Custom(stop_environment))],
    filter: filter_environments,
    complete: complete_environment,
    check_removal: |call, row| {
        let can_remove = row.text("state") == "stopped" && may_deploy(call, row)?;
        refuse_if(!can_remove, ErrorResponse::forbidden)?;
        call.check_unmodified(&row.updated_at)
    },
    to_json: environment_json,
    ..Callbacks::DEFAULT
};

const AUTO_STOP_SETTING: &str = "auto_stop_setting";
const AGENT_ID: &str = "cluster_agent_id";
const KUBERNETES_NAMESPACE: &str = "kubernetes_namespace";
const FLUX_PATH: &str = "flux_resource_path";

/// The states of an environment.
const ENVIRONMENT_STATES: &[&str] = &["available", "stopping", "stopped"];

fn filter_environments(call: &CollectionCall<'_>, rows: &mut Vec<Record>) -> Result<()> {
    call.refuse_both(["name", "search"])?;
    if let Some(state) = call.allowed_text("states", ENVIRONMENT_STATES)? {
        rows.retain(|row| row.text("state") == state);
    }
    if let Some(text) = call.text("search")?.filter(|text| !text.is_empty()) {
        let is_short = text.chars().count() < 3;
        let message = "Search query is less than 3 characters";
        refuse_if(is_short, || ErrorResponse::bad_request(message))?;
        let text = text.to_lowercase();
        rows.retain(|row| row.text("name").to_lowercase().contains(&text));
    }
    Ok(())
}

/// True if each protection of the environment, by its name or tier, has a grant for the caller.
fn may_deploy(call: &CollectionCall<'_>, row: &Record) -> Result<bool> {
    let project = call.project()?;
    if call.is_administrator() || !call.is_premium() {
        return Ok(true);
    }
    let mut protections = PROTECTED_ENVIRONMENTS.list(call, call.scope.holder())?;
    protections.retain(|protection| protection.text("name") == row.text("name"));
    for group_id in traversal_ids(&project.namespace.traversal) {
        let mut tier_protections = PROTECTED_ENVIRONMENTS.list(call, Holder::Group(group_id))?;
        tier_protections.retain(|protection| protection.text("name") == row.text("tier"));
        protections.append(&mut tier_protections);
    }
    let (user_id, level) = (call.require_user()?.id, call.caller_level_in_project(project)?);
    let includes_caller = |grant: &Value| -> Result<bool> {
        let group = Namespace::find_by_optional_id(call.db, grant["group_id"].as_i64())?;
        let group_level =
            group.map(|group| call.caller_level_in_group(&group)).transpose()?.unwrap_or(0);
        Ok(grant["user_id"] == user_id
            || grant["user_id"].is_null()
                && grant["group_id"].is_null()
                && grant["access_level"].as_i64().is_some_and(|min_level| level >= min_level)
            || group_level > 0)
    };
    Ok(!try_any(protections, |protection: Record| {
        let grants = protection.value(DEPLOY_LEVELS);
        Ok(!try_any(grants.as_array().into_iter().flatten(), includes_caller)?)
    })?)
}

fn complete_environment(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let stored_rows = call.stored_rows()?;
    let text = "is automatically generated and cannot be changed";
    refuse_if(call.has("slug"), || ErrorResponse::parameter_error("slug", text))?;
    // From 16.0 on, the name of an environment cannot be changed.
    let stored_row = stored_rows.iter().find(|other| other.id == row.id);
    if let Some(stored) = stored_row.filter(|_| call.is_at_least(16, 0)) {
        row.set("name", stored.text("name"));
    }
    let agent = find_agent(call, row)?;
    let has_sent_agent = call.has(AGENT_ID) && !row.value(AGENT_ID).is_null();
    let message = "cluster agent doesn't exist or cannot be associated with this environment";
    refuse_if(has_sent_agent && agent.is_none(), || ErrorResponse::bad_request(message))?;
    check_environment(row, &stored_rows, stored_row, agent.is_some())
        .map_err(|failure| if row.id == 0 { convert_to_sentences(failure) } else { failure })?;
    for name in ["external_url", AUTO_STOP_SETTING] {
        if row.text(name).is_empty() {
            row.settings.remove(name);
        }
    }
    if row.id == 0 {
        row.set("state", "available");
        row.set("slug", make_slug(row.text("name")));
    }
    if row.text("tier").is_empty() {
        let lower_name = row.text("name").to_lowercase();
        let mut tiers = TIER_WORDS.iter();
        let tier = tiers.find(|(_, words)| words.iter().any(|word| lower_name.contains(word)));
        row.set("tier", tier.map_or("other", |(tier, _)| tier));
    }
    Ok(())
}

/// Refuses an environment with errors. Unchanged fields are not checked again.
fn check_environment(
    row: &Record,
    rows: &[Record],
    former_row: Option<&Record>,
    has_agent: bool,
) -> Result<()> {
    let mut errors = FieldErrors::default();
    let name = row.text("name");
    errors.add_if(name.is_empty(), "name", BLANK_TEXT);
    errors.add_if(row.has_duplicate(rows, "name"), "name", TAKEN_TEXT);
    let slug = make_slug(name);
    let is_slug_taken = rows.iter().any(|other| row.id == 0 && other.text("slug") == slug);
    errors.add_if(is_slug_taken, "slug", TAKEN_TEXT);
    let url = row.text("external_url");
    // A URL without a scheme is not checked.
    if url.contains(':')
        && let Some(error) = urls::url_error(url, &["http", "https"], None)
    {
        errors.add("external_url", error);
    }
    let is_changed =
        |name: &str| former_row.map_or(Value::Null, |stored| stored.value(name)) != row.value(name);
    let has_namespace = !row.text(KUBERNETES_NAMESPACE).is_empty();
    for (name, required_field, has_required_field, problem) in [
        (KUBERNETES_NAMESPACE, AGENT_ID, has_agent, "cannot be set without a cluster agent"),
        (
            FLUX_PATH,
            KUBERNETES_NAMESPACE,
            has_namespace,
            "cannot be set without a kubernetes namespace",
        ),
    ] {
        let needs_check =
            !row.text(name).is_empty() && (is_changed(name) || is_changed(required_field));
        errors.add_if(needs_check && !has_required_field, name, problem);
    }
    errors.into_result()
}

/// A short form of a name for URLs. If the short form differs from the name, it ends with a digest
/// of the name.
fn make_slug(name: &str) -> String {
    let mut slug = name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    if !slug.starts_with(|c: char| c.is_ascii_lowercase()) {
        slug.insert_str(0, "env-");
    }
    if slug == name && slug.len() <= 24 && !slug.ends_with('-') {
        return slug;
    }
    slug.truncate(17);
    let digest = format!("{:x}", Sha256::digest(name.as_bytes()));
    format!("{}-{}", slug.trim_end_matches('-'), &digest[..6])
}

fn environment_json(call: &CollectionCall<'_>, row: &Record) -> Result<Value> {
    let project = call.project()?.simple_form(call, ExtraFields::from_call(call)?)?.into_value()?;
    let mut body = call.plain_json(row);
    body["slug"] = row.value("slug");
    body["project"] = project;
    body["state"] = row.value("state");
    if let Some(agent) = find_agent(call, row)?
        && call.caller_level()? >= DEVELOPER
    {
        body["cluster_agent"] =
            CollectionCall { collection: find_built_in(CLUSTER_AGENTS), ..*call }
                .row_json(&agent)?;
        body[KUBERNETES_NAMESPACE] = row.value(KUBERNETES_NAMESPACE);
        body[FLUX_PATH] = row.value(FLUX_PATH);
    }
    Ok(body)
}

/// The agent of an environment, if the project still has it.
fn find_agent(call: &CollectionCall<'_>, row: &Record) -> Result<Option<Record>> {
    let id = row.value(AGENT_ID).as_i64();
    Ok(id.map_or(Ok(None), |id| CLUSTER_AGENTS.find(call, call.scope.holder(), id))?)
}

/// Stops an environment at once, because the sandbox runs no jobs. If only a job may stop the
/// environment, the call needs `force`.
fn stop_environment(call: &CollectionCall<'_>) -> Result<Answer> {
    let mut row = call.find_entry()?;
    refuse_if(!may_deploy(call, &row)?, ErrorResponse::forbidden)?;
    let needs_job = row.text("state") != "stopped" && row.text(AUTO_STOP_SETTING) == "with_action";
    refuse_if(needs_job && !call.is_true("force")?, || {
        ErrorResponse::bad_request(
            "Attempted to stop the environment but failed to change the status",
        )
    })?;
    row.set("state", "stopped");
    call.store(&mut row)?;
    Answer::ok(&environment_json(call, &row)?)
}

/// A project protects environments by name, a group protects the environments of a tier.
const PROTECTED_ENVIRONMENTS: RecordTable = RecordTable("protected_environments");

const PROTECTION_CALLBACKS: Callbacks = Callbacks {
    table: PROTECTED_ENVIRONMENTS,
    filter: |_, rows| {
        rows.sort_by_cached_key(|row| row.text("name").to_owned());
        Ok(())
    },
    complete: complete_protection,
    to_json: |_, row| {
        Ok(row.json_fields(&["name", DEPLOY_LEVELS, APPROVAL_COUNT, APPROVAL_RULES].join(" ")))
    },
    ..Callbacks::DEFAULT
};

const DEPLOY_LEVELS: &str = "deploy_access_levels";
const APPROVAL_RULES: &str = "approval_rules";
const APPROVAL_COUNT: &str = "required_approval_count";

fn complete_protection(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let is_group = matches!(call.scope, GroupOrProject::Group(_));
    let count = call.integer(APPROVAL_COUNT)?;
    let deprecation_text = "Parameter 'required_approval_count' is deprecated and shouldn't be used. See https://gitlab.com/groups/gitlab-org/-/epics/9662";
    let is_deprecated = call.is_observed_release_or_later() && count.is_some_and(|count| count > 0);
    refuse_if(is_deprecated, || ErrorResponse::invalid_record(deprecation_text))?;
    if row.id != 0 {
        // The path contains the name, and the name cannot be changed.
        row.set("name", call.segment("entry"));
    } else if row.has_duplicate(&call.stored_rows()?, "name") {
        let name = row.text("name");
        return Err(ErrorResponse::conflict(
            &if !is_group && call.is_observed_release_or_later() {
                format!("Environment '{name}' is already protected")
            } else {
                format!("Protected environment '{name}' already exists")
            },
        ));
    } else if is_group && !ENVIRONMENT_TIERS.contains(&row.text("name")) {
        let tiers = ENVIRONMENT_TIERS.join(", ");
        let message = format!("Name must be one of environment tiers: {tiers}");
        return Err(ErrorResponse::invalid_record(vec![message]));
    }
    let stored_count = row.settings.get(APPROVAL_COUNT).and_then(Value::as_i64);
    row.set(APPROVAL_COUNT, count.or(stored_count).unwrap_or(0));
    for field in [DEPLOY_LEVELS, APPROVAL_RULES] {
        let new_rows = apply_row_changes(
            call,
            field,
            row.value(field),
            |stored_row, requested_row, is_removal| {
                // Even the removal of an approval rule must repeat its grantee.
                if is_removal && field == APPROVAL_RULES {
                    check_grantee(field, requested_row)?;
                }
                if is_removal {
                    Ok(None)
                } else {
                    complete_grant(call, field, stored_row, requested_row)
                }
            },
        )?;
        refuse_if(field == DEPLOY_LEVELS && new_rows.is_empty(), || {
            ErrorResponse::invalid_record(
                "Deploy access levels is too short (minimum is 1 character)",
            )
        })?;
        row.set(field, new_rows);
    }
    Ok(())
}

/// The fields that can name a grantee. Each grant has exactly one of these fields.
const GRANTEE_FIELDS: [&str; 3] = ["access_level", "user_id", "group_id"];

const EXACTLY_ONE_TEXT: &str = "Exactly one of access_level, group_id, user_id must be present";

/// Refuses an element that does not have exactly one of [`GRANTEE_FIELDS`].
fn check_grantee(field: &str, requested_row: &Value) -> Result<()> {
    match GRANTEE_FIELDS.iter().filter(|name| !requested_row[**name].is_null()).count() {
        1 => Ok(()),
        0 if field == APPROVAL_RULES => {
            let names = GRANTEE_FIELDS.map(|name| format!("{field}[{name}]"));
            Err(ErrorResponse::parameter_error(&names.join(", "), NONE_SENT_TEXT))
        }
        _ => Err(invalid_row(field, EXACTLY_ONE_TEXT)),
    }
}

fn invalid_row(field: &str, text: &str) -> ErrorResponse {
    let noun = if field == APPROVAL_RULES { "Approval rules" } else { "Deploy access levels" };
    ErrorResponse::invalid_record(vec![format!("{noun} {text}")])
}

/// Makes an element of a list of grants; `None` if its user or group is not allowed. In a project,
/// a user needs access of any kind, and a group must be invited. In a group, a user must be at
/// least a maintainer, and a group must be a subgroup.
fn complete_grant(
    call: &CollectionCall<'_>,
    field: &str,
    stored_row: Option<&Value>,
    requested_row: &Value,
) -> Result<Option<Value>> {
    let read_number = |name: &str| read_integer(&format!("{field}[{name}]"), &requested_row[name]);
    check_grantee(field, requested_row)?;
    let (user_id, group_id) = (read_number("user_id")?, read_number("group_id")?);
    let level = read_allowed_integer(
        &format!("{field}[access_level]"),
        &requested_row["access_level"],
        |level| [DEVELOPER, MAINTAINER, 60].contains(&level),
    )?;
    let grantee = match (user_id, group_id, level) {
        (Some(id), ..) if is_user_grantable(call, id)? => Some(Grantee::User(id)),
        (_, Some(id), _) if is_group_grantable(call, id)? => Some(Grantee::Group(id)),
        (None, None, Some(level)) => Some(Grantee::Level(level)),
        _ => None,
    };
    let grantee_name =
        grantee.map_or(Ok(None), |named_grantee| grants::grantee_name(call, named_grantee))?;
    let Some(grantee_name) = grantee_name else {
        return stored_row.map_or(Ok(None), |_| Err(invalid_row(field, EXACTLY_ONE_TEXT)));
    };
    let mut body = json!({
        "id": row_id_or_next(call, stored_row)?,
        // The column of the service's table has a default value, also for users and groups.
        "access_level": level.or((field == DEPLOY_LEVELS).then_some(MAINTAINER)),
        "access_level_description": grantee_name,
        "user_id": user_id,
        "group_id": group_id,
        "group_inheritance_type": read_number("group_inheritance_type")?.unwrap_or(0),
    });
    if field == APPROVAL_RULES {
        let count = read_number("required_approvals")?.unwrap_or(1);
        let text = "required approvals must be greater than or equal to 1";
        refuse_if(count < 1, || invalid_row(field, text))?;
        body["required_approvals"] = count.into();
    }
    let changes_type = stored_row.is_some_and(|stored| {
        GRANTEE_FIELDS.into_iter().any(|name| body[name].is_null() != stored[name].is_null())
    });
    refuse_if(changes_type, || invalid_row(field, EXACTLY_ONE_TEXT))?;
    Ok(Some(body))
}

/// True if a grant may name this user.
fn is_user_grantable(call: &CollectionCall<'_>, user_id: i64) -> Result<bool> {
    Ok(match call.scope {
        GroupOrProject::Group(group) => {
            let memberships = Memberships::read(call.db, user_id, call.today())?;
            memberships.level_in_namespace(&group.traversal) >= MAINTAINER
        }
        GroupOrProject::Project(project) => call.user_level_in_project(user_id, project)? > 0,
    })
}

/// True if a grant may name this group.
fn is_group_grantable(call: &CollectionCall<'_>, group_id: i64) -> Result<bool> {
    let GroupOrProject::Group(group) = call.scope else {
        let sql = "SELECT EXISTS (SELECT 1 FROM shares WHERE project_id = ?1 AND invited_id = ?2)";
        return call.query_value(sql, [call.scope.id(), group_id]);
    };
    Ok(Namespace::find_by_id(call.db, group_id)?.is_some_and(|other_group| {
        other_group.id != group.id && other_group.traversal.starts_with(&*group.traversal)
    }))
}
