//! Environments of projects, and their protection by projects and groups.

use sha2::{Digest, Sha256};

use super::collections::{AGENTS, group_with_level, maintained_project};
use super::fields::{change_rows, row_id};
use super::grants;
use super::names::convert_to_sentences;
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] =
    &[ENVIRONMENTS, PROTECTED_ENVIRONMENTS, PROTECTED_TIERS];

pub(super) const ROUTES: &[Route] = &[ENVIRONMENTS.route(
    Method::POST,
    "/projects/{id}/environments/{entry}/stop",
    Verb::Custom(stop),
)];

const TIERS: &[&str] = &["production", "staging", "testing", "development", "other"];

/// Words in a name that show the tier of an environment.
const TIER_WORDS: [(&str, &[&str]); 4] = [
    ("development", &["dev", "review", "trunk"]),
    ("testing", &["test", "tst", "int", "acpt", "acept", "qa", "qc", "control", "quality"]),
    ("staging", &["stg", "stag", "modl", "model", "pre", "demo", "non"]),
    ("production", &["prd", "prod", "live"]),
];

const ENVIRONMENTS: Collection = Collection {
    required_features: &[&["environments_access_level"], &["builds_access_level"]],
    read_level: 0,
    write_level: DEVELOPER,
    required: &["name"],
    fields: &[
        RowField::new("name", Form::Text),
        RowField::new("external_url", Form::Text),
        RowField::new("tier", Form::Word(TIERS)),
        RowField { since: Some(Release::new(17, 8)), ..RowField::new("description", Form::Text) },
        RowField {
            since: Some(Release::new(17, 8)),
            preset: r#""always""#,
            ..RowField::new(AUTO_STOP, Form::Word(&["always", "with_action"]))
        },
        RowField {
            answer_name: "",
            since: AGENT_FIELDS_RELEASE,
            ..RowField::new(AGENT, Form::Integer)
        },
        RowField {
            answer_name: "",
            since: AGENT_FIELDS_RELEASE,
            ..RowField::new(NAMESPACE, Form::Text)
        },
        RowField {
            answer_name: "",
            since: AGENT_FIELDS_RELEASE,
            ..RowField::new(FLUX_PATH, Form::Text)
        },
    ],
    extra_members: &[("auto_stop_at", "null")],
    filters: &["name"],
    filter: filter_environments,
    complete: complete_environment,
    check_removal: |call, row| {
        let can_remove = row.text("state") == "stopped" && may_deploy(call, row)?;
        refuse_if(!can_remove, ErrorResponse::forbidden)?;
        call.check_unmodified(&row.updated_at)
    },
    json: environment_json,
    ..Collection::new("/projects/{id}/environments")
};

const AUTO_STOP: &str = "auto_stop_setting";
const AGENT: &str = "cluster_agent_id";
const NAMESPACE: &str = "kubernetes_namespace";
const FLUX_PATH: &str = "flux_resource_path";
/// The first release with the fields of the agent.
const AGENT_FIELDS_RELEASE: Option<Release> = Some(Release::new(17, 5));

/// The states of an environment.
const STATES: &[&str] = &["available", "stopping", "stopped"];

fn filter_environments(call: &CollectionCall<'_>, rows: &mut Vec<Record>) -> Result<()> {
    let params = &call.params;
    params.refuse_both(["name", "search"])?;
    if let Some(state) = params.allowed_text("states", STATES)? {
        rows.retain(|row| row.text("state") == state);
    }
    if let Some(text) = params.text("search")?.filter(|text| !text.is_empty()) {
        let is_short = text.chars().count() < 3;
        refuse_if(is_short, || {
            ErrorResponse::bad_request("Search query is less than 3 characters")
        })?;
        let text = text.to_lowercase();
        rows.retain(|row| row.text("name").to_lowercase().contains(&text));
    }
    Ok(())
}

/// True if the caller has a level that a protected environment asks for, by its name or by its tier.
fn may_deploy(call: &CollectionCall<'_>, row: &Record) -> Result<bool> {
    let project = call.project()?;
    if call.is_administrator() || call.tier() < PROTECTED_ENVIRONMENTS.tier {
        return Ok(true);
    }
    let mut protections = PROTECTED_ENVIRONMENTS.rows.all(call, call.scope.holder())?;
    protections.retain(|protection| protection.text("name") == row.text("name"));
    for group in traversal_ids(&project.namespace.traversal) {
        let tier_protections = PROTECTED_TIERS.rows.all(call, Holder::Group(group))?;
        protections.extend(
            tier_protections.into_iter().filter(|one| one.text("name") == row.text("tier")),
        );
    }
    let (user, level) = (call.user()?.id, call.level_in(project)?);
    let admits_caller = |grant: &Value| -> Result<bool> {
        let group = Namespace::by_any(call.db, grant["group_id"].as_i64())?;
        let group_level = group.map(|group| call.level_in_group(&group)).transpose()?.unwrap_or(0);
        Ok(grant["user_id"] == user
            || grant["user_id"].is_null()
                && grant["group_id"].is_null()
                && grant["access_level"].as_i64().is_some_and(|least| level >= least)
            || group_level > 0)
    };
    Ok(!try_any(protections, |protection: Record| {
        Ok(!try_any(
            protection.value(DEPLOY_LEVELS).as_array().into_iter().flatten(),
            admits_caller,
        )?)
    })?)
}

fn complete_environment(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let stored_rows = call.stored_rows()?;
    if call.params.has("slug") {
        return Err(ErrorResponse::parameter(
            "slug",
            "is automatically generated and cannot be changed",
        ));
    }
    // From 16.0 on a name cannot be changed.
    let stored_row = stored_rows.iter().find(|other| other.id == row.id);
    if let Some(before) = stored_row.filter(|_| call.is_at_least(16, 0)) {
        row.set("name", before.text("name"));
    }
    let agent = find_agent(call, row)?;
    let has_sent_agent = call.params.has(AGENT) && !row.value(AGENT).is_null();
    refuse_if(has_sent_agent && agent.is_none(), || {
        let text = "cluster agent doesn't exist or cannot be associated with this environment";
        ErrorResponse::bad_request(text)
    })?;
    check(row, &stored_rows, stored_row, agent.is_some())
        .map_err(|failure| if row.id == 0 { convert_to_sentences(failure) } else { failure })?;
    for name in ["external_url", AUTO_STOP] {
        if row.text(name).is_empty() {
            row.settings.remove(name);
        }
    }
    if row.id == 0 {
        row.set("state", "available");
        row.set("slug", slug(row.text("name")));
    }
    if row.text("tier").is_empty() {
        let lower_name = row.text("name").to_lowercase();
        let mut tiers = TIER_WORDS.iter();
        let tier = tiers.find(|(_, words)| words.iter().any(|word| lower_name.contains(word)));
        row.set("tier", tier.map_or("other", |(tier, _)| tier));
    }
    Ok(())
}

/// The faults of an environment. Unchanged fields are not checked again.
fn check(row: &Record, rows: &[Record], former: Option<&Record>, has_agent: bool) -> Result<()> {
    let mut complaints = Complaints::default();
    let name = row.text("name");
    complaints.add_if(name.is_empty(), "name", "can't be blank");
    complaints.add_if(row.is_taken(rows, "name"), "name", "has already been taken");
    let slug = slug(name);
    let is_slug_taken = rows.iter().any(|other| row.id == 0 && other.text("slug") == slug);
    complaints.add_if(is_slug_taken, "slug", "has already been taken");
    let url = row.text("external_url");
    // A URL without a scheme is not checked.
    if url.contains(':')
        && let Some(refusal) = urls::url_refusal(url, &["http", "https"], Reach::Anywhere)
    {
        complaints.add("external_url", refusal);
    }
    let is_changed =
        |name: &str| former.map_or(Value::Null, |before| before.value(name)) != row.value(name);
    let has_namespace = !row.text(NAMESPACE).is_empty();
    for (name, other, has_other, words) in [
        (NAMESPACE, AGENT, has_agent, "cannot be set without a cluster agent"),
        (FLUX_PATH, NAMESPACE, has_namespace, "cannot be set without a kubernetes namespace"),
    ] {
        let is_set = !row.text(name).is_empty() && (is_changed(name) || is_changed(other));
        complaints.add_if(is_set && !has_other, name, words);
    }
    complaints.into_result()
}

/// A name in the form for URLs: short, plain, and with a mark if it was changed.
fn slug(name: &str) -> String {
    let mut slug = name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    if !slug.starts_with(|c: char| c.is_ascii_lowercase()) {
        slug.insert_str(0, "env-");
    }
    if slug == name && slug.len() <= 24 && !slug.ends_with('-') {
        return slug;
    }
    slug.truncate(17);
    let mark = format!("{:x}", Sha256::digest(name.as_bytes()));
    format!("{}-{}", slug.trim_end_matches('-'), &mark[..6])
}

fn environment_json(call: &CollectionCall<'_>, row: &Record) -> Result<Value> {
    let project =
        view::simple_form(call, call.project()?, Extras::from_call(call)?)?.into_value()?;
    let mut body = call.plain_json(row);
    body["slug"] = row.value("slug");
    body["project"] = project;
    body["state"] = row.value("state");
    if let Some(agent) = find_agent(call, row)?
        && call.level()? >= AGENTS.read_level
    {
        body["cluster_agent"] = CollectionCall { collection: &AGENTS, ..*call }.json(&agent)?;
        body[NAMESPACE] = row.value(NAMESPACE);
        body[FLUX_PATH] = row.value(FLUX_PATH);
    }
    Ok(body)
}

/// The agent of an environment, if the project still has it.
fn find_agent(call: &CollectionCall<'_>, row: &Record) -> Result<Option<Record>> {
    let id = row.value(AGENT).as_i64();
    Ok(id.map_or(Ok(None), |id| AGENTS.rows.find(call, call.scope.holder(), id))?)
}

/// No jobs run here, so it stops at once; one that only a job stops needs `force`.
fn stop(call: &CollectionCall<'_>) -> Result<Answer> {
    let mut row = call.find()?;
    refuse_if(!may_deploy(call, &row)?, ErrorResponse::forbidden)?;
    let needs_job = row.text("state") != "stopped" && row.text(AUTO_STOP) == "with_action";
    refuse_if(needs_job && !call.params.is_set("force")?, || {
        ErrorResponse::bad_request(
            "Attempted to stop the environment but failed to change the status",
        )
    })?;
    row.set("state", "stopped");
    call.store(&mut row)?;
    Answer::ok(&environment_json(call, &row)?)
}

const PROTECTED_ENVIRONMENTS: Collection = Collection {
    key: "name",
    tier: AttributeTier::Premium,
    required: &["name", DEPLOY_LEVELS],
    fields: &[RowField::new("name", Form::Text)],
    scope: |_, call| maintained_project(call),
    filter: |_, rows| {
        rows.sort_by_cached_key(|row| row.text("name").to_owned());
        Ok(())
    },
    complete: complete_protected,
    json: |_, row| {
        Ok(row.members(&["name", DEPLOY_LEVELS, APPROVAL_COUNT, APPROVAL_RULES].join(" ")))
    },
    ..Collection::new("/projects/{id}/protected_environments")
};

/// Groups protect the environments of a tier.
const PROTECTED_TIERS: Collection = Collection {
    path: "/groups/{id}/protected_environments",
    scope: |_, call| group_with_level(call, OWNER),
    ..PROTECTED_ENVIRONMENTS
};

const DEPLOY_LEVELS: &str = "deploy_access_levels";
const APPROVAL_RULES: &str = "approval_rules";
const APPROVAL_COUNT: &str = "required_approval_count";

fn complete_protected(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let is_group = matches!(call.scope, GroupOrProject::Group(_));
    let count = call.params.integer(APPROVAL_COUNT)?;
    if count.is_some_and(|count| count > 0) && call.release() >= OBSERVED_RELEASE {
        return Err(ErrorResponse::invalid_record(
            "Parameter 'required_approval_count' is deprecated and shouldn't be used. See https://gitlab.com/groups/gitlab-org/-/epics/9662",
        ));
    }
    if row.id != 0 {
        // The path contains the name; it cannot be changed.
        row.set("name", call.segment("entry"));
    } else if row.is_taken(&call.stored_rows()?, "name") {
        let name = row.text("name");
        return Err(ErrorResponse::conflict(&if !is_group && call.release() >= OBSERVED_RELEASE {
            format!("Environment '{name}' is already protected")
        } else {
            format!("Protected environment '{name}' already exists")
        }));
    } else if is_group && !TIERS.contains(&row.text("name")) {
        let tiers = TIERS.join(", ");
        let words = format!("Name must be one of environment tiers: {tiers}");
        return Err(ErrorResponse::invalid_record(vec![words]));
    }
    let stored_count = row.settings.get(APPROVAL_COUNT).and_then(Value::as_i64);
    row.set(APPROVAL_COUNT, count.or(stored_count).unwrap_or(0));
    for list in [DEPLOY_LEVELS, APPROVAL_RULES] {
        let new_rows = change_rows(call, list, row.value(list), |former, sent, removes| {
            // An edit of an approval rule must repeat its grantee.
            if removes && list == APPROVAL_RULES {
                check_grantee(list, sent)?;
            }
            if removes { Ok(None) } else { complete_grant(call, list, former, sent) }
        })?;
        refuse_if(list == DEPLOY_LEVELS && new_rows.is_empty(), || {
            ErrorResponse::invalid_record(
                "Deploy access levels is too short (minimum is 1 character)",
            )
        })?;
        row.set(list, new_rows);
    }
    Ok(())
}

/// The fields for a grantee; each element has exactly one of them.
const GRANTEE_FIELDS: [&str; 3] = ["access_level", "user_id", "group_id"];

const EXACTLY_ONE: &str = "Exactly one of access_level, group_id, user_id must be present";

/// Refuses an element that does not have exactly one of these fields.
fn check_grantee(list: &str, requested_row: &Value) -> Result<()> {
    match GRANTEE_FIELDS.iter().filter(|name| !requested_row[**name].is_null()).count() {
        1 => Ok(()),
        0 if list == APPROVAL_RULES => {
            let names = GRANTEE_FIELDS.map(|name| format!("{list}[{name}]"));
            Err(ErrorResponse::parameter(&names.join(", "), NONE_SENT))
        }
        _ => Err(invalid_row(list, EXACTLY_ONE)),
    }
}

fn invalid_row(list: &str, words: &str) -> ErrorResponse {
    let noun = if list == APPROVAL_RULES { "Approval rules" } else { "Deploy access levels" };
    ErrorResponse::invalid_record(vec![format!("{noun} {words}")])
}

/// One element of a list of grants; `None` if its user or group has no access. In a project, a user
/// needs access of any kind and a group must be invited. In a group, a user needs membership of the
/// required level, and a group must be below it.
fn complete_grant(
    call: &CollectionCall<'_>,
    list: &str,
    stored_row: Option<&Value>,
    sent: &Value,
) -> Result<Option<Value>> {
    let read = |name: &str| read_integer(&format!("{list}[{name}]"), &sent[name]);
    check_grantee(list, sent)?;
    let (user_id, group_id) = (read("user_id")?, read("group_id")?);
    let level = number_of(&format!("{list}[access_level]"), &sent["access_level"], |level| {
        [DEVELOPER, MAINTAINER, 60].contains(&level)
    })?;
    let grantee = match (user_id, group_id, level) {
        (Some(id), ..) if may_user_deploy(call, id)? => Some(Grantee::User(id)),
        (_, Some(id), _) if may_group_deploy(call, id)? => Some(Grantee::Group(id)),
        (None, None, Some(level)) => Some(Grantee::Level(level)),
        _ => None,
    };
    let description = grantee.map_or(Ok(None), |to| grants::grantee_name(call, to))?;
    let Some(description) = description else {
        return stored_row.map_or(Ok(None), |_| Err(invalid_row(list, EXACTLY_ONE)));
    };
    let mut body = json!({
        "id": row_id(call, stored_row)?,
        // The column of the service's table has a default value, also for users and groups.
        "access_level": level.or((list == DEPLOY_LEVELS).then_some(MAINTAINER)),
        "access_level_description": description,
        "user_id": user_id,
        "group_id": group_id,
        "group_inheritance_type": read("group_inheritance_type")?.unwrap_or(0),
    });
    if list == APPROVAL_RULES {
        let count = read("required_approvals")?.unwrap_or(1);
        refuse_if(count < 1, || {
            invalid_row(list, "required approvals must be greater than or equal to 1")
        })?;
        body["required_approvals"] = count.into();
    }
    let is_other = stored_row.is_some_and(|before| {
        GRANTEE_FIELDS.into_iter().any(|name| body[name].is_null() != before[name].is_null())
    });
    refuse_if(is_other, || invalid_row(list, EXACTLY_ONE))?;
    Ok(Some(body))
}

/// True if a user has enough access to be named.
fn may_user_deploy(call: &CollectionCall<'_>, user: i64) -> Result<bool> {
    Ok(match call.scope {
        GroupOrProject::Group(group) => {
            let memberships = Memberships::read(call.db, user, call.today())?;
            memberships.level_in_namespace(&group.traversal) >= MAINTAINER
        }
        GroupOrProject::Project(project) => call.level_of(user, project)? > 0,
    })
}

/// True if a group can be named.
fn may_group_deploy(call: &CollectionCall<'_>, group_id: i64) -> Result<bool> {
    let GroupOrProject::Group(group) = call.scope else {
        let sql = "SELECT EXISTS (SELECT 1 FROM shares WHERE project_id = ?1 AND invited_id = ?2)";
        return call.query_value(sql, [call.scope.id(), group_id]);
    };
    Ok(Namespace::by_id(call.db, group_id)?.is_some_and(|named| {
        named.id != group.id && named.traversal.starts_with(&*group.traversal)
    }))
}
