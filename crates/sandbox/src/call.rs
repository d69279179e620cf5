//! One call for its handler: the database in a transaction, the caller, the parameters.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};
use jiff::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension as _, Params as Bound, Row, ToSql, params};
use serde_json::Value;

use super::access::{self, GUEST, Memberships, OWNER, PresentedToken, REPORTER};
use super::answer::{Answer, ErrorResponse, Result, refuse_if};
use super::attributes::{AttributeTier, Edition};
use super::clock;
use super::closed::ClosedRoute;
use super::params::Params;
use super::store::namespace::Namespace;
use super::store::project::Project;
use super::store::stored::{Stored, rows};
use super::store::user::User;
use super::{ServiceState, settings::Rights};
use undrift_release::Release;

/// The setting of an archived group.
pub(crate) const ARCHIVED: &str = "archived";

/// The named segments of a path, decoded.
pub(crate) type Segments = Vec<(&'static str, String)>;

/// The parsed request of a call.
#[derive(Default)]
pub(crate) struct Input {
    pub(crate) method: Method,
    /// True if the operation changes data.
    pub(crate) is_write: bool,
    /// The rule of archived projects for this operation; `None` if they allow it.
    pub(crate) closed_route: Option<&'static ClosedRoute>,
    pub(crate) params: Params,
    pub(crate) segments: Segments,
    /// Scheme and host as the client used them, for addresses in answers.
    pub(crate) base_url: String,
    /// Path and query as sent, for `Link`.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

impl Input {
    /// A POST with these parameters.
    pub(crate) fn post(params: Params) -> Self {
        Self { method: Method::POST, is_write: true, params, ..Self::default() }
    }
}

impl Deref for Call<'_> {
    type Target = Input;

    fn deref(&self) -> &Input {
        &self.input
    }
}

/// One call.
pub(crate) struct Call<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) service: &'a ServiceState,
    pub(crate) caller: Option<User>,
    pub(crate) token: Option<PresentedToken>,
    pub(crate) input: Input,
    pub(crate) time: Timestamp,
    pub(crate) time_text: OnceCell<String>,
    pub(crate) memberships: OnceCell<Memberships>,
    /// The caller's direct levels in the projects of a list, after they were read together.
    pub(crate) list_levels: OnceCell<HashMap<i64, Option<i64>>>,
}

impl<'a> Call<'a> {
    /// A call of a caller at a time.
    pub(crate) fn new(
        service: &'a ServiceState,
        db: &'a Connection,
        (caller, token): (Option<User>, Option<PresentedToken>),
        time: Timestamp,
        input: Input,
    ) -> Self {
        let (time_text, memberships, list_levels) = Default::default();
        Self { db, service, caller, token, input, time, time_text, memberships, list_levels }
    }
}

impl Call<'_> {
    /// The first column of the one row of a result.
    pub(crate) fn query_value<T: FromSql>(&self, sql: &str, values: impl Bound) -> Result<T> {
        Ok(self.db.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
    }

    /// The first column of the row of a result, if there is one.
    pub(crate) fn query_optional<T: FromSql>(
        &self,
        sql: &str,
        values: impl Bound,
    ) -> Result<Option<T>> {
        Ok(self.db.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?)
    }

    /// The first column of all rows of a result.
    pub(crate) fn query_column<T: FromSql>(&self, sql: &str, values: impl Bound) -> Result<Vec<T>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let column = statement.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>();
        Ok(column?)
    }

    /// All rows of a result, as tuples.
    pub(crate) fn query_rows<T>(&self, sql: &str, values: impl Bound) -> Result<Vec<T>>
    where
        T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
    {
        Ok(rows(self.db, sql, values)?)
    }

    /// All rows of a result, each one JSON text.
    pub(crate) fn query_objects(&self, sql: &str, values: impl Bound) -> Result<Vec<Value>> {
        let texts = self.query_column::<String>(sql, values)?;
        let objects = texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<_, _>>();
        objects.map_err(|error| ErrorResponse::internal(&error))
    }

    /// Executes a statement and returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, values: impl Bound) -> Result<usize> {
        Ok(self.db.prepare_cached(sql)?.execute(values)?)
    }

    /// Sets one column of the row with this id.
    pub(crate) fn set_column(
        &self,
        table: &str,
        id: i64,
        column: &str,
        value: impl ToSql,
    ) -> Result<()> {
        let sql = format!("UPDATE {table} SET {column} = ?2 WHERE id = ?1");
        self.execute(&sql, params![id, value]).map(drop)
    }

    /// The time as the service writes it.
    pub(crate) fn time_text(&self) -> &str {
        self.time_text.get_or_init(|| clock::format_time(self.time))
    }

    /// The time at which an import or fork that starts now finishes.
    pub(crate) fn import_finish_time(&self) -> String {
        self.finish_time(self.service.profile.import_delay)
    }

    /// The time at which the service protects a default branch that is created now; `None` means
    /// immediately.
    pub(crate) fn protection_time(&self) -> Option<String> {
        let delay = self.service.profile.protection_delay;
        (!delay.is_zero()).then(|| self.finish_time(delay))
    }

    /// The time at which an operation that starts now finishes; it is always after this call.
    fn finish_time(&self, delay: Duration) -> String {
        let delay = delay.max(Duration::from_millis(1));
        clock::format_time(self.time.checked_add(delay).unwrap_or(self.time))
    }

    /// Starts a background operation of this duration. Returns false if an earlier one is still running.
    pub(crate) fn acquire_lease(&self, name: &str, duration: Duration) -> Result<bool> {
        let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2)
                   ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <= ?3";
        Ok(self.execute(sql, [name, &self.finish_time(duration), self.time_text()])? > 0)
    }

    /// The current day, to compare expiry dates with.
    pub(crate) fn today(&self) -> &str {
        // The text of a time starts with the day.
        self.time_text().get(..10).unwrap_or_default()
    }

    /// 128 random bits as hexadecimal digits.
    pub(crate) fn random_hex(&self) -> String {
        self.service.chance.next_hex()
    }

    pub(crate) fn tier(&self) -> AttributeTier {
        self.service.tier
    }

    pub(crate) fn release(&self) -> Release {
        self.service.profile.release
    }

    /// True if the release is `major.minor` or a later one.
    pub(crate) fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.release() >= Release::new(major, minor)
    }

    /// True if answers contain the day on which something was marked for deletion.
    pub(crate) fn shows_deletion(&self) -> bool {
        self.tier() >= AttributeTier::Premium || self.is_at_least(18, 0)
    }

    /// The tier and release that decide which attributes exist.
    pub(crate) fn edition(&self) -> Edition {
        Edition { tier: self.tier(), release: self.release() }
    }

    /// True if the operation is one of a group, according to its path.
    pub(crate) fn is_group_operation(&self) -> bool {
        self.target.starts_with("/api/v4/groups/")
    }

    pub(crate) fn segment(&self, name: &str) -> &str {
        self.segments.iter().find(|(segment, _)| *segment == name).map_or("", |(_, value)| value)
    }

    /// A segment that must be an integer.
    pub(crate) fn segment_id(&self, name: &str) -> Result<i64> {
        self.segment(name).parse().map_err(|_| ErrorResponse::invalid(name))
    }

    /// 412 if the call limits the last change of what it deletes, and there was a later one.
    pub(crate) fn check_unmodified(&self, changed_at: &str) -> Result<()> {
        let latest_change = self.headers.get(header::IF_UNMODIFIED_SINCE).and_then(|value| {
            let time = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
            Timestamp::try_from(time).ok().map(clock::format_time)
        });
        // The limit has whole seconds, so a change within its second is not later.
        refuse_if(latest_change.is_some_and(|bound| changed_at.get(..19) > bound.get(..19)), || {
            ErrorResponse::message(StatusCode::PRECONDITION_FAILED, "412 Precondition Failed")
        })
    }

    /// Removes a row, unless it was changed (`changed_at`) after the time in the call.
    pub(crate) fn remove(&self, row: &impl Stored, changed_at: &str) -> Result<Answer> {
        self.check_unmodified(changed_at)?;
        row.remove(self.db)?;
        Ok(Answer::no_content())
    }

    /// The user in `:user_id`, by id or name.
    pub(crate) fn segment_user(&self) -> Result<User> {
        User::by_reference(self.db, self.segment("user_id"))?
            .ok_or_else(|| ErrorResponse::not_found("User"))
    }

    /// The caller; 401 for anonymous ones.
    pub(crate) fn user(&self) -> Result<&User> {
        self.caller.as_ref().ok_or_else(ErrorResponse::unauthorized)
    }

    /// The caller, who must be an administrator.
    pub(crate) fn administrator(&self) -> Result<&User> {
        let user = self.user()?;
        if user.admin { Ok(user) } else { Err(ErrorResponse::forbidden()) }
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.caller.as_ref().is_some_and(|user| user.admin)
    }

    /// The rights with which attributes are set.
    pub(crate) fn rights<'a>(
        &'a self,
        level: i64,
        is_fork: bool,
        visibility: &'a str,
    ) -> Rights<'a> {
        Rights {
            edition: self.edition(),
            is_administrator: self.is_administrator(),
            is_owner: level >= OWNER,
            is_fork,
            visibility,
            profile: &self.service.profile,
            time: self.time,
        }
    }

    /// The caller's memberships of groups, read once.
    pub(crate) fn memberships(&self) -> Result<&Memberships> {
        if let Some(memberships) = self.memberships.get() {
            return Ok(memberships);
        }
        let memberships = match &self.caller {
            Some(user) => Memberships::read(self.db, user.id, self.today())?,
            None => Memberships::default(),
        };
        Ok(self.memberships.get_or_init(|| memberships))
    }

    /// Reads the caller's direct levels in all projects of a list at once.
    pub(crate) fn read_direct_levels(&self, projects: &[Project]) -> Result<()> {
        if let Some(user) = &self.caller {
            let ids = projects.iter().map(|project| project.id);
            // Only lists call this function, and a call reads only one list.
            let _ = self.list_levels.set(self.direct_levels(user.id, ids.collect())?);
        }
        Ok(())
    }

    /// The direct level of a user in each of some projects, if any.
    fn direct_levels(&self, user: i64, ids: Vec<i64>) -> Result<HashMap<i64, Option<i64>>> {
        let mut levels: HashMap<i64, Option<i64>> = ids.iter().map(|id| (*id, None)).collect();
        let sql = "SELECT project_id, access_level FROM members
             WHERE user_id = ?1 AND project_id IN (SELECT value FROM json_each(?2))
               AND state = 'active' AND (expires_at IS NULL OR expires_at >= ?3)";
        let ids = Value::from(ids).to_string();
        levels
            .extend(self.query_rows::<(i64, Option<i64>)>(sql, params![user, ids, self.today()])?);
        Ok(levels)
    }

    fn is_caller(&self, user: i64) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.id == user)
    }

    /// The direct level of a user in a project, if any.
    pub(crate) fn direct_level(&self, user: i64, project: i64) -> Result<Option<i64>> {
        let levels = self.list_levels.get().filter(|_| self.is_caller(user));
        // A list also shows other projects: the upstreams of forks.
        match levels.and_then(|levels| levels.get(&project)) {
            Some(level) => Ok(*level),
            None => Ok(self.direct_levels(user, vec![project])?.remove(&project).flatten()),
        }
    }

    /// The caller's level in a project, 0 for none. Administrators count as owners.
    pub(crate) fn level_in(&self, project: &Project) -> Result<i64> {
        match &self.caller {
            None => Ok(0),
            Some(user) if user.admin => Ok(OWNER),
            Some(user) => self.level_of(user.id, project),
        }
    }

    /// The level of a user in a project: as its owner or a member, or through groups, which are
    /// those above and the invited ones.
    pub(crate) fn level_of(&self, user: i64, project: &Project) -> Result<i64> {
        if project.namespace.owner_id == Some(user) {
            return Ok(OWNER);
        }
        let user_memberships;
        let memberships = if self.is_caller(user) {
            self.memberships()?
        } else {
            user_memberships = Memberships::read(self.db, user, self.today())?;
            &user_memberships
        };
        let direct_level = self.direct_level(user, project.id)?.unwrap_or(0);
        let best_level =
            direct_level.max(memberships.level_in_namespace(&project.namespace.traversal));
        if !project.shared {
            return Ok(best_level);
        }
        let sql = "SELECT s.access_level, n.traversal
             FROM shares s JOIN namespaces n ON n.id = s.invited_id
             WHERE s.project_id = ?1 AND (s.expires_at IS NULL OR s.expires_at >= ?2)";
        let invitations =
            self.query_rows::<(i64, String)>(sql, params![project.id, self.today()])?;
        let levels =
            invitations.iter().map(|(cap, group)| memberships.level_in_namespace(group).min(*cap));
        Ok(levels.fold(best_level, i64::max))
    }

    /// True if the caller needs no level to see objects with this visibility.
    fn is_open(&self, visibility: &str) -> bool {
        visibility == "public" || visibility == "internal" && self.caller.is_some()
    }

    /// True if the caller may see a project.
    pub(crate) fn sees(&self, project: &Project) -> Result<bool> {
        Ok(self.is_open(&project.visibility) || self.level_in(project)? >= GUEST)
    }

    /// A project by id or path that the caller may see; else 404.
    pub(crate) fn visible_project(&self, reference: &str) -> Result<Project> {
        match Project::by_reference(self.db, reference)? {
            Some(project) if self.sees(&project)? => Ok(project),
            Some(_) => Err(ErrorResponse::not_found("Project")),
            None => self.moved_project(reference),
        }
    }

    /// The answer for the former path of a project.
    fn moved_project(&self, path: &str) -> Result<Project> {
        let project = match Project::by_former_path(self.db, path)? {
            Some(project) if self.sees(&project)? => project,
            _ => return Err(ErrorResponse::not_found("Project")),
        };
        if self.service.profile.former_paths_answer {
            return Ok(project);
        }
        if self.is_write {
            return Err(ErrorResponse::message(
                StatusCode::METHOD_NOT_ALLOWED,
                "Non GET methods are not allowed for moved projects",
            ));
        }
        // `/api/v4/projects/OLD/rest?query`: the fourth segment becomes the id.
        let (route, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut segments: Vec<&str> = route.split('/').collect();
        let id = project.id.to_string();
        if let Some(segment) = segments.get_mut(4) {
            *segment = &id;
        }
        let mark = if query.is_empty() { "" } else { "?" };
        Err(ErrorResponse::redirect(format!(
            "{}{}{mark}{query}",
            self.base_url,
            segments.join("/")
        )))
    }

    /// True if the caller may use a feature with this access level. In a private project this needs
    /// a reporter.
    pub(crate) fn may_use(&self, project: &Project, access_level: &str) -> Result<bool> {
        let level = self.level_in(project)?;
        let is_open = project.visibility != "private";
        let attributes = project.attributes(self.db)?;
        Ok(match attributes.get(access_level).and_then(Value::as_str) {
            Some("disabled") => false,
            Some("private") => level >= REPORTER || is_open && level >= GUEST,
            _ => level >= REPORTER || is_open,
        })
    }

    /// True if the access levels of all these features of a project are `disabled`.
    pub(crate) fn are_features_off(&self, project: &Project, features: &[&str]) -> Result<bool> {
        let attributes = project.attributes(self.db)?;
        let mut levels = features.iter().map(|name| attributes.get(*name));
        Ok(levels.all(|level| level.is_some_and(|level| level == "disabled")))
    }

    /// The project of `:id`.
    pub(crate) fn project(&self) -> Result<Project> {
        self.visible_project(self.segment("id"))
    }

    /// The project of `:id`, in which the caller must have a level: 401, 404, 403 in this order.
    pub(crate) fn project_as(&self, level: i64) -> Result<Project> {
        self.user()?;
        self.project_with(level)
    }

    /// True if a project is archived, by itself or with a group above it.
    pub(crate) fn is_archived(&self, project: &Project) -> Result<bool> {
        Ok(project.archived || self.is_group_archived(&project.namespace)?)
    }

    /// True if a group is archived, by itself or with a group above it.
    pub(crate) fn is_group_archived(&self, group: &Namespace) -> Result<bool> {
        self.is_set_in_hierarchy(group, ARCHIVED, true)
    }

    /// True if a group, or one above it, sets a flag to this value.
    pub(crate) fn is_set_in_hierarchy(
        &self,
        group: &Namespace,
        name: &str,
        value: bool,
    ) -> Result<bool> {
        let group_ids: Vec<i64> = access::traversal_ids(&group.traversal).collect();
        let sql =
            "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id IN (SELECT value FROM json_each(?1))
                              AND json_extract(settings, '$.' || ?2) = ?3)";
        self.query_value(sql, params![Value::from(group_ids).to_string(), name, value])
    }

    /// 403 if the project is archived and archived projects refuse this route.
    pub(crate) fn check_open(&self, project: &Project) -> Result<()> {
        match self.closed_route {
            Some(closed) if self.is_archived(project)? => Err(closed.refusal()),
            _ => Ok(()),
        }
    }

    /// As [`Call::project_as`], but an anonymous caller counts as one without a level.
    pub(crate) fn project_with(&self, level: i64) -> Result<Project> {
        let project = self.project()?;
        refuse_if(self.level_in(&project)? < level, ErrorResponse::forbidden)?;
        self.check_open(&project).map(|()| project)
    }

    /// As [`Call::project_as`], for changes that archived projects accept, except in one dialect.
    pub(crate) fn writable_project_as(&self, level: i64) -> Result<Project> {
        let project = self.project_as(level)?;
        self.check_writable(&project)?;
        Ok(project)
    }

    /// 403 if the project is archived and archived projects refuse this route. In one dialect they refuse
    /// all routes.
    pub(crate) fn check_writable(&self, project: &Project) -> Result<()> {
        let is_read_only = project.archived && self.service.profile.archived_read_only;
        refuse_if(is_read_only, ErrorResponse::forbidden)?;
        self.check_open(project)
    }

    /// The answer for a feature above the tier.
    pub(crate) fn require_tier(&self, min_tier: AttributeTier) -> Result<()> {
        refuse_if(self.tier() < min_tier, || {
            let is_forbidden = self.service.profile.unlicensed_forbidden;
            if is_forbidden { ErrorResponse::forbidden() } else { ErrorResponse::hidden() }
        })
    }

    /// The answer for removing the last owner.
    pub(crate) fn last_owner_refusal(&self) -> ErrorResponse {
        if self.service.profile.last_owner_bad_request {
            return ErrorResponse::bad_request("the last owner cannot be removed");
        }
        ErrorResponse::forbidden()
    }

    /// The caller's level in a group, 0 for none. Administrators count as owners.
    pub(crate) fn level_in_group(&self, group: &Namespace) -> Result<i64> {
        match &self.caller {
            None => Ok(0),
            Some(user) if user.admin || group.owner_id == Some(user.id) => Ok(OWNER),
            Some(_) => Ok(self.memberships()?.level_in_namespace(&group.traversal)),
        }
    }

    /// True if the caller may see a group.
    pub(crate) fn sees_group(&self, group: &Namespace) -> Result<bool> {
        Ok(self.is_open(&group.visibility) || self.level_in_group(group)? > 0)
    }

    /// A group by id or path that the caller may see; else 404.
    pub(crate) fn visible_group(&self, reference: &str) -> Result<Namespace> {
        match Namespace::by_reference(self.db, reference)? {
            Some(group) if group.is_group() && self.sees_group(&group)? => Ok(group),
            _ => Err(ErrorResponse::not_found("Group")),
        }
    }

    /// The group of `:id`.
    pub(crate) fn group(&self) -> Result<Namespace> {
        self.visible_group(self.segment("id"))
    }

    /// The group of `:id`, in which the caller must have a level.
    pub(crate) fn group_as(&self, level: i64) -> Result<Namespace> {
        self.user()?;
        self.group_with(level)
    }

    /// As [`Self::group_as`], but an anonymous caller counts as one without a level.
    pub(crate) fn group_with(&self, level: i64) -> Result<Namespace> {
        let group = self.group()?;
        refuse_if(self.level_in_group(&group)? < level, ErrorResponse::forbidden).map(|()| group)
    }
}
