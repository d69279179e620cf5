//! Access requests of groups and projects.

use serde_json::{Value, json};

use super::client::{World, leak};
use super::facts::fact;

const NO: Value = Value::Null;

#[tokio::test]
async fn an_access_request_is_no_membership_before_its_approval() {
    for (place, manager, other) in
        [("/projects/acme%2Fsite", "mia", "dan"), ("/groups/acme", "olive", "mia")]
    {
        let world = World::usual().await;
        let requests = leak(format!("{place}/access_requests"));
        let id = world.get("stranger", "/user").await.body["id"].clone();
        let one = leak(format!("{place}/access_requests/{id}"));
        let approve = leak(format!("{place}/access_requests/{id}/approve"));
        let member = leak(format!("{place}/members/{id}"));
        let twice = json!({"message": {"user_id": ["already exists in source"]}});
        world
            .check(vec![
                (
                    fact("access-request"),
                    "stranger",
                    "POST",
                    requests,
                    NO,
                    201,
                    json!({"id": id, "username": "stranger"}),
                ),
                (fact("access-request-refused"), "stranger", "POST", requests, NO, 400, twice),
                (fact("access-request-refused"), other, "POST", requests, NO, 403, NO),
                (fact("access-request"), manager, "GET", member, NO, 404, NO),
                (fact("access-request-decide"), other, "GET", requests, NO, 403, NO),
                (fact("access-request-decide"), other, "PUT", approve, NO, 403, NO),
                (
                    fact("access-request-decide"),
                    manager,
                    "GET",
                    requests,
                    NO,
                    200,
                    json!([{"id": id}]),
                ),
                (fact("access-request"), "stranger", "DELETE", one, NO, 204, NO),
                (fact("access-request-decide"), manager, "PUT", approve, NO, 404, NO),
                (fact("access-request"), "stranger", "POST", requests, NO, 201, NO),
                (fact("access-request-decide"), manager, "DELETE", one, NO, 204, NO),
                (fact("access-request"), "stranger", "POST", requests, NO, 201, NO),
                (
                    fact("access-request-decide"),
                    manager,
                    "PUT",
                    approve,
                    NO,
                    201,
                    json!({"access_level": 30}),
                ),
                (fact("access-request-decide"), manager, "GET", requests, NO, 200, json!([])),
                (
                    fact("access-request"),
                    manager,
                    "GET",
                    member,
                    NO,
                    200,
                    json!({"access_level": 30}),
                ),
            ])
            .await;
    }
}

#[tokio::test]
async fn requests_can_be_switched_off() {
    let world = World::usual().await;
    let off = json!({"request_access_enabled": false});
    for (place, manager) in [("/projects/acme%2Fsite", "mia"), ("/groups/acme", "olive")] {
        world
            .check(vec![
                (fact("access-request-refused"), manager, "PUT", place, off.clone(), 200, NO),
                (
                    fact("access-request-refused"),
                    "stranger",
                    "POST",
                    leak(format!("{place}/access_requests")),
                    NO,
                    403,
                    NO,
                ),
            ])
            .await;
    }
}
