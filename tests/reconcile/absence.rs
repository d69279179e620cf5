//! A section that cannot be read: plan and apply say the same about it, and it is never absent.

use serde_json::{Value as Json, json};
use undrift::{
    address::Address,
    catalogue,
    cause::Withheld,
    field::{Scope, Tier},
    kind::{Absence, ReadSource, Section, Shape},
    operation::Operation,
    release::Release,
    sandbox::{FaultEffect, InjectedFault, Profile},
};

use crate::{
    convergence::base_entry,
    world::{World, group, project, seed},
};

/// The fault of each read of the section.
const READ_FAULTS: [FaultEffect; 6] = [
    FaultEffect::StatusBefore(401),
    FaultEffect::StatusBefore(403),
    FaultEffect::StatusBefore(404),
    FaultEffect::StatusBefore(500),
    FaultEffect::EmptyBody,
    FaultEffect::Html200,
];

/// The sections that are read by a request of their own, with the rest of its path.
fn separately_read(scope: Scope) -> impl Iterator<Item = (Section, &'static Operation)> {
    catalogue::sections(scope).filter(|of| of.scoped_kind.parent.is_none()).filter_map(|of| {
        let (ReadSource::List(op) | ReadSource::Optional(op)) = of.scoped_kind.read_source else {
            return None;
        };
        Some((of, op.row()))
    })
}

/// A declaration of one entry.
fn declared_section(of: Section) -> Json {
    let mut entry = base_entry(of, 0);
    if of.shape == Shape::Mapping && entry.as_object().is_none_or(serde_json::Map::is_empty) {
        let mut specs = of.table().specs().iter();
        let flag = specs.find(|spec| spec.schema["type"].to_string().contains("boolean")).unwrap();
        entry = json!({ flag.name: true });
    }
    if of.shape == Shape::List { json!([entry]) } else { entry }
}

async fn check_agreement(scope: Scope) {
    let cases: Vec<_> = separately_read(scope)
        .flat_map(|(of, op)| READ_FAULTS.map(|what| (of, op, what)))
        // Elsewhere a 401 is about the token, and ends the run.
        .filter(|(_, op, what)| op.denies_with_401 || *what != FaultEffect::StatusBefore(401))
        .enumerate()
        .map(|(index, case)| (format!("case-{index}"), case))
        .collect();
    let mut seed = seed(&[]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "acme/security"}));
    for (name, _) in &cases {
        let (list, path) = match scope {
            Scope::Project => ("projects", format!("acme/{name}")),
            Scope::Group => ("groups", name.clone()),
        };
        let container = json!({"path": path, "branches": ["main"]});
        let there = if scope == Scope::Group { json!({"path": path}) } else { container };
        seed[list].as_array_mut().unwrap().push(there);
    }
    let mut world = World::new(Profile::default().with_release(Release::new(18, 9)), seed).await;
    world.acknowledged = vec!["protection:**"];
    for (name, (of, op, what)) in cases {
        let path = if scope == Scope::Group { name } else { format!("acme/{name}") };
        let (collection, make) = match scope {
            Scope::Project => ("projects", project as fn(&str, Json) -> Json),
            Scope::Group => ("groups", group as fn(&str, Json) -> Json),
        };
        let id = &world.get(&format!("/{collection}/{}", path.replace('/', "%2F"))).await["id"];
        let sections =
            json!({"settings": {"description": "new"}, of.section: declared_section(of)});
        world.declare(&[make(&path, sections)]);
        world.sandbox.add_fault(InjectedFault {
            method: Some(http::Method::GET),
            path_contains: op.path.replace(":id", &id.to_string()),
            nth: 0,
            effect: what.clone(),
        });
        let context = format!("{of:?} {what:?}");
        let outcome = world.apply().await;
        let shown = outcome.plan.steps.iter().map(|step| step.address.clone());
        let left_out = outcome.plan.unread_containers();
        let shown: Vec<_> = shown.filter(|step| !left_out.contains(&step.path)).collect();
        let sent = outcome.applied.iter().flat_map(|applied| &applied.steps);
        let sent: Vec<Address> = sent.map(|step| step.address.clone()).collect();
        assert_eq!(shown, sent, "{context}: {:#?}", outcome.plan.incomplete);
        let withheld = outcome.plan.incomplete.iter().map(|one| one.reason.withheld);
        let is_hidden_by_404 = of.scoped_kind.absent_as == Absence::NotFound;
        // A 404 without a body does not show what is absent.
        let is_refused = matches!(what, FaultEffect::StatusBefore(401 | 403 | 404))
            || ((is_hidden_by_404 || op.empty_as.is_some()) && what == FaultEffect::EmptyBody);
        // A missing single object may be shown by a 404, to who proves a licence.
        let is_absent = is_hidden_by_404 && what == FaultEffect::StatusBefore(404);
        let withheld_as = match of.tier() {
            Tier::Ultimate => Withheld::Tier,
            _ => Withheld::Refused,
        };
        let expected = if is_absent { vec![] } else { vec![is_refused.then_some(withheld_as)] };
        assert_eq!(withheld.collect::<Vec<_>>(), expected, "{context}");
        let settings_count = usize::from(is_refused) + usize::from(is_absent);
        assert_eq!(sent.len(), settings_count, "{context}: {sent:?}");
    }
}

#[tokio::test]
async fn plan_and_apply_agree_about_sections_of_projects() {
    check_agreement(Scope::Project).await;
}

#[tokio::test]
async fn plan_and_apply_agree_about_sections_of_groups() {
    check_agreement(Scope::Group).await;
}

/// The sections of `acme` or `acme/shop` that `sections` declares, and why each was not read.
async fn unread_sections(world: &World) -> Vec<(String, Option<Withheld>, String)> {
    let incomplete = world.plan().await.findings.incomplete.clone().into_iter();
    let describe = |part: undrift::diff::Incomplete| {
        (part.address.to_string(), part.reason.withheld, part.reason.message.to_string())
    };
    incomplete.map(describe).collect()
}

/// Once a `null` was a document that is not there: it was "created", and the service reset the rest.
#[tokio::test]
async fn an_empty_response_is_no_absent_document() {
    let mut seed = seed(&[]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "top"}));
    let world = World::new(Profile::default().with_release(Release::new(18, 9)), seed).await;
    let rule = json!({"merge_request_approval_setting": {"allow_author_approval": false}});
    world.declare(&[group("top", rule)]);
    world.sandbox.add_fault(InjectedFault {
        method: Some(http::Method::GET),
        path_contains: "/merge_request_approval_setting".into(),
        nth: 0,
        effect: FaultEffect::EmptyBody,
    });
    let outcome = world.apply().await;
    assert_eq!(outcome.plan.steps.len(), 0);
    assert_eq!(outcome.plan.incomplete[0].reason.withheld, None);
    assert_eq!(world.writes(), [] as [&str; 0]);
}

/// On a free service each section names its tier, and the rest of the project is applied.
#[tokio::test]
async fn a_section_above_the_tier_names_it_and_the_rest_is_applied() {
    let mut seed = seed(&[json!({"path": "acme/shop", "branches": ["main"], "members": [
        {"user": "alice", "access_level": 30}]})]);
    seed["tier"] = "free".into();
    let mut world = World::new(Profile::default().with_release(Release::new(18, 9)), seed).await;
    world.acknowledged = vec!["protection:**"];
    world.declare(&[
        group("acme", json!({"hooks": [{"url": "https://a.example.org"}], "push_rule": {"member_check": true}})),
        project("acme/shop", json!({
            "settings": {"description": "new"},
            "push_rule": {"member_check": true},
            "approvals": {"reset_approvals_on_push": true},
        })),
    ]);
    let needs =
        |name: &str| format!("`{name}` needs the premium tier; the service seems not to have it");
    let of = |at: &str, name: &str| (format!("{at}#{name}"), Some(Withheld::Tier), needs(name));
    let expected = [
        of("acme", "hooks"),
        of("acme", "push_rule"),
        of("acme/shop", "approvals"),
        of("acme/shop", "push_rule"),
    ];
    assert_eq!(unread_sections(&world).await, expected);
    let applied = world.apply().await.applied.unwrap();
    assert!(applied.is_complete(), "{:#?}", applied.mismatches);
    assert_eq!(world.get("/projects/acme%2Fshop").await["description"], "new");
    // A grant to a user, which only a licence saves.
    let grant = json!([{"name": "main", "allowed_to_push": [{"user": "alice"}]}]);
    world.declare(&[project("acme/shop", json!({"protected_branches": grant}))]);
    let applied = world.apply().await.applied.unwrap();
    let help: Vec<_> = applied.mismatches.into_iter().filter_map(|one| one.help).collect();
    assert_eq!(help, ["`user` in `allowed_to_push` needs the premium tier"]);
}

/// On an old service a section that came later names its release, and the rest of the project is applied.
#[tokio::test]
async fn a_section_of_a_later_release_names_it_and_the_rest_is_applied() {
    let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    let sections = json!({
        "settings": {"description": "new"},
        "job_token_scope": {"inbound_enabled": true},
    });
    world.declare(&[project("acme/shop", sections)]);
    let [(address, withheld, message)] = &unread_sections(&world).await[..] else {
        panic!("one section")
    };
    assert_eq!((&**address, *withheld), ("acme/shop#job_token_scope", Some(Withheld::Refused)));
    let needs = "`job_token_scope` needs release 16.3 or later, which the service may lack: ";
    assert!(message.starts_with(needs), "{message}");
    let applied = world.apply().await.applied.unwrap();
    assert!(applied.is_complete(), "{:#?}", applied.mismatches);
    assert_eq!(world.get("/projects/acme%2Fshop").await["description"], "new");
}

/// Once the key of an unlicensed enterprise build counted as a licence.
#[tokio::test]
async fn a_group_proves_its_licence_only_by_what_a_licence_shows() {
    let mut seed = seed(&[]);
    seed["tier"] = "free".into();
    let world = World::new(Profile::default().with_release(Release::new(18, 9)), seed).await;
    assert_eq!(world.get("/groups/acme").await["wiki_access_level"], "enabled");
    world.declare(&[group("acme", json!({"push_rule": {"member_check": true}}))]);
    assert_eq!(world.plan().await.steps.len(), 0);
    assert_eq!(unread_sections(&world).await[0].1, Some(Withheld::Tier));
}

/// A switched-off feature is reported and the rest is applied; a feature that the run enables is
/// read then.
#[tokio::test]
async fn a_disabled_feature_is_reported_as_switched_off() {
    let of = |at: &str, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}_access_level`")).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        let why = format!("switched off by settings: {} {are} disabled", names.join(" and "));
        (format!("acme/shop#{at}"), Some(Withheld::SwitchedOff), why)
    };
    let labels = json!([{"name": "x", "color": "#112233"}]);
    let rule = json!([{"repository_path_pattern": "acme/shop/*", "minimum_access_level_for_push": "owner"}]);
    let cases = [
        (vec!["environments"], "environments", json!([{"name": "prod"}])),
        (vec!["builds"], "environments", json!([{"name": "prod"}])),
        (vec!["builds"], "variables", json!([{"key": "A", "value": "x"}])),
        (vec!["issues", "merge_requests"], "milestones", json!([{"title": "1.0"}])),
        (vec!["issues", "merge_requests"], "labels", labels),
        (vec!["container_registry"], "registry_protection_rules", rule),
        (vec!["repository"], "protected_branches", json!([{"name": "main"}])),
    ];
    for (features, section, declared) in cases {
        let world = World::new(
            Profile::default().with_release(Release::new(18, 9)),
            seed(&[json!({"path": "acme/shop", "branches": ["main"]})]),
        )
        .await;
        let levels = |word: &str, features: &[&str]| -> Json {
            let all = features.iter().map(|name| (format!("{name}_access_level"), word.into()));
            all.collect::<serde_json::Map<_, _>>().into()
        };
        let switches = match features[..] {
            // Neither may be wider than the repository.
            ["repository"] => &["repository", "merge_requests", "builds", "forking"][..],
            _ => &features,
        };
        world.call("PUT", "/projects/acme%2Fshop", Some(levels("disabled", switches))).await;
        let mut sections = json!({"settings": {"description": "new"}, section: declared});
        world.declare(&[project("acme/shop", sections.clone())]);
        assert_eq!(unread_sections(&world).await, [of(section, &features)], "{section}");
        let applied = world.apply().await.applied.unwrap();
        assert!(applied.is_complete(), "{section}: {:#?}", applied.mismatches);
        assert_eq!(world.get("/projects/acme%2Fshop").await["description"], "new", "{section}");
        sections["settings"] = levels("enabled", switches);
        world.declare(&[project("acme/shop", sections.clone())]);
        world.converge(section).await;
        // Declared to be off, it is left alone, and nothing is missing.
        sections["settings"] = levels("disabled", switches);
        world.declare(&[project("acme/shop", json!({"settings": sections["settings"]}))]);
        world.converge(section).await;
        world.declare(&[project("acme/shop", sections)]);
        assert_eq!(unread_sections(&world).await, [], "{section}");
    }
}

/// A field that a flag of the service drops in silence.
#[tokio::test]
async fn a_field_that_the_service_drops_is_reported() {
    let shop = seed(&[json!({"path": "acme/shop"})]);
    let mut world = World::new(Profile::default().with_release(Release::new(18, 9)), shop).await;
    world.body_edit = Some(|_, path, body| {
        path.contains("/packages/protection")
            .then(|| body.as_object_mut()?.remove("minimum_access_level_for_delete"));
        None
    });
    let rule = json!([{"package_name_pattern": "a*", "package_type": "npm",
        "minimum_access_level_for_push": "owner", "minimum_access_level_for_delete": "owner"}]);
    world.declare(&[project("acme/shop", json!({"package_protection_rules": rule}))]);
    let applied = world.apply().await.applied.unwrap();
    let help: Vec<_> = applied.mismatches.into_iter().filter_map(|one| one.help).collect();
    let field = "minimum_access_level_for_delete";
    let said = format!(
        "`{field}` is not available here: the service ignores it; remove it from the manifest"
    );
    assert_eq!(help, [said]);
}
