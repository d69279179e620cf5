//! The running sandbox: durability, locking, seeds, limits, dialects, faults.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use undrift_release::REFERENCE;
use undrift_sandbox::{
    AbsentDelete, Clock, DataLocation, FaultEffect, InjectedFault, Profile, RateLimits,
    SandboxConfig, Seed, ServiceTier, start,
};

use super::client::{ROOT, World, usual_seed};
use super::facts::fact;

const SHOP: &str = "/projects/acme%2Fshop";
const HOOKS: &str = "/projects/acme%2Fshop/hooks";

fn seed(value: Value) -> Option<Seed> {
    Some(Seed::from_json(value).expect("a seed"))
}

fn config_with_file(path: &Path) -> SandboxConfig {
    SandboxConfig {
        data: DataLocation::File(path.to_owned()),
        token: Some(ROOT.to_owned()),
        ..SandboxConfig::default()
    }
}

/// A clock with this time until a test changes it.
fn clock_at(seconds: i64) -> (Clock, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(seconds));
    let shown = Arc::clone(&time);
    (
        Clock::new(move || {
            jiff::Timestamp::from_second(shown.load(Ordering::SeqCst)).expect("a time")
        }),
        time,
    )
}

async fn with_profile(profile: Profile) -> World {
    World::start(SandboxConfig { seed: seed(usual_seed()), profile, ..SandboxConfig::default() })
        .await
}

async fn with_fault(method: Method, path_contains: &str, effect: FaultEffect) -> World {
    let world = World::usual().await;
    world.running.add_fault(InjectedFault {
        method: Some(method),
        path_contains: path_contains.to_owned(),
        nth: 1,
        effect,
    });
    world
}

#[tokio::test]
async fn answered_writes_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let world =
        World::start(SandboxConfig { seed: seed(usual_seed()), ..config_with_file(&file) }).await;
    let reply = world.call("mia", "POST", HOOKS, &json!({"url": "https://x.example/"})).await;
    assert_eq!(reply.status, 201);
    world.running.stop().await;

    let world = World::start(config_with_file(&file)).await;
    assert_eq!(world.get("mia", HOOKS).await.body[0]["id"], reply.body["id"]);
    assert!(world.running.notes().is_empty());
}

#[tokio::test]
async fn durable_data_is_flushed_at_each_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    for durable in [true, false] {
        let world = World::start(SandboxConfig {
            seed: seed(usual_seed()),
            is_durable: durable,
            ..config_with_file(&file)
        })
        .await;
        assert_eq!(world.running.is_durable(), durable);
        assert_eq!(
            world
                .call("mia", "PUT", SHOP, &json!({"description": durable.to_string()}))
                .await
                .status,
            200
        );
        world.running.stop().await;
    }
}

#[tokio::test]
async fn one_file_is_for_one_sandbox() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let first = start(config_with_file(&file)).await.expect("the first starts");
    let error = start(config_with_file(&file)).await.expect_err("the second does not");
    assert!(error.is_in_use());
    assert!(error.to_string().contains("data.db"), "{error}");
    first.stop().await;
    start(config_with_file(&file)).await.expect("free again").stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_reads_the_data() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let running = start(config_with_file(&folder.path().join("data.db"))).await.expect("a sandbox");
    for file in std::fs::read_dir(folder.path()).expect("files") {
        let file = file.expect("a file");
        let mode = file.metadata().expect("its mode").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.path());
    }
    running.stop().await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_with_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    std::fs::write(&file, "this is certainly not a database, however long it may be")
        .expect("written");
    let error = start(config_with_file(&file)).await.expect_err("refused");
    assert!(!error.is_in_use() && error.to_string().contains("delete it to start over"), "{error}");
}

#[tokio::test]
async fn a_seed_is_applied_once_and_a_changed_one_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let world =
        World::start(SandboxConfig { seed: seed(usual_seed()), ..config_with_file(&file) }).await;
    assert_eq!(world.call("olive", "DELETE", SHOP, &Value::Null).await.status, 202);
    world.running.stop().await;

    let world =
        World::start(SandboxConfig { seed: seed(usual_seed()), ..config_with_file(&file) }).await;
    assert!(world.running.notes().is_empty());
    assert_eq!(world.get("olive", SHOP).await.status, 404, "it is not applied again");
    world.running.stop().await;

    let mut changed = usual_seed();
    changed["projects"] = json!([{"path": "acme/new"}]);
    let world =
        World::start(SandboxConfig { seed: seed(changed), ..config_with_file(&file) }).await;
    let [note] = world.running.notes() else { panic!("one note") };
    assert!(note.contains("differs") && note.contains("data.db"), "{note}");
    assert_eq!(world.get("olive", "/projects/acme%2Fnew").await.status, 404);
}

#[tokio::test]
async fn an_invalid_seed_is_refused_with_the_location() {
    for (bad, words) in [
        (json!({"projects": [{"path": "lonely"}]}), ["project lonely", "acme/shop"]),
        (
            json!({"groups": [{"path": "a", "members": [{"user": "x", "access_level": 10}]}]}),
            ["member x", "no user `x`"],
        ),
        (
            json!({"projects": [{"path": "a/b", "hooks": [{"url": "https://x.example"}, {}]}]}),
            ["project a/b, hook 2", "url is missing"],
        ),
        (
            json!({"projects": [{"path": "a/b", "settings": {"merge_method": "x"}}]}),
            ["project a/b", "merge_method does not have a valid value"],
        ),
    ] {
        let config = SandboxConfig { seed: seed(bad.clone()), ..SandboxConfig::default() };
        let error = start(config).await.expect_err("refused");
        let text = format!("{:#}", anyhow::Error::from(error));
        for word in words {
            assert!(text.contains(word), "{bad}: {text}");
        }
    }
    for unknown in [json!({"project": []}), json!({"projects": [{"path": "a/b", "memebers": []}]})]
    {
        assert!(Seed::from_json(unknown.clone()).is_err(), "{unknown}: unknown fields are refused");
    }
    let level =
        json!({"groups": [{"path": "a", "members": [{"user": "root", "access_level": "boss"}]}]});
    let error = anyhow::Error::from(Seed::from_json(level).expect_err("refused"));
    assert!(format!("{error:#}").contains("`access_level` is \"boss\""), "{error:#}");
}

#[tokio::test]
async fn a_seed_fills_everything_it_names() {
    let world = World::from_seed(json!({
        "tier": "premium",
        "projects": [{
            "path": "acme/web/app",
            "settings": {"merge_method": "ff", "ci_default_git_depth": 5, "topics": ["z", "a"]},
            "variables": [{"key": "A", "value": "1", "environment_scope": "prod"}, {"key": "A", "value": "2"}],
            "hooks": [{"url": "https://x.example/", "token": "t", "tag_push_events": true}],
            "push_rule": {"commit_message_regex": "x"},
            "archived": true,
        }],
    }))
    .await;
    assert_eq!(world.running.tier(), ServiceTier::Premium);
    let app = world.get(ROOT, "/projects/acme%2Fweb%2Fapp").await.body;
    assert_eq!((&app["merge_method"], &app["ci_default_git_depth"]), (&json!("ff"), &json!(5)));
    assert_eq!((&app["topics"], &app["archived"]), (&json!(["a", "z"]), &json!(true)));
    let rule = world.get(ROOT, "/projects/1/push_rule").await.body;
    assert_eq!(rule["commit_message_regex"], "x");
    assert_eq!(world.get(ROOT, "/projects/1/hooks").await.body[0]["tag_push_events"], true);
    world.call(ROOT, "POST", "/projects/1/unarchive", &Value::Null).await;
    assert_eq!(
        world.get(ROOT, "/projects/1/variables").await.body.as_array().map(Vec::len),
        Some(2)
    );
}

#[tokio::test]
async fn an_entry_of_a_seed_that_exists_stays_unchanged() {
    let hook = json!({"url": "https://x.example/"});
    let first =
        json!({"path": "a/b", "variables": [{"key": "A", "value": "1"}], "hooks": [hook, hook]});
    let again = json!({
        "path": "a/b", "push_rule": null, "resource_groups": ["production", "production"],
        "variables": [{"key": "A", "value": "2"}, {"key": "B", "value": "3"}],
    });
    let world = World::from_seed(json!({"projects": [first, again]})).await;
    let names = async |section: &str, key: &str| -> Vec<Value> {
        let entries = world.get(ROOT, &format!("/projects/1/{section}")).await.body;
        entries.as_array().expect("a list").iter().map(|entry| entry[key].clone()).collect()
    };
    assert_eq!(names("variables", "value").await, ["1", "3"]);
    assert_eq!(names("hooks", "url").await, ["https://x.example/"]);
    assert_eq!(names("resource_groups", "key").await, ["production"]);
}

#[tokio::test]
async fn a_foreign_host_is_refused() {
    let world = World::usual().await;
    let request = world.request("mia", "GET", SHOP).header("host", "rebound.example.org");
    assert_eq!(request.send().await.expect("an answer").status(), 403);
}

#[tokio::test]
async fn the_log_has_a_line_for_each_request_and_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("requests.jsonl");
    let world = World::start(SandboxConfig {
        seed: seed(usual_seed()),
        request_log: Some(log.clone()),
        ..SandboxConfig::default()
    })
    .await;
    let variables = "/projects/acme%2Fshop/variables?value=geheim";
    world.call("mia", "POST", variables, &json!({"key": "A", "value": "geheim"})).await;
    let reply = world.get("mia", "/projects?search=x&private_token=geheim").await;
    let text = std::fs::read_to_string(log).expect("a log");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["method"], "POST");
    assert_eq!(lines[0]["status"], 201);
    assert_eq!(lines[1]["path"], "/api/v4/projects?search=x");
    assert_eq!(lines[1]["request_id"], reply.header("x-request-id"));
    assert!(!text.contains("geheim") && !text.contains("mia"), "{text}");
}

#[tokio::test]
async fn the_clock_decides_what_has_expired() {
    let (clock, time) = clock_at(1_900_000_000);
    let world =
        World::start(SandboxConfig { seed: seed(usual_seed()), clock, ..SandboxConfig::default() })
            .await;
    let member = json!({"user_id": 7, "access_level": 40, "expires_at": "2030-03-20"});
    let reply = world.call("olive", "POST", "/projects/acme%2Fshop/members", &member).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.body["created_at"], "2030-03-17T17:46:40.000Z");
    assert_eq!(world.get("stranger", SHOP).await.status, 200);
    time.fetch_add(3 * 24 * 3600, Ordering::SeqCst);
    assert_eq!(world.get("stranger", SHOP).await.status, 200, "{}", fact("member-expired"));
    time.fetch_add(24 * 3600, Ordering::SeqCst);
    assert_eq!(world.get("stranger", SHOP).await.status, 404, "{}", fact("member-expired"));
}

#[tokio::test]
async fn a_changed_url_resets_the_token_of_a_hook() {
    let world = World::usual().await;
    let (first, other) = ("https://x.example/", "https://y.example/");
    let rows = [
        (json!({"url": first, "token": "a"}), Some("a")),
        (json!({"url": first}), Some("a")),
        (json!({"url": other}), None),
        (json!({"url": first, "token": "b"}), Some("b")),
        (json!({"url": other, "token": "c"}), Some("c")),
    ];
    let made = world.call("mia", "POST", HOOKS, &json!({"url": first})).await.body["id"]
        .as_i64()
        .expect("an id");
    for (body, token) in rows {
        world.call("mia", "PUT", &format!("{HOOKS}/{made}"), &body).await;
        assert_eq!(
            world.hook_token(made).as_deref(),
            token,
            "{}: {body}",
            fact("hook-token-reset")
        );
    }
}

#[tokio::test]
async fn the_tier_of_the_last_start_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let rows = [
        (None, seed(usual_seed()), ServiceTier::Ultimate),
        (None, None, ServiceTier::Ultimate),
        (Some(ServiceTier::Free), seed(usual_seed()), ServiceTier::Free),
        (None, None, ServiceTier::Free),
    ];
    for (tier, seed, answered) in rows {
        let world = World::start(SandboxConfig { tier, seed, ..config_with_file(&file) }).await;
        assert_eq!(world.running.tier(), answered);
        let project = world.get("mia", SHOP).await.body;
        assert_eq!(
            project.get("mirror").is_some(),
            answered >= ServiceTier::Premium,
            "prepared answers follow the tier"
        );
        world.running.stop().await;
    }
}

/// A file that is opened without its seed must not serve an older release: answers lack fields then.
#[tokio::test]
async fn the_release_of_the_last_start_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let rows = [
        (None, seed(json!({"release": "18.2"})), REFERENCE, "18.2"),
        (None, None, REFERENCE, "18.2"),
        (None, None, "18.9".parse().expect("a release"), "18.9"),
        (Some("17.1".parse().expect("a release")), None, REFERENCE, "17.1"),
        (None, None, REFERENCE, "17.1"),
    ];
    for (release, seed, profile, answered) in rows {
        let profile = Profile::default().with_release(profile);
        let config = SandboxConfig { release, seed, profile, ..config_with_file(&file) };
        let world = World::start(config).await;
        let version = world.get(ROOT, "/version").await.body["version"].clone();
        assert!(version.as_str().is_some_and(|it| it.starts_with(answered)), "{version}");
        world.running.stop().await;
    }
}

#[tokio::test]
async fn a_token_that_was_revoked_works_again_when_the_sandbox_is_started_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    for _ in 0..2 {
        let world = World::start(config_with_file(&file)).await;
        assert_eq!(world.get(ROOT, "/user").await.status, 200);
        assert_eq!(
            world.call(ROOT, "DELETE", "/personal_access_tokens/self", &Value::Null).await.status,
            204
        );
        let refused = world.get(ROOT, "/user").await;
        assert_eq!((refused.status, &refused.body["error"]), (401, &json!("invalid_token")));
        world.running.stop().await;
    }
}

#[tokio::test]
async fn dialects_change_answers() {
    let world = with_profile(Profile {
        page_cap: Some(1),
        unknown_extra_keys: true,
        drop_null_keys: true,
        absent_delete: AbsentDelete::NotFound,
        reverse_topics: true,
        bots_among_members: true,
        drop_attribute: Some("description".to_owned()),
        put_resets_omitted_flags: true,
        ..Profile::default()
    })
    .await;
    let page = world.get("mia", "/projects?per_page=50").await;
    assert_eq!((page.body.as_array().map(Vec::len), page.header("x-per-page")), (Some(1), "1"));
    let project =
        world.call("mia", "PUT", SHOP, &json!({"description": "x", "topics": "a,b"})).await;
    assert_eq!(project.status, 200);
    assert_eq!(project.body["topics"], json!(["b", "a"]));
    assert!(project.body.get("description").is_none(), "dropped, and null is left out");
    assert!(project.body.get("x_unknown").is_some());
    let members = world.get("mia", "/projects/acme%2Fshop/members").await.body;
    let bot = &members[0];
    assert!(bot["username"].as_str().is_some_and(|name| name.contains("_bot_")), "{members}");
    let bot = format!("/projects/acme%2Fshop/members/{}", bot["id"]);
    assert_eq!(world.call("olive", "DELETE", &bot, &Value::Null).await.status, 403);
    assert_eq!(
        world.call("mia", "DELETE", "/projects/acme%2Fshop/push_rule", &Value::Null).await.status,
        404
    );
    let url = "https://x.example/";
    let hook = world.call("mia", "POST", HOOKS, &json!({"url": url, "issues_events": true})).await;
    let hook = format!("{HOOKS}/{}", hook.body["id"]);
    let edited = world.call("mia", "PUT", &hook, &json!({"url": url, "push_events": false})).await;
    assert_eq!(edited.body["issues_events"], false);
    assert_eq!(world.call("mia", "DELETE", &format!("{HOOKS}/99"), &Value::Null).await.status, 404);
}

#[tokio::test]
async fn faults_occur_before_or_after_the_commit() {
    let body = json!({"url": "https://x.example/"});
    let rows = [
        (FaultEffect::DropBefore, None, 0),
        (FaultEffect::CommitThenDrop, None, 1),
        (FaultEffect::StatusBefore(502), Some(502), 0),
        (FaultEffect::StatusAfter(502), Some(502), 1),
        (FaultEffect::TooManyRequests(Some("7".to_owned())), Some(429), 0),
        (FaultEffect::Html200, Some(200), 0),
        (FaultEffect::EmptyBody, Some(201), 1),
        (FaultEffect::Redirect("http://elsewhere.example/".to_owned()), Some(302), 0),
        (FaultEffect::Truncate, None, 1),
    ];
    for (what, status, hooks) in rows {
        let world = with_fault(Method::POST, "/hooks", what.clone()).await;
        let request = world
            .request("mia", "POST", HOOKS)
            .header("content-type", "application/json")
            .body(body.to_string());
        let found = match request.send().await {
            // A body that breaks off only shows when it is read.
            Ok(response) => {
                let status = response.status().as_u16();
                response.bytes().await.ok().map(|_| status)
            }
            Err(_) => None,
        };
        assert_eq!(found, status, "{what:?}");
        let answer = world.get("mia", HOOKS).await.body;
        assert_eq!(answer.as_array().map(Vec::len), Some(hooks), "{what:?}");
    }
}

#[tokio::test]
async fn a_project_marked_for_deletion_is_deleted_after_the_delay() {
    let (clock, seconds) = clock_at(1_900_000_000);
    let profile = Profile { deletion_delay: Some(7), ..Profile::default() };
    let world = World::start(SandboxConfig {
        seed: seed(usual_seed()),
        profile,
        clock,
        ..SandboxConfig::default()
    })
    .await;
    assert_eq!(world.call("olive", "DELETE", SHOP, &Value::Null).await.status, 202);
    for (days, status) in [(6, 200), (7, 404)] {
        seconds.store(1_900_000_000 + days * 24 * 3600, Ordering::SeqCst);
        assert_eq!(
            world.get("olive", "/projects/1").await.status,
            status,
            "{} {days}",
            fact("project-restore")
        );
    }
    assert_eq!(world.get("olive", "/projects/2").await.status, 200, "what is not marked stays");
}

#[tokio::test]
async fn the_clock_finishes_imports() {
    let (clock, seconds) = clock_at(1_900_000_000);
    let profile = Profile { import_delay: Duration::from_secs(60), ..Profile::default() };
    let world = World::start(SandboxConfig {
        seed: seed(usual_seed()),
        profile,
        clock,
        ..SandboxConfig::default()
    })
    .await;
    world.call("dan", "POST", "/projects/2/fork", &Value::Null).await;
    for (later, status) in [(59, "scheduled"), (60, "finished")] {
        seconds.store(1_900_000_000 + later, Ordering::SeqCst);
        assert_eq!(
            world.get("dan", "/projects/dan%2Fsite").await.body["import_status"],
            status,
            "{}",
            fact("fork")
        );
    }
}

/// The request itself is valid; a later status shows the failure.
#[tokio::test]
async fn background_failures_show_their_reason() {
    let full = Profile { import_failure: Some("no space left".into()), ..Profile::default() };
    for (profile, credential, why) in [
        (Profile::default(), "invalid-credential", "Access denied to the external account"),
        (full, "good", "no space left"),
    ] {
        let (clock, seconds) = clock_at(1_900_000_000);
        let profile = Profile { import_delay: Duration::from_secs(60), ..profile };
        let forks_fail = profile.import_failure.is_some();
        let config =
            SandboxConfig { seed: seed(usual_seed()), profile, clock, ..SandboxConfig::default() };
        let world = World::start(config).await;
        let import = json!({"personal_access_token": credential, "repo_id": 7,
                            "target_namespace": "acme", "new_name": "imported"});
        assert_eq!(world.call("dan", "POST", "/import/extgit", &import).await.status, 201);
        world.call("dan", "POST", "/projects/2/fork", &Value::Null).await;
        for (later, status, why) in [(59, "scheduled", Value::Null), (60, "failed", json!(why))] {
            seconds.store(1_900_000_000 + later, Ordering::SeqCst);
            let project = world.get("olive", "/projects/acme%2Fimported").await.body;
            let told = (&project["import_status"], &project["import_error"]);
            assert_eq!(told, (&json!(status), &why), "{}", fact("import-failed"));
            assert_eq!(project["empty_repo"], true);
            let fork = world.get("dan", "/projects/dan%2Fsite").await.body;
            let expected =
                if forks_fail { status } else { fork["import_status"].as_str().unwrap() };
            assert_eq!(fork["import_status"], expected);
            assert!(forks_fail || fork["import_error"].is_null());
        }
    }
}

#[tokio::test]
async fn the_clock_ends_background_work() {
    let (clock, seconds) = clock_at(1_900_000_000);
    let lasting = Profile {
        import_delay: Duration::from_secs(60),
        housekeeping_lease: Duration::from_secs(5),
        gists: true,
        ..Profile::default()
    };
    let world = World::start(SandboxConfig {
        seed: seed(usual_seed()),
        profile: lasting,
        clock,
        ..SandboxConfig::default()
    })
    .await;
    for (later, housekeeping, gists) in
        [(0, 201, 202), (4, 409, 422), (5, 201, 422), (59, 201, 422), (60, 409, 202)]
    {
        seconds.store(1_900_000_000 + later, Ordering::SeqCst);
        let tidied = world.call("olive", "POST", "/projects/1/housekeeping", &Value::Null).await;
        assert_eq!(tidied.status, housekeeping, "{} after {later} s", fact("housekeeping"));
        let imported = world
            .call("olive", "POST", "/import/extgit/gists", &json!({"personal_access_token": "s"}))
            .await;
        assert_eq!(imported.status, gists, "{} after {later} s", fact("gists"));
    }
}

#[tokio::test]
async fn single_routes_have_limits_of_their_own() {
    let (clock, _) = clock_at(1_900_000_020);
    let rate_limits =
        RateLimits { max_per_user: Some(2_000), max_per_operation: None, has_route_limits: true };
    let world = World::start(SandboxConfig {
        seed: seed(usual_seed()),
        rate_limits,
        clock,
        ..SandboxConfig::default()
    })
    .await;
    for _ in 0..400 {
        assert_eq!(world.get("mia", SHOP).await.status, 200);
    }
    let refused = world.get("mia", SHOP).await;
    let told = ["ratelimit-limit", "ratelimit-remaining", "retry-after"];
    assert_eq!(
        (refused.status, told.map(|name| refused.header(name))),
        (429, ["2000", "1599", "60"]),
        "{}",
        fact("rate-limit-routes")
    );
    assert_eq!(world.get("mia", &format!("{SHOP}/variables")).await.status, 200);
}

#[tokio::test]
async fn too_many_requests_are_refused_in_two_ways() {
    let (clock, seconds) = clock_at(1_900_000_020);
    let rate_limits =
        RateLimits { max_per_user: Some(3), max_per_operation: Some(2), has_route_limits: false };
    let world = World::start(SandboxConfig {
        seed: seed(usual_seed()),
        rate_limits,
        clock,
        ..SandboxConfig::default()
    })
    .await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(world.get("mia", SHOP).await);
    }
    let [first, second, third, fourth] = &answers[..] else { panic!("four answers") };
    for (got, observed, remaining) in
        [(first, "1", "2"), (second, "2", "1"), (third, "3", "0"), (fourth, "4", "0")]
    {
        let told = [
            "ratelimit-observed",
            "ratelimit-remaining",
            "ratelimit-limit",
            "ratelimit-reset",
            "ratelimit-name",
        ]
        .map(|name| got.header(name));
        assert_eq!(
            told,
            [observed, remaining, "3", "1900000080", "throttle_authenticated_api"],
            "{}",
            fact("rate-limit-headers")
        );
    }
    assert_eq!((first.status, second.status), (200, 200));
    let text = json!({"message": {"error": "This endpoint has been requested too many times. Try again later."}});
    assert_eq!(
        (third.status, &third.body, third.header("retry-after")),
        (429, &text, "60"),
        "{}",
        fact("rate-limit-operation")
    );
    let plain = Value::from("Retry later\n");
    assert_eq!((fourth.status, &fourth.body), (429, &plain), "{}", fact("rate-limit"));
    let told =
        ["retry-after", "content-type", "ratelimit-resettime"].map(|name| fourth.header(name));
    assert_eq!(
        told,
        ["60", "text/plain", "Sun, 17 Mar 2030 17:48:00 GMT"],
        "{}",
        fact("rate-limit")
    );
    assert_eq!(world.get("dan", SHOP).await.status, 200, "others have an allowance of their own");
    seconds.fetch_add(60, Ordering::SeqCst);
    assert_eq!(world.get("mia", SHOP).await.status, 200);
    let plain = World::usual().await.get("mia", SHOP).await;
    assert_eq!(plain.header("ratelimit-limit"), "", "no limits unless asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conditional_delete_leaves_what_changed() {
    let world = World::usual().await;
    world.call("olive", "POST", HOOKS, &json!({"url": "https://x.example/"})).await;
    world
        .call(
            "olive",
            "POST",
            "/projects/acme%2Fshop/members",
            &json!({"user_id": 7, "access_level": 30}),
        )
        .await;
    let things = [
        ("/projects/acme%2Fshop/hooks/1", 204),
        ("/projects/acme%2Fshop/members/7", 204),
        (SHOP, 202),
    ];
    for (path, gone) in things {
        for (bound, status) in
            [("Thu, 01 Jan 2015 00:00:00 GMT", 412), ("Tue, 01 Jan 2999 00:00:00 GMT", gone)]
        {
            let request =
                world.request("olive", "DELETE", path).header("if-unmodified-since", bound);
            assert_eq!(
                request.send().await.expect("an answer").status(),
                status,
                "{}: {path} {bound}",
                fact("conditional-delete")
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_on_the_wire_ends_the_connection_only() {
    let world = World::usual().await;
    let mut stream = TcpStream::connect(world.running.addr()).expect("a connection");
    stream.write_all(b"NONSENSE\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the end");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(world.get("mia", SHOP).await.status, 200);
}
