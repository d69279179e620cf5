//! `undrift call` against the embedded service.
#![cfg(feature = "sandbox")]

use serde_json::{Value, json};

use crate::harness::Workspace;

const SEED: &str = "groups: [{path: acme, members: [{user: root, access_level: owner}]}]
projects:
  - {path: acme/shop, hooks: [{url: 'https://ci.example.org/x?token=canary-hook'}]}
  - {path: acme/quiet, settings: {builds_access_level: disabled}}
";

fn shop() -> Workspace {
    Workspace::new().file("sandbox.yaml", SEED).env("SHOP_TOKEN", "canary-0123456789")
}

/// A run against the embedded service: its exit code, its result and its messages.
fn call(place: &Workspace, arguments: &str) -> (i32, Value, String) {
    let output = place.output(&format!("call {arguments} --sandbox"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let told = "note: using the sandbox `.undrift/sandbox.db`\n";
    let stderr = stderr.strip_prefix(told).unwrap_or(&stderr).to_owned();
    (
        output.status.code().unwrap(),
        serde_json::from_slice(&output.stdout).unwrap_or_default(),
        stderr,
    )
}

#[test]
fn operations_are_listed_and_explained() {
    let place = Workspace::new();
    let commands = [
        "call --list",
        "call variable-update --help",
        "call project-fork --help",
        "call import-extgit -h",
    ];
    insta::assert_snapshot!(commands.map(|arguments| place.run(arguments)).join("\n"));
    assert!(place.run("call --help").contains("undrift call --list"));
}

#[test]
fn a_list_is_read_to_its_end_unless_a_page_is_named() {
    let projects: String = (0..250).map(|i| format!("  - {{path: acme/p{i}}}\n")).collect();
    let place = Workspace::new()
        .file("sandbox.yaml", &format!("groups: [{{path: acme}}]\nprojects:\n{projects}"));
    let (code, all, _) = call(&place, "project-list");
    let ids: std::collections::BTreeSet<_> =
        all.as_array().unwrap().iter().map(|project| project["id"].as_u64()).collect();
    assert_eq!((code, ids.len()), (0, 250));
    let (_, sorted, _) = call(&place, "project-list order_by=name sort=asc simple=true");
    assert_eq!(
        (sorted.as_array().unwrap().len(), &sorted[0]["path"], &sorted[1]["path"]),
        (250, &json!("p0"), &json!("p1"))
    );
    let (_, page, _) = call(&place, "project-list order_by=id sort=asc --page 3 --per-page 20");
    assert_eq!((page.as_array().unwrap().len(), &page[0]["path"]), (20, &json!("p40")));
    let lines = place.output("call project-list search=p24 --out ndjson --sandbox").stdout;
    let lines: Vec<Value> = lines
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 11, "p24 and p240 to p249");
}

#[test]
fn a_secret_comes_from_elsewhere_and_is_not_shown() {
    let place = shop().file("value.txt", "canary-from-file\n");
    let (code, made, said) = call(
        &place,
        "variable-create id=acme/shop key=TOKEN value=@env:SHOP_TOKEN masked=true --yes",
    );
    assert_eq!(
        (code, &made["value"], &made["masked"], said.contains("canary")),
        (0, &json!("***"), &json!(true), false)
    );
    let (code, ..) = call(
        &place,
        "variable-update id=acme/shop key=TOKEN value=@file:value.txt filter[environment_scope]=* --yes",
    );
    assert_eq!(code, 0);
    assert_eq!(call(&place, "variable-get id=acme/shop key=TOKEN").1["value"], "***");
    assert_eq!(
        call(&place, "variable-get id=acme/shop key=TOKEN --show-secrets").1["value"],
        "canary-from-file"
    );
    assert_eq!(
        call(&place, "hook-list id=acme/shop").1[0]["url"],
        "https://ci.example.org/x?token=***"
    );
    let stories = [
        "call hook-add id=acme/shop url=https://ci.example.org token=canary-typed --yes --sandbox",
        "call hook-add id=acme/shop url=https://ci.example.org token=@env:ABSENT --yes --sandbox",
        "call hook-add id=acme/shop url=https://ci.example.org token=@env:UNDRIFT_TOKEN --yes --sandbox",
        "call hook-add id=acme/shop url=https://ci.example.org token=@file:absent --yes --sandbox",
    ];
    let story = stories.map(|arguments| place.run(arguments)).join("\n");
    insta::assert_snapshot!(story);
    assert!(!story.replace(stories[0], "").contains("canary"), "{story}");
}

#[test]
fn an_unnecessary_call_succeeds_and_is_reported() {
    let place = shop();
    for (arguments, said) in [
        ("project-star id=acme/shop", ""),
        ("project-star id=acme/shop", "nothing was changed: already done\n"),
        ("project-unstar id=acme/shop", ""),
        ("project-unstar id=acme/shop", "nothing was changed: already done\n"),
        ("variable-delete id=acme/shop key=ABSENT", "nothing was changed: already absent\n"),
        ("fork-relation-delete id=acme/shop", "nothing was changed: already done\n"),
        ("project-delete id=acme/quiet", ""),
    ] {
        let (code, _, stderr) = call(&place, &format!("{arguments} --yes"));
        assert_eq!((code, stderr.as_str()), (0, said), "{arguments}");
    }
}

#[test]
fn files_are_uploaded_from_any_folder() {
    let elsewhere = Workspace::new().file("notes.txt", "to be linked\n");
    let place = shop();
    let file = elsewhere.path().join("notes.txt");
    let (code, uploaded, said) =
        call(&place, &format!("project-upload id=acme/shop file=@file:{} --yes", file.display()));
    assert_eq!((code, &uploaded["alt"]), (0, &json!("notes.txt")), "{said}");
    let (code, _, said) = call(
        &place,
        &format!("project-upload id=acme/shop file=@file:{} --yes", elsewhere.path().display()),
    );
    assert_eq!((code, said.contains("it is a folder")), (3, true), "{said}");
}

#[test]
fn the_exit_code_of_a_call_shows_its_outcome() {
    let place = shop();
    for (arguments, exit) in [
        ("project-get id=acme/shop", 0),
        ("project-get id=acme/absent", 10),
        ("project-archive id=acme/absent --yes", 6),
        ("project-edit id=acme/shop name= --yes", 6),
        ("variable-list id=acme/quiet", 7),
        ("project-archive id=acme/shop", 3),
        ("project-get id=acme/shop --max-requests 0", 8),
        ("project-get", 3),
        ("project-gte id=acme/shop", 3),
        ("project-get id=acme/shop extra=1", 3),
        ("project-list --per-page 5", 3),
    ] {
        let (code, _, said) = call(&place, arguments);
        assert_eq!(code, exit, "{arguments}: {said}");
        assert_eq!(said.is_empty(), exit == 0, "{arguments}: {said}");
    }
    assert_eq!(
        call(&place, "project-get id=acme/shop").1["archived"],
        false,
        "nothing was sent without a yes"
    );
}

#[test]
fn import_hosts_have_the_names_of_the_configuration() {
    let config = "version: 1\nservice: {import_hosts: {extgit: githost}}\n";
    let place = shop()
        .file("undrift.yaml", config)
        .file("other.yaml", &config.replace("githost", "otherhost"));
    let import =
        "import-extgit personal_access_token=@env:SHOP_TOKEN repo_id=1 target_namespace=acme --yes";
    for (options, path) in
        [("", "`POST /import/githost`"), ("--config other.yaml", "`POST /import/otherhost`")]
    {
        let (code, _, said) = call(&place, &format!("{import} {options}"));
        assert!(code == 6 && said.contains(path) && !said.contains("canary"), "{said}");
    }
    place.write("undrift.yaml", &config.replace("githost", "../x"));
    assert_eq!(call(&place, import).0, 3, "a name is a word");
    assert_eq!(call(&place, &format!("{import} --config absent.yaml")).0, 3);
}
