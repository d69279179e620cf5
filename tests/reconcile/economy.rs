//! The cost of a plan, checked with the log of requests.

use std::time::Duration;

use serde_json::{Value as Json, json};
use undrift::sandbox::{FaultEffect, InjectedFault, Profile};

use crate::world::{World, project, seed};

/// Two pages.
const PROJECTS: usize = 101;

fn all_sections(i: usize) -> Json {
    json!({
        "settings": {"description": format!("project {i}"), "merge_method": "ff", "visibility": "private", "public_builds": true},
        "variables": [{"key": "A", "value": "x"}, {"key": "B", "environment_scope": "prod", "value": "y"}],
        "members": [{"user": "bob", "access_level": "developer"}],
        "hooks": [{"url": "https://a.example.org", "push_events": true}],
        "push_rule": {"member_check": true},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_plan_reads_each_thing_once_and_writes_nothing() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let documents: Vec<_> = (0..PROJECTS)
        .map(|i| {
            let mut sections = all_sections(i);
            sections["create"] = true.into();
            project(&format!("acme/p{i}"), sections)
        })
        .collect();
    world.declare(&documents);
    world.converge("filling").await;
    let before = world.requests().len();
    let plan = world.plan().await;
    let requests = world.requests().split_off(before);
    assert_eq!((plan.steps.len(), plan.projects), (0, PROJECTS));
    assert!(requests.iter().all(|request| request.starts_with("GET ")), "{requests:?}");
    let bound = 4 * PROJECTS + PROJECTS / 100 + 10;
    assert!(requests.len() <= bound, "{} requests, at most {bound}", requests.len());
}

/// The last page marks its end, so a complete list needs no extra call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_takes_as_many_calls_as_it_has_pages() {
    for (count, cap, calls) in [
        (0, None, 1),
        (1, None, 1),
        (100, None, 1),
        (101, None, 2),
        (6, Some(3), 2),
        (7, Some(3), 3),
    ] {
        let variables: Vec<_> =
            (0..count).map(|i| json!({"key": format!("K{i}"), "value": "x"})).collect();
        let seed = seed(&[json!({"path": "acme/shop", "variables": variables})]);
        let world = World::new(Profile { page_cap: cap, ..Profile::default() }, seed).await;
        world.declare(&[project("acme/shop", json!({"variables": variables}))]);
        let plan = world.plan().await;
        assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 0), "{count}: {plan:#?}");
        let lists =
            world.requests().iter().filter(|request| request.contains("/variables")).count();
        assert_eq!(lists, calls, "{count} variables in pages of {cap:?}: {:?}", world.requests());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undeclared_kind_costs_no_request() {
    let world = World::new(
        Profile::default(),
        seed(&(0..20).map(|i| json!({"path": format!("acme/p{i}")})).collect::<Vec<_>>()),
    )
    .await;
    world.declare(
        &(0..20)
            .map(|i| project(&format!("acme/p{i}"), json!({"settings": {"visibility": "private"}})))
            .collect::<Vec<_>>(),
    );
    world.plan().await;
    assert_eq!(world.requests().len(), 2, "who asks, and one page: {:?}", world.requests());
}

#[tokio::test]
async fn a_few_projects_of_many_are_read_one_by_one() {
    let world = World::new(
        Profile::default(),
        seed(&(0..250).map(|i| json!({"path": format!("acme/p{i}")})).collect::<Vec<_>>()),
    )
    .await;
    let declare = |names: &[usize]| {
        world.declare(
            &names
                .iter()
                .map(|i| {
                    project(&format!("acme/p{i}"), json!({"settings": {"visibility": "private"}}))
                })
                .collect::<Vec<_>>(),
        );
    };
    declare(&[7]);
    world.plan().await;
    assert_eq!(world.requests().len(), 2);
    // Two on the last of three pages: after the first page, more pages cost as much as they save.
    declare(&[248, 249]);
    world.plan().await;
    assert!(world.requests().len() <= 2 + 4, "{:?}", world.requests());
}

#[tokio::test]
async fn a_name_is_looked_up_once() {
    let world = World::new(
        Profile::default(),
        seed(&(0..5).map(|i| json!({"path": format!("acme/p{i}")})).collect::<Vec<_>>()),
    )
    .await;
    let members = json!({"members": [{"user": "Alice", "access_level": "guest"}]});
    world.declare(
        &(0..5).map(|i| project(&format!("acme/p{i}"), members.clone())).collect::<Vec<_>>(),
    );
    let plan = world.plan().await;
    assert_eq!(plan.steps.len(), 5);
    let lookups = world.requests().iter().filter(|request| request.contains("/users?")).count();
    assert_eq!(lookups, 1, "{:?}", world.requests());
}

#[tokio::test]
async fn projects_of_many_groups_are_found_in_one_list() {
    let paths: Vec<_> = (0..30).map(|i| format!("group{i}/shop")).collect();
    let world = World::new(
        Profile::default(),
        seed(&paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>()),
    )
    .await;
    world.declare(
        &paths
            .iter()
            .map(|path| project(path, json!({"settings": {"visibility": "private"}})))
            .collect::<Vec<_>>(),
    );
    let plan = world.plan().await;
    assert_eq!((plan.projects, plan.steps.len(), plan.problems.len()), (30, 0, 0));
    assert_eq!(world.requests().len(), 2, "who asks, and one page: {:?}", world.requests());
    assert!(world.requests()[1].contains("pagination=keyset"), "{:?}", world.requests());
}

/// By page number the service returns at most 50,000 entries of a list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_all_projects_continues_after_the_last_numbered_page() {
    let paths: Vec<_> = (0..450).map(|i| format!("acme/p{i:03}")).collect();
    let world = World::new(
        Profile::default(),
        seed(&paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>()),
    )
    .await;
    world.sandbox.add_fault(InjectedFault {
        method: None,
        path_contains: "&page=3".into(),
        nth: 0,
        effect: FaultEffect::StatusBefore(405),
    });
    world.declare(
        &paths
            .iter()
            .map(|path| project(path, json!({"settings": {"visibility": "private"}})))
            .collect::<Vec<_>>(),
    );
    let plan = world.plan().await;
    assert_eq!((plan.projects, plan.steps.len(), plan.problems.len()), (450, 0, 0));
    let requests = world.requests();
    let of = |part: &str| requests.iter().filter(|request| request.contains(part)).count();
    assert_eq!((of("/groups/acme/projects"), of("pagination=keyset")), (3, 3), "{requests:?}");
    assert_eq!(requests.len(), 1 + 3 + 3, "no project is read by itself: {requests:?}");
}

#[tokio::test]
async fn projects_of_a_person_are_found_in_the_persons_list() {
    let paths = ["bob/one", "bob/two", "bob/three"];
    let world =
        World::new(Profile::default(), seed(&paths.map(|path| json!({"path": path})))).await;
    let members = json!({"members": [{"user": "carol", "access_level": "guest"}], "unlisted": {"members": "delete"}});
    world.declare(&paths.map(|path| project(path, members.clone())));
    let plan = world.converge("a person's projects").await;
    assert!(
        plan.steps.iter().all(|step| step.address.to_string().ends_with("#members/carol")),
        "the owner is left alone: {:#?}",
        plan.steps
    );
    assert!(
        world.requests().iter().any(|request| request.contains("/users/bob/projects")),
        "{:?}",
        world.requests()
    );
}

/// A caller who is not an administrator sees every entry only from a certain role on, so the role
/// must be known before a list counts as complete.
#[tokio::test]
async fn a_maintainer_can_plan_without_administrator_rights() {
    let mut seed = seed(&["a", "b"].map(|name| json!({"path": format!("acme/{name}"), "members": [{"user": "bob", "access_level": 40}]})));
    seed["users"][1]["token"] = "bobs-token".into();
    seed["projects"][1]["members"][0]["access_level"] = 30.into();
    let world = World::new(Profile::default(), seed).await;
    let sections = json!({"variables": [{"key": "A", "value": "x"}], "members": [{"user": "bob", "access_level": "maintainer"}]});
    world.declare(&[project("acme/a", sections.clone()), project("acme/b", sections)]);
    let desired = world.desired();
    let (observer, settings) = world.connect_as("bobs-token", &desired).await.unwrap();
    let plan = world.plan_with(&observer, &desired, &settings).await.unwrap();
    let steps: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(steps, ["acme/a#variables/A@*"]);
    let unread: Vec<_> = plan.incomplete.iter().map(|scope| scope.address.to_string()).collect();
    assert_eq!(
        unread,
        ["acme/b#members", "acme/b#variables"],
        "a developer may not see all of them"
    );
}

#[tokio::test]
async fn no_user_is_looked_up_for_unreadable_members() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    let effect = FaultEffect::StatusBefore(403);
    world.sandbox.add_fault(InjectedFault {
        method: None,
        path_contains: "/members".into(),
        nth: 0,
        effect,
    });
    world.declare(&[project(
        "acme/shop",
        json!({"members": [{"user": "alice", "access_level": "guest"}]}),
    )]);
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 1));
    assert!(
        !world.requests().iter().any(|request| request.contains("/users?")),
        "{:?}",
        world.requests()
    );
}

#[tokio::test]
async fn a_group_costs_one_read_plus_one_per_section() {
    let mut seed = seed(&[]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
    seed["users"][0]["token"] = "a-token-of-alice-0123456789".into();
    seed["groups"][0]["members"] = json!([{"user": "alice", "access_level": "owner"}]);
    let world = World::new(Profile::default(), seed).await;
    let group =
        |path: &str, members: Json| json!({"kind": "Group", "path": path, "members": members});
    world.declare(&[
        group("acme", json!([{"user": "alice", "access_level": "owner"}])),
        group("acme/team", json!([{"user": "bob", "access_level": "developer"}])),
    ]);
    world.converge("members of groups").await;
    for token in [world.sandbox.token(), "a-token-of-alice-0123456789"] {
        let before = world.requests().len();
        let desired = world.desired();
        let (observer, settings) = world.connect_as(token, &desired).await.unwrap();
        let plan = world.plan_with(&observer, &desired, &settings).await.unwrap();
        assert!(plan.steps.is_empty() && plan.incomplete.is_empty(), "{plan:#?}");
        let requests = world.requests().split_off(before);
        assert_eq!(requests.len(), 1 + 2 * 2, "who asks, and two for each group: {requests:#?}");
    }
}

#[tokio::test]
async fn objects_in_the_response_to_a_write_are_not_read_again() {
    const FEW: usize = 4;
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.trust_time = Duration::from_secs(60);
    let documents: Vec<_> = (0..FEW)
        .map(|i| {
            let mut sections = all_sections(i);
            sections["create"] = true.into();
            project(&format!("acme/p{i}"), sections)
        })
        .collect();
    world.declare(&documents);
    let before = world.requests().len();
    let outcome = world.apply().await;
    assert!(outcome.applied.unwrap().is_complete());
    let requests = world.requests().split_off(before);
    let writes = requests.iter().filter(|request| !request.starts_with("GET ")).count();
    assert_eq!(writes, outcome.plan.counts().calls, "exactly what the plan said");
    // A look for each missing project, and the shared reads: the caller, the list of the group, the
    // namespace, the users, and the access from above.
    let shared_reads = requests.len() - writes - FEW;
    assert!(shared_reads <= 8, "{shared_reads} of {requests:#?}");
    // A removal needs a look afterwards, because its response shows nothing.
    let mut fewer = documents[0].clone();
    fewer["variables"] = json!([]);
    fewer["unlisted"] = json!({"variables": "delete"});
    world.acknowledged = vec!["removals:**"];
    world.declare(&[fewer]);
    let before = world.requests().len();
    assert!(world.apply().await.applied.unwrap().is_complete());
    let requests = world.requests().split_off(before);
    let lists = requests.iter().filter(|r| r.starts_with("GET ") && r.contains("/variables"));
    assert_eq!(lists.count(), 2, "{requests:#?}");
}
