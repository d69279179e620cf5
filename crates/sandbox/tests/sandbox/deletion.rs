//! Delayed deletion: marks, former paths, restoring, immediate removal.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::{OBSERVED_RELEASE, Profile, SandboxConfig, ServiceTier};

use super::client::{ROOT, World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const PROJECT: &str = "/projects/1";
const RESTORE: &str = "/projects/1/restore";

async fn at(release: Release, tier: ServiceTier, profile: Profile) -> World {
    World::seeded(
        usual_seed(),
        SandboxConfig {
            release: Some(release),
            tier: Some(tier),
            profile,
            ..SandboxConfig::default()
        },
    )
    .await
}

#[tokio::test]
async fn the_deletion_delay_depends_on_release_and_licence() {
    for (release, tier, status, days) in [
        (Release::new(15, 8), ServiceTier::Ultimate, 404, 7),
        (Release::new(16, 0), ServiceTier::Premium, 200, 7),
        (Release::new(16, 0), ServiceTier::Free, 404, 7),
        (Release::new(18, 0), ServiceTier::Free, 200, 7),
        (OBSERVED_RELEASE, ServiceTier::Free, 200, 30),
    ] {
        let world = at(release, tier, Profile::default()).await;
        assert_eq!(world.call("olive", "DELETE", PROJECT, &NO).await.status, 202);
        let reply = world.get("olive", PROJECT).await;
        assert_eq!(reply.status, status, "{}: {release} {tier:?}", fact("deletion-waits"));
        let shown = reply.body.get("marked_for_deletion_on").is_some_and(Value::is_string);
        assert_eq!(shown, status == 200, "{}: {release} {tier:?}", fact("deletion-waits"));
        let settings = world.get(ROOT, "/application/settings").await.body;
        assert_eq!(settings["deletion_adjourned_period"], days, "{}", fact("deletion-waits"));
    }
}

#[tokio::test]
async fn deletion_of_personal_projects_is_delayed_from_18_0_on() {
    for (release, status) in [("16.0", 404), ("17.11", 404), ("18.0", 200)] {
        let world = World::at(release).await;
        let answer = world.call("mia", "POST", "/projects", &json!({"name": "own"})).await.body;
        let path = format!("/projects/{}", answer["id"]);
        assert_eq!(world.call("mia", "DELETE", &path, &NO).await.status, 202, "{release}");
        let reply = world.get(ROOT, &path).await;
        assert_eq!(reply.status, status, "{}: {release}", fact("deletion-waits"));
    }
}

#[tokio::test]
async fn a_project_marked_for_deletion_is_renamed() {
    let waits = || Profile { deletion_delay: Some(7), ..Profile::default() };
    for (release, word, archived) in [
        (Release::new(15, 8), "deleted", true),
        (Release::new(18, 0), "deletion_scheduled", true),
        (OBSERVED_RELEASE, "deletion_scheduled", false),
    ] {
        let world = at(release, ServiceTier::Premium, waits()).await;
        let path = format!("shop-{word}-1");
        let shown = json!({
            "name": path,
            "path_with_namespace": format!("acme/{path}"),
            "archived": archived,
        });
        let text = |text: &str| json!({ "message": text });
        let (renamed, marked) = (fact("project-delete-path"), fact("project-delete-marked"));
        let refused = "Cannot archive project since it is scheduled for deletion.";
        world
            .check(vec![
                (marked, "olive", "POST", RESTORE, NO, 400, text("Project has not been marked for deletion")),
                (renamed, "olive", "DELETE", PROJECT, NO, 202, NO),
                (renamed, "olive", "GET", PROJECT, NO, 200, shown),
                (renamed, "olive", "GET", "/projects/acme%2Fshop", NO, 301, NO),
                (marked, "olive", "DELETE", PROJECT, NO, 400, text("Project has already been marked for deletion")),
                (marked, "olive", "POST", "/projects/1/unarchive", NO, 201, NO),
                (marked, "olive", "POST", "/projects/1/archive", NO, 400, text(refused)),
                (fact("role"), "mia", "POST", RESTORE, NO, 403, NO),
                (
                    fact("project-restore"),
                    "olive",
                    "POST",
                    RESTORE,
                    NO,
                    201,
                    json!({"name": "shop", "path": "shop", "archived": false, "marked_for_deletion_on": null}),
                ),
            ])
            .await;
    }
}

#[tokio::test]
async fn a_marked_project_can_be_removed_at_once_by_path() {
    let world = at(Release::new(18, 0), ServiceTier::Free, Profile::default()).await;
    let rule = fact("project-delete-permanently");
    let at_once = |path: &str| json!({"permanently_remove": true, "full_path": path});
    let refused = |path: &str, text: &str| {
        (rule, "olive", "DELETE", PROJECT, at_once(path), 400, json!({ "message": text }))
    };
    let wrong = "`full_path` is incorrect. You must enter the complete path for the project.";
    world
        .check(vec![
            refused("acme/shop", "Project must be marked for deletion first."),
            (rule, "olive", "DELETE", PROJECT, NO, 202, NO),
            refused("acme/shop", wrong),
            (rule, "olive", "DELETE", PROJECT, at_once("acme/shop-deletion_scheduled-1"), 202, NO),
            (rule, "olive", "GET", PROJECT, NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_restore_fails_if_the_path_or_name_is_taken() {
    let world = at(Release::new(18, 0), ServiceTier::Free, Profile::default()).await;
    let rule = fact("restore-taken");
    let acme_id = world.get(ROOT, "/groups/acme").await.body["id"].clone();
    let new = |name: &str, path: &str| json!({"name": name, "path": path, "namespace_id": acme_id});
    let taken = "Project namespace name has already been taken and Name has already been taken";
    world
        .check(vec![
            (rule, "olive", "DELETE", PROJECT, NO, 202, NO),
            (rule, "olive", "POST", "/projects", new("shop", "other"), 201, NO),
            (rule, "olive", "POST", RESTORE, NO, 400, json!({ "message": taken })),
            (rule, "olive", "POST", "/projects", new("new", "shop"), 201, NO),
        ])
        .await;
    let restored = world.call("olive", "POST", RESTORE, &NO).await;
    for key in ["name", "path"] {
        let text = restored.body[key].as_str().unwrap_or_default();
        assert_eq!(text.strip_prefix("shop-").map(str::len), Some(5), "{rule}: {text}");
    }
}

#[tokio::test]
async fn lists_of_projects_can_be_filtered_by_active() {
    let world = at(Release::new(18, 0), ServiceTier::Free, Profile::default()).await;
    let rule = fact("list-active");
    const LIST: &str = "/groups/acme/projects?order_by=id&sort=asc";
    const ACTIVE: &str = "/groups/acme/projects?active=true";
    const INACTIVE: &str = "/groups/acme/projects?active=false";
    world
        .check(vec![
            (rule, "olive", "DELETE", PROJECT, NO, 202, NO),
            (rule, "olive", "GET", LIST, NO, 200, json!([{"id": 1}, {"id": 2}])),
            (rule, "olive", "GET", ACTIVE, NO, 200, json!([{"id": 2}])),
            (rule, "olive", "GET", INACTIVE, NO, 200, json!([{"id": 1}])),
            (rule, "olive", "DELETE", "/groups/acme", NO, 202, NO),
            (rule, "olive", "GET", "/projects?active=true&membership=true", NO, 200, json!([])),
        ])
        .await;
}

/// From 18.0 on a group loses its path too.
#[tokio::test]
async fn a_group_marked_for_deletion_gives_up_its_path() {
    let world = at(Release::new(18, 0), ServiceTier::Free, Profile::default()).await;
    let acme_id = world.get(ROOT, "/groups/acme").await.body["id"].clone();
    let new = |name: &str| json!({"name": name, "path": "deep", "parent_id": acme_id});
    let id = world.call("olive", "POST", "/groups", &new("Deep")).await.body["id"].clone();
    let group = &*format!("/groups/{id}").leak();
    let suffix = format!("-deletion_scheduled-{id}");
    let shown = json!({
        "name": format!("Deep{suffix}"),
        "full_path": format!("acme/deep{suffix}"),
    });
    let rule = fact("group-delete-path");
    world
        .check(vec![
            (rule, "olive", "DELETE", group, NO, 202, NO),
            (rule, "olive", "GET", group, NO, 200, shown),
            (rule, "olive", "GET", "/groups/acme%2Fdeep", NO, 404, NO),
            (
                rule,
                "olive",
                "POST",
                "/groups",
                new("again"),
                201,
                json!({"full_path": "acme/deep"}),
            ),
        ])
        .await;
    let restored = world.call("olive", "POST", &format!("{group}/restore"), &NO).await;
    for key in ["name", "path"] {
        let text = restored.body[key].as_str().unwrap_or_default().to_lowercase();
        let own = text.strip_prefix("deep-").map(str::len);
        assert_eq!(own, Some(5), "{}: {text}", fact("restore-taken"));
    }
}
