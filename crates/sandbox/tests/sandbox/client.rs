//! A started sandbox and a plain client for it.

use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use undrift_sandbox::{Clock, RunningSandbox, SandboxConfig, Seed, ServiceTier, start};

use super::facts::Fact;

/// The token of `root` in every test.
pub(crate) const ROOT: &str = "root-token";

/// A sandbox that is running.
pub(crate) struct World {
    pub(crate) running: RunningSandbox,
    http: reqwest::Client,
}

/// One exchange: status, headers, body (null when it is empty).
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

/// One row of a table of calls: the rule, the caller, the method and path, the body, and the
/// answer.
pub(crate) type Row = (&'static Fact, &'static str, &'static str, &'static str, Value, u16, Value);

/// A path for a table of calls; it lives until the end of the tests.
pub(crate) fn leak(path: String) -> &'static str {
    Box::leak(path.into_boxed_str())
}

pub(crate) fn client() -> reqwest::Client {
    // No TLS is used here, but a client cannot be built without a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client")
}

impl World {
    pub(crate) async fn start(config: SandboxConfig) -> Self {
        let config = SandboxConfig { token: Some(ROOT.to_owned()), ..config };
        Self { running: start(config).await.expect("the sandbox starts"), http: client() }
    }

    /// A sandbox in memory with this seed, in which every request is later than the one before, so
    /// that sorting by time is unambiguous.
    pub(crate) async fn from_seed(seed: Value) -> Self {
        let asked = AtomicI64::new(1_900_000_000_000);
        let clock = Clock::new(move || {
            jiff::Timestamp::from_millisecond(asked.fetch_add(1, Ordering::Relaxed))
                .expect("a time")
        });
        Self::seeded(seed, SandboxConfig { clock, ..SandboxConfig::default() }).await
    }

    pub(crate) async fn seeded(seed: Value, config: SandboxConfig) -> Self {
        let seed = Some(Seed::from_json(seed).expect("a seed"));
        Self::start(SandboxConfig { seed, ..config }).await
    }

    /// The usual world on this tier.
    pub(crate) async fn with_tier(tier: ServiceTier) -> Self {
        Self::seeded(usual_seed(), SandboxConfig { tier: Some(tier), ..SandboxConfig::default() })
            .await
    }

    /// The usual world with this release in its seed.
    pub(crate) async fn at(release: &str) -> Self {
        let mut seed = usual_seed();
        seed["release"] = release.into();
        Self::from_seed(seed).await
    }

    /// The usual world: one group with a project, and a user for each role. Their tokens are their
    /// names.
    pub(crate) async fn usual() -> Self {
        Self::from_seed(usual_seed()).await
    }

    pub(crate) fn request(&self, token: &str, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let address = format!("{}/api/v4{path}", self.running.url());
        let request = self.http.request(method, address);
        if token.is_empty() { request } else { request.header("PRIVATE-TOKEN", token) }
    }

    /// A call with a JSON body, unless it is null.
    pub(crate) async fn call(&self, token: &str, method: &str, path: &str, body: &Value) -> Reply {
        let request = self.request(token, method, path);
        let request = if body.is_null() {
            request
        } else {
            request.header("content-type", "application/json").body(body.to_string())
        };
        read_reply(request.send().await.expect("an answer")).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Reply {
        self.call(token, "GET", path, &Value::Null).await
    }

    /// The stored secret of a hook; no operation returns it.
    pub(crate) fn hook_token(&self, hook_id: i64) -> Option<String> {
        let sql = "SELECT settings ->> 'token' FROM hooks WHERE id = ?1";
        self.running.inspect(|db| db.query_row(sql, [hook_id], |row| row.get(0)).expect("a hook"))
    }

    pub(crate) async fn group_id(&self, group: &str) -> i64 {
        let path = format!("/groups/{}", group.replace('/', "%2F"));
        self.get(ROOT, &path).await.body["id"].as_i64().expect("a group")
    }

    /// Makes the calls of a table in order, and compares status and body. A null body is not
    /// compared; an object must be contained.
    pub(crate) async fn check(&self, rows: Vec<Row>) {
        for (fact, token, method, path, body, status, expected) in rows {
            let reply = self.call(token, method, path, &body).await;
            let place = format!("{fact}: {token} {method} {path} {body}");
            assert_eq!(reply.status, status, "{place}\n{}", reply.body);
            assert!(
                contains(&reply.body, &expected),
                "{place}\nexpected {expected}\ngot {}",
                reply.body
            );
        }
    }
}

pub(crate) async fn read_reply(response: Response) -> Reply {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let text = response.text().await.expect("a body");
    Reply {
        status,
        headers,
        body: serde_json::from_str(&text).unwrap_or(if text.is_empty() {
            Value::Null
        } else {
            Value::String(text)
        }),
    }
}

/// True if `whole` contains everything in `part`.
pub(crate) fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (_, Value::Null) => true,
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| match (whole.get(key), value) {
                (Some(found), Value::Null) => found.is_null(),
                (Some(found), _) => contains(found, value),
                (None, _) => false,
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

pub(crate) fn usual_seed() -> Value {
    json!({
        "tier": "ultimate",
        "users": [
            {"username": "olive", "token": "olive"},
            {"username": "mia", "token": "mia"},
            {"username": "dan", "token": "dan"},
            {"username": "rita", "token": "rita"},
            {"username": "gus", "token": "gus"},
            {"username": "stranger", "token": "stranger"},
            {"username": "blocked", "token": "blocked", "state": "blocked"},
        ],
        "groups": [{
            "path": "acme",
            "visibility": "public",
            "members": [
                {"user": "olive", "access_level": "owner"},
                {"user": "mia", "access_level": 40},
                {"user": "dan", "access_level": "Developer"},
                {"user": "rita", "access_level": "reporter"},
                {"user": "gus", "access_level": 10},
            ],
        }],
        "projects": [
            {"path": "acme/shop", "merge_requests": [{"title": "Change"}]},
            {"path": "acme/site", "settings": {"visibility": "public"}, "merge_requests": [{"title": "Change"}]},
        ],
    })
}
