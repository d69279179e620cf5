//! The read-only client: reads single objects and complete lists.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::HeaderMap;
use tokio::sync::watch;

use super::{
    Result,
    call::{ClientCore, RequestTally, SendInputs},
    clock::{Clock, Random, SystemClock, SystemRandom},
    error::{ApiError, ErrorKind},
    limit::Gate,
    pace::InFlightRange,
    service::ServiceAddress,
    transport::Transport,
};
use crate::{
    operation::{Read, Request, RetrySafety, count_minutes},
    page::{CompleteList, EntryKeys, PageError, Pager, is_identifying},
    planted::Bug,
    secret::Secrets,
    value::{Json, Object},
};

/// The maximum number of times that a list is read again if its pages contradict each other.
const MAX_REREADS: u32 = 2;

/// The limits of a client, and its sources of time and randomness.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The initial and the maximum limit of requests in flight.
    pub in_flight: InFlightRange,
    /// The maximum number of requests of the run, retries included.
    pub max_requests: Option<u64>,
    /// The time on `clock` when the run must end.
    pub deadline: Option<Duration>,
    /// The clock that the client reads all times from.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub random: Arc<dyn Random>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            in_flight: InFlightRange::ADAPTIVE,
            max_requests: None,
            deadline: None,
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(SystemRandom),
        }
    }
}

/// A successful response.
#[derive(Clone, Debug)]
pub struct ApiResponse {
    /// The HTTP status. 404 is a success for a delete: the object is already gone.
    pub status: u16,
    /// The response headers.
    pub headers: HeaderMap,
    /// The body with the keys that the request [keeps](Request::with_key_filter); `null` for an
    /// empty body.
    pub body: Json,
}

impl ApiResponse {
    /// The body, if it is an object.
    pub const fn object(&self) -> Option<&Object> {
        match &self.body {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// The requests of one operation so far, and the known limit of the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    /// The number of requests, retries included.
    pub calls: u64,
    /// The number of retries among `calls`.
    pub retries: u64,
    /// The limit of requests per minute for this operation, if the table of operations contains it.
    pub requests_per_minute: Option<u32>,
}

/// The number of requests of each operation, by its id.
pub type CallCounts = BTreeMap<&'static str, CallCount>;

/// Sends only requests that read. Clones share all state.
///
/// ```
/// use undrift_client::api::ReadClient;
/// use undrift_model::operation;
///
/// async fn ask(client: ReadClient) {
///     client.get(operation::VARIABLE_LIST.request()).await.ok();
/// }
/// ```
///
/// The compiler refuses a request that writes:
///
/// ```compile_fail
/// use undrift_client::api::ReadClient;
/// use undrift_model::operation;
///
/// async fn ask(client: ReadClient) {
///     client.get(operation::VARIABLE_CREATE.request()).await.ok();
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ReadClient {
    pub(super) core: Arc<ClientCore>,
}

impl ReadClient {
    /// Creates a client for `service`. The client removes `secrets` from every error. `secrets`
    /// must include the token.
    pub fn new(
        service: ServiceAddress,
        transport: Arc<dyn Transport>,
        secrets: Arc<Secrets>,
        settings: ClientSettings,
    ) -> Self {
        let (gate, end_reason) = (Gate::new(settings.in_flight), watch::Sender::new(None));
        let (tally, service_epoch) = <(Mutex<RequestTally>, Mutex<_>)>::default();
        let core = ClientCore {
            service,
            transport,
            secrets,
            settings,
            gate,
            end_reason,
            tally,
            service_epoch,
        };
        Self { core: Arc::new(core) }
    }

    /// The user's limit of requests per minute, if a response announced it.
    pub fn requests_per_minute(&self) -> Option<u64> {
        self.core.gate.requests_per_minute()
    }

    /// The number of requests sent so far, retries included.
    pub fn request_count(&self) -> u64 {
        self.counts().values().map(|count| count.calls).sum()
    }

    /// The minutes that this number of requests takes; `None` if the service announced no limit.
    pub fn estimate_minutes(&self, requests: u64) -> Option<u64> {
        Some(count_minutes(requests, self.requests_per_minute()?))
    }

    /// Estimates the minutes for the remaining `total_count - done_count` items, if the service
    /// announced a limit. Assumes that each item takes the average number of requests since
    /// `counts_before`. The slowest limit decides: the user's limit, or the limit of an operation.
    pub fn remaining_minutes(
        &self,
        counts_before: &CallCounts,
        done_count: usize,
        total_count: usize,
    ) -> Option<u64> {
        // Return early: this function is called after each step, and most services announce no
        // limit.
        let user_limit = self.requests_per_minute()?;
        let (done_items, remaining_count) =
            (done_count as u64, total_count.saturating_sub(done_count) as u64);
        let (mut sent_count, mut longest_minutes) = (0_u64, 0);
        for (id, count) in self.counts() {
            let calls =
                count.calls - counts_before.get(id).map_or(0, |count_before| count_before.calls);
            sent_count += calls;
            if let Some(operation_limit) = count.requests_per_minute {
                let remaining_calls =
                    calls.saturating_mul(remaining_count).checked_div(done_items)?;
                longest_minutes =
                    longest_minutes.max(count_minutes(remaining_calls, operation_limit.into()));
            }
        }
        Some(longest_minutes.max(count_minutes(
            sent_count.saturating_mul(remaining_count).checked_div(done_items)?,
            user_limit,
        )))
    }

    /// Reads one object that must exist.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError), also if the response is `null` or empty.
    pub async fn get(&self, request: Request<Read>) -> Result<ApiResponse> {
        let response = self.call(&request).await?;
        if response.body.is_null() {
            Err(self.core.malformed_error(&request, &response, "nothing"))
        } else {
            Ok(response)
        }
    }

    /// Reads one object that must have each of `keys`.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError), also if a key is missing or null, or the object has another
    /// id.
    pub async fn get_object(
        &self,
        request: Request<Read>,
        keys: &[&'static str],
    ) -> Result<ApiResponse> {
        let request = request.keep_keys(keys);
        let response = self.get(request.clone()).await?;
        let (requested_id, returned_id) = (request.requested_id(), response.body["id"].as_u64());
        if requested_id.is_some() && returned_id.is_some() && requested_id != returned_id {
            return Err(self.core.malformed_error(&request, &response, "an object of another id"));
        }
        self.require_keys(&request, response, keys)
    }

    /// Reads one object that may be absent. Returns `None` if the service answers 200 with `null`,
    /// as for a push rule (reference 2, 4.6). An object must have each of `keys`.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError), also if a key is missing or null, for a 404, and for any other
    /// success without a body.
    pub async fn get_optional(
        &self,
        request: Request<Read>,
        keys: &[&'static str],
    ) -> Result<Option<ApiResponse>> {
        let request = request.keep_keys(keys);
        let response = self.call(&request).await?;
        match (response.body.is_null(), response.status) {
            (false, _) => self.require_keys(&request, response, keys).map(Some),
            (true, 200) => Ok(None),
            (true, _) => Err(self.core.malformed_error(&request, &response, "nothing")),
        }
    }

    /// Returns `response` if its object has each of `keys`.
    fn require_keys(
        &self,
        request: &Request<Read>,
        response: ApiResponse,
        keys: &[&str],
    ) -> Result<ApiResponse> {
        if keys.iter().all(|key| is_identifying(key, &response.body[*key])) {
            return Ok(response);
        }
        Err(self.core.malformed_error(
            request,
            &response,
            "an object without its identifying fields",
        ))
    }

    /// Reads a complete list for display, and does not check the fields of its entries. A caller
    /// that needs to know that an entry is absent must use
    /// [`list_with_keys`](Self::list_with_keys).
    ///
    /// # Errors
    /// The errors of [`list_with_keys`](Self::list_with_keys).
    pub async fn list(&self, request: Request<Read>) -> Result<CompleteList<Object>> {
        self.list_with_keys(request, EntryKeys::default()).await
    }

    /// Reads a complete list in which each entry must have the fields in `entry_keys`. If the
    /// responses contradict each other, reads the whole list again from the start, at most twice.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError) if any page failed, or if the list is not known to be complete
    /// ([`page_error`](super::ApiError::page_error)). Part of a list is never returned.
    pub async fn list_with_keys(
        &self,
        request: Request<Read>,
        entry_keys: EntryKeys,
    ) -> Result<CompleteList<Object>> {
        self.read_all_pages(&request, || Pager::new(request.clone(), entry_keys), Pager::finish)
            .await
    }

    /// Reads all visible entries of a list that the service filters after splitting it into pages.
    /// An entry that is not returned may still exist.
    ///
    /// # Errors
    /// The errors of [`list_with_keys`](Self::list_with_keys).
    pub async fn list_visible(
        &self,
        request: Request<Read>,
        entry_keys: EntryKeys,
    ) -> Result<Vec<Object>> {
        self.read_all_pages(
            &request,
            || Ok(Pager::for_filtered(request.clone(), entry_keys)),
            Pager::into_visible,
        )
        .await
    }

    /// Reads all pages of a list with a new pager. Starts again if pages contradict each other.
    async fn read_all_pages<T>(
        &self,
        request: &Request<Read>,
        new_pager: impl Fn() -> Result<Pager, PageError>,
        finish: impl Fn(Pager) -> Result<T, PageError>,
    ) -> Result<T> {
        let mut rereads = 0;
        loop {
            let attempt = async {
                let mut pager = new_pager().map_err(|error| self.page_error(request, error))?;
                while self.read_page(&mut pager).await?.is_some() {}
                finish(pager).map_err(|error| self.page_error(request, error))
            };
            match attempt.await {
                Err(error)
                    if matches!(error.page_error(), Some(PageError::Contradiction(_)))
                        && rereads < MAX_REREADS =>
                {
                    rereads += 1;
                }
                result => return result,
            }
        }
    }

    fn page_error(&self, request: &Request<Read>, error: PageError) -> ApiError {
        self.core.error(request, ErrorKind::Page(error))
    }

    /// Reads the pager's next page and returns its entries; `None` at the end.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError). If the request failed, the same page may be requested again.
    /// If the page was refused ([`page_error`](super::ApiError::page_error)), the pager cannot be
    /// used any more.
    pub async fn read_page<'p>(&self, pager: &'p mut Pager) -> Result<Option<&'p [Object]>> {
        let Some(request) = pager.next_request() else { return Ok(None) };
        let (headers, objects) = match self.call(&request).await {
            Err(error) if error.is_empty_list() => (HeaderMap::new(), Vec::new()),
            response => {
                let mut response = response?;
                let Some(objects) = into_objects(response.body.take()) else {
                    let problem = "something other than a list";
                    return Err(self.core.malformed_error(&request, &response, problem));
                };
                (response.headers, objects)
            }
        };
        let accept_result = pager.accept(&headers, objects);
        accept_result.map(Some).map_err(|error| self.page_error(&request, error))
    }

    /// The number of requests of each operation so far, by its id.
    pub fn counts(&self) -> CallCounts {
        self.core.counts()
    }

    /// The client's clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.core.settings.clock
    }

    /// Ends the run: no further request starts, reads in flight are aborted, and writes in flight
    /// still wait for their responses.
    pub fn interrupt(&self) {
        if !Bug::ContinueAfterSignal.is_planted() {
            self.core.end_run(ErrorKind::Interrupted);
        }
    }

    /// True if the run has ended for any reason. Then no more requests are sent.
    pub fn has_ended(&self) -> bool {
        self.core.end_reason.borrow().is_some()
    }

    /// True if the caller interrupted the run.
    pub fn is_interrupted(&self) -> bool {
        matches!(*self.core.end_reason.borrow(), Some(ErrorKind::Interrupted))
    }

    /// Waits until `instant` on the client's clock. Returns `false` if the run ends or reaches its
    /// deadline first.
    pub async fn wait_until(&self, instant: Duration) -> bool {
        self.core.sleep(instant.saturating_sub(self.clock().now())).await.is_ok()
    }

    /// Waits until the run ends or reaches its deadline.
    pub async fn wait_for_end(&self) {
        self.core.wait_for_abort(RetrySafety::Reads).await;
    }

    async fn call(&self, request: &Request<Read>) -> Result<ApiResponse> {
        self.core.call(request, SendInputs::default()).await
    }
}

/// The objects in the body of a list; `None` if the body is not a list of objects.
fn into_objects(body: Json) -> Option<Vec<Object>> {
    let Json::Array(items) = body else { return None };
    let objects = items.into_iter().map(|item| match item {
        Json::Object(object) => Some(object),
        _ => None,
    });
    objects.collect()
}
