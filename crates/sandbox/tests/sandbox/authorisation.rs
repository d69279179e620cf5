//! Every operation, by every kind of caller, in their own, a foreign and a public project or group.

use serde_json::{Value, json};
use undrift_sandbox::{Profile, SandboxConfig};

use super::client::{ROOT, Reply, World};
use super::facts::fact;
use super::operations::{below_an_id, operations};

/// The callers; each but the first is a user whose token is the name.
const CALLERS: [&str; 9] =
    ["", "stranger", "guest", "reporter", "developer", "maintainer", "owner", ROOT, "blocked"];

/// The places of a call. A caller has the role of their name only in `own`.
const SCOPES: [&str; 3] = ["own", "foreign", "open"];

/// The expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The call is allowed; its parameters may still be refused.
    Passes,
    /// 400 for operations on a hierarchy.
    Bad,
    Unauthorized,
    Forbidden,
    /// 404 with the text for a missing group or project.
    Unseen,
}

/// The expected answer to `caller` for an operation that needs `need`, in `place`.
fn expected(need: &str, caller: &str, place: &str) -> Verdict {
    let need_rank = if need == "keeper" { "maintainer" } else { need };
    let rank = |name: &str| CALLERS.iter().position(|known| *known == name).expect("a role");
    let seen =
        place == "open" || caller == ROOT || (place == "own" && rank(caller) >= rank("guest"));
    match caller {
        "blocked" => Verdict::Forbidden,
        "" if !["anyone", "coder", "keeper"].contains(&need) => Verdict::Unauthorized,
        _ if !seen => Verdict::Unseen,
        _ if need == "asker" && (place == "own" || caller == ROOT) && caller != "stranger" => {
            Verdict::Forbidden
        }
        ROOT => Verdict::Passes,
        _ if need == "asker" => Verdict::Passes,
        _ if need == "anyone" || need == "user" => Verdict::Passes,
        _ if ["opener", "coder"].contains(&need)
            && (place == "open" || rank(caller) >= rank("reporter")) =>
        {
            Verdict::Passes
        }
        _ if ["opener", "coder"].contains(&need) => Verdict::Forbidden,
        _ if need == "mirrorer" && (place != "own" || rank(caller) < rank("maintainer")) => {
            Verdict::Unauthorized
        }
        _ if need == "mirrorer" => Verdict::Passes,
        _ if need == "root" && place == "own" && caller == "owner" => Verdict::Passes,
        _ if need == "root" => Verdict::Bad,
        _ if need != "admin" && place == "own" && rank(caller) >= rank(need_rank) => {
            Verdict::Passes
        }
        _ => Verdict::Forbidden,
    }
}

fn verdict(got: &Reply) -> Verdict {
    let unseen =
        ["404 Project Not Found", "404 Group Not Found"].map(|text| json!({"message": text}));
    match got.status {
        401 => Verdict::Unauthorized,
        403 => Verdict::Forbidden,
        404 if unseen.contains(&got.body) => Verdict::Unseen,
        400 if got.body == json!({"message": "400 Bad request"}) => Verdict::Bad,
        _ => Verdict::Passes,
    }
}

async fn world() -> World {
    let roles = ["guest", "reporter", "developer", "maintainer", "owner"];
    let users: Vec<Value> = CALLERS[1..]
        .iter()
        .filter(|name| **name != ROOT)
        .map(|name| {
            json!({
                "username": name, "token": name, "state": if *name == "blocked" { "blocked" } else { "active" },
            })
        })
        .collect();
    let members: Vec<Value> =
        roles.iter().map(|role| json!({"user": role, "access_level": role})).collect();
    let seed = json!({
        "tier": "ultimate",
        "users": users,
        "groups": [
            {"path": "own", "members": members},
            {"path": "foreign"},
            {"path": "open", "visibility": "public"},
        ],
        "projects": [
            {"path": "own/thing"},
            {"path": "foreign/thing"},
            {"path": "open/thing", "settings": {"visibility": "public"}},
        ],
    });
    World::seeded(
        seed,
        SandboxConfig {
            // A deleted project still exists for the next call.
            profile: Profile { deletion_delay: Some(7), ..Profile::default() },
            ..SandboxConfig::default()
        },
    )
    .await
}

#[tokio::test]
async fn each_role_is_allowed_exactly_its_operations() {
    let mut walked = 0;
    for caller in CALLERS {
        let world = world().await;
        for place in SCOPES {
            for (need, method, path) in operations() {
                let path = match path.split_once("/:id") {
                    Some(("/projects", rest)) => format!("/projects/{place}%2Fthing{rest}"),
                    Some(("/groups", rest)) => format!("/groups/{place}{rest}"),
                    _ => continue,
                };
                // Nothing has these ids, so no call removes something that a later one needs.
                // Another project in a call is one that the caller sees.
                let other = if caller == ROOT || place == "open" { "3" } else { "1" };
                let path = path
                    .replace(":project_id", other)
                    .replace(":forked_from_id", other)
                    .replace(":key", "K");
                let path: Vec<&str> = path
                    .split('/')
                    .map(|part| if part.starts_with(':') { "999" } else { part })
                    .collect();
                let path = path.join("/");
                // The parameters of a project's edit are checked before the caller.
                let is_edit = method == "PUT" && path.ends_with("%2Fthing");
                let body = if is_edit { json!({"description": "x"}) } else { Value::Null };
                let reply = world.call(caller, method, &path, &body).await;
                let wanted = expected(need, caller, place);
                assert_eq!(
                    verdict(&reply),
                    wanted,
                    "{}\n{caller:?} {method} {path}: {} {}",
                    fact("role"),
                    reply.status,
                    reply.body
                );
                walked += 1;
            }
        }
    }
    assert_eq!(walked, CALLERS.len() * SCOPES.len() * below_an_id());
}

#[tokio::test]
async fn operations_outside_projects_check_the_role() {
    let world = world().await;
    for (need, method, path) in
        operations().into_iter().filter(|(_, _, path)| !path.contains("/:id"))
    {
        for caller in CALLERS {
            let path = path.replace(":user_id", "1");
            let reply = world.call(caller, method, &path, &Value::Null).await;
            // Without its flag, nobody can import gists.
            let wanted = match caller {
                "blocked" => Verdict::Forbidden,
                "" if need != "anyone" => Verdict::Unauthorized,
                _ if need == "admin" && caller != ROOT => Verdict::Forbidden,
                _ => Verdict::Passes,
            };
            assert_eq!(
                verdict(&reply),
                wanted,
                "{}\n{caller:?} {method} {path}: {} {}",
                fact("authentication"),
                reply.status,
                reply.body
            );
        }
    }
}
