//! Pending members, seats, and first tasks of new members.

use super::client::{ROOT, World, leak, usual_seed};
use super::facts::fact;
use serde_json::{Value, json};

const NO: Value = Value::Null;
const ACME_MEMBERS: &str = "/groups/acme/members";
const DAN_MEMBER: &str = "/groups/acme/members/4";

/// The members of an answer by their names.
fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .filter_map(|member| member["username"].as_str())
        .collect()
}

#[tokio::test]
async fn members_are_listed_by_their_state() {
    for (tier, waiting, active) in [
        ("premium", vec!["dan"], false),
        ("free", vec!["olive", "mia", "dan", "rita", "gus"], true),
    ] {
        let mut seed = usual_seed();
        seed["tier"] = json!(tier);
        let world = World::from_seed(seed).await;
        world
            .call("olive", "PUT", &format!("{DAN_MEMBER}/state"), &json!({"state": "awaiting"}))
            .await;
        for place in [ACME_MEMBERS, "/projects/acme%2Fshop/members"] {
            let narrowed = world.get("olive", &format!("{place}/all?state=awaiting")).await.body;
            assert_eq!(
                names(&narrowed),
                waiting,
                "{}: {tier} {place}",
                fact("member-state-filter")
            );
            let others = world.get("olive", &format!("{place}/all?state=active")).await.body;
            assert_eq!(
                names(&others).contains(&"dan"),
                active,
                "{}: {tier} {place}",
                fact("member-state-filter")
            );
            let answer = world.get("olive", &format!("{place}/all")).await.body;
            assert!(names(&answer).contains(&"dan"), "{}: {tier} {place}", fact("members-all"));
        }
        world
            .check(vec![(
                fact("member-state-filter"),
                "olive",
                "GET",
                "/groups/acme/members/all?state=idle",
                NO,
                400,
                json!({"error": "state does not have a valid value"}),
            )])
            .await;
        let users = world.get("olive", "/projects/acme%2Fshop/users").await.body;
        assert!(
            !names(&users).contains(&"dan"),
            "{}: a member who waits is no user of a project",
            fact("member-state")
        );
    }
}

#[tokio::test]
async fn an_active_membership_outranks_a_pending_one() {
    let world = World::usual().await;
    world.call("olive", "PUT", &format!("{DAN_MEMBER}/state"), &json!({"state": "awaiting"})).await;
    world
        .call(
            "olive",
            "POST",
            "/projects/acme%2Fshop/members",
            &json!({"user_id": 4, "access_level": 30}),
        )
        .await;
    world.call("olive", "PUT", DAN_MEMBER, &json!({"access_level": 50})).await;
    let all = "/projects/acme%2Fshop/members/all/4";
    world
        .check(vec![(
            fact("members-all"),
            "olive",
            "GET",
            all,
            NO,
            200,
            json!({"access_level": 30}),
        )])
        .await;
}

#[tokio::test]
async fn a_member_has_the_fields_of_the_reference() {
    const FIELDS: &str =
        "access_level avatar_url created_at created_by expires_at id name state username web_url";
    let world = World::usual().await;
    let added =
        world.call("olive", "POST", ACME_MEMBERS, &json!({"user_id": 7, "access_level": 30})).await;
    let one = leak(format!("{ACME_MEMBERS}/7"));
    let fields = |body: &Value| {
        let mut names: Vec<&str> =
            body.as_object().expect("an object").keys().map(String::as_str).collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(fields(&added.body), FIELDS, "{}", fact("member-fields"));
    assert_eq!(fields(&world.get("olive", one).await.body), FIELDS, "{}", fact("member-fields"));
    for method in ["POST", "DELETE"] {
        let reply = world.call("olive", method, &format!("{one}/override"), &NO).await;
        assert_eq!(
            fields(&reply.body).replace("override ", ""),
            FIELDS,
            "{}: {method}",
            fact("member-fields")
        );
    }
    let seats = world.get("olive", &format!("{ACME_MEMBERS}?show_seat_info=true")).await.body;
    assert_eq!(seats[0]["is_using_seat"], true, "{}", fact("member-seats"));
    let seats = world.get("olive", &format!("{ACME_MEMBERS}/all?show_seat_info=true")).await.body;
    assert_eq!(seats[0]["is_using_seat"], true, "{}", fact("member-seats"));
    world
        .check(vec![(
            fact("parameter-type"),
            "olive",
            "GET",
            "/groups/acme/members?show_seat_info=perhaps",
            NO,
            400,
            json!({"error": "show_seat_info is invalid"}),
        ), (
            fact("parameter-type"),
            "olive",
            "GET",
            "/groups?min_access_level=x",
            NO,
            400,
            json!({"error": "min_access_level is invalid, min_access_level does not have a valid value"}),
        )])
        .await;
}

#[tokio::test]
async fn tasks_and_their_project_need_each_other() {
    let world = World::usual().await;
    let add = |more: Value| {
        let mut body = json!({"user_id": 7, "access_level": 30});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    let refused = |more: Value, text: &str| {
        (
            fact("member-tasks"),
            "olive",
            "POST",
            ACME_MEMBERS,
            add(more),
            400,
            json!({"error": text}),
        )
    };
    world
        .check(vec![
            refused(
                json!({"tasks_to_be_done": ["ci", "tea"], "tasks_project_id": 1}),
                "tasks_to_be_done does not have a valid value",
            ),
            refused(json!({"tasks_to_be_done": ["ci"]}), "tasks_project_id is missing"),
            refused(json!({"tasks_project_id": 1}), "tasks_to_be_done is missing"),
            refused(
                json!({"tasks_to_be_done": "code", "tasks_project_id": "x"}),
                "tasks_project_id is invalid",
            ),
            (
                fact("member-tasks"),
                "olive",
                "POST",
                ACME_MEMBERS,
                add(json!({"tasks_to_be_done": ["ci", "code", "issues"], "tasks_project_id": 1})),
                201,
                NO,
            ),
        ])
        .await;
}

#[tokio::test]
async fn parameters_are_checked_before_objects_are_looked_up() {
    let world = World::usual().await;
    let bad = |method: &'static str, path: &'static str, body: Value, name: &str| {
        (
            fact("parameter-type"),
            "olive",
            method,
            path,
            body,
            400,
            json!({"error": format!("{name} is invalid")}),
        )
    };
    world
        .check(vec![
            bad(
                "DELETE",
                "/groups/acme/members/7",
                json!({"skip_subresources": "x"}),
                "skip_subresources",
            ),
            bad(
                "DELETE",
                "/projects/1/members/7",
                json!({"unassign_issuables": "x"}),
                "unassign_issuables",
            ),
            bad("PUT", "/groups/acme/members/x/approve", NO, "member_id"),
            (
                fact("member-level-required"),
                "olive",
                "PUT",
                "/groups/acme/members/7",
                json!({}),
                400,
                json!({"error": "access_level is missing"}),
            ),
            (
                fact("member-state-unknown"),
                "olive",
                "PUT",
                "/groups/acme/members/999/state",
                json!({"state": "active"}),
                404,
                json!({"message": "404 User Not Found"}),
            ),
            (
                fact("member-state-unknown"),
                "olive",
                "PUT",
                "/groups/acme/members/7/state",
                json!({"state": "active"}),
                422,
                json!({"message": "No memberships found"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn billable_members_are_searched_and_sorted() {
    let world = World::usual().await;
    let ann = json!({"username": "ann", "name": "Ann", "email": "post@ann.example", "reset_password": true});
    let id = world.call(ROOT, "POST", "/users", &ann).await.body["id"].clone();
    world.call("olive", "POST", ACME_MEMBERS, &json!({"user_id": id, "access_level": 5})).await;
    for list in ["billable_members?search", "members?query", "members/all?query"] {
        let found = world.get("olive", &format!("/groups/acme/{list}=POST@ann.example")).await.body;
        assert_eq!(
            names(&found),
            ["ann"],
            "{}: {list}, by the e-mail address",
            fact("member-list")
        );
        let found = world.get("olive", &format!("/groups/acme/{list}=local")).await.body;
        assert_eq!(
            names(&found),
            [""; 0],
            "{}: {list}, by what is in every e-mail address",
            fact("member-list")
        );
    }
    let seat = world.get("olive", "/groups/acme/billable_members?search=ann").await.body[0].clone();
    assert_eq!(
        (&seat["last_activity_on"], &seat["last_login_at"]),
        (&NO, &NO),
        "{}: somebody without a token",
        fact("billable-activity")
    );
    let seat = world.get("olive", "/groups/acme/billable_members?search=dan").await.body[0].clone();
    assert_eq!(
        seat["last_activity_on"].as_str().map(str::len),
        Some(10),
        "{}",
        fact("billable-activity")
    );
    for (sort, first) in [
        ("access_level_asc", "ann"),
        ("access_level_desc", "olive"),
        ("last_joined", "ann"),
        ("oldest_joined", "olive"),
        ("name_asc", "ann"),
        ("name_desc", "rita"),
        ("recent_sign_in", "ann"),
        ("oldest_sign_in", "olive"),
        ("last_activity_on_desc", "ann"),
        ("last_activity_on_asc", "olive"),
    ] {
        let sorted =
            world.get("olive", &format!("/groups/acme/billable_members?sort={sort}")).await.body;
        assert_eq!(sorted[0]["username"], first, "{}: {sort}", fact("billable"));
    }
}

#[tokio::test]
async fn members_of_invited_groups_are_billable() {
    let world = World::from_seed(json!({
        "users": [{"username": "ann", "token": "ann"}, {"username": "bob"}, {"username": "eve"}, {"username": "zoe"}],
        "groups": [
            {"path": "acme", "members": [{"user": "ann", "access_level": "owner"}]},
            {"path": "ops", "visibility": "public", "members": [{"user": "bob", "access_level": "owner"}]},
            {"path": "ops/night", "members": [{"user": "ann", "access_level": "guest"}, {"user": "eve", "access_level": "guest"}]},
            {"path": "other", "members": [{"user": "zoe", "access_level": "guest"}]},
        ],
        "projects": [{"path": "acme/deep/er"}],
    }))
    .await;
    let night = world.get(ROOT, "/groups/ops%2Fnight").await.body["id"].clone();
    world
        .call(ROOT, "POST", "/projects/1/share", &json!({"group_id": night, "group_access": 20}))
        .await;
    let seat = |user: &str, kind: &str, removable: bool| json!({"username": user, "membership_type": kind, "removable": removable});
    let seats = json!([
        seat("eve", "group_invite", false),
        seat("bob", "group_invite", false),
        seat("ann", "group_member", true)
    ]);
    world
        .check(vec![(
            fact("billable-invited"),
            "ann",
            "GET",
            "/groups/acme/billable_members?sort=access_level_asc",
            NO,
            200,
            seats,
        )])
        .await;
}

#[tokio::test]
async fn people_without_an_account_are_pending() {
    let world = World::usual().await;
    let (group, project) = ("/groups/acme/invitations", "/projects/acme%2Fshop/invitations");
    let pending = "/groups/acme/pending_members";
    let before = world.get("olive", ACME_MEMBERS).await.body;
    let invite = |email: &str| json!({"email": email, "access_level": 30});
    world
        .check(vec![
            (fact("role"), "mia", "POST", group, invite("new@example.org"), 403, NO),
            (
                fact("invitations"),
                "olive",
                "POST",
                group,
                invite("new@example.org"),
                201,
                json!({"status": "success"}),
            ),
            (
                fact("invitations"),
                "olive",
                "POST",
                project,
                invite("other@example.org"),
                201,
                json!({"status": "success"}),
            ),
            (
                fact("invitations"),
                "olive",
                "POST",
                group,
                invite("NEW@example.org"),
                201,
                json!({"status": "success"}),
            ),
            (
                fact("invitations"),
                "olive",
                "POST",
                group,
                invite("new"),
                400,
                json!({"error": "email contains an invalid email address"}),
            ),
            (
                fact("invitations"),
                "olive",
                "GET",
                group,
                NO,
                200,
                json!([{"invite_email": "new@example.org", "access_level": 30}]),
            ),
        ])
        .await;
    let people = world.get("olive", pending).await.body;
    let id = people[0]["id"].clone();
    let expected = json!({"id": id, "email": "new@example.org", "avatar_url": people[0]["avatar_url"], "approved": false, "invited": true});
    assert_eq!(people[0], expected, "{}", fact("pending"));
    assert_eq!(people[1]["email"], "other@example.org", "{}", fact("pending"));

    world
        .check(vec![
            (
                fact("approve"),
                "olive",
                "PUT",
                leak(format!("{ACME_MEMBERS}/{id}/approve")),
                NO,
                204,
                NO,
            ),
            (
                fact("pending"),
                "olive",
                "GET",
                pending,
                NO,
                200,
                json!([{"approved": true}, {"approved": false}]),
            ),
            (
                fact("invitations"),
                "olive",
                "DELETE",
                leak(format!("{project}/other@example.org")),
                NO,
                204,
                NO,
            ),
            (
                fact("invitations"),
                "olive",
                "DELETE",
                leak(format!("{project}/other@example.org")),
                NO,
                404,
                NO,
            ),
        ])
        .await;
    assert_eq!(
        world.get("olive", ACME_MEMBERS).await.body,
        before,
        "{}: nobody has an account yet",
        fact("invitations")
    );
    let account = json!({"username": "nina", "name": "Nina", "email": "New@example.org", "password": "not-used-1"});
    let nina = world.call(ROOT, "POST", "/users", &account).await.body;
    world
        .check(vec![
            (
                fact("invitations"),
                "olive",
                "GET",
                leak(format!("{ACME_MEMBERS}/{}", nina["id"])),
                NO,
                200,
                json!({"access_level": 30}),
            ),
            (fact("pending"), "olive", "GET", pending, NO, 200, json!([])),
            (
                fact("invitations"),
                "olive",
                "POST",
                project,
                invite("new@example.org"),
                201,
                json!({"status": "success"}),
            ),
        ])
        .await;
    let member = leak(format!("/projects/acme%2Fshop/members/{}", nina["id"]));
    assert_eq!(
        world.get("olive", member).await.status,
        200,
        "{}: whoever has an account is a member at once",
        fact("invitations")
    );
}

#[tokio::test]
async fn only_owners_are_shown_the_token_of_runners() {
    let world = World::from_seed(usual_seed()).await;
    for (who, shown) in [("olive", true), (ROOT, true), ("mia", false)] {
        let group = world.get(who, "/groups/acme").await.body;
        let fact = fact("group-runners-token");
        assert_eq!(group.get("runners_token").is_some(), shown, "{fact}: {who}");
        let list = world.get(who, "/groups").await.body;
        assert!(list[0].get("runners_token").is_none(), "{fact}: {who}");
    }
    let edited = world.call("olive", "PUT", "/groups/acme", &json!({"name": "ACME"})).await.body;
    assert!(edited["runners_token"].is_string());
}
