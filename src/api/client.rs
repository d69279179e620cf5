//! The client that reads: single things, and lists that are whole.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::HeaderMap;

use super::{
    call::{Core, Delivery, End},
    clock::{Clock, Random, SystemClock, SystemRandom},
    error::{self, ApiError, Kind},
    pace::InFlight,
    service::Service,
    transport::Transport,
};
use crate::{
    operation::{Again, Read, Request},
    page::{Complete, PageError, Pager, Rows, tells_apart},
    planted::Bug,
    secret::Secrets,
    value::{Json, Object},
};

/// How often a list is read again whose answers contradict each other.
const REREADS: u32 = 2;

/// What a client may do, and where it takes time and chance from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many requests may be in flight.
    pub in_flight: InFlight,
    /// How many requests the run may send, retries included.
    pub max_requests: Option<u64>,
    /// Until when the run may send and wait for answers, on the clock.
    pub deadline: Option<Duration>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub random: Arc<dyn Random>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            in_flight: InFlight::ADAPTING,
            max_requests: None,
            deadline: None,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SystemRandom),
        }
    }
}

/// An answer of success.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status. A delete also succeeds with a 404: what it names was absent already.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as far as the request [keeps](Request::keeping) it; `null` if there was none.
    pub body: Json,
}

impl Answer {
    /// The body's object, if it is one.
    pub const fn object(&self) -> Option<&Object> {
        match &self.body {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }
}

/// How often an operation was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests, retries included.
    pub calls: u64,
    /// Requests that were sent again.
    pub retries: u64,
}

/// Sends requests that read, and nothing else. Clones share everything.
///
/// ```
/// use undrift::{api::ReadClient, operation};
///
/// async fn ask(client: ReadClient) {
///     client.get(operation::VARIABLE_LIST.request()).await.ok();
/// }
/// ```
///
/// A request that writes is refused by the compiler:
///
/// ```compile_fail
/// use undrift::{api::ReadClient, operation};
///
/// async fn ask(client: ReadClient) {
///     client.get(operation::VARIABLE_CREATE.request()).await.ok();
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ReadClient {
    pub(super) core: Arc<Core>,
}

impl ReadClient {
    /// A client of `service`. What `secrets` knows is struck from every error; the token should be
    /// among it.
    pub fn new(
        service: Service,
        transport: Arc<dyn Transport>,
        secrets: Arc<Secrets>,
        settings: Settings,
    ) -> Self {
        Self { core: Arc::new(Core::new(service, transport, secrets, settings)) }
    }

    /// How many requests a minute the service answers, as far as its answers said so.
    pub fn a_minute(&self) -> Option<u64> {
        self.core.a_minute()
    }

    /// Asks for one thing that has to be there.
    ///
    /// # Errors
    /// [`ApiError`], also if the answer is `null` or empty.
    pub async fn get(&self, request: Request<Read>) -> Result<Answer, ApiError> {
        let answer = self.call(&request).await?;
        if answer.body.is_null() {
            Err(self.core.malformed(&request, &answer, "nothing"))
        } else {
            Ok(answer)
        }
    }

    /// Asks for one object, which has to say what it is: it holds every one of `keys`.
    ///
    /// # Errors
    /// [`ApiError`], also if a key is missing or null, or the object is that of another id.
    pub async fn get_known(
        &self,
        request: Request<Read>,
        keys: &[&'static str],
    ) -> Result<Answer, ApiError> {
        let request = request.keeping_also(keys);
        let answer = self.get(request.clone()).await?;
        let (asked, found) = (request.own_id(), answer.body["id"].as_u64());
        if asked.is_some() && found.is_some() && asked != found {
            return Err(self.core.malformed(&request, &answer, "an object of another id"));
        }
        let known = keys.iter().all(|key| match *key {
            "id" | "iid" => answer.body[*key].is_u64(),
            "path_with_namespace" | "full_path" | "username" => answer.body[*key].is_string(),
            key => !answer.body[key].is_null(),
        });
        if known { Ok(answer) } else { Err(self.core.nameless(&request, &answer)) }
    }

    /// Asks for one thing that may be absent, which the service says with `null` (a push rule,
    /// reference 2, 4.6) or with nothing.
    ///
    /// # Errors
    /// [`ApiError`]; a 404 is one too.
    pub async fn get_optional(&self, request: Request<Read>) -> Result<Option<Answer>, ApiError> {
        let answer = self.call(&request).await?;
        Ok(if answer.body.is_null() { None } else { Some(answer) })
    }

    /// As [`get_optional`](Self::get_optional), for an object that has to say what it is: if it is
    /// there, it holds every one of `keys`.
    ///
    /// # Errors
    /// [`ApiError`], also if a key is missing or null.
    pub async fn get_optional_known(
        &self,
        request: Request<Read>,
        keys: &[&'static str],
    ) -> Result<Option<Answer>, ApiError> {
        let request = request.keeping_also(keys);
        let answer = self.get_optional(request.clone()).await?;
        match &answer {
            Some(found) if !keys.iter().all(|key| tells_apart(key, &found.body[*key])) => {
                Err(self.core.nameless(&request, found))
            }
            _ => Ok(answer),
        }
    }

    /// Reads a whole collection to show it, whatever its entries are. To conclude from it that
    /// something is absent, use [`list_known`](Self::list_known).
    ///
    /// # Errors
    /// As of [`list_known`](Self::list_known).
    pub async fn list(&self, request: Request<Read>) -> Result<Complete<Object>, ApiError> {
        self.list_known(request, Rows::default()).await
    }

    /// Reads a whole collection whose entries say what they are: each has what `rows` says. If the
    /// answers contradict each other, the whole list is read again from the start, at most twice.
    ///
    /// # Errors
    /// [`ApiError`] if any page failed, or the list is not known to be whole
    /// ([`page_error`](ApiError::page_error)); there is no such thing as half a list.
    pub async fn list_known(
        &self,
        request: Request<Read>,
        rows: Rows,
    ) -> Result<Complete<Object>, ApiError> {
        self.to_the_end(&request, || Pager::new(request.clone(), rows), Pager::finish).await
    }

    /// Reads all that the service shows of a list that it filters after paging. What is not among it
    /// may be there all the same.
    ///
    /// # Errors
    /// As of [`list_known`](Self::list_known).
    pub async fn list_shown(
        &self,
        request: Request<Read>,
        rows: Rows,
    ) -> Result<Vec<Object>, ApiError> {
        let pager = || Ok(Pager::shown(request.clone(), rows));
        self.to_the_end(&request, pager, Pager::into_shown).await
    }

    /// Reads a list with a new pager, and again from the start where the answers contradict each
    /// other.
    async fn to_the_end<T>(
        &self,
        request: &Request<Read>,
        pager: impl Fn() -> Result<Pager, PageError>,
        finish: impl Fn(Pager) -> Result<T, PageError>,
    ) -> Result<T, ApiError> {
        let not_whole = |error| self.core.error(request, Kind::Page(error));
        let mut rereads = 0;
        loop {
            let once = async {
                let mut pager = pager().map_err(not_whole)?;
                while self.page(&mut pager).await?.is_some() {}
                finish(pager).map_err(not_whole)
            };
            match once.await {
                Err(error)
                    if matches!(error.page_error(), Some(PageError::Contradiction(_)))
                        && rereads < REREADS =>
                {
                    rereads += 1;
                }
                result => return result,
            }
        }
    }

    /// Reads the pager's next page and returns its entries; `None` at the end.
    ///
    /// # Errors
    /// [`ApiError`]. Where the request failed, the same page may be asked for again; where the page
    /// was refused ([`page_error`](ApiError::page_error)), the pager is of no more use.
    pub async fn page<'p>(&self, pager: &'p mut Pager) -> Result<Option<&'p [Object]>, ApiError> {
        let Some(request) = pager.next() else { return Ok(None) };
        let mut answer = self.call(&request).await?;
        let Some(objects) = error::objects(answer.body.take()) else {
            return Err(self.core.malformed(&request, &answer, "something other than a list"));
        };
        pager
            .accept(&answer.headers, objects)
            .map(Some)
            .map_err(|e| self.core.error(&request, Kind::Page(e)))
    }

    /// How often each operation was sent so far, by its id.
    pub fn counts(&self) -> BTreeMap<&'static str, Count> {
        self.core.counts()
    }

    /// The clock that the client goes by.
    pub fn clock(&self) -> &dyn Clock {
        &*self.core.settings.clock
    }

    /// Ends the run in good order: from now on nothing is sent, reads that are under way are given
    /// up, and writes get their answer.
    pub fn interrupt(&self) {
        if !Bug::GoOnAfterSignal.is_planted() {
            self.core.end_with(End::Interrupted);
        }
    }

    /// Whether nothing more is sent, whatever the reason.
    pub fn has_ended(&self) -> bool {
        self.core.end.borrow().is_some()
    }

    /// Whether nothing more is sent because somebody asked for it.
    pub fn is_interrupted(&self) -> bool {
        matches!(*self.core.end.borrow(), Some(End::Interrupted))
    }

    /// Waits until `instant` on the client's clock; not longer than the run may take, and not for
    /// nothing. `false` if the run is over before that.
    pub async fn wait_until(&self, instant: Duration) -> bool {
        self.core.sleep(instant.saturating_sub(self.clock().now())).await.is_ok()
    }

    /// Waits until the run is over: it was ended, or took as long as it may.
    pub async fn wait_for_end(&self) {
        self.core.given_up(Again::Reads).await;
    }

    async fn call(&self, request: &Request<Read>) -> Result<Answer, ApiError> {
        self.core.call(request, Delivery::default()).await
    }
}
