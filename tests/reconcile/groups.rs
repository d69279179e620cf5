//! Groups that a run creates, their contents, and entries that name them.

use std::time::Duration;

use serde_json::{Value as Json, json};
use undrift::{
    apply::{MismatchReason, StepOutcome},
    export::SecretHandling,
    release::{REFERENCE, Release},
    sandbox::Profile,
};

use crate::export::{export_settings, join_files};
use crate::world::{NEWEST, World, group, project, seed};

/// A tree of groups with projects, a share with one of them and a rule that names it; none of them
/// exists.
fn organisation(visibility: &str) -> Vec<Json> {
    let settings = json!({"visibility": visibility, "description": "made here"});
    let rule = json!({"name": "main", "allowed_to_merge": [{"group": "new/leads"}]});
    vec![
        group(
            "new",
            json!({
                "create": true, "settings": settings,
                "members": [{"user": "bob", "access_level": "developer"}],
            }),
        ),
        group("new/leads", json!({"create": true, "settings": settings})),
        group("New/Web/deep", json!({"create": true, "settings": {"visibility": visibility}})),
        group("new/web", json!({"create": true, "settings": settings})),
        project(
            "new/web/deep/shop",
            json!({
                "create": true, "settings": settings,
                "members": [{"user": "bob", "access_level": "maintainer"}],
                "variables": [{"key": "A", "value": "x"}],
                "shares": [{"group": "new/leads", "group_access": "developer"}],
                "protected_branches": [rule],
            }),
        ),
    ]
}

#[tokio::test]
async fn a_whole_tree_is_created_in_one_run() {
    for trusts in [Duration::ZERO, Duration::from_secs(60)] {
        let mut world = World::new(Profile::default(), seed(&[])).await;
        world.trust_time = trusts;
        world.declare(&organisation("internal"));
        let plan = world.converge("a tree").await;
        let created: Vec<_> = plan
            .steps
            .iter()
            .filter(|step| step.address.section.is_none())
            .map(|step| step.address.to_string())
            .collect();
        assert_eq!(created, ["New/Web/deep", "new", "new/leads", "new/web", "new/web/deep/shop"]);
        let shop = world.get("/projects/new%2Fweb%2Fdeep%2Fshop").await;
        assert_eq!(shop["visibility"], "internal");
        assert_eq!(shop["shared_with_groups"][0]["group_full_path"], "new/leads");
        let rules = world.get("/projects/new%2Fweb%2Fdeep%2Fshop/protected_branches").await;
        let leads = world.get("/groups/new%2Fleads").await;
        assert_eq!(rules[0]["merge_access_levels"][0]["group_id"], leads["id"]);
    }
}

#[tokio::test]
async fn projects_are_created_while_their_group_lets_somebody_create_them() {
    let level = |level: &str| group("acme", json!({"settings": {"project_creation_level": level}}));
    let new = |path: &str| project(path, json!({"create": true}));
    let world = World::new(Profile::default(), seed(&[])).await;
    world.declare(&[level("noone"), new("acme/first")]);
    world.converge("closed after it").await;
    world.declare(&[level("maintainer"), new("acme/first"), new("acme/second")]);
    world.converge("opened before it").await;
    // Another setting that changes with it, which new projects do not start with.
    let closed = json!({"settings": {"project_creation_level": "noone", "description": "x"}});
    world.declare(&[group("acme", closed), new("acme/third")]);
    world.converge("closed after it, with a description").await;
    let closed = json!({"create": true, "settings": {"project_creation_level": "noone"}});
    // In a new group it waits for them.
    world.declare(&[group("new", closed), new("new/shop")]);
    let left = world.apply().await.applied.unwrap().mismatches;
    let left: Vec<_> = left.iter().map(|left| (&left.fields[..], &left.reason)).collect();
    let level = ["project_creation_level".to_owned()];
    assert_eq!(left, [(&level[..], &MismatchReason::NotPlanned)]);
    world.converge("closed in the next run").await;
}

/// The service refuses a level below the one that the user has from a group above.
#[tokio::test]
async fn members_are_lowered_and_moved_down_in_one_run() {
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.acknowledged = vec!["removals:**"];
    let declare_tree = |levels: [Option<&str>; 3]| {
        let [acme, team, shop] = levels.map(|level| {
            let member = match level {
                Some(level) => json!({"user": "bob", "access_level": level}),
                None => json!({"user": "bob", "state": "absent"}),
            };
            json!({"create": true, "members": [member]})
        });
        world.declare(&[
            group("acme", json!({"members": acme["members"]})),
            group("acme/team", team),
            project("acme/team/shop", shop),
        ]);
    };
    for levels in [
        [Some("maintainer"), Some("maintainer"), Some("maintainer")],
        [Some("reporter"), Some("reporter"), Some("reporter")],
        [Some("maintainer"), None, None],
        [None, None, Some("developer")],
        [Some("maintainer"), Some("owner"), None],
        [None, Some("guest"), Some("reporter")],
    ] {
        declare_tree(levels);
        world.converge(&format!("{levels:?}")).await;
    }
}

/// A membership that no manifest lists stays, and the service compares with it, too.
#[tokio::test]
async fn an_unlisted_membership_in_between_keeps_its_level() {
    let developer = json!([{"user": "bob", "access_level": "developer"}]);
    let member = |level: &str| json!({"members": [{"user": "bob", "access_level": level}]});
    let mut service = seed(&[json!({"path": "acme/team/shop"})]);
    service["groups"] = json!([
        {"path": "acme", "members": developer}, {"path": "acme/team", "members": developer},
    ]);
    let mut world = World::new(Profile::default(), service).await;
    world.acknowledged = vec!["removals:**"];
    let declare = |policy: &str| {
        let team = json!({"members": [], "unlisted": {"members": policy}});
        world.declare(&[
            group("acme", member("reporter")),
            group("acme/team", team),
            project("acme/team/shop", member("reporter")),
        ]);
    };
    declare("report");
    let plan = world.plan().await;
    let problems: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(
        problems,
        [
            "`bob` is already developer through the group above, and the service refuses reporter here"
        ]
    );
    declare("delete");
    world.converge("removed in between").await;
}

#[tokio::test]
async fn visibility_changes_in_an_order_that_the_service_allows() {
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.acknowledged = vec!["visibility:**"];
    for visibility in ["private", "public", "internal", "private"] {
        world.declare(&organisation(visibility));
        world.converge(visibility).await;
    }
}

#[tokio::test]
async fn projects_of_a_group_that_was_not_created_are_skipped() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let mut documents = organisation("private");
    // The service refuses this name, which no check predicts.
    documents[3]["settings"]["name"] = "(web)".into();
    world.declare(&documents);
    let applied = world.apply().await.applied.unwrap();
    let ended: Vec<_> = applied
        .steps
        .iter()
        .map(|step| {
            let how = match &step.outcome {
                StepOutcome::Done => "done",
                StepOutcome::Failed(_) => "failed",
                StepOutcome::Skipped(_) => "skipped",
                _ => "other",
            };
            format!("{} {how}", step.address)
        })
        .collect();
    assert_eq!(
        ended,
        [
            "New/Web/deep skipped",
            "new done",
            "new#members/bob done",
            "new/leads done",
            "new/web failed",
            "new/web/deep/shop skipped",
            "new/web/deep/shop#members/bob skipped",
            "new/web/deep/shop#shares/new%2Fleads skipped",
            "new/web/deep/shop#variables/A@* skipped",
            "new/web/deep/shop#protected_branches/main skipped",
        ]
    );
}

#[tokio::test]
async fn projects_of_a_group_with_a_problem_are_left_out() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let mut documents = organisation("private");
    documents[0]["members"][0]["user"] = "nobody-of-this-name".into();
    world.declare(&documents);
    let plan = world.plan().await;
    let (approved, left_out) = plan.approve(undrift::plan::ApprovalPolicy::default()).unwrap();
    assert_eq!(approved.steps().count(), 0);
    let left_out: Vec<_> = left_out.iter().map(|left| left.address.to_string()).collect();
    assert_eq!(left_out, ["New/Web/deep", "new", "new/leads", "new/web", "new/web/deep/shop"]);
}

#[tokio::test]
async fn a_member_level_below_a_new_level_in_the_group_is_a_problem() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let mut documents = organisation("private");
    documents[4]["members"][0]["access_level"] = "reporter".into();
    world.declare(&documents);
    let plan = world.plan().await;
    let problems: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(
        problems,
        [
            "this run makes `bob` developer of the group `new` above, and the service then refuses reporter here"
        ]
    );
}

#[tokio::test]
async fn a_changed_variable_leaves_its_key_in_other_scopes() {
    let profiles =
        [Profile::default(), Profile { group_variable_filter: true, ..Profile::default() }];
    for profile in profiles {
        let world = World::new(profile, seed(&[])).await;
        let scoped = |scope: &str, value: &str| json!({"key": "A", "environment_scope": scope, "value": value, "raw": true});
        let all = ["*", "prod", "review/*"];
        let declare = |values: [&str; 3]| {
            let variables: Vec<_> = all.iter().zip(values).map(|(s, v)| scoped(s, v)).collect();
            let other = json!({"key": "B", "value": values[0]});
            world.declare(&[group(
                "acme",
                json!({"variables": variables.into_iter().chain([other]).collect::<Vec<_>>()}),
            )]);
        };
        declare(["one", "two", "three"]);
        world.converge("three scopes").await;
        declare(["one", "four", "five"]);
        let plan = world.converge("two of them").await;
        let steps: Vec<_> =
            plan.steps.iter().map(|step| (step.address.to_string(), step.replaces)).collect();
        assert_eq!(
            steps,
            [
                ("acme#variables/A@prod".to_owned(), true),
                ("acme#variables/A@review%2F*".to_owned(), true)
            ]
        );
        declare(["six", "four", "five"]);
        let plan = world.converge("one of them").await;
        let replaced: Vec<_> =
            plan.steps.iter().filter(|step| step.replaces).map(|s| s.address.to_string()).collect();
        assert_eq!(replaced, ["acme#variables/A@*"], "B has one scope, and is edited");
        let live = world.get("/groups/acme/variables").await;
        let mut values: Vec<_> = live
            .as_array()
            .unwrap()
            .iter()
            .map(|v| {
                format!(
                    "{}@{}={}",
                    v["key"].as_str().unwrap(),
                    v["environment_scope"].as_str().unwrap(),
                    v["value"].as_str().unwrap()
                )
            })
            .collect();
        values.sort();
        assert_eq!(values, ["A@*=six", "A@prod=four", "A@review/*=five", "B@*=six"]);
        assert!(live.as_array().unwrap().iter().all(|v| v["key"] != "A" || v["raw"] == true));
    }
}

#[tokio::test]
async fn a_push_rule_is_created_and_removed_despite_an_ambiguous_404() {
    let mut world = World::new(Profile::default(), seed(&[])).await;
    world.acknowledged = vec!["protection:**"];
    for rule in [json!({"max_file_size": 3}), json!(null), json!(null), json!({"max_file_size": 4})]
    {
        world.declare(&[group("acme", json!({"push_rule": rule}))]);
        world.converge("a rule, and none").await;
    }
}

/// Without a licence the service answers as if there were no rule. (Once, after a licence expired,
/// a group's rule was planned again.)
#[tokio::test]
async fn a_push_rule_without_a_licence_is_not_readable() {
    for release in [REFERENCE, NEWEST] {
        for tier in ["free", "premium"] {
            let mut seed = seed(&[]);
            seed["tier"] = tier.into();
            let world = World::new(Profile::default().with_release(release), seed).await;
            for rule in [json!({"max_file_size": 3}), json!(null)] {
                world.declare(&[group("acme", json!({"push_rule": rule}))]);
                let plan = world.plan().await;
                let unread = plan.incomplete.iter();
                let unread: Vec<_> =
                    unread.map(|i| (i.address.to_string(), i.reason.status)).collect();
                let expected = match tier {
                    "free" => (0, vec![("acme#push_rule".to_owned(), Some(404))]),
                    _ => (usize::from(!rule.is_null()), vec![]),
                };
                assert_eq!((plan.steps.len(), unread), expected, "{release} {tier} {rule}");
            }
        }
    }
}

/// Private projects of `acme`, whose settings are `above`, with the service's own answers.
async fn private_world(above: &Json) -> World {
    let mut seed = seed(&[json!({"path": "acme/one"}), json!({"path": "acme/two"})]);
    seed["groups"][0]["visibility"] = "private".into();
    let profile =
        Profile { release: Release::new(18, 9), runners_setting_shown: true, ..Profile::default() };
    let world = World::new(profile, seed).await;
    world.call("PUT", "/groups/acme", Some(above.clone())).await;
    world
}

#[tokio::test]
async fn a_plan_reads_the_limits_of_undeclared_groups() {
    let runners = json!({"shared_runners_setting": "disabled_and_unoverridable"});
    let previews = json!({"show_diff_preview_in_email": false});
    for (above, wanted, code) in [
        (json!({}), json!({"visibility": "public"}), Some("too-visible")),
        (runners, json!({"shared_runners_enabled": true}), Some("too-visible")),
        (previews, json!({"show_diff_preview_in_email": true}), None),
    ] {
        let mut world = private_world(&above).await;
        world.acknowledged = vec!["visibility:**", "protection:**"];
        world.declare(&[project("acme/one", json!({}))]);
        let snapshot = world.snapshot().await;
        let declared = |path: &str| project(path, json!({"settings": wanted}));
        let created = project("acme/neo", json!({"create": true, "settings": wanted}));
        world.declare(&[declared("acme/one"), declared("acme/two"), created]);
        let before = world.requests().len();
        let plan = world.plan().await;
        let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, vec![code; 3].into_iter().flatten().collect::<Vec<_>>(), "{wanted}");
        let requests = world.requests().split_off(before);
        let asked = requests
            .iter()
            .filter(|request| *request == "GET /api/v4/groups/acme?with_projects=false");
        assert_eq!(asked.count(), 1, "{wanted}");
        let (field, _) = wanted.as_object().unwrap().iter().next().unwrap();
        let sets = |field: &String| {
            plan.steps.iter().flat_map(|step| &step.changes).any(|change| *change.field == **field)
        };
        assert!(!sets(field), "{wanted}: {:#?}", plan.steps);
        let sent = plan.steps.iter().flat_map(|step| &step.calls).flat_map(|call| &*call.fields);
        assert!(
            !sent.clone().any(|sent| sent == field),
            "{wanted}: {:?}",
            sent.collect::<Vec<_>>()
        );
        let waiting = plan.notes.iter().filter(|note| note.fields == [field.clone()]);
        assert_eq!(waiting.count(), if code.is_none() { 3 } else { 0 }, "{wanted}");
        let from_snapshot = world.plan_from(&snapshot).await;
        assert_eq!(from_snapshot.problems, plan.problems, "{wanted}");
        assert_eq!(from_snapshot.notes, plan.notes, "{wanted}");
        // Changes of the group in the same run count as declared.
        let opens = json!({"visibility": "public", "show_diff_preview_in_email": true, "shared_runners_setting": "enabled"});
        let opened = group("acme", json!({"settings": opens}));
        world.declare(&[opened, declared("acme/one"), declared("acme/two")]);
        world.converge("opened above").await;
    }
}

#[tokio::test]
async fn a_projects_own_value_outranks_a_preset_of_its_group() {
    let world = private_world(&json!({"lfs_enabled": false, "auto_devops_enabled": false})).await;
    let own = json!({"lfs_enabled": true, "auto_devops_enabled": true});
    world.declare(&[project("acme/one", json!({"settings": own}))]);
    world.converge("its own").await;
    world.declare(&[
        group("acme", json!({"settings": {"lfs_enabled": false}})),
        project("acme/one", json!({"settings": {"lfs_enabled": true}})),
    ]);
    world.converge("beside the group's").await;
}

/// The list of the project then has two rules of one name.
#[tokio::test]
async fn a_group_and_its_project_protect_the_same_branch() {
    let level = |level: &str| json!([{"access_level": level}]);
    let rule = |push: &str| json!({"create": true, "protected_branches": [{"name": "main", "allowed_to_push": level(push), "allowed_to_merge": level("maintainer")}]});
    let world = World::new(Profile::default().with_release(NEWEST), seed(&[])).await;
    world.declare(&[group("new", rule("no_access")), project("new/shop", rule("maintainer"))]);
    world.converge("both").await;
    let rules = world.get("/projects/new%2Fshop/protected_branches").await;
    let names: Vec<_> = rules.as_array().unwrap().iter().map(|rule| &rule["name"]).collect();
    assert_eq!(names, ["main", "main"]);
    world.declare(&[group("new", rule("no_access")), project("new/shop", rule("no_access"))]);
    world.converge("only the rule of the project changes").await;
}

/// The first edit resets omitted fields, so an edit in a new group sends them.
#[tokio::test]
async fn one_approval_field_of_a_new_group_leaves_the_others_unchanged() {
    let mut world = World::new(Profile::default().with_release(NEWEST), seed(&[])).await;
    let setting = json!({"allow_author_approval": false});
    world.declare(&[group(
        "fresh",
        json!({"create": true, "merge_request_approval_setting": setting}),
    )]);
    world.acknowledged = vec!["protection:**"];
    world.converge("a new group").await;
    let live = world.get("/groups/fresh/merge_request_approval_setting").await;
    for (name, value) in [
        ("allow_author_approval", false),
        ("allow_committer_approval", true),
        ("allow_overrides_to_approver_list_per_merge_request", true),
        ("retain_approvals_on_push", true),
        ("require_password_to_approve", false),
    ] {
        assert_eq!(live[name]["value"], value, "{name}");
    }
    let token = world.sandbox.token().to_owned();
    let (written, _) =
        world.export_as(&token, &["fresh"], export_settings(SecretHandling::Plain)).await;
    let text = join_files(&written);
    for name in ["allow_committer_approval: true", "retain_approvals_on_push: true"] {
        assert!(text.contains(name), "{text}");
    }
}

/// Changes before a refusal stay, and the result reports them.
#[tokio::test]
async fn a_member_with_a_refused_override_is_reported_as_half_done() {
    let profile =
        Profile { override_needs_directory: true, ..Profile::default().with_release(NEWEST) };
    let world = World::new(profile, seed(&[])).await;
    let member = json!([{"user": "alice", "access_level": "developer", "override": true}]);
    world.declare(&[group("acme", json!({"members": member}))]);
    let applied = world.apply().await.applied.unwrap();
    let why = applied.steps[0].outcome.cause().unwrap().message.to_string();
    assert!(why.ends_with("; 1 of 2 calls succeeded, which is not undone"), "{why}");
}
