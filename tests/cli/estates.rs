//! Estates as people write them by hand: what an export of them is compared with.
#![cfg(feature = "sandbox")]

use std::fmt::Write as _;

/// An estate: its name, the paths of its top-level groups, and its files with their texts.
pub(crate) type Estate = (&'static str, &'static str, Vec<(&'static str, String)>);

/// The documents with these numbers.
fn documents(numbers: impl IntoIterator<Item = usize>, text: impl Fn(usize) -> String) -> String {
    let texts: Vec<_> = numbers.into_iter().map(text).collect();
    texts.join("---\n")
}

/// The files of an estate with groups.
fn files(
    rules: &str,
    groups: String,
    projects: String,
    seed: String,
) -> Vec<(&'static str, String)> {
    vec![
        ("rules.yaml", rules.to_owned()),
        ("groups.yaml", groups),
        ("projects.yaml", projects),
        ("sandbox.yaml", seed),
    ]
}

/// Seventeen projects alike.
fn similar_projects() -> Estate {
    let rules = "\
kind: Group
path: acme/tools
create: true
settings: {visibility: internal}
---
kind: Profile
name: tool
settings:
  visibility: internal
  merge_method: ff
  only_allow_merge_if_pipeline_succeeds: true
  squash_option: always
protected_branches:
  - {name: main, allowed_to_push: [{access_level: no_access}], allowed_to_merge: [{access_level: maintainer}]}
labels:
  - {name: bug, color: '#ff0000'}
  - {name: feature, color: '#00ff00'}
";
    let tools = documents(0..17, |index| {
        format!("kind: Project\npath: acme/tools/t{index:02}\ncreate: true\nuses: [tool]\n")
    });
    let seed = "groups: [{path: acme, visibility: internal}]\n".to_owned();
    (
        "alike",
        "acme",
        vec![("rules.yaml", rules.to_owned()), ("tools.yaml", tools), ("sandbox.yaml", seed)],
    )
}

/// Eleven badges in some of many projects.
fn badges() -> Estate {
    let mut rules = "kind: Profile\nname: badged\nbadges:\n".to_owned();
    for at in 0..11 {
        let page = "https://ci.example.org";
        writeln!(
            rules,
            "  - {{name: b{at}, link_url: '{page}/{at}', image_url: '{page}/{at}.svg'}}"
        )
        .unwrap();
    }
    rules += "\
---
kind: Defaults
match: {path: acme/**}
settings: {visibility: internal, merge_method: ff, lfs_enabled: false, wiki_access_level: disabled}
variables:
  - {key: REGION, value: eu}
";
    let services = documents(0..24, |index| {
        let uses = if index % 8 < 5 { "uses: [badged]\n" } else { "" };
        let settings =
            format!("settings: {{topics: [team-{}], description: Number {index}}}\n", index % 3);
        format!("kind: Project\npath: acme/s{index:02}\ncreate: true\n{uses}{settings}")
    });
    let seed = "groups: [{path: acme, visibility: internal}]\n".to_owned();
    (
        "badges",
        "acme",
        vec![("rules.yaml", rules), ("services.yaml", services), ("sandbox.yaml", seed)],
    )
}

/// Projects of three types in two top-level groups.
fn project_types() -> Estate {
    let rules = "\
kind: Profile
name: service
settings: {merge_method: ff, squash_option: default_on, only_allow_merge_if_pipeline_succeeds: true}
protected_branches:
  - {name: main, allowed_to_push: [{access_level: no_access}], allowed_to_merge: [{access_level: developer}]}
  - {name: release/*, allowed_to_push: [{access_level: maintainer}], allowed_to_merge: [{access_level: maintainer}]}
protected_tags:
  - {name: v*, allowed_to_create: [{access_level: maintainer}]}
variables:
  - {key: DEPLOY, value: 'true'}
  - {key: STAGE, value: prod, environment_scope: prod/*}
---
kind: Profile
name: library
settings: {merge_method: rebase_merge, container_registry_access_level: disabled}
protected_branches:
  - {name: main, allowed_to_push: [{access_level: maintainer}], allowed_to_merge: [{access_level: developer}]}
labels:
  - {name: breaking, color: '#ff0000'}
  - {name: minor, color: '#00ff00'}
  - {name: patch, color: '#0000ff'}
---
kind: Profile
name: docs
settings: {merge_method: merge, builds_access_level: disabled, container_registry_access_level: disabled}
---
kind: Defaults
match: {path: '**'}
settings: {visibility: internal, request_access_enabled: false}
---
kind: Defaults
match: {path: '**'}
for: Group
settings: {visibility: internal, project_creation_level: maintainer, request_access_enabled: false}
";
    let teams = ["core", "web", "data"];
    let members = "members:\n  - {user: alice, access_level: owner}\n  - {user: bob, access_level: maintainer}\n";
    let groups = documents(0..8, |at| {
        let top = ["north", "south"][at / 4];
        match at % 4 {
            0 => format!("kind: Group\npath: {top}\n{members}"),
            team => format!("kind: Group\npath: {top}/{}\ncreate: true\n", teams[team - 1]),
        }
    });
    let projects = documents(0..48, |at| {
        let profile =
            ["service", "library", "docs", "service"][if at % 5 > 0 { at * 7 % 4 } else { 0 }];
        let (top, team) = (["north", "south"][at % 2], teams[at % 3]);
        let settings = if at % 4 > 0 {
            String::new()
        } else {
            format!("settings: {{description: Number {at}}}\n")
        };
        format!(
            "kind: Project\npath: {top}/{team}/{profile}-{at:02}\ncreate: true\nuses: [{profile}]\n{settings}"
        )
    });
    let owner = "visibility: internal, members: [{user: alice, access_level: owner}]";
    let seed = format!(
        "users: [{{username: alice}}, {{username: bob}}]\ngroups: [{{path: north, {owner}}}, {{path: south, {owner}}}]\n"
    );
    ("types", "north south", files(rules, groups, projects, seed))
}

/// Settings for four top-level groups.
fn top_level_groups() -> Estate {
    let rules = "\
kind: Defaults
match: {path: '**'}
settings:
  visibility: internal
  merge_method: ff
  auto_devops_enabled: false
  issues_access_level: disabled
  snippets_access_level: disabled
  only_allow_merge_if_all_discussions_are_resolved: true
protected_branches:
  - {name: main, allowed_to_push: [{access_level: no_access}]}
hooks:
  - {name: chat, url: https://chat.example.org/hook, push_events: true}
---
kind: Defaults
match: {path: '**'}
for: Group
settings: {visibility: internal, share_with_group_lock: true, subgroup_creation_level: owner}
";
    let tops = ["alpha", "beta", "gamma", "delta"];
    let groups = documents(0..4, |index| {
        let top = tops[index];
        format!("kind: Group\npath: {top}\nlabels:\n  - {{name: {top}, color: '#112233'}}\n")
    });
    let projects = documents(0..16, |at| {
        let top = tops[at / 4];
        let variables = format!("variables:\n  - {{key: NAME, value: {top}-{at}}}\n");
        let variables = if at % 4 < 2 { variables } else { String::new() };
        format!("kind: Project\npath: {top}/p{}\ncreate: true\n{variables}", at % 4)
    });
    let seeds = tops.map(|top| format!("{{path: {top}, visibility: internal}}")).join(", ");
    let seed = format!("release: '18.2'\ngroups: [{seeds}]\n");
    ("tops", "alpha beta gamma delta", files(rules, groups, projects, seed))
}

/// All estates.
pub(crate) fn estates() -> [Estate; 4] {
    [similar_projects(), badges(), project_types(), top_level_groups()]
}
