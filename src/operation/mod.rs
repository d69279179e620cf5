//! The table of operations of the service, and requests as values.
//!
//! There is one constant for each row, [`OPERATIONS`] is all of them, and a [`Parameter`] is
//! something that a request may say. The rows of plain collections are made from data
//! ([`collection`]).
//!
//! Every request that undrift sends names one row of this table: its id appears in the journal, in
//! errors and in counts, its path is a template that only this module fills in, and its type says
//! whether it reads or writes. A [`Request<Read>`] is all that a planning client accepts, so that
//! planning cannot write.
//!
//! A request is a value without IO. Its body may still hold secret references; they are resolved
//! when it is sent.

pub mod collection;
mod kept_keys;
mod parameter;
mod parameters;
mod pending;
mod table;

use std::{borrow::Cow, fmt, marker::PhantomData};

use crate::{
    field::{Route, Scope, Tier},
    planted::Bug,
    release::Release,
    text::encode,
    value::{Fields, Json, Object, Value},
};

pub use kept_keys::Wanted;
pub use parameter::{Parameter, Place, Type};
pub use pending::{created_at, id_of};
pub use table::*;

/// An HTTP method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or acts.
    Post,
    /// Edits.
    Put,
    /// Edits, with lists as differences.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The method as it is written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of the table. Two rows are equal if their ids are.
#[derive(Debug)]
pub struct Operation {
    /// The name that journal, counts and errors use, for example `variable-update`.
    pub id: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below `/api/v4`, for example `/projects/:id/variables/:key`.
    pub path: &'static str,
    /// What it does, in a few words.
    pub purpose: &'static str,
    /// Where it is described: `chapter, section` of the reference, or `supporting` for what the
    /// reference leaves out.
    pub source: &'static str,
    /// What a success brings.
    pub answer: Answer,
    /// What it takes, in lists that may be shared with others.
    pub parameters: &'static [&'static [Parameter]],
    /// The scope and the section of a manifest whose fields its body takes too, and as what kind of
    /// request. The kinds describe those fields.
    pub fields: Option<((Scope, &'static str), Route)>,
    /// Parameters of which at least one has to be there.
    pub one_of: &'static [&'static str],
    /// The lowest tier of the service that has it.
    pub tier: Tier,
    /// The release of the service that brought it.
    pub since: Option<Release>,
    /// Whether it is for administrators only.
    pub administrators: bool,
    /// What another sending of it would do.
    pub again: Again,
    /// Of a write: whether its answer shows the object as a read would, so that what it shows need
    /// not be read back.
    pub shows: bool,
    /// Of a write: whether the service answers with 304 where there is nothing to do, which is a
    /// success.
    pub may_be_done: bool,
    /// Of a delete: whether the service refuses it (412) if what it removes changed after a time that
    /// the request says (`If-Unmodified-Since`).
    pub conditional: bool,
    /// Of a list: whether it can also be read by keyset, behind an id instead of by page number.
    pub by_keyset: bool,
    /// How many requests a minute of one user a service that limits requests is known to answer,
    /// where it does not announce that.
    pub a_minute: Option<u32>,
    /// Whether the service removes what the caller may not see from a page after it cut the list
    /// into pages. A page may then be short, or empty, anywhere, so that such a list is never known
    /// to be whole.
    pub filtered_after_paging: bool,
}

/// What another sending of a request would do, after one whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Nothing: it reads.
    Reads,
    /// Nothing more: it says how things shall be.
    Same,
    /// It would be refused if the first was carried out: the service keeps what it creates unique.
    Refused,
    /// It would create a second object.
    Second,
    /// It would start something that must not start twice.
    Never,
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Operation {}

/// What the answer to a success holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// One object.
    One,
    /// A list, page by page.
    List,
    /// An object whose keys are data, such as the names of languages.
    Map,
    /// Nothing.
    Nothing,
    /// The reference does not say.
    Unsaid,
}

impl Operation {
    /// A row with nothing special about it.
    const fn new(
        id: &'static str,
        method: Method,
        path: &'static str,
        purpose: &'static str,
        source: &'static str,
        answer: Answer,
        parameters: &'static [&'static [Parameter]],
    ) -> Self {
        let (fields, one_of, tier, since, administrators): (_, &[_], _, _, _) =
            (None, &[], Tier::Free, None, false);
        let again = match method {
            Method::Get => Again::Reads,
            Method::Put | Method::Patch | Method::Delete => Again::Same,
            Method::Post => Again::Second,
        };
        // What a delete names may be absent already: a project that is no fork, for example.
        let may_be_done = matches!(method, Method::Delete);
        let (shows, conditional, by_keyset, filtered_after_paging) = (false, false, false, false);
        Self {
            id,
            method,
            path,
            purpose,
            source,
            answer,
            parameters,
            fields,
            one_of,
            tier,
            since,
            administrators,
            again,
            shows,
            may_be_done,
            conditional,
            by_keyset,
            a_minute: None,
            filtered_after_paging,
        }
    }

    /// Services that limit requests answer so many a minute.
    const fn at_most(self, a_minute: u32) -> Self {
        Self { a_minute: Some(a_minute), ..self }
    }

    /// Another sending does something else than with most operations of its method.
    const fn again(self, again: Again) -> Self {
        Self { again, ..self }
    }

    /// Its answer shows the object as a read would.
    const fn shows(self) -> Self {
        Self { shows: true, ..self }
    }

    /// It may have nothing to do, which is answered with 304.
    const fn may_be_done(self) -> Self {
        Self { may_be_done: true, ..self }
    }

    /// It can be refused if what it removes changed meanwhile.
    const fn conditional(self) -> Self {
        Self { conditional: true, ..self }
    }

    /// Its list can be read by keyset.
    const fn by_keyset(self) -> Self {
        Self { by_keyset: true, ..self }
    }

    const fn fields(self, section: &'static str, route: Route) -> Self {
        self.fields_of(Scope::Project, section, route)
    }

    const fn fields_of(self, scope: Scope, section: &'static str, route: Route) -> Self {
        Self { fields: Some(((scope, section), route)), ..self }
    }

    const fn one_of(self, names: &'static [&'static str]) -> Self {
        Self { one_of: names, ..self }
    }

    const fn premium(self) -> Self {
        Self { tier: Tier::Premium, ..self }
    }

    const fn since(self, major: u16, minor: u16) -> Self {
        Self { since: Some(Release::new(major, minor)), ..self }
    }

    const fn administrators(self) -> Self {
        Self { administrators: true, ..self }
    }

    /// The service filters its list after paging.
    const fn filtered_after_paging(self) -> Self {
        Self { filtered_after_paging: true, ..self }
    }
}

/// Marks an operation that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read;

/// Marks an operation that may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write;

/// A row of the table together with its effect, [`Read`] or [`Write`].
#[derive(Clone, Copy, Debug)]
pub struct Op<E> {
    row: &'static Operation,
    effect: PhantomData<E>,
}

impl<E: Copy> Op<E> {
    const fn new(row: &'static Operation) -> Self {
        Self { row, effect: PhantomData }
    }

    /// The row itself.
    pub const fn row(self) -> &'static Operation {
        self.row
    }

    /// A request for this operation without arguments.
    pub const fn request(self) -> Request<E> {
        Request {
            operation: self.row,
            arguments: Vec::new(),
            named: Vec::new(),
            is_pending: false,
            after: Vec::new(),
            renamed: Vec::new(),
            query: Vec::new(),
            body: Body::None,
            repeated: Sealed(Vec::new()),
            sensitive: Vec::new(),
            naming: Vec::new(),
            once: false,
            wanted: Wanted::All,
            effect: PhantomData,
        }
    }
}

/// An operation that is found by its name, with its effect.
#[derive(Clone, Copy, Debug)]
pub enum AnyOp {
    /// It changes nothing.
    Read(Op<Read>),
    /// It may change something.
    Write(Op<Write>),
}

impl AnyOp {
    /// The row itself.
    pub const fn row(self) -> &'static Operation {
        match self {
            Self::Read(op) => op.row,
            Self::Write(op) => op.row,
        }
    }

    /// `read` or `write`.
    pub const fn effect(self) -> &'static str {
        match self {
            Self::Read(_) => "read",
            Self::Write(_) => "write",
        }
    }
}

/// What a request carries. Its `Debug` shows names only.
#[derive(Clone, Default, PartialEq)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A JSON object.
    Json(Fields),
    /// A form with files: names with values, at least one of them a [`Value::File`].
    Multipart(Fields),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Json(fields) | Self::Multipart(fields) => {
                f.debug_set().entries(fields.keys()).finish()
            }
        }
    }
}

/// Live values, of which `Debug` shows the names only.
#[derive(Clone, PartialEq)]
struct Sealed(Vec<(String, Json)>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// A request not yet sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<E> {
    /// The row of the table that it is for.
    pub operation: &'static Operation,
    arguments: Vec<(&'static str, String)>,
    /// The arguments that name something by its path, each with the id that is sent for it, once it
    /// is known.
    named: Vec<(&'static str, Option<u64>)>,
    /// Whether `:id` stands for the container that its own step creates, and whose id is missing.
    is_pending: bool,
    /// The paths of what has to be created first and is named by its path.
    after: Vec<String>,
    /// Fixed segments of the path that this service calls otherwise.
    renamed: Vec<(&'static str, String)>,
    query: Vec<(Cow<'static, str>, String)>,
    /// What it carries.
    pub body: Body,
    /// Live values that the body repeats besides, because the service would reset what an edit
    /// leaves out. They go stale.
    repeated: Sealed,
    /// The fields of the body whose values no text may quote, even where they are plain.
    sensitive: Vec<String>,
    /// The fields of the body that name things by an id that is still missing.
    naming: Vec<String>,
    /// Whether a second sending may undo what comes after the first.
    once: bool,
    /// What is kept of the objects of the answer.
    wanted: Wanted,
    effect: PhantomData<E>,
}

impl<E> Request<E> {
    /// Fills in `:name` of the path template; `value` is percent-encoded when the path is built.
    #[must_use]
    pub fn arg(mut self, name: &'static str, value: impl ToString) -> Self {
        debug_assert!(
            self.operation.path.split('/').any(|s| s.strip_prefix(':') == Some(name)),
            "no :{name} in {}",
            self.operation.path
        );
        self.arguments.push((name, value.to_string()));
        self
    }

    /// Fills in `:name` of the path template with the `id` of what is at `path`; if that is missing,
    /// it is filled in when the request is sent.
    #[must_use]
    pub fn arg_of(mut self, name: &'static str, path: &str, id: Option<u64>) -> Self {
        self.named.push((name, id));
        self.arg(name, path)
    }

    /// Fills in `:id` of the path template with the `id` of the container at `path` that it is for. If
    /// that is missing, because its own step creates it, it is filled in when the request is sent.
    #[must_use]
    pub fn of_container(mut self, path: &str, id: Option<u64>) -> Self {
        match id {
            Some(id) => self.arg("id", id),
            None => {
                self.is_pending = true;
                self.arg("id", path)
            }
        }
    }

    /// Says that what is at `path`, which it names by that, has to be created first.
    #[must_use]
    pub fn after(mut self, path: &str) -> Self {
        self.after.push(path.to_owned());
        self
    }

    /// Calls the fixed segment `neutral` of the path, and what starts with it among the fields of
    /// the body, by `name`: the reference has neutral words for two hosts that services call by
    /// name (reference 1, 1).
    #[must_use]
    pub fn rename(mut self, neutral: &'static str, name: &str) -> Self {
        if let Body::Json(fields) | Body::Multipart(fields) = &mut self.body {
            let renamed = |field: &String| {
                field
                    .strip_prefix(neutral)
                    .filter(|rest| rest.starts_with('_'))
                    .map(|rest| format!("{name}{rest}"))
            };
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(field, value)| (renamed(&field).unwrap_or(field), value))
                .collect();
        }
        self.renamed.push((neutral, name.to_owned()));
        self
    }

    /// Whether the query has a parameter of this name.
    pub fn has_query(&self, name: &str) -> bool {
        self.query.iter().any(|(n, _)| n == name)
    }

    /// Adds a query parameter, or replaces it.
    #[must_use]
    pub fn query(mut self, name: impl Into<Cow<'static, str>>, value: impl ToString) -> Self {
        let (name, value) = (name.into(), value.to_string());
        match self.query.iter_mut().find(|(n, _)| *n == name) {
            Some(pair) => pair.1 = value,
            None => self.query.push((name, value)),
        }
        self
    }

    /// Carries `fields` as JSON, or as a form if one of them is a file.
    #[must_use]
    pub fn fields(mut self, fields: Fields) -> Self {
        let files = fields.values().any(|v| matches!(v, Value::File(_)));
        self.body = if files { Body::Multipart(fields) } else { Body::Json(fields) };
        self
    }

    /// Repeats live values, as they are there, in the body too; what [`fields`](Self::fields) says
    /// wins.
    #[must_use]
    pub fn repeating(mut self, live: Object) -> Self {
        self.repeated = Sealed(live.into_iter().collect());
        self
    }

    /// Keeps of the objects of the answer only what is `wanted`.
    #[must_use]
    pub fn keeping(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }

    /// Keeps `keys` of the objects of the answer too.
    #[must_use]
    pub fn keeping_also(self, keys: &[&'static str]) -> Self {
        Self { wanted: self.wanted.and(keys), ..self }
    }

    /// What is kept of the objects of the answer.
    pub const fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Keeps the values of these fields of the body out of every text, also where they are plain.
    /// Secrets are kept out anyway.
    #[must_use]
    pub fn sensitive(mut self, fields: impl IntoIterator<Item = String>) -> Self {
        self.sensitive.extend(fields);
        self
    }

    /// Whether no text may quote the value of this field.
    pub fn is_sensitive(&self, field: &str) -> bool {
        self.sensitive.iter().any(|name| name == field)
    }

    /// Says which fields of the body, as it is now, name things by their id: there, what [`id_of`] makes stands for
    /// an id that is filled in when the request is sent.
    #[must_use]
    pub fn naming(mut self, fields: impl IntoIterator<Item = String>) -> Self {
        let waits = |name: &String| {
            let value = self.body_fields().and_then(|body| body.get(name)?.plain());
            value.is_some_and(|json| !pending::paths(json).is_empty())
        };
        self.naming = fields.into_iter().filter(waits).collect();
        self
    }

    /// The paths of what has to be created before it can be sent.
    pub fn waits_for(&self) -> impl Iterator<Item = &str> {
        let named = self.naming.iter().filter_map(|name| self.body_fields()?.get(name)?.plain());
        let missing = self.named.iter().filter(|(_, id)| id.is_none());
        let arguments = missing.filter_map(|(name, _)| self.argument(name));
        let after = self.after.iter().map(String::as_str);
        named.flat_map(pending::paths).chain(arguments).chain(after)
    }

    /// What `:name` of the path stands for.
    fn argument(&self, name: &str) -> Option<&str> {
        let found = self.arguments.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// How a request without a body is sent by hand.
    pub fn as_command(&self) -> String {
        let arguments = self.arguments.iter().map(|(name, value)| format!(" {name}={value}"));
        format!("undrift call {}{}", self.operation.id, arguments.collect::<String>())
    }

    /// The same with the ids that it waits for: `own` is that of its container. What is sent to a
    /// container goes by the id: another one may have the path by now.
    ///
    /// # Errors
    /// The path of something whose id is not known.
    pub fn with_ids(
        mut self,
        own: Option<u64>,
        id: impl Fn(&str) -> Option<u64>,
    ) -> Result<Self, String> {
        if self.is_pending {
            let path = self.argument("id").unwrap_or_default().to_owned();
            self.named.push(("id", Some(own.ok_or(path)?)));
            self.is_pending = false;
        }
        for (name, known) in self.named.iter_mut().filter(|(_, known)| known.is_none()) {
            let path = self.arguments.iter().find(|(own, _)| own == name);
            let path = path.map(|(_, path)| path.as_str()).unwrap_or_default();
            *known = Some(id(path).ok_or_else(|| path.to_owned())?);
        }
        if let Body::Json(fields) | Body::Multipart(fields) = &mut self.body {
            for name in &self.naming {
                if let Some(Value::Plain(json)) = fields.get_mut(name) {
                    pending::fill_in(json, &id)?;
                }
            }
        }
        if self.goes_by_path() { Err(self.path()) } else { Ok(self) }
    }

    /// Whether it goes to a group or project by something else than its id.
    pub fn goes_by_path(&self) -> bool {
        let path = self.operation.path;
        let goes = path.starts_with("/projects/:id") || path.starts_with("/groups/:id");
        let own = || self.path().split('/').nth(2).is_some_and(|id| id.parse::<u64>().is_ok());
        goes && !own()
    }

    /// Whether it is right only as long as what it was built from is there: it repeats live values,
    /// or would create a second object beside one that somebody else created meanwhile.
    pub fn goes_stale(&self) -> bool {
        self.again() == Again::Second || self.repeated().next().is_some()
    }

    /// Keeps a second sending off for as long as the first can arrive: what it removes is added
    /// anew in between, and would be removed again.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// What another sending would do.
    pub fn again(&self) -> Again {
        if self.once && !Bug::RemoveTwice.is_planted() {
            Again::Second
        } else {
            self.operation.again
        }
    }

    /// The live values that it repeats, without those that its fields replace.
    pub fn repeated(&self) -> impl Iterator<Item = (&str, &Json)> {
        let replaced =
            |name: &str| self.body_fields().is_some_and(|fields| fields.contains_key(name));
        self.repeated
            .0
            .iter()
            .filter(move |(name, _)| !replaced(name))
            .map(|(name, value)| (name.as_str(), value))
    }

    /// The names of everything that its body says.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.body_fields().into_iter().flat_map(Fields::keys);
        fields.map(String::as_str).chain(self.repeated().map(|(name, _)| name))
    }

    /// The fields that it carries.
    pub const fn body_fields(&self) -> Option<&Fields> {
        match &self.body {
            Body::None => None,
            Body::Json(fields) | Body::Multipart(fields) => Some(fields),
        }
    }

    /// The path below `/api/v4` with every argument in place, without the query.
    pub fn path(&self) -> String {
        self.path_by(|name| self.named.iter().find(|(own, _)| *own == name)?.1)
    }

    /// The path, with the ids of things that are named by their path where `id` tells them.
    fn path_by(&self, id: impl Fn(&str) -> Option<u64>) -> String {
        let segments = self.operation.path.split('/').map(|segment| {
            let Some(name) = segment.strip_prefix(':') else {
                let renamed = self.renamed.iter().find(|(neutral, _)| *neutral == segment);
                return renamed
                    .map_or_else(|| segment.to_owned(), |(_, name)| encode(name).to_string());
            };
            match (id(name), self.argument(name)) {
                (Some(id), _) => id.to_string(),
                (None, Some(value)) => encode(value).to_string(),
                (None, None) => segment.to_owned(),
            }
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The path and the query, percent-encoded.
    pub fn target(&self) -> String {
        self.path() + &self.query_text()
    }

    /// The same as plans show it, with paths instead of ids that only the sending of a request needs:
    /// they are the same before and after something is created.
    pub fn shown_target(&self) -> String {
        self.path_by(|_| None) + &self.query_text()
    }

    fn query_text(&self) -> String {
        let mut text = String::new();
        for (i, (name, value)) in self.query.iter().enumerate() {
            text.push(if i == 0 { '?' } else { '&' });
            text += &format!("{}={}", encode(name), encode(value));
        }
        text
    }
}

/// The method and the path, as errors and plans show a request: never its body.
impl<E> fmt::Display for Request<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation.method, self.target())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neutral_word_is_replaced_in_the_path_and_in_fields() {
        let fields = ["extgit_hostname", "extgitted", "new_name"]
            .map(|name| (name.to_owned(), Value::from("extgit")));
        let request = IMPORT_EXTGIT.request().fields(fields.into()).rename("extgit", "git host");
        assert_eq!(request.path(), "/import/git%20host");
        let names: Vec<_> = request.body_fields().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["extgitted", "git host_hostname", "new_name"]);
        assert!(
            request.body_fields().unwrap().values().all(|value| *value == Value::from("extgit"))
        );
        let other = PROJECT_GET.request().arg("id", "extgit").rename("extgit", "x");
        assert_eq!(other.path(), "/projects/extgit");
    }

    #[test]
    fn a_path_argument_is_one_segment_whatever_it_holds() {
        let request = VARIABLE_UPDATE
            .request()
            .arg("id", "acme/my.shop")
            .arg("key", "A/B?c#d é")
            .query("filter[environment_scope]", "prod/*");
        assert_eq!(
            request.target(),
            "/projects/acme%2Fmy.shop/variables/A%2FB%3Fc%23d%20%C3%A9?filter%5Benvironment_scope%5D=prod%2F%2A"
        );
    }

    #[test]
    fn every_operation_says_what_another_sending_would_do() {
        let rows = |again, method| {
            let rows = OPERATIONS
                .iter()
                .map(|op| op.row())
                .filter(|row| row.method == method && row.again == again);
            rows.map(|row| row.id).collect::<Vec<_>>()
        };
        let all = |method| OPERATIONS.iter().filter(|op| op.row().method == method).count();
        assert_eq!(rows(Again::Reads, Method::Get).len(), all(Method::Get));
        assert_eq!(rows(Again::Refused, Method::Put), ["project-transfer"]);
        assert_eq!(rows(Again::Same, Method::Put).len(), all(Method::Put) - 1);
        assert_eq!(rows(Again::Refused, Method::Patch).len(), all(Method::Patch));
        assert_eq!(rows(Again::Never, Method::Delete), ["project-delete", "group-delete"]);
        assert_eq!(rows(Again::Same, Method::Delete).len(), all(Method::Delete) - 2);
        let posts = [
            (
                Again::Same,
                &[
                    "group-member-override",
                    "group-member-approve-all",
                    "project-star",
                    "project-unstar",
                    "project-archive",
                    "project-unarchive",
                    "project-import-members",
                    "approvals-edit",
                    "pipeline-schedule-take",
                ][..],
            ),
            (
                Again::Never,
                &[
                    "import-extgit",
                    "import-extgit-cancel",
                    "import-extgit-gists",
                    "import-extserver",
                    "project-fork",
                    "project-restore",
                    "project-housekeeping",
                    "group-restore",
                ],
            ),
            (
                Again::Refused,
                &[
                    "variable-create",
                    "group-variable-create",
                    "group-member-add",
                    "project-member-add",
                    "project-create",
                    "project-create-for-user",
                    "project-share",
                    "fork-relation-create",
                    "push-rule-add",
                    "protected-branch-add",
                    "protected-tag-add",
                    "approval-rule-add",
                    "group-create",
                    "group-transfer",
                    "group-share",
                    "group-push-rule-add",
                ],
            ),
            (
                Again::Second,
                &[
                    "project-upload",
                    "hook-add",
                    "pipeline-schedule-create",
                    "merge-request-note-create",
                    "group-hook-add",
                ],
            ),
        ];
        for (again, ids) in posts {
            assert_eq!(rows(again, Method::Post), ids, "{again:?}");
        }
    }

    /// Held against what the service is known to answer; what starts something in the background,
    /// or answers with a status only, is not among them.
    #[test]
    fn these_writes_show_what_they_wrote() {
        let rows = || OPERATIONS.iter().map(|op| op.row());
        let showing: Vec<_> = rows().filter(|row| row.shows).map(|row| row.id).collect();
        let expected = [
            "variable-create",
            "variable-update",
            "group-variable-create",
            "group-variable-update",
            "group-member-add",
            "group-member-edit",
            "project-member-add",
            "project-member-edit",
            "project-create",
            "project-create-for-user",
            "project-edit",
            "project-transfer",
            "project-star",
            "project-unstar",
            "project-archive",
            "project-unarchive",
            "hook-add",
            "hook-edit",
            "push-rule-add",
            "push-rule-edit",
            "protected-branch-add",
            "protected-branch-edit",
            "protected-tag-add",
            "approvals-edit",
            "approval-rule-add",
            "approval-rule-edit",
            "pipeline-schedule-create",
            "pipeline-schedule-edit",
            "merge-request-note-create",
            "merge-request-note-edit",
            "group-create",
            "group-edit",
            "group-transfer",
            "group-hook-add",
            "group-hook-edit",
            "group-push-rule-add",
            "group-push-rule-edit",
        ];
        assert_eq!(showing, expected);
        assert!(
            rows()
                .filter(|row| row.shows)
                .all(|row| matches!(row.method, Method::Post | Method::Put | Method::Patch))
        );
    }

    #[test]
    fn the_debug_text_of_a_request_shows_names_only() {
        let live = serde_json::json!({"value": "canary", "key": "canary"});
        let request =
            VARIABLE_UPDATE.request().fields([("key".to_owned(), Value::from("canary"))].into());
        let request = request.repeating(live.as_object().unwrap().clone());
        let shown = format!("{request:?}");
        assert!(
            shown.contains(r#"{"key"}"#)
                && shown.contains(r#"{"value", "key"}"#)
                && !shown.contains("canary"),
            "{shown}"
        );
        assert_eq!(request.names().collect::<Vec<_>>(), ["key", "value"]);
        assert_eq!(
            (request.repeated().count(), VARIABLE_LIST.request().repeated().count()),
            (1, 0)
        );
    }

    #[test]
    fn a_query_parameter_is_sent_once() {
        assert_eq!(
            PROJECT_LIST.request().query("page", 1).query("page", 2).target(),
            "/projects?page=2"
        );
    }
}
