//! Random declarations against a random state of the service, all kinds together: after apply there
//! is nothing left to do.

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value as Json, json};
use undrift::sandbox::Profile;

use crate::world::{World, project, seed};

const USERS: [&str; 4] = ["alice", "bob", "carol", "dave"];
const GROUPS: [&str; 2] = ["acme/leads", "acme/security"];

/// One of several values, or none.
fn maybe(values: &[Json]) -> impl Strategy<Value = Option<Json>> + use<> {
    prop::option::of(prop::sample::select(values.to_vec()))
}

/// A mapping of the fields that have a value.
fn mapping(fields: Vec<(&'static str, Option<Json>)>) -> Json {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn booleans() -> Vec<Json> {
    vec![true.into(), false.into()]
}

fn settings() -> impl Strategy<Value = Json> {
    (
        maybe(&[json!("a"), json!("b"), json!(null)]),
        maybe(&[json!("private"), json!("internal")]),
        maybe(&[json!(["x", "y"]), json!([])]),
        maybe(&[json!("ff"), json!("merge")]),
        maybe(&booleans()),
        maybe(&[json!({"enabled": true, "keep_n": 5}), json!({"enabled": false})]),
        maybe(&[json!("enabled"), json!("private")]),
    )
        .prop_map(|(description, visibility, topics, method, lfs, policy, wiki)| {
            mapping(vec![
                ("description", description),
                ("visibility", visibility),
                ("topics", topics),
                ("merge_method", method),
                ("lfs_enabled", lfs),
                ("container_expiration_policy", policy),
                ("wiki_access_level", wiki),
            ])
        })
}

/// Some of `names`, each with an entry that `entry` makes.
fn entries<S: Strategy<Value = Json> + 'static, F: Fn(&'static str) -> S>(
    names: &[&'static str],
    entry: F,
) -> impl Strategy<Value = Vec<Json>> + use<S, F> {
    let each: Vec<_> = names.iter().map(|name| prop::option::of(entry(name)).boxed()).collect();
    each.prop_map(|entries: Vec<Option<Json>>| entries.into_iter().flatten().collect())
}

fn variable(key: &'static str) -> impl Strategy<Value = Json> {
    let (key, scope) = key.split_once('@').unwrap();
    (
        prop::sample::select(vec!["first-value", "second-value"]),
        maybe(&booleans()),
        maybe(&booleans()),
        maybe(&[json!("file"), json!("env_var")]),
    )
        .prop_map(move |(value, masked, protected, kind)| {
            mapping(vec![
                ("key", Some(key.into())),
                ("environment_scope", Some(scope.into())),
                ("value", Some(value.into())),
                ("masked", masked),
                ("protected", protected),
                ("variable_type", kind),
            ])
        })
}

/// No owners: the service keeps the last one of a group, and of a project whoever created it.
fn member(user: &'static str) -> impl Strategy<Value = Json> {
    (
        prop::sample::select(vec!["guest", "reporter", "developer", "maintainer"]),
        maybe(&[json!("2099-01-31"), json!(null)]),
    )
        .prop_map(move |(level, expires_at)| {
            mapping(vec![
                ("user", Some(user.into())),
                ("access_level", Some(level.into())),
                ("expires_at", expires_at),
            ])
        })
}

fn share(group: &'static str) -> impl Strategy<Value = Json> {
    (
        prop::sample::select(vec!["developer", "maintainer"]),
        maybe(&[json!("2099-01-31"), json!(null)]),
    )
        .prop_map(move |(level, expires_at)| {
            mapping(vec![
                ("group", Some(group.into())),
                ("group_access", Some(level.into())),
                ("expires_at", expires_at),
            ])
        })
}

fn hook(url: &'static str) -> impl Strategy<Value = Json> {
    (maybe(&booleans()), maybe(&booleans()), maybe(&[json!("main"), json!(null)])).prop_map(
        move |(push, issues, filter)| {
            mapping(vec![
                ("url", Some(url.into())),
                ("push_events", push),
                ("issues_events", issues),
                ("push_events_branch_filter", filter),
            ])
        },
    )
}

/// Rows of a rule: a level, and some of those who have access.
fn rows(members: &[Json], shares: &[Json]) -> impl Strategy<Value = Option<Json>> + use<> {
    let named = members.iter().map(|member| json!({"user": member["user"]}));
    let named = named.chain(shares.iter().map(|share| json!({"group": share["group"]})));
    let named: Vec<_> = named.collect();
    let level = prop::sample::select(vec!["no_access", "developer", "maintainer"]);
    let most = named.len();
    let some = prop::sample::subsequence(named, 0..=most);
    prop::option::of((level, some).prop_map(|(level, some)| {
        let level = json!({"access_level": level});
        std::iter::once(level).chain(some).collect()
    }))
}

fn branch(
    name: &'static str,
    members: &[Json],
    shares: &[Json],
) -> impl Strategy<Value = Json> + use<> {
    (rows(members, shares), rows(members, shares), maybe(&booleans()), maybe(&booleans())).prop_map(
        move |(push, merge, force, owners)| {
            mapping(vec![
                ("name", Some(name.into())),
                ("allowed_to_push", push),
                ("allowed_to_merge", merge),
                ("allow_force_push", force),
                ("code_owner_approval_required", owners),
            ])
        },
    )
}

fn push_rule() -> impl Strategy<Value = Json> {
    let rule = (maybe(&[json!("^feat"), json!(null)]), 0..3_u32).prop_map(|(message, size)| {
        mapping(vec![("commit_message_regex", message), ("max_file_size", Some(size.into()))])
    });
    prop_oneof![Just(json!(null)), rule]
}

/// What is declared of a project.
fn declared() -> impl Strategy<Value = Json> {
    let people = (entries(&USERS, member), entries(&GROUPS, share));
    let with_branches = people.prop_flat_map(|(members, shares)| {
        let (people, groups) = (members.clone(), shares.clone());
        let branches = entries(&["main", "release/*"], move |name| branch(name, &people, &groups));
        (Just(members), Just(shares), branches)
    });
    let keys = ["A@*", "A@prod/*", "B@*"];
    let urls = ["https://a.example.org/x", "https://B.example.org", "https://c.example.org/?t=1"];
    (settings(), entries(&keys, variable), with_branches, entries(&urls, hook), push_rule())
        .prop_map(|(settings, variables, (members, shares, branches), hooks, push_rule)| {
            json!({
                "settings": settings,
                "variables": variables,
                "members": members,
                "shares": shares,
                "protected_branches": branches,
                "hooks": hooks,
                "push_rule": push_rule,
                "unlisted": {
                    "variables": "delete", "members": "delete", "shares": "delete",
                    "protected_branches": "delete", "hooks": "delete",
                },
            })
        })
}

/// The documents of a group and a project.
fn documents(members: &[Json], project_sections: Json) -> Vec<Json> {
    let group = json!({
        "kind": "Group", "path": "acme/team", "members": members, "unlisted": {"members": "delete"},
    });
    let mut project = project("acme/shop", project_sections);
    project["create"] = true.into();
    vec![group, project]
}

#[test]
fn whatever_is_declared_and_whatever_is_there_apply_leaves_nothing_to_do() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states = (entries(&USERS, member), declared(), entries(&USERS, member), declared());
    let config = ProptestConfig {
        cases: 48,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config)
        .run(&states, |(old_people, old, people, new)| {
            runtime.block_on(async {
                let mut seed = seed(&[]);
                for path in ["acme/leads", "acme/security", "acme/team"] {
                    seed["groups"].as_array_mut().unwrap().push(json!({"path": path}));
                }
                let mut world = World::new(Profile::default(), seed).await;
                world.tweak = |settings| settings.limits.count = usize::MAX;
                world.acknowledged = vec![
                    "removals:**",
                    "visibility:**",
                    "protection:**",
                    "last-owner:**",
                    "own-access:**",
                ];
                world.declare(&documents(&old_people, old.clone()));
                world.converge("from nothing").await;
                world.declare(&documents(&people, new.clone()));
                world.converge("from something else").await;
            });
            Ok(())
        })
        .unwrap();
}
