//! The data that a handler gets for a call: a database transaction, the caller, the parameters.

mod permissions;

use std::cell::OnceCell;
use std::ops::Deref;

use crate::prelude::*;
use rusqlite::Params as Bound;
use rusqlite::types::FromSql;

/// The name of the setting that is true in an archived group.
pub(crate) const ARCHIVED: &str = "archived";

/// The names and percent-decoded values of the named segments of a path.
pub(crate) type Segments = Vec<(&'static str, String)>;

/// The parsed request of a call.
#[derive(Default)]
pub(crate) struct ParsedRequest {
    pub(crate) method: Method,
    /// True if the operation changes data.
    pub(crate) is_write: bool,
    /// The rule by which archived projects refuse this operation; `None` if they accept it.
    pub(crate) archive_refusal: Option<ArchiveRefusal>,
    pub(crate) params: Params,
    pub(crate) segments: Segments,
    /// The scheme and host that the client used, for URLs in responses.
    pub(crate) base_url: String,
    /// The path and query that the client sent, for the `Link` header.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
}

impl ParsedRequest {
    /// A POST with these parameters.
    pub(crate) fn post(params: Params) -> Self {
        Self { method: Method::POST, is_write: true, params, ..Self::default() }
    }
}

/// A request gives direct access to its parameters.
impl Deref for ParsedRequest {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.params
    }
}

impl Deref for Call<'_> {
    type Target = ParsedRequest;

    fn deref(&self) -> &ParsedRequest {
        &self.request
    }
}

/// A call of a handler.
pub(crate) struct Call<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) service: &'a ServiceState,
    pub(crate) caller: Option<User>,
    pub(crate) token: Option<AccessToken>,
    pub(crate) request: ParsedRequest,
    pub(crate) time: Timestamp,
    pub(crate) time_text: OnceCell<String>,
    pub(crate) memberships: OnceCell<Memberships>,
    /// The caller's direct levels in the projects of a list, by project id; read by one query.
    pub(crate) direct_level_cache: OnceCell<HashMap<i64, Option<i64>>>,
}

impl<'a> Call<'a> {
    /// A call of `caller` at `time`.
    pub(crate) fn new(
        service: &'a ServiceState,
        db: &'a Connection,
        (caller, token): (Option<User>, Option<AccessToken>),
        time: Timestamp,
        request: ParsedRequest,
    ) -> Self {
        let (time_text, memberships, direct_level_cache) = Default::default();
        Self {
            db,
            service,
            caller,
            token,
            request,
            time,
            time_text,
            memberships,
            direct_level_cache,
        }
    }
}

impl Call<'_> {
    /// The first column of the only row of a result.
    pub(crate) fn query_value<T: FromSql>(&self, sql: &str, values: impl Bound) -> Result<T> {
        Ok(self.db.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
    }

    /// The first column of the row of a result; `None` if the result has no row.
    pub(crate) fn query_optional_value<T: FromSql>(
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
        Ok(query_rows(self.db, sql, values)?)
    }

    /// The JSON values of all rows of a result. Each row has one JSON text.
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

    /// The time of the call in the format of responses.
    pub(crate) fn time_text(&self) -> &str {
        self.time_text.get_or_init(|| clock::format_time(self.time))
    }

    /// The time at which an import or fork that starts now finishes.
    pub(crate) fn import_finish_time(&self) -> String {
        self.finish_time(self.profile().import_delay)
    }

    /// The time at which the service protects a default branch that is created now; `None` means
    /// immediately.
    pub(crate) fn protection_time(&self) -> Option<String> {
        let delay = self.profile().protection_delay;
        (!delay.is_zero()).then(|| self.finish_time(delay))
    }

    /// The time at which an operation that starts now finishes. The result is always later than the
    /// time of this call.
    fn finish_time(&self, delay: Duration) -> String {
        let delay = delay.max(Duration::from_millis(1));
        clock::format_time(self.time.checked_add(delay).unwrap_or(self.time))
    }

    /// Starts a background operation of this duration. Returns false if an earlier operation with
    /// this name is still running.
    pub(crate) fn acquire_lease(&self, name: &str, duration: Duration) -> Result<bool> {
        let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2)
                   ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <= ?3";
        Ok(self.execute(sql, [name, &self.finish_time(duration), self.time_text()])? > 0)
    }

    /// The current day, which is compared with expiry dates.
    pub(crate) fn today(&self) -> &str {
        // The text of a time starts with the day.
        self.time_text().get(..10).unwrap_or_default()
    }

    /// 128 random bits as hexadecimal digits.
    pub(crate) fn random_hex(&self) -> String {
        self.service.options.random.next_hex()
    }

    pub(crate) fn tier(&self) -> ServiceTier {
        self.service.tier
    }

    /// True if the licence is Premium or a higher licence.
    pub(crate) fn is_premium(&self) -> bool {
        self.tier() >= ServiceTier::Premium
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.service.options.profile
    }

    pub(crate) fn release(&self) -> Release {
        self.profile().release
    }

    /// True if the release is [`OBSERVED_RELEASE`] or a later one.
    pub(crate) fn is_observed_release_or_later(&self) -> bool {
        self.release() >= OBSERVED_RELEASE
    }

    /// True if the release is `major.minor` or a later one.
    pub(crate) fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.release() >= Release::new(major, minor)
    }

    /// True if responses contain the day on which an object was marked for deletion.
    pub(crate) fn shows_deletion_day(&self) -> bool {
        self.is_premium() || self.is_at_least(18, 0)
    }

    /// The tier and release that decide which attributes exist.
    pub(crate) fn edition(&self) -> Edition {
        Edition { tier: self.tier(), release: self.release() }
    }

    /// True if the path of the operation is below `/groups`.
    pub(crate) fn is_group_operation(&self) -> bool {
        self.target.starts_with("/api/v4/groups/")
    }

    pub(crate) fn segment(&self, name: &str) -> &str {
        self.segments.iter().find(|(segment, _)| *segment == name).map_or("", |(_, value)| value)
    }

    /// The segment `name` as an integer. Fails with 400 if the segment is not an integer.
    pub(crate) fn segment_id(&self, name: &str) -> Result<i64> {
        self.segment(name).parse().map_err(|_| ErrorResponse::invalid_parameter(name))
    }

    /// Fails with 412 if the object was changed after the time in the call's `If-Unmodified-Since`.
    pub(crate) fn check_unmodified(&self, changed_at: &str) -> Result<()> {
        let unmodified_since = self.headers.get(header::IF_UNMODIFIED_SINCE).and_then(|value| {
            let time = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
            Timestamp::try_from(time).ok().map(clock::format_time)
        });
        // The header has only whole seconds. A change within the same second does not count as
        // later.
        let is_later = unmodified_since.is_some_and(|limit| changed_at.get(..19) > limit.get(..19));
        let text = "412 Precondition Failed";
        refuse_if(is_later, || ErrorResponse::message(StatusCode::PRECONDITION_FAILED, text))
    }

    /// Removes a row. Fails with 412 if `changed_at` is after the time in `If-Unmodified-Since`.
    pub(crate) fn remove(&self, row: &impl Stored, changed_at: &str) -> Result<Answer> {
        self.check_unmodified(changed_at)?;
        row.remove(self.db)?;
        Ok(Answer::no_content())
    }

    /// The user that `:user_id` in the path names by id or name; 404 for an unknown user.
    pub(crate) fn segment_user(&self) -> Result<User> {
        User::find_by_reference(self.db, self.segment("user_id"))?.or_not_found("User")
    }

    /// The caller; 401 for anonymous callers.
    pub(crate) fn require_user(&self) -> Result<&User> {
        self.caller.as_ref().ok_or_else(ErrorResponse::unauthorized)
    }

    /// The caller; 401 for anonymous callers, and 403 for callers who are not administrators.
    pub(crate) fn require_administrator(&self) -> Result<&User> {
        let user = self.require_user()?;
        if user.admin { Ok(user) } else { Err(ErrorResponse::forbidden()) }
    }

    pub(crate) fn is_administrator(&self) -> bool {
        self.caller.as_ref().is_some_and(|user| user.admin)
    }
}
