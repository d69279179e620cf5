//! Plain collections of projects and groups, which the reference does not describe. They are
//! milestones, deploy tokens, external status checks, agents of clusters, resource groups and
//! boards. Others are rules that protect packages and container repositories.

use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] = &[
    MILESTONES,
    Collection { path: "/groups/{id}/milestones", ..MILESTONES },
    DEPLOY_TOKENS,
    GROUP_DEPLOY_TOKENS,
    STATUS_CHECKS,
    PACKAGE_RULES,
    REPOSITORY_RULES,
    CLUSTER_AGENTS,
    RESOURCE_GROUPS,
    BOARDS,
];

pub(super) const ROUTES: &[Route] = &[get("/deploy_tokens", list_all_deploy_tokens)];

const MILESTONES: Collection = Collection {
    required_features: &[&["issues_access_level", "merge_requests_access_level"]],
    read_level: 0,
    write_level: REPORTER,
    required_params: &["title"],
    fields: &[
        RowField::new("title", FieldType::Text),
        RowField::new("description", FieldType::Text),
        RowField::new("due_date", FieldType::LooseDay),
        RowField::new("start_date", FieldType::LooseDay),
        RowField::new("state_event", FieldType::Word(&["close", "activate"])).hidden(),
    ],
    filters: &["state", "title"],
    filter: |call, rows| {
        // Milestones without a due date come last. Among equal due dates, the newest comes first.
        rows.sort_by_cached_key(|row| {
            let due_date = row.text("due_date").to_owned();
            (due_date.is_empty(), due_date, std::cmp::Reverse(row.id))
        });
        let search = call.params.text("search")?.unwrap_or_default().to_lowercase();
        rows.retain(|row| {
            ["title", "description"]
                .iter()
                .any(|name| row.text(name).to_lowercase().contains(&search))
        });
        if let Some(iids) = call.params.integers("iids")? {
            rows.retain(|row| row.value("iid").as_i64().is_some_and(|iid| iids.contains(&iid)));
        }
        Ok(())
    },
    complete: complete_milestone,
    json: |call, row| {
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
    ..Collection::new("/projects/{id}/milestones")
};

fn complete_milestone(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let stored_rows = call.stored_rows()?;
    if row.id != 0 {
        let names = call.collection.fields.iter().map(|field| field.name);
        call.params.require_any(&names.collect::<Vec<_>>())?;
    }
    let (start_date, due_date) = (row.text("start_date"), row.text("due_date"));
    let error = if row.text("title").is_empty() {
        Some(("title", BLANK_TEXT))
    } else if row.is_taken(&stored_rows, "title") || is_title_in_hierarchy(call, row)? {
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
    let (group, namespace_id) = match call.scope {
        GroupOrProject::Group(group) => (None, Some(group.id)),
        GroupOrProject::Project(project) => (Some(project.namespace.id), None),
    };
    call.query_value(sql, params![row.text("title"), group, namespace_id])
}

const DEPLOY_TOKENS: Collection = Collection {
    required_params: &["name", "scopes"],
    fields: &[
        RowField::new("name", FieldType::Text),
        RowField::new("expires_at", FieldType::Time),
        RowField::new("username", FieldType::Text),
        RowField::new(
            "scopes",
            FieldType::Words(&[
                "read_repository",
                "read_registry",
                "write_registry",
                "read_virtual_registry",
                "write_virtual_registry",
                "read_package_registry",
                "write_package_registry",
            ]),
        ),
    ],
    has_update: false,
    scope: |_, call| Ok(call.project_allowing_anonymous(MAINTAINER)?.into()),
    complete: |_, row| {
        let text = "Scopes can't be blank";
        refuse_if(row.value("scopes").as_array().is_none_or(Vec::is_empty), || text.into())
    },
    json: |call, row| Ok(deploy_token_json(call, row)),
    ..Collection::new("/projects/{id}/deploy_tokens")
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
    call.require_admin()?;
    let rows = DEPLOY_TOKENS.table.list_all(call)?;
    page::list(call, rows.iter().map(|row| deploy_token_json(call, row)))
}

/// Maintainers of a group can read its tokens. Owners can create and remove tokens.
const GROUP_DEPLOY_TOKENS: Collection = Collection {
    path: "/groups/{id}/deploy_tokens",
    scope: |_, call| {
        let level = if call.is_write { OWNER } else { MAINTAINER };
        Ok(call.group_allowing_anonymous(level)?.into())
    },
    ..DEPLOY_TOKENS
};

const STATUS_CHECKS: Collection = Collection {
    tier: AttributeTier::Ultimate,
    required_params: &["name", "external_url"],
    fields: &[
        RowField::new("name", FieldType::Text),
        RowField::new("external_url", FieldType::Text),
        RowField::new("protected_branch_ids", FieldType::Ids),
        RowField::new("shared_secret", FieldType::Text),
    ],
    has_show: false,
    scope: |_, call| {
        let project = call.writable_project_as(MAINTAINER);
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
            } else if row.is_taken(&stored_rows, field) {
                errors.push(format!("{label} has already been taken"));
            }
        }
        refuse_if(!errors.is_empty(), || ErrorResponse::invalid_record(errors))
    },
    json: status_check_json,
    ..Collection::new("/projects/{id}/external_status_checks")
};

/// Fails with 404 if the call contains an id that is no protected branch of the project.
fn check_branches(call: &CollectionCall<'_>) -> Result<()> {
    let Some(requested_ids) = call.params.integers("protected_branch_ids")? else { return Ok(()) };
    let protections = call.scope.holder().protections(call)?;
    let ids: Vec<i64> = protections.iter().map(|branch| branch.id).collect();
    refuse_if(!requested_ids.iter().all(|id| ids.contains(id)), ErrorResponse::no_record)
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
    set_if(&mut body, call.is_observed(), "hmac", has_secret);
    Ok(body)
}

const LEVEL_WORDS: &[&str] = &["maintainer", "owner", "admin"];
const MIN_PUSH_LEVEL: &str = "minimum_access_level_for_push";
const MIN_DELETE_LEVEL: &str = "minimum_access_level_for_delete";
const PATH_PATTERN: &str = "repository_path_pattern";

const PACKAGE_RULES: Collection = Collection {
    read_level: MAINTAINER,
    since: Some(Release::new(17, 6)),
    required_params: &["package_name_pattern", "package_type"],
    unique_fields: &["package_name_pattern", "package_type"],
    fields: &[
        RowField::new("package_name_pattern", FieldType::Text),
        RowField::new("package_type", FieldType::Text),
        RowField::new(MIN_PUSH_LEVEL, FieldType::Word(LEVEL_WORDS)),
        RowField::new(MIN_DELETE_LEVEL, FieldType::Word(LEVEL_WORDS.split_at(1).1)).since(17, 11),
    ],
    has_show: false,
    is_updated_by_patch: true,
    is_unpaged: true,
    complete: complete_rule,
    table: RecordTable("package_rules"),
    json: |call, row| {
        let mut body = call.plain_json(row);
        body["project_id"] = call.scope.id().into();
        Ok(body)
    },
    ..Collection::new("/projects/{id}/packages/protection/rules")
};

const REPOSITORY_RULES: Collection = Collection {
    path: "/projects/{id}/registry/protection/repository/rules",
    since: Some(Release::new(17, 8)),
    required_params: &[PATH_PATTERN],
    unique_fields: &[PATH_PATTERN],
    fields: &[
        RowField::new(PATH_PATTERN, FieldType::Text),
        RowField::new(MIN_PUSH_LEVEL, FieldType::Word(LEVEL_WORDS)),
        RowField::new(MIN_DELETE_LEVEL, FieldType::Word(LEVEL_WORDS)),
    ],
    complete: |call, row| {
        let project_path = call.project()?.full_path.to_lowercase();
        let message = "Repository path pattern should start with the project's full path";
        refuse_if(!row.text(PATH_PATTERN).starts_with(&project_path), || unprocessable(message))?;
        complete_rule(call, row)
    },
    table: RecordTable("registry_rules"),
    required_features: &[&["container_registry_access_level"]],
    ..PACKAGE_RULES
};

fn unprocessable(text: &str) -> ErrorResponse {
    ErrorResponse::invalid_record(json!({ "error": [text] }))
}

/// Checks that a rule has a level, and that no other rule has the same pattern.
fn complete_rule(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let mut levels = [MIN_PUSH_LEVEL, MIN_DELETE_LEVEL].iter();
    let text = "A rule must have at least a minimum access role for push or delete.";
    refuse_if(levels.all(|level| row.text(level).is_empty()), || unprocessable(text))?;
    call.check_unique(row).map_err(|_| {
        let label = field_label(call.collection.unique_fields[0]);
        unprocessable(&format!("{label} has already been taken"))
    })
}

/// This collection is written from the documentation, and was not compared with a real service.
pub(super) const CLUSTER_AGENTS: Collection = Collection {
    entry_segment: "agent_id",
    read_level: DEVELOPER,
    required_params: &["name"],
    unique_fields: &["name"],
    fields: &[RowField::new("name", FieldType::Text)],
    has_update: false,
    json: |call, row| {
        let mut body = call.plain_json(row);
        body["config_project"] = json!({ "id": call.scope.id() });
        Ok(body)
    },
    ..Collection::new("/projects/{id}/cluster_agents")
};

const BOARDS: Collection = Collection {
    entry_segment: "board_id",
    tier: AttributeTier::Premium,
    read_level: 0,
    write_level: REPORTER,
    required_params: &["name"],
    fields: &[
        RowField::new("name", FieldType::Text),
        RowField::new("hide_backlog_list", FieldType::Flag).with_default("false"),
        RowField::new("hide_closed_list", FieldType::Flag).with_default("false"),
    ],
    extra_fields: &[("lists", "[]")],
    ..Collection::new("/groups/{id}/boards")
};

const KEY_FIELD: &str = "key";
const PROCESS_MODE: &str = "process_mode";
const PROCESS_MODES: &[&str] = &["unordered", "oldest_first", "newest_first", "newest_ready_first"];

/// Only CI jobs create resource groups, and no request removes a resource group.
const RESOURCE_GROUPS: Collection = Collection {
    entry_segment: KEY_FIELD,
    answer_key: KEY_FIELD,
    read_level: DEVELOPER,
    write_level: DEVELOPER,
    fields: &[
        RowField::new(KEY_FIELD, FieldType::Text).create_only(),
        RowField::new(PROCESS_MODE, FieldType::Word(PROCESS_MODES)),
    ],
    is_fixed_set: true,
    required_features: &[&["builds_access_level"]],
    // From 18.4 on, a setting of the project gives the mode of new resource groups.
    complete: |call, row| {
        if row.id == 0 && !row.settings.contains_key(PROCESS_MODE) {
            let attributes = call.project()?.attributes(call.db)?;
            let mode =
                attributes.get("resource_group_default_process_mode").and_then(Value::as_str);
            row.set(PROCESS_MODE, mode.unwrap_or(PROCESS_MODES[0]));
        }
        Ok(())
    },
    ..Collection::new("/projects/{id}/resource_groups")
};

/// Adds an entry of a seed, unless an entry with its name exists. The fields of the entry are the
/// parameters of the call.
pub(crate) fn add_seed_entry(
    call: &Call<'_>,
    collection: &Collection,
    scope: &GroupOrProject,
) -> Result<()> {
    let call = CollectionCall { collection, scope, call };
    call.params.require(collection.required_params)?;
    let mut row = Record::new(call.time_text());
    call.store_params(&mut row)?;
    let mut existing_entries = collection.table.list(&call, scope.holder())?;
    if let Some(name) = collection.seed_key().filter(|_| !collection.is_single) {
        let value = call.params.text(name)?.unwrap_or_default();
        existing_entries.retain(|entry| entry.text(name) == value);
        let scope_field = "environment_scope";
        existing_entries.retain(|entry| entry.text(scope_field) == row.text(scope_field));
    }
    if existing_entries.is_empty() { call.save(&mut row) } else { Ok(()) }
}
