//! Lists of projects (reference 2, 4.1), all through one query.

use std::collections::HashMap;

use super::conditions::SqlConditions;
use super::custom_attributes;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects", |call| respond(call, ProjectQuery::default())),
    get("/projects/{id}/forks", forks),
    get("/users/{user_id}/projects", |call| {
        list_user_projects(call, ListParameters::OfUser, OWNED)
    }),
    get("/users/{user_id}/starred_projects", |call| {
        list_user_projects(call, ListParameters::Common, STARRED)
    }),
    get("/groups/{id}/projects", list_group_projects),
    get("/groups/{id}/projects/shared", list_shared_projects),
    get("/groups/{id}/search", search_group),
    get("/groups/{id}/-/search", search_group),
];

/// The projects that everybody sees, also without a token.
const PUBLIC: &str = "p.visibility = 'public'";

/// The projects in the personal namespace of the user `:of` (reference 2, 4.1 rule 3).
const OWNED: &str = "p.namespace_id IN (SELECT id FROM namespaces WHERE owner_id = :of)";

/// The projects that the user `:of` starred.
const STARRED: &str = "p.id IN (SELECT project_id FROM stars WHERE user_id = :of)";

/// The projects that the group `:of` is invited to.
const SHARED: &str = "p.id IN (SELECT project_id FROM shares WHERE invited_id = :of)";

/// The projects in the groups `:within`, a JSON array.
const WITHIN: &str = "p.namespace_id IN (SELECT value FROM json_each(:within))";

/// As [`WITHIN`], with the projects that the group `:of` is invited to.
const WITH_SHARED: &str = "(p.namespace_id IN (SELECT value FROM json_each(:within))
    OR p.id IN (SELECT project_id FROM shares WHERE invited_id = :of))";

/// Active projects: neither archived nor marked for deletion, and in no group that is.
const ACTIVE: &str = "(p.marked_for_deletion_on IS NULL AND NOT p.archived AND NOT EXISTS (
    SELECT 1 FROM namespaces above, namespaces own
    WHERE own.id = p.namespace_id AND above.marked_for_deletion_on IS NOT NULL
        AND substr(own.traversal, 1, length(above.traversal)) = above.traversal)) = :active";

/// The number of users who starred a project.
const STARS: &str = "(SELECT count(*) FROM stars s WHERE s.project_id = p.id)";

/// The maximum number of own and of shared projects that a group shows.
const MAX_GROUP_PROJECTS: i64 = 100;

/// The parameters that a list accepts (reference 2, 4.1); others are ignored. Each level includes
/// those before it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ListParameters {
    /// The parameters of every list: forks, starred projects.
    Common,
    /// The parameters of a user's projects.
    OfUser,
    /// The parameters of the list of all projects.
    #[default]
    All,
}

/// The conditions of a list, with their values.
#[derive(Default)]
pub(crate) struct ProjectQuery {
    parameters: ListParameters,
    /// Lists of groups have fewer filters, only offset paging, and show neither the caller's
    /// permissions nor statistics.
    is_group_list: bool,
    /// True if callers without a token get the full form too.
    is_full_for_anonymous: bool,
    conditions: SqlConditions,
}

impl ProjectQuery {
    fn with_parameters(takes: ListParameters, conditions: SqlConditions) -> Self {
        Self { parameters: takes, conditions, ..Self::default() }
    }

    fn for_group(conditions: SqlConditions) -> Self {
        Self { is_group_list: true, conditions, ..Self::default() }
    }

    /// True if the list has the orders and most filters of the list of all projects.
    fn has_all_filters(&self, call: &Call<'_>) -> bool {
        let is_observed = call.release() >= OBSERVED_RELEASE;
        self.parameters == ListParameters::All
            || self.parameters == ListParameters::OfUser && is_observed
    }

    /// The number of matching projects, up to one more than are counted.
    fn count(&self, call: &Call<'_>) -> Result<i64> {
        // Counting an index is fast if there is no condition.
        let (clause, limit) = (self.conditions.clause(), page::MAX_COUNTED + 1);
        let sql = match clause.as_str() {
            "" => "SELECT count(*) FROM projects".to_owned(),
            _ => {
                format!("SELECT count(*) FROM (SELECT 1 FROM projects p{clause} LIMIT {limit})")
            }
        };
        call.query_value(&sql, &*self.conditions.bound_params())
    }

    fn fetch(&self, call: &Call<'_>, order: &str, size: i64, offset: i64) -> Result<Vec<Project>> {
        // Rows before the page are skipped by id alone, without reading namespaces and rows.
        let sql = format!(
            "{} WHERE p.id IN (SELECT p.id FROM projects p{} ORDER BY {order} LIMIT :size OFFSET :offset) ORDER BY {order}",
            Project::select(),
            self.conditions.clause()
        );
        let mut bound = self.conditions.bound_params();
        bound.push((":size", &size));
        bound.push((":offset", &offset));
        let mut statement = call.db.prepare_cached(&sql)?;
        let mut namespaces = HashMap::new();
        let rows =
            statement.query_map(&*bound, |row| Project::with_namespace(row, &mut namespaces))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn forks(call: &Call<'_>) -> Result<Answer> {
    let conditions = SqlConditions::with_value("p.forked_from_id = :of", ":of", call.project()?.id);
    respond(call, ProjectQuery::with_parameters(ListParameters::Common, conditions))
}

/// A list of a user. With a private profile it is empty for others.
fn list_user_projects(
    call: &Call<'_>,
    takes: ListParameters,
    condition: &'static str,
) -> Result<Answer> {
    let user = call.segment_user()?;
    let mut conditions = SqlConditions::with_value(condition, ":of", user.id);
    let is_self_or_admin =
        call.caller.as_ref().is_some_and(|caller| caller.admin || caller.id == user.id);
    let is_open = "NOT EXISTS (SELECT 1 FROM users WHERE id = :of AND private_profile)";
    conditions.add_if(!is_self_or_admin, is_open);
    respond(call, ProjectQuery::with_parameters(takes, conditions))
}

fn list_group_projects(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    let is_deep = call.params.is_set("include_subgroups")?;
    let mut group_ids = if is_deep { group.subtree_ids(call.db)? } else { vec![group.id] };
    if call.params.is_set("include_ancestor_groups")? {
        group_ids.extend(traversal_ids(&group.traversal));
    }
    let group_list = Value::from(group_ids).to_string();
    let includes_shared = call.params.flag("with_shared")?.unwrap_or(true);
    let condition = if includes_shared { WITH_SHARED } else { WITHIN };
    let mut conditions = SqlConditions::with_value(condition, ":within", group_list);
    if includes_shared {
        conditions.bind(":of", group.id);
    }
    respond(
        call,
        ProjectQuery {
            is_full_for_anonymous: call.release() >= OBSERVED_RELEASE,
            ..ProjectQuery::for_group(conditions)
        },
    )
}

fn list_shared_projects(call: &Call<'_>) -> Result<Answer> {
    let conditions = SqlConditions::with_value(SHARED, ":of", call.group()?.id);
    respond(
        call,
        ProjectQuery { is_full_for_anonymous: true, ..ProjectQuery::for_group(conditions) },
    )
}

/// The projects of a group and those shared with it, each list newest first, as far as the caller
/// sees them. The call's parameters are for the group and do not filter them, but custom attributes
/// are shown with both.
pub(crate) fn group_projects_json(call: &Call<'_>, group: i64) -> Result<[Vec<Value>; 2]> {
    let find = |condition| {
        let mut conditions = SqlConditions::with_value(condition, ":of", group);
        filter_for_caller(call, &mut conditions, GUEST, false)?;
        ProjectQuery::with_parameters(ListParameters::All, conditions).fetch(
            call,
            "p.id DESC",
            MAX_GROUP_PROJECTS,
            0,
        )
    };
    let mut projects = find("p.namespace_id = :of")?;
    let count = projects.len();
    projects.append(&mut find(SHARED)?);
    call.read_direct_levels(&projects)?;
    let custom_attributes =
        Extras::from_call(call)?.custom_attributes && call.release() >= OBSERVED_RELEASE;
    let extras = Extras { custom_attributes, ..Extras::default() };
    let mut bodies =
        projects.iter().map(|project| view::full_form(call, project, extras)?.into_value());
    Ok([bodies.by_ref().take(count).collect::<Result<_, _>>()?, bodies.collect::<Result<_, _>>()?])
}

fn search_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    call.params.require(&["scope", "search"])?;
    call.params.allowed_text("scope", &["projects"])?;
    let group_list = Value::from(group.subtree_ids(call.db)?).to_string();
    respond(call, ProjectQuery::for_group(SqlConditions::with_value(WITHIN, ":within", group_list)))
}

/// Answers a page of the projects that match `query` and the call's filters, and that the caller
/// may see.
pub(crate) fn respond(call: &Call<'_>, mut query: ProjectQuery) -> Result<Answer> {
    filter_visible(call, &mut query)?;
    apply_filters(call, &mut query)?;
    let is_keyset = !query.is_group_list && page::is_keyset(call)?;
    // The links of keyset pages contain the next page's beginning in these.
    if query.parameters >= ListParameters::OfUser || is_keyset {
        query.conditions.add_with_value(
            "p.id > :after",
            ":after",
            call.params.integer("id_after")?,
        );
        query.conditions.add_with_value(
            "p.id < :before",
            ":before",
            call.params.integer("id_before")?,
        );
    }
    if query.has_all_filters(call) {
        apply_use_filters(call, &mut query)?;
    }
    if query.parameters == ListParameters::All {
        apply_further_filters(call, &mut query)?;
    }
    let is_descending =
        call.params.allowed_text("sort", &["asc", "desc"])?.as_deref() != Some("asc");
    let (is_by_id, order) = order(call, &query, if is_descending { "DESC" } else { "ASC" })?;
    let page = Page::from_call(call)?;
    if is_keyset {
        refuse_if(!is_by_id, || {
            let text = "Keyset pagination is not yet available for this type of request";
            ErrorResponse::error(StatusCode::METHOD_NOT_ALLOWED, text)
        })?;
        let projects = query.fetch(call, &order, page.size, 0)?;
        let name = if is_descending { "id_before" } else { "id_after" };
        let cursor = projects.last().map(|last| (name, last.id));
        return Ok(page::add_keyset_link(call, projects_answer(call, &query, &projects)?, cursor));
    }
    let page =
        if call.release() >= OBSERVED_RELEASE { page } else { page.check_offset("Project")? };
    let total = query.count(call)?;
    // One more row than requested is read, to find out if another page follows.
    let mut projects = query.fetch(call, &order, page.size + 1, page.offset())?;
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let has_more = projects.len() > size;
    projects.truncate(size);
    Ok(page.complete_answer(call, projects_answer(call, &query, &projects)?, total, has_more))
}

/// Returns (is ordered by id, the SQL order). The order by creation is that of the ids, which have an
/// index, because no project is created with an earlier time. All sizes are equal.
fn order(call: &Call<'_>, query: &ProjectQuery, direction: &str) -> Result<(bool, String)> {
    let requested_order = call.params.text("order_by")?.unwrap_or_else(|| "created_at".to_owned());
    let has_all = query.has_all_filters(call);
    let by_id = format!("p.id {direction}");
    let (is_accepted, order) = match requested_order.as_str() {
        "id" | "created_at" => (true, by_id),
        "repository_size" | "storage_size" | "packages_size" | "wiki_size" => {
            (has_all && !query.is_group_list, by_id)
        }
        column @ ("name" | "path") => {
            (true, format!("p.{column} COLLATE NOCASE {direction}, {by_id}"))
        }
        column @ ("updated_at" | "last_activity_at") => {
            (true, format!("p.{column} {direction}, {by_id}"))
        }
        "star_count" => {
            let can_user_list_sort =
                query.parameters >= ListParameters::OfUser && call.is_at_least(17, 4);
            let has_stars =
                if query.is_group_list { call.is_at_least(16, 10) } else { can_user_list_sort };
            (has_stars, format!("{STARS} {direction}, {by_id}"))
        }
        // Among names that contain a text, the shortest is the most similar.
        "similarity" if call.params.has("search") => {
            (has_all, "length(p.name), p.id DESC".to_owned())
        }
        "similarity" if query.is_group_list => (has_all, format!("p.name COLLATE NOCASE, {by_id}")),
        other => (has_all && other == "similarity", by_id),
    };
    refuse_if(!is_accepted, || ErrorResponse::no_valid_value("order_by"))?;
    Ok((requested_order == "id", order))
}

fn filter_visible(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let params = &call.params;
    let min_level = terms::level_parameter(call, "min_access_level")?;
    let is_owned = params.is_set("owned")?;
    let is_member = params.is_set("membership")? && !query.is_group_list;
    if query.parameters == ListParameters::OfUser && call.release() >= OBSERVED_RELEASE {
        // Only `min_access_level` has an effect, and only for users who are no administrators.
        let membership = min_level.is_some() && !call.is_administrator();
        let level = min_level.unwrap_or(GUEST);
        return filter_for_caller(call, &mut query.conditions, level, membership);
    }
    let membership = is_member || min_level.is_some() || is_owned;
    // An anonymous caller owns no project. The list of a group ignores the filter and shows public
    // projects.
    query.conditions.add_if(call.caller.is_none() && membership && !query.is_group_list, "0");
    let is_by_similarity = !query.is_group_list
        && params.has("search")
        && params.text("order_by")?.as_deref() == Some("similarity");
    let effective_level = min_level.unwrap_or(GUEST).max(if is_owned { OWNER } else { GUEST });
    filter_for_caller(call, &mut query.conditions, effective_level, membership || is_by_similarity)
}

/// Limits a list to projects that the caller may see; with `needs_membership` to those in which the
/// caller has at least the level `min_level`.
fn filter_for_caller(
    call: &Call<'_>,
    conditions: &mut SqlConditions,
    min_level: i64,
    needs_membership: bool,
) -> Result<()> {
    conditions.add_if(call.caller.is_none(), PUBLIC);
    let Some(user) = call.caller.as_ref().filter(|user| needs_membership || !user.admin) else {
        return Ok(());
    };
    conditions.bind(":user", user.id);
    conditions.bind(":least", min_level);
    conditions.bind(":today", call.today().to_owned());
    conditions.bind(":namespaces", call.memberships()?.namespaces_json(call.db, min_level)?);
    conditions.add_with_value(view::MEMBER_OF, ":everybody", Some(!needs_membership));
    Ok(())
}

/// The filters of every list.
fn apply_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, conditions) = (&call.params, &mut query.conditions);
    conditions.add_with_value("p.archived = :archived", ":archived", params.flag("archived")?);
    conditions.add_with_value(
        ACTIVE,
        ":active",
        params.flag("active")?.filter(|_| call.is_at_least(18, 0)),
    );
    let marked = params.date_text("marked_for_deletion_on")?.filter(|_| call.is_at_least(17, 1));
    conditions.add_with_value("p.marked_for_deletion_on = :marked", ":marked", marked);
    let visibility = params.allowed_text("visibility", VISIBILITIES)?;
    conditions.add_with_value("p.visibility = :visibility", ":visibility", visibility);
    if let Some(text) = params.text("search")?.filter(|text| !text.is_empty()) {
        let pattern = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let is_full =
            query.parameters == ListParameters::All && params.is_set("search_namespaces")?;
        let path = if is_full { "full_path" } else { "path" };
        let like = "LIKE :search ESCAPE '\\'";
        let search = format!("(p.{path} {like} OR p.name {like})");
        conditions.add_with_value(search, ":search", Some(format!("%{pattern}%")));
    }
    let me = call.caller.as_ref().map(|user| user.id);
    let starred = "p.id IN (SELECT project_id FROM stars WHERE user_id = :me)";
    conditions.add_with_value(starred, ":me", params.is_set("starred")?.then_some(me));
    let issues = "json_extract(p.attributes, '$.issues_access_level') <> 'disabled'";
    conditions.add_if(params.is_set("with_issues_enabled")?, issues);
    let requests = "json_extract(p.attributes, '$.merge_requests_access_level') <> 'disabled'";
    conditions.add_if(params.is_set("with_merge_requests_enabled")?, requests);
    // No project has reports, and no repository has contents.
    let is_empty = if query.is_group_list {
        params.is_set("with_security_reports")? && call.tier() >= AttributeTier::Ultimate
    } else {
        query.parameters >= ListParameters::OfUser
            && params.text("with_programming_language")?.is_some()
    };
    conditions.add_if(is_empty, "0");
    Ok(())
}

/// The filters by topic, by import and by activity.
fn apply_use_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, all) = (&call.params, &mut query.conditions);
    let topics = "NOT EXISTS (SELECT 1 FROM json_each(:topics) wanted WHERE wanted.value NOT IN
                      (SELECT value FROM json_each(p.attributes, '$.topics')))";
    all.add_with_value(
        topics,
        ":topics",
        params.texts("topic")?.map(|names| Value::from(names).to_string()),
    );
    let me = call.caller.as_ref().map(|user| user.id);
    let imported =
        "p.import_status <> 'none' AND p.forked_from_id IS NULL AND p.creator_id = :importer";
    let is_imported = params.is_set("imported")? && !query.is_group_list;
    all.add_with_value(imported, ":importer", is_imported.then_some(me));
    // Topics have no ids here.
    all.add_if(params.integer("topic_id")?.is_some(), "0");
    all.add_with_value(
        "p.last_activity_at > :since",
        ":since",
        sent_time(call, "last_activity_after")?,
    );
    all.add_with_value(
        "p.last_activity_at < :until",
        ":until",
        sent_time(call, "last_activity_before")?,
    );
    Ok(())
}

/// The additional filters of the list of all projects.
fn apply_further_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, all) = (&call.params, &mut query.conditions);
    let has_failed_checksums =
        params.is_set("repository_checksum_failed")? || params.is_set("wiki_checksum_failed")?;
    // No checksum ever fails.
    all.add_if(
        has_failed_checksums
            && call.tier() >= AttributeTier::Premium
            && call.release() < OBSERVED_RELEASE,
        "0",
    );
    // One letter is too short for callers without a token.
    let is_short = params.text("search")?.is_some_and(|text| text.chars().count() == 1);
    let is_refused = is_short && call.caller.is_none() && call.release() >= OBSERVED_RELEASE;
    all.add_if(is_refused && !query.is_group_list, "0");
    custom_attributes::add_filter(call, all, "c.project_id = p.id");
    let updated = [sent_time(call, "updated_after")?, sent_time(call, "updated_before")?];
    if call.is_at_least(15, 10) && !query.is_group_list && updated.iter().any(Option::is_some) {
        refuse_if(params.text("order_by")?.as_deref() != Some("updated_at"), || {
            ErrorResponse::bad_request(
                "`updated_at` filter and `updated_at` sorting must be paired",
            )
        })?;
        let [after, before] = updated;
        all.add_with_value("p.updated_at > :updated_after", ":updated_after", after);
        all.add_with_value("p.updated_at < :updated_before", ":updated_before", before);
    }
    let storage = params.text("repository_storage")?.filter(|_| call.is_administrator());
    let has_storage = "json_extract(p.attributes, '$.repository_storage') = :storage";
    all.add_with_value(has_storage, ":storage", storage);
    Ok(())
}

fn sent_time(call: &Call<'_>, name: &'static str) -> Result<Option<String>> {
    Ok(call.params.time(name)?.map(clock::format_time))
}

fn projects_answer(call: &Call<'_>, query: &ProjectQuery, projects: &[Project]) -> Result<Answer> {
    let is_simple =
        call.params.is_set("simple")? || (call.caller.is_none() && !query.is_full_for_anonymous);
    if !is_simple {
        call.read_direct_levels(projects)?;
    }
    let mut extras = Extras::from_call(call)?;
    extras.permissions &= !query.is_group_list;
    extras.statistics &= !query.is_group_list;
    let form = if is_simple { view::simple_form } else { view::full_form };
    let texts = projects.iter().map(|project| Ok(form(call, project, extras)?.into_text()));
    let texts = texts.collect::<Result<Vec<_>>>()?.join(&b',');
    Ok(Answer::json(StatusCode::OK, [b"[", texts.as_slice(), b"]"].concat()))
}
