//! A sandbox for one module of the recordings, with a user for each kind of caller.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use regex::Regex;
use serde_json::{Map, Value, json};
use undrift_sandbox::{Clock, Model, Profile, RandomSource, Seed, ServiceOptions};

use super::exchange::Exchange;

pub(crate) const HOST: &str = "sandbox.test";
pub(crate) const PORT: &str = "8080";
/// The day on which the clock starts.
pub(crate) const TODAY: &str = "2026-11-23";
const ROOT: &str = "root-of-the-recordings";
const CALLERS: [&str; 10] =
    ["owner", "maint", "dev", "rep", "guest", "nonmem", "alice", "bob", "carol", "blocked"];

/// The characters that a request target does not encode.
const TARGET: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^');

pub(crate) struct World {
    model: Model,
    tokens: BTreeMap<&'static str, Option<String>>,
    /// The module's names, with their values here.
    pub(crate) names: BTreeMap<String, Value>,
    placeholder: Regex,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl World {
    /// A fresh world; the names of its objects begin with `prefix`.
    pub(crate) fn new(prefix: &str) -> Self {
        let start: jiff::Timestamp = format!("{TODAY}T08:00:00Z").parse().expect("a time");
        let asked = AtomicI64::new(start.as_millisecond());
        let options = ServiceOptions {
            // Every request is later than the one before.
            clock: Clock::new(move || {
                let now = asked.fetch_add(1, Ordering::Relaxed);
                jiff::Timestamp::from_millisecond(now).expect("a time")
            }),
            random: RandomSource::seeded(1),
            // The storage of the recordings was stubbed, and no branch was ever protected by itself.
            profile: Profile {
                protection_delay: Duration::from_secs(86_400),
                ..Profile::default()
            },
            ..ServiceOptions::default()
        };
        let seed = json!({"tier": "ultimate", "release": "18.9"});
        let seed = Seed::from_json(seed).expect("a seed");
        let model = Model::new(&seed, ROOT, options).expect("a model");
        let mut world = Self {
            model,
            tokens: BTreeMap::from([("admin", Some(ROOT.to_owned())), ("anon", None)]),
            names: BTreeMap::from([("x".to_owned(), prefix.into())]),
            placeholder: Regex::new(r"\{([a-z]\w*)\}").expect("a pattern"),
        };
        world.tokens.insert("bad", Some("not-a-token".to_owned()));
        let root = world.as_root("GET", "/user", Value::Null);
        world.names.insert("u_root".to_owned(), root["id"].clone());
        let personal = world.as_root("GET", "/namespaces/root", Value::Null);
        world.names.insert("nu_root".to_owned(), personal["id"].clone());
        for caller in CALLERS {
            world.add_caller(caller);
        }
        world
    }

    fn add_caller(&mut self, caller: &'static str) {
        let username = format!("dtu-{caller}");
        let name = caller[..1].to_uppercase() + &caller[1..];
        let user = self.as_root("POST", "/users", json!({
            "username": username, "name": format!("Dt {name}"), "email": format!("{username}@example.com"),
            "password": "Zk29-vPq!77zz", "skip_confirmation": true,
        }));
        let id = user["id"].clone();
        let user = self.as_root("GET", &format!("/users/{id}"), Value::Null);
        self.names.insert(format!("u_{caller}"), id.clone());
        self.names.insert(format!("nu_{caller}"), user["namespace_id"].clone());
        self.names.insert(format!("name_{caller}"), username.into());
        let tokens = format!("/users/{id}/personal_access_tokens");
        let token = json!({"name": "dt", "scopes": ["api"], "expires_at": "2027-06-11"});
        let token = self.as_root("POST", &tokens, token);
        self.tokens.insert(caller, token["token"].as_str().map(str::to_owned));
        if caller == "blocked" {
            self.as_root("POST", &format!("/users/{id}/block"), Value::Null);
        }
    }

    fn as_root(&self, method: &str, path: &str, body: Value) -> Value {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into() };
        let answer = self.send(method, path, Some(ROOT), "application/json", body);
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.body);
        answer.body
    }

    /// Sends a recorded request; `None` if it uses a name without a value.
    pub(crate) fn play(&mut self, exchange: &Exchange) -> Option<Answer> {
        let token = match exchange.role.as_str() {
            // A token that may only read; its module creates it.
            "readonly" => Some(self.names.get("ro")?.as_str()?.to_owned()),
            role => self.tokens.get(role)?.clone(),
        };
        let Value::String(mut path) = self.fill_names(&exchange.path.as_str().into())? else {
            return None;
        };
        let query = match self.fill_names(&exchange.query)? {
            Value::Object(pairs) => encode(&pairs),
            _ => String::new(),
        };
        if !query.is_empty() {
            path = format!("{path}?{query}");
        }
        let (content_type, body) = if let Some(body) = &exchange.body {
            ("application/json", self.fill_names(body)?.to_string())
        } else if let Some(raw) = &exchange.raw {
            let Value::String(raw) = self.fill_names(&raw.as_str().into())? else { return None };
            (exchange.content_type.as_deref().unwrap_or_default(), raw)
        } else if let Some(form) = &exchange.form {
            let Value::Object(form) = self.fill_names(&form.clone().into())? else { return None };
            ("application/x-www-form-urlencoded", encode(&form))
        } else {
            ("", String::new())
        };
        let answer =
            self.send(&exchange.method, &path, token.as_deref(), content_type, body.into());
        if answer.status < 300 {
            self.save_values(exchange, &answer.body);
        }
        Some(answer)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        content_type: &str,
        body: Vec<u8>,
    ) -> Answer {
        let target = utf8_percent_encode(path, TARGET);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v4{target}"))
            .header("host", format!("{HOST}:{PORT}"));
        if let Some(token) = token {
            request = request.header("private-token", token);
        }
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let response = self.model.answer(request.body(Bytes::from(body)).expect("a request"));
        let text = String::from_utf8_lossy(response.body());
        let body = match serde_json::from_slice(response.body()) {
            Ok(body) => body,
            Err(_) if text.is_empty() => Value::Null,
            Err(_) => text.into(),
        };
        Answer { status: response.status().as_u16(), headers: response.headers().clone(), body }
    }

    /// Keeps the values that later requests use.
    fn save_values(&mut self, exchange: &Exchange, body: &Value) {
        for (name, place) in &exchange.save {
            let place = place.as_str().unwrap_or_default().replace('.', "/");
            if let Some(value) = body.pointer(&format!("/{place}")) {
                self.names.insert(name.clone(), value.clone());
            }
        }
        let name = exchange.answer["id"].as_str().unwrap_or_default();
        let name = name.trim_start_matches('<').trim_end_matches('>');
        if exchange.method == "POST" && !["", "id", "x"].contains(&name) && body.is_object() {
            self.names.entry(name.to_owned()).or_insert_with(|| body["id"].clone());
        }
    }

    /// `value` with its names replaced; `None` if one is unknown.
    fn fill_names(&self, value: &Value) -> Option<Value> {
        Some(match value {
            Value::String(text) => {
                let whole =
                    self.placeholder.captures(text).filter(|found| found[0].len() == text.len());
                if let Some(known) = whole.and_then(|found| self.names.get(&found[1])) {
                    return Some(known.clone());
                }
                let mut filled = text.clone();
                for found in self.placeholder.captures_iter(text) {
                    let known = self.names.get(&found[1])?;
                    let known = known.as_str().map_or_else(|| known.to_string(), str::to_owned);
                    filled = filled.replace(&found[0], &known);
                }
                let prefix = self.prefix();
                filled
                    .replace("<x>", prefix)
                    .replace("<X>", &prefix.to_uppercase())
                    .replace("<today>", TODAY)
                    .into()
            }
            Value::Array(items) => {
                items.iter().map(|item| self.fill_names(item)).collect::<Option<Vec<_>>>()?.into()
            }
            Value::Object(members) => {
                let mut filled = Map::new();
                for (key, value) in members {
                    let Value::String(key) = self.fill_names(&key.as_str().into())? else {
                        return None;
                    };
                    filled.insert(key, self.fill_names(value)?);
                }
                filled.into()
            }
            other => other.clone(),
        })
    }

    pub(crate) fn prefix(&self) -> &str {
        self.names["x"].as_str().unwrap_or_default()
    }
}

/// `pairs` as a query or a form; the name of a list is repeated.
fn encode(pairs: &Map<String, Value>) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let text = match value {
                Value::String(text) => text.clone(),
                // As the recording client wrote them.
                Value::Bool(true) => "True".to_owned(),
                Value::Bool(false) => "False".to_owned(),
                Value::Null => "None".to_owned(),
                other => other.to_string(),
            };
            form.append_pair(name, &text);
        }
    }
    form.finish()
}
