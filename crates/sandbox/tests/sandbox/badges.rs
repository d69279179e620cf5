//! Badges of projects and groups.

use serde_json::{Value, json};

use super::client::{ROOT, World, leak};
use super::facts::fact;

const NO: Value = Value::Null;
const SHOP_BADGES: &str = "/projects/acme%2Fshop/badges";
const SITE_BADGES: &str = "/projects/acme%2Fsite/badges";
const ACME_BADGES: &str = "/groups/acme/badges";
const SHOP_BADGE: &str = "/projects/acme%2Fshop/badges/1";
const ACME_BADGE: &str = "/groups/acme/badges/2";
const INHERITED_BADGE: &str = "/projects/acme%2Fshop/badges/2";

#[tokio::test]
async fn badges_are_created_changed_and_removed() {
    let world = World::usual().await;
    let new = json!({"link_url": "https://ci.example/%{project_path}/%{project_name}", "image_url": "https://i.example/%{project_id}.svg"});
    let blocked = |field: &str| json!({"message": {field: ["is blocked: Only allowed schemes are http, https"]}});
    let absent = json!({"message": "404 Not found"});
    let named =
        json!({"link_url": "https://a.example", "image_url": "http://a.example/i", "name": "ci"});
    let wrong = |field: &str, url: &str| {
        let mut body = named.clone();
        body[field] = url.into();
        body
    };
    world
        .check(vec![
            (
                fact("badge-shape"),
                "mia",
                "POST",
                SHOP_BADGES,
                new,
                201,
                json!({
                    "id": 1, "name": null, "kind": "project",
                    "link_url": "https://ci.example/%{project_path}/%{project_name}",
                    "image_url": "https://i.example/%{project_id}.svg",
                    "rendered_link_url": "https://ci.example/acme/shop/shop",
                    "rendered_image_url": "https://i.example/1.svg",
                }),
            ),
            (
                fact("badge-shape"),
                "olive",
                "POST",
                ACME_BADGES,
                json!({"link_url": "https://a.example/%{project_path}", "image_url": "http://a.example/i", "name": "ci"}),
                201,
                json!({"id": 2, "kind": "group", "rendered_link_url": "https://a.example/%{project_path}"}),
            ),
            (fact("badge-write"), "dan", "POST", SHOP_BADGES, named.clone(), 403, NO),
            (fact("badge-write"), "mia", "POST", ACME_BADGES, named.clone(), 403, NO),
            (fact("badge-read"), "gus", "GET", SHOP_BADGES, NO, 200, NO),
            (fact("badge-read"), "", "GET", ACME_BADGES, NO, 200, json!([{"id": 2}])),
            (fact("badge-read"), "", "GET", SITE_BADGES, NO, 200, json!([{"id": 2}])),
            (fact("badge-same"), "mia", "POST", SHOP_BADGES, named.clone(), 201, json!({"id": 3})),
            (fact("badge-same"), "mia", "POST", SHOP_BADGES, named.clone(), 201, json!({"id": 4})),
            (
                fact("badge-list"),
                "gus",
                "GET",
                SHOP_BADGES,
                NO,
                200,
                json!([{"id": 1}, {"id": 2, "kind": "group", "rendered_link_url": "https://a.example/acme/shop"}, {"id": 3}, {"id": 4}]),
            ),
            (
                fact("badge-read"),
                "gus",
                "GET",
                leak(format!("{SHOP_BADGES}?name=ci&per_page=2")),
                NO,
                200,
                json!([{"id": 2}, {"id": 3}]),
            ),
            (fact("badge-inherited"), "olive", "GET", INHERITED_BADGE, NO, 200, json!({"kind": "group"})),
            (fact("badge-inherited"), "olive", "PUT", INHERITED_BADGE, json!({"name": "x"}), 404, absent.clone()),
            (fact("badge-inherited"), "olive", "DELETE", INHERITED_BADGE, NO, 404, absent.clone()),
            (
                fact("parameter-missing"),
                "mia",
                "POST",
                SHOP_BADGES,
                json!({}),
                400,
                json!({"error": "link_url is missing, image_url is missing"}),
            ),
            (fact("badge-url"), "mia", "POST", SHOP_BADGES, wrong("link_url", "ftp://x/y"), 400, blocked("link_url")),
            (fact("badge-url"), "mia", "PUT", SHOP_BADGE, json!({"image_url": "x"}), 400, blocked("image_url")),
            (
                fact("badge-update"),
                "mia",
                "PUT",
                SHOP_BADGE,
                json!({"name": "new"}),
                200,
                json!({"name": "new", "image_url": "https://i.example/%{project_id}.svg"}),
            ),
            (fact("badge-update"), "olive", "PUT", ACME_BADGE, json!({"name": null}), 200, json!({"name": null})),
            (fact("badge-absent"), "mia", "GET", leak(format!("{SHOP_BADGES}/9")), NO, 404, absent.clone()),
            (fact("badge-absent"), "olive", "PUT", leak(format!("{ACME_BADGES}/1")), json!({}), 404, absent.clone()),
            (fact("badge-delete"), "mia", "DELETE", SHOP_BADGE, NO, 204, NO),
            (fact("badge-absent"), "mia", "DELETE", SHOP_BADGE, NO, 404, absent),
            (fact("badge-delete"), "olive", "DELETE", ACME_BADGE, NO, 204, NO),
            (fact("badge-list"), "gus", "GET", SHOP_BADGES, NO, 200, json!([{"id": 3}, {"id": 4}])),
        ])
        .await;
}

#[tokio::test]
async fn a_badge_has_a_preview() {
    let world = World::usual().await;
    let rule = fact("badge-preview");
    let query = "link_url=https://a.example/%25{project_path}&image_url=https://b.example/b.svg";
    let reply = world.get("dan", &format!("{SHOP_BADGES}/render?{query}")).await;
    let expected = json!({
        "link_url": "https://a.example/%{project_path}", "image_url": "https://b.example/b.svg",
        "rendered_link_url": "https://a.example/acme/shop", "rendered_image_url": "https://b.example/b.svg",
    });
    assert_eq!((reply.status, reply.body), (200, expected), "{rule}");
    let list = world.get("dan", SHOP_BADGES).await;
    assert_eq!(list.body, json!([]), "{rule}");
    assert_eq!(world.get("dan", &format!("{SHOP_BADGES}/render")).await.status, 400, "{rule}");
}

#[tokio::test]
async fn a_header_overrides_the_method_of_a_post() {
    let world = World::usual().await;
    let rule = fact("method-override");
    for (method, named, status) in
        [("POST", "PUT", 200), ("POST", "put", 200), ("POST", "GET", 404), ("GET", "DELETE", 200)]
    {
        let request = world.request(ROOT, method, "/projects/acme%2Fshop");
        let request = request.header("X-HTTP-Method-Override", named);
        let request = request.header("content-type", "application/json");
        let answer = request.body(r#"{"description": "x"}"#).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), status, "{rule}: {method} {named}");
    }
}
