//! Random declarations against a random live state, all kinds together: after apply nothing is left
//! to do.

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value as Json, json};
use undrift::sandbox::Profile;

use crate::world::{self, World, project, seed};

const USERS: [&str; 4] = ["alice", "bob", "carol", "dave"];
pub(crate) const GROUPS: [&str; 2] = ["acme/leads", "acme/security"];

/// One of several values, or none.
fn optional(values: &[Json]) -> impl Strategy<Value = Option<Json>> + use<> {
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
        optional(&[json!("a"), json!("b"), json!(null)]),
        optional(&[json!("private"), json!("internal")]),
        optional(&[json!(["x", "y"]), json!([])]),
        optional(&[json!("ff"), json!("merge")]),
        optional(&booleans()),
        optional(&[
            json!({"enabled": true, "keep_n": 5, "name_regex": "^x"}),
            json!({"enabled": false, "name_regex": "^x"}),
        ]),
        optional(&[json!("enabled"), json!("private")]),
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

/// Some of `names`, each with an entry from `entry`.
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
        optional(&booleans()),
        optional(&booleans()),
        optional(&[json!("file"), json!("env_var")]),
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

/// No owners: the service keeps the last owner of a group, and the creator of a project.
fn member(user: &'static str) -> impl Strategy<Value = Json> {
    (
        prop::sample::select(vec!["guest", "reporter", "developer", "maintainer"]),
        optional(&[json!("2099-01-31"), json!(null)]),
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
        optional(&[json!("2099-01-31"), json!(null)]),
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
    (optional(&booleans()), optional(&booleans()), optional(&[json!("main"), json!(null)]))
        .prop_map(move |(push, issues, filter)| {
            mapping(vec![
                ("url", Some(url.into())),
                ("push_events", push),
                ("issues_events", issues),
                ("push_events_branch_filter", filter),
            ])
        })
}

/// Rows of a rule: a level, and some of those with access.
fn rows(members: &[Json], shares: &[Json]) -> impl Strategy<Value = Option<Json>> + use<> {
    let named = members.iter().map(|member| json!({"user": member["user"]}));
    let named = named.chain(shares.iter().map(|share| json!({"group": share["group"]})));
    let grantees: Vec<_> = named.collect();
    let level = prop::sample::select(vec!["no_access", "developer", "maintainer"]);
    let most = grantees.len();
    let some = prop::sample::subsequence(grantees, 0..=most);
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
    (rows(members, shares), rows(members, shares), optional(&booleans()), optional(&booleans()))
        .prop_map(move |(push, merge, force, owners)| {
            mapping(vec![
                ("name", Some(name.into())),
                ("allowed_to_push", push),
                ("allowed_to_merge", merge),
                ("allow_force_push", force),
                ("code_owner_approval_required", owners),
            ])
        })
}

fn push_rule() -> impl Strategy<Value = Json> {
    let rule = (optional(&[json!("^feat"), json!(null)]), 0..3_u32).prop_map(|(message, size)| {
        mapping(vec![("commit_message_regex", message), ("max_file_size", Some(size.into()))])
    });
    prop_oneof![Just(json!(null)), rule]
}

fn tag(
    name: &'static str,
    members: &[Json],
    shares: &[Json],
) -> impl Strategy<Value = Json> + use<> {
    rows(members, shares).prop_map(move |create| {
        mapping(vec![("name", Some(name.into())), ("allowed_to_create", create)])
    })
}

fn approvals() -> impl Strategy<Value = Json> {
    (optional(&booleans()), prop::sample::select(booleans())).prop_map(|(reset, author)| {
        mapping(vec![
            ("reset_approvals_on_push", reset),
            ("merge_requests_author_approval", Some(author)),
        ])
    })
}

fn approval_rule(
    name: &'static str,
    members: &[Json],
    shares: &[Json],
    branches: &[Json],
) -> impl Strategy<Value = Json> + use<> {
    let some = |entries: &[Json], field: &str| {
        let names: Vec<_> = entries.iter().map(|entry| entry[field].clone()).collect();
        let most = names.len();
        prop::option::of(prop::sample::subsequence(names, 0..=most).prop_map(Json::from))
    };
    let people = (some(members, "user"), some(shares, "group"));
    (0..3_u8, people, some(branches, "name"), optional(&booleans())).prop_map(
        move |(required, (users, groups), branches, all)| {
            let is_for_all = all == Some(true.into());
            mapping(vec![
                ("name", Some(name.into())),
                ("approvals_required", Some(required.into())),
                ("users", users),
                ("groups", groups),
                ("protected_branches", branches.filter(|_| !is_for_all)),
                ("applies_to_all_protected_branches", all),
            ])
        },
    )
}

fn label(name: &'static str) -> impl Strategy<Value = Json> {
    (prop::sample::select(vec!["#ff0000", "#00FF00"]), optional(&[json!("x"), json!(null)]))
        .prop_map(move |(color, description)| {
            mapping(vec![
                ("name", Some(name.into())),
                ("color", Some(color.into())),
                ("description", description),
            ])
        })
}

/// The declaration of a group, and the visibility of a project in it.
pub(crate) fn group() -> impl Strategy<Value = (Json, &'static str)> {
    let settings = (
        prop::sample::select(vec!["private", "internal", "public"]),
        prop::sample::select(vec!["private", "internal", "public"]),
        optional(&[json!("a"), json!(null)]),
        optional(&[json!("maintainer"), json!("developer")]),
        optional(&[json!(true), json!(false), json!(null)]),
    );
    let urls = ["https://a.example.org/x", "https://b.example.org"];
    (
        settings,
        entries(&["A@*", "A@prod/*", "B@*"], variable),
        entries(&USERS, member),
        entries(&GROUPS, share),
        entries(&["bug", "Bug"], label),
        entries(&urls, hook),
        push_rule(),
    )
        .prop_map(|(settings, variables, members, shares, labels, hooks, push_rule)| {
            let (visibility, inner, description, creation, devops) = settings;
            let rank =
                |word: &str| ["private", "internal", "public"].iter().position(|w| *w == word);
            let inner = if rank(inner) > rank(visibility) { visibility } else { inner };
            let settings = mapping(vec![
                ("visibility", Some(visibility.into())),
                ("description", description),
                ("project_creation_level", creation),
                ("auto_devops_enabled", devops),
            ]);
            let sections = json!({
                "settings": settings,
                "variables": variables,
                "members": members,
                "shares": shares,
                "labels": labels,
                "hooks": hooks,
                "push_rule": push_rule,
                "unlisted": {
                    "variables": "delete", "members": "delete", "shares": "delete",
                    "labels": "delete", "hooks": "delete",
                },
            });
            (sections, inner)
        })
}

/// The declaration of a project.
pub(crate) fn project_sections() -> impl Strategy<Value = Json> {
    let people = (entries(&USERS, member), entries(&GROUPS, share));
    let with_branches = people.prop_flat_map(|(members, shares)| {
        let of_branches = (members.clone(), shares.clone());
        let (of_tags, of_rules) = (of_branches.clone(), of_branches.clone());
        let branches = entries(&["main", "release/*"], move |name| {
            branch(name, &of_branches.0, &of_branches.1)
        });
        let tags = entries(&["v*", "w*"], move |name| tag(name, &of_tags.0, &of_tags.1));
        let with_rules = branches.prop_flat_map(move |branches| {
            let (members, shares, named) =
                (of_rules.0.clone(), of_rules.1.clone(), branches.clone());
            let rules =
                entries(&["A", "B"], move |name| approval_rule(name, &members, &shares, &named));
            (Just(branches), rules)
        });
        (Just(members), Just(shares), with_rules, tags)
    });
    let approving = (approvals(), entries(&["bug", "Bug"], label));
    let keys = ["A@*", "A@prod/*", "B@*"];
    let urls = ["https://a.example.org/x", "https://B.example.org", "https://c.example.org/?t=1"];
    let hooks = entries(&urls, hook);
    (settings(), entries(&keys, variable), with_branches, hooks, push_rule(), approving).prop_map(
        |(settings, variables, people, hooks, push_rule, (approvals, labels))| {
            let (members, shares, (branches, rules), tags) = people;
            json!({
                "settings": settings,
                "variables": variables,
                "members": members,
                "shares": shares,
                "protected_branches": branches,
                "protected_tags": tags,
                "approvals": approvals,
                "approval_rules": rules,
                "labels": labels,
                "hooks": hooks,
                "push_rule": push_rule,
                "unlisted": {
                    "variables": "delete", "members": "delete", "shares": "delete",
                    "protected_branches": "delete", "protected_tags": "delete",
                    "approval_rules": "delete", "labels": "delete", "hooks": "delete",
                },
            })
        },
    )
}

/// The documents of a group with a project in it, and of another project.
pub(crate) fn documents(
    (group_sections, project_visibility): (Json, &str),
    sections: Json,
) -> Vec<Json> {
    let group = world::group("acme/team", group_sections);
    let site = project("acme/team/site", json!({"settings": {"visibility": project_visibility}}));
    let mut all = vec![site, group, project("acme/shop", sections)];
    for document in &mut all {
        document["create"] = true.into();
    }
    all
}

/// Runs a property this many times, or half of that in the usual run; `UNDRIFT_CASES=10` makes it ten
/// times as many.
pub(crate) fn cases(cases: u32) -> TestRunner {
    let cases = if crate::sample::plays_all() { cases } else { cases.div_ceil(2) };
    let times = std::env::var("UNDRIFT_CASES").map_or(1, |times| times.parse().unwrap());
    TestRunner::new(ProptestConfig {
        cases: cases * times,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// A service with the groups in random documents, where guards acknowledge everything.
pub(crate) async fn world() -> World {
    let mut seed = seed(&[]);
    for path in GROUPS {
        seed["groups"].as_array_mut().unwrap().push(json!({"path": path}));
    }
    let mut world = World::new(Profile::default(), seed).await;
    world.tweak = |settings| settings.guard_limits.count = usize::MAX;
    world.acknowledged =
        vec!["removals:**", "visibility:**", "protection:**", "last-owner:**", "own-access:**"];
    world
}

#[test]
fn apply_leaves_nothing_to_do_for_any_declaration_and_live_state() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states = (group(), project_sections(), group(), project_sections());
    cases(24)
        .run(&states, |(old_group, old, new_group, new)| {
            runtime.block_on(async {
                let world = world().await;
                world.declare(&documents(old_group.clone(), old.clone()));
                world.converge("from nothing").await;
                world.declare(&documents(new_group.clone(), new.clone()));
                world.converge("from something else").await;
            });
            Ok(())
        })
        .unwrap();
}
