//! Custom roles, and who has them: members, shares, links to a directory or an identity provider.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::{OBSERVED_RELEASE, SandboxConfig, ServiceTier};

use super::client::{ROOT, World, leak, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const ROLES: &str = "/member_roles";
const LEVEL_MISMATCH: &str =
    "the custom role's base access level does not match the current access level";

async fn at(release: Release, tier: ServiceTier) -> World {
    let tier = Some(tier);
    World::seeded(
        usual_seed(),
        SandboxConfig { release: Some(release), tier, ..SandboxConfig::default() },
    )
    .await
}

/// A service with the roles 1 and 2, both with the level of a maintainer.
async fn with_roles(release: Release) -> World {
    let world = at(release, ServiceTier::Ultimate).await;
    for name in ["auditor", "deployer"] {
        let role = json!({"name": name, "base_access_level": 40, "read_vulnerability": true});
        let reply = world.call(ROOT, "POST", ROLES, &role).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
    world
}

fn says(text: &str) -> Value {
    json!({ "message": text })
}

#[tokio::test]
async fn administrators_create_custom_roles() {
    let (world, rule) = (at(OBSERVED_RELEASE, ServiceTier::Ultimate).await, fact("custom-roles"));
    let permissions = fact("custom-role-permissions");
    let one = "/member_roles/1";
    let role = |level: u8| json!({"name": "auditor", "description": "Reads", "base_access_level": level, "read_code": true});
    let shown = json!({"id": 1, "group_id": null, "name": "auditor", "description": "Reads", "base_access_level": 10,
        "read_code": true, "admin_cicd_variables": false, "admin_web_hook": false});
    world
        .check(vec![
            (rule, "", "GET", ROLES, NO, 401, NO),
            (rule, "olive", "GET", ROLES, NO, 403, NO),
            (rule, "olive", "POST", ROLES, role(10), 403, NO),
            (rule, "olive", "DELETE", one, NO, 403, NO),
            (rule, ROOT, "GET", ROLES, NO, 200, json!([])),
            (rule, ROOT, "POST", ROLES, json!({"read_code": true}), 400, {
                json!({"error": "base_access_level is missing, base_access_level does not have a valid value"})
            }),
            (rule, ROOT, "POST", ROLES, role(1), 400, {
                json!({"error": "base_access_level does not have a valid value"})
            }),
            (rule, ROOT, "POST", ROLES, role(50), 400, says("Base access level is not included in the list")),
            (permissions, ROOT, "POST", ROLES, json!({"base_access_level": 10, "fly": true}), 400, {
                says("Cannot create a member role with no enabled permissions")
            }),
            (rule, ROOT, "POST", ROLES, role(10), 201, shown.clone()),
            (rule, ROOT, "POST", ROLES, role(20), 400, says("Name has already been taken")),
            (rule, ROOT, "POST", ROLES, json!({"base_access_level": 20, "read_code": true}), 201, {
                json!({"id": 2, "name": "Reporter - custom", "description": null})
            }),
            (rule, ROOT, "GET", ROLES, NO, 200, json!([{"id": 2}, shown])),
            (rule, ROOT, "PUT", one, json!({"name": "x"}), 404, NO),
            (rule, ROOT, "DELETE", "/member_roles/9", NO, 404, says("404 Member Role Not Found")),
            (rule, ROOT, "DELETE", one, NO, 204, NO),
            (rule, ROOT, "GET", ROLES, NO, 200, json!([{"id": 2}])),
        ])
        .await;
    let early = at(Release::new(16, 9), ServiceTier::Ultimate).await;
    let reply = early.call(ROOT, "POST", ROLES, &role(10)).await;
    let has = |name: &str| reply.body.get(name).is_some();
    assert!(has("remove_project") && !has("admin_web_hook"), "{permissions} {}", reply.body);
    for (release, tier, status) in [
        (Release::new(16, 8), ServiceTier::Ultimate, 404),
        (OBSERVED_RELEASE, ServiceTier::Premium, 403),
        (OBSERVED_RELEASE, ServiceTier::Free, 404),
    ] {
        assert_eq!(at(release, tier).await.get(ROOT, ROLES).await.status, status, "{rule}");
    }
}

#[tokio::test]
async fn groups_have_no_custom_roles_of_their_own() {
    let (world, rule) =
        (at(OBSERVED_RELEASE, ServiceTier::Ultimate).await, fact("custom-roles-of-groups"));
    let list = "/groups/acme/member_roles";
    for (method, path) in [("GET", list), ("POST", list), ("DELETE", "/groups/acme/member_roles/1")]
    {
        let reply = world.call("olive", method, path, &NO).await;
        let text = reply.body["message"].as_str().unwrap_or_default();
        let start = "400 Bad request - Group-level custom roles are deprecated on self-managed instances. See http";
        assert!(reply.status == 400 && text.starts_with(start), "{rule} {method} {}", reply.body);
    }
    world.check(vec![(rule, "", "GET", list, NO, 401, NO)]).await;
    let before = at(Release::new(16, 11), ServiceTier::Ultimate).await;
    assert_eq!(before.get("olive", list).await.status, 404, "{rule}");
}

#[tokio::test]
async fn members_have_custom_roles() {
    let world = with_roles(OBSERVED_RELEASE).await;
    let (rule, level) = (fact("member-role"), fact("member-role-level"));
    let body = |level: u8, role: Value| json!({"user_id": 7, "access_level": level, "member_role_id": role});
    let mismatch = json!({"message": {"member_role_id": [LEVEL_MISMATCH]}});
    let locked = json!({"message": {"member_role_id": [LEVEL_MISMATCH],
        "access_level": ["cannot be changed because of an existing association with a custom role"]}});
    let role = |id: u8| json!({"member_role": {"id": id, "base_access_level": 40, "read_vulnerability": true}});
    let unknown = json!({"message": {"member_role": ["not found"]}});
    let used = says(
        "Role is assigned to one or more group members. Remove role from all group members, then delete role.",
    );
    for (list, by) in
        [("/groups/acme/members", "olive"), ("/projects/acme%2Fshop/members", "olive")]
    {
        let one = leak(format!("{list}/7"));
        world
            .check(vec![
                (level, by, "POST", list, body(30, json!(1)), 400, mismatch.clone()),
                (fact("member-role-unknown"), by, "POST", list, body(40, json!(9)), 500, NO),
                (rule, by, "POST", list, body(40, json!(1)), 201, role(1)),
                (rule, by, "GET", one, NO, 200, role(1)),
                (
                    fact("custom-role-used"),
                    ROOT,
                    "DELETE",
                    "/member_roles/1",
                    NO,
                    400,
                    used.clone(),
                ),
                (level, by, "PUT", one, json!({"access_level": 30}), 400, locked.clone()),
                (rule, by, "PUT", one, json!({"access_level": 40}), 200, role(1)),
                (
                    level,
                    by,
                    "PUT",
                    one,
                    json!({"access_level": 30, "member_role_id": 2}),
                    400,
                    mismatch.clone(),
                ),
                (
                    fact("member-role-unknown"),
                    by,
                    "PUT",
                    one,
                    json!({"access_level": 40, "member_role_id": 9}),
                    400,
                    unknown.clone(),
                ),
                (
                    rule,
                    by,
                    "PUT",
                    one,
                    json!({"access_level": 40, "member_role_id": 2}),
                    200,
                    role(2),
                ),
            ])
            .await;
        for none in [NO, json!("")] {
            world.call(by, "PUT", one, &json!({"access_level": 40, "member_role_id": 2})).await;
            let none = json!({"access_level": 30, "member_role_id": none});
            let reply = world.call(by, "PUT", one, &none).await;
            assert!(
                reply.status == 200 && reply.body.get("member_role").is_none(),
                "{rule} {}",
                reply.body
            );
        }
        // Among several, an existing member gets the role of the call, or loses its own.
        let several =
            |role: Value| json!({"user_id": "7,8", "access_level": 40, "member_role_id": role});
        let done = json!({"status": "success"});
        world
            .check(vec![
                (rule, by, "POST", list, several(json!(1)), 201, done.clone()),
                (rule, by, "GET", one, NO, 200, role(1)),
                (rule, by, "POST", list, several(NO), 201, done),
            ])
            .await;
        assert!(world.get(by, one).await.body.get("member_role").is_none(), "{rule}");
        world.call(by, "DELETE", one, &NO).await;
    }
    world
        .check(vec![(fact("custom-role-used"), ROOT, "DELETE", "/member_roles/1", NO, 204, NO)])
        .await;
    let below = at(OBSERVED_RELEASE, ServiceTier::Premium).await;
    let made = below.call("olive", "POST", "/groups/acme/members", &body(30, json!(9))).await;
    assert!(made.status == 201 && made.body.get("member_role").is_none(), "{rule} {}", made.body);
}

#[tokio::test]
async fn billable_memberships_name_the_custom_role() {
    let world = with_roles(OBSERVED_RELEASE).await;
    let add = json!({"user_id": 7, "access_level": 40, "member_role_id": 1});
    world.call("olive", "POST", "/groups/acme/members", &add).await;
    let path = "/groups/acme/billable_members/7/memberships";
    let shown = json!([{"access_level": {"custom_role": {"id": 1, "name": "auditor"}}}]);
    world.check(vec![(fact("member-role"), "olive", "GET", path, NO, 200, shown)]).await;
}

/// A group that the others can see, and its id.
async fn invited(world: &World) -> Value {
    let group = json!({"path": "new", "name": "new", "visibility": "public"});
    world.call("stranger", "POST", "/groups", &group).await.body["id"].clone()
}

#[tokio::test]
async fn shares_have_custom_roles() {
    let world = with_roles(OBSERVED_RELEASE).await;
    let (rule, level, in_force) =
        (fact("share-role"), fact("link-role-level"), fact("share-role-of-members"));
    let group = invited(&world).await;
    let with = |level: u8, role: Value| json!({"group_id": group, "group_access": level, "member_role_id": role});
    let wrong = says(&format!("Member role {LEVEL_MISMATCH}"));
    let (of_group, of_project) = ("/groups/acme/share", "/projects/acme%2Fshop/share");
    let role = |id: Value| json!({"shared_with_groups": [{"member_role_id": id}]});
    let [end, end_of_project] = [of_group, of_project].map(|path| leak(format!("{path}/{group}")));
    world
        .check(vec![
            (level, "olive", "POST", of_group, with(30, json!(1)), 409, wrong.clone()),
            (level, "olive", "POST", of_group, with(40, json!(9)), 500, NO),
            (rule, "olive", "POST", of_group, with(40, json!(1)), 201, role(json!(1))),
            (rule, "olive", "GET", "/groups/acme", NO, 200, role(json!(1))),
            // The owner of the invited group has the level and the role of the share.
            (
                in_force,
                "stranger",
                "GET",
                "/groups/acme/members/all/7",
                NO,
                200,
                json!({"access_level": 40, "member_role": {"id": 1}}),
            ),
            (level, "olive", "POST", of_project, with(30, json!(1)), 409, wrong),
            (
                rule,
                "olive",
                "POST",
                of_project,
                with(40, json!(2)),
                201,
                json!({"member_role_id": 2}),
            ),
            (rule, "olive", "DELETE", end_of_project, NO, 204, NO),
            // A role that is removed is no longer shown.
            (rule, ROOT, "DELETE", "/member_roles/1", NO, 204, NO),
            (rule, "olive", "GET", "/groups/acme", NO, 200, role(NO)),
            (rule, "olive", "DELETE", end, NO, 204, NO),
            (rule, "olive", "POST", of_group, with(40, NO), 201, role(NO)),
        ])
        .await;
    for (release, shows) in [(Release::new(17, 3), false), (Release::new(17, 4), true)] {
        let world = with_roles(release).await;
        let share =
            json!({"group_id": invited(&world).await, "group_access": 40, "member_role_id": 1});
        let answer = world.call("olive", "POST", of_group, &share).await.body;
        let shown = answer["shared_with_groups"][0].get("member_role_id");
        assert_eq!(shown, shows.then_some(&json!(1)), "{rule} {release} {answer}");
    }
}

#[tokio::test]
async fn links_have_custom_roles() {
    let world = with_roles(OBSERVED_RELEASE).await;
    let (rule, level) = (fact("link-role"), fact("link-role-level"));
    let (ldap, saml) = ("/groups/acme/ldap_group_links", "/groups/acme/saml_group_links");
    let of_ldap = |level: u8, role: Value| json!({"provider": "p", "cn": "ops", "group_access": level, "member_role_id": role});
    let of_saml = |level: u8, role: Value| json!({"saml_group_name": "ops", "access_level": level, "member_role_id": role});
    let (wrong, role) =
        (says(&format!("Member role {LEVEL_MISMATCH}")), json!({"member_role_id": 1}));
    world
        .check(vec![
            (level, "olive", "POST", ldap, of_ldap(30, json!(1)), 409, wrong.clone()),
            (level, "olive", "POST", ldap, of_ldap(40, json!(9)), 500, NO),
            (rule, "olive", "POST", ldap, of_ldap(40, json!(1)), 201, role.clone()),
            (rule, "olive", "GET", ldap, NO, 200, json!([role])),
            (level, "olive", "POST", saml, of_saml(30, json!(1)), 400, wrong),
            (level, "olive", "POST", saml, of_saml(40, json!(9)), 500, NO),
            (rule, "olive", "POST", saml, of_saml(40, json!(1)), 201, role.clone()),
            (rule, "olive", "GET", leak(format!("{saml}/ops")), NO, 200, role),
            (rule, ROOT, "DELETE", "/member_roles/1", NO, 204, NO),
            (rule, "olive", "GET", ldap, NO, 200, json!([{"member_role_id": null}])),
            (rule, "olive", "GET", saml, NO, 200, json!([{"member_role_id": null}])),
        ])
        .await;
    for (release, ldap_shows, saml_shows) in [
        (Release::new(16, 6), false, false),
        (Release::new(16, 7), false, true),
        (Release::new(17, 2), true, true),
    ] {
        let world = at(release, ServiceTier::Ultimate).await;
        let answer = world.call("olive", "POST", ldap, &of_ldap(40, NO)).await.body;
        assert_eq!(answer.get("member_role_id").is_some(), ldap_shows, "{rule} {release} {answer}");
        let made = world.call("olive", "POST", saml, &of_saml(40, NO)).await.body;
        assert_eq!(made.get("member_role_id").is_some(), saml_shows, "{rule} {release} {made}");
    }
}

#[tokio::test]
async fn a_service_without_saml_refuses_its_links() {
    let links = "/groups/acme/saml_group_links";
    for (on, token, status) in [(true, "olive", 200), (true, "mia", 401), (false, "olive", 401)] {
        let mut seed = usual_seed();
        seed["saml"] = on.into();
        let reply = World::from_seed(seed).await.get(token, links).await;
        assert_eq!(reply.status, status, "{}: {on} {token}", fact("saml-links"));
    }
}
