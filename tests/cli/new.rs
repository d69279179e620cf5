//! `undrift new`: documents that fit the existing manifests, and refusals of others.
#![cfg(feature = "sandbox")]

use crate::harness::Workspace;

fn place() -> Workspace {
    Workspace::new().file(
        "m/rules.yaml",
        "kind: Profile\nname: service\nneeds: [port]\nvariables:\n  - {key: PORT, value: {text: '{port}'}}\n---\nkind: Project\npath: acme/shop\nuses: [service]\nparams: {port: 1}\n",
    )
}

#[test]
fn a_document_is_printed_or_written_where_it_will_be_found() {
    let place = place();
    let without = place.run("new acme/cart -d m");
    assert!(without.contains("kind: Project\npath: acme/cart\n---- exit code 0"), "{without}");
    let new = "new acme/cart --uses service --param port=8080 -d m";
    insta::assert_snapshot!(place.run(&format!("{new} --create")));
    let mut output = place.run(&format!("{new} -o m/cart.yaml"));
    output += &place.run("check m");
    insta::assert_snapshot!(output);
    let written = std::fs::read_to_string(place.path().join("m/cart.yaml")).unwrap();
    assert_eq!(
        written,
        "kind: Project\npath: acme/cart\nuses: [service]\nparams: {port: '8080'}\n"
    );
}

#[test]
fn a_document_that_does_not_fit_is_refused() {
    let place = place().file("empty/undrift.yaml", "version: 1\n");
    let mut output = String::new();
    for options in [
        "acme/cart --uses service",
        "acme/cart --uses servce --param port=1",
        "Acme/shop --uses service --param port=1",
        "acme//cart --uses service --param port=1",
        "acme/cart --uses service --param port=1 -o m/rules.yaml",
        "acme/cart --uses service --param port=1 -o cart.yaml",
        "acme/cart --uses service --param port=1 -o m/cart.txt",
        "acme/cart --uses service --param port",
    ] {
        output += &place.run(&format!("new {options} -d m"));
    }
    let mut names: Vec<_> = std::fs::read_dir(place.path().join("m")).unwrap().collect();
    assert_eq!(names.len(), 1, "{:?}", names.pop());
    insta::assert_snapshot!(output);
}
