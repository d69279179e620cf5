//! The picture in the README: a plan of a small service, as a terminal shows it.

use crate::{
    assert_current,
    shown::{URL, Workspace},
};

const SEED: &str = "
users: [{username: alice}, {username: bob}, {username: carol}]
groups: [{path: acme, visibility: internal}]
projects:
  - path: acme/shop
    settings: {visibility: internal, merge_method: merge}
    variables: [{key: LOG_LEVEL, value: debug}, {key: OLD_TOKEN, value: an-old-token}]
    members: [{user: bob, access_level: owner}, {user: carol, access_level: developer}]
";
const MANIFEST: &str = "\
kind: Project
path: acme/shop
settings: {visibility: internal, merge_method: ff, topics: [web]}
variables:
  - {key: LOG_LEVEL, value: info}
  - {key: TOKEN, environment_scope: prod/*, value: {env: PROD_TOKEN}, masked: true}
members:
  - {user: bob, access_level: maintainer}
  - {user: alice, access_level: maintainer}
unlisted: {variables: delete}
";

#[test]
fn the_picture_shows_a_real_plan() {
    let mut place = Workspace::new();
    place.serve(SEED);
    place.write("manifests/shop.yaml", MANIFEST);
    let options = "--color always --url https://gitlab.example.org";
    let plan = format!(
        "UNDRIFT_TOKEN=… PROD_TOKEN=an-example-of-a-token COLUMNS=90 undrift plan manifests {options}"
    );
    let output = place.run(&plan);
    let screen = String::from_utf8_lossy(&output.stdout).replace("the sandbox", URL);
    assert_eq!(output.status.code(), Some(4), "a guard asks: {screen}");
    let screen = format!("$ undrift plan manifests\n{screen}");
    assert_current(
        "docs/plan.svg",
        &anstyle_svg::Term::new().min_width_px(780).render_svg(&screen),
    );
}
