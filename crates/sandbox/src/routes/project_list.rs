//! Lists of projects (reference 2, 4.1), all through one query.

use std::collections::HashMap;

use rusqlite::ToSql;

use super::super::page::COUNTED;
use super::members;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects", all),
    get("/projects/{id}/forks", forks),
    get("/users/{user_id}/projects", of_user),
    get("/users/{user_id}/starred_projects", starred_by),
    get("/groups/{id}/projects", of_group),
    get("/groups/{id}/projects/shared", shared_with_group),
    get("/groups/{id}/search", search_group),
    get("/groups/{id}/-/search", search_group),
];

/// The projects that everybody sees, also without a token.
const PUBLIC: &str = "p.visibility = 'public'";

/// The projects that `:group` is invited to.
const SHARED: &str = "p.id IN (SELECT project_id FROM shares WHERE invited_id = :group)";

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
enum Accepted {
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
pub(crate) struct Query {
    takes: Accepted,
    /// Lists of groups have fewer filters, only offset paging, and show neither the caller's
    /// permissions nor statistics.
    in_group: bool,
    /// Whether callers without a token get the full form too.
    in_full: bool,
    conditions: Vec<&'static str>,
    bound: Vec<(&'static str, Box<dyn ToSql>)>,
}

impl Query {
    fn taking(takes: Accepted) -> Self {
        Self { takes, ..Self::default() }
    }

    fn in_group() -> Self {
        Self { in_group: true, ..Self::default() }
    }

    /// Whether the list has the orders and most filters of the list of all projects.
    fn has_all_filters(&self, call: &Call<'_>) -> bool {
        let observed = call.release() >= OBSERVED;
        self.takes == Accepted::All || self.takes == Accepted::OfUser && observed
    }

    pub(crate) fn and(&mut self, condition: &'static str) -> &mut Self {
        self.conditions.push(condition);
        self
    }

    pub(crate) fn bind(&mut self, name: &'static str, value: impl ToSql + 'static) -> &mut Self {
        self.bound.push((name, Box::new(value)));
        self
    }

    /// Adds a condition on a value, if there is one.
    fn on(
        &mut self,
        condition: &'static str,
        name: &'static str,
        value: Option<impl ToSql + 'static>,
    ) {
        if let Some(value) = value {
            self.and(condition).bind(name, value);
        }
    }

    fn filter(&self) -> String {
        match self.conditions.as_slice() {
            [] => String::new(),
            some => format!(" WHERE {}", some.join(" AND ")),
        }
    }

    fn bound(&self) -> Vec<(&str, &dyn ToSql)> {
        self.bound.iter().map(|(name, value)| (*name, value.as_ref())).collect()
    }

    /// The number of matching projects, up to one more than are counted.
    fn count(&self, call: &Call<'_>) -> Result<i64> {
        // Counting an index is fast if there is no condition.
        let sql = match self.conditions.as_slice() {
            [] => "SELECT count(*) FROM projects".to_owned(),
            _ => format!(
                "SELECT count(*) FROM (SELECT 1 FROM projects p{} LIMIT {})",
                self.filter(),
                COUNTED + 1
            ),
        };
        call.one(&sql, &*self.bound())
    }

    fn fetch(&self, call: &Call<'_>, order: &str, size: i64, offset: i64) -> Result<Vec<Project>> {
        // Rows before the page are skipped by id alone, without reading namespaces and rows.
        let sql = format!(
            "{} WHERE p.id IN (SELECT p.id FROM projects p{} ORDER BY {order} LIMIT :size OFFSET :offset) ORDER BY {order}",
            Project::select(),
            self.filter()
        );
        let mut bound = self.bound();
        bound.push((":size", &size));
        bound.push((":offset", &offset));
        let mut statement = call.db.prepare_cached(&sql)?;
        let mut namespaces = HashMap::new();
        let rows =
            statement.query_map(&*bound, |row| Project::with_namespace(row, &mut namespaces))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn all(call: &Call<'_>) -> Result<Answer> {
    respond(call, Query::default())
}

fn forks(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let mut query = Query::taking(Accepted::Common);
    query.and("p.forked_from_id = :upstream").bind(":upstream", project.id);
    respond(call, query)
}

/// A user with a private profile has an empty list for others.
fn respect_privacy(call: &Call<'_>, user: &User, query: &mut Query) {
    if !call.caller.as_ref().is_some_and(|caller| caller.admin || caller.id == user.id) {
        query
            .and("NOT EXISTS (SELECT 1 FROM users WHERE id = :of AND private_profile)")
            .bind(":of", user.id);
    }
}

/// Only projects in the user's own namespace (reference 2, 4.1 rule 3).
fn of_user(call: &Call<'_>) -> Result<Answer> {
    let user = call.named_user()?;
    let namespace = Namespace::of_user(call.db, user.id)?;
    let mut query = Query::taking(Accepted::OfUser);
    respect_privacy(call, &user, &mut query);
    query
        .and("p.namespace_id = :namespace")
        .bind(":namespace", namespace.map(|namespace| namespace.id));
    respond(call, query)
}

fn starred_by(call: &Call<'_>) -> Result<Answer> {
    let user = call.named_user()?;
    let mut query = Query::taking(Accepted::Common);
    respect_privacy(call, &user, &mut query);
    query
        .and("p.id IN (SELECT project_id FROM stars WHERE user_id = :starrer)")
        .bind(":starrer", user.id);
    respond(call, query)
}

fn of_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    let mut query = Query { in_full: call.release() >= OBSERVED, ..Query::in_group() };
    let mut within = match call.params.is_set("include_subgroups")? {
        true => group.subtree(call.db)?,
        false => vec![group.id],
    };
    if call.params.is_set("include_ancestor_groups")? {
        within.extend(ids(&group.traversal));
    }
    query.bind(":within", Value::from(within).to_string());
    if call.params.flag("with_shared")?.unwrap_or(true) {
        query
            .and(
                "(p.namespace_id IN (SELECT value FROM json_each(:within))
                  OR p.id IN (SELECT project_id FROM shares WHERE invited_id = :group))",
            )
            .bind(":group", group.id);
    } else {
        query.and("p.namespace_id IN (SELECT value FROM json_each(:within))");
    }
    respond(call, query)
}

fn shared_with_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    let mut query = Query { in_full: true, ..Query::in_group() };
    query.and(SHARED).bind(":group", group.id);
    respond(call, query)
}

/// The projects of a group and those shared with it, each list newest first, as far as the caller
/// sees them. The call's parameters are for the group and do not filter them.
pub(crate) fn shown_with_group(call: &Call<'_>, group: i64) -> Result<[Vec<Value>; 2]> {
    let find = |condition| {
        let mut query = Query::default();
        query.and(condition).bind(":group", group);
        match &call.caller {
            Some(user) => narrow_for_user(call, &mut query, user, GUEST, false)?,
            None => drop(query.and(PUBLIC)),
        }
        query.fetch(call, "p.id DESC", MOST_WITH_GROUP, 0)
    };
    let mut projects = find("p.namespace_id = :group")?;
    let own = projects.len();
    projects.append(&mut find(SHARED)?);
    call.read_direct_levels(&projects)?;
    let mut shown =
        projects.iter().map(|project| view::full(call, project, Extras::default())?.value());
    Ok([shown.by_ref().take(own).collect::<Result<_, _>>()?, shown.collect::<Result<_, _>>()?])
}

fn search_group(call: &Call<'_>) -> Result<Answer> {
    let group = call.group()?;
    call.params.require(&["scope", "search"])?;
    call.params.one_of("scope", &["projects"])?;
    let mut query = Query::in_group();
    query
        .and("p.namespace_id IN (SELECT value FROM json_each(:within))")
        .bind(":within", Value::from(group.subtree(call.db)?).to_string());
    respond(call, query)
}

/// Answers a page of the projects that match `query` and the call's filters, and that the caller
/// may see.
pub(crate) fn respond(call: &Call<'_>, mut query: Query) -> Result<Answer> {
    narrow_to_visible(call, &mut query)?;
    narrow_by_filters(call, &mut query)?;
    let keyset = !query.in_group && call.params.text("pagination")?.as_deref() == Some("keyset");
    // The links of keyset pages contain the next page's beginning in these.
    if query.takes >= Accepted::OfUser || keyset {
        narrow_by_id(call, &mut query)?;
    }
    if query.has_all_filters(call) {
        narrow_by_use(call, &mut query)?;
    }
    if query.takes == Accepted::All {
        narrow_all_projects(call, &mut query)?;
    }
    let descending = call.params.one_of("sort", &["asc", "desc"])?.as_deref() != Some("asc");
    let direction = if descending { "DESC" } else { "ASC" };
    let order_by = order(call, &query)?;
    let page = Page::of(call)?;
    if keyset {
        if order_by != "id" {
            return Err(Failure::error(
                StatusCode::METHOD_NOT_ALLOWED,
                "Keyset pagination is not yet available for this type of request",
            ));
        }
        let projects = query.fetch(call, &format!("p.id {direction}"), page.size, 0)?;
        let name = if descending { "id_before" } else { "id_after" };
        let cursor = projects.last().map(|last| (name, last.id));
        return Ok(page::keyset(call, rendered(call, &query, &projects)?, cursor));
    }
    let page = if call.release() >= OBSERVED { page } else { page.bounded("Project")? };
    let total = query.count(call)?;
    let order = match order_by.as_str() {
        // Among names that contain a text, the shortest is the most similar.
        "similarity" if call.params.has("search") => "length(p.name), p.id DESC".to_owned(),
        "similarity" if query.in_group => format!("p.name COLLATE NOCASE, p.id {direction}"),
        column @ ("name" | "path") => {
            format!("p.{column} COLLATE NOCASE {direction}, p.id {direction}")
        }
        column @ ("updated_at" | "last_activity_at") => {
            format!("p.{column} {direction}, p.id {direction}")
        }
        "star_count" => format!("{STARS} {direction}, p.id {direction}"),
        // Projects are never created in the past, so order by id, which has an index.
        _ => format!("p.id {direction}"),
    };
    // One more row shows whether another page follows.
    let mut projects = query.fetch(call, &order, page.size + 1, page.offset())?;
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let more = projects.len() > size;
    projects.truncate(size);
    Ok(page.answer(call, rendered(call, &query, &projects)?, total, more))
}

fn order(call: &Call<'_>, query: &Query) -> Result<String> {
    const ANY_LIST: &[&str] =
        &["id", "name", "path", "created_at", "updated_at", "last_activity_at"];
    const ADMINISTRATORS: &[&str] =
        &["repository_size", "storage_size", "packages_size", "wiki_size"];
    let wanted = call.params.text("order_by")?.unwrap_or_else(|| "created_at".to_owned());
    let sizes = ADMINISTRATORS.contains(&wanted.as_str());
    let is_accepted = match wanted.as_str() {
        "star_count" if query.in_group => call.is_from(16, 10),
        "star_count" => query.takes >= Accepted::OfUser && call.is_from(17, 4),
        "similarity" => query.has_all_filters(call),
        _ => {
            let has_sizes = !query.in_group && query.has_all_filters(call);
            ANY_LIST.contains(&wanted.as_str()) || sizes && has_sizes
        }
    };
    refuse_if(!is_accepted, || Failure::no_valid_value("order_by"))?;
    Ok(if sizes && !call.is_administrator() { "created_at".to_owned() } else { wanted })
}

fn narrow_to_visible(call: &Call<'_>, query: &mut Query) -> Result<()> {
    let params = &call.params;
    let least = members::level(call, "min_access_level")?;
    let owned = params.is_set("owned")?;
    let is_member = params.is_set("membership")? && !query.in_group;
    let membership = is_member || least.is_some() || owned;
    if query.takes == Accepted::OfUser && call.release() >= OBSERVED {
        // Only `min_access_level` counts, and only for users who are no administrators.
        return match &call.caller {
            None => {
                query.and(PUBLIC);
                Ok(())
            }
            Some(user) => {
                let membership = least.is_some() && !user.admin;
                narrow_for_user(call, query, user, least.unwrap_or(GUEST), membership)
            }
        };
    }
    let Some(user) = &call.caller else {
        // An unknown caller owns nothing. A group shows what is public, whatever the filter.
        query.and(if membership && !query.in_group { "0" } else { PUBLIC });
        return Ok(());
    };
    let similar = !query.in_group
        && params.has("search")
        && params.text("order_by")?.as_deref() == Some("similarity");
    let membership = membership || similar;
    narrow_for_user(
        call,
        query,
        user,
        least.unwrap_or(GUEST).max(if owned { OWNER } else { GUEST }),
        membership,
    )
}

/// Restricts the list to what a user may see; with `membership` to projects in which they have the
/// role `least`.
fn narrow_for_user(
    call: &Call<'_>,
    query: &mut Query,
    user: &User,
    least: i64,
    membership: bool,
) -> Result<()> {
    if !membership && user.admin {
        return Ok(());
    }
    query.bind(":user", user.id);
    query.bind(":least", least);
    query.bind(":today", call.today().to_owned());
    query.bind(":namespaces", call.standing()?.namespaces(call.db, least)?);
    query.bind(":everybody", !membership);
    query.and(view::MEMBER_OF);
    Ok(())
}

/// The filters of every list.
fn narrow_by_filters(call: &Call<'_>, query: &mut Query) -> Result<()> {
    let params = &call.params;
    query.on("p.archived = :archived", ":archived", params.flag("archived")?);
    query.on(ACTIVE, ":active", params.flag("active")?.filter(|_| call.is_from(18, 0)));
    let marked = params.date("marked_for_deletion_on")?.flatten().filter(|_| call.is_from(17, 1));
    query.on("p.marked_for_deletion_on = :marked", ":marked", marked.map(|day| day.to_string()));
    let visibility = params.one_of("visibility", VISIBILITIES)?;
    query.on("p.visibility = :visibility", ":visibility", visibility);
    if let Some(text) = params.text("search")?.filter(|text| !text.is_empty()) {
        let pattern = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        query.bind(":search", format!("%{pattern}%"));
        query.and(match query.takes == Accepted::All && params.is_set("search_namespaces")? {
            true => "(p.full_path LIKE :search ESCAPE '\\' OR p.name LIKE :search ESCAPE '\\')",
            false => "(p.path LIKE :search ESCAPE '\\' OR p.name LIKE :search ESCAPE '\\')",
        });
    }
    if params.is_set("starred")? {
        let me = call.caller.as_ref().map(|user| user.id);
        query.and("p.id IN (SELECT project_id FROM stars WHERE user_id = :me)").bind(":me", me);
    }
    if params.is_set("with_issues_enabled")? {
        query.and("json_extract(p.attributes, '$.issues_access_level') <> 'disabled'");
    }
    if params.is_set("with_merge_requests_enabled")? {
        query.and("json_extract(p.attributes, '$.merge_requests_access_level') <> 'disabled'");
    }
    if query.in_group {
        if params.is_set("with_security_reports")? && call.tier() >= Tier::Ultimate {
            // No project has reports.
            query.and("0");
        }
    } else if query.takes >= Accepted::OfUser && params.text("with_programming_language")?.is_some()
    {
        // No repository has contents.
        query.and("0");
    }
    Ok(())
}

fn narrow_by_id(call: &Call<'_>, query: &mut Query) -> Result<()> {
    let params = &call.params;
    query.on("p.id > :id_after", ":id_after", params.integer("id_after")?);
    query.on("p.id < :id_before", ":id_before", params.integer("id_before")?);
    Ok(())
}

/// The filters by topic, by import and by activity.
fn narrow_by_use(call: &Call<'_>, query: &mut Query) -> Result<()> {
    let params = &call.params;
    if let Some(topics) = params.texts("topic")? {
        query.bind(":topics", Value::from(topics).to_string()).and(
            "NOT EXISTS (SELECT 1 FROM json_each(:topics) wanted WHERE wanted.value NOT IN
                 (SELECT value FROM json_each(p.attributes, '$.topics')))",
        );
    }
    if params.is_set("imported")? && !query.in_group {
        let importer = call.caller.as_ref().map(|user| user.id);
        query.and("p.import_status <> 'none' AND p.forked_from_id IS NULL AND p.creator_id = :importer").bind(":importer", importer);
    }
    if params.integer("topic_id")?.is_some() {
        // Topics have no ids here.
        query.and("0");
    }
    query.on("p.last_activity_at > :after", ":after", time(call, "last_activity_after")?);
    query.on("p.last_activity_at < :before", ":before", time(call, "last_activity_before")?);
    Ok(())
}

/// The additional filters of the list of all projects.
fn narrow_all_projects(call: &Call<'_>, query: &mut Query) -> Result<()> {
    let params = &call.params;
    let wrong_sums =
        params.is_set("repository_checksum_failed")? || params.is_set("wiki_checksum_failed")?;
    if wrong_sums && call.tier() >= Tier::Premium && call.release() < OBSERVED {
        // No checksum ever fails.
        query.and("0");
    }
    // One letter is too short for callers without a token.
    let is_short = params.text("search")?.is_some_and(|text| text.chars().count() == 1);
    if is_short && call.caller.is_none() && !query.in_group && call.release() >= OBSERVED {
        query.and("0");
    }
    if let (Some(wanted @ Value::Object(_)), true) =
        (params.get("custom_attributes"), call.is_administrator())
    {
        query.bind(":custom", wanted.to_string()).and(
            "NOT EXISTS (SELECT 1 FROM json_each(:custom) wanted WHERE NOT EXISTS
                 (SELECT 1 FROM custom_attributes c WHERE c.project_id = p.id AND c.key = wanted.key AND c.value = wanted.value))",
        );
    }
    let updated = [time(call, "updated_after")?, time(call, "updated_before")?];
    if call.is_from(15, 10) && !query.in_group && updated.iter().any(Option::is_some) {
        refuse_if(params.text("order_by")?.as_deref() != Some("updated_at"), || {
            Failure::bad_request("`updated_at` filter and `updated_at` sorting must be paired")
        })?;
        let [after, before] = updated;
        query.and("(:updated_after IS NULL OR p.updated_at > :updated_after)");
        query.and("(:updated_before IS NULL OR p.updated_at < :updated_before)");
        query.bind(":updated_after", after).bind(":updated_before", before);
    }
    let storage = params.text("repository_storage")?.filter(|_| call.is_administrator());
    let is_there = "json_extract(p.attributes, '$.repository_storage') = :storage";
    query.on(is_there, ":storage", storage);
    Ok(())
}

fn time(call: &Call<'_>, name: &'static str) -> Result<Option<String>> {
    Ok(call.params.time(name)?.map(clock::spell))
}

fn rendered(call: &Call<'_>, query: &Query, projects: &[Project]) -> Result<Answer> {
    let simple = call.params.is_set("simple")? || (call.caller.is_none() && !query.in_full);
    if !simple {
        call.read_direct_levels(projects)?;
    }
    let mut wanted = Extras::of(call)?;
    wanted.permissions &= !query.in_group;
    wanted.statistics &= !query.in_group;
    let form = if simple { view::simple } else { view::full };
    let texts = projects.iter().map(|project| Ok(form(call, project, wanted)?.text()));
    let texts = texts.collect::<Result<Vec<_>>>()?.join(&b',');
    Ok(Answer::json(StatusCode::OK, [b"[", texts.as_slice(), b"]"].concat()))
}
