//! Behaviour that depends on the release of the service: it is read only if needed, and a field
//! that the release lacks is never reported as "not saved".

use http::Method;
use serde_json::{Value as Json, json};
use undrift::{
    address::Selector,
    apply::MismatchReason,
    diff::Shown,
    plan::Plan,
    release::{REFERENCE, Release},
    sandbox::{FaultEffect, InjectedFault, Profile},
};

use crate::world::{NEWEST, World, group, project, seed};

async fn world_at(release: Release) -> World {
    World::new(Profile::default().with_release(release), seed(&[json!({"path": "acme/shop"})]))
        .await
}

/// Number of release reads.
fn release_reads(world: &World) -> usize {
    world.requests().iter().filter(|request| request.ends_with("/version")).count()
}

/// The names of the fields in the bodies of the only step's calls.
fn sent_fields(plan: &Plan) -> Vec<Vec<String>> {
    let [step] = &plan.steps[..] else { panic!("{:#?}", plan.steps) };
    let body = |call: &undrift::kind::PlannedCall| {
        call.request.body_fields().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    step.planned_calls.iter().map(body).collect()
}

#[tokio::test]
async fn the_release_is_read_once_and_only_if_needed() {
    let variables = |described: &str| {
        ["A", "B"].map(|key| json!({"key": key, "value": "x", "description": described}))
    };
    let declare = |world: &World, variables: Json| {
        let body = json!({"variables": variables, "settings": {"description": "x"}});
        let group = group("acme", json!({"variables": variables}));
        world.declare(&[project("acme/shop", body), group]);
    };
    let world = world_at(REFERENCE).await;
    declare(&world, json!([{"key": "A", "value": "x"}]));
    world.converge("nothing depends on it").await;
    assert_eq!(release_reads(&world), 0);
    let world = world_at(NEWEST).await;
    declare(&world, variables("one").into_iter().collect());
    world.apply().await;
    assert_eq!(release_reads(&world), 1, "once a run, for plan and apply");
    assert!(world.plan().await.steps.is_empty());
    assert_eq!(release_reads(&world), 1, "what is there as declared says so itself");
}

const REPLACEMENTS: &str = "use `releases_access_level`, `environments_access_level`, \
    `feature_flags_access_level`, `infrastructure_access_level` and `monitor_access_level`";

#[tokio::test]
async fn a_field_newer_than_the_release_is_a_problem() {
    let world = world_at(Release::new(16, 1)).await;
    let shop = json!({
        "variables": [{"key": "A", "value": "x", "description": "y"}],
        "members": [{"user": "bob", "access_level": "planner"}],
        "settings": {"emails_enabled": false, "group_runners_enabled": false, "operations_access_level": "private"},
    });
    let new = json!({"create": {"repository_object_format": "sha256"}});
    world.declare(&[project("acme/shop", shop), project("acme/neo", new)]);
    let problems: Vec<_> = world
        .plan()
        .await
        .problems
        .iter()
        .map(|p| (p.code, p.message.clone(), p.help.clone().unwrap()))
        .collect();
    let told = |what: &str, help: &str| {
        ("release", format!("{what}; the service has release 16.1"), help.to_owned())
    };
    assert_eq!(
        problems,
        [
            told("`repository_object_format` needs release 16.9 or later", "leave it out"),
            told("`planner` needs release 17.7 or later", "leave it out"),
            told(
                "`emails_enabled` needs release 16.3 or later",
                "use `emails_disabled` with the opposite value"
            ),
            told("`operations_access_level` is gone from release 16.0 on", REPLACEMENTS),
            told("`description` needs release 16.2 or later", "leave it out"),
        ]
    );
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test]
async fn with_an_unknown_release_unsaved_fields_are_explained() {
    let hide = |world: &World| {
        let method = Some(Method::GET);
        let what = FaultEffect::StatusBefore(403);
        world.sandbox.add_fault(InjectedFault {
            method,
            path_contains: "/version".into(),
            nth: 0,
            effect: what,
        });
    };
    let shop = json!({"variables": [{"key": "A", "value": "x", "description": "y"}]});
    let hidden =
        json!({"variables": [{"key": "A", "value": "a-long-value", "masked_and_hidden": true}]});
    let world = world_at(NEWEST).await;
    hide(&world);
    world.declare(&[project("acme/shop", hidden)]);
    assert_eq!(world.plan().await.problems[0].code, "release", "an old service would show it");
    world.declare(&[project("acme/shop", shop.clone())]);
    world.converge("sent and saved").await;
    let world = world_at(REFERENCE).await;
    hide(&world);
    world.declare(&[project("acme/shop", shop)]);
    let applied = world.apply().await.applied.unwrap();
    let [mismatch] = &applied.mismatches[..] else { panic!("{:#?}", applied.mismatches) };
    assert_eq!(
        (&mismatch.reason, &mismatch.fields[..]),
        (&MismatchReason::NotSaved, &["description".to_owned()][..])
    );
    assert_eq!(
        mismatch.help.as_deref(),
        Some("`description` needs release 16.2 of the service or later")
    );
}

#[tokio::test]
async fn undrift_yaml_names_the_release_if_the_service_does_not() {
    let mut world = world_at(REFERENCE).await;
    let what = FaultEffect::StatusBefore(403);
    world.sandbox.add_fault(InjectedFault {
        method: None,
        path_contains: "/version".into(),
        nth: 0,
        effect: what,
    });
    world.tweak = |settings| settings.release = Some(REFERENCE);
    let shop = json!({"variables": [{"key": "A", "value": "x", "description": "y"}]});
    world.declare(&[project("acme/shop", shop)]);
    assert_eq!(world.plan().await.problems[0].code, "release");
}

#[tokio::test]
async fn a_hidden_value_is_sent_once() {
    for owner in ["acme/shop", "acme"] {
        let mut world = world_at(NEWEST).await;
        world.set_variable("VALUE", "value-from-environment");
        let declare = |world: &World, body: Json| {
            let mut variable = json!({"key": "A", "value": {"env": "VALUE"}});
            variable.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            let document = json!({"variables": [variable]});
            let document =
                if owner == "acme" { group(owner, document) } else { project(owner, document) };
            world.declare(&[document]);
        };
        declare(&world, json!({"masked_and_hidden": true}));
        world.converge("hidden").await;
        world.set_variable("VALUE", "another-value-since");
        assert!(world.plan().await.steps.is_empty(), "what is never shown never differs");
        declare(&world, json!({"masked_and_hidden": true, "description": "x"}));
        let plan = world.converge("described").await;
        let [body] = &sent_fields(&plan)[..] else { panic!("{plan:#?}") };
        assert!(
            body.contains(&"description".to_owned()) && !body.contains(&"value".to_owned()),
            "{body:?}"
        );
        world.tweak =
            |settings| settings.resend_selectors = vec![Selector::parse("**#variables/*").unwrap()];
        assert!(sent_fields(&world.plan().await)[0].contains(&"value".to_owned()));
        world.tweak = |_| ();
        for shown in [json!({"masked_and_hidden": false}), json!({"masked": false})] {
            declare(&world, shown);
            let problem = &world.plan().await.problems[0];
            assert_eq!(
                (problem.code, &*problem.address.to_string()),
                ("hidden-variable", &*format!("{owner}#variables/A@*"))
            );
        }
    }
}

#[tokio::test]
async fn a_visible_variable_is_replaced_to_become_hidden() {
    let world = world_at(NEWEST).await;
    let variable = |hidden: bool| {
        let variable = json!({"key": "A", "value": "a-long-value", "description": "x", "masked_and_hidden": hidden});
        project("acme/shop", json!({"variables": [variable]}))
    };
    world.declare(&[variable(false)]);
    world.converge("shown").await;
    world.declare(&[variable(true)]);
    let plan = world.converge("hidden").await;
    assert!(plan.steps[0].replaces && plan.steps[0].planned_calls.len() == 3);
    let response = world.get("/projects/acme%2Fshop/variables/A").await;
    assert_eq!(
        (&response["hidden"], &response["value"], &response["description"]),
        (&json!(true), &Json::Null, &json!("x"))
    );
}

#[tokio::test]
async fn a_variable_of_several_scopes_is_edited_where_edits_heed_the_filter() {
    for (release, replaces) in [(Release::new(16, 8), true), (Release::new(16, 9), false)] {
        let world = world_at(release).await;
        let declare = |value: &str| {
            let scopes = ["*", "prod"]
                .map(|scope| json!({"key": "A", "environment_scope": scope, "value": value}));
            world.declare(&[group("acme", json!({"variables": scopes}))]);
        };
        declare("one");
        world.converge("created").await;
        assert_eq!(release_reads(&world), 0, "{release}");
        declare("two");
        let plan = world.converge("changed").await;
        assert!(
            plan.steps.len() == 2 && plan.steps.iter().all(|step| step.replaces == replaces),
            "{release}"
        );
        let values = world.get("/groups/acme/variables").await;
        assert!(values.as_array().unwrap().iter().all(|variable| variable["value"] == "two"));
    }
}

#[tokio::test]
async fn a_hook_is_found_by_the_name_that_the_service_keeps() {
    let hook = |url: &str| project("acme/shop", json!({"hooks": [{"name": "ci", "url": url}]}));
    for (release, changed) in [(REFERENCE, "Create"), (NEWEST, "Update")] {
        let mut world = world_at(release).await;
        world.acknowledged = vec!["protection:**"];
        world.declare(&[hook("https://a.example.org")]);
        world.converge("created").await;
        let names = world.get("/projects/acme%2Fshop/hooks").await;
        assert_eq!(names[0].get("name"), (release == NEWEST).then_some(&json!("ci")));
        world.declare(&[hook("https://b.example.org")]);
        let plan = world.converge("another URL").await;
        assert_eq!(format!("{:?}", plan.steps[0].action), changed, "{release}");
    }
    // A hook without a name, or with another one, gets the declared one.
    let world = world_at(NEWEST).await;
    for name in [Json::Null, "old".into()] {
        let body = json!({"url": "https://a.example.org", "name": name});
        world.call("POST", "/projects/acme%2Fshop/hooks", Some(body)).await;
        world.declare(&[hook("https://a.example.org")]);
        let plan = world.converge("named").await;
        assert_eq!(sent_fields(&plan).len(), 1, "one edit");
        world.call("DELETE", "/projects/acme%2Fshop/hooks/1", None).await;
    }
}

#[tokio::test]
async fn old_field_names_converge_whatever_the_parent_groups_declare() {
    for release in [REFERENCE, NEWEST] {
        let world = world_at(release).await;
        let off = group("acme", json!({"settings": {"emails_disabled": true}}));
        let settings = json!({
            "emails_disabled": false, "public_builds": false, "packages_enabled": false,
            "restrict_user_defined_variables": true,
        });
        world.declare(&[off, project("acme/shop", json!({"settings": settings}))]);
        world.converge(&format!("{release}")).await;
    }
    let world = world_at(NEWEST).await;
    let off = group("acme", json!({"settings": {"emails_enabled": false}}));
    let below = group("acme/sub", json!({"create": true, "settings": {"emails_enabled": true}}));
    let settings = json!({
        "emails_enabled": true, "public_jobs": false, "package_registry_access_level": "disabled",
        "ci_pipeline_variables_minimum_override_role": "no_one_allowed",
    });
    world.declare(&[off, below, project("acme/shop", json!({"settings": settings}))]);
    world.converge("new spellings").await;
}

#[tokio::test]
async fn planner_is_a_valid_level_of_a_member() {
    let world = world_at(NEWEST).await;
    let shop = |level: &str| {
        project("acme/shop", json!({"members": [{"user": "bob", "access_level": level}]}))
    };
    for level in ["planner", "guest", "planner", "reporter"] {
        world.declare(&[shop(level)]);
        world.converge(level).await;
    }
}

/// No edit changes the credential of a mirror, and no response shows it.
#[tokio::test]
async fn a_credential_in_a_text_is_renewed_by_a_new_mirror() {
    let mut world = world_at(NEWEST).await;
    let url = "https://bot:{token}@git.example.org/{path}.git";
    let body = json!({
        "params": {"token": {"env": "MIRROR_TOKEN"}},
        "remote_mirrors": [{"url": {"text": url}, "enabled": true}],
    });
    world.declare(&[project("acme/shop", body)]);
    world.set_variable("MIRROR_TOKEN", "first/secret@value");
    world.converge("created").await;
    let first = world.get("/projects/acme%2Fshop/remote_mirrors").await;
    let put = json!({"only_protected_branches": true});
    let path = format!("/projects/acme%2Fshop/remote_mirrors/{}", first[0]["id"]);
    world.call("PUT", &path, Some(put)).await;

    world.set_variable("MIRROR_TOKEN", "second/secret@value");
    assert!(world.plan().await.steps.is_empty(), "what is never shown never differs");
    world.tweak = |settings| {
        settings.resend_selectors = vec![Selector::parse("**#remote_mirrors/*").unwrap()];
    };
    let plan = world.plan().await;
    let [step] = &plan.steps[..] else { panic!("{plan:#?}") };
    assert_eq!(step.address.entry.as_deref(), Some("https://git.example.org/acme/shop.git"));
    assert_eq!(
        *step.changes[0].after,
        Shown::Value("https://bot:***@git.example.org/acme/shop.git".into())
    );
    assert_eq!(
        step.planned_calls.iter().map(|call| call.request.operation.id).collect::<Vec<_>>(),
        ["push-mirror-create", "push-mirror-delete"]
    );
    let applied = world.apply().await.applied.unwrap();
    assert!(applied.is_complete(), "{:#?}", applied.steps);
    let second = world.get("/projects/acme%2Fshop/remote_mirrors").await;
    assert_eq!(second.as_array().map(Vec::len), Some(1), "{second}");
    assert_ne!(second[0]["id"], first[0]["id"]);
    assert_eq!(second[0]["only_protected_branches"], true, "undeclared, and kept");
}
