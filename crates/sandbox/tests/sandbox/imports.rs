//! Imports from external hosts: parameters, targets, and failures.

use serde_json::{Value, json};
use undrift_sandbox::{Profile, SandboxConfig};

use super::client::{World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const EXTGIT: &str = "/import/extgit";
const EXTSERVER: &str = "/import/extserver";

fn extgit() -> Value {
    json!({"personal_access_token": "s", "repo_id": 7, "target_namespace": "acme"})
}

fn extserver() -> Value {
    json!({"extserver_url": "https://x.example", "extserver_username": "u", "personal_access_token": "s",
           "extserver_project": "K", "extserver_repo": "repo"})
}

/// `body` with one member set.
fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

#[tokio::test]
async fn an_import_needs_all_required_parameters() {
    let world = World::usual().await;
    for (path, good) in [(EXTGIT, extgit()), (EXTSERVER, extserver())] {
        for name in good.as_object().expect("an object").keys() {
            let mut without = good.clone();
            without.as_object_mut().expect("an object").remove(name);
            // An extgit import only needs a target that is not empty.
            let missing = match name.as_str() {
                "target_namespace" => format!("{name} is missing, {name} is empty"),
                name => format!("{name} is missing"),
            };
            let blank = (path == EXTSERVER || name == "target_namespace")
                .then(|| (with(good.clone(), name, json!(" ")), format!("{name} is empty")));
            for (body, complaint) in [(without, missing)].into_iter().chain(blank) {
                let reply = world.call("dan", "POST", path, &body).await;
                let expected = json!({ "error": complaint });
                assert_eq!(
                    (reply.status, reply.body),
                    (400, expected),
                    "{}: {path} {name}",
                    fact("import-target")
                );
            }
        }
        assert_eq!(
            world.call("dan", "POST", path, &good).await.status,
            201,
            "{}: {path}",
            fact("import")
        );
    }
}

#[tokio::test]
async fn optional_stages_are_booleans() {
    let world = World::usual().await;
    let stages = |stages: Value| with(extgit(), "optional_stages", stages);
    let bad = |value: Value, name: &str| {
        (
            fact("import-stages"),
            "dan",
            "POST",
            EXTGIT,
            stages(value),
            400,
            json!({"error": format!("{name} is invalid")}),
        )
    };
    world
        .check(vec![
            bad(json!("all"), "optional_stages"),
            bad(json!(["attachments_import"]), "optional_stages"),
            bad(json!({"attachments_import": "perhaps"}), "optional_stages[attachments_import]"),
            bad(
                json!({"single_endpoint_notes_import": []}),
                "optional_stages[single_endpoint_notes_import]",
            ),
            bad(
                json!({"single_endpoint_issue_events_import": 7}),
                "optional_stages[single_endpoint_issue_events_import]",
            ),
            (
                fact("import-stages"),
                "dan",
                "POST",
                EXTGIT,
                stages(
                    json!({"attachments_import": true, "single_endpoint_notes_import": "false"}),
                ),
                201,
                NO,
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_taken_name_is_reported_under_errors() {
    let world = World::usual().await;
    for (path, body) in
        [(EXTGIT, extgit()), (EXTSERVER, with(extserver(), "target_namespace", json!("acme")))]
    {
        let body = with(body, "new_name", json!("shop"));
        let taken = json!({"errors": "Name has already been taken, Path has already been taken"});
        world.check(vec![(fact("import-taken"), "dan", "POST", path, body, 422, taken)]).await;
    }
}

#[tokio::test]
async fn a_canceled_import_shows_its_source() {
    let world = World::seeded(
        usual_seed(),
        SandboxConfig {
            profile: Profile {
                import_delay: std::time::Duration::from_secs(3_600),
                ..Profile::default()
            },
            ..SandboxConfig::default()
        },
    )
    .await;
    for (path, body, source) in [(EXTGIT, extgit(), "extgit/7"), (EXTSERVER, extserver(), "K/repo")]
    {
        let id = world.call("dan", "POST", path, &body).await.body["id"].clone();
        let told = json!({"import_source": source, "provider_link": format!("/{source}")});
        let wanted = json!({"project_id": id});
        world
            .check(vec![(
                fact("import-cancel"),
                "dan",
                "POST",
                "/import/extgit/cancel",
                wanted,
                200,
                told,
            )])
            .await;
    }
    let elsewhere = with(extgit(), "extgit_hostname", json!("https://git.example.org"));
    let id =
        world.call("olive", "POST", EXTGIT, &with(elsewhere, "new_name", json!("two"))).await.body
            ["id"]
            .clone();
    let told = json!({"import_source": "git.example.org/7", "provider_link": "/git.example.org/7"});
    world
        .check(vec![(
            fact("import-cancel"),
            "olive",
            "POST",
            "/import/extgit/cancel",
            json!({"project_id": id}),
            200,
            told,
        )])
        .await;
}

#[tokio::test]
async fn gists_fail_with_the_error_of_the_external_host() {
    let world = World::seeded(
        usual_seed(),
        SandboxConfig {
            profile: Profile { gists: true, ..Profile::default() },
            ..SandboxConfig::default()
        },
    )
    .await;
    let gists = |token: &str, status: u16| {
        (
            fact("gists-refused"),
            "dan",
            "POST",
            "/import/extgit/gists",
            json!({"personal_access_token": token}),
            status,
            NO,
        )
    };
    let refused = [
        gists("", 401),
        gists("invalid", 401),
        gists("invalid-token", 401),
        gists("rate-limited", 429),
    ];
    world.check(refused.into_iter().chain([gists("good", 202)]).collect()).await;
}

#[tokio::test]
async fn imports_and_forks_are_validated_before_they_start() {
    let world = super::releases::at("18.9").await;
    let server = |url: &str| {
        json!({"extserver_url": url, "extserver_username": "u", "personal_access_token": "s",
            "extserver_project": "P", "extserver_repo": "r", "target_namespace": "acme"})
    };
    let extgit = json!({"personal_access_token": "s", "repo_id": 7, "target_namespace": "acme"});
    let strategy = json!({"personal_access_token": "s", "repo_id": 7, "target_namespace": "acme", "timeout_strategy": "x"});
    let (address, right) = (fact("import-address"), fact("import-right-later"));
    let topics = json!({"topics": ["a"], "merge_method": "ff", "description": "kept",
        "wiki_access_level": "disabled"});
    world
        .check(vec![
            (address, "olive", "POST", "/import/extserver", server("http://localhost"), 400, json!({"message": {"error": "Invalid URL: http://localhost"}})),
            (address, "", "POST", "/import/extserver", server("nothing"), 400, NO),
            (
                address,
                "",
                "POST",
                "/import/bitbucket_server",
                json!({"personal_access_token": "s"}),
                400,
                json!({"error": "bitbucket_server_url is missing, bitbucket_server_username is missing, \
                    bitbucket_server_project is missing, bitbucket_server_repo is missing"}),
            ),
            (right, "dan", "POST", "/import/extgit", extgit.clone(), 422, NO),
            (right, "mia", "POST", "/import/extgit", extgit, 201, NO),
            (fact("import-strategy"), "mia", "POST", "/import/extgit", strategy, 400, NO),
            (fact("fork-copies"), "mia", "PUT", "/projects/1", topics, 200, NO),
            (
                fact("fork-copies"),
                "mia",
                "POST",
                "/projects/1/fork",
                json!({"namespace_path": "acme", "path": "copy", "name": "copy"}),
                201,
                json!({"topics": [], "merge_method": "merge", "description": "kept", "wiki_access_level": "disabled"}),
            ),
            (
                fact("fork-right"),
                "dan",
                "POST",
                "/projects/1/fork",
                json!({"namespace_path": "acme", "path": "other", "name": "other"}),
                409,
                json!({"message": ["User is not allowed to import projects"]}),
            ),
        ])
        .await;
    let role = fact("share-role");
    world
        .call(
            "stranger",
            "POST",
            "/groups",
            &json!({"path": "new", "name": "new", "visibility": "public"}),
        )
        .await;
    let group_id = world.get("stranger", "/groups/new").await.body["id"].clone();
    let share = json!({"group_id": group_id, "group_access": 30});
    let answer = world.call("mia", "POST", "/projects/1/share", &share).await.body;
    assert_eq!(answer.get("member_role_id"), Some(&NO), "{role} {answer}");
    let made = world.call("olive", "POST", "/groups/acme/share", &share).await.body;
    assert_eq!(made["shared_with_groups"][0].get("member_role_id"), Some(&NO), "{role} {made}");
}
