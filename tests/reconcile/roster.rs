//! Rules with `undeclared: include`: they apply to containers that exist without a document.

use std::num::NonZeroUsize;

use serde_json::{Value as Json, json};
use undrift::{
    desired::ExclusionReason,
    diff::Reason,
    plan::{GuardLimits, Plan, Strictness},
    sandbox::{FaultEffect, InjectedFault, Profile},
};

use crate::world::{World, project, seed};

const BOB_TOKEN: &str = "a-token-of-bob-0123456789";

/// A rule for `path`.
fn rule(path: &str, sections: Json) -> Json {
    let mut document = json!({"kind": "Defaults", "match": {"path": path}});
    document.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
    document
}

/// A rule that also includes what exists.
fn including_rule(path: &str, mut sections: Json) -> Json {
    sections["undeclared"] = "include".into();
    rule(path, sections)
}

fn plain_projects(count: usize) -> Vec<Json> {
    (0..count).map(|i| json!({"path": format!("acme/p{i:03}")})).collect()
}

fn failing_read(path: &str, nth: u32, status: u16) -> InjectedFault {
    let effect = FaultEffect::StatusBefore(status);
    InjectedFault { method: None, path_contains: path.to_owned(), nth, effect }
}

/// `json` without the columns, which the key `undeclared` shifts.
fn without_columns(mut json: Json) -> Json {
    match &mut json {
        Json::Object(fields) => {
            fields.remove("column");
            fields.values_mut().for_each(|field| *field = without_columns(field.take()));
        }
        Json::Array(items) => {
            items.iter_mut().for_each(|item| *item = without_columns(item.take()));
        }
        _ => {}
    }
    json
}

fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| step.address.to_string()).collect()
}

fn incomplete(plan: &Plan) -> Vec<String> {
    plan.incomplete.iter().map(|scope| scope.address.to_string()).collect()
}

/// A service with groups, and projects in every state.
async fn world_with_states() -> World {
    let mut seed = seed(&[
        json!({"path": "acme/one"}),
        json!({"path": "acme/web/two", "settings": {"visibility": "internal"}, "variables": [{"key": "A", "value": "old"}]}),
        json!({"path": "acme/web/old", "archived": true}),
        json!({"path": "acme/going"}),
        json!({"path": "other/shared"}),
    ]);
    let groups = seed["groups"].as_array_mut().unwrap();
    groups.extend(["acme/web", "other"].map(|path| json!({"path": path, "visibility": "public"})));
    seed["users"][1]["token"] = BOB_TOKEN.into();
    let profile = Profile { deletion_delay: Some(7), ..Profile::default() };
    let world = World::new(profile, seed).await;
    world.call("DELETE", "/projects/acme%2Fgoing", None).await;
    let share = json!({"group_id": world.get("/groups/acme").await["id"], "group_access": 30});
    world.call("POST", "/projects/other%2Fshared/share", Some(share)).await;
    world
}

/// A rule plans the same as a document for each included project.
#[tokio::test]
async fn included_projects_are_planned_like_declared_ones() {
    let profile = json!({"kind": "Profile", "name": "base", "needs": ["team"], "members": [{"user": "alice", "access_level": "developer"}], "variables": [{"key": "TEAM", "value": {"text": "{team} {name}"}}]});
    for rules in [
        vec![rule("acme/**", json!({"settings": {"merge_method": "ff"}}))],
        vec![
            rule(
                "acme/**",
                json!({"settings": {"merge_method": "ff", "topics": ["a"]}, "uses": ["base"], "params": {"team": "x"}}),
            ),
            rule(
                "acme/web/*",
                json!({"settings": {"topics": {"add": ["b"]}}, "params": {"team": "web"}, "unlisted": {"variables": "delete"}}),
            ),
            profile.clone(),
        ],
        vec![rule("acme/**", json!({"archived": true}))],
        vec![rule(
            "acme/**",
            json!({"hooks": [{"url": "https://a.example.org"}], "push_rule": {"member_check": true}, "watch": true}),
        )],
    ] {
        let world = world_with_states().await;
        let mut documents = rules.clone();
        documents.extend(["acme/one", "acme/web/two"].map(|path| project(path, json!({}))));
        world.declare(&documents);
        let declared = world.plan().await;
        let mut including = rules.clone();
        including[0]["undeclared"] = "include".into();
        world.declare(&including);
        let included = world.plan().await;
        let seen = |plan: &Plan| {
            let found = (&plan.steps, &plan.watched, &plan.refusals);
            let notes: Vec<_> =
                plan.notes.iter().map(|note| (&note.address, &note.reason)).collect();
            without_columns(serde_json::to_value((found, notes)).unwrap())
        };
        assert_eq!(seen(&declared), seen(&included), "{rules:?}");
        assert_eq!((included.projects, incomplete(&included)), (2, vec![]));
        world.converge("brought in").await;
    }
}

#[tokio::test]
async fn excluded_projects_are_counted_and_never_changed() {
    let world = world_with_states().await;
    let id = world.get("/users?username=bob").await[0]["id"].clone();
    let member = json!({"user_id": id, "access_level": 40});
    world.call("POST", "/projects/acme%2Fone/members", Some(member)).await;
    let personal = json!({"name": "own"});
    world.call("POST", &format!("/projects/user/{id}"), Some(personal)).await;
    let settings = json!({"settings": {"merge_method": "ff"}, "archived": false});
    world
        .declare(&[including_rule("acme/**", settings.clone()), including_rule("bob/*", settings)]);
    let exceptions = |plan: &Plan| plan.exceptions.clone().into_iter().collect::<Vec<_>>();
    let plan = world.plan().await;
    assert_eq!(steps(&plan), ["acme/one#settings", "acme/web/two#settings"]);
    let always = [
        (ExclusionReason::Archived, 1),
        (ExclusionReason::MarkedForDeletion, 1),
        (ExclusionReason::Personal, 1),
    ];
    assert_eq!(exceptions(&plan), always);
    // A maintainer of one project sees the others, but does not change them.
    let plan = world.try_plan_as(BOB_TOKEN).await.unwrap();
    assert_eq!((steps(&plan), incomplete(&plan)), (vec!["acme/one#settings".to_owned()], vec![]));
    assert_eq!(exceptions(&plan).last(), Some(&(ExclusionReason::BelowMaintainer, 1)));
    world.converge("the others").await;
    for path in ["acme%2Fweb%2Fold", "acme%2Fgoing", "bob%2Fown", "other%2Fshared"] {
        let live = world.get(&format!("/projects/{path}")).await;
        assert_ne!(live["merge_method"], "ff", "{path}");
    }
    assert_eq!(world.get("/projects/acme%2Fweb%2Fold").await["archived"], true);
}

#[tokio::test]
async fn an_incomplete_list_includes_nothing() {
    for (path, nth) in [("/groups/acme/projects", 1), ("&page=2", 0)] {
        let mut seed = seed(&plain_projects(5));
        let groups = seed["groups"].as_array_mut().unwrap();
        groups.push(json!({"path": "other", "visibility": "public"}));
        seed["projects"].as_array_mut().unwrap().push(json!({"path": "other/shop"}));
        let profile = Profile { page_cap: Some(2), ..Profile::default() };
        let world = World::new(profile, seed).await;
        world.sandbox.add_fault(failing_read(path, nth, 403));
        let settings = json!({"settings": {"merge_method": "ff"}});
        let declared = project("acme/p001", json!({}));
        world.declare(&[including_rule("**", settings), declared]);
        let plan = world.plan().await;
        // Complete lists and declared containers are planned as usual.
        assert_eq!(steps(&plan), ["acme/p001#settings", "other/shop#settings"], "{path}");
        assert_eq!(incomplete(&plan), ["acme/**"], "{path}");
        let (_, left_out) = plan.approve(undrift::plan::ApprovalPolicy::default()).unwrap();
        assert_eq!(left_out.len(), 1);
    }
}

#[tokio::test]
async fn an_invisible_group_does_not_count_as_empty() {
    let mut seed = seed(&plain_projects(1));
    seed["users"][1]["token"] = BOB_TOKEN.into();
    let world = World::new(Profile::default(), seed).await;
    world.declare(&[including_rule("hidden/**", json!({"settings": {"merge_method": "ff"}}))]);
    assert_eq!(incomplete(&world.try_plan_as(BOB_TOKEN).await.unwrap()), ["hidden/**"]);
    // The path of a rule must exist, so that a typo is no empty result.
    assert_eq!(incomplete(&world.plan().await), ["hidden/**"], "an administrator");
    // The same for a container that this run creates.
    world.declare(&[
        including_rule("hidden/**", json!({"settings": {"merge_method": "ff"}})),
        json!({"kind": "Group", "path": "hidden", "create": true}),
    ]);
    assert_eq!(incomplete(&world.try_plan_as(BOB_TOKEN).await.unwrap()), [""; 0]);
}

/// The containers that a plan notes as gone, if something happens to the second of three projects
/// after the roster was read; with `trusting`, projects are read from the roster's rows.
async fn vanished_paths(
    profile: Profile,
    reads_roster_rows: bool,
    change: (&str, &str, Option<Json>),
) -> Vec<String> {
    let world = World::new(profile, seed(&plain_projects(3))).await;
    let sections =
        json!({"variables": [{"key": "A", "value": "x"}], "settings": {"merge_method": "ff"}});
    world.declare(&[including_rule("acme/*", sections)]);
    let desired = world.desired();
    let (first, mut settings) = world.connect(&desired).await.unwrap();
    let (desired, roster) = world.include_live(&first, desired, &mut settings).await.unwrap();
    assert_eq!(desired.containers.len(), 3);
    let (method, path, body) = change;
    world.call(method, path, body).await;
    let (second, _) = world.connect(&desired).await.unwrap();
    let observer = if reads_roster_rows { &first } else { &second };
    let plan = world.plan_with_roster(roster, observer, &desired, &settings).await.unwrap();
    assert!(plan.problems.is_empty() && plan.incomplete.is_empty(), "{method}: {plan:#?}");
    assert_eq!(plan.counts().projects, 2, "{method}");
    let gone = plan.notes.iter().filter(|note| note.reason == Reason::Vanished);
    gone.map(|note| note.address.to_string()).collect()
}

#[tokio::test]
async fn projects_that_vanish_before_they_are_read_are_left_out() {
    let delete = ("DELETE", "/projects/acme%2Fp001", None);
    assert_eq!(vanished_paths(Profile::default(), true, delete.clone()).await, ["acme/p001"]);
    let rename = ("PUT", "/projects/acme%2Fp001", Some(json!({"path": "renamed"})));
    let archive = ("POST", "/projects/acme%2Fp001/archive", None);
    for happens in [delete, rename, archive] {
        for deletion_delay in [None, Some(7)] {
            let profile = Profile { deletion_delay, ..Profile::default() };
            assert_eq!(
                vanished_paths(profile, false, happens.clone()).await,
                ["acme/p001"],
                "{happens:?}"
            );
        }
    }
}

#[tokio::test]
async fn included_projects_cost_the_pages_of_one_list() {
    let world = World::new(Profile::default(), seed(&plain_projects(230))).await;
    let rule = including_rule("acme/**", json!({"settings": {"merge_method": "merge"}}));
    world.declare(&[rule, project("acme/p000", json!({"settings": {"visibility": "private"}}))]);
    let plan = world.plan().await;
    assert_eq!((plan.projects, plan.steps.len()), (230, 0), "{plan:#?}");
    let requests = world.requests();
    assert_eq!(requests.len(), 1 + 3, "who asks, and three pages: {requests:#?}");
}

#[tokio::test]
async fn groups_are_included_too() {
    let mut seed = seed(&[]);
    seed["users"][1]["token"] = BOB_TOKEN.into();
    let groups = seed["groups"].as_array_mut().unwrap();
    groups[0]["members"] =
        json!([{"user": "root", "access_level": 50}, {"user": "bob", "access_level": 50}]);
    groups.extend(["acme/web", "acme/web/deep", "other"].map(|path| json!({"path": path})));
    let world = World::new(Profile::default(), seed).await;
    let mut rule = including_rule("acme/**", json!({"settings": {"description": "ours"}}));
    rule["for"] = "Group".into();
    rule["match"]["path"] = json!(["acme", "acme/**"]);
    world.declare(&[rule]);
    for token in [BOB_TOKEN, world.sandbox.token()] {
        let plan = world.try_plan_as(token).await.unwrap();
        let all = ["acme#settings", "acme/web#settings", "acme/web/deep#settings"];
        assert_eq!((steps(&plan), incomplete(&plan)), (all.map(str::to_owned).to_vec(), vec![]));
    }
    world.converge("groups").await;
    assert_eq!(world.get("/groups/other").await["description"], Json::Null);
}

#[tokio::test]
async fn included_projects_are_not_undeclared() {
    let world = world_with_states().await;
    let group = json!({"kind": "Group", "path": "acme", "unlisted": {"projects": "fail"}});
    world.declare(&[
        including_rule("acme/web/**", json!({"settings": {"merge_method": "ff"}})),
        group,
    ]);
    let plan = world.plan().await;
    let fails = |note: &&undrift::diff::Note| matches!(note.reason, Reason::UndeclaredFails { .. });
    let notes = plan.notes.iter().filter(fails).map(|note| note.address.to_string());
    assert_eq!(notes.collect::<Vec<_>>(), ["acme/going", "acme/one", "acme/web/old"]);
}

/// Projects below a group that moves are included by their new paths.
#[tokio::test]
async fn projects_of_a_moving_group_are_included_by_their_new_paths() {
    let world = world_with_states().await;
    world.declare(&[
        including_rule("acme/site/**", json!({"settings": {"merge_method": "ff"}})),
        json!({"kind": "Group", "path": "acme/site", "previously": ["acme/web"]}),
    ]);
    let plan = world.converge("moved").await;
    assert_eq!(steps(&plan), ["acme/site", "acme/site/two#settings"]);
    assert_eq!(world.get("/projects/acme%2Fsite%2Ftwo").await["merge_method"], "ff");
}

/// The same for a group that is not yet where the rule applies.
#[tokio::test]
async fn projects_of_a_group_that_moves_below_a_rule_are_included() {
    let mut world = world_with_states().await;
    world.acknowledged = vec!["transfer:**"];
    world.declare(&[
        including_rule("other/**", json!({"settings": {"merge_method": "ff"}})),
        json!({"kind": "Group", "path": "other/web", "previously": ["acme/web"]}),
    ]);
    let plan = world.converge("moved").await;
    assert_eq!(steps(&plan), ["other/shared#settings", "other/web", "other/web/two#settings"]);
}

#[tokio::test]
async fn a_rule_that_exceeds_its_reach_can_be_applied_in_steps() {
    let mut world = World::new(Profile::default(), seed(&plain_projects(20))).await;
    world.declare(&[including_rule("acme/**", json!({"settings": {"merge_method": "ff"}}))]);
    let plan = world.plan().await;
    assert_eq!(plan.refusals.len(), 1);
    let refusal = &plan.refusals[0];
    assert_eq!((&*refusal.acknowledgement, refusal.objects), ("reach:acme/**", 20));
    assert!(plan.approve(undrift::plan::ApprovalPolicy::default()).is_err());
    world.acknowledged = vec!["reach:acme/*"];
    assert_eq!(world.plan().await.refusals.len(), 1, "that is another glob");
    world.acknowledged = Vec::new();
    world.extent.max_containers = NonZeroUsize::new(5);
    for left in [15, 10, 5, 0] {
        let outcome = world.apply().await;
        assert_eq!(outcome.plan.counts().projects, 5);
        assert_eq!(outcome.plan.limited.unwrap().left_out, left);
        assert!(outcome.applied.unwrap().is_complete());
    }
    world.converge("all").await;
    world.extent.max_containers = None;
    world.declare(&[including_rule("acme/**", json!({"settings": {"merge_method": "merge"}}))]);
    world.acknowledged = vec!["reach:acme/**"];
    world.converge("acknowledged").await;
    world.acknowledged = Vec::new();
    world.extent.reach_limits = GuardLimits { count: 20, share: 1.0 };
    world.declare(&[including_rule("acme/**", json!({"settings": {"merge_method": "ff"}}))]);
    world.converge("within what the configuration allows").await;
}

/// A rule that matches nothing is no difference, but one with `--strict`.
#[tokio::test]
async fn a_rule_that_matches_nothing_is_counted_with_strict() {
    let world = World::new(Profile::default(), seed(&plain_projects(1))).await;
    for (path, differs) in [("acme/x*", true), ("acme/p*", false)] {
        world.declare(&[including_rule(path, json!({"settings": {}}))]);
        let plan = world.plan().await;
        assert_eq!(incomplete(&plan), [""; 0]);
        let found =
            [Strictness::Declared, Strictness::Unlisted].map(|how| plan.has_differences(how));
        assert_eq!(found, [false, differs], "{path}");
    }
}
