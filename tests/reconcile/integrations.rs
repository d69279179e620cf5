//! Integrations: an active row counts, an inherited one is not the project's own, and each PUT
//! contains the secrets.

use serde_json::{Value as Json, json};
use undrift::{diff::Reason, export::SecretHandling, plan::Plan, sandbox::Profile, secret::Secret};

use crate::{
    export::join_files,
    world::{NEWEST, World, group, project, seed},
};

const SHOP: &str = "/projects/acme%2Fshop/integrations";
const SLACK: &str = "/projects/acme%2Fshop/integrations/slack";
const GROUP_SLACK: &str = "/groups/acme/integrations/slack";

async fn world() -> World {
    let profile = Profile::default().with_release(NEWEST);
    let mut world = World::new(profile, seed(&[json!({"path": "acme/shop"})])).await;
    world.set_variable("WEBHOOK", "https://chat.example.org/hook");
    world.acknowledged = vec!["removals:**"];
    world
}

fn slack(fields: Json) -> Json {
    let mut entry = json!({"slug": "slack", "webhook": {"env": "WEBHOOK"}});
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    entry
}

fn declare(world: &World, integrations: &[Json]) {
    world.declare(&[project("acme/shop", json!({"integrations": integrations}))]);
}

async fn set_group_slack(world: &World) {
    let body = json!({"webhook": "https://group.example.org/hook", "channel": "#all"});
    world.call("PUT", GROUP_SLACK, Some(body)).await;
}

fn steps(plan: &Plan) -> Vec<String> {
    let step = |step: &undrift::diff::Step| {
        let fields: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        format!("{:?} {} {}", step.action, step.address, fields.join(" "))
    };
    plan.steps.iter().map(step).collect()
}

fn problems(plan: &Plan) -> Vec<String> {
    plan.problems.iter().map(|problem| format!("{} {}", problem.address, problem.code)).collect()
}

fn notes(plan: &Plan) -> Vec<String> {
    let side_effect = |note: &undrift::diff::Note| match &note.reason {
        Reason::Besides { what } => Some(what.clone()),
        _ => None,
    };
    plan.notes.iter().filter_map(side_effect).collect()
}

#[tokio::test]
async fn an_integration_is_set_up_edited_removed_and_set_up_again() {
    let world = world().await;
    let first = slack(json!({"channel": "#ops", "push_events": false}));
    declare(&world, std::slice::from_ref(&first));
    let plan = world.converge("set up").await;
    let slug = "acme/shop#integrations/slack";
    assert_eq!(steps(&plan), [format!("Create {slug} channel push_events slug webhook")]);
    let live = world.get(SLACK).await;
    assert_eq!(
        (&live["push_events"], &live["properties"]["channel"]),
        (&false.into(), &"#ops".into())
    );
    declare(&world, &[slack(json!({"channel": "#dev", "push_events": false}))]);
    let plan = world.converge("edited").await;
    assert_eq!(steps(&plan), [format!("Update {slug} channel webhook")]);
    // Events that Slack does not have are shown as on, and are not compared.
    declare(&world, &[json!({"slug": "slack", "state": "absent"})]);
    let plan = world.converge("removed").await;
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(world.get(SLACK).await["active"], false);
    declare(&world, &[first]);
    world.converge("set up again").await;
    assert_eq!(world.get(SLACK).await["active"], true);
}

#[tokio::test]
async fn a_declared_integration_replaces_the_inherited_one() {
    let world = world().await;
    set_group_slack(&world).await;
    declare(&world, &[slack(json!({"username": "bot"}))]);
    world.converge("its own").await;
    let live = world.get(SLACK).await;
    let properties = &live["properties"];
    assert_eq!((&live["inherited"], &properties["username"]), (&false.into(), &"bot".into()));
    // Undeclared fields are copied, and no longer follow the group.
    assert_eq!(properties["channel"], "#all");
    set_group_slack(&world).await;
    assert_eq!(world.plan().await.steps.len(), 0);
}

#[tokio::test]
async fn an_inherited_integration_cannot_be_removed_in_a_project() {
    let world = world().await;
    set_group_slack(&world).await;
    declare(&world, &[json!({"slug": "slack", "state": "absent"})]);
    let plan = world.plan().await;
    assert_eq!(problems(&plan), ["acme/shop#integrations/slack inherited"]);
    assert_eq!(plan.steps.len(), 0);
    // Nor is it unlisted.
    world.declare(&[project(
        "acme/shop",
        json!({"integrations": [], "unlisted": {"integrations": "delete"}}),
    )]);
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.notes.len()), (0, 0), "{:?}", plan.notes);
}

#[tokio::test]
async fn unlisted_integrations_are_reported_or_deleted() {
    let world = world().await;
    let wiki = json!({"external_wiki_url": "https://wiki.example.org"});
    world.call("PUT", &format!("{SHOP}/external-wiki"), Some(wiki)).await;
    let unlisted = |policy: &str| {
        let sections =
            json!({"integrations": [slack(json!({}))], "unlisted": {"integrations": policy}});
        world.declare(&[project("acme/shop", sections)]);
    };
    unlisted("report");
    let plan = world.plan().await;
    let found: Vec<_> = plan.notes.iter().map(|note| note.address.to_string()).collect();
    assert!(found.contains(&"acme/shop#integrations/external-wiki".to_owned()), "{found:?}");
    unlisted("delete");
    world.converge("only the declared one").await;
    let response = world.get(SHOP).await;
    let left: Vec<_> = response.as_array().unwrap().iter().map(|one| &one["slug"]).collect();
    assert_eq!(left, ["slack"]);
}

/// One read of the list, and one of each declared integration that is active.
#[tokio::test]
async fn only_declared_integrations_are_read() {
    let world = world().await;
    let wiki = json!({"external_wiki_url": "https://wiki.example.org"});
    world.call("PUT", &format!("{SHOP}/external-wiki"), Some(wiki)).await;
    world.call("PUT", SLACK, Some(json!({"webhook": "https://chat.example.org"}))).await;
    let reads = async || {
        let before = world.requests().len();
        world.plan().await;
        let mut requests = world.requests().split_off(before);
        requests.retain(|request| request.contains("/integrations"));
        requests
    };
    world.declare(&[project("acme/shop", json!({"settings": {"visibility": "private"}}))]);
    assert_eq!(reads().await, [""; 0]);
    let jira = json!({"slug": "jira", "state": "absent"});
    declare(&world, &[slack(json!({"push_events": true})), jira]);
    let path = "GET /api/v4/projects/1/integrations";
    let [list, one] = [path.to_owned(), format!("{path}/slack")];
    let found = reads().await;
    assert!(found[0].starts_with(&list) && found[1..] == [one], "{found:?}");
}

#[tokio::test]
async fn a_plan_notes_what_a_group_integration_changes_below() {
    let world = world().await;
    let group = |entry: Json| world.declare(&[group("acme", json!({"integrations": [entry]}))]);
    group(slack(json!({"channel": "#all"})));
    let plan = world.converge("of the group").await;
    assert!(notes(&plan)[0].contains("all groups and projects below"), "{:?}", plan.notes);
    assert_eq!(world.get(SLACK).await["inherited"], true);
    group(json!({"slug": "slack", "state": "absent"}));
    let plan = world.converge("removed from the group").await;
    assert!(notes(&plan)[0].contains("stays active"), "{:?}", plan.notes);
    assert_eq!(world.get(SLACK).await["active"], true);
}

/// The service refuses a second issue tracker, so the old one goes first.
#[tokio::test]
async fn an_issue_tracker_is_set_after_removal_of_the_other() {
    let world = world().await;
    let urls = json!({
        "project_url": "https://issues.example.org/shop",
        "issues_url": "https://issues.example.org/:id",
        "new_issue_url": "https://issues.example.org/new",
    });
    let tracker = |slug: &str| {
        let mut entry = urls.clone();
        entry["slug"] = slug.into();
        entry
    };
    declare(&world, &[tracker("redmine"), slack(json!({}))]);
    world.converge("the first one").await;
    let mut gone = json!({"slug": "redmine", "state": "absent"});
    for (new, old) in [("custom-issue-tracker", "redmine"), ("redmine", "custom-issue-tracker")] {
        gone["slug"] = old.into();
        declare(
            &world,
            &[tracker(new), gone.clone(), slack(json!({"channel": format!("#{new}")}))],
        );
        let plan = world.converge(new).await;
        let first = &plan.steps[0];
        assert_eq!(first.address.to_string(), format!("acme/shop#integrations/{old}"));
        for step in &plan.steps[1..] {
            let is_new = step.address.entry.as_deref() == Some(new);
            assert_eq!(step.after.iter().any(|edge| edge.address == first.address), is_new);
        }
    }
}

/// A second issue tracker is a problem.
#[tokio::test]
async fn an_issue_tracker_beside_another_is_a_problem() {
    let world = world().await;
    let tracker = |slug: &str| json!({"slug": slug, "project_url": "https://issues.example.org/shop", "issues_url": "https://issues.example.org/:id"});
    declare(&world, &[tracker("youtrack")]);
    world.converge("the first one").await;
    let unmanaged = json!({"slug": "youtrack", "state": "unmanaged"});
    for beside in [vec![], vec![unmanaged]] {
        let all: Vec<_> = [tracker("phorge"), slack(json!({}))].into_iter().chain(beside).collect();
        declare(&world, &all);
        let plan = world.plan().await;
        assert_eq!(problems(&plan), ["acme/shop#integrations/phorge exclusive"]);
    }
    world.declare(&[project(
        "acme/shop",
        json!({"integrations": [tracker("phorge")], "unlisted": {"integrations": "delete"}}),
    )]);
    world.converge("in its place").await;
}

/// One that the project gets from a group counts too, also for a change.
#[tokio::test]
async fn an_issue_tracker_beside_an_inherited_one_is_a_problem() {
    let world = world().await;
    let tracker = |slug: &str, issues: &str| json!({"slug": slug, "project_url": "https://issues.example.org/shop", "issues_url": format!("https://{issues}.example.org/:id")});
    declare(&world, &[tracker("youtrack", "a")]);
    world.converge("its own").await;
    let mut above = tracker("phorge", "b");
    above.as_object_mut().unwrap().remove("slug");
    world.call("PUT", "/groups/acme/integrations/phorge", Some(above)).await;
    assert_eq!(world.plan().await.steps.len(), 0);
    declare(&world, &[tracker("youtrack", "c")]);
    let plan = world.plan().await;
    assert_eq!(problems(&plan), ["acme/shop#integrations/youtrack exclusive"]);
    let help = "`phorge` is inherited from a group above or from the service: remove it there, or remove this one";
    assert_eq!(plan.problems[0].help.as_deref(), Some(help));
    declare(&world, &[json!({"slug": "youtrack", "state": "absent"})]);
    world.converge("gone").await;
    declare(&world, &[tracker("youtrack", "a")]);
    assert_eq!(problems(&world.plan().await), ["acme/shop#integrations/youtrack exclusive"]);
    declare(&world, &[tracker("phorge", "d")]);
    world.converge("its own instead").await;
}

/// Once the group has it no more, it is the project's own.
#[tokio::test]
async fn an_integration_that_a_group_removed_is_removed_below() {
    let world = world().await;
    let tracker = |slug: &str| json!({"slug": slug, "project_url": "https://issues.example.org/shop", "issues_url": "https://a.example.org/:id"});
    let above = |entry: Json| group("acme", json!({"integrations": [entry]}));
    world.declare(&[above(tracker("phorge"))]);
    world.converge("in the group").await;
    world.declare(&[above(json!({"slug": "phorge", "state": "absent"}))]);
    world.converge("removed there").await;
    declare(&world, &[json!({"slug": "phorge", "state": "absent"}), tracker("youtrack")]);
    world.converge("removed below").await;
}

/// The plan knows the value of a webhook, and that the service would refuse it.
#[tokio::test]
async fn a_webhook_that_is_no_url_is_a_problem() {
    let mut world = world().await;
    for value in ["ftp://chat.example.org", "chat", " https://chat.example.org"] {
        world.set_variable("WEBHOOK", value);
        declare(&world, &[slack(json!({}))]);
        assert_eq!(problems(&world.plan().await), ["acme/shop#integrations/slack hook-url"]);
    }
}

/// A refusal is shown with the words of the service.
#[tokio::test]
async fn a_refusal_is_shown_in_the_words_of_the_service() {
    let mut world = world().await;
    world.set_variable("WEBHOOK", "http://127.0.0.1/chat");
    declare(&world, &[slack(json!({}))]);
    let applied = world.apply().await.applied.unwrap();
    let failed = format!("{:?}", applied.steps);
    assert!(failed.contains("Requests to localhost are not allowed"), "{failed}");
}

/// A secret that each request must contain is a reference in an export, without a value.
#[tokio::test]
async fn own_integrations_are_exported() {
    for values in [SecretHandling::Plain, SecretHandling::None, SecretHandling::Env] {
        let mut world = world().await;
        set_group_slack(&world).await;
        let jenkins = json!({"jenkins_url": "https://bot:canary@ci.example.org", "project_name": "shop", "tag_push_events": true});
        world.call("PUT", &format!("{SHOP}/jenkins"), Some(jenkins)).await;
        let chat = json!({"webhook": "https://canary.example.org/hook", "channel": "#ops", "push_events": false});
        world.call("PUT", &format!("{SHOP}/mattermost"), Some(chat)).await;
        let mut written = world.export(values).await;
        let text = join_files(&written);
        assert!(text.contains("slug: mattermost") && text.contains("slug: jenkins"), "{text}");
        assert!(text.contains("webhook: {env: ACME_SHOP__MATTERMOST_WEBHOOK}"), "{text}");
        assert!(text.contains("channel: '#ops'") && text.contains("push_events: false"), "{text}");
        for left_out in ["slug: slack", "canary", "commit_events", "properties"] {
            assert!(!text.contains(left_out), "{left_out}: {text}");
        }
        // The service hides the value, so it must be added by hand.
        let name = "ACME_SHOP__MATTERMOST_WEBHOOK";
        assert_eq!(written.secrets[name].expose(), "");
        written.secrets.insert(name.into(), Secret::new("https://chat.example.org/hook"));
        world.assert_empty_plan(&written).await;
    }
}

#[tokio::test]
async fn drift_of_integrations_is_absorbed() {
    let world = world().await;
    let sections = json!({
        "integrations": [slack(json!({"channel": "#ops"}))],
        "unlisted": {"integrations": "fail"},
    });
    world.declare(&[project("acme/shop", sections)]);
    world.converge("set up").await;
    let body = json!({"webhook": "https://chat.example.org/hook", "channel": "#by-hand"});
    world.call("PUT", SLACK, Some(body)).await;
    let wiki = json!({"external_wiki_url": "https://wiki.example.org"});
    world.call("PUT", &format!("{SHOP}/external-wiki"), Some(wiki)).await;
    let text = world.absorb_all(&["**"]).await;
    assert!(text.contains("#by-hand") && text.contains("https://wiki.example.org"), "{text}");
    let plan = world.plan().await;
    assert_eq!((plan.steps.len(), plan.problems.len()), (0, 0), "{text}");
}

#[tokio::test]
async fn a_plan_from_a_snapshot_equals_the_live_plan() {
    let world = world().await;
    set_group_slack(&world).await;
    let body = json!({"webhook": "https://canary.example.org/hook", "channel": "#all", "push_events": true});
    world.call("PUT", &format!("{SHOP}/mattermost"), Some(body)).await;
    let mattermost = json!({
        "slug": "mattermost", "webhook": {"env": "WEBHOOK"}, "channel": "#ops", "push_events": true,
    });
    declare(&world, &[mattermost, json!({"slug": "slack", "state": "absent"})]);
    let text = world.snapshot().await;
    assert!(!text.contains("canary"), "{text}");
    let (live, taken) = (world.plan().await, world.plan_from(&text).await);
    assert_eq!(steps(&live), steps(&taken));
    assert_eq!(steps(&live).len(), 1, "{live:#?}");
    assert_eq!(problems(&live), problems(&taken));
    // One that nobody declared then was not read.
    declare(&world, &[]);
    let text = world.snapshot().await;
    declare(&world, &[json!({"slug": "mattermost", "webhook": {"env": "WEBHOOK"}})]);
    let plan = world.plan_from(&text).await;
    assert_eq!((plan.steps.len(), plan.incomplete.len()), (0, 1), "{plan:#?}");
}
