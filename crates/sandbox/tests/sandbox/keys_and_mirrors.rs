//! Push mirrors, deploy keys and freeze periods of a project.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::{Profile, SandboxConfig, ServiceTier};

use super::client::{ROOT, Row, World, leak, usual_seed};
use super::facts::{Fact, fact};

const NO: Value = Value::Null;
const MIRRORS: &str = "/projects/acme%2Fshop/remote_mirrors";
const MIRROR: &str = "/projects/acme%2Fshop/remote_mirrors/1";
const KEYS: &str = "/projects/acme%2Fshop/deploy_keys";
const KEY: &str = "/projects/acme%2Fshop/deploy_keys/1";
const SITE_KEYS: &str = "/projects/acme%2Fsite/deploy_keys";
const PERIODS: &str = "/projects/acme%2Fshop/freeze_periods";
const PERIOD: &str = "/projects/acme%2Fshop/freeze_periods/1";

/// A call by mia, a maintainer.
pub(crate) fn by_mia(
    rule: &'static Fact,
    method: &'static str,
    path: &'static str,
    body: Value,
    status: u16,
    answer: Value,
) -> Row {
    (rule, "mia", method, path, body, status, answer)
}

fn not_found() -> Value {
    json!({"message": "404 Not found"})
}

async fn at(release: &str, tier: ServiceTier) -> World {
    let release: Release = release.parse().expect("a release");
    World::seeded(
        usual_seed(),
        SandboxConfig { release: Some(release), tier: Some(tier), ..SandboxConfig::default() },
    )
    .await
}

#[tokio::test]
async fn a_mirror_never_shows_its_credentials() {
    let world = World::usual().await;
    let url = json!({"url": "https://u:secret@h.example/p.git"});
    let masked = "https://*****:*****@h.example/p.git";
    let allowed = json!({"allow_local_requests_from_web_hooks_and_services": true});
    let blocked = "is blocked: Only allowed schemes are http, https, ssh, git";
    let own = format!("{}/acme/site.git", world.running.url());
    world
        .check(vec![
            by_mia(
                fact("mirror-shape"),
                "POST",
                MIRRORS,
                url.clone(),
                201,
                json!({
                    "id": 1, "url": masked, "enabled": false, "only_protected_branches": false,
                    "keep_divergent_refs": null, "update_status": "none", "last_update_at": null,
                    "last_update_started_at": null, "last_successful_update_at": null, "last_error": null,
                }),
            ),
            (fact("mirror-role"), "dan", "GET", MIRRORS, NO, 401, json!({"message": "401 Unauthorized"})),
            (fact("mirror-role"), "dan", "POST", MIRRORS, url.clone(), 401, NO),
            (fact("mirror-role"), "stranger", "GET", "/projects/2/remote_mirrors", NO, 401, NO),
            by_mia(fact("mirror-same"), "POST", MIRRORS, url, 201, json!({"id": 2})),
            by_mia(fact("mirror-url"), "GET", MIRRORS, NO, 200, json!([{"url": masked}, {"id": 2}])),
            by_mia(fact("mirror-url"), "GET", MIRROR, NO, 200, json!({"url": masked})),
            by_mia(
                fact("mirror-url"),
                "POST",
                MIRRORS,
                json!({"url": "file:///p"}),
                400,
                json!({"message": {"url": [blocked]}}),
            ),
            by_mia(fact("mirror-url"), "POST", MIRRORS, json!({"url": "HTTPS://h.example"}), 400, NO),
            by_mia(fact("mirror-url"), "POST", MIRRORS, json!({"url": own}), 201, json!({"url": own, "id": 3})),
            by_mia(fact("mirror-delete"), "DELETE", "/projects/acme%2Fshop/remote_mirrors/3", NO, 204, NO),
            by_mia(
                fact("mirror-url"),
                "POST",
                MIRRORS,
                json!({"url": "http://localhost/x.git"}),
                400,
                json!({"message": {"url": ["is blocked: Requests to localhost are not allowed"]}}),
            ),
            (fact("application-settings"), ROOT, "PUT", "/application/settings", allowed, 200, NO),
            by_mia(fact("mirror-url"), "POST", MIRRORS, json!({"url": "http://localhost/x.git"}), 201, NO),
            by_mia(fact("parameter-missing"), "POST", MIRRORS, json!({}), 400, json!({"error": "url is missing"})),
            by_mia(
                fact("mirror-flags"),
                "PUT",
                MIRROR,
                json!({"enabled": true, "keep_divergent_refs": true}),
                200,
                json!({"enabled": true, "only_protected_branches": false, "keep_divergent_refs": true}),
            ),
            by_mia(
                fact("mirror-flags"),
                "PUT",
                MIRROR,
                json!({"enabled": null}),
                200,
                json!({"enabled": false, "keep_divergent_refs": true}),
            ),
            by_mia(
                fact("mirror-url-fixed"),
                "PUT",
                MIRROR,
                json!({"url": "https://other.example"}),
                200,
                json!({"url": masked, "enabled": false}),
            ),
            by_mia(fact("mirror-delete"), "DELETE", MIRROR, NO, 204, NO),
            by_mia(fact("mirror-absent"), "GET", MIRROR, NO, 404, not_found()),
            by_mia(fact("mirror-absent"), "DELETE", MIRROR, NO, 404, not_found()),
            by_mia(fact("mirror-absent"), "PUT", MIRROR, json!({}), 404, not_found()),
        ])
        .await;
}

#[tokio::test]
async fn later_releases_have_more_fields_of_mirrors() {
    let new = json!({"url": "https://h.example", "auth_method": "ssh_public_key", "mirror_branch_regex": "^v"});
    for (release, tier, method, regex) in [
        ("15.8", ServiceTier::Ultimate, None, None),
        ("16.2", ServiceTier::Premium, None, Some("^v")),
        ("16.10", ServiceTier::Free, Some("ssh_public_key"), None),
    ] {
        let world = at(release, tier).await;
        let answer = world.call(ROOT, "POST", MIRRORS, &new).await.body;
        let has = |name: &str| answer.get(name).and_then(Value::as_str);
        assert_eq!(has("auth_method"), method, "{} {release}", fact("mirror-method"));
        assert_eq!(has("mirror_branch_regex"), regex, "{} {release}", fact("mirror-branches"));
    }
    let world = at("16.10", ServiceTier::Premium).await;
    let rule = fact("mirror-branches");
    let only = json!({"only_protected_branches": true});
    let both = json!({"only_protected_branches": false, "mirror_branch_regex": ""});
    let invalid_regex = json!({"mirror_branch_regex": "("});
    let fault = json!({"message": {"mirror_branch_regex": ["not valid RE2 syntax: missing ): ("]}});
    let exclusive =
        json!({"error": "only_protected_branches, mirror_branch_regex are mutually exclusive"});
    world
        .check(vec![
            by_mia(rule, "POST", MIRRORS, new, 201, json!({"mirror_branch_regex": "^v"})),
            by_mia(rule, "PUT", MIRROR, both, 400, exclusive),
            by_mia(rule, "PUT", MIRROR, invalid_regex, 400, fault),
            by_mia(rule, "PUT", MIRROR, only, 200, json!({"mirror_branch_regex": null})),
            by_mia(
                rule,
                "PUT",
                MIRROR,
                json!({"mirror_branch_regex": "^w"}),
                200,
                json!({"only_protected_branches": false, "mirror_branch_regex": "^w"}),
            ),
            by_mia(
                fact("mirror-method"),
                "PUT",
                MIRROR,
                json!({"auth_method": "none"}),
                400,
                json!({"error": "auth_method does not have a valid value"}),
            ),
        ])
        .await;
}

const FIRST: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const SECOND: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC";
const THIRD: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMD";

#[tokio::test]
async fn a_deploy_key_belongs_to_all_projects_that_use_it() {
    let world = World::usual().await;
    let new = |title: &str, key: &str| json!({"title": title, "key": key});
    let taken = json!({"message": {"deploy_key.fingerprint": ["has already been taken"]}});
    let gone = json!({"message": "404 Deploy key Not Found"});
    let commented = leak(format!("{FIRST} ci"));
    let enabled = leak(format!("{SITE_KEYS}/2/enable"));
    world
        .check(vec![
            by_mia(
                fact("deploy-key-shape"),
                "POST",
                KEYS,
                new("one", &format!("{FIRST} ci of the shop")),
                201,
                json!({
                    "id": 1, "title": "one", "key": commented, "can_push": false, "expires_at": null,
                    "fingerprint": "d6:9a:30:45:17:cf:91:c4:27:94:f3:22:92:a3:00:0e",
                    "fingerprint_sha256": "SHA256:RXm/ruZ0eTzRXKwi1AQEDynB0VgHQ2ac9KPSFdf/YnA",
                }),
            ),
            (fact("deploy-key-role"), "dan", "GET", KEYS, NO, 403, NO),
            (fact("deploy-key-role"), "dan", "POST", KEYS, new("x", SECOND), 403, NO),
            by_mia(
                fact("deploy-key-again"),
                "POST",
                KEYS,
                json!({"title": "other", "key": commented, "can_push": true}),
                201,
                json!({"id": 1, "title": "one", "can_push": false}),
            ),
            // The comment is part of the text that is compared.
            by_mia(fact("deploy-key-taken"), "POST", KEYS, new("x", FIRST), 400, taken.clone()),
            by_mia(
                fact("deploy-key-joined"),
                "POST",
                SITE_KEYS,
                json!({"title": "other", "key": commented, "can_push": true}),
                201,
                json!({"id": 1, "title": "one", "can_push": true}),
            ),
            by_mia(fact("deploy-key-joined"), "GET", KEYS, NO, 200, json!([{"id": 1, "can_push": false}])),
            (
                fact("deploy-key-instance"),
                ROOT,
                "GET",
                "/deploy_keys",
                NO,
                200,
                json!([{"id": 1, "projects_with_write_access": [{"path_with_namespace": "acme/site"}]}]),
            ),
            (fact("deploy-key-instance"), ROOT, "GET", "/deploy_keys?public=true", NO, 200, json!([])),
            by_mia(fact("deploy-key-instance"), "GET", "/deploy_keys", NO, 403, NO),
            (
                fact("deploy-key-taken"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "own"}),
                201,
                NO,
            ),
            (fact("deploy-key-shape"), "dan", "POST", "/projects/3/deploy_keys", new("two", SECOND), 201, json!({"id": 2})),
            by_mia(fact("deploy-key-taken"), "POST", KEYS, new("x", SECOND), 400, taken),
            by_mia(fact("deploy-key-absent"), "POST", enabled, NO, 404, gone.clone()),
            by_mia(
                fact("deploy-key-wrong"),
                "POST",
                KEYS,
                new("x", "ssh-rsa AAAA"),
                400,
                json!({"message": {
                    "deploy_key.key": [
                        "type is forbidden. Must be RSA, DSA, ECDSA, ED25519, ECDSA_SK, or ED25519_SK",
                        "is invalid",
                    ],
                    "deploy_key.fingerprint_sha256": ["cannot be generated"],
                }}),
            ),
            by_mia(
                fact("deploy-key-wrong"),
                "POST",
                KEYS,
                new(" ", SECOND),
                400,
                json!({"message": {"deploy_key.title": ["can't be blank"]}}),
            ),
            by_mia(
                fact("deploy-key-wrong"),
                "POST",
                KEYS,
                json!({"title": "x", "key": THIRD, "expires_at": "2000-01-01"}),
                400,
                json!({"message": {"deploy_key.key": ["has expired"]}}),
            ),
            by_mia(fact("deploy-key-update"), "PUT", KEY, json!({"can_push": null}), 500, NO),
            by_mia(
                fact("deploy-key-update"),
                "PUT",
                KEY,
                json!({"title": "new", "can_push": true}),
                200,
                json!({"title": "one", "can_push": true}),
            ),
            (fact("deploy-key-update"), ROOT, "PUT", KEY, json!({"title": "new"}), 200, json!({"title": "new", "can_push": true})),
            by_mia(
                fact("deploy-key-update"),
                "PUT",
                KEY,
                json!({}),
                400,
                json!({"error": "title, can_push are missing, at least one parameter must be provided"}),
            ),
            by_mia(fact("deploy-key-delete"), "DELETE", KEY, NO, 204, NO),
            by_mia(fact("deploy-key-absent"), "GET", KEY, NO, 404, not_found()),
            by_mia(fact("deploy-key-absent"), "DELETE", KEY, NO, 404, gone.clone()),
            by_mia(fact("deploy-key-enable"), "POST", leak(format!("{KEY}/enable")), NO, 201, json!({"id": 1, "title": "new"})),
            by_mia(fact("deploy-key-enable"), "GET", KEY, NO, 200, json!({"can_push": false})),
            by_mia(fact("deploy-key-delete"), "DELETE", leak(format!("{SITE_KEYS}/1")), NO, 204, NO),
            by_mia(fact("deploy-key-update"), "PUT", KEY, json!({"title": "mine"}), 200, json!({"title": "mine"})),
            by_mia(fact("deploy-key-delete"), "DELETE", KEY, NO, 204, NO),
            by_mia(fact("deploy-key-delete"), "POST", leak(format!("{KEY}/enable")), NO, 404, gone),
        ])
        .await;
    let enabled = world.call("dan", "POST", "/projects/3/deploy_keys/2/enable", &NO).await.body;
    assert_eq!(enabled.get("can_push"), None, "{}", fact("deploy-key-enable"));
}

#[tokio::test]
async fn a_freeze_period_is_created_changed_and_removed() {
    let world = World::usual().await;
    let without = json!({"freeze_start": "0 23 * * 5", "freeze_end": "0 7 * * 1"});
    let new =
        json!({"freeze_start": " 0 23 * * 5", "freeze_end": "0 7 * * 1", "cron_timezone": "UTC"});
    let wrong = |field: &str, text: &str| json!({"message": {field: [text]}});
    let blank = wrong("cron_timezone", "can't be blank");
    let odd = "syntax is invalid";
    world
        .check(vec![
            by_mia(
                fact("freeze-shape"),
                "POST",
                PERIODS,
                new.clone(),
                201,
                json!({"id": 1, "freeze_start": "0 23 * * 5", "freeze_end": "0 7 * * 1", "cron_timezone": "UTC"}),
            ),
            by_mia(fact("freeze-shape"), "POST", PERIODS, without, 400, blank.clone()),
            (fact("freeze-role"), "rita", "GET", PERIODS, NO, 200, json!([{"id": 1}])),
            (fact("freeze-role"), "gus", "GET", PERIODS, NO, 403, NO),
            (fact("freeze-role"), "dan", "POST", PERIODS, new, 403, NO),
            by_mia(
                fact("parameter-missing"),
                "POST",
                PERIODS,
                json!({"freeze_end": "0 7 * * 1"}),
                400,
                json!({"error": "freeze_start is missing"}),
            ),
            by_mia(fact("freeze-cron"), "PUT", PERIOD, json!({"freeze_end": "soon"}), 400, wrong("freeze_end", odd)),
            by_mia(fact("freeze-cron"), "PUT", PERIOD, json!({"cron_timezone": ""}), 400, blank),
            by_mia(fact("freeze-cron"), "PUT", PERIOD, json!({"cron_timezone": "x"}), 400, wrong("cron_timezone", odd)),
            by_mia(
                fact("freeze-update"),
                "PUT",
                PERIOD,
                json!({"cron_timezone": "Europe/Berlin"}),
                200,
                json!({"freeze_start": "0 23 * * 5", "cron_timezone": "Europe/Berlin"}),
            ),
            by_mia(fact("freeze-shape"), "GET", PERIODS, NO, 200, json!([{"id": 1}])),
            by_mia(fact("freeze-delete"), "DELETE", PERIOD, NO, 204, NO),
            by_mia(fact("freeze-absent"), "GET", PERIOD, NO, 404, not_found()),
            by_mia(fact("freeze-absent"), "DELETE", PERIOD, NO, 404, not_found()),
        ])
        .await;
}

#[tokio::test]
async fn a_pull_mirror_has_a_route_of_its_own() {
    let world = at("17.6", ServiceTier::Premium).await;
    let pull = "/projects/1/mirror/pull";
    let rule = fact("mirror-pull");
    let not_one = json!({"message": "The project is not mirrored"});
    let blank = json!({"message": {"import_url": ["can't be blank"]}});
    let blocked = json!({"message": {"unsafe_import_url": ["is blocked: Only allowed schemes are http, https, ssh, git"]}});
    let body = json!({"enabled": true, "url": "https://h.example/a.git", "auth_user": "me", "auth_password": "secret"});
    let masked = "https://*****:*****@h.example/a.git";
    let shown = json!({"enabled": true, "url": masked, "only_mirror_protected_branches": null, "mirror_branch_regex": null});
    let regex = json!({"mirror_branch_regex": "^x"});
    let picked = json!({"only_mirror_protected_branches": false, "mirror_branch_regex": "^x"});
    world
        .check(vec![
            by_mia(rule, "GET", pull, NO, 400, not_one),
            (rule, "dan", "GET", pull, NO, 403, NO),
            (rule, "", "GET", pull, NO, 401, NO),
            by_mia(rule, "PUT", pull, json!({}), 400, NO),
            by_mia(rule, "PUT", pull, json!({"url": "nope"}), 400, blocked),
            by_mia(rule, "PUT", pull, json!({"url": "http://127.0.0.1:1/a.git"}), 400, NO),
            by_mia(fact("mirror-address"), "PUT", pull, json!({"enabled": true}), 400, blank.clone()),
            by_mia(fact("mirror-address"), "PUT", "/projects/1", json!({"mirror": true}), 400, blank),
            by_mia(rule, "PUT", pull, body, 200, shown.clone()),
            by_mia(rule, "GET", pull, NO, 200, shown),
            by_mia(rule, "PUT", pull, regex, 200, picked),
            by_mia(
                fact("import-url-read"),
                "GET",
                "/projects/1",
                NO,
                200,
                json!({"mirror": true, "import_url": "https://h.example/a.git", "mirror_trigger_builds": false}),
            ),
        ])
        .await;
    let earlier = World::usual().await.get("mia", pull).await;
    assert_eq!(earlier.status, 404, "{rule}");
}

#[tokio::test]
async fn a_pull_mirror_is_started() {
    let pull = "/projects/1/mirror/pull";
    let (rule, pulled) = (fact("mirror-pull-start"), json!(200));
    let not_one = json!({"message": "The project is not mirrored"});
    let paused = json!({"message": "Mirroring for the project is on pause"});
    let profile = Profile { import_failure: Some("no access".into()), ..Profile::default() };
    for profile in [Profile::default(), profile] {
        let is_paused = profile.import_failure.is_some();
        let release = Some(Release::new(18, 9));
        let world = World::seeded(
            usual_seed(),
            SandboxConfig { release, profile, ..SandboxConfig::default() },
        )
        .await;
        let own = format!("{}/acme/site.git", world.running.url());
        let on = json!({"enabled": true, "url": own});
        let mut rows = vec![
            by_mia(rule, "POST", pull, NO, 400, not_one.clone()),
            (rule, "dan", "POST", pull, NO, 403, NO),
            (rule, "", "POST", pull, NO, 401, NO),
            by_mia(fact("mirror-pull"), "PUT", pull, on.clone(), 200, json!({"url": own})),
        ];
        rows.extend((0..15).map(|_| by_mia(rule, "POST", pull, NO, 200, pulled.clone())));
        rows.push(match is_paused {
            true => by_mia(rule, "POST", pull, NO, 403, paused.clone()),
            false => by_mia(rule, "POST", pull, NO, 200, pulled.clone()),
        });
        rows.push(by_mia(rule, "PUT", pull, on, 200, NO));
        rows.push(by_mia(rule, "POST", pull, NO, 200, pulled.clone()));
        world.check(rows).await;
    }
    let world = at("15.8", ServiceTier::Premium).await;
    let mirror = json!({"mirror": true, "import_url": "https://h.example/a.git"});
    world
        .check(vec![
            by_mia(rule, "PUT", "/projects/1", mirror, 200, NO),
            by_mia(rule, "POST", pull, NO, 200, pulled),
        ])
        .await;
    let free = at("18.9", ServiceTier::Free).await;
    free.check(vec![by_mia(rule, "POST", pull, NO, 404, NO)]).await;
}

#[tokio::test]
async fn a_mirror_is_pushed_on_demand_and_shows_its_key() {
    let rule = fact("mirror-sync");
    for (release, pushed, shown) in [("16.10", 404, 404), ("16.11", 204, 404), ("18.9", 204, 200)] {
        let world = World::at(release).await;
        let list = "/projects/acme%2Fshop/remote_mirrors";
        for body in [
            json!({"url": "ssh://git@h.example/a", "enabled": true, "auth_method": "ssh_public_key"}),
            json!({"url": "https://h.example/b"}),
        ] {
            assert_eq!(world.call("mia", "POST", list, &body).await.status, 201, "{rule}");
        }
        let off = if pushed == 204 { 400 } else { 404 };
        for (method, path, status) in [
            ("POST", "1/sync", pushed),
            ("POST", "2/sync", off),
            ("POST", "3/sync", 404),
            ("GET", "1/public_key", shown),
            ("GET", "2/public_key", 404),
        ] {
            let got = world.call("mia", method, &format!("{list}/{path}"), &Value::Null).await;
            assert_eq!(got.status, status, "{rule}: {release} {path} {}", got.body);
        }
        let reply = world.call("dan", "POST", &format!("{list}/1/sync"), &Value::Null).await;
        assert_eq!(reply.status, if pushed == 204 { 401 } else { 404 }, "{rule}: {release}");
    }
}
