//! Lists of projects (reference 2, 4.1), all through one query.

use std::collections::HashMap;

use super::conditions::SqlConditions;
use super::custom_attributes;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects", |call| respond(call, ProjectQuery::default())),
    get("/projects/{id}/forks", forks),
    get("/users/{user_id}/projects", |call| of_user(call, ListParameters::OfUser, OWNED)),
    get("/users/{user_id}/starred_projects", |call| of_user(call, ListParameters::Common, STARRED)),
    get("/groups/{id}/projects", of_group),
    get("/groups/{id}/projects/shared", shared_with_group),
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

/// The same, and those that the group `:of` is invited to.
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
const MOST_WITH_GROUP: i64 = 100;

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
    takes: ListParameters,
    /// Lists of groups have fewer filters, only offset paging, and show neither the caller's
    /// permissions nor statistics.
    in_group: bool,
    /// True if callers without a token get the full form too.
    in_full: bool,
    conditions: SqlConditions,
}

impl ProjectQuery {
    fn of(takes: ListParameters, conditions: SqlConditions) -> Self {
        Self { takes, conditions, ..Self::default() }
    }

    fn in_group(conditions: SqlConditions) -> Self {
        Self { in_group: true, conditions, ..Self::default() }
    }

    /// True if the list has the orders and most filters of the list of all projects.
    fn has_all_filters(&self, call: &Call<'_>) -> bool {
        let observed = call.release() >= OBSERVED;
        self.takes == ListParameters::All || self.takes == ListParameters::OfUser && observed
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
        call.one(&sql, &*self.conditions.bound())
    }

    fn fetch(&self, call: &Call<'_>, order: &str, size: i64, offset: i64) -> Result<Vec<Project>> {
        // Rows before the page are skipped by id alone, without reading namespaces and rows.
        let sql = format!(
            "{} WHERE p.id IN (SELECT p.id FROM projects p{} ORDER BY {order} LIMIT :size OFFSET :offset) ORDER BY {order}",
            Project::select(),
            self.conditions.clause()
        );
        let mut bound = self.conditions.bound();
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
    let conditions = SqlConditions::with("p.forked_from_id = :of", ":of", call.project()?.id);
    respond(call, ProjectQuery::of(ListParameters::Common, conditions))
}

/// A list of a user. With a private profile it is empty for others.
fn of_user(call: &Call<'_>, takes: ListParameters, condition: &'static str) -> Result<Answer> {
    let user = call.named_user()?;
    let mut conditions = SqlConditions::with(condition, ":of", user.id);
    let sees = call.caller.as_ref().is_some_and(|caller| caller.admin || caller.id == user.id);
    let is_open = "NOT EXISTS (SELECT 1 FROM users WHERE id = :of AND private_profile)";
    conditions.add_if(!sees, is_open);
    respond(call, ProjectQuery::of(takes, conditions))
}

fn of_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    let is_deep = call.params.is_set("include_subgroups")?;
    let mut within = if is_deep { group.subtree(call.db)? } else { vec![group.id] };
    if call.params.is_set("include_ancestor_groups")? {
        within.extend(ids(&group.traversal));
    }
    let within = Value::from(within).to_string();
    let shared = call.params.flag("with_shared")?.unwrap_or(true);
    let condition = if shared { WITH_SHARED } else { WITHIN };
    let mut conditions = SqlConditions::with(condition, ":within", within);
    if shared {
        conditions.bind(":of", group.id);
    }
    respond(
        call,
        ProjectQuery { in_full: call.release() >= OBSERVED, ..ProjectQuery::in_group(conditions) },
    )
}

fn shared_with_group(call: &Call<'_>) -> Result<Answer> {
    let conditions = SqlConditions::with(SHARED, ":of", call.group()?.id);
    respond(call, ProjectQuery { in_full: true, ..ProjectQuery::in_group(conditions) })
}

/// The projects of a group and those shared with it, each list newest first, as far as the caller
/// sees them. The call's parameters are for the group and do not filter them, but custom attributes
/// are shown with both.
pub(crate) fn shown_with_group(call: &Call<'_>, group: i64) -> Result<[Vec<Value>; 2]> {
    let find = |condition| {
        let mut conditions = SqlConditions::with(condition, ":of", group);
        filter_for_caller(call, &mut conditions, GUEST, false)?;
        ProjectQuery::of(ListParameters::All, conditions).fetch(
            call,
            "p.id DESC",
            MOST_WITH_GROUP,
            0,
        )
    };
    let mut projects = find("p.namespace_id = :of")?;
    let count = projects.len();
    projects.append(&mut find(SHARED)?);
    call.read_direct_levels(&projects)?;
    let custom_attributes = Extras::of(call)?.custom_attributes && call.release() >= OBSERVED;
    let extras = Extras { custom_attributes, ..Extras::default() };
    let mut bodies = projects.iter().map(|project| view::full(call, project, extras)?.value());
    Ok([bodies.by_ref().take(count).collect::<Result<_, _>>()?, bodies.collect::<Result<_, _>>()?])
}

fn search_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    call.params.require(&["scope", "search"])?;
    call.params.one_of("scope", &["projects"])?;
    let within = Value::from(group.subtree(call.db)?).to_string();
    respond(call, ProjectQuery::in_group(SqlConditions::with(WITHIN, ":within", within)))
}

/// Answers a page of the projects that match `query` and the call's filters, and that the caller
/// may see.
pub(crate) fn respond(call: &Call<'_>, mut query: ProjectQuery) -> Result<Answer> {
    filter_visible(call, &mut query)?;
    apply_filters(call, &mut query)?;
    let keyset = !query.in_group && page::is_keyset(call)?;
    // The links of keyset pages contain the next page's beginning in these.
    if query.takes >= ListParameters::OfUser || keyset {
        query.conditions.on("p.id > :after", ":after", call.params.integer("id_after")?);
        query.conditions.on("p.id < :before", ":before", call.params.integer("id_before")?);
    }
    if query.has_all_filters(call) {
        apply_use_filters(call, &mut query)?;
    }
    if query.takes == ListParameters::All {
        apply_further_filters(call, &mut query)?;
    }
    let descending = call.params.one_of("sort", &["asc", "desc"])?.as_deref() != Some("asc");
    let (is_by_id, order) = order(call, &query, if descending { "DESC" } else { "ASC" })?;
    let page = Page::of(call)?;
    if keyset {
        refuse_if(!is_by_id, || {
            let text = "Keyset pagination is not yet available for this type of request";
            ErrorResponse::error(StatusCode::METHOD_NOT_ALLOWED, text)
        })?;
        let projects = query.fetch(call, &order, page.size, 0)?;
        let name = if descending { "id_before" } else { "id_after" };
        let cursor = projects.last().map(|last| (name, last.id));
        return Ok(page::keyset(call, projects_answer(call, &query, &projects)?, cursor));
    }
    let page = if call.release() >= OBSERVED { page } else { page.bounded("Project")? };
    let total = query.count(call)?;
    // One more row shows whether another page follows.
    let mut projects = query.fetch(call, &order, page.size + 1, page.offset())?;
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let has_more = projects.len() > size;
    projects.truncate(size);
    Ok(page.answer(call, projects_answer(call, &query, &projects)?, total, has_more))
}

/// Returns (ordered by id, the order). Projects are never created in the past, so their
/// order in time is that of their ids, which have an index. All sizes are equal.
fn order(call: &Call<'_>, query: &ProjectQuery, direction: &str) -> Result<(bool, String)> {
    let requested_order = call.params.text("order_by")?.unwrap_or_else(|| "created_at".to_owned());
    let has_all = query.has_all_filters(call);
    let by_id = format!("p.id {direction}");
    let (is_accepted, order) = match requested_order.as_str() {
        "id" | "created_at" => (true, by_id),
        "repository_size" | "storage_size" | "packages_size" | "wiki_size" => {
            (has_all && !query.in_group, by_id)
        }
        column @ ("name" | "path") => {
            (true, format!("p.{column} COLLATE NOCASE {direction}, {by_id}"))
        }
        column @ ("updated_at" | "last_activity_at") => {
            (true, format!("p.{column} {direction}, {by_id}"))
        }
        "star_count" => {
            let of_other = query.takes >= ListParameters::OfUser && call.is_from(17, 4);
            let has_stars = if query.in_group { call.is_from(16, 10) } else { of_other };
            (has_stars, format!("{STARS} {direction}, {by_id}"))
        }
        // Among names that contain a text, the shortest is the most similar.
        "similarity" if call.params.has("search") => {
            (has_all, "length(p.name), p.id DESC".to_owned())
        }
        "similarity" if query.in_group => (has_all, format!("p.name COLLATE NOCASE, {by_id}")),
        other => (has_all && other == "similarity", by_id),
    };
    refuse_if(!is_accepted, || ErrorResponse::no_valid_value("order_by"))?;
    Ok((requested_order == "id", order))
}

fn filter_visible(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let params = &call.params;
    let min_level = terms::level_parameter(call, "min_access_level")?;
    let owned = params.is_set("owned")?;
    let is_member = params.is_set("membership")? && !query.in_group;
    if query.takes == ListParameters::OfUser && call.release() >= OBSERVED {
        // Only `min_access_level` counts, and only for users who are no administrators.
        let membership = min_level.is_some() && !call.is_administrator();
        let level = min_level.unwrap_or(GUEST);
        return filter_for_caller(call, &mut query.conditions, level, membership);
    }
    let membership = is_member || min_level.is_some() || owned;
    // An unknown caller owns nothing. A group shows what is public, whatever the filter.
    query.conditions.add_if(call.caller.is_none() && membership && !query.in_group, "0");
    let similar = !query.in_group
        && params.has("search")
        && params.text("order_by")?.as_deref() == Some("similarity");
    let least = min_level.unwrap_or(GUEST).max(if owned { OWNER } else { GUEST });
    filter_for_caller(call, &mut query.conditions, least, membership || similar)
}

/// Restricts a list to what the caller may see; with `membership` to projects in which they have the
/// role `least`.
fn filter_for_caller(
    call: &Call<'_>,
    conditions: &mut SqlConditions,
    min_level: i64,
    membership: bool,
) -> Result<()> {
    conditions.add_if(call.caller.is_none(), PUBLIC);
    let Some(user) = call.caller.as_ref().filter(|user| membership || !user.admin) else {
        return Ok(());
    };
    conditions.bind(":user", user.id);
    conditions.bind(":least", min_level);
    conditions.bind(":today", call.today().to_owned());
    conditions.bind(":namespaces", call.memberships()?.namespaces(call.db, min_level)?);
    conditions.on(view::MEMBER_OF, ":everybody", Some(!membership));
    Ok(())
}

/// The filters of every list.
fn apply_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, all) = (&call.params, &mut query.conditions);
    all.on("p.archived = :archived", ":archived", params.flag("archived")?);
    all.on(ACTIVE, ":active", params.flag("active")?.filter(|_| call.is_from(18, 0)));
    let marked = params.day("marked_for_deletion_on")?.filter(|_| call.is_from(17, 1));
    all.on("p.marked_for_deletion_on = :marked", ":marked", marked);
    let visibility = params.one_of("visibility", VISIBILITIES)?;
    all.on("p.visibility = :visibility", ":visibility", visibility);
    if let Some(text) = params.text("search")?.filter(|text| !text.is_empty()) {
        let pattern = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let is_full = query.takes == ListParameters::All && params.is_set("search_namespaces")?;
        let path = if is_full { "full_path" } else { "path" };
        let like = "LIKE :search ESCAPE '\\'";
        let search = format!("(p.{path} {like} OR p.name {like})");
        all.on(search, ":search", Some(format!("%{pattern}%")));
    }
    let me = call.caller.as_ref().map(|user| user.id);
    let starred = "p.id IN (SELECT project_id FROM stars WHERE user_id = :me)";
    all.on(starred, ":me", params.is_set("starred")?.then_some(me));
    let issues = "json_extract(p.attributes, '$.issues_access_level') <> 'disabled'";
    all.add_if(params.is_set("with_issues_enabled")?, issues);
    let requests = "json_extract(p.attributes, '$.merge_requests_access_level') <> 'disabled'";
    all.add_if(params.is_set("with_merge_requests_enabled")?, requests);
    // No project has reports, and no repository has contents.
    let is_empty = if query.in_group {
        params.is_set("with_security_reports")? && call.tier() >= AttributeTier::Ultimate
    } else {
        query.takes >= ListParameters::OfUser && params.text("with_programming_language")?.is_some()
    };
    all.add_if(is_empty, "0");
    Ok(())
}

/// The filters by topic, by import and by activity.
fn apply_use_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, all) = (&call.params, &mut query.conditions);
    let topics = "NOT EXISTS (SELECT 1 FROM json_each(:topics) wanted WHERE wanted.value NOT IN
                      (SELECT value FROM json_each(p.attributes, '$.topics')))";
    all.on(topics, ":topics", params.texts("topic")?.map(|names| Value::from(names).to_string()));
    let me = call.caller.as_ref().map(|user| user.id);
    let imported =
        "p.import_status <> 'none' AND p.forked_from_id IS NULL AND p.creator_id = :importer";
    let is_imported = params.is_set("imported")? && !query.in_group;
    all.on(imported, ":importer", is_imported.then_some(me));
    // Topics have no ids here.
    all.add_if(params.integer("topic_id")?.is_some(), "0");
    all.on("p.last_activity_at > :since", ":since", sent_time(call, "last_activity_after")?);
    all.on("p.last_activity_at < :until", ":until", sent_time(call, "last_activity_before")?);
    Ok(())
}

/// The additional filters of the list of all projects.
fn apply_further_filters(call: &Call<'_>, query: &mut ProjectQuery) -> Result<()> {
    let (params, all) = (&call.params, &mut query.conditions);
    let wrong_sums =
        params.is_set("repository_checksum_failed")? || params.is_set("wiki_checksum_failed")?;
    // No checksum ever fails.
    all.add_if(
        wrong_sums && call.tier() >= AttributeTier::Premium && call.release() < OBSERVED,
        "0",
    );
    // One letter is too short for callers without a token.
    let is_short = params.text("search")?.is_some_and(|text| text.chars().count() == 1);
    let is_refused = is_short && call.caller.is_none() && call.release() >= OBSERVED;
    all.add_if(is_refused && !query.in_group, "0");
    custom_attributes::filter(call, all, "c.project_id = p.id");
    let updated = [sent_time(call, "updated_after")?, sent_time(call, "updated_before")?];
    if call.is_from(15, 10) && !query.in_group && updated.iter().any(Option::is_some) {
        refuse_if(params.text("order_by")?.as_deref() != Some("updated_at"), || {
            ErrorResponse::bad_request(
                "`updated_at` filter and `updated_at` sorting must be paired",
            )
        })?;
        let [after, before] = updated;
        all.on("p.updated_at > :updated_after", ":updated_after", after);
        all.on("p.updated_at < :updated_before", ":updated_before", before);
    }
    let storage = params.text("repository_storage")?.filter(|_| call.is_administrator());
    let is_there = "json_extract(p.attributes, '$.repository_storage') = :storage";
    all.on(is_there, ":storage", storage);
    Ok(())
}

fn sent_time(call: &Call<'_>, name: &'static str) -> Result<Option<String>> {
    Ok(call.params.time(name)?.map(clock::spell))
}

fn projects_answer(call: &Call<'_>, query: &ProjectQuery, projects: &[Project]) -> Result<Answer> {
    let simple = call.params.is_set("simple")? || (call.caller.is_none() && !query.in_full);
    if !simple {
        call.read_direct_levels(projects)?;
    }
    let mut extras = Extras::of(call)?;
    extras.permissions &= !query.in_group;
    extras.statistics &= !query.in_group;
    let form = if simple { view::simple } else { view::full };
    let texts = projects.iter().map(|project| Ok(form(call, project, extras)?.text()));
    let texts = texts.collect::<Result<Vec<_>>>()?.join(&b',');
    Ok(Answer::json(StatusCode::OK, [b"[", texts.as_slice(), b"]"].concat()))
}
