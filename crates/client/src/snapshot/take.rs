//! Takes a snapshot: a transport that asks the service for what the snapshot lacks, stores the kept
//! part of the answer, and answers from that.
//!
//! So a plan made through it equals one from the snapshot, and everything it asks is in the
//! snapshot. [`Recorder::widen`] adds what this plan did not need but one of other manifests may.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};

use super::{
    Snapshot, SnapshotHeader,
    contents::{self, ObjectRow, PackedJson, ReadFailure, Recorded, SnapshotContents},
    offline::{refusal, reply, unknown},
    question::{Query, QuerySubject},
    reduce::{Literals, Reducer, placed},
};
use crate::{
    address::group_of,
    api::{
        ApiError, ReadClient, RequestPhase, Result, SendError, Transport, TransportError,
        WireRequest, WireResponse,
    },
    catalogue,
    cause::Cause,
    desired::Desired,
    digest::DigestKey,
    field::Scope,
    kind::{ReadSource, Section},
    lock,
    observe::{is_fatal, list_below, outermost},
    operation::{self, Method, Op, Read, Request, ResponseBody},
    page::{Complete, Pager, Rows},
    secret::Secrets,
    value::{Json, Object},
};

/// The maximum number of pages of users, or of namespaces, that are read to know all of them.
const FEW_PAGES: u64 = 100;
/// How many requests run in parallel.
const AT_ONCE: usize = 8;

/// A snapshot that is being taken.
#[derive(Debug)]
pub struct Recorder {
    client: ReadClient,
    head: SnapshotHeader,
    reducer: Mutex<Arc<Reducer>>,
    contents: Mutex<SnapshotContents>,
}

impl Transport for Recorder {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(self.ask(request))
    }
}

impl Recorder {
    /// Takes a snapshot with `client`; `head` names the service and the time. Values in `secrets`
    /// are removed, and secret values are kept as digests under `key`.
    pub fn new(
        client: ReadClient,
        head: SnapshotHeader,
        secrets: Arc<Secrets>,
        key: Option<DigestKey>,
    ) -> Self {
        let head = SnapshotHeader { key: key.as_ref().map(DigestKey::id), ..head };
        let reducer = Reducer { literals: Literals::default(), secrets, key };
        Self { client, head, reducer: Mutex::new(Arc::new(reducer)), contents: Mutex::default() }
    }

    /// Uses the present declarations.
    pub fn declare(&self, desired: &Desired) {
        let mut reducer = lock(&self.reducer);
        let (secrets, key) = (Arc::clone(&reducer.secrets), reducer.key.clone());
        *reducer = Arc::new(Reducer { literals: Literals::collect(desired), secrets, key });
    }

    /// The snapshot as taken so far.
    pub fn finish(&self) -> Snapshot {
        Snapshot { head: self.head.clone(), contents: std::mem::take(&mut *self.contents()) }
    }

    /// The client that asks the service.
    pub const fn client(&self) -> &ReadClient {
        &self.client
    }

    fn contents(&self) -> MutexGuard<'_, SnapshotContents> {
        lock(&self.contents)
    }

    fn reducer(&self) -> Arc<Reducer> {
        Arc::clone(&lock(&self.reducer))
    }

    async fn ask(&self, request: WireRequest) -> Result<WireResponse, SendError> {
        let query = Query::read(&request.target).filter(|_| request.method == Method::Get);
        let Some(query) = query else { return Err(unknown("a snapshot has no such thing")) };
        if let Err(error) = self.fetch(&query).await {
            if !error.is_unauthorized() {
                return Err(SendError::new(
                    RequestPhase::NotSent,
                    TransportError::Offline,
                    &Cause::from(&error).to_string(),
                ));
            }
            // The run is over: the calling client must know, and stop.
            let failed = ReadFailure::because(error.message().unwrap_or_default().to_owned());
            return Ok(refusal(401, &failed, &self.head));
        }
        let answer = self.contents().answer(&query);
        reply(&query, answer, &self.head, |why| {
            why.unwrap_or("the service did not tell").to_owned()
        })
    }

    /// Asks the service, unless the answer is known.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too. Any other failure is stored.
    async fn fetch(&self, query: &Query) -> Result<()> {
        let subject = query.subject();
        let is_recorded = {
            let contents = self.contents();
            match (contents.answer(query), &subject) {
                // A list lacks what was renamed; only the service redirects the old path.
                (Some(Err(_)), QuerySubject::Object(scope)) => {
                    contents.missing.contains_key(&(*scope, query.container().to_lowercase()))
                }
                (answer, _) => answer.is_some(),
            }
        };
        match subject {
            _ if is_recorded => Ok(()),
            QuerySubject::Object(scope) => self.object(scope, query).await,
            QuerySubject::Roster(scope, root) => self.roster(scope, root, query).await,
            QuerySubject::User(name) => self.user(name, query).await,
            QuerySubject::Other => self.other(query).await,
        }
    }

    async fn fetch_request(&self, request: Request<Read>) -> Result<()> {
        let Some(query) = Query::read(&request.target()) else { return Ok(()) };
        self.fetch(&query).await
    }

    async fn object(&self, scope: Scope, query: &Query) -> Result<()> {
        let itself = catalogue::lookup(scope);
        let request = query.request().keeping(self.reducer().wanted(scope));
        let at = query.container();
        match self.client.get_object(request, &["id", itself.path]).await {
            Ok(answer) => self.add(scope, &answer.object().cloned().unwrap_or_default(), Some(at)),
            Err(error) => {
                let failed = failed(error)?;
                self.contents().missing.insert((scope, at.to_lowercase()), failed);
            }
        }
        Ok(())
    }

    /// Adds the object `raw` that was requested `at` a path or id, or is a row of a list; records
    /// why not, if it is not kept.
    fn add(&self, scope: Scope, raw: &Object, at: Option<&str>) {
        let reduced = self.reducer().object(scope, raw);
        let mut contents = self.contents();
        match reduced {
            Ok(reduced) => {
                let row = ObjectRow::new(scope, &reduced, at.is_some());
                row.into_iter().for_each(|row| contents.add(row, at));
            }
            Err(why) => {
                let at = at.unwrap_or_else(|| catalogue::lookup(scope).path_in(raw)).to_lowercase();
                contents.missing.insert((scope, at), ReadFailure::because(why));
            }
        }
    }

    async fn roster(&self, scope: Scope, root: &str, query: &Query) -> Result<()> {
        let (itself, _) = catalogue::container(scope);
        let request = query.request().query("order_by", "id").query("sort", "asc");
        let request = match scope {
            Scope::Group => request,
            Scope::Project => request.query("include_subgroups", true),
        };
        let request = request.keeping(self.reducer().wanted(scope));
        let roster = match self.client.list_rows(request, itself.home.rows).await {
            Ok(rows) => {
                rows.iter().for_each(|row| self.add(scope, row, None));
                Ok(rows.iter().filter_map(|row| row.get("id")?.as_u64()).collect())
            }
            Err(error) => Err(failed(error)?),
        };
        let mut contents = self.contents();
        let root = contents.roster_key(root);
        contents.rosters.insert((scope, root), roster);
        Ok(())
    }

    async fn user(&self, name: &str, query: &Query) -> Result<()> {
        match self.client.get(query.request()).await {
            Ok(answer) => {
                let key = name.to_lowercase();
                let mut users = answer.body.as_array().into_iter().flatten().filter_map(user);
                let found_user = users.find(|(username, _)| *username == key);
                self.contents().users.insert(key, found_user.and_then(|(_, user)| user));
            }
            Err(error) => {
                let failed = Recorded::Failed(failed(error)?);
                self.contents().answers.insert(query.question.clone(), failed);
            }
        }
        Ok(())
    }

    async fn other(&self, query: &Query) -> Result<()> {
        let (path, reducer) = (self.contents().path_of(query), self.reducer());
        let reduced = match query.op.row().answer {
            ResponseBody::List => match self.client.list(query.request()).await {
                Ok(rows) => reducer
                    .list(query.op, &path, &rows.map(|row| placed(query, row)))
                    .map(|rows| Recorded::Entries(rows.iter().map(PackedJson::new).collect())),
                Err(error) => Ok(Recorded::Failed(failed(error)?)),
            },
            _ => match self.client.get_optional(query.request(), &[]).await {
                Ok(answer) => {
                    let one = answer.as_ref().and_then(|answer| answer.object());
                    let one = one.map(|raw| placed(query, raw.clone()));
                    let one = one.map(|raw| reducer.one(query.op, &path, &raw)).transpose();
                    one.map(Recorded::one)
                }
                Err(error) => Ok(Recorded::Failed(failed(error)?)),
            },
        };
        let reduced = reduced.unwrap_or_else(|why| Recorded::Failed(ReadFailure::because(why)));
        let mut contents = self.contents();
        if let Recorded::Entries(entries) = &reduced {
            // Every member is a user.
            for (username, user) in entries.iter().filter_map(|entry| user(&entry.json())) {
                contents.users.entry(username).or_insert(user);
            }
        }
        let key = contents.key(query);
        contents.answers.insert(key, reduced);
        Ok(())
    }

    /// Reads what plans of other manifests may need: what exists below managed groups, their
    /// members, and the users. Call it before planning, so that the plan finds more in lists.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn widen(&self, desired: &Desired) -> Result<()> {
        self.fetch_request(operation::CURRENT_USER.request()).await?;
        self.fetch_request(operation::VERSION_GET.request()).await?;
        let groups = managed(desired);
        for root in outermost(&groups) {
            self.everything_below(&root).await?;
        }
        if self.contents().sees_all() {
            let list = operation::GROUP_LIST.request().query("top_level_only", true);
            self.fetch_request(list.query("all_available", true)).await?;
        }
        self.namespaces().await?;
        self.everybody().await?;
        let groups: BTreeSet<_> = {
            let contents = self.contents();
            let rosters = contents.rosters.iter();
            let below = rosters.filter(|((of, root), _)| *of == Scope::Group && !root.is_empty());
            let below = below.flat_map(|(_, ids)| ids.iter().flatten().copied());
            let managed = groups.iter().filter_map(|group| contents.id(Scope::Group, group));
            below.chain(managed).collect()
        };
        let members = operation::GROUP_MEMBER_LIST_ALL;
        let members = groups.iter().map(|group| members.request().arg("id", group));
        self.fetch_all(members.collect(), || {}).await?;
        let namespaces: Vec<_> = {
            let contents = self.contents();
            let groups = groups.iter().filter_map(|id| contents.objects.get(&(Scope::Group, *id)));
            groups.map(|group| operation::NAMESPACE_GET.request().arg("id", &group.path)).collect()
        };
        self.fetch_all(namespaces, || {}).await
    }

    /// Reads what [`Self::sections`] returned, and calls `each` after each answer. A section that is
    /// refused here is not declared yet, so the snapshot is still complete.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn fetch_all(&self, requests: Vec<Request<Read>>, each: impl Fn()) -> Result<()> {
        let fetches = requests.into_iter().map(|request| self.fetch_request(request));
        let mut fetches = stream::iter(fetches).buffer_unordered(AT_ONCE);
        while let Some(fetched) = fetches.next().await {
            fetched?;
            each();
        }
        Ok(())
    }

    /// The requests that could not be read, with reasons.
    pub fn incomplete(&self) -> Vec<(String, String)> {
        self.contents().incomplete().map(|(what, why)| (what, why.to_string())).collect()
    }

    /// Reads the group at `root` and everything below it. Also checks whether rows have all fields
    /// of the object; if not, groups are read one by one.
    async fn everything_below(&self, root: &str) -> Result<()> {
        self.fetch_request((catalogue::lookup(Scope::Group).get)(root)).await?;
        if self.contents().id(Scope::Group, root).is_none() {
            return Ok(());
        }
        for scope in Scope::ALL {
            self.fetch_request(list_below(scope).arg("id", root)).await?;
        }
        for scope in Scope::ALL {
            let get = catalogue::lookup(scope).get;
            let rows: Vec<_> = {
                let contents = self.contents();
                let rows = contents.objects.range((scope, 0)..=(scope, u64::MAX));
                let rows = rows.filter(|(_, thing)| !thing.by_itself);
                rows.map(|((_, id), thing)| (*id, thing.clone())).collect()
            };
            let Some((id, row)) = rows.first() else { continue };
            if let Some(query) = Query::read(&get(&id.to_string()).target()) {
                self.object(scope, &query).await?;
            }
            let has_whole_rows = {
                let mut contents = self.contents();
                let whole = contents.objects.get(&(scope, *id)).filter(|whole| whole.by_itself);
                let is_whole = whole.is_some_and(|whole| keys(whole).is_subset(&keys(row)));
                let has_whole_rows = contents.whole_rows.entry(scope).or_insert(true);
                *has_whole_rows &= is_whole;
                *has_whole_rows
            };
            if scope == Scope::Group && !has_whole_rows {
                let each = rows.iter().skip(1).map(|(id, _)| get(&id.to_string()));
                self.fetch_all(each.collect(), || {}).await?;
            }
        }
        Ok(())
    }

    /// Reads all namespaces, if there are not too many. One that is not in the list may still
    /// exist.
    async fn namespaces(&self) -> Result<()> {
        let Some(all) = self.few(operation::NAMESPACE_FIND, &["full_path"]).await? else {
            return Ok(());
        };
        for raw in all.iter() {
            let path = raw.get("full_path").and_then(Json::as_str).unwrap_or_default();
            let query = Query::read(&operation::NAMESPACE_GET.request().arg("id", path).target());
            // The service would read a path of digits as an id.
            let query = query.filter(|_| contents::parse_id(path).is_none());
            let reduced = self.reducer().one(operation::NAMESPACE_GET, "", raw);
            if let (Some(query), Ok(reduced)) = (query, reduced) {
                self.contents().answers.insert(query.question, Recorded::one(Some(reduced)));
            }
        }
        Ok(())
    }

    /// Reads all users, if there are not too many.
    async fn everybody(&self) -> Result<()> {
        let Some(all) = self.few(operation::USER_FIND, &["username"]).await? else {
            return Ok(());
        };
        let mut contents = self.contents();
        contents.users.extend(all.iter().filter_map(|row| user(&Json::Object(row.clone()))));
        contents.all_users = true;
        Ok(())
    }

    /// The complete list that `op` reads, unless it is long or fails.
    async fn few(
        &self,
        op: Op<Read>,
        also: &'static [&'static str],
    ) -> Result<Option<Complete<Object>>> {
        let Ok(mut pager) = Pager::new(op.request(), Rows::with_id(also)) else { return Ok(None) };
        loop {
            match self.client.page(&mut pager).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(pager.finish().ok()),
                Err(error) => return failed(error).map(|_| None),
            }
            // The service counts at most 10,000 entries.
            if pager.total_pages().is_none_or(|pages| pages > FEW_PAGES) {
                return Ok(None);
            }
        }
    }

    /// Requests for all sections of every declared group and project that were not read yet, because
    /// a branch may declare them: for those without parents, or for those with parents, below each
    /// parent that was read.
    pub fn sections(&self, desired: &Desired, are_nested: bool) -> Vec<Request<Read>> {
        let contents = self.contents();
        let mut requests = Vec::new();
        for container in &desired.containers {
            let Some(id) = contents.id(container.scope, &container.path) else { continue };
            for section in catalogue::sections(container.scope) {
                let Some(request) = list_request(section, id) else { continue };
                let home = section.home;
                match (home.parent, section.detail.and(home.operations.get)) {
                    (None, _) if !are_nested => requests.push(request),
                    (None, Some(get)) => {
                        let one = get.request().arg("id", id);
                        let rows = recorded_entries(&contents, section, id).into_iter();
                        let one = rows
                            .filter_map(|row| home.entry_request(one.clone(), row.as_object()?));
                        requests.extend(one);
                    }
                    (Some(parent), _) if are_nested => {
                        let of = catalogue::section(container.scope, parent.section);
                        let rows = of.map(|of| recorded_entries(&contents, of, id));
                        let ids = rows.into_iter().flatten().filter_map(|row| row["id"].as_u64());
                        requests.extend(ids.map(|id| request.clone().arg(parent.argument, id)));
                    }
                    _ => {}
                }
            }
        }
        requests.retain(|request| {
            let query = Query::read(&request.target());
            query.is_some_and(|query| contents.answer(&query).is_none())
        });
        requests
    }
}

/// The request for all entries of a section of the container with this `id`.
fn list_request(section: Section, id: u64) -> Option<Request<Read>> {
    let (ReadSource::List(op) | ReadSource::Optional(op)) = section.home.place else { return None };
    Some(section.home.list_request(op.request().arg("id", id)))
}

/// The entries of a section of the container with this `id`, if they were read.
fn recorded_entries(contents: &SnapshotContents, section: Section, id: u64) -> Vec<Json> {
    let list = list_request(section, id).and_then(|list| Query::read(&list.target()));
    match list.and_then(|list| contents.answer(&list)) {
        Some(Ok(Json::Array(rows))) => rows,
        _ => Vec::new(),
    }
}

/// The paths of declared groups, and of groups of declared projects, in lower case.
fn managed(desired: &Desired) -> BTreeSet<String> {
    let groups = desired.containers.iter().filter_map(|container| {
        container.scope.of(Some(&*container.path), group_of(&container.path))
    });
    groups.map(str::to_lowercase).collect()
}

fn keys(thing: &ObjectRow) -> BTreeSet<String> {
    thing.object.json().as_object().into_iter().flat_map(Object::keys).cloned().collect()
}

/// A user as a snapshot holds it, if `raw` is one: the name in lower case, the id and the name.
fn user(raw: &Json) -> Option<(String, Option<(u64, String)>)> {
    let (id, username) = (raw["id"].as_u64()?, raw["username"].as_str()?.to_owned());
    Some((username.to_lowercase(), Some((id, username))))
}

/// The kept part of a failure.
///
/// # Errors
/// The failure itself, if all further requests would fail too.
fn failed(error: ApiError) -> Result<ReadFailure> {
    if is_fatal(&error) {
        return Err(error);
    }
    let message = error.message().filter(|_| !error.is_transient());
    Ok(match (message, error.status()) {
        (Some(message), Some(status)) => ReadFailure {
            status: Some(status),
            message: message.to_owned(),
            is_route: error.is_unknown_route() && !error.is_hidden(),
            request_id: error.request_id().map(str::to_owned),
            moved_to: error.moved_to(),
        },
        _ => ReadFailure::because(Cause::from(&error).to_string()),
    })
}
