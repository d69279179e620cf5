//! Rate limits, with the two kinds of 429 that the real service sends.
//!
//! Requests are counted in windows of one minute: for each user, and for each user and operation. A
//! request above a user's limit gets a 429 in plain text, with headers for the end of the window. A
//! request above an operation's limit gets a 429 in JSON, with only the header `Retry-After`.

use super::routes::Route;
use crate::prelude::*;

/// The route limits of the largest hosted service, in requests per user and minute.
const ROUTE_LIMITS: [(Method, &str, u32); 3] = [
    (Method::GET, "/projects/{id}", 400),
    (Method::DELETE, "/projects/{id}/members/{user_id}", 60),
    (Method::DELETE, "/groups/{id}/members/{user_id}", 60),
];

/// The length of a window, in seconds.
const WINDOW_SECONDS: i64 = 60;

/// The rate limits. `None` means no limit, which is the default of the real service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// The limit of requests per minute for one user. Callers without a valid token share one limit.
    pub max_per_user: Option<u32>,
    /// The limit of requests per minute for one user and one operation.
    pub max_per_operation: Option<u32>,
    /// True if single projects and removals of members have their own limits, as on the largest
    /// hosted service.
    pub has_route_limits: bool,
}

/// The id of the calling user; `None` for a caller without a valid token.
type CallerId = Option<i64>;

/// The counts of one window. `minute` is the number of whole minutes since 1970.
#[derive(Debug, Default)]
struct LimitWindow {
    minute: i64,
    requests_by_user: HashMap<CallerId, u32>,
    requests_by_operation: HashMap<(CallerId, &'static Method, &'static str), u32>,
}

/// The limits, and the counts of the current window.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    limits: RateLimits,
    window: Mutex<LimitWindow>,
}

/// The state of the counters after one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestCount {
    user_id: CallerId,
    /// The number of requests of the user in this window, including the counted request.
    user_requests: u32,
    /// The number of requests of the user to the operation, including the counted request.
    operation_requests: u32,
    limits: RateLimits,
    /// The end of the window, in seconds since 1970. `seconds_to_reset` is the time until then.
    reset_second: i64,
    seconds_to_reset: i64,
}

impl RateLimiter {
    /// A limiter; `None` if `limits` has no limits.
    pub(crate) fn new(limits: RateLimits) -> Option<Self> {
        (limits != RateLimits::default()).then(|| Self { limits, window: Mutex::default() })
    }

    /// Counts a request to an operation.
    pub(crate) fn count_request(
        &self,
        user_id: CallerId,
        route: &'static Route,
        now: Timestamp,
    ) -> RequestCount {
        let mut route_limits = ROUTE_LIMITS.iter().filter(|_| self.limits.has_route_limits);
        let route_limit =
            route_limits.find(|(method, path, _)| *method == route.method && *path == route.path);
        let route_limit = route_limit.map(|(.., limit)| *limit);
        let limits = RateLimits {
            max_per_operation: route_limit.or(self.limits.max_per_operation),
            ..self.limits
        };
        let minute = now.as_second().div_euclid(WINDOW_SECONDS);
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if window.minute != minute {
            *window = LimitWindow { minute, ..LimitWindow::default() };
        }
        let reset_second = (minute + 1) * WINDOW_SECONDS;
        RequestCount {
            user_id,
            user_requests: increment(window.requests_by_user.entry(user_id).or_default()),
            operation_requests: increment(
                window
                    .requests_by_operation
                    .entry((user_id, &route.method, route.path))
                    .or_default(),
            ),
            limits,
            reset_second,
            seconds_to_reset: reset_second - now.as_second(),
        }
    }
}

fn increment(count: &mut u32) -> u32 {
    *count = count.saturating_add(1);
    *count
}

impl RequestCount {
    /// The 429 if the request is above a limit; `None` otherwise.
    pub(crate) fn refusal(&self) -> Option<Answer> {
        if self.limits.max_per_user.is_some_and(|limit| self.user_requests > limit) {
            let mut answer =
                Answer::with_json_text(StatusCode::TOO_MANY_REQUESTS, b"Retry later\n".to_vec());
            let time = Timestamp::from_second(self.reset_second).unwrap_or_default();
            answer.headers = vec![
                ("content-type", "text/plain".to_owned()),
                ("retry-after", self.seconds_to_reset.to_string()),
                ("ratelimit-resettime", httpdate::fmt_http_date(time.into())),
            ];
            return Some(answer);
        }
        let is_over_limit =
            self.limits.max_per_operation.is_some_and(|limit| self.operation_requests > limit);
        is_over_limit.then(|| {
            let mut answer = Answer::from(rate_limit_error());
            answer.headers.push(("retry-after", WINDOW_SECONDS.to_string()));
            answer
        })
    }

    /// Adds the headers with the state of the user's limit to a response.
    pub(crate) fn add_headers(&self, answer: &mut Answer) {
        let Some(limit) = self.limits.max_per_user else { return };
        let caller_type = if self.user_id.is_some() { "authenticated" } else { "unauthenticated" };
        answer.headers.extend([
            ("ratelimit-name", format!("throttle_{caller_type}_api")),
            ("ratelimit-limit", limit.to_string()),
            ("ratelimit-observed", self.user_requests.to_string()),
            ("ratelimit-remaining", limit.saturating_sub(self.user_requests).to_string()),
            ("ratelimit-reset", self.reset_second.to_string()),
        ]);
    }
}

/// The 429 of an operation's limit, which the application sends.
pub(crate) fn rate_limit_error() -> ErrorResponse {
    let message = "This endpoint has been requested too many times. Try again later.";
    ErrorResponse::message(StatusCode::TOO_MANY_REQUESTS, json!({ "error": message }))
}

#[cfg(test)]
mod tests {
    use super::super::routes;
    use super::*;

    #[test]
    fn callers_and_operations_are_counted_apart_until_the_minute_is_over() {
        let limits = RateLimits {
            max_per_user: Some(2),
            max_per_operation: Some(1),
            has_route_limits: false,
        };
        let limiter = RateLimiter::new(limits).expect("limits");
        let routes: Vec<_> = routes::all_routes().map(|(_, route)| route).collect();
        let time_at = |second| Timestamp::from_second(second).expect("a time");
        for (caller, number, second, body_start) in [
            (Some(1), 7, 60, None),
            (Some(1), 8, 61, None),
            (Some(1), 9, 62, Some("Retry later\n")),
            (Some(2), 7, 63, None),
            (Some(2), 7, 119, Some("{\"message\"")),
            (None, 7, 119, None),
            (Some(1), 7, 120, None),
        ] {
            let refusal = limiter.count_request(caller, routes[number], time_at(second)).refusal();
            let body = refusal.and_then(|answer| answer.body);
            assert_eq!(body.is_some(), body_start.is_some(), "{caller:?} {number} {second}");
            assert!(
                body.unwrap_or_default().starts_with(body_start.unwrap_or_default().as_bytes()),
                "{caller:?} {number} {second}"
            );
        }
    }

    #[test]
    fn single_routes_have_limits_of_their_own() {
        for (method, path, limit) in ROUTE_LIMITS {
            let limits = RateLimits { has_route_limits: true, ..RateLimits::default() };
            let limiter = RateLimiter::new(limits).expect("limits");
            let is_limited_route =
                |route: &&'static Route| route.method == method && route.path == path;
            let all_routes = || routes::all_routes().map(|(_, route)| route);
            let route = all_routes().find(is_limited_route).expect("a route of the table");
            let other_route =
                all_routes().find(|entry| !is_limited_route(entry)).expect("another one");
            let now = Timestamp::from_second(60).expect("a time");
            let is_refused = |route| limiter.count_request(Some(1), route, now).refusal().is_some();
            let answered_count = (0..=limit).take_while(|_| !is_refused(route)).count();
            assert_eq!(answered_count, limit as usize, "{method} {path}");
            assert!(!is_refused(other_route));
        }
    }

    #[test]
    fn there_are_no_limits_by_default() {
        assert!(RateLimiter::new(RateLimits::default()).is_none());
    }
}
