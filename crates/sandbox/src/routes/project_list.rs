//! Lists of projects (reference 2, 4.1). All lists use the same query.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects", |call| answer_list(call, ProjectQuery::default())),
    get("/projects/{id}/forks", list_forks),
    get("/users/{user_id}/projects", |call| {
        list_user_projects(call, ListParameters::UserProjects, PERSONAL_PROJECTS_SQL)
    }),
    get("/users/{user_id}/starred_projects", |call| {
        list_user_projects(call, ListParameters::Common, STARRED_PROJECTS_SQL)
    }),
    get("/groups/{id}/projects", list_group_projects),
    get("/groups/{id}/projects/shared", list_shared_projects),
    get("/groups/{id}/search", search_group),
    get("/groups/{id}/-/search", search_group),
];

/// The projects that everybody sees, even without a token.
const PUBLIC_PROJECTS_SQL: &str = "p.visibility = 'public'";

/// The projects in the personal namespace of the user `:of` (reference 2, 4.1 rule 3).
const PERSONAL_PROJECTS_SQL: &str =
    "p.namespace_id IN (SELECT id FROM namespaces WHERE owner_id = :of)";

/// The projects that the user `:of` starred.
const STARRED_PROJECTS_SQL: &str = "p.id IN (SELECT project_id FROM stars WHERE user_id = :of)";

/// The projects that the group `:of` is invited to.
const SHARED_PROJECTS_SQL: &str = "p.id IN (SELECT project_id FROM shares WHERE invited_id = :of)";

/// The projects in the groups `:within`, a JSON array.
const PROJECTS_IN_GROUPS_SQL: &str = "p.namespace_id IN (SELECT value FROM json_each(:within))";

/// Like [`PROJECTS_IN_GROUPS_SQL`], with the projects that the group `:of` is invited to.
const IN_GROUPS_OR_SHARED_SQL: &str = "(p.namespace_id IN (SELECT value FROM json_each(:within))
    OR p.id IN (SELECT project_id FROM shares WHERE invited_id = :of))";

/// The active projects if `:active` is true, or the projects that are not active if it is false. An
/// active project is not archived, not marked for deletion, and not in a group marked for deletion.
const ACTIVE_SQL: &str = "(p.marked_for_deletion_on IS NULL AND NOT p.archived AND NOT EXISTS (
    SELECT 1 FROM namespaces above, namespaces own
    WHERE own.id = p.namespace_id AND above.marked_for_deletion_on IS NOT NULL
        AND substr(own.traversal, 1, length(above.traversal)) = above.traversal)) = :active";

/// The number of users who starred a project.
const STAR_COUNT_SQL: &str = "(SELECT count(*) FROM stars s WHERE s.project_id = p.id)";

/// The maximum number of own projects, and of shared projects, that a group shows.
const MAX_GROUP_PROJECTS: i64 = 100;

/// The parameters that a list accepts (reference 2, 4.1). Other parameters are ignored. Each level
/// includes the parameters of the levels before it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ListParameters {
    /// The parameters of every list. The lists of forks and of starred projects accept no others.
    Common,
    /// The parameters of a user's projects.
    UserProjects,
    /// The parameters of the list of all projects.
    #[default]
    All,
}

/// The conditions of a list, with their values.
#[derive(Default)]
pub(crate) struct ProjectQuery {
    parameters: ListParameters,
    /// True for a list of a group's projects. Such a list has fewer filters and only offset paging.
    /// Such a list shows neither the caller's permissions nor statistics.
    is_group_list: bool,
    /// True if callers without a token also get the full form.
    is_full_for_anonymous: bool,
    conditions: SqlConditions,
}

impl ProjectQuery {
    fn with_parameters(parameters: ListParameters, conditions: SqlConditions) -> Self {
        Self { parameters, conditions, ..Self::default() }
    }

    fn for_group(conditions: SqlConditions) -> Self {
        Self { is_group_list: true, conditions, ..Self::default() }
    }

    /// True if the list accepts all orders, and most filters, that the list of all projects accepts.
    fn has_all_filters(&self, call: &Call<'_>) -> bool {
        self.parameters == ListParameters::All
            || self.parameters == ListParameters::UserProjects
                && call.is_observed_release_or_later()
    }

    /// The number of matching projects, but at most [`page::MAX_COUNTED_ITEMS`] + 1.
    fn count(&self, call: &Call<'_>) -> Result<i64> {
        // Without conditions, the index is counted, which is fast.
        let (clause, limit) = (self.conditions.clause(), page::MAX_COUNTED_ITEMS + 1);
        let sql = match clause.as_str() {
            "" => "SELECT count(*) FROM projects".to_owned(),
            _ => {
                format!("SELECT count(*) FROM (SELECT 1 FROM projects p{clause} LIMIT {limit})")
            }
        };
        call.query_value(&sql, &*self.conditions.bound_params())
    }

    fn fetch(&self, call: &Call<'_>, order: &str, size: i64, offset: i64) -> Result<Vec<Project>> {
        // The inner query skips the rows before the page by their ids, without reading namespaces
        // and other columns.
        let sql = format!(
            "{} WHERE p.id IN (SELECT p.id FROM projects p{} ORDER BY {order} LIMIT :size OFFSET :offset) ORDER BY {order}",
            Project::select_sql(),
            self.conditions.clause()
        );
        let mut bound_params = self.conditions.bound_params();
        bound_params.push((":size", &size));
        bound_params.push((":offset", &offset));
        let mut statement = call.db.prepare_cached(&sql)?;
        let mut namespaces = HashMap::new();
        let rows = statement
            .query_map(&*bound_params, |row| Project::read_with_namespace(row, &mut namespaces))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn list_forks(call: &Call<'_>) -> Result<Answer> {
    let conditions = SqlConditions::with_value("p.forked_from_id = :of", call.project()?.id);
    answer_list(call, ProjectQuery::with_parameters(ListParameters::Common, conditions))
}

/// Lists projects of a user. If the user's profile is private, other callers get an empty list.
fn list_user_projects(
    call: &Call<'_>,
    parameters: ListParameters,
    condition: &'static str,
) -> Result<Answer> {
    let user = call.segment_user()?;
    let mut conditions = SqlConditions::with_value(condition, user.id);
    let is_self_or_admin =
        call.caller.as_ref().is_some_and(|caller| caller.admin || caller.id == user.id);
    let public_profile_sql = "NOT EXISTS (SELECT 1 FROM users WHERE id = :of AND private_profile)";
    conditions.add_if(!is_self_or_admin, public_profile_sql);
    answer_list(call, ProjectQuery::with_parameters(parameters, conditions))
}

fn list_group_projects(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    let includes_subgroups = call.is_true("include_subgroups")?;
    let mut group_ids =
        if includes_subgroups { group.subtree_ids(call.db)? } else { vec![group.id] };
    if call.is_true("include_ancestor_groups")? {
        group_ids.extend(traversal_ids(&group.traversal));
    }
    let ids_json = Value::from(group_ids).to_string();
    let includes_shared = call.flag("with_shared")?.unwrap_or(true);
    let condition = if includes_shared { IN_GROUPS_OR_SHARED_SQL } else { PROJECTS_IN_GROUPS_SQL };
    let mut conditions = SqlConditions::with_value(condition, ids_json);
    if includes_shared {
        conditions.bind(":of", group.id);
    }
    let is_full_for_anonymous = call.is_observed_release_or_later();
    answer_list(call, ProjectQuery { is_full_for_anonymous, ..ProjectQuery::for_group(conditions) })
}

fn list_shared_projects(call: &Call<'_>) -> Result<Answer> {
    let conditions = SqlConditions::with_value(SHARED_PROJECTS_SQL, call.group()?.id);
    let query = ProjectQuery::for_group(conditions);
    answer_list(call, ProjectQuery { is_full_for_anonymous: true, ..query })
}

/// Returns the projects of a group, and the projects shared with it. Both lists have only projects
/// that the caller sees, with the newest first. The filters of the call do not apply. Custom
/// attributes are added on request.
pub(crate) fn group_projects_json(call: &Call<'_>, group_id: i64) -> Result<[Vec<Value>; 2]> {
    let fetch_projects = |condition| {
        let mut conditions = SqlConditions::with_value(condition, group_id);
        apply_membership_filters(call, &mut conditions, GUEST, false)?;
        let query = ProjectQuery::with_parameters(ListParameters::All, conditions);
        query.fetch(call, "p.id DESC", MAX_GROUP_PROJECTS, 0)
    };
    let mut projects = fetch_projects("p.namespace_id = :of")?;
    let own_count = projects.len();
    projects.append(&mut fetch_projects(SHARED_PROJECTS_SQL)?);
    call.cache_direct_levels(&projects)?;
    let custom_attributes =
        ExtraFields::from_call(call)?.custom_attributes && call.is_observed_release_or_later();
    let extras = ExtraFields { custom_attributes, ..ExtraFields::default() };
    let mut bodies = projects.iter().map(|project| project.full_form(call, extras)?.into_value());
    let own_bodies = bodies.by_ref().take(own_count).collect::<Result<_, _>>()?;
    Ok([own_bodies, bodies.collect::<Result<_, _>>()?])
}

fn search_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    call.require(&["scope", "search"])?;
    call.allowed_text("scope", &["projects"])?;
    let ids_json = Value::from(group.subtree_ids(call.db)?).to_string();
    answer_list(
        call,
        ProjectQuery::for_group(SqlConditions::with_value(PROJECTS_IN_GROUPS_SQL, ids_json)),
    )
}

/// Answers with a page of the projects that match `query` and the call's filters, and that the
/// caller may see.
pub(crate) fn answer_list(call: &Call<'_>, mut query: ProjectQuery) -> Result<Answer> {
    apply_access_filters(call, &mut query)?;
    apply_common_filters(call, &mut query)?;
    let is_keyset = !query.is_group_list && page::requests_keyset(call)?;
    // The links of keyset pages use these parameters.
    if query.parameters >= ListParameters::UserProjects || is_keyset {
        query.conditions.add_with_value("p.id > :after", call.integer("id_after")?);
        query.conditions.add_with_value("p.id < :before", call.integer("id_before")?);
    }
    if query.has_all_filters(call) {
        apply_topic_and_import_filters(call, &mut query)?;
    }
    if query.parameters == ListParameters::All {
        apply_global_filters(call, &mut query)?;
    }
    let is_descending = call.allowed_text("sort", &["asc", "desc"])?.as_deref() != Some("asc");
    let (is_by_id, order) =
        read_sql_order(call, &query, if is_descending { "DESC" } else { "ASC" })?;
    let page = Page::from_call(call)?;
    if is_keyset {
        let message = "Keyset pagination is not yet available for this type of request";
        refuse_if(!is_by_id, || ErrorResponse::error(StatusCode::METHOD_NOT_ALLOWED, message))?;
        let projects = query.fetch(call, &order, page.size, 0)?;
        let name = if is_descending { "id_before" } else { "id_after" };
        let cursor = projects.last().map(|last| (name, last.id));
        return Ok(page::add_keyset_link(call, projects_answer(call, &query, &projects)?, cursor));
    }
    let page =
        if call.is_observed_release_or_later() { page } else { page.check_offset("Project")? };
    let total_count = query.count(call)?;
    // If one extra row is found, another page follows.
    let mut projects = query.fetch(call, &order, page.size + 1, page.offset())?;
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let has_more = projects.len() > size;
    projects.truncate(size);
    let answer = projects_answer(call, &query, &projects)?;
    Ok(page.add_page_headers(call, answer, total_count, has_more))
}

/// Returns a flag and the SQL order. The flag is true if the call requests the order by id. Ids
/// increase with the time of creation. The order by creation is therefore the order by id, which
/// has an index. In the sandbox, all projects have the same size. An order by size is therefore also
/// the order by id.
fn read_sql_order(
    call: &Call<'_>,
    query: &ProjectQuery,
    direction: &str,
) -> Result<(bool, String)> {
    let requested_order = call.text("order_by")?.unwrap_or_else(|| "created_at".to_owned());
    let accepts_all_orders = query.has_all_filters(call);
    let id_order = format!("p.id {direction}");
    let (is_accepted, order) = match requested_order.as_str() {
        "id" | "created_at" => (true, id_order),
        "repository_size" | "storage_size" | "packages_size" | "wiki_size" => {
            (accepts_all_orders && !query.is_group_list, id_order)
        }
        column @ ("name" | "path") => {
            (true, format!("p.{column} COLLATE NOCASE {direction}, {id_order}"))
        }
        column @ ("updated_at" | "last_activity_at") => {
            (true, format!("p.{column} {direction}, {id_order}"))
        }
        "star_count" => {
            let can_order_project_lists =
                query.parameters >= ListParameters::UserProjects && call.is_at_least(17, 4);
            let accepts_star_count = if query.is_group_list {
                call.is_at_least(16, 10)
            } else {
                can_order_project_lists
            };
            (accepts_star_count, format!("{STAR_COUNT_SQL} {direction}, {id_order}"))
        }
        // Among names that contain a text, the shortest is the most similar.
        "similarity" if call.has("search") => {
            (accepts_all_orders, "length(p.name), p.id DESC".to_owned())
        }
        "similarity" if query.is_group_list => {
            (accepts_all_orders, format!("p.name COLLATE NOCASE, {id_order}"))
        }
        other => (accepts_all_orders && other == "similarity", id_order),
    };
    refuse_if(!is_accepted, || ErrorResponse::unlisted_parameter_value("order_by"))?;
    Ok((requested_order == "id", order))
}

fn apply_access_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let min_level = terms::read_level(call, "min_access_level")?;
    let wants_owned = call.is_true("owned")?;
    let wants_membership = call.is_true("membership")? && !query.is_group_list;
    if query.parameters == ListParameters::UserProjects && call.is_observed_release_or_later() {
        // Only `min_access_level` has an effect, and only for users who are not administrators.
        let needs_membership = min_level.is_some() && !call.is_administrator();
        let level = min_level.unwrap_or(GUEST);
        return apply_membership_filters(call, &mut query.conditions, level, needs_membership);
    }
    let needs_membership = wants_membership || min_level.is_some() || wants_owned;
    // A caller without a token is a member of no project and owns none, so the list is empty. Only
    // the list of a group ignores these filters for such a caller, and shows the public projects.
    query.conditions.add_if(call.caller.is_none() && needs_membership && !query.is_group_list, "0");
    let is_by_similarity = !query.is_group_list
        && call.has("search")
        && call.text("order_by")?.as_deref() == Some("similarity");
    let required_level = min_level.unwrap_or(GUEST).max(if wants_owned { OWNER } else { GUEST });
    let needs_membership = needs_membership || is_by_similarity;
    apply_membership_filters(call, &mut query.conditions, required_level, needs_membership)
}

/// Limits a list to projects that the caller may see. With `needs_membership`, limits it to
/// projects in which the caller has at least the level `min_level`.
fn apply_membership_filters(
    call: &Call<'_>,
    conditions: &mut SqlConditions,
    min_level: i64,
    needs_membership: bool,
) -> Result<()> {
    conditions.add_if(call.caller.is_none(), PUBLIC_PROJECTS_SQL);
    let Some(user) = call.caller.as_ref().filter(|user| needs_membership || !user.admin) else {
        return Ok(());
    };
    conditions.bind(":user", user.id);
    conditions.bind(":least", min_level);
    conditions.bind(":today", call.today().to_owned());
    conditions.bind(":namespaces", call.memberships()?.namespace_ids_json(call.db, min_level)?);
    conditions.add_with_value(view::MEMBER_OF_SQL, Some(!needs_membership));
    Ok(())
}

/// Applies the filters of every list.
fn apply_common_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, conditions) = (&call.params, &mut query.conditions);
    conditions.add_with_value("p.archived = :archived", params.flag("archived")?);
    let active = params.flag("active")?.filter(|_| call.is_at_least(18, 0));
    conditions.add_with_value(ACTIVE_SQL, active);
    let marked_on = params.date_text("marked_for_deletion_on")?.filter(|_| call.is_at_least(17, 1));
    conditions.add_with_value("p.marked_for_deletion_on = :marked", marked_on);
    let visibility = params.allowed_text("visibility", VISIBILITIES)?;
    conditions.add_with_value("p.visibility = :visibility", visibility);
    if let Some(text) = params.text("search")?.filter(|text| !text.is_empty()) {
        let pattern = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let searches_full_path =
            query.parameters == ListParameters::All && params.is_true("search_namespaces")?;
        let path_column = if searches_full_path { "full_path" } else { "path" };
        let like_clause = "LIKE :search ESCAPE '\\'";
        let search_sql = format!("(p.{path_column} {like_clause} OR p.name {like_clause})");
        conditions.add_with_value(search_sql, Some(format!("%{pattern}%")));
    }
    let caller_id = call.caller.as_ref().map(|user| user.id);
    let starred_sql = "p.id IN (SELECT project_id FROM stars WHERE user_id = :me)";
    conditions.add_with_value(starred_sql, params.is_true("starred")?.then_some(caller_id));
    let issues_sql = "json_extract(p.attributes, '$.issues_access_level') <> 'disabled'";
    conditions.add_if(params.is_true("with_issues_enabled")?, issues_sql);
    let merge_requests_sql =
        "json_extract(p.attributes, '$.merge_requests_access_level') <> 'disabled'";
    conditions.add_if(params.is_true("with_merge_requests_enabled")?, merge_requests_sql);
    // In the sandbox, no project has security reports, and no repository has a programming
    // language.
    let matches_nothing = if query.is_group_list {
        params.is_true("with_security_reports")? && call.tier() >= ServiceTier::Ultimate
    } else {
        query.parameters >= ListParameters::UserProjects
            && params.text("with_programming_language")?.is_some()
    };
    conditions.add_if(matches_nothing, "0");
    Ok(())
}

/// Applies the filters by topic, by import and by activity.
fn apply_topic_and_import_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, conditions) = (&call.params, &mut query.conditions);
    let topics_sql = "NOT EXISTS (SELECT 1 FROM json_each(:topics) wanted WHERE wanted.value NOT IN
                      (SELECT value FROM json_each(p.attributes, '$.topics')))";
    let topics = params.texts("topic")?.map(|names| Value::from(names).to_string());
    conditions.add_with_value(topics_sql, topics);
    let caller_id = call.caller.as_ref().map(|user| user.id);
    let imported_sql =
        "p.import_status <> 'none' AND p.forked_from_id IS NULL AND p.creator_id = :importer";
    let wants_imported = params.is_true("imported")? && !query.is_group_list;
    conditions.add_with_value(imported_sql, wants_imported.then_some(caller_id));
    // Topics have no ids in the sandbox.
    conditions.add_if(params.integer("topic_id")?.is_some(), "0");
    let min_time = read_time_text(call, "last_activity_after")?;
    conditions.add_with_value("p.last_activity_at > :since", min_time);
    let max_time = read_time_text(call, "last_activity_before")?;
    conditions.add_with_value("p.last_activity_at < :until", max_time);
    Ok(())
}

/// Applies the additional filters of the list of all projects.
fn apply_global_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, conditions) = (&call.params, &mut query.conditions);
    let wants_failed_checksums =
        params.is_true("repository_checksum_failed")? || params.is_true("wiki_checksum_failed")?;
    // No checksum ever fails.
    conditions.add_if(
        wants_failed_checksums && call.is_premium() && !call.is_observed_release_or_later(),
        "0",
    );
    // A search text of one letter is too short for callers without a token.
    let is_short = params.text("search")?.is_some_and(|text| text.chars().count() == 1);
    let finds_nothing = is_short && call.caller.is_none() && call.is_observed_release_or_later();
    conditions.add_if(finds_nothing && !query.is_group_list, "0");
    custom_attributes::add_filter(call, conditions, "c.project_id = p.id");
    let updated_range =
        [read_time_text(call, "updated_after")?, read_time_text(call, "updated_before")?];
    if call.is_at_least(15, 10) && !query.is_group_list && updated_range.iter().any(Option::is_some)
    {
        refuse_if(params.text("order_by")?.as_deref() != Some("updated_at"), || {
            ErrorResponse::bad_request(
                "`updated_at` filter and `updated_at` sorting must be paired",
            )
        })?;
        let [updated_after, updated_before] = updated_range;
        conditions.add_with_value("p.updated_at > :updated_after", updated_after);
        conditions.add_with_value("p.updated_at < :updated_before", updated_before);
    }
    let storage = params.text("repository_storage")?.filter(|_| call.is_administrator());
    let storage_sql = "json_extract(p.attributes, '$.repository_storage') = :storage";
    conditions.add_with_value(storage_sql, storage);
    Ok(())
}

fn read_time_text(call: &Call<'_>, name: &'static str) -> Result<Option<String>> {
    Ok(call.time(name)?.map(clock::format_time))
}

fn projects_answer(call: &Call<'_>, query: &ProjectQuery, projects: &[Project]) -> Result<Answer> {
    let is_simple =
        call.is_true("simple")? || (call.caller.is_none() && !query.is_full_for_anonymous);
    if !is_simple {
        call.cache_direct_levels(projects)?;
    }
    let mut extras = ExtraFields::from_call(call)?;
    extras.permissions &= !query.is_group_list;
    extras.statistics &= !query.is_group_list;
    let form = if is_simple { Project::simple_form } else { Project::full_form };
    let texts = projects.iter().map(|project| Ok(form(project, call, extras)?.into_text()));
    let texts = texts.collect::<Result<Vec<_>>>()?.join(&b',');
    Ok(Answer::with_json_text(StatusCode::OK, [b"[", texts.as_slice(), b"]"].concat()))
}
