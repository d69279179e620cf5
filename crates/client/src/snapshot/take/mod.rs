//! Takes a snapshot with a transport that answers from the snapshot. For a request that the snapshot
//! cannot answer yet, the transport asks the service, reduces the response, and stores it.
//!
//! Therefore, a plan that uses this transport equals a plan from the snapshot, and the snapshot
//! contains every response that the plan needs. [`SnapshotRecorder::fetch_extra`] adds responses
//! that only plans of other manifests need.

mod extra;

use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::{StreamExt as _, future::BoxFuture, stream};

use super::{
    Snapshot, SnapshotHeader,
    contents::{ObjectRow, PackedJson, ReadFailure, RecordedAnswer, SnapshotContents},
    offline::{build_response, failure_response, offline_error},
    question::{Query, QuerySubject},
    reduce::{DeclaredLiterals, Reducer, add_parent_id},
};
use crate::{
    api::{
        ApiError, ReadClient, RequestPhase, Result, SendError, SendErrorKind, Transport,
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

/// The maximum number of parallel requests.
const MAX_CONCURRENT: usize = 8;

/// A transport that takes a snapshot.
#[derive(Debug)]
pub struct SnapshotRecorder {
    client: ReadClient,
    header: SnapshotHeader,
    reducer: Mutex<Arc<Reducer>>,
    contents: Mutex<SnapshotContents>,
}

impl Transport for SnapshotRecorder {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(self.answer_request(request))
    }
}

impl SnapshotRecorder {
    /// Creates a recorder that requests missing responses with `client`. `header` contains the
    /// service and the time. The recorder removes the values in `secrets`, and keeps secret values
    /// as digests under `key`.
    pub fn new(
        client: ReadClient,
        header: SnapshotHeader,
        secrets: Arc<Secrets>,
        key: Option<DigestKey>,
    ) -> Self {
        let keyed_header = SnapshotHeader { key_id: key.as_ref().map(DigestKey::id), ..header };
        let reducer = Reducer { literals: DeclaredLiterals::default(), secrets, key };
        Self {
            client,
            header: keyed_header,
            reducer: Mutex::new(Arc::new(reducer)),
            contents: Mutex::default(),
        }
    }

    /// Replaces the declarations that decide which values are kept.
    pub fn use_declarations(&self, desired: &Desired) {
        let mut reducer = lock(&self.reducer);
        let (secrets, key) = (Arc::clone(&reducer.secrets), reducer.key.clone());
        *reducer = Arc::new(Reducer { literals: DeclaredLiterals::collect(desired), secrets, key });
    }

    /// Takes the recorded snapshot out of the recorder.
    pub fn take_snapshot(&self) -> Snapshot {
        Snapshot { header: self.header.clone(), contents: std::mem::take(&mut *self.contents()) }
    }

    /// The client that sends requests to the service.
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
        let query = Query::parse(&request.target).filter(|_| request.method == Method::Get);
        let Some(query) = query else {
            return Err(offline_error("a snapshot cannot answer this request"));
        };
        if let Err(error) = self.fetch(&query).await {
            if !error.is_unauthorized() {
                return Err(SendError::new(
                    RequestPhase::NotSent,
                    SendErrorKind::Offline,
                    &Cause::from(&error).to_string(),
                ));
            }
            // The service does not accept the token. Return the 401, so that the calling client
            // stops too.
            let failure = ReadFailure::from_message(error.message().unwrap_or_default().to_owned());
            return Ok(failure_response(401, &failure, &self.header));
        }
        let response = self.contents().look_up(&query);
        build_response(&query, response, &self.header, |reason| {
            reason.unwrap_or("the service gave no reason").to_owned()
        })
    }

    /// Reads the response to `query` from the service, unless the snapshot has the response.
    ///
    /// # Errors
    /// A fatal [`ApiError`], after which all further requests would fail too. Other failures are
    /// stored.
    async fn fetch(&self, query: &Query) -> Result<()> {
        let subject = query.subject();
        let is_recorded = {
            let contents = self.contents();
            match (contents.look_up(query), &subject) {
                // A roster has only current paths. Send the request to the service, which redirects
                // former paths.
                (Some(Err(_)), QuerySubject::Object(scope)) => contents
                    .failed_objects
                    .contains_key(&(*scope, query.container_key().to_lowercase())),
                (response, _) => response.is_some(),
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
        let Some(query) = Query::parse(&request.path_and_query()) else { return Ok(()) };
        self.fetch(&query).await
    }

    async fn fetch_object(&self, scope: Scope, query: &Query) -> Result<()> {
        let lookup = catalogue::container_lookup(scope);
        let request = query.request().with_key_filter(self.reducer().kept_keys(scope));
        let path_or_id = query.container_key();
        match self.client.get_object(request, &["id", lookup.path_field]).await {
            Ok(response) => {
                self.add_object(
                    scope,
                    &response.object().cloned().unwrap_or_default(),
                    Some(path_or_id),
                );
            }
            Err(error) => {
                let failure = reduce_failure(error)?;
                self.contents().failed_objects.insert((scope, path_or_id.to_lowercase()), failure);
            }
        }
        Ok(())
    }

    /// Adds the object `raw`, which was requested at `path_or_id`. `path_or_id` is `None` for a row
    /// of a list. If the object cannot be kept, records the reason.
    fn add_object(&self, scope: Scope, raw: &Object, path_or_id: Option<&str>) {
        let reduced_object = self.reducer().reduce_object(scope, raw);
        let mut contents = self.contents();
        match reduced_object {
            Ok(object) => {
                let row = ObjectRow::new(scope, &object, path_or_id.is_some());
                row.into_iter().for_each(|row| contents.add_object(row, path_or_id));
            }
            Err(reason) => {
                let key = path_or_id
                    .unwrap_or_else(|| catalogue::container_lookup(scope).read_path(raw))
                    .to_lowercase();
                contents.failed_objects.insert((scope, key), ReadFailure::from_message(reason));
            }
        }
    }

    async fn fetch_roster(&self, scope: Scope, root: &str, query: &Query) -> Result<()> {
        let (container_kind, _) = catalogue::container(scope);
        let request = query.request().with_query("order_by", "id").with_query("sort", "asc");
        let request = match scope {
            Scope::Group => request,
            Scope::Project => request.with_query("include_subgroups", true),
        };
        let request = request.with_key_filter(self.reducer().kept_keys(scope));
        let roster = match self
            .client
            .list_with_keys(request, container_kind.scoped_kind.entry_keys)
            .await
        {
            Ok(rows) => {
                rows.iter().for_each(|row| self.add_object(scope, row, None));
                Ok(rows.iter().filter_map(|row| row.get("id")?.as_u64()).collect())
            }
            Err(error) => Err(reduce_failure(error)?),
        };
        let mut contents = self.contents();
        let root = contents.roster_key(root);
        contents.rosters.insert((scope, root), roster);
        Ok(())
    }

    async fn fetch_user(&self, name: &str, query: &Query) -> Result<()> {
        match self.client.get(query.request()).await {
            Ok(response) => {
                let key = name.to_lowercase();
                let mut users =
                    response.body.as_array().into_iter().flatten().filter_map(parse_user);
                let found_user = users.find(|(username, _)| *username == key);
                self.contents().users.insert(key, found_user.and_then(|(_, user)| user));
            }
            Err(error) => {
                let failure = RecordedAnswer::Failed(reduce_failure(error)?);
                self.contents().answers.insert(query.key.clone(), failure);
            }
        }
        Ok(())
    }

    async fn fetch_other(&self, query: &Query) -> Result<()> {
        let (path, reducer) = (self.contents().container_path(query), self.reducer());
        let reduced_result = match query.op.row().response {
            ResponseBody::List => self.client.list(query.request()).await.map(|rows| {
                let rows = rows.map(|row| add_parent_id(query, row));
                let reduced_rows = reducer.reduce_list(query.op, &path, &rows)?;
                Ok(RecordedAnswer::Entries(reduced_rows.iter().map(PackedJson::new).collect()))
            }),
            _ => self.client.get_optional(query.request(), &[]).await.map(|response| {
                let object = response.as_ref().and_then(|response| response.object());
                let object_with_parent = object.map(|raw| add_parent_id(query, raw.clone()));
                let reduced_object =
                    object_with_parent.map(|raw| reducer.reduce_row(query.op, &path, &raw));
                reduced_object.transpose().map(RecordedAnswer::from_object)
            }),
        };
        let recorded_response = match reduced_result {
            Ok(Ok(response)) => response,
            Ok(Err(reason)) => RecordedAnswer::Failed(ReadFailure::from_message(reason)),
            Err(error) => RecordedAnswer::Failed(reduce_failure(error)?),
        };
        let mut contents = self.contents();
        if let RecordedAnswer::Entries(entries) = &recorded_response {
            // Every member is a user.
            for (username, user) in entries.iter().filter_map(|entry| parse_user(&entry.json())) {
                contents.users.entry(username).or_insert(user);
            }
        }
        let key = contents.storage_key(query);
        contents.answers.insert(key, recorded_response);
        Ok(())
    }

    /// Sends `requests`, and calls `on_response` after each response. Failures are stored.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn fetch_all(
        &self,
        requests: Vec<Request<Read>>,
        on_response: impl Fn(),
    ) -> Result<()> {
        let fetches = requests.into_iter().map(|request| self.fetch_request(request));
        let mut fetches = stream::iter(fetches).buffer_unordered(MAX_CONCURRENT);
        while let Some(result) = fetches.next().await {
            result?;
            on_response();
        }
        Ok(())
    }

    /// The failed reads: a description of each request, and the reason of the failure.
    pub fn failed_reads(&self) -> Vec<(String, String)> {
        self.contents()
            .failed_reads()
            .map(|(request, failure)| (request, failure.to_string()))
            .collect()
    }
}

/// Returns the name of the user `raw` in lower case, then the id and the name as the service spells
/// it.
fn parse_user(raw: &Json) -> Option<(String, Option<(u64, String)>)> {
    let (id, username) = (raw["id"].as_u64()?, raw["username"].as_str()?.to_owned());
    Some((username.to_lowercase(), Some((id, username))))
}

/// Returns the stored form of a failure.
///
/// # Errors
/// The failure itself, if it is fatal: all further requests would fail too.
fn reduce_failure(error: ApiError) -> Result<ReadFailure> {
    if is_fatal(&error) {
        return Err(error);
    }
    let message = error.message().filter(|_| !error.is_transient());
    Ok(match (message, error.status()) {
        (Some(message), Some(status)) => ReadFailure {
            status: Some(status),
            message: message.to_owned(),
            is_route: error.is_route_unknown_or_hidden() && !error.is_hidden(),
            request_id: error.request_id().map(str::to_owned),
            moved_to: error.moved_to(),
        },
        _ => ReadFailure::from_message(Cause::from(&error).to_string()),
    })
}
