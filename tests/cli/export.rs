//! `undrift export`: its files and its refusals.

use std::{collections::BTreeMap, path::Path};

use crate::harness::Place;
#[cfg(unix)]
use crate::{front, sandbox::Server};

/// A place with a sandbox that contains the sample organisation.
fn acme() -> Place {
    let place = Place::new();
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
            "schemas/manifest.schema.json"
        ]
    );
    insta::assert_snapshot!(first["acme/platform.yaml"]);
    assert!(place.output("check out").status.success());
    insta::assert_snapshot!(place.run("plan out --sandbox=acme.db"));
    assert!(place.output("export acme -d again --sandbox=acme.db").status.success());
    assert_eq!(files(&place.path().join("again")), first, "the same bytes");
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
fn only_what_an_export_wrote_is_written_over() {
    let place = acme();
    let export =
        |options: &str| place.run(&format!("export acme -d out --sandbox=acme.db {options}"));
    std::fs::create_dir_all(place.path().join("out/.git")).unwrap();
    assert!(export("").contains("exit code 0"), "what is hidden does not count");
    let first = files(&place.path().join("out"));
    place.write("out/own.yaml", "kind: Acknowledge\n");
    insta::assert_snapshot!(export(""));
    // Files for objects that are gone are removed, and files written by people stay.
    place.write(
        "out/acme/gone.yaml",
        "# Written by `undrift export`.\nkind: Group\npath: acme/gone\n",
    );
    place.write("out/acme.yaml", &first["acme.yaml"].replace("public", "private"));
    assert!(export("--update").contains("exit code 0"));
    let mut now = files(&place.path().join("out"));
    assert_eq!(now.remove("own.yaml").as_deref(), Some("kind: Acknowledge\n"));
    assert_eq!(now, first);
    place.write("out/acme/web.yaml", "kind: Group\npath: acme/web\n");
    place.write("out/acme.yaml", &first["acme.yaml"].replace("public", "private"));
    let before = files(&place.path().join("out"));
    insta::assert_snapshot!(export("--update"));
    assert_eq!(files(&place.path().join("out")), before, "nothing was written");
}

#[test]
fn contradictory_options_are_refused_before_anything_is_read() {
    let place = Place::new().file("taken/x.yaml", "x").file("there.env", "A=1\n");
    let mut said = String::new();
    for options in [
        "nowhere -d out",
        "acme/shop -d out",
        "acme -d out --sections member",
        "acme -d out --secrets s.env",
        "acme -d out --rehearse",
        "acme -d out --values env --secrets out/s.env",
        "acme -d out --values env --secrets there.env",
        "acme -d there.env",
        "acme -d taken",
        "acme[ -d out",
        "acme",
    ] {
        said += &place.run(&format!("export {options} --sandbox=:memory:"));
        assert!(!place.path().join("out").exists(), "{options}");
    }
    insta::assert_snapshot!(said);
}

#[cfg(unix)]
#[test]
fn nothing_is_half_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = acme();
    // A folder is in the way of a file.
    std::fs::create_dir_all(place.path().join("out")).unwrap();
    assert!(place.output("export acme -d out --sandbox=acme.db").status.success());
    let before = files(&place.path().join("out"));
    std::fs::remove_file(place.path().join("out/acme/web.yaml")).unwrap();
    std::fs::create_dir(place.path().join("out/acme/web.yaml")).unwrap();
    place.write("out/acme.yaml", "# Written by `undrift export`.\nold\n");
    let update = "export acme -d out --update --values env --secrets values.env";
    assert!(!place.output(&format!("{update} --sandbox=acme.db")).status.success());
    assert!(!place.path().join("values.env").exists());
    let mut now = files(&place.path().join("out"));
    assert_eq!(
        now.insert("acme.yaml".into(), before["acme.yaml"].clone()).as_deref(),
        Some("# Written by `undrift export`.\nold\n")
    );
    assert!(!place.path().join("out/.undrift-export").exists());
    // A file is in the way of a folder, after others were put in place: they are restored.
    std::fs::remove_dir(place.path().join("out/acme/web.yaml")).unwrap();
    std::fs::remove_dir_all(place.path().join("out/schemas")).unwrap();
    place.write("out/schemas", "in the way");
    place.write("out/acme/gone.yaml", "# Written by `undrift export`.\ngone\n");
    let before = files(&place.path().join("out"));
    assert!(!place.output(&format!("{update} --sandbox=acme.db")).status.success());
    assert!(!place.path().join("values.env").exists());
    assert_eq!(files(&place.path().join("out")), before);
    // A folder that cannot be written; but root can write everywhere.
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
    let place = Place::new().file("seed.yaml", seed);
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let url = front::before(&server.url, |request, _| {
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
