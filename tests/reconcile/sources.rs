//! Projects created from something: forks, imports, copies of members; and the relation of a fork.

use std::time::Duration;

use serde_json::{Value as Json, json};
use undrift::{
    apply::{StepOutcome, StepResult},
    diff::{Action, Reason},
    plan::Plan,
    release::Release,
    sandbox::Profile,
};

use crate::world::{NEWEST, World, group, project, seed};

const TOKEN: &str = "credential-canary-123";

/// A project with a readme and the visibility of its group.
fn upstream(path: &str) -> Json {
    json!({"path": path, "settings": {"visibility": "public"}})
}

fn extgit() -> Json {
    json!({"extgit": {"repo_id": 7, "personal_access_token": {"env": "IMPORT_TOKEN"}}})
}

async fn world(profile: Profile, projects: &[Json]) -> World {
    let mut world = World::new(profile, seed(projects)).await;
    world.set_variable("IMPORT_TOKEN", TOKEN);
    world
}

/// The action of each step of a plan.
fn steps(plan: &Plan) -> Vec<(String, Action)> {
    plan.steps.iter().map(|step| (step.address.to_string(), step.action)).collect()
}

async fn read_upstream(world: &World, path: &str) -> Json {
    world.get(path).await["forked_from_project"]["path_with_namespace"].clone()
}

#[tokio::test]
async fn the_relation_of_a_fork_is_made_replaced_and_removed() {
    let there = ["acme/shop", "acme/one", "acme/two"].map(upstream);
    let world = world(Profile::default(), &there).await;
    let shop = "/projects/acme%2Fshop";
    let forms = [
        (json!("Acme/One"), Action::Create, vec!["POST fork"]),
        (json!("acme/two"), Action::Update, vec!["DELETE fork", "POST fork"]),
        (Json::Null, Action::Delete, vec!["DELETE fork"]),
    ];
    for (declared, action, sent) in forms {
        let before = world.writes().len();
        world.declare(&[project("acme/shop", json!({"fork_of": declared}))]);
        let plan = world.converge(&declared.to_string()).await;
        assert_eq!(steps(&plan), [("acme/shop#fork_of".to_owned(), action)]);
        let method = |write: &String| {
            let (method, path) = write.split_once(' ').unwrap();
            assert!(path.starts_with("/api/v4/projects/1/fork"), "{path}");
            format!("{method} fork")
        };
        assert_eq!(world.writes()[before..].iter().map(method).collect::<Vec<_>>(), sent);
        let is = read_upstream(&world, shop).await;
        assert_eq!(is.as_str().map(str::to_lowercase), declared.as_str().map(str::to_lowercase));
        let closes = |note: &undrift::diff::Note| matches!(note.reason, Reason::Besides { .. });
        assert_eq!(plan.notes.iter().any(closes), action != Action::Create, "{:?}", plan.notes);
    }
}

/// A caller who cannot see the upstream does not know whether the project is a fork.
#[tokio::test]
async fn a_hidden_fork_relation_is_not_absent() {
    let token = "bobs-own-token-1234567";
    let mut seed = seed(&[
        json!({"path": "acme/shop", "settings": {"visibility": "public"},
               "members": [{"user": "bob", "access_level": "owner"}]}),
        json!({"path": "acme/hidden", "settings": {"visibility": "private"}}),
        json!({"path": "acme/other", "settings": {"visibility": "public"}}),
    ]);
    seed["users"][1]["token"] = token.into();
    let world = World::new(Profile::default(), seed).await;
    world.call("POST", "/projects/1/fork/2", None).await;
    for declared in [Json::Null, json!("acme/other")] {
        world.declare(&[project("acme/shop", json!({"fork_of": declared}))]);
        let desired = world.desired();
        let (observer, settings) = world.connect_as(token, &desired).await.unwrap();
        let plan = world.plan_with(&observer, &desired, &settings).await.unwrap();
        assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 1), "{:?}", plan.findings);
    }
}

#[tokio::test]
async fn a_chain_of_forks_with_members_of_others_is_made_in_one_run() {
    for trusts in [Duration::ZERO, Duration::from_secs(60)] {
        let mut world = world(Profile::default(), &[]).await;
        world.trust_time = trusts;
        let settings = json!({"visibility": "internal", "description": "made here"});
        let create = json!({"initialize_with_readme": true});
        world.declare(&[
            project("acme/z", json!({"create": create, "members": [{"user": "bob", "access_level": "developer"}]})),
            project(
                "acme/b",
                json!({"create": true, "fork_of": "acme/Z", "settings": settings,
                       "labels": [{"name": "bug", "color": "#ff0000"}],
                       "protected_branches": [{"name": "main", "allow_force_push": true}]}),
            ),
            project(
                "new/a",
                json!({"create": {"fork_of": "acme/b", "members_from": "acme/z"},
                       "settings": {"visibility": "private", "name": "Other", "merge_method": "ff"},
                       "members": [{"user": "bob", "access_level": "maintainer"},
                                   {"user": "alice", "access_level": "developer"}]}),
            ),
            group("new", json!({"create": true, "settings": {"visibility": "private"}})),
        ]);
        let plan = world.converge("a chain").await;
        let is_possible = |address: &str| {
            let step = plan.steps.iter().find(|step| step.address.to_string() == address);
            step.unwrap_or_else(|| panic!("{address}: {:?}", steps(&plan))).possible.is_some()
        };
        assert!(is_possible("new/a#members/bob") && is_possible("acme/b#labels/bug"));
        assert!(!is_possible("new/a") && !is_possible("acme/z#members/bob"));
        assert_eq!(read_upstream(&world, "/projects/acme%2Fb").await, "acme/z");
        assert_eq!(read_upstream(&world, "/projects/new%2Fa").await, "acme/b");
        let a = world.get("/projects/new%2Fa").await;
        assert_eq!((&a["visibility"], &a["name"]), (&json!("private"), &json!("Other")));
        let copied = world.writes().iter().filter(|w| w.contains("import_project_members")).count();
        assert_eq!(copied, 1);
    }
}

#[tokio::test]
async fn an_import_has_its_visibility_at_once_and_the_names_of_its_host() {
    let mut world = world(Profile::default(), &[]).await;
    world.tweak = |settings| settings.host_names = vec![("extgit", "github".to_owned())];
    let create = json!({"import": extgit()});
    let settings = json!({"visibility": "internal", "description": "mine"});
    world.declare(&[
        project("new/shop", json!({"create": create, "settings": settings, "variables": [{"key": "A", "value": "x"}]})),
        group("new", json!({"create": true, "settings": {"visibility": "internal"}})),
    ]);
    let plan = world.converge("an import").await;
    assert!(!format!("{plan:?}").contains(TOKEN));
    assert!(plan.notes.iter().any(|note| matches!(note.reason, Reason::Besides { .. })));
    let writes = world.writes();
    assert_eq!(
        writes[..3],
        ["POST /api/v4/groups", "POST /api/v4/import/github", "PUT /api/v4/projects/1"]
    );
    let create = plan.steps.iter().find(|step| step.address.to_string() == "new/shop").unwrap();
    let awaits: Vec<_> = create.calls.iter().map(|call| call.awaits).collect();
    assert_eq!(awaits, [false, true]);
}

/// The one step of `outcome` for `path` itself.
fn outcome_of_step<'o>(outcome: &'o [StepResult], path: &str) -> &'o StepOutcome {
    &outcome.iter().find(|step| step.address.to_string() == path).unwrap().outcome
}

#[tokio::test]
async fn a_fork_that_takes_too_long_is_left_to_a_later_run() {
    let slow = Profile { import_delay: Duration::from_secs(36_000), ..Profile::default() };
    let world = world(slow, &[upstream("acme/up")]).await;
    world.declare(&[
        project("acme/slow", json!({"create": true, "fork_of": "acme/up", "variables": [{"key": "A", "value": "x"}]})),
        project("acme/other", json!({"create": true, "variables": [{"key": "A", "value": "x"}]})),
    ]);
    let applied = world.apply().await.applied.unwrap();
    let StepOutcome::Unknown(cause) = outcome_of_step(&applied.steps, "acme/slow") else {
        panic!("{:#?}", applied.steps)
    };
    assert!(cause.transient && cause.message.contains("after 10 minutes"), "{cause}");
    assert_eq!(outcome_of_step(&applied.steps, "acme/other"), &StepOutcome::Done);
    assert!(matches!(
        outcome_of_step(&applied.steps, "acme/slow#variables/A@*"),
        StepOutcome::Skipped(_)
    ));
    let looks = |world: &World| {
        world
            .requests()
            .iter()
            .filter(|r| r.starts_with("GET /api/v4/projects/acme%2Fslow"))
            .count()
    };
    assert!(looks(&world) < 45, "{}", looks(&world));
    // The next run does not change it, and reports it.
    let before = world.writes().len();
    let outcome = world.apply().await;
    assert_eq!(outcome.plan.steps.len(), 0);
    let [incomplete] = &outcome.plan.incomplete[..] else { panic!("{:#?}", outcome.plan) };
    assert_eq!(incomplete.address.to_string(), "acme/slow");
    assert!(incomplete.reason.message.contains("still being imported"), "{}", incomplete.reason);
    assert_eq!(world.writes().len(), before);
}

#[tokio::test]
async fn a_failed_import_is_named_with_the_reason_of_the_service() {
    let disk_error = "no space left on https://x:canary@disk";
    let profile = Profile { import_failure: Some(disk_error.into()), ..Profile::default() };
    let world = world(profile, &[upstream("acme/up")]).await;
    world.declare(&[
        project("acme/fork", json!({"create": true, "fork_of": "acme/up"})),
        project("acme/imported", json!({"create": {"import": extgit()}, "labels": []})),
        project("acme/other", json!({"create": true})),
    ]);
    let applied = world.apply().await.applied.unwrap();
    for path in ["acme/fork", "acme/imported"] {
        let StepOutcome::Failed(cause) = outcome_of_step(&applied.steps, path) else {
            panic!("{:#?}", applied.steps)
        };
        assert!(cause.message.contains("no space left on https://"), "{cause}");
        assert!(!cause.transient && !cause.message.contains("canary"), "{cause}");
    }
    assert_eq!(outcome_of_step(&applied.steps, "acme/other"), &StepOutcome::Done);
    let before = world.writes().len();
    let outcome = world.apply().await;
    let codes: Vec<_> = outcome.plan.problems.iter().map(|problem| problem.code).collect();
    assert_eq!((codes, outcome.plan.steps.len()), (vec!["import-failed"; 2], 0));
    assert_eq!(world.writes().len(), before);
    // To keep the project, the manifest no longer declares its origin.
    world.declare(&[
        project("acme/fork", json!({"settings": {"description": "kept"}})),
        project("acme/imported", json!({"create": true, "labels": []})),
    ]);
    world.converge("kept").await;
}

#[tokio::test]
async fn unknown_sources_are_problems_before_anything_is_sent() {
    let world = world(Profile::default(), &[]).await;
    world.declare(&[
        project("acme/a", json!({"create": true, "fork_of": "acme/nothing"})),
        project("acme/b", json!({"create": {"members_from": "acme/nothing"}})),
    ]);
    let plan = world.plan().await;
    let found: Vec<_> = plan.problems.iter().map(|p| (p.address.to_string(), p.code)).collect();
    let expected = [("acme/a", "unknown-project"), ("acme/b", "unknown-project")];
    assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code)));
    assert_eq!(world.writes(), [""; 0]);
}

/// A failure that a later run cannot see is reported with the way to repeat the call.
#[tokio::test]
async fn failed_member_copies_are_reported_with_help() {
    let world = world(Profile::default(), &[]).await;
    world.declare(&[
        project("acme/a", json!({"create": {"members_from": "acme/b"}})),
        project("acme/b", json!({"create": true})),
    ]);
    let outcome = world
        .apply_after(async |world: &World| {
            world.sandbox.add_fault(undrift::sandbox::InjectedFault {
                method: Some(http::Method::POST),
                path_contains: "import_project_members".into(),
                nth: 0,
                effect: undrift::sandbox::FaultEffect::StatusBefore(422),
            });
        })
        .await
        .unwrap();
    let applied = outcome.applied.unwrap();
    let StepOutcome::Failed(cause) = outcome_of_step(&applied.steps, "acme/a") else {
        panic!("{:#?}", applied.steps)
    };
    let help = cause.help.as_deref().unwrap_or_default();
    assert!(
        help.contains("undrift call project-import-members id=acme/a project_id=acme/b"),
        "{help}"
    );
}

/// The name belongs to another project until that one moves in the same run.
#[tokio::test]
async fn a_fork_has_the_upstream_that_is_declared_at_the_path() {
    let there = ["acme/a", "acme/b", "acme/shop"].map(upstream);
    let world = world(Profile::default(), &there).await;
    world.declare(&[
        project("acme/b", json!({"previously": ["acme/a"]})),
        project("acme/c", json!({"previously": ["acme/b"]})),
        project("acme/shop", json!({"fork_of": "acme/b"})),
        project("acme/copy", json!({"create": {"fork_of": "acme/b"}})),
    ]);
    let plan = world.converge("a chain").await;
    for address in ["acme/shop#fork_of", "acme/copy"] {
        let step = plan.steps.iter().find(|step| step.address.to_string() == address).unwrap();
        let first: Vec<_> = step.after.iter().map(|edge| edge.address.to_string()).collect();
        assert_eq!(first, ["acme/b"], "{address}");
    }
    for path in ["/projects/acme%2Fshop", "/projects/acme%2Fcopy"] {
        let upstream = &world.get(path).await["forked_from_project"];
        assert_eq!(
            (&upstream["id"], &upstream["path_with_namespace"]),
            (&json!(1), &json!("acme/b"))
        );
    }
}

/// A project that is marked for deletion has another path until the run restores it.
#[tokio::test]
async fn a_fork_relation_follows_the_restoration_of_its_upstream() {
    for release in [Release::new(15, 8), NEWEST] {
        let profile =
            Profile { deletion_delay: Some(7), ..Profile::default().with_release(release) };
        let world = world(profile, &["acme/up", "acme/shop"].map(upstream)).await;
        world.call("DELETE", "/projects/acme%2Fup", None).await;
        let fork = project("acme/shop", json!({"fork_of": "acme/up"}));
        world.declare(&[project("acme/up", json!({})), fork]);
        let plan = world.converge("restored and named").await;
        assert_eq!(edges_of(&plan, "acme/shop#fork_of"), ["acme/up"], "{release:?}");
    }
}

/// The addresses of the edges of the step at `address`.
fn edges_of(plan: &Plan, address: &str) -> Vec<String> {
    let step = plan.steps.iter().find(|step| step.address.to_string() == address).unwrap();
    step.after.iter().map(|edge| edge.address.to_string()).collect()
}

#[tokio::test]
async fn a_project_is_forked_while_it_allows_forks() {
    let world = world(Profile::default(), &[json!({"path": "acme/b", "branches": ["main"]})]).await;
    let source =
        |level: &str| project("acme/b", json!({"settings": {"forking_access_level": level}}));
    let fork = |path: &str| project(path, json!({"create": true, "fork_of": "acme/b"}));
    world.declare(&[source("disabled"), fork("acme/one")]);
    let plan = world.converge("forked before").await;
    assert_eq!(edges_of(&plan, "acme/b#settings"), ["acme/one"]);
    world.declare(&[source("enabled"), fork("acme/two")]);
    let plan = world.converge("forked after").await;
    assert_eq!(edges_of(&plan, "acme/two"), ["acme/b#settings"]);
}

#[tokio::test]
async fn a_project_is_forked_after_its_branches_are_created() {
    let world = world(Profile::default(), &[json!({"path": "acme/b", "branches": ["main"]})]).await;
    let branch = json!({"name": "dev", "ref": "main"});
    let settings = json!({"default_branch": "dev"});
    world.declare(&[
        project("acme/a", json!({"create": true, "fork_of": "acme/b", "settings": settings})),
        project("acme/b", json!({"branches": [branch]})),
    ]);
    let plan = world.converge("forked with the branch").await;
    assert_eq!(edges_of(&plan, "acme/a"), ["acme/b#branches/dev"]);
}

#[tokio::test]
async fn members_are_copied_after_they_change() {
    let members = json!([{"user": "alice", "access_level": 30}]);
    let mut world =
        world(Profile::default(), &[json!({"path": "acme/b", "members": members})]).await;
    world.acknowledged = vec!["removals:**"];
    let bob = json!([{"user": "bob", "access_level": "developer"}]);
    world.declare(&[
        project("acme/a", json!({"create": {"members_from": "acme/b"}})),
        project("acme/b", json!({"members": bob, "unlisted": {"members": "delete"}})),
    ]);
    let plan = world.converge("copied").await;
    let expected = ["acme/b#members/bob", "acme/b#members/alice"];
    assert_eq!(edges_of(&plan, "acme/a"), expected);
}
