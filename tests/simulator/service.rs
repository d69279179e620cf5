//! The simulated service: the sandbox's model behind the client's transport, on a clock that only
//! advances when everybody waits, with the faults of a schedule.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value as Json, json};
use tokio::{sync::Notify, time::Instant};
use undrift::{
    api::{
        BodyError, Clock, EncodedBody, FormPart, Random, ReadClient, RequestPhase, SendError,
        SendErrorKind, Transport, WireRequest, WireResponse,
    },
    operation::Method,
    sandbox::{self, Model, Profile, RandomSource, ServiceOptions},
};

use crate::{
    identity::{self, ShownContainer},
    numbers::Numbers,
    people::ForeignChange,
    scenario::Prepared,
    schedule::{Damage, Fault, Missing, Schedule, Surprise, Throttle},
};

/// The start of a simulation, in seconds of the Unix epoch.
const EPOCH: u64 = 1_800_000_000;

/// The address of the service. The name is never resolved.
pub(crate) const ADDRESS: &str = "https://service.example";

/// The state shared by all runs of one simulation.
pub(crate) struct World {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) schedule: Schedule,
    pub(crate) model: Arc<Model>,
    start: Instant,
    state: Mutex<State>,
    /// Notified when the first run is killed.
    pub(crate) killed: Notify,
    /// Notified when a second run is to start.
    pub(crate) second: Notify,
}

/// The run that sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunRole {
    /// The run with the faults.
    First,
    /// A second one at the same time.
    Second,
    /// A later one without faults.
    Clean,
}

/// The record of a simulation.
#[derive(Default)]
pub(crate) struct State {
    /// The number of requests of the first run.
    requests: usize,
    numbers: Option<Numbers>,
    revoked: bool,
    forbidden: Vec<String>,
    /// The last page of each list.
    pages: BTreeMap<String, Json>,
    pub(crate) sent: Vec<SentRequest>,
    /// The faults that occurred, by their position in the schedule.
    pub(crate) triggered: Vec<usize>,
    /// The changes by others.
    pub(crate) changes: Vec<ForeignChange>,
    /// The containers that the service showed.
    pub(crate) shown: Vec<ShownContainer>,
    /// The periods in which the service asked not to be called.
    pub(crate) pauses: Vec<(Duration, Duration)>,
    /// The times of the first run's interruption and of the first refused token.
    pub(crate) interrupted: Option<Duration>,
    pub(crate) refused: Option<Duration>,
    /// The time of the last delayed request.
    pub(crate) settled: Duration,
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct SentRequest {
    pub(crate) who: RunRole,
    /// Its number among those of the first run.
    pub(crate) number: usize,
    pub(crate) at: Duration,
    /// The time at which it reached the service.
    pub(crate) arrived: Duration,
    /// The time of the response, if any.
    pub(crate) answered: Option<Duration>,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    /// Its body; of a form only the names.
    pub(crate) body: Map<String, Json>,
    /// The containers that it writes to, or names.
    pub(crate) containers: Vec<identity::Id>,
    /// The secrets in its body.
    pub(crate) secrets: Vec<&'static str>,
}

impl SentRequest {
    /// A request of which only the sender is known.
    pub(crate) fn of(who: RunRole) -> Self {
        Self {
            who,
            number: 0,
            at: Duration::ZERO,
            arrived: Duration::ZERO,
            answered: None,
            method: "GET",
            target: String::new(),
            body: Map::new(),
            containers: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

impl World {
    pub(crate) fn new(prepared: Arc<Prepared>, schedule: Schedule, profile: Profile) -> Arc<Self> {
        let start = Instant::now();
        let skew = schedule.skew;
        let clock = move || {
            let seconds = i64::try_from(EPOCH).unwrap() + skew;
            jiff::Timestamp::new(seconds, 0).unwrap()
                + jiff::SignedDuration::try_from(start.elapsed()).unwrap()
        };
        let chance = RandomSource::seeded(schedule.seed);
        let options = ServiceOptions {
            clock: sandbox::Clock::new(clock),
            random: chance,
            profile,
            ..ServiceOptions::default()
        };
        let model = Model::from_image(&prepared.image, options).unwrap();
        let state = State { numbers: Some(Numbers::new(schedule.seed)), ..State::default() };
        let (killed, second) = (Notify::new(), Notify::new());
        Arc::new(Self {
            prepared,
            schedule,
            model: Arc::new(model),
            start,
            state: Mutex::new(state),
            killed,
            second,
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Numbers) -> T) -> T {
        draw(self.state().numbers.as_mut().unwrap())
    }
}

/// The transport of one run to the service.
pub(crate) struct ModelTransport {
    pub(crate) world: Arc<World>,
    pub(crate) who: RunRole,
    /// The client that uses it, to interrupt it. Set only during the run, because both refer to
    /// each other.
    pub(crate) client: Mutex<Option<ReadClient>>,
}

impl std::fmt::Debug for ModelTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl Transport for ModelTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(self.exchange(request))
    }
}

type Reply = Result<WireResponse, SendError>;

impl ModelTransport {
    async fn exchange(&self, request: WireRequest) -> Reply {
        let world = &self.world;
        let (number, place) = self.record_request(&request);
        let (there, back) =
            world.draw(|numbers| (1 + numbers.next() % 30, 1 + numbers.next() % 30));
        // One request may wait for many requests of another run.
        let there = match world.schedule.crossed && self.who != RunRole::Clean {
            true => there << world.draw(|numbers| numbers.below(10)),
            false => there,
        };
        tokio::time::sleep(Duration::from_millis(there)).await;
        world.state().sent[place].arrived = world.now();
        let mut fault = None;
        let due = world
            .schedule
            .faults
            .iter()
            .enumerate()
            .filter(|(_, (at, _))| self.who == RunRole::First && *at == number);
        for (place, (_, due)) in due {
            world.state().triggered.push(place);
            match due {
                Fault::Foreign(act) => world.act(0, *act),
                Fault::Elsewhere(at, act) => world.act(*at, *act),
                Fault::Second => world.second.notify_one(),
                Fault::Interrupt => {
                    self.client.lock().unwrap().as_ref().unwrap().interrupt();
                    world.state().interrupted.get_or_insert(world.now());
                }
                Fault::KillBefore => return self.kill_run().await,
                Fault::Revoked => world.state().revoked = true,
                Fault::ForbiddenFromHere => {
                    world.state().forbidden.push(without_query(&request.target).to_owned());
                }
                other => fault = fault.or(Some(other)),
            }
        }
        let reply = match fault {
            None => Ok(self.answer(&request)),
            Some(fault) => self.apply_fault(fault, &request, place).await,
        };
        tokio::time::sleep(Duration::from_millis(back)).await;
        if let Ok(response) = &reply {
            world.state().sent[place].answered = Some(world.now());
            self.record_response(response);
            if let Ok(body) = &response.body {
                let shown =
                    identity::shown_containers(self.who, world.now(), &request.target, body);
                world.state().shown.extend(shown);
            }
        }
        reply
    }

    /// Records a request: its number among those of the first run, and its position among all.
    fn record_request(&self, request: &WireRequest) -> (usize, usize) {
        let mut state = self.world.state();
        let number = state.requests;
        if self.who == RunRole::First {
            state.requests += 1;
        }
        let says = match &request.body {
            EncodedBody::Empty => Map::new(),
            EncodedBody::Json(json) => serde_json::from_slice(json).unwrap(),
            EncodedBody::Form(parts) => {
                let name = |part: &FormPart| part.name.split('[').next().unwrap().to_owned();
                parts.iter().map(|part| (name(part), Json::Null)).collect()
            }
        };
        let (method, target, at) =
            (request.method.as_str(), request.target.clone(), self.world.now());
        state.sent.push(SentRequest {
            number,
            at,
            arrived: at,
            method,
            containers: identity::target_ids(request),
            secrets: identity::secrets_in(request),
            target,
            body: says,
            ..SentRequest::of(self.who)
        });
        (number, state.sent.len() - 1)
    }

    /// Records what a response asks the run to do or to avoid.
    fn record_response(&self, response: &WireResponse) {
        let now = self.world.now();
        let mut state = self.world.state();
        if self.who == RunRole::First && response.status == 401 {
            state.refused.get_or_insert(now);
        }
        let wait =
            response.headers.get("x-pause").and_then(|wait| wait.to_str().ok()?.parse().ok());
        if let Some(wait) = wait.filter(|_| self.who == RunRole::First) {
            state.pauses.push((now, now + Duration::from_secs(wait)));
        }
    }

    /// The service's response, without faults.
    fn answer(&self, request: &WireRequest) -> WireResponse {
        {
            let state = self.world.state();
            let refused = self.who == RunRole::First;
            if refused && state.revoked {
                return json_response(401, &json!({"message": "401 Unauthorized"}));
            }
            if refused && state.forbidden.iter().any(|path| path == without_query(&request.target))
            {
                return json_response(403, &json!({"message": "403 Forbidden"}));
            }
        }
        carry_out(&self.world.model, self.world.prepared.scenario.token, request)
    }

    async fn apply_fault(&self, fault: &Fault, request: &WireRequest, place: usize) -> Reply {
        let broken = || {
            Err(SendError::new(RequestPhase::MaybeSent, SendErrorKind::Network, "connection reset"))
        };
        let time_limit = request.timeout.min(request.idle_timeout);
        let limit = |seconds: &u64| Duration::from_secs(*seconds).min(time_limit);
        match fault {
            Fault::NotSent => Err(SendError::new(
                RequestPhase::NotSent,
                SendErrorKind::Network,
                "connection refused",
            )),
            Fault::DropBefore => broken(),
            Fault::DropAfter => {
                self.answer(request);
                broken()
            }
            Fault::Late(seconds) => {
                self.carry_out_later(request, place, Duration::from_secs(*seconds));
                broken()
            }
            Fault::Slow(seconds) if limit(seconds) < Duration::from_secs(*seconds) => {
                self.carry_out_later(request, place, Duration::from_secs(*seconds));
                self.time_out(time_limit).await
            }
            Fault::Slow(seconds) => {
                tokio::time::sleep(limit(seconds)).await;
                self.world.state().sent[place].arrived = self.world.now();
                Ok(self.answer(request))
            }
            Fault::SlowResponse(seconds) => {
                let answer = self.answer(request);
                if limit(seconds) < Duration::from_secs(*seconds) {
                    return self.time_out(time_limit).await;
                }
                tokio::time::sleep(limit(seconds)).await;
                Ok(answer)
            }
            Fault::StatusBefore(status) => {
                Ok(json_response(*status, &json!({"message": format!("{status} failed")})))
            }
            Fault::StatusAfter(status) => {
                self.answer(request);
                Ok(json_response(*status, &json!({"message": format!("{status} failed")})))
            }
            Fault::Truncated => {
                Ok(WireResponse { body: Err(BodyError::Truncated), ..self.answer(request) })
            }
            Fault::Empty => Ok(WireResponse { body: Ok(Bytes::new()), ..self.answer(request) }),
            Fault::Html => Ok(html_response()),
            Fault::HtmlAfter => {
                self.answer(request);
                Ok(html_response())
            }
            Fault::Object => Ok(json_response(self.answer(request).status, &json!({}))),
            Fault::Throttled(throttle) => Ok(self.throttled(*throttle)),
            Fault::Locked => {
                Ok(json_response(409, &json!({"message": "409 Conflict: Resource lock"})))
            }
            Fault::Refused => Ok(json_response(
                400,
                &json!({"message": {"base": [format!("'{}' is invalid", quotation(request))]}}),
            )),
            Fault::Forbidden => Ok(json_response(403, &json!({"message": "403 Forbidden"}))),
            Fault::NotFound(missing) => Ok(match missing {
                Missing::Project => {
                    json_response(404, &json!({"message": "404 Project Not Found"}))
                }
                Missing::Thing => json_response(404, &json!({"message": "404 Not found"})),
                Missing::Route => json_response(404, &json!({"error": "404 Not Found"})),
                Missing::Feature => json_response(404, &json!({"message": "404 Not Found"})),
            }),
            Fault::Redirect => {
                let mut response = json_response(302, &json!({}));
                response.headers.insert(
                    "location",
                    HeaderValue::from_static("https://elsewhere.example/api/v4/projects/1"),
                );
                Ok(response)
            }
            Fault::List(damage) => Ok(self.damaged(*damage, request)),
            Fault::FieldsMissing => Ok(self.without_fields(self.answer(request))),
            Fault::Spoiled(spoil) => {
                let mut response = self.answer(request);
                let body = response.body.as_ref().ok();
                if let Some(Ok(mut body)) = body.map(|body| serde_json::from_slice(body)) {
                    self.world.draw(|numbers| spoil.apply(&mut body, numbers));
                    response.body = Ok(body.to_string().into());
                }
                Ok(response)
            }
            Fault::Surprise(surprise) => Ok(self.surprise(*surprise, request)),
            Fault::KillAfter => {
                self.answer(request);
                self.kill_run().await
            }
            Fault::Foreign(_)
            | Fault::Elsewhere(..)
            | Fault::Second
            | Fault::Interrupt
            | Fault::KillBefore
            | Fault::Revoked
            | Fault::ForbiddenFromHere => Ok(self.answer(request)),
        }
    }

    /// The response to a write for which the service does something else.
    fn surprise(&self, surprise: Surprise, request: &WireRequest) -> WireResponse {
        let is_edit = matches!(request.method, Method::Put | Method::Patch);
        let told = match &request.body {
            EncodedBody::Json(json) => serde_json::from_slice::<Json>(json).ok(),
            _ => None,
        };
        let Some(Json::Object(mut told)) = told else { return self.answer(request) };
        // Fields that a service never ignores or changes silently: identities, and secrets, which
        // it never shows.
        let is_plain = |name: &String| {
            let name = name.as_str();
            !matches!(name, "key" | "name" | "path" | "url" | "token" | "value" | "title")
                && !name.ends_with("_id")
        };
        let names: Vec<_> = told.keys().filter(|name| is_plain(name)).cloned().collect();
        let texts: Vec<_> = names.iter().filter(|name| told[*name].is_string()).cloned().collect();
        let draw = |names: &[String]| self.world.draw(|numbers| numbers.pick(names).clone());
        match surprise {
            Surprise::Null if is_edit => return json_response(200, &Json::Null),
            // A write-only field would not be missed.
            Surprise::Ignored if is_edit && !told.contains_key("token") => {
                let read = WireRequest {
                    method: Method::Get,
                    body: EncodedBody::Empty,
                    ..request.clone()
                };
                return self.answer(&read);
            }
            Surprise::Alone if is_edit && told.len() == 1 => {
                let error =
                    "description, name are missing, at least one parameter must be provided";
                return json_response(400, &json!({"error": error}));
            }
            Surprise::Dropped if !names.is_empty() => drop(told.remove(&draw(&names))),
            Surprise::Normalised if !texts.is_empty() => {
                let name = draw(&texts);
                told[&name] = told[&name].as_str().unwrap_or_default().to_lowercase().into();
            }
            Surprise::Lowered if told.contains_key("visibility") => {
                told["visibility"] = "private".into();
            }
            _ => {}
        }
        let content = EncodedBody::Json(Json::Object(told).to_string().into());
        self.answer(&WireRequest { body: content, ..request.clone() })
    }

    /// Ends the run here.
    async fn kill_run(&self) -> Reply {
        self.world.killed.notify_one();
        std::future::pending().await
    }

    async fn time_out(&self, patience: Duration) -> Reply {
        tokio::time::sleep(patience).await;
        Err(SendError::new(RequestPhase::MaybeSent, SendErrorKind::Timeout, "timed out"))
    }

    fn carry_out_later(&self, request: &WireRequest, place: usize, after: Duration) {
        let (world, request) = (Arc::clone(&self.world), request.clone());
        {
            let mut state = world.state();
            state.sent[place].arrived = world.now() + after;
            state.settled = state.settled.max(world.now() + after);
        }
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            carry_out(&world.model, world.prepared.scenario.token, &request);
        });
    }

    fn throttled(&self, throttle: Throttle) -> WireResponse {
        let mut response = json_response(
            429,
            &json!({"message": {"error": "This endpoint has been requested too many times."}}),
        );
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH) + self.world.now();
        let now = if self.world.schedule.skew < 0 {
            now - Duration::from_secs(self.world.schedule.skew.unsigned_abs())
        } else {
            now + Duration::from_secs(self.world.schedule.skew.unsigned_abs())
        };
        let seconds = |time: SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().to_string()
        };
        let (name, value, pause) = match throttle {
            Throttle::Seconds(wait) => ("retry-after", wait.to_string(), wait),
            Throttle::Date(wait) => {
                ("retry-after", httpdate::fmt_http_date(now + Duration::from_secs(wait)), wait - 1)
            }
            Throttle::Reset(wait) => {
                ("ratelimit-reset", seconds(now + Duration::from_secs(wait)), wait - 1)
            }
            Throttle::Silent => {
                return WireResponse {
                    body: Ok(Bytes::from_static(b"Retry later\n")),
                    headers: HeaderMap::new(),
                    status: 429,
                };
            }
            Throttle::Absurd => ("retry-after", "86400".to_owned(), 0),
            Throttle::Nonsense => ("retry-after", "-soon".to_owned(), 0),
        };
        response.headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        response.headers.insert("date", httpdate::fmt_http_date(now).parse().unwrap());
        // For the oracle, because whole seconds may cut one off.
        response.headers.insert("x-pause", pause.to_string().parse().unwrap());
        response
    }

    /// A damaged answer, if it is a list; any other unchanged.
    fn damaged(&self, damage: Damage, request: &WireRequest) -> WireResponse {
        let mut response = self.answer(request);
        let body = response.body.as_ref().ok().and_then(|body| serde_json::from_slice(body).ok());
        let Some(Json::Array(mut rows)) = body else { return response };
        let path = without_query(&request.target).to_owned();
        let before = self.world.state().pages.insert(path, Json::Array(rows.clone()));
        let headers = &mut response.headers;
        let number = |headers: &HeaderMap, name: &str| {
            headers.get(name).and_then(|v| v.to_str().ok()?.parse::<u64>().ok())
        };
        let mut set = |name: &'static str, value: u64| {
            drop(headers.insert(name, value.to_string().parse().unwrap()));
        };
        match damage {
            Damage::NoRows => rows.clear(),
            Damage::Short => drop(rows.pop()),
            Damage::Bare => {
                let last = rows.last_mut().and_then(Json::as_object_mut);
                last.into_iter()
                    .for_each(|row| row.retain(|name, _| matches!(name.as_str(), "id" | "key")));
            }
            Damage::Repeated => rows.extend(rows.first().cloned()),
            Damage::PageBefore => {
                rows = before.and_then(|page| page.as_array().cloned()).unwrap_or(rows);
            }
            Damage::TotalMore | Damage::TotalLess => {
                if let Some(total) = number(headers, "x-total") {
                    let wrong = if damage == Damage::TotalMore {
                        total + 1
                    } else {
                        total.saturating_sub(1)
                    };
                    headers.insert("x-total", wrong.to_string().parse().unwrap());
                }
            }
            Damage::NextSkips => {
                headers.remove("link");
                headers.insert("x-next-page", "99".parse().unwrap());
            }
            Damage::LinkElsewhere => {
                let link = "<https://elsewhere.example/api/v4/x?page=2&per_page=100>; rel=\"next\"";
                headers.insert("link", link.parse().unwrap());
            }
            Damage::OtherPage => set("x-page", 7),
            Damage::NoHeaders => {
                [
                    "link",
                    "x-page",
                    "x-per-page",
                    "x-next-page",
                    "x-prev-page",
                    "x-total",
                    "x-total-pages",
                ]
                .into_iter()
                .for_each(|name| drop(headers.remove(name)));
            }
        }
        response.body = Ok(Json::Array(rows).to_string().into());
        response
    }

    /// A response in which every object lacks three of its fields.
    fn without_fields(&self, mut response: WireResponse) -> WireResponse {
        let Some(mut body) =
            response.body.as_ref().ok().and_then(|body| serde_json::from_slice::<Json>(body).ok())
        else {
            return response;
        };
        let objects: Vec<&mut Json> = match &mut body {
            Json::Array(rows) => rows.iter_mut().collect(),
            other => vec![other],
        };
        for object in objects.into_iter().filter_map(Json::as_object_mut) {
            for _ in 0..3 {
                let keys: Vec<_> = object.keys().cloned().collect();
                if !keys.is_empty() {
                    object.remove(self.world.draw(|numbers| numbers.pick(&keys).clone()).as_str());
                }
            }
        }
        response.body = Ok(body.to_string().into());
        response
    }
}

fn without_query(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// The content of a request, as a service quotes it.
fn quotation(request: &WireRequest) -> String {
    match &request.body {
        EncodedBody::Empty => request.target.clone(),
        EncodedBody::Json(json) => String::from_utf8_lossy(json).into_owned(),
        EncodedBody::Form(parts) => String::from_utf8_lossy(&multipart(parts)).into_owned(),
    }
}

/// Lets the service carry out a request and answer it.
fn carry_out(model: &Model, token: &str, request: &WireRequest) -> WireResponse {
    let builder =
        http::Request::builder().method(request.method).uri(format!("/api/v4{}", request.target));
    let builder = builder.header("host", "service.example").header("private-token", token);
    let built = match &request.body {
        EncodedBody::Empty => builder.body(Bytes::new()),
        EncodedBody::Json(json) => {
            builder.header("content-type", "application/json").body(json.clone())
        }
        EncodedBody::Form(parts) => builder
            .header("content-type", "multipart/form-data; boundary=Xy")
            .body(multipart(parts)),
    };
    let (mut parts, body) = model.answer(built.unwrap()).into_parts();
    // A proxy that ends TLS decides where redirects lead.
    if let Some(location) = parts.headers.get_mut("location") {
        let outside = location.to_str().unwrap().replacen("http://", "https://", 1);
        *location = outside.parse().unwrap();
    }
    WireResponse { status: parts.status.as_u16(), headers: parts.headers, body: Ok(body) }
}

fn multipart(parts: &[FormPart]) -> Bytes {
    let mut body = Vec::new();
    for part in parts {
        let file = part
            .file_name
            .as_ref()
            .map(|name| format!("; filename=\"{name}\""))
            .unwrap_or_default();
        body.extend_from_slice(
            format!("--Xy\r\nContent-Disposition: form-data; name=\"{}\"{file}\r\n\r\n", part.name)
                .as_bytes(),
        );
        body.extend_from_slice(&part.value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--Xy--\r\n");
    body.into()
}

fn json_response(status: u16, body: &Json) -> WireResponse {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    WireResponse { status, headers, body: Ok(body.to_string().into()) }
}

fn html_response() -> WireResponse {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/html"));
    WireResponse {
        status: 200,
        headers,
        body: Ok(Bytes::from_static(b"<html><body>Sign in</body></html>")),
    }
}

/// The clock of a run: that of the simulation.
#[derive(Debug)]
pub(crate) struct SimulatedClock(pub(crate) Instant);

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH) + self.now()
    }
    fn sleep(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// The randomness of a run: numbers from a seed.
#[derive(Debug)]
pub(crate) struct SimulatedChance(pub(crate) Mutex<Numbers>);

impl Random for SimulatedChance {
    fn fraction(&self) -> f64 {
        (self.0.lock().unwrap().next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
