//! Takes a snapshot: a transport that asks the service for what the snapshot lacks, stores the kept
//! part of the answer, and answers from that.
//!
//! So a plan made through it equals one from the snapshot, and the snapshot contains all answers
//! that it needs. [`Recorder::fetch_extra`] adds answers that only plans of other manifests need.

mod extra;

use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::{StreamExt as _, future::BoxFuture, stream};

use super::{
    Snapshot, SnapshotHeader,
    contents::{ObjectRow, PackedJson, ReadFailure, Recorded, SnapshotContents},
    offline::{build_response, failure_response, offline_error},
    question::{Query, QuerySubject},
    reduce::{DeclaredLiterals, Reducer, placed},
};
use crate::{
    api::{
        ApiError, ReadClient, RequestPhase, Result, SendError, Transport, TransportError,
        WireRequest, WireResponse,
    },
    catalogue,
    cause::Cause,
    desired::Desired,
    digest::DigestKey,
    field::Scope,
    lock,
    observe::is_fatal,
    operation::{Method, Read, Request, ResponseBody},
    secret::Secrets,
    value::{Json, Object},
};

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
