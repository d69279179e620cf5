//! `undrift explain`: declarations, fields and codes.
#![cfg(feature = "sandbox")]

use crate::harness::Workspace;

const RULES: &str = "kind: Defaults
match: {path: acme/**}
settings:
  merge_method: ff
  topics: [acme]
  lfs_enabled: true
  container_expiration_policy: {enabled: true, keep_n: 5, name_regex: '^x'}
variables:
  - {key: LEVEL, value: info}
---
kind: Profile
name: service
settings: {topics: {add: [service]}}
variables:
  - {key: TOKEN, value: {env: SHOP_TOKEN}, masked: true}
";

const SHOP: &str = "kind: Project
path: acme/shop
uses: [service]
create: true
settings: {description: What we sell, merge_method: merge}
variables:
  - {key: LEVEL, value: debug}
  - {key: PIN, value: canary-in-git, masked: true}
";

const SEED: &str = "groups: [{path: acme, members: [{user: root, access_level: owner}]}]
projects:
  - path: acme/shop
    settings: {description: What we sell, merge_method: ff, topics: [acme, service], container_expiration_policy_attributes: {enabled: false, keep_n: 5}}
    variables:
      - {key: LEVEL, value: canary-live}
";

fn shop() -> Workspace {
    Workspace::new()
        .file("rules.yaml", RULES)
        .file("shop.yaml", SHOP)
        .file("sandbox.yaml", SEED)
        .file("sandbox.env", "SHOP_TOKEN='canary-0123456789'\n")
}

fn run_all(place: &Workspace, commands: &[&str]) -> String {
    let story: Vec<_> = commands.iter().map(|arguments| place.run(arguments)).collect();
    let story = story.join("\n");
    assert!(!story.contains("canary"), "{story}");
    story
}

#[test]
fn merged_layers_are_shown_with_their_places() {
    let commands = [
        "show --effective acme/shop",
        "show --effective acme/shpo",
        "show --effective acme/** rules.yaml",
        "show",
    ];
    insta::assert_snapshot!(run_all(&shop(), &commands));
}

#[test]
fn an_address_is_explained_without_a_service() {
    let commands = [
        "explain acme/shop",
        "explain acme/shop#settings",
        "explain acme/shop#settings/merge_method",
        "explain ACME/shop#settings/topics",
        "explain acme/shop#variables",
        "explain acme/shop#variables/TOKEN@*",
        "explain acme/shop#variables/PIN@*/value",
        "explain acme/shop#create",
        "explain acme/shpo#settings",
        "explain acme/shop#hooks",
        "explain acme/shop#settings/merge_mehtod",
        "explain acme/shop#variables/TOKEM@*",
    ];
    insta::assert_snapshot!(run_all(&shop(), &commands));
}

#[test]
fn an_address_is_explained_with_the_live_state() {
    let commands = [
        "explain acme/shop#settings/merge_method --sandbox",
        "explain acme/shop#settings/topics --sandbox",
        "explain acme/shop#settings/lfs_enabled --sandbox",
        "explain acme/shop#settings/container_expiration_policy.keep_n --sandbox",
        "explain acme/shop#settings/container_expiration_policy.cadence --sandbox",
        "explain acme/shop#variables/LEVEL@* --sandbox",
        "explain acme/shop#variables/TOKEN@*/value --sandbox",
    ];
    insta::assert_snapshot!(run_all(&shop(), &commands));
}

#[test]
fn fields_and_codes_are_explained() {
    let commands = [
        "explain settings.merge_method",
        "explain masked",
        "explain settings.issues_enabled",
        "explain archived",
        "explain settings.merge_mehtod",
        "explain description",
        "explain masked-valu",
        "explain whatever-this-is",
    ];
    insta::assert_snapshot!(run_all(&Workspace::new(), &commands));
}

#[test]
fn keys_of_the_configuration_guards_and_exit_codes_are_explained() {
    let place = shop();
    for (what, told) in [
        ("guards", "guards, in `undrift.yaml`"),
        ("guards.removals", "guards.removals, in `undrift.yaml`"),
        ("service.tier", "service.tier, in `undrift.yaml`"),
        ("last-owner", "last-owner, a guard: "),
        ("last-owner", "loses its last owner"),
        ("4", "  4  blocked by a guard\n"),
        ("exit-code-4", "  4  blocked by a guard\n"),
        ("Exit4", "  4  blocked by a guard\n"),
        ("143", "  130, 143  interrupted"),
    ] {
        let said = place.run(&format!("explain {what}"));
        assert!(said.contains(told) && said.contains("exit code 0"), "{said}");
    }
    for (what, near) in [
        ("merge_mehtod", "did you mean `merge_method`?"),
        ("last-onwer", "did you mean `last-owner`?"),
        ("gaurds", "did you mean `guards`?"),
        ("settings.merge_mehtod", "did you mean `settings.merge_method`?"),
        ("settings.lfs", "did you mean `settings.lfs_enabled`?"),
    ] {
        let said = place.run(&format!("explain {what}"));
        assert!(said.contains(near) && said.contains("exit code 3"), "{said}");
    }
    assert!(place.run("explain 9").contains("exit code 3"));
}

#[test]
fn a_wrong_address_gets_a_suggestion_from_all_sections_and_fields() {
    let place = Workspace::new()
        .file("shop.yaml", "kind: Project\npath: acme/shop\nsettings: {merge_method: ff}\n")
        .file("sandbox.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n");
    let field = "did you mean `acme/shop#settings/merge_method`?";
    let whole = "write `acme/shop#settings`: `merge_method` is a field, and only whole";
    let variables = "did you mean `acme/shop#variables`?";
    for (command, help) in [
        ("explain acme/shop/settings/merge_method", field),
        ("explain acme/shop#settings.merge_method", field),
        ("explain acme/shop#merge_method", field),
        ("explain acme/shop#variable", variables),
        ("explain acme/shop#variables", "`acme/shop` declares `settings`"),
        ("absorb --sandbox acme/shop#merge_method", whole),
        (
            "plan --sandbox --only acme/shop#settings/merge_method",
            "did you mean `acme/shop#settings`?",
        ),
        ("plan --sandbox --only acme/shop/variables", variables),
        ("plan --sandbox --only acme/shop:variables/A", "did you mean `acme/shop#variables/A`?"),
        ("plan --sandbox --only acme/*#variable", "did you mean `acme/*#variables`?"),
        ("plan --sandbox --exclude acme/shop#variables", "`acme/shop` declares `settings`"),
    ] {
        let output = place.run(command);
        assert!(output.contains(help) && output.contains("exit code 3"), "{output}");
    }
}
