//! `undrift export`: its files and its refusals.
#![cfg(feature = "sandbox")]

use std::{collections::BTreeMap, path::Path};

use crate::{estates::estates, harness::Workspace};
#[cfg(unix)]
use crate::{front, sandbox::Server};

/// A place with a sandbox that contains the sample organisation.
fn acme() -> Workspace {
    let place = Workspace::new();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/acme");
    let applied = place.output(&format!("apply {sample} --sandbox=acme.db --yes"));
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    place
}

/// Every file below a folder, with its content.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inner = self::files(&path).into_iter();
            files.extend(inner.map(|(inner, text)| (format!("{name}/{inner}"), text)));
        } else {
            files.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
    files
}

fn names(files: &BTreeMap<String, String>) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}

#[test]
fn the_sample_organisation_is_exported_and_plans_to_nothing() {
    let place = acme();
    insta::assert_snapshot!(place.run("export acme -d out --sandbox=acme.db"));
    let first = files(&place.path().join("out"));
    assert_eq!(
        names(&first),
        [
            "acme.yaml",
            "acme/data.yaml",
            "acme/legacy.yaml",
            "acme/platform.yaml",
            "acme/security.yaml",
            "acme/web.yaml",
            "secrets.env.example"
        ]
    );
    insta::assert_snapshot!(first["acme/platform.yaml"]);
    assert!(place.output("check out").status.success());
    insta::assert_snapshot!(place.run("plan out --sandbox=acme.db"));
    assert!(place.output("export acme -d again --sandbox=acme.db").status.success());
    assert_eq!(files(&place.path().join("again")), first, "the same bytes");
}

#[test]
fn an_export_is_hardly_longer_than_what_people_wrote() {
    let lines = |text: &String| text.lines().count();
    for (name, groups, manifests) in estates() {
        let place = Workspace::new();
        for (file, text) in &manifests {
            place.write(&format!("m/{file}"), text);
        }
        let applied = place.run("apply m --sandbox=s.db --yes");
        assert!(applied.contains("exit code 0"), "{name}: {applied}");
        let exported = place.run(&format!("export {groups} -d out --sandbox=s.db"));
        assert!(exported.contains("exit code 0"), "{name}: {exported}");
        let plan = place.run("plan out --sandbox=s.db");
        assert!(plan.contains("no changes:"), "{name}: {plan}");
        let by_hand = manifests.iter().filter(|(file, _)| *file != "sandbox.yaml");
        let by_hand: usize = by_hand.map(|(_, text)| lines(text)).sum();
        let written = files(&place.path().join("out"));
        let exported: usize = written.values().map(lines).sum();
        assert!(exported * 10 <= by_hand * 14, "{name}: {exported} lines for {by_hand}");
    }
}

#[test]
fn the_sample_organisation_can_be_built_from_its_export() {
    let place = acme();
    let export = "export acme --values env --rehearse";
    let run = place.output(&format!("{export} -d out --secrets values.env --sandbox=acme.db"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let first = files(&place.path().join("out"));
    for name in ["sandbox.yaml", "sandbox.env", "secrets.env.example"] {
        assert!(first.contains_key(name), "{name}: {:?}", names(&first));
    }
    let values = place.path().join("values.env");
    let text = std::fs::read_to_string(&values).unwrap();
    assert!(text.contains("ACME_PLATFORM_AUTH__SIGNING_KEY='demo-"), "{text}");
    let written = first.values().any(|text| text.contains("='demo-") || text.contains(": demo-"));
    assert!(!written);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(values.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    // A new project may inherit something from its group, which the next run removes.
    for _ in 0..2 {
        let applied = place.output("apply out --sandbox=copy.db --yes");
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stdout));
    }
    assert!(place.output(&format!("{export} -d copy --sandbox=copy.db")).status.success());
    let copy = files(&place.path().join("copy"));
    assert_eq!(names(&copy), names(&first));
    for (name, text) in &first {
        assert_eq!(&copy[name], text, "{name}");
    }
}

#[test]
fn what_the_service_does_not_show_has_a_stand_in_and_is_no_value() {
    let manifest = "\
kind: Project
path: acme/shop
create: true
variables:
  - {key: SHY, value: long-enough-1, masked_and_hidden: true}
  - {key: AT, value: https://shop.example.org/hook, masked: true}
remote_mirrors:
  - {url: 'https://bob:hunter22@m.example.org/x.git', enabled: true}
";
    let place = Workspace::new()
        .file("m/shop.yaml", manifest)
        .file("m/sandbox.yaml", "release: '18.9'\ngroups: [{path: acme}]\n");
    assert!(place.output("apply m --sandbox=s.db --yes").status.success());
    let export = "export acme --values env --rehearse";
    let said = place.run(&format!("{export} -d out --secrets values.env --sandbox=s.db"));
    insta::assert_snapshot!(said);
    let out = files(&place.path().join("out"));
    insta::assert_snapshot!(format!("{}{}", out["acme.yaml"], out["sandbox.env"]));
    let values = std::fs::read_to_string(place.path().join("values.env")).unwrap();
    insta::assert_snapshot!(values);
    let output = place.run("apply out --sandbox=copy.db --yes");
    assert!(output.contains("exit code 0"), "{output}");
    assert!(place.output(&format!("{export} -d copy --sandbox=copy.db")).status.success());
    assert_eq!(files(&place.path().join("copy")), out);
}

#[test]
fn a_part_is_exported_for_watching() {
    let place = acme();
    let options = "--sections members,labels --exclude acme/web/** --watch --no-defaults";
    let run = place.run(&format!("export acme -d out --sandbox=acme.db {options}"));
    let out = files(&place.path().join("out"));
    assert!(!out.contains_key("acme/web/shop.yaml"), "{run}");
    let all: String = out
        .iter()
        .filter(|(name, _)| name.ends_with(".yaml"))
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(all.contains("watch: true\n") && all.contains("labels:\n"), "{all}");
    assert!(!all.contains("settings:\n") && !all.contains("acme/web/shop"), "{all}");
    insta::assert_snapshot!(place.run("plan out --sandbox=acme.db"));
}

#[test]
fn a_folder_with_something_in_it_is_not_exported_into() {
    let place = acme();
    std::fs::create_dir_all(place.path().join("out/.git")).unwrap();
    let export = || place.run("export acme -d out --sandbox=acme.db");
    assert!(export().contains("exit code 0"), "what is hidden does not count");
    let first = files(&place.path().join("out"));
    insta::assert_snapshot!(export());
    assert_eq!(files(&place.path().join("out")), first, "nothing was written");
}

/// A place with the manifests of a service that changed since, and that somebody edited.
fn edited() -> Workspace {
    let seed = "users: [{username: alice}]
groups: [{path: acme}]
projects:
  - path: acme/shop
    settings: {merge_method: ff, description: A shop}
    variables: [{key: LEVEL, value: '1'}, {key: TOKEN, value: glpat-canary-7f3a9c21, masked: true}]
  - {path: acme/web}
";
    let place = Workspace::new().file("sandbox.yaml", seed);
    let export = "export acme -d out --watch --sections settings,members --sandbox=s.db";
    assert!(place.run(export).contains("exit code 0"));
    let text = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    let watched = "path: acme/shop\nwatch: true\n";
    assert!(text.contains(watched), "{text}");
    let own = text.replace(watched, "path: acme/shop  # ours since May\n");
    place.write("out/acme.yaml", &(own + "# The web team decides.\n"));
    for call in [
        "project-edit id=acme/shop description=Shoes squash_option=always",
        "project-member-add id=acme/web user_id=2 access_level=30",
        "project-create path=cart namespace_id=3 merge_method=ff",
    ] {
        let called = place.output(&format!("call {call} --sandbox=s.db --yes"));
        assert!(called.status.success(), "{}", String::from_utf8_lossy(&called.stderr));
    }
    place
}

#[test]
fn an_update_adds_what_is_new_and_writes_over_nothing() {
    let place = edited();
    let before = files(&place.path().join("out"));
    let export = "export acme -d out --sandbox=s.db --update --watch";
    let update = format!("{export} --sections settings,members,variables,labels");
    let said = [place.run(&update), place.run(&update)].join("\n");
    let after = files(&place.path().join("out"));
    assert!(!said.contains("canary") && !after["acme.yaml"].contains("canary"), "{said}");
    insta::assert_snapshot!(said);
    insta::assert_snapshot!(after["acme.yaml"]);
    let mut lines = after["acme.yaml"].lines();
    for line in before["acme.yaml"].lines().filter(|line| *line != "members: []") {
        assert!(lines.any(|now| now == line), "{line}");
    }
    assert!(after["acme.yaml"].contains("labels: []\n"), "{said}");
    let plan = place.run("drift out --sandbox=s.db");
    assert!(plan.contains("description    Shoes → \"A shop\""), "{plan}");
    assert!(!plan.contains("not in any manifest"), "{plan}");
}

/// Two documents for one project would contradict each other.
#[test]
fn an_update_does_not_declare_a_renamed_project_again() {
    let place = edited();
    let before = files(&place.path().join("out"));
    let rename = "call project-edit id=acme/web path=page --sandbox=s.db --yes";
    assert_eq!(place.exit_code(rename), 0);
    let export = "export -d out --sandbox=s.db --update --sections settings,members";
    let said = "warning: not added: acme/page: it is `acme/web`, renamed by hand: write \
                `acme/page` instead in out/acme.yaml:";
    for paths in ["acme", "acme/page"] {
        let run = place.run(&format!("{export} {paths} --exclude acme/cart"));
        assert!(run.contains(said) && run.contains("exit code 10\n"), "{run}");
        assert_eq!(files(&place.path().join("out")), before, "{run}");
    }
}

/// A new project may be the one that was not found.
#[test]
fn an_update_adds_nothing_new_while_a_declared_project_is_lost() {
    let place = edited();
    let text = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    let two = "path: acme/site\npreviously: [acme/web, acme/cart]\n";
    place.write("out/acme.yaml", &text.replace("path: acme/web\n", two));
    let create = "call project-create path=more namespace_id=3 --sandbox=s.db --yes";
    assert_eq!(place.exit_code(create), 0);
    let before = files(&place.path().join("out"));
    let run = place.run("export acme -d out --sandbox=s.db --update --sections settings,members");
    let said = "warning: not added: acme/site: `acme/cart` exists too; each new group or project \
                may be this one, so none is added\n";
    assert!(run.contains(said) && run.contains("exit code 10\n"), "{run}");
    assert_eq!(files(&place.path().join("out")), before, "{run}");
}

#[test]
fn an_update_adds_only_what_is_selected() {
    let place = edited();
    let before = files(&place.path().join("out"));
    for (options, said, exit) in [
        ("--only acme/web#settings", "nothing to add\n", 0),
        (
            "--exclude acme/cart --exclude **#members",
            "nothing to add\n2 differences not written",
            0,
        ),
        ("--values env", "cannot be combined with `--update`", 3),
        ("--all", "cannot be used with", 3),
    ] {
        let sections = "--sections settings,members";
        let run =
            place.run(&format!("export acme -d out --sandbox=s.db --update {sections} {options}"));
        assert!(run.contains(said) && run.contains(&format!("exit code {exit}\n")), "{run}");
        assert_eq!(files(&place.path().join("out")), before, "{options}");
    }
    // Into an empty folder it is an export like any other.
    let run = place.run("export acme -d other --sandbox=s.db --update");
    assert!(run.contains("exported 1 group and 3 projects"), "{run}");
}

#[test]
fn an_export_stays_inside_what_the_folder_manages() {
    let seed = "groups: [{path: acme}]\nprojects:\n\
        - {path: acme/a, settings: {description: A}}\n- {path: acme/b}\n\
        - {path: acme/c, settings: {description: C}, variables: [{key: A, value: x}]}\n";
    let manages = "version: 1\nmanages:\n\
        - {path: acme/**, except: [acme/b, acme/c]}\n\
        - {path: acme/c, sections: [variables]}\n";
    let place = Workspace::new()
        .file("m/sandbox.yaml", seed)
        .file("m/undrift.yaml", manages)
        .file("m/a.yaml", "kind: Project\npath: acme/a\n")
        .file("n/undrift.yaml", manages);
    let mut story = String::new();
    for (root, dir, export) in
        [("m", "m", "export acme --update"), ("n", "n/below/new", "export acme")]
    {
        let sections = "--sections settings,variables";
        story += &place.run(&format!("{export} -d {dir} {sections} --sandbox=s.db"));
        story += &std::fs::read_to_string(place.path().join(dir).join("acme.yaml")).unwrap();
        story += &place.run(&format!("check {root}"));
    }
    insta::assert_snapshot!(story);
    let output = place.run("export acme/b -d m/b --sandbox=s.db");
    assert!(output.contains("everything there is outside of `manages`"), "{output}");
    assert!(output.ends_with("exit code 3\n"), "{output}");
}

#[test]
fn an_update_removes_nothing_that_could_not_be_read() {
    let place = edited();
    let before = files(&place.path().join("out"));
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--data s.db");
    let url = front::start_proxy(&server.url, |request, _| {
        let is_refused = request.contains("/projects/1/members");
        is_refused.then(|| front::json("403 Forbidden", "", r#"{"message":"403 Forbidden"}"#))
    });
    let update = format!("export acme -d out --update --sections settings,members --url {url}");
    let run = |options: &str| place.run(&format!("{update} {options}")).replace(&url, "[URL]");
    let output = run("");
    assert!(output.contains("warning: could not read acme/shop#members: "), "{output}");
    assert!(output.contains("nothing was written") && output.contains("exit code 10"), "{output}");
    assert_eq!(files(&place.path().join("out")), before);
    let said = run("--partial");
    assert!(said.contains("exit code 10"), "{said}");
    let mut now = files(&place.path().join("out"));
    let text = now.remove("acme.yaml").unwrap();
    let mut lines = text.lines();
    let mut kept = before["acme.yaml"].lines().filter(|line| *line != "members: []");
    assert!(kept.all(|line| lines.any(|now| now == line)), "{text}");
    server.end("-TERM");
}

#[test]
fn contradictory_options_are_refused_before_anything_is_read() {
    let place = Workspace::new().file("taken/x.yaml", "x").file("there.env", "A=1\n");
    let mut output = String::new();
    for options in [
        "nowhere -d out",
        "acme/shop -d out",
        "acme -d out --sections member",
        "acme -d out --sections member,hooks,protected-branches,xyz",
        "nowhere nobody/* -d out",
        "acme -d out --secrets s.env",
        "acme -d out --rehearse",
        "acme -d out --values env --secrets out/s.env",
        "acme -d out --values env --secrets there.env",
        "acme -d there.env",
        "acme -d taken",
        "acme[ -d out",
        "acme",
    ] {
        output += &place.run(&format!("export {options} --sandbox=:memory:"));
        assert!(!place.path().join("out").exists(), "{options}");
    }
    insta::assert_snapshot!(output);
}

#[cfg(unix)]
#[test]
fn secrets_are_not_written_without_manifests() {
    let place = acme().file("file", "");
    let export = "export acme -d file/out --values env --secrets values.env";
    assert!(!place.output(&format!("{export} --sandbox=acme.db")).status.success());
    assert!(!place.path().join("values.env").exists());
    // A folder that cannot be written; root can write everywhere.
    use std::os::unix::fs::PermissionsExt as _;
    let locked = place.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(locked.join("probe"), "").is_err() {
        assert!(!place.output("export acme -d locked/out --sandbox=acme.db").status.success());
    }
}

/// Unread objects are named, and nothing is written without `--partial`.
#[cfg(unix)]
#[test]
fn unread_objects_are_named_and_skipped_only_on_demand() {
    let seed = "groups: [{path: acme}]\nprojects: [{path: acme/a}, {path: acme/b, variables: [{key: A, value: x}]}]\n";
    let place = Workspace::new().file("seed.yaml", seed);
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let url = front::start_proxy(&server.url, |request, _| {
        let is_broken = request.contains("/projects/1/hooks");
        is_broken.then(|| front::json("400 Bad Request", "", r#"{"message":"broken"}"#))
    });
    let run = |arguments: &str| {
        place.run(&format!("export acme {arguments} --url {url}")).replace(&url, "[URL]")
    };
    insta::assert_snapshot!([run("-d out"), run("-d part --partial")].join("\n"));
    assert!(!place.path().join("out").exists());
    let written = files(&place.path().join("part"));
    insta::assert_snapshot!(written["acme.yaml"]);
    assert!(place.output("check part").status.success());
    server.end("-TERM");
}

/// Editors find the schema by the first line; without the file, the line would be an error there.
#[test]
fn manifests_name_the_schema_of_their_repository() {
    let place = acme();
    for (folder, has_schema) in [("out", true), ("repository/out", false)] {
        std::fs::create_dir_all(place.path().join("repository/.git")).unwrap();
        std::fs::create_dir_all(place.path().join(".git")).unwrap();
        assert!(place.output("schema --write schemas").status.success());
        let export = format!("export acme -d {folder} --sandbox=acme.db");
        assert!(place.output(&export).status.success());
        let written = files(&place.path().join(folder));
        for (name, up) in [("acme.yaml", "../"), ("acme/web.yaml", "../../")] {
            let line =
                format!("# yaml-language-server: $schema={up}schemas/manifest.schema.json\n");
            assert_eq!(written[name].starts_with(&line), has_schema, "{}", written[name]);
        }
        assert!(place.output(&format!("check {folder}")).status.success());
    }
}

/// The hand edits of a trial with an estate that was exported to be watched.
#[test]
fn hand_edits_are_seen_after_an_export_to_watch() {
    let seed = "users: [{username: alice}]
groups: [{path: acme}]
projects: [{path: acme/a}, {path: acme/b}, {path: acme/c}, {path: acme/d}]
";
    let place = Workspace::new().file("sandbox.yaml", seed);
    let export = "export acme -d out --watch --sandbox=s.db";
    assert!(place.run(export).contains("exit code 0"));
    let text = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert_eq!(
        text.matches("\nvariables: []\n").count(),
        2,
        "of groups, and in `Defaults`: {text}"
    );
    assert!(place.run("drift out --sandbox=s.db --strict").contains("exit code 0"));
    for (call, seen) in [
        ("project-edit id=acme/a topics[]=new", "topics"),
        ("project-edit id=acme/a build_timeout=7200", "build_timeout"),
        ("project-edit id=acme/a wiki_access_level=private", "wiki_access_level"),
        ("project-edit id=acme/a squash_option=never", "squash_option"),
        ("variable-create id=acme/b key=NEW value=1", "acme/b  variables/NEW@*"),
        ("project-member-add id=acme/b user_id=2 access_level=30", "acme/b  members/alice"),
        ("push-rule-add id=acme/c max_file_size=5", "- push_rule"),
        ("group-variable-create id=acme key=NEW value=1", "acme    variables/NEW@*"),
    ] {
        let called = place.run(&format!("call {call} --sandbox=s.db --yes"));
        assert!(called.contains("exit code 0"), "{called}");
        let drift = place.run("drift out --sandbox=s.db --full");
        assert!(drift.contains(seen), "{seen}: {drift}");
    }
}
