//! Constraints between declared objects: a successful run leaves an empty plan, and a failed run names
//! the cause.

use std::time::Duration;

use serde_json::{Value as Json, json};
use undrift::{apply::MismatchReason, diff::Reason, plan::Plan, sandbox::Profile};

use crate::world::{NEWEST, World, group, project, seed};

/// A project with a developer and a maintainer.
fn shop() -> Json {
    let member = |user: &str, level: u8| json!({"user": user, "access_level": level});
    json!({
        "path": "acme/shop", "branches": ["main"],
        "members": [member("alice", 30), member("bob", 40)],
    })
}

async fn world() -> World {
    let mut world = World::new(Profile::default().with_release(NEWEST), seed(&[shop()])).await;
    world.acknowledged = vec!["protection:**", "visibility:**"];
    world
}

fn approvals(author: bool) -> Json {
    project("acme/shop", json!({"approvals": {"merge_requests_author_approval": author}}))
}

fn approvals_above(author: bool) -> Json {
    let setting = json!({"allow_author_approval": author});
    group("acme", json!({"merge_request_approval_setting": setting}))
}

#[tokio::test]
async fn group_overrides_project_approvals() {
    let world = world().await;
    world.declare(&[approvals_above(false), approvals(true)]);
    let loaded = world.load_manifests();
    let messages: Vec<_> =
        loaded.diagnostics.sorted().into_iter().map(|found| found.message.clone()).collect();
    let message =
        "`merge_requests_author_approval` has no effect: `acme` has `allow_author_approval: false`";
    assert_eq!(messages, [message]);
    world.converge("the group decides").await;
    // Once the group allows it, the project follows in the same run.
    world.declare(&[approvals_above(true), approvals(true)]);
    let plan = world.converge("the group allows it").await;
    let after = |index: usize| plan.steps[index].after.iter().map(|edge| edge.address.to_string());
    assert_eq!(after(1).collect::<Vec<_>>(), ["acme#merge_request_approval_setting"]);
}

/// What a group forbids is seen at the plan although no manifest declares it, also after a move.
#[tokio::test]
async fn a_live_approval_setting_above_overrides_the_project() {
    let mut seeds = seed(&[shop(), json!({"path": "free/web/cart"})]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups.extend(["free", "free/web"].map(|path| json!({"path": path})));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**", "transfer:**"];
    world.declare(&[approvals_above(false)]);
    world.converge("the group forbids it").await;
    let approvals = json!({"merge_requests_author_approval": true});
    let moved = json!({"previously": ["free/web/cart"], "approvals": approvals});
    for document in
        [project("acme/shop", json!({"approvals": approvals})), project("acme/moved", moved)]
    {
        world.declare(&[document]);
        let plan = world.plan().await;
        let waits = |note: &undrift::diff::Note| match &note.reason {
            Reason::Waits { why } => why == "until `allow_author_approval` of `acme` allows it",
            _ => false,
        };
        assert!(plan.notes.iter().any(waits), "{:?}", plan.notes);
        world.converge("no manifest declares the group").await;
    }
    // A group that declares it sets it first, also for what is further below.
    let deep = json!({"previously": ["acme/moved"], "approvals": approvals});
    let team = group("acme/team", json!({"create": true}));
    world.declare(&[approvals_above(true), team, project("acme/team/moved", deep)]);
    let plan = world.converge("the group allows it").await;
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
}

/// The value of the project comes back once the group no longer replaces it.
#[tokio::test]
async fn a_value_that_a_group_no_longer_replaces_is_a_mismatch() {
    let world = world().await;
    world.declare(&[approvals(true)]);
    world.converge("allowed").await;
    world.declare(&[approvals_above(false), approvals(false)]);
    world.converge("the group forbids it").await;
    world.declare(&[approvals_above(true), approvals(false)]);
    let applied = world.apply().await.applied.unwrap();
    let [left] = &applied.mismatches[..] else { panic!("{:#?}", applied.mismatches) };
    assert_eq!(left.address.to_string(), "acme/shop#approvals");
    let MismatchReason::Undone(by) = &left.reason else { panic!("{left:?}") };
    assert_eq!(by.to_string(), "acme#merge_request_approval_setting");
    world.converge("in the next run").await;
}

/// A group that sets the same below can be contradicted there, in the same run.
#[tokio::test]
async fn a_subgroup_value_is_set_after_its_group_replaces_it() {
    let mut seeds = seed(&[]);
    seeds["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**"];
    let lock =
        |path: &str, on: bool| group(path, json!({"settings": {"share_with_group_lock": on}}));
    world.declare(&[lock("acme", true), lock("acme/team", false)]);
    let plan = world.converge("in one run").await;
    let after = plan.steps[1].after.iter().map(|edge| edge.address.to_string());
    assert_eq!(after.collect::<Vec<_>>(), ["acme#settings"]);
    // Unlocking changes nothing below.
    world.declare(&[lock("acme", false), lock("acme/team", false)]);
    assert_eq!(world.converge("unlocked").await.steps.len(), 1);
}

fn group_locks(on: bool) -> Json {
    group("acme", json!({"settings": {"share_with_group_lock": on, "membership_lock": on}}))
}

#[tokio::test]
async fn new_entries_under_a_group_lock_are_problems() {
    let other = |name: &str| json!({"path": name, "visibility": "public"});
    let mut seeds = seed(&[shop()]);
    seeds["groups"].as_array_mut().unwrap().extend([other("other"), other("third")]);
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**"];
    let with = |group: &str, user: &str| {
        let share = json!([{"group": group, "group_access": "developer"}]);
        let member = json!([{"user": user, "access_level": "developer"}]);
        project("acme/shop", json!({"shares": share, "members": member}))
    };
    world.declare(&[group_locks(true), with("other", "carol")]);
    let codes: Vec<_> =
        world.load_manifests().diagnostics.sorted().into_iter().map(|found| found.code).collect();
    assert_eq!(codes, ["locked", "locked"]);
    world.converge("locked after the entries exist").await;
    // The lock is live.
    for documents in [vec![group_locks(true), with("third", "dave")], vec![with("third", "dave")]] {
        world.declare(&documents);
        let plan = world.plan().await;
        let messages: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
        let expected = [
            "`membership_lock` of `acme` lets nobody be added to a project",
            "`share_with_group_lock` of `acme` lets no project be shared with a group",
        ];
        assert_eq!(messages, expected);
    }
    world.declare(&[group_locks(false), with("third", "dave")]);
    world.converge("unlocked before the entries are created").await;
}

/// The service has no request that edits a share: it would be removed and could not be added again.
#[tokio::test]
async fn a_share_is_not_replaced_while_a_lock_forbids_new_ones() {
    let mut seeds = seed(&[shop()]);
    let other = json!({"path": "other", "visibility": "public"});
    seeds["groups"].as_array_mut().unwrap().push(other);
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**"];
    let with = |level: &str| {
        let share = json!([{"group": "other", "group_access": level}]);
        project("acme/shop", json!({"shares": share}))
    };
    world.declare(&[with("developer")]);
    world.converge("shared").await;
    world.declare(&[with("reporter"), group_locks(true)]);
    world.converge("replaced before the lock").await;
    world.declare(&[with("guest")]);
    let outcome = world.apply().await;
    let found: Vec<_> = outcome.plan.problems.iter().map(|found| &*found.message).collect();
    assert_eq!(found, ["`share_with_group_lock` of `acme` lets no project be shared with a group"]);
    world.declare(&[with("reporter")]);
    assert!(world.plan().await.steps.is_empty(), "the share is still there");
    world.declare(&[with("guest"), group_locks(false)]);
    world.converge("replaced after the lock").await;
}

#[tokio::test]
async fn a_removed_member_in_a_rule_is_a_problem() {
    let rules = |user: &str| {
        json!({
            "members": [{"user": "bob", "access_level": "maintainer"}],
            "unlisted": {"members": "delete"},
            "protected_branches": [{"name": "main", "allowed_to_push": [{"user": user}]}],
            "approval_rules": [{"name": "Leads", "approvals_required": 1, "users": [user]}],
        })
    };
    let world = world().await;
    world.declare(&[project("acme/shop", rules("Alice"))]);
    let plan = world.plan().await;
    let found: Vec<_> = plan.problems.iter().map(|found| found.address.to_string()).collect();
    assert_eq!(found, ["acme/shop#approval_rules/Leads", "acme/shop#protected_branches/main"]);
    world.declare(&[project("acme/shop", rules("bob"))]);
    world.converge("another user").await;
}

/// Through the group above, she keeps access.
#[tokio::test]
async fn a_removed_member_with_inherited_access_may_be_in_a_rule() {
    let world = world().await;
    let member = json!([{"user": "alice", "access_level": "developer"}]);
    world.declare(&[group("acme", json!({"members": member}))]);
    world.converge("a member of the group").await;
    let sections = json!({
        "members": [{"user": "alice", "state": "absent"}],
        "protected_branches": [{"name": "main", "allowed_to_push": [{"user": "alice"}]}],
    });
    world.declare(&[project("acme/shop", sections)]);
    let outcome = world.apply().await;
    assert!(outcome.plan.problems.is_empty(), "{:#?}", outcome.plan.problems);
}

/// Her rule is perhaps restored once she has left, and only then he may leave.
#[tokio::test]
async fn a_member_leaves_after_a_possible_change_of_a_rule() {
    let mut world = world().await;
    world.acknowledged.push("removals:**");
    let member = |user: &str| json!({"user": user, "access_level": "developer"});
    let rule = json!([{"name": "main", "allowed_to_push": [{"user": "alice"}]}]);
    let shop = |members: Json| {
        project("acme/shop", json!({"members": members, "protected_branches": rule}))
    };
    let group = group("acme", json!({"members": [member("alice")]}));
    world.declare(std::slice::from_ref(&group));
    world.converge("a member of the group").await;
    let direct = json!([member("alice"), member("bob")]);
    world.declare(&[group.clone(), shop(direct)]);
    world.converge("direct members").await;
    let absent = ["alice", "bob"].map(|user| json!({"user": user, "state": "absent"}));
    world.declare(&[group, shop(json!(absent))]);
    let plan = world.converge("both leave").await;
    assert!(plan.steps.iter().any(|step| step.possible.is_some()));
}

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

#[tokio::test]
async fn a_removed_deploy_key_in_a_rule_is_a_problem() {
    let world = world().await;
    let sections = |keys: Json| {
        json!({
            "deploy_keys": keys,
            "unlisted": {"deploy_keys": "delete"},
            "protected_branches": [{"name": "main", "allowed_to_push": [{"deploy_key": "ci"}]}],
        })
    };
    let key = json!([{"title": "ci", "key": KEY, "can_push": true}]);
    world.declare(&[project("acme/shop", sections(key))]);
    world.converge("with the key").await;
    world.declare(&[project("acme/shop", sections(json!([])))]);
    let plan = world.plan().await;
    assert_eq!(plan.problems.len(), 1, "{:#?}", plan.problems);
}

/// The group's document removes her, and a rule of the project still names her.
#[tokio::test]
async fn a_member_removed_from_the_group_is_noted_for_the_rules_below() {
    let world = world().await;
    let rule = json!([{"name": "main", "allowed_to_push": [{"user": "carol"}]}]);
    let below = project("acme/shop", json!({"protected_branches": rule}));
    let member = json!([{"user": "carol", "access_level": "developer"}]);
    world.declare(&[group("acme", json!({"members": member})), below.clone()]);
    world.converge("with access").await;
    let absent = json!([{"user": "carol", "state": "absent"}]);
    world.declare(&[group("acme", json!({"members": absent})), below]);
    let note = "acme#members/carol: it may end access that rules need: `acme/shop#protected_branches/main`";
    assert_eq!(side_effect_notes(&world.converge("removed").await), [note]);
}

#[tokio::test]
async fn a_project_in_its_own_job_token_allowlist_has_no_effect() {
    let world = world().await;
    let list = json!({"job_token_allowlist": [{"project": "Acme/shop"}]});
    world.declare(&[project("acme/shop", list.clone())]);
    let codes: Vec<_> =
        world.load_manifests().diagnostics.sorted().into_iter().map(|found| found.code).collect();
    assert_eq!(codes, ["no-effect"]);
    world.converge("itself").await;
    let mut rule = list;
    rule.as_object_mut().unwrap().extend([
        ("kind".to_owned(), "Defaults".into()),
        ("match".to_owned(), json!({"path": "acme/**"})),
    ]);
    world.declare(&[rule, project("acme/shop", json!({}))]);
    assert_eq!(world.load_manifests().diagnostics.sorted().len(), 0);
    world.converge("by a rule").await;
}

/// Sections of a disabled feature are skipped, with their references.
#[tokio::test]
async fn sections_of_a_disabled_feature_are_skipped() {
    let world = world().await;
    let off = json!({
        "repository_access_level": "disabled", "merge_requests_access_level": "disabled",
        "builds_access_level": "disabled", "issues_access_level": "disabled",
    });
    world.declare(&[project("acme/shop", json!({"settings": off}))]);
    world.converge("off").await;
    let sections = json!({
        "settings": off,
        "labels": [{"name": "bug", "color": "#ff0000"}],
        "milestones": [{"title": "one"}],
        "variables": [{"key": "A", "value": "x"}],
        "protected_branches": [{"name": "main"}],
        "approval_rules": [{"name": "L", "approvals_required": 1, "protected_branches": ["main"]}],
    });
    world.declare(&[project("acme/shop", sections)]);
    let plan = world.converge("closed, as declared").await;
    let closed = plan.notes.iter().filter(|note| matches!(note.reason, Reason::Closed { .. }));
    assert_eq!(closed.count(), 5, "{:#?}", plan.notes);
}

/// Entries are removed first, and created last.
#[tokio::test]
async fn entries_are_removed_before_their_feature_is_switched_off() {
    let mut world = world().await;
    world.acknowledged.push("removals:**");
    let mut there = json!({
        "labels": [{"name": "bug", "color": "#ff0000"}],
        "milestones": [{"title": "one"}],
        "environments": [{"name": "prod"}],
        "variables": [{"key": "A", "value": "x"}],
    });
    world.declare(&[project("acme/shop", there.clone())]);
    world.converge("with entries").await;
    for (_, entries) in there.as_object_mut().unwrap() {
        *entries = json!([]);
    }
    let policy = json!({"labels": "delete", "milestones": "delete", "environments": "delete", "variables": "delete"});
    there["unlisted"] = policy;
    there["settings"] = json!({
        "merge_requests_access_level": "disabled", "issues_access_level": "disabled",
        "builds_access_level": "disabled", "environments_access_level": "disabled",
    });
    world.declare(&[project("acme/shop", there)]);
    let plan = world.converge("removed, then off").await;
    assert_eq!(plan.steps.last().unwrap().address.to_string(), "acme/shop#settings");
    // One request closes CI/CD again and opens the wiki and issues.
    let open = json!({
        "settings": {"issues_access_level": "enabled", "wiki_access_level": "disabled"},
        "labels": [{"name": "bug", "color": "#ff0000"}],
    });
    world.declare(&[project("acme/shop", open)]);
    world.converge("one on, another one off").await;
}

/// A new project has no section of a feature that it does not have.
#[tokio::test]
async fn a_new_project_gets_no_entries_of_a_disabled_feature() {
    let world = world().await;
    let mut new = project(
        "acme/fresh",
        json!({
            "settings": {
                "repository_access_level": "disabled", "merge_requests_access_level": "disabled",
                "builds_access_level": "disabled", "issues_access_level": "disabled",
            },
            "labels": [{"name": "bug", "color": "#ff0000"}],
            "environments": [{"name": "prod"}],
            "variables": [{"key": "A", "value": "x"}],
            "protected_branches": [{"name": "main"}],
            "approval_rules": [{"name": "L", "approvals_required": 1, "protected_branches": ["main"]}],
        }),
    );
    new["create"] = true.into();
    world.declare(&[new]);
    let plan = world.converge("new").await;
    let closed = plan.notes.iter().filter(|note| matches!(note.reason, Reason::Closed { .. }));
    assert_eq!(closed.count(), 5, "{:#?}", plan.notes);
}

/// Entries below those of a section that cannot be read yet are planned with that section.
#[tokio::test]
async fn entries_below_others_are_created_once_their_feature_is_on() {
    let world = world().await;
    let features = |state: &str| json!({"builds_access_level": state});
    world.declare(&[project("acme/shop", json!({"settings": features("disabled")}))]);
    world.converge("off").await;
    let sections = json!({
        "settings": features("enabled"),
        "pipeline_schedules": [{"description": "n", "ref": "refs/heads/main", "cron": "0 1 * * *"}],
        "pipeline_schedule_variables": [{"schedule": "n", "key": "A", "value": "x"}],
    });
    world.declare(&[project("acme/shop", sections)]);
    let plan = world.converge("on").await;
    assert_eq!(plan.steps.len(), 3, "{:#?}", plan.steps);
}

/// A new project has a protection or a rule that nobody declares. A later run removes it.
#[tokio::test]
async fn what_a_new_project_must_not_have_is_a_mismatch() {
    let world = world_with_groups().await;
    world.declare(&[group("acme/sub", json!({"push_rule": {"max_file_size": 10}}))]);
    world.converge("a rule for new projects").await;
    let fresh = |name: &str, sections: Json| {
        let mut fresh = project(&format!("acme/sub/{name}"), sections);
        fresh["create"] = json!({"initialize_with_readme": true});
        fresh
    };
    let absent = json!({"protected_branches": [{"name": "main", "state": "absent"}]});
    let unlisted = json!({"protected_branches": [], "unlisted": {"protected_branches": "fail"}});
    for (name, sections, address) in [
        ("a", json!({"push_rule": null}), "acme/sub/a#push_rule"),
        ("b", absent, "acme/sub/b#protected_branches/main"),
        ("c", unlisted, "acme/sub/c#protected_branches/main"),
    ] {
        world.declare(&[fresh(name, sections)]);
        let applied = world.apply().await.applied.unwrap();
        let mismatches: Vec<_> =
            applied.mismatches.iter().map(|left| left.address.to_string()).collect();
        assert_eq!(mismatches, [address]);
        assert!(!applied.is_complete());
    }
}

/// A project in a group within a group.
async fn world_with_team() -> World {
    let mut seeds = seed(&[json!({"path": "acme/team/app", "branches": ["main"]})]);
    seeds["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**"];
    world
}

/// A group above takes away what it does not allow; the group that it leaves that to decides then.
#[tokio::test]
async fn runners_that_no_group_above_allows_are_a_problem() {
    let mut world = world_with_team().await;
    let of = |path: &str| {
        group(path, json!({"settings": {"shared_runners_setting": "disabled_and_overridable"}}))
    };
    let on = json!({"settings": {"shared_runners_enabled": true}});
    let app = || project("acme/team/app", on.clone());
    let mut fresh = project("acme/team/fresh", on.clone());
    fresh["create"] = true.into();
    // The group in between is in no manifest, and the change above shuts it.
    world.declare(&[of("acme"), app(), fresh.clone()]);
    let plan = world.plan().await;
    let messages: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
    let message = "`shared_runners_enabled` goes beyond the `shared_runners_setting` of `acme/team`, which `acme` sets to `disabled_and_unoverridable` in this run";
    assert_eq!(messages, [message; 2]);
    world.declare(&[of("acme"), of("acme/team"), app(), fresh]);
    let plan = world.converge("the group in between allows it").await;
    let step = plan.steps.iter().find(|step| *step.address.path == *"acme/team/app").unwrap();
    assert_eq!(step.after[0].address.to_string(), "acme/team#settings");
    world.acknowledged.push("visibility:**");
    world.declare(&[group("acme", json!({"settings": {"shared_runners_setting": "enabled"}}))]);
    world.converge("on again").await;
    world.declare(&[of("acme")]);
    world.converge("off, with nothing declared below").await;
    world.declare(&[app()]);
    let plan = world.plan().await;
    let found: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
    let message = "`shared_runners_enabled` goes beyond the `shared_runners_setting` of `acme/team`, which is `disabled_and_unoverridable`";
    assert_eq!(found, [message]);
}

/// A change of the group switches the runners of its projects off, also where a project declares them.
#[tokio::test]
async fn runners_that_a_group_switches_off_are_set_after_it() {
    let mut world = World::new(Profile::default().with_release(NEWEST), seed(&[shop()])).await;
    world.acknowledged = vec!["protection:**"];
    let of =
        |setting: &str| group("acme", json!({"settings": {"shared_runners_setting": setting}}));
    let shop = |on: bool| project("acme/shop", json!({"settings": {"shared_runners_enabled": on}}));
    world.declare(&[of("disabled_and_overridable"), shop(true)]);
    let plan = world.converge("off, but for one").await;
    assert_eq!(plan.steps.len(), 2, "{:#?}", plan.steps);
    world.declare(&[of("enabled"), shop(false)]);
    world.converge("the other way round").await;
    // The project may be read again only when the group has switched its runners off already.
    world.trust_time = Duration::ZERO;
    world.declare(&[of("enabled"), shop(true)]);
    world.acknowledged.push("visibility:**");
    world.converge("on again").await;
    world.acknowledged.pop();
    world.declare(&[of("disabled_and_overridable"), shop(true)]);
    let outcome = world
        .apply_after(async |world| {
            let off = json!({"shared_runners_enabled": false});
            world.call("PUT", "/projects/acme%2Fshop", Some(off)).await;
        })
        .await;
    let applied = outcome.unwrap().applied.unwrap();
    assert!(applied.is_complete(), "{applied:#?}");
    assert_eq!(world.plan().await.steps.len(), 0);
    // A group that is only watched changes nothing.
    let mut watched = of("enabled");
    watched["watch"] = true.into();
    world.declare(&[watched, shop(true)]);
    assert_eq!(world.plan().await.steps.len(), 0);
}

/// A group without a value shows its parent's value.
#[tokio::test]
async fn an_inherited_value_is_set_after_the_parent_group() {
    let math = |path: &str, settings: Json| group(path, json!({"settings": settings}));
    let team = |on: bool| math("acme/team", json!({"math_rendering_limits_enabled": on}));
    let top = |on: bool, lock: bool| {
        let settings = json!({"math_rendering_limits_enabled": on, "lock_math_rendering_limits_enabled": lock});
        math("acme", settings)
    };
    let mut seeds = seed(&[]);
    seeds["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
    let world = World::new(Profile::default().with_release(NEWEST), seeds.clone()).await;
    world.declare(&[top(false, false), team(true)]);
    world.converge("in one run").await;
    let codes = |world: &World| -> Vec<_> {
        world
            .load_manifests()
            .diagnostics
            .sorted()
            .into_iter()
            .map(|diagnostic| diagnostic.code)
            .collect()
    };
    for (on, below) in [(false, true), (true, false)] {
        let world = World::new(Profile::default().with_release(NEWEST), seeds.clone()).await;
        world.declare(&[top(on, true), team(below)]);
        world.converge("locked").await;
        assert_eq!(codes(&world), ["no-effect"]);
        world.declare(&[top(on, false), team(below)]);
        world.converge("unlocked").await;
    }
}

/// A membership lock applies to everything below, whatever the groups between declare.
#[tokio::test]
async fn a_membership_lock_of_any_ancestor_is_a_problem() {
    let world = world_with_team().await;
    let lock = |path: &str, on: bool| group(path, json!({"settings": {"membership_lock": on}}));
    let with = |user: &str| {
        let member = json!([{"user": user, "access_level": "developer"}]);
        project("acme/team/app", json!({"members": member}))
    };
    world.declare(&[lock("acme", true), lock("acme/team", true), with("alice")]);
    world.converge("locked after she was added").await;
    world.declare(&[with("bob")]);
    assert_eq!(world.plan().await.problems.len(), 1, "nothing of the groups is declared");
    world.declare(&[lock("acme", true), lock("acme/team", false), with("bob")]);
    let plan = world.plan().await;
    let found: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
    assert_eq!(found, ["`membership_lock` of `acme` lets nobody be added to a project"]);
    world.declare(&[lock("acme", false), with("bob")]);
    let plan = world.plan().await;
    let messages: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
    assert_eq!(messages, ["`membership_lock` of `acme/team` lets nobody be added to a project"]);
    world.declare(&[lock("acme", false), lock("acme/team", false), with("bob")]);
    world.converge("both unlock first").await;
}

/// Only members and administrators see the access that a private group gives.
#[tokio::test]
async fn a_user_with_access_by_a_hidden_group_is_no_outsider() {
    const BOBS: &str = "a-token-of-bob";
    let mut seeds = seed(&[json!({"path": "acme/app", "branches": ["main"]})]);
    seeds["users"][1]["token"] = BOBS.into();
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups[0]["members"].as_array_mut().unwrap().push(json!({"user": "bob", "access_level": 50}));
    let member = json!([{"user": "carol", "access_level": 30}]);
    groups.push(json!({"path": "secret", "visibility": "private", "members": member}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**"];
    let shares = json!([{"group": "secret", "group_access": "developer"}]);
    world.declare(&[project("acme/app", json!({"shares": shares}))]);
    world.converge("shared").await;
    let rule = json!([{"name": "main", "allowed_to_push": [{"user": "carol"}]}]);
    world.declare(&[project("acme/app", json!({"protected_branches": rule}))]);
    assert_eq!(world.try_plan_as(BOBS).await.unwrap().problems, []);
    world.converge("by the administrator").await;
}

/// A service with the groups `other` and `acme/sub`, and the project `acme/sub/shop`.
async fn world_with_groups() -> World {
    let mut seeds = seed(&[json!({"path": "acme/sub/shop", "branches": ["main"]})]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups.push(json!({"path": "other", "visibility": "public"}));
    groups.push(json!({"path": "acme/sub", "visibility": "public"}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**", "removals:**"];
    world
}

/// The service compares with the live shares, also if the document has none.
#[tokio::test]
async fn a_rule_that_names_a_group_without_a_share_is_a_problem() {
    let world = world_with_groups().await;
    let rows = json!([{"access_level": "maintainer"}, {"group": "other"}]);
    let rules = [
        json!({"protected_branches": [{"name": "main", "allowed_to_push": rows}]}),
        json!({"protected_tags": [{"name": "v*", "allowed_to_create": rows}]}),
        json!({"protected_environments": [{"name": "prod", "deploy_access_levels": rows}]}),
        json!({"protected_environments": [{
            "name": "prod", "deploy_access_levels": [{"access_level": "maintainer"}],
            "approval_rules": [{"group": "other", "required_approvals": 1}],
        }]}),
    ];
    for rule in rules {
        world.declare(&[project("acme/sub/shop", rule.clone())]);
        let plan = world.plan().await;
        let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["low-share"], "{rule}: {plan:#?}");
    }
    let rows = json!([{"group": "other"}, {"group": "acme"}]);
    let rule = json!({"protected_branches": [{"name": "main", "allowed_to_push": rows}]});
    world.declare(&[project("acme/sub/shop", rule)]);
    assert_eq!(world.plan().await.problems.len(), 2, "all groups at once");
    // Any group that the caller sees can approve.
    let rule =
        json!({"approval_rules": [{"name": "L", "approvals_required": 1, "groups": ["other"]}]});
    world.declare(&[project("acme/sub/shop", rule)]);
    world.converge("approvers").await;
}

/// A group names only those below it.
#[tokio::test]
async fn a_rule_of_a_group_that_names_another_group_is_a_problem() {
    let world = world_with_groups().await;
    let rule = |group: &str| {
        let rows = json!([{"access_level": "maintainer"}, {"group": group}]);
        json!({"protected_environments": [{"name": "production", "deploy_access_levels": rows}]})
    };
    for other in ["other", "acme"] {
        world.declare(&[group("acme", rule(other))]);
        let plan = world.plan().await;
        let codes: Vec<_> = plan.problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["low-share"], "{other}: {plan:#?}");
    }
    world.declare(&[group("acme", rule("acme/sub"))]);
    world.converge("below").await;
}

/// A user gets access by two steps of other groups.
#[tokio::test]
async fn a_rule_waits_for_the_share_and_for_the_member() {
    let mut seeds = seed(&[json!({"path": "zoo/shop", "branches": ["main"]})]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups.extend([json!({"path": "other"}), json!({"path": "zoo"})]);
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**"];
    let share = json!([{"group": "other", "group_access": "developer"}]);
    let member = json!([{"user": "carol", "access_level": "developer"}]);
    let rule = json!([{"name": "main", "allowed_to_push": [{"user": "carol"}]}]);
    world.declare(&[
        group("zoo", json!({"shares": share})),
        group("other", json!({"members": member})),
        project("zoo/shop", json!({"protected_branches": rule})),
    ]);
    let plan = world.converge("a share and a member").await;
    let rule = plan.steps.iter().find(|step| &*step.address.path == "zoo/shop").unwrap();
    let after: Vec<_> = rule.after.iter().map(|edge| edge.address.to_string()).collect();
    assert_eq!(after, ["other#members/carol", "zoo#shares/other"]);
}

/// Notes about the removal of a member.
fn side_effect_notes(plan: &Plan) -> Vec<String> {
    let notes = plan.notes.iter().filter_map(|note| match &note.reason {
        Reason::Besides { what } => Some(format!("{}: {what}", note.address)),
        _ => None,
    });
    notes.collect()
}

/// Nothing of the project shows that it is shared with the group that carol leaves.
#[tokio::test]
async fn a_member_removed_from_a_shared_group_is_noted_for_the_rules_that_name_her() {
    let world = world_with_groups().await;
    let share = json!([{"group": "other", "group_access": "developer"}]);
    let member = json!([{"user": "Carol", "access_level": "developer"}]);
    let rule =
        json!({"protected_branches": [{"name": "main", "allowed_to_push": [{"user": "carol"}]}]});
    let shop = |more: &Json| project("acme/sub/shop", more.clone());
    world.declare(&[group("other", json!({"members": member})), shop(&json!({"shares": share}))]);
    world.converge("shared").await;
    let without = group("other", json!({"members": [], "unlisted": {"members": "delete"}}));
    world.declare(&[without.clone(), shop(&rule)]);
    let plan = world.plan().await;
    let note = "other#members/carol: it may end access that rules need: `acme/sub/shop#protected_branches/main`";
    assert_eq!(side_effect_notes(&plan), [note]);
    let removal = plan.steps.iter().find(|step| &*step.address.path == "other").unwrap();
    let after: Vec<_> = removal.after.iter().map(|edge| edge.address.to_string()).collect();
    assert_eq!(after, ["acme/sub/shop#protected_branches/main"], "a rule first");
    world.declare(&[shop(&rule)]);
    world.converge("with a rule").await;
    world.declare(&[without.clone(), shop(&rule)]);
    assert_eq!(side_effect_notes(&world.plan().await), [note], "no step of the rule");
    // With access by another document she loses none.
    for other in [
        group("acme", json!({"members": member})),
        project("acme/sub/shop", json!({"members": member})),
    ] {
        let mut other = other;
        let documents = if other["path"] == "acme" {
            vec![without.clone(), other, shop(&rule)]
        } else {
            other.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
            vec![without.clone(), other]
        };
        world.declare(&documents);
        assert_eq!(side_effect_notes(&world.plan().await), [] as [&str; 0]);
    }
}

/// The service takes grants away with the membership, also if he has access by a group then.
#[tokio::test]
async fn a_member_moved_to_the_parent_group_stays_in_rules() {
    let world = world_with_groups().await;
    let member = json!([{"user": "bob", "access_level": "developer"}]);
    let shop = |members: &Json| {
        project(
            "acme/sub/shop",
            json!({
                "members": members, "unlisted": {"members": "delete"},
                "protected_branches": [{"name": "main", "allowed_to_push": [{"user": "bob"}]}],
                "approval_rules": [{"name": "L", "approvals_required": 1, "users": ["bob"]}],
            }),
        )
    };
    world.declare(&[shop(&member)]);
    world.converge("in the project").await;
    world.declare(&[group("acme", json!({"members": member})), shop(&json!([]))]);
    let plan = world.converge("in the group").await;
    let removal = "acme/sub/shop#members/bob";
    let after = |of: &str| -> Vec<_> {
        let step = plan.steps.iter().find(|step| step.address.to_string() == of).unwrap();
        step.after.iter().map(|edge| edge.address.to_string()).collect()
    };
    assert_eq!(after(removal), ["acme#members/bob"]);
    assert_eq!(after("acme/sub/shop#protected_branches/main"), [removal]);
    // He is in the group already.
    world.declare(&[shop(&member)]);
    world.converge("in both").await;
    world.declare(&[shop(&json!([]))]);
    world.converge("in the group alone").await;
    world.declare(&[
        group("acme", json!({"members": [], "unlisted": {"members": "delete"}})),
        shop(&member),
    ]);
    world.converge("back").await;
}

/// An edit sends only new rows, so the service does not check the others.
#[tokio::test]
async fn a_user_without_access_stays_in_a_rule_that_is_edited() {
    let world = world_with_groups().await;
    let share = json!([{"group": "other", "group_access": "developer"}]);
    let member = json!([{"user": "carol", "access_level": "developer"}]);
    let rule = |force: bool| {
        let rows = json!([{"user": "carol"}]);
        let rule = json!({"name": "main", "allowed_to_push": rows, "allow_force_push": force});
        project("acme/sub/shop", json!({"protected_branches": [rule]}))
    };
    let mut shared = rule(false);
    shared["shares"] = share;
    world.declare(&[group("other", json!({"members": member})), shared]);
    world.converge("shared").await;
    let carol = world.get("/users?username=carol").await[0]["id"].clone();
    world.call("DELETE", &format!("/groups/other/members/{carol}"), None).await;
    world.declare(&[rule(true)]);
    world.converge("edited").await;
}

/// All outsiders of a step are reported at once.
#[tokio::test]
async fn outsiders_are_reported_together() {
    let world = world_with_groups().await;
    let rows = json!([{"user": "dave"}, {"user": "carol"}]);
    let rule = json!({"protected_branches": [{"name": "main", "allowed_to_push": rows}]});
    world.declare(&[project("acme/sub/shop", rule)]);
    let plan = world.plan().await;
    let found: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
    let message = "the rule names `carol`, `dave`, who have no access to `acme/sub/shop`, and the service refuses that";
    assert_eq!(found, [message]);
}

/// Access to a moving project, and to a personal project.
#[tokio::test]
async fn outsiders_of_a_moving_or_personal_project_are_reported() {
    let there = |path: &str| json!({"path": path, "branches": ["main"], "members": [{"user": "dave", "access_level": 30}]});
    let mut seeds = seed(&[there("acme/shop"), there("bob/own")]);
    let member = |user: &str| json!([{"user": user, "access_level": 30}]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups.push(json!({"path": "new", "members": member("carol")}));
    groups.push(json!({"path": "team", "members": member("bob")}));
    groups[0]["members"].as_array_mut().unwrap().push(member("alice")[0].clone());
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**", "transfer:**"];
    let rules = |path: &str, users: &[&str]| {
        let rows: Vec<_> = users.iter().map(|user| json!({"user": user})).collect();
        project(path, json!({"protected_branches": [{"name": "main", "allowed_to_push": rows}]}))
    };
    let all_users = ["alice", "bob", "carol", "dave"];
    for (path, former, outsiders) in [
        ("bob/own", None, "`alice`, `carol`"),
        ("acme/store", Some("acme/shop"), "`bob`, `carol`"),
        ("new/shop", Some("acme/shop"), "`alice`"),
    ] {
        if path == "new/shop" {
            let team = world.get("/groups/team").await["id"].clone();
            let share = json!({"group_id": team, "group_access": 30});
            world.call("POST", "/projects/acme%2Fshop/share", Some(share)).await;
        }
        let with = |users: &[&str]| {
            let mut declared = rules(path, users);
            if let Some(former) = former {
                declared["previously"] = json!([former]);
            }
            declared
        };
        world.declare(&[with(&all_users)]);
        let plan = world.plan().await;
        let found: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
        let have = if outsiders.contains(',') { "have" } else { "has" };
        let message = format!(
            "the rule names {outsiders}, who {have} no access to `{path}`, and the service refuses that"
        );
        assert_eq!(found, [message]);
        if path != "acme/store" {
            let inside = all_users.iter().filter(|user| !outsiders.contains(**user)).copied();
            world.declare(&[with(&inside.collect::<Vec<_>>())]);
            world.converge(path).await;
        }
    }
}

/// A protected variable that gets another scope unprotected counts as weakened.
#[tokio::test]
async fn a_variable_in_another_scope_keeps_its_protection() {
    let mut world = world().await;
    world.acknowledged = Vec::new();
    let variable = |scope: &str, protected: bool| json!({"key": "A", "environment_scope": scope, "value": "x", "protected": protected});
    let declare = |variables: Json| {
        let sections = json!({"variables": variables, "unlisted": {"variables": "delete"}});
        world.declare(&[project("acme/shop", sections)]);
    };
    declare(json!([variable("*", true)]));
    world.converge("protected").await;
    let undeclared = json!({"key": "A", "environment_scope": "prod", "value": "x"});
    for weaker in [variable("prod", false), undeclared] {
        declare(json!([weaker]));
        let plan = world.plan().await;
        let refused: Vec<_> = plan.refusals.iter().map(|refusal| &*refusal.reason).collect();
        assert!(refused.contains(&"would switch off `protected`"), "{refused:?}");
    }
    for all in
        [json!([variable("prod", true)]), json!([variable("*", true), variable("prod", false)])]
    {
        declare(all);
        let refused = world.plan().await.refusals.clone();
        assert!(refused.iter().all(|refusal| !refusal.reason.contains("protected")), "{refused:?}");
    }
}

/// A row that a rule loses is shown by name, as far as a section shows it.
#[tokio::test]
async fn removed_rows_of_rules_have_names() {
    let world = world().await;
    let members = json!([{"user": "alice", "access_level": "developer"}, {"user": "bob", "access_level": "maintainer"}]);
    let declare = |users: &[&str]| {
        let rule = json!([{"name": "Leads", "approvals_required": 1, "users": users}]);
        world.declare(&[project("acme/shop", json!({"members": members, "approval_rules": rule}))]);
    };
    declare(&["alice", "bob"]);
    world.converge("two").await;
    declare(&["alice"]);
    let plan = world.plan().await;
    let before = format!("{:?}", plan.steps[0].changes[0].before);
    assert!(before.contains("bob"), "{before}");
}

/// Rules of a group name its maintainers; the service drops other users, and refuses a rule without any.
#[tokio::test]
async fn a_rule_of_a_group_names_only_maintainers() {
    let world = world().await;
    let with = |level: &str| {
        let member = json!([{"user": "alice", "access_level": level}]);
        group("acme", json!({"members": member}))
    };
    let rule = |user: &str| {
        let environment = json!([{"name": "production", "deploy_access_levels": [{"user": user}]}]);
        group("acme", json!({"protected_environments": environment}))
    };
    world.declare(&[with("developer")]);
    world.converge("a developer").await;
    let mut both = rule("alice");
    both["members"] = with("developer")["members"].clone();
    world.declare(&[both.clone()]);
    let plan = world.plan().await;
    let found: Vec<_> = plan.problems.iter().map(|found| &*found.message).collect();
    let message =
        "the rule names `alice`, who is only developer of this group, and the service refuses that";
    assert_eq!(found, [message]);
    both["members"] = with("maintainer")["members"].clone();
    world.declare(&[both]);
    world.converge("a maintainer").await;
}

/// The messages of the problems of the next plan.
async fn problems(world: &World, documents: &[Json]) -> Vec<String> {
    world.declare(documents);
    world.plan().await.problems.iter().map(|problem| problem.message.clone()).collect()
}

/// The groups and projects inside are no matter; the group itself is one of those that cannot be shared.
#[tokio::test]
async fn shares_outside_the_hierarchy_are_problems_while_the_top_level_group_prevents_them() {
    let world = world_with_groups().await;
    let group_with_flag = |on: bool| {
        group("acme", json!({"settings": {"prevent_sharing_groups_outside_hierarchy": on}}))
    };
    let with = |other: &str, level: &str| json!([{"group": other, "group_access": level}]);
    let shop =
        |other: &str, level: &str| project("acme/sub/shop", json!({"shares": with(other, level)}));
    let shared = |level: &str, on: bool| {
        let mut top = group_with_flag(on);
        top["shares"] = with("other", level);
        [top, group("acme/sub", json!({"shares": with("other", level)})), shop("other", level)]
    };
    world.declare(&shared("reporter", true));
    let codes: Vec<_> =
        world.load_manifests().diagnostics.sorted().into_iter().map(|found| found.code).collect();
    assert_eq!(codes, ["locked", "locked", "locked"]);
    world.converge("locked after the shares exist").await;
    let message = "`prevent_sharing_groups_outside_hierarchy` of `acme` lets nothing be shared with a \
                   group of another top-level group";
    for documents in [shared("developer", true).to_vec(), shared("developer", true)[1..].to_vec()] {
        assert_eq!(problems(&world, &documents).await, vec![message; documents.len()]);
    }
    // A group that is new inherits it.
    let fresh = json!({"create": true, "shares": with("other", "guest")});
    assert_eq!(problems(&world, &[group("acme/fresh", fresh)]).await, [message]);
    world.declare(&[shop("acme", "guest")]);
    assert!(world.load_manifests().diagnostics.has_errors(), "a group above");
    world.declare(&shared("developer", false));
    world.converge("unlocked before the shares are replaced").await;
}

fn with_label(mut document: Json, name: &str) -> Json {
    document["labels"] = json!([{"name": name, "color": "#112233"}]);
    document["unlisted"] = json!({"labels": "delete"});
    document
}

/// The service takes a label above one of the same title, but not below it.
#[tokio::test]
async fn a_label_is_created_before_its_group_label_or_after_its_removal() {
    let world = world_with_groups().await;
    let shop = |name: &str| with_label(project("acme/sub/shop", json!({})), name);
    let top = |name: &str| with_label(group("acme", json!({})), name);
    world.declare(&[top("bug"), shop("bug")]);
    let plan = world.converge("the lower one first").await;
    let after: Vec<_> = plan.steps[0].after.iter().map(|edge| edge.address.to_string()).collect();
    assert_eq!(after, ["acme/sub/shop#labels/bug"]);
    world.declare(&[top("ops"), shop("bug")]);
    world.converge("another one above").await;
    let taken =
        "the group `acme` has a label with this name, and the service refuses another one below";
    assert_eq!(problems(&world, &[shop("ops")]).await, [taken]);
    let fresh = project("acme/sub/fresh", json!({"create": true}));
    assert_eq!(problems(&world, &[with_label(fresh, "ops")]).await, [taken]);
    world.declare(&[top("bug"), shop("ops")]);
    world.converge("exchanged").await;
}

/// A rename frees the former title for what is below, and must not take one of a group above.
#[tokio::test]
async fn a_label_gets_a_title_freed_by_a_group_label_rename() {
    let world = world_with_groups().await;
    let renamed = |mut document: Json, name: &str, former: &str| {
        document = with_label(document, name);
        document["labels"][0]["previously"] = json!([former]);
        document
    };
    let (top, shop) = (group("acme", json!({})), project("acme/sub/shop", json!({})));
    world.declare(&[with_label(top.clone(), "bug"), with_label(shop.clone(), "ops")]);
    world.converge("two titles").await;
    world.declare(&[renamed(top.clone(), "flaw", "bug"), with_label(shop.clone(), "bug")]);
    world.converge("created after the rename above").await;
    let taken =
        "the group `acme` has a label with this name, and the service refuses another one below";
    assert_eq!(problems(&world, &[renamed(shop.clone(), "flaw", "bug")]).await, [taken]);
    world.declare(&[renamed(top, "bug", "flaw"), renamed(shop, "flaw", "bug")]);
    world.converge("exchanged").await;
}

/// A new project gets the integrations of its group.
#[tokio::test]
async fn a_new_project_gets_the_issue_tracker_of_its_group() {
    let world = world_with_groups().await;
    let tracker = |slug: &str| {
        let url = |path: &str| format!("https://{slug}.example.org/{path}");
        json!({"integrations": [{
            "slug": slug, "project_url": url(""), "issues_url": url(":id"), "new_issue_url": url("new"),
        }]})
    };
    world.declare(&[
        group("acme", tracker("bugzilla")),
        project("acme/sub/shop", tracker("redmine")),
    ]);
    world.converge("another one below is set before that of the group").await;
    let fresh = |slug: &str| {
        let mut fresh = project("acme/sub/fresh", tracker(slug));
        fresh["create"] = true.into();
        fresh
    };
    let expected = "a project has one issue tracker, and gets `bugzilla` of `acme`";
    assert_eq!(problems(&world, &[fresh("redmine")]).await, [expected]);
    world.declare(&[fresh("bugzilla")]);
    world.converge("the same one").await;
}

/// The service refuses to hide a group with something in it that everybody sees.
#[tokio::test]
async fn a_group_is_not_made_less_visible_than_its_contents() {
    let mut seeds = seed(&[json!({"path": "acme/sub/shop", "settings": {"visibility": "public"}})]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups[0]["visibility"] = "public".into();
    groups.push(json!({"path": "acme/sub", "visibility": "public"}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["protection:**", "visibility:**"];
    let seen = |visibility: &str| json!({"settings": {"visibility": visibility}});
    let groups = ["acme", "acme/sub"].map(|path| group(path, seen("private")));
    let expected =
        "`acme/sub` in it is public: the service refuses that in a group that is private";
    assert_eq!(problems(&world, &groups[..1]).await, [expected]);
    let expected =
        "`acme/sub/shop` in it is public: the service refuses that in a group that is private";
    assert_eq!(problems(&world, &groups).await, [expected; 2]);
    // A group that is renamed at the same time is another one only by its path.
    let mut crew = group("acme/crew", seen("private"));
    crew["previously"] = json!(["acme/sub"]);
    let shop = project("acme/crew/shop", seen("private"));
    world.declare(&[groups[0].clone(), crew, shop]);
    world.converge("all of them").await;
}

#[tokio::test]
async fn a_new_project_in_a_group_with_creation_level_noone_is_a_problem() {
    let world = world().await;
    let level = |level: &str| group("acme", json!({"settings": {"project_creation_level": level}}));
    world.declare(&[level("noone")]);
    world.converge("nobody").await;
    let fresh = project("acme/fresh", json!({"create": true}));
    let expected = "`project_creation_level` of `acme` lets nobody create projects";
    assert_eq!(problems(&world, std::slice::from_ref(&fresh)).await, [expected]);
    world.declare(&[level("maintainer"), fresh]);
    world.converge("maintainers").await;
}

/// Nothing is shared with a group that does not exist yet, unless it is declared.
#[tokio::test]
async fn a_rule_that_names_a_new_group_needs_its_share() {
    let world = world_with_groups().await;
    let new = group("acme/fresh", json!({"create": true}));
    let rows = json!([{"access_level": "maintainer"}, {"group": "acme/fresh"}]);
    let mut shop = project(
        "acme/sub/shop",
        json!({"protected_branches": [{"name": "main", "allowed_to_push": rows}]}),
    );
    let expected = "the rule names `acme/fresh`, a group with which the project is not shared, and the service refuses that";
    assert_eq!(problems(&world, &[new.clone(), shop.clone()]).await, [expected]);
    shop["shares"] = json!([{"group": "acme/fresh", "group_access": "developer"}]);
    world.declare(&[new, shop]);
    world.converge("with a share").await;
}

/// Members of a group with which a group above is shared have access; nobody else gets any by it.
#[tokio::test]
async fn a_share_of_a_group_above_gives_access_to_its_members_only() {
    let world = world_with_groups().await;
    let member = json!([{"user": "alice", "access_level": "developer"}]);
    world.declare(&[group("other", json!({"members": member}))]);
    world.converge("a member").await;
    let share = json!([{"group": "other", "group_access": "developer"}]);
    let top = group("acme", json!({"shares": share}));
    let rule = |user: &str| {
        let rows = json!([{"user": user}]);
        let rule = json!([{"name": "main", "allowed_to_push": rows}]);
        project("acme/sub/shop", json!({"protected_branches": rule}))
    };
    let expected =
        "the rule names `bob`, who has no access to `acme/sub/shop`, and the service refuses that";
    assert_eq!(problems(&world, &[top.clone(), rule("bob")]).await, [expected]);
    world.declare(&[top, rule("alice")]);
    world.converge("a member of the group").await;
}

/// Rules of a group name those who maintain it, also by a group above.
#[tokio::test]
async fn a_rule_of_a_group_that_names_no_maintainer_is_a_problem() {
    let world = world_with_groups().await;
    let rule = |user: &str| {
        let environment = json!([{"name": "production", "deploy_access_levels": [{"user": user}]}]);
        group("acme/sub", json!({"protected_environments": environment}))
    };
    let expected = "the rule names `bob`, who has no maintainer access to `acme/sub`, and the service refuses that";
    assert_eq!(problems(&world, &[rule("bob")]).await, [expected]);
    let member = json!([{"user": "bob", "access_level": "maintainer"}]);
    world.declare(&[group("acme", json!({"members": member})), rule("bob")]);
    world.converge("a maintainer above").await;
}

/// A share with a group in which a maintainer is less takes nothing away.
#[tokio::test]
async fn a_share_with_a_lower_level_keeps_a_maintainer() {
    let world = world_with_groups().await;
    let member = |level: &str| json!([{"user": "alice", "access_level": level}]);
    let share = json!([{"group": "other", "group_access": "developer"}]);
    world.declare(&[
        group("acme", json!({"members": member("maintainer"), "shares": share})),
        group("other", json!({"members": member("developer")})),
    ]);
    world.converge("both").await;
    let environment = json!([{"name": "production", "deploy_access_levels": [{"user": "alice"}]}]);
    let top = group("acme", json!({"shares": share, "protected_environments": environment}));
    assert_eq!(problems(&world, std::slice::from_ref(&top)).await, [""; 0]);
    world.converge("a rule").await;
}

/// A new group does not start with the value of its group, if that leaves the choice to those below.
#[tokio::test]
async fn a_project_in_a_new_group_has_the_default_runner_setting() {
    let world = world_with_team().await;
    let top =
        group("acme", json!({"settings": {"shared_runners_setting": "disabled_and_overridable"}}));
    let fresh = [
        group("acme/fresh", json!({"create": true})),
        project(
            "acme/fresh/app",
            json!({"create": true, "settings": {"shared_runners_enabled": true}}),
        ),
    ];
    let both = [vec![top.clone()], fresh.to_vec()].concat();
    let prefix =
        "`shared_runners_enabled` goes beyond the `shared_runners_setting` of `acme/fresh`, which";
    let expected = format!("{prefix} `acme` sets to `disabled_and_unoverridable` in this run");
    assert_eq!(problems(&world, &both).await, [expected]);
    world.declare(&[top]);
    world.converge("off").await;
    let expected = format!("{prefix} is `disabled_and_unoverridable`");
    assert_eq!(problems(&world, &fresh).await, [expected]);
}

/// A group is narrowed first only if its parent is narrowed too.
#[tokio::test]
async fn a_group_that_becomes_less_visible_is_set_after_the_group_above() {
    let world = world_with_groups().await;
    let runners = json!({"shared_runners_setting": "disabled_and_overridable"});
    let mut below = runners.clone();
    below["visibility"] = "private".into();
    world.declare(&[
        group("acme", json!({"settings": runners})),
        group("acme/sub", json!({"settings": below})),
    ]);
    world.converge("in one run").await;
}

/// Steps of one group keep their order if they are planned again before the first write.
#[tokio::test]
async fn a_group_is_shared_before_it_is_locked_and_after_unlocking() {
    let world = world_with_groups().await;
    let top = |on: bool, level: &str| {
        let settings = json!({"prevent_sharing_groups_outside_hierarchy": on});
        let shares = json!([{"group": "other", "group_access": level}]);
        group("acme", json!({"settings": settings, "shares": shares}))
    };
    world.declare(&[top(true, "reporter")]);
    world.converge("locked after the share exists").await;
    world.declare(&[top(false, "developer")]);
    world.converge("unlocked before the share is replaced").await;
}

/// The removal of the label of one group leaves that of another one.
#[tokio::test]
async fn a_label_is_created_after_removal_from_all_parent_groups() {
    let world = world_with_groups().await;
    let top = |name: &str| with_label(group("acme", json!({})), name);
    let sub = |name: &str| with_label(group("acme/sub", json!({})), name);
    let shop = with_label(project("acme/sub/shop", json!({})), "bug");
    world.declare(&[sub("bug")]);
    world.converge("below").await;
    world.declare(&[top("bug")]);
    world.converge("above").await;
    let taken = |path: &str| {
        format!(
            "the group `{path}` has a label with this name, and the service refuses another one below"
        )
    };
    let found = problems(&world, std::slice::from_ref(&shop)).await;
    assert_eq!(found, [taken("acme/sub")], "once");
    assert_eq!(problems(&world, &[top("ops"), shop.clone()]).await, [taken("acme/sub")]);
    assert_eq!(problems(&world, &[sub("old"), shop.clone()]).await, [taken("acme")]);
    world.declare(&[top("ops"), sub("old"), shop]);
    let plan = world.converge("both are gone").await;
    let shop = plan.steps.iter().find(|step| &*step.address.path == "acme/sub/shop").unwrap();
    let after: Vec<_> = shop.after.iter().map(|edge| edge.address.to_string()).collect();
    assert_eq!(after, ["acme/sub#labels/bug", "acme#labels/bug"]);
}

/// A group is compared with the groups above as a project is.
#[tokio::test]
async fn a_subgroup_repeats_a_milestone_but_no_label_of_its_group() {
    let world = world_with_groups().await;
    let milestone = |mut document: Json, title: &str| {
        document["milestones"] = json!([{"title": title}]);
        document["unlisted"]["milestones"] = "delete".into();
        document
    };
    let top = |name: &str| milestone(with_label(group("acme", json!({})), name), name);
    let sub = |name: &str| milestone(with_label(group("acme/sub", json!({})), name), name);
    world.declare(&[top("v1"), sub("v1")]);
    let plan = world.converge("the lower ones first").await;
    let after = plan.steps.iter().flat_map(|step| &step.after);
    let after: Vec<_> = after.map(|edge| edge.address.to_string()).collect();
    assert_eq!(after, ["acme/sub#labels/v1"]);
    world.declare(&[top("v2"), sub("v1")]);
    world.converge("others above").await;
    let taken =
        "the group `acme` has a label with this name, and the service refuses another one below";
    assert_eq!(problems(&world, &[sub("v2")]).await, [taken]);
    world.declare(&[top("v1"), sub("v2")]);
    world.converge("exchanged").await;
}

fn with_visibility(visibility: &str) -> Json {
    json!({"settings": {"visibility": visibility}})
}

/// A subgroup that left does not limit its group.
#[tokio::test]
async fn a_subgroup_leaves_before_its_group_becomes_less_visible() {
    let shop = json!({"path": "acme/sub/shop", "settings": {"visibility": "public"}});
    let mut seeds = seed(&[shop]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups[0]["visibility"] = "public".into();
    groups.extend(["acme/sub", "other"].map(|path| json!({"path": path, "visibility": "public"})));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["transfer:**", "visibility:**"];
    let mut moved = group("other/sub", json!({}));
    moved["previously"] = json!(["acme/sub"]);
    world.declare(&[group("acme", with_visibility("private")), moved.clone()]);
    let plan = world.converge("the subgroup first").await;
    let group_step = plan.steps.iter().find(|step| &*step.address.path == "acme").unwrap();
    let after: Vec<_> = group_step.after.iter().map(|edge| edge.address.to_string()).collect();
    assert_eq!(after, ["other/sub"]);
}

/// The contents of a moving group limit its visibility.
#[tokio::test]
async fn a_moving_group_becomes_less_visible_after_its_contents() {
    let shop = json!({"path": "acme/sub/shop", "settings": {"visibility": "public"}});
    let mut seeds = seed(&[shop]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups[0]["visibility"] = "public".into();
    groups.push(json!({"path": "acme/sub", "visibility": "public"}));
    groups.push(json!({"path": "other", "visibility": "private"}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["transfer:**", "visibility:**"];
    let mut moved = group("other/sub", with_visibility("private"));
    moved["previously"] = json!(["acme/sub"]);
    let expected =
        "`other/sub/shop` in it is public: the service refuses that in a group that is private";
    assert_eq!(problems(&world, std::slice::from_ref(&moved)).await, [expected]);
    world.declare(&[moved, project("other/sub/shop", with_visibility("private"))]);
    world.converge("the project first").await;
}

/// Each of the two alone is a valid declaration.
#[tokio::test]
async fn a_live_value_that_excludes_a_declared_one_is_a_problem() {
    let world = world().await;
    let approvals = |fields: Json| [project("acme/shop", json!({"approvals": fields}))];
    world.declare(&approvals(json!({"reset_approvals_on_push": true})));
    world.converge("all approvals are taken back").await;
    let found = problems(&world, &approvals(json!({"selective_code_owner_removals": true}))).await;
    assert_eq!(found, ["a push takes back either all approvals or some of them"]);
    let both = json!({"selective_code_owner_removals": true, "reset_approvals_on_push": false});
    world.declare(&approvals(both));
    world.converge("some of them").await;
    let milestone = |fields: Json| [project("acme/shop", json!({"milestones": [fields]}))];
    world.declare(&milestone(json!({"title": "v1", "due_date": "2099-01-31"})));
    world.converge("due").await;
    let late = json!({"title": "v1", "start_date": "2099-02-01"});
    let found = problems(&world, &milestone(late)).await;
    assert_eq!(found, ["`due_date` is before `start_date`"]);
}

/// The group in between is created in the same run, with the members of the group above it.
#[tokio::test]
async fn a_member_below_the_level_of_a_group_further_above_is_a_problem() {
    let mut seeds = seed(&[]);
    let alice = json!({"user": "alice", "access_level": 40});
    seeds["groups"].as_array_mut().unwrap().push(json!({"path": "outer", "members": [alice]}));
    let world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    let with = |level: &str| {
        let member = json!([{"user": "alice", "access_level": level}]);
        [
            group("outer/inner", json!({"create": true})),
            project("outer/inner/shop", json!({"create": true, "members": member})),
        ]
    };
    let found = problems(&world, &with("developer")).await;
    let message = "`alice` is already maintainer through the group above, and the service refuses developer here";
    assert_eq!(found, [message]);
    world.declare(&with("maintainer"));
    world.converge("the same level").await;
}

/// The removal changes nothing below that the plan does not show.
#[tokio::test]
async fn a_member_removed_from_a_group_stays_in_subgroups_and_projects() {
    let world = world_with_groups().await;
    let alice = json!([{"user": "alice", "access_level": "developer"}]);
    let with = |members: &Json| json!({"members": members});
    let below = [group("acme/sub", with(&alice)), project("acme/sub/shop", with(&alice))];
    world.declare(&[vec![group("acme", with(&alice))], below.to_vec()].concat());
    world.converge("everywhere").await;
    let gone = json!([{"user": "alice", "state": "absent"}]);
    world.declare(&[vec![group("acme", with(&gone))], below.to_vec()].concat());
    let plan = world.converge("only below").await;
    assert_eq!(plan.steps.len(), 1);
}

#[tokio::test]
async fn a_new_project_at_the_path_of_a_group_is_a_problem() {
    let world = world_with_groups().await;
    let fresh = project("acme/sub", json!({"create": true}));
    let expected = "there is a group at `acme/sub`, and no project can have the same path";
    assert_eq!(problems(&world, &[fresh]).await, [expected]);
    let fresh = group("acme/sub/shop", json!({"create": true}));
    let expected = "there is a project at `acme/sub/shop`, and no group can have the same path";
    assert_eq!(problems(&world, &[fresh]).await, [expected]);
    let mut moved = project("acme/sub", json!({}));
    moved["previously"] = json!(["acme/sub/shop"]);
    let expected = "there is a group at `acme/sub`, and no project can have the same path";
    assert_eq!(problems(&world, &[moved.clone()]).await, [expected]);
    let mut away = group("acme/team", json!({}));
    away["previously"] = json!(["acme/sub"]);
    let mut top = project("acme/sub", json!({}));
    top["create"] = true.into();
    world.declare(&[away, top]);
    world.converge("after the group is renamed").await;
}
/// The service would lower the visibility, or refuse the move.
#[tokio::test]
async fn a_public_project_that_moves_into_a_less_visible_group_is_a_problem() {
    let shop = json!({"path": "acme/shop", "settings": {"visibility": "public"}});
    let mut seeds = seed(&[shop]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups.push(json!({"path": "other", "visibility": "internal"}));
    groups.push(json!({"path": "acme/team", "visibility": "public"}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["transfer:**", "visibility:**"];
    let moved = |mut document: Json, former: &str| {
        document["previously"] = json!([former]);
        document
    };
    let shop = |sections: Json| moved(project("other/shop", sections), "acme/shop");
    let team = |sections: Json| moved(group("other/team", sections), "acme/team");
    let other = |visibility: &str| group("other", with_visibility(visibility));
    let live = "`visibility` goes beyond the `visibility` of `other`, which is `internal`";
    for documents in [
        vec![shop(json!({}))],
        vec![team(json!({}))],
        vec![shop(with_visibility("public"))],
        vec![shop(json!({})), other("internal")],
    ] {
        assert_eq!(problems(&world, &documents).await, [live], "{documents:?}");
    }
    let fresh = [
        group("fresh", json!({"create": true})),
        moved(project("fresh/shop", json!({})), "acme/shop"),
    ];
    let found = problems(&world, &fresh).await;
    let expected =
        "it would be public in the group `fresh`, which would be private: the service refuses that";
    assert_eq!(found, [expected]);
    world.declare(&[shop(json!({})), team(json!({})), other("public")]);
    world.converge("after the group is widened").await;
}
/// A group takes over locks of the group that it moves to.
#[tokio::test]
async fn a_group_moves_below_a_group_with_locks() {
    let mut seeds = seed(&[json!({"path": "old/team/app", "branches": ["main"]})]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups.extend(
        ["old", "old/team", "old/inner", "old/inner/core", "other"]
            .map(|path| json!({"path": path, "visibility": "public"})),
    );
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["transfer:**", "visibility:**", "protection:**"];
    world.declare(&[group_locks(true)]);
    world.converge("locked").await;
    let team = |sections: Json| {
        let mut team = group("acme/team", sections);
        team["previously"] = json!(["old/team"]);
        team
    };
    let app = |sections: Json| project("acme/team/app", sections);
    let member = json!([{"user": "carol", "access_level": "developer"}]);
    let share = json!([{"group": "other", "group_access": "developer"}]);
    let found = problems(&world, &[team(json!({})), app(json!({"members": member}))]).await;
    assert_eq!(found, ["`membership_lock` of `acme` lets nobody be added to a project"]);
    let found = problems(&world, &[team(json!({})), app(json!({"shares": share}))]).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let open = json!({"settings": {"share_with_group_lock": false, "math_rendering_limits_enabled": true}});
    world.declare(&[team(open), app(json!({}))]);
    world.converge("moved").await;
    // The run finds changes further below by itself.
    let mut inner = group("acme/inner", json!({}));
    inner["previously"] = json!(["old/inner"]);
    let core = json!({"settings": {"share_with_group_lock": false}});
    world.declare(&[inner, group("acme/inner/core", core)]);
    let applied = world.apply().await.applied.unwrap();
    let [left] = &applied.mismatches[..] else { panic!("{:#?}", applied.mismatches) };
    let MismatchReason::Undone(by) = &left.reason else { panic!("{left:?}") };
    assert_eq!(
        (left.address.to_string(), by.to_string()),
        ("acme/inner/core#settings".into(), "acme/inner".into())
    );
    world.converge("in the next run").await;
}
/// The service refuses the second one in any order.
#[tokio::test]
async fn a_milestone_of_a_group_and_of_a_project_in_it_is_a_problem() {
    let world = world_with_groups().await;
    let with = |mut document: Json, titles: &[&str]| {
        let titles: Vec<_> = titles.iter().map(|title| json!({"title": title})).collect();
        document["milestones"] = json!(titles);
        document["unlisted"] = json!({"milestones": "delete"});
        document
    };
    let (top, shop) = (group("acme/sub", json!({})), project("acme/sub/shop", json!({})));
    world.declare(&[with(top.clone(), &["v1"]), with(shop.clone(), &["v1"])]);
    let loaded = world.load_manifests();
    assert!(loaded.diagnostics.has_errors());
    world.declare(&[with(top.clone(), &["v1"]), with(shop.clone(), &["v2"])]);
    world.converge("two titles").await;
    world.declare(&[with(top.clone(), &["v1", "v2"]), with(shop.clone(), &["v3"])]);
    world.converge("the group takes the title of the project").await;
    world.declare(&[with(top, &["v2"]), with(shop.clone(), &["v1", "v3"])]);
    world.converge("the project takes the title of the group").await;
    let found = problems(&world, &[with(shop, &["v2"])]).await;
    let taken = "the group `acme/sub` has a milestone with this name, and the service refuses another one below";
    assert_eq!(found, [taken]);
    // Other groups and projects may have the title.
    let (outer, other) = (group("acme", json!({})), group("acme/sub", json!({})));
    world.declare(&[with(outer, &["v3"]), with(other, &["v3"])]);
    assert!(!world.load_manifests().diagnostics.has_errors());
}
/// A member of a group has access only to what is in the group or shared with it.
#[tokio::test]
async fn an_outsider_who_joins_an_unrelated_group_stays_an_outsider() {
    let world = world_with_groups().await;
    let member = |level: &str| json!([{"user": "carol", "access_level": level}]);
    let join = |path: &str| group(path, json!({"members": member("developer")}));
    let users = json!([{"user": "carol"}]);
    let rules = [
        json!({"protected_branches": [{"name": "main", "allowed_to_push": users}]}),
        json!({"protected_tags": [{"name": "v*", "allowed_to_create": users}]}),
        json!({"protected_environments": [{"name": "prod", "deploy_access_levels": users}]}),
        json!({"approval_rules": [{"name": "L", "approvals_required": 1, "users": ["carol"]}]}),
    ];
    let expected = "the rule names `carol`, who has no access to `acme/sub/shop`, and the service refuses that";
    for rule in &rules {
        let found =
            problems(&world, &[join("other"), project("acme/sub/shop", rule.clone())]).await;
        assert_eq!(found, [expected], "{rule}");
    }
    let environment = json!([{"name": "production", "deploy_access_levels": users}]);
    let environment = json!({"protected_environments": environment});
    let top = group("other", json!({"members": member("maintainer")}));
    let expected_above = "the rule names `carol`, who has no maintainer access to `acme/sub`, and the service refuses that";
    let found = problems(&world, &[top.clone(), group("acme/sub", environment.clone())]).await;
    assert_eq!(found, [expected_above]);
    // With a share, the group is related, whether it is new or live.
    let shares = json!([{"group": "other", "group_access": "maintainer"}]);
    let shared = |document: Json| {
        let mut document = document;
        document["shares"] = shares.clone();
        document
    };
    world.declare(&[top, shared(group("acme/sub", environment))]);
    world.converge("a new share").await;
    world.declare(&[group("other", json!({"members": [{"user": "carol", "state": "absent"}]}))]);
    world.apply().await;
    world.declare(&[join("other"), project("acme/sub/shop", rules[0].clone())]);
    world.converge("a live share of the group above").await;
}

/// A group that moves loses the members of the groups that were above it.
#[tokio::test]
async fn a_member_of_a_former_parent_group_is_an_outsider() {
    let maintainer = |user: &str| json!([{"user": user, "access_level": 40}]);
    let mut seeds = seed(&[json!({"path": "acme/team/app", "branches": ["main"]})]);
    let groups = seeds["groups"].as_array_mut().unwrap();
    groups[0]["members"].as_array_mut().unwrap().push(maintainer("alice")[0].clone());
    groups.push(json!({"path": "acme/team", "members": maintainer("bob")}));
    groups.push(json!({"path": "other", "visibility": "public", "members": maintainer("carol")}));
    let mut world = World::new(Profile::default().with_release(NEWEST), seeds).await;
    world.acknowledged = vec!["transfer:**", "protection:**"];
    let documents = |users: &[&str]| {
        let users: Vec<_> = users.iter().map(|user| json!({"user": user})).collect();
        let environment = json!([{"name": "production", "deploy_access_levels": users}]);
        let mut team = group("other/team", json!({"protected_environments": environment}));
        team["previously"] = json!(["acme/team"]);
        let rule = json!([{"name": "main", "allowed_to_push": users}]);
        [team, project("other/team/app", json!({"protected_branches": rule}))]
    };
    let expected =
        ["maintainer access to `other/team`", "access to `other/team/app`"].map(|what| {
            format!("the rule names `alice`, who has no {what}, and the service refuses that")
        });
    assert_eq!(problems(&world, &documents(&["alice", "bob", "carol"])).await, expected);
    world.declare(&documents(&["bob", "carol"]));
    world.converge("members at the new place").await;
}

/// The addresses of the edges of the step at `address`.
fn edges_of(plan: &Plan, address: &str) -> Vec<String> {
    let step = plan.steps.iter().find(|step| step.address.to_string() == address).unwrap();
    step.after.iter().map(|edge| edge.address.to_string()).collect()
}

/// Outside the hierarchy, the service would refuse both.
#[tokio::test]
async fn a_share_and_a_rule_wait_for_the_move_of_their_group() {
    let mut world = world_with_groups().await;
    world.acknowledged.push("transfer:**");
    let lock = json!({"settings": {"prevent_sharing_groups_outside_hierarchy": true}});
    world.declare(&[group("acme", lock)]);
    world.converge("locked").await;
    let rows = json!([{"group": "acme/team"}]);
    let rule = json!([{"name": "production", "deploy_access_levels": rows}]);
    let share = json!([{"group": "acme/team", "group_access": "developer"}]);
    world.declare(&[
        group("acme", json!({"protected_environments": rule})),
        group("acme/team", json!({"previously": ["other"]})),
        project("acme/sub/shop", json!({"shares": share})),
    ]);
    let plan = world.converge("moved").await;
    let naming_steps = plan.steps.iter().filter(|step| &*step.address.path != "acme/team");
    let edges = naming_steps.map(|step| step.after.iter().map(|edge| edge.address.to_string()));
    let edges: Vec<Vec<_>> = edges.map(Iterator::collect).collect();
    assert_eq!(edges, [["acme/team"], ["acme/team"]]);
}

#[tokio::test]
async fn a_share_above_ends_after_the_rules_that_need_it() {
    let world = world_with_groups().await;
    let member = json!([{"user": "carol", "access_level": "developer"}]);
    let shares = json!([{"group": "other", "group_access": "developer"}]);
    world.declare(&[
        group("other", json!({"members": member})),
        group("acme/sub", json!({"shares": shares})),
    ]);
    world.converge("shared").await;
    let rule = json!([{"name": "main", "allowed_to_push": [{"user": "carol"}]}]);
    world.declare(&[
        group("acme/sub", json!({"shares": [], "unlisted": {"shares": "delete"}})),
        project("acme/sub/shop", json!({"protected_branches": rule})),
    ]);
    let plan = world.converge("no longer shared").await;
    let rule = "acme/sub/shop#protected_branches/main";
    assert_eq!(edges_of(&plan, "acme/sub#shares/other"), [rule]);
    let note = format!("acme/sub#shares/other: it may end access that rules need: `{rule}`");
    assert_eq!(side_effect_notes(&plan), [note]);
}
