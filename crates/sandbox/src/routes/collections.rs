//! The callbacks of plain collections of projects and groups that the reference does not describe: milestones,
//! deploy tokens, external status checks, rules that protect packages and container repositories,
//! agents of clusters and resource groups.

use super::prelude::*;

pub(super) const CALLBACKS: &[Callbacks] = &[
    MILESTONE_CALLBACKS,
    DEPLOY_TOKEN_CALLBACKS,
    STATUS_CHECK_CALLBACKS,
    PACKAGE_RULE_CALLBACKS,
    REGISTRY_RULE_CALLBACKS,
    CLUSTER_AGENT_CALLBACKS,
    RESOURCE_GROUP_CALLBACKS,
];

pub(super) const ROUTES: &[Route] = &[get("/deploy_tokens", list_all_deploy_tokens)];

const MILESTONE_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("milestones"),
    filter: |call, rows| {
        // Milestones without a due date come last. Among equal due dates, the newest comes first.
        rows.sort_by_cached_key(|row| {
            let due_date = row.text("due_date").to_owned();
            (due_date.is_empty(), due_date, std::cmp::Reverse(row.id))
        });
        let search = call.text("search")?.unwrap_or_default().to_lowercase();
        rows.retain(|row| {
            ["title", "description"]
                .iter()
                .any(|name| row.text(name).to_lowercase().contains(&search))
        });
        if let Some(iids) = call.integers("iids")? {
            rows.retain(|row| row.value("iid").as_i64().is_some_and(|iid| iids.contains(&iid)));
        }
        Ok(())
    },
    complete: complete_milestone,
    to_json: |call, row| {
        let scope = call.scope;
        let scope_path = match scope {
            GroupOrProject::Group(group) => format!("groups/{}", group.full_path),
            GroupOrProject::Project(project) => project.full_path.clone(),
        };
        let (due_date, iid) = (row.text("due_date"), row.value("iid"));
        let mut body = call.plain_json(row);
        body[scope.id_column()] = scope.id().into();
        body["state"] = row.value("state");
        body["expired"] = (!due_date.is_empty() && due_date < call.today()).into();
        body["web_url"] = format!("{}/{scope_path}/-/milestones/{iid}", call.base_url).into();
        body["iid"] = iid;
        Ok(body)
    },
    ..Callbacks::DEFAULT
};

fn complete_milestone(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let stored_rows = call.stored_rows()?;
    if row.id != 0 {
        let names = call.collection.fields.iter().map(|field| field.name);
        call.require_any(&names.collect::<Vec<_>>())?;
    }
    let (start_date, due_date) = (row.text("start_date"), row.text("due_date"));
    let error = if row.text("title").is_empty() {
        Some(("title", BLANK_TEXT))
    } else if row.has_duplicate(&stored_rows, "title") || is_title_in_hierarchy(call, row)? {
        Some(("title", "already being used for another group or project milestone."))
    } else if !start_date.is_empty() && !due_date.is_empty() && due_date < start_date {
        Some(("due_date", "must be greater than start date"))
    } else {
        None
    };
    if let Some((field, problem)) = error {
        let message = format!("Failed to create milestone {{:{field}=>[\"{problem}\"]}}");
        return Err(message.into());
    }
    let is_closed = row.settings.remove("state_event").map(|event| event == "close");
    if row.id == 0 {
        let last_iid =
            stored_rows.iter().filter_map(|other| other.settings.get("iid")?.as_i64()).max();
        row.set("iid", last_iid.unwrap_or(0) + 1);
    }
    if let Some(should_close) = is_closed.or((row.id == 0).then_some(false)) {
        row.set("state", if should_close { "closed" } else { "active" });
    }
    Ok(())
}

/// True if the group of the project, or a project of the group, has a milestone with the same title.
fn is_title_in_hierarchy(call: &CollectionCall<'_>, row: &Record) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM milestones WHERE settings ->> 'title' = ?1
                   AND (group_id = ?2 OR project_id IN (SELECT id FROM projects WHERE namespace_id = ?3)))";
    let (group_id, namespace_id) = match call.scope {
        GroupOrProject::Group(group) => (None, Some(group.id)),
        GroupOrProject::Project(project) => (Some(project.namespace.id), None),
    };
    call.query_value(sql, params![row.text("title"), group_id, namespace_id])
}

const DEPLOY_TOKENS: RecordTable = RecordTable("deploy_tokens");

const DEPLOY_TOKEN_CALLBACKS: Callbacks = Callbacks {
    table: DEPLOY_TOKENS,
    complete: |_, row| {
        let text = "Scopes can't be blank";
        refuse_if(row.value("scopes").as_array().is_none_or(Vec::is_empty), || text.into())
    },
    to_json: |call, row| Ok(deploy_token_json(call, row)),
    ..Callbacks::DEFAULT
};

fn deploy_token_json(call: &Call<'_>, row: &Record) -> Value {
    let (expires_at, username) = (row.text("expires_at"), row.text("username"));
    let default_username = format!("gitlab+deploy-token-{}", row.id);
    let mut body = row.json_fields("id name username expires_at scopes revoked expired");
    body["username"] = if username.is_empty() { &default_username } else { username }.into();
    body["revoked"] = false.into();
    body["expired"] = (!expires_at.is_empty() && expires_at <= call.time_text()).into();
    if call.is_write {
        // The token is not stored, because no request of the sandbox accepts it.
        body["token"] = call.random_hex().into();
    }
    body
}

/// All deploy tokens of the service, for administrators.
fn list_all_deploy_tokens(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let rows = DEPLOY_TOKENS.list_all(call)?;
    page::list_page(call, rows.iter().map(|row| deploy_token_json(call, row)))
}

const STATUS_CHECK_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("external_status_checks"),
    find_scope: |_, call| {
        let project = call.require_writable_project(MAINTAINER);
        Ok(project.map_err(ErrorResponse::forbidden_as_unauthorized)?.into())
    },
    complete: |call, row| {
        let stored_rows = call.stored_rows()?;
        if row.id != 0 {
            check_branches(call)?;
        }
        let mut errors = Vec::new();
        for (field, label) in [("name", "Name"), ("external_url", "External url")] {
            if row.text(field).is_empty() {
                errors.push(format!("{label} can't be blank"));
            } else if row.has_duplicate(&stored_rows, field) {
                errors.push(format!("{label} has already been taken"));
            }
        }
        refuse_if(!errors.is_empty(), || ErrorResponse::invalid_record(errors))
    },
    to_json: status_check_json,
    ..Callbacks::DEFAULT
};

/// Fails with 404 if the call contains an id that is not the id of a protected branch of the project.
fn check_branches(call: &CollectionCall<'_>) -> Result<()> {
    let Some(requested_ids) = call.integers("protected_branch_ids")? else { return Ok(()) };
    let protections = call.scope.holder().protections(call)?;
    let ids: Vec<i64> = protections.iter().map(|branch| branch.id).collect();
    refuse_if(!requested_ids.iter().all(|id| ids.contains(id)), ErrorResponse::record_not_found)
}

fn status_check_json(call: &CollectionCall<'_>, row: &Record) -> Result<Value> {
    let project_id = call.project()?.id;
    let stored_ids = row.value("protected_branch_ids");
    let protected_ids = stored_ids.as_array().cloned().unwrap_or_default();
    let branches = call.scope.holder().protections(call)?;
    let branches = branches.iter().filter(|branch| protected_ids.contains(&branch.id.into()));
    let branches = branches.map(|branch| {
        json!({
            "id": branch.id,
            "name": branch.name,
            "project_id": project_id,
            "code_owner_approval_required": branch.code_owner_approval_required,
        })
    });
    let mut body = row.json_fields("id name project_id external_url protected_branches");
    body["project_id"] = project_id.into();
    body["protected_branches"] = branches.collect();
    let has_secret = !row.text("shared_secret").is_empty();
    set_field_if(&mut body, call.is_observed_release_or_later(), "hmac", has_secret);
    Ok(body)
}

const MIN_PUSH_LEVEL: &str = "minimum_access_level_for_push";
const MIN_DELETE_LEVEL: &str = "minimum_access_level_for_delete";

const PACKAGE_RULE_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("package_rules"),
    complete: complete_protection_rule,
    to_json: |call, row| {
        let mut body = call.plain_json(row);
        body["project_id"] = call.scope.id().into();
        Ok(body)
    },
    ..Callbacks::DEFAULT
};

const REGISTRY_RULE_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("registry_rules"),
    complete: |call, row| {
        let project_path = call.project()?.full_path.to_lowercase();
        let is_outside = !row.text("repository_path_pattern").starts_with(&project_path);
        let message = "Repository path pattern should start with the project's full path";
        refuse_if(is_outside, || unprocessable_error(message))?;
        complete_protection_rule(call, row)
    },
    ..PACKAGE_RULE_CALLBACKS
};

fn unprocessable_error(text: &str) -> ErrorResponse {
    ErrorResponse::invalid_record(json!({ "error": [text] }))
}

/// Checks that a rule has a level, and that no other rule has the same pattern.
fn complete_protection_rule(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let mut levels = [MIN_PUSH_LEVEL, MIN_DELETE_LEVEL].iter();
    let text = "A rule must have at least a minimum access role for push or delete.";
    refuse_if(levels.all(|level| row.text(level).is_empty()), || unprocessable_error(text))?;
    call.check_unique(row).map_err(|_| {
        let label = field_label(call.collection.unique_fields[0]);
        unprocessable_error(&format!("{label} has already been taken"))
    })
}

pub(super) const CLUSTER_AGENTS: RecordTable = RecordTable("cluster_agents");

const CLUSTER_AGENT_CALLBACKS: Callbacks = Callbacks {
    table: CLUSTER_AGENTS,
    to_json: |call, row| {
        let mut body = call.plain_json(row);
        body["config_project"] = json!({ "id": call.scope.id() });
        Ok(body)
    },
    ..Callbacks::DEFAULT
};

const PROCESS_MODE: &str = "process_mode";

const RESOURCE_GROUP_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("resource_groups"),
    // From 18.4 on, a setting of the project gives the mode of new resource groups.
    complete: |call, row| {
        if row.id == 0 && !row.settings.contains_key(PROCESS_MODE) {
            let attributes = call.project()?.attributes(call.db)?;
            let mode =
                attributes.get("resource_group_default_process_mode").and_then(Value::as_str);
            row.set(PROCESS_MODE, mode.unwrap_or("unordered"));
        }
        Ok(())
    },
    ..Callbacks::DEFAULT
};

/// Adds an entry of a seed, unless an entry with its name exists. The fields of the entry are the
/// parameters of the call.
pub(crate) fn add_seed_entry(
    call: &Call<'_>,
    collection: &Collection,
    scope: &GroupOrProject,
) -> Result<()> {
    let call = CollectionCall { collection, scope, call };
    call.require(collection.required_params)?;
    let mut row = Record::new(call.time_text());
    call.store_params(&mut row)?;
    let mut existing_entries = collection.table.list(&call, scope.holder())?;
    if let Some(name) = collection.seed_key().filter(|_| !collection.is_single) {
        let value = call.text(name)?.unwrap_or_default();
        existing_entries.retain(|entry| entry.text(name) == value);
        let scope_field = "environment_scope";
        existing_entries.retain(|entry| entry.text(scope_field) == row.text(scope_field));
    }
    if existing_entries.is_empty() { call.complete_and_store(&mut row) } else { Ok(()) }
}
