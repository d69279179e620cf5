//! Documents with several paths, from a saved plan to an acknowledgement.
#![cfg(feature = "sandbox")]

use crate::harness::Workspace;

const VARIABLES: &str = "\
settings: {description: {text: 'App {title}'}}
variables:
  - {key: A, value: x}
  - {key: B, value: x}
";

/// The document of `acme/a` and so on.
fn document(project: &str, variables: &str) -> String {
    format!("kind: Project\npath: acme/{project}\nparams: {{title: {project}}}\n{variables}")
}

/// One document for these projects.
fn shared(projects: &[&str], variables: &str) -> String {
    let paths = projects.iter().map(|name| format!("  acme/{name}: {{title: {name}}}\n"));
    format!("kind: Project\npaths:\n{}{variables}", paths.collect::<String>())
}

/// A place with three projects that match documents of their own.
fn three_projects() -> Workspace {
    let documents = ["a", "b", "c"].map(|name| document(name, VARIABLES)).join("---\n");
    let rule = "kind: Defaults\nmatch: {path: acme/*}\ncreate: true\n";
    let place = Workspace::new()
        .file("m/apps.yaml", &documents)
        .file("m/rules.yaml", rule)
        .file("m/sandbox.yaml", "groups: [{path: acme}]\n");
    assert_eq!(place.exit_code("apply m --sandbox=s.db --yes"), 0);
    place
}

fn call(place: &Workspace, what: &str) {
    assert_eq!(place.exit_code(&format!("call {what} --sandbox=s.db --yes")), 0);
}

fn apps(place: &Workspace) -> String {
    std::fs::read_to_string(place.path().join("m/apps.yaml")).unwrap()
}

#[test]
fn a_saved_plan_stays_valid_when_its_projects_move_into_one_document() {
    let place = three_projects();
    let changed = VARIABLES.replace("A, value: x", "A, value: y");
    let documents = ["a", "b", "c"].map(|name| document(name, &changed)).join("---\n");
    place.write("m/apps.yaml", &documents);
    assert_eq!(place.exit_code("plan m -o saved.json --sandbox=s.db"), 0);
    place.write("m/apps.yaml", &shared(&["a", "b", "c"], &changed));
    let applied = place.run("apply saved.json --sandbox=s.db --yes");
    assert!(applied.contains("applied: 3 done"), "{applied}");
    let plan = place.run("plan m --sandbox=s.db");
    assert!(plan.contains("no changes: 3 projects"), "{plan}");
}

#[test]
fn a_change_by_hand_of_one_path_is_written_into_a_document_of_its_own() {
    let place = three_projects();
    place.write("m/apps.yaml", &shared(&["a", "b", "c"], VARIABLES));
    call(&place, "variable-update id=acme/b key=A value=z");
    assert_eq!(place.exit_code("absorb acme/b -d m --sandbox=s.db --write"), 0);
    let own = document("b", &VARIABLES.replace("A, value: x", "A, value: z"));
    let absorbed = format!("{}---\n{own}", shared(&["a", "c"], VARIABLES));
    assert_eq!(apps(&place), absorbed);
    call(&place, "label-create id=acme/c name=bug color=#ff0000");
    let update = "export acme/c -d m --update --sections labels --sandbox=s.db";
    assert_eq!(place.exit_code(update), 0);
    let labelled = format!("{VARIABLES}labels:\n  - {{name: bug, color: '#ff0000'}}\n");
    let updated =
        format!("{}---\n{own}---\n{}", shared(&["a"], VARIABLES), document("c", &labelled));
    assert_eq!(apps(&place), updated);
    let plan = place.run("plan m --sandbox=s.db");
    assert!(plan.contains("no changes: 3 projects"), "{plan}");
}

#[test]
fn an_acknowledgement_counts_the_objects_of_all_paths() {
    let place = three_projects();
    let removed = VARIABLES.replace("value: x", "state: absent");
    place.write("m/apps.yaml", &shared(&["a", "b", "c"], &removed));
    for (at_most, exit) in [(5, 4), (6, 0)] {
        let acknowledge = "kind: Acknowledge\nguard: removals\nat: acme/*#variables\n";
        place.write("m/ack.yaml", &format!("{acknowledge}at_most: {at_most}\n"));
        let plan = place.run("plan m --sandbox=s.db");
        assert!(plan.contains(&format!("exit code {exit}\n")), "{plan}");
    }
}
