//! Plain collections of projects and groups, which the reference leaves out: milestones,
//! deploy tokens, external status checks, rules that protect packages and container repositories,
//! agents of clusters, resource groups and boards.

use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] = &[
    MILESTONES,
    Collection { path: "/groups/{id}/milestones", ..MILESTONES },
    DEPLOY_TOKENS,
    GROUP_TOKENS,
    STATUS_CHECKS,
    PACKAGE_RULES,
    REPOSITORY_RULES,
    AGENTS,
    RESOURCE_GROUPS,
    BOARDS,
];

pub(super) const ROUTES: &[Route] = &[get("/deploy_tokens", list_all_tokens)];

/// The project of a call by a maintainer; other callers get 403.
pub(super) fn maintained_project(call: &Call<'_>) -> Result<GroupOrProject> {
    Ok(GroupOrProject::Project(Box::new(call.project_with(MAINTAINER)?)))
}

/// The group, for callers with a level in it; all others get 403.
pub(super) fn group_with_level(call: &Call<'_>, level: i64) -> Result<GroupOrProject> {
    Ok(GroupOrProject::Group(Box::new(call.group_with(level)?)))
}

const MILESTONES: Collection = Collection {
    required_features: &[&["issues_access_level", "merge_requests_access_level"]],
    read_level: 0,
    write_level: REPORTER,
    required: &["title"],
    fields: &[
        RowField::new("title", Form::Text),
        RowField::new("description", Form::Text),
        RowField::new("due_date", Form::LooseDay),
        RowField::new("start_date", Form::LooseDay),
        RowField {
            answer_name: "",
            ..RowField::new("state_event", Form::Word(&["close", "activate"]))
        },
    ],
    filters: &["state", "title"],
    filter: |call, rows| {
        // Milestones without a day come last, and the newest first.
        rows.sort_by_cached_key(|row| {
            let due = row.text("due_date").to_owned();
            (due.is_empty(), due, std::cmp::Reverse(row.id))
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
        let (due, iid) = (row.text("due_date"), row.value("iid"));
        let mut body = call.plain_json(row);
        body[scope.id_column()] = scope.id().into();
        body["state"] = row.value("state");
        body["expired"] = (!due.is_empty() && due < call.today()).into();
        body["web_url"] = format!("{}/{scope_path}/-/milestones/{iid}", call.base_url).into();
        body["iid"] = iid;
        Ok(body)
    },
    ..Collection::new("/projects/{id}/milestones")
};

fn complete_milestone(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let stored = call.stored_rows()?;
    if row.id != 0 {
        let names = call.collection.fields.iter().map(|field| field.name);
        call.params.require_any(&names.collect::<Vec<_>>())?;
    }
    let (start, due) = (row.text("start_date"), row.text("due_date"));
    let fault = if row.text("title").is_empty() {
        Some(("title", "can't be blank"))
    } else if row.is_taken(&stored, "title") || is_taken_nearby(call, row)? {
        Some(("title", "already being used for another group or project milestone."))
    } else if !start.is_empty() && !due.is_empty() && due < start {
        Some(("due_date", "must be greater than start date"))
    } else {
        None
    };
    if let Some((field, words)) = fault {
        let text = format!("Failed to create milestone {{:{field}=>[\"{words}\"]}}");
        return Err(ErrorResponse::bad_request_message(text));
    }
    let is_closed = row.settings.remove("state_event").map(|event| event == "close");
    if row.id == 0 {
        let last_iid = stored.iter().filter_map(|other| other.settings.get("iid")?.as_i64()).max();
        row.set("iid", last_iid.unwrap_or(0) + 1);
    }
    if let Some(closed) = is_closed.or((row.id == 0).then_some(false)) {
        row.set("state", if closed { "closed" } else { "active" });
    }
    Ok(())
}

/// True if the group of the project, or a project of the group, has a milestone with the same title.
fn is_taken_nearby(call: &CollectionCall<'_>, row: &Record) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM milestones WHERE settings ->> 'title' = ?1
                   AND (group_id = ?2 OR project_id IN (SELECT id FROM projects WHERE namespace_id = ?3)))";
    let (group, projects) = match call.scope {
        GroupOrProject::Group(group) => (None, Some(group.id)),
        GroupOrProject::Project(project) => (Some(project.namespace.id), None),
    };
    call.query_value(sql, params![row.text("title"), group, projects])
}

const DEPLOY_TOKENS: Collection = Collection {
    required: &["name", "scopes"],
    fields: &[
        RowField::new("name", Form::Text),
        RowField::new("expires_at", Form::Time),
        RowField::new("username", Form::Text),
        RowField::new(
            "scopes",
            Form::Words(&[
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
    is_edited: false,
    scope: |_, call| maintained_project(call),
    complete: |_, row| {
        refuse_if(row.value("scopes").as_array().is_none_or(Vec::is_empty), || {
            ErrorResponse::bad_request_message("Scopes can't be blank")
        })
    },
    json: |call, row| Ok(token_json(call, row)),
    ..Collection::new("/projects/{id}/deploy_tokens")
};

fn token_json(call: &Call<'_>, row: &Record) -> Value {
    let (expires, username) = (row.text("expires_at"), row.text("username"));
    let default_username = format!("gitlab+deploy-token-{}", row.id);
    let mut body = row.members("id name username expires_at scopes revoked expired");
    body["username"] = if username.is_empty() { &default_username } else { username }.into();
    body["revoked"] = false.into();
    body["expired"] = (!expires.is_empty() && expires <= call.time_text()).into();
    if call.is_write {
        // No request here accepts this token, so it is not stored.
        body["token"] = call.random_hex().into();
    }
    body
}

/// All tokens of the service, for administrators.
fn list_all_tokens(call: &Call<'_>) -> Result<Answer> {
    call.administrator()?;
    page::list(
        call,
        DEPLOY_TOKENS.rows.all_of_service(call)?.iter().map(|row| token_json(call, row)),
    )
}

/// Maintainers of a group see its tokens, owners create and remove them.
const GROUP_TOKENS: Collection = Collection {
    path: "/groups/{id}/deploy_tokens",
    scope: |_, call| group_with_level(call, if call.is_write { OWNER } else { MAINTAINER }),
    ..DEPLOY_TOKENS
};

const STATUS_CHECKS: Collection = Collection {
    tier: AttributeTier::Ultimate,
    required: &["name", "external_url"],
    fields: &[
        RowField::new("name", Form::Text),
        RowField::new("external_url", Form::Text),
        RowField::new("protected_branch_ids", Form::Ids),
        RowField::new("shared_secret", Form::Text),
    ],
    is_shown: false,
    scope: |_, call| GroupOrProject::project(call, MAINTAINER).map_err(ErrorResponse::without_403),
    complete: |call, row| {
        let stored = call.stored_rows()?;
        if row.id != 0 {
            check_branches(call)?;
        }
        let mut complaints = Vec::new();
        for (field, words) in [("name", "Name"), ("external_url", "External url")] {
            if row.text(field).is_empty() {
                complaints.push(format!("{words} can't be blank"));
            } else if row.is_taken(&stored, field) {
                complaints.push(format!("{words} has already been taken"));
            }
        }
        refuse_if(!complaints.is_empty(), || ErrorResponse::invalid_record(complaints))
    },
    json: check_json,
    ..Collection::new("/projects/{id}/external_status_checks")
};

/// 404 for an id of a protected branch that the project does not have.
fn check_branches(call: &CollectionCall<'_>) -> Result<()> {
    let Some(requested) = call.params.integers("protected_branch_ids")? else { return Ok(()) };
    let protections = Protection::all(call, call.scope.holder())?;
    let ids: Vec<i64> = protections.iter().map(|branch| branch.id).collect();
    refuse_if(!requested.iter().all(|id| ids.contains(id)), ErrorResponse::no_record)
}

fn check_json(call: &CollectionCall<'_>, row: &Record) -> Result<Value> {
    let project = call.project()?.id;
    let requested = row.value("protected_branch_ids");
    let requested = requested.as_array().cloned().unwrap_or_default();
    let branches = Protection::all(call, call.scope.holder())?;
    let branches = branches.iter().filter(|branch| requested.contains(&branch.id.into()));
    let branches = branches.map(|branch| {
        json!({
            "id": branch.id,
            "name": branch.name,
            "project_id": project,
            "code_owner_approval_required": branch.code_owner_approval_required,
        })
    });
    let mut body = row.members("id name project_id external_url protected_branches");
    body["project_id"] = project.into();
    body["protected_branches"] = branches.collect();
    set_if(
        &mut body,
        call.release() >= OBSERVED_RELEASE,
        "hmac",
        !row.text("shared_secret").is_empty(),
    );
    Ok(body)
}

const LEVEL_WORDS: &[&str] = &["maintainer", "owner", "admin"];
const MIN_PUSH_LEVEL: &str = "minimum_access_level_for_push";
const MIN_DELETE_LEVEL: &str = "minimum_access_level_for_delete";
const PATH_PATTERN: &str = "repository_path_pattern";

const PACKAGE_RULES: Collection = Collection {
    read_level: MAINTAINER,
    since: Some(Release::new(17, 6)),
    required: &["package_name_pattern", "package_type"],
    unique: &["package_name_pattern", "package_type"],
    fields: &[
        RowField::new("package_name_pattern", Form::Text),
        RowField::new("package_type", Form::Text),
        RowField::new(MIN_PUSH_LEVEL, Form::Word(LEVEL_WORDS)),
        RowField {
            since: Some(Release::new(17, 11)),
            ..RowField::new(MIN_DELETE_LEVEL, Form::Word(LEVEL_WORDS.split_at(1).1))
        },
    ],
    is_shown: false,
    is_patched: true,
    is_unpaged: true,
    complete: complete_rule,
    rows: Records("package_rules"),
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
    required: &[PATH_PATTERN],
    unique: &[PATH_PATTERN],
    fields: &[
        RowField::new(PATH_PATTERN, Form::Text),
        RowField::new(MIN_PUSH_LEVEL, Form::Word(LEVEL_WORDS)),
        RowField::new(MIN_DELETE_LEVEL, Form::Word(LEVEL_WORDS)),
    ],
    complete: |call, row| {
        let project_path = call.project()?.full_path.to_lowercase();
        refuse_if(!row.text(PATH_PATTERN).starts_with(&project_path), || {
            unprocessable("Repository path pattern should start with the project's full path")
        })?;
        complete_rule(call, row)
    },
    rows: Records("registry_rules"),
    required_features: &[&["container_registry_access_level"]],
    ..PACKAGE_RULES
};

fn unprocessable(words: &str) -> ErrorResponse {
    ErrorResponse::invalid_record(json!({ "error": [words] }))
}

/// A rule has a level, and no other rule has the same pattern.
fn complete_rule(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    refuse_if(
        [MIN_PUSH_LEVEL, MIN_DELETE_LEVEL].iter().all(|level| row.text(level).is_empty()),
        || unprocessable("A rule must have at least a minimum access role for push or delete."),
    )?;
    call.check_unique(row).map_err(|_| {
        let name = call.collection.unique[0].replace('_', " ");
        unprocessable(&format!("{}{} has already been taken", name[..1].to_uppercase(), &name[1..]))
    })
}

/// Written from the documentation; not compared with a real service.
pub(super) const AGENTS: Collection = Collection {
    entry: "agent_id",
    read_level: DEVELOPER,
    required: &["name"],
    unique: &["name"],
    fields: &[RowField::new("name", Form::Text)],
    is_edited: false,
    json: |call, row| {
        let mut body = call.plain_json(row);
        body["config_project"] = json!({ "id": call.scope.id() });
        Ok(body)
    },
    ..Collection::new("/projects/{id}/cluster_agents")
};

const BOARDS: Collection = Collection {
    entry: "board_id",
    tier: AttributeTier::Premium,
    read_level: 0,
    write_level: REPORTER,
    required: &["name"],
    fields: &[
        RowField::new("name", Form::Text),
        RowField { preset: "false", ..RowField::new("hide_backlog_list", Form::Flag) },
        RowField { preset: "false", ..RowField::new("hide_closed_list", Form::Flag) },
    ],
    extra_members: &[("lists", "[]")],
    ..Collection::new("/groups/{id}/boards")
};

const KEY: &str = "key";
const PROCESS_MODE: &str = "process_mode";
const PROCESS_MODES: &[&str] = &["unordered", "oldest_first", "newest_first", "newest_ready_first"];

/// Only CI jobs create a resource group, and no request removes it.
const RESOURCE_GROUPS: Collection = Collection {
    entry: KEY,
    key: KEY,
    read_level: DEVELOPER,
    write_level: DEVELOPER,
    fields: &[
        RowField { is_create_only: true, ..RowField::new(KEY, Form::Text) },
        RowField::new(PROCESS_MODE, Form::Word(PROCESS_MODES)),
    ],
    is_fixed_set: true,
    required_features: &[&["builds_access_level"]],
    // From 18.4 on, a setting of the project gives the mode of new ones.
    complete: |call, row| {
        if row.id == 0 && !row.settings.contains_key(PROCESS_MODE) {
            let attributes = call.project()?.attributes(call.db)?;
            let mode = attributes.get("resource_group_default_process_mode").cloned();
            row.set(
                PROCESS_MODE,
                mode.filter(Value::is_string).unwrap_or_else(|| PROCESS_MODES[0].into()),
            );
        }
        Ok(())
    },
    ..Collection::new("/projects/{id}/resource_groups")
};

/// Adds the entry of a seed that has the fields of the call, unless there is one with its name.
pub(crate) fn add_seed_entry(
    call: &Call<'_>,
    collection: &Collection,
    scope: &GroupOrProject,
) -> Result<()> {
    let call = CollectionCall { collection, scope, call };
    call.params.require(collection.required)?;
    let mut row = Record::new(call.time_text());
    call.store_params(&mut row)?;
    let mut twins = collection.rows.all(&call, scope.holder())?;
    if let Some(name) = collection.seed_key().filter(|_| !collection.is_single) {
        let value = call.params.text(name)?.unwrap_or_default();
        twins.retain(|twin| twin.text(name) == value);
        let scope = "environment_scope";
        twins.retain(|twin| twin.text(scope) == row.text(scope));
    }
    if twins.is_empty() { call.save(&mut row) } else { Ok(()) }
}
