//! Sends random requests for all routes to two services, which must give equal responses.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, json};

use super::super::profile::OBSERVED_RELEASE;
use super::super::{Clock, Profile, RandomSource, SandboxConfig, routes, start};
use super::*;

#[path = "../../../../tests/support/dump.rs"]
mod dump;
#[path = "../../../../tests/support/sample.rs"]
mod sample;

const TOKEN: &str = "root-token";
/// The possible values of a segment in a path, by the previous segment.
const SEGMENT_VALUES: &[(&str, &[&str])] = &[
    ("branches", &["main", "next"]),
    ("files", &["a.txt", "b.txt"]),
    ("tags", &["v0", "v1", "v2"]),
    ("access_requests", &["5"]),
    ("integrations", &["external-wiki", "slack"]),
    ("services", &["external-wiki"]),
    ("projects", &["1", "acme%2Fshop", "acme%2Fsite", "3", "99"]),
    ("groups", &["acme", "guests", "acme%2Finner", "99"]),
    ("users", &["2", "alice", "4", "99"]),
    ("members", &["2", "3", "4"]),
    ("variables", &["KEY", "KEY_1"]),
    ("access_tokens", &["4", "5"]),
    ("impersonation_tokens", &["4", "5"]),
    ("custom_attributes", &["KEY"]),
    ("merge_requests", &["1", "1", "2"]),
    ("notes", &["1", "2", "3", "4"]),
    ("protected_branches", &["main", "next"]),
    ("protected_tags", &["v0", "v1", "v2"]),
    ("hooks", &["1", "2"]),
    ("remote_mirrors", &["1", "2"]),
    ("freeze_periods", &["1", "2"]),
    ("pipeline_schedules", &["1", "2"]),
    ("badges", &["1", "2"]),
    ("milestones", &["1", "2"]),
    ("system", &["project", "group", "user"]),
    ("environments", &["1"]),
    ("cluster_agents", &["1", "2"]),
    ("member_roles", &["1"]),
    ("ldap_group_links", &["KEY"]),
    ("saml_group_links", &["KEY"]),
];
const OTHER_SEGMENT_VALUES: &[&str] = &["1", "2", "3", "KEY", "logo.png"];

fn seed() -> Seed {
    let merge_requests = json!([{"title": "Change", "notes": [{"body": "a comment"}]}]);
    let seed = json!({
        "tier": "ultimate",
        "users": [{"username": "alice", "token": "alice-token"}, {"username": "bob", "token": "bob-token"}, {"username": "carol"}, {"username": "dora", "token": "dora-token"}],
        "groups": [
            {"path": "acme", "visibility": "public", "members": [{"user": "alice", "access_level": 50}, {"user": "bob", "access_level": 40}]},
            {"path": "acme/inner", "members": [{"user": "carol", "access_level": 30}]},
            {"path": "guests"},
        ],
        "projects": [
            {"path": "acme/shop", "branches": ["main"], "variables": [{"key": "KEY", "value": "v"}], "hooks": [{"url": "https://a.example"}],
             "merge_requests": merge_requests},
            {"path": "acme/site", "settings": {"visibility": "public"}, "members": [{"user": "carol", "access_level": 30}],
             "merge_requests": merge_requests},
            {"path": "acme/inner/lib", "push_rule": {"member_check": true}},
        ],
    });
    Seed::from_json(seed).expect("a seed")
}

/// Options that are the same each time. The clock advances one hour with each use.
fn options() -> ServiceOptions {
    options_for(Profile::default().release)
}

fn options_for(release: Release) -> ServiceOptions {
    let hours = AtomicI64::new(500_000);
    let clock = move || {
        Timestamp::from_second(hours.fetch_add(1, Ordering::Relaxed) * 3_600).expect("a time")
    };
    let profile = Profile {
        deletion_delay: Some(2),
        import_delay: Duration::from_secs(20 * 3_600),
        gists: true,
        normalizes_values: true,
        echoes_input: true,
        ..Profile::default().with_release(release)
    };
    ServiceOptions {
        clock: Clock::new(clock),
        random: RandomSource::seeded(7),
        profile,
        ..ServiceOptions::default()
    }
}

/// A call of every route, in random order, with parameters that are mostly valid.
fn requests_of_all_routes(random: &mut StdRng, host: &str) -> Vec<Request<Bytes>> {
    let mut requests: Vec<_> = routes::all_routes()
        .map(|(path, route)| random_request(random, host, &route.method, &path))
        .collect();
    requests.shuffle(random);
    requests
}

fn random_request(random: &mut StdRng, host: &str, method: &Method, path: &str) -> Request<Bytes> {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        let values = SEGMENT_VALUES
            .iter()
            .find(|(previous_segment, _)| segments.last() == Some(previous_segment))
            .map_or(OTHER_SEGMENT_VALUES, |(_, values)| values);
        segments.push(if segment.starts_with('{') {
            values.choose(random).expect("a segment")
        } else {
            segment
        });
    }
    let path = segments.join("/");
    let parameters = random_parameters(random);
    let is_head = *method == Method::GET && random.random_ratio(1, 10);
    let method = if is_head { &Method::HEAD } else { method };
    let token = *[
        "root-token",
        "root-token",
        "root-token",
        "alice-token",
        "bob-token",
        "dora-token",
        "",
        "wrong",
    ]
    .choose(random)
    .expect("a token");
    let mut request =
        Request::builder().method(method).header("host", host).header("private-token", token);
    let body = if dispatch::is_read(method) {
        let query: Vec<String> = parameters
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
            .collect();
        request = request.uri(format!("{path}?{}", query.join("&").replace(' ', "+")));
        String::new()
    } else if path.ends_with("uploads") || random.random_ratio(1, 10) {
        let make_part = |head: &str, value: &str| {
            format!("--Xy\r\nContent-Disposition: form-data; name={head}\r\n\r\n{value}\r\n")
        };
        let texts = parameters
            .iter()
            .filter_map(|(name, value)| Some(make_part(&format!("\"{name}\""), value.as_str()?)));
        let files = ["file", "avatar"]
            .map(|name| make_part(&format!("\"{name}\"; filename=\"logo.png\""), "content"));
        request = request.uri(path).header("content-type", "multipart/form-data; boundary=Xy");
        texts.chain(files).collect::<String>() + "--Xy--\r\n"
    } else {
        request = request.uri(path).header("content-type", "application/json");
        Value::Object(parameters).to_string()
    };
    request.body(body.into()).expect("a request")
}

/// Random values for the parameters of all operations. Sometimes a few parameters are left out.
fn random_parameters(random: &mut StdRng) -> Map<String, Value> {
    let number = random.random_range(0..20);
    let level = [10, 20, 30, 40, 50][random.random_range(0..5)];
    let mut common_parameters = json!({
        "key": format!("KEY_{}", number % 3), "value": format!("value {number}"), "url": format!("https://Hook-{number}.example"),
        "path": format!("path-{number}"), "name": format!(" name {number} "), "description": format!("text {number} "),
        "username": format!("user{number}"), "force_random_password": true, "email": format!("user{number}@example.org"), "user_id": random.random_range(1..6),
        "access_level": level, "group_id": random.random_range(5..9), "group_access": level, "member_check": true,
        "personal_access_token": "x", "repo_id": number, "target_namespace": "acme", "namespace_path": "acme",
        "extserver_url": "https://h.example", "extserver_username": "x", "extserver_project": "P", "extserver_repo": format!("repository-{number}"),
        "state": "active", "scopes": "api", "expires_at": "2099-01-01", "branch": (["main", "next"][number % 2]), "tag_name": format!("v{}", number % 3), "content": "x", "commit_message": "x",
        "scope": "projects", "search": "s", "topics": "b,a", "project_id": random.random_range(1..4), "namespace": "guests",
        "link_url": "https://a.example/%{project_id}", "image_url": "https://b.example", "ref": "main", "cron": "0 4 * * *",
        "freeze_start": "0 4 * * *", "freeze_end": "0 5 * * *", "title": format!("title {number}"),
    });
    let mut parameters = common_parameters.as_object_mut().map(std::mem::take).unwrap_or_default();
    let rule_parameters = json!({
        "external_url": format!("https://check-{number}.example"), "package_name_pattern": format!("p-{number}"), "package_type": "npm",
        "minimum_access_level_for_push": "owner", "repository_path_pattern": format!("acme/shop/{number}"),
        "target_project_id": random.random_range(1..4), "secret_push_protection_enabled": true, "enabled": true,
        "color": "#AABBCC", "approvals_required": 1, "external_wiki_url": "https://wiki.example", "webhook": "https://chat.example",
    });
    parameters.extend(rule_parameters.as_object().cloned().unwrap_or_default());
    let link_parameters = json!({
        "provider": "KEY", "cn": "KEY", "saml_group_name": "KEY", "target_group_id": random.random_range(5..9),
        "base_access_level": level, "read_code": true, "deploy_access_levels": [{"access_level": 40}],
    });
    parameters.extend(link_parameters.as_object().cloned().unwrap_or_default());
    let omitted_share = [0.0, 0.0, 0.2, 0.8][random.random_range(0..4)];
    let mut chosen_parameters: Map<_, _> =
        parameters.into_iter().filter(|_| !random.random_bool(omitted_share)).collect();
    if omitted_share < 0.5 {
        chosen_parameters.insert("body".to_owned(), format!("comment {number}").into());
        chosen_parameters.insert("cron_timezone".to_owned(), "UTC".into());
    }
    chosen_parameters
}

/// A response as text, without the headers that differ between connections.
fn comparable_text(status: u16, headers: &HeaderMap, body: &[u8]) -> String {
    let headers =
        headers.iter().filter(|(name, _)| !["date", "x-runtime"].contains(&name.as_str()));
    let mut headers: Vec<String> =
        headers.map(|(name, value)| format!("{name}: {value:?}")).collect();
    headers.sort();
    format!("{status}\n{}\n\n{}", headers.join("\n"), String::from_utf8_lossy(body))
}

fn answer(model: &Model, request: &Request<Bytes>) -> String {
    let response = model.answer(request.clone());
    comparable_text(response.status().as_u16(), response.headers(), response.body())
}

#[test]
fn the_same_calls_with_the_same_options_get_the_same_bytes() {
    let is_full_run = sample::plays_all();
    let mut successful_routes = std::collections::BTreeSet::new();
    for release in [Profile::default().release, OBSERVED_RELEASE] {
        let new_options = || options_for(release);
        let new_model = || Model::new(&seed(), TOKEN, new_options()).expect("a model");
        let (mut model, image) = (new_model(), new_model().take_image().expect("an image"));
        let start_image = model.take_image().expect("an image");
        for run in 0..if is_full_run { 12 } else { 5 } {
            model.reset(&start_image, new_options()).expect("reset");
            let copy = Model::from_image(&image, new_options()).expect("a model");
            let mut random = StdRng::seed_from_u64(run);
            for request in requests_of_all_routes(&mut random, "sandbox")
                .into_iter()
                .chain(requests_of_all_routes(&mut random, "sandbox"))
            {
                let text = answer(&model, &request);
                assert_eq!(text, answer(&copy, &request), "{request:?}");
                assert!(!text.starts_with('5'), "{request:?}\n{text}");
                if text.starts_with('2') {
                    let (route, _) =
                        routes::find_route(None, request.method(), request.uri().path())
                            .expect("a route");
                    successful_routes.insert(std::ptr::from_ref(route));
                }
            }
            let [dumped, dumped_copy] =
                [&model, &copy].map(|each| each.inspect(dump::dump).expect("a dump"));
            assert!(dumped == dumped_copy, "run {run}");
        }
    }
    let route_count = routes::all_routes().count();
    // Random calls rarely satisfy the conditions of some routes.
    let min_successes = if is_full_run { route_count * 3 / 5 } else { route_count / 2 };
    assert!(
        successful_routes.len() > min_successes,
        "{} of {route_count} routes ever succeed",
        successful_routes.len()
    );
}

#[tokio::test]
async fn a_service_that_listens_answers_as_the_model() {
    let ServiceOptions { profile, rate_limits, clock, random } = options();
    let config = SandboxConfig {
        seed: Some(seed()),
        token: Some(TOKEN.to_owned()),
        profile,
        rate_limits,
        clock,
        random,
        ..SandboxConfig::default()
    };
    let sandbox = start(config).await.expect("it starts");
    let model = Model::new(&seed(), TOKEN, options()).expect("a model");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client");
    let host = sandbox.addr().to_string();
    for request in requests_of_all_routes(&mut StdRng::seed_from_u64(1), &host) {
        let url = format!("{}{}", sandbox.url(), request.uri());
        let builder = client
            .request(request.method().clone(), url)
            .headers(request.headers().clone())
            .body(request.body().clone());
        let response = builder.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = comparable_text(status, &headers, &response.bytes().await.expect("a body"));
        assert_eq!(text, answer(&model, &request), "{request:?}");
    }
}
