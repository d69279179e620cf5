//! Refusals of an archived project in each release, list filters for archived ones, and refusals
//! because of a disabled feature.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::{OBSERVED_RELEASE, SandboxConfig};

use super::client::{World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;

async fn at(release: Release) -> World {
    World::seeded(
        usual_seed(),
        SandboxConfig { release: Some(release), ..SandboxConfig::default() },
    )
    .await
}

#[tokio::test]
async fn closed_routes_depend_on_the_release() {
    let label = json!({"name": "x", "color": "#112233"});
    let schedule = json!({"description": "d", "ref": "refs/heads/main", "cron": "0 1 * * *"});
    let approvals = json!({"reset_approvals_on_push": true});
    for (release, closed) in [(Release::new(15, 8), false), (OBSERVED_RELEASE, true)] {
        let world = at(release).await;
        let write = if closed { 403 } else { 201 };
        let rule = fact("archived-closed");
        world
            .check(vec![
                (fact("archive"), "olive", "POST", "/projects/1/archive", NO, 201, NO),
                (
                    fact("archive-twice"),
                    "olive",
                    "POST",
                    "/projects/1/archive",
                    NO,
                    if closed { 400 } else { 201 },
                    NO,
                ),
                (rule, "olive", "POST", "/projects/1/labels", label.clone(), write, NO),
                (
                    rule,
                    "olive",
                    "POST",
                    "/projects/1/pipeline_schedules",
                    schedule.clone(),
                    403,
                    NO,
                ),
                (rule, "olive", "POST", "/projects/1/approvals", approvals.clone(), write, NO),
                (
                    fact("archived-variables"),
                    "olive",
                    "GET",
                    "/projects/1/variables",
                    NO,
                    if closed { 200 } else { 403 },
                    NO,
                ),
                (
                    fact("archived-writable"),
                    "olive",
                    "PUT",
                    "/projects/1",
                    json!({"description": "x"}),
                    200,
                    json!({"archived": true}),
                ),
            ])
            .await;
    }
}

#[tokio::test]
async fn empty_lists_are_for_callers_who_may_read_them() {
    let world = at(OBSERVED_RELEASE).await;
    let rule = fact("empty-lists");
    world
        .check(vec![
            (rule, "", "GET", "/projects/2/issues", NO, 200, json!([])),
            (rule, "", "GET", "/projects/2/environments", NO, 401, NO),
            (rule, "gus", "GET", "/projects/2/environments", NO, 200, json!([])),
            (rule, "dan", "GET", "/projects/2/runners", NO, 403, NO),
            (rule, "mia", "GET", "/projects/2/runners", NO, 200, json!([])),
            (rule, "", "GET", "/projects/2/uploads", NO, 403, NO),
            (rule, "dan", "GET", "/projects/2/external_status_checks", NO, 401, NO),
            (fact("member-tokens"), "dan", "GET", "/projects/2/access_tokens", NO, 401, NO),
        ])
        .await;
}

#[tokio::test]
async fn lists_have_the_filters_of_the_release() {
    let world = at(OBSERVED_RELEASE).await;
    let old = at(Release::new(15, 8)).await;
    let (groups, projects) = (fact("group-lists"), fact("list-updated"));
    let paired = "400 Bad request - `updated_at` filter and `updated_at` sorting must be paired";
    world
        .check(vec![
            (groups, "olive", "GET", "/groups?visibility=private", NO, 200, json!([])),
            (groups, "olive", "GET", "/groups?visibility=x", NO, 400, NO),
            (groups, "olive", "GET", "/groups?active=false", NO, 200, json!([])),
            (groups, "olive", "GET", "/groups?archived=true", NO, 200, json!([])),
            (
                projects,
                "olive",
                "GET",
                "/projects?updated_after=2000-01-01T00:00:00Z",
                NO,
                400,
                json!({ "message": paired }),
            ),
            (
                projects,
                "olive",
                "GET",
                "/projects?order_by=updated_at&updated_before=2000-01-01T00:00:00Z",
                NO,
                200,
                json!([]),
            ),
        ])
        .await;
    old.check(vec![(groups, "olive", "GET", "/groups?visibility=x", NO, 200, NO)]).await;
}

#[tokio::test]
async fn a_feature_that_is_off_is_refused() {
    let world = at(OBSERVED_RELEASE).await;
    let rule = fact("feature-off");
    let (issues, requests) = ("issues_access_level", "merge_requests_access_level");
    for (off, closed, open) in [
        (json!({"environments_access_level": "disabled"}), vec!["environments"], "resource_groups"),
        (
            json!({"environments_access_level": "enabled", "builds_access_level": "disabled"}),
            vec!["environments", "resource_groups"],
            "milestones",
        ),
        (json!({issues: "disabled"}), vec![], "milestones"),
        (json!({requests: "disabled"}), vec!["milestones"], "registry/protection/repository/rules"),
        (
            json!({"container_registry_access_level": "disabled"}),
            vec!["registry/protection/repository/rules"],
            "packages/protection/rules",
        ),
    ] {
        world.check(vec![(rule, "olive", "PUT", "/projects/1", off, 200, NO)]).await;
        for (list, status) in closed.into_iter().map(|list| (list, 403)).chain([(open, 200)]) {
            let path = super::client::leak(format!("/projects/1/{list}"));
            world.check(vec![(rule, "olive", "GET", path, NO, status, NO)]).await;
        }
    }
}
