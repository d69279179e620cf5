//! `undrift absorb`: its output, its edits, and its refusals.
#![cfg(feature = "sandbox")]

use crate::harness::Workspace;

const SHOP: &str = "\
# What everybody has.
kind: Defaults
match: {path: acme/*}
settings: {merge_method: ff}
variables:
  - {key: LEVEL, value: '1'}
---
kind: Project
path: acme/shop
create: true
settings:
  description: A shop  # for people
variables:
  - {key: SECRET, value: canary-7f3a9c21, masked: true}
";

/// A place in which `acme/shop` matches its manifest.
fn shop() -> Workspace {
    let place = Workspace::new()
        .file("m/shop.yaml", SHOP)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nusers: [{username: alice}]\n");
    let applied = place.output("apply m --sandbox=s.db --yes");
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    place
}

/// Changes something behind undrift's back.
fn call(place: &Workspace, what: &str) {
    let called = place.output(&format!("call {what} --sandbox=s.db --yes"));
    assert!(called.status.success(), "{}", String::from_utf8_lossy(&called.stderr));
}

fn drifted_place() -> Workspace {
    let place = shop();
    call(&place, "project-edit id=acme/shop description=Shoes merge_method=merge");
    call(&place, "variable-create id=acme/shop key=NEW value=9");
    call(&place, "variable-delete id=acme/shop key=LEVEL");
    place
}

fn read_manifest(place: &Workspace) -> String {
    std::fs::read_to_string(place.path().join("m/shop.yaml")).unwrap()
}

#[test]
fn drift_is_shown_as_an_edit_and_then_written() {
    let place = drifted_place();
    let absorb = "absorb acme/shop acme/shop#variables/NEW@* -d m --sandbox=s.db";
    insta::assert_snapshot!(place.run(absorb));
    assert_eq!(read_manifest(&place), SHOP, "nothing is written unless that is asked for");
    let mut output = place.run(&format!("{absorb} --write"));
    output += &place.run(&format!("{absorb} --write"));
    output += &place.run("plan m --sandbox=s.db");
    insta::assert_snapshot!(output);
    insta::assert_snapshot!(read_manifest(&place));
    let hidden = std::fs::read_dir(place.path().join("m")).unwrap();
    let mut names: Vec<_> =
        hidden.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["sandbox.yaml", "shop.yaml"]);
}

#[test]
fn an_edit_of_a_text_of_several_lines_is_a_valid_patch() {
    let place = shop();
    let block = "description: |\n    A shop\n    of shoes\n  topics: [x]\n  merge_method: ff";
    place.write("m/shop.yaml", &SHOP.replace("description: A shop  # for people", block));
    let absorb = "absorb acme/shop#settings/description -d m --sandbox=s.db";
    insta::assert_snapshot!(place.run(absorb));
}

#[test]
fn declarations_in_rules_are_edited_at_their_source() {
    let place = drifted_place();
    let other = "kind: Project\npath: acme/other\n";
    place.write("m/other.yaml", other);
    let absorb = "absorb acme/shop#settings/merge_method -d m --sandbox=s.db --at-source --write";
    insta::assert_snapshot!(place.run(absorb));
    assert_eq!(read_manifest(&place), SHOP.replace("merge_method: ff", "merge_method: merge"));
}

/// A rule that is edited also counts for what is brought in, which only the service knows.
#[test]
fn a_rule_that_is_edited_may_also_change_what_rules_include() {
    let place = drifted_place();
    let include = "kind: Defaults\nmatch: {path: acme/**}\nundeclared: include\n\
        settings: {squash_option: always}\n";
    place.write("m/include.yaml", include);
    for (absorb, others) in [
        ("acme/shop#settings/merge_method --at-source", true),
        ("acme/shop#settings/description --at-source", false),
        ("acme/shop#settings/merge_method", false),
    ] {
        let output = place.run(&format!("absorb {absorb} -d m --sandbox=s.db"));
        let is_said = output.contains("groups and projects that a rule includes may change too\n");
        assert!(is_said == others && output.contains("exit code 0"), "{output}");
    }
}

#[test]
fn refused_differences_are_named_and_nothing_is_written() {
    let place = shop();
    call(&place, "project-edit id=acme/shop description=Shoes");
    call(&place, "variable-update id=acme/shop key=SECRET value=canary-7f3a9c22");
    let mut output = String::new();
    for selected in [
        "acme/shop",
        "acme/shoop",
        "acme/shop#hooks",
        "acme/shop#variables/OLD@*",
        "acme/shop#variables/LEVEL@*",
        "",
    ] {
        output += &place.run(&format!("absorb {selected} -d m --sandbox=s.db --write"));
    }
    assert!(!output.contains("canary"), "{output}");
    assert_eq!(read_manifest(&place), SHOP);
    insta::assert_snapshot!(output);
}

/// An edit by hand would write the secret into the manifest.
#[test]
fn a_value_behind_a_reference_is_changed_where_it_is_kept() {
    let text = SHOP.to_owned() + "  - {key: TOKEN, value: {env: TOKEN}}\n";
    let place = shop().file("m/shop.yaml", &text).env("TOKEN", "canary-7f3a9c23");
    let apply = place.run("apply m --sandbox=s.db --yes");
    assert!(apply.ends_with("---- exit code 0\n"), "{apply}");
    call(&place, "variable-update id=acme/shop key=TOKEN value=canary-7f3a9c24");
    let said = place.run("absorb acme/shop#variables/TOKEN@* -d m --sandbox=s.db --write");
    let help = "help: change the variable or file that the reference names, or send it again with `undrift apply`\n";
    assert!(said.contains(help) && said.ends_with("---- exit code 3\n"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_manifest_keeps_its_permissions_and_a_link_is_not_followed() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = drifted_place();
    let manifest = place.path().join("m/shop.yaml");
    std::fs::set_permissions(&manifest, std::fs::Permissions::from_mode(0o640)).unwrap();
    let absorb = "absorb acme/shop#settings --sandbox=s.db --write";
    assert!(place.run(&format!("{absorb} -d m")).contains("exit code 0"));
    assert_eq!(std::fs::metadata(&manifest).unwrap().permissions().mode() & 0o777, 0o640);
    place.write("m/shop.yaml", SHOP);
    std::os::unix::fs::symlink("m/shop.yaml", place.path().join("link.yaml")).unwrap();
    insta::assert_snapshot!(place.run(&format!("{absorb} -d link.yaml")));
    assert_eq!(read_manifest(&place), SHOP);
}

#[test]
fn absorbing_a_container_names_its_unlisted_entries() {
    let place = drifted_place();
    let run = place.run("absorb acme/shop -d m --sandbox=s.db --write");
    let left = "not absorbed: acme/shop#variables/NEW@*: no manifest lists it; pass its address to absorb it\n";
    assert!(run.contains(left) && run.ends_with("---- exit code 0\n"), "{run}");
    assert!(!read_manifest(&place).contains("NEW"), "{run}");
}

#[test]
fn a_renamed_project_that_only_a_glob_selects_is_left_out() {
    let text = SHOP.to_owned()
        + "---\nkind: Project\npath: acme/cart\ncreate: true\nvariables: [{key: A, value: b}]\n";
    let place = Workspace::new()
        .file("m/shop.yaml", &text)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nusers: [{username: alice}]\n");
    assert!(place.output("apply m --sandbox=s.db --yes").status.success());
    call(&place, "project-edit id=acme/shop description=Shoes");
    call(&place, "project-edit id=acme/cart path=basket");
    let absorb = |what: &str| place.run(&format!("absorb {what} -d m --sandbox=s.db"));
    let said = absorb("**");
    let left = "not absorbed: acme/cart: the project `acme/cart` is now `acme/basket`";
    assert!(said.contains(left) && said.contains("+  description: Shoes"), "{said}");
    assert!(said.contains("would absorb 1 difference") && said.contains("exit code 0"), "{said}");
    let said = absorb("acme/cart");
    assert!(said.contains("cannot absorb `acme/cart`") && said.contains("exit code 3"), "{said}");
    let said = absorb("acme/cart --exclude acme/cart");
    assert!(said.contains("nothing to absorb"), "{said}");
    let said = absorb("acme/**");
    assert!(said.contains(left), "{said}");
}

#[test]
fn a_pending_move_or_rename_is_skipped_and_the_rest_absorbed() {
    let document = |path: &str, label: &str, text: &str| {
        let labels = format!("labels: [{{{label}, color: '#ff0000'}}]");
        format!("kind: Project\npath: {path}\n{labels}\nsettings: {{description: {text}}}\n")
    };
    let old = document("acme/shop", "name: bug", "old") + "create: true\n";
    let new = |text: &str| {
        document("acme/store\npreviously: [acme/shop]", "name: flaw, previously: [bug]", text)
    };
    let place = Workspace::new()
        .file("m/shop.yaml", &old)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nusers: [{username: alice}]\n");
    assert!(place.output("apply m --sandbox=s.db --yes").status.success());
    place.write("m/shop.yaml", &new("new"));
    let output = place.run("absorb acme/store -d m --sandbox=s.db --write");
    for left in [
        "not absorbed: acme/store: its move is declared and not applied yet",
        "not absorbed: acme/store#labels/flaw: its rename is declared and not applied yet",
        "absorbed 1 difference into 1 file\n---- exit code 0",
    ] {
        assert!(output.contains(left), "{output}");
    }
    assert_eq!(read_manifest(&place), new("old"));
}

#[test]
fn excluded_differences_are_not_absorbed() {
    let place = drifted_place();
    for (excluded, absorbed, left) in [
        ("**#settings", "-  - {key: LEVEL", "Shoes"),
        ("**#settings/description", "merge_method: merge", "Shoes"),
        ("**#variables/*", "Shoes", "LEVEL, state: absent"),
        ("acme/shop", "nothing to absorb: `--exclude` excludes everything that is", "Shoes"),
    ] {
        let absorb = "absorb acme/shop --at-source -d m --sandbox=s.db";
        let said = place.run(&format!("{absorb} --exclude {excluded}"));
        assert!(said.contains(absorbed) && !said.contains(left), "{excluded}: {said}");
    }
    let fields = "--exclude **#settings/description --exclude **#settings/merge_method --exclude **#variables/*";
    let output = place.run(&format!("absorb acme/shop -d m --sandbox=s.db {fields}"));
    assert!(output.contains("nothing to absorb"), "{output}");
}

/// A value that is plain in an export is plain in the lines around an edit.
#[test]
fn plain_values_in_the_context_of_an_edit_are_shown() {
    let place = shop();
    call(&place, "variable-create id=acme/shop key=NEW value=9");
    let rule = "{key: LEVEL, value: '1'}";
    place.write(
        "m/shop.yaml",
        &SHOP.replace("variables:\n  - {key: S", &format!("variables:\n  - {rule}\n  - {{key: S")),
    );
    let output = place.run("absorb acme/shop#variables/NEW@* -d m --sandbox=s.db");
    assert!(output.contains(rule) && !output.contains("canary"), "{output}");
}
