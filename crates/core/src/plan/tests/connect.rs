//! Tests of relations between steps of different containers.

use super::{order::access_effects, *};
use crate::{
    diff::{Edge, FieldChange},
    kind::Id,
    operation::{PROJECT_FORK, SHARE_CREATE, id_placeholder},
    plan::connect::add_edges,
    secret::Reference,
    value::{Fields, Value},
};

/// A step of an entry of `section` in the container at `path`.
fn entry_step(path: &str, section: &'static str, effects: Vec<Effect>) -> Step {
    let address = Address::container(path.into()).with_section(section).with_entry("x");
    Step {
        effects,
        ..Step::new(Scope::Project, address, Action::Update, origin(1), Vec::new(), Vec::new())
    }
}

/// The addresses of the edges of each step.
fn edges(steps: &[Step]) -> Vec<Vec<String>> {
    let addresses = |step: &Step| step.after.iter().map(|edge| edge.address.to_string()).collect();
    steps.iter().map(addresses).collect()
}

#[test]
fn a_step_that_needs_the_id_of_a_group_follows_its_creation() {
    let body = Fields::from([("group_id".to_owned(), id_placeholder("acme/neo").into())]);
    let request = SHARE_CREATE
        .request()
        .with_argument("id", 7)
        .with_fields(body)
        .with_id_fields(["group_id".into()]);
    let address =
        Address::container("acme/shop".into()).with_section("shares").with_entry("acme/neo");
    let share = Step::new(
        Scope::Project,
        address,
        Action::Create,
        origin(1),
        Vec::new(),
        vec![request.into()],
    );
    let mut steps = vec![share, entry_step("acme/neo", "members", access_effects(3, 0, 30))];
    assert!(add_edges(&mut steps).is_empty());
    assert_eq!(edges(&steps), [vec!["acme/neo"], vec![]]);
}

/// Edges and missing secrets are found without the requests of a step.
#[test]
fn references_of_dropped_requests_are_kept() {
    let secret = Value::Secret(Reference::Env("TOKEN".into()));
    let body = Fields::from([
        ("description".to_owned(), "plain".into()),
        ("group_id".to_owned(), id_placeholder("acme/neo").into()),
        ("token".to_owned(), secret.clone()),
    ]);
    let request =
        SHARE_CREATE.request().with_argument_by_path("id", "acme/shop", Some(7)).with_fields(body);
    let request = request.with_id_fields(["group_id".into()]);
    for section in [Some("shares"), None] {
        let address = Address { section, ..Address::container("acme/shop".into()) };
        let (action, calls) = (Action::Create, vec![request.clone().into()]);
        let mut step = Step::new(Scope::Project, address, action, origin(1), Vec::new(), calls);
        for _ in 0..2 {
            assert_eq!(step.awaited_objects().collect::<Vec<_>>(), ["acme/neo"]);
            assert_eq!(step.named_paths().collect::<Vec<_>>(), ["acme/shop"]);
            assert_eq!(step.secrets_and_files().collect::<Vec<_>>(), [&secret]);
            step.drop_requests();
            // Requests for the container itself stay: apply compares them with a container created meanwhile.
            assert_eq!(step.planned_calls.is_empty(), section.is_some());
        }
    }
}

#[test]
fn a_creation_follows_changes_of_the_group_settings_that_it_inherits() {
    let new_project = || visibility_step("acme/web/shop", "", "private");
    let rule = || entry_step("acme", "push_rule", vec![Effect::AffectsNewContainers]);
    let created = vec![Effect::provides(Capability::Exists), Effect::AffectsNewContainers];
    for (mut steps, expected) in [
        (vec![new_project(), rule()], vec![vec!["acme#push_rule/x"], vec![]]),
        (vec![new_project(), entry_step("acme", "settings", created)], vec![vec![], vec![]]),
        (vec![entry_step("acme/web/shop", "labels", Vec::new()), rule()], vec![vec![], vec![]]),
        (vec![visibility_step("other/shop", "", "private"), rule()], vec![vec![], vec![]]),
    ] {
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), expected);
    }
}

#[test]
fn projects_are_created_while_their_group_lets_somebody_create_them() {
    let level_step = |before: &str, after: &str, effects: Vec<Effect>| {
        let mut step = Step { scope: Scope::Group, ..entry_step("acme", "settings", effects) };
        let [before, after] = [before, after].map(|word| Shown::Value(word.into()));
        step.changes.push(FieldChange::new("project_creation_level", before, after, None));
        step
    };
    let new_project = |path: &str| visibility_step(path, "", "private");
    let close_creation = || level_step("developer", "noone", Vec::new());
    let settings = "acme#settings/x";
    for (mut steps, expected) in [
        (
            vec![close_creation(), new_project("acme/shop")],
            vec![vec!["acme/shop#settings/x"], vec![]],
        ),
        (
            vec![level_step("noone", "owner", Vec::new()), new_project("acme/shop")],
            vec![vec![], vec![settings]],
        ),
        (
            vec![level_step("owner", "developer", Vec::new()), new_project("acme/shop")],
            vec![vec![], vec![]],
        ),
        // The setting counts only directly in the group.
        (vec![close_creation(), new_project("acme/web/shop")], vec![vec![], vec![]]),
        (
            vec![close_creation(), entry_step("acme/shop", "labels", Vec::new())],
            vec![vec![], vec![]],
        ),
    ] {
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), expected);
    }
    let mut steps = vec![
        level_step("developer", "noone", vec![Effect::AffectsNewContainers]),
        new_project("acme/shop"),
    ];
    assert!(add_edges(&mut steps).is_empty());
    assert_eq!(edges(&steps), [vec!["acme/shop#settings/x"], vec![]]);
    // New projects do not inherit a description.
    let mut group = level_step("developer", "noone", vec![Effect::AffectsNewContainers]);
    group.changes.push(FieldChange::new("description", Shown::Absent, Shown::Absent, None));
    assert!(add_edges(&mut [group, new_project("acme/shop")]).is_empty());
    // The new project must inherit another setting that the same step changes.
    let mut group = level_step("developer", "noone", vec![Effect::AffectsNewContainers]);
    group.changes.push(FieldChange::new("default_branch", Shown::Absent, Shown::Absent, None));
    let problems = add_edges(&mut [group, new_project("acme/shop"), new_project("acme/web")]);
    // The step of the group is refused, not the steps of the projects: without the projects, the
    // step of the group would forbid them in all later runs.
    let addresses: Vec<_> = problems.iter().map(|problem| problem.address.to_string()).collect();
    assert_eq!(addresses, ["acme#settings/x"]);
    assert_eq!(
        problems[0].message,
        "`project_creation_level` of `acme` lets nobody create projects, but a later step of this run needs another value"
    );
}

/// A step that creates the project at `path` as a fork of `upstream`, which the run creates too.
fn fork_step(path: &str, upstream: &str) -> Step {
    let request = PROJECT_FORK.request().with_argument_by_path("id", upstream, None);
    let address = Address::container(path.into());
    let calls = vec![request.into()];
    Step::new(Scope::Project, address, Action::Create, origin(1), Vec::new(), calls)
}

#[test]
fn a_fork_follows_its_source_and_a_circle_is_a_problem() {
    let reason = |steps: &[Step]| steps[0].after[0].reason;
    let mut steps = vec![
        fork_step("acme/b", "Acme/A"),
        fork_step("acme/a", "acme/up"),
        fork_step("acme/up", "x/y"),
    ];
    assert!(add_edges(&mut steps).is_empty());
    assert_eq!(edges(&steps), [vec!["acme/a"], vec!["acme/up"], vec!["x/y"]]);
    assert_eq!(reason(&steps), "the project must exist");
    let mut steps = vec![
        fork_step("acme/a", "acme/b"),
        fork_step("acme/b", "acme/A"),
        fork_step("c", "acme/a"),
        fork_step("d", "d"),
    ];
    let problems = add_edges(&mut steps);
    let codes: Vec<_> = problems.iter().map(|p| (p.address.to_string(), p.code)).collect();
    let circular = |path: &str| (path.to_owned(), "circular");
    assert_eq!(codes, ["acme/a", "acme/b", "d"].map(circular));
}

#[test]
fn steps_that_wait_for_each_other_are_a_problem() {
    let with_edges = |step: Step, addresses: &[&'static str]| {
        let edge = |text: &&'static str| {
            let (path, section) = text.split_once('#').unwrap();
            let section = Address::container(path.into()).with_section(section);
            let address = if path == "a" { section } else { section.with_entry("x") };
            Edge { address, reason: "of a rule" }
        };
        Step { after: addresses.iter().map(edge).collect(), ..step }
    };
    let steps = |first: &[&'static str]| {
        vec![
            entry_step("a", "members", Vec::new()),
            with_edges(entry_step("a", "variables", Vec::new()), first),
            with_edges(entry_step("b", "labels", Vec::new()), &["c#labels"]),
            with_edges(entry_step("c", "labels", Vec::new()), &["b#members"]),
            with_edges(entry_step("d", "labels", Vec::new()), &["c#labels", "d#variables"]),
        ]
    };
    assert!(add_edges(&mut steps(&["a#members", "a#variables"])).is_empty());
    let mut cyclic_steps = steps(&["a#members"]);
    cyclic_steps.insert(3, with_edges(entry_step("b", "members", Vec::new()), &["b#labels"]));
    let problems = add_edges(&mut cyclic_steps);
    let lines: Vec<_> = problems.iter().map(|p| format!("{} {}", p.address, p.code)).collect();
    assert_eq!(
        lines,
        ["b#labels/x", "b#members/x", "c#labels/x"].map(|at| format!("{at} circular"))
    );
    assert_eq!(
        problems[0].message,
        "`b#labels/x` comes after `c#labels/x`, which comes after `b#members/x`, which comes after `b#labels/x`"
    );
}

#[test]
fn ordering_time_grows_linearly_with_steps() {
    let [members, variables] = ["members", "variables"];
    crate::steps::assert_linear_growth("steps that follow a section", |n| {
        let section = |name| Address::container("acme/shop".into()).with_section(name);
        let new_step = |index: usize, name: &'static str, after: Option<&'static str>| {
            let edge = |name| Edge { address: section(name), reason: "of a rule" };
            let address = section(name).with_entry(format!("{index}"));
            let step =
                Step::new(Scope::Project, address, Action::Create, origin(1), vec![], vec![]);
            Step { after: after.into_iter().map(edge).collect(), ..step }
        };
        let first_steps = (0..n).map(|i| new_step(i, members, None));
        let mut steps: Vec<_> =
            first_steps.chain((0..n).map(|at| new_step(at, variables, Some(members)))).collect();
        assert!(add_edges(&mut steps).is_empty());
    });
    crate::steps::assert_linear_growth("steps that a group forbids", |n| {
        let mut group = Step { scope: Scope::Group, ..entry_step("acme", "settings", Vec::new()) };
        let [before, after] = [false, true].map(|flag| Shown::Value(flag.into()));
        group.changes.push(FieldChange::new("membership_lock", before, after, None));
        let member = |at: usize| {
            let address = Address::container("acme/shop".into())
                .with_section(members)
                .with_entry(format!("{at}"));
            let step =
                Step::new(Scope::Project, address, Action::Create, origin(1), vec![], vec![]);
            let label = Address::container("acme/shop".into()).with_section("labels");
            Step { after: vec![Edge { address: label, reason: "of a rule" }], ..step }
        };
        let labels = (0..n).map(|index| Step {
            address: Address::container("acme/shop".into())
                .with_section("labels")
                .with_entry(format!("{index}")),
            ..entry_step("acme/shop", "labels", Vec::new())
        });
        let mut steps: Vec<_> =
            std::iter::once(group).chain(labels).chain((0..n).map(member)).collect();
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(steps[0].after.len(), n);
    });
}

/// A step that changes the visibility of the container at `path`; `before` is empty for a creation.
fn visibility_step(path: &str, before: &str, after: &str) -> Step {
    let is_new = before.is_empty();
    let before = (!is_new).then(|| before.to_owned());
    let visibility = Effect::visibility(before, after);
    let exists = is_new.then_some(Effect::provides(Capability::Exists));
    entry_step(path, "settings", exists.into_iter().chain([visibility]).collect())
}

#[test]
fn visibility_is_raised_top_down_and_lowered_bottom_up() {
    let (private, internal, public) = ("private", "internal", "public");
    for (steps, expected) in [
        // The edge leads to the nearest widened group above, which need not be the parent.
        (
            vec![
                visibility_step("a", private, public),
                visibility_step("a/b", private, public),
                visibility_step("a/b/c/d", internal, public),
            ],
            vec![vec![], vec!["a#settings/x"], vec!["a/b#settings/x"]],
        ),
        (
            vec![visibility_step("a", private, public), visibility_step("a/new", "", public)],
            vec![vec![], vec!["a#settings/x"]],
        ),
        (
            vec![
                visibility_step("a", public, private),
                visibility_step("a/b", public, internal),
                visibility_step("a/b/c", public, private),
                visibility_step("a/d", internal, private),
            ],
            vec![
                vec!["a/b#settings/x", "a/d#settings/x"],
                vec!["a/b/c#settings/x"],
                vec![],
                vec![],
            ],
        ),
        (
            vec![
                visibility_step("a", public, private),
                visibility_step("ab/c", public, private),
                visibility_step("a/b", private, internal),
            ],
            vec![vec![], vec![], vec![]],
        ),
    ] {
        let mut steps = steps;
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), expected);
    }
}

/// A visibility that was not read counts as private.
#[test]
fn a_step_from_unknown_to_private_visibility_has_no_edges() {
    let unread_visibility =
        |path: &str| entry_step(path, "settings", vec![Effect::visibility(None, "private")]);
    let mut steps = vec![
        unread_visibility("a"),
        unread_visibility("a/b"),
        visibility_step("a/c", "public", "private"),
    ];
    assert!(add_edges(&mut steps).is_empty());
    assert_eq!(edges(&steps), vec![vec![""; 0]; 3]);
}

#[test]
fn nothing_becomes_more_visible_than_its_group() {
    let group = |before: &str, after: &str| Step {
        scope: Scope::Group,
        ..visibility_step("acme", before, after)
    };
    let find_problems = |steps: Vec<Step>| -> Vec<String> {
        let mut steps = steps;
        add_edges(&mut steps).into_iter().map(|p| format!("{} {}", p.address, p.message)).collect()
    };
    let message =
        "it would be public in the group `acme`, which would be internal: the service refuses that";
    let shop = |before: &str, after: &str| visibility_step("acme/web/shop", before, after);
    for before in ["", "private"] {
        assert_eq!(
            find_problems(vec![group("", "internal"), shop(before, "public")]),
            [format!("acme/web/shop#settings/x {message}")]
        );
    }
    for (inner, outer) in [("internal", "internal"), ("private", "public")] {
        assert_eq!(find_problems(vec![group("private", outer), shop("", inner)]), [] as [&str; 0]);
    }
    // A new group without a visibility is private. A restored group is not new.
    let unset_group = |action| Step {
        effects: vec![Effect::provides(Capability::Exists)],
        ..Step::new(
            Scope::Group,
            Address::container("acme".into()),
            action,
            origin(1),
            vec![],
            vec![],
        )
    };
    assert_eq!(find_problems(vec![unset_group(Action::Create), shop("", "internal")]).len(), 1);
    assert_eq!(
        find_problems(vec![unset_group(Action::Create), shop("", "private")]),
        [] as [&str; 0]
    );
    assert_eq!(
        find_problems(vec![unset_group(Action::Update), shop("", "internal")]),
        [] as [&str; 0]
    );
    // A project is not a group, and other groups do not count.
    let other = Step { scope: Scope::Group, ..visibility_step("acm", "", "private") };
    let project = visibility_step("acme", "", "private");
    assert_eq!(find_problems(vec![other, project, shop("", "public")]), [] as [&str; 0]);
}

#[test]
fn a_level_below_one_granted_in_a_group_above_is_a_problem() {
    let find_problems = |group_effects: Vec<Effect>, project_effects: Vec<Effect>| -> Vec<String> {
        let mut steps = vec![
            entry_step("acme", "members", group_effects),
            entry_step("acme/web/shop", "members", project_effects),
        ];
        add_edges(&mut steps).into_iter().map(|p| format!("{} {}", p.address, p.message)).collect()
    };
    let message = "acme/web/shop#members/x this run makes `x` maintainer of the group `acme` above, and the service then refuses developer here";
    assert_eq!(find_problems(access_effects(3, 0, 40), access_effects(3, 0, 30)), [message]);
    assert_eq!(find_problems(access_effects(3, 10, 40), access_effects(3, 50, 30)), [message]);
    for (group_effects, project_effects) in [
        (access_effects(3, 0, 30), access_effects(3, 0, 30)),
        (access_effects(3, 0, 40), access_effects(4, 0, 30)),
        (access_effects(3, 0, 40), access_effects(3, 30, 0)),
        // An inherited level that is not known does not matter here.
        (access_effects(3, 50, 40), access_effects(3, 0, 30)),
    ] {
        assert_eq!(find_problems(group_effects, project_effects), [] as [&str; 0]);
    }
}

/// Access to a container whose users have `inherited` from the group above.
fn access_below(inherited: u8, before: u8, after: u8) -> Vec<Effect> {
    let mut effects = access_effects(3, before, after);
    if let Effect::Access { inherited_level: level, .. } = &mut effects[0] {
        *level = inherited;
    }
    effects
}

/// The same for a user with the inherited level in these groups.
fn access_below_groups(groups: &[&str], inherited: u8, before: u8, after: u8) -> Vec<Effect> {
    let mut effects = access_below(inherited, before, after);
    if let Effect::Access { memberships_above, .. } = &mut effects[0] {
        memberships_above.extend(groups.iter().map(|group| (Arc::from(*group), inherited)));
    }
    effects
}

#[test]
fn a_level_is_lowered_after_the_levels_in_the_groups_above() {
    let plan_levels = |levels: &[(&str, Vec<Effect>)]| {
        let mut steps: Vec<_> = levels
            .iter()
            .map(|(path, effects)| {
                let scope = if path.ends_with('p') { Scope::Project } else { Scope::Group };
                Step { scope, ..entry_step(path, "members", effects.clone()) }
            })
            .collect();
        let problems = add_edges(&mut steps);
        let problems = problems.into_iter().map(|p| format!("{} {}", p.address, p.message));
        (edges(&steps), problems.collect::<Vec<_>>())
    };
    let (outer, inner) = ("acme#members/x", "acme/tt#members/x");
    for (levels, expected) in [
        // Each group in the tree lowers the level.
        (
            vec![
                ("acme", access_effects(3, 30, 20)),
                ("acme/tt", access_below(30, 30, 20)),
                ("acme/tt/p", access_below(30, 30, 20)),
            ],
            vec![vec![], vec![outer], vec![inner, outer]],
        ),
        // Not a member of the group in between.
        (
            vec![
                ("acme", access_effects(3, 30, 20)),
                ("acme/tt/p", access_below_groups(&["acme"], 30, 30, 20)),
            ],
            vec![vec![], vec![outer]],
        ),
        // The user loses the level in the group and gets a level in the project.
        (
            vec![("acme", access_effects(3, 40, 0)), ("acme/tt/p", access_below(40, 0, 30))],
            vec![vec![], vec![outer]],
        ),
        // Only the group with the higher level must lower the level first.
        (
            vec![
                ("acme", access_effects(3, 20, 10)),
                ("acme/tt", access_below(20, 40, 0)),
                ("acme/tt/p", access_below(40, 0, 30)),
            ],
            vec![vec![], vec![], vec![inner]],
        ),
        // The level comes from a share.
        (
            vec![
                (
                    "acme",
                    vec![Effect::Share {
                        group_id: Some(8),
                        before: 40,
                        after: 20,
                        gets_end_date: false,
                    }],
                ),
                ("acme/tt/p", access_below(40, 0, 30)),
            ],
            vec![vec![], vec![]],
        ),
    ] {
        assert_eq!(plan_levels(&levels), (edges_of(&expected), Vec::new()));
    }
    let message = |above: &str| {
        format!(
            "acme/tt/p#members/x `x` is already {above} through the group above, and the service refuses reporter here"
        )
    };
    for (levels, above) in [
        // The group above does not lower the level enough, lowers the level of another user, or is
        // below a group that keeps the level.
        (
            vec![("acme", access_effects(3, 40, 30)), ("acme/tt/p", access_below(40, 0, 20))],
            "developer",
        ),
        (
            vec![("acme", access_effects(4, 40, 0)), ("acme/tt/p", access_below(40, 0, 20))],
            "maintainer",
        ),
        (
            vec![("acme", access_effects(3, 30, 0)), ("acme/tt/p", access_below(40, 0, 20))],
            "maintainer",
        ),
        (
            vec![("acme/tt", access_below(30, 40, 0)), ("acme/tt/p", access_below(40, 0, 20))],
            "developer",
        ),
        // The group in between keeps the user.
        (
            vec![
                ("acme", access_effects(3, 30, 20)),
                ("acme/tt/p", access_below_groups(&["acme/tt", "acme"], 30, 30, 20)),
            ],
            "developer",
        ),
    ] {
        assert_eq!(plan_levels(&levels).1, [message(above)]);
    }
}

#[test]
fn a_group_changes_after_what_leaves_it() {
    let reason = "what leaves the group moves first";
    let move_step = |path: &str, former: &str| {
        let transfer = Effect::Transfers { former_path: former.into(), namesake: None };
        let effects = vec![Effect::provides(Capability::AtDeclaredPath), transfer];
        container_step(Scope::Project, path, effects)
    };
    let group_step = |section: &'static str, field: &str| {
        let [before, after] = ["x", "y"].map(|word| Shown::Value(word.into()));
        let mut step = Step { scope: Scope::Group, ..entry_step("acme", section, Vec::new()) };
        step.changes.push(FieldChange::new(field, before, after, None));
        step
    };
    let new_entry =
        |section: &'static str| Step { action: Action::Create, ..group_step(section, "title") };
    for (group, path, former, is_later) in [
        (group_step("settings", "shared_runners_setting"), "ext/p", "Acme/p", true),
        (group_step("settings", "shared_runners_setting"), "ext/p", "acme/tt/p", true),
        (group_step("settings", "shared_runners_setting"), "acme/p", "acme/tt/p", false),
        (group_step("settings", "shared_runners_setting"), "ext/p", "other/p", false),
        (group_step("settings", "description"), "ext/p", "acme/p", false),
        (new_entry("milestones"), "acme/tt/p", "acme/p", true),
        (new_entry("labels"), "acme/tt/p", "acme/p", false),
        (new_entry("labels"), "ext/p", "acme/p", true),
        (new_entry("badges"), "ext/p", "acme/p", false),
    ] {
        let context = format!("{} {former} -> {path}", group.address);
        let mut steps = [group, move_step(path, former)];
        assert!(add_edges(&mut steps).is_empty());
        let reasons: Vec<_> = steps[0].after.iter().map(|edge| edge.reason).collect();
        assert_eq!(reasons, vec![reason; usize::from(is_later)], "{context}");
    }
}

fn edges_of(addresses: &[Vec<&str>]) -> Vec<Vec<String>> {
    addresses.iter().map(|list| list.iter().map(|&text| text.to_owned()).collect()).collect()
}

#[test]
fn a_rule_waits_for_access_from_a_group_above() {
    let new_step = |path: &str, section: &'static str, effects: Vec<Effect>| {
        let address = Address::container(path.into()).with_section(section).with_entry("x");
        Step {
            effects,
            ..Step::new(Scope::Project, address, Action::Create, origin(1), Vec::new(), Vec::new())
        }
    };
    let grant_step = |path: &str| new_step(path, "members", access_effects(3, 0, 30));
    let rule_step = new_step(
        "acme/web/shop",
        "protected_branches",
        vec![Effect::needs_access(NamedObject::User, Id::Known(3))],
    );
    let edges_of_rule = |paths: &[&str]| -> Vec<String> {
        let mut steps: Vec<_> = paths.iter().map(|path| grant_step(path)).collect();
        steps.push(rule_step.clone());
        assert!(add_edges(&mut steps).is_empty());
        assert!(steps[..paths.len()].iter().all(|step| step.after.is_empty()));
        steps[paths.len()].after.iter().map(|edge| edge.address.to_string()).collect()
    };
    assert_eq!(edges_of_rule(&["acme"]), ["acme#members/x"]);
    assert_eq!(edges_of_rule(&["acme", "acme/web"]), ["acme/web#members/x", "acme#members/x"]);
    for other in ["acme/we", "other", "acme/web/shop2"] {
        assert_eq!(edges_of_rule(&[other]), [] as [&str; 0], "{other}");
    }
    // A user whose level only changes had access before; other users do not count.
    let mut steps = vec![
        new_step("acme", "members", access_effects(3, 10, 30)),
        new_step("acme", "members", access_effects(4, 0, 30)),
        rule_step,
    ];
    assert!(add_edges(&mut steps).is_empty());
    assert!(steps.iter().all(|step| step.after.is_empty()));
}

/// A step on the container at `path` itself.
fn container_step(scope: Scope, path: &str, effects: Vec<Effect>) -> Step {
    let address = Address::container(path.into());
    Step { effects, ..Step::new(scope, address, Action::Update, origin(1), Vec::new(), Vec::new()) }
}

#[test]
fn steps_below_a_moved_group_follow_the_move_unless_they_narrow_visibility() {
    let move_effects = || vec![Effect::provides(Capability::AtDeclaredPath)];
    let mut steps = vec![
        container_step(Scope::Group, "a", move_effects()),
        container_step(Scope::Group, "a/b", move_effects()),
        entry_step("A/b/c", "variables", vec![]),
        visibility_step("a/b/d", "public", "private"),
        visibility_step("a/e", "private", "public"),
        container_step(Scope::Project, "x/y", move_effects()),
        entry_step("x/y", "variables", vec![]),
    ];
    assert!(add_edges(&mut steps).is_empty());
    let none: Vec<&str> = vec![];
    assert_eq!(
        edges(&steps),
        [none.clone(), vec!["a"], vec!["a/b"], none.clone(), vec!["a"], none.clone(), none]
    );
}

#[test]
fn a_move_to_a_taken_path_waits_until_the_path_is_free() {
    let path_effects = |path: &str| vec![Effect::follows(Address::container(path.into()))];
    let mut steps = vec![
        container_step(Scope::Project, "x/a", path_effects("x/b")),
        container_step(Scope::Project, "x/b", path_effects("x/c")),
        entry_step("x/c", "variables", vec![]),
    ];
    let problems = add_edges(&mut steps);
    assert_eq!(edges(&steps)[0], ["x/b"]);
    assert_eq!(
        (problems.len(), &*problems[0].message),
        (1, "`x/c` must move first, and this run does not move it")
    );
}

#[test]
fn settings_limited_by_a_group_are_changed_after_it() {
    let change = |path: &str, scope, field: &str| {
        let address = Address::container(path.into()).with_section("settings");
        let [before, after] = [false, true].map(|value| Shown::Value(value.into()));
        let change = FieldChange::new(field, before, after, None);
        Step::new(scope, address, Action::Update, origin(1), vec![change], Vec::new())
    };
    let group = |field: &str| change("acme", Scope::Group, field);
    for (group_field, project_field, waits) in [
        ("shared_runners_setting", "shared_runners_enabled", true),
        ("show_diff_preview_in_email", "show_diff_preview_in_email", true),
        ("lfs_enabled", "lfs_enabled", true),
        ("request_access_enabled", "request_access_enabled", false),
        ("shared_runners_setting", "show_diff_preview_in_email", false),
    ] {
        let mut steps =
            [group(group_field), change("acme/web/shop", Scope::Project, project_field)];
        assert!(add_edges(&mut steps).is_empty());
        let expected = if waits { vec!["acme#settings".to_owned()] } else { Vec::new() };
        assert_eq!(edges(&steps), [Vec::new(), expected], "{project_field} below {group_field}");
    }
}

/// Names are unique in a group: a creation with a name waits for the rename that frees it.
#[test]
fn a_creation_waits_until_its_name_is_free() {
    let change = |before: Shown, after: Shown| FieldChange::new("name", before, after, None);
    let text = |name: &str| Shown::Value(name.into());
    let rename_step = |path: &str, before: Shown| {
        let mut step = entry_step(path, "settings", Vec::new());
        step.changes = vec![change(before, text("Other"))];
        step
    };
    let creation_step = |path: &str, name: Option<&str>| {
        let mut step =
            container_step(Scope::Project, path, vec![Effect::provides(Capability::Exists)]);
        step.changes = name.map(|name| change(Shown::Absent, text(name))).into_iter().collect();
        step
    };
    for (rename, creation, waits) in [
        (rename_step("acme/old", text("Shop")), creation_step("acme/neo", Some("shop")), true),
        (rename_step("acme/old", text("Shop")), creation_step("ACME/neo", Some("SHOP")), true),
        // A project without a declared name gets a name equal to its path.
        (rename_step("acme/old", text("Shop")), creation_step("acme/shop", None), true),
        (rename_step("acme/old", text("")), creation_step("acme/neo", Some("old")), true),
        (rename_step("acme/old", text("Shop")), creation_step("acme/shop", Some("Else")), false),
        (rename_step("acme/old", text("Shop")), creation_step("acme/web/neo", Some("shop")), false),
        (rename_step("old", text("Shop")), creation_step("neo", Some("shop")), true),
        (rename_step("acme/old", Shown::Unknown), creation_step("acme/neo", Some("shop")), false),
        (
            rename_step("acme/old", text("Shop")),
            container_step(Scope::Project, "acme/shop", Vec::new()),
            false,
        ),
        (
            Step {
                address: entry_step("acme/old", "hooks", Vec::new()).address,
                ..rename_step("acme/old", text("Shop"))
            },
            creation_step("acme/neo", Some("shop")),
            false,
        ),
    ] {
        let rename_address = rename.address.to_string();
        let case = format!("{rename:?} {creation:?}");
        let mut steps = [rename, creation];
        assert!(add_edges(&mut steps).is_empty());
        let expected = if waits { vec![rename_address] } else { Vec::new() };
        assert_eq!(edges(&steps), [Vec::new(), expected], "{case}");
    }
}

/// All projects with a deploy key see its one title.
#[test]
fn a_deploy_key_is_added_elsewhere_after_it_gets_its_title() {
    let key_step = |path: &str, action, title_before: Shown| {
        let step = entry_step(path, "deploy_keys", Vec::new());
        let change = FieldChange::new("title", title_before, Shown::Value("new".into()), None);
        Step { action, changes: vec![change], ..step }
    };
    let addition = key_step("acme/a", Action::Create, Shown::Absent);
    let push = FieldChange::new("can_push", Shown::Absent, Shown::Value(true.into()), None);
    let rename = key_step("acme/b", Action::Update, Shown::Value("old".into()));
    for (changes, expected) in
        [(rename.changes.clone(), vec!["acme/b#deploy_keys/x"]), (vec![push], Vec::new())]
    {
        let mut steps = [addition.clone(), Step { changes, ..rename.clone() }];
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), [expected, Vec::new()]);
    }
}

/// A step that changes the display name of the container at `path`.
fn name_step(scope: Scope, path: &str, before: &str, after: &str) -> Step {
    let [before, after] = [before, after].map(|name| Shown::Value(name.into()));
    let mut step = Step { scope, ..entry_step(path, "settings", Vec::new()) };
    step.changes = vec![FieldChange::new("name", before, after, None)];
    step
}

#[test]
fn a_container_is_renamed_after_the_sibling_that_frees_its_name() {
    let steps = |scope, last_name: &str| {
        [
            name_step(Scope::Project, "x/a", "A", "B"),
            name_step(scope, "x/b", "B", last_name),
            name_step(Scope::Project, "y/c", "C", "B"),
        ]
    };
    let none: Vec<&str> = vec![];
    for (scope, expected) in
        [(Scope::Project, vec!["x/b#settings/x"]), (Scope::Group, none.clone())]
    {
        let mut steps = steps(scope, "C");
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), [expected, none.clone(), none.clone()], "{scope:?}");
    }
    let problems = add_edges(&mut steps(Scope::Project, "A"));
    let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["circular"; 2], "they exchange their names");
    assert!(add_edges(&mut steps(Scope::Group, "A")).is_empty());
}

#[test]
fn a_container_moves_after_its_namesake_leaves_the_group_or_is_renamed() {
    let transfer_step = |path: &str, namesake: Option<&str>| {
        let transfers =
            Effect::Transfers { former_path: "old/x".into(), namesake: namesake.map(Into::into) };
        container_step(Scope::Project, path, vec![transfers])
    };
    // What moves away with a new name frees the old one in its former group.
    let mut moved_away = transfer_step("x/a", None);
    moved_away.changes = name_step(Scope::Project, "x/a", "A", "B").changes;
    for (path, edge) in [("old/y", vec!["x/a"]), ("x/y", Vec::new())] {
        let mut steps = [moved_away.clone(), name_step(Scope::Project, path, "Y", "A")];
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), [Vec::new(), edge], "{path}");
    }
    let taker = || transfer_step("x/a", Some("X/b"));
    for (other, edge) in [
        (transfer_step("x/b", None), "x/b"),
        (name_step(Scope::Project, "x/b", "A", "B"), "x/b#settings/x"),
    ] {
        let mut steps = [taker(), other];
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), [vec![edge], vec![]]);
    }
    let problems = add_edges(&mut [taker(), entry_step("x/b", "labels", Vec::new())]);
    assert_eq!(
        problems[0].message,
        "`X/b` has the same name, and this run does not change it: the service refuses the move"
    );
}

#[test]
fn a_step_that_takes_a_path_follows_the_move_that_frees_it_once() {
    let [up, other] = ["acme/up", "acme/other"];
    for (existing_edge_path, expected) in
        [(None, vec![up]), (Some(up), vec![up]), (Some(other), vec![other, up])]
    {
        let edge = |path: &str| Edge { address: Address::container(path.into()), reason: "known" };
        let move_step = container_step(Scope::Project, up, Vec::new());
        let take_step = container_step(
            Scope::Project,
            "acme/new",
            vec![Effect::follows(Address::container(up.into()))],
        );
        let mut steps = [
            move_step,
            Step { after: existing_edge_path.map(edge).into_iter().collect(), ..take_step },
        ];
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps)[1], expected, "{existing_edge_path:?}");
        let problems = add_edges(&mut steps[1..]);
        assert!(problems.is_empty(), "it follows already");
    }
}

/// Until a project or group has moved, the service knows it only by its former path.
#[test]
fn requests_that_name_a_moving_project_wait_for_the_move() {
    let move_step = |scope, path: &str| {
        container_step(scope, path, vec![Effect::provides(Capability::AtDeclaredPath)])
    };
    for (first_step, upstream, waits) in [
        (move_step(Scope::Project, "acme/up"), "Acme/Up", true),
        (move_step(Scope::Project, "acme/up"), "acme/other", false),
        (move_step(Scope::Group, "acme/up"), "acme/up", true),
        (container_step(Scope::Project, "acme/up", Vec::new()), "acme/up", false),
    ] {
        let request = PROJECT_FORK.request().with_argument_by_path("id", upstream, Some(7));
        let address = Address::container("x/fork".into());
        let calls = vec![request.into()];
        let fork = Step::new(Scope::Project, address, Action::Create, origin(1), Vec::new(), calls);
        let mut steps = [first_step, fork];
        assert!(add_edges(&mut steps).is_empty());
        let expected = if waits { vec!["acme/up".to_owned()] } else { Vec::new() };
        assert_eq!(edges(&steps), [Vec::new(), expected], "{upstream}");
    }
}

#[test]
fn a_limited_setting_follows_the_setting_of_its_group_exactly_once() {
    let change = |field: &str| {
        let (before, after) = (Shown::Value("a".into()), Shown::Value("b".into()));
        FieldChange::new(field, before, after, None)
    };
    let group_step = || {
        let step = entry_step("acme", "settings", Vec::new());
        Step { scope: Scope::Group, changes: vec![change("shared_runners_setting")], ..step }
    };
    for existing_edges in [&["acme#settings/x"][..], &["acme/shop#members/x"], &[]] {
        let new_edge = |address_text: &&str| {
            let (path, suffix) = address_text.split_once('#').unwrap();
            let section = if suffix.starts_with("members") { "members" } else { "settings" };
            let address = Address::container(path.into()).with_section(section).with_entry("x");
            Edge { address, reason: "x" }
        };
        let step = entry_step("acme/shop", "settings", Vec::new());
        let changes = vec![change("shared_runners_enabled")];
        let project_step =
            Step { changes, after: existing_edges.iter().map(new_edge).collect(), ..step };
        let mut steps = vec![group_step(), project_step];
        assert!(add_edges(&mut steps).is_empty());
        let targets = edges(&steps).remove(1);
        assert_eq!(targets.iter().filter(|at| *at == "acme#settings/x").count(), 1, "{targets:?}");
        assert_eq!(
            targets.len(),
            existing_edges.len().max(1) + usize::from(existing_edges == ["acme/shop#members/x"])
        );
    }
}

#[test]
fn a_project_that_is_too_visible_has_the_origin_of_its_visibility() {
    let change = |field: &str, line: u32| {
        let after = Shown::Value("public".into());
        FieldChange::new(field, Shown::Absent, after, Some(origin(line)))
    };
    let group = Step { scope: Scope::Group, ..visibility_step("acme", "", "private") };
    for (changes, line) in [
        (vec![change("description", 5), change("visibility", 6)], 6),
        (vec![change("description", 5)], 1),
    ] {
        let project = Step { changes, ..visibility_step("acme/shop", "", "public") };
        let problems = add_edges(&mut [group.clone(), project]);
        assert_eq!(problems.iter().map(|p| p.origin.line).collect::<Vec<_>>(), [line]);
    }
}

/// The rename of a label in a group frees the former title for labels below, and forbids the new
/// title for them.
#[test]
fn labels_below_a_group_follow_the_rename_that_frees_their_title() {
    let address = |path: &str, name: &str| {
        Address::container(path.into()).with_section("labels").with_entry(name)
    };
    let rename_label = |scope: Scope, path: &str, names: [&str; 2]| {
        let [before, after] = names.map(|name| Shown::Value(name.into()));
        let change = FieldChange::new("name", before, after, None);
        let address = address(path, names[1]);
        Step::new(scope, address, Action::Update, origin(1), vec![change], Vec::new())
    };
    let create_label = |effects: Vec<Effect>| {
        let step = Step::new(
            Scope::Project,
            address("acme/shop", "bug"),
            Action::Create,
            origin(1),
            Vec::new(),
            Vec::new(),
        );
        Step { effects, ..step }
    };
    let taken_effects = || vec![Effect::follows(address("ACME", "bug"))];
    let rename_step = |effects: Vec<Effect>| {
        let step = rename_label(Scope::Project, "acme/shop", ["flaw", "bug"]);
        Step { effects, ..step }
    };
    let (group_label, project_label) = ("acme#labels/defect", "acme/shop#labels/bug");
    for project_step in [create_label(taken_effects()), rename_step(taken_effects())] {
        let mut steps =
            vec![project_step.clone(), rename_label(Scope::Group, "acme", ["bug", "defect"])];
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), [vec![group_label], vec![]]);
        let mut steps = vec![project_step, rename_label(Scope::Group, "acme", ["ops", "defect"])];
        let codes: Vec<_> = add_edges(&mut steps).iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["duplicate-entry"]);
    }
    for step_below in [create_label(Vec::new()), rename_step(Vec::new())] {
        let mut steps = vec![rename_label(Scope::Group, "acme", ["ops", "bug"]), step_below];
        assert!(add_edges(&mut steps).is_empty());
        assert_eq!(edges(&steps), [vec![project_label], vec![]]);
    }
}

#[test]
fn a_project_is_deleted_after_its_members_are_copied() {
    use crate::operation::IMPORT_MEMBERS;
    let step = |path: &str, action: Action, calls| {
        let address = Address::container(path.into());
        Step::new(Scope::Project, address, action, origin(1), Vec::new(), calls)
    };
    let request = IMPORT_MEMBERS.request().with_argument_by_path("id", "acme/new", Some(8));
    let request = request.with_argument_by_path("project_id", "acme/Shop", Some(7));
    let copy_step = step("acme/new", Action::Create, vec![request.into()]);
    let fork_request = PROJECT_FORK.request().with_argument_by_path("id", "acme/shop", Some(7));
    let mut steps = vec![step("acme/shop", Action::Delete, vec![fork_request.into()]), copy_step];
    assert!(add_edges(&mut steps).is_empty());
    assert_eq!(edges(&steps), [vec!["acme/new"], vec![]]);
}
