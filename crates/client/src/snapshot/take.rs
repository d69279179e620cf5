//! Takes a snapshot: a transport that asks the service for what the snapshot lacks, stores the kept
//! part of the answer, and answers from that.
//!
//! So a plan made through it equals one from the snapshot, and the snapshot contains all answers
//! that it needs. [`Recorder::fetch_extra`] adds answers that only plans of other manifests need.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};

use super::{
    Snapshot, SnapshotHeader,
    contents::{self, ObjectRow, PackedJson, ReadFailure, Recorded, SnapshotContents},
    offline::{build_response, failure_response, offline_error},
    question::{Query, QuerySubject},
    reduce::{DeclaredLiterals, Reducer, placed},
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
    observe::{is_fatal, list_below, outermost_paths},
    operation::{self, Method, Op, Read, Request, ResponseBody},
    page::{Complete, Pager, Rows},
    secret::Secrets,
    value::{Json, Object},
};

/// The maximum number of pages of users, or of namespaces, that are read to know all of them.
const MAX_PAGES: u64 = 100;
/// How many requests run in parallel.
const MAX_CONCURRENT: usize = 8;

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
        Box::pin(self.answer_request(request))
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
        let head = SnapshotHeader { key_id: key.as_ref().map(DigestKey::id), ..head };
        let reducer = Reducer { literals: DeclaredLiterals::default(), secrets, key };
        Self { client, head, reducer: Mutex::new(Arc::new(reducer)), contents: Mutex::default() }
    }

    /// Uses the present declarations.
    pub fn use_declarations(&self, desired: &Desired) {
        let mut reducer = lock(&self.reducer);
        let (secrets, key) = (Arc::clone(&reducer.secrets), reducer.key.clone());
        *reducer = Arc::new(Reducer { literals: DeclaredLiterals::collect(desired), secrets, key });
    }

    /// The snapshot as taken so far.
    pub fn finish(&self) -> Snapshot {
        Snapshot { header: self.head.clone(), contents: std::mem::take(&mut *self.contents()) }
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

    async fn answer_request(&self, request: WireRequest) -> Result<WireResponse, SendError> {
        let query = Query::read(&request.target).filter(|_| request.method == Method::Get);
        let Some(query) = query else { return Err(offline_error("a snapshot has no such thing")) };
        if let Err(error) = self.fetch(&query).await {
            if !error.is_unauthorized() {
                return Err(SendError::new(
                    RequestPhase::NotSent,
                    TransportError::Offline,
                    &Cause::from(&error).to_string(),
                ));
            }
            // The run is over: the calling client must know, and stop.
            let failed = ReadFailure::from_message(error.message().unwrap_or_default().to_owned());
            return Ok(failure_response(401, &failed, &self.head));
        }
        let answer = self.contents().answer(&query);
        build_response(&query, answer, &self.head, |why| {
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
                (Some(Err(_)), QuerySubject::Object(scope)) => contents
                    .failed_objects
                    .contains_key(&(*scope, query.container().to_lowercase())),
                (answer, _) => answer.is_some(),
            }
        };
        match subject {
            _ if is_recorded => Ok(()),
            QuerySubject::Object(scope) => self.fetch_object(scope, query).await,
            QuerySubject::Roster(scope, root) => self.fetch_roster(scope, root, query).await,
            QuerySubject::User(name) => self.fetch_user(name, query).await,
            QuerySubject::Other => self.fetch_other(query).await,
        }
    }

    async fn fetch_request(&self, request: Request<Read>) -> Result<()> {
        let Some(query) = Query::read(&request.target()) else { return Ok(()) };
        self.fetch(&query).await
    }

    async fn fetch_object(&self, scope: Scope, query: &Query) -> Result<()> {
        let lookup = catalogue::container_lookup(scope);
        let request = query.request().keeping(self.reducer().wanted_keys(scope));
        let at = query.container();
        match self.client.get_object(request, &["id", lookup.path]).await {
            Ok(answer) => {
                self.add_object(scope, &answer.object().cloned().unwrap_or_default(), Some(at));
            }
            Err(error) => {
                let failed = keep_failure(error)?;
                self.contents().failed_objects.insert((scope, at.to_lowercase()), failed);
            }
        }
        Ok(())
    }

    /// Adds the object `raw`, which was requested at `path_or_id` or is a row of a list; records
    /// the reason if it is not kept.
    fn add_object(&self, scope: Scope, raw: &Object, path_or_id: Option<&str>) {
        let reduced = self.reducer().reduce_object(scope, raw);
        let mut contents = self.contents();
        match reduced {
            Ok(reduced) => {
                let row = ObjectRow::new(scope, &reduced, path_or_id.is_some());
                row.into_iter().for_each(|row| contents.add(row, path_or_id));
            }
            Err(why) => {
                let at = path_or_id
                    .unwrap_or_else(|| catalogue::container_lookup(scope).path_in(raw))
                    .to_lowercase();
                contents.failed_objects.insert((scope, at), ReadFailure::from_message(why));
            }
        }
    }

    async fn fetch_roster(&self, scope: Scope, root: &str, query: &Query) -> Result<()> {
        let (container_kind, _) = catalogue::container(scope);
        let request = query.request().query("order_by", "id").query("sort", "asc");
        let request = match scope {
            Scope::Group => request,
            Scope::Project => request.query("include_subgroups", true),
        };
        let request = request.keeping(self.reducer().wanted_keys(scope));
        let roster = match self.client.list_rows(request, container_kind.scoped_kind.rows).await {
            Ok(rows) => {
                rows.iter().for_each(|row| self.add_object(scope, row, None));
                Ok(rows.iter().filter_map(|row| row.get("id")?.as_u64()).collect())
            }
            Err(error) => Err(keep_failure(error)?),
        };
        let mut contents = self.contents();
        let root = contents.roster_key(root);
        contents.rosters.insert((scope, root), roster);
        Ok(())
    }

    async fn fetch_user(&self, name: &str, query: &Query) -> Result<()> {
        match self.client.get(query.request()).await {
            Ok(answer) => {
                let key = name.to_lowercase();
                let mut users = answer.body.as_array().into_iter().flatten().filter_map(parse_user);
                let found_user = users.find(|(username, _)| *username == key);
                self.contents().users.insert(key, found_user.and_then(|(_, user)| user));
            }
            Err(error) => {
                let failed = Recorded::Failed(keep_failure(error)?);
                self.contents().answers.insert(query.key.clone(), failed);
            }
        }
        Ok(())
    }

    async fn fetch_other(&self, query: &Query) -> Result<()> {
        let (path, reducer) = (self.contents().path_of(query), self.reducer());
        let reduced = match query.op.row().answer {
            ResponseBody::List => match self.client.list(query.request()).await {
                Ok(rows) => reducer
                    .reduce_list(query.op, &path, &rows.map(|row| placed(query, row)))
                    .map(|rows| Recorded::Entries(rows.iter().map(PackedJson::new).collect())),
                Err(error) => Ok(Recorded::Failed(keep_failure(error)?)),
            },
            _ => match self.client.get_optional(query.request(), &[]).await {
                Ok(answer) => {
                    let object = answer.as_ref().and_then(|answer| answer.object());
                    let placed_object = object.map(|raw| placed(query, raw.clone()));
                    let reduced_object = placed_object
                        .map(|raw| reducer.reduce_one(query.op, &path, &raw))
                        .transpose();
                    reduced_object.map(Recorded::one)
                }
                Err(error) => Ok(Recorded::Failed(keep_failure(error)?)),
            },
        };
        let reduced =
            reduced.unwrap_or_else(|why| Recorded::Failed(ReadFailure::from_message(why)));
        let mut contents = self.contents();
        if let Recorded::Entries(entries) = &reduced {
            // Every member is a user.
            for (username, user) in entries.iter().filter_map(|entry| parse_user(&entry.json())) {
                contents.users.entry(username).or_insert(user);
            }
        }
        let key = contents.storage_key(query);
        contents.answers.insert(key, reduced);
        Ok(())
    }

    /// Reads what plans of other manifests may need: what exists below managed groups, their
    /// members, and the users. Call it before planning, so that the plan finds more in lists.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn fetch_extra(&self, desired: &Desired) -> Result<()> {
        self.fetch_request(operation::CURRENT_USER.request()).await?;
        self.fetch_request(operation::VERSION_GET.request()).await?;
        let groups = managed_groups(desired);
        for root in outermost_paths(&groups) {
            self.fetch_below(&root).await?;
        }
        if self.contents().sees_all() {
            let list = operation::GROUP_LIST.request().query("top_level_only", true);
            self.fetch_request(list.query("all_available", true)).await?;
        }
        self.fetch_namespaces().await?;
        self.fetch_all_users().await?;
        let groups: BTreeSet<_> = {
            let contents = self.contents();
            let rosters = contents.rosters.iter();
            let group_rosters =
                rosters.filter(|((of, root), _)| *of == Scope::Group && !root.is_empty());
            let listed_ids = group_rosters.flat_map(|(_, ids)| ids.iter().flatten().copied());
            let managed = groups.iter().filter_map(|group| contents.find_id(Scope::Group, group));
            listed_ids.chain(managed).collect()
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

    /// Sends the requests from [`Self::unread_section_requests`], and calls `on_answer` after each
    /// answer. A section that is refused here is not declared yet, so the snapshot is still
    /// complete.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn fetch_all(
        &self,
        requests: Vec<Request<Read>>,
        on_answer: impl Fn(),
    ) -> Result<()> {
        let fetches = requests.into_iter().map(|request| self.fetch_request(request));
        let mut fetches = stream::iter(fetches).buffer_unordered(MAX_CONCURRENT);
        while let Some(fetched) = fetches.next().await {
            fetched?;
            on_answer();
        }
        Ok(())
    }

    /// The requests that could not be read, with reasons.
    pub fn incomplete(&self) -> Vec<(String, String)> {
        self.contents().incomplete().map(|(what, why)| (what, why.to_string())).collect()
    }

    /// Reads the group at `root` and everything below it. Also checks whether rows have all fields
    /// of the object; if not, groups are read one by one.
    async fn fetch_below(&self, root: &str) -> Result<()> {
        self.fetch_request((catalogue::container_lookup(Scope::Group).get)(root)).await?;
        if self.contents().find_id(Scope::Group, root).is_none() {
            return Ok(());
        }
        for scope in Scope::ALL {
            self.fetch_request(list_below(scope).arg("id", root)).await?;
        }
        for scope in Scope::ALL {
            let get = catalogue::container_lookup(scope).get;
            let rows: Vec<_> = {
                let contents = self.contents();
                let rows = contents.objects.range((scope, 0)..=(scope, u64::MAX));
                let rows = rows.filter(|(_, thing)| !thing.by_itself);
                rows.map(|((_, id), thing)| (*id, thing.clone())).collect()
            };
            let Some((id, row)) = rows.first() else { continue };
            if let Some(query) = Query::read(&get(&id.to_string()).target()) {
                self.fetch_object(scope, &query).await?;
            }
            let has_whole_rows = {
                let mut contents = self.contents();
                let whole = contents.objects.get(&(scope, *id)).filter(|whole| whole.by_itself);
                let is_whole = whole.is_some_and(|whole| keys(whole).is_subset(&keys(row)));
                let has_whole_rows = contents.rows_are_whole.entry(scope).or_insert(true);
                *has_whole_rows &= is_whole;
                *has_whole_rows
            };
            if scope == Scope::Group && !has_whole_rows {
                let requests = rows.iter().skip(1).map(|(id, _)| get(&id.to_string()));
                self.fetch_all(requests.collect(), || {}).await?;
            }
        }
        Ok(())
    }

    /// Reads all namespaces, if there are not too many. One that is not in the list may still
    /// exist.
    async fn fetch_namespaces(&self) -> Result<()> {
        let Some(all) = self.list_if_short(operation::NAMESPACE_FIND, &["full_path"]).await? else {
            return Ok(());
        };
        for raw in all.iter() {
            let path = raw.get("full_path").and_then(Json::as_str).unwrap_or_default();
            let query = Query::read(&operation::NAMESPACE_GET.request().arg("id", path).target());
            // The service would read a path of digits as an id.
            let query = query.filter(|_| contents::parse_id(path).is_none());
            let reduced = self.reducer().reduce_one(operation::NAMESPACE_GET, "", raw);
            if let (Some(query), Ok(reduced)) = (query, reduced) {
                self.contents().answers.insert(query.key, Recorded::one(Some(reduced)));
            }
        }
        Ok(())
    }

    /// Reads all users, if there are not too many.
    async fn fetch_all_users(&self) -> Result<()> {
        let Some(all) = self.list_if_short(operation::USER_FIND, &["username"]).await? else {
            return Ok(());
        };
        let mut contents = self.contents();
        contents.users.extend(all.iter().filter_map(|row| parse_user(&Json::Object(row.clone()))));
        contents.has_all_users = true;
        Ok(())
    }

    /// The complete list that `op` reads, unless it is long or fails.
    async fn list_if_short(
        &self,
        op: Op<Read>,
        extra_keys: &'static [&'static str],
    ) -> Result<Option<Complete<Object>>> {
        let Ok(mut pager) = Pager::new(op.request(), Rows::with_id(extra_keys)) else {
            return Ok(None);
        };
        loop {
            match self.client.read_page(&mut pager).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(pager.finish().ok()),
                Err(error) => return keep_failure(error).map(|_| None),
            }
            // The service counts at most 10,000 entries.
            if pager.total_pages().is_none_or(|pages| pages > MAX_PAGES) {
                return Ok(None);
            }
        }
    }

    /// Requests for all sections of every declared group and project that were not read yet, because
    /// a branch may declare them: for those without parents, or for those with parents, below each
    /// parent that was read.
    pub fn unread_section_requests(
        &self,
        desired: &Desired,
        only_nested: bool,
    ) -> Vec<Request<Read>> {
        let contents = self.contents();
        let mut requests = Vec::new();
        for container in &desired.containers {
            let Some(id) = contents.find_id(container.scope, &container.path) else { continue };
            for section in catalogue::sections(container.scope) {
                let Some(request) = list_request(section, id) else { continue };
                let scoped_kind = section.scoped_kind;
                match (scoped_kind.parent, section.detail.and(scoped_kind.operations.get)) {
                    (None, _) if !only_nested => requests.push(request),
                    (None, Some(get)) => {
                        let get_request = get.request().arg("id", id);
                        let rows = recorded_entries(&contents, section, id).into_iter();
                        let row_requests = rows.filter_map(|row| {
                            scoped_kind.entry_request(get_request.clone(), row.as_object()?)
                        });
                        requests.extend(row_requests);
                    }
                    (Some(parent), _) if only_nested => {
                        let parent_kind = catalogue::section(container.scope, parent.section);
                        let rows = parent_kind.map(|of| recorded_entries(&contents, of, id));
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
    let (ReadSource::List(op) | ReadSource::Optional(op)) = section.scoped_kind.place else {
        return None;
    };
    if section.scoped_kind.name_filter.is_some() {
        return None;
    }
    Some(section.scoped_kind.list_request(op.request().arg("id", id)))
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
fn managed_groups(desired: &Desired) -> BTreeSet<String> {
    let groups = desired.containers.iter().filter_map(|container| {
        container.scope.choose(Some(&*container.path), group_of(&container.path))
    });
    groups.map(str::to_lowercase).collect()
}

fn keys(thing: &ObjectRow) -> BTreeSet<String> {
    thing.object.json().as_object().into_iter().flat_map(Object::keys).cloned().collect()
}

/// A user as a snapshot holds it, if `raw` is one: the name in lower case, the id and the name.
fn parse_user(raw: &Json) -> Option<(String, Option<(u64, String)>)> {
    let (id, username) = (raw["id"].as_u64()?, raw["username"].as_str()?.to_owned());
    Some((username.to_lowercase(), Some((id, username))))
}

/// The kept part of a failure.
///
/// # Errors
/// The failure itself, if all further requests would fail too.
fn keep_failure(error: ApiError) -> Result<ReadFailure> {
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
        _ => ReadFailure::from_message(Cause::from(&error).to_string()),
    })
}
