//! `--kinds`: collections that a user describes, from check to export.
#![cfg(all(unix, feature = "sandbox"))]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::{
    front,
    harness::{Workspace, expect_exit},
    sandbox::Server,
};

const DESCRIPTION: &str = "section: goals
noun: goal
about: A goal of a team.
identity: [title]
removal: nothing
fields:
  - {name: title, about: What it is called., type: text, weakens: never, examples: ['1.0']}
  - {name: description, about: What it is for., type: text, weakens: never, nullable: true}
  - {name: due_date, about: The day on which it ends., type: date, weakens: never, nullable: true}
homes:
  - path: /projects/:id/goals/:goal_id
";

const RELEASE: &str = "kind: Project\npath: acme/shop\ngoals:\n  - {title: '1.0', description: The first one, due_date: 2099-01-31}\n";

/// The sandbox with a collection that it does not have: the goals of one project.
struct GoalService {
    url: String,
    goals: Arc<Mutex<BTreeMap<u64, Value>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl GoalService {
    fn start(sandbox: &str) -> Self {
        let goals: Arc<Mutex<BTreeMap<u64, Value>>> = Arc::default();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (stored_goals, request_log) = (Arc::clone(&goals), Arc::clone(&requests));
        let url = front::start_proxy(sandbox, move |request, body| {
            request_log.lock().unwrap().push(request.to_owned());
            let (_, rest) = request.split_once("/goals")?;
            let id = rest.strip_prefix('/').map(|id| id.parse().unwrap());
            Some(response(request, id, body, &mut stored_goals.lock().unwrap()))
        });
        Self { url, goals, requests }
    }

    /// The writes since the last call.
    fn writes(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.into_iter().filter(|request| !request.starts_with("GET ")).collect()
    }
}

fn response(
    request: &str,
    id: Option<u64>,
    body: Value,
    goals: &mut BTreeMap<u64, Value>,
) -> String {
    let method = request.split(' ').next().unwrap();
    let set = |goal: &mut Value, body: Value| {
        goal.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        goal.clone()
    };
    let (status, found) = match (method, id) {
        ("GET", None) => ("200 OK", goals.values().cloned().collect()),
        ("POST", None) => {
            let id = goals.keys().last().map_or(1, |last| last + 1);
            let goal = goals.entry(id).or_insert_with(
                || json!({"id": id, "created_at": "2026-01-01T00:00:00.000Z", "due_date": null}),
            );
            ("201 Created", set(goal, body))
        }
        ("PUT", Some(id)) => ("200 OK", set(goals.get_mut(&id).unwrap(), body)),
        ("DELETE", Some(id)) => {
            goals.remove(&id);
            ("204 No Content", Value::Null)
        }
        _ => panic!("unexpected: {request}"),
    };
    let text = if found.is_null() { String::new() } else { found.to_string() };
    let pages = found.as_array().map_or_else(String::new, |list| {
        format!("x-page: 1\r\nx-per-page: 100\r\nx-next-page: \r\nx-total: {}\r\n", list.len())
    });
    front::json(status, &pages, &text)
}

#[test]
fn a_described_collection_is_planned_applied_and_exported_as_any_other() {
    let place = Workspace::new()
        .file("kinds/goals.yaml", DESCRIPTION)
        .file("m/shop.yaml", RELEASE)
        .file("seed.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n");
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let service = GoalService::start(&server.url);
    let run = |arguments: &str| {
        place.run(&format!("{arguments} --kinds kinds/goals.yaml --url {}", service.url))
    };
    let goal = |id: u64| service.goals.lock().unwrap().get(&id).cloned();

    insta::assert_snapshot!(run("plan m --exit-code").replace(&service.url, "[URL]"));
    assert_eq!(service.writes(), [] as [String; 0], "planning writes nothing");
    expect_exit(0, run("apply m --yes"));
    assert_eq!(service.writes(), ["POST /api/v4/projects/1/goals"]);
    assert_eq!(goal(1).unwrap()["due_date"], "2099-01-31");
    expect_exit(0, run("drift m"));

    service.goals.lock().unwrap().get_mut(&1).unwrap()["due_date"] = "2098-01-31".into();
    expect_exit(2, run("drift m"));
    expect_exit(0, run("apply m --yes"));
    assert_eq!(service.writes(), ["PUT /api/v4/projects/1/goals/1"]);
    assert_eq!(goal(1).unwrap()["due_date"], "2099-01-31");

    expect_exit(0, run("export acme -d out"));
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(written.contains("goals:") && written.contains("2099-01-31"), "{written}");
    expect_exit(0, run("plan out --exit-code"));
    let unknown = place.run("check out");
    assert!(unknown.contains("goals") && unknown.ends_with("---- exit code 3\n"));

    place.write("m/shop.yaml", &RELEASE.replace("2099-01-31", "2099-01-31, state: absent"));
    let output = run("plan m");
    assert!(output.contains("error[absent]"), "{output}");
    place.write(
        "m/shop.yaml",
        &RELEASE.replace("description: The first one, due_date: 2099-01-31", "state: absent"),
    );
    let refused = run("apply m --yes");
    assert!(refused.contains("removals:acme/shop#goals"), "{refused}");
    assert!(refused.ends_with("---- exit code 4\n") && goal(1).is_some(), "{refused}");
    expect_exit(0, run("apply m --yes --ack removals:acme/shop#goals"));
    assert_eq!(service.writes(), ["DELETE /api/v4/projects/1/goals/1"]);
    let listed = run("call goal-list id=acme/shop");
    assert!(listed.contains("---- stdout\n[]\n"), "{listed}");
    server.end("-TERM");
}

#[test]
fn schemas_and_lists_of_operations_have_described_kinds() {
    let place = Workspace::new().file("kinds/goals.yaml", DESCRIPTION);
    let with = |arguments: &str| place.run(&format!("{arguments} --kinds kinds/goals.yaml"));
    assert!(with("schema manifest").contains("A goal of a team."));
    assert!(!place.run("schema manifest").contains("A goal of a team"));
    assert!(with("call --list").contains("goal-delete"));
    assert!(with("completions bash").contains("goal-delete"));
    insta::assert_snapshot!(with("call goal-edit --help"));
}

#[test]
fn aliases_of_a_described_section_and_field_are_suggested() {
    let kind = DESCRIPTION.replace("noun:", "aliases: [targets]\nnoun:");
    let kind = kind.replace("name: due_date,", "name: due_date, aliases: [deadline],");
    let place = Workspace::new().file("kinds/goals.yaml", &kind);
    place.write("m/shop.yaml", &RELEASE.replace("due_date", "deadline"));
    let field = place.run("check m --kinds kinds/goals.yaml");
    assert!(
        field.contains("unknown field `deadline`") && field.contains("use `due_date`"),
        "{field}"
    );
    place.write("m/shop.yaml", &RELEASE.replace("goals", "targets"));
    let section = place.run("check m --kinds kinds/goals.yaml");
    assert!(section.contains("use `goals`") && !section.contains("deadline"), "{section}");
}

/// Each key of an older format is answered with the one that replaces it.
#[test]
fn old_keys_of_a_description_are_reported_with_the_new_keys() {
    let mut place = Workspace::new().file("m/shop.yaml", "kind: Project\npath: acme/shop\n");
    for (old, new) in [
        ("create_only: true", "write `accepted: on_create`"),
        ("write_only: true", "write `read: never`"),
        ("read_as: x", "write `read: {as: NAME}`"),
        ("example: x", "write `examples`"),
        ("another_example: x", "write `examples`"),
        ("pattern: x", "write `valid`"),
        ("max_length: 9", "write `valid`"),
        ("tier: premium", "write `available`"),
        ("since: '16.2'", "write `available`"),
        ("only: project", "write `available`"),
        ("starts_with_path: true", "write `valid: {starts_with_path: true}`"),
        ("preset: x", "write `default: {service: VALUE}`"),
        ("created_with: x", "write `default: {create: VALUE}`"),
        ("unique: true", "write `among: unique`"),
        ("trimmed: true", "write `compare: trimmed`"),
        ("expression: true", "write `type: expression`"),
        ("lets: play", "write `grants`"),
        ("reset_by: x", "write `relations`"),
        ("limits: x", "write `relations: {limits: FIELD}`"),
        ("home paged: false", "write `traits: [lists_without_pages]` at the top"),
        ("home tier: premium", "write `available`"),
        ("home inherited_unless: x", "write `inherited`"),
        ("home list: {whole: true}", "write `inherited`"),
        ("kind entry: {argument: x}", "write the end of `path`"),
        ("kind below: {section: x, field: y}", "write the path before the name"),
        ("kind required: [title]", "write `required: on_create`"),
        ("kind document: true", "write `shape: mapping`"),
        ("kind unique: true", "write `traits: [refuses_duplicates]`"),
        ("kind write_returns_entry: true", "write `traits: [returns_entry]`"),
        ("kind denies_with_401: true", "write `traits: [denies_with_401]`"),
        ("kind read_alone: false", "write `traits: [has_no_get]`"),
        ("kind edit_parameters: []", "write a field with `accepted: by_call`"),
        ("valid: {size: {min: 1}}", "write only the value: `size: '1..255'`"),
        ("available: {scope: project}", "write `only: project`"),
        ("available: {top_level: true}", "write `only: top_level`"),
        ("relations: {limits: {switch: title}}", "write only the value: `limits: ...`"),
    ] {
        let kind = match old.split_once(' ') {
            Some(("home", old)) => format!("{DESCRIPTION}    {old}\n"),
            Some(("kind", old)) => format!("{DESCRIPTION}{old}\n"),
            _ => DESCRIPTION.replace("type: date,", &format!("type: date, {old},")),
        };
        place = place.file("kinds/old.yaml", &kind);
        let report = place.run("check m --kinds kinds/old.yaml");
        assert!(report.contains(new), "{old}: {report}");
    }
}

#[test]
fn faults_of_a_description_are_reported_with_their_places() {
    let place = Workspace::new().file("m/shop.yaml", "kind: Project\npath: acme/shop\n");
    let wrong = "section: labels
noun: goal
about: A goal of issues and merge requests.
identity: [name]
removal: nothing
fields:
  - {name: title, about: What it is called., type: text, weakens: never, valid: {pattern: '[a-'}}
  - {name: title, about: What it is for., type: text, weakens: never, accepted: on_create}
homes:
  - path: /projects/:id
  - path: /groups/:id/access_tokens/:token_id
";
    let kind = DESCRIPTION.replace("type: date,", "type: dat,").replace("noun", "nown");
    let place = place
        .file("kinds/wrong.yaml", wrong)
        .file("kinds/schema.yaml", &kind)
        .file("kinds/broken.yaml", "section: a\nnoun: [b\n")
        .file("kinds/two.yaml", &format!("{DESCRIPTION}---\n{DESCRIPTION}"))
        .file("kinds/good.yaml", DESCRIPTION);
    let story = ["wrong", "schema", "broken", "two", "missing"]
        .map(|name| place.run(&format!("check m --kinds kinds/{name}.yaml")));
    insta::assert_snapshot!(story.join("\n"));
    let twice = place.run("check m --kinds kinds/good.yaml --kinds kinds/good.yaml");
    assert!(twice.contains("there is a section `goals` already"), "{twice}");
    let reports = place.run("check m --kinds kinds/two.yaml --out json=-");
    assert!(
        reports.contains("\"code\":\"document\"") || reports.contains("\"code\": \"document\""),
        "{reports}"
    );
}

/// The author of a merge request can change everything in the folder of the manifests.
#[test]
fn a_description_in_the_folder_of_the_manifests_is_not_read() {
    let place = Workspace::new().file("m/shop.yaml", RELEASE).file("m/kind.txt", DESCRIPTION);
    for arguments in ["check m --kinds m/kind.txt", "check m/shop.yaml --kinds m/kind.txt"] {
        let refused = expect_exit(3, place.run(arguments));
        assert!(refused.contains("error[kind-description-place]"), "{refused}");
    }
    let place = place.file("safe/kind.txt", DESCRIPTION);
    let safe = place.run("check m --kinds m/../safe/kind.txt");
    assert!(safe.contains("no problems found"), "{safe}");
    place.write("undrift.yaml", "version: 1\nkinds: [kind.txt]\n");
    place.write("kind.txt", DESCRIPTION);
    let refused = place.run("check m --kinds kind.txt");
    assert!(refused.contains("error[kind-description-place]"), "the root is above: {refused}");
    assert!(place.run("check m").contains("unknown key `kinds`"));
}

/// Whoever can change the link chooses the description.
#[cfg(unix)]
#[test]
fn a_link_in_the_folder_of_the_manifests_leads_to_no_description() {
    let place = Workspace::new().file("m/shop.yaml", RELEASE).file("safe/kind.txt", DESCRIPTION);
    std::os::unix::fs::symlink("../safe/kind.txt", place.path().join("m/link.txt")).unwrap();
    std::os::unix::fs::symlink("../safe", place.path().join("m/folder")).unwrap();
    for name in ["m/link.txt", "m/folder/kind.txt"] {
        let refused = expect_exit(3, place.run(&format!("check m --kinds {name}")));
        assert!(refused.contains("error[kind-description-place]"), "{refused}");
    }
}

/// The sandbox knows a described collection only from its description, and reports state that.
#[test]
fn described_collections_are_rehearsed() {
    let gates = "section: gates
noun: gate
about: A way in.
identity: [name]
removal: nothing
traits: [refuses_duplicates]
keys: [code]
fields:
  - {name: name, about: Its name., type: text, weakens: never, accepted: on_create}
  - {name: height, about: Its height., type: integer, weakens: never, required: on_create, send_as: gate_height, read: {as: gate_height}}
  - {name: sides, about: Where it leads., type: texts, weakens: never, compare: set, with_every_edit: true}
  - {name: locked, about: Whether it is locked., type: boolean, weakens: when_off}
  - name: material
    about: What it is made of.
    type: word
    weakens: never
    words: [{word: oak, about: Wood., }, {word: iron, about: Metal.}]
  - {name: key, about: What opens it., type: secret, weakens: never}
homes:
  - path: /projects/:id/town/gates/:gate_code
    inherited: [owner!=project]
  - path: /groups/:id/gates/:gate_code
";
    let note = "`gates`: the sandbox simulates it only from its description";
    let place = Workspace::new()
        .file("kinds/gates.yaml", gates)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n")
        .file(
            "m/all.yaml",
            "kind: Project
path: acme/shop
gates:
  - {name: east, height: 3, sides: [b, a], locked: true, material: oak, key: {env: KEY}}
---
kind: Group
path: acme
gates: [{name: south, height: 1}]
",
        )
        .env("KEY", "a-secret-value");
    let run = |arguments: &str| {
        place.run(&format!("{arguments} --kinds kinds/gates.yaml --sandbox=s.db"))
    };
    insta::assert_snapshot!(run(
        "plan m --out markdown=- --out json=plan.json --out html=plan.html"
    ));
    for report in ["plan.json", "plan.html"] {
        let text = std::fs::read_to_string(place.path().join(report)).unwrap();
        let says = text.contains(note) || text.contains("\"rehearsed\": [");
        assert!(says, "{report}: {text}");
    }
    let applied = run("apply m --yes");
    assert!(applied.contains(note) && applied.ends_with("---- exit code 0\n"), "{applied}");
    let output = run("drift m");
    assert!(output.contains(note) && output.ends_with("---- exit code 0\n"), "{output}");
    for (from, to) in
        [("height: 3", "height: 4"), ("sides: [b, a], ", ""), ("height: 1}", "state: absent}")]
    {
        let text = std::fs::read_to_string(place.path().join("m/all.yaml")).unwrap();
        place.write("m/all.yaml", &text.replace(from, to));
        expect_exit(0, run("apply m --yes --ack removals:** --ack protection:**"));
        expect_exit(0, run("drift m"));
    }
    let exported = run("export acme -d out");
    assert!(exported.contains(note) && exported.contains("exit code 0"), "{exported}");
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(written.contains("height: 4") && written.contains("material: oak"), "{written}");
    let edited = run("call gate-edit id=acme/shop gate_code=1 gate_height=7 sides[]=a --yes");
    assert!(edited.contains(note) && edited.ends_with("---- exit code 0\n"), "{edited}");
    let absorbed = run("absorb acme/shop -d m --write");
    let text = std::fs::read_to_string(place.path().join("m/all.yaml")).unwrap();
    assert!(text.contains("height: 7"), "{absorbed}\n{text}");
    // The sandbox has its own version of these.
    let own =
        DESCRIPTION.replace("title", "key").replace("/goals/:goal_id", "/custom_attributes/:key");
    place.write(
        "kinds/gates.yaml",
        &own.replace("removal: nothing", "removal: nothing\ncreate: put"),
    );
    place.write("m/all.yaml", "kind: Project\npath: acme/shop\ngoals: []\n");
    let own = run("apply m --yes");
    assert!(!own.contains("rehearsed") && own.ends_with("---- exit code 0\n"), "{own}");
}

/// The sandbox has only an empty list of boards, which nothing can be added to.
#[test]
fn a_collection_that_is_always_empty_is_rehearsed_by_its_description() {
    let boards = DESCRIPTION.replace("goal", "board").replace("title", "name");
    let place = Workspace::new()
        .file("kinds/boards.yaml", &boards)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n")
        .file("m/all.yaml", "kind: Project\npath: acme/shop\nboards: [{name: '1.0'}]\n");
    let run = |arguments: &str| {
        place.run(&format!("{arguments} --kinds kinds/boards.yaml --sandbox=s.db"))
    };
    let applied = expect_exit(0, run("apply m --yes"));
    assert!(
        applied.contains("`boards`: the sandbox simulates it only from its description"),
        "{applied}"
    );
    expect_exit(0, run("drift m"));
}

/// A document may have a collection below it.
#[test]
fn a_collection_below_the_path_of_a_document_is_separate() {
    let pages = "section: pages
noun: page
about: Where the pages are.
shape: mapping
removal: nothing
fields:
  - {name: title, about: What it is called., type: text, weakens: never}
homes:
  - path: /projects/:id/pages
";
    let domains =
        DESCRIPTION.replace("goals\nnoun", "domains\nnoun").replace("noun: goal", "noun: domain");
    let domains = domains.replace("/goals/:goal_id", "/pages/domains/:domain_id");
    let place = Workspace::new()
        .file("kinds/a.yaml", pages)
        .file("kinds/b.yaml", &domains)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n")
        .file(
            "m/all.yaml",
            "kind: Project\npath: acme/shop\npages: {title: new}\ndomains: [{title: '1.0'}]\n",
        );
    for kinds in
        ["--kinds kinds/a.yaml --kinds kinds/b.yaml", "--kinds kinds/b.yaml --kinds kinds/a.yaml"]
    {
        let run = |arguments: &str| place.run(&format!("{arguments} {kinds} --sandbox=s.db"));
        expect_exit(0, run("apply m --yes"));
        expect_exit(0, run("drift m"));
    }
    // Entries of a collection have the paths below it.
    place.write("kinds/a.yaml", &DESCRIPTION.replace("/goals", "/pages"));
    let refused = place.run("check m --kinds kinds/a.yaml --kinds kinds/b.yaml");
    assert!(refused.contains("undrift already knows"), "{refused}");
}

/// A single object is edited at its path, and has no entries.
#[test]
fn a_described_document_is_rehearsed() {
    let town = "section: town
noun: town
about: What is around a project.
shape: mapping
removal: nothing
edit: patch
fields:
  - name: walls
    about: How strong they are.
    type: word
    weakens: when_later
    words: [{word: stone, about: Strong.}, {word: wood, about: Weak.}]
  - {name: mayor, about: Who leads it., type: text, weakens: never}
homes: [{path: '/projects/:id/town'}]
";
    let place = Workspace::new()
        .file("kinds/town.yaml", town)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n")
        .file("m/all.yaml", "kind: Project\npath: acme/shop\ntown: {walls: stone, mayor: Ada}\n");
    let run =
        |arguments: &str| place.run(&format!("{arguments} --kinds kinds/town.yaml --sandbox=s.db"));
    expect_exit(0, run("apply m --yes"));
    expect_exit(0, run("drift m"));
    place.write("m/all.yaml", "kind: Project\npath: acme/shop\ntown: {walls: wood}\n");
    let refused = run("apply m --yes");
    assert!(refused.contains("would lower `walls` from stone to wood"), "{refused}");
    expect_exit(0, run("apply m --yes --ack protection:**"));
    let exported = run("export acme -d out");
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(
        written.contains("walls: wood") && written.contains("mayor: Ada"),
        "{exported}{written}"
    );
    let listed = run("call --list");
    assert!(listed.contains("town-edit") && !listed.contains("town-delete"), "{listed}");
}

/// An entry that the service adds by PUT is named in the path, for collections of the sandbox and
/// for described ones; the name of a project is sent as its id.
#[test]
fn entries_added_by_put_have_their_name_in_the_path() {
    let attributes = "section: attributes
noun: attribute
about: A word that administrators keep of a project.
identity: [key]
removal: nothing
create: put
traits: [lists_without_pages]
fields:
  - {name: key, about: Its name., type: text, weakens: never, accepted: on_create}
  - {name: value, about: What is kept., type: text, weakens: never, required: on_create}
homes: [{path: '/projects/:id/custom_attributes/:key'}]
";
    let bridges = "section: bridges
noun: bridge
about: A way to a project.
identity: [name]
removal: nothing
create: put
fields:
  - {name: name, about: Its name., type: text, weakens: never, accepted: on_create}
  - {name: to, about: The project it leads to., type: text, weakens: never, names: project, send_as: to_id}
homes: [{path: '/projects/:id/bridges/:name'}]
";
    let ways = "section: ways
noun: way
about: What leads to a project.
identity: [to]
removal: nothing
traits: [refuses_duplicates]
edit: replace
keys: [to_id]
fields:
  - {name: to, about: The project it leads to., type: text, weakens: never, accepted: on_create, names: project, send_as: to_id, read: {as: to_path}}
  - {name: length, about: How far it is., type: integer, weakens: never}
homes: [{path: '/projects/:id/ways/:to_id'}]
";
    let manifest = "kind: Project
path: acme/shop
ways: [{to: acme/Tool, length: 3}]
attributes: [{key: cost centre/7, value: a}]
bridges: [{name: north, to: acme/Tool}]
";
    let place = Workspace::new()
        .file("kinds/attributes.yaml", attributes)
        .file("kinds/bridges.yaml", bridges)
        .file("kinds/ways.yaml", ways)
        .file(
            "m/sandbox.yaml",
            "groups: [{path: acme}]\nprojects: [{path: acme/shop}, {path: acme/tool}, {path: acme/other}]\n",
        )
        .file("m/all.yaml", manifest);
    let run = |arguments: &str| {
        let kinds =
            "--kinds kinds/attributes.yaml --kinds kinds/bridges.yaml --kinds kinds/ways.yaml";
        place.run(&format!("{arguments} {kinds} --sandbox=s.db"))
    };
    expect_exit(0, run("apply m --yes --record run.jsonl"));
    expect_exit(0, run("drift m"));
    for (from, to) in [
        ("value: a", "value: b"),
        ("north, to: acme/Tool", "north, to: acme/other"),
        ("length: 3", "length: 4"),
    ] {
        place.write("m/all.yaml", &manifest.replace(from, to));
        expect_exit(2, run("drift m"));
        expect_exit(0, run("apply m --yes"));
        expect_exit(0, run("drift m"));
    }
    let listed = run("call attribute-list id=acme/shop") + &run("call bridge-list id=acme/shop");
    assert!(listed.contains("cost centre/7") && listed.contains("\"to_id\": 2"), "{listed}");
    let exported = run("export acme -d out");
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(written.contains("to: acme/tool"), "{exported}{written}");
    let removed = manifest
        .replace("north, to: acme/Tool", "north, state: absent")
        .replace("length: 3", "state: absent");
    place.write("m/all.yaml", &removed);
    expect_exit(0, run("apply m --yes --ack removals:**"));
    place.write("m/all.yaml", &manifest.replacen("acme/Tool", "acme/gone", 1));
    let unknown = run("plan m");
    assert!(unknown.contains("the service has no project `acme/gone`"), "{unknown}");
}

/// A described list of grants is planned, guarded and changed row by row, like a protection that
/// undrift knows.
#[test]
fn described_grants_are_rehearsed_row_by_row() {
    let kind = "section: town_gates
noun: town gate
about: A gate with who may open it.
identity: [name]
removal: weakens
traits: [refuses_duplicates, returns_entry]
fields:
  - {name: name, about: Its name., type: text, weakens: never, accepted: on_create}
  - {name: allowed_to_open, about: Who may open it., type: grants, weakens: when_wider, grants: {lets: open, single_level_as: open_level}, read: {as: open_levels}}
homes: [{path: '/projects/:id/town_gates/:name'}]
";
    let manifest = |rows: &str| {
        format!(
            "kind: Project
path: acme/shop
members: [{{user: alice, access_level: developer}}]
town_gates: [{{name: north, allowed_to_open: [{rows}]}}]
"
        )
    };
    let (one, first) = ("{access_level: maintainer}", "{access_level: maintainer}, {user: alice}");
    let place = Workspace::new()
        .file("kinds/gates.yaml", kind)
        .file(
            "m/sandbox.yaml",
            "tier: premium\nusers: [{username: alice}]\ngroups: [{path: acme}]\nprojects: [{path: acme/shop}]\n",
        )
        .file("m/all.yaml", &manifest(one));
    let run = |arguments: &str| {
        place.run(&format!("{arguments} --kinds kinds/gates.yaml --sandbox=s.db"))
    };
    expect_exit(0, run("apply m --yes"));
    expect_exit(0, run("drift m"));
    place.write("m/all.yaml", &manifest(first));
    let refused = run("apply m --yes");
    assert!(refused.contains("would let more people open"), "{refused}");
    expect_exit(0, run("apply m --yes --ack protection:**"));

    let wider = "{access_level: developer}, {user: alice}";
    place.write("m/all.yaml", &manifest(wider));
    let refused = expect_exit(4, run("apply m --yes"));
    assert!(refused.contains("would let more people open"), "{refused}");
    expect_exit(0, run("apply m --yes --ack protection:**"));
    let listed = run("call town-gate-list id=acme/shop");
    let rows: Vec<_> = listed.lines().filter(|line| line.contains("_level\":")).collect();
    assert_eq!(rows.len(), 2, "{listed}");
    expect_exit(0, run("drift m"));

    let edit = "call town-gate-edit id=acme/shop name=north --yes";
    expect_exit(0, run(&format!("{edit} allowed_to_open=[{{\"id\":3,\"access_level\":40}}]")));
    let absorbed = run("absorb acme/shop -d m --write");
    let text = std::fs::read_to_string(place.path().join("m/all.yaml")).unwrap();
    assert!(text.contains("maintainer") && text.contains("alice"), "{absorbed}\n{text}");
    let exported = run("export acme -d out");
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(exported.contains("exit code 0") && written.contains("user: alice"), "{written}");
}

/// Collections below the entries of another one, listed by a request and within those.
#[test]
fn entries_below_a_described_section_are_rehearsed() {
    let field = |name: &str| format!("{{name: {name}, about: A name., type: text, weakens: never");
    let below = |section: &str, noun: &str, within: &str| {
        format!(
            "section: {section}
noun: {noun}
about: Something at a gate.
identity: [gate, name]
removal: nothing
traits: [refuses_duplicates]
fields:
  - {}}}
  - {}, accepted: on_create}}
  - {}}}
homes:
  - path: /projects/:id/town/gates/:gate_id/{section}/:{noun}_id
{within}",
            field("gate"),
            field("name"),
            field("note")
        )
    };
    let gates = format!(
        "section: gates
noun: gate
about: A way in.
identity: [name]
removal: nothing
traits: [refuses_duplicates]
fields:
  - {}, accepted: on_create}}
homes:
  - path: /projects/:id/town/gates/:gate_id
",
        field("name")
    );
    let declared = "kind: Project
path: acme/shop
gates: [{name: east}, {name: west}]
guards: [{gate: east, name: Ada, note: tall}, {gate: west, name: Ada, note: small}]
keys: [{gate: east, name: golden, note: heavy}]
unlisted: {guards: delete}
";
    let place = Workspace::new()
        .file("kinds/gates.yaml", &gates)
        .file("kinds/guards.yaml", &below("guards", "guard", ""))
        .file("kinds/keys.yaml", &below("keys", "key", "    in: keys\n"))
        .file("m/sandbox.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n")
        .file("m/all.yaml", declared);
    let run = |arguments: &str| {
        let kinds = ["gates", "guards", "keys"].map(|name| format!(" --kinds kinds/{name}.yaml"));
        place.run(&format!("{arguments}{} --sandbox=s.db", kinds.concat()))
    };
    let alone = place.run("check m --kinds kinds/guards.yaml");
    assert!(alone.contains("must start with the path of a section"), "{alone}");
    let applied = expect_exit(0, run("apply m --yes --full"));
    assert!(applied.contains("guards/east@Ada"), "{applied}");
    expect_exit(0, run("plan m --exit-code"));
    let other = declared.replace("small", "smaller").replace("heavy", "light");
    place.write("m/all.yaml", &other.replace("{gate: east, name: Ada, note: tall}, ", ""));
    let changed = run("apply m --yes --full");
    assert!(changed.contains("guards/west@Ada"), "{changed}");
    assert!(changed.contains("keys/east@golden"), "{changed}");
    assert!(!changed.contains("guards/east@Ada"), "that gate is not named any more: {changed}");
    expect_exit(0, run("export acme -d out"));
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    for line in ["note: tall", "note: smaller", "note: light"] {
        assert!(written.contains(line), "{line}: {written}");
    }
    expect_exit(0, run("plan out --exit-code"));
}

#[test]
fn a_changed_approval_rule_is_shown_without_defaults() {
    let seed = "tier: premium
groups:
  - {path: acme, visibility: internal, members: [{user: root, access_level: owner}]}
  - {path: other, visibility: internal}
projects: [{path: acme/shop, branches: [main], settings: {visibility: internal}}]
";
    let shop = "kind: Project
path: acme/shop
shares: [{group: other, group_access: developer}]
protected_environments:
  - name: production
    deploy_access_levels: [{access_level: maintainer}]
    approval_rules: [{group: other, required_approvals: 1}, {access_level: maintainer, required_approvals: 2}]
";
    let place = Workspace::new().file("sandbox.yaml", seed).file("shop.yaml", shop);
    assert_eq!(place.exit_code("apply --sandbox --yes"), 0);
    place.write("shop.yaml", &shop.replace("required_approvals: 2", "required_approvals: 3"));
    let text = place.run("plan --sandbox");
    let rows = |number: u8| {
        format!("[{{group: other}}, {{access_level: maintainer, required_approvals: {number}}}]")
    };
    assert!(text.contains(&format!("{} → {}", rows(2), rows(3))), "{text}");
}
