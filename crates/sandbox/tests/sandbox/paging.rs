//! Lists: pages, keyset pages, filters.

use serde_json::{Value, json};

use super::client::{ROOT, World};
use super::facts::fact;

const NO: Value = Value::Null;

async fn world_of_five() -> World {
    World::from_seed(seed()).await
}

/// The same at another release.
async fn world_of_five_at(release: &str) -> World {
    let mut seed = seed();
    seed["release"] = release.into();
    World::from_seed(seed).await
}

fn seed() -> Value {
    let project = |name: &str, more: Value| {
        let mut project = json!({"path": format!("acme/{name}")});
        project["settings"] = more;
        project
    };
    json!({
        "users": [{"username": "una", "token": "una"}, {"username": "mem", "token": "mem"}],
        "groups": [{"path": "acme", "visibility": "public"}, {"path": "acme/deep"}],
        "projects": [
            project("one", json!({"visibility": "public", "topics": ["a", "b"]})),
            project("two", json!({"visibility": "internal", "topics": "a"})),
            {"path": "acme/three", "members": [{"user": "mem", "access_level": "reporter"}]},
            {"path": "acme/four", "archived": true},
            {"path": "acme/deep/five"},
        ],
    })
}

fn usernames(body: &Value) -> Vec<&str> {
    body.as_array().expect("a list").iter().filter_map(|user| user["username"].as_str()).collect()
}

fn ids(body: &Value) -> Vec<i64> {
    body.as_array()
        .expect("a list")
        .iter()
        .map(|item| item["id"].as_i64().expect("an id"))
        .collect()
}

#[tokio::test]
async fn pages_carry_all_their_headers() {
    let world = world_of_five().await;
    let page = world.get(ROOT, "/projects?per_page=2&page=2&sort=asc").await;
    assert_eq!(ids(&page.body), [3, 4]);
    for (name, value) in [
        ("x-page", "2"),
        ("x-per-page", "2"),
        ("x-prev-page", "1"),
        ("x-next-page", "3"),
        ("x-total", "5"),
        ("x-total-pages", "3"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(page.header(name), value, "{}: {name}", fact("page-headers"));
    }
    assert!(
        !page.header("x-request-id").is_empty() && !page.header("x-runtime").is_empty(),
        "{}",
        fact("response-headers")
    );
    let link = page.header("link");
    let host = world.running.url();
    for rel in ["prev", "next", "first", "last"] {
        assert!(link.contains(&format!("rel=\"{rel}\"")), "{}: {link}", fact("page-headers"));
    }
    assert!(
        link.contains(&format!(
            "<{host}/api/v4/projects?sort=asc&page=3&per_page=2>; rel=\"next\""
        )),
        "{}: {link}",
        fact("page-link-host")
    );

    let last = world.get(ROOT, "/projects?per_page=2&page=3").await;
    assert_eq!(
        (last.header("x-next-page"), last.body.as_array().map(Vec::len)),
        ("", Some(1)),
        "{}",
        fact("page-headers")
    );
    let after = world.get(ROOT, "/projects?per_page=2&page=5").await;
    assert_eq!(after.header("x-prev-page"), "", "{}", fact("page-after-last"));
    assert!(!after.header("link").contains("rel=\"prev\""), "{}", fact("page-after-last"));

    let head = world.request(ROOT, "HEAD", "/projects?per_page=2").send().await.expect("an answer");
    assert_eq!(head.headers()["x-total"], "5", "{}", fact("head"));
}

#[tokio::test]
async fn a_list_too_long_to_count_has_no_total() {
    let projects: Vec<_> =
        (0..10_100).map(|number| json!({"path": format!("acme/p{number}")})).collect();
    let world = World::from_seed(json!({"groups": [{"path": "acme"}], "projects": projects})).await;
    for (number, next) in [(100, "101"), (101, "")] {
        let page =
            world.get(ROOT, &format!("/projects?per_page=100&simple=true&page={number}")).await;
        assert_eq!(
            (page.body.as_array().map(Vec::len), page.header("x-total")),
            (Some(100), ""),
            "{}",
            fact("page-headers")
        );
        assert_eq!(page.header("x-next-page"), next, "{}", fact("page-headers"));
    }
}

#[tokio::test]
async fn keyset_pages_end_with_an_empty_one() {
    let world = world_of_five().await;
    for project in 1..=5 {
        world.call(ROOT, "POST", &format!("/projects/{project}/star"), &NO).await;
    }
    for list in ["/projects", "/users/root/starred_projects"] {
        let (mut next, mut seen) =
            (format!("{list}?pagination=keyset&order_by=id&sort=asc&per_page=2"), Vec::new());
        loop {
            let page = world.get(ROOT, &next).await;
            assert!(page.header("x-total").is_empty(), "{}", fact("keyset-end"));
            let found = ids(&page.body);
            let link = page.header("link").to_owned();
            assert_eq!(found.is_empty(), link.is_empty(), "{}", fact("keyset-end"));
            if found.is_empty() {
                break;
            }
            seen.extend(found);
            assert!(seen.len() <= 5, "{}: {list} goes on with {link}", fact("keyset-end"));
            let address = link.trim_start_matches('<').split('>').next().expect("an address");
            next = address.split("/api/v4").nth(1).expect("a path").to_owned();
        }
        assert_eq!(seen, [1, 2, 3, 4, 5], "{}: {list}", fact("keyset-end"));
    }
    world
        .check(vec![
            (fact("keyset-id"), ROOT, "GET", "/projects?pagination=keyset&order_by=name", NO, 405, NO),
            (
                fact("offset-limit"),
                ROOT,
                "GET",
                "/projects?per_page=100&page=501",
                NO,
                405,
                json!({"error":
                "Offset pagination has a maximum allowed offset of 50000 for requests that return objects of type \
                 Project. Remaining records can be retrieved using keyset pagination."}),
            ),
            (fact("page-parameters"), ROOT, "GET", "/projects?page=x", NO, 400, json!({"error": "page is invalid"})),
            (
                fact("parameter-type"),
                "",
                "GET",
                "/projects?search=no-such&statistics=x",
                NO,
                400,
                json!({"error": "statistics is invalid"}),
            ),
            (
                fact("parameter-type"),
                "",
                "GET",
                "/projects?search=no-such&with_custom_attributes=x",
                NO,
                400,
                json!({"error": "with_custom_attributes is invalid"}),
            ),
            (fact("page-parameters"), ROOT, "GET", "/projects?per_page=0", NO, 400, json!({"error": "per_page has a value not allowed"})),
            (fact("page-parameters"), ROOT, "GET", "/projects?per_page=-1", NO, 200, NO),
            (
                fact("parameter-values"),
                ROOT,
                "GET",
                "/projects?order_by=x",
                NO,
                400,
                json!({"error": "order_by does not have a valid value"}),
            ),
        ])
        .await;
    assert_eq!(
        world.get(ROOT, "/projects?per_page=1000").await.header("x-per-page"),
        "100",
        "{}",
        fact("page-parameters")
    );
}

#[tokio::test]
async fn users_have_keyset_pages_in_later_releases() {
    let rule = fact("keyset-users");
    let first = "/users?pagination=keyset&order_by=username&sort=asc&per_page=2";
    let earlier = world_of_five_at("18.8").await.get(ROOT, first).await;
    assert_eq!(earlier.header("x-total"), "3", "{rule}");
    let world = world_of_five_at("18.9").await;
    let page = world.get(ROOT, first).await;
    assert_eq!(usernames(&page.body), ["mem", "root"], "{rule}");
    assert_eq!(page.header("x-total"), "", "{rule}");
    let link = page.header("link").trim_start_matches('<').split('>').next().expect("an address");
    let page = world.get(ROOT, link.split("/api/v4").nth(1).expect("a path")).await;
    assert_eq!(usernames(&page.body), ["una"], "{rule}");
    assert_eq!(page.header("link"), "", "{rule}");
}

#[tokio::test]
async fn lists_show_what_the_caller_may_see_and_asks_for() {
    let world = world_of_five().await;
    let rows: Vec<(&str, &str, &[i64])> = vec![
        ("", "/projects", &[1]),
        ("una", "/projects?sort=asc", &[1, 2]),
        ("mem", "/projects?sort=asc", &[1, 2, 3]),
        ("mem", "/projects?membership=true", &[3]),
        ("mem", "/projects?min_access_level=20", &[3]),
        ("mem", "/projects?min_access_level=30", &[]),
        (ROOT, "/projects", &[5, 4, 3, 2, 1]),
        (ROOT, "/projects?archived=true", &[4]),
        (ROOT, "/projects?archived=false&sort=asc", &[1, 2, 3, 5]),
        (ROOT, "/projects?id_after=2&id_before=5&sort=asc", &[3, 4]),
        (ROOT, "/projects?search=FO", &[4]),
        (ROOT, "/projects?search=_", &[]),
        (ROOT, "/projects?search=deep&search_namespaces=true", &[5]),
        (ROOT, "/projects?visibility=internal", &[2]),
        (ROOT, "/projects?topic=a&sort=asc", &[1, 2]),
        (ROOT, "/projects?topic=a,b", &[1]),
        (ROOT, "/projects?order_by=path&sort=asc", &[5, 4, 1, 3, 2]),
        (ROOT, "/projects?owned=true", &[]),
        ("", "/projects?owned=true", &[]),
        ("", "/projects?membership=true", &[]),
        ("", "/projects?min_access_level=10", &[]),
        ("", "/projects?starred=true", &[]),
        (ROOT, "/groups/acme/projects?sort=asc", &[1, 2, 3, 4]),
        (ROOT, "/groups/acme/projects?include_subgroups=true&sort=asc", &[1, 2, 3, 4, 5]),
        ("una", "/groups/acme/projects?sort=asc", &[1, 2]),
    ];
    for (token, path, expected) in rows {
        let reply = world.get(token, path).await;
        assert_eq!(ids(&reply.body), expected, "{}: {token} {path}", fact("project-list"));
    }
}

#[tokio::test]
async fn offset_paging_is_limited_where_keyset_paging_exists() {
    let far = "?per_page=100&page=501";
    for (release, caller, list, status) in [
        ("15.8", "", "/groups", 405),
        ("15.8", ROOT, "/groups", 200),
        ("15.8", ROOT, "/users", 200),
        ("17.0", ROOT, "/users", 405),
        ("17.0", ROOT, "/projects", 405),
        ("18.9", ROOT, "/groups", 405),
        ("18.9", ROOT, "/users", 405),
        ("18.9", ROOT, "/projects", 200),
    ] {
        let world = world_of_five_at(release).await;
        let reply = world.get(caller, &format!("{list}{far}")).await;
        assert_eq!(reply.status, status, "{}: {release} {list}", fact("offset-limit-others"));
    }
}

#[tokio::test]
async fn later_releases_have_more_orders_and_filters() {
    let world = world_of_five_at("18.9").await;
    let made = json!({"name": "own", "visibility": "public", "topics": ["a"]});
    world.call("una", "POST", "/projects", &made).await;
    world.call("una", "POST", "/projects", &json!({"name": "ours"})).await;
    world.call(ROOT, "POST", "/projects/2/star", &NO).await;
    world.call(ROOT, "POST", "/projects/6/star", &NO).await;
    let (users, none): (_, &[i64]) = ("/users/una/projects", &[]);
    let rows: Vec<(&str, String, &[i64])> = vec![
        (ROOT, "/projects?order_by=star_count".into(), &[6, 2, 7, 5, 4, 3, 1]),
        (ROOT, "/groups/acme/projects?order_by=star_count&sort=asc".into(), &[1, 3, 4, 2]),
        (ROOT, format!("{users}?order_by=star_count&sort=asc"), &[7, 6]),
        (ROOT, format!("{users}?order_by=similarity"), &[7, 6]),
        (ROOT, format!("{users}?order_by=repository_size"), &[7, 6]),
        (ROOT, format!("{users}?order_by=storage_size&sort=asc"), &[6, 7]),
        (ROOT, format!("{users}?owned=true"), &[7, 6]),
        (ROOT, format!("{users}?min_access_level=30"), &[7, 6]),
        ("una", format!("{users}?min_access_level=30"), &[7, 6]),
        ("mem", format!("{users}?min_access_level=30"), none),
        ("mem", format!("{users}?membership=true&owned=true"), &[6]),
        ("", format!("{users}?membership=true&min_access_level=30"), &[6]),
        (ROOT, format!("{users}?topic=a"), &[6]),
        (ROOT, format!("{users}?topic_id=1"), none),
        (ROOT, format!("{users}?imported=true"), none),
        (ROOT, format!("{users}?updated_after=2000-01-01T00:00:00Z"), &[7, 6]),
        (ROOT, format!("{users}?last_activity_before=2000-01-01T00:00:00Z"), none),
        (ROOT, "/projects?repository_checksum_failed=true&sort=asc".into(), &[1, 2, 3, 4, 5, 6, 7]),
        (ROOT, "/projects?wiki_checksum_failed=true&search=own".into(), &[6]),
        ("", "/projects?search=ow".into(), &[6]),
        ("", "/projects?search=o".into(), none),
    ];
    for (caller, path, expected) in rows {
        let reply = world.get(caller, &path).await;
        assert_eq!(ids(&reply.body), expected, "{}: {caller} {path}", fact("project-list-later"));
    }
    let reply = world.get(ROOT, &format!("{users}?last_activity_after=x")).await;
    assert_eq!(reply.status, 400, "{}", fact("project-list-later"));
    for (release, list, status) in [
        ("17.3", "/projects", 400),
        ("17.4", "/projects", 200),
        ("17.3", "/groups/acme/projects", 200),
        ("16.9", "/groups/acme/projects", 400),
    ] {
        let got =
            world_of_five_at(release).await.get(ROOT, &format!("{list}?order_by=star_count")).await;
        assert_eq!(got.status, status, "{}: {release} {list}", fact("project-list-later"));
    }
}

#[tokio::test]
async fn a_private_profile_hides_the_lists_of_a_user() {
    let world = world_of_five().await;
    world.call("una", "POST", "/projects/1/star", &NO).await;
    world.call("una", "POST", "/projects", &json!({"name": "own", "visibility": "public"})).await;
    let una = world.get("una", "/user").await.body["id"].clone();
    for private in [true, false] {
        let set = world
            .call(ROOT, "PUT", &format!("/users/{una}"), &json!({"private_profile": private}))
            .await;
        assert_eq!(set.body["private_profile"], private, "{}", fact("private-profile"));
        for (list, found) in [("/users/una/projects", 6), ("/users/una/starred_projects", 1)] {
            for (caller, hidden) in [("", private), ("mem", private), ("una", false), (ROOT, false)]
            {
                let expected: &[i64] = if hidden { &[] } else { &[found] };
                assert_eq!(
                    ids(&world.get(caller, list).await.body),
                    expected,
                    "{}: {caller} {list}",
                    fact("private-profile")
                );
            }
        }
    }
}

#[tokio::test]
async fn each_list_takes_its_own_parameters() {
    let world = world_of_five().await;
    for project in ["1", "2"] {
        world.call("una", "POST", &format!("/projects/{project}/star"), &NO).await;
    }
    let starred = "/users/una/starred_projects";
    for ignored in [
        "id_after=1",
        "id_before=2",
        "topic=b",
        "topic_id=1",
        "imported=true",
        "with_programming_language=x",
        "last_activity_after=x",
    ] {
        let reply = world.get("una", &format!("{starred}?{ignored}")).await;
        assert_eq!(ids(&reply.body), [2, 1], "{}: {ignored}", fact("project-list-parameters"));
    }
    let reply = world.get("una", &format!("{starred}?search=acme&search_namespaces=true")).await;
    assert_eq!(reply.body, json!([]), "{}", fact("project-list-parameters"));
    for list in [starred, "/users/una/projects", "/projects/1/forks"] {
        for order in ["similarity", "repository_size", "storage_size", "packages_size", "wiki_size"]
        {
            let got = world.get(ROOT, &format!("{list}?order_by={order}&search=a")).await;
            assert_eq!(got.status, 400, "{}: {list} {order}", fact("project-list-parameters"));
            assert_eq!(
                world.get(ROOT, &format!("/projects?order_by={order}&search=a")).await.status,
                200,
                "{order}"
            );
        }
        let got = world.get(ROOT, &format!("{list}?min_access_level=33")).await;
        assert_eq!(
            got.body,
            json!({"error": "min_access_level does not have a valid value"}),
            "{}: {list}",
            fact("parameter-values")
        );
    }
    let got = world.get(ROOT, "/projects/1/groups?shared_min_access_level=33").await;
    assert_eq!(
        got.body,
        json!({"error": "shared_min_access_level does not have a valid value"}),
        "{}",
        fact("parameter-values")
    );
}

/// The fields of the simple form (reference 1, 2.8).
pub(crate) const SIMPLE_FIELDS: &str = "id description name name_with_namespace path path_with_namespace created_at
    default_branch tag_list topics ssh_url_to_repo http_url_to_repo web_url avatar_url star_count last_activity_at
    namespace";

#[tokio::test]
async fn the_simple_form_has_exactly_the_fields_of_the_reference() {
    let world = world_of_five().await;
    let mut expected: Vec<&str> = SIMPLE_FIELDS.split_whitespace().collect();
    expected.sort_unstable();
    for (token, path) in [("", "/projects"), (ROOT, "/projects?simple=true")] {
        let body = world.get(token, path).await.body;
        let item = body.get(0).unwrap_or(&body);
        let mut keys: Vec<&String> = item.as_object().expect("an object").keys().collect();
        keys.sort_unstable();
        assert_eq!(keys, expected, "{}: {path}", fact("simple-form"));
    }
}

#[tokio::test]
async fn the_projects_of_a_group_have_fewer_filters() {
    let world = World::at("18.9").await;
    let rule = fact("group-project-list");
    let acme = world.group_id("acme").await;
    let sub = json!({"name": "below", "path": "below", "parent_id": acme, "visibility": "public"});
    let below = world.call("olive", "POST", "/groups", &sub).await.body["id"].clone();
    for (path, visibility) in [("web", "public"), ("Api", "public")] {
        let body = json!({"path": path, "namespace_id": below, "visibility": visibility});
        assert_eq!(world.call("olive", "POST", "/projects", &body).await.status, 201, "{rule}");
    }
    for (token, query, expected) in [
        ("olive", "pagination=keyset", vec!["Api", "web"]),
        ("olive", "pagination=keyset&order_by=name&sort=desc", vec!["web", "Api"]),
        ("olive", "order_by=similarity", vec!["Api", "web"]),
        ("olive", "imported=true&with_programming_language=Ruby", vec!["Api", "web"]),
        ("olive", "updated_after=2099-01-01T00:00:00Z", vec!["Api", "web"]),
        ("olive", "with_security_reports=true", vec![]),
        ("stranger", "membership=true", vec!["Api", "web"]),
        ("stranger", "owned=true", vec![]),
        ("", "owned=true", vec!["Api", "web"]),
        ("", "min_access_level=30", vec!["Api", "web"]),
        ("", "search=site&include_ancestor_groups=true", vec!["site"]),
    ] {
        let reply = world.get(token, &format!("/groups/acme%2Fbelow/projects?{query}")).await;
        let names: Vec<_> =
            reply.body.as_array().into_iter().flatten().map(|one| one["path"].as_str()).collect();
        let expected: Vec<_> = expected.into_iter().map(Some).collect();
        assert_eq!(names, expected, "{rule}: {token} {query}: {}", reply.body);
        assert!(!reply.header("x-page").is_empty(), "{rule}: {query}");
    }
    let sizes = world.get("olive", "/groups/acme/projects?order_by=storage_size").await;
    assert_eq!(sizes.status, 400, "{rule}: {}", sizes.body);
    let answer = world.get("", "/groups/acme%2Fbelow/projects?statistics=true").await.body;
    assert!(answer[0].get("merge_method").is_some(), "{rule}: {answer}");
    let shown = world.get("olive", "/groups/acme%2Fbelow/projects?statistics=true").await.body;
    assert!(shown[0].get("statistics").is_none(), "{rule}: {shown}");
}
