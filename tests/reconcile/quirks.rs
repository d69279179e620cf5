//! A service that reports success for something that it did not do, or did only in part: nothing of
//! that counts as done, and no switch stays on without its declared limit.

use serde_json::{Value as Json, json};
use undrift::{
    address::Selector,
    apply::{self, MismatchReason},
    diff::{Note, Reason},
    sandbox::Profile,
};

use crate::world::{Outcome, World, project, seed};

const SHOP: &str = "acme/shop";

async fn world(seeded: Json, declared: Json) -> World {
    let mut shop = seeded;
    shop["path"] = SHOP.into();
    let world = World::new(Profile::default(), seed(&[shop])).await;
    world.declare(&[project(SHOP, declared)]);
    world
}

/// The cause of failure of the only step.
fn failure_message(outcome: &Outcome) -> String {
    let applied = outcome.applied.as_ref().unwrap();
    assert!(!applied.is_complete());
    let [step] = &*applied.steps else { panic!("{:#?}", applied.steps) };
    let apply::StepOutcome::Failed(cause) = &step.outcome else { panic!("{step:#?}") };
    cause.to_string()
}

async fn expiry_policy(world: &World) -> Json {
    world.get("/projects/acme%2Fshop").await["container_expiration_policy"].clone()
}

#[tokio::test]
async fn an_old_name_of_an_expression_is_sent_as_the_current_one() {
    let policy = |name: &str| json!({"enabled": true, "cadence": "7d", name: "^review-"});
    let declared =
        json!({"settings": {"container_expiration_policy": policy("name_regex_delete")}});
    let mut world = world(json!({}), declared).await;
    // The service ignores unknown fields.
    world.body_edit = Some(|_, _, body| {
        body["container_expiration_policy_attributes"].as_object_mut()?.remove("name_regex_delete");
        None
    });
    world.converge("an old name").await;
    let policy = expiry_policy(&world).await;
    assert_eq!((&policy["enabled"], &policy["name_regex"]), (&json!(true), &json!("^review-")));
}

#[tokio::test]
async fn a_switch_whose_limit_was_not_saved_is_turned_off_again() {
    let policy = json!({"enabled": true, "name_regex": "^review-", "name_regex_keep": "^v"});
    let create = json!({"create": true, "settings": {"container_expiration_policy": policy}});
    for declared in [json!({"settings": create["settings"]}), create] {
        let seeded = if declared.get("create").is_none() { SHOP } else { "acme/other" };
        let world = World::new(Profile::default(), seed(&[json!({"path": seeded})])).await;
        let mut world = world;
        world.declare(&[project(SHOP, declared)]);
        world.body_edit = Some(|_, _, body| {
            let policy = body["container_expiration_policy_attributes"].as_object_mut()?;
            policy.remove("name_regex");
            None
        });
        let outcome = world.apply().await;
        assert_eq!(
            failure_message(&outcome),
            "the service did not save `container_expiration_policy.name_regex`, which limits \
             `container_expiration_policy.enabled`; it was turned off again"
        );
        assert!(outcome.plan.steps.iter().any(|step| step.calls.iter().any(|call| call.undoes)));
        assert_eq!(expiry_policy(&world).await["enabled"], false);
    }
}

#[tokio::test]
async fn a_switch_that_stays_on_is_reported_as_in_effect() {
    let hooks = json!([{"name": "ci", "url": "https://ci.example.org", "push_events": true, "push_events_branch_filter": "main"}]);
    let mut world = world(json!({}), json!({"hooks": hooks})).await;
    world.body_edit = Some(|_, _, body| {
        body.as_object_mut()?.remove("push_events_branch_filter");
        None
    });
    let outcome = world.apply().await;
    assert_eq!(
        failure_message(&outcome),
        "the service did not save `push_events_branch_filter`, which limits `push_events`; the switch is on without it"
    );
}

#[tokio::test]
async fn the_limit_of_a_switch_is_sent_with_it() {
    let hook = |on: bool| json!({"name": "ci", "url": "https://ci.example.org", "push_events": on, "push_events_branch_filter": "main"});
    let mirror = json!({"mirror": true, "import_url": "https://a.example.org/x.git", "only_mirror_protected_branches": true});
    for (seeded, declared, sent) in [
        (json!({}), json!({"create": true, "settings": mirror}), "mirror"),
        (
            json!({"hooks": [hook(false)]}),
            json!({"hooks": [hook(true)]}),
            "push_events_branch_filter",
        ),
    ] {
        let path = if declared.get("create").is_some() { "acme/other" } else { SHOP };
        let mut shop = seeded;
        shop["path"] = path.into();
        let world = World::new(Profile::default(), seed(&[shop])).await;
        world.declare(&[project(SHOP, declared)]);
        let plan = world.plan().await;
        let with: Vec<_> = plan
            .steps
            .iter()
            .flat_map(|step| &step.calls)
            .filter(|call| !call.undoes && call.fields.iter().any(|field| field == sent))
            .map(|call| call.fields.join(" "))
            .collect();
        assert_eq!(with.len(), 1, "{with:?}");
        let limit = if sent == "mirror" { "only_mirror_protected_branches" } else { "push_events" };
        assert!(with[0].contains(limit), "{with:?}");
        world.converge(sent).await;
    }
}

#[tokio::test]
async fn default_levels_above_a_declared_repository_level_are_problems() {
    let levels = |with: Json| {
        let mut levels = json!({"repository_access_level": "private"});
        levels.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        json!({"settings": levels})
    };
    let world = world(json!({}), levels(json!({}))).await;
    let codes: Vec<_> = world.plan().await.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["too-visible", "too-visible"]);
    let both = json!({"builds_access_level": "private", "merge_requests_access_level": "disabled"});
    world.declare(&[project(SHOP, levels(both))]);
    world.converge("all three").await;
}

/// The limit is only live.
#[tokio::test]
async fn a_feature_cannot_be_opened_beyond_a_repository_that_stays_as_it_is() {
    let off = "disabled";
    let seeded = json!({"settings": {"repository_access_level": off, "builds_access_level": off, "merge_requests_access_level": off}});
    let open = json!({"settings": {"builds_access_level": "enabled"}});
    let mut world = world(seeded, open).await;
    world.acknowledged = vec!["visibility:**"];
    let plan = world.plan().await;
    let [problem] = &plan.problems[..] else { panic!("{:#?}", plan.problems) };
    assert!(plan.steps.is_empty());
    assert_eq!(
        (&*problem.message, problem.help.as_deref().unwrap()),
        (
            "`builds_access_level` is `enabled`, and must not be more visible than `repository_access_level`: `disabled`",
            "declare `repository_access_level: enabled` too; the service accepts both together"
        )
    );
    let both = json!({"builds_access_level": "enabled", "repository_access_level": "enabled"});
    world.declare(&[project(SHOP, json!({"settings": both}))]);
    world.converge("both together").await;
}

#[tokio::test]
async fn a_value_without_effect_is_a_note_and_not_a_step() {
    for declared in [
        json!({"merge_trains_enabled": true}),
        json!({"mirror_trigger_builds": true, "mirror_overwrites_diverged_branches": true}),
        json!({"issues_access_level": "disabled", "issues_template": "x"}),
    ] {
        let seeded = json!({"settings": {"issues_access_level": "disabled"}});
        let world = world(seeded, json!({"settings": declared})).await;
        let plan = world.plan().await;
        assert!(plan.steps.is_empty(), "{:#?}", plan.steps);
        let is_waiting = |note: &Note| matches!(note.reason, Reason::Waits { .. });
        assert!(plan.notes.iter().any(is_waiting), "{declared}: {:#?}", plan.notes);
    }
}

#[tokio::test]
async fn a_project_becomes_a_mirror_and_its_address_is_compared() {
    let mirror = |url: &str| json!({"settings": {"mirror": true, "import_url": url}});
    let mut world = world(json!({}), mirror("https://a.example.org/x.git")).await;
    world.acknowledged = vec!["protection:**"];
    let plan = world.converge("a mirror").await;
    assert_eq!(*plan.steps[0].calls[0].fields, ["import_url", "mirror"]);
    let shown: Vec<_> = plan.steps[0].changes.iter().map(|change| &*change.field).collect();
    assert_eq!(shown, ["mirror", "import_url"]);
    world.declare(&[project(SHOP, mirror("https://a.example.org/y.git"))]);
    let plan = world.converge("another address").await;
    assert_eq!(*plan.steps[0].calls[0].fields, ["import_url"]);
    // The service does not show the credential.
    let text = "https://bot:{env:MIRROR_TOKEN}@a.example.org/y.git";
    let secret = json!({"mirror": true, "import_url": {"text": text}});
    world.declare(&[project(SHOP, json!({"settings": secret}))]);
    assert!(world.plan().await.steps.is_empty());
    world.tweak =
        |settings| settings.resend_selectors = vec![Selector::parse("**#settings").unwrap()];
    assert_eq!(*world.plan().await.steps[0].calls[0].fields, ["import_url"]);
    world.tweak = |_| ();
    // A new project without the address is no mirror.
    let declared = json!({"create": true, "settings": {"mirror": true}});
    world.declare(&[project("acme/neo", declared)]);
    let plan = world.plan().await;
    assert!(plan.steps[0].changes.is_empty(), "{:#?}", plan.steps);
    assert!(plan.notes.iter().any(|note| matches!(note.reason, Reason::Waits { .. })));
}

#[tokio::test]
async fn a_default_branch_that_waited_for_an_import_is_left_to_the_next_run() {
    let settings =
        json!({"import_url": "https://a.example.org/x.git", "default_branch": "develop"});
    let world = world(json!({}), json!({})).await;
    world.declare(&[project("acme/imported", json!({"create": true, "settings": settings}))]);
    let applied = world.apply().await.applied.unwrap();
    let left: Vec<_> =
        applied.mismatches.iter().map(|left| (&left.fields[..], &left.reason)).collect();
    assert_eq!(left, [(&["default_branch".to_owned()][..], &MismatchReason::NotPlanned)]);
}

#[tokio::test]
async fn a_field_that_is_refused_alone_is_sent_with_the_ones_it_needs() {
    let on = json!({"mirror": true, "import_url": "https://a.example.org/x.git"});
    let seeded = json!({"settings": on});
    let mut world = world(seeded, json!({"settings": {"mirror_trigger_builds": true}})).await;
    world.acknowledged = vec!["protection:**"];
    let plan = world.plan().await;
    assert_eq!(*plan.steps[0].calls[0].fields, ["mirror", "mirror_trigger_builds"]);
    world.converge("a flag of a mirror").await;
    let trains = json!({"create": true, "settings": {"merge_pipelines_enabled": true, "merge_trains_enabled": true}});
    world.declare(&[project("acme/neo", trains)]);
    let plan = world.converge("trains").await;
    let calls: Vec<_> = plan.steps[0].calls.iter().map(|call| call.operation).collect();
    assert_eq!(calls, ["project-create", "project-edit"]);
}

#[tokio::test]
async fn topics_are_compared_with_those_of_the_installation() {
    let seeded = json!({"settings": {"topics": ["rust", "shop", "web"]}});
    let declared = json!({"settings": {"topics": ["Rust", " shop", "WEB,rust"]}});
    let world = world(seeded, declared).await;
    assert!(world.plan().await.steps.is_empty());
}

#[tokio::test]
async fn a_null_response_is_a_failed_write() {
    let declared = json!({"settings": {"description": "new", "topics": ["a"]}});
    let mut world = world(json!({"settings": {"description": "old"}}), declared).await;
    world.body_edit = Some(|method, _, _| (method == "PUT").then_some(Json::Null));
    let outcome = world.apply().await;
    assert_eq!(
        failure_message(&outcome),
        "the service answered with success and `null`; it saved nothing of the request"
    );
    let applied = outcome.applied.unwrap();
    assert!(applied.mismatches.is_empty(), "{:#?}", applied.mismatches);
}

/// Labels that cannot be seen are not created again.
#[tokio::test]
async fn a_list_closed_by_settings_counts_as_not_read() {
    let off = json!({"issues_access_level": "disabled", "merge_requests_access_level": "disabled"});
    let labels = json!([{"name": "bug", "color": "#FF0000"}]);
    let world = world(json!({}), json!({"labels": labels})).await;
    world.call("POST", "/projects/acme%2Fshop/labels", Some(labels[0].clone())).await;
    world.call("PUT", "/projects/acme%2Fshop", Some(off)).await;
    assert_eq!(world.get("/projects/acme%2Fshop/labels").await, json!([]));
    let plan = world.plan().await;
    assert!(plan.steps.is_empty(), "{:#?}", plan.steps);
    let unread: Vec<_> = plan.incomplete.iter().map(|i| i.address.to_string()).collect();
    assert_eq!(unread, ["acme/shop#labels"]);
    world.declare(&[project(SHOP, json!({"settings": {"issues_access_level": "enabled"}}))]);
    world.converge("opened").await;
    world.declare(&[project(SHOP, json!({"labels": labels}))]);
    assert!(world.plan().await.steps.is_empty());
}
