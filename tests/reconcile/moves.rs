//! Groups and projects that get another path.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value as Json, json};
use undrift::{
    address::Address,
    apply::StepOutcome,
    operation::Method,
    release::{REFERENCE, Release},
    sandbox::{FaultEffect, InjectedFault, Profile},
};

use crate::world::{NEWEST, World, group, project, seed};

/// Groups `acme` and `other`, the latter with a member of its own, and `projects`.
fn two_groups(projects: &[Json]) -> Json {
    let mut seed = seed(projects);
    let members =
        json!([{"user": "root", "access_level": 50}, {"user": "dave", "access_level": 30}]);
    let other = json!({"path": "other", "visibility": "internal", "members": members});
    seed["groups"].as_array_mut().unwrap().push(other);
    seed
}

fn old_project(path: &str) -> Json {
    json!({
        "path": path,
        "settings": {"description": "as it was"},
        "variables": [{"key": "KEEP", "value": "x"}, {"key": "CHANGE", "value": "old"}],
    })
}

/// The declaration of a project that was at `former`.
fn moved_project(path: &str, former: &str) -> Json {
    project(
        path,
        json!({
            "previously": [former],
            "settings": {"description": "as it is"},
            "variables": [{"key": "CHANGE", "value": "new"}, {"key": "ADD", "value": "x"}],
        }),
    )
}

/// The id of the container with exactly this path.
async fn id_at(world: &World, path: &str) -> Option<u64> {
    let kind = if path.contains('/') { "projects" } else { "groups" };
    let response = world.get(&format!("/{kind}/{}", path.replace('/', "%2F"))).await;
    let is_it = response["path_with_namespace"] == path || response["full_path"] == path;
    response["id"].as_u64().filter(|_| is_it)
}

/// The calls for `noun` itself, without its id.
fn moves(world: &World) -> Vec<String> {
    let is_move = |call: &String| call.ends_with("/transfer") || call.split('/').count() == 5;
    let writes = world.writes().into_iter().filter(is_move);
    writes.map(|call| call.chars().filter(|c| !c.is_ascii_digit()).collect()).collect()
}

const EDIT: &str = "PUT /api/v/projects/";
const TRANSFER: &str = "PUT /api/v/projects//transfer";

#[tokio::test]
async fn a_project_is_renamed_moved_or_both() {
    let cases: [(&str, &[&str], Option<&str>); 3] = [
        ("acme/store", &[EDIT, EDIT], None),
        ("other/shop", &[TRANSFER, EDIT], Some("transfer:other/shop")),
        ("other/store", &[EDIT, TRANSFER, EDIT], Some("transfer:other/store")),
    ];
    let dialect = Profile { former_paths_answer: true, ..Profile::default() };
    for profile in [Profile::default(), dialect] {
        for (path, calls, acknowledgement) in cases {
            for trusts in [Duration::ZERO, Duration::from_secs(60)] {
                let mut world =
                    World::new(profile.clone(), two_groups(&[old_project("acme/shop")])).await;
                world.trust_time = trusts;
                let id = id_at(&world, "acme/shop").await;
                world.declare(&[moved_project(path, "acme/shop")]);
                if let Some(acknowledgement) = acknowledgement {
                    let plan = world.plan().await;
                    let [refusal] = &plan.refusals[..] else { panic!("{:?}", plan.refusals) };
                    assert_eq!(refusal.acknowledgement, acknowledgement);
                    assert_eq!(
                        refusal.reason,
                        "would move it from acme to other: 1 user would inherit more access, \
                         0 users less, and the variables that it inherits change"
                    );
                    world.acknowledged = vec![acknowledgement];
                }
                let plan = world.converge(path).await;
                let first = &plan.steps[0];
                assert_eq!(first.address.to_string(), path);
                assert_eq!(moves(&world), calls, "{path}");
                assert_eq!(id_at(&world, path).await, id);
                let keys = world.get(&format!("/projects/{}/variables", id.unwrap())).await;
                assert_eq!(keys.as_array().unwrap().len(), 3);
            }
        }
    }
}

#[tokio::test]
async fn visibility_is_narrowed_before_a_move_and_widened_after() {
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.acknowledged = vec!["transfer:**", "visibility:**"];
    let shop = |path: &str, former: Option<&str>, visibility: &str| {
        let mut shop =
            project(path, json!({"create": true, "settings": {"visibility": visibility}}));
        if let Some(former) = former {
            shop["previously"] = json!([former]);
        }
        shop
    };
    let hidden = group("hidden", json!({"create": true, "settings": {"visibility": "private"}}));
    world.declare(&[shop("acme/shop", None, "public")]);
    world.converge("public").await;
    world.declare(&[hidden.clone(), shop("hidden/shop", Some("acme/shop"), "private")]);
    let plan = world.converge("into a private group that is created").await;
    let steps: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(steps, ["hidden", "hidden/shop#settings", "hidden/shop"]);
    world.declare(&[hidden, shop("acme/shop", Some("hidden/shop"), "public")]);
    world.converge("back").await;
    assert_eq!(world.get("/projects/acme%2Fshop").await["visibility"], "public");
}

#[tokio::test]
async fn an_archived_project_is_unarchived_before_it_moves() {
    for release in [REFERENCE, NEWEST] {
        archived_and_moved(Profile::default().with_release(release)).await;
    }
}

async fn archived_and_moved(profile: Profile) {
    let mut shop = old_project("acme/shop");
    shop["archived"] = true.into();
    let mut world = World::new(profile, two_groups(&[shop])).await;
    world.acknowledged = vec!["transfer:**"];
    let mut document = moved_project("other/shop", "acme/shop");
    world.declare(std::slice::from_ref(&document));
    let codes: Vec<_> = world.plan().await.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["archived"]);
    document["archived"] = false.into();
    world.declare(&[document]);
    world.converge("unarchived").await;
}

/// The plan showed a possible create, no replacement: that waits for another run.
#[tokio::test]
async fn a_replacement_that_was_not_shown_waits_for_another_run() {
    let mut shop = old_project("acme/shop");
    shop["archived"] = true.into();
    let mut world =
        World::new(Profile::default().with_release(Release::new(17, 4)), two_groups(&[shop])).await;
    world.acknowledged = vec!["transfer:**"];
    let mut document = moved_project("other/shop", "acme/shop");
    document["archived"] = false.into();
    // A variable can be hidden only when it is created.
    document["variables"] =
        json!([{"key": "CHANGE", "value": "long-enough", "masked_and_hidden": true}]);
    world.declare(&[document]);
    let outcome = world.apply().await;
    let is_it = |address: &Address| address.section == Some("variables");
    let planned = outcome.plan.steps.iter().find(|step| is_it(&step.address)).unwrap();
    assert!(planned.possible.is_some() && !planned.replaces);
    let steps = outcome.applied.unwrap().steps;
    let ended = steps.iter().find(|step| is_it(&step.address)).unwrap();
    assert!(matches!(ended.outcome, StepOutcome::ChangedMeanwhile(_)), "{ended:?}");
    let writes = world.writes();
    assert!(!writes.iter().any(|request| request.starts_with("DELETE ")), "{writes:?}");
    assert!(world.converge("it is shown").await.steps[0].replaces);
}

#[tokio::test]
async fn a_freed_path_is_given_to_another_project_in_the_same_run() {
    for trusts in [Duration::ZERO, Duration::from_secs(60)] {
        let mut world = World::new(
            Profile::default(),
            two_groups(&[old_project("acme/a"), old_project("acme/b")]),
        )
        .await;
        world.trust_time = trusts;
        let (a, b) = (id_at(&world, "acme/a").await, id_at(&world, "acme/b").await);
        // Its name stays with the project that had the path.
        let new = project("acme/a", json!({"create": true, "settings": {"name": "another"}}));
        world.declare(&[new, moved_project("acme/b", "acme/a"), moved_project("acme/c", "acme/b")]);
        world.converge("a chain").await;
        assert_eq!((id_at(&world, "acme/b").await, id_at(&world, "acme/c").await), (a, b));
        assert!(id_at(&world, "acme/a").await.is_some_and(|new| Some(new) != a && Some(new) != b));
    }
}

/// Before any request after the one that created or first changed a container, somebody renames it
/// and puts another one at its path.
#[tokio::test]
async fn nothing_is_written_to_another_container_at_the_same_path() {
    let token = json!({"key": "TOKEN", "value": {"env": "SECRET"}});
    let body =
        json!({"create": true, "settings": {"description": "as it is"}, "variables": [token]});
    let from = |base: &str, former: &str| {
        let mut body = body.clone();
        body["previously"] = json!([format!("{base}{former}")]);
        body
    };
    let forked = json!({"create": {"fork_of": "acme/up"}, "variables": [token]});
    let cases = [
        (project("acme/neo", body.clone()), "acme/neo", "/projects"),
        (project("acme/neo", forked), "acme/neo", "/projects/1/fork"),
        (project("acme/neo", from("acme/", "shop")), "acme/neo", "/projects/2"),
        (project("other/neo", from("acme/", "shop")), "other/neo", "/projects/2"),
        (project("acme/shop", body.clone()), "acme/shop", "/projects/2"),
        (group("fresh", body.clone()), "fresh", "/groups"),
        (group("fresh", from("", "old")), "fresh", "/groups/"),
        (group("acme/fresh", from("", "old")), "acme/fresh", "/groups/"),
        (group("old", body.clone()), "old", "/groups/"),
    ];
    for (document, path, first) in cases {
        let (mut number, mut swap_count) = (0, 0);
        loop {
            let mut seed = two_groups(&[
                json!({"path": "acme/up"}),
                json!({"path": "acme/shop", "settings": {"description": "old"}}),
            ]);
            let old = json!({"path": "old"});
            seed["groups"].as_array_mut().unwrap().push(old);
            let mut world = World::new(Profile::default(), seed).await;
            world.acknowledged = vec!["transfer:**"];
            world.set_variable("SECRET", "a-secret-value-1");
            world.declare(std::slice::from_ref(&document));
            let (kind, plural) = if document["kind"] == "Group" {
                ("group", "groups")
            } else {
                ("project", "projects")
            };
            let shared_state = Arc::new(Mutex::new((false, 0)));
            let hook_state = Arc::clone(&shared_state);
            let encoded = path.replace('/', "%2F");
            let (namespace, slug) = path.rsplit_once('/').unwrap_or(("", path));
            let (namespace, slug) = (namespace.to_owned(), slug.to_owned());
            let ids =
                [id_of(&world, "groups", "acme").await, id_of(&world, "groups", "other").await];
            world.foreign_calls = Some(Arc::new(move |request| {
                let mut state = hook_state.lock().unwrap();
                let is_first = request.method != Method::Get && request.target.starts_with(first);
                if !state.0 {
                    state.0 = is_first;
                    return Vec::new();
                }
                state.1 += 1;
                if state.1 != number + 1 {
                    return Vec::new();
                }
                let away = json!({"path": "away", "name": "away"});
                let parent = if namespace == "other" { ids[1] } else { ids[0] };
                let mut other = json!({"path": slug, "name": slug, "lfs_enabled": false});
                match (kind, namespace.is_empty()) {
                    ("project", _) => other["namespace_id"] = json!(parent),
                    (_, false) => other["parent_id"] = json!(parent),
                    _ => {}
                }
                vec![
                    (Method::Put, format!("/{plural}/{encoded}"), away),
                    (Method::Post, format!("/{plural}"), other),
                ]
            }));
            let _ = world.try_apply().await;
            let requests = shared_state.lock().unwrap().1;
            world.foreign_calls = None;
            if number >= requests {
                assert!(swap_count > 0, "{path} {first}: nothing was put there");
                break;
            }
            number += 1;
            let response = world.get(&format!("/{plural}/{}", path.replace('/', "%2F"))).await;
            if response["lfs_enabled"] != false {
                continue;
            }
            swap_count += 1;
            let case = format!("{path} after {first}, before request {number}");
            let variables = world.get(&format!("/{plural}/{}/variables", response["id"])).await;
            assert_eq!(variables, json!([]), "{case}");
            assert_ne!(response["description"], "as it is", "{case}");
        }
    }
}

/// The id of the container with exactly this path.
async fn id_of(world: &World, plural: &str, path: &str) -> Option<u64> {
    let response = world.get(&format!("/{plural}/{}", path.replace('/', "%2F"))).await;
    response["id"].as_u64()
}

/// The run that renames one project and creates another at its path ends between the two.
#[tokio::test]
async fn a_path_that_only_redirects_is_free() {
    let redirecting = Profile { former_paths_answer: true, ..Profile::default() };
    for profile in [Profile::default(), redirecting] {
        for is_remembered in [true, false] {
            let world = World::new(profile.clone(), two_groups(&[old_project("acme/a")])).await;
            let a = id_at(&world, "acme/a").await;
            let renamed = json!({"path": "b", "name": "another"});
            world.call("PUT", "/projects/acme%2Fa", Some(renamed)).await;
            let new = project("acme/a", json!({"create": true}));
            let mut left = moved_project("acme/b", "acme/a");
            if !is_remembered {
                left.as_object_mut().unwrap().remove("previously");
            }
            world.declare(&[new, left]);
            world.converge("taken").await;
            assert_eq!(id_at(&world, "acme/b").await, a);
            assert!(id_at(&world, "acme/a").await.is_some_and(|new| Some(new) != a));
        }
    }
}

/// In one group, the service refuses both the path and the name of another project.
#[tokio::test]
async fn a_project_that_gets_a_freed_path_waits_for_the_name_too() {
    for trusts in [Duration::ZERO, Duration::from_secs(60)] {
        let mut world = World::new(Profile::default(), two_groups(&[old_project("acme/a")])).await;
        world.trust_time = trusts;
        let new = project("acme/a", json!({"create": true}));
        let mut left = moved_project("acme/b", "acme/a");
        left["settings"]["name"] = "b".into();
        world.declare(&[new, left]);
        world.converge("named").await;
    }
}

/// Two projects or groups in one group cannot have the same display name.
#[tokio::test]
async fn a_name_is_free_before_its_new_owner_moves_in() {
    let named = |path: &str, name: &str| json!({"path": path, "settings": {"name": name}});
    let moved = |path: &str, former: &str| project(path, json!({"previously": [former]}));
    let renamed = |path: &str, name: &str| project(path, json!({"settings": {"name": name}}));
    let [ours, theirs] = ["acme/p", "other/p"].map(old_project);
    for (projects, declared) in [
        (
            [ours.clone(), theirs.clone()],
            [moved("other/p-old", "other/p"), moved("other/p", "acme/p")],
        ),
        (
            [ours.clone(), named("other/x", "p")],
            [moved("other/p", "acme/p"), renamed("other/x", "Ex")],
        ),
        (
            [ours.clone(), named("other/x", "p")],
            [moved("other/p2", "acme/p"), moved("third/x", "other/x")],
        ),
    ] {
        let mut seed = two_groups(&projects);
        seed["groups"].as_array_mut().unwrap().push(json!({"path": "third"}));
        let mut world = World::new(Profile::default(), seed).await;
        world.acknowledged = vec!["transfer:**"];
        world.declare(&declared);
        world.converge("a name becomes free").await;
    }
    let world = World::new(Profile::default(), two_groups(&[ours, named("other/x", "p")])).await;
    world.declare(&[moved("other/p2", "acme/p")]);
    let plan = world.plan().await;
    let messages: Vec<_> = plan.problems.iter().map(|problem| &problem.message).collect();
    assert_eq!(
        messages,
        [
            "`other/x` has the same name, and this run does not change it: the service refuses the move"
        ]
    );
}

/// A declared name is set before the move if the present one is taken in the new group.
#[tokio::test]
async fn a_project_moves_with_its_declared_name() {
    let named = |path: &str, name: &str| json!({"path": path, "settings": {"name": name}});
    let moved = |path: &str| {
        let settings = json!({"name": "P two", "description": "moved"});
        project(path, json!({"previously": ["acme/p"], "settings": settings}))
    };
    for path in ["other/p2", "other/p"] {
        let projects = [old_project("acme/p"), named("other/x", "p")];
        let mut world = World::new(Profile::default(), two_groups(&projects)).await;
        world.acknowledged = vec!["transfer:**"];
        world.declare(&[moved(path)]);
        let plan = world.converge("moved with its name").await;
        let changed = |step: &undrift::diff::Step| {
            let fields: Vec<_> = step.changes.iter().map(|c| c.field.to_string()).collect();
            fields.join(" ")
        };
        let changes: Vec<_> = plan.steps.iter().map(changed).collect();
        assert_eq!(changes, ["path name", "description"], "{path}");
    }
    // The name must be free in both groups.
    for other in ["acme/y", "other/y"] {
        let projects = [old_project("acme/p"), named("other/x", "p"), named(other, "P two")];
        let world = World::new(Profile::default(), two_groups(&projects)).await;
        world.declare(&[moved("other/p2")]);
        let plan = world.plan().await;
        let [problem] = &plan.problems[..] else { panic!("{:#?}", plan.problems) };
        assert!(problem.message.contains("`other/x` has the same name"), "{other}: {problem:?}");
    }
}

/// The service renames and moves in two calls, so that a container has another path in between.
#[tokio::test]
async fn a_container_is_not_moved_through_a_path_that_is_in_use() {
    let moved = |path: &str, former: &str| project(path, json!({"previously": [former]}));
    let projects = ["acme/p", "acme/x"].map(old_project);
    for declared in [
        vec![project("acme/p", json!({})), moved("other/p", "acme/x")],
        vec![moved("other/p", "acme/x"), moved("other/q", "acme/p")],
        vec![moved("other/p", "acme/x")],
    ] {
        let mut world = World::new(Profile::default(), two_groups(&projects)).await;
        world.acknowledged = vec!["transfer:**"];
        world.declare(&declared);
        world.converge("the other order").await;
    }
    let mut seed = two_groups(&[]);
    let groups =
        ["acme/tt", "acme/tt-old"].map(|path| json!({"path": path, "visibility": "private"}));
    seed["groups"].as_array_mut().unwrap().extend(groups);
    let mut world = World::new(Profile::default(), seed).await;
    world.acknowledged = vec!["transfer:**"];
    let moved = |path: &str, former: &str| group(path, json!({"previously": [former]}));
    world.declare(&[moved("other/tt", "acme/tt-old"), moved("other/tt2", "acme/tt")]);
    world.converge("groups too").await;
}

#[tokio::test]
async fn two_live_former_paths_are_a_problem() {
    let world =
        World::new(Profile::default(), seed(&[old_project("acme/a"), old_project("acme/b")])).await;
    let mut document = moved_project("acme/c", "acme/a");
    document["previously"] = json!(["acme/a", "acme/b"]);
    world.declare(std::slice::from_ref(&document));
    let plan = world.plan().await;
    assert_eq!(plan.steps.len(), 0);
    assert_eq!(
        plan.problems[0].message,
        "`acme/a` exists, and so does `acme/b`, a declared former path of the project"
    );
    // It had this path before the other one.
    world.call("DELETE", "/projects/acme%2Fb", None).await;
    world.call("PUT", "/projects/acme%2Fa", Some(json!({"path": "b"}))).await;
    world.converge("one after the other").await;
}

#[tokio::test]
async fn a_project_that_waits_for_a_blocked_move_is_left_out_too() {
    let world =
        World::new(Profile::default(), two_groups(&[old_project("acme/a"), old_project("acme/b")]))
            .await;
    world.declare(&[moved_project("acme/b", "acme/a"), moved_project("nowhere/c", "acme/b")]);
    let plan = world.plan().await;
    let problems: Vec<_> = plan.problems.iter().map(|p| (p.address.to_string(), p.code)).collect();
    assert_eq!(
        problems,
        [("acme/b".to_owned(), "previously"), ("nowhere/c".to_owned(), "missing-namespace")]
    );
}

#[tokio::test]
async fn projects_at_both_the_new_and_the_former_path_are_a_problem() {
    let world =
        World::new(Profile::default(), seed(&[old_project("acme/a"), old_project("acme/b")])).await;
    world.declare(&[moved_project("acme/b", "acme/a")]);
    let plan = world.plan().await;
    assert_eq!(plan.steps.len(), 0);
    assert_eq!(
        plan.problems[0].message,
        "`acme/b` exists, and so does `acme/a`, a declared former path of the project"
    );
}

#[tokio::test]
async fn a_move_by_somebody_else_is_not_followed() {
    let world = World::new(Profile::default(), two_groups(&[old_project("acme/shop")])).await;
    world.declare(&[moved_project("acme/store", "acme/shop")]);
    let outcome = world
        .apply_after(async |world| {
            world.call("PUT", "/projects/acme%2Fshop", Some(json!({"path": "kiosk"}))).await;
        })
        .await
        .unwrap();
    assert!(outcome.applied.unwrap().steps.iter().all(|step| !step.outcome.is_success()));
    assert!(id_at(&world, "acme/kiosk").await.is_some());
    assert_eq!(world.plan().await.problems[0].code, "moved-project");
}

#[tokio::test]
async fn a_project_at_none_of_its_paths_is_created_only_if_allowed() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let mut document = moved_project("acme/shop", "acme/gone");
    world.declare(std::slice::from_ref(&document));
    assert_eq!(world.plan().await.problems[0].code, "missing-project");
    document["create"] = true.into();
    world.declare(&[document]);
    world.converge("created").await;
}

/// A tree below `base`, a group with the former paths in `former`.
fn tree(base: &str, former: &[&str]) -> Vec<Json> {
    let rule = json!({"name": "main", "allowed_to_merge": [{"group": format!("{base}/leads")}]});
    let description = json!({"description": format!("in {base}")});
    let mut top = group(base, json!({"create": true, "settings": description}));
    if !former.is_empty() {
        top["previously"] = json!(former);
    }
    vec![
        top,
        group(&format!("{base}/leads"), json!({"create": true, "settings": description})),
        project(
            &format!("{base}/shop"),
            json!({
                "create": true,
                "settings": description,
                "variables": [{"key": "PLACE", "value": base}],
                "shares": [{"group": format!("{base}/leads"), "group_access": "developer"}],
                "protected_branches": [rule],
            }),
        ),
    ]
}

/// The ids of a group, and of a group and a project in it.
async fn ids(world: &World, base: &str) -> [Option<u64>; 3] {
    let mut ids = [None; 3];
    for (id, path) in ids.iter_mut().zip(["", "/leads", "/shop"]) {
        let kind = if path.ends_with("shop") { "projects" } else { "groups" };
        let path = format!("{base}{path}").replace('/', "%2F");
        *id = world.get(&format!("/{kind}/{path}")).await["id"].as_u64();
    }
    assert!(ids.iter().all(Option::is_some), "{base}: {ids:?}");
    ids
}

#[tokio::test]
async fn a_group_is_renamed_and_moved_with_everything_below() {
    for trusts in [Duration::ZERO, Duration::from_secs(60)] {
        let mut world = World::new(Profile::default(), seed(&[])).await;
        world.trust_time = trusts;
        world.acknowledged = vec!["transfer:**"];
        world.declare(&tree("start", &[]));
        world.converge("created").await;
        let before = ids(&world, "start").await;
        let inner = group("inner", json!({"create": true}));
        let deep = group("inner/deep", json!({"create": true}));
        let moves: [(&str, &str, &[Json]); 5] = [
            ("renamed", "start", &[]),
            ("inner/renamed", "renamed", std::slice::from_ref(&inner)),
            ("inner/deep/again", "inner/renamed", &[inner.clone(), deep]),
            ("acme/again", "inner/deep/again", &[]),
            ("top", "acme/again", &[]),
        ];
        for (path, former, others) in moves {
            let mut documents = tree(path, &[former]);
            documents.extend_from_slice(others);
            documents.push(project(&format!("{path}/leads/neo"), json!({"create": true})));
            world.declare(&documents);
            let plan = world.converge(path).await;
            let first = plan.steps.iter().find(|step| &*step.address.path == path).unwrap();
            assert_eq!(first.address.section, None);
            assert_eq!(ids(&world, path).await, before, "{path}");
            world
                .call(
                    "DELETE",
                    &format!("/projects/{}%2Fleads%2Fnew", path.replace('/', "%2F")),
                    None,
                )
                .await;
        }
    }
}

/// The tree below `start`, with its ids.
async fn world_with_tree() -> (World, [Option<u64>; 3]) {
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.acknowledged = vec!["transfer:**"];
    world.declare(&tree("start", &[]));
    world.converge("created").await;
    let before = ids(&world, "start").await;
    (world, before)
}

#[tokio::test]
async fn groups_and_projects_move_within_and_out_of_a_group_that_moves() {
    let (world, before) = world_with_tree().await;
    let mut documents = tree("end", &["start"]);
    // Found by its old path and by its new one.
    documents[1]["path"] = "end/heads".into();
    documents[1]["previously"] = json!(["start/leads"]);
    documents[2]["path"] = "acme/shop".into();
    documents[2]["previously"] = json!(["end/shop"]);
    documents[2]["shares"][0]["group"] = "end/heads".into();
    documents[2]["protected_branches"][0]["allowed_to_merge"][0]["group"] = "end/heads".into();
    // Another group takes the path that becomes free.
    documents.push(group("end/leads", json!({"create": true, "settings": {"name": "others"}})));
    world.declare(&documents);
    let plan = world.converge("all at once").await;
    let is_share = |step: &undrift::diff::Step| step.address.section == Some("shares");
    assert!(!plan.steps.iter().any(is_share), "it is shared with that group already");
    let id = async |path: &str| world.get(path).await["id"].as_u64();
    assert_eq!(
        [
            id("/groups/end").await,
            id("/groups/end%2Fheads").await,
            id("/projects/acme%2Fshop").await
        ],
        before
    );
}

#[tokio::test]
async fn a_former_path_in_a_moving_group_may_have_the_old_or_new_group() {
    let (world, before) = world_with_tree().await;
    let mut documents = tree("end", &["start"]);
    documents[1]["previously"] = json!(["start/leads"]);
    documents[2]["path"] = "acme/shop".into();
    documents[2]["previously"] = json!(["start/shop", "end/shop"]);
    world.declare(&documents);
    let plan = world.converge("all at once").await;
    let itself = plan.steps.iter().filter(|step| step.address.section.is_none());
    let itself: Vec<_> = itself.map(|step| &*step.address.path).collect();
    assert_eq!(itself, ["acme/shop", "end"], "the group brings the one below");
    let id = async |path: &str| world.get(path).await["id"].as_u64();
    assert_eq!([id("/groups/end%2Fleads").await, id("/projects/acme%2Fshop").await], before[1..]);
}

/// Renamed but not moved, as after a run that ended between the two. Any other state is ambiguous.
#[tokio::test]
async fn a_half_moved_group_is_moved_on_only_from_a_declared_path() {
    for (halfway, parent, is_declared) in
        [("end", Json::Null, true), ("acme/start", json!("acme"), false)]
    {
        let mut world = World::new(Profile::default(), seed(&[])).await;
        world.acknowledged = vec!["transfer:**"];
        world.declare(&tree("start", &[]));
        world.converge("created").await;
        let before = ids(&world, "start").await;
        if parent.is_null() {
            world.call("PUT", "/groups/start", Some(json!({"path": "end"}))).await;
        } else {
            let acme = id_at(&world, "acme").await;
            world.call("POST", "/groups/start/transfer", Some(json!({"group_id": acme}))).await;
        }
        world.declare(&tree("acme/end", &["start"]));
        if !is_declared {
            let plan = world.plan().await;
            let is_it = |path: &str| path == "acme/end";
            assert!(plan.steps.iter().all(|step| !is_it(&step.address.path)));
            let problem = plan.problems.iter().find(|problem| is_it(&problem.address.path));
            let help = format!(
                "if it is this group, write `previously: [{halfway}]`; if not, remove `previously`"
            );
            assert_eq!(problem.unwrap().help.as_deref(), Some(&*help));
            world.declare(&tree("acme/end", &["start", halfway]));
        }
        world.converge(halfway).await;
        assert_eq!(ids(&world, "acme/end").await, before, "{halfway}");
    }
}

/// Each call of a rename and a transfer is refused once, loses its response, or is the last one.
#[tokio::test]
async fn a_group_is_renamed_and_moved_despite_a_fault_in_each_call() {
    for (method, path) in [("PUT", "/groups/"), ("POST", "/transfer")] {
        for effect in [
            FaultEffect::DropBefore,
            FaultEffect::CommitThenDrop,
            FaultEffect::StatusBefore(502),
            FaultEffect::StatusAfter(502),
            FaultEffect::EmptyBody,
        ] {
            let mut world = World::new(Profile::default(), seed(&[])).await;
            world.acknowledged = vec!["transfer:**"];
            world.declare(&tree("start", &[]));
            world.converge("created").await;
            let before = ids(&world, "start").await;
            world.declare(&tree("acme/end", &["start"]));
            world.sandbox.add_fault(InjectedFault {
                method: Some(method.parse().unwrap()),
                path_contains: path.to_owned(),
                nth: 1,
                effect: effect.clone(),
            });
            let outcome = world.apply().await;
            let case = format!("{path} {effect:?}");
            assert!(outcome.applied.unwrap().is_complete(), "{case}");
            world.converge(&case).await;
            assert_eq!(ids(&world, "acme/end").await, before, "{case}");
        }
    }
}

#[tokio::test]
async fn visibility_is_narrowed_before_a_move_to_a_less_visible_group() {
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.acknowledged = vec!["transfer:**", "visibility:**"];
    let shown = |documents: &mut Vec<Json>, visibility: &str| {
        for document in documents {
            document["settings"]["visibility"] = visibility.into();
        }
    };
    let mut documents = tree("start", &[]);
    shown(&mut documents, "public");
    world.declare(&documents);
    world.converge("public").await;
    let mut documents = tree("hidden/start", &["start"]);
    documents.push(group("hidden", json!({"create": true, "settings": {}})));
    shown(&mut documents, "private");
    world.declare(&documents);
    world.converge("private").await;
    let mut documents = tree("start", &["hidden/start"]);
    shown(&mut documents, "public");
    world.declare(&documents);
    world.converge("public again").await;
}

/// A watched group is not moved; what is below it is found there, and changed.
#[tokio::test]
async fn a_watched_group_is_not_moved_and_its_projects_are_found() {
    let mut seed = seed(&[old_project("old/shop")]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "old"}));
    let world = World::new(Profile::default(), seed).await;
    let shop = project("team/shop", json!({"settings": {"description": "as it is"}}));
    let team = json!({"previously": ["old"], "watch": true, "settings": {"description": "new"}});
    world.declare(&[group("team", team), shop]);
    let outcome = world.apply().await;
    assert_eq!(outcome.plan.watched.len(), 2, "{:#?}", outcome.plan);
    assert!(outcome.applied.unwrap().is_complete());
    assert!(id_at(&world, "old").await.is_some() && id_at(&world, "team").await.is_none());
    assert_eq!(world.get("/groups/old").await["description"], Json::Null);
    assert_eq!(world.get("/projects/old%2Fshop").await["description"], "as it is");
    assert!(world.plan().await.steps.is_empty());
}

/// A new project gets the name that equals its path, and a name is unique in its group.
#[tokio::test]
async fn a_renamed_project_gives_up_its_default_name() {
    for (declared, name) in [(json!({}), "two"), (json!({"name": "Mine"}), "Mine")] {
        let world =
            World::new(Profile::default(), two_groups(&[json!({"path": "acme/one"})])).await;
        let mut two = moved_project("acme/two", "acme/one");
        two["settings"] = declared;
        world.declare(&[two, project("acme/one", json!({"create": true}))]);
        let plan = world.converge("a path and its name").await;
        let moves = plan.steps.iter().find(|step| &*step.address.path == "acme/two").unwrap();
        let changed: Vec<_> = moves.changes.iter().map(|change| &*change.field).collect();
        let expected: &[_] = if name == "two" { &["path", "name"] } else { &["path"] };
        assert_eq!(changed, expected);
        for (path, name) in [("acme%2Ftwo", name), ("acme%2Fone", "one")] {
            assert_eq!(world.get(&format!("/projects/{path}")).await["name"], name);
        }
    }
}

/// The allowlist of another project shows the project by its path, old or new.
#[tokio::test]
async fn a_project_that_moves_stays_in_the_allowlist_of_another() {
    let mut world = World::new(
        Profile::default().with_release(NEWEST),
        two_groups(&[old_project("acme/shop"), old_project("acme/tools")]),
    )
    .await;
    world.acknowledged = vec!["protection:**", "transfer:**", "removals:**"];
    let allows = |path: &str| {
        let list = json!([{"project": path}]);
        let unlisted = json!({"job_token_allowlist": "delete"});
        project("acme/tools", json!({"job_token_allowlist": list, "unlisted": unlisted}))
    };
    world.declare(&[allows("acme/shop")]);
    world.converge("the allowlist has it").await;
    world.declare(&[allows("other/store"), moved_project("other/store", "acme/shop")]);
    let plan = world.plan().await;
    let addresses: Vec<_> = plan.steps.iter().map(|step| step.address.to_string()).collect();
    assert!(!addresses.iter().any(|address| address.contains("allowlist")), "{addresses:?}");
    world.converge("it has moved").await;
}

/// The service applies a change of a group to everything in it, and refuses a milestone whose title
/// a project directly in the group has.
#[tokio::test]
async fn what_leaves_a_group_is_spared_by_its_changes() {
    let projects = ["acme/on", "acme/off", "acme/old"].map(|path| json!({"path": path}));
    let mut world = World::new(Profile::default(), two_groups(&projects)).await;
    world.acknowledged = vec!["transfer:**", "visibility:**"];
    let runners = |level: &str| json!({"settings": {"shared_runners_setting": level}});
    let shared = |is_on: bool| json!({"settings": {"shared_runners_enabled": is_on}});
    let milestones = || json!({"milestones": [{"title": "1.0"}]});
    world.declare(&[
        group("acme", json!({})),
        project("acme/on", shared(true)),
        project("acme/off", shared(false)),
        project("acme/old", milestones()),
    ]);
    world.converge("before").await;
    let leaving = |path: &str, former: &str, mut sections: Json| {
        sections["previously"] = json!([former]);
        project(path, sections)
    };
    let off = "disabled_and_unoverridable";
    world.declare(&[
        group("acme", runners(off)),
        leaving("other/on", "acme/on", shared(true)),
        project("acme/off", shared(false)),
        project("acme/old", milestones()),
    ]);
    world.converge("turned off in the group").await;
    let mut acme = runners("enabled");
    acme["milestones"] = milestones()["milestones"].clone();
    world.declare(&[
        group("acme", acme),
        leaving("other/off", "acme/off", shared(false)),
        leaving("other/old", "acme/old", milestones()),
    ]);
    world.converge("turned on in the group").await;
}
