//! Saved plans: one job plans, somebody reviews, and another job applies.
#![cfg(feature = "sandbox")]

use std::fs;

use serde_json::{Value as Json, json};

use crate::harness::Workspace;

const SEED: &str = "tier: ultimate
users: [{username: alice}, {username: bob}]
groups: [{path: acme, visibility: public, members: [{user: root, access_level: owner}]}]
projects:
  - path: acme/shop
    settings: {visibility: private, description: old}
    variables: [{key: MODE, value: slow, protected: true}, {key: SPARE, value: x}]
    hooks: [{url: 'https://a.example.org', push_events: true}]
  - {path: acme/site, settings: {visibility: private, description: old}}
";
const SHOP: &str = "kind: Project
path: acme/shop
settings: {description: new}
variables:
  - {key: MODE, value: fast}
  - {key: TOKEN, value: {env: TOKEN}}
";
const SITE: &str = "kind: Project\npath: acme/site\nsettings: {description: new}\n";
const TOKEN: &str = "a-token-that-nobody-may-see";

fn place() -> Workspace {
    Workspace::new()
        .file("sandbox.yaml", SEED)
        .file("m/shop.yaml", SHOP)
        .file("m/site.yaml", SITE)
        .env("TOKEN", TOKEN)
}

const SANDBOX: &str = "--sandbox=service.db";

/// Runs `arguments` against the service of the place.
fn run(place: &Workspace, arguments: &str) -> (i32, String, String) {
    let output = place.output(&format!("{arguments} {SANDBOX}"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// A place with the service and a saved plan.
fn saved() -> Workspace {
    let place = place();
    fs::copy(place.path().join("sandbox.yaml"), place.path().join("m/sandbox.yaml")).unwrap();
    let (code, _, stderr) = run(&place, "plan m -o plan.saved");
    assert_eq!(code, 0, "{stderr}");
    place
}

fn call(place: &Workspace, arguments: &str) {
    let (code, stdout, stderr) = run(place, &format!("call {arguments} --yes"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

fn description(place: &Workspace, project: &str) -> Json {
    let (_, stdout, stderr) = run(place, &format!("call project-get id={project} --out json"));
    let object: Json = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    object["description"].clone()
}

#[test]
fn a_plan_is_saved_shown_and_applied() {
    let place = saved();
    let text = fs::read_to_string(place.path().join("plan.saved")).unwrap();
    assert!(
        text.starts_with("{\"undrift\":\"saved_plan\",\"format_version\":0,")
            && !text.contains(TOKEN),
        "{text}"
    );
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/saved-plan.schema.json");
    let schema: Json = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut file: Json = serde_json::from_str(&text).unwrap();
    assert!(validator.is_valid(&file), "{file:#}");
    file["steps"][0]["action"] = "dance".into();
    assert!(!validator.is_valid(&file));
    let (code, shown, _) = run(&place, "show plan.saved --color never");
    assert_eq!(code, 3, "show talks to no service: {shown}");
    let shown = place.output("show plan.saved");
    let shown = String::from_utf8(shown.stdout).unwrap();
    for line in
        ["~ settings", "+ variables/TOKEN@*", "(secret env:TOKEN)", "1 to create, 3 to change"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let (code, stdout, stderr) = run(&place, "apply plan.saved m --yes");
    assert_eq!(code, 0, "{stdout}{stderr}");
    // The plan contains its folder; all steps were saved.
    assert_eq!(run(&place, "apply plan.saved --yes").0, 0);
    let (code, stdout, _) = run(&place, "apply plan.saved m --yes");
    assert!(code == 0 && stdout.contains("not needed any more: 4 steps"), "{stdout}");
    assert_eq!(run(&place, "drift m").0, 0);
}

#[test]
fn the_same_plan_is_the_same_file() {
    let place = saved();
    let read = || -> Json {
        let mut json: Json =
            serde_json::from_slice(&fs::read(place.path().join("plan.saved")).unwrap()).unwrap();
        json["created_at"].take();
        json["id"].take();
        json
    };
    let first = read();
    run(&place, "plan m -o plan.saved");
    assert_eq!(first, read());
}

#[test]
fn changes_since_saving_stop_apply_before_the_first_write() {
    // What happens in between, whether it makes the plan stale, and the message.
    type Between = fn(&Workspace);
    let cases: &[(&str, Between, bool, &str)] = &[
        (
            "a field that changes",
            |p| call(p, "project-edit id=acme/site description=mine"),
            true,
            "description, now: mine → new",
        ),
        (
            "a field that the call repeats",
            |p| call(p, "variable-update id=acme/shop key=MODE value=slow protected=false"),
            true,
            "its call sends other values in `protected`",
        ),
        ("an entry added", |p| call(p, "variable-create id=acme/shop key=MORE value=1"), false, ""),
        (
            "an entry that is to be created",
            |p| call(p, "variable-create id=acme/shop key=TOKEN value=other"),
            true,
            "the plan would change it now, not create it",
        ),
        (
            "an entry that is to be changed",
            |p| call(p, "variable-delete id=acme/shop key=MODE"),
            true,
            "the plan would create it now, not change it",
        ),
        (
            "a project renamed",
            |p| call(p, "project-edit id=acme/site path=other"),
            true,
            "cannot tell whether this is still needed",
        ),
        (
            "a step done by somebody",
            |p| call(p, "project-edit id=acme/site description=new"),
            false,
            "",
        ),
        (
            "a new manifest",
            |p| p.write("m/new.yaml", "kind: Project\npath: acme/neo\ncreate: true\n"),
            false,
            "",
        ),
    ];
    for (what, between, is_stale, says) in cases {
        let place = saved();
        between(&place);
        check_stale(&place, what, *is_stale, says);
    }
}

#[test]
fn a_manifest_that_is_gone_makes_the_plan_stale_and_a_comment_does_not() {
    let place = saved();
    place.write("m/site.yaml", &format!("# why\n{SITE}"));
    check_stale(&place, "a comment", false, "");
    let place = saved();
    fs::remove_file(place.path().join("m/site.yaml")).unwrap();
    check_stale(&place, "gone", true, "no manifest declares it any more");
}

fn check_stale(place: &Workspace, what: &str, is_stale: bool, says: &str) {
    let log = || run(place, "plan m --out json=- --full").1;
    let before = is_stale.then(log);
    let (code, stdout, stderr) = run(place, "apply plan.saved m --yes");
    assert_eq!(code == 5, is_stale, "{what}: {code} {stdout}{stderr}");
    assert!(stdout.contains(says), "{what}: {stdout}");
    if is_stale {
        assert_eq!(Some(log()), before, "{what}: something was written");
        // With `--on-stale=skip` the other project is applied.
        let (code, stdout, stderr) = run(place, "apply plan.saved m --yes --on-stale=skip");
        assert_eq!(code, 5, "{what}: {stdout}{stderr}");
        assert!(stdout.contains("done"), "{what}: {stdout}{stderr}");
    } else {
        assert_eq!(code, 0, "{what}: {stdout}{stderr}");
        assert_eq!(description(place, "acme/site"), "new", "{what}");
    }
}

#[test]
fn another_projects_manifest_does_not_make_a_saved_plan_stale() {
    let place = saved();
    run(&place, "plan m -o site.saved --only acme/site");
    place.write("m/shop.yaml", &SHOP.replace("description: new", "description: other"));
    let (code, stdout, stderr) = run(&place, "apply site.saved m --yes");
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!(description(&place, "acme/shop"), "old");
}

#[test]
fn unusable_plans_are_refused_before_anything_is_sent() {
    let place = saved();
    let text = fs::read_to_string(place.path().join("plan.saved")).unwrap();
    let edited = |edit: &dyn Fn(&mut Json)| {
        let mut json: Json = serde_json::from_str(&text).unwrap();
        edit(&mut json);
        json.to_string() + "\n"
    };
    place.write("cut", &text[..text.len() / 2]);
    place.write("edited", &text.replace("acme/site", "acme/shoq"));
    place.write("later", &edited(&|json| json["format_version"] = json!(99)));
    place.write("report", "{\"undrift\":\"plan\"}");
    let sparse = fs::File::create(place.path().join("large")).unwrap();
    sparse.set_len(500 << 20).unwrap();
    for (file, code, says) in [
        ("cut", 5, "is damaged, or was edited"),
        ("edited", 5, "is damaged, or was edited"),
        ("later", 5, "this undrift reads format 0"),
        ("report", 3, "is a report of `plan`, not a saved plan"),
        ("m/shop.yaml", 3, "is not a saved plan"),
        ("large", 5, "larger than 64 MiB"),
        ("missing", 3, "cannot read `missing`"),
    ] {
        let (found, stdout, stderr) = run(&place, &format!("apply {file} m --yes"));
        assert_eq!(found, code, "{file}: {stdout}{stderr}");
        assert!(stderr.contains(says) && stdout.is_empty(), "{file}: {stdout}{stderr}");
    }
    place.write("report.json", "{\n  \"undrift\": \"plan\",\n  \"format_version\": 1\n}\n");
    for (arguments, says) in [
        ("show report.json", "is a report of `plan`, not a saved plan"),
        ("apply report.json --sandbox", "is a report of `plan`, not a saved plan"),
        ("show missing.json", "the file `missing.json` does not exist"),
        ("apply missing.json --sandbox", "no such file or folder"),
    ] {
        let story = place.run(arguments);
        assert!(story.contains(says) && story.ends_with("exit code 3\n"), "{story}");
    }
    let elsewhere = place
        .command("apply plan.saved m --yes --url https://nowhere.invalid")
        .env("UNDRIFT_TOKEN", "x")
        .output()
        .unwrap();
    let told = String::from_utf8(elsewhere.stderr).unwrap();
    let says = "is for `sandbox`, not for `https://nowhere.invalid`";
    assert!(elsewhere.status.code() == Some(5) && told.contains(says), "{told}");
    for arguments in ["--only acme/site", "--limit 1", "--resend acme/site"] {
        let (code, stdout, stderr) = run(&place, &format!("apply plan.saved m --yes {arguments}"));
        assert_eq!(code, 3, "{arguments}: {stdout}{stderr}");
    }
    assert_eq!(run(&place, "plan m -o plan.yaml").0, 3);
    // One file of manifests with another name is the same.
    place.write(
        "one.json",
        &json!({"kind": "Project", "path": "acme/site", "settings": {"description": "new"}})
            .to_string(),
    );
    fs::copy(place.path().join("sandbox.yaml"), place.path().join("sandbox.yaml.bak")).unwrap();
    let (code, stdout, stderr) = run(&place, "apply one.json --yes");
    assert_eq!(code, 0, "{stdout}{stderr}");
}

#[test]
fn a_key_tells_whether_hidden_values_changed() {
    let masked = "kind: Project\npath: acme/shop\nvariables: [{key: MODE, value: fast-and-long, masked: true}]\n";
    let place = saved().env("UNDRIFT_PLAN_KEY", "a key that is long enough");
    place.write("m/shop.yaml", masked);
    let refused = run(&place, "apply plan.saved m --yes");
    assert!(refused.0 == 5 && refused.2.contains("without UNDRIFT_PLAN_KEY"), "{refused:?}");
    let (_, _, stderr) = run(&place, "plan m -o plan.saved");
    assert!(!stderr.contains("UNDRIFT_PLAN_KEY"), "{stderr}");
    let text = fs::read_to_string(place.path().join("plan.saved")).unwrap();
    for hidden in ["fast-and-long", "slow"] {
        assert!(!text.contains(hidden), "{text}");
    }
    place.write("m/shop.yaml", &masked.replace("fast-and-long", "else-and-long"));
    assert_eq!(run(&place, "apply plan.saved m --yes").0, 5, "the manifest");
    place.write("m/shop.yaml", masked);
    call(&place, "variable-update id=acme/shop key=MODE value=changed");
    let stale = run(&place, "apply plan.saved m --yes");
    assert!(stale.0 == 5 && stale.1.contains("value, now: (hidden) → (hidden)"), "{stale:?}");
    call(&place, "variable-update id=acme/shop key=MODE value=slow");
    assert_eq!(run(&place, "apply plan.saved m --yes").0, 0);
    let place = place.env("UNDRIFT_PLAN_KEY", "short");
    assert_eq!(run(&place, "plan m -o plan.saved").0, 3);
}

#[test]
fn guards_are_asked_again_and_take_nothing_from_the_file() {
    let place = saved();
    place.write(
        "m/shop.yaml",
        "kind: Project\npath: acme/shop\nvariables: []\nunlisted: {variables: delete}\n",
    );
    let acknowledged = "--ack removals:acme/shop#variables";
    assert_eq!(run(&place, &format!("plan m -o plan.saved {acknowledged}")).0, 0);
    let (code, stdout, stderr) = run(&place, "apply plan.saved m --yes --only acme/shop");
    assert_eq!(code, 3, "{stdout}{stderr}");
    let (code, stdout, stderr) = run(&place, "apply plan.saved m --yes");
    assert_eq!(code, 4, "{stdout}{stderr}");
    let (code, stdout, stderr) = run(&place, &format!("apply plan.saved m --yes {acknowledged}"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

/// The folder in a saved plan is only a place to look, and must be below the working directory.
#[test]
fn the_folder_of_a_saved_plan_is_below_the_working_directory() {
    let place = saved();
    let at = place.path().join("plan.saved");
    let text = fs::read_to_string(&at).unwrap();
    for elsewhere in ["..", "/", "missing", "m/../.."] {
        let edited = format!("\"manifests\":\"{elsewhere}\"");
        let edited = text.replace("\"manifests\":\"m\"", &edited);
        // An edited file is refused, whatever path it names.
        fs::write(&at, &edited).unwrap();
        assert_eq!(run(&place, "apply plan.saved --yes").0, 5);
        let mut json: Json = serde_json::from_str(&edited).unwrap();
        json.as_object_mut().unwrap().remove("id");
        json["id"] = undrift::digest::json_digest(&json).into();
        fs::write(&at, undrift::plan::saved::file_text(json)).unwrap();
        let (code, _, stderr) = run(&place, "apply plan.saved --yes");
        assert_eq!(code, 3, "{elsewhere}: {stderr}");
        let why = format!("is for `{elsewhere}`, which is not below the current folder");
        assert!(stderr.contains(&why) && stderr.contains("undrift apply FILE -d DIR"), "{stderr}");
        // With an explicit folder, that of the file does not matter.
        let asked = run(&place, "apply plan.saved m").2;
        assert!(asked.contains("cannot ask whether"), "{asked}");
    }
    fs::write(&at, text).unwrap();
    assert_eq!(run(&place, "apply plan.saved --yes").0, 0);
}
