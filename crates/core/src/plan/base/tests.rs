//! Tests of labels: every combination of base, branch and live state.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    address::Glob,
    desired::{
        ContainerLifecycle, CreationPolicy, DeclaredFields, EntryPresence, Unlisted, testing::shop,
    },
    diff::Action,
    kind::{FieldSelection, FormerLocation, Target},
    live::{
        Presence,
        testing::{live_container, live_container_with},
    },
    plan::tests::settings,
    value::Json,
};

/// A variable as the service returns it.
fn variable(key: &str, value: &str) -> Json {
    json!({
        "key": key, "environment_scope": "*", "value": value, "variable_type": "env_var",
        "protected": false, "masked": false, "raw": false,
    })
}

const VALUES: [Option<&str>; 3] = [None, Some("a"), Some("b")];

fn all_combinations() -> impl Iterator<Item = [Option<&'static str>; 3]> {
    let new_pairs = |base| VALUES.into_iter().map(move |head| (base, head));
    let pairs = VALUES.into_iter().flat_map(new_pairs);
    pairs.flat_map(|(base, head)| VALUES.into_iter().map(move |live| [base, head, live]))
}

/// Plans `head` and compares it with `base`. Returns the labels of steps and changes as text, and
/// the comparison.
fn compare_with_base(
    base: &Container,
    head: &Container,
    live: &LiveContainer,
) -> (Vec<String>, BaseComparison) {
    let settings = settings(&[]);
    let mut plan = plan_container(head, live, &settings);
    assert!(plan.questions.is_empty() && plan.problems.is_empty(), "{plan:#?}");
    let comparison =
        Base::from_containers([base.clone()], &[]).label(&mut plan, head, live, &settings);
    let line = |step: &Step| {
        let fields = step.changes.iter().map(|c| format!(" {}={:?}", c.field, c.label.unwrap()));
        let fields: String =
            if step.action == Action::Delete { String::new() } else { fields.collect() };
        format!("{:?} {:?}{fields}", step.action, step.label.unwrap())
    };
    (plan.steps.iter().map(line).collect(), comparison)
}

/// The label of a value's difference.
fn expected_label(base: Option<&str>, head: &str, live: Option<&str>) -> Label {
    match base {
        None => Label::Change,
        Some(base) if base == head => Label::Drift,
        Some(base) if Some(base) == live => Label::Change,
        Some(_) => Label::Both,
    }
}

/// Groups, projects and sections that the branch no longer declares are reported, unless they only
/// moved.
#[test]
fn removed_declarations_are_reported() {
    let new_container = |path: &str, sections: Json, previously: &[&str]| {
        let previously = previously.iter().map(|path| Sourced {
            value: Arc::from(*path),
            origin: crate::desired::testing::origin(1),
        });
        let lifecycle = ContainerLifecycle {
            former_paths: previously.collect(),
            ..ContainerLifecycle::default()
        };
        Container { path: path.into(), lifecycle, ..shop(&sections, Unlisted::Report) }
    };
    let both_sections = json!({"settings": {"description": "a"}, "variables": []});
    let base = Base::from_containers(
        [
            new_container("acme/a", both_sections.clone(), &[]),
            new_container("acme/b", both_sections.clone(), &[]),
            new_container("acme/c", both_sections.clone(), &[]),
        ],
        &[],
    );
    let settings = json!({"settings": {"description": "a"}});
    let containers = vec![
        new_container("acme/b", settings, &[]),
        new_container("acme/cc", both_sections, &["acme/c"]),
    ];
    let moves = Moves::from_containers(&containers);
    let mut outline = DeclarationOutline::default();
    outline.add(&containers);
    let addresses: Vec<_> =
        base.removed_declarations(&outline, &moves).iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["acme/a", "acme/b#variables"]);
    assert_eq!(Base::Unknown.removed_declarations(&outline, &moves), []);
    // A project that is declared absent is not reported, because the plan deletes it.
    let absent =
        Sourced { value: EntryPresence::Absent, origin: crate::desired::testing::origin(1) };
    let mut absent_project = new_container("acme/a", json!({}), &[]);
    absent_project.lifecycle.state = Some(absent);
    outline.add(&[absent_project]);
    let remaining_addresses: Vec<_> =
        base.removed_declarations(&outline, &moves).iter().map(ToString::to_string).collect();
    assert_eq!(remaining_addresses, ["acme/b#variables"]);
}

#[test]
fn the_label_of_a_field_depends_on_base_branch_and_live_value() {
    let declare = |value: Option<&str>| {
        let fields = value.map_or_else(|| json!({}), |value| json!({"description": value}));
        shop(&json!({"settings": fields}), Unlisted::Report)
    };
    for [base, head, live] in all_combinations() {
        let (base_declared, declared) = (declare(base), declare(head));
        let live_sections = json!({"settings": {"description": live}});
        let live_state = live_container_with(
            &declared,
            &live_sections,
            FieldSelection::Only(&["description"].into()),
        );
        let (steps, comparison) = compare_with_base(&base_declared, &declared, &live_state);
        let case = format!("base {base:?}, head {head:?}, live {live:?}");
        let expected = head.filter(|_| head != live).map(|head| {
            let label = expected_label(base, head, live);
            format!("Update {label:?} description={label:?}")
        });
        assert_eq!(steps, Vec::from_iter(expected), "{case}");
        let is_adopted = head.is_some() && head == live && base.is_some() && base != live;
        let fields: Vec<_> = comparison.adopted.iter().flat_map(|object| &object.fields).collect();
        assert_eq!(fields, if is_adopted { vec!["description"] } else { vec![] }, "{case}");
    }
}

#[test]
fn the_label_of_an_entry_depends_on_base_branch_and_live_state() {
    let entries = |value: Option<&str>| {
        Json::from_iter(
            value.map(|value| json!({"key": "K", "environment_scope": "*", "value": value})),
        )
    };
    for policy in [Unlisted::Report, Unlisted::Delete] {
        for [base, head, live] in all_combinations() {
            let declare = |value| shop(&json!({"variables": entries(value)}), policy);
            let (base_declared, declared) = (declare(base), declare(head));
            let variables = Json::from_iter(live.map(|value| variable("K", value)));
            let live_sections = json!({"variables": variables});
            let live_state = live_container_with(&declared, &live_sections, FieldSelection::All);
            let (steps, comparison) = compare_with_base(&base_declared, &declared, &live_state);
            let case = format!("{policy:?}: base {base:?}, head {head:?}, live {live:?}");
            let expected = match (head, live) {
                (Some(head), Some(_)) if Some(head) != live => {
                    let label = expected_label(base, head, live);
                    Some(format!("Update {label:?} value={label:?}"))
                }
                // Somebody removed the live entry.
                (Some(head), None) => Some(match base {
                    None => "Create Change value=Change".to_owned(),
                    Some(base) if base == head => "Create Drift value=Drift".to_owned(),
                    Some(_) => "Create Both value=Both".to_owned(),
                }),
                (None, Some(_)) if policy == Unlisted::Delete => Some(match base {
                    None => "Delete Drift".to_owned(),
                    Some(_) => "Delete Removed".to_owned(),
                }),
                _ => None,
            };
            let shorten = |line: &String| {
                let is_relevant = |word: &&str| !word.contains('=') || word.starts_with("value=");
                line.split(' ').filter(is_relevant).collect::<Vec<_>>().join(" ")
            };
            let steps: Vec<_> = steps.iter().map(shorten).collect();
            assert_eq!(steps, Vec::from_iter(expected), "{case}");
            let is_unlisted = policy == Unlisted::Report && head.is_none() && live.is_some();
            assert_eq!(!comparison.removed.is_empty(), is_unlisted && base.is_some(), "{case}");
        }
    }
}

/// The branch declares an entry absent. The test combines each declaration of the base with a live
/// and a missing entry.
#[test]
fn the_label_of_a_removal_depends_on_which_side_declares_it_absent() {
    let declare = |state: Option<&str>| {
        let entry = state.map(|state| match state {
            "gone" => json!({"key": "K", "environment_scope": "*", "state": "absent"}),
            _ => json!({"key": "K", "environment_scope": "*", "value": "a"}),
        });
        shop(&json!({"variables": Json::from_iter(entry)}), Unlisted::Report)
    };
    let states = [None, Some("there"), Some("gone")];
    for base in states {
        for (live, expected) in [
            (true, if base == Some("gone") { vec!["Delete Drift"] } else { vec!["Delete Change"] }),
            (false, vec![]),
        ] {
            let (base_declared, declared) = (declare(base), declare(Some("gone")));
            let live_variables: Vec<_> = live
                .then(|| json!({"key": "K", "environment_scope": "*", "value": "a"}))
                .into_iter()
                .collect();
            let live_state = live_container_with(
                &declared,
                &json!({"variables": live_variables}),
                FieldSelection::All,
            );
            let (steps, comparison) = compare_with_base(&base_declared, &declared, &live_state);
            assert_eq!(steps, expected, "{base:?} {live}");
            assert_eq!(
                !comparison.adopted.is_empty(),
                !live && base == Some("there"),
                "{base:?} {live}"
            );
        }
    }
}

#[test]
fn the_label_of_a_creation_depends_on_which_side_declares_it() {
    let declare = |may_create: bool, description: &str| {
        let mut shop = shop(&json!({"settings": {"description": description}}), Unlisted::Report);
        if may_create {
            shop.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
        }
        shop
    };
    let head = declare(true, "a");
    let mut live = live_container(&head, &json!({}));
    let group = crate::kind::LiveNamespace {
        id: crate::kind::Id::Known(3),
        owner: crate::kind::NamespaceOwner::Group,
    };
    let target = Target { namespace: Some(group), ..Target::new(head.scope, head.path.clone()) };
    live.presence = Presence::Missing(target);
    live.sections.clear();
    let settings = settings(&[]);
    let label_of_creation = |base: Base| {
        let mut plan = plan_container(&head, &live, &settings);
        base.label(&mut plan, &head, &live, &settings);
        plan.steps[0].label.unwrap()
    };
    assert_eq!(label_of_creation(Base::Unknown), Label::Unknown);
    assert_eq!(label_of_creation(Base::from_containers([], &[])), Label::Change);
    assert_eq!(label_of_creation(Base::from_containers([declare(false, "a")], &[])), Label::Change);
    assert_eq!(label_of_creation(Base::from_containers([declare(true, "a")], &[])), Label::Drift);
    assert_eq!(label_of_creation(Base::from_containers([declare(true, "b")], &[])), Label::Both);
}

#[test]
fn removing_watch_makes_a_difference_a_change_of_the_branch() {
    let head = shop(&json!({"settings": {"description": "a"}}), Unlisted::Report);
    let watched = Container { is_watched: true, ..head.clone() };
    let live = live_container(&head, &json!({"settings": {"description": "b"}}));
    assert_eq!(compare_with_base(&watched, &head, &live).0, ["Update Change description=Change"]);
}

/// Watched differences have labels like the differences that apply writes.
#[test]
fn watched_differences_have_labels() {
    let declare = |text: &str| {
        let declared = shop(&json!({"settings": {"description": text}}), Unlisted::Report);
        Container { is_watched: true, ..declared }
    };
    let (head, settings) = (declare("b"), settings(&[]));
    let live = live_container(&head, &json!({"settings": {"description": "a"}}));
    for (base, expected) in [
        (Base::Unknown, Label::Unknown),
        (Base::from_containers([], &[]), Label::Change),
        (Base::from_containers([head.clone()], &[]), Label::Drift),
        (Base::from_containers([declare("a")], &[]), Label::Change),
        (Base::from_containers([declare("c")], &[]), Label::Both),
    ] {
        let mut plan = plan_container(&head, &live, &settings);
        base.label(&mut plan, &head, &live, &settings);
        let labels: Vec<_> = plan.watched.iter().map(|step| step.label).collect();
        assert_eq!((labels, plan.steps.len()), (vec![Some(expected)], 0), "{base:?}");
    }
}

#[test]
fn without_drift_only_changes_of_the_branch_are_planned() {
    let base_sections = json!({
        "settings": {"description": "a", "merge_method": "ff"},
        "variables": [
            {"key": "GONE", "environment_scope": "*", "value": "a"},
            {"key": "KEPT", "environment_scope": "*", "value": "a", "protected": true},
        ],
    });
    let mut branch_sections = base_sections.clone();
    branch_sections["settings"]["merge_method"] = "rebase_merge".into();
    branch_sections["variables"][1]["value"] = "b".into();
    let live_sections = json!({
        "settings": {"description": "x", "merge_method": "ff"},
        "variables": [
            variable("KEPT", "a"),
            variable("MORE[*]", "a"),
        ],
    });
    let (before, head) =
        (shop(&base_sections, Unlisted::Delete), shop(&branch_sections, Unlisted::Delete));
    let (live, settings) =
        (live_container_with(&head, &live_sections, FieldSelection::All), settings(&[]));
    let mut plan = plan_container(&head, &live, &settings);
    Base::from_containers([before], &[]).label(&mut plan, &head, &live, &settings);
    let BranchPart::Partial(remaining) = BranchPart::from_labels(&head, &plan, &[]) else {
        panic!("something remains")
    };
    let lines = |steps: &[Step]| -> Vec<_> {
        let line = |step: &Step| {
            let fields: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
            format!("{:?} {} {}", step.action, step.address, fields.join(" "))
        };
        steps.iter().map(line).collect()
    };
    let branch_plan = plan_container(&remaining, &live, &settings);
    assert_eq!(
        lines(&branch_plan.steps),
        ["Update acme/shop#settings merge_method", "Update acme/shop#variables/KEPT@* value"]
    );
    assert!(branch_plan.notes.iter().all(|note| !note.reason.is_unlisted()));
    let excluded: Vec<_> = excluded_steps(&plan.steps, false)
        .iter()
        .map(|step| format!("{:?} {}", step.action, step.address))
        .collect();
    assert_eq!(excluded.len(), 4, "{excluded:?}");
}

#[test]
fn a_hook_with_a_new_url_is_found_by_its_url_at_the_base() {
    let hooks = |url: &str| json!({"hooks": [{"name": "ci", "url": url}]});
    let base =
        Base::from_containers([shop(&hooks("https://old.example.org/"), Unlisted::Report)], &[]);
    let find_former_urls = |mut container: Container| {
        base.add_base_identities(std::slice::from_mut(&mut container));
        let section = container.section("hooks").unwrap();
        section.entries[0]
            .fields
            .get("previously")
            .map(|field| format!("{:?}", field.value.plain_json()))
    };
    let declare = |sections: &Json| shop(sections, Unlisted::Report);
    assert!(
        find_former_urls(declare(&hooks("https://new.example.org/")))
            .unwrap()
            .contains("old.example.org")
    );
    assert_eq!(find_former_urls(declare(&hooks("https://old.example.org"))), None);
    let mut taken_hooks = hooks("https://new.example.org/");
    taken_hooks["hooks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "other", "url": "https://old.example.org/"}));
    assert_eq!(find_former_urls(declare(&taken_hooks)), None, "another one has that URL now");
}

/// A base without this rename would create the new entry, or would plan nothing.
#[test]
fn a_rename_is_drift_only_if_the_base_renames_the_same_entry() {
    let declare_label = |name: &str, former: &[&str]| {
        let mut label = json!({"name": name, "color": "#ff0000"});
        if !former.is_empty() {
            label["previously"] = json!(former);
        }
        shop(&json!({"labels": [label]}), Unlisted::Report)
    };
    let live_labels = json!({"labels": [{"id": 1, "name": "bug", "color": "#ff0000"}]});
    for (base, expected) in [
        (declare_label("ops", &[]), "Update Change name=Change"),
        (declare_label("ops", &["bug"]), "Update Drift name=Drift"),
        (declare_label("bug", &[]), "Update Change name=Change"),
    ] {
        let head = declare_label("ops", &["bug"]);
        let mut live = live_container(&head, &live_labels);
        live.entries_above.insert("labels", Vec::new());
        assert_eq!(compare_with_base(&base, &head, &live).0, [expected]);
    }
}

#[test]
fn only_containers_declared_differently_at_the_base_are_selected() {
    let new_container = |path: &str, text: &str| Container {
        path: path.into(),
        ..shop(&json!({"settings": {"description": text}}), Unlisted::Report)
    };
    let base = Base::from_containers(
        [
            new_container("acme/a", "x"),
            new_container("acme/B", "x"),
            new_container("acme/gone", "x"),
        ],
        &[],
    );
    let changed_paths = |declared: Vec<Container>| -> Vec<_> {
        base.changed_containers(declared)
            .into_iter()
            .map(|container| container.path.to_string())
            .collect()
    };
    assert_eq!(
        changed_paths(vec![new_container("acme/a", "x"), new_container("acme/b", "x")]),
        Vec::<String>::new()
    );
    assert_eq!(
        changed_paths(vec![new_container("acme/a", "y"), new_container("acme/neo", "x")]),
        ["acme/a", "acme/neo"]
    );
}

/// If a problem counted as drift although the branch changes something, the change would be neither
/// planned nor reported.
#[test]
fn a_problem_is_drift_only_where_the_branch_changes_nothing() {
    let project = |text: &str, user: &str| {
        let rule = json!({"name": "main", "allowed_to_push": [{"user": user}]});
        let sections = json!({"settings": {"description": text}, "protected_branches": [rule]});
        shop(&sections, Unlisted::Report)
    };
    let base = project("a", "nobody");
    let mut moved_state = live_container(&base, &json!({"settings": {"description": "a"}}));
    moved_state.presence = Presence::Redirected { new_path: Some("acme/store".into()) };
    let sections = json!({"settings": {"description": "a"}, "protected_branches": []});
    let mut live_state = live_container(&base, &sections);
    live_state.names.insert(crate::field::NamedObject::User, "nobody", None);
    live_state.names.insert(crate::field::NamedObject::User, "no-one", None);
    for (live, head, is_drift) in [
        (&moved_state, base.clone(), true),
        (&moved_state, project("b", "nobody"), false),
        (&live_state, base.clone(), true),
        (&live_state, project("b", "nobody"), true),
        (&live_state, project("a", "no-one"), false),
    ] {
        let settings = settings(&[]);
        let mut plan = plan_container(&head, live, &settings);
        assert_eq!(plan.problems.len(), 1, "{plan:#?}");
        let comparison =
            Base::from_containers([base.clone()], &[]).label(&mut plan, &head, live, &settings);
        assert_eq!(!comparison.problems.is_empty(), is_drift, "{:?}", plan.problems);
    }
}

/// The steps of `head` against a base, each with its label, in the order of their addresses.
fn labelled_steps(base: &Container, head: &Container, live: &LiveContainer) -> Vec<String> {
    let settings = settings(&[]);
    let mut plan = plan_container(head, live, &settings);
    assert!(plan.questions.is_empty() && plan.problems.is_empty(), "{plan:#?}");
    Base::from_containers([base.clone()], &[]).label(&mut plan, head, live, &settings);
    let line = |step: &Step| {
        let address = step.address.to_string().replace("https%3A%2F%2F", "");
        format!("{address} {:?}", step.label.unwrap())
    };
    let mut lines: Vec<_> = plan.steps.iter().map(line).collect();
    lines.sort();
    lines
}

/// If the branch changes an entry, its copy is removed too; copies of other entries stay.
#[test]
fn a_copy_is_removed_if_the_branch_changes_its_original() {
    let hook = |id: u64, url: &str| {
        json!({
            "id": id, "url": format!("https://{url}"), "push_events": true, "tag_push_events": false,
            "created_at": "2026-01-31T12:00:00Z", "alert_status": "executable",
        })
    };
    let hooks = [hook(1, "a"), hook(2, "a"), hook(3, "b"), hook(4, "b")];
    // A badge of the same name is no hook.
    let badge = |id: u64| json!({"id": id, "name": "https://a", "link_url": "https://e.org/", "image_url": "https://e.org/i"});
    let live_sections = json!({"hooks": hooks, "badges": [badge(5), badge(6)]});
    let declare = |tags: Option<&str>| {
        let new_hook = |url: &str| {
            let tagged = tags == Some(url);
            json!({"url": format!("https://{url}"), "push_events": true, "tag_push_events": tagged})
        };
        let badges = json!([{"name": "https://a", "link_url": "https://e.org/", "image_url": "https://e.org/i"}]);
        shop(&json!({"hooks": [new_hook("a"), new_hook("b")], "badges": badges}), Unlisted::Report)
    };
    let base = declare(None);
    let live = |head: &Container| live_container_with(head, &live_sections, FieldSelection::All);
    for (changed_tags, expected) in [
        (None, vec!["badges/a@6 Drift", "hooks/a@2 Drift", "hooks/b@4 Drift"]),
        (
            Some("a"),
            vec!["badges/a@6 Drift", "hooks/a Change", "hooks/a@2 Both", "hooks/b@4 Drift"],
        ),
        (
            Some("b"),
            vec!["badges/a@6 Drift", "hooks/a@2 Drift", "hooks/b Change", "hooks/b@4 Both"],
        ),
    ] {
        let head = declare(changed_tags);
        let expected: Vec<_> = expected.iter().map(|line| format!("acme/shop#{line}")).collect();
        assert_eq!(labelled_steps(&base, &head, &live(&head)), expected, "{changed_tags:?}");
    }
}

/// If a change of the branch names drifted entries, the named entries are created too, but no other
/// entries.
#[test]
fn drifted_entries_that_a_change_names_are_created() {
    let declare = |branches: Json| {
        let member = |name: &str| json!({"user": name, "access_level": "developer"});
        let members = json!([member("bob"), member("carol")]);
        shop(&json!({"members": members, "protected_branches": branches}), Unlisted::Report)
    };
    let rule = |name: &str, rows: Json| json!([{"name": name, "allowed_to_push": rows}]);
    let live_sections = json!({"members": [], "protected_branches": []});
    let (bob, dave) = (json!([{"user": "bob"}]), json!([{"user": "dave"}]));
    let drift = ["members/bob Drift", "members/carol Drift"];
    for (base_rules, head_rules, expected) in [
        (json!([]), json!([]), drift.to_vec()),
        (
            json!([]),
            rule("main", bob.clone()),
            vec!["members/bob Both", "members/carol Drift", "protected_branches/main Change"],
        ),
        (
            json!([]),
            rule("main", dave),
            vec!["members/bob Drift", "members/carol Drift", "protected_branches/main Change"],
        ),
        // The branch does not change the rule itself.
        (
            rule("main", bob.clone()),
            rule("main", bob),
            vec!["members/bob Drift", "members/carol Drift", "protected_branches/main Drift"],
        ),
    ] {
        let (base, head) = (declare(base_rules), declare(head_rules));
        let mut live = live_container_with(&head, &live_sections, FieldSelection::All);
        live.levels_above = Some(std::sync::Arc::default());
        live.group_above = Some(std::sync::Arc::default());
        live.users_with_access = Some(Ok(std::collections::BTreeSet::new()));
        live.sharing_groups = Some(Ok(Arc::default()));
        for (index, name) in ["bob", "carol", "dave"].into_iter().enumerate() {
            live.names.insert(crate::field::NamedObject::User, name, Some(11 + index as u64));
        }
        let expected: Vec<_> = expected.iter().map(|line| format!("acme/shop#{line}")).collect();
        assert_eq!(labelled_steps(&base, &head, &live), expected, "{:?}", head.sections);
    }
}

/// If the base keeps the project archived, the removals of the base are unknown.
#[test]
fn a_removal_is_unknown_where_the_base_may_have_removed_it_too() {
    let declare = |archived: bool, policy| {
        let sections = json!({"archived": {"archived": archived}, "variables": []});
        shop(&sections, policy)
    };
    let head = declare(false, Unlisted::Delete);
    let live_json = json!({"archived": {"archived": true}, "variables": [variable("K", "a")]});
    let mut live = live_container_with(&head, &live_json, FieldSelection::All);
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.is_archived = true;
    }
    for (policy, label) in [(Unlisted::Delete, "Unknown"), (Unlisted::Report, "Change")] {
        let lines = labelled_steps(&declare(true, policy), &head, &live);
        let removal = lines.iter().find(|line| line.contains("variables/K"));
        assert_eq!(removal, Some(&format!("acme/shop#variables/K@* {label}")), "{lines:?}");
    }
}

/// The branch removes an entry that the base declares as managed elsewhere.
#[test]
fn a_removal_is_a_change_if_the_base_does_not_manage_the_entry() {
    let head = shop(&json!({"variables": []}), Unlisted::Delete);
    let mut base = head.clone();
    base.sections[0].unmanaged_globs = vec![Glob::for_names("K@*").unwrap()];
    let live = live_container_with(
        &head,
        &json!({"variables": [variable("K", "a")]}),
        FieldSelection::All,
    );
    assert_eq!(compare_with_base(&base, &head, &live).0, ["Delete Change"]);
}

/// The base would remove an unlisted entry, and the branch declares the entry. If the branch
/// declares the live value, there is no step. If it declares another value, there is a step.
#[test]
fn a_removal_by_the_base_is_adopted_only_if_the_branch_declares_the_live_state() {
    let declare = |value: Option<&str>| {
        let entry =
            value.map(|value| json!({"key": "K", "environment_scope": "*", "value": value}));
        shop(&json!({"variables": Json::from_iter(entry)}), Unlisted::Delete)
    };
    for (head_value, is_adopted) in [("a", true), ("b", false)] {
        let head = declare(Some(head_value));
        let live = live_container_with(
            &head,
            &json!({"variables": [variable("K", "a")]}),
            FieldSelection::All,
        );
        let (steps, comparison) = compare_with_base(&declare(None), &head, &live);
        assert_eq!(
            (steps.is_empty(), !comparison.adopted.is_empty()),
            (is_adopted, is_adopted),
            "{head_value}"
        );
    }
}

/// The base keeps the project archived. Therefore the base's plan has no step for the fields of the
/// project.
#[test]
fn a_field_that_both_declare_alike_is_drift_even_if_the_base_has_no_plan_for_it() {
    let declare = |archived: bool, description: Option<&str>| {
        let fields = description.map(|text| json!({"description": text}));
        let sections =
            json!({"archived": {"archived": archived}, "settings": fields.unwrap_or(json!({}))});
        shop(&sections, Unlisted::Report)
    };
    let head = declare(false, Some("a"));
    let live_json = json!({"archived": {"archived": true}, "settings": {"description": "b"}});
    let mut live = live_container(&head, &live_json);
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.is_archived = true;
    }
    for (base, label) in [(Some("a"), "Drift"), (Some("c"), "Change"), (None, "Change")] {
        let lines = labelled_steps(&declare(true, base), &head, &live);
        assert!(lines.contains(&format!("acme/shop#settings {label}")), "{base:?} {lines:?}");
    }
}

#[test]
fn a_missing_or_needless_mapping_is_excluded_as_a_whole() {
    let rule = json!({"prevent_secrets": true});
    let absent = json!({"state": "absent"});
    for (rule, live_rule) in
        [(rule.clone(), Json::Null), (absent, json!({"prevent_secrets": true}))]
    {
        let declare = |method: &str| {
            let sections = json!({"settings": {"merge_method": method}, "push_rule": rule});
            shop(&sections, Unlisted::Report)
        };
        let (base, head) = (declare("merge"), declare("ff"));
        let live_json = json!({"settings": {"merge_method": "merge"}, "push_rule": live_rule});
        let (live, settings) =
            (live_container_with(&head, &live_json, FieldSelection::All), settings(&[]));
        let mut plan = plan_container(&head, &live, &settings);
        assert_eq!(plan.steps.len(), 2, "{plan:?}");
        Base::from_containers([base], &[]).label(&mut plan, &head, &live, &settings);
        let BranchPart::Partial(remaining) = BranchPart::from_labels(&head, &plan, &[]) else {
            panic!("something remains")
        };
        let branch_plan = plan_container(&remaining, &live, &settings);
        let planned_addresses: Vec<_> =
            branch_plan.steps.iter().map(|step| step.address.to_string()).collect();
        assert_eq!(planned_addresses, ["acme/shop#settings"], "{rule}");
    }
}

/// The base keeps the project archived. Therefore the base's plan has no step for the entries of
/// the project.
#[test]
fn a_creation_is_a_change_unless_the_base_declares_the_entry_present() {
    let declare = |archived: bool, entry: Option<Json>| {
        let variables = Json::from_iter(entry);
        shop(&json!({"archived": {"archived": archived}, "variables": variables}), Unlisted::Report)
    };
    let head = declare(false, Some(variable("K", "a")));
    let live_json = json!({"archived": {"archived": true}, "variables": []});
    let mut live = live_container_with(&head, &live_json, FieldSelection::All);
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.is_archived = true;
    }
    let absent = json!({"key": "K", "environment_scope": "*", "state": "absent"});
    for (base, label) in [
        (Some(variable("K", "a")), "Drift"),
        (Some(variable("K", "b")), "Both"),
        (Some(absent), "Change"),
        (None, "Change"),
    ] {
        let lines = labelled_steps(&declare(true, base), &head, &live);
        let creation = lines.iter().find(|line| line.contains("variables/K"));
        assert_eq!(creation, Some(&format!("acme/shop#variables/K@* {label}")), "{lines:?}");
    }
}

/// Without the former path, the base would not move the project, so the move is a change.
#[test]
fn a_move_is_drift_only_if_the_base_declares_the_former_path() {
    let declare = |former: &[&str]| {
        let mut container = shop(&json!({}), Unlisted::Report);
        container.lifecycle.former_paths =
            former.iter().map(|path| crate::desired::testing::former_path(path)).collect();
        container
    };
    let head = declare(&["acme/old"]);
    let mut live = live_container(&head, &json!({}));
    if let Presence::Existing(target, _) = &mut live.presence {
        target.former_location = Some(FormerLocation {
            path: "acme/old".into(),
            is_transferred: false,
            is_renamed: true,
            is_transferred_first: false,
            namesake: None,
            name: None,
        });
    }
    for (former, label) in [(&["acme/old"][..], "Drift"), (&[], "Change")] {
        assert_eq!(labelled_steps(&declare(former), &head, &live), [format!("acme/shop {label}")]);
    }
}

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

/// The parts of a project that a branch may change. A part has one of three forms. In form 0 the
/// part is absent; in the forms 1 and 2 it has different values.
const PARTS: [&str; 9] = [
    "description",
    "builds_access_level",
    "archived",
    "members",
    "shares",
    "deploy_keys",
    "protected_branches",
    "pipeline_schedules",
    "variables",
];

/// The declaration of `part` in this form.
fn declared_part(part: &str, form: u8) -> Option<Json> {
    let is_second = form == 2;
    let level = if is_second { "maintainer" } else { "developer" };
    (form > 0).then(|| match part {
        "description" => if is_second { "alice" } else { "team" }.into(),
        "builds_access_level" => if is_second { "private" } else { "enabled" }.into(),
        "archived" => json!({"archived": false}),
        "members" => json!([{"user": "alice", "access_level": level}]),
        "shares" => json!([{"group": "team", "group_access": level}]),
        "deploy_keys" => json!([{"key": KEY, "title": "ci", "can_push": is_second}]),
        "protected_branches" => {
            let rows = json!([{"user": "alice"}, {"group": "team"}, {"deploy_key": "ci"}]);
            json!([{"name": "main", "allowed_to_push": if is_second { rows } else { json!([]) }}])
        }
        "pipeline_schedules" => {
            json!([{"description": "n", "ref": "main", "cron": format!("0 {form} * * *")}])
        }
        _ => json!([{"key": "K", "environment_scope": "*", "value": level}]),
    })
}

/// The live state of `part` in this form.
fn live_part(part: &str, form: u8) -> Json {
    let is_second = form == 2;
    let level = if is_second { 40 } else { 30 };
    let rows = |row| Json::from_iter((form > 0).then_some(row));
    match part {
        "description" => declared_part(part, form).unwrap_or_default(),
        "builds_access_level" => ["disabled", "enabled", "private"][usize::from(form)].into(),
        "archived" => json!({"archived": form == 2}),
        "members" => {
            rows(json!({"id": 11, "username": "alice", "access_level": level, "expires_at": null}))
        }
        "shares" => rows(json!({
            "group_id": 12, "group_full_path": "team", "group_name": "team",
            "group_access_level": level, "expires_at": null,
        })),
        "deploy_keys" => rows(json!({"id": 13, "key": KEY, "title": "ci", "can_push": is_second})),
        "protected_branches" => rows(json!({
            "id": 14, "name": "main", "push_access_levels": [], "merge_access_levels": [],
            "unprotect_access_levels": [], "allow_force_push": false, "code_owner_approval_required": false,
        })),
        "pipeline_schedules" => rows(json!({
            "id": 15, "description": "n", "ref": "refs/heads/main", "cron": format!("0 {form} * * *"),
            "owner": {"id": 7},
        })),
        _ => rows(variable("K", if is_second { "maintainer" } else { "developer" })),
    }
}

/// The project with each part in the form of `forms`.
fn project(forms: &[u8]) -> Container {
    let mut sections = crate::value::Object::new();
    let mut settings = crate::value::Object::new();
    for (part, form) in PARTS.iter().zip(forms) {
        let declared = declared_part(part, *form);
        let is_setting = ["description", "builds_access_level"].contains(part);
        if is_setting { &mut settings } else { &mut sections }
            .extend(declared.map(|json| ((*part).to_owned(), json)));
    }
    sections.insert("settings".into(), settings.into());
    shop(&sections.into(), Unlisted::Report)
}

/// The live state of the project with each part in the form of `forms`.
fn live_project(declared: &Container, forms: &[u8]) -> LiveContainer {
    let part = |index: usize| live_part(PARTS[index], forms[index]);
    let mut state = json!({"settings": {"description": part(0), "builds_access_level": part(1)}});
    for index in 2..PARTS.len() {
        state[PARTS[index]] = part(index);
    }
    let mut live = live_container_with(declared, &state, FieldSelection::All);
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.is_archived = forms[2] == 2;
    }
    live.read_release = crate::release::DetectedRelease::Known("18.9".parse().unwrap());
    live.levels_above = Some(std::sync::Arc::default());
    live.names.insert(crate::field::NamedObject::User, "alice", Some(11));
    live.names.insert(crate::field::NamedObject::Group, "team", Some(12));
    live.names.insert_entry_ids("deploy_keys", Ok(crate::kind::EntryIds::new()));
    live
}

/// The labelled steps of `head` against `base`.
fn label_steps(base: &Container, head: &Container, live: &LiveContainer) -> Vec<Step> {
    let settings = settings(&[]);
    let mut plan = plan_container(head, live, &settings);
    Base::from_containers([base.clone()], &[]).label(&mut plan, head, live, &settings);
    plan.findings.steps
}

/// The fields that belong to the branch, by step.
fn branch_fields(steps: &[Step]) -> Vec<String> {
    let line = |step: &Step| {
        let fields = step.changes.iter().filter(|change| !label::is_excluded_label(change.label));
        let fields: Vec<_> = fields.map(|change| &*change.field).collect();
        format!("{} {}", step.address.section.unwrap_or_default(), fields.join(" "))
    };
    steps.iter().filter(|step| !label::is_excluded_label(step.label)).map(line).collect()
}

/// Access that somebody removed by hand is granted again only if the branch needs it.
#[test]
fn drift_is_written_only_if_a_step_of_the_branch_needs_it() {
    // Somebody switched off CI/CD, archived the project, removed the member and the share, and made
    // the key read-only.
    let base_forms = [1, 1, 0, 1, 1, 2, 1, 0, 0];
    let live_forms = [1, 0, 1, 0, 0, 1, 1, 0, 0];
    for (part_index, form, expected) in [
        // The description contains the text of a name, but does not name the member.
        (0, 2, vec!["settings description"]),
        (8, 1, vec!["settings builds_access_level", "variables"]),
        (7, 1, vec!["settings builds_access_level", "pipeline_schedules"]),
        (6, 0, vec![]),
        (6, 2, vec!["members", "shares", "deploy_keys can_push", "protected_branches"]),
    ] {
        let mut head_forms = base_forms;
        head_forms[part_index] = form;
        let (base, head) = (project(&base_forms), project(&head_forms));
        let steps = label_steps(&base, &head, &live_project(&head, &live_forms));
        let mut found_fields = branch_fields(&steps);
        found_fields.sort();
        let mut expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(found_fields.len(), expected.len(), "{part_index}: {found_fields:?}");
        for (fields, expected) in found_fields.iter().zip(&expected) {
            assert!(fields.starts_with(expected.as_str()), "{part_index}: {fields} {expected}");
        }
    }
}

/// Checks that each written step was changed by the branch, or is needed by a step that was.
fn check_writes(base: &[u8], head: &[u8], live_forms: &[u8]) {
    let is_edited = |part: &str| {
        let index = PARTS.iter().position(|other| *other == part).unwrap();
        declared_part(part, base[index]) != declared_part(part, head[index])
    };
    let (base_project, head_project) = (project(base), project(head));
    let steps = label_steps(&base_project, &head_project, &live_project(&head_project, live_forms));
    let needed: Vec<_> = steps
        .iter()
        .filter(|step| !label::is_excluded_label(step.label))
        .flat_map(|step| step.after.iter().map(|edge| edge.address.clone()))
        .collect();
    for step in &steps {
        let section = step.address.section.unwrap();
        let address = head_project.address().with_section(section);
        let is_needed = needed.iter().any(|edge| *edge == step.address || *edge == address);
        if section == "settings" {
            for change in &step.changes {
                let is_excluded = label::is_excluded_label(change.label);
                let is_ci = &*change.field == "builds_access_level";
                assert!(
                    is_excluded || is_edited(&change.field) || (is_ci && is_needed),
                    "{step:#?}"
                );
                assert!(!is_excluded || !is_edited(&change.field), "{step:#?}");
            }
            continue;
        }
        let is_excluded = label::is_excluded_label(step.label);
        assert!(is_excluded || is_edited(section) || is_needed, "{step:#?}");
        assert!(!is_excluded || !is_edited(section), "{step:#?}");
        if ["members", "shares", "deploy_keys"].contains(&section)
            && !is_excluded
            && !is_edited(section)
        {
            let names_grantees = is_edited("protected_branches") && *head.get(6).unwrap() == 2;
            assert!(names_grantees, "{step:#?}");
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 400, ..Default::default() })]
    #[test]
    fn each_write_is_the_branch_s_or_leads_to_one_that_needs_it(
        base in proptest::collection::vec(0_u8..3, PARTS.len()),
        mut head in proptest::collection::vec(0_u8..3, PARTS.len()),
        there in proptest::collection::vec(0_u8..3, PARTS.len()),
        changed in 0_u8..8,
    ) {
        // In most cases, the branch changes only one part.
        for (at, form) in head.iter_mut().enumerate() {
            if at != usize::from(changed) && changed < 7 {
                *form = base[at];
            }
        }
        check_writes(&base, &head, &there);
    }
}

/// Plans `head` without the problems of `base` that the branch can leave unsolved. Returns the
/// codes of these problems, and true if the branch has the same changes without the declarations
/// that cause the problems.
fn separate_problems(
    base: &Container,
    head: &Container,
    live: &LiveContainer,
) -> (Vec<&'static str>, bool) {
    let settings = settings(&[]);
    let mut plan = plan_container(head, live, &settings);
    assert!(plan.questions.is_empty() && !plan.problems.is_empty(), "{plan:#?}");
    let comparison =
        Base::from_containers([base.clone()], &[]).label(&mut plan, head, live, &settings);
    let problems = unneeded_problems(head, &plan, &comparison.problems);
    let is_separable = match BranchPart::from_labels(head, &plan, &problems) {
        BranchPart::Partial(part) => {
            let branch_plan = plan_container(&part, live, &settings);
            branch_plan.problems.len() + problems.len() == plan.problems.len()
                && has_same_changes(&plan, &branch_plan)
        }
        _ => false,
    };
    (problems.iter().map(|problem| problem.code).collect(), is_separable)
}

/// The base renames a label, and somebody created a label with the old name again. Therefore the
/// base cannot be planned either.
#[test]
fn a_problem_of_the_base_is_left_out_if_the_branch_changes_something_else() {
    let label = |color: &str| json!({"name": "b", "previously": ["a"], "color": color});
    let declare = |label: &Json, variable: Json| {
        shop(&json!({"labels": [label], "variables": variable}), Unlisted::Report)
    };
    let live_label = |id: u64, name: &str| json!({"id": id, "name": name, "color": "#112233"});
    let live_json = json!({"labels": [live_label(1, "a"), live_label(2, "b")], "variables": []});
    let new_live = |head: &Container| {
        let mut live = live_container_with(head, &live_json, FieldSelection::All);
        live.entries_above.insert("labels", Vec::new());
        live
    };
    let old_label = label("#112233");
    let base = declare(&old_label, json!([]));
    let new_variable = json!([variable("K", "a")]);
    for (head, expected) in [
        (declare(&old_label, new_variable.clone()), (vec!["previously"], true)),
        // The branch changes the label, too.
        (declare(&label("#445566"), new_variable.clone()), (vec![], false)),
        // The branch has nothing to write.
        (base.clone(), (vec![], false)),
    ] {
        assert_eq!(separate_problems(&base, &head, &new_live(&head)), expected, "{head:?}");
    }
    // Only the entry with the problem is left out, not the whole list.
    let mut two_labels = declare(&old_label, new_variable);
    two_labels.sections =
        shop(&json!({"labels": [old_label, {"name": "c", "color": "#112233"}]}), Unlisted::Report)
            .sections;
    let live = new_live(&two_labels);
    assert_eq!(separate_problems(&base, &two_labels, &live), (vec!["previously"], true));
}

/// Somebody set a limit in the group above, which one setting of the base exceeds.
#[test]
fn a_setting_with_a_problem_of_the_base_is_left_out_of_the_others() {
    let declare = |visibility: &str, description: &str| {
        let fields = json!({"visibility": visibility, "description": description});
        let mut project = shop(&json!({"settings": fields}), Unlisted::Report);
        // Each field has its own place.
        let fields = &mut project.sections[0].entries[0].fields;
        let places = fields.iter().zip(1..).map(|((name, field), line)| {
            (name, Sourced { origin: crate::desired::testing::origin(line), ..field })
        });
        *fields = places.collect();
        project
    };
    let base = declare("public", "a");
    for (head, live_description, expected) in [
        (declare("public", "b"), "a", (vec!["too-visible"], true)),
        // Another setting has drifted.
        (declare("public", "b"), "c", (vec!["too-visible"], true)),
        // The branch changes this setting.
        (declare("internal", "b"), "a", (vec![], false)),
    ] {
        let live_fields = json!({"visibility": "private", "description": live_description});
        let mut live = live_container(&head, &json!({"settings": live_fields}));
        let limits = json!({"visibility": "private"});
        live.group_above = Some(Arc::new(limits.as_object().unwrap().clone()));
        assert_eq!(separate_problems(&base, &head, &live), expected, "{head:?}");
    }
}
